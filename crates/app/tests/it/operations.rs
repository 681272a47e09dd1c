//! Finding, undoing and redoing operations.

use threadline_app::edit::CloneOptions;
use threadline_app::{App, AppConfig, AppError, OperationError};
use threadline_store::OpError;

use crate::world::{World, options};

#[test]
fn operations_are_listed_found_and_forgotten() {
    let world = World::new();
    world.home.session("loom", "u1 user \"hi\"");
    assert!(world.app.list_operations().unwrap().found.is_empty());
    let missing = world.app.undo_operation("last", false).unwrap_err();
    assert!(matches!(missing, OperationError::NotFound(OpError::NoSuch { .. })), "{missing}");
    let receipt = world.open("loom").set_tag("wip").apply(&world.app, &options()).unwrap();
    assert_eq!(world.app.find_operation("last").unwrap(), receipt);
    assert_eq!(world.app.list_operations().unwrap().found, std::slice::from_ref(&receipt));
    assert!(world.app.forget_operations(&[receipt.id.clone(), "none".to_owned()]).is_err());
    assert_eq!(world.receipts(), 1, "nothing is forgotten if one of the ids is unknown");
    assert_eq!(world.app.forget_operations(std::slice::from_ref(&receipt.id)).unwrap(), 1);
    assert_eq!(world.receipts(), 0);
}

#[test]
fn an_undo_that_fails_names_the_operation() {
    let world = World::new();
    let path = world.home.session("loom", "u1 user \"hi\"");
    let receipt = world.open("loom").set_tag("wip").apply(&world.app, &options()).unwrap();
    std::fs::write(&path, "{}\n").unwrap();
    let error = world.app.undo_operation("last", false).unwrap_err();
    assert!(
        matches!(&error, OperationError::Failed { id, source: OpError::Changed { .. } } if *id == receipt.id),
        "{error}"
    );
    let undone = world.app.undo_operation("last", true).unwrap();
    assert_eq!((undone.files, undone.skipped.len()), (0, 1));
}

#[test]
#[cfg(unix)]
fn an_undo_and_a_redo_do_not_write_through_a_link_out_of_the_homes() {
    let world = World::new();
    let path = world.home.session("loom", "u1 user \"hi\"");
    let folder = path.parent().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let is_link_error = |error: &OperationError| error.to_string().contains("outside the home");
    world.open("loom").delete().unwrap().apply(&world.app, &options()).unwrap();
    let put_link = || {
        std::fs::remove_dir(folder).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder).unwrap();
    };
    let remove_link = || {
        std::fs::remove_file(folder).unwrap();
        std::fs::create_dir(folder).unwrap();
    };
    put_link();
    let error = world.app.undo_operation("last", false).unwrap_err();
    assert!(is_link_error(&error), "{error}");
    remove_link();
    world.app.undo_operation("last", false).unwrap();
    let mut session = world.open("loom");
    session.clone_to_new(&CloneOptions::default()).unwrap().apply(&world.app, &options()).unwrap();
    world.app.undo_operation("last", false).unwrap();
    std::fs::remove_file(&path).unwrap();
    put_link();
    let error = world.app.redo_operation("last", false).unwrap_err();
    assert!(is_link_error(&error), "{error}");
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
    remove_link();
    assert_eq!(world.app.redo_operation("last", false).unwrap().files, 1);
}

#[test]
fn an_operation_of_a_newer_version_is_named_and_not_skipped() {
    let world = World::new();
    world.home.session("loom", "u1 user \"hi\"");
    let tagged = world.open("loom").set_tag("wip").apply(&world.app, &options()).unwrap();
    let folder = world.app.operations().unwrap().folder(&tagged.id);
    let newer = folder.with_file_name("99991231T235959-ffffff");
    std::fs::create_dir(&newer).unwrap();
    let receipt = std::fs::read_to_string(folder.join("receipt.json")).unwrap();
    let receipt = receipt.replace(&tagged.id, "99991231T235959-ffffff").replace("\"tag\"", "\"merge\"");
    std::fs::write(newer.join("receipt.json"), receipt).unwrap();
    for id in ["last", "9999"] {
        let error = world.app.undo_operation(id, false).unwrap_err();
        assert!(error.to_string().contains("unknown operation `merge`"), "{error}");
    }
    assert_eq!(world.app.list_operations().unwrap().errors.len(), 1);
    assert_eq!(world.app.undo_operation(&tagged.id, false).unwrap().files, 1);
}

#[test]
fn without_a_state_folder_nothing_is_applied() {
    let world = World::new();
    let path = world.home.session("loom", "u1 user \"hi\"");
    let before = std::fs::read(&path).unwrap();
    let app = App::new(AppConfig { homes: vec![world.home.root().to_owned()], ..AppConfig::default() });
    let error = world.open("loom").set_tag("wip").apply(&app, &options()).unwrap_err();
    assert!(matches!(error, threadline_app::edit::EditError::App(AppError::NoStateDir)), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
