//! Redacts a session: replaces secrets with placeholders, in every copy.
//!
//! A [`Redactor`] makes two passes, because a secret may be recognisable in one place only, but occur in
//! many. It first [learns](Redactor::learn_log) the secrets, and then replaces them. Ids, signatures and
//! images are never changed. A thinking block with a secret is removed together with all other thinking of
//! its reply, because the signature would no longer match.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::Lens;
use threadline_entry::{
    Ending, Entry, Json, Kind, LogLine, Position, StringRole, decode, key, log_lines, parse_line, value,
    visit_strings,
};
use threadline_secret::{KnownSecrets, MAX_ROUNDS, Replacer, Rules, SecretMatch, SecretPrinter, mask};
use threadline_session::Session;

use crate::draft::EditDraft;
use crate::plan::{PlanOptions, PlanTarget};
use crate::sanitize;
use crate::seed::PlanSeed;
use crate::splice::{Splice, apply, delete_parts, span};

/// A secret that was found, in a form that may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedSecret {
    /// The kind: `github-token`.
    pub kind: String,
    /// The kind for people: `a GitHub token`.
    pub description: String,
    /// The placeholder that replaces it.
    pub placeholder: Arc<str>,
    /// The masked secret, with a few of its characters.
    pub masked: String,
    /// The position of the line that contains it; `None` in a file that is not a log.
    pub at: Option<Position>,
    /// The key of the value that contains it.
    pub key: String,
}

/// Finds secrets, and replaces them with placeholders.
pub struct Redactor<'r> {
    rules: &'r Rules,
    replacer: Replacer<'r>,
    learnt: Option<KnownSecrets>,
    /// Whether only learnt secrets are replaced, because the text belongs to several sessions.
    only_learnt: bool,
    /// Whether the first pass is complete.
    has_learnt: bool,
    /// Short strings without a secret, as written in a line: most keys and many values repeat in every line.
    clean_strings: HashSet<Box<str>>,
    /// The calls whose commands print a secret, and whose results have not been read, by id, with the
    /// position of their line.
    printers: HashMap<String, (SecretPrinter, Position)>,
    /// The line that is learnt, which may contain several entries; [`Position::START`] in other files.
    line: Position,
    /// The lines that something was learnt from, by offset, with their numbers.
    source_lines: BTreeMap<u64, u64>,
}

/// The maximum length of the strings in `clean_strings`.
const SHORT_STRING: usize = 64;

impl<'r> Redactor<'r> {
    /// Creates a redactor that has not learnt anything.
    pub fn new(rules: &'r Rules) -> Self {
        Self {
            rules,
            replacer: Replacer::new(rules),
            learnt: None,
            only_learnt: false,
            has_learnt: false,
            clean_strings: HashSet::default(),
            printers: HashMap::default(),
            line: Position::START,
            source_lines: BTreeMap::new(),
        }
    }

    /// Learns the secrets in a session.
    pub fn learn(&mut self, session: &Session) -> Vec<MaskedSecret> {
        let mut hits = Vec::new();
        for entry in session.entries() {
            self.line = entry.at();
            self.learn_entry(entry, &mut hits);
        }
        hits
    }

    /// Learns the secrets in a log, or in a file with one JSON object.
    pub fn learn_log(&mut self, log: &[u8]) -> Vec<MaskedSecret> {
        log_lines(log).flat_map(|line| self.learn_line(&line)).collect()
    }

    /// Learns the secrets in a line of a log.
    pub fn learn_line(&mut self, line: &LogLine<'_>) -> Vec<MaskedSecret> {
        self.line = line.at;
        let mut hits = Vec::new();
        parse_line(line, |entry, _| self.learn_entry(&entry, &mut hits));
        hits
    }

    /// Learns the secrets in any other file.
    pub fn learn_file(&mut self, content: &[u8]) -> Vec<MaskedSecret> {
        let mut hits = Vec::new();
        self.line = Position::START;
        for chunk in content.utf8_chunks() {
            self.learn_text(chunk.valid(), None, "", &mut hits);
        }
        hits
    }

    /// Returns the number of different secrets that were found, by kind.
    pub fn secret_counts(&self) -> BTreeMap<String, usize> {
        self.replacer.counts()
    }

