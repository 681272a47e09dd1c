//! Session pages in a real browser. The tests are skipped if there is none.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{TestServer, assert_no_browser_errors};

/// Returns the rendered content of a page, without markup that depends on the scroll position or the visit.
const RENDERED_CONTENT: &str = r#"
const shown = [];
for (const part of ['opening', 'parts', 'ending', 'rail']) {
  const copy = document.getElementById(part).cloneNode(true);
  for (const extra of copy.querySelectorAll('.ops, .copy, .new-marker, noscript, #live')) extra.remove();
  for (const found of copy.querySelectorAll('*')) {
    found.removeAttribute('style'); found.removeAttribute('aria-current'); found.removeAttribute('data-rows');
    found.classList.remove('here', 'drawn');
    if (!found.classList.length) found.removeAttribute('class');
  }
  shown.push(copy.innerHTML.replace(/\s+/g, ' ').replaceAll('> <', '><'));
}
return shown.join('\n=====\n');
"#;

/// Scrolls to a part that is not rendered yet. Returns true once all parts are rendered.
const RENDER_ALL: &str = r#"
const left = document.querySelector('#parts > .piece:not(.drawn)');
if (left) { left.scrollIntoView(); return false; }
return true;
"#;

/// Returns the height of the page below the viewport, in pixels.
const HEIGHT_BELOW: &str = "return document.documentElement.scrollHeight - innerHeight - scrollY";

/// Returns a real session of medium size, or else the largest of the demo sessions.
fn medium_session() -> PathBuf {
    let mut logs = threadline_testkit::shared_logs();
    logs.retain(|log| {
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        !log.to_string_lossy().contains("subagents") && !name.starts_with("agent-") && name != "journal.jsonl"
    });
    let size = |log: &PathBuf| std::fs::metadata(log).map_or(0, |metadata| metadata.len());
    logs.sort_by_key(size);
    let middling = logs.into_iter().find(|log| size(log) > 150 << 10);
    middling.unwrap_or_else(|| longest_below(&threadline_testkit::demo().join("projects")))
}

fn longest_below(folder: &Path) -> PathBuf {
    let mut logs = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                logs.push(path);
            }
        }
    }
    logs.into_iter().max_by_key(|log| std::fs::metadata(log).unwrap().len()).unwrap()
}

#[test]
fn a_live_page_ends_equal_to_a_fresh_one() {
    let Some(browser) = Browser::start() else { return };
    let bytes = std::fs::read(medium_session()).unwrap();
    let home = TestHome::new();
    let id = session_uuid("live");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    // The first half is long enough that its end is out of view.
    let (before, after) = lines.split_at(lines.len() / 2);
    let path = home.file(format!("projects/-p/{id}.jsonl"), before.concat());
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.resize(1400, 500);
    browser.wait_for("return document.getElementById('main')?.dataset.line");
    // The reader is in the middle of the page and has expanded an element.
    browser.run("document.querySelector('#parts details')?.setAttribute('open', ''); scrollTo(0, 60);");
    let position = browser.run("return scrollY").as_f64().unwrap();
    assert!(
        browser.run(HEIGHT_BELOW).as_f64().unwrap() > 500.0,
        "not at the end, where the page would follow"
    );
    let mut file = File::options().append(true).open(&path).unwrap();
    for (i, line) in after.iter().enumerate() {
        let cut = [line.len() / 2, line.len().saturating_sub(1), line.len()][i % 3];
        for piece in [&line[..cut], &line[cut..]] {
            file.write_all(piece).unwrap();
            if i % 5 == 0 {
                std::thread::sleep(Duration::from_millis(15));
            }
        }
    }
    browser.wait_for(&format!("return document.getElementById('main').dataset.line === '{}'", lines.len()));
    assert_eq!(browser.run("return scrollY").as_f64().unwrap(), position, "the scroll position changed");
    assert!(browser.run(HEIGHT_BELOW).as_f64().unwrap() > 500.0, "the page grew below the viewport");
    browser.run("for (const open of document.querySelectorAll('#parts details[open]')) open.open = false;");
    browser.wait_for(RENDER_ALL);
    browser.run("scrollTo(0, 0)");
    let live = browser.run(RENDERED_CONTENT);
    assert_no_browser_errors(&browser);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for(RENDER_ALL);
    let fresh = browser.run(RENDERED_CONTENT);
    let (live, fresh) = (live.as_str().unwrap(), fresh.as_str().unwrap());
    let differs =
        live.bytes().zip(fresh.bytes()).position(|(a, b)| a != b).unwrap_or(live.len().min(fresh.len()));
    let around = |text: &str| {
        String::from_utf8_lossy(
            &text.as_bytes()[differs.saturating_sub(200)..(differs + 300).min(text.len())],
        )
        .into_owned()
    };
    assert!(live == fresh, "live: {}\n\nfresh: {}", around(live), around(fresh));
    assert!(fresh.len() > 20_000, "the page has content to compare");
}

