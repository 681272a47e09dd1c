//! Queries: what a person typed, as terms to find and fields to hold.
//!
//! ```text
//! word          anywhere in the text, also within words; all must occur in one block of a message
//! "a phrase"    whole words, one behind the other; white space of any kind between them; \" is a quote
//! /pattern/     a regular expression on one block; /pattern/i whatever the case
//! field:value   the value is a word, a "phrase" or a /pattern/, or what the field says
//! -any of these must not be so
//! ```

use std::ops::Range;

use jiff::Zoned;
use threadline_entry::Millis;

use crate::moment;
use crate::needle::Needle;
use crate::piece::{Role, TextKind};
use crate::term::{Sheet, Term};

/// What to find.
///
/// A block of a message is found if every word, phrase and pattern occurs in it, none of the excluded
/// ones does, and the fields hold. Of a field that is given several times, one must hold.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) terms: Vec<Term>,
    pub(crate) excluded: Vec<Term>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) needle: Needle,
}

/// A field that must hold, or must not.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) field: Field,
    pub(crate) negated: bool,
}

/// What a field asks for.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    Role(Role),
    Kind(TextKind),
    Tool(ToolName),
    Path(Term),
    Command(Term),
    /// Whether it is an error, and perhaps what stands in it.
    Error(bool, Option<Term>),
    Project(Term),
    Session(String),
    Branch(Term),
    Model(Term),
    /// From here on.
    Since(Millis),
    /// Before this.
    Until(Millis),
}

/// The name of a tool, in any case; `*` stands for anything.
#[derive(Clone, Debug)]
pub(crate) struct ToolName(Vec<String>);

impl ToolName {
    fn new(text: &str) -> Self {
        Self(text.to_lowercase().split('*').map(str::to_owned).collect())
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let [first, middle @ .., last] = &self.0[..] else { return self.0.first() == Some(&name) };
        let Some(mut rest) = name.strip_prefix(&**first) else { return false };
        for part in middle {
            let Some(at) = rest.find(&**part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(&**last)
    }
}

/// Why a query cannot be understood, and which part of it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// There is nothing in it.
    #[error("the query is empty")]
    Empty,
    /// It says only what is not wanted.
    #[error("the query says only what must not be there")]
    OnlyExcluded,
    /// A phrase, a value or an excluded word has nothing in it.
    #[error("`{part}` has nothing to look for")]
    Nothing {
        /// The part.
        part: String,
        /// Where it stands, in bytes.
        span: Range<usize>,
    },
    /// A phrase has no closing quote.
    #[error("the phrase `{part}` has no closing quote")]
    Unclosed {
        /// The part.
        part: String,
        /// Where it stands, in bytes.
        span: Range<usize>,
    },
    /// A pattern is no regular expression.
    #[error("`{part}` is no regular expression: {problem}")]
    Pattern {
        /// The part.
        part: String,
        /// What is wrong with it.
        problem: String,
        /// Where it stands, in bytes.
        span: Range<usize>,
    },
    /// A field has no such value.
    #[error("`{part}`: {expected}")]
    Value {
        /// The part.
        part: String,
        /// What would be one.
        expected: String,
        /// Where it stands, in bytes.
        span: Range<usize>,
    },
}

impl QueryError {
    /// The part that is wrong, in bytes of the query; `None` if it is the whole.
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            Self::Empty | Self::OnlyExcluded => None,
            Self::Nothing { span, .. }
            | Self::Unclosed { span, .. }
            | Self::Pattern { span, .. }
            | Self::Value { span, .. } => Some(span.clone()),
        }
    }
}

/// The names of the fields.
const FIELDS: &[&str] = &[
    "role", "kind", "tool", "path", "command", "error", "project", "session", "branch", "model", "since",
    "until",
];

impl Query {
    /// Understands `text`; `now` is what `since:yesterday` counts from, in the person's time zone.
    ///
    /// # Errors
    ///
    /// [`QueryError`] names the part that makes no sense.
    pub fn parse(text: &str, now: &Zoned) -> Result<Self, QueryError> {
        let mut query =
            Self { terms: Vec::new(), excluded: Vec::new(), filters: Vec::new(), needle: Needle::None };
        let mut reader = Reader { text, at: 0 };
        while let Some(part) = reader.next_part()? {
            query.add(&part, now)?;
        }
        let wanted = !query.terms.is_empty() || query.filters.iter().any(|filter| !filter.negated);
        if !wanted {
            let empty = query.excluded.is_empty() && query.filters.is_empty();
            return Err(if empty { QueryError::Empty } else { QueryError::OnlyExcluded });
        }
        query.needle = query.best_needle();
        Ok(query)
    }

