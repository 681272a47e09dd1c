//! Backups of the file history: the files at each prompt.

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use sha2::{Digest, Sha256};
use threadline_entry::lens::{Backup, FileHistoryDelta, FileHistorySnapshot, Lens, Object};
use threadline_entry::{Entry, Kind, Millis, is_absolute_path, key};
use threadline_session::{EntryIndex, Session, SessionFamily};

/// The files at one prompt.
pub(crate) struct PromptSnapshot {
    /// The index of the prompt. If that line is missing, the index of the snapshot.
    pub(crate) position: EntryIndex,
    /// By path; `None` for a file that did not exist.
    pub(crate) backups: BTreeMap<String, Option<FileBackup>>,
}

/// The backup of a file.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct FileBackup {
    pub(crate) name: Option<String>,
    pub(crate) real_parent_dir: Option<String>,
    /// When it was made.
    pub(crate) time: Option<Millis>,
}

/// A backup, if there is one, and the path of the file as it is written in the log.
type NamedBackup = (String, Option<FileBackup>);

/// Returns the snapshots of a log. Updates and deltas are merged into the snapshot of their prompt.
pub(crate) fn snapshots(session: &Session) -> Vec<PromptSnapshot> {
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
pub fn working_directory(family: &SessionFamily) -> Option<String> {
    root(&family.main, &snapshots(&family.main))
}

/// Returns the working directory, given the snapshots.
///
/// The name of a backup is a hash of the absolute path of its file. That identifies the right one among the
/// directories in the log. Without a backup, it is the first directory.
pub(crate) fn root(session: &Session, snapshots: &[PromptSnapshot]) -> Option<String> {
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

/// Returns the absolute path of a file. On Unix, `.`, `..` and empty parts are removed.
pub(crate) fn absolute(root: Option<&str>, path: &str, real_parent_dir: Option<&str>) -> String {
    let path = match (root, real_parent_dir) {
        _ if is_absolute_path(path) => path.to_owned(),
        (Some(root), _) => join(root, path),
        (None, Some(dir)) => join(dir, path.rsplit(['/', '\\']).next().unwrap_or(path)),
        (None, None) => return path.to_owned(),
    };
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if !path.starts_with('/') || path[1..].split('/').all(is_plain) {
        return path;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

fn join(dir: &str, path: &str) -> String {
    let slash = if dir.contains('\\') && !dir.contains('/') { '\\' } else { '/' };
    format!("{}{slash}{path}", dir.trim_end_matches(['/', '\\']))
}
