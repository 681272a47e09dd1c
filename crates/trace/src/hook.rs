//! The Claude Code hook: sends new turns without disturbing the running session.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs_err as fs;
use serde::Deserialize;
use threadline_entry::{Json, Millis, key, walk};
use threadline_store::{AgentFile, FolderAgents, SessionFile, SessionId, open_regular, read_text_file};

use crate::export::{ExportError, ExportSummary, Exporter};
use crate::spool;
use crate::state::{StateDir, write_atomically};

/// The fields of Claude Code's hook input that are used here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HookInput {
    /// The session id.
    pub session_id: String,
    /// The path of the session's log.
    pub transcript_path: PathBuf,
    /// The hook event: `Stop`, `SessionEnd` …
    #[serde(default)]
    pub hook_event_name: String,
}

impl HookInput {
    /// Parses the standard input of a hook. Returns `None` if it is malformed or lacks the session or the
    /// path.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let input: Self = serde_json::from_slice(bytes).ok()?;
        (!input.session_id.is_empty() && !input.transcript_path.as_os_str().is_empty()).then_some(input)
    }
}

/// The result of one hook run for one session.
#[derive(Debug)]
pub struct HookExport {
    /// The session id; the state key for sessions of which only the spool was sent.
    pub session: String,
    /// The result of the export.
    pub result: Result<ExportSummary, ExportError>,
}

/// The result of a hook run.
#[derive(Debug)]
pub enum HookRun {
    /// Nothing was sent: a recent delivery failed, and the receiver is not contacted again before this time.
    Backoff(Millis),
    /// These sessions were exported, in order.
    Done(Vec<HookExport>),
}

/// How long the receiver is not contacted after the first failure. Doubles with each further failure.
const INITIAL_BACKOFF: Millis = 2_000;
/// The upper limit of the pause between attempts.
const MAX_BACKOFF: Millis = 10 * 60_000;
/// How long a `Stop` hook polls for the last lines of a turn, which may be written slightly later.
const LATE_LINES_TIMEOUT: Duration = Duration::from_millis(300);

/// Exports everything new, in this order: the previous session if the id changed in mid-conversation, this
/// session, then spans that other sessions left in the spool.
///
/// The spool of other sessions is skipped if a delivery failed. Export errors are returned per session; an
/// `Err` means that the backoff file could not be written.
pub fn run_hook(input: &HookInput, exporter: &Exporter<'_>, states: &StateDir) -> io::Result<HookRun> {
    let backoff = Backoff::load(states);
    if let Some(until) = backoff.until(exporter.now) {
        return Ok(HookRun::Backoff(until));
    }
    let mut exports = Vec::new();
    if let Some(previous) = previous_session(input) {
        let agents = agents_of(&previous, states);
        exports.push(HookExport {
            session: previous.id.to_string(),
            // The previous session is over.
            result: exporter.session(&previous, agents, true),
        });
    }
    let file = SessionFile::at(&input.transcript_path);
    let file = SessionFile { id: SessionId::new(&input.session_id).unwrap_or(file.id), ..file };
    let is_over = input.hook_event_name == "SessionEnd";
    let mut result = exporter.session(&file, agents_of(&file, states), is_over);
    let is_open =
        |result: &Result<ExportSummary, ExportError>| result.as_ref().is_ok_and(|exported| exported.is_open);
    if input.hook_event_name == "Stop" {
        let mut waited = Duration::ZERO;
        while is_open(&result) && waited < LATE_LINES_TIMEOUT {
            let pause = Duration::from_millis(30);
            std::thread::sleep(pause);
            waited += pause;
            result = exporter.session(&file, agents_of(&file, states), is_over);
        }
    }
    exports.push(HookExport { session: file.id.to_string(), result });
    let failed = exports.iter().find_map(|exports| match &exports.result {
        Err(ExportError::Undelivered(undelivered)) => Some(undelivered.retry_after),
        _ => None,
    });
    match failed {
        Some(retry_after) => backoff.fail(states, exporter.now, retry_after)?,
        None => {
            exports.extend(drain_others(&file, exporter, states));
            backoff.clear(states);
        }
    }
    Ok(HookRun::Done(exports))
}

