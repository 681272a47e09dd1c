//! Questions in the frame.

use threadline_term::{TermPage, TermText, TextLabel, text, truncate, visible};
use unicode_width::UnicodeWidthStr;

use super::{FramePart, dim, fit};
use crate::composer::shown;
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
    let choices = state.choices();
    let used = part.lines.len() + choices.len() + 3;
    let room = rows.saturating_sub(used).max(1);
    let lines = &approval.lines;
    let first = state.scroll.min(lines.len().saturating_sub(room));
    part.lines.extend(lines.iter().skip(first).take(room).map(|line| text!("  {line}")));
    let below = lines.len().saturating_sub(first + room);
    if below > 0 || first > 0 {
        part.lines.push(dim(page, &format!("  … {first} lines above, {below} below (PgUp, PgDn)")));
    }
    if let Some(reason) = &state.reason {
        let label = "  Why not? ";
        let room = page.width.unwrap_or(80).saturating_sub(label.width() + 1);
        let typed = shown(reason.text());
        let skipped = typed.chars().count().saturating_sub(room);
        let typed: String = typed.chars().skip(skipped).collect();
        part.cursor = Some((part.lines.len(), label.width() + typed.width()));
        part.lines.push(page.paint(TextLabel::Prompt, label) + typed);
        part.lines.push(dim(page, "  Enter sends it to the model; empty: stop. Esc goes back"));
        return part;
    }
    for (i, choice) in choices.iter().enumerate() {
        let key = choice.key().map(|key| format!(" ({key})")).unwrap_or_default();
        let line = format!("{}. {}{key}", i + 1, visible(&choice.label()));
        part.lines.push(choice_line(page, &line, i == state.selected));
    }
    let more = if waiting > 1 { format!(" · {} more questions", waiting - 1) } else { String::new() };
    part.lines.push(dim(page, &format!("  Enter chooses · Esc stops the turn{more}")));
    part
}

/// Returns a list to choose from.
pub(super) fn dialog_part(dialog: &Dialog, page: TermPage, rows: usize) -> FramePart {
    let mut lines = vec![page.paint(TextLabel::Warning, fit(page, &visible(&dialog.title)))];
    let room = rows.saturating_sub(4).clamp(1, 12);
    let first = (dialog.selected + 1).saturating_sub(room);
    for (i, item) in dialog.items.iter().enumerate().skip(first).take(room) {
        lines.push(choice_line(page, &visible(item), i == dialog.selected));
    }
    lines.push(dim(page, "  Enter chooses · Esc closes"));
    FramePart { lines, cursor: None }
}

fn choice_line(page: TermPage, text: &str, is_selected: bool) -> TermText {
    let text = truncate(text, page.width.unwrap_or(80).saturating_sub(2));
    if is_selected { page.paint(TextLabel::Prompt, text!("❯ {text}")) } else { text!("  {text}") }
}
