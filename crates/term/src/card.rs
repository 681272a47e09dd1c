//! Rendering of tool calls in full.

use std::path::Path;

use threadline_view::humanize::bytes;
use threadline_view::{
    AttachedFile, CallView, CommandCard, DiffChange, DiffLine, Hunk, MAX_SUBJECT, ToolCard, ToolOutcome,
};

use unicode_width::UnicodeWidthStr;

use crate::ansi::each_line;
use crate::highlight::{can_highlight, highlight};
use crate::markdown;
use crate::page::{TermPage, TextLabel, truncate, without_tabs};
use crate::table::truncate_start;
use crate::text::TermText;
use crate::{text, visible, visible_name};

/// Renders the card of a call for output after an indent. Passes the lines to `emit` one at a time.
pub(crate) fn card_lines(call: &CallView, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    card_lines_without_changes(call, page, indent, emit);
    change_lines(call, page, indent, emit);
}

/// Renders the changes that a command made to files: a line with the path of each file, and its diff.
pub(crate) fn change_lines(call: &CallView, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    let Some(changes) = call.command_changes() else { return };
    let room = page.line_width(indent);
    for file in changes.detailed() {
        let gist = file.gist();
        let path = truncate_start(&visible_name(&file.short_path), room.saturating_sub(gist.width() + 2));
        emit(page.paint(TextLabel::Strong, path) + "  " + page.paint(TextLabel::Dim, gist));
        diff_lines(&file.hunks, page, indent, emit);
    }
    if let Some(rest) = changes.rest() {
        dim_lines(&visible_name(&rest), page, indent, emit);
    }
}

/// Renders the card of a call, as [`card_lines`] does, without the changes that a command made to files.
pub(crate) fn card_lines_without_changes(
    call: &CallView,
    page: TermPage,
    indent: usize,
    emit: &mut dyn FnMut(TermText),
) {
    match &call.card {
        ToolCard::Command(command) => command_lines(command, &call.result, page, indent, emit),
        ToolCard::File { path, text, start_line, .. } => {
            numbered_lines(path, text, *start_line, page, indent, emit)
        }
        ToolCard::Diff { hunks, .. } => diff_lines(hunks, page, indent, emit),
        _ => {}
    }
    body_lines(call, page, indent, emit);
    if matches!(call.card, ToolCard::Fields(_) | ToolCard::Message { .. }) && call.outcome == ToolOutcome::Ok
    {
        let result = call.formatted_result();
        page.wrap_each(visible(&result).trim_end(), indent, |line| emit(page.paint(TextLabel::Dim, line)));
    }
    for file in &call.files {
        emit(page.paint(TextLabel::Dim, attachment_label(file)));
    }
}

