//! Makes lines readable: one object per line, with unique ids, timestamps and parents.

use std::borrow::Cow;

use foldhash::HashMap;
use threadline_entry::key::{self, quoted};
use threadline_entry::lens::{CompactMetadata, System};
use threadline_entry::{Code, Ending, Entry, Finding, Json, Kind, Millis, Position, value};
use threadline_session::{EntryIndex, MAX_RETRY_LINES, ParentLink, Session};

use super::{Repair, with_value};
use crate::ancestor_search::AncestorSearch;
use crate::arrange::is_tree;
use crate::seed::{PlanSeed, moment};
use crate::splice::{apply, delete_key, delete_parts, quote};

/// A line while it is being repaired.
struct RepairLine {
    entry: Entry,
    findings: Vec<Finding>,
    reasons: Vec<Cow<'static, str>>,
}

impl RepairLine {
    /// Returns a line without changes. It is parsed again for the findings of the parser.
    fn unchanged(entry: Entry) -> Self {
        let (_, findings) = Entry::parse_at(entry.as_bytes(), entry.ending(), entry.at());
        Self { entry, findings, reasons: Vec::new() }
    }

    fn rewrite(&mut self, text: &str, why: impl Into<Cow<'static, str>>) {
        (self.entry, self.findings) = Entry::parse_at(text.as_bytes(), Ending::Newline, self.entry.at());
        self.reasons.push(why.into());
    }

    /// Sets a member of the line to a JSON value.
    fn set(&mut self, key: &str, value: &str, why: impl Into<Cow<'static, str>>) {
        let text = with_value(&self.entry, key, value);
        self.rewrite(&text, why);
    }
}

/// Makes the lines of a session readable: first each line, then the links between them.
pub(super) fn readable(source: Session, seed: &PlanSeed) -> (Session, Repair) {
    let id = source.id().unwrap_or_default().into_owned();
    let mut entries = source.into_entries().into_iter();
    let mut fixer = LineFixer::new(ReadableBuilder::new(&id, Repair::default()), seed);
    while let Some(entry) = entries.next() {
        let mut parts = split_objects(entry).into_iter();
        while let Some(line) = parts.next() {
            let later_parts = parts.as_slice();
            let later_time = || {
                let later = entries.as_slice().iter().flat_map(|entry| split_objects(entry.clone()));
                let time = |line: &RepairLine| line.entry.timestamp();
                later_parts.iter().find_map(time).or_else(|| later.into_iter().find_map(|line| time(&line)))
            };
            fixer.push(line, later_time);
        }
    }
    let ReadableBuilder { session, repair } = fixer.built;
    // The new session has the same lines, so indices stay valid. New parents are earlier than their children.
    let links = parent_fixes(&session);
    if links.is_empty() {
        return (session, repair);
    }
    let mut built = ReadableBuilder::new(&id, repair);
    let mut links = links.into_iter().peekable();
    for (position, entry) in session.into_entries().into_iter().enumerate() {
        let mut line = RepairLine::unchanged(entry);
        if let Some((_, parent, why)) = links.next_if(|(idx, _, _)| idx.position() == position) {
            let uuid = parent.and_then(|parent| built.session.entries()[parent].uuid());
            let value = uuid.map_or("null".to_owned(), |uuid| quote(&uuid));
            line.set(key::PARENT_UUID, &value, why);
        }
        built.push(line);
    }
    (built.session, built.repair)
}

/// Builds a session from readable lines.
struct ReadableBuilder {
    session: Session,
    repair: Repair,
}

impl ReadableBuilder {
    fn new(id: &str, repair: Repair) -> Self {
        Self { session: Session::with_id(id), repair }
    }

    /// Returns the first line of the tree with a uuid.
    fn find(&self, uuid: &str) -> Option<&Entry> {
        self.session.find(uuid).map(|idx| &self.session.entries()[idx])
    }

    fn push(&mut self, line: RepairLine) {
        let entry_idx = self.session.entries().end();
        for why in line.reasons {
            self.repair.reasons.entry(entry_idx).or_default().add(why, false);
        }
        self.session.push(line.entry, line.findings);
    }
}

