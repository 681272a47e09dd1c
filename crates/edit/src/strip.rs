//! Strips a session: removes large content that is not part of the dialogue.

mod image;
mod shorten;

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{AttachmentLine, Progress};
use threadline_entry::{Kind, key, value};
use threadline_session::{CallIndex, EntryIndex, ReplyIndex, Session, ToolCall, TurnIndex};

use crate::arrange;
use crate::draft::EditDraft;
use crate::sanitize::{is_thinking, pending_reply, remove_thinking};
use crate::splice::delete_key;

/// The content to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripOptions {
    /// Tool calls and their results.
    pub tools: Option<ToolStripOptions>,
    /// All thinking.
    pub thinking: bool,
    /// Images and documents, which are replaced by a placeholder.
    pub images: bool,
    /// Progress of tools, hooks and agents.
    pub progress: bool,
    /// Context attached by Claude Code; queued prompts stay.
    pub attachments: bool,
    /// File snapshots, which record the backups of files at each prompt.
    pub snapshots: bool,
}

/// The calls to remove or shorten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolStripOptions {
    /// Only calls of these tools; all tools if empty.
    pub names: Vec<String>,
    /// Only calls before the last `n` turns.
    pub older_than: Option<usize>,
    /// Not the calls of the last `n` turns that have calls. `older_than` also counts turns without calls.
    pub keep_last: Option<usize>,
    /// Shorten inputs and results instead of removing the calls.
    pub truncate: bool,
}

/// A named amount of content to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripPreset {
    /// Removes progress, and shortens long inputs and results before the last 20 turns with calls.
    Light,
    /// Also removes thinking and images, and shortens before the last 10 turns with calls.
    Standard,
    /// Also removes attachments, and removes the calls before the last 5 turns with calls.
    Heavy,
    /// Removes everything but the dialogue.
    Extreme,
}

impl StripPreset {
    /// Returns the content that the preset removes.
    pub fn options(self) -> StripOptions {
        let tools = |keep_last: usize, truncate: bool| {
            Some(ToolStripOptions { keep_last: Some(keep_last), truncate, ..ToolStripOptions::default() })
        };
        let light = StripOptions { tools: tools(20, true), progress: true, ..StripOptions::default() };
        match self {
            Self::Light => light,
            Self::Standard => StripOptions { tools: tools(10, true), thinking: true, images: true, ..light },
            Self::Heavy => StripOptions {
                tools: tools(5, false),
                thinking: true,
                images: true,
                attachments: true,
                ..light
            },
            Self::Extreme => StripOptions {
                tools: Some(ToolStripOptions::default()),
                thinking: true,
                images: true,
                progress: true,
                attachments: true,
                snapshots: true,
            },
        }
    }
}

/// Removes the selected content. `origin` is the path or name of the log with the full text, which the notes
/// in shortened texts show.
pub fn strip(draft: &mut EditDraft<'_>, what: &StripOptions, origin: &str) {
    if let Some(tools) = &what.tools {
        strip_tools(draft, tools, origin);
    }
    for (idx, entry) in draft.session.entries().enumerated() {
        let why = match entry.kind() {
            Kind::Progress if what.progress => "progress",
            Kind::FileHistorySnapshot | Kind::FileHistoryDelta if what.snapshots => "file snapshot",
            Kind::Attachment if what.attachments => {
                let body = entry.lens::<AttachmentLine<'_>>().and_then(AttachmentLine::attachment);
                if body.and_then(|body| body.kind()).as_deref() == Some(value::QUEUED_COMMAND) {
                    continue;
                }
                "attachment"
            }
            _ => continue,
        };
        if !draft.is_removed(idx) {
            draft.remove(idx, why);
        }
    }
    if what.images {
        image::strip(draft);
    }
    if what.thinking {
        strip_thinking(draft);
    }
}

fn strip_tools(draft: &mut EditDraft<'_>, tools: &ToolStripOptions, origin: &str) {
    let session = draft.session;
    let wanted = in_scope(session, tools);
    let calls: Vec<&ToolCall> = session
        .tool_calls()
        .enumerated()
        .filter(|(at, call)| {
            wanted.contains(at)
                && (tools.names.is_empty() || tools.names.iter().any(|name| call.name == **name))
        })
        .map(|(_, call)| call)
        .collect();
    if tools.truncate {
        return shorten::shorten_calls(draft, &calls, origin);
    }
    remove_calls(draft, &calls);
    let removed: HashSet<&str> = calls.iter().map(|call| &*call.id).collect();
    for (idx, entry) in session.entries().enumerated() {
        let progress = entry.lens::<Progress<'_>>().filter(|_| entry.kind() == Kind::Progress);
        let call = progress.and_then(Progress::parent_tool_use_id);
        if call.is_some_and(|call| removed.contains(&*call)) && !draft.is_removed(idx) {
            draft.remove(idx, "progress of a removed call");
        }
    }
}

