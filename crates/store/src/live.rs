//! Detects whether a session is open in Claude Code.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use threadline_entry::{Entry, Json, key};

use crate::file_window::{FileWindow, lines_back};
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

/// A session with a more recent last line is considered open.
const LIVE_AGE: Duration = Duration::from_secs(60);

/// Returns whether the session is in use at `now`, and how this was detected.
///
/// Older versions of Claude Code keep no list of processes, so a log that has just grown counts too. The
/// timestamp of its last line decides, not the modification time: a file that was edited or copied is new,
/// but not in use.
pub fn detect_live(file: &SessionFile, now: SystemTime) -> Option<LiveEvidence> {
    process(file)
        .map(LiveEvidence::Process)
        .or_else(|| recent_line_age(&file.path, now).map(LiveEvidence::RecentLine))
}

/// Returns the age of the last line of a log that has just grown.
fn recent_line_age(path: &Path, now: SystemTime) -> Option<Duration> {
    let modified = fs_err::metadata(path).and_then(|metadata| metadata.modified()).ok()?;
    if now.duration_since(modified).is_ok_and(|age| age >= LIVE_AGE) {
        return None;
    }
    let mut window = FileWindow::default();
    window.read(path).ok()?;
    let time = lines_back(window.tail()).find_map(|line| Entry::parse(line).0.timestamp())?;
    let written = UNIX_EPOCH + Duration::from_millis(u64::try_from(time).ok()?);
    let age = now.duration_since(written).unwrap_or_default();
    (age < LIVE_AGE).then_some(age)
}

/// Returns the process that has the session open. Entries may be stale: one counts only while its process
/// exists.
fn process(file: &SessionFile) -> Option<u64> {
    let sessions = file.home.as_ref()?.root().join("sessions");
    let entries = fs_err::read_dir(sessions).ok()?;
    let found = entries.flatten().filter_map(|entry| {
        let path = entry.path();
        let (entry, _) = Entry::parse(regular_file::read(&path).ok()?.trim_ascii());
        let named = entry.get(key::SESSION_ID).is_some_and(|id| id.is_str(&file.id));
        let by_name = || path.file_stem()?.to_str()?.parse().ok();
        named.then(|| entry.get("pid").and_then(Json::as_u64).or_else(by_name)).flatten()
    });
    found.filter(|&pid| process_exists(pid)).min()
}

/// Returns the id of the session that a process of Claude Code has open, given the folder of the home.
pub fn session_of_process(home: &Path, pid: u32) -> Option<String> {
    let path = home.join("sessions").join(format!("{pid}.json"));
    let (entry, _) = Entry::parse(regular_file::read(&path).ok()?.trim_ascii());
    let id = entry.get(key::SESSION_ID)?.as_str()?;
    Some(id.into_owned())
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
        assert_eq!(after(61, 1), None, "idle for too long");
        assert_eq!(after(600, 599), None, "modified without a new message");
    }
}
