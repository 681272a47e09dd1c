//! Compares folders before and after calls, and keeps what changed.

mod changes;
mod named;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use threadline_entry::Millis;
use threadline_secret::Rules;
use threadline_store::{SessionId, is_plain_name, open_own_file, read_file, replace_own_file};

use super::call_log::{self, LoggedScan};
use super::content_store::{ContentHash, ContentStore, create_private_folder};
use super::file_index::FileIndex;
use super::git_index::git_folder;
use super::scan::ScanLimits;
use changes::{FolderScan, ScannedFolder};

/// The time after which a comparison is given up.
pub const SCAN_TIME: Duration = Duration::from_millis(1500);

/// The number of files in a folder above which it is not watched.
const MAX_FILES: usize = 200_000;

/// How long a comparison waits for another one of the same session.
const LOCK_TIME: Duration = Duration::from_millis(200);
/// The same for one that nothing waits for.
const LATE_LOCK_TIME: Duration = Duration::from_secs(10);

/// How long a folder that took too long is left alone.
const PAUSE: Duration = Duration::from_secs(600);

/// The size of an index, of some 1,000 files, from which comparing and preparing the rules for secrets take longer
/// than starting a process.
const LARGE_INDEX: u64 = 96 << 10;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedEvent {
    /// A call is about to run.
    Before,
    /// A call has ended, or goes on in the background.
    After,
    /// A sub-agent has ended.
    AgentEnd,
}

/// A call of a tool, at one of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The session.
    pub session_id: String,
    /// What happened.
    pub event: RecordedEvent,
    /// The id of the call; empty if there is none.
    pub tool_use_id: String,
    /// The sub-agent that makes it.
    pub agent_id: Option<String>,
    /// The name of the tool.
    pub tool: String,
    /// The working directory.
    pub cwd: PathBuf,
    /// The folder that the session was started in.
    pub project: Option<PathBuf>,
    /// The command.
    pub command: Option<String>,
    /// The log of the session, for the files that it reads and edits.
    pub log: Option<PathBuf>,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordOutcome {
    /// The number of changed files.
    pub changes: usize,
    /// Whether a folder could not be compared, because it took too long.
    pub is_cut: bool,
    /// Whether there are more copies than the limit: [`FileRecorder::clean_up`] is due.
    pub is_over_limit: bool,
}

/// Keeps the texts of files around the calls of sessions.
pub struct FileRecorder {
    folder: PathBuf,
    home: Option<PathBuf>,
    pub(super) limit: u64,
    contents: ContentStore,
    make_rules: Box<dyn Fn() -> Rules + Send + Sync>,
    rules: OnceLock<Rules>,
}

impl std::fmt::Debug for FileRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileRecorder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A call that has not ended.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OpenCall {
    roots: Vec<OpenRoot>,
}

/// A folder of a call that has not ended.
#[derive(Debug, Serialize, Deserialize)]
struct OpenRoot {
    root: PathBuf,
    /// Whether its state before the call is known.
    is_known: bool,
}

/// A call that has ended, whose folders are compared later.
#[derive(Debug, Serialize, Deserialize)]
struct PostponedCall {
    call: RecordedCall,
    ended_at: i64,
}

/// The paths of the files of a session.
struct SessionPaths {
    id: SessionId,
    /// Its comparisons.
    log: PathBuf,
    lock: PathBuf,
    /// Calls that have not ended, and postponed ones.
    calls: PathBuf,
}

/// Returns the folder with the indexes of a root.
fn index_folder(folder: &Path, root: &Path) -> PathBuf {
    let name = ContentHash::of(root.as_os_str().as_encoded_bytes()).to_string();
    folder.join("indexes").join(&name[..16])
}

/// Returns the path of the index that a session has of a root.
pub(super) fn index_path(folder: &Path, root: &Path, session: &SessionId) -> PathBuf {
    index_folder(folder, root).join(&**session)
}

impl FileRecorder {
    pub(super) fn new(
        folder: PathBuf,
        home: Option<PathBuf>,
        limit: u64,
        make_rules: Box<dyn Fn() -> Rules + Send + Sync>,
    ) -> Self {
        let contents = ContentStore::at(folder.join("objects"));
        Self { folder, home, limit, contents, make_rules, rules: OnceLock::new() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn contents(&self) -> &ContentStore {
        &self.contents
    }

    fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| (self.make_rules)())
    }

    /// Compares the folders of a call with their last state, and records what changed. Waits at most some
    /// hundred milliseconds for others, and takes at most [`SCAN_TIME`].
    ///
    /// # Errors
    ///
    /// If the state folder cannot be written, or the id of the session is none.
    pub fn record(&self, call: &RecordedCall) -> io::Result<RecordOutcome> {
        let now = Timestamp::now();
        let paths = self.session_paths(&call.session_id)?;
        let Some(_lock) = lock(&paths.lock, LOCK_TIME)? else {
            return self.record_cut(&paths, call, now);
        };
        let mut outcome = self.record_postponed(&paths)?;
        let own = self.record_locked(&paths, call, now, None)?;
        outcome.changes += own.changes;
        outcome.is_cut |= own.is_cut;
        outcome.is_over_limit = self.add_size()?;
        Ok(outcome)
    }

