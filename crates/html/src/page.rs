//! A self-contained page: one file with a whole session.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use threadline_view::{Item, OutlineLine, Outlining, Transcript, TurnView, figure, outline};

use crate::asset;
use crate::card;
use crate::item::{NO_LINES, covering};
use crate::markup::Markup;
use crate::opening::{opening, title};
use crate::pack::{self, Pack, Spool};
use crate::rail::{bars, outline_line};
use crate::raw::RawLines;
use crate::sheet::Sheet;
use crate::turn::{self, OpenTurn, Place};
use crate::words;

/// Rendering options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to include images.
    pub images: Images,
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
}

/// Whether to include images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images {
    /// Images are part of the page.
    Inline,
    /// Images are replaced by a note with their type and size.
    None,
}

impl Options {
    /// Returns the defaults: everything is included.
    pub fn new(zone: TimeZone) -> Self {
        Self { images: Images::Inline, max_output: None, zone, plain_up_to: 3 << 19, served_at: None }
    }
}

/// On a large page, turns are grouped into deferred sections of about this many bytes.
const STRETCH: usize = 48 << 10;

/// On a large page, the outline is split into sections of this many turns.
pub(crate) const OUTLINE_STRETCH: usize = 100;

/// Renders one turn as a fragment.
pub fn turn(turn: &TurnView, cwd: Option<&str>, options: &Options) -> Markup {
    let mut out = Markup::new();
    turn::turn(&mut Sheet::new(options, cwd), &mut out, turn, Place::MAIN);
    out
}

