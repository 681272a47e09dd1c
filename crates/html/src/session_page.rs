//! The page of a session in the viewer: the same markup as an exported page, sent part by part.
//!
//! The conversation is split into [`PagePart`]s. The name of a part is its first line, and its stamp
//! depends on its content. The page contains the first parts and a placeholder for each of the others.
//! `page.js` fetches those when they come near the viewport, and `live.js` when the session grows. Without
//! a script, each placeholder is a link to a page that begins there.

use threadline_view::{
    FileChange, Hunk, OutlineLine, OutlinePart, PagePart, TranscriptLayout, TurnView, humanize,
};

use crate::lists::href;
use crate::markup::Markup;
use crate::outline::{bar_lengths, outline_line};
use crate::page::{DIALOGS, OUTLINE_SECTION_TURNS, RenderOptions, render_detached_agents};
use crate::page_header::{read_errors, render_header, title};
use crate::render_context::RenderContext;
use crate::site::{Masking, PageFrame, SESSION_SCRIPT, ViewerSettings, ViewerTab, site_head};
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
    pub layout: &'a TranscriptLayout,
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
    /// Whether it is being written to.
    pub is_live: bool,
    /// Additional notes, such as that the log is truncated.
    pub notes: Vec<String>,
    /// The pin and the tags of the session, with controls.
    pub labels: Option<Markup>,
    /// A description of the page, if it does not show the session itself.
    pub description: Option<String>,
    /// The last line of the log.
    pub last_line: u64,
    /// The settings of the viewer.
    pub settings: ViewerSettings,
    /// A stamp that changes whenever anything except the parts and the outline does.
    pub stamp: &'a str,
}

