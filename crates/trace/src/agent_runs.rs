//! Reads the logs of sub-agents and assigns each of their runs to a turn of the session.

use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use threadline_entry::lens::{FromJson, Moment};
use threadline_entry::{AgentKind, Ending, Json, LineReader, Millis, Position, key, parse_line, walk};
use threadline_session::Agent;
use threadline_store::AgentFile;

use crate::state::ExportState;
use crate::turn_splitter::{LogOwner, TurnPart, TurnSplitter};

/// The sub-agent logs that contain unsent lines.
#[derive(Default)]
pub(crate) struct UnsentAgentLogs {
    unsent: Vec<UnsentAgentLog>,
}

/// The unsent part of a sub-agent's log.
struct UnsentAgentLog {
    file: AgentFile,
    /// The byte offset of the first unsent line.
    from: u64,
    /// When that line was written.
    first_at: Millis,
}

/// One run of a sub-agent: one turn of its log.
pub(crate) struct AgentRun {
    pub(crate) agent: Agent,
    /// The byte offset where the run begins.
    from: u64,
    /// When the run began.
    start: Option<Millis>,
    /// The byte offset where the run ends.
    pub(crate) to: u64,
    /// Whether the sub-agent has finished the run.
    pub(crate) is_complete: bool,
}

impl UnsentAgentLogs {
    /// Selects the logs that are longer than the part already sent, without pending agents, sorted by time.
    pub(crate) fn new(files: Vec<AgentFile>, state: &ExportState) -> Self {
        let is_pending = |id: &str| state.pending.iter().any(|pending| pending.agent == id);
        let mut agents = Self::default();
        for file in files {
            let from = state.agents.get(&file.id).copied().unwrap_or(0);
            let size = fs_err::metadata(&file.path).map_or(0, |metadata| metadata.len());
            if size > from && !is_pending(&file.id) {
                agents.add(file, from);
            }
        }
        agents.unsent.sort_by(|a, b| (a.first_at, &a.file.path).cmp(&(b.first_at, &b.file.path)));
        agents
    }

    fn add(&mut self, file: AgentFile, from: u64) {
        // The log of an agent that replays the conversation begins with old lines.
        let replays = matches!(file.kind, AgentKind::Compaction | AgentKind::SideQuestion);
        let first_at = if replays {
            runs_of(&file, from).ok().and_then(|runs| runs.last()?.start)
        } else {
            first_timestamp(&file.path, from).ok().flatten()
        };
        if let Some(first_at) = first_at {
            self.unsent.push(UnsentAgentLog { file, from, first_at });
        }
    }

    /// Removes and returns the runs that began before `until`; all of them if it is `None`.
    pub(crate) fn take(&mut self, until: Option<Millis>) -> io::Result<Vec<AgentRun>> {
        let began = |at: Millis| until.is_none_or(|until| at < until);
        let mut runs = Vec::new();
        let (now, later) = std::mem::take(&mut self.unsent).into_iter().partition(|log| began(log.first_at));
        self.unsent = later;
        for log in now {
            let mut own = runs_of(&log.file, log.from)?;
            let stay = own.iter().position(|run| !run.start.is_none_or(began)).unwrap_or(own.len());
            if let Some(run) = own.get(stay) {
                let (from, first_at) = (run.from, run.start.unwrap_or(0));
                self.unsent.push(UnsentAgentLog { file: log.file.clone(), from, first_at });
            }
            own.truncate(stay);
            runs.append(&mut own);
        }
        Ok(runs)
    }
}

/// Returns the runs of a sub-agent from byte offset `from` on.
pub(crate) fn runs_of(file: &AgentFile, from: u64) -> io::Result<Vec<AgentRun>> {
    let meta = file.read_meta()?;
    let mut pieces = split_turns(file, from)?;
    // An agent that replays the conversation owns only the part after its last prompt.
    if matches!(file.kind, AgentKind::Compaction | AgentKind::SideQuestion) {
        pieces.drain(..pieces.len().saturating_sub(1));
    }
    let last = pieces.len().saturating_sub(1);
    let mut runs = Vec::new();
    for (i, piece) in pieces.into_iter().enumerate() {
        if i < last && !piece.is_exportable() {
            continue;
        }
        runs.push(AgentRun {
            from: piece.from.byte_offset,
            start: piece.start(),
            to: piece.to.byte_offset,
            is_complete: i < last || piece.is_complete(),
            agent: threadline_app::agent(file, meta.as_ref(), piece.session),
        });
    }
    Ok(runs)
}

/// Splits a log into turns, from byte offset `from` on.
fn split_turns(file: &AgentFile, from: u64) -> io::Result<Vec<TurnPart>> {
    let mut pieces = Vec::new();
    let mut lines = lines_from(&file.path, Position { line_no: 1, byte_offset: from })?;
    let mut cutter = TurnSplitter::new(LogOwner::Agent, 0);
    let mut end = lines.at();
    while let Some(line) = lines.next()? {
        // An incomplete line is still being written.
        if line.ending == Ending::None && !is_complete_json(line.bytes) {
            break;
        }
        parse_line(&line, |entry, findings| pieces.extend(cutter.push(entry, findings)));
        end = lines.at();
    }
    pieces.extend(cutter.finish(end));
    Ok(pieces)
}

/// Opens a log and returns its lines from `at` on.
pub(crate) fn lines_from(path: &Path, at: Position) -> io::Result<LineReader<fs_err::File>> {
    let mut log = threadline_store::open_log(path)?;
    log.seek(SeekFrom::Start(at.byte_offset))?;
    Ok(LineReader::from(log, at))
}

/// Whether a line without a newline is complete JSON.
pub(crate) fn is_complete_json(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|text| Json::parse(text).is_some())
}

/// Returns the first timestamp within 8 lines from byte offset `from` on; `Millis::MIN` if they have none,
/// and `None` if there is no line.
fn first_timestamp(path: &Path, from: u64) -> io::Result<Option<Millis>> {
    let mut lines = lines_from(path, Position { line_no: 1, byte_offset: from })?;
    let mut found = None;
    for _ in 0..8 {
        let Some(line) = lines.next()? else { break };
        let moment = walk::pick(line.bytes, [key::TIMESTAMP]).and_then(|[at]| Moment::from_json(at?));
        found = found.or(Some(Millis::MIN));
        if let Some(moment) = moment {
            return Ok(Some(moment.0));
        }
    }
    Ok(found)
}
