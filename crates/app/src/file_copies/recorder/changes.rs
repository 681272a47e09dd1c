//! One comparison of a folder.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use jiff::Timestamp;
use rayon::prelude::*;

use super::named::named_paths;
use super::{FileRecorder, RecordedCall, nanoseconds};
use crate::file_copies::call_log::{LoggedChange, LoggedContent};
use crate::file_copies::content_store::ContentHash;
use crate::file_copies::file_index::{
    FileIndex, FileStamp, IndexedFile, IndexedFolder, KnownContent, OmittedText, join_path, split_path,
};
use crate::file_copies::git_index::{GitId, GitIndex, git_folder};
use crate::file_copies::scan::{
    EntryKind, FileDifference, FileListing, FolderState, OpenFolder, ScanLimits, compare, os_path, stat,
};
use crate::file_copies::sensitive_name::is_sensitive_path;
use crate::git::{GitRunner, read_objects};

/// The largest text that is kept.
const MAX_TEXT: u64 = 1 << 20;

/// The largest file that is hashed.
const MAX_HASHED: u64 = 16 << 20;

/// How long texts that git does not have are copied when a folder is first seen.
const FIRST_COPY_TIME: Duration = Duration::from_millis(800);

/// The maximum number of objects that are read from git.
const MAX_OBJECTS: usize = 10_000;

/// The maximum number of named files that do not exist.
const MAX_ABSENT: usize = 256;

/// A folder to compare with an index.
pub(super) struct ScannedFolder<'r> {
    pub(super) recorder: &'r FileRecorder,
    pub(super) root: &'r Path,
    pub(super) call: &'r RecordedCall,
    pub(super) limits: ScanLimits,
    /// Changes after this time are left for the next comparison.
    pub(super) until: Option<i64>,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct FolderScan {
    pub(super) changes: Vec<LoggedChange>,
    /// Whether the session has compared the folder before.
    pub(super) has_previous: bool,
    /// Whether no change was left for later.
    pub(super) is_complete: bool,
    /// The new index, if it is another one.
    pub(super) index: Option<Vec<u8>>,
}

/// What is known of a file before the comparison.
#[derive(Clone, Debug)]
enum EarlierFile {
    /// There was none.
    Absent,
    /// The file was not watched.
    Unwatched,
    Known(KnownContent, FileStamp),
}

/// A file that may have changed.
#[derive(Debug)]
struct Candidate {
    /// The numbers of the folder and the file in the index.
    at: (usize, usize),
    path: Vec<u8>,
    earlier: EarlierFile,
    now: Option<(EntryKind, FileStamp)>,
}

/// A candidate that was read.
#[derive(Debug)]
struct ReadFile {
    at: (usize, usize),
    /// The state for the index; `None` if there is no file.
    now: Option<(KnownContent, FileStamp)>,
    change: Option<LoggedChange>,
}

