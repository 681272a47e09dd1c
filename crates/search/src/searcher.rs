//! The search over one log: candidate lines are decoded, verified and reported one by one.

use std::io::{self, Read};
use std::ops::{ControlFlow, Range};

use foldhash::HashSet;
use threadline_entry::lens::Envelope;
use threadline_entry::{
    Entry, LineBlock, LineReader, LogLine, Millis, Position, SkippedLine, anchor, hash_of, key, parse_line,
    walk,
};

use crate::call::{CallInfo, CallLookup, command_of, path_of};
use crate::needle::count_lines;
use crate::piece::{PieceRole, TextKind, TextPiece, text_pieces};
use crate::query::{FieldCondition, Query};
use crate::snippet::{self, Excerpts};
use crate::term::{FoldCache, Term};

/// Lines of at least this length are reported.
const HUGE_LINE: usize = 20 << 20;

/// Longer lines are not searched, to limit memory.
pub(crate) const LONGEST_LINE: usize = 32 << 20;

/// Runs a query over logs, one after the other, reusing one buffer.
pub struct Searcher<'q> {
    query: &'q Query,
    buffer: Vec<u8>,
    matches_only: bool,
    expects_matches: bool,
}

/// Statistics and problems of a searched log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// The number of bytes read.
    pub bytes: u64,
    /// Lines of at least 20 MiB: number and length.
    pub huge_lines: Vec<(u64, usize)>,
    /// Lines of more than 32 MiB, which were not searched.
    pub skipped_lines: Vec<SkippedLine>,
}

/// A match: a block of a message.
pub struct MatchRef<'a> {
    query: &'a Query,
    piece: &'a TextPiece<'a>,
    entry: &'a Entry,
    at: Position,
    call: Option<&'a CallInfo>,
}

/// A match as owned data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchMatch {
    /// Its line number, from 1.
    pub line_no: u64,
    /// The byte offset of the line in the file.
    pub byte_offset: u64,
    /// The index of the block in the line's message, from 0.
    pub block_idx: usize,
    /// Its anchor, as in `view`. A result has the anchor of its call, because it is shown there.
    pub anchor: String,
    /// The kind of text.
    pub kind: TextKind,
    /// The role of the message.
    pub role: PieceRole,
    /// The tool of the call or result.
    pub tool: Option<String>,
    /// The time of the line.
    pub timestamp: Option<Millis>,
    /// A key that is equal for all copies of the block, in any file.
    pub key: Option<u64>,
    /// An excerpt of the block's text around the match; two, joined by an ellipsis, if terms are far apart.
    pub text: String,
    /// The matches, as byte ranges of `text`.
    pub ranges: Vec<Range<usize>>,
    /// The byte range of the ellipsis between two excerpts in `text`. Few matches have one.
    pub gap: Option<Box<Range<usize>>>,
    /// The byte range in the block's text from the beginning of the first excerpt to the end of the last.
    pub within: Range<usize>,
    /// Whether `text` begins or ends within a line.
    pub cut: [bool; 2],
    /// The number of matches in the block.
    pub n_matches: usize,
}

impl<'q> Searcher<'q> {
    /// Creates a searcher for a query.
    pub fn new(query: &'q Query) -> Self {
        Self { query, buffer: Vec::new(), matches_only: false, expects_matches: false }
    }

    /// Only finds matches: lines are not numbered, and the calls of results are not looked up unless a field
    /// requires it. This is faster if matches are only counted.
    #[must_use]
    pub fn matches_only(mut self) -> Self {
        self.matches_only = true;
        self
    }

    /// Numbers lines as they are read. This is faster if the logs are known to have matches: otherwise the
    /// part before the first one is read again to count its lines.
    #[must_use]
    pub fn expecting_matches(mut self) -> Self {
        self.expects_matches = true;
        self
    }

