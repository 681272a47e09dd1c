//! Shell calls, for a program that watches what they change.

use std::fmt;
use std::path::{Path, PathBuf};

/// A call of the shell tool.
#[derive(Clone, Debug)]
pub struct ShellCall<'a> {
    /// The session.
    pub session_id: String,
    /// The id of the call.
    pub tool_use_id: &'a str,
    /// The sub-agent that makes it; `None` for the main conversation.
    pub agent_id: Option<&'a str>,
    /// The name of the tool.
    pub tool: &'a str,
    /// The command.
    pub command: Option<String>,
    /// The working directory before the call.
    pub cwd: PathBuf,
    /// The folder of the session.
    pub project: &'a Path,
    /// The log of the session.
    pub log: PathBuf,
}

/// Watches shell calls. Calls of sub-agents may overlap.
pub trait ShellCallObserver: fmt::Debug + Send + Sync {
    /// Is called before a call runs, after it was permitted.
    fn before(&self, call: &ShellCall<'_>);

    /// Is called when it has ended, or goes on in the background.
    fn after(&self, call: &ShellCall<'_>);
}
