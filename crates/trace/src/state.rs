//! Export progress: one small file per session and receiver, replaced atomically, under a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use threadline_entry::{Millis, Position};
use threadline_store::{
    FileId, FileMark, Fingerprint, SessionFile, open_own_file, read_file, read_text_file,
};
use threadline_usage::TokenCounts;

use crate::id::{SpanId, TraceId};
use crate::receiver_config::ReceiverConfig;
use crate::sent_replies::{ReplyFigures, SentReplies};
use crate::session_secrets::SecretLines;
use crate::turn_splitter::TurnProgress;

/// The directory with the export states of all sessions for one receiver.
#[derive(Clone, Debug)]
pub struct StateDir {
    dir: PathBuf,
}

/// The export progress of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportState {
    /// The session id.
    pub session: String,
    /// The path of the session's log.
    pub path: PathBuf,
    /// The position of the first line that has not been sent.
    mark: Option<SavedMark>,
    /// The number of turns sent.
    pub turns: usize,
    /// The number of spans accepted by the receiver.
    pub spans: u64,
    /// The last turn sent; later lines may continue it.
    last: Option<LastTurn>,
    /// The last reply sent and its token counts as sent: input, output, cache read, 5-minute and 1-hour cache
    /// writes.
    reply: Option<(String, [u64; 5])>,
    /// The web searches of that reply as sent.
    reply_searches: u64,
    /// The keys of the turns sent. A log that was edited in place is read again from its start, and these
    /// turns are skipped.
    sent: BTreeSet<String>,
    /// The offsets of the lines with secrets among those that were read; `None` if they are not known.
    pub(crate) secrets: Option<SecretLines>,
    /// The number of bytes sent of each sub-agent's log, by agent id.
    pub agents: BTreeMap<String, u64>,
    /// Sub-agents that were still running when their turn was sent.
    pub pending: Vec<PendingAgent>,
    /// Spooled files with spans that could not be delivered, oldest first.
    pub spool: Vec<SpoolFile>,
    /// The number of spans that the receiver rejected permanently.
    pub refused: u64,
    /// The last error, or the last complaint of the receiver.
    pub error: Option<String>,
    /// When the receiver last accepted something.
    pub sent_at: Option<Millis>,
}

/// A [`FileMark`] in serialisable form: a position in a log, the file's identity, and a fingerprint of the
/// bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedMark {
    line: u64,
    byte: u64,
    volume: u64,
    index: u64,
    born: Option<u64>,
    head: u64,
    tail: u64,
}

/// The last turn sent, in serialisable form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastTurn {
    trace: String,
    start: Millis,
    last_at: Millis,
    prompt: Option<(u64, u64)>,
    #[serde(default)]
    key: String,
}

/// A sub-agent that was still running when its turn was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingAgent {
    /// The sub-agent's id.
    pub agent: String,
    /// The trace of its turn.
    trace: String,
    /// The parent of its spans.
    parent: String,
    /// The number of its turn.
    pub number: usize,
    /// The session id that its turn was sent under.
    pub session: String,
}

impl PendingAgent {
    pub(crate) fn new(agent: &str, trace: TraceId, parent: SpanId, number: usize, session: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            trace: trace.to_string(),
            parent: parent.to_string(),
            number,
            session: session.to_owned(),
        }
    }

    pub(crate) fn trace(&self) -> Option<TraceId> {
        TraceId::parse(&self.trace)
    }

    pub(crate) fn parent(&self) -> Option<SpanId> {
        SpanId::parse(&self.parent)
    }
}

/// A file in the spool with undelivered spans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolFile {
    /// The file's name in the spool directory.
    pub file: String,
    /// The number of spans in it.
    pub spans: u64,
}

/// An exclusive lock on one session's state. Released when dropped or when the process exits.
#[derive(Debug)]
pub struct StateLock(
    #[expect(dead_code, reason = "the lock is held until the file is closed")] std::fs::File,
);

