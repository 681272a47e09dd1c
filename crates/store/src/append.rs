//! Appends whole lines to a session file.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::disk::{FileSystem, RealFileSystem};
use crate::identity::FileId;
use crate::private_file::create_temporary;
use crate::snapshot::FileSnapshot;

/// Why lines could not be appended, or a file could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// One of the lines contains a newline. Nothing was written.
    #[error("line {line_no} to write contains a newline")]
    ContainsNewline {
        /// The number of the line, counted from 1.
        line_no: usize,
    },

    /// The file is not the expected one. Nothing was written.
    #[error("`{}` was replaced or rewritten", .path.display())]
    Replaced {
        /// The path of the file.
        path: PathBuf,
    },

    /// The file does not exist, or could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendOutcome {
    /// The byte offset of the first new line.
    pub byte_offset: u64,
    /// Whether the file ended in an incomplete line, which was terminated first.
    pub closed_torn_line: bool,
}

/// The number of attempts to lock a file that is being replaced meanwhile. A program that replaces it in a
/// loop may win many times; the limit only prevents an endless loop.
pub(crate) const LOCK_ATTEMPTS: usize = 1000;

/// How often to wait for the end of an incomplete line while another program writes, 50 ms each time. On a
/// busy machine, many lines may end while this process does not run.
const NEWLINE_WAITS: usize = 40;

/// Appends `lines`, given without newlines, in a single write under a lock: all of them or, on a full disk,
/// none.
///
/// A missing file is not created. With `expect`, a file that was replaced, truncated or rewritten since the
/// snapshot is not changed; one that has only grown is accepted.
pub fn append<L: AsRef<[u8]>>(
    path: impl AsRef<Path>,
    lines: impl IntoIterator<Item = L>,
    expect: Option<&FileSnapshot>,
) -> Result<AppendOutcome, AppendError> {
    let path = path.as_ref();
    let bytes = join(lines)?;
    let mut file = open_locked(&RealFileSystem, path)?;
    if let Some(snapshot) = expect
        && !snapshot.has_same_beginning(&mut file)?
    {
        return Err(AppendError::Replaced { path: path.to_owned() });
    }
    write_lines(&RealFileSystem, &mut file, &bytes).map_err(|failed| failed.error.into())
}

/// Waits while the last line is incomplete and another program writes to the file: if it writes a line in
/// several parts, it completes it meanwhile. Returns whether the last line is complete.
pub(crate) fn wait_for_newline(fs: &dyn FileSystem, file: &mut File) -> io::Result<bool> {
    for _ in 0..NEWLINE_WAITS {
        let before = file.metadata()?;
        // Few calls: another program may begin its next line before the write.
        if fs.wait_until(&mut || ends_with_newline(file))? {
            return Ok(true);
        }
        // A process that crashed leaves an incomplete line for good.
        if file.metadata()?.len() == before.len() && !fs.is_written_elsewhere(&before) {
            return Ok(false);
        }
    }
    Ok(false)
}

/// A write of lines that was not completed.
#[derive(Debug)]
pub(crate) struct PartialWrite {
    pub(crate) error: io::Error,
    /// The range of bytes that was written and could not be removed, because another program has written
    /// after it.
    pub(crate) left: Option<(u64, u64)>,
}

impl From<io::Error> for PartialWrite {
    fn from(error: io::Error) -> Self {
        Self { error, left: None }
    }
}

/// Appends whole lines to a locked file in a single write. An incomplete last line is terminated, if no other
/// program completes it soon.
pub(crate) fn write_lines(
    fs: &dyn FileSystem,
    file: &mut File,
    lines: &[u8],
) -> Result<AppendOutcome, PartialWrite> {
    let is_complete = lines.is_empty() || wait_for_newline(fs, file)?;
    write_at_end(fs, file, lines, !is_complete)
}

