//! The page of a session in the viewer: the same markup as an exported page, sent part by part.
//!
//! The conversation is split into [`PagePart`]s. The name of a part is its first line, and its stamp
//! depends on its content. The page contains the first parts and a placeholder for each of the others.
//! `page.js` fetches those when they come near the viewport, and `live.js` when the session grows. Without
//! a script, each placeholder is a link to a page that begins there.

use threadline_view::{FileChange, Layout, OutlineLine, OutlinePart, PagePart, TurnView, humanize};

use crate::markup::Markup;
use crate::outline::{bar_lengths, outline_line};
use crate::page::{DIALOGS, OUTLINE_SECTION_TURNS, RenderOptions, render_detached_agents};
use crate::page_header::{render_header, title};
use crate::render_context::RenderContext;
use crate::site::{PageFrame, ViewerTab, site_head};
use crate::turn::{self, TurnContext};
use crate::{card, chart, text_format};

/// A turn, or a section of one, in a part.
#[derive(Clone, Debug)]
pub struct PageTurn {
    /// The turn, with only the items of this part.
    pub turn: TurnView,
    /// Whether the head of the turn is in an earlier part.
    pub is_continuation: bool,
}

/// The data of a session page.
pub struct SessionPage<'a> {
    /// The layout of the session.
    pub layout: &'a Layout,
    /// Rendering options.
    pub options: &'a RenderOptions,
    /// The query string of the page: `?agent=…`, `?branch=…` or empty.
    pub query: &'a str,
    /// The parts in order, with the markup of those that are included in the page.
    pub parts: Vec<(&'a PagePart, Option<Markup>)>,
    /// The sections of the outline.
    pub outline: &'a [OutlinePart],
    /// The command to resume the session.
    pub resume: Option<String>,
    /// The size of its log in bytes.
    pub size: u64,
    /// Additional notes, such as that the log is truncated.
    pub notes: Vec<String>,
    /// A description of the page, if it does not show the session itself.
    pub description: Option<String>,
    /// The last line of the log.
    pub last_line: u64,
    /// A stamp that changes whenever anything except the parts and the outline does.
    pub stamp: &'a str,
}

/// Renders a part.
pub fn render_part(turns: &[PageTurn], layout: &Layout, options: &RenderOptions) -> Markup {
    let mut cx = RenderContext::new(options, layout.header.cwd.as_deref());
    cx.set_tools(&layout.tools);
    let mut out = Markup::new();
    for found in turns {
        let place = if found.is_continuation { TurnContext::CONTINUATION } else { TurnContext::MAIN };
        turn::turn(&mut cx, &mut out, &found.turn, place);
    }
    out
}

/// Renders the turns of a sub-agent, to be inserted into the call that started it.
pub fn render_subagent_turns(
    turns: &[TurnView],
    agent: &str,
    cwd: Option<&str>,
    options: &RenderOptions,
) -> Markup {
    let mut cx = RenderContext::new(options, cwd);
    let mut out = Markup::new();
    out.lit("<div class=\"agent\">");
    for turn in turns {
        turn::turn(
            &mut cx,
            &mut out,
            turn,
            TurnContext { agent: Some(agent), id_prefix: "", is_continuation: false },
        );
    }
    out.lit("</div>");
    out
}

/// Renders a section of the outline.
pub fn render_outline_part(layout: &Layout, number: usize) -> Markup {
    let lines = lines(layout);
    let bars = bar_lengths(&lines);
    let mut out = Markup::new();
    out.lit("<ol>");
    let from = number * OUTLINE_SECTION_TURNS;
    for (line, bar) in lines.iter().zip(bars).skip(from).take(OUTLINE_SECTION_TURNS) {
        outline_line(&mut out, line, bar);
    }
    out.lit("</ol>");
    out
}

fn lines(layout: &Layout) -> Vec<OutlineLine> {
    layout.turns.iter().map(|turn| turn.line.clone()).collect()
}

