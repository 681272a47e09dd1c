//! Planning and applying edits, and undoing them.

use std::io::Write;

use threadline_app::edit::{
    ApplyOptions, CloneOptions, CompressTarget, EditError, EditTarget, MoveOptions, NothingToDo,
};
use threadline_edit::{CutPoint, StripOptions, ToolStripOptions};
use threadline_entry::Code;
use threadline_secret::Rules;
use threadline_store::{FileAction, Operation, OperationState};
use threadline_testkit::session_uuid;

use crate::world::{World, options};

const LOOM: &str = r#"
u1        user   "list"
a1 <- u1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a1  result t1 "a"
a2 <- r1  reply  m2 text "One file."
"#;

fn without_tools() -> StripOptions {
    StripOptions { tools: Some(ToolStripOptions::default()), ..StripOptions::default() }
}

#[test]
fn a_plan_writes_nothing_until_it_is_applied() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let before = world.files();
    let session = world.open("loom");
    let edit = session.set_title("The loom");
    assert_eq!((edit.operation(), edit.path(), edit.new_session()), (Operation::Title, &*path, None));
    assert_eq!(edit.plan().counts(), [0, 0, 1]);
    edit.check().unwrap();
    assert_eq!((world.files(), world.receipts()), (before.clone(), 0));

    let receipt = edit.apply(&world.app, &options()).unwrap();
    assert_eq!((receipt.operation, receipt.state), (Operation::Title, OperationState::Done));
    assert_eq!((&*receipt.source, &*receipt.target), (&*session_uuid("loom"), &*session_uuid("loom")));
    assert_eq!(receipt.command, ["threadline", "edit"]);
    assert_eq!(receipt.summary, "lines 1 added; tokens ≈11 → ≈11");
    // A line that is only added is appended.
    assert_eq!(receipt.files[0].action, FileAction::Append);
    assert!(world.files()[0].1.starts_with(&before[0].1));
    world.app.undo_operation("last", false).unwrap();
    assert_eq!(world.files(), before);
}

#[test]
fn a_line_that_another_program_is_writing_is_not_cut_in_two() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let whole = std::fs::read_to_string(&path).unwrap();
    let (first, second) = (r#"{"type":"summary","summary":"half "#, "and half\",\"leafUuid\":\"x\"}\n");
    std::fs::write(&path, format!("{whole}{first}")).unwrap();
    world.open("loom").set_title("The loom").apply(&world.app, &options()).unwrap();
    let now = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{now}{second}")).unwrap();
    let now = std::fs::read_to_string(&path).unwrap();
    let added = now.strip_prefix(&whole).unwrap().strip_suffix(&format!("{first}{second}")).unwrap();
    assert!(added.contains("The loom") && added.lines().count() == 1, "{added}");
    world.app.undo_operation("last", false).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{whole}{first}{second}"));
    world.app.redo_operation("last", false).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), now);
    // A complete line may lack its newline.
    std::fs::write(&path, whole.trim_end()).unwrap();
    let receipt = world.open("loom").set_title("Again").apply(&world.app, &options()).unwrap();
    assert_eq!(receipt.files[0].action, FileAction::Append);
}

