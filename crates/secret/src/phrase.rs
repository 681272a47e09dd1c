//! Seed phrases of wallets: 12 to 24 words of the BIP-39 list, the last of which contains a checksum.

use std::ops::Range;
use std::sync::LazyLock;

use foldhash::HashMap;
use sha2::{Digest, Sha256};

/// The English words of BIP-39 with their indices.
static WORDS: LazyLock<HashMap<&'static str, u16>> =
    LazyLock::new(|| include_str!("words/bip39.txt").split_whitespace().zip(0..).collect());

/// The number of words of a phrase, longest first.
const LENGTHS: [usize; 5] = [24, 21, 18, 15, 12];
/// The length of the shortest phrase in bytes: twelve words of three letters.
const SHORTEST: usize = 12 * 3 + 11;
/// Longer runs of listed words are the list itself, or another dictionary.
const LONGEST_RUN: usize = 40;

/// Finds phrases on one line, separated by single spaces.
///
/// Examines every byte only inside a run of lower-case letters and spaces; elsewhere it skips ahead.
pub(crate) fn find(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while start + SHORTEST <= bytes.len() {
        let window = &bytes[start..start + SHORTEST];
        if let Some(bad) = window.iter().rposition(|byte| !is_plain(*byte)) {
            start += bad + 1;
            continue;
        }
        let length = bytes[start..].iter().take_while(|byte| is_plain(**byte)).count();
        run(text, start..start + length, &mut found);
        start += length + 1;
    }
}

fn is_plain(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_lowercase()
}

/// Finds phrases in a run of lower-case words.
fn run(text: &str, range: Range<usize>, found: &mut impl FnMut(Range<usize>)) {
    let mut words: Vec<(Range<usize>, u16)> = Vec::new();
    let mut at = range.start;
    for word in text[range.clone()].split(' ') {
        let place = at..at + word.len();
        at = place.end + 1;
        match (3..=8).contains(&word.len()).then(|| WORDS.get(word)).flatten() {
            Some(number) => words.push((place, *number)),
            None => phrase(&std::mem::take(&mut words), true, found),
        }
    }
    phrase(&words, true, found);
}

/// The words of letters from an offset on, with the text before each of them.
fn words_after(text: &str, from: usize) -> impl Iterator<Item = (&str, Range<usize>)> {
    let rest = &text[..text.floor_char_boundary(from + REACH)];
    let mut at = from;
    std::iter::from_fn(move || {
        let start = at + rest[at..].find(|letter: char| letter.is_ascii_alphabetic())?;
        let length = rest[start..].find(|letter: char| !letter.is_ascii_alphabetic());
        let end = length.map_or(rest.len(), |length| start + length);
        let gap = &rest[at..start];
        at = end;
        Some((gap, start..end))
    })
}

/// Finds a phrase after a word that announces one (`mnemonic`, `seed phrase`), in any layout: numbered,
/// quoted, one word per line, in capitals.
pub(crate) fn find_after_name(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let mut words: Vec<(Range<usize>, u16)> = Vec::new();
    let mut secret = None;
    let mut take = |words: &mut Vec<(Range<usize>, u16)>| {
        phrase(&std::mem::take(words), false, &mut |range| secret = secret.clone().or(Some(range)));
    };
    for (gap, range) in words_after(text, at.end) {
        // Numbers, quotes, commas and line breaks may separate the words of a list; anything else ends it.
        let is_separator = |ch: char| ch.is_ascii_digit() || " \n\r\t,.)\"'-:|[=\\".contains(ch);
        if !gap.chars().all(is_separator) {
            take(&mut words);
        }
        match WORDS.get(&*text[range.clone()].to_ascii_lowercase()) {
            Some(number) => words.push((range, *number)),
            None => take(&mut words),
        }
    }
    take(&mut words);
    secret
}

/// Finds a phrase in a numbered list of single words, the first of which follows `at`: `1. legal 2. winner`.
/// The list has exactly as many items as a phrase has words.
pub(crate) fn find_numbered(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    if text[..at.start].ends_with(|before: char| before.is_ascii_alphanumeric() || before == '.') {
        return None;
    }
    let mut words: Vec<(Range<usize>, u16)> = Vec::new();
    let mut rest = words_after(text, at.start).peekable();
    while let Some((gap, range)) = rest.peek() {
        let is_mark = |ch: char| " \t\r\n,;|(*.):=".contains(ch);
        let is_item = gap.trim_matches(is_mark).parse() == Ok(words.len() + 1);
        let number = WORDS.get(&*text[range.clone()].to_ascii_lowercase()).filter(|_| is_item);
        let Some(number) = number else { break };
        words.push((range.clone(), *number));
        rest.next();
    }
    // An item of several words is not a word of a phrase.
    let is_cut = rest.peek().is_some_and(|(gap, _)| gap.trim_matches([' ', '\t']).is_empty());
    let mut secret = None;
    if !is_cut && LENGTHS.contains(&words.len()) {
        phrase(&words, true, &mut |range| secret = Some(range));
    }
    secret
}

