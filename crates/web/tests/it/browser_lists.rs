//! Home, search, usage and check pages in a real browser. The tests are skipped if there is none.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;
use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{TestServer, assert_no_browser_errors};

/// Creates thirty sessions in three projects, none of them live.
fn home() -> TestHome {
    let home = TestHome::new();
    for n in 0..30_u64 {
        let (project, branch) =
            (["loom", "dye", "shed"][n as usize % 3], ["main", "feature/blue"][n as usize % 2]);
        let model = ["claude-opus-5", "claude-haiku-4-5"][n as usize % 2];
        let failed = if n % 5 == 0 { "error" } else { "" };
        let day = 1 + n % 28;
        let log = format!(
            r#"
u1        user   "thread number {n}" branch={branch} @2026-02-{day:02}T10:00:00Z
a1 <- u1  reply  msg_{n} tool t{n} Bash {{"command":"make"}} model={model} branch={branch} usage={{"input_tokens":{}}}
r1 <- a1  result t{n} "woven {n}" {failed} branch={branch}
title "Session {n:02}"
"#,
            1000 * (n + 1)
        );
        let path = home.session_in(&format!("/home/ada/{project}"), &format!("s{n}"), &log);
        let at = UNIX_EPOCH + Duration::from_secs(1_770_000_000 + day * 86_400 + n);
        File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
    }
    home
}

#[test]
fn home_is_filtered_sorted_and_navigated_by_keys() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/sessions"));
    // Figures appear without a reload once they are counted.
    browser.wait_for(
        "return !document.querySelector('.pending') && document.querySelectorAll('tr.s').length === 30",
    );

    // A filter takes effect when chosen, and is part of the URL.
    browser.run("const box = document.querySelector('input[name=errors]'); box.click();");
    browser.wait_for("return document.querySelectorAll('tr.s').length === 6");
    assert_eq!(browser.run("return location.search"), "?errors=1");
    browser.run(
        "const select = document.querySelector('select[name=branch]'); select.value = 'main'; select.dispatchEvent(new Event('change', { bubbles: true }));",
    );
    browser.wait_for("return document.querySelectorAll('tr.s').length === 3");
    assert_eq!(browser.run("return location.search"), "?errors=1&branch=main");
    browser.run("history.back()");
    browser
        .wait_for("return location.search === '?errors=1' && document.querySelectorAll('tr.s').length === 6");
    browser.press("x");
    browser.wait_for("return document.querySelectorAll('tr.s').length === 30");

    // A click on a column heading sorts by it.
    browser
        .run("[...document.querySelectorAll('thead a')].find(link => link.textContent === 'Cost').click()");
    browser.wait_for("return document.querySelector('th[aria-sort]').textContent === 'Cost'");
    assert_eq!(browser.run("return document.querySelector('tr.s .go').textContent"), "Session 28");

    // Typed words filter the list immediately, and the input keeps its text.
    browser.press("f");
    for key in "session 1".chars() {
        browser.press(&key.to_string());
    }
    browser.wait_for("return document.querySelectorAll('tr.s').length === 12 && document.getElementById('words').value === 'session 1'");
    assert_eq!(browser.run("return document.activeElement.id"), "words");
    browser.press("\u{e00c}");

    // Keys move the selection and open the selected session.
    browser.press("j");
    browser.press("j");
    browser.press("k");
    assert_eq!(
        browser
            .run("return [...document.querySelectorAll('tr.s')].findIndex(row => row.matches('.selected'))"),
        0
    );
    browser.press("?");
    assert_eq!(browser.run("return document.getElementById('help').open"), true);
    browser.press("\u{e00c}");
    browser.wait_for("return !document.getElementById('help').open");
    let to = browser.run("return document.querySelector('tr.selected .go').pathname");
    browser.press("c");
    browser.wait_for("return location.pathname.endsWith('/check') && document.querySelector('.check h1')");
    assert_eq!(browser.run("return location.pathname"), format!("{}/check", to.as_str().unwrap()));
    assert_no_browser_errors(&browser);
}

