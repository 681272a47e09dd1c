//! What every edit has in common: the session, the plan, the guards, the writing.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use threadline_edit::{Digest, Draft, Fresh, Plan, Shape, SideFile, Target};
use threadline_entry::{Code, Lines, Severity, parse_line};
use threadline_session::Session;
use threadline_store::{
    FileDigest, FileKind, Live, NewOperation, OpError, Operation, Receipt, SessionFile, Snapshot, Step,
    StepAction, Visibility, is_live,
};
use threadline_term::visible;

use super::delete::remove;
use super::{report, side};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Whether to write, and what to show.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WriteArgs {
    /// Write the result; without this, only the plan is shown
    #[arg(long)]
    pub(crate) apply: bool,

    /// Show the plan and write nothing (the default)
    #[arg(long = "dry-run", conflicts_with = "apply")]
    _dry_run: bool,

    /// Change the session even if it is in use
    #[arg(long)]
    pub(crate) force: bool,

    /// Show every removed, changed and added line
    #[arg(long)]
    pub(crate) diff: bool,
}

/// Where the result goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TargetArgs {
    /// Change the session itself instead of creating a new one
    #[arg(long)]
    pub(crate) in_place: bool,
}

impl TargetArgs {
    /// A new session, or the session itself with its conversation made straight.
    pub(crate) fn target(&self) -> Target {
        if self.in_place { Target::InPlace } else { new_session() }
    }
}

/// A new session, with an id that nothing else has.
pub(crate) fn new_session() -> Target {
    Target::New(uuid::Uuid::new_v4().to_string())
}

/// An edit under way.
pub(crate) struct Job {
    pub(crate) file: SessionFile,
    pub(crate) session: Session,
    pub(crate) snapshot: Snapshot,
}

impl Job {
    /// Finds and reads the session that `needle` names.
    pub(crate) fn open(cx: &Context, needle: &str) -> Result<Self, CommandError> {
        let file = cx.app.find(needle)?;
        let could_not = |error| CommandError::new(format!("cannot read {}: {error}", file.path.display()));
        // What is read is what the snapshot is of, however much is added meanwhile.
        let snapshot = Snapshot::take(&file.path).map_err(could_not)?;
        let mut session = Session::with_id(&file.id);
        let mut lines = Lines::new(snapshot.reader().map_err(could_not)?);
        while let Some(line) = lines.next().map_err(could_not)? {
            parse_line(&line, |entry, findings| session.push(entry, findings));
        }
        Ok(Self { file, session, snapshot })
    }

