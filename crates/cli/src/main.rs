//! The binary `threadline`: arguments, streams, pager, exit codes, configuration.

#![allow(clippy::print_stderr, reason = "this is the crate that speaks")]
#![allow(clippy::disallowed_methods, reason = "this is the crate that reads the environment and the clock")]

mod commands;
mod context;
mod demo;
mod env;
mod error;
mod load;
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
    let cli = Cli::parse();
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
