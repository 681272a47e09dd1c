//! `restore`: earlier versions of files, from backups and from the log.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use threadline_testkit::{TestHome, session_uuid};

use crate::edit::EditFixture;
use crate::run::at_home;

/// Creates a session that worked in `dir`: it edited one file, created another, and ran a command.
fn session(home: &TestHome, dir: &Path) {
    let cwd = dir.to_str().unwrap();
    let notation = r#"
        snapshot u1 {"a.txt":{"backupFileName":"aa@v1","version":1}}
        u1        user   "change a"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"[dir]/a.txt"}
        r1 <- a1  result t1 "ok" {"filePath":"[dir]/a.txt","oldString":"one","newString":"two","originalFile":"one\n"}
        snapshot u2 {"a.txt":{"backupFileName":"aa@v2","version":2}}
        u2 <- r1  user   "make b"
        a2 <- u2  reply  m2 tool t2 Write {"file_path":"[dir]/sub/b.txt","content":"new\n"}
        entry file-history-delta {"messageId":"a2","snapshotMessageId":"u2","trackingPath":"sub/b.txt","backup":{"backupFileName":null,"version":1}}
        r2 <- a2  result t2 "ok" {"type":"create","filePath":"[dir]/sub/b.txt","content":"new\n","originalFile":null}
        snapshot u3 {"a.txt":{"backupFileName":"aa@v2","version":2},"sub/b.txt":{"backupFileName":"bb@v2","version":2}}
        u3 <- r2  user   "run"
        a3 <- u3  reply  m3 tool t3 Bash {"command":"make"}
        r3 <- a3  result t3 "now"
        "#;
    home.session_in(cwd, "s", &notation.replace("[dir]", cwd));
    let backup = |name: &str, text: &str| {
        home.file(format!("file-history/{}/{name}", session_uuid("s")), text);
    };
    backup("aa@v1", "one\r\n");
    backup("aa@v2", "two\n");
}

fn restore(home: &TestHome, dir: &Path, args: &[&str]) -> String {
    let run = at_home(home, &[&["restore", "last"], args].concat());
    run.to_string().replace(dir.to_str().unwrap(), "[dir]")
}

