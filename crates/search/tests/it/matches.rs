//! Matches, how they are reported, and the text that is deliberately excluded.

use insta::assert_snapshot;
use threadline_testkit::log;

use crate::search;

/// Returns one line per match: anchor, line, kind, tool, and the text with matches in brackets.
fn described(text: &str, log: &[u8]) -> String {
    let mut out = String::new();
    for found in search(text, log) {
        let mut marked = found.text.clone();
        for range in found.ranges.iter().rev() {
            marked.insert(range.end, ']');
            marked.insert(range.start, '[');
        }
        let tool = found.tool.as_deref().unwrap_or("-");
        out.push_str(&format!(
            "{} line {} {} {tool}: {marked}\n",
            found.anchor,
            found.line_no,
            found.kind.name()
        ));
    }
    out
}

const TALK: &str = r#"
u1        user   "why is the loom slow?" branch=main
a1 <- u1  reply  m1 [thinking "Perhaps a slow sleep.", text "Let me look why it is slow.", tool t1 Grep {"pattern":"slow","path":"src/loom.rs"}] model=claude-opus-4-8
r1 <- a1  result t1 "src/loom.rs:9: slow();\nmore" {"stdout":"slow slow slow"}
a2 <- r1  reply  m2 tool t2 Bash {"command":"cargo test -- slow"} branch=fix
r2 <- a2  result t2 "error: slow test failed" error
s1 <- r2  system local_command "<local-command-stdout>slow output</local-command-stdout>"
p1 <- s1  progress bash t2 {"output":"slow progress"}
q1 <- p1  attach queued_command {"prompt":"be less slow","commandMode":"prompt"}
c1        user   "<command-name>/slow</command-name>"
i1        user   [image, text "slow picture"]
k1        user   "a slow skill" meta
n1        user   "<task-notification>slow task</task-notification>"
title "Slow loom"
ai-title "A slow loom"
summary "The slow summary" leaf a2
queue enqueue "slow in the queue"
last-prompt "slow last" leaf a2
entry api-request-blob {"message":{"role":"user","content":"slow blob"}}
"#;

