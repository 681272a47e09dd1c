//! Operations on plain files and logs: done, undone, redone, and met by other programs.

mod receipts;

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use super::*;
use crate::disk::Visibility;

pub(super) struct World {
    pub(super) dir: tempfile::TempDir,
    pub(super) operations: Operations,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let operations = Operations::at(dir.path().join("state/operations"));
        Self { dir, operations }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs_err::read_to_string(self.at(name)).unwrap()
    }

    fn files(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.at("home")];
        while let Some(folder) = folders.pop() {
            for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
                let name = entry.path().strip_prefix(self.dir.path()).unwrap().to_string_lossy().into_owned();
                found.push((name, fs_err::read_to_string(entry.path()).unwrap_or_default()));
            }
        }
        found.sort();
        found
    }

    fn steps(&self, torn: bool) -> Vec<Step<'static>> {
        let mut steps = vec![
            create(self.at("home/s1/made/deep"), "made"),
            replace(self.at("home/replaced.jsonl"), "old\n", "new\n"),
            append(self.at("home/appended.jsonl"), "line\ntorn", "more"),
            remove(self.at("home/s1/removed")),
        ];
        if torn {
            // This cannot be done: the file is there.
            steps.push(create(self.at("home/there"), "no"));
        }
        steps
    }
}

fn create(path: PathBuf, text: &'static str) -> Step<'static> {
    let content = Box::new(Cursor::new(text));
    let action = StepAction::Create { content, visibility: Visibility::Private };
    Step { kind: FileKind::of(&path), path, action, modified: None }
}

fn replace(path: PathBuf, read: &str, text: &'static str) -> Step<'static> {
    let read = FileDigest::of(read.as_bytes());
    let action = StepAction::Replace { read, content: Box::new(Cursor::new(text)) };
    Step { kind: FileKind::of(&path), path, action, modified: None }
}

fn remove(path: PathBuf) -> Step<'static> {
    Step { path, kind: FileKind::Plain, action: StepAction::Remove, modified: None }
}

fn append(path: PathBuf, read: &str, line: &str) -> Step<'static> {
    let action = StepAction::Append { read: FileDigest::of(read.as_bytes()), lines: vec![line.to_owned()] };
    Step { kind: FileKind::Log, path, action, modified: None }
}

