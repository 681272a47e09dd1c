//! Lines that other programs append to a log while an operation changes it. They are copied to the installed
//! version.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use memchr::{memchr_iter, memrchr};

use super::ReceiptFile;
use super::displaced::Slot;
use super::executor::Executor;
use super::version::{Version, VersionFile};
use crate::append::{line_start, lock, wait_for_newline, write_at_end};
use crate::disk::write_all;

/// The part of the appended bytes that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Up to the last newline: the last line may not be complete yet.
    WholeLines,
    /// Everything, except an incomplete line that the other file has, perhaps complete, after this offset.
    AllAfter(u64),
}

impl Executor<'_> {
    /// Appends the lines of `old` that end after `offset` to `new`. Returns the offset up to which `old` was
    /// copied.
    ///
    /// If `offset` is inside a line, another program has completed that line: all of it is appended.
    pub(super) fn append_rest(
        &mut self,
        old: &mut File,
        offset: u64,
        new: &mut File,
        extent: Extent,
    ) -> io::Result<u64> {
        let (start, mut lines) = read_lines_from(old, offset)?;
        let whole = whole_length(&lines);
        let is_left_out = match extent {
            Extent::WholeLines => true,
            Extent::AllAfter(base) => has_line_with(&read_lines_from(new, base)?.1, &lines[whole..]),
        };
        if is_left_out {
            lines.truncate(whole);
        }
        let end = start + lines.len() as u64;
        if end <= offset {
            return Ok(offset);
        }
        if !lines.is_empty() {
            self.append_lines(new, &lines)?;
            self.foreign_bytes += (end - offset).min(lines.len() as u64);
        }
        Ok(end)
    }

    /// Appends lines of another program to a locked file. If its last line stays incomplete and one of them
    /// begins with it, that line is completed first.
    fn append_lines(&self, new: &mut File, added: &[u8]) -> io::Result<()> {
        let is_complete = wait_for_newline(self.fs, new)?;
        if !is_complete {
            let end = new.metadata()?.len();
            let start = line_start(new, end)?;
            let part = read_from(new, start)?;
            let mut at = 0;
            for line in lines(added) {
                let (before, after) = (&added[..at], &added[at + line.len()..]);
                // A line without its end must stay the last one.
                if let Some(rest) = line.strip_prefix(&*part)
                    && (line.ends_with(b"\n") || before.is_empty())
                {
                    return write_all(self.fs, new, &[rest, before, after].concat());
                }
                at += line.len();
            }
        }
        write_at_end(self.fs, new, added, !is_complete).map(drop).map_err(|failed| failed.error)
    }

    /// Whether the file at `path` has all lines of `part`.
    pub(super) fn has_lines_of(&self, path: &Path, part: &Path) -> io::Result<bool> {
        let (_, present) = read_lines_from(&mut self.fs.open(path)?, 0)?;
        let (_, lines) = read_lines_from(&mut self.fs.open(part)?, 0)?;
        Ok(missing_lines(&lines, &present).is_empty())
    }

    /// Appends the lines of `old` that are missing in `successor`; in both files only the lines after the
    /// given offsets are compared. Returns the offset up to which `old` was copied.
    pub(super) fn append_missing_lines(
        &mut self,
        old: &Path,
        base: u64,
        successor: &Path,
        successor_base: u64,
    ) -> io::Result<u64> {
        let (start, added) = read_lines_from(&mut self.fs.open(old)?, base)?;
        let mut new = self.fs.open_append(successor)?;
        lock(&new)?;
        let (_, present) = read_lines_from(&mut new, successor_base)?;
        let missing = missing_lines(&added, &present);
        if !missing.is_empty() {
            self.append_lines(&mut new, &missing)?;
            self.fs.sync(&new, successor)?;
            self.foreign_bytes += missing.len() as u64;
        }
        Ok(start + added.len() as u64)
    }

    /// Appends the whole lines that a program wrote to the backup of the target version after it was
    /// displaced. A part of a line stays in the backup: the current file may have the same part.
    pub(super) fn append_late_backup_lines(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
        wanted: &VersionFile<'_>,
        new: &mut File,
    ) -> io::Result<()> {
        let backup = self.backup_path(i, file, Slot::Version(to));
        if self.fs.metadata(&backup)?.is_none() {
            return Ok(());
        }
        let (_, mut late) = read_lines_from(&mut self.fs.open(&backup)?, wanted.length())?;
        late.truncate(whole_length(&late));
        let (_, present) = read_lines_from(new, wanted.length())?;
        let missing = missing_lines(&late, &present);
        if !missing.is_empty() {
            self.append_lines(new, &missing)?;
            self.foreign_bytes += missing.len() as u64;
        }
        Ok(())
    }
}

/// Reads the lines of a file that end after `offset`, and returns where they begin: before `offset` if that
/// is inside a line that has grown since. A line that has only got its newline since has not grown.
pub(super) fn read_lines_from(file: &mut File, offset: u64) -> io::Result<(u64, Vec<u8>)> {
    if file.metadata()?.len() <= offset {
        return Ok((offset, read_from(file, offset)?));
    }
    let start = line_start(file, offset)?;
    let mut lines = read_from(file, start)?;
    let known = (offset - start) as usize;
    if known > 0 && lines.get(known) == Some(&b'\n') {
        lines.drain(..=known);
        return Ok((offset + 1, lines));
    }
    Ok((start, lines))
}

/// The length of the lines of a text that have a newline.
pub(super) fn whole_length(lines: &[u8]) -> usize {
    memrchr(b'\n', lines).map_or(0, |newline| newline + 1)
}

/// Reads a file from `offset` to its end.
pub(super) fn read_from(file: &mut File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the lines of `added` that are missing in `present`, each as often as it is missing. An incomplete
/// last line is not missing if `present` has the line that it became.
fn missing_lines(added: &[u8], present: &[u8]) -> Vec<u8> {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for line in lines(present) {
        *counts.entry(line.strip_suffix(b"\n").unwrap_or(line)).or_default() += 1;
    }
    let mut missing = Vec::new();
    for line in lines(added) {
        match counts.get_mut(line.strip_suffix(b"\n").unwrap_or(line)) {
            Some(count) if *count > 0 => *count -= 1,
            _ if !line.ends_with(b"\n") && has_line_with(present, line) => {}
            _ => missing.extend(line),
        }
    }
    missing
}

/// Whether a line of a text begins with this part.
fn has_line_with(text: &[u8], part: &[u8]) -> bool {
    lines(text).any(|line| line.starts_with(part))
}

/// Splits a text into lines with their newlines.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', text).map(|newline| newline + 1).chain([text.len()]);
    ends.filter_map(move |end| {
        let line = &text[std::mem::replace(&mut start, end)..end];
        (!line.is_empty()).then_some(line)
    })
}
