//! Custom rules and the allow list.

use regex::Regex;

/// A custom rule: a name and a pattern.
pub(crate) struct CustomRule {
    pub(crate) kind: String,
    pub(crate) description: String,
    pub(crate) pattern: Regex,
}

/// An exception: a value that is not a secret.
pub(crate) enum AllowedValue {
    /// Exactly this text.
    Text(String),
    /// Any text that contains a match of this pattern.
    Pattern(Regex),
}

impl AllowedValue {
    pub(crate) fn accepts(&self, secret: &str) -> bool {
        match self {
            Self::Text(text) => text == secret,
            Self::Pattern(pattern) => pattern.is_match(secret),
        }
    }
}

/// An error in a line of a rules file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The line is not a name, a space and a pattern.
    #[error("line {line_no}: expected `NAME PATTERN`")]
    NoPattern {
        /// The line number, from 1.
        line_no: usize,
    },
    /// The name cannot be used in a placeholder.
    #[error("line {line_no}: the name `{name}` may contain only letters, digits and `-`")]
    BadName {
        /// The line number, from 1.
        line_no: usize,
        /// The name.
        name: String,
    },
    /// The pattern matches the empty string.
    #[error("line {line_no}: the pattern matches the empty string")]
    MatchesEmpty {
        /// The line number, from 1.
        line_no: usize,
    },
    /// The pattern is not a valid regular expression.
    #[error("line {line_no}: {source}")]
    BadPattern {
        /// The line number, from 1.
        line_no: usize,
        /// The error of the regular expression.
        source: Box<regex::Error>,
    },
}

/// Returns the lines that are not empty or comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(idx, line)| (idx + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn pattern(line_no: usize, text: &str) -> Result<Regex, RuleError> {
    Regex::new(text).map_err(|source| RuleError::BadPattern { line_no, source: Box::new(source) })
}

/// Parses one rule per line: `NAME PATTERN`.
pub(crate) fn parse_rules(text: &str) -> Result<Vec<CustomRule>, RuleError> {
    let rule = |(line_no, line): (usize, &str)| {
        let (name, rest) = line.split_once(char::is_whitespace).ok_or(RuleError::NoPattern { line_no })?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(RuleError::BadName { line_no, name: name.to_owned() });
        }
        let pattern = pattern(line_no, rest.trim())?;
        if pattern.is_match("") {
            return Err(RuleError::MatchesEmpty { line_no });
        }
        Ok(CustomRule {
            kind: name.to_owned(),
            description: format!("a match of the rule `{name}`"),
            pattern,
        })
    };
    lines(text).map(rule).collect()
}

/// Parses one exception per line: a literal text, or `/a pattern/`.
pub(crate) fn parse_allowed(text: &str) -> Result<Vec<AllowedValue>, RuleError> {
    let allowed = |(line_no, line): (usize, &str)| {
        let inner =
            line.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|inner| !inner.is_empty());
        Ok(match inner {
            Some(inner) => AllowedValue::Pattern(pattern(line_no, inner)?),
            None => AllowedValue::Text(line.to_owned()),
        })
    };
    lines(text).map(allowed).collect()
}
