//! The overview in a browser: every figure leads to what it counts.

use serde_json::Value;
use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{TestServer, assert_no_browser_errors};

/// A home with figures that all differ.
fn home() -> TestHome {
    let home = TestHome::new();
    home.session(
        "one",
        r#"
u1        user   "weave" @2026-02-03T10:00:00Z
a1 <- u1  reply  msg_1 tool t1 Bash {"command":"cargo test"} model=claude-opus-5 usage={"output_tokens":9000}
r1 <- a1  result t1 "exit 101" error
a2 <- r1  reply  msg_2 tool t2 Bash {"command":"cargo test"} model=claude-opus-5 usage={"output_tokens":100}
r2 <- a2  result t2 "ok"
a3 <- r2  reply  msg_3 tool t3 Edit {"file_path":"/home/ada/loom/src/main.rs","old_string":"a","new_string":"b"}
r3 <- a3  result t3 "ok"
u2 <- r3  user   "again" @2026-02-04T11:00:00Z
a4 <- u2  reply  msg_4 tool t4 Task {"description":"look","prompt":"look"}
r4 <- a4  result t4 "fine"
a5 <- r4  reply  msg_5 text "done"
title "Slow loom"
"#,
    );
    home.session_in(
        "/home/ada/dye",
        "two",
        r#"
v1        user   "dye" @2026-03-05T12:00:00Z
b1 <- v1  reply  msg_6 tool t5 Bash {"command":"make"} model=claude-haiku-4-5 usage={"output_tokens":500}
s1 <- b1  result t5 "exit 2" error
b2 <- s1  reply  msg_7 tool t6 Read {"file_path":"/x"}
s2 <- b2  result t6 "x"
title "Blue dye"
"#,
    );
    home
}

/// Opens the overview of all time, and waits until all logs are read.
fn open_overview(browser: &Browser, served: &TestServer) {
    browser.open(&served.url("/?range=all"));
    browser.wait_for(
        "return document.querySelector('.overview .totals') && !document.querySelector('.indexing')",
    );
}

/// Returns the number that a page shows: of records, sessions, or model calls.
fn count(browser: &Browser) -> u64 {
    let shown = browser.wait_for(
        "if (document.readyState !== 'complete' || document.querySelector('.pending, .indexing')) return null;
         const sum = document.querySelector('tfoot td');
         return (document.getElementById('count') || sum || {}).textContent || null;",
    );
    let shown = shown.as_str().unwrap_or_default().replace(',', "");
    let digits: String = shown.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_default()
}

#[test]
fn every_figure_of_the_overview_leads_to_what_it_counts() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    open_overview(&browser, &served);
    // The figures of the tiles.
    let tiles = browser.run(
        "return [...document.querySelectorAll('.totals div')].map(one => [one.querySelector('dt').textContent,
         one.querySelector('a').textContent, one.querySelector('a').getAttribute('href')])",
    );
    let tiles: Vec<[String; 3]> = serde_json::from_value(tiles).unwrap();
    let expected = [
        ("Sessions", "2"),
        ("Prompts", "3"),
        ("Tool calls", "6"),
        ("Failed calls", "2"),
        ("Agent calls", "1"),
        ("Compactions", "0"),
    ];
    for (name, shown) in expected {
        let tile = tiles.iter().find(|tile| tile[0] == name).unwrap();
        assert_eq!(tile[1], shown, "{name}");
        browser.open(&served.url(&tile[2]));
        assert_eq!(count(&browser).to_string(), shown, "{name}: {}", tile[2]);
        assert_no_browser_errors(&browser);
    }
    // Every number in a table that is a link: the target shows that many.
    open_overview(&browser, &served);
    let cells = browser.run(
        "return [...document.querySelectorAll('.overview .numbers td a')]
         .filter(link => /^[0-9,]+$/.test(link.textContent) && /^\\/(records|sessions)/.test(link.getAttribute('href')))
         .map(link => [link.textContent, link.getAttribute('href')])",
    );
    let mut cells: Vec<[String; 2]> = serde_json::from_value(cells).unwrap();
    cells.sort();
    cells.dedup();
    assert!(cells.len() > 15, "{cells:?}");
    for [shown, href] in &cells {
        browser.open(&served.url(href));
        assert_eq!(count(&browser).to_string(), shown.replace(',', ""), "{href}");
    }
    // Cells of the charts: their titles begin with what they count.
    open_overview(&browser, &served);
    let marks = browser.run(
        "return [...document.querySelectorAll('.overview :is(svg, .bars) a')].filter(link => link.getAttribute('href').startsWith('/records'))
         .map(link => [link.querySelector('title')?.textContent ?? link.title, link.getAttribute('href')])",
    );
    let marks: Vec<[String; 2]> = serde_json::from_value(marks).unwrap();
    assert!(marks.len() > 8, "{marks:?}");
    for [title, href] in marks.iter().filter(|[_, href]| href.contains("kind=prompts")) {
        let shown = title.rsplit(": ").next().unwrap().split(' ').next().unwrap();
        browser.open(&served.url(href));
        assert_eq!(count(&browser).to_string(), shown, "{title} {href}");
    }
}

