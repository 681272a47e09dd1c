//! The files of a session at a prompt, from Claude Code's snapshots and the edits in the log.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use sha2::{Digest, Sha256};
use threadline_entry::lens::{Backup, FileHistoryDelta, FileHistorySnapshot, Lens, Object};
use threadline_entry::{Entry, Kind, Millis, is_absolute_path, key};

use crate::agent::SessionFamily;
use crate::file_edit::{FileEdit, FileText, RecordedEdits};
use crate::index::EntryIndex;
use crate::session::Session;

/// The known states of all files that a session worked on.
#[derive(Clone, Debug, Default)]
pub struct FileHistory {
    root: Option<String>,
    /// By absolute path: the observations of the file, sorted by position in the main log.
    files: BTreeMap<String, Vec<FileObservation>>,
    /// The edits that observations refer to by their number.
    edits: RecordedEdits,
}

/// An observation of a file at a position in the main log.
#[derive(Clone, Debug)]
struct FileObservation {
    /// The index of the prompt, or of the line at which an edit was made.
    position: EntryIndex,
    /// The last line before a backup that was made later in the turn of its prompt.
    taken: Option<EntryIndex>,
    kind: ObservationKind,
}

#[derive(Clone, Debug)]
enum ObservationKind {
    /// The snapshot at a prompt: the name of the backup, or `None` if the file did not exist.
    Snapshot(Option<String>),
    /// An edit: its number, and whether the texts before and after it are known. They are made when they are
    /// needed, because those of all edits take far more memory than the log.
    /// If it is not certain, a command may have changed the file.
    Edit { number: u32, has_before: bool, has_after: bool, is_certain: bool },
}

/// The text of a file before or after an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EditText {
    Before(u32),
    After(u32),
}

/// A point in the main log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryPoint {
    /// The time at which this line, a prompt, was written.
    Prompt(EntryIndex),
    /// The end of the session.
    End,
}

/// A file at some point in the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The absolute path.
    pub path: String,
    /// The content at that point.
    pub content: FileContent,
    /// The evidence for the content. [`ContentEvidence::Exact`] if the content is unknown.
    pub evidence: ContentEvidence,
    /// The file name of the last backup of the file.
    pub last_backup: Option<String>,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// The file did not exist.
    Absent,
    /// The content is in a backup.
    Backup {
        /// The file name of the backup.
        name: String,
        /// The text derived from edits, in case the backup is gone.
        edits: FileText,
    },
    /// The text, derived from the edits in the log.
    Text(String),
    /// The content is unknown.
    Unknown,
}

/// The evidence for the content of a file at a point in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEvidence {
    /// A snapshot at exactly that point.
    Exact,
    /// An observation at this earlier line. Nothing in the log changed the file in between.
    Earlier(EntryIndex),
    /// An observation at this later line, the first one at or after that point.
    Later(EntryIndex),
}

/// A file that was changed in a range of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifiedFile {
    /// The absolute path.
    pub path: String,
    /// The number of edits. With none, something else changed the file, such as a command or the user.
    pub edits: usize,
}

/// For each line, the earliest time of it and of the lines after it.
struct LinesByTime(Vec<Millis>);

impl LinesByTime {
    fn of(session: &Session) -> Self {
        let mut earliest = Millis::MAX;
        let times = session.entries().indices().rev().map(|idx| {
            earliest = earliest.min(session.timestamp(idx).unwrap_or(Millis::MAX));
            earliest
        });
        let mut times: Vec<Millis> = times.collect();
        times.reverse();
        Self(times)
    }

    /// Returns the last line that was written at this time or before; the first line if there is none.
    fn last_until(&self, at: Millis) -> EntryIndex {
        let n_lines = self.0.partition_point(|earliest| *earliest <= at);
        EntryIndex::from_position(n_lines.saturating_sub(1))
    }
}

