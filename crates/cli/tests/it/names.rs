//! Names in a log: of models, tools, types, versions, branches and folders.

use serde_json::{Value, json};
use threadline_testkit::TestHome;

use crate::run::at_home;

/// A log whose names contain a newline.
fn log() -> String {
    const MARK: &str = "\nFORGED line";
    let name = |name: &str| format!("{name}{MARK}");
    let line = |number: u32, value: Value| {
        let mut line = json!({
            "uuid": format!("00000000-0000-4000-8000-{number:012}"),
            "parentUuid": number.checked_sub(1).map(|above| format!("00000000-0000-4000-8000-{above:012}")),
            "sessionId": "5e551000-0000-4000-8000-000000000001", "timestamp": "2026-01-01T10:00:00.000Z",
            "cwd": name("/home/ada/loom"), "gitBranch": name("main"), "version": name("2.1.197"),
        });
        let members = value.as_object().unwrap().clone();
        line.as_object_mut().unwrap().extend(members);
        format!("{line}\n")
    };
    let call = json!({"type": "tool_use", "id": name("t1"), "name": name("Weave"), "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": name("t1"), "content": "no", "is_error": true});
    let reply = json!({
        "id": "m1", "role": "assistant", "model": name("claude-loom"), "content": [call],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    });
    [
        line(0, json!({"type": "user", "message": {"role": "user", "content": "hi"}})),
        line(1, json!({"type": "assistant", "message": reply})),
        line(2, json!({"type": "user", "message": {"role": "user", "content": [result]}})),
        line(3, json!({"type": name("weft"), name("key"): 1})),
        line(4, json!({"type": "system", "subtype": name("warp"), "content": "text"})),
    ]
    .concat()
}

#[test]
fn a_newline_in_a_name_begins_no_line() {
    let home = TestHome::new();
    home.file("projects/-home-ada-loom/5e551000-0000-4000-8000-000000000001.jsonl", log());
    for args in [
        &["list"][..],
        &["show", "5e551000", "--level", "full"],
        &["show", "5e551000", "--outline"],
        &["inspect", "5e551000"],
        &["check"],
        &["context", "5e551000"],
        &["replay", "5e551000"],
        &["restore", "5e551000"],
        &["compare", "5e551000", "5e551000"],
        &["usage", "--by", "model"],
        &["usage", "--by", "session"],
        &["overview", "--since", "all"],
        &["search", "hi"],
        &["edit", "clone", "5e551000"],
        &["edit", "repair", "5e551000"],
        &["trace", "push", "5e551000", "--dry-run", "--unfinished"],
    ] {
        let run = at_home(&home, args);
        let forged = run.out.lines().chain(run.err.lines()).find(|line| line.trim().starts_with("FORGED"));
        assert_eq!(forged, None, "{args:?}: {run}");
    }
}
