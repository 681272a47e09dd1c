//! The queue of prompts that were typed while the model was working.
//!
//! A prompt is added to the queue. Later it is either dequeued, and opens a turn with a line of its own, or
//! it is removed to steer the current turn. Versions before 2.1.205 logged a steering prompt only in the
//! queue operations.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use threadline_entry::lens::{AttachmentLine, QueueOperation};
use threadline_entry::{Entry, Kind};

use crate::index::{EntryIndex, IndexVec};
use crate::input::InputKind;

/// The state of the queue after the lines read so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptQueue {
    /// The `enqueue` lines of typed prompts that are still in the queue.
    queued: Vec<EntryIndex>,
    /// Whether a `dequeue` line was read, so that the next prompt comes from the queue.
    expects_dequeued: bool,
    /// The `enqueue` line of each prompt that a `remove` line took out to steer a turn, by the `remove`
    /// line.
    steered: FxHashMap<EntryIndex, EntryIndex>,
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
                self.remove_matching(before, &|text| contains_text(entry, text))
            }
            Kind::Attachment => {
                self.remove_matching(before, &|text| is_prompt_attachment(entry, text))
                    || self.remove_steered(before, entry)
            }
            _ => true,
        };
        // A dequeued prompt that was changed before it was sent.
        if !found && self.expects_dequeued && input.opens_turn() && !self.queued.is_empty() {
            self.queued.remove(0);
        }
        self.expects_dequeued &= matches!(input, InputKind::ToolResult | InputKind::Meta);
    }

    fn apply_operation(&mut self, before: &IndexVec<EntryIndex, Entry>, entry: &Entry) {
        let Some(line) = entry.lens::<QueueOperation<'_>>() else { return };
        let idx = before.end();
        match line.operation().as_deref() {
            Some("enqueue") if typed(entry).is_some() => self.queued.push(idx),
            Some("dequeue") => self.expects_dequeued = true,
            Some("popAll") => {
                self.remove_matching(before, &|text| typed(entry).is_some_and(|back| back.trim() == text));
            }
            Some("remove") => {
                // Some versions name the removed prompt.
                let taken = line.content().and_then(|content| content.as_str());
                let is_it =
                    |at: &EntryIndex| taken.is_none() || typed(&before[*at]).as_deref() == taken.as_deref();
                if let Some(place) = self.queued.iter().position(is_it) {
                    self.steered.insert(idx, self.queued.remove(place));
                }
            }
            _ => {}
        }
    }

    /// Removes the first queued prompt that matches `found`. Returns whether there was one.
    fn remove_matching(
        &mut self,
        before: &IndexVec<EntryIndex, Entry>,
        found: &dyn Fn(&str) -> bool,
    ) -> bool {
        let place =
            self.queued.iter().position(|&at| typed(&before[at]).is_some_and(|text| found(text.trim())));
        place.map(|place| self.queued.remove(place)).is_some()
    }

    /// Removes a steering prompt that `attachment` repeats, which versions from 2.1.205 on write.
    ///
    /// If several have the same text, the last one is removed. Returns whether there was one.
    fn remove_steered(&mut self, before: &IndexVec<EntryIndex, Entry>, attachment: &Entry) -> bool {
        let repeats = |put_in: EntryIndex| {
            typed(&before[put_in]).is_some_and(|text| is_prompt_attachment(attachment, text.trim()))
        };
        let last = self.steered.iter().filter(|(_, put_in)| repeats(**put_in)).map(|(&taken, _)| taken).max();
        last.and_then(|taken| self.steered.remove(&taken)).is_some()
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

/// Returns whether the content of a `user` line, or one of its blocks, is `text`.
fn contains_text(entry: &Entry, text: &str) -> bool {
    let Some(content) = entry.message().and_then(|message| message.content()) else { return false };
    content.as_str().is_some_and(|said| said.trim() == text)
        || content.blocks().any(|block| block.text().is_some_and(|said| said.trim() == text))
}

/// Returns whether an `attachment` line contains the prompt `text`.
fn is_prompt_attachment(entry: &Entry, text: &str) -> bool {
    let prompt = entry.lens::<AttachmentLine<'_>>().and_then(|line| line.attachment()?.prompt());
    prompt.is_some_and(|prompt| {
        prompt.as_str().is_some_and(|said| said.trim() == text)
            || prompt.items().any(|block| {
                block.get("text").and_then(|said| said.as_str()).is_some_and(|said| said.trim() == text)
            })
    })
}
