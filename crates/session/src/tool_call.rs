//! Tool calls, joined to their results.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use threadline_entry::lens::{BashResult, Block, Lens, ToolUseResult, User};
use threadline_entry::{Entry, Millis, value};

use crate::index::{EntryIndex, ReplyIndex};
use crate::session::Session;

/// A tool use joined to its result.
///
/// The two halves are separate entries, sometimes far apart. The result is missing if the user interrupted
/// the call, the process died, or the log was truncated. Claude Code sometimes writes earlier lines again, so
/// there may be several lines with the same call: [copies](Session#terms), or lines with other uuids.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The id that joins call and result.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The line with the call: the last one that is not a copy.
    pub entry_idx: EntryIndex,
    /// The index of the block on that line.
    pub block_idx: u32,
    /// The reply that made the call, as an index into [`Session::replies`].
    pub reply: ReplyIndex,
    /// The positions of the results.
    pub results: Vec<BlockPosition>,
    /// The lines with the call, including copies, in file order.
    pub lines: Vec<EntryIndex>,
}

/// The call of a tool that the API ran itself.
#[derive(Clone, Debug)]
pub struct ServerCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The reply that made the call, as an index into [`Session::replies`].
    pub reply: ReplyIndex,
}

/// The position of a content block in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockPosition {
    /// The index of the entry.
    pub entry_idx: EntryIndex,
    /// The index of the block on that line.
    pub block_idx: u32,
}

/// The outcome of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Returns whether the call counts as an error. Denied and interrupted calls do not: a person stopped
    /// them.
    pub fn is_error(self) -> bool {
        self == Self::Error
    }

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

/// Prefixes of the results of denied calls, in all versions of Claude Code.
const DENIED: &[&str] = &[
    "User rejected tool use",
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use",
    "Permission for this action",
    "Claude requested permissions to",
    "User chose to stay in plan mode",
];
/// Prefixes of the results of interrupted calls.
const INTERRUPTED: &[&str] = &[
    "[Request interrupted by user",
    "Request interrupted by user",
    "Interrupted by user",
    "[Tool call interrupted:",
];

impl ToolCall {
    /// Returns the block with the call.
    pub fn block<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        session.block(self.entry_idx, self.block_idx as usize)
    }

    /// Records another line with the same call. The conversation continues from the last one in the tree.
    pub(crate) fn add_line(&mut self, at: BlockPosition, is_copy: bool) {
        self.lines.push(at.entry_idx);
        if !is_copy {
            (self.entry_idx, self.block_idx) = (at.entry_idx, at.block_idx);
        }
    }

    /// Returns the block with the first result.
    pub fn result<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        self.results.first()?.block(session)
    }

    /// Returns the result that belongs to one of the blocks with the call.
    ///
    /// The first result belongs to [`ToolCall::entry_idx`]. On another line, it is the first result between
    /// this line and the next one with the call. The second block with the call on a line has no result. A
    /// result belongs to two blocks at most, so that the total length of these results is linear in the log.
    pub fn result_of_block(
        &self,
        entry_idx: EntryIndex,
        block_idx: usize,
        session: &Session,
    ) -> Option<BlockPosition> {
        // `None` for the second block on the line.
        session.call_of_block(entry_idx, block_idx)?;
        if entry_idx == self.entry_idx {
            return self.results.first().copied();
        }
        let next_result = self.results.partition_point(|result| result.entry_idx <= entry_idx);
        let result = *self.results.get(next_result)?;
        let next_line = self.lines.partition_point(|line| *line <= entry_idx);
        let mut between = self.lines[next_line..].iter().take_while(|line| **line < result.entry_idx);
        let is_called_again = between.any(|line| session.in_tree(*line));
        (!is_called_again).then_some(result)
    }

    /// Returns whether a block is the last one in the log with this id. The sub-agents of a call are shown
    /// with this block only: if each of n nested sub-agents repeated its call, 2ⁿ would be shown otherwise.
    pub fn is_last_block(&self, entry_idx: EntryIndex, block_idx: usize, session: &Session) -> bool {
        let is_own = (self.entry_idx, self.block_idx as usize) == (entry_idx, block_idx);
        // A later reply may have used the id for another call.
        is_own && session.tool_call(&self.id).is_some_and(|last| std::ptr::eq(last, self))
    }

    /// Returns the outcome, determined from the first result.
    pub fn outcome(&self, session: &Session) -> ToolOutcome {
        self.outcome_of(self.results.first().copied(), session)
    }

    /// Returns the outcome according to one of the results.
    pub fn outcome_of(&self, result: Option<BlockPosition>, session: &Session) -> ToolOutcome {
        let Some((at, block)) = result.and_then(|at| Some((at, at.block(session)?))) else {
            return ToolOutcome::Missing;
        };
        let outcome = result_outcome(&session.entries()[at.entry_idx], block);
        // The result of an interrupted call can be the same as that of a denied one. A later line then
        // records the interruption of the reply.
        if outcome == ToolOutcome::Denied
            && is_denied_by_person(&session.entries()[at.entry_idx], block)
            && session.interrupted_at(self.reply).is_some()
        {
            return ToolOutcome::Interrupted;
        }
        outcome
    }

    /// Returns the time from the line of the call to the line of the result.
    pub fn duration(&self, session: &Session) -> Option<Millis> {
        let end = session.timestamp(self.results.first()?.entry_idx)?;
        Some((end - session.timestamp(self.entry_idx)?).max(0))
    }
}

