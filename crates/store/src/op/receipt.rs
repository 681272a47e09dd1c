//! Receipts: what an operation did, as it is kept on disk.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FileDigest, OpError};
use crate::append::temporary;

/// The name of a receipt in its folder.
pub(super) const FILE: &str = "receipt.json";

/// What an operation did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The operation's id, which is the name of its folder.
    pub id: String,
    /// What was done, such as `strip`.
    pub operation: String,
    /// The command that did it, as it was typed.
    pub command: Vec<String>,
    /// When, in RFC 3339.
    pub made_at: String,
    /// How far it came.
    pub state: State,
    /// The session that was edited.
    pub source: String,
    /// The session that came out.
    pub target: String,
    /// In a few words, what was done.
    pub summary: String,
    /// What was done to each file, in this order.
    pub files: Vec<ReceiptFile>,
    /// Folders that were made on the way.
    pub folders: Vec<PathBuf>,
}

/// How far an operation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It began and did not come to its end: the process died. Some of the files may be the new ones.
    Begun,
    /// It is done.
    Done,
    /// It was undone.
    Undone,
}

impl State {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Undone => "undone",
        }
    }
}

/// What was done to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptFile {
    /// The file.
    pub path: PathBuf,
    /// `create`, `replace`, `append` or `remove`.
    pub action: String,
    /// The file as it was, by its name in the operation's folder.
    pub backup: Option<String>,
    /// How long it was.
    pub length_before: Option<u64>,
    /// When it was last written, in milliseconds since 1970.
    pub modified_before: Option<i64>,
    /// How long it is now.
    pub length_after: Option<u64>,
    /// The SHA-256 of what it holds now, in hexadecimal digits.
    pub sha256_after: Option<String>,
}

impl ReceiptFile {
    /// What the operation left in the file, if that is known.
    pub(super) fn after(&self) -> Option<FileDigest> {
        FileDigest::from_hex(self.length_after?, self.sha256_after.as_deref()?)
    }

    pub(super) fn set_after(&mut self, digest: FileDigest) {
        self.length_after = Some(digest.length);
        self.sha256_after = Some(digest.to_hex());
    }
}

impl Receipt {
    pub(super) fn read(folder: &Path) -> Result<Self, OpError> {
        let path = folder.join(FILE);
        let bytes = fs_err::read(&path)?;
        serde_json::from_slice(&bytes).map_err(|error| OpError::BadReceipt { path, why: error.to_string() })
    }

    /// Writes the receipt, so that there is always a whole one.
    pub(super) fn write(&self, folder: &Path) -> Result<(), OpError> {
        let mut file = temporary(folder)?;
        let mut text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(folder.join(FILE)).map_err(|failed| failed.error)?;
        Ok(())
    }
}