/// Splits an entry into one line per object: objects on one line, an object after a truncated one, and
/// invalid UTF-8 are rewritten.
fn split_objects(entry: Entry) -> Vec<RepairLine> {
    let at = entry.at();
    let part = |text: &str, byte_offset: u64, why: Option<&'static str>| {
        let at = Position { byte_offset: at.byte_offset + byte_offset, ..at };
        let (entry, findings) = Entry::parse_at(text.as_bytes(), Ending::Newline, at);
        RepairLine { entry, findings, reasons: why.into_iter().map(Cow::from).collect() }
    };
    let text = entry.text();
    if entry.is_over_limit() {
        return vec![RepairLine::unchanged(entry)];
    }
    if entry.kind() == Kind::Bad {
        return match complete_tail(text) {
            Some(start) => vec![
                part(&text[..start], 0, None),
                part(&text[start..], start as u64, Some("separated from a truncated line")),
            ],
            None => vec![RepairLine::unchanged(entry)],
        };
    }
    let body = text.trim_start_matches('\u{feff}');
    if entry.shares_line() {
        return vec![part(body.trim(), 0, Some("moved to a separate line"))];
    }
    if body.len() < text.len() || std::str::from_utf8(entry.as_bytes()).is_err() {
        return vec![part(body, 0, Some("rewritten as plain UTF-8"))];
    }
    let mut line = RepairLine::unchanged(entry);
    if line.findings.iter().any(|finding| finding.code == Code::DuplicateKey) {
        let text = keep_last_keys(&line.entry);
        line.rewrite(&text, "duplicate key removed");
    }
    vec![line]
}

/// Returns the offset of a complete object at the end of a broken line.
fn complete_tail(text: &str) -> Option<usize> {
    let starts = text.match_indices("{\"").map(|(at, _)| at).filter(|at| *at > 0);
    // A line of a log begins with one of these keys. Nested objects may too, but they do not extend to the
    // end of the line.
    let begins = |at: &usize| {
        [quoted::PARENT_UUID, quoted::TYPE, quoted::UUID, quoted::IS_SIDECHAIN, quoted::SESSION_ID]
            .iter()
            .any(|key| text[at + 1..].starts_with(key))
    };
    // Each attempt parses the rest of the line.
    starts.filter(begins).take(256).find(|at| {
        Json::parse(&text[*at..]).is_some_and(|json| json.is_object() && json.get(key::TYPE).is_some())
    })
}

/// Keeps the last of several members with the same key.
fn keep_last_keys(entry: &Entry) -> String {
    let text = entry.text();
    let Some(object) = entry.object() else { return text.to_owned() };
    let keys: Vec<_> = entry.members().map(|(key, _)| key).collect();
    // Members with the same key are adjacent, and in their order.
    let mut sorted: Vec<usize> = (0..keys.len()).collect();
    sorted.sort_by(|&a, &b| keys[a].name().cmp(&keys[b].name()));
    let mut goes = vec![false; keys.len()];
    for pair in sorted.windows(2) {
        goes[pair[0]] = keys[pair[0]].name() == keys[pair[1]].name();
    }
    apply(text, &mut delete_parts(text, object.json(), |at, _, _| goes[at]))
}

/// Repairs lines one after the other.
struct LineFixer<'r> {
    built: ReadableBuilder,
    seed: &'r PlanSeed,
    /// The time of the last line of the tree.
    time: Option<Millis>,
    /// The uuid of the last line of the main conversation.
    previous: Option<String>,
    /// The current replacement of each uuid that was used more than once.
    renamed: HashMap<String, String>,
}

impl<'r> LineFixer<'r> {
    fn new(built: ReadableBuilder, seed: &'r PlanSeed) -> Self {
        Self { built, seed, time: None, previous: None, renamed: HashMap::default() }
    }

    /// Adds a line. `later_time` returns the time of the next line that has one.
    fn push(&mut self, mut line: RepairLine, later_time: impl FnOnce() -> Option<Millis>) {
        if is_tree(&line.entry) {
            write_as_message(&mut line);
            self.add_missing_fields(&mut line, later_time);
            self.follow_rename(&mut line);
            if self.is_copy(&line) {
                return;
            }
            self.rename_copy(&mut line);
        }
        self.built.push(line);
    }