#[test]
fn a_line_that_is_completed_during_an_edit_stays_whole() {
    type Apply = fn(&World, &dyn Fn());
    let operations: [(&str, Apply); 3] = [
        ("strip", |world, complete| {
            let session = world.open("loom");
            let edit = session.strip(&without_tools(), EditTarget::InPlace).unwrap();
            complete();
            edit.apply(&world.app, &options()).unwrap();
        }),
        ("redact", |world, complete| {
            let session = world.open("loom");
            let redaction = session.redact(&Rules::new(), EditTarget::InPlace, true).unwrap();
            complete();
            redaction.edit.apply(&world.app, &options()).unwrap();
        }),
        ("repair", |world, complete| {
            let repairs = world.open("loom").find_repairs(EditTarget::InPlace).unwrap();
            let edit = repairs.plan().unwrap();
            complete();
            edit.apply(&world.app, &options()).unwrap();
        }),
    ];
    let key = threadline_testkit::secrets(1).into_iter().next().unwrap().text;
    let log = format!("{LOOM}u2 <- a2  user {}", serde_json::Value::from(&*key));
    for (name, apply) in operations {
        // A secret in the part of the line makes `redact` change it.
        for text in ["half", &key] {
            let first = format!(r#"{{"type":"summary","summary":"{text} "#);
            for is_completed_before in [true, false] {
                let world = World::new();
                let path = world.home.session("loom", &log);
                let whole = std::fs::read_to_string(&path).unwrap();
                let second = "and half\",\"leafUuid\":\"x\"}\n";
                std::fs::write(&path, format!("{whole}{first}")).unwrap();
                let mut other = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
                apply(&world, &|| {
                    if is_completed_before {
                        (&other).write_all(second.as_bytes()).unwrap();
                    }
                });
                let now = std::fs::read_to_string(&path).unwrap();
                if is_completed_before {
                    assert!(now.ends_with(&format!("\n{first}{second}")), "{name}: {now}");
                } else if name == "strip" || name == "redact" && text != key {
                    assert!(now.ends_with(&format!("\n{first}")), "{name}: {now}");
                }
                world.app.undo_operation("last", false).unwrap();
                let now = std::fs::read_to_string(&path).unwrap();
                let completed = if is_completed_before { second } else { "" };
                assert_eq!(now, format!("{whole}{first}{completed}"), "{name}");
                other.flush().unwrap();
            }
        }
    }
}

#[test]
fn every_operation_is_undone_and_redone_to_the_byte() {
    type Apply = fn(&World) -> Result<threadline_store::Receipt, EditError>;
    let operations: [(Operation, Apply); 5] = [
        (Operation::Clone, |world| {
            let mut session = world.open("loom");
            session.clone_to_new(&CloneOptions::default())?.apply(&world.app, &options())
        }),
        (Operation::Strip, |world| {
            let session = world.open("loom");
            session.strip(&without_tools(), EditTarget::InPlace)?.apply(&world.app, &options())
        }),
        (Operation::Tag, |world| world.open("loom").set_tag("wip").apply(&world.app, &options())),
        (Operation::Move, |world| {
            let to = MoveOptions { to: "/srv/loom two".into(), from: None };
            world.open("loom").move_to(&to)?.apply(&world.app, &options())
        }),
        (Operation::Delete, |world| world.open("loom").delete()?.apply(&world.app, &options())),
    ];
    let world = World::new();
    world.session_with_side_files("loom");
    for (operation, apply) in operations {
        let before = world.files();
        assert_eq!(apply(&world).unwrap().operation, operation);
        let after = world.files();
        assert_ne!(before, after, "{operation}");
        for _ in 0..2 {
            world.app.undo_operation("last", false).unwrap();
            assert_eq!(world.files(), before, "{operation}");
            world.app.redo_operation("last", false).unwrap();
            assert_eq!(world.files(), after, "{operation}");
        }
        world.app.undo_operation("last", false).unwrap();
    }
    assert_eq!(world.app.forget_all_operations().unwrap(), operations.len());
    assert_eq!(world.receipts(), 0);
}

#[test]
fn side_files_are_copied_with_the_ids_of_the_new_session() {
    let world = World::new();
    world.session_with_side_files("loom");
    let id = session_uuid("loom");
    let before = world.files();
    let mut session = world.open("loom");
    let edit = session.clone_to_new(&CloneOptions::default()).unwrap();
    let clone = edit.new_session().unwrap().to_owned();
    edit.apply(&world.app, &options()).unwrap();
    let made: Vec<_> = world.files().into_iter().filter(|file| !before.contains(file)).collect();
    let names: Vec<String> = made.iter().map(|(name, _)| name.replace(&clone, "[id]")).collect();
    assert_eq!(
        names,
        [
            "file-history/[id]/0123@v1",
            "projects/-home-ada-loom/[id].jsonl",
            "projects/-home-ada-loom/[id]/subagents/agent-a1b2c3.jsonl",
            "projects/-home-ada-loom/[id]/subagents/agent-a1b2c3.meta.json",
            "projects/-home-ada-loom/[id]/tool-results/o.txt",
        ]
    );
    let text = |at: usize| String::from_utf8(made[at].1.clone()).unwrap();
    assert!(text(1).contains(&format!("see /x/{clone}/tool-results/o.txt")));
    let origin = format!("\"forkedFrom\":{{\"sessionId\":\"{id}\"");
    assert!(!text(2).replace(&origin, "").contains(&id), "{}", text(2));
}

#[test]
fn a_cut_clone_leaves_later_side_files_out() {
    let world = World::new();
    let id = session_uuid("loom");
    world.home.session(
        "loom",
        r#"
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Task {"prompt":"count"}
        r1 <- a1  result t1 "see tool-results/o1.txt" {"agentId":"a11111"}
        a2 <- r1  reply  m2 text "One."
        u2 <- a2  user   "two"
        a3 <- u2  reply  m3 tool t2 Task {"prompt":"count again"}
        r2 <- a3  result t2 "see tool-results/o2.txt" {"agentId":"a22222"}
        a4 <- r2  reply  m4 text "Two."
        "#,
    );
    for (agent, prompt) in [("a11111", "count"), ("a22222", "count again")] {
        let log = format!("{agent}x user \"{prompt}\"\n{agent}y <- {agent}x reply n{agent} text \"Two.\"");
        world.home.agent("loom", agent, &log, None);
    }
    for n in [1, 2] {
        world.home.file(format!("projects/-home-ada-loom/{id}/tool-results/o{n}.txt"), "all of it");
    }
    let mut session = world.open("loom");
    let copies = |edit: &threadline_app::edit::PlannedEdit<'_>| edit.plan().side_files().len();
    assert_eq!(copies(&session.clone_to_new(&CloneOptions::default()).unwrap()), 4);
    let first = CloneOptions { to: Some(CutPoint::Turn(1)), ..CloneOptions::default() };
    assert_eq!(copies(&session.clone_to_new(&first).unwrap()), 2);
    let missing = CloneOptions { to: Some(CutPoint::Turn(9)), ..CloneOptions::default() };
    assert!(matches!(session.clone_to_new(&missing), Err(EditError::Cut(_))));
}

#[test]
fn an_edit_without_an_effect_says_why() {
    let world = World::new();
    world.home.session("loom", "u1 user \"hi\"\na1 <- u1 reply m1 text \"Hello.\"");
    let session = world.open("loom");
    let nothing = |error: EditError| match error {
        EditError::NothingToDo(nothing) => nothing,
        error => panic!("{error}"),
    };
    let stripped = session.strip(&without_tools(), EditTarget::InPlace);
    assert_eq!(nothing(stripped.unwrap_err()), NothingToDo::NoSuchContent);
    let redacted = session.redact(&Rules::new(), EditTarget::InPlace, true);
    assert_eq!(nothing(redacted.unwrap_err()), NothingToDo::NoSecrets);
    let repaired = session.find_repairs(EditTarget::InPlace);
    assert_eq!(nothing(repaired.err().unwrap()), NothingToDo::NoFaults);
}

#[test]
fn an_open_session_is_changed_only_by_force() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let now = jiff::Timestamp::now();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("2026-01-01T10:00:03.000Z", &format!("{now:.3}"))).unwrap();
    let before = world.files();
    let session = world.open("loom");
    let edit = session.strip(&without_tools(), EditTarget::InPlace).unwrap();
    let refused = edit.apply(&world.app, &options()).unwrap_err();
    assert!(matches!(refused, EditError::RecentlyWritten { .. }), "{refused}");
    let refused = session.delete().unwrap().apply(&world.app, &options()).unwrap_err();
    assert!(matches!(refused, EditError::RecentlyWritten { .. }), "{refused}");
    assert_eq!((world.files(), world.receipts()), (before, 0));
    edit.apply(&world.app, &ApplyOptions { force: true, ..options() }).unwrap();
    // A copy does not change the session.
    let mut session = world.open("loom");
    session.clone_to_new(&CloneOptions::default()).unwrap().apply(&world.app, &options()).unwrap();
}