    /// A draft that changes nothing yet.
    pub(crate) fn draft(&self) -> Draft<'_> {
        Draft::new(&self.session)
    }

    /// Lets what lies beside the log go along into a new session.
    pub(crate) fn copy_beside(&self, draft: &mut Draft<'_>, target: &Target) -> Result<(), CommandError> {
        match target {
            Target::New(id) => side::copy(&self.file, id, draft),
            Target::InPlace | Target::AsItStands => Ok(()),
        }
    }

    /// Makes the plan, and shows or applies it.
    pub(crate) fn finish<'s>(
        &'s self,
        cx: &Context,
        write: &WriteArgs,
        operation: Operation,
        draft: Draft<'s>,
        target: Target,
    ) -> Result<Outcome, CommandError> {
        self.finish_at(cx, write, operation, draft, target, None)
    }

    /// The same, with the log at another place than it has, or a new session's would.
    pub(crate) fn finish_at<'s>(
        &'s self,
        cx: &Context,
        write: &WriteArgs,
        operation: Operation,
        mut draft: Draft<'s>,
        target: Target,
        place: Option<PathBuf>,
    ) -> Result<Outcome, CommandError> {
        for finding in self.session.findings() {
            // Redaction tells more of secrets, and less.
            let told = operation == Operation::Redact && finding.code == Code::Secret;
            if finding.severity > Severity::Note && !told {
                draft.finding(finding);
            }
        }
        let seed = match &target {
            Target::New(id) => id.clone(),
            Target::InPlace | Target::AsItStands => uuid::Uuid::new_v4().to_string(),
        };
        let fresh = Fresh { seed, now: jiff::Timestamp::now().as_millisecond() };
        let plan = draft.plan(Shape { operation: operation.name(), target, fresh });
        let path = place.unwrap_or_else(|| self.target_path(&plan));
        if plan.is_empty() {
            report::show(cx, &plan, [&self.file.path, &path], None, write.diff)?;
            cx.ui.note("there is nothing to do");
            return Ok(Outcome::No);
        }
        if !plan.refusals().is_empty() {
            if self.session.is_agents() {
                let what = format!("{} is the log of a sub-agent", self.file.path.display());
                return Err(CommandError::new(what).hint("edit the session that it belongs to"));
            }
            report::show(cx, &plan, [&self.file.path, &path], None, write.diff)?;
            let mut error = CommandError::new("the result would not be sound, so it is not written");
            for refusal in plan.refusals().iter().take(8) {
                error = error.cause(refusal.clone());
            }
            return Err(error.hint("`threadline check` tells what is wrong with the session"));
        }
        if !write.apply {
            report::show(cx, &plan, [&self.file.path, &path], None, write.diff)?;
            cx.ui.note("planned; nothing was written. Add --apply to write it");
            return Ok(Outcome::Done);
        }
        if !matches!(plan.shape().target, Target::New(_)) && !write.force {
            self.refuse_live()?;
        }
        let receipt = self.apply(cx, operation, &plan, path.clone())?;
        report::show(cx, &plan, [&self.file.path, &path], Some(&receipt.id), write.diff)?;
        let undo = format!("`threadline op undo {}` takes it back", receipt.id);
        cx.ui.note(&match &plan.shape().target {
            Target::New(id) => format!("done; `claude --resume {id}` goes on with it, {undo}"),
            Target::InPlace | Target::AsItStands => format!("done; {undo}"),
        });
        Ok(Outcome::Done)
    }

    /// Where the log of the result is.
    fn target_path(&self, plan: &Plan<'_>) -> PathBuf {
        match &plan.shape().target {
            Target::New(id) => self.file.path.with_file_name(format!("{id}.jsonl")),
            Target::InPlace | Target::AsItStands => self.file.path.clone(),
        }
    }

    /// A session that somebody works in is not changed under their hands.
    pub(crate) fn refuse_live(&self) -> Result<(), CommandError> {
        let id = &self.file.id;
        let told = match is_live(&self.file, std::time::SystemTime::now()) {
            None => return Ok(()),
            Some(Live::Process(pid)) => format!("session {id} is open in Claude Code (process {pid})"),
            Some(Live::Written(ago)) => {
                format!("session {id} seems to be open: its last line is {} seconds old", ago.as_secs())
            }
        };
        Err(CommandError::new(told)
            .hint("Claude Code reads a session once, at its start, and would not see the change: leave it first")
            .hint("--force changes it all the same"))
    }

    fn apply(
        &self,
        cx: &Context,
        operation: Operation,
        plan: &Plan<'_>,
        path: PathBuf,
    ) -> Result<Receipt, CommandError> {
        let mut steps = Vec::new();
        for side in plan.side_files() {
            steps.push(side_step(plan, side)?);
        }
        let [removed, changed, added] = plan.counts();
        let lines_only_added = removed == 0 && changed == 0 && plan.shape().target == Target::AsItStands;
        let log = |path: PathBuf, action| Step { path, kind: FileKind::Log, action };
        // In place, the log itself is changed where the session's file is a link to it.
        let real = self.snapshot.path().to_owned();
        // The log comes last: whoever sees it finds everything else in its place.
        match &plan.shape().target {
            Target::New(_) => steps.push(log(path, create(plan.reader()))),
            _ if path != self.file.path && self.file.path.is_symlink() => {
                // A link moves; the file that it names stays where it is.
                steps.push(log(path, create(plan.reader())));
                steps.push(remove(&self.file.path));
            }
            _ if path != self.file.path => {
                let content = Box::new(plan.reader());
                let action = StepAction::Move { read: self.read_digest()?, to: path, content };
                steps.push(log(self.file.path.clone(), action));
            }
            _ if removed + changed + added == 0 => {}
            _ if lines_only_added && is_at_end(plan) => {
                let action = StepAction::Append { read: self.read_digest()?, lines: added_lines(plan) };
                steps.push(log(real, action));
            }
            _ => {
                let content = Box::new(plan.reader());
                steps.push(log(real, StepAction::Replace { read: self.read_digest()?, content }));
            }
        }
        let target = plan.target_id().unwrap_or_default().into_owned();
        let summary = report::summary(plan);
        self.carry_out(cx, operation, &target, summary, steps)
    }

    /// The digest of the log as it was read, if the log still exists.
    fn read_digest(&self) -> Result<FileDigest, CommandError> {
        let digest = self.snapshot.digest()?;
        digest.ok_or_else(|| {
            CommandError::new(format!("{} has changed since it was read", self.file.path.display()))
                .hint("nothing was changed; run the command again")
        })
    }

    /// Says so if another program has made the log anew after it was taken away.
    pub(crate) fn warn_if_made_again(&self, cx: &Context) {
        if self.file.path.exists() {
            cx.ui.warn(&format!(
                "another program is still writing to this session: it made {} anew, which was left as it is",
                visible(&self.file.path.to_string_lossy())
            ));
        }
    }

    /// Does the steps and keeps a receipt.
    pub(crate) fn carry_out(
        &self,
        cx: &Context,
        operation: Operation,
        target: &str,
        summary: String,
        steps: Vec<Step<'_>>,
    ) -> Result<Receipt, CommandError> {
        carry_out(cx, operation, [&self.file.id, target], summary, steps)
    }
}

