//! Real sessions, if available: every one at every level, with only known tags and attributes.

use threadline_html::page;
use threadline_session::{Session, SessionFamily};
use threadline_view::{DetailLevel, TranscriptFilter, markdown, transcript};

use crate::hostile::check;
use crate::support::{inflated_sections, options, raw};

#[test]
fn every_session_at_every_level() {
    // Debug builds are slow, so they skip large sessions.
    let most = if cfg!(debug_assertions) { 250_000 } else { u64::MAX };
    for path in threadline_testkit::shared_logs() {
        if std::fs::metadata(&path).unwrap().len() > most {
            continue;
        }
        let family = SessionFamily::new(Session::from_bytes(&std::fs::read(&path).unwrap()), Vec::new());
        for level in
            [DetailLevel::Raw, DetailLevel::Full, DetailLevel::Tools, DetailLevel::Chat, DetailLevel::Prompts]
        {
            let mut transcript_view = transcript(&family, &|_| None);
            assert!(markdown(&transcript_view, level).starts_with("# "), "{}", path.display());
            TranscriptFilter::up_to_level(level).apply(&mut transcript_view);
            let lines = if level == DetailLevel::Raw { raw(&family) } else { Default::default() };
            let page = page(&transcript_view, lines, &options());
            assert!(page.ends_with("</html>\n"), "{}", path.display());
            if level == DetailLevel::Raw {
                check(&page);
                for part in inflated_sections(&page, "z").iter().flat_map(|pack| pack.split_terminator('\0'))
                {
                    check(part.split_once('\n').unwrap().1);
                }
            }
        }
    }
}
