//! The application: opened homes, the folder for state, and where prices come from.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use threadline_store::{Operations, Store};
use threadline_usage::Book;

use crate::error::AppError;

/// Everything that the application takes from its surroundings. Front ends resolve environment and flags into this.
#[derive(Clone, Debug, Default)]
pub struct AppConfig {
    /// Folders that contain sessions, such as `~/.claude`. They need not exist.
    pub homes: Vec<PathBuf>,
    /// The folder for threadline's own state, such as `~/.local/state/threadline`; `None` if there is none.
    pub state_dir: Option<PathBuf>,
    /// A price list that is laid over the built-in one. It must exist.
    pub prices_file: Option<PathBuf>,
    /// The folder that relative paths start from, and whose project is the current one.
    pub current_dir: Option<PathBuf>,
    /// The person's home folder.
    pub home_dir: Option<PathBuf>,
}

/// The application: the person's sessions, prices and state.
#[derive(Debug)]
pub struct App {
    config: AppConfig,
    store: Store,
    /// The price list, once it was asked for.
    pub(crate) prices: OnceLock<Arc<Book>>,
}

impl App {
    /// Opens the homes that `config` names. Nothing is read yet.
    pub fn new(config: AppConfig) -> Self {
        let store = Store::open(config.homes.iter().cloned());
        Self { config, store, prices: OnceLock::new() }
    }

    /// The configuration that the application was opened with.
    pub fn config(&self) -> &AppConfig {
        &self.config
    }

    /// The sessions on disk.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The folder for threadline's own state.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`] if the configuration names none.
    pub fn state_dir(&self) -> Result<&Path, AppError> {
        self.config.state_dir.as_deref().ok_or(AppError::NoStateDir)
    }

    /// The receipts of applied edits, below the state folder.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`] if the configuration names no state folder.
    pub fn operations(&self) -> Result<Operations, AppError> {
        Ok(Operations::at(self.state_dir()?.join("operations")))
    }
}
