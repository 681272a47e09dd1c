//! The picker: type, see the sessions narrow, look at what was found, open it.
//!
//! [`Picker`] is what the screen shows and what keys do to it; it knows no terminal, no thread and no file.

mod draw;
mod hunt;
mod preview;
mod screen;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::PathBuf;

pub(super) use self::screen::run;

/// What the picker shows.
#[derive(Debug, Default)]
pub(super) struct Picker {
    input: String,
    /// Where typing goes, in bytes of the input.
    cursor: usize,
    rows: Vec<Row>,
    selected: usize,
    /// Which find of the selected session is looked at.
    find: usize,
    /// How far the preview was moved away from the find.
    scroll: isize,
    status: Status,
    preview: Preview,
    /// What was done last, for a moment.
    message: Option<String>,
}

/// How far the search is.
#[derive(Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Searching,
    /// This many sessions were searched.
    Done(usize),
    /// The query makes no sense (yet).
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
    /// How much was found in it; some of it is in `finds`.
    found: usize,
    finds: Vec<Find>,
}

/// Something found in a session.
#[derive(Clone, Debug)]
struct Find {
    path: PathBuf,
    anchor: String,
    byte_offset: u64,
    block_idx: usize,
}

/// The conversation around a find.
#[derive(Debug, Default)]
struct Preview {
    lines: Vec<PreviewLine>,
}

/// A line of the preview: text in pieces, some of it marked.
#[derive(Clone, Debug, Default)]
struct PreviewLine {
    pieces: Vec<(String, Look)>,
    /// Whether it belongs to the block that was found.
    found: bool,
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Label,
    Mark,
}

/// What a key asks for beyond the picker itself.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Nothing,
    /// The query changed.
    Search,
    /// Another find is looked at.
    Look,
    /// This place of this log is to be shown.
    Open(PathBuf, Option<String>),
    /// This text is to be copied.
    Copy(String),
    Quit,
}

/// What the search in the background tells.
enum News {
    /// Something was found in another session.
    Row(Row),
    /// That is all, out of this many sessions.
    Done(usize),
    Bad(String),
}

impl Picker {
    fn new(input: &str) -> Self {
        Self { input: input.to_owned(), cursor: input.len(), ..Self::default() }
    }

    /// What a key does.
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

    /// A new search begins: what was found before is shown until something else is.
    fn begin(&mut self) {
        self.status = Status::Searching;
        self.selected = 0;
        self.find = 0;
        self.scroll = 0;
    }

    /// Takes what the search tells; `fresh` for its first word, which replaces what is shown.
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
            // What was found stays, since half of a query is often wrong.
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

    /// What the preview shows.
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

    /// Goes to another find of the same session, and around at its end.
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
    /// The command that resumes the session.
    fn resume(&self) -> String {
        threadline_view::resume_command(&self.id, self.directory.as_deref())
    }
}

#[cfg(test)]
mod tests;