/// The files of a session, while they are collected.
struct FileTable {
    root: Option<String>,
    files: BTreeMap<String, Vec<FileObservation>>,
}

impl FileTable {
    fn add(&mut self, path: &str, real_parent_dir: Option<&str>, observation: FileObservation) {
        let path = absolute(self.root.as_deref(), path, real_parent_dir);
        self.files.entry(path).or_default().push(observation);
    }
}

impl FileHistory {
    /// Collects the snapshots and edits of a session and its sub-agents.
    pub fn of(family: &SessionFamily) -> Self {
        let main = &family.main;
        let snapshots = snapshots(main);
        let root = root(main, &snapshots);
        let mut table = FileTable { root, files: BTreeMap::new() };
        let lines_by_time = LazyCell::new(|| LinesByTime::of(main));
        for PromptSnapshot { position, backups } in snapshots {
            for (path, backup) in backups {
                let FileBackup { name, real_parent_dir, time } = backup.unwrap_or_default();
                let is_later = |time: &Millis| main.timestamp(position).is_some_and(|prompt| *time > prompt);
                let taken = time.filter(is_later).map(|time| lines_by_time.last_until(time));
                let kind = ObservationKind::Snapshot(name);
                table.add(&path, real_parent_dir.as_deref(), FileObservation { position, taken, kind });
            }
        }
        let edits = RecordedEdits::of(family);
        for (edit, number) in edits.completed().zip(0..) {
            let FileEdit { agent, entry_idx, at, path, before, after, is_certain, .. } = edit;
            // The edit of a sub-agent is in another log. Its time determines its position in the main log.
            let position = match agent {
                None => entry_idx,
                Some(_) => at.map_or(EntryIndex::FIRST, |at| lines_by_time.last_until(at)),
            };
            let [has_before, has_after] = [before, after].map(|text| text != FileText::Unknown);
            let kind = ObservationKind::Edit { number, has_before, has_after, is_certain };
            table.add(&path, None, FileObservation { position, taken: None, kind });
        }
        let FileTable { root, mut files } = table;
        for known in files.values_mut() {
            place_late_backups(known);
            known.sort_by_key(|known| known.position);
        }
        Self { root, files, edits }
    }

    /// Returns the working directory that relative paths are resolved against.
    pub fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// Returns whether no file is known.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the state of every known file at a point in the session, sorted by path.
    pub fn states_at(&self, at: HistoryPoint) -> Vec<FileState> {
        let sources: Vec<StateSource<'_>> =
            self.files.iter().map(|(path, known)| StateSource::at(path, known, at)).collect();
        let mut texts: HashMap<EditText, FileText> =
            sources.iter().filter_map(|source| Some((source.text?, FileText::Unknown))).collect();
        for (edit, number) in self.edits.completed().zip(0..) {
            for (place, text) in
                [(EditText::Before(number), edit.before), (EditText::After(number), edit.after)]
            {
                texts.entry(place).and_modify(|known| *known = text);
            }
        }
        sources.into_iter().map(|source| source.state(&mut texts)).collect()
    }

    /// Returns the files that changed from each of some lines, which are in order, up to the next one, or to
    /// the end.
    pub fn changes_from(&self, starts: &[EntryIndex]) -> Vec<Vec<ModifiedFile>> {
        let mut changed: Vec<Vec<ModifiedFile>> = vec![Vec::new(); starts.len()];
        for (path, known) in &self.files {
            // The observations are in order, and so are the parts that they belong to.
            let mut parts: BTreeMap<usize, usize> = BTreeMap::new();
            let mut last_snapshot: Option<(usize, &FileObservation)> = None;
            for observation in known {
                let n_before = starts.partition_point(|start| *start <= observation.position);
                let Some(part) = n_before.checked_sub(1) else { continue };
                if let ObservationKind::Edit { is_certain, .. } = observation.kind {
                    if is_certain {
                        *parts.entry(part).or_default() += 1;
                    }
                } else if starts[part] == observation.position {
                    match last_snapshot {
                        // The first of several snapshots at a line counts.
                        Some((last, _)) if last == part => continue,
                        Some((last, before)) if last + 1 == part && !before.same_snapshot(observation) => {
                            parts.entry(last).or_default();
                        }
                        _ => {}
                    }
                    last_snapshot = Some((part, observation));
                }
            }
            for (part, edits) in parts {
                changed[part].push(ModifiedFile { path: path.clone(), edits });
            }
        }
        changed
    }
}

