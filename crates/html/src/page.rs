//! A self-contained page: one file with a whole session.

use std::borrow::Borrow;
use std::io::{self, Write};

use jiff::tz::TimeZone;
use threadline_view::{
    AgentView, BranchView, OutlineLine, Transcript, TranscriptEnd, TranscriptHeader, TurnView, humanize,
    outline,
};

use crate::asset;
use crate::card;
use crate::compressed_section::{self, SectionWriter, Spool};
use crate::item::{EMPTY_RANGE, extend_range};
use crate::markup::Markup;
use crate::outline::{bar_lengths, outline_line};
use crate::page_header::{read_errors, render_header, title};
use crate::raw::RawLines;
use crate::render_context::RenderContext;
use crate::site::PageTheme;
use crate::text_format;
use crate::turn::{self, TurnBuilder, TurnContext};

/// Rendering options.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// Whether to include images.
    pub images: ImageMode,
    /// The maximum number of bytes of a tool's output; the rest is counted. `None` is unlimited.
    pub max_output: Option<usize>,
    /// The time zone of the times shown.
    pub zone: TimeZone,
    /// After this many bytes of markup, the rest of the page is stored compressed and drawn on demand. Up to
    /// here the page works without a script.
    pub plain_up_to: usize,
    /// The path at which the session is served, such as `/s/3f91`. If set, sub-agents have their own pages,
    /// and their turns are fetched on demand.
    pub served_at: Option<String>,
    /// The colours of the page.
    pub theme: PageTheme,
}

/// Whether to include images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageMode {
    /// Images are part of the page.
    Inline,
    /// Images are replaced by a note with their type and size.
    None,
}

impl RenderOptions {
    /// Returns the defaults: everything is included.
    pub fn new(zone: TimeZone) -> Self {
        Self {
            images: ImageMode::Inline,
            max_output: None,
            zone,
            plain_up_to: 3 << 19,
            served_at: None,
            theme: PageTheme::Auto,
        }
    }
}

/// On a large page, turns are grouped into deferred sections of about this many bytes.
const SECTION_SIZE: usize = 48 << 10;

/// On a large page, the outline is split into sections of this many turns.
pub(crate) const OUTLINE_SECTION_TURNS: usize = 100;

/// Renders one turn as a fragment.
pub fn turn(turn: &TurnView, cwd: Option<&str>, options: &RenderOptions) -> Markup {
    let mut out = Markup::new();
    turn::turn(&mut RenderContext::new(options, cwd), &mut out, turn, TurnContext::MAIN);
    out
}

