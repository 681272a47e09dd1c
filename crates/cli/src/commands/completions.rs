use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::version;

/// Print shell completions
///
/// Add the output to your shell, such as `source <(threadline completions bash)` in ~/.bashrc, or
/// `threadline completions fish > ~/.config/fish/completions/threadline.fish`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the man page
///
/// `threadline man > threadline.1 && man ./threadline.1` shows it.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {}

pub(crate) fn run(cx: &Context, args: &CompletionsArgs) -> Result<CommandOutcome, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "threadline", &mut script);
    let mut answer = cx.ui.output();
    answer.data(&String::from_utf8_lossy(&script))?;
    answer.finish()?;
    Ok(CommandOutcome::Done)
}

pub(crate) fn man(cx: &Context, _args: &ManArgs) -> Result<CommandOutcome, CommandError> {
    let mut page = Vec::new();
    // The header of the page is one line; the text of `--version` has several.
    let mut command = Cli::command().version(version::RELEASE).long_version(version::RELEASE);
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    // One page for everything: the subcommands follow as sections.
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let man = clap_mangen::Man::new(subcommand.clone());
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    let mut answer = cx.ui.output();
    answer.data(&String::from_utf8_lossy(&page))?;
    answer.finish()?;
    Ok(CommandOutcome::Done)
}
