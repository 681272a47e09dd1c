//! Secrets that were identified once by their context, and are then searched everywhere.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use crate::alphabet::Alphabet;
use crate::deobfuscate::{self, CopyDecoder, MIN_COPY};
use crate::piece_set::{PieceList, PieceSet};
use crate::replacer::PlaceholderId;
use crate::secret_list::SecretList;

/// Shorter secrets are not searched, because they may be ordinary words.
pub(crate) const SHORTEST: usize = MIN_COPY;
/// Shorter secrets match only as whole words.
const MIN_UNBOUNDED: usize = 16;
/// The minimum length of the part of a secret that is masked at the end of an excerpt.
const MIN_CUT: usize = 6;
/// Escapes in longer secrets are not decoded.
const MAX_DECODED: usize = 4 << 10;
/// The maximum depth of nested encodings of a copy.
const MAX_DEPTH: usize = 3;

/// Secrets and their placeholders.
///
/// A password is identified by the `PASSWORD=` in front of it, and may be printed without it on another line.
/// A private key is identified by its header and footer, and single lines of it may be quoted elsewhere.
///
/// Only the secrets themselves are kept, and a few bits for each of their encodings: base64, hex and escapes
/// are decoded in the text that is searched.
pub struct KnownSecrets {
    pieces: PieceSet,
    /// The classes and kinds of placeholders: `secret:github-token`.
    kinds: Vec<String>,
}

impl KnownSecrets {
    /// Creates a searcher for secrets, and for further ones; `None` if there are none. `kinds` are those of
    /// their placeholders.
    pub(crate) fn new(secrets: Arc<SecretList>, more: SecretList, kinds: Vec<String>) -> Option<Self> {
        let is_secret: Vec<bool> = kinds.iter().map(|kind| kind.starts_with("secret:")).collect();
        let mut pieces = PieceList::new(Arc::clone(&secrets));
        let first = (0..secrets.len() as u32).map(|index| (secrets.at(index), Some(index)));
        let more = (0..more.len() as u32).map(|index| (more.at(index), None));
        for ((secret, name), index) in
            first.chain(more).filter(|((_, name), _)| is_secret[name.kind as usize])
        {
            let is_short = secret.len() <= MAX_DECODED && !secret.contains("-----BEGIN ");
            // A secret that was found in an escaped form may occur without escapes elsewhere.
            let plain = if is_short { deobfuscate::plain(secret) } else { None };
            if let Some(plain) = plain.filter(|plain| plain.len() >= SHORTEST) {
                spellings(&plain).for_each(|text| pieces.push(&text, name));
                pieces.push(&plain, name);
            }
            if secret.contains("-----BEGIN ") || secret.contains('\n') {
                let is_end = |letter: char| !letter.is_ascii() || !Alphabet::Base64.has(letter as u8);
                // In a patch, added lines begin with `+`.
                let lines = secret.split(is_end).map(|line| line.trim_start_matches('+'));
                lines.filter(|line| line.len() >= 32).for_each(|line| pieces.push(line, name));
            } else if secret.len() >= SHORTEST {
                match index {
                    Some(index) => pieces.push_secret(index),
                    None => pieces.push(secret, name),
                }
                spellings(secret).for_each(|text| pieces.push(&text, name));
            }
        }
        (!pieces.is_empty()).then(|| Self { pieces: PieceSet::new(pieces), kinds })
    }

    /// Returns the known secrets in a text, in order, with their placeholders, also if they are encoded,
    /// escaped, coloured, in a hex dump, or broken over lines.
    pub fn find(&self, text: &str) -> Vec<(Range<usize>, PlaceholderId)> {
        self.find_accepted(text, |_| true)
    }