/// Renders a page with a whole session and the raw lines of its log.
pub fn page(transcript: &Transcript, raw: RawLines, options: &RenderOptions) -> String {
    let mut page = PageBuilder::new(
        options,
        transcript.header.cwd.as_deref(),
        raw,
        Box::new(io::Cursor::new(Vec::new())),
    );
    transcript.turns.iter().for_each(|turn| page.turn(turn));
    let mut out = Vec::new();
    // Writing to memory does not fail, and markup is UTF-8.
    let end = &transcript.end;
    let _ = page.finish(&transcript.header, end, end.branches.iter(), &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A page under construction, built turn by turn.
///
/// Markup is plain up to [`RenderOptions::plain_up_to`] and compressed after that, so that the page of a
/// large session opens quickly and is built in little memory.
pub struct PageBuilder<'a> {
    context: RenderContext<'a>,
    turns: Markup,
    /// Whether the page contains the note that the rest requires JavaScript.
    has_script_note: bool,
    /// Finished turns of the next deferred section, their range of lines, and their estimated height in rows.
    section: Markup,
    lines: (u64, u64),
    rows: usize,
    outline: Vec<OutlineLine>,
    error_anchors: Vec<String>,
}

impl<'a> PageBuilder<'a> {
    /// Creates a page for a session that ran in `cwd`, with the raw lines of its log. Compressed sections are
    /// kept in `spool` until the page is written.
    pub fn new(options: &'a RenderOptions, cwd: Option<&str>, raw: RawLines, spool: Box<dyn Spool>) -> Self {
        let mut cx = RenderContext::new(options, cwd);
        cx.raw = raw;
        cx.spool = Some(spool);
        Self {
            context: cx,
            // Unused capacity is never touched, and this avoids copying while the markup grows.
            turns: Markup::with_capacity(options.plain_up_to),
            has_script_note: false,
            section: Markup::new(),
            lines: EMPTY_RANGE,
            rows: 0,
            outline: Vec::new(),
            error_anchors: Vec::new(),
        }
    }

    /// Adds a turn. One without items is left out.
    pub fn turn(&mut self, turn: &TurnView) {
        if turn.items.is_empty() {
            return;
        }
        let in_section = self.context.sections.is_some();
        let out = if in_section { &self.section } else { &self.turns };
        let mut open = TurnBuilder::new(&self.context, out, TurnContext::MAIN);
        for item in &turn.items {
            let out = if in_section { &mut self.section } else { &mut self.turns };
            open.add(&mut self.context, out, item);
            self.error_anchors.extend(item.error_anchors());
            self.lines = extend_range(self.lines, item);
            self.begin_sections();
            if self.context.sections.is_some() && !in_section {
                open.defer_items();
            }
        }
        self.rows += 6 + turn.items.len().min(200);
        self.outline.push(OutlineLine::of(turn));
        if in_section {
            open.finish(&mut self.context, &mut self.section, turn);
            if self.section.len() >= SECTION_SIZE {
                self.end_section();
            }
            return;
        }
        open.finish(&mut self.context, &mut self.turns, turn);
        self.begin_sections();
        (self.lines, self.rows) = (EMPTY_RANGE, 0);
    }

    /// Stores the rest of a large page in compressed sections.
    fn begin_sections(&mut self) {
        if self.context.sections.is_none() && self.turns.len() > self.context.options.plain_up_to {
            self.context.begin_sections();
        }
        if self.context.sections.is_some() && !std::mem::replace(&mut self.has_script_note, true) {
            self.turns.lit("<noscript><p class=\"note\">The rest of this large session requires JavaScript.</p></noscript>");
        }
    }

    fn end_section(&mut self) {
        if !self.section.is_empty() {
            self.context.deferred_section(&mut self.turns, &mut self.section, self.lines, self.rows);
        }
        (self.lines, self.rows) = (EMPTY_RANGE, 0);
    }

    /// Writes the page: the facts about the session, the turns, and the parts after them. The abandoned
    /// branches are taken from `branches` when they are written; those in `end` are ignored.
    ///
    /// # Errors
    ///
    /// Returns errors of writing to `to` or to a spool.
    pub fn finish<B: Borrow<BranchView>>(
        mut self,
        header: &TranscriptHeader,
        end: &TranscriptEnd,
        branches: impl Iterator<Item = B>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        self.end_section();
        let title = title(header, &self.outline);
        let mut out = Markup::new();
        asset::head(&mut out, &title, self.context.options.theme, true);
        out.lit("<body>\n<a class=\"skip\" href=\"#main\">Skip to the conversation</a>\n<main id=\"main\" tabindex=\"-1\">\n");
        let zone = &self.context.options.zone;
        render_header(&mut out, header, &end.findings, &title, &self.outline, &self.error_anchors, zone);
        read_errors(&mut out, &end.unread);
        out.lit("</header>\n");
        for part in [out, std::mem::take(&mut self.turns)] {
            part.write_to(to)?;
        }
        let mut behind = Markup::new();
        render_detached_agents(&mut self.context, &mut behind, &end.agents);
        let has_branches = render_branches(&mut self.context, &mut behind, branches, header.span);
        behind.lit("</main>\n");
        self.rail(&mut behind, has_branches);
        // The last section is compressed in the background while the rest is written.
        if let Some(sections) = &mut self.context.sections {
            sections.close();
        }
        behind.lit(DIALOGS);
        self.script_data(&mut behind);
        behind.write_to(to)?;
        if let Some(sections) = self.context.sections {
            sections.write(to)?;
        }
        self.context.raw.write(to)?;
        let mut out = Markup::new();
        out.lit("<script>").lit(asset::SCRIPT).lit("</script>\n</body>\n</html>\n");
        out.write_to(to)
    }
}

/// Markup that the script uses: the help and raw-line dialogs, and a status region for screen readers.
pub(crate) const DIALOGS: &str = include_str!("../assets/dialogs.html");

impl PageBuilder<'_> {
    /// Adds the sidebar: search, filters, and an outline with one line per turn.
    fn rail(&mut self, out: &mut Markup, has_branches: bool) {
        out.lit("<aside class=\"side\" aria-label=\"Navigation\">\n")
            .lit(include_str!("../assets/controls.html"));
        out.lit("<nav class=\"rail\" id=\"rail\" aria-label=\"Outline\">");
        let bars = bar_lengths(&self.outline);
        for (i, lines) in self.outline.chunks(OUTLINE_SECTION_TURNS).enumerate() {
            let mut drawn = Markup::new();
            drawn.lit("<ol>");
            for (line, percent) in lines.iter().zip(&bars[i * OUTLINE_SECTION_TURNS..]) {
                outline_line(&mut drawn, line, *percent);
            }
            drawn.lit("</ol>");
            if i < 2 {
                out.add(&drawn);
            } else {
                self.context.deferred_section(out, &mut drawn, (0, 0), lines.len() * 2);
            }
        }
        if has_branches {
            out.lit("<p class=\"note\">Abandoned branches are at the end</p>");
        }
        out.lit("</nav>\n</aside>\n");
    }

    /// Adds the data for the script as JSON.
    fn script_data(&self, out: &mut Markup) {
        let raw = &self.context.raw;
        let starts = self.context.sections.as_ref().map_or(&[][..], SectionWriter::starts);
        out.lit("<script type=\"application/json\" id=\"index\">{\"large\":").lit(if starts.is_empty() {
            "false"
        } else {
            "true"
        });
        out.lit(",\"starts\":");
        compressed_section::numbers(out, starts.iter().map(|start| *start as u64));
        out.lit(",\"pieces\":");
        compressed_section::numbers(
            out,
            self.context.deferred.iter().flat_map(|piece| [piece.part as u64, piece.lines.0, piece.lines.1]),
        );
        out.lit(",\"turns\":[");
        for (i, line) in self.outline.iter().enumerate() {
            out.lit(if i > 0 { "," } else { "" }).json(&line.anchor);
        }
        out.lit("],\"bad\":[");
        for (i, anchor) in self.error_anchors.iter().enumerate() {
            out.lit(if i > 0 { "," } else { "" }).json(anchor);
        }
        out.lit("],\"agents\":{");
        for (i, (agent, call)) in self.context.agents.iter().enumerate() {
            out.lit(if i > 0 { "," } else { "" }).json(agent).lit(":").json(call);
        }
        out.lit("},\"tools\":[");
        for (i, (tool, count)) in self.context.tools.iter().enumerate() {
            out.lit(if i > 0 { ",[" } else { "[" }).json(tool).lit(",").num(*count as u64).lit("]");
        }
        out.lit("],\"raw\":");
        if raw.is_empty() {
            out.lit("null");
        } else {
            raw.write_index(out);
        }
        out.lit("}</script>\n");
    }
}

