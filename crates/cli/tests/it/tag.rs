//! `tag` and `pin`: labels of sessions in the state folder.

use serde_json::json;
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{RunOutput, command};

fn run(home: &TestHome, state: &std::path::Path, args: &[&str]) -> RunOutput {
    let mut command = command(args);
    command.arg("--home").arg(home.root()).env("XDG_STATE_HOME", state);
    RunOutput::of(&mut command)
}

#[test]
fn sessions_are_tagged_pinned_and_listed_by_tag() {
    let home = TestHome::new();
    home.session("one", "u1 user \"weave\"\ntitle \"Slow loom\"");
    home.session("two", "v1 user \"dye\"\ntitle \"Blue dye\"");
    let before = std::fs::read(
        home.root().join("projects/-home-ada-loom").join(format!("{}.jsonl", session_uuid("one"))),
    );
    let state = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| run(&home, state.path(), args);
    let one = session_uuid("one");
    let tagged = run(&["tag", &one, "review", "to do", "--json"]);
    assert_eq!(tagged.json_lines(), [json!({"id": one, "pinned": false, "tags": ["review", "to do"]})]);
    assert_eq!(run(&["pin", &one]).out, format!("{}: pinned, review, to do\n", &one[..8]));
    let listed = |args: &[&str]| {
        let lines = run(&[&["list", "--json", "--no-figures"], args].concat()).json_lines();
        lines.iter().map(|line| line["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--tag", "review"]), ["Slow loom"]);
    assert_eq!(listed(&["--pinned"]), ["Slow loom"]);
    assert_eq!(listed(&[]).len(), 2);
    assert!(run(&["list", "--no-figures"]).out.contains("pinned, review, to do"));
    assert_eq!(run(&["tag", &one, "review", "--remove"]).out, format!("{}: pinned, to do\n", &one[..8]));
    run(&["pin", &one, "--remove"]);
    assert_eq!(run(&["tag", &one, "--remove"]).out, format!("{}: no pin, no tags\n", &one[..8]));
    assert_eq!(listed(&["--pinned"]).len(), 0);
    let bad = run(&["tag", &one, " "]);
    assert_eq!(bad.code, 2, "{}", bad.err);
    let after = std::fs::read(home.root().join("projects/-home-ada-loom").join(format!("{one}.jsonl")));
    assert_eq!(before.unwrap(), after.unwrap());
}
