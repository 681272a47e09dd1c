//! Whole pages: their content, and how large ones are stored.

use threadline_html::{Images, Listed, Options, RawLines, index, page};
use threadline_view::{Money, Totals};

use crate::support::{family, options, packs, tags, told, whole};

const TALK: &str = r#"
title "Slow & steady"
u1        user   "why is it slow?\nreally"
a1 <- u1  reply  m1 text "Let me look."
a2 <- a1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a2  result t1 "no" error
u2 <- r1  user   "take it out"
a3 <- u2  reply  m2 text "Gone."
"#;

#[test]
fn a_page_asks_nobody_and_lets_only_its_own_script_run() {
    let page = whole(&family(TALK, None), &options());
    assert!(page.contains("default-src 'none'; img-src data:; style-src 'sha256-"), "{page}");
    for (name, attributes) in tags(&page) {
        for (key, value) in attributes {
            let inert = value.starts_with('#') || value.starts_with("data:");
            assert!(!["src", "href"].contains(&&*key) || inert, "{name} {key}={value}");
        }
    }
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(page.contains("<title>Slow &amp; steady</title>"));
    assert!(page.contains("id=\"m2\"") && page.contains("href=\"#m2\""));
}

#[test]
fn names_are_those_of_the_items_and_no_two_are_alike() {
    let agent = "x1 user \"look\"\ny1 <- x1 reply n1 text \"Nothing.\"\n";
    let log = format!(
        "{TALK}a4 <- a3 reply m3 tool t9 Task {{\"prompt\":\"look\",\"description\":\"d\"}}\nr9 <- a4 result t9 \"ok\" {{\"agentId\":\"ag1\"}}\n"
    );
    let family = family(&log, Some(("ag1", agent)));
    for options in [options(), Options { plain_up_to: 0, ..options() }] {
        let page = whole(&family, &options);
        let parts = packs(&page, "z");
        let all = format!("{page}{}", parts.concat());
        for turn in told(&family).turns {
            for item in turn.items {
                assert_eq!(all.matches(&format!(" id=\"{}\"", item.anchor)).count(), 1, "{}", item.anchor);
            }
        }
        assert_eq!(all.matches(" id=\"a-ag1-m1\"").count(), 1);
    }
}

#[test]
fn a_large_session_is_carried_along_compressed() {
    let long = "word ".repeat(4000);
    let mut log = String::new();
    for i in 0..60 {
        log.push_str(&format!("u{i} user \"prompt {i}\"\na{i} <- u{i} reply m{i} text \"{long}\"\n"));
        log = log.replace(
            &format!("u{i} user"),
            &if i == 0 { "u0 user".to_owned() } else { format!("u{i} <- a{} user", i - 1) },
        );
    }
    let small = Options { plain_up_to: 50_000, ..options() };
    let page = whole(&family(&log, None), &small);
    assert!(page.contains("prompt 1<") && page.contains("<noscript>"));
    assert!(page.len() < 200_000, "{}", page.len());
    assert!(!page.contains("id=\"m99\""));
    let parts = packs(&page, "z").concat();
    assert!(parts.contains("id=\"m99\"") && parts.contains("prompt 59"));
    // The outline is complete.
    assert!(page.contains("href=\"#m99\""));
}

#[test]
fn the_lines_of_the_log_travel_along() {
    let family = family(TALK, None);
    let page = whole(&family, &options());
    let lines = packs(&page, "r").concat();
    for entry in family.main.entries() {
        assert!(lines.contains(&format!("{} {}\n", entry.at().line_no, entry.text())));
    }
    let without = threadline_html::page(&told(&family), RawLines::default(), &options());
    assert!(packs(&without, "r").is_empty() && without.contains("\"raw\":null"));
}

/// Returns a log with the same image twice on its third line, and the image.
pub(crate) fn picture_twice() -> (String, String) {
    let picture = "iVBORw0KGgo+".repeat(500);
    let image = format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{picture}"}}}}"#
    );
    let log = format!(
        r#"u1 user "Look."
a1 <- u1 reply m1 text "At what?"
u2 <- a1 user [text "織機 😀", {image}, text "and", {image}]
"#
    );
    (log, picture)
}

