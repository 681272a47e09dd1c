//! Texts for an index elsewhere, such as in a database, that selects lines which may match.
//!
//! An index never decides: it must only miss no line that a [`Query`] matches. So a line is indexed by its
//! folded text without case, and a query by parts of its terms that every match contains in that form.

use threadline_entry::Entry;

use crate::fold::{Case, fold};
use crate::piece::text_pieces;
use crate::query::Query;
use crate::term::Term;

/// The replacement of a character that databases do not store.
const NO_NUL: char = '\u{fffd}';

/// Returns the searchable text of a line, folded, without case and without NUL; `None` if it has none.
pub fn index_text(entry: &Entry) -> Option<String> {
    let mut out: Option<String> = None;
    text_pieces(entry, &mut |piece| {
        let text = fold(&piece.text, Case::Insensitive);
        match &mut out {
            None => out = Some(text),
            Some(out) => {
                out.push('\n');
                out.push_str(&text);
            }
        }
    });
    match out {
        Some(text) if text.contains('\0') => Some(text.replace('\0', &String::from(NO_NUL))),
        out => out,
    }
}

impl Query {
    /// Returns texts of at least three characters that [`index_text`] of every matching line contains. It may
    /// be empty: then every line may match.
    pub fn index_texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.terms.iter().flat_map(parts).collect();
        texts.retain(|text| text.chars().nth(2).is_some());
        texts.sort();
        texts.dedup();
        texts
    }

    /// Returns whether fields select the sessions to search, so that the sessions are not only those that
    /// contain the terms.
    pub fn selects_sessions(&self) -> bool {
        use crate::query::FieldCondition::{Project, Session};
        self.filters.iter().any(|filter| matches!(filter.field, Project(_) | Session(_)))
    }
}

/// Returns the parts of a term that the folded text without case contains, if the term occurs.
fn parts(term: &Term) -> Vec<String> {
    let is_pattern = matches!(term, Term::Pattern { .. });
    let mut parts = Vec::new();
    for (text, case) in term.required_texts() {
        let whole = !is_pattern && case == Case::Insensitive;
        // The long s matches `s` if a pattern ignores case.
        let splits = |ch: char| match whole {
            true => ch == '\0',
            false => !ch.is_ascii() || ch == '\0' || (is_pattern && ch.eq_ignore_ascii_case(&'s')),
        };
        for run in text.split(splits) {
            // A pattern matches text that is not folded. A mark after the run may change its last letter.
            let end = if is_pattern { run.len().saturating_sub(1) } else { run.len() };
            parts.push(if whole { run.to_owned() } else { run[..end].to_ascii_lowercase() });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use threadline_entry::LineReader;

    use super::*;
    use crate::Searcher;

    fn query(text: &str) -> Query {
        let now = jiff::Zoned::new(jiff::Timestamp::UNIX_EPOCH, jiff::tz::TimeZone::UTC);
        Query::parse(text, &now).unwrap()
    }

    #[test]
    fn texts_of_queries() {
        for (text, expected) in [
            ("slow loom", &["loom", "slow"][..]),
            ("Slow Café", &["cafe", "slow"]),
            ("café", &["cafe"]),
            ("ab", &[]),
            ("\"a slow loom\"", &["loom", "slow"]),
            ("/fn main/", &["fn mai"]),
            ("/Test=x/", &[]),
            ("/a|bcd/", &[]),
            ("错误修复", &["错误修复"]),
            ("tool:Bash -loom since:7d", &[]),
            ("error:timeout", &["timeout"]),
        ] {
            assert_eq!(query(text).index_texts(), expected, "{text}");
        }
    }

    /// Every line that a query matches contains its texts.
    fn check(lines: &[u8], words: &[&str]) {
        for word in words {
            let query = query(word);
            let texts = query.index_texts();
            let mut reader = LineReader::new(lines);
            while let Some(line) = reader.next().unwrap() {
                let mut is_found = false;
                let mut searcher = Searcher::new(&query);
                let found = searcher.search(
                    || Ok(line.bytes),
                    |_| {
                        is_found = true;
                        ControlFlow::Break(())
                    },
                );
                assert!(found.is_ok());
                let indexed = index_text(&Entry::parse(line.bytes).0).unwrap_or_default();
                let is_candidate = texts.iter().all(|text| indexed.contains(text));
                let shown = String::from_utf8_lossy(line.bytes);
                assert!(!is_found || is_candidate, "{word}: {texts:?} not in {indexed:?}, from {shown}");
            }
        }
    }

    #[test]
    fn no_match_is_missed() {
        let texts = [
            "Why is the LOOM slow?",
            "Cafe\\u0301 au lait, caf\\u00e9, CAFÉ",
            "te\\u017ft a\\u2260b abc=\\u0338 abc= \\u212aelvin kelvin",
            "nul\\u0000byte and \\u0000",
            "错误修复 か\\u3099 が",
            "İstanbul ΣΊΣΥΦΟΣ ß ẞ STRASSE",
            "Ａbc ﬁn",
            "a\\nb\\tc \\\"quoted\\\" back\\\\slash",
        ];
        let lines: Vec<String> = texts
            .iter()
            .map(|text| {
                format!("{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}")
            })
            .collect();
        let words = [
            "loom",
            "LOOM",
            "Loom",
            "cafe",
            "café",
            "Cafe",
            "CAFÉ",
            "\"au lait\"",
            "/test/",
            "/TEST/i",
            "/abc=/",
            "/abc=./",
            "abc=",
            "kelvin",
            "/kelvin/",
            "nul",
            "/nul.byte/",
            "错误",
            "が",
            "istanbul",
            "İstanbul",
            "σισυφοσ",
            "ΣΊΣΥΦΟΣ",
            "strasse",
            "ß",
            "/stra/",
            "/STRASSE/",
            "/STRASSE/i",
            "abc",
            "fin",
            "\"quoted\"",
            "slash",
            "/b.c/",
            "/(?i)slow/",
            "/loom|slow/",
            "/the (LOOM|x)/",
        ];
        check(lines.join("\n").as_bytes(), &words);
    }

    #[test]
    fn no_match_in_real_logs_is_missed() {
        let words =
            ["error", "the", "Test", "/fn [a-z]+/", "\"let me\"", "/Let me/", "/LET ME/i", "=>", "src/"];
        for log in threadline_testkit::shared_logs().iter().take(12) {
            let bytes = std::fs::read(log).unwrap();
            check(&bytes[..bytes.len().min(300_000)], &words);
        }
    }
}
