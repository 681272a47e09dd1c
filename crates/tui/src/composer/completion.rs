//! Completion of commands and of file names.

use std::ops::Range;
use std::path::Path;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

/// The number of completions that are kept.
const MAX_ITEMS: usize = 50;
/// The number of files that are looked at.
pub(crate) const MAX_FILES: usize = 20_000;

/// A completion of the text before the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The text that is replaced.
    pub(crate) range: Range<usize>,
    pub(crate) items: Vec<CompletionItem>,
    pub(crate) selected: usize,
    /// Whether the items are commands, which Enter runs.
    pub(crate) is_command: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompletionItem {
    pub(crate) label: String,
    pub(crate) detail: String,
    /// The text that replaces the range.
    pub(crate) insert: String,
}

/// The commands and files that can be completed.
#[derive(Debug, Default)]
pub(crate) struct CompletionSource {
    /// Names without the slash, and descriptions.
    pub(crate) commands: Vec<(String, String)>,
    /// Paths relative to the working folder; `None` until they were asked for.
    pub(crate) files: Option<Vec<String>>,
    /// Whether the paths are needed now.
    pub(crate) wants_files: bool,
}

impl Completion {
    pub(crate) fn selected(&self) -> Option<&CompletionItem> {
        self.items.get(self.selected)
    }

    pub(crate) fn selected_label(&self) -> &str {
        self.selected().map_or("", |item| &item.label)
    }

    pub(crate) fn select_label(&mut self, label: &str) {
        // The best match is first, unless another one was chosen.
        if self.selected != 0 {
            self.selected = self.items.iter().position(|item| item.label == label).unwrap_or(0);
        }
    }

    pub(crate) fn move_by(&mut self, by: isize) {
        let count = self.items.len() as isize;
        if count > 0 {
            self.selected = (self.selected as isize + by).rem_euclid(count) as usize;
        }
    }
}

impl CompletionSource {
    /// Returns the completions for the text before the cursor.
    pub(crate) fn complete(&mut self, text: &str, cursor: usize) -> Option<Completion> {
        let before = &text[..cursor];
        if let Some(name) = before.strip_prefix('/').filter(|name| !name.contains(char::is_whitespace)) {
            return self.complete_command(name, text);
        }
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = before[start..].strip_prefix('@')?;
        self.wants_files = self.files.is_none();
        let items = self.matching_files(word);
        let range = start..cursor;
        (!items.is_empty()).then_some(Completion { range, items, selected: 0, is_command: false })
    }

    fn complete_command(&self, name: &str, text: &str) -> Option<Completion> {
        let mut matching: Vec<&(String, String)> =
            self.commands.iter().filter(|(command, _)| command.starts_with(name)).collect();
        let further = self
            .commands
            .iter()
            .filter(|(command, _)| !command.starts_with(name) && !name.is_empty() && command.contains(name));
        matching.extend(further);
        let items: Vec<CompletionItem> = matching
            .into_iter()
            .take(MAX_ITEMS)
            .map(|(command, description)| CompletionItem {
                label: format!("/{command}"),
                detail: description.clone(),
                insert: format!("/{command}"),
            })
            .collect();
        let is_complete = matches!(&items[..], [only] if only.label.len() == name.len() + 1);
        let range = 0..name.len() + 1;
        let completion = Completion { range, items, selected: 0, is_command: true };
        (!completion.items.is_empty() && !is_complete && name.len() + 1 == text.len()).then_some(completion)
    }

    fn matching_files(&self, word: &str) -> Vec<CompletionItem> {
        let files = self.files.as_deref().unwrap_or_default();
        let item = |path: &String| CompletionItem {
            label: path.clone(),
            detail: String::new(),
            insert: format!("@{path}{}", if path.ends_with('/') { "" } else { " " }),
        };
        if word.is_empty() {
            return files
                .iter()
                .filter(|path| !path.trim_end_matches('/').contains('/'))
                .take(MAX_ITEMS)
                .map(item)
                .collect();
        }
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let pattern = Pattern::parse(word, CaseMatching::Smart, Normalization::Smart);
        let mut found = pattern.match_list(files, &mut matcher);
        // Of equally good matches, the shorter path is the likelier one.
        found.sort_by_key(|(path, score)| (std::cmp::Reverse(*score), path.len()));
        found.into_iter().take(MAX_ITEMS).map(|(path, _)| item(path)).collect()
    }
}

/// Lists the files and folders below a folder, without ignored ones. Folders end with a slash.
pub(crate) fn list_files(root: &Path) -> Vec<String> {
    let walk =
        ignore::WalkBuilder::new(root).hidden(true).require_git(false).sort_by_file_name(Ord::cmp).build();
    let paths = walk.filter_map(Result::ok).filter_map(|entry| {
        let path = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        (!path.is_empty()).then(|| if is_folder { format!("{path}/") } else { path })
    });
    paths.take(MAX_FILES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> CompletionSource {
        let commands = [("clear", "c"), ("compact", "s"), ("model", "m")];
        let files = ["README.md", "src/", "src/main.rs", "src/model.rs", "tests/main_test.rs"];
        CompletionSource {
            commands: commands.map(|(name, about)| (name.to_owned(), about.to_owned())).to_vec(),
            files: Some(files.map(str::to_owned).to_vec()),
            wants_files: false,
        }
    }

    fn labels(text: &str) -> Vec<String> {
        let completion = source().complete(text, text.len());
        completion.into_iter().flat_map(|completion| completion.items).map(|item| item.label).collect()
    }

    #[test]
    fn commands_are_completed_at_the_beginning_only() {
        assert_eq!(labels("/c"), ["/clear", "/compact"]);
        assert_eq!(labels("/mo"), ["/model"]);
        assert_eq!(labels("/od"), ["/model"]);
        assert_eq!(labels("/model"), Vec::<String>::new());
        assert_eq!(labels("/clear x"), Vec::<String>::new());
        assert_eq!(labels("see /c"), Vec::<String>::new());
    }

    #[test]
    fn files_are_found_by_some_of_their_letters() {
        assert_eq!(labels("see @"), ["README.md", "src/"]);
        assert_eq!(labels("@smain")[0], "src/main.rs");
        assert_eq!(labels("@mdl")[0], "src/model.rs");
        assert_eq!(labels("mail@x"), Vec::<String>::new());
        let mut source = CompletionSource::default();
        assert_eq!(source.complete("@a", 2), None);
        assert!(source.wants_files);
    }
}
