//! Stripping: takes out of a session what makes it large and is not said by anybody.

mod image;
mod shorten;

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_entry::Kind;
use threadline_entry::lens::{AttachmentLine, Progress};
use threadline_session::{Session, ToolCall};

use crate::arrange;
use crate::draft::Draft;
use crate::mend::{drop_thinking, is_thought, waiting_reply};
use crate::splice::without;

/// What to take out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strip {
    /// Calls and their results.
    pub tools: Option<Tools>,
    /// What the model thought, whole.
    pub thinking: bool,
    /// Images and documents, for which a word stays.
    pub images: bool,
    /// What tools, hooks and agents reported while they ran.
    pub progress: bool,
    /// Context that Claude Code attached; prompts that were queued stay.
    pub attachments: bool,
    /// Which backups hold the files as they were at a prompt.
    pub snapshots: bool,
}

/// Which calls, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Only of these tools; of all, if none is named.
    pub names: Vec<String>,
    /// Only in turns before the last so many.
    pub older_than: Option<usize>,
    /// Not in the last so many of the turns that have calls.
    pub keep_last: Option<usize>,
    /// Shorten what they were given and returned, rather than take them out.
    pub truncate: bool,
}

/// How much to take out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// What nobody reads again: progress; long output of all but the last 20 turns with tools is shortened.
    Light,
    /// Thinking and images too, and long output of all but the last 10 turns with tools.
    Standard,
    /// The calls of all but the last 5 turns with tools are gone, and so are attachments.
    Heavy,
    /// Nothing is left but what was said.
    Extreme,
}

impl Preset {
    /// What it takes out.
    pub fn strip(self) -> Strip {
        let tools = |keep_last: usize, truncate: bool| {
            Some(Tools { keep_last: Some(keep_last), truncate, ..Tools::default() })
        };
        let light = Strip { tools: tools(20, true), progress: true, ..Strip::default() };
        match self {
            Self::Light => light,
            Self::Standard => Strip { tools: tools(10, true), thinking: true, images: true, ..light },
            Self::Heavy => {
                Strip { tools: tools(5, false), thinking: true, images: true, attachments: true, ..light }
            }
            Self::Extreme => Strip {
                tools: Some(Tools::default()),
                thinking: true,
                images: true,
                progress: true,
                attachments: true,
                snapshots: true,
            },
        }
    }
}

