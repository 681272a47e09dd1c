//! Shortens texts to their main sentences, deterministically.
//!
//! The score of a sentence depends on words that are rare elsewhere, on its position (the last text of a
//! turn is the answer), and on its form: code, causes and failures score high, announcements of the next
//! step score low.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;
use foldhash::{HashMap, HashSet};

/// A part of a text that is kept or dropped as a whole.
#[derive(Clone, Debug)]
struct TextUnit<'t> {
    text: &'t str,
    form: UnitForm,
    text_idx: usize,
    paragraph_idx: usize,
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
        for word in words(text) {
            *self.seen_in.entry(word).or_default() += 1;
        }
    }

    fn rarity(&self, word: u64) -> f64 {
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

/// Extracts the main sentences of consecutive texts, in about `share` of their length and at most
/// `max_bytes` bytes.
pub(crate) fn extract(texts: &[&str], share: f64, max_bytes: usize, frequency: &WordFrequency) -> String {
    let texts: Vec<&str> = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    let length: usize = texts.iter().map(|text| text.len()).sum();
    if texts.len() == 1 && length <= SHORT_TEXT.min(max_bytes) {
        return texts[0].to_owned();
    }
    let budget = ((length as f64 * share) as usize).clamp(SHORT_TEXT.min(max_bytes), max_bytes);
    let units: Vec<TextUnit<'_>> = texts.iter().enumerate().flat_map(|(at, text)| units(at, text)).collect();
    let last = texts.len().saturating_sub(1);
    let mut ranked: Vec<(f64, usize)> =
        units.iter().enumerate().map(|(at, unit)| (score(unit, at, &units, last, frequency), at)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let best = ranked.first().map_or(0.0, |(score, _)| *score);
    let mut kept = vec![false; units.len()];
    let mut used = 0;
    for (score, at) in ranked {
        let size = units[at].text.len();
        let fits = used + size <= budget || used == 0;
        // Parts with a low score are dropped even if they fit.
        if score > best * MIN_SCORE_SHARE && fits {
            kept[at] = true;
            used += size;
        }
    }
    keep_headings(&units, &mut kept);
    join_units(&units, &kept, max_bytes)
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

fn join_units(units: &[TextUnit<'_>], kept: &[bool], max_bytes: usize) -> String {
    let mut out = String::new();
    let mut before: Option<usize> = None;
    for (at, unit) in units.iter().enumerate().filter(|(at, _)| kept[*at]) {
        if let Some(before) = before {
            let last = &units[before];
            let goes_on = (last.text_idx, last.paragraph_idx) == (unit.text_idx, unit.paragraph_idx)
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
    cut(&out, max_bytes).into_owned()
}

/// Truncates a text to `max_bytes` bytes, with an ellipsis.
pub(crate) fn cut(text: &str, max_bytes: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max_bytes {
        return text.into();
    }
    let end = (0..=max_bytes.saturating_sub('…'.len_utf8()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    format!("{}…", text[..end].trim_end()).into()
}

/// Returns the score of a part; 0 for parts that are never kept on their own merit. Scores are only compared
/// with those of the other parts.
fn score(
    unit: &TextUnit<'_>,
    at: usize,
    units: &[TextUnit<'_>],
    last: usize,
    frequency: &WordFrequency,
) -> f64 {
    let mut score = match unit.form {
        UnitForm::Heading => return 0.0,
        UnitForm::Code if unit.text.len() > LONG_CODE => return 0.0,
        UnitForm::Code => 0.5,
        UnitForm::Row => 0.7,
        UnitForm::Item => 1.1,
        UnitForm::Sentence => 1.0,
    };
    let words = words(unit.text);
    if words.is_empty() {
        return 0.0;
    }
    let mut rare: Vec<f64> = words.iter().map(|&word| frequency.rarity(word)).collect();
    // Sort the values first, so that rounding is deterministic.
    rare.sort_by(f64::total_cmp);
    score *= rare.iter().sum::<f64>() / (words.len() as f64).powf(0.6);
    // The last text of a turn is the answer; the earlier ones lead up to it.
    score *= if unit.text_idx == last { 1.7 } else { 0.7 };
    let first_of_text = at == 0 || units[at - 1].text_idx != unit.text_idx;
    if first_of_text && unit.text_idx == last {
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

/// Returns hashes of the words of a text: runs of at least two letters and digits, in lower case. Scripts
/// without spaces are split into pairs of characters.
fn words(text: &str) -> HashSet<u64> {
    let hasher = FixedState::default();
    let mut words = HashSet::default();
    let mut word = String::new();
    let mut previous_wide: Option<char> = None;
    for ch in text.chars().chain([' ']) {
        if ch.is_alphanumeric() && !is_wide(ch) {
            word.extend(ch.to_lowercase());
        } else {
            if word.chars().nth(1).is_some() {
                words.insert(hasher.hash_one(&word));
            }
            word.clear();
        }
        let wide = is_wide(ch).then_some(ch);
        words.extend(previous_wide.zip(wide).map(|pair| hasher.hash_one(pair)));
        previous_wide = wide;
    }
    words
}

/// Returns whether a character belongs to a script without spaces between words.
fn is_wide(ch: char) -> bool {
    matches!(ch, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{0e00}'..='\u{0e7f}')
}

/// Splits a text into units, by its Markdown structure.
fn units(text_idx: usize, text: &str) -> Vec<TextUnit<'_>> {
    let mut splitter = UnitSplitter { text, text_idx, paragraph_idx: 0, units: Vec::new() };
    let mut paragraph: Option<Range<usize>> = None;
    let mut fence: Option<(usize, &str)> = None;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let trimmed = line.trim();
        if let Some((from, mark)) = fence {
            if trimmed.starts_with(mark) {
                splitter.push(from..end, UnitForm::Code);
                fence = None;
            }
            continue;
        }
        let form = form_of(trimmed);
        if trimmed.is_empty() || form != UnitForm::Sentence {
            paragraph.take().into_iter().for_each(|range| splitter.push_paragraph(range));
        }
        match form {
            _ if trimmed.is_empty() => {}
            UnitForm::Code => fence = Some((start, &trimmed[..3])),
            UnitForm::Heading | UnitForm::Row => splitter.push(start..end, form),
            // The lines that follow an item belong to it.
            UnitForm::Item => paragraph = Some(start..end),
            UnitForm::Sentence => paragraph = Some(paragraph.map_or(start, |range| range.start)..end),
        }
    }
    if let Some((from, _)) = fence {
        splitter.push(from..text.len(), UnitForm::Code);
    }
    paragraph.into_iter().for_each(|range| splitter.push_paragraph(range));
    splitter.units
}

struct UnitSplitter<'t> {
    text: &'t str,
    text_idx: usize,
    paragraph_idx: usize,
    units: Vec<TextUnit<'t>>,
}

impl UnitSplitter<'_> {
    /// Adds a paragraph, whose first line decides its form.
    fn push_paragraph(&mut self, range: Range<usize>) {
        let form = form_of(self.text[range.clone()].trim());
        self.push(range, form);
    }

    fn push(&mut self, range: Range<usize>, form: UnitForm) {
        let paragraph = self.text[range].trim();
        let (text_idx, paragraph_idx) = (self.text_idx, self.paragraph_idx);
        let unit = |text| TextUnit { text, form, text_idx, paragraph_idx };
        match form {
            UnitForm::Sentence => self.units.extend(sentences(paragraph).map(unit)),
            _ if paragraph.is_empty() => return,
            _ => self.units.push(unit(paragraph)),
        }
        self.paragraph_idx += 1;
    }
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
    for (at, ch) in paragraph.char_indices() {
        let end = at + ch.len_utf8();
        let ends = match ch {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | '…' => {
                let after = paragraph[end..].trim_start_matches(['"', ')', '*', '`', '\'']);
                let next = after.trim_start().chars().next();
                let before = &paragraph[start..at];
                let is_last_word = |word: &&str| {
                    let rest = before.strip_suffix(word);
                    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(char::is_whitespace))
                };
                let is_abbreviation = ABBREVIATIONS.iter().any(is_last_word);
                after.starts_with(char::is_whitespace)
                    && !is_abbreviation
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