#[test]
fn the_error_counts_of_the_list_are_never_cut_off() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let branch = "feature/a-branch-with-a-name-that-is-much-too-long-for-the-row-of-a-list";
    let mut log = format!("u1 user \"weave\" branch={branch}\n");
    let mut last = "u1".to_owned();
    for (n, tool) in ["Bash", "Read", "WebFetch", "mcp__loom__weave_a_long_cloth"].iter().enumerate() {
        log.push_str(&format!("a{n} <- {last} reply m{n} tool t{n} {tool} {{}} branch={branch}\n"));
        log.push_str(&format!("r{n} <- a{n} result t{n} \"failed\" error branch={branch}\n"));
        last = format!("r{n}");
    }
    home.session_in("/home/ada/a-project-with-a-name-that-is-too-long-for-one-row-of-it", "one", &log);
    let served = TestServer::new(&home);
    browser.open(&served.url("/sessions"));
    browser.wait_for("return document.querySelector('.facts .bad')");
    for width in [1280, 1000, 800, 390] {
        browser.resize(width, 800);
        let room = browser.run(
            "const bad = document.querySelector('.facts .bad').getBoundingClientRect(), cell = document.querySelector('.session-cell').getBoundingClientRect();
            return Math.round(cell.right - bad.right)",
        );
        assert!(room.as_i64().unwrap() >= 0, "{width} px: {room}");
    }
}

#[test]
fn the_scales_of_charts_stay_in_view() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    // Columns, calendars and a heat map.
    for (page, n_charts) in [("/usage", 4), ("/?range=all", 4)] {
        browser.open(&served.url(page));
        browser.resize(390, 800);
        browser
            .wait_for(&format!("return document.querySelectorAll('.chart-scroller').length === {n_charts}"));
        let outside = browser.run(
            "return [...document.querySelectorAll('.chart-scroller')].filter(box => {
                box.scrollLeft = box.scrollWidth;
                const tick = box.querySelector('.axis text').getBoundingClientRect(), edge = box.getBoundingClientRect();
                return box.scrollLeft === 0 || tick.left < edge.left - 1 || tick.right > edge.right;
            }).map(box => box.getAttribute('aria-label'))",
        );
        assert_eq!(outside, json!([]), "{page}");
    }
}

#[test]
fn rows_use_the_width_of_the_page() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let branch = "claude/a-branch-with-a-long-name-for-a-row";
    let mut log = format!("u1 user \"weave\" branch={branch} @2026-01-01T10:00:00Z\n");
    let mut last = "u1".to_owned();
    let usage = r#"usage={"input_tokens":1000000,"output_tokens":1000}"#;
    for (n, tool) in ["Bash", "Read", "WebFetch", "Grep", "Edit"].iter().enumerate() {
        let time = format!("2026-01-01T1{n}:00:00Z");
        log.push_str(&format!(
            "a{n} <- {last} reply m{n} tool t{n} {tool} {{}} branch={branch} model=claude-sonnet-4-6 {usage} @{time}\n\
             r{n} <- a{n} result t{n} \"failed\" error branch={branch} @2026-01-01T1{n}:58:59Z\n"
        ));
        last = format!("r{n}");
    }
    // A repeated record, which is not counted.
    log.push_str(&format!("b0 <- {last} reply m0 text \"x\" model=claude-sonnet-4-6 {usage}\n"));
    home.session_in("/home/ada/documents/projects/example-organisation/oh-my-posh", "one", &log);
    let served = TestServer::new(&home);
    browser.resize(1440, 900);
    browser.open(&served.url("/sessions"));
    browser.wait_for("return document.querySelector('.facts .model')");
    let cut = browser.run(
        "return [...document.querySelectorAll('.facts :is(.in, .model, .bad)')].filter(fact => fact.scrollWidth > fact.clientWidth).map(fact => fact.textContent)",
    );
    assert_eq!(cut, json!([]));
    // Every cell besides the session and the command is one line.
    browser.open(&served.url("/records?range=all&kind=calls&sort=longest"));
    browser.wait_for("return document.querySelectorAll('.records tbody tr').length === 5");
    let broken = browser.run(
        "const line = cell => parseFloat(getComputedStyle(cell).lineHeight);
        return [...document.querySelectorAll('.records :is(th, td)')].filter(cell => ![1, 3].includes(cell.cellIndex)).filter(cell => {
            const range = new Range(); range.selectNodeContents(cell);
            return range.getBoundingClientRect().height > line(cell) * 1.5 || cell.scrollWidth > cell.clientWidth + 1;
        }).map(cell => cell.textContent)",
    );
    assert_eq!(broken, json!([]));
    // On a phone, a column outside of the view does not make the rows high.
    browser.resize(390, 800);
    browser.open(&served.url("/usage/explain"));
    browser.wait_for("return document.querySelector('.explain .rejected')");
    let highest = browser.run(
        "return Math.max(...[...document.querySelectorAll('.explain tbody tr')].map(row => row.getBoundingClientRect().height))",
    );
    assert!(highest.as_f64().unwrap() < 70.0, "{highest}");
}

