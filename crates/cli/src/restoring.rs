//! Files to bring back: what each was, what it is now, and where it goes.

use std::fs;
use std::path::{Component, Path, PathBuf};

use threadline_session::{At, Basis, FileContent, FileHistory, FileText};
use threadline_store::{
    self as store, FileDigest, FileKind, Operation, SessionFile, Step, Surroundings, Visibility, WriteRoot,
};
use threadline_view::figure::bytes;
use threadline_view::{line_counts, unified};

use crate::commands::carry_out;
use crate::context::Context;
use crate::error::CommandError;

/// A file to bring back.
pub(crate) struct Restoring {
    /// Where the session had it.
    pub(crate) path: String,
    /// The same, below the working directory without it.
    pub(crate) label: String,
    /// Where it goes.
    pub(crate) target: PathBuf,
    /// What it was; nothing if it did not exist, or if that is not known.
    pub(crate) content: Option<Vec<u8>>,
    /// What the session's own path holds now.
    now: Option<Vec<u8>>,
    pub(crate) action: Action,
    pub(crate) source: Source,
    pub(crate) basis: Basis,
    /// The backup that the log names.
    pub(crate) backup: Option<String>,
    /// What the person should know.
    pub(crate) note: Option<String>,
    /// Whether it goes outside of the folder that the session's files belong in.
    pub(crate) outside: bool,
}

/// What bringing a file back does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing: it is as it was.
    Keep,
    /// It is there, and is changed.
    Change,
    /// It is not there, and is made.
    Create,
    /// It was not there, and goes.
    Delete,
    /// It is not known what it was.
    Cannot,
}

impl Action {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Change => "change",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Cannot => "unknown",
        }
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Change | Self::Create | Self::Delete)
    }
}

/// Where the content of a file is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Backup,
    Edits,
    Nothing,
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Edits => "edits",
            Self::Nothing => "none",
        }
    }
}

impl Restoring {
    /// Every file that the session knows of, as it was at a moment, to go below `to` or back to its place.
    pub(crate) fn plan(
        session: &SessionFile,
        history: &FileHistory,
        at: At,
        to: Option<&Path>,
        root: Option<&WriteRoot>,
    ) -> Result<Vec<Self>, CommandError> {
        let mut files = Vec::new();
        for state in history.at(at) {
            let (mut source, mut note, mut backup) = (Source::Backup, None, None);
            let content = match state.content {
                FileContent::Absent => Known::Absent,
                FileContent::Text(text) => {
                    source = Source::Edits;
                    Known::Bytes(text.into_bytes())
                }
                FileContent::Unknown => {
                    note = Some("the log does not hold its text".to_owned());
                    Known::Nothing
                }
                FileContent::Backup { name, edits } => {
                    let read = session.backup(&name).map_err(|error| {
                        CommandError::new(format!("cannot read the backup {name}: {error}"))
                    })?;
                    backup = Some(name);
                    match (read, edits) {
                        (Some(bytes), _) => Known::Bytes(bytes),
                        (None, FileText::Text(text)) => {
                            source = Source::Edits;
                            note = Some(
                                "its backup is gone; the text is that of the edits in the log, with plain line ends".to_owned(),
                            );
                            Known::Bytes(text.into_bytes())
                        }
                        (None, _) => {
                            note = Some("its backup is gone, and the log does not hold its text".to_owned());
                            Known::Nothing
                        }
                    }
                }
            };
            if matches!(content, Known::Nothing) {
                source = Source::Nothing;
            }
            let label = below(&state.path, history.root());
            let target = match to {
                Some(dir) => std::path::absolute(dir)?.join(inside(&label)),
                None => PathBuf::from(&state.path),
            };
            let now = read(Path::new(&state.path));
            let there = if to.is_some() { read(&target) } else { now.clone() };
            let action = match (&content, &there) {
                (Known::Nothing, _) => Action::Cannot,
                (Known::Absent, None) => Action::Keep,
                // Nothing of ours is in a folder to write to, so nothing goes.
                (Known::Absent, Some(_)) if to.is_some() => Action::Keep,
                (Known::Absent, Some(_)) => Action::Delete,
                (Known::Bytes(_), None) => Action::Create,
                (Known::Bytes(then), Some(now)) if then == now => Action::Keep,
                (Known::Bytes(_), Some(_)) => Action::Change,
            };
            let (mut action, mut note) = (action, note);
            if action.writes() && target.to_string_lossy().contains('\0') {
                (action, note) = (Action::Cannot, Some("no file can have this name".to_owned()));
            }
            let outside = action.writes() && !root.is_some_and(|root| root.contains(&target));
            let content = match content {
                Known::Bytes(bytes) => Some(bytes),
                Known::Absent | Known::Nothing => None,
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
                backup,
                note,
                outside,
            });
        }
        Ok(files)
    }

    /// Whether the person asked for this file; without any name, all are asked for.
    pub(crate) fn is_one_of(&self, names: &[String], root: Option<&str>) -> bool {
        let path = self.path.replace('\\', "/");
        names.is_empty()
            || names.iter().any(|name| {
                let name = name.replace('\\', "/");
                let name = name.trim_start_matches("./").trim_end_matches('/');
                let folder = |folder: &str| path.starts_with(&format!("{folder}/"));
                let root = root.map(|root| format!("{}/{name}", root.replace('\\', "/")));
                path == name
                    || path.ends_with(&format!("/{name}"))
                    || folder(name)
                    || root.is_some_and(|root| folder(&root))
            })
    }

    /// What is to be done to bring it back.
    fn step(&self) -> Result<Step<'_>, CommandError> {
        let content = || Box::new(self.content.as_deref().unwrap_or_default());
        let step = |path, action| Step { path, kind: FileKind::Plain, action };
        if !self.target.is_absolute() {
            return Err(CommandError::new(format!("{} is a path of another system", self.target.display()))
                .hint("--to DIR writes the files below a folder"));
        }
        Ok(match self.action {
            Action::Change => {
                // A link stays one: the file that it names is changed.
                let path = fs::canonicalize(&self.target)?;
                let read = FileDigest::of(self.now.as_deref().unwrap_or_default());
                step(path, store::StepAction::Replace { read, content: content() })
            }
            Action::Delete if self.target.is_symlink() => {
                step(self.target.clone(), store::StepAction::Unlink)
            }
            Action::Delete => step(self.target.clone(), store::StepAction::Remove),
            _ => step(
                self.target.clone(),
                store::StepAction::Create { content: content(), visibility: Visibility::Shared },
            ),
        })
    }

    /// Lines that came and went, from now to then; nothing where that cannot be counted.
    pub(crate) fn lines(&self) -> Option<(usize, usize)> {
        if self.action == Action::Cannot {
            return None;
        }
        let (now, then) = self.texts()?;
        Some(line_counts(now, then))
    }

    /// The texts now and then, if both are text.
    fn texts(&self) -> Option<(&str, &str)> {
        let now = std::str::from_utf8(self.now.as_deref().unwrap_or_default()).ok()?;
        let then = std::str::from_utf8(self.content.as_deref().unwrap_or_default()).ok()?;
        (!now.contains('\0') && !then.contains('\0')).then_some((now, then))
    }

    /// What it was, in a few words.
    pub(crate) fn then(&self) -> String {
        match (&self.content, self.action) {
            (_, Action::Cannot) => "not known".to_owned(),
            (Some(content), _) => bytes(content.len() as u64),
            (None, _) => "not there".to_owned(),
        }
    }

    /// What it is now, in a few words.
    pub(crate) fn now(&self, applied: bool) -> String {
        let lines = || match self.lines() {
            Some((added, removed)) => format!("+{added} −{removed}"),
            None => "other bytes".to_owned(),
        };
        match self.action {
            _ if applied && self.action.writes() => "written".to_owned(),
            Action::Keep => "the same".to_owned(),
            Action::Change => lines(),
            Action::Create => "not there".to_owned(),
            Action::Delete => "there".to_owned(),
            Action::Cannot => "–".to_owned(),
        }
    }

    /// The change from now to then, as `diff -u` writes it.
    pub(crate) fn patch(&self) -> String {
        if self.action == Action::Cannot || self.now.as_deref() == self.content.as_deref() {
            return String::new();
        }
        let label = self.label.replace('\\', "/");
        let label = label.trim_start_matches('/');
        let side = |side: &str, there: bool| match there {
            true => format!("{side}/{label}"),
            false => "/dev/null".to_owned(),
        };
        let (from, to) = (side("a", self.now.is_some()), side("b", self.content.is_some()));
        let Some((now, then)) = self.texts() else { return format!("Binary files {from} and {to} differ\n") };
        unified(now, then, (&from, &to))
    }
}