/// Returns the indices of the calls in the selected turns.
fn in_scope(session: &Session, tools: &ToolStripOptions) -> HashSet<CallIndex> {
    let turns = session.turns();
    let mut turn_of: HashMap<EntryIndex, TurnIndex> = HashMap::default();
    for (index, turn) in turns.enumerated() {
        turn_of.extend(turn.entries.iter().map(|&idx| (idx, index)));
    }
    let turn = |call: &ToolCall| call.lines.iter().rev().find_map(|idx| turn_of.get(idx).copied());
    let mut with_calls: Vec<TurnIndex> = session.tool_calls().iter().filter_map(turn).collect();
    with_calls.sort_unstable();
    with_calls.dedup();
    let limited = tools.older_than.is_some() || tools.keep_last.is_some();
    let old_enough = |turn: TurnIndex| {
        tools.older_than.is_none_or(|n| turn.position() + n < turns.len())
            && tools.keep_last.is_none_or(|n| {
                let kept = with_calls.len().saturating_sub(n);
                with_calls.get(kept).is_none_or(|&first_kept| turn < first_kept)
            })
    };
    let calls = session.tool_calls().enumerated();
    // A call on an abandoned branch is in no turn.
    calls.filter(|(_, call)| turn(call).map_or(!limited, old_enough)).map(|(at, _)| at).collect()
}

/// Returns the blocks of the calls, with the index of the line and of the block, in file order.
fn call_blocks<'s>(session: &'s Session, calls: &[&'s ToolCall]) -> Vec<(EntryIndex, usize, &'s ToolCall)> {
    let wanted: HashSet<(EntryIndex, u32)> =
        calls.iter().map(|call| (call.entry_idx, call.block_idx)).collect();
    let lines: BTreeSet<EntryIndex> = calls.iter().flat_map(|call| call.lines.iter().copied()).collect();
    let mut found = Vec::new();
    for idx in lines {
        let blocks = session.entries()[idx].message().into_iter().flat_map(|message| message.blocks());
        for (block_idx, block) in blocks.enumerate().filter(|(_, block)| block.is(value::TOOL_USE)) {
            // The second block of a line with the same call is found by its id.
            let by_id = || session.call_index_on(idx, &block.id()?);
            let Some(call) = session.call_of_block(idx, block_idx).or_else(by_id) else { continue };
            let call = &session.tool_calls()[call];
            if wanted.contains(&(call.entry_idx, call.block_idx)) {
                found.push((idx, block_idx, call));
            }
        }
    }
    found
}

/// The lines that have results of calls, each with one of the calls.
fn result_lines<'s>(calls: &[&'s ToolCall]) -> BTreeMap<EntryIndex, &'s ToolCall> {
    let results = calls.iter().flat_map(|call| call.results.iter().map(|at| (at.entry_idx, *call)));
    results.collect()
}

/// Removes calls with their results.
fn remove_calls(draft: &mut EditDraft<'_>, calls: &[&ToolCall]) {
    let session = draft.session;
    for (idx, block_idx, call) in call_blocks(session, calls) {
        draft.remove_block(idx, block_idx, format!("call of {} removed", call.name));
    }
    for call in calls {
        for result in &call.results {
            draft.remove_block(
                result.entry_idx,
                result.block_idx as usize,
                format!("result of {} removed", call.name),
            );
        }
    }
    for (idx, call) in result_lines(calls) {
        if draft.is_removed(idx) {
            continue;
        }
        // A line does not record to which of its results this belongs.
        for splice in delete_key(&session.entries()[idx], key::TOOL_USE_RESULT) {
            draft.splice(idx, splice, format!("result of {} removed", call.name));
        }
    }
}

/// Removes all thinking, except in a reply that has yet to continue after its tool results: the API rejects
/// results for a reply without its signed thinking.
fn strip_thinking(draft: &mut EditDraft<'_>) {
    let session = draft.session;
    let pending = pending_reply(draft, &arrange::chain(session));
    let mut replies: Vec<ReplyIndex> = Vec::new();
    for (at, reply) in session.replies().enumerated() {
        let thinks = reply.entries.iter().any(|&idx| draft.blocks(idx).any(|(_, block)| is_thinking(block)));
        if thinks && Some(at) != pending {
            replies.push(at);
        }
    }
    for reply in replies {
        remove_thinking(draft, session.replies()[reply].entries[0], "thinking removed");
    }
}
