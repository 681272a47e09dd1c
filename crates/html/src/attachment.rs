//! Attachments: base64 data in a log, such as images. It does not compress and often occurs twice in a log,
//! so a page contains each attachment once and uncompressed.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use foldhash::HashMap;
use sha2::{Digest, Sha256};

use crate::markup::Markup;

/// Shorter runs of base64 stay in the line.
const MIN_LENGTH: usize = 1 << 12;

/// The attachments of a page.
#[derive(Default)]
pub(crate) struct Attachments {
    found: Vec<(Arc<String>, Range<usize>)>,
    numbers: HashMap<[u8; 32], usize>,
}

impl Attachments {
    /// Returns the number of the attachment at `range` of `whole`. Equal attachments share a number.
    pub(crate) fn number(&mut self, whole: &Arc<String>, range: Range<usize>) -> usize {
        let digest = Sha256::digest(&whole.as_bytes()[range.clone()]);
        *self.numbers.entry(digest.into()).or_insert_with(|| {
            self.found.push((Arc::clone(whole), range));
            self.found.len() - 1
        })
    }

    /// Returns the number of the attachment with this content.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        if text.len() < MIN_LENGTH || self.found.is_empty() {
            return None;
        }
        self.numbers.get(&<[u8; 32]>::from(Sha256::digest(text))).copied()
    }

    /// Writes each attachment into a `script` element of a type that browsers do not execute.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        for (number, (whole, range)) in self.found.iter().enumerate() {
            let mut out = Markup::new();
            out.lit("<script type=\"application/octet-stream\" id=\"b").num(number as u64).lit("\">");
            out.write_to(to)?;
            // Base64 contains no markup.
            to.write_all(&whole.as_bytes()[range.clone()])?;
            to.write_all(b"</script>\n")?;
        }
        Ok(())
    }
}

/// Returns the byte ranges of the attachments in `part` of a text.
pub(crate) fn find_attachments(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut probe = part.start + MIN_LENGTH / 2;
    // Every run that is long enough covers at least one probe completely.
    while probe + PROBE_LENGTH <= part.end {
        if is_base64(&bytes[probe..probe + PROBE_LENGTH]) {
            let before = found.last().map_or(part.start, |last| last.end);
            let start = bytes[before..probe]
                .iter()
                .rposition(|byte| !is_base64_byte(*byte))
                .map_or(before, |at| before + at + 1);
            let end = end_of_base64(bytes, probe, part.end);
            if end - start >= MIN_LENGTH {
                found.push(start..end);
            }
            probe = probe.max(end);
        }
        probe += MIN_LENGTH / 2;
    }
    found
}

/// The number of bytes checked per probe.
const PROBE_LENGTH: usize = 64;

fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/') | (byte == b'=')
}

/// Returns whether all bytes are base64 characters. It tests a whole chunk without branching, which is faster
/// than stopping at the first other byte.
pub(crate) fn is_base64(bytes: &[u8]) -> bool {
    bytes.chunks(1 << 12).all(|bytes| bytes.iter().fold(true, |all, byte| all & is_base64_byte(*byte)))
}

/// Returns the end of the base64 run that covers `from`.
fn end_of_base64(bytes: &[u8], from: usize, end: usize) -> usize {
    let mut at = from;
    while at + MIN_LENGTH <= end && is_base64(&bytes[at..at + MIN_LENGTH]) {
        at += MIN_LENGTH;
    }
    bytes[at..end].iter().position(|byte| !is_base64_byte(*byte)).map_or(end, |more| at + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_base64_runs_are_found_at_any_offset() {
        for before in [0, 1, 40, 2047, 2048, 2049, 4095, 4096, 10_000] {
            for len in [MIN_LENGTH - 1, MIN_LENGTH, MIN_LENGTH + 1, 3 * MIN_LENGTH + 17] {
                for after in [0, 1, 63, 64, 65, 5000] {
                    let text = format!(
                        "{}{}{}",
                        " ".repeat(before),
                        "a+/=".repeat(len).split_at(len).0,
                        "\"".repeat(after)
                    );
                    let found = find_attachments(&text, 0..text.len());
                    let wanted: Vec<Range<usize>> =
                        (len >= MIN_LENGTH).then_some(before..before + len).into_iter().collect();
                    assert_eq!(found, wanted, "{before} {len} {after}");
                }
            }
        }
    }

    #[test]
    fn adjacent_runs_are_separate_and_words_are_skipped() {
        let base64 = "QUJD".repeat(MIN_LENGTH);
        let text = format!("é{base64}\"{base64}\"{}", "some words ".repeat(MIN_LENGTH));
        let found = find_attachments(&text, 0..text.len());
        assert_eq!(found, [2..2 + base64.len(), 3 + base64.len()..3 + 2 * base64.len()]);
        let whole = Arc::new(text);
        let mut attachments = Attachments::default();
        assert_eq!(attachments.find(&base64), None);
        assert_eq!(
            found.into_iter().map(|range| attachments.number(&whole, range)).collect::<Vec<_>>(),
            [0, 0]
        );
        assert_eq!((attachments.find(&base64), attachments.find(&base64[1..])), (Some(0), None));
    }
}
