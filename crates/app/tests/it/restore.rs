//! Restoring files.

use std::fs;
use std::path::Path;

use threadline_app::restore::{
    ContentSource, RestoreAction, RestoreError, RestoreOptions, RestorePlan, RestorePoint, turns_with_changes,
};
use threadline_app::{App, AppConfig, load_unpriced};
use threadline_store::WriteRisk;
use threadline_testkit::session_uuid;

use crate::world::World;

/// A session that worked in `dir`: it changed one file, and created another.
fn session(world: &World, dir: &Path) {
    let cwd = dir.to_str().unwrap();
    let notation = r#"
        snapshot u1 {"a.txt":{"backupFileName":"aa@v1","version":1}}
        u1        user   "change a"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"[dir]/a.txt"}
        r1 <- a1  result t1 "ok" {"filePath":"[dir]/a.txt","oldString":"one","newString":"two","originalFile":"one\n"}
        snapshot u2 {"a.txt":{"backupFileName":"aa@v2","version":2}}
        u2 <- r1  user   "make b"
        a2 <- u2  reply  m2 tool t2 Write {"file_path":"[dir]/sub/b.txt","content":"new\n"}
        r2 <- a2  result t2 "ok" {"type":"create","filePath":"[dir]/sub/b.txt","content":"new\n","originalFile":null}
        "#;
    world.home.session_in(cwd, "s", &notation.replace("[dir]", cwd));
    world.home.file(format!("file-history/{}/aa@v1", session_uuid("s")), "one\r\n");
}

fn plan(world: &World, point: RestorePoint, options: &RestoreOptions) -> Result<RestorePlan, RestoreError> {
    let file = world.app.find(&session_uuid("s")).unwrap();
    let family = load_unpriced(&file).unwrap().family;
    let (at, _) = point.resolve(&family)?;
    world.app.plan_restore(&file, &world.app.file_evidence(&file, &family), at, options)
}

#[test]
fn points_are_parsed() {
    let point = |text: &str| text.parse::<RestorePoint>();
    assert_eq!(point("3"), Ok(RestorePoint::Turn(3)));
    assert_eq!(point("-1"), Ok(RestorePoint::Turn(-1)));
    assert_eq!(point("m42"), Ok(RestorePoint::Line(42)));
    assert_eq!(point("#m42"), Ok(RestorePoint::Line(42)));
    assert_eq!(point("end"), Ok(RestorePoint::End));
    assert!(point("0").is_err());
    assert!(point("x").is_err());
}

#[test]
fn points_are_resolved_to_turns() {
    let (world, dir) = (World::new(), tempfile::tempdir().unwrap());
    session(&world, dir.path());
    let file = world.app.find(&session_uuid("s")).unwrap();
    let family = load_unpriced(&file).unwrap().family;
    let turn = |point: RestorePoint| point.resolve(&family).map(|(_, turn)| turn).ok();
    assert_eq!(turn(RestorePoint::Turn(2)), Some(Some(2)));
    assert_eq!(turn(RestorePoint::Turn(-2)), Some(Some(1)));
    assert_eq!(turn(RestorePoint::Line(3)), Some(Some(1)));
    assert_eq!(turn(RestorePoint::Line(99)), Some(Some(2)));
    assert_eq!(turn(RestorePoint::End), Some(None));
    let missing = RestorePoint::Turn(9).resolve(&family).unwrap_err();
    assert!(matches!(missing, RestoreError::NoTurn { number: 9, count: 2 }), "{missing}");
    let changed: Vec<_> = turns_with_changes(&family, &world.app.file_evidence(&file, &family))
        .into_iter()
        .map(|turn| (turn.turn, turn.files.len()))
        .collect();
    assert_eq!(changed, [(1, 1), (2, 1)]);
}

#[test]
fn files_are_restored_in_their_project_and_that_is_undone() {
    let (world, dir) = (World::new(), tempfile::tempdir().unwrap());
    session(&world, dir.path());
    let (a, b) = (dir.path().join("a.txt"), dir.path().join("sub/b.txt"));
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(&a, "today\n").unwrap();
    fs::write(&b, "there\n").unwrap();
    let plan = plan(&world, RestorePoint::Turn(1), &RestoreOptions::default()).unwrap();
    assert_eq!(plan.root.as_ref().unwrap().path(), fs::canonicalize(dir.path()).unwrap());
    let actions: Vec<_> = plan.files.iter().map(|file| (&*file.label, file.action, file.source)).collect();
    assert_eq!(
        actions,
        [
            ("a.txt", RestoreAction::Change, ContentSource::Backup),
            ("sub/b.txt", RestoreAction::Delete, ContentSource::Backup),
        ]
    );
    assert_eq!(plan.files[0].changed_lines(), Some((1, 1)));
    assert_eq!(
        plan.files[1].patch(&world.app.session_mask(&[])),
        "--- a/sub/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-there\n"
    );
    let receipt = plan.apply(&world.app, false, &[]).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&a).unwrap(), "one\r\n");
    assert!(!b.exists());
    world.app.undo_operation(&receipt.id, false).unwrap();
    assert_eq!(fs::read_to_string(&a).unwrap(), "today\n");
    assert_eq!(fs::read_to_string(&b).unwrap(), "there\n");
}

