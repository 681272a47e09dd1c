//! Applies a plan: turns it into steps on files.

use std::io::{self, Read};
use std::path::Path;

use threadline_edit::{ContentDigest, EditPlan, PlanTarget, SideFileOp};
use threadline_entry::{Ending, Entry, Kind};
use threadline_store::{
    FileDigest, FileKind, Receipt, Step, StepAction, Visibility, open_regular, read_regular,
};

use super::{EditError, EditSession, PlannedEdit};
use crate::config::App;
use crate::error::AppError;
use crate::operations::NewReceipt;

/// How a plan is applied.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// Whether a session that is open is changed, too.
    pub force: bool,
    /// The command that the receipt records.
    pub command: Vec<String>,
}

impl PlannedEdit<'_> {
    /// Writes the result, and leaves a receipt to undo it.
    ///
    /// # Errors
    ///
    /// Those of [`PlannedEdit::check`]; [`EditError::Open`] and [`EditError::RecentlyWritten`] if an open
    /// session would be changed without `force`; [`EditError::LogChanged`] and [`EditError::Operation`].
    pub fn apply(&self, app: &App, options: &ApplyOptions) -> Result<Receipt, EditError> {
        self.check()?;
        if self.new_session().is_none() && !options.force {
            self.source.refuse_live()?;
        }
        let target = self.plan.target_id().unwrap_or_default();
        let receipt = NewReceipt {
            operation: self.operation,
            source: &self.source.file.id,
            target: &target,
            home: None,
            summary: self.summary(),
            command: &options.command,
        };
        self.check_links(app)?;
        app.apply_steps(receipt, self.steps()?)
    }

    /// Refuses to change a file through a folder that is a link out of the homes. The steps name files by
    /// their real paths.
    fn check_links(&self, app: &App) -> Result<(), EditError> {
        let changed = self.plan.side_files().iter().filter_map(|side| match side {
            SideFileOp::Change { path, .. } => Some(path),
            _ => None,
        });
        for path in changed.chain([&self.source.file.path]) {
            app.store().check_write(&std::path::absolute(path)?)?;
        }
        Ok(())
    }

    fn steps(&self) -> Result<Vec<Step<'_>>, EditError> {
        let (plan, file) = (&self.plan, &self.source.file);
        let mut steps = Vec::new();
        for side in plan.side_files() {
            steps.push(side_step(plan, side)?);
        }
        let [removed, changed, added] = plan.counts();
        let lines_only_added = removed == 0 && changed == 0 && plan.options().target == PlanTarget::KeepOrder;
        let log =
            |path: &Path, action| Step { path: path.to_owned(), kind: FileKind::Log, action, modified: None };
        let moves = self.path != file.path;
        // The log comes last: a program that sees it finds all side files in place.
        match &plan.options().target {
            PlanTarget::New(_) => steps.push(log(&self.path, create(plan.reader()))),
            _ if moves && file.path.is_symlink() => {
                // A link is moved; its target stays where it is.
                steps.push(log(&self.path, create(plan.reader())));
                steps.push(remove_step(&file.path));
            }
            _ if moves => {
                let (read, to) = (self.source.read_digest()?, self.path.clone());
                steps.push(log(&file.path, StepAction::Move { read, to, content: Box::new(plan.reader()) }));
            }
            _ if removed + changed + added == 0 => {}
            // In place, the log itself is changed even if the session's file is a link to it.
            _ if lines_only_added && is_added_at_end(plan) => {
                let action = self.source.add_lines(added_lines(plan))?;
                steps.push(log(self.source.snapshot.path(), action));
            }
            _ => {
                steps.push(log(self.source.snapshot.path(), self.source.replace_lines(plan)?));
            }
        }
        Ok(steps)
    }
}

impl EditSession {
    /// Returns the digest of the log as it was read.
    fn read_digest(&self) -> Result<FileDigest, EditError> {
        let changed = || EditError::LogChanged { path: self.file.path.clone() };
        self.snapshot.digest()?.ok_or_else(changed)
    }

    /// The action that adds lines at the end of the log.
    ///
    /// If the log ends in a part of a line, another program may be writing it: the lines are added before it,
    /// and the part stays at the end, where that program completes it.
    fn add_lines<'a>(&self, lines: Vec<String>) -> Result<StepAction<'a>, EditError> {
        if self.partial_line_length() == 0 {
            return Ok(StepAction::Append { read: self.read_digest()?, lines });
        }
        let read = self.whole_lines_digest()?;
        let added: String = lines.into_iter().map(|line| line + "\n").collect();
        let content = self.snapshot.reader()?.take(read.length).chain(io::Cursor::new(added));
        Ok(StepAction::Replace { read, content: Box::new(content) })
    }