fn add(path: &Path, text: &str) {
    use std::io::Write;
    fs_err::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

pub(super) fn operation(id: &str) -> NewOperation {
    NewOperation {
        id: id.to_owned(),
        operation: Operation::Strip,
        command: Vec::new(),
        made_at: format!("2026-01-01T10:00:00.00{}Z", id.len()),
        source: "s1".into(),
        target: "s1".into(),
        home: None,
        summary: String::new(),
    }
}

fn full_world() -> World {
    let world = World::new();
    world.put("home/replaced.jsonl", "old\n");
    world.put("home/appended.jsonl", "line\ntorn");
    world.put("home/s1/removed", "kept");
    world.put("home/there", "there");
    world
}

#[test]
fn everything_is_done_undone_and_redone() {
    let world = full_world();
    let before = world.files();
    let done = world.operations.apply(operation("a"), world.steps(false)).unwrap();
    assert_eq!(done.state, OperationState::Done);
    let after = world.files();
    let expected = [
        ("home/appended.jsonl", "line\ntorn\nmore\n"),
        ("home/replaced.jsonl", "new\n"),
        ("home/s1", ""),
        ("home/s1/made", ""),
        ("home/s1/made/deep", "made"),
        ("home/there", "there"),
    ];
    assert_eq!(after, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(world.operations.find("last").unwrap(), done);
    assert!(matches!(world.operations.redo(&done, false), Err(OpError::AlreadyDone { .. })));
    for _ in 0..3 {
        let undone = world.operations.undo(&done, false).unwrap();
        assert_eq!((undone.files, undone.untouched, undone.skipped.len()), (4, 0, 0));
        assert_eq!(world.files(), before);
        assert!(matches!(world.operations.undo(&done, false), Err(OpError::AlreadyUndone { .. })));
        assert!(matches!(world.operations.find("last"), Err(OpError::NoSuch { .. })));
        let redone = world.operations.redo(&world.operations.find_undone("last").unwrap(), false).unwrap();
        assert_eq!((redone.files, redone.untouched, redone.skipped.len()), (4, 0, 0));
        assert_eq!(world.files(), after);
    }
}

/// Two programs plan an edit of the same log, whose last line has no newline, and apply them one after the
/// other.
#[test]
fn edits_at_once_of_a_log_without_a_last_newline_do_not_repeat_its_last_line() {
    let world = World::new();
    let log = world.put("home/s.jsonl", "a\nlast");
    let title = vec![replace(log.clone(), "a\nlast", "a\nlast\ntitle\n")];
    let edit = vec![replace(log, "a\nlast", "A\nLAST\n")];
    let title = world.operations.apply(operation("a"), title).unwrap();
    let edit = world.operations.apply(operation("bb"), edit).unwrap();
    assert_eq!(world.read("home/s.jsonl"), "A\nLAST\ntitle\n");
    for _ in 0..2 {
        let undone = world.operations.undo(&edit, false).unwrap();
        assert_eq!(undone.foreign_bytes, 0);
        assert_eq!(world.read("home/s.jsonl"), "a\nlast\ntitle\n");
        let undone = world.operations.undo(&title, false).unwrap();
        assert_eq!(undone.foreign_bytes, 0);
        assert_eq!(world.read("home/s.jsonl"), "a\nlast");
        assert_eq!(world.operations.redo(&title, false).unwrap().foreign_bytes, 0);
        assert_eq!(world.operations.redo(&edit, false).unwrap().foreign_bytes, 0);
        assert_eq!(world.read("home/s.jsonl"), "A\nLAST\ntitle\n");
    }
}

#[test]
fn a_program_that_completes_the_last_line_adds_no_second_one() {
    let world = World::new();
    let log = world.put("home/s.jsonl", "a\nlast");
    let done =
        world.operations.apply(operation("a"), vec![replace(log.clone(), "a\nlast", "A\nLAST\n")]).unwrap();
    let backup = world.operations.folder("a").join("0.before");
    // A program that had the log open before the edit.
    add(&backup, "\nlate\n");
    let undone = world.operations.undo(&done, false).unwrap();
    assert_eq!((world.read("home/s.jsonl").as_str(), undone.foreign_bytes), ("a\nlast\nlate\n", 5));
}

#[test]
fn the_incomplete_last_line_of_a_log_was_not_appended_since() {
    let world = World::new();
    let log = world.put("home/s.jsonl", "a\n{\"torn");
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs_err::OpenOptions::new().append(true).open(&log).unwrap().set_modified(time).unwrap();
    let title = vec![replace(log.clone(), "a\n", "a\ntitle\n")];
    let done = world.operations.apply(operation("a"), title).unwrap();
    assert_eq!(world.read("home/s.jsonl"), "a\ntitle\n{\"torn");
    for _ in 0..2 {
        let undone = world.operations.undo(&done, false).unwrap();
        assert_eq!((world.read("home/s.jsonl").as_str(), undone.foreign_bytes), ("a\n{\"torn", 0));
        assert_eq!(fs_err::metadata(&log).unwrap().modified().unwrap(), time);
        assert_eq!(world.operations.redo(&done, false).unwrap().foreign_bytes, 0);
        assert_eq!(world.read("home/s.jsonl"), "a\ntitle\n{\"torn");
    }
    add(&log, "\"}\nmore\n");
    let undone = world.operations.undo(&done, false).unwrap();
    assert_eq!((world.read("home/s.jsonl").as_str(), undone.foreign_bytes), ("a\n{\"torn\"}\nmore\n", 8));
}

#[test]
fn the_operation_that_was_undone_last_is_redone_first() {
    let world = World::new();
    for id in ["a", "bb", "ccc"] {
        world.operations.apply(operation(id), vec![create(world.at(&format!("home/{id}")), "")]).unwrap();
    }
    for id in ["ccc", "bb", "a"] {
        let last = world.operations.find("last").unwrap();
        assert_eq!(last.id, id);
        world.operations.undo(&last, false).unwrap();
    }
    for id in ["a", "bb", "ccc"] {
        let last = world.operations.find_undone("last").unwrap();
        assert_eq!(last.id, id);
        world.operations.redo(&last, false).unwrap();
    }
}

/// An operation gets its time before it waits for the lock.
#[test]
fn the_last_operation_is_the_one_that_changed_files_last() {
    let world = World::new();
    for id in ["ccc", "a", "bb"] {
        world.operations.apply(operation(id), vec![create(world.at(&format!("home/{id}")), "")]).unwrap();
    }
    let listed: Vec<_> = world.operations.list().found.into_iter().map(|receipt| receipt.id).collect();
    assert_eq!(listed, ["bb", "a", "ccc"]);
    assert_eq!(world.operations.find("last").unwrap().id, "bb");
}

#[test]
fn an_operation_that_fails_changes_nothing_and_leaves_no_receipt() {
    let world = full_world();
    let before = world.files();
    let failed = world.operations.apply(operation("a"), world.steps(true)).unwrap_err();
    assert!(matches!(failed, OpError::NotDone { reverted: 4, .. }), "{failed:?}");
    assert_eq!(world.files(), before);
    assert!(world.operations.list().found.is_empty());
}

/// A person makes a file while a restore that would make it is running.
#[test]
fn a_file_that_appears_meanwhile_is_not_removed_by_the_roll_back() {
    struct Meanwhile(PathBuf, &'static str);
    impl Read for Meanwhile {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            fs_err::write(&self.0, self.1).map(|()| 0)
        }
    }
    // Even one that has the very content that the operation would have written.
    for theirs in ["mine", ""] {
        let world = World::new();
        fs_err::create_dir_all(world.at("home")).unwrap();
        let path = world.at("home/new.txt");
        let content = Box::new(Meanwhile(path.clone(), theirs));
        let action = StepAction::Create { content, visibility: Visibility::Shared };
        let steps = vec![
            create(world.at("home/first"), "first"),
            Step { path, kind: FileKind::Plain, action, modified: None },
        ];
        let failed = world.operations.apply(operation("a"), steps).unwrap_err();
        assert!(matches!(failed, OpError::NotDone { .. }), "{failed:?}");
        assert_eq!(world.files(), [("home/new.txt".to_owned(), theirs.to_owned())]);
    }
}

#[test]
fn an_undo_does_nothing_when_one_file_has_changed() {
    for (name, text) in [
        ("home/replaced.jsonl", "other"),
        ("home/appended.jsonl", "lane\ntorn\nmore\nyet more\n"),
        ("home/s1/made/deep", "other"),
        ("home/s1/made/deep", "made and more"),
        ("home/s1/removed", "another"),
    ] {
        let world = full_world();
        let done = world.operations.apply(operation("a"), world.steps(false)).unwrap();
        world.put(name, text);
        let changed = world.files();
        let error = world.operations.undo(&done, false).unwrap_err();
        assert!(
            matches!(&error, OpError::Changed { files } if files[0].path == world.at(name)),
            "{name}: {error}"
        );
        assert_eq!(world.files(), changed);
        // The other files can be undone; the changed one is kept.
        let undone = world.operations.undo(&done, true).unwrap();
        assert_eq!((undone.files, undone.skipped.len()), (3, 1));
        assert_eq!(world.read(name), text);
    }
}

/// `restore` makes many files; one that a person then changed is theirs.
#[test]
fn of_independent_files_those_that_changed_are_left() {
    let world = World::new();
    let steps = vec![create(world.at("home/out/a"), "a"), create(world.at("home/out/b"), "b")];
    let independent = NewOperation { operation: Operation::Restore, ..operation("a") };
    let done = world.operations.apply(independent, steps).unwrap();
    world.put("home/out/b", "b, changed");
    world.put("home/out/c", "new");
    let undone = world.operations.undo(&done, false).unwrap();
    assert_eq!((undone.files, undone.skipped.len()), (1, 1));
    assert_eq!(undone.skipped[0].path, world.at("home/out/b"));
    let left: Vec<_> = world.files().into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["home/out", "home/out/b", "home/out/c"]);
}

#[test]
fn lines_of_others_stay_in_every_version() {
    let world = full_world();
    let steps = vec![
        replace(world.at("home/replaced.jsonl"), "old\n", "new\n"),
        append(world.at("home/appended.jsonl"), "line\ntorn", "more"),
    ];
    add(&world.at("home/replaced.jsonl"), "one\n");
    let done = world.operations.apply(operation("a"), steps).unwrap();
    assert_eq!(world.read("home/replaced.jsonl"), "new\none\n");
    add(&world.at("home/replaced.jsonl"), "two\n");
    add(&world.at("home/appended.jsonl"), "three\n");
    let undone = world.operations.undo(&done, false).unwrap();
    // One line was there before the operation began.
    assert_eq!((undone.files, undone.foreign_bytes), (2, 10));
    assert_eq!(world.read("home/replaced.jsonl"), "old\none\ntwo\n");
    assert_eq!(world.read("home/appended.jsonl"), "line\ntorn\nthree\n");
    add(&world.at("home/replaced.jsonl"), "four\n");
    world.operations.redo(&done, false).unwrap();
    assert_eq!(world.read("home/replaced.jsonl"), "new\none\ntwo\nfour\n");
    assert_eq!(world.read("home/appended.jsonl"), "line\ntorn\nthree\nmore\n");
}

/// A program began its line at the moment of the append: an undo makes it whole again.
#[test]
fn lines_inside_of_a_line_of_another_program_are_removed() {
    let world = World::new();
    let path = world.put("home/s.jsonl", "{1}\n");
    let steps = vec![append(path.clone(), "{1}\n", "{\"title\"}")];
    let done = world.operations.apply(operation("a"), steps).unwrap();
    fs_err::write(&path, "{1}\n{2}\n{\"th{\"title\"}\neirs\"}\n{4").unwrap();
    world.operations.undo(&done, false).unwrap();
    assert_eq!(world.read("home/s.jsonl"), "{1}\n{2}\n{\"theirs\"}\n{4");
    world.operations.redo(&done, false).unwrap();
    assert_eq!(world.read("home/s.jsonl"), "{1}\n{2}\n{\"theirs\"}\n{4\n{\"title\"}\n");
}

/// A program that has opened a log and writes to it after the operation.
#[cfg(target_os = "linux")]
struct Holder(std::process::Child);

#[cfg(target_os = "linux")]
impl Holder {
    fn of(log: &Path) -> Self {
        use std::process::{Command, Stdio};
        let script = r#"exec 3>>"$1"; echo open; read -r _; echo late >&3"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(log).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        Self(child)
    }

    fn write(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_keeps_a_file_open_writes_into_a_receipt() {
    type Run = fn(&World, PathBuf);
    let undone_and_redone: Run = |world, log| {
        let done = world.operations.apply(operation("a"), vec![replace(log, "a\n", "b\n")]).unwrap();
        for _ in 0..2 {
            world.operations.undo(&done, false).unwrap();
            world.operations.redo(&done, false).unwrap();
        }
    };
    let failed: Run = |world, log| {
        let there = world.put("home/there", "");
        let steps = vec![replace(log, "a\n", "b\n"), create(there, "no")];
        let error = world.operations.apply(operation("a"), steps).unwrap_err();
        assert!(matches!(error, OpError::NotDone { reverted: 1, .. }), "{error:?}");
    };
    for (run, name) in [(undone_and_redone, "s.jsonl"), (failed, "s.jsonl"), (failed, "s.txt")] {
        let world = World::new();
        let log = world.put(&format!("home/{name}"), "a\n");
        let holder = Holder::of(&log);
        run(&world, log);
        holder.write();
        let kept = fs_err::read_dir(world.operations.folder("a")).unwrap().flatten();
        let mut kept = kept.map(|file| fs_err::read_to_string(file.path()).unwrap());
        assert!(kept.any(|text| text.contains("late")));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_receipt_whose_backup_another_program_has_open_is_not_forgotten() {
    let world = World::new();
    let log = world.put("home/s.jsonl", "a\n");
    let holder = Holder::of(&log);
    let done = world.operations.apply(operation("a"), vec![replace(log, "a\n", "b\n")]).unwrap();
    let error = world.operations.forget(&done).unwrap_err();
    let backup = world.operations.folder("a").join("0.before");
    assert!(matches!(&error, OpError::OpenBackup { paths } if *paths == [backup.clone()]), "{error:?}");
    holder.write();
    assert_eq!(fs_err::read_to_string(backup).unwrap(), "a\nlate\n");
    world.operations.forget(&done).unwrap();
    assert!(!world.operations.folder("a").exists());
}

/// A restore is interrupted, a person edits the file, and the restore is run again. The first one is undone
/// first, since it was interrupted.
#[test]
fn an_undo_leaves_a_file_that_a_later_operation_has_changed() {
    let world = World::new();
    let file = world.put("home/a.txt", "old");
    let restore = |id: &str, read: &str| {
        let independent = NewOperation { operation: Operation::Restore, ..operation(id) };
        world.operations.apply(independent, vec![replace(file.clone(), read, "then")])
    };
    let first = restore("a", "old").unwrap();
    world.put("home/a.txt", "edited");
    let second = restore("bb", "edited").unwrap();
    let undone = world.operations.undo(&first, false).unwrap();
    assert_eq!((undone.files, undone.skipped.len()), (0, 1));
    assert_eq!(undone.skipped[0].what, "operation bb has changed it; undo that one first");
    assert_eq!(world.operations.undo(&second, false).unwrap().files, 1);
    assert_eq!(world.read("home/a.txt"), "edited");
    assert_eq!(fs_err::read_to_string(world.operations.folder("a").join("0.before")).unwrap(), "old");
}

#[test]
fn a_change_that_another_operation_has_made_fails_and_leaves_no_private_files() {
    let world = World::new();
    let (log, file) = (world.put("home/s.jsonl", "old\n"), world.put("home/s.txt", "old\n"));
    // Both were planned before either was applied.
    let apply = |id: &str| {
        let steps = vec![replace(log.clone(), "old\n", "new\n"), replace(file.clone(), "old\n", "new\n")];
        world.operations.apply(operation(id), steps)
    };
    let done = apply("a").unwrap();
    assert!(matches!(apply("b"), Err(OpError::NotDone { reverted: 0, .. })));
    let names: Vec<String> = world.files().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["home/s.jsonl", "home/s.txt"]);
    world.operations.undo(&done, false).unwrap();
    assert_eq!((world.read("home/s.jsonl"), world.read("home/s.txt")), ("old\n".into(), "old\n".into()));
}

#[test]
fn a_clone_that_was_continued_is_not_removed() {
    let world = World::new();
    let steps = vec![create(world.at("home/c/side"), "side"), create(world.at("home/c.jsonl"), "log\n")];
    let done = world.operations.apply(operation("a"), steps).unwrap();
    add(&world.at("home/c.jsonl"), "continued\n");
    let before = world.files();
    let error = world.operations.undo(&done, false).unwrap_err();
    assert!(error.to_string().contains("10 bytes were added"), "{error}");
    assert_eq!(world.files(), before);
}

#[test]
#[cfg(unix)]
fn a_link_is_removed_and_not_the_file_that_it_names() {
    let world = World::new();
    let outside = world.put("outside.jsonl", "log\n");
    fs_err::create_dir_all(world.at("home")).unwrap();
    let link = world.at("home/s.jsonl");
    fs_err::os::unix::fs::symlink(&outside, &link).unwrap();
    let action = StepAction::Unlink;
    let step = Step { path: link.clone(), kind: FileKind::Log, action, modified: None };
    let done = world.operations.apply(operation("a"), vec![step]).unwrap();
    assert!(!link.is_symlink() && outside.exists());
    world.operations.undo(&done, false).unwrap();
    assert_eq!(fs_err::read_link(&link).unwrap(), outside);
    world.operations.redo(&done, false).unwrap();
    assert!(!link.is_symlink() && outside.exists());
}

#[test]
fn a_name_that_no_file_can_have_is_refused_before_there_is_a_receipt() {
    let world = World::new();
    let steps = vec![create(world.at("home/a"), ""), create(world.at("home/b\0c"), "")];
    let error = world.operations.apply(operation("a"), steps).unwrap_err();
    assert!(matches!(error, OpError::BadPath { .. }), "{error}");
    assert!(!world.at("state").exists() && !world.at("home").exists());
}

#[test]
fn a_log_that_changed_otherwise_is_left_alone() {
    type Change = fn(&Path);
    let changes: [(&str, Change, Option<&str>); 4] = [
        ("cut", |path| fs_err::write(path, "a\n").unwrap(), Some("a\n")),
        ("rewritten", |path| fs_err::write(path, "a\nB\nc\n").unwrap(), Some("a\nB\nc\n")),
        ("gone", |path| fs_err::remove_file(path).unwrap(), None),
        ("torn", |path| fs_err::write(path, "a\nb\nto").unwrap(), Some("a\nb\nto")),
    ];
    for (name, change, expected) in changes {
        let world = World::new();
        let path = world.put("home/s.jsonl", "a\nb\n");
        let step = replace(path.clone(), "a\nb\n", "new\n");
        change(&path);
        let replaced = world.operations.apply(operation("a"), vec![step]);
        if name == "torn" {
            // An incomplete line that was appended meanwhile is kept.
            replaced.unwrap();
            assert_eq!(world.read("home/s.jsonl"), "new\nto");
            continue;
        }
        assert!(matches!(replaced, Err(OpError::NotDone { reverted: 0, .. })), "{name}: {replaced:?}");
        assert_eq!(fs_err::read_to_string(&path).ok().as_deref(), expected, "{name}");
        assert!(world.operations.list().found.is_empty(), "{name}");
    }
}

#[test]
fn nothing_that_others_append_is_lost() {
    let world = World::new();
    let path = world.put("home/s.jsonl", "start\n");
    let done =
        world.operations.apply(operation("a"), vec![replace(path.clone(), "start\n", "START\n")]).unwrap();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let path = &path;
                scope.spawn(move || {
                    for i in 0..200 {
                        crate::append(path, [format!("{writer} {i} one"), format!("{writer} {i} two")], None)
                            .unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(|writer| writer.is_finished()) {
            world.operations.undo(&done, false).unwrap();
            world.operations.redo(&done, false).unwrap();
        }
    });
    let text = world.read("home/s.jsonl");
    assert_eq!(text.lines().count(), 1 + 3 * 200 * 2);
    for writer in 0..3 {
        let mut own: Vec<_> = text.lines().filter(|line| line.starts_with(&format!("{writer} "))).collect();
        own.sort_by_key(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap());
        let expected: Vec<_> =
            (0..200).flat_map(|i| [format!("{writer} {i} one"), format!("{writer} {i} two")]).collect();
        assert_eq!(own, expected);
    }
}

#[test]
#[cfg(unix)]
fn a_file_keeps_its_permissions_and_the_receipt_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let path = world.put("home/s.jsonl", "old\n");
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    let done = world.operations.apply(operation("a"), vec![replace(path.clone(), "old\n", "new\n")]).unwrap();
    assert_eq!(mode(&path), 0o640);
    world.operations.undo(&done, false).unwrap();
    assert_eq!(mode(&path), 0o640);
    let folder = world.operations.folder("a");
    assert_eq!((mode(&folder), mode(&folder.join("receipt.json"))), (0o700, 0o600));
}