/// Renders the cards that are text: neither commands, files nor diffs.
fn body_lines(call: &CallView, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    let dim = |text: &str| page.paint(TextLabel::Dim, text);
    match &call.card {
        ToolCard::Diff { by_hand: true, .. } => emit(dim("(edited by the user before accepting)")),
        ToolCard::Command(_) | ToolCard::File { .. } | ToolCard::Diff { .. } => {}
        ToolCard::Matches { place, files, lines, .. } => {
            if !place.is_empty() {
                dim_lines(&format!("in {}", visible(place)), page, indent, emit);
            }
            if lines.is_empty() {
                files.iter().for_each(|file| page.wrap_each(file, indent, &mut *emit));
            } else {
                page.wrap_each(lines, indent, emit);
            }
        }
        ToolCard::Agent { prompt, answer, .. } => {
            // The prompt and answer of a sub-agent are shown in its turns, if these are known.
            if call.agents.is_empty() {
                dim_lines(prompt, page, indent, emit);
            }
            if !call.answer_is_shown() {
                prose_lines(answer, page, indent, emit);
            }
        }
        ToolCard::Todos(todos) => {
            for todo in todos {
                let mark = match &*todo.status {
                    "completed" => "☑",
                    "in_progress" => "▣",
                    "deleted" => "☒",
                    _ => "☐",
                };
                let change = todo.change().map(|change| format!("  {}", visible(&change)));
                let change = change.unwrap_or_default();
                let mut last: Option<TermText> = None;
                marked_lines(mark, &todo.text, page, indent, &mut |line| {
                    if let Some(line) = last.replace(line) {
                        emit(line);
                    }
                });
                let last = last.unwrap_or_default();
                if last.width() + change.width() <= page.line_width(indent) {
                    emit(last + dim(&change));
                } else {
                    emit(last);
                    emit(dim(&change));
                }
                dim_lines_below(visible(&todo.detail).trim_end(), page, indent, emit);
            }
        }
        ToolCard::Page { prompt, text, .. } => {
            if !prompt.is_empty() {
                emit(dim(&truncate(&visible(prompt), page.line_width(indent))));
            }
            prose_lines(text, page, indent, emit);
        }
        ToolCard::Links { links, text, .. } => {
            for (title, url) in links {
                page.wrap_each(title, indent, &mut *emit);
                emit(page.paint(TextLabel::Link, format!("  {}", visible(url))));
            }
            prose_lines(text, page, indent, emit);
        }
        ToolCard::Questions(questions) => {
            for question in questions {
                page.wrap_each(&question.text, indent, &mut *emit);
                for option in &question.options {
                    let mark = if question.has_chosen(&option.label) { "◉" } else { "○" };
                    marked_lines(mark, &option.label, page, indent, emit);
                    dim_lines_below(&option.description, page, indent, emit);
                }
                if let Some(answer) = question.free_text_answer() {
                    marked_lines("◉", &answer, page, indent, emit);
                }
                if let Some(notes) = &question.notes {
                    marked_lines(">", notes, page, indent, emit);
                }
            }
        }
        ToolCard::Plan(text) | ToolCard::Message { text, .. } => prose_lines(text, page, indent, emit),
        ToolCard::Fields(fields) => {
            for (key, value) in fields {
                let key = format!("{}:", visible(key));
                let mut is_first = true;
                // `format!` would reserve twice the length of a long value.
                let text = [&*key, " ", &visible(value)].concat();
                page.wrap_each(&text, indent + 2, |line| {
                    emit(match is_first {
                        true if line.as_str().starts_with(&key) => {
                            page.paint_start(TextLabel::Dim, key.len(), line)
                        }
                        true => line,
                        false => text!("  {line}"),
                    });
                    is_first = false;
                });
            }
        }
    }
}

fn dim_lines(text: &str, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    page.wrap_each(text, indent, |line| emit(page.paint(TextLabel::Dim, line)));
}

/// Renders a text in dim lines, indented below a line with a mark.
fn dim_lines_below(text: &str, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    page.wrap_each(text, indent + 2, |line| emit(page.paint(TextLabel::Dim, text!("  {line}"))));
}

/// Renders Markdown on a terminal, and prints its source elsewhere.
fn prose_lines(text: &str, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    match page.color {
        true => markdown::render(text, page, indent).into_iter().for_each(emit),
        false => page.wrap_each(text, indent, emit),
    }
}

/// Wraps a text after a mark. The following lines are aligned with the first one.
fn marked_lines(mark: &str, text: &str, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    let mut is_first = true;
    page.wrap_each(text, indent + 2, |line| {
        emit(if is_first { text!("{mark} {line}") } else { text!("  {line}") });
        is_first = false;
    });
}

/// Returns the type and size of an attached file, in brackets.
pub(crate) fn attachment_label(file: &AttachedFile) -> String {
    format!("[{}, {}]", visible(&file.media_type), bytes(file.data.len() as u64 / 4 * 3))
}

