//! The items that each model call added to the window, with the lengths of their texts.

use rustc_hash::FxHashSet;
use threadline_entry::lens::{Block, Lens};
use threadline_entry::{Json, JsonKind, Kind, Millis, key, value};
use threadline_session::{EntryIndex, InputKind, ReplyIndex, Session, ToolCall};

use super::WindowPart;
use crate::outline::{notification_title, text_title};
use crate::transcript::{TurnTokens, anchor};
use crate::transcript_writer::notices;

/// The approximate number of tokens per image or document, as a number of bytes.
const IMAGE_BYTES: usize = 5400;

/// An item without known tokens.
pub(super) struct RawItem {
    pub(super) part: WindowPart,
    pub(super) label: String,
    pub(super) anchor: String,
    pub(super) bytes: usize,
    /// The call of a result.
    pub(super) call_id: Option<String>,
}

/// A model call with the items that were added since the previous one.
pub(super) struct RawCall {
    pub(super) reply: ReplyIndex,
    pub(super) entry_idx: EntryIndex,
    pub(super) at: Option<Millis>,
    pub(super) added: Vec<RawItem>,
    pub(super) is_compacted: bool,
}

/// The model calls of the active conversation.
pub(super) struct RawCalls {
    pub(super) calls: Vec<RawCall>,
    pub(super) n_unrecorded: usize,
}

impl RawCalls {
    pub(super) fn of(session: &Session) -> Self {
        let mut calls: Vec<RawCall> = Vec::new();
        let mut seen: FxHashSet<ReplyIndex> = FxHashSet::default();
        let (mut pending, mut is_compacted, mut last_at, mut n_unrecorded) = (Vec::new(), false, None, 0);
        for &idx in &session.thread().entries {
            let entry = &session.entries()[idx];
            if session.is_boundary(idx) {
                pending.clear();
                is_compacted = true;
                for idx in session.compaction_at(idx).preserved {
                    add_items(session, idx, &mut pending);
                }
                continue;
            }
            if let Some(reply) = session.reply_of(idx).filter(|reply| seen.insert(*reply)) {
                let usage = session.replies()[reply].usage(session).map(TurnTokens::of);
                if session.replies()[reply].is_synthetic() {
                    continue;
                }
                if usage.is_some_and(|tokens| tokens.context() > 0) {
                    let at = last_at.or_else(|| session.timestamp(idx));
                    let added = std::mem::take(&mut pending);
                    calls.push(RawCall { reply, entry_idx: idx, at, added, is_compacted });
                    is_compacted = false;
                } else {
                    n_unrecorded += 1;
                }
            }
            if entry.kind() != Kind::Assistant {
                last_at = session.timestamp(idx).or(last_at);
            }
            add_items(session, idx, &mut pending);
        }
        Self { calls, n_unrecorded }
    }
}

/// Appends the items of a line.
fn add_items(session: &Session, idx: EntryIndex, items: &mut Vec<RawItem>) {
    let entry = &session.entries()[idx];
    let line_no = entry.at().line_no;
    match entry.kind() {
        Kind::User | Kind::Assistant => {
            let Some(content) = entry.message().and_then(|message| message.content()) else { return };
            if let Some(text) = content.as_str() {
                let (part, label) = text_part(session, idx, &text);
                let bytes = text.len();
                return items.push(RawItem { part, label, anchor: anchor(line_no, 0), bytes, call_id: None });
            }
            for (at, block) in content.blocks().enumerate() {
                let Some((part, label, bytes, call_id)) = block_item(session, idx, block) else { continue };
                // A result is shown with its call.
                let call = call_id.as_ref().and_then(|id| session.tool_call(id));
                let anchor = call.map_or_else(
                    || anchor(line_no, at),
                    |call| anchor(session.entries()[call.entry_idx].at().line_no, call.block_idx as usize),
                );
                items.push(RawItem { part, label, anchor, bytes, call_id });
            }
        }
        Kind::Attachment => {
            let bytes = entry.get(key::ATTACHMENT).map_or(0, |json| json.raw().len());
            let label =
                entry.get(key::ATTACHMENT).and_then(|json| Some(json.get(key::TYPE)?.as_str()?.into_owned()));
            let label = label.unwrap_or_default().replace('_', " ");
            let part = WindowPart::Attachments;
            items.push(RawItem { part, label, anchor: anchor(line_no, 0), bytes, call_id: None });
        }
        _ => {}
    }
}

