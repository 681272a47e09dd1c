//! Changes files from one of their two versions to the other.
//!
//! Doing, undoing, redoing and rolling back are the same: each file of a receipt is brought to its version
//! before or after the operation. What to do is decided from the files on disk alone, so an interrupted run
//! is continued by running again. Three kinds of private files take part, all beside the file that they are
//! for:
//!
//! - `.threadline-ID-N.new-after` (or `-before`): the *staged* content. It takes the file's name in one rename, so
//!   while it exists that version has not been installed.
//! - `.threadline-ID-N.old-before` (or `-after`): the *displaced* file. It keeps a name until every line that another
//!   program wrote to it is in the new file, and is then moved into the operation's folder, where it is the backup.
//! - `.threadline-ID-N.old-stray`: a log that another program made anew where the operation had removed one.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use memchr::{memchr_iter, memmem, memrchr};

use super::digest::Prefixes;
use super::{ChangedFile, FileAction, FileDigest, OpError, Receipt, ReceiptFile, State};
use crate::append::{lock, tears_at, write_lines};
use crate::disk::{FileSystem, Visibility, create_folders, write_all};
use crate::identity::FileId;

/// How long a displaced file must stay as it is before no other program is taken to write to it.
const QUIET: Duration = Duration::from_millis(50);

/// How often it must be found quiet if another program has it open for writing.
const HELD_LOOKS: usize = 20;

/// How often a displaced file is looked at before giving up.
const LOOKS: usize = 200;

/// How much is copied at once.
const CHUNK: usize = 1 << 18;

/// One of the two versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// As it was before the operation.
    Before,
    /// As the operation leaves it.
    After,
}

impl Side {
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// What must happen to a file so that it has the wanted version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Nothing.
    There,
    /// It has the other version and can be changed.
    Ready,
    /// It has neither version. The text says what is different.
    Blocked(String),
}

/// What is at a path.
enum Found {
    Absent,
    /// The version of this side, and how many bytes follow it.
    Version(Side, u64),
    Other(String),
}

/// Where a version of a file is, and its content if that is known.
struct Version<'r> {
    path: &'r Path,
    digest: Option<FileDigest>,
}

/// Which file was displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Version(Side),
    /// A log that another program made where the version of this side belongs.
    Stray(Side),
}

/// A file that lost its name, until it is in the operation's folder.
struct Displaced {
    i: usize,
    slot: Slot,
    path: PathBuf,
    /// The file that gets the lines that are still written to this one.
    heir: Option<PathBuf>,
    /// How much of it is in the heir.
    offset: u64,
    grows: bool,
}

/// Carries out the changes of one operation.
pub(super) struct Executor<'a> {
    fs: &'a dyn FileSystem,
    id: String,
    folder: PathBuf,
    displaced: Vec<Displaced>,
    /// The range of each append of which a full disk let only a part through.
    partial: HashMap<usize, (u64, u64)>,
    /// The files that a change was begun to.
    touched: HashSet<usize>,
    /// Whether the operation did not come to its end the first time.
    is_unfinished: bool,
    /// How many bytes of other programs were brought from one version to the other.
    pub(super) carried: u64,
}

impl<'a> Executor<'a> {
    pub(super) fn new(fs: &'a dyn FileSystem, receipt: &Receipt, folder: PathBuf) -> Self {
        Self {
            fs,
            id: receipt.id.clone(),
            folder,
            displaced: Vec::new(),
            partial: HashMap::new(),
            touched: HashSet::new(),
            is_unfinished: matches!(receipt.state, State::Begun | State::Applying),
            carried: 0,
        }
    }

    // Names.

    fn beside(&self, path: &Path, i: usize, kind: &str) -> PathBuf {
        path.with_file_name(format!(".threadline-{}-{i}.{kind}", self.id))
    }

    /// Where the content of a version is prepared; `None` if there is no file in that version.
    pub(super) fn staged(&self, i: usize, file: &ReceiptFile, side: Side) -> Option<PathBuf> {
        let path = match file.action {
            FileAction::Append if side == Side::Before => &file.path,
            _ => version(file, side)?.path,
        };
        Some(self.beside(path, i, &format!("new-{}", side.name())))
    }

    fn aside(&self, path: &Path, i: usize, slot: Slot) -> PathBuf {
        match slot {
            Slot::Version(side) => self.beside(path, i, &format!("old-{}", side.name())),
            Slot::Stray(_) => self.beside(path, i, "old-stray"),
        }
    }

    fn backup(&self, i: usize, file: &ReceiptFile, slot: Slot) -> PathBuf {
        match (slot, &file.backup) {
            (Slot::Version(Side::Before), Some(name)) => self.folder.join(name),
            (Slot::Version(side), _) => self.folder.join(format!("{i}.{}", side.name())),
            (Slot::Stray(_), _) => self.folder.join(format!("{i}.stray")),
        }
    }

    /// Where the lines of an append are kept.
    pub(super) fn lines(&self, i: usize) -> PathBuf {
        self.folder.join(format!("{i}.lines"))
    }

    // Looking.

