//! Five-hour windows.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use threadline_usage::{PriceBook, limit_end, windows};

use crate::TestLogs;

fn formatted_windows(notation: &str) -> Vec<String> {
    let calls = TestLogs::default().session("s1", notation).calls();
    let resets: Vec<_> =
        calls.limits().iter().filter_map(|limit| limit_end(limit, &TimeZone::UTC, |_| None)).collect();
    let time = |at: i64| Timestamp::from_millisecond(at).unwrap().strftime("%d %H:%M").to_string();
    windows(&calls, &PriceBook::embedded(), &resets, |_| true)
        .iter()
        .map(|window| {
            let kind = if window.stated { "stated" } else { "estimate" };
            format!("{} to {} {kind}: {} calls", time(window.start), time(window.end), window.totals.calls)
        })
        .collect()
}

#[test]
fn windows_without_a_notice_are_estimates() {
    let log = r#"
a1        reply msg_1 text "a" @10:20:00
a2 <- a1  reply msg_2 text "a" @14:59:00
a3 <- a2  reply msg_3 text "a" @15:01:00
a4 <- a3  reply msg_4 text "a" @2026-01-02T03:00:00Z
"#;
    assert_eq!(
        formatted_windows(log),
        [
            "01 10:00 to 01 15:00 estimate: 2 calls",
            "01 15:00 to 01 20:00 estimate: 1 calls",
            "02 03:00 to 02 08:00 estimate: 1 calls"
        ]
    );
}

#[test]
fn a_stated_end_overrides_the_estimate() {
    let log = r#"
a1        reply msg_1 text "a" @10:20:00
a2 <- a1  reply msg_2 text "a" @11:50:00
a3 <- a2  reply msg_3 text "a" @12:00:00
a4 <- a3  reply msg_4 text "You've hit your session limit · resets 4:40pm" model="<synthetic>" +{"isApiErrorMessage":true} @14:00:00
a5 <- a4  reply msg_5 text "a" @16:40:00
"#;
    assert_eq!(
        formatted_windows(log),
        [
            "01 10:00 to 01 11:40 estimate: 1 calls",
            "01 11:40 to 01 16:40 stated: 2 calls",
            "01 16:00 to 01 21:00 estimate: 1 calls"
        ]
    );
}

#[test]
fn an_open_window_has_a_cost_per_hour() {
    let log = r#"
a1        reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":100000} @10:00:00
a2 <- a1  reply msg_2 text "a" model=claude-opus-5 usage={"input_tokens":100000} @11:00:00
"#;
    let calls = TestLogs::default().session("s1", log).calls();
    let [window] = windows(&calls, &PriceBook::embedded(), &[], |_| true).try_into().unwrap();
    let now = window.start + 2 * 3_600_000;
    assert!(window.is_active(now) && !window.is_active(window.end));
    assert_eq!(window.cost_per_hour().unwrap().to_string(), "1");
    assert_eq!(window.projected(now).unwrap().to_string(), "4");
}
