//! Receipts on disk: found, read in every format, and refused.

use super::*;

#[test]
fn receipts_are_found_by_the_beginning_of_their_ids() {
    let world = full_world();
    assert!(world.operations.list().found.is_empty());
    let made = |name: &str| create(world.at(name), "");
    world.operations.apply(operation("ab1"), vec![made("home/1")]).unwrap();
    world.operations.apply(operation("ab12"), vec![made("home/2")]).unwrap();
    assert_eq!(world.operations.find("ab12").unwrap().id, "ab12");
    assert_eq!(world.operations.find("ab1").unwrap().id, "ab1");
    assert_eq!(world.operations.find("last").unwrap().id, "ab12");
    assert!(matches!(world.operations.find("a"), Err(OpError::Ambiguous { n: 2, .. })));
    assert!(matches!(world.operations.find("x"), Err(OpError::NoSuch { .. })));
    fs_err::write(world.operations.folder("ab1").join("receipt.json"), "{").unwrap();
    let listing = world.operations.list();
    assert_eq!((listing.found.len(), listing.errors.len()), (1, 1));
    world.operations.forget(&listing.found[0]).unwrap();
    assert!(world.operations.list().found.is_empty());
}

/// The path, the action, the backup, the length before and the content after.
type OldFile<'a> = (&'a str, &'a str, Option<&'a str>, Option<u64>, Option<&'a str>);

/// A receipt as the versions before the format had a number wrote it.
fn first_format(world: &World, state: &str, files: &[OldFile<'_>]) {
    let files: Vec<_> = files
        .iter()
        .enumerate()
        .map(|(i, (name, action, backup, length_before, after))| {
            if let Some(backup) = backup {
                world.put(&format!("state/operations/old/{i}.before"), backup);
            }
            let after = after.map(|after| FileDigest::of(after.as_bytes()));
            serde_json::json!({
                "path": world.at(name),
                "action": action,
                "backup": backup.map(|_| format!("{i}.before")),
                "length_before": length_before,
                "modified_before": null,
                "length_after": after.map(|after| after.length),
                "sha256_after": after.map(FileDigest::to_hex),
            })
        })
        .collect();
    let receipt = serde_json::json!({
        "id": "old", "operation": "strip", "command": [], "made_at": "2026-01-01T10:00:00.000Z",
        "state": state, "source": "s1", "target": "s1", "summary": "", "files": files, "folders": [],
    });
    world.put("state/operations/old/receipt.json", &receipt.to_string());
}

#[test]
fn receipts_without_a_format_can_be_undone_and_redone() {
    let world = World::new();
    world.put("home/replaced.jsonl", "new\nsince\n");
    world.put("home/appended.jsonl", "line\nmore\nsince\n");
    world.put("home/made", "made");
    first_format(
        &world,
        "done",
        &[
            ("home/replaced.jsonl", "replace", Some("old\n"), Some(4), Some("new\n")),
            ("home/appended.jsonl", "append", None, Some(5), Some("line\nmore\n")),
            ("home/made", "create", None, None, Some("made")),
            ("home/removed", "remove", Some("kept"), Some(4), None),
        ],
    );
    let old = world.operations.find("last").unwrap();
    assert_eq!(old.format, 1);
    assert_eq!(world.operations.undo(&old, false).unwrap().files, 4);
    let files = |texts: [(&str, &str); 3]| texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let before = files([
        ("home/appended.jsonl", "line\nsince\n"),
        ("home/removed", "kept"),
        ("home/replaced.jsonl", "old\nsince\n"),
    ]);
    assert_eq!(world.files(), before);
    assert!(matches!(world.operations.undo(&old, false), Err(OpError::AlreadyUndone { .. })));
}

/// Such a receipt does not contain the digests of an interrupted operation.
#[test]
fn what_an_old_interrupted_operation_made_is_left_and_named() {
    let world = World::new();
    world.put("home/made", "made, or changed by a person");
    world.put("home/replaced.jsonl", "old\n");
    first_format(
        &world,
        "begun",
        &[
            ("home/made", "create", None, None, None),
            ("home/missing", "create", None, None, None),
            ("home/nu\0l", "create", None, None, None),
            ("home/replaced.jsonl", "replace", Some("old\n"), Some(4), Some("new\n")),
        ],
    );
    let old = world.operations.find("last").unwrap();
    let error = world.operations.undo(&old, false).unwrap_err();
    assert!(matches!(&error, OpError::Changed { files } if files.len() == 1), "{error}");
    let undone = world.operations.undo(&old, true).unwrap();
    assert_eq!((undone.skipped.len(), undone.untouched), (1, 3));
    assert_eq!(world.read("home/made"), "made, or changed by a person");
}

#[test]
fn a_receipt_of_a_newer_format_is_named() {
    let world = World::new();
    world.put("state/operations/new/receipt.json", "{\"format\": 99, \"shape\": \"unknown\"}");
    let unread = world.operations.list().errors;
    assert!(unread.iter().any(|error| error.to_string().contains("its format is 99")), "{unread:?}");
}

/// A receipt by hand: an operation with one created file.
fn hand_written(world: &World, id: &str, operation: &str, state: &str, action: &str) {
    let made = world.put("home/made", "made");
    let digest = FileDigest::of(b"made");
    let receipt = format!(
        r#"{{
  "format": 2,
  "id": "{id}",
  "operation": "{operation}",
  "command": [],
  "made_at": "2026-01-01T10:00:00.000Z",
  "state": "{state}",
  "undo_order": 0,
  "independent": false,
  "source": "s1",
  "target": "s1",
  "summary": "",
  "files": [
    {{
      "path": {path},
      "action": "{action}",
      "grows": false,
      "backup": null,
      "length_before": null,
      "modified_before": null,
      "length_after": 4,
      "sha256_after": "{sha256}"
    }}
  ],
  "folders": []
}}
"#,
        path = serde_json::json!(made),
        sha256 = digest.to_hex(),
    );
    world.put(&format!("state/operations/{id}/receipt.json"), &receipt);
}

