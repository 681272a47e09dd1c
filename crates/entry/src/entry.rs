//! One line of a log: its exact bytes, its position and its parsed form.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::finding::{Code, Finding};
use crate::index::LineIndex;
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
/// Two entries are equal when their bytes are equal.
#[derive(Clone)]
pub struct Entry {
    raw: LineBytes,
    index: LineIndex,
    kind: Kind,
    ending: Ending,
    line_part: LinePart,
    /// The position of the line: its number and its offset.
    line_no: u32,
    byte_offset: u64,
}

/// The bytes of a line, and the text that the lenses read.
#[derive(Clone)]
enum LineBytes {
    Text(Box<str>),
    /// A range of a text that several entries share: its start and end offset.
    Shared(Arc<String>, (u32, u32)),
    /// Bytes that are not valid UTF-8. Boxed, because they are rare and every entry has the size of the
    /// largest variant.
    Invalid(Box<InvalidBytes>),
}

/// Bytes that are not valid UTF-8.
#[derive(Clone)]
struct InvalidBytes {
    bytes: Box<[u8]>,
    /// The same bytes decoded with U+FFFD for the invalid sequences.
    text: Box<str>,
}

impl LineBytes {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Invalid(invalid) => &invalid.text,
            Self::Shared(text, (start, end)) => &text[*start as usize..*end as usize],
        }
    }
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

/// Whether an entry shares its line with other entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePart {
    /// The entry is the only one on its line.
    Whole,
    /// The first of several entries on one line.
    First,
    /// A later entry of a line with several entries.
    Later,
}

/// The length from which a line is reported as huge; ten times the longest line of real sessions.
const HUGE_LINE_LENGTH: usize = 20 << 20;

/// Parses a line into entries: one, or several if the line contains concatenated objects.
///
/// The bytes and endings of the entries, concatenated, are exactly the line.
pub fn parse_line(line: &LogLine<'_>, mut sink: impl FnMut(Entry, Vec<Finding>)) {
    let (entry, findings) = Entry::parse_at(line.bytes, line.ending, line.at);
    let pieces = if entry.kind == Kind::Bad { split_concatenated(line.bytes) } else { Vec::new() };
    if pieces.len() < 2 {
        return sink(entry, findings);
    }
    let count = pieces.len();
    for (i, piece) in pieces.into_iter().enumerate() {
        let ending = if i + 1 == count { line.ending } else { Ending::None };
        let at = Position { byte_offset: line.at.byte_offset + piece.start as u64, ..line.at };
        let (mut entry, mut findings) = Entry::parse_at(&line.bytes[piece], ending, at);
        entry.line_part = if i == 0 { LinePart::First } else { LinePart::Later };
        if i == 0 {
            let message = format!("{count} values on one line; Claude Code reads only the first");
            findings.insert(0, Finding::new(Code::BrokenLine, at, message));
        } else {
            // One finding per line is enough.
            findings.retain(|finding| finding.code != Code::BrokenLine);
        }
        sink(entry, findings);
    }
}

/// Splits `{…}{…}` into its objects. Trailing bytes that are not an object form a last piece.
///
/// Returns an empty list if the line does not begin with an object, unless a complete record follows a torn
/// line.
fn split_concatenated(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut pieces = Vec::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return pieces };
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
    let in_conversation =
        matches!(entry.kind, Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment);
    let is_record = entry.kind.name().is_some() && !in_conversation && entry.session_id().is_some();
    (is_end && is_record).then_some(start)
}

impl Entry {
    /// Parses one line, given without its newline. Never fails: any bytes make an entry.
    pub fn parse(bytes: &[u8]) -> (Self, Vec<Finding>) {
        Self::parse_at(bytes, Ending::Newline, Position::START)
    }

