//! Removes content that the API would reject, so that sessions with defects can be edited too.
//!
//! Claude Code skips the same content on resume, but each version in a different way.

use std::borrow::Cow;
use std::ops::Range;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{Block, Lens};
use threadline_entry::{Entry, Kind, has_lone_surrogate, key, value};

use threadline_session::{EntryIndex, ReplyIndex};

use crate::arrange::{answered_reply, is_boundary};
use crate::draft::{EditDraft, LineContent};
use crate::splice::{Splice, span};

pub(crate) fn sanitize(draft: &mut EditDraft<'_>, chain: &[EntryIndex]) {
    for &idx in chain {
        replace_invalid_text(draft, idx);
        remove_empty(draft, idx);
    }
    let mut start = 0;
    for end in 0..=chain.len() {
        if end == chain.len() || is_boundary(&draft.session.entries()[chain[end]]) {
            sanitize_segment(draft, &chain[start..end]);
            start = end;
        }
    }
    remove_pending_replies(draft, chain);
}

/// Returns the reply whose tool results end the conversation, so that the model has yet to continue it.
pub(crate) fn pending_reply(draft: &EditDraft<'_>, chain: &[EntryIndex]) -> Option<ReplyIndex> {
    pending_line(draft, chain, &mut HashSet::default()).map(|(_, reply)| reply)
}

/// Returns the pending reply, and the position of its last line. `answered` contains the replies that are
/// answered after the end of `chain`, and gets those that are answered in it.
fn pending_line(
    draft: &EditDraft<'_>,
    chain: &[EntryIndex],
    answered: &mut HashSet<ReplyIndex>,
) -> Option<(usize, ReplyIndex)> {
    let session = draft.session;
    for (at, &idx) in chain.iter().enumerate().rev().filter(|&(_, &idx)| !draft.is_removed(idx)) {
        let entry = &session.entries()[idx];
        match entry.kind() {
            Kind::Assistant if entry.is_api_error() => {}
            Kind::Assistant => {
                return session
                    .reply_of(idx)
                    .filter(|reply| answered.contains(reply))
                    .map(|reply| (at, reply));
            }
            Kind::User => {
                let text = entry.message()?.content()?.as_str().is_some();
                if text || draft.blocks(idx).any(|(_, block)| !block.is(value::TOOL_RESULT)) {
                    return None;
                }
                // A result without a call is removed later.
                answered.extend(answered_reply(session, idx));
            }
            Kind::System if is_local_command(entry) => return None,
            _ => {}
        }
    }
    None
}

/// Removes a pending reply that has lost its thinking, with its results, and then the one before, if it is
/// pending now. The API requires the thinking blocks of a reply that is continued after tool results.
fn remove_pending_replies(draft: &mut EditDraft<'_>, chain: &[EntryIndex]) {
    let session = draft.session;
    let mut end = chain.len();
    let mut answered = HashSet::default();
    // The lines of each reply, and those that answer it.
    let mut lines_of: Option<HashMap<ReplyIndex, Vec<EntryIndex>>> = None;
    while let Some((at, reply)) = pending_line(draft, &chain[..end], &mut answered) {
        end = at;
        let lines = &session.replies()[reply].entries;
        let thinks = |idx: EntryIndex| {
            session.entries()[idx].message().is_some_and(|message| message.blocks().any(is_thinking))
        };
        let still = |&idx: &EntryIndex| draft.blocks(idx).any(|(_, block)| is_thinking(block));
        if !lines.iter().any(|&idx| thinks(idx)) || lines.iter().any(still) {
            return;
        }
        let lines_of = lines_of.get_or_insert_with(|| {
            let mut lines_of: HashMap<ReplyIndex, Vec<EntryIndex>> = HashMap::default();
            for &idx in chain {
                for reply in [session.reply_of(idx), answered_reply(session, idx)].into_iter().flatten() {
                    lines_of.entry(reply).or_default().push(idx);
                }
            }
            lines_of
        });
        for idx in lines_of.remove(&reply).unwrap_or_default() {
            if !draft.is_removed(idx) {
                draft.remove(idx, PENDING_REPLY_REASON);
            }
        }
    }
}

/// The reason for lines removed by `remove_pending_replies`.
const PENDING_REPLY_REASON: &str = "pending reply without its thinking";