    /// What must happen to a file so that it has the version of `to`. Changes nothing.
    pub(super) fn status(
        &self,
        i: usize,
        file: &ReceiptFile,
        to: Side,
        is_first: bool,
    ) -> Result<Status, OpError> {
        match file.action {
            FileAction::Unlink => return self.status_of_link(file, to),
            FileAction::Append => return self.status_of_append(i, file, to),
            _ => {}
        }
        let from = to.opposite();
        let wanted = self.resolve(i, file, to)?;
        let current = self.resolve(i, file, from)?;
        // Staged content that did not take its name: the version that it is of was never installed.
        if let Some(staged) = self.staged(i, file, from)
            && let Some(staged) = self.fs.metadata(&staged)?
            && let Some(current) = &current
            && self.fs.metadata(current.path)?.is_none_or(|now| !is_same(&now, &staged))
        {
            return Ok(Status::There);
        }
        let is_staged = match self.staged(i, file, to) {
            Some(staged) => self.fs.metadata(&staged)?.is_some(),
            None => false,
        };
        let has_content = is_staged || self.fs.metadata(&self.backup(i, file, Slot::Version(to)))?.is_some();
        if file.action == FileAction::Remove && to == Side::Before && self.is_unfinished && !has_content {
            // It was never removed: a removed file is in the operation's folder.
            return Ok(Status::There);
        }
        let ready = if has_content || wanted.is_none() {
            Status::Ready
        } else {
            Status::Blocked("its backup is gone".to_owned())
        };
        let gone = || Status::Blocked("it is gone".to_owned());
        // A file that is where the operation has not put its own yet is not its own.
        let is_new = to == Side::After && self.is_unfinished;
        Ok(match (current, wanted) {
            (Some(current), Some(wanted)) if current.path == wanted.path => {
                match self.find(current.path, &[(from, current.digest), (to, wanted.digest)], file.grows)? {
                    Found::Absent => gone(),
                    Found::Version(side, _) if side == to => Status::There,
                    Found::Version(..) => ready,
                    Found::Other(what) => Status::Blocked(what),
                }
            }
            (Some(current), Some(wanted)) => {
                let now = self.find(current.path, &[(from, current.digest)], file.grows)?;
                let then = self.find(wanted.path, &[(to, wanted.digest)], file.grows)?;
                match (now, then) {
                    (Found::Version(..), Found::Absent) => ready,
                    (Found::Version(..), _) if is_staged && is_new => {
                        Status::Blocked(format!("there is a file at {}", wanted.path.display()))
                    }
                    // Another program cannot have written our new version: the previous run ended in between.
                    (Found::Version(..), Found::Version(..)) => Status::Ready,
                    (_, Found::Version(..)) => Status::There,
                    (Found::Version(..), Found::Other(_)) if self.takes_strays(file, to) => ready,
                    (Found::Version(..), Found::Other(_)) => {
                        Status::Blocked(format!("there is another file at {}", wanted.path.display()))
                    }
                    (Found::Absent, Found::Absent) => gone(),
                    (Found::Other(what), _) => Status::Blocked(what),
                    (Found::Absent, Found::Other(_)) => gone(),
                }
            }
            (None, Some(wanted)) => match self.find(wanted.path, &[(to, wanted.digest)], file.grows)? {
                Found::Absent => ready,
                _ if is_staged && is_new => Status::Blocked("there is a file of that name".to_owned()),
                Found::Version(..) => Status::There,
                Found::Other(_) if self.takes_strays(file, to) => ready,
                Found::Other(what) => Status::Blocked(what),
            },
            (Some(current), None) if is_first => match self.fs.metadata(current.path)? {
                None => gone(),
                Some(metadata) if metadata.is_file() => Status::Ready,
                Some(_) => Status::Blocked("it is no regular file".to_owned()),
            },
            (Some(current), None) => match self.find(current.path, &[(from, current.digest)], file.grows)? {
                Found::Absent => Status::There,
                Found::Version(_, 0) => Status::Ready,
                Found::Version(_, n) => Status::Blocked(format!("{n} bytes were added")),
                Found::Other(what) => Status::Blocked(what),
            },
            (None, None) => Status::There,
        })
    }

    /// Whether a log that another program made where this one belongs is made part of it.
    fn takes_strays(&self, file: &ReceiptFile, to: Side) -> bool {
        let was_there = to == Side::Before || !self.is_unfinished;
        file.grows && was_there && file.action != FileAction::Create
    }

    fn status_of_link(&self, file: &ReceiptFile, to: Side) -> Result<Status, OpError> {
        let now = self.fs.metadata(&file.path)?;
        let is_ours = now.as_ref().is_some_and(Metadata::is_symlink)
            && fs_err::read_link(&file.path).ok().as_ref() == file.target.as_ref();
        Ok(match (to, now.is_some()) {
            (Side::Before, true) if is_ours => Status::There,
            (Side::Before, false) => Status::Ready,
            (Side::After, true) if is_ours => Status::Ready,
            (Side::After, false) => Status::There,
            (Side::Before, true) => Status::Blocked("there is another file of that name".to_owned()),
            (Side::After, true) => Status::Blocked("it is not the link that it was".to_owned()),
        })
    }

