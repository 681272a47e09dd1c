//! Settings files of Claude Code: where they are, what they contain, which of them wins, and whether the
//! folder they are in is trusted.
//!
//! [`SettingsStack::load`] reads every source. Values are asked for through the stack, which applies the
//! precedence: managed settings, then `--settings`, then `.claude/settings.local.json`, then
//! `.claude/settings.json`, then the user's own file. Lists such as permission rules are joined, and each
//! item keeps its source.
//!
//! Files of a folder that the user has not trusted may restrict the client, but not extend what it does:
//! see [`SettingsFile::may_extend`].

mod hook_command;
mod json_text;
mod load;
mod mcp_entry;
mod rule_entry;
mod settings;
mod stack;
mod status_line;
mod trust;

#[cfg(test)]
mod tests;

pub use hook_command::{
    FEATURE_SEPARATOR, HookEvent, HookFeature, HookProgram, InstalledHook, SettingsChange, SettingsEditError,
};
pub use load::{SettingsError, SettingsInput, SettingsPaths, read_text, user_settings};
pub use mcp_entry::McpEntry;
pub use rule_entry::RuleEntry;
pub use settings::{PermissionSettings, SandboxNetwork, SandboxSettings, Settings};
pub use stack::{IgnoredSetting, SettingsFile, SettingsSource, SettingsStack, SourcedRule};
pub use status_line::StatusLine;
pub use trust::{TrustedFolders, config_file};
