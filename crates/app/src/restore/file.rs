//! One file to restore: its content then and now, and where it is written.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use threadline_evidence::{
    Certainty, EvidenceBasis, EvidenceSource, FileContent, FileEvidence, FileState, HistoryPoint,
};
use threadline_store::{
    FileDigest, FileKind, SessionFile, Step, StepAction, Visibility, WriteRisk, WriteRoot, open_regular,
    read_regular, write_obstacle,
};

use threadline_view::{line_counts, unified};

use super::RestoreError;
use crate::Mask;
use crate::error::AppError;

/// A file to restore.
#[derive(Debug)]
pub struct FileRestore {
    /// The path in the session.
    pub path: String,
    /// The path relative to the working directory, if it is below it.
    pub label: String,
    /// The path that is written.
    pub target: PathBuf,
    /// The content then; `None` if the file did not exist, or if the content is unknown. Files with the same
    /// backup share it.
    pub content: Option<Arc<[u8]>>,
    /// The digest of the content now, at the path in the session. A log may name many large files, so their
    /// contents are read again where they are compared.
    now: Option<FileDigest>,
    /// The change to the target.
    pub action: RestoreAction,
    /// The source of the content.
    pub source: ContentSource,
    /// How the moment of the content relates to the requested moment.
    pub basis: EvidenceBasis,
    /// How certain the content is.
    pub certainty: Certainty,
    /// What the content is known from.
    pub evidence: Option<EvidenceSource>,
    /// The backup that the log names.
    pub backup: Option<String>,
    /// A remark for the person.
    pub note: Option<String>,
    /// Why the target is written only with permission.
    pub risk: Option<WriteRisk>,
}

/// The change that restores a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreAction {
    /// None: the content is the same.
    Keep,
    /// Replaces the content.
    Change,
    /// Creates the file.
    Create,
    /// Deletes the file, which did not exist then.
    Delete,
    /// None: the content then is likely and not certain, and only certain ones are asked for.
    Likely,
    /// None: the content then is unknown.
    Cannot,
    /// None: the target cannot be written. The note has the reason.
    Blocked,
}

impl RestoreAction {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Change => "change",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Likely => "likely",
            Self::Cannot => "unknown",
            Self::Blocked => "blocked",
        }
    }

    /// Whether it changes the target.
    pub fn writes(self) -> bool {
        matches!(self, Self::Change | Self::Create | Self::Delete)
    }
}

/// The source of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentSource {
    /// A backup in the home.
    Backup,
    /// The edits in the log.
    Edits,
    /// None: the content is unknown.
    Nothing,
}

impl ContentSource {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Edits => "edits",
            Self::Nothing => "none",
        }
    }
}

/// The content of a file at a moment.
enum PastContent {
    Absent,
    Bytes(Arc<[u8]>),
    Link(String),
    Unknown,
}

/// Computes the digest of the regular file at a path; `None` if there is none. A log may name an existing file
/// in different spellings, any number of times.
fn digest(path: &Path, known: &mut HashMap<PathBuf, FileDigest>) -> Option<FileDigest> {
    let real = std::fs::canonicalize(path).ok()?;
    if let Some(known) = known.get(&real) {
        return Some(*known);
    }
    // By the path as it is given, since not every link is followed.
    let digest = open_regular(path).and_then(FileDigest::read_from).ok()?;
    known.insert(real, digest);
    Some(digest)
}

impl FileRestore {
    /// Plans every file of the session as it was at a moment, to be written to its own path, or with
    /// `to_folder` below `root`.
    pub(super) fn plan_all(
        session: &SessionFile,
        evidence: &FileEvidence,
        at: HistoryPoint,
        root: Option<&WriteRoot>,
        to_folder: bool,
        with_likely: bool,
    ) -> Result<Vec<Self>, AppError> {
        let to = root.map(WriteRoot::path).filter(|_| to_folder);
        let mut files = Vec::new();
        let mut digests = HashMap::new();
        for state in evidence.states_at(at) {
            let Past { content, source, note, backup } = Past::of(session, &state)?;
            let label = relative_label(&state.path, evidence.root());
            let target = match to {
                Some(dir) => dir.join(path_inside(&label)),
                None => PathBuf::from(&state.path),
            };
            let now = digest(Path::new(&state.path), &mut digests);
            let existing = if to.is_some() { digest(&target, &mut digests) } else { now };
            let action = match (&content, &existing) {
                (PastContent::Unknown, _) => RestoreAction::Cannot,
                (PastContent::Link(then), _) => match std::fs::read_link(&target) {
                    Ok(now) if now == Path::new(then) => RestoreAction::Keep,
                    _ => RestoreAction::Cannot,
                },
                (PastContent::Absent, None) => RestoreAction::Keep,
                // In a folder to restore to, nothing is deleted.
                (PastContent::Absent, Some(_)) if to.is_some() => RestoreAction::Keep,
                (PastContent::Absent, Some(_)) => RestoreAction::Delete,
                (PastContent::Bytes(_), None) => RestoreAction::Create,
                (PastContent::Bytes(then), Some(existing)) if is_content(then, existing) => {
                    RestoreAction::Keep
                }
                (PastContent::Bytes(_), Some(_)) => RestoreAction::Change,
            };
            let (mut action, mut note) = (action, note);
            let is_link = || target.is_symlink() && action != RestoreAction::Delete;
            if action.writes() && is_link() {
                (action, note) = (RestoreAction::Blocked, Some(blocked_note("it is a link")));
            }
            if action.writes()
                && let Some(reason) = write_obstacle(&target)
            {
                (action, note) = (RestoreAction::Blocked, Some(blocked_note(&reason)));
            }
            if action.writes() && state.certainty < Certainty::Exact && !with_likely {
                action = RestoreAction::Likely;
            }
            let risk = match action.writes() {
                true => root.map_or(Some(WriteRisk::Outside), |root| root.risk(&target)),
                false => None,
            };
            let content = match content {
                PastContent::Bytes(bytes) => Some(bytes),
                PastContent::Absent | PastContent::Link(_) | PastContent::Unknown => None,
            };
            files.push(Self {
                path: state.path,
                label,
                target,
                content,
                now,
                action,
                source,
                basis: state.basis,
                certainty: state.certainty,
                evidence: state.source,
                backup,
                note,
                risk,
            });
        }
        Ok(files)
    }