/// Returns the part of the window that a text belongs to, and a label.
fn text_part(session: &Session, idx: EntryIndex, text: &str) -> (WindowPart, String) {
    let part = match session.input(idx) {
        Some(InputKind::CompactSummary) => WindowPart::Summary,
        Some(InputKind::Meta | InputKind::CommandOutput | InputKind::BashOutput) => WindowPart::Attachments,
        _ => WindowPart::Prompts,
    };
    if session.input(idx).is_some_and(InputKind::is_task_notification) {
        let notice = notices(text);
        let title = notification_title(text_title(notice.as_deref().unwrap_or(text)));
        return (part, one_line(&title, 60));
    }
    (part, one_line(text, 60))
}

type BlockItem = (WindowPart, String, usize, Option<String>);

fn block_item(session: &Session, idx: EntryIndex, block: Block<'_>) -> Option<BlockItem> {
    let object = block.object();
    let length = |key: &str| object.get(key).map_or(0, |json| json.raw().len());
    let is_reply = session.entries()[idx].kind() == Kind::Assistant;
    Some(match block.kind()?.as_ref() {
        value::TOOL_RESULT => {
            let id = block.tool_use_id()?.into_owned();
            let call = session.tool_call(&id);
            let tool = call.map_or_else(|| "?".to_owned(), |call| call.name.to_string());
            let label = call.map(|call| call_subject(session, call)).unwrap_or_default();
            let bytes = object.get(key::CONTENT).map_or(0, content_bytes);
            (WindowPart::Results(tool), label, bytes, Some(id))
        }
        value::TOOL_USE => {
            let id = object.get(key::ID).and_then(|id| Some(id.as_str()?.into_owned()));
            let call = id.as_ref().and_then(|id| session.tool_call(id));
            let label = call.map(|call| format!("{} {}", call.name, call_subject(session, call)));
            (WindowPart::Calls, label.unwrap_or_default(), length(key::NAME) + length(key::INPUT), None)
        }
        value::IMAGE | value::DOCUMENT => (WindowPart::Attachments, "image".to_owned(), IMAGE_BYTES, None),
        value::THINKING | value::REDACTED_THINKING => {
            // Without its text, only the signature shows how long the thinking was.
            let bytes = length(key::THINKING).max(length("signature")).max(length(key::DATA));
            (WindowPart::Thinking, "thinking".to_owned(), bytes, None)
        }
        _ if is_reply => {
            let text = block.text().unwrap_or_default();
            (WindowPart::Replies, one_line(&text, 60), length(key::TEXT), None)
        }
        _ => {
            let text = block.text().unwrap_or_default();
            let (part, label) = text_part(session, idx, &text);
            (part, label, length(key::TEXT), None)
        }
    })
}

/// Returns the length of a tool result, with a fixed length for each image.
fn content_bytes(content: Json<'_>) -> usize {
    if content.kind() != JsonKind::Array {
        return content.raw().len();
    }
    let is_image = |item: &Json<'_>| {
        item.get(key::TYPE).is_some_and(|kind| kind.is_str(value::IMAGE) || kind.is_str(value::DOCUMENT))
    };
    content.items().map(|item| if is_image(&item) { IMAGE_BYTES } else { item.raw().len() }).sum()
}

/// Returns the beginning of a text, on one line of at most `max` characters.
fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    let mut n_chars = 0;
    for word in text.split_whitespace() {
        for c in (if line.is_empty() { "" } else { " " }).chars().chain(word.chars()) {
            n_chars += 1;
            if n_chars > max {
                line.push('…');
                return line;
            }
            line.push(c);
        }
    }
    line
}

/// Inputs that name the subject of a call, in order of preference.
const SUBJECTS: [&str; 9] =
    ["file_path", "notebook_path", "command", "pattern", "url", "query", "description", "path", "prompt"];

fn call_subject(session: &Session, call: &ToolCall) -> String {
    let input = call.block(session).and_then(|block| block.input());
    let subject = input.and_then(|input| {
        SUBJECTS.iter().find_map(|key| input.get(key)?.as_str()).map(|text| one_line(&text, 60))
    });
    subject.unwrap_or_default()
}