    fn add(&mut self, part: &Part<'_>, now: &Zoned) -> Result<(), QueryError> {
        let Some(name) = part.field else {
            let term = part.term()?;
            if part.negated { &mut self.excluded } else { &mut self.terms }.push(term);
            return Ok(());
        };
        let field = part.field_of(name, now)?;
        if let (Field::Error(true, Some(term)), false) = (&field, part.negated) {
            self.terms.push(term.clone());
        }
        self.filters.push(Filter { field, negated: part.negated });
        Ok(())
    }

    /// What must stand in a line for it to be worth decoding.
    fn best_needle(&self) -> Needle {
        let mut texts: Vec<_> = self.terms.iter().flat_map(Term::needs).collect();
        // Of what a call is about nothing may stand in its result, but both say `tool_use`.
        let of_tools = |filter: &Filter| {
            !filter.negated && matches!(filter.field, Field::Tool(_) | Field::Path(_) | Field::Command(_))
        };
        if self.filters.iter().any(of_tools) {
            texts.push(("tool_use", crate::fold::Case::Counts));
        }
        Needle::of(texts)
    }

    /// Whether a session is looked into at all, as far as its id tells.
    pub fn wants_session(&self, id: &str) -> bool {
        self.holds(|field| match field {
            Field::Session(prefix) => Some(id.to_lowercase().starts_with(prefix)),
            _ => None,
        })
    }

    /// Whether the query asks for a project.
    pub fn asks_for_project(&self) -> bool {
        self.filters.iter().any(|filter| matches!(filter.field, Field::Project(_)))
    }

    /// Whether a project is looked into, given its names: its directory, its folder.
    pub fn wants_project(&self, names: &[&str]) -> bool {
        self.holds(|field| match field {
            Field::Project(term) => Some(names.iter().any(|name| term.is_in(&Sheet::new(name)))),
            _ => None,
        })
    }

    /// Where the words, phrases and patterns occur in a text: bytes, in order, apart from each other.
    pub fn highlight(&self, text: &str) -> Vec<Range<usize>> {
        let sheet = Sheet::new(text);
        let mut ranges = Vec::new();
        for term in &self.terms {
            term.find(&sheet, &mut |range| {
                ranges.push(range);
                true
            });
        }
        crate::snippet::merge(ranges)
    }

    /// Whether the fields that `asks` knows about hold. It answers `None` for those it does not know.
    pub(crate) fn holds(&self, mut asks: impl FnMut(&Field) -> Option<bool>) -> bool {
        // Of the fields that were given several times: whether one of them held.
        let mut groups: Vec<(std::mem::Discriminant<Field>, bool)> = Vec::new();
        for filter in &self.filters {
            let Some(held) = asks(&filter.field) else { continue };
            if filter.negated || matches!(filter.field, Field::Since(_) | Field::Until(_)) {
                if held == filter.negated {
                    return false;
                }
                continue;
            }
            let kind = std::mem::discriminant(&filter.field);
            match groups.iter_mut().find(|group| group.0 == kind) {
                Some(group) => group.1 |= held,
                None => groups.push((kind, held)),
            }
        }
        groups.iter().all(|group| group.1)
    }

    /// Whether a field asks for what a result has from its call.
    pub(crate) fn asks_for_calls(&self) -> bool {
        let of_calls = |field: &Field| matches!(field, Field::Tool(_) | Field::Path(_) | Field::Command(_));
        self.filters.iter().any(|filter| of_calls(&filter.field))
    }
}

/// Cuts a query into parts.
struct Reader<'q> {
    text: &'q str,
    at: usize,
}

/// One part of a query.
struct Part<'q> {
    negated: bool,
    field: Option<&'static str>,
    value: Value<'q>,
    /// The whole of it.
    text: &'q str,
    span: Range<usize>,
}

