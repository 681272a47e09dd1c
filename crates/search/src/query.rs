//! Queries: parses user input into terms to find and fields to filter by.
//!
//! ```text
//! word          anywhere in the text, also within words; all must occur in one block of a message
//! "a phrase"    consecutive whole words, separated by any white space; \" is a quote
//! /pattern/     a regular expression on one block; /pattern/i ignores case
//! field:value   the value is a word, a "phrase" or a /pattern/, or specific to the field
//! -term         negates any of these
//! ```

mod lexer;

use std::collections::HashSet;
use std::ops::Range;

use jiff::Zoned;
use threadline_entry::{Millis, ToolPattern, value};

use self::lexer::{QueryLexer, QueryPart};
use crate::needle::Needle;
use crate::piece::{PieceRole, TextKind};
use crate::term::{FoldCache, Term};

/// A parsed query.
///
/// A block of a message matches if it contains every word, phrase and pattern and none of the excluded ones,
/// and all fields match. If a field is given several times, one of its values must match.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) terms: Vec<Term>,
    pub(crate) excluded: Vec<Term>,
    pub(crate) filters: Vec<FieldFilter>,
    pub(crate) needle: Needle,
}

/// A field condition, possibly negated.
#[derive(Clone, Debug)]
pub(crate) struct FieldFilter {
    pub(crate) field: FieldCondition,
    pub(crate) negated: bool,
}

/// The condition of a field.
#[derive(Clone, Debug)]
pub(crate) enum FieldCondition {
    Role(PieceRole),
    Kind(TextKind),
    Tool(ToolPattern),
    Path(Term),
    Command(Term),
    /// Whether it is an error, and optionally a term in its text.
    Error(bool, Option<Term>),
    Project(Term),
    Session(String),
    Branch(Term),
    Model(Term),
    /// At or after this time.
    Since(Millis),
    /// Before this time.
    Until(Millis),
}

/// A parse error of a query, with the part that caused it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// The query is empty.
    #[error("the query is empty")]
    Empty,
    /// The query contains only negated parts.
    #[error("the query contains only exclusions")]
    OnlyExcluded,
    /// A phrase, a value or an excluded word is empty.
    #[error("`{part}` is empty")]
    Nothing {
        /// The part.
        part: String,
        /// Its byte range in the query.
        span: Range<usize>,
    },
    /// A phrase has no closing quote.
    #[error("the phrase `{part}` has no closing quote")]
    Unclosed {
        /// The part.
        part: String,
        /// Its byte range in the query.
        span: Range<usize>,
    },
    /// A pattern is not a valid regular expression.
    #[error("`{part}` is not a valid regular expression: {problem}")]
    Pattern {
        /// The part.
        part: String,
        /// The error of the regular expression.
        problem: String,
        /// Its byte range in the query.
        span: Range<usize>,
    },
    /// The value of a field is invalid.
    #[error("`{part}`: {expected}")]
    Value {
        /// The part.
        part: String,
        /// A description of valid values.
        expected: String,
        /// Its byte range in the query.
        span: Range<usize>,
    },
    /// The time of `since:` is not before that of `until:`.
    #[error("`{since}` is not before `{until}`")]
    EmptyRange {
        /// The part with the start.
        since: String,
        /// The part with the end.
        until: String,
        /// The byte range of the later one in the query.
        span: Range<usize>,
    },
}

/// The maximum number of matches of each word that are highlighted in a text.
const MAX_HIGHLIGHTS: usize = 1000;

impl QueryError {
    /// Returns the byte range of the invalid part; `None` if it is the whole query.
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            Self::Empty | Self::OnlyExcluded => None,
            Self::Nothing { span, .. }
            | Self::Unclosed { span, .. }
            | Self::Pattern { span, .. }
            | Self::Value { span, .. }
            | Self::EmptyRange { span, .. } => Some(span.clone()),
        }
    }
}

