//! Forks: a forked session contains copies of the lines of its origin. A match that occurs in several
//! sessions is reported once, for the session with the oldest modification time.

use std::collections::HashMap;

use crate::scan::SessionScan;

/// The sessions that contain copies of each other's lines.
pub(crate) struct ForkIndex<'a> {
    scan: SessionScan<'a>,
    /// Maps a session to its family.
    family_of: HashMap<usize, usize>,
    families: Vec<ForkFamily>,
}

/// Sessions that begin with the same entry.
struct ForkFamily {
    /// Sorted by modification time, latest first.
    members: Vec<usize>,
    /// For each key, the session it is reported for and the number of other sessions with it. Computed on
    /// demand.
    owners: Option<HashMap<u64, (usize, usize)>>,
}

impl<'a> ForkIndex<'a> {
    pub(crate) fn new(scan: SessionScan<'a>) -> Self {
        let mut by_root: HashMap<[u8; 36], Vec<usize>> = HashMap::new();
        for (session, searched) in scan.sessions.iter().enumerate() {
            if let Some(root) = searched.first_uuid {
                by_root.entry(root).or_default().push(session);
            }
        }
        let mut all = Self { scan, family_of: HashMap::new(), families: Vec::new() };
        for members in by_root.into_values().filter(|members| members.len() > 1) {
            for member in &members {
                all.family_of.insert(*member, all.families.len());
            }
            all.families.push(ForkFamily { members, owners: None });
        }
        all
    }

    /// Returns whether a session and another one begin with the same entry.
    pub(crate) fn is_forked(&self, session: usize) -> bool {
        self.family_of.contains_key(&session)
    }

    /// Returns the number of copies in other sessions, or `None` if another session owns the match.
    pub(crate) fn copies(&mut self, session: usize, key: u64) -> Option<usize> {
        let scan = self.scan;
        let Some(&family) = self.family_of.get(&session) else { return Some(0) };
        let family = &mut self.families[family];
        let owners = family.owners.get_or_insert_with(|| owners(scan, &family.members));
        match owners.get(&key) {
            Some((owner, _)) if *owner != session => None,
            Some((_, copies)) => Some(*copies),
            // Appended since the keys were collected.
            None => Some(0),
        }
    }
}

fn owners(scan: SessionScan<'_>, members: &[usize]) -> HashMap<u64, (usize, usize)> {
    let mut owners: HashMap<u64, (usize, usize)> = HashMap::new();
    // Sessions are sorted by modification time, latest first. The reverse order makes the oldest the owner.
    for &member in members.iter().rev() {
        let mut keys = scan.keys(member);
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            owners.entry(key).and_modify(|(_, copies)| *copies += 1).or_insert((member, 0));
        }
    }
    owners
}
