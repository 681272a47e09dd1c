use std::fmt::Write as _;

use super::*;

fn put(path: PathBuf, text: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

fn of(owner: &str) -> String {
    format!("{{\"type\":\"user\",\"isSidechain\":true,\"sessionId\":\"{owner}\"}}\n")
}

/// Creates a home with a session in every layout.
fn home() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join("projects").join(path);
    put(at("-p/a.jsonl"), "{}\n");
    put(at("-p/a/subagents/agent-a1.jsonl"), "");
    put(at("-p/a/subagents/agent-a1.meta.json"), "{}");
    put(at("-p/a/subagents/workflows/wf_9/agent-a9.jsonl"), "");
    put(at("-p/a/subagents/workflows/wf_9/journal.jsonl"), "");
    put(at("-p/a/tool-results/big.jsonl"), "{}");
    put(at("-p/agent-1234567.jsonl"), &of("b"));
    put(at("-p/agent-empty.jsonl"), "");
    put(at("-p/b.jsonl"), "{}\n{}\n");
    put(at("-p/subagents/agent-old.jsonl"), &of("b"));
    put(at("-p/gone/subagents/agent-a2.jsonl"), "");
    put(at("-q/a.jsonl"), "");
    put(at("stray.jsonl"), "{}\n");
    dir
}

/// Formats the logs and the sessions of a store.
fn formatted_listing(store: &Store) -> String {
    let logs = store.logs();
    assert!(logs.errors.is_empty(), "{:?}", logs.errors);
    let name = |log: &LogFile| {
        let agent = log.agent().map(|agent| format!(" agent={} {:?} {:?}", agent.id, agent.kind, agent.run));
        let stem = log.path.file_stem().unwrap().to_string_lossy().into_owned();
        format!("{}/{stem} {}{}", log.folder(), log.size, agent.unwrap_or_default())
    };
    let mut text = String::new();
    for log in &logs.found {
        writeln!(text, "{} of {}", name(log), log.session.as_deref().unwrap_or("?")).unwrap();
    }
    let mut sessions = store.session_logs().found;
    sessions.sort_by(|a, b| a.file.path.cmp(&b.file.path));
    for session in sessions {
        let own = session.own.as_ref().map_or("-".into(), name);
        let agents: Vec<_> = session.agents.iter().map(|log| log.agent().unwrap().id).collect();
        let folder = session.file.folder.as_deref().unwrap();
        writeln!(text, "{folder}/{}: {own} + {agents:?}, {} bytes", session.file.id, session.size()).unwrap();
    }
    text
}

