//! Which commands have a list of the files that they changed.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{BashEditDiff, BashResult, User};
use threadline_entry::{Entry, Kind};
use threadline_session::{EntryIndex, Session, ToolCall};

/// Returns whether a call runs a shell command.
pub(crate) fn is_shell(call: &ToolCall) -> bool {
    matches!(&*call.name, "Bash" | "PowerShell")
}

/// Returns the record of a command.
pub(crate) fn command_result<'s>(session: &'s Session, call: &ToolCall) -> Option<BashResult<'s>> {
    call.results.first().filter(|_| is_shell(call))?.record(session)?.of()
}

/// Returns the file changes listed in the result of a shell command.
pub(crate) fn command_diff<'s>(session: &'s Session, call: &ToolCall) -> Option<BashEditDiff<'s>> {
    command_result(session, call)?.bash_edit_diff()
}

/// The permission modes of a session, and those in which Claude Code lists the changes of commands.
pub(crate) struct Tracking<'s> {
    /// The prompts and other lines that name a mode, in order.
    modes: Vec<(EntryIndex, Cow<'s, str>)>,
    /// Modes in which a command has a list.
    listed: HashSet<String>,
    /// By version: whether Claude Code lists changes in the modes in which it does so by itself.
    is_recent: HashMap<String, bool>,
}

/// The first version of Claude Code that lists the changes of commands.
const FIRST_VERSION: [u32; 3] = [2, 1, 269];

/// The modes in which it does so without being asked to.
const TRACKED_MODES: &[&str] = &["bypassPermissions", "auto"];

impl<'s> Tracking<'s> {
    pub(crate) fn of(session: &'s Session) -> Self {
        let named = |entry: &'s Entry| entry.lens::<User<'_>>()?.permission_mode();
        let lines = session.entries().enumerated().filter(|(_, entry)| entry.kind() == Kind::User);
        let modes: Vec<_> = lines.filter_map(|(idx, entry)| Some((idx, named(entry)?))).collect();
        let mut tracking = Self { modes, listed: HashSet::default(), is_recent: HashMap::default() };
        for call in session.tool_calls().iter().filter(|call| command_diff(session, call).is_some()) {
            tracking.listed.insert(tracking.mode_at(call.entry_idx).to_owned());
        }
        tracking
    }

    fn mode_at(&self, line: EntryIndex) -> &str {
        let n = self.modes.partition_point(|(idx, _)| *idx <= line);
        n.checked_sub(1).map_or("", |n| &*self.modes[n].1)
    }

    /// Returns whether the changes of a command would be in its result: a command of the main session in a
    /// git repository, that succeeds in the foreground.
    pub(crate) fn is_on(&mut self, session: &Session, line: EntryIndex) -> bool {
        let mode = self.mode_at(line).to_owned();
        if self.listed.contains(&mode) {
            return true;
        }
        let entry = &session.entries()[line];
        let is_in_git = entry.git_branch().is_some_and(|branch| !branch.is_empty());
        is_in_git
            && TRACKED_MODES.contains(&&*mode)
            && entry.version().is_some_and(|version| {
                *self.is_recent.entry(version.into_owned()).or_insert_with_key(|version| is_recent(version))
            })
    }
}

fn is_recent(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let parts: [u32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    parts >= FIRST_VERSION
}
