//! Relations between sessions: forks and continued sessions.

use foldhash::HashSet;
use threadline_entry::Kind;

use crate::index::EntryIndex;
use crate::session::Session;

/// The common part of two logs, one of which was forked from the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkPoint {
    /// The number of entries in both logs.
    pub shared: usize,
    /// The last entry of the later log that is also in the earlier one.
    pub last_shared: EntryIndex,
}

/// Returns how `later` was forked from `earlier`, or `None` if they share no entry.
///
/// A fork or a continued session copies the history into a new file, with the same uuids and another
/// session id.
pub fn fork_point(earlier: &Session, later: &Session) -> Option<ForkPoint> {
    let known: HashSet<&str> = earlier.uuids().collect();
    let shared: Vec<EntryIndex> =
        later.uuids().filter(|uuid| known.contains(uuid)).filter_map(|uuid| later.find(uuid)).collect();
    Some(ForkPoint { shared: shared.len(), last_shared: shared.into_iter().max()? })
}

impl Session {
    /// Returns the id of the session that this one was forked from, as recorded on its lines.
    pub fn forked_from(&self) -> Option<String> {
        let mut origins =
            self.entries().iter().filter_map(|entry| entry.envelope()?.forked_from()?.session_id());
        origins.next().map(Into::into)
    }

    /// Returns the id of the previous session, if the id changed in mid-conversation, as when plan mode
    /// ends.
    ///
    /// In that case the first line still has the id of the previous session.
    pub fn previous_session(&self) -> Option<String> {
        let own = self.id()?;
        let first = self.entries().iter().find(|entry| entry.kind() != Kind::Blank)?;
        first.session_id().filter(|id| *id != own).map(Into::into)
    }
}