    /// Whether the file is one of `names`: paths, ends of paths, or folders. All files match no names.
    pub(super) fn matches(&self, names: &[String], root: Option<&str>) -> bool {
        names.is_empty() || names.iter().any(|name| is_named(&self.path, name, root))
    }

    /// Blocks files whose target is that of an earlier file, or above or below it: only one can be written.
    pub(super) fn block_conflicts(files: &mut [Self]) {
        // None is above another one, so only the two neighbours of a target can be above or below it.
        let mut targets: BTreeSet<PathBuf> = BTreeSet::new();
        for file in files.iter_mut().filter(|file| file.action.writes()) {
            let real = file.real_target();
            let is_below = targets
                .range::<PathBuf, _>(..=&real)
                .next_back()
                .is_some_and(|target| real.starts_with(target));
            if is_below
                || targets.range::<PathBuf, _>(&real..).next().is_some_and(|target| target.starts_with(&real))
            {
                file.note = Some(blocked_note("another file of the session needs the same path"));
                file.action = RestoreAction::Blocked;
                file.risk = None;
                continue;
            }
            targets.insert(real);
        }
    }

    /// The target with links resolved. A link that is removed is not resolved itself.
    fn real_target(&self) -> PathBuf {
        let skipped = usize::from(self.action != RestoreAction::Change);
        let real = self.target.ancestors().skip(skipped).find_map(|folder| {
            let real = std::fs::canonicalize(folder).ok()?;
            Some(real.join(self.target.strip_prefix(folder).ok()?))
        });
        real.unwrap_or_else(|| self.target.clone())
    }

    /// The step that writes the file.
    pub(super) fn step(&self) -> Result<Step<'_>, RestoreError> {
        let content = || Box::new(self.content_bytes());
        let step = |path, action| Step { path, kind: FileKind::Plain, action, modified: None };
        Ok(match self.action {
            RestoreAction::Change => {
                let path = std::fs::canonicalize(&self.target)?;
                let read = self.now.unwrap_or_else(|| FileDigest::of(b""));
                step(path, StepAction::Replace { read, content: content() })
            }
            // Paths without links, so that a folder that becomes a link is noticed by an undo or a redo.
            RestoreAction::Delete if self.target.is_symlink() => step(self.real_target(), StepAction::Unlink),
            RestoreAction::Delete => step(self.real_target(), StepAction::Remove),
            _ => step(
                self.real_target(),
                StepAction::Create { content: content(), visibility: Visibility::Shared },
            ),
        })
    }

    /// The number of lines added and removed from now to then; `None` if the content is unknown or not text.
    pub fn changed_lines(&self) -> Option<(usize, usize)> {
        if matches!(self.action, RestoreAction::Cannot | RestoreAction::Blocked) {
            return None;
        }
        let (now, then) = self.texts()?;
        Some(line_counts(&now, then))
    }

    fn content_bytes(&self) -> &[u8] {
        self.content.as_deref().unwrap_or_default()
    }

    /// Whether the content is the same now and then.
    fn is_unchanged(&self) -> bool {
        match (&self.content, &self.now) {
            (Some(then), Some(now)) => is_content(then, now),
            (then, now) => then.is_none() && now.is_none(),
        }
    }

    /// The texts now and then, if both are text.
    fn texts(&self) -> Option<(Cow<'_, str>, &str)> {
        let then = std::str::from_utf8(self.content_bytes()).ok().filter(|then| !then.contains('\0'))?;
        let now = match self.now {
            _ if self.is_unchanged() => Cow::Borrowed(then),
            Some(_) => Cow::Owned(String::from_utf8(read_regular(Path::new(&self.path)).ok()?).ok()?),
            None => Cow::Borrowed(""),
        };
        (!now.contains('\0')).then_some((now, then))
    }

    /// The change from now to then in the format of `diff -u`; empty if there is none. Secrets are masked in
    /// both texts, not in the patch, whose marks would separate a secret from the lines that identify it.
    pub fn patch(&self, mask: &Mask) -> String {
        let has_no_change = matches!(self.action, RestoreAction::Cannot | RestoreAction::Blocked);
        if has_no_change || self.is_unchanged() {
            return String::new();
        }
        let label = mask.text(&self.label).replace('\\', "/");
        let label = label.trim_start_matches('/');
        let header = |side: &str, exists: bool| match exists {
            true => format!("{side}/{label}"),
            false => "/dev/null".to_owned(),
        };
        let (from, to) = (header("a", self.now.is_some()), header("b", self.content.is_some()));
        let Some((now, then)) = self.texts() else { return format!("Binary files {from} and {to} differ\n") };
        match (mask.text(&now), mask.text(then)) {
            (now, then) if now == then => format!("Files {from} and {to} differ in masked secrets only\n"),
            (now, then) => unified(&now, &then, (&from, &to)),
        }
    }
}

