//! One line of a log: its exact bytes, its position and its parsed form.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::finding::{Code, Finding};
use crate::index::{IndexedFields, LineIndex, UnreadableLine};
use crate::json::{self, Json, JsonValidator};
use crate::key;
use crate::kind::Kind;
use crate::lens::{Envelope, Lens, Message, Object, ToolUseResult};
use crate::limits;
use crate::lines::LogLine;
use crate::timestamp::{self, Millis};

/// One line of a session log, byte for byte.
///
/// Every accessor is a lens that reads the stored bytes on demand. It returns `None` when the line has no
/// such field, or when the field has an unexpected type. A line that is not JSON, or that [exceeds a
/// limit](Entry::is_over_limit), is also an `Entry`: it has bytes and a position, and all its accessors
/// return `None`.
///
/// An entry never spans lines. A line with several objects is one entry per object.
///
/// Two entries are equal when their bytes are equal.
#[derive(Clone)]
pub struct Entry {
    /// The lines of a chunk, which share it. Invalid UTF-8 is replaced by U+FFFD.
    source: Arc<String>,
    /// The range of the line in `source`.
    range: Range<usize>,
    /// The bytes of the line, if they are not UTF-8.
    invalid: Option<Arc<[u8]>>,
    /// `None` if the line is not an object.
    index: Option<Arc<LineIndex>>,
    kind: Kind,
    at: Position,
    ending: Ending,
    is_over_limit: bool,
    shares_line: bool,
    follows_on_line: bool,
}

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

/// Parses a line into entries: one, or several if the line contains concatenated objects.
///
/// The bytes and endings of the entries, concatenated, are exactly the line.
pub fn parse_line(line: &LogLine<'_>, mut sink: impl FnMut(Entry, Vec<Finding>)) {
    match simdutf8::basic::from_utf8(line.bytes) {
        Ok(text) => parse_shared(&Arc::new(text.to_owned()), 0, line, sink),
        Err(_) => {
            let (entry, findings) = Entry::parse_at(line.bytes, line.ending, line.at);
            sink(entry, findings);
        }
    }
}

/// Parses a line as [`parse_line`] does. It is at offset `start` of `text`, which its entries share.
pub(crate) fn parse_shared(
    text: &Arc<String>,
    start: usize,
    line: &LogLine<'_>,
    mut sink: impl FnMut(Entry, Vec<Finding>),
) {
    let range = start..start + line.bytes.len();
    let (mut entry, findings) = Entry::parse_part(text.clone(), range, line.ending, line.at);
    if entry.kind != Kind::Bad || entry.is_over_limit {
        return sink(entry, findings);
    }
    let pieces = split_concatenated(entry.text());
    match pieces {
        Some(pieces) if pieces.len() < 2 => sink(entry, findings),
        Some(pieces) => parse_pieces(text, start, &pieces, line, sink),
        None => {
            entry.is_over_limit = true;
            sink(entry, Vec::new());
        }
    }
}

/// Parses the entries of one line, which begins at offset `start` of `text`.
fn parse_pieces(
    text: &Arc<String>,
    start: usize,
    pieces: &[Range<usize>],
    line: &LogLine<'_>,
    mut sink: impl FnMut(Entry, Vec<Finding>),
) {
    for (i, piece) in pieces.iter().enumerate() {
        let ending = if i + 1 == pieces.len() { line.ending } else { Ending::None };
        let at = Position { byte_offset: line.at.byte_offset + piece.start as u64, ..line.at };
        let range = start + piece.start..start + piece.end;
        let (mut entry, mut findings) = Entry::parse_part(text.clone(), range, ending, at);
        entry.shares_line = true;
        if i == 0 {
            let message = format!("{} values on one line; Claude Code reads only the first", pieces.len());
            findings.insert(0, Finding::new(Code::BrokenLine, at, message));
        } else {
            entry.follows_on_line = true;
            // One finding per line is enough.
            findings.retain(|finding| finding.code != Code::BrokenLine);
        }
        sink(entry, findings);
    }
}

