//! Secrets that were identified once by their context, and are then searched everywhere.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::alphabet::Alphabet;
use crate::deobfuscate::{self, CopyDecoder, MIN_COPY};
use crate::replacer::replace_ranges;
use crate::rules::MAX_DEPTH;

/// Shorter secrets are not searched, because they may be ordinary words.
pub(crate) const SHORTEST: usize = MIN_COPY;
/// Shorter secrets match only as whole words.
const MIN_UNBOUNDED: usize = 16;
/// The minimum length of the part of a secret that is masked at the end of an excerpt.
const MIN_CUT: usize = 6;

/// Secrets and their placeholders.
///
/// A password is identified by the `PASSWORD=` in front of it, and may be printed without it on another line.
/// A private key is identified by its header and footer, and single lines of it may be quoted elsewhere.
pub struct KnownSecrets {
    /// Finds the longest of the texts at each position.
    texts: AhoCorasick,
    /// The secrets, their lines and their spellings, with their placeholders, by number of the pattern.
    pieces: Vec<(String, Arc<str>)>,
    /// Finds the first bytes of each text in base64 and hex, so that only their positions need to be decoded.
    encoded: AhoCorasick,
    longest: usize,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets").finish_non_exhaustive()
    }
}

impl KnownSecrets {
    /// Creates a searcher for secrets with their placeholders; `None` if there are none.
    pub(crate) fn new<'s>(secrets: impl Iterator<Item = (&'s str, &'s Arc<str>)>) -> Option<Self> {
        // Of equal texts, the one with the first placeholder is kept.
        let mut pieces: BTreeMap<String, &Arc<str>> = BTreeMap::new();
        let mut add = |piece: &str, placeholder| {
            if piece.len() >= SHORTEST {
                let first = pieces.entry(piece.to_owned()).or_insert(placeholder);
                *first = placeholder.min(*first);
            }
        };
        for (secret, placeholder) in secrets.filter(|(_, placeholder)| placeholder.starts_with("[secret:")) {
            let is_key = secret.contains("-----BEGIN ");
            // A secret that was found in an escaped form may occur without escapes elsewhere.
            if !is_key && let Some(plain) = deobfuscate::plain(secret).filter(|plain| plain.len() >= SHORTEST)
            {
                spellings(&plain).for_each(|text| add(&text, placeholder));
                add(&plain, placeholder);
            }
            if is_key || secret.contains('\n') {
                let is_end = |letter: char| !letter.is_ascii() || !Alphabet::Base64.has(letter as u8);
                // In a patch, added lines begin with `+`.
                let lines = secret.split(is_end).map(|line| line.trim_start_matches('+'));
                lines.filter(|line| line.len() >= 32).for_each(|line| add(line, placeholder));
            } else if secret.len() >= SHORTEST {
                add(secret, placeholder);
                spellings(secret).for_each(|text| add(&text, placeholder));
            }
        }
        let pieces: Vec<(String, Arc<str>)> =
            pieces.into_iter().map(|(piece, placeholder)| (piece, Arc::clone(placeholder))).collect();
        let texts = || pieces.iter().map(|(piece, _)| piece.as_bytes());
        let mut starts = BTreeSet::new();
        texts().for_each(|piece| add_encoded_starts(piece, &mut starts));
        let longest = texts().map(<[u8]>::len).max()?;
        let builder = || AhoCorasick::builder();
        Some(Self {
            // Only gigabytes of secrets exceed the limits of an automaton.
            texts: builder().match_kind(MatchKind::LeftmostLongest).build(texts()).ok()?,
            encoded: builder().build(starts).ok()?,
            pieces,
            longest,
        })
    }

    /// Returns the known secrets in a text, in order, with their placeholders, also if they are encoded,
    /// escaped, coloured, in a hex dump, or broken over lines.
    pub fn find(&self, text: &str) -> Vec<(Range<usize>, &Arc<str>)> {
        let mut found = Vec::new();
        let mut add = |range: Range<usize>, placeholder| {
            if text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
                found.push((range, placeholder));
            }
        };
        self.scan(text.as_bytes(), MAX_DEPTH, &mut add);
        deobfuscate::views(text, |view| {
            self.scan(view.text.as_bytes(), MAX_DEPTH, &mut |range, name| add(view.origin(&range), name));
        });
        deobfuscate::joined_lines(text, |view| {
            self.scan(view.text.as_bytes(), MAX_DEPTH, &mut |range, name| {
                // The lines of a shorter secret may be ordinary words.
                if range.len() >= MIN_UNBOUNDED {
                    add(view.origin(&range), name);
                }
            });
        });
        deobfuscate::hex_dumps(text, |dump| {
            self.scan(&dump.bytes, MAX_DEPTH - 1, &mut |range, name| add(dump.origin(text, &range), name));
        });
        keep_first(&mut found);
        found
    }

    /// Masks the known secrets in a text.
    ///
    /// Placeholders contain the kind only: numbers would depend on the order in which secrets were found.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        without_numbers(text, self.find(text))
    }

    /// Masks the known secrets in an excerpt, also one that it begins within or ends within. `cut` is whether
    /// its beginning and its end are within a line.
    pub fn mask_excerpt<'t>(&self, text: &'t str, cut: [bool; 2]) -> Cow<'t, str> {
        let mut found = self.find(text);
        // The parts of a secret before and after each of its characters, longest first.
        let starts = |secret: &'_ str| {
            let length =
                (MIN_CUT..secret.len()).rev().find(|at| text.as_bytes().ends_with(&secret.as_bytes()[..*at]));
            length.filter(|at| secret.is_char_boundary(*at)).map(|at| text.len() - at..text.len())
        };
        let ends = |secret: &'_ str| {
            let length = (MIN_CUT..secret.len())
                .rev()
                .find(|length| text.as_bytes().starts_with(&secret.as_bytes()[secret.len() - length..]));
            length.filter(|length| secret.is_char_boundary(secret.len() - length)).map(|length| 0..length)
        };
        let mut add = |part: &dyn Fn(&str) -> Option<Range<usize>>| {
            let parts = self.pieces.iter().filter_map(|(secret, name)| Some((part(secret)?, name)));
            found.extend(parts.max_by_key(|(range, _)| range.len()));
        };
        if cut[0] {
            add(&ends);
        }
        if cut[1] {
            add(&starts);
        }
        keep_first(&mut found);
        without_numbers(text, found)
    }

    /// Finds the secrets in some bytes, and in the base64 and hex among them.
    fn scan<'s>(&'s self, bytes: &[u8], depth: usize, found: &mut dyn FnMut(Range<usize>, &'s Arc<str>)) {
        let is_word =
            |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| Alphabet::Word.has(*byte));
        // Decoded bytes do not contain a secret by chance.
        let is_decoded = depth < MAX_DEPTH;
        let is_alone = |range: &Range<usize>| {
            let is_whole = || !is_word(range.start.checked_sub(1)) && !is_word(Some(range.end));
            is_decoded || range.len() >= MIN_UNBOUNDED || is_whole()
        };
        let mut at = 0;
        while let Some(hit) = self.texts.find(Input::new(bytes).range(at..)) {
            let is_alone = is_alone(&hit.range());
            at = if is_alone { hit.end() } else { hit.start() + 1 };
            if is_alone {
                found(hit.range(), &self.pieces[hit.pattern().as_usize()].1);
            }
        }
        if depth > 0 {
            let mut decoder = CopyDecoder::new(bytes, self.longest);
            for start in self.encoded.find_overlapping_iter(bytes) {
                decoder.decode_at(start.start(), |run| {
                    self.scan(&run.bytes, depth - 1, &mut |range, name| found(run.origin(&range), name));
                });
            }
        }
    }
}

