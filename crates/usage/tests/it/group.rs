//! Totals and groups; days in time zones.

use jiff::tz::TimeZone;
use threadline_usage::{CallGroups, GroupBy, PriceBook, UsageTotals};

use crate::{TestLogs, name};

pub(crate) const ALL_GROUPINGS: [GroupBy; 8] = [
    GroupBy::Day,
    GroupBy::Week,
    GroupBy::Month,
    GroupBy::Session,
    GroupBy::Project,
    GroupBy::Model,
    GroupBy::Tool,
    GroupBy::Branch,
];

/// Returns the sum of the groups, without `tool_calls`, which only grouping by tool sets.
pub(crate) fn sum(groups: &CallGroups) -> UsageTotals {
    let mut sum = UsageTotals::default();
    for group in &groups.groups {
        sum += &group.totals;
    }
    UsageTotals { tool_calls: 0, ..sum }
}

#[test]
fn groupings_are_found_by_their_names() {
    for by in GroupBy::ALL {
        assert_eq!(GroupBy::from_name(by.name()), Some(by));
    }
    assert_eq!(GroupBy::from_name("Day"), None);
}

#[test]
fn a_total_is_the_sum_of_its_parts_in_every_grouping() {
    let log = r#"
a1        reply msg_1 [tool t1 Bash, tool t2 Read, tool t3 Grep] model=claude-opus-5 usage={"input_tokens":100,"output_tokens":7,"cache_read_input_tokens":11}
a2 <- a1  reply msg_2 tool t4 Bash {} model=nobody-knows usage={"input_tokens":3} @+1d
a3 <- a2  reply msg_3 text "x" model=claude-haiku-4-5 usage={"output_tokens":1} @+40d branch=side
a4 <- a3  reply msg_4 text "x" model=claude-haiku-4-5 usage={"output_tokens":1} -timestamp
"#;
    let home = TestLogs::default().session("s1", log).session("s2", &log.replace("msg_", "msg_2"));
    let total = home.total();
    assert_eq!(total.calls, 8);
    for by in ALL_GROUPINGS {
        let groups = home.groups(by);
        assert_eq!(sum(&groups), total, "{by:?}");
        assert_eq!(UsageTotals { tool_calls: 0, ..groups.total }, total, "{by:?}");
    }
}

