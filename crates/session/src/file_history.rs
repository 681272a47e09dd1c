//! Files as they were at a prompt: Claude Code's snapshots, joined with what the tools' own edits tell.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use threadline_entry::lens::{Backup, FileHistoryDelta, FileHistorySnapshot, Lens, Object};
use threadline_entry::{Entry, Kind};

use crate::agent::Family;
use crate::file_edit::{FileEdit, FileText};
use crate::session::Session;

/// What a session knows of the files it worked on, over its whole length.
#[derive(Clone, Debug, Default)]
pub struct FileHistory {
    root: Option<String>,
    /// By absolute path, what is known at which place of the main log, in order.
    files: BTreeMap<String, Vec<Known>>,
}

/// Something known of a file, at a place of the main log.
#[derive(Clone, Debug)]
struct Known {
    /// The prompt, or the line that an edit was done at.
    place: usize,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// The prompt's snapshot: the backup, or `None` if the file did not exist.
    Snapshot(Option<String>),
    Edit {
        before: FileText,
        after: FileText,
    },
}

/// A moment of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// When this line, a prompt, was written.
    Prompt(usize),
    /// After everything.
    End,
}

/// A file at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Its absolute path, as the session had it.
    pub path: String,
    /// What it held.
    pub content: FileContent,
    /// How we know.
    pub basis: Basis,
}

/// What a file held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// It did not exist.
    Absent,
    /// What is in a backup; if that is gone, what the edits in the log tell.
    Backup {
        /// The backup's file name.
        name: String,
        /// The text according to edits.
        edits: FileText,
    },
    /// What the edits in the log tell.
    Text(String),
    /// Nothing tells.
    Unknown,
}

/// How the content at a moment is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// From that very moment.
    Then,
    /// From before it: nothing in the log changed the file in between. The line.
    Before(usize),
    /// From after it, when the file was first looked at. The line.
    After(usize),
}

/// A file that a stretch of a session changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its absolute path.
    pub path: String,
    /// How many edits there were; where there is none, something else changed it: a command, a person.
    pub edits: usize,
}

impl FileHistory {
    /// Gathers what a session and its sub-agents tell.
    pub fn of(family: &Family) -> Self {
        let main = &family.main;
        let snapshots = snapshots(main);
        let root = root(main, &snapshots);
        let mut files: BTreeMap<String, Vec<Known>> = BTreeMap::new();
        for Snapshot { place, backups } in snapshots {
            for (path, tracked) in backups {
                let path = absolute(root.as_deref(), &path, tracked.real_parent_dir.as_deref());
                let known = Known { place, what: What::Snapshot(tracked.name) };
                files.entry(path).or_default().push(known);
            }
        }
        for FileEdit { agent, entry_idx, at, path, before, after, .. } in family.file_edits() {
            // What a sub-agent did stands in another log; time tells where in the main one it belongs.
            let place = match agent {
                None => entry_idx,
                Some(_) => at.map_or(0, |at| {
                    let not_later = |&idx: &usize| main.timestamp(idx).is_some_and(|then| then <= at);
                    (0..main.entries().len()).rev().find(not_later).unwrap_or(0)
                }),
            };
            files.entry(path).or_default().push(Known { place, what: What::Edit { before, after } });
        }
        for known in files.values_mut() {
            known.sort_by_key(|known| known.place);
        }
        Self { root, files }
    }

    /// The working directory that relative paths are below.
    pub fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Every file that is known of, as it was at a moment, by path.
    pub fn at(&self, at: At) -> Vec<FileState> {
        self.files.iter().map(|(path, known)| state(path, known, at)).collect()
    }

    /// What changed from the line `from` up to the line `to`, or to the end.
    pub fn changed(&self, from: usize, to: Option<usize>) -> Vec<ChangedFile> {
        let mut changed = Vec::new();
        for (path, known) in &self.files {
            let inside = |place: usize| place >= from && to.is_none_or(|to| place < to);
            let edits = known.iter().filter(|known| known.is_edit() && inside(known.place)).count();
            let at = |place: usize| known.iter().find(|known| known.place == place && !known.is_edit());
            let by_others = || {
                let (Some(before), Some(after)) = (at(from), to.and_then(at)) else { return false };
                !before.same_snapshot(after)
            };
            if edits > 0 || by_others() {
                changed.push(ChangedFile { path: path.clone(), edits });
            }
        }
        changed
    }
}