/// Renders the page of a session.
pub fn render_session_page(served: &SessionPage<'_>) -> Markup {
    let SessionPage { layout, .. } = served;
    let lines = lines(layout);
    let title = title(&layout.header, &lines);
    let frame =
        PageFrame { title: &title, tab: ViewerTab::None, class: "session", scripts: &["page.js", "live.js"] };
    let mut out = site_head(&frame);
    out.lit("<main id=\"main\" tabindex=\"-1\">\n<div id=\"opening\">");
    out.add(&session_header(served)).lit("</div>\n<div id=\"parts\">\n");
    for (part, drawn) in &served.parts {
        part_or_placeholder(&mut out, served, part, drawn.as_ref());
    }
    out.lit("</div>\n<div id=\"ending\">").add(&footer(served)).lit("</div>\n</main>\n");
    out.lit("<aside class=\"side\" aria-label=\"Navigation\">\n")
        .lit(include_str!("../assets/controls.html"));
    out.lit("<nav class=\"rail\" id=\"rail\" aria-label=\"Outline\">");
    for rail in served.outline {
        out.lit("<div class=\"chunk\" data-r=\"").num(rail.number as u64);
        out.lit("\" data-v=\"").text(&rail.stamp).lit("\">");
        if rail.number < 2 {
            out.add(&render_outline_part(layout, rail.number));
        }
        out.lit("</div>");
    }
    out.lit("</nav>\n</aside>\n").lit(DIALOGS);
    out.lit("<p id=\"new-lines\" class=\"pill\" hidden><button type=\"button\"></button></p>\n");
    add_script_data(&mut out, served);
    out.lit("</body>\n</html>\n");
    out
}

/// Adds a part, or a placeholder if it is not included.
fn part_or_placeholder(out: &mut Markup, served: &SessionPage<'_>, part: &PagePart, drawn: Option<&Markup>) {
    out.lit("<div class=\"piece").lit(if drawn.is_some() { " drawn" } else { "" });
    out.lit("\" data-p=\"").text(&part.name).lit("\" data-v=\"").text(&part.stamp).lit("\"");
    match drawn {
        Some(markup) => out.lit(">").add(markup),
        None => {
            out.lit(" data-rows=\"").num(part.rows as u64).lit("\"><noscript><p class=\"note\"><a href=\"");
            out.text(served.options.served_at.as_deref().unwrap_or_default()).text(served.query);
            out.lit(if served.query.is_empty() { "?at=" } else { "&amp;at=" })
                .text(&part.name)
                .lit("#")
                .text(&part.name);
            out.lit("\">continue from here</a></p></noscript>")
        }
    };
    out.lit("</div>\n");
}

/// Renders the header of a session in the viewer.
fn session_header(served: &SessionPage<'_>) -> Markup {
    let SessionPage { layout, options, .. } = served;
    let lines = lines(layout);
    let at = options.served_at.as_deref().unwrap_or_default();
    let mut out = Markup::new();
    if let Some(instead) = &served.description {
        out.lit("<p class=\"note page-scope\">")
            .text(instead)
            .lit(" <a href=\"")
            .text(at)
            .lit("\">Back to the session</a></p>");
    }
    let spans = || layout.turns.iter().filter_map(|turn| turn.turn.span);
    let span = spans().next().map(|(start, _)| (start, spans().next_back().map_or(start, |(_, end)| end)));
    let title = title(&layout.header, &lines);
    let errors = &layout.error_anchors;
    render_header(&mut out, &layout.header, &layout.findings, &title, &lines, errors, (span, &options.zone));
    for note in &served.notes {
        out.lit("<p class=\"note notice\">").text(note).lit("</p>");
    }
    out.lit("<p class=\"facts session-links\"><span id=\"live\" hidden>Live</span>");
    out.text(&humanize::bytes(served.size))
        .lit(" <span>·</span> <a href=\"")
        .text(at)
        .lit("/changes\">net changes</a> <span>·</span> <a href=\"");
    out.text(at).lit("/check\">health check</a>");
    out.lit(" <span>·</span> <a href=\"").text(at).lit(".md").text(served.query).lit("\">Markdown</a>");
    out.lit(" <span>·</span> <a href=\"").text(at).lit(".json").text(served.query).lit("\">JSON</a>");
    out.lit(" <span>·</span> <a rel=\"prev\" title=\"Previous session in the list ([)\" href=\"").text(at);
    out.lit("/previous\">previous session</a> <span>·</span> ");
    out.lit("<a rel=\"next\" title=\"Next session in the list (])\" href=\"").text(at);
    out.lit("/next\">next session</a></p>");
    if let Some(resume) = &served.resume {
        out.lit("<div class=\"code command resume\"><pre><code>").text(resume).lit("</code></pre></div>");
    }
    out.lit("</header>\n");
    out.add(&chart::growth_chart(layout.turns.as_slice()));
    if !layout.branches.is_empty() {
        out.lit("<nav class=\"branch-list\" aria-label=\"Abandoned branches\"><p class=\"note\">Abandoned branches</p><ul>");
        for branch in &layout.branches {
            out.lit("<li><a href=\"").text(at).lit("?branch=").text(&branch.anchor).lit("\">");
            let title = text_format::excerpt(&branch.title, 100);
            out.text(if title.is_empty() { "no prompt" } else { &title }).lit("</a> <span class=\"note\">");
            out.text(&humanize::plural(branch.turns as u64, "turn"));
            if let Some(fork) = &branch.fork {
                out.lit(", branched off at <a href=\"#").text(fork).lit("\">").text(fork).lit("</a>");
            }
            out.lit("</span></li>");
        }
        out.lit("</ul></nav>\n");
    }
    out
}

