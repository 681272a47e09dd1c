//! Makes lines readable: one object per line, with unique ids, timestamps and parents.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_entry::key::{self, quoted};
use threadline_entry::lens::{CompactMetadata, System};
use threadline_entry::{Code, Ending, Entry, Finding, Json, Kind, Millis, Position, value};
use threadline_session::{EntryIndex, ParentLink, Session};

use super::with_value;
use crate::arrange::is_tree;
use crate::seed::{PlanSeed, moment};
use crate::splice::{apply, delete_parts, quote};

/// A session with readable lines.
pub(super) struct ReadableSession {
    /// `None` if no line had to be changed.
    pub(super) session: Option<Session>,
    pub(super) notes: Vec<(EntryIndex, Cow<'static, str>)>,
    pub(super) removed: Vec<(u64, Cow<'static, str>)>,
}

/// A line while it is being repaired.
struct RepairLine {
    entry: Entry,
    findings: Vec<Finding>,
    reasons: Vec<Cow<'static, str>>,
}

impl RepairLine {
    fn rewrite(&mut self, text: &str, why: impl Into<Cow<'static, str>>) {
        (self.entry, self.findings) = Entry::parse_at(text.as_bytes(), Ending::Newline, self.entry.at());
        self.reasons.push(why.into());
    }
}

pub(super) fn readable(source: &Session, seed: &PlanSeed) -> ReadableSession {
    let mut lines: Vec<RepairLine> = source.entries().iter().flat_map(split_objects).collect();
    let mut gone = Vec::new();
    add_missing_fields(&mut lines, seed);
    rename_copies(&mut lines, &mut gone, seed);
    let built = |lines: &[RepairLine]| {
        let mut session = Session::with_id(source.id().unwrap_or_default());
        for line in lines {
            session.push(line.entry.clone(), line.findings.clone());
        }
        session
    };
    let untouched = |lines: &[RepairLine]| {
        lines.len() == source.entries().len() && lines.iter().all(|line| line.reasons.is_empty())
    };
    let first = if untouched(&lines) { None } else { Some(built(&lines)) };
    let links = parent_fixes(first.as_ref().unwrap_or(source));
    for (idx, parent, why) in &links {
        let text = with_value(
            &lines[idx.position()].entry,
            key::PARENT_UUID,
            &parent.as_deref().map_or("null".to_owned(), quote),
        );
        lines[idx.position()].rewrite(&text, why.clone());
    }
    let session = if links.is_empty() {
        first
    } else {
        // Both together would double the memory.
        drop(first);
        Some(built(&lines))
    };
    let notes = lines
        .into_iter()
        .enumerate()
        .flat_map(|(idx, line)| {
            line.reasons.into_iter().map(move |why| (EntryIndex::from_position(idx), why))
        })
        .collect();
    ReadableSession { session, notes, removed: gone }
}

/// Splits an entry into one line per object: objects on one line, an object after a truncated one, and
/// invalid UTF-8 are rewritten.
fn split_objects(entry: &Entry) -> Vec<RepairLine> {
    let same = || RepairLine { entry: entry.clone(), findings: Vec::new(), reasons: Vec::new() };
    let at = entry.at();
    let part = |text: &str, byte_offset: u64, why: &'static str| {
        let at = Position { byte_offset: at.byte_offset + byte_offset, ..at };
        let (entry, findings) = Entry::parse_at(text.as_bytes(), Ending::Newline, at);
        RepairLine { entry, findings, reasons: vec![why.into()] }
    };
    let text = entry.text();
    if entry.kind() == Kind::Bad {
        return match complete_tail(text) {
            Some(start) => {
                let mut head = part(&text[..start], 0, "truncated");
                head.reasons.clear();
                vec![head, part(&text[start..], start as u64, "separated from a truncated line")]
            }
            None => {
                // Parsing again yields the findings of the line.
                let (entry, findings) = Entry::parse_at(entry.as_bytes(), Ending::Newline, at);
                vec![RepairLine { entry, findings, reasons: Vec::new() }]
            }
        };
    }
    let body = text.trim_start_matches('\u{feff}');
    if entry.shares_line() {
        return vec![part(body.trim(), 0, "moved to a separate line")];
    }
    if body.len() < text.len() || std::str::from_utf8(entry.as_bytes()).is_err() {
        return vec![part(body, 0, "rewritten as plain UTF-8")];
    }
    let mut line = same();
    (line.entry, line.findings) = Entry::parse_at(entry.as_bytes(), entry.ending(), at);
    if line.findings.iter().any(|finding| finding.code == Code::DuplicateKey) {
        let text = keep_last_keys(entry);
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
    starts.filter(begins).take(256).find(|at| {
        Json::parse(&text[*at..]).is_some_and(|json| json.is_object() && json.get(key::TYPE).is_some())
    })
}

/// Keeps the last of several members with the same key.
fn keep_last_keys(entry: &Entry) -> String {
    let text = entry.text();
    let names: Vec<String> = entry.members().map(|(key, _)| key.name().into_owned()).collect();
    let Some(object) = entry.object() else { return text.to_owned() };
    let goes = |at: usize| names[at + 1..].contains(&names[at]);
    apply(text, &mut delete_parts(text, object.json(), |at, _, _| goes(at)))
}

/// Adds missing uuids, timestamps and parents to the messages.
fn add_missing_fields(lines: &mut [RepairLine], seed: &PlanSeed) {
    let later: Vec<Option<Millis>> = lines.iter().map(|line| line.entry.timestamp()).collect();
    let mut time: Option<Millis> = None;
    let mut before: Option<String> = None;
    for at in 0..lines.len() {
        let entry = &lines[at].entry;
        if !is_tree(entry) {
            continue;
        }
        let speaks = matches!(entry.kind(), Kind::User | Kind::Assistant);
        let text_of = |key: &str| entry.get(key).and_then(Json::as_str);
        let (has_uuid, has_time) = (text_of(key::UUID).is_some(), text_of(key::TIMESTAMP).is_some());
        let own = entry.timestamp();
        if speaks && !has_uuid {
            let uuid = seed.uuid(&format!("line {} at {}", entry.at().line_no, entry.at().byte_offset));
            let text = with_value(entry, key::UUID, &quote(&uuid));
            lines[at].rewrite(&text, "uuid added");
            let entry = &lines[at].entry;
            if let Some(before) = before.as_deref().filter(|_| entry.parent_uuid().is_none()) {
                let text = with_value(entry, key::PARENT_UUID, &quote(before));
                lines[at].rewrite(&text, "attached to the previous line");
            }
        }
        if speaks && !has_time {
            let next = || later[at..].iter().flatten().next().map(|next| next - 1);
            let made = time.map(|time| time + 1).or_else(next).unwrap_or(seed.now);
            let text = with_value(&lines[at].entry, key::TIMESTAMP, &quote(&moment(made)));
            lines[at].rewrite(&text, "timestamp added");
            time = Some(made);
        }
        time = own.or(time);
        if !lines[at].entry.is_sidechain() {
            before = lines[at].entry.uuid().map(Cow::into_owned).or(before);
        }
    }
}

/// Removes identical lines with the same uuid, and gives different lines a new one.
fn rename_copies(lines: &mut Vec<RepairLine>, gone: &mut Vec<(u64, Cow<'static, str>)>, seed: &PlanSeed) {
    let mut first: FxHashMap<String, usize> = FxHashMap::default();
    // The current replacement of each uuid that was used more than once.
    let mut now: FxHashMap<String, String> = FxHashMap::default();
    let mut copies: FxHashSet<usize> = FxHashSet::default();
    for at in 0..lines.len() {
        let entry = &lines[at].entry;
        if !is_tree(entry) {
            continue;
        }
        if let Some(renamed) = entry.parent_uuid().and_then(|parent| now.get(&*parent)).cloned() {
            let text = with_value(entry, key::PARENT_UUID, &quote(&renamed));
            lines[at].rewrite(&text, "re-parented to the renamed line");
        }
        let entry = &lines[at].entry;
        let Some(uuid) = entry.uuid().map(Cow::into_owned) else { continue };
        let Some(&other) = first.get(&uuid) else {
            first.insert(uuid, at);
            continue;
        };
        if has_same_content(&lines[other].entry, entry) {
            gone.push((
                entry.at().line_no,
                Cow::Owned(format!("duplicate of line {}", lines[other].entry.at().line_no)),
            ));
            copies.insert(at);
            continue;
        }
        let own = seed.uuid(&format!("{uuid} of line {} at {}", entry.at().line_no, entry.at().byte_offset));
        let text = with_value(entry, key::UUID, &quote(&own));
        now.insert(uuid, own);
        lines[at].rewrite(&text, "new uuid (duplicate)");
    }
    let mut at = 0;
    lines.retain(|_| {
        at += 1;
        !copies.contains(&(at - 1))
    });
}

fn has_same_content(one: &Entry, other: &Entry) -> bool {
    let said = |entry: &Entry| {
        entry.get(key::MESSAGE).or_else(|| entry.get(key::CONTENT)).map(|json| json.raw().to_owned())
    };
    one.kind() == other.kind()
        && said(one) == said(other)
        && (said(one).is_some() || one.text() == other.text())
}

/// Returns the lines with a wrong parent, each with its new parent and the reason.
fn parent_fixes(session: &Session) -> Vec<(EntryIndex, Option<String>, Cow<'static, str>)> {
    let entries = session.entries();
    let is_main =
        |idx: EntryIndex| session.in_tree(idx) && !session.is_sidechain(idx) && is_tree(&entries[idx]);
    let compaction = open_compaction(session);
    let mut links = Vec::new();
    let mut before: Option<EntryIndex> = None;
    for idx in entries.indices().filter(|&idx| is_main(idx)) {
        let hang = |above: Option<EntryIndex>, why: &'static str, links: &mut Vec<_>| {
            let Some(uuid) = above.and_then(|above| entries[above].uuid()) else { return };
            links.push((idx, Some(uuid.into_owned()), Cow::Borrowed(why)));
        };
        let speaks = entries[idx].kind() == Kind::Assistant
            || session.input(idx).is_some_and(|input| input.opens_turn());
        match session.parent(idx) {
            ParentLink::Dangling => {
                let idle = entries[idx].kind() == Kind::Progress && session.children(idx).next().is_none();
                let circle = entries[idx].parent_uuid().is_some_and(|parent| session.find(&parent).is_some());
                if circle && before.is_none() {
                    links.push((idx, None, Cow::Borrowed("cycle broken (now the root)")));
                } else if circle {
                    hang(before, "cycle broken (attached to the previous line)", &mut links);
                } else if !idle {
                    hang(before, "reattached to the previous line (parent missing)", &mut links);
                }
            }
            ParentLink::Entry(parent) if parent > idx => {
                let above = session.ancestors(idx).skip(1).find(|&above| above < idx && is_main(above));
                hang(above.or(before), "re-parented (parent follows the line)", &mut links);
            }
            ParentLink::Entry(parent)
                if compaction.is_some_and(|boundary| parent < boundary && idx > boundary) && speaks =>
            {
                hang(before, "re-parented after the compaction", &mut links);
            }
            ParentLink::Entry(_) => {
                if let Some(end) = lost_retry(session, idx) {
                    hang(Some(end), "re-parented to the reply of the retry", &mut links);
                }
            }
            ParentLink::Root => {}
        }
        before = Some(idx);
    }
    links
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

/// Returns the end of the reply that a prompt below an API error skips.
fn lost_retry(session: &Session, idx: EntryIndex) -> Option<EntryIndex> {
    if !session.input(idx).is_some_and(|input| input.opens_turn()) {
        return None;
    }
    let subtype = |idx: EntryIndex| session.entries()[idx].lens::<System<'_>>().and_then(System::subtype);
    let errors: Vec<EntryIndex> = session
        .ancestors(idx)
        .skip(1)
        .take_while(|&above| session.entries()[above].kind() == Kind::System)
        .filter(|&above| subtype(above).as_deref() == Some(value::API_ERROR))
        .collect();
    let ParentLink::Entry(fork) = session.parent(*errors.last()?) else { return None };
    let is_reply = |child: &EntryIndex| {
        *child < idx && !errors.contains(child) && session.entries()[*child].kind() == Kind::Assistant
    };
    let mut end = session.children(fork).find(is_reply)?;
    while let Some(next) = session.children(end).filter(|&child| child < idx).last() {
        end = next;
    }
    Some(end)
}
