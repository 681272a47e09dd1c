//! Renames ids: applies the ids of a new session to every reference.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use memchr::memmem;
use threadline_entry::lens::REFERENCES;
use threadline_entry::write::ForkOrigin;
use threadline_entry::{Entry, Json, JsonKey, JsonKind, key, replace_lone_surrogates, value};

use crate::draft::EditDraft;
use crate::plan::{EditPlan, PlanOptions, PlanTarget};
use crate::redact::each_entry;
use crate::seed::PlanSeed;
use crate::splice::{Splice, delete_parts, quote, set, span};

/// The mapping from the ids of a log to those of the result.
#[derive(Clone, Debug)]
pub(crate) struct IdRenamer {
    new: Option<NewSessionIds>,
    /// The uuids of removed lines, with the indices of the lines that replace them.
    pub(crate) replacements: HashMap<String, usize>,
    /// Path fragments to replace, with their replacements.
    paths: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
struct NewSessionIds {
    old_id: String,
    id: String,
    seed: PlanSeed,
}

/// Fields that belong to one session only. Claude Code's own fork removes them too.
const SESSION_FIELDS: &[&str] = &[key::TEAM_NAME, key::AGENT_NAME, key::SLUG, key::FORKED_FROM];

/// Fields that are not searched for references: message content, and fields that are set elsewhere.
const SKIPPED_FIELDS: &[&str] = &[key::MESSAGE, key::TOOL_USE_RESULT, key::UUID, key::PARENT_UUID];

/// The length of a uuid. No id is longer.
const UUID_LENGTH: usize = 36;

impl IdRenamer {
    pub(crate) fn new(draft: &EditDraft<'_>, options: &PlanOptions) -> Self {
        let mut paths = draft.moved_paths.clone();
        let new = match &options.target {
            PlanTarget::New(id) => Some(NewSessionIds {
                old_id: draft.session.id().unwrap_or_default().into_owned(),
                id: id.clone(),
                seed: options.seed.clone(),
            }),
            PlanTarget::InPlace | PlanTarget::KeepOrder => None,
        };
        if let Some(NewSessionIds { old_id, id, .. }) = &new {
            // Side files are in a folder named after the session.
            for folder in ["tool-results", "subagents"] {
                paths.push((format!("/{old_id}/{folder}/"), format!("/{id}/{folder}/")));
                let windows = |id: &str| format!(r"\\{id}\\{folder}\\");
                paths.push((windows(old_id), windows(id)));
            }
        }
        Self { new, replacements: HashMap::default(), paths }
    }

    /// Returns the new uuid of a line, or `None` if lines keep theirs.
    pub(crate) fn uuid(&self, old: &str) -> Option<String> {
        Some(self.new.as_ref()?.seed.uuid(old))
    }

    /// Adds the splices for all ids of a line, except for its own uuid and its parent.
    pub(crate) fn line(&self, plan: &EditPlan<'_>, entry: &Entry, out: &mut Vec<Splice>) {
        self.references(plan, entry, out);
        self.paths(entry, out);
        let Some(new) = &self.new else { return };
        let Some(object) = entry.object() else { return };
        let text = entry.text();
        // A reference to a call that is not in the log.
        let nowhere = |key: &str, value: Json<'_>| {
            let names =
                |uuid: &str| plan.session().find(uuid).is_some() || self.replacements.contains_key(uuid);
            key == key::SOURCE_TOOL_ASSISTANT_UUID && value.as_str().is_some_and(|uuid| !names(&uuid))
        };
        let goes = |key: &str, value: Json<'_>| SESSION_FIELDS.contains(&key) || nowhere(key, value);
        if entry.members().any(|(key, value)| goes(&key.name(), value)) {
            out.extend(delete_parts(text, object.json(), |_, key, value| {
                key.is_some_and(|key| goes(key, value))
            }));
        }
        if let Some(uuid) = entry.uuid() {
            let end = span(text, object.json().raw()).end - 1;
            let origin = ForkOrigin { session_id: &new.old_id, message_uuid: &uuid };
            out.push(Splice::new(end..end, format!(",\"{}\":{}", ForkOrigin::KEY, origin.to_json())));
        }
    }

