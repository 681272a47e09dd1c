//! Logs of other writers: no `type` on replies, content next to the type, time in the message, no ids.

use threadline_testkit::{TestHome, session_uuid};

use crate::run::at_home;

const LOG: &str = r#"{ "sessionId": "sess1", "type": "user", "content": "read a file" }
{ "message": { "id": "m1", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "timestamp": "2026-01-05T10:00:05Z", "content": [{ "type": "tool_use", "id": "t1", "name": "Read", "input": { "path": "/" } }], "usage": { "input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 20 } } }
{ "type": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "file data" }] }
{ "message": { "id": "m2", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "timestamp": "2026-01-05T10:00:09Z", "content": [{ "type": "text", "text": "done" }], "usage": { "input_tokens": 7, "output_tokens": 3 } } }
"#;

fn home() -> (TestHome, String) {
    let (home, id) = (TestHome::new(), session_uuid("other"));
    home.file(format!("projects/-home-ada-loom/{id}.jsonl"), LOG);
    (home, id)
}

#[test]
fn the_lines_are_one_turn_in_every_command() {
    let (home, id) = home();
    let shown = at_home(&home, &["show", &id, "--level", "full"]).out;
    for text in ["read a file", "Read", "file data", "done", "1 turn "] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("unreadable"), "{shown}");

    let listed = at_home(&home, &["list", "--json"]).json_lines().remove(0);
    assert_eq!(listed["first_prompt"], "read a file");
    assert_eq!((&listed["turns"], &listed["errors"]), (&1.into(), &0.into()));
    assert_eq!(listed["last_active_at"], "2026-01-05T10:00:09.000Z");

    let found = at_home(&home, &["search", "done", "--json"]);
    assert!(found.out.contains(&id), "{found}");

    let usage = at_home(&home, &["usage", "--json", "--by", "model"]).json_lines().remove(0);
    let figures = ["input_tokens", "output_tokens", "cache_read_tokens"].map(|name| usage[name].as_u64());
    assert_eq!(figures, [Some(107), Some(53), Some(20)], "{usage}");

    let spans = at_home(&home, &["trace", "push", &id, "--dry-run"]);
    assert!(spans.out.contains("Read") && spans.out.contains("claude-sonnet-4-5"), "{spans}");

    let exported = at_home(&home, &["export", "markdown", &id]).out;
    assert!(exported.contains("read a file") && exported.contains("done"), "{exported}");

    let overview = at_home(&home, &["overview", "--since", "all", "--json"]).out;
    assert!(overview.contains("\"prompts\":1") && overview.contains("\"tool_calls\":1"), "{overview}");
}

#[test]
fn a_repair_keeps_every_line() {
    let (home, id) = home();
    let plan = at_home(&home, &["edit", "repair", &id, "--in-place"]);
    assert_eq!(plan.code, 0, "{plan}");
    assert!(plan.out.contains("  lines   4 → 4  (4 changed)"), "{plan}");
}