/// Does the steps and keeps a receipt, which names the session that they come from and the one that they
/// make.
pub(crate) fn carry_out(
    cx: &Context,
    operation: Operation,
    [source, target]: [&str; 2],
    summary: String,
    mut steps: Vec<Step<'_>>,
) -> Result<Receipt, CommandError> {
    for step in &mut steps {
        // A receipt holds wherever it is read.
        step.path = std::path::absolute(&step.path)?;
        if let StepAction::Move { to, .. } = &mut step.action {
            *to = std::path::absolute(&*to)?;
        }
    }
    let now = jiff::Timestamp::now();
    let random = uuid::Uuid::new_v4().simple().to_string();
    let new = NewOperation {
        id: format!("{}-{}", now.strftime("%Y%m%dT%H%M%S"), &random[..6]),
        operation,
        command: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        made_at: format!("{now:.3}"),
        source: source.to_owned(),
        target: target.to_owned(),
        summary,
    };
    cx.operations()?.apply(new, steps).map_err(op_error)
}

/// How many files an error names.
const NAMED: usize = 8;

/// What the person is told when an operation could not be done.
pub(crate) fn op_error(error: OpError) -> CommandError {
    let message = CommandError::new(visible(&error.to_string()).into_owned());
    match &error {
        OpError::NotDone { source, reverted } => {
            let message = message.hint(match reverted {
                0 => "nothing was changed".to_owned(),
                1 => "the file that had been changed is as it was before".to_owned(),
                n => format!("the {n} files that had been changed are as they were before"),
            });
            with_way_out(message, source)
        }
        OpError::Stopped { id, source, changed, unchanged } => {
            let name = |path: &PathBuf| visible(&path.to_string_lossy()).into_owned();
            let mut message = with_way_out(message, source);
            message = message.cause(match (changed.len(), unchanged.len()) {
                (0, _) => "no file has its new version".to_owned(),
                (_, 0) => "every file has its new version".to_owned(),
                (n, m) => format!("{n} of {} files have their new version", n + m),
            });
            for path in changed.iter().take(NAMED) {
                message = message.cause(format!("new: {}", name(path)));
            }
            message
                .hint(format!("`threadline op undo {id}` takes it back"))
                .hint(format!("`threadline op redo {id}` finishes it"))
        }
        OpError::Changed { .. } | OpError::BadPath { .. } => message.hint("nothing was changed"),
        OpError::StillWritten { .. } => message.hint("end that program and run the command again"),
        OpError::Busy => message.hint("wait until it has ended"),
        error => with_way_out(message, error),
    }
}

