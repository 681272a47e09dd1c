//! Copies the new content of a home to the archive.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Seek};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use threadline_secret::Rules;
use threadline_store::{
    Home, HomeFile, Store, is_shared_agent_name, open_regular, read_session_of_file, session_of_file,
};

use crate::archive::Archive;
use crate::digest::{digest, hex_digits};
use crate::error::ArchiveError;
use crate::jobs::split_by_size;
use crate::level::{PrivacyLevel, SessionReducer};
use crate::manifest::{
    ArchivedFile, FilePiece, FileVersion, Manifest, Origin, SerialManifest, read_manifest,
};
use crate::segment::{NewSegment, SegmentWriter, segment_object};

/// Options of [`Archive::push`].
pub struct PushOptions<'a> {
    /// How much is copied.
    pub level: PrivacyLevel,
    /// The secrets to replace at [`PrivacyLevel::Redacted`].
    pub rules: &'a Rules,
    /// The current time.
    pub now: SystemTime,
}

/// The result of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushReport {
    /// The number of files that were not archived before.
    pub new_files: usize,
    /// The number of files that have grown.
    pub grown_files: usize,
    /// The number of files with changes in the archived part. The earlier version is kept.
    pub rewritten_files: usize,
    /// The number of files without changes.
    pub unchanged_files: usize,
    /// The number of bytes that were copied.
    pub copied_bytes: u64,
    /// The number of bytes that this takes in the archive.
    pub stored_bytes: u64,
    /// Messages about files that could not be read.
    pub unread: Vec<String>,
}

/// The age from which the times of a file show reliably that it is unchanged.
const SETTLING: Duration = Duration::from_secs(2);

/// The number of jobs (or more, if there are more threads) after which the manifest is written, so that an
/// interrupted push continues there.
const JOBS_PER_MANIFEST: usize = 16;

impl Archive {
    /// Copies the new content of a home. `progress` is called with the number of bytes that were read.
    ///
    /// An interrupted push loses nothing: the next one continues. Files that Claude Code writes meanwhile
    /// are copied as far as they are written.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read or written. Files that cannot be read are reported.
    pub fn push(
        &self,
        store: &Store,
        home: &Home,
        origin: &Origin,
        options: &PushOptions<'_>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<PushReport, ArchiveError> {
        if let Some(database) = self.database() {
            return database.push(store, home, origin, options, progress);
        }
        self.begin_writing()?;
        let listing = store.files_of(home);
        let mut report = PushReport {
            unread: listing.errors.iter().map(ToString::to_string).collect(),
            ..Default::default()
        };
        let known = read_manifest(self.objects(), &origin.folder())?;
        let mut known =
            known.unwrap_or_else(|| SerialManifest { serial: 0, manifest: Manifest::new(origin.clone()) });
        let jobs = plan(listing.found, &known.manifest, options, &mut report);
        for jobs in jobs.chunks(JOBS_PER_MANIFEST.next_multiple_of(rayon::current_num_threads())) {
            let run = |job: &Vec<HomeFile>| self.run_job(job, &known.manifest, options, progress);
            // Each thread takes the next job, so that the small last ones even out the others.
            let done: Vec<JobResult> = jobs.iter().par_bridge().map(run).collect::<Result<_, _>>()?;
            let before = known.manifest.clone();
            let mut copied = Vec::new();
            let mut reused = Vec::new();
            for job in done {
                report.unread.extend(job.unread);
                report.copied_bytes += job.copied_bytes;
                report.stored_bytes += job.stored_bytes;
                copied.extend(job.files);
                reused.extend(job.reused);
            }
            apply(&mut known.manifest, &before, &copied, Some(&mut report));
            self.write_manifest(&mut known, &before, &copied)?;
            for (name, bytes) in reused {
                // It may have been deleted just before it was written again.
                if self.objects().written(&name)?.is_none() {
                    self.objects().create(&name, bytes)?;
                }
            }
        }
        Ok(report)
    }

