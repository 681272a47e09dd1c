//! Queries: what a person typed, as terms to find and fields to hold.
//!
//! ```text
//! word          anywhere in the text, also within words; all must occur in one block of a message
//! "a phrase"    whole words, one behind the other; white space of any kind between them; \" is a quote
//! /pattern/     a regular expression on one block; /pattern/i whatever the case
//! field:value   the value is a word, a "phrase" or a /pattern/, or what the field says
//! -any of these must not be so
//! ```

mod part;

use std::ops::Range;

use jiff::Zoned;
use threadline_entry::Millis;

use self::part::{Part, Reader};
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

/// The name of a field that there is not, such as `brunch` in `brunch:main`, which was taken for a word.
pub fn unknown_field(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| {
        let (name, value) = word.trim_start_matches('-').split_once(':')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_path = value.is_empty() || value.starts_with([':', '/', '\\']);
        (is_name && !is_path && !part::FIELDS.contains(&name)).then_some(name)
    })
}

impl Query {
    /// Understands `text`; `now` is what `since:yesterday` counts from, in the person's time zone.
    ///
    /// # Errors
    ///
    /// [`QueryError`] names the part that makes no sense.
    pub fn parse(text: &str, now: &Zoned) -> Result<Self, QueryError> {
        let mut query =
            Self { terms: Vec::new(), excluded: Vec::new(), filters: Vec::new(), needle: Needle::None };
        let mut reader = Reader::new(text);
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

#[cfg(test)]
mod tests;
