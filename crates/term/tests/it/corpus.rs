//! Tests with real sessions, if available: each is rendered at every level, intact and damaged, and the
//! text contains no control characters.

use threadline_session::{Session, SessionFamily};
use threadline_term::{TermPage, TranscriptStyle, render_outline, render_transcript};
use threadline_view::{DetailLevel, TranscriptFilter, changes, markdown, outline, patch, transcript, wire};
use unicode_width::UnicodeWidthStr;

/// The maximum log size in bytes. Debug builds are slow, so they test only small logs.
const MAX_BYTES: u64 = if cfg!(debug_assertions) { 120_000 } else { u64::MAX };

#[test]
fn every_session_at_every_level() {
    for path in threadline_testkit::shared_logs() {
        if std::fs::metadata(&path).unwrap().len() <= MAX_BYTES {
            draw(&std::fs::read(&path).unwrap(), &path.display().to_string());
        }
    }
}

#[test]
fn damaged_sessions_at_every_level() {
    for path in threadline_testkit::shared_logs() {
        if std::fs::metadata(&path).unwrap().len() <= MAX_BYTES / 4 {
            let whole = std::fs::read(&path).unwrap();
            for (how, maimed) in damage(&whole) {
                draw(&maimed, &format!("{}, {how}", path.display()));
            }
        }
    }
}

/// Returns damaged variants of a log.
fn damage(whole: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let every = |n: usize| lines.iter().enumerate().filter(move |(i, _)| i % n != 1).map(|(_, line)| *line);
    let mut flipped = whole.to_vec();
    for at in (0..flipped.len()).step_by(997) {
        flipped[at] ^= 0x15;
    }
    vec![
        ("cut in the middle", whole[..whole.len() / 2].to_vec()),
        ("without every third line", every(3).collect::<Vec<_>>().concat()),
        ("backwards", lines.iter().rev().copied().collect::<Vec<_>>().concat()),
        ("twice", [whole, whole].concat()),
        ("with bytes flipped", flipped),
        ("without newlines", whole.iter().copied().filter(|byte| *byte != b'\n').collect()),
    ]
}

fn draw(log: &[u8], what: &str) {
    let family = SessionFamily::new(Session::from_bytes(log), Vec::new());
    let view = transcript(&family, &|_| None);
    let mut objects = 0;
    wire::show(&view, &mut |object| {
        assert!(serde_json::to_string(&object).is_ok(), "{what}");
        objects += 1;
    });
    assert!(objects > 0, "{what}");
    let evidence = threadline_evidence::FileEvidence::of(&family, &threadline_evidence::LogOnly);
    let _ = patch(&changes(&evidence, &family), None);
    for level in
        [DetailLevel::Prompts, DetailLevel::Chat, DetailLevel::Tools, DetailLevel::Full, DetailLevel::Raw]
    {
        let mut view = view.clone();
        assert!(markdown(&view, level).starts_with("# "), "{what}");
        TranscriptFilter::up_to_level(level).apply(&mut view);
        let style = TranscriptStyle { level, zone: jiff::tz::TimeZone::UTC };
        for (width, color) in
            [(None, false), (Some(40), false), (Some(80), false), (Some(200), false), (Some(41), true)]
        {
            let page = TermPage { width, color, links: false, whole_lines: false };
            let text = render_transcript(&view, page, &style) + render_outline(&outline(&view.turns), page);
            let text = text.as_str();
            let obeyed = |ch: char| ch.is_control() && ch != '\n' && !(color && ch == '\u{1b}');
            let found = text.find(obeyed).map(|at| text[at..].chars().take(80).collect::<String>());
            assert_eq!(found, None, "{what}");
            // Turn headings and calls are never wider than the page.
            let is_fitted = |line: &&str| ["── ", "▸ ", "✗ "].iter().any(|start| line.starts_with(start));
            if let Some(width) = width.filter(|_| !color) {
                for line in text.lines().filter(is_fitted) {
                    assert!(line.width() <= width, "{what} at {width} columns: {line}");
                }
            }
        }
    }
}
