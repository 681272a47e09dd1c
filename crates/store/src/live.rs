//! Detects whether a session is open in Claude Code.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use threadline_entry::{Entry, Json, key};

use crate::home::Home;
use crate::last_active::read_last_message;
use crate::regular_file;
use crate::session_file::SessionFile;

/// Why a session is considered open in Claude Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveEvidence {
    /// This process has it open, according to Claude Code's own list of processes.
    Process(u64),
    /// Its last line was written this long ago.
    RecentLine(Duration),
}

/// A session is live without a process if its log was modified, and its last message written, within this
/// time. The modification time alone says nothing: a file that was edited or copied is new, but not in use.
const LIVE_AGE: Duration = Duration::from_secs(120);

/// The sessions that processes of Claude Code have open, and the one rule by which a session is live.
#[derive(Clone, Debug, Default)]
pub struct LiveRule {
    pids: HashMap<String, u64>,
}

impl LiveRule {
    /// Reads Claude Code's lists of processes in some homes. Entries may be stale: one counts only while its
    /// process exists.
    pub fn read<'a>(homes: impl IntoIterator<Item = &'a Home>) -> Self {
        let mut pids = HashMap::new();
        for home in homes {
            let Ok(entries) = fs_err::read_dir(home.root().join("sessions")) else { continue };
            for (id, pid) in entries.flatten().filter_map(|entry| process_entry(&entry.path())) {
                if process_exists(pid) {
                    pids.entry(id).and_modify(|known: &mut u64| *known = pid.min(*known)).or_insert(pid);
                }
            }
        }
        Self { pids }
    }

    /// Returns whether a session is live at `now`, and how this was detected, given when its log was modified
    /// and when its last message was written, if it has one.
    ///
    /// Older versions of Claude Code keep no list of processes, so a log that has just grown counts, too.
    pub fn evidence(
        &self,
        id: &str,
        modified: SystemTime,
        last_message: Option<SystemTime>,
        now: SystemTime,
    ) -> Option<LiveEvidence> {
        if let Some(pid) = self.pids.get(id) {
            return Some(LiveEvidence::Process(*pid));
        }
        // A time in the future is that of another clock.
        let age = |time: SystemTime| now.duration_since(time).unwrap_or_default();
        let age_of_message = age(last_message?);
        (age(modified) < LIVE_AGE && age_of_message < LIVE_AGE)
            .then_some(LiveEvidence::RecentLine(age_of_message))
    }
}

/// Returns whether one session is live at `now`, and how this was detected; see [`LiveRule`].
pub fn detect_live(file: &SessionFile, now: SystemTime) -> Option<LiveEvidence> {
    let modified = fs_err::metadata(&file.path).and_then(|metadata| metadata.modified());
    let is_recent = |modified: &SystemTime| now.duration_since(*modified).unwrap_or_default() < LIVE_AGE;
    // The log of a session that was not modified need not be read.
    let modified = modified.ok().filter(is_recent);
    let last_message = modified.and_then(|_| read_last_message(&file.path));
    LiveRule::read(&file.home).evidence(&file.id, modified.unwrap_or(UNIX_EPOCH), last_message, now)
}

/// Returns the session and the process of an entry in Claude Code's list of processes.
fn process_entry(path: &Path) -> Option<(String, u64)> {
    let (entry, _) = Entry::parse(regular_file::read(path).ok()?.trim_ascii());
    let id = entry.get(key::SESSION_ID)?.as_str()?.into_owned();
    let by_name = || path.file_stem()?.to_str()?.parse().ok();
    Some((id, entry.get("pid").and_then(Json::as_u64).or_else(by_name)?))
}

/// Returns the id of the session that a process of Claude Code has open, given the folder of the home.
pub fn session_of_process(home: &Path, pid: u32) -> Option<String> {
    Some(process_entry(&home.join("sessions").join(format!("{pid}.json")))?.0)
}

/// Whether a process with this id exists.
#[cfg(unix)]
fn process_exists(pid: u64) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // A process of another user exists, too.
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// Whether a process with this id exists. It is assumed to: a wrong answer would allow an edit in place.
#[cfg(not(unix))]
fn process_exists(_: u64) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_session_is_live_while_its_process_runs() {
        let dir = tempfile::tempdir().unwrap();
        let file = SessionFile::at(dir.path().join("projects/-p/s1.jsonl"));
        let live = || detect_live(&file, UNIX_EPOCH);
        assert_eq!(live(), None);
        let put = |name: &str, text: String| {
            fs_err::create_dir_all(dir.path().join("sessions")).unwrap();
            fs_err::write(dir.path().join("sessions").join(name), text).unwrap();
        };
        put("4000000000.json", "{\"pid\":4000000000,\"sessionId\":\"s1\"}".to_owned());
        put("other.json", format!("{{\"pid\":{},\"sessionId\":\"s2\"}}\n", std::process::id()));
        put("torn.json", "{".to_owned());
        assert_eq!(session_of_process(dir.path(), 4_000_000_000), Some("s1".to_owned()));
        assert_eq!(session_of_process(dir.path(), 1), None);
        assert_eq!(live(), None);
        put(&format!("{}.json", std::process::id()), "{\"sessionId\":\"s1\"}".to_owned());
        assert_eq!(live(), Some(LiveEvidence::Process(u64::from(std::process::id()))));
    }

    #[test]
    fn a_log_with_a_recent_line_is_live() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s1.jsonl");
        let line = r#"{"type":"user","timestamp":"2026-01-01T10:00:00.000Z"}"#;
        fs_err::write(&path, format!("{line}\n{{\"type\":\"custom-title\"}}\n")).unwrap();
        let file = SessionFile::at(&path);
        let said = UNIX_EPOCH + Duration::from_secs(1_767_261_600);
        let after = |seconds: u64, modified: u64| {
            let handle = std::fs::File::options().write(true).open(&path).unwrap();
            handle.set_modified(said + Duration::from_secs(modified)).unwrap();
            detect_live(&file, said + Duration::from_secs(seconds))
        };
        assert_eq!(after(5, 1), Some(LiveEvidence::RecentLine(Duration::from_secs(5))));
        assert_eq!(after(119, 1), Some(LiveEvidence::RecentLine(Duration::from_secs(119))));
        assert_eq!(after(121, 1), None, "idle for too long");
        assert_eq!(after(600, 599), None, "modified without a new message");
    }
}
