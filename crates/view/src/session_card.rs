//! A session in a list: facts from the head and tail of its log, and figures from a full read.

use threadline_entry::{Entry, Kind, Millis, value};
use threadline_session::{InputKind, Session, ToolOutcome};
use threadline_usage::UsageTotals;

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
    /// The label that a person gave it.
    pub tag: Option<String>,
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
    /// The number of sub-agents with separate logs.
    pub agents: usize,
    /// Whether it is being written to right now.
    pub live: bool,
    /// The figures from a full read; `None` until the logs were read.
    pub figures: Option<SessionCardFigures>,
}

/// The figures of a session that require reading all of its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCardFigures {
    /// Turns and errors, including those of its sub-agents.
    pub tally: LogTally,
    /// Usage and cost of its calls. A call that several logs contain belongs to one session only.
    pub totals: UsageTotals,
    /// The models used, highest cost first.
    pub models: Vec<String>,
    /// The tools called and how often, most frequent first.
    pub tools: Vec<(String, u64)>,
}

/// Counts of a fully read log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogTally {
    /// Turns of the conversation. For a log that was only skimmed, prompts in any branch.
    pub turns: u64,
    /// Failed tool calls and API errors.
    pub errors: u64,
}

impl LogTally {
    /// Counts a loaded session.
    pub fn of(session: &Session) -> Self {
        let failed = session.tool_calls().iter().filter(|call| call.outcome(session) == ToolOutcome::Error);
        let refused = session.entries().iter().filter(|entry| is_api_error(entry));
        Self { turns: session.turns().len() as u64, errors: (failed.count() + refused.count()) as u64 }
    }

    /// Adds one line of a log that is too large to load.
    pub fn skim(&mut self, entry: &Entry) {
        self.errors += u64::from(is_api_error(entry));
        if entry.kind() != Kind::User {
            return;
        }
        let blocks = || entry.message().into_iter().flat_map(|message| message.blocks());
        let mut results = blocks().filter(|block| block.is(value::TOOL_RESULT)).peekable();
        if results.peek().is_some() {
            self.errors += results.filter(|block| block.is_error() == Some(true)).count() as u64;
        } else if !entry.is_sidechain() && InputKind::of_user(entry).opens_turn() {
            self.turns += 1;
        }
    }

    /// Adds the errors of a sub-agent. Its turns are not turns of the conversation.
    pub fn add_agent(&mut self, agent: Self) {
        self.errors += agent.errors;
    }
}

fn is_api_error(entry: &Entry) -> bool {
    entry.kind() == Kind::Assistant && entry.is_api_error()
}

#[cfg(test)]
mod tests {
    use threadline_entry::{LineReader, parse_line};
    use threadline_testkit::log;

    use super::*;

    fn skimmed(bytes: &[u8]) -> LogTally {
        let mut tally = LogTally::default();
        let mut lines = LineReader::new(bytes);
        while let Some(line) = lines.next().unwrap() {
            parse_line(&line, |entry, _| tally.skim(&entry));
        }
        tally
    }

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
        assert_eq!(LogTally::of(&Session::from_bytes(&bytes)), LogTally { turns: 2, errors: 2 });
        assert_eq!(skimmed(&bytes), LogTally { turns: 2, errors: 2 });
    }

    #[test]
    fn an_abandoned_branch_counts_only_in_a_skimmed_log() {
        let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 text "done"
u2 <- a1  user   "no, this"
a2 <- u2  reply  m2 text "this"
u3 <- a1  user   "rather that"
a3 <- u3  reply  m3 text "that"
"#);
        assert_eq!(LogTally::of(&Session::from_bytes(&bytes)).turns, 2);
        assert_eq!(skimmed(&bytes).turns, 3);
    }

    #[test]
    fn a_denied_call_is_not_an_error() {
        let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "The user doesn't want to proceed with this tool use." error
"#);
        assert_eq!(LogTally::of(&Session::from_bytes(&bytes)).errors, 0);
    }
}
