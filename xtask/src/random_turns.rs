//! Random turns on the screen of `chat`, and the session that they leave, as real versions of Claude Code
//! resume it.
//!
//! The turns are those of a test of `threadline`: texts, faults, approvals, refusals, interruptions, rewinds
//! and resizes from a seed. Each version must send the messages that `threadline replay --as` returns for it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::bench::shared;
use crate::conformance::{RequestBlock, blocks, first_difference, run_claude};

const USAGE: &str = "usage: cargo xtask random-turns [--turns N] [--seed N] [--claude CMD]...";

/// The versions that are asked if no command is given.
const VERSIONS: &[&str] = &["2.1.197", "2.1.325"];

struct TurnArgs {
    turns: String,
    seed: String,
    claude: Vec<String>,
}

fn parse(words: &[&str]) -> Option<TurnArgs> {
    let mut args = TurnArgs { turns: "500".to_owned(), seed: "1".to_owned(), claude: Vec::new() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = (*words.next()?).to_owned();
        match *word {
            "--turns" if value.parse::<u32>().is_ok() => args.turns = value,
            "--seed" if value.parse::<u64>().is_ok() => args.seed = value,
            "--claude" => args.claude.push(value),
            _ => return None,
        }
    }
    Some(args)
}

pub(crate) fn run(words: &[&str]) -> ExitCode {
    let Some(mut args) = parse(words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Some(log) = take_turns(&root, &args) else {
        eprintln!("the turns failed; the test printed why");
        return ExitCode::from(1);
    };
    println!("{} turns with seed {}: screen and session agree ({})", args.turns, args.seed, log.display());
    if args.claude.is_empty() {
        args.claude = oracle_commands();
    }
    if args.claude.is_empty() {
        println!("Claude Code: skipped. `--claude CMD` names a command that prints what it sends for a log");
        return ExitCode::SUCCESS;
    }
    let results: Vec<bool> = args.claude.iter().map(|way| is_resumed(&root, way, &log)).collect();
    if results.iter().all(|is_same| *is_same) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Takes the turns. Returns the log of the session.
fn take_turns(root: &Path, args: &TurnArgs) -> Option<PathBuf> {
    let folder = root.join("target/random-turns").join(&args.seed);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).ok()?;
    let folder = folder.canonicalize().ok()?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "-q", "-p", "threadline", "--test", "it", "screen::random"]).current_dir(root);
    cargo.env("THREADLINE_SCREEN_TURNS", &args.turns).env("THREADLINE_SCREEN_SEED", &args.seed);
    cargo.env("THREADLINE_SCREEN_FOLDER", &folder);
    cargo.status().ok().filter(std::process::ExitStatus::success)?;
    let mut files = std::fs::read_dir(&folder).ok()?.flatten();
    files.next().map(|file| file.path())
}

/// The commands of the shared folder that run Claude Code, if there is one.
pub(crate) fn oracle_commands() -> Vec<String> {
    let script = shared().join("oracle/claude_oracle.py");
    let command = |version: &&str| format!("python3 {} replay --version {version}", script.display());
    if script.exists() { VERSIONS.iter().map(command).collect() } else { Vec::new() }
}

/// Whether a version of Claude Code sends for the session what we replay for it.
fn is_resumed(root: &Path, way: &str, log: &Path) -> bool {
    let (version, sent) = run_claude(way, log);
    let Some(sent) = sent else {
        println!("Claude Code {version}: does not resume the session");
        return false;
    };
    let replayed = replay(root, &version, log);
    match first_difference(&replayed, &sent) {
        None => {
            println!("Claude Code {version}: resumes it; all {} blocks are those of our replay", sent.len());
            true
        }
        Some(difference) => {
            println!("Claude Code {version}: differs: {difference}");
            false
        }
    }
}

fn replay(root: &Path, version: &str, log: &Path) -> Vec<RequestBlock> {
    let binary = std::env::current_exe().ok().map(|own| own.with_file_name("threadline"));
    let binary = binary.filter(|path| path.exists()).unwrap_or_else(|| root.join("target/debug/threadline"));
    let done = Command::new::<PathBuf>(binary).args(["--json", "replay", "--as", version]).arg(log).output();
    let out = done.map(|done| done.stdout).unwrap_or_default();
    let answer: Value = serde_json::from_slice(&out).unwrap_or_default();
    blocks(&answer["messages"])
}
