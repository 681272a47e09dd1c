//! One line of a log: its exact bytes, its position and its parsed form.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use crate::finding::{Code, Finding};
use crate::index::{FieldOffsets, IndexedFields, LineIndex, LineText};
use crate::json::{self, DEPTH_LIMIT, Json, JsonValidator};
use crate::key;
use crate::kind::Kind;
use crate::lens::{Envelope, Lens, Message, Object, ToolUseResult};
use crate::lines::LogLine;
use crate::timestamp::{self, Millis};

/// One line of a session log, byte for byte.
///
/// Every accessor is a lens that reads the stored bytes on demand. It returns `None` when the line has no
/// such field, or when the field has an unexpected type. A line that is not JSON is also an `Entry`: it has
/// bytes and a position, and all its accessors return `None`.
///
/// An entry never spans lines. A line with several objects is one entry per object.
///
/// Two entries are equal when their bytes are equal.
#[derive(Clone)]
pub struct Entry {
    source: Arc<IndexedText>,
    record: LineRecord,
}

/// A text with the index of its lines. The entries of these lines share it.
struct IndexedText {
    /// The lines. Invalid UTF-8 is replaced by U+FFFD.
    text: Arc<String>,
    /// The indexes of the lines, see [`LineIndex`].
    fields: Box<[FieldOffsets]>,
    /// The original bytes of the lines that are not UTF-8, with their offsets in `text`, in order.
    invalid: Vec<(u32, Box<[u8]>)>,
}

/// The facts about a line that are not in its text. Kept small, since a log may consist of very short lines.
#[derive(Clone, Copy)]
struct LineRecord {
    /// The range of the line in the shared text. An end of `u32::MAX` is the end of the text.
    start: u32,
    end: u32,
    /// One more than the position of the line's index. `None` if the line is short or not an object.
    index: Option<NonZeroU32>,
    /// The position of the line in its file: its number, and the low and the high bits of its offset.
    line_no: u32,
    offset_low: u32,
    offset_high: u16,
    kind: Kind,
    flags: LineFlags,
}

/// Properties of a line, one bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LineFlags(u8);

impl LineFlags {
    /// A newline follows the line.
    const NEWLINE: u8 = 1;
    /// The entry shares its line with other entries.
    const SHARES_LINE: u8 = 2;
    /// Another entry precedes this one on its line.
    const FOLLOWS_ON_LINE: u8 = 4;
    /// A key may contain escapes or be followed by white space.
    const UNUSUAL_KEYS: u8 = 8;
    /// The bytes of the line are not UTF-8.
    const INVALID: u8 = 16;

    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// Lines of fewer bytes have no index: to search them takes no longer.
const MIN_INDEXED_LENGTH: usize = 64;

/// The position of a line in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line number, counted from 1.
    pub line_no: u64,
    /// The offset in bytes from the start of the file.
    pub byte_offset: u64,
}

impl Position {
    /// The start of a file.
    pub const START: Self = Self { line_no: 1, byte_offset: 0 };
}

/// The separator that follows the bytes of an entry in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A newline.
    Newline,
    /// Nothing: the file ends here, or another object follows on the same line.
    None,
}

/// The length from which a line is reported as huge; ten times the longest line of real sessions.
const HUGE_LINE_LENGTH: usize = 20 << 20;

/// Parses a line into entries: one, or several if the line contains concatenated objects.
///
/// The bytes and endings of the entries, concatenated, are exactly the line.
pub fn parse_line(line: &LogLine<'_>, mut sink: impl FnMut(Entry, Vec<Finding>)) {
    let (entry, findings) = Entry::parse_at(line.bytes, line.ending, line.at);
    let pieces = if entry.kind() == Kind::Bad { split_concatenated(line.bytes) } else { Vec::new() };
    if pieces.len() < 2 {
        return sink(entry, findings);
    }
    let text = entry.source.text.clone();
    let mut batch = LineBatch::default();
    batch.add_pieces(&text, 0, &pieces, line.ending, line.at);
    batch.finish(&text, Vec::new(), &mut sink);
}

