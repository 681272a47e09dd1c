//! The interactive picker: search while typing, preview matches, open one.
//!
//! [`Picker`] is the state of the screen and how keys change it. It does no I/O.

mod draw;
mod hunt;
mod preview;
mod screen;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::PathBuf;

pub(super) use self::screen::run;

/// The state of the picker.
#[derive(Debug, Default)]
pub(super) struct Picker {
    input: String,
    /// The insertion point, as a byte offset into the input.
    cursor: usize,
    rows: Vec<Row>,
    selected: usize,
    /// Index of the previewed match in the selected session.
    find: usize,
    /// Scroll position of the preview, relative to the match.
    scroll: isize,
    status: Status,
    preview: Preview,
    /// The result of the last action, shown until the next key.
    message: Option<String>,
}

/// The progress of the search.
#[derive(Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Searching,
    /// Finished; the number of sessions searched.
    Done(usize),
    /// The query is invalid, perhaps because it is incomplete.
    Bad(String),
}

/// A session in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    id: String,
    path: PathBuf,
    heading: String,
    when: String,
    directory: Option<String>,
    /// Number of matches; `finds` contains only the first ones.
    found: usize,
    finds: Vec<Find>,
}

/// A match in a session.
#[derive(Clone, Debug)]
struct Find {
    path: PathBuf,
    anchor: String,
    byte_offset: u64,
    block_idx: usize,
}

/// The conversation around a match.
#[derive(Debug, Default)]
struct Preview {
    lines: Vec<PreviewLine>,
}

/// A line of the preview, as styled pieces of text.
#[derive(Clone, Debug, Default)]
struct PreviewLine {
    pieces: Vec<(String, Look)>,
    /// Whether the line belongs to the block that matched.
    found: bool,
}

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Label,
    Mark,
}

/// An action that a key requests from the caller.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Nothing,
    /// The query changed.
    Search,
    /// Another match was selected.
    Look,
    /// Open this log, at this anchor if there is one.
    Open(PathBuf, Option<String>),
    /// Copy this text to the clipboard.
    Copy(String),
    Quit,
}

/// A message from the background search.
enum News {
    /// A session with matches.
    Row(Row),
    /// The search is finished; the number of sessions searched.
    Done(usize),
    Bad(String),
}

impl Picker {
    fn new(input: &str) -> Self {
        Self { input: input.to_owned(), cursor: input.len(), ..Self::default() }
    }

    /// Handles a key.
    fn update(&mut self, key: KeyEvent) -> Action {
        self.message = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => Action::Quit,
            KeyCode::Char('c') if control => Action::Quit,
            KeyCode::Char('y') if control => self.copy(),
            KeyCode::Enter => self.open(),
            KeyCode::Up => self.select(-1),
            KeyCode::Char('p') if control => self.select(-1),
            KeyCode::Down => self.select(1),
            KeyCode::Char('n') if control => self.select(1),
            KeyCode::Tab => self.go_to(1),
            KeyCode::BackTab => self.go_to(-1),
            KeyCode::PageUp => self.move_preview(-10),
            KeyCode::PageDown => self.move_preview(10),
            KeyCode::Left => self.move_cursor(self.before()),
            KeyCode::Right => self.move_cursor(self.behind()),
            KeyCode::Home => self.move_cursor(0),
            KeyCode::Char('a') if control => self.move_cursor(0),
            KeyCode::End => self.move_cursor(self.input.len()),
            KeyCode::Char('e') if control => self.move_cursor(self.input.len()),
            KeyCode::Backspace => self.delete(self.before(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.behind()),
            KeyCode::Char('u') if control => self.delete(0, self.cursor),
            KeyCode::Char('w') if control => self.delete(self.word_before(), self.cursor),
            KeyCode::Char(ch) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.input.insert(self.cursor, ch);
                self.cursor += ch.len_utf8();
                Action::Search
            }
            _ => Action::Nothing,
        }
    }

    /// Starts a new search. The previous results are shown until new ones arrive.
    fn begin(&mut self) {
        self.status = Status::Searching;
        self.selected = 0;
        self.find = 0;
        self.scroll = 0;
    }

    /// Handles a message from the search. If `fresh` is set, it is the first one of a search, and replaces
    /// the previous results.
    fn take(&mut self, news: News, fresh: bool) -> Action {
        let before = self.place();
        match news {
            News::Row(row) => {
                if fresh {
                    self.rows.clear();
                }
                self.rows.push(row);
            }
            News::Done(searched) => {
                if fresh {
                    self.rows.clear();
                }
                self.status = Status::Done(searched);
            }
            // The results stay, since a query is often invalid while it is being typed.
            News::Bad(problem) => self.status = Status::Bad(problem),
        }
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
        if self.place() == before && !fresh { Action::Nothing } else { Action::Look }
    }

    fn row(&self) -> Option<&Row> {
        self.rows.get(self.selected)
    }

    fn found(&self) -> Option<&Find> {
        self.row()?.finds.get(self.find)
    }

    /// Returns the log, byte offset and block index that the preview shows.
    fn place(&self) -> Option<(PathBuf, u64, usize)> {
        let row = self.row()?;
        let find = row.finds.get(self.find);
        Some(
            find.map_or((row.path.clone(), 0, 0), |find| {
                (find.path.clone(), find.byte_offset, find.block_idx)
            }),
        )
    }

    fn select(&mut self, by: isize) -> Action {
        let last = self.rows.len().saturating_sub(1);
        let selected = self.selected.saturating_add_signed(by).min(last);
        if selected == self.selected {
            return Action::Nothing;
        }
        self.selected = selected;
        self.find = 0;
        self.scroll = 0;
        Action::Look
    }

    /// Selects another match in the same session, wrapping around at both ends.
    fn go_to(&mut self, by: isize) -> Action {
        let count = self.row().map_or(0, |row| row.finds.len());
        if count == 0 {
            return Action::Nothing;
        }
        let count = count as isize;
        self.find = (self.find as isize + by).rem_euclid(count) as usize;
        self.scroll = 0;
        Action::Look
    }

    fn move_preview(&mut self, by: isize) -> Action {
        self.scroll += by;
        Action::Nothing
    }

    fn open(&self) -> Action {
        match (self.found(), self.row()) {
            (Some(find), _) => Action::Open(find.path.clone(), Some(find.anchor.clone())),
            (None, Some(row)) => Action::Open(row.path.clone(), None),
            (None, None) => Action::Nothing,
        }
    }

    fn copy(&mut self) -> Action {
        let Some(row) = self.row() else { return Action::Nothing };
        let command = row.resume();
        self.message = Some(format!("copied: {command}"));
        Action::Copy(command)
    }

    fn before(&self) -> usize {
        self.input[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn behind(&self) -> usize {
        self.input[self.cursor..].chars().next().map_or(self.cursor, |ch| self.cursor + ch.len_utf8())
    }

    fn word_before(&self) -> usize {
        let text = self.input[..self.cursor].trim_end();
        text.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }

    fn move_cursor(&mut self, to: usize) -> Action {
        self.cursor = to;
        Action::Nothing
    }

    fn delete(&mut self, from: usize, to: usize) -> Action {
        if from == to {
            return Action::Nothing;
        }
        self.input.replace_range(from..to, "");
        self.cursor = from;
        Action::Search
    }
}

impl Row {
    /// Returns the command that resumes the session.
    fn resume(&self) -> String {
        threadline_view::resume_command(&self.id, self.directory.as_deref())
    }
}

#[cfg(test)]
mod tests;