#[test]
fn turns_and_files_are_listed() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().unwrap());
    session(&home, dir.path());
    assert_snapshot!(restore(&home, dir.path(), &[]), @r"
    exit: 0
    ----- stdout -----
       1  change a
          a.txt  1 edit
       2  make b
          sub/b.txt  1 edit
    ----- stderr -----
    --at TURN shows the files as they were when that turn began
    1 shell command may have changed files; their changes cannot be restored
    ");
    assert_snapshot!(restore(&home, dir.path(), &["--at", "3"]), @"
    exit: 0
    ----- stdout -----
    Files at the beginning of turn 3 in [dir]
    file       size then  current file  source
    a.txt      4 B        not there     backup
    sub/b.txt  4 B        not there     edits, turn 2
    ----- stderr -----
    --diff shows the changes, --apply writes 2 files, --to DIR --apply writes elsewhere
    sub/b.txt: its backup is missing; restored from the edits in the log
    1 shell command may have changed files; their changes cannot be restored
    ");
    assert_snapshot!(restore(&home, dir.path(), &["--at", "9"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no turn 9: the session has 3 turns
    hint: `threadline --home [home] restore SESSION` lists the turns that changed files
    ");
}

#[test]
fn a_diff_goes_from_the_current_to_the_earlier_version() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().unwrap());
    session(&home, dir.path());
    fs::write(dir.path().join("a.txt"), "today\n").unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/b.txt"), "there\n").unwrap();
    assert_snapshot!(restore(&home, dir.path(), &["--at", "2", "--diff", "-q"]), @r"
    exit: 0
    ----- stdout -----
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -today
    +two
    --- a/sub/b.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -there
    ----- stderr -----
    ");
    let files = at_home(&home, &["restore", "last", "b.txt", "--at", "2", "--json"]).json_lines();
    assert_eq!(files.len(), 1);
    assert_eq!((&files[0]["action"], &files[0]["applied"]), (&"delete".into(), &false.into()));
}

#[test]
fn files_are_written_below_a_folder_without_overwriting() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().unwrap());
    session(&home, dir.path());
    let to = dir.path().join("to");
    let to = to.to_str().unwrap();
    at_home(&home, &["restore", "last", "--at", "1", "--to", to]);
    assert!(!Path::new(to).exists(), "nothing is written without --apply");
    assert_eq!(at_home(&home, &["restore", "last", "--at", "1", "--to", to, "--apply"]).code, 0);
    assert_eq!(fs::read_to_string(format!("{to}/a.txt")).unwrap(), "one\r\n");
    assert!(!Path::new(&format!("{to}/sub")).exists(), "b was not there yet");
    let again = restore(&home, dir.path(), &["--at", "2", "--to", to, "--apply"]);
    assert!(again.contains("exists and is different"), "{again}");
    assert_eq!(fs::read_to_string(format!("{to}/a.txt")).unwrap(), "one\r\n");
}

#[test]
fn files_are_restored_in_place_and_can_be_undone() {
    let (world, dir) = (EditFixture::new(), tempfile::tempdir().unwrap());
    session(&world.home, dir.path());
    let (a, b) = (dir.path().join("a.txt"), dir.path().join("sub/b.txt"));
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(&a, "today\n").unwrap();
    fs::write(&b, "there\n").unwrap();
    let files = world.run(&["restore", "last", "--at", "1", "--apply", "--json"]).json_lines();
    assert_eq!(files[0]["action"], "change");
    assert_eq!(files[1]["action"], "delete");
    assert!(files.iter().all(|file| file["applied"] == true));
    assert_eq!(fs::read_to_string(&a).unwrap(), "one\r\n");
    assert!(!b.exists());
    assert_eq!(
        world.run(&["restore", "last", "--at", "1", "--apply"]).code,
        0,
        "there is nothing left to do"
    );
    assert_eq!(world.receipts(), 1);
    assert_eq!(world.run(&["op", "undo", "--apply", files[0]["receipt"].as_str().unwrap()]).code, 0);
    assert_eq!(fs::read_to_string(&a).unwrap(), "today\n");
    assert_eq!(fs::read_to_string(&b).unwrap(), "there\n");
}

#[test]
fn unknown_content_is_reported() {
    let home = TestHome::new();
    home.session(
        "s",
        r#"
        snapshot u1 {"../../etc/x":{"backupFileName":"../../../x","version":1}}
        u1 user "hi"
        "#,
    );
    let run = at_home(&home, &["restore", "last", "--at", "1", "--to", "/nonexistent/out", "--apply"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.err.contains("its backup is missing, and the log does not contain its text"), "{run}");
    let nothing = TestHome::new();
    nothing.session("s", r#"u1 user "hi""#);
    assert_eq!(at_home(&nothing, &["restore", "last"]).code, 1);
}

/// A hostile log can name files anywhere.
#[test]
fn files_outside_the_project_are_listed_separately_and_not_written() {
    let (world, dir, elsewhere) =
        (EditFixture::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (cwd, other) = (dir.path().to_str().unwrap(), elsewhere.path().to_str().unwrap());
    let project = format!("{cwd}/project");
    fs::create_dir(&project).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(elsewhere.path(), format!("{project}/link")).unwrap();
    let notation = format!(
        r#"
        u1        user   "write"
        a1 <- u1  reply  m1 tool t1 Write {{"file_path":"{project}/in.txt","content":"in\n"}}
        r1 <- a1  result t1 "ok" {{"type":"create","filePath":"{project}/in.txt","content":"in\n","originalFile":null}}
        a2 <- r1  reply  m2 tool t2 Write {{"file_path":"{other}/absolute.txt","content":"out\n"}}
        r2 <- a2  result t2 "ok" {{"type":"create","filePath":"{other}/absolute.txt","content":"out\n","originalFile":null}}
        a3 <- r2  reply  m3 tool t3 Write {{"file_path":"{project}/../dots.txt","content":"out\n"}}
        r3 <- a3  result t3 "ok" {{"type":"create","filePath":"{project}/../dots.txt","content":"out\n","originalFile":null}}
        a4 <- r3  reply  m4 tool t4 Write {{"file_path":"{project}/link/through.txt","content":"out\n"}}
        r4 <- a4  result t4 "ok" {{"type":"create","filePath":"{project}/link/through.txt","content":"out\n","originalFile":null}}
        "#
    );
    world.home.session_in(&project, "s", &notation);
    let plan = world.run(&["restore", "last", "--at", "end"]);
    let (inside, outside) = plan.out.split_once("Outside of the project").unwrap();
    assert!(inside.contains("in.txt") && !inside.contains("absolute.txt"), "{plan}");
    for name in ["absolute.txt", "dots.txt", "through.txt"] {
        assert!(outside.contains(name), "{plan}");
    }
    let run = world.run(&["restore", "last", "--at", "end", "--apply", "--json"]);
    assert_eq!(run.code, 2, "{run}");
    let files = run.json_lines();
    let written: Vec<_> = files.iter().filter(|file| file["applied"] == true).collect();
    assert_eq!(written.len(), 1, "{run}");
    assert_eq!((&written[0]["outside"], &files[1]["outside"]), (&false.into(), &true.into()));
    assert_eq!((&written[0]["risk"], &files[1]["risk"]), (&serde_json::Value::Null, &"outside".into()));
    assert_eq!(fs::read_to_string(format!("{project}/in.txt")).unwrap(), "in\n");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert!(!dir.path().join("dots.txt").exists());
    let run = world.run(&["restore", "last", "--at", "end", "--apply", "--outside"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(elsewhere.path().join("absolute.txt").exists());
    // A root directory is not accepted as a project, whatever the log claims.
    let home = EditFixture::new();
    home.home.session_in("/", "s", &notation);
    let run = home.run(&["restore", "last", "--at", "end", "--apply", "--json"]);
    assert!(run.json_lines().iter().all(|file| file["applied"] == false), "{run}");
}

/// A hostile log can name files that other programs run commands from, and paths where no file can be.
#[test]
#[cfg(unix)]
fn files_with_commands_and_files_that_cannot_be_written_are_listed_and_not_written() {
    let (world, dir) = (EditFixture::new(), tempfile::tempdir().unwrap());
    let cwd = dir.path().to_str().unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let mut notation = "u1 user \"write\"\n".to_owned();
    let mut parent = "u1".to_owned();
    for (i, name) in ["a.txt", ".git/config", "folder"].iter().enumerate() {
        let path = format!("{cwd}/{name}");
        notation += &format!("a{i} <- {parent} reply m{i} tool t{i} Write {{\"file_path\":\"{path}\"}}\n");
        notation += &format!(
            "r{i} <- a{i} result t{i} \"ok\" {{\"type\":\"create\",\"filePath\":\"{path}\",\"content\":\"x\",\"originalFile\":null}}\n"
        );
        parent = format!("r{i}");
    }
    world.home.session_in(cwd, "s", &notation);
    let plan = world.run(&["restore", "last", "--at", "end"]);
    let (_, commands) = plan.out.split_once("Other programs may run commands from these").unwrap();
    assert!(commands.contains(".git/config"), "{plan}");
    assert!(plan.err.contains("--outside --apply writes these too"), "{plan}");
    assert!(plan.err.contains("folder: cannot be written: there is a folder of that name"), "{plan}");
    let run = world.run(&["restore", "last", "--at", "end", "--apply", "--json"]);
    assert_eq!(run.code, 2, "{run}");
    let files = run.json_lines();
    let of = |name: &str| files.iter().find(|file| file["path"].as_str().unwrap().ends_with(name)).unwrap();
    assert_eq!((&of("a.txt")["applied"], &of("config")["applied"]), (&true.into(), &false.into()));
    assert_eq!(
        (&of("config")["risk"], &of("folder")["action"]),
        (&"command-source".into(), &"blocked".into())
    );
    assert!(dir.path().join("a.txt").exists() && !dir.path().join(".git").exists());
}

#[test]
fn a_name_with_a_nul_byte_is_not_written_and_leaves_no_receipt() {
    let (world, dir) = (EditFixture::new(), tempfile::tempdir().unwrap());
    let cwd = dir.path().to_str().unwrap();
    let notation = format!(
        r#"
        u1        user   "write"
        a1 <- u1  reply  m1 tool t1 Write {{"file_path":"{cwd}/a\u0000b","content":"x\n"}}
        r1 <- a1  result t1 "ok" {{"type":"create","filePath":"{cwd}/a\u0000b","content":"x\n","originalFile":null}}
        "#
    );
    world.home.session_in(cwd, "s", &notation);
    let run = world.run(&["restore", "last", "--at", "end", "--apply"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.err.contains("no file can have this name"), "{run}");
    assert_eq!(world.receipts(), 0);
}

#[test]
#[cfg(unix)]
fn restored_files_have_default_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let (world, dir) = (EditFixture::new(), tempfile::tempdir().unwrap());
    session(&world.home, dir.path());
    assert_eq!(world.run(&["restore", "last", "--at", "1", "--apply"]).code, 0);
    fs::write(dir.path().join("usual"), "").unwrap();
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("a.txt"), mode("usual"));
}

#[test]
fn equal_notes_about_several_files_are_printed_once() {
    let home = TestHome::new();
    let edit = |n: usize| {
        format!(
            "a{n} <- {parent} reply m{n} tool t{n} Edit {{\"file_path\":\"/p/{n}.txt\"}}\n\
             r{n} <- a{n} result t{n} \"ok\" {{\"filePath\":\"/p/{n}.txt\",\"oldString\":\"a\",\"newString\":\"b\"}}\n",
            parent = if n == 1 { "u1".to_owned() } else { format!("r{}", n - 1) }
        )
    };
    let files = r#""1.txt":{"backupFileName":"a@v1","version":1},"2.txt":{"backupFileName":"b@v1","version":1},"3.txt":{"backupFileName":"c@v1","version":1}"#;
    let edits: String = (1..=3).map(edit).collect();
    home.session_in("/p", "s", &format!("snapshot u1 {{{files}}}\nu1 user \"change all\"\n{edits}"));
    let run = at_home(&home, &["restore", "last", "--at", "1"]);
    let notes: Vec<&str> = run.err.lines().filter(|line| line.contains("its backup is missing")).collect();
    assert_eq!(notes, ["3 files: its backup is missing, and the log does not contain its text"], "{run}");
}

#[test]
fn secrets_that_only_another_line_identifies_are_masked_in_a_diff() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().unwrap());
    let (password, other) = ("kQ8zR4tVbN2xLm7pWs5d", "Zebr4-GJEw73");
    let notation = r#"
        u1        user   "write"
        a1 <- u1  reply  m1 tool t1 Bash {"command":"export SERVICE_PASSWORD=[password]"}
        r1 <- a1  result t1 "ok"
        a2 <- r1  reply  m2 tool t2 Write {"file_path":"[dir]/a.txt","content":"just [password]\n"}
        r2 <- a2  result t2 "ok" {"type":"create","filePath":"[dir]/a.txt","content":"just [password]\n","originalFile":null}
        a3 <- r2  reply  m3 tool t3 Write {"file_path":"[dir]/.netrc","content":"machine a.dev\n  login b\n  password [other]\n"}
        r3 <- a3  result t3 "ok" {"type":"create","filePath":"[dir]/.netrc","content":"machine a.dev\n  login b\n  password [other]\n","originalFile":null}
        u2 <- r3  user   "it is [password]"
        a4 <- u2  reply  m4 tool t4 Write {"file_path":"[dir]/b.txt","content":"b\n"}
        r4 <- a4  result t4 "ok" {"type":"create","filePath":"[dir]/b.txt","content":"b\n","originalFile":null}
        "#;
    let cwd = dir.path().to_str().unwrap();
    let notation = notation.replace("[dir]", cwd).replace("[password]", password).replace("[other]", other);
    home.session_in(cwd, "s", &notation);
    for args in [&["--at", "end", "--diff"][..], &["--at", "end", "--json"], &[], &["--json"]] {
        let plain = at_home(&home, &[&["restore", "last"], args].concat());
        let masked = at_home(&home, &[&["--redact", "restore", "last"], args].concat());
        assert_eq!((plain.code, masked.code), (0, 0), "{masked}");
        assert!(!masked.out.contains(password) && !masked.out.contains(other), "{args:?}: {masked}");
        let shows_text = args.contains(&"--diff") || !args.contains(&"--at");
        assert!(!shows_text || plain.out.contains(password) && masked.out.contains("[secret:"), "{masked}");
    }
    // The current file may contain other secrets than the session.
    fs::write(dir.path().join(".netrc"), "machine a.dev\n  login b\n  password Tr0ub4dor-and-3\n").unwrap();
    let masked = at_home(&home, &["--redact", "restore", "last", "--at", "end", "--diff"]);
    assert!(
        !masked.out.contains("Tr0ub4dor") && masked.out.contains("differ in masked secrets only"),
        "{masked}"
    );
}

/// Restores the file of an edit from "one" to "two" at the first turn, and returns what is on disk
/// afterwards.
fn restored(dir: &Path, prepare: impl FnOnce(&Path)) -> (Vec<u8>, String) {
    let home = TestHome::new();
    prepare(dir);
    let notation = r#"
        u1        user   "go"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"[dir]/a.txt","old_string":"one","new_string":"two"}
        r1 <- a1  result t1 "ok" {"filePath":"[dir]/a.txt","oldString":"one","newString":"two","originalFile":"one\nend\n"}
        "#;
    let cwd = dir.to_str().unwrap();
    home.session_in(cwd, "s", &notation.replace("[dir]", cwd));
    let run = restore(&home, dir, &["--at", "1", "--apply"]);
    (fs::read(dir.join("a.txt")).unwrap(), run)
}

#[test]
fn a_text_of_the_log_is_restored_in_the_form_of_the_file() {
    for (now, expected) in [
        (&b"two\nend\n"[..], &b"one\nend\n"[..]),
        (b"two\r\nend\r\n", b"one\r\nend\r\n"),
        (b"\xef\xbb\xbftwo\nend\n", b"\xef\xbb\xbfone\nend\n"),
        // Neither the encoding nor the line ends can be known.
        (b"two caf\xe9\nend\n", b"two caf\xe9\nend\n"),
        (b"two\r\nend\n", b"two\r\nend\n"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (then, run) = restored(dir.path(), |dir| fs::write(dir.join("a.txt"), now).unwrap());
        assert_eq!(String::from_utf8_lossy(&then), String::from_utf8_lossy(expected), "{run}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_never_followed_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let (then, run) = restored(dir.path(), |dir| {
        fs::write(dir.join("other.txt"), "precious\n").unwrap();
        std::os::unix::fs::symlink("other.txt", dir.join("a.txt")).unwrap();
    });
    assert_eq!(String::from_utf8_lossy(&then), "precious\n", "{run}");
    assert!(run.contains("cannot be written: it is a link"), "{run}");
}
