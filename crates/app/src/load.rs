//! Loads a session from its files, with its sub-agents, stored tool output and costs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use threadline_entry::{ChunkReader, Entry, Kind, Millis};
use threadline_log::subagent;
use threadline_session::{
    AgentIndex, EmbeddedAgents, EntryIndex, IndexVec, Session, SessionFamily, Subagent,
};
use threadline_store::{AgentFile, SessionFile, detect_live, read_log};
use threadline_usage::PriceBook;
use threadline_view::{AnchorParts, OutputReader, Spending, Transcript, TranscriptBuilder, TranscriptParts};

use crate::config::App;
use crate::error::AppError;
use crate::mask::{Mask, MaskReport};
use crate::time::{millis, now};

/// A session in memory, with its sub-agents.
///
/// [`App::load`] keeps its lines whole. A [`LiveSession`](crate::LiveSession) keeps them abridged, and opens
/// a part of the session whole to show it.
#[derive(Debug)]
pub struct OpenSession {
    /// The files of the session.
    pub file: SessionFile,
    /// The session and its sub-agents.
    pub family: SessionFamily,
    /// Costs of the model calls; `None` if not requested.
    pub spending: Option<Arc<Spending>>,
    /// The secrets that were masked, if the configuration requires it.
    pub masked: MaskReport,
    /// Sub-agents that could not be read, or not completely. The session is complete without them.
    pub unread: Vec<AppError>,
    /// Masks the secrets in texts that are not in the logs, such as stored output.
    pub(crate) mask: Mask,
}

impl OpenSession {
    /// Creates a session without lines and costs.
    pub(crate) fn empty(file: SessionFile, mask: Mask) -> Self {
        Self {
            file,
            family: SessionFamily::default(),
            spending: None,
            masked: MaskReport::default(),
            unread: Vec::new(),
            mask,
        }
    }

    /// Returns the whole conversation as data to show.
    pub fn transcript(&self) -> Transcript {
        self.transcript_builder(&|path| self.kept_output(path)).transcript()
    }

    /// Returns the builder of the conversation. `read_output` is usually [`OpenSession::kept_output`].
    pub fn transcript_builder<'a>(&'a self, read_output: OutputReader<'a>) -> TranscriptBuilder<'a> {
        self.transcript_builder_at(read_output, live_at(&self.file))
    }

    /// Returns the builder of the conversation, given the time if the session is in use. To find that out, the
    /// logs of all sub-agents are read.
    pub(crate) fn transcript_builder_at<'a>(
        &'a self,
        read_output: OutputReader<'a>,
        live_at: Option<Millis>,
    ) -> TranscriptBuilder<'a> {
        let spending = self.spending.as_deref();
        TranscriptBuilder { family: &self.family, read_output, spending, live_at }
    }

    /// Calls `work` with the parts of the conversation, which are built one at a time.
    pub fn parts<R>(&self, work: impl FnOnce(TranscriptParts<'_>) -> R) -> R {
        let kept = |path: &str| self.kept_output(path);
        work(self.transcript_builder(&kept).parts())
    }

    /// Reads tool output that was stored in a separate file, like [`kept_output`], with secrets masked if the
    /// configuration required it.
    pub fn kept_output(&self, path: &str) -> Option<String> {
        let text = kept_output(&self.file, path)?;
        Some(self.mask.text(&text).into_owned())
    }

    /// Returns the session if all of its sub-agents could be read.
    ///
    /// # Errors
    ///
    /// The first reason why one of them could not.
    pub fn complete(mut self) -> Result<Self, AppError> {
        match self.unread.is_empty() {
            true => Ok(self),
            false => Err(self.unread.swap_remove(0)),
        }
    }

    /// Returns the line number in the session's own log at which the item with this anchor was written. For
    /// an item of a sub-agent, that is the line of the call that started it, at any depth.
    pub fn main_line_no(&self, anchor: &str) -> Option<u64> {
        let AnchorParts { agent, line_no, .. } = AnchorParts::parse(anchor)?;
        let Some(id) = agent else { return Some(line_no) };
        let agent = self.family.find_agent(id)?;
        let session = self.family.session(Some(agent));
        let (line, _) = session.entries().enumerated().find(|(_, entry)| entry.at().line_no == line_no)?;
        let line = MainLines::of(&self.family).line(Some(agent), line)?;
        Some(self.family.main.entries()[line].at().line_no)
    }

    /// Returns the working directory that the session started in.
    pub fn cwd(&self) -> Option<String> {
        cwd(&self.family.main)
    }
}