#[test]
fn cost_and_models_lead_to_the_same_figures_of_usage() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    open_overview(&browser, &served);
    let cost = browser.run("return document.querySelector('.totals dd a').textContent");
    let links = browser.run(
        "return [...document.querySelectorAll('.overview .numbers tbody th a')].filter(link => link.getAttribute('href').startsWith('/usage'))
         .map(link => [link.closest('tr').querySelector('td').textContent, link.closest('tr').lastElementChild.textContent, link.getAttribute('href')])",
    );
    let links: Vec<[String; 3]> = serde_json::from_value(links).unwrap();
    assert!(links.len() >= 4, "{links:?}");
    browser.run("document.querySelector('.totals dd a').click()");
    let total = "return location.pathname === '/usage' && !document.querySelector('.indexing') && document.querySelector('tfoot td:last-child')?.textContent";
    assert_eq!(browser.wait_for(total), cost);
    for [calls, cost, href] in &links {
        browser.open(&served.url(href));
        assert_eq!(browser.wait_for(total), Value::from(cost.clone()), "{href}");
        assert_eq!(&count(&browser).to_string(), calls, "{href}");
    }
}

/// Returns the href of the cell in the row with this name, counted from 0.
fn cell_link(browser: &Browser, row: &str, cell: usize) -> (String, String) {
    let link = browser.run(&format!(
        "const row = [...document.querySelectorAll('.overview .numbers tbody tr')].findLast(row => row.firstElementChild.textContent.trim() === '{row}');
         const link = row.children[{cell}].querySelector('a'); return [link.textContent, link.getAttribute('href')]"
    ));
    serde_json::from_value(link).unwrap()
}

/// Returns the texts of a column of the records.
fn column(browser: &Browser, name: &str) -> Vec<String> {
    let texts = browser.wait_for(&format!(
        "const heads = [...document.querySelectorAll('.explain thead th')].map(one => one.textContent.trim());
         const at = heads.indexOf('{name}');
         return at < 0 ? null : [...document.querySelectorAll('.explain tbody tr')].map(row => row.children[at].textContent.trim())"
    ));
    serde_json::from_value(texts).unwrap()
}

#[test]
fn times_lead_to_the_periods_and_calls_they_are_from() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    home.session(
        "one",
        r#"
u1        user   "weave" @2026-02-03T10:00:00Z
a1 <- u1  reply  msg_1 tool t1 Bash {"command":"cargo test"} @2026-02-03T10:00:10Z
r1 <- a1  result t1 "ok" @2026-02-03T10:01:10Z
a2 <- r1  reply  msg_2 tool t2 Bash {"command":"ls"} @2026-02-03T10:01:20Z
r2 <- a2  result t2 "ok" @2026-02-03T10:01:22Z
a3 <- r2  reply  msg_3 text "done" @2026-02-03T10:01:30Z
u2 <- a3  user   "again" @2026-02-03T10:06:30Z
a4 <- u2  reply  msg_4 text "done" @2026-02-03T10:06:40Z
title "Slow loom"
"#,
    );
    let served = TestServer::new(&home);
    open_overview(&browser, &served);
    let (shown, waiting) = cell_link(&browser, "Waiting", 2);
    let (_, active) = cell_link(&browser, "Active", 2);
    let (median, longest) = cell_link(&browser, "Bash", 3);
    assert_eq!((&*shown, &*median), ("5 min 00 s", "2.0 s"));
    browser.open(&served.url(&waiting));
    assert_eq!(column(&browser, "length"), ["5 min 00 s"]);
    browser.open(&served.url(&active));
    assert_eq!(column(&browser, "length"), ["1 min 30 s", "10 s"]);
    assert_eq!(column(&browser, "state"), ["active", "active"]);
    browser.open(&served.url(&longest));
    assert_eq!(column(&browser, "time taken"), ["1 min 00 s", "2.0 s"]);
    assert_no_browser_errors(&browser);
}

