//! Receipts: descriptions of applied operations on disk.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::version::Version;
use super::{FileAction, FileDigest, OpError, Operation, OperationState};
use crate::disk::{FileSystem, Visibility, write_all};
use crate::regular_file::read_file;

/// The name of a receipt in its folder.
pub(super) const FILE: &str = "receipt.json";

/// The name of a receipt that is being written.
pub(super) const NEW_FILE: &str = "receipt.new";

/// The largest number of an operation or an undo: the next one is counted from it.
const MAX_ORDER: u64 = u64::MAX / 2;

/// The format of new receipts. Those of format 1 have no number. From format 3 on, the paths of restored
/// files lead through no link.
pub const RECEIPT_FORMAT: u32 = 3;

/// The format that an older receipt has when it is written again.
const CONVERTED_FORMAT: u32 = 2;

/// The description of an applied operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The version of the format that the receipt was written in.
    #[serde(default = "first_format")]
    pub format: u32,
    /// The operation's id, which is the name of its folder.
    pub id: String,
    /// The kind of operation.
    pub operation: Operation,
    /// The command that started it, as typed.
    pub command: Vec<String>,
    /// The time, in RFC 3339.
    pub made_at: String,
    /// A number that increases with every operation. Concurrent operations get it in the order
    /// in which they change files; their times may be in another order.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub apply_order: u64,
    /// Its progress.
    pub state: OperationState,
    /// A number that increases with every undo of any operation; the highest was undone last.
    #[serde(default)]
    pub undo_order: u64,
    /// Whether its files do not depend on each other, so that some can be undone without the rest.
    #[serde(default)]
    pub independent: bool,
    /// The session that was edited.
    pub source: String,
    /// The session that resulted.
    pub target: String,
    /// The home of the session, if the changed files are elsewhere. Receipts of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    /// A short description of the changes.
    pub summary: String,
    /// The changes to files, in this order.
    pub files: Vec<ReceiptFile>,
    /// The folders that were created.
    pub folders: Vec<PathBuf>,
}

/// A file that an operation changed, and both its versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptFile {
    /// The file.
    pub path: PathBuf,
    /// The change.
    pub action: FileAction,
    /// The new path of a moved file, or the target of a removed link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PathBuf>,
    /// Whether other programs append lines to it. These belong to neither version and are kept.
    #[serde(default)]
    pub grows: bool,
    /// The name of the previous version in the operation's folder.
    pub backup: Option<String>,
    /// Its previous length.
    pub length_before: Option<u64>,
    /// Its size when the operation began, if that was larger than the previous length: by an incomplete last
    /// line, or by lines of other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_before: Option<u64>,
    /// The SHA-256 of its previous content, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256_before: Option<String>,
    /// Its previous modification time, in milliseconds since 1970.
    pub modified_before: Option<i64>,
    /// Its new length.
    pub length_after: Option<u64>,
    /// The SHA-256 of its new content, in hexadecimal digits.
    pub sha256_after: Option<String>,
    /// Its new modification time, in milliseconds since 1970, if the operation sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_after: Option<i64>,
}

impl ReceiptFile {
    /// The path of the file that has to be changed to get version `to`.
    pub(super) fn current_path(&self, to: Version) -> &Path {
        match (&self.target, self.action, to) {
            (Some(target), FileAction::Move, Version::Before) => target,
            _ => &self.path,
        }
    }

    /// The previous content, if it is known.
    pub(super) fn before(&self) -> Option<FileDigest> {
        FileDigest::from_hex(self.length_before?, self.sha256_before.as_deref()?)
    }

    /// The new content, if it is known.
    pub(super) fn after(&self) -> Option<FileDigest> {
        FileDigest::from_hex(self.length_after?, self.sha256_after.as_deref()?)
    }

    /// The number of bytes that followed the previous content when the operation began.
    pub(super) fn rest_before(&self) -> u64 {
        self.size_before.zip(self.length_before).map_or(0, |(size, length)| size.saturating_sub(length))
    }

    /// Sets the previous content.
    pub(super) fn set_before(&mut self, digest: FileDigest) {
        self.length_before = Some(digest.length);
        self.sha256_before = Some(digest.to_hex());
    }

    /// Sets the new content.
    pub(super) fn set_after(&mut self, digest: FileDigest) {
        self.length_after = Some(digest.length);
        self.sha256_after = Some(digest.to_hex());
    }
}

fn first_format() -> u32 {
    1
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The part of a receipt that every format has.
#[derive(Deserialize)]
struct Header {
    #[serde(default = "first_format")]
    format: u32,
}

impl Receipt {
    /// Reads the receipt in an operation's folder, of this format or an earlier one.
    pub(super) fn read(folder: &Path) -> Result<Self, OpError> {
        let path = folder.join(FILE);
        // The files in the folder are removed with the receipt, so it is not followed elsewhere.
        if !folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            let why = "its folder is not a folder, or a link to one".to_owned();
            return Err(OpError::BadReceipt { path, why });
        }
        let bad = |why: String| OpError::BadReceipt { path: path.clone(), why };
        let bytes = read_file(&path).map_err(|error| bad(error.to_string()))?;
        let header: Header = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if header.format > RECEIPT_FORMAT {
            let why =
                format!("its format is {}, and this version reads up to {RECEIPT_FORMAT}", header.format);
            return Err(bad(why));
        }
        let mut receipt: Self = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if receipt.apply_order.max(receipt.undo_order) > MAX_ORDER {
            return Err(bad("its order is out of range".to_owned()));
        }
        // The name of the folder is the id. A path in the receipt is not trusted.
        if folder.file_name().is_none_or(|name| name != &*receipt.id) {
            return Err(bad(format!("it is for operation `{}`", receipt.id)));
        }
        if receipt.format == 1 {
            receipt.upgrade();
        }
        Ok(receipt)
    }

    /// Sets the fields that receipts of format 1 do not have.
    fn upgrade(&mut self) {
        if self.state == OperationState::Begun {
            // In format 1 files were changed in this state.
            self.state = OperationState::Applying;
        }
        self.independent = self.operation.has_independent_files();
        for file in &mut self.files {
            file.grows = !self.independent && file.path.extension().is_some_and(|ext| ext == "jsonl");
        }
    }

    /// Whether the paths of restored files led through no link when the receipt was made.
    pub fn has_unlinked_paths(&self) -> bool {
        self.format > CONVERTED_FORMAT
    }

    /// Writes the receipt atomically.
    pub(super) fn write(&self, fs: &dyn FileSystem, folder: &Path) -> Result<(), OpError> {
        let new = folder.join(NEW_FILE);
        if fs.metadata(&new)?.is_some() {
            fs.remove_file(&new)?;
        }
        let mut text =
            serde_json::to_vec_pretty(&Self { format: self.format.max(CONVERTED_FORMAT), ..self.clone() })
                .map_err(io::Error::from)?;
        text.push(b'\n');
        let mut file = fs.create_new(&new, Visibility::Private)?;
        write_all(fs, &mut file, &text)?;
        fs.sync(&file, &new)?;
        fs.rename(&new, &folder.join(FILE))?;
        Ok(fs.sync_folder(folder)?)
    }
}
