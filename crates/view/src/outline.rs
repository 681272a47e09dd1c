//! The outline: one line per turn.

use std::borrow::Cow;

use threadline_entry::Entry;
use threadline_session::{EntryIndex, Session, SessionFamily, ToolOutcome};
use threadline_usage::UsageTotals;

use crate::card::{CommandChangeCounts, ToolCard, first_line};
use crate::diff::Hunk;
use crate::humanize::plural;
use crate::inline_markdown::strip_markdown;
use crate::transcript::{AttachedFile, ItemBody, TranscriptItem, TurnTiming, TurnTokens, TurnView};
use crate::transcript_builder::TranscriptBuilder;
use crate::transcript_writer::{BlockContent, TranscriptWriter};

/// One turn, summarised in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OutlineLine {
    /// The turn's number, from 1.
    pub number: usize,
    /// The turn's anchor.
    pub anchor: String,
    /// The name of the turn.
    pub title: String,
    /// The number of tool calls, including those of sub-agents.
    pub calls: usize,
    /// The number of errors, including those outside the calls.
    pub errors: usize,
    /// The number of successful calls that changed a file.
    pub edits: usize,
    /// Added and removed lines.
    pub lines: (usize, usize),
    /// The number of files that shell commands changed, counted once per command. Not included in `edits`.
    pub shell_edits: usize,
    /// The lines that shell commands added and removed. Not included in `lines`.
    pub shell_lines: (usize, usize),
    /// The number of compactions.
    pub compactions: usize,
    /// The tokens used.
    pub tokens: TurnTokens,
    /// The cost, including sub-agents.
    pub spent: UsageTotals,
    /// The breakdown of the time.
    pub timing: TurnTiming,
    /// Whether the model has not finished.
    pub open: bool,
}

/// Returns the outline of some turns.
pub fn outline(turns: &[TurnView]) -> Vec<OutlineLine> {
    turns.iter().map(OutlineLine::of).collect()
}

/// The title of a turn, found item by item.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnTitle(Option<(TitleSource, String)>);

impl TurnTitle {
    /// Adds the next item of the turn.
    pub(crate) fn add(&mut self, body: &ItemBody) {
        let earlier = self.0.as_ref().map(|(source, _)| *source);
        if let Some((source, title)) = item_title(body).filter(|(source, _)| source.replaces(earlier)) {
            self.0 = Some((source, title.into_owned()));
        }
    }

    /// Returns the title; empty if no item has given one.
    pub(crate) fn into_text(self) -> String {
        self.0.map(|(_, title)| title).unwrap_or_default()
    }
}

/// The part of a turn that its title is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TitleSource {
    /// A typed prompt.
    Prompt,
    /// A typed command. One before the first prompt of a session is not the title of its turn.
    Command,
    /// Images or documents without text.
    Files,
    /// A reply of the model.
    Reply,
}

impl TitleSource {
    /// Returns whether a title from this source replaces an earlier one. Only a prompt that follows images
    /// does.
    pub(crate) fn replaces(self, earlier: Option<Self>) -> bool {
        let is_text = matches!(self, Self::Prompt | Self::Command);
        earlier.is_none_or(|earlier| earlier == Self::Files && is_text)
    }
}

/// Returns the title of the turn that a line of the session opens, as in the outline.
pub fn turn_title(family: &SessionFamily, prompt: EntryIndex) -> Option<String> {
    let writer = TranscriptWriter::without_agents(TranscriptBuilder::new(family), None);
    writer.contents(prompt).iter().find_map(|(_, content)| match content {
        BlockContent::Body(body) => Some(item_title(body)?.1.into_owned()),
        _ => None,
    })
}

/// Returns the title of the turn that a line opens, from the line alone; `None` if it has no text.
pub fn line_title(entry: Entry) -> Option<String> {
    let mut session = Session::with_id("");
    session.push(entry, Vec::new());
    turn_title(&SessionFamily::new(session, Vec::new()), EntryIndex::FIRST)
}

/// Returns the title that an input gives to its turn, if any.
pub fn input_title(item: &TranscriptItem) -> Option<Cow<'_, str>> {
    item_title(&item.body).map(|(_, title)| title)
}

