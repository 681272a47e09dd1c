//! Questions in the frame.

use threadline_term::{TermPage, TermText, TextLabel, text, truncate, visible};
use unicode_width::UnicodeWidthStr;

use super::{FramePart, dim, fit};
use crate::approval::Choice;
use crate::composer::{TextArea, shown};
use crate::model::{ApprovalState, Dialog};

/// Returns the question about a call.
pub(super) fn approval_part(state: &ApprovalState, waiting: usize, page: TermPage, rows: usize) -> FramePart {
    let approval = &state.approval;
    let mut part = FramePart::default();
    let title = fit(page, &format!("? {}", visible(&approval.title)));
    part.lines.push(page.paint(TextLabel::Warning, title));
    if let Some(reason) = &approval.reason {
        part.lines.push(dim(page, &format!("  {}", visible(reason))));
    }
    let choices = choice_lines(state, page);
    let used = part.lines.len() + choices.len() + 4;
    let room = rows.saturating_sub(used).max(1);
    let lines = &approval.lines;
    let first = state.scroll.min(lines.len().saturating_sub(room));
    part.lines.extend(lines.iter().skip(first).take(room).map(|line| text!("  {line}")));
    let below = lines.len().saturating_sub(first + room);
    if below > 0 || first > 0 {
        part.lines.push(dim(page, &format!("  … {first} lines above, {below} below (PgUp, PgDn)")));
    }
    if rows > used && !lines.is_empty() {
        part.lines.push(TermText::new());
    }
    if let Some(reason) = &state.reason {
        let label = if state.is_question() { "  Answer: " } else { "  Why not? " };
        let (typed, column) = typed_line(page, reason, label);
        part.cursor = Some((part.lines.len(), column));
        part.lines.push(page.paint(TextLabel::Prompt, label) + typed);
        part.lines.push(dim(page, "  Enter sends it to the model; empty: stop. Esc goes back"));
        return part;
    }
    part.lines.extend(choices);
    let more = if waiting > 1 { format!(" · {} more questions", waiting - 1) } else { String::new() };
    let keys = match state.takes_several() {
        true => "Space marks · Enter sends the marked options",
        false => "Enter chooses",
    };
    part.lines.push(dim(page, &format!("  {keys} · Esc stops the turn{more}")));
    part
}

/// Returns the end of a typed text that fits after a label, and the column of the cursor.
fn typed_line(page: TermPage, input: &TextArea, label: &str) -> (String, usize) {
    let room = page.width.unwrap_or(80).saturating_sub(label.width() + 1);
    let typed = shown(input.text());
    let skipped = typed.chars().count().saturating_sub(room);
    let before = shown(&input.text()[..input.cursor()]);
    let column: usize = before.chars().skip(skipped).collect::<String>().width();
    (typed.chars().skip(skipped).collect(), label.width() + column)
}

/// Returns the choices of a question, each in full: a rule that is written must be seen.
fn choice_lines(state: &ApprovalState, page: TermPage) -> Vec<TermText> {
    let mut lines = Vec::new();
    let choices = state.choices();
    let takes_several = state.takes_several();
    for (i, choice) in choices.iter().enumerate() {
        // A key chooses the first of several similar choices.
        let is_first = !choices[..i].iter().any(|other| other.key() == choice.key());
        let key = choice.key().filter(|_| is_first).map(|key| format!(" ({key})")).unwrap_or_default();
        let mark = match choice {
            Choice::Option { .. } if takes_several && state.marked.contains(&i) => "[x] ",
            Choice::Option { .. } if takes_several => "[ ] ",
            _ => "",
        };
        let line = format!("{}. {mark}{}{key}", i + 1, visible(&state.label(choice)));
        for (row, line) in page.wrap(&line, 5).into_iter().enumerate() {
            let margin = if row == 0 { "" } else { "   " };
            lines.push(choice_line(page, &text!("{margin}{line}"), i == state.selected, row == 0));
        }
    }
    lines
}

/// Returns a list to choose from.
pub(super) fn dialog_part(dialog: &Dialog, page: TermPage, rows: usize) -> FramePart {
    let mut lines = vec![page.paint(TextLabel::Warning, fit(page, &visible(&dialog.title)))];
    lines.extend(dialog.about.iter().map(|line| dim(page, &format!("  {}", visible(line)))));
    let keys = dim(page, &format!("  {}", dialog.keys.unwrap_or("Enter chooses · Esc closes")));
    if let Some(input) = &dialog.input {
        let (typed, column) = typed_line(page, input, "> ");
        let cursor = Some((lines.len(), column));
        lines.extend([page.paint(TextLabel::Prompt, "> ") + typed, keys]);
        return FramePart { lines, cursor };
    }
    let room = rows.saturating_sub(lines.len() + 3).clamp(1, 12);
    let first = (dialog.selected + 1).saturating_sub(room);
    for (i, item) in dialog.items.iter().enumerate().skip(first).take(room) {
        let item = truncate(&visible(item), page.width.unwrap_or(80).saturating_sub(2));
        lines.push(choice_line(page, &item.into(), i == dialog.selected, true));
    }
    lines.push(keys);
    FramePart { lines, cursor: None }
}

fn choice_line(page: TermPage, text: &TermText, is_selected: bool, is_first: bool) -> TermText {
    match (is_selected, is_first) {
        (true, true) => page.paint(TextLabel::Prompt, text!("❯ {text}")),
        (true, false) => page.paint(TextLabel::Prompt, text!("  {text}")),
        (false, _) => text!("  {text}"),
    }
}