    /// Adds a missing uuid, timestamp and parent to a message.
    fn add_missing_fields(&mut self, line: &mut RepairLine, later_time: impl FnOnce() -> Option<Millis>) {
        let entry = &line.entry;
        let is_message = matches!(entry.kind(), Kind::User | Kind::Assistant);
        let has_uuid = entry.uuid().is_some();
        let has_time = entry.get(key::TIMESTAMP).is_some_and(|time| time.quoted().is_some());
        let own = entry.timestamp();
        if is_message && !has_uuid {
            let name = format!("line {} at {}", entry.at().line_no, entry.at().byte_offset);
            line.set(key::UUID, &quote(&self.seed.uuid(&name)), "uuid added");
            if let Some(previous) = self.previous.as_deref().filter(|_| line.entry.parent_uuid().is_none()) {
                line.set(key::PARENT_UUID, &quote(previous), "attached to the previous line");
            }
        }
        if is_message && !has_time {
            let later = || later_time().map(|later| later - 1);
            let made = self.time.map(|time| time + 1).or_else(later).unwrap_or(self.seed.now);
            line.set(key::TIMESTAMP, &quote(&moment(made)), "timestamp added");
            self.time = Some(made);
        }
        self.time = own.or(self.time);
        if !line.entry.is_sidechain() {
            self.previous = line.entry.uuid().map(Cow::into_owned).or(self.previous.take());
        }
    }

    /// Returns whether an earlier line has the same uuid and the same content.
    fn is_copy(&mut self, line: &RepairLine) -> bool {
        let entry = &line.entry;
        let Some(other) = entry.uuid().and_then(|uuid| self.built.find(&uuid)) else { return false };
        if !has_same_content(other, entry) {
            return false;
        }
        let why = format!("duplicate of line {}", other.at().line_no);
        self.built.repair.removed.push((entry.at().line_no, why));
        true
    }

    /// Sets the parent of a line below a renamed one.
    fn follow_rename(&self, line: &mut RepairLine) {
        if let Some(renamed) = line.entry.parent_uuid().and_then(|parent| self.renamed.get(&*parent)) {
            line.set(key::PARENT_UUID, &quote(renamed), "re-parented to the renamed line");
        }
    }

    /// Gives a line with the uuid of an earlier one a new uuid.
    fn rename_copy(&mut self, line: &mut RepairLine) {
        let entry = &line.entry;
        let Some(uuid) = entry.uuid().filter(|uuid| self.built.find(uuid).is_some()) else { return };
        let (uuid, at) = (uuid.into_owned(), entry.at());
        let own = self.seed.uuid(&format!("{uuid} of line {} at {}", at.line_no, at.byte_offset));
        line.set(key::UUID, &quote(&own), "new uuid (duplicate)");
        self.renamed.insert(uuid, own);
    }
}

/// Rewrites a prompt or reply of another writer in the form that Claude Code reads: with a type, and with its
/// content in a message.
fn write_as_message(line: &mut RepairLine) {
    let entry = &line.entry;
    let role = match entry.kind() {
        kind @ (Kind::User | Kind::Assistant) => kind.name().unwrap_or_default(),
        _ => return,
    };
    let has_message = entry.get(key::MESSAGE).is_some_and(Json::is_object);
    let content = entry.get(key::CONTENT).map(|content| content.raw().to_owned());
    if entry.type_name().is_none() {
        line.set(key::TYPE, &quote(role), "type added");
    }
    if let Some(content) = content.filter(|_| !has_message) {
        let message = format!(r#"{{"role":"{role}","content":{content}}}"#);
        line.set(key::MESSAGE, &message, "content moved into a message");
        let without = apply(line.entry.text(), &mut delete_key(&line.entry, key::CONTENT));
        (line.entry, line.findings) = Entry::parse_at(without.as_bytes(), Ending::Newline, line.entry.at());
    }
}

fn has_same_content(one: &Entry, other: &Entry) -> bool {
    fn content(entry: &Entry) -> Option<&str> {
        entry.get(key::MESSAGE).or_else(|| entry.get(key::CONTENT)).map(Json::raw)
    }
    one.kind() == other.kind()
        && content(one) == content(other)
        && (content(one).is_some() || one.text() == other.text())
}

/// Returns the lines with a wrong parent, in order, each with its new parent, an earlier line, and the
/// reason.
fn parent_fixes(session: &Session) -> Vec<(EntryIndex, Option<EntryIndex>, &'static str)> {
    let entries = session.entries();
    let is_main =
        |idx: EntryIndex| session.in_tree(idx) && !session.is_sidechain(idx) && is_tree(&entries[idx]);
    let compaction = open_compaction(session);
    let earlier = earlier_ancestors(session, is_main);
    let mut retries = RetryEnds::default();
    let mut links = Vec::new();
    let mut previous: Option<EntryIndex> = None;
    for idx in entries.indices().filter(|&idx| is_main(idx)) {
        let reattach = |parent: Option<EntryIndex>, why: &'static str, links: &mut Vec<_>| {
            let Some(parent) = parent.filter(|&parent| entries[parent].uuid().is_some()) else { return };
            links.push((idx, Some(parent), why));
        };
        let is_prompt_or_reply = entries[idx].kind() == Kind::Assistant
            || session.input(idx).is_some_and(|input| input.opens_turn());
        match session.parent(idx) {
            ParentLink::Dangling => {
                // A line that would close a cycle is dangling, although its parent is in the log.
                let is_cycle =
                    entries[idx].parent_uuid().is_some_and(|parent| session.find(&parent).is_some());
                let is_childless_progress =
                    entries[idx].kind() == Kind::Progress && session.children(idx).next().is_none();
                if is_cycle && previous.is_none() {
                    links.push((idx, None, "cycle broken (now the root)"));
                } else if is_cycle {
                    reattach(previous, "cycle broken (attached to the previous line)", &mut links);
                } else if !is_childless_progress {
                    reattach(previous, "reattached to the previous line (parent missing)", &mut links);
                }
            }
            ParentLink::Entry(parent) if parent > idx => {
                let ancestor = earlier.get(&idx).copied();
                reattach(ancestor.or(previous), "re-parented (parent follows the line)", &mut links);
            }
            ParentLink::Entry(parent)
                if compaction.is_some_and(|boundary| parent < boundary && idx > boundary)
                    && is_prompt_or_reply =>
            {
                reattach(previous, "re-parented after the compaction", &mut links);
            }
            ParentLink::Entry(_) => {
                if let Some(end) = lost_retry(session, idx, &mut retries) {
                    reattach(Some(end), "re-parented to the reply of the retry", &mut links);
                }
            }
            ParentLink::Root => {}
        }
        previous = Some(idx);
    }
    links
}