#[test]
fn a_folder_to_restore_to_is_never_overwritten() {
    let (world, dir) = (World::new(), tempfile::tempdir().unwrap());
    session(&world, dir.path());
    let to = dir.path().join("to");
    // The folder may be given with `..`.
    let named = dir.path().join("none/../to");
    let options = RestoreOptions { to: Some(named), names: vec!["a.txt".to_owned()], likely: false };
    assert!(plan(&world, RestorePoint::Turn(1), &options).unwrap().apply(&world.app, false, &[]).is_ok());
    let to = to.canonicalize().unwrap();
    assert_eq!(fs::read_to_string(to.join("a.txt")).unwrap(), "one\r\n");
    fs::write(to.join("a.txt"), "mine\n").unwrap();
    let again = plan(&world, RestorePoint::Turn(1), &options).unwrap();
    let error = again.apply(&world.app, false, &[]).unwrap_err();
    assert!(matches!(&error, RestoreError::TargetDiffers { path } if *path == to.join("a.txt")), "{error}");
    assert_eq!(fs::read_to_string(to.join("a.txt")).unwrap(), "mine\n");
    let none = RestoreOptions { names: vec!["none.txt".to_owned()], ..options };
    assert!(matches!(plan(&world, RestorePoint::Turn(1), &none), Err(RestoreError::NoSuchFile)));
}

#[test]
fn files_outside_of_the_project_need_permission() {
    let (world, dir, other) = (World::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (cwd, outside) = (dir.path().to_str().unwrap(), other.path().join("out.txt"));
    let path = outside.to_str().unwrap();
    let notation = format!(
        r#"
        u1        user   "write"
        a1 <- u1  reply  m1 tool t1 Write {{"file_path":"{path}","content":"out\n"}}
        r1 <- a1  result t1 "ok" {{"type":"create","filePath":"{path}","content":"out\n","originalFile":null}}
        "#
    );
    world.home.session_in(cwd, "s", &notation);
    let plan = plan(&world, RestorePoint::End, &RestoreOptions::default()).unwrap();
    assert_eq!(plan.files[0].risk, Some(WriteRisk::Outside));
    assert_eq!(plan.apply(&world.app, false, &[]).unwrap(), None);
    assert!(!outside.exists() && world.receipts() == 0);
    assert!(plan.apply(&world.app, true, &[]).unwrap().is_some());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "out\n");
}

#[test]
fn files_that_make_other_programs_run_commands_need_permission() {
    let (world, dir) = (World::new(), tempfile::tempdir().unwrap());
    let cwd = dir.path().to_str().unwrap();
    let notation = r#"
        u1        user   "write"
        a1 <- u1  reply  m1 tool t1 Write {"file_path":"[dir]/a.txt","content":"a\n"}
        r1 <- a1  result t1 "ok" {"type":"create","filePath":"[dir]/a.txt","content":"a\n","originalFile":null}
        a2 <- r1  reply  m2 tool t2 Write {"file_path":"[dir]/.git/config","content":"b\n"}
        r2 <- a2  result t2 "ok" {"type":"create","filePath":"[dir]/.git/config","content":"b\n","originalFile":null}
        "#;
    world.home.session_in(cwd, "s", &notation.replace("[dir]", cwd));
    let plan = plan(&world, RestorePoint::End, &RestoreOptions::default()).unwrap();
    let risks: Vec<_> = plan.files.iter().map(|file| (&*file.label, file.risk)).collect();
    let risk = WriteRisk::CommandSource;
    assert_eq!(risks, [("a.txt", None), (".git/config", Some(risk))]);
    let receipt = plan.apply(&world.app, false, &[]).unwrap().unwrap();
    assert!(dir.path().join("a.txt").exists() && !dir.path().join(".git").exists());
    world.app.undo_operation(&receipt.id, false).unwrap();
    plan.apply(&world.app, true, &[]).unwrap().unwrap();
    assert!(dir.path().join(".git/config").exists());
}

