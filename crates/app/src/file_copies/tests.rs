use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

/// A folder of work, and the state folder.
struct Work {
    dir: tempfile::TempDir,
    app: App,
    recorder: FileRecorder,
}

impl Work {
    fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    fn with_limit(limit: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let state_dir = Some(dir.path().join("state"));
        let app = App::new(crate::AppConfig { state_dir, ..crate::AppConfig::default() });
        let recorder = app.file_recorder(limit, Rules::new).unwrap();
        Self { dir, app, recorder }
    }

    /// A repository with a commit of some files.
    fn repository(files: &[(&str, &str)]) -> Self {
        let work = Self::new();
        work.git(&["init", "-q"]);
        files.iter().for_each(|(name, text)| work.write(name, text));
        work.git(&["add", "-A"]);
        work.git(&["commit", "-q", "-m", "first"]);
        work
    }

    fn git(&self, arguments: &[&str]) {
        let user = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let mut command = Command::new("git");
        command.current_dir(self.root()).args(user).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(command.status().unwrap().success());
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn call(&self, id: &str, event: RecordedEvent, command: &str) -> RecordedCall {
        RecordedCall {
            session_id: "s".to_owned(),
            event,
            tool_use_id: id.to_owned(),
            agent_id: None,
            tool: "Bash".to_owned(),
            cwd: self.root(),
            project: None,
            command: Some(command.to_owned()),
            log: None,
        }
    }

    fn before(&self, id: &str) -> RecordOutcome {
        self.recorder.record(&self.call(id, RecordedEvent::Before, "")).unwrap()
    }

    fn after(&self, id: &str) -> RecordOutcome {
        self.recorder.record(&self.call(id, RecordedEvent::After, "")).unwrap()
    }

    fn copies(&self) -> FileCopies {
        self.app.file_copies("s").unwrap()
    }

    /// Runs a command between two comparisons, and returns the changes in words.
    fn run(&self, id: &str, command: &str) -> String {
        let call = |event| self.call(id, event, command);
        self.recorder.record(&call(RecordedEvent::Before)).unwrap();
        let done = Command::new("bash").arg("-c").arg(command).current_dir(self.root()).status();
        assert!(done.unwrap().success(), "{command}");
        self.recorder.record(&call(RecordedEvent::After)).unwrap();
        self.last()
    }

    /// The last comparison in words.
    fn last(&self) -> String {
        let copies = self.copies();
        let scan = copies.scans().last().unwrap();
        let mut lines: Vec<String> = scan
            .changes
            .iter()
            .map(|change| {
                let path = Path::new(&change.path).strip_prefix(self.root()).unwrap().display().to_string();
                format!("{path}: {} > {}", words(&copies, &change.before), words(&copies, &change.after))
            })
            .collect();
        lines.extend((!scan.is_complete).then(|| "not complete".to_owned()));
        lines.join("\n")
    }
}

fn words(copies: &FileCopies, content: &CopiedContent) -> String {
    match content {
        CopiedContent::Absent => "absent".to_owned(),
        CopiedContent::Unknown => "unknown".to_owned(),
        CopiedContent::Link { target } => format!("link {target}"),
        CopiedContent::File { mode, is_stored, length, .. } => {
            let mode = if mode & 0o100 != 0 { "+x" } else { "" };
            match copies.read(content) {
                Some(text) if text.len() < 40 => format!("{:?}{mode}", String::from_utf8_lossy(&text)),
                Some(text) => format!("{} bytes{mode}", text.len()),
                None => {
                    assert!(!is_stored);
                    format!("hash of {length} bytes{mode}")
                }
            }
        }
    }
}

/// Waits until times of files are later than those of a scan.
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(40));
}