#[test]
fn parallel_and_sequential_sums_are_equal() {
    use std::fmt::Write;
    let tools = ["Bash", "Grep", "Read"];
    let mut log = String::new();
    for n in 0..20_001 {
        let tool = tools[n % 3];
        let line = format!("a{n} reply msg_{n} tool t{n} {tool} {{}} model=m{}", n % 2);
        writeln!(log, r#"{line} usage={{"input_tokens":{n},"output_tokens":1}}"#).unwrap();
    }
    let read = TestLogs::default().session("s1", &log).read();
    let by_tool = read.groups(GroupBy::Tool);
    for (n, tool) in (0..).zip(tools) {
        let group = by_tool.groups.iter().find(|group| name(&group.key) == tool).unwrap();
        let UsageTotals { calls, tool_calls, tokens, .. } = &group.totals;
        let input = (n..20_001).step_by(3).sum();
        assert_eq!((*calls, *tool_calls, tokens.output, tokens.input), (6667, 6667, 6667, input), "{tool}");
        assert_eq!(group.last_at.unwrap() - group.first_at.unwrap(), 19_998_000, "{tool}");
    }
    for by in ALL_GROUPINGS {
        let total = read.groups(by).total;
        assert_eq!((total.calls, total.unpriced.len()), (20_001, 2), "{by:?}");
    }
}

#[test]
fn days_weeks_and_months_have_their_names() {
    let log = r#"
a1        reply msg_1 text "x" @2026-12-31T12:00:00Z
a2 <- a1  reply msg_2 text "x" @2027-01-03T12:00:00Z
a3 <- a2  reply msg_3 text "x" @2027-01-04T12:00:00Z
a4 <- a3  reply msg_4 text "x" -timestamp
"#;
    let home = TestLogs::default().session("s1", log);
    let names = |by: GroupBy| home.groups(by).groups.iter().map(|group| name(&group.key)).collect::<Vec<_>>();
    assert_eq!(names(GroupBy::Day), ["2026-12-31", "2027-01-03", "2027-01-04", "undated"]);
    assert_eq!(names(GroupBy::Week), ["2026-W53", "2027-W01", "undated"]);
    assert_eq!(names(GroupBy::Month), ["2026-12", "2027-01", "undated"]);
}

#[test]
fn a_day_begins_at_midnight_in_its_zone_also_when_clocks_change() {
    // Berlin: clocks go back on 2026-10-25 at 03:00 and forward on 2026-03-29 at 02:00.
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    let day = |moment: &str| {
        let log = format!("a1 reply msg_1 text \"x\" @{moment}");
        let calls = TestLogs::default().session("s1", &log).calls();
        let groups = CallGroups::of(&calls, GroupBy::Day, &PriceBook::embedded(), &zone, |_, _| true);
        name(&groups.groups[0].key)
    };
    for (moment, expected) in [
        ("2026-10-24T21:59:59.999Z", "2026-10-24"),
        ("2026-10-24T22:00:00Z", "2026-10-25"),
        ("2026-10-25T22:59:59.999Z", "2026-10-25"),
        ("2026-10-25T23:00:00Z", "2026-10-26"),
        ("2026-03-28T23:00:00Z", "2026-03-29"),
        ("2026-03-29T21:59:59Z", "2026-03-29"),
        ("2026-03-29T22:00:00Z", "2026-03-30"),
    ] {
        assert_eq!(day(moment), expected, "{moment}");
    }
    // The same with many times in one run, unsorted.
    let log: String = (0..200)
        .map(|n| format!("a{n} reply msg_{n} text \"x\" @2026-10-2{}T{:02}:30:00Z\n", n * 7 % 9, n * 5 % 24))
        .collect();
    let calls = TestLogs::default().session("s1", &log).calls();
    let groups = CallGroups::of(&calls, GroupBy::Day, &PriceBook::embedded(), &zone, |_, _| true);
    let mut expected = std::collections::BTreeMap::<String, u64>::new();
    for call in calls.iter() {
        let moment = jiff::Timestamp::from_millisecond(call.at.unwrap()).unwrap();
        *expected.entry(moment.to_zoned(zone.clone()).date().to_string()).or_default() += 1;
    }
    let found: Vec<_> = groups.groups.iter().map(|group| (name(&group.key), group.totals.calls)).collect();
    assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn a_project_is_where_the_session_began() {
    let main = r#"
snapshot u1
u1        user "go"
a1 <- u1  reply msg_1 text "x" cwd=/home/ada/loom/deep usage={"input_tokens":1}
"#;
    let home = TestLogs::default().session("s1", main).agent(
        "s1",
        "a1",
        "b1 reply msg_2 text \"x\" cwd=/tmp/worktree",
    );
    assert_eq!(home.formatted_groups(GroupBy::Project), ["/home/ada/loom: 2 calls, 1 in, 0 out, $0.000005"]);
}

#[test]
fn only_selected_calls_are_added() {
    let home = TestLogs::default()
        .session("s1", "a1 reply msg_1 text \"x\" usage={\"input_tokens\":1}")
        .session("s2", "a1 reply msg_2 text \"x\" usage={\"input_tokens\":2}");
    let groups =
        CallGroups::of(&home.calls(), GroupBy::Day, &PriceBook::embedded(), &TimeZone::UTC, |_, session| {
            session == "s2"
        });
    assert_eq!(groups.total.tokens.input, 2);
}

#[test]
fn nested_groups_add_up_to_their_groups() {
    let log = r#"
a1        reply msg_1 [tool t1 Bash, tool t2 Read] model=claude-opus-5 usage={"input_tokens":100,"output_tokens":7}
a2 <- a1  reply msg_2 tool t4 Bash {} model=nobody-knows usage={"input_tokens":3} @+1d
a3 <- a2  reply msg_3 text "x" model=claude-haiku-4-5 usage={"output_tokens":1} @+40d
a4 <- a3  reply msg_4 text "x" model=claude-haiku-4-5 usage={"output_tokens":1} -timestamp
"#;
    let home = TestLogs::default().session("s1", log).session("s2", &log.replace("msg_", "msg_2"));
    let calls = home.calls();
    let (book, zone) = (PriceBook::embedded(), TimeZone::UTC);
    for outer in ALL_GROUPINGS.into_iter().filter(|by| *by != GroupBy::Tool) {
        let groups = CallGroups::of(&calls, outer, &book, &zone, |_, _| true).groups;
        for inner in ALL_GROUPINGS {
            let crossed = CallGroups::nested(&calls, (outer, inner), &book, &zone, |_| true);
            for (group, parts) in &crossed {
                assert_eq!(sum(parts), group.totals, "{outer:?} {inner:?}");
            }
            let whole: Vec<_> = crossed.into_iter().map(|(group, _)| group).collect();
            assert_eq!(whole, groups, "{outer:?} {inner:?}");
        }
    }
    let opus = CallGroups::nested(&calls, (GroupBy::Day, GroupBy::Model), &book, &zone, |call| {
        call.model == "claude-opus-5"
    });
    assert_eq!((opus.len(), opus[0].1.groups.len(), opus[0].0.totals.calls), (1, 1, 2));
}

#[test]
fn logs_with_a_copy_of_a_call_are_found() {
    let log = "a1 reply msg_1 text \"x\" usage={\"input_tokens\":1}";
    let home = TestLogs::default().session("s1", log).session("s2", log);
    let calls = home.session("s3", &log.replace("msg_1", "msg_2")).calls();
    let of = |session: &str| calls.logs_of(|call| call.session == session).len();
    assert_eq!((of("s1"), of("s2"), of("s3")), (2, 0, 1));
}
