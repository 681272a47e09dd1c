//! What became of files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use threadline_session::{Family, Session};
use threadline_testkit::log;
use threadline_view::{FileChange, changes, patch};

fn family(bytes: &[u8]) -> Family {
    Family::new(Session::from_bytes(bytes), Vec::new())
}

/// Applies the patch to the files as they were, with git, and gives them as they are then; `None` without git.
fn applied(files: &[FileChange], root: Option<&str>) -> Option<BTreeMap<String, String>> {
    if Command::new("git").arg("--version").output().is_err() {
        threadline_testkit::skipped("there is no git");
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
        if let Some(before) = &file.before {
            std::fs::write(place(file), before).unwrap();
        }
    }
    std::fs::write(dir.path().join("the.patch"), patch(files, root)).unwrap();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir.path());
        // Neither the person's settings nor the repository in whose hook the tests run.
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
    files.iter().map(|file| (file.path.clone(), file.after.clone())).collect()
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
fn edits_fold_into_one_patch_that_git_takes() {
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
fn a_change_that_no_edit_made_is_noted() {
    let files = changes(&family(&log(
        &EDITS.replace(r#""originalFile":"a\nB\nB\n""#, r#""originalFile":"a\nB\nB\nmore\n""#)
    )));
    assert_eq!(files[0].notes.len(), 1);
    assert_eq!(files[0].after, "B\nB\nmore\n");
}

#[test]
fn real_edits_lead_to_the_files_that_the_next_edit_found() {
    let (mut kept, mut lost, mut files) = (0, 0, 0);
    for path in threadline_testkit::shared_logs() {
        let bytes = std::fs::read(&path).unwrap();
        let family = family(&bytes);
        let changed = changes(&family);
        files += changed.len();
        lost += changed.iter().map(|file| file.notes.len()).sum::<usize>();
        kept += changed.iter().map(|file| file.edits - 1).sum::<usize>();
        check_with_git(&changed, &path);
    }
    // Formatters and commands change files between edits now and then; our own arithmetic does not.
    assert!(lost * 10 <= kept, "{lost} of {kept} edits found another file than the one before them left");
    println!(
        "{files} files, {kept} edits of a file that was edited before, {lost} of them after something else changed it"
    );
}

fn check_with_git(changed: &[FileChange], log: &Path) {
    let texts: Vec<FileChange> = changed.to_vec();
    if !texts.is_empty()
        && let Some(applied) = applied(&texts, None)
    {
        assert_eq!(applied, expected(&texts), "{}", log.display());
    }
}
