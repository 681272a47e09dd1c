//! Shortens texts to their main sentences, deterministically.
//!
//! The score of a sentence depends on words that are rare elsewhere, on its position (the last text of a
//! turn is the answer), and on its form: code, causes and failures score high, announcements of the next
//! step score low.

use foldhash::{HashMap, HashSet};

/// A part of a text that is kept or dropped as a whole.
#[derive(Clone, Debug)]
struct TextUnit<'t> {
    text: &'t str,
    form: UnitForm,
    /// The indices of its text and of its paragraph.
    place: (usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitForm {
    Sentence,
    Item,
    Heading,
    Row,
    Code,
}

/// The document frequency of words.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordFrequency {
    texts: usize,
    seen_in: HashMap<u64, u32>,
}

impl WordFrequency {
    /// Adds one text.
    pub(crate) fn add(&mut self, text: &str) {
        self.texts += 1;
        for word in words(text).collect::<HashSet<u64>>() {
            *self.seen_in.entry(word).or_default() += 1;
        }
    }

    fn of(&self, word: u64) -> f64 {
        let seen = self.seen_in.get(&word).copied().unwrap_or(1);
        (1.0 + self.texts as f64 / f64::from(seen)).ln()
    }
}

/// A text up to this many bytes is kept unchanged.
const SHORT_TEXT: usize = 240;
/// Parts that score less than this share of the best score are dropped.
const MIN_SCORE_SHARE: f64 = 0.2;
/// Code blocks longer than this are dropped.
const LONG_CODE: usize = 400;