impl ScannedFolder<'_> {
    /// Compares the folder with its previous state, which may be that of another session.
    pub(super) fn scan(&self, previous: FileIndex<'_>, has_previous: bool) -> Option<FolderScan> {
        let taken_at = nanoseconds(Timestamp::now());
        let is_first = previous.folders.is_empty();
        let (named, log_offset) =
            named_paths(self.call, self.root, previous.log_offset * u64::from(has_previous));
        let mut work =
            FolderWork { index: previous, candidates: Vec::new(), is_changed: !has_previous, later: 0 };
        let excludes = excludes_stamp(self.root);
        if is_first {
            work.list_all(self, false, &HashSet::default())?;
            work.add_tracked(self);
        } else {
            let states = compare(&work.index, self.root, self.limits)?;
            let rules = work.changed_rules(&states, excludes != work.index.excludes, self.root);
            work.apply(self, states, !rules.is_empty())?;
            if !rules.is_empty() {
                work.list_all(self, true, &rules)?;
            }
        }
        work.add_named(self, &named);
        let candidates = work.candidates;
        let read = match has_previous {
            true => self.read(candidates),
            false => self.read_first(candidates, taken_at),
        };
        let is_changed = work.is_changed || !read.is_empty();
        let mut index = work.index;
        let mut changes = apply_read(&mut index, read);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        if is_changed {
            index.root = self.root.as_os_str().as_encoded_bytes().to_vec().into();
            (index.taken_at, index.excludes, index.log_offset) = (taken_at, excludes, log_offset);
        }
        let index = is_changed.then(|| index.to_bytes());
        if !has_previous {
            changes.clear();
        }
        Some(FolderScan { changes, has_previous, is_complete: work.later == 0 && !is_first, index })
    }

    /// Reads the candidates, and returns them with their changes. Texts that cannot be read in time are not
    /// known.
    fn read(&self, candidates: Vec<Candidate>) -> Vec<ReadFile> {
        let objects = self.objects(&candidates);
        let read = |candidate: Candidate| {
            let Candidate { at, path, earlier, now } = candidate;
            let name = String::from_utf8_lossy(&path).into_owned();
            let earlier = match earlier {
                EarlierFile::Known(KnownContent::Git(id), stamp) => {
                    let object = objects.get(&id).filter(|object| object.len() as u64 == stamp.size);
                    let content = object.map_or(KnownContent::Unread, |object| self.keep(&path, object));
                    EarlierFile::Known(content, stamp)
                }
                earlier => earlier,
            };
            let now = now.map(|(kind, stamp)| match Instant::now() < self.limits.until {
                true => self.read_file(&path, kind, stamp),
                false => (KnownContent::Unread, stamp),
            });
            let change = change(name, &earlier, now.as_ref());
            ReadFile { at, now, change }
        };
        candidates.into_par_iter().map(read).collect()
    }

    /// Reads the objects of git that files had before they changed.
    fn objects(&self, candidates: &[Candidate]) -> HashMap<GitId, Vec<u8>> {
        let id = |candidate: &Candidate| match &candidate.earlier {
            EarlierFile::Known(KnownContent::Git(id), stamp) if stamp.size <= MAX_TEXT => Some(*id),
            _ => None,
        };
        let ids: HashMap<String, GitId> =
            candidates.iter().filter_map(id).take(MAX_OBJECTS).map(|id| (hex(&id), id)).collect();
        if ids.is_empty() {
            return HashMap::default();
        }
        let git = GitRunner::new(self.limits.until.saturating_duration_since(Instant::now()));
        let names: Vec<String> = ids.keys().cloned().collect();
        let objects = read_objects(&git, self.root, &names);
        objects.into_iter().filter_map(|(name, object)| Some((*ids.get(&name)?, object))).collect()
    }

    /// Secures the texts of a folder that the session sees for the first time: those that git has are only
    /// noted, others are copied as far as time permits, the newest first.
    fn read_first(&self, mut candidates: Vec<Candidate>, taken_at: i64) -> Vec<ReadFile> {
        let git = GitIndex::read(self.root, self.recorder.home.as_deref());
        let until = Instant::now() + FIRST_COPY_TIME;
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.now.map(|(_, stamp)| stamp.mtime)));
        let read = |candidate: Candidate| {
            let Candidate { at, path, now, .. } = candidate;
            let now = now.map(|(kind, stamp)| {
                let clean = (kind == EntryKind::File && !stamp.is_racy(taken_at))
                    .then(|| git.clean_object(&path, &stamp))
                    .flatten();
                match clean {
                    Some(id) => (KnownContent::Git(id), stamp),
                    None if Instant::now() < until => self.read_file(&path, kind, stamp),
                    None => (KnownContent::Unread, stamp),
                }
            });
            ReadFile { at, now, change: None }
        };
        candidates.into_par_iter().map(read).collect()
    }

    /// Reads a file, and keeps its text if it may be kept.
    fn read_file(&self, path: &[u8], kind: EntryKind, stamp: FileStamp) -> (KnownContent, FileStamp) {
        let (folder, name) = split_path(path);
        let Some((folder, _)) = OpenFolder::open(self.root, folder) else {
            return (KnownContent::Unread, stamp);
        };
        if kind == EntryKind::Link {
            let target = folder.read_link(name);
            return (target.map_or(KnownContent::Unread, KnownContent::Link), stamp);
        }
        let Some(file) = folder.open_file(name) else { return (KnownContent::Unread, stamp) };
        let before = file.metadata().map_or(stamp, |metadata| FileStamp::of(&metadata));
        if before.size > MAX_HASHED {
            return (KnownContent::Unread, before);
        }
        let mut bytes = Vec::new();
        if (&file).take(MAX_HASHED).read_to_end(&mut bytes).is_err() {
            return (KnownContent::Unread, before);
        }
        let after = file.metadata().map_or(before, |metadata| FileStamp::of(&metadata));
        // A file that is being written is read again next time.
        let stamp = if before == after { before } else { FileStamp::default() };
        (self.keep(path, &bytes), stamp)
    }

    /// Keeps a text, unless it is a secret or too large.
    fn keep(&self, path: &[u8], bytes: &[u8]) -> KnownContent {
        let hash = ContentHash::of(bytes);
        if is_sensitive_path(&String::from_utf8_lossy(path)) {
            return KnownContent::HashOnly(hash, OmittedText::Secret);
        }
        if bytes.len() as u64 > MAX_TEXT {
            return KnownContent::HashOnly(hash, OmittedText::TooLarge);
        }
        if self.recorder.contents.contains(&hash) {
            return KnownContent::Stored(hash);
        }
        if !self.recorder.rules().find(&String::from_utf8_lossy(bytes)).is_empty() {
            return KnownContent::HashOnly(hash, OmittedText::Secret);
        }
        match self.recorder.contents.add(bytes) {
            Ok(hash) => KnownContent::Stored(hash),
            Err(_) => KnownContent::HashOnly(hash, OmittedText::Failed),
        }
    }
}