/// Lines that are parsed together. Their entries share one text and one index.
#[derive(Default)]
pub(crate) struct LineBatch {
    records: Vec<LineRecord>,
    fields: Vec<FieldOffsets>,
    /// The findings about a line, with the position of its record.
    findings: Vec<(usize, Vec<Finding>)>,
}

impl LineBatch {
    /// The number of lines in a batch. Limits the memory that parsing needs besides the entries.
    const MAX_LINES: usize = 512;

    /// Returns whether the batch should be finished before another line is added.
    pub(crate) fn is_full(&self) -> bool {
        self.records.len() >= Self::MAX_LINES
    }

    /// Parses a line as [`parse_line`] does. It is at offset `start` of `text`, which is the text of the
    /// batch so far. `is_valid` is false if the line replaces bytes that are not UTF-8.
    pub(crate) fn add_line(&mut self, text: &str, start: usize, line: &LogLine<'_>, is_valid: bool) {
        let n_fields = self.fields.len();
        let range = start..start + line.bytes.len();
        // A replaced line has another length than its bytes, and is the last one of the text.
        let range = if is_valid { range } else { start..text.len() };
        let mut findings = Vec::new();
        if !is_valid {
            findings.push(not_utf8_finding(line.at));
        }
        let mut record =
            LineRecord::parse(text, range.clone(), line.ending, line.at, &mut self.fields, &mut findings);
        if record.kind == Kind::Bad && is_valid {
            let pieces = split_concatenated(&text.as_bytes()[range]);
            if pieces.len() > 1 {
                self.fields.truncate(n_fields);
                return self.add_pieces(text, start, &pieces, line.ending, line.at);
            }
        }
        record.flags.0 |= if is_valid { 0 } else { LineFlags::INVALID };
        self.add(record, findings);
    }

    /// Parses the entries of one line, which begins at offset `start` of `text`.
    fn add_pieces(
        &mut self,
        text: &str,
        start: usize,
        pieces: &[Range<usize>],
        ending: Ending,
        at: Position,
    ) {
        for (i, piece) in pieces.iter().enumerate() {
            let ending = if i + 1 == pieces.len() { ending } else { Ending::None };
            let at = Position { byte_offset: at.byte_offset + piece.start as u64, ..at };
            let mut findings = Vec::new();
            let range = start + piece.start..start + piece.end;
            let mut record = LineRecord::parse(text, range, ending, at, &mut self.fields, &mut findings);
            record.flags.0 |= LineFlags::SHARES_LINE;
            if i == 0 {
                let message =
                    format!("{} values on one line; Claude Code reads only the first", pieces.len());
                findings.insert(0, Finding::new(Code::BrokenLine, at, message));
            } else {
                record.flags.0 |= LineFlags::FOLLOWS_ON_LINE;
                // One finding per line is enough.
                findings.retain(|finding| finding.code != Code::BrokenLine);
            }
            self.add(record, findings);
        }
    }

    fn add(&mut self, record: LineRecord, findings: Vec<Finding>) {
        if !findings.is_empty() {
            self.findings.push((self.records.len(), findings));
        }
        self.records.push(record);
    }

    /// Makes the entries of all lines, and empties the batch. `text` is the text of the lines; `invalid` are
    /// the original bytes of those that are not UTF-8, with their offsets in `text`.
    pub(crate) fn finish(
        &mut self,
        text: &Arc<String>,
        invalid: Vec<(u32, Box<[u8]>)>,
        sink: &mut impl FnMut(Entry, Vec<Finding>),
    ) {
        if self.records.is_empty() {
            return;
        }
        // Copied, since the vector keeps its capacity for the next batch, unless it is large.
        let fields = match self.fields.len() > Self::MAX_LINES * 64 {
            true => std::mem::take(&mut self.fields).into_boxed_slice(),
            false => self.fields.as_slice().into(),
        };
        self.fields.clear();
        let source = Arc::new(IndexedText { text: text.clone(), fields, invalid });
        let mut findings = self.findings.drain(..).peekable();
        for (position, record) in self.records.drain(..).enumerate() {
            let found = findings.next_if(|(of, _)| *of == position).map(|(_, found)| found);
            sink(Entry { source: source.clone(), record }, found.unwrap_or_default());
        }
    }
}

