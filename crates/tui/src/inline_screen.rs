//! Draws in the normal screen: finished lines once, and below them a few lines that are drawn again.
//!
//! No line is padded to the width of the terminal, so that a terminal that wraps lines again after a resize
//! does the same as one that does not, except for lines that are longer than the new width.

use std::fmt::Write as _;
use std::io::{self, Write};

use threadline_term::TermText;

use crate::theme::Theme;

/// The lines below the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) lines: Vec<TermText>,
    /// The row and column of the cursor; `None` for no cursor.
    pub(crate) cursor: Option<(usize, usize)>,
}

/// Begins and ends an update that a terminal shows at once.
const BEGIN_UPDATE: &str = "\u{1b}[?2026h";
const END_UPDATE: &str = "\u{1b}[?2026l";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
const ERASE_BELOW: &str = "\u{1b}[J";
const ERASE_LINE_END: &str = "\u{1b}[K";

/// The screen, with the frame that is drawn on it.
#[derive(Debug)]
pub(crate) struct InlineScreen<W> {
    out: W,
    width: usize,
    /// The frame on the screen; `None` if it has to be drawn completely.
    drawn: Option<Frame>,
    /// The rows between the first row of the frame and the cursor.
    cursor_row: usize,
    theme: Theme,
}

impl<W: Write> InlineScreen<W> {
    /// Begins at the cursor, which is at the beginning of an empty line.
    pub(crate) fn new(out: W, width: usize) -> Self {
        Self { out, width: width.max(1), drawn: None, cursor_row: 0, theme: Theme::Terminal }
    }

