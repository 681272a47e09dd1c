//! Prompts typed while the model was at work, before they had lines of their own in the conversation.
//!
//! A prompt is put into a queue. It leaves it for a turn of its own, and stands in the log again as what opens that turn; or
//! it is taken out to steer the turn under way. Of that, versions before 2.1.205 wrote nothing but the queue's own lines.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use threadline_entry::lens::{AttachmentLine, QueueOperation};
use threadline_entry::{Entry, Kind};

use crate::input::Input;

/// The queue, as far as the log has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// The lines that put in what still waits, of what a person typed.
    waiting: Vec<u32>,
    /// Whether the next prompt comes out of it.
    gives: bool,
    /// The lines that took a prompt out to steer a turn, and those that had put it in.
    steered: FxHashMap<u32, u32>,
}

impl Queue {
    /// Takes in the next line; `before` are those that stand before it.
    pub(crate) fn take(&mut self, before: &[Entry], entry: &Entry, input: Option<Input>) {
        if entry.kind() == Kind::QueueOperation {
            self.operate(before, entry);
        } else if let Some(input) = input {
            self.hear(before, entry, input);
        }
    }

    /// What waited is in the conversation.
    fn hear(&mut self, before: &[Entry], entry: &Entry, input: Input) {
        let found = match entry.kind() {
            Kind::User if input.is_typed() => self.forget(before, &|text| says(entry, text)),
            Kind::Attachment => {
                self.forget(before, &|text| prompts(entry, text)) || self.forget_steered(before, entry)
            }
            _ => true,
        };
        // One that came out and was changed on its way.
        if !found && self.gives && input.opens_turn() && !self.waiting.is_empty() {
            self.waiting.remove(0);
        }
        self.gives &= matches!(input, Input::ToolResult | Input::Meta);
    }

    fn operate(&mut self, before: &[Entry], entry: &Entry) {
        let Some(line) = entry.lens::<QueueOperation<'_>>() else { return };
        let idx = before.len() as u32;
        match line.operation().as_deref() {
            Some("enqueue") if typed(entry).is_some() => self.waiting.push(idx),
            Some("dequeue") => self.gives = true,
            Some("popAll") => {
                self.forget(before, &|text| typed(entry).is_some_and(|back| back.trim() == text));
            }
            Some("remove") => {
                // Some say what they take.
                let taken = line.content().and_then(|content| content.as_str());
                let is_it =
                    |at: &u32| taken.is_none() || typed(&before[*at as usize]).as_deref() == taken.as_deref();
                if let Some(place) = self.waiting.iter().position(is_it) {
                    self.steered.insert(idx, self.waiting.remove(place));
                }
            }
            _ => {}
        }
    }

    /// Forgets what waits and is found elsewhere; whether there was any.
    fn forget(&mut self, before: &[Entry], found: &dyn Fn(&str) -> bool) -> bool {
        let place = self
            .waiting
            .iter()
            .position(|&at| typed(&before[at as usize]).is_some_and(|text| found(text.trim())));
        place.map(|place| self.waiting.remove(place)).is_some()
    }

    /// Forgets a prompt that a `remove` line took out and that `attachment` now repeats, as versions from 2.1.205
    /// on write it. Of several with the same text, the last.
    fn forget_steered(&mut self, before: &[Entry], attachment: &Entry) -> bool {
        let repeats = |put_in: u32| {
            typed(&before[put_in as usize]).is_some_and(|text| prompts(attachment, text.trim()))
        };
        let last = self.steered.iter().filter(|(_, put_in)| repeats(**put_in)).map(|(&taken, _)| taken).max();
        last.and_then(|taken| self.steered.remove(&taken)).is_some()
    }

    /// The line that put in what the line at `idx` took out to steer a turn.
    pub(crate) fn steered_from(&self, idx: usize) -> Option<usize> {
        self.steered.get(&(idx as u32)).map(|&at| at as usize)
    }
}

/// What a person typed of what a line of the queue says.
///
/// Tasks send word through the same queue, and commands stand on lines of their own whatever becomes of them here.
pub(crate) fn typed(entry: &Entry) -> Option<Cow<'_, str>> {
    let text = entry.lens::<QueueOperation<'_>>()?.content()?.as_str()?;
    let start = text.trim_start();
    let command = start.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    let is_command = command.is_some_and(|name| !name.contains('/'));
    let is_word = start.is_empty() || start.starts_with("{\"task_id\"") || Input::of_tag(start).is_some();
    (!is_command && !is_word).then_some(text)
}

/// Whether a `user` line says `text`, with or without something beside it.
fn says(entry: &Entry, text: &str) -> bool {
    let Some(content) = entry.message().and_then(|message| message.content()) else { return false };
    content.as_str().is_some_and(|said| said.trim() == text)
        || content.blocks().any(|block| block.text().is_some_and(|said| said.trim() == text))
}

/// Whether an `attachment` line is the prompt `text`.
fn prompts(entry: &Entry, text: &str) -> bool {
    let prompt = entry.lens::<AttachmentLine<'_>>().and_then(|line| line.attachment()?.prompt());
    prompt.is_some_and(|prompt| {
        prompt.as_str().is_some_and(|said| said.trim() == text)
            || prompt.items().any(|block| {
                block.get("text").and_then(|said| said.as_str()).is_some_and(|said| said.trim() == text)
            })
    })
}