/// An index that is being brought up to date, and the files to read for that.
struct FolderWork<'a> {
    index: FileIndex<'a>,
    candidates: Vec<Candidate>,
    is_changed: bool,
    /// The number of changes that are left for later.
    later: usize,
}

impl FolderWork<'_> {
    /// Returns the folders below which other files may be ignored than before.
    fn changed_rules(&self, states: &[FolderState], has_excludes: bool, root: &Path) -> HashSet<Vec<u8>> {
        let mut rules = HashSet::default();
        if has_excludes {
            rules.insert(Vec::new());
        }
        for (folder, state) in self.index.folders.iter().zip(states) {
            let Some(stamp) = state.stamp else { continue };
            let is_rules = |(at, _): &(usize, FileDifference)| &*folder.files[*at].name == b".gitignore";
            let is_known = || folder.files.iter().any(|file| &*file.name == b".gitignore");
            let is_new = || {
                let path = join_path(&folder.path, b".gitignore");
                stamp != folder.stamp && !is_known() && stat(root, &path).is_some()
            };
            if state.differences.iter().any(is_rules) || is_new() {
                rules.insert(folder.path.to_vec());
            }
        }
        rules
    }

    /// Takes over the differences of known files, and looks for new files in folders that changed. With
    /// `keeps_names`, no new files are looked for.
    fn apply(
        &mut self,
        scanned: &ScannedFolder<'_>,
        states: Vec<FolderState>,
        keeps_names: bool,
    ) -> Option<()> {
        let mut listing = FileListing::default();
        for (folder_at, state) in states.into_iter().enumerate() {
            let folder = &self.index.folders[folder_at];
            let Some(stamp) = state.stamp else {
                let gone =
                    folder.files.iter().enumerate().map(|(at, _)| (at, FileDifference::Gone)).collect();
                self.differences(scanned, folder_at, gone, None);
                self.index.folders[folder_at].stamp.mode = REMOVED;
                self.is_changed = true;
                continue;
            };
            let is_ignored = folder.stamp == IGNORED_FOLDER;
            let is_other = !is_ignored && (stamp != folder.stamp || stamp.is_racy(self.index.taken_at));
            let later = self.later;
            if is_other && !keeps_names {
                self.is_changed = true;
                let path = self.index.folders[folder_at].path.to_vec();
                for below in listing.add_folder(scanned.root, &path) {
                    if self.index.folder(&below).is_none()
                        && !listing.add_below(scanned.root, &below, scanned.limits)
                    {
                        return None;
                    }
                }
            }
            self.differences(scanned, folder_at, state.differences, Some(stamp));
            if later == self.later && !is_ignored {
                self.index.folders[folder_at].stamp = stamp;
            }
        }
        self.add_listed(scanned, listing, None);
        Some(())
    }

    /// Makes candidates of the differences of a folder, whose stamp is `stamp` now.
    fn differences(
        &mut self,
        scanned: &ScannedFolder<'_>,
        folder_at: usize,
        differences: Vec<(usize, FileDifference)>,
        stamp: Option<FileStamp>,
    ) {
        let folder = &self.index.folders[folder_at];
        for (file_at, difference) in differences {
            let file = &folder.files[file_at];
            let (now, changed_at) = match difference {
                FileDifference::Changed(kind, stamp) => (Some((kind, stamp)), stamp.ctime),
                FileDifference::Racy(kind) => (Some((kind, file.stamp)), 0),
                FileDifference::Gone => (None, stamp.map_or(0, |stamp| stamp.ctime)),
            };
            if scanned.until.is_some_and(|until| changed_at > until) {
                self.later += 1;
                continue;
            }
            self.candidates.push(Candidate {
                at: (folder_at, file_at),
                path: join_path(&folder.path, &file.name),
                earlier: EarlierFile::Known(file.content.clone(), file.stamp),
                now,
            });
        }
    }

    /// Lists all files. With `forgets`, those that are ignored now are removed from the index. Below the
    /// folders `unknown`, new ones may have been ignored before.
    fn list_all(
        &mut self,
        scanned: &ScannedFolder<'_>,
        forgets: bool,
        unknown: &HashSet<Vec<u8>>,
    ) -> Option<()> {
        let mut listing = FileListing::default();
        if !listing.add_below(scanned.root, b"", scanned.limits) {
            return None;
        }
        self.is_changed = true;
        if forgets {
            let listed: HashSet<Vec<u8>> = listing
                .folders
                .iter()
                .flat_map(|(folder, names)| names.iter().map(|name| join_path(folder, name)))
                .collect();
            let is_gone: HashSet<(usize, usize)> =
                self.candidates.iter().filter(|file| file.now.is_none()).map(|file| file.at).collect();
            let mut forgotten = HashSet::default();
            for (folder_at, folder) in self.index.folders.iter().enumerate() {
                for (file_at, file) in folder.files.iter().enumerate() {
                    let at = (folder_at, file_at);
                    let is_listed = listed.contains(&join_path(&folder.path, &file.name));
                    if !is_listed && !file.is_named && !is_gone.contains(&at) {
                        forgotten.insert(at);
                    }
                }
            }
            self.candidates.retain(|file| !forgotten.contains(&file.at));
            for (folder_at, file_at) in forgotten {
                // Marked, and removed with the files that are gone.
                self.index.folders[folder_at].files[file_at].stamp.mode = REMOVED;
            }
        }
        self.add_listed(scanned, listing, Some(unknown));
        Some(())
    }

    /// Adds listed files that are not in the index.
    fn add_listed(
        &mut self,
        scanned: &ScannedFolder<'_>,
        listing: FileListing,
        unknown: Option<&HashSet<Vec<u8>>>,
    ) {
        let by_path: HashMap<Vec<u8>, usize> =
            self.index.folders.iter().enumerate().map(|(at, folder)| (folder.path.to_vec(), at)).collect();
        for (path, names) in listing.folders {
            let Some((opened, stamp)) = OpenFolder::open(scanned.root, &path) else { continue };
            let folder_at = by_path.get(&path).copied().unwrap_or_else(|| {
                let path = path.clone().into();
                self.index.folders.push(IndexedFolder { path, stamp, files: Vec::new() });
                self.index.folders.len() - 1
            });
            let is_unknown = unknown.is_some_and(|rules| rules.iter().any(|rules| is_below(&path, rules)));
            let folder = &self.index.folders[folder_at];
            let known: HashSet<Vec<u8>> = folder.files.iter().map(|file| file.name.to_vec()).collect();
            let later = self.later;
            for name in names.into_iter().filter(|name| !known.contains(name)) {
                let Some((kind, stamp)) = opened.stat(&name) else { continue };
                let earlier = if is_unknown { EarlierFile::Unwatched } else { EarlierFile::Absent };
                self.add(scanned, folder_at, name, (kind, stamp), earlier, false);
            }
            if later != self.later {
                // To be listed again.
                self.index.folders[folder_at].stamp = FileStamp::default();
            } else if self.index.folders[folder_at].stamp == IGNORED_FOLDER {
                self.index.folders[folder_at].stamp = stamp;
            }
        }
    }

    /// Adds a file to the index, to be read.
    fn add(
        &mut self,
        scanned: &ScannedFolder<'_>,
        folder_at: usize,
        name: Vec<u8>,
        now: (EntryKind, FileStamp),
        earlier: EarlierFile,
        is_named: bool,
    ) {
        if scanned.until.is_some_and(|until| now.1.ctime > until) {
            self.later += 1;
            return;
        }
        let folder = &mut self.index.folders[folder_at];
        let path = join_path(&folder.path, &name);
        let content = KnownContent::Unread;
        folder.files.push(IndexedFile { name: name.into(), stamp: now.1, content, is_named });
        self.candidates.push(Candidate {
            at: (folder_at, folder.files.len() - 1),
            path,
            earlier,
            now: Some(now),
        });
    }

    /// Adds the files that are tracked although they are ignored.
    fn add_tracked(&mut self, scanned: &ScannedFolder<'_>) {
        let git = GitIndex::read(scanned.root, scanned.recorder.home.as_deref());
        let known = self.paths();
        let missing: HashSet<Vec<u8>> =
            git.paths().filter(|path| !known.contains(*path)).map(<[u8]>::to_vec).collect();
        self.add_paths(scanned, missing, &HashSet::default());
    }

    /// Adds the files that the session names and git ignores.
    fn add_named(&mut self, scanned: &ScannedFolder<'_>, named: &HashSet<Vec<u8>>) {
        let absent: HashSet<Vec<u8>> = self.index.absent.iter().cloned().collect();
        let named: HashSet<Vec<u8>> = named.iter().chain(&absent).cloned().collect();
        let known = self.paths_of(&named);
        let named = named.into_iter().filter(|path| !known.contains(path)).collect();
        let mut missing = self.add_paths(scanned, named, &absent);
        // Files that are gone may come back.
        let is_gone =
            |file: &&Candidate| file.now.is_none() && self.index.folders[file.at.0].files[file.at.1].is_named;
        missing.extend(self.candidates.iter().filter(is_gone).map(|file| file.path.clone()));
        missing.truncate(MAX_ABSENT);
        if missing != self.index.absent {
            self.index.absent = missing;
            self.is_changed = true;
        }
    }

    /// Adds files by their paths, as far as they exist, and returns the other paths. Those in `absent` did not
    /// exist before.
    fn add_paths(
        &mut self,
        scanned: &ScannedFolder<'_>,
        paths: HashSet<Vec<u8>>,
        absent: &HashSet<Vec<u8>>,
    ) -> Vec<Vec<u8>> {
        let mut missing = Vec::new();
        for path in paths {
            let Some(now) = stat(scanned.root, &path) else {
                // A folder is no file that could be created.
                if scanned.root.join(os_path(&path)).symlink_metadata().is_err() {
                    missing.push(path);
                }
                continue;
            };
            let (folder, name) = split_path(&path);
            let at = self.index.folders.iter().position(|known| *known.path == *folder);
            let folder_at = at.unwrap_or_else(|| {
                let (path, stamp) = (folder.to_vec().into(), IGNORED_FOLDER);
                self.index.folders.push(IndexedFolder { path, stamp, files: Vec::new() });
                self.index.folders.len() - 1
            });
            let earlier = if absent.contains(&path) { EarlierFile::Absent } else { EarlierFile::Unwatched };
            self.add(scanned, folder_at, name.to_vec(), now, earlier, true);
        }
        missing.sort();
        missing
    }

    fn paths(&self) -> HashSet<Vec<u8>> {
        let folders = self.index.folders.iter();
        folders
            .flat_map(|folder| folder.files.iter().map(|file| join_path(&folder.path, &file.name)))
            .collect()
    }

    /// Returns those of some paths that are in the index.
    fn paths_of(&self, paths: &HashSet<Vec<u8>>) -> HashSet<Vec<u8>> {
        let folders: HashSet<&[u8]> = paths.iter().map(|path| split_path(path).0).collect();
        let folders = self.index.folders.iter().filter(|folder| folders.contains(&*folder.path));
        let known =
            folders.flat_map(|folder| folder.files.iter().map(|file| join_path(&folder.path, &file.name)));
        known.filter(|path| paths.contains(path)).collect()
    }
}