/// Splits `{…}{…}` into its objects. Trailing bytes that are not an object form a last piece.
///
/// Returns an empty list if the line does not begin with an object, unless a complete record follows a torn
/// line. Returns `None` if the objects together exceed the limits of a line.
fn split_concatenated(text: &str) -> Option<Vec<Range<usize>>> {
    let mut pieces = Vec::new();
    let mut n_values = 0;
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
            return Some(pieces);
        }
        n_values += walker.n_values;
        if n_values > limits::MAX_VALUES {
            return None;
        }
        let end = start + json::skip_white(rest.as_bytes(), walker.pos());
        pieces.push(start..end);
        if end == text.len() {
            return Some(pieces);
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
                Self::parse_part(Arc::new(text), whole, Ending::Newline, Position::START)
            }
            Err(error) => Self::parse(error.as_bytes()),
        }
    }

    /// Parses the line at position `at`, given without its newline.
    pub fn parse_at(bytes: &[u8], ending: Ending, at: Position) -> (Self, Vec<Finding>) {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Self::parse_part(Arc::new(text.to_owned()), 0..text.len(), ending, at),
            Err(_) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let whole = 0..text.len();
                let (mut entry, mut findings) = Self::parse_part(Arc::new(text), whole, ending, at);
                findings.insert(0, Finding::new(Code::OddBytes, at, "the line is not UTF-8"));
                entry.invalid = Some(bytes.into());
                (entry, findings)
            }
        }
    }

    /// Parses the line at `range` of `source`.
    fn parse_part(
        source: Arc<String>,
        range: Range<usize>,
        ending: Ending,
        at: Position,
    ) -> (Self, Vec<Finding>) {
        let mut entry = Self {
            source,
            range,
            invalid: None,
            index: None,
            kind: Kind::Bad,
            at,
            ending,
            is_over_limit: false,
            shares_line: false,
            follows_on_line: false,
        };
        let mut findings = Vec::new();
        entry.analyze(&mut findings);
        (entry, findings)
    }

    /// Indexes the object, sets the kind, and reports anything unusual about the text.
    fn analyze(&mut self, findings: &mut Vec<Finding>) {
        let (text, at) = (&self.source[self.range.clone()], self.at);
        if limits::is_too_long(text) {
            self.is_over_limit = true;
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
        let (index, seen) = match LineIndex::build(text, start + white) {
            Ok(built) => built,
            Err(UnreadableLine::OverLimit) => {
                self.is_over_limit = true;
                return;
            }
            Err(UnreadableLine::NotAnObject(message)) => {
                return findings.push(broken_line_finding(body, at, message));
            }
        };
        let members = index.line(text);
        self.kind = match members.get(key::TYPE).and_then(Json::as_str) {
            Some(name) => Kind::named(&name),
            None => kind_of_role(members.get(key::MESSAGE)),
        };
        if let Some(key) = index.duplicate_key(text) {
            findings.push(Finding::new(Code::DuplicateKey, at, format!("duplicate key `{key}`")));
        }
        if seen.may_have_surrogates && json::has_lone_surrogate(text) {
            let message = "unpaired surrogate, which is not valid text";
            findings.push(Finding::new(Code::LoneSurrogate, at, message));
        }
        self.index = Some(Arc::new(index));
    }

    /// Parses an object inside the line as a separate entry with the position of the line.
    ///
    /// The new entry shares the text of the line, unless the object is of another line.
    pub fn parse_nested(&self, object: Json<'_>) -> (Self, Vec<Finding>) {
        let raw = object.raw();
        let start = raw.as_ptr().addr().wrapping_sub(self.source.as_ptr().addr());
        match start.checked_add(raw.len()).filter(|&end| end <= self.source.len()) {
            Some(end) => Self::parse_part(self.source.clone(), start..end, self.ending, self.at),
            None => Self::parse_at(raw.as_bytes(), self.ending, self.at),
        }
    }

    /// Returns the bytes of the line as written, without the newline.
    pub fn as_bytes(&self) -> &[u8] {
        self.invalid.as_deref().unwrap_or(self.text().as_bytes())
    }

    /// Returns the line as text, with U+FFFD for invalid UTF-8.
    pub fn text(&self) -> &str {
        &self.source[self.range.clone()]
    }

    /// Returns a shared text that contains the line's [`text`](Self::text), and the range of the line in it.
    pub fn shared_text(&self) -> (Arc<String>, Range<usize>) {
        (self.source.clone(), self.range.clone())
    }

    /// Returns the separator that follows the bytes in the file.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Returns the position of the line in its file.
    pub fn at(&self) -> Position {
        self.at
    }

    /// Returns the kind of the line, from its `type`.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether the line is unreadable because it exceeds a limit: 256 MiB, 16,384 blocks in its
    /// message, 512 levels of nested values, or 1,000,000 values. The line may be valid.
    pub fn is_over_limit(&self) -> bool {
        self.is_over_limit
    }

    /// Returns whether this object shares its line with another object or with other bytes.
    pub fn shares_line(&self) -> bool {
        self.shares_line
    }

    /// Returns whether other bytes precede this object on its line. Claude Code does not read such objects.
    pub fn follows_on_line(&self) -> bool {
        self.follows_on_line
    }

    /// Returns the `type` as written.
    pub fn type_name(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("type")?.as_str()
    }

    /// Returns the members of the line, if it is an object.
    fn fields(&self) -> Option<IndexedFields<'_>> {
        Some(self.index.as_ref()?.line(self.text()))
    }

    /// Returns the whole object, or `None` if the line is not one.
    pub fn object(&self) -> Option<Object<'_>> {
        self.fields().map(Object::of_line)
    }

    /// Returns the members of the object in order; none if the line is not an object.
    pub fn members(&self) -> impl Iterator<Item = (json::JsonKey<'_>, Json<'_>)> {
        self.fields().into_iter().flat_map(IndexedFields::iter)
    }

    /// Returns the value of a top-level key; the last one if the key occurs twice.
    pub fn get(&self, key: &str) -> Option<Json<'_>> {
        self.fields()?.get(key)
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
        self.get("uuid")?.as_str()
    }

    /// Returns the `parentUuid` as written: the id of the line that this one continues.
    pub fn parent_uuid(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("parentUuid")?.as_str()
    }

    /// Returns the `sessionId` of the line.
    pub fn session_id(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("sessionId")?.as_str()
    }

    /// Returns the working directory in which the line was written.
    pub fn cwd(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get(key::CWD)?.as_str()
    }

    /// Returns the git branch on which the line was written.
    pub fn git_branch(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get(key::GIT_BRANCH)?.as_str()
    }

    /// Returns the version of Claude Code that wrote the line.
    pub fn version(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get(key::VERSION)?.as_str()
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
            let is_message = matches!(self.kind, Kind::User | Kind::Assistant);
            return self
                .object()
                .filter(|line| is_message && line.get(key::CONTENT).is_some())
                .map(Message::over);
        };
        Some(Message::over(match self.index.as_ref().and_then(|index| index.message(self.text())) {
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
        write!(f, "Entry({}:{:?} {})", self.at.line_no, self.kind, self.text())
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
    fn an_owned_line_is_not_copied() {
        let bytes = b"{\"type\":\"user\"}".to_vec();
        let start = bytes.as_ptr();
        let (entry, _) = Entry::parse_owned(bytes);
        assert!(entry.kind() == Kind::User && entry.text().as_ptr() == start);
        assert_eq!(Entry::parse_owned(vec![0xff]).0.as_bytes(), [0xff]);
    }

    #[test]
    fn the_position_of_a_line_is_exact() {
        let at = Position { line_no: 7, byte_offset: (1 << 40) + 5 };
        assert_eq!(Entry::parse_at(b"{}", Ending::None, at).0.at(), at);
    }
}
