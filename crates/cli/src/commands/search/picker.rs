//! The interactive picker: search while typing, preview matches, open one.
//!
//! [`Picker`] is the state of the screen and how keys change it. It does no I/O.

mod background_search;
mod draw;
mod preview;
mod screen;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::PathBuf;

use super::Sort;

pub(super) use self::screen::{pick_match, run};

/// The state of the picker.
#[derive(Debug, Default)]
pub(super) struct Picker {
    input: String,
    /// The insertion point, as a byte offset into the input.
    cursor: usize,
    rows: Vec<PickerRow>,
    selected: usize,
    /// Index of the previewed match in the selected session.
    match_idx: usize,
    /// Scroll position of the preview, relative to the match.
    scroll: isize,
    status: SearchStatus,
    /// The order of the sessions.
    sort: Sort,
    purpose: PickerPurpose,
    preview: MatchPreview,
    /// The result of the last action, shown until the next key.
    message: Option<String>,
}

/// The action for the chosen match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PickerPurpose {
    /// It is shown.
    #[default]
    Show,
    /// Its session is resumed.
    Resume,
}

/// The progress of the search.
#[derive(Debug, Default, PartialEq, Eq)]
enum SearchStatus {
    #[default]
    Searching,
    /// Finished. Without a query, the number of sessions of lists.
    Done(Option<usize>),
    /// The query is invalid, perhaps because it is incomplete.
    Bad(String),
}

/// A session in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct PickerRow {
    path: PathBuf,
    /// The log of the session, and those of its sub-agents.
    logs: Vec<PathBuf>,
    heading: String,
    when: String,
    project: Option<String>,
    /// The command that resumes the session.
    resume: String,
    /// Number of matches; `matches` contains only the first ones.
    match_count: usize,
    matches: Vec<PickerMatch>,
}

/// A match in a session.
#[derive(Clone, Debug)]
struct PickerMatch {
    path: PathBuf,
    anchor: String,
    byte_offset: u64,
    block_idx: usize,
    /// The offset of the excerpt in the text of the block.
    text_offset: usize,
}

/// The conversation around a match.
#[derive(Debug, Default)]
struct MatchPreview {
    lines: Vec<PreviewLine>,
}

/// A line of the preview, as styled pieces of text.
#[derive(Clone, Debug, Default)]
struct PreviewLine {
    pieces: Vec<(String, PreviewStyle)>,
    /// Whether the line belongs to the block that matched.
    in_match: bool,
    /// Whether the line contains the beginning of the excerpt, or a match after it.
    in_excerpt: bool,
}

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreviewStyle {
    Plain,
    Label,
    Match,
}

/// An action that a key requests from the caller.
#[derive(Debug, PartialEq, Eq)]
enum PickerAction {
    Nothing,
    /// The query changed.
    Search,
    /// Another match was selected.
    LoadPreview,
    /// Open this log, at this anchor if there is one.
    Open(PathBuf, Option<String>),
    /// Copy this text to the clipboard.
    Copy(String),
    Quit,
}

/// A message from the background search.
enum SearchMessage {
    /// A session with matches.
    Row(PickerRow),
    /// The search is finished. Without a query, the number of sessions of lists.
    Done(Option<usize>),
    Bad(String),
}

impl Picker {
    fn new(input: &str, sort: Sort, purpose: PickerPurpose) -> Self {
        Self { input: input.to_owned(), cursor: input.len(), sort, purpose, ..Self::default() }
    }