/// The mode of files and folders to remove from the index.
const REMOVED: u32 = u32::MAX;

/// The stamp of a folder in which only named files are watched: it is not searched for new files.
const IGNORED_FOLDER: FileStamp = FileStamp { size: u64::MAX, mtime: 0, ctime: 0, inode: 0, mode: 0 };

/// Returns whether a folder is another one or below it.
fn is_below(path: &[u8], folder: &[u8]) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Returns the stamp of the ignore rules in git's folder.
fn excludes_stamp(root: &Path) -> FileStamp {
    let path = git_folder(root).map(|git| git.join("info/exclude"));
    path.and_then(|path| path.metadata().ok()).map_or_else(FileStamp::default, |file| FileStamp::of(&file))
}

fn hex(id: &GitId) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::with_capacity(40), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Puts what was read into the index, and returns the changes.
fn apply_read(index: &mut FileIndex<'_>, read: Vec<ReadFile>) -> Vec<LoggedChange> {
    let mut changes = Vec::new();
    for ReadFile { at: (folder, file), now, change } in read {
        changes.extend(change);
        let file = &mut index.folders[folder].files[file];
        match now {
            Some((content, stamp)) => (file.content, file.stamp) = (content, stamp),
            None => file.stamp.mode = REMOVED,
        }
    }
    for folder in &mut index.folders {
        folder.files.retain(|file| file.stamp.mode != REMOVED);
        if !folder.files.is_sorted_by(|a, b| a.name < b.name) {
            folder.files.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    index.folders.retain(|folder| folder.stamp.mode != REMOVED);
    index.folders.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// Returns the change of a file, if it has changed or may have.
fn change(
    path: String,
    earlier: &EarlierFile,
    now: Option<&(KnownContent, FileStamp)>,
) -> Option<LoggedChange> {
    let before = match earlier {
        EarlierFile::Absent => LoggedContent::Absent,
        EarlierFile::Unwatched => LoggedContent::Unknown,
        EarlierFile::Known(content, stamp) => logged(content, stamp),
    };
    let after = now.map_or(LoggedContent::Absent, |(content, stamp)| logged(content, stamp));
    let is_same = match (&before, &after, earlier, now) {
        // A file that was not read, and has not changed.
        (LoggedContent::Unknown, _, EarlierFile::Known(_, before), Some((_, after))) if before == after => {
            true
        }
        // Neither content is known.
        (LoggedContent::Unknown, LoggedContent::Unknown, EarlierFile::Known(_, before), Some((_, after))) => {
            (before.size, before.mtime, before.inode) == (after.size, after.mtime, after.inode)
        }
        (LoggedContent::Unknown, ..) | (_, LoggedContent::Unknown, ..) => false,
        (LoggedContent::File { hash: a, mode: m, .. }, LoggedContent::File { hash: b, mode: n, .. }, ..) => {
            a == b && m == n
        }
        (before, after, ..) => before == after,
    };
    (!is_same).then_some(LoggedChange { path, before, after })
}

fn logged(content: &KnownContent, stamp: &FileStamp) -> LoggedContent {
    let file = |hash: &ContentHash, omitted| LoggedContent::File {
        hash: *hash,
        length: stamp.size,
        mode: stamp.mode & 0o7777,
        omitted,
    };
    match content {
        KnownContent::Unread | KnownContent::Git(_) => LoggedContent::Unknown,
        KnownContent::Stored(hash) => file(hash, None),
        KnownContent::HashOnly(hash, why) => file(hash, Some(*why)),
        KnownContent::Link(target) => {
            LoggedContent::Link { target: String::from_utf8_lossy(target).into_owned() }
        }
    }
}
