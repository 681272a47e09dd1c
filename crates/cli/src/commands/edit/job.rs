//! What every edit has in common: the session, the plan, the guards, the writing.

use std::path::PathBuf;

use threadline_edit::{Draft, Fresh, Plan, Shape, SideFile, Target};
use threadline_entry::{Code, Lines, Severity, parse_line};
use threadline_session::Session;
use threadline_store::{
    Action, FileDigest, Live, OpError, Receipt, SessionFile, Snapshot, State, Step, is_live,
};

use super::{report, side};
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::load;

/// Whether to write, and what to show.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WriteArgs {
    /// Write it; without this the plan is shown and nothing else happens
    #[arg(long)]
    pub(crate) apply: bool,

    /// Show the plan and write nothing, which is what happens without --apply
    #[arg(long = "dry-run", conflicts_with = "apply")]
    _dry_run: bool,

    /// Change a session that is in use too
    #[arg(long)]
    pub(crate) force: bool,

    /// Show every line that goes, changes or comes
    #[arg(long)]
    pub(crate) diff: bool,
}

/// Where the result goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TargetArgs {
    /// Change the session itself instead of making a new one
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
        let file = load::find(cx, needle)?;
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
        operation: &'static str,
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
        operation: &'static str,
        mut draft: Draft<'s>,
        target: Target,
        place: Option<PathBuf>,
    ) -> Result<Outcome, CommandError> {
        for finding in self.session.findings() {
            // Redaction tells more of secrets, and less.
            let told = operation == "redact" && finding.code == Code::Secret;
            if finding.severity > Severity::Note && !told {
                draft.finding(finding);
            }
        }
        let seed = match &target {
            Target::New(id) => id.clone(),
            Target::InPlace | Target::AsItStands => uuid::Uuid::new_v4().to_string(),
        };
        let fresh = Fresh { seed, now: jiff::Timestamp::now().as_millisecond() };
        let plan = draft.plan(Shape { operation, target, fresh });
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
        let receipt = self.apply(cx, &plan, path.clone())?;
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

    fn apply(&self, cx: &Context, plan: &Plan<'_>, path: PathBuf) -> Result<Receipt, CommandError> {
        let mut steps = Vec::new();
        for side in plan.side_files() {
            steps.push(side_step(plan, side)?);
        }
        let [removed, changed, added] = plan.counts();
        let digest = plan.digest();
        let digest = FileDigest { length: digest.length, sha256: digest.sha256 };
        let lines_only_added = removed == 0 && changed == 0 && plan.shape().target == Target::AsItStands;
        let action = match &plan.shape().target {
            Target::New(_) => Some(Action::Create(Box::new(plan.reader()))),
            _ if path != self.file.path => {
                let old = Step { path: self.snapshot.path().to_owned(), action: Action::Remove };
                steps.push(Step { path: path.clone(), action: Action::Create(Box::new(plan.reader())) });
                steps.push(old);
                None
            }
            _ if removed + changed + added == 0 => None,
            _ if lines_only_added && is_at_end(plan) => {
                Some(Action::Append { of: self.snapshot.clone(), lines: added_lines(plan) })
            }
            _ => {
                Some(Action::Replace { of: self.snapshot.clone(), content: Box::new(plan.reader()), digest })
            }
        };
        // The log comes last: whoever sees it finds everything else in its place.
        steps.extend(action.map(|action| Step { path: self.real_path(&plan.shape().target, path), action }));
        let target = plan.target_id().unwrap_or_default().into_owned();
        let summary = report::summary(plan);
        self.carry_out(cx, plan.shape().operation, &target, summary, steps)
    }

    /// The log itself, where the session's file is a link to it.
    fn real_path(&self, target: &Target, path: PathBuf) -> PathBuf {
        match target {
            Target::New(_) => path,
            Target::InPlace | Target::AsItStands => self.snapshot.path().to_owned(),
        }
    }

    /// Does the steps and keeps a receipt.
    pub(crate) fn carry_out(
        &self,
        cx: &Context,
        operation: &str,
        target: &str,
        summary: String,
        steps: Vec<Step<'_>>,
    ) -> Result<Receipt, CommandError> {
        carry_out(cx, operation, [&self.file.id, target], summary, steps)
    }
}

