//! One line of a log, exactly as it was written, and where it stands.

use std::fmt;

use memchr::memchr;
use serde_json::value::RawValue;

use crate::finding::{Code, Finding};
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
    /// The members of the object, in order.
    fields: Box<[Field]>,
    kind: Kind,
    ending: Ending,
    glued: bool,
    at: Position,
}

/// The bytes, and the text that the lenses read.
#[derive(Clone)]
enum Raw {
    Text(Box<str>),
    /// Bytes that are no UTF-8, and the same with U+FFFD for what is none.
    Bytes(Box<[u8]>, Box<str>),
}

/// Where a member stands in the text: the opening quote of its key, and its value's first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) key: u32,
    pub(crate) value: u32,
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
        entry.glued = true;
        if i == 0 {
            let message = format!("{count} objects stand on one line; Claude Code reads none of them");
            findings.insert(0, Finding::new(Code::BrokenLine, at, message));
        }
        sink(entry, findings);
    }
}

/// Cuts `{…}{…}` into its objects; a torn rest is a piece too. Nothing if it does not begin with an object.
fn glued_pieces(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut pieces = Vec::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return pieces };
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let mut walker = Walker::new(rest);
        if walker.object(|_, _| {}).is_err() {
            // A second object that is torn is kept apart from the first, which is whole.
            if !pieces.is_empty() && start < text.len() {
                pieces.push(start..text.len());
            }
            return pieces;
        }
        let end = start + json::skip_white(rest.as_bytes(), walker.pos());
        pieces.push(start..end);
        if !text[end..].starts_with('{') {
            if end < text.len() {
                pieces.clear();
            }
            return pieces;
        }
        start = end;
    }
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
        let mut entry = Self { raw, fields: Box::default(), kind: Kind::Bad, ending, glued: false, at };
        entry.index(&mut findings);
        (entry, findings)
    }

    /// Finds the members of the object and what is odd about the text.
    fn index(&mut self, findings: &mut Vec<Finding>) {
        let at = self.at;
        let text = match &self.raw {
            Raw::Text(text) | Raw::Bytes(_, text) => &**text,
        };
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
        match index_object(text, start + white) {
            Ok((fields, deepest)) => {
                if deepest >= DEPTH_LIMIT {
                    let message = format!("values are nested {deepest} deep");
                    findings.push(Finding::new(Code::DeepNesting, at, message));
                }
                self.fields = fields;
                self.note_oddities(findings);
            }
            Err(message) => findings.push(broken(body, at, message)),
        }
    }

    /// What is odd about a line that is an object: keys written twice, halves of characters.
    fn note_oddities(&mut self, findings: &mut Vec<Finding>) {
        let mut kind = Kind::Untyped;
        let mut names = Vec::with_capacity(self.fields.len());
        let mut doubled = None;
        for (key, value) in self.members() {
            let name = key.name();
            if name == "type" {
                kind = value.as_str().map_or(Kind::Untyped, |name| Kind::named(&name));
            }
            if names.contains(&name) {
                doubled = Some(format!("the key `{name}` stands twice"));
            }
            names.push(name);
        }
        let lone = json::has_lone_surrogate(self.text());
        drop(names);
        self.kind = kind;
        findings.extend(doubled.map(|message| Finding::new(Code::DuplicateKey, self.at, message)));
        if lone {
            let message = "half of a surrogate pair stands alone, which is no text";
            findings.push(Finding::new(Code::LoneSurrogate, self.at, message));
        }
    }

    /// The bytes as they stand in the file, without the newline.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.raw {
            Raw::Text(text) => text.as_bytes(),
            Raw::Bytes(bytes, _) => bytes,
        }
    }

    /// The line as text; what is no UTF-8 is U+FFFD.
    pub fn text(&self) -> &str {
        match &self.raw {
            Raw::Text(text) | Raw::Bytes(_, text) => text,
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

    /// Whether this object shares its line with another one.
    ///
    /// We read such lines; Claude Code passes over them whole.
    pub fn is_glued(&self) -> bool {
        self.glued
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
        Some(Object::indexed(Json::trusted(text.get(first..end)?), text, &self.fields))
    }

    /// The members of the object, in order; none if the line is no object.
    pub fn members(&self) -> impl Iterator<Item = (json::Key<'_>, Json<'_>)> {
        let text = self.text();
        (0..self.fields.len()).filter_map(move |i| member(text, &self.fields, i))
    }

    /// The value of a top-level key.
    pub fn get(&self, key: &str) -> Option<Json<'_>> {
        field(self.text(), &self.fields, key)
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
        self.get("message").filter(|json| json.is_object()).map(|json| Message::over(Object::new(json)))
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

/// The value of `key` among the members of an indexed object; of two, the last.
pub(crate) fn field<'a>(text: &'a str, fields: &[Field], key: &str) -> Option<Json<'a>> {
    let bytes = text.as_bytes();
    let i = (0..fields.len()).rev().find(|&i| {
        let start = fields[i].key as usize + 1;
        let end = start + key.len();
        match bytes.get(start..end) {
            Some(name) if name == key.as_bytes() && bytes.get(end) == Some(&b'"') => true,
            _ => escaped_key_is(text, start, key),
        }
    })?;
    member(text, fields, i).map(|(_, value)| value)
}