    /// Ends a log, and returns the positions of the lines that something was learnt from. Learning these
    /// lines alone, in this order, has the same result as learning all lines.
    pub fn take_source_lines(&mut self) -> Vec<Position> {
        // A call and its result are in the same log.
        self.printers.clear();
        let lines = std::mem::take(&mut self.source_lines);
        lines.into_iter().map(|(byte_offset, line_no)| Position { line_no, byte_offset }).collect()
    }

    fn learn_entry(&mut self, entry: &Entry, hits: &mut Vec<MaskedSecret>) {
        match entry.kind() {
            Kind::Bad => {
                self.learn_text(entry.text(), Some(entry.at()), "", hits);
            }
            _ => self.learn_object(entry.text(), entry.at(), hits),
        }
    }

    /// Learns the secrets in a line, and adds them to `hits`.
    fn learn_object(&mut self, line: &str, at: Position, hits: &mut Vec<MaskedSecret>) {
        // A private key may be stored line by line, as the items of an array.
        let mut column: Option<(&str, Option<usize>, String)> = None;
        // The long strings of the line without a secret: the output of a tool is often written twice.
        let mut clean: HashSet<&str> = HashSet::default();
        // The id of the last call of the line, and how the result in the line was printed.
        let (mut call_id, mut printer) = ("", None);
        visit_strings(line, |text| {
            match text.key {
                key::ID => call_id = text.inner,
                key::COMMAND if !call_id.is_empty() => {
                    if let Some(printer) = SecretPrinter::of_command(&decode(text.inner)) {
                        self.printers.insert(call_id.to_owned(), (printer, self.line));
                    }
                }
                key::TOOL_USE_ID => printer = self.printers.remove(text.inner).or(printer),
                _ => {}
            }
            if matches!(text.role, StringRole::Id | StringRole::Opaque) {
                return;
            }
            let is_short = text.inner.len() <= SHORT_STRING;
            let is_clean =
                if is_short { self.clean_strings.contains(text.inner) } else { clean.contains(text.inner) };
            // The name of a value may make it a secret.
            if is_clean && column.is_none() && !Rules::is_secret_name(text.key) {
                return;
            }
            let decoded = decode(text.inner);
            match &mut column {
                Some((key, object, lines)) if *key == text.key && *object == text.object => {
                    lines.push('\n');
                    lines.push_str(&decoded);
                }
                _ => {
                    if let Some((key, _, lines)) = column.take() {
                        self.learn_text(&lines, Some(at), key, hits);
                    }
                    if decoded.contains("PRIVATE KEY-----") && !decoded.contains('\n') {
                        column = Some((text.key, text.object, decoded.clone().into_owned()));
                    }
                }
            }
            let has_secret = self.learn_text(&decoded, Some(at), text.key, hits);
            if is_clean || has_secret || column.is_some() {
                return;
            }
            match is_short {
                true => self.clean_strings.insert(text.inner.into()),
                false => clean.insert(text.inner),
            };
        });
        if let Some((key, _, lines)) = column {
            self.learn_text(&lines, Some(at), key, hits);
        }
        if let Some(printer) = printer {
            self.learn_printed(line, at, printer, hits);
        }
    }

    /// Learns the secret that the result of a call consists of, in a line with the result.
    fn learn_printed(
        &mut self,
        line: &str,
        at: Position,
        (printer, call_at): (SecretPrinter, Position),
        hits: &mut Vec<MaskedSecret>,
    ) {
        visit_strings(line, |text| {
            if !matches!(text.key, key::CONTENT | key::TEXT | key::STDOUT) {
                return;
            }
            let output = decode(text.inner);
            if let Some(found) = self.rules.find_printed(printer, &output) {
                self.add_source(call_at);
                self.learn_match(&found, &output[found.range.clone()], Some(at), text.key, hits);
            }
        });
    }

