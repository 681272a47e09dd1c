//! Blame, file, comparison and context pages in a real browser, and as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use threadline_testkit::{Browser, TestHome, axe_script, session_uuid};

use crate::browser_reader::axe_violations;
use crate::support::{TestServer, assert_no_browser_errors};

/// A home with two sessions that wrote a file, one of them with an abandoned branch, and the file itself.
struct FileFixture {
    home: TestHome,
}

impl FileFixture {
    fn new() -> Self {
        let fixture = Self { home: TestHome::new() };
        fixture.home.file("work/loom.rs", "");
        let path = fixture.path();
        let dir = path.parent().unwrap().to_str().unwrap();
        let first = r#"
            u1        user   "write the loom"
            a1 <- u1  reply  m1 tool t1 Write {"file_path":"[dir]/loom.rs"} usage={"input_tokens":10000,"cache_creation_input_tokens":2000}
            r1 <- a1  result t1 "ok" {"type":"create","filePath":"[dir]/loom.rs","content":"fn weave() {\n}\n","originalFile":null}
            a2 <- r1  reply  m2 text "Done." usage={"input_tokens":10500}
            u2 <- a2  user   "a first try"
            a3 <- u2  reply  m3 text "No." usage={"input_tokens":10600}
            u3 <- a2  user   "add the <b>shuttle</b>" @+10m
            a4 <- u3  reply  m4 tool t2 Edit {"file_path":"[dir]/loom.rs"} usage={"input_tokens":10700}
            r4 <- a4  result t2 "ok" {"filePath":"[dir]/loom.rs","oldString":"{\n","newString":"{\n    shuttle(\"<i>\");\n","originalFile":"fn weave() {\n}\n"}
            a5 <- r4  reply  m5 text "Added." usage={"input_tokens":10900}
            "#;
        let second = r#"
            u1        user   "document it" @2026-02-01T10:00:00Z
            a1 <- u1  reply  n1 tool x1 Edit {"file_path":"[dir]/loom.rs"} usage={"input_tokens":9000}
            r1 <- a1  result x1 "ok" {"filePath":"[dir]/loom.rs","oldString":"fn weave","newString":"/// Weaves.\nfn weave","originalFile":"fn weave() {\n    shuttle(\"<i>\");\n}\n"}
            a2 <- r1  reply  n2 text "Done." usage={"input_tokens":9100}
            "#;
        fixture.home.session_in(dir, "first", &first.replace("[dir]", dir));
        fixture.home.session_in(dir, "second", &second.replace("[dir]", dir));
        fs::write(&path, "/// Weaves.\nfn weave() {\n    shuttle(\"<i>\");\n}\n// by hand\n").unwrap();
        fixture
    }

    fn path(&self) -> PathBuf {
        fs::canonicalize(self.home.root()).unwrap().join("work/loom.rs")
    }

    fn with_path(&self, page: &str) -> String {
        format!("{page}?path={}", self.path().display())
    }
}

