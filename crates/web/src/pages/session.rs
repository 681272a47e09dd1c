//! The page of a session, and the parts of it that are loaded later.

use threadline_app::search::{Query, matching_anchors};
use threadline_app::{
    LiveError, LiveSession, PageLayout, ReadSpans, SessionFile, SessionLabel, SessionSelector, TurnSpan,
};
use threadline_html::{
    ChangesPage, LabelControls, Markup, PageTurn, RenderOptions, SessionPage, ViewerSettings,
    render_session_page,
};
use threadline_view::wire::ChangeObject;
use threadline_view::{PagePart, TurnView, anchor_line};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse, session_not_found};
use crate::state::ServerState;

/// Tool output longer than this is truncated on pages; the raw line has all of it.
const MAX_OUTPUT: usize = 200 << 10;

/// Approximate number of log bytes in the parts that are sent with a page. A session of up to
/// `MAX_WHOLE_BYTES` bytes is sent completely.
const INITIAL_BYTES: u64 = 160 << 10;
const MAX_WHOLE_BYTES: u64 = 600 << 10;

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let selector = parse_selector(request)?;
    match request.format {
        ResponseFormat::Html => html_page(state, request, &selector),
        ResponseFormat::Json | ResponseFormat::Markdown => {
            super::session_text::page(state, request, &selector)
        }
    }
}

/// Parses the sub-agent and the branch in the query string.
pub(crate) fn parse_selector(request: &PageRequest) -> Result<SessionSelector, PageError> {
    let leaf = request
        .query_param("branch")
        .map(|name| anchor_line(name).ok_or_else(|| PageError::bad_request("Invalid branch name")));
    Ok(SessionSelector { agent: request.query_param("agent").map(str::to_owned), leaf: leaf.transpose()? })
}

/// Returns the query string of a page and of its requests.
fn query_string(selector: &SessionSelector) -> String {
    let mut parts = Vec::new();
    if let Some(agent) = &selector.agent {
        parts.push(format!("agent={}", threadline_html::encode_url(agent)));
    }
    if let Some(leaf) = selector.leaf {
        parts.push(format!("branch=m{leaf}"));
    }
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

pub(crate) fn render_options(state: &ServerState, id: &str) -> RenderOptions {
    RenderOptions {
        max_output: Some(MAX_OUTPUT),
        served_at: Some(format!("/s/{}", threadline_html::encode_url(id))),
        ..RenderOptions::new(state.zone.clone())
    }
}

fn html_page(
    state: &ServerState,
    request: &PageRequest,
    selector: &SessionSelector,
) -> Result<PageResponse, PageError> {
    let id = request.path_param(0);
    let at = request.query_param("at").and_then(anchor_line);
    let (layout, lines_read, drawn, info) = state.with_session(id, |live| {
        let layout = live.page_layout(selector)?;
        let from = at.map_or(0, |line| layout.part_at(line));
        let drawn = initial_parts(live, selector, &layout, from)?;
        let spans: Vec<TurnSpan> =
            layout.parts[drawn.clone()].iter().flat_map(|(_, spans)| spans.clone()).collect();
        let lines_read = live.read(selector, &layout.layout, &spans)?;
        Ok((layout, lines_read, drawn, SessionPageInfo::of(state, live, selector)?))
    })?;
    let options = render_options(state, id);
    let mut markup = render_parts(&lines_read, &layout, &layout.parts[drawn.clone()], &options).into_iter();
    let parts = layout.parts.iter().enumerate();
    let parts =
        parts.map(|(i, (part, _))| (part, if drawn.contains(&i) { markup.next() } else { None })).collect();
    let query = query_string(selector);
    let served = info.session_page(&layout, &options, &query, parts, state.settings);
    Ok(PageResponse::Html(render_session_page(&served)))
}

/// Data of a page besides the conversation.
pub(crate) struct SessionPageInfo {
    file: SessionFile,
    size: u64,
    is_live: bool,
    agent: Option<String>,
    branch: bool,
    /// The command that resumes the session.
    resume: String,
    labels: SessionLabel,
    /// The errors of sub-agents that could not be read.
    read_errors: Vec<String>,
}

impl SessionPageInfo {
    fn of(state: &ServerState, live: &LiveSession, selector: &SessionSelector) -> Result<Self, PageError> {
        let agent = live.family().agents.iter().find(|agent| Some(&agent.id) == selector.agent.as_ref());
        Ok(Self {
            file: live.file().clone(),
            size: live.log(selector)?.0.bytes(),
            is_live: live.is_live(),
            agent: agent.map(|agent| {
                agent
                    .description
                    .as_deref()
                    .map_or_else(|| agent.id.clone(), |text| live.masked(text).into_owned())
            }),
            branch: selector.leaf.is_some(),
            resume: state.app.resume_command(live.file(), live.cwd().as_deref()),
            // The list reports a file of labels that cannot be read.
            labels: state.app.labels().unwrap_or_default().get(&live.file().id),
            read_errors: live.unread().iter().map(ToString::to_string).collect(),
        })
    }

    pub(crate) fn session_page<'a>(
        &self,
        layout: &'a PageLayout,
        options: &'a RenderOptions,
        query: &'a str,
        parts: Vec<(&'a PagePart, Option<Markup>)>,
        settings: ViewerSettings,
    ) -> SessionPage<'a> {
        let mut notes = self.read_errors.clone();
        if layout.torn {
            notes.push(
                "The last line of the log is incomplete (still being written, or truncated)".to_owned(),
            );
        }
        let instead = match (&self.agent, self.branch) {
            (Some(agent), _) => Some(format!("Sub-agent: {agent}.")),
            (None, true) => Some("Abandoned branch.".to_owned()),
            (None, false) => None,
        };
        SessionPage {
            layout: &layout.layout,
            options,
            query,
            parts,
            outline: &layout.outline_parts,
            resume: instead.is_none().then(|| self.resume.clone()),
            size: self.size,
            is_live: self.is_live,
            labels: instead.is_none().then(|| self.label_controls()),
            notes,
            description: instead,
            last_line: layout.lines,
            settings,
            stamp: &layout.stamp,
        }
    }
}

