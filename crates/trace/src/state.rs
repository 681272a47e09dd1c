//! What was sent of each session: one small file a session and receiver, replaced whole, under a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use threadline_entry::{Millis, Position};
use threadline_store::{FileId, Fingerprint, Mark, SessionFile};
use threadline_usage::Tokens;

use crate::cut::Continued;
use crate::id::{SpanId, TraceId};
use crate::target::Target;
use crate::told::Told;

/// The states of all sessions towards one receiver.
#[derive(Clone, Debug)]
pub struct States {
    dir: PathBuf,
}

/// What was sent of a session, and what waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The session.
    pub session: String,
    /// Its log.
    pub path: PathBuf,
    /// Where the first line begins that was not sent.
    mark: Option<Place>,
    /// How many turns were sent.
    pub turns: usize,
    /// How many spans.
    pub spans: u64,
    /// The last turn that was sent, which may be continued.
    last: Option<Last>,
    /// The last reply that was sent, and what it used as far as was known: input, output, cache read and writes.
    reply: Option<(String, [u64; 5])>,
    /// The turns that were sent, by their keys: a log that is edited in place is read again from its start.
    sent: BTreeSet<String>,
    /// How much of each sub-agent's log was sent.
    pub agents: BTreeMap<String, u64>,
    /// Sub-agents that were still at work when their turn was sent.
    pub pending: Vec<Pending>,
    /// Requests that could not be delivered, the oldest first.
    pub spool: Vec<Spooled>,
    /// Spans that the receiver refused for good.
    pub refused: u64,
    /// What went wrong last, if it did.
    pub error: Option<String>,
    /// When something was last accepted.
    pub sent_at: Option<Millis>,
}

/// A place in a log, and what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    line: u64,
    byte: u64,
    volume: u64,
    index: u64,
    born: Option<u64>,
    head: u64,
    tail: u64,
}

/// The last turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    trace: String,
    start: Millis,
    last_at: Millis,
    prompt: Option<(u64, u64)>,
    #[serde(default)]
    key: String,
}

/// A sub-agent that was still at work when its turn was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The sub-agent.
    pub agent: String,
    /// The trace of its turn.
    trace: String,
    /// The span it belongs below.
    parent: String,
    /// The number of its turn.
    pub number: usize,
    /// The session it was told under.
    pub session: String,
}

impl Pending {
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

/// Spans that wait in a file of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    /// The file's name in the spool.
    pub file: String,
    /// How many spans it holds.
    pub spans: u64,
}

/// A lock on one session's state. It ends when dropped, or with the process.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] std::fs::File);

/// Sessions share this many locks, so that no file need be made for each.
const LOCKS: u8 = 128;

impl States {
    /// The states towards `target`, below the folder `root`.
    pub fn open(root: &Path, target: &Target) -> Self {
        let account = target.account.as_deref().unwrap_or_default();
        Self { dir: root.join(short_hash(&[&target.url, account])) }
    }

    /// The states that are kept in this folder.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where requests wait that could not be delivered.
    pub fn spool_dir(&self) -> PathBuf {
        self.dir.join("spool")
    }

    /// The folders of all receivers below `root`.
    pub fn all(root: &Path) -> Vec<Self> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.join("sessions").is_dir()).collect();
        dirs.sort();
        dirs.into_iter().map(Self::at).collect()
    }

    /// Makes the folders, once, and notes which receiver they are for.
    pub fn prepare(&self, target: &Target) -> io::Result<()> {
        if self.dir.join("receiver").exists() {
            return Ok(());
        }
        for folder in ["sessions", "locks", "spool"] {
            create_private_dir(&self.dir.join(folder))?;
        }
        write_whole(&self.dir.join("receiver"), target.url.as_bytes())
    }

    /// The address of the receiver that these states are for.
    pub fn receiver(&self) -> Option<String> {
        fs::read_to_string(self.dir.join("receiver")).ok()
    }

    /// What a session's state is kept under.
    pub fn key(file: &SessionFile) -> String {
        let plain = file.id.len() <= 64
            && file.id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if file.home.is_some() && plain && !file.id.is_empty() {
            return file.id.to_string();
        }
        let path = fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
        short_hash(&[&path.to_string_lossy()])
    }

    /// Waits until nobody else works on this session, at most until `until`; `None` if somebody still does.
    pub fn lock(&self, key: &str, until: Option<Instant>) -> io::Result<Option<Lock>> {
        let number = Sha256::digest(key)[0] % LOCKS;
        let path = self.dir.join("locks").join(format!("{number:02x}"));
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?.into_file();
        let Some(until) = until else {
            file.lock()?;
            return Ok(Some(Lock(file)));
        };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lock(file))),
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

    /// The state of a session; a new one if it is lost or makes no sense, which the ids make harmless.
    pub fn load(&self, key: &str) -> State {
        let read = fs::read(self.file(key)).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Keeps a state. A reader sees the old one or the new one.
    pub fn save(&self, key: &str, state: &State) -> io::Result<()> {
        write_whole(&self.file(key), &serde_json::to_vec(state)?)
    }

    /// Every state that there is.
    pub fn sessions(&self) -> Vec<State> {
        let entries = fs::read_dir(self.dir.join("sessions")).into_iter().flatten().flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "json"));
        let mut states: Vec<State> =
            files.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect();
        states.sort_by(|a, b| (b.sent_at, &a.session).cmp(&(a.sent_at, &b.session)));
        states
    }
}