/// A log can name any path, and anything may have one of them now.
#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_written_does_not_stop_the_others() {
    let (world, dir) = (World::new(), tempfile::tempdir().unwrap());
    let cwd = dir.path().to_str().unwrap();
    let long = "x".repeat(300);
    let mut notation = "u1 user \"write\"\n".to_owned();
    let names = ["a.txt", "fifo", "folder", "file/below", &long, "real.txt", "link.txt", "new", "new/below"];
    let mut parent = "u1".to_owned();
    for (i, name) in names.iter().enumerate() {
        let result =
            format!(r#"{{"type":"create","filePath":"{cwd}/{name}","content":"x\n","originalFile":null}}"#);
        notation.push_str(&format!(
            "a{i} <- {parent} reply m{i} tool t{i} Write {{\"file_path\":\"{cwd}/{name}\"}}\n"
        ));
        notation.push_str(&format!("r{i} <- a{i} result t{i} \"ok\" {result}\n"));
        parent = format!("r{i}");
    }
    world.home.session_in(cwd, "s", &notation);
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    fs::write(dir.path().join("real.txt"), "now").unwrap();
    std::os::unix::fs::symlink("real.txt", dir.path().join("link.txt")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(dir.path().join("fifo")).status().unwrap().success());
    let plan = plan(&world, RestorePoint::End, &RestoreOptions::default()).unwrap();
    let mut blocked = Vec::new();
    for file in plan.files.iter().filter(|file| file.action == RestoreAction::Blocked) {
        assert!(file.note.as_deref().unwrap().starts_with("cannot be written: "), "{:?}", file.note);
        blocked.push(&*file.label);
    }
    // Of two names of one file, and of a file and a folder of one name, one is written.
    assert_eq!(blocked.len(), 6, "{blocked:?}");
    for name in ["fifo", "folder", "file/below", &long] {
        assert!(blocked.contains(&name), "{blocked:?}");
    }
    let receipt = plan.apply(&world.app, false, &[]).unwrap().unwrap();
    assert_eq!(receipt.files.len(), 3);
    assert_eq!(fs::read_to_string(dir.path().join("a.txt")).unwrap(), "x\n");
    world.app.undo_operation(&receipt.id, false).unwrap();
    assert!(!dir.path().join("a.txt").exists());
}

#[test]
fn a_restore_belongs_to_the_home_of_its_session() {
    let (world, copy, dir) = (World::new(), World::new(), tempfile::tempdir().unwrap());
    session(&world, dir.path());
    session(&copy, dir.path());
    fs::write(dir.path().join("a.txt"), "today\n").unwrap();
    let plan = plan(&world, RestorePoint::Turn(1), &RestoreOptions::default()).unwrap();
    let receipt = plan.apply(&world.app, false, &[]).unwrap().unwrap();
    let other = App::new(AppConfig {
        homes: vec![copy.home.root().to_owned()],
        state_dir: Some(world.state_dir().to_owned()),
        ..AppConfig::default()
    });
    let listed = |app: &App| app.list_operations().unwrap().found.len();
    assert_eq!((listed(&world.app), listed(&other)), (1, 0));

    let path = world.app.operations().unwrap().folder(&receipt.id).join("receipt.json");
    let text = fs::read_to_string(&path).unwrap();
    let without_home: String = text.lines().filter(|line| !line.contains("\"home\"")).collect();
    assert_ne!(without_home.len(), text.len());
    fs::write(&path, without_home).unwrap();
    assert_eq!((listed(&world.app), listed(&other)), (1, 1), "a receipt of an earlier version");
}