impl FileObservation {
    fn is_edit(&self) -> bool {
        matches!(self.kind, ObservationKind::Edit { .. })
    }

    /// Returns the name of the backup of a snapshot.
    fn backup(&self) -> Option<&str> {
        match &self.kind {
            ObservationKind::Snapshot(name) => name.as_deref(),
            ObservationKind::Edit { .. } => None,
        }
    }

    fn same_snapshot(&self, other: &Self) -> bool {
        matches!((&self.kind, &other.kind), (ObservationKind::Snapshot(a), ObservationKind::Snapshot(b)) if a == b)
    }
}

/// Moves each backup that was made after an edit of its turn to where it was made: it does not contain the
/// file at the prompt. Claude Code makes the first backup of a file when a tool is about to edit it.
fn place_late_backups(known: &mut [FileObservation]) {
    let mut edits: Vec<EntryIndex> =
        known.iter().filter(|known| known.is_edit()).map(|known| known.position).collect();
    edits.sort_unstable();
    for snapshot in known.iter_mut().filter(|known| !known.is_edit()) {
        let Some(taken) = snapshot.taken else { continue };
        let next = edits.partition_point(|edit| *edit <= snapshot.position);
        if edits.get(next).is_some_and(|edit| *edit <= taken) {
            snapshot.position = taken;
        }
    }
}

/// The source of the content of a file at some point in the session.
struct StateSource<'h> {
    path: &'h str,
    /// The snapshot, if it is one: its backup, or `None` if the file did not exist.
    snapshot: Option<Option<&'h str>>,
    /// The text of an edit: the content itself, or that in case the backup is gone.
    text: Option<EditText>,
    evidence: ContentEvidence,
    last_backup: Option<&'h str>,
}

impl<'h> StateSource<'h> {
    /// Selects the snapshot at that prompt, else the last observation before it, else the first one after it.
    /// An edit of unknown text is no evidence, and hides the observations beyond it.
    fn at(path: &'h str, known: &'h [FileObservation], at: HistoryPoint) -> Self {
        let prompt = match at {
            HistoryPoint::Prompt(prompt) => Some(prompt),
            HistoryPoint::End => None,
        };
        let is_before = |known: &FileObservation| prompt.is_none_or(|prompt| known.position < prompt);
        let then = known.iter().find(|known| Some(known.position) == prompt && !known.is_edit());
        let before =
            || known.iter().rev().find(|known| is_before(known)).filter(|known| known.has_text_after());
        let after = || known.iter().find(|known| !is_before(known)).filter(|known| known.has_text_before());
        let found = then.map(|known| (known, ContentEvidence::Exact));
        let found = found.or_else(|| before().map(|known| (known, ContentEvidence::Earlier(known.position))));
        let found = found.or_else(|| after().map(|known| (known, ContentEvidence::Later(known.position))));
        let last_backup = known.iter().rev().find_map(FileObservation::backup);
        let Some((found, evidence)) = found else {
            let evidence = ContentEvidence::Exact;
            return Self { path, snapshot: None, text: None, evidence, last_backup };
        };
        match (&found.kind, evidence) {
            (ObservationKind::Snapshot(name), _) => {
                let text = name.as_ref().and_then(|_| text_from_edits(known, found.position));
                Self { path, snapshot: Some(name.as_deref()), text, evidence, last_backup }
            }
            (ObservationKind::Edit { number, .. }, ContentEvidence::Later(_)) => {
                let text = Some(EditText::Before(*number));
                Self { path, snapshot: None, text, evidence, last_backup }
            }
            (ObservationKind::Edit { number, .. }, _) => {
                let text = Some(EditText::After(*number));
                Self { path, snapshot: None, text, evidence, last_backup }
            }
        }
    }