    /// Adds the splices for references to lines that were removed or renamed.
    pub(crate) fn references(&self, plan: &EditPlan<'_>, entry: &Entry, out: &mut Vec<Splice>) {
        if self.new.is_none() && self.replacements.is_empty() {
            return;
        }
        for (key, value) in entry.members() {
            if SKIPPED_FIELDS.iter().chain(SESSION_FIELDS).any(|said| key.is(said)) {
                continue;
            }
            // The logical parent of a boundary is set together with its parent.
            if key.is(key::LOGICAL_PARENT_UUID) && crate::arrange::is_boundary(entry) && self.new.is_none() {
                continue;
            }
            let key = key.name();
            value.visit_nested(|value| {
                if value.kind() == JsonKind::String {
                    let inner = value.key().map(JsonKey::name);
                    let key = inner.as_deref().unwrap_or(&key);
                    let value = value.json();
                    let before = &entry.text()[..span(entry.text(), value.raw()).start];
                    let is_item = !before.trim_ascii_end().ends_with(':');
                    if let Some(id) = value.quoted().and_then(|id| self.id(plan, key, id, is_item)) {
                        out.push(Splice::replace(entry.text(), value.raw(), quote(&id)));
                    }
                }
                true
            });
        }
    }

    /// Returns the new value of an id, if it changes. An item of a list may be one of very many short texts,
    /// so it is an id only if it has the length of one, or is known.
    fn id(&self, plan: &EditPlan<'_>, key: &str, id: &str, is_item: bool) -> Option<String> {
        if id.len() > UUID_LENGTH || id.is_empty() {
            return None;
        }
        let is_likely = !is_item || id.len() == UUID_LENGTH;
        if is_likely && (key == key::SESSION_ID || key == key::SESSION_ID_SNAKE) {
            return self.new.as_ref().map(|new| new.id.clone());
        }
        if let Some(&place) = self.replacements.get(id) {
            return plan.uuid_at(place);
        }
        let new = self.new.as_ref()?;
        if id == new.old_id {
            return Some(new.id.clone());
        }
        let refers = is_likely && REFERENCES.contains(&key) && !id.starts_with("msg_");
        (refers || plan.session().find(id).is_some()).then(|| new.seed.uuid(id))
    }

    /// Adds the splices for moved paths, except inside thinking blocks, which are signed.
    pub(crate) fn paths(&self, entry: &Entry, out: &mut Vec<Splice>) {
        let text = entry.text();
        for (from, to) in &self.paths {
            let mut hits = memmem::find_iter(text.as_bytes(), from.as_bytes()).peekable();
            if hits.peek().is_none() {
                continue;
            }
            let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
            let thoughts: Vec<_> = blocks
                .filter(|block| block.is(value::THINKING) || block.is(value::REDACTED_THINKING))
                .map(|block| span(text, threadline_entry::lens::Lens::object(block).json().raw()))
                .collect();
            let is_in_thought = |hit: &usize| {
                let next = thoughts.partition_point(|thought| thought.end <= *hit);
                thoughts.get(next).is_some_and(|thought| thought.contains(hit))
            };
            for hit in hits.filter(|hit| !is_in_thought(hit)) {
                out.push(Splice::new(hit..hit + from.len(), to.as_str()));
            }
        }
    }

    /// Rewrites a log, or a file with one JSON object, to the ids of the new session.
    pub(crate) fn log(&self, plan: &EditPlan<'_>, log: &[u8], out: &mut Vec<u8>) {
        // A line that was removed from the session may still exist in this log.
        let mut own: HashSet<String> = HashSet::default();
        if !self.replacements.is_empty() {
            each_entry(log, |entry| {
                own.extend(
                    entry.uuid().filter(|uuid| self.replacements.contains_key(&**uuid)).map(Cow::into_owned),
                );
            });
        }
        if !own.is_empty() {
            let mut here = self.clone();
            here.replacements.retain(|uuid, _| !own.contains(uuid));
            return here.log(plan, log, out);
        }
        each_entry(log, |entry| {
            let mut splices = Vec::new();
            for key in [key::UUID, key::PARENT_UUID] {
                let old = entry.get(key).and_then(|json| json.as_str());
                let renamed = old.and_then(|old| match self.replacements.get(&*old) {
                    Some(&place) => plan.uuid_at(place),
                    None => self.uuid(&old),
                });
                if let Some(uuid) = renamed {
                    splices.extend(set(entry, key, &quote(&uuid)));
                }
            }
            self.line(plan, entry, &mut splices);
            if splices.is_empty() {
                out.extend(entry.as_bytes());
            } else {
                let text = crate::splice::apply(entry.text(), &mut splices);
                out.extend(replace_lone_surrogates(&text).as_bytes());
            }
            if entry.ending() == threadline_entry::Ending::Newline {
                out.push(b'\n');
            }
        });
    }
}
