//! All settings of a session, with their precedence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::settings::{PermissionSettings, Settings};

/// Where settings come from, lowest precedence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsSource {
    /// `settings.json` in the home of Claude Code.
    User,
    /// `.claude/settings.json` of the project, which is shared with others.
    Project,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `--settings`.
    Flag,
    /// Settings of the administrator.
    Managed,
}

impl SettingsSource {
    /// The name in flags and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flag => "flag",
            Self::Managed => "managed",
        }
    }
}

/// One file with settings.
#[derive(Clone, Debug)]
pub struct SettingsFile {
    /// Its kind.
    pub source: SettingsSource,
    /// The file; `None` for JSON on the command line.
    pub path: Option<PathBuf>,
    /// The folder that paths beginning with `/` in permission rules are relative to.
    pub base: PathBuf,
    /// The content.
    pub settings: Settings,
}

/// A permission rule and the folder that its paths are relative to.
#[derive(Clone, Copy, Debug)]
pub struct SourcedRule<'a> {
    /// The rule.
    pub rule: &'a str,
    /// Its source.
    pub source: SettingsSource,
    /// The folder of [`SettingsFile::base`].
    pub base: &'a Path,
}

/// A setting that is not used because the folder is not trusted.
#[derive(Clone, Copy, Debug)]
pub struct IgnoredSetting<'a> {
    /// Its file.
    pub file: &'a SettingsFile,
    /// Its name in `permissions`.
    pub key: &'static str,
    /// The number of items.
    pub count: usize,
}

/// All settings of a session.
#[derive(Clone, Debug, Default)]
pub struct SettingsStack {
    /// Lowest precedence first.
    files: Vec<SettingsFile>,
    is_trusted: bool,
    problems: Vec<String>,
}

impl SettingsStack {
    /// Returns a stack without settings. `is_trusted`: whether the user trusts the working folder.
    #[must_use]
    pub fn new(is_trusted: bool) -> Self {
        Self { files: Vec::new(), is_trusted, problems: Vec::new() }
    }

    /// Adds a file.
    pub fn push(&mut self, file: SettingsFile) {
        let at = self.files.partition_point(|other| other.source <= file.source);
        self.files.insert(at, file);
    }

    pub(crate) fn add_problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Returns whether the user trusts the working folder.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Returns the files that could not be used, with the reason.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns all files, lowest precedence first, whether the folder is trusted or not. Only for settings
    /// that restrict the client.
    pub fn files(&self) -> impl DoubleEndedIterator<Item = &SettingsFile> {
        self.files.iter()
    }

    /// Returns the files that may extend what the client does, lowest precedence first: hooks, helpers,
    /// servers, allow rules. Without trust, the files of the working folder are left out.
    pub fn trusted_files(&self) -> impl DoubleEndedIterator<Item = &SettingsFile> {
        self.files.iter().filter(|file| file.may_extend(self.is_trusted))
    }

    /// Returns the first value that a file has, highest precedence first. Untrusted files are left out.
    pub fn value<'a, T>(&'a self, get: impl Fn(&'a Settings) -> Option<T>) -> Option<T> {
        self.trusted_files().rev().find_map(|file| get(&file.settings))
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.value(|settings| settings.model.as_deref())
    }

    /// Returns the command that prints the API key.
    #[must_use]
    pub fn api_key_helper(&self) -> Option<&str> {
        self.value(|settings| settings.api_key_helper.as_deref())
    }

    /// Returns the command of the status line.
    #[must_use]
    pub fn status_line(&self) -> Option<&RawValue> {
        self.value(|settings| settings.status_line.as_deref())
    }

    /// Returns the hooks of each file, lowest precedence first; empty if hooks are disabled.
    #[must_use]
    pub fn hooks(&self) -> Vec<(SettingsSource, &RawValue)> {
        if self.value(|settings| settings.disable_all_hooks) == Some(true) {
            return Vec::new();
        }
        let files = self.trusted_files();
        files.filter_map(|file| Some((file.source, file.settings.hooks.as_deref()?))).collect()
    }

