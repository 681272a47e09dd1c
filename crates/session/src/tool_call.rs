//! Tool calls: what the model asked for, joined to what came of it.

use threadline_entry::Millis;
use threadline_entry::lens::{BashResult, Block, User};

use crate::session::Session;

/// A tool use joined to its result.
///
/// The two halves are separate entries, sometimes far apart, and sometimes the second never comes:
/// the person interrupted, the process died, or the log was cut.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The id that joins call and result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The line that holds the call; where a session was written out twice, the later one.
    pub entry_idx: usize,
    /// Which block of that line.
    pub block_idx: usize,
    /// The reply that made the call.
    pub reply: usize,
    /// Where results stand; more than one where a session was written out twice.
    pub results: Vec<ResultAt>,
    /// Lines that hold the same call again.
    pub copies: Vec<usize>,
}

/// Where a result stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultAt {
    /// The line.
    pub entry_idx: usize,
    /// Which block of that line.
    pub block_idx: usize,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// It ran.
    Ok,
    /// It ran, or tried to, and failed.
    Error,
    /// The person, or a rule, said no.
    Denied,
    /// It was stopped while it ran.
    Interrupted,
    /// No result was ever written.
    Missing,
}

impl Outcome {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
            Self::Missing => "missing",
        }
    }
}

/// How results begin when the person said no, or stopped the tool.
const DENIED: &[&str] = &[
    "User rejected tool use",
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use",
    "Permission for this action",
    "Claude requested permissions to",
    "User chose to stay in plan mode",
];
const INTERRUPTED: &[&str] = &[
    "[Request interrupted by user",
    "Request interrupted by user",
    "Interrupted by user",
    "[Tool call interrupted:",
];

impl ToolCall {
    /// The block that holds the call.
    pub fn block<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        session.block(self.entry_idx, self.block_idx)
    }

    /// Notes a line that holds the call again. The conversation goes on from what was written last,
    /// unless that is a mere copy, which is no part of the tree.
    pub(crate) fn write_again(&mut self, entry_idx: usize, block_idx: usize, is_copy: bool) {
        if is_copy {
            self.copies.push(entry_idx);
        } else {
            self.copies.push(self.entry_idx);
            (self.entry_idx, self.block_idx) = (entry_idx, block_idx);
        }
    }

    /// The lines that hold the call; more than one where a session was written out twice.
    pub fn lines(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.entry_idx).chain(self.copies.iter().copied())
    }

    /// The block that holds the result; of several, the first.
    pub fn result<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        self.results.first()?.block(session)
    }

    /// What came of it.
    pub fn outcome(&self, session: &Session) -> Outcome {
        let Some((at, block)) = self.results.first().and_then(|at| Some((at, at.block(session)?))) else {
            return Outcome::Missing;
        };
        let entry = &session.entries()[at.entry_idx];
        let data = entry.tool_use_result();
        if data.and_then(|data| data.of::<BashResult<'_>>()?.interrupted()).unwrap_or(false) {
            return Outcome::Interrupted;
        }
        if !block.is_error().unwrap_or(false) {
            return Outcome::Ok;
        }
        let text = block.content().map(|content| content.text()).unwrap_or_default();
        let error = data.and_then(|data| data.error_text()).unwrap_or_default();
        let begins =
            |with: &[&str]| with.iter().any(|start| text.starts_with(start) || error.starts_with(start));
        let denial = entry.lens::<User<'_>>().and_then(|line| line.tool_denial_kind());
        // A call that was stopped while it ran has the result of one that was refused. The line after it tells them apart.
        let is_refused = denial.as_deref().map_or_else(|| begins(DENIED), |kind| kind == "user-rejected");
        if denial.as_deref() == Some("interrupted")
            || begins(INTERRUPTED)
            || (is_refused && session.interrupted_at(self.reply).is_some())
        {
            Outcome::Interrupted
        } else if is_refused || denial.is_some() {
            Outcome::Denied
        } else {
            Outcome::Error
        }
    }

    /// How long it took, from the line of the call to the line of the result.
    pub fn duration(&self, session: &Session) -> Option<Millis> {
        let end = session.timestamp(self.results.first()?.entry_idx)?;
        Some((end - session.timestamp(self.entry_idx)?).max(0))
    }
}

impl ResultAt {
    /// The block.
    pub fn block<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        session.block(self.entry_idx, self.block_idx)
    }
}
