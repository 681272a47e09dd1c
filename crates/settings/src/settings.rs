//! The content of one settings file.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The settings of one file. Members that the client does not use are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Settings {
    /// Permission rules, the mode and further working folders.
    pub permissions: PermissionSettings,
    /// Variables for the client and for its child processes.
    pub env: BTreeMap<String, String>,
    /// Hooks by event, as they are in the file.
    pub hooks: Option<Box<RawValue>>,
    /// Whether no hook runs at all.
    pub disable_all_hooks: Option<bool>,
    /// A command that prints the API key.
    pub api_key_helper: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The effort that is asked for.
    pub effort_level: Option<String>,
    /// The sandbox of shell commands.
    pub sandbox: SandboxSettings,
    /// Whether all servers of `.mcp.json` are started.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// The servers of `.mcp.json` that are started.
    pub enabled_mcpjson_servers: Vec<String>,
    /// The servers of `.mcp.json` that are not started.
    pub disabled_mcpjson_servers: Vec<String>,
    /// The command of the status line, as it is in the file.
    pub status_line: Option<Box<RawValue>>,
    /// The style of answers.
    pub output_style: Option<String>,
    /// Patterns of memory files that are not read.
    pub claude_md_excludes: Vec<String>,
    /// Whether commits name the client as their author.
    pub include_co_authored_by: Option<bool>,
    /// The number of days after which sessions are deleted. Threadline deletes none; the value is read for
    /// `check`.
    pub cleanup_period_days: Option<f64>,
    /// Whether the model thinks by default.
    pub always_thinking_enabled: Option<bool>,
}

/// The permissions of one file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PermissionSettings {
    /// Rules that allow calls.
    #[serde(deserialize_with = "strings")]
    pub allow: Vec<String>,
    /// Rules for calls that need an answer of the user.
    #[serde(deserialize_with = "strings")]
    pub ask: Vec<String>,
    /// Rules that refuse calls.
    #[serde(deserialize_with = "strings")]
    pub deny: Vec<String>,
    /// The mode at the start of a session.
    pub default_mode: Option<String>,
    /// `disable` if the mode `bypassPermissions` may not be used.
    pub disable_bypass_permissions_mode: Option<String>,
    /// Further working folders.
    pub additional_directories: Vec<String>,
}

/// The sandbox settings of one file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// Whether shell commands run in the sandbox.
    pub enabled: Option<bool>,
    /// Whether sandboxed commands run without asking.
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Commands that run outside of the sandbox.
    pub excluded_commands: Vec<String>,
    /// Whether a call may ask to run outside of the sandbox.
    pub allow_unsandboxed_commands: Option<bool>,
    /// Access to the network.
    pub network: SandboxNetwork,
}

/// The network settings of the sandbox of one file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SandboxNetwork {
    /// Hosts that commands may connect to. The client cannot filter by host: a non-empty list that contains
    /// `*` allows the network, others do not.
    pub allowed_domains: Vec<String>,
    /// Whether commands may listen on local ports.
    pub allow_local_binding: Option<bool>,
}

/// Reads a list of strings. Items of another type are left out, as Claude Code does: a broken rule must not
/// turn off the others.
fn strings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let items = Vec::<serde_json::Value>::deserialize(deserializer)?;
    let texts = items.into_iter().filter_map(|item| match item {
        serde_json::Value::String(text) => Some(text),
        _ => None,
    });
    Ok(texts.collect())
}