    /// Returns the variables for the client and its child processes.
    #[must_use]
    pub fn env(&self) -> BTreeMap<&str, &str> {
        let files = self.trusted_files();
        files
            .flat_map(|file| &file.settings.env)
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    /// Returns whether a server of `.mcp.json` is started: `None` if no file mentions it.
    #[must_use]
    pub fn is_project_server_enabled(&self, name: &str) -> Option<bool> {
        let names = |list: &[String]| list.iter().any(|other| other == name);
        // Everybody may turn a server off.
        if self.files().any(|file| names(&file.settings.disabled_mcpjson_servers)) {
            return Some(false);
        }
        let is_named = self.trusted_files().any(|file| names(&file.settings.enabled_mcpjson_servers));
        let all = self.value(|settings| settings.enable_all_project_mcp_servers);
        if is_named || all == Some(true) { Some(true) } else { None }
    }

    /// Returns the rules that allow calls. Rules of an untrusted folder are left out.
    #[must_use]
    pub fn allow_rules(&self) -> Vec<SourcedRule<'_>> {
        rules(self.trusted_files(), |permissions| &permissions.allow)
    }

    /// Returns the rules for calls that need an answer.
    #[must_use]
    pub fn ask_rules(&self) -> Vec<SourcedRule<'_>> {
        rules(self.files(), |permissions| &permissions.ask)
    }

    /// Returns the rules that refuse calls.
    #[must_use]
    pub fn deny_rules(&self) -> Vec<SourcedRule<'_>> {
        rules(self.files(), |permissions| &permissions.deny)
    }

    /// Returns the settings that are not used because the folder is not trusted.
    #[must_use]
    pub fn ignored(&self) -> Vec<IgnoredSetting<'_>> {
        let files = self.files.iter().filter(|file| !file.may_extend(self.is_trusted));
        let settings = files.flat_map(|file| {
            let permissions = &file.settings.permissions;
            let counts = [
                ("allow", permissions.allow.len()),
                ("additionalDirectories", permissions.additional_directories.len()),
            ];
            counts.map(|(key, count)| IgnoredSetting { file, key, count })
        });
        settings.filter(|setting| setting.count > 0).collect()
    }

    /// Returns the permission mode at the start of a session.
    #[must_use]
    pub fn default_mode(&self) -> Option<&str> {
        self.value(|settings| settings.permissions.default_mode.as_deref())
    }

    /// Returns whether the mode `bypassPermissions` is forbidden.
    #[must_use]
    pub fn is_bypass_disabled(&self) -> bool {
        let is_disabled = |file: &SettingsFile| {
            file.settings.permissions.disable_bypass_permissions_mode.as_deref() == Some("disable")
        };
        self.files().any(is_disabled)
    }

    /// Returns further working folders, as they are written in the files.
    #[must_use]
    pub fn additional_directories(&self) -> Vec<SourcedRule<'_>> {
        rules(self.trusted_files(), |permissions| &permissions.additional_directories)
    }

    /// Returns whether shell commands run in the sandbox. Every file may turn it on; only trusted ones turn
    /// it off.
    #[must_use]
    pub fn is_sandbox_enabled(&self) -> bool {
        let is_forced = self
            .files()
            .any(|file| !file.may_extend(self.is_trusted) && file.settings.sandbox.enabled == Some(true));
        is_forced || self.value(|settings| settings.sandbox.enabled) == Some(true)
    }
}

impl SettingsFile {
    /// Returns whether the file may extend what the client does. Files of the working folder may only if the
    /// user trusts it: they come with the repository.
    #[must_use]
    pub fn may_extend(&self, is_trusted: bool) -> bool {
        is_trusted || !matches!(self.source, SettingsSource::Project | SettingsSource::Local)
    }
}

fn rules<'a>(
    files: impl Iterator<Item = &'a SettingsFile>,
    list: impl Fn(&'a PermissionSettings) -> &'a Vec<String>,
) -> Vec<SourcedRule<'a>> {
    files
        .flat_map(|file| {
            list(&file.settings.permissions).iter().map(|rule| SourcedRule {
                rule,
                source: file.source,
                base: &file.base,
            })
        })
        .collect()
}
