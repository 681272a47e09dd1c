//! Tests of the version-dependent replay rules: the request of the last version without a rule, and that of
//! the first version with it.

use std::fmt::Write as _;

use insta::assert_snapshot;
use threadline_session::ClientVersion;

use crate::render::session;

/// Renders the messages that a version sends for a log, with the identifying fields of each block.
fn sent(version: &str, notation: &str) -> String {
    let session = session(notation);
    let version: ClientVersion = version.parse().unwrap();
    let Some(messages) = session.replay(version) else { return "refused\n".into() };
    let mut out = String::new();
    for message in messages {
        let mut json = String::new();
        message.write_json(&mut json);
        let message: serde_json::Value = serde_json::from_str(&json).unwrap();
        for block in message["content"].as_array().unwrap() {
            let about = match block["type"].as_str().unwrap() {
                "text" => block["text"].to_string(),
                "tool_use" => format!("{} {} {}", block["id"], block["name"], block["input"]),
                "tool_result" => format!("{} {}", block["tool_use_id"], block["content"]),
                _ => String::new(),
            };
            let role = message["role"].as_str().unwrap();
            let line = format!("{role} {} {about}", block["type"].as_str().unwrap());
            writeln!(out, "{}", line.trim_end()).unwrap();
        }
    }
    out
}

/// Renders the messages that two versions send for the same log.
fn both(before: &str, since: &str, notation: &str) -> String {
    let (old, new) = (sent(before, notation), sent(since, notation));
    assert_ne!(old, new, "the rule makes no difference");
    format!("{before}\n{old}{since}\n{new}")
}

#[test]
fn newest_leaf() {
    let rewound = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "First."
u3 <- a1  user   "late" @10:00:09
u2 <- a1  user   "early" @10:00:05
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", rewound), @r#"
    2.1.20
    user text "go"
    assistant text "First."
    user text "late"
    2.1.197
    user text "go"
    assistant text "First."
    user text "early"
    "#);
}

#[test]
fn of_equal_timestamps_the_oldest_versions_use_the_first() {
    let command = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "First."
c1 <- a1  user   "caution" meta @10:00:05
c2 <- c1  user   "command" @10:00:05
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", command), @r#"
    2.1.20
    user text "go"
    assistant text "First."
    user text "caution"
    2.1.197
    user text "go"
    assistant text "First."
    user text "caution\n"
    user text "command"
    "#);
}

#[test]
fn recover_sibling_lines() {
    let parallel = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
a2 <- a1  reply  m1 tool t2 Bash
r1 <- a1  result t1 "one"
r2 <- a2  result t2 "two"
a3 <- r2  reply  m2 text "Done."
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", parallel), @r#"
    2.1.20
    user text "go"
    assistant tool_use "t2" "Bash" {}
    user tool_result "t2" "two"
    assistant text "Done."
    2.1.197
    user text "go"
    assistant tool_use "t1" "Bash" {}
    assistant tool_use "t2" "Bash" {}
    user tool_result "t1" "one"
    user tool_result "t2" "two"
    assistant text "Done."
    "#);
}

