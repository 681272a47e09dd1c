//! Patches in the texts of commands, split by file.

use crate::change::TextStep;
use crate::hunk::{LineHunk, lines_with};

/// Returns the files of a unified diff, with the step that it makes of each.
pub(crate) fn file_patches(
    text: &str,
    strip: usize,
    folder: &str,
    is_reverse: bool,
) -> Vec<(String, TextStep)> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(old) = line.strip_prefix("--- ")
            && let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ "))
        {
            files.push(FilePatch { old: path_in(old), new: path_in(new), ..FilePatch::default() });
            lines.next();
        } else if let Some(file) = files.last_mut() {
            file.add(line);
        }
    }
    files.into_iter().filter_map(|file| file.step(strip, folder, is_reverse)).collect()
}

#[derive(Default)]
struct FilePatch {
    old: String,
    new: String,
    hunks: Vec<LineHunk>,
    /// The lines of the old and the new text that the hunk still has.
    left: (u64, u64),
    is_broken: bool,
}

impl FilePatch {
    fn add(&mut self, line: &str) {
        if self.left == (0, 0) {
            if let Some((start, left)) = hunk_header(line) {
                self.hunks.push(LineHunk { old_start: start.0, new_start: start.1, lines: Vec::new() });
                self.left = left;
            } else if line.starts_with('\\')
                && let Some(hunk) = self.hunks.last_mut()
            {
                hunk.lines.push(line.to_owned());
            }
            return;
        }
        let (old, new) = match line.bytes().next() {
            Some(b' ') | None => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            _ => return self.is_broken = true,
        };
        self.left = (self.left.0.saturating_sub(old), self.left.1.saturating_sub(new));
        if let Some(hunk) = self.hunks.last_mut() {
            hunk.lines.push(if line.is_empty() { " ".to_owned() } else { line.to_owned() });
        }
    }

    fn step(self, strip: usize, folder: &str, is_reverse: bool) -> Option<(String, TextStep)> {
        let is_null = |path: &str| path == "/dev/null";
        let (old, new) = if is_reverse { (&self.new, &self.old) } else { (&self.old, &self.new) };
        let name = if is_null(new) { old } else { new };
        let name: Vec<&str> = name.split('/').skip(strip).collect();
        let path = format!("{}/{}", folder.trim_end_matches('/'), name.join("/"));
        let is_usable = !is_reverse && !self.is_broken && self.left == (0, 0);
        let step = match (is_null(old), is_null(new)) {
            (_, true) => TextStep::Remove,
            _ if !is_usable => TextStep::Unknown,
            (true, _) => TextStep::Write(lines_with('+', &self.hunks)),
            _ => TextStep::Patch(self.hunks),
        };
        (!name.is_empty()).then_some((path, step))
    }
}

/// Returns the path of a header line, without the time that may follow it.
fn path_in(header: &str) -> String {
    header.split('\t').next().unwrap_or(header).trim_end().to_owned()
}

/// Returns the first lines and the numbers of lines of a hunk.
fn hunk_header(line: &str) -> Option<((u64, u64), (u64, u64))> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let ((old_start, n_old), (new_start, n_new)) = (range(old)?, range(new)?);
    Some(((old_start, new_start), (n_old, n_new)))
}