#[test]
fn every_kind_of_text_is_found_once_and_copies_are_not() {
    assert_snapshot!(described("slow", &log(TALK)), @r"
    m1 line 1 prompt -: why is the loom [slow]?
    m2 line 2 thinking -: Perhaps a [slow] sleep.
    m2.2 line 2 reply -: Let me look why it is [slow].
    m2.3 line 2 tool Grep: [slow]
    m2.3 line 3 result Grep: src/loom.rs:9: [slow]();
    m4 line 4 tool Bash: cargo test -- [slow]
    m4 line 5 result Bash: error: [slow] test failed
    m6 line 6 output -: <local-command-stdout>[slow] output</local-command-stdout>
    m8 line 8 prompt -: be less [slow]
    m9 line 9 prompt -: <command-name>/[slow]</command-name>
    m10 line 10 prompt -: [slow] picture
    m11 line 11 notice -: a [slow] skill
    m12 line 12 notice -: <task-notification>[slow] task</task-notification>
    m13 line 13 title -: [Slow] loom
    m14 line 14 title -: A [slow] loom
    m15 line 15 summary -: The [slow] summary
    ");
}

#[test]
fn fields_filter() {
    let log = log(TALK);
    let lines = |text: &str| search(text, &log).iter().map(|found| found.line_no).collect::<Vec<_>>();
    for (text, expected) in [
        ("slow kind:prompt", &[1, 8, 9, 10][..]),
        ("slow kind:prompt kind:title", &[1, 8, 9, 10, 13, 14]),
        ("slow role:assistant", &[2, 2, 2, 4]),
        ("slow role:assistant -kind:thinking", &[2, 2, 4]),
        ("tool:bash", &[4, 5]),
        ("tool:gr*", &[2, 3]),
        ("path:loom.rs", &[2, 3]),
        ("path:/\\.rs$/ kind:result", &[3]),
        ("path:other", &[]),
        ("command:\"cargo test\"", &[4, 5]),
        ("error:true", &[5]),
        ("error:test", &[5]),
        ("error:nothing", &[]),
        ("slow -error:test kind:result", &[3]),
        ("slow error:false kind:result", &[3]),
        ("slow branch:fix", &[4]),
        ("slow model:opus-4-8 kind:reply", &[2]),
        ("slow since:2026-01-01T10:00:03Z until:2026-01-01T10:00:04Z", &[4, 5]),
        ("slow since:2026-02", &[]),
        ("slow -loom kind:prompt", &[8, 9, 10]),
        ("slow session:s1 project:anything", &[1, 2, 2, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15]),
    ] {
        assert_eq!(lines(text), expected, "{text}");
    }
}

#[test]
fn changes_of_a_command_are_found_in_its_result() {
    let log = log(r#"
u1        user   "go"
a1 <- u1  reply  m1 [text "Now.", tool t1 Bash {"command":"./weave"}]
r1 <- a1  result t1 "ok" {"stdout":"ok only here","bashEditDiff":{"files":[{"filePath":"/home/ada/loom/a.rs","hunks":[{"oldStart":3,"newStart":3,"lines":["-old knot","+new knot"]}]}],"moreFiles":1,"changedFiles":["/home/ada/loom/a.rs","/home/ada/loom/b.png"]}}
"#);
    assert_eq!(described("\"old knot\"", &log), "m2.2 line 3 result Bash: -[old knot]\n");
    // Words of the output and of the changes are in one text.
    assert_eq!(
        described("ok \"new knot\" kind:result", &log),
        "m2.2 line 3 result Bash: [ok]\n/home/ada/loom/a.rs\n-old knot\n+[new knot]\n"
    );
    assert_eq!(described("b.png tool:Bash", &log), "m2.2 line 3 result Bash: /home/ada/loom/[b.png]\n");
    assert_eq!(described("a.rs -knot", &log), "");
    assert_eq!(described("here", &log), "");
}

#[test]
fn the_task_of_a_sub_agent_is_not_a_prompt() {
    let log =
        log("u1 user \"find it\" sidechain agent=a1\na1 <- u1 reply m1 text \"found it\" sidechain agent=a1");
    assert_eq!(described("it", &log), "m1 line 1 task -: find [it]\nm2 line 2 reply -: found [it]\n");
}

#[test]
fn a_call_far_above_its_result_is_found() {
    let mut notation = "a1 reply m1 [text \"x\", tool t1 Read {\"file_path\":\"/far/away.rs\"}]\n".to_owned();
    let filler = "y".repeat(1000);
    for i in 0..3000 {
        notation.push_str(&format!("u{i} user \"{filler}\"\n"));
    }
    notation.push_str("r1 <- a1 result t1 \"the end of it\"\nr2 result t9 \"no end in sight\"\n");
    let log = log(&notation);
    assert_eq!(
        described("end", &log),
        "m1.2 line 3002 result Read: the [end] of it\nm3003 line 3003 result -: no [end] in sight\n"
    );
    assert_eq!(described("end path:away", &log), "m1.2 line 3002 result Read: the [end] of it\n");
}

#[test]
fn a_call_after_a_result_is_not_its_call() {
    // The log is read again for the first results, and indexed for the others.
    let results: String = (1..=6).map(|i| format!("r{i} result t{i} \"thread {i}\"\n")).collect();
    let calls: String = (1..=6).map(|i| format!("a{i} reply m{i} tool t{i} Bash {{}}\n")).collect();
    let tools: Vec<_> =
        search("thread", &log(&(results + &calls))).into_iter().map(|found| found.tool).collect();
    assert_eq!(tools, [const { None::<String> }; 6]);
}

#[test]
fn a_line_with_a_call_is_parsed_once_for_a_result() {
    // Parsing the long line for each letter of it would take hours.
    let letters = "e".repeat(1_000_000);
    let log = log(&format!(
        "a1 reply m1 tool e Bash {{}}\na2 <- a1 reply m2 tool t2 Read {{\"path\":\"{letters}\"}}\nr1 <- a2 result e \"warp\"\n"
    ));
    assert_eq!(described("warp", &log), "m1 line 3 result Bash: [warp]\n");
}

#[test]
fn a_call_is_found_below_very_many_lines_with_its_id() {
    let mut notation = "a1 reply m1 tool e Bash {}\n".to_owned();
    for n in 0..2000 {
        notation.push_str(&format!("b{n} reply n{n} tool t{n} Read {{\"path\":\"e\"}}\n"));
    }
    notation.push_str("r1 <- a1 result e \"warp\"\nr2 <- a1 result e \"warp weft\"\n");
    let expected = "m1 line 2002 result Bash: [warp]\nm1 line 2003 result Bash: [warp] weft\n";
    assert_eq!(described("warp", &log(&notation)), expected);
}

#[test]
fn copies_of_a_line_have_one_key() {
    let one = search("slow", &threadline_testkit::log_of("one", TALK));
    let two = search("slow", &threadline_testkit::log_of("two", TALK));
    let keys = |matches: &[threadline_search::SearchMatch]| {
        matches.iter().map(|found| found.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(&one), keys(&two));
    let mut all: Vec<_> = keys(&one).into_iter().flatten().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!((count, all.len()), (13, 13), "titles and summaries have no uuid");
}

#[test]
fn a_search_stops_when_the_sink_breaks() {
    let query = crate::query("slow");
    let log = log(TALK);
    let mut asked = 0;
    let enough = |_: &threadline_search::MatchRef<'_>| {
        asked += 1;
        std::ops::ControlFlow::Break(())
    };
    threadline_search::Searcher::new(&query).search(|| Ok(&log[..]), enough).unwrap();
    assert_eq!(asked, 1);
}

#[test]
fn a_result_has_its_call_at_any_distance() {
    let filler = "y".repeat(5000);
    for (n_between, n_calls, word) in
        [(0, 3, "fast"), (20, 3, "slow"), (20, 3, "fast"), (400, 7, "fast"), (400, 7, "slow")]
    {
        let mut notation = String::new();
        for i in 0..n_calls {
            notation.push_str(&format!("a{i} reply m{i} tool t{i} Tool{i} {{\"path\":\"src/{i}.rs\"}}\n"));
        }
        for i in 0..n_between {
            notation.push_str(&format!("u{i} user \"{word} {filler}\"\n"));
        }
        for i in 0..n_calls {
            notation.push_str(&format!("r{i} result t{i} \"slow result\"\n"));
        }
        let log = log(&notation);
        let found: Vec<_> = search("slow kind:result", &log)
            .into_iter()
            .map(|found| (found.anchor, found.tool.unwrap_or_default(), found.line_no))
            .collect();
        let expected: Vec<_> = (0..n_calls)
            .map(|i| (format!("m{}", i + 1), format!("Tool{i}"), n_calls + n_between + i + 1))
            .collect();
        assert_eq!(found, expected, "{n_between} {word}");
        assert_eq!(search("kind:result path:src/2", &log).len(), 1);
    }
}

#[test]
fn a_line_beyond_the_limits_is_searched_as_text() {
    let nested = |depth: usize| format!("{}\"a warp\"{}", "[".repeat(depth), "]".repeat(depth));
    let line = |depth: usize| format!("{{\"type\":\"x\",\"a\":{}}}\n", nested(depth));
    assert_eq!(described("warp", line(10).as_bytes()), "", "an unknown line has no text");
    let found = described("warp", line(600).as_bytes());
    assert!(found.starts_with("m1 line 1 notice -: ") && found.contains("[\"a [warp]\"]"), "{found}");
}