    /// Learns the secrets in a text, and adds them to `hits`. Returns whether there are any.
    fn learn_text(
        &mut self,
        text: &str,
        at: Option<Position>,
        key: &str,
        hits: &mut Vec<MaskedSecret>,
    ) -> bool {
        if text.contains("[secret:") || text.contains("[personal:") {
            self.replacer.reserve(text);
            self.add_source(self.line);
        }
        let all = self.rules.find_in_member(key, text);
        for found in &all {
            self.learn_match(found, &text[found.range.clone()], at, key, hits);
        }
        !all.is_empty()
    }

    fn add_source(&mut self, line: Position) {
        self.source_lines.insert(line.byte_offset, line.line_no);
    }

    /// Learns a secret, and adds it to `hits`.
    fn learn_match(
        &mut self,
        found: &SecretMatch<'_>,
        secret: &str,
        at: Option<Position>,
        key: &str,
        hits: &mut Vec<MaskedSecret>,
    ) {
        self.add_source(self.line);
        hits.push(MaskedSecret {
            kind: found.kind.to_owned(),
            description: found.description.to_owned(),
            placeholder: self.replacer.placeholder(found, secret),
            masked: mask(secret),
            at,
            // The key itself may contain a secret.
            key: self.rules.mask(&decode(key)).into_owned(),
        });
    }

    /// Ends the first pass. From now on, every secret found anywhere is replaced everywhere.
    pub fn finish_learning(&mut self) {
        self.has_learnt = true;
        self.clean_strings = HashSet::default();
        self.learnt = self.replacer.known();
    }

    /// Returns the learnt secrets, to be searched for in other texts; `None` if there are none.
    pub fn into_known(self) -> Option<KnownSecrets> {
        self.replacer.known()
    }

    /// Drafts the redaction of a session.
    pub fn redact(&mut self, draft: &mut EditDraft<'_>) {
        let session = draft.session();
        // Without learnt secrets there is nothing to replace.
        if self.has_learnt && self.replacer.is_empty() {
            return;
        }
        for (idx, entry) in session.entries().enumerated() {
            let clean = self.redact_entry(entry);
            for splice in clean.splices {
                draft.splice(idx, splice, "secrets replaced");
            }
            if clean.has_secret_thinking {
                // A reply that keeps only some of its thinking does not match its signature.
                sanitize::remove_thinking(draft, idx, "thinking with a secret removed");
            }
        }
    }

    /// Returns a log without its secrets; `None` if it contains none.
    pub fn redact_log(&mut self, log: &[u8]) -> Option<Vec<u8>> {
        let session = Session::from_bytes(log);
        let mut draft = EditDraft::new(&session);
        self.redact(&mut draft);
        // No lines are added, so no ids are needed.
        let seed = PlanSeed { seed: String::new(), now: 0 };
        let plan = draft.plan(PlanOptions { target: PlanTarget::KeepOrder, seed });
        (!plan.is_empty()).then(|| plan.to_bytes())
    }

    /// Returns a log to show: every secret is replaced, also in thinking, and each line stays on its line.
    /// `None` if it contains none. The result cannot be resumed.
    ///
    /// If the first pass is complete, the log must be one that was learnt, from the `sources`. In other
    /// lines, the rules find nothing.
    pub fn mask_log(&mut self, log: &[u8], sources: Option<&[Position]>) -> Option<Vec<u8>> {
        let is_source = |at: Position| {
            sources.is_none_or(|all| all.binary_search_by_key(&at.byte_offset, |at| at.byte_offset).is_ok())
        };
        // Without learnt secrets, lines of one object contain none.
        let only_texts = self.has_learnt && self.replacer.is_empty();
        let mut masked = Vec::with_capacity(log.len());
        let mut is_changed = false;
        for line in log_lines(log) {
            let text = String::from_utf8_lossy(line.bytes);
            let clean = if !is_one_object(&line) {
                // A line with several objects, or of no object, is one text.
                self.text("", &text, false)
            } else if only_texts {
                None
            } else if is_source(line.at) {
                self.mask_line(&text)
            } else {
                self.only_learnt = true;
                let masked = self.mask_line(&text);
                self.only_learnt = false;
                // The remaining text may look like a secret only now.
                masked.map(|masked| self.mask_line(&masked).unwrap_or(masked))
            };
            is_changed |= clean.is_some();
            masked.extend_from_slice(clean.as_ref().map_or(line.bytes, |clean| clean.as_bytes()));
            if line.ending == Ending::Newline {
                masked.push(b'\n');
            }
        }
        is_changed.then_some(masked)
    }

