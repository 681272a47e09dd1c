//! Attachments: base64 data in a log, such as images. It does not compress and often occurs twice in a log,
//! so a page contains each attachment once and uncompressed.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use crate::markup::Markup;

/// Shorter runs of base64 stay in the line.
const LONG: usize = 1 << 12;

/// The attachments of a page.
#[derive(Default)]
pub(crate) struct Lumps {
    found: Vec<(Arc<String>, Range<usize>)>,
    numbers: FxHashMap<[u8; 32], usize>,
}

impl Lumps {
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
        if text.len() < LONG || self.found.is_empty() {
            return None;
        }
        self.numbers.get(&<[u8; 32]>::from(Sha256::digest(text))).copied()
    }

    /// Writes each attachment into a `script` element of a type that browsers do not execute.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        for (number, (whole, range)) in self.found.iter().enumerate() {
            let mut out = Markup::new();
            out.lit("<script type=\"application/octet-stream\" id=\"b").num(number as u64).lit("\">");
            to.write_all(out.as_str().as_bytes())?;
            // Base64 contains no markup.
            to.write_all(&whole.as_bytes()[range.clone()])?;
            to.write_all(b"</script>\n")?;
        }
        Ok(())
    }
}

/// Returns the byte ranges of the attachments in `part` of a text.
pub(crate) fn lumps_in(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut probe = part.start + LONG / 2;
    // Every run that is long enough covers at least one probe completely.
    while probe + PROBED <= part.end {
        if is_base64(&bytes[probe..probe + PROBED]) {
            let before = found.last().map_or(part.start, |last| last.end);
            let start = bytes[before..probe]
                .iter()
                .rposition(|byte| !fits(*byte))
                .map_or(before, |at| before + at + 1);
            let end = end_of_base64(bytes, probe, part.end);
            if end - start >= LONG {
                found.push(start..end);
            }
            probe = probe.max(end);
        }
        probe += LONG / 2;
    }
    found
}

/// The number of bytes checked per probe.
const PROBED: usize = 64;

fn fits(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/') | (byte == b'=')
}

/// Returns whether all bytes are base64 characters. It tests a whole chunk without branching, which is faster
/// than stopping at the first other byte.
pub(crate) fn is_base64(bytes: &[u8]) -> bool {
    bytes.chunks(1 << 12).all(|bytes| bytes.iter().fold(true, |all, byte| all & fits(*byte)))
}

/// Returns the end of the base64 run that covers `from`.
fn end_of_base64(bytes: &[u8], from: usize, end: usize) -> usize {
    let mut at = from;
    while at + LONG <= end && is_base64(&bytes[at..at + LONG]) {
        at += LONG;
    }
    bytes[at..end].iter().position(|byte| !fits(*byte)).map_or(end, |more| at + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_and_in_base_64_is_found_wherever_it_stands() {
        for before in [0, 1, 40, 2047, 2048, 2049, 4095, 4096, 10_000] {
            for len in [LONG - 1, LONG, LONG + 1, 3 * LONG + 17] {
                for after in [0, 1, 63, 64, 65, 5000] {
                    let text = format!(
                        "{}{}{}",
                        " ".repeat(before),
                        "a+/=".repeat(len).split_at(len).0,
                        "\"".repeat(after)
                    );
                    let found = lumps_in(&text, 0..text.len());
                    let wanted: Vec<Range<usize>> =
                        (len >= LONG).then_some(before..before + len).into_iter().collect();
                    assert_eq!(found, wanted, "{before} {len} {after}");
                }
            }
        }
    }

    #[test]
    fn two_in_a_row_are_two_and_words_are_none() {
        let lump = "QUJD".repeat(LONG);
        let text = format!("é{lump}\"{lump}\"{}", "some words ".repeat(LONG));
        let found = lumps_in(&text, 0..text.len());
        assert_eq!(found, [2..2 + lump.len(), 3 + lump.len()..3 + 2 * lump.len()]);
        let whole = Arc::new(text);
        let mut lumps = Lumps::default();
        assert_eq!(lumps.find(&lump), None);
        assert_eq!(found.into_iter().map(|range| lumps.number(&whole, range)).collect::<Vec<_>>(), [0, 0]);
        assert_eq!((lumps.find(&lump), lumps.find(&lump[1..])), (Some(0), None));
    }
}