    /// Returns whether a call that has ended should be recorded by [`postpone`](Self::postpone), so that the
    /// session need not wait: whether a folder of it has more than some 1,000 files.
    pub fn takes_long(&self, call: &RecordedCall) -> bool {
        // Without times of change, what was changed by the call could not be told from what came later.
        let Some(id) = SessionId::new(&call.session_id).filter(|_| cfg!(unix)) else { return false };
        self.roots(call).iter().any(|root| {
            index_path(&self.folder, root, &id).metadata().is_ok_and(|file| file.len() >= LARGE_INDEX)
        })
    }

    /// Notes that a call has ended, to be recorded by [`finish_postponed`](Self::finish_postponed), or before
    /// the next call.
    ///
    /// # Errors
    ///
    /// If the state folder cannot be written.
    pub fn postpone(&self, call: &RecordedCall) -> io::Result<()> {
        let paths = self.session_paths(&call.session_id)?;
        let ended_at = nanoseconds(Timestamp::now());
        let path = paths.calls.join(format!("{ended_at}.ended"));
        replace_own_file(&path, &serde_json::to_vec(&PostponedCall { call: call.clone(), ended_at })?)
    }

    /// Records the calls of a session that were postponed.
    ///
    /// # Errors
    ///
    /// The same as of [`record`](Self::record).
    pub fn finish_postponed(&self, session_id: &str) -> io::Result<RecordOutcome> {
        let paths = self.session_paths(session_id)?;
        let Some(_lock) = lock(&paths.lock, LATE_LOCK_TIME)? else { return Ok(RecordOutcome::default()) };
        let mut outcome = self.record_postponed(&paths)?;
        outcome.is_over_limit = self.add_size()?;
        Ok(outcome)
    }