    /// Handles a key.
    fn handle_key(&mut self, key: KeyEvent) -> PickerAction {
        self.message = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => PickerAction::Quit,
            KeyCode::Char('c') if control => PickerAction::Quit,
            KeyCode::Char('y') if control => self.copy(),
            KeyCode::Char('s') if control => {
                self.sort = self.sort.other();
                PickerAction::Search
            }
            KeyCode::Enter => self.open(),
            KeyCode::Up => self.move_selection(-1),
            KeyCode::Char('p') if control => self.move_selection(-1),
            KeyCode::Down => self.move_selection(1),
            KeyCode::Char('n') if control => self.move_selection(1),
            KeyCode::Tab => self.select_match(1),
            KeyCode::BackTab => self.select_match(-1),
            KeyCode::PageUp => self.scroll_preview(-10),
            KeyCode::PageDown => self.scroll_preview(10),
            KeyCode::Left => self.move_cursor(self.previous_char()),
            KeyCode::Right => self.move_cursor(self.next_char()),
            KeyCode::Home => self.move_cursor(0),
            KeyCode::Char('a') if control => self.move_cursor(0),
            KeyCode::End => self.move_cursor(self.input.len()),
            KeyCode::Char('e') if control => self.move_cursor(self.input.len()),
            KeyCode::Backspace => self.delete(self.previous_char(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.next_char()),
            KeyCode::Char('u') if control => self.delete(0, self.cursor),
            KeyCode::Char('w') if control => self.delete(self.word_start(), self.cursor),
            KeyCode::Char(ch) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.input.insert(self.cursor, ch);
                self.cursor += ch.len_utf8();
                PickerAction::Search
            }
            _ => PickerAction::Nothing,
        }
    }

    /// Starts a new search. The previous results are shown until new ones arrive.
    fn start_search(&mut self) {
        self.status = SearchStatus::Searching;
        self.selected = 0;
        self.match_idx = 0;
        self.scroll = 0;
    }

    /// Handles a message from the search. If `fresh` is set, it is the first one of a search, and replaces
    /// the previous results.
    fn receive(&mut self, news: SearchMessage, fresh: bool) -> PickerAction {
        let before = self.preview_position();
        match news {
            SearchMessage::Row(row) => {
                if fresh {
                    self.rows.clear();
                }
                self.rows.push(row);
            }
            SearchMessage::Done(n_listed) => {
                if fresh {
                    self.rows.clear();
                }
                self.status = SearchStatus::Done(n_listed);
            }
            // The results stay, since a query is often invalid while it is being typed.
            SearchMessage::Bad(problem) => self.status = SearchStatus::Bad(problem),
        }
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
        if self.preview_position() == before && !fresh {
            PickerAction::Nothing
        } else {
            PickerAction::LoadPreview
        }
    }

    fn selected_row(&self) -> Option<&PickerRow> {
        self.rows.get(self.selected)
    }

    fn selected_match(&self) -> Option<&PickerMatch> {
        self.selected_row()?.matches.get(self.match_idx)
    }

    /// Returns the log, byte offset and block index that the preview shows.
    fn preview_position(&self) -> Option<(PathBuf, u64, usize)> {
        let row = self.selected_row()?;
        let find = row.matches.get(self.match_idx);
        Some(
            find.map_or((row.path.clone(), 0, 0), |find| {
                (find.path.clone(), find.byte_offset, find.block_idx)
            }),
        )
    }

    fn move_selection(&mut self, by: isize) -> PickerAction {
        let last = self.rows.len().saturating_sub(1);
        let selected = self.selected.saturating_add_signed(by).min(last);
        if selected == self.selected {
            return PickerAction::Nothing;
        }
        self.selected = selected;
        self.match_idx = 0;
        self.scroll = 0;
        PickerAction::LoadPreview
    }

    /// Selects another match in the same session, wrapping around at both ends.
    fn select_match(&mut self, by: isize) -> PickerAction {
        let count = self.selected_row().map_or(0, |row| row.matches.len());
        if count == 0 {
            return PickerAction::Nothing;
        }
        let count = count as isize;
        self.match_idx = (self.match_idx as isize + by).rem_euclid(count) as usize;
        self.scroll = 0;
        PickerAction::LoadPreview
    }

    fn scroll_preview(&mut self, by: isize) -> PickerAction {
        self.scroll += by;
        PickerAction::Nothing
    }

    fn open(&self) -> PickerAction {
        match (self.selected_match(), self.selected_row()) {
            (Some(find), _) => PickerAction::Open(find.path.clone(), Some(find.anchor.clone())),
            (None, Some(row)) => PickerAction::Open(row.path.clone(), None),
            (None, None) => PickerAction::Nothing,
        }
    }

    fn copy(&mut self) -> PickerAction {
        let Some(row) = self.selected_row() else { return PickerAction::Nothing };
        let command = row.resume.clone();
        self.message = Some(format!("copied: {command}"));
        PickerAction::Copy(command)
    }

    fn previous_char(&self) -> usize {
        self.input[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn next_char(&self) -> usize {
        self.input[self.cursor..].chars().next().map_or(self.cursor, |ch| self.cursor + ch.len_utf8())
    }

    fn word_start(&self) -> usize {
        let text = self.input[..self.cursor].trim_end();
        text.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }

    fn move_cursor(&mut self, to: usize) -> PickerAction {
        self.cursor = to;
        PickerAction::Nothing
    }

    fn delete(&mut self, from: usize, to: usize) -> PickerAction {
        if from == to {
            return PickerAction::Nothing;
        }
        self.input.replace_range(from..to, "");
        self.cursor = from;
        PickerAction::Search
    }
}

#[cfg(test)]
mod tests;