fn not_utf8_finding(at: Position) -> Finding {
    Finding::new(Code::OddBytes, at, "the line is not UTF-8")
}

/// Splits `{…}{…}` into its objects. Trailing bytes that are not an object form a last piece.
///
/// Returns an empty list if the line does not begin with an object, unless a complete record follows a torn
/// line.
fn split_concatenated(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut pieces = Vec::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return pieces };
    // Offsets in longer lines do not fit an entry.
    if u32::try_from(text.len()).is_err() {
        return pieces;
    }
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let mut walker = JsonValidator::new(rest);
        if walker.object(|walker, _| walker.value()).is_err() {
            if let Some(record) = record_at_end(rest) {
                pieces.extend([start..start + record, start + record..text.len()]);
            } else if !pieces.is_empty() {
                pieces.push(start..text.len());
            }
            return pieces;
        }
        let end = start + json::skip_white(rest.as_bytes(), walker.pos());
        pieces.push(start..end);
        if end == text.len() {
            return pieces;
        }
        start = end;
    }
}

/// Returns the offset of a complete record, such as a title, at the end of a torn line.
///
/// A program that appends a record may not have terminated an incomplete last line first.
fn record_at_end(text: &str) -> Option<usize> {
    const START: &str = "{\"type\":";
    let start = text.rfind(START).filter(|start| *start > 0)?;
    let mut walker = JsonValidator::new(&text[start..]);
    walker.object(|walker, _| walker.value()).ok()?;
    let is_end = json::skip_white(&text.as_bytes()[start..], walker.pos()) == text.len() - start;
    let (entry, _) = Entry::parse(&text.as_bytes()[start..]);
    let in_conversation = matches!(
        entry.kind(),
        Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment
    );
    let is_record = entry.kind().name().is_some() && !in_conversation && entry.session_id().is_some();
    (is_end && is_record).then_some(start)
}

impl Entry {
    /// Parses one line, given without its newline. Never fails: any bytes make an entry.
    pub fn parse(bytes: &[u8]) -> (Self, Vec<Finding>) {
        Self::parse_at(bytes, Ending::Newline, Position::START)
    }

    /// Parses one line as [`Entry::parse`] does, without a copy of its bytes.
    pub fn parse_owned(bytes: Vec<u8>) -> (Self, Vec<Finding>) {
        match String::from_utf8(bytes) {
            Ok(text) => {
                let whole = 0..text.len();
                Self::parse_alone(Arc::new(text), whole, Ending::Newline, Position::START)
            }
            Err(error) => Self::parse(error.as_bytes()),
        }
    }

