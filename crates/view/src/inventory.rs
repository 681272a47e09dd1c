//! The inventory: counts of everything in the lines of logs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use threadline_entry::lens::{
    ATTACHMENT_TYPES, AttachmentLine, BLOCK_TYPES, PROGRESS_TYPES, Progress, SYSTEM_SUBTYPES, System, drift,
};
use threadline_entry::{Entry, Kind, Millis, value};
use threadline_session::{Session, SessionFamily};

use crate::call_count::count_tools;
use crate::error_count::count_errors;
use crate::transcript_builder::active_span;

/// Counts by name.
pub type NameCounts = BTreeMap<String, u64>;

/// The figures of a session: the same as in lists and on its page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Turns of the active conversation.
    pub turns: u64,
    /// Errors, with those of sub-agents: see [`count_errors`].
    pub errors: u64,
    /// Tool calls by tool, with those of sub-agents: see [`count_tools`].
    pub tools: NameCounts,
    /// Sub-agents, with a log of their own or inside that of the session.
    pub agents: u64,
    /// When the session started, and when it was last active.
    pub active: Option<(Millis, Millis)>,
}

impl SessionCounts {
    /// Counts a session with its sub-agents.
    pub fn of(family: &SessionFamily) -> Self {
        // The turns of a sub-agent's log are not turns of a conversation.
        let turns = if family.main.is_agent_log() { 0 } else { family.main.turns().len() };
        Self {
            turns: turns as u64,
            errors: count_errors(family) as u64,
            tools: count_tools(family),
            agents: family.agents.len() as u64,
            active: active_span(&family.main),
        }
    }

    /// Returns the number of tool calls.
    pub fn tool_calls(&self) -> u64 {
        self.tools.values().sum()
    }

    /// Adds another session.
    fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.errors += other.errors;
        for (name, count) in other.tools {
            *count_of(&mut self.tools, &name) += count;
        }
        self.agents += other.agents;
        self.active = match (self.active, other.active) {
            (Some((start, end)), Some((from, to))) => Some((start.min(from), end.max(to))),
            (active, other) => active.or(other),
        };
    }
}

/// Counts of everything in the lines of logs, as written: every copy of a block is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of our JSON, where docs/json.md explains them")]
pub struct Inventory {
    pub files: u64,
    pub bytes: u64,
    pub lines: u64,
    pub bad_lines: u64,
    pub types: NameCounts,
    pub system_subtypes: NameCounts,
    pub progress_types: NameCounts,
    pub attachment_types: NameCounts,
    pub block_types: NameCounts,
    pub stop_reasons: NameCounts,
    pub models: NameCounts,
    pub versions: NameCounts,
    pub messages: u64,
    pub tool_results: u64,
    pub unanswered_calls: u64,
    pub orphan_results: u64,
    pub branches: u64,
    pub compactions: u64,
    /// The figures of the session or sessions; `None` for the log of a sub-agent whose session is counted.
    pub session: Option<SessionCounts>,
    /// Types that no lens defines.
    pub unknown_types: BTreeMap<String, DriftCount>,
    /// Keys that no lens defines, by path.
    pub unknown_keys: BTreeMap<String, DriftCount>,
}

/// The number of occurrences of an unknown name, and the versions that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftCount {
    /// The number of occurrences.
    pub count: u64,
    /// The versions on the lines, or on the last preceding line that has one.
    pub versions: BTreeSet<Arc<str>>,
}

impl Inventory {
    /// Counts one log of `bytes` bytes.
    pub fn of(session: &Session, bytes: u64) -> Self {
        let mut inventory = Self { files: 1, bytes, ..Self::default() };
        let mut version = Arc::from("");
        let mut last_line = 0;
        for entry in session.entries() {
            if entry.kind() == Kind::Blank {
                continue;
            }
            let same_line = entry.at().line_no == last_line;
            last_line = entry.at().line_no;
            inventory.lines += u64::from(!same_line);
            // A line with several objects is as malformed as one without any.
            if entry.kind() == Kind::Bad || entry.shares_line() {
                inventory.bad_lines += u64::from(!same_line);
                continue;
            }
            inventory.add_line(entry, &mut version);
        }
        inventory.add_session(session);
        inventory
    }