    fn status_of_append(&self, i: usize, file: &ReceiptFile, to: Side) -> Result<Status, OpError> {
        if self.fs.metadata(&file.path)?.is_none() {
            return Ok(Status::Blocked("it is gone".to_owned()));
        }
        let mut now = self.fs.open(&file.path)?;
        let found = match self.find_appended(i, file, &mut now)? {
            Ok(found) => found,
            Err(what) => return Ok(Status::Blocked(what)),
        };
        Ok(match (to, found) {
            (Side::Before, None) | (Side::After, Some(_)) => Status::There,
            (Side::Before, Some(_)) | (Side::After, None) => Status::Ready,
        })
    }

    /// Where in a file the lines are that the operation appended; `Err` if the file is another.
    fn find_appended(
        &self,
        i: usize,
        file: &ReceiptFile,
        now: &mut File,
    ) -> io::Result<Result<Option<(u64, u64)>, String>> {
        let start = file.length_before.unwrap_or(0);
        let length = now.metadata()?.len();
        if let Some(range) = self.partial.get(&i) {
            return Ok(Ok(Some(*range)));
        }
        let lines = match fs_err::read(self.lines(i)) {
            Ok(lines) => lines,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A receipt of format 1: the digest is that of the whole file.
                let Some(after) = file.after() else { return Ok(Ok(None)) };
                return Ok(match find(now, &[(Side::After, after)], true)? {
                    Found::Version(..) => Ok(Some((start, after.length))),
                    _ if length == start => Ok(None),
                    _ => Err("its content is another".to_owned()),
                });
            }
            Err(error) => return Err(error),
        };
        if let Some(before) = file.before()
            && !matches!(find(now, &[(Side::Before, before)], true)?, Found::Version(..))
        {
            return Ok(Err("its content is another".to_owned()));
        }
        let torn = tears_at(now, start)?;
        let tail = read_from(now, start)?;
        let starts_line = |at: usize| if at == 0 { !torn } else { tail[at - 1] == b'\n' };
        let found = memmem::find_iter(&tail, &lines).find(|&at| starts_line(at));
        Ok(Ok(found.map(|at| {
            let end = at + lines.len();
            // The newline that closed a line without one is ours too, as long as nothing follows.
            let at = if torn && at == 1 && end == tail.len() { 0 } else { at };
            (start + at as u64, start + end as u64)
        })))
    }

    /// The version of a side, with the digest of the backup where the receipt has none.
    fn resolve<'r>(
        &self,
        i: usize,
        file: &'r ReceiptFile,
        side: Side,
    ) -> Result<Option<Version<'r>>, OpError> {
        let Some(mut version) = version(file, side) else { return Ok(None) };
        // The backup of a file that does not grow, and of one that was removed, is the previous version as a
        // whole.
        let is_whole = file.action == FileAction::Remove || !file.grows || version.digest.is_none();
        if side == Side::Before && is_whole {
            let kept = FileDigest::read(&self.backup(i, file, Slot::Version(side)))?;
            version.digest = kept.or(version.digest);
        }
        Ok(Some(version))
    }

    /// Which of the versions the file at `path` has. The longest that matches is it.
    fn find(&self, path: &Path, versions: &[(Side, Option<FileDigest>)], grows: bool) -> io::Result<Found> {
        match self.fs.metadata(path)? {
            None => return Ok(Found::Absent),
            Some(metadata) if !metadata.is_file() => {
                return Ok(Found::Other("it is no regular file".to_owned()));
            }
            Some(_) => {}
        }
        let known: Vec<_> = versions.iter().filter_map(|(side, digest)| Some((*side, (*digest)?))).collect();
        if known.is_empty() {
            return Ok(Found::Other("it is not known what the interrupted operation wrote there".to_owned()));
        }
        find(&mut self.fs.open(path)?, &known, grows)
    }

    // Changing.

    /// Brings a file whose status is [`Status::Ready`] to the version of `to`. The displaced file is pending
    /// until [`Executor::settle`].
    pub(super) fn change(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Side,
        is_first: bool,
    ) -> Result<(), OpError> {
        self.touched.insert(i);
        match (file.action, to) {
            (FileAction::Unlink, Side::After) => return Ok(self.fs.remove_file(&file.path)?),
            (FileAction::Unlink, Side::Before) => {
                self.make_folder(&file.path)?;
                let target = file.target.as_deref().unwrap_or(Path::new(""));
                return Ok(self.fs.symlink(target, &file.path)?);
            }
            (FileAction::Append, Side::After) => return self.append(i, file),
            (FileAction::Append, Side::Before) => return self.take_back(i, file),
            _ => {}
        }
        let from = to.opposite();
        let wanted = self.resolve(i, file, to)?;
        let current = self.resolve(i, file, from)?;
        let (path, heir, offset) = match (current, wanted) {
            (Some(current), Some(wanted)) if current.path == wanted.path => {
                self.install(i, file, to, Some(&current), &wanted)?;
                return Ok(());
            }
            (None, Some(wanted)) => {
                self.install(i, file, to, None, &wanted)?;
                return Ok(());
            }
            (Some(current), Some(wanted)) => {
                let is_installed =
                    matches!(self.find(wanted.path, &[(to, wanted.digest)], file.grows)?, Found::Version(..));
                let offset = if is_installed {
                    self.carry_missing(current.path, current.length(), wanted.path, wanted.length())?
                } else {
                    self.install(i, file, to, Some(&current), &wanted)?
                };
                (current.path, Some(wanted.path.to_owned()), offset)
            }
            (Some(current), None) => (current.path, None, if is_first { 0 } else { current.length() }),
            (None, None) => return Ok(()),
        };
        let slot = Slot::Version(from);
        let aside = self.aside(path, i, slot);
        self.fs.rename_new(path, &aside)?;
        self.displaced.push(Displaced { i, slot, path: aside, heir, offset, grows: file.grows });
        Ok(())
    }

    /// Gives the wanted content, with the lines that others added to the current one, the file's name.
    /// Returns how far the current file is in the new one.
    fn install(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Side,
        current: Option<&Version<'_>>,
        wanted: &Version<'_>,
    ) -> Result<u64, OpError> {
        let (mut new, staged) = self.prepare(i, file, to, wanted)?;
        let from = to.opposite();
        let mut offset = 0;
        let mut old = None;
        if let Some(current) = current {
            let mut opened = self.open_locked(current.path)?;
            match current.digest.map(|digest| find(&mut opened, &[(from, digest)], file.grows)) {
                Some(Ok(Found::Version(..))) => {}
                Some(Err(error)) => return Err(error.into()),
                _ => return Err(changed(current.path, "its content is another")),
            }
            if tears_at(&mut opened, current.length())?
                && !ends_torn(&mut new)?
                && opened.metadata()?.len() > current.length()
            {
                // The rest of a line has arrived whose beginning is not in the wanted version.
                return Err(changed(current.path, "a line was completed meanwhile"));
            }
            offset = self.carry(&mut opened, current.length(), &mut new, Extent::WholeLines)?;
            self.fs.set_permissions(&new, opened.metadata()?.permissions())?;
            old = Some(opened);
        }
        if file.grows {
            self.carry_late(i, file, to, wanted, &mut new)?;
        }
        self.fs.sync(&new)?;
        match (&old, current) {
            (Some(old), Some(current)) if current.path == wanted.path => {
                self.swap(i, Slot::Version(from), old, &staged, wanted.path, offset, file.grows)?;
            }
            _ => match self.fs.rename_new(&staged, wanted.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.takes_strays(file, to) => {
                    // Another program has made the log anew since the operation removed it.
                    let mut stray = self.open_locked(wanted.path)?;
                    let offset = self.carry(&mut stray, 0, &mut new, Extent::WholeLines)?;
                    self.fs.sync(&new)?;
                    self.swap(i, Slot::Stray(to), &stray, &staged, wanted.path, offset, true)?;
                }
                renamed => {
                    renamed?;
                    self.sync_parent(wanted.path)?;
                }
            },
        }
        Ok(offset)
    }

    /// Puts the staged file in the place of the one at `path`, which keeps a private name.
    #[expect(clippy::too_many_arguments, reason = "the parts of one displaced file")]
    fn swap(
        &mut self,
        i: usize,
        slot: Slot,
        old: &File,
        staged: &Path,
        path: &Path,
        offset: u64,
        grows: bool,
    ) -> Result<(), OpError> {
        let aside = self.aside(path, i, slot);
        let is_linked = match self.fs.link(path, &aside) {
            Ok(()) => true,
            // Some file systems have no second names. There, the file has none for a moment.
            Err(error) if has_no_links(error.kind()) => {
                self.fs.rename_new(path, &aside)?;
                false
            }
            Err(error) => return Err(error.into()),
        };
        let is_old = self.fs.metadata(&aside)?.is_some_and(|linked| is_file(&linked, old));
        match (is_old, is_linked) {
            (true, true) => self.fs.rename(staged, path)?,
            (true, false) => self.fs.rename_new(staged, path)?,
            (false, true) => self.fs.remove_file(&aside)?,
            (false, false) => self.fs.rename_new(&aside, path)?,
        }
        if !is_old {
            return Err(changed(path, "another program has replaced it"));
        }
        let heir = Some(path.to_owned());
        self.displaced.push(Displaced { i, slot, path: aside, heir, offset, grows });
        self.sync_parent(path)
    }

    /// The staged file of a version, with exactly its content.
    fn prepare(
        &self,
        i: usize,
        file: &ReceiptFile,
        to: Side,
        wanted: &Version<'_>,
    ) -> Result<(File, PathBuf), OpError> {
        let staged = self.beside(wanted.path, i, &format!("new-{}", to.name()));
        if self.fs.metadata(&staged)?.is_some() {
            let mut new = self.fs.open_append(&staged)?;
            if let Some(digest) = wanted.digest
                && matches!(find(&mut new, &[(to, digest)], true)?, Found::Version(..))
            {
                if new.metadata()?.len() > digest.length {
                    self.fs.truncate(&new, digest.length)?;
                }
                return Ok((new, staged));
            }
            self.fs.remove_file(&staged)?;
        }
        self.make_folder(wanted.path)?;
        let backup = self.backup(i, file, Slot::Version(to));
        let mut kept = self.fs.open(&backup)?;
        let permissions = kept.metadata()?.permissions();
        let mut new = self.fs.create_new(&staged, Visibility::Private)?;
        let mut content = super::digest::Hashing::new((&mut kept).take(wanted.length()));
        self.copy(&mut content, &mut new).map_err(|error| cannot_write(&staged, &error))?;
        if Some(content.digest()) != wanted.digest {
            self.fs.remove_file(&staged)?;
            return Err(changed(&backup, "the backup is not what was kept"));
        }
        self.fs.set_permissions(&new, permissions)?;
        Ok((new, staged))
    }

    /// Writes the content of a new version beside its file and returns its digest.
    pub(super) fn stage(
        &self,
        i: usize,
        file: &ReceiptFile,
        content: &mut dyn Read,
        visibility: Visibility,
    ) -> Result<FileDigest, OpError> {
        let Some(staged) = self.staged(i, file, Side::After) else {
            return Ok(FileDigest::of(b""));
        };
        self.make_folder(&staged)?;
        let mut new = self.fs.create_new(&staged, visibility)?;
        let mut content = super::digest::Hashing::new(content);
        self.copy(&mut content, &mut new).map_err(|error| cannot_write(&staged, &error))?;
        self.fs.sync(&new)?;
        Ok(content.digest())
    }

    /// Appends the operation's lines in one write.
    fn append(&mut self, i: usize, file: &ReceiptFile) -> Result<(), OpError> {
        let lines = fs_err::read(self.lines(i))?;
        // A program may still have written to the log that an undo put away.
        let kept = self.backup(i, file, Slot::Version(Side::After));
        if self.fs.metadata(&kept)?.is_some()
            && let Ok(Some((start, end))) = self.find_appended(i, file, &mut self.fs.open(&kept)?)?
        {
            self.carry_missing(&kept, end, &file.path, start)?;
        }
        let mut log = crate::append::open_locked(self.fs, &file.path)?;
        let appended = write_lines(self.fs, &mut log, &lines);
        if let Err(failed) = appended {
            if let Some(range) = failed.left {
                self.partial.insert(i, range);
            }
            return Err(cannot_write(&file.path, &failed.error).into());
        }
        Ok(())
    }

    /// Removes the operation's own lines from a log.
    fn take_back(&mut self, i: usize, file: &ReceiptFile) -> Result<(), OpError> {
        let mut old = self.open_locked(&file.path)?;
        let (start, end) = match self.find_appended(i, file, &mut old)? {
            Ok(Some(range)) => range,
            Ok(None) => return Ok(()),
            Err(what) => return Err(changed(&file.path, &what)),
        };
        let staged = self.beside(&file.path, i, "new-before");
        if self.fs.metadata(&staged)?.is_some() {
            self.fs.remove_file(&staged)?;
        }
        let mut new = self.fs.create_new(&staged, Visibility::Private)?;
        old.seek(SeekFrom::Start(0))?;
        self.copy(&mut (&mut old).take(start), &mut new)?;
        let offset = self.carry(&mut old, end, &mut new, Extent::WholeLines)?;
        self.fs.set_permissions(&new, old.metadata()?.permissions())?;
        self.fs.sync(&new)?;
        self.swap(i, Slot::Version(Side::After), &old, &staged, &file.path, offset, true)?;
        self.partial.remove(&i);
        Ok(())
    }

    // Lines of other programs.

    /// Appends what follows `offset` in `old` to `new`. Returns how far `old` is carried.
    fn carry(&mut self, old: &mut File, offset: u64, new: &mut File, extent: Extent) -> io::Result<u64> {
        let added = read_from(old, offset)?;
        let n = match extent {
            Extent::All => added.len(),
            Extent::WholeLines => memrchr(b'\n', &added).map_or(0, |newline| newline + 1),
        };
        if n == 0 {
            return Ok(offset);
        }
        let mut bytes = added;
        bytes.truncate(n);
        if tears_at(old, offset)? {
            // The rest of a line, whose beginning the other file has.
            write_all(self.fs, new, &bytes)?;
        } else {
            write_lines(self.fs, new, &bytes).map_err(|failed| failed.error)?;
        }
        self.carried += n as u64;
        Ok(offset + n as u64)
    }

    /// Appends the lines of `old` that are not in `heir`, comparing what follows their versions. Returns how
    /// far `old` is carried.
    fn carry_missing(&mut self, old: &Path, base: u64, heir: &Path, heir_base: u64) -> io::Result<u64> {
        let mut old = self.fs.open(old)?;
        let added = read_from(&mut old, base)?;
        let mut new = self.fs.open_append(heir)?;
        lock(&new)?;
        let present = read_from(&mut new, heir_base)?;
        let missing = missing_lines(&added, &present);
        if !missing.is_empty() {
            write_lines(self.fs, &mut new, &missing).map_err(|failed| failed.error)?;
            self.fs.sync(&new)?;
            self.carried += missing.len() as u64;
        }
        Ok(base + added.len() as u64)
    }

    /// Appends the lines that a program wrote to the backup of the wanted version after it was put away.
    fn carry_late(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Side,
        wanted: &Version<'_>,
        new: &mut File,
    ) -> io::Result<()> {
        let backup = self.backup(i, file, Slot::Version(to));
        if self.fs.metadata(&backup)?.is_none() {
            return Ok(());
        }
        let late = read_from(&mut self.fs.open(&backup)?, wanted.length())?;
        let missing = missing_lines(&late, &read_from(new, wanted.length())?);
        if !missing.is_empty() {
            write_lines(self.fs, new, &missing).map_err(|failed| failed.error)?;
            self.carried += missing.len() as u64;
        }
        Ok(())
    }

    /// Finishes what an interrupted run left of displaced files.
    pub(super) fn recover(&mut self, receipt: &mut Receipt) -> Result<(), OpError> {
        for (i, file) in receipt.files.iter().enumerate() {
            for slot in [
                Slot::Version(Side::Before),
                Slot::Version(Side::After),
                Slot::Stray(Side::Before),
                Slot::Stray(Side::After),
            ] {
                self.recover_one(i, file, slot)?;
            }
        }
        self.settle(receipt)?;
        Ok(())
    }

    fn recover_one(&mut self, i: usize, file: &ReceiptFile, slot: Slot) -> Result<(), OpError> {
        let (own, heir) = match slot {
            Slot::Stray(side) => match version(file, side) {
                None => return Ok(()),
                heir => (None, heir),
            },
            Slot::Version(_) if file.action == FileAction::Append => (None, None),
            Slot::Version(side) => (self.resolve(i, file, side)?, self.resolve(i, file, side.opposite())?),
        };
        let place = if let Slot::Stray(_) = slot { &heir } else { &own };
        let path = place.as_ref().map_or(&*file.path, |place| place.path);
        let aside = self.aside(path, i, slot);
        let Some(metadata) = self.fs.metadata(&aside)? else { return Ok(()) };
        if self.fs.metadata(path)?.is_some_and(|now| is_same(&now, &metadata)) {
            // It was to be displaced, and was not.
            return Ok(self.fs.remove_file(&aside)?);
        }
        let mut offset = own.as_ref().map_or(0, Version::length);
        let mut heir_path = heir.as_ref().map(|heir| heir.path.to_owned());
        if file.action == FileAction::Append {
            heir_path = Some(file.path.clone());
        }
        if let Some(heir_path) = &heir_path
            && self.fs.metadata(heir_path)?.is_none()
        {
            return match self.fs.rename_new(&aside, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                renamed => Ok(renamed?),
            };
        }
        if let Some(heir_path) = &heir_path
            && file.grows
        {
            offset = if file.action == FileAction::Append {
                let range = self.find_appended(i, file, &mut self.fs.open(&aside)?)?.unwrap_or_default();
                let (start, end) = range.unwrap_or_default();
                self.carry_missing(&aside, end, heir_path, start)?
            } else {
                let heir_base = heir.as_ref().map_or(0, Version::length);
                self.carry_missing(&aside, offset, heir_path, heir_base)?
            };
        }
        self.displaced.push(Displaced { i, slot, path: aside, heir: heir_path, offset, grows: file.grows });
        Ok(())
    }

    /// Waits until nothing is written to the displaced files any more, brings their lines over, and moves
    /// them into the operation's folder. Returns the files that were put back, because they turned out not to
    /// be ours alone.
    pub(super) fn settle(&mut self, receipt: &mut Receipt) -> Result<Vec<ChangedFile>, OpError> {
        self.drain()?;
        let mut put_back = Vec::new();
        for displaced in std::mem::take(&mut self.displaced) {
            put_back.extend(self.put_away(&displaced, &mut receipt.files[displaced.i])?);
        }
        Ok(put_back)
    }

    fn drain(&mut self) -> Result<(), OpError> {
        let mut displaced = std::mem::take(&mut self.displaced);
        let drained = self.drain_all(&mut displaced);
        self.displaced = displaced;
        drained
    }

    fn drain_all(&mut self, displaced: &mut [Displaced]) -> Result<(), OpError> {
        if !displaced.iter().any(|displaced| displaced.grows) {
            return Ok(());
        }
        let mut lengths = Vec::new();
        let mut quiet = 0;
        for _ in 0..LOOKS {
            let mut now = Vec::new();
            for displaced in displaced.iter_mut().filter(|displaced| displaced.grows) {
                now.push(self.drain_one(displaced, Extent::WholeLines)?);
            }
            quiet = if now == lengths { quiet + 1 } else { 0 };
            let is_open = || displaced.iter().any(|displaced| self.fs.is_written_elsewhere(&displaced.path));
            if quiet >= HELD_LOOKS || quiet > 0 && !is_open() {
                for displaced in displaced.iter_mut().filter(|displaced| displaced.grows) {
                    self.drain_one(displaced, Extent::All)?;
                }
                return Ok(());
            }
            lengths = now;
            self.fs.pause(QUIET);
        }
        let paths =
            displaced.iter().filter(|displaced| displaced.grows).map(|displaced| displaced.path.clone());
        Err(OpError::StillWritten { paths: paths.collect() })
    }

    /// Brings over what was written to a displaced file. Returns its length.
    fn drain_one(&mut self, displaced: &mut Displaced, extent: Extent) -> io::Result<u64> {
        let mut old = self.fs.open(&displaced.path)?;
        let length = old.metadata()?.len();
        if length > displaced.offset
            && let Some(heir) = &displaced.heir
            && self.fs.metadata(heir)?.is_some()
        {
            let mut new = self.fs.open_append(heir)?;
            lock(&new)?;
            let offset = self.carry(&mut old, displaced.offset, &mut new, extent)?;
            if offset > displaced.offset {
                self.fs.sync(&new)?;
            }
            displaced.offset = offset;
        }
        Ok(length)
    }

    /// Moves a displaced file into the operation's folder, or back if it is not what was to be removed.
    fn put_away(
        &mut self,
        displaced: &Displaced,
        file: &mut ReceiptFile,
    ) -> Result<Option<ChangedFile>, OpError> {
        let i = displaced.i;
        if file.action == FileAction::Create && displaced.slot == Slot::Version(Side::After) {
            let length = file.length_after.unwrap_or(0);
            let now = self.find(&displaced.path, &[(Side::After, file.after())], file.grows)?;
            if !matches!(now, Found::Version(_, 0)) {
                // Another program wrote to it while it was being removed.
                match self.fs.rename_new(&displaced.path, &file.path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        // It has also made the file anew; its lines go there.
                        self.carry_missing(&displaced.path, length, &file.path, 0)?;
                    }
                    renamed => {
                        renamed?;
                        let what = "it was changed while it was being removed".to_owned();
                        return Ok(Some(ChangedFile { path: file.path.clone(), what }));
                    }
                }
            }
        }
        let backup = self.backup(i, file, displaced.slot);
        if let (Slot::Version(side), Some(heir)) = (displaced.slot, &displaced.heir)
            && file.grows
            && file.action != FileAction::Append
            && self.fs.metadata(&backup)?.is_some()
            && self.fs.metadata(heir)?.is_some()
        {
            // The previous backup of this version goes; a program may still have written to it.
            let base = version(file, side).map_or(0, |version| version.length());
            let heir_base = version(file, side.opposite()).map_or(0, |version| version.length());
            self.carry_missing(&backup, base, heir, heir_base)?;
        }
        self.move_into_folder(&displaced.path, &backup)?;
        if file.action == FileAction::Remove
            && displaced.slot == Slot::Version(Side::Before)
            && let Some(digest) = FileDigest::read(&backup)?
        {
            file.set_before(digest);
        }
        Ok(None)
    }

    /// Moves a file into the operation's folder, which may be on another file system.
    fn move_into_folder(&self, path: &Path, to: &Path) -> Result<(), OpError> {
        match self.fs.rename(path, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            renamed => return Ok(renamed?),
        }
        let copy = to.with_extension("copy");
        if self.fs.metadata(&copy)?.is_some() {
            self.fs.remove_file(&copy)?;
        }
        let mut old = self.fs.open(path)?;
        let mut new = self.fs.create_new(&copy, Visibility::Private)?;
        self.copy(&mut old, &mut new)?;
        self.fs.set_permissions(&new, old.metadata()?.permissions())?;
        self.fs.sync(&new)?;
        self.fs.rename(&copy, to)?;
        self.fs.sync_folder(&self.folder)?;
        self.fs.remove_file(path)?;
        // A program that still has the file open may have written until now.
        self.copy(&mut old, &mut new)?;
        Ok(())
    }

    /// Removes staged content that is not needed any more, or keeps it for a redo.
    pub(super) fn clear_staged(&self, receipt: &Receipt, keep: bool) -> Result<(), OpError> {
        for (i, file) in receipt.files.iter().enumerate() {
            for side in [Side::Before, Side::After] {
                let Some(staged) = self.staged(i, file, side) else { continue };
                if self.fs.metadata(&staged)?.is_none() {
                    continue;
                }
                let backup = self.backup(i, file, Slot::Version(side));
                if keep && side == Side::After && self.fs.metadata(&backup)?.is_none() {
                    self.move_into_folder(&staged, &backup)?;
                } else {
                    self.fs.remove_file(&staged)?;
                }
            }
        }
        Ok(())
    }

    /// Gives files that are byte for byte as before the time that they had.
    pub(super) fn set_times(&self, receipt: &Receipt) -> Result<(), OpError> {
        for file in &receipt.files {
            let Some(millis) = file.modified_before.and_then(|millis| u64::try_from(millis).ok()) else {
                continue;
            };
            if let Some(metadata) = self.fs.metadata(&file.path)?
                && metadata.is_file()
                && Some(metadata.len()) == file.length_before
            {
                self.fs.set_modified(&file.path, UNIX_EPOCH + Duration::from_millis(millis))?;
            }
        }
        Ok(())
    }

    // Small things.

    /// Forgets what is pending; [`Executor::recover`] finds it again.
    pub(super) fn start_over(&mut self) {
        self.displaced.clear();
    }

    /// Whether a change to this file was at least begun.
    pub(super) fn has_touched(&self, i: usize) -> bool {
        self.touched.contains(&i)
    }

    /// Makes sure that a file can be made beside a log.
    pub(super) fn probe(&self, i: usize, file: &ReceiptFile) -> io::Result<()> {
        let probe = self.beside(&file.path, i, "new-before");
        self.fs.create_new(&probe, Visibility::Private)?;
        self.fs.remove_file(&probe)
    }

    /// Opens the file that has this name now and locks it.
    fn open_locked(&self, path: &Path) -> Result<File, OpError> {
        for _ in 0..crate::append::ATTEMPTS {
            let file = self.fs.open(path)?;
            lock(&file)?;
            if self.fs.metadata(path)?.is_some_and(|now| is_file(&now, &file)) {
                return Ok(file);
            }
        }
        Err(changed(path, "another program replaces it again and again"))
    }

    fn copy(&self, from: &mut dyn Read, to: &mut File) -> io::Result<u64> {
        let mut buffer = vec![0; CHUNK];
        let mut length = 0;
        loop {
            let n = match from.read(&mut buffer) {
                Ok(0) => return Ok(length),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            write_all(self.fs, to, &buffer[..n])?;
            length += n as u64;
        }
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        create_folders(self.fs, path.parent().unwrap_or(Path::new("")), Visibility::Shared)
    }

    fn sync_parent(&self, path: &Path) -> Result<(), OpError> {
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => Ok(self.fs.sync_folder(folder)?),
            _ => Ok(()),
        }
    }
}

