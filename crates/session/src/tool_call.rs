//! Tool calls, joined to their results.

use threadline_entry::Millis;
use threadline_entry::lens::{BashResult, Block, User};

use crate::index::{EntryIndex, ReplyIndex};
use crate::session::Session;

/// A tool use joined to its result.
///
/// The two halves are separate entries, sometimes far apart. The result is missing if the user interrupted
/// the call, the process died, or the log was truncated.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The id that joins call and result.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The line with the call. If the session was logged twice, the later one.
    pub entry_idx: EntryIndex,
    /// The index of the block on that line.
    pub block_idx: usize,
    /// The reply that made the call, as an index into [`Session::replies`].
    pub reply: ReplyIndex,
    /// The positions of the results. More than one if the session was logged twice.
    pub results: Vec<ResultPosition>,
    /// Other lines that contain the same call.
    pub copies: Vec<EntryIndex>,
}

/// The position of a tool result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultPosition {
    /// The index of the entry.
    pub entry_idx: EntryIndex,
    /// The index of the block on that line.
    pub block_idx: usize,
}

/// The outcome of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolOutcome {
    /// The call succeeded.
    Ok,
    /// The call failed.
    Error,
    /// The user or a permission rule denied the call.
    Denied,
    /// The call was interrupted while it ran.
    Interrupted,
    /// The log contains no result.
    Missing,
}

impl ToolOutcome {
    /// Returns the name of the outcome in lower case.
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

/// Prefixes of the results of denied calls, and of interrupted calls below.
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
    /// Returns the block with the call.
    pub fn block<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        session.block(self.entry_idx, self.block_idx)
    }

    /// Records another line with the same call.
    ///
    /// The conversation continues from the latest line, unless that is an exact copy, which is not in the
    /// tree.
    pub(crate) fn add_copy(&mut self, entry_idx: EntryIndex, block_idx: usize, is_copy: bool) {
        if is_copy {
            self.copies.push(entry_idx);
        } else {
            self.copies.push(self.entry_idx);
            (self.entry_idx, self.block_idx) = (entry_idx, block_idx);
        }
    }

    /// Returns the lines with the call. More than one if the session was logged twice.
    pub fn lines(&self) -> impl Iterator<Item = EntryIndex> {
        std::iter::once(self.entry_idx).chain(self.copies.iter().copied())
    }

    /// Returns the block with the first result.
    pub fn result<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        self.results.first()?.block(session)
    }

    /// Returns the outcome, determined from the first result.
    pub fn outcome(&self, session: &Session) -> ToolOutcome {
        let Some((at, block)) = self.results.first().and_then(|at| Some((at, at.block(session)?))) else {
            return ToolOutcome::Missing;
        };
        let entry = &session.entries()[at.entry_idx];
        let data = entry.tool_use_result();
        if data.and_then(|data| data.of::<BashResult<'_>>()?.interrupted()).unwrap_or(false) {
            return ToolOutcome::Interrupted;
        }
        if !block.is_error().unwrap_or(false) {
            return ToolOutcome::Ok;
        }
        let text = block.content().map(|content| content.text()).unwrap_or_default();
        let error = data.and_then(|data| data.error_text()).unwrap_or_default();
        let begins =
            |with: &[&str]| with.iter().any(|start| text.starts_with(start) || error.starts_with(start));
        let denial = entry.lens::<User<'_>>().and_then(|line| line.tool_denial_kind());
        // The result of an interrupted call can be the same as that of a denied one. A later line then
        // records the interruption of the reply.
        let is_refused = denial.as_deref().map_or_else(|| begins(DENIED), |kind| kind == "user-rejected");
        if denial.as_deref() == Some("interrupted")
            || begins(INTERRUPTED)
            || (is_refused && session.interrupted_at(self.reply).is_some())
        {
            ToolOutcome::Interrupted
        } else if is_refused || denial.is_some() {
            ToolOutcome::Denied
        } else {
            ToolOutcome::Error
        }
    }

    /// Returns the time from the line of the call to the line of the result.
    pub fn duration(&self, session: &Session) -> Option<Millis> {
        let end = session.timestamp(self.results.first()?.entry_idx)?;
        Some((end - session.timestamp(self.entry_idx)?).max(0))
    }
}

impl ResultPosition {
    /// Returns the block at this position.
    pub fn block<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        session.block(self.entry_idx, self.block_idx)
    }
}