impl SessionPageInfo {
    fn label_controls(&self) -> Markup {
        let tags: Vec<String> = self.labels.tags.iter().cloned().collect();
        let (id, is_pinned) = (&*self.file.id, self.labels.is_pinned);
        LabelControls { id, is_pinned, tags: &tags }.render()
    }
}

/// Returns the range of parts that are sent with the page.
fn initial_parts(
    live: &LiveSession,
    selector: &SessionSelector,
    layout: &PageLayout,
    from: usize,
) -> Result<std::ops::Range<usize>, PageError> {
    let log = live.log(selector)?.0;
    let size = |part: &PagePart| (part.lines.0..=part.lines.1).map(|line| log.size(line)).sum::<u64>();
    if from == 0 && log.bytes() <= MAX_WHOLE_BYTES {
        return Ok(0..layout.parts.len());
    }
    let mut to = from;
    let mut bytes = 0;
    while to < layout.parts.len() && (to == from || bytes < INITIAL_BYTES) {
        bytes += size(&layout.parts[to].0);
        to += 1;
    }
    Ok(from..to)
}

/// Renders parts from their lines.
fn render_parts(
    lines_read: &ReadSpans,
    layout: &PageLayout,
    parts: &[(PagePart, Vec<TurnSpan>)],
    options: &RenderOptions,
) -> Vec<Markup> {
    let mut at = 0;
    let mut drawn = Vec::new();
    for (_, spans) in parts {
        let turns: Vec<PageTurn> = spans
            .iter()
            .map(|span| {
                at += 1;
                let turn = &layout.layout.turns[span.turn].turn;
                let turn = TurnView { items: lines_read.items(&layout.layout, at - 1), ..turn.clone() };
                PageTurn { turn, is_continuation: span.entries.start > 0 }
            })
            .collect();
        drawn.push(threadline_html::render_part(&turns, &layout.layout, options));
    }
    drawn
}