/// How much of what follows is brought over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Up to the last newline: the rest of the last line may be on its way.
    WholeLines,
    /// Everything.
    All,
}

impl Version<'_> {
    fn length(&self) -> u64 {
        self.digest.map_or(0, |digest| digest.length)
    }
}

/// Where the version of a side is; `None` if there is no file in that version.
fn version(file: &ReceiptFile, side: Side) -> Option<Version<'_>> {
    match (file.action, side) {
        (FileAction::Create | FileAction::Replace, Side::After) => {
            Some(Version { path: &file.path, digest: file.after() })
        }
        (FileAction::Replace | FileAction::Remove | FileAction::Move, Side::Before) => {
            Some(Version { path: &file.path, digest: file.before() })
        }
        (FileAction::Move, Side::After) => {
            Some(Version { path: file.target.as_deref()?, digest: file.after() })
        }
        (FileAction::Create, Side::Before)
        | (FileAction::Remove, Side::After)
        | (FileAction::Append | FileAction::Unlink, _) => None,
    }
}

pub(super) fn changed(path: &Path, what: &str) -> OpError {
    OpError::Changed { files: vec![ChangedFile { path: path.to_owned(), what: what.to_owned() }] }
}

fn has_no_links(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, TooManyLinks, Unsupported};
    matches!(kind, PermissionDenied | TooManyLinks | Unsupported)
}