#[test]
fn what_lines_hold_in_base_64_travels_along_once_and_as_it_is() {
    let (log, picture) = picture_twice();
    let family = family(&log, None);
    let page = whole(&family, &options());
    let lines = packs(&page, "r").concat();
    let (before, rest) = lines.lines().last().unwrap().split_once(' ').unwrap();
    let line = family.main.entries()[2].text();
    assert_eq!(rest, line.replace(&picture, ""));
    // Offsets are in UTF-16 code units.
    let units: Vec<usize> = {
        let parts: Vec<&str> = line.split(&picture).collect();
        parts.iter().map(|part| part.encode_utf16().count()).collect()
    };
    assert_eq!(before, format!("3:{}=0,{}=0", units[0], units[0] + units[1]));
    let lump = format!("<script type=\"application/octet-stream\" id=\"b0\">{picture}</script>");
    assert_eq!((page.matches(&lump).count(), page.matches(&picture).count()), (1, 3));
    // On a page that is drawn by the script, the image data is present only once.
    let large = whole(&family, &Options { plain_up_to: 0, ..options() });
    assert_eq!(large.matches(&picture).count(), 1);
    let parts = packs(&large, "z").concat();
    assert_eq!(parts.matches("<img alt=\"\" data-l=\"0\" data-kind=\"image/png\">").count(), 2);
}

#[test]
fn pictures_are_part_of_the_page_or_left_out() {
    let log = "u1 user [text \"see\", image png, {\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/svg+xml\",\"data\":\"PHN2Zz4=\"}}]\n";
    let family = family(log, None);
    let with = whole(&family, &options());
    assert!(with.contains("src=\"data:image/png;base64,iVBOR") && !with.contains("src=\"data:image/svg"));
    assert!(with.contains("image/svg+xml, 6 B, not shown"));
    let without = page(&told(&family), RawLines::default(), &Options { images: Images::None, ..options() });
    assert!(!without.contains("<img") && !without.contains("iVBOR"));
}

#[test]
fn every_odd_log_becomes_a_page() {
    for entry in std::fs::read_dir(threadline_testkit::corpus()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let session = threadline_session::Session::from_bytes(&std::fs::read(&path).unwrap());
            let family = threadline_session::Family::new(session, Vec::new());
            assert!(whole(&family, &options()).ends_with("</html>\n"), "{}", path.display());
        }
    }
}

#[test]
fn a_list_has_the_projects_and_their_sessions() {
    let session = |href: &str, project: &str, modified: i64| Listed {
        href: href.to_owned(),
        project: project.to_owned(),
        title: "A <title>".to_owned(),
        first_prompt: Some("first".to_owned()),
        git_branch: None,
        span: Some((modified - 60_000, modified)),
        turns: 3,
        spent: Totals { calls: 2, cost: Money::from_f64(1.25).unwrap(), ..Totals::default() },
        size: 1200,
    };
    let page = index(
        &[session("a.html", "/a", 60_001), session("b.html", "/b", 60_003), session("c.html", "/a", 60_002)],
        &jiff::tz::TimeZone::UTC,
    );
    let body = page.as_str().split_once("<body").unwrap().1;
    let order: Vec<usize> = ["/b</h2>", "b.html", "/a</h2>", "c.html", "a.html"]
        .iter()
        .map(|text| body.find(text).unwrap())
        .collect();
    assert!(order.is_sorted(), "{body}");
    assert!(body.contains("2 sessions · 6 turns · 1 Jan 1970 · <b title=\"4 calls\">$2.50</b>"), "{body}");
    assert!(
        body.contains("1 Jan 1970, 00:00–00:01</time> · 3 turns · <b title=\"2 calls\">$1.25</b> · 1.2 kB")
    );
    assert!(body.contains("A &lt;title&gt;") && page.as_str().contains("script-src 'none'"));
}
