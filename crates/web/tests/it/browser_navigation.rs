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
    browser.wait_for("return document.querySelector('#m2:not(.bad) .gist')?.textContent === 'no result'");
}

/// Returns the vertical position of the current match in the viewport: 0 is the top, 1 the bottom.
const MATCH_POSITION: &str = r#"
const [range] = CSS.highlights.get('current-hit') ?? [];
if (!range || !range.getClientRects().length) return null;
const box = range.getBoundingClientRect();
return (box.top + box.bottom) / 2 / innerHeight;
"#;

/// Waits until the current match is in the middle of the viewport.
fn wait_for_centred_match(browser: &Browser) {
    let script = MATCH_POSITION.replace("return (", "const at = (") + "\nreturn at > 0.3 && at < 0.7;";
    browser.wait_for(&script);
}

/// A session with a match deep inside the output of a command, after many long turns, and two other matches.
fn weaving_home() -> (TestHome, String) {
    let home = TestHome::new();
    let text = "word ".repeat(600);
    let output: String = (0..400)
        .map(|i| if i == 300 { "the shuttle jammed\\n".to_owned() } else { format!("row {i}\\n") })
        .collect();
    let mut log = "u0 user \"start\"\n".to_owned();
    for i in 1..300 {
        let before = i - 1;
        log.push_str(&format!(
            "a{i} <- u{before} reply m{i} text \"{text}\"\nu{i} <- a{i} user \"prompt {i}\"\n"
        ));
    }
    log.push_str(&format!(
        "b1 <- u299 reply n1 tool t1 Bash {{\"command\":\"weave\"}}\nr1 <- b1 result t1 \"{output}\"\n\
         b2 <- r1 reply n2 text \"It jammed: a shuttle, and one more shuttle.\"\n"
    ));
    for i in 0..20 {
        log.push_str(&format!(
            "c{i} <- {} reply p{i} text \"{text}\"\n",
            if i == 0 { "b2".to_owned() } else { format!("c{}", i - 1) }
        ));
    }
    home.session("weaving", &log);
    (home, session_uuid("weaving"))
}

#[test]
fn a_search_result_lands_on_the_match() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = weaving_home();
    let served = TestServer::new(&home);
    browser.resize(1400, 900);
    browser.open(&served.url("/search?q=jammed+shuttle+row"));
    browser.wait_for("return document.querySelector('.hits .s .go')");
    browser.run("document.querySelector('.hits .s .go').click()");
    browser.wait_for(&format!(
        "return location.pathname === '/s/{id}' && window.CSS.highlights.has('current-hit')"
    ));
    wait_for_centred_match(&browser);
    assert_eq!(browser.run("return document.getElementById('q').value"), "jammed shuttle row");
    let line = browser.run(
        "const [range] = CSS.highlights.get('current-hit'), text = range.startContainer.data; return text.slice(range.startOffset, text.indexOf('jammed', range.startOffset) + 6)",
    );
    assert_eq!(line, "shuttle jammed", "the place with most of the words");
    assert_eq!(browser.run("return document.querySelector('.here > details').open"), true);
    assert_no_browser_errors(&browser);
}

#[test]
fn keys_go_from_match_to_match_and_keep_each_in_view() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = weaving_home();
    let served = TestServer::new(&home);
    browser.resize(1400, 900);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.documentElement.classList.contains('js')");
    browser.press("/");
    browser.run(
        "const q = document.getElementById('q'); q.value = 'shuttle'; q.dispatchEvent(new Event('input'));",
    );
    browser.wait_for("return document.getElementById('hits').textContent === '2'");
    browser.run("document.getElementById('q').blur()");
    for (key, state) in [
        ("n", "1 of 2"),
        ("n", "2 of 2 (1/2)"),
        ("n", "2 of 2 (2/2)"),
        ("n", "1 of 2"),
        ("p", "2 of 2 (2/2)"),
    ] {
        browser.press(key);
        browser.wait_for(&format!("return document.getElementById('hits').textContent === '{state}'"));
        wait_for_centred_match(&browser);
    }
    assert_no_browser_errors(&browser);
}

/// A session with an error in the first turn, two in a sub-agent of the second, and one in the third.
fn home_with_errors() -> (TestHome, String) {
    let home = TestHome::new();
    home.session(
        "errors",
        r#"
u1        user   "first"
a1 <- u1  reply  m1 tool t1 Bash {"command":"one"}
r1 <- a1  result t1 "broken one" error
u2 <- r1  user   "second"
a2 <- u2  reply  m2 tool t2 Task {"description":"look","prompt":"look","subagent_type":"Explore"}
r2 <- a2  result t2 "looked" {"agentId":"x1"}
u3 <- r2  user   "third"
a3 <- u3  reply  m3 tool t3 Bash {"command":"four"}
r3 <- a3  result t3 "broken four" error
a4 <- r3  reply  m4 text "Done."
"#,
    );
    let agent = r#"
b1        user   "look"
b2 <- b1  reply  n1 tool s1 Bash {"command":"two"}
c2 <- b2  result s1 "broken two" error
b3 <- c2  reply  n2 tool s2 Bash {"command":"three"}
c3 <- b3  result s2 "broken three" error
b4 <- c3  reply  n3 text "looked"
"#;
    home.agent("errors", "x1", agent, None);
    (home, session_uuid("errors"))
}

