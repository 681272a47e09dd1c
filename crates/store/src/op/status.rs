//! Whether a file can be changed to the target version, decided from the files on disk.

use std::io;
use std::path::Path;

use super::displaced::Slot;
use super::executor::Executor;
use super::version::{
    ContentMatch, Version, VersionFile, is_link_to, is_same_file, match_open_file, version_file,
};
use super::{FileAction, FileDigest, OpError, ReceiptFile};

/// Whether a file can be changed to the target version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It has the target version.
    AlreadyThere,
    /// It has the other version and can be changed.
    Ready,
    /// It has neither version. The text describes the difference.
    Blocked(String),
}

impl Executor<'_> {
    /// Returns whether a file has version `to` or can be changed to it. Changes nothing.
    ///
    /// `is_first` is set while the operation is applied for the first time.
    pub(super) fn status(
        &self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
        is_first: bool,
    ) -> Result<Status, OpError> {
        match file.action {
            FileAction::Unlink => return self.link_status(file, to),
            FileAction::Append => return self.append_status(i, file, to),
            _ => {}
        }
        let status = self.content_status(i, file, to, is_first)?;
        // The previous version of a later operation may differ although the content is the same now. After
        // this undo, it could not be restored.
        Ok(match self.changed_later.get(&file.path) {
            Some(id) if status == Status::Ready && !file.grows => {
                Status::Blocked(format!("operation {id} has changed it; undo that one first"))
            }
            _ => status,
        })
    }

    /// The status of a file that is not appended to and no link.
    fn content_status(
        &self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
        is_first: bool,
    ) -> Result<Status, OpError> {
        let from = to.opposite();
        let wanted = self.resolve(i, file, to)?;
        let current = self.resolve(i, file, from)?;
        // Content that is still staged: that version was never installed.
        if let Some(staged) = self.staged_path(i, file, from)
            && let Some(staged) = self.fs.metadata(&staged)?
            && let Some(current) = &current
            && self.fs.metadata(current.path)?.is_none_or(|now| !is_same_file(&now, &staged))
        {
            return Ok(Status::AlreadyThere);
        }
        let is_staged = match self.staged_path(i, file, to) {
            Some(staged) => self.fs.metadata(&staged)?.is_some(),
            None => false,
        };
        let has_content =
            is_staged || self.fs.metadata(&self.backup_path(i, file, Slot::Version(to)))?.is_some();
        if file.action == FileAction::Remove && to == Version::Before && self.is_unfinished && !has_content {
            // It was never removed: a removed file is in the operation's folder.
            return Ok(Status::AlreadyThere);
        }
        let ready = if has_content || wanted.is_none() {
            Status::Ready
        } else {
            Status::Blocked("its backup is gone".to_owned())
        };
        let gone = || Status::Blocked("it is gone".to_owned());
        // A program may have written to the backup since the file was restored from it.
        let recorded = |version| version_file(file, version).and_then(|recorded| recorded.digest);
        // A file at a path where the operation has not installed anything yet belongs to another program.
        let is_new = to == Version::After && self.is_unfinished;
        Ok(match (current, wanted) {
            (Some(current), Some(wanted)) if current.path == wanted.path => {
                match self.match_file(
                    current.path,
                    &[(from, current.digest), (to, wanted.digest)],
                    file.grows,
                )? {
                    ContentMatch::Absent => gone(),
                    ContentMatch::Version(version, _) if version == to => Status::AlreadyThere,
                    ContentMatch::Version(..) => ready,
                    ContentMatch::Other(what) => Status::Blocked(what),
                }
            }
            (Some(current), Some(wanted)) => {
                let now = self.match_file(current.path, &[(from, current.digest)], file.grows)?;
                let then = self.match_file(wanted.path, &[(to, wanted.digest)], file.grows)?;
                match (now, then) {
                    (ContentMatch::Version(..), ContentMatch::Absent) => ready,
                    (ContentMatch::Version(..), _) if is_staged && is_new => {
                        Status::Blocked(format!("there is a file at {}", wanted.path.display()))
                    }
                    // Another program cannot have written our new version: the previous run ended in between.
                    (ContentMatch::Version(..), ContentMatch::Version(..)) => Status::Ready,
                    (_, ContentMatch::Version(..)) => Status::AlreadyThere,
                    (ContentMatch::Version(..), ContentMatch::Other(_))
                        if self.absorbs_recreated_log(file, to) =>
                    {
                        ready
                    }
                    (ContentMatch::Version(..), ContentMatch::Other(_)) => {
                        Status::Blocked(format!("there is another file at {}", wanted.path.display()))
                    }
                    (ContentMatch::Absent, ContentMatch::Absent) => gone(),
                    (ContentMatch::Other(what), _) => Status::Blocked(what),
                    (ContentMatch::Absent, ContentMatch::Other(_)) => gone(),
                }
            }
            (None, Some(wanted)) => {
                match self.match_file(wanted.path, &[(to, wanted.digest), (to, recorded(to))], file.grows)? {
                    ContentMatch::Absent => ready,
                    _ if is_staged && is_new => Status::Blocked("there is a file of that name".to_owned()),
                    ContentMatch::Version(..) => Status::AlreadyThere,
                    ContentMatch::Other(_) if self.absorbs_recreated_log(file, to) => ready,
                    ContentMatch::Other(what) => Status::Blocked(what),
                }
            }
            (Some(current), None) if is_first => match self.fs.metadata(current.path)? {
                None => gone(),
                Some(metadata) if metadata.is_file() => Status::Ready,
                Some(_) => Status::Blocked("it is not a regular file".to_owned()),
            },
            (Some(current), None) => {
                let versions = [(from, current.digest), (from, recorded(from))];
                match self.match_file(current.path, &versions, file.grows)? {
                    ContentMatch::Absent => Status::AlreadyThere,
                    ContentMatch::Version(_, 0) => Status::Ready,
                    ContentMatch::Version(_, n) => Status::Blocked(format!("{n} bytes were added")),
                    ContentMatch::Other(what) => Status::Blocked(what),
                }
            }
            (None, None) => Status::AlreadyThere,
        })
    }

    /// Whether the lines of a log that another program created at the path of this one are added to this one.
    pub(super) fn absorbs_recreated_log(&self, file: &ReceiptFile, to: Version) -> bool {
        let was_there = to == Version::Before || !self.is_unfinished;
        file.grows && was_there && file.action != FileAction::Create
    }

    fn link_status(&self, file: &ReceiptFile, to: Version) -> Result<Status, OpError> {
        let now = self.fs.metadata(&file.path)?;
        let is_ours = is_link_to(&file.path, file.target.as_deref());
        Ok(match (to, now.is_some()) {
            (Version::Before, true) if is_ours => Status::AlreadyThere,
            (Version::Before, false) => Status::Ready,
            (Version::After, true) if is_ours => Status::Ready,
            (Version::After, false) => Status::AlreadyThere,
            (Version::Before, true) => Status::Blocked("there is another file of that name".to_owned()),
            (Version::After, true) => Status::Blocked("it is not the link that it was".to_owned()),
        })
    }

    /// Returns the path and digest of a version, with the digest of the backup where the receipt has none.
    pub(super) fn resolve<'r>(
        &self,
        i: usize,
        file: &'r ReceiptFile,
        version: Version,
    ) -> Result<Option<VersionFile<'r>>, OpError> {
        let Some(mut found) = version_file(file, version) else { return Ok(None) };
        // For removed files and files that do not grow, the backup is the whole previous version.
        let is_whole = file.action == FileAction::Remove || !file.grows || found.digest.is_none();
        if version == Version::Before && is_whole {
            let kept = FileDigest::read(&self.backup_path(i, file, Slot::Version(version)))?;
            found.digest = kept.or(found.digest);
        }
        Ok(Some(found))
    }

    /// Returns which of `versions` the file at `path` has: the longest that matches.
    pub(super) fn match_file(
        &self,
        path: &Path,
        versions: &[(Version, Option<FileDigest>)],
        grows: bool,
    ) -> io::Result<ContentMatch> {
        match self.fs.metadata(path)? {
            None => return Ok(ContentMatch::Absent),
            Some(metadata) if !metadata.is_file() => {
                return Ok(ContentMatch::Other("it is not a regular file".to_owned()));
            }
            Some(_) => {}
        }
        let known: Vec<_> =
            versions.iter().filter_map(|(version, digest)| Some((*version, (*digest)?))).collect();
        if known.is_empty() {
            return Ok(ContentMatch::Other(
                "the content that the interrupted operation wrote there is unknown".to_owned(),
            ));
        }
        match_open_file(&mut self.fs.open(path)?, &known, grows)
    }
}
