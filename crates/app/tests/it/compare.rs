//! Comparison of two sessions, and of two branches of one.

use threadline_app::App;
use threadline_app::compare::{CompareError, Comparison, FileRelation};
use threadline_testkit::{TestHome, session_uuid};

use crate::app;

/// A session with a second prompt that was typed twice: the first time, it wrote another file.
const BRANCHES: &str = r#"
    u1        user   "start"
    a1 <- u1  reply  m1 tool t1 Write {"file_path":"/home/ada/loom/a.rs","content":"one\n"}
    r1 <- a1  result t1 "ok" {"type":"create","filePath":"/home/ada/loom/a.rs","content":"one\n","originalFile":null}
    a2 <- r1  reply  m2 text "Done."
    u2 <- a2  user   "add two"
    a3 <- u2  reply  m3 tool t2 Edit {"file_path":"/home/ada/loom/a.rs"}
    r3 <- a3  result t2 "ok" {"filePath":"/home/ada/loom/a.rs","oldString":"one","newString":"one\ntwo","originalFile":"one\n"}
    a4 <- r3  reply  m4 text "Added."
    u3 <- a2  user   "add three"
    a5 <- u3  reply  m5 tool t3 Edit {"file_path":"/home/ada/loom/a.rs"}
    r5 <- a5  result t3 "ok" {"filePath":"/home/ada/loom/a.rs","oldString":"one","newString":"one\nthree","originalFile":"one\n"}
    b5 <- r5  reply  m6 tool t4 Bash {"command":"false"}
    s5 <- b5  result t4 error "Exit code 1"
    a6 <- s5  reply  m7 text "Added."
    "#;

fn compare(app: &App, a: &str, b: &str) -> Result<Comparison, CompareError> {
    let (a, b) = (app.find_conversation(a)?, app.find_conversation(b)?);
    app.compare([&a, &b])
}

#[test]
fn branches_of_a_session_share_their_first_turns() {
    let home = TestHome::new();
    home.session("loom", BRANCHES);
    let app = app(&home);
    let compared = compare(&app, "last", "last#m6").unwrap();
    let [a, b] = &compared.sides;
    let titles = |side: &threadline_app::compare::ComparedConversation| {
        side.prompts.iter().map(|prompt| prompt.title.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (titles(a), titles(b)),
        (vec!["start".into(), "add three".into()], vec!["start".into(), "add two".into()])
    );
    assert_eq!((a.branch.as_deref(), b.branch.as_deref()), (None, Some("m5")));
    assert_eq!(compared.shared_turns, 1);
    assert_eq!((a.n_calls(), a.errors, b.n_calls(), b.errors), (3, 1, 2, 0));
    assert_eq!((a.tools["Bash"].errors, b.tools.contains_key("Bash")), (1, false));
    assert_eq!(compared.files.len(), 1);
    assert_eq!(compared.files[0].relation(), FileRelation::Different);
    assert_eq!(compared.files[0].label, "a.rs");
    assert_eq!(compared.files[0].patch(), "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n one\n-three\n+two\n");
    // A line of the active conversation is that conversation.
    let same = compare(&app, "last", "last#m10").unwrap();
    assert_eq!((same.shared_turns, same.files[0].relation()), (2, FileRelation::Same));
    let missing = compare(&app, "last", "last#m99").unwrap_err();
    assert!(missing.to_string().starts_with("m99 is in no conversation of "), "{missing}");
}

#[test]
fn sessions_in_different_folders_have_the_same_files() {
    let home = TestHome::new();
    let session = |name: &str, cwd: &str, text: &str| {
        let notation = format!(
            "u1 user \"write\"\na1 <- u1 reply m1 tool t1 Write {{\"file_path\":\"{cwd}/a.rs\"}}\n\
             r1 <- a1 result t1 \"ok\" {{\"type\":\"create\",\"filePath\":\"{cwd}/a.rs\",\"content\":\"{text}\",\"originalFile\":null}}\n\
             a2 <- r1 reply m2 tool t2 Write {{\"file_path\":\"{cwd}/{name}.rs\"}}\n\
             r2 <- a2 result t2 \"ok\" {{\"type\":\"create\",\"filePath\":\"{cwd}/{name}.rs\",\"content\":\"x\\n\",\"originalFile\":null}}\n"
        );
        home.session_in(cwd, name, &notation);
    };
    session("first", "/srv/first", "same\\n");
    session("second", "/srv/second", "same\\n");
    let app = app(&home);
    let ids = ["first", "second"].map(threadline_testkit::session_uuid);
    let compared = compare(&app, &ids[0], &ids[1]).unwrap();
    let files: Vec<_> = compared.files.iter().map(|file| (&*file.label, file.relation())).collect();
    assert_eq!(
        files,
        [("a.rs", FileRelation::Same), ("first.rs", FileRelation::OnlyA), ("second.rs", FileRelation::OnlyB)]
    );
    assert_eq!(compared.files[1].patch(), "--- before/first.rs\n+++ a/first.rs\n@@ -0,0 +1 @@\n+x\n");
}

#[test]
fn costs_are_subtracted() {
    let home = TestHome::new();
    let session = |id: &str, tokens: u64| {
        let usage = format!(r#"{{"input_tokens":{tokens},"output_tokens":1000}}"#);
        home.session(id, &format!("u1 user \"start\"\na1 <- u1 reply m{id} text \"Done.\" usage={usage}\n"));
    };
    session("cheap", 1_000);
    session("dear", 1_001_000);
    let app = app(&home);
    let difference =
        |a: &str, b: &str| compare(&app, &session_uuid(a), &session_uuid(b)).unwrap().cost_difference();
    let dearer = difference("cheap", "dear");
    assert!(dearer.starts_with("+$") && dearer.len() > 4, "{dearer}");
    assert_eq!(difference("dear", "cheap"), dearer.replace('+', "−"));
    assert_eq!(difference("cheap", "cheap"), "");
}