/// Renders a page with a whole session and the raw lines of its log.
pub fn page(transcript: &Transcript, raw: RawLines, options: &Options) -> String {
    let mut page = Page::new(options, transcript.cwd.as_deref(), raw, Box::new(io::Cursor::new(Vec::new())));
    for turn in &transcript.turns {
        page.items(&turn.items);
        page.end_turn(turn);
    }
    let mut out = Vec::new();
    // Writing to memory does not fail, and markup is UTF-8.
    let _ = page.finish(transcript, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A page under construction, built item by item.
///
/// Markup is plain up to [`Options::plain_up_to`] and compressed after that, so that the page of a large
/// session opens quickly and is built in little memory.
pub struct Page<'a> {
    sheet: Sheet<'a>,
    /// Storage for compressed sections; taken when the first one is needed.
    spool: Option<Box<dyn Spool>>,
    turns: Markup,
    /// The current turn.
    open: Option<(OpenTurn<'static>, Outlining)>,
    n_items: usize,
    /// Finished turns of the next deferred section, their range of lines, and their estimated height in rows.
    stretch: Markup,
    lines: (u64, u64),
    rows: usize,
    outline: Vec<OutlineLine>,
    bad: Vec<String>,
    /// Start and end of the session.
    span: Option<(i64, i64)>,
}

impl<'a> Page<'a> {
    /// Creates a page for a session that ran in `cwd`, with the raw lines of its log. Compressed sections are
    /// kept in `spool` until the page is written.
    pub fn new(options: &'a Options, cwd: Option<&str>, raw: RawLines, spool: Box<dyn Spool>) -> Self {
        let mut sheet = Sheet::new(options, cwd);
        sheet.raw = raw;
        Self {
            sheet,
            spool: Some(spool),
            // Unused capacity is never touched, and this avoids copying while the markup grows.
            turns: Markup::with_capacity(options.plain_up_to),
            open: None,
            n_items: 0,
            stretch: Markup::new(),
            lines: NO_LINES,
            rows: 0,
            outline: Vec::new(),
            bad: Vec::new(),
            span: None,
        }
    }

    /// Adds the next items of the current turn.
    pub fn items(&mut self, items: &[Item]) {
        if items.is_empty() {
            return;
        }
        let is_large = self.sheet.pack.is_some();
        let out = if is_large { &mut self.stretch } else { &mut self.turns };
        let (turn, line) = self
            .open
            .get_or_insert_with(|| (OpenTurn::new(&self.sheet, out, Place::MAIN), Outlining::default()));
        for item in items {
            turn.add(&mut self.sheet, out, item);
            line.add(item);
            if item.is_bad() {
                self.bad.push(item.anchor.clone());
            }
            self.lines = covering(self.lines, item);
        }
        self.n_items += items.len();
    }

    /// Ends the current turn. A turn without items is dropped.
    pub fn end_turn(&mut self, turn: &TurnView) {
        let Some((open, line)) = self.open.take() else { return };
        self.rows += 6 + std::mem::take(&mut self.n_items).min(200);
        self.outline.push(line.finish(turn));
        if let Some((start, end)) = turn.span {
            self.span = Some((self.span.map_or(start, |(first, _)| first), end));
        }
        if self.sheet.pack.is_some() {
            open.finish(&mut self.sheet, &mut self.stretch, turn);
            if self.stretch.len() >= STRETCH {
                self.end_stretch();
            }
            return;
        }
        open.finish(&mut self.sheet, &mut self.turns, turn);
        if self.turns.len() > self.sheet.options.plain_up_to {
            self.sheet.pack = self.spool.take().map(|spool| Pack::new("z", '\0', spool));
            self.turns.lit("<noscript><p class=\"note\">The rest of this large session requires JavaScript.</p></noscript>");
        }
        (self.lines, self.rows) = (NO_LINES, 0);
    }

    fn end_stretch(&mut self) {
        if !self.stretch.is_empty() {
            self.sheet.piece(&mut self.turns, &self.stretch, self.lines, self.rows);
            self.stretch.truncate(0);
        }
        (self.lines, self.rows) = (NO_LINES, 0);
    }

    /// Writes the page. `transcript` provides the metadata of the session; its turns are not used.
    ///
    /// # Errors
    ///
    /// Returns errors of writing to `to` or to a spool.
    pub fn finish(mut self, transcript: &Transcript, to: &mut dyn Write) -> io::Result<()> {
        self.end_stretch();
        let title = title(transcript, &self.outline);
        let mut out = Markup::new();
        asset::head(&mut out, &title, true);
        out.lit("<body>\n<a class=\"skip\" href=\"#main\">Skip to the conversation</a>\n<main id=\"main\" tabindex=\"-1\">\n");
        opening(&mut out, transcript, &title, &self.outline, self.span, &self.sheet.options.zone);
        out.lit("</header>\n");
        for part in [out, std::mem::take(&mut self.turns)] {
            to.write_all(part.as_str().as_bytes())?;
        }
        let mut behind = Markup::new();
        strays(&mut self.sheet, &mut behind, transcript);
        branches(&mut self.sheet, &mut behind, transcript, to)?;
        behind.lit("</main>\n");
        self.rail(&mut behind, transcript);
        // The last section is compressed in the background while the rest is written.
        if let Some(pack) = &mut self.sheet.pack {
            pack.close();
        }
        behind.lit(DIALOGS);
        self.facts_for_script(&mut behind);
        to.write_all(behind.as_str().as_bytes())?;
        if let Some(pack) = self.sheet.pack {
            pack.write(to)?;
        }
        self.sheet.raw.write(to)?;
        let mut out = Markup::new();
        out.lit("<script>").lit(asset::SCRIPT).lit("</script>\n</body>\n</html>\n");
        to.write_all(out.as_str().as_bytes())
    }
}

/// Markup that the script uses: the help and raw-line dialogs, and a status region for screen readers.
pub(crate) const DIALOGS: &str = include_str!("../assets/dialogs.html");

impl Page<'_> {
    /// Adds the sidebar: search, filters, and an outline with one line per turn.
    fn rail(&mut self, out: &mut Markup, transcript: &Transcript) {
        out.lit("<aside class=\"side\" aria-label=\"Navigation\">\n")
            .lit(include_str!("../assets/controls.html"));
        out.lit("<nav class=\"rail\" id=\"rail\" aria-label=\"Outline\">");
        let bars = bars(&self.outline);
        for (i, stretch) in self.outline.chunks(OUTLINE_STRETCH).enumerate() {
            let mut drawn = Markup::new();
            drawn.lit("<ol>");
            for (line, percent) in stretch.iter().zip(&bars[i * OUTLINE_STRETCH..]) {
                outline_line(&mut drawn, line, *percent);
            }
            drawn.lit("</ol>");
            if i < 2 {
                out.add(&drawn);
            } else {
                self.sheet.piece(out, &drawn, (0, 0), stretch.len() * 2);
            }
        }
        if transcript.branches.iter().any(|branch| !branch.turns.is_empty()) {
            out.lit("<p class=\"note\">Abandoned branches are at the end</p>");
        }
        out.lit("</nav>\n</aside>\n");
    }

    /// Adds the data for the script as JSON.
    fn facts_for_script(&self, out: &mut Markup) {
        let raw = &self.sheet.raw;
        let starts = self.sheet.pack.as_ref().map_or(&[][..], Pack::starts);
        out.lit("<script type=\"application/json\" id=\"index\">{\"large\":").lit(if starts.is_empty() {
            "false"
        } else {
            "true"
        });
        out.lit(",\"starts\":");
        pack::numbers(out, starts.iter().map(|start| *start as u64));
        out.lit(",\"pieces\":");
        pack::numbers(
            out,
            self.sheet.pieces.iter().flat_map(|piece| [piece.part as u64, piece.lines.0, piece.lines.1]),
        );
        out.lit(",\"turns\":[");
        for (i, line) in self.outline.iter().enumerate() {
            out.lit(if i > 0 { "," } else { "" }).json(&line.anchor);
        }
        out.lit("],\"bad\":[");
        for (i, anchor) in self.bad.iter().enumerate() {
            out.lit(if i > 0 { "," } else { "" }).json(anchor);
        }
        out.lit("],\"agents\":{");
        for (i, (agent, call)) in self.sheet.agents.iter().enumerate() {
            out.lit(if i > 0 { "," } else { "" }).json(agent).lit(":").json(call);
        }
        out.lit("},\"tools\":[");
        for (i, (tool, count)) in self.sheet.tools.iter().enumerate() {
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
pub(crate) fn strays(sheet: &mut Sheet<'_>, out: &mut Markup, transcript: &Transcript) {
    if transcript.agents.is_empty() {
        return;
    }
    out.lit("<section class=\"branches\" aria-label=\"Detached sub-agents\"><h2>Detached sub-agents</h2>");
    out.lit("<p class=\"note\">sub-agents without a starting call</p>");
    for agent in &transcript.agents {
        card::work(sheet, out, agent, "");
    }
    out.lit("</section>\n");
}

/// Renders the abandoned branches. Writes the buffer to `to` when it is large.
fn branches(
    sheet: &mut Sheet<'_>,
    out: &mut Markup,
    transcript: &Transcript,
    to: &mut dyn Write,
) -> io::Result<()> {
    let branches: Vec<_> = transcript.branches.iter().filter(|branch| !branch.turns.is_empty()).collect();
    if branches.is_empty() {
        return Ok(());
    }
    out.lit("<section class=\"branches\" aria-label=\"Abandoned branches\"><h2>Abandoned branches</h2>");
    for branch in branches {
        let lines = outline(&branch.turns);
        let first = lines
            .iter()
            .map(|line| line.title.as_str())
            .find(|title| !title.is_empty())
            .unwrap_or("no prompt");
        out.lit(
            "<details class=\"branch\"><summary><span class=\"tool\">Branch</span><span class=\"subject\">",
        );
        out.text(&words::first_words(first, 160)).lit("</span><span class=\"gist\">");
        out.text(&figure::plural(branch.turns.len() as u64, "turn")).lit("</span></summary>");
        if let Some(fork) = &branch.fork {
            out.lit("<p class=\"note\">branched off at <a href=\"#")
                .text(fork)
                .lit("\">")
                .text(fork)
                .lit("</a></p>");
        } else if branch.is_before(transcript.span) {
            out.lit("<p class=\"note\">an earlier conversation, before the restart</p>");
        }
        let (mut body, mut lines) = (Markup::new(), NO_LINES);
        for turn in &branch.turns {
            turn::turn(sheet, &mut body, turn, Place::BRANCH);
            lines = turn.items.iter().fold(lines, covering);
        }
        sheet.piece(out, &body, lines, 10);
        out.lit("</details>");
        if out.len() >= STRETCH {
            to.write_all(out.as_str().as_bytes())?;
            out.truncate(0);
        }
    }
    out.lit("</section>\n");
    Ok(())
}
