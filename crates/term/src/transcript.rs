//! A transcript as text, from top to bottom.

use std::fmt::Write;

use jiff::tz::TimeZone;
use threadline_view::{AgentView, Body, CallView, Item, Transcript, TurnView};

use crate::page::{Label, Page, cut};
use crate::{count, duration, visible};

/// How much of a transcript to write.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// What tools returned, whole; else its first lines.
    pub tools: bool,
    /// What the model thought; else that it did.
    pub thinking: bool,
    /// Hooks, attachments and other events around the conversation.
    pub events: bool,
}

/// How many lines of a tool's result are shown where it is not asked for whole.
const RESULT_LINES: usize = 6;

/// Writes a transcript. Times are those of `zone`.
pub fn render_transcript(transcript: &Transcript, page: Page, detail: Detail, zone: &TimeZone) -> String {
    let mut writer = Writer { page, detail, zone, out: String::new() };
    writer.heading(transcript);
    for turn in &transcript.turns {
        writer.turn(turn, 0);
    }
    writer.out
}

struct Writer<'a> {
    page: Page,
    detail: Detail,
    zone: &'a TimeZone,
    out: String,
}

impl Writer<'_> {
    fn heading(&mut self, transcript: &Transcript) {
        let title = transcript.title.as_deref().unwrap_or("(no title)");
        let title = self.page.paint(Label::Title, &visible(title));
        let parts = [&transcript.id, &transcript.cwd, &transcript.git_branch, &transcript.version];
        let mut about: Vec<String> =
            parts.into_iter().flatten().map(|part| visible(part).into_owned()).collect();
        about.push(match transcript.turns.len() {
            1 => "1 turn".to_owned(),
            n => format!("{n} turns"),
        });
        match transcript.branches {
            0 => {}
            1 => about.push("1 branch left".to_owned()),
            n => about.push(format!("{n} branches left")),
        }
        let about = self.page.paint(Label::Dim, &about.join(" · "));
        let _ = writeln!(self.out, "{title}\n{about}");
    }

    fn line(&mut self, indent: usize, label: Option<Label>, text: &str) {
        let text = label.map_or_else(|| text.to_owned(), |label| self.page.paint(label, text));
        let line = format!("{:indent$}{text}", "");
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn paragraph(&mut self, indent: usize, label: Option<Label>, text: &str) {
        for line in self.page.wrap(visible(text).trim_end(), indent) {
            self.line(indent, label, &line);
        }
    }

    fn turn(&mut self, turn: &TurnView, indent: usize) {
        let mut about = Vec::new();
        if let Some((start, end)) = turn.span {
            about.push(self.moment(start));
            about.push(duration(end - start));
        }
        about.extend(turn.models.iter().map(|model| visible(model).into_owned()));
        let tokens = turn.tokens;
        if tokens.output > 0 {
            let context = tokens.input + tokens.cache_read + tokens.cache_write;
            about.push(format!("{} in, {} out", count(context), count(tokens.output)));
        }
        if turn.open {
            about.push("unfinished".to_owned());
        }
        let number = self.page.paint(Label::Strong, &format!("── {} ", turn.number));
        let about = self.page.paint(Label::Dim, &format!("{} · {}", about.join(" · "), turn.anchor));
        self.out.push('\n');
        self.line(indent, None, &format!("{number}{about}"));
        for item in &turn.items {
            self.item(item, indent);
        }
    }

    fn moment(&self, millis: i64) -> String {
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
        moment.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }

    fn item(&mut self, item: &Item, indent: usize) {
        match &item.body {
            Body::Input { input, text, images } => self.input(*input, text, *images, indent),
            Body::Text(text) => {
                self.out.push('\n');
                self.paragraph(indent, None, text);
            }
            Body::Thinking(text) if text.is_empty() => {
                self.line(indent, Some(Label::Dim), "thinking (not in the log)");
            }
            Body::Thinking(text) if self.detail.thinking => {
                self.line(indent, Some(Label::Dim), "thinking");
                self.paragraph(indent + 2, Some(Label::Dim), text);
            }
            Body::Thinking(text) => {
                let words = text.split_whitespace().count();
                self.line(indent, Some(Label::Dim), &format!("thinking ({words} words)"));
            }
            Body::Call(call) => self.call(call, indent),
            Body::Compaction { trigger, before, after, summary } => {
                let tokens = |tokens: &Option<u64>| tokens.map_or("?".to_owned(), count);
                let trigger = trigger.as_deref().unwrap_or("compaction");
                let text = format!(
                    "══ compacted ({}): {} → {} tokens",
                    visible(trigger),
                    tokens(before),
                    tokens(after)
                );
                self.out.push('\n');
                self.line(indent, Some(Label::Warning), &text);
                if let Some(summary) = summary {
                    self.lines(
                        summary,
                        indent + 2,
                        if self.detail.tools { usize::MAX } else { RESULT_LINES },
                    );
                }
            }
            Body::Event { label, text } => {
                if self.detail.events || label.contains("error") {
                    let text = format!("· {} {}", visible(label), visible(text));
                    self.paragraph(indent, Some(Label::Dim), &text);
                }
            }
            Body::Unknown { kind, raw } => {
                let text = format!("? {} (a type that threadline does not know)", visible(kind));
                self.line(indent, Some(Label::Warning), &text);
                if self.detail.events {
                    self.paragraph(indent + 2, Some(Label::Dim), raw);
                }
            }
        }
    }

    fn input(&mut self, input: threadline_view::Input, text: &str, images: usize, indent: usize) {
        if !input.is_typed() && !input.opens_turn() && !self.detail.events {
            let kind = input.name().replace('_', " ");
            let first = visible(text.lines().next().unwrap_or_default()).into_owned();
            let width =
                self.page.width.map_or(usize::MAX, |width| width.saturating_sub(indent + kind.len() + 4));
            self.line(indent, Some(Label::Dim), &format!("· {kind} {}", cut(&first, width)));
            return;
        }
        self.out.push('\n');
        for line in self.page.wrap(visible(text).trim_end(), indent + 2) {
            self.line(indent, Some(Label::Prompt), &format!("> {line}"));
        }
        if images > 0 {
            self.line(indent, Some(Label::Dim), &format!("> ({images} attached)"));
        }
    }

    fn call(&mut self, call: &CallView, indent: usize) {
        let mut about = Vec::new();
        let failed = call.outcome != threadline_view::Outcome::Ok;
        if failed {
            about.push(self.page.paint(Label::Error, call.outcome.name()));
        }
        about.extend(call.duration.map(|millis| self.page.paint(Label::Dim, &duration(millis))));
        let name = self.page.paint(Label::Tool, &visible(&call.name));
        let width =
            self.page.width.map_or(usize::MAX, |width| width.saturating_sub(indent + call.name.len() + 24));
        let subject = cut(&visible(&call.subject), width.max(20));
        let mark = if failed { "✗" } else { "▸" };
        self.line(indent, None, &format!("{mark} {name} {subject}  {}", about.join(" ")));
        self.lines(&call.result, indent + 4, if self.detail.tools { usize::MAX } else { RESULT_LINES });
        for agent in &call.agents {
            self.agent(agent, indent + 2);
        }
    }

    /// The first `limit` lines of a text, and how many more there are.
    fn lines(&mut self, text: &str, indent: usize, limit: usize) {
        let text = visible(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(limit) {
            let width = self.page.width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(20));
            if limit == usize::MAX {
                self.paragraph(indent, Some(Label::Dim), line);
            } else {
                self.line(indent, Some(Label::Dim), &cut(line, width));
            }
        }
        if lines.len() > limit {
            self.line(indent, Some(Label::Dim), &format!("… {} more lines", lines.len() - limit));
        }
    }

    fn agent(&mut self, agent: &AgentView, indent: usize) {
        let parts = [agent.agent_type.as_deref(), agent.description.as_deref()];
        let about: Vec<_> = parts.into_iter().flatten().map(visible).collect();
        let text = format!("╭ sub-agent {} {}", visible(&agent.id), about.join(": "));
        self.line(indent, Some(Label::Tool), &text);
        for turn in &agent.turns {
            self.turn(turn, indent + 2);
        }
    }
}