#[test]
fn a_plan_of_a_log_that_changed_is_not_applied() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let session = world.open("loom");
    let edit = session.strip(&without_tools(), EditTarget::InPlace).unwrap();
    std::fs::write(&path, "{}\n").unwrap();
    let error = edit.apply(&world.app, &options()).unwrap_err();
    assert!(matches!(error, EditError::LogChanged { .. }), "{error}");
    assert_eq!((std::fs::read_to_string(&path).unwrap(), world.receipts()), ("{}\n".to_owned(), 0));
}

#[test]
fn lines_that_another_program_appends_after_the_plan_are_kept() {
    use std::io::Write;
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let session = world.open("loom");
    let edit = session.strip(&without_tools(), EditTarget::InPlace).unwrap();
    let line = "{\"type\":\"mode\"}\n";
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(line.as_bytes()).unwrap();
    edit.apply(&world.app, &options()).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().ends_with(line));
}

#[test]
fn the_log_of_a_sub_agent_is_edited_with_its_session_only() {
    let world = World::new();
    world.home.session("loom", LOOM);
    let path = world.home.agent("loom", "x1", "b1 user \"look\"\nb2 <- b1 reply n1 text \"I looked.\"", None);
    let file = world.app.find(path.to_str().unwrap()).unwrap();
    let mut session = world.app.open_for_edit(file).unwrap();
    let edit = session.clone_to_new(&CloneOptions::default()).unwrap();
    for error in [edit.check().unwrap_err(), edit.apply(&world.app, &options()).unwrap_err()] {
        assert!(matches!(error, EditError::AgentLog { .. }), "{error}");
    }
    assert_eq!(world.receipts(), 0);
}