const ALL: &str = "\
-p/a 3 of a
-p/agent-a1 0 agent=a1 Task None of a
-p/agent-a9 0 agent=a9 Workflow Some(\"wf_9\") of a
-p/agent-1234567 51 agent=1234567 Task None of ?
-p/agent-empty 0 agent=empty Task None of ?
-p/b 6 of b
-p/agent-a2 0 agent=a2 Task None of gone
-p/agent-old 51 agent=old Task None of ?
-q/a 0 of a
-p/a: -p/a 3 + [\"a1\", \"a9\"], 3 bytes
-p/agent-empty: - + [\"empty\"], 0 bytes
-p/b: -p/b 6 + [\"1234567\", \"old\"], 108 bytes
-p/gone: - + [\"a2\"], 0 bytes
-q/a: -q/a 0 + [], 0 bytes
";

#[test]
fn logs_are_listed_in_every_layout_and_by_session() {
    let dir = home();
    assert_eq!(formatted_listing(&Store::open([dir.path().to_owned()])), ALL);
}

#[test]
#[cfg(unix)]
fn links_and_hard_links_count_once() {
    use fs_err::os::unix::fs::symlink;
    let dir = home();
    let projects = dir.path().join("projects");
    symlink(projects.join("-p"), projects.join("-again")).unwrap();
    symlink(projects.join("-p/b.jsonl"), projects.join("-p/aa.jsonl")).unwrap();
    symlink(projects.join("-p"), projects.join("-p/a/subagents/up")).unwrap();
    fs_err::hard_link(projects.join("-p/a/subagents/agent-a1.jsonl"), projects.join("-q/zz.jsonl")).unwrap();
    let other = tempfile::tempdir().unwrap();
    fs_err::create_dir(other.path().join("projects")).unwrap();
    symlink(projects.join("-q"), other.path().join("projects/-elsewhere")).unwrap();
    let store = Store::open([other.path().to_owned(), dir.path().to_owned(), dir.path().join(".")]);
    assert_eq!(formatted_listing(&store), ALL);
}

#[test]
#[cfg(unix)]
fn a_dangling_link_is_listed() {
    let dir = home();
    let link = dir.path().join("projects/-p/dangling.jsonl");
    fs_err::os::unix::fs::symlink("nothing", link).unwrap();
    assert!(formatted_listing(&Store::open([dir.path().to_owned()])).contains("-p/dangling 0 of dangling\n"));
}

#[test]
fn unmodified_logs_are_skipped() {
    let dir = home();
    let day = Duration::from_secs(24 * 3600);
    let today = SystemTime::UNIX_EPOCH + 20_000 * day;
    let at = |path: &str| dir.path().join("projects").join(path);
    let date = |path: &str, when: SystemTime| {
        let file = fs_err::File::options().write(true).open(at(path)).unwrap();
        file.into_file().set_modified(when).unwrap();
    };
    let store = Store::open([dir.path().to_owned()]);
    let hour = Duration::from_secs(3600);
    for log in store.logs().found {
        date(log.path.strip_prefix(at("")).unwrap().to_str().unwrap(), today - 3 * day);
    }
    let names = || {
        let found = store.logs_since(today).found;
        found
            .iter()
            .map(|log| log.path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    assert!(names().is_empty());
    date("-p/b.jsonl", today);
    date("-p/agent-1234567.jsonl", today + hour);
    date("-p/subagents/agent-old.jsonl", today + hour);
    assert_eq!(names(), ["agent-1234567", "b", "agent-old"]);
    // An agent that runs past midnight while its session is idle.
    date("-p/a.jsonl", today - hour);
    date("-p/a/subagents/workflows/wf_9/agent-a9.jsonl", today + hour);
    assert_eq!(names(), ["agent-a9", "agent-1234567", "b", "agent-old"]);
}

#[test]
fn logs_below_any_directory_are_identified_by_path() {
    let dir = home();
    let logs = logs_below(dir.path()).found;
    let named: Vec<_> =
        logs.iter().map(|log| (log.folder(), log.session.as_deref().unwrap_or("?"))).collect();
    let expected = [
        ("-p", "a"),
        ("-p", "a"),
        ("-p", "a"),
        ("-p", "?"),
        ("-p", "?"),
        ("-p", "b"),
        // Not a uuid, and no log next to it: only the lines contain the session.
        ("gone", "?"),
        ("-p", "?"),
        ("-q", "a"),
        ("projects", "stray"),
    ];
    assert_eq!(named, expected.map(|(folder, session)| (folder.to_owned(), session)));
}

#[test]
#[cfg(unix)]
fn an_unreadable_directory_is_reported_and_hides_only_itself() {
    use std::os::unix::fs::PermissionsExt;
    let dir = home();
    let shut = dir.path().join("projects/-q");
    fs_err::set_permissions(&shut, std::fs::Permissions::from_mode(0o000)).unwrap();
    if fs_err::read_dir(&shut).is_ok() {
        threadline_testkit::report_skipped("this user can read every folder");
        return;
    }
    let logs = Store::open([dir.path().to_owned()]).logs();
    fs_err::set_permissions(&shut, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!((logs.found.len(), logs.errors.len()), (8, 1));
}
