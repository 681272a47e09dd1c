//! A session in a list: facts from the head and tail of its log, and figures from a full read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadline_entry::{Kind, Millis};
use threadline_session::{Session, SessionFamily};
use threadline_usage::UsageTotals;

use crate::call_count::count_unbilled_tools;
use crate::error_count::count_own_errors;

/// A session in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCard {
    /// The session's id.
    pub id: String,
    /// The log.
    pub path: String,
    /// The directory of the project, else the name of its folder. A worktree belongs to its repository.
    pub project: String,
    /// The name of the project folder.
    pub folder: String,
    /// The working directory at the start.
    pub cwd: Option<String>,
    /// The title.
    pub title: String,
    /// The first prompt.
    pub first_prompt: Option<String>,
    /// The Git branch of the last line that names one.
    pub branch: Option<String>,
    /// The label that a person gave it in Claude Code.
    pub tag: Option<String>,
    /// The tags that a person gave it in threadline.
    pub tags: Vec<String>,
    /// Whether a person pinned it in threadline.
    pub pinned: bool,
    /// The version of Claude Code that wrote the last line.
    pub version: Option<String>,
    /// The time of the first message.
    pub started: Option<Millis>,
    /// When the log was last modified.
    pub modified: Millis,
    /// The time of the last message.
    pub last_active: Millis,
    /// The size of the log in bytes.
    pub size: u64,
    /// Whether it is being written to right now.
    pub live: bool,
    /// The figures from a full read; `None` until the logs were read.
    pub figures: Option<Arc<SessionCardFigures>>,
}

impl SessionCard {
    /// Returns whether the session has a tag, of threadline or of Claude Code.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|known| known == tag) || self.tag.as_deref() == Some(tag)
    }
}

/// The figures of a session that require reading all of its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCardFigures {
    /// Turns, errors and sub-agents.
    pub tally: LogTally,
    /// Usage and cost of its calls. A call that several logs contain belongs to one session only.
    pub totals: UsageTotals,
    /// The number of model calls in its logs that belong to other sessions, since it is a fork. Its turns
    /// include them.
    pub inherited_calls: u64,
    /// The models used, highest cost first.
    pub models: Vec<String>,
    /// The tools called and how often, most frequent first: see [`count_tools`](crate::count_tools).
    pub tools: Vec<(String, u64)>,
}

impl SessionCardFigures {
    /// Returns the number of tool calls.
    pub fn tool_calls(&self) -> u64 {
        self.tools.iter().map(|(_, calls)| calls).sum()
    }
}

/// Turns, errors and sub-agents of a session or of one of its logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogTally {
    /// Turns of the active conversation.
    pub turns: u64,
    /// Errors, as in [`count_errors`](crate::count_errors).
    pub errors: u64,
    /// Sub-agents, with a log of their own or inside that of the session.
    pub agents: u64,
}

/// The counts of one log. The counts of a session are the sum over its logs: see [`LogCounts::sum`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCounts {
    /// The turns and errors of its active conversation.
    pub tally: LogTally,
    /// The sub-agents inside the log, by id, with the number of their errors.
    pub agent_errors: BTreeMap<String, u64>,
    /// The calls of each tool that are not part of model calls, which have figures.
    pub unbilled_tools: BTreeMap<String, u64>,
}

impl LogCounts {
    fn new(turns: u64, errors: u64, agent_errors: BTreeMap<String, u64>) -> Self {
        let tally = LogTally { turns, errors, agents: agent_errors.len() as u64 };
        Self { tally, agent_errors, ..Self::default() }
    }

    /// Counts a log.
    pub fn of(session: Session) -> Self {
        // Few logs contain sub-agents, and looking for them takes time.
        let has_agents =
            session.entries().iter().any(|entry| entry.kind() == Kind::Progress || entry.is_sidechain());
        let mut family = SessionFamily::default();
        match has_agents {
            true => family = SessionFamily::new(session, Vec::new()),
            false => family.main = session,
        }
        let turns = family.main.turns();
        let errors = count_own_errors(&family, None, turns.iter()) as u64;
        let inside = family.agents.enumerated().map(|(idx, agent)| {
            let errors = count_own_errors(&family, Some(idx), agent.session.turns().iter());
            (agent.id.clone(), errors as u64)
        });
        let unbilled_tools = count_unbilled_tools(&family);
        Self { unbilled_tools, ..Self::new(turns.len() as u64, errors, inside.collect()) }
    }

    /// Returns the tally of a session from the counts of its own log and of the logs of its sub-agents, each
    /// with the agent's id. A sub-agent inside the session's log that also has its own log counts once.
    pub fn sum<'a>(&self, agents: impl Iterator<Item = (&'a str, &'a Self)>) -> LogTally {
        let mut inside: BTreeMap<&str, u64> =
            self.agent_errors.iter().map(|(id, errors)| (&**id, *errors)).collect();
        let (mut n_logged, mut errors) = (0, self.tally.errors);
        for (id, counts) in agents {
            inside.remove(id);
            n_logged += 1;
            errors += counts.tally.errors;
        }
        errors += inside.values().sum::<u64>();
        LogTally { errors, agents: n_logged + inside.len() as u64, ..self.tally }
    }
}

#[cfg(test)]
mod tests {
    use threadline_testkit::log;

    use super::*;

    #[test]
    fn turns_and_failures_are_counted() {
        let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "exit 2" error
a2 <- r1  reply  m2 tool t2 Read {"file_path":"/x"}
r2 <- a2  result t2 "ok"
u2 <- r2  user   "again"
a3 <- u2  reply  m3 text "API Error: overloaded" +{"isApiErrorMessage":true}
"#);
        assert_eq!(
            LogCounts::of(Session::from_bytes(&bytes)).tally,
            LogTally { turns: 2, errors: 2, agents: 0 }
        );
    }

    #[test]
    fn an_abandoned_branch_does_not_count() {
        let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 text "done"
u2 <- a1  user   "no, this"
a2 <- u2  reply  m2 text "this"
u3 <- a1  user   "rather that"
a3 <- u3  reply  m3 text "that"
"#);
        assert_eq!(LogCounts::of(Session::from_bytes(&bytes)).tally.turns, 2);
    }

    #[test]
    fn a_denied_call_is_not_an_error() {
        let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "The user doesn't want to proceed with this tool use." error
"#);
        assert_eq!(LogCounts::of(Session::from_bytes(&bytes)).tally.errors, 0);
    }

    #[test]
    fn a_sub_agent_with_its_own_log_counts_once() {
        let counts = |errors, agent_errors: &[(&str, u64)]| LogCounts {
            tally: LogTally { turns: 2, errors, agents: agent_errors.len() as u64 },
            agent_errors: agent_errors.iter().map(|(id, errors)| ((*id).to_owned(), *errors)).collect(),
            ..LogCounts::default()
        };
        let (main, agent) = (counts(1, &[("x", 10), ("y", 100)]), counts(1000, &[]));
        let tally = main.sum([("x", &agent)].into_iter());
        assert_eq!(tally, LogTally { turns: 2, errors: 1101, agents: 2 });
    }
}
