//! Search over all sessions, with the query syntax of `threadline search`.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::Duration;

use threadline_app::search::{
    LogMatch, Query, RankedSession, ScanEvent, SearchLimits, SearchScope, SearchedSession, is_incomplete,
    match_object, summary, trouble_message,
};
use threadline_app::time::millis;
use threadline_app::{App, SessionSummary};
use threadline_html::{BlockMatch, PageFrame, SearchFilters, SearchPage, SessionMatches, ViewerTab};
use threadline_view::{FilterChoices, Selection};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

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
                n_matches: results.n_matches,
                n_sessions: results.n_sessions,
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
    /// The sessions to show.
    sessions: Vec<SessionMatches>,
    /// The number of matches, and of sessions with matches.
    n_matches: usize,
    n_sessions: usize,
    troubles: Vec<String>,
    /// The matches as JSON lines, if requested.
    json: Vec<u8>,
}

impl SearchResults {
    fn run(&mut self, state: &ServerState, request: &PageRequest, query: &Query) {
        let scope = state.app.search_scope(Some(query), None);
        self.troubles.extend(scope.unread.iter().map(ToString::to_string));
        match request.format {
            ResponseFormat::Json => self.write_all(&scope, request, query),
            _ => self.show_first(&state.app, &scope, request, query),
        }
    }

    /// Counts the matches of all sessions, and collects the first ones of the sessions to show.
    fn show_first(&mut self, app: &App, scope: &SearchScope, request: &PageRequest, query: &Query) {
        let cancelled = &request.cancelled;
        let Ok(mut ranked) = scope.rank(query, usize::MAX, cancelled, &mut |event| self.note_problem(event));
        self.n_sessions = ranked.len();
        self.n_matches = ranked.iter().map(|session| session.n_matches).sum();
        if is_newest_first(request) {
            let last_active = |ranked: &RankedSession| scope.sessions[ranked.session].last_active();
            ranked.sort_by_key(|session| (Reverse(last_active(session)), session.session));
        }
        ranked.truncate(50);
        let order: Vec<usize> = ranked.iter().map(|ranked| ranked.session).collect();
        let limits = SearchLimits { max_found: 5, expects_matches: true, ..SearchLimits::default() };
        let mut rest = ranked.iter();
        let mut blocks = Vec::new();
        let Ok(()) = scope.search_in(&order, query, limits, cancelled, &mut |event| {
            match event {
                ScanEvent::Match(at, found) => blocks.extend(block_match(&scope.sessions[at], found)),
                ScanEvent::End(_) => {
                    let blocks = std::mem::take(&mut blocks);
                    let session = rest.next().map(|session| session_matches(app, scope, session, blocks));
                    self.sessions.extend(session);
                }
                // The first search has reported these.
                ScanEvent::Counted(..) | ScanEvent::Copy | ScanEvent::Problem(_) => {}
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
    }

    /// Writes the matches as JSON.
    fn write_all(&mut self, scope: &SearchScope, request: &PageRequest, query: &Query) {
        let limits = SearchLimits::default();
        let mut on_event = |event| match event {
            ScanEvent::Match(at, found) => Ok(self.write(&scope.sessions[at], &found)),
            event => self.note_problem(event),
        };
        let Ok(()) = match is_newest_first(request) {
            true => scope.search(query, limits, &request.cancelled, &mut on_event),
            false => scope.search_by_relevance(query, limits, &request.cancelled, &mut on_event),
        };
    }

    fn note_problem(&mut self, event: ScanEvent) -> Result<ControlFlow<()>, Infallible> {
        if let ScanEvent::Problem(trouble) = event {
            self.troubles.extend(is_incomplete(&trouble).then(|| trouble_message(&trouble)));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Writes the same object as `threadline search --json`.
    fn write(&mut self, session: &SearchedSession, found: &LogMatch) -> ControlFlow<()> {
        let Some(object) = match_object(session, found) else { return ControlFlow::Continue(()) };
        self.n_matches += 1;
        let written = serde_json::to_writer(&mut self.json, &object);
        self.json.push(b'\n');
        match written.is_ok() && self.n_matches < MAX_JSON_MATCHES {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

/// Returns a match as shown on the page.
fn block_match(session: &SearchedSession, log_match: LogMatch) -> Option<BlockMatch> {
    let found = log_match.details?;
    Some(BlockMatch {
        anchor: found.anchor,
        agent: session.agent_of(&session.logs[log_match.log]),
        kind: found.kind.name(),
        tool: found.tool,
        at: found.timestamp,
        text: found.text,
        ranges: found.ranges,
        copies: log_match.copies,
    })
}

/// Returns a session with its first matches.
fn session_matches(
    app: &App,
    scope: &SearchScope,
    ranked: &RankedSession,
    blocks: Vec<BlockMatch>,
) -> SessionMatches {
    let session = &scope.sessions[ranked.session];
    let summary = summary(session);
    let summary = summary.as_ref();
    let heading = summary.and_then(SessionSummary::title);
    let masked = |text: &str| app.masked_in(&session.logs, text).into_owned();
    SessionMatches {
        id: session.id.clone(),
        title: heading.map_or_else(|| session.id.clone(), |title| masked(&title)),
        project: masked(summary.and_then(SessionSummary::project).unwrap_or(&session.folder)),
        last_active: millis(session.last_active()),
        count: ranked.n_matches,
        blocks,
    }
}