fn command_lines(
    card: &CommandCard,
    result: &str,
    page: TermPage,
    indent: usize,
    emit: &mut dyn FnMut(TermText),
) {
    let room = page.line_width(indent);
    // A command of one line is the subject of the call, unless it is too long.
    if card.command.len() > MAX_SUBJECT || card.command.lines().nth(1).is_some() {
        let command = card.command.trim_end();
        each_line(command, TextLabel::Code.style(), |line| line.into_lines(page, room, &mut *emit));
    }
    for (text, label) in [(card.output.text(result), TextLabel::Dim), (&*card.errors, TextLabel::Warning)] {
        if !text.trim().is_empty() {
            each_line(text.trim_end(), label.style(), |line| line.into_lines(page, room, &mut *emit));
        }
    }
    if let Some(path) = &card.kept_at {
        let text = format!("(full output saved to {})", visible_name(path));
        page.wrap_each(&text, indent, |line| emit(page.paint(TextLabel::Dim, line)));
    }
}

/// Renders the lines of a file with their numbers.
fn numbered_lines(
    path: &str,
    text: &str,
    start: u64,
    page: TermPage,
    indent: usize,
    emit: &mut dyn FnMut(TermText),
) {
    let language = Path::new(path).extension().unwrap_or_default().to_string_lossy().into_owned();
    let text = visible(text);
    let count = text.lines().count();
    let digits = (start as usize).saturating_add(count).to_string().len();
    let room = page.line_width(indent + digits + 2);
    let number =
        |i: usize| page.paint(TextLabel::Dim, format!("{:>digits$} ", (start as usize).saturating_add(i)));
    // Code without colours is rendered from the text directly.
    let painted =
        if can_highlight(&text, &language, page) { highlight(&text, &language, page) } else { Vec::new() };
    for (i, plain) in text.lines().enumerate() {
        let fits = without_tabs(plain).into_owned();
        let line = match painted.get(i) {
            Some(line) if fits.width() <= room => line.clone(),
            None if fits.width() <= room => fits.into(),
            _ => truncate(plain, room).into(),
        };
        emit(number(i) + line);
    }
}

/// Renders hunks with line numbers, signs, and the changed words.
pub(crate) fn diff_lines(hunks: &[Hunk], page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    for (i, hunk) in hunks.iter().enumerate() {
        if i > 0 {
            emit(page.paint(TextLabel::Dim, "⋯"));
        }
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        for line in &hunk.lines {
            let number = match line.change {
                DiffChange::Removed => old,
                DiffChange::Added | DiffChange::Kept => new,
            };
            old += u64::from(line.change != DiffChange::Added);
            new += u64::from(line.change != DiffChange::Removed);
            let number = if hunk.new_start == 0 { String::new() } else { format!("{number:>5} ") };
            let line = diff_line(line, page, indent + number.len() + 2);
            emit(page.paint(TextLabel::Dim, number) + line);
        }
    }
}

fn diff_line(line: &DiffLine, page: TermPage, indent: usize) -> TermText {
    let (sign, label, word) = match line.change {
        DiffChange::Kept => (" ", TextLabel::Dim, TextLabel::Dim),
        DiffChange::Added => ("+", TextLabel::Added, TextLabel::AddedWord),
        DiffChange::Removed => ("-", TextLabel::Removed, TextLabel::RemovedWord),
    };
    let shown = without_tabs(visible(&line.text)).into_owned();
    let room = page.line_width(indent);
    // The changed ranges are offsets into the original text. They are ignored if the text was altered or
    // truncated.
    if line.changed.is_empty() || shown != line.text || shown.width() > room || !page.color {
        return page.paint(label, format!("{sign} {}", truncate(&shown, room)));
    }
    let mut out = page.paint(label, format!("{sign} "));
    let mut at = 0;
    for range in &line.changed {
        out.push(page.paint(label, &line.text[at..range.start]));
        out.push(page.paint(word, &line.text[range.clone()]));
        at = range.end;
    }
    out.push(page.paint(label, &line.text[at..]));
    out
}
