//! Forks: a session that continues another holds a copy of its lines. What is found in several is told once,
//! with the one that was written to the longest time ago.

use std::collections::HashMap;

use crate::head;
use crate::scan::Scan;

/// Which sessions hold copies of each other's lines.
pub(crate) struct Forks<'a> {
    scan: Scan<'a>,
    /// Known once something was found that may have copies.
    families: Option<Families>,
}

struct Families {
    /// By session.
    family_of: HashMap<usize, usize>,
    families: Vec<Family>,
}

/// Sessions that begin alike.
struct Family {
    /// The last modified first.
    members: Vec<usize>,
    /// For each key, the session that it is told with and how many others hold it; known once asked for.
    owners: Option<HashMap<u64, (usize, usize)>>,
}

impl<'a> Forks<'a> {
    pub(crate) fn new(scan: Scan<'a>) -> Self {
        Self { scan, families: None }
    }

    /// How many copies others hold of what was found in `session`; `None` if another session owns it.
    pub(crate) fn copies(&mut self, session: usize, key: u64) -> Option<usize> {
        let scan = self.scan;
        let families = self.families.get_or_insert_with(|| Families::of(scan));
        let Some(&family) = families.family_of.get(&session) else { return Some(0) };
        let family = &mut families.families[family];
        let owners = family.owners.get_or_insert_with(|| owners(scan, &family.members));
        match owners.get(&key) {
            Some((owner, _)) if *owner != session => None,
            Some((_, copies)) => Some(*copies),
            // Written since.
            None => Some(0),
        }
    }
}

impl Families {
    fn of(scan: Scan<'_>) -> Self {
        let roots = head::roots(scan.sessions, scan.open);
        let mut by_root: HashMap<[u8; 36], Vec<usize>> = HashMap::new();
        for (session, root) in roots.into_iter().enumerate() {
            if let Some(root) = root {
                by_root.entry(root).or_default().push(session);
            }
        }
        let mut all = Self { family_of: HashMap::new(), families: Vec::new() };
        for members in by_root.into_values().filter(|members| members.len() > 1) {
            for member in &members {
                all.family_of.insert(*member, all.families.len());
            }
            all.families.push(Family { members, owners: None });
        }
        all
    }
}

fn owners(scan: Scan<'_>, members: &[usize]) -> HashMap<u64, (usize, usize)> {
    let mut owners: HashMap<u64, (usize, usize)> = HashMap::new();
    // Sessions are listed the last modified first, so the oldest is asked first here.
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
