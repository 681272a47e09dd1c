//! The files of a folder as they were at a scan.

use std::borrow::Cow;
use std::fs::Metadata;

use super::content_store::ContentHash;
use super::git_index::GitId;

/// What tells two states of a file apart. Times are in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileStamp {
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) ctime: i64,
    pub(super) inode: u64,
    pub(super) mode: u32,
}

impl FileStamp {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            size: metadata.len(),
            mtime: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            mode: metadata.mode(),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn of(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let mtime = since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        let mode = if metadata.permissions().readonly() { 0o444 } else { 0o644 };
        Self { size: metadata.len(), mtime, ctime: mtime, inode: 0, mode }
    }

    /// Returns whether a file may have been changed after this stamp was taken without changing it: times of
    /// files advance in steps of some milliseconds, and of seconds on some file systems.
    pub(super) fn is_racy(&self, taken_at: i64) -> bool {
        let is_coarse = self.mtime % 1_000_000_000 == 0 && self.ctime % 1_000_000_000 == 0;
        let step = if is_coarse { 2_000_000_000 } else { 20_000_000 };
        self.mtime.max(self.ctime) >= taken_at.saturating_sub(step)
    }
}

/// Why the text of a file is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmittedText {
    /// The name or the text is that of a secret.
    Secret,
    /// The file is too large.
    TooLarge,
    /// The text could not be written.
    Failed,
}

/// The content of a file, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KnownContent {
    /// It was not read.
    Unread,
    /// It is stored.
    Stored(ContentHash),
    /// Only its hash is kept.
    HashOnly(ContentHash, OmittedText),
    /// It is that of a git object.
    Git(GitId),
    /// The file is a symbolic link to this path.
    Link(Vec<u8>),
}

/// A file in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexedFile<'a> {
    pub(super) name: Cow<'a, [u8]>,
    pub(super) stamp: FileStamp,
    pub(super) content: KnownContent,
    /// The file is in the index although git ignores it: it is tracked, or the session names it.
    pub(super) is_named: bool,
}

/// A folder in the index. Files are sorted by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexedFolder<'a> {
    /// The path below the root, with slashes; empty for the root.
    pub(super) path: Cow<'a, [u8]>,
    pub(super) stamp: FileStamp,
    pub(super) files: Vec<IndexedFile<'a>>,
}

/// The files of a folder as they were at a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileIndex<'a> {
    pub(super) root: Cow<'a, [u8]>,
    /// When the scan began.
    pub(super) taken_at: i64,
    /// The stamp of the file with ignore rules in git's folder.
    pub(super) excludes: FileStamp,
    /// The length of the session's log up to which named files were looked for.
    pub(super) log_offset: u64,
    /// Named files that do not exist.
    pub(super) absent: Vec<Vec<u8>>,
    /// The folders, sorted by path.
    pub(super) folders: Vec<IndexedFolder<'a>>,
}

/// The length of a stamp, which every folder and file has.
const STAMP_LENGTH: usize = 36;

const MAGIC: &[u8] = b"threadline files 1\n";

impl<'a> FileIndex<'a> {
    /// Returns the number of files.
    pub(super) fn len(&self) -> usize {
        self.folders.iter().map(|folder| folder.files.len()).sum()
    }

    /// Returns the folder with a path below the root.
    pub(super) fn folder(&self, path: &[u8]) -> Option<&IndexedFolder<'a>> {
        let at = self.folders.binary_search_by(|folder| (*folder.path).cmp(path)).ok()?;
        Some(&self.folders[at])
    }

    /// Returns the file with a path below the root.
    pub(super) fn file(&self, path: &[u8]) -> Option<&IndexedFile<'a>> {
        let (folder, name) = split_path(path);
        let folder = self.folder(folder)?;
        let at = folder.files.binary_search_by(|file| (*file.name).cmp(name)).ok()?;
        Some(&folder.files[at])
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.len() * 112);
        bytes.extend_from_slice(MAGIC);
        put_bytes(&mut bytes, &self.root);
        bytes.extend_from_slice(&self.taken_at.to_le_bytes());
        put_stamp(&mut bytes, &self.excludes);
        bytes.extend_from_slice(&self.log_offset.to_le_bytes());
        put_length(&mut bytes, self.absent.len());
        self.absent.iter().for_each(|path| put_bytes(&mut bytes, path));
        put_length(&mut bytes, self.folders.len());
        for folder in &self.folders {
            put_bytes(&mut bytes, &folder.path);
            put_stamp(&mut bytes, &folder.stamp);
            put_length(&mut bytes, folder.files.len());
            for file in &folder.files {
                put_bytes(&mut bytes, &file.name);
                put_stamp(&mut bytes, &file.stamp);
                bytes.push(u8::from(file.is_named));
                put_content(&mut bytes, &file.content);
            }
        }
        bytes
    }

    /// Parses an index; `None` if it is malformed or of another version.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
        let root = Cow::Borrowed(reader.bytes()?);
        let (taken_at, excludes, log_offset) = (reader.number()?, reader.stamp()?, reader.number()?);
        let count = reader.length()?;
        let absent = (0..count).map(|_| Some(reader.bytes()?.to_vec())).collect::<Option<_>>()?;
        let count = reader.length()?;
        let mut folders = Vec::with_capacity(count.min(reader.0.len() / STAMP_LENGTH));
        for _ in 0..count {
            let (path, stamp, count) = (Cow::Borrowed(reader.bytes()?), reader.stamp()?, reader.length()?);
            let mut files = Vec::with_capacity(count.min(reader.0.len() / STAMP_LENGTH));
            for _ in 0..count {
                let (name, stamp) = (Cow::Borrowed(reader.bytes()?), reader.stamp()?);
                let is_named = reader.array::<1>()?[0] == 1;
                files.push(IndexedFile { name, stamp, is_named, content: reader.content()? });
            }
            folders.push(IndexedFolder { path, stamp, files });
        }
        Some(Self {
            root,
            taken_at: i64::from_le_bytes(taken_at),
            excludes,
            log_offset: u64::from_le_bytes(log_offset),
            absent,
            folders,
        })
    }
}

