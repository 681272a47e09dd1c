//! One line of a log, exactly as it was written, and where it stands.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::finding::{Code, Finding};
use crate::index::Index;
use crate::json::{self, DEPTH_LIMIT, Json, Walker};
use crate::kind::Kind;
use crate::lens::{Envelope, Lens, Message, Object, ToolUseResult};
use crate::lines::Line;
use crate::timestamp::{self, Millis};

/// One line of a session log, exactly as it was written.
///
/// The bytes are the truth; every accessor is a lens that reads them on demand and returns `None`
/// when the line has no such field, or has it in a shape we do not know. A line that is not JSON
/// at all is still an `Entry`: it has bytes and a position, and no lens finds anything in it.
///
/// Two entries are equal when their bytes are equal.
#[derive(Clone)]
pub struct Entry {
    raw: Raw,
    index: Index,
    kind: Kind,
    ending: Ending,
    glue: Glue,
    at: Position,
}

/// The bytes, and the text that the lenses read.
#[derive(Clone)]
enum Raw {
    Text(Box<str>),
    /// A stretch of lines, and where in it this one begins and ends.
    Shared(Arc<String>, (u32, u32)),
    /// Bytes that are no UTF-8, and the same with U+FFFD for what is none.
    Bytes(Box<[u8]>, Box<str>),
}

impl Raw {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Bytes(_, text) => text,
            Self::Shared(text, (start, end)) => &text[*start as usize..*end as usize],
        }
    }
}

/// Where a line stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Counted from 1, as people do.
    pub line_no: u64,
    /// Counted from the start of the file.
    pub byte_offset: u64,
}

impl Position {
    /// The start of a file.
    pub const START: Self = Self { line_no: 1, byte_offset: 0 };
}

/// What follows the bytes of an entry in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A newline.
    Newline,
    /// Nothing: the file ends here, or another object is glued to this one.
    None,
}

/// Whether an entry has its line for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Glue {
    /// It has.
    Alone,
    /// Something is glued behind it.
    First,
    /// It is glued behind something.
    Behind,
}

/// A line as long as this makes readers slow; ten times what real sessions hold.
const HUGE_LINE: usize = 20 << 20;

/// Turns a line into entries: one, or several where objects are glued together.
///
/// The entries' bytes and endings, one after the other, are the line's.
pub fn parse_line(line: &Line<'_>, mut sink: impl FnMut(Entry, Vec<Finding>)) {
    let (entry, findings) = Entry::parse_at(line.bytes, line.ending, line.at);
    let pieces = if entry.kind == Kind::Bad { glued_pieces(line.bytes) } else { Vec::new() };
    if pieces.len() < 2 {
        return sink(entry, findings);
    }
    let count = pieces.len();
    for (i, piece) in pieces.into_iter().enumerate() {
        let ending = if i + 1 == count { line.ending } else { Ending::None };
        let at = Position { byte_offset: line.at.byte_offset + piece.start as u64, ..line.at };
        let (mut entry, mut findings) = Entry::parse_at(&line.bytes[piece], ending, at);
        entry.glue = if i == 0 { Glue::First } else { Glue::Behind };
        if i == 0 {
            let message = format!("{count} things stand on one line; Claude Code reads only the first");
            findings.insert(0, Finding::new(Code::BrokenLine, at, message));
        } else {
            // One finding says it for the whole line.
            findings.retain(|finding| finding.code != Code::BrokenLine);
        }
        sink(entry, findings);
    }
}

/// Cuts `{…}{…}` into its objects; a rest that is none is a piece too. Nothing if it does not begin with an object,
/// unless a whole record follows a torn line.
fn glued_pieces(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut pieces = Vec::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return pieces };
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let mut walker = Walker::new(rest);
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

