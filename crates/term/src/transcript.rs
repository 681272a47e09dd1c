//! A transcript as text, from top to bottom.

use std::fmt::Write;

use jiff::tz::TimeZone;
use threadline_view::figure::{count, duration, plural, short_count};
use threadline_view::{
    AgentView, Body, BranchView, CallView, Card, Input, Item, Level, Outcome, Totals, Transcript, TurnView,
    input_name, outcome_name, short_model, short_tool,
};
use unicode_width::UnicodeWidthStr;

use crate::ansi::colours;
use crate::card::{attached, card_lines};
use crate::page::{Label, Page, cut};
use crate::{markdown, visible};

/// How to write a transcript.
#[derive(Clone, Debug)]
pub struct Style {
    /// How much of it.
    pub level: Level,
    /// Where times are told.
    pub zone: TimeZone,
}

/// How wide the column of costs is.
const COST: usize = 10;

/// How many lines of a failed call are shown where results are not.
const ERROR_LINES: usize = 6;

/// How many lines of a prompt are shown where not everything is.
const PROMPT_LINES: usize = 40;

/// What came of a call takes no more columns than this.
const GIST: usize = 60;

/// What a call was about has as many columns as this, where what came of it is long.
const SUBJECT: usize = 36;

/// Writes a transcript.
pub fn render_transcript(transcript: &Transcript, page: Page, style: &Style) -> String {
    let mut writer = Writer::new(page, style);
    writer.head(transcript);
    for turn in &transcript.turns {
        writer.turn(turn, 0);
    }
    writer.rest(transcript);
    writer.out
}

/// Writes a transcript piece by piece, while it is told.
pub struct Telegraph<'a> {
    writer: Writer<'a>,
}

impl<'a> Telegraph<'a> {
    /// Nothing is written yet.
    pub fn new(page: Page, style: &'a Style) -> Self {
        Self { writer: Writer::new(page, style) }
    }

    /// What stands above the conversation.
    pub fn head(&mut self, transcript: &Transcript) -> String {
        self.writer.head(transcript);
        self.taken()
    }

    /// The next turn.
    pub fn turn(&mut self, turn: &TurnView) -> String {
        self.writer.turn(turn, 0);
        self.taken()
    }

    /// What stands below the conversation.
    pub fn rest(&mut self, transcript: &Transcript) -> String {
        self.writer.rest(transcript);
        self.taken()
    }

    /// What was written since the last time.
    fn taken(&mut self) -> String {
        if !self.writer.out.is_empty() {
            self.writer.wants_gap = !self.writer.out.ends_with("\n\n");
        }
        std::mem::take(&mut self.writer.out)
    }
}

/// Writes some items, as a follower does that has shown what came before.
pub fn render_items(items: &[Item], page: Page, style: &Style) -> String {
    let mut writer = Writer::new(page, style);
    writer.items(items, 0);
    writer.out
}

/// Writes what a turn took and cost, as a follower does once it has ended.
pub fn render_end(turn: &TurnView, page: Page) -> String {
    let text = figures(turn, true).into_iter().chain(cost(&turn.spent)).collect::<Vec<_>>().join(" · ");
    if text.is_empty() { text } else { page.paint(Label::Dim, &format!("── {text}")) + "\n" }
}

/// What a turn took: how long, and how many tokens.
fn figures(turn: &TurnView, split: bool) -> Vec<String> {
    let mut figures = Vec::new();
    if let Some((start, end)) = turn.span {
        let tools = if split && turn.timing.tools > 999 {
            format!(" ({} in tools)", duration(turn.timing.tools))
        } else {
            String::new()
        };
        figures.push(format!("{}{tools}", duration(end - start)));
    }
    if turn.tokens.output > 0 {
        let (read, said) = (turn.tokens.context(), turn.tokens.output);
        figures.push(format!("{} in, {} out", short_count(read), short_count(said)));
    }
    figures
}

/// What calls cost, if there were any.
fn cost(spent: &Totals) -> Option<String> {
    (spent.calls > 0).then(|| spent.short_cost())
}

struct Writer<'a> {
    page: Page,
    style: &'a Style,
    out: String,
    /// Whether what was written before `out` ends without an empty line.
    wants_gap: bool,
    /// The day of the last turn, which the next one need not name again.
    day: Option<jiff::civil::Date>,
}

impl<'a> Writer<'a> {
    fn new(page: Page, style: &'a Style) -> Self {
        Self { page, style, out: String::new(), wants_gap: false, day: None }
    }

