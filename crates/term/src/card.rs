//! Rendering of tool calls in full.

use std::path::Path;

use threadline_view::humanize::bytes;
use threadline_view::{
    AttachedFile, CallView, CommandCard, DiffChange, DiffLine, Hunk, ToolCard, ToolOutcome,
};

use unicode_width::UnicodeWidthStr;

use crate::ansi::each_line;
use crate::highlight::{can_highlight, highlight};
use crate::markdown;
use crate::page::{TermPage, TextLabel, truncate};
use crate::text::TermText;
use crate::{text, visible};

/// Renders the card of a call for output after an indent. Passes the lines to `emit` one at a time.
pub(crate) fn card_lines(call: &CallView, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    match &call.card {
        ToolCard::Command(command) => command_lines(command, page, indent, emit),
        ToolCard::File { path, text, start_line, .. } => {
            numbered_lines(path, text, *start_line, page, indent, emit)
        }
        ToolCard::Diff { hunks, .. } => diff_lines(hunks, page, indent, emit),
        _ => {}
    }
    for line in short_lines(call, page, indent) {
        emit(line);
    }
    if matches!(call.card, ToolCard::Fields(_) | ToolCard::Message { .. }) && call.outcome == ToolOutcome::Ok
    {
        let result = call.formatted_result();
        page.wrap_each(visible(&result).trim_end(), indent, |line| emit(page.paint(TextLabel::Dim, &line)));
    }
    for file in &call.files {
        emit(page.paint(TextLabel::Dim, attachment_label(file)));
    }
}

/// Returns the lines of a card of a kind that is rarely long.
fn short_lines(call: &CallView, page: TermPage, indent: usize) -> Vec<TermText> {
    let dim = |text: &str| page.paint(TextLabel::Dim, text);
    let dim_line = |line: &TermText| page.paint(TextLabel::Dim, line);
    let prose = |text: &str| {
        if page.color { markdown::render(text, page, indent) } else { page.wrap(&visible(text), indent) }
    };
    match &call.card {
        ToolCard::Diff { by_hand: true, .. } => vec![dim("(edited by the user before accepting)")],
        ToolCard::Command(_) | ToolCard::File { .. } | ToolCard::Diff { .. } => Vec::new(),
        ToolCard::Matches { place, files, lines, .. } => {
            let place = (!place.is_empty()).then(|| format!("in {}", visible(place)));
            let place = place.iter().flat_map(|place| page.wrap(place, indent)).map(|line| dim_line(&line));
            let text = if lines.is_empty() { files.join("\n") } else { lines.clone() };
            place.chain(page.wrap(&visible(&text), indent)).collect()
        }
        ToolCard::Agent { prompt, answer, .. } => {
            // The prompt and answer of a sub-agent are shown in its turns, if these are known.
            let mut lines = Vec::new();
            if call.agents.is_empty() {
                lines.extend(page.wrap(prompt, indent).iter().map(dim_line));
            }
            if !call.answer_is_shown() {
                lines.extend(prose(answer));
            }
            lines
        }
        ToolCard::Todos(todos) => todos
            .iter()
            .flat_map(|todo| {
                let mark = match &*todo.status {
                    "completed" => "☑",
                    "in_progress" => "▣",
                    "deleted" => "☒",
                    _ => "☐",
                };
                let change = todo.change().map(|change| format!("  {}", visible(&change)));
                let change = change.unwrap_or_default();
                let mut lines = marked_lines(mark, &todo.text, page, indent);
                match lines.last_mut() {
                    Some(last) if last.width() + change.width() <= page.line_width(indent) => {
                        last.push(dim(&change));
                    }
                    _ => lines.push(dim(&change)),
                }
                let detail = page.wrap(visible(&todo.detail).trim_end(), indent + 2);
                lines.extend(detail.iter().map(|line| dim_line(&text!("  {line}"))));
                lines
            })
            .collect(),
        ToolCard::Page { prompt, text, .. } => {
            let asked =
                (!prompt.is_empty()).then(|| dim(&truncate(&visible(prompt), page.line_width(indent))));
            asked.into_iter().chain(prose(text)).collect()
        }
        ToolCard::Links { links, text, .. } => links
            .iter()
            .flat_map(|(title, url)| {
                let url = page.paint(TextLabel::Link, format!("  {}", visible(url)));
                page.wrap(&visible(title), indent).into_iter().chain([url])
            })
            .chain(prose(text))
            .collect(),
        ToolCard::Plan(plan) => prose(plan),
        ToolCard::Questions(questions) => questions
            .iter()
            .flat_map(|question| {
                let mut lines = page.wrap(&visible(&question.text), indent);
                for option in &question.options {
                    let mark = if question.has_chosen(&option.label) { "◉" } else { "○" };
                    lines.extend(marked_lines(mark, &option.label, page, indent));
                    let meant = page.wrap(&visible(&option.description), indent + 2);
                    lines.extend(meant.iter().map(|line| dim_line(&text!("  {line}"))));
                }
                let own = question.free_text_answer().into_iter();
                lines.extend(own.flat_map(|answer| marked_lines("◉", &answer, page, indent)));
                lines.extend(question.notes.iter().flat_map(|notes| marked_lines(">", notes, page, indent)));
                lines
            })
            .collect(),
        ToolCard::Message { text, .. } => prose(text),
        ToolCard::Fields(fields) => fields
            .iter()
            .flat_map(|(key, value)| {
                let key = format!("{}:", visible(key));
                let mut lines = page.wrap(&format!("{key} {}", visible(value)), indent + 2).into_iter();
                let first = lines.next().unwrap_or_default();
                let first = match first.plain().strip_prefix(&key) {
                    Some(rest) => dim(&key) + rest,
                    None => first,
                };
                std::iter::once(first).chain(lines.map(|line| text!("  {line}"))).collect::<Vec<_>>()
            })
            .collect(),
    }
}