/// Repairs the lines between two compaction boundaries.
fn sanitize_segment(draft: &mut EditDraft<'_>, lines: &[EntryIndex]) {
    remove_before_first_prompt(draft, lines);
    // The line and the block of each call, and whether it has a result.
    let mut calls: HashMap<Cow<'_, str>, (EntryIndex, u32, bool)> = HashMap::default();
    let mut again: Vec<(EntryIndex, usize)> = Vec::new();
    let mut orphans: Vec<(EntryIndex, usize)> = Vec::new();
    for &idx in lines.iter().filter(|&&idx| is_message(draft, idx)) {
        for (block_idx, block) in draft.blocks(idx) {
            if block.is(value::TOOL_USE) {
                let id = block.id().unwrap_or_default();
                if calls.contains_key(&id) || id.is_empty() {
                    again.push((idx, block_idx));
                } else {
                    calls.insert(id, (idx, block_idx as u32, false));
                }
            } else if block.is(value::TOOL_RESULT) {
                match block.tool_use_id().and_then(|id| calls.get_mut(&*id)) {
                    Some((_, _, answered)) if !*answered => *answered = true,
                    _ => orphans.push((idx, block_idx)),
                }
            }
        }
    }
    for (idx, block_idx) in again {
        draft.remove_block(idx, block_idx, "duplicate tool call");
    }
    for (idx, block_idx) in orphans {
        draft.remove_block(idx, block_idx, "tool result without a call");
    }
    let mut unanswered: Vec<(EntryIndex, usize)> = calls
        .into_values()
        .filter(|(_, _, answered)| !answered)
        .map(|(idx, block_idx, _)| (idx, block_idx as usize))
        .collect();
    unanswered.sort_unstable();
    for (idx, block_idx) in unanswered {
        draft.remove_block(idx, block_idx, "tool call without a result");
    }
    let loses = |idx: EntryIndex| draft.is_removed(idx) || !draft.line_edit(idx).removed_blocks.is_empty();
    let touched =
        lines.iter().filter(|&&idx| loses(idx)).filter_map(|&idx| draft.session.reply_of(idx)).collect();
    remove_lone_thinking(draft, lines, &touched);
}

/// Returns whether an entry is sent as a message.
fn is_message(draft: &EditDraft<'_>, idx: EntryIndex) -> bool {
    let entry = &draft.session.entries()[idx];
    matches!(entry.kind(), Kind::User | Kind::Assistant) && !entry.is_api_error()
}

/// Removes replies and orphan results before the first user message, as in a log with a missing head.
fn remove_before_first_prompt(draft: &mut EditDraft<'_>, lines: &[EntryIndex]) {
    let session = draft.session;
    let asks = |draft: &EditDraft<'_>, idx: EntryIndex| {
        let entry = &session.entries()[idx];
        let local = is_local_command(entry);
        let content = || entry.message().and_then(|message| message.content());
        !draft.is_removed(idx)
            && (local
                || entry.kind() == Kind::User
                    && (content().is_some_and(|content| content.as_str().is_some())
                        || draft.blocks(idx).any(|(_, block)| !block.is(value::TOOL_RESULT))))
    };
    // Without any user message, nothing would remain.
    let Some(first) = lines.iter().position(|&idx| asks(draft, idx)) else {
        draft.no_user_message = true;
        return;
    };
    for &idx in &lines[..first] {
        if is_message(draft, idx) && !draft.is_removed(idx) {
            draft.remove(idx, "precedes the first prompt");
        }
    }
}

/// Returns whether an entry is the output of a local command, which is sent as a user message.
pub(crate) fn is_local_command(entry: &Entry) -> bool {
    entry.kind() == Kind::System
        && entry.get(key::SUBTYPE).is_some_and(|json| json.is_str(value::LOCAL_COMMAND))
}