/// Returns the current time if the session is open in Claude Code.
pub(crate) fn live_at(file: &SessionFile) -> Option<Millis> {
    let now = now();
    detect_live(file, now).map(|_| millis(now))
}

impl App {
    /// Loads a session with its sub-agents and costs.
    ///
    /// A sub-agent that cannot be read is skipped; [`OpenSession::unread`] contains the error.
    ///
    /// # Errors
    ///
    /// If the session's own log or the price list cannot be read, or if the file is not in a home and has no
    /// line of a session.
    pub fn load(&self, file: &SessionFile) -> Result<OpenSession, AppError> {
        let prices = || {
            let prices = self.prices()?;
            let own = self.own_calls(file, &prices);
            Ok::<_, AppError>((prices, own))
        };
        let read = || ReadLogs::of(file, &self.config().mask);
        let (read, prices) = rayon::join(read, prices);
        let (prices, own) = prices?;
        let read = read?;
        if file.home.is_none() && !has_session_lines(&read.main) {
            return Err(AppError::NotASession { path: file.path.clone() });
        }
        let mut session = read.join(file, Some(&prices));
        if let Some((own, spending)) = own.zip(session.spending.as_mut()) {
            Arc::make_mut(spending).set_own(&own.usage, own.origin);
        }
        Ok(session)
    }

    /// Reads the session's own log, with secrets masked if the configuration requires it.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn read_session(&self, file: &SessionFile) -> Result<Session, AppError> {
        let mask = &self.config().mask;
        match mask.is_on() {
            true => Ok(ReadLogs::of(file, mask)?.main),
            false => read_session(&file.path, &file.id),
        }
    }
}

/// Returns whether some line of a log may belong to a session, or there are no lines.
fn has_session_lines(session: &Session) -> bool {
    let mut lines = session.entries().iter().filter(|entry| entry.kind() != Kind::Blank).peekable();
    let is_typed = |entry: &Entry| entry.kind() != Kind::Bad && entry.type_name().is_some();
    lines.peek().is_none() || lines.any(is_typed)
}

/// Loads a session with its sub-agents, without costs.
///
/// # Errors
///
/// If the session's own log cannot be read. [`OpenSession::unread`] contains the errors of sub-agents.
pub fn load_unpriced(file: &SessionFile) -> Result<OpenSession, AppError> {
    Ok(ReadLogs::of(file, &Mask::default())?.join(file, None))
}

/// The logs of a session and its sub-agents, not joined yet.
struct ReadLogs {
    main: Session,
    agents: Vec<Subagent>,
    unread: Vec<AppError>,
    masked: MaskReport,
    mask: Mask,
}

impl ReadLogs {
    /// Reads the session's own log, then those of its sub-agents, with secrets masked if wanted.
    ///
    /// All logs are read before one is masked, because a secret that is recognised in one is masked in all.
    fn of(file: &SessionFile, mask: &Mask) -> Result<Self, AppError> {
        let listing = file.agents();
        let mut unread: Vec<AppError> = listing.errors.into_iter().map(AppError::from).collect();
        if !mask.is_on() {
            let main = read_session(&file.path, &file.id)?;
            let read = |agent: &AgentFile| read_session(&agent.path, &agent.id);
            let agents = read_agent_logs(listing.found, &mut unread, read);
            return Ok(Self { main, agents, unread, masked: MaskReport::default(), mask: mask.clone() });
        }
        let agents = listing.found.iter().map(|agent| agent.path.clone());
        let paths: Vec<PathBuf> = std::iter::once(file.path.clone()).chain(agents).collect();
        let (logs, masked, mask) = mask.read_logs(&paths);
        let mut logs = logs.into_iter();
        let mut next = |id: &str| Ok(parse_bytes(&logs.next().unwrap_or_else(|| Ok(Vec::new()))?, id));
        let main = next(&file.id)?;
        let mut agents = read_agent_logs(listing.found, &mut unread, |agent| next(&agent.id));
        for text in agents.iter_mut().filter_map(|agent| agent.description.as_mut()) {
            mask.mask_string(text);
        }
        Ok(Self { main, agents, unread, masked, mask })
    }