#[test]
fn faults_of_a_session_and_its_sub_agents_are_repaired() {
    let sound = r#"
        u1        user   "go"
        a1 <- u1  reply  m1 tool t1 Task {"prompt":"count"}
        r1 <- a1  result t1 "Two." {"agentId":"a1b2c3"}
        a2 <- r1  reply  m2 text "Two."
        "#;
    let faulty = "x1 user \"count\"\nx2 <- x1 reply n1 tool t9 Bash\nx3 <- ?y reply n2 text \"Two.\"";
    for target in [EditTarget::InPlace, EditTarget::NewSession] {
        let world = World::new();
        world.home.session("loom", sound);
        let agent = world.home.agent("loom", "a1b2c3", faulty, None);
        let before = std::fs::read(&agent).unwrap();
        let session = world.open("loom");
        let repairs = session.find_repairs(target).unwrap();
        let edit = repairs.plan().unwrap();
        let notes: Vec<_> = edit.plan().side_notes().iter().map(ToString::to_string).collect();
        assert!(
            notes.contains(&"agent-a1b2c3.jsonl: tool call without a result (line 2)".to_owned()),
            "{notes:?}"
        );
        edit.apply(&world.app, &options()).unwrap();
        assert_eq!(std::fs::read(&agent).unwrap() == before, target == EditTarget::NewSession);
    }
}

#[test]
fn secrets_are_found_and_replaced_in_every_file() {
    let world = World::new();
    let key = threadline_testkit::secrets(1).into_iter().next().unwrap().text;
    let log = format!("u1 user {}\na1 <- u1 reply m1 text \"Yes.\"", serde_json::Value::from(&*key));
    world.home.session("loom", &log);
    let id = session_uuid("loom");
    world.home.file(format!("projects/-home-ada-loom/{id}/tool-results/o.txt"), &key);
    let rules = Rules::new();
    let report = world.app.find_secrets(vec![world.open("loom").file().clone()], &rules);
    assert_eq!((report.hits.len(), report.unread.len()), (2, 0));
    assert_eq!(report.hits[0].finding().code, Code::Secret);

    let session = world.open("loom");
    let redaction = session.redact(&rules, EditTarget::InPlace, true).unwrap();
    assert_eq!(redaction.hits.len(), 2);
    assert!(redaction.edit.hides_content());
    assert_eq!(redaction.edit.findings().count(), 2);
    redaction.edit.apply(&world.app, &options()).unwrap();
    for (name, content) in world.files() {
        assert!(!String::from_utf8_lossy(&content).contains(&key), "{name}");
    }
    assert!(world.app.find_secrets(vec![world.open("loom").file().clone()], &rules).hits.is_empty());
}