    /// Returns a line of JSON with its secrets replaced; `None` if it contains none.
    fn mask_line(&mut self, line: &str) -> Option<String> {
        let mut splices = Vec::new();
        visit_strings(line, |text| {
            if !matches!(text.role, StringRole::Id | StringRole::Opaque)
                && let Some(new) = self.text(text.key, text.inner, true)
            {
                splices.push(Splice::new(text.range, new));
            }
        });
        (!splices.is_empty()).then(|| apply(line, &mut splices))
    }

    /// Returns a file of any kind without its secrets; `None` if it contains none.
    pub fn redact_file(&mut self, content: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(content.len());
        let mut changed = false;
        for chunk in content.utf8_chunks() {
            match self.text("", chunk.valid(), false) {
                Some(clean) => {
                    changed = true;
                    out.extend(clean.bytes());
                }
                None => out.extend(chunk.valid().bytes()),
            }
            out.extend(chunk.invalid());
        }
        changed.then_some(out)
    }

    /// Redacts a file that several sessions share; returns `None` if nothing changes.
    ///
    /// Only secrets learnt from this session are replaced. In a log, lines of the session itself are fully
    /// redacted.
    pub fn redact_shared(&mut self, content: &[u8], session_id: &str, is_log: bool) -> Option<Vec<u8>> {
        self.only_learnt = true;
        let clean =
            if is_log { self.redact_shared_log(content, session_id) } else { self.redact_file(content) };
        self.only_learnt = false;
        clean
    }

    fn redact_shared_log(&mut self, log: &[u8], session_id: &str) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(log.len());
        let mut changed = false;
        each_entry(log, |entry| {
            self.only_learnt = entry.session_id().is_none_or(|id| id != session_id);
            let mut clean = self.redact_entry(entry);
            if clean.splices.is_empty() {
                out.extend(entry.as_bytes());
            } else {
                changed = true;
                out.extend(apply(entry.text(), &mut clean.splices).bytes());
            }
            if entry.ending() == Ending::Newline {
                out.push(b'\n');
            }
        });
        changed.then_some(out)
    }

    fn redact_entry(&mut self, entry: &Entry) -> LineRedaction {
        let mut clean = LineRedaction::default();
        let line = entry.text();
        if entry.kind() == Kind::Bad {
            if let Some(text) = self.text("", line, false) {
                clean.splices.push(Splice::new(0..line.len(), text));
            }
            return clean;
        }
        let is_message = matches!(entry.kind(), Kind::User | Kind::Assistant);
        let blocks =
            entry.message().and_then(|message| message.content()).map(|content| content.json().raw());
        let message = blocks.map(|blocks| span(line, blocks)).filter(|_| is_message);
        // The offsets of the thinking blocks of the message.
        let thoughts = LazyCell::new(|| -> HashSet<usize> {
            let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
            let thoughts = blocks.filter(|block| block.is(value::THINKING));
            thoughts.map(|block| span(line, block.object().json().raw()).start).collect()
        });
        let mut copies = ThinkingCopies::new(line);
        visit_strings(line, |text| {
            if matches!(text.role, StringRole::Id | StringRole::Opaque) {
                return;
            }
            let Some(new) = self.text(text.key, text.inner, true) else { return };
            let object = text.object.filter(|_| text.key == "thinking");
            match (object, text.array) {
                (Some(object), Some(array))
                    if message.as_ref().is_some_and(|message| message.start == array)
                        && thoughts.contains(&object) =>
                {
                    clean.has_secret_thinking = true;
                }
                (Some(object), Some(array)) if copies.add(object, array) => {}
                _ => clean.splices.push(Splice::new(text.range, new)),
            }
        });
        clean.splices.extend(copies.deletions());
        clean
    }

    /// Returns the value of `key` without its secrets; `None` if it contains none. If `escaped`, `text` is
    /// the raw content of a JSON string.
    fn text(&mut self, key: &str, text: &str, escaped: bool) -> Option<String> {
        let mut clean: Option<String> = None;
        for _ in 0..MAX_ROUNDS {
            let now = clean.as_deref().unwrap_or(text);
            let decoded = if escaped { decode(now) } else { Cow::Borrowed(now) };
            let Some(next) = self.replaced(key, now, &decoded) else { break };
            clean = Some(next);
        }
        clean
    }

    /// Returns the text `raw` without its secrets: matches of the rules, and learnt secrets. Returns `None`
    /// if it contains none. `text` is the same text with its escapes decoded.
    fn replaced(&mut self, key: &str, raw: &str, text: &str) -> Option<String> {
        let found = if self.only_learnt { Vec::new() } else { self.rules.find_in_member(key, text) };
        let found: Vec<(Range<usize>, Arc<str>)> = found
            .into_iter()
            .map(|found| (found.range.clone(), self.replacer.placeholder(&found, &text[found.range.clone()])))
            .collect();
        let copies = self.learnt.iter().flat_map(|known| known.find(text)).filter(|(range, _)| {
            let next = found.partition_point(|(found, _)| found.end <= range.start);
            found.get(next).is_none_or(|(found, _)| found.start >= range.end)
        });
        let copies = copies.map(|(range, placeholder)| (range, Arc::clone(placeholder)));
        let mut edits: Vec<_> = copies.collect();
        edits.extend(found);
        if edits.is_empty() {
            return None;
        }
        edits.sort_by_key(|(range, _)| range.start);
        let mut next = String::with_capacity(raw.len());
        let mut offsets = (raw.len() != text.len()).then(|| RawOffsets::new(raw));
        let mut done = 0;
        for (range, placeholder) in edits {
            let place = match &mut offsets {
                Some(raw) => raw.at(range.start)..raw.at(range.end),
                None => range,
            };
            next.push_str(&raw[done..place.start]);
            next.push_str(&placeholder);
            done = place.end;
        }
        next.push_str(&raw[done..]);
        Some(next)
    }
}

