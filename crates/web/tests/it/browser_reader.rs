//! Pages in other conditions: without their server, printed, and in the accessibility tree.

use std::fs::File;
use std::io::Write;

use serde_json::{Value, json};
use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{TestServer, assert_no_browser_errors};

/// Creates a session of which only the beginning is rendered at first. Returns its id.
fn long_session(home: &TestHome) -> String {
    let text = "word ".repeat(600);
    let mut log = "u0 user \"start\"\n".to_owned();
    for i in 1..300 {
        let before = i - 1;
        log.push_str(&format!(
            "a{i} <- u{before} reply m{i} text \"{text}\"\nu{i} <- a{i} user \"prompt {i}\"\n"
        ));
    }
    home.session("long", &log);
    session_uuid("long")
}

#[test]
fn a_page_that_lost_its_server_shows_it_and_catches_up() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let path = home.session("loom", "u1 user \"weave\"\na1 <- u1 reply m1 text \"Woven.\"");
    let page = format!("/s/{}", session_uuid("loom"));
    for (page, caught_up) in [
        (&*page, "return document.getElementById('parts').textContent.includes('while you were away')"),
        (
            "/sessions",
            "return [...document.querySelectorAll('tr.s .go')].some(go => go.textContent === 'a new warp')",
        ),
    ] {
        let served = TestServer::new(&home);
        let port = served.port;
        browser.open(&served.url(page));
        browser.wait_for("return document.getElementById('offline')?.hidden");
        drop(served);
        browser.wait_for("return !document.getElementById('offline').hidden");
        let mut log = File::options().append(true).open(&path).unwrap();
        let line = json!({"type": "user", "uuid": "x1", "parentUuid": null, "sessionId": session_uuid("loom"),
            "timestamp": "2026-02-01T10:00:00Z", "message": {"role": "user", "content": "while you were away"}});
        writeln!(log, "{line}").unwrap();
        home.session("fresh", "u1 user \"a new warp\"");
        let _again = TestServer::on_port(home.root(), port);
        browser.wait_for("return document.getElementById('offline').hidden");
        browser.wait_for(caught_up);
        let mut said = browser.console();
        const GONE: &[&str] = &["ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_SOCKET_NOT_CONNECTED"];
        said.retain(|said| !GONE.iter().any(|gone| said.contains(gone)));
        assert!(said.is_empty(), "only connection errors expected: {said:#?}");
    }
}

#[test]
fn a_printed_page_is_complete_and_dark_on_light() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let id = long_session(&home);
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.run("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'd', bubbles: true }))");
    browser.wait_for("return document.documentElement.dataset.theme === 'dark'");
    assert!(browser.run("return document.querySelectorAll('.piece:not(.drawn)').length").as_u64() > Some(0));
    browser.run(
        "window.print = () => { window.printed = document.querySelectorAll('.piece:not(.drawn)').length }",
    );
    browser.run("dispatchEvent(new KeyboardEvent('keydown', { key: 'p', ctrlKey: true, cancelable: true }))");
    browser.wait_for("return window.printed === 0");
    browser.devtools("Emulation.setEmulatedMedia", &json!({"media": "print"}));
    let seen = browser.run(
        "const seen = query => document.querySelector(query).getClientRects().length > 0;
        const light = colour => colour.match(/\\d+/g).slice(0, 3).every(part => part > 128);
        const style = getComputedStyle(document.body);
        return [seen('.side'), seen('.top'), light(style.backgroundColor), light(style.color)]",
    );
    assert_eq!(seen, json!([false, false, true, false]), "outline, top bar, light background, light text");
    let pdf = browser.devtools("Page.printToPDF", &json!({}));
    assert!(pdf["data"].as_str().unwrap().len() > 100_000);
    assert_no_browser_errors(&browser);
}

/// Returns the role and the name of every node in the accessibility tree.
fn accessibility_nodes(browser: &Browser) -> Vec<(String, String)> {
    let tree = browser.devtools("Accessibility.getFullAXTree", &json!({}));
    let text_of = |node: &Value, what: &str| node[what]["value"].as_str().unwrap_or_default().to_owned();
    let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true);
    nodes.map(|node| (text_of(node, "role"), text_of(node, "name").trim().to_owned())).collect()
}

