//! Search over all sessions, with the query syntax of `threadline search`.

use std::ops::ControlFlow;
use std::time::Duration;

use threadline_app::search::{
    LogHit, Query, ScanEvent, SearchLimits, SearchedSession, hit_object, is_incomplete, summary,
    trouble_message,
};
use threadline_app::time::millis;
use threadline_app::{App, SessionSummary};
use threadline_html::{BlockHit, PageFrame, SearchFilters, SearchPage, SessionHits, ViewerTab};
use threadline_view::{FilterChoices, Selection};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// Maximum number of sessions on a page, and of matches shown per session; further matches are only counted.
const MAX_SESSIONS: usize = 50;
const MAX_MATCHES_PER_SESSION: usize = 5;
/// The search stops after this many matches.
const MAX_MATCHES: usize = 2000;
/// Maximum number of matches in JSON; `threadline search --json` has no limit.
const MAX_JSON_MATCHES: usize = 10_000;

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let typed = request.query_param("q").unwrap_or_default();
    let filters = SearchFilters::of(|name| request.query_param(name));
    let text = &*filters.query(typed);
    let now = state.now_here();
    let query = (!text.trim().is_empty()).then(|| Query::parse(text, &now)).transpose();
    let (query, wrong) = match query {
        Ok(query) => (query, None),
        Err(error) => (None, Some(error)),
    };
    if let (ResponseFormat::Json, Some(error)) = (request.format, &wrong) {
        return Err(PageError::bad_request(error.to_string()));
    }
    let mut results = SearchResults::default();
    if let Some(query) = &query {
        results.run(state, request, query);
    }
    match request.format {
        ResponseFormat::Json => Ok(PageResponse::JsonLines(results.json)),
        ResponseFormat::Markdown => Err(PageError::not_found("Page not found")
            .with_hint("Search results are available as HTML and JSON.")),
        ResponseFormat::Html => {
            let message = wrong.as_ref().map(ToString::to_string);
            let shown = state.cards(Duration::ZERO);
            let choices = FilterChoices::of(&shown.cards, &Selection::default());
            let page = SearchPage {
                typed,
                query: text,
                filters: &filters,
                choices: &choices,
                newest_first: is_newest_first(request),
                problem: message.as_deref().zip(wrong.as_ref().map(|error| error.span())),
                sessions: &results.sessions,
                counts: (results.found, results.sessions.len()),
                stopped: results.stopped,
                read_errors: &results.troubles,
                now: now.timestamp().as_millisecond(),
                zone: &state.zone,
            };
            let title = format!("{text} · search · threadline");
            let title = if text.is_empty() { "Search · threadline" } else { &title };
            let frame = PageFrame {
                title,
                tab: ViewerTab::Search,
                class: "lists",
                scripts: &["lists.js"],
                settings: state.settings,
            };
            Ok(super::list_page(&frame, &threadline_html::search(&page)))
        }
    }
}

/// Returns whether sessions are sorted by last activity. JSON is, unless relevance is requested.
fn is_newest_first(request: &PageRequest) -> bool {
    match request.query_param("sort") {
        Some(sort) => sort == "newest",
        None => request.format == ResponseFormat::Json,
    }
}

/// The matches found so far.
#[derive(Default)]
struct SearchResults {
    sessions: Vec<SessionHits>,
    found: usize,
    stopped: bool,
    troubles: Vec<String>,
    /// The matches as JSON lines, if requested.
    json: Vec<u8>,
    /// The number of matches in the current session, and the first ones.
    count: usize,
    blocks: Vec<BlockHit>,
}

impl SearchResults {
    fn run(&mut self, state: &ServerState, request: &PageRequest, query: &Query) {
        let scope = state.app.search_scope(Some(query), None);
        self.troubles.extend(scope.unread.iter().map(ToString::to_string));
        let sessions = &scope.sessions;
        let mut on_event = |event| {
            let flow = match event {
                ScanEvent::Hit(at, hit) if request.format == ResponseFormat::Json => {
                    self.write(&sessions[at], &hit)
                }
                ScanEvent::Hit(at, hit) => self.hit(&state.app, &sessions[at], hit),
                ScanEvent::Counted(at, count) => self.add_count(&state.app, &sessions[at], count),
                ScanEvent::End(at) => self.end(&state.app, &sessions[at]),
                ScanEvent::Copy => ControlFlow::Continue(()),
                ScanEvent::Problem(trouble) => {
                    self.troubles.extend(is_incomplete(&trouble).then(|| trouble_message(&trouble)));
                    ControlFlow::Continue(())
                }
            };
            Ok::<_, std::convert::Infallible>(flow)
        };
        let limits = SearchLimits { max_shown: MAX_MATCHES_PER_SESSION, ..SearchLimits::default() };
        let Ok(()) = match is_newest_first(request) {
            true => scope.search(query, limits, &request.cancelled, &mut on_event),
            false => scope.search_by_relevance(query, limits, &request.cancelled, &mut on_event),
        };
    }

    fn hit(&mut self, app: &App, session: &SearchedSession, hit: LogHit) -> ControlFlow<()> {
        let agent = session.agent_of(&session.logs[hit.log]);
        if let Some(found) = hit.hit.filter(|_| self.blocks.len() < MAX_MATCHES_PER_SESSION) {
            self.blocks.push(BlockHit {
                anchor: found.anchor,
                agent,
                kind: found.kind.name(),
                tool: found.tool,
                at: found.timestamp,
                text: found.text,
                ranges: found.ranges,
                copies: hit.copies,
            });
        }
        self.add_count(app, session, 1)
    }

    /// Counts matches, and ends the search when there are enough.
    fn add_count(&mut self, app: &App, session: &SearchedSession, count: usize) -> ControlFlow<()> {
        let count = count.min(MAX_MATCHES - self.found);
        self.found += count;
        self.count += count;
        if self.found < MAX_MATCHES {
            return ControlFlow::Continue(());
        }
        self.stopped = true;
        let _ = self.end(app, session);
        ControlFlow::Break(())
    }

    fn end(&mut self, app: &App, session: &SearchedSession) -> ControlFlow<()> {
        let (count, blocks) = (std::mem::take(&mut self.count), std::mem::take(&mut self.blocks));
        if count == 0 {
            return ControlFlow::Continue(());
        }
        let summary = summary(session);
        let summary = summary.as_ref();
        let heading = summary.and_then(SessionSummary::title);
        let masked = |text: &str| app.redacted_in(&session.logs, text).into_owned();
        self.sessions.push(SessionHits {
            id: session.id.clone(),
            title: heading.map_or_else(|| session.id.clone(), |title| masked(&title)),
            project: masked(summary.and_then(SessionSummary::project).unwrap_or(&session.folder)),
            last_active: millis(session.last_active()),
            count,
            blocks,
        });
        self.stopped = self.sessions.len() == MAX_SESSIONS;
        if self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Writes the same object as `threadline search --json`.
    fn write(&mut self, session: &SearchedSession, hit: &LogHit) -> ControlFlow<()> {
        let Some(object) = hit_object(session, hit) else { return ControlFlow::Continue(()) };
        self.found += 1;
        let written = serde_json::to_writer(&mut self.json, &object);
        self.json.push(b'\n');
        match written.is_ok() && self.found < MAX_JSON_MATCHES {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}
