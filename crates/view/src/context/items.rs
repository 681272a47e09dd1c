//! The items that each model call added to the window, with the lengths of their texts.

use foldhash::HashSet;
use threadline_entry::lens::{Block, Lens};
use threadline_entry::{Json, JsonKind, Kind, Millis, key, value};
use threadline_session::{CallIndex, EntryIndex, InputKind, ReplyIndex, Session, ToolCall};

use super::WindowPart;
use crate::outline::{notification_title, text_title};
use crate::transcript::{TurnTokens, anchor};
use crate::transcript_writer::notices;

/// The approximate number of tokens per image or document, as a number of bytes.
const IMAGE_BYTES: usize = 5400;

/// An item without known tokens. A log may have very many of them, so its texts are made when needed.
#[derive(Clone, Copy)]
pub(super) struct RawItem {
    pub(super) entry_idx: EntryIndex,
    /// The number of its block; `None` if it is the whole content of the line.
    pub(super) block_idx: Option<u32>,
    pub(super) part: RawPart,
    pub(super) bytes: usize,
}

/// A part of the window, without the name of the tool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RawPart {
    Summary,
    Prompts,
    Attachments,
    Replies,
    Thinking,
    Calls(Option<CallIndex>),
    Results(Option<CallIndex>),
}

impl RawItem {
    /// Returns the part of the window that the item belongs to.
    pub(super) fn part(&self, session: &Session) -> WindowPart {
        match self.part {
            RawPart::Summary => WindowPart::Summary,
            RawPart::Prompts => WindowPart::Prompts,
            RawPart::Attachments => WindowPart::Attachments,
            RawPart::Replies => WindowPart::Replies,
            RawPart::Thinking => WindowPart::Thinking,
            RawPart::Calls(_) => WindowPart::Calls,
            RawPart::Results(call) => WindowPart::Results(
                call.map_or_else(|| "?".into(), |call| session.tool_calls()[call].name.clone()),
            ),
        }
    }

    /// Returns the anchor of the item. A result is shown with its call.
    pub(super) fn anchor(&self, session: &Session) -> String {
        let (entry_idx, block_idx) = match self.part {
            RawPart::Results(Some(call)) => {
                let call = &session.tool_calls()[call];
                (call.entry_idx, call.block_idx)
            }
            _ => (self.entry_idx, self.block_idx.unwrap_or(0)),
        };
        anchor(session.entries()[entry_idx].at().line_no, block_idx as usize)
    }

    /// Returns the item in a few words.
    pub(super) fn label(&self, session: &Session) -> String {
        let call = |call: CallIndex| &session.tool_calls()[call];
        let entry = &session.entries()[self.entry_idx];
        match (self.part, self.block_idx) {
            (RawPart::Results(result), _) => {
                result.map(|result| call_subject(session, call(result))).unwrap_or_default()
            }
            (RawPart::Calls(Some(made)), _) => {
                format!(
                    "{} {}",
                    session.tool_calls()[made].name.clone().as_str(),
                    call_subject(session, call(made))
                )
            }
            (RawPart::Calls(None), _) => String::new(),
            (RawPart::Thinking, _) => "thinking".to_owned(),
            (_, None) if entry.kind() == Kind::Attachment => {
                let kind = entry.get(key::ATTACHMENT).and_then(|json| json.get(key::TYPE)?.as_str());
                kind.unwrap_or_default().replace('_', " ")
            }
            (_, None) => {
                let content = entry.message().and_then(|message| message.content());
                let text = content.and_then(|content| content.as_str()).unwrap_or_default();
                text_label(session, self.entry_idx, &text)
            }
            (part, Some(block_idx)) => {
                let Some(block) = session.block(self.entry_idx, block_idx as usize) else {
                    return String::new();
                };
                let text = block.text().unwrap_or_default();
                match part {
                    _ if block.is(value::IMAGE) || block.is(value::DOCUMENT) => "image".to_owned(),
                    RawPart::Replies => one_line(&text, 60),
                    _ => text_label(session, self.entry_idx, &text),
                }
            }
        }
    }
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
        let mut seen: HashSet<ReplyIndex> = HashSet::default();
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
    let whole = |part, bytes| RawItem { entry_idx: idx, block_idx: None, part, bytes };
    match entry.kind() {
        Kind::User | Kind::Assistant => {
            let Some(content) = entry.message().and_then(|message| message.content()) else { return };
            if let Some(text) = content.as_str() {
                return items.push(whole(text_part(session, idx), text.len()));
            }
            for (block_idx, block) in content.blocks().enumerate() {
                if let Some((part, bytes)) = block_item(session, idx, block) {
                    items.push(RawItem { block_idx: Some(block_idx as u32), ..whole(part, bytes) });
                }
            }
        }
        Kind::Attachment => {
            let bytes = entry.get(key::ATTACHMENT).map_or(0, |json| json.raw().len());
            items.push(whole(RawPart::Attachments, bytes));
        }
        _ => {}
    }
}

/// Returns the part of the window that a text belongs to.
fn text_part(session: &Session, idx: EntryIndex) -> RawPart {
    match session.input(idx) {
        Some(InputKind::CompactSummary) => RawPart::Summary,
        Some(InputKind::Meta | InputKind::CommandOutput | InputKind::BashOutput) => RawPart::Attachments,
        _ => RawPart::Prompts,
    }
}

fn text_label(session: &Session, idx: EntryIndex, text: &str) -> String {
    if session.input(idx).is_some_and(InputKind::is_task_notification) {
        let notice = notices(text);
        let title = notification_title(text_title(notice.as_deref().unwrap_or(text)));
        return one_line(&title, 60);
    }
    one_line(text, 60)
}

fn block_item(session: &Session, idx: EntryIndex, block: Block<'_>) -> Option<(RawPart, usize)> {
    let object = block.object();
    let length = |key: &str| object.get(key).map_or(0, |json| json.raw().len());
    let is_reply = session.entries()[idx].kind() == Kind::Assistant;
    Some(match block.kind()?.as_ref() {
        value::TOOL_RESULT => {
            let call = session.call_index(&block.tool_use_id()?);
            (RawPart::Results(call), object.get(key::CONTENT).map_or(0, content_bytes))
        }
        value::TOOL_USE => {
            let call = block.id().and_then(|id| session.call_index(&id));
            (RawPart::Calls(call), length(key::NAME) + length(key::INPUT))
        }
        value::IMAGE | value::DOCUMENT => (RawPart::Attachments, IMAGE_BYTES),
        value::THINKING | value::REDACTED_THINKING => {
            // Without its text, only the signature shows how long the thinking was.
            (RawPart::Thinking, length(key::THINKING).max(length("signature")).max(length(key::DATA)))
        }
        _ if is_reply => (RawPart::Replies, length(key::TEXT)),
        _ => (text_part(session, idx), length(key::TEXT)),
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