/// Returns one part, which the page loads when it comes into view.
pub(crate) fn part(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let (id, selector) = (request.path_param(0), parse_selector(request)?);
    let name = request.query_param("name").unwrap_or_default();
    let (layout, lines_read, at) = state.with_session(id, |live| {
        let layout = live.page_layout(&selector)?;
        let at = layout.find_part(name).ok_or_else(|| PageError::not_found("Part not found"))?;
        let lines_read = live.read(&selector, &layout.layout, &layout.parts[at].1)?;
        Ok((layout, lines_read, at))
    })?;
    let mut drawn = render_parts(&lines_read, &layout, &layout.parts[at..=at], &render_options(state, id));
    let stamp = layout.parts[at].0.stamp.clone();
    Ok(PageResponse::Fragment(drawn.pop().unwrap_or_default(), stamp))
}

/// Returns a section of the outline.
pub(crate) fn outline_section(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let (id, selector) = (request.path_param(0), parse_selector(request)?);
    let layout = state.with_session(id, |live| Ok(live.page_layout(&selector)?))?;
    let number = request.query_param("number").and_then(|number| number.parse::<usize>().ok());
    let rail = number
        .and_then(|number| layout.outline_parts.get(number))
        .ok_or_else(|| PageError::not_found("Part not found"))?;
    Ok(PageResponse::Fragment(
        threadline_html::render_outline_part(&layout.layout, rail.number),
        rail.stamp.clone(),
    ))
}

/// Renders everything around the conversation again.
pub(crate) fn page_frame(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let (id, selector) = (request.path_param(0), parse_selector(request)?);
    let (layout, info) = state.with_session(id, |live| {
        Ok((live.page_layout(&selector)?, SessionPageInfo::of(state, live, &selector)?))
    })?;
    let (options, query) = (render_options(state, id), query_string(&selector));
    let served = info.session_page(&layout, &options, &query, Vec::new(), state.settings);
    let (opening, ending) = threadline_html::header_and_footer(&served);
    let (opening, ending) = (opening.into_string(), ending.into_string());
    let object = serde_json::json!({"opening": opening, "ending": ending, "stamp": layout.stamp});
    Ok(PageResponse::JsonObject(object))
}

/// A sub-agent log larger than this, in more than 8 parts, is not shown inline.
const MAX_INLINE_BYTES: u64 = 1 << 20;

/// Renders the conversation of a sub-agent, to be shown inline in the call that started it.
pub(crate) fn inline_agent(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let (id, selector) = (request.path_param(0), parse_selector(request)?);
    let agent = selector.agent.clone().ok_or_else(|| PageError::bad_request("Missing parameter: agent"))?;
    let read = state.with_session(id, |live| {
        let layout = live.page_layout(&selector)?;
        let spans: Vec<TurnSpan> = layout.parts.iter().flat_map(|(_, spans)| spans.clone()).collect();
        if live.log(&selector)?.0.bytes() > MAX_INLINE_BYTES && layout.parts.len() > 8 {
            return Ok(None);
        }
        let lines_read = live.read(&selector, &layout.layout, &spans)?;
        Ok(Some((layout, lines_read, spans)))
    })?;
    let Some((layout, lines_read, spans)) = read else {
        let mut note = Markup::new();
        note.lit("<p class=\"note\">Too large to show inline</p>");
        return Ok(PageResponse::Html(note));
    };
    let turns = join_turns(&layout, &lines_read, &spans);
    let cwd = layout.layout.header.cwd.as_deref();
    Ok(PageResponse::Html(threadline_html::render_subagent_turns(
        &turns,
        &agent,
        cwd,
        &render_options(state, id),
    )))
}

