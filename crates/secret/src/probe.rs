//! Selects the lines that may identify a secret of which a short text contains a copy.
//!
//! To mask an excerpt of a long log, the secrets of the whole log must be known, but only those that the
//! excerpt contains. A line that identifies such a secret contains it, too. So only lines that share a
//! password-like word with the excerpt need to be examined, and a byte search finds them much faster than the
//! rules would examine all lines.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use memchr::{memchr, memrchr};

use crate::alphabet::Alphabet;
use crate::known_secrets::SHORTEST;
use crate::rules::Rules;
use crate::{deobfuscate, heuristics};

/// Selects the lines that may identify a secret of which some texts contain a copy.
///
/// Words of letters alone that look like words of a language are not passwords. Copies in the encodings that
/// [`KnownSecrets`](crate::KnownSecrets) finds are decoded.
pub struct SecretProbe {
    /// `None` if all lines are selected.
    automaton: Option<AhoCorasick>,
    /// The texts and what they decode to.
    texts: Vec<Vec<u8>>,
    /// Where the pattern is in the texts, by number of the pattern.
    places: Vec<Vec<NeedlePlace>>,
}

/// The place of a part of a text.
#[derive(Clone, Copy)]
struct NeedlePlace {
    text: usize,
    /// The offset of a byte that is the first or the last of the part.
    mark: usize,
    is_last: bool,
}

/// A line that may identify a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeMatch {
    /// The range of the line, without its line break.
    pub line: Range<usize>,
    /// The word that the line shares with a text; `None` if all lines are selected.
    pub word: Option<ProbeWord>,
}

/// A word in its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeWord {
    /// A hash of the word.
    word: u64,
    /// A hash of the word and the text before it. The same word in the same context is identified as a secret
    /// in all lines or in none.
    context: u64,
}

/// Counts words, so that a frequent one is not examined in every line.
#[derive(Debug, Default)]
pub struct ProbeCounts {
    words: HashMap<u64, usize>,
    contexts: HashMap<u64, usize>,
}

/// The number of lines that are examined for a word, and for a word in the same context.
const MAX_PER_WORD: usize = 32;
const MAX_PER_CONTEXT: usize = 3;

impl ProbeCounts {
    /// Counts a word, and returns whether its line is to be examined.
    pub fn admit(&mut self, word: ProbeWord) -> bool {
        let n_lines = self.words.entry(word.word).or_default();
        let n_same = self.contexts.entry(word.context).or_default();
        *n_same += 1;
        let is_admitted = *n_same <= MAX_PER_CONTEXT && *n_lines < MAX_PER_WORD;
        *n_lines += usize::from(is_admitted);
        is_admitted
    }
}

/// The number of bytes before and after a mark that are searched: a secret of [`SHORTEST`] bytes that
/// contains the mark contains one of the two parts.
const HALF: usize = SHORTEST / 2;

/// The number of bytes before a word that are its context.
const CONTEXT: usize = 24;

/// The distance to the next letter up to which a digit may be part of a password.
const LETTER_REACH: usize = 12;

impl Rules {
    /// Returns a probe for secrets that some texts may contain without the context that identifies them;
    /// `None` if they contain nothing like a password.
    pub fn probe(&self, texts: &[&str]) -> Option<SecretProbe> {
        if self.has_custom_rules() {
            // A custom rule may identify anything.
            let is_empty = texts.iter().all(|text| text.is_empty());
            return (!is_empty).then(|| SecretProbe {
                automaton: None,
                texts: Vec::new(),
                places: Vec::new(),
            });
        }
        let mut all: Vec<Vec<u8>> = Vec::new();
        for text in texts {
            all.push(text.as_bytes().to_vec());
            deobfuscate::views(text, |view| all.push(view.text.as_bytes().to_vec()));
            deobfuscate::joined_lines(text, |view| all.push(view.text.as_bytes().to_vec()));
            deobfuscate::hex_dumps(text, |dump| all.push(dump.bytes.clone()));
            let mut decoded = decode(text);
            // A copy may be encoded twice.
            let again = decoded.iter().filter_map(|bytes| std::str::from_utf8(bytes).ok()).flat_map(decode);
            let again: Vec<Vec<u8>> = again.collect();
            decoded.extend(again);
            all.append(&mut decoded);
        }
        let mut places: HashMap<Vec<u8>, Vec<NeedlePlace>> = HashMap::default();
        for (text, bytes) in all.iter().enumerate() {
            each_needle(bytes, |range, is_last| {
                let mark = if is_last { range.end - 1 } else { range.start };
                places.entry(as_json(&bytes[range])).or_default().push(NeedlePlace { text, mark, is_last });
            });
        }
        if places.is_empty() {
            return None;
        }
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_by(|(a, _), (b, _)| a.cmp(b));
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(places.iter().map(|(needle, _)| needle))
            .ok();
        Some(SecretProbe {
            automaton,
            texts: all,
            places: places.into_iter().map(|(_, places)| places).collect(),
        })
    }
}

