//! Hunks of unified diffs, applied to bytes in both directions.

use std::borrow::Cow;

use threadline_entry::lens::{List, PatchHunk};

use crate::content::FileBytes;

/// A hunk of a unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHunk {
    /// The first line of the old text that the hunk covers, counted from 1.
    pub old_start: u64,
    /// The first line of the new text that the hunk covers, counted from 1.
    pub new_start: u64,
    /// The lines, each prefixed with ` `, `+` or `-`. A line prefixed with `\` marks that the previous one
    /// has no newline.
    pub lines: Vec<String>,
}

/// The result of hunks that were applied to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) file: FileBytes,
    /// Whether the last line was added without a mark that it has no newline. Lists of changes do not always
    /// have that mark.
    pub(crate) ends_with_added_line: bool,
    /// Whether carriage returns are involved, which hunks do not always contain.
    pub(crate) has_returns: bool,
}

/// The number of unchanged lines before and after the changes of a hunk, in the hunks of Claude Code.
const CONTEXT_LINES: usize = 3;

/// Returns the hunks of a result. A hunk without its place cannot be applied, and is left out.
pub(crate) fn line_hunks(hunks: Option<List<'_, PatchHunk<'_>>>) -> Vec<LineHunk> {
    let hunk = |hunk: PatchHunk<'_>| {
        Some(LineHunk {
            old_start: hunk.old_start()?,
            new_start: hunk.new_start()?,
            lines: hunk.lines().into_iter().flat_map(|lines| lines.iter()).map(Cow::into_owned).collect(),
        })
    };
    hunks.into_iter().flat_map(|hunks| hunks.iter()).filter_map(hunk).collect()
}

impl LineHunk {
    /// Returns the hunk that undoes this one.
    fn reversed(&self) -> Self {
        let reverse = |line: &String| match line.split_at_checked(1) {
            Some(("+", line)) => format!("-{line}"),
            Some(("-", line)) => format!("+{line}"),
            _ => line.clone(),
        };
        Self {
            old_start: self.new_start,
            new_start: self.old_start,
            lines: self.lines.iter().map(reverse).collect(),
        }
    }

    /// Returns the numbers of unchanged lines before the first change and after the last one.
    fn context_lines(&self) -> [usize; 2] {
        let is_kept: Vec<bool> = self.terminated_lines().map(|(line, _)| line.starts_with(' ')).collect();
        let count = |lines: &mut dyn Iterator<Item = &bool>| lines.take_while(|is_kept| **is_kept).count();
        [count(&mut is_kept.iter()), count(&mut is_kept.iter().rev())]
    }

    /// Returns the lines with their signs, and whether each one ends with a newline.
    fn terminated_lines(&self) -> impl Iterator<Item = (&str, bool)> {
        let is_mark = |at: usize| self.lines.get(at).is_some_and(|line| line.starts_with('\\'));
        let lines = self.lines.iter().enumerate().filter(|(_, line)| !line.starts_with('\\'));
        lines.map(move |(at, line)| (&**line, !is_mark(at + 1)))
    }

    /// Returns whether the old text ends without a newline and the new one with it. After a resume, Claude Code
    /// compares with the text that it read before, without its last newline.
    pub(crate) fn adds_last_newline(&self) -> bool {
        let is_marked = |sign: char| {
            self.lines.windows(2).any(|pair| pair[0].starts_with(sign) && pair[1].starts_with('\\'))
        };
        is_marked('-') && !is_marked('+')
    }

    /// Returns whether the hunk says all of its change: whether the text ends with a newline, and which lines
    /// have carriage returns. `is_first` is true for a list that does not mark a missing newline.
    pub(crate) fn is_unambiguous(&self, is_first: bool) -> bool {
        let ends_with_change = self.lines.last().is_some_and(|line| line.starts_with(['+', '-']));
        let has_returns = self.lines.iter().any(|line| line.ends_with('\r'));
        !(has_returns || is_first && ends_with_change)
    }
}

/// Returns the lines of hunks with the given sign, joined to a text.
pub(crate) fn lines_with(sign: char, hunks: &[LineHunk]) -> String {
    let mut text = String::new();
    for (line, has_newline) in hunks.iter().flat_map(LineHunk::terminated_lines) {
        if let Some(line) = line.strip_prefix(sign) {
            text.push_str(line);
            text.push_str(if has_newline { "\n" } else { "" });
        }
    }
    text
}

/// Returns the text before hunks were applied. `None` if a context or added line does not match.
pub(crate) fn reverse_hunks(after: &FileBytes, hunks: &[LineHunk]) -> Option<Applied> {
    let reversed: Vec<LineHunk> = hunks.iter().map(LineHunk::reversed).collect();
    apply_hunks(after, &reversed)
}

/// Applies hunks to a file. `None` if a context or removed line does not match, if a hunk with fewer context
/// lines than usual is not at the beginning or the end of the file (then it is of another text), or if an
/// added line has replacement characters.
pub(crate) fn apply_hunks(before: &FileBytes, hunks: &[LineHunk]) -> Option<Applied> {
    let mut old = before.bytes.split_inclusive(|byte| *byte == b'\n').peekable();
    let mut out: Vec<u8> = Vec::with_capacity(before.bytes.len());
    let (mut at, mut ends_with_added_line, mut added_returns) = (0, false, false);
    for hunk in hunks {
        let start = hunk.old_start.saturating_sub(1);
        let [leading, trailing] = hunk.context_lines();
        if start < at || (leading < CONTEXT_LINES && start > 0) {
            return None;
        }
        for _ in at..start {
            out.extend_from_slice(old.next()?);
        }
        at = start;
        for (line, has_newline) in hunk.terminated_lines() {
            let (sign, line) = line.split_at_checked(1)?;
            if sign == "+" {
                if line.contains('\u{fffd}') {
                    return None;
                }
                added_returns |= line.ends_with('\r');
                let line = if before.is_shown { line.trim_end_matches('\r') } else { line };
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(if has_newline { b"\n" } else { b"" });
            } else {
                let found = old.next().filter(|found| is_line(found, line))?;
                at += 1;
                if sign == " " {
                    out.extend_from_slice(found);
                }
            }
            ends_with_added_line = sign == "+" && has_newline;
        }
        if trailing < CONTEXT_LINES && old.peek().is_some() {
            return None;
        }
    }
    ends_with_added_line &= old.peek().is_none();
    old.for_each(|line| out.extend_from_slice(line));
    let has_returns = !before.is_shown && (added_returns || before.bytes.contains(&b'\r'));
    let file = FileBytes { bytes: out.into(), is_shown: before.is_shown };
    Some(Applied { file, ends_with_added_line, has_returns })
}

/// Returns whether a line of a file is one of a hunk, which shows bytes that are not text as U+FFFD, and
/// not every carriage return.
fn is_line(found: &[u8], line: &str) -> bool {
    let found = found.strip_suffix(b"\n").unwrap_or(found);
    let found = found.strip_suffix(b"\r").unwrap_or(found);
    let line = line.strip_suffix('\r').unwrap_or(line);
    found == line.as_bytes() || (line.contains('\u{fffd}') && String::from_utf8_lossy(found) == line)
}