#[test]
fn the_cost_of_sub_agents_leads_to_their_sessions() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    home.agent(
        "one",
        "look",
        "x1 user \"look\" @2026-02-04T11:00:01Z\ny1 <- x1 reply msg_9 text \"fine\" model=claude-opus-5 usage={\"output_tokens\":40000}",
        None,
    );
    let served = TestServer::new(&home);
    open_overview(&browser, &served);
    let (cost, href) = cell_link(&browser, "Agent calls", 2);
    browser.open(&served.url(&href));
    assert_eq!(column(&browser, "cost of sub-agents"), [cost]);
    assert_eq!(column(&browser, "session"), ["Slow loom"]);
}

#[test]
fn an_edited_file_leads_to_its_edits() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    open_overview(&browser, &served);
    browser.run("[...document.querySelectorAll('.overview .numbers a')].find(link => link.textContent.endsWith('main.rs')).click()");
    browser
        .wait_for("return location.pathname === '/file' && document.querySelector('.file-edits')?.textContent.includes('weave')");
    assert_no_browser_errors(&browser);
}

#[test]
fn a_record_leads_to_its_line() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/records?command=cargo%20test&failed=1"));
    browser.wait_for("return document.querySelector('.numbers tbody th a')");
    browser.run("document.querySelector('.numbers tbody th a').click()");
    let id = session_uuid("one");
    browser.wait_for(&format!("return location.pathname === '/s/{id}' && location.hash === '#m2'"));
    browser.wait_for("return document.getElementById('m2')?.textContent.includes('cargo test')");
    assert_no_browser_errors(&browser);
}

#[test]
fn periods_are_chosen_by_links_and_dates() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/"));
    browser.wait_for("return document.querySelector('.sorter a[aria-current]')?.textContent === '30 days'");
    browser.run("[...document.querySelectorAll('.usage-filters .sorter a')].find(link => link.textContent === 'All').click()");
    browser.wait_for("return document.querySelector('.sorter a[aria-current]')?.textContent === 'All'");
    let prompts = "return [...document.querySelectorAll('.totals div')].find(one => one.querySelector('dt').textContent === 'Prompts').querySelector('a').textContent";
    assert_eq!(browser.run(prompts), "3");
    browser.run(
        "const form = document.getElementById('filters'); form.since.value = '2026-02-04'; form.until.value = '2026-03-05';
         form.until.dispatchEvent(new Event('change', { bubbles: true }));",
    );
    browser.wait_for(&format!(
        "return location.search.includes('since=2026-02-04') && (() => {{ {prompts} }})() === '2'"
    ));
    // Links of earlier versions lead to the list.
    browser.open(&served.url("/?project=/home/ada/dye"));
    browser.wait_for(
        "return location.pathname === '/sessions' && document.querySelectorAll('tr.s').length === 1",
    );
    browser.press("o");
    browser.wait_for("return document.querySelector('main.overview')");
    browser.press("s");
    browser.wait_for("return location.pathname === '/sessions'");
    assert_no_browser_errors(&browser);
}

#[test]
fn a_new_session_appears_in_an_open_overview() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    open_overview(&browser, &served);
    let now = format!("{:.3}", jiff::Timestamp::now());
    home.session(
        "three",
        &format!("w1 user \"spin\" @{now}\nc1 <- w1 reply msg_9 text \"done\" @{now}\ntitle \"Spinning\""),
    );
    browser.wait_for(
        "return [...document.querySelectorAll('.now a')].some(link => link.textContent === 'Spinning')",
    );
}

