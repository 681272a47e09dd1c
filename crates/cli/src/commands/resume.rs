use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;

use threadline_app::SessionSummary;
use threadline_store::SessionFile;
use threadline_term::visible_name;
use threadline_view::wire::ResumeObject;
use threadline_view::{resume_command_with, shell_word};

use super::edit::copy_hint;
use super::search;
use crate::config::ResumeProgram;
use crate::context::Context;
use crate::env;
use crate::error::{CommandError, CommandOutcome};

/// Resume a session in its folder
///
/// Runs `claude --resume` in the working directory of the session, or with `--with threadline` the screen of
/// `threadline chat --resume`. Without a session, one is chosen from a list on the terminal.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: Option<String>,

    /// Prompt to send to the session; `--with threadline` prints the answer and exits
    prompt: Option<String>,

    /// Program to resume with [default: `resume_with` in config.toml, else claude]
    #[arg(long, value_name = "PROGRAM")]
    with: Option<ResumeProgram>,

    /// Print the command instead of running it
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(cx: &Context, args: &ResumeArgs) -> Result<CommandOutcome, CommandError> {
    let file = match &args.session {
        Some(session) => cx.app.find(session)?,
        None => match picked_session(cx)? {
            Some(file) => file,
            None => return Ok(CommandOutcome::Negative),
        },
    };
    if file.home.is_none() {
        let path = visible_name(&file.path.to_string_lossy()).into_owned();
        return Err(CommandError::new(format!(
            "{path} is not inside a Claude Code home, so no command resumes it"
        ))
        .hint(copy_hint(&file)));
    }
    let program = args.with.or(cx.user.file.resume_with).unwrap_or(ResumeProgram::Claude);
    let arguments = resume_arguments(program, &file.id, args.prompt.as_deref());
    let non_default_home = cx.app.non_default_home(&file);
    let cwd = SessionSummary::of(file.clone())?.preview.cwd;
    if args.print {
        let words: Vec<&str> = std::iter::once(program.name()).chain(arguments).collect();
        let home = non_default_home.as_ref().map(|home| home.to_string_lossy());
        let command = resume_command_with(&words, cwd.as_deref(), home.as_deref());
        let mut answer = cx.ui.output();
        if cx.json {
            answer.json(&ResumeObject { session: &file.id, cwd: cwd.as_deref(), command: &command })?;
        } else {
            answer.data(&format!("{command}\n"))?;
        }
        answer.finish()?;
        return Ok(CommandOutcome::Done);
    }
    let id = shell_word(&file.id);
    let print_hint = format!("`threadline resume {id} --print` prints the command");
    if let Some(cwd) = cwd.as_deref().filter(|cwd| !Path::new(cwd).is_dir()) {
        return Err(CommandError::new(format!("the session's folder does not exist: {cwd}"))
            .hint(format!("`threadline edit move {id} --cwd DIR` moves the session to another folder"))
            .hint(print_hint));
    }
    let mut command = match program {
        ResumeProgram::Claude => Command::new("claude"),
        ResumeProgram::Threadline => Command::new(std::env::current_exe()?),
    };
    command.args(&arguments);
    if let Some(cwd) = &cwd {
        command.current_dir(cwd);
    }
    if let Some(home) = non_default_home {
        command.env(env::CLAUDE_CONFIG_DIR, home);
    }
    let status = command.status().map_err(|error| {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = CommandError::new(format!("cannot run {name}: {error}"));
        failed.hint(print_hint)
    })?;
    Ok(if status.success() { CommandOutcome::Done } else { CommandOutcome::Negative })
}

/// Lets the person choose a session; `None` if none was chosen.
fn picked_session(cx: &Context) -> Result<Option<SessionFile>, CommandError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(CommandError::new("a session is missing, and there is no terminal to choose one")
            .hint("`threadline list` shows the sessions"));
    }
    Ok(search::pick_session(&cx.app, None, &|| false)?.map(SessionFile::at))
}

/// Returns the arguments that continue a session.
fn resume_arguments<'a>(program: ResumeProgram, id: &'a str, prompt: Option<&'a str>) -> Vec<&'a str> {
    let arguments = match program {
        ResumeProgram::Claude => vec!["--resume", id],
        ResumeProgram::Threadline if prompt.is_none() => vec!["chat", "--resume", id],
        ResumeProgram::Threadline => vec!["chat", "-p", "--resume", id],
    };
    arguments.into_iter().chain(prompt).collect()
}
