//! Text files: encoding, line ends, bytes that are not text, and atomic replacement.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::output::Failure;
use crate::paths::errno_text;

/// The text of a file with line feeds as line ends, and the encoding and line ends to write it back with.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    /// The text. A byte order mark stays its first character; invalid bytes are U+FFFD.
    pub(crate) text: String,
    encoding: Encoding,
    line_end: LineEnd,
    /// Invalid byte sequences, each with its offset in `text`, in order.
    invalid: Vec<(usize, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16Le,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Lf,
    CrLf,
}

/// The characters that are looked at to find the line end of a file.
const LINE_END_SAMPLE: usize = 4096;

impl TextFile {
    /// Returns an empty file, for a file that is created.
    pub(crate) fn empty() -> Self {
        Self { text: String::new(), encoding: Encoding::Utf8, line_end: LineEnd::Lf, invalid: Vec::new() }
    }

    /// Reads a file of at most `max` bytes.
    pub(crate) fn read(path: &Path, max: u64) -> io::Result<Self> {
        let mut bytes = Vec::new();
        open_regular(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Ok(Self::decode(&bytes))
    }

    fn decode(bytes: &[u8]) -> Self {
        if let Some(rest) = bytes.strip_prefix(&[0xFF, 0xFE]) {
            let units: Vec<_> =
                rest.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            let text = format!("\u{FEFF}{}", String::from_utf16_lossy(&units));
            let line_end = LineEnd::of(&text);
            return Self {
                text: text.replace("\r\n", "\n"),
                encoding: Encoding::Utf16Le,
                line_end,
                invalid: Vec::new(),
            };
        }
        let mut text = String::with_capacity(bytes.len());
        let mut invalid = Vec::new();
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                invalid.push((text.len(), chunk.invalid().to_vec()));
                text.push('\u{FFFD}');
            }
        }
        let line_end = LineEnd::of(&text);
        let mut file = Self { text, encoding: Encoding::Utf8, line_end, invalid };
        file.remove_carriage_returns();
        file
    }

    fn remove_carriage_returns(&mut self) {
        if !self.text.contains("\r\n") {
            return;
        }
        let mut removed = self.text.match_indices("\r\n").map(|(at, _)| at).peekable();
        let mut before = 0;
        for (offset, _) in &mut self.invalid {
            while removed.peek().is_some_and(|at| at < offset) {
                removed.next();
                before += 1;
            }
            *offset -= before;
        }
        drop(removed);
        self.text = self.text.replace("\r\n", "\n");
    }

    /// Returns the bytes of the file with each range replaced. The ranges are sorted and do not overlap.
    ///
    /// Bytes outside of the ranges stay as they are, also those that are not valid text.
    pub(crate) fn encode_replaced(&self, ranges: &[(std::ops::Range<usize>, &str)]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len());
        let mut at = 0;
        for (range, replacement) in ranges {
            self.push_original(&mut out, at..range.start);
            self.push_text(&mut out, replacement);
            at = range.end;
        }
        self.push_original(&mut out, at..self.text.len());
        out
    }

    fn push_original(&self, out: &mut Vec<u8>, range: std::ops::Range<usize>) {
        let mut at = range.start;
        for (offset, bytes) in self.invalid.iter().filter(|(offset, _)| range.contains(offset)) {
            self.push_text(out, &self.text[at..*offset]);
            out.extend_from_slice(bytes);
            at = offset + '\u{FFFD}'.len_utf8();
        }
        self.push_text(out, &self.text[at..range.end]);
    }

    fn push_text(&self, out: &mut Vec<u8>, text: &str) {
        let text = match self.line_end {
            LineEnd::Lf => std::borrow::Cow::Borrowed(text),
            LineEnd::CrLf => std::borrow::Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n")),
        };
        self.push_encoded(out, &text);
    }

    fn push_encoded(&self, out: &mut Vec<u8>, text: &str) {
        match self.encoding {
            Encoding::Utf8 => out.extend_from_slice(text.as_bytes()),
            Encoding::Utf16Le => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
        }
    }

    /// Returns the bytes of a new content in the encoding of this file, with its line ends as given.
    pub(crate) fn encode_new(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        self.push_encoded(&mut out, text);
        out
    }
}

