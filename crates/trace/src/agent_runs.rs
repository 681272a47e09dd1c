//! Reads the logs of sub-agents and assigns each of their runs to a turn of the session.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use threadline_entry::lens::{FromJson, Moment};
use threadline_entry::{AgentKind, Ending, Json, LineReader, Millis, Position, key, parse_line, walk};
use threadline_session::Subagent;
use threadline_store::AgentFile;

use crate::state::ExportState;
use crate::turn_splitter::{LogOwner, TurnPart, TurnSplitter};

/// The sub-agent logs that contain unsent lines.
#[derive(Default)]
pub(crate) struct UnsentAgentLogs {
    /// By the time when the first unsent line was written.
    unsent: BTreeMap<(Millis, PathBuf), UnsentAgentLog>,
}

/// The unsent part of a sub-agent's log.
enum UnsentAgentLog {
    /// A log that was not split yet, with the byte offset of its first unsent line.
    Whole(AgentFile, u64),
    /// The runs that were not taken yet.
    Runs(VecDeque<AgentRun>),
}

/// One run of a sub-agent: one turn of its log.
pub(crate) struct AgentRun {
    pub(crate) agent: Subagent,
    /// When the run began.
    start: Option<Millis>,
    /// The byte offset where the run ends.
    pub(crate) to: u64,
    /// Whether the sub-agent has finished the run.
    pub(crate) is_complete: bool,
}

impl UnsentAgentLogs {
    /// Selects the logs that are longer than the part already sent, without pending agents.
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
            self.unsent.insert((first_at, file.path.clone()), UnsentAgentLog::Whole(file, from));
        }
    }

    /// Removes and returns the runs that began before `until`; all of them if it is `None`.
    pub(crate) fn take(&mut self, until: Option<Millis>) -> io::Result<Vec<AgentRun>> {
        let began = |at: Millis| until.is_none_or(|until| at < until);
        let mut taken = Vec::new();
        while let Some(first) = self.unsent.first_entry().filter(|first| began(first.key().0)) {
            let ((_, path), log) = first.remove_entry();
            let mut runs = match log {
                UnsentAgentLog::Whole(file, from) => runs_of(&file, from)?.into(),
                UnsentAgentLog::Runs(runs) => runs,
            };
            while let Some(run) = runs.pop_front_if(|run| run.start.is_none_or(began)) {
                taken.push(run);
            }
            // The rest is kept, so that a log with a run in each turn is read once.
            if let Some(start) = runs.front().and_then(|run| run.start) {
                self.unsent.insert((start, path), UnsentAgentLog::Runs(runs));
            }
        }
        Ok(taken)
    }
}

/// Returns the runs of a sub-agent from byte offset `from` on.
pub(crate) fn runs_of(file: &AgentFile, from: u64) -> io::Result<Vec<AgentRun>> {
    let meta = file.read_meta()?;
    let mut parts = split_turns(file, from)?;
    // An agent that replays the conversation owns only the part after its last prompt.
    if matches!(file.kind, AgentKind::Compaction | AgentKind::SideQuestion) {
        parts.drain(..parts.len().saturating_sub(1));
    }
    let last = parts.len().saturating_sub(1);
    let mut runs = Vec::new();
    for (i, part) in parts.into_iter().enumerate() {
        if i < last && !part.is_exportable() {
            continue;
        }
        runs.push(AgentRun {
            start: part.start(),
            to: part.to.byte_offset,
            is_complete: i < last || part.is_complete(),
            agent: threadline_app::subagent(file, meta.as_ref(), part.session),
        });
    }
    Ok(runs)
}

/// Splits a log into turns, from byte offset `from` on.
fn split_turns(file: &AgentFile, from: u64) -> io::Result<Vec<TurnPart>> {
    let mut parts = Vec::new();
    let mut lines = lines_from(&file.path, Position { line_no: 1, byte_offset: from })?;
    let mut splitter = TurnSplitter::new(LogOwner::Agent, 0);
    let mut end = lines.at();
    while let Some(line) = lines.next()? {
        // An incomplete line is still being written.
        if line.ending == Ending::None && !is_complete_json(line.bytes) {
            break;
        }
        parse_line(&line, |entry, findings| parts.extend(splitter.push(entry, findings)));
        end = lines.at();
    }
    parts.extend(splitter.finish(end));
    Ok(parts)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the log of a sub-agent with a prompt and a reply in each of `n` turns, ten seconds apart.
    fn agent_log(dir: &Path, name: &str, n: usize) -> AgentFile {
        let turn = |n: usize| {
            let (at, above) = (n * 10, n - 1);
            let parent = if n > 1 { format!("<- a{above} ") } else { String::new() };
            format!(
                "u{n} {parent}user \"go on\" sidechain @10:00:{at}\na{n} <- u{n} reply m{n} text \"done\" sidechain\n"
            )
        };
        let path = dir.join(format!("agent-{name}.jsonl"));
        let notation: String = (1..=n).map(turn).collect();
        std::fs::write(&path, threadline_testkit::log(&notation)).unwrap();
        AgentFile { id: name.to_owned(), path, kind: AgentKind::Task, run: None }
    }

    #[test]
    fn a_log_with_several_runs_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (agent_log(dir.path(), "x1", 3), agent_log(dir.path(), "x2", 1));
        let path = one.path.clone();
        let mut logs = UnsentAgentLogs::new(vec![one, two], &ExportState::default());
        let start: Millis = 1_767_261_600_000;
        let ids = |runs: Vec<AgentRun>| runs.into_iter().map(|run| run.agent.id).collect::<Vec<_>>();
        assert_eq!(ids(logs.take(Some(start)).unwrap()), [""; 0]);
        assert_eq!(ids(logs.take(Some(start + 15_000)).unwrap()), ["x1", "x2"]);
        std::fs::remove_file(path).unwrap();
        assert_eq!(ids(logs.take(Some(start + 25_000)).unwrap()), ["x1"]);
        assert_eq!(ids(logs.take(None).unwrap()), ["x1"]);
        assert_eq!(ids(logs.take(None).unwrap()), [""; 0]);
    }
}
