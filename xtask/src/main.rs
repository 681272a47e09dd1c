//! Development tasks of the repository.
//!
//! - `cargo xtask agent-sdk` drives the client with the Agent SDK, and with MCP servers that others wrote.
//! - `cargo xtask archive` checks the archive with real versions of Claude Code, on an S3 server
//!   and in a PostgreSQL database.
//! - `cargo xtask bench` runs all benchmarks; `queries` (`usage`, `list`, `search`, `blame`), `archive`,
//!   `blame`, `files`, `chat`, `mcp`, `postgres`, `tui`, `viewer`, `export` and `hostile` run one group.
//! - `cargo xtask conformance` compares edited sessions with the requests of real versions of Claude Code.
//! - `cargo xtask dist` makes the files of a release; `build` those of one target, `finish` those of all.
//! - `cargo xtask mcp` checks the MCP server with clients that others wrote, `xtask plugin` the plugin in
//!   the real Claude Code.
//! - `cargo xtask random-turns` takes random turns on the screen and resumes the session with real versions
//!   of Claude Code.
//! - `cargo xtask receivers` sends real sessions to MLflow and Phoenix and reads them back.
//! - `cargo xtask record` records a session on the screen of `--demo chat` for the README.
//! - `cargo xtask sdk` streams from the scripted API with the official SDKs and compares the messages.
//! - `cargo xtask tables` compares the Parquet tables, as DuckDB and chdb read them, with `usage`.
//! - `cargo xtask tidy` prints statistics about the code.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer tool prints its results")]
#![allow(clippy::disallowed_methods, reason = "a developer tool reads the environment and the clock")]

mod agent_sdk;
mod archive_bench;
mod archive_check;
mod archive_encryption;
mod archive_faults;
mod archive_resume;
mod bench;
mod blame_bench;
mod client_bench;
mod command;
mod conformance;
mod corpus;
mod dist;
mod edit_bench;
mod files_bench;
mod hostile;
mod mcp_bench;
mod mcp_check;
mod peer;
#[cfg(unix)]
mod postgres_bench;
#[cfg(unix)]
mod postgres_check;
mod query_bench;
mod random_turns;
mod receivers;
#[cfg(unix)]
mod recording;
mod sdk;
mod server_process;
mod tables_check;
mod tidy;
mod trace;
#[cfg(unix)]
mod tui_bench;
mod viewer;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["agent-sdk"] => agent_sdk::run(),
        ["archive"] => archive_check::run(),
        ["bench"] => bench::run(),
        ["bench", "archive"] => bench::archive(),
        #[cfg(unix)]
        ["bench", "postgres"] => bench::postgres(),
        ["bench", "queries"] => bench::queries(),
        ["bench", "blame"] => bench::blame(),
        ["bench", "files"] => bench::files(),
        ["bench", "chat"] => bench::chat(),
        ["bench", "mcp"] => bench::mcp(),
        #[cfg(unix)]
        ["bench", "tui"] => bench::tui(tui_bench::TURNS),
        #[cfg(unix)]
        ["bench", "tui", "--turns", turns] if turns.parse::<usize>().is_ok_and(|turns| turns >= 10) => {
            bench::tui(turns.parse().unwrap_or(tui_bench::TURNS))
        }
        ["bench", "viewer"] => bench::viewer(false),
        ["bench", "viewer", "--quick"] => bench::viewer(true),
        ["bench", "export"] => bench::export(),
        ["bench", "hostile"] => bench::hostile(""),
        ["bench", "hostile", only] => bench::hostile(only),
        ["bench", "--child", what, path] => bench::child(what, path.as_ref()),
        ["conformance", ref args @ ..] => conformance::run(args),
        ["dist", ref args @ ..] => dist::run(args),
        ["mcp"] => mcp_check::run(),
        ["plugin"] => mcp_check::run_plugin(),
        ["random-turns", ref args @ ..] => random_turns::run(args),
        ["receivers", ref args @ ..] => receivers::run(args),
        #[cfg(unix)]
        ["record"] => recording::run(),
        ["sdk"] => sdk::run(),
        ["tables"] => tables_check::run(),
        ["tidy"] => tidy::run(),
        _ => {
            eprintln!(
                "usage: cargo xtask agent-sdk | archive | bench [archive | blame | files | postgres | queries | chat | mcp | tui [--turns N] | viewer [--quick] | export | hostile [WORD]] | conformance | dist [build | finish] | mcp | plugin | random-turns | receivers | record | sdk | tables | tidy"
            );
            ExitCode::from(2)
        }
    }
}