#[test]
fn recover_attachments() {
    let hooks = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
a2 <- a1  reply  m1 tool t2 Bash
r1 <- a1  result t1 "one"
h1 <- r1  attach file {"content":{"type":"image","file":{"type":"image/png","base64":"AAAA"}}}
r2 <- a2  result t2 "two"
a3 <- r2  reply  m2 text "Done."
"#;
    assert_snapshot!(both("2.1.250", "2.1.300", hooks), @r#"
    2.1.250
    user text "go"
    assistant tool_use "t1" "Bash" {}
    assistant tool_use "t2" "Bash" {}
    user tool_result "t1" "one"
    user tool_result "t2" "two"
    assistant text "Done."
    2.1.300
    user text "go"
    assistant tool_use "t1" "Bash" {}
    assistant tool_use "t2" "Bash" {}
    user tool_result "t1" "one"
    user tool_result "t2" "two"
    user image
    assistant text "Done."
    "#);
}

#[test]
fn bridge_missing_parent() {
    let gap = r#"
u1           user   "go"
a1 <- u1     reply  m1 text "First."
u2 <- ?gone  user   "on"
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", gap), @r#"
    2.1.20
    user text "on"
    2.1.197
    user text "go"
    assistant text "First."
    user text "on"
    "#);
}

#[test]
fn preserved_tail() {
    let kept = r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto {"preservedSegment":{"headUuid":"a1","anchorUuid":"c1","tailUuid":"a1"}}
c1 <- b1  compact-summary "In short."
u2 <- a1  user   "on"
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", kept), @r#"
    2.1.20
    user text "long"
    assistant text "work"
    user text "on"
    2.1.197
    user text "In short."
    assistant text "work"
    user text "on"
    "#);
}

#[test]
fn accept_missing_content() {
    let hollow = r#"
raw {"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":null}}
a1 <- ?u1  reply  m1 text "What?"
"#;
    assert_snapshot!(both("2.1.250", "2.1.300", hollow), @r#"
    2.1.250
    refused
    2.1.300
    assistant text "What?"
    "#);
}

#[test]
fn local_commands() {
    let command = r#"
u1        user   "go"
s1 <- u1  system local_command "<command-name>/cost</command-name>"
u2 <- s1  user   "on"
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", command), @r#"
    2.1.20
    user text "go\n"
    user text "on"
    2.1.197
    user text "go\n"
    user text "<command-name>/cost</command-name>\n"
    user text "on"
    "#);
}

#[test]
fn calls_last() {
    let mixed = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
a2 <- a1  reply  m1 text "And."
r1 <- a2  result t1 "ok"
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", mixed), @r#"
    2.1.20
    user text "go"
    assistant tool_use "t1" "Bash" {}
    assistant text "And."
    user tool_result "t1" "ok"
    2.1.197
    user text "go"
    assistant text "And."
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "ok"
    "#);
}

#[test]
fn drop_orphan_results() {
    let orphan = r#"
u1        user   [result t9 "left over", text "go"]
a1 <- u1  reply  m1 text "Fine."
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", orphan), @r#"
    2.1.20
    user tool_result "t9" "left over"
    user text "go"
    assistant text "Fine."
    2.1.197
    user text "go"
    assistant text "Fine."
    "#);
}

#[test]
fn drop_fallback() {
    let fallback = r#"
u1        user   "go"
a1 <- u1  reply  m1 fallback claude-fable-5 claude-opus-4-8
a2 <- a1  reply  m1 text "Fine."
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", fallback), @r#"
    2.1.20
    user text "go"
    assistant fallback
    assistant text "Fine."
    2.1.197
    user text "go"
    assistant text "Fine."
    "#);
}

#[test]
fn need_timestamp() {
    assert_snapshot!(both("2.1.20", "2.1.197", r#"u1 user "go" -timestamp"#), @r#"
    2.1.20
    user text "go"
    2.1.197
    refused
    "#);
}

#[test]
fn renamed_tools() {
    let task = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"look"}
r1 <- a1  result t1 "found"
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", task), @r#"
    2.1.20
    user text "go"
    assistant tool_use "t1" "Task" {"prompt":"look"}
    user tool_result "t1" "found"
    2.1.197
    user text "go"
    assistant tool_use "t1" "Agent" {"prompt":"look"}
    user tool_result "t1" "found"
    "#);
}

#[test]
fn strip_exit_plan_mode() {
    let plan = r##"
u1        user   "plan"
a1 <- u1  reply  m1 tool t1 ExitPlanMode {"plan":"# Plan","allowedPrompts":[]}
r1 <- a1  result t1 "approved"
"##;
    assert_snapshot!(both("2.1.20", "2.1.197", plan), @r##"
    2.1.20
    user text "plan"
    assistant tool_use "t1" "ExitPlanMode" {"allowedPrompts":[]}
    user tool_result "t1" "approved"
    2.1.197
    user text "plan"
    assistant tool_use "t1" "ExitPlanMode" {"allowedPrompts":[],"plan":"# Plan"}
    user tool_result "t1" "approved"
    "##);
}

#[test]
fn drop_foreign_thinking() {
    let models = r#"
u1        user   "go"
a1 <- u1  reply  m1 thinking "Hm." model=claude-sonnet-4-5
a2 <- a1  reply  m1 text "One." model=claude-sonnet-4-5
u2 <- a2  user   "on"
b1 <- u2  reply  m2 text "Two." model=claude-opus-4-5
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", models), @r#"
    2.1.20
    user text "go"
    assistant thinking
    assistant text "One."
    user text "on"
    assistant text "Two."
    2.1.197
    user text "go"
    assistant text "One."
    user text "on"
    assistant text "Two."
    "#);
}

#[test]
fn drop_advisor() {
    let advised = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Let me ask."
a2 <- a1  reply  m1 {"type":"server_tool_use","id":"s1","name":"advisor","input":{}}
a3 <- a2  reply  m1 {"type":"advisor_tool_result","tool_use_id":"s1","content":{"type":"advisor_result","text":"Do."}}
a4 <- a3  reply  m1 text "So."
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", advised), @r#"
    2.1.20
    user text "go"
    assistant text "Let me ask."
    assistant server_tool_use
    assistant advisor_tool_result
    assistant text "So."
    2.1.197
    user text "go"
    assistant text "Let me ask."
    assistant text "So."
    "#);
}

#[test]
fn strip_send_message() {
    let message = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 SendMessage {"to":"mate","message":"hi","extra":1,"type":"message","recipient":"mate","content":"hi"}
r1 <- a1  result t1 "sent"
"#;
    assert_snapshot!(both("2.1.197", "2.1.220", message), @r#"
    2.1.197
    user text "go"
    assistant tool_use "t1" "SendMessage" {"content":"hi","extra":1,"message":"hi","recipient":"mate","to":"mate","type":"message"}
    user tool_result "t1" "sent"
    2.1.220
    user text "go"
    assistant tool_use "t1" "SendMessage" {"extra":1,"message":"hi","to":"mate"}
    user tool_result "t1" "sent"
    "#);
}

#[test]
fn the_input_of_an_old_send_message_is_unchanged() {
    let message = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 SendMessage {"type":"message","recipient":"mate","content":"hi"}
r1 <- a1  result t1 "sent"
"#;
    assert_eq!(sent("2.1.197", message), sent("2.1.325", message));
}

#[test]
fn task_notice_reminders() {
    let notice = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Started."
n1 <- a1  user   "<task-notification>done</task-notification>" +{"origin":{"kind":"task-notification"}}
a2 <- n1  reply  m2 text "It ended."
"#;
    assert_snapshot!(both("2.1.197", "2.1.250", notice), @r#"
    2.1.197
    user text "go"
    assistant text "Started."
    user text "<task-notification>done</task-notification>"
    assistant text "It ended."
    2.1.250
    user text "go"
    assistant text "Started."
    assistant text "It ended."
    "#);
}

const KILLED: &str = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Running."
a2 <- a1  reply  m1 tool t1 Bash
a3 <- a2  reply  m1 tool t2 Bash
r1 <- a2  result t1 "one"
"#;

#[test]
fn keep_interrupted_calls() {
    assert_snapshot!(both("2.1.250", "2.1.300", KILLED), @r#"
    2.1.250
    user text "go"
    assistant text "Running."
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "one"
    2.1.300
    user text "go"
    assistant text "Running."
    assistant tool_use "t1" "Bash" {}
    assistant tool_use "t2" "Bash" {}
    user tool_result "t1" "one"
    user tool_result "t2" "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. Check whether it took effect before relying on it or running it again.]"
    "#);
}

#[test]
fn calls_followed_by_a_prompt_are_not_kept() {
    let resumed = format!("{KILLED}u2 <- r1  user \"on\"\n");
    assert_eq!(sent("2.1.250", &resumed), sent("2.1.325", &resumed));
}

/// Returns a log in which a rendered reminder follows a result, for the given model.
fn reminded(model: &str, result: &str, attachment: &str) -> String {
    format!(
        r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash model={model}
r1 <- a1  result t1 {result}
h1 <- r1  {attachment} +{{"rendered":[{{"content":"<system-reminder>\nlook\n</system-reminder>"}}],"renderedRole":"system"}}
a2 <- h1  reply  m2 text "Done." model={model}
"#
    )
}

#[test]
fn fold_reminders() {
    let hooks = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash model=claude-sonnet-4-5
r1 <- a1  result t1 "ok"
h1 <- r1  attach hook_additional_context {"content":["one","two"],"hookName":"PostToolUse:Bash"}
h2 <- h1  attach hook_stopped_continuation {"message":"enough","hookName":"PostToolUse:Bash"}
h3 <- h2  attach budget_usd {"used":0.5,"total":2,"remaining":1.5}
h4 <- h3  attach total_tokens_reminder {"text":"9 left"}
h5 <- h4  attach task_reminder {"content":[]}
a2 <- h5  reply  m2 text "Done." model=claude-sonnet-4-5
"#;
    assert_snapshot!(both("2.1.20", "2.1.197", hooks), @r#"
    2.1.20
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "ok"
    assistant text "Done."
    2.1.197
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "ok\n\n<system-reminder>\nPostToolUse:Bash hook additional context: one\ntwo\n</system-reminder>\n\n<system-reminder>\nPostToolUse:Bash hook stopped continuation: enough\n</system-reminder>\n\n<system-reminder>\nUSD budget: $0.5/$2; $1.5 remaining\n</system-reminder>\n\n<system-reminder>\n9 left\n</system-reminder>"
    assistant text "Done."
    "#);
    let newer = hooks.replace("claude-sonnet-4-5", "claude-opus-4-8");
    assert_eq!(sent("2.1.20", &newer), sent("2.1.325", &newer));
}

#[test]
fn rendered_reminders() {
    let texts = reminded("claude-sonnet-4-5-20250929", "\"ok \\t\"", "attach date");
    assert_snapshot!(both("2.1.250", "2.1.300", &texts), @r#"
    2.1.250
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "ok \t"
    assistant text "Done."
    2.1.300
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "ok\n\n<system-reminder>\nlook\n</system-reminder>"
    assistant text "Done."
    "#);
}

#[test]
fn fold_into_blocks() {
    let blocks = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash model=claude-sonnet-4-5
r1 <- a1  result t1 [text "ok"]
h1 <- r1  attach total_tokens_reminder {"text":"9 left"}
a2 <- h1  reply  m2 text "Done." model=claude-sonnet-4-5
"#;
    assert_snapshot!(both("2.1.250", "2.1.300", blocks), @r#"
    2.1.250
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" [{"text":"ok","type":"text"}]
    assistant text "Done."
    2.1.300
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" [{"text":"ok\n","type":"text"},{"text":"<system-reminder>\n9 left\n</system-reminder>","type":"text"}]
    assistant text "Done."
    "#);
}

#[test]
fn newer_models_get_reminders_in_separate_messages() {
    let newer = reminded("claude-opus-5-5", "\"ok\"", "attach date");
    assert_eq!(sent("2.1.250", &newer), sent("2.1.300", &newer));
}

#[test]
fn queued_prompt_text() {
    let queued = r#"attach queued_command {"prompt":"look","origin":{"kind":"human"}}"#;
    let queued = reminded("claude-opus-5-5", "\"ok\"", queued);
    assert_snapshot!(both("2.1.250", "2.1.300", &queued), @r#"
    2.1.250
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "ok"
    assistant text "Done."
    2.1.300
    user text "go"
    assistant tool_use "t1" "Bash" {}
    user tool_result "t1" "ok"
    user text "look"
    assistant text "Done."
    "#);
}

#[test]
fn tool_loaded_text() {
    let loaded = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 ToolSearch
r1 <- a1  result t1 [ref WebFetch]
a2 <- r1  reply  m2 text "Loaded."
"#;
    assert_snapshot!(both("2.1.300", "2.1.325", loaded), @r#"
    2.1.300
    user text "go"
    assistant tool_use "t1" "ToolSearch" {}
    user tool_result "t1" [{"tool_name":"WebFetch","type":"tool_reference"}]
    assistant text "Loaded."
    2.1.325
    user text "go"
    assistant tool_use "t1" "ToolSearch" {}
    user tool_result "t1" [{"tool_name":"WebFetch","type":"tool_reference"}]
    user text "Tool loaded."
    assistant text "Loaded."
    "#);
    let gone = loaded.replace("WebFetch", "mcp__gone__tool");
    assert_eq!(sent("2.1.300", &gone), sent("2.1.325", &gone));
    let record = r#"d1 <- u1  attach deferred_tools_record {"entries":[{"name":"mcp__gone__tool","defer_loading":true}]}"#;
    let recorded = gone.replace("a1 <- u1", &format!("{record}\na1 <- d1"));
    assert_ne!(sent("2.1.300", &recorded), sent("2.1.325", &recorded));
}

#[test]
fn strip_loaded_exit_plan_mode() {
    let planned = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 ToolSearch
r1 <- a1  result t1 [ref ExitPlanMode]
d1 <- r1  attach deferred_tools_record {"entries":[{"name":"ExitPlanMode","defer_loading":true}]}
a2 <- d1  reply  m2 tool t2 ExitPlanMode {"plan":"Weave.","allowedPrompts":[]}
r2 <- a2  result t2 "ok"
"#;
    assert!(sent("2.1.328", planned).contains(r#""ExitPlanMode" {"allowedPrompts":[]}"#));
    let with_plan = r#""ExitPlanMode" {"allowedPrompts":[],"plan":"Weave."}"#;
    assert!(sent("2.1.300", planned).contains(with_plan), "the tool is not offered again");
    for other in [
        planned.replace("[ref ExitPlanMode]", "[ref WebFetch]"),
        planned.replace(r#","defer_loading":true"#, ""),
        planned.replace(r#""name":"ExitPlanMode""#, r#""name":"WebFetch""#),
    ] {
        assert!(sent("2.1.328", &other).contains(with_plan), "{other}");
    }
}

#[test]
fn hide_display_only() {
    let shown = r#"
u1        user   "go"
s1 <- u1  system local_command "<local-command-stdout>bars</local-command-stdout>" {"isDisplayOnly":true}
u2 <- s1  user   "on"
"#;
    assert_snapshot!(both("2.1.300", "2.1.325", shown), @r#"
    2.1.300
    user text "go\n"
    user text "<local-command-stdout>bars</local-command-stdout>\n"
    user text "on"
    2.1.325
    user text "go\n"
    user text "on"
    "#);
}
