//! Versions of Claude Code.

use std::fmt;
use std::str::FromStr;

/// A version of Claude Code, such as 2.1.197.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

impl ClientVersion {
    /// Whether a resume by this version continues the tail of messages that a compaction preserved.
    pub fn continues_preserved_tail(self) -> bool {
        super::VersionRules::of(self).has(super::ReplayRule::PreservedTail)
    }

    /// The versions that [replays](crate::Session::replay) were compared with, oldest first. A version
    /// without rules of its own in [`ReplayRule`](super::ReplayRule) follows those of the one before.
    pub const KNOWN: [Self; 8] = [
        Self::new(2, 1, 20),
        Self::new(2, 1, 197),
        Self::new(2, 1, 220),
        Self::new(2, 1, 250),
        Self::new(2, 1, 300),
        Self::new(2, 1, 325),
        Self::new(2, 1, 327),
        Self::new(2, 1, 328),
    ];

    /// The oldest known version.
    pub const OLDEST: Self = Self::KNOWN[0];

    /// The newest known version.
    pub const NEWEST: Self = Self::KNOWN[Self::KNOWN.len() - 1];

    /// Returns a version from its three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Returns the known version whose rules this one follows: itself, or the nearest older one.
    ///
    /// `None` if it is older than all known versions.
    pub fn nearest_known(self) -> Option<Self> {
        Self::KNOWN.into_iter().rev().find(|known| *known <= self)
    }

    /// Returns the known versions as a comma-separated list: "2.1.20, 2.1.197".
    pub fn known_list() -> String {
        Self::KNOWN.map(|version| version.to_string()).join(", ")
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The error for a text that is not three numbers separated by dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionError(String);

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a version of Claude Code; known versions: {}",
            self.0,
            ClientVersion::known_list()
        )
    }
}

impl std::error::Error for VersionError {}

impl FromStr for ClientVersion {
    type Err = VersionError;

    /// Parses `2.1.197`; a leading `v` is ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.');
            let mut next = || numbers.next()?.parse().ok();
            let version = Self::new(next()?, next()?, next()?);
            numbers.next().is_none().then_some(version)
        };
        parse().ok_or_else(|| VersionError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> ClientVersion {
        text.parse().unwrap()
    }

    #[test]
    fn a_version_follows_the_rules_of_the_nearest_older_known_version() {
        let known = |text: &str| version(text).nearest_known().map(|known| known.to_string());
        assert_eq!(known("2.1.197").as_deref(), Some("2.1.197"));
        assert_eq!(known("2.1.219").as_deref(), Some("2.1.197"));
        assert_eq!(known("v2.1.99").as_deref(), Some("2.1.20"));
        assert_eq!(known("2.1.326").as_deref(), Some("2.1.325"));
        assert_eq!(known("3.0.0"), Some(ClientVersion::NEWEST.to_string()));
        assert_eq!(known("2.0.50"), None);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(version("2.1.20") < version("2.1.197"));
        assert!(ClientVersion::KNOWN.is_sorted());
    }

    #[test]
    fn other_texts_are_errors_that_name_the_known_versions() {
        for text in ["", "2", "2.1", "2.1.x", "2.1.3.4", "newest", "-2.1.3"] {
            let error = text.parse::<ClientVersion>().unwrap_err().to_string();
            assert!(error.contains("2.1.328"), "{error}");
        }
    }
}