#[test]
fn every_name_is_read_and_written_as_it_was() {
    let all = [
        "clone",
        "compress",
        "delete",
        "move",
        "redact",
        "repair",
        "restore",
        "restore-session",
        "setup",
        "strip",
        "tag",
        "title",
    ];
    assert_eq!(Operation::ALL.iter().map(|operation| operation.name()).collect::<Vec<_>>(), all);
    for name in all {
        let world = World::new();
        hand_written(&world, "a", name, "done", "create");
        let path = world.at("state/operations/a/receipt.json");
        let text = fs_err::read_to_string(&path).unwrap();
        let receipt = world.operations.find("a").unwrap();
        assert_eq!(receipt.operation.name(), name);
        world.operations.write(&receipt).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), text);
        assert_eq!(world.operations.undo(&receipt, false).unwrap().files, 1);
    }
}

#[test]
fn an_unknown_operation_state_or_action_is_an_error_that_names_it() {
    for (operation, state, action, expected) in [
        ("transmogrify", "done", "create", "unknown operation `transmogrify`"),
        ("strip", "paused", "create", "unknown state `paused`"),
        ("strip", "done", "fold", "unknown action `fold`"),
    ] {
        let world = World::new();
        hand_written(&world, "abc", operation, state, action);
        let unread = world.operations.list().errors;
        assert!(unread[0].to_string().contains(expected), "{unread:?}");
        // A lookup by id, by prefix and by `last` returns the same error.
        for id in ["abc", "a", "last"] {
            let error = world.operations.find(id).unwrap_err();
            assert!(matches!(error, OpError::BadReceipt { .. }), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert!(world.at("home/made").exists());
    }
}

#[test]
fn an_older_unreadable_receipt_does_not_hide_the_last_operation() {
    let world = World::new();
    hand_written(&world, "1", "transmogrify", "done", "create");
    world.operations.apply(operation("2"), vec![create(world.at("home/new"), "")]).unwrap();
    assert_eq!(world.operations.find("last").unwrap().id, "2");
    hand_written(&world, "3", "transmogrify", "done", "create");
    assert!(matches!(world.operations.find("last"), Err(OpError::BadReceipt { .. })));
}

/// In each state, an interrupted operation is undone or finished before others.
#[test]
fn an_interrupted_operation_is_found_first() {
    for state in ["begun", "applying", "undoing", "redoing"] {
        let world = World::new();
        hand_written(&world, "1", "strip", "undone", "create");
        hand_written(&world, "2", "strip", state, "create");
        hand_written(&world, "3", "strip", "done", "create");
        assert_eq!(world.operations.find("last").unwrap().id, "2", "{state}");
        assert_eq!(world.operations.find_undone("last").unwrap().id, "2", "{state}");
    }
}

#[test]
#[cfg(unix)]
fn a_link_to_a_folder_elsewhere_is_no_receipt() {
    let world = World::new();
    hand_written(&world, "a", "strip", "done", "create");
    let (folder, elsewhere) = (world.at("state/operations/a"), world.at("elsewhere/a"));
    fs_err::create_dir(world.at("elsewhere")).unwrap();
    fs_err::rename(&folder, &elsewhere).unwrap();
    fs_err::write(elsewhere.join("mine"), "m").unwrap();
    let receipt = Receipt::read(&elsewhere).unwrap();
    fs_err::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    let listing = world.operations.list();
    assert_eq!((listing.found.len(), listing.errors.len()), (0, 1));
    assert!(matches!(world.operations.forget(&receipt), Err(OpError::BadReceipt { .. })));
    fs_err::remove_file(elsewhere.join(receipt::FILE)).unwrap();
    world.operations.apply(operation("b"), vec![create(world.at("home/b"), "")]).unwrap();
    assert!(elsewhere.join("mine").exists());
}

#[test]
fn a_receipt_whose_order_cannot_be_continued_is_refused() {
    let world = World::new();
    hand_written(&world, "a", "strip", "done", "create");
    let path = world.at("state/operations/a/receipt.json");
    let text = fs_err::read_to_string(&path).unwrap();
    let text = text.replacen('{', &format!("{{\"apply_order\": {},", u64::MAX), 1);
    fs_err::write(&path, text).unwrap();
    assert!(matches!(world.operations.find("a"), Err(OpError::BadReceipt { .. })));
    let done = world.operations.apply(operation("b"), vec![create(world.at("home/b"), "")]).unwrap();
    assert_eq!(done.apply_order, 1);
}