/// Joins spans to whole turns.
pub(crate) fn join_turns(layout: &PageLayout, lines_read: &ReadSpans, spans: &[TurnSpan]) -> Vec<TurnView> {
    let mut turns: Vec<TurnView> = Vec::new();
    for (i, span) in spans.iter().enumerate() {
        let items = lines_read.items(&layout.layout, i);
        match turns.last_mut() {
            Some(turn) if span.entries.start > 0 => turn.items.extend(items),
            _ => turns.push(TurnView { items, ..layout.layout.turns[span.turn].turn.clone() }),
        }
    }
    turns
}

/// Maximum number of bytes sent of a raw line, unless all of it is requested.
const MAX_RAW_BYTES: u64 = 1 << 20;

/// Returns a raw line of the log.
pub(crate) fn raw_line(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let (id, selector) = (request.path_param(0), parse_selector(request)?);
    let line = request
        .query_param("line")
        .and_then(|line| line.parse().ok())
        .ok_or_else(|| PageError::bad_request("Missing or invalid parameter: line"))?;
    let most = if request.query_param("whole").is_some() { u64::MAX / 2 } else { MAX_RAW_BYTES };
    let found = state.with_session(id, |live| Ok(live.log(&selector)?.0.raw(line, most)?))?;
    let (bytes, length) = found.ok_or_else(|| PageError::not_found("Line not found"))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if length > most {
        text.push_str(&format!("\n\n… truncated; {length} bytes in total"));
    }
    Ok(PageResponse::Text(text))
}

/// Returns the changes made to files.
pub(crate) fn changes(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let id = request.path_param(0);
    let (file, title, first_prompt, cwd, read_errors) = state.with_session(id, |live| {
        let layout = live.page_layout(&SessionSelector::default())?;
        let header = &layout.layout.header;
        let read_errors: Vec<String> = live.unread().iter().map(ToString::to_string).collect();
        let file = live.file().clone();
        Ok((file, header.title.clone(), header.first_prompt.clone(), live.cwd(), read_errors))
    })?;
    // An open session has truncated texts. The changes take the whole log.
    let loaded = state.app.load(&file)?;
    let changes = state.app.net_changes(&loaded, None);
    match request.format {
        ResponseFormat::Html => {
            let title = title.or(first_prompt).unwrap_or_else(|| id.to_owned());
            Ok(PageResponse::Html(threadline_html::render_changes_page(&ChangesPage {
                changes: &changes,
                title: &title,
                cwd: cwd.as_deref(),
                read_errors: &read_errors,
                options: &render_options(state, id),
                settings: state.settings,
            })))
        }
        ResponseFormat::Markdown => Ok(PageResponse::Text(threadline_view::patch(&changes, cwd.as_deref()))),
        ResponseFormat::Json => {
            PageResponse::json_lines_and_errors(changes.iter().map(ChangeObject::from), &read_errors)
        }
    }
}

/// Returns the anchors of the blocks in this conversation that match a query.
pub(crate) fn find(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let (id, selector) = (request.path_param(0), parse_selector(request)?);
    let (path, layout) = state
        .with_session(id, |live| Ok((live.log(&selector)?.0.path.clone(), live.page_layout(&selector)?)))?;
    let query = request.query_param("q").unwrap_or_default();
    let query =
        Query::parse(query, &state.now_here()).map_err(|error| PageError::bad_request(error.to_string()))?;
    let mut anchors = matching_anchors(&path, &query, MAX_MATCHES)
        .map_err(|error| PageError::failed("The log could not be searched").with_hint(error.to_string()))?;
    // Abandoned branches are only in the results of the search over all sessions.
    anchors.retain(|anchor| anchor_line(anchor).is_some_and(|line| layout.contains_line(line)));
    Ok(PageResponse::JsonObject(serde_json::json!({"hits": anchors})))
}

const MAX_MATCHES: usize = 20_000;

impl From<LiveError> for PageError {
    fn from(missing: LiveError) -> Self {
        match missing {
            LiveError::NoAgent => Self::not_found("The session has no such sub-agent"),
            LiveError::NoLine => Self::not_found("The session has no such line"),
            LiveError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                session_not_found().with_hint("The log was truncated while the page was rendered. Reload.")
            }
            LiveError::Io(error) => error.into(),
        }
    }
}
