//! The binary `threadline`: arguments, streams, pager, exit codes, configuration.

#![allow(clippy::disallowed_methods, reason = "this is the crate that reads the environment and the clock")]

mod commands;
mod config;
mod context;
mod demo;
mod env;
mod error;
mod machine;
mod sandbox_exec;
mod ui;
mod version;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use threadline_term::{text, visible};

use crate::context::{Context, GlobalArgs};
use crate::error::json_error;

/// Read, show, search, count, edit, repair and export Claude Code sessions
#[derive(Debug, Parser)]
#[command(name = "threadline", version = version::LONG.as_str(), about, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    if let Some(arguments) = sandbox_exec::requested() {
        return sandbox_exec::run(arguments);
    }
    if is_hook() {
        return run_hook();
    }
    if let Some(words) = hook_words() {
        // No panic may fail a hook either; it is reported on stderr.
        let _ = std::panic::catch_unwind(|| commands::run_hook_words(words));
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse_from(arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
    };
    // First of all, since it may re-execute the process.
    if cli.command.is_server() {
        commands::serve::set_malloc_threshold();
    }
    let is_json = cli.global.json;
    let outcome =
        Context::new(&cli.global, cli.command.source_use()).and_then(|mut cx| cli.command.run(&mut cx));
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) if is_json => {
            ui::write_stderr(&text!("{}", error.to_json()));
            ExitCode::from(2)
        }
        Err(error) => {
            ui::write_stderr(&text!("{error}"));
            ExitCode::from(2)
        }
    }
}

/// Returns the arguments. A program that starts `claude` gets the chat: a link of that name to this binary
/// behaves as `chat`.
fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = given.collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    if program.is_some_and(|name| name == "claude") {
        arguments.insert(1, "chat".into());
    }
    arguments
}

/// Returns whether Claude Code runs this process as a hook. In that case no error, not even an invalid
/// argument, may fail it.
fn is_hook() -> bool {
    let mut words = std::env::args_os().skip(1).skip_while(|word| word != "trace");
    let named = words.next().is_some() && words.next().is_some_and(|word| word == "hook");
    named && !words.any(|word| word == "--help" || word == "-h")
}

/// Returns the words after `hook`, if that is the command. They are not parsed like other arguments, so that
/// none can fail the hook, and because that takes longer than the hook itself.
fn hook_words() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os().skip(1);
    let is_hook = words.next().is_some_and(|word| word == "hook");
    let words: Vec<OsString> = words.collect();
    (is_hook && !words.iter().any(|word| word == "--help" || word == "-h")).then_some(words)
}

/// Runs the hook: exits with 0 and writes nothing to stdout.
fn run_hook() -> ExitCode {
    let run = || match Cli::try_parse() {
        Ok(cli) => {
            let outcome = Context::new(&cli.global, cli.command.source_use())
                .and_then(|mut cx| cli.command.run(&mut cx));
            outcome.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Ok(Err(error)) = std::panic::catch_unwind(run) {
        ui::write_stderr(&text!("{error}"));
    }
    ExitCode::SUCCESS
}

/// Reports a panic like the default hook, except that control characters in the message, which may quote a
/// log, are escaped, and that a closed stderr causes no second panic.
fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("unknown");
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let backtrace = std::backtrace::Backtrace::capture();
    ui::write_stderr(&text!("threadline panicked{place}:\n  {message}\n"));
    match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => ui::write_stderr(&text!("{backtrace}\n")),
        _ => ui::write_stderr(&text!("hint: set RUST_BACKTRACE=1 for a backtrace\n")),
    }
}

/// Prints help, or an error in the arguments.
fn report_usage(error: &clap::Error) -> ExitCode {
    // Messages quote arguments, so they are printed with colours only if the arguments contain no control
    // characters.
    let is_plain = |arg: &OsString| arg.to_str().is_some_and(|arg| visible(arg) == *arg);
    let args: Vec<OsString> = std::env::args_os().collect();
    let is_colorless = |pair: &[OsString]| pair[0] == "--color" && pair[1] == "never";
    let has_color = !args.iter().any(|arg| arg == "--color=never") && !args.windows(2).any(is_colorless);
    // A write error cannot be reported anywhere.
    if error.use_stderr() && args.iter().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let (message, hint) =
            text.split_once("\n\n").map_or((&*text, None), |(first, rest)| (first, Some(rest)));
        let message = message.trim_start_matches("error: ").trim();
        ui::write_stderr(&text!("{}", json_error("usage", message, hint.map(str::trim))));
    } else if !args.iter().all(is_plain) || error.use_stderr() && !has_color {
        ui::write_stderr(&text!("{}", error.render()));
    } else if has_color {
        let _ = error.print();
    } else {
        let _ = std::io::stdout().write_all(error.render().to_string().as_bytes());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_named_claude_is_the_chat() {
        let run = |words: &str| {
            let words = arguments(words.split(' ').map(OsString::from));
            words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(run("/opt/bin/claude -p hi"), "/opt/bin/claude chat -p hi");
        assert_eq!(run("threadline list"), "threadline list");
    }
}
