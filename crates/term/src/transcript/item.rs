//! Rendering of the items of a turn.

use threadline_view::figure::{count, duration, plural};
use threadline_view::{
    Body, CallView, Card, Input, Item, Level, Outcome, input_name, outcome_name, short_tool,
};
use unicode_width::UnicodeWidthStr;

use super::Writer;
use crate::ansi::{each_line, without_colours};
use crate::card::{attached, card_lines};
use crate::page::{Label, cut};
use crate::text::TermText;
use crate::{text, visible};

/// The maximum number of lines of a failed call, below [`Level::Full`].
const ERROR_LINES: usize = 6;

/// The maximum number of lines of a prompt, below [`Level::Full`].
const PROMPT_LINES: usize = 40;

/// The maximum length in bytes of a thinking text, below [`Level::Full`].
const THOUGHT: usize = 400;

/// The maximum width of the result summary of a call.
const GIST: usize = 60;

/// The minimum width that a long result summary leaves for the subject of a call.
const SUBJECT: usize = 36;

impl Writer<'_> {
    /// Renders items. Consecutive thinking blocks without text are collapsed to their number.
    pub(super) fn items(&mut self, items: &[Item], indent: usize) {
        let is_lost = |item: &&Item| matches!(&item.body, Body::Thinking(text) if text.is_empty());
        let mut rest = items;
        while let [item, after @ ..] = rest {
            self.reply_cost(item, indent);
            // The cost of a reply is shown at its first item, so that item is not collapsed.
            let begins = |item: &&Item| item.spent.is_some() && self.style.level >= Level::Full;
            let same = after.iter().take_while(|item| is_lost(item) && !begins(item)).count();
            let lost = if is_lost(&item) { 1 + same } else { 0 };
            if lost > 1 {
                let text = format!("~ {} (not in the log)", plural(lost as u64, "thinking block"));
                self.line(indent, Some(Label::Dim), &text);
                rest = &rest[lost..];
            } else {
                self.item(item, indent);
                rest = after;
            }
        }
    }

    pub(super) fn item(&mut self, item: &Item, indent: usize) {
        match &item.body {
            Body::Input { input, text, files, context } => {
                self.input(*input, text, indent);
                for about in context {
                    let first = about.lines().next().unwrap_or_default();
                    self.line(
                        indent,
                        Some(Label::Dim),
                        cut(&format!("  {}", visible(first)), self.page.room(indent)),
                    );
                }
                for file in files {
                    self.line(indent + 2, Some(Label::Dim), attached(file));
                }
            }
            Body::Text(text) if text.trim().is_empty() => {}
            Body::Text(text) => {
                self.gap();
                self.prose(indent, text.trim_start_matches(['\n', '\r']));
                self.gap();
            }
            Body::Thinking(text) => self.thinking(text, indent),
            Body::Call(call) => self.call(call, indent),
            Body::Compaction { trigger, before, after, dropped, summary } => {
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
                self.line(indent, Some(Label::Warning), text.trim_end_matches(": "));
                match summary {
                    Some(summary) if self.style.level >= Level::Full => self.prose(indent + 2, summary),
                    Some(summary) => self.excerpt(summary, indent + 2, ERROR_LINES, false),
                    None => {}
                }
            }
            Body::Link { label, url } => {
                let (label, url) = (one_line(label), one_line(url));
                if label.width() + url.width() + 3 <= self.page.room(indent) {
                    return self.line(indent, Some(Label::Link), format!("↗ {label} {url}"));
                }
                self.line(indent, Some(Label::Link), cut(&format!("↗ {label}"), self.page.room(indent)));
                self.line(indent + 2, Some(Label::Link), &url);
            }
            Body::Trouble { label, text } => {
                let mark = format!("✗ {}  ", visible(label));
                let lines = self.page.wrap(visible(text).trim(), indent + mark.width());
                let mark = self.page.paint(Label::Error, &mark);
                let first = lines.first().cloned().unwrap_or_default();
                self.line(indent, None, mark + first);
                for line in lines.iter().skip(1) {
                    self.line(indent + 2, None, line);
                }
            }
            Body::Event { label, text } => {
                let text = format!("· {}  {}", visible(label), visible(text).trim());
                let mut lines = self.page.wrap(text.trim_end(), indent + 2).into_iter();
                self.line(indent, Some(Label::Dim), lines.next().unwrap_or_default());
                lines.for_each(|line| self.line(indent + 2, Some(Label::Dim), &line));
            }
            Body::Unknown { kind, raw } => {
                let text = match kind {
                    Some(kind) => format!("? {} (unknown entry type)", visible(kind)),
                    None => "? unreadable line".to_owned(),
                };
                self.line(indent, Some(Label::Warning), &text);
                if self.style.level >= Level::Full {
                    self.paragraph(indent + 2, Some(Label::Dim), raw);
                }
            }
        }
    }

    fn thinking(&mut self, text: &str, indent: usize) {
        if text.is_empty() {
            self.line(indent, Some(Label::Dim), "~ thinking (not in the log)");
        } else if self.style.level >= Level::Full {
            self.line(indent, Some(Label::Dim), "~ thinking");
            self.paragraph(indent + 2, Some(Label::Dim), text);
        } else {
            let line = cut(&format!("~ {}", beginning(text)), self.page.column(indent));
            self.line(indent, Some(Label::Dim), &line);
        }
    }

    fn input(&mut self, input: Input, text: &str, indent: usize) {
        if input == Input::Interrupt {
            let how = text.trim().trim_start_matches("[Request interrupted by user").trim_end_matches(']');
            let how = how.trim().replace("for tool use", "during a tool call");
            let text = format!("■ interrupted {}", visible(&how));
            return self.line(indent, Some(Label::Warning), text.trim_end());
        }
        let name = input_name(input);
        if !input.is_typed() && !input.opens_turn() {
            let kind = name.unwrap_or_default();
            let printed = matches!(input, Input::CommandOutput | Input::BashOutput);
            if self.style.level < Level::Full && !printed {
                let first = visible(text.trim().lines().next().unwrap_or_default()).into_owned();
                let line = cut(&format!("· {kind}  {first}"), self.page.room(indent));
                return self.line(indent, Some(Label::Dim), &line);
            }
            if !printed {
                self.line(indent, Some(Label::Dim), format!("· {kind}"));
                return self.paragraph(indent + 2, Some(Label::Dim), text);
            }
            let limit = if self.style.level < Level::Full { ERROR_LINES } else { usize::MAX };
            let text = text.trim_matches(['\n', '\r']).trim_end();
            let (page, mut count) = (self.page, 0_usize);
            each_line(text, Label::Dim.style(), |line| {
                line.wrap_each(page, page.room(indent + 2), |line| {
                    count += 1;
                    if count <= limit {
                        self.line(indent + 2, None, &line);
                    }
                });
            });
            return self.more(count.saturating_sub(limit), indent + 2);
        }
        self.gap();
        if let Some(name) = name {
            self.line(indent, Some(Label::Dim), format!("· {name}"));
        }
        let lines = self.page.wrap(visible(text).trim_end(), indent + 2);
        let limit = match (self.style.level >= Level::Full, indent) {
            (true, _) => usize::MAX,
            // The prompts and reports of sub-agents are long, and were not typed.
            (_, 0) if input.is_typed() || input == Input::TeammateMessage => PROMPT_LINES,
            _ => ERROR_LINES,
        };
        // One or two more lines take no more space than the notice about them.
        let limit = if lines.len() <= limit.saturating_add(2) { usize::MAX } else { limit };
        for line in lines.iter().take(limit) {
            self.line(indent, Some(Label::Prompt), format!("> {line}"));
        }
        self.more(lines.len().saturating_sub(limit), indent + 2);
    }

    fn call(&mut self, call: &CallView, indent: usize) {
        let failed = call.is_bad();
        let mark = if failed { self.page.paint(Label::Error, "✗") } else { "▸".into() };
        let name = self.page.paint(Label::Tool, visible(short_tool(&call.name)));
        let silent = call.outcome != Outcome::Ok && call.gist.is_empty();
        let gist = if silent { outcome_name(call.outcome) } else { &call.gist };
        let took = call.duration.filter(|millis| *millis > 99).map(duration);
        let subject = one_line(&call.subject);
        // The subject is shortened first, down to a few words, and then the result summary.
        let took_room = took.as_ref().map_or(0, |took| took.width() + 3);
        let room = self.page.room(indent).saturating_sub(short_tool(&call.name).width() + took_room + 6);
        let gist = one_line(gist);
        let gist = cut(&gist, room.saturating_sub(subject.width().min(SUBJECT)).clamp(12, GIST));
        let subject = cut(&subject, room.saturating_sub(gist.width()).max(12));
        let label = if failed { Label::Error } else { Label::Dim };
        let parts = [(label, gist), (Label::Dim, took.unwrap_or_default())];
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let about = parts.map(|(label, text)| self.page.paint(*label, text));
        let about = TermText::join(about, &self.page.paint(Label::Dim, " · "));
        let gap = if subject.is_empty() { "" } else { "  " };
        self.line(indent, None, text!("{mark} {name}{gap}{subject}  {about}"));
        if self.style.level >= Level::Full {
            card_lines(call, self.page, indent + 4, &mut |line| self.line(indent + 4, None, &line));
        }
        let whole = self.style.level >= Level::Full;
        // The card of a command contains its output.
        let told = whole && matches!(call.card, Card::Command(_));
        if let Some(complaint) = call.complaint().filter(|_| !told) {
            let limit = if whole { usize::MAX } else { ERROR_LINES };
            // The error message of a command is at the end of its output.
            let end = matches!(call.card, Card::Command(_));
            self.excerpt(complaint, indent + 4, limit, end);
        }
        for line in
            call.objection().map(|said| self.page.wrap(&visible(said), indent + 6)).into_iter().flatten()
        {
            self.line(indent + 4, Some(Label::Prompt), format!("> {line}"));
        }
        for agent in &call.agents {
            self.agent(agent, indent + 2);
        }
    }

    /// Renders the first `limit` lines of a text, or the last ones if `end`, and the number of omitted
    /// lines.
    fn excerpt(&mut self, text: &str, indent: usize, limit: usize, end: bool) {
        let text = without_colours(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let more = lines.len().saturating_sub(limit);
        if end {
            self.more(more, indent);
        }
        for line in lines.iter().skip(if end { more } else { 0 }).take(limit) {
            if limit == usize::MAX {
                self.paragraph(indent, Some(Label::Dim), line);
            } else {
                self.line(indent, Some(Label::Dim), cut(line, self.page.room(indent)));
            }
        }
        if !end {
            self.more(more, indent);
        }
    }

    /// Renders the number of omitted lines, if any.
    fn more(&mut self, lines: usize, indent: usize) {
        if lines > 0 {
            let text = format!("… {}", plural(lines as u64, "more line"));
            self.line(indent, Some(Label::Dim), &text);
        }
    }
}

/// Returns the beginning of a thinking text, up to the end of a word.
fn beginning(text: &str) -> String {
    let text = text.trim();
    if text.len() <= THOUGHT {
        return one_line(text);
    }
    let start = &text[..text.floor_char_boundary(THOUGHT)];
    one_line(start.rsplit_once(char::is_whitespace).map_or(start, |(start, _)| start)) + " …"
}

pub(super) fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}