    /// Returns the known secrets in a text, as [`KnownSecrets::find`] does, but only those that `accepts`
    /// returns `true` for. The others take no memory.
    pub fn find_accepted(
        &self,
        text: &str,
        accepts: impl Fn(&Range<usize>) -> bool,
    ) -> Vec<(Range<usize>, PlaceholderId)> {
        let accepts = |range: &Range<usize>| {
            text.is_char_boundary(range.start) && text.is_char_boundary(range.end) && accepts(range)
        };
        let mut found = Vec::new();
        self.scan(text.as_bytes(), MAX_DEPTH, &mut |range, name| {
            if accepts(&range) {
                found.push((range, name));
            }
        });
        // Most copies are also found in other views of the text.
        if !found.is_sorted_by_key(sort_key) {
            found.sort_by_key(sort_key);
        }
        let n_plain = found.len();
        let mut add = |range: Range<usize>, name| {
            let plain = &found[..n_plain];
            let longest = plain.get(plain.partition_point(|(plain, _)| plain.start < range.start));
            let is_known =
                longest.is_some_and(|(plain, _)| plain.start == range.start && plain.end >= range.end);
            if !is_known && accepts(&range) {
                found.push((range, name));
            }
        };
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

    /// Returns the text of a placeholder.
    pub fn text_of(&self, placeholder: PlaceholderId) -> String {
        format!("[{}:{}]", self.kinds[placeholder.kind as usize], placeholder.number)
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
            let heads = self.pieces.iter().filter_map(|(secret, name)| {
                let lengths: Vec<usize> = parts(secret);
                let rest = |length: &usize| text.starts_with(&secret[secret.len() - length..]);
                Some((
                    0..lengths
                        .into_iter()
                        .filter(|length| secret.is_char_boundary(secret.len() - length))
                        .find(rest)?,
                    name,
                ))
            });
            found.extend(heads.max_by_key(|(range, _)| range.end));
        }
        if cut[1] {
            let tails = self.pieces.iter().filter_map(|(secret, name)| {
                let lengths: Vec<usize> = parts(secret);
                let length = lengths.into_iter().find(|length| text.ends_with(&secret[..*length]))?;
                Some((text.len() - length..text.len(), name))
            });
            found.extend(tails.max_by_key(|(range, _)| range.len()));
        }
        keep_first(&mut found);
        self.mask_ranges(text, found)
    }

    fn mask_ranges<'t>(&self, text: &'t str, found: Vec<(Range<usize>, PlaceholderId)>) -> Cow<'t, str> {
        let mut clean = String::new();
        let mut done = 0;
        for (range, placeholder) in found {
            clean.push_str(&text[done..range.start]);
            clean.push('[');
            clean.push_str(&self.kinds[placeholder.kind as usize]);
            clean.push(']');
            done = range.end;
        }
        if done == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }

    /// Finds the secrets in some bytes, and in the base64 and hex among them.
    fn scan(&self, bytes: &[u8], depth: usize, found: &mut dyn FnMut(Range<usize>, PlaceholderId)) {
        let is_word =
            |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| Alphabet::Word.has(*byte));
        // Decoded bytes do not contain a secret by chance.
        let is_decoded = depth < MAX_DEPTH;
        let is_alone = |range: &Range<usize>| {
            let is_whole = || !is_word(range.start.checked_sub(1)) && !is_word(Some(range.end));
            is_decoded || range.len() >= MIN_UNBOUNDED || is_whole()
        };
        let mut copies = Vec::new();
        self.pieces.find(bytes, is_alone, &mut *found, |at| copies.push(at));
        if depth > 0 && !copies.is_empty() {
            let mut decoder = CopyDecoder::new(bytes, self.pieces.longest());
            for at in copies {
                decoder.decode_at(at, |run| {
                    self.scan(&run.bytes, depth - 1, &mut |range, name| found(run.origin(&range), name));
                });
            }
        }
    }
}

/// The order of findings: the longest one at a position is first.
fn sort_key((range, _): &(Range<usize>, PlaceholderId)) -> (usize, Reverse<usize>) {
    (range.start, Reverse(range.end))
}

/// Sorts findings, and removes those that overlap an earlier one.
fn keep_first(found: &mut Vec<(Range<usize>, PlaceholderId)>) {
    // Sorting needs memory.
    if !found.is_sorted_by_key(sort_key) {
        found.sort_by_key(sort_key);
    }
    let mut end = 0;
    found.retain(|(range, _)| {
        let is_new = range.start >= end;
        end = end.max(range.end);
        is_new
    });
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