/// Renders a part.
pub fn render_part(turns: &[PageTurn], layout: &TranscriptLayout, options: &RenderOptions) -> Markup {
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
pub fn render_outline_part(layout: &TranscriptLayout, number: usize) -> Markup {
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

fn lines(layout: &TranscriptLayout) -> Vec<OutlineLine> {
    layout.turns.iter().map(|turn| turn.line.clone()).collect()
}

/// Renders the page of a session.
pub fn render_session_page(served: &SessionPage<'_>) -> Markup {
    let SessionPage { layout, .. } = served;
    let lines = lines(layout);
    let title = title(&layout.header, &lines);
    let frame = PageFrame {
        title: &title,
        tab: ViewerTab::None,
        class: "session",
        scripts: &[SESSION_SCRIPT, "live.js"],
        settings: served.settings,
    };
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
    let title = title(&layout.header, &lines);
    let errors = &layout.error_anchors;
    render_header(&mut out, &layout.header, &layout.findings, &title, &lines, errors, &options.zone);
    for note in &served.notes {
        out.text_element("p class=\"note notice\"", note);
    }
    out.lit("<div class=\"facts session-links\"><span id=\"live\"");
    out.lit(if served.is_live { "" } else { " hidden" }).lit(">Live</span>");
    out.text(&humanize::bytes(served.size))
        .lit(" <span>·</span> <a href=\"")
        .text(at)
        .lit("/changes\">net changes</a> <span>·</span> <a href=\"");
    out.text(at).lit("/context\">context window</a> <span>·</span> <a href=\"").text(at);
    out.lit("/check\">health check</a>");
    out.lit(" <span>·</span> <a href=\"").text(at).lit(".md").text(served.query).lit("\">Markdown</a>");
    out.lit(" <span>·</span> <a href=\"").text(at).lit(".json").text(served.query).lit("\">JSON</a>");
    out.lit(
        " <span>·</span> <details class=\"export\"><summary>export HTML</summary><ul><li><a download href=\"",
    );
    out.text(at).lit("/export?redact=share\">for other people: without secrets, e-mail addresses, local paths and user names</a></li><li><a download href=\"");
    out.text(at).lit("/export?redact=secrets\">without secrets</a></li>");
    if served.settings.masking != Some(Masking::Always) {
        out.lit("<li><a download href=\"").text(at).lit("/export?redact=none\">unchanged</a></li>");
    }
    out.lit("</ul></details>");
    out.lit(" <span>·</span> <a rel=\"prev\" title=\"Previous session in the list ([)\" href=\"").text(at);
    out.lit("/previous\">previous session</a> <span>·</span> ");
    out.lit("<a rel=\"next\" title=\"Next session in the list (])\" href=\"").text(at);
    out.lit("/next\">next session</a></div>");
    if let Some(labels) = &served.labels {
        out.lit("<div class=\"facts session-labels\">").add(labels).lit("</div>");
    }
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
            if let Some(id) = &layout.header.id {
                let branch = format!("{id}#{}", branch.anchor);
                out.lit(", <a href=\"").text(&href("/compare", [("a", &**id), ("b", &*branch)]));
                out.lit("\">compare</a>");
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
    let (mut cx, agents) = (RenderContext::new(served.options, None), &served.layout.unattached_agents);
    render_detached_agents(&mut cx, &mut out, agents);
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

/// The data of the page with the net changes of a session.
pub struct ChangesPage<'a> {
    /// The changes, one per file.
    pub changes: &'a [FileChange],
    /// The title of the session.
    pub title: &'a str,
    /// The working directory of the session.
    pub cwd: Option<&'a str>,
    /// Errors of logs that could not be read.
    pub read_errors: &'a [String],
    /// Rendering options.
    pub options: &'a RenderOptions,
    /// The settings of the viewer.
    pub settings: ViewerSettings,
}

/// Renders the page with the net changes of the files that a session edited.
pub fn render_changes_page(page: &ChangesPage<'_>) -> Markup {
    let ChangesPage { changes, cwd, options, .. } = *page;
    let mut body = Markup::new();
    let cx = RenderContext::new(options, cwd);
    let at = options.served_at.as_deref().unwrap_or_default();
    let title = text_format::excerpt(page.title, 120);
    let mut files: Vec<(&FileChange, Vec<Hunk>)> = changes.iter().map(|file| (file, file.hunks())).collect();
    // Files of the project come first; their paths are shown relative to it.
    files.sort_by_key(|(file, _)| text_format::path(&file.path, cwd).len() == file.path.len());
    let counts: Vec<(usize, usize)> = files.iter().map(|(_, hunks)| Hunk::counts(hunks)).collect();
    body.lit("<header class=\"opening\"><h1>")
        .text(&title)
        .lit("</h1><p class=\"facts\">Net changes <span>·</span> ");
    body.text(&humanize::plural(changes.len() as u64, "file")).lit(" <span>·</span> ");
    let total = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    line_counts(&mut body, total);
    body.lit(" <span>·</span> <a href=\"").text(at).lit("\">session</a>");
    body.lit(" <span>·</span> <a href=\"").text(at).lit("/changes.md\">patch</a></p>");
    read_errors(&mut body, page.read_errors);
    body.lit("</header>\n");
    if changes.is_empty() {
        body.lit("<p class=\"note\">No net file changes</p>");
    }
    if changes.len() > 1 {
        body.lit("<nav class=\"file-list\" aria-label=\"Changed files\"><ol>");
        for (number, ((file, _), counts)) in files.iter().zip(&counts).enumerate() {
            body.lit("<li><a href=\"#file-").num(number as u64 + 1).lit("\">");
            body.text(text_format::path(&file.path, cwd)).lit("</a> <span class=\"note\">");
            file_state(&mut body, file, *counts);
            body.lit("</span></li>");
        }
        body.lit("</ol><p><button type=\"button\" id=\"b-fold\" hidden>Collapse all</button></p></nav>\n");
    }
    for (number, ((file, hunks), counts)) in files.iter().zip(&counts).enumerate() {
        // Of several files, those with many changes are collapsed at first.
        let is_open = changes.len() == 1 || counts.0 + counts.1 <= 400;
        body.lit("<details class=\"file\" id=\"file-").num(number as u64 + 1).lit("\"");
        body.lit(if is_open { " open><summary><h2>" } else { "><summary><h2>" });
        body.text(text_format::path(&file.path, cwd)).lit("</h2><span class=\"facts\">");
        file_state(&mut body, file, *counts);
        body.lit(" <span>·</span> ")
            .text(&humanize::plural(file.edits() as u64, "edit"))
            .lit("</span></summary>");
        for note in &file.notes {
            body.text_element("p class=\"note\"", note);
        }
        body.lit("<p class=\"note\"><a href=\"").text(&href("/file", [("path", &*file.path)]));
        body.lit("\">all edits of this file</a> <span>·</span> <a href=\"");
        body.text(&href("/blame", [("path", &*file.path)])).lit("\">blame</a></p>");
        card::render_diff(&cx, &mut body, &file.path, hunks);
        body.lit("</details>\n");
    }
    let title = format!("Net changes · {title}");
    let frame = PageFrame {
        title: &title,
        tab: ViewerTab::None,
        class: "changes",
        scripts: &[],
        settings: page.settings,
    };
    crate::site::site(&frame, &body)
}

fn file_state(out: &mut Markup, file: &FileChange, counts: (usize, usize)) {
    out.lit(match (file.is_new(), file.is_deleted()) {
        (true, _) => "new ",
        (_, true) => "deleted ",
        _ => "",
    });
    line_counts(out, counts);
}

/// Adds the numbers of added and removed lines, without zeros.
fn line_counts(out: &mut Markup, (added, removed): (usize, usize)) {
    if added > 0 || removed == 0 {
        out.lit("<span class=\"added\">+").text(&humanize::count(added as u64)).lit("</span>");
    }
    if removed > 0 {
        out.lit(if added > 0 { " " } else { "" });
        out.lit("<span class=\"removed\">−").text(&humanize::count(removed as u64)).lit("</span>");
    }
}
