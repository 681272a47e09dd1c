//! The search over one log: raw lines that may match, decoded, confirmed, and told one by one.

use std::hash::Hasher;
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};

use memchr::memmem;
use threadline_entry::lens::Envelope;
use threadline_entry::{Block, Entry, LeftOut, Line, Lines, Millis, Position, parse_line};

use crate::call::{Call, Calls, command_of, path_of};
use crate::needle::count_lines;
use crate::piece::{Piece, Role, TextKind, pieces};
use crate::query::{Field, Query};
use crate::snippet;
use crate::term::{Sheet, Term};

/// A line as long as this is worth a word to the person.
const HUGE_LINE: usize = 20 << 20;

/// A longer line than this is not searched: memory has a limit.
pub(crate) const LONGEST_LINE: usize = 32 << 20;

/// Runs a query over logs, one after the other, in one buffer.
pub struct Searcher<'q> {
    query: &'q Query,
    buffer: Vec<u8>,
    only_finding: bool,
}

/// What is worth knowing about a log beside what was found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// How many bytes were read.
    pub bytes: u64,
    /// Lines of more than 20 MB: their number and length.
    pub huge_lines: Vec<(u64, usize)>,
    /// Lines of more than 32 MB, which were not searched.
    pub left_out: Vec<LeftOut>,
}

/// Something that was found: a block of a message.
pub struct Found<'a> {
    query: &'a Query,
    piece: &'a Piece<'a>,
    entry: &'a Entry,
    at: Position,
    call: Option<&'a Call>,
}

/// Something that was found, to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The line it stands on, counted from 1.
    pub line_no: u64,
    /// Where that line begins in the file.
    pub byte_offset: u64,
    /// Which block of the line's message it is, counted from 0.
    pub block_idx: usize,
    /// Its name in links, as `view` gives it. A result goes by the name of its call, which it is shown with.
    pub anchor: String,
    /// What it is.
    pub kind: TextKind,
    /// Who speaks.
    pub role: Role,
    /// The tool that was called, or whose result it is.
    pub tool: Option<String>,
    /// When.
    pub timestamp: Option<Millis>,
    /// The same for every copy of the block, in whatever file.
    pub key: Option<u64>,
    /// A part of the block's text, around what was found.
    pub text: String,
    /// What was found, in bytes of `text`.
    pub ranges: Vec<Range<usize>>,
    /// Where `text` stands in the block's text.
    pub within: Range<usize>,
    /// Whether the first line of `text` goes on before it, and the last one behind it.
    pub cut: [bool; 2],
    /// In how many places of the block something was found.
    pub n_matches: usize,
}

impl<'q> Searcher<'q> {
    /// A searcher for this query.
    pub fn new(query: &'q Query) -> Self {
        Self { query, buffer: Vec::new(), only_finding: false }
    }

    /// Only finds: lines are not numbered, and the calls of results are not looked up unless a field asks
    /// for it. For those who count, or want to know whether.
    #[must_use]
    pub fn only_finding(mut self) -> Self {
        self.only_finding = true;
        self
    }

    /// Searches the log that `open` gives, from its start, and calls `sink` with each find until that breaks.
    ///
    /// `open` may be called again to look for the call of a result that stands far above it.
    ///
    /// # Errors
    ///
    /// What the reader reports. What was found before has been told.
    pub fn search<R: Read>(
        &mut self,
        open: impl Fn() -> io::Result<R>,
        mut sink: impl FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> io::Result<Scanned> {
        let lines = Lines::new(Sips(open()?)).leaving_out_longer_than(LONGEST_LINE);
        let mut lines = lines.with_buffer(std::mem::take(&mut self.buffer));
        // Lines are numbered only where something is found.
        lines.stop_numbering();
        let mut scanned = Scanned::default();
        let mut finder = Finder { calls: Calls::default(), line_no: Some(1), open };
        let mut end = 0;
        let result = loop {
            let block = match lines.next_block() {
                Ok(Some(block)) => block,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            scanned.bytes += block.bytes.len() as u64;
            // Where something was left out before the block, its lines have to be counted.
            if block.at.byte_offset != end {
                finder.line_no = None;
            }
            end = block.at.byte_offset + block.bytes.len() as u64;
            // A line that long has a block for itself, or nearly so.
            if block.bytes.len() >= HUGE_LINE {
                note_huge(finder.numbered(block), &mut scanned.huge_lines);
            }
            let mut cursor = Cursor { block, counted: 0, line_no: None };
            let flow = self.query.needle.candidates(block, |line, start| {
                self.look(&line, start, &mut cursor, &mut finder, &mut sink)
            });
            if flow.is_break() {
                break Ok(());
            }
            finder.line_no = cursor.end();
            if finder.line_no.is_some() || self.query.asks_for_calls() {
                finder.calls.keep_end(block);
            }
        };
        scanned.left_out = lines.left_out().to_vec();
        for line in &mut scanned.left_out {
            line.at.line_no = count_before(&finder.open, line.at.byte_offset)?;
        }
        self.buffer = lines.into_buffer();
        result.map(|()| scanned)
    }

    /// Decodes a line and tells what is found in it.
    fn look<R: Read, O: Fn() -> io::Result<R>>(
        &self,
        line: &Line<'_>,
        start: usize,
        cursor: &mut Cursor<'_>,
        finder: &mut Finder<O>,
        sink: &mut impl FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        parse_line(line, |entry, _| {
            if !self.query.filters.is_empty() && !self.query.wants_line(&entry) {
                return;
            }
            pieces(&entry, &mut |piece| {
                if flow.is_break() || !self.query.wants_piece(&piece) {
                    return;
                }
                let asked = self.query.asks_for_calls();
                let line_no = if self.only_finding { line.at.line_no } else { cursor.line_no(start, finder) };
                let call = match &piece.call_id {
                    Some(id) if asked || !self.only_finding => {
                        finder.calls.find(id, cursor.block, start, &finder.open)
                    }
                    _ => None,
                };
                if asked && !self.query.wants_call(&piece, call.as_ref()) {
                    return;
                }
                let at = Position { line_no, ..line.at };
                flow =
                    sink(&Found { query: self.query, piece: &piece, entry: &entry, at, call: call.as_ref() });
            });
        });
        flow
    }
}

/// Reads a little at a time: what was just read is still close to the processor when it is looked at, and
/// each stretch of it is looked at several times.
struct Sips<R>(R);

/// How much is read at a time.
const SIP: usize = 1 << 17;

impl<R: Read> Read for Sips<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(SIP);
        self.0.read(&mut into[..most])
    }
}

