//! Cards of tools that read, write and edit files.

use std::borrow::Cow;

use threadline_entry::Json;
use threadline_entry::lens::{
    EditResult, List, MultiEditResult, NotebookEditResult, PatchHunk, ReadResult, WriteResult,
};

use super::{CallSummary, CardInput, ToolCard};
use crate::diff::{Hunk, hunks};
use crate::humanize::{line_change, plural};

impl<'a> CardInput<'a> {
    pub(super) fn read(&self) -> CallSummary {
        let path = self.string("file_path");
        let file = self.of::<ReadResult<'_>>().and_then(|result| result.file());
        let (text, first) = match file.and_then(|file| file.content()) {
            Some(content) => (content.into_owned(), None),
            // The error message is not part of the file.
            None if self.failed => (String::new(), None),
            None => strip_line_numbers(self.text),
        };
        let counted = text.lines().count() as u64;
        let lines = file.and_then(|file| file.num_lines()).filter(|_| text.is_empty()).unwrap_or(counted);
        // Claude Code counts a final newline as one more line.
        let total_lines = file.and_then(|file| file.total_lines());
        let total_lines =
            total_lines.map(|total| if text.ends_with('\n') && total == lines + 1 { lines } else { total });
        let kind = self.of::<ReadResult<'_>>().and_then(|result| result.kind()).unwrap_or_default();
        let gist = match (self.failed, total_lines, &*kind) {
            (true, ..) => String::new(),
            (_, _, "file_unchanged") => "unchanged".to_owned(),
            (_, _, "pdf") => "PDF".to_owned(),
            (_, _, "parts") => plural(file.and_then(|file| file.count()).unwrap_or(0), "page"),
            (_, _, "notebook") => {
                let cells = file.and_then(|file| file.cells()).map_or(0, |cells| cells.items().count());
                plural(cells as u64, "cell")
            }
            (_, Some(total), _) if total > lines => format!("{} of {}", plural(lines, "line"), total),
            _ if file.is_some_and(|file| file.base64().is_some()) => "image".to_owned(),
            _ => plural(lines, "line"),
        };
        let start_line = file.and_then(|file| file.start_line()).or(first).unwrap_or(1);
        CallSummary {
            subject: path.clone(),
            card: ToolCard::File { path, text, start_line, total_lines },
            gist,
        }
    }

    pub(super) fn write(&self) -> CallSummary {
        let path = self.string("file_path");
        let content = self.string("content");
        let result = self.of::<WriteResult<'_>>();
        let original = result.and_then(|result| result.original_file());
        let created = result.is_none_or(|result| result.kind().is_none_or(|kind| kind == "create"))
            && original.is_none();
        let updated = result.and_then(|result| result.kind()).is_some_and(|kind| kind == "update");
        let hunks = match result.and_then(|result| result.structured_patch()) {
            Some(patch) if !patch.is_empty() || updated => patch_hunks(patch),
            _ => hunks(original.as_deref().unwrap_or_default(), &content),
        };
        let by_hand = result.and_then(|result| result.user_modified()).unwrap_or(false);
        self.diff(path, created, hunks, by_hand)
    }

    pub(super) fn edit(&self) -> CallSummary {
        let path = self.string("file_path");
        let edit = self.of::<EditResult<'_>>();
        let found = match self.edit_patch() {
            Some(patch) => patch_hunks(patch),
            // Without a result only the proposed edit is known, not its position.
            None => match self.input.and_then(|input| input.get("edits")) {
                Some(edits) => edits.items().flat_map(proposed_hunks).collect(),
                None => self.input.into_iter().flat_map(proposed_hunks).collect(),
            },
        };
        let by_hand = edit.and_then(|result| result.user_modified()).unwrap_or(false);
        self.diff(path, false, found, by_hand)
    }

