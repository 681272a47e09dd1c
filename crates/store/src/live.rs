//! Whether a session is open in Claude Code right now.

use std::path::Path;

use threadline_entry::{Entry, Json};

use crate::session_file::SessionFile;

/// The process that has the session open, as Claude Code's own list of its processes tells; `None` if there is none.
///
/// Lists go stale: an entry counts only while its process is there.
pub fn is_live(file: &SessionFile) -> Option<u64> {
    let sessions = file.home.as_ref()?.root().join("sessions");
    let entries = fs_err::read_dir(sessions).ok()?;
    let found = entries.flatten().filter_map(|entry| {
        let path = entry.path();
        let (entry, _) = Entry::parse(fs_err::read(&path).ok()?.trim_ascii());
        let named = entry.get("sessionId").is_some_and(|id| id.is_str(&file.id));
        let by_name = || path.file_stem()?.to_str()?.parse().ok();
        named.then(|| entry.get("pid").and_then(Json::as_u64).or_else(by_name)).flatten()
    });
    found.filter(|&pid| runs(pid)).min()
}

/// Whether there is such a process; where that cannot be told, there is.
fn runs(pid: u64) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_session_is_live_while_its_process_runs() {
        let dir = tempfile::tempdir().unwrap();
        let file = SessionFile::at(dir.path().join("projects/-p/s1.jsonl"));
        assert_eq!(is_live(&file), None);
        let put = |name: &str, text: String| {
            fs_err::create_dir_all(dir.path().join("sessions")).unwrap();
            fs_err::write(dir.path().join("sessions").join(name), text).unwrap();
        };
        put("4000000000.json", "{\"pid\":4000000000,\"sessionId\":\"s1\"}".to_owned());
        put("other.json", format!("{{\"pid\":{},\"sessionId\":\"s2\"}}\n", std::process::id()));
        put("torn.json", "{".to_owned());
        assert_eq!(is_live(&file), None);
        put(&format!("{}.json", std::process::id()), "{\"sessionId\":\"s1\"}".to_owned());
        assert_eq!(is_live(&file), Some(u64::from(std::process::id())));
    }
}
