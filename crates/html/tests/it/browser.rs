//! Pages in a real browser, if one is installed.

use threadline_html::RenderOptions;
use threadline_testkit::Browser;

use crate::hostile::hostile_page;
use crate::support::{family, options, render_page};

/// Opens a page from disk, waits until the script `what` returns true, and returns the DOM and the messages
/// of the console.
///
/// Returns `None` if there is no browser.
fn open(page: &str, fragment: &str, what: &str) -> Option<(String, Vec<String>)> {
    let browser = Browser::start()?;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a page.html");
    std::fs::write(&file, page).unwrap();
    browser.open(&format!("file://{}{fragment}", file.display().to_string().replace(' ', "%20")));
    browser.wait_for(what);
    let dom = browser.run("return document.documentElement.outerHTML");
    Some((dom.as_str().unwrap().to_owned(), browser.console()))
}

/// True once the script of the page has run.
const RAN: &str = "return document.documentElement.classList.contains('js')";

#[test]
fn no_script_of_a_hostile_session_runs() {
    for options in [options(), RenderOptions { plain_up_to: 0, ..options() }] {
        let (page, _) = hostile_page(&options);
        let Some((dom, said)) = open(&page, "", RAN) else { return };
        let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).unwrap().0;
        // The session's title contains the attack as text. If any of it had run, the title would be `pwned`
        // and a number.
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
fn a_link_draws_a_deferred_section() {
    let long = "word ".repeat(4000);
    let mut log = "u0 user \"start\"\n".to_owned();
    for i in 1..60 {
        log.push_str(&format!(
            "a{i} <- u{} reply m{i} text \"{long}\"\nu{i} <- a{i} user \"prompt {i}\"\n",
            i - 1
        ));
    }
    let page = render_page(&family(&log, None), &RenderOptions { plain_up_to: 20_000, ..options() });
    assert!(!page.contains(" id=\"m90\""));
    let Some((dom, said)) = open(&page, "#m90", "return document.querySelector('.here')") else { return };
    assert!(dom.contains(" id=\"m90\""), "{said:?}");
    assert!(dom.contains("k-reply here\" id=\"m90\""), "{said:?}");
    assert_eq!(said, Vec::<String>::new());
    // A line after the end resolves to the last item.
    let Some((dom, said)) = open(&page, "#m500", "return document.querySelector('.here')") else { return };
    assert!(dom.contains("here\" id=\"m119\""), "{said:?}");
}

const SESSION: &str = r#"
u1        user   "why is it slow?"
h1 <- u1  attach hook_success {"hookName":"Stop:x","hookEvent":"Stop","content":"fine"}
a1 <- h1  reply  m1 thinking "Perhaps a sleep."
a2 <- a1  reply  m1 tool t1 Bash {"command":"cargo bench"}
r1 <- a2  result t1 "Exit code 101\nno bench" error
a3 <- r1  reply  m2 text "A shuttle that waits."
u2 <- a3  user   "mend it"
a4 <- u2  reply  m3 tool t2 Edit {"file_path":"/home/ada/loom/a.rs","old_string":"let a = 1;","new_string":"let b = \"two\";"}
r2 <- a4  result t2 "done"
a5 <- r2  reply  m4 text "Mended."
"#;

/// Collapsible sections, filters, search, keys, anchors and highlighting, on a plain and on a deferred page.
#[test]
fn folding_filters_search_and_keys_work() {
    for options in [options(), RenderOptions { plain_up_to: 0, ..options() }] {
        let Some(browser) = Browser::start() else { return };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("page.html");
        std::fs::write(&file, render_page(&family(SESSION, None), &options)).unwrap();
        browser.open(&format!("file://{}", file.display()));
        browser.wait_for(RAN);
        let is_seen =
            |selector: &str| format!("return !!document.querySelector('{selector}')?.checkVisibility()");
        let click = |selector: &str| browser.run(&format!("document.querySelector('{selector}').click()"));
        // A section expands, and the code in it is highlighted.
        browser.wait_for(&is_seen("#m8 summary"));
        assert_eq!(browser.run(&is_seen("#m8 .diff")), false);
        click("#m8 summary");
        browser.wait_for(&is_seen("#m8 .diff"));
        browser
            .wait_for("return CSS.highlights.get('string').size > 0 && CSS.highlights.get('key').size > 1");
        // Events are hidden by default. Tools and successful items can be hidden.
        assert_eq!(browser.run(&is_seen("#m2")), false);
        click("[data-k=event]");
        browser.wait_for(&is_seen("#m2"));
        click("[data-k=tool]");
        browser.wait_for("return !document.querySelector('#m4').checkVisibility()");
        click("[data-k=tool]");
        browser.wait_for(&is_seen("#m4"));
        browser.run("const tool = document.querySelector('#tool'); tool.value = 'bad'; tool.dispatchEvent(new Event('change'))");
        browser.wait_for("return !document.querySelector('#m6').checkVisibility() && document.querySelector('#m4').checkVisibility()");
        browser.run("const tool = document.querySelector('#tool'); tool.value = ''; tool.dispatchEvent(new Event('change'))");
        // Search finds matches in collapsed sections.
        browser.run("const q = document.querySelector('#q'); q.focus(); q.value = 'no bench'; q.dispatchEvent(new Event('input'))");
        browser.wait_for("return document.querySelector('#hits').textContent === '1'");
        browser.press("\u{e007}");
        browser.wait_for("return CSS.highlights.get('hit')?.size === 1");
        browser.run("document.activeElement.blur()");
        // Keys move between prompts and to errors, and set the fragment of the URL.
        browser.run("scrollTo(0, 0)");
        browser.press("e");
        browser.wait_for("return location.hash === '#m4' && document.querySelector('#m4.here')");
        browser.press("j");
        browser.wait_for("return location.hash === '#m7'");
        browser.wait_for(
            "return document.querySelector('#rail [aria-current]')?.getAttribute('href') === '#m7'",
        );
        browser.press("?");
        browser.wait_for("return document.querySelector('#help').open");
        browser.run("document.querySelector('#help').close(); location.hash = '#m6'");
        browser.wait_for("return document.querySelector('#m6.here')");
        // A result has no element; its anchor resolves to its call.
        browser.run("location.hash = '#m5'");
        browser.wait_for("return document.querySelector('#m4.here')");
        browser.run("location.hash = '#m6'");
        browser.wait_for("return document.querySelector('#m6.here')");
        // All controls have an accessible name.
        let tree = browser.devtools("Accessibility.getFullAXTree", &serde_json::json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true);
        let is_used = |node: &&serde_json::Value| {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            ["button", "link", "searchbox", "combobox", "navigation", "DisclosureTriangle"].contains(&role)
        };
        let used: Vec<_> = nodes.filter(is_used).collect();
        assert!(used.len() > 20, "{used:?}");
        for node in used {
            assert!(node["name"]["value"].as_str().is_some_and(|name| !name.trim().is_empty()), "{node}");
        }
        browser.run("document.activeElement.blur()");
        browser.press("r");
        browser.wait_for("return document.querySelector('#raw').open && document.querySelector('#raw pre').textContent.includes('shuttle')");
        assert_eq!(browser.console(), Vec::<String>::new());
    }
}

#[test]
fn images_come_from_the_raw_lines_which_are_shown_complete() {
    let Some(browser) = Browser::start() else { return };
    let (log, picture) = crate::page::log_with_image_twice();
    let dir = tempfile::tempdir().unwrap();
    for options in [options(), RenderOptions { plain_up_to: 0, ..options() }] {
        let file = dir.path().join("page.html");
        std::fs::write(&file, render_page(&family(&log, None), &options)).unwrap();
        browser.open(&format!("file://{}", file.display()));
        browser.wait_for(RAN);
        browser.wait_for("return document.images.length === 2");
        let sources = browser.run("return Array.from(document.images, image => image.src)");
        let source = format!("data:image/png;base64,{picture}");
        assert_eq!(sources, serde_json::json!([source, source]));
        browser.run("location.hash = '#m3'");
        browser.wait_for("return document.querySelector('#m3.here')");
        browser.press("r");
        browser.wait_for("return document.querySelector('#raw').open");
        let shown = browser.run("return document.querySelector('#raw pre').textContent");
        let shown: serde_json::Value = serde_json::from_str(shown.as_str().unwrap()).unwrap();
        let log = threadline_testkit::log(&log);
        let line = log.split(|byte| *byte == b'\n').nth(2).unwrap();
        assert_eq!(shown, serde_json::from_slice::<serde_json::Value>(line).unwrap());
        assert_eq!(browser.console(), Vec::<String>::new());
    }
}
