//! Replaces the older part of a session with a summary.

use threadline_edit::{CompressOptions, Compression, SummaryBand};
use threadline_store::Operation;

use super::{EditError, EditSession, EditTarget, PlannedEdit};

/// The destination of a compressed session.
#[derive(Clone, Debug)]
pub enum CompressTarget {
    /// A new session.
    NewSession {
        /// Its title; by default that of the session with a mark.
        title: Option<String>,
    },
    /// The session itself.
    InPlace,
}

impl EditSession {
    /// Chooses the part of the session that is summarised, by `bands` or to fit a number of tokens.
    ///
    /// # Errors
    ///
    /// [`EditError::Compress`] if the session is too short, or no shorter for it.
    pub fn choose_compression(
        &self,
        bands: Vec<SummaryBand>,
        budget: Option<u64>,
    ) -> Result<Compression<'_>, EditError> {
        let original = Some(self.file.path.to_string_lossy().into_owned());
        Ok(Compression::choose(&self.session, &CompressOptions { bands, budget, original })?)
    }

    /// Plans the session with `summary` in the place of the chosen part.
    ///
    /// # Errors
    ///
    /// Errors of reading side files.
    pub fn compress<'s>(
        &'s self,
        compression: Compression<'s>,
        summary: String,
        target: &CompressTarget,
    ) -> Result<PlannedEdit<'s>, EditError> {
        let mut draft = self.draft();
        compression.apply(&mut draft, &summary, matches!(target, CompressTarget::InPlace));
        // Both may be as long as the session.
        drop((compression, summary));
        let target = match target {
            CompressTarget::NewSession { title } => {
                // Without a cut this only adds the title.
                threadline_edit::clone(&mut draft, None, title.as_deref())?;
                EditTarget::NewSession
            }
            CompressTarget::InPlace => EditTarget::InPlace,
        };
        let target = target.plan_target();
        self.copy_side_files(&mut draft, &target)?;
        Ok(self.plan(Operation::Compress, draft, target))
    }
}

/// Returns the estimated number of tokens of a compressed session.
pub fn compressed_tokens(compression: &Compression<'_>, summary: &str) -> u64 {
    summary.len() as u64 / 4 + compression.kept_tokens()
}