/// Returns the title that an item gives to its turn, if any.
pub(crate) fn item_title(body: &ItemBody) -> Option<(TitleSource, Cow<'_, str>)> {
    let (source, title) = match body {
        ItemBody::Input { input, text, files, .. } if input.is_typed() || input.opens_turn() => {
            match text_title(text) {
                "" => (TitleSource::Files, Cow::Owned(files_title(files))),
                title if input.is_task_notification() => (TitleSource::Prompt, notification_title(title)),
                title if input.is_command_line() => (TitleSource::Command, Cow::Borrowed(title)),
                title => (TitleSource::Prompt, Cow::Borrowed(title)),
            }
        }
        ItemBody::Text(text) => (TitleSource::Reply, strip_markdown(text_title(text))),
        _ => return None,
    };
    (!title.is_empty()).then_some((source, title))
}

/// Returns the title of a notification of a background task, from the title of its text.
pub(crate) fn notification_title(title: &str) -> Cow<'_, str> {
    // The beginning of a notification whose end was truncated has its tags.
    match title.is_empty() || title.starts_with('<') {
        true => Cow::Borrowed("Background task finished"),
        false => Cow::Owned(format!("Background task finished: {title}")),
    }
}

/// Returns the title for attached files: `[image]`, `[2 images, 1 document]`; empty without files.
fn files_title(files: &[AttachedFile]) -> String {
    let images = files.iter().filter(|file| file.media_type.starts_with("image/")).count();
    let counts = [(images, "image"), (files.len() - images, "document")];
    let named: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| if files.len() == 1 { (*noun).to_owned() } else { plural(*count as u64, noun) })
        .collect();
    if named.is_empty() { String::new() } else { format!("[{}]", named.join(", ")) }
}

/// The maximum length of a title in bytes. No view shows as much, and a line may have megabytes.
const MAX_TITLE: usize = 4096;

/// Returns the title of a text: its first line, or the heading of a plan that it asks to implement.
pub(crate) fn text_title(text: &str) -> &str {
    let text = text.trim_start();
    let plan = text.strip_prefix("Implement the following plan:");
    let heading = plan.map(|plan| first_line(plan.trim_start().trim_start_matches(['#', ' '])));
    let title = heading.filter(|heading| !heading.is_empty()).unwrap_or_else(|| first_line(text));
    &title[..title.floor_char_boundary(MAX_TITLE)]
}

impl OutlineLine {
    /// Returns the number of edits, with those of shell commands.
    pub fn all_edits(&self) -> usize {
        self.edits + self.shell_edits
    }

    /// Returns the numbers of added and removed lines, with those of shell commands.
    pub fn all_lines(&self) -> (usize, usize) {
        (self.lines.0 + self.shell_lines.0, self.lines.1 + self.shell_lines.1)
    }

    /// Returns the line of a turn.
    pub fn of(turn: &TurnView) -> Self {
        let mut line = Self::blank(turn);
        turn.items.iter().for_each(|item| line.add(item));
        line
    }

    /// Returns the line of a turn with all counts zero.
    pub(crate) fn blank(turn: &TurnView) -> Self {
        Self {
            number: turn.number,
            anchor: turn.anchor.clone(),
            title: turn.title.clone(),
            calls: 0,
            errors: 0,
            edits: 0,
            lines: (0, 0),
            shell_edits: 0,
            shell_lines: (0, 0),
            compactions: 0,
            tokens: turn.tokens,
            spent: turn.spent.clone(),
            timing: turn.timing,
            open: turn.open,
        }
    }

    /// Counts an item and those of the sub-agents in it.
    fn add(&mut self, item: &TranscriptItem) {
        match &item.body {
            ItemBody::Call(call) => {
                self.calls += 1;
                self.errors += usize::from(call.is_error());
                match (&call.card, call.outcome) {
                    (ToolCard::Diff { hunks, .. }, ToolOutcome::Ok) => {
                        let (added, removed) = Hunk::counts(hunks);
                        self.edits += 1;
                        self.lines.0 += added;
                        self.lines.1 += removed;
                    }
                    (ToolCard::Command(card), ToolOutcome::Ok) => {
                        let counts = CommandChangeCounts::of(&card.changes);
                        self.shell_edits += counts.files;
                        self.shell_lines.0 += counts.lines.0;
                        self.shell_lines.1 += counts.lines.1;
                    }
                    _ => {}
                }
                let turns = call.agents.iter().flat_map(|agent| &agent.turns);
                turns.flat_map(|turn| &turn.items).for_each(|item| self.add(item));
            }
            ItemBody::Error { .. } => self.errors += 1,
            ItemBody::Compaction { .. } => self.compactions += 1,
            _ => {}
        }
    }
}
