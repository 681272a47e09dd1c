//! Forks: a forked session contains copies of the lines of its origin. A match that occurs in several
//! sessions is reported once, for the session that was active the longest time ago.

use std::collections::HashMap;

use crate::scan::{MatchOwners, SessionScan};

/// The sessions that contain copies of each other's lines.
pub(crate) struct ForkIndex<'a> {
    scan: SessionScan<'a>,
    /// Maps a session to its group in `scan.forks`.
    group_of: HashMap<usize, usize>,
    /// The owners of the matches of each group, computed on demand.
    owners: Vec<Option<MatchOwners>>,
}

impl<'a> ForkIndex<'a> {
    pub(crate) fn new(scan: SessionScan<'a>) -> Self {
        let groups = scan.forks.iter().enumerate();
        let group_of = groups.flat_map(|(group, members)| members.iter().map(move |member| (*member, group)));
        Self { scan, group_of: group_of.collect(), owners: scan.forks.iter().map(|_| None).collect() }
    }

    /// Returns whether a session and another one begin with the same entry.
    pub(crate) fn is_forked(&self, session: usize) -> bool {
        self.group_of.contains_key(&session)
    }

    /// Returns the number of copies in other sessions, or `None` if another session owns the match.
    pub(crate) fn copies(&mut self, session: usize, key: u64) -> Option<usize> {
        let Some(&group) = self.group_of.get(&session) else { return Some(0) };
        let scan = self.scan;
        let owners = self.owners[group].get_or_insert_with(|| scan.owners(&scan.forks[group]).0);
        match owners.get(&key) {
            Some((owner, _)) if *owner != session => None,
            Some((_, copies)) => Some(*copies),
            // Appended since the keys were collected.
            None => Some(0),
        }
    }
}
