use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::append;

fn file_with(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs_err::write(&path, text).unwrap();
    (dir, path)
}

/// Content that writes to the file it replaces while it is read.
struct Meddling<'a>(&'a [u8], Option<Box<dyn FnOnce() + 'a>>);

impl Read for Meddling<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(meddle) = self.1.take() {
            meddle();
        }
        self.0.read(into)
    }
}

fn add(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn the_content_takes_the_place_of_the_old() {
    let (dir, path) = file_with("a\nb\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    }
    let snapshot = Snapshot::take(&path).unwrap();
    let backup = dir.path().join("backup");
    assert_eq!(replace(&snapshot, &b"A\n"[..], Some(&backup)).unwrap(), Replaced { carried: 0 });
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "A\n");
    assert_eq!(fs_err::read_to_string(&backup).unwrap(), "a\nb\n");
    assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
    let snapshot = Snapshot::take(&path).unwrap();
    let error = replace(&snapshot, &b"B\n"[..], Some(&backup)).unwrap_err();
    assert!(
        matches!(&error, ReplaceError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists),
        "{error}"
    );
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "A\n");
}

#[test]
fn what_was_added_since_comes_after() {
    for (before, since, content, during, after) in [
        ("a\n", "", "A\n", "", "A\n"),
        ("a\n", "b\n", "A\n", "c\n", "A\nb\nc\n"),
        ("a\n", "b\n", "A", "", "A\nb\n"),
        ("a\n", "", "A", "", "A"),
        ("", "b\n", "", "", "b\n"),
        ("a\nto", "rn\nb\n", "A\nto", "", "A\ntorn\nb\n"),
    ] {
        let (_dir, path) = file_with(before);
        let snapshot = Snapshot::take(&path).unwrap();
        add(&path, since);
        let mut read = String::new();
        snapshot.reader().unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, before);
        let content = Meddling(content.as_bytes(), Some(Box::new(|| add(&path, during))));
        let replaced = replace(&snapshot, content, None).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), after);
        assert_eq!(replaced.carried, (since.len() + during.len()) as u64);
    }
}

#[test]
fn a_file_that_changed_otherwise_is_left_alone() {
    type Change = fn(&Path);
    let changes: [(&str, Change, Option<&str>); 6] = [
        ("cut", |path| fs_err::write(path, "a\n").unwrap(), Some("a\n")),
        ("rewritten", |path| fs_err::write(path, "a\nB\nc\n").unwrap(), Some("a\nB\nc\n")),
        ("same size", |path| fs_err::write(path, "a\nB\n").unwrap(), Some("a\nB\n")),
        ("gone", |path| fs_err::remove_file(path).unwrap(), None),
        (
            "replaced",
            |path| {
                fs_err::write(path.with_extension("x"), "a\nb\nc\n").unwrap();
                fs_err::rename(path.with_extension("x"), path).unwrap();
            },
            Some("a\nb\nc\n"),
        ),
        ("nothing", |_| {}, Some("new\n")),
    ];
    for (name, change, expected) in changes {
        for meddling in [false, true] {
            let (dir, path) = file_with("a\nb\n");
            let snapshot = Snapshot::take(&path).unwrap();
            let replaced = if meddling {
                replace(&snapshot, Meddling(b"new\n", Some(Box::new(|| change(&path)))), None)
            } else {
                change(&path);
                replace(&snapshot, &b"new\n"[..], None)
            };
            if name == "nothing" {
                replaced.unwrap();
            } else {
                assert!(matches!(replaced, Err(ReplaceError::Changed { .. })), "{name}: {replaced:?}");
            }
            assert_eq!(fs_err::read_to_string(&path).ok().as_deref(), expected, "{name}");
            assert!(fs_err::read_dir(dir.path()).unwrap().count() <= 1, "{name}: no temporary file is left");
        }
    }
}

#[test]
fn the_rest_of_a_line_is_not_torn_from_its_beginning() {
    let (_dir, path) = file_with("a\nto");
    let snapshot = Snapshot::take(&path).unwrap();
    add(&path, "rn\n");
    let replaced = replace(&snapshot, &b"A\n"[..], None);
    assert!(matches!(replaced, Err(ReplaceError::Changed { .. })));
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "a\ntorn\n");
}

#[test]
#[cfg(unix)]
fn a_link_stays_a_link() {
    let (dir, path) = file_with("a\n");
    let link = dir.path().join("link.jsonl");
    fs_err::os::unix::fs::symlink(&path, &link).unwrap();
    replace(&Snapshot::take(&link).unwrap(), &b"A\n"[..], None).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "A\n");
}

/// Replaces the file over and over until `done`, but not for ever, each time with its content as it is.
fn replace_until(path: &Path, done: &AtomicBool) -> usize {
    let mut n_replaced = 0;
    for _ in 0..30 {
        let snapshot = Snapshot::take(path).unwrap();
        match replace(&snapshot, snapshot.reader().unwrap(), None) {
            Ok(_) => n_replaced += 1,
            Err(ReplaceError::Changed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if done.load(Ordering::Relaxed) {
            break;
        }
    }
    n_replaced
}

#[test]
fn nothing_that_others_append_is_lost() {
    let (_dir, path) = file_with("start\n");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let path = &path;
                scope.spawn(move || {
                    for i in 0..200 {
                        append(path, [format!("{writer} {i} one"), format!("{writer} {i} two")], None)
                            .unwrap();
                    }
                })
            })
            .collect();
        let replacer = scope.spawn(|| replace_until(&path, &done));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        assert!(replacer.join().unwrap() > 0);
    });
    let text = fs_err::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1 + 3 * 200 * 2);
    for writer in 0..3 {
        let own: Vec<_> = text.lines().filter(|line| line.starts_with(&format!("{writer} "))).collect();
        let expected: Vec<_> =
            (0..200).flat_map(|i| [format!("{writer} {i} one"), format!("{writer} {i} two")]).collect();
        assert_eq!(own, expected);
    }
}

#[test]
#[cfg(unix)]
fn what_is_written_to_the_old_file_during_the_swap_is_picked_up() {
    use std::os::unix::fs::MetadataExt;

    let (_dir, path) = file_with("start\n");
    let snapshot = Snapshot::take(&path).unwrap();
    // Somebody who opened the file before the swap, and knows nothing of locks.
    let mut held = OpenOptions::new().append(true).open(&path).unwrap();
    let inode = held.metadata().unwrap().ino();
    let count = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0;
            let mut after = 0;
            while after < 20 {
                held.write_all(format!("late {count}\n").as_bytes()).unwrap();
                count += 1;
                after += usize::from(fs_err::metadata(&path).unwrap().ino() != inode);
            }
            count
        });
        replace(&snapshot, &b"new\n"[..], None).unwrap();
        writer.join().unwrap()
    });
    let text = fs_err::read_to_string(&path).unwrap();
    let expected: Vec<_> = (0..count).map(|i| format!("late {i}")).collect();
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
    assert!(text.starts_with("new\n"));
}
