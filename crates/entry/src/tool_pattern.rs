//! Names of tools as people type them.

use std::fmt;

/// The name of a tool, compared case-insensitively; `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern(Vec<String>);

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("*"))
    }
}

impl ToolPattern {
    /// Parses a name such as `Bash` or `mcp__*`.
    pub fn new(text: &str) -> Self {
        Self(text.to_lowercase().split('*').map(str::to_owned).collect())
    }

    /// Returns whether this is the name of a tool.
    pub fn matches(&self, name: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_match_by_name_or_wildcard() {
        for (pattern, name, expected) in [
            ("bash", "Bash", true),
            ("Task", "TaskUpdate", false),
            ("Task*", "TaskUpdate", true),
            ("mcp__*__click", "mcp__playwright__click", true),
            ("mcp__*__click", "mcp__playwright__clicked", false),
            ("*", "anything", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(ToolPattern::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }
}
