//! Lookup of sessions by name or id.

use threadline_store::SessionFile;

use crate::config::App;
use crate::error::AppError;

impl App {
    /// Finds a session by `last`, a path, an id, a unique prefix of an id, or a title.
    ///
    /// # Errors
    ///
    /// If none matches or several do; [`AppError::hints`] lists the nearest.
    pub fn find(&self, needle: &str) -> Result<SessionFile, AppError> {
        Ok(self.store().find(needle)?)
    }

    /// Finds a session like [`App::find`], but not by path. For untrusted text, such as that in URLs: it is
    /// never used as a path.
    ///
    /// # Errors
    ///
    /// Those of [`App::find`].
    pub fn find_named(&self, needle: &str) -> Result<SessionFile, AppError> {
        Ok(self.store().find_named(needle)?)
    }

    /// Finds the session with exactly this id; of several files, the newest. For untrusted ids, such as those
    /// in URLs.
    ///
    /// # Errors
    ///
    /// [`AppError::NoSession`].
    pub fn session(&self, id: &str) -> Result<SessionFile, AppError> {
        self.store().session(id).ok_or_else(|| AppError::NoSession { id: id.to_owned() })
    }
}