    /// Parses the line at position `at`, given without its newline.
    pub fn parse_at(bytes: &[u8], ending: Ending, at: Position) -> (Self, Vec<Finding>) {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Self::parse_alone(Arc::new(text.to_owned()), 0..text.len(), ending, at),
            Err(_) => {
                let text = Arc::new(String::from_utf8_lossy(bytes).into_owned());
                let whole = 0..text.len();
                let (mut entry, mut findings) = Self::parse_alone(text, whole, ending, at);
                findings.insert(0, not_utf8_finding(at));
                if let Some(source) = Arc::get_mut(&mut entry.source) {
                    source.invalid.push((0, bytes.into()));
                }
                entry.record.flags.0 |= LineFlags::INVALID;
                (entry, findings)
            }
        }
    }

    /// Parses the line at `range` of `text`, with an index of its own.
    fn parse_alone(
        text: Arc<String>,
        range: Range<usize>,
        ending: Ending,
        at: Position,
    ) -> (Self, Vec<Finding>) {
        let (mut fields, mut findings) = (Vec::new(), Vec::new());
        let record = LineRecord::parse(&text, range, ending, at, &mut fields, &mut findings);
        let source = Arc::new(IndexedText { text, fields: fields.into(), invalid: Vec::new() });
        (Self { source, record }, findings)
    }

    /// Copies the texts of entries into one that they share, so that each needs less memory.
    ///
    /// For entries that were parsed one by one and are kept. Entries that are not UTF-8, or do not fit into
    /// the shared text, stay as they are.
    pub fn share_text<'e>(entries: impl Iterator<Item = &'e mut Self>) {
        let is_valid = |entry: &&'e mut Self| !entry.record.flags.has(LineFlags::INVALID);
        let mut entries: Vec<&mut Self> = entries.filter(is_valid).collect();
        let mut length = 0;
        entries.retain(|entry| {
            let end = length + entry.text().len();
            let fits = u32::try_from(end).is_ok_and(|end| end < u32::MAX);
            length = if fits { end } else { length };
            fits
        });
        let n_fields = entries.iter().filter_map(|entry| entry.index()).map(LineIndex::length).sum();
        let (mut text, mut fields) = (String::with_capacity(length), Vec::with_capacity(n_fields));
        let records: Vec<LineRecord> = entries
            .iter()
            .map(|entry| {
                let mut record = entry.record;
                if let Some(index) = entry.index() {
                    record.index = u32::try_from(fields.len() + 1).ok().and_then(NonZeroU32::new);
                    index.append_to(&mut fields);
                }
                record.start = text.len() as u32;
                text.push_str(entry.text());
                record.end = text.len() as u32;
                record
            })
            .collect();
        let source =
            Arc::new(IndexedText { text: Arc::new(text), fields: fields.into(), invalid: Vec::new() });
        for (entry, record) in entries.into_iter().zip(records) {
            *entry = Self { source: source.clone(), record };
        }
    }

    /// Parses an object inside the line as a separate entry with the position of the line.
    ///
    /// The new entry shares the text of the line, unless the object is of another line.
    pub fn parse_nested(&self, object: Json<'_>) -> (Self, Vec<Finding>) {
        let (text, raw) = (self.source.text.as_str(), object.raw());
        let start = (raw.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
        let range = start.map(|start| start..start + raw.len());
        match range.filter(|range| range.end <= text.len() && u32::try_from(range.end).is_ok()) {
            Some(range) => Self::parse_alone(self.source.text.clone(), range, self.ending(), self.at()),
            None => Self::parse_at(raw.as_bytes(), self.ending(), self.at()),
        }
    }

    /// Parses the line again, with its findings. The new entry shares the text of this one if it is UTF-8.
    pub fn parse_again(&self, ending: Ending) -> (Self, Vec<Finding>) {
        if self.record.flags.has(LineFlags::INVALID) {
            return Self::parse_at(self.as_bytes(), ending, self.at());
        }
        let range = self.record.start as usize..self.record.end as usize;
        Self::parse_alone(self.source.text.clone(), range, ending, self.at())
    }

    /// Returns the bytes of the line as written, without the newline.
    pub fn as_bytes(&self) -> &[u8] {
        if self.record.flags.has(LineFlags::INVALID) {
            let invalid = &self.source.invalid;
            if let Ok(found) = invalid.binary_search_by_key(&self.record.start, |(start, _)| *start) {
                return &invalid[found].1;
            }
        }
        self.text().as_bytes()
    }

    /// Returns the line as text, with U+FFFD for invalid UTF-8.
    pub fn text(&self) -> &str {
        self.record.text(&self.source.text)
    }

    /// Returns a shared text that contains the line's [`text`](Self::text), and the range of the line in it.
    pub fn shared_text(&self) -> (Arc<String>, Range<usize>) {
        let start = self.record.start as usize;
        (self.source.text.clone(), start..start + self.text().len())
    }

    /// Returns the separator that follows the bytes in the file.
    pub fn ending(&self) -> Ending {
        if self.record.flags.has(LineFlags::NEWLINE) { Ending::Newline } else { Ending::None }
    }

    /// Returns the position of the line in its file.
    pub fn at(&self) -> Position {
        let LineRecord { line_no, offset_low, offset_high, .. } = self.record;
        let byte_offset = u64::from(offset_high) << 32 | u64::from(offset_low);
        Position { line_no: u64::from(line_no), byte_offset }
    }

    /// Returns the kind of the line, from its `type`.
    pub fn kind(&self) -> Kind {
        self.record.kind
    }

    /// Returns whether this object shares its line with another object or with other bytes.
    pub fn shares_line(&self) -> bool {
        self.record.flags.has(LineFlags::SHARES_LINE)
    }

    /// Returns whether other bytes precede this object on its line. Claude Code does not read such objects.
    pub fn follows_on_line(&self) -> bool {
        self.record.flags.has(LineFlags::FOLLOWS_ON_LINE)
    }

    /// Returns the `type` as written.
    pub fn type_name(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("type")?.as_name()
    }

    /// Returns the index of the line, if it has one.
    fn index(&self) -> Option<LineIndex<'_>> {
        let position = self.record.index?.get() as usize - 1;
        LineIndex::at(&self.source.fields, position, self.record.flags.has(LineFlags::UNUSUAL_KEYS))
    }

    /// Returns the indexed members of the line, if it has an index.
    fn fields(&self) -> Option<IndexedFields<'_>> {
        Some(self.index()?.top(self.line_text()))
    }

    fn line_text(&self) -> LineText<'_> {
        let LineRecord { start, end, .. } = self.record;
        let text = &**self.source.text;
        let end = if end == u32::MAX { text.len() } else { end as usize };
        LineText { text, start: start as usize, length: end - start as usize }
    }

    /// Returns the text of the object, or `None` if the line is not one.
    fn json(&self) -> Option<Json<'_>> {
        let text = self.text();
        let first = match self.kind() {
            Kind::Bad | Kind::Blank => return None,
            _ => text.find('{')?,
        };
        let end = text.rfind('}')? + 1;
        text.get(first..end).map(Json::from_valid)
    }

    /// Returns the whole object, or `None` if the line is not one.
    pub fn object(&self) -> Option<Object<'_>> {
        match self.fields() {
            Some(fields) => Some(Object::of_line(fields)),
            None => self.json().map(Object::new),
        }
    }

    /// Returns the members of the object in order; none if the line is not an object.
    pub fn members(&self) -> impl Iterator<Item = (json::JsonKey<'_>, Json<'_>)> {
        let indexed = self.fields();
        let scanned = if indexed.is_none() { self.json() } else { None };
        let scanned = scanned.into_iter().flat_map(Json::members);
        indexed.into_iter().flat_map(IndexedFields::iter).chain(scanned)
    }

    /// Returns the value of a top-level key; the last one if the key occurs twice.
    pub fn get(&self, key: &str) -> Option<Json<'_>> {
        match self.fields() {
            Some(fields) => fields.get(key),
            None => self.json()?.get(key),
        }
    }

    /// Reads the line through a lens: `entry.lens::<CompactBoundary>()`.
    pub fn lens<'a, L: Lens<'a>>(&'a self) -> Option<L> {
        self.object().map(L::over)
    }

    /// Returns the lens over the fields that all conversation lines share.
    pub fn envelope(&self) -> Option<Envelope<'_>> {
        self.lens()
    }

    /// Returns the `uuid` of the line.
    pub fn uuid(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("uuid")?.as_name()
    }

    /// Returns the `parentUuid` as written: the id of the line that this one continues.
    pub fn parent_uuid(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("parentUuid")?.as_name()
    }

    /// Returns the `sessionId` of the line.
    pub fn session_id(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("sessionId")?.as_name()
    }

    /// Returns the working directory in which the line was written.
    pub fn cwd(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get(key::CWD)?.as_name()
    }

    /// Returns the git branch on which the line was written.
    pub fn git_branch(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get(key::GIT_BRANCH)?.as_name()
    }

    /// Returns the version of Claude Code that wrote the line.
    pub fn version(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get(key::VERSION)?.as_name()
    }

    /// Returns whether the line belongs to a sub-agent.
    pub fn is_sidechain(&self) -> bool {
        self.flag(key::IS_SIDECHAIN)
    }

    /// Returns whether Claude Code wrote the line for the model, and does not show it as a prompt or a reply.
    pub fn is_meta(&self) -> bool {
        self.flag(key::IS_META)
    }

    /// Returns whether the line is an error message of the API in place of a reply.
    pub fn is_api_error(&self) -> bool {
        self.flag(key::IS_API_ERROR_MESSAGE)
    }

    /// Returns whether the line is the summary of a compacted conversation.
    pub fn is_compact_summary(&self) -> bool {
        self.flag(key::IS_COMPACT_SUMMARY)
    }

    /// Returns whether the line is shown but not sent to the model.
    pub fn is_display_only(&self) -> bool {
        self.flag(key::IS_DISPLAY_ONLY)
    }

    /// Returns the timestamp of the line, or else that of its message.
    pub fn timestamp(&self) -> Option<Millis> {
        let own = self.get(key::TIMESTAMP);
        let time = own.or_else(|| self.get(key::MESSAGE)?.get(key::TIMESTAMP));
        timestamp::parse_timestamp(&time?.as_str()?)
    }

    /// Returns whether a top-level key is `true`.
    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Json::as_bool).unwrap_or(false)
    }

    /// Returns the message of a `user` or `assistant` line.
    ///
    /// Other writers put the content next to the `type`. Then the line itself is the message.
    pub fn message(&self) -> Option<Message<'_>> {
        let Some(json) = self.get(key::MESSAGE).filter(|json| json.is_object()) else {
            let is_message = matches!(self.kind(), Kind::User | Kind::Assistant);
            return self
                .object()
                .filter(|line| is_message && line.get(key::CONTENT).is_some())
                .map(Message::over);
        };
        Some(Message::over(match self.index().and_then(|index| index.message(self.line_text())) {
            Some((fields, blocks)) => Object::indexed(json, fields).with_blocks(blocks),
            None => Object::new(json),
        }))
    }

    /// Returns the structured result of a tool (`toolUseResult`), which Claude Code keeps for display.
    pub fn tool_use_result(&self) -> Option<ToolUseResult<'_>> {
        self.get("toolUseResult").map(ToolUseResult::new)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Entry {}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({}:{:?} {})", self.record.line_no, self.kind(), self.text())
    }
}

