//! Transcripts: the items of each kind of line.

use std::cell::Cell;

use threadline_entry::ToolPattern;
use threadline_session::{AgentIndex, Session, SessionFamily, Spawn, Subagent};
use threadline_testkit::log;
use threadline_view::{
    AgentView, CallView, DetailLevel, ItemBody, LineNotes, Transcript, TranscriptBuilder, TranscriptEnd,
    TranscriptFilter, TranscriptItem, TurnView, layout, outline, transcript,
};

fn of(notation: &str) -> Transcript {
    transcript(&SessionFamily::new(Session::from_bytes(&log(notation)), Vec::new()), &|_| None)
}

fn call_of(item: &TranscriptItem) -> Option<&CallView> {
    match &item.body {
        ItemBody::Call(call) => Some(call),
        _ => None,
    }
}

/// Renders every item in one line.
fn rendered(transcript: &Transcript) -> String {
    let mut out = String::new();
    for turn in &transcript.turns {
        out.push_str(&format!("turn {} {}\n", turn.number, turn.anchor));
        for item in &turn.items {
            let body = match &item.body {
                ItemBody::Input { input, text, files, context } => {
                    format!("{} {text:?} files={} context={context:?}", input.name(), files.len())
                }
                ItemBody::Text(text) => format!("text {text:?}"),
                ItemBody::Thinking(text) => format!("thinking {text:?}"),
                ItemBody::Call(call) => format!("call {} {}", call.name, call.outcome.name()),
                ItemBody::Compaction { trigger, dropped, .. } => {
                    format!("compaction {trigger:?} dropped={dropped}")
                }
                ItemBody::Link { label, url } => format!("link {label} {url}"),
                ItemBody::Error { label, text } => format!("trouble {label}: {text}"),
                ItemBody::Event { label, text } => format!("event {label}: {text}"),
                ItemBody::Unknown { kind, raw } => format!("unknown {kind:?} {raw}"),
            };
            out.push_str(&format!("  {} {body}\n", item.anchor));
        }
    }
    out
}

const ALL: &str = r#"
u1        user   [text "<ide_selection>lines 1 to 2</ide_selection>", text "what is this?", image png]
a1 <- u1  reply  m1 [thinking "", text "A loom."]
u2 <- a1  user   "<command-name>/model</command-name>\n<command-args>opus</command-args>"
u3 <- u2  user   "<local-command-stdout>Set model</local-command-stdout>"
u4 <- u3  user   "<bash-input>ls</bash-input>"
u5 <- u4  user   "<bash-stdout>a.rs</bash-stdout><bash-stderr></bash-stderr>"
u6 <- u5  user   "go on"
e1 <- u6  system api_error {"retryAttempt":1,"maxRetries":10,"error":{"status":529}}
a2 <- e1  reply  m2 tool t1 Bash {"command":"ls"}
u7 <- a2  user   [text "[Request interrupted by user for tool use]"]
pr-link 7 ada/loom
entry hologram {"x":1}
raw // a comment
b1 <- u7  boundary auto {"postTokens":900}
c1 <- b1  compact-summary "Summary."
q1 <- c1  attach queued_command {"prompt":"and this","commandMode":"prompt"}
h1 <- q1  attach hook_success {"hookName":"Stop:x","hookEvent":"Stop","content":"fine"}
u8 <- h1  user   "<task-notification><task-id>b1</task-id><summary>Done</summary></task-notification>"
"#;