#[test]
fn a_session_moves_only_to_a_free_place_from_a_directory_it_was_in() {
    let world = World::new();
    world.home.session("loom", LOOM);
    let session = world.open("loom");
    let to = |to: &str, from: Option<&str>| {
        let options = MoveOptions { to: to.into(), from: from.map(str::to_owned) };
        session.move_to(&options).err()
    };
    assert!(matches!(to("relative/missing", None), Some(EditError::NoSuchDirectory { .. })));
    assert!(matches!(to("/srv/loom", Some("/elsewhere")), Some(EditError::NotWrittenIn { .. })));
    assert!(to("/srv/loom", None).is_none());
    world.home.session_in("/srv/loom", "loom", LOOM);
    assert!(matches!(to("/srv/loom", None), Some(EditError::TargetExists { .. })));
    // A log outside of a home has no project.
    let log = world.home.file("elsewhere/log.jsonl", std::fs::read(&session.file().path).unwrap());
    let outside = tempfile::tempdir().unwrap();
    let copy = outside.path().join("log.jsonl");
    std::fs::copy(log, &copy).unwrap();
    let file = world.app.find(copy.to_str().unwrap()).unwrap();
    let session = world.app.open_for_edit(file).unwrap();
    let error = session.move_to(&MoveOptions { to: "/srv/loom".into(), from: None }).unwrap_err();
    assert!(matches!(error, EditError::NotInHome { .. }), "{error}");
}

#[test]
fn a_compressed_session_is_a_new_one_with_the_summary() {
    let world = World::new();
    let turn = |n: usize| {
        let parent = if n == 0 { String::new() } else { format!(" <- a{}", n - 1) };
        let text = "It is a long answer, and it says the same over and over. ".repeat(40);
        format!("u{n}{parent} user \"question {n}\"\na{n} <- u{n} reply m{n} text \"{text}\"\n")
    };
    world.home.session("loom", &(0..12).map(turn).collect::<String>());
    let session = world.open("loom");
    let compression = session.choose_compression(Vec::new(), None).unwrap();
    let target = CompressTarget::NewSession { title: Some("Short".to_owned()) };
    let edit = session.compress(compression, "What was said before.".to_owned(), &target).unwrap();
    assert!(edit.plan().tokens_after() < edit.plan().tokens_before());
    edit.apply(&world.app, &options()).unwrap();
    let text = std::fs::read_to_string(edit.path()).unwrap();
    assert!(text.contains("What was said before.") && text.contains("\"Short\""), "{text}");
    world.home.session("one", "u1 user \"hi\"\na1 <- u1 reply m1 text \"Hello.\"");
    let short = world.open("one");
    assert!(matches!(short.choose_compression(Vec::new(), None), Err(EditError::Compress(_))));
}

/// Private files of an operation that was interrupted in the folder of the session.
#[test]
fn private_files_of_an_interrupted_operation_are_not_side_files() {
    let world = World::new();
    world.session_with_side_files("loom");
    let n_files = world.open("loom").delete().unwrap().files().len();
    let folder = format!("projects/-home-ada-loom/{}", session_uuid("loom"));
    for name in ["0.old-before", "1.new-before", "2.exchanged"] {
        let name = format!(".threadline-20261117T000000-abcdef-{name}");
        world.home.file(format!("{folder}/subagents/{name}"), "{}\n");
        world.home.file(format!("{folder}/tool-results/{name}"), "x");
    }
    assert_eq!(world.open("loom").delete().unwrap().files().len(), n_files);
}