#[test]
fn changes_of_a_repository_are_recorded_with_their_texts() {
    let work = Work::repository(&[
        ("a.txt", "one\n"),
        ("src/b.txt", "b\n"),
        ("c.sh", "c\n"),
        (".gitignore", "*.log\n"),
    ]);
    pause();
    // The index of git must be younger than the files for their objects to be used.
    work.git(&["update-index", "--refresh"]);
    assert_eq!(work.run("t0", "true"), "");
    assert!(!work.copies().scans()[0].is_complete, "the first has nothing to compare with");
    assert_eq!(work.recorder.contents().list(), [], "git has all texts");
    let all = "echo two >> a.txt; rm src/b.txt; chmod +x c.sh; echo n > new.txt; mkdir -p d/e; echo d > d/e/f; \
               ln -s a.txt l; echo x > x.log";
    let changed = work.run("t1", all);
    insta::assert_snapshot!(changed, @r#"
    a.txt: "one\n" > "one\ntwo\n"
    c.sh: "c\n" > "c\n"+x
    d/e/f: absent > "d\n"
    l: absent > link a.txt
    new.txt: absent > "n\n"
    src/b.txt: "b\n" > absent
    x.log: absent > "x\n"
    "#);
    let renamed = work.run("t2", "mv a.txt b.txt; rm -r d; ln -sf new.txt l; git add -A");
    insta::assert_snapshot!(renamed, @r#"
    a.txt: "one\ntwo\n" > absent
    b.txt: absent > "one\ntwo\n"
    d/e/f: "d\n" > absent
    l: link a.txt > link new.txt
    "#);
    assert_eq!(work.run("t3", "touch new.txt; git commit -qm x --author 'a <a@b>' || git status"), "");
    let copies = work.copies();
    assert!(copies.is_watched(&work.root().join("c.sh")));
    assert!(
        !copies.is_watched(&work.root().join("other.log")) && !copies.is_watched(Path::new("/etc/passwd"))
    );
    let scans: Vec<_> = copies.scans().iter().map(|scan| (&*scan.tool_use_id, scan.phase)).collect();
    assert_eq!(scans[..3], [("t0", ScanPhase::Before), ("t0", ScanPhase::After), ("t1", ScanPhase::Before)]);
}

#[test]
fn what_changed_between_calls_belongs_to_the_next_one() {
    let work = Work::repository(&[("a.txt", "one\n")]);
    work.run("t0", "true");
    work.write("a.txt", "by hand\n");
    work.before("t1");
    assert_eq!(work.last(), "a.txt: \"one\\n\" > \"by hand\\n\"");
    work.write("a.txt", "by t1\n");
    work.after("t1");
    assert_eq!(work.last(), "a.txt: \"by hand\\n\" > \"by t1\\n\"");
    // A call without a comparison before it.
    work.write("a.txt", "by t2\n");
    work.after("t2");
    assert_eq!(work.last(), "a.txt: \"by t1\\n\" > \"by t2\\n\"\nnot complete");
    // A second session knows nothing of the time before its first call.
    let other = RecordedCall { session_id: "o".to_owned(), ..work.call("t3", RecordedEvent::Before, "") };
    work.recorder.record(&other).unwrap();
    let copies = work.app.file_copies("o").unwrap();
    assert_eq!((copies.scans().len(), copies.scans()[0].is_complete), (1, false));
}

#[test]
fn a_change_within_the_step_of_the_clock_is_found() {
    let work = Work::repository(&[("a.txt", "one\n")]);
    work.before("t0");
    for number in 0..30 {
        let path = work.root().join("a.txt");
        let modified = path.metadata().unwrap().modified().unwrap();
        let text = format!("{number:03}\n");
        std::fs::write(&path, &text).unwrap();
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        work.after("t0");
        let copies = work.copies();
        let change = copies.scans().last().unwrap().changes.first().map(|change| copies.read(&change.after));
        assert_eq!(change, Some(Some(text.into_bytes())), "{number}");
    }
}

#[test]
fn an_ignored_file_is_watched_once_it_is_named() {
    let work = Work::repository(&[(".gitignore", "out/\n*.log\n"), ("a.txt", "a\n")]);
    work.write("out/x.txt", "old\n");
    work.write("out/y.txt", "y\n");
    assert_eq!(work.run("t0", "true"), "");
    assert_eq!(work.run("t1", "echo new > out/x.txt"), "out/x.txt: \"old\\n\" > \"new\\n\"");
    assert_eq!(work.run("t2", "echo z > out/z.log"), "out/z.log: absent > \"z\\n\"");
    assert_eq!(
        work.run("t3", "for f in out/*.txt; do echo w > $f; done"),
        "out/x.txt: \"new\\n\" > \"w\\n\""
    );
    assert_eq!(work.run("t4", "rm -r out"), "out/x.txt: \"w\\n\" > absent\nout/z.log: \"z\\n\" > absent");
    assert_eq!(work.run("t5", "mkdir out; cp a.txt out/x.txt"), "out/x.txt: absent > \"a\\n\"");
}

#[test]
fn other_ignore_rules_make_new_files_unknown() {
    let work = Work::repository(&[(".gitignore", "*.log\n"), ("a.log", "tracked\n")]);
    work.git(&["add", "-f", "a.log"]);
    work.write("b.log", "b\n");
    work.write("c.txt", "c\n");
    work.run("t0", "true");
    let changed = work.run("t1", "echo '*.txt' > .gitignore; echo t >> a.log");
    insta::assert_snapshot!(changed, @r#"
    .gitignore: "*.log\n" > "*.txt\n"
    a.log: "tracked\n" > "tracked\nt\n"
    b.log: unknown > "b\n"
    "#);
    assert_eq!(work.run("t2", "for f in c.*; do echo 2 > $f; done"), "", "c.txt is ignored now");
}

#[test]
fn secrets_and_large_files_are_hashes_only() {
    let work = Work::repository(&[("a.txt", "a\n")]);
    work.write("old.env", "A=1\n");
    work.run("t0", "true");
    let token = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let command = format!(
        "echo B=2 > .env; echo A=2 > old.env; echo 'token {token}' > a.txt; head -c 1100000 /dev/zero > big; \
         head -c 17000000 /dev/zero > huge; echo k > server.pem"
    );
    let changed = work.run("t1", &command);
    insta::assert_snapshot!(changed, @r#"
    .env: absent > hash of 4 bytes
    a.txt: "a\n" > hash of 47 bytes
    big: absent > hash of 1100000 bytes
    huge: absent > unknown
    old.env: hash of 4 bytes > hash of 4 bytes
    server.pem: absent > hash of 2 bytes
    "#);
    let objects = Command::new("grep")
        .arg("-rlaE")
        .arg("ghp_|A=|B=")
        .arg(work.dir.path().join("state/files/objects"))
        .output();
    assert_eq!(String::from_utf8(objects.unwrap().stdout).unwrap(), "");
    assert_eq!(
        work.run("t2", "echo 3 > huge; truncate -s 0 big"),
        "big: hash of 1100000 bytes > \"\"\nhuge: unknown > \"3\\n\""
    );
}

#[test]
fn a_folder_without_a_repository_and_nested_ones_are_watched() {
    let work = Work::new();
    work.write("a.txt", "a\n");
    work.write("sub/in.txt", "in\n");
    Command::new("git").args(["init", "-q", "sub"]).current_dir(work.root()).status().unwrap();
    work.run("t0", "true");
    let changed = work.run("t1", "echo 2 >> a.txt; echo 2 >> sub/in.txt; (cd sub; git add -A); mkdir e");
    assert_eq!(changed, "a.txt: \"a\\n\" > \"a\\n2\\n\"\nsub/in.txt: \"in\\n\" > \"in\\n2\\n\"");
    assert_eq!(work.run("t2", "echo 1 > e/new; chmod 0 a.txt"), {
        // The superuser can read it.
        let a = if std::fs::read(work.root().join("a.txt")).is_ok() { "\"a\\n2\\n\"" } else { "unknown" };
        format!("a.txt: \"a\\n2\\n\" > {a}\ne/new: absent > \"1\\n\"")
    });
    std::fs::set_permissions(work.root().join("a.txt"), PermissionsExt::from_mode(0o644)).unwrap();
}

#[test]
fn odd_files_do_no_harm() {
    let work = Work::repository(&[("a.txt", "a\n"), ("d/x", "x\n")]);
    work.run("t0", "true");
    symlink("/nowhere", work.root().join("dangling")).unwrap();
    let changed = work.run(
        "t1",
        "mkfifo pipe; printf x > $'caf\\xe9.txt'; printf x > $'new\\nline'; printf '\\0\\xff' > bin",
    );
    insta::assert_snapshot!(changed, @r#"
    bin: absent > "\0�"
    caf�.txt: absent > "x"
    new
    line: absent > "x"
    "#);
    assert_eq!(work.copies().scans()[2].changes.len(), 1, "the link was made between the calls");
    // A folder that becomes a link, and a file that becomes a folder.
    let changed = work.run("t2", "rm -r d a.txt pipe; mkdir a.txt; echo y > a.txt/y; mkdir /tmp/$$; echo z > /tmp/$$/x; ln -s /tmp/$$ d");
    let end = changed.rsplit_once("link ").unwrap().1.to_owned();
    let changed = changed.replace(&end[..end.find('\n').unwrap_or(end.len())], "TMP");
    insta::assert_snapshot!(changed, @r#"
    a.txt: "a\n" > absent
    a.txt/y: absent > "y\n"
    d: absent > link TMP
    d/x: "x\n" > absent
    "#);
}

#[test]
fn comparisons_at_the_same_time_record_each_change_once() {
    let work = Work::repository(&[("a.txt", "a\n")]);
    work.run("t0", "true");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let work = &work;
            scope.spawn(move || {
                for turn in 0..5 {
                    let id = format!("p{thread}-{turn}");
                    work.before(&id);
                    work.write(&format!("{id}.txt"), &id);
                    work.after(&id);
                }
            });
        }
    });
    work.before("end");
    let copies = work.copies();
    // A file may be seen while it is written: each change begins where the one before ended.
    let mut seen: HashMap<&str, &CopiedContent> = HashMap::default();
    for change in copies.scans().iter().flat_map(|scan| &scan.changes) {
        let before = seen.insert(&change.path, &change.after).unwrap_or(&CopiedContent::Absent);
        assert_eq!(before, &change.before, "{}", change.path);
    }
    assert_eq!(seen.len(), 20);
    for (path, content) in seen {
        assert_eq!(copies.read(content), std::fs::read(path).ok(), "{path}");
    }
    assert_eq!(copies.scans().len(), 43);
}

#[test]
fn a_postponed_comparison_leaves_later_changes_to_the_next_one() {
    let work = Work::repository(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    work.run("t0", "true");
    work.before("t1");
    pause();
    work.write("a.txt", "by t1\n");
    pause();
    work.recorder.postpone(&work.call("t1", RecordedEvent::After, "")).unwrap();
    pause();
    work.write("b.txt", "later\n");
    work.write("c.txt", "later\n");
    work.recorder.finish_postponed("s").unwrap();
    assert_eq!(work.last(), "a.txt: \"a\\n\" > \"by t1\\n\"\nnot complete");
    // Another one that is recorded only before the next call.
    work.recorder.postpone(&work.call("t2", RecordedEvent::After, "")).unwrap();
    work.before("t3");
    assert_eq!(work.last(), "");
    let copies = work.copies();
    let scan = &copies.scans()[copies.scans().len() - 2];
    assert_eq!((&*scan.tool_use_id, scan.changes.len()), ("t2", 2));
}

#[test]
fn copies_over_the_limit_are_removed_oldest_first() {
    let work = Work::with_limit(3000);
    for (session, letter) in [("old", "a"), ("new", "b")] {
        let call = |event| RecordedCall { session_id: session.to_owned(), ..work.call("t", event, "") };
        work.recorder.record(&call(RecordedEvent::Before)).unwrap();
        work.write("f.txt", &letter.repeat(2000));
        let outcome = work.recorder.record(&call(RecordedEvent::After)).unwrap();
        assert_eq!(outcome.is_over_limit, session == "new");
        pause();
    }
    let cleaned = work.recorder.clean_up().unwrap();
    assert_eq!((cleaned.sessions, cleaned.contents, cleaned.bytes), (1, 1, 2000));
    assert_eq!(work.app.file_copies("old").unwrap().scans().len(), 0);
    let copies = work.app.file_copies("new").unwrap();
    assert_eq!(copies.read(&copies.scans()[1].changes[0].after), Some(vec![b'b'; 2000]));
}

#[test]
fn copies_are_removed_with_the_session_and_with_secrets() {
    let work = Work::repository(&[("a.txt", "a\n")]);
    work.write("untracked.txt", "never changed\n");
    work.run("t0", "true");
    work.run("t1", "echo hunter2 > a.txt; echo b > b.txt");
    let secret = work.app.find_secret_copies("s", |text| text.contains("hunter2")).unwrap();
    assert_eq!(secret.contents.len(), 1);
    work.app.redact_file_copies(&secret).unwrap();
    assert_eq!(work.last(), "a.txt: \"a\\n\" > hash of 8 bytes\nb.txt: absent > \"b\\n\"");
    assert_eq!(work.app.count_file_copies("s").unwrap(), (3, 18));
    assert_eq!(work.app.remove_file_copies("s").unwrap(), 3);
    assert_eq!(work.copies().scans().len(), 0);
    assert_eq!(ContentStore::at(work.dir.path().join("state/files/objects")).list(), []);
}

#[test]
fn line_ends_and_filters_of_git_do_not_make_wrong_texts() {
    let work = Work::repository(&[
        (".gitattributes", "* text=auto\n"),
        ("crlf.txt", "a\r\nb\r\n"),
        ("lf.txt", "a\n"),
    ]);
    pause();
    work.git(&["update-index", "--refresh"]);
    work.run("t0", "true");
    let changed = work.run("t1", "echo 2 > crlf.txt; echo 2 > lf.txt");
    assert_eq!(changed, "crlf.txt: unknown > \"2\\n\"\nlf.txt: \"a\\n\" > \"2\\n\"");
    let work = Work::new();
    work.git(&["init", "-q"]);
    work.git(&["config", "filter.rot.clean", "tr a-z b-za"]);
    work.git(&["config", "filter.rot.smudge", "tr b-za a-z"]);
    work.write(".gitattributes", "*.txt filter=rot\n");
    work.write("a.txt", "abc\n");
    work.git(&["add", "-A"]);
    pause();
    work.git(&["update-index", "--refresh"]);
    work.run("t0", "true");
    assert_eq!(work.run("t1", "echo 2 > a.txt"), "a.txt: \"abc\\n\" > \"2\\n\"");
}
