//! Blame on repositories that the tests build: edits by sessions, people and formatters, renames, moved and
//! reverted lines, branches and working trees. Each line's origin is right or unknown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use threadline_app::blame::{BlameError, BlameOptions, FileBlame};
use threadline_app::{App, AppConfig};
use threadline_evidence::LineOrigin;
use threadline_testkit::TestHome;

/// A project with a history that is made step by step. Every step takes a minute.
struct TestProject {
    home: TestHome,
    dir: tempfile::TempDir,
    minute: u32,
    /// By session: its log in notation, and the number of its lines.
    sessions: BTreeMap<&'static str, (String, usize)>,
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
    format!("\"{text}\"")
}

impl TestProject {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { home: TestHome::new(), dir, minute: 0, sessions: BTreeMap::new() }
    }

    fn with_git() -> Self {
        let mut project = Self::new();
        project.git(&["init", "-q", "-b", "main"]);
        project
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap()
    }

    fn now(&mut self) -> String {
        self.minute += 1;
        format!("2026-01-01T{:02}:{:02}:00Z", 10 + self.minute / 60, self.minute % 60)
    }

    fn git(&mut self, arguments: &[&str]) {
        let now = self.now();
        self.git_at(&now, arguments);
    }

    fn git_at(&self, time: &str, arguments: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=a@b.c", "-c", "core.autocrlf=false"])
            .args(arguments)
            .current_dir(self.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_DATE", time)
            .env("GIT_COMMITTER_DATE", time)
            .output()
            .unwrap();
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn commit(&mut self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root().join(file)
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    /// Changes a file without a session.
    fn by_hand(&mut self, file: &str, text: &str) {
        self.now();
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), text).unwrap();
    }

    /// A prompt of a session.
    fn prompt(&mut self, session: &'static str, prompt: &str) {
        let now = self.now();
        let (log, n_lines) = self.sessions.entry(session).or_default();
        let parent = if *n_lines == 0 { String::new() } else { format!(" <- l{n_lines}") };
        *n_lines += 1;
        log.push_str(&format!("l{n_lines}{parent} user {} @{now}\n", quoted(prompt)));
    }

    fn call(&mut self, session: &'static str, tool: &str, input: &str, result: &str) {
        if !self.sessions.contains_key(session) {
            self.prompt(session, session);
        }
        let now = self.now();
        let (log, n) = self.sessions.get_mut(session).unwrap();
        let (parent, call, answer) = (*n, *n + 1, *n + 2);
        log.push_str(&format!(
            "l{call} <- l{parent} reply m{session}{call} tool t{session}{call} {tool} {input} @{now}\n\
             l{answer} <- l{call} result t{session}{call} \"ok\" {result} @{now}\n"
        ));
        *n = answer;
    }

    /// Writes a whole file in a session.
    fn write(&mut self, session: &'static str, file: &str, text: &str) {
        let path = quoted(self.path(file).to_str().unwrap());
        let before = fs::read_to_string(self.path(file)).ok();
        let kind = if before.is_some() { "update" } else { "create" };
        // Claude Code logs texts with plain line ends.
        let before = before.map_or("null".to_owned(), |before| quoted(&before.replace("\r\n", "\n")));
        let content = quoted(&text.replace("\r\n", "\n"));
        let result =
            format!(r#"{{"type":"{kind}","filePath":{path},"content":{content},"originalFile":{before}}}"#);
        let input = format!(r#"{{"file_path":{path},"content":{content}}}"#);
        self.call(session, "Write", &input, &result);
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), text).unwrap();
    }

    /// Replaces a text of a file in a session.
    fn edit(&mut self, session: &'static str, file: &str, old: &str, new: &str) {
        let path = quoted(self.path(file).to_str().unwrap());
        let text = self.text(file);
        assert_eq!(text.matches(old).count(), 1, "{old:?} in {text:?}");
        let (logged_old, logged_new) = (quoted(old), quoted(new));
        let before = quoted(&text.replace("\r\n", "\n"));
        let result = format!(
            r#"{{"filePath":{path},"oldString":{logged_old},"newString":{logged_new},"originalFile":{before}}}"#
        );
        let input = format!(r#"{{"file_path":{path},"old_string":{logged_old},"new_string":{logged_new}}}"#);
        self.call(session, "Edit", &input, &result);
        fs::write(self.path(file), text.replace(old, new)).unwrap();
    }

    fn app(&self) -> App {
        for (session, (log, _)) in &self.sessions {
            self.home.session_in(self.root().to_str().unwrap(), session, log);
        }
        let homes = vec![self.home.root().to_owned()];
        App::new(AppConfig { homes, current_dir: Some(self.root()), ..AppConfig::default() })
    }

    fn blame(&self, file: &str) -> FileBlame {
        self.app().blame(Path::new(file), BlameOptions::default()).unwrap()
    }

    /// Renders each line of a file with its origin: the prompt and the number of the turn, or the reason why
    /// it is unknown, and the commit.
    fn render(&self, file: &str) -> String {
        let blame = self.blame(file);
        assert!(blame.unread.is_empty(), "{:?}", blame.unread);
        let edit = |edit: usize| {
            let edit = &blame.edits[edit];
            format!("{} {}", edit.prompt.as_deref().unwrap_or("?"), edit.turn.unwrap_or(0))
        };
        let line = |line: &threadline_app::blame::BlamedLine| {
            let origin = match &line.origin {
                LineOrigin::Edit { edit: number, is_moved } => {
                    format!("{}{}", edit(*number), if *is_moved { " moved" } else { "" })
                }
                LineOrigin::Unknown { reason, candidates, .. } => {
                    let names: Vec<String> = candidates.iter().map(|number| edit(*number)).collect();
                    format!("{} [{}]", reason.name(), names.join(", ")).replace(" []", "")
                }
            };
            let commit = line.commit.map(|commit| &*blame.commits[commit].summary).unwrap_or("-");
            format!("{:<26}{:<8}{}", origin, commit, line.text)
        };
        blame.lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn sessions_and_people_write_lines() {
    let mut project = TestProject::with_git();
    project.by_hand("a.rs", "// by hand\n");
    project.commit("one");
    project.edit("first", "a.rs", "// by hand\n", "// by hand\nfn one() {}\n");
    project.prompt("first", "again");
    project.edit("first", "a.rs", "fn one() {}\n", "fn one() {}\nfn two() {}\n");
    project.commit("two");
    project.by_hand("a.rs", &(project.text("a.rs") + "// the end\n"));
    project.edit("second", "a.rs", "fn two() {}", "fn two(x: u8) {}");
    assert_snapshot!(project.render("a.rs"), @r"
    older                     one     // by hand
    first 1                   two     fn one() {}
    second 1                  -       fn two(x: u8) {}
    outside                   -       // the end
    ");
}

#[test]
fn the_texts_of_many_edits_of_a_long_file_are_not_kept() {
    let mut project = TestProject::new();
    let rest = "the same line\n".repeat(1_000);
    project.write("first", "a.rs", &format!("0\n{rest}"));
    let path = quoted(project.path("a.rs").to_str().unwrap());
    for n in 0..20 {
        let edit = format!(r#""{n}\n" "{}\n""#, n + 1);
        let (old, new) = edit.split_once(' ').unwrap();
        let result = format!(r#"{{"filePath":{path},"oldString":{old},"newString":{new}}}"#);
        let input = format!(r#"{{"file_path":{path},"old_string":{old},"new_string":{new}}}"#);
        project.call("first", "Edit", &input, &result);
    }
    project.by_hand("a.rs", &format!("20\n{rest}"));
    let blame = project.blame("a.rs");
    let origin = |line: usize| &blame.lines[line].origin;
    assert!(matches!(origin(0), LineOrigin::Edit { edit: 20, .. }), "{:?}", origin(0));
    assert!(matches!(origin(1), LineOrigin::Edit { edit: 0, .. }), "{:?}", origin(1));
    assert_eq!(blame.edits[20].changed_lines(), Some((1, 1)));
    let texts = blame.edits.iter().flat_map(|edit| [&edit.edit.before, &edit.edit.after]);
    let n_bytes: usize = texts.filter_map(|text| text.as_text()).map(str::len).sum();
    assert!(n_bytes < 2 * rest.len(), "{n_bytes}");
}

#[test]
fn edits_are_found_without_git() {
    let mut project = TestProject::new();
    project.write("first", "a.rs", "one\ntwo\n");
    project.by_hand("a.rs", "one\ntwo\nthree\n");
    assert_snapshot!(project.render("a.rs"), @r"
    first 1                   -       one
    first 1                   -       two
    outside                   -       three
    ");
}

#[cfg(unix)]
#[test]
fn edits_through_a_link_with_another_name_are_found_without_git() {
    let mut project = TestProject::new();
    fs::create_dir(project.path("real")).unwrap();
    std::os::unix::fs::symlink(project.path("real"), project.path("link")).unwrap();
    project.write("first", "link/a.rs", "one\ntwo\n");
    project.edit("second", "real/a.rs", "two\n", "two\nthree\n");
    // Another file with the same name.
    project.write("other", "else/a.rs", "one\ntwo\n");
    assert_snapshot!(project.render("real/a.rs"), @r"
    first 1                   -       one
    first 1                   -       two
    second 1                  -       three
    ");
    assert_eq!(project.render("link/a.rs"), project.render("real/a.rs"));
}

#[test]
fn lines_of_a_formatter_have_no_session() {
    let mut project = TestProject::with_git();
    project.write("first", "a.rs", "fn a(){\nlet x=1;\n}\n");
    project.by_hand("a.rs", "fn a() {\n    let x = 1;\n}\n");
    project.commit("one");
    project.write("second", "b.rs", "other file\n");
    assert_snapshot!(project.render("a.rs"), @r"
    reformatted [first 1]     one     fn a() {
    reformatted [first 1]     one         let x = 1;
    first 1                   one     }
    ");
}

#[test]
fn lines_follow_a_renamed_file() {
    let mut project = TestProject::with_git();
    let text = "fn one() {}\nfn two() {}\nfn three() {}\nfn four() {}\n";
    project.write("first", "old.rs", text);
    project.commit("one");
    project.git(&["mv", "old.rs", "new.rs"]);
    project.commit("two");
    project.edit("second", "new.rs", "two", "2");
    // Another file with the old name is another file.
    project.write("third", "old.rs", "fn one() {}\nother\n");
    project.edit("third", "old.rs", "other", "fn five() {}");
    project.by_hand("new.rs", &(project.text("new.rs") + "fn five() {}\n"));
    assert_snapshot!(project.render("new.rs"), @r"
    first 1                   one     fn one() {}
    second 1                  -       fn 2() {}
    first 1                   one     fn three() {}
    first 1                   one     fn four() {}
    outside                   -       fn five() {}
    ");
}

#[test]
fn moved_blocks_keep_their_origin() {
    let mut project = TestProject::with_git();
    project.write("first", "a.rs", "use std::fmt;\nuse std::io;\nuse std::path;\nuse std::process;\n");
    let block = "fn the_block_that_moves() {\n    println!();\n}\n";
    project.edit("second", "a.rs", "use std::fmt;", &format!("{block}use std::fmt;"));
    project.commit("one");
    project.by_hand("a.rs", &(project.text("a.rs").replace(block, "") + block));
    assert_snapshot!(project.render("a.rs"), @r"
    first 1                   one     use std::fmt;
    first 1                   one     use std::io;
    first 1                   one     use std::path;
    first 1                   one     use std::process;
    second 1 moved            -       fn the_block_that_moves() {
    second 1 moved            -           println!();
    second 1 moved            -       }
    ");
}

#[test]
fn reverted_and_repeated_lines_belong_to_the_last_writer() {
    let mut project = TestProject::with_git();
    project.write("first", "a.rs", "start\nlet answer = 42;\nend\n");
    project.commit("one");
    project.edit("second", "a.rs", "let answer = 42;", "let answer = 43;");
    project.commit("two");
    project.edit("third", "a.rs", "let answer = 43;", "let answer = 42;");
    project.commit("three");
    // Two sessions write the same line.
    project.edit("second", "a.rs", "end", "let answer = 42;\nend");
    assert_snapshot!(project.render("a.rs"), @r"
    first 1                   one     start
    third 1                   -       let answer = 42;
    second 1                  -       let answer = 42;
    first 1                   one     end
    ");
    // A person restores the last commit.
    project.git(&["checkout", "-q", "."]);
    assert_snapshot!(project.render("a.rs"), @r"
    first 1                   one     start
    ambiguous [third 1, second 1]three   let answer = 42;
    first 1                   one     end
    ");
    // An uncommitted change that is undone by a session: git still names the old commit.
    project.edit("second", "a.rs", "end", "END");
    project.edit("third", "a.rs", "END", "end");
    assert_snapshot!(project.render("a.rs"), @r"
    first 1                   one     start
    ambiguous [third 1, second 1]three   let answer = 42;
    ambiguous [first 1, third 1]one     end
    ");
}

#[test]
fn a_branch_that_was_switched_does_not_mix_origins() {
    let mut project = TestProject::with_git();
    project.by_hand("a.rs", "start\nmiddle\nend\n");
    project.commit("one");
    project.git(&["checkout", "-q", "-b", "feature"]);
    project.edit("first", "a.rs", "start", "start\nwritten on the feature branch");
    project.commit("feature");
    project.git(&["checkout", "-q", "main"]);
    project.edit("second", "a.rs", "end", "end\nwritten on the main branch");
    project.commit("main");
    assert_snapshot!(project.render("a.rs"), @r"
    older                     one     start
    older                     one     middle
    older                     one     end
    second 1                  main    written on the main branch
    ");
    project.git(&["checkout", "-q", "feature"]);
    assert_snapshot!(project.render("a.rs"), @r"
    older                     one     start
    first 1                   feature written on the feature branch
    older                     one     middle
    older                     one     end
    ");
    project.git(&["checkout", "-q", "main"]);
    project.git(&["merge", "-q", "--no-edit", "feature"]);
    assert_snapshot!(project.render("a.rs"), @r"
    older                     one     start
    first 1                   feature written on the feature branch
    older                     one     middle
    older                     one     end
    second 1                  main    written on the main branch
    ");
    // The same line by hand: git names its commit, and the session's edit was earlier, on another branch.
    project.git(&["checkout", "-q", "-b", "other", "HEAD~2"]);
    project.by_hand("a.rs", "start\nmiddle\nend\nby hand\n");
    project.commit("other");
    assert_snapshot!(project.render("a.rs"), @r"
    older                     one     start
    older                     one     middle
    older                     one     end
    outside                   other   by hand
    ");
}

#[test]
fn commits_of_other_working_trees_count() {
    let mut project = TestProject::with_git();
    project.by_hand("src/a.rs", "start\n");
    project.commit("one");
    project.git(&["worktree", "add", "-q", ".claude/worktrees/idea", "-b", "idea"]);
    project.edit("first", ".claude/worktrees/idea/src/a.rs", "start", "start\nfrom the tree");
    let tree = project.path(".claude/worktrees/idea");
    project.git(&["-C", tree.to_str().unwrap(), "commit", "-q", "-a", "-m", "tree"]);
    project.git(&["merge", "-q", "idea"]);
    project.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    // A file of the same name in another project is another file.
    project.write("second", "other/src/a.rs", "start\nuncommitted\n");
    project.by_hand("src/a.rs", "start\nfrom the tree\nuncommitted\n");
    assert_snapshot!(project.render("src/a.rs"), @r"
    older                     one     start
    first 1                   tree    from the tree
    older                     -       uncommitted
    ");
}

#[test]
fn edits_in_a_removed_working_tree_are_found() {
    for has_git in [true, false] {
        let mut project = if has_git { TestProject::with_git() } else { TestProject::new() };
        project.by_hand("src/a.rs", "start\n");
        if has_git {
            project.commit("one");
        }
        for (session, tree) in [("first", ".worktrees/3"), ("second", ".claude/worktrees/idea")] {
            project.write(session, &format!("{tree}/src/a.rs"), "start\nfrom the tree\n");
            // Another file of the tree with the same name.
            project.write(session, &format!("{tree}/lib/src/a.rs"), "another\n");
            fs::remove_dir_all(project.path(tree)).unwrap();
        }
        let edits = project.app().file_edits(Path::new("src/a.rs")).unwrap().edits;
        let prompts: Vec<_> = edits.iter().map(|edit| edit.prompt.as_deref().unwrap()).collect();
        assert_eq!(prompts, ["first", "second"], "git: {has_git}");
    }
}

#[test]
fn line_ends_wide_characters_and_missing_newlines() {
    let mut project = TestProject::with_git();
    project.by_hand("织机 \"x\".txt", "一\r\n二\r\n");
    project.commit("one");
    let file = "织机 \"x\".txt";
    project.write("first", file, "一\r\n二\r\n三 梭子");
    project.commit("two");
    project.by_hand(file, &(project.text(file) + "\r\n四"));
    assert_snapshot!(project.render(file), @r"
    older                     one     一
    older                     one     二
    first 1                   two     三 梭子
    outside                   -       四
    ");
}

#[test]
fn a_fork_contains_copies_of_edits() {
    let mut project = TestProject::with_git();
    project.write("first", "a.rs", "one\n");
    let (log, n) = project.sessions["first"].clone();
    let copy = log.lines().map(|line| {
        format!("{line} +{{\"forkedFrom\":{{\"sessionId\":\"first\",\"messageUuid\":\"x\"}}}}\n")
    });
    project.sessions.insert("a-fork", (copy.collect(), n));
    project.edit("a-fork", "a.rs", "one", "one\ntwo");
    let blame = project.blame("a.rs");
    let ids: Vec<&str> = blame.edits.iter().map(|edit| edit.session.id.as_ref()).collect();
    assert_eq!(
        ids,
        [&*threadline_testkit::session_uuid("first"), &*threadline_testkit::session_uuid("a-fork")]
    );
}

#[test]
fn programs_named_by_a_repository_are_not_run() {
    let mut project = TestProject::with_git();
    project.by_hand("a.rs", "one\n");
    project.by_hand(".gitattributes", "*.rs diff=evil filter=evil\n");
    project.commit("one");
    let trap = project.path("trap");
    let program = format!("touch {}; cat", trap.display());
    for setting in [
        "core.fsmonitor",
        "core.pager",
        "diff.evil.textconv",
        "diff.external",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.sshCommand",
        "gpg.program",
    ] {
        project.git(&["config", setting, &program]);
    }
    project.git(&["config", "log.showSignature", "true"]);
    let hook = project.path(".git/hooks/post-index-change");
    fs::write(&hook, format!("#!/bin/sh\n{program}\n")).unwrap();
    assert!(!project.render("a.rs").is_empty());
    assert!(!trap.exists());
}

#[test]
fn an_edit_after_a_notification_has_its_title_as_prompt() {
    let home = TestHome::new();
    home.session(
        "loom",
        r#"
u1        user   "test it"
a1 <- u1  reply  m1 text "On it."
u2 <- a1  user   "<task-notification><summary>Tests passed</summary></task-notification>"
a2 <- u2  reply  m2 tool t1 Write {"file_path":"D:\\loom\\a.go","content":"x\n"}
r1 <- a2  result t1 "ok" {"type":"create","filePath":"D:\\loom\\a.go","content":"x\n","originalFile":null}
title "Slow loom"
"#,
    );
    let found = crate::app(&home).file_edits(Path::new(r"D:\loom\a.go")).unwrap();
    let prompts: Vec<_> = found.edits.iter().map(|edit| edit.prompt.as_deref()).collect();
    assert_eq!(prompts, [Some("Background task finished: Tests passed")]);
}

#[test]
fn paths_of_other_machines_have_edits_but_no_lines() {
    let mut project = TestProject::new();
    // The path of another system: a log from Windows on Unix, and a log from Unix on Windows.
    let [path, in_worktree, other] = match cfg!(windows) {
        false => [r"D:\loom\src\a.go", r"D:\loom\.claude\worktrees\fix\src\a.go", r"D:\weft\src\a.go"],
        true => ["/loom/src/a.go", "/loom/.claude/worktrees/fix/src/a.go", "/weft/src/a.go"],
    };
    let share = r"\\host\loom\b.go";
    for (session, path) in [("one", path), ("two", in_worktree), ("three", other), ("four", share)] {
        let path = quoted(path);
        let result = format!(r#"{{"type":"create","filePath":{path},"content":"x\n","originalFile":null}}"#);
        project.call(session, "Write", &format!(r#"{{"file_path":{path},"content":"x\n"}}"#), &result);
    }
    let app = project.app();
    let prompts = |path: &str| -> Vec<String> {
        let found = app.file_edits(Path::new(path)).unwrap();
        assert_eq!(found.path, Path::new(path));
        assert_eq!(found.is_on_other_machine(), !Path::new(path).is_absolute());
        found.edits.into_iter().filter_map(|edit| edit.prompt).collect()
    };
    assert_eq!(prompts(path), ["one", "two"]);
    assert_eq!(prompts(other), ["three"]);
    assert_eq!(prompts(share), ["four"]);
    for options in [BlameOptions::default(), BlameOptions { only_edited: true, ..BlameOptions::default() }] {
        let error = app.blame(Path::new(path), options).unwrap_err();
        assert!(matches!(error, BlameError::OtherMachine { .. }), "{error}");
    }
    // A file here that has this name is preferred.
    if !cfg!(windows) {
        project.by_hand(path, "x\n");
        let found = app.file_edits(Path::new(path)).unwrap();
        assert_eq!((found.path, found.edits.len()), (project.path(path), 0));
    }
}