impl SecretProbe {
    /// Calls `visit` for each word of the lines of a log that one of the texts contains, too, if `counts`
    /// admits it.
    pub fn select(&self, lines: &[u8], counts: &mut ProbeCounts, mut visit: impl FnMut(ProbeMatch)) {
        let line_at = |word: &Range<usize>| {
            let start = memrchr(b'\n', &lines[..word.start]).map_or(0, |at| at + 1);
            start..memchr(b'\n', &lines[word.end..]).map_or(lines.len(), |at| word.end + at)
        };
        let Some(automaton) = &self.automaton else {
            let mut at = 0;
            while at < lines.len() {
                let line = line_at(&(at..at));
                at = line.end + 1;
                visit(ProbeMatch { line, word: None });
            }
            return;
        };
        let mut at = 0;
        while let Some(hit) = automaton.find(Input::new(lines).span(at..lines.len())) {
            at = hit.start() + 1;
            let places = self.places[hit.pattern().as_usize()].iter();
            let words = places.map(|place| {
                let mark = if place.is_last { hit.end() - 1 } else { hit.start() };
                common_word(&self.texts[place.text], place.mark, lines, mark)
            });
            let Some(word) = words.max_by_key(|word| word.len()) else { continue };
            if may_be_secret(&lines[word.clone()]) {
                let before = &lines[word.start.saturating_sub(CONTEXT)..word.start];
                let before = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
                let context = word.start - before.len()..word.end;
                let found = ProbeWord { word: hash(&lines[word.clone()]), context: hash(&lines[context]) };
                if counts.admit(found) {
                    visit(ProbeMatch { line: line_at(&word), word: Some(found) });
                }
                at = word.end.max(at);
            }
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    KEY.hash_one(bytes)
}

/// Visits the parts of a text that are searched for, and whether their mark is their last byte.
fn each_needle(text: &[u8], mut visit: impl FnMut(Range<usize>, bool)) {
    for range in runs(text, |byte| byte > b' ' && byte != 0x7F) {
        let range = without_marks(text, range);
        let run = &text[range.clone()];
        let is_plain = is_date(run) || is_hex_number(run) || !run.iter().any(u8::is_ascii_alphabetic);
        if run.len() < SHORTEST || is_plain {
            continue;
        }
        for digits in runs(run, |byte| byte.is_ascii_digit()) {
            let near = digits.start.saturating_sub(LETTER_REACH)..run.len().min(digits.end + LETTER_REACH);
            // The number of a line after the name of a file.
            let is_line_no = digits.end == run.len() && run[..digits.start].ends_with(b":");
            if is_line_no || !run[near].iter().any(u8::is_ascii_alphabetic) {
                continue;
            }
            let mark = range.start + digits.start;
            if digits.start >= HALF {
                visit(mark - HALF..mark + 1, true);
            }
            if digits.start + HALF < run.len() {
                visit(mark..mark + HALF + 1, false);
            }
        }
        for part in runs(run, |byte| !b"=,;:()<>{}[]|\"'`".contains(&byte)) {
            if is_odd_word(&run[part.clone()]) {
                let (start, end) = (range.start + part.start, range.start + part.end);
                visit(start..start + SHORTEST, false);
                visit(end - SHORTEST..end, true);
            }
        }
    }
}

/// Returns the range of a run without the colour of a terminal before it, and without the ellipsis after it
/// that marks a shortened text.
fn without_marks(text: &[u8], run: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = run;
    if start > 0 && text[start - 1] == 0x1B && text[start] == b'[' {
        let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
        let length = 1 + text[start + 1..end].iter().take_while(is_number).count();
        if text[start..end].get(length) == Some(&b'm') {
            start += length + 1;
        }
    }
    while text[start..end].ends_with("…".as_bytes()) {
        end -= "…".len();
    }
    start..end
}

/// Returns whether a part without digits may be a password: it contains signs, or letters that form no words.
fn is_odd_word(part: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(part) else { return false };
    if part.len() < SHORTEST || part.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let is_name =
        part.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b'.' | b'/'));
    let has_letters_only = part.iter().all(u8::is_ascii_alphabetic);
    match is_name {
        true => has_letters_only && !heuristics::is_wordy(part),
        false => heuristics::is_password(text),
    }
}