    fn record_postponed(&self, paths: &SessionPaths) -> io::Result<RecordOutcome> {
        let mut sum = RecordOutcome::default();
        let files = std::fs::read_dir(&paths.calls).into_iter().flatten().flatten().map(|file| file.path());
        let mut files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|ext| ext == "ended")).collect();
        files.sort();
        for path in files {
            let postponed = serde_json::from_slice::<PostponedCall>(&read_file(&path).unwrap_or_default());
            std::fs::remove_file(&path)?;
            let Ok(PostponedCall { call, ended_at }) = postponed else { continue };
            let at = Timestamp::from_nanosecond(ended_at.into()).unwrap_or_default();
            let outcome = self.record_locked(paths, &call, at, Some(ended_at))?;
            sum.changes += outcome.changes;
            sum.is_cut |= outcome.is_cut;
        }
        Ok(sum)
    }

    /// Records a call while the session is locked. `until` is the time when a postponed call ended: later
    /// changes are left for the next comparison.
    fn record_locked(
        &self,
        paths: &SessionPaths,
        call: &RecordedCall,
        at: Timestamp,
        until: Option<i64>,
    ) -> io::Result<RecordOutcome> {
        let open_path = paths.open_call(&call.tool_use_id);
        let opened = open_path.as_ref().filter(|_| call.event == RecordedEvent::After);
        let opened = opened.and_then(|path| serde_json::from_slice(&read_file(path).ok()?).ok());
        let opened: OpenCall = opened.unwrap_or_default();
        let mut roots: Vec<PathBuf> = opened.roots.iter().map(|open| open.root.clone()).collect();
        if roots.is_empty() {
            roots = self.roots(call);
        }
        let mut outcome = RecordOutcome::default();
        let mut open = OpenCall::default();
        for root in roots {
            let was_known = opened.roots.iter().any(|open| open.root == root && open.is_known);
            let scanned = self.scan(paths, call, &root, until)?;
            let is_known = scanned.is_some();
            outcome.is_cut |= !is_known;
            let FolderScan { changes, has_previous, is_complete, .. } = scanned.unwrap_or_default();
            outcome.changes += changes.len();
            let is_after = call.event == RecordedEvent::After;
            let is_complete = is_known && has_previous && is_complete && (was_known || !is_after);
            let line = logged_scan(call, &root, at.as_millisecond(), is_complete);
            call_log::append(&paths.log, &LoggedScan { changes, ..line })?;
            open.roots.push(OpenRoot { root, is_known });
        }
        match (open_path, call.event) {
            (Some(path), RecordedEvent::Before) => {
                replace_own_file(&path, &serde_json::to_vec(&open)?)?;
            }
            (Some(path), RecordedEvent::After) => {
                // A call that was denied has no end; its file is removed with the session.
                let _ = std::fs::remove_file(path);
            }
            _ => {}
        }
        Ok(outcome)
    }

    /// Records that a call was not compared.
    fn record_cut(
        &self,
        paths: &SessionPaths,
        call: &RecordedCall,
        now: Timestamp,
    ) -> io::Result<RecordOutcome> {
        for root in self.roots(call) {
            call_log::append(&paths.log, &logged_scan(call, &root, now.as_millisecond(), false))?;
        }
        Ok(RecordOutcome { is_cut: true, ..RecordOutcome::default() })
    }

    /// Compares a folder, and saves its state. `None` if that took too long, or took too long recently.
    fn scan(
        &self,
        paths: &SessionPaths,
        call: &RecordedCall,
        root: &Path,
        until: Option<i64>,
    ) -> io::Result<Option<FolderScan>> {
        let folder = index_folder(&self.folder, root);
        create_private_folder(&folder)?;
        let mark = folder.join(".too-large");
        if age(&mark).is_some_and(|age| age < PAUSE) {
            return Ok(None);
        }
        let path = folder.join(&*paths.id);
        let own = read_file(&path).ok();
        let has_previous = own.as_ref().is_some_and(|bytes| FileIndex::parse(bytes).is_some());
        if !has_previous {
            self.remove_old_indexes();
        }
        let bytes = own.filter(|_| has_previous).or_else(|| newest_index(&folder)).unwrap_or_default();
        let previous = FileIndex::parse(&bytes).unwrap_or_default();
        let limits = ScanLimits { until: Instant::now() + SCAN_TIME, files: MAX_FILES };
        let scanned =
            ScannedFolder { recorder: self, root, call, limits, until }.scan(previous, has_previous);
        match scanned {
            None => {
                replace_own_file(&mark, b"")?;
                Ok(None)
            }
            Some(mut scanned) => {
                if let Some(index) = scanned.index.take() {
                    replace_own_file(&path, &index)?;
                }
                Ok(Some(scanned))
            }
        }
    }

    /// Returns the folders to compare: the repositories of the working directory and of the project, or these
    /// folders themselves.
    fn roots(&self, call: &RecordedCall) -> Vec<PathBuf> {
        let mut roots: Vec<PathBuf> = Vec::new();
        for folder in call.project.iter().chain([&call.cwd]).filter(|folder| folder.is_absolute()) {
            let is_repository = |folder: &&Path| git_folder(folder).is_some();
            let root = folder.ancestors().find(is_repository).unwrap_or(folder);
            // All files of a person, or of the machine.
            let is_too_wide = root.parent().is_none() || self.home.as_deref() == Some(root);
            if !is_too_wide && !roots.iter().any(|known| root.starts_with(known)) {
                roots.push(root.to_owned());
            }
        }
        roots
    }

    fn session_paths(&self, id: &str) -> io::Result<SessionPaths> {
        let id = SessionId::new(id).ok_or_else(|| io::Error::other("not the id of a session"))?;
        let folder = self.folder.join("sessions");
        let calls = folder.join(format!("{id}.calls"));
        create_private_folder(&calls)?;
        let (log, lock) = (call_log::path(&self.folder, &id), folder.join(format!("{id}.lock")));
        Ok(SessionPaths { id, log, lock, calls })
    }

    /// Adds the size of new contents to the sum of all. Returns whether it is over the limit. The sum is an
    /// estimate, which a clean-up corrects.
    fn add_size(&self) -> io::Result<bool> {
        let added = self.contents.take_added();
        if added == 0 {
            return Ok(false);
        }
        let path = self.size_file();
        let text = read_file(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let size = text.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0).saturating_add(added);
        replace_own_file(&path, size.to_string().as_bytes())?;
        Ok(size > self.limit)
    }

    /// The file with the sum of the sizes of all contents.
    pub(super) fn size_file(&self) -> PathBuf {
        self.folder.join("size")
    }
}

impl SessionPaths {
    /// The file of a call that has not ended.
    fn open_call(&self, id: &str) -> Option<PathBuf> {
        is_plain_name(id).then(|| self.calls.join(format!("{id}.begun")))
    }
}

fn logged_scan(call: &RecordedCall, root: &Path, at: Millis, is_complete: bool) -> LoggedScan {
    LoggedScan {
        at,
        event: call.event,
        call: call.tool_use_id.clone(),
        agent: call.agent_id.clone(),
        tool: call.tool.clone(),
        cwd: call.cwd.to_string_lossy().into_owned(),
        root: root.to_string_lossy().into_owned(),
        is_complete,
        changes: Vec::new(),
    }
}

fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

/// Returns how long ago a file was written; `None` if there is none.
fn age(path: &Path) -> Option<Duration> {
    let now: SystemTime = Timestamp::now().into();
    now.duration_since(path.metadata().ok()?.modified().ok()?).ok()
}

/// Reads the index of the session that was last in a folder.
fn newest_index(folder: &Path) -> Option<Vec<u8>> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let files = files.filter(|file| !file.file_name().as_encoded_bytes().starts_with(b"."));
    let newest = files.max_by_key(|file| file.metadata().and_then(|file| file.modified()).ok())?;
    read_file(&newest.path()).ok()
}

/// Waits for the lock of a session. `None` if another process has it all the time.
fn lock(path: &Path, time: Duration) -> io::Result<Option<File>> {
    let (file, until) = (open_own_file(path)?, Instant::now() + time);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
