//! Tests of replies: the lines of one message, wherever they are in the log.

use insta::assert_snapshot;
use threadline_session::ReplyIndex;

use crate::render::{names, replay, session, turns};

/// Renders each reply: its lines, its blocks, its output tokens.
fn replies(notation: &str) -> String {
    let session = session(notation);
    let reply = |reply: &threadline_session::Reply| {
        let blocks = reply.blocks(&session).map(|(_, block)| block.kind().unwrap_or_default());
        let blocks: Vec<_> = blocks.collect();
        let tokens = reply.usage(&session).and_then(|usage| usage.output_tokens());
        let tokens = tokens.map_or("no usage".into(), |tokens| format!("{tokens} tokens"));
        let id = reply.id.as_deref().unwrap_or("(no id)");
        format!("{id} on {}: {} ({tokens})\n", names(&session, &reply.entries), blocks.join(", "))
    };
    session.replies().iter().map(reply).collect()
}

#[test]
fn lines_of_a_message_need_not_be_adjacent() {
    assert_snapshot!(replies(r#"
u1        user   "go"
a1 <- u1  reply  m1 thinking "Hm."
snapshot u1
a2 <- a1  reply  m1 tool t1 Bash
p1 <- a2  progress hook t1
r1 <- a2  result t1 "ok"
b1 <- r1  reply  m2 text "Another."
a3 <- a2  reply  m1 tool t2 Bash
"#), @r"
    m1 on a1 a2 a3: thinking, tool_use, tool_use (0 tokens)
    m2 on b1: text (0 tokens)
    ");
}

#[test]
fn the_largest_usage_counts_once() {
    assert_snapshot!(replies(r#"
a1        reply m1 thinking "Hm."   usage={"output_tokens":1}
a2 <- a1  reply m1 text "So."       usage={"output_tokens":250}
a3 <- a2  reply m1 tool t1 Bash     usage={"output_tokens":9}
b1 <- a3  reply m2 text "Small"     usage={"output_tokens":0}
b2 <- b1  reply m2 text "then real" usage={"output_tokens":7}
c1 <- b2  reply m3 text "same"      usage={"output_tokens":5}
c2 <- c1  reply m3 text "again"     usage={"output_tokens":5}
raw {"type":"assistant","uuid":"d1","parentUuid":"c2","message":{"id":"m4","content":[]}}
"#), @r"
    m1 on a1 a2 a3: thinking, text, tool_use (250 tokens)
    m2 on b1 b2: text, text (7 tokens)
    m3 on c1 c2: text, text (5 tokens)
    m4 on d1:  (no usage)
    ");
}

#[test]
fn the_usage_of_a_reply_of_very_many_lines_is_read_from_one() {
    const N_LINES: usize = 30_000;
    let lines =
        (0..N_LINES).map(|idx| format!("a{idx} reply m1 text \"x\" usage={{\"output_tokens\":{idx}}}\n"));
    let session = session(&lines.collect::<String>());
    let reply = &session.replies()[ReplyIndex::FIRST];
    // One lookup per turn that the reply is in.
    let total: u64 = (0..N_LINES).filter_map(|_| reply.usage(&session)?.output_tokens()).sum();
    assert_eq!(total, (N_LINES * (N_LINES - 1)) as u64);
}

#[test]
fn lines_without_a_message_id_are_separate_replies() {
    assert_snapshot!(replies(r#"
raw {"type":"assistant","uuid":"a1","parentUuid":null,"message":{"content":[{"type":"text","text":"one"}]}}
raw {"type":"assistant","uuid":"a2","parentUuid":"a1","message":{"id":null,"content":[{"type":"text","text":"two"}]}}
raw {"type":"assistant","uuid":"a3","parentUuid":"a2"}
"#), @r"
    (no id) on a1: text (no usage)
    (no id) on a2: text (no usage)
    (no id) on a3:  (no usage)
    ");
}

#[test]
fn a_duplicated_reply_is_returned_once() {
    assert_snapshot!(replies(r#"
a1        reply m1 thinking "Hm."
a2 <- a1  reply m1 text "So."
b1        reply m1 thinking "Hm."
b2 <- b1  reply m1 text "So."
b3 <- b2  reply m1 tool t1 Bash
"#), @"m1 on a1 a2 b1 b2 b3: thinking, text, tool_use (0 tokens)");
}

#[test]
fn a_line_with_several_blocks_keeps_all_of_them() {
    // Equal blocks on one line are not duplicates. Only whole lines are logged twice.
    assert_snapshot!(replies(r#"a1 reply m1 [text "ha", text "ha", redacted, fallback a b, {"type":"hologram"}]"#), @"m1 on a1: text, text, redacted_thinking, fallback, hologram (0 tokens)");
}

#[test]
fn generated_replies_are_synthetic() {
    let session = session(
        r#"
a1        reply m1 text "API Error: 529"  model=<synthetic> +{"isApiErrorMessage":true}
a2 <- a1  reply m2 text "Here."
"#,
    );
    let synthetic: Vec<bool> = session.replies().iter().map(|reply| reply.is_synthetic()).collect();
    assert_eq!(synthetic, [true, false]);
    assert_eq!(session.replies()[ReplyIndex::FIRST.next()].model.as_deref(), Some("claude-opus-4-8"));
}

#[test]
fn a_reply_includes_lines_off_the_path() {
    // The parent of the next prompt is the first line. The second line still belongs to the reply.
    assert_snapshot!(turns(r#"
u1        user   "go"
a1 <- u1  reply  m1 text "One."
a2 <- a1  reply  m1 text "Two."
u2 <- a1  user   "on"
a3 <- u2  reply  m2 text "On."
"#), @r#"
    turn 1  new_session  "go"
      [u1 a1 a2]
      m1  text, text
    turn 2  new_round  "on"
      [u2 a3]
      m2  text
    "#);
}

#[test]
fn an_empty_line_of_a_reply_is_not_a_message() {
    assert_snapshot!(
        replay(
            r#"
            u1        user "one"
            a1 <- u1  reply m1 []
            u2 <- a1  user "go"
            a2 <- u2  reply m1 text "second"
            u3 <- a2  user "more"
            a3 <- u3  reply m1 []
            "#
        ),
        @r"
    user: text one, text go
    assistant: text second
    user: text more
    "
    );
}
