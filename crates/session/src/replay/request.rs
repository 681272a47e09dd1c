//! Messages that the API accepts, made of the lines of a conversation.

use std::borrow::Cow;

use rustc_hash::FxHashSet;
use threadline_entry::lens::System;
use threadline_entry::{Entry, Kind};

use super::{ReplayBlock, ReplayMessage, Role};
use crate::session::Session;

/// A message in the making.
struct Draft<'s> {
    role: Role,
    /// The reply that an assistant message is.
    id: Option<Cow<'s, str>>,
    content: Vec<ReplayBlock<'s>>,
}

impl Draft<'_> {
    fn has_result(&self) -> bool {
        self.content.iter().any(|block| block.is("tool_result"))
    }
}

/// The messages of a request whose conversation stands on the lines of `path`.
pub(super) fn messages<'s>(session: &'s Session, path: &[usize]) -> Vec<ReplayMessage<'s>> {
    let mut lines: Vec<&Entry> = path.iter().map(|&idx| &session.entries()[idx]).collect();
    drop_unanswered(&mut lines);
    drop_empty(&mut lines);
    let mut drafts = draft(&lines, last_model(session).as_deref());
    for draft in &mut drafts {
        calls_last(draft);
    }
    drafts.retain(|draft| draft.role == Role::User || !is_hollow(&draft.content));
    let drafts = pair(merge_users(drafts));
    drafts.into_iter().map(|draft| ReplayMessage { role: draft.role, content: draft.content }).collect()
}

/// The model that answered last; a resume goes on with it.
fn last_model(session: &Session) -> Option<Cow<'_, str>> {
    let lines = session.entries().iter().enumerate().rev();
    let mut replies = lines.filter(|(idx, entry)| {
        entry.kind() == Kind::Assistant && !entry.is_glued() && !session.is_sidechain(*idx)
    });
    replies.find_map(|(_, entry)| entry.message()?.model().filter(|model| !model.starts_with('<')))
}

/// The blocks of a line; a string is one block of text.
fn blocks(entry: &Entry) -> Vec<ReplayBlock<'_>> {
    let Some(content) = entry.message().and_then(|message| message.content()) else { return Vec::new() };
    match content.as_str() {
        Some(text) => vec![ReplayBlock::Text(text)],
        None => content.json().items().filter(|item| item.is_object()).map(ReplayBlock::Raw).collect(),
    }
}

/// Leaves out lines that make calls of which none was ever answered, texts and all.
fn drop_unanswered(lines: &mut Vec<&Entry>) {
    let mut answered = FxHashSet::default();
    for entry in lines.iter().filter(|entry| entry.kind() == Kind::User) {
        answered.extend(blocks(entry).iter().filter(|block| block.is("tool_result")).filter_map(|b| b.field("tool_use_id")));
    }
    lines.retain(|entry| {
        if entry.kind() != Kind::Assistant {
            return true;
        }
        let blocks = blocks(entry);
        let mut calls = blocks.iter().filter(|block| block.is("tool_use")).peekable();
        calls.peek().is_none() || calls.any(|call| call.field("id").is_some_and(|id| answered.contains(&id)))
    });
}

/// Leaves out lines that say nothing: white space, and thinking that led to nothing.
fn drop_empty(lines: &mut Vec<&Entry>) {
    let is_thinking = |block: &ReplayBlock<'_>| block.is("thinking") || block.is("redacted_thinking");
    let id = |entry: &Entry| entry.message().and_then(|message| message.id()).map(Cow::into_owned);
    let mut spoken = FxHashSet::default();
    for entry in lines.iter().filter(|entry| entry.kind() == Kind::Assistant) {
        if blocks(entry).iter().any(|block| !is_thinking(block)) {
            spoken.extend(id(entry));
        }
    }
    lines.retain(|entry| {
        if entry.kind() != Kind::Assistant {
            return true;
        }
        let blocks = blocks(entry);
        let silent = !blocks.is_empty() && blocks.iter().all(is_thinking);
        let white = !blocks.is_empty() && blocks.iter().all(is_white);
        !white && (!silent || id(entry).is_some_and(|id| spoken.contains(&id)))
    });
}

fn is_white(block: &ReplayBlock<'_>) -> bool {
    block.is("text") && block.field("text").is_none_or(|text| text.trim().is_empty())
}

fn is_hollow(blocks: &[ReplayBlock<'_>]) -> bool {
    blocks.iter().all(|block| block.is("thinking") || block.is("redacted_thinking") || is_white(block))
}

/// Puts the lines together: lines of a reply become one message, and so do user lines in a row.
fn draft<'s>(lines: &[&'s Entry], model: Option<&str>) -> Vec<Draft<'s>> {
    let mut drafts: Vec<Draft<'s>> = Vec::new();
    for entry in lines {
        match entry.kind() {
            Kind::User => push_user(&mut drafts, blocks(entry)),
            Kind::System => {
                let system: Option<System<'s>> = entry.lens();
                if system.and_then(System::subtype).as_deref() == Some("local_command") {
                    let text = system.and_then(System::content).unwrap_or_default();
                    push_user(&mut drafts, vec![ReplayBlock::Text(text)]);
                }
            }
            Kind::Assistant => push_assistant(&mut drafts, entry, model),
            _ => {}
        }
    }
    drafts
}

