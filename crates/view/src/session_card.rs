//! A session in a list: what its head and tail tell at once, and what is known once all of it was read.

use threadline_entry::{Entry, Kind, Millis};
use threadline_session::{Input, Outcome, Session};
use threadline_usage::Totals;

/// A session in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCard {
    /// Its id.
    pub id: String,
    /// Where it ran, else the name of its project's folder.
    pub project: String,
    /// What it is called.
    pub title: String,
    /// What was typed first.
    pub first_prompt: Option<String>,
    /// The branch it ended on.
    pub branch: Option<String>,
    /// The label that a person gave it.
    pub tag: Option<String>,
    /// The version of Claude Code that wrote last.
    pub version: Option<String>,
    /// When it began.
    pub created: Option<Millis>,
    /// When it was last written to.
    pub modified: Millis,
    /// How long its log is, in bytes.
    pub size: u64,
    /// How many sub-agents have logs of their own.
    pub agents: usize,
    /// Whether it is being written right now.
    pub live: bool,
    /// What only a whole reading tells; `None` until that was done.
    pub figures: Option<Figures>,
}

/// What is known of a session once all of its logs were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// What its lines tell, those of its sub-agents included.
    pub tally: Tally,
    /// What its calls used and cost, each call counted with the session that it belongs to.
    pub totals: Totals,
    /// The models that answered, the one that cost the most first.
    pub models: Vec<String>,
    /// The tools that were called and how often, the most frequent first.
    pub tools: Vec<(String, u64)>,
}

/// What the lines of a log tell when all of them were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Turns of the conversation; of a log that was only skimmed, prompts in any branch of it.
    pub turns: u64,
    /// Calls of tools and of models that failed.
    pub errors: u64,
}

impl Tally {
    /// What a session tells.
    pub fn of(session: &Session) -> Self {
        let failed = session.tool_calls().iter().filter(|call| call.outcome(session) == Outcome::Error);
        let refused = session.entries().iter().filter(|entry| is_api_error(entry));
        Self { turns: session.turns().len() as u64, errors: (failed.count() + refused.count()) as u64 }
    }

    /// Takes one more line of a log that is too long to be kept in memory.
    pub fn skim(&mut self, entry: &Entry) {
        self.errors += u64::from(is_api_error(entry));
        if entry.kind() != Kind::User {
            return;
        }
        let blocks = || entry.message().into_iter().flat_map(|message| message.blocks());
        let mut results = blocks().filter(|block| block.is("tool_result")).peekable();
        if results.peek().is_some() {
            self.errors += results.filter(|block| block.is_error() == Some(true)).count() as u64;
        } else if !entry.flag("isSidechain") && Input::of_user(entry).opens_turn() {
            self.turns += 1;
        }
    }

    /// Adds what went wrong in a sub-agent. Its turns are no turns of the conversation.
    pub fn add_agent(&mut self, agent: Self) {
        self.errors += agent.errors;
    }
}

fn is_api_error(entry: &Entry) -> bool {
    entry.kind() == Kind::Assistant && entry.flag("isApiErrorMessage")
}

#[cfg(test)]
mod tests {
    use threadline_entry::{Lines, parse_line};
    use threadline_testkit::log;

    use super::*;

    fn skimmed(bytes: &[u8]) -> Tally {
        let mut tally = Tally::default();
        let mut lines = Lines::new(bytes);
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
        assert_eq!(Tally::of(&Session::from_bytes(&bytes)), Tally { turns: 2, errors: 2 });
        assert_eq!(skimmed(&bytes), Tally { turns: 2, errors: 2 });
    }

    #[test]
    fn a_branch_that_was_left_counts_only_where_lines_are_skimmed() {
        let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 text "done"
u2 <- a1  user   "no, this"
a2 <- u2  reply  m2 text "this"
u3 <- a1  user   "rather that"
a3 <- u3  reply  m3 text "that"
"#);
        assert_eq!(Tally::of(&Session::from_bytes(&bytes)).turns, 2);
        assert_eq!(skimmed(&bytes).turns, 3);
    }

    #[test]
    fn what_a_person_denied_is_no_failure() {
        let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "The user doesn't want to proceed with this tool use." error
"#);
        assert_eq!(Tally::of(&Session::from_bytes(&bytes)).errors, 0);
    }
}
