//! The files that the model has seen, and in which state.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::limits::Limits;
use crate::patch::changed_snippet;
use crate::profile::Profile;
use crate::read::number_lines;
use crate::text_file::TextFile;

/// The state of each file that was read or written in this session: the basis of read-before-write.
///
/// The table is shared by parallel calls. A resumed session fills it from its log with
/// [`FileStates::restore`].
#[derive(Debug, Default)]
pub struct FileStates {
    files: Mutex<HashMap<PathBuf, FileState>>,
}

/// A file that changed on disk after the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The absolute path.
    pub path: PathBuf,
    /// The changed parts with line numbers.
    pub snippet: String,
}

/// The state in which a file was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    /// The time of the last change, in milliseconds.
    pub(crate) modified_ms: u64,
    /// The digest of the content, if all of it was seen.
    pub(crate) digest: Option<ContentDigest>,
    /// The content after a write, to detect later changes by others.
    pub(crate) written: Option<String>,
    /// The range of the last Read; `None` after a write.
    pub(crate) range: Option<ReadRange>,
}

/// The range of a Read call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadRange {
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
}

/// A digest of a text with line feeds as line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentDigest([u8; 32]);

impl ContentDigest {
    pub(crate) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl FileStates {
    /// Returns an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that the model has seen the whole content of a file as of a time, in milliseconds since 1970.
    ///
    /// For a resumed session: the content of each Read without a range, Write and Edit in the log, with the
    /// time of its line.
    pub fn restore(&self, path: impl Into<PathBuf>, content: &str, modified_ms: u64) {
        let state = FileState {
            modified_ms,
            digest: Some(ContentDigest::of(content)),
            written: Some(content.to_owned()),
            range: None,
        };
        self.files.lock().insert(path.into(), state);
    }

    /// Forgets every file, as after a compaction.
    pub fn clear(&self) {
        self.files.lock().clear();
    }

    /// Returns the paths of the files that were seen, sorted.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = self.files.lock().keys().cloned().collect();
        paths.sort();
        paths
    }

    /// Returns the files that others changed after the model wrote them, each once. The new content then
    /// counts as seen.
    ///
    /// The loop calls this after each round of tool calls and sends the model an `edited_text_file`
    /// attachment for each. Files that were only read are not watched: writing to them is refused instead.
    #[must_use]
    pub fn take_changed(&self, profile: &Profile, limits: &Limits) -> Vec<ChangedFile> {
        let mut changed = Vec::new();
        for path in self.paths() {
            let Some(state) = self.get(&path) else { continue };
            let Some(old) = state.written.as_ref().filter(|_| state.range.is_none()) else { continue };
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            if modified_ms(&metadata) <= state.modified_ms {
                continue;
            }
            let Ok(file) = TextFile::read(&path, limits.edit_bytes) else { continue };
            let number = |at: usize, line: &str| number_lines(line, at as u64, profile.line_numbers);
            let snippet = changed_snippet(old, &file.text, &number);
            if !snippet.is_empty() {
                changed.push(ChangedFile { path: path.clone(), snippet });
            }
            let state = FileState {
                modified_ms: modified_ms(&metadata),
                digest: Some(ContentDigest::of(&file.text)),
                written: None,
                range: Some(ReadRange { offset: 1, limit: None }),
            };
            self.insert(&path, state);
        }
        changed
    }

    pub(crate) fn get(&self, path: &Path) -> Option<FileState> {
        self.files.lock().get(path).cloned()
    }

    pub(crate) fn insert(&self, path: &Path, state: FileState) {
        self.files.lock().insert(path.to_owned(), state);
    }

    /// Records the content of a file that a tool has just written.
    pub(crate) fn written(&self, path: &Path, content: &str) {
        let modified_ms = std::fs::metadata(path).map(|metadata| modified_ms(&metadata)).unwrap_or_default();
        self.restore(path, content, modified_ms);
    }
}

/// Returns the time of the last change in whole milliseconds since 1970.
pub(crate) fn modified_ms(metadata: &Metadata) -> u64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    fn changes(fixture: &Fixture) -> Vec<(String, String)> {
        let changed = fixture.files.take_changed(&Profile::V2_1_197, &fixture.limits);
        changed.into_iter().map(|file| (fixture.masked(file.path.to_str().unwrap()), file.snippet)).collect()
    }

    #[test]
    fn changes_after_a_write_are_returned_once() {
        let fixture = Fixture::new();
        let lines: String = (1..=60).map(|n| format!("line {n}\\n")).collect();
        fixture.run("Write", &format!(r#"{{"file_path": "a.txt", "content": "{lines}"}}"#));
        assert!(changes(&fixture).is_empty());
        fixture.put("a.txt", fixture.content("a.txt").replace("line 20\n", "line twenty\n"));
        fixture.touch_later("a.txt");
        let snippet: Vec<_> = (12..=28)
            .map(|n| if n == 20 { "20\tline twenty".to_owned() } else { format!("{n}\tline {n}") })
            .collect();
        assert_eq!(changes(&fixture), [("$CWD/a.txt".to_owned(), snippet.join("\n"))]);
        // The model has read the content, so the file is no longer watched.
        let note = fixture.text("Read", r#"{"file_path": "a.txt"}"#);
        assert!(note.starts_with("Wasted call"), "{note}");
        fixture.put("a.txt", "x\n");
        fixture.touch_later("a.txt");
        fixture.touch_later("a.txt");
        assert!(changes(&fixture).is_empty());
    }

    #[test]
    fn unchanged_content_and_files_that_were_only_read_are_not_returned() {
        let fixture = Fixture::new();
        fixture.run("Write", r#"{"file_path": "a.txt", "content": "x\n"}"#);
        fixture.put("b.txt", "b\n");
        fixture.run("Read", r#"{"file_path": "b.txt"}"#);
        fixture.put("b.txt", "c\n");
        fixture.touch_later("a.txt");
        fixture.touch_later("b.txt");
        assert!(changes(&fixture).is_empty());
    }
}
