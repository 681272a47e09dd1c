//! The beginnings of logs: the directory of a session, and the entry it shares with its forks.

use std::io::Read;

use threadline_entry::{decode, key, walk};

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
fn read_head<T>(mut log: impl Read, wanted: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let mut head = vec![0; HEAD];
    let mut filled = 0;
    loop {
        let read = log.read(&mut head[filled..]).ok()?;
        filled += read;
        let found = wanted(&head[..filled]);
        if found.is_some() || read == 0 || filled == MAX_HEAD {
            return found;
        }
        if filled == head.len() {
            head.resize(4 * filled, 0);
        }
    }
}

/// Reads the first uuid of a log, which forks share, from its beginning.
pub fn read_first_uuid(log: impl Read) -> Option<[u8; 36]> {
    read_head(log, |head| first_uuid(head)?.try_into().ok())
}

/// Returns the directory in which each session began.
pub fn directories(sessions: &[SearchedSession], open: &OpenLog) -> Vec<Option<String>> {
    parallel_map(sessions, |session| {
        read_head(open(session.logs.first()?).ok()?, |head| {
            Some(decode(walk::string_values(head, key::quoted::CWD).next()?).into_owned())
        })
    })
}
