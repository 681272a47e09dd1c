//! Terms: words, phrases and patterns, and their occurrences in a text.

use std::cell::OnceCell;
use std::ops::Range;

use memchr::memmem;
use regex::Regex;

use crate::fold::{Case, Folded, fold};

/// A term to find in a text.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// Matches anywhere, also within words.
    Word(Literal),
    /// Matches consecutive whole words.
    Phrase(Vec<Literal>),
    /// Matches the text without folding.
    Pattern {
        regex: Regex,
        case: Case,
        /// A text that every match contains, and whether its case is significant.
        required: Option<(String, Case)>,
    },
}

/// A folded text to find.
#[derive(Clone, Debug)]
pub(crate) struct Literal {
    pub(crate) folded: String,
    pub(crate) case: Case,
    finder: Box<memmem::Finder<'static>>,
}

impl Literal {
    fn new(text: &str, case: Case) -> Self {
        let folded = fold(text, case);
        let finder = Box::new(memmem::Finder::new(&folded).into_owned());
        Self { folded, case, finder }
    }
}

/// Case is significant if the text contains an upper-case letter.
fn smart_case(text: &str) -> Case {
    if text.chars().any(char::is_uppercase) { Case::Sensitive } else { Case::Insensitive }
}

impl Term {
    /// Creates a word; `None` if it folds to nothing.
    pub(crate) fn word(text: &str) -> Option<Self> {
        let literal = Literal::new(text, smart_case(text));
        (!literal.folded.is_empty()).then_some(Self::Word(literal))
    }

    /// Creates a phrase; `None` if it is empty.
    pub(crate) fn phrase(text: &str) -> Option<Self> {
        let case = smart_case(text);
        let words: Vec<_> = text.split_whitespace().map(|word| Literal::new(word, case)).collect();
        let empty = words.is_empty() || words.iter().any(|word| word.folded.is_empty());
        (!empty).then_some(Self::Phrase(words))
    }

    /// Creates a pattern, in which `^` and `$` match at every line.
    pub(crate) fn pattern(text: &str, ignore_case: bool) -> Result<Self, regex::Error> {
        let case = if ignore_case { Case::Insensitive } else { pattern_case(text) };
        let regex = regex::RegexBuilder::new(text)
            .case_insensitive(case == Case::Insensitive)
            .multi_line(true)
            .size_limit(1 << 24)
            .build()?;
        let needs = required_text(text, case).map(|text| (text, case));
        Ok(Self::Pattern { regex, case, required: needs })
    }

    /// Returns a key that is equal for terms that match the same.
    pub(crate) fn key(&self) -> (&'static str, String, Case) {
        match self {
            Self::Word(word) => ("word", word.folded.clone(), word.case),
            Self::Phrase(words) => {
                let text: Vec<&str> = words.iter().map(|word| &*word.folded).collect();
                ("phrase", text.join(" "), words[0].case)
            }
            Self::Pattern { regex, case, .. } => ("pattern", regex.as_str().to_owned(), *case),
        }
    }

    /// Returns whether the term occurs.
    pub(crate) fn is_in(&self, folded: &FoldCache<'_>) -> bool {
        let mut found = false;
        self.find(folded, &mut |_| {
            found = true;
            false
        });
        found
    }

    /// Calls `sink` with each occurrence, until it returns `false`.
    pub(crate) fn find(&self, folded: &FoldCache<'_>, sink: &mut dyn FnMut(Range<usize>) -> bool) {
        match self {
            Self::Word(word) => {
                let folded = folded.folded(word.case);
                for at in word.finder.find_iter(folded.text.as_bytes()) {
                    if !sink(folded.original_range(at..at + word.folded.len())) {
                        return;
                    }
                }
            }
            Self::Phrase(words) => {
                let folded = folded.folded(words[0].case);
                let text = &*folded.text;
                let mut from = 0;
                while let Some(at) = words[0].finder.find(&text.as_bytes()[from..]).map(|at| from + at) {
                    let end = phrase_end(text, at, words);
                    if end.is_some_and(|end| !sink(folded.original_range(at..end))) {
                        return;
                    }
                    from = end.unwrap_or(at + text[at..].chars().next().map_or(1, char::len_utf8));
                }
            }
            Self::Pattern { regex, .. } => {
                for found in regex.find_iter(folded.text) {
                    if !sink(found.range()) {
                        return;
                    }
                }
            }
        }
    }

    /// Returns folded texts that every matching text contains, and whether their case is significant.
    pub(crate) fn required_texts(&self) -> Vec<(&str, Case)> {
        match self {
            Self::Word(word) => vec![(&word.folded, word.case)],
            Self::Phrase(words) => words.iter().map(|word| (&*word.folded, word.case)).collect(),
            Self::Pattern { required: needs, .. } => {
                needs.iter().map(|(text, case)| (&**text, *case)).collect()
            }
        }
    }
}

/// Returns the end of the phrase that begins at `at`, if it matches.
fn phrase_end(text: &str, at: usize, words: &[Literal]) -> Option<usize> {
    if !is_boundary(text, at) {
        return None;
    }
    let mut end = at;
    for (i, word) in words.iter().enumerate() {
        if i > 0 {
            let rest = text[end..].trim_start();
            let next = text.len() - rest.len();
            if next == end {
                return None;
            }
            end = next;
        }
        end = text[end..].starts_with(&word.folded).then_some(end + word.folded.len())?;
    }
    is_boundary(text, end).then_some(end)
}