impl Known {
    fn is_edit(&self) -> bool {
        matches!(self.what, What::Edit { .. })
    }

    fn same_snapshot(&self, other: &Self) -> bool {
        matches!((&self.what, &other.what), (What::Snapshot(a), What::Snapshot(b)) if a == b)
    }
}

/// A file at a moment: by that prompt's snapshot, else by what happened to it last before, else by what happened
/// first after, for until then nothing had changed it. What lies beyond an edit of unknown text tells nothing.
fn state(path: &str, known: &[Known], at: At) -> FileState {
    let place = match at {
        At::Prompt(place) => place,
        At::End => usize::MAX,
    };
    let then = known.iter().find(|known| known.place == place && !known.is_edit());
    let before = || known.iter().rev().find(|known| known.place < place).filter(|known| known.tells_after());
    let after = || known.iter().find(|known| known.place >= place).filter(|known| known.tells_before());
    let found = then.map(|known| (known, Basis::Then));
    let found = found.or_else(|| before().map(|known| (known, Basis::Before(known.place))));
    let found = found.or_else(|| after().map(|known| (known, Basis::After(known.place))));
    let path = path.to_owned();
    let Some((found, basis)) = found else {
        return FileState { path, content: FileContent::Unknown, basis: Basis::Then };
    };
    let of_text = |text: &FileText| match text {
        FileText::Absent => FileContent::Absent,
        FileText::Text(text) => FileContent::Text(text.clone()),
        FileText::Unknown => FileContent::Unknown,
    };
    let content = match (&found.what, basis) {
        (What::Snapshot(None), _) => FileContent::Absent,
        (What::Snapshot(Some(name)), _) => {
            FileContent::Backup { name: name.clone(), edits: by_edits(known, found.place) }
        }
        (What::Edit { before, .. }, Basis::After(_)) => of_text(before),
        (What::Edit { after, .. }, _) => of_text(after),
    };
    FileState { path, content, basis }
}

impl Known {
    fn tells_after(&self) -> bool {
        !matches!(&self.what, What::Edit { after: FileText::Unknown, .. })
    }

    fn tells_before(&self) -> bool {
        !matches!(&self.what, What::Edit { before: FileText::Unknown, .. })
    }
}

/// What edits alone tell of a file whose snapshot is at a place: the text before the next edit, or after the last
/// one, unless the snapshots in between show that something else changed it.
fn by_edits(known: &[Known], place: usize) -> FileText {
    let same = |from: usize, to: usize| {
        let snapshots = || known.iter().filter(|known| !known.is_edit());
        let here = snapshots().find(|known| known.place == place);
        let mut between = snapshots().filter(|known| (from..=to).contains(&known.place));
        here.is_some_and(|here| between.all(|known| known.same_snapshot(here)))
    };
    let edits = || {
        known.iter().filter_map(|known| match &known.what {
            What::Edit { before, after } => Some((known.place, before, after)),
            What::Snapshot(_) => None,
        })
    };
    let next = edits().find(|(at, ..)| *at >= place).filter(|(at, ..)| same(place, *at));
    let last = edits().take_while(|(at, ..)| *at < place).last().filter(|(at, ..)| same(*at, place));
    let told = [next.map(|(_, before, _)| before), last.map(|(.., after)| after)];
    let told = told.into_iter().flatten().find(|text| **text != FileText::Unknown);
    told.cloned().unwrap_or(FileText::Unknown)
}

/// The files at one prompt.
struct Snapshot {
    /// The prompt's line; where that is missing, the snapshot's own.
    place: usize,
    backups: BTreeMap<String, Tracked>,
}

