//! Operations on plain files: done, undone, and ended in the middle.

use std::io::Cursor;
use std::path::PathBuf;

use super::*;

struct World {
    dir: tempfile::TempDir,
    operations: Operations,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let operations = Operations::at(dir.path().join("state/operations"));
        Self { dir, operations }
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        path
    }

    fn tell(&self) -> Vec<(String, String)> {
        let mut told = Vec::new();
        let mut folders = vec![self.dir.path().join("home")];
        while let Some(folder) = folders.pop() {
            for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
                let name = entry.path().strip_prefix(self.dir.path()).unwrap().to_string_lossy().into_owned();
                told.push((name, fs_err::read_to_string(entry.path()).unwrap_or_default()));
            }
        }
        told.sort();
        told
    }

    fn steps(&self, torn: bool) -> Vec<Step<'static>> {
        let at = |name: &str| self.dir.path().join(name);
        let new = "new\n";
        let of = Snapshot::take(at("home/replaced")).unwrap();
        let replace = Action::Replace {
            of,
            content: Box::new(Cursor::new(new)),
            digest: FileDigest::of(new.as_bytes()),
        };
        let of = Snapshot::take(at("home/appended")).unwrap();
        let mut steps = vec![
            Step { path: at("home/s1/made/deep"), action: Action::Create(Box::new(Cursor::new("made"))) },
            Step { path: at("home/replaced"), action: replace },
            Step { path: at("home/appended"), action: Action::Append { of, lines: vec!["more".into()] } },
            Step { path: at("home/s1/removed"), action: Action::Remove },
        ];
        if torn {
            // This cannot be done: the file is there.
            steps.push(Step { path: at("home/there"), action: Action::Create(Box::new(Cursor::new("no"))) });
        }
        steps
    }
}

fn receipt(id: &str) -> Receipt {
    Receipt {
        id: id.to_owned(),
        operation: "test".into(),
        command: Vec::new(),
        made_at: format!("2026-01-01T10:00:00.00{}Z", id.len()),
        state: State::Begun,
        source: "s1".into(),
        target: "s1".into(),
        summary: String::new(),
        files: Vec::new(),
        folders: Vec::new(),
    }
}

fn full_world() -> World {
    let world = World::new();
    world.put("home/replaced", "old\n");
    world.put("home/appended", "line\ntorn");
    world.put("home/s1/removed", "kept");
    world.put("home/there", "there");
    world
}

#[test]
fn everything_is_done_and_undone() {
    let world = full_world();
    let before = world.tell();
    let done = world.operations.apply(receipt("a"), world.steps(false)).unwrap();
    assert_eq!(done.state, State::Done);
    let names: Vec<_> = world.tell().into_iter().collect();
    let expected = [
        ("home/appended", "line\ntorn\nmore\n"),
        ("home/replaced", "new\n"),
        ("home/s1", ""),
        ("home/s1/made", ""),
        ("home/s1/made/deep", "made"),
        ("home/there", "there"),
    ];
    assert_eq!(names, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(world.operations.find("last").unwrap(), done);
    let undone = world.operations.undo(&done).unwrap();
    assert_eq!((undone.files, undone.untouched), (4, 0));
    assert_eq!(world.tell(), before);
    assert!(matches!(
        world.operations.undo(&world.operations.find("a").unwrap()),
        Err(OpError::Undone { .. })
    ));
    assert!(matches!(world.operations.find("last"), Err(OpError::NoSuch { .. })));
}

#[test]
fn what_cannot_be_done_to_the_end_is_not_done_at_all() {
    let world = full_world();
    let before = world.tell();
    assert!(matches!(world.operations.apply(receipt("a"), world.steps(true)), Err(OpError::Io(_))));
    assert_eq!(world.tell(), before);
    assert!(world.operations.list().found.is_empty());
}

#[test]
fn an_undo_does_nothing_when_one_file_has_changed() {
    for (name, text) in [
        ("home/replaced", "new\nmore\n"),
        ("home/replaced", "other"),
        ("home/appended", "line\ntorn\nmore\nyet more\n"),
        ("home/s1/made/deep", "other"),
        ("home/s1/removed", "another"),
    ] {
        let world = full_world();
        let done = world.operations.apply(receipt("a"), world.steps(false)).unwrap();
        world.put(name, text);
        let changed = world.tell();
        let error = world.operations.undo(&done).unwrap_err();
        assert!(matches!(error, OpError::Changed { .. }), "{name}: {error}");
        assert_eq!(world.tell(), changed);
    }
}

/// Wherever the process died, an undo brings everything back.
#[test]
fn an_operation_that_died_can_be_undone() {
    for n_done in 0..=4 {
        let world = full_world();
        let before = world.tell();
        let mut begun = world.operations.apply(receipt("a"), world.steps(false)).unwrap();
        begun.state = State::Begun;
        // As if the later steps had never been: their files are the old ones.
        let undo_later =
            Receipt { files: begun.files[n_done..].to_vec(), folders: Vec::new(), ..begun.clone() };
        world.operations.revert(&undo_later).unwrap();
        let undone = world.operations.undo(&begun).unwrap();
        assert_eq!((undone.files, undone.untouched), (n_done, 4 - n_done));
        assert_eq!(world.tell(), before);
    }
}

#[test]
fn receipts_are_found_by_the_beginning_of_their_ids() {
    let world = full_world();
    assert!(world.operations.list().found.is_empty());
    let made = |name: &str| Step {
        path: world.dir.path().join(name),
        action: Action::Create(Box::new(Cursor::new(""))),
    };
    world.operations.apply(receipt("ab1"), vec![made("home/1")]).unwrap();
    world.operations.apply(receipt("ab12"), vec![made("home/2")]).unwrap();
    assert_eq!(world.operations.find("ab12").unwrap().id, "ab12");
    assert_eq!(world.operations.find("ab1").unwrap().id, "ab1");
    assert_eq!(world.operations.find("last").unwrap().id, "ab12");
    assert!(matches!(world.operations.find("a"), Err(OpError::Ambiguous { n: 2, .. })));
    assert!(matches!(world.operations.find("x"), Err(OpError::NoSuch { .. })));
    fs_err::write(world.operations.folder("ab1").join("receipt.json"), "{").unwrap();
    let listing = world.operations.list();
    assert_eq!((listing.found.len(), listing.unread.len()), (1, 1));
    world.operations.forget(&listing.found[0]).unwrap();
    assert!(world.operations.list().found.is_empty());
}

#[test]
fn what_died_left_behind_is_swept_away() {
    let world = full_world();
    let stale = world.put("home/.threadline-x.tmp", "half");
    let held = world.put("home/.threadline-y.tmp", "half");
    let file = fs_err::File::open(&held).unwrap();
    file.file().lock().unwrap();
    sweep(&world.dir.path().join("home"));
    assert!(!stale.exists() && held.exists());
}