    /// Returns the state with the text of the edit.
    fn state(self, texts: &mut HashMap<EditText, FileText>) -> FileState {
        let text = self.text.and_then(|text| texts.remove(&text)).unwrap_or(FileText::Unknown);
        let content = match (self.snapshot, text) {
            (Some(Some(name)), edits) => FileContent::Backup { name: name.to_owned(), edits },
            (Some(None), _) | (None, FileText::Absent) => FileContent::Absent,
            (None, FileText::Text(text)) => FileContent::Text(text),
            (None, FileText::Unknown) => FileContent::Unknown,
        };
        FileState {
            path: self.path.to_owned(),
            content,
            evidence: self.evidence,
            last_backup: self.last_backup.map(str::to_owned),
        }
    }
}

impl FileObservation {
    fn has_text_after(&self) -> bool {
        !matches!(self.kind, ObservationKind::Edit { has_after: false, .. })
    }

    fn has_text_before(&self) -> bool {
        !matches!(self.kind, ObservationKind::Edit { has_before: false, .. })
    }
}

/// Derives the text at a snapshot from edits alone: the text before the next edit, or after the last one.
///
/// `None` if it is unknown, or if the snapshots in between show that something else changed the file.
fn text_from_edits(known: &[FileObservation], place: EntryIndex) -> Option<EditText> {
    let same = |from: EntryIndex, to: EntryIndex| {
        let snapshots = || known.iter().filter(|known| !known.is_edit());
        let here = snapshots().find(|known| known.position == place);
        let mut between = snapshots().filter(|known| (from..=to).contains(&known.position));
        here.is_some_and(|here| between.all(|known| known.same_snapshot(here)))
    };
    let edits = || {
        known.iter().filter_map(|known| match known.kind {
            ObservationKind::Edit { number, has_before, has_after, .. } => {
                let before = has_before.then_some(EditText::Before(number));
                Some((known.position, before, has_after.then_some(EditText::After(number))))
            }
            ObservationKind::Snapshot(_) => None,
        })
    };
    let next = edits().find(|(at, ..)| *at >= place).filter(|(at, ..)| same(place, *at));
    let last = edits().take_while(|(at, ..)| *at < place).last().filter(|(at, ..)| same(*at, place));
    next.and_then(|(_, before, _)| before).or_else(|| last.and_then(|(.., after)| after))
}

/// The files at one prompt.
struct PromptSnapshot {
    /// The index of the prompt. If that line is missing, the index of the snapshot.
    position: EntryIndex,
    /// By path; `None` for a file that did not exist.
    backups: BTreeMap<String, Option<FileBackup>>,
}

/// The backup of a file.
#[derive(Default, PartialEq, Eq)]
struct FileBackup {
    name: Option<String>,
    real_parent_dir: Option<String>,
    /// When it was made.
    time: Option<Millis>,
}

/// A backup, if there is one, and the path of the file as it is written in the log.
type NamedBackup = (String, Option<FileBackup>);

/// Returns the snapshots of a log. Updates and deltas are merged into the snapshot of their prompt.
fn snapshots(session: &Session) -> Vec<PromptSnapshot> {
    let mut snapshots: Vec<PromptSnapshot> = Vec::new();
    let mut by_message: HashMap<String, usize> = HashMap::default();
    for (idx, entry) in session.entries().enumerated() {
        let Some((message_id, backups)) = backups_in(entry) else { continue };
        let at = *by_message.entry(message_id.into()).or_insert_with_key(|message_id| {
            let place = session.find(message_id).unwrap_or(idx);
            snapshots.push(PromptSnapshot { position: place, backups: BTreeMap::new() });
            snapshots.len() - 1
        });
        snapshots[at].backups.extend(backups);
    }
    snapshots
}

