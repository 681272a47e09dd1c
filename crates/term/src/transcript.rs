//! Rendering of a whole transcript.

mod item;

use std::fmt::Write;
use std::ops::Range;

use jiff::tz::TimeZone;
use threadline_view::humanize::{duration, minute, plural, short_count};
use threadline_view::{
    AgentView, BranchView, CallView, DetailLevel, FindingSummary, Hunk, InheritedCalls, ItemBody, Transcript,
    TranscriptHeader, TranscriptItem, TranscriptPart, TurnView, UsageTotals, short_model, short_tool,
};
use unicode_width::UnicodeWidthStr;

use crate::card::diff_lines;
use crate::page::{TermPage, TextLabel, truncate};
use crate::text::TermText;
use crate::{markdown, visible, visible_name};

/// The settings for rendering a transcript.
#[derive(Clone, Debug)]
pub struct TranscriptStyle {
    /// The level of detail.
    pub level: DetailLevel,
    /// The time zone for times.
    pub zone: TimeZone,
}

/// The width of the cost column.
const COST_WIDTH: usize = 10;

/// Renders a transcript.
pub fn render_transcript(transcript: &Transcript, page: TermPage, style: &TranscriptStyle) -> TermText {
    render_transcript_at(transcript, page, style, None).text
}

/// A rendered transcript and the lines of its parts, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderedTranscript {
    /// The text.
    pub text: TermText,
    /// The number of lines of the header.
    pub header_lines: usize,
    /// The lines of the requested item, if it is shown.
    pub item_lines: Option<Range<usize>>,
}

/// Renders a transcript, and finds the lines of the item with this anchor.
pub fn render_transcript_at(
    transcript: &Transcript,
    page: TermPage,
    style: &TranscriptStyle,
    anchor: Option<&str>,
) -> RenderedTranscript {
    let mut renderer = TranscriptRenderer::new(page, style);
    renderer.wanted_item = anchor;
    renderer.header(&transcript.header);
    let header = renderer.out.as_str().len();
    transcript.turns.iter().for_each(|turn| renderer.turn(turn, 0));
    transcript.end.agents.iter().for_each(|agent| renderer.unattached_agent(agent));
    transcript.end.branches.iter().for_each(|branch| renderer.branch(branch));
    renderer.findings(&transcript.end.findings);
    let line_at = |byte: usize| renderer.out.as_str()[..byte].matches('\n').count();
    let item_lines = renderer.item_bytes.as_ref().map(|bytes| line_at(bytes.start)..line_at(bytes.end));
    RenderedTranscript { header_lines: line_at(header), item_lines, text: renderer.out }
}

/// Renders items that continue a transcript which was rendered before.
pub fn render_items(items: &[TranscriptItem], page: TermPage, style: &TranscriptStyle) -> TermText {
    let mut writer = TranscriptRenderer::new(page, style);
    writer.items(items, 0);
    writer.out
}

/// Renders the notice that a call is running. Empty if the item is not a call.
pub fn render_running(item: &TranscriptItem, page: TermPage, style: &TranscriptStyle) -> TermText {
    let mut writer = TranscriptRenderer::new(page, style);
    if let ItemBody::Call(call) = &item.body {
        let about =
            format!("◦ {}  {}  running", visible_name(short_tool(&call.name)), item::one_line(&call.subject));
        writer.line(0, Some(TextLabel::Dim), truncate(&about, page.line_width(0)));
    }
    writer.out
}

/// Renders a finished call: one line about it, and at most `max_lines` of a card that a person wants to see
/// at once, such as a diff or the output of a command.
pub fn render_call(call: &CallView, page: TermPage, max_lines: usize) -> TermText {
    let style = TranscriptStyle { level: DetailLevel::Tools, zone: TimeZone::UTC };
    let mut writer = TranscriptRenderer::new(page, &style);
    writer.call(call, 0);
    writer.card_excerpt(call, max_lines);
    writer.out
}

/// Renders changes of a file.
pub fn render_hunks(hunks: &[Hunk], page: TermPage) -> Vec<TermText> {
    let mut lines = Vec::new();
    diff_lines(hunks, page, 0, &mut |line| lines.push(line));
    lines
}

/// Renders the duration, tokens and cost of a finished turn. Empty if there are none.
pub fn render_turn_summary(turn: &TurnView, page: TermPage) -> TermText {
    let text = figures(turn, true).into_iter().chain(cost(&turn.spent)).collect::<Vec<_>>().join(" · ");
    if text.is_empty() {
        TermText::new()
    } else {
        page.paint(TextLabel::Dim, format!("── {text}")) + "\n"
    }
}

