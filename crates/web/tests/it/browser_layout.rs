//! The layout of pages in a real browser: themes, margins, small windows and print. The tests are skipped if
//! there is none.

use serde_json::json;
use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{TestServer, assert_no_browser_errors};

const SESSION: &str = r#"
u1        user   "why is the loom slow?" branch=feature/a-branch-with-a-long-name
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"} model=claude-opus-4-8 usage={"input_tokens":260000,"output_tokens":900}
r1 <- a1  result t1 "Exit code 2" error
a2 <- r1  reply  m2 tool t2 Write {"file_path":"/home/ada/loom/a.rs","content":"one\n"} usage={"input_tokens":9000}
r2 <- a2  result t2 "created" {"type":"create","filePath":"/home/ada/loom/a.rs","content":"one\n","structuredPatch":[],"originalFile":null}
a3 <- r2  reply  m3 text "A shuttle that waits." model=claude-opus-4-8 usage={"input_tokens":1000,"output_tokens":90}
"#;

fn session_home() -> (TestHome, String) {
    let home = TestHome::new();
    home.session("work", SESSION);
    (home, session_uuid("work"))
}

/// Returns the addresses of one page of each kind.
fn pages(id: &str) -> Vec<String> {
    let of_session = ["", "/changes", "/check", "/context"].map(|part| format!("/s/{id}{part}"));
    let others = ["/?range=all", "/sessions", "/search?q=loom", "/usage", "/nothing", "/blame?path=/nothing"];
    of_session.into_iter().chain(others.map(str::to_owned)).collect()
}

#[test]
fn every_page_has_a_theme_switch() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = session_home();
    let served = TestServer::new(&home);
    for page in pages(&id) {
        browser.open(&served.url(&page));
        browser.wait_for("return document.getElementById('b-theme')?.checkVisibility()");
        let theme = || browser.run("return document.documentElement.dataset.theme");
        browser.run("document.getElementById('b-theme').click()");
        let first = theme();
        assert!(first == "dark" || first == "light", "{page}: {first}");
        browser.run("document.activeElement.blur()");
        browser.press("d");
        let second = theme();
        assert!(second != first && (second == "dark" || second == "light"), "{page}: {second}");
    }
}

#[test]
fn figures_in_the_margin_hide_the_text_behind_them() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = session_home();
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{id}#m6")));
    browser.wait_for("return document.querySelector('.here > .cost')");
    browser.wait_for("return getComputedStyle(document.querySelector('.here > .cost')).opacity === '1'");
    let style = browser.run(
        "const style = getComputedStyle(document.querySelector('.here > .cost')), page = getComputedStyle(document.body);
        return [style.backgroundColor === page.backgroundColor || style.backgroundColor, Number(style.zIndex) > 0]",
    );
    assert_eq!(style, json!([true, true]));
    assert_no_browser_errors(&browser);
}

#[test]
fn the_bar_of_a_page_fits_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = session_home();
    let served = TestServer::new(&home);
    for page in pages(&id) {
        browser.open(&served.url(&page));
        browser.resize(390, 800);
        browser.wait_for("return document.getElementById('b-palette')?.checkVisibility()");
        let faults = browser.run(
            "const faults = [], shown = [...document.querySelectorAll('.top > *, .top nav > *, .bar .row > *')].filter(part => part.checkVisibility());
            const box = part => part.getBoundingClientRect(), name = part => part.id || part.textContent.trim();
            if (document.documentElement.scrollWidth > innerWidth) faults.push('the page scrolls to the side');
            for (const part of shown) {
                if (box(part).left < 0 || box(part).right > innerWidth) faults.push(name(part) + ' is outside');
                for (const other of shown) {
                    const [a, b] = [box(part), box(other)];
                    if (part.contains(other) || other.contains(part)) continue;
                    if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) faults.push(name(part) + ' covers ' + name(other));
                }
            }
            return faults",
        );
        assert_eq!(faults, json!([]), "{page}");
    }
}

#[test]
fn a_printed_page_has_its_text_and_no_controls() {
    let Some(browser) = Browser::start() else { return };
    let (home, id) = session_home();
    let served = TestServer::new(&home);
    for (page, text) in [(String::new(), "A shuttle that waits."), ("/changes".to_owned(), "one")] {
        browser.open(&served.url(&format!("/s/{id}{page}")));
        browser.wait_for("return document.getElementById('b-theme')?.checkVisibility()");
        browser.devtools("Emulation.setEmulatedMedia", &json!({"media": "print"}));
        browser.resize(800, 1000);
        let controls = browser
            .run("return [...document.querySelectorAll('button, input, select')].filter(part => part.checkVisibility()).map(part => part.id || part.textContent)");
        assert_eq!(controls, json!([]), "{page}");
        let left = browser.run("return document.querySelector('main').getBoundingClientRect().left");
        assert!(left.as_f64().unwrap() < 40.0, "{page}: {left}");
        let shown = browser.run("return document.querySelector('main').innerText");
        assert!(shown.as_str().unwrap().contains(text), "{page}: {shown}");
        browser.devtools("Emulation.setEmulatedMedia", &json!({"media": ""}));
    }
}