/// Returns the outcome of a call from the line and the block of its result alone. An interrupted call whose
/// result is that of a denied one counts as denied.
pub fn result_outcome(entry: &Entry, block: Block<'_>) -> ToolOutcome {
    let record = record_of(entry, block);
    if record.and_then(|record| record.of::<BashResult<'_>>()?.interrupted()).unwrap_or(false) {
        return ToolOutcome::Interrupted;
    }
    if !block.is_error().unwrap_or(false) {
        return ToolOutcome::Ok;
    }
    let denial = denial_kind(entry);
    if denial.as_deref() == Some("interrupted") || begins_with(record, block, INTERRUPTED) {
        ToolOutcome::Interrupted
    } else if denial.is_some() || begins_with(record, block, DENIED) {
        ToolOutcome::Denied
    } else {
        ToolOutcome::Error
    }
}

/// Returns whether a person denied the call, not a permission rule, according to its result.
fn is_denied_by_person(entry: &Entry, block: Block<'_>) -> bool {
    let is_denied = || begins_with(record_of(entry, block), block, DENIED);
    denial_kind(entry).map_or_else(is_denied, |kind| kind == "user-rejected")
}

/// Returns the `toolUseResult` of a line, if the block is its first result, as [`BlockPosition::record`]
/// does.
fn record_of<'e>(entry: &'e Entry, block: Block<'e>) -> Option<ToolUseResult<'e>> {
    let record = entry.tool_use_result()?;
    let mut blocks = entry.message()?.blocks();
    let first = blocks.find(|block| block.is(value::TOOL_RESULT))?;
    std::ptr::eq(first.object().json().raw(), block.object().json().raw()).then_some(record)
}

fn denial_kind(entry: &Entry) -> Option<Cow<'_, str>> {
    entry.lens::<User<'_>>()?.tool_denial_kind()
}

fn begins_with(record: Option<ToolUseResult<'_>>, block: Block<'_>, prefixes: &[&str]) -> bool {
    let text = block.content().map(|content| content.text()).unwrap_or_default();
    let error = record.and_then(|record| record.error_text()).unwrap_or_default();
    prefixes.iter().any(|prefix| text.starts_with(prefix) || error.starts_with(prefix))
}

impl BlockPosition {
    /// Returns the `toolUseResult` of the line, if this is its first result: a line with the results of many
    /// calls has one at most.
    pub fn record<'s>(&self, session: &'s Session) -> Option<ToolUseResult<'s>> {
        session.entries()[self.entry_idx].tool_use_result().filter(|_| session.is_first_result(*self))
    }

    /// Returns the block at this position.
    pub fn block<'s>(&self, session: &'s Session) -> Option<Block<'s>> {
        session.block(self.entry_idx, self.block_idx as usize)
    }
}