    /// Searches the log that `open` returns, from its start, and calls `sink` with each match until `sink`
    /// breaks.
    ///
    /// `open` may be called again to find the call of a result that is far above it.
    ///
    /// # Errors
    ///
    /// Returns the errors of the reader. Matches found before an error have been passed to `sink`.
    pub fn search<R: Read>(
        &mut self,
        open: impl Fn() -> io::Result<R>,
        mut sink: impl FnMut(&MatchRef<'_>) -> ControlFlow<()>,
    ) -> io::Result<SearchStats> {
        let lines = LineReader::new(ByteReads(open()?)).skip_longer_than(LONGEST_LINE);
        let mut lines = lines.with_buffer(std::mem::take(&mut self.buffer));
        if !self.expects_matches {
            // Lines are numbered only if there is a match.
            lines.stop_numbering();
        }
        let mut scanned = SearchStats::default();
        let mut finder =
            SearchState { calls: CallLookup::default(), line_no: Some(1), titles: HashSet::default(), open };
        let mut end = 0;
        let result = loop {
            let block = match lines.next_block() {
                Ok(Some(block)) => block,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            scanned.bytes += block.bytes.len() as u64;
            // If a line before the block was skipped, the line number is unknown.
            if self.expects_matches {
                finder.line_no = Some(block.at.line_no);
            } else if block.at.byte_offset != end {
                finder.line_no = None;
            }
            end = block.at.byte_offset + block.bytes.len() as u64;
            // A line this long is in a block of about its size.
            if block.bytes.len() >= HUGE_LINE {
                note_huge(finder.numbered(block), &mut scanned.huge_lines);
            }
            let mut cursor = LineCounter { block, counted: 0, line_no: None };
            let flow = self.query.needle.candidates(block, |line, start| {
                self.search_line(&line, start, &mut cursor, &mut finder, &mut sink)
            });
            if flow.is_break() {
                break Ok(());
            }
            finder.line_no = cursor.end();
            if finder.line_no.is_some() || self.query.needs_calls() {
                finder.calls.keep_end(block);
            }
        };
        scanned.skipped_lines = lines.skipped_lines().to_vec();
        for line in &mut scanned.skipped_lines {
            line.at.line_no = count_before(&finder.open, line.at.byte_offset)?;
        }
        self.buffer = lines.into_buffer();
        result.map(|()| scanned)
    }

    /// Decodes a line and passes its matches to `sink`.
    fn search_line<R: Read, O: Fn() -> io::Result<R>>(
        &self,
        line: &LogLine<'_>,
        start: usize,
        cursor: &mut LineCounter<'_>,
        finder: &mut SearchState<O>,
        sink: &mut impl FnMut(&MatchRef<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        parse_line(line, |entry, _| {
            if !self.query.filters.is_empty() && !self.query.matches_line(&entry) {
                return;
            }
            text_pieces(&entry, &mut |piece| {
                if flow.is_break() || !self.query.matches_piece(&piece) {
                    return;
                }
                if piece.kind == TextKind::Title && !finder.titles.insert(piece.text.to_string()) {
                    return;
                }
                let asked = self.query.needs_calls();
                let line_no = if self.matches_only { line.at.line_no } else { cursor.line_no(start, finder) };
                let call = match &piece.call_id {
                    Some(id) if asked || !self.matches_only => {
                        finder.calls.find(id, cursor.block, start, &finder.open)
                    }
                    _ => None,
                };
                if asked && !self.query.matches_call(&piece, call.as_ref()) {
                    return;
                }
                let at = Position { line_no, ..line.at };
                flow = sink(&MatchRef {
                    query: self.query,
                    piece: &piece,
                    entry: &entry,
                    at,
                    call: call.as_ref(),
                });
            });
        });
        flow
    }
}

/// Limits the size of each read, so that the data is still in the processor's cache when it is scanned, which
/// happens several times.
struct ByteReads<R>(R);

/// The number of bytes per read.
const READ_SIZE: usize = 1 << 17;

impl<R: Read> Read for ByteReads<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(READ_SIZE);
        self.0.read(&mut into[..most])
    }
}

/// The state of a search besides the current block.
struct SearchState<O> {
    calls: CallLookup,
    /// The number of the first line of the next block, if it is known.
    line_no: Option<u64>,
    /// The titles that matched. Claude Code repeats the title of a session in its log.
    titles: HashSet<String>,
    open: O,
}

impl<R: Read, O: Fn() -> io::Result<R>> SearchState<O> {
    /// Returns the block with the number of its first line. If it is unknown, the log is read again to count
    /// lines.
    fn numbered<'b>(&mut self, block: LineBlock<'b>) -> LineBlock<'b> {
        let count = || count_before(&self.open, block.at.byte_offset).unwrap_or(1);
        let line_no = *self.line_no.get_or_insert_with(count);
        LineBlock { at: Position { line_no, ..block.at }, ..block }
    }
}