#[test]
fn the_page_of_a_project_has_its_own_figures() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    home.session_in(
        "/home/ada/loom/.worktrees/blue",
        "tree",
        "w1 user \"tie\" branch=blue @2026-02-09T10:00:00Z\nc1 <- w1 reply msg_8 text \"tied\" branch=blue model=claude-opus-5 usage={\"output_tokens\":7}\ntitle \"Worktree\"",
    );
    let served = TestServer::new(&home);
    open_overview(&browser, &served);
    browser.run("[...document.querySelectorAll('.overview .numbers a')].find(link => link.textContent.endsWith('/loom') && link.getAttribute('href').startsWith('/project')).click()");
    browser.wait_for("return document.querySelector('.overview h1')?.textContent === 'loom'");
    let tile = |name: &str| {
        browser.run(&format!("const tile = [...document.querySelectorAll('.totals div')].find(one => one.querySelector('dt').textContent === '{name}').querySelector('a'); return [tile.textContent, tile.getAttribute('href')]"))
    };
    let tiles: Vec<(&str, Value)> = ["Sessions", "Prompts", "Tool calls", "Failed calls"]
        .into_iter()
        .map(|name| (name, tile(name)))
        .collect();
    let text = browser.run("return document.querySelector('main').textContent");
    let text = text.as_str().unwrap();
    for expected in ["Slow loom", "Worktree", "blue", "/home/ada/loom/.worktrees/blue"] {
        assert!(text.contains(expected), "{expected}");
    }
    assert!(!text.contains("Blue dye"));
    let cells = browser.run(
        "return [...document.querySelectorAll('.overview .numbers td a')]
         .filter(link => /^[0-9,]+$/.test(link.textContent) && /^\\/(records|sessions)/.test(link.getAttribute('href')))
         .map(link => [link.textContent, link.getAttribute('href')])",
    );
    let mut cells: Vec<[String; 2]> = serde_json::from_value(cells).unwrap();
    cells.sort();
    cells.dedup();
    assert!(cells.len() > 10 && cells.iter().all(|[_, href]| href.contains("loom")), "{cells:?}");
    let tiles = tiles.into_iter().map(|(_, tile)| serde_json::from_value::<[String; 2]>(tile).unwrap());
    for [shown, href] in tiles.chain(cells) {
        browser.open(&served.url(&href));
        assert_eq!(count(&browser).to_string(), shown, "{href}");
    }
    browser.open(&served.url("/project?name=/nowhere"));
    browser.wait_for("return document.body.textContent.includes('No project named')");
}

#[test]
fn the_palette_is_used_with_the_keyboard_alone() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let served = TestServer::new(&home);
    let open_palette = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true, cancelable: true }))";
    let typed = |text: &str| text.chars().for_each(|ch| browser.press(&ch.to_string()));
    for (query, target) in [
        ("slow", format!("/s/{}", session_uuid("one"))),
        ("home/ada/dye", "/project?name=/home/ada/dye".to_owned()),
        ("main.rs", "/file?path=/home/ada/loom/src/main.rs".to_owned()),
        ("cargo", "/records?command=cargo%20test".to_owned()),
        ("usage", "/usage".to_owned()),
    ] {
        browser.open(&served.url("/sessions"));
        browser.wait_for("return document.readyState === 'complete'");
        browser.run(open_palette);
        browser.wait_for("return document.querySelectorAll('#palette [role=option]').length > 2");
        typed(query);
        let first = "document.querySelector('#palette [aria-selected=true]')";
        browser.wait_for(&format!("return {first}?.dataset.href === '{target}'"));
        assert_eq!(
            browser.run(&format!(
                "return document.activeElement.getAttribute('aria-activedescendant') === {first}.id"
            )),
            true
        );
        browser.press("\u{e007}");
        browser.wait_for(&format!("return location.pathname + location.search === '{target}'"));
    }
    // Arrows move the selection, Escape closes the palette, and the focus returns.
    browser.run(open_palette);
    browser.wait_for("return document.querySelectorAll('#palette [role=option]').length > 2");
    browser.press("\u{e015}");
    assert_eq!(browser.run("return document.querySelector('#palette [aria-selected=true]').id"), "palette-1");
    browser.press("\u{e013}");
    assert_eq!(browser.run("return document.querySelector('#palette [aria-selected=true]').id"), "palette-0");
    if let Some(axe) = threadline_testkit::axe_script() {
        assert_eq!(crate::browser_reader::axe_violations(&browser, &axe), serde_json::json!([]));
    }
    browser.press("\u{e00c}");
    browser.wait_for("return !document.getElementById('palette').open");
    assert_no_browser_errors(&browser);
}