    /// Parses the line at position `at`, given without its newline.
    pub fn parse_at(bytes: &[u8], ending: Ending, at: Position) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let raw = match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => LineBytes::Text(text.into()),
            Err(_) => {
                findings.push(Finding::new(Code::OddBytes, at, "the line is not UTF-8"));
                let text = String::from_utf8_lossy(bytes).into();
                LineBytes::Invalid(Box::new(InvalidBytes { bytes: bytes.into(), text }))
            }
        };
        let entry = Self::analyzed(raw, ending, at, &mut findings);
        (entry, findings)
    }

    /// Parses the line at `range` of a shared text, which is at position `at` of its file.
    pub(crate) fn parse_shared(
        text: &Arc<String>,
        range: (u32, u32),
        ending: Ending,
        at: Position,
    ) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let raw = LineBytes::Shared(text.clone(), range);
        let entry = Self::analyzed(raw, ending, at, &mut findings);
        (entry, findings)
    }

    fn analyzed(raw: LineBytes, ending: Ending, at: Position, findings: &mut Vec<Finding>) -> Self {
        let mut entry = Self {
            raw,
            index: LineIndex::default(),
            kind: Kind::Bad,
            ending,
            line_part: LinePart::Whole,
            // A log with as many lines would not fit into memory.
            line_no: u32::try_from(at.line_no).unwrap_or(u32::MAX),
            byte_offset: at.byte_offset,
        };
        entry.analyze(findings);
        entry
    }

    /// Parses an object inside the line as a separate entry with the position of the line.
    ///
    /// If the text of the line is shared, the new entry shares it too; otherwise the object is copied.
    pub fn parse_nested(&self, object: Json<'_>) -> (Self, Vec<Finding>) {
        let (text, raw) = (self.text(), object.raw());
        let start = (raw.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
        let range = start.map(|start| start..start + raw.len()).filter(|range| range.end <= text.len());
        match (&self.raw, range) {
            (LineBytes::Shared(shared, (from, _)), Some(range)) => {
                let range = (from + range.start as u32, from + range.end as u32);
                Self::parse_shared(shared, range, self.ending, self.at())
            }
            _ => Self::parse_at(raw.as_bytes(), self.ending, self.at()),
        }
    }

    /// Indexes the object, sets the kind, and reports anything unusual about the text.
    fn analyze(&mut self, findings: &mut Vec<Finding>) {
        let at = self.at();
        let text = self.raw.text();
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
        match LineIndex::of(text, start + white) {
            Ok((index, seen)) => {
                self.kind = kind_of(&index, text);
                if seen.max_depth >= DEPTH_LIMIT {
                    let message = format!("values are nested {} levels deep", seen.max_depth);
                    findings.push(Finding::new(Code::DeepNesting, at, message));
                }
                if let Some(key) = index.duplicate_key(text) {
                    findings.push(Finding::new(Code::DuplicateKey, at, format!("duplicate key `{key}`")));
                }
                if seen.may_have_surrogates && json::has_lone_surrogate(text) {
                    let message = "unpaired surrogate, which is not valid text";
                    findings.push(Finding::new(Code::LoneSurrogate, at, message));
                }
                self.index = index;
            }
            Err(message) => findings.push(broken_line_finding(body, at, message)),
        }
    }

    /// Returns the bytes of the line as written, without the newline.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.raw {
            LineBytes::Invalid(invalid) => &invalid.bytes,
            raw => raw.text().as_bytes(),
        }
    }

    /// Returns the line as text, with U+FFFD for invalid UTF-8.
    pub fn text(&self) -> &str {
        self.raw.text()
    }

    /// Returns a shared text that contains the line's [`text`](Self::text), and the range of the line in it.
    ///
    /// Copies the line only if it is not part of a shared text yet.
    pub fn shared_text(&self) -> (Arc<String>, Range<usize>) {
        match &self.raw {
            LineBytes::Shared(text, (start, end)) => (Arc::clone(text), *start as usize..*end as usize),
            raw => (Arc::new(raw.text().to_owned()), 0..raw.text().len()),
        }
    }

    /// Returns the separator that follows the bytes in the file.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Returns the position of the line in its file.
    pub fn at(&self) -> Position {
        Position { line_no: u64::from(self.line_no), byte_offset: self.byte_offset }
    }

    /// Returns the kind of the line, from its `type`.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether this object shares its line with another object or with other bytes.
    pub fn shares_line(&self) -> bool {
        self.line_part != LinePart::Whole
    }

    /// Returns whether other bytes precede this object on its line. Claude Code does not read such objects.
    pub fn follows_on_line(&self) -> bool {
        self.line_part == LinePart::Later
    }

    /// Returns the `type` as written.
    pub fn type_name(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("type")?.as_str()
    }

    /// Returns the whole object, or `None` if the line is not one.
    pub fn object(&self) -> Option<Object<'_>> {
        let text = self.text();
        let first = match self.kind {
            Kind::Bad | Kind::Blank => return None,
            _ => text.find('{')?,
        };
        let end = text.rfind('}')? + 1;
        Some(Object::indexed(Json::from_valid(text.get(first..end)?), self.index.top(text)))
    }

    /// Returns the members of the object in order; none if the line is not an object.
    pub fn members(&self) -> impl Iterator<Item = (json::JsonKey<'_>, Json<'_>)> {
        self.index.top(self.text()).iter()
    }

    /// Returns the value of a top-level key; the last one if the key occurs twice.
    pub fn get(&self, key: &str) -> Option<Json<'_>> {
        self.index.top(self.text()).get(key)
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

    /// Returns the timestamp of the line.
    pub fn timestamp(&self) -> Option<Millis> {
        timestamp::parse_timestamp(&self.get("timestamp")?.as_str()?)
    }

    /// Returns whether a top-level key is `true`.
    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Json::as_bool).unwrap_or(false)
    }

    /// Returns the message of a `user` or `assistant` line.
    pub fn message(&self) -> Option<Message<'_>> {
        let json = self.get("message").filter(|json| json.is_object())?;
        Some(Message::over(match self.index.message(self.text()) {
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
        write!(f, "Entry({}:{:?} {})", self.line_no, self.kind, self.text())
    }
}

/// Returns the kind for the `type` of the line.
fn kind_of(index: &LineIndex, text: &str) -> Kind {
    let name = index.top(text).get("type").and_then(Json::as_str);
    name.map_or(Kind::Untyped, |name| Kind::named(&name))
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
        assert!(size_of::<Entry>() <= 72, "{}", size_of::<Entry>());
    }
}