#[test]
fn an_appended_line_appears_and_is_marked_new_on_the_next_visit() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let path = home.session("one", "u1 user \"first prompt\"\na1 <- u1 reply m1 text \"first answer\"");
    let id = session_uuid("one");
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.getElementById('main')?.dataset.line === '2'");
    browser
        .wait_for("return performance.getEntriesByType('resource').some(e => e.name.includes('/assets/'))");
    let add = |notation: &str| {
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(&threadline_testkit::log_of(&id, notation))
            .unwrap();
    };
    assert_eq!(browser.run("return document.getElementById('live').hidden"), true);
    let pid = std::process::id();
    home.file(format!("sessions/{pid}.json"), format!("{{\"pid\":{pid},\"sessionId\":\"{id}\"}}"));
    add("u2 <- ?a1 user \"second prompt\"");
    browser.wait_for("return document.getElementById('m3')?.textContent.includes('second prompt')");
    browser.wait_for("return document.querySelector('#rail').textContent.includes('second prompt')");
    browser.wait_for("return !document.getElementById('live').hidden");
    assert_eq!(browser.run("return document.getElementById('new-marker')"), serde_json::Value::Null);
    // The reader leaves and returns.
    browser.open(&served.url("/sessions"));
    add("a2 <- ?u2 reply m2 text \"second answer\"");
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.getElementById('new-marker')?.nextElementSibling?.id === 'm4'");
    // The log is deleted while its page is open.
    std::fs::remove_file(&path).unwrap();
    browser.wait_for("return document.getElementById('gone')?.textContent.includes('Session not found')");
    browser.wait_for("return document.getElementById('m3').textContent.includes('second prompt')");
}

const SESSION: &str = r#"
u1        user   "why is the loom slow?"
a1 <- u1  reply  m1 thinking "Perhaps a sleep in the loop."
a2 <- a1  reply  m1 tool t1 Grep {"pattern":"sleep"}
r1 <- a2  result t1 "src/main.rs:9"
a3 <- r1  reply  m2 text "There is a sleep in `main.rs`:\n\n```rust\nsleep(1);\n```\n"
u2 <- a3  user   "take it out"
a4 <- u2  reply  m3 tool t2 Bash {"command":"cargo test"}
r2 <- a4  result t2 "Exit code 101" error
a5 <- r2  reply  m4 tool t3 Task {"description":"look again","prompt":"look again","subagent_type":"Explore"}
r3 <- a5  result t3 "nothing" {"agentId":"x1"}
u3 <- r3  user   "and the warp?"
a7 <- u3  reply  m6 text "Left behind."
u4 <- r3  user   "and the weft?"
a8 <- u4  reply  m7 text "Kept."
"#;

fn session_home() -> (TestHome, String) {
    let home = TestHome::new();
    home.session("work", SESSION);
    home.agent("work", "x1", "b1 user \"look again\"\nb2 <- b1 reply n1 text \"I looked.\"", None);
    (home, session_uuid("work"))
}

#[test]
fn the_error_count_of_the_home_page_links_to_the_errors_of_the_session() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = session_home();
    let served = TestServer::new(&home);
    browser.open(&served.url("/sessions"));
    browser.wait_for("return document.querySelector('a.bad') !== null");
    browser.run("document.querySelector('a.bad').click()");
    browser.wait_for(&format!(
        "return location.pathname === '/s/{id}' && document.getElementById('m7') !== null"
    ));
    browser.wait_for("return document.getElementById('tool').value === 'bad'");
    let visible = |anchor: &str| {
        browser.run(&format!("return document.getElementById('{anchor}').getClientRects().length > 0"))
            == true
    };
    assert!(visible("m7") && !visible("m3"));
}

#[test]
fn the_export_menu_fits_the_window() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = session_home();
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.documentElement.classList.contains('js')");
    browser.run("document.querySelector('.export').open = true");
    for width in [1440, 1280, 800, 390] {
        browser.resize(width, 800);
        let sizes = browser.run(
            "const menu = document.querySelector('.export ul').getBoundingClientRect(), summary = document.querySelector('.export summary').getBoundingClientRect();
            return [document.documentElement.scrollWidth - innerWidth, Math.round(menu.left), Math.round(innerWidth - menu.right), Math.round(menu.top - summary.bottom)]",
        );
        let number = |at: usize| sizes[at].as_i64().unwrap();
        assert!(number(0) <= 0 && number(1) >= 0 && number(2) >= 0, "{width} px: {sizes}");
        assert!((-2..=20).contains(&number(3)), "below its name at {width} px: {sizes}");
    }
}