#[test]
fn every_kind_of_line_is_rendered() {
    insta::assert_snapshot!(rendered(&of(ALL)), @r#"
    turn 1 m1
      m1 ide_selection "what is this?" files=1 context=["lines 1 to 2"]
      m2 thinking ""
      m2.2 text "A loom."
      m3 slash_command "/model opus" files=0 context=[]
      m4 command_output "Set model" files=0 context=[]
      m5 bash_input "!ls" files=0 context=[]
      m6 bash_output "a.rs" files=0 context=[]
    turn 2 m7
      m7 prompt "go on" files=0 context=[]
      m8 trouble API error: status 529, try 1 of 10
      m9 call Bash missing
      m10 interrupt "[Request interrupted by user for tool use]" files=0 context=[]
      m11 link pull request ada/loom #7 https://github.com/ada/loom/pull/7
      m12 unknown Some("hologram") {"type":"hologram","sessionId":"s1","x":1}
      m13 unknown None // a comment
      m14 compaction Some("auto") dropped=9
      m16 queued_prompt "and this" files=0 context=[]
      m17 event hook: Stop:x: fine
    turn 3 m18
      m18 task_notification "Done" files=0 context=[]
    "#);
}

#[test]
fn editor_context_before_a_prompt_is_part_of_its_turn() {
    insta::assert_snapshot!(rendered(&of(r#"
u1        user   [text "<ide_opened_file>a.rs is open</ide_opened_file>"]
u2 <- u1  user   [text "what is this?"]
a1 <- u2  reply  m1 text "A loom."
u3 <- a1  user   [text "<ide_opened_file>b.rs is open</ide_opened_file>"]
"#)), @r#"
    turn 1 m2
      m1 event editor: a.rs is open
      m2 prompt "what is this?" files=0 context=[]
      m3 text "A loom."
    turn 2 m4
      m4 event editor: b.rs is open
    "#);
}

#[test]
fn notifications_are_rendered_without_tags() {
    insta::assert_snapshot!(rendered(&of(r#"
u1        user   "<task-notification>\n<task-id>k1</task-id>\n<summary>Agent \"dye\" finished</summary>\n<note>n</note>\n<result>It is &lt;b&gt; &amp; blue.</result>\n<usage><total_tokens>95820</total_tokens><tool_uses>28</tool_uses><duration_ms>148166</duration_ms></usage>\n</task-notification>\nRead the output file: /tmp/k1"
u2 <- u1  user   "<teammate-message teammate_id=\"weaver\" summary=\"done\">\nLeft.\n</teammate-message>\n\n<teammate-message teammate_id=\"dyer\">\nBlue.\n</teammate-message>"
u3 <- u2  user   "<local-command-stdout>out</local-command-stdout><local-command-stderr>oh</local-command-stderr>"
"#)), @r#"
    turn 1 m2
      m1 task_notification "Agent \"dye\" finished\n28 calls · 96k tokens · 2 min 28 s\n\nIt is <b> & blue.\n\nRead the output file: /tmp/k1" files=0 context=[]
      m2 teammate_message "weaver: done\n\nLeft.\n\ndyer: Blue." files=0 context=[]
      m3 command_output "out\noh" files=0 context=[]
    "#);
}

#[test]
fn lines_without_an_id_or_a_message_are_rendered() {
    insta::assert_snapshot!(rendered(&of(r#"
raw {"type":"user","message":{"content":"first"}}
raw {"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"and this"}}
raw {"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"<task-notification><task-id>k1</task-id><status>completed</status></task-notification>"}}
raw {"type":"user","message":"odd"}
"#)), @r#"
    turn 1 m1
      m1 prompt "first" files=0 context=[]
      m2 queued_prompt "and this" files=0 context=[]
      m3 queued_notification "Task k1 completed" files=0 context=[]
    turn 2 m4
      m4 unknown None {"type":"user","message":"odd"}
    "#);
}

#[test]
fn a_branch_includes_the_lines_before_its_prompt() {
    let transcript = of(r#"
h1        progress hook_progress {"hookName":"Start"}
u1 <- h1  user   "left behind"
a1 <- u1  reply  m1 text "one"
u2        user   "instead"
a2 <- u2  reply  m2 text "two"
last-prompt "instead" leaf a2
"#);
    let anchors = transcript.end.branches[0].turns[0].items.iter().map(|item| &*item.anchor);
    assert_eq!(anchors.collect::<Vec<_>>(), ["m2", "m1", "m3"]);
}

#[test]
fn a_turn_continued_by_a_notification_is_not_open() {
    let transcript = of(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a1  result t1 "a.rs"
u2 <- r1  user   "<task-notification><summary>Done</summary></task-notification>"
a2 <- u2  reply  m2 tool t2 Bash {"command":"ls"}
r2 <- a2  result t2 "a.rs"
u3 <- r2  user   "and?"
"#);
    let open: Vec<bool> = transcript.turns.iter().map(|turn| turn.open).collect();
    assert_eq!(open, [false, true, true]);
}

#[test]
fn a_session_is_named_after_its_first_prompt() {
    let heading = |notation: &str| of(notation).header.heading().map(str::to_owned);
    let command = "u1 user \"<command-name>/weave</command-name><command-args>the cloth</command-args>\"";
    let agent = "s1 user \"Look for knots.\" sidechain";
    assert_eq!(heading(&format!("{command}\n{agent}")).as_deref(), Some("/weave the cloth"));
    assert_eq!(heading(&format!("{command}\nu2 <- u1 user \"hello\"")).as_deref(), Some("hello"));
    assert_eq!(heading(agent).as_deref(), Some("Look for knots."));
    let left = "u1 user \"left\"\na1 <- u1 reply m1 text \"one\"\nu2 user \"instead\"\na2 <- u2 reply m2 text \"two\"\nlast-prompt \"instead\" leaf a2";
    assert_eq!(heading(left).as_deref(), Some("instead"));
    let message =
        "u1 user \"<teammate-message teammate_id=\\\"lead\\\" summary=\\\"weave\\\">Go.</teammate-message>\"";
    assert_eq!(heading(message).as_deref(), Some("lead: weave"));
}

#[test]
fn a_message_names_its_recipient_and_an_answered_agent_is_finished() {
    let transcript = of(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Agent {"description":"look for knots","prompt":"Look."}
r1 <- a1  result t1 [text "Two."] {"status":"completed","agentId":"k1","content":[{"type":"text","text":"Two."}]}
a2 <- r1  reply  m2 tool t2 SendMessage {"to":"k1","message":"Go on."}
r2 <- a2  result t2 "ok" {"success":true,"resumedAgentId":"k1"}
a3 <- r2  reply  m3 tool t3 SendMessage {"to":"k2","message":"And you."}
"#);
    let calls = transcript.turns[0].items.iter().filter_map(|item| match &item.body {
        ItemBody::Call(call) => Some(format!("{} | {}", call.subject, call.gist)),
        _ => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), ["look for knots | ", "look for knots | Go on.", "k2 | And you."]);
}

#[test]
fn levels_and_filters_select_items() {
    let count = |filter: TranscriptFilter| {
        let mut transcript = of(ALL);
        filter.apply(&mut transcript);
        transcript.turns.iter().map(|turn| turn.items.len()).sum::<usize>()
    };
    let levels = [DetailLevel::Prompts, DetailLevel::Chat, DetailLevel::Tools, DetailLevel::Full]
        .map(|level| count(TranscriptFilter::up_to_level(level)));
    assert_eq!(levels, [6, 11, 17, 18]);
    assert_eq!(
        count(TranscriptFilter { errors_only: true, ..TranscriptFilter::up_to_level(DetailLevel::Full) }),
        1
    );
    assert_eq!(
        count(TranscriptFilter {
            tools: vec![ToolPattern::new("Bash")],
            ..TranscriptFilter::up_to_level(DetailLevel::Full)
        }),
        1
    );
    for level in [DetailLevel::Prompts, DetailLevel::Chat] {
        let all = TranscriptFilter::up_to_level(level);
        assert_eq!(count(TranscriptFilter { errors_only: true, ..all.clone() }), 1, "hidden by the level");
        assert_eq!(count(TranscriptFilter { tools: vec![ToolPattern::new("ba*")], ..all }), 1);
    }
    assert_eq!(
        count(TranscriptFilter {
            role: Some("assistant".to_owned()),
            ..TranscriptFilter::up_to_level(DetailLevel::Full)
        }),
        3
    );
}

#[test]
fn calls_of_a_tool_are_found_in_sub_agents() {
    let main = log(r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Agent {"description":"look","prompt":"Look."}
r1 <- a1  result t1 [text "Done."] {"status":"completed","agentId":"k1"}
a2 <- r1  reply  m2 tool t2 Bash {"command":"true"}
r2 <- a2  result t2 "ok"
"#);
    let agent = log(r#"
u1        user   "Look."
a1 <- u1  reply  m1 tool t1 Grep {"pattern":"loom"}
r1 <- a1  result t1 "none"
a2 <- r1  reply  m2 text "Nothing."
"#);
    let family = SessionFamily::from_bytes(&main, [("k1".to_owned(), agent)]);
    let filter = TranscriptFilter {
        tools: vec![ToolPattern::new("grep")],
        ..TranscriptFilter::up_to_level(DetailLevel::Tools)
    };
    let mut found = transcript(&family, &|_| None);
    filter.apply(&mut found);
    let [item] = &found.turns[0].items[..] else { panic!("{found:?}") };
    let ItemBody::Call(call) = &item.body else { panic!("{item:?}") };
    assert_eq!((&*call.name, call.agents[0].turns[0].items.len()), ("Agent", 1));
    let mut lines = Vec::new();
    threadline_view::wire::show(&found, &mut |object| {
        if !object.is_call_around(&filter) {
            lines.push(serde_json::to_string(&object).unwrap());
        }
    });
    let lines = lines.concat();
    assert!(lines.contains(r#""tool":"Grep""#) && !lines.contains(r#""tool":"Agent""#), "{lines}");
}

#[test]
fn a_call_with_an_error_in_a_nested_agent_is_an_error() {
    let spawn = |id: &str| {
        log(&format!(
            r#"
u1        user   "go"
a1 <- u1  reply  m-{id} tool t-{id} Agent {{"description":"look","prompt":"Look."}}
r1 <- a1  result t-{id} [text "Done."] {{"status":"completed","agentId":"{id}"}}
"#
        ))
    };
    let failed = r#"
u1        user   "Look."
a1 <- u1  reply  m1 tool t1 Bash {"command":"false"}
r1 <- a1  result t1 "Exit code 1" error
"#;
    let agents = [("k1".to_owned(), spawn("k2")), ("k2".to_owned(), log(failed))];
    let mut transcript = transcript(&SessionFamily::from_bytes(&spawn("k1"), agents), &|_| None);
    assert!(transcript.end.agents.is_empty(), "{transcript:?}");
    TranscriptFilter { errors_only: true, ..TranscriptFilter::up_to_level(DetailLevel::Full) }
        .apply(&mut transcript);
    assert!(rendered(&transcript).contains("call Agent"), "{transcript:?}");
}

#[test]
fn a_rewind_becomes_a_branch() {
    let transcript = of(r#"
u1        user   "first"
a1 <- u1  reply  m1 text "one"
u2 <- a1  user   "left behind"
a2 <- u2  reply  m2 text "two"
u3 <- a1  user   "instead"
a3 <- u3  reply  m3 text "three"
last-prompt "instead" leaf a3
"#);
    assert_eq!(transcript.turns.len(), 2);
    assert_eq!(transcript.end.branches.len(), 1);
    assert_eq!(transcript.end.branches[0].fork.as_deref(), Some("m2"));
    assert_eq!(transcript.end.branches[0].turns[0].items.len(), 2);
}

#[test]
fn time_is_split_by_activity() {
    let transcript = of(r#"
u1        user   "go" @10:00:00
a1 <- u1  reply  m1 tool t1 Bash {"command":"a"} @10:00:02
a2 <- a1  reply  m1 tool t2 Bash {"command":"b"} @10:00:03
r1 <- a1  result t1 "x" @10:00:08
r2 <- a2  result t2 "y" @10:00:06
a3 <- r2  reply  m2 text "done" @10:00:10
u2 <- a3  user   "more" @10:05:10
"#);
    let timing = transcript.turns[0].timing;
    assert_eq!((timing.tools, timing.model, timing.idle), (6000, 4000, 0));
    assert_eq!(transcript.turns[1].timing.idle, 300_000);
    let line = &outline(&transcript.turns)[0];
    assert_eq!((&*line.title, line.calls, line.errors), ("go", 2, 0));
}

#[test]
fn real_sessions_render_at_every_level() {
    for path in threadline_testkit::shared_logs() {
        let session = Session::from_bytes(&std::fs::read(&path).unwrap());
        let family = SessionFamily::new(session, Vec::new());
        for level in [DetailLevel::Prompts, DetailLevel::Chat, DetailLevel::Tools, DetailLevel::Full] {
            let mut transcript = transcript(&family, &|_| None);
            TranscriptFilter::up_to_level(level).apply(&mut transcript);
            outline(&transcript.turns);
        }
    }
}

#[test]
fn a_turn_is_titled_after_its_plan() {
    let view = of(r##"
u1        user   "Implement the following plan:\n\n# Plan: a faster loom\n\n1. warp"
a1 <- u1  reply  m1 text "Done."
u2 <- a1  user   "Implement the following plan:"
u3 <- u2  user   [image png]
"##);
    let titles: Vec<String> = outline(&view.turns).into_iter().map(|line| line.title).collect();
    assert_eq!(titles, ["Plan: a faster loom", "Implement the following plan:", "[image]"]);
    assert_eq!(view.header.heading(), Some("Plan: a faster loom"));
}

#[test]
fn a_session_that_begins_with_a_command_is_named_after_it() {
    let heading = |notation: &str| of(notation).header.heading().unwrap().to_owned();
    let asked = r#"
u1        user   "<command-name>/model</command-name>\n<command-args>opus</command-args>"
u2 <- u1  user   "<local-command-stdout>Set model</local-command-stdout>"
u3 <- u2  user   "<command-message>weave</command-message>\n<command-name>/weave</command-name>\n<command-args>a twill</command-args>"
u4 <- u3  user   [text "Weave what is asked."] meta
a1 <- u4  reply  m1 text "Woven."
u5 <- a1  user   "thanks"
"#;
    assert_eq!(heading(asked), "/weave a twill");
    let local = r#"
u1        user   "<command-name>/model</command-name>\n<command-args>opus</command-args>"
u2 <- u1  user   "<local-command-stdout>Set model</local-command-stdout>"
u3 <- u2  user   "weave"
a1 <- u3  reply  m1 text "Woven."
"#;
    assert_eq!(heading(local), "weave");
}

#[test]
fn attachments_that_carry_text_show_it() {
    let view = of(r#"
u1        user   "go"
x1 <- u1  attach hook_stopped_continuation {"message":"enough now","hookName":"PreToolUse:Bash","hookEvent":"PreToolUse"}
x2 <- x1  attach goal_status {"met":false,"sentinel":true,"condition":"ship it"}
y2 <- x2  attach goal_status {"met":false,"condition":"ship it","reason":"no tests ran","iterations":2,"tokens":900}
z2 <- y2  attach goal_status {"met":true,"condition":"ship it","reason":"all tests pass"}
x3 <- z2  attach max_turns_reached {"maxTurns":2,"turnCount":3}
x4 <- x3  attach budget_usd {"used":0.25,"total":2,"remaining":1.75}
x5 <- x4  attach unknown_command_fallback {"commandName":"nonesuch","availableCommandCount":41}
x6 <- x5  attach structured_output {"data":{"n":2}}
x7 <- x6  attach next_week {"text":"something new"}
x8 <- x7  attach silent_turn_reminder +{"rendered":[{"content":"<system-reminder>\nsay something\n</system-reminder>"}]}
x9 <- x8  attach instructions {"files":[{"type":"Project","path":"/w/CLAUDE.md","content":"…"}]}
"#);
    let lines = view.turns[0].items.iter().map(|item| match &item.body {
        ItemBody::Event { label, text } | ItemBody::Error { label, text } => format!("{label}: {text}"),
        other => format!("{other:?}"),
    });
    insta::assert_snapshot!(lines.skip(1).collect::<Vec<_>>().join("\n"), @r#"
    stopped by hook: PreToolUse:Bash: enough now
    goal: set: ship it
    goal: not met after 2 checks: ship it: no tests ran
    goal: met: ship it: all tests pass
    turn limit: 2 reached
    budget: $0.2500 of $2.0000 used
    unknown command: /nonesuch
    structured output: {"n":2}
    next week: something new
    silent turn reminder: say something
    memory: /w/CLAUDE.md
    "#);
}

#[test]
fn structured_content_and_links_of_mcp_results_are_shown_once() {
    let result = |text: &str, meta: &str| {
        let view = of(&format!(
            "u1 user \"go\"\na1 <- u1 reply m1 tool t1 mcp__loom__weave\nr1 <- a1 result t1 {text} +{{\"mcpMeta\":{meta}}}"
        ));
        let call = view.turns[0].items.iter().find_map(|item| match &item.body {
            ItemBody::Call(call) => Some(call.result.clone()),
            _ => None,
        });
        call.unwrap()
    };
    let structured = r#"{"structuredContent":{"bars":4}}"#;
    assert_eq!(result(r#""four bars""#, structured), "four bars\nstructured content: {\"bars\":4}");
    assert_eq!(result(r#""{\"bars\":4}""#, structured), r#"{"bars":4}"#);
    let link = r#"{"resourceLinks":[{"uri":"file:///w/plan.txt","name":"plan.txt"}]}"#;
    assert_eq!(result(r#""see""#, link), "see\nlink: plan.txt file:///w/plan.txt");
    let named = "[Resource link: plan.txt] file:///w/plan.txt";
    assert_eq!(result(&format!("\"{named}\""), link), named);
}

#[test]
fn errors_have_no_tags_around_them() {
    let view = of(r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Edit {"file_path":"/a"}
r1 <- a1  result t1 "<tool_use_error>File not read.</tool_use_error>\n\n<system-reminder>now</system-reminder>" error
"#);
    let call = view.turns[0].items.iter().find_map(|item| match &item.body {
        ItemBody::Call(call) => Some(call),
        _ => None,
    });
    assert_eq!(call.unwrap().result, "File not read.\n\n<system-reminder>now</system-reminder>");
}

#[test]
fn layouts_count_the_same_as_outlines() {
    // The last block of the reply is not shown, so its text was truncated.
    let truncated = r#"
u1        user   "go"
raw {"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","message":{"id":"m1","role":"assistant","model":"x","stop_reason":"max_tokens","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}},{"type":"text","text":"It is"},{}]}}
"#;
    for notation in [ALL, truncated] {
        let family = SessionFamily::new(Session::from_bytes(&log(notation)), Vec::new());
        let layout = layout(
            TranscriptBuilder::new(&family),
            &LineNotes::of(&family),
            None,
            None,
            threadline_view::FindingSummary::default(),
        );
        let lines: Vec<_> = layout.turns.into_iter().map(|turn| turn.line).collect();
        assert_eq!(lines, outline(&transcript(&family, &|_| None).turns));
    }
}

#[test]
fn a_turn_has_one_name_in_all_views() {
    let notice = "<task-notification><task-id>a1</task-id><status>completed</status><summary>Agent \\\"Weave\\\" finished</summary></task-notification>";
    let notation = format!(
        r#"
c1        user   "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>opus</command-args>"
c2 <- c1  user   "<local-command-stdout>Set model to opus</local-command-stdout>"
u1 <- c2  user   "weave"
a1 <- u1  reply  m1 text "Done."
u2 <- a1  user   [image png]
a2 <- u2  reply  m2 text "It is **blue**."
u3 <- a2  user   "{notice}"
a3 <- u3  reply  m3 text "Good."
"#
    );
    let family = SessionFamily::new(Session::from_bytes(&log(&notation)), Vec::new());
    let transcript = transcript(&family, &|_| None);
    let titles: Vec<&str> = transcript.turns.iter().map(|turn| &*turn.title).collect();
    assert_eq!(titles, ["weave", "[image]", "Background task finished: Agent \"Weave\" finished"]);
    let lines = outline(&transcript.turns);
    assert!(lines.iter().map(|line| &*line.title).eq(titles.iter().copied()));
    let none = threadline_view::FindingSummary::default();
    let layout = layout(TranscriptBuilder::new(&family), &LineNotes::of(&family), None, None, none);
    for (turn, title) in layout.turns.iter().zip(&titles) {
        assert_eq!((&*turn.turn.title, &*turn.line.title), (*title, *title));
    }
    let prompts = family.main.turns();
    let prompts = prompts.iter().map(|turn| family.main.entries()[turn.prompt.unwrap()].clone());
    assert!(prompts.map(|prompt| threadline_view::line_title(prompt).unwrap()).eq(titles));
}

#[test]
fn sub_agents_of_a_branch_are_not_listed_as_unattached() {
    const BRANCHED: &str = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"look"}
r1 <- a1  result t1 "ok"
u2 <- u1  user   "again"
a2 <- u2  reply  m2 text "Done."
"#;
    const WORK: &str = r#"
x1        user   "look"
y1 <- x1  reply  n1 tool t2 Task {"prompt":"deeper"}
"#;
    let agent = |id: &str, spawn: Option<Spawn>| Subagent {
        session: Session::from_bytes(&log(WORK)),
        spawn,
        ..Subagent::bare(id.to_owned())
    };
    let spawn = |agent: Option<AgentIndex>, call: &str| Some(Spawn { agent, tool_use_id: call.to_owned() });
    let below = agent("b", spawn(Some(AgentIndex::FIRST), "t2"));
    let agents = vec![agent("a", spawn(None, "t1")), below, agent("c", None)];
    let family = SessionFamily::new(Session::from_bytes(&log(BRANCHED)), agents);
    let TranscriptEnd { agents, branches, .. } = transcript(&family, &|_| None).end;
    let unattached: Vec<&str> = agents.iter().map(|agent| &*agent.id).collect();
    assert_eq!((branches.len(), &unattached[..]), (1, &["c"][..]));
}

#[test]
fn parts_of_some_turns_are_those_of_the_whole() {
    const BRANCHED: &str = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "One."
u2 <- a1  user   "left"
a2 <- u2  reply  m2 text "Two."
u3 <- a1  user   "right"
a3 <- u3  reply  m3 text "Three."
"#;
    let family = SessionFamily::new(Session::from_bytes(&log(BRANCHED)), Vec::new());
    let builder = TranscriptBuilder::new(&family);
    let whole = builder.transcript();
    assert_eq!((whole.turns.len(), whole.end.branches.len()), (2, 1));
    let last = |number: usize, count: usize| number == count;
    let found: Transcript = builder.parts_of_turns(&last).collect();
    assert_eq!(
        found,
        Transcript {
            turns: whole.turns[1..].to_vec(),
            end: TranscriptEnd { branches: Vec::new(), ..whole.end.clone() },
            ..whole
        }
    );
}

/// Returns the state of each call, and whether it is an error, in the transcript and in the layout.
fn call_states(notation: &str, live_at: Option<i64>) -> (Vec<(String, bool)>, usize) {
    let family = SessionFamily::new(Session::from_bytes(&log(notation)), Vec::new());
    let builder = TranscriptBuilder { live_at, ..TranscriptBuilder::new(&family) };
    let mut notes = LineNotes::default();
    notes.update(&family);
    let laid_out = layout(builder, &notes, None, None, threadline_view::FindingSummary::default());
    let lines: Vec<u64> = family.main.entries().iter().map(|entry| entry.at().line_no).collect();
    let states = |items: &mut dyn Iterator<Item = &threadline_view::TranscriptItem>| -> Vec<_> {
        let calls = items.filter_map(|item| match &item.body {
            ItemBody::Call(call) => Some((call.state().into_owned(), call.is_error())),
            _ => None,
        });
        calls.collect()
    };
    let transcript = builder.transcript();
    let found = states(&mut transcript.turns.iter().flat_map(|turn| &turn.items));
    assert_eq!(found, states(&mut laid_out.items(builder, &lines, 0).iter()));
    assert_eq!(laid_out.error_anchors.len(), found.iter().filter(|(_, is_error)| *is_error).count());
    (found, laid_out.turns.iter().map(|turn| turn.line.errors).sum())
}

#[test]
fn a_call_that_a_live_session_waits_for_is_running() {
    let running = r#"
u1        user   "build" @2026-02-01T10:00:00Z
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"} @2026-02-01T10:00:05Z
"#;
    let now = "2026-02-01T10:00:17Z".parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let state = |text: &str, is_error| vec![(text.to_owned(), is_error)];
    assert_eq!(call_states(running, Some(now)), (state("running 12 s", false), 0));
    assert_eq!(call_states(running, None), (state("no result", false), 0));
    // The session continued without the result.
    let lost = format!("{running}u2 <- a1 user \"again\"\na2 <- u2 reply m2 text \"Done.\"\n");
    assert_eq!(call_states(&lost, Some(now)), (state("no result", false), 0));
}

#[test]
fn the_result_of_a_repeated_call_is_shown_once() {
    let repeated = "tool t1 Bash {\"command\":\"ls\"}, ".repeat(20);
    let shown = of(&format!(
        "u1 user \"go\"\na1 <- u1 reply m1 [{}]\nr1 <- a1 result t1 \"loom.rs\"",
        &repeated[..repeated.len() - 2]
    ));
    let calls: Vec<&CallView> = shown.turns[0].items.iter().filter_map(call_of).collect();
    assert_eq!((calls.len(), calls.iter().filter(|call| call.result == "loom.rs").count()), (20, 1));
}

#[test]
fn a_sub_agent_is_built_for_one_of_the_calls_with_its_id() {
    let main = log(r#"
u1        user   "go"
a1 <- u1  reply  m1 [tool t1 Task {"prompt":"look"}, tool t1 Task {"prompt":"look"}]
r1 <- a1  result t1 "done"
a2 <- r1  reply  m2 tool t1 Task {"prompt":"look"}
"#);
    let agent = ("a".to_owned(), log("x1 user \"look\"\nx2 <- x1 reply m9 text \"Done.\""));
    let shown = transcript(&SessionFamily::from_bytes(&main, [agent]), &|_| None);
    let calls = shown.turns[0].items.iter().filter_map(call_of);
    assert_eq!(calls.map(|call| call.agents.len()).collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn a_file_with_output_is_read_for_few_of_the_results_that_name_it() {
    let n_calls = 50;
    let mut lines = "r0 user \"go\"\n".to_owned();
    for i in 1..=n_calls {
        let before = i - 1;
        lines += &format!("a{i} <- r{before} reply m{i} tool t{i} Bash {{}}\n");
        lines += &format!("r{i} <- a{i} result t{i} \"<persisted-output>\\nsaved to: /x/o.txt\"\n");
    }
    let family = SessionFamily::new(Session::from_bytes(&log(&lines)), Vec::new());
    let n_read = Cell::new(0);
    let read = |_: &str| {
        n_read.set(n_read.get() + 1);
        Some("warp".to_owned())
    };
    let shown = transcript(&family, &read);
    let items = shown.turns.iter().flat_map(|turn| &turn.items);
    let texts: Vec<&str> = items.filter_map(|item| Some(&*call_of(item)?.result)).collect();
    assert_eq!((texts.len(), n_read.get()), (n_calls, 4));
    assert_eq!(texts.iter().filter(|text| **text == "warp").count(), 4);
    assert_eq!(texts[n_calls - 1], "<persisted-output>\nsaved to: /x/o.txt");
}

#[test]
fn sub_agents_of_repeated_calls_are_built_once_at_any_depth() {
    // Each level would double the levels below it.
    let log_of = |i: usize| {
        let call = format!("tool t{i} Task {{\"prompt\":\"{}\"}}", i + 1);
        log(&format!("x1 user \"{i}\"\nx2 <- x1 reply m{i} [{call}, {call}]\nx3 <- x2 reply n{i} {call}\n"))
    };
    let n_agents = 60;
    let agents = (1..=n_agents).map(|i| (format!("a{i:02}"), log_of(i)));
    let family = SessionFamily::from_bytes(&log_of(0), agents);
    let shown = transcript(&family, &|_| None);
    let count = |turns: &[TurnView]| {
        turns
            .iter()
            .flat_map(|turn| &turn.items)
            .filter_map(call_of)
            .map(|call| call.agents.len())
            .sum::<usize>()
    };
    let (mut turns, mut depth) = (&shown.turns, 0);
    while count(turns) == 1 {
        depth += 1;
        let mut calls = turns.iter().flat_map(|turn| &turn.items).filter_map(call_of);
        turns = &calls.find_map(|call| call.agents.first()).unwrap().turns;
    }
    assert_eq!(depth, n_agents);
    let notes = LineNotes::of(&family);
    let findings = threadline_view::FindingSummary::default();
    let layout = layout(TranscriptBuilder::new(&family), &notes, None, None, findings);
    assert_eq!(layout.agents().count(), 1);
}

#[test]
fn sub_agents_that_started_each_other_are_built_once_inside_of_each_other() {
    let log_of = |call: &str, prompt: &str| {
        Session::from_bytes(&log(&format!(
            "x1 user \"{prompt}\"\nx2 <- x1 reply m{call} tool {call} Task {{\"prompt\":\"x\"}}"
        )))
    };
    let agent = |id: &str, session: Session, started_by: &str| Subagent {
        session,
        spawn: Some(Spawn { agent: None, tool_use_id: started_by.to_owned() }),
        ..Subagent::bare(id.to_owned())
    };
    let agents = vec![agent("a", log_of("t1", "a"), "t2"), agent("b", log_of("t2", "b"), "t1")];
    let shown =
        transcript(&SessionFamily::new(Session::from_bytes(&log("u1 user \"go\"")), agents), &|_| None);
    let depth = |agent: &AgentView| {
        let mut depth = 1;
        let inside = |agent: &AgentView| {
            let items = agent.turns.iter().flat_map(|turn| &turn.items);
            items.filter_map(call_of).find_map(|call| call.agents.first().cloned())
        };
        let mut next = inside(agent);
        while let Some(found) = next {
            depth += 1;
            next = inside(&found);
        }
        depth
    };
    assert_eq!(shown.end.agents.iter().map(depth).collect::<Vec<_>>(), [2]);
}

#[test]
fn the_outline_counts_changes_of_commands_apart() {
    let file = |path: &str, lines: &str| {
        format!(r#"{{"filePath":"{path}","hunks":[{{"oldStart":1,"newStart":1,"lines":[{lines}]}}]}}"#)
    };
    let family = SessionFamily::new(
        Session::from_bytes(&log(&format!(
            r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {{"command":"./weave"}}
r1 <- a1  result t1 "" {{"stdout":"","bashEditDiff":{{"files":[{},{}],"moreFiles":2,"changedFiles":["/w/a","/w/c"]}}}}
a2 <- r1  reply  m2 tool t2 Edit {{"file_path":"/w/a","old_string":"x","new_string":"y"}}
r2 <- a2  result t2 "done"
a3 <- r2  reply  m3 tool t3 Bash {{"command":"git stash"}}
r3 <- a3  result t3 "" {{"stdout":"","bashEditDiff":{{"files":[],"skipped":true}}}}
"#,
            file("/w/a", r#""-a","+b","+c""#),
            file("/w/b", r#"" a","+b""#),
        ))),
        Vec::new(),
    );
    let lines = outline(&transcript(&family, &|_| None).turns);
    let line = &lines[0];
    assert_eq!((line.edits, line.lines), (1, (1, 1)));
    assert_eq!((line.shell_edits, line.shell_lines), (3, (3, 1)));
    assert_eq!((line.all_edits(), line.all_lines()), (4, (4, 2)));
    let none = threadline_view::FindingSummary::default();
    let layout = layout(TranscriptBuilder::new(&family), &LineNotes::of(&family), None, None, none);
    assert_eq!(layout.turns.first().map(|turn| &turn.line), Some(line));
}
