//! Titles of sessions, masked with the secrets of the whole session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::SystemTime;

use parking_lot::Mutex;
use threadline_store::SessionLogs;

use crate::excerpt_mask::ExcerptMask;
use crate::redaction::DisplayRedaction;

/// The texts of a session in lists that were masked before, by the path of its log. A session is read only if
/// its texts have words that may be passwords, and again only if it has changed.
#[derive(Debug, Default)]
pub(crate) struct MaskedTitles(Mutex<HashMap<PathBuf, MaskedTexts>>);

#[derive(Debug)]
struct MaskedTexts {
    size: u64,
    modified: SystemTime,
    texts: Vec<String>,
    masked: Vec<String>,
}

impl MaskedTitles {
    /// Masks the secrets in the texts of a session.
    pub(crate) fn mask<'t>(
        &self,
        redaction: &DisplayRedaction,
        session: &SessionLogs,
        texts: impl IntoIterator<Item = Option<&'t mut String>>,
    ) {
        let mut texts: Vec<&mut String> = texts.into_iter().flatten().collect();
        let (size, modified) = (session.size(), session.modified());
        let is_same = |known: &&MaskedTexts| {
            (known.size, known.modified) == (size, modified)
                && known.texts.iter().eq(texts.iter().map(|text| &**text))
        };
        let known = self.0.lock().get(&session.file.path).filter(is_same).map(|known| known.masked.clone());
        let masked = known.unwrap_or_else(|| {
            let excerpts: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
            let logs: Vec<PathBuf> = session.logs().map(|log| log.path.clone()).collect();
            let mask = ExcerptMask::new(redaction, &excerpts, &logs);
            // The end of a long text is cut off.
            let mask = |text: &&str| mask.mask(text, [false, text.ends_with('…')]).into_owned();
            let masked: Vec<String> = excerpts.iter().map(mask).collect();
            let texts = excerpts.into_iter().map(str::to_owned).collect();
            let new = MaskedTexts { size, modified, texts, masked: masked.clone() };
            self.0.lock().insert(session.file.path.clone(), new);
            masked
        });
        for (text, masked) in texts.iter_mut().zip(masked) {
            **text = masked;
        }
    }
}