/// What is known of the log beside the block at hand.
struct Finder<O> {
    calls: Calls,
    /// The number of the line that the next block begins with, if it is known.
    line_no: Option<u64>,
    open: O,
}

impl<R: Read, O: Fn() -> io::Result<R>> Finder<O> {
    /// The block with the number of its first line. Where nobody counted on the way, the log is read again.
    fn numbered<'b>(&mut self, block: Block<'b>) -> Block<'b> {
        let count = || count_before(&self.open, block.at.byte_offset).unwrap_or(1);
        let line_no = *self.line_no.get_or_insert_with(count);
        Block { at: Position { line_no, ..block.at }, ..block }
    }
}

/// The number of the line that begins at `byte_offset`.
fn count_before<R: Read>(open: &impl Fn() -> io::Result<R>, byte_offset: u64) -> io::Result<u64> {
    let mut reader = open()?.take(byte_offset);
    let mut buffer = vec![0; 1 << 16];
    let mut line_no = 1;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(line_no),
            Ok(n) => line_no += count_lines(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The place in a block up to which lines were counted.
struct Cursor<'b> {
    block: Block<'b>,
    counted: usize,
    /// The number of the line at `counted`, once one was asked for.
    line_no: Option<u64>,
}

impl Cursor<'_> {
    /// The number of the line that begins at `start`. Asked from the top down.
    fn line_no<R: Read, O: Fn() -> io::Result<R>>(&mut self, start: usize, finder: &mut Finder<O>) -> u64 {
        if self.line_no.is_none() {
            self.block = finder.numbered(self.block);
        }
        let line_no = self.line_no.unwrap_or(self.block.at.line_no);
        let line_no = line_no + count_lines(&self.block.bytes[self.counted..start]);
        self.counted = start;
        self.line_no = Some(line_no);
        line_no
    }

    /// The number of the line behind the block, if somebody asked for one within.
    fn end(&self) -> Option<u64> {
        Some(self.line_no? + count_lines(&self.block.bytes[self.counted..]))
    }
}

/// The lines of a large block that are too long.
fn note_huge(block: Block<'_>, huge: &mut Vec<(u64, usize)>) {
    let lines = block.bytes.split(|byte| *byte == b'\n');
    let long = (block.at.line_no..).zip(lines).filter(|(_, line)| line.len() >= HUGE_LINE);
    huge.extend(long.map(|(line_no, line)| (line_no, line.len())));
}

impl Query {
    /// Whether the fields that belong to the whole line hold.
    fn wants_line(&self, entry: &Entry) -> bool {
        let envelope: Option<Envelope<'_>> = entry.lens();
        self.holds(|field| {
            Some(match field {
                Field::Branch(term) => envelope
                    .and_then(Envelope::git_branch)
                    .is_some_and(|branch| term.is_in(&Sheet::new(&branch))),
                Field::Model(term) => {
                    let model = entry.message().and_then(|message| message.model());
                    model.is_some_and(|model| term.is_in(&Sheet::new(&model)))
                }
                Field::Since(moment) => entry.timestamp().is_some_and(|at| at >= *moment),
                Field::Until(moment) => entry.timestamp().is_some_and(|at| at < *moment),
                _ => return None,
            })
        })
    }