    /// Returns the patch in the result of an edit, unless it is empty.
    fn edit_patch(&self) -> Option<List<'a, PatchHunk<'a>>> {
        let patch = self.of::<EditResult<'_>>().and_then(|result| result.structured_patch());
        let patch =
            patch.or_else(|| self.of::<MultiEditResult<'_>>().and_then(|result| result.structured_patch()));
        patch.filter(|patch| !patch.is_empty())
    }

    /// Returns the numbers of added and removed lines of the diff of [`CardInput::summary`], if it is one.
    pub(crate) fn changed_lines(&self) -> Option<(usize, usize)> {
        // Most edits have a patch, whose lines are counted without a comparison of words.
        if let Some(patch) = self.edit_patch().filter(|_| matches!(self.name, "Edit" | "MultiEdit")) {
            return Some(Hunk::patch_counts(patch.iter()));
        }
        match self.summary().card {
            ToolCard::Diff { hunks, .. } => Some(Hunk::counts(&hunks)),
            _ => None,
        }
    }

    pub(super) fn notebook(&self) -> CallSummary {
        let path = self.string("notebook_path");
        let result = self.of::<NotebookEditResult<'_>>();
        let source = result.and_then(|result| result.new_source());
        let source = source.map_or_else(|| self.string("new_source"), Cow::into_owned);
        let removed = self.string("edit_mode") == "delete";
        let hunks = if removed { Vec::new() } else { hunks("", &source) };
        let mut summary = self.diff(path, false, hunks, false);
        if !self.failed {
            // The log does not contain the previous text of the cell.
            let cell = match self.string("cell_id") {
                id if id.is_empty() => "cell".to_owned(),
                id => format!("cell {id}"),
            };
            summary.gist = match &*self.string("edit_mode") {
                "insert" => format!("new cell, {}", plural(source.lines().count() as u64, "line")),
                "delete" => format!("{cell} deleted"),
                _ => format!("{cell} replaced, {}", plural(source.lines().count() as u64, "line")),
            };
        }
        summary
    }

    pub(super) fn diff(&self, path: String, created: bool, hunks: Vec<Hunk>, by_hand: bool) -> CallSummary {
        let (added, removed) = Hunk::counts(&hunks);
        let gist = match (self.failed, created) {
            (true, _) => String::new(),
            (_, true) => format!("new, {}", plural(added as u64, "line")),
            (_, false) if added + removed == 0 => "unchanged".to_owned(),
            _ => line_change(added, removed),
        };
        CallSummary { subject: path.clone(), card: ToolCard::Diff { path, created, hunks, by_hand }, gist }
    }
}

/// Strips the line numbers from the text of a file as it was sent to the model, and returns the first
/// number.
fn strip_line_numbers(text: &str) -> (String, Option<u64>) {
    let split = |line: &str| -> Option<(u64, usize)> {
        let digits = line.trim_start_matches(' ');
        let rest = digits.trim_start_matches(|ch: char| ch.is_ascii_digit());
        let number = digits[..digits.len() - rest.len()].parse().ok()?;
        Some((number, line.len() - rest.strip_prefix(['→', '\t'])?.len()))
    };
    let (mut out, mut first) = (String::with_capacity(text.len()), None);
    for line in text.lines() {
        // Text after the file, such as a reminder, has no numbers.
        let Some((number, start)) = split(line) else { break };
        first.get_or_insert(number);
        out.push_str(&line[start..]);
        out.push('\n');
    }
    // The empty string after a final newline is numbered, too.
    if out.ends_with("\n\n") {
        out.pop();
    }
    if first.is_none() { (text.to_owned(), None) } else { (out, first) }
}

fn patch_hunks(patch: List<'_, PatchHunk<'_>>) -> Vec<Hunk> {
    patch.iter().map(Hunk::from_patch).collect()
}

/// Returns the hunks of a proposed edit, with unknown positions.
fn proposed_hunks(edit: Json<'_>) -> Vec<Hunk> {
    let text = |key: &str| edit.get(key).and_then(Json::as_str).unwrap_or_default();
    let mut found = hunks(&text("old_string"), &text("new_string"));
    for hunk in &mut found {
        (hunk.old_start, hunk.new_start) = (0, 0);
    }
    found
}
