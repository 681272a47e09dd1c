//! Usage over many logs: the same figures read once and counted in the background.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use threadline_app::{MAX_LINE, SessionCounter};
use threadline_testkit::{TestHome, session_uuid};
use threadline_usage::{ModelCalls, ScanOptions};

use crate::app;

const CALL: &str = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  m1 text "Let me look." usage={"input_tokens":10,"output_tokens":5}
"#;

/// Appends a reply with a line longer than the limit. The reader checks the limit per chunk, hence the
/// margin.
fn append_long_call(log: &Path) {
    let text = "x".repeat(MAX_LINE + (8 << 20));
    let mut log = std::fs::File::options().append(true).open(log).unwrap();
    writeln!(
        log,
        "{{\"type\":\"assistant\",\"uuid\":\"u\",\"timestamp\":\"2026-01-01T10:00:05.000Z\",\"message\":{{\"id\":\"msg_long\",\"model\":\"claude-opus-5\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"usage\":{{\"input_tokens\":1000,\"output_tokens\":0}}}}}}"
    )
    .unwrap();
}

fn input_tokens(calls: &ModelCalls) -> u64 {
    calls.iter().map(|call| call.tokens.input).sum()
}

#[test]
fn lines_that_are_too_long_are_left_out_and_reported_wherever_usage_is_counted() {
    let home = TestHome::new();
    append_long_call(&home.session("long", CALL));
    let app = app(&home);
    let read = app.usage_logs(&[]).unwrap().logs.read(ScanOptions::default(), &|| ());
    let logs = Arc::new(app.store().session_logs().found);
    let counter = SessionCounter::new(app.prices().unwrap(), TimeZone::UTC, || ());
    let counted = counter.count(&logs, Duration::from_secs(60));
    assert_eq!((input_tokens(&read.calls), input_tokens(&counted.calls)), (10, 10));
    assert_eq!(read.unread.len(), 1);
    let message = &read.unread[0];
    assert!(message.contains(" skipped: ") && message.ends_with(" long"), "{message}");
    assert_eq!(counted.unread, read.unread);
    assert_eq!(counted.n_missing(&logs), 0);
}

#[test]
fn the_counter_has_figures_by_session_and_follows_changes() {
    let home = TestHome::new();
    let log = home.session("slow", CALL);
    let app = app(&home);
    let counter = SessionCounter::new(app.prices().unwrap(), TimeZone::UTC, || ());
    let count = || counter.count(&Arc::new(app.store().session_logs().found), Duration::from_secs(60));
    let id = session_uuid("slow");
    assert_eq!(count().by_session[&id].totals.tokens.input, 10);
    append_long_call(&log);
    assert_eq!(count().unread.len(), 1);
    std::fs::remove_file(&log).unwrap();
    let gone = count();
    assert!(gone.by_session.is_empty() && gone.unread.is_empty());
}

#[test]
fn a_named_session_is_counted_with_what_it_did_not_inherit() {
    let home = TestHome::new();
    home.session("first", CALL);
    home.session("second", &CALL.replace("m1", "m2"));
    let app = app(&home);
    let chosen = app.usage_logs(&[session_uuid("second")]).unwrap();
    assert_eq!(chosen.logs.found.len(), 2, "a call may belong to another session");
    assert_eq!(chosen.sessions.unwrap().into_iter().collect::<Vec<_>>(), [session_uuid("second")]);
    let folder = home.root().to_string_lossy().into_owned();
    let all = app.usage_logs(&[folder, session_uuid("second")]).unwrap();
    assert_eq!((all.logs.found.len(), all.sessions), (2, None));
    assert!(app.usage_logs(&["nobody".to_owned()]).is_err());
}
