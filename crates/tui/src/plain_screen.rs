//! A screen for screen readers: lines are appended, nothing is drawn again, and prompts are typed as lines.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use threadline_term::TermText;

use crate::model::Model;
use crate::queue::{EventQueue, InputEvent};

/// Writes the new content of a model as lines.
#[derive(Debug)]
pub(crate) struct PlainScreen<W> {
    out: W,
    /// The call that was asked about last.
    asked: Option<String>,
    /// The list that was shown last.
    listed: Option<String>,
    /// Whether a turn was running, and whether the person was asked for a prompt.
    was_running: bool,
    has_asked: bool,
}

impl<W: Write> PlainScreen<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, asked: None, listed: None, was_running: false, has_asked: false }
    }

    /// Writes finished lines, a new question, and the prompt sign when a prompt can be typed.
    pub(crate) fn draw(&mut self, finished: &[TermText], model: &Model) -> io::Result<()> {
        for line in finished.iter().filter(|line| !line.plain().trim().is_empty()) {
            writeln!(self.out, "{}", line.as_str())?;
        }
        let is_running = model.turn.is_some();
        if is_running && !self.was_running {
            writeln!(self.out, "Working.")?;
        }
        self.was_running = is_running;
        match model.approvals.front() {
            Some(state) if self.asked.as_ref() != Some(&state.approval.id) => {
                self.asked = Some(state.approval.id.clone());
                self.ask(model)?;
            }
            _ => {}
        }
        self.list(model)?;
        let is_ready = model.is_open && !is_running && model.dialog.is_none();
        if is_ready && (!self.has_asked || !finished.is_empty()) {
            write!(self.out, "Prompt: ")?;
        }
        self.has_asked = is_ready;
        self.out.flush()
    }

    /// Writes a list to choose from, if it is another one than before.
    fn list(&mut self, model: &Model) -> io::Result<()> {
        let Some(dialog) = &model.dialog else {
            self.listed = None;
            return Ok(());
        };
        let mut lines = vec![format!("Question: {}", dialog.title)];
        lines.extend(dialog.about.iter().cloned());
        lines.extend(dialog.items.iter().enumerate().map(|(i, item)| format!("{}. {item}", i + 1)));
        let hint = match (&dialog.input, dialog.has_pages()) {
            (Some(_), _) => "Type a text, or nothing to return: ",
            (None, true) => "Type a number, > for the next list, or nothing to close: ",
            (None, false) => "Type a number, or nothing to close: ",
        };
        let lines: Vec<String> =
            lines.iter().map(|line| TermText::from(line.as_str()).as_str().to_owned()).collect();
        let text = format!("{}\n{hint}", lines.join("\n"));
        if self.listed.as_ref() != Some(&text) {
            write!(self.out, "{text}")?;
            self.listed = Some(text);
        }
        Ok(())
    }

    fn ask(&mut self, model: &Model) -> io::Result<()> {
        let Some(state) = model.approvals.front() else { return Ok(()) };
        let title = TermText::from(&state.approval.title);
        writeln!(self.out, "Question: {}", title.as_str())?;
        if let Some(reason) = &state.approval.reason {
            writeln!(self.out, "Reason: {}", TermText::from(reason).as_str())?;
        }
        for line in &state.approval.lines {
            writeln!(self.out, "{}", line.as_str())?;
        }
        for (i, choice) in state.choices().iter().enumerate() {
            writeln!(self.out, "{}. {}", i + 1, TermText::from(choice.label()).as_str())?;
        }
        let hint = if state.takes_several() { "Type one or more numbers" } else { "Type a number" };
        write!(self.out, "{hint}: ")
    }
}

/// Starts the thread that reads lines. The end of the input ends the session.
pub(crate) fn start_lines(queue: &Arc<EventQueue>) -> io::Result<()> {
    let queue = Arc::clone(queue);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        for line in io::stdin().lock().lines() {
            match line {
                Ok(line) => queue.push_input(InputEvent::Line(line)),
                Err(_) => break,
            }
        }
        queue.push_input(InputEvent::Terminate);
    })?;
    Ok(())
}
