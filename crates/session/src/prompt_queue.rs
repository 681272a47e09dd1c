//! The queue of prompts that were typed while the model was working.
//!
//! A prompt is added to the queue. Later it is either dequeued, and opens a turn with a line of its own, or
//! it is removed to steer the current turn. Versions before 2.1.205 logged a steering prompt only in the
//! queue operations.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use foldhash::HashMap;
use threadline_entry::lens::{AttachmentLine, QueueOperation};
use threadline_entry::{Entry, Kind, hash_of};

use crate::index::{EntryIndex, IndexVec};
use crate::input::InputKind;

/// The state of the queue after the lines read so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptQueue {
    /// The `enqueue` lines of typed prompts that are still in the queue.
    queued: BTreeSet<EntryIndex>,
    /// The same lines by their text, in file order.
    queued_by_text: HashMap<TextHash, VecDeque<EntryIndex>>,
    /// Whether a `dequeue` line was read, so that the next prompt comes from the queue.
    expects_dequeued: bool,
    /// The `enqueue` line of each prompt that a `remove` line took out to steer a turn, by the `remove`
    /// line.
    steered: HashMap<EntryIndex, EntryIndex>,
    /// The same `remove` lines by the text of the prompt, in file order.
    steered_by_text: HashMap<TextHash, Vec<EntryIndex>>,
}

/// The hash of a prompt without the white space around it. Prompts with one hash count as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct TextHash(u64);

impl TextHash {
    fn of(text: &str) -> Self {
        Self(hash_of(text.trim()))
    }

    /// Returns the hash of a queued prompt.
    fn of_line(enqueue_line: &Entry) -> Option<Self> {
        typed(enqueue_line).map(|text| Self::of(&text))
    }
}

impl PromptQueue {
    /// Updates the queue with the next line. `before` contains the lines that precede it.
    pub(crate) fn push(
        &mut self,
        before: &IndexVec<EntryIndex, Entry>,
        entry: &Entry,
        input: Option<InputKind>,
    ) {
        if entry.kind() == Kind::QueueOperation {
            self.apply_operation(before, entry);
        } else if let Some(input) = input {
            self.remove_delivered(before, entry, input);
        }
    }

    /// Removes a queued prompt that now has its own line in the conversation.
    fn remove_delivered(&mut self, before: &IndexVec<EntryIndex, Entry>, entry: &Entry, input: InputKind) {
        let found = match entry.kind() {
            Kind::User if input.is_typed() => {
                !self.queued.is_empty() && self.take_one_of(&user_texts(entry)).is_some()
            }
            Kind::Attachment if self.queued.is_empty() && self.steered.is_empty() => false,
            Kind::Attachment => {
                let texts = attachment_texts(entry);
                self.take_one_of(&texts).is_some() || self.remove_steered(&texts)
            }
            _ => true,
        };
        // A dequeued prompt that was changed before it was sent.
        if !found && self.expects_dequeued && input.opens_turn() {
            self.take_oldest(before);
        }
        self.expects_dequeued &= matches!(input, InputKind::ToolResult | InputKind::Meta);
    }

    fn apply_operation(&mut self, before: &IndexVec<EntryIndex, Entry>, entry: &Entry) {
        let Some(line) = entry.lens::<QueueOperation<'_>>() else { return };
        let idx = before.end();
        match line.operation().as_deref() {
            Some("enqueue") => {
                if let Some(text) = TextHash::of_line(entry) {
                    self.queued.insert(idx);
                    self.queued_by_text.entry(text).or_default().push_back(idx);
                }
            }
            Some("dequeue") => self.expects_dequeued = true,
            Some("popAll") => drop(TextHash::of_line(entry).and_then(|text| self.take(text))),
            Some("remove") => {
                // Some versions name the removed prompt.
                let enqueued = match line.content().and_then(|content| content.as_str()) {
                    Some(text) => self.take(TextHash::of(&text)),
                    None => self.take_oldest(before),
                };
                if let Some(enqueued) = enqueued {
                    self.steered.insert(idx, enqueued);
                    if let Some(text) = TextHash::of_line(&before[enqueued]) {
                        self.steered_by_text.entry(text).or_default().push(idx);
                    }
                }
            }
            _ => {}
        }
    }

    /// Removes the first queued prompt with this text. Returns its line.
    fn take(&mut self, text: TextHash) -> Option<EntryIndex> {
        let lines = self.queued_by_text.get_mut(&text)?;
        let first = lines.pop_front()?;
        if lines.is_empty() {
            self.queued_by_text.remove(&text);
        }
        self.queued.remove(&first);
        Some(first)
    }

    /// Removes the first queued prompt with one of these texts. Returns its line.
    fn take_one_of(&mut self, texts: &[TextHash]) -> Option<EntryIndex> {
        let first = |text: &TextHash| Some((*self.queued_by_text.get(text)?.front()?, *text));
        let (_, text) = texts.iter().filter_map(first).min()?;
        self.take(text)
    }

    /// Removes the first queued prompt. Returns its line.
    fn take_oldest(&mut self, before: &IndexVec<EntryIndex, Entry>) -> Option<EntryIndex> {
        let first = *self.queued.first()?;
        self.take(TextHash::of_line(&before[first])?)
    }

    /// Removes a steering prompt that an attachment repeats, which versions from 2.1.205 on write.
    ///
    /// If several have the same text, the last one is removed. Returns whether there was one.
    fn remove_steered(&mut self, texts: &[TextHash]) -> bool {
        let last = |text: &TextHash| Some((*self.steered_by_text.get(text)?.last()?, *text));
        let Some((removed, text)) = texts.iter().filter_map(last).max() else { return false };
        if let Some(lines) = self.steered_by_text.get_mut(&text) {
            lines.pop();
        }
        self.steered.remove(&removed).is_some()
    }

    /// Returns the `enqueue` line of the prompt that the line at `idx` took out to steer a turn.
    pub(crate) fn enqueue_line(&self, idx: EntryIndex) -> Option<EntryIndex> {
        self.steered.get(&idx).copied()
    }
}

/// Returns the content of a queue operation, if a person typed it.
///
/// Task notifications go through the same queue. Slash commands do too, but they always get lines of their
/// own.
pub(crate) fn typed(entry: &Entry) -> Option<Cow<'_, str>> {
    let text = entry.lens::<QueueOperation<'_>>()?.content()?.as_str()?;
    let start = text.trim_start();
    let command = start.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    let is_command = command.is_some_and(|name| !name.contains('/'));
    let is_word = start.is_empty() || start.starts_with("{\"task_id\"") || InputKind::of_tag(start).is_some();
    (!is_command && !is_word).then_some(text)
}

/// Returns the text of a `user` line and those of its blocks.
fn user_texts(entry: &Entry) -> Vec<TextHash> {
    let content = entry.message().and_then(|message| message.content());
    let text = content.and_then(|content| content.as_str());
    let blocks = content.into_iter().flat_map(|content| content.blocks());
    text.into_iter().chain(blocks.filter_map(|block| block.text())).map(|text| TextHash::of(&text)).collect()
}

/// Returns the texts of the prompt of an `attachment` line.
fn attachment_texts(entry: &Entry) -> Vec<TextHash> {
    let prompt = entry.lens::<AttachmentLine<'_>>().and_then(|line| line.attachment()?.prompt());
    let text = prompt.and_then(|prompt| prompt.as_str());
    let blocks = prompt.into_iter().flat_map(|prompt| prompt.items());
    let blocks = blocks.filter_map(|block| block.get("text")?.as_str());
    text.into_iter().chain(blocks).map(|text| TextHash::of(&text)).collect()
}