    fn add_line(&mut self, entry: &Entry, version: &mut Arc<str>) {
        if let Some(own) = entry.version() {
            add(&mut self.versions, &own);
            if **version != *own {
                *version = own.into();
            }
        }
        let name = entry.type_name().unwrap_or("(none)".into());
        add(&mut self.types, &name);
        if entry.kind() == Kind::Unknown {
            count_unknown(&mut self.unknown_types, &name, version);
        }
        match entry.kind() {
            Kind::System => {
                let subtype = entry.lens::<System<'_>>().and_then(System::subtype);
                self.add_named(
                    |own| &mut own.system_subtypes,
                    subtype.as_deref(),
                    ("system", SYSTEM_SUBTYPES),
                    version,
                );
            }
            Kind::Progress => {
                let body = entry.lens::<Progress<'_>>().and_then(Progress::data);
                let kind = body.and_then(|body| body.kind());
                self.add_named(
                    |own| &mut own.progress_types,
                    kind.as_deref(),
                    ("progress", PROGRESS_TYPES),
                    version,
                );
            }
            Kind::Attachment => {
                let body = entry.lens::<AttachmentLine<'_>>().and_then(AttachmentLine::attachment);
                let kind = body.and_then(|body| body.kind());
                self.add_named(
                    |own| &mut own.attachment_types,
                    kind.as_deref(),
                    ("attachment", ATTACHMENT_TYPES),
                    version,
                );
            }
            Kind::User | Kind::Assistant => self.add_message(entry, version),
            _ => {}
        }
        drift(entry, &mut |path| count_unknown(&mut self.unknown_keys, path, version));
    }

    fn add_message(&mut self, entry: &Entry, version: &Arc<str>) {
        let Some(message) = entry.message() else { return };
        if entry.kind() == Kind::Assistant {
            add(&mut self.stop_reasons, &message.stop_reason().unwrap_or("null".into()));
            if let Some(model) = message.model() {
                add(&mut self.models, &model);
            }
        }
        for block in message.blocks() {
            let kind = block.kind();
            self.add_named(|own| &mut own.block_types, kind.as_deref(), ("block", BLOCK_TYPES), version);
            self.tool_results += u64::from(kind.as_deref() == Some(value::TOOL_RESULT));
        }
    }

    /// Counts a name in its group, and as unknown if it is not a known name of that group.
    fn add_named(
        &mut self,
        counts: fn(&mut Self) -> &mut NameCounts,
        name: Option<&str>,
        (family, known): (&str, &[&str]),
        version: &Arc<str>,
    ) {
        add(counts(self), name.unwrap_or("(none)"));
        if let Some(name) = name.filter(|name| !known.contains(name)) {
            count_unknown(&mut self.unknown_types, &format!("{family}/{name}"), version);
        }
    }

    /// Adds the counts that depend on the whole log.
    fn add_session(&mut self, session: &Session) {
        let of_user = session
            .entries()
            .iter()
            .filter(|entry| entry.kind() == Kind::User && !entry.shares_line())
            .count();
        self.messages += (session.replies().len() + of_user) as u64;
        self.unanswered_calls +=
            session.tool_calls().iter().filter(|call| call.results.is_empty()).count() as u64;
        self.orphan_results += session.orphan_results().map(|(_, results)| results.len() as u64).sum::<u64>();
        self.branches += session.branches().len() as u64;
        self.compactions += session.compactions().len() as u64;
    }

    /// Adds another inventory to this one.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.files += other.files;
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.bad_lines += other.bad_lines;
        for (into, from) in [
            (&mut self.types, other.types),
            (&mut self.system_subtypes, other.system_subtypes),
            (&mut self.progress_types, other.progress_types),
            (&mut self.attachment_types, other.attachment_types),
            (&mut self.block_types, other.block_types),
            (&mut self.stop_reasons, other.stop_reasons),
            (&mut self.models, other.models),
            (&mut self.versions, other.versions),
        ] {
            for (name, count) in from {
                *count_of(into, &name) += count;
            }
        }
        self.messages += other.messages;
        self.tool_results += other.tool_results;
        self.unanswered_calls += other.unanswered_calls;
        self.orphan_results += other.orphan_results;
        self.branches += other.branches;
        self.compactions += other.compactions;
        if let Some(session) = other.session {
            self.session.get_or_insert_default().add(session);
        }
        for (into, from) in
            [(&mut self.unknown_types, other.unknown_types), (&mut self.unknown_keys, other.unknown_keys)]
        {
            for (name, drift) in from {
                let known = count_of(into, &name);
                known.count += drift.count;
                known.versions.extend(drift.versions);
            }
        }
        self
    }
}

fn add(counts: &mut NameCounts, name: &str) {
    *count_of(counts, name) += 1;
}

/// Returns the count of a name.
fn count_of<'c, C: Default>(counts: &'c mut BTreeMap<String, C>, name: &str) -> &'c mut C {
    // Not `entry`, which would copy the name of each line.
    if !counts.contains_key(name) {
        counts.insert(name.to_owned(), C::default());
    }
    counts.get_mut(name).expect("inserted above")
}

fn count_unknown(unknown: &mut BTreeMap<String, DriftCount>, name: &str, version: &Arc<str>) {
    let drift = count_of(unknown, name);
    drift.count += 1;
    if !version.is_empty() && !drift.versions.contains(version) {
        drift.versions.insert(Arc::clone(version));
    }
}