/// Does the steps and keeps a receipt, which names the session that they come from and the one that they make.
pub(crate) fn carry_out(
    cx: &Context,
    operation: &str,
    [source, target]: [&str; 2],
    summary: String,
    steps: Vec<Step<'_>>,
) -> Result<Receipt, CommandError> {
    let now = jiff::Timestamp::now();
    let random = uuid::Uuid::new_v4().simple().to_string();
    let receipt = Receipt {
        id: format!("{}-{}", now.strftime("%Y%m%dT%H%M%S"), &random[..6]),
        operation: operation.to_owned(),
        command: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        made_at: format!("{now:.3}"),
        state: State::Begun,
        source: source.to_owned(),
        target: target.to_owned(),
        summary,
        files: Vec::new(),
        folders: Vec::new(),
    };
    cx.operations()?.apply(receipt, steps).map_err(told)
}

/// What the person is told when an operation could not be done.
pub(crate) fn told(error: OpError) -> CommandError {
    let told = CommandError::new(error.to_string());
    match &error {
        OpError::Replace(threadline_store::ReplaceError::Unsettled { .. }) => {
            told.hint("the old file is kept: `threadline op log` shows it")
        }
        OpError::Replace(threadline_store::ReplaceError::Changed { .. }) => {
            told.hint("nothing was written; plan again with what the session holds now")
        }
        OpError::Io(error)
        | OpError::Replace(threadline_store::ReplaceError::Io(error))
        | OpError::Append(threadline_store::AppendError::Io(error)) => {
            let told = told.hint("nothing was changed; every file is as it was");
            match error.kind() {
                std::io::ErrorKind::StorageFull
                | std::io::ErrorKind::QuotaExceeded
                | std::io::ErrorKind::FileTooLarge => {
                    told.hint("there must be room for a backup and for the new file; make some and try again")
                }
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    told.hint("you need to be allowed to write to that folder")
                }
                _ => told,
            }
        }
        OpError::Append(threadline_store::AppendError::Moved { .. }) => {
            told.hint("nothing was written; plan again with what the session holds now")
        }
        _ => told,
    }
}

/// What is to be done to a file beside the log.
fn side_step<'p>(plan: &'p Plan<'_>, side: &'p SideFile) -> Result<Step<'p>, CommandError> {
    Ok(match side {
        SideFile::Copy { from, to } => {
            let content = threadline_store::open_regular(from)
                .map_err(|error| CommandError::new(format!("cannot read {}: {error}", from.display())))?;
            Step { path: to.clone(), action: Action::Create(Box::new(content)) }
        }
        SideFile::CopyLog { from, to } => {
            let log = threadline_store::read_regular(from)
                .map_err(|error| CommandError::new(format!("cannot read {}: {error}", from.display())))?;
            let mut content = Vec::with_capacity(log.len());
            plan.repoint(&log, &mut content);
            Step { path: to.clone(), action: Action::Create(Box::new(std::io::Cursor::new(content))) }
        }
        SideFile::MakeLog { path, content: log } => {
            let mut content = Vec::with_capacity(log.len());
            plan.repoint(log, &mut content);
            Step { path: path.clone(), action: Action::Create(Box::new(std::io::Cursor::new(content))) }
        }
        SideFile::Create { path, content } => {
            Step { path: path.clone(), action: Action::Create(Box::new(&content[..])) }
        }
        SideFile::Change { path, content } => {
            let of = Snapshot::take(path)?;
            let digest = FileDigest::of(content);
            Step {
                path: of.path().to_owned(),
                action: Action::Replace { of, content: Box::new(&content[..]), digest },
            }
        }
        SideFile::Remove { path } => Step { path: path.clone(), action: Action::Remove },
    })
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
