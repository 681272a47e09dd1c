//! Lists to choose from, and questions, that replace the composer.

mod rules;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use threadline_agent::{RewindPoint, SummaryPart};
use threadline_permission::RuleEffect;

use crate::composer::TextArea;
use crate::message::BackgroundTask;
use crate::permission_rule::ScreenRule;

/// The parts of a session that a rewind restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RewindScope {
    Both,
    Conversation,
    Files,
    /// Nothing: a part of the conversation is replaced by a summary.
    Summary(SummaryPart),
}

impl RewindScope {
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Both, "conversation and files"),
        (Self::Conversation, "conversation only"),
        (Self::Files, "files only"),
        (Self::Summary(SummaryPart::From), "summarise from here: the prompt and all that followed"),
        (Self::Summary(SummaryPart::UpTo), "summarise up to here: all that preceded"),
    ];
}

/// A list to choose from, or a line to type.
pub(crate) struct Dialog {
    pub(crate) title: String,
    /// Explains the question, one sentence per line.
    pub(crate) about: Vec<String>,
    pub(crate) items: Vec<String>,
    pub(crate) selected: usize,
    /// The text that is typed instead of a choice.
    pub(crate) input: Option<TextArea>,
    /// The keys, if they are not the usual ones.
    pub(crate) keys: Option<&'static str>,
    kind: DialogKind,
}

enum DialogKind {
    RewindPoint(Vec<RewindPoint>),
    RewindScope(String),
    Tasks(Vec<BackgroundTask>),
    /// The rules with one effect.
    Rules(RuleEffect, Vec<ScreenRule>),
    NewRule(RuleEffect),
    /// The file for a new rule.
    RulePlace(ScreenRule),
    RemoveRule(ScreenRule),
}

/// The result of a key in a dialog.
#[derive(Debug, PartialEq)]
pub(crate) enum DialogAnswer {
    Pending,
    Close,
    Rewind(String, RewindScope),
    StopTask(String),
    /// The rules with an effect are shown.
    ShowRules(RuleEffect),
    /// A rule was typed that has to be checked.
    CheckRule(ScreenRule),
    AddRule(ScreenRule),
    RemoveRule(ScreenRule),
}

impl Dialog {
    fn new(title: &str, items: Vec<String>, kind: DialogKind) -> Self {
        let (title, about) = (title.to_owned(), Vec::new());
        Self { title, about, items, selected: 0, input: None, keys: None, kind }
    }

    /// A list of prompts to return to; the newest is selected.
    pub(crate) fn rewind(points: Vec<RewindPoint>) -> Self {
        let labels = points.iter().map(|point| point.label.clone()).collect();
        let selected = points.len() - 1;
        let title = "Return to the state before a prompt";
        Self { selected, ..Self::new(title, labels, DialogKind::RewindPoint(points)) }
    }

    /// A list of background commands to stop.
    pub(crate) fn tasks(tasks: &[BackgroundTask]) -> Self {
        let items = tasks.iter().map(|task| format!("{}  {}", task.id, task.description)).collect();
        Self::new("Background commands; Enter stops one", items, DialogKind::Tasks(tasks.to_vec()))
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> DialogAnswer {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.items.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return self.leave(),
            KeyCode::Char('c') if is_control => return DialogAnswer::Close,
            KeyCode::Enter => return self.choose(),
            _ if self.input.is_some() => self.edit(key),
            KeyCode::Char('q') => return self.leave(),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Left | KeyCode::BackTab => return self.turn_page(false),
            KeyCode::Right | KeyCode::Tab => return self.turn_page(true),
            KeyCode::Char(ch @ '1'..='9') if self.has_numbers() => {
                self.selected = (ch as usize - '1' as usize).min(last);
                return self.choose();
            }
            _ => {}
        }
        DialogAnswer::Pending
    }

    /// Takes a line that was typed on a screen for screen readers: the number of an item, a text, or the name
    /// of a list of rules. Returns the equivalent key.
    pub(crate) fn line_key(&mut self, line: &str) -> KeyCode {
        let line = line.trim();
        if let Some(input) = &mut self.input {
            input.set(line);
            return KeyCode::Enter;
        }
        match line.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) {
            Some(at) if at < self.items.len() => {
                self.selected = at;
                KeyCode::Enter
            }
            _ if line == ">" => KeyCode::Right,
            _ => KeyCode::Esc,
        }
    }

    /// Whether there are other lists beside this one.
    pub(crate) fn has_pages(&self) -> bool {
        matches!(self.kind, DialogKind::Rules(..))
    }

    /// Whether a digit chooses an item.
    fn has_numbers(&self) -> bool {
        matches!(self.kind, DialogKind::RewindScope(_) | DialogKind::RulePlace(_))
    }

    fn edit(&mut self, key: KeyEvent) {
        let Some(input) = &mut self.input else { return };
        match key.code {
            KeyCode::Backspace => input.delete(input.previous()..input.cursor()),
            KeyCode::Left => input.move_to(input.previous()),
            KeyCode::Right => input.move_to(input.next()),
            KeyCode::Home => input.move_to(0),
            KeyCode::End => input.move_to(input.text().len()),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                input.kill(0..input.cursor());
            }
            KeyCode::Char(ch) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                input.insert(&ch.to_string());
            }
            _ => {}
        }
    }

    /// Closes the dialog, or returns to the list that it belongs to.
    fn leave(&self) -> DialogAnswer {
        match &self.kind {
            DialogKind::NewRule(effect) => DialogAnswer::ShowRules(*effect),
            DialogKind::RulePlace(rule) | DialogKind::RemoveRule(rule) => {
                DialogAnswer::ShowRules(rule.effect)
            }
            _ => DialogAnswer::Close,
        }
    }

    fn choose(&mut self) -> DialogAnswer {
        match &self.kind {
            DialogKind::RewindPoint(points) => {
                let Some(point) = points.get(self.selected) else { return DialogAnswer::Close };
                let title = format!("Restore the state before “{}”, or summarise", point.label);
                let items = RewindScope::ALL.iter().map(|(_, name)| (*name).to_owned()).collect();
                *self = Self::new(&title, items, DialogKind::RewindScope(point.uuid.clone()));
                DialogAnswer::Pending
            }
            DialogKind::RewindScope(uuid) => {
                let scope =
                    RewindScope::ALL.get(self.selected).map_or(RewindScope::Both, |(scope, _)| *scope);
                DialogAnswer::Rewind(uuid.clone(), scope)
            }
            DialogKind::Tasks(tasks) => match tasks.get(self.selected) {
                Some(task) => DialogAnswer::StopTask(task.id.clone()),
                None => DialogAnswer::Close,
            },
            DialogKind::Rules(..)
            | DialogKind::NewRule(_)
            | DialogKind::RulePlace(_)
            | DialogKind::RemoveRule(_) => self.choose_rule(),
        }
    }
}