    /// Writes a manifest. If another process has written one, the copied files are added to that.
    fn write_manifest(
        &self,
        known: &mut SerialManifest,
        before: &Manifest,
        copied: &[(String, FileVersion)],
    ) -> Result<(), ArchiveError> {
        const ATTEMPTS: usize = 16;
        if known.manifest == *before && known.serial > 0 {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            if known.write(self.objects())? {
                return Ok(());
            }
            let Some(theirs) = read_manifest(self.objects(), &known.manifest.origin.folder())? else {
                continue;
            };
            *known = theirs;
            apply(&mut known.manifest, before, copied, None);
        }
        Err(ArchiveError::Busy)
    }

    /// Copies some files.
    fn run_job(
        &self,
        job: &[HomeFile],
        known: &Manifest,
        options: &PushOptions<'_>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<JobResult, ArchiveError> {
        let mut copier = Copier {
            archive: self,
            writer: SegmentWriter::new(&known.origin)?,
            origin: &known.origin,
            known,
            segments: Vec::new(),
            result: JobResult::default(),
            progress,
        };
        let mut reducer = match options.level {
            PrivacyLevel::Full => None,
            level => Some(SessionReducer::new(level, options.rules, job)),
        };
        for file in job {
            let version = known.files.get(&file.name).map(|file| &file.current);
            let version = version.filter(|version| version.level == options.level);
            let number = known.files.get(&file.name).map_or(0, |file| file.current.version + 1);
            let copied = match &mut reducer {
                None => copier.copy_whole(file, version, number),
                Some(reducer) => copier.copy_reduced(file, version, number, reducer),
            };
            match copied {
                Ok(version) => {
                    let stamp = stamp(file, options.now);
                    let session = match is_shared_agent_name(&file.name) {
                        true => session_of(file, known),
                        false => None,
                    };
                    copier.result.files.push((file.name.clone(), FileVersion { stamp, session, ..version }));
                }
                Err(ArchiveError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(ArchiveError::Io(error)) => {
                    copier.result.unread.push(format!("cannot read {}: {error}", file.path.display()));
                }
                Err(error) => return Err(error),
            }
        }
        copier.finish()
    }
}

/// The copied files of a job.
#[derive(Default)]
struct JobResult {
    files: Vec<(String, FileVersion)>,
    copied_bytes: u64,
    stored_bytes: u64,
    unread: Vec<String>,
    /// Segments that existed already, and that this home did not use.
    reused: Vec<(String, Vec<u8>)>,
}

/// Returns the files that may have changed, in jobs of about one segment each.
pub(crate) fn plan(
    files: Vec<HomeFile>,
    known: &Manifest,
    options: &PushOptions<'_>,
    report: &mut PushReport,
) -> Vec<Vec<HomeFile>> {
    let is_changed = |file: &HomeFile| {
        let current = known.files.get(&file.name).map(|known| &known.current);
        let is_same = |current: &FileVersion| {
            current.level == options.level
                && current.stamp.is_some()
                && current.stamp == raw_stamp(file)
                // Earlier versions of the program did not record the session.
                && (current.session.is_some() || !is_shared_agent_name(&file.name))
        };
        !current.is_some_and(is_same)
    };
    let is_removed = |file: &HomeFile| {
        !known.removed.is_empty() && session_of(file, known).is_some_and(|id| known.removed.contains(&id))
    };
    let n_files = files.len();
    let is_copied = |file: &HomeFile| !is_removed(file) && options.level.copies(&file.name);
    let files: Vec<HomeFile> = files.into_iter().filter(is_copied).collect();
    let jobs: Vec<Vec<HomeFile>> = if options.level == PrivacyLevel::Full {
        let new_bytes = |file: &HomeFile| {
            let archived = known.files.get(&file.name).map_or(0, |known| known.current.size);
            file.size.saturating_sub(archived)
        };
        let changed = files.into_iter().filter(is_changed).map(|file| (new_bytes(&file), file)).collect();
        split_by_size(changed, rayon::current_num_threads())
    } else {
        // A secret that is found in one file of a session is replaced in all of them.
        let mut sessions: BTreeMap<Option<String>, Vec<HomeFile>> = BTreeMap::new();
        for file in files {
            sessions.entry(session_of(&file, known)).or_default().push(file);
        }
        sessions.into_values().filter(|files| files.iter().any(is_changed)).collect()
    };
    report.unchanged_files = n_files - jobs.iter().map(Vec::len).sum::<usize>();
    jobs
}

/// Adds copied files to a manifest, unless another process has copied them since `before`.
fn apply(
    manifest: &mut Manifest,
    before: &Manifest,
    copied: &[(String, FileVersion)],
    mut report: Option<&mut PushReport>,
) {
    for (name, version) in copied {
        // Another process may have removed the session meanwhile.
        let session = session_of_file(name).map(Into::into).or_else(|| version.session.clone());
        if session.is_some_and(|id| manifest.removed.contains(&id)) {
            continue;
        }
        let base = before.files.get(name);
        let now = manifest.files.get(name);
        let is_ours = now.map(|file| &file.current) == base.map(|file| &file.current);
        if !is_ours {
            continue;
        }
        let (count, older) = match now {
            None => (Change::New, Vec::new()),
            Some(file) if file.current.version == version.version => {
                let is_grown = file.current.digest != version.digest;
                (if is_grown { Change::Grown } else { Change::None }, file.older.clone())
            }
            // Earlier copies may contain texts that this level leaves out.
            Some(file) if file.current.level != version.level || version.level != PrivacyLevel::Full => {
                (Change::Rewritten, Vec::new())
            }
            Some(file) => (Change::Rewritten, file.older.iter().chain([&file.current]).cloned().collect()),
        };
        if let Some(report) = report.as_deref_mut() {
            match count {
                Change::New => report.new_files += 1,
                Change::Grown => report.grown_files += 1,
                Change::Rewritten => report.rewritten_files += 1,
                Change::None => report.unchanged_files += 1,
            }
        }
        manifest.files.insert(name.clone(), ArchivedFile { current: version.clone(), older });
    }
}

enum Change {
    New,
    Grown,
    Rewritten,
    None,
}

/// Copies the files of one job into segments.
struct Copier<'a> {
    archive: &'a Archive,
    writer: SegmentWriter,
    origin: &'a Origin,
    known: &'a Manifest,
    segments: Vec<(String, Vec<crate::segment::SegmentPiece>)>,
    result: JobResult,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Copier<'_> {
    /// Copies the new bytes of a file.
    fn copy_whole(
        &mut self,
        file: &HomeFile,
        known: Option<&FileVersion>,
        number: u32,
    ) -> Result<FileVersion, ArchiveError> {
        const BUFFER: usize = 256 << 10;
        let mut source = open_regular(&file.path)?;
        let mut buffer = vec![0; BUFFER];
        let mut hash = Sha256::new();
        let mut begin = None;
        if let Some(known) = known {
            let mut left = known.size;
            while left > 0 {
                let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let n_read = source.read(&mut buffer[..wanted])?;
                if n_read == 0 {
                    break;
                }
                hash.update(&buffer[..n_read]);
                left -= n_read as u64;
            }
            if left == 0 && hex_digits(hash.clone()) == known.digest {
                begin = Some(known);
            } else {
                source.rewind()?;
                hash = Sha256::new();
            }
        }
        let version = begin.map_or(number, |known| known.version);
        let mut size = begin.map_or(0, |known| known.size);
        (self.progress)(size);
        loop {
            let n_read = source.read(&mut buffer)?;
            if n_read == 0 {
                break;
            }
            hash.update(&buffer[..n_read]);
            self.write(&file.name, version, size, PrivacyLevel::Full, &buffer[..n_read])?;
            size += n_read as u64;
            (self.progress)(n_read as u64);
        }
        Ok(FileVersion {
            version,
            level: PrivacyLevel::Full,
            size,
            digest: hex_digits(hash),
            modified: millis(file.modified),
            stamp: None,
            session: None,
            pieces: begin.map(|known| known.pieces.clone()).unwrap_or_default(),
        })
    }

