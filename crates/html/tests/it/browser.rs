//! Pages in a real browser, where there is one.

use std::process::{Command, Stdio};

use threadline_html::Options;

use crate::hostile::hostile_page;
use crate::support::{family, options, whole};

/// Opens a page from disk, lets its script run, and returns its title and what the browser said.
///
/// `None` where there is no browser, after saying so.
fn open(page: &str, fragment: &str) -> Option<(String, String)> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a page.html");
    std::fs::write(&file, page).unwrap();
    let url = format!("file://{}{fragment}", file.display().to_string().replace(' ', "%20"));
    for browser in ["chromium", "chromium-browser", "google-chrome"] {
        let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args([&profile, "--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom", &url]);
        if let Ok(done) = command.stdin(Stdio::null()).output() {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            return Some((String::from_utf8_lossy(&done.stdout).into_owned(), said));
        }
    }
    eprintln!("skipped: there is no chromium here");
    None
}

/// What a page wrote to the console: errors, and what its policy refused.
fn console(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("CONSOLE")).collect()
}

#[test]
fn nothing_of_a_hostile_session_runs() {
    for options in [options(), Options { plain_up_to: 0, ..options() }] {
        let (page, _) = hostile_page(&options);
        let Some((dom, said)) = open(&page, "") else { return };
        let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).unwrap().0;
        assert!(dom.contains("class=\"js\""), "our own script runs: {said}");
        // The attack is the session's title, as text; had any of it run, the title would be `pwned` and a number.
        assert!(title.starts_with("'\"&gt;&lt;script&gt;document.title="), "{title}");
        assert_eq!(console(&said), Vec::<&str>::new());
        assert!(
            !dom.contains("<script>document.title")
                && !dom.contains("<iframe")
                && !dom.contains("<img src=\"x\"")
        );
    }
}

#[test]
fn a_link_opens_what_was_put_aside() {
    let long = "word ".repeat(4000);
    let mut log = "u0 user \"start\"\n".to_owned();
    for i in 1..60 {
        log.push_str(&format!(
            "a{i} <- u{} reply m{i} text \"{long}\"\nu{i} <- a{i} user \"prompt {i}\"\n",
            i - 1
        ));
    }
    let page = whole(&family(&log, None), &Options { plain_up_to: 20_000, ..options() });
    assert!(!page.contains(" id=\"m90\""));
    let Some((dom, said)) = open(&page, "#m90") else { return };
    assert!(dom.contains(" id=\"m90\""), "{said}");
    assert!(dom.contains("k-reply here\" id=\"m90\""), "{said}");
    assert_eq!(console(&said), Vec::<&str>::new());
}
