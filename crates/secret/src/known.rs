//! Secrets that are known by what they are: found once where something gave them away, and looked for everywhere.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use rustc_hash::FxHashMap;

use crate::alphabet::Alphabet;

/// Nothing shorter is looked for by itself: it may be a word like any other.
const SHORTEST: usize = 8;
/// What is shorter is a secret only where it stands alone.
const SHORT: usize = 16;

/// Secrets, and the names that stand for them.
///
/// A password is known by the `PASSWORD=` before it, and printed bare a line further on; a key is one where it stands between its rules, and
/// its lines are quoted one by one elsewhere.
pub struct Known {
    automaton: AhoCorasick,
    names: Vec<String>,
}

impl Known {
    pub(crate) fn new(names: &FxHashMap<String, String>) -> Option<Self> {
        let mut pieces: FxHashMap<&str, &str> = FxHashMap::default();
        for (secret, name) in names.iter().filter(|(_, name)| name.starts_with("[secret:")) {
            if secret.contains("-----BEGIN ") || secret.contains('\n') {
                for piece in
                    secret.split(|letter: char| !letter.is_ascii() || !Alphabet::Base64.has(letter as u8))
                {
                    // In a patch, a line that came has a `+` before it.
                    let piece = piece.trim_start_matches('+');
                    if piece.len() >= 32 {
                        pieces.entry(piece).or_insert(name);
                    }
                }
            } else if secret.len() >= SHORTEST {
                pieces.insert(secret, name);
            }
        }
        if pieces.is_empty() {
            return None;
        }
        // In an order that does not change from run to run.
        let mut pieces: Vec<(&str, &str)> = pieces.into_iter().collect();
        pieces.sort_unstable();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(pieces.iter().map(|(piece, _)| piece))
            .ok()?;
        Some(Self { automaton, names: pieces.into_iter().map(|(_, name)| name.to_owned()).collect() })
    }

    /// Where known secrets stand in a text, in order, with their names.
    pub fn find<'k>(&'k self, text: &str) -> Vec<(Range<usize>, &'k str)> {
        let bytes = text.as_bytes();
        let alone = |range: &Range<usize>| {
            let word = |at: Option<usize>| {
                at.and_then(|at| bytes.get(at)).is_some_and(|byte| Alphabet::Word.has(*byte))
            };
            range.len() >= SHORT || !word(range.start.checked_sub(1)) && !word(Some(range.end))
        };
        let hits =
            self.automaton.find_iter(text).map(|hit| (hit.range(), &*self.names[hit.pattern().as_usize()]));
        hits.filter(|(range, _)| alone(range)).collect()
    }
}
