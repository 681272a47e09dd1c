//! Net changes of files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use threadline_evidence::{Certainty, FileEdit, FileEvidence, LogOnly};
use threadline_session::{Session, SessionFamily};
use threadline_testkit::log;
use threadline_view::{FileChange, patch};

fn family(bytes: &[u8]) -> SessionFamily {
    SessionFamily::new(Session::from_bytes(bytes), Vec::new())
}

/// Returns the net changes according to the log alone.
fn changes(family: &SessionFamily) -> Vec<FileChange> {
    threadline_view::changes(&FileEvidence::of(family, &LogOnly), family)
}

/// Applies the patch to the original files with git, and returns the resulting texts; `None` if git is
/// missing.
fn applied(files: &[FileChange], root: Option<&str>) -> Option<BTreeMap<String, String>> {
    if Command::new("git").arg("--version").output().is_err() {
        threadline_testkit::report_skipped("there is no git");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let place = |file: &FileChange| {
        let path = file.path.replace('\\', "/");
        let inside =
            root.and_then(|root| path.strip_prefix(&(root.replace('\\', "/") + "/")).map(str::to_owned));
        dir.path().join(inside.unwrap_or(path.trim_start_matches('/').to_owned()))
    };
    for file in files {
        std::fs::create_dir_all(place(file).parent().unwrap()).unwrap();
        if let Some(before) = file.text_before() {
            std::fs::write(place(file), &*before).unwrap();
        }
    }
    std::fs::write(dir.path().join("the.patch"), patch(files, root)).unwrap();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir.path());
        // Ignore the user's settings, and the repository if the tests run in a Git hook.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            command.env_remove(name);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["apply", "--whitespace=nowarn", "the.patch"]);
    let read = |file: &FileChange| std::fs::read_to_string(place(file)).unwrap_or_default();
    Some(files.iter().map(|file| (file.path.clone(), read(file))).collect())
}

fn expected(files: &[FileChange]) -> BTreeMap<String, String> {
    files.iter().map(|file| (file.path.clone(), file.text_after().unwrap_or_default().into_owned())).collect()
}

const EDITS: &str = r#"
u1        user  "go"
a1 <- u1  reply m1 tool t1 Write {"file_path":"/home/ada/loom/new.txt","content":"one\ntwo"}
r1 <- a1  result t1 "ok" {"type":"create","filePath":"/home/ada/loom/new.txt","content":"one\ntwo","structuredPatch":[],"originalFile":null}
a2 <- r1  reply m2 tool t2 Edit {"file_path":"/home/ada/loom/a.rs","old_string":"b","new_string":"B"}
r2 <- a2  result t2 "ok" {"filePath":"/home/ada/loom/a.rs","oldString":"b","newString":"B","originalFile":"a\nb\nb\n","replaceAll":true}
a3 <- r2  reply m3 tool t3 Edit {"file_path":"/home/ada/loom/a.rs","old_string":"a","new_string":""}
r3 <- a3  result t3 "ok" {"filePath":"/home/ada/loom/a.rs","oldString":"a","newString":"","originalFile":"a\nB\nB\n","replaceAll":false}
a4 <- r3  reply m4 tool t4 Edit {"file_path":"/home/ada/loom/a.rs","old_string":"x","new_string":"y"}
r4 <- a4  result t4 "not found" error
"#;