#[test]
fn keys_filters_folds_raw_lines_search_agents_and_branches() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = session_home();
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.documentElement.classList.contains('js')");
    assert!(
        browser.run("return location.search").as_str().unwrap().is_empty(),
        "the token is removed from the URL"
    );
    // From prompt to prompt, and to the error.
    browser.press("j");
    browser.wait_for("return location.hash === '#m1'");
    browser.press("j");
    browser.wait_for(
        "return location.hash === '#m6' && document.querySelector('#rail [aria-current]')?.hash === '#m6'",
    );
    browser.press("k");
    browser.wait_for("return location.hash === '#m1'");
    browser.press("e");
    browser.wait_for("return location.hash === '#m7' && document.querySelector('#m7 > details').open");
    // The raw line.
    browser.press("r");
    browser.wait_for("return document.getElementById('raw').open && document.querySelector('#raw pre').textContent.includes('cargo test')");
    browser.run("document.getElementById('raw-next').click()");
    browser.wait_for("return document.querySelector('#raw pre').textContent.includes('Exit code 101')");
    browser.run("document.getElementById('raw-close').click()");
    // Filters by kind and by tool.
    let visible = |anchor: &str| {
        browser.run(&format!("return document.getElementById('{anchor}').getClientRects().length > 0"))
            == true
    };
    assert!(visible("m3") && visible("m2"));
    browser.press("t");
    assert!(!visible("m3") && visible("m5"));
    browser.press("t");
    browser.run("const tool = document.getElementById('tool'); tool.value = [...tool.options].find(o => o.text.startsWith('Bash')).value; tool.dispatchEvent(new Event('change'));");
    assert!(visible("m7") && !visible("m3") && !visible("m5"));
    browser.run("const tool = document.getElementById('tool'); tool.value = ''; tool.dispatchEvent(new Event('change'));");
    // Search covers the whole log.
    browser.run(
        "const q = document.getElementById('q'); q.value = 'sleep'; q.dispatchEvent(new Event('input'));",
    );
    browser.wait_for("return document.getElementById('hits').textContent === '3'");
    browser.run("document.getElementById('b-next').click()");
    browser.wait_for("return document.querySelector('.here') && CSS.highlights.has('hit')");
    // Copy buttons.
    browser.run(
        "window.copied = null; navigator.clipboard.writeText = async text => { window.copied = text; };",
    );
    browser.wait_for("return document.querySelector('#m5 .copy')");
    browser.run("document.querySelector('#m5 .copy').click()");
    browser.wait_for("return window.copied === 'sleep(1);\\n' || window.copied === 'sleep(1);'");
    browser.wait_for("return document.querySelector('.resume .copy')");
    browser.run("document.querySelector('.resume .copy').click()");
    browser.wait_for(&format!("return window.copied === 'cd /home/ada/loom && claude --resume {id}'"));
    // A sub-agent inline, and on its own page.
    browser.run("document.querySelector('#m9 > details').open = true; document.querySelector('#m9 .inside').open = true;");
    browser.wait_for("return document.getElementById('a-x1-m2')?.textContent.includes('I looked.')");
    browser.run("document.querySelector('#m9 a[href*=agent]').click()");
    browser.wait_for("return document.getElementById('m2')?.textContent.includes('I looked.')");
    // A branch.
    browser.open(&served.url(&format!("/s/{id}")));
    browser.wait_for("return document.querySelector('.branch-list a')");
    browser.run("document.querySelector('.branch-list a').click()");
    browser.wait_for("return document.getElementById('m12')?.textContent.includes('Left behind.') && !document.getElementById('m14')");
    assert_no_browser_errors(&browser);
}