/// Returns whether a run begins with a date, as times do.
fn is_date(run: &[u8]) -> bool {
    let is_digit = |at: usize| run.get(at).is_some_and(u8::is_ascii_digit);
    (0..4).chain(5..7).chain(8..10).all(is_digit)
        && run[4] == b'-'
        && run[7] == b'-'
        && run[10..].iter().all(|byte| byte.is_ascii_digit() || b"TZ:.+-,".contains(byte))
}

/// Returns whether a run is a hexadecimal number of at most 64 bits, such as `0x5eed` or `(0xFF,`.
fn is_hex_number(run: &[u8]) -> bool {
    const MAX_DIGITS: usize = 16;
    let start = run.iter().take_while(|byte| byte.is_ascii_punctuation()).count();
    let Some(rest) = run[start..].strip_prefix(b"0x") else { return false };
    let n_digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (1..=MAX_DIGITS).contains(&n_digits) && rest[n_digits..].iter().all(u8::is_ascii_punctuation)
}

/// Returns whether a word of a line may be a secret.
fn may_be_secret(word: &[u8]) -> bool {
    word.len() >= SHORTEST
        && word.iter().any(u8::is_ascii_alphabetic)
        && (word.iter().any(u8::is_ascii_digit) || !heuristics::is_wordy(word))
}

/// Returns the ranges of consecutive bytes that satisfy a condition.
fn runs(bytes: &[u8], is_part: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
        if length > 0 {
            found.push(at..at + length);
        }
        at += length + 1;
    }
    found
}

/// Decodes the base64 and hex of a text.
fn decode(text: &str) -> Vec<Vec<u8>> {
    let mut all = short_encoded(text.as_bytes());
    deobfuscate::encoded(text, |_| {}, |_, decoded| all.push(decoded.as_bytes().to_vec()));
    all
}

/// Decodes words of base64 that are too short for [`deobfuscate::encoded`].
fn short_encoded(text: &[u8]) -> Vec<Vec<u8>> {
    let is_digit = |byte: u8| Alphabet::Base64.has(byte) || Alphabet::Url.has(byte);
    let words = runs(text, is_digit).into_iter().filter(|word| (SHORTEST..=64).contains(&word.len()));
    let decoded = words.flat_map(|word| {
        let word = text[word].trim_ascii();
        let word = word.strip_suffix(b"==").or(word.strip_suffix(b"=")).unwrap_or(word);
        [STANDARD_NO_PAD.decode(word), URL_SAFE_NO_PAD.decode(word)].into_iter().flatten()
    });
    decoded.filter(|bytes| bytes.iter().all(u8::is_ascii_graphic)).collect()
}

/// Returns bytes as in a JSON string.
fn as_json(bytes: &[u8]) -> Vec<u8> {
    let mut json = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            json.push(b'\\');
        }
        json.push(*byte);
    }
    json
}