/// Returns whether a word may begin or end here.
fn is_boundary(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at..].chars().next();
    !(before.is_some_and(in_word) && after.is_some_and(in_word))
}

/// Returns whether the character joins its neighbours into one word. An underscore separates the words of an
/// identifier, and scripts without spaces have no such words.
fn in_word(ch: char) -> bool {
    ch.is_alphanumeric()
        && !matches!(ch,
            '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
            | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}'
            | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

/// Case is significant if the pattern contains an upper-case letter, other than in a class such as `\W`.
fn pattern_case(pattern: &str) -> Case {
    let mut escaped = false;
    let mut capital = false;
    for ch in pattern.chars() {
        capital |= !escaped && ch.is_uppercase();
        escaped = !escaped && ch == '\\';
    }
    if capital { Case::Sensitive } else { Case::Insensitive }
}

/// Returns the longest text that every match of the pattern contains.
fn required_text(pattern: &str, case: Case) -> Option<String> {
    let hir = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern).ok()?;
    let mut best = None;
    collect_required(&hir, &mut |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        // If case is ignored, the kelvin sign also matches `k`.
        let kelvin = |ch: char| case == Case::Insensitive && ch.eq_ignore_ascii_case(&'k');
        for run in text.split(|ch: char| !ch.is_ascii() || kelvin(ch)) {
            if best.as_ref().is_none_or(|best: &String| best.len() < run.len()) {
                best = Some(run.to_owned());
            }
        }
    });
    let best = best.filter(|best| !best.is_empty())?;
    Some(if case == Case::Insensitive { best.to_ascii_lowercase() } else { best })
}

fn collect_required(hir: &regex_syntax::hir::Hir, sink: &mut dyn FnMut(&[u8])) {
    use regex_syntax::hir::HirKind;
    match hir.kind() {
        HirKind::Literal(literal) => sink(&literal.0),
        HirKind::Concat(parts) => parts.iter().for_each(|part| collect_required(part, sink)),
        HirKind::Capture(capture) => collect_required(&capture.sub, sink),
        HirKind::Repetition(repetition) if repetition.min > 0 => collect_required(&repetition.sub, sink),
        _ => {}
    }
}

/// A text to find terms in. It is folded at most once per case mode.
pub(crate) struct FoldCache<'t> {
    pub(crate) text: &'t str,
    with_case: OnceCell<Folded<'t>>,
    without_case: OnceCell<Folded<'t>>,
}

impl<'t> FoldCache<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, with_case: OnceCell::new(), without_case: OnceCell::new() }
    }

    fn folded(&self, case: Case) -> &Folded<'t> {
        let cell = match case {
            Case::Sensitive => &self.with_case,
            Case::Insensitive => &self.without_case,
        };
        cell.get_or_init(|| Folded::new(self.text, case))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places<'t>(term: &Term, text: &'t str) -> Vec<&'t str> {
        let mut found = Vec::new();
        term.find(&FoldCache::new(text), &mut |range| {
            found.push(&text[range]);
            true
        });
        found
    }

    #[test]
    fn words_match_anywhere_and_phrases_at_word_boundaries() {
        let word = |text| Term::word(text).unwrap();
        let phrase = |text| Term::phrase(text).unwrap();
        assert_eq!(places(&word("test"), "Tests retest TEST"), ["Test", "test", "TEST"]);
        assert_eq!(places(&word("Test"), "Tests retest TEST"), ["Test"]);
        assert_eq!(places(&word("误修"), "错误修复"), ["误修"]);
        assert_eq!(places(&phrase("test"), "Tests retest TEST my_test.rs"), ["TEST", "test"]);
        assert_eq!(places(&phrase("a b"), "a  b, a\nb, ab, a bc, xa b, a b"), ["a  b", "a\nb", "a b"]);
        assert_eq!(places(&phrase("错误"), "的错误修复"), ["错误"]);
        assert_eq!(places(&phrase("cafe au"), "Café  AU lait"), ["Café  AU"]);
        assert!(Term::phrase(" ").is_none() && Term::word("\u{301}").is_none());
    }

    #[test]
    fn required_texts_of_patterns() {
        let needs = |pattern: &str| {
            Term::pattern(pattern, false).unwrap().required_texts().first().map(|n| n.0.to_owned())
        };
        assert_eq!(needs("fn (main|test)_loop"), Some("_loop".into()));
        assert_eq!(needs("(abc)+x?"), Some("abc".into()));
        assert_eq!(needs("a|b"), None);
        assert_eq!(needs("Makefile"), Some("Makefile".into()));
        assert_eq!(needs("makefile"), Some("efile".into()), "the kelvin sign is a k");
        assert_eq!(needs(r"\w+"), None);
        assert_eq!(needs("(?i)abc"), None);
        let pattern = Term::pattern(r"^err\W", false).unwrap();
        assert_eq!(places(&pattern, "ok\nERR: x\nerror"), ["ERR:"]);
    }
}
