//! Finding the session that a person, or an address, names.

use threadline_store::SessionFile;

use crate::config::App;
use crate::error::AppError;

impl App {
    /// The session that a person means by `needle`: `last`, a path, an id, a unique prefix of one, or a title.
    ///
    /// # Errors
    ///
    /// If none matches or several do; [`AppError::hints`] names the nearest.
    pub fn find(&self, needle: &str) -> Result<SessionFile, AppError> {
        Ok(self.store().find(needle)?)
    }

    /// The session with exactly this id; of several files, the newest. For ids that come from outside.
    ///
    /// # Errors
    ///
    /// [`AppError::NoSession`].
    pub fn session(&self, id: &str) -> Result<SessionFile, AppError> {
        self.store().session(id).ok_or_else(|| AppError::NoSession { id: id.to_owned() })
    }
}
