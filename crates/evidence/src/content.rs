//! The content of a file, as bytes or as the log shows it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::text_form::TextForm;

/// The content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// There is no file.
    Absent,
    /// A symbolic link, with the target as it is written.
    Link(String),
    /// A regular file.
    File(FileBytes),
}

/// The bytes of a regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBytes {
    /// The bytes; if `is_shown`, the text in UTF-8 with plain line ends.
    pub bytes: Arc<[u8]>,
    /// Whether only the text is known, as the tools show it: without a byte order mark and carriage returns,
    /// whatever the encoding of the file.
    pub is_shown: bool,
}

impl FileContent {
    /// Creates a file with these bytes.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::File(FileBytes { bytes: bytes.into(), is_shown: false })
    }

    /// Creates a file of which only the text is known. `None` if the text has replacement characters: the
    /// file may have any other bytes there.
    pub fn shown(text: &str) -> Option<Self> {
        let bytes: Arc<[u8]> = text.as_bytes().into();
        (!text.contains('\u{fffd}')).then_some(Self::File(FileBytes { bytes, is_shown: true }))
    }

    /// Returns whether there is no file.
    pub fn is_absent(&self) -> bool {
        *self == Self::Absent
    }

    /// Returns the bytes of a regular file.
    pub fn file(&self) -> Option<&FileBytes> {
        match self {
            Self::File(file) => Some(file),
            Self::Absent | Self::Link(_) => None,
        }
    }

    /// Returns the text of a regular file with plain line ends and without a byte order mark. `None` if it is
    /// not text.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        self.file()?.text()
    }

    /// Returns the number of bytes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.file().map_or(0, |file| file.bytes.len())
    }

    /// Returns whether both are the same as far as they are known. Of two texts, one may have another form.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) if a.is_shown != b.is_shown => a.text() == b.text(),
            _ => self == other,
        }
    }

    /// Returns the one of two contents that agree of which more is known.
    pub(crate) fn better(self, other: Self) -> Self {
        if self.file().is_some_and(|file| file.is_shown) { other } else { self }
    }
}

impl FileBytes {
    /// Returns the text with plain line ends and without a byte order mark. `None` if it is not text.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if self.is_shown {
            return std::str::from_utf8(&self.bytes).ok().map(Cow::Borrowed);
        }
        TextForm::of(&self.bytes)?.decode(&self.bytes)
    }

    /// Returns the file after a change of its text. The bytes are known only if the form of the file is.
    pub(crate) fn map_text(&self, change: impl FnOnce(&str) -> Option<String>) -> Option<Self> {
        let after = change(&self.text()?)?;
        let bytes = match self.is_shown {
            true => Some(after.as_bytes().to_vec()),
            false => TextForm::of(&self.bytes)?.encode(&after),
        };
        let is_shown = self.is_shown || bytes.is_none();
        Some(Self { bytes: bytes.unwrap_or_else(|| after.into_bytes()).into(), is_shown })
    }
}
