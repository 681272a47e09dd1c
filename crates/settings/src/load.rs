//! Finds and reads settings files.

use std::io;
use std::path::{Path, PathBuf};

use crate::settings::Settings;
use crate::stack::{SettingsFile, SettingsSource, SettingsStack};
use crate::trust::{TrustedFolders, config_file};

/// The folders in which settings files are looked for.
#[derive(Clone, Debug)]
pub struct SettingsPaths {
    /// Claude Code's home, such as `~/.claude`.
    pub claude_home: PathBuf,
    /// The home folder of the user.
    pub user_home: Option<PathBuf>,
    /// The working folder of the session, with links resolved.
    pub project: PathBuf,
    /// The folder of managed settings; see [`SettingsPaths::managed_dir`].
    pub managed: PathBuf,
}

impl SettingsPaths {
    /// Returns the folder in which administrators put settings that users cannot change.
    #[must_use]
    pub fn managed_dir() -> PathBuf {
        let dir = if cfg!(target_os = "macos") {
            "/Library/Application Support/ClaudeCode"
        } else if cfg!(windows) {
            "C:\\Program Files\\ClaudeCode"
        } else {
            "/etc/claude-code"
        };
        PathBuf::from(dir)
    }
}

/// The flags that select settings.
#[derive(Clone, Debug, Default)]
pub struct SettingsInput {
    /// `--settings`: a file, or JSON itself.
    pub settings: Option<String>,
    /// `--setting-sources`: `user`, `project`, `local`, separated by commas; `None` for all.
    pub sources: Option<String>,
}

/// A flag that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file of `--settings` does not exist.
    #[error("Error: Settings file not found: {0}")]
    NotFound(String),
    /// The file of `--settings` is not a settings file.
    #[error("Error: Invalid settings file: {0}")]
    Invalid(String),
    /// A name in `--setting-sources` is unknown.
    #[error(
        "Error processing --setting-sources: Invalid setting source: {0}. Valid options are: user, project, local"
    )]
    UnknownSource(String),
}

/// The largest settings file that is read, in bytes.
const MAX_FILE_SIZE: u64 = 4 << 20;

impl SettingsStack {
    /// Reads all settings. Files that are missing are skipped; files that are invalid are listed in
    /// [`SettingsStack::problems`].
    ///
    /// # Errors
    /// Returns an error if a flag cannot be used.
    pub fn load(paths: &SettingsPaths, input: &SettingsInput) -> Result<Self, SettingsError> {
        let sources = sources(input.sources.as_deref())?;
        let trusted = TrustedFolders::read(&config_file(&paths.claude_home, paths.user_home.as_deref()));
        let mut stack = Self::new(trusted.contain(&paths.project));
        let project = paths.project.join(".claude");
        let files = [
            (SettingsSource::User, paths.claude_home.join("settings.json"), &paths.claude_home),
            (SettingsSource::Project, project.join("settings.json"), &paths.project),
            (SettingsSource::Local, project.join("settings.local.json"), &paths.project),
        ];
        // Started in the home folder, the project's file is the user's own.
        let is_own = project == paths.claude_home;
        for (source, path, base) in files {
            let is_double = is_own && source == SettingsSource::Project;
            if sources.contains(&source) && !is_double {
                stack.add_file(source, path, base);
            }
        }
        if let Some(value) = &input.settings {
            let settings = flag_settings(value, &paths.project)?;
            stack.push(SettingsFile {
                source: SettingsSource::Flag,
                path: None,
                base: paths.project.clone(),
                settings,
            });
        }
        for path in managed_files(&paths.managed) {
            stack.add_file(SettingsSource::Managed, path, &paths.managed);
        }
        Ok(stack)
    }

    fn add_file(&mut self, source: SettingsSource, path: PathBuf, base: &Path) {
        match read_settings(&path) {
            Ok(Some(settings)) => {
                let file = SettingsFile { source, path: Some(path), base: base.to_owned(), settings };
                self.push(file);
            }
            Ok(None) => {}
            Err(error) => {
                self.add_problem(format!("{}: {error}", path.display()));
                // The rest of an invalid file is not used, but nobody who refuses something expects that a
                // mistake elsewhere permits it.
                let settings = restrictions(&path);
                self.push(SettingsFile { source, path: Some(path), base: base.to_owned(), settings });
            }
        }
    }
}

/// Returns the rules of an invalid file that refuse calls or ask.
fn restrictions(path: &Path) -> Settings {
    let text = read_text(path).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let rules = |name: &str| {
        let items =
            json.get("permissions").and_then(|value| value.get(name)).and_then(|value| value.as_array());
        items.into_iter().flatten().filter_map(|item| item.as_str()).map(str::to_owned).collect()
    };
    let mut settings = Settings::default();
    settings.permissions.deny = rules("deny");
    settings.permissions.ask = rules("ask");
    settings
}

fn sources(flag: Option<&str>) -> Result<Vec<SettingsSource>, SettingsError> {
    let all = [SettingsSource::User, SettingsSource::Project, SettingsSource::Local];
    let Some(names) = flag else { return Ok(all.to_vec()) };
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let known = all.iter().find(|source| source.name() == name);
            known.copied().ok_or_else(|| SettingsError::UnknownSource(name.to_owned()))
        })
        .collect()
}

/// Reads the value of `--settings`.
fn flag_settings(value: &str, cwd: &Path) -> Result<Settings, SettingsError> {
    let text = value.trim();
    if let Ok(settings) = serde_json::from_str(text) {
        return Ok(settings);
    }
    match read_settings(&cwd.join(text)) {
        Ok(Some(settings)) => Ok(settings),
        Ok(None) => Err(SettingsError::NotFound(text.to_owned())),
        Err(_) => Err(SettingsError::Invalid(text.to_owned())),
    }
}

/// Returns the managed files, lowest precedence first.
fn managed_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("managed-settings.d")).into_iter().flatten().flatten();
    let mut parts: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    parts.sort();
    parts.insert(0, folder.join("managed-settings.json"));
    parts
}

/// Returns the user's own settings in a folder such as `~/.claude`; the defaults if they cannot be read.
pub fn user_settings(claude_home: &Path) -> Settings {
    read_settings(&claude_home.join("settings.json")).ok().flatten().unwrap_or_default()
}

/// Reads a settings file. `None` if it does not exist or is empty.
fn read_settings(path: &Path) -> io::Result<Option<Settings>> {
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_FILE_SIZE) {
        return Err(io::Error::other("too large"));
    }
    let text = match read_text(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text).map(Some).map_err(io::Error::from)
}

/// Reads a regular file, or one that a link leads to.
///
/// # Errors
///
/// Those of reading, and [`io::ErrorKind::InvalidInput`] for anything else: a pipe would block, a device may
/// never end.
pub fn read_text(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    std::fs::read_to_string(path)
}
