//! The effect of a call that changes a file, before it runs.

use std::io;
use std::path::Path;

use crate::edit::Replacement;
use crate::limits::Limits;
use crate::text_file::TextFile;

/// The text of a file before and after a call, with line feeds as line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePreview {
    /// The text before; `None` if the call creates the file.
    pub old: Option<String>,
    /// The text after.
    pub new: String,
}

impl FilePreview {
    /// Returns the effect of a call of `Edit`.
    ///
    /// # Errors
    ///
    /// The message of a call that the tool would refuse.
    pub fn edit(path: &Path, old: &str, new: &str, replaces_all: bool) -> Result<Self, String> {
        let before = read(path)?;
        let text = before.as_deref().unwrap_or_default();
        let replacement = Replacement::plan(text, old, new, replaces_all);
        let new = replacement.map_err(|failure| failure.message().to_owned())?.apply(text);
        Ok(Self { old: before, new })
    }

    /// Returns the effect of a call of `Write`.
    ///
    /// # Errors
    ///
    /// If the path is not that of a regular file, or the file cannot be read.
    pub fn write(path: &Path, content: &str) -> Result<Self, String> {
        Ok(Self { old: read(path)?, new: content.to_owned() })
    }
}

/// Reads a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    match TextFile::read(path, Limits::default().edit_bytes) {
        Ok(file) => Ok(Some(file.text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("The file cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text after an edit of a file with this content.
    fn edited(content: &str, old: &str, new: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.txt");
        std::fs::write(&path, content).unwrap();
        FilePreview::edit(&path, old, new, false).map(|preview| preview.new)
    }

    #[test]
    fn a_preview_is_what_the_tool_writes() {
        assert_eq!(edited("a\nb\nc\n", "b\nc", "x").unwrap(), "a\nx\n");
        assert_eq!(edited("a\r\nb\r\nc\r\n", "b\nc", "x").unwrap(), "a\nx\n");
        assert_eq!(edited("a\nb\nc", "b", "").unwrap(), "a\nc", "a deleted line takes its line end along");
        assert_eq!(edited("say “hi”", "\"hi\"", "\"ho\"").unwrap(), "say “ho”");
        assert!(edited("a", "b", "c").unwrap_err().starts_with("String to replace not found"));
        assert!(edited("aa", "a", "c").unwrap_err().starts_with("Found 2 matches"));
        assert!(edited("a", "", "c").unwrap_err().starts_with("Cannot create new file"));
    }

    #[test]
    fn a_new_file_has_no_text_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.txt");
        let created = FilePreview { old: None, new: "a".to_owned() };
        assert_eq!(FilePreview::edit(&path, "", "a", false).unwrap(), created);
        assert_eq!(FilePreview::write(&path, "a").unwrap(), created);
        assert!(FilePreview::write(folder.path(), "a").is_err(), "a folder");
    }
}