/// Returns the number of the line at `byte_offset`.
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

/// Counts the lines of a block incrementally.
struct LineCounter<'b> {
    block: LineBlock<'b>,
    counted: usize,
    /// The number of the line at `counted`, once one was requested.
    line_no: Option<u64>,
}

impl LineCounter<'_> {
    /// Returns the number of the line at `start`. Calls must be in ascending order.
    fn line_no<R: Read, O: Fn() -> io::Result<R>>(
        &mut self,
        start: usize,
        finder: &mut SearchState<O>,
    ) -> u64 {
        if self.line_no.is_none() {
            self.block = finder.numbered(self.block);
        }
        let line_no = self.line_no.unwrap_or(self.block.at.line_no);
        let line_no = line_no + count_lines(&self.block.bytes[self.counted..start]);
        self.counted = start;
        self.line_no = Some(line_no);
        line_no
    }

    /// Returns the number of the line after the block, if any number in it was requested.
    fn end(&self) -> Option<u64> {
        Some(self.line_no? + count_lines(&self.block.bytes[self.counted..]))
    }
}

/// Adds the huge lines of a large block.
fn note_huge(block: LineBlock<'_>, huge: &mut Vec<(u64, usize)>) {
    let lines = block.bytes.split(|byte| *byte == b'\n');
    let long = (block.at.line_no..).zip(lines).filter(|(_, line)| line.len() >= HUGE_LINE);
    huge.extend(long.map(|(line_no, line)| (line_no, line.len())));
}

impl Query {
    /// Returns whether the fields of the whole line match.
    fn matches_line(&self, entry: &Entry) -> bool {
        let envelope: Option<Envelope<'_>> = entry.lens();
        self.matches_fields(|field| {
            Some(match field {
                FieldCondition::Branch(term) => envelope
                    .and_then(Envelope::git_branch)
                    .is_some_and(|branch| term.is_in(&FoldCache::new(&branch))),
                FieldCondition::Model(term) => {
                    let model = entry.message().and_then(|message| message.model());
                    model.is_some_and(|model| term.is_in(&FoldCache::new(&model)))
                }
                FieldCondition::Since(moment) => entry.timestamp().is_some_and(|at| at >= *moment),
                FieldCondition::Until(moment) => entry.timestamp().is_some_and(|at| at < *moment),
                _ => return None,
            })
        })
    }

    /// Returns whether the terms and the fields of a single piece match.
    fn matches_piece(&self, piece: &TextPiece<'_>) -> bool {
        let folded = FoldCache::new(&piece.text);
        let fields = self.filters.is_empty()
            || self.matches_fields(|field| {
                Some(match field {
                    FieldCondition::Role(role) => piece.role == *role,
                    FieldCondition::Kind(kind) => piece.kind == *kind,
                    FieldCondition::Error(is_error, term) => {
                        piece.is_error == *is_error && term.as_ref().is_none_or(|term| term.is_in(&folded))
                    }
                    _ => return None,
                })
            });
        fields
            && self.terms.iter().all(|term| term.is_in(&folded))
            && !self.excluded.iter().any(|term| term.is_in(&folded))
    }