/// The content of a file at a moment, with its source.
struct Past {
    content: PastContent,
    source: ContentSource,
    note: Option<String>,
    backup: Option<String>,
}

impl Past {
    /// Returns the content, with a note if it is not known, or not from the backup that the log names.
    fn of(session: &SessionFile, state: &FileState) -> Result<Self, AppError> {
        let source = match (&state.source, &state.content) {
            (None, _) => ContentSource::Nothing,
            (Some(EvidenceSource::Backup), _) | (_, Some(FileContent::Absent)) => ContentSource::Backup,
            _ => ContentSource::Edits,
        };
        let backup = state.last_backup.clone();
        let read = |name: &String| session.backup(name).map_err(AppError::read(format!("the backup {name}")));
        let is_missing = source != ContentSource::Backup
            && backup.as_ref().map(read).transpose()?.is_some_and(|read| read.is_none());
        let (content, note) = match &state.content {
            None if is_missing => (
                PastContent::Unknown,
                Some("its backup is missing, and the log does not contain its text".to_owned()),
            ),
            None => (PastContent::Unknown, Some("the log does not contain its text".to_owned())),
            Some(FileContent::Absent) => (PastContent::Absent, None),
            Some(FileContent::Link(target)) => {
                let note = format!("it was a link to {target}, and links are not restored");
                (PastContent::Link(target.clone()), Some(note))
            }
            Some(FileContent::File(file)) => {
                let note = is_missing
                    .then(|| "its backup is missing; restored from the edits in the log".to_owned());
                (PastContent::Bytes(file.bytes.clone()), note)
            }
        };
        let backup = backup.filter(|_| source == ContentSource::Backup || is_missing);
        Ok(Self { content, source, note, backup })
    }
}

/// Returns whether `name` names the file at `path`: it is the path or the end of it, or a folder that
/// contains the file, as an absolute path or below `root`.
pub fn is_named(path: &str, name: &str, root: Option<&str>) -> bool {
    let path = path.replace('\\', "/");
    let name = name.replace('\\', "/");
    let name = name.trim_start_matches("./").trim_end_matches('/');
    let is_below = |folder: &str| path.starts_with(&format!("{folder}/"));
    let root = root.map(|root| format!("{}/{name}", root.replace('\\', "/").trim_end_matches('/')));
    path == name
        || path.ends_with(&format!("/{name}"))
        || is_below(name)
        || root.is_some_and(|root| is_below(&root))
}

/// Returns whether `bytes` have a digest, which is computed only if they have its length.
fn is_content(bytes: &[u8], digest: &FileDigest) -> bool {
    bytes.len() as u64 == digest.length && FileDigest::of(bytes) == *digest
}

fn blocked_note(reason: &str) -> String {
    format!("cannot be written: {reason}")
}

/// A path relative to the working directory, if it is below it.
pub fn relative_label(path: &str, root: Option<&str>) -> String {
    let below = root.and_then(|root| path.strip_prefix(root.trim_end_matches(['/', '\\'])));
    below.and_then(|path| path.strip_prefix(['/', '\\'])).unwrap_or(path).to_owned()
}

/// A relative path without `..`, roots and drives, from a path of any system.
fn path_inside(label: &str) -> PathBuf {
    let path: PathBuf = label.split(['/', '\\']).map(|part| part.replace(':', "")).collect();
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_the_end_of_one_or_a_folder() {
        let root = Some("/p");
        for name in ["/p/src/a.rs", "a.rs", "src/a.rs", "./src/a.rs", "src", "src/", "/p", "/p/src"] {
            assert!(is_named("/p/src/a.rs", name, root), "{name}");
        }
        for name in ["b.rs", ".rs", "rc/a.rs", "sr", "/src"] {
            assert!(!is_named("/p/src/a.rs", name, root), "{name}");
        }
        // A folder is below the project, and not anywhere.
        assert!(!is_named("/p/vendor/src/a.rs", "src", root) && !is_named("/p/src/a.rs", "src", None));
        assert!(is_named(r"C:\p\a.rs", "p/a.rs", None));
    }
}
