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
use crate::append::{is_incomplete_at, lock, write_lines};
use crate::disk::write_all;

/// How much of the appended bytes is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Up to the last newline: the last line may not be complete yet.
    WholeLines,
    /// Everything.
    All,
}

impl Executor<'_> {
    /// Appends the bytes of `old` from `offset` on to `new`. Returns the offset up to which `old` was copied.
    pub(super) fn append_rest(
        &mut self,
        old: &mut File,
        offset: u64,
        new: &mut File,
        extent: Extent,
    ) -> io::Result<u64> {
        let added = read_from(old, offset)?;
        let n = match extent {
            Extent::All => added.len(),
            Extent::WholeLines => memrchr(b'\n', &added).map_or(0, |newline| newline + 1),
        };
        if n == 0 {
            return Ok(offset);
        }
        let mut bytes = added;
        bytes.truncate(n);
        if is_incomplete_at(old, offset)? {
            // The rest of a line whose beginning is in the other file.
            write_all(self.fs, new, &bytes)?;
        } else {
            write_lines(self.fs, new, &bytes).map_err(|failed| failed.error)?;
        }
        self.foreign_bytes += n as u64;
        Ok(offset + n as u64)
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
        let mut old = self.fs.open(old)?;
        let added = read_from(&mut old, base)?;
        let mut new = self.fs.open_append(successor)?;
        lock(&new)?;
        let present = read_from(&mut new, successor_base)?;
        let missing = missing_lines(&added, &present);
        if !missing.is_empty() {
            write_lines(self.fs, &mut new, &missing).map_err(|failed| failed.error)?;
            self.fs.sync(&new)?;
            self.foreign_bytes += missing.len() as u64;
        }
        Ok(base + added.len() as u64)
    }

    /// Appends the lines that a program wrote to the backup of the wanted version after it was displaced.
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
        let late = read_from(&mut self.fs.open(&backup)?, wanted.length())?;
        let missing = missing_lines(&late, &read_from(new, wanted.length())?);
        if !missing.is_empty() {
            write_lines(self.fs, new, &missing).map_err(|failed| failed.error)?;
            self.foreign_bytes += missing.len() as u64;
        }
        Ok(())
    }
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
            _ if !line.ends_with(b"\n") && lines(present).any(|longer| longer.starts_with(line)) => {}
            _ => missing.extend(line),
        }
    }
    missing
}

/// Splits a text into lines with their newlines.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', text).map(|newline| newline + 1).chain([text.len()]);
    ends.filter_map(move |end| {
        let line = &text[std::mem::replace(&mut start, end)..end];
        (!line.is_empty()).then_some(line)
    })
}