    /// Joins the session with its sub-agents, and sums the costs of their calls if there are prices.
    fn join(self, file: &SessionFile, prices: Option<&PriceBook>) -> OpenSession {
        let Self { main, agents, unread, masked, mask } = self;
        let spend = || {
            // Every caller needs the conversation next; this computes and caches it.
            main.thread();
            prices.map(|prices| Arc::new(Spending::of_logs(&main, &agents, prices)))
        };
        let (inside, spending) = rayon::join(|| EmbeddedAgents::find(&main, &agents), spend);
        let family = SessionFamily::with_embedded(main, agents, inside);
        OpenSession { file: file.clone(), family, spending, masked, unread, mask }
    }
}

/// Reads sub-agents, whose logs `read` reads. Adds the errors to `unread`.
pub(crate) fn read_agent_logs(
    files: impl IntoIterator<Item = AgentFile>,
    unread: &mut Vec<AppError>,
    mut read: impl FnMut(&AgentFile) -> Result<Session, AppError>,
) -> Vec<Subagent> {
    let mut agents = Vec::new();
    for file in files {
        let session = match read(&file) {
            Ok(session) => session,
            Err(error) => {
                unread.push(error);
                continue;
            }
        };
        let meta = file.read_meta().unwrap_or_else(|error| {
            unread.push(error.into());
            None
        });
        agents.push(subagent(&file, meta.as_ref(), session));
    }
    agents
}

/// Reads one log into a session.
///
/// # Errors
///
/// If the file cannot be read. Malformed lines are not errors.
pub fn read_session(path: &Path, id: &str) -> Result<Session, AppError> {
    check_log_size(path)?;
    let mut session = Session::with_id(id);
    read_log(path, |entry, findings| session.push(entry, findings)).map_err(AppError::read(path))?;
    Ok(session)
}

/// Reads the sub-agents of a session.
///
/// # Errors
///
/// If a log or its metadata cannot be read.
pub fn read_agents(file: &SessionFile) -> Result<Vec<Subagent>, AppError> {
    let read = |file: &AgentFile| {
        let session = read_session(&file.path, &file.id)?;
        Ok(subagent(file, file.read_meta()?.as_ref(), session))
    };
    file.agents().found.iter().map(read).collect()
}

/// Returns the path of every log below a folder, in order.
///
/// # Errors
///
/// If a folder below it cannot be read.
pub fn logs_below(dir: &Path) -> Result<Vec<PathBuf>, AppError> {
    let logs = threadline_store::logs_below(dir);
    match logs.errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(logs.found.into_iter().map(|log| log.path).collect()),
    }
}

/// The size of the largest log that is loaded.
const MAX_LOG: u64 = 4 << 30;

/// Returns an error if a log is too large to be loaded.
pub(crate) fn check_log_size(path: &Path) -> Result<(), AppError> {
    let size = std::fs::metadata(path).map_err(AppError::read(path))?.len();
    if size > MAX_LOG { Err(AppError::LogTooLarge { path: path.to_owned() }) } else { Ok(()) }
}

/// Parses a log in memory.
fn parse_bytes(log: &[u8], id: &str) -> Session {
    let mut session = Session::with_id(id);
    let mut chunks = ChunkReader::new(log);
    while let Ok(Some(chunk)) = chunks.next() {
        chunk.parse(|entry, findings| session.push(entry, findings));
    }
    session
}

/// Maximum size of a file of tool output. Of a larger one, only the part in the log is shown.
pub const MAX_KEPT_OUTPUT: u64 = 4 << 20;