/// Returns the duration and tokens of a turn. With `split`, includes the shares of tools, answers and
/// sub-agents.
fn figures(turn: &TurnView, split: bool) -> Vec<String> {
    let mut figures = Vec::new();
    if let Some((start, end)) = turn.span {
        let parts = [(turn.timing.tools, "in tools"), (turn.timing.user_response, "waiting for the user")];
        let parts = parts.into_iter().filter(|(millis, _)| split && *millis > 999);
        let parts: Vec<String> = parts.map(|(millis, of)| format!("{} {of}", duration(millis))).collect();
        let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        // A duration of zero means that nothing followed the prompt.
        if end > start {
            figures.push(format!("{}{parts}", duration(end - start)));
        }
    }
    if turn.tokens.output > 0 {
        let (read, said) = (turn.tokens.context(), turn.tokens.output);
        figures.push(format!("{} in, {} out", short_count(read), short_count(said)));
    }
    if split && turn.spent_by_agents.calls > 0 {
        figures.push(format!("sub-agents {}", turn.spent_by_agents.short_cost()));
    }
    figures
}

/// Returns the cost of model calls, if there were any.
fn cost(spent: &UsageTotals) -> Option<String> {
    (spent.calls > 0).then(|| spent.short_cost())
}

/// Renders a transcript incrementally, part by part.
pub struct TranscriptRenderer<'a> {
    page: TermPage,
    style: &'a TranscriptStyle,
    /// The text of the current part.
    out: TermText,
    /// Whether the text before `out` does not end with an empty line.
    wants_gap: bool,
    /// The span of the conversation.
    span: Option<(i64, i64)>,
    /// The date of the last turn. It is not repeated for the next one.
    day: Option<jiff::civil::Date>,
    /// Whether the heading of sub-agents without a starting call was rendered.
    has_unattached_agents: bool,
    /// The anchor of the item whose place is wanted.
    wanted_item: Option<&'a str>,
    /// The bytes of that item in `out`.
    item_bytes: Option<Range<usize>>,
}

impl<'a> TranscriptRenderer<'a> {
    /// Returns a renderer at the start of a transcript.
    pub fn new(page: TermPage, style: &'a TranscriptStyle) -> Self {
        Self {
            page,
            style,
            out: TermText::new(),
            wants_gap: false,
            span: None,
            day: None,
            has_unattached_agents: false,
            wanted_item: None,
            item_bytes: None,
        }
    }

    /// Renders the next part.
    pub fn part(&mut self, part: &TranscriptPart) -> TermText {
        match part {
            TranscriptPart::Header(header) => self.header(header),
            TranscriptPart::Turn(turn) => self.turn(turn, 0),
            TranscriptPart::Agent(agent) => self.unattached_agent(agent),
            TranscriptPart::Branch(branch) => self.branch(branch),
            TranscriptPart::Findings(findings) => self.findings(findings),
        }
        if !self.out.is_empty() {
            self.wants_gap = !self.out.ends_with("\n\n");
        }
        std::mem::take(&mut self.out)
    }

    /// Renders a sub-agent that no call started; the first one below a heading.
    fn unattached_agent(&mut self, agent: &AgentView) {
        if !std::mem::replace(&mut self.has_unattached_agents, true) {
            self.gap();
            self.line(0, Some(TextLabel::Warning), "╌╌ sub-agents without a starting call");
        }
        self.agent(agent, 2);
    }

    fn findings(&mut self, findings: &FindingSummary) {
        if findings.count > 0 {
            let text = format!("{} (threadline check)", plural(findings.count as u64, "finding"));
            self.gap();
            self.line(0, Some(TextLabel::Warning), &text);
        }
    }

    fn header(&mut self, header: &TranscriptHeader) {
        self.span = header.span;
        let title = visible(header.heading().unwrap_or("(no messages)")).into_owned();
        let title = self.page.paint(TextLabel::Title, truncate(&title, self.page.prose_width(0)));
        let version = header.version.as_ref().map(|version| format!("Claude Code {version}"));
        let parts = [&header.id, &header.cwd, &header.git_branch, &version];
        let mut about: Vec<String> =
            parts.into_iter().flatten().map(|part| visible_name(part).into_owned()).collect();
        if let Some((started, last_active)) = header.active {
            about.push(format!("started {}", minute(started, &self.style.zone)));
            about.push(format!("last active {}", minute(last_active, &self.style.zone)));
        }
        about.push(plural(header.n_turns as u64, "turn"));
        let counts =
            [(header.n_calls, "tool call"), (header.n_agents, "sub-agent"), (header.errors, "error")];
        about.extend(counts.iter().filter(|(n, _)| *n > 0).map(|(n, name)| plural(*n as u64, name)));
        about.extend(cost(&header.spent));
        about.extend(header.inherited.as_ref().map(InheritedCalls::label));
        if header.n_branches > 0 {
            about.push(plural(header.n_branches as u64, "abandoned branch"));
        }
        let _ = writeln!(self.out, "{title}");
        for line in self.page.wrap(&about.join(" · "), 0) {
            self.line(0, Some(TextLabel::Dim), &line);
        }
        if let Some(caveat) = header.spent.caveat() {
            self.paragraph(0, Some(TextLabel::Dim), &format!("≥ minimum: {}", visible_name(&caveat)));
        }
    }

