//! Questions about calls that replace the composer.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::approval::{Approval, Choice};
use crate::composer::TextArea;

/// A question about a call, and the answer so far.
pub(crate) struct ApprovalState {
    pub(crate) approval: Approval,
    pub(crate) selected: usize,
    /// The first line of the preview that is shown.
    pub(crate) scroll: usize,
    /// The reason for a refusal, while it is typed.
    pub(crate) reason: Option<TextArea>,
    /// The answers to the questions of the model so far.
    pub(crate) answers: Vec<(String, String)>,
    /// The marked options of the current question, if it takes several.
    pub(crate) marked: BTreeSet<usize>,
}

/// The answer to a question about a call.
#[derive(Debug, PartialEq)]
pub(crate) enum ApprovalAnswer {
    /// There is none yet.
    Pending,
    Choose(Choice),
    /// The options that are marked.
    SendMarked,
    /// No, with a reason; without one, the turn ends.
    Refuse(String),
}

impl ApprovalState {
    pub(crate) fn new(approval: Approval) -> Self {
        let (answers, marked) = (Vec::new(), BTreeSet::new());
        Self { approval, selected: 0, scroll: 0, reason: None, answers, marked }
    }

    /// Whether the model asks the person something, instead of asking for permission.
    pub(crate) fn is_question(&self) -> bool {
        self.approval.choices.iter().any(|choice| matches!(choice, Choice::Option { .. }))
    }

    /// Whether several options of the current question can be chosen.
    pub(crate) fn takes_several(&self) -> bool {
        self.approval.questions().get(self.answers.len()).is_some_and(|question| question.takes_several)
    }

    /// Returns the labels of the marked options, and an answer in own words, separated by commas.
    pub(crate) fn joined_answer(&self, own: Option<&str>) -> String {
        let choices = self.choices();
        let label = |place: &usize| match choices.get(*place) {
            Some(Choice::Option { label, .. }) => Some(&**label),
            _ => None,
        };
        self.marked.iter().filter_map(label).chain(own).collect::<Vec<_>>().join(", ")
    }

    /// Marks the option at a place, or removes its mark.
    fn toggle(&mut self, place: usize) {
        if !self.marked.remove(&place) {
            self.marked.insert(place);
        }
    }

    /// The label of a choice.
    pub(crate) fn label(&self, choice: &Choice) -> String {
        match choice {
            Choice::No if self.is_question() => "Another answer".to_owned(),
            choice => choice.label(),
        }
    }

    /// The choices of the question that is asked now.
    pub(crate) fn choices(&self) -> Vec<&Choice> {
        let current = self.answers.len();
        let is_current = |choice: &&Choice| match choice {
            Choice::Option { question, .. } => *question == current,
            _ => true,
        };
        self.approval.choices.iter().filter(is_current).collect()
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> ApprovalAnswer {
        if let Some(reason) = &mut self.reason {
            match key.code {
                KeyCode::Enter => return ApprovalAnswer::Refuse(reason.text().to_owned()),
                KeyCode::Esc => self.reason = None,
                KeyCode::Backspace => reason.delete(reason.previous()..reason.cursor()),
                KeyCode::Left => reason.move_to(reason.previous()),
                KeyCode::Right => reason.move_to(reason.next()),
                KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                    reason.kill(0..reason.cursor());
                }
                KeyCode::Char(ch) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                    reason.insert(&ch.to_string());
                }
                _ => {}
            }
            return ApprovalAnswer::Pending;
        }
        let choices: Vec<Choice> = self.choices().into_iter().cloned().collect();
        let last = choices.len().saturating_sub(1);
        let chosen = match key.code {
            KeyCode::Esc => return ApprovalAnswer::Refuse(String::new()),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return ApprovalAnswer::Refuse(String::new());
            }
            KeyCode::Up | KeyCode::BackTab => {
                self.selected = self.selected.checked_sub(1).unwrap_or(last);
                None
            }
            KeyCode::Down | KeyCode::Tab => {
                self.selected = if self.selected == last { 0 } else { self.selected + 1 };
                None
            }
            KeyCode::PageUp => {
                self.scroll = self.scroll.saturating_sub(10);
                None
            }
            KeyCode::PageDown => {
                self.scroll = (self.scroll + 10).min(self.approval.lines.len().saturating_sub(1));
                None
            }
            KeyCode::Enter if self.marked.is_empty() || choices.get(self.selected) == Some(&Choice::No) => {
                choices.get(self.selected)
            }
            KeyCode::Enter => return ApprovalAnswer::SendMarked,
            KeyCode::Char(ch @ (' ' | '1'..='9')) if self.takes_several() => {
                let place = if ch == ' ' { self.selected } else { ch as usize - '1' as usize };
                match choices.get(place) {
                    Some(Choice::Option { .. }) => {
                        (self.selected, _) = (place, self.toggle(place));
                        None
                    }
                    other => other,
                }
            }
            KeyCode::Char(ch @ '1'..='9') => choices.get(ch as usize - '1' as usize),
            KeyCode::Char(ch) => choices.iter().find(|choice| choice.key() == Some(ch)),
            _ => None,
        };
        match chosen {
            None => ApprovalAnswer::Pending,
            Some(Choice::No) => {
                self.reason = Some(TextArea::default());
                ApprovalAnswer::Pending
            }
            Some(choice) => ApprovalAnswer::Choose(choice.clone()),
        }
    }
}
