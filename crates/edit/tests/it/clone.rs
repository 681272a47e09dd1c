//! Clones: one chain, new ids, and no data that belongs to the old session.

use insta::assert_snapshot;
use std::path::Path;

use threadline_edit::{
    ChangeKind, CutPoint, PlanTarget, SideFileOp, StripOptions, ToolStripOptions, clone,
    extract_inline_agents, strip,
};
use threadline_session::{AgentIndex, Session, SessionFamily};
use threadline_testkit::log;

use crate::support::{NEW, new, plan, rendered, session};

/// Parallel calls, with results that Claude Code writes as a fork.
const PARALLEL: &str = r#"
u1        user   "list and count"
a1 <- u1  reply  m1 thinking "Both." "sig"
a2 <- a1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a2  result t1 "a"
a3 <- a2  reply  m1 tool t2 Bash {"command":"wc"}
r2 <- a3  result t2 "1"
a4 <- r2  reply  m2 text "One file."
last-prompt "list and count" leaf a4
"#;

#[test]
fn parallel_results_become_one_chain() {
    let session = session(&log(PARALLEL));
    let plan = plan(&session, new(), |draft| clone(draft, None, Some("T")).unwrap());
    assert_snapshot!(rendered(&plan), @r"
    u1' @00:00 user
    a1' <- u1' @00:01 assistant thinking
    a2' <- a1' @00:02 assistant tool_use
    a3' <- a2' @00:04 assistant tool_use
    r1' <- a3' @00:04.001 user tool_result
    r2' <- r1' @00:05 user tool_result
    a4' <- r2' @00:06 assistant text
    - custom-title
    ");
    assert_eq!(plan.counts(), [1, 0, 1]);
    assert_eq!(plan.tokens_before(), plan.tokens_after());
    let text = String::from_utf8(plan.to_bytes()).unwrap();
    assert!(text.lines().all(|line| line.contains(&format!("\"sessionId\":\"{NEW}\""))));
    assert_eq!(text.matches("\"forkedFrom\":{\"sessionId\":\"s1\",\"messageUuid\":").count(), 7);
}

#[test]
fn a_cut_ends_with_the_turn_or_with_the_whole_reply() {
    let session =
        session(&log(&format!("{PARALLEL}\nu2 <- a4 user \"more\"\na5 <- u2 reply m3 text \"No.\"")));
    let ends = |cut: CutPoint| {
        let plan = plan(&session, new(), |draft| clone(draft, Some(&cut), Some("T")).unwrap());
        let listed = rendered(&plan);
        let last = listed.lines().rfind(|line| !line.starts_with('-')).unwrap().to_owned();
        last.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(ends(CutPoint::Turn(1)), "a4'");
    assert_eq!(ends(CutPoint::Turn(2)), "a5'");
    assert_eq!(ends(CutPoint::Uuid("u2".into())), "u2'");
    assert_eq!(ends(CutPoint::Uuid("a1".into())), "r2'");
    let mut draft = threadline_edit::EditDraft::new(&session);
    assert!(clone(&mut draft, Some(&CutPoint::Turn(3)), None).is_err());
    assert!(clone(&mut draft, Some(&CutPoint::Uuid("no".into())), None).is_err());
}

#[test]
fn a_chain_edited_in_place_is_unchanged() {
    let straight = log("u1 user \"hi\"\na1 <- u1 reply m1 text \"Hello.\"\ntitle \"x\"");
    let session = session(&straight);
    let plan = plan(&session, PlanTarget::InPlace, |_| ());
    assert_eq!(plan.to_bytes(), straight);
    assert!(plan.is_empty());
}

#[test]
fn a_misplaced_result_is_moved_and_a_missing_uuid_is_added() {
    let reasons = |notation: &str| -> Vec<String> {
        let session = session(&log(notation));
        let plan = plan(&session, new(), |draft| clone(draft, None, Some("T")).unwrap());
        assert_eq!(plan.refusals(), [""; 0]);
        let changes = plan.changes().filter(|change| change.kind == ChangeKind::Changed);
        changes.map(|change| format!("{} {}", change.line_no.unwrap(), change.reasons.join("; "))).collect()
    };
    let behind = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
a2 <- a1  reply  m2 tool t2 Bash
r2 <- a2  result t2 "two"
r1 <- r2  result t1 "one"
a3 <- r1  reply  m3 text "Done."
"#;
    assert_eq!(reasons(behind), ["5 moved to its call (Claude Code drops results after another reply)"]);
    let nameless = "u1 user \"go\" -uuid\na1 <- u1 reply m1 text \"Yes.\" -uuid";
    assert_eq!(reasons(nameless), ["1 uuid added", "2 uuid added"]);
}

/// A sub-agent inside the log, as written by 1.0.x.
const INLINE: &str = r#"
u1        user   "find it"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"where?"}
x1        user   "where?" sidechain
x2 <- x1  reply  n1 tool t9 Grep {"pattern":"fn"} sidechain
x3 <- x2  result t9 "src" sidechain
x4 <- x3  reply  n2 text "In src." sidechain
r1 <- a1  result t1 "In src."
a2 <- r1  reply  m2 text "There."
"#;

#[test]
fn an_inline_sub_agent_is_extracted_to_a_log() {
    let session = session(&log(INLINE));
    let folder = Path::new("/p/new/subagents");
    let made = |without_tools: bool| {
        let plan = plan(&session, new(), |draft| {
            clone(draft, None, Some("T")).unwrap();
            if without_tools {
                strip(
                    draft,
                    &StripOptions { tools: Some(ToolStripOptions::default()), ..StripOptions::default() },
                    "x",
                );
            }
            extract_inline_agents(draft, folder, &crate::support::options(new()).seed);
        });
        assert_eq!(plan.refusals(), [""; 0]);
        let gone = plan.changes().filter(|change| change.kind == ChangeKind::Removed);
        let moved = gone
            .filter(|change| change.reasons.iter().any(|why| why.contains("extracted to a separate log")))
            .count();
        let [SideFileOp::CreateLog { path, content }] = plan.side_files() else { panic!("one agent") };
        assert_eq!(path.parent(), Some(folder));
        let mut log = Vec::new();
        plan.rewrite_ids(content, &mut log);
        (moved, Session::from_bytes(&plan.to_bytes()), Session::from_bytes(&log))
    };
    let (moved, main, agent) = made(false);
    assert_eq!((moved, agent.entries().len()), (4, 4));
    assert!(agent.entries().iter().all(|entry| entry.get("agentId").is_some() && entry.is_sidechain()));
    assert!(agent.findings().is_empty(), "{:?}", agent.findings());
    let call = agent.entries().as_slice()[2].get("sourceToolAssistantUUID").and_then(|json| json.as_str());
    assert_eq!(call, agent.entries().as_slice()[1].uuid());
    let mut known = threadline_session::Subagent::bare("a".into());
    known.session = agent;
    let family = SessionFamily::new(main, vec![known]);
    assert_eq!(family.agents.len(), 1);
    assert_eq!(family.agents[AgentIndex::FIRST].spawn.as_ref().map(|spawn| &*spawn.tool_use_id), Some("t1"));
    // Content removed from the session is also removed from the extracted log.
    let (_, _, agent) = made(true);
    let parents: Vec<_> = agent.entries().iter().map(|entry| entry.parent_uuid().is_some()).collect();
    assert_eq!(parents, [false, true]);
    assert!(agent.findings().is_empty(), "{:?}", agent.findings());
}

#[test]
fn deeply_nested_values_do_not_overflow_the_stack() {
    let deep = "[".repeat(500) + "7" + &"]".repeat(500);
    let line = String::from_utf8(log("u1 user \"go\"\na1 <- u1 reply m1 text \"Done.\"")).unwrap();
    let text = line.replacen("{", &format!("{{\"extra\":{deep},"), 1);
    let source = session(text.as_bytes());
    let cloned = plan(&source, new(), |draft| clone(draft, None, Some("T")).unwrap());
    assert!(String::from_utf8(cloned.to_bytes()).unwrap().contains(&deep));
}

#[test]
fn very_many_lines_that_precede_their_ancestors_get_their_parents_in_one_walk() {
    // Nothing may follow the end of the conversation, so sidechains below it are placed where they are.
    const N: usize = 40_000;
    let below = (0..N).map(|idx| format!("l{idx} <- a{} user \"x\" +{{\"isSidechain\":true}}\n", N - 1));
    let talk = (1..N).map(|idx| format!("a{idx} <- a{} user \"x\"\n", idx - 1));
    let first = "a0 user \"x\"\n".to_owned();
    let session = session(&log(&std::iter::once(first).chain(below).chain(talk).collect::<String>()));
    let plan = plan(&session, PlanTarget::InPlace, |_| ());
    let result = Session::from_bytes(&plan.to_bytes());
    let parent = |idx: usize| result.ancestors(result.find(&format!("l{idx}")).unwrap()).nth(1);
    assert!((0..N).step_by(999).all(|idx| parent(idx) == result.find("a0")));
}

#[test]
fn very_many_sub_agents_below_a_long_one_are_extracted_in_one_walk() {
    // They precede all lines above them, so each is a sub-agent of its own.
    const N: usize = 20_000;
    let side = |line: String| format!("{line} user \"x\" +{{\"isSidechain\":true}}\n");
    let below = (0..N).map(|idx| side(format!("l{idx} <- a{}", N - 1)));
    let long = (1..N).map(|idx| side(format!("a{idx} <- a{}", idx - 1)));
    let first = ["u1 user \"x\"\n".to_owned()].into_iter();
    let session =
        session(&log(&first.chain(below).chain([side("a0".to_owned())]).chain(long).collect::<String>()));
    let plan = plan(&session, new(), |draft| {
        clone(draft, None, Some("T")).unwrap();
        extract_inline_agents(draft, Path::new("agents"), &crate::support::options(new()).seed);
    });
    assert_eq!(plan.side_files().len(), N + 1);
}