/// Reads tool output that Claude Code stored in a separate file, given its path in the log.
///
/// Returns `None` if there is no such file below the session's own folder, if it is a link, or if it is
/// larger than [`MAX_KEPT_OUTPUT`].
pub fn kept_output(file: &SessionFile, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    file.open_tool_output(path)?.take(MAX_KEPT_OUTPUT + 1).read_to_end(&mut bytes).ok()?;
    let is_small = bytes.len() as u64 <= MAX_KEPT_OUTPUT;
    is_small.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// The line of the main log at which each sub-agent was started: that of the call of the outermost one.
pub(crate) struct MainLines(IndexVec<AgentIndex, Option<EntryIndex>>);

impl MainLines {
    pub(crate) fn of(family: &SessionFamily) -> Self {
        let n_agents = family.agents.len();
        let mut lines: IndexVec<AgentIndex, Option<EntryIndex>> = IndexVec::filled(None, n_agents);
        let mut is_visited: IndexVec<AgentIndex, bool> = IndexVec::filled(false, n_agents);
        for agent in family.agents.indices() {
            let (mut above, mut inner, mut line) = (Some(agent), Vec::new(), None);
            while let Some(agent) = above {
                // A damaged log may have a cycle, whose agents have no line.
                if std::mem::replace(&mut is_visited[agent], true) {
                    line = lines[agent];
                    break;
                }
                inner.push(agent);
                let Some(spawn) = &family.agents[agent].spawn else { break };
                let Some(call) = family.session(spawn.agent).tool_call(&spawn.tool_use_id) else { break };
                above = spawn.agent;
                line = above.is_none().then_some(call.entry_idx);
            }
            for agent in inner {
                lines[agent] = line;
            }
        }
        Self(lines)
    }

    /// Returns the line of the main log at which a line was written: for a line of a sub-agent, that of the
    /// call that started it, at any depth.
    pub(crate) fn line(&self, agent: Option<AgentIndex>, line: EntryIndex) -> Option<EntryIndex> {
        agent.map_or(Some(line), |agent| self.0[agent])
    }
}

/// Returns the working directory that a session started in.
pub fn cwd(session: &Session) -> Option<String> {
    session.entries().iter().find_map(|entry| Some(entry.envelope()?.cwd()?.into_owned()))
}

#[cfg(test)]
mod tests {
    use threadline_session::Spawn;

    use super::*;

    /// Returns an agent that calls `t` and was started by the call `t` of another agent.
    fn agent(id: usize, starter: Option<AgentIndex>) -> Subagent {
        let log = threadline_testkit::log("u1 user \"go\"\na1 <- u1 reply m1 tool t Task {}\n");
        Subagent {
            id: format!("a{id}"),
            kind: threadline_entry::AgentKind::Task,
            agent_type: None,
            description: None,
            workflow_run: None,
            session: Session::from_bytes(&log),
            spawn: Some(Spawn { agent: starter, tool_use_id: "t".into() }),
        }
    }

    #[test]
    fn the_main_line_of_an_agent_is_the_call_of_the_outermost_one() {
        let main = Session::from_bytes(&threadline_testkit::log(
            "a1 reply m1 text \"x\"\na2 reply m2 tool t Task {}\n",
        ));
        let index = |n: usize| AgentIndex::from_position(n);
        let mut agents = vec![agent(0, Some(index(1))), agent(1, Some(index(2))), agent(2, None)];
        agents.extend([agent(3, Some(index(4))), agent(4, Some(index(3)))]);
        let mut family = SessionFamily::new(main, Vec::new());
        family.agents = agents.into_iter().collect();
        let lines = MainLines::of(&family);
        let line_of = |n: usize| lines.line(Some(index(n)), EntryIndex::FIRST);
        assert_eq!([0, 1, 2].map(line_of), [Some(EntryIndex::from_position(1)); 3]);
        // Agents that started each other.
        assert_eq!([3, 4].map(line_of), [None; 2]);
        assert_eq!(lines.line(None, EntryIndex::FIRST), Some(EntryIndex::FIRST));
    }
}
