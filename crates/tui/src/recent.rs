//! The end of a session that is continued.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use threadline_session::SessionFamily;
use threadline_term::{TermPage, TermText, TextLabel, TranscriptStyle, render_items};
use threadline_view::{DetailLevel, TranscriptBuilder};

/// The number of bytes at the end of the log that are read.
const READ_BYTES: u64 = 512 << 10;

/// Returns the last turns of a log. Only its end is read, so that the time does not depend on its length.
pub(crate) fn recent_lines(log: &Path, page: TermPage) -> Vec<TermText> {
    let Ok(bytes) = read_end(log) else { return Vec::new() };
    let family = SessionFamily::from_bytes(&bytes, []);
    let mut transcript = TranscriptBuilder::new(&family).transcript();
    let earlier = transcript.turns.len().saturating_sub(3);
    let style = TranscriptStyle { level: DetailLevel::Tools, zone: jiff::tz::TimeZone::UTC };
    let filter = threadline_view::TranscriptFilter::up_to_level(DetailLevel::Tools);
    let mut lines = vec![page.paint(TextLabel::Dim, "── last turns")];
    for turn in transcript.turns.iter_mut().skip(earlier) {
        filter.keep_turn(turn);
        lines.extend(render_items(&turn.items, page, &style).lines());
    }
    if lines.len() == 1 {
        return Vec::new();
    }
    lines
}

fn read_end(log: &Path) -> std::io::Result<Vec<u8>> {
    // Opening a pipe would block until it has a writer.
    if !fs_err::metadata(log)?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut file = fs_err::File::open(log)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(READ_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if start > 0 {
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..end);
    }
    Ok(bytes)
}
