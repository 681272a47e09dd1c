//! Receipts: what an operation did, as it is kept on disk.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::execute::Side;
use super::{FileDigest, OpError};
use crate::disk::{FileSystem, Visibility, write_all};

/// The name of a receipt in its folder.
pub(super) const FILE: &str = "receipt.json";

/// The format that receipts are written in. Those of format 1 have no number.
pub const FORMAT: u32 = 2;

/// What an operation did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The version of the format that the receipt was written in.
    #[serde(default = "first_format")]
    pub format: u32,
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
    /// A number that grows with every undo, of this or of another operation; the highest was undone last.
    #[serde(default)]
    pub undo_order: u64,
    /// Whether its files have nothing to do with each other, so that some can be undone without the rest.
    #[serde(default)]
    pub independent: bool,
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
///
/// `begun` → `applying` → `done` ⇄ `undone`, through `undoing` and `redoing`. An operation that is found in
/// one of the states in `-ing` was interrupted; it can be undone and redone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// New content is being prepared. No file has been changed.
    Begun,
    /// The receipt has the digest of every new file, and the files are being changed.
    Applying,
    /// It is done, for the first time or again.
    Done,
    /// It is being undone.
    Undoing,
    /// It was undone.
    Undone,
    /// It is being redone.
    Redoing,
}

impl State {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Applying => "applying",
            Self::Done => "done",
            Self::Undoing => "undoing",
            Self::Undone => "undone",
            Self::Redoing => "redoing",
        }
    }

    /// Whether the process ended before the operation did.
    pub fn is_interrupted(self) -> bool {
        !matches!(self, Self::Done | Self::Undone)
    }
}

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileAction {
    /// It was made.
    Create,
    /// It got other content.
    Replace,
    /// Lines were added to it.
    Append,
    /// It was taken away.
    Remove,
    /// It was taken away and made elsewhere with other content.
    Move,
    /// A symbolic link was taken away; the file that it names was not touched.
    Unlink,
}

impl FileAction {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Append => "append",
            Self::Remove => "remove",
            Self::Move => "move",
            Self::Unlink => "unlink",
        }
    }
}

/// A file that an operation changed, and both its versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptFile {
    /// The file.
    pub path: PathBuf,
    /// What was done.
    pub action: FileAction,
    /// Where a file that was moved is now, or what a link named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PathBuf>,
    /// Whether other programs append lines to it, which then belong to neither version and are kept.
    #[serde(default)]
    pub grows: bool,
    /// The file as it was, by its name in the operation's folder.
    pub backup: Option<String>,
    /// How long it was.
    pub length_before: Option<u64>,
    /// The SHA-256 of what it held, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256_before: Option<String>,
    /// When it was last written, in milliseconds since 1970.
    pub modified_before: Option<i64>,
    /// How long it is now.
    pub length_after: Option<u64>,
    /// The SHA-256 of what it holds now, in hexadecimal digits.
    pub sha256_after: Option<String>,
}

impl ReceiptFile {
    /// Where the file is that has to be changed to bring the version of `to`.
    pub(super) fn current_path(&self, to: Side) -> &Path {
        match (&self.target, self.action, to) {
            (Some(target), FileAction::Move, Side::Before) => target,
            _ => &self.path,
        }
    }

    /// The previous content, if it is known.
    pub(super) fn before(&self) -> Option<FileDigest> {
        FileDigest::from_hex(self.length_before?, self.sha256_before.as_deref()?)
    }

    /// What the operation left in the file, if that is known.
    pub(super) fn after(&self) -> Option<FileDigest> {
        FileDigest::from_hex(self.length_after?, self.sha256_after.as_deref()?)
    }

    pub(super) fn set_before(&mut self, digest: FileDigest) {
        self.length_before = Some(digest.length);
        self.sha256_before = Some(digest.to_hex());
    }

    pub(super) fn set_after(&mut self, digest: FileDigest) {
        self.length_after = Some(digest.length);
        self.sha256_after = Some(digest.to_hex());
    }
}

fn first_format() -> u32 {
    1
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
        let bytes = fs_err::read(&path)?;
        let bad = |why: String| OpError::BadReceipt { path: path.clone(), why };
        let header: Header = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if header.format > FORMAT {
            let why = format!("its format is {}, and this version reads up to {FORMAT}", header.format);
            return Err(bad(why));
        }
        let mut receipt: Self = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        // The folder says whose receipt it is; a path in the receipt does not.
        if folder.file_name().is_none_or(|name| name != &*receipt.id) {
            return Err(bad(format!("it is for operation `{}`", receipt.id)));
        }
        if receipt.format == 1 {
            receipt.upgrade();
        }
        Ok(receipt)
    }

    /// Fills in what receipts of format 1 do not have.
    fn upgrade(&mut self) {
        if self.state == State::Begun {
            // In format 1 files were changed in this state.
            self.state = State::Applying;
        }
        self.independent = self.operation == "restore";
        for file in &mut self.files {
            file.grows = !self.independent && file.path.extension().is_some_and(|ext| ext == "jsonl");
        }
    }

    /// Writes the receipt, so that there is always a whole one.
    pub(super) fn write(&self, fs: &dyn FileSystem, folder: &Path) -> Result<(), OpError> {
        let new = folder.join("receipt.new");
        if fs.metadata(&new)?.is_some() {
            fs.remove_file(&new)?;
        }
        let mut text =
            serde_json::to_vec_pretty(&Self { format: FORMAT, ..self.clone() }).map_err(io::Error::from)?;
        text.push(b'\n');
        let mut file = fs.create_new(&new, Visibility::Private)?;
        write_all(fs, &mut file, &text)?;
        fs.sync(&file)?;
        fs.rename(&new, &folder.join(FILE))?;
        Ok(fs.sync_folder(folder)?)
    }
}
