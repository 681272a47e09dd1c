//! The configuration file, and where each setting comes from.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Deserialize;
use threadline_html::PageTheme;

use crate::env;
use crate::error::CommandError;

/// The content of `config.toml`. Every setting is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfigFile {
    /// Folders with Claude Code's sessions.
    pub(crate) homes: Option<Vec<PathBuf>>,
    /// The time zone in which times are shown.
    pub(crate) time_zone: Option<String>,
    /// The file with prices.
    pub(crate) prices: Option<PathBuf>,
    /// The colours of pages.
    pub(crate) theme: Option<ThemeChoice>,
    /// The pager for long output.
    pub(crate) pager: Option<String>,
    /// Whether to mask secrets in output.
    pub(crate) redact: Option<bool>,
    /// A file with additional rules for secrets.
    pub(crate) redact_rules: Option<PathBuf>,
    /// A file with exceptions from these rules.
    pub(crate) redact_allow: Option<PathBuf>,
    /// The program with which `resume` continues a session.
    pub(crate) resume_with: Option<ResumeProgram>,
    /// The key file of encrypted archives.
    pub(crate) archive_key: Option<PathBuf>,
    /// The megabytes of copies of files that `setup files` keeps.
    pub(crate) files_limit: Option<u64>,
}

/// A program that continues sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResumeProgram {
    /// Claude Code
    Claude,
    /// `threadline chat`
    Threadline,
}

impl ResumeProgram {
    /// Returns the name in the configuration file, which is also the command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Threadline => "threadline",
        }
    }
}

/// The colours of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ThemeChoice {
    /// Those of the system.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl ThemeChoice {
    /// Returns the name in the configuration file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

impl From<ThemeChoice> for PageTheme {
    fn from(choice: ThemeChoice) -> Self {
        match choice {
            ThemeChoice::Auto => Self::Auto,
            ThemeChoice::Light => Self::Light,
            ThemeChoice::Dark => Self::Dark,
        }
    }
}

/// The configuration file of the user, and its path.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserConfig {
    pub(crate) path: Option<PathBuf>,
    pub(crate) file: ConfigFile,
}

impl UserConfig {
    /// Reads `threadline/config.toml` in the configuration folder, if it exists.
    pub(crate) fn read() -> Result<Self, CommandError> {
        let base = etcetera::choose_base_strategy().ok();
        let Some(path) = base.map(|base| base.config_dir().join("threadline/config.toml")) else {
            return Ok(Self::default());
        };
        let text = match threadline_store::read_text_file(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { path: Some(path), file: ConfigFile::default() });
            }
            Err(error) => return Err(CommandError::new(format!("cannot read {}: {error}", path.display()))),
        };
        let mut file: ConfigFile = toml::from_str(&text).map_err(|error| {
            CommandError::new(format!("{}: {}", path.display(), error.message()))
                .hint("`threadline config --help` lists the settings")
        })?;
        let home = etcetera::home_dir().ok();
        let paths = file.homes.iter_mut().flatten();
        let paths = paths.chain(&mut file.prices).chain(&mut file.redact_rules).chain(&mut file.redact_allow);
        let paths = paths.chain(&mut file.archive_key);
        for path in paths {
            *path = expand(path, home.as_deref());
        }
        if let Some(zone) = &file.time_zone {
            env::parse_time_zone(zone)
                .map_err(|error| CommandError::new(format!("{}: time_zone: {error}", path.display())))?;
        }
        Ok(Self { path: Some(path), file })
    }
}

/// Replaces `~` at the beginning of a path with the user's home folder.
fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// The source of a setting, highest precedence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingSource {
    /// A command-line option.
    Option,
    /// An environment variable.
    Environment(&'static str),
    /// The configuration file.
    File,
    /// The built-in value.
    Default,
}

impl std::fmt::Display for SettingSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Option => f.write_str("option"),
            Self::Environment(name) => write!(f, "${name}"),
            Self::File => f.write_str("config file"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting as it applies.
#[derive(Clone, Debug)]
pub(crate) struct AppliedSetting {
    pub(crate) name: &'static str,
    /// The value; `None` if it is not set and has no default.
    pub(crate) value: Option<String>,
    pub(crate) source: SettingSource,
}
