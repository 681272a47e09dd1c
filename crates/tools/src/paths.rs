//! Resolution of the paths in tool calls, and error texts about paths.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::context::ToolContext;
use crate::output::Failure;

/// Resolves a path in a call: trims white space, expands `~`, joins it to the current folder, and removes `.`
/// and `..` without touching the disk.
pub(crate) fn resolve(text: &str, context: &ToolContext<'_>) -> Result<PathBuf, Failure> {
    if text.contains('\0') {
        return Err(Failure::Refused("Path contains null bytes".to_owned()));
    }
    Ok(absolute_path(text, &context.cwd(), context.home))
}

/// Returns the absolute path that a tool uses for a path in a call. Permission checks must use it, too.
#[must_use]
pub fn absolute_path(text: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let text = text.trim();
    let below_home = |rest: &str| home.map(|home| home.join(rest));
    let expanded = match text.strip_prefix('~') {
        Some("") => below_home(""),
        Some(rest) => rest.strip_prefix('/').and_then(below_home),
        None => None,
    };
    let joined = expanded.unwrap_or_else(|| cwd.join(text));
    let mut path = normalize(&joined);
    if text.ends_with('/') {
        // With a slash at the end, the path is valid for a folder only.
        path.push("");
    }
    path
}

/// Removes `.` and `..` from an absolute path.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Returns the text of an I/O error as Node.js writes it: `ENOENT: no such file or directory, open '/x'`.
pub(crate) fn errno_text(error: &io::Error, operation: &str, path: Option<&Path>) -> String {
    let (code, message) = errno_name(error);
    let path = path.map(|path| format!(" '{}'", path.display())).unwrap_or_default();
    format!("{code}: {message}, {operation}{path}")
}

fn errno_name(error: &io::Error) -> (&'static str, String) {
    let known = match error.kind() {
        io::ErrorKind::NotFound => Some(("ENOENT", "no such file or directory")),
        io::ErrorKind::PermissionDenied if error.raw_os_error() == Some(1) => {
            Some(("EPERM", "operation not permitted"))
        }
        io::ErrorKind::PermissionDenied => Some(("EACCES", "permission denied")),
        io::ErrorKind::NotADirectory => Some(("ENOTDIR", "not a directory")),
        io::ErrorKind::IsADirectory => Some(("EISDIR", "illegal operation on a directory")),
        io::ErrorKind::AlreadyExists => Some(("EEXIST", "file already exists")),
        io::ErrorKind::ReadOnlyFilesystem => Some(("EROFS", "read-only file system")),
        io::ErrorKind::StorageFull => Some(("ENOSPC", "no space left on device")),
        io::ErrorKind::QuotaExceeded => Some(("EDQUOT", "disk quota exceeded")),
        io::ErrorKind::FileTooLarge => Some(("EFBIG", "file too large")),
        io::ErrorKind::InvalidFilename => Some(("ENAMETOOLONG", "name too long")),
        io::ErrorKind::ResourceBusy => Some(("EBUSY", "resource busy or locked")),
        io::ErrorKind::ExecutableFileBusy => Some(("ETXTBSY", "text file is busy")),
        io::ErrorKind::CrossesDevices => Some(("EXDEV", "cross-device link not permitted")),
        io::ErrorKind::TooManyLinks => Some(("EMLINK", "too many links")),
        io::ErrorKind::ArgumentListTooLong => Some(("E2BIG", "argument list too long")),
        io::ErrorKind::OutOfMemory => Some(("ENOMEM", "not enough memory")),
        io::ErrorKind::InvalidInput => Some(("EINVAL", "invalid argument")),
        _ => None,
    };
    match (known, error.raw_os_error()) {
        (Some((code, message)), _) => (code, message.to_owned()),
        // Not an error kind of the standard library yet.
        (None, Some(40)) => ("ELOOP", "too many symbolic links encountered".to_owned()),
        (None, Some(24)) => ("EMFILE", "too many open files".to_owned()),
        (None, _) => ("EIO", error.to_string()),
    }
}

/// Returns the text for a missing file, with a similar path if there is one. `names_cwd` adds the current
/// directory.
pub(crate) fn missing_file(path: &Path, context: &ToolContext<'_>, names_cwd: bool) -> String {
    let mut text = "File does not exist.".to_owned();
    if names_cwd {
        text.push_str(&format!(" Note: your current working directory is {}.", context.cwd().display()));
    }
    if let Some(similar) = similar_file(path).or_else(|| file_below_cwd(path, &context.cwd())) {
        text.push_str(&format!(" Did you mean {similar}?"));
    }
    text
}

/// The maximum number of directory entries that are compared to find a similar file.
const MAX_SIBLINGS: usize = 10_000;

/// Returns the name of a file in the same folder that differs in its extension only.
fn similar_file(path: &Path) -> Option<String> {
    let stem = path.file_stem()?;
    let entries = std::fs::read_dir(path.parent()?).ok()?;
    let names = entries.take(MAX_SIBLINGS).flatten().map(|entry| PathBuf::from(entry.file_name()));
    let is_other =
        |name: &PathBuf| name.file_stem() == Some(stem) && path.file_name() != Some(name.as_os_str());
    let mut names: Vec<_> = names.filter(is_other).collect();
    names.sort();
    names.first().map(|name| name.display().to_string())
}

/// Returns `/p/project/x` for `/p/x` if it exists and `/p/project` is the current folder: models forget the
/// name of the project.
fn file_below_cwd(path: &Path, cwd: &Path) -> Option<String> {
    let rest = path.strip_prefix(cwd.parent()?).ok().filter(|_| !path.starts_with(cwd))?;
    let candidate = cwd.join(rest);
    candidate.exists().then(|| candidate.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_removed() {
        assert_eq!(normalize(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normalize(Path::new("/../x")), Path::new("/x"));
    }

    #[test]
    fn errors_read_like_those_of_node() {
        let error = std::fs::read("/nonexistent").unwrap_err();
        assert_eq!(
            errno_text(&error, "open", Some(Path::new("/nonexistent"))),
            "ENOENT: no such file or directory, open '/nonexistent'"
        );
    }
}
