//! Other programs that do the same: found, tried once, and measured only if they answer.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::bench::Card;

/// A program to compare with. It is not ours to install, but without it the comparison has failed.
pub(crate) struct Peer {
    name: &'static str,
    /// The variable that names the program, if it is not found by its name.
    variable: &'static str,
    install: &'static str,
}

pub(crate) const CCUSAGE: Peer = Peer {
    name: "ccusage",
    variable: "CCUSAGE",
    install: "npm install ccusage@20.0.24 @ccusage/ccusage-linux-x64@20.0.24, then chmod +x and CCUSAGE=node_modules/@ccusage/ccusage-linux-x64/bin/ccusage",
};
pub(crate) const RIPGREP: Peer = Peer { name: "rg", variable: "RIPGREP", install: "apt install ripgrep" };
pub(crate) const CLAUDE_CODE_LOG: Peer = Peer {
    name: "claude-code-log",
    variable: "CLAUDE_CODE_LOG",
    install: "pip install claude-code-log in a virtual environment, then CLAUDE_CODE_LOG=VENV/bin/claude-code-log",
};

impl Peer {
    /// A command that runs it.
    pub(crate) fn command(&self) -> Command {
        let named = std::env::var_os(self.variable).map(PathBuf::from);
        Command::new(named.unwrap_or_else(|| self.name.into()))
    }

    /// Whether it answers what it is about to be measured with. If it does not, the row `what` is missed.
    pub(crate) fn answers(&self, mut command: Command, what: &str, card: &mut Card) -> bool {
        let failed = try_once(&mut command).err();
        if let Some(why) = &failed {
            card.failed(what, &format!("{} {why}; to install it: {}", self.name, self.install));
        }
        failed.is_none()
    }
}

/// Runs a command to its end; says why that is not worth measuring.
pub(crate) fn try_once(command: &mut Command) -> Result<(), String> {
    let done = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let done = done.map_err(|error| format!("cannot be started ({error})"))?;
    match done.status.code() {
        Some(0) => Ok(()),
        // Nothing found is an answer too.
        Some(1) if done.stdout.is_empty() => Ok(()),
        _ => Err(format!("fails ({})", done.status)),
    }
}