/// Where a file's content is kept.
struct Tracked {
    name: Option<String>,
    real_parent_dir: Option<String>,
}

/// The snapshots of a log, each whole: updates and deltas of a prompt's snapshot are folded into it.
fn snapshots(session: &Session) -> Vec<Snapshot> {
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let mut by_message: FxHashMap<String, usize> = FxHashMap::default();
    for (idx, entry) in session.entries().iter().enumerate() {
        let Some((message_id, backups)) = tracked(entry) else { continue };
        let at = *by_message.entry(message_id).or_insert_with_key(|message_id| {
            let place = session.find(message_id).unwrap_or(idx);
            snapshots.push(Snapshot { place, backups: BTreeMap::new() });
            snapshots.len() - 1
        });
        snapshots[at].backups.extend(backups);
    }
    snapshots
}

/// The prompt that a line of file history is about, and what the line says.
fn tracked(entry: &Entry) -> Option<(String, Vec<(String, Tracked)>)> {
    let tracked = |backup: Backup<'_>| Tracked {
        name: backup.backup_file_name().map(Into::into),
        real_parent_dir: backup.real_parent_dir().map(Into::into),
    };
    match entry.kind() {
        Kind::FileHistorySnapshot => {
            let line: FileHistorySnapshot<'_> = entry.lens()?;
            let snapshot = line.snapshot()?;
            // Of an update, the line's own id is that of the call; the snapshot's is the prompt's.
            let message_id = snapshot.message_id().or_else(|| line.message_id())?;
            let files = snapshot.tracked_file_backups()?.members();
            let files = files
                .filter(|(_, backup)| backup.is_object())
                .map(|(path, backup)| (path.name().into_owned(), tracked(Backup::over(Object::new(backup)))));
            Some((message_id.into_owned(), files.collect()))
        }
        Kind::FileHistoryDelta => {
            let line: FileHistoryDelta<'_> = entry.lens()?;
            let message_id = line.snapshot_message_id().or_else(|| line.message_id())?;
            let path = line.tracking_path()?.into_owned();
            Some((message_id.into_owned(), vec![(path, tracked(line.backup()?))]))
        }
        _ => None,
    }
}

/// The working directory that a session's relative paths are below. A backup is named after the absolute path
/// of its file, which tells which of the directories in the log it was; else it is the first.
fn root(session: &Session, snapshots: &[Snapshot]) -> Option<String> {
    let mut dirs: Vec<String> = Vec::new();
    for entry in session.entries() {
        if let Some(cwd) = entry.get("cwd").and_then(|cwd| cwd.as_str())
            && !dirs.iter().any(|dir| **dir == *cwd)
        {
            dirs.push(cwd.into_owned());
        }
    }
    let backups = snapshots.iter().flat_map(|snapshot| &snapshot.backups);
    let sample = backups
        .filter(|(path, _)| !is_absolute(path))
        .find_map(|(path, tracked)| Some((path, tracked.name.as_deref()?.split('@').next()?)));
    let fits = |dir: &&String| sample.is_none_or(|(path, name)| name_of(&join(dir, path)) == name);
    dirs.iter().find(fits).or(dirs.first()).cloned()
}

/// How Claude Code names the backups of a file, up to the version.
fn name_of(path: &str) -> String {
    Sha256::digest(path).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn absolute(root: Option<&str>, path: &str, real_parent_dir: Option<&str>) -> String {
    if is_absolute(path) {
        return path.to_owned();
    }
    match (root, real_parent_dir) {
        (Some(root), _) => join(root, path),
        (None, Some(dir)) => join(dir, path.rsplit(['/', '\\']).next().unwrap_or(path)),
        (None, None) => path.to_owned(),
    }
}

/// Whether a path is absolute, on whatever system it was written.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b':');
    drive || path.starts_with(['/', '\\'])
}

fn join(dir: &str, path: &str) -> String {
    let slash = if dir.contains('\\') && !dir.contains('/') { '\\' } else { '/' };
    format!("{}{slash}{path}", dir.trim_end_matches(['/', '\\']))
}
