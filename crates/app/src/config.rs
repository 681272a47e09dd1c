//! The application: opened homes, the folder for state, and where prices come from.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use threadline_store::{Operations, SessionFile, Store};
use threadline_usage::PriceBook;

use crate::error::AppError;
use crate::inherited::FirstLineIndex;
use crate::log_ends::LogEndsCache;
use crate::mask::Mask;
use crate::session_secrets::SessionSecrets;

/// The configuration of the application, which front ends resolve from flags and environment variables.
#[derive(Clone, Debug, Default)]
pub struct AppConfig {
    /// Folders that contain sessions, such as `~/.claude`. They need not exist.
    pub homes: Vec<PathBuf>,
    /// The folder for threadline's own state, such as `~/.local/state/threadline`; `None` if there is none.
    pub state_dir: Option<PathBuf>,
    /// Further state folders, in which hooks keep copies of files.
    pub hook_state_dirs: Vec<PathBuf>,
    /// The folder for files that can be deleted at any time, such as `~/.cache/threadline`; `None` if there
    /// is none.
    pub cache_dir: Option<PathBuf>,
    /// A price list that overrides the built-in one. It must exist.
    pub prices_file: Option<PathBuf>,
    /// Masks secrets in what is shown.
    pub mask: Mask,
    /// The working directory: the base of relative paths, and the current project.
    pub current_dir: Option<PathBuf>,
    /// The user's home folder.
    pub home_dir: Option<PathBuf>,
    /// The homes that Claude Code uses if it is started without further settings; empty if unknown.
    pub claude_homes: Vec<PathBuf>,
    /// The build of the program. Caches of another build are not used.
    pub build: String,
}

/// The application: the user's sessions, prices and state.
#[derive(Debug)]
pub struct App {
    config: AppConfig,
    store: Store,
    /// The price list, loaded on first use.
    pub(crate) prices: OnceLock<Arc<PriceBook>>,
    /// The first lines of the logs in a project folder, or in all of them, read on first use.
    pub(crate) first_lines: Mutex<HashMap<Option<PathBuf>, Arc<FirstLineIndex>>>,
    /// The ends of the logs that searches have read.
    pub(crate) log_ends: Arc<LogEndsCache>,
}

impl App {
    /// Creates an application for the homes in `config`. Reads nothing yet.
    pub fn new(mut config: AppConfig) -> Self {
        let secrets = SessionSecrets::new(config.cache_dir.as_deref(), &config.build);
        config.mask = config.mask.with_finder(Arc::new(secrets));
        let store = Store::open(config.homes.iter().cloned());
        let (first_lines, log_ends) = (Mutex::default(), Arc::default());
        Self { config, store, prices: OnceLock::new(), first_lines, log_ends }
    }

    /// Returns an application for the same homes with another mask.
    #[must_use]
    pub fn with_mask(&self, mask: Mask) -> Self {
        Self::new(AppConfig { mask, ..self.config.clone() })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &AppConfig {
        &self.config
    }

    /// Returns the sessions on disk.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the home of a session as an absolute path, unless it is a default home of Claude Code.
    pub fn non_default_home(&self, file: &SessionFile) -> Option<PathBuf> {
        let home = std::path::absolute(file.home.as_ref()?.root()).ok()?;
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let used = &self.config.claude_homes;
        let is_used = used.is_empty() || used.iter().any(|used| real(used) == real(&home));
        (!is_used).then_some(home)
    }

    /// Returns the command that resumes a session with Claude Code in `cwd`.
    pub fn resume_command(&self, file: &SessionFile, cwd: Option<&str>) -> String {
        let home = self.non_default_home(file);
        let home = home.as_ref().map(|home| home.to_string_lossy());
        threadline_view::resume_command(&file.id, cwd, home.as_deref())
    }

    /// Returns the folder for caches of the figures of these homes, so that other homes do not replace them.
    pub(crate) fn figures_dir(&self) -> Option<PathBuf> {
        // A hash without a random key. The caches contain paths, so equal hashes only cost time.
        let mut hasher = DefaultHasher::new();
        self.store.real_roots().hash(&mut hasher);
        Some(self.config.cache_dir.as_ref()?.join("homes").join(format!("{:016x}", hasher.finish())))
    }

    /// Returns the folder for threadline's own state.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`] if the configuration has none.
    pub fn state_dir(&self) -> Result<&Path, AppError> {
        self.config.state_dir.as_deref().ok_or(AppError::NoStateDir)
    }

    /// Returns the receipts of applied edits, below the state folder.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`] if the configuration has no state folder.
    pub fn operations(&self) -> Result<Operations, AppError> {
        Ok(Operations::at(self.state_dir()?.join("operations")))
    }
}
