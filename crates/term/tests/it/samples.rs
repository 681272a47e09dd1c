//! Snapshots of every tool and every kind of entry at 80 columns, with one line per tool, and in full.

use threadline_session::Family;
use threadline_term::{Page, Style, render_outline, render_transcript};
use threadline_view::{Filter, Level, outline, transcript};
use unicode_width::UnicodeWidthStr;

#[test]
fn every_tool_and_every_kind_of_entry() {
    for sample in threadline_testkit::samples() {
        let family = Family::from_bytes(&sample.log, sample.agents);
        let page = Page { width: Some(80), color: true, links: false };
        let whole = transcript(&family, &|_| None);
        let mut text = plain(render_outline(&outline(&whole.turns), page).as_str());
        for (name, level) in [("tools", Level::Tools), ("full", Level::Full)] {
            let mut told = whole.clone();
            Filter::level(level).apply(&mut told);
            let style = Style { level, zone: jiff::tz::TimeZone::UTC };
            text +=
                &format!("\n════ {name} ════\n\n{}", plain(render_transcript(&told, page, &style).as_str()));
        }
        for line in text.lines() {
            assert!(line.width() <= 80 && !line.contains('\t'), "{}: {line}", sample.name);
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(sample.name, text);
        });
    }
}

/// Returns the text without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    out
}