#[test]
fn escape_leaves_a_search_field_and_keeps_everything() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/search?q=woven%2017"));
    browser.wait_for("return document.querySelectorAll('.hits').length === 1");
    let state = "return [document.getElementById('q').value, document.activeElement.id, document.querySelectorAll('.hits').length]";
    browser.run("document.getElementById('q').focus()");
    browser.press("\u{e00c}");
    assert_eq!(browser.run(state), json!(["woven 17", "", 1]));
    // The field to find text in a session.
    browser.open(&served.url(&format!("/s/{}", session_uuid("s17"))));
    browser.press("/");
    for key in "woven".chars() {
        browser.press(&key.to_string());
    }
    browser.wait_for("return document.getElementById('hits').textContent !== ''");
    let hits = browser.run("return document.getElementById('hits').textContent");
    browser.press("\u{e00c}");
    let state = "return [document.getElementById('q').value, document.activeElement.id, document.getElementById('hits').textContent]";
    assert_eq!(browser.run(state), json!(["woven", "", hits]));
    // The count is explained.
    browser.press("n");
    let meaning = browser.wait_for("return document.getElementById('hits').title.startsWith('Block 1 of') && document.getElementById('hits').title");
    assert!(meaning.as_str().unwrap().contains("with matches"), "{meaning}");
    assert_no_browser_errors(&browser);
}

#[test]
fn the_focus_ring_of_the_first_filter_is_visible() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.resize(1440, 900);
    browser.open(&served.url("/sessions"));
    let room = browser.run(
        "const box = document.getElementById('words').getBoundingClientRect(), clip = document.querySelector('.filters').getBoundingClientRect();
        return Math.min(box.left - clip.left, box.top - clip.top)",
    );
    // The width of the ring and its distance.
    assert!(room.as_f64().unwrap() >= 4.0, "{room}");
}

#[test]
fn a_search_result_shows_its_matches() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let gap = "filler ".repeat(25);
    home.session("far", &format!("u1 user \"{gap}\\n\\n{gap}\\nslow {gap}\\n\\n\\nfast\\n{gap}\""));
    let served = TestServer::new(&home);
    browser.open(&served.url("/search?q=slow%20fast"));
    browser.wait_for("return document.querySelectorAll('mark').length === 2");
    for width in [1280, 390] {
        browser.resize(width, 800);
        let hidden = browser.run(
            "const box = document.querySelector('.excerpt').getBoundingClientRect();
            return [...document.querySelectorAll('mark')].filter(mark => mark.getBoundingClientRect().bottom > box.bottom + 1).length",
        );
        assert_eq!(hidden, 0, "{width} px");
    }
}

