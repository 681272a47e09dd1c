//! Doing an operation.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::digest::Hashing;
use super::{Action, FileDigest, OpError, Operations, Receipt, ReceiptFile, State, Step, sweep};
use crate::append::{append, lock, tears_at, temporary};
use crate::replace::{copy_to, replace};
use crate::snapshot::Snapshot;

impl Operations {
    /// Does what `steps` say, in their order, and keeps a receipt of it.
    ///
    /// `receipt` says who and what; its files, folders and state are filled in here. If something cannot be done,
    /// what was done before it is undone, and the receipt goes too.
    pub fn apply(&self, mut receipt: Receipt, steps: Vec<Step<'_>>) -> Result<Receipt, OpError> {
        let folder = self.folder(&receipt.id);
        make_private(&self.dir)?;
        fs_err::create_dir(&folder)?;
        receipt.state = State::Begun;
        receipt.files = steps.iter().enumerate().map(|(i, step)| plan_file(i, step)).collect();
        receipt.folders = steps.iter().flat_map(|step| missing_folders(&step.path)).collect();
        receipt.folders.sort();
        receipt.folders.dedup();
        receipt.write(&folder)?;
        match self.apply_all(&mut receipt, steps, &folder) {
            Ok(()) => {
                receipt.state = State::Done;
                receipt.write(&folder)?;
                Ok(receipt)
            }
            Err(error) => {
                // What cannot be brought back stays in the receipt, for a person to look at.
                if self.revert(&receipt).is_ok() {
                    let _ = fs_err::remove_dir_all(&folder);
                }
                Err(error)
            }
        }
    }

    fn apply_all(&self, receipt: &mut Receipt, steps: Vec<Step<'_>>, folder: &Path) -> Result<(), OpError> {
        let source = receipt.source.clone();
        for (file, step) in receipt.files.iter_mut().zip(steps) {
            let parent = step.path.parent().unwrap_or(Path::new(""));
            let backup = file.backup.as_ref().map(|name| folder.join(name));
            match step.action {
                Action::Create(content) => {
                    fs_err::create_dir_all(parent)?;
                    sweep(parent);
                    file.set_after(create(&step.path, content)?);
                }
                Action::Replace { of, content, digest } => {
                    sweep(parent);
                    file.set_after(digest);
                    let replaced = replace(&of, content, backup.as_deref())?;
                    if replaced.carried > 0
                        && let Some(digest) = FileDigest::read(&step.path)?
                    {
                        file.set_after(digest);
                    }
                }
                Action::Append { of, lines } => {
                    let appended = append(&step.path, &lines, Some(&of))?;
                    let length = lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>();
                    // Somebody else was quicker.
                    if Some(appended.byte_offset + length) != file.length_after
                        && let Some(digest) = FileDigest::read(&step.path)?
                    {
                        file.length_before =
                            Some(appended.byte_offset - u64::from(appended.closed_torn_line));
                        file.set_after(digest);
                    }
                }
                Action::Remove => {
                    if let Some(backup) = backup {
                        let mut old = fs_err::File::open(&step.path)?;
                        copy_to(&mut old, &backup)?;
                        fs_err::set_permissions(&backup, old.metadata()?.permissions())?;
                    }
                    fs_err::remove_file(&step.path)?;
                    remove_empty(parent, &source);
                }
            }
        }
        Ok(())
    }
}

/// What the receipt says of a file before anything is done to it.
fn plan_file(i: usize, step: &Step<'_>) -> ReceiptFile {
    let metadata = fs_err::metadata(&step.path).ok();
    let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
    let modified = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    let (action, backup) = match &step.action {
        Action::Create(_) => ("create", None),
        Action::Replace { .. } => ("replace", Some(format!("{i}.before"))),
        Action::Append { .. } => ("append", None),
        Action::Remove => ("remove", Some(format!("{i}.before"))),
    };
    let mut file = ReceiptFile {
        path: step.path.clone(),
        action: action.to_owned(),
        backup,
        length_before: metadata.map(|metadata| metadata.len()),
        modified_before: modified.and_then(|modified| i64::try_from(modified.as_millis()).ok()),
        length_after: None,
        sha256_after: None,
    };
    match &step.action {
        Action::Replace { digest, .. } => file.set_after(*digest),
        Action::Append { of, lines } => {
            file.length_before = Some(of.size());
            // Where it cannot be read, it cannot be appended to either.
            if let Ok(digest) = digest_with(of, lines) {
                file.set_after(digest);
            }
        }
        Action::Create(_) | Action::Remove => {}
    }
    file
}

/// What a file comes to with these lines added to it.
fn digest_with(of: &Snapshot, lines: &[String]) -> io::Result<FileDigest> {
    let torn = tears_at(&mut fs_err::File::open(of.path())?, of.size())?;
    let mut more = if torn { "\n".to_owned() } else { String::new() };
    for line in lines {
        more.push_str(line);
        more.push('\n');
    }
    let mut content = Hashing::new(of.reader()?.chain(more.as_bytes()));
    io::copy(&mut content, &mut io::sink())?;
    Ok(content.digest())
}

/// The folders above a file that are not there yet, the topmost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> =
        path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    missing.retain(|folder| !folder.as_os_str().is_empty());
    missing.reverse();
    missing
}

/// Makes a file that appears with all its content at once, for its owner's eyes only.
pub(super) fn create(path: &Path, content: impl io::Read) -> Result<FileDigest, OpError> {
    let mut content = Hashing::new(content);
    let mut file = temporary(path.parent().unwrap_or(Path::new("")))?;
    lock(file.as_file())?;
    io::copy(&mut content, &mut file)?;
    file.flush()?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|failed| {
        let message = format!("failed to create {}: {}", path.display(), failed.error);
        io::Error::new(failed.error.kind(), message)
    })?;
    Ok(content.digest())
}

/// Puts the content of a backup in the place of a file.
pub(super) fn put_back(path: &Path, backup: &Path) -> Result<(), OpError> {
    replace(&Snapshot::take(path)?, fs_err::File::open(backup)?, None)?;
    Ok(())
}

/// Removes a folder, and those above it, as long as they are empty and the session's own.
fn remove_empty(folder: &Path, session: &str) {
    let own = |folder: &&Path| folder.iter().any(|name| name == session);
    for folder in folder.ancestors().take_while(own) {
        if fs_err::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Makes a folder that only its owner may look into.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        io::Error::new(error.kind(), format!("failed to create {}: {error}", folder.display()))
    })
}
