//! `edit repair`: fixes the findings of a session, and undo.

use threadline_testkit::session_uuid;

use crate::edit::EditFixture;

const FAULTY: &str = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash {"command":"ls"}
raw {"type":"user","mess
u2 <- ?x  user   "and?"
a2 <- u2  reply  m2 text "Done. \ud83d"
e1 <- a2  reply  e1 text "API Error" model=<synthetic> +{"isApiErrorMessage":true}
"#;

#[test]
fn findings_are_repaired_in_place_and_can_be_undone() {
    let world = EditFixture::new();
    let path = world.home.session("loom", FAULTY);
    let id = session_uuid("loom");
    let before = std::fs::read(&path).unwrap();
    assert_eq!(world.run(&["check", &id]).code, 1);
    let plan = world.run(&["edit", "repair", &id, "--in-place"]);
    assert_eq!(plan.code, 0, "{plan}");
    for named in [
        "unreadable line (line 3)",
        "tool call without a result (line 2)",
        "API error at the end (line 6)",
        "unpaired surrogates replaced (line 5)",
    ] {
        assert!(plan.out.contains(named), "{named}: {plan}");
    }
    // The size of the file, as in lists, not of the lines after they were made readable.
    let size = threadline_view::humanize::bytes(before.len() as u64);
    assert!(plan.out.contains(&format!("  size    {size} → ")), "{plan}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let done = world.run(&["edit", "repair", &id, "--in-place", "--apply"]);
    assert_eq!(done.code, 0, "{done}");
    let check = world.run(&["check", &id]);
    assert_eq!(check.code, 0, "{check}");
    let again = world.run(&["edit", "repair", &id, "--in-place"]);
    assert!(again.code == 1 && again.err.contains("nothing to repair"), "{again}");
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_repaired_copy_is_sound() {
    let world = EditFixture::new();
    world.home.session("loom", FAULTY);
    let run = world.run(&["edit", "repair", &session_uuid("loom"), "--apply", "--json"]);
    assert_eq!(run.code, 0, "{run}");
    let target = run.json()["target"].as_str().unwrap().to_owned();
    let check = world.run(&["check", &target]);
    assert_eq!(check.code, 0, "{check}");
}

#[test]
fn sub_agents_are_repaired_with_their_session() {
    let sound = "u1 user \"go\"\na1 <- u1 reply m1 tool t1 Task {\"prompt\":\"count\"}\nr1 <- a1 result t1 \"Two.\" {\"agentId\":\"a1b2c3\"}\na2 <- r1 reply m2 text \"Two.\"";
    let faulty = "x1 user \"count\"\nx2 <- x1 reply n1 tool t9 Bash\nx3 <- ?y reply n2 text \"Two.\"";
    for in_place in [true, false] {
        let world = EditFixture::new();
        world.home.session("loom", sound);
        let agent = world.home.agent("loom", "a1b2c3", faulty, None);
        let before = std::fs::read(&agent).unwrap();
        let id = session_uuid("loom");
        assert_eq!(world.run(&["check", &id]).code, 1);
        let mut args = vec!["edit", "repair", &id];
        args.extend(in_place.then_some("--in-place"));
        let plan = world.run(&args);
        assert!(plan.out.contains("agent-a1b2c3.jsonl: tool call without a result (line 2)"), "{plan}");
        assert!(plan.out.contains("agent-a1b2c3.jsonl, line 2: the call of Bash has no result"), "{plan}");
        args.extend(["--apply", "--json"]);
        let done = world.run(&args);
        assert_eq!(done.code, 0, "{done}");
        let target = done.json()["target"].as_str().unwrap().to_owned();
        assert_eq!(target == id, in_place);
        let check = world.run(&["check", &target]);
        assert_eq!(check.code, 0, "{check}");
        assert_eq!(std::fs::read(&agent).unwrap() == before, !in_place);
        assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
        assert_eq!(std::fs::read(&agent).unwrap(), before);
    }
}

#[test]
fn a_session_that_ended_during_a_call_needs_no_repair() {
    let world = EditFixture::new();
    world.home.session(
        "loom",
        "u1 user \"go\"\na1 <- u1 reply m1 text \"Running.\"\na2 <- a1 reply m1 tool t1 Bash",
    );
    let id = session_uuid("loom");
    assert_eq!(world.run(&["check", &id]).code, 0);
    let repair = world.run(&["edit", "repair", &id]);
    assert_eq!(repair.code, 1, "{repair}");
    assert!(repair.err.contains("nothing to repair"), "{repair}");
}

#[test]
fn unrepairable_findings_of_a_sub_agent_are_named() {
    let world = EditFixture::new();
    world.home.session("loom", "u1 user \"go\"\na1 <- u1 reply m1 tool t1 Task {\"prompt\":\"count\"}\nr1 <- a1 result t1 \"Two.\" {\"agentId\":\"a1b2c3\"}");
    let key = threadline_testkit::secrets(1).into_iter().next().unwrap();
    let log = format!("x1 user {}\nx2 <- x1 reply n1 text \"Two.\"", serde_json::Value::from(key.text));
    world.home.agent("loom", "a1b2c3", &log, None);
    let id = session_uuid("loom");
    let check = world.run(&["check", &id]);
    assert!(check.code == 1 && check.out.contains("F26"), "{check}");
    let repair = world.run(&["edit", "repair", &id]);
    assert_eq!(repair.code, 1, "{repair}");
    assert!(repair.err.contains("nothing here can be repaired: F26 secret"), "{repair}");
}