#[test]
fn a_live_session_moves_to_the_top_of_an_open_home_page() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/sessions"));
    browser.wait_for(
        "return !document.querySelector('.pending') && document.querySelectorAll('tr.s').length === 30",
    );
    let id = session_uuid("s0");
    let path = home.root().join("projects/-home-ada-loom").join(format!("{id}.jsonl"));
    let line = json!({"type": "custom-title", "customTitle": "Woven right now", "sessionId": id});
    let now = format!("{:.3}", jiff::Timestamp::now());
    let message = json!({"type": "user", "timestamp": now});
    writeln!(File::options().append(true).open(path).unwrap(), "{line}\n{message}").unwrap();
    browser.wait_for("return document.querySelector('tr.s .go').textContent === 'Woven right now'");
    assert_eq!(browser.run("return document.querySelectorAll('tr.live .live-badge').length"), 1);
    let edges =
        "const ends = row => [...row.children].map(cell => Math.round(cell.getBoundingClientRect().right));
        return [ends(document.querySelector('thead tr')), ends(document.querySelector('tr.live'))]";
    let edges = browser.run(edges);
    assert_eq!(edges[0], edges[1], "figures are aligned with their headings");
    // A new session appears too.
    home.session("fresh", "u1 user \"a fresh start\"");
    browser.wait_for("return document.querySelectorAll('tr.s').length === 31");
    assert_no_browser_errors(&browser);
}

#[test]
fn search_updates_while_typing_and_links_to_the_block() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/search"));
    assert!(
        browser
            .run("return document.querySelector('.search-syntax').textContent")
            .as_str()
            .unwrap()
            .contains("tool:")
    );
    for key in "woven 17".chars() {
        browser.press(&key.to_string());
    }
    browser.wait_for("return document.querySelectorAll('.hits').length === 1 && document.querySelectorAll('mark').length === 2");
    assert_eq!(browser.run("return new URLSearchParams(location.search).get('q')"), "woven 17");
    assert_eq!(browser.run("return document.activeElement.id"), "q");
    let to = browser.run("return document.querySelector('.hits .go').getAttribute('href')");
    assert_eq!(to, format!("/s/{}?q=woven%2017#m2", session_uuid("s17")));
    browser.press("\u{e015}");
    assert_eq!(browser.run("return document.querySelectorAll('li.selected').length"), 1);
    browser.run("document.querySelector('.hits .go').click()");
    browser.wait_for("return location.hash === '#m2' && document.getElementById('m2')");
    // The matches are highlighted there.
    let marked = browser
        .wait_for("return CSS.highlights.get('hit')?.size && [...CSS.highlights.get('hit')].map(String)");
    assert_eq!(marked, json!(["woven", "17"]));
    assert_no_browser_errors(&browser);
}

#[test]
fn charts_render_in_both_themes_and_on_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/usage"));
    browser.wait_for(
        "return document.querySelectorAll('svg.chart:not(.axis), .bars').length === 5 && !document.querySelector('.indexing')",
    );
    let fill = "return getComputedStyle(document.querySelector('.chart .c0')).fill";
    browser.set_color_scheme("light");
    let light = browser.run(fill);
    browser.set_color_scheme("dark");
    assert_ne!(browser.run(fill), light);
    // The key overrides the system preference.
    browser.press("d");
    assert_eq!(browser.run(fill), light);
    // Bars have a height, and a figure links to its records.
    assert_eq!(browser.run("return [...document.querySelectorAll('.chart rect:not(.hit-area)')].every(one => one.getBBox().height > 0)"), true);
    browser.run("document.querySelector('.numbers tbody td a').click()");
    browser.wait_for("return document.querySelector('.explain .numbers tbody tr')");
    for path in [
        "/?range=all",
        "/records",
        "/sessions",
        "/usage",
        "/search?q=woven",
        &format!("/s/{}/check", session_uuid("s0")),
    ] {
        browser.resize(390, 800);
        browser.open(&served.url(path));
        let wide = browser.run("return document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= 390, "{path}: {wide}");
        assert_no_browser_errors(&browser);
    }
}

