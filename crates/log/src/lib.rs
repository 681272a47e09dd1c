//! One session log of Claude Code: open it, walk its turns, price it, replay it.
//!
//! ```
//! use threadline_log::{ClientVersion, PriceBook, SessionLog};
//!
//! # fn main() -> std::io::Result<()> {
//! # let path = "../../demo/projects/-home-ada-loom/3f91c2d4-7a60-4e0b-9d58-c1b7e4a2f036.jsonl";
//! let log = SessionLog::open(path)?;
//! for turn in log.session().turns().iter() {
//!     println!("{}. {}", turn.number, log.prompt(turn).unwrap_or_default());
//! }
//! println!("{}", log.usage(&PriceBook::embedded()).short_cost());
//! println!("{:?}", log.session().replay(ClientVersion::NEWEST).map(|messages| messages.len()));
//! # assert_eq!((log.session().turns().len(), log.family().agents.len()), (7, 1));
//! # Ok(())
//! # }
//! ```
//!
//! The lines, the model of the conversation and the figures are those of `threadline-entry`,
//! `threadline-session` and `threadline-usage`, which have more than this crate offers. To list and find the
//! sessions of a person, to follow a running one, or to apply edits, take `threadline-app`.
//!
//! Only input and output return errors: odd, torn and unknown lines are entries, and
//! [`Session::findings`] names them.

#![warn(missing_docs)]

use std::io;
use std::path::{Path, PathBuf};

use threadline_entry::LineReader;
pub use threadline_entry::{Entry, Finding};
pub use threadline_session::{ClientVersion, Session, SessionFamily, Turn};
use threadline_session::{Spawn, Subagent};
use threadline_store::{AgentFile, AgentMeta, SessionFile, open_log, read_log};
use threadline_usage::{CallLedger, LogSource, ModelCalls, ScanOptions, UsageScan};
pub use threadline_usage::{PriceBook, UsageTotals};

/// A session with its sub-agents and its model calls, in memory.
#[derive(Debug)]
pub struct SessionLog {
    family: SessionFamily,
    calls: ModelCalls,
}

impl SessionLog {
    /// Reads the log of a session, and the logs of its sub-agents in the folder beside it.
    ///
    /// # Errors
    ///
    /// If one of these files cannot be read.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let file = SessionFile::at(path);
        let listing = file.agents();
        if let Some(error) = listing.errors.into_iter().next() {
            return Err(error);
        }
        let source = LogSource::session(&file.path.to_string_lossy(), &file.id);
        let mut ledger = CallLedger::default();
        let main = read_session(&file.path, &file.id, source.clone(), &mut ledger)?;
        let read_agent = |agent_file: &AgentFile| {
            let source = source.clone().agent(&agent_file.id, agent_file.kind);
            let session = read_session(&agent_file.path, &file.id, source, &mut ledger)?;
            Ok(subagent(agent_file, agent_file.read_meta()?.as_ref(), session))
        };
        let agents = listing.found.iter().map(read_agent).collect::<io::Result<_>>()?;
        Ok(Self { family: SessionFamily::new(main, agents), calls: ledger.finish() })
    }

    /// Returns the session without its sub-agents.
    pub fn session(&self) -> &Session {
        &self.family.main
    }

    /// Returns the session with its sub-agents.
    pub fn family(&self) -> &SessionFamily {
        &self.family
    }

    /// Returns the text of the prompt that opened a turn of the session.
    pub fn prompt(&self, turn: &Turn) -> Option<String> {
        let entry = &self.session().entries()[turn.prompt?];
        Some(entry.message()?.content()?.text().into_owned())
    }

    /// Returns the model calls, each once, of the session and its sub-agents.
    pub fn calls(&self) -> &ModelCalls {
        &self.calls
    }

    /// Returns the sum of the model calls.
    pub fn usage(&self, prices: &PriceBook) -> UsageTotals {
        self.calls.iter().fold(UsageTotals::default(), |mut sum, call| {
            sum += &UsageTotals::of(&call, prices);
            sum
        })
    }
}

/// Reads one log as a session, and adds its calls to a ledger.
fn read_session(path: &Path, id: &str, source: LogSource, ledger: &mut CallLedger) -> io::Result<Session> {
    let mut scan = UsageScan::new(source, ScanOptions::default());
    let mut lines = LineReader::new(open_log(path)?);
    while let Some(block) = lines.next_block()? {
        scan.block(&block);
    }
    ledger.add(scan.finish());
    let mut session = Session::with_id(id);
    read_log(path, |entry, findings| session.push(entry, findings))?;
    Ok(session)
}

/// Joins the log of a sub-agent with its metadata.
pub fn subagent(file: &AgentFile, meta: Option<&AgentMeta>, session: Session) -> Subagent {
    Subagent {
        id: file.id.clone(),
        kind: file.kind,
        agent_type: meta.and_then(AgentMeta::agent_type),
        description: meta.and_then(AgentMeta::description),
        workflow_run: file.run.clone(),
        session,
        spawn: meta.and_then(AgentMeta::tool_use_id).map(|tool_use_id| Spawn { agent: None, tool_use_id }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use threadline_testkit::TestHome;

    use super::*;

    #[test]
    fn a_log_that_is_not_there_is_an_error_and_odd_lines_are_none() {
        let home = TestHome::new();
        let path = home.session("s", "u1 user \"hi\"\na1 <- u1 reply m1 text \"hello\"\n");
        fs::write(&path, fs::read_to_string(&path).unwrap() + "torn {").unwrap();
        let log = SessionLog::open(&path).unwrap();
        assert_eq!((log.session().turns().len(), log.session().entries().len()), (1, 3));
        assert_eq!(log.prompt(&log.session().turns()[threadline_session::TurnIndex::FIRST]).unwrap(), "hi");
        assert!(!log.session().findings().is_empty());
        assert!(SessionLog::open(path.with_extension("none")).is_err());
    }
}