/// Keys are hardly ever escaped, but they may be.
fn escaped_key_is(text: &str, start: usize, key: &str) -> bool {
    let rest = &text.as_bytes()[start..];
    let Some(quote) = memchr(b'"', rest) else { return false };
    if memchr(b'\\', &rest[..quote]).is_none() {
        return false;
    }
    let end = json::skip_value(text.as_bytes(), start - 1) - 1;
    text.get(start..end).is_some_and(|name| json::decode(name) == key)
}

/// The `i`th member. A value ends where the comma before the next key stands, or the closing brace.
pub(crate) fn member<'a>(text: &'a str, fields: &[Field], i: usize) -> Option<(json::Key<'a>, Json<'a>)> {
    let this = fields.get(i)?;
    let limit = match fields.get(i + 1) {
        Some(next) => next.key as usize,
        None => text.len(),
    };
    let close = if i + 1 < fields.len() { ',' } else { '}' };
    let value = text.get(this.value as usize..limit)?;
    let value = value[..value.rfind(close)?].trim_end();
    let key_end = json::skip_value(text.as_bytes(), this.key as usize) - 1;
    let key = json::Key::new(text.get(this.key as usize + 1..key_end)?);
    Some((key, Json::trusted(value)))
}

/// Where the members of the object at `start` stand, and how deep it goes; or why it is no object.
fn index_object(text: &str, start: usize) -> Result<(Box<[Field]>, usize), String> {
    let body = &text[start..];
    let mut fields = Vec::with_capacity(24);
    let mut walker = Walker::new(body);
    let offset = |pos: usize| u32::try_from(start + pos).unwrap_or(u32::MAX);
    let walked = walker.object(|key, value| fields.push(Field { key: offset(key), value: offset(value) }));
    let end = json::skip_white(body.as_bytes(), walker.pos());
    if walked.is_ok() && end == body.len() {
        return Ok((fields.into(), walker.deepest + 1));
    }
    index_by_serde(text, start)
}

/// The same by serde_json, which has the last word on what our walker refuses.
fn index_by_serde(text: &str, start: usize) -> Result<(Box<[Field]>, usize), String> {
    let body = &text[start..];
    let whole: &RawValue = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let json = Json::trusted(whole.get());
    if !json.is_object() {
        return Err(format!("a JSON {} stands where an object should", json.kind().name()));
    }
    let base = text.as_ptr() as usize;
    let fields = json.members().map(|(key, value)| Field {
        key: u32::try_from(key.raw().as_ptr() as usize - base - 1).unwrap_or(u32::MAX),
        value: u32::try_from(value.raw().as_ptr() as usize - base).unwrap_or(u32::MAX),
    });
    Ok((fields.collect(), 1))
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
