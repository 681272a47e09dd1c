//! The lexer of queries.

use std::ops::Range;

use jiff::Zoned;
use threadline_entry::ToolPattern;

use super::{FieldCondition, QueryError};
use crate::moment;
use crate::piece::{PieceRole, TextKind};
use crate::term::Term;

/// The names of all fields.
pub(super) const FIELDS: &[&str] = &[
    "role", "kind", "tool", "path", "command", "error", "project", "session", "branch", "model", "since",
    "until",
];

/// Splits a query into parts.
pub(super) struct QueryLexer<'q> {
    text: &'q str,
    at: usize,
}

/// One part of a query.
pub(super) struct QueryPart<'q> {
    pub(super) negated: bool,
    pub(super) field: Option<&'static str>,
    value: PartValue<'q>,
    /// The source text of the part.
    pub(super) text: &'q str,
    pub(super) span: Range<usize>,
}

/// The syntax of a value.
enum PartValue<'q> {
    Word(&'q str),
    Phrase(String),
    Pattern(&'q str, bool),
}

impl<'q> QueryLexer<'q> {
    /// Creates a reader at the start of a text.
    pub(super) fn new(text: &'q str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn next_part(&mut self) -> Result<Option<QueryPart<'q>>, QueryError> {
        let text = self.text;
        self.at = text.len() - text[self.at..].trim_start().len();
        let start = self.at;
        if start == text.len() {
            return Ok(None);
        }
        // A single dash is a word.
        let dash =
            text[start..].strip_prefix('-').filter(|rest| rest.starts_with(|ch: char| !ch.is_whitespace()));
        self.at += usize::from(dash.is_some());
        let field = FIELDS.iter().copied().find(|name| {
            let rest = text[self.at..].strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with("::"))
        });
        self.at += field.map_or(0, |name| name.len() + 1);
        let value = self.value(start)?;
        let span = start..self.at;
        Ok(Some(QueryPart { negated: dash.is_some(), field, value, text: &text[span.clone()], span }))
    }

    fn value(&mut self, start: usize) -> Result<PartValue<'q>, QueryError> {
        let rest = &self.text[self.at..];
        if let Some(inner) = rest.strip_prefix('"') {
            let Some((phrase, length)) = quoted(inner) else {
                let span = start..self.text.len();
                return Err(QueryError::Unclosed { part: self.text[span.clone()].to_owned(), span });
            };
            self.at += 1 + length;
            return Ok(PartValue::Phrase(phrase));
        }
        if let Some((pattern, ignore_case, length)) = slashed(rest) {
            self.at += length;
            return Ok(PartValue::Pattern(pattern, ignore_case));
        }
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.at += length;
        Ok(PartValue::Word(&rest[..length]))
    }
}

/// Returns the phrase up to the closing quote, and its length including that quote. A quote closes the phrase
/// only before white space or the end, so that `"type":"user"` is one phrase; `\"` never does.
fn quoted(inner: &str) -> Option<(String, usize)> {
    let mut phrase = String::new();
    let mut chars = inner.char_indices().peekable();
    while let Some((at, ch)) = chars.next() {
        match (ch, chars.peek()) {
            ('\\', Some((_, '"'))) => {
                phrase.push('"');
                chars.next();
            }
            ('"', None) => return Some((phrase, at + 1)),
            ('"', Some((_, next))) if next.is_whitespace() => return Some((phrase, at + 1)),
            _ => phrase.push(ch),
        }
    }
    None
}

/// Returns the pattern of `/pattern/` or `/pattern/i`, whether case is ignored, and the total length. The
/// closing slash must be followed by white space or the end, so that a path is not a pattern.
fn slashed(text: &str) -> Option<(&str, bool, usize)> {
    let inner = text.strip_prefix('/')?;
    let mut escaped = false;
    for (at, ch) in inner.char_indices() {
        if ch == '/' && !escaped && at > 0 {
            let behind = &inner[at + 1..];
            let flag = behind.starts_with('i');
            let after = &behind[usize::from(flag)..];
            if after.is_empty() || after.starts_with(char::is_whitespace) {
                return Some((&inner[..at], flag, 1 + at + 1 + usize::from(flag)));
            }
            if behind.is_empty() || behind.starts_with(char::is_whitespace) {
                return Some((&inner[..at], false, 1 + at + 1));
            }
        }
        escaped = ch == '\\' && !escaped;
    }
    None
}

impl QueryPart<'_> {
    pub(super) fn term(&self) -> Result<Term, QueryError> {
        let term = match &self.value {
            PartValue::Word(word) => Term::word(word),
            PartValue::Phrase(phrase) => Term::phrase(phrase),
            PartValue::Pattern(pattern, ignore_case) => {
                Some(Term::pattern(pattern, *ignore_case).map_err(|error| QueryError::Pattern {
                    part: self.text.to_owned(),
                    problem: problem(&error),
                    span: self.span.clone(),
                })?)
            }
        };
        term.ok_or_else(|| QueryError::Nothing { part: self.text.to_owned(), span: self.span.clone() })
    }

    /// Returns the value as plain text.
    fn plain(&self) -> &str {
        match &self.value {
            PartValue::Word(word) => word,
            PartValue::Phrase(phrase) => phrase,
            PartValue::Pattern(pattern, _) => pattern,
        }
    }

    pub(super) fn field_of(&self, name: &str, now: &Zoned) -> Result<FieldCondition, QueryError> {
        let term = self.term()?;
        let value = self.plain();
        let wrong = |expected: String| QueryError::Value {
            part: self.text.to_owned(),
            expected,
            span: self.span.clone(),
        };
        let moment = || {
            moment::parse(value, now).ok_or_else(|| {
                wrong(
                    "expected a time such as `2026-03-01`, `2026-03`, `7d`, `12h`, `today` or `yesterday`"
                        .to_owned(),
                )
            })
        };
        Ok(match name {
            "role" => {
                let names: Vec<_> = PieceRole::ALL.iter().map(|role| role.name()).collect();
                let role = PieceRole::ALL.iter().find(|role| value.eq_ignore_ascii_case(role.name()));
                FieldCondition::Role(*role.ok_or_else(|| wrong(format!("expected {}", one_of(&names))))?)
            }
            "kind" => {
                let names: Vec<_> = TextKind::ALL.iter().map(|kind| kind.name()).collect();
                let kind = TextKind::ALL.iter().find(|kind| value.eq_ignore_ascii_case(kind.name()));
                FieldCondition::Kind(*kind.ok_or_else(|| wrong(format!("expected {}", one_of(&names))))?)
            }
            "tool" => FieldCondition::Tool(ToolPattern::new(value)),
            "path" => FieldCondition::Path(term),
            "command" => FieldCondition::Command(term),
            "error" => match value {
                "true" | "yes" | "any" => FieldCondition::Error(true, None),
                "false" | "no" | "none" => FieldCondition::Error(false, None),
                _ => FieldCondition::Error(true, Some(term)),
            },
            "project" => FieldCondition::Project(term),
            "session" => FieldCondition::Session(value.to_lowercase()),
            "branch" => FieldCondition::Branch(term),
            "model" => FieldCondition::Model(term),
            "since" => FieldCondition::Since(moment()?.0),
            _ => {
                let (from, to) = moment()?;
                FieldCondition::Until(if from == to { from + 1 } else { to })
            }
        })
    }
}

/// Returns the last line of a regex error, which contains the reason.
fn problem(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let (last, others) = quoted.split_last().map_or(("", &[][..]), |(last, others)| (&**last, others));
    format!("{} or {last}", others.join(", "))
}
