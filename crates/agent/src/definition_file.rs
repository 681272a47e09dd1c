//! Markdown files with instructions: memory files, commands, skills and kinds of sub-agents.

use std::io::Read;
use std::path::Path;

/// The largest file that is read, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// Reads a regular file of a sensible size. `None` if it is empty.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_SIZE {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_FILE_SIZE).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then_some(text)
}

/// Reads a file that is inside `root`, also after links are resolved: a repository must not send private
/// files of the user to the model.
pub(crate) fn read_text_inside(path: &Path, root: &Path) -> Option<String> {
    let (real, root) = (path.canonicalize().ok()?, root.canonicalize().ok()?);
    if real.starts_with(root) { read_text(&real) } else { None }
}