/// The number of lock files. Sessions are hashed onto them, so that no file is needed per session.
const LOCK_FILES: u8 = 128;

impl StateDir {
    /// Returns the state directory for `target` below `root`. Touches no files.
    pub fn open(root: &Path, target: &ReceiverConfig) -> Self {
        let account = target.account.as_deref().unwrap_or_default();
        Self { dir: root.join(short_hash(&[&target.url, account])) }
    }

    /// Returns the states stored in this directory.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory with requests that could not be delivered.
    pub fn spool_dir(&self) -> PathBuf {
        self.dir.join("spool")
    }

    /// Returns the state directories of all receivers below `root`, sorted by path.
    pub fn all(root: &Path) -> Vec<Self> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.join("sessions").is_dir()).collect();
        dirs.sort();
        dirs.into_iter().map(Self::at).collect()
    }

    /// Creates the directories on first use and stores the receiver's URL in them.
    pub fn prepare(&self, target: &ReceiverConfig) -> io::Result<()> {
        if self.dir.join("receiver").exists() {
            return Ok(());
        }
        for folder in ["sessions", "locks", "spool"] {
            create_private_dir(&self.dir.join(folder))?;
        }
        write_atomically(&self.dir.join("receiver"), target.url.as_bytes())
    }

    /// Returns the URL of the receiver that these states belong to.
    pub fn receiver(&self) -> Option<String> {
        read_text_file(&self.dir.join("receiver")).ok()
    }

    /// Returns the name under which a session's state is stored: its id, or a hash of the path for logs
    /// outside a home and for unusual ids.
    pub fn key(file: &SessionFile) -> String {
        let plain = file.id.len() <= 64
            && file.id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if file.home.is_some() && plain && !file.id.is_empty() {
            return file.id.to_string();
        }
        let path = fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
        short_hash(&[&path.to_string_lossy()])
    }

    /// Locks a session's state, waiting until `until` at most, or indefinitely if `until` is `None`. Returns
    /// `None` if another process still has the lock.
    pub fn lock(&self, key: &str, until: Option<Instant>) -> io::Result<Option<StateLock>> {
        let number = Sha256::digest(key)[0] % LOCK_FILES;
        let path = self.dir.join("locks").join(format!("{number:02x}"));
        let file = open_own_file(&path)?;
        let Some(until) = until else {
            file.lock()?;
            return Ok(Some(StateLock(file)));
        };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(StateLock(file))),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn file(&self, key: &str) -> PathBuf {
        self.dir.join("sessions").join(format!("{key}.json"))
    }

    /// Reads the state of a session. Returns a new state if the file is missing or malformed; sending
    /// everything again is harmless because ids are stable.
    pub fn load(&self, key: &str) -> ExportState {
        let read = read_file(&self.file(key)).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Stores a state atomically: a reader sees the old one or the new one.
    pub fn save(&self, key: &str, state: &ExportState) -> io::Result<()> {
        write_atomically(&self.file(key), &serde_json::to_vec(state)?)
    }

    /// Returns all readable states, most recently sent first.
    pub fn sessions(&self) -> Vec<ExportState> {
        let entries = fs::read_dir(self.dir.join("sessions")).into_iter().flatten().flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "json"));
        let mut states: Vec<ExportState> =
            files.filter_map(|path| serde_json::from_slice(&read_file(&path).ok()?).ok()).collect();
        states.sort_by(|a, b| (b.sent_at, &a.session).cmp(&(a.sent_at, &b.session)));
        states
    }
}

impl ExportState {
    /// Returns the position to continue reading at; `None` means the start.
    pub fn mark(&self) -> Option<FileMark> {
        let place = self.mark?;
        let born = place.born.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
        Some(FileMark {
            at: Position { line_no: place.line, byte_offset: place.byte },
            file: Some(FileId { volume: place.volume, index: place.index, born }),
            fingerprint: Fingerprint { length: place.byte, head: place.head, tail: place.tail },
        })
    }

