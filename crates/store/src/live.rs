//! Detects whether a session is open in Claude Code.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use threadline_entry::{Entry, Json, key};

use crate::home::Home;
use crate::last_active::read_last_message;
use crate::log_file::SessionLogs;
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

/// A session is live without a process if its log, or that of a sub-agent, was modified, and the last message
/// in it written, within this time. The modification time alone is no evidence: a file that was edited or
/// copied is new, but not in use.
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
        let age_of_message = age(last_message?, now);
        (is_recent(modified, now) && age_of_message < LIVE_AGE)
            .then_some(LiveEvidence::RecentLine(age_of_message))
    }

    /// Returns whether a session is live at `now`, given its logs and the last message of its own one. While
    /// a sub-agent works, only the log of the sub-agent may grow.
    pub fn evidence_in(
        &self,
        session: &SessionLogs,
        last_message: Option<SystemTime>,
        now: SystemTime,
    ) -> Option<LiveEvidence> {
        let id = &session.file.id;
        self.evidence(id, session.modified(), last_message, now).or_else(|| {
            session.agents.iter().find_map(|log| {
                let last_message = read_message_of_live(&log.path, log.modified, now);
                self.evidence(id, log.modified, last_message, now)
            })
        })
    }
}

/// Returns whether one session is live at `now`, and how this was detected; see [`LiveRule`].
pub fn detect_live(file: &SessionFile, now: SystemTime) -> Option<LiveEvidence> {
    let rule = LiveRule::read(&file.home);
    let evidence = |path: &Path| {
        let modified = fs_err::metadata(path).and_then(|metadata| metadata.modified()).unwrap_or(UNIX_EPOCH);
        rule.evidence(&file.id, modified, read_message_of_live(path, modified, now), now)
    };
    evidence(&file.path).or_else(|| file.agents().found.iter().find_map(|agent| evidence(&agent.path)))
}

/// Returns whether a log that was modified at this time may be that of a live session.
fn is_recent(modified: SystemTime, now: SystemTime) -> bool {
    age(modified, now) < LIVE_AGE
}

/// Returns the age of a time. A time in the future is that of another clock.
fn age(time: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(time).unwrap_or_default()
}

/// Reads the time of the last message of a log, unless it was not modified lately.
fn read_message_of_live(path: &Path, modified: SystemTime, now: SystemTime) -> Option<SystemTime> {
    is_recent(modified, now).then(|| read_last_message(path)).flatten()
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

    #[test]
    fn a_session_whose_sub_agent_works_is_live() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, time: &str, modified: u64| {
            let path = dir.path().join("projects/-p").join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(&path, format!("{{\"type\":\"user\",\"timestamp\":\"{time}\"}}\n")).unwrap();
            let handle = std::fs::File::options().write(true).open(&path).unwrap();
            handle.set_modified(UNIX_EPOCH + Duration::from_secs(modified)).unwrap();
        };
        write("s1.jsonl", "2026-01-01T10:00:00.000Z", 1_767_261_600);
        write("s1/subagents/agent-a1.jsonl", "2026-01-01T10:09:58.000Z", 1_767_262_198);
        let now = UNIX_EPOCH + Duration::from_secs(1_767_262_200);
        let live = Some(LiveEvidence::RecentLine(Duration::from_secs(2)));
        let file = SessionFile::at(dir.path().join("projects/-p/s1.jsonl"));
        assert_eq!(detect_live(&file, now), live);
        let sessions = crate::Store::open([dir.path().to_owned()]).session_logs().found;
        assert_eq!(LiveRule::default().evidence_in(&sessions[0], None, now), live);
    }
}
