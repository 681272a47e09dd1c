//! Folders that the user has trusted in Claude Code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Returns the file in which Claude Code keeps its state for all projects: `.claude.json` in the home of
/// Claude Code if the user moved that, and beside it otherwise.
#[must_use]
pub fn config_file(claude_home: &Path, user_home: Option<&Path>) -> PathBuf {
    match user_home {
        Some(home) if claude_home == home.join(".claude") => home.join(".claude.json"),
        _ => claude_home.join(".claude.json"),
    }
}

/// The folders that the user has trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustedFolders {
    folders: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default)]
    projects: BTreeMap<String, Project>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    #[serde(default)]
    has_trust_dialog_accepted: bool,
}

impl TrustedFolders {
    /// Reads the folders from [`config_file`]. A file that is missing or broken trusts nothing.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let text = crate::load::read_text(file).unwrap_or_default();
        let config: ConfigFile =
            serde_json::from_str(&text).unwrap_or_else(|_| ConfigFile { projects: BTreeMap::new() });
        let projects = config.projects.into_iter().filter(|(_, project)| project.has_trust_dialog_accepted);
        // A relative name would trust a folder below whichever folder the client is started in.
        let folders = projects.map(|(path, _)| PathBuf::from(path)).filter(|path| path.is_absolute());
        Self { folders: folders.collect() }
    }

    /// Returns whether a folder is trusted. Trust in its parent does not count.
    #[must_use]
    pub fn contain(&self, folder: &Path) -> bool {
        self.folders.iter().any(|trusted| trusted == folder)
    }
}
