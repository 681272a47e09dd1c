//! The binary `threadline`: arguments, streams, pager, exit codes, configuration.

#![allow(clippy::print_stderr, reason = "this is the crate that speaks")]
#![allow(clippy::disallowed_methods, reason = "this is the crate that reads the environment and the clock")]

mod commands;
mod context;
mod demo;
mod env;
mod error;
mod load;
mod lock;
mod restoring;
mod ui;

use std::process::ExitCode;

use clap::Parser;

use crate::context::{Context, GlobalArgs};

/// Read, show, search, count, mend, export and continue Claude Code sessions
#[derive(Debug, Parser)]
#[command(name = "threadline", version, about, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    if is_hook() {
        return run_hook();
    }
    let cli = Cli::parse();
    // Before anything is made that would be made again.
    if matches!(cli.command, commands::Command::Serve(_)) {
        commands::serve::give_memory_back();
    }
    let outcome = Context::new(&cli.global).and_then(|mut cx| cli.command.run(&mut cx));
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether Claude Code runs us as a hook. Whatever goes wrong then, and be it the arguments, must not stop it.
fn is_hook() -> bool {
    let mut words = std::env::args_os().skip(1).skip_while(|word| word != "trace");
    let named = words.next().is_some() && words.next().is_some_and(|word| word == "hook");
    named && !words.any(|word| word == "--help" || word == "-h")
}

/// Runs the hook: the exit code is 0, and nothing is written to standard output.
fn run_hook() -> ExitCode {
    let run = || match Cli::try_parse() {
        Ok(cli) => {
            let outcome = Context::new(&cli.global).and_then(|mut cx| cli.command.run(&mut cx));
            outcome.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Ok(Err(error)) = std::panic::catch_unwind(run) {
        eprint!("{error}");
    }
    ExitCode::SUCCESS
}