/// Returns a line with other texts. `rewrite` gets each decoded text except for ids and opaque data, and
/// returns the text to use instead, or `None` to keep it. Returns `None` if nothing changes.
pub fn rewrite_strings(entry: &Entry, rewrite: &mut dyn FnMut(&str) -> Option<String>) -> Option<String> {
    if entry.kind() == Kind::Bad {
        return rewrite(entry.text());
    }
    let mut splices = Vec::new();
    visit_strings(entry.text(), |text| {
        if matches!(text.role, StringRole::Id | StringRole::Opaque) {
            return;
        }
        if let Some(new) = rewrite(&text.decoded()) {
            let quoted = threadline_entry::write::quote(&new);
            splices.push(Splice::new(text.range, quoted[1..quoted.len() - 1].to_owned()));
        }
    });
    (!splices.is_empty()).then(|| apply(entry.text(), &mut splices))
}

/// The redaction of one line.
#[derive(Default)]
struct LineRedaction {
    splices: Vec<Splice>,
    /// Whether a thinking block of its message contains a secret.
    has_secret_thinking: bool,
}

/// Returns whether a line is one JSON object.
fn is_one_object(line: &LogLine<'_>) -> bool {
    let mut is_text = false;
    parse_line(line, |entry, _| is_text |= entry.shares_line() || entry.kind() == Kind::Bad);
    !is_text
}

/// Calls `visit` with each entry of a log.
pub(crate) fn each_entry(log: &[u8], mut visit: impl FnMut(&Entry)) {
    for line in log_lines(log) {
        parse_line(&line, |entry, _| visit(&entry));
    }
}

/// The copies of thinking blocks of a line that are deleted.
struct ThinkingCopies<'l> {
    line: &'l str,
    /// Whether the objects at these offsets are thinking blocks.
    is_thinking: HashMap<usize, bool>,
    /// The arrays with copies, by their offsets, with the offsets of the copies.
    arrays: BTreeMap<usize, (Json<'l>, HashSet<usize>)>,
}

impl<'l> ThinkingCopies<'l> {
    fn new(line: &'l str) -> Self {
        Self { line, is_thinking: HashMap::default(), arrays: BTreeMap::new() }
    }

