//! Edits of sessions: open one, plan a change, apply the plan.
//!
//! An [`EditSession`] is a session that was read for an edit. Each operation is a method of it that returns a
//! [`PlannedEdit`], which can be shown, counted and dropped; [`PlannedEdit::apply`] writes it and leaves a
//! receipt.

mod apply;
mod clone;
mod compress;
mod delete;
mod error;
mod label;
mod redact;
mod relocate;
mod repair;
mod side_files;
mod strip;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use threadline_edit::{EditDraft, EditPlan, PlanOptions, PlanSeed, PlanTarget};
use threadline_entry::{ChunkReader, Code, Finding};
use threadline_session::{ClientVersion, Session};
use threadline_store::{FileSnapshot, LiveEvidence, Operation, SessionFile, detect_live};
use threadline_view::humanize::{count, short_count};

pub use apply::ApplyOptions;
pub use clone::CloneOptions;
pub use compress::{CompressTarget, compressed_tokens};
pub use delete::Deletion;
pub use error::{EditError, NothingToDo};
pub use redact::{Redaction, SecretHit, SecretReport};
pub use relocate::MoveOptions;
pub use repair::RepairableSession;
pub use threadline_edit::{ChangeGroup, ChangeKind};

use crate::check::all_findings;
use crate::config::App;
use crate::error::AppError;
use crate::load::check_log_size;

/// The destination of the result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditTarget {
    /// A new session with a new id.
    NewSession,
    /// The session itself.
    InPlace,
}

impl EditTarget {
    /// Returns the target of a plan. A new session gets a random id.
    fn plan_target(self) -> PlanTarget {
        match self {
            Self::NewSession => PlanTarget::New(new_id()),
            Self::InPlace => PlanTarget::InPlace,
        }
    }
}

/// A session that was read for an edit.
///
/// The log is read up to the end that it had when the edit began. Lines that other programs append later are
/// kept.
#[derive(Debug)]
pub struct EditSession {
    file: SessionFile,
    session: Session,
    /// The findings about the log as it was read, once they were needed.
    findings: OnceLock<Vec<Finding>>,
    snapshot: FileSnapshot,
}

impl App {
    /// Reads a session for an edit.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn open_for_edit(&self, file: SessionFile) -> Result<EditSession, AppError> {
        EditSession::open(file)
    }
}

impl EditSession {
    fn open(file: SessionFile) -> Result<Self, AppError> {
        let error = |error| AppError::read(&file.path)(error);
        check_log_size(&file.path)?;
        let snapshot = FileSnapshot::take_whole_lines(&file.path).map_err(error)?;
        let mut session = Session::with_id(&file.id);
        let mut chunks = ChunkReader::new(snapshot.reader().map_err(error)?);
        while let Some(chunk) = chunks.next().map_err(error)? {
            chunk.parse(|entry, findings| session.push(entry, findings));
        }
        Ok(Self { file, session, findings: OnceLock::new(), snapshot })
    }

    /// The files of the session.
    pub fn file(&self) -> &SessionFile {
        &self.file
    }

    /// The session as it was read.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The findings about the log as it was read.
    fn findings(&self) -> &[Finding] {
        self.findings.get_or_init(|| all_findings(&self.session))
    }

    /// The estimated number of tokens that a resume of the session sends.
    pub fn tokens(&self) -> u64 {
        self.draft().tokens()
    }

    /// Returns an error if the session is open in Claude Code: it reads a session once, at its start, and
    /// would not see a change.
    pub fn refuse_live(&self) -> Result<(), EditError> {
        match detect_live(&self.file, jiff::Timestamp::now().into()) {
            None => Ok(()),
            Some(LiveEvidence::Process(pid)) => Err(EditError::Open { id: self.file.id.to_string(), pid }),
            Some(LiveEvidence::RecentLine(ago)) => {
                Err(EditError::RecentlyWritten { id: self.file.id.to_string(), ago })
            }
        }
    }

    /// Whether the log exists. If it does after the edit removed or moved it, another program has created it
    /// again.
    pub fn log_exists(&self) -> bool {
        self.file.path.exists()
    }