/// Extracts the main sentences of consecutive texts, in about `share` of their length and at most `most`
/// bytes.
pub(crate) fn extract(texts: &[&str], share: f64, most: usize, rarity: &WordFrequency) -> String {
    let texts: Vec<&str> = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    let length: usize = texts.iter().map(|text| text.len()).sum();
    if texts.len() == 1 && length <= SHORT_TEXT.min(most) {
        return texts[0].to_owned();
    }
    let room = ((length as f64 * share) as usize).clamp(SHORT_TEXT.min(most), most);
    let units: Vec<TextUnit<'_>> = texts.iter().enumerate().flat_map(|(at, text)| units(at, text)).collect();
    let last = texts.len().saturating_sub(1);
    let mut ranked: Vec<(f64, usize)> =
        units.iter().enumerate().map(|(at, unit)| (score(unit, at, &units, last, rarity), at)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let best = ranked.first().map_or(0.0, |(score, _)| *score);
    let mut kept = vec![false; units.len()];
    let mut used = 0;
    for (score, at) in ranked {
        let size = units[at].text.len();
        let fits = used + size <= room || used == 0;
        // Parts with a low score are dropped even if there is room.
        if score > best * MIN_SCORE_SHARE && fits {
            kept[at] = true;
            used += size;
        }
    }
    keep_headings(&units, &mut kept);
    join_units(&units, &kept, most)
}

/// Keeps a heading if anything below it is kept.
fn keep_headings(units: &[TextUnit<'_>], kept: &mut [bool]) {
    for at in 0..units.len() {
        if units[at].form == UnitForm::Heading {
            let below = units[at + 1..].iter().take_while(|unit| unit.form != UnitForm::Heading).count();
            kept[at] = kept[at + 1..=at + below].iter().any(|kept| *kept);
        }
    }
}

fn join_units(units: &[TextUnit<'_>], kept: &[bool], most: usize) -> String {
    let mut out = String::new();
    let mut before: Option<usize> = None;
    for (at, unit) in units.iter().enumerate().filter(|(at, _)| kept[*at]) {
        if let Some(before) = before {
            let last = &units[before];
            let goes_on = last.place == unit.place
                && last.form == UnitForm::Sentence
                && unit.form == UnitForm::Sentence;
            match goes_on {
                true if before + 1 == at => out.push(' '),
                true => out.push_str(" … "),
                false => out.push('\n'),
            }
        }
        out.push_str(unit.text);
        before = Some(at);
    }
    cut(&out, most).into_owned()
}

/// Truncates a text to `most` bytes, with an ellipsis.
pub(crate) fn cut(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let end =
        (0..=most.saturating_sub('…'.len_utf8())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", text[..end].trim_end()).into()
}

/// Returns the score of a part; 0 for parts that are never kept on their own merit.
fn score(unit: &TextUnit<'_>, at: usize, units: &[TextUnit<'_>], last: usize, rarity: &WordFrequency) -> f64 {
    let mut score = match unit.form {
        UnitForm::Heading => return 0.0,
        UnitForm::Code if unit.text.len() > LONG_CODE => return 0.0,
        UnitForm::Code => 0.5,
        UnitForm::Row => 0.7,
        UnitForm::Item => 1.1,
        UnitForm::Sentence => 1.0,
    };
    let words: HashSet<u64> = words(unit.text).collect();
    if words.is_empty() {
        return 0.0;
    }
    let mut rare: Vec<f64> = words.iter().map(|&word| rarity.of(word)).collect();
    // Sort the values first, so that rounding is deterministic.
    rare.sort_by(f64::total_cmp);
    score *= rare.iter().sum::<f64>() / (words.len() as f64).powf(0.6);
    // The last text of a turn is the answer; the earlier ones lead up to it.
    score *= if unit.place.0 == last { 1.7 } else { 0.7 };
    let first_of_text = at == 0 || units[at - 1].place.0 != unit.place.0;
    if first_of_text && unit.place.0 == last {
        score *= 1.3;
    }
    let lower = unit.text.to_lowercase();
    if unit.text.contains('`') || unit.text.contains("**") || unit.text.contains("::") {
        score *= 1.15;
    }
    if unit.text.bytes().any(|byte| byte.is_ascii_digit()) {
        score *= 1.1;
    }
    if CUES.iter().any(|cue| lower.contains(cue)) {
        score *= 1.3;
    }
    if FILLERS.iter().any(|filler| lower.starts_with(filler)) {
        score *= 0.3;
    }
    if unit.text.ends_with(':') {
        score *= 0.4;
    }
    score
}

/// Words that indicate causes, decisions, failures and open tasks.
const CUES: &[&str] = &[
    "because",
    "root cause",
    "caused",
    "fixed",
    "bug",
    "fail",
    "error",
    "decid",
    "must",
    "should",
    "don't",
    "not ",
    "instead",
    "however",
    "but ",
    "next",
    "remain",
    "todo",
    "pass",
    "broke",
    "missing",
    "wrong",
    "important",
    "note:",
    "conclusion",
    "so that",
    "therefore",
];

/// Beginnings of sentences that only announce the next step.
const FILLERS: &[&str] = &[
    "let me",
    "now let",
    "now i",
    "i'll",
    "i will",
    "great",
    "perfect",
    "good",
    "ok",
    "okay",
    "excellent",
    "sure",
    "let's",
    "first, let",
    "next, i",
    "i need to",
    "i'm going",
    "looking at",
    "here's",
    "here is",
    "you're right",
    "absolutely",
    "done!",
];

/// Returns hashes of the words of a text: runs of letters and digits, in lower case. Scripts without spaces
/// are split into pairs of characters.
fn words(text: &str) -> impl Iterator<Item = u64> + '_ {
    let mut out = Vec::new();
    let mut word = WordHasher::default();
    let mut wide: Option<char> = None;
    for ch in text.chars() {
        if is_wide(ch) {
            out.extend(word.take());
            if let Some(before) = wide {
                let mut pair = WordHasher::default();
                pair.push(before);
                pair.push(ch);
                out.extend(pair.take());
            }
            wide = Some(ch);
            continue;
        }
        wide = None;
        if ch.is_alphanumeric() {
            ch.to_lowercase().for_each(|ch| word.push(ch));
        } else {
            out.extend(word.take());
        }
    }
    out.extend(word.take());
    out.into_iter()
}

/// Returns whether a character belongs to a script without spaces between words.
fn is_wide(ch: char) -> bool {
    matches!(ch, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{0e00}'..='\u{0e7f}')
}

/// Hashes a word incrementally.
#[derive(Default)]
struct WordHasher {
    hash: u64,
    length: usize,
}

impl WordHasher {
    fn push(&mut self, ch: char) {
        let hash = if self.length == 0 { 0xcbf2_9ce4_8422_2325 } else { self.hash };
        self.hash = (hash ^ u64::from(ch)).wrapping_mul(0x0000_0100_0000_01b3);
        self.length += 1;
    }

    /// Returns the hash and resets the state; `None` for a word of one character.
    fn take(&mut self) -> Option<u64> {
        let Self { hash, length } = std::mem::take(self);
        (length > 2 || (length == 2 && hash != 0)).then_some(hash)
    }
}

/// Splits a text into parts, by its Markdown structure.
fn units(text_idx: usize, text: &str) -> Vec<TextUnit<'_>> {
    let mut units = Vec::new();
    let mut paragraph: Option<(usize, usize)> = None;
    let mut number = 0;
    let mut fence: Option<(usize, &str)> = None;
    let mut at = 0;
    let mut push = |range: (usize, usize), form: UnitForm, number: &mut usize| {
        let piece = text[range.0..range.1].trim();
        if !piece.is_empty() {
            units.push((piece, form, *number));
            *number += 1;
        }
    };
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let trimmed = line.trim();
        if let Some((from, mark)) = fence {
            if trimmed.starts_with(mark) {
                push((from, end), UnitForm::Code, &mut number);
                fence = None;
            }
            continue;
        }
        let form = form_of(trimmed);
        let ends_paragraph = trimmed.is_empty() || form != UnitForm::Sentence;
        if ends_paragraph && let Some(range) = paragraph.take() {
            let form = form_of(text[range.0..range.1].trim());
            push(range, form, &mut number);
        }
        match form {
            _ if trimmed.is_empty() => {}
            UnitForm::Code => fence = Some((start, &trimmed[..3])),
            UnitForm::Heading | UnitForm::Row => push((start, end), form, &mut number),
            // The lines that follow an item belong to it.
            UnitForm::Item => paragraph = Some((start, end)),
            UnitForm::Sentence => paragraph = Some((paragraph.map_or(start, |(from, _)| from), end)),
        }
    }
    if let Some((from, _)) = fence {
        push((from, text.len()), UnitForm::Code, &mut number);
    }
    if let Some(range) = paragraph {
        let form = form_of(text[range.0..range.1].trim());
        push(range, form, &mut number);
    }
    let mut out = Vec::new();
    for (piece, form, number) in units {
        let place = (text_idx, number);
        if form == UnitForm::Sentence {
            out.extend(sentences(piece).map(|text| TextUnit { text, form, place }));
        } else {
            out.push(TextUnit { text: piece, form, place });
        }
    }
    out
}

fn form_of(line: &str) -> UnitForm {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = digits > 0 && [". ", ") "].iter().any(|mark| line[digits..].starts_with(mark));
    if line.starts_with("```") || line.starts_with("~~~") {
        UnitForm::Code
    } else if line.starts_with('#') && line.trim_start_matches('#').starts_with(' ') {
        UnitForm::Heading
    } else if line.starts_with('|') {
        UnitForm::Row
    } else if numbered || ["- ", "* ", "+ ", "• "].iter().any(|mark| line.starts_with(mark)) {
        UnitForm::Item
    } else {
        UnitForm::Sentence
    }
}

/// Words whose final period does not end a sentence.
const ABBREVIATIONS: [&str; 8] = ["e.g", "i.e", "etc", "vs", "cf", "approx", "z.B", "d.h"];

/// Splits a paragraph into sentences.
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = paragraph.char_indices().peekable();
    while let Some((at, ch)) = chars.next() {
        let end = at + ch.len_utf8();
        let next = chars.peek().map(|(_, ch)| *ch);
        let ends = match ch {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | '…' => {
                let after = paragraph[end..].trim_start_matches(['"', ')', '*', '`', '\'']);
                let gap = after.len() < paragraph[end..].len() || next.is_none_or(char::is_whitespace);
                let next = after.trim_start().chars().next();
                let before = &paragraph[start..at];
                let is_last_word = |word: &&str| {
                    let rest = before.strip_suffix(word);
                    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(char::is_whitespace))
                };
                let short = ABBREVIATIONS.iter().any(is_last_word);
                gap && after.starts_with(char::is_whitespace)
                    && !short
                    && next.is_none_or(|ch| !ch.is_lowercase())
            }
            _ => false,
        };
        if ends {
            out.push(paragraph[start..end].trim());
            start = end;
        }
    }
    out.push(paragraph[start..].trim());
    out.into_iter().filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::sentences;

    #[test]
    fn abbreviations_do_not_end_a_sentence() {
        let found: Vec<&str> = sentences("Is it, e.g. A? It is approx. B. Not xe.g. C").collect();
        assert_eq!(found, ["Is it, e.g. A?", "It is approx. B.", "Not xe.g.", "C"]);
        assert_eq!(sentences(&"a.".repeat(100_000)).count(), 1);
    }
}
