//! The beginnings of logs: the directory of a session, and the entry it shares with its forks.

use std::io::Read;

use threadline_entry::{Entry, decode, key, walk};

use crate::query::Query;
use crate::scan::{OpenLog, SearchedSession, parallel_map};
use crate::searcher::first_uuid;

/// Removes the sessions that the `session:` and `project:` fields of a query exclude.
pub fn retain_matching(sessions: &mut Vec<SearchedSession>, query: &Query, open: &OpenLog) {
    sessions.retain(|session| query.matches_session(&session.id));
    if query.has_project_filter() {
        let mut directories = directories(sessions, open).into_iter();
        sessions.retain(|session| {
            let cwd = directories.next().flatten().unwrap_or_default();
            query.matches_project(&[&cwd, &session.folder])
        });
    }
}

/// The number of bytes read from the beginning of a log, at first and at most.
const HEAD: usize = 1 << 12;
const MAX_HEAD: usize = 1 << 20;

/// Reads the beginning of a log until `wanted` returns a value, the file ends, or `MAX_HEAD` bytes are read.
/// The second argument of `wanted` is whether nothing more will be read.
fn read_head<T>(mut log: impl Read, wanted: impl Fn(&[u8], bool) -> Option<T>) -> Option<T> {
    let mut head = vec![0; HEAD];
    let mut filled = 0;
    loop {
        let read = log.read(&mut head[filled..]).ok()?;
        filled += read;
        let is_end = read == 0 || filled == MAX_HEAD;
        let found = wanted(&head[..filled], is_end);
        if found.is_some() || is_end {
            return found;
        }
        if filled == head.len() {
            head.resize(4 * filled, 0);
        }
    }
}

/// Reads the first uuid of a log, which forks share, from its beginning.
pub fn read_first_uuid(log: impl Read) -> Option<[u8; 36]> {
    read_head(log, |head, _| first_uuid(head)?.try_into().ok())
}

/// The uuids of the first message of a log, by which forks are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstUuids {
    /// Its own uuid. Forks of Claude Code keep it.
    pub own: [u8; 36],
    /// The uuid of the message that it is a copy of, if the line names it.
    pub origin: Option<[u8; 36]>,
}

impl FirstUuids {
    /// Reads the uuids of the first message of a log from its beginning.
    pub fn read(log: impl Read) -> Option<Self> {
        read_head(log, |head, is_end| {
            let mut lines = head.split_inclusive(|byte| *byte == b'\n');
            let (line, own) = lines.find_map(|line| Some((line, first_uuid(line)?.try_into().ok()?)))?;
            // The members of a line have no order, so all of it is needed.
            (line.ends_with(b"\n") || is_end).then(|| Self { own, origin: origin_uuid(line) })
        })
    }

    /// Returns all of them.
    pub fn iter(&self) -> impl Iterator<Item = [u8; 36]> + use<> {
        [Some(self.own), self.origin].into_iter().flatten()
    }
}

/// Returns the uuid of the message that a line is a copy of.
fn origin_uuid(line: &[u8]) -> Option<[u8; 36]> {
    // Few lines have one, and parsing takes time.
    memchr::memmem::find(line, key::quoted::FORKED_FROM.as_bytes())?;
    let (entry, _) = Entry::parse(line.trim_ascii());
    entry.envelope()?.forked_from()?.message_uuid()?.as_bytes().try_into().ok()
}

/// Returns the directory in which each session began.
pub fn directories(sessions: &[SearchedSession], open: &OpenLog) -> Vec<Option<String>> {
    parallel_map(sessions, |session| {
        read_head(open(session.logs.first()?).ok()?, |head, _| {
            Some(decode(walk::string_values(head, key::quoted::CWD).next()?).into_owned())
        })
    })
}