/// The time that the fields before a part of a query leave, with the text of these fields.
#[derive(Default)]
struct SearchedTime<'q> {
    since: Option<(Millis, &'q str)>,
    until: Option<(Millis, &'q str)>,
}

impl<'q> SearchedTime<'q> {
    /// Adds a condition. Returns an error if no time is left.
    fn restrict(&mut self, field: &FieldCondition, part: &QueryPart<'q>) -> Result<(), QueryError> {
        match field {
            FieldCondition::Since(at) if self.since.is_none_or(|(since, _)| since < *at) => {
                self.since = Some((*at, part.text));
            }
            FieldCondition::Until(at) if self.until.is_none_or(|(until, _)| *at < until) => {
                self.until = Some((*at, part.text));
            }
            _ => {}
        }
        match (self.since, self.until) {
            (Some((from, since)), Some((to, until))) if from >= to => Err(QueryError::EmptyRange {
                since: since.to_owned(),
                until: until.to_owned(),
                span: part.span.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// Returns the name of an unknown field, such as `brunch` in `brunch:main`, which is parsed as a word.
pub fn unknown_field(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| {
        let (name, value) = word.trim_start_matches('-').split_once(':')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_path = value.is_empty() || value.starts_with([':', '/', '\\']);
        (is_name && !is_path && !lexer::FIELDS.contains(&name)).then_some(name)
    })
}

impl Query {
    /// Parses a query. Relative times such as `since:yesterday` are resolved against `now`, in its time zone.
    ///
    /// # Errors
    ///
    /// Returns a [`QueryError`] with the invalid part.
    pub fn parse(text: &str, now: &Zoned) -> Result<Self, QueryError> {
        let mut query =
            Self { terms: Vec::new(), excluded: Vec::new(), filters: Vec::new(), needle: Needle::None };
        let mut reader = QueryLexer::new(text);
        let mut range = SearchedTime::default();
        while let Some(part) = reader.next_part()? {
            query.add(&part, now)?;
            if let Some(FieldFilter { field, negated: false }) = query.filters.last() {
                range.restrict(field, &part)?;
            }
        }
        let wanted = !query.terms.is_empty() || query.filters.iter().any(|filter| !filter.negated);
        if !wanted {
            let empty = query.excluded.is_empty() && query.filters.is_empty();
            return Err(if empty { QueryError::Empty } else { QueryError::OnlyExcluded });
        }
        for terms in [&mut query.terms, &mut query.excluded] {
            let mut seen = HashSet::new();
            terms.retain(|term| seen.insert(term.key()));
        }
        query.needle = query.best_needle();
        Ok(query)
    }

    fn add(&mut self, part: &QueryPart<'_>, now: &Zoned) -> Result<(), QueryError> {
        let Some(name) = part.field else {
            let term = part.term()?;
            if part.negated { &mut self.excluded } else { &mut self.terms }.push(term);
            return Ok(());
        };
        let field = part.field_of(name, now)?;
        if let (FieldCondition::Error(true, Some(term)), false) = (&field, part.negated) {
            self.terms.push(term.clone());
        }
        self.filters.push(FieldFilter { field, negated: part.negated });
        Ok(())
    }

    /// Returns the needle that a line must contain to be worth decoding.
    fn best_needle(&self) -> Needle {
        let mut texts: Vec<_> = self.terms.iter().flat_map(Term::required_texts).collect();
        // A result need not contain the path or command of its call, but both lines contain `tool_use`.
        let of_tools = |filter: &FieldFilter| {
            !filter.negated
                && matches!(
                    filter.field,
                    FieldCondition::Tool(_) | FieldCondition::Path(_) | FieldCondition::Command(_)
                )
        };
        if self.filters.iter().any(of_tools) {
            texts.push((value::TOOL_USE, crate::fold::Case::Sensitive));
        }
        Needle::of(texts)
    }

    /// Returns whether a session with this id may match.
    pub fn matches_session(&self, id: &str) -> bool {
        self.matches_fields(|field| match field {
            FieldCondition::Session(prefix) => Some(id.to_lowercase().starts_with(prefix)),
            _ => None,
        })
    }

    /// Returns whether the query has words, phrases or patterns, which can be highlighted.
    pub fn has_terms(&self) -> bool {
        !self.terms.is_empty()
    }

    /// Returns whether the query has a `project:` field.
    pub fn has_project_filter(&self) -> bool {
        self.filters.iter().any(|filter| matches!(filter.field, FieldCondition::Project(_)))
    }

    /// Returns whether a project may match, given its directory and the name of its folder.
    pub fn matches_project(&self, names: &[&str]) -> bool {
        self.matches_fields(|field| match field {
            FieldCondition::Project(term) => Some(names.iter().any(|name| term.is_in(&FoldCache::new(name)))),
            _ => None,
        })
    }

    /// Returns the byte ranges of the words, phrases and patterns in a text, sorted and without overlaps. Of
    /// very many, only the first are found.
    pub fn highlight(&self, text: &str) -> Vec<Range<usize>> {
        Self::ranges(self.terms.iter(), text)
    }

    /// Returns the byte ranges of the words and phrases in a text, like [`Query::highlight`], but not those
    /// of patterns, which match texts that the query does not contain.
    pub fn highlight_literals(&self, text: &str) -> Vec<Range<usize>> {
        Self::ranges(self.terms.iter().filter(|term| !matches!(term, Term::Pattern { .. })), text)
    }

    fn ranges<'q>(terms: impl Iterator<Item = &'q Term>, text: &str) -> Vec<Range<usize>> {
        let folded = FoldCache::new(text);
        let mut ranges = Vec::new();
        for term in terms {
            let mut n_found = 0;
            term.find(&folded, &mut |range| {
                ranges.push(range);
                n_found += 1;
                n_found < MAX_HIGHLIGHTS
            });
        }
        crate::snippet::merge(ranges)
    }

    /// Returns whether the fields match for which `asks` returns `Some`. Other fields are ignored.
    pub(crate) fn matches_fields(&self, mut asks: impl FnMut(&FieldCondition) -> Option<bool>) -> bool {
        // For each kind of field that is not negated, whether one of its values matched.
        let mut groups: Vec<(std::mem::Discriminant<FieldCondition>, bool)> = Vec::new();
        for filter in &self.filters {
            let Some(matches) = asks(&filter.field) else { continue };
            if filter.negated || matches!(filter.field, FieldCondition::Since(_) | FieldCondition::Until(_)) {
                if matches == filter.negated {
                    return false;
                }
                continue;
            }
            let kind = std::mem::discriminant(&filter.field);
            match groups.iter_mut().find(|group| group.0 == kind) {
                Some(group) => group.1 |= matches,
                None => groups.push((kind, matches)),
            }
        }
        groups.iter().all(|group| group.1)
    }

    /// Returns whether a field depends on the call of a result.
    pub(crate) fn needs_calls(&self) -> bool {
        let of_calls = |field: &FieldCondition| {
            matches!(field, FieldCondition::Tool(_) | FieldCondition::Path(_) | FieldCondition::Command(_))
        };
        self.filters.iter().any(|filter| of_calls(&filter.field))
    }
}

#[cfg(test)]
mod tests;