/// Splits a path into the folder and the name.
pub(super) fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'/', path) {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Joins a folder and a name below the root.
pub(super) fn join_path(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    put_length(bytes, value.len());
    bytes.extend_from_slice(value);
}

fn put_stamp(bytes: &mut Vec<u8>, stamp: &FileStamp) {
    bytes.extend_from_slice(&stamp.size.to_le_bytes());
    bytes.extend_from_slice(&stamp.mtime.to_le_bytes());
    bytes.extend_from_slice(&stamp.ctime.to_le_bytes());
    bytes.extend_from_slice(&stamp.inode.to_le_bytes());
    bytes.extend_from_slice(&stamp.mode.to_le_bytes());
}

fn put_content(bytes: &mut Vec<u8>, content: &KnownContent) {
    match content {
        KnownContent::Unread => bytes.push(0),
        KnownContent::Stored(hash) => {
            bytes.push(1);
            bytes.extend_from_slice(&hash.0);
        }
        KnownContent::HashOnly(hash, why) => {
            bytes.push(match why {
                OmittedText::Secret => 2,
                OmittedText::TooLarge => 3,
                OmittedText::Failed => 6,
            });
            bytes.extend_from_slice(&hash.0);
        }
        KnownContent::Git(id) => {
            bytes.push(4);
            bytes.extend_from_slice(id);
        }
        KnownContent::Link(target) => {
            bytes.push(5);
            put_bytes(bytes, target);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<[u8; 8]> {
        self.array()
    }

    /// Reads a number of bytes or items, each of which has at least one byte.
    fn length(&mut self) -> Option<usize> {
        let length = usize::try_from(u32::from_le_bytes(self.array()?)).ok()?;
        (length <= self.0.len()).then_some(length)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn stamp(&mut self) -> Option<FileStamp> {
        Some(FileStamp {
            size: u64::from_le_bytes(self.number()?),
            mtime: i64::from_le_bytes(self.number()?),
            ctime: i64::from_le_bytes(self.number()?),
            inode: u64::from_le_bytes(self.number()?),
            mode: u32::from_le_bytes(self.array()?),
        })
    }

    fn content(&mut self) -> Option<KnownContent> {
        Some(match self.array::<1>()?[0] {
            0 => KnownContent::Unread,
            1 => KnownContent::Stored(ContentHash(self.array()?)),
            2 => KnownContent::HashOnly(ContentHash(self.array()?), OmittedText::Secret),
            3 => KnownContent::HashOnly(ContentHash(self.array()?), OmittedText::TooLarge),
            4 => KnownContent::Git(self.array()?),
            5 => KnownContent::Link(self.bytes()?.to_vec()),
            6 => KnownContent::HashOnly(ContentHash(self.array()?), OmittedText::Failed),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> FileIndex<'static> {
        let stamp = FileStamp { size: 1, mtime: -2, ctime: 3, inode: u64::MAX, mode: 0o100_644 };
        let hash = ContentHash::of(b"x");
        let contents = [
            KnownContent::Unread,
            KnownContent::Stored(hash),
            KnownContent::HashOnly(hash, OmittedText::Secret),
            KnownContent::HashOnly(hash, OmittedText::TooLarge),
            KnownContent::HashOnly(hash, OmittedText::Failed),
            KnownContent::Git([7; 20]),
            KnownContent::Link(b"../x".to_vec()),
        ];
        let files = contents.into_iter().enumerate().map(|(at, content)| IndexedFile {
            name: format!("f{at}\u{e9}").into_bytes().into(),
            stamp,
            content,
            is_named: at == 1,
        });
        let folder = IndexedFolder { path: b"src"[..].into(), stamp, files: files.collect() };
        FileIndex {
            root: b"/w"[..].into(),
            taken_at: 5,
            excludes: stamp,
            log_offset: 9,
            absent: vec![b"a.log".to_vec()],
            folders: vec![IndexedFolder { path: b""[..].into(), stamp, files: Vec::new() }, folder],
        }
    }

    #[test]
    fn an_index_is_read_as_it_was_written() {
        let index = sample();
        let bytes = index.to_bytes();
        assert_eq!(FileIndex::parse(&bytes).as_ref(), Some(&index));
        assert!(index.file("src/f1\u{e9}".as_bytes()).unwrap().is_named);
        assert_eq!(index.file(b"src/none"), None);
        for length in 0..bytes.len() {
            assert_eq!(FileIndex::parse(&bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn a_stamp_near_the_time_of_the_scan_is_racy() {
        let at = |mtime, ctime| FileStamp { mtime, ctime, ..FileStamp::default() };
        let now = 1_700_000_000_123_456_789;
        assert!(at(now, now).is_racy(now) && at(now + 9, 1).is_racy(now));
        assert!(!at(now - 30_000_000, now - 30_000_000).is_racy(now));
        // A file system with times in seconds.
        assert!(at(1_699_999_999_000_000_000, 1_699_999_999_000_000_000).is_racy(now));
    }
}