/// Returns the prompt that a file history line belongs to, and the backups that it lists.
fn backups_in(entry: &Entry) -> Option<(Cow<'_, str>, impl Iterator<Item = NamedBackup>)> {
    let tracked = |backup: Backup<'_>| {
        let name = backup.backup_file_name().map(Into::into);
        let time = backup.backup_time().map(|moment| moment.0);
        let backup = FileBackup { name, real_parent_dir: backup.real_parent_dir().map(Into::into), time };
        (backup.name.is_some() || backup.real_parent_dir.is_some()).then_some(backup)
    };
    let (message_id, files, changed) = match entry.kind() {
        Kind::FileHistorySnapshot => {
            let line: FileHistorySnapshot<'_> = entry.lens()?;
            let snapshot = line.snapshot()?;
            // In an update, the id of the line is that of the call. The id in the snapshot is that of the
            // prompt.
            let message_id = snapshot.message_id().or_else(|| line.message_id())?;
            (message_id, Some(snapshot.tracked_file_backups()?.members()), None)
        }
        Kind::FileHistoryDelta => {
            let line: FileHistoryDelta<'_> = entry.lens()?;
            let message_id = line.snapshot_message_id().or_else(|| line.message_id())?;
            (message_id, None, Some((line.tracking_path()?.into(), tracked(line.backup()?))))
        }
        _ => return None,
    };
    // Without the name of a backup, or that there is none, nothing is known about the file.
    let files = files
        .into_iter()
        .flatten()
        .filter(|(_, backup)| backup.get(key::BACKUP_FILE_NAME).is_some())
        .map(move |(path, backup)| (path.name().into(), tracked(Backup::over(Object::new(backup)))));
    Some((message_id, files.chain(changed)))
}

/// Returns the working directory that the relative paths of a session are resolved against.
///
/// The name of a backup is a hash of the absolute path of its file. That identifies the right one among the
/// directories in the log. Without a backup, it is the first directory.
fn root(session: &Session, snapshots: &[PromptSnapshot]) -> Option<String> {
    let mut known: HashSet<Cow<'_, str>> = HashSet::default();
    let cwds = session.entries().iter().filter_map(Entry::cwd);
    let dirs: Vec<Cow<'_, str>> = cwds.filter(|cwd| known.insert(cwd.clone())).collect();
    let backups = snapshots.iter().flat_map(|snapshot| &snapshot.backups);
    let sample = backups
        .filter(|(path, _)| !is_absolute_path(path))
        .find_map(|(path, tracked)| Some((path, tracked.as_ref()?.name.as_deref()?.split('@').next()?)));
    let fits = |dir: &&Cow<'_, str>| sample.is_none_or(|(path, name)| backup_name(&join(dir, path)) == name);
    dirs.iter().find(fits).or(dirs.first()).map(|dir| dir.clone().into_owned())
}

/// Returns the name of the backups of a file, without the version suffix.
fn backup_name(path: &str) -> String {
    Sha256::digest(path).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn absolute(root: Option<&str>, path: &str, real_parent_dir: Option<&str>) -> String {
    if is_absolute_path(path) {
        return path.to_owned();
    }
    match (root, real_parent_dir) {
        (Some(root), _) => join(root, path),
        (None, Some(dir)) => join(dir, path.rsplit(['/', '\\']).next().unwrap_or(path)),
        (None, None) => path.to_owned(),
    }
}

fn join(dir: &str, path: &str) -> String {
    let slash = if dir.contains('\\') && !dir.contains('/') { '\\' } else { '/' };
    format!("{}{slash}{path}", dir.trim_end_matches(['/', '\\']))
}