/// Returns the range of a line around `at` that is equal to the text around `mark`, up to the next blank.
/// Quotes and backslashes are escaped in the line.
fn common_word(text: &[u8], mark: usize, line: &[u8], at: usize) -> Range<usize> {
    let is_part = |byte: u8| byte > b' ';
    let is_escaped = |byte: u8| matches!(byte, b'"' | b'\\');
    let (mut start, mut from) = (at + 1, mark + 1);
    while from > 0 && start > 0 && text[from - 1] == line[start - 1] && is_part(text[from - 1]) {
        (start, from) = (start - 1, from - 1);
        if is_escaped(line[start]) {
            match start > 0 && line[start - 1] == b'\\' {
                true => start -= 1,
                false => {
                    start += 1;
                    break;
                }
            }
        }
    }
    let (mut end, mut to) = (at, mark);
    while to < text.len() && is_part(text[to]) {
        let escape = usize::from(is_escaped(text[to]));
        if escape == 1 && line.get(end) != Some(&b'\\') || line.get(end + escape) != Some(&text[to]) {
            break;
        }
        (end, to) = (end + escape + 1, to + 1);
    }
    start.min(at)..end.max(at + 1)
}

#[cfg(test)]
mod tests {
    use super::{ProbeCounts, ProbeMatch, Rules};

    /// Returns the lines that a probe for the text selects.
    fn selected<'l>(text: &str, lines: &'l str) -> Vec<&'l str> {
        let mut all = Vec::new();
        if let Some(probe) = Rules::new().probe(&[text]) {
            let mut counts = ProbeCounts::default();
            probe.select(lines.as_bytes(), &mut counts, |ProbeMatch { line, .. }| all.push(&lines[line]));
        }
        all.dedup();
        all
    }

    #[test]
    fn lines_with_the_same_password_like_word_are_selected() {
        for (text, line) in [
            ("log in with Hunter22secret now", r#"{"command":"mysql -pHunter22secret -u root"}"#),
            ("it is Heddle#42/weft.", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
            ("it is a\"b\\c1234, I think", r#"{"text":"password: a\"b\\c1234"}"#),
            ("(Tr!cky$Pwrd)", r#"{"text":"curl -u ada:Tr!cky$Pwrd x"}"#),
            ("qzxvkjwp it is", r#"{"text":"machine a login b password qzxvkjwp"}"#),
            ("SGVkZGxlIzQyL3dlZnQ=", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
            ("U0dWa1pHeGxJelF5TDNkbFpuUT0=", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
            ("48 65 64 64 6c 65 23 34 32 2f 77 65 66 74", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
            ("Heddle%2342%2Fweft", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
            ("Hed\u{200b}dle#42/weft", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
            ("\u{1b}[0;32mHeddle#42/weft\u{1b}[0m", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
            ("as Heddle#42/weft…", r#"{"text":"DB_PASSWORD=Heddle#42/weft\n"}"#),
        ] {
            let lines = format!("{{\"text\":\"another line\"}}\n{line}\n{{}}\n");
            assert_eq!(selected(text, &lines), [line], "{text}");
        }
    }

    #[test]
    fn ordinary_text_selects_nothing() {
        for text in [
            "an ordinary sentence about passwords, sessions and src/main.rs",
            "at 2026-03-01T12:30:05.123Z, 1234567890 times, on line 42",
            "see crates/app/src/search.rs:227",
            "shortened at crates/app/src/search.rs:227…",
            "\u{1b}[0mtreadles and \u{1b}[1;31mshuttles\u{1b}[0m",
            "at 0x5eed, (0xDEADBEEF) and 0x7fff5fbff8a0;",
            "let search_scope = app.search_scope_in(query, &scope)?;",
        ] {
            let line = format!("{{\"text\":\"{text}\"}}\n");
            assert_eq!(selected(text, &line), Vec::<&str>::new(), "{text}");
        }
        // A word that differs is another word.
        assert_eq!(selected("Hunter22secret", "Hunter2\nxter22sx\nunter23secret\n"), Vec::<&str>::new());
    }

    #[test]
    fn a_word_in_the_same_context_is_examined_a_few_times() {
        let lines = "\"user\":\"ada\",\"cwd\":\"/home/ada/loom2\"\n".repeat(9) + "cat /home/ada/loom2\n";
        let other: String = (0..99).map(|n| format!("{n} /home/ada/loom2\n")).collect();
        let probe = Rules::new().probe(&["in /home/ada/loom2"]).unwrap();
        let n_selected = |lines: &str| {
            let mut n_lines = 0;
            probe.select(lines.as_bytes(), &mut ProbeCounts::default(), |_| n_lines += 1);
            n_lines
        };
        assert_eq!(n_selected(&lines), 4);
        assert_eq!(n_selected(&other), 32);
    }
}