#[test]
fn pages_are_accessible_to_screen_readers() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    home.session(
        "loom",
        r#"
u1        user   "weave" @2026-02-01T10:00:00Z
a1 <- u1  reply  m1 thinking "hm" "sig"
a2 <- a1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a2  result t1 "broken" error
a3 <- r1  reply  m2 text "It **broke**:\n\n```rust\nfn main() {}\n```"
"#,
    );
    let id = session_uuid("loom");
    let served = TestServer::new(&home);
    for page in [
        "/?range=all",
        "/sessions",
        "/usage",
        "/search?q=weave",
        &format!("/s/{id}"),
        &format!("/s/{id}/check"),
        &format!("/s/{id}/changes"),
    ] {
        browser.open(&served.url(page));
        browser.wait_for("return document.readyState === 'complete' && !document.querySelector('.pending')");
        let nodes = accessibility_nodes(&browser);
        let has = |role: &str| nodes.iter().any(|(known, _)| known == role);
        assert!(has("main") && has("navigation") && has("heading"), "{page}: {nodes:#?}");
        for (role, name) in &nodes {
            let acts = [
                "button",
                "link",
                "searchbox",
                "textbox",
                "combobox",
                "checkbox",
                "DisclosureTriangle",
                "image",
                "dialog",
            ];
            assert!(!acts.contains(&&**role) || !name.is_empty(), "{page}: a {role} without a name");
        }
        // There is one top heading, and no level is skipped on the way down.
        let levels = browser.run(
            "return [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(head => !head.closest('dialog')).map(head => +head.tagName[1])",
        );
        let levels: Vec<u64> =
            levels.as_array().unwrap().iter().map(|level| level.as_u64().unwrap()).collect();
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{page}: {levels:?}");
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{page}: {levels:?}");
        // The first tab stop is the skip link, unless the search box has the focus.
        let typing = browser.run("return document.activeElement.id === 'q'");
        assert_eq!(typing, page.starts_with("/search"));
        browser.press("\u{e004}");
        assert_eq!(
            browser.run("return document.activeElement.className === 'skip'"),
            typing != true,
            "{page}"
        );
        assert_no_browser_errors(&browser);
    }
}

/// Returns the serious violations that axe-core finds on the page, with the first elements of each.
pub(crate) fn axe_violations(browser: &Browser, axe: &str) -> Value {
    browser.devtools("Runtime.evaluate", &json!({"expression": axe}));
    let run = "window.violations = null; axe.run().then(all => {
        const serious = all.violations.filter(one => ['serious', 'critical'].includes(one.impact));
        window.violations = serious.map(one => [one.id, ...one.nodes.slice(0, 3).map(node => node.target.join(' '))]);
    })";
    browser.devtools("Runtime.evaluate", &json!({"expression": run}));
    browser.wait_for("return window.violations")
}

#[test]
fn axe_finds_no_serious_violations() {
    let Some(axe) = threadline_testkit::axe_script() else { return };
    let Some(browser) = Browser::start() else { return };
    let served = TestServer::with_root(&threadline_testkit::demo());
    let id = "a4d5d01a-99d6-4326-8497-3fed5e693dcc";
    for theme in ["light", "dark"] {
        browser.set_color_scheme(theme);
        for page in [
            "/?range=all",
            "/records?kind=calls",
            "/sessions",
            "/sessions?errors=1",
            "/usage",
            "/usage/explain",
            "/search",
            "/search?q=drawdown",
            &format!("/s/{id}"),
            &format!("/s/{id}/check"),
            &format!("/s/{id}/changes"),
            "/s/none",
        ] {
            browser.open(&served.url(page));
            browser.wait_for(
                "return document.readyState === 'complete' && !document.querySelector('.pending, .indexing')",
            );
            assert_eq!(axe_violations(&browser, &axe), json!([]), "{theme} {page}");
        }
    }
}