/// How a value is written.
enum Value<'q> {
    Word(&'q str),
    Phrase(String),
    Pattern(&'q str, bool),
}

impl<'q> Reader<'q> {
    fn next_part(&mut self) -> Result<Option<Part<'q>>, QueryError> {
        let text = self.text;
        self.at = text.len() - text[self.at..].trim_start().len();
        let start = self.at;
        if start == text.len() {
            return Ok(None);
        }
        // A dash by itself is a word.
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
        Ok(Some(Part { negated: dash.is_some(), field, value, text: &text[span.clone()], span }))
    }

    fn value(&mut self, start: usize) -> Result<Value<'q>, QueryError> {
        let rest = &self.text[self.at..];
        if let Some(inner) = rest.strip_prefix('"') {
            let Some((phrase, length)) = quoted(inner) else {
                let span = start..self.text.len();
                return Err(QueryError::Unclosed { part: self.text[span.clone()].to_owned(), span });
            };
            self.at += 1 + length;
            return Ok(Value::Phrase(phrase));
        }
        if let Some((pattern, ignore_case, length)) = slashed(rest) {
            self.at += length;
            return Ok(Value::Pattern(pattern, ignore_case));
        }
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.at += length;
        Ok(Value::Word(&rest[..length]))
    }
}

/// The phrase up to the closing quote, and the length with it. A quote closes where a blank follows, so
/// that `"type":"user"` is one phrase; `\"` never does.
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

/// The pattern of `/pattern/` or `/pattern/i`, whether case is ignored, and the length of it all. The
/// closing slash is one that nothing but a blank follows, so that a path is no pattern.
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

impl Part<'_> {
    fn term(&self) -> Result<Term, QueryError> {
        let term = match &self.value {
            Value::Word(word) => Term::word(word),
            Value::Phrase(phrase) => Term::phrase(phrase),
            Value::Pattern(pattern, ignore_case) => {
                Some(Term::pattern(pattern, *ignore_case).map_err(|error| QueryError::Pattern {
                    part: self.text.to_owned(),
                    problem: problem(&error),
                    span: self.span.clone(),
                })?)
            }
        };
        term.ok_or_else(|| QueryError::Nothing { part: self.text.to_owned(), span: self.span.clone() })
    }

    /// The value as plain text.
    fn plain(&self) -> &str {
        match &self.value {
            Value::Word(word) => word,
            Value::Phrase(phrase) => phrase,
            Value::Pattern(pattern, _) => pattern,
        }
    }

    fn field_of(&self, name: &str, now: &Zoned) -> Result<Field, QueryError> {
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
                    "a time is like `2026-03-01`, `2026-03`, `7d`, `12h`, `today` or `yesterday`".to_owned(),
                )
            })
        };
        Ok(match name {
            "role" => {
                let names: Vec<_> = Role::ALL.iter().map(|role| role.name()).collect();
                let role = Role::ALL.iter().find(|role| value.eq_ignore_ascii_case(role.name()));
                Field::Role(*role.ok_or_else(|| wrong(format!("a role is {}", one_of(&names))))?)
            }
            "kind" => {
                let names: Vec<_> = TextKind::ALL.iter().map(|kind| kind.name()).collect();
                let kind = TextKind::ALL.iter().find(|kind| value.eq_ignore_ascii_case(kind.name()));
                Field::Kind(*kind.ok_or_else(|| wrong(format!("a kind is {}", one_of(&names))))?)
            }
            "tool" => Field::Tool(ToolName::new(value)),
            "path" => Field::Path(term),
            "command" => Field::Command(term),
            "error" => match value {
                "true" | "yes" | "any" => Field::Error(true, None),
                "false" | "no" | "none" => Field::Error(false, None),
                _ => Field::Error(true, Some(term)),
            },
            "project" => Field::Project(term),
            "session" => Field::Session(value.to_lowercase()),
            "branch" => Field::Branch(term),
            "model" => Field::Model(term),
            "since" => Field::Since(moment()?.0),
            _ => {
                let (from, to) = moment()?;
                Field::Until(if from == to { from + 1 } else { to })
            }
        })
    }
}

/// What is wrong with a pattern, in one line.
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

#[cfg(test)]
mod tests;
