use std::path::Path;
use std::process::Command;

use threadline_app::SessionSummary;
use threadline_view::{resume_command, shell_word};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Resume a session in its folder
///
/// Runs `claude --resume` in the working directory of the session.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Program to resume with [default: `resume_with` in config.toml, else claude]
    #[arg(long, value_name = "PROGRAM")]
    with: Option<ResumeProgram>,

    /// Print the command instead of running it
    #[arg(long)]
    print: bool,
}

/// A program that continues sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ResumeProgram {
    /// Claude Code
    Claude,
    /// `threadline show --follow`, which shows the session and its new lines
    Threadline,
}

pub(crate) fn run(cx: &Context, args: &ResumeArgs) -> Result<CommandOutcome, CommandError> {
    let file = cx.app.find(&args.session)?;
    let program = match (args.with, cx.user.file.resume_with.as_deref()) {
        (Some(program), _) => program,
        (None, None | Some("claude")) => ResumeProgram::Claude,
        (None, Some("threadline")) => ResumeProgram::Threadline,
        (None, Some(other)) => {
            return Err(CommandError::new(format!("config.toml: unknown program `{other}` in resume_with"))
                .hint("use claude or threadline"));
        }
    };
    let cwd = SessionSummary::of(file.clone())?.preview.cwd;
    let exists = cwd.as_deref().is_some_and(|cwd| Path::new(cwd).is_dir());
    if args.print {
        let command = match program {
            ResumeProgram::Claude => resume_command(&file.id, cwd.as_deref()),
            ResumeProgram::Threadline => format!("threadline show {} --follow", shell_word(&file.id)),
        };
        let mut answer = cx.ui.output();
        answer.data(&format!("{command}\n"))?;
        answer.finish()?;
        return Ok(CommandOutcome::Done);
    }
    let mut command = match program {
        ResumeProgram::Claude => {
            let mut command = Command::new("claude");
            command.args(["--resume", &file.id]);
            command
        }
        ResumeProgram::Threadline => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("show").arg(&file.path).arg("--follow");
            command
        }
    };
    if let Some(cwd) = cwd.as_deref() {
        if !exists && program == ResumeProgram::Claude {
            return Err(CommandError::new(format!("the session's folder does not exist: {cwd}"))
                .hint("`threadline edit move SESSION --cwd DIR` moves the session to another folder")
                .hint("`threadline resume SESSION --print` prints the command"));
        }
        if exists {
            command.current_dir(cwd);
        }
    }
    let status = command.status().map_err(|error| {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = CommandError::new(format!("cannot run {name}: {error}"));
        failed.hint("`threadline resume SESSION --print` prints the command")
    })?;
    Ok(if status.success() { CommandOutcome::Done } else { CommandOutcome::Negative })
}