    /// The action that replaces the log with the result of a plan. A part of a line at the end that the plan
    /// does not change stays in the log, where another program may complete it.
    fn replace_lines<'p>(&self, plan: &'p EditPlan<'_>) -> Result<StepAction<'p>, EditError> {
        let partial = self.partial_line_length();
        let last = plan.len().checked_sub(1);
        let last =
            last.filter(|&at| partial > 0 && plan.source_of(at) == self.session.entries().last_index());
        let is_kept = last.is_some_and(|at| {
            Some(plan.draft_line(at).as_bytes()) == self.session.entries().last().map(Entry::as_bytes)
        });
        let Some(last) = last.filter(|_| is_kept) else {
            return Ok(StepAction::Replace { read: self.read_digest()?, content: Box::new(plan.reader()) });
        };
        let length = plan.digest().length - partial - u64::from(plan.ends_line(last));
        let content = plan.reader().take(length);
        Ok(StepAction::Replace { read: self.whole_lines_digest()?, content: Box::new(content) })
    }

    /// Returns the digest of the log as it was read, without an incomplete last line.
    fn whole_lines_digest(&self) -> Result<FileDigest, EditError> {
        let read = self.read_digest()?;
        let whole = read.length - self.partial_line_length();
        Ok(FileDigest::read_from(self.snapshot.reader()?.take(whole))?)
    }

    /// The length of an incomplete last line: one that has no newline and is not JSON.
    fn partial_line_length(&self) -> u64 {
        let last = self.session.entries().iter().next_back();
        let last = last.filter(|last| last.ending() == Ending::None && last.kind() == Kind::Bad);
        last.filter(|last| !last.follows_on_line()).map_or(0, |last| {
            let bytes = last.as_bytes();
            let start = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
            (bytes.len() - start) as u64
        })
    }
}

/// A step that removes a file; of a link, only the link.
pub(super) fn remove_step<'a>(path: &Path) -> Step<'a> {
    let action = if path.is_symlink() { StepAction::Unlink } else { StepAction::Remove };
    Step { path: path.to_owned(), kind: FileKind::of(path), action, modified: None }
}

/// An action that creates a private file with this content.
fn create<'a>(content: impl Read + 'a) -> StepAction<'a> {
    StepAction::Create { content: Box::new(content), visibility: Visibility::Private }
}

fn file_digest(digest: &ContentDigest) -> FileDigest {
    FileDigest { length: digest.length, sha256: digest.sha256 }
}

/// The step for a side file.
fn side_step<'p>(plan: &'p EditPlan<'_>, side: &'p SideFileOp) -> Result<Step<'p>, AppError> {
    let (path, action) = match side {
        SideFileOp::Copy { from, to } => {
            (to.clone(), create(open_regular(from).map_err(AppError::read(from))?))
        }
        SideFileOp::CopyLog { from, to } => {
            let log = read_regular(from).map_err(AppError::read(from))?;
            (to.clone(), create(io::Cursor::new(with_new_ids(plan, &log))))
        }
        SideFileOp::CreateLog { path, content } => {
            (path.clone(), create(io::Cursor::new(with_new_ids(plan, content))))
        }
        SideFileOp::Create { path, content } => (path.clone(), create(&content[..])),
        SideFileOp::Change { path, read, content } => {
            let path = std::fs::canonicalize(path).map_err(AppError::read(path))?;
            (path, StepAction::Replace { read: file_digest(read), content: Box::new(&content[..]) })
        }
        SideFileOp::Move { from, to, content: Some((read, content)) } => {
            let (read, content) = (file_digest(read), Box::new(&content[..]));
            (from.clone(), StepAction::Move { read, to: to.clone(), content })
        }
        SideFileOp::Move { from, to, content: None } => {
            let open = || open_regular(from).map_err(AppError::read(from));
            let read = FileDigest::read_from(open()?).map_err(AppError::read(from))?;
            (from.clone(), StepAction::Move { read, to: to.clone(), content: Box::new(open()?) })
        }
        SideFileOp::Remove { path } => return Ok(remove_step(path)),
    };
    Ok(Step { kind: FileKind::of(&path), path, action, modified: None })
}

/// The content of a side file with the ids of the new session.
fn with_new_ids(plan: &EditPlan<'_>, log: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(log.len());
    plan.rewrite_ids(log, &mut content);
    content
}

/// Whether all added lines are at the end.
fn is_added_at_end(plan: &EditPlan<'_>) -> bool {
    let first = (0..plan.len()).find(|&at| plan.source_of(at).is_none());
    first.is_some_and(|first| (first..plan.len()).all(|at| plan.source_of(at).is_none()))
}

fn added_lines(plan: &EditPlan<'_>) -> Vec<String> {
    let added = (0..plan.len()).filter(|&at| plan.source_of(at).is_none());
    added
        .map(|at| {
            let mut line = Vec::new();
            plan.render(at, &mut line);
            String::from_utf8_lossy(&line).into_owned()
        })
        .collect()
}
