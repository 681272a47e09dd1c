//! Moves a session to another working directory.

use std::path::{Path, PathBuf};

use threadline_edit::{ContentDigest, EditDraft, PlanOptions, PlanSeed, PlanTarget, SideFileOp, relocate};
use threadline_session::Session;
use threadline_store::{Operation, encode_project};

use super::side_files::{files_below, read};
use super::{EditError, EditSession, PlannedEdit};
use crate::load::cwd;

/// The directories of a move.
#[derive(Clone, Debug)]
pub struct MoveOptions {
    /// The directory that the project is in now. It need not exist if the path is absolute.
    pub to: PathBuf,
    /// The directory that the project was in; by default the one that the session started in.
    pub from: Option<String>,
}

impl EditSession {
    /// Plans a move of the log and its side files to the folder of another project. Paths in the lines are
    /// changed to the new directory.
    ///
    /// # Errors
    ///
    /// [`EditError::NotInHome`], [`EditError::NoWorkingDirectory`], [`EditError::NoSuchDirectory`],
    /// [`EditError::TargetExists`], [`EditError::AlreadyIn`], [`EditError::NotWrittenIn`], and errors of
    /// reading side files.
    pub fn move_to(&self, options: &MoveOptions) -> Result<PlannedEdit<'_>, EditError> {
        let Some(home) = &self.file.home else {
            return Err(EditError::NotInHome { path: self.file.path.clone() });
        };
        let from =
            options.from.clone().or_else(|| cwd(&self.session)).ok_or(EditError::NoWorkingDirectory)?;
        let from = without_trailing_slash(&from);
        // Claude Code uses the real path of a directory. One that does not exist yet is taken as given.
        let to = std::fs::canonicalize(&options.to).unwrap_or_else(|_| options.to.clone());
        if !to.is_absolute() {
            return Err(EditError::NoSuchDirectory { path: options.to.clone() });
        }
        let to = without_trailing_slash(&to.to_string_lossy());
        if from == to {
            return Err(EditError::AlreadyIn { directory: to });
        }
        let folder = home.projects_dir().join(encode_project(&to));
        let path = folder.join(self.file.path.file_name().unwrap_or_default());
        if path.exists() && path != self.file.path {
            return Err(EditError::TargetExists { path });
        }
        let mut draft = self.draft();
        if relocate(&mut draft, &from, &to) == 0 {
            return Err(EditError::NotWrittenIn { directory: from });
        }
        self.move_side_files(&folder, &from, &to, &mut draft)?;
        Ok(self.plan_at(Operation::Move, draft, PlanTarget::KeepOrder, path))
    }

    /// Adds the moves of the side files to the draft. File backups stay: Claude Code finds them by session
    /// id.
    fn move_side_files(
        &self,
        folder: &Path,
        from: &str,
        to: &str,
        draft: &mut EditDraft<'_>,
    ) -> Result<(), EditError> {
        let old = self.file.path.parent().unwrap_or(Path::new(""));
        let mut files = self.file.side_dir().map_or_else(|| Ok(Vec::new()), |dir| files_below(&dir))?;
        let agents = self.file.agents().found.into_iter().map(|agent| agent.path);
        files.extend(agents.filter(|path| path.parent() == Some(old)));
        for file in files {
            let Ok(rest) = file.strip_prefix(old) else { continue };
            let target = folder.join(rest);
            let is_log = file.extension().is_some_and(|extension| extension == "jsonl");
            let content = if is_log { Some(relocated_log(&read(&file)?, from, to)) } else { None };
            // Two directories may have one folder.
            let action = match content {
                content if target != file => Some(SideFileOp::Move { from: file, to: target, content }),
                Some((read, content)) => Some(SideFileOp::Change { path: file, read, content }),
                None => None,
            };
            action.into_iter().for_each(|action| draft.add_side_file(action));
        }
        let side = |folder: &Path| format!("{}/{}/", folder.display(), self.file.id);
        draft.move_path(side(old), side(folder));
        Ok(())
    }
}

/// Returns the digest of a sub-agent's log, and the log with the new directory.
fn relocated_log(log: &[u8], from: &str, to: &str) -> (ContentDigest, Vec<u8>) {
    let session = Session::from_bytes(log);
    let mut moved = EditDraft::new(&session);
    relocate(&mut moved, from, to);
    let seed = PlanSeed { seed: String::new(), now: 0 };
    let options = PlanOptions { target: PlanTarget::KeepOrder, seed };
    (ContentDigest::of(log), moved.plan(options).to_bytes())
}

fn without_trailing_slash(path: &str) -> String {
    path.trim_end_matches(['/', '\\']).to_owned()
}