impl LineRecord {
    /// Creates the record of the line at `range` of its text.
    fn new(range: Range<usize>, ending: Ending, at: Position) -> Self {
        Self {
            kind: Kind::Bad,
            // Texts with several lines are shorter than 4 GiB.
            start: range.start as u32,
            end: u32::try_from(range.end).unwrap_or(u32::MAX),
            index: None,
            // A log with as many lines would not fit into memory.
            line_no: u32::try_from(at.line_no).unwrap_or(u32::MAX),
            offset_low: at.byte_offset as u32,
            offset_high: (at.byte_offset >> 32) as u16,
            flags: LineFlags(if ending == Ending::Newline { LineFlags::NEWLINE } else { 0 }),
        }
    }

    /// Parses the line at `range` of `text`. Appends its index to `fields`, and anything unusual about its
    /// text to `findings`.
    fn parse(
        text: &str,
        range: Range<usize>,
        ending: Ending,
        at: Position,
        fields: &mut Vec<FieldOffsets>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut record = Self::new(range.clone(), ending, at);
        record.analyze(&text[range], at, fields, findings);
        record
    }

    /// Indexes the object, sets the kind, and reports anything unusual about the text.
    fn analyze(
        &mut self,
        text: &str,
        at: Position,
        fields: &mut Vec<FieldOffsets>,
        findings: &mut Vec<Finding>,
    ) {
        if text.len() >= HUGE_LINE_LENGTH {
            let message = format!("the line is {} MB long", text.len() >> 20);
            findings.push(Finding::new(Code::HugeLine, at, message));
        }
        if u32::try_from(text.len()).is_err() {
            findings.push(Finding::new(Code::BrokenLine, at, "the line is longer than 4 GiB"));
            return;
        }
        let body = text.trim_start_matches('\u{feff}');
        let start = text.len() - body.len();
        if start > 0 {
            findings.push(Finding::new(Code::OddBytes, at, "the line begins with a byte order mark"));
        }
        if text.ends_with('\r') {
            findings.push(Finding::new(Code::OddBytes, at, "the line ends with a carriage return").as_note());
        }
        let white = json::skip_white(body.as_bytes(), 0);
        if white == body.len() {
            self.kind = Kind::Blank;
            return;
        }
        let position = fields.len();
        let seen = match LineIndex::build(text, start + white, fields) {
            Ok(seen) => seen,
            Err(message) => return findings.push(broken_line_finding(body, at, message)),
        };
        if let Some(index) = LineIndex::at(fields, position, seen.has_unusual_keys) {
            let line = LineText::whole(text);
            let name = index.top(line).get("type").and_then(Json::as_str);
            self.kind = match name {
                Some(name) => Kind::named(&name),
                None => kind_of_role(index.top(line).get(key::MESSAGE)),
            };
            if seen.max_depth >= DEPTH_LIMIT {
                let message = format!("values are nested {} levels deep", seen.max_depth);
                findings.push(Finding::new(Code::DeepNesting, at, message));
            }
            if let Some(key) = index.duplicate_key(line) {
                findings.push(Finding::new(Code::DuplicateKey, at, format!("duplicate key `{key}`")));
            }
        }
        if seen.may_have_surrogates && json::has_lone_surrogate(text) {
            let message = "unpaired surrogate, which is not valid text";
            findings.push(Finding::new(Code::LoneSurrogate, at, message));
        }
        if text.len() < MIN_INDEXED_LENGTH {
            fields.truncate(position);
            return;
        }
        self.index = u32::try_from(position + 1).ok().and_then(NonZeroU32::new);
        self.flags.0 |= if seen.has_unusual_keys { LineFlags::UNUSUAL_KEYS } else { 0 };
    }

