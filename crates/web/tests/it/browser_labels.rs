//! Pins and tags in a real browser, on the page of a session and in the list. Skipped if there is none.

use serde_json::{Value, json};
use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{TestServer, assert_no_browser_errors};

/// A browser on a page of a server with two sessions.
struct LabelFixture {
    browser: Browser,
    served: TestServer,
    _home: TestHome,
}

impl LabelFixture {
    fn open(page: &str) -> Option<Self> {
        let browser = Browser::start()?;
        let home = TestHome::new();
        for name in ["warp", "weft"] {
            home.session(name, &format!("u1 user \"{name}\"\na1 <- u1 reply m_{name} text \"Done.\""));
        }
        let served = TestServer::new(&home);
        let fixture = Self { browser, served, _home: home };
        fixture.go(page);
        Some(fixture)
    }

    fn go(&self, page: &str) {
        self.browser.open(&self.served.url(&page.replace("WARP", &session_uuid("warp"))));
    }

    /// Returns the pin and the tags of the first session, as the server lists them.
    fn labels(&self) -> Value {
        let answer = self.served.get("/sessions.json");
        let cards = answer.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let card = cards.into_iter().find(|card| card["id"] == session_uuid("warp")).unwrap();
        json!([card["pinned"], card["tags"]])
    }

    /// Changes the labels of the first session without the browser.
    fn change(&self, change: &str) {
        let origin = format!("http://127.0.0.1:{}", self.served.port);
        let headers = [("Cookie", &*self.served.cookie()), ("Origin", &*origin)];
        let path = format!("/s/{}/labels?{change}", session_uuid("warp"));
        assert_eq!(self.served.request("POST", &path, &headers).status, 200);
    }

    /// Runs a script with the labels of the first session as `labels`.
    fn run(&self, script: &str) -> Value {
        self.browser.run(&self.with_labels(script))
    }

    fn wait_for(&self, condition: &str) {
        self.browser.wait_for(&self.with_labels(&format!("return labels && {condition}")));
    }

    fn with_labels(&self, script: &str) -> String {
        let id = session_uuid("warp");
        format!("const labels = document.querySelector('.labels[data-at*=\"{id}\"]'); {script}")
    }

    fn add_tag(&self, tag: &str) {
        self.run(&format!(
            "labels.querySelector('summary').click(); labels.querySelector('input').value = {}; labels.querySelector('form button').click();",
            json!(tag)
        ));
    }
}

/// The page of a session, and the list.
const PAGES: [&str; 2] = ["/s/WARP", "/sessions"];

#[test]
fn a_session_is_pinned() {
    for page in PAGES {
        let Some(fixture) = LabelFixture::open(page) else { return };
        fixture.run("labels.querySelector('.pin').click()");
        fixture.wait_for("labels.querySelector('.pin').textContent === 'Pinned'");
        assert_eq!(fixture.labels(), json!([true, []]), "{page}");
        assert_no_browser_errors(&fixture.browser);
    }
}

#[test]
fn a_pin_is_removed() {
    for page in PAGES {
        let Some(fixture) = LabelFixture::open(page) else { return };
        fixture.change("pin=1");
        fixture.go(page);
        fixture.run("labels.querySelector('.pin[aria-pressed=true]').click()");
        fixture.wait_for("labels.querySelector('.pin').textContent === 'Pin'");
        assert_eq!(fixture.labels(), json!([false, []]), "{page}");
    }
}

#[test]
fn a_tag_is_added() {
    for page in PAGES {
        let Some(fixture) = LabelFixture::open(page) else { return };
        fixture.add_tag(" to <b>review</b> ");
        fixture.wait_for("labels.querySelector('.tag a')?.textContent === 'to <b>review</b>'");
        assert_eq!(fixture.labels(), json!([false, ["to <b>review</b>"]]), "{page}");
        assert_no_browser_errors(&fixture.browser);
    }
}

#[test]
fn a_tag_that_is_too_long_is_refused_with_a_message() {
    let Some(fixture) = LabelFixture::open("/s/WARP") else { return };
    fixture.add_tag(&"x".repeat(61));
    fixture.wait_for("labels.querySelector('[role=status]').textContent.includes('at most 60 characters')");
    assert_eq!(fixture.labels(), json!([false, []]));
}

#[test]
fn a_tag_is_removed() {
    for page in PAGES {
        let Some(fixture) = LabelFixture::open(page) else { return };
        fixture.change("add=blue");
        fixture.change("add=red");
        fixture.go(page);
        fixture.run("labels.querySelector('[data-remove=blue]').click()");
        fixture.wait_for("labels.querySelectorAll('.tag a').length === 1");
        assert_eq!(fixture.labels(), json!([false, ["red"]]), "{page}");
    }
}

#[test]
fn sessions_are_filtered_by_a_tag() {
    let Some(fixture) = LabelFixture::open("/s/WARP") else { return };
    fixture.change("add=blue");
    fixture.go("/s/WARP");
    fixture.run("labels.querySelector('.tag a').click()");
    fixture
        .browser
        .wait_for("return location.search === '?tag=blue' && document.querySelectorAll('tr.s').length === 1");
    let shown = fixture.browser.run("return document.querySelector('tr.s').dataset.id");
    assert_eq!(shown, json!(session_uuid("warp")));
}

#[test]
fn the_filter_lists_a_tag_as_soon_as_it_is_added() {
    let Some(fixture) = LabelFixture::open("/sessions") else { return };
    assert_eq!(fixture.browser.run("return document.querySelector('select[name=tag]')"), Value::Null);
    fixture.add_tag("blue");
    fixture.browser.wait_for("return document.querySelector('select[name=tag] option[value=blue]') !== null");
}