impl State {
    /// Where to go on reading; `None` for the start.
    pub fn mark(&self) -> Option<Mark> {
        let place = self.mark?;
        let born = place.born.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
        Some(Mark {
            at: Position { line_no: place.line, byte_offset: place.byte },
            file: Some(FileId { volume: place.volume, index: place.index, born }),
            before: Fingerprint { length: place.byte, head: place.head, tail: place.tail },
        })
    }

    /// Notes where to go on reading.
    pub fn set_mark(&mut self, mark: Mark) {
        let file = mark.file.unwrap_or(FileId { volume: 0, index: 0, born: None });
        let born = file.born.and_then(|born| born.duration_since(SystemTime::UNIX_EPOCH).ok());
        self.mark = Some(Place {
            line: mark.at.line_no,
            byte: mark.at.byte_offset,
            volume: file.volume,
            index: file.index,
            born: born.and_then(|since| u64::try_from(since.as_nanos()).ok()),
            head: mark.before.head,
            tail: mark.before.tail,
        });
    }

    /// The last turn and where its prompt stands.
    pub fn last(&self) -> Option<(Continued, Option<Position>)> {
        let last = self.last.as_ref()?;
        let trace = TraceId::parse(&last.trace)?;
        let prompt = last.prompt.map(|(line_no, byte_offset)| Position { line_no, byte_offset });
        Some((Continued { trace, start: last.start, last_at: last.last_at }, prompt))
    }

    /// The key of the last turn.
    pub(crate) fn last_key(&self) -> Option<&str> {
        self.last.as_ref().map(|last| &*last.key)
    }

    /// The keys of the turns that were sent.
    pub(crate) fn sent(&self) -> &BTreeSet<String> {
        &self.sent
    }

    /// Notes the last turn, which has this key.
    pub(crate) fn set_last(&mut self, continued: Continued, prompt: Option<Position>, key: String) {
        self.sent.insert(key.clone());
        self.last = Some(Last {
            trace: continued.trace.to_string(),
            start: continued.start,
            last_at: continued.last_at,
            prompt: prompt.map(|at| (at.line_no, at.byte_offset)),
            key,
        });
    }

    /// What was told last.
    pub fn told(&self) -> Told {
        let (Some((id, tokens)), Some((continued, _))) = (&self.reply, self.last()) else {
            return Told::default();
        };
        let [input, output, cache_read, cache_write_5m, cache_write_1h] = tokens;
        let (input, output, cache_read) = (*input, *output, *cache_read);
        let (cache_write_5m, cache_write_1h) = (*cache_write_5m, *cache_write_1h);
        let tokens = Tokens { input, output, cache_read, cache_write_5m, cache_write_1h };
        Told::from_last(id, tokens, continued.trace)
    }

    /// Notes what was told last.
    pub fn set_told(&mut self, told: &Told) {
        let of = |tokens: Tokens| {
            [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write_5m, tokens.cache_write_1h]
        };
        self.reply = told.last().map(|(id, tokens)| (id.to_owned(), of(tokens)));
    }

    /// Forgets what was sent, so that all of it is sent again.
    pub fn forget(&mut self) {
        self.sent.clear();
        self.reply = None;
        self.start_over();
    }

    /// Forgets where the log was read to, because it was written anew. Which turns were sent is still known, and
    /// pending sub-agents stay pending.
    pub fn start_over(&mut self) {
        self.mark = None;
        self.last = None;
        self.turns = 0;
        if self.sent.is_empty() {
            self.pending.clear();
        }
        self.agents.retain(|id, _| self.pending.iter().any(|pending| pending.agent == *id));
    }
}

/// Writes a file so that a reader, or a run after a crash, sees the old bytes or the new ones.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Makes a folder that only its owner may look into.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Some hexadecimal digits that stand for these texts.
pub(crate) fn short_hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