    fn rest(&mut self, transcript: &Transcript) {
        if !transcript.agents.is_empty() {
            self.gap();
            self.line(0, Some(Label::Warning), "╌╌ sub-agents that no call started");
            for agent in &transcript.agents {
                self.agent(agent, 2);
            }
        }
        for branch in &transcript.branches {
            self.branch(branch);
        }
        if !transcript.findings.is_empty() {
            let text = format!("{} (threadline check)", plural(transcript.findings.len() as u64, "finding"));
            self.gap();
            self.line(0, Some(Label::Warning), &text);
        }
    }

    fn head(&mut self, transcript: &Transcript) {
        let title = visible(transcript.heading().unwrap_or("(nothing was said)")).into_owned();
        let title = self.page.paint(Label::Title, &cut(&title, self.page.column(0)));
        let parts = [&transcript.id, &transcript.cwd, &transcript.git_branch, &transcript.version];
        let mut about: Vec<String> =
            parts.into_iter().flatten().map(|part| visible(part).into_owned()).collect();
        about.push(plural(transcript.n_turns as u64, "turn"));
        about.extend(cost(&transcript.spent));
        if transcript.n_branches > 0 {
            about.push(format!("{} left behind", plural(transcript.n_branches as u64, "branch")));
        }
        let _ = writeln!(self.out, "{title}");
        for line in self.page.wrap(&about.join(" · "), 0) {
            self.line(0, Some(Label::Dim), &line);
        }
        if let Some(caveat) = transcript.spent.caveat() {
            self.paragraph(0, Some(Label::Dim), &format!("≥ {caveat}"));
        }
    }

