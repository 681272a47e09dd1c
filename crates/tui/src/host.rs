//! The operations that the screen needs from the program around it.

use std::path::{Path, PathBuf};

use tempfile::TempPath;
use threadline_agent::{AgentConfig, MemoryFile};
use threadline_api::RawObject;
use threadline_cancel::CancelToken;
use threadline_entry::key;
use threadline_mcp_client::McpServers;

use crate::model::Model;
use crate::permission_rule::ScreenRule;

/// The program around the screen: settings, files, and other commands of it.
pub trait ScreenHost: Send + Sync {
    /// Starts the MCP servers of a session. Called once, on the agent's thread.
    fn connect_mcp(&self, config: &AgentConfig, cancel: &CancelToken) -> McpServers;

    /// Adds allow rules to the settings of this folder.
    ///
    /// # Errors
    ///
    /// The reason if they cannot be written.
    fn save_rules(&self, rules: &[String]) -> Result<(), String>;

    /// Returns the permission rules of the settings files.
    fn rules(&self) -> Vec<ScreenRule>;

    /// Adds a rule to its settings file. Returns the folder that its paths are relative to.
    ///
    /// # Errors
    ///
    /// The reason if it cannot be written.
    fn add_rule(&self, rule: &ScreenRule) -> Result<PathBuf, String>;

    /// Removes a rule from its settings file.
    ///
    /// # Errors
    ///
    /// The reason if it cannot be written.
    fn remove_rule(&self, rule: &ScreenRule) -> Result<(), String>;

    /// Restores the files of a session as they were at a prompt. Returns a summary in one line.
    ///
    /// # Errors
    ///
    /// The reason if nothing can be restored.
    fn restore_files(&self, log: &Path, prompt: &str) -> Result<String, String>;

    /// Writes the conversation as Markdown to a file, by default one in the working folder. Returns the file.
    ///
    /// # Errors
    ///
    /// The reason if it cannot be written.
    fn export(&self, log: &Path, file: Option<&Path>) -> Result<PathBuf, String>;

    /// Adds a line to the memory file of the working folder. Returns the file and all memory files.
    ///
    /// # Errors
    ///
    /// The reason if it cannot be written.
    fn remember(&self, note: &str) -> Result<(PathBuf, Vec<MemoryFile>), String>;

    /// Lets the person choose a session, on the whole screen. `None` if none was chosen.
    fn pick_session(&self) -> Option<PathBuf>;

    /// Shows the whole session in a pager, with thinking and results in full.
    fn show_session(&self, log: &Path);

    /// Returns the model in plan mode for a name that means two models.
    fn plan_model(&self, name: &str) -> Option<String>;

    /// Returns the full name of a model.
    fn model_name(&self, name: &str) -> String;

    /// Saves the image of the clipboard in a temporary file.
    ///
    /// # Errors
    ///
    /// The reason if there is none, in one sentence.
    fn clipboard_image(&self) -> Result<TempPath, String>;

    /// Runs the user's status-line command with facts about the session as JSON on its standard input.
    /// Returns the first line of its output; `None` if there is no such command.
    fn status_line(&self, facts: &str) -> Option<String>;
}

/// Returns facts about the session as JSON, as Claude Code gives them to the status-line command.
pub(crate) fn status_facts(model: &Model, cwd: &Path) -> String {
    let facts = &model.facts;
    RawObject::new()
        .with("hook_event_name", "Status")
        .with(key::SESSION_ID_SNAKE, &facts.id)
        .with("transcript_path", &facts.log)
        .with("cwd", cwd)
        .with("model", RawObject::new().with("id", &facts.model).with("display_name", &facts.model))
        .with("workspace", RawObject::new().with("current_dir", cwd).with("project_dir", cwd))
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("cost", RawObject::new().with("total_cost_usd", model.cost_usd))
        .to_json()
}