    /// Copies a file without its secrets or texts.
    fn copy_reduced(
        &mut self,
        file: &HomeFile,
        known: Option<&FileVersion>,
        number: u32,
        reducer: &mut SessionReducer<'_>,
    ) -> Result<FileVersion, ArchiveError> {
        let content = threadline_store::read_regular(&file.path)?;
        (self.progress)(content.len() as u64);
        let level = reducer.level();
        let copy = reducer.reduce(&file.name, &content);
        let starts_with = |known: &&FileVersion| {
            let archived = usize::try_from(known.size).unwrap_or(usize::MAX);
            copy.get(..archived).is_some_and(|start| digest(start) == known.digest)
        };
        let begin = known.filter(starts_with);
        let version = begin.map_or(number, |known| known.version);
        let offset = begin.map_or(0, |known| known.size);
        self.write(
            &file.name,
            version,
            offset,
            level,
            &copy[usize::try_from(offset).unwrap_or(copy.len())..],
        )?;
        Ok(FileVersion {
            version,
            level,
            size: copy.len() as u64,
            digest: digest(&copy),
            modified: millis(file.modified),
            stamp: None,
            session: None,
            pieces: begin.map(|known| known.pieces.clone()).unwrap_or_default(),
        })
    }

    /// Writes bytes of a file into the current segment and, if that is full, into the next ones.
    fn write(
        &mut self,
        file: &str,
        version: u32,
        mut offset: u64,
        level: PrivacyLevel,
        mut bytes: &[u8],
    ) -> Result<(), ArchiveError> {
        self.result.copied_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.writer.room() == 0 {
                let full = std::mem::replace(&mut self.writer, SegmentWriter::new(self.origin)?);
                self.store(full)?;
            }
            let n_bytes = bytes.len().min(usize::try_from(self.writer.room()).unwrap_or(usize::MAX));
            let (now, rest) = bytes.split_at(n_bytes);
            self.writer.append(file, version, offset, level, now)?;
            offset += n_bytes as u64;
            bytes = rest;
        }
        Ok(())
    }

    fn store(&mut self, writer: SegmentWriter) -> Result<(), ArchiveError> {
        if let Some(NewSegment { digest, bytes, pieces }) = writer.finish()? {
            let size = bytes.len() as u64;
            let digest = self.archive.objects().name_of_digest(digest);
            let name = segment_object(&digest);
            if self.archive.objects().create(&name, bytes.clone())? {
                self.result.stored_bytes += size;
            } else if !self.known.segments().contains(&*digest) {
                // `gc` may be about to delete it: it deletes nothing that was written within a day.
                self.archive.objects().replace(&name, bytes.clone())?;
                self.result.reused.push((name, bytes));
            }
            self.segments.push((digest, pieces));
        }
        Ok(())
    }

    /// Stores the last segment, and adds the pieces to the versions of the files.
    fn finish(mut self) -> Result<JobResult, ArchiveError> {
        let last = std::mem::replace(&mut self.writer, SegmentWriter::new(self.origin)?);
        self.store(last)?;
        let mut places: HashMap<(String, u32), usize> = HashMap::new();
        for (i, (name, version)) in self.result.files.iter().enumerate() {
            places.insert((name.clone(), version.version), i);
        }
        for (segment, pieces) in self.segments {
            for piece in pieces {
                // A file that could not be read to its end has pieces, but no version.
                if let Some(&place) = places.get(&(piece.file, piece.version)) {
                    let (_, version) = &mut self.result.files[place];
                    version.pieces.push(FilePiece {
                        segment: segment.clone(),
                        at: piece.at,
                        length: piece.length,
                    });
                }
            }
        }
        Ok(self.result)
    }
}

