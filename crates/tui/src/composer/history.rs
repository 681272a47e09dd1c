//! Prompts of earlier sessions: `history.jsonl` of Claude Code.

use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use threadline_entry::write::PromptHistoryLine;
use threadline_entry::{Json, Millis};

/// The number of bytes at the end of the file that are read.
const READ_BYTES: u64 = 1 << 20;
/// The number of prompts that are kept.
const MAX_PROMPTS: usize = 1000;

/// The prompts that were typed in a folder, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct PromptHistory {
    file: Option<PathBuf>,
    project: String,
    prompts: Vec<String>,
    /// The position while prompts are recalled, and the draft that they replaced.
    recalled: Option<(usize, String)>,
}

impl PromptHistory {
    /// Reads the history of a folder. Without a file, prompts are remembered for this process only.
    pub(crate) fn read(file: Option<PathBuf>, project: &Path) -> Self {
        let project = project.to_string_lossy().into_owned();
        let prompts = file.as_deref().and_then(|file| read_prompts(file, &project).ok()).unwrap_or_default();
        Self { file, project, prompts, recalled: None }
    }

    /// Adds a prompt to the history and to the file.
    pub(crate) fn add(&mut self, prompt: &str, now: Millis, session_id: &str) -> io::Result<()> {
        self.recalled = None;
        if prompt.trim().is_empty() {
            return Ok(());
        }
        self.push(prompt.to_owned());
        let Some(file) = &self.file else { return Ok(()) };
        let line = PromptHistoryLine { display: prompt, timestamp: now, project: &self.project, session_id };
        if let Some(folder) = file.parent() {
            fs_err::create_dir_all(folder)?;
        }
        if fs_err::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut options = fs_err::OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        {
            // Prompts are private.
            use fs_err::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = options.open(file)?;
        file.write_all(format!("{}\n", line.to_line()).as_bytes())
    }

    fn push(&mut self, prompt: String) {
        if self.prompts.last() != Some(&prompt) {
            self.prompts.push(prompt);
        }
        if self.prompts.len() > MAX_PROMPTS {
            self.prompts.remove(0);
        }
    }

    /// Returns the prompt before the one that is shown; `draft` comes back after the last one.
    pub(crate) fn previous(&mut self, draft: &str) -> Option<&str> {
        let position = self.recalled.as_ref().map_or(self.prompts.len(), |(position, _)| *position);
        let position = position.checked_sub(1)?;
        let draft = self.recalled.take().map_or_else(|| draft.to_owned(), |(_, draft)| draft);
        self.recalled = Some((position, draft));
        self.prompts.get(position).map(String::as_str)
    }

    /// Returns the prompt after the one that is shown, or the draft.
    pub(crate) fn next(&mut self) -> Option<String> {
        let (position, draft) = self.recalled.take()?;
        match self.prompts.get(position + 1) {
            Some(prompt) => {
                self.recalled = Some((position + 1, draft));
                Some(prompt.clone())
            }
            None => Some(draft),
        }
    }

    /// Whether a prompt of the history is shown.
    pub(crate) fn is_recalling(&self) -> bool {
        self.recalled.is_some()
    }

    /// Stops recalling, because the text was changed.
    pub(crate) fn stop(&mut self) {
        self.recalled = None;
    }

    /// Returns the newest prompt before `before` that contains `words`, and its position.
    pub(crate) fn search(&self, words: &str, before: usize) -> Option<(usize, &str)> {
        let words = words.to_lowercase();
        let prompts = self.prompts.iter().enumerate().take(before).rev();
        let mut found = prompts.filter(|(_, prompt)| prompt.to_lowercase().contains(&words));
        found.next().map(|(i, prompt)| (i, prompt.as_str()))
    }
}

fn read_prompts(file: &Path, project: &str) -> io::Result<Vec<String>> {
    // Opening a pipe would block until it has a writer.
    if !fs_err::metadata(file)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = fs_err::File::open(file)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(READ_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut prompts: Vec<String> = Vec::new();
    // The first line may be the end of a longer one.
    for line in BufReader::new(file).split(b'\n').skip(usize::from(start > 0)) {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let Some(line) = Json::parse(&line) else { continue };
        let text = |key: &str| line.get(key).and_then(|value| value.as_str().map(|text| text.into_owned()));
        let Some(prompt) = text("display").filter(|_| text("project").as_deref() == Some(project)) else {
            continue;
        };
        if prompts.last() != Some(&prompt) {
            prompts.push(prompt);
        }
    }
    prompts.drain(..prompts.len().saturating_sub(MAX_PROMPTS));
    Ok(prompts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_a_folder_are_recalled_and_the_draft_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.jsonl");
        let mut other = PromptHistory::read(Some(file.clone()), Path::new("/other"));
        other.add("elsewhere", 1, "s").unwrap();
        let mut first = PromptHistory::read(Some(file.clone()), Path::new("/work"));
        for prompt in ["one", "two", "two", " "] {
            first.add(prompt, 2, "s").unwrap();
        }
        let mut history = PromptHistory::read(Some(file), Path::new("/work"));
        assert_eq!(history.previous("draft"), Some("two"));
        assert_eq!(history.previous("draft"), Some("one"));
        assert_eq!(history.previous("draft"), None);
        assert_eq!(history.next().as_deref(), Some("two"));
        assert_eq!(history.next().as_deref(), Some("draft"));
        assert_eq!(history.next(), None);
        assert_eq!(history.search("ON", usize::MAX), Some((0, "one")));
    }
}