    /// Whether a piece is what is looked for, as far as it tells by itself.
    fn wants_piece(&self, piece: &Piece<'_>) -> bool {
        let sheet = Sheet::new(&piece.text);
        let fields = self.filters.is_empty()
            || self.holds(|field| {
                Some(match field {
                    Field::Role(role) => piece.role == *role,
                    Field::Kind(kind) => piece.kind == *kind,
                    Field::Error(is_error, term) => {
                        piece.is_error == *is_error && term.as_ref().is_none_or(|term| term.is_in(&sheet))
                    }
                    _ => return None,
                })
            });
        fields
            && self.terms.iter().all(|term| term.is_in(&sheet))
            && !self.excluded.iter().any(|term| term.is_in(&sheet))
    }

    /// Whether the fields hold that a call and its result share.
    fn wants_call(&self, piece: &Piece<'_>, call: Option<&Call>) -> bool {
        let tool = piece.tool.as_deref().or(call.map(|call| &*call.tool));
        let about = |of_input: fn(threadline_entry::Json<'_>) -> Option<String>, of_call: Option<&String>| {
            piece.input.and_then(of_input).or_else(|| of_call.cloned())
        };
        self.holds(|field| {
            let holds =
                |term: &Term, text: Option<String>| text.is_some_and(|text| term.is_in(&Sheet::new(&text)));
            Some(match field {
                Field::Tool(name) => tool.is_some_and(|tool| name.matches(tool)),
                Field::Path(term) => holds(term, about(path_of, call.and_then(|call| call.path.as_ref()))),
                Field::Command(term) => {
                    holds(term, about(command_of, call.and_then(|call| call.command.as_ref())))
                }
                _ => return None,
            })
        })
    }
}

impl Found<'_> {
    /// What it is.
    pub fn kind(&self) -> TextKind {
        self.piece.kind
    }

    /// Where its line stands.
    pub fn at(&self) -> Position {
        self.at
    }

    /// The same for every copy of the block, in whatever file: a fork copies lines with their uuids.
    pub fn key(&self) -> Option<u64> {
        let uuid = self.entry.uuid()?;
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(uuid.as_bytes());
        hasher.write_usize(self.piece.block_idx);
        hasher.write_u8(self.piece.kind as u8);
        Some(hasher.finish())
    }

    /// The whole text of the block.
    pub fn text(&self) -> &str {
        &self.piece.text
    }

    /// What was found, to keep, with `context` lines of the text around it.
    pub fn hit(&self, context: usize) -> Hit {
        let text = &*self.piece.text;
        let sheet = Sheet::new(text);
        let found: Vec<Vec<_>> = self.marks().map(|term| places(term, &sheet)).collect();
        let within = snippet::choose(text, &found, context);
        let all = snippet::merge(found.into_iter().flatten().collect());
        let n_matches = all.len();
        let seen = all.into_iter().filter(|range| range.start < within.end && range.end > within.start);
        let ranges = seen.map(|range| {
            range.start.max(within.start) - within.start..range.end.min(within.end) - within.start
        });
        Hit {
            line_no: self.at.line_no,
            byte_offset: self.at.byte_offset,
            block_idx: self.piece.block_idx,
            anchor: self.anchor(),
            kind: self.piece.kind,
            role: self.piece.role,
            tool: self.piece.tool.as_deref().or(self.call.map(|call| &*call.tool)).map(str::to_owned),
            timestamp: self.entry.timestamp(),
            key: self.key(),
            ranges: ranges.collect(),
            text: text[within.clone()].to_owned(),
            cut: snippet::cuts(text, &within),
            within,
            n_matches,
        }
    }

    /// The terms to mark in the text: of a call also those that its path and command were asked for.
    fn marks(&self) -> impl Iterator<Item = &Term> {
        let of_call = self.query.filters.iter().filter(|filter| !filter.negated).filter_map(|filter| {
            match &filter.field {
                Field::Path(term) | Field::Command(term) if self.piece.kind == TextKind::Tool => Some(term),
                _ => None,
            }
        });
        self.query.terms.iter().chain(of_call)
    }

    fn anchor(&self) -> String {
        match self.call {
            Some(call) => anchor(call.line_no, call.block_idx),
            None => anchor(self.at.line_no, self.piece.block_idx),
        }
    }
}

/// The first places a term occurs at; more than these nobody marks.
fn places(term: &Term, sheet: &Sheet<'_>) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    term.find(sheet, &mut |range| {
        places.push(range);
        places.len() < 10_000
    });
    places
}

/// The name of a block, as `view::anchor` gives it.
fn anchor(line_no: u64, block_idx: usize) -> String {
    if block_idx == 0 { format!("m{line_no}") } else { format!("m{line_no}.{}", block_idx + 1) }
}

/// The uuid of the first line that has one, given the beginning of a log.
///
/// A session that was forked begins with the lines of the one it came from, so the two share it.
pub fn first_uuid(head: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"uuid\":\"";
    let at = memmem::find(head, KEY)? + KEY.len();
    let uuid = head.get(at..at + 36)?;
    uuid.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-').then_some(uuid)
}