fn push_user<'s>(drafts: &mut Vec<Draft<'s>>, content: Vec<ReplayBlock<'s>>) {
    match drafts.last_mut().filter(|draft| draft.role == Role::User) {
        Some(draft) => {
            draft.content.extend(content);
            results_first(draft);
        }
        None => drafts.push(Draft { role: Role::User, id: None, content }),
    }
}

/// Within a user message, results come before anything else.
fn results_first(draft: &mut Draft<'_>) {
    draft.content.sort_by_key(|block| !block.is("tool_result"));
}

fn push_assistant<'s>(drafts: &mut Vec<Draft<'s>>, entry: &'s Entry, model: Option<&str>) {
    let Some(message) = entry.message() else { return };
    let own = message.model();
    if own.as_deref() == Some("<synthetic>") && entry.flag("isApiErrorMessage") {
        return;
    }
    // What a model thought is for its own eyes.
    let foreign = own.as_deref() != model;
    let mut content = blocks(entry);
    content.retain(|block| {
        !(block.is("fallback") || (foreign && (block.is("thinking") || block.is("redacted_thinking"))))
    });
    let id = message.id();
    let mut back = drafts.iter().rposition(|_| true);
    while let Some(at) = back {
        let draft = &drafts[at];
        match draft.role {
            Role::Assistant if draft.id.is_some() && draft.id == id => {
                drafts[at].content.extend(content);
                return;
            }
            Role::User if !draft.has_result() => break,
            _ => back = at.checked_sub(1),
        }
    }
    drafts.push(Draft { role: Role::Assistant, id, content });
}

/// Where something stands behind a call, all calls go behind it.
fn calls_last(draft: &mut Draft<'_>) {
    if draft.role != Role::Assistant {
        return;
    }
    let is_call = |block: &ReplayBlock<'_>| block.is("tool_use");
    let first = draft.content.iter().position(is_call).unwrap_or(draft.content.len());
    let odd = |block: &ReplayBlock<'_>| !is_call(block) && !block.is("thinking") && !block.is("redacted_thinking");
    if draft.content[first..].iter().any(odd) {
        draft.content.sort_by_key(is_call);
    }
}

/// User messages that have come to stand in a row become one.
fn merge_users(drafts: Vec<Draft<'_>>) -> Vec<Draft<'_>> {
    let mut merged: Vec<Draft<'_>> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        match draft.role {
            Role::User => push_user(&mut merged, draft.content),
            Role::Assistant => merged.push(draft),
        }
    }
    merged
}

/// Makes calls and results fit: each call once, each with one result in the message that follows.
fn pair(mut drafts: Vec<Draft<'_>>) -> Vec<Draft<'_>> {
    let mut seen: FxHashSet<String> = FxHashSet::default();
    for at in 0..drafts.len() {
        if drafts[at].role != Role::Assistant {
            // A result in the first message answers nothing.
            if at == 0 {
                drafts[at].content.retain(|block| !block.is("tool_result"));
            }
            continue;
        }
        let content = &mut drafts[at].content;
        content.retain(|block| !block.is("tool_use") || block.field("id").is_none_or(|id| seen.insert(id.into())));
        if content.is_empty() {
            content.push(ReplayBlock::Text("[Tool use interrupted]".into()));
        }
        let calls: Vec<String> =
            content.iter().filter(|b| b.is("tool_use")).filter_map(|b| Some(b.field("id")?.into_owned())).collect();
        match drafts.get_mut(at + 1).filter(|next| next.role == Role::User) {
            Some(next) => answer(next, &calls),
            None if !calls.is_empty() => {
                let mut next = Draft { role: Role::User, id: None, content: Vec::new() };
                answer(&mut next, &calls);
                drafts.insert(at + 1, next);
            }
            None => {}
        }
    }
    drafts.retain(|draft| !draft.content.is_empty());
    drafts
}

/// Keeps one result for each of `calls` and no other; a call without one gets an error in its place.
fn answer(draft: &mut Draft<'_>, calls: &[String]) {
    let mut open: Vec<&String> = calls.iter().collect();
    draft.content.retain(|block| {
        if !block.is("tool_result") {
            return true;
        }
        let id = block.field("tool_use_id").unwrap_or_default();
        match open.iter().position(|call| **call == id) {
            Some(at) => {
                open.remove(at);
                true
            }
            None => false,
        }
    });
    let missing = open.into_iter().map(|call| ReplayBlock::MissingResult(call.clone().into()));
    draft.content.splice(0..0, missing);
}
