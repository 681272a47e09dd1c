//! Rendering of the items of a turn.

use std::borrow::Cow;

use threadline_view::humanize::{self, count, duration, plural};
use threadline_view::{
    CallView, DetailLevel, InputKind, ItemBody, ToolCard, ToolOutcome, TranscriptItem, input_name, short_tool,
};
use unicode_width::UnicodeWidthStr;

use super::TranscriptRenderer;
use crate::ansi::{each_line, without_colours};
use crate::card::{attachment_label, card_lines, card_lines_without_changes, change_lines};
use crate::page::{TextLabel, truncate};
use crate::text::TermText;
use crate::{text, visible, visible_name};

/// The maximum number of lines of a failed call, below [`DetailLevel::Full`].
const MAX_ERROR_LINES: usize = 6;

/// The maximum number of lines of a prompt, below [`DetailLevel::Full`].
const MAX_PROMPT_LINES: usize = 40;

/// The maximum length in bytes of a thinking text, below [`DetailLevel::Full`].
const MAX_THINKING_BYTES: usize = 400;

/// The minimum width of the subject of a call, and of the summary of its result.
const MIN_CALL_PART: usize = 12;

/// The minimum width that a long result summary leaves for the subject of a call.
const MIN_SUBJECT_WIDTH: usize = 36;

