//! The secrets of a session that is exported: those of the lines to send, and those of lines sent before.
//!
//! A secret may be recognisable in one turn only, and be quoted in others. So all lines to send are examined
//! before the first span is built. Of the lines that were sent by earlier runs, only the byte offsets of
//! those with secrets are saved. They are read again, so that no secret is stored outside of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use threadline_edit::Redactor;
use threadline_entry::{Ending, Position};
use threadline_secret::{KnownSecrets, Rules};
use threadline_store::AgentFile;

use crate::agent_runs::lines_from;

/// The byte offsets of lines with secrets, by id of the sub-agent; those of the session's own log by an empty
/// id.
pub(crate) type SecretLines = BTreeMap<String, BTreeSet<u64>>;

/// Learns the secrets of a session.
pub(crate) struct SecretLearner<'r> {
    redactor: Redactor<'r>,
    lines: SecretLines,
}

impl<'r> SecretLearner<'r> {
    /// Creates a learner that has not learnt anything.
    pub(crate) fn new(rules: &'r Rules) -> Self {
        Self { redactor: Redactor::new(rules), lines: SecretLines::new() }
    }

    /// Learns the secrets of a log: of `saved` lines before offset `from`, and of all lines after it. If no
    /// lines were saved, all lines are examined.
    pub(crate) fn read_log(
        &mut self,
        agent: &str,
        path: &Path,
        from: u64,
        saved: Option<&BTreeSet<u64>>,
    ) -> io::Result<()> {
        let at = |byte_offset: u64| Position { line_no: 1, byte_offset };
        let start = if saved.is_some() { from } else { 0 };
        for offset in saved.into_iter().flatten().filter(|offset| **offset < from) {
            if let Some(line) = lines_from(path, at(*offset))?.next()? {
                self.redactor.learn_line(&line);
            }
        }
        let mut lines = lines_from(path, at(start))?;
        let mut incomplete = None;
        while let Some(line) = lines.next()? {
            self.redactor.learn_line(&line);
            incomplete = (line.ending == Ending::None).then_some(line.at);
        }
        let found = self.redactor.take_source_lines().into_iter().filter(|at| Some(*at) != incomplete);
        let offsets: BTreeSet<u64> = found.map(|at| at.byte_offset).collect();
        if !offsets.is_empty() {
            self.lines.insert(agent.to_owned(), offsets);
        }
        Ok(())
    }

    /// Learns the secrets of the logs of sub-agents. `sent` is the number of bytes sent of each, by id.
    pub(crate) fn read_agents(
        &mut self,
        files: &[AgentFile],
        sent: &BTreeMap<String, u64>,
        saved: Option<&SecretLines>,
    ) -> io::Result<()> {
        let none = BTreeSet::new();
        for file in files {
            let from = sent.get(&file.id).copied().unwrap_or(0);
            let saved = saved.map(|saved| saved.get(&file.id).unwrap_or(&none));
            self.read_log(&file.id, &file.path, from, saved)?;
        }
        Ok(())
    }

    /// Returns the secrets, and the lines to save.
    pub(crate) fn finish(self) -> (Option<KnownSecrets>, SecretLines) {
        (self.redactor.into_known(), self.lines)
    }
}