/// The number of bytes of an encoded text that are searched. Any text has so many in any encoding.
const ENCODED_START: usize = 8;

/// Adds the beginnings of the encodings of a text: base64 at each offset, also in the URL-safe alphabet and
/// encoded twice, and hex.
fn add_encoded_starts(text: &[u8], starts: &mut BTreeSet<Vec<u8>>) {
    let head = &text[..text.len().min(3 * ENCODED_START)];
    for encode in [|bytes: &[u8]| STANDARD_NO_PAD.encode(bytes), |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes)]
    {
        let once = encode(head);
        for text in [head, once.as_bytes()] {
            for offset in 0..3 {
                let mut shifted = vec![0; offset];
                shifted.extend(text);
                // The first digits also encode the bytes before the text.
                let first = (offset * 8).div_ceil(6);
                starts.insert(encode(&shifted).as_bytes()[first..first + ENCODED_START].to_vec());
            }
        }
    }
    let hex: String = head[..ENCODED_START / 2].iter().map(|byte| format!("{byte:02x}")).collect();
    starts.insert(hex.to_ascii_uppercase().into_bytes());
    starts.insert(hex.into_bytes());
}

/// Sorts findings, and removes those that overlap an earlier one. The longest one at a position is first.
fn keep_first(found: &mut Vec<(Range<usize>, &Arc<str>)>) {
    found.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
    let mut end = 0;
    found.retain(|(range, _)| {
        let is_new = range.start >= end;
        end = end.max(range.end);
        is_new
    });
}

/// Replaces findings with their placeholders, without the numbers: `[secret:github-token]`.
fn without_numbers<'t>(text: &'t str, found: Vec<(Range<usize>, &Arc<str>)>) -> Cow<'t, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let kind = |placeholder: &Arc<str>| placeholder.rsplit_once(':').map_or("", |(kind, _)| kind).to_owned();
    Cow::Owned(replace_ranges(text, found.into_iter().map(|(range, name)| (range, kind(name) + "]"))))
}

/// Returns the spellings of a secret in a URL, in JSON and in a shell command, if they differ from it.
/// Encodings of ASCII characters are decoded in the text that is searched.
fn spellings(secret: &str) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    if secret.bytes().any(|byte| !byte.is_ascii_alphanumeric()) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        let escape = |byte: u8| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        if secret.contains(' ') || !secret.is_ascii() {
            let address: String = secret.bytes().map(escape).collect();
            all.push(address.replace("%20", "+"));
            all.push(address);
            all.push(secret.bytes().map(|byte| format!("%{byte:02X}")).collect());
        }
        all.push(secret.replace('\\', "\\\\").replace('"', "\\\""));
        // In a string in single quotes, a single quote ends the string, and another string contains it.
        all.push(secret.replace('\'', r#"'"'"'"#));
        all.push(secret.replace('\'', r"'\''"));
        all.push(shell_escaped(secret));
    }
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