/// Delivers spooled spans of other sessions. Stops at the first failure.
fn drain_others(file: &SessionFile, exporter: &Exporter<'_>, states: &StateDir) -> Vec<HookExport> {
    let own = StateDir::key(file);
    let mut exports = Vec::new();
    for key in spool::keys(states).into_iter().filter(|key| *key != own) {
        let mut exported = ExportSummary::default();
        let mut drain = || -> Result<(), ExportError> {
            // Does not wait: a session locked by another process is being sent already.
            let Some(_lock) = states.lock(&key, Some(std::time::Instant::now()))? else { return Ok(()) };
            let mut state = states.load(&key);
            if state.spool.is_empty() {
                return spool::remove_unrecorded(states, &key).map_err(ExportError::from);
            }
            spool::drain(states, &key, &mut state, exporter, &mut exported)
        };
        let result = drain().map(|()| exported);
        let failed = result.is_err();
        exports.push(HookExport { session: key, result });
        if failed {
            break;
        }
    }
    exports
}

/// Returns the session that this one continues, if the first line of the log carries another session id.
///
/// Claude Code changes the id when plan mode ends, and runs no hook for the old id.
fn previous_session(input: &HookInput) -> Option<SessionFile> {
    // The id is near the start of the line.
    let mut head = Vec::new();
    open_regular(&input.transcript_path).ok()?.take(256 << 10).read_to_end(&mut head).ok()?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let id = walk::pick(line, [key::SESSION_ID]).and_then(|[id]| id.and_then(Json::as_str))?;
    let id = SessionId::new(&id).filter(|id| *id != *input.session_id)?;
    let path = id.log_in(input.transcript_path.parent()?);
    path.exists().then(|| SessionFile::at(path))
}

/// Returns the sub-agents of a session. Sub-agents stored next to the log are included only if they were
/// modified since one minute before the last successful delivery: modification times can be imprecise.
fn agents_of(file: &SessionFile, states: &StateDir) -> Vec<AgentFile> {
    let sent_at = states.load(&StateDir::key(file)).sent_at;
    let minute_before = |at: Millis| {
        let at = u64::try_from(at).unwrap_or(0).saturating_sub(60_000);
        SystemTime::UNIX_EPOCH + Duration::from_millis(at)
    };
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let agents = FolderAgents::modified_since(folder, sent_at.map(minute_before));
    agents.of_session(&file.path, &file.id).found
}

/// The number of consecutive delivery failures, and the time before which no further attempt is made.
#[derive(Default)]
struct Backoff {
    failures: u32,
    until: Millis,
}

impl Backoff {
    fn path(states: &StateDir) -> PathBuf {
        states.dir().join("backoff")
    }

    fn load(states: &StateDir) -> Self {
        let text = read_text_file(&Self::path(states)).unwrap_or_default();
        let mut numbers = text.split_whitespace();
        let failures = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let until = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Self { failures, until }
    }

    /// Returns the end of the current pause, if `now` is within it. An end further away than the longest
    /// pause is ignored: the clock was wrong when it was written.
    fn until(&self, now: Millis) -> Option<Millis> {
        (self.until > now && self.until - now <= MAX_BACKOFF).then_some(self.until)
    }

    fn fail(&self, states: &StateDir, now: Millis, retry_after: Option<Duration>) -> io::Result<()> {
        let failures = self.failures.saturating_add(1);
        let requested = retry_after.and_then(|pause| Millis::try_from(pause.as_millis()).ok());
        let own = INITIAL_BACKOFF.saturating_mul(1 << (failures - 1).min(16));
        let pause = requested.unwrap_or(own).min(MAX_BACKOFF);
        write_atomically(&Self::path(states), format!("{failures} {}", now + pause).as_bytes())
    }

    fn clear(&self, states: &StateDir) {
        if self.failures > 0 {
            // If the file cannot be removed, the next failure only waits longer.
            let _ = fs::remove_file(Self::path(states));
        }
    }
}
