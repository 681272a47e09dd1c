//! Tests of sub-agents: the location of their logs, and the calls that started them.

use insta::assert_snapshot;
use threadline_entry::AgentKind;
use threadline_session::{AgentIndex, Session, SessionFamily, Subagent};

use crate::render::{agent, agents, session, turns_of};

const MAIN: &str = r#"
u1        user   "find it"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"look in src","description":"look"}
r1 <- a1  result t1 [text "in main.rs"] {"status":"completed","agentId":"a7f","prompt":"look in src"}
a2 <- r1  reply  m2 text "Found."
"#;

const LOG: &str = r#"
s1        user   "look in src"            sidechain agent=a7f
s2 <- s1  reply  n1 tool t9 Grep          sidechain agent=a7f
s3 <- s2  result t9 "main.rs"             sidechain agent=a7f
s4 <- s3  reply  n2 text "in main.rs"     sidechain agent=a7f
"#;

#[test]
fn the_result_of_a_call_names_its_agent() {
    let family = SessionFamily::new(session(MAIN), vec![agent("a7f", None, LOG)]);
    assert_snapshot!(agents(&family), @r"
    a7f Task started by t1 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    ");
    assert_snapshot!(turns_of(&family.agents[AgentIndex::FIRST].session), @r#"
    turn 1  new_session  "look in src"
      [s1 s2 s3 s4]
      n1  Grep(t9) -> ok
      n2  text
    "#);
    assert_eq!(family.session(None).replies().len(), 2);
    assert_eq!(family.session(Some(AgentIndex::FIRST)).replies().len(), 2);
}

#[test]
fn the_meta_file_names_a_call_without_result() {
    let main = session(
        r#"
u1        user   "find it"
a1 <- u1  reply  m1 tool t1 Agent {"prompt":"elsewhere"}
a2 <- a1  reply  m1 tool t2 Agent {"prompt":"elsewhere"}
"#,
    );
    let described = Subagent {
        agent_type: Some("Explore".into()),
        description: Some("look".into()),
        ..agent("a7f", Some("t2"), LOG)
    };
    assert_snapshot!(agents(&SessionFamily::new(main, vec![described])), @r#"
    a7f Task "Explore" "look" started by t2 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    "#);
}

#[test]
fn an_agent_of_an_unknown_call_is_found_by_its_prompt() {
    let main = session(
        r#"
u1        user   "find it"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"look in src"}
a2 <- a1  reply  m1 tool t2 Task {"prompt":"look in src"}
"#,
    );
    // Two calls with the same prompt started two agents. Each agent gets one of the calls.
    let family = SessionFamily::new(main, vec![agent("a7f", Some("gone"), LOG), agent("a8f", None, LOG)]);
    assert_snapshot!(agents(&family), @r"
    a7f Task started by t1 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    a8f Task started by t2 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    ");
}

#[test]
fn sidechains_inside_the_log_are_agents() {
    // 1.0.x: no agentId, a separate root, no link except the prompt.
    let main = session(
        r#"
u1        user   "find it"                  version=1.0.98
a1 <- u1  reply  m1 tool t1 Task {"prompt":"look in src"}  version=1.0.98
a2 <- a1  reply  m1 tool t2 Task {"prompt":"look in docs"} version=1.0.98
s1        user   "look in src"              version=1.0.98 sidechain
d1        user   "look in docs"             version=1.0.98 sidechain
s2 <- s1  reply  n1 text "in main.rs"       version=1.0.98 sidechain
d2 <- d1  reply  n2 tool t9 Grep            version=1.0.98 sidechain
d3 <- d2  result t9 "no"                    version=1.0.98 sidechain
d4 <- d3  reply  n3 text "not there"        version=1.0.98 sidechain
r1 <- a1  result t1 "in main.rs"            version=1.0.98
r2 <- a2  result t2 "not there"             version=1.0.98
"#,
    );
    let family = SessionFamily::new(main, Vec::new());
    assert_snapshot!(agents(&family), @r"
    s1 Task started by t1 of the session
      thread: s1 s2
      replies: n1
    d1 Task started by t2 of the session
      thread: d1 d2 d3 d4
      replies: n2 n3
    ");
    assert_snapshot!(turns_of(&family.main), @r#"
    turn 1  new_session  "find it"  open
      [u1 a1 a2 r1 r2]
      m1  Task(t1) -> ok, Task(t2) -> ok
    "#);
}

#[test]
fn the_log_of_an_agent_contains_no_agents() {
    assert_eq!(SessionFamily::new(session(LOG), Vec::new()).agents.len(), 0);
}

const PROGRESS: &str = r#"
u1        user   "find it"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"look in src"}
p1 <- a1  progress agent t1 {"agentId":"a7f","prompt":"look in src","message":{"type":"user","uuid":"s1","timestamp":"2026-01-01T10:00:03.000Z","message":{"role":"user","content":[{"type":"text","text":"look in src"}]}}}
p2 <- p1  progress agent t1 {"agentId":"a7f","prompt":"","message":{"type":"assistant","uuid":"s2","timestamp":"2026-01-01T10:00:04.000Z","message":{"id":"n1","content":[{"type":"tool_use","id":"t9","name":"Grep","input":{}}]}}}
p3 <- p2  progress agent t1 {"agentId":"a7f","prompt":"","message":{"type":"user","uuid":"s3","timestamp":"2026-01-01T10:00:05.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t9","content":"main.rs"}]}}}
p4 <- p3  progress agent t1 {"agentId":"a7f","prompt":"","message":{"type":"assistant","uuid":"s4","timestamp":"2026-01-01T10:00:06.000Z","message":{"id":"n2","content":[{"type":"text","text":"in main.rs"}]}}}
"#;

#[test]
fn progress_lines_replace_a_missing_agent_log() {
    let family = SessionFamily::new(session(PROGRESS), Vec::new());
    assert_snapshot!(agents(&family), @r"
    a7f Task started by t1 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    ");
    assert_snapshot!(turns_of(&family.agents[AgentIndex::FIRST].session), @r#"
    turn 1  new_session  "look in src"
      [s1 s2 s3 s4]
      n1  Grep(t9) -> ok
      n2  text
    "#);
}

#[test]
fn progress_lines_are_ignored_if_the_agent_has_a_log() {
    let family = SessionFamily::new(session(PROGRESS), vec![agent("a7f", None, LOG)]);
    assert_snapshot!(agents(&family), @r"
    a7f Task started by t1 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    ");
}

#[test]
fn an_updated_family_equals_one_built_at_once() {
    let sides = "u1 user \"find it\"\na1 <- u1 reply m1 tool t1 Task {\"prompt\":\"look in src\"}\ns1 user \"look in src\" sidechain";
    for (notation, logged) in [
        (MAIN, vec![agent("a7f", None, LOG)]),
        (MAIN, vec![agent("a7f", Some("t1"), LOG), agent("a8f", Some("gone"), LOG)]),
        (PROGRESS, Vec::new()),
        (PROGRESS, vec![agent("a7f", None, LOG)]),
        (sides, Vec::new()),
    ] {
        let whole = session(notation);
        let mut family = SessionFamily::new(Session::new(), logged.clone());
        let mut main = Session::new();
        for entry in whole.entries() {
            family.main.push(entry.clone(), Vec::new());
            main.push(entry.clone(), Vec::new());
            let fresh = SessionFamily::new(main.clone(), logged.clone());
            if family.update() {
                assert_eq!(agents(&family), agents(&fresh), "line {}", entry.at().line_no);
            } else {
                // Expected only with sidechains in the log.
                assert_eq!(notation, sides);
                family = fresh;
            }
        }
    }
}

#[test]
fn an_agent_may_start_another_one() {
    let main = session(
        r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Agent {"prompt":"outer"}
r1 <- a1  result t1 "ok" {"agentId":"out"}
"#,
    );
    let inner = agent("in", None, "i1 user \"inner\" sidechain\ni2 <- i1 reply n3 text \"deep\" sidechain");
    let outer = agent(
        "out",
        None,
        r#"
o1        user   "outer"                             sidechain
o2 <- o1  reply  n1 tool t2 Agent {"prompt":"inner"} sidechain
o3 <- o2  result t2 "ok" {"agentId":"in"}            sidechain
"#,
    );
    assert_snapshot!(agents(&SessionFamily::new(main, vec![inner, outer])), @r"
    in Task started by t2 of out
      thread: i1 i2
      replies: n3
    out Task started by t1 of the session
      thread: o1 o2 o3
      replies: n1
    ");
}

#[test]
fn a_log_that_repeats_its_parents_history_did_not_start_itself() {
    // A fork of the agent's context: its log contains the call that started it.
    let outer = r#"
o1        user   "outer"                             sidechain
o2 <- o1  reply  n1 tool t2 Agent {"prompt":"inner"} sidechain
"#;
    let inner = agent("in", Some("t2"), &format!("{outer}o3 <- o2 user \"inner\" sidechain"));
    let family = SessionFamily::new(session("u1 user \"go\""), vec![inner, agent("out", None, outer)]);
    assert_snapshot!(agents(&family), @r"
    in Task started by t2 of out
      thread: o1 o2 o3
      replies: n1
    out Task started by an unknown call
      thread: o1 o2
      replies: n1
    ");
}

#[test]
fn workflow_agents_are_found_by_their_metadata() {
    let main = session(
        r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Workflow {"script":"audit"}
r1 <- a1  result t1 "launched" {"runId":"wf_1","taskId":"w1","status":"async_launched"}
"#,
    );
    let step = |id: &str| Subagent { kind: AgentKind::Workflow, ..agent(id, Some("t1"), LOG) };
    assert_snapshot!(agents(&SessionFamily::new(main, vec![step("w7"), step("w8")])), @r"
    w7 Workflow started by t1 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    w8 Workflow started by t1 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    ");
}

#[test]
fn a_teammate_is_a_separate_session() {
    let main = session(
        r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"join","team_name":"crew","name":"bo"}
r1 <- a1  result t1 "Spawned" {"status":"teammate_spawned","agent_id":"bo@crew","teammate_id":"bo@crew","name":"bo"}
u2 <- r1  user   "<teammate-message teammate_id=\"bo\">hello</teammate-message>"
"#,
    );
    assert_eq!(SessionFamily::new(main, Vec::new()).agents.len(), 0);
}

#[test]
fn an_agent_in_the_background_is_started_by_the_call_that_returned_at_once() {
    let main = session(
        r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Agent {"prompt":"look in src","run_in_background":true}
r1 <- a1  result t1 "Async agent launched" {"isAsync":true,"status":"async_launched","agentId":"a7f"}
a2 <- r1  reply  m2 text "Started."
n1 <- a2  user   "<task-notification>\n<task-id>a7f</task-id></task-notification>"
"#,
    );
    assert_snapshot!(agents(&SessionFamily::new(main, vec![agent("a7f", None, LOG)])), @r"
    a7f Task started by t1 of the session
      thread: s1 s2 s3 s4
      replies: n1 n2
    ");
}

#[test]
fn agents_of_a_workflow_are_started_by_the_call_that_names_its_run() {
    let main = session(
        r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Workflow {"script":"…"}
r1 <- a1  result t1 "started" {"status":"async_launched","taskId":"w1","runId":"wf_1"}
a2 <- r1  reply  m2 tool t2 Workflow {"script":"…"}
r2 <- a2  result t2 "started" {"status":"async_launched","transcriptDir":"/home/ada/.claude/projects/-p/s1/subagents/workflows/wf_2"}
"#,
    );
    let part_of =
        |run: &str, id: &str| Subagent { workflow_run: Some(run.to_owned()), ..agent(id, None, LOG) };
    let family = SessionFamily::new(
        main,
        vec![part_of("wf_1", "a1f"), part_of("wf_2", "a2f"), part_of("wf_3", "a3f")],
    );
    let starts: Vec<_> =
        family.agents.iter().map(|agent| agent.spawn.as_ref().map(|spawn| &*spawn.tool_use_id)).collect();
    assert_eq!(starts, [Some("t1"), Some("t2"), None]);
}

#[test]
fn very_many_agents_name_calls_that_do_not_exist() {
    let named = |n: usize| agent_of(Session::new(), &format!("a{n}"), &format!("gone{n}"));
    let caller = session(r#"s1 reply m1 tool gone5 Task {"prompt":"look"} sidechain agent=a0"#);
    let agents = std::iter::once(agent_of(caller, "a0", "gone0")).chain((1..10_000).map(named));
    let family = SessionFamily::new(Session::new(), agents.collect());
    let started: Vec<_> = family.agents.iter().filter(|agent| agent.spawn.is_some()).collect();
    assert_eq!(started.iter().map(|agent| &*agent.id).collect::<Vec<_>>(), ["a5"]);
    assert_eq!(started[0].spawn.as_ref().unwrap().agent, Some(AgentIndex::FIRST));
}

/// Returns an agent whose metadata names the call that started it.
fn agent_of(session: Session, id: &str, call: &str) -> Subagent {
    Subagent { session, ..agent(id, Some(call), "") }
}

#[test]
fn very_many_sidechains_below_a_long_conversation() {
    let n_lines = 5_000;
    let replies: String =
        (1..n_lines).map(|n| format!("a{n} <- a{} reply m{n} text \"On.\"\n", n - 1)).collect();
    let sidechain = |n: usize| format!("s{n} <- a{} user \"look\" sidechain\n", n_lines - 1);
    let sidechains: String = (0..n_lines).map(sidechain).collect();
    let session = session(&format!("a0 user \"go\"\n{replies}{sidechains}"));
    assert_eq!(session.inline_agents().len(), n_lines);
}