#[test]
fn no_script_of_a_hostile_home_runs() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let evil =
        "\\\"><script>document.title='pwned'</script><img src=x onerror=\\\"document.title='pwned'\\\">";
    let tool = format!("{{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"{evil}\",\"input\":{{}}}}");
    let log = format!(
        "u1 user \"{evil}\" branch=\"{evil}\"\na1 <- u1 reply m1 {tool} model=\"{evil}\" branch=\"{evil}\" usage={{\"input_tokens\":5}}\ntitle \"{evil}\""
    );
    home.session_in("/home/ada/<b>\"'loom", "evil", &log);
    let served = TestServer::new(&home);
    let id = session_uuid("evil");
    for path in [
        "/?range=all",
        "/records",
        "/sessions",
        "/search?q=pwned",
        "/search?q=%3Cimg%20src%3Dx%3E",
        "/usage",
        "/usage/explain",
        &format!("/s/{id}/check"),
    ] {
        browser.open(&served.url(path));
        browser.wait_for("return document.readyState === 'complete' && document.querySelector('main')");
        assert_ne!(browser.run("return document.title"), "pwned", "{path}");
        assert_eq!(
            browser.run("return document.querySelectorAll('main img, main script, main b b').length"),
            0,
            "{path}"
        );
        assert_no_browser_errors(&browser);
    }
}

#[test]
fn the_session_list_shows_twelve_rows_at_900_pixels() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    for i in 0..20 {
        let day = 1 + i / 4;
        home.session(
            &format!("s{i}"),
            &format!(
                "u1 user \"please weave the pattern number {i}, and do not forget the border; it should be blue\" @2026-02-0{day}T10:00:00Z\n\
                 a1 <- u1 reply m1 tool t1 Bash {{\"command\":\"make\"}}\nr1 <- a1 result t1 \"broken\" error\ntitle \"Pattern {i}\""
            ),
        );
    }
    let served = TestServer::new(&home);
    browser.resize(1400, 900);
    browser.open(&served.url("/sessions"));
    browser.wait_for("return document.querySelector('tr.s') && !document.querySelector('.pending')");
    let rows = browser.run(
        "return [...document.querySelectorAll('tr.s')].filter(row => row.getBoundingClientRect().bottom <= innerHeight).length",
    );
    assert!(rows.as_u64() >= Some(12), "{rows} rows");
    let seen = browser.run("const box = document.querySelector('tr.s .bad').getBoundingClientRect(); return box.width > 0 && box.right < innerWidth");
    assert_eq!(seen, true, "the error count is visible");
}

#[test]
fn filters_of_a_search_are_controls() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/search?q=woven"));
    let sessions = |count: usize| {
        browser.wait_for(&format!("return document.querySelectorAll('.hits').length === {count}"));
    };
    sessions(30);
    let choose = |name: &str, value: &str| {
        browser.run(&format!(
            "const control = document.querySelector('#search-form [name={name}]'); control.value = '{value}';
             control.dispatchEvent(new Event('input', {{ bubbles: true }})); control.dispatchEvent(new Event('change', {{ bubbles: true }}));"
        ));
    };
    choose("project", "/home/ada/dye");
    sessions(10);
    choose("error", "true");
    sessions(2);
    choose("project", "");
    sessions(6);
    choose("kind", "prompt");
    sessions(0);
    choose("kind", "");
    choose("since", "2026-02-10");
    sessions(4);
    // The URL contains the filters, and the page shows them again.
    let link = browser.run("return location.pathname + location.search");
    browser.open(&served.url(link.as_str().unwrap()));
    sessions(4);
    assert_eq!(browser.run("return document.querySelector('[name=since]').value"), "2026-02-10");
    assert_eq!(browser.run("return document.getElementById('q').value"), "woven");
    browser.resize(390, 800);
    let wide = browser.run("return document.documentElement.scrollWidth");
    assert!(wide.as_u64().unwrap() <= 390, "{wide}");
    assert_no_browser_errors(&browser);
}