impl LineEnd {
    fn of(text: &str) -> Self {
        let sample = &text[..text.floor_char_boundary(LINE_END_SAMPLE)];
        let crlf = sample.matches("\r\n").count();
        let lf = sample.matches('\n').count() - crlf;
        if crlf > lf { Self::CrLf } else { Self::Lf }
    }
}

/// Opens a regular file for reading, without waiting for a FIFO.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if !metadata.is_file() && path != Path::new("/dev/null") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

/// Replaces or creates a file atomically: a temporary file in the same folder, then a rename. Keeps the mode
/// of a file that exists. Missing folders are created.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(|error| {
        let missing = parent.ancestors().find(|dir| dir.exists() || dir.parent().is_some_and(Path::exists));
        Failure::Failed(errno_text(&error, "mkdir", Some(missing.unwrap_or(parent))))
    })?;
    let link = fs::symlink_metadata(path);
    if link.as_ref().is_ok_and(fs::Metadata::is_symlink) {
        return Err(Failure::Failed(format!(
            "Refusing to write through symlink: {}. Resolve the symlink and pass the real target path explicitly.",
            path.display()
        )));
    }
    let failed = |error: &io::Error| Failure::Failed(errno_text(error, "open", Some(path)));
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(failed(&io::Error::from(io::ErrorKind::NotFound)));
    }
    if let Ok(metadata) = &link {
        if metadata.is_dir() {
            return Err(failed(&io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if !metadata.is_file() {
            return Err(Failure::Failed(format!("Not a regular file: {}", path.display())));
        }
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".threadline-").suffix(".tmp");
    let mode = link.as_ref().ok().map(fs::Metadata::permissions);
    let new_mode = mode.clone().or_else(default_permissions);
    if let Some(mode) = &new_mode {
        builder.permissions(mode.clone());
    }
    let mut file = builder.tempfile_in(parent).map_err(|error| failed(&error))?;
    file.write_all(bytes).map_err(|error| failed(&error))?;
    if let Some(mode) = mode {
        // The umask does not apply to the mode of a file that exists.
        fs::set_permissions(file.path(), mode).map_err(|error| failed(&error))?;
        keep_owner(&link, file.path());
    }
    file.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}

#[cfg(unix)]
fn default_permissions() -> Option<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(fs::Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn default_permissions() -> Option<fs::Permissions> {
    None
}

/// Gives the new file the owner of the old one, if it differs and this process may do so.
#[cfg(unix)]
fn keep_owner(old: &io::Result<fs::Metadata>, new: &Path) {
    use std::os::unix::fs::{MetadataExt, chown};
    let Ok(old) = old else { return };
    let differs = fs::metadata(new).is_ok_and(|new| (new.uid(), new.gid()) != (old.uid(), old.gid()));
    if differs {
        let _ = chown(new, Some(old.uid()), Some(old.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &io::Result<fs::Metadata>, _: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_outside_of_a_replacement_are_kept() {
        let file = TextFile::decode(b"caf\xe9\r\nok\r\n\xffend\r\n");
        assert_eq!(file.text, "caf\u{FFFD}\nok\n\u{FFFD}end\n");
        let at = file.text.find("ok").unwrap();
        assert_eq!(file.encode_replaced(&[(at..at + 2, "fine\nx")]), b"caf\xe9\r\nfine\r\nx\r\n\xffend\r\n");
    }

    #[test]
    fn the_more_frequent_line_end_is_used() {
        let file = TextFile::decode(b"a\r\nb\nc\n");
        assert_eq!(file.encode_replaced(&[]), b"a\nb\nc\n");
        let file = TextFile::decode(b"a\r\nb\r\nc\n");
        assert_eq!(file.encode_replaced(&[]), b"a\r\nb\r\nc\r\n");
    }

    #[test]
    fn utf_16_is_written_back_with_its_mark() {
        let bytes: Vec<u8> = "\u{FEFF}h\u{e9}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let file = TextFile::decode(&bytes);
        assert_eq!(file.text, "\u{FEFF}h\u{e9}\n");
        assert_eq!(file.encode_replaced(&[]), bytes);
        assert_eq!(file.encode_new("a"), b"a\0");
    }

    #[test]
    fn a_write_keeps_the_mode_and_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sh");
        fs::write(&path, "old").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            write_atomically(&path, b"new").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn missing_folders_are_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.txt");
        write_atomically(&path, b"x").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }
}
