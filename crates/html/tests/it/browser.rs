//! Pages in a real browser, where there is one.

use threadline_html::Options;
use threadline_testkit::Browser;

use crate::hostile::hostile_page;
use crate::support::{family, options, whole};

/// Opens a page from disk, waits until its script has done `what`, and returns the page as it is then and what the
/// browser complained of.
///
/// `None` where there is no browser, after saying so.
fn open(page: &str, fragment: &str, what: &str) -> Option<(String, Vec<String>)> {
    let browser = Browser::start()?;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a page.html");
    std::fs::write(&file, page).unwrap();
    browser.open(&format!("file://{}{fragment}", file.display().to_string().replace(' ', "%20")));
    browser.wait(what);
    let dom = browser.run("return document.documentElement.outerHTML");
    Some((dom.as_str().unwrap().to_owned(), browser.console()))
}

/// Our own script ran.
const RAN: &str = "return document.documentElement.classList.contains('js')";

#[test]
fn nothing_of_a_hostile_session_runs() {
    for options in [options(), Options { plain_up_to: 0, ..options() }] {
        let (page, _) = hostile_page(&options);
        let Some((dom, said)) = open(&page, "", RAN) else { return };
        let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).unwrap().0;
        assert!(dom.contains("class=\"js\""), "our own script runs: {said:?}");
        // The attack is the session's title, as text; had any of it run, the title would be `pwned` and a number.
        assert!(title.starts_with("'\"&gt;&lt;script&gt;document.title="), "{title}");
        assert_eq!(said, Vec::<String>::new());
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
    let Some((dom, said)) = open(&page, "#m90", "return document.querySelector('.here')") else { return };
    assert!(dom.contains(" id=\"m90\""), "{said:?}");
    assert!(dom.contains("k-reply here\" id=\"m90\""), "{said:?}");
    assert_eq!(said, Vec::<String>::new());
}