/// The maximum length of a phrase in any layout.
const REACH: usize = 1000;

/// Finds the phrase in consecutive listed words. A run with the exact length of a phrase is accepted
/// regardless of its checksum, because people quote phrases that they made up. In other runs, the checksum
/// locates the phrase.
fn phrase(words: &[(Range<usize>, u16)], exact: bool, found: &mut impl FnMut(Range<usize>)) {
    if !(12..=LONGEST_RUN).contains(&words.len()) || words.is_sorted_by_key(|(_, number)| *number) {
        return;
    }
    let range = |part: &[(Range<usize>, u16)]| part[0].0.start..part[part.len() - 1].0.end;
    if LENGTHS.contains(&words.len()) && (exact || words.len() <= 24) {
        return found(range(words));
    }
    for length in LENGTHS {
        if let Some(part) = words.windows(length).find(|part| has_checksum(part)) {
            return found(range(part));
        }
    }
}

/// Returns whether the last bits equal the first bits of the SHA-256 of the rest.
fn has_checksum(words: &[(Range<usize>, u16)]) -> bool {
    let bits = words.iter().flat_map(|(_, number)| (0..11).rev().map(move |bit| number >> bit & 1 == 1));
    let bits: Vec<bool> = bits.collect();
    let check = bits.len() / 33;
    let (entropy, sum) = bits.split_at(bits.len() - check);
    let byte = |bits: &[bool]| bits.iter().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit));
    let entropy: Vec<u8> = entropy.chunks(8).map(byte).collect();
    let digest = Sha256::digest(&entropy);
    sum.iter().zip((0..8).rev()).all(|(bit, at)| (digest[0] >> at & 1 == 1) == *bit)
}

#[cfg(test)]
mod tests {
    use super::{WORDS, find, find_after_name, find_numbered};
    use sha2::{Digest, Sha256};

    fn found(text: &str) -> Vec<&str> {
        let mut all = Vec::new();
        find(text, |range| all.push(&text[range]));
        all
    }

    #[test]
    fn the_word_list_matches_the_standard() {
        let words: Vec<&str> = include_str!("words/bip39.txt").split_whitespace().collect();
        let digest = Sha256::digest(format!("{}\n", words.join("\n")));
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(WORDS.len(), 2048);
        assert_eq!(hex, "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda");
    }

    #[test]
    fn phrases_are_found_and_prose_is_not() {
        let phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow";
        assert_eq!(found(phrase), [phrase]);
        assert_eq!(found(&format!("it is: {phrase}\n")), [phrase]);
        // A listed word precedes it: the checksum determines the start.
        assert_eq!(found(&format!("phrase {phrase} always")), [phrase]);
        assert!(
            found("the quick brown fox jumps over the lazy dog and then runs away from all other animals")
                .is_empty()
        );
        let list: Vec<&str> = include_str!("words/bip39.txt").split_whitespace().collect();
        assert!(found(&list.join(" ")).is_empty());
        assert!(found(&list[..12].join(" ")).is_empty());
        let numbered: String =
            phrase.split(' ').zip(1..).map(|(word, no)| format!("{no}. {}\n", word.to_uppercase())).collect();
        let text = format!("Recovery phrase:\n{numbered}");
        let range = find_after_name(&text, 0..15).unwrap();
        assert!(text[range.clone()].starts_with("LEGAL") && text[range].ends_with("YELLOW"));
    }

    #[test]
    fn a_numbered_list_of_listed_words_is_a_phrase() {
        let phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow";
        let numbered = |mark: &str, gap: &str, words: &str| -> String {
            words.split(' ').zip(1..).map(|(word, no)| format!("{no}{mark} {word}{gap}")).collect()
        };
        let found = |text: &str| find_numbered(text, 0..2).map(|range| text[range].to_owned());
        for (mark, gap) in [(".", " "), (")", "\n"), (":", ", "), (".", "\r\n   ")] {
            let secret = found(&numbered(mark, gap, phrase)).unwrap();
            assert!(secret.starts_with("legal") && secret.ends_with("yellow"), "{secret}");
        }
        let list: Vec<&str> = include_str!("words/bip39.txt").split_whitespace().collect();
        for text in [
            // Another number of items, items of several words, and the list of words itself.
            numbered(".", "\n", "legal winner thank year"),
            numbered(".", "\n", phrase).replace("wave", "wave hello"),
            numbered(".", "\n", phrase).replace("yellow\n", "yellow paint\n"),
            numbered(".", "\n", &list[..12].join(" ")),
        ] {
            assert_eq!(found(&text), None, "{text}");
        }
    }
}
