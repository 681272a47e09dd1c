//! Paths as text.

/// Returns an absolute path with `/` and without `.`, `..` and repeated slashes. A relative `path` is
/// relative to `cwd`. Links are not resolved. Returns `None` if neither is absolute, or `path` is empty.
///
/// Drives (`C:\a`, `C:/a`) are absolute; a backslash separates folders only in paths with a drive.
///
/// ```
/// use threadline_shell::normalize;
///
/// assert_eq!(normalize("../b/./c.txt", "/work/a").as_deref(), Some("/work/b/c.txt"));
/// assert_eq!(normalize("c.txt", r"C:\work").as_deref(), Some("C:/work/c.txt"));
/// ```
pub fn normalize(path: &str, cwd: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let (base, rest) = match root(path) {
        Some(root) => (root.to_owned(), path[root.len()..].to_owned()),
        None => {
            let root = root(cwd)?;
            (root.to_owned(), format!("{}/{path}", &cwd[root.len()..]))
        }
    };
    let has_drive = base.contains(':');
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split(|ch| ch == '/' || has_drive && ch == '\\') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(format!("{}/{}", base.trim_end_matches(['/', '\\']), parts.join("/")))
}

/// Returns the root of an absolute path: `/` or `C:\`.
fn root(path: &str) -> Option<&str> {
    if path.starts_with('/') {
        return Some("/");
    }
    let bytes = path.as_bytes();
    let is_drive = bytes.len() >= 3
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'/' | b'\\');
    is_drive.then(|| &path[..3])
}

/// Returns the last component of a path.
pub(crate) fn file_name(path: &str) -> Option<&str> {
    let name = path.trim_end_matches('/').rsplit('/').next()?;
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

/// Whether a path names a device or another file that keeps no text.
pub(crate) fn is_device(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("/proc/")
}

/// Returns the words of a text that may name files.
pub(crate) fn file_words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |ch: char| {
        ch.is_alphanumeric() || matches!(ch, '.' | '_' | '-' | '/' | '\\' | '@' | '+' | '*' | '?' | '~')
    };
    let words = text.split(move |ch| !is_part(ch)).map(|word| word.trim_end_matches(['.', '?']));
    words.filter(|word| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
        let has_letter = name.contains(|ch: char| ch.is_alphanumeric() || ch == '*');
        has_letter && (name.contains('.') || name.len() > 3) && !word.starts_with("--")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized() {
        for (path, cwd, expected) in [
            ("a", "/w", Some("/w/a")),
            ("./a//b/../c", "/w/", Some("/w/a/c")),
            ("../../../a", "/w/x", Some("/a")),
            ("/a/./b/", "/w", Some("/a/b")),
            (".", "/", Some("/")),
            ("a", "C:\\x\\y", Some("C:/x/y/a")),
            ("D:/a\\b", "/w", Some("D:/a/b")),
            ("a\\b", "/w", Some("/w/a\\b")),
            ("", "/w", None),
            ("a", "w", None),
            ("a", "", None),
            ("a", "C:", None),
        ] {
            assert_eq!(normalize(path, cwd).as_deref(), expected, "{path} in {cwd}");
        }
    }
}
