//! Rules of one's own, and what is let through.

use regex::Regex;

/// A rule that a person wrote: a name, and the pattern of the secret.
pub(crate) struct Own {
    pub(crate) kind: String,
    pub(crate) what: String,
    pub(crate) pattern: Regex,
}

/// What is no secret although it looks like one.
pub(crate) enum Allowed {
    /// This text alone.
    Text(String),
    /// Whatever this pattern occurs in.
    Pattern(Regex),
}

impl Allowed {
    pub(crate) fn takes(&self, secret: &str) -> bool {
        match self {
            Self::Text(text) => text == secret,
            Self::Pattern(pattern) => pattern.is_match(secret),
        }
    }
}

/// Why a line of a file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A rule is a name, a space and a pattern.
    #[error("line {line_no}: a rule is a name, a space and a pattern")]
    NoPattern {
        /// Which line.
        line_no: usize,
    },
    /// The name would not be safe in a placeholder.
    #[error("line {line_no}: the name `{name}` may hold letters, digits and `-` only")]
    BadName {
        /// Which line.
        line_no: usize,
        /// The name.
        name: String,
    },
    /// A pattern that takes nothing for a secret.
    #[error("line {line_no}: the pattern also fits an empty text")]
    FitsNothing {
        /// Which line.
        line_no: usize,
    },
    /// The pattern is no regular expression.
    #[error("line {line_no}: {source}")]
    BadPattern {
        /// Which line.
        line_no: usize,
        /// What is wrong with it.
        source: Box<regex::Error>,
    },
}

/// The lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(idx, line)| (idx + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn pattern(line_no: usize, text: &str) -> Result<Regex, RuleError> {
    Regex::new(text).map_err(|source| RuleError::BadPattern { line_no, source: Box::new(source) })
}

/// A rule a line: `NAME PATTERN`.
pub(crate) fn parse_rules(text: &str) -> Result<Vec<Own>, RuleError> {
    let rule = |(line_no, line): (usize, &str)| {
        let (name, rest) = line.split_once(char::is_whitespace).ok_or(RuleError::NoPattern { line_no })?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(RuleError::BadName { line_no, name: name.to_owned() });
        }
        let pattern = pattern(line_no, rest.trim())?;
        if pattern.is_match("") {
            return Err(RuleError::FitsNothing { line_no });
        }
        Ok(Own { kind: name.to_owned(), what: format!("what the rule `{name}` names"), pattern })
    };
    lines(text).map(rule).collect()
}

/// A line an exception: the text itself, or `/a pattern/`.
pub(crate) fn parse_allowed(text: &str) -> Result<Vec<Allowed>, RuleError> {
    let allowed = |(line_no, line): (usize, &str)| {
        let inner =
            line.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|inner| !inner.is_empty());
        Ok(match inner {
            Some(inner) => Allowed::Pattern(pattern(line_no, inner)?),
            None => Allowed::Text(line.to_owned()),
        })
    };
    lines(text).map(allowed).collect()
}
