//! Ids that are safe to use in a path.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The maximum length of an id in bytes. File systems allow 255 for a name, including the prefixes and
/// extensions added to an id.
const MAX_ID_BYTES: usize = 200;

/// Returns whether `text` is a plain file name on every operating system.
///
/// These are not plain names: names that refer to another place (`..`, separators, drive letters, streams),
/// device names on Windows, names that Windows changes (a trailing dot or space), names with control
/// characters, and names that are too long.
pub fn is_plain_name(text: &str) -> bool {
    let is_odd =
        |ch: char| ch.is_control() || matches!(ch, '/' | '\\' | ':' | '<' | '>' | '"' | '|' | '?' | '*');
    !text.is_empty()
        && text.len() <= MAX_ID_BYTES
        && !text.contains(is_odd)
        && !text.ends_with(['.', ' '])
        && !is_device(text)
}

/// Returns whether the name is a device on Windows, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    // No name of a device is longer.
    if stem.len() > "CONOUT$".len() {
        return false;
    }
    let stem = stem.to_ascii_uppercase();
    let port = |name: &str| {
        let mut digits = stem.strip_prefix(name).unwrap_or_default().chars();
        matches!((digits.next(), digits.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    };
    matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || port("COM") || port("LPT")
}

/// The id of a session: a plain file name, so that joining it to a directory stays inside that directory.
///
/// Can only be created by [`new`](Self::new) and [`of_log`](Self::of_log). It does not implement
/// `AsRef<Path>`; use [`log_in`](Self::log_in) and [`dir_in`](Self::dir_in) to build paths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// Returns the id if `text` is a [plain name](is_plain_name).
    pub fn new(text: &str) -> Option<Self> {
        is_plain_name(text).then(|| Self(text.to_owned()))
    }

    /// Returns the id of the session with the log at `path`.
    ///
    /// This is the file name without its extension. If that is not a valid id, a stable substitute is derived
    /// from it, so that the session can be listed, shown and edited. Such a log has no side files.
    pub fn of_log(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_str().and_then(Self::new).unwrap_or_else(|| {
            let hash = stem.as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
            Self(format!("{hash:016x}-unnamed"))
        })
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the session's log in a project folder.
    pub fn log_in(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.jsonl", self.0))
    }

    /// Returns the path of the session's own directory in `folder`.
    pub fn dir_in(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }
}

impl Deref for SessionId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl From<&SessionId> for String {
    fn from(id: &SessionId) -> Self {
        id.0.clone()
    }
}

impl PartialEq<str> for SessionId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for SessionId {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_ids() {
        for id in
            ["0a1b2c3d-0000-4000-8000-000000000000", "a", ".hidden", "a b", "naïve", "console", "com10", "-x"]
        {
            assert_eq!(SessionId::new(id).unwrap(), id);
            assert_eq!(SessionId::of_log(&Path::new("/p").join(format!("{id}.jsonl"))), id);
        }
        let long = "x".repeat(MAX_ID_BYTES + 1);
        for text in [
            "", ".", "..", "...", "a/b", "../a", "/a", r"a\b", r"..\a", "C:", "C:a", "a:stream", "a\0b",
            "a\nb", "a.", "a ", "con", "NUL.txt", "com1", "LPT9.x", "COM¹", "aux .x", "a*b", "a?", "<a>",
            "a|b", "\u{9b}", &long,
        ] {
            assert_eq!(SessionId::new(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_log_with_an_invalid_name_gets_a_substitute_id() {
        let ids = ["/p/...jsonl", "/p/..jsonl", "/p/con.jsonl", "/p/a:b.jsonl"]
            .map(|log| SessionId::of_log(log.as_ref()));
        for (i, id) in ids.iter().enumerate() {
            assert!(id.ends_with("-unnamed") && is_plain_name(id), "{id}");
            assert!(!ids[..i].contains(id), "{id}");
            assert_eq!(id.dir_in(Path::new("/p")).parent(), Some(Path::new("/p")));
        }
    }
}