    /// Returns whether the fields match that a call and its result share.
    fn matches_call(&self, piece: &TextPiece<'_>, call: Option<&CallInfo>) -> bool {
        let tool = piece.tool.as_deref().or(call.map(|call| &*call.tool));
        let about = |of_input: fn(threadline_entry::Json<'_>) -> Option<String>, of_call: Option<&String>| {
            piece.input.and_then(of_input).or_else(|| of_call.cloned())
        };
        self.matches_fields(|field| {
            let holds = |term: &Term, text: Option<String>| {
                text.is_some_and(|text| term.is_in(&FoldCache::new(&text)))
            };
            Some(match field {
                FieldCondition::Tool(name) => tool.is_some_and(|tool| name.matches(tool)),
                FieldCondition::Path(term) => {
                    holds(term, about(path_of, call.and_then(|call| call.path.as_ref())))
                }
                FieldCondition::Command(term) => {
                    holds(term, about(command_of, call.and_then(|call| call.command.as_ref())))
                }
                _ => return None,
            })
        })
    }
}

impl MatchRef<'_> {
    /// Returns the kind of text.
    pub fn kind(&self) -> TextKind {
        self.piece.kind
    }

    /// Returns the position of its line.
    pub fn at(&self) -> Position {
        self.at
    }

    /// Returns a key that is equal for all copies of the block, in any file: a fork copies lines with their
    /// uuids.
    pub fn key(&self) -> Option<u64> {
        let uuid = self.entry.uuid()?;
        Some(hash_of(&(&*uuid, self.piece.block_idx, self.piece.kind as u8)))
    }

    /// Returns the whole text of the block.
    pub fn text(&self) -> &str {
        &self.piece.text
    }

    /// Returns the match as owned data, with `context` lines of text around it.
    pub fn with_excerpt(&self, context: usize) -> SearchMatch {
        let text = &*self.piece.text;
        let folded = FoldCache::new(text);
        let found: Vec<Vec<_>> = self.highlighted_terms().map(|term| occurrences(term, &folded)).collect();
        let Excerpts { parts, joint } = snippet::choose_excerpts(text, &found, context);
        let all = snippet::merge(found.into_iter().flatten().collect());
        let (mut shown, mut ranges, mut gap) = (String::new(), Vec::new(), None);
        for part in &parts {
            if !shown.is_empty() {
                gap = Some(Box::new(shown.len()..shown.len() + joint.len()));
                shown.push_str(joint);
            }
            let seen = all.iter().filter(|range| range.start < part.end && range.end > part.start);
            ranges.extend(seen.map(|range| {
                let [start, end] = [range.start.max(part.start), range.end.min(part.end)];
                shown.len() + start - part.start..shown.len() + end - part.start
            }));
            shown.push_str(&text[part.clone()]);
        }
        let within = parts.first().map_or(0, |first| first.start)..parts.last().map_or(0, |last| last.end);
        SearchMatch {
            line_no: self.at.line_no,
            byte_offset: self.at.byte_offset,
            block_idx: self.piece.block_idx,
            anchor: self.anchor(),
            kind: self.piece.kind,
            role: self.piece.role,
            tool: self.piece.tool.as_deref().or(self.call.map(|call| &*call.tool)).map(str::to_owned),
            timestamp: self.entry.timestamp(),
            key: self.key(),
            ranges,
            text: shown,
            gap,
            cut: snippet::is_truncated(text, &within),
            within,
            n_matches: all.len(),
        }
    }

    /// Returns the terms to highlight. For a call, these include its path and command filters.
    fn highlighted_terms(&self) -> impl Iterator<Item = &Term> {
        let of_call = self.query.filters.iter().filter(|filter| !filter.negated).filter_map(|filter| {
            match &filter.field {
                FieldCondition::Path(term) | FieldCondition::Command(term)
                    if self.piece.kind == TextKind::Tool =>
                {
                    Some(term)
                }
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

/// Returns the first occurrences of a term, up to a limit that suffices for display.
fn occurrences(term: &Term, folded: &FoldCache<'_>) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    term.find(folded, &mut |range| {
        places.push(range);
        places.len() < 10_000
    });
    places
}

/// Returns the uuid of the first line that has one, given the beginning of a log.
///
/// A forked session begins with the lines of its origin, so both have the same first uuid.
pub fn first_uuid(head: &[u8]) -> Option<&[u8]> {
    let is_uuid =
        |uuid: &&[u8]| uuid.len() == 36 && uuid.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    walk::string_values(head, key::quoted::UUID).next().map(str::as_bytes).filter(is_uuid)
}
