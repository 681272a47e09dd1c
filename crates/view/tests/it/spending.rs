//! The cost of a session, by reply, turn, sub-agent and branch.

use threadline_session::SessionFamily;
use threadline_testkit::log;
use threadline_usage::PriceBook;
use threadline_view::{Spending, Transcript, TranscriptBuilder, UsageTotals, markdown};

fn transcript_of(main: &str, agents: &[(&str, &str)]) -> Transcript {
    let agents = agents.iter().map(|(id, notation)| ((*id).to_owned(), log(notation)));
    let family = SessionFamily::from_bytes(&log(main), agents);
    let spending = Spending::of(&family, &PriceBook::embedded());
    TranscriptBuilder { spending: Some(&spending), ..TranscriptBuilder::new(&family) }.transcript()
}

fn cost_text(spent: &UsageTotals) -> String {
    format!("{} calls, {}", spent.calls, spent.short_cost())
}

/// One hundred thousand output tokens of a model that costs 25 dollars per million.
const USED: &str = r#"usage={"input_tokens":0,"output_tokens":100000}"#;

#[test]
fn a_reply_of_several_lines_is_counted_once() {
    let transcript = transcript_of(
        &format!(
            r#"
u1        user   "why?"
a1 <- u1  reply  m1 thinking "Hm." {USED}
a2 <- a1  reply  m1 text "Because." {USED}
u2 <- a2  user   "really?"
a3 <- u2  reply  m2 text "Yes." {USED}
"#
        ),
        &[],
    );
    let turns: Vec<String> = transcript.turns.iter().map(|turn| cost_text(&turn.spent)).collect();
    assert_eq!(turns, ["1 calls, $2.50", "1 calls, $2.50"]);
    let items: Vec<bool> = transcript.turns[0].items.iter().map(|item| item.spent.is_some()).collect();
    assert_eq!(items, [false, true, false]);
    assert_eq!(cost_text(&transcript.header.spent), "2 calls, $5.00");
    assert!(
        markdown(&transcript, threadline_view::DetailLevel::Chat)
            .contains("s1 · /home/ada/loom · main · $5.00\n")
    );
}

#[test]
fn sub_agents_count_for_the_turn_that_started_them() {
    let main = format!(
        r#"
u1        user   "dig"
a1 <- u1  reply  m1 tool t1 Agent {{"prompt":"deeper"}} {USED}
r1 <- a1  result t1 "found" {{"agentId":"x1"}}
"#
    );
    let deeper = format!("u1 user \"deeper\" sidechain\na1 <- u1 reply n1 text \"Down.\" sidechain {USED}");
    let stray = format!("u1 user \"tidy\" sidechain\na1 <- u1 reply n2 text \"Done.\" sidechain {USED}");
    let transcript = transcript_of(&main, &[("x1", &deeper), ("x2", &stray)]);
    assert_eq!(cost_text(&transcript.turns[0].spent), "2 calls, $5.00");
    assert_eq!(cost_text(&transcript.turns[0].spent_by_agents), "1 calls, $2.50");
    let strays: Vec<(&str, String)> =
        transcript.end.agents.iter().map(|agent| (&*agent.id, cost_text(&agent.spent))).collect();
    assert_eq!(strays, [("x2", "1 calls, $2.50".to_owned())]);
    assert_eq!(cost_text(&transcript.header.spent), "3 calls, $7.50");
}

#[test]
fn unknown_prices_are_reported() {
    let transcript = transcript_of(
        r#"
u1        user   "why?"
a1 <- u1  reply  m1 text "Because." model=loom-9 usage={"input_tokens":9,"output_tokens":9}
u2 <- a1  user   "really?"
a2 <- u2  reply  m2 text "Yes." version=2.0.1 usage={"input_tokens":9,"output_tokens":100000}
"#,
        &[],
    );
    let turns: Vec<String> = transcript.turns.iter().map(|turn| cost_text(&turn.spent)).collect();
    assert_eq!(turns, ["1 calls, no price", "1 calls, ≥ $2.50"]);
    let caveat = transcript.header.spent.caveat().unwrap();
    assert_eq!(caveat, "1 call without a price (loom-9); 1 call with under-reported output tokens");
}

#[test]
fn branches_have_their_own_cost() {
    let transcript = transcript_of(
        &format!(
            r#"
u1        user   "why?"
a1 <- u1  reply  m1 text "Because." {USED}
u2 <- u1  user   "once more"
a2 <- u2  reply  m2 text "So." {USED}
"#
        ),
        &[],
    );
    let branch: Vec<String> = transcript
        .end
        .branches
        .iter()
        .flat_map(|branch| &branch.turns)
        .map(|turn| cost_text(&turn.spent))
        .collect();
    assert_eq!(branch, ["1 calls, $2.50"]);
    assert_eq!(cost_text(&transcript.header.spent), "2 calls, $5.00");
}