    /// Adds the object at an offset in an array, if it is a thinking block. Returns whether it was added.
    fn add(&mut self, object: usize, array: usize) -> bool {
        let is_thinking = match self.is_thinking.get(&object) {
            Some(&known) => known,
            None => {
                let kind = value_at(self.line, object).and_then(|object| object.get(key::TYPE));
                let is_thinking = kind.is_some_and(|kind| kind.is_str(value::THINKING));
                self.is_thinking.insert(object, is_thinking);
                is_thinking
            }
        };
        if is_thinking && !self.arrays.contains_key(&array) {
            let Some(json) = value_at(self.line, array) else { return false };
            self.arrays.insert(array, (json, HashSet::default()));
        }
        let objects = self.arrays.get_mut(&array).filter(|_| is_thinking);
        objects.is_some_and(|(_, objects)| {
            objects.insert(object);
            true
        })
    }

    fn deletions(self) -> impl Iterator<Item = Splice> {
        let line = self.line;
        self.arrays.into_values().flat_map(move |(json, objects)| {
            delete_parts(line, json, |_, _, item| objects.contains(&span(line, item.raw()).start))
        })
    }
}

/// Returns the JSON object or array that starts at offset `start` of a line.
fn value_at(line: &str, start: usize) -> Option<Json<'_>> {
    // The line is valid JSON, so it suffices to match brackets outside of strings.
    let bytes = line.as_bytes();
    let (mut depth, mut at) = (0_usize, start);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Json::parse(&line[start..=at]);
                }
            }
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Maps offsets in a decoded text to offsets in the raw content of its JSON string, in ascending order.
struct RawOffsets<'t> {
    inner: &'t str,
    at: usize,
    decoded: usize,
}

impl<'t> RawOffsets<'t> {
    fn new(inner: &'t str) -> Self {
        Self { inner, at: 0, decoded: 0 }
    }

    /// Returns the raw offset of an offset in the decoded text, which must not be less than the last one.
    fn at(&mut self, offset: usize) -> usize {
        while self.decoded < offset && self.at < self.inner.len() {
            let (long, wide) = char_lengths(self.inner, self.at);
            self.at += long;
            self.decoded += wide;
        }
        self.at
    }
}

/// Returns the length of the character at offset `at`, raw and decoded.
fn char_lengths(inner: &str, at: usize) -> (usize, usize) {
    let bytes = inner.as_bytes();
    if bytes[at] != b'\\' {
        let wide = inner[at..].chars().next().map_or(1, char::len_utf8);
        return (wide, wide);
    }
    let long = match bytes.get(at + 1) {
        Some(b'u') => {
            let unit =
                |at: usize| inner.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let high = unit(at + 2).is_some_and(|unit| (0xD800..0xDC00).contains(&unit));
            let low = inner.get(at + 6..at + 8) == Some("\\u")
                && unit(at + 8).is_some_and(|unit| (0xDC00..0xE000).contains(&unit));
            if high && low { 12 } else { 6 }
        }
        _ => 2,
    };
    let long = long.min(bytes.len() - at);
    (long, decode(&inner[at..at + long]).len())
}

#[cfg(test)]
mod tests {
    use super::{RawOffsets, value_at};
    use threadline_entry::decode;

    #[test]
    fn ranges_are_mapped_across_escapes() {
        let inner = r#"é\n\u0041\ud83d\ude00\ud800x\"y\\z"#;
        let decoded = decode(inner);
        for (at, letter) in decoded.char_indices() {
            let range = at..at + letter.len_utf8();
            let mut raw = RawOffsets::new(inner);
            let raw = raw.at(range.start)..raw.at(range.end);
            assert_eq!(decode(&inner[raw]), letter.to_string());
        }
    }

    #[test]
    fn a_value_ends_with_its_brackets() {
        let line = r#"{"a":[{"b":"]}\""},2],"c":1}"#;
        assert_eq!(value_at(line, 5).unwrap().raw(), r#"[{"b":"]}\""},2]"#);
        assert_eq!(value_at(line, 6).unwrap().raw(), r#"{"b":"]}\""}"#);
    }
}