    fn text(self, source: &str) -> &str {
        match self.end {
            u32::MAX => &source[self.start as usize..],
            end => &source[self.start as usize..end as usize],
        }
    }
}

/// Returns the kind of a line without a type: that of its message's role, as other writers log replies.
fn kind_of_role(message: Option<Json<'_>>) -> Kind {
    let role =
        message.filter(|message| message.is_object()).and_then(|message| message.get(key::ROLE)?.as_str());
    match role.as_deref() {
        Some("user") => Kind::User,
        Some("assistant") => Kind::Assistant,
        _ => Kind::Untyped,
    }
}

/// Builds the finding for a line that is not an object, with the most specific message available.
fn broken_line_finding(body: &str, at: Position, message: String) -> Finding {
    let line = body.trim();
    if line.starts_with("//") {
        return Finding::new(Code::BrokenLine, at, "expected a JSON object, found a comment").as_note();
    }
    let message = if line.contains('\0') {
        "expected a JSON object, found NUL bytes".into()
    } else if line.starts_with('{') && message.starts_with("EOF") {
        "the line is truncated: it ends inside an object".into()
    } else if message.starts_with("expected a JSON object") {
        message
    } else {
        format!("the line is not JSON: {message}")
    };
    Finding::new(Code::BrokenLine, at, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        // A log may consist of very short lines.
        assert!(size_of::<Entry>() <= 32, "{}", size_of::<Entry>());
    }

    #[test]
    fn a_short_line_is_read_without_an_index() {
        let text = r#"{"type":"user","a":1,"message":{"content":[{"a":2}]},"a":3}"#;
        let (entry, _) = Entry::parse(text.as_bytes());
        assert!(text.len() < MIN_INDEXED_LENGTH && entry.source.fields.is_empty());
        assert_eq!(entry.get("a").map(Json::raw), Some("3"));
        assert_eq!(entry.members().map(|(key, _)| key.raw().to_owned()).collect::<String>(), "typeamessagea");
        let block = entry.message().and_then(|message| message.blocks().next()).unwrap();
        assert_eq!(block.object().get("a").map(Json::raw), Some("2"));
        // The same line with an index.
        let long = format!("{text}{}", " ".repeat(MIN_INDEXED_LENGTH));
        let (indexed, _) = Entry::parse(long.as_bytes());
        assert!(!indexed.source.fields.is_empty());
        assert_eq!(indexed.object().unwrap().json(), entry.object().unwrap().json());
    }

    #[test]
    fn a_line_with_very_many_blocks_is_a_message() {
        for (block, n_objects) in [("0", 0), ("{}", 100_000), (r#"{"a":1}"#, 100_000)] {
            let blocks = [block].repeat(100_000).join(",");
            let line = format!(r#"{{"type":"user","message":{{"content":[{blocks}]}}}}"#);
            let (entry, findings) = Entry::parse(line.as_bytes());
            assert_eq!((entry.kind(), findings), (Kind::User, Vec::new()));
            assert_eq!(entry.message().unwrap().blocks().count(), n_objects);
        }
    }

    #[test]
    fn an_owned_line_is_not_copied() {
        let bytes = b"{\"type\":\"user\"}".to_vec();
        let start = bytes.as_ptr();
        let (entry, _) = Entry::parse_owned(bytes);
        assert!(entry.kind() == Kind::User && entry.text().as_ptr() == start);
        assert_eq!(Entry::parse_owned(vec![0xff]).0.as_bytes(), [0xff]);
    }

    #[test]
    fn entries_that_share_a_text_are_the_same() {
        let long = format!(
            r#"{{"type":"user","uuid":"u1","message":{{"content":[{{"text":"{0}"}}]}}}}"#,
            "é".repeat(80)
        );
        let lines = [&b"{}"[..], long.as_bytes(), b"\xff", b"torn {", long.as_bytes(), b""];
        let parse = |(idx, line): (usize, &&[u8])| {
            let at = Position { line_no: idx as u64 + 1, byte_offset: idx as u64 * 100 };
            Entry::parse_at(line, if idx % 2 == 0 { Ending::Newline } else { Ending::None }, at).0
        };
        let before: Vec<Entry> = lines.iter().enumerate().map(parse).collect();
        let mut after = before.clone();
        Entry::share_text(after.iter_mut());
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((before, before.at(), before.ending()), (after, after.at(), after.ending()));
            assert_eq!((before.kind(), before.uuid()), (after.kind(), after.uuid()));
            let text = |entry: &Entry| {
                let blocks = entry.message().map(|message| message.blocks().collect::<Vec<_>>());
                blocks.and_then(|blocks| Some(blocks.first()?.text()?.into_owned()))
            };
            assert_eq!(text(before), text(after));
        }
        assert_eq!(text_address(&after[1]) + after[1].text().len() + "torn {".len(), text_address(&after[4]));
        assert_eq!(after[2].as_bytes(), b"\xff");
    }

    fn text_address(entry: &Entry) -> usize {
        entry.text().as_ptr().addr()
    }

    #[test]
    fn the_position_of_a_line_is_exact() {
        let at = Position { line_no: 7, byte_offset: (1 << 40) + 5 };
        assert_eq!(Entry::parse_at(b"{}", Ending::None, at).0.at(), at);
    }
}