/// Removes messages and text blocks without content.
pub(crate) fn remove_empty(draft: &mut EditDraft<'_>, idx: EntryIndex) {
    if !is_message(draft, idx)
        || draft.is_removed(idx)
        || matches!(draft.line_edit(idx).content, LineContent::Replaced(_))
    {
        return;
    }
    let entry = &draft.session.entries()[idx];
    let Some(content) = entry.message().and_then(|message| message.content()) else {
        return draft.remove(idx, "empty message");
    };
    if let Some(text) = content.as_str() {
        if text.trim().is_empty() {
            draft.remove(idx, "empty message");
        }
        return;
    }
    let white: Vec<usize> = draft
        .blocks(idx)
        .filter(|(_, block)| block.is(value::TEXT) && block.text().is_none_or(|text| text.trim().is_empty()))
        .map(|(block_idx, _)| block_idx)
        .collect();
    for block_idx in white {
        draft.remove_block(idx, block_idx, "empty text block");
    }
    if !draft.is_removed(idx) && content.blocks().next().is_none() {
        draft.remove(idx, "empty message");
    }
}

/// Removes the rest of replies that lost a block, if only thinking remains.
fn remove_lone_thinking(draft: &mut EditDraft<'_>, lines: &[EntryIndex], replies: &HashSet<ReplyIndex>) {
    let of = |idx: EntryIndex| draft.session.reply_of(idx).filter(|reply| replies.contains(reply));
    let mut speaking: HashSet<ReplyIndex> = HashSet::default();
    for &idx in lines {
        if let Some(reply) = of(idx)
            && draft.blocks(idx).any(|(_, block)| !is_thinking(block))
        {
            speaking.insert(reply);
        }
    }
    let silent: Vec<EntryIndex> = lines
        .iter()
        .copied()
        .filter(|&idx| !draft.is_removed(idx) && of(idx).is_some_and(|reply| !speaking.contains(&reply)))
        .collect();
    for idx in silent {
        draft.remove(idx, "thinking of a removed reply");
    }
}

/// Replaces lone surrogates and invalid UTF-8.
pub(crate) fn replace_invalid_text(draft: &mut EditDraft<'_>, idx: EntryIndex) {
    let entry = &draft.session.entries()[idx];
    if matches!(draft.line_edit(idx).content, LineContent::Replaced(_)) {
        return;
    }
    if std::str::from_utf8(entry.as_bytes()).is_err() {
        let text = entry.text().to_owned();
        return draft.rewrite(idx, &text, "invalid UTF-8 replaced");
    }
    if !has_lone_surrogate(entry.text()) {
        return;
    }
    let text = entry.text();
    let halves = lone_surrogates(text);
    let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
    let mut thoughts =
        blocks.filter(|block| is_thinking(*block)).map(|block| span(text, block.object().json().raw()));
    let has_half = |thought: Range<usize>| {
        let next = halves.partition_point(|half| *half < thought.start);
        halves.get(next).is_some_and(|half| thought.contains(half))
    };
    if thoughts.any(has_half) {
        remove_thinking(draft, idx, "thinking with unpaired surrogates");
    }
    for start in halves {
        draft.splice(idx, Splice::new(start..start + 6, "\u{fffd}"), "unpaired surrogates replaced");
    }
}

/// Returns whether a block contains thinking.
pub(crate) fn is_thinking(block: Block<'_>) -> bool {
    block.is(value::THINKING) || block.is(value::REDACTED_THINKING)
}

/// Removes all thinking of the reply that an entry belongs to. Part of it would not match its signature.
pub(crate) fn remove_thinking(draft: &mut EditDraft<'_>, idx: EntryIndex, why: &'static str) {
    let Some(reply) = draft.session.reply_of(idx) else { return };
    // Each line of a reply may ask for it.
    if !draft.without_thinking.insert(reply) {
        return;
    }
    for &idx in &draft.session.replies()[reply].entries {
        let thoughts: Vec<usize> = draft
            .blocks(idx)
            .filter(|(_, block)| is_thinking(*block))
            .map(|(block_idx, _)| block_idx)
            .collect();
        for block_idx in thoughts {
            draft.remove_block(idx, block_idx, why);
        }
    }
}

/// Returns the offsets of escaped surrogates that are not part of a pair.
fn lone_surrogates(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let digits = bytes.get(at + 2..at + 6).filter(|_| bytes[at..].starts_with(b"\\u"))?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(hit) = memchr::memchr(b'\\', &bytes[at..]) {
        at += hit;
        match unit(at) {
            Some(0xD800..0xDC00) if matches!(unit(at + 6), Some(0xDC00..0xE000)) => at += 12,
            Some(0xD800..0xE000) => {
                found.push(at);
                at += 6;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
        at = at.min(bytes.len());
    }
    found
}
