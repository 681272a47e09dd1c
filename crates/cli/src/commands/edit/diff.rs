//! Renders a plan line by line: each line before and after.

use std::collections::HashMap;

use threadline_app::Mask;
use threadline_app::edit::PlannedEdit;
use threadline_edit::ChangeKind;
use threadline_entry::Entry;
use threadline_session::EntryIndex;
use threadline_term::{TermPage, TermText, TextLabel};

use super::report::describe;
use crate::context::Context;
use crate::ui::OutputStream;

/// Number of characters shown around a difference.
const AROUND: usize = 24;
/// Maximum number of characters of a difference.
const LONGEST: usize = 160;

pub(super) fn write(
    out: &mut OutputStream,
    cx: &Context,
    edit: &PlannedEdit<'_>,
    mask: &Mask,
) -> std::io::Result<()> {
    let page = cx.ui.page();
    let plan = edit.plan();
    writeln!(out)?;
    let entries = plan.session().entries();
    // The old line may contain secrets; the new line does not, or they are masked.
    let secret = edit.hides_content() || cx.app.config().mask.is_on();
    let summary = |entry: &Entry| {
        if secret { entry.type_name().unwrap_or_default().into_owned() } else { describe(entry) }
    };
    let mut by_line: HashMap<u64, EntryIndex> = HashMap::new();
    for (idx, entry) in entries.enumerated() {
        by_line.entry(entry.at().line_no).or_insert(idx);
    }
    for change in plan.changes().filter(|change| change.kind == ChangeKind::Removed) {
        let entry = change.line_no.and_then(|line| by_line.get(&line)).map(|&idx| &entries[idx]);
        let what = entry.map(summary).unwrap_or_default();
        let line = format!("- {:>6}  {what}", change.line_no.unwrap_or_default());
        writeln!(out, "{}  {}", page.paint(TextLabel::Removed, &line), why(page, &change.reasons))?;
    }
    let mut changes = plan.changes().filter(|change| change.kind != ChangeKind::Removed).peekable();
    let mut rendered = Vec::new();
    for at in 0..plan.len() {
        let source = plan.source_of(at).map(|idx| &entries[idx]);
        let Some(next) = changes.peek() else { break };
        if next.line_no != source.map(|entry| entry.at().line_no) {
            continue;
        }
        let Some(change) = changes.next() else { break };
        rendered.clear();
        plan.render(at, &mut rendered);
        let (entry, _) = Entry::parse(&rendered);
        match source {
            None => {
                let line = format!("+         {}", mask.text(&describe(&entry)));
                writeln!(out, "{}  {}", page.paint(TextLabel::Added, &line), why(page, &change.reasons))?;
            }
            Some(source) => {
                let line = format!("~ {:>6}  {}", source.at().line_no, summary(source));
                writeln!(out, "{}  {}", page.paint(TextLabel::Warning, &line), why(page, &change.reasons))?;
                // Prefer the change of the text over changes of ids and links, which the reasons name.
                let said = plan.draft_line(at);
                let now = if said.text() == source.text() { &entry } else { &*said };
                let (before, after) = difference(source.text(), &mask.text(now.text()));
                if !secret {
                    writeln!(out, "          {}", page.paint(TextLabel::Removed, format!("- {before}")))?;
                }
                writeln!(out, "          {}", page.paint(TextLabel::Added, format!("+ {after}")))?;
            }
        }
    }
    Ok(())
}

fn why(page: TermPage, why: &[std::borrow::Cow<'_, str>]) -> TermText {
    page.paint(TextLabel::Dim, format!("({})", why.join("; ")))
}

/// The part in which two texts differ, with some characters around it.
fn difference(before: &str, after: &str) -> (String, String) {
    let same_start = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - same_start;
    let same_end =
        before.bytes().rev().zip(after.bytes().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let piece = |text: &str| {
        let start = floor(text, same_start.saturating_sub(AROUND));
        let end = floor(text, (text.len() - same_end + AROUND).min(text.len()));
        let piece = &text[start..end.max(start)];
        let cut: String = piece.chars().take(LONGEST).collect();
        let dots = |hidden: bool| if hidden { "…" } else { "" };
        let tail = dots(end < text.len() || cut.len() < piece.len());
        format!("{}{cut}{tail}", dots(start > 0))
    };
    (piece(before), piece(after))
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