    /// Stores the position to continue reading at.
    pub fn set_mark(&mut self, mark: FileMark) {
        let file = mark.file.unwrap_or(FileId { volume: 0, index: 0, born: None });
        let born = file.born.and_then(|born| born.duration_since(SystemTime::UNIX_EPOCH).ok());
        self.mark = Some(SavedMark {
            line: mark.at.line_no,
            byte: mark.at.byte_offset,
            volume: file.volume,
            index: file.index,
            born: born.and_then(|since| u64::try_from(since.as_nanos()).ok()),
            head: mark.fingerprint.head,
            tail: mark.fingerprint.tail,
        });
    }

    /// Returns the last turn and the position of its prompt.
    pub fn last(&self) -> Option<(TurnProgress, Option<Position>)> {
        let last = self.last.as_ref()?;
        let trace = TraceId::parse(&last.trace)?;
        let prompt = last.prompt.map(|(line_no, byte_offset)| Position { line_no, byte_offset });
        Some((TurnProgress { trace, start: last.start, last_at: last.last_at }, prompt))
    }

    /// Returns the key of the last turn.
    pub(crate) fn last_key(&self) -> Option<&str> {
        self.last.as_ref().map(|last| &*last.key)
    }

    /// Returns the keys of the turns sent.
    pub(crate) fn sent(&self) -> &BTreeSet<String> {
        &self.sent
    }

    /// Stores the last turn and adds its key to the turns sent.
    pub(crate) fn set_last(&mut self, continued: TurnProgress, prompt: Option<Position>, key: String) {
        self.sent.insert(key.clone());
        self.last = Some(LastTurn {
            trace: continued.trace.to_string(),
            start: continued.start,
            last_at: continued.last_at,
            prompt: prompt.map(|at| (at.line_no, at.byte_offset)),
            key,
        });
    }

    /// Returns the last reply sent, as the start of a [`SentReplies`] for the next run.
    pub fn sent_replies(&self) -> SentReplies {
        let (Some((id, tokens)), Some((continued, _))) = (&self.reply, self.last()) else {
            return SentReplies::default();
        };
        let [input, output, cache_read, cache_write_5m, cache_write_1h] = tokens;
        let (input, output, cache_read) = (*input, *output, *cache_read);
        let (cache_write_5m, cache_write_1h) = (*cache_write_5m, *cache_write_1h);
        let tokens = TokenCounts { input, output, cache_read, cache_write_5m, cache_write_1h };
        let figures = ReplyFigures { tokens, web_searches: self.reply_searches };
        SentReplies::from_last(id, figures, continued.trace)
    }

    /// Stores the last reply sent.
    pub fn set_sent_replies(&mut self, sent: &SentReplies) {
        let of = |tokens: TokenCounts| {
            [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write_5m, tokens.cache_write_1h]
        };
        self.reply_searches = sent.last().map_or(0, |(_, figures)| figures.web_searches);
        self.reply = sent.last().map(|(id, figures)| (id.to_owned(), of(figures.tokens)));
    }

    /// Forgets all progress, so that the whole log is sent again.
    pub fn forget(&mut self) {
        self.sent.clear();
        self.reply = None;
        self.refused = 0;
        self.start_over();
    }

    /// Forgets the read position, because the log was rewritten. The keys of sent turns are kept, and
    /// sub-agents that are pending stay so.
    pub fn start_over(&mut self) {
        self.mark = None;
        self.last = None;
        self.secrets = None;
        self.turns = 0;
        if self.sent.is_empty() {
            self.pending.clear();
        }
        self.agents.retain(|id, _| self.pending.iter().any(|pending| pending.agent == *id));
    }
}

/// Writes a file atomically: a reader, or a run after a crash, sees the old bytes or the new ones.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Creates a directory that only its owner can access.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Returns 16 hexadecimal digits of a hash over the parts.
pub(crate) fn short_hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    const_hex::encode(&hash.finalize()[..8])
}