/// Appends lines in a single write, with `closes_torn_line` after a newline.
pub(crate) fn write_at_end(
    fs: &dyn FileSystem,
    file: &mut File,
    lines: &[u8],
    closes_torn_line: bool,
) -> Result<AppendOutcome, PartialWrite> {
    let bytes = match closes_torn_line {
        true => Cow::Owned([b"\n", lines].concat()),
        false => Cow::Borrowed(lines),
    };
    if bytes.is_empty() {
        file.seek(SeekFrom::End(0))?;
    }
    let start = match fs.write(file, &bytes)? {
        written if written == bytes.len() => file.stream_position()? - written as u64,
        written => complete_write(fs, file, &bytes, written)?,
    };
    // A program that ignores locks may have written first, so the position is only known after the write.
    Ok(AppendOutcome { byte_offset: start + u64::from(closes_torn_line), closed_torn_line: closes_torn_line })
}

/// Completes a partial write, or removes the part that was written. Returns the offset where it begins.
///
/// The file is truncated only if the disk is full, when other programs cannot write to it either. Otherwise
/// the part stays in the file and is returned in the error.
fn complete_write(
    fs: &dyn FileSystem,
    file: &mut File,
    bytes: &[u8],
    written: usize,
) -> Result<u64, PartialWrite> {
    // The file position is after the bytes written, wherever the end of the file was.
    let end = file.stream_position()?;
    let start = end - written as u64;
    let left = (written > 0).then_some((start, end));
    let error = match fs.write(file, &bytes[written..]) {
        Ok(more) if written + more == bytes.len() && file.stream_position()? == end + more as u64 => {
            return Ok(start);
        }
        Ok(_) => io::Error::new(io::ErrorKind::StorageFull, "only some of the lines could be written"),
        Err(error) => {
            let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            if is_full && file.metadata()?.len() == end {
                fs.truncate(file, start)?;
                return Err(PartialWrite { error, left: None });
            }
            error
        }
    };
    Err(PartialWrite { error, left })
}

/// Creates a session file with `lines`, given without newlines. Only its owner can read it (0600 on Unix).
///
/// Missing directories are created. The file appears atomically with all its lines; an existing file is an
/// error ([`io::ErrorKind::AlreadyExists`]) and is not changed.
pub fn create_new<L: AsRef<[u8]>>(
    path: impl AsRef<Path>,
    lines: impl IntoIterator<Item = L>,
) -> Result<(), AppendError> {
    let path = path.as_ref();
    let bytes = join(lines)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    fs_err::create_dir_all(folder)?;
    let mut file = create_temporary(folder)?;
    file.write_all(&bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|failed| {
        let message = format!("failed to create `{}`: {}", path.display(), failed.error);
        io::Error::new(failed.error.kind(), message)
    })?;
    Ok(())
}

/// Joins the lines, with a newline after each.
pub(crate) fn join<L: AsRef<[u8]>>(lines: impl IntoIterator<Item = L>) -> Result<Vec<u8>, AppendError> {
    let mut bytes = Vec::new();
    for (i, line) in lines.into_iter().enumerate() {
        if memchr::memchr(b'\n', line.as_ref()).is_some() {
            return Err(AppendError::ContainsNewline { line_no: i + 1 });
        }
        bytes.extend(line.as_ref());
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Opens the file for appending and locks it. Guarantees that the locked file is the one that has this name
/// now.
pub(crate) fn open_locked(fs: &dyn FileSystem, path: &Path) -> Result<File, AppendError> {
    for _ in 0..LOCK_ATTEMPTS {
        let file = fs.open_append(path)?;
        lock(&file)?;
        // The previous owner of the lock may have replaced the file.
        if FileId::of(&fs_err::metadata(path)?) == FileId::of(&file.metadata()?) {
            return Ok(file);
        }
    }
    Err(AppendError::Replaced { path: path.to_owned() })
}

/// Acquires the lock of the file, which is released when the file is closed. File systems without locks are
/// accepted.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    match file.lock() {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        locked => locked,
    }
}

/// Whether a file is empty or its last line is complete.
fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    match file.seek(SeekFrom::End(-1)) {
        // An empty file has no byte before its end.
        Err(_) if file.metadata()?.len() == 0 => Ok(true),
        Err(error) => Err(error),
        Ok(_) => {
            let mut last = [0];
            Ok(file.read(&mut last)? == 1 && last == [b'\n'])
        }
    }
}