/// Returns the session of a file. One that must be read is read only if it may have changed.
pub(crate) fn session_of(file: &HomeFile, known: &Manifest) -> Option<String> {
    let archived = known.files.get(&file.name).map(|known| &known.current);
    let is_same = |version: &&FileVersion| version.stamp.is_some() && version.stamp == raw_stamp(file);
    if let Some(session) = archived.filter(is_same).and_then(|version| version.session.clone()) {
        return Some(session);
    }
    // A file that cannot be read is reported when it is copied.
    read_session_of_file(file).ok().flatten().map(Into::into)
}

pub(crate) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a text that changes whenever the file does; `None` if the system does not record that.
pub(crate) fn raw_stamp(file: &HomeFile) -> Option<String> {
    let modified = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Some(format!("{} {modified} {} {} {}", file.size, file.changed?, file.id.volume, file.id.index))
}

/// Returns the stamp of a file that was read after it was listed. A file that changed a moment ago may change
/// again without getting other times, so it has none.
pub(crate) fn stamp(file: &HomeFile, now: SystemTime) -> Option<String> {
    let limit = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(SETTLING).as_nanos();
    let is_settled = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() < limit
        && u128::try_from(file.changed?).is_ok_and(|changed| changed < limit);
    raw_stamp(file).filter(|_| is_settled)
}