/// Writes the files, all or none, and says by which operation. Below a folder, what is there stays.
pub(crate) fn write(
    cx: &Context,
    session: &SessionFile,
    files: &[Restoring],
    below_folder: bool,
    allow_outside: bool,
) -> Result<Option<String>, CommandError> {
    let is_written = |file: &&Restoring| file.action.writes() && (allow_outside || !file.outside);
    let files: Vec<&Restoring> = files.iter().filter(is_written).collect();
    if let Some(file) = files.iter().find(|file| below_folder && file.action == Action::Change) {
        return Err(CommandError::new(format!("{} is there, and is something else", file.target.display()))
            .hint("name a folder that is empty"));
    }
    if files.is_empty() {
        return Ok(None);
    }
    let steps = files.iter().map(|file| file.step()).collect::<Result<Vec<_>, _>>()?;
    let summary = format!("{} files as they were", files.len());
    let receipt = carry_out(cx, Operation::Restore, [&session.id, &session.id], summary, steps)?;
    Ok(Some(receipt.id))
}

/// The folder that the files belong in: the one that the person named, or the session's own if it can be
/// trusted.
pub(crate) fn root(
    cx: &Context,
    session: &SessionFile,
    history: &FileHistory,
    to: Option<&Path>,
) -> Result<Result<WriteRoot, String>, CommandError> {
    if let Some(to) = to {
        return Ok(Ok(WriteRoot::named(to)?));
    }
    let Some(dir) = history.root() else {
        return Ok(Err("the log names no working directory".to_owned()));
    };
    let surroundings = Surroundings {
        current_dir: std::env::current_dir().ok(),
        home_dir: etcetera::home_dir().ok(),
        homes: cx.store().homes().to_vec(),
    };
    Ok(WriteRoot::of_session(dir, session, &surroundings)
        .map_err(|why| format!("{dir} is not taken for the project: {why}")))
}

/// What is known of a file.
enum Known {
    Absent,
    Bytes(Vec<u8>),
    Nothing,
}

/// Reads a file; `None` if there is no regular file of this name.
fn read(path: &Path) -> Option<Vec<u8>> {
    store::read_regular(path).ok()
}

/// A path below the working directory without it.
pub(crate) fn below(path: &str, root: Option<&str>) -> String {
    let below = root.and_then(|root| path.strip_prefix(root.trim_end_matches(['/', '\\'])));
    below.and_then(|path| path.strip_prefix(['/', '\\'])).unwrap_or(path).to_owned()
}

/// A path that stays below the folder it is joined to, whatever system it comes from.
fn inside(label: &str) -> PathBuf {
    let path: PathBuf = label.split(['/', '\\']).map(|part| part.replace(':', "")).collect();
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect()
}