    fn line(&mut self, indent: usize, label: Option<TextLabel>, text: impl Into<TermText>) {
        let text = match label {
            Some(label) => self.page.paint(label, text),
            None => text.into(),
        };
        let text = text.without_tabs().trim_end();
        if !text.is_empty() {
            self.out.push(" ".repeat(indent));
            self.out.push(text);
        }
        self.out.push("\n");
    }

    fn gap(&mut self) {
        let wanted = if self.out.is_empty() { self.wants_gap } else { !self.out.ends_with("\n\n") };
        if wanted {
            self.out.push("\n");
        }
    }

    fn paragraph(&mut self, indent: usize, label: Option<TextLabel>, text: &str) {
        let page = self.page;
        page.wrap_each(visible(text).trim_end(), indent, |line| self.line(indent, label, line));
    }

    /// Renders Markdown on a terminal, and prints its source elsewhere.
    fn prose(&mut self, indent: usize, text: &str) {
        match self.page.color {
            true => markdown::render(text, self.page, indent)
                .iter()
                .for_each(|line| self.line(indent, None, line)),
            false => self.paragraph(indent, None, text),
        }
    }

    /// Renders a turn. The heading has number, time and model on the left; duration, tokens and cost on the
    /// right.
    fn turn(&mut self, turn: &TurnView, indent: usize) {
        let mut about = vec![turn.anchor.clone()];
        about.extend(turn.span.map(|(start, _)| self.format_time(start)));
        about.extend(turn.models.iter().map(|model| visible_name(short_model(model)).into_owned()));
        if turn.open {
            about.push("unfinished".to_owned());
        }
        self.gap();
        let number = format!("── {} ", turn.number);
        let about = about.join(" · ");
        let room = self.page.prose_width(indent);
        let cost = cost(&turn.spent).unwrap_or_default();
        // The shares of the duration are shown only if there is space for them.
        let fits = |figures: &str| number.width() + about.width() + figures.width() + COST_WIDTH + 2 <= room;
        let figures = Some(figures(turn, true).join(" · ")).filter(|figures| fits(figures));
        let figures = figures.unwrap_or_else(|| self::figures(turn, false).join(" · "));
        let line = if self.page.width.is_none() {
            let parts = [about, figures, cost];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            self.page.paint(TextLabel::Strong, &number) + self.page.paint(TextLabel::Dim, parts.join(" · "))
        } else {
            let margin = format!("{figures}{cost:>COST_WIDTH$}");
            let about = truncate(&about, room.saturating_sub(number.width() + margin.width() + 2).max(12));
            let gap = room.saturating_sub(number.width() + about.width() + margin.width()).max(2);
            let rest = truncate(&format!("{about}{:gap$}{margin}", ""), room.saturating_sub(number.width()));
            self.page.paint(TextLabel::Strong, &number) + self.page.paint(TextLabel::Dim, rest.trim_end())
        };
        self.line(indent, None, &line);
        self.items(&turn.items, indent);
    }

    /// Renders the cost of the reply that begins with this item, at [`DetailLevel::Full`] or above.
    fn reply_cost(&mut self, item: &TranscriptItem, indent: usize) {
        let Some(spent) = item.spent.as_deref().filter(|_| self.style.level >= DetailLevel::Full) else {
            return;
        };
        let (read, said) = (short_count(spent.tokens.context()), short_count(spent.tokens.output));
        let text = format!("{read} in, {said} out{:>COST_WIDTH$}", spent.short_cost());
        let room = if self.page.width.is_some() { self.page.prose_width(indent) } else { 0 };
        self.line(indent, Some(TextLabel::Dim), format!("{text:>room$}"));
    }

    /// Formats the start time of a turn. Includes the date unless the previous turn began on the same day.
    fn format_time(&mut self, millis: i64) -> String {
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
        let moment = moment.to_zoned(self.style.zone.clone());
        let again = self.day.replace(moment.date()) == Some(moment.date());
        moment.strftime(if again { "%H:%M" } else { "%Y-%m-%d %H:%M" }).to_string()
    }

    fn agent(&mut self, agent: &AgentView, indent: usize) {
        let parts = [Some(agent.name()), agent.agent_type.as_deref(), Some(&*agent.id)];
        let mut parts: Vec<_> = parts.into_iter().flatten().collect();
        parts.dedup();
        let mut parts: Vec<_> = parts.into_iter().map(visible).collect();
        parts.extend(cost(&agent.spent).map(Into::into));
        let text = format!("╭ sub-agent  {}", parts.join(" · "));
        self.line(indent, Some(TextLabel::Tool), truncate(&text, self.page.line_width(indent)));
        for turn in &agent.turns {
            self.turn(turn, indent + 2);
        }
    }

    fn branch(&mut self, branch: &BranchView) {
        let name = match &branch.fork {
            Some(fork) => format!("abandoned branch at {fork}"),
            None if branch.is_earlier_conversation(self.span) => "earlier conversation".to_owned(),
            None => "unconnected branch".to_owned(),
        };
        self.gap();
        self.line(0, Some(TextLabel::Warning), format!("╌╌ {name}"));
        for turn in &branch.turns {
            self.turn(turn, 2);
        }
    }
}