/// Adds the sub-agents that no call started.
pub(crate) fn render_detached_agents(cx: &mut RenderContext<'_>, out: &mut Markup, agents: &[AgentView]) {
    if agents.is_empty() {
        return;
    }
    out.lit("<section class=\"branches\" aria-label=\"Detached sub-agents\"><h2>Detached sub-agents</h2>");
    out.lit("<p class=\"note\">sub-agents without a starting call</p>");
    for agent in agents {
        card::render_subagent(cx, out, agent, "");
    }
    out.lit("</section>\n");
}

/// Renders the abandoned branches of a conversation with this span, except those without turns, and returns
/// whether there are any.
fn render_branches<B: Borrow<BranchView>>(
    cx: &mut RenderContext<'_>,
    out: &mut Markup,
    branches: impl Iterator<Item = B>,
    span: Option<(i64, i64)>,
) -> bool {
    let mut has_branches = false;
    for branch in branches {
        let branch: &BranchView = branch.borrow();
        if branch.turns.is_empty() {
            continue;
        }
        if !std::mem::replace(&mut has_branches, true) {
            out.lit("<section class=\"branches\" aria-label=\"Abandoned branches\">")
                .lit("<h2>Abandoned branches</h2>");
        }
        let lines = outline(&branch.turns);
        let first = lines
            .iter()
            .map(|line| line.title.as_str())
            .find(|title| !title.is_empty())
            .unwrap_or("no prompt");
        out.lit(
            "<details class=\"branch\"><summary><span class=\"tool\">Branch</span><span class=\"subject\">",
        );
        out.text(&text_format::excerpt(first, 160)).lit("</span><span class=\"gist\">");
        out.text(&humanize::plural(branch.turns.len() as u64, "turn")).lit("</span></summary>");
        if let Some(fork) = &branch.fork {
            out.lit("<p class=\"note\">branched off at <a href=\"#")
                .text(fork)
                .lit("\">")
                .text(fork)
                .lit("</a></p>");
        } else if branch.is_earlier_conversation(span) {
            out.lit("<p class=\"note\">an earlier conversation, before the restart</p>");
        }
        let (mut body, mut lines) = (Markup::new(), EMPTY_RANGE);
        for turn in &branch.turns {
            turn::turn(cx, &mut body, turn, TurnContext::BRANCH);
            lines = turn.items.iter().fold(lines, extend_range);
        }
        cx.deferred_section(out, &mut body, lines, 10);
        out.lit("</details>");
    }
    if has_branches {
        out.lit("</section>\n");
    }
    has_branches
}