/// Whether the byte before `end` is not a newline, so that the line before it is incomplete.
pub(crate) fn is_incomplete_at(file: &mut (impl Read + Seek), end: u64) -> io::Result<bool> {
    if end == 0 {
        return Ok(false);
    }
    let mut last = Vec::new();
    file.seek(SeekFrom::Start(end - 1))?;
    file.take(1).read_to_end(&mut last)?;
    Ok(last.first().is_some_and(|last| *last != b'\n'))
}

/// Returns where the line that contains the byte before `end` begins; `end` if that byte is a newline.
pub(crate) fn line_start(file: &mut (impl Read + Seek), end: u64) -> io::Result<u64> {
    const BLOCK: u64 = 1 << 13;
    let (mut block, mut from) = (Vec::new(), end);
    while from > 0 {
        let length = from.min(BLOCK);
        from -= length;
        block.clear();
        file.seek(SeekFrom::Start(from))?;
        file.take(length).read_to_end(&mut block)?;
        if let Some(newline) = memchr::memrchr(b'\n', &block) {
            return Ok(from + newline as u64 + 1);
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs_err::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn lines_are_appended_after_terminating_an_incomplete_one() {
        for (before, lines, after, torn) in [
            ("", &["a"][..], "a\n", false),
            ("x\n", &["a", "b"], "x\na\nb\n", false),
            ("x\nto", &["a"], "x\nto\na\n", true),
            ("to", &[], "to", false),
        ] {
            let (_dir, path) = file_with(before);
            let appended = append(&path, lines, None).unwrap();
            assert_eq!(fs_err::read_to_string(&path).unwrap(), after);
            assert_eq!(appended.closed_torn_line, torn);
            assert_eq!(appended.byte_offset, before.len() as u64 + u64::from(torn));
        }
    }

    #[test]
    fn the_start_of_a_line_is_found_in_any_block() {
        let long = "x".repeat(20_000);
        let text = format!("a\n\nbc\n{long}");
        let mut file = io::Cursor::new(text.as_bytes());
        for (end, start) in [(0, 0), (1, 0), (2, 2), (3, 3), (4, 3), (6, 6), (7, 6), (20_006, 6)] {
            assert_eq!(line_start(&mut file, end).unwrap(), start, "{end}");
        }
        assert_eq!(line_start(&mut io::Cursor::new(long.as_bytes()), 20_000).unwrap(), 0);
    }

    #[test]
    fn lines_with_a_newline_are_rejected() {
        let (_dir, path) = file_with("x\n");
        let error = append(&path, ["a", "b\nc"], None).unwrap_err();
        assert!(matches!(error, AppendError::ContainsNewline { line_no: 2 }), "{error}");
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "x\n");
        assert!(matches!(
            create_new(path.with_extension("new"), ["\n"]),
            Err(AppendError::ContainsNewline { .. })
        ));
    }

    #[test]
    fn a_missing_file_is_not_created() {
        let (_dir, path) = file_with("x\n");
        fs_err::remove_file(&path).unwrap();
        let error = append(&path, ["a"], None).unwrap_err();
        assert!(
            matches!(&error, AppendError::Io(error) if error.kind() == io::ErrorKind::NotFound),
            "{error}"
        );
        assert!(!path.exists());
    }

    #[test]
    fn an_unexpected_file_is_not_changed() {
        let (_dir, path) = file_with("x\ny\n");
        let snapshot = FileSnapshot::take(&path).unwrap();
        append(&path, ["grown"], Some(&snapshot)).unwrap();
        append(&path, ["again"], Some(&snapshot)).unwrap();
        fs_err::write(&path, "X\ny\ngrown\n").unwrap();
        assert!(matches!(append(&path, ["no"], Some(&snapshot)), Err(AppendError::Replaced { .. })));
        let other = path.with_extension("other");
        fs_err::write(&other, "x\ny\ngrown\n").unwrap();
        fs_err::rename(&other, &path).unwrap();
        assert!(matches!(append(&path, ["no"], Some(&snapshot)), Err(AppendError::Replaced { .. })));
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "x\ny\ngrown\n");
    }

    #[test]
    fn a_new_file_is_created_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("projects/-p/s.jsonl");
        create_new(&path, ["a", "b"]).unwrap();
        let error = create_new(&path, ["c"]).unwrap_err();
        assert!(
            matches!(&error, AppendError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists),
            "{error}"
        );
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "a\nb\n");
        assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
