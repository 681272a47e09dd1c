//! How sessions come from one another: transitions and forks.

use rustc_hash::FxHashSet;
use threadline_entry::Kind;

use crate::session::Session;

/// Two logs that share the beginning of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// How many entries both hold.
    pub shared: usize,
    /// The last entry of the later log that the earlier one has too.
    pub at: usize,
}

/// How `later` was forked from `earlier`: a fork or a continued session copies the history into a new
/// file, with the same uuids and another session id. `None` if they share nothing.
pub fn fork(earlier: &Session, later: &Session) -> Option<Fork> {
    let known: FxHashSet<&str> = earlier.uuids().collect();
    let shared: Vec<usize> =
        later.uuids().filter(|uuid| known.contains(uuid)).filter_map(|uuid| later.find(uuid)).collect();
    Some(Fork { shared: shared.len(), at: shared.into_iter().max()? })
}

impl Session {
    /// The session that this one says it was forked from.
    pub fn forked_from(&self) -> Option<String> {
        let mut origins =
            self.entries().iter().filter_map(|entry| entry.envelope()?.forked_from()?.session_id());
        origins.next().map(Into::into)
    }

    /// The session before this one, where the id changed in mid-conversation (as when plan mode ends).
    ///
    /// The first line then still carries the id of the session before.
    pub fn previous_session(&self) -> Option<String> {
        let own = self.id()?;
        let first = self.entries().iter().find(|entry| entry.kind() != Kind::Blank)?;
        first.session_id().filter(|id| *id != own).map(Into::into)
    }
}
