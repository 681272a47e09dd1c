//! Restores files of a project as they were at a prompt.

mod file;
mod point;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use threadline_evidence::{FileEvidence, HistoryPoint};
use threadline_session::{EntryIndex, SessionFamily};
use threadline_store::{Operation, Receipt, SessionFile, UserContext, WriteRoot};
use threadline_view::wire::{ChangedFileObject, RestoreTurn};
use threadline_view::{OutlineLine, outline, transcript, wire};

pub use file::{ContentSource, FileRestore, RestoreAction, is_named, relative_label};
pub use point::RestorePoint;

use crate::config::App;
use crate::edit::EditError;
use crate::error::AppError;
use crate::file_copies::FileCopies;
use crate::file_sources::SessionSources;
use crate::load::load_unpriced;
use crate::operations::NewReceipt;

/// Why files could not be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The session has no turn of this number.
    #[error("no turn {number}: the session has {count} turns")]
    NoTurn {
        /// The number.
        number: i64,
        /// The number of turns.
        count: usize,
    },
    /// The session has no prompt with this id.
    #[error("the prompt is not in the log")]
    NoPrompt,
    /// No file of the session matches the requested names.
    #[error("no file of the session has this name")]
    NoSuchFile,
    /// The session edited no files.
    #[error("no file changes in the log")]
    NoFiles,
    /// A folder to restore to has another file.
    #[error("{} exists and is different", .path.display())]
    TargetDiffers {
        /// The file.
        path: PathBuf,
    },
    /// Files could not be written.
    #[error(transparent)]
    Write(#[from] EditError),
    /// Something else failed.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<std::io::Error> for RestoreError {
    fn from(error: std::io::Error) -> Self {
        Self::App(error.into())
    }
}

/// Which files to restore, and to where.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// A folder to write to; by default the files' own paths.
    pub to: Option<PathBuf>,
    /// Only these files: paths, ends of paths, or folders. Empty for all.
    pub names: Vec<String>,
    /// Also write contents that are likely and not certain.
    pub likely: bool,
}

/// The files to restore.
#[derive(Debug)]
pub struct RestorePlan {
    session: SessionFile,
    /// The folder that the files belong to; otherwise why no folder can be trusted.
    pub root: Result<WriteRoot, String>,
    /// The files. Those that are written only with permission are last.
    pub files: Vec<FileRestore>,
    to_folder: bool,
}

impl App {
    /// Plans to restore files as they were at a moment.
    ///
    /// # Errors
    ///
    /// [`RestoreError::NoFiles`] if there are none, [`RestoreError::NoSuchFile`] if none matches, and errors
    /// of reading backups.
    pub fn plan_restore(
        &self,
        session: &SessionFile,
        evidence: &FileEvidence,
        at: HistoryPoint,
        options: &RestoreOptions,
    ) -> Result<RestorePlan, RestoreError> {
        let to = options.to.as_deref();
        let root = self.restore_root(session, evidence.root(), to)?;
        let root_found = root.as_ref().ok();
        let mut files =
            FileRestore::plan_all(session, evidence, at, root_found, to.is_some(), options.likely)?;
        files.retain(|file| file.matches(&options.names, evidence.root()));
        FileRestore::block_conflicts(&mut files);
        files.sort_by_key(|file| file.risk);
        if files.is_empty() {
            let is_named = !options.names.is_empty();
            return Err(if is_named { RestoreError::NoSuchFile } else { RestoreError::NoFiles });
        }
        Ok(RestorePlan { session: session.clone(), root, files, to_folder: to.is_some() })
    }

    /// Plans to restore the files of a session in progress as they were at the prompt with an id. Returns
    /// `None` if no tool has changed a file.
    ///
    /// # Errors
    ///
    /// [`RestoreError::NoPrompt`], and those of [`App::plan_restore`].
    pub fn plan_rewind(&self, log: &Path, prompt: &str) -> Result<Option<RestorePlan>, RestoreError> {
        let session = SessionFile::at(log);
        let family = load_unpriced(&session)?.complete()?.family;
        let line = family.main.find(prompt).ok_or(RestoreError::NoPrompt)?;
        let evidence = self.file_evidence(&session, &family);
        if evidence.is_empty() {
            return Ok(None);
        }
        let point = HistoryPoint::Prompt(line);
        self.plan_restore(&session, &evidence, point, &RestoreOptions::default()).map(Some)
    }

    /// The folder that the files belong to: the one that the person named, or the session's own if it can be
    /// trusted.
    fn restore_root(
        &self,
        session: &SessionFile,
        dir: Option<&str>,
        to: Option<&Path>,
    ) -> Result<Result<WriteRoot, String>, AppError> {
        if let Some(to) = to {
            return Ok(Ok(WriteRoot::from_user(to)?));
        }
        let Some(dir) = dir else {
            return Ok(Err("the log names no working directory".to_owned()));
        };
        Ok(self.project_root(session, dir))
    }