    fn draft(&self) -> EditDraft<'_> {
        EditDraft::new(&self.session)
    }

    /// Plans a draft whose result is the session's own log, or that of a new session next to it.
    fn plan<'s>(&'s self, operation: Operation, draft: EditDraft<'s>, target: PlanTarget) -> PlannedEdit<'s> {
        let path = match &target {
            PlanTarget::New(id) => self.file.path.with_file_name(format!("{id}.jsonl")),
            PlanTarget::InPlace | PlanTarget::KeepOrder => self.file.path.clone(),
        };
        self.plan_at(operation, draft, target, path)
    }

    /// Plans a draft whose result is the log at `path`.
    fn plan_at<'s>(
        &'s self,
        operation: Operation,
        draft: EditDraft<'s>,
        target: PlanTarget,
        path: PathBuf,
    ) -> PlannedEdit<'s> {
        let seed = new_seed(&target);
        let plan = draft.plan(PlanOptions { target, seed });
        PlannedEdit { source: self, operation, plan, path }
    }
}

/// An edit that can be shown, counted, applied and dropped.
#[derive(Debug)]
pub struct PlannedEdit<'s> {
    source: &'s EditSession,
    operation: Operation,
    plan: EditPlan<'s>,
    path: PathBuf,
}

impl<'s> PlannedEdit<'s> {
    /// The operation that was planned, as in its receipt.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The changes, line by line.
    pub fn plan(&self) -> &EditPlan<'s> {
        &self.plan
    }

    /// The findings about the result that the plan added, then the problems of the session.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        // `redact` lists secrets itself, with their text masked.
        let is_listed = |finding: &&Finding| {
            finding.severity.is_problem()
                && !(self.operation == Operation::Redact && finding.code == Code::Secret)
        };
        self.plan.findings().iter().chain(self.source.findings().iter().filter(is_listed))
    }

    /// The files of the session that was read.
    pub fn source(&self) -> &SessionFile {
        &self.source.file
    }

    /// The log that the session is in.
    pub fn source_path(&self) -> &Path {
        &self.source.file.path
    }

    /// The size of that log in bytes, as in lists. The lines of a plan may be repaired ones.
    pub fn size_before(&self) -> u64 {
        self.source.snapshot.size()
    }

    /// The log that the result is written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id of the new session; `None` if the session itself is changed.
    pub fn new_session(&self) -> Option<&str> {
        match &self.plan.options().target {
            PlanTarget::New(id) => Some(id),
            PlanTarget::InPlace | PlanTarget::KeepOrder => None,
        }
    }

    /// Whether the content of the session must not be shown, because the edit removes secrets from it.
    pub fn hides_content(&self) -> bool {
        self.operation == Operation::Redact
    }

    /// The versions of Claude Code for which it is certain that they resume the result with the same
    /// conversation. If the result is one straight chain, these are all known versions; otherwise none.
    pub fn claude_code_versions(&self) -> &'static [ClientVersion] {
        match self.plan.options().target {
            PlanTarget::New(_) | PlanTarget::InPlace => &ClientVersion::KNOWN,
            PlanTarget::KeepOrder => &[],
        }
    }

    /// A short description of the changes, for receipts.
    pub fn summary(&self) -> String {
        let counts = self.plan.counts().into_iter().zip(["removed", "changed", "added"]);
        let counts: Vec<String> =
            counts.filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", count(n))).collect();
        let lines = if counts.is_empty() {
            "no line changed".to_owned()
        } else {
            format!("lines {}", counts.join(", "))
        };
        let (before, after) = (self.plan.tokens_before(), self.plan.tokens_after());
        format!("{lines}; tokens ≈{} → ≈{}", short_count(before), short_count(after))
    }

    /// Checks that the result would be sound.
    ///
    /// # Errors
    ///
    /// [`EditError::NothingToDo`] for an empty plan, [`EditError::AgentLog`] and [`EditError::Unsound`].
    pub fn check(&self) -> Result<(), EditError> {
        if self.plan.is_empty() {
            return Err(NothingToDo::NoChange.into());
        }
        let refusals = self.plan.refusals();
        if refusals.is_empty() {
            return Ok(());
        }
        if self.source.session.is_agent_log() {
            return Err(EditError::AgentLog { path: self.source.file.path.clone() });
        }
        Err(EditError::Unsound { reasons: refusals.to_vec() })
    }
}

fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns a seed for the ids of a plan, with the current time. For a new session, the seed is its id.
fn new_seed(target: &PlanTarget) -> PlanSeed {
    let seed = match target {
        PlanTarget::New(id) => id.clone(),
        PlanTarget::InPlace | PlanTarget::KeepOrder => new_id(),
    };
    PlanSeed { seed, now: jiff::Timestamp::now().as_millisecond() }
}