/// Plans a restore of files with these backups, which the snapshot of a log names.
fn plan_of_snapshot(world: &World, dir: &Path, files: &[(String, Option<&str>)]) -> RestorePlan {
    let backup = |(path, name): &(String, Option<&str>)| {
        let name = name.map_or("null".to_owned(), |name| format!("\"{name}\""));
        format!(r#""{path}":{{"backupFileName":{name},"version":1}}"#)
    };
    let backups: Vec<String> = files.iter().map(backup).collect();
    let notation = format!("snapshot u1 {{{}}}\nu1 user \"go\"\n", backups.join(","));
    world.home.session_in(dir.to_str().unwrap(), "s", &notation);
    plan(world, RestorePoint::End, &RestoreOptions::default()).unwrap()
}

#[test]
fn files_with_the_same_backup_share_its_content() {
    let (world, dir) = (World::new(), tempfile::tempdir().unwrap());
    world.home.file(format!("file-history/{}/aa@v1", session_uuid("s")), "content");
    let files: Vec<_> = (10..40).map(|i| (format!("a{i}"), Some("aa@v1"))).collect();
    let plan = plan_of_snapshot(&world, dir.path(), &files);
    let contents: Vec<_> = plan.files.iter().filter_map(|file| file.content.as_ref()).collect();
    assert!(contents.iter().all(|content| std::sync::Arc::ptr_eq(content, contents[0])));
    assert_eq!(contents.len(), 30);
}

#[test]
fn of_targets_above_each_other_one_is_written() {
    let (world, dir) = (World::new(), tempfile::tempdir().unwrap());
    world.home.file(format!("file-history/{}/aa@v1", session_uuid("s")), "content");
    let deep = format!("deep{}", "/a".repeat(1000));
    let names = ["b", "b-c", "b/c", "b/c/d", "c/d", "c/d-e", "c/d/e", "./c/d", &deep];
    let files: Vec<_> = names.iter().map(|name| ((*name).to_owned(), Some("aa@v1"))).collect();
    let plan = plan_of_snapshot(&world, dir.path(), &files);
    let of = |action| {
        let files = plan.files.iter().filter(move |file| file.action == action);
        files.map(|file| &*file.label).collect::<Vec<_>>()
    };
    assert_eq!(of(RestoreAction::Create).len(), 4, "{:?}", of(RestoreAction::Create));
    let blocked = of(RestoreAction::Blocked);
    assert!(
        blocked.contains(&&*deep) && blocked.contains(&"b/c/d") && blocked.contains(&"c/d/e"),
        "{blocked:?}"
    );
}

/// The project may have become a link to a folder elsewhere since.
#[test]
#[cfg(unix)]
fn an_undo_and_a_redo_of_a_restore_do_not_write_through_a_link() {
    let (world, base) = (World::new(), tempfile::tempdir().unwrap());
    let base = fs::canonicalize(base.path()).unwrap();
    let (dir, moved) = (base.join("p"), base.join("moved"));
    fs::create_dir(&dir).unwrap();
    session(&world, &dir);
    let plan = plan(&world, RestorePoint::End, &RestoreOptions::default()).unwrap();
    plan.apply(&world.app, false, &[]).unwrap().unwrap();
    let put_link = || {
        fs::rename(&dir, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &dir).unwrap();
    };
    let remove_link = || {
        fs::remove_file(&dir).unwrap();
        fs::rename(&moved, &dir).unwrap();
    };
    put_link();
    let error = world.app.undo_operation("last", false).unwrap_err();
    assert!(error.to_string().contains("leads through a link"), "{error}");
    assert_eq!(fs::read(moved.join("sub/b.txt")).unwrap(), b"new\n");
    remove_link();
    world.app.undo_operation("last", false).unwrap();
    assert!(!dir.join("sub").exists());
    put_link();
    let error = world.app.redo_operation("last", false).unwrap_err();
    assert!(error.to_string().contains("leads through a link"), "{error}");
    assert_eq!(moved.read_dir().unwrap().count(), 0);
    remove_link();
    world.app.redo_operation("last", false).unwrap();
    assert_eq!(fs::read(dir.join("sub/b.txt")).unwrap(), b"new\n");
}

/// Receipts of earlier versions contain the paths that the person or the log named.
#[cfg(unix)]
#[test]
fn an_older_restore_through_a_link_can_be_undone_and_redone() {
    let (world, base) = (World::new(), tempfile::tempdir().unwrap());
    let base = fs::canonicalize(base.path()).unwrap();
    let (dir, link) = (base.join("p"), base.join("link"));
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    session(&world, &dir);
    let plan = plan(&world, RestorePoint::End, &RestoreOptions::default()).unwrap();
    plan.apply(&world.app, false, &[]).unwrap().unwrap();
    let receipt = world.app.operations().unwrap().find("last").unwrap();
    let path = world.app.operations().unwrap().folder(&receipt.id).join("receipt.json");
    let text = fs::read_to_string(&path).unwrap();
    let older = text.replace(dir.to_str().unwrap(), link.to_str().unwrap());
    fs::write(&path, older.replace("\"format\": 3", "\"format\": 2")).unwrap();
    for _ in 0..2 {
        world.app.undo_operation("last", false).unwrap();
        assert!(!dir.join("sub").exists());
        world.app.redo_operation("last", false).unwrap();
        assert_eq!(fs::read(dir.join("sub/b.txt")).unwrap(), b"new\n");
    }
}