#[test]
fn edits_combine_into_one_patch_for_git() {
    let files = changes(&family(&log(EDITS)));
    insta::assert_snapshot!(patch(&files, Some("/home/ada/loom")), @r"
    diff --git a/a.rs b/a.rs
    --- a/a.rs
    +++ b/a.rs
    @@ -1,3 +1,2 @@
    -a
    -b
    -b
    +B
    +B
    diff --git a/new.txt b/new.txt
    new file mode 100644
    --- /dev/null
    +++ b/new.txt
    @@ -0,0 +1,2 @@
    +one
    +two
    \ No newline at end of file
    ");
    if let Some(applied) = applied(&files, Some("/home/ada/loom")) {
        assert_eq!(applied, expected(&files));
    }
}

#[test]
fn a_change_between_edits_is_part_of_the_net_change() {
    let files = changes(&family(&log(
        &EDITS.replace(r#""originalFile":"a\nB\nB\n""#, r#""originalFile":"a\nB\nB\nmore\n""#)
    )));
    assert_eq!(files[0].text_after().as_deref(), Some("B\nB\nmore\n"));
}

#[test]
fn the_changes_of_real_sessions_apply() {
    let (mut whole, mut chains, mut unknown, mut is_lost) = (0, 0, 0, 0);
    for path in threadline_testkit::shared_logs() {
        let family = family(&std::fs::read(&path).unwrap());
        let changed = changes(&family);
        let count = |is_counted: fn(&&FileChange) -> bool| changed.iter().filter(is_counted).count();
        whole += count(|file| file.has_whole());
        chains += count(|file| !file.has_whole() && file.is_chain);
        unknown += count(|file| !file.has_whole() && !file.is_chain);
        check_with_git(&changed, &path);
        is_lost += edits_without_text(&family, &changed);
    }
    println!("{whole} files with both texts, {chains} with their changed lines, {unknown} known in part");
    assert!(unknown * 2 <= whole + chains, "{unknown} of {whole} and {chains}");
    assert_eq!(is_lost, 0, "edits whose changed lines are logged and shown nowhere");
}

/// Returns the number of edits whose results have changed lines but not the text of the file, and whose lines
/// no net change shows.
fn edits_without_text(family: &SessionFamily, changed: &[FileChange]) -> usize {
    let edits = FileEvidence::of(family, &LogOnly).edits().into_iter();
    let is_shown = |edit: &FileEdit| {
        let file = changed.iter().find(|file| file.path == edit.path);
        let is_there = |line: &String| {
            file.is_some_and(|file| {
                let mut parts = file.parts.iter().flatten().flat_map(|hunk| &hunk.lines);
                file.has_whole() || parts.any(|known| known == line)
            })
        };
        edit.hunks.iter().flat_map(|hunk| &hunk.lines).all(is_there)
    };
    edits.filter(|edit| !edit.hunks.is_empty() && !is_shown(edit)).count()
}

fn check_with_git(changed: &[FileChange], log: &Path) {
    // For the others, git would need a text that the log does not contain.
    let texts: Vec<FileChange> = changed.iter().filter(|file| file.has_whole()).cloned().collect();
    if !texts.is_empty()
        && let Some(applied) = applied(&texts, None)
    {
        assert_eq!(applied, expected(&texts), "{}", log.display());
    }
}

/// Returns the changes of a session of shell commands, each with the given `bashEditDiff` in its result.
fn commands(first: &str, diffs: &[&str]) -> Vec<FileChange> {
    let mut notation = format!("u1 user \"go\"\n{first}\n");
    for (i, diff) in diffs.iter().enumerate() {
        notation.push_str(&format!(
            "b{i} reply n{i} tool k{i} Bash {{\"command\":\"x\"}}\ns{i} <- b{i} result k{i} \"\" {{\"stdout\":\"\",\"bashEditDiff\":{diff}}}\n"
        ));
    }
    changes(&family(&log(&notation)))
}

const READ: &str = r#"a0 reply m0 tool t0 Read {"file_path":"/w/a.txt"}
r0 <- a0 result t0 "…" {"type":"text","file":{"filePath":"/w/a.txt","content":"hello\nsecond\n","numLines":3,"startLine":1,"totalLines":3}}"#;
const BYE: &str = r#"{"files":[{"filePath":"/w/a.txt","hunks":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":["-hello","+bye"," second"]}]}],"moreFiles":0,"changedFiles":["/w/a.txt"]}"#;
/// The diff against the text that was read: the changes of `BYE` and one more line.
const BYE_X: &str = r#"{"files":[{"filePath":"/w/a.txt","hunks":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":3,"lines":["-hello","+bye"," second","+x"]}]}],"moreFiles":0,"changedFiles":["/w/a.txt"]}"#;

/// One more line.
const X: &str = r#"{"files":[{"filePath":"/w/a.txt","hunks":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":3,"lines":[" bye"," second","+x"]}]}],"moreFiles":0,"changedFiles":["/w/a.txt"]}"#;

#[test]
fn changes_of_shell_commands_are_in_the_patch() {
    // The text is known from a read; the second diff is relative to it, too.
    insta::assert_snapshot!(patch(&commands(READ, &[BYE, BYE_X]), Some("/w")), @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,3 @@
    -hello
    +bye
     second
    +x
    ");
}

#[test]
fn changed_lines_of_a_file_that_was_never_read_are_in_the_patch() {
    let files = commands("", &[BYE, X]);
    insta::assert_snapshot!(patch(&files, Some("/w")), @"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
    -hello
    +bye
     second
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,3 @@
     bye
     second
    +x
    ");
    assert_eq!((files[0].edits(), files[0].hunks().len()), (2, 2));
}

#[test]
fn created_deleted_and_listed_files_are_distinguished() {
    let made = r#"{"files":[{"filePath":"/w/n.txt","hunks":[{"oldStart":1,"oldLines":0,"newStart":1,"newLines":1,"lines":["+no newline","\\ No newline at end of file"]}],"created":true},{"filePath":"/w/d.txt","hunks":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":0,"lines":["-one","-two"]}],"deleted":true}],"moreFiles":1,"changedFiles":["/w/n.txt","/w/d.txt","/w/bin.dat"]}"#;
    let files = commands("", &[made]);
    insta::assert_snapshot!(patch(&files, Some("/w")), @r"
    # bin.dat: changed by m3; the text is not known
    diff --git a/d.txt b/d.txt
    deleted file mode 100644
    --- a/d.txt
    +++ /dev/null
    @@ -1,2 +0,0 @@
    -one
    -two
    diff --git a/n.txt b/n.txt
    new file mode 100644
    --- /dev/null
    +++ b/n.txt
    @@ -0,0 +1 @@
    +no newline
    \ No newline at end of file
    ");
    if let Some(applied) = applied(&files, Some("/w")) {
        assert_eq!(applied["/w/n.txt"], "no newline");
        assert_eq!(applied["/w/d.txt"], "");
    }
}

#[test]
fn a_notebook_has_its_texts_in_the_result() {
    let files = changes(&family(&log(r#"
u1        user  "go"
a1 <- u1  reply m1 tool t1 NotebookEdit {"notebook_path":"/w/n.ipynb","new_source":"2"}
r1 <- a1  result t1 "ok" {"new_source":"2","notebook_path":"/w/n.ipynb","original_file":"{1}\n","updated_file":"{2}\n"}
"#)));
    let texts = (files[0].text_before(), files[0].text_after());
    assert_eq!((texts.0.as_deref(), texts.1.as_deref()), (Some("{1}\n"), Some("{2}\n")));
}

/// An edit of `/w/a.txt` whose result has the changed lines and not the text of the file.
fn edit_without_text(n: usize, before: &str, (old, new): (&str, &str), patch: &str) -> String {
    format!(
        "e{n} <- {before} reply e{n} tool w{n} Edit {{\"file_path\":\"/w/a.txt\",\"old_string\":\"{old}\",\"new_string\":\"{new}\"}}\n\
         f{n} <- e{n} result w{n} \"ok\" {{\"filePath\":\"/w/a.txt\",\"oldString\":\"{old}\",\"newString\":\"{new}\",\"originalFile\":null,\"structuredPatch\":[{patch}]}}\n"
    )
}

const ONE: &str =
    r#"{"oldStart":4,"oldLines":3,"newStart":4,"newLines":3,"lines":[" a","-one","+ONE"," b"]}"#;
const TWO: &str =
    r#"{"oldStart":9,"oldLines":3,"newStart":9,"newLines":3,"lines":[" c","-two","+TWO"," d"]}"#;

#[test]
fn hunks_of_edits_without_the_text_of_the_file_are_in_the_patch() {
    let notation = format!(
        "u1 user \"go\"\n{}{}",
        edit_without_text(1, "u1", ("one", "ONE"), ONE),
        edit_without_text(2, "f1", ("two", "TWO"), TWO)
    );
    let files = changes(&family(&log(&notation)));
    insta::assert_snapshot!(patch(&files, Some("/w")), @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -4,3 +4,3 @@
     a
    -one
    +ONE
     b
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -9,3 +9,3 @@
     c
    -two
    +TWO
     d
    ");
}

#[test]
fn a_known_text_and_hunks_of_another_one_are_no_patch() {
    let notation = format!(
        "u1 user \"go\"\n\
         a1 <- u1 reply m1 tool t1 Write {{\"file_path\":\"/w/a.txt\",\"content\":\"new\\n\"}}\n\
         r1 <- a1 result t1 \"ok\" {{\"type\":\"create\",\"filePath\":\"/w/a.txt\",\"content\":\"new\\n\",\"originalFile\":null}}\n{}",
        edit_without_text(1, "r1", ("one", "ONE"), ONE)
    );
    let files = changes(&family(&log(&notation)));
    assert_eq!(patch(&files, Some("/w")), "# a.txt: changed by m5; the text is not known\n");
    assert_eq!((files[0].is_new(), files[0].hunks().len()), (true, 2));
}

#[test]
fn carriage_returns_and_a_missing_newline_are_in_the_patch() {
    let notation = "u1 user \"go\"\n\
         a1 <- u1 reply m1 tool t1 Write {\"file_path\":\"/w/a.txt\",\"content\":\"new\\r\\nlast\"}\n\
         r1 <- a1 result t1 \"ok\" {\"type\":\"create\",\"filePath\":\"/w/a.txt\",\"content\":\"new\\r\\nlast\",\"originalFile\":null}\n";
    let patch = patch(&changes(&family(&log(notation))), Some("/w"));
    let expected = "@@ -0,0 +1,2 @@\n+new\r\n+last\n\\ No newline at end of file\n";
    assert!(patch.contains(expected), "{patch:?}");
}

#[test]
fn edits_of_sub_agents_without_a_record_are_named() {
    let main = log("u1 user \"go\"\na1 <- u1 reply m1 tool t1 Agent {\"prompt\":\"edit\"}");
    let agent = log(
        "x1 user \"edit\" sidechain agent=a1\nx2 <- x1 reply n1 tool k1 Edit {\"file_path\":\"/w/a.txt\",\"old_string\":\"one\",\"new_string\":\"ONE\"} sidechain agent=a1\nx3 <- x2 result k1 \"ok\" sidechain agent=a1",
    );
    let files = changes(&SessionFamily::from_bytes(&main, [("a1".to_owned(), agent)]));
    insta::assert_snapshot!(patch(&files, Some("/w")), @"# a.txt: changed by m3 of agent a1; the text is not known");
}

#[test]
fn edits_of_sub_agents_that_read_the_file_are_in_the_patch() {
    let main = log("u1 user \"go\"\na1 <- u1 reply m1 tool t1 Agent {\"prompt\":\"edit\"}");
    let agent = log("x1 user \"edit\" sidechain agent=a1\n\
         x2 <- x1 reply n1 tool k1 Read {\"file_path\":\"/w/a.txt\"} sidechain agent=a1\n\
         x3 <- x2 result k1 \"1\\tone\\n2\\ttwo\\n3\\t\" sidechain agent=a1\n\
         x4 <- x3 reply n2 tool k2 Edit {\"file_path\":\"/w/a.txt\",\"old_string\":\"one\",\"new_string\":\"ONE\"} sidechain agent=a1\n\
         x5 <- x4 result k2 \"ok\" sidechain agent=a1");
    let files = changes(&SessionFamily::from_bytes(&main, [("a1".to_owned(), agent)]));
    insta::assert_snapshot!(patch(&files, Some("/w")), @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
    -one
    +ONE
     two
    ");
}

#[test]
fn a_deleted_file_of_unknown_text_is_named() {
    let gone = r#"{"files":[{"filePath":"/w/a.txt","hunks":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":0,"lines":["-hello","\\ No newline at end of file"]}],"deleted":true}],"moreFiles":0}"#;
    let files = commands("", &[BYE, gone]);
    assert_eq!(files[0].notes, ["changed by m3, m5; the text is not known"]);
    // The list may lack the newline at the end of the file, so the text is likely.
    let only = commands("", &[gone]);
    assert_eq!(only[0].certainty, Certainty::Likely);
}