/// Returns the nearest ancestors that are earlier, for the lines whose parent is later.
fn earlier_ancestors(
    session: &Session,
    is_main: impl Fn(EntryIndex) -> bool,
) -> HashMap<EntryIndex, EntryIndex> {
    let late_parent = |idx| match session.parent(idx) {
        ParentLink::Entry(parent) if parent > idx => Some((idx, parent)),
        _ => None,
    };
    let late: Vec<_> = session.entries().indices().filter_map(late_parent).collect();
    if late.is_empty() {
        return HashMap::default();
    }
    let mut search = AncestorSearch::new(session);
    // From the last line to the first, so that lines that are too late for one are too late for the next.
    let found = late.into_iter().rev().filter_map(|(idx, parent)| {
        Some((idx, search.nearest(parent, |above| above < idx && is_main(above))?))
    });
    found.collect()
}

/// Returns the last compaction, unless it preserved earlier messages.
fn open_compaction(session: &Session) -> Option<EntryIndex> {
    let compactions = session.compactions();
    let last = compactions.last()?;
    let kept = |metadata: CompactMetadata<'_>| {
        metadata.preserved_segment().is_some() || metadata.preserved_messages().is_some()
    };
    (!last.metadata(session).is_some_and(kept)).then_some(last.boundary)
}

/// The last known line of the conversation below each retry. Several prompts may skip the same one.
type RetryEnds = HashMap<EntryIndex, EntryIndex>;

/// Returns the end of the retry that a prompt below an API error skips. Prompts must be passed in order.
///
/// ```text
/// fork ─┬─ error ── error ── prompt    the prompt, at `idx`, continues after the failed requests
///       └─ retry ── … ── end           the reply that it should continue
/// ```
fn lost_retry(session: &Session, idx: EntryIndex, ends: &mut RetryEnds) -> Option<EntryIndex> {
    if !session.input(idx).is_some_and(|input| input.opens_turn()) {
        return None;
    }
    let subtype = |idx: EntryIndex| session.entries()[idx].lens::<System<'_>>().and_then(System::subtype);
    let errors: Vec<EntryIndex> = session
        .ancestors(idx)
        .skip(1)
        .take(MAX_RETRY_LINES)
        .take_while(|&above| session.entries()[above].kind() == Kind::System)
        .filter(|&above| subtype(above).as_deref() == Some(value::API_ERROR))
        .collect();
    let ParentLink::Entry(fork) = session.parent(*errors.last()?) else { return None };
    let is_reply = |child: &EntryIndex| {
        *child < idx && !errors.contains(child) && session.entries()[*child].kind() == Kind::Assistant
    };
    let retry = session.children(fork).take(MAX_RETRY_LINES).find(is_reply)?;
    let end = ends.entry(retry).or_insert(retry);
    // Children are in order.
    while let Some(next) = session.children(*end).take_while(|&child| child < idx).last() {
        *end = next;
    }
    Some(*end)
}
