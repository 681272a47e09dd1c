//! Checks that terminal output contains no control characters except newlines and our colours, and that no
//! heading is wider than the page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadline_fuzz::log;
use threadline_session::{Session, SessionFamily};
use threadline_term::{TermPage, TranscriptStyle, render_outline, render_transcript};
use threadline_view::{DetailLevel, TranscriptFilter, changes, markdown, outline, patch, transcript, wire};
use unicode_width::UnicodeWidthStr;

fuzz_target!(|data: &[u8]| {
    let Some((&how, data)) = data.split_first() else { return };
    let bytes = log(data);
    let family = SessionFamily::new(Session::from_bytes(&bytes), Vec::new());
    let mut view = transcript(&family, &|_| None);
    wire::show(&view, &mut |object| {
        serde_json::to_string(&object).expect("public JSON");
    });
    let _ = patch(&changes(&family), None);
    let levels =
        [DetailLevel::Prompts, DetailLevel::Chat, DetailLevel::Tools, DetailLevel::Full, DetailLevel::Raw];
    let level = levels[usize::from(how) % levels.len()];
    assert!(markdown(&view, level).starts_with("# "));
    TranscriptFilter::up_to_level(level).apply(&mut view);
    let style = TranscriptStyle { level, zone: jiff::tz::TimeZone::UTC };
    for (width, color) in [(None, false), (Some(80), false), (Some(20 + usize::from(how)), true)] {
        let page = TermPage { width, color, links: false, whole_lines: false };
        let text = render_transcript(&view, page, &style) + &render_outline(&outline(&view.turns), page);
        let text = text.as_str();
        for (at, ch) in text.char_indices().filter(|(_, ch)| ch.is_control() && *ch != '\n') {
            // Our colours: `ESC [`, digits and semicolons, `m`.
            let rest = &text[at..];
            let colour = rest.strip_prefix("\u{1b}[").map(|rest| {
                rest.trim_start_matches(|ch: char| ch.is_ascii_digit() || ch == ';').starts_with('m')
            });
            assert!(
                color && colour == Some(true),
                "{ch:?} in {:?}",
                rest.chars().take(40).collect::<String>()
            );
        }
        for head in text.lines().filter(|line| width == Some(80) && line.starts_with("── ")) {
            assert!(head.width() <= 80, "{head}");
        }
    }
});
