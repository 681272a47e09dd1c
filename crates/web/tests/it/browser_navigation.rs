//! Session pages in a real browser: states of calls, matches and errors, and the ways between them.

use serde_json::json;
use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{TestServer, assert_no_browser_errors};

#[test]
fn a_call_of_a_live_session_is_running_until_claude_code_exits() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    home.session(
        "loom",
        "u1 user \"weave\" @2026-02-01T10:00:00Z\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"make\"} @2026-02-01T10:00:05Z",
    );
    let id = session_uuid("loom");
    let pid = std::process::id();
    let process = home.file(format!("sessions/{pid}.json"), json!({"pid": pid, "sessionId": id}).to_string());
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.querySelector('#m2 .running')?.dataset.since");
    let text = browser.run("return document.querySelector('#m2 .running').textContent");
    assert!(
        text.as_str().is_some_and(|text| text.starts_with("running ") && text.ends_with(" min")),
        "{text}"
    );
    assert_eq!(
        browser.run("return [document.querySelectorAll('main .bad, main .outcome').length, document.querySelectorAll('#rail .bad').length]"),
        json!([0, 0])
    );
    assert_no_browser_errors(&browser);
    std::fs::remove_file(process).unwrap();
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.querySelector('#m2.bad .outcome')?.textContent === 'no result'");
}
