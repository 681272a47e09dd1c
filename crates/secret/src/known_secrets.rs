//! Secrets that were identified once by their context, and are then searched everywhere.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use rustc_hash::FxHashMap;

use crate::alphabet::Alphabet;
use crate::deobfuscate;

/// Shorter secrets are not searched, because they may be ordinary words.
pub(crate) const SHORTEST: usize = 8;
/// Shorter secrets match only as whole words.
const MIN_UNBOUNDED: usize = 16;
/// The minimum length of the part of a secret that is masked at the end of an excerpt.
const MIN_CUT: usize = 6;
/// Escapes in longer secrets are not decoded.
const MAX_DECODED: usize = 4 << 10;

/// Secrets and their placeholders.
///
/// A password is identified by the `PASSWORD=` in front of it, and may be printed without it on another line.
/// A private key is identified by its header and footer, and single lines of it may be quoted elsewhere.
pub struct KnownSecrets {
    automaton: AhoCorasick,
    names: Vec<String>,
    /// The secrets as they are written, without encodings, with their placeholders.
    plain: Vec<(String, String)>,
}

impl KnownSecrets {
    pub(crate) fn new(names: &FxHashMap<String, String>) -> Option<Self> {
        let mut pieces: FxHashMap<&str, &str> = FxHashMap::default();
        // A secret that was found in an escaped form may occur without escapes elsewhere.
        let mut decoded: Vec<(String, &str)> = Vec::new();
        for (secret, name) in names.iter().filter(|(_, name)| name.starts_with("[secret:")) {
            let is_short = secret.len() <= MAX_DECODED && !secret.contains("-----BEGIN ");
            let plain = if is_short { deobfuscate::plain(secret) } else { None };
            decoded.extend(plain.filter(|plain| plain.len() >= SHORTEST).map(|plain| (plain, &**name)));
            if secret.contains("-----BEGIN ") || secret.contains('\n') {
                for piece in
                    secret.split(|letter: char| !letter.is_ascii() || !Alphabet::Base64.has(letter as u8))
                {
                    // In a patch, added lines begin with `+`.
                    let piece = piece.trim_start_matches('+');
                    if piece.len() >= 32 {
                        pieces.entry(piece).or_insert(name);
                    }
                }
            } else if secret.len() >= SHORTEST {
                pieces.insert(secret, name);
            }
        }
        for (plain, name) in &decoded {
            pieces.entry(plain).or_insert(name);
        }
        if pieces.is_empty() {
            return None;
        }
        let mut plain: Vec<(String, String)> =
            pieces.iter().map(|(secret, name)| ((*secret).to_owned(), (*name).to_owned())).collect();
        plain.sort_unstable();
        // The same secret may be encoded elsewhere.
        let encoded =
            pieces.iter().flat_map(|(secret, name)| encodings(secret).map(move |text| (text, *name)));
        let encoded: Vec<(String, &str)> = encoded.collect();
        for (text, name) in &encoded {
            pieces.entry(text).or_insert(name);
        }
        // Sorted, so that the result is deterministic.
        let mut pieces: Vec<(&str, &str)> = pieces.into_iter().collect();
        pieces.sort_unstable();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(pieces.iter().map(|(piece, _)| piece))
            .ok()?;
        Some(Self { automaton, names: pieces.into_iter().map(|(_, name)| name.to_owned()).collect(), plain })
    }

