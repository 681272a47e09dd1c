//! The files that git knows to be as in its object store.

use std::path::{Path, PathBuf};

use foldhash::HashMap;
use threadline_store::read_file;

use super::file_index::FileStamp;

/// The id of a git object.
pub(super) type GitId = [u8; 20];

/// The index of a working tree.
#[derive(Debug, Default)]
pub(super) struct GitIndex {
    files: HashMap<Vec<u8>, TrackedFile>,
    /// When the index was written: files that were changed then may have another content.
    written: i64,
    /// Whether the objects have the bytes of the files. Filters of git can change them.
    has_exact_objects: bool,
}

#[derive(Clone, Copy, Debug)]
struct TrackedFile {
    mtime: i64,
    ctime: i64,
    size: u32,
    inode: u32,
    id: GitId,
    is_certain: bool,
}

/// Returns the folder with the index of a working tree.
pub(super) fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    // A file in further working trees and in submodules.
    let text = String::from_utf8(read_file(&git).ok()?).ok()?;
    Some(root.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Returns the folder with the settings that all working trees of a repository share.
fn common_folder(git: &Path) -> PathBuf {
    let common = read_file(&git.join("commondir")).ok().and_then(|text| String::from_utf8(text).ok());
    common.map_or_else(|| git.to_owned(), |common| git.join(common.trim()))
}

impl GitIndex {
    /// Reads the index of a working tree. It is empty if there is none, or if its format is another.
    pub(super) fn read(root: &Path, home: Option<&Path>) -> Self {
        Self::try_read(root, home).unwrap_or_default()
    }

    fn try_read(root: &Path, home: Option<&Path>) -> Option<Self> {
        let git = git_folder(root)?;
        let path = git.join("index");
        let written = FileStamp::of(&std::fs::symlink_metadata(&path).ok()?).mtime;
        let files = parse_index(&read_file(&path).ok()?)?;
        let common = common_folder(&git);
        let text = |path: PathBuf| read_file(&path).unwrap_or_default().to_ascii_lowercase();
        let mut settings = vec![text(common.join("config")), text(git.join("config.worktree"))];
        settings.extend(home.map(|home| text(home.join(".gitconfig"))));
        settings.extend(home.map(|home| text(home.join(".config/git/config"))));
        let has = |text: &[u8], word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
        let changes_files = ["autocrlf = t", "autocrlf=t", "attributesfile", "objectformat", "eol = crlf"];
        let attributes = [text(common.join("info/attributes")), text("/etc/gitattributes".into())];
        let attributes =
            attributes.into_iter().chain(home.map(|home| text(home.join(".config/git/attributes"))));
        let tracked = files.keys().filter(|path| path.ends_with(b".gitattributes"));
        let tracked = tracked.filter_map(|path| Some(text(root.join(std::str::from_utf8(path).ok()?))));
        let has_filter = attributes.chain(tracked).any(|text| may_filter(&text));
        let has_exact_objects =
            !has_filter && !settings.iter().any(|text| changes_files.iter().any(|word| has(text, word)));
        Some(Self { files, written, has_exact_objects })
    }

    /// Returns the paths of all files, with slashes.
    pub(super) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.files.keys().map(|path| &**path)
    }

    /// Returns the object with the content of a file, if git knows that the file has it. Changes of line ends
    /// are found by the length of the object.
    pub(super) fn clean_object(&self, path: &[u8], stamp: &FileStamp) -> Option<GitId> {
        let file = self.files.get(path).filter(|file| file.is_certain && self.has_exact_objects)?;
        let is_same = file.mtime == stamp.mtime
            && file.ctime == stamp.ctime
            && u64::from(file.size) == stamp.size
            && u64::from(file.inode) == stamp.inode & 0xffff_ffff;
        (is_same && stamp.mtime < self.written && stamp.ctime < self.written).then_some(file.id)
    }
}

/// Returns whether attributes may name a filter. A change of line ends alone changes the length, which is
/// checked later, unless all files get other ones.
fn may_filter(attributes: &[u8]) -> bool {
    ["filter", "ident", "encoding", "eol=crlf"]
        .iter()
        .any(|word| memchr::memmem::find(attributes, word.as_bytes()).is_some())
}

/// Parses an index of version 2, 3 or 4. `None` for an index that is split, and for other formats.
fn parse_index(bytes: &[u8]) -> Option<HashMap<Vec<u8>, TrackedFile>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4).filter(|version| bytes.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let count = number(8)?;
    let mut files = HashMap::default();
    let mut previous: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let nanoseconds = |at| Some(i64::from(number(at)?) * 1_000_000_000 + i64::from(number(at + 4)?));
        let flags = u16::from_be_bytes(bytes.get(at + 60..at + 62)?.try_into().ok()?);
        let is_extended = flags & 0x4000 != 0 && version > 2;
        let more =
            if is_extended { u16::from_be_bytes(bytes.get(at + 62..at + 64)?.try_into().ok()?) } else { 0 };
        let start = at + if is_extended { 64 } else { 62 };
        let path = if version == 4 {
            let (dropped, length) = read_varint(bytes.get(start..)?)?;
            let rest = bytes.get(start + length..)?;
            let end = memchr::memchr(0, rest)?;
            let kept = previous.len().checked_sub(dropped)?;
            let path = [&previous[..kept], &rest[..end]].concat();
            at = start + length + end + 1;
            path
        } else {
            let rest = bytes.get(start..)?;
            let end = memchr::memchr(0, rest)?;
            // Entries are padded to a multiple of eight bytes, with one zero at least.
            let length = (start - at + end + 8) & !7;
            let path = rest[..end].to_vec();
            at += length;
            path
        };
        let base = start - if is_extended { 64 } else { 62 };
        let mode = number(base + 24)?;
        // Neither in a conflict, nor to be ignored, nor added without content.
        let is_certain = flags & 0xb000 == 0 && more & 0x6000 == 0;
        if mode >> 12 == 0o10 {
            let file = TrackedFile {
                ctime: nanoseconds(base)?,
                mtime: nanoseconds(base + 8)?,
                inode: number(base + 20)?,
                size: number(base + 36)?,
                id: bytes.get(base + 40..base + 60)?.try_into().ok()?,
                is_certain,
            };
            files.insert(path.clone(), file);
        }
        previous = path;
    }
    // The extension of a split index: the other part is in another file.
    (bytes.get(at..at + 4) != Some(&b"link"[..])).then_some(files)
}

/// Reads a number in the encoding of git's offsets. Returns it with its length.
fn read_varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value = value << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}
