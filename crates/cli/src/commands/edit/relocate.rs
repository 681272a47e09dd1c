use std::path::PathBuf;

use threadline_edit::{Digest, Draft, Fresh, Shape, SideFile, Target, relocate};
use threadline_session::Session;
use threadline_store::{Operation, encode_project, read_regular};

use super::job::{Job, WriteArgs};
use super::side::files_below;
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Move a session to another working directory
///
/// For a project that was moved: Claude Code finds a session only in the directory in which it was created.
/// The log and its side files are moved to the folder of the new project, and the paths in the lines are
/// updated.
#[derive(Debug, clap::Args)]
pub(crate) struct MoveArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// New directory of the project
    #[arg(long, value_name = "DIR")]
    cwd: PathBuf,

    /// Old directory of the project [default: the first working directory of the session]
    #[arg(long, value_name = "DIR")]
    from: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &MoveArgs) -> Result<Outcome, CommandError> {
    let job = Job::open(cx, &args.session)?;
    let Some(home) = &job.file.home else {
        return Err(CommandError::new(format!("{} lies in no home", job.file.path.display()))
            .hint("only a session of a home can be found from a directory"));
    };
    let first = job.session.entries().iter().find_map(|entry| entry.get("cwd")?.as_str());
    let from = args.from.clone().or_else(|| first.map(Into::into));
    let from = from.ok_or_else(|| CommandError::new("no line names a working directory"))?;
    let from = from.trim_end_matches(['/', '\\']).to_owned();
    // A directory is known by its real path; one that is not here yet is taken as it is named.
    let to = std::fs::canonicalize(&args.cwd).unwrap_or_else(|_| args.cwd.clone());
    if !to.is_absolute() {
        return Err(CommandError::new(format!("`{}` is no directory here", args.cwd.display()))
            .hint("name it from the root on"));
    }
    let to = to.to_string_lossy().trim_end_matches(['/', '\\']).to_owned();
    let folder = home.projects_dir().join(encode_project(&to));
    let path = folder.join(job.file.path.file_name().unwrap_or_default());
    if path.exists() && path != job.file.path {
        return Err(CommandError::new(format!("{} is there already", path.display())));
    }
    let mut draft = job.draft();
    if relocate(&mut draft, &from, &to) == 0 {
        return Err(CommandError::new(format!("no line was written in {from}"))
            .hint("--from names the directory that the project was in"));
    }
    move_beside(&job, &folder, &from, &to, &mut draft)?;
    let outcome = job.finish_at(cx, &args.write, Operation::Move, draft, Target::AsItStands, Some(path))?;
    if args.write.apply {
        job.warn_if_made_again(cx);
    }
    Ok(outcome)
}

/// Lets everything beside the log go along; backups of files are found by the session's id, and stay.
fn move_beside(
    job: &Job,
    folder: &std::path::Path,
    from: &str,
    to: &str,
    draft: &mut Draft<'_>,
) -> Result<(), CommandError> {
    let old = job.file.path.parent().unwrap_or(std::path::Path::new(""));
    let mut files = job.file.side_dir().map_or_else(|| Ok(Vec::new()), |dir| files_below(&dir))?;
    files.extend(
        job.file.agents().found.into_iter().map(|agent| agent.path).filter(|path| path.parent() == Some(old)),
    );
    for file in files {
        let Ok(rest) = file.strip_prefix(old) else { continue };
        let target = folder.join(rest);
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            let log = read_regular(&file)?;
            let session = Session::from_bytes(&log);
            let mut moved = Draft::new(&session);
            relocate(&mut moved, from, to);
            let fresh = Fresh { seed: String::new(), now: 0 };
            let plan = moved.plan(Shape { operation: "move", target: Target::AsItStands, fresh });
            let content = Some((Digest::of(&log), plan.to_bytes()));
            draft.side(SideFile::Move { from: file, to: target, content });
        } else {
            draft.side(SideFile::Move { from: file, to: target, content: None });
        }
    }
    let side = |folder: &std::path::Path| format!("{}/{}/", folder.display(), job.file.id);
    draft.move_path(side(old), side(folder));
    Ok(())
}
