//! Tests of the structures that other readers of these logs get wrong, one test per case (S1 to S17).

use insta::assert_snapshot;
use threadline_entry::AgentKind;
use threadline_session::{EntryIndex, Session, SessionFamily, Subagent};
use threadline_testkit::log;

use crate::render::{
    agent, agents, findings, is_sound, paths, paths_of, replay, session, tree, turns, turns_of,
};

#[test]
fn a_reply_spread_over_three_lines_is_one_message() {
    assert_snapshot!(turns(r#"
u1        user   "why is it slow?"
a1 <- u1  reply  m1 thinking "Perhaps a sleep."
a2 <- a1  reply  m1 text "Let me look."
a3 <- a2  reply  m1 tool t1 Grep {"pattern":"sleep"}
r1 <- a3  result t1 "src/main.rs:9"
"#), @r#"
    turn 1  new_session  "why is it slow?"  open
      [u1 a1 a2 a3 r1]
      m1  thinking, text, Grep(t1) -> ok
    "#);
}

#[test]
fn the_copies_of_a_duplicated_session_are_separate() {
    // The second copy lacks one of two parallel calls.
    assert_snapshot!(paths(r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Two at once."
a2 <- a1  reply  m1 tool t1 Read {"file_path":"/a"}
a3 <- a2  reply  m1 tool t2 Glob {"pattern":"*"}
r1 <- a2  result t1 "a"
r2 <- a3  result t2 "b"
a4 <- r2  reply  m2 text "Done."
v1        user   "go"
b1 <- v1  reply  m1 text "Two at once."
b2 <- b1  reply  m1 tool t1 Read {"file_path":"/a"}
s1 <- b2  result t1 "a"
b4 <- s1  reply  m2 text "Done."
v2 <- b4  user   "thanks"
"#), @r"
    thread: v1 b1 b2 s1 b4 v2
    branch from nowhere: u1 a1 a2 a3 r1 r2 a4
    ");
}

#[test]
fn s01_progress_lines_make_no_forks() {
    let notation = r#"
p0        progress hook
u1 <- p0  user   "build it"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
p1 <- a1  progress hook t1
p2 <- p1  progress bash t1
p3 <- p2  progress bash t1
r1 <- a1  result t1 "done"
p4 <- r1  progress hook t1
a2 <- p4  reply  m2 text "Built."
"#;
    assert_snapshot!(paths(notation), @"thread: p0 u1 a1 p1 p2 p3 r1 p4 a2");
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "build it"
      [u1 p0 a1 p1 p2 p3 r1 p4 a2]
      m1  Bash(t1) -> ok
      m2  text
    "#);
}

#[test]
fn s02_a_result_and_the_next_call_may_be_siblings() {
    let notation = r#"
u1        user   "look twice"
a1 <- u1  reply  m1 tool t1 Read {"file_path":"a"}
a2 <- a1  reply  m1 tool t2 Read {"file_path":"b"}
r1 <- a1  result t1 "A"
r2 <- a2  result t2 "B"
a3 <- r2  reply  m2 text "Seen."
"#;
    assert_snapshot!(tree(notation), @r"
    u1
      a1
        a2
          r2
            a3
        r1
    ");
    assert_snapshot!(paths(notation), @"thread: u1 a1 a2 r1 r2 a3");
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "look twice"
      [u1 a1 a2 r1 r2 a3]
      m1  Read(t1) -> ok, Read(t2) -> ok
      m2  text
    "#);
    assert_snapshot!(replay(notation), @r"
    user: text look twice
    assistant: tool_use t1, tool_use t2
    user: tool_result t1, tool_result t2
    assistant: text Seen.
    ");
}

#[test]
fn s03_a_missing_parent_does_not_end_the_conversation() {
    let notation = r#"
u1           user   "first"
a1 <- u1     reply  m1 text "one"
u2 <- ?gone  user   "second"
a2 <- u2     reply  m2 text "two"
"#;
    assert_snapshot!(tree(notation), @r"
    u1
      a1
    u2  (parent missing)
      a2
    ");
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "first"
      [u1 a1]
      m1  text
    turn 2  new_round  "second"
      [u2 a2]
      m2  text
    "#);
}

#[test]
fn s03_a_descendant_on_an_earlier_line_is_not_a_parent() {
    assert_snapshot!(paths(r#"
u1        user   "go"
p1 <- ?a1 progress bash t1
a1 <- ?x  reply  m1 tool t1 Bash
r1 <- a1  result t1 "ok"
"#), @"thread: u1 p1 a1 r1");
}

#[test]
fn s04_both_of_two_children_are_reachable() {
    assert_snapshot!(paths(r#"
u1        user   "go"
a1 <- u1  reply  m1 text "left?"
u2 <- a1  user   "left"
a2 <- u2  reply  m2 text "went left"
u3 <- a1  user   "no, right"
a3 <- u3  reply  m3 text "went right"
"#), @r"
    thread: u1 a1 u3 a3
    branch from a1: u2 a2
    ");
}

#[test]
fn s05_cycles_are_broken() {
    let notation = r#"
u1 <- a2  user   "round"
a1 <- u1  reply  m1 text "and"
a2 <- a1  reply  m2 text "round"
x1 <- x1  user   "my own parent"
"#;
    assert_snapshot!(tree(notation), @r"
    u1  (parent missing)
      a1
        a2
    x1  (parent missing)
    ");
    assert_snapshot!(paths(notation), @"thread: u1 a1 a2 x1");
    assert_snapshot!(findings(notation), @r"
    line 1  F27 cycle  error: the parents of the line form a cycle
    line 4  F27 cycle  error: the parents of the line form a cycle
    ");
}

#[test]
fn s06_a_duplicated_branch_is_read_once() {
    let notation = r#"
u1        user   "hello"
u1        user   "hello"            +{"forkedFrom":{"sessionId":"s0","messageUuid":"u1"}}
a1 <- u1  reply  m1 tool t1 Bash
a1 <- u1  reply  m1 tool t1 Bash    +{"forkedFrom":{"sessionId":"s0","messageUuid":"a1"}}
r1 <- a1  result t1 "ok"
r1 <- a1  result t1 "ok"            +{"forkedFrom":{"sessionId":"s0","messageUuid":"r1"}}
"#;
    assert_snapshot!(paths(notation), @"thread: u1 a1 r1");
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "hello"  open
      [u1 a1 r1]
      m1  Bash(t1) -> ok
    "#);
}

#[test]
fn a_duplicated_log_is_read_once() {
    let once = log(r#"
u1        user   "hello"
a1 <- u1  reply  m1 text "Hi."
u2 <- a1  user   "bye"
"#);
    let (one, two) = (Session::from_bytes(&once), Session::from_bytes(&[&once[..], &once].concat()));
    assert_eq!(turns_of(&one), turns_of(&two));
    assert_eq!(paths_of(&one), paths_of(&two));
}

#[test]
fn a_repeated_uuid_with_other_content_is_a_branch() {
    assert_snapshot!(paths(r#"
u1        user   "hello"
a1 <- u1  reply  m1 text "Hi."
u1        user   "something else"
a2 <- a1  reply  m2 text "Hm?"
"#), @r"
    thread: u1 a1 a2
    branch from nowhere: u1
    ");
}

#[test]
fn s07_a_rewound_branch_stays_a_branch_after_a_fork() {
    let session = session(
        r#"
u1        user   "try"              +{"forkedFrom":{"sessionId":"s0","messageUuid":"u1"}}
a1 <- u1  reply  m1 text "wrong"    +{"forkedFrom":{"sessionId":"s0","messageUuid":"a1"}}
u2 <- a1  user   "rewound"          +{"forkedFrom":{"sessionId":"s0","messageUuid":"u2"}}
a2 <- u2  reply  m2 text "rewound"  +{"forkedFrom":{"sessionId":"s0","messageUuid":"a2"}}
u3 <- a1  user   "on"
a3 <- u3  reply  m3 text "on"
"#,
    );
    assert_snapshot!(paths_of(&session), @r"
    thread: u1 a1 u3 a3
    branch from a1: u2 a2
    ");
    assert_eq!(session.forked_from().as_deref(), Some("s0"));
}

#[test]
fn s08_several_continuations_of_one_line_are_branches_of_it() {
    assert_snapshot!(paths(r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto
c1 <- b1  compact-summary "In short: long work."
u2 <- c1  user   "first way"
a2 <- u2  reply  m2 text "first"
b2 <- a1  boundary manual
c2 <- b2  compact-summary "Briefly: long work."
u3 <- c2  user   "second way"
a3 <- u3  reply  m3 text "second"
u4 <- a1  user   "the original goes on"
a4 <- u4  reply  m4 text "on"
"#), @r"
    thread: u1 a1 u4 a4
    branch from a1: b1 c1 u2 a2
    branch from a1: b2 c2 u3 a3
    ");
}

#[test]
fn s09_a_snapshot_may_name_the_message_that_follows_it() {
    let notation = r#"
snapshot u1
u1        user   "edit"
a1 <- u1  reply  m1 text "Done."
snapshot a1 update
"#;
    assert_snapshot!(paths(notation), @"thread: u1 a1");
    assert!(is_sound(&session(notation)));
}

#[test]
fn s10_the_title_of_another_session_is_ignored() {
    let title = |notation: &str| session(notation).title();
    let other = r#"summary "The other one" leaf u9"#;
    let own = r#"summary "This one" leaf a1"#;
    let talk = "u1 user \"hi\"\na1 <- u1 reply m1 text \"hi\"";
    assert_eq!(title(&format!("{other}\n{talk}")).as_deref(), Some("hi"));
    assert_eq!(title(&format!("{own}\n{other}\n{talk}\n{other}")).as_deref(), Some("This one"));
    assert_eq!(title(&format!("{talk}\n{own}\nai-title \"A model's\"")).as_deref(), Some("A model's"));
    assert_eq!(title(&format!("title \"Mine\"\n{talk}\nai-title \"A model's\"")).as_deref(), Some("Mine"));
    assert_eq!(
        title(&format!("title \"Mine\"\n{talk}\ntitle \"Mine again\"")).as_deref(),
        Some("Mine again")
    );
    assert_eq!(title(&format!("title \"\"\nai-title \"A\"\n{talk}")).as_deref(), Some("A"));
}

#[test]
fn s11_agents_nest_to_any_depth_and_an_interrupted_spawn_has_no_result() {
    // Each agent starts the next, and no call has a result. Only meta.json records the links.
    let calls = |i: usize| {
        format!(
            "u{i} user \"dig {i}\" sidechain\na{i} <- u{i} reply m{i} tool t{} Agent {{\"prompt\":\"dig\"}} sidechain",
            i + 1
        )
    };
    let files = (1..=79).rev().map(|i| agent(&format!("a{i}"), Some(&format!("t{i}")), &calls(i)));
    let main = session("u0 user \"dig\"\na0 <- u0 reply m0 tool t1 Agent {\"prompt\":\"dig\"}");
    let family = SessionFamily::new(main, files.collect());
    let mut depth = 0;
    let mut at = None;
    while let Some(next) = family.spawned_by(at, &format!("t{}", depth + 1)).next() {
        depth += 1;
        assert_eq!(family.agents[next].id, format!("a{depth}"));
        at = Some(next);
    }
    assert_eq!(depth, 79);
}

#[test]
fn s12_a_queued_prompt_steers_the_current_turn() {
    assert_snapshot!(turns(r#"
u1        user    "refactor"
a1 <- u1  reply   m1 tool t1 Bash
queue enqueue "and add tests"
r1 <- a1  result  t1 "ok"
queue remove
q1 <- r1  attach  queued_command {"prompt":"and add tests","commandMode":"prompt"}
a2 <- q1  reply   m2 text "With tests, then."
queue enqueue "thanks"
queue dequeue
u2 <- a2  user    "thanks"
"#), @r#"
    turn 1  new_session  "refactor"
      [u1 a1 r1 q1 a2]
      m1  Bash(t1) -> ok
      m2  text
    turn 2  new_round  "thanks"  open
      [u2]
    "#);
}

#[test]
fn s12_a_queued_prompt_may_contain_an_image() {
    assert_snapshot!(turns(r#"
u1        user    "draw"
a1 <- u1  reply   m1 tool t1 Bash
r1 <- a1  result  t1 "ok"
q1 <- r1  attach  queued_command {"prompt":[{"type":"text","text":"like this"},{"type":"image","source":{}}],"commandMode":"prompt"}
a2 <- q1  reply   m2 text "I see."
"#), @r#"
    turn 1  new_session  "draw"
      [u1 a1 r1 q1 a2]
      m1  Bash(t1) -> ok
      m2  text
    "#);
}

#[test]
fn s13_children_with_equal_timestamps_stay_in_file_order() {
    let notation = r#"
b1        boundary auto                   @10:00:00
c1 <- b1  compact-summary "So far."       @10:00:00
x1 <- c1  attach file {"filename":"a"}    @10:00:00
x2 <- c1  attach file {"filename":"b"}    @10:00:00
x3 <- c1  attach file {"filename":"c"}    @10:00:00
u1 <- x3  user "go on"                    @10:00:00
a1 <- u1  reply m1 text "On."             @10:00:00
"#;
    assert_snapshot!(paths(notation), @"thread: b1 c1 x1 x2 x3 u1 a1");
}

#[test]
fn s14_a_result_in_another_file_is_an_orphan_here() {
    let session = session(
        r#"
u1        user   "go on"
r1 <- u1  result t9 "late"
a1 <- r1  reply  m1 text "Thanks."
"#,
    );
    let orphans: Vec<_> = session.orphan_results().map(|(id, at)| (id, at[0].entry_idx)).collect();
    assert_eq!(orphans, [("t9", EntryIndex::from_position(1))]);
    assert!(session.tool_calls().is_empty());
    assert_snapshot!(paths_of(&session), @"thread: u1 r1 a1");
}

#[test]
fn s15_the_agent_of_a_compaction_is_separate_from_the_main_log() {
    let main = session(
        r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto
c1 <- b1  compact-summary "In short."
"#,
    );
    let summarizer = agent(
        "acompact-1f",
        None,
        r#"
x1 <- ?a1  user "<system-reminder>hook says</system-reminder>" meta sidechain agent=acompact-1f
x2 <- ?r9  user "<system-reminder>hook says</system-reminder>" meta sidechain agent=acompact-1f
x3 <- x2   user "Your task is to create a detailed summary of the conversation so far" sidechain agent=acompact-1f
x4 <- x3   reply m2 text "<summary>In short.</summary>" sidechain agent=acompact-1f
"#,
    );
    assert!(is_sound(&summarizer.session));
    let family = SessionFamily::new(main, vec![Subagent { kind: AgentKind::Compaction, ..summarizer }]);
    assert_snapshot!(agents(&family), @r"
    acompact-1f Compaction started by an unknown call
      thread: x1 x2 x3 x4
      replies: m2
    ");
    assert_eq!(family.main.replies().len(), 1);
}

#[test]
fn s16_an_unknown_record_is_kept_and_ignored() {
    let types = "mode last-prompt bridge-session atis-latch history-suppression frame-link file-history-delta \
                 artifact-state cost-state permission-mode api-request-shape tools-used hologram";
    let records: String =
        types.split_whitespace().map(|kind| format!("entry {kind} {{\"x\":1}}\n")).collect();
    let talk = "u1 user \"hi\"\na1 <- u1 reply m1 text \"hi\"\n";
    let plain = session(talk);
    let with = session(&format!("{records}{talk}{records}"));
    assert_eq!(turns_of(&with), turns_of(&plain));
    assert_eq!(paths_of(&with), paths_of(&plain));
    assert_eq!(with.entries().len(), 2 + 26);
    assert!(is_sound(&with));
}

#[test]
fn s16_an_unknown_entry_can_be_in_the_chain() {
    let notation = r#"
u1        user   "hi"
raw {"type":"hologram","uuid":"h1","parentUuid":"u1","timestamp":"2026-01-01T10:00:01.500Z"}
a1 <- ?h1 reply  m1 text "hi"
"#;
    assert_snapshot!(tree(notation), @r"
    u1
      h1
        a1
    ");
    assert_snapshot!(paths(notation), @"thread: u1 h1 a1");
    assert!(is_sound(&session(notation)));
}

#[test]
fn s17_lines_without_uuids_are_a_conversation() {
    let notation = r#"
raw {"type":"user","timestamp":"2024-01-01T10:00:00Z","message":{"content":"Fix the login"}}
raw {"type":"assistant","timestamp":"2024-01-01T10:00:05Z","message":{"content":[{"type":"text","text":"Looking."}]}}
raw {"type":"user","timestamp":"2024-01-01T10:00:10Z","message":{"content":"Thanks"}}
"#;
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "Fix the login"
      [line1 line2]
      (no id)  text
    turn 2  new_round  "Thanks"  open
      [line3]
    "#);
}

#[test]
fn s17_an_old_log_shows_its_messages() {
    // 1.0.17: no gitBranch, no message id from foreign writers, no agentId on sidechains.
    let notation = r#"
u1        user   "hi"                            version=1.0.17 -gitBranch
a1 <- u1  reply  m1 [text "hi", tool t1 Task {"prompt":"dig"}]  version=1.0.17 -gitBranch -requestId
s1        user   "dig"                           version=1.0.17 -gitBranch sidechain
s2 <- s1  reply  m2 text "dug"                   version=1.0.17 -gitBranch sidechain
r1 <- a1  result t1 "dug"                        version=1.0.17 -gitBranch -sourceToolAssistantUUID
summary "A title" leaf r1
"#;
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "hi"  open
      [u1 a1 r1]
      m1  text, Task(t1) -> ok
    "#);
    assert_snapshot!(paths(notation), @r"
    thread: u1 a1 r1
    sidechain: s1 s2
    ");
    assert_eq!(session(notation).title().as_deref(), Some("A title"));
}

#[test]
fn an_abandoned_call_and_its_late_result_stay_together() {
    assert_snapshot!(paths(r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
u2 <- u1  user   "rather not"
r1 <- a1  result t1 "too late"
a2 <- u2  reply  m2 text "Stopped."
"#), @r"
    thread: u1 u2 a2
    branch from u1: a1 r1
    ");
}

#[test]
fn a_skill_injected_by_a_parallel_call_is_not_a_branch() {
    assert_snapshot!(paths(r#"
u1        user   "use the skill and look"
a1 <- u1  reply  m1 tool t1 Skill {"command":"golang"}
a2 <- a1  reply  m1 tool t2 Read {"file_path":"a"}
r1 <- a1  result t1 "Launching skill: golang"
k1 <- r1  user   [text "Base directory for this skill: /s"]  meta +{"sourceToolUseID":"t1"}
r2 <- a2  result t2 "A"
a3 <- r2  reply  m2 text "Ready."
"#), @"thread: u1 a1 a2 r1 k1 r2 a3");
}

#[test]
fn an_attached_entry_may_precede_its_parent() {
    let notation = r#"
u1         user     "why?"
p1 <- ?a2  progress bash t1
a1 <- u1   reply    m1 thinking "Hm."
a2 <- a1   reply    m1 tool t1 Bash
r1 <- p1   result   t1 "x"
u1         user     "why?" @-4s
a1 <- u1   reply    m1 thinking "Hm."
"#;
    assert_snapshot!(paths(notation), @"thread: u1 p1 a1 a2 r1");
}

#[test]
fn a_local_command_without_continuation_is_not_a_branch() {
    assert_snapshot!(paths(r#"
u1        user   "one"
a1 <- u1  reply  m1 text "Done."
k1 <- a1  user   "<local-command-caveat>Caveat: …</local-command-caveat>"     meta
c1 <- k1  user   "<command-name>/exit</command-name>"
o1 <- c1  user   "<local-command-stdout>Bye!</local-command-stdout>"
u2 <- a1  user   "two"
a2 <- u2  reply  m2 text "Done."
c2 <- a1  user   "<command-name>/init</command-name>"
a3 <- c2  reply  m3 text "Left."
"#), @r"
    thread: u1 a1 k1 c1 o1 c2 a3
    branch from a1: u2 a2
    ");
}

#[test]
fn spoken_lines_are_counted_up_to_the_root_in_any_order_of_lines() {
    let session = session(
        r#"
a2 <- s1  reply m2 text "c"
s1 <- a1  system informational "x"
a1 <- u1  reply m1 text "b"
u1        user "a"
"#,
    );
    let counts: Vec<usize> = session.entries().indices().map(|idx| session.spoken_up_to(idx)).collect();
    assert_eq!(counts, [3, 2, 2, 1]);
}