/// Renders the markup before and after the conversation.
pub fn header_and_footer(served: &SessionPage<'_>) -> (Markup, Markup) {
    (session_header(served), footer(served))
}

/// Renders the markup after the conversation.
fn footer(served: &SessionPage<'_>) -> Markup {
    let mut out = Markup::new();
    render_detached_agents(
        &mut RenderContext::new(served.options, None),
        &mut out,
        &served.layout.unattached_agents,
    );
    out
}

/// Adds the data for the scripts as JSON.
fn add_script_data(out: &mut Markup, served: &SessionPage<'_>) {
    let layout = served.layout;
    out.lit(
        "<script type=\"application/json\" id=\"index\">{\"large\":true,\"starts\":[],\"raw\":{},\"served\":",
    );
    out.json(served.options.served_at.as_deref().unwrap_or_default()).lit(",\"query\":").json(served.query);
    out.lit(",\"last\":").num(served.last_line).lit(",\"stamp\":").json(served.stamp).lit(",\"pieces\":[");
    for (i, (part, _)) in served.parts.iter().enumerate() {
        out.lit(if i > 0 { "," } else { "" }).json(&part.name);
        out.lit(",").num(part.lines.0).lit(",").num(part.lines.1);
    }
    out.lit("],\"turns\":[");
    for (i, turn) in layout.turns.iter().enumerate() {
        out.lit(if i > 0 { "," } else { "" }).json(&turn.turn.anchor);
    }
    out.lit("],\"bad\":[");
    for (i, anchor) in layout.error_anchors.iter().enumerate() {
        out.lit(if i > 0 { "," } else { "" }).json(anchor);
    }
    out.lit("],\"agents\":{");
    for (i, (agent, call)) in layout.agents().enumerate() {
        out.lit(if i > 0 { "," } else { "" }).json(&agent.id).lit(":").json(call);
    }
    out.lit("},\"tools\":[");
    for (i, (tool, count)) in layout.tools.iter().enumerate() {
        out.lit(if i > 0 { ",[" } else { "[" }).json(tool).lit(",").num(*count as u64).lit("]");
    }
    out.lit("]}</script>\n");
}

/// Renders a page with the net changes of the files that a session edited.
pub fn render_changes_page(
    changes: &[FileChange],
    title: &str,
    cwd: Option<&str>,
    options: &RenderOptions,
) -> Markup {
    let mut body = Markup::new();
    let cx = RenderContext::new(options, cwd);
    let at = options.served_at.as_deref().unwrap_or_default();
    body.lit("<header class=\"opening\"><h1>Net changes</h1><p class=\"facts\"><a href=\"")
        .text(at)
        .lit("\">");
    body.text(&text_format::excerpt(title, 120)).lit("</a> <span>·</span> ");
    body.text(&humanize::plural(changes.len() as u64, "file")).lit(" <span>·</span> <a href=\"").text(at);
    body.lit("/changes.md\">as a patch</a></p></header>\n");
    if changes.is_empty() {
        body.lit("<p class=\"note\">No net file changes</p>");
    }
    for file in changes {
        let hunks = file.hunks();
        let (added, removed) = threadline_view::Hunk::counts(&hunks);
        body.lit("<section class=\"file\"><h2>")
            .text(text_format::path(&file.path, cwd))
            .lit("</h2><p class=\"facts\">");
        body.text(&match (file.is_new(), file.is_deleted()) {
            (true, _) => "new".to_owned(),
            (_, true) => "deleted".to_owned(),
            _ => format!("+{added} −{removed}"),
        });
        body.lit(" <span>·</span> ").text(&humanize::plural(file.edits as u64, "edit")).lit("</p>");
        for note in &file.notes {
            body.lit("<p class=\"note\">").text(note).lit("</p>");
        }
        card::render_diff(&cx, &mut body, &file.path, &hunks);
        body.lit("</section>\n");
    }
    crate::site::site(
        &PageFrame { title: "Net changes", tab: ViewerTab::None, class: "changes", scripts: &[] },
        &body,
    )
}
