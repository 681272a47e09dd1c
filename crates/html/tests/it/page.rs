//! Whole pages: their content, and how large ones are stored.

use threadline_html::{ImageMode, IndexedSession, RawLines, RenderOptions, index, page};
use threadline_view::{Money, UsageTotals};

use crate::support::{build_transcript, family, inflated_sections, options, render_page, tags};

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
fn a_page_makes_no_requests_and_runs_only_its_own_script() {
    let page = render_page(&family(TALK, None), &options());
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
fn element_ids_are_the_anchors_and_unique() {
    let agent = "x1 user \"look\"\ny1 <- x1 reply n1 text \"Nothing.\"\n";
    let log = format!(
        "{TALK}a4 <- a3 reply m3 tool t9 Task {{\"prompt\":\"look\",\"description\":\"d\"}}\nr9 <- a4 result t9 \"ok\" {{\"agentId\":\"ag1\"}}\n"
    );
    let family = family(&log, Some(("ag1", agent)));
    for options in [options(), RenderOptions { plain_up_to: 0, ..options() }] {
        let page = render_page(&family, &options);
        let parts = inflated_sections(&page, "z");
        let all = format!("{page}{}", parts.concat());
        for turn in build_transcript(&family).turns {
            for item in turn.items {
                assert_eq!(all.matches(&format!(" id=\"{}\"", item.anchor)).count(), 1, "{}", item.anchor);
            }
        }
        assert_eq!(all.matches(" id=\"a-ag1-m1\"").count(), 1);
    }
}

#[test]
fn a_large_session_is_stored_compressed() {
    let long = "word ".repeat(4000);
    let mut log = String::new();
    for i in 0..60 {
        log.push_str(&format!("u{i} user \"prompt {i}\"\na{i} <- u{i} reply m{i} text \"{long}\"\n"));
        log = log.replace(
            &format!("u{i} user"),
            &if i == 0 { "u0 user".to_owned() } else { format!("u{i} <- a{} user", i - 1) },
        );
    }
    let small = RenderOptions { plain_up_to: 50_000, ..options() };
    let page = render_page(&family(&log, None), &small);
    assert!(page.contains("prompt 1<") && page.contains("<noscript>"));
    assert!(page.len() < 200_000, "{}", page.len());
    assert!(!page.contains("id=\"m99\""));
    let parts = inflated_sections(&page, "z").concat();
    assert!(parts.contains("id=\"m99\"") && parts.contains("prompt 59"));
    // The outline is complete.
    assert!(page.contains("href=\"#m99\""));
}

#[test]
fn the_rest_of_a_long_turn_is_stored_compressed() {
    let long = "word ".repeat(400);
    let mut log = "a0 user \"go on\"\n".to_owned();
    for i in 1..200 {
        log.push_str(&format!("a{i} <- a{} reply m{i} text \"{long}\"\n", i - 1));
    }
    log.push_str("u1 <- a199 user \"the next prompt\"\n");
    let small = RenderOptions { plain_up_to: 50_000, ..options() };
    let page = render_page(&family(&log, None), &small);
    let (plain, rest) = page.split_once("<noscript>").unwrap();
    assert!(
        plain.contains("go on") && plain.len() < 130_000 && !rest.contains("word word"),
        "{}",
        plain.len()
    );
    // The rest of the turn is in its element.
    let (turn, after) = rest.split_once("</section>").unwrap();
    assert!(turn.contains("class=\"piece\"") && after.contains("class=\"piece\""));
    let parts = inflated_sections(&page, "z").concat();
    assert!(parts.contains("id=\"m200\"") && parts.contains("the next prompt"));
}

#[test]
fn the_heading_of_a_turn_is_its_name_in_the_outline() {
    let log = r##"
a0        reply  m0 text "First, **look** around."
u1 <- a0  user   "Implement the following plan:\n\n# Plan: a faster loom\n\n1. warp"
a1 <- u1  reply  m1 text "Done."
u2 <- a1  user   [image png]
a2 <- u2  reply  m2 text "It is blue."
u3 <- a2  user   "and now?"
"##;
    let page = render_page(&family(log, None), &options());
    let texts = |start: &str, end: &str| -> Vec<String> {
        let starts = page.split(start).skip(1);
        starts.map(|text| text.split_once('>').unwrap().1.split_once(end).unwrap().0.to_owned()).collect()
    };
    let titles = ["First, look around.", "Plan: a faster loom", "[image]", "and now?"];
    assert_eq!(texts("<span class=\"title\"", "</span>"), titles);
    assert_eq!(texts("<h2", "</h2>")[..4], titles);
}

#[test]
fn a_prompt_of_one_very_long_line_has_a_short_heading() {
    let long = ">".repeat(200_000);
    let log = format!("u1 user \"{long}\"\na1 <- u1 reply m1 text \"Done.\"\n");
    let page = render_page(&family(&log, None), &RenderOptions { plain_up_to: 50_000, ..options() });
    assert!(page.len() < 200_000, "{}", page.len());
    let heading = page.split_once("<h2").unwrap().1.split_once("</h2>").unwrap().0;
    assert!(heading.len() < 1000, "{heading}");
    let parts = inflated_sections(&page, "z").concat();
    assert!(parts.matches("&gt;").count() > 198_000);
}

#[test]
fn the_page_contains_the_raw_lines() {
    let family = family(TALK, None);
    let page = render_page(&family, &options());
    let lines = inflated_sections(&page, "r").concat();
    for entry in family.main.entries() {
        assert!(lines.contains(&format!("{} {}\n", entry.at().line_no, entry.text())));
    }
    let without = threadline_html::page(&build_transcript(&family), RawLines::default(), &options());
    assert!(inflated_sections(&without, "r").is_empty() && without.contains("\"raw\":null"));
}

/// Returns a log with the same image twice on its third line, and the image.
pub(crate) fn log_with_image_twice() -> (String, String) {
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
fn base64_data_is_stored_once_and_uncompressed() {
    let (log, picture) = log_with_image_twice();
    let family = family(&log, None);
    let page = render_page(&family, &options());
    let lines = inflated_sections(&page, "r").concat();
    let (before, rest) = lines.lines().last().unwrap().split_once(' ').unwrap();
    let line = family.main.entries().as_slice()[2].text();
    assert_eq!(rest, line.replace(&picture, ""));
    // Offsets are in UTF-16 code units.
    let units: Vec<usize> = {
        let parts: Vec<&str> = line.split(&picture).collect();
        parts.iter().map(|part| part.encode_utf16().count()).collect()
    };
    assert_eq!(before, format!("3:{}=0,{}=0", units[0], units[0] + units[1]));
    let stored = format!("<script type=\"application/octet-stream\" id=\"b0\">{picture}</script>");
    assert_eq!((page.matches(&stored).count(), page.matches(&picture).count()), (1, 3));
    // On a page that is drawn by the script, the image data is present only once.
    let large = render_page(&family, &RenderOptions { plain_up_to: 0, ..options() });
    assert_eq!(large.matches(&picture).count(), 1);
    let parts = inflated_sections(&large, "z").concat();
    assert_eq!(parts.matches("<img alt=\"\" data-l=\"0\" data-kind=\"image/png\">").count(), 2);
}

#[test]
fn images_are_included_or_left_out() {
    let log = "u1 user [text \"see\", image png, {\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/svg+xml\",\"data\":\"PHN2Zz4=\"}}]\n";
    let family = family(log, None);
    let with = render_page(&family, &options());
    assert!(with.contains("src=\"data:image/png;base64,iVBOR") && !with.contains("src=\"data:image/svg"));
    assert!(with.contains("image/svg+xml, 6 B, not shown"));
    let without = page(
        &build_transcript(&family),
        RawLines::default(),
        &RenderOptions { images: ImageMode::None, ..options() },
    );
    assert!(!without.contains("<img") && !without.contains("iVBOR"));
}

#[test]
fn every_log_of_the_corpus_becomes_a_page() {
    for entry in std::fs::read_dir(threadline_testkit::corpus()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let session = threadline_session::Session::from_bytes(&std::fs::read(&path).unwrap());
            let family = threadline_session::SessionFamily::new(session, Vec::new());
            assert!(render_page(&family, &options()).ends_with("</html>\n"), "{}", path.display());
        }
    }
}

#[test]
fn a_list_has_the_projects_and_their_sessions() {
    let session = |href: &str, project: &str, modified: i64| IndexedSession {
        href: href.to_owned(),
        project: project.to_owned(),
        title: "A <title>".to_owned(),
        first_prompt: Some("first".to_owned()),
        git_branch: None,
        span: Some((modified - 60_000, modified)),
        turns: 3,
        spent: UsageTotals { calls: 2, cost: Money::from_f64(1.25).unwrap(), ..UsageTotals::default() },
        size: 1200,
    };
    let page = index(
        &[session("a.html", "/a", 60_001), session("b.html", "/b", 60_003), session("c.html", "/a", 60_002)],
        &jiff::tz::TimeZone::UTC,
        threadline_html::PageTheme::Auto,
    )
    .into_string();
    let body = page.split_once("<body").unwrap().1;
    let order: Vec<usize> = ["/b</h2>", "b.html", "/a</h2>", "c.html", "a.html"]
        .iter()
        .map(|text| body.find(text).unwrap())
        .collect();
    assert!(order.is_sorted(), "{body}");
    assert!(body.contains("2 sessions · 6 turns · 1 Jan 1970 · <b title=\"4 calls\">$2.50</b>"), "{body}");
    assert!(
        body.contains("1 Jan 1970, 00:00–00:01</time> · 3 turns · <b title=\"2 calls\">$1.25</b> · 1.2 kB")
    );
    assert!(body.contains("A &lt;title&gt;") && page.contains("script-src 'none'"));
}
