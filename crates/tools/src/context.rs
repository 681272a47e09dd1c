//! Everything a tool call may use: folders, file states, processes, limits, the model.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::background::BackgroundTasks;
use crate::cancel::CancelToken;
use crate::file_state::FileStates;
use crate::limits::Limits;

/// The surroundings of a tool call. The caller owns everything; a tool has no other access to the session.
pub struct ToolContext<'a> {
    /// Cancels the call: child processes are killed, waits end.
    pub cancel: &'a CancelToken,
    /// The id of the `tool_use` block.
    pub tool_use_id: &'a str,
    /// The folder in which the session was started.
    pub project: &'a Path,
    /// Further folders in which the shell may stay (`--add-dir`).
    pub additional_dirs: &'a [PathBuf],
    /// The home folder, for `~` in paths.
    pub home: Option<&'a Path>,
    /// The current folder, which persists between Bash calls.
    pub shell: &'a ShellState,
    /// The files that the model has seen.
    pub files: &'a FileStates,
    /// Called before a file is changed.
    pub observer: &'a dyn FileObserver,
    /// The folder for large outputs: `<session folder>/tool-results`. Created when needed.
    pub side_files: &'a Path,
    /// The folder for outputs of commands: `<tmp>/claude-<uid>/<slug>/<session>/tasks`. Created when needed.
    pub tasks_dir: &'a Path,
    /// The folder of the task list: `~/.claude/tasks/<session>`. Created when needed.
    pub task_list_dir: &'a Path,
    /// Commands that run in the background.
    pub background: &'a BackgroundTasks,
    /// The whole environment of child processes.
    pub environment: &'a [(OsString, OsString)],
    /// The program that starts shells in a sandbox; `None` for no sandbox.
    pub launcher: Option<&'a CommandLauncher>,
    /// Whether searches leave out a file.
    pub is_hidden: &'a (dyn Fn(&Path) -> bool + Sync),
    /// Limits of sizes, counts and times.
    pub limits: &'a Limits,
    /// Requests to the model, for tools that need one.
    pub model: &'a dyn ModelAccess,
    /// Receives the output of running commands.
    pub progress: &'a (dyn Fn(ToolProgress) + Sync),
}

impl ToolContext<'_> {
    /// Returns the current folder, against which relative paths are resolved.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.shell.cwd()
    }

    /// Returns whether `path` is below the project or an additional folder.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        let roots = std::iter::once(self.project).chain(self.additional_dirs.iter().map(PathBuf::as_path));
        roots.into_iter().any(|root| {
            path.starts_with(root) || root.canonicalize().is_ok_and(|root| path.starts_with(root))
        })
    }

    /// Returns a variable of the child environment as text.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().rev().find(|(key, _)| key == name).and_then(|(_, value)| value.to_str())
    }
}

/// A program that restricts itself and then runs the command that follows its arguments.
#[derive(Debug, Clone)]
pub struct CommandLauncher {
    /// The program.
    pub program: PathBuf,
    /// Its own arguments.
    pub arguments: Vec<OsString>,
}

/// The state of the shell that persists between calls: its current folder.
#[derive(Debug)]
pub struct ShellState {
    cwd: Mutex<PathBuf>,
}

impl ShellState {
    /// Returns a shell that is in `cwd`.
    #[must_use]
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Mutex::new(cwd.into()) }
    }

    /// Returns the current folder.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.cwd.lock().clone()
    }

    /// Changes the current folder.
    pub fn set_cwd(&self, cwd: impl Into<PathBuf>) {
        *self.cwd.lock() = cwd.into();
    }
}

/// Observes changes of files before they happen.
pub trait FileObserver: Sync {
    /// Called with the absolute path before a tool creates, changes or replaces a file. The file history
    /// takes its backup here.
    fn before_change(&self, path: &Path);
}

/// Requests to the model that tools make.
pub trait ModelAccess: Sync {
    /// Answers `prompt` about the Markdown text of a web page, with a small model.
    ///
    /// # Errors
    /// Returns the text for the model if the request failed.
    fn summarize(&self, page: &str, prompt: &str, cancel: &CancelToken) -> Result<String, String>;

    /// Searches the web with the server tool of the API.
    ///
    /// # Errors
    /// Returns the text for the model if the request failed.
    fn web_search(
        &self,
        search: &WebSearchRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<WebSearchReply, String>;

    /// Returns the number of tokens of `text`, if it can be counted.
    fn count_tokens(&self, text: &str) -> Option<u64> {
        let _ = text;
        None
    }
}

/// A search of the web.
#[derive(Debug, Clone, Copy)]
pub struct WebSearchRequest<'a> {
    /// The words to search for.
    pub query: &'a str,
    /// Only results of these hosts; empty for all.
    pub allowed_domains: &'a [String],
    /// No results of these hosts.
    pub blocked_domains: &'a [String],
}

/// The reply of the model to a search request, in the order of its blocks.
#[derive(Debug, Clone, Default)]
pub struct WebSearchReply {
    /// Texts and results.
    pub parts: Vec<WebSearchPart>,
}

/// One part of the reply to a search.
#[derive(Debug, Clone)]
pub enum WebSearchPart {
    /// Text of the model.
    Text(String),
    /// The results of one search.
    Results {
        /// The id of the `server_tool_use` block.
        tool_use_id: String,
        /// The pages found.
        hits: Vec<WebSearchHit>,
    },
    /// A search that failed, with its error code.
    Error(String),
}

/// One page found by a search.
#[derive(Debug, Clone)]
pub struct WebSearchHit {
    /// The title of the page.
    pub title: String,
    /// Its address.
    pub url: String,
}

/// A [`ModelAccess`] that refuses every request, for tests and offline use.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModel;

impl ModelAccess for NoModel {
    fn summarize(&self, _: &str, _: &str, _: &CancelToken) -> Result<String, String> {
        Err("No model is available.".to_owned())
    }

    fn web_search(&self, _: &WebSearchRequest<'_>, _: &CancelToken) -> Result<WebSearchReply, String> {
        Err("No model is available.".to_owned())
    }
}

/// Progress of a running call.
#[derive(Debug, Clone)]
pub enum ToolProgress {
    /// New output of a command, decoded; at most a few kilobytes at a time.
    Output(String),
}