    /// Returns the project that a session worked in, if it can be trusted to be that, or why it cannot.
    fn project_root(&self, session: &SessionFile, dir: &str) -> Result<WriteRoot, String> {
        let surroundings = UserContext {
            current_dir: self.config().current_dir.clone(),
            home_dir: self.config().home_dir.clone(),
            homes: self.store().homes().to_vec(),
        };
        WriteRoot::from_session(dir, session, &surroundings)
            .map_err(|why| format!("{dir} is not taken for the project: {why}"))
    }

    /// Returns what is known of the files of a session: from its logs and backups, and, if its project is on
    /// this machine, from git and the files there.
    pub fn file_evidence(&self, session: &SessionFile, family: &SessionFamily) -> FileEvidence {
        self.file_evidence_of(session, family, &|_| true)
    }

    /// Returns what the logs and the backups of a session say of its files.
    pub fn logged_evidence(&self, session: &SessionFile, family: &SessionFamily) -> FileEvidence {
        let sources = SessionSources::log_only(session).with_copies(self.copies_of(session));
        FileEvidence::of(family, &sources)
    }

    /// Returns what is known of some files of a session, as [`App::file_evidence`] does.
    pub fn file_evidence_of(
        &self,
        session: &SessionFile,
        family: &SessionFamily,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> FileEvidence {
        FileEvidence::of_files(family, &self.disk_sources(session, family).with_git(), is_wanted)
    }

    /// Returns the backups of a session and, if its project is on this machine, the files there.
    pub(crate) fn disk_sources<'s>(
        &self,
        session: &'s SessionFile,
        family: &SessionFamily,
    ) -> SessionSources<'s> {
        let root = threadline_evidence::working_directory(family);
        let sources = match root.and_then(|dir| self.project_root(session, &dir).ok()) {
            Some(root) => SessionSources::with_project(session, &root),
            None => SessionSources::log_only(session),
        };
        sources.with_copies(self.copies_of(session))
    }

    /// Returns the copies of files that a hook made, if there are any that can be read.
    fn copies_of(&self, session: &SessionFile) -> Option<FileCopies> {
        self.file_copies(&session.id.to_string()).ok()
    }
}

impl RestorePlan {
    /// Whether a file would be written. Files outside of the root, and files that make other programs run
    /// commands, are written only with `outside`.
    pub fn writes(file: &FileRestore, outside: bool) -> bool {
        file.action.writes() && (outside || file.risk.is_none())
    }

    /// Writes the files that can be written, all or none. Returns the receipt; `None` if there was nothing to
    /// write.
    ///
    /// # Errors
    ///
    /// [`RestoreError::TargetDiffers`] if a folder to restore to has another file, and errors of writing.
    pub fn apply(
        &self,
        app: &App,
        outside: bool,
        command: &[String],
    ) -> Result<Option<Receipt>, RestoreError> {
        let files: Vec<&FileRestore> = self.files.iter().filter(|file| Self::writes(file, outside)).collect();
        let differs = |file: &&&FileRestore| self.to_folder && file.action == RestoreAction::Change;
        if let Some(file) = files.iter().find(differs) {
            return Err(RestoreError::TargetDiffers { path: file.target.clone() });
        }
        if files.is_empty() {
            return Ok(None);
        }
        let steps = files.iter().map(|file| file.step()).collect::<Result<Vec<_>, _>>()?;
        let receipt = NewReceipt {
            operation: Operation::Restore,
            source: &self.session.id,
            target: &self.session.id,
            home: self.session.home.as_ref().map(|home| home.root()),
            summary: format!("{} files as they were", files.len()),
            command,
        };
        Ok(Some(app.apply_steps(receipt, steps)?))
    }
}

/// Returns the turns that changed files, with the files.
pub fn turns_with_changes(family: &SessionFamily, evidence: &FileEvidence) -> Vec<RestoreTurn> {
    let turns = family.main.turns();
    let titles = outline(&transcript(family, &|_| None).turns);
    let titles: HashMap<usize, &OutlineLine> = titles.iter().map(|line| (line.number, line)).collect();
    let mut last = EntryIndex::FIRST;
    let starts = turns.iter().filter_map(|turn| turn.prompt.or(turn.entries.first().copied()));
    // A version wrote some replies before their prompts.
    let starts = starts.map(|start| {
        last = last.max(start);
        last
    });
    let starts: Vec<EntryIndex> = starts.collect();
    let mut listed = Vec::new();
    for ((turn, &from), files) in turns.iter().zip(&starts).zip(evidence.changes_from(&starts)) {
        if files.is_empty() {
            continue;
        }
        let title = titles.get(&turn.number);
        let files = files.into_iter();
        listed.push(RestoreTurn {
            turn: turn.number as u64,
            anchor: title.map(|line| line.anchor.clone()).unwrap_or_default(),
            started_at: family.main.timestamp(from).map(wire::moment),
            prompt: title.map(|line| line.title.clone()).unwrap_or_default(),
            files: files
                .map(|file| ChangedFileObject { path: file.path, edits: file.edits as u64 })
                .collect(),
        });
    }
    listed
}
