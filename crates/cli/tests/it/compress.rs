//! `edit compress`: the plan, the new session, a summary supplied by the user, and undo.

use std::fs;

use insta::assert_snapshot;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{RunOutput, at_home, command};

fn home() -> TestHome {
    let home = TestHome::new();
    let output = "a line of output ".repeat(400);
    home.session(
        "s",
        &format!(
            r#"
            u1        user   "what is there?"
            a1 <- u1  reply  m1 tool t1 Bash {{"command":"ls"}}
            r1 <- a1  result t1 "{output}"
            a2 <- r1  reply  m2 text "One file."
            u2 <- a2  user   "and now?"
            a3 <- u2  reply  m3 text "Still one."
            "#
        ),
    );
    home
}

#[test]
fn the_summary_is_printed_and_nothing_is_written() {
    let home = home();
    let run = at_home(&home, &["edit", "compress", "last", "--print"]);
    assert_snapshot!(run.out.split_once("details.\n").unwrap().1.trim(), @r#"
    <turn number="1">
    <asked>
    what is there?
    </asked>
    <done>
    - 1 successful command
    </done>
    <answered>
    One file.
    </answered>
    </turn>
    "#);
    assert_eq!(at_home(&home, &["list", "--json"]).json_lines().len(), 1);
    let wrong = at_home(&home, &["edit", "compress", "last", "--bands", "tiny:10"]);
    assert!(wrong.code == 2 && wrong.err.contains("bare, short or long"), "{wrong}");
}

#[test]
fn a_compressed_session_replays_its_summary_and_last_turn() {
    let home = home();
    let run = at_home(&home, &["edit", "compress", "last", "--apply", "--json"]).json();
    assert_eq!(run["operation"], "compress");
    assert!(run["tokens_after"].as_u64() < run["tokens_before"].as_u64());
    let target = run["target"].as_str().unwrap();
    assert_eq!(at_home(&home, &["check", target]).code, 0);
    let replay = at_home(&home, &["replay", target, "--json"]).json();
    assert_eq!(replay["messages"].as_array().unwrap().len(), 2);
    assert_eq!(replay["messages"][0]["content"][1]["text"], "and now?");
}

#[test]
fn a_supplied_summary_is_applied_in_place_and_undone() {
    let home = home();
    let id = session_uuid("s");
    let log = home.root().join(format!("projects/-home-ada-loom/{id}.jsonl"));
    let before = fs::read(&log).unwrap();
    let summary = home.file("summary.md", "It was about a file.");
    let summary = summary.to_str().unwrap();
    let run =
        at_home(&home, &["edit", "compress", &id, "--summary", summary, "--in-place", "--apply", "--json"])
            .json();
    let replay = at_home(&home, &["replay", &id, "--json"]).json();
    let text = replay["messages"][0]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.trim_end(), "It was about a file.");
    assert!(at_home(&home, &["show", &id]).out.contains("what is there?"), "the log still holds it");
    assert_eq!(at_home(&home, &["op", "undo", "--apply", run["receipt"].as_str().unwrap()]).code, 0);
    assert_eq!(fs::read(&log).unwrap(), before);
}

#[test]
fn a_model_writes_the_summary_of_the_older_part() {
    let home = home();
    let api = ScriptedApi::start(vec![
        ScriptedReply::text("<analysis>a</analysis><summary>The model saw one file.</summary>"),
        ScriptedReply::error(400, "invalid_request_error", "no such model"),
    ]);
    let id = session_uuid("s");
    let compress = |args: &[&str]| {
        let args = ["edit", "compress", &id, "--model=opus"].into_iter().chain(args.iter().copied());
        RunOutput::of(
            command(args)
                .env("CLAUDE_CONFIG_DIR", home.root())
                .env("ANTHROPIC_BASE_URL", api.url())
                .env("ANTHROPIC_API_KEY", "sk-test")
                .env("CLAUDE_CODE_MAX_RETRIES", "1"),
        )
    };
    let run = compress(&["--apply", "--json"]).json();
    let replay = at_home(&home, &["replay", run["target"].as_str().unwrap(), "--json"]).json();
    let text = replay["messages"][0]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.trim_end(), "The model saw one file.");
    let sent = &api.requests()[0].body;
    let messages = sent["messages"].to_string();
    assert!(messages.contains("what is there?") && messages.contains("a line of output"), "{messages}");
    assert!(!messages.contains("and now?"), "the kept part is not sent: {messages}");
    assert!(sent["model"].as_str().unwrap().contains("opus"));
    let failed = compress(&["--apply"]);
    assert!(failed.code == 2 && failed.err.contains("nothing was changed"), "{failed}");
}