/// Where a record, such as a title, begins at the end of a torn line: a program that appends it may not have closed
/// the line before.
fn record_at_end(text: &str) -> Option<usize> {
    const START: &str = "{\"type\":";
    let start = text.rfind(START).filter(|start| *start > 0)?;
    let mut walker = Walker::new(&text[start..]);
    walker.object(|walker, _| walker.value()).ok()?;
    let is_end = json::skip_white(&text.as_bytes()[start..], walker.pos()) == text.len() - start;
    let (entry, _) = Entry::parse(&text.as_bytes()[start..]);
    let in_conversation =
        matches!(entry.kind, Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment);
    let is_record = entry.kind.name().is_some() && !in_conversation && entry.session_id().is_some();
    (is_end && is_record).then_some(start)
}

impl Entry {
    /// Parses one line, given without its newline. Total: any bytes make an entry.
    pub fn parse(bytes: &[u8]) -> (Self, Vec<Finding>) {
        Self::parse_at(bytes, Ending::Newline, Position::START)
    }

    /// Parses the line that stands at `at`.
    pub fn parse_at(bytes: &[u8], ending: Ending, at: Position) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let raw = match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Raw::Text(text.into()),
            Err(_) => {
                findings.push(Finding::new(Code::OddBytes, at, "the line is not UTF-8"));
                Raw::Bytes(bytes.into(), String::from_utf8_lossy(bytes).into())
            }
        };
        let mut entry = Self { raw, index: Index::default(), kind: Kind::Bad, ending, glue: Glue::Alone, at };
        entry.look(&mut findings);
        (entry, findings)
    }

    /// Parses the line that stands at `at` in its file and at `range` in a stretch of lines.
    pub(crate) fn share(
        text: &Arc<String>,
        range: (u32, u32),
        ending: Ending,
        at: Position,
    ) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let raw = Raw::Shared(text.clone(), range);
        let mut entry = Self { raw, index: Index::default(), kind: Kind::Bad, ending, glue: Glue::Alone, at };
        entry.look(&mut findings);
        (entry, findings)
    }

    /// An object inside the line as an entry of its own. It stands where the line stands, and shares its memory where that
    /// is shared already.
    pub fn inside(&self, object: Json<'_>) -> (Self, Vec<Finding>) {
        let (text, raw) = (self.text(), object.raw());
        let start = (raw.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
        let range = start.map(|start| start..start + raw.len()).filter(|range| range.end <= text.len());
        match (&self.raw, range) {
            (Raw::Shared(shared, (from, _)), Some(range)) => {
                let range = (from + range.start as u32, from + range.end as u32);
                Self::share(shared, range, self.ending, self.at)
            }
            _ => Self::parse_at(raw.as_bytes(), self.ending, self.at),
        }
    }

    /// Finds the members of the object and what is odd about the text.
    fn look(&mut self, findings: &mut Vec<Finding>) {
        let at = self.at;
        let text = self.raw.text();
        if text.len() >= HUGE_LINE {
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
        match Index::of(text, start + white) {
            Ok((index, seen)) => {
                self.kind = kind_of(&index, text);
                if seen.deepest >= DEPTH_LIMIT {
                    let message = format!("values are nested {} deep", seen.deepest);
                    findings.push(Finding::new(Code::DeepNesting, at, message));
                }
                if let Some(key) = index.doubled_key(text) {
                    findings.push(Finding::new(
                        Code::DuplicateKey,
                        at,
                        format!("the key `{key}` stands twice"),
                    ));
                }
                if seen.surrogates && json::has_lone_surrogate(text) {
                    let message = "half of a surrogate pair stands alone, which is no text";
                    findings.push(Finding::new(Code::LoneSurrogate, at, message));
                }
                self.index = index;
            }
            Err(message) => findings.push(broken(body, at, message)),
        }
    }

    /// The bytes as they stand in the file, without the newline.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.raw {
            Raw::Bytes(bytes, _) => bytes,
            raw => raw.text().as_bytes(),
        }
    }

    /// The line as text; what is no UTF-8 is U+FFFD.
    pub fn text(&self) -> &str {
        self.raw.text()
    }

    /// The line as [`text`](Self::text) to keep, and where it stands in that. It is copied only where it is not shared already.
    pub fn shared_text(&self) -> (Arc<String>, Range<usize>) {
        match &self.raw {
            Raw::Shared(text, (start, end)) => (Arc::clone(text), *start as usize..*end as usize),
            Raw::Text(text) | Raw::Bytes(_, text) => (Arc::new(text.to_string()), 0..text.len()),
        }
    }

    /// What follows the bytes in the file.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Where the line stands.
    pub fn at(&self) -> Position {
        self.at
    }

    /// What the line says it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether this object shares its line with something else, before or behind it.
    pub fn is_glued(&self) -> bool {
        self.glue != Glue::Alone
    }

    /// Whether something stands before this on its line. We read on; Claude Code does not.
    pub fn is_glued_behind(&self) -> bool {
        self.glue == Glue::Behind
    }

    /// The `type` as written.
    pub fn type_name(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("type")?.as_str()
    }

    /// The whole object.
    pub fn object(&self) -> Option<Object<'_>> {
        let text = self.text();
        let first = match self.kind {
            Kind::Bad | Kind::Blank => return None,
            _ => text.find('{')?,
        };
        let end = text.rfind('}')? + 1;
        Some(Object::indexed(Json::trusted(text.get(first..end)?), self.index.top(text)))
    }

    /// The members of the object, in order; none if the line is no object.
    pub fn members(&self) -> impl Iterator<Item = (json::Key<'_>, Json<'_>)> {
        self.index.top(self.text()).iter()
    }

    /// The value of a top-level key.
    pub fn get(&self, key: &str) -> Option<Json<'_>> {
        self.index.top(self.text()).get(key)
    }

    /// Looks at the line through a lens: `entry.lens::<CompactBoundary>()`.
    pub fn lens<'a, L: Lens<'a>>(&'a self) -> Option<L> {
        self.object().map(L::over)
    }

    /// The fields that conversation lines have in common.
    pub fn envelope(&self) -> Option<Envelope<'_>> {
        self.lens()
    }

    /// The line's own id.
    pub fn uuid(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("uuid")?.as_str()
    }

    /// The id of the line that this one continues, as written.
    pub fn parent_uuid(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("parentUuid")?.as_str()
    }

    /// The session that the line says it belongs to.
    pub fn session_id(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.get("sessionId")?.as_str()
    }

    /// When the line was made.
    pub fn timestamp(&self) -> Option<Millis> {
        timestamp::parse(&self.get("timestamp")?.as_str()?)
    }

    /// Whether a top-level key is `true`.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Json::as_bool).unwrap_or(false)
    }

    /// The message of a `user` or `assistant` line.
    pub fn message(&self) -> Option<Message<'_>> {
        let json = self.get("message").filter(|json| json.is_object())?;
        Some(Message::over(match self.index.message(self.text()) {
            Some((fields, blocks)) => Object::indexed(json, fields).with_blocks(blocks),
            None => Object::new(json),
        }))
    }

    /// What the tool returned, as data for display.
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

/// What the line says it is.
fn kind_of(index: &Index, text: &str) -> Kind {
    let name = index.top(text).get("type").and_then(Json::as_str);
    name.map_or(Kind::Untyped, |name| Kind::named(&name))
}

/// The finding for a line that is no object, as plain as can be said.
fn broken(body: &str, at: Position, message: String) -> Finding {
    let line = body.trim();
    if line.starts_with("//") {
        return Finding::new(Code::BrokenLine, at, "a comment stands where an object should").as_note();
    }
    let message = if line.contains('\0') {
        "NUL bytes stand where an object should".into()
    } else if line.starts_with('{') && message.starts_with("EOF") {
        "the line is torn: it ends in the middle of an object".into()
    } else if message.starts_with("a JSON") {
        message
    } else {
        format!("the line is no JSON: {message}")
    };
    Finding::new(Code::BrokenLine, at, message)
}