fn json_lines(served: &TestServer, page: &str) -> Vec<Value> {
    let answer = served.get(page);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn pages_have_the_objects_of_the_commands() {
    let fixture = FileFixture::new();
    let served = TestServer::new(&fixture.home);
    let lines = json_lines(&served, &fixture.with_path("/blame.json"));
    let prompts: Vec<_> = lines.iter().map(|line| line["edit"]["prompt"].clone()).collect();
    assert_eq!(
        json!(prompts),
        json!(["document it", "write the loom", "add the <b>shuttle</b>", "write the loom", null])
    );
    let edits = json_lines(&served, &fixture.with_path("/file.json"));
    assert_eq!(edits.len(), 3);
    let (a, b) = (session_uuid("first"), session_uuid("second"));
    let compared = json_lines(&served, &format!("/compare.json?a={a}&b={b}"));
    assert_eq!((&compared[0]["a"]["turns"], &compared[0]["b"]["turns"]), (&json!(2), &json!(1)));
    let calls = json_lines(&served, &format!("/s/{a}/context.json"));
    assert_eq!(calls.iter().filter(|line| line["type"] == "call").count(), 4);
    assert_eq!(calls[2]["miss"]["reason"], Value::Null, "the second call had no cache");
}

#[test]
fn the_edits_of_a_file_name_the_title_of_their_session() {
    let fixture = FileFixture::new();
    let served = TestServer::new(&fixture.home);
    let id = session_uuid("second");
    let page = served.get(&fixture.with_path("/file")).body;
    let title = json_lines(&served, &fixture.with_path("/file.json"))
        .into_iter()
        .find(|edit| edit["session"] == *id)
        .and_then(|edit| edit["title"].as_str().map(str::to_owned))
        .unwrap();
    let link = format!("<a href=\"/s/{id}\" title=\"{id}\">{title}</a>, turn ");
    assert!(page.contains(&link), "{link} in {page}");
}

#[test]
fn paths_of_other_machines_have_edits_but_no_lines() {
    let home = TestHome::new();
    home.session(
        "windows",
        r#"
u1        user   "write it"
a1 <- u1  reply  m1 tool t1 Write {"file_path":"D:\\loom\\a.go","content":"x\n"}
r1 <- a1  result t1 "ok" {"type":"create","filePath":"D:\\loom\\a.go","content":"x\n","originalFile":null}
"#,
    );
    let served = TestServer::new(&home);
    let file = served.get("/file?path=D%3A%5Cloom%5Ca.go");
    assert_eq!(file.status, 200, "{}", file.body);
    assert!(file.body.contains("1 edit in 1 session <span>·</span> not on this machine"), "{}", file.body);
    let blame = served.get("/blame?path=D%3A%5Cloom%5Ca.go");
    assert_eq!(blame.status, 404);
    for text in ["The file is not on this machine", "<a href=\"/file?path=D%3A%5Cloom%5Ca.go\">"] {
        assert!(blame.body.contains(text), "{text}\n{}", blame.body);
    }
}

#[test]
fn the_costs_of_two_sessions_are_subtracted() {
    let fixture = FileFixture::new();
    let served = TestServer::new(&fixture.home);
    let (a, b) = (session_uuid("first"), session_uuid("second"));
    let page = served.get(&format!("/compare?a={a}&b={b}")).body;
    let row = page.split_once("<th scope=\"row\">Cost</th>").unwrap().1.split_once("</tr>").unwrap().0;
    let cells: Vec<&str> =
        row.split("<td class=\"n\">").skip(1).map(|cell| cell.trim_end_matches("</td>")).collect();
    assert!(cells[2].starts_with(['+', '−']) && cells[2].contains('$'), "{row}");
}

#[test]
fn files_that_no_session_edited_are_not_shown() {
    let fixture = FileFixture::new();
    let other = fixture.home.file("work/secret.txt", "not for the page");
    let served = TestServer::new(&fixture.home);
    for page in ["/blame", "/file"] {
        let answer = served.get(&format!("{page}?path={}", other.display()));
        assert!(!answer.body.contains("not for the page"), "{}", answer.body);
    }
    assert_eq!(served.get(&format!("/blame?path={}", other.display())).status, 404);
    assert_eq!(served.get("/blame?path=loom.rs").status, 400);
    assert_eq!(served.get("/blame").status, 400);
    assert_eq!(served.get("/compare?a=nothing&b=/etc/passwd").status, 200);
    // The name of a session is never a path.
    let log = fixture.home.root().join("projects");
    assert!(!served.get(&format!("/compare?a={}&b=x", log.display())).body.contains("Figures"));
    assert!(Path::new(&log).exists());
}

#[test]
fn comparisons_and_windows_fit_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    for (id, tokens) in [("first", 68_677_754_u64), ("second", 3_966_177)] {
        let usage = format!(r#"usage={{"input_tokens":3590,"cache_read_input_tokens":{tokens}}}"#);
        home.session(
            id,
            &format!(
                "u1 user \"Redesign the website\" @2026-11-09T12:48:00Z\n\
                 a1 <- u1 reply m{id} tool t1 Bash {{}} {usage} @2026-11-09T14:11:00Z\n\
                 r1 <- a1 result t1 \"ok\" @2026-11-09T15:13:34Z\n\
                 a2 <- r1 reply n{id} text \"Done.\" {usage} @2026-11-09T15:13:35Z\n"
            ),
        );
    }
    let served = TestServer::new(&home);
    let (a, b) = (session_uuid("first"), session_uuid("second"));
    browser.resize(390, 800);
    browser.open(&served.url(&format!("/compare?a={a}&b={b}")));
    let outside = |selector: &str| {
        browser.run(&format!(
            "return [...document.querySelectorAll('{selector}')].filter(one => one.getBoundingClientRect().right > innerWidth - 4).map(one => one.textContent)"
        ))
    };
    assert_eq!(outside(".sides td"), json!([]));
    browser.open(&served.url(&format!("/s/{a}/context")));
    assert_eq!(outside(".bars .num"), json!([]));
    let widths = browser.run(
        "return new Set([...document.querySelectorAll('.bars svg')].slice(0, 2).map(bar => bar.getBoundingClientRect().width)).size",
    );
    assert_eq!(widths, 2, "bars of different values have different lengths");
}

#[test]
fn every_figure_leads_to_its_source() {
    let Some(browser) = Browser::start() else { return };
    let fixture = FileFixture::new();
    let served = TestServer::new(&fixture.home);
    let (a, b) = (session_uuid("first"), session_uuid("second"));

    // From the changes of a session to the file, its lines, and the call that wrote one.
    browser.open(&served.url(&format!("/s/{a}/changes")));
    browser.run("[...document.querySelectorAll('a')].find(link => link.textContent === 'all edits of this file').click()");
    browser.wait_for(
        "return location.pathname === '/file' && document.querySelectorAll('tbody tr').length === 3",
    );
    browser.run("[...document.querySelectorAll('a')].find(link => link.textContent === 'blame').click()");
    browser.wait_for("return location.pathname === '/blame' && document.querySelectorAll('.blame-lines tbody tr').length === 5");
    assert_eq!(
        browser.run(
            "return [...document.querySelectorAll('.blame-lines .origin')].map(cell => cell.textContent)"
        ),
        json!(["document it", "write the loom", "add the <b>shuttle</b>", "write the loom", "outside"])
    );
    assert_eq!(
        browser.run("return document.querySelector('#L3 .line').textContent"),
        "    shuttle(\"<i>\");"
    );
    browser.run("document.querySelector('#L3 .origin a').click()");
    browser.wait_for("return location.pathname.startsWith('/s/') && location.hash === '#m8' && document.getElementById('m8')");

    // From an abandoned branch to the comparison with it.
    browser.run("[...document.querySelectorAll('.branch-list a')].find(link => link.textContent === 'compare').click()");
    browser.wait_for("return location.pathname === '/compare' && document.querySelectorAll('.prompt-columns li').length === 4");
    assert_eq!(browser.run("return document.querySelectorAll('.prompt-columns .shared').length"), 2);
    browser.run("document.querySelector('.prompt-columns div:nth-child(2) li:last-child a').click()");
    browser.wait_for(
        "return location.search.startsWith('?branch=') && document.body.textContent.includes('a first try')",
    );

    // Two sessions, typed.
    browser.open(&served.url("/compare"));
    browser.run(&format!(
        "const form = document.querySelector('.compare-form'); form.a.value = '{}'; form.b.value = '{}'; form.requestSubmit();",
        &a[..8],
        &b[..8]
    ));
    browser.wait_for("return document.querySelectorAll('.compare .file').length === 1");
    browser.run("document.querySelector('.compare .file summary').click()");
    browser.wait_for("return document.querySelector('.compare .file .diff .new').checkVisibility()");

    // From the session to its context window, and back to a call.
    browser.open(&served.url(&format!("/s/{a}")));
    browser.run(
        "[...document.querySelectorAll('a')].find(link => link.textContent === 'context window').click()",
    );
    browser.wait_for("return location.pathname.endsWith('/context') && document.querySelectorAll('svg.chart:not(.axis), .bars').length === 2");
    assert_eq!(browser.run("return document.querySelectorAll('.timeline a').length"), 4);
    browser.run("document.querySelector('.numbers tbody th a[href$=\"#m8\"]').click()");
    browser.wait_for("return location.hash === '#m8' && document.getElementById('m8')");
    assert_no_browser_errors(&browser);
}

#[test]
fn pages_are_accessible_and_fit_a_phone() {
    let Some(axe) = axe_script() else { return };
    let Some(browser) = Browser::start() else { return };
    let fixture = FileFixture::new();
    let served = TestServer::new(&fixture.home);
    let (a, b) = (session_uuid("first"), session_uuid("second"));
    let pages = [
        fixture.with_path("/blame"),
        fixture.with_path("/file"),
        format!("/compare?a={a}&b={b}"),
        format!("/s/{a}/context"),
    ];
    for theme in ["light", "dark"] {
        browser.set_color_scheme(theme);
        for page in &pages {
            browser.open(&served.url(page));
            assert_eq!(axe_violations(&browser, &axe), json!([]), "{theme} {page}");
        }
    }
    browser.resize(390, 844);
    for page in &pages {
        browser.open(&served.url(page));
        let width = browser.run("return document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(width <= 390, "{page} is {width} wide");
    }
}

#[test]
fn the_context_page_lists_sub_agents_and_shows_the_window_of_one() {
    let home = TestHome::new();
    let main = r#"
        u1        user   "count"
        a1 <- u1  reply  m1 tool t1 Task {"prompt":"count","subagent_type":"Explore"} usage={"input_tokens":9000}
        r1 <- a1  result t1 "Two." {"agentId":"a1b2c3"}
        a2 <- r1  reply  m2 text "Two." usage={"input_tokens":9100}
        "#;
    home.session("loom", main);
    let agent = "x1 user \"count\"\nx2 <- x1 reply n1 text \"Two.\" usage={\"input_tokens\":20100}";
    home.agent("loom", "a1b2c3", agent, Some(r#"{"agentType":"Explore","description":"count <b>"}"#));
    let served = TestServer::new(&home);
    let page = format!("/s/{}/context", session_uuid("loom"));
    let link = format!("<a href=\"{page}?agent=a1b2c3\" title=\"a1b2c3\">count &lt;b&gt;</a>");
    let body = served.get(&page).body;
    assert!(body.contains(&link) && body.contains("20,100"), "{body}");
    let lines = json_lines(&served, &format!("{page}.json?agent=a1b2c3"));
    let windows: Vec<_> =
        lines.iter().filter(|line| line["type"] == "call").map(|line| &line["window_tokens"]).collect();
    assert_eq!(windows, [20_100]);
    let body = served.get(&format!("{page}?agent=a1b2c3")).body;
    let anchor = format!("href=\"/s/{}?agent=a1b2c3#m2\"", session_uuid("loom"));
    assert!(body.contains(&anchor) && !body.contains("Each has a window"), "{body}");
    assert_eq!(served.get(&format!("{page}?agent=zz")).status, 404);
}