    fn line(&mut self, indent: usize, label: Option<Label>, text: &str) {
        let text = label.map_or_else(|| text.to_owned(), |label| self.page.paint(label, text));
        let line = format!("{:indent$}{text}", "");
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn gap(&mut self) {
        let wanted = if self.out.is_empty() { self.wants_gap } else { !self.out.ends_with("\n\n") };
        if wanted {
            self.out.push('\n');
        }
    }

    fn paragraph(&mut self, indent: usize, label: Option<Label>, text: &str) {
        for line in self.page.wrap(visible(text).trim_end(), indent) {
            self.line(indent, label, &line);
        }
    }

    /// Markdown, set on a terminal and as it was written elsewhere.
    fn prose(&mut self, indent: usize, text: &str) {
        if !self.page.color {
            return self.paragraph(indent, None, text);
        }
        for line in markdown::render(text, self.page, indent) {
            self.line(indent, None, &line);
        }
    }

    /// A turn: who and when on the left; how long, how much and for how much in the margin.
    fn turn(&mut self, turn: &TurnView, indent: usize) {
        let mut about = vec![turn.anchor.clone()];
        about.extend(turn.span.map(|(start, _)| self.moment(start)));
        about.extend(turn.models.iter().map(|model| visible(short_model(model)).into_owned()));
        if turn.open {
            about.push("unfinished".to_owned());
        }
        self.gap();
        let number = format!("── {} ", turn.number);
        let about = about.join(" · ");
        let room = self.page.column(indent);
        let cost = cost(&turn.spent).unwrap_or_default();
        // What the tools took of the time is told where there is room for it.
        let fits = |figures: &str| number.width() + about.width() + figures.width() + COST + 2 <= room;
        let figures = Some(figures(turn, true).join(" · ")).filter(|figures| fits(figures));
        let figures = figures.unwrap_or_else(|| self::figures(turn, false).join(" · "));
        let line = if self.page.width.is_none() {
            let parts = [about, figures, cost];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            self.page.paint(Label::Strong, &number) + &self.page.paint(Label::Dim, &parts.join(" · "))
        } else {
            let margin = format!("{figures}{cost:>COST$}");
            let about = cut(&about, room.saturating_sub(number.width() + margin.width() + 2).max(12));
            let gap = room.saturating_sub(number.width() + about.width() + margin.width()).max(2);
            let rest = cut(&format!("{about}{:gap$}{margin}", ""), room.saturating_sub(number.width()));
            self.page.paint(Label::Strong, &number) + &self.page.paint(Label::Dim, rest.trim_end())
        };
        self.line(indent, None, &line);
        self.items(&turn.items, indent);
    }

    /// Things that happened. Thoughts that the log did not keep are counted.
    fn items(&mut self, items: &[Item], indent: usize) {
        let is_lost = |item: &&Item| matches!(&item.body, Body::Thinking(text) if text.is_empty());
        let mut rest = items;
        while let [item, after @ ..] = rest {
            self.reply_cost(item, indent);
            let lost = rest.iter().take_while(is_lost).count();
            if lost > 1 {
                let text = format!("~ thought {lost} times (not in the log)");
                self.line(indent, Some(Label::Dim), &text);
                rest = &rest[lost..];
            } else {
                self.item(item, indent);
                rest = after;
            }
        }
    }

    /// What the reply cost that begins here, in the margin, where everything is shown.
    fn reply_cost(&mut self, item: &Item, indent: usize) {
        let Some(spent) = item.spent.as_deref().filter(|_| self.style.level >= Level::Full) else { return };
        let (read, said) = (short_count(spent.tokens.context()), short_count(spent.tokens.output));
        let text = format!("{read} in, {said} out{:>COST$}", spent.short_cost());
        let room = if self.page.width.is_some() { self.page.column(indent) } else { 0 };
        self.line(indent, Some(Label::Dim), &format!("{text:>room$}"));
    }

    /// When a turn began: the day too, unless the turn before began on it.
    fn moment(&mut self, millis: i64) -> String {
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
        let moment = moment.to_zoned(self.style.zone.clone());
        let again = self.day.replace(moment.date()) == Some(moment.date());
        moment.strftime(if again { "%H:%M" } else { "%Y-%m-%d %H:%M" }).to_string()
    }

    fn item(&mut self, item: &Item, indent: usize) {
        match &item.body {
            Body::Input { input, text, files, context } => {
                self.input(*input, text, indent);
                for about in context {
                    let first = about.lines().next().unwrap_or_default();
                    self.line(
                        indent,
                        Some(Label::Dim),
                        &cut(&format!("  {}", visible(first)), self.page.room(indent)),
                    );
                }
                for file in files {
                    self.line(indent + 2, Some(Label::Dim), &attached(file));
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
                    parts.push(format!("{} summed up", plural(*dropped as u64, "line")));
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
                    return self.line(indent, Some(Label::Link), &format!("↗ {label} {url}"));
                }
                self.line(indent, Some(Label::Link), &cut(&format!("↗ {label}"), self.page.room(indent)));
                self.line(indent + 2, Some(Label::Link), &url);
            }
            Body::Trouble { label, text } => {
                let mark = format!("✗ {}  ", visible(label));
                let lines = self.page.wrap(visible(text).trim(), indent + mark.width());
                let mark = self.page.paint(Label::Error, &mark);
                self.line(indent, None, &format!("{mark}{}", lines.first().map_or("", String::as_str)));
                for line in lines.iter().skip(1) {
                    self.line(indent + 2, None, line);
                }
            }
            Body::Event { label, text } => {
                let text = format!("· {}  {}", visible(label), visible(text).trim());
                let mut lines = self.page.wrap(text.trim_end(), indent + 2).into_iter();
                self.line(indent, Some(Label::Dim), &lines.next().unwrap_or_default());
                lines.for_each(|line| self.line(indent + 2, Some(Label::Dim), &line));
            }
            Body::Unknown { kind, raw } => {
                let text = match kind {
                    Some(kind) => format!("? {} (a type that threadline does not know)", visible(kind)),
                    None => "? a line that is no entry".to_owned(),
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
            self.line(indent, Some(Label::Dim), "~ thought (not in the log)");
        } else if self.style.level >= Level::Full {
            self.line(indent, Some(Label::Dim), "~ thought");
            self.paragraph(indent + 2, Some(Label::Dim), text);
        } else {
            let start = &text[..text.floor_char_boundary(400)];
            let line = cut(&format!("~ {}", one_line(start)), self.page.column(indent));
            self.line(indent, Some(Label::Dim), &line);
        }
    }

    fn input(&mut self, input: Input, text: &str, indent: usize) {
        if input == Input::Interrupt {
            let how = text.trim().trim_start_matches("[Request interrupted by user").trim_end_matches(']');
            let how = how.trim().replace("for tool use", "at a tool call");
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
                self.line(indent, Some(Label::Dim), &format!("· {kind}"));
                return self.paragraph(indent + 2, Some(Label::Dim), text);
            }
            let limit = if self.style.level < Level::Full { ERROR_LINES } else { usize::MAX };
            let text = text.trim_matches(['\n', '\r']).trim_end();
            let lines = colours(text, Label::Dim.style()).wrap(self.page, self.page.room(indent + 2));
            for line in lines.iter().take(limit) {
                self.line(indent + 2, None, line);
            }
            return self.more(lines.len().saturating_sub(limit), indent + 2);
        }
        self.gap();
        if let Some(name) = name {
            self.line(indent, Some(Label::Dim), &format!("· {name}"));
        }
        let lines = self.page.wrap(visible(text).trim_end(), indent + 2);
        let limit = match (self.style.level >= Level::Full, indent) {
            (true, _) => usize::MAX,
            (_, 0) => PROMPT_LINES,
            // What sub-agents are asked is long, and nobody typed it.
            _ => ERROR_LINES,
        };
        // A line or two more take no more room than to say so.
        let limit = if lines.len() <= limit.saturating_add(2) { usize::MAX } else { limit };
        for line in lines.iter().take(limit) {
            self.line(indent, Some(Label::Prompt), &format!("> {line}"));
        }
        self.more(lines.len().saturating_sub(limit), indent + 2);
    }

    fn call(&mut self, call: &CallView, indent: usize) {
        let failed = call.outcome != Outcome::Ok;
        let mark = if failed { self.page.paint(Label::Error, "✗") } else { "▸".to_owned() };
        let name = self.page.paint(Label::Tool, &visible(short_tool(&call.name)));
        let gist = if failed && call.gist.is_empty() { outcome_name(call.outcome) } else { &call.gist };
        let took = call.duration.filter(|millis| *millis > 99).map(duration);
        let subject = one_line(&call.subject);
        // What it was about gives way to what came of it, down to a few words; then that gives way.
        let took_room = took.as_ref().map_or(0, |took| took.width() + 3);
        let room = self.page.room(indent).saturating_sub(short_tool(&call.name).width() + took_room + 6);
        let gist = one_line(gist);
        let gist = cut(&gist, room.saturating_sub(subject.width().min(SUBJECT)).clamp(12, GIST));
        let subject = cut(&subject, room.saturating_sub(gist.width()).max(12));
        let label = if failed { Label::Error } else { Label::Dim };
        let parts = [(label, gist), (Label::Dim, took.unwrap_or_default())];
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let about: Vec<String> = parts.map(|(label, text)| self.page.paint(*label, text)).collect();
        let gap = if subject.is_empty() { "" } else { "  " };
        let about = about.join(&self.page.paint(Label::Dim, " · "));
        self.line(indent, None, &format!("{mark} {name}{gap}{subject}  {about}"));
        if self.style.level >= Level::Full {
            for line in card_lines(call, self.page, indent + 4) {
                self.line(indent + 4, None, &line);
            }
        }
        let whole = self.style.level >= Level::Full;
        // A command's card shows what it printed.
        let told = whole && matches!(call.card, Card::Command(_));
        if let Some(complaint) = call.complaint().filter(|_| !told) {
            let limit = if whole { usize::MAX } else { ERROR_LINES };
            // A command says at its end what went wrong.
            let end = matches!(call.card, Card::Command(_));
            self.excerpt(complaint, indent + 4, limit, end);
        }
        for line in
            call.objection().map(|said| self.page.wrap(&visible(said), indent + 6)).into_iter().flatten()
        {
            self.line(indent + 4, Some(Label::Prompt), &format!("> {line}"));
        }
        for agent in &call.agents {
            self.agent(agent, indent + 2);
        }
    }

    /// The first `limit` lines of a text, or the last, and how many more there are.
    fn excerpt(&mut self, text: &str, indent: usize, limit: usize, end: bool) {
        let text = visible(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let more = lines.len().saturating_sub(limit);
        if end {
            self.more(more, indent);
        }
        for line in lines.iter().skip(if end { more } else { 0 }).take(limit) {
            if limit == usize::MAX {
                self.paragraph(indent, Some(Label::Dim), line);
            } else {
                self.line(indent, Some(Label::Dim), &cut(line, self.page.room(indent)));
            }
        }
        if !end {
            self.more(more, indent);
        }
    }

    /// Says how many lines are not shown, if any.
    fn more(&mut self, lines: usize, indent: usize) {
        if lines > 0 {
            let text = format!("… {}", plural(lines as u64, "more line"));
            self.line(indent, Some(Label::Dim), &text);
        }
    }

    fn agent(&mut self, agent: &AgentView, indent: usize) {
        let parts = [agent.agent_type.as_deref(), agent.description.as_deref()];
        let about: Vec<_> = parts.into_iter().flatten().map(visible).collect();
        let mut parts = vec![format!("╭ sub-agent {}", visible(&agent.id))];
        parts.extend(Some(about.join(": ")).filter(|about| !about.is_empty()));
        parts.extend(cost(&agent.spent));
        let text = parts.join(" · ");
        self.line(indent, Some(Label::Tool), &cut(&text, self.page.room(indent)));
        for turn in &agent.turns {
            self.turn(turn, indent + 2);
        }
    }

    fn branch(&mut self, branch: &BranchView) {
        let fork = branch
            .fork
            .as_ref()
            .map_or("apart from the conversation".to_owned(), |fork| format!("left at {fork}"));
        self.gap();
        self.line(0, Some(Label::Warning), &format!("╌╌ a branch, {fork}"));
        for turn in &branch.turns {
            self.turn(turn, 2);
        }
    }
}

fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}