impl TranscriptRenderer<'_> {
    /// Renders items. Consecutive thinking blocks without text are collapsed to their number.
    pub(super) fn items(&mut self, items: &[TranscriptItem], indent: usize) {
        let is_lost =
            |item: &&TranscriptItem| matches!(&item.body, ItemBody::Thinking(text) if text.is_empty());
        let mut rest = items;
        while let [item, after @ ..] = rest {
            self.reply_cost(item, indent);
            // The cost of a reply is shown at its first item, so that item is not collapsed.
            let begins =
                |item: &&TranscriptItem| item.spent.is_some() && self.style.level >= DetailLevel::Full;
            let same = after.iter().take_while(|item| is_lost(item) && !begins(item)).count();
            let lost = if is_lost(&item) { 1 + same } else { 0 };
            if lost > 1 {
                let text = format!("~ {} (not in the log)", plural(lost as u64, "thinking block"));
                self.line(indent, Some(TextLabel::Dim), &text);
                rest = &rest[lost..];
            } else {
                let start = self.out.as_str().len();
                self.item(item, indent);
                if self.wanted_item == Some(&*item.anchor) {
                    self.item_bytes.get_or_insert(start..self.out.as_str().len());
                }
                rest = after;
            }
        }
    }

    pub(super) fn item(&mut self, item: &TranscriptItem, indent: usize) {
        match &item.body {
            ItemBody::Input { input, text, files, context } => {
                self.input(*input, text, indent);
                for about in context {
                    let first = about.lines().next().unwrap_or_default();
                    self.line(
                        indent,
                        Some(TextLabel::Dim),
                        truncate(&format!("  {}", visible(first)), self.page.line_width(indent)),
                    );
                }
                for file in files {
                    self.line(indent + 2, Some(TextLabel::Dim), attachment_label(file));
                }
            }
            ItemBody::Text(text) if text.trim().is_empty() => {}
            ItemBody::Text(text) => {
                self.gap();
                self.prose(indent, text.trim_start_matches(['\n', '\r']));
                self.gap();
            }
            ItemBody::Thinking(text) => self.thinking(text, indent),
            ItemBody::Call(call) => self.call(call, indent),
            ItemBody::Compaction { trigger, before, after, dropped, summary } => {
                let mut parts: Vec<String> = trigger.iter().map(|word| visible(word).into_owned()).collect();
                match (before, after) {
                    (Some(before), Some(after)) => {
                        parts.push(format!("{} → {} tokens", count(*before), count(*after)));
                    }
                    (Some(before), None) => parts.push(format!("at {} tokens", count(*before))),
                    _ => {}
                }
                if *dropped > 0 {
                    parts.push(format!("{} dropped", plural(*dropped as u64, "line")));
                }
                self.gap();
                let text = format!("══ compacted: {}", parts.join(", "));
                self.line(indent, Some(TextLabel::Warning), text.trim_end_matches(": "));
                match summary {
                    Some(summary) if self.style.level >= DetailLevel::Full => self.prose(indent + 2, summary),
                    Some(summary) => self.excerpt(summary, indent + 2, MAX_ERROR_LINES, false),
                    None => {}
                }
            }
            ItemBody::Link { label, url } => {
                let (label, url) = (one_line(label), one_line(url));
                if label.width() + url.width() + 3 <= self.page.line_width(indent) {
                    return self.line(indent, Some(TextLabel::Link), format!("↗ {label} {url}"));
                }
                self.line(
                    indent,
                    Some(TextLabel::Link),
                    truncate(&format!("↗ {label}"), self.page.line_width(indent)),
                );
                self.line(indent + 2, Some(TextLabel::Link), &url);
            }
            ItemBody::Error { label, text } => {
                let mark = format!("✗ {}  ", visible_name(label));
                let (page, width) = (self.page, mark.width());
                let mut mark = Some(page.paint(TextLabel::Error, &mark));
                page.wrap_each(visible(text).trim(), indent + width, |line| match mark.take() {
                    Some(mark) => self.line(indent, None, mark + line),
                    None => self.line(indent + 2, None, line),
                });
                if let Some(mark) = mark {
                    self.line(indent, None, mark);
                }
            }
            ItemBody::Event { label, text } => {
                // `format!` would reserve twice the length of a long text.
                let text = ["· ", &*visible_name(label), "  ", visible(text).trim()].concat();
                let (page, mut line_indent) = (self.page, indent);
                page.wrap_each(text.trim_end(), indent + 2, |line| {
                    self.line(line_indent, Some(TextLabel::Dim), line);
                    line_indent = indent + 2;
                });
            }
            ItemBody::Unknown { kind, raw } => {
                let text = match kind {
                    Some(kind) => format!("? {} (unknown entry type)", visible_name(kind)),
                    None => "? unreadable line".to_owned(),
                };
                self.line(indent, Some(TextLabel::Warning), &text);
                if self.style.level >= DetailLevel::Full {
                    self.paragraph(indent + 2, Some(TextLabel::Dim), raw);
                }
            }
        }
    }

    fn thinking(&mut self, text: &str, indent: usize) {
        if text.is_empty() {
            self.line(indent, Some(TextLabel::Dim), "~ thinking (not in the log)");
        } else if self.style.level >= DetailLevel::Full {
            self.line(indent, Some(TextLabel::Dim), "~ thinking");
            self.paragraph(indent + 2, Some(TextLabel::Dim), text);
        } else {
            let line = truncate(&format!("~ {}", beginning(text)), self.page.prose_width(indent));
            self.line(indent, Some(TextLabel::Dim), &line);
        }
    }

    fn input(&mut self, input: InputKind, text: &str, indent: usize) {
        if input == InputKind::Interrupt {
            let how = text.trim().trim_start_matches("[Request interrupted by user").trim_end_matches(']');
            let how = how.trim().replace("for tool use", "during a tool call");
            let text = format!("■ interrupted {}", visible(&how));
            return self.line(indent, Some(TextLabel::Warning), text.trim_end());
        }
        let name = input_name(input);
        if !input.is_typed() && !input.opens_turn() {
            let kind = name.unwrap_or_default();
            let printed = matches!(input, InputKind::CommandOutput | InputKind::BashOutput);
            if self.style.level < DetailLevel::Full && !printed {
                let first = visible(text.trim().lines().next().unwrap_or_default()).into_owned();
                let line = truncate(&format!("· {kind}  {first}"), self.page.line_width(indent));
                return self.line(indent, Some(TextLabel::Dim), &line);
            }
            if !printed {
                self.line(indent, Some(TextLabel::Dim), format!("· {kind}"));
                return self.paragraph(indent + 2, Some(TextLabel::Dim), text);
            }
            let limit = if self.style.level < DetailLevel::Full { MAX_ERROR_LINES } else { usize::MAX };
            let text = text.trim_matches(['\n', '\r']).trim_end();
            let (page, mut count) = (self.page, 0_usize);
            each_line(text, TextLabel::Dim.style(), |line| {
                line.into_lines(page, page.line_width(indent + 2), |line| {
                    count += 1;
                    if count <= limit {
                        self.line(indent + 2, None, line);
                    }
                });
            });
            return self.omitted_lines(count.saturating_sub(limit), indent + 2);
        }
        self.gap();
        if let Some(name) = name {
            self.line(indent, Some(TextLabel::Dim), format!("· {name}"));
        }
        let limit = match (self.style.level >= DetailLevel::Full, indent) {
            (true, _) => usize::MAX,
            // The prompts and reports of sub-agents are long, and were not typed.
            (_, 0) if input.is_typed() || input == InputKind::TeammateMessage => MAX_PROMPT_LINES,
            _ => MAX_ERROR_LINES,
        };
        // Wrapped twice, since the lines of a long prompt need many times its size.
        let (page, text) = (self.page, visible(text));
        let text = text.trim_end();
        let mut n_lines = 0_usize;
        page.wrap_each(text, indent + 2, |_| n_lines += 1);
        // One or two more lines take no more space than the notice about them.
        let limit = if n_lines <= limit.saturating_add(2) { n_lines } else { limit };
        let mut n_shown = 0;
        page.wrap_each(text, indent + 2, |line| {
            if n_shown < limit {
                self.line(indent, Some(TextLabel::Prompt), format!("> {line}"));
                n_shown += 1;
            }
        });
        self.omitted_lines(n_lines - limit, indent + 2);
    }

    pub(super) fn call(&mut self, call: &CallView, indent: usize) {
        let failed = call.is_error();
        let mark = if failed { self.page.paint(TextLabel::Error, "✗") } else { "▸".into() };
        // A name, a few words of the subject and of the result fit into every line.
        let width = self.page.line_width(indent);
        let name =
            truncate(&visible(short_tool(&call.name)), width.saturating_sub(2 * MIN_CALL_PART + 6).max(4));
        let name_width = name.width();
        let name = self.page.paint(TextLabel::Tool, name);
        let gist = call.short_result();
        let silent = call.outcome != ToolOutcome::Ok && gist.is_empty();
        let gist = if silent { call.state() } else { gist };
        let took = call.duration.filter(|millis| *millis > 99).map(duration);
        let subject = one_line(&call.subject);
        // The subject is shortened first, down to a few words, and then the result summary.
        let room = width.saturating_sub(name_width + 6);
        let took = took.filter(|took| room >= took.width() + 3 + 2 * MIN_CALL_PART);
        let room = room - took.as_ref().map_or(0, |took| took.width() + 3);
        let gist = one_line(&gist);
        let gist = truncate(
            &gist,
            room.saturating_sub(subject.width().min(MIN_SUBJECT_WIDTH)).clamp(MIN_CALL_PART, 60),
        );
        let subject = truncate(&subject, room.saturating_sub(gist.width()).max(MIN_CALL_PART));
        let label = if failed { TextLabel::Error } else { TextLabel::Dim };
        let parts = [(label, gist), (TextLabel::Dim, took.unwrap_or_default())];
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let about = parts.map(|(label, text)| self.page.paint(*label, text));
        let about = TermText::join(about, &self.page.paint(TextLabel::Dim, " · "));
        let gap = if subject.is_empty() { "" } else { "  " };
        self.line(indent, None, text!("{mark} {name}{gap}{subject}  {about}"));
        if self.style.level >= DetailLevel::Full {
            card_lines(call, self.page, indent + 4, &mut |line| self.line(indent + 4, None, line));
        }
        let whole = self.style.level >= DetailLevel::Full;
        // The card of a command contains its output.
        let in_card = whole && matches!(call.card, ToolCard::Command(_));
        if let Some(complaint) = call.error_text().filter(|_| !in_card) {
            let limit = if whole { usize::MAX } else { MAX_ERROR_LINES };
            // The error message of a command is at the end of its output.
            let end = matches!(call.card, ToolCard::Command(_));
            self.excerpt(complaint, indent + 4, limit, end);
        }
        let page = self.page;
        page.wrap_each(call.denial_reason().unwrap_or_default(), indent + 6, |line| {
            self.line(indent + 4, Some(TextLabel::Prompt), format!("> {line}"));
        });
        for agent in &call.agents {
            self.agent(agent, indent + 2);
        }
    }

    /// Renders the part of a card that a person wants to see without asking. The beginning and the end of a
    /// long command's output are shown, and the beginning of everything else.
    pub(super) fn card_excerpt(&mut self, call: &CallView, max_lines: usize) {
        let is_shown = matches!(
            call.card,
            ToolCard::Diff { .. } | ToolCard::Command(_) | ToolCard::Todos(_) | ToolCard::Questions(_)
        );
        if !is_shown || call.outcome != ToolOutcome::Ok {
            return;
        }
        let mut lines = Vec::new();
        card_lines_without_changes(call, self.page, 4, &mut |line| lines.push(line));
        let is_command = matches!(call.card, ToolCard::Command(_));
        self.line_excerpt(lines, max_lines, is_command);
        let mut lines = Vec::new();
        change_lines(call, self.page, 4, &mut |line| lines.push(line));
        self.line_excerpt(lines, max_lines, false);
    }

    /// Renders the beginning of some lines, and with `has_end` also their end.
    fn line_excerpt(&mut self, lines: Vec<TermText>, max_lines: usize, has_end: bool) {
        let more = lines.len().saturating_sub(max_lines);
        let head = if more > 1 && has_end { max_lines / 2 } else { max_lines };
        let tail = if more > 1 { max_lines - head } else { 0 };
        let head = if more > 1 { head } else { lines.len() };
        for line in &lines[..head] {
            self.line(4, None, line);
        }
        self.omitted_lines(lines.len() - head - tail, 4);
        for line in &lines[lines.len() - tail..] {
            self.line(4, None, line);
        }
    }

    /// Renders the first `limit` lines of a text, or the last ones if `end`, and the number of omitted
    /// lines.
    fn excerpt(&mut self, text: &str, indent: usize, limit: usize, end: bool) {
        let text = without_colours(text);
        let lines = text.trim_end().lines();
        let more = lines.clone().count().saturating_sub(limit);
        if end {
            self.omitted_lines(more, indent);
        }
        for line in lines.skip(if end { more } else { 0 }).take(limit) {
            if limit == usize::MAX {
                self.paragraph(indent, Some(TextLabel::Dim), line);
            } else {
                self.line(indent, Some(TextLabel::Dim), truncate(line, self.page.line_width(indent)));
            }
        }
        if !end {
            self.omitted_lines(more, indent);
        }
    }

    /// Renders the number of omitted lines, if any.
    fn omitted_lines(&mut self, lines: usize, indent: usize) {
        if lines > 0 {
            let text = format!("… {}", plural(lines as u64, "more line"));
            self.line(indent, Some(TextLabel::Dim), &text);
        }
    }
}

/// Returns the beginning of a thinking text, up to the end of a word.
fn beginning(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MAX_THINKING_BYTES {
        return one_line(text);
    }
    let start = &text[..text.floor_char_boundary(MAX_THINKING_BYTES)];
    one_line(start.rsplit_once(char::is_whitespace).map_or(start, |(start, _)| start)) + " …"
}

pub(super) fn one_line(text: &str) -> String {
    let line = humanize::one_line(text);
    match visible(&line) {
        Cow::Owned(visible) => visible,
        Cow::Borrowed(_) => line,
    }
}
