//! The preview: the lines of a log around a match, as text.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use threadline_entry::{LineReader, parse_line};
use threadline_search::{Query, text_pieces};

use super::{MatchPreview, PreviewLine, PreviewStyle};

/// The number of bytes that are read before the match, and of lines after it.
const BYTES_BEFORE: u64 = 1 << 16;
const LINES_AFTER: usize = 20;

/// Maximum number of lines shown of a block. Twice as many are shown of the matching block, from at most this
/// many lines before the first match.
const MAX_BLOCK_LINES: usize = 40;

/// Reads the conversation around the block `block_idx` of the line at `byte_offset`. The match to show is the
/// first one at or after `text_offset` in the text of the block. `mask` masks secrets.
pub(super) fn read(
    path: &Path,
    byte_offset: u64,
    block_idx: usize,
    text_offset: usize,
    query: Option<&Query>,
    mask: &dyn Fn(&str) -> String,
) -> io::Result<MatchPreview> {
    let mut file = threadline_store::open_regular(path)?;
    let from = byte_offset.saturating_sub(BYTES_BEFORE);
    file.seek(SeekFrom::Start(from))?;
    let mut lines = LineReader::new(file.take(1 << 30));
    let mut preview = MatchPreview::default();
    let mut behind = 0;
    let mut at = from;
    // The first line read is incomplete, unless it is the start of the file.
    let mut cut = from > 0;
    while behind < LINES_AFTER {
        let Some(line) = lines.next()? else { break };
        let start = at;
        at += line.bytes.len() as u64 + 1;
        if std::mem::take(&mut cut) {
            continue;
        }
        behind += usize::from(start > byte_offset);
        parse_line(&line, |entry, _| {
            text_pieces(&entry, &mut |piece| {
                let found = start == byte_offset && piece.block_idx == block_idx;
                let label = match &piece.tool {
                    Some(tool) => format!("{} {tool}", piece.kind.name()),
                    None => piece.kind.name().to_owned(),
                };
                preview.add(
                    &label,
                    &mask(&piece.text),
                    query.filter(|_| found),
                    found.then_some(text_offset),
                );
            });
        });
    }
    Ok(preview)
}

impl MatchPreview {
    /// Adds a block. If it is the one that matched, `excerpt` is the offset of the excerpt in its text.
    fn add(&mut self, label: &str, text: &str, query: Option<&Query>, excerpt: Option<usize>) {
        let found = excerpt.is_some();
        if text.trim().is_empty() {
            return;
        }
        self.lines.push(PreviewLine {
            pieces: vec![(label.to_owned(), PreviewStyle::Label)],
            ..PreviewLine::default()
        });
        let ranges = query.map(|query| query.highlight(text)).unwrap_or_default();
        let after = |range: &&Range<usize>| excerpt.is_some_and(|excerpt| range.start >= excerpt);
        let shown = ranges.iter().find(after).or(ranges.first()).map(|range| range.start);
        let first = shown.map_or(0, |start| text[..start].matches('\n').count());
        let skipped = if found { first.saturating_sub(MAX_BLOCK_LINES) } else { 0 };
        let mut at = 0;
        for (i, line) in text.split('\n').enumerate() {
            let end = at + line.len();
            if i >= skipped && i < skipped + 2 * MAX_BLOCK_LINES && (found || i < MAX_BLOCK_LINES) {
                let mut pieces = Vec::new();
                let mut done = at;
                for range in ranges.iter().filter(|range| range.start < end && range.end > at) {
                    let (start, stop) = (range.start.max(at), range.end.min(end));
                    pieces.push((text[done..start].to_owned(), PreviewStyle::Plain));
                    pieces.push((text[start..stop].to_owned(), PreviewStyle::Match));
                    done = stop;
                }
                pieces.push((text[done..end].to_owned(), PreviewStyle::Plain));
                pieces.retain(|(text, _)| !text.is_empty());
                let in_excerpt = found && shown.is_some_and(|shown| (at..=end).contains(&shown));
                self.lines.push(PreviewLine { pieces, in_match: found, in_excerpt });
            }
            at = end + 1;
        }
        self.lines.push(PreviewLine::default());
    }
}