    /// Returns the known secrets in a text, in order, with their placeholders, also if they are escaped,
    /// coloured or broken over lines.
    pub fn find<'k>(&'k self, text: &str) -> Vec<(Range<usize>, &'k str)> {
        let mut found = self.scan(text);
        let n_plain = found.len();
        deobfuscate::views(text, |view| {
            let inner = self.scan(&view.text).into_iter();
            found.extend(inner.map(|(range, name)| (view.origin(&range), name)));
        });
        deobfuscate::joined_lines(text, |view| {
            // The lines of a shorter secret may be ordinary words.
            let long = self.scan(&view.text).into_iter().filter(|(range, _)| range.len() >= MIN_UNBOUNDED);
            found.extend(long.map(|(range, name)| (view.origin(&range), name)));
        });
        if found.len() > n_plain {
            keep_first(&mut found);
        }
        found
    }

    /// Masks the known secrets in a text.
    ///
    /// Placeholders contain the kind only: numbers would depend on the order in which secrets were found.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.mask_ranges(text, self.find(text))
    }

    /// Masks the known secrets in an excerpt, also one that it begins within or ends within. `cut` is whether
    /// its beginning and its end are within a line.
    pub fn mask_excerpt<'t>(&self, text: &'t str, cut: [bool; 2]) -> Cow<'t, str> {
        let mut found = self.find(text);
        let parts =
            |secret: &str| (MIN_CUT..secret.len()).rev().filter(|at| secret.is_char_boundary(*at)).collect();
        if cut[0] {
            let heads = self.plain.iter().filter_map(|(secret, name)| {
                let lengths: Vec<usize> = parts(secret);
                let rest = |length: &usize| text.starts_with(&secret[secret.len() - length..]);
                Some((
                    0..lengths
                        .into_iter()
                        .filter(|length| secret.is_char_boundary(secret.len() - length))
                        .find(rest)?,
                    &**name,
                ))
            });
            found.extend(heads.max_by_key(|(range, _)| range.end));
        }
        if cut[1] {
            let tails = self.plain.iter().filter_map(|(secret, name)| {
                let lengths: Vec<usize> = parts(secret);
                let length = lengths.into_iter().find(|length| text.ends_with(&secret[..*length]))?;
                Some((text.len() - length..text.len(), &**name))
            });
            found.extend(tails.max_by_key(|(range, _)| range.len()));
        }
        keep_first(&mut found);
        self.mask_ranges(text, found)
    }

    fn mask_ranges<'t>(&self, text: &'t str, found: Vec<(Range<usize>, &str)>) -> Cow<'t, str> {
        let mut clean = String::new();
        let mut done = 0;
        for (range, placeholder) in found {
            clean.push_str(&text[done..range.start]);
            clean.push_str(placeholder.rsplit_once(':').map_or(placeholder, |(kind, _)| kind));
            clean.push_str(if placeholder.contains(':') { "]" } else { "" });
            done = range.end;
        }
        if done == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }

    fn scan<'k>(&'k self, text: &str) -> Vec<(Range<usize>, &'k str)> {
        let bytes = text.as_bytes();
        let alone = |range: &Range<usize>| {
            let word = |at: Option<usize>| {
                at.and_then(|at| bytes.get(at)).is_some_and(|byte| Alphabet::Word.has(*byte))
            };
            range.len() >= MIN_UNBOUNDED || !word(range.start.checked_sub(1)) && !word(Some(range.end))
        };
        let hits =
            self.automaton.find_iter(text).map(|hit| (hit.range(), &*self.names[hit.pattern().as_usize()]));
        hits.filter(|(range, _)| alone(range)).collect()
    }
}

/// Sorts findings, and removes those that overlap an earlier one.
fn keep_first(found: &mut Vec<(Range<usize>, &str)>) {
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut end = 0;
    found.retain(|(range, _)| {
        let is_new = range.start >= end;
        end = end.max(range.end);
        is_new
    });
}

/// Returns the encodings of a secret as base64, as hex, in a URL, in JSON and in a shell command. Escapes of
/// single characters are decoded in the text that is searched.
///
/// The base64 of a secret depends on its offset modulo three. At each offset, the first and last characters
/// are left out, because they also encode adjacent bytes.
fn encodings(secret: &str) -> impl Iterator<Item = String> {
    let bytes = secret.as_bytes();
    let mut all = vec![STANDARD.encode(bytes), STANDARD_NO_PAD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes)];
    for offset in 0..3_usize {
        let mut shifted = vec![0; offset];
        shifted.extend(bytes);
        for text in [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
            let first = (offset * 8).div_ceil(6);
            let last = shifted.len() * 8 / 6;
            all.extend(text.get(first..last).filter(|text| text.len() >= MIN_UNBOUNDED).map(str::to_owned));
        }
    }
    all.push(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
    all.push(bytes.iter().map(|byte| format!("{byte:02X}")).collect());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let escape =
        |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    let address: String = bytes.iter().map(escape).collect();
    all.push(address.replace("%20", "+"));
    all.push(bytes.iter().map(|byte| format!("%{byte:02X}")).collect());
    all.push(secret.replace('\\', "\\\\").replace('"', "\\\""));
    // In a string in single quotes, a single quote ends the string, and another string contains it.
    all.push(secret.replace('\'', r#"'"'"'"#));
    all.push(secret.replace('\'', r"'\''"));
    all.push(shell_escaped(secret));
    all.push(address);
    all.retain(|text| text != secret);
    all.into_iter()
}

/// Returns a secret as a word of a shell command, without quotes.
fn shell_escaped(secret: &str) -> String {
    let is_plain = |ch: char| !ch.is_ascii() || ch.is_ascii_alphanumeric() || "-_./:=@%+,".contains(ch);
    let mut word = String::with_capacity(secret.len());
    for ch in secret.chars() {
        if !is_plain(ch) {
            word.push('\\');
        }
        word.push(ch);
    }
    word
}