/// Adds what helps against an error of the system.
fn with_way_out(message: CommandError, error: &OpError) -> CommandError {
    let kind = match error {
        OpError::Io(error) | OpError::Append(threadline_store::AppendError::Io(error)) => error.kind(),
        OpError::Changed { .. } => {
            return message.hint("run the command again to plan with what is there now");
        }
        OpError::StillWritten { .. } => return message.hint("end that program first"),
        _ => return message,
    };
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            message.hint("there must be room for the new files; make some and try again")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            message.hint("you need to be allowed to write to that folder")
        }
        _ => message,
    }
}

/// A private file with this content.
fn create<'a>(content: impl Read + 'a) -> StepAction<'a> {
    StepAction::Create { content: Box::new(content), visibility: Visibility::Private }
}

fn digest(of: &Digest) -> FileDigest {
    FileDigest { length: of.length, sha256: of.sha256 }
}

/// What is to be done to a file beside the log.
fn side_step<'p>(plan: &'p Plan<'_>, side: &'p SideFile) -> Result<Step<'p>, CommandError> {
    let cannot_read = |path: &Path, error: io::Error| {
        CommandError::new(format!("cannot read {}: {error}", visible(&path.to_string_lossy())))
    };
    let (path, action) = match side {
        SideFile::Copy { from, to } => {
            let content = threadline_store::open_regular(from).map_err(|error| cannot_read(from, error))?;
            (to.clone(), create(content))
        }
        SideFile::CopyLog { from, to } => {
            let log = threadline_store::read_regular(from).map_err(|error| cannot_read(from, error))?;
            let mut content = Vec::with_capacity(log.len());
            plan.repoint(&log, &mut content);
            (to.clone(), create(io::Cursor::new(content)))
        }
        SideFile::MakeLog { path, content: log } => {
            let mut content = Vec::with_capacity(log.len());
            plan.repoint(log, &mut content);
            (path.clone(), create(io::Cursor::new(content)))
        }
        SideFile::Create { path, content } => (path.clone(), create(&content[..])),
        SideFile::Change { path, read, content } => {
            let path = std::fs::canonicalize(path).map_err(|error| cannot_read(path, error))?;
            (path, StepAction::Replace { read: digest(read), content: Box::new(&content[..]) })
        }
        SideFile::Move { from, to, content: Some((read, content)) } => {
            let content = Box::new(&content[..]);
            (from.clone(), StepAction::Move { read: digest(read), to: to.clone(), content })
        }
        SideFile::Move { from, to, content: None } => {
            let file = std::fs::File::open(from).map_err(|error| cannot_read(from, error))?;
            let read = FileDigest::read_from(&file).map_err(|error| cannot_read(from, error))?;
            let content = std::fs::File::open(from).map_err(|error| cannot_read(from, error))?;
            (from.clone(), StepAction::Move { read, to: to.clone(), content: Box::new(content) })
        }
        SideFile::Remove { path } => return Ok(remove(path)),
    };
    Ok(Step { kind: FileKind::of(&path), path, action })
}

/// Whether the lines that come stand behind all others.
fn is_at_end(plan: &Plan<'_>) -> bool {
    let first = (0..plan.len()).find(|&at| plan.source_of(at).is_none());
    first.is_some_and(|first| (first..plan.len()).all(|at| plan.source_of(at).is_none()))
}

fn added_lines(plan: &Plan<'_>) -> Vec<String> {
    let added = (0..plan.len()).filter(|&at| plan.source_of(at).is_none());
    added
        .map(|at| {
            let mut line = Vec::new();
            plan.render(at, &mut line);
            String::from_utf8_lossy(&line).into_owned()
        })
        .collect()
}