#[test]
fn the_error_count_leads_to_every_error_in_order() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = home_with_errors();
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.documentElement.classList.contains('js')");
    assert_eq!(browser.run("return document.querySelector('.next-error').textContent"), "4 errors");
    browser.run("document.querySelector('.next-error').click()");
    for (key, anchor) in [
        ("", "m2"),
        ("e", "a-x1-m2"),
        ("e", "a-x1-m4"),
        ("e", "m8"),
        ("e", "m2"),
        ("E", "m8"),
        ("E", "a-x1-m4"),
    ] {
        if !key.is_empty() {
            browser.press(key);
        }
        browser.wait_for(&format!("return document.querySelector('.here')?.id === '{anchor}'"));
        browser.wait_for(
            "const box = document.querySelector('.here .outcome').getBoundingClientRect(); return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight",
        );
    }
    assert_no_browser_errors(&browser);
}

#[test]
fn errors_in_a_closed_sub_agent_are_marked_on_its_row() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = home_with_errors();
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}?only=bad")));
    browser.wait_for("return document.querySelector('.here')?.id === 'm2'");
    let row = browser.run(
        "const mark = document.querySelector('#m5 > details > summary .outcome'); return [mark?.textContent, mark?.getClientRects().length > 0]",
    );
    assert_eq!(row, json!(["2 errors", true]), "the row is shown among the errors");
    // The mark in the outline leads to the first error of its turn.
    browser.run("document.querySelector('#rail a[href=\"#m4\"] .m.bad').click()");
    browser.wait_for("return document.querySelector('.here')?.id === 'a-x1-m2'");
}

#[test]
fn expand_turn_works_in_every_turn_of_a_large_session() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let mut log = "u0 user \"start\"\n".to_owned();
    for i in 1..60 {
        let before = i - 1;
        log.push_str(&format!(
            "a{i} <- u{before} reply m{i} tool t{i} Bash {{\"command\":\"make {i}\"}}\nr{i} <- a{i} result t{i} \"made {i}\"\nu{i} <- r{i} user \"prompt {i}\"\n"
        ));
    }
    home.session("turns", &log);
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{}", session_uuid("turns"))));
    browser.wait_for("return document.documentElement.classList.contains('js')");
    let button = || browser.run("return document.getElementById('b-fold').textContent");
    let is_open =
        |anchor: &str| browser.run(&format!("return document.querySelector('#{anchor} > details').open"));
    for (turn, call) in [("m1", "m2"), ("m4", "m5"), ("m7", "m8")] {
        browser.press("j");
        browser
            .wait_for(&format!("return document.querySelector('#rail [aria-current]')?.hash === '#{turn}'"));
        assert_eq!(button(), "Expand turn");
        browser.run("document.getElementById('b-fold').click()");
        assert_eq!((is_open(call), button()), (json!(true), json!("Collapse turn")), "{turn}");
    }
    browser.run("document.getElementById('b-fold').click()");
    assert_eq!((is_open("m8"), is_open("m5"), button()), (json!(false), json!(true), json!("Expand turn")));
}

#[test]
fn a_wide_chart_starts_at_its_newest_end_on_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let served = TestServer::with_root(&threadline_testkit::demo());
    browser.devtools(
        "Emulation.setDeviceMetricsOverride",
        &json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}),
    );
    browser.open(&served.url("/usage"));
    browser.wait_for("return document.querySelector('svg.timeline') && !document.querySelector('.indexing')");
    browser.wait_for(
        "return [...document.querySelectorAll('svg.timeline')].every(chart => chart.getBoundingClientRect().right <= innerWidth + 1)",
    );
    assert_eq!(browser.run("return document.documentElement.scrollWidth <= innerWidth"), true);
}

#[test]
fn a_selected_row_has_one_background() {
    let Some(browser) = Browser::start() else { return };
    let (home, _) = home_with_errors();
    let served = TestServer::new(&home);
    browser.open(&served.url("/sessions"));
    browser.wait_for("return document.querySelector('tr.s')");
    browser.press("j");
    browser.wait_for("return document.querySelector('tr.selected')");
    let cells = browser.run(
        "const style = cell => getComputedStyle(cell); const [first, ...rest] = document.querySelectorAll('tr.selected > td');
        return rest.filter(cell => style(cell).boxShadow !== 'none' || style(cell).backgroundColor !== 'rgba(0, 0, 0, 0)').length",
    );
    assert_eq!(cells, 0);
}

#[test]
fn keys_go_to_the_previous_and_the_next_session() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    for (name, day) in [("old", 1), ("middle", 2), ("new", 3)] {
        home.session(name, &format!("u1 user \"weave\" @2026-02-0{day}T10:00:00Z"));
    }
    let served = TestServer::new(&home);
    let on_page = |name: &str| {
        browser.wait_for(&format!(
            "return location.pathname === '/s/{}' && document.documentElement.classList.contains('js') && document.querySelector('.session-links')",
            session_uuid(name)
        ));
    };
    browser.open(&served.url(&format!("/s/{}", session_uuid("middle"))));
    on_page("middle");
    browser.press("]");
    on_page("old");
    browser.press("[");
    on_page("middle");
    browser.press("[");
    on_page("new");
    browser.press("[");
    browser.wait_for("return location.pathname === '/sessions'");
    assert_no_browser_errors(&browser);
}

#[test]
fn a_page_that_is_opened_stays_at_its_top() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = home_with_errors();
    let served = TestServer::new(&home);
    browser.resize(1400, 900);
    let watch = "document.addEventListener('DOMContentLoaded', () => document.getElementById('main')?.addEventListener('changed', () => setTimeout(() => { window.hasChanged = true; })))";
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": watch}));
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return window.hasChanged");
    let state = browser.run("return [document.documentElement.scrollHeight > innerHeight, scrollY]");
    assert_eq!(state, json!([true, 0]), "the page is taller than the viewport, and not scrolled");
}