/// Takes out what is asked for. `origin` says where the whole text is of what is shortened.
pub fn strip(draft: &mut Draft<'_>, what: &Strip, origin: &str) {
    if let Some(tools) = &what.tools {
        strip_tools(draft, tools, origin);
    }
    for (idx, entry) in draft.session.entries().iter().enumerate() {
        let why = match entry.kind() {
            Kind::Progress if what.progress => "progress",
            Kind::FileHistorySnapshot | Kind::FileHistoryDelta if what.snapshots => "a snapshot of files",
            Kind::Attachment if what.attachments => {
                let body = entry.lens::<AttachmentLine<'_>>().and_then(AttachmentLine::attachment);
                if body.and_then(|body| body.kind()).as_deref() == Some("queued_command") {
                    continue;
                }
                "an attachment"
            }
            _ => continue,
        };
        if !draft.goes(idx) {
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

fn strip_tools(draft: &mut Draft<'_>, tools: &Tools, origin: &str) {
    let session = draft.session;
    let wanted = in_scope(session, tools);
    let mut removed: FxHashSet<&str> = FxHashSet::default();
    for (at, call) in session.tool_calls().iter().enumerate() {
        let named = tools.names.is_empty() || tools.names.contains(&call.name);
        if !named || !wanted.contains(&at) {
            continue;
        }
        if tools.truncate {
            shorten::call(draft, call, origin);
        } else {
            remove_call(draft, call);
            removed.insert(&call.id);
        }
    }
    for (idx, entry) in session.entries().iter().enumerate().filter(|_| !removed.is_empty()) {
        let progress = entry.lens::<Progress<'_>>().filter(|_| entry.kind() == Kind::Progress);
        let call = progress.and_then(Progress::parent_tool_use_id);
        if call.is_some_and(|call| removed.contains(&*call)) && !draft.goes(idx) {
            draft.remove(idx, "progress of a call that goes");
        }
    }
}

/// The calls that the turns ask for, by their places.
fn in_scope(session: &Session, tools: &Tools) -> FxHashSet<usize> {
    let turns = session.turns();
    let mut turn_of: FxHashMap<usize, usize> = FxHashMap::default();
    for (number, turn) in turns.iter().enumerate() {
        turn_of.extend(turn.entries.iter().map(|&idx| (idx, number)));
    }
    let turn = |call: &ToolCall| call.lines().find_map(|idx| turn_of.get(&idx).copied());
    let mut with_calls: Vec<usize> = session.tool_calls().iter().filter_map(turn).collect();
    with_calls.sort_unstable();
    with_calls.dedup();
    let limited = tools.older_than.is_some() || tools.keep_last.is_some();
    let old_enough = |turn: usize| {
        tools.older_than.is_none_or(|n| turn + n < turns.len())
            && tools.keep_last.is_none_or(|n| {
                let kept = with_calls.len().saturating_sub(n);
                with_calls.get(kept).is_none_or(|&first_kept| turn < first_kept)
            })
    };
    let calls = session.tool_calls().iter().enumerate();
    // A call of a branch that was left is in no turn.
    calls.filter(|(_, call)| turn(call).map_or(!limited, old_enough)).map(|(at, _)| at).collect()
}

/// A line with more blocks than this has very many.
const MANY_BLOCKS: usize = 64;

/// Takes out a call with its results.
fn remove_call(draft: &mut Draft<'_>, call: &ToolCall) {
    let session = draft.session;
    for idx in call.lines() {
        let entry = &session.entries()[idx];
        // Of very many blocks, only the call's own is looked at: all of them for each would take too long.
        let is_wide = entry.message().is_some_and(|message| message.blocks().nth(MANY_BLOCKS).is_some());
        if is_wide && idx == call.entry_idx {
            draft.remove_block(idx, call.block_idx, format!("a call of {}", call.name));
            continue;
        }
        let blocks: Vec<usize> = entry
            .message()
            .into_iter()
            .flat_map(|message| message.blocks())
            .enumerate()
            .filter(|(_, block)| block.is("tool_use") && block.id().is_some_and(|id| id == call.id))
            .map(|(block_idx, _)| block_idx)
            .collect();
        for block_idx in blocks {
            draft.remove_block(idx, block_idx, format!("a call of {}", call.name));
        }
    }
    for result in &call.results {
        draft.remove_block(result.entry_idx, result.block_idx, format!("a result of {}", call.name));
        if !draft.goes(result.entry_idx) {
            let entry = &session.entries()[result.entry_idx];
            let members = entry.object().map(|object| object.json());
            for splice in members
                .into_iter()
                .flat_map(|members| without(entry.text(), members, |_, key, _| key == Some("toolUseResult")))
            {
                draft.splice(result.entry_idx, splice, format!("a result of {}", call.name));
            }
        }
    }
}

/// Takes out all thinking, but for that of a reply that has yet to go on with its results.
fn strip_thinking(draft: &mut Draft<'_>) {
    let session = draft.session;
    let waiting = waiting_reply(draft, &arrange::chain(session));
    let mut replies: Vec<usize> = Vec::new();
    for (at, reply) in session.replies().iter().enumerate() {
        let thinks = reply.entries.iter().any(|&idx| draft.blocks(idx).any(|(_, block)| is_thought(block)));
        if thinks && Some(at) != waiting {
            replies.push(at);
        }
    }
    for reply in replies {
        drop_thinking(draft, session.replies()[reply].entries[0], "thinking");
    }
}
