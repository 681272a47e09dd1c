//! Other programs to compare with: each is run once, and measured only if that succeeds.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::bench::BenchReport;

/// A program to compare with. We do not install it, but without it the comparison counts as failed.
pub(crate) struct ComparedProgram {
    name: &'static str,
    /// The environment variable with the path of the program, if it is not in `PATH`.
    variable: &'static str,
    install: &'static str,
}

pub(crate) const CCUSAGE: ComparedProgram = ComparedProgram {
    name: "ccusage",
    variable: "CCUSAGE",
    install: "npm install ccusage@20.0.24 @ccusage/ccusage-linux-x64@20.0.24, then chmod +x and CCUSAGE=node_modules/@ccusage/ccusage-linux-x64/bin/ccusage",
};
pub(crate) const RIPGREP: ComparedProgram =
    ComparedProgram { name: "rg", variable: "RIPGREP", install: "apt install ripgrep" };
pub(crate) const CLAUDE_CODE_LOG: ComparedProgram = ComparedProgram {
    name: "claude-code-log",
    variable: "CLAUDE_CODE_LOG",
    install: "pip install claude-code-log in a virtual environment, then CLAUDE_CODE_LOG=VENV/bin/claude-code-log",
};

pub(crate) const AGENTSVIEW: ComparedProgram = ComparedProgram {
    name: "agentsview",
    variable: "AGENTSVIEW",
    install: "pip install agentsview in a virtual environment, then AGENTSVIEW=VENV/bin/agentsview",
};

impl ComparedProgram {
    /// Returns how to install the program.
    pub(crate) fn install(&self) -> &'static str {
        self.install
    }

    /// Returns a command that runs the program.
    pub(crate) fn command(&self) -> Command {
        let named = std::env::var_os(self.variable).map(PathBuf::from);
        Command::new(named.unwrap_or_else(|| self.name.into()))
    }

    /// Returns whether the command to be measured succeeds. If it does not, the row `what` counts as failed.
    pub(crate) fn check_runs(&self, mut command: Command, what: &str, report: &mut BenchReport) -> bool {
        let failed = try_once(&mut command).err();
        if let Some(why) = &failed {
            report.fail(what, &format!("{} {why}; to install it: {}", self.name, self.install));
        }
        failed.is_none()
    }
}

/// Runs a command to completion. Returns an error if it is not worth measuring.
pub(crate) fn try_once(command: &mut Command) -> Result<(), String> {
    let done = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let done = done.map_err(|error| format!("cannot be started ({error})"))?;
    match done.status.code() {
        Some(0) => Ok(()),
        // No matches are a valid result.
        Some(1) if done.stdout.is_empty() => Ok(()),
        _ => Err(format!("fails ({})", done.status)),
    }
}