fn cannot_write(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    FileId::of(a) == FileId::of(b)
}

fn is_file(metadata: &Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|of| is_same(metadata, &of))
}

/// Which of the versions a file has; with `grows`, followed by anything.
fn find(file: &mut File, versions: &[(Side, FileDigest)], grows: bool) -> io::Result<Found> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(0))?;
    let digests = Prefixes::read(file, versions.iter().map(|(_, digest)| digest.length))?;
    let matches = versions.iter().filter(|(_, digest)| digests.has(digest));
    let longest = matches.max_by_key(|(_, digest)| digest.length);
    Ok(match longest {
        Some((side, digest)) if grows || digest.length == length => {
            Found::Version(*side, length.saturating_sub(digest.length))
        }
        Some((_, digest)) => Found::Other(format!("{} bytes were added", length - digest.length)),
        None => Found::Other("its content is another".to_owned()),
    })
}

fn read_from(file: &mut File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn ends_torn(file: &mut File) -> io::Result<bool> {
    let end = file.metadata()?.len();
    tears_at(file, end)
}

/// The lines of `added` that `present` does not have, each as often as it is missing.
fn missing_lines(added: &[u8], present: &[u8]) -> Vec<u8> {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for line in lines(present) {
        *counts.entry(line.strip_suffix(b"\n").unwrap_or(line)).or_default() += 1;
    }
    let mut missing = Vec::new();
    for line in lines(added) {
        match counts.get_mut(line.strip_suffix(b"\n").unwrap_or(line)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => missing.extend(line),
        }
    }
    missing
}

/// The lines of a text with their newlines.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', text).map(|newline| newline + 1).chain([text.len()]);
    ends.filter_map(move |end| {
        let line = &text[std::mem::replace(&mut start, end)..end];
        (!line.is_empty()).then_some(line)
    })
}
