//! Snapshots of every tool and every kind of entry at 80 columns, with one line per tool, and in full.

use threadline_session::SessionFamily;
use threadline_term::{TermPage, TranscriptStyle, render_outline, render_transcript};
use threadline_view::{DetailLevel, TranscriptFilter, outline, transcript};
use unicode_width::UnicodeWidthStr;

#[test]
fn every_tool_and_every_kind_of_entry() {
    for sample in threadline_testkit::samples() {
        let family = SessionFamily::from_bytes(&sample.log, sample.agents);
        let page = TermPage { width: Some(80), color: true, links: false, whole_lines: false };
        let whole = transcript(&family, &|_| None);
        let mut text = plain(render_outline(&outline(&whole.turns), page).as_str());
        for (name, level) in [("tools", DetailLevel::Tools), ("full", DetailLevel::Full)] {
            let mut view = whole.clone();
            TranscriptFilter::up_to_level(level).apply(&mut view);
            let style = TranscriptStyle { level, zone: jiff::tz::TimeZone::UTC };
            text +=
                &format!("\n════ {name} ════\n\n{}", plain(render_transcript(&view, page, &style).as_str()));
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