    /// Prints finished lines above the frame, and draws the frame. All of it is one write.
    pub(crate) fn draw(&mut self, finished: &[TermText], frame: Frame) -> io::Result<()> {
        if finished.is_empty() && self.drawn.as_ref() == Some(&frame) {
            return Ok(());
        }
        let mut text = String::from(BEGIN_UPDATE);
        text.push_str(HIDE_CURSOR);
        match self.drawn.take() {
            Some(old) if finished.is_empty() && old.lines.len() == frame.lines.len() => {
                self.change_lines(&mut text, &old, &frame);
            }
            old => {
                self.move_up(&mut text, self.cursor_row);
                if old.is_none() {
                    // Also forgets that the terminal has wrapped some of the lines, which it would join again
                    // after the next resize.
                    text.push_str(ERASE_BELOW);
                }
                for line in finished {
                    self.line(&mut text, line);
                    text.push_str("\r\n");
                }
                for (i, line) in frame.lines.iter().enumerate() {
                    text.push_str(if i == 0 { "" } else { "\r\n" });
                    self.line(&mut text, line);
                }
                let rows = finished.len() + frame.lines.len();
                if old.is_some_and(|old| old.lines.len() > rows) {
                    self.erase_below(&mut text, frame.lines.last());
                }
                self.cursor_row = frame.lines.len().saturating_sub(1);
            }
        }
        let (row, column) = frame.cursor.unwrap_or((self.cursor_row, 0));
        self.move_to_row(&mut text, row);
        let _ = write!(text, "\u{1b}[{}G", column + 1);
        if frame.cursor.is_some() {
            text.push_str(SHOW_CURSOR);
        }
        text.push_str(END_UPDATE);
        self.drawn = Some(frame);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Uses other colours from the next frame on.
    pub(crate) fn set_theme(&mut self, theme: Theme) {
        if self.theme != theme {
            self.theme = theme;
            self.drawn = self
                .drawn
                .take()
                .map(|frame| Frame { lines: vec![TermText::new(); frame.lines.len()], ..frame });
        }
    }

    /// Follows a change of the terminal's width. Lines that were longer than the new width have been wrapped.
    pub(crate) fn resize(&mut self, width: usize) {
        let width = width.max(1);
        if let Some(old) = self.drawn.take() {
            let rows = |line: &TermText| line.width().max(1).div_ceil(width);
            let (row, column) = old.cursor.unwrap_or((self.cursor_row, 0));
            self.cursor_row = old.lines.iter().take(row).map(rows).sum::<usize>() + column / width;
        }
        self.width = width;
    }

    /// Forgets the frame: the cursor is at the beginning of an empty line.
    pub(crate) fn restart(&mut self) {
        self.drawn = None;
        self.cursor_row = 0;
    }

    /// Removes the frame and leaves the cursor where it began.
    pub(crate) fn clear_frame(&mut self) -> io::Result<()> {
        let mut text = String::new();
        self.move_up(&mut text, self.cursor_row);
        text.push('\r');
        text.push_str(ERASE_BELOW);
        text.push_str(SHOW_CURSOR);
        self.restart();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Writes a sequence that draws nothing, such as a bell.
    pub(crate) fn signal(&mut self, sequence: &str) -> io::Result<()> {
        self.out.write_all(sequence.as_bytes())?;
        self.out.flush()
    }

    fn change_lines(&mut self, text: &mut String, old: &Frame, new: &Frame) {
        for (row, (before, line)) in old.lines.iter().zip(&new.lines).enumerate() {
            if before != line {
                self.move_to_row(text, row);
                text.push('\r');
                self.line(text, line);
            }
        }
    }

    /// Writes a line from the first column on, and erases the previous content.
    fn line(&self, text: &mut String, line: &TermText) {
        text.push_str(&self.theme.apply(line.as_str()));
        // After a full line, the cursor may still be on its last character.
        if line.width() < self.width {
            text.push_str(ERASE_LINE_END);
        }
    }

    fn erase_below(&self, text: &mut String, last: Option<&TermText>) {
        if last.is_none_or(|line| line.width() < self.width) {
            text.push_str(ERASE_BELOW);
        }
    }

    fn move_to_row(&mut self, text: &mut String, row: usize) {
        if row < self.cursor_row {
            let _ = write!(text, "\u{1b}[{}A", self.cursor_row - row);
        } else if row > self.cursor_row {
            let _ = write!(text, "\u{1b}[{}B", row - self.cursor_row);
        }
        self.cursor_row = row;
    }

    fn move_up(&self, text: &mut String, rows: usize) {
        if rows > 0 {
            let _ = write!(text, "\u{1b}[{rows}A");
        }
        text.push('\r');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(lines: &[&str]) -> Frame {
        let last = lines.len() - 1;
        Frame { lines: lines.iter().map(|line| TermText::from(*line)).collect(), cursor: Some((last, 2)) }
    }

    fn lines(texts: &[&str]) -> Vec<TermText> {
        texts.iter().map(|text| TermText::from(*text)).collect()
    }

    struct Emulator(vt100::Parser);

    impl Write for Emulator {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.process(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn screen(rows: u16, columns: u16) -> InlineScreen<Emulator> {
        InlineScreen::new(Emulator(vt100::Parser::new(rows, columns, 100)), usize::from(columns))
    }

    fn shown(screen: &InlineScreen<Emulator>) -> String {
        screen.out.0.screen().contents()
    }

    #[test]
    fn finished_lines_are_above_the_frame_and_stay() {
        let mut screen = screen(6, 20);
        screen.draw(&[], frame(&["> "])).unwrap();
        screen.draw(&lines(&["one", "two"]), frame(&["working", "> hi"])).unwrap();
        assert_eq!(shown(&screen), "one\ntwo\nworking\n> hi");
        assert_eq!(screen.out.0.screen().cursor_position(), (3, 2));
        screen.draw(&lines(&["three"]), frame(&["> "])).unwrap();
        assert_eq!(shown(&screen), "one\ntwo\nthree\n> ");
        screen.draw(&lines(&["four", "five", "six"]), frame(&["> a"])).unwrap();
        assert_eq!(shown(&screen), "two\nthree\nfour\nfive\nsix\n> a");
        screen.out.0.screen_mut().set_scrollback(1);
        assert!(shown(&screen).starts_with("one\n"), "{}", shown(&screen));
    }

    #[test]
    fn only_changed_lines_are_written_again() {
        let mut screen = InlineScreen::new(Vec::new(), 20);
        screen.draw(&[], frame(&["first", "> a"])).unwrap();
        screen.out.clear();
        screen.draw(&[], frame(&["first", "> ab"])).unwrap();
        let text = String::from_utf8(screen.out.clone()).unwrap();
        assert!(text.contains("> ab") && !text.contains("first"), "{text:?}");
        screen.out.clear();
        screen.draw(&[], frame(&["first", "> ab"])).unwrap();
        assert_eq!(screen.out, b"");
    }

    #[test]
    fn full_lines_keep_their_last_character() {
        let mut screen = screen(4, 5);
        screen.draw(&lines(&["12345"]), frame(&["abcde", "> "])).unwrap();
        screen.draw(&lines(&["67890"]), frame(&["fghij"])).unwrap();
        assert_eq!(shown(&screen), "12345\n67890\nfghij");
    }

    #[test]
    fn a_frame_that_was_wrapped_by_a_resize_is_replaced() {
        let mut screen = screen(8, 20);
        screen.draw(&lines(&["done"]), frame(&["a line of 18 chars", "> x"])).unwrap();
        // A terminal that wraps again shows the frame in three rows of ten columns.
        screen.out.0 = vt100::Parser::new(8, 10, 100);
        screen.out.0.process(b"done\r\na line of 18 chars\r\n> x");
        screen.resize(10);
        screen.draw(&[], frame(&["a line…", "> x"])).unwrap();
        assert_eq!(shown(&screen), "done\na line…\n> x");
    }
}