#[test]
fn a_large_session_is_rendered_around_the_viewport() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let long = "word ".repeat(600);
    let mut log = "u0 user \"start\"\n".to_owned();
    for i in 1..500 {
        log.push_str(&format!(
            "a{i} <- u{} reply m{i} text \"{long}\"\nu{i} <- a{i} user \"prompt {i}\"\n",
            i - 1
        ));
    }
    home.session("large", &log);
    let id = session_uuid("large");
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}#m900")));
    browser.wait_for("return document.getElementById('m900')?.classList.contains('here')");
    assert_eq!(browser.run("return document.getElementById('m500')"), serde_json::Value::Null);
    browser.wait_for("const box = document.getElementById('m900').getBoundingClientRect(); return box.top >= -5 && box.top < innerHeight");
    // The rest of the outline is loaded when scrolled to.
    browser.run("const rail = document.getElementById('rail'); rail.scrollTop = rail.scrollHeight;");
    browser.wait_for("return document.querySelector('#rail a[href=\"#m999\"]')");
    // Without a script, a page can start at any line.
    let page = served.get(&format!("/s/{id}?at=m900"));
    assert!(
        page.body.contains("id=\"m900\"") && page.body.contains(&format!("<a href=\"/s/{id}?at=m1#m1\">"))
    );
    assert_no_browser_errors(&browser);
}

#[test]
fn no_script_of_a_hostile_session_runs() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let attack = r#"</script></title></textarea><script>document.title='pwned'</script><img src=x onerror=document.title='pwned'><svg onload=document.title='pwned'><style>body{display:none}</style><iframe src=javascript:document.title='pwned'></iframe>'\"--><a href=javascript:alert(1)>x</a>"#;
    let text = serde_json::to_string(attack).unwrap();
    let markdown = serde_json::to_string(&format!("{attack}\n\n[x](javascript:document.title='pwned') ![y](http://evil.example/x.png) <{attack}>\n\n```{attack}\n{attack}\n```")).unwrap();
    home.session(
        "evil",
        &format!(
            "u1 user {text}\na1 <- u1 reply m1 text {markdown}\na2 <- a1 reply m1 thinking {markdown}\na3 <- a2 reply m1 tool t1 Bash {{\"command\":{text},\"description\":{text}}}\n\
             r1 <- a3 result t1 {text} error\na4 <- r1 reply m2 tool t2 Task {{\"description\":{text},\"prompt\":{text}}}\nr2 <- a4 result t2 {text} {{\"agentId\":{text}}}\n\
             a5 <- r2 reply m3 tool t3 Write {{\"file_path\":{text},\"content\":{text}}}\nr3 <- a5 result t3 {text} {{\"type\":\"create\",\"filePath\":{text},\"content\":{text},\"structuredPatch\":[]}}\n\
             a6 <- r3 reply m4 tool t4 Evil {{\"x\":{text}}}\nu2 <- a6 user {text}\ntitle {text}\n"
        ),
    );
    let id = session_uuid("evil");
    let served = TestServer::new(&home);
    for path in [
        format!("/s/{id}"),
        format!("/s/{id}/changes"),
        "/".to_owned(),
        "/sessions".to_owned(),
        "/records".to_owned(),
        format!("/s/{id}?agent=%3Cscript%3E"),
        "/s/%3Cscript%3Ealert(1)%3C%2Fscript%3E".to_owned(),
    ] {
        browser.open(&served.url(&path));
        browser.wait_for("return document.readyState === 'complete'");
        browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true;");
        std::thread::sleep(Duration::from_millis(100));
        assert_ne!(browser.run("return document.title"), "pwned", "{path}");
        assert_eq!(
            browser.run(
                "return document.querySelectorAll('iframe, img[src=x], main script, main style').length"
            ),
            0,
            "{path}"
        );
        let said: Vec<String> =
            browser.console().into_iter().filter(|line| !line.contains("status of 404")).collect();
        assert!(said.is_empty(), "{path}: {said:#?}");
    }
}

/// Not a test: creates the screenshots of the documentation from the demo sessions.
#[test]
#[ignore = "writes into docs"]
fn screenshots() {
    let Some(browser) = Browser::start() else { return };
    let served = TestServer::with_root(&threadline_testkit::demo());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    browser.resize(1440, 900);
    let pages = [
        ("session", "/s/a4d5d01a-99d6-4326-8497-3fed5e693dcc"),
        ("overview", "/?range=year"),
        ("home", "/sessions"),
        ("search", "/search?q=drawdown"),
        ("usage", "/usage"),
    ];
    for theme in ["light", "dark"] {
        browser.set_color_scheme(theme);
        for (name, path) in pages {
            browser.open(&served.url(path));
            browser.wait_for("return document.readyState === 'complete'");
            // The figures of the home page come from a background thread.
            std::thread::sleep(Duration::from_millis(1500));
            let screenshot = browser.screenshot();
            let bytes =
                base64::Engine::decode(&base64::engine::general_purpose::STANDARD, screenshot).unwrap();
            std::fs::write(docs.join(format!("{name}-{theme}.png")), bytes).unwrap();
        }
    }
}