/// Wraps a text after a mark. The following lines are aligned with the first one.
fn marked_lines(mark: &str, text: &str, page: TermPage, indent: usize) -> Vec<TermText> {
    let lines = page.wrap(&visible(text), indent + 2);
    let line = |(i, line): (usize, TermText)| if i == 0 { text!("{mark} {line}") } else { text!("  {line}") };
    lines.into_iter().enumerate().map(line).collect()
}

/// Returns the type and size of an attached file, in brackets.
pub(crate) fn attachment_label(file: &AttachedFile) -> String {
    format!("[{}, {}]", visible(&file.media_type), bytes(file.data.len() as u64 / 4 * 3))
}

fn command_lines(card: &CommandCard, page: TermPage, indent: usize, emit: &mut dyn FnMut(TermText)) {
    let room = page.line_width(indent);
    if card.command.lines().nth(1).is_some() {
        let command = card.command.trim_end();
        each_line(command, TextLabel::Code.style(), |line| line.wrap_each(page, room, &mut *emit));
    }
    for (text, label) in [(&card.output, TextLabel::Dim), (&card.errors, TextLabel::Warning)] {
        if !text.trim().is_empty() {
            each_line(text.trim_end(), label.style(), |line| line.wrap_each(page, room, &mut *emit));
        }
    }
    if let Some(path) = &card.kept_at {
        let text = format!("(full output saved to {})", visible(path));
        page.wrap_each(&text, indent, |line| emit(page.paint(TextLabel::Dim, &line)));
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
        let fits = plain.replace('\t', "    ");
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
        for line in hunk.lines() {
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

fn diff_line(line: DiffLine<'_>, page: TermPage, indent: usize) -> TermText {
    let (sign, label, word) = match line.change {
        DiffChange::Kept => (" ", TextLabel::Dim, TextLabel::Dim),
        DiffChange::Added => ("+", TextLabel::Added, TextLabel::AddedWord),
        DiffChange::Removed => ("-", TextLabel::Removed, TextLabel::RemovedWord),
    };
    let shown = visible(line.text).replace('\t', "    ");
    let room = page.line_width(indent);
    // The changed ranges are offsets into the original text. They are ignored if the text was altered or
    // truncated.
    if line.changed.is_empty() || shown != line.text || shown.width() > room || !page.color {
        return page.paint(label, format!("{sign} {}", truncate(&shown, room)));
    }
    let mut out = page.paint(label, format!("{sign} "));
    let mut at = 0;
    for range in line.changed {
        out.push(page.paint(label, &line.text[at..range.start]));
        out.push(page.paint(word, &line.text[range.clone()]));
        at = range.end;
    }
    out.push(page.paint(label, &line.text[at..]));
    out
}
