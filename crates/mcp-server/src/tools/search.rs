//! `search_sessions`: matches of a query.

use std::convert::Infallible;
use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadline_app::search::{
    LogMatch, LogProblem, Query, RankedSession, ScanEvent, SearchLimits, SearchScope, is_incomplete,
    match_object, summary, trouble_message,
};
use threadline_app::{ProjectScope, SessionSummary};
use threadline_view::humanize::plural;
use threadline_view::wire::MatchObject;

use crate::answer::AnswerEnd;
use crate::budget::{AnswerPage, shorten};
use crate::call::PageRequestState;
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::{HistoryTool, ToolAnswer};

pub(crate) struct SearchSessions;

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchArguments {
    /// Words, "phrases", /patterns/, -exclusions, and fields: kind:prompt|reply|tool|result|summary|title,
    /// role:user, tool:Bash, path:src/a.rs, command:"git push", error:true, branch:, model:, session:,
    /// since:7d, until:2026-03-01. All parts must match in one block of a message.
    pub(crate) query: String,
    /// Only sessions with this text in their directory.
    #[serde(default)]
    pub(crate) project: Option<String>,
    /// Order of sessions. Default: relevance.
    #[serde(default)]
    pub(crate) sort: Option<SearchOrder>,
    /// Maximum number of matches per session, up to 50. Default: 4.
    #[serde(default)]
    pub(crate) per_session: Option<usize>,
    /// Approximate size of the answer, from 400 to 50000. Default: 6000.
    #[serde(default)]
    pub(crate) max_tokens: Option<u64>,
    /// The next_cursor of the previous page.
    #[serde(default)]
    #[expect(dead_code, reason = "read before the arguments are parsed")]
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SearchOrder {
    #[default]
    Relevance,
    Newest,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    /// The number of logs that were searched, with those of sub-agents and of sessions that are not listed.
    logs_searched: u64,
    /// The number of sessions with a match. With `sort: newest`, the search ends when the page is full.
    sessions_matched: u64,
    /// The number of matches in them. At most 20 of a session are counted.
    matches: u64,
    /// Whether there are more matches than were counted.
    is_minimum: bool,
    items: Vec<MatchItem>,
    #[serde(flatten)]
    end: AnswerEnd,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MatchItem {
    /// The session and the item, for read_session.
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// prompt, reply, thinking, tool, result, output, task, summary, title or notice.
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The text around the match.
    text: String,
}

/// The default of `per_session`.
const PER_SESSION: usize = 4;

/// The maximum of `per_session`.
const MAX_PER_SESSION: usize = 50;

/// The number of matches of a session that are counted. More make it hardly more relevant.
const MAX_COUNTED: usize = 20;

/// The maximum size of one excerpt in bytes.
const MAX_EXCERPT: usize = 1_200;

impl HistoryTool for SearchSessions {
    const NAME: &'static str = "search_sessions";
    const TITLE: &'static str = "Search sessions";
    const DESCRIPTION: &'static str = "Searches the text of earlier Claude Code sessions: prompts, replies, \
        tool calls and their output, summaries. Returns excerpts with their source (session#item), time and \
        project. Read more of a match with read_session.";
    type Arguments = SearchArguments;
    type Answer = SearchAnswer;

    fn run(
        history: &History,
        arguments: SearchArguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<SearchAnswer>, HistoryError> {
        search_sessions(history, &arguments, request)
    }
}

/// Searches the sessions of the scope.
pub(crate) fn search_sessions(
    history: &History,
    arguments: &SearchArguments,
    request: &PageRequestState,
) -> Result<ToolAnswer<SearchAnswer>, HistoryError> {
    let query = Query::parse(&arguments.query, &history.now())?;
    let mut scope = history.app.search_scope_in(Some(&query), &history.scope);
    if let Some(project) = &arguments.project {
        scope.retain_project(&ProjectScope::containing(project));
    }
    if let Some(current) = history.current_session().filter(|_| !arguments.query.contains("session:")) {
        scope.sessions.retain(|session| session.id != current);
    }
    request.state.expect(scope.sessions.len());
    let mut list = MatchList::new(history, &scope, arguments, request);
    let counts = match arguments.sort.unwrap_or_default() {
        SearchOrder::Relevance => {
            let ranked = list.rank(&query);
            let order: Vec<usize> = ranked.iter().map(|ranked| ranked.session).collect();
            list.fill(&order, &query, false);
            (ranked.len(), ranked.iter().map(|ranked| ranked.n_matches).sum())
        }
        SearchOrder::Newest => {
            list.fill(&scope.newest_first(), &query, true);
            (list.n_sessions, list.n_listed)
        }
    };
    if request.state.is_cancelled() {
        return Err(HistoryError::new("cancelled"));
    }
    let MatchList { page, mut notes, is_minimum, .. } = list;
    let shown = page.len();
    let (items, mut text, next) = page.finish();
    let logs_searched = scope.sessions.iter().map(|session| session.logs.len() as u64).sum();
    if shown == 0 {
        let searched = plural(logs_searched, "log");
        notes.push(history.nothing_found(&format!("no matches in {searched}")));
    }
    let end = AnswerEnd::new(request, next, notes, &mut text);
    let data = SearchAnswer {
        logs_searched,
        sessions_matched: counts.0 as u64,
        matches: counts.1 as u64,
        is_minimum,
        items,
        end,
    };
    let summary = format!(
        "{}{} in {}; {} searched\n\n",
        if data.is_minimum { "at least " } else { "" },
        plural(data.matches, "match"),
        plural(data.sessions_matched, "session"),
        plural(data.logs_searched, "log")
    );
    Ok(ToolAnswer { data, text: summary + &text })
}

/// Lists matches until the page is full.
struct MatchList<'a> {
    history: &'a History,
    scope: &'a SearchScope,
    request: &'a PageRequestState,
    per_session: usize,
    /// Whether calls of this server are listed.
    shows_own_tools: bool,
    page: AnswerPage<MatchItem>,
    /// The number of matches listed, with those of earlier pages.
    n_listed: usize,
    /// The number of sessions with these matches.
    n_sessions: usize,
    /// The session of the last match, and its number of matches.
    last: Option<(usize, usize)>,
    /// The session of the last item of the page, and its title and project.
    heading: Option<(usize, Option<String>, Option<String>)>,
    notes: Vec<String>,
    /// Whether the matches that are listed are those that are counted.
    counts_listed: bool,
    /// Whether some matches were not counted.
    is_minimum: bool,
}

impl<'a> MatchList<'a> {
    fn new(
        history: &'a History,
        scope: &'a SearchScope,
        arguments: &SearchArguments,
        request: &'a PageRequestState,
    ) -> Self {
        Self {
            history,
            scope,
            request,
            per_session: arguments.per_session.unwrap_or(PER_SESSION).clamp(1, MAX_PER_SESSION),
            shows_own_tools: arguments.query.contains("tool:"),
            page: AnswerPage::of_sessions(arguments.max_tokens),
            n_listed: 0,
            n_sessions: 0,
            last: None,
            heading: None,
            notes: Vec::new(),
            counts_listed: arguments.sort == Some(SearchOrder::Newest),
            is_minimum: false,
        }
    }

    /// Counts the matches of all sessions, and returns those that have some in their order.
    fn rank(&mut self, query: &Query) -> Vec<RankedSession> {
        let state = &self.request.state;
        let notes = &mut self.notes;
        let Ok(ranked) = self.scope.rank(query, MAX_COUNTED, &state.stop_scan, &mut |event| {
            match event {
                ScanEvent::End(_) => state.step(),
                ScanEvent::Problem(problem) => notes.extend(problem_note(&problem)),
                _ => {}
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        if ranked.iter().any(|ranked| ranked.n_matches == MAX_COUNTED) {
            self.is_minimum = true;
            notes.push(format!("at most {MAX_COUNTED} matches of a session are counted"));
        }
        ranked
    }

    /// Lists the matches of sessions, in this order, until the page is full. `is_first` if the sessions were
    /// not searched before.
    fn fill(&mut self, order: &[usize], query: &Query, is_first: bool) {
        let skips_tool: Option<fn(&str) -> bool> = (!self.shows_own_tools).then_some(is_own_tool);
        // If only listed matches are counted, one more shows that there are others.
        let max_found = self.per_session + usize::from(self.counts_listed);
        let limits =
            SearchLimits { max_found, skips_tool, expects_matches: !is_first, ..SearchLimits::default() };
        let mut rest = order;
        // Few sessions at first, because a page is soon full.
        let mut size = 8;
        let mut is_full = false;
        while !rest.is_empty() && !is_full && !self.request.state.is_cancelled() {
            let (part, after) = rest.split_at(size.min(rest.len()));
            (rest, size) = (after, size * 2);
            let scope = self.scope;
            let state = &self.request.state;
            let Ok(()) = scope.search_in(part, query, limits, &state.stop_scan, &mut |event| {
                match event {
                    ScanEvent::Match(session, log_match) => is_full |= !self.add(session, &log_match),
                    ScanEvent::End(_) => state.step(),
                    ScanEvent::Problem(problem) if is_first => self.notes.extend(problem_note(&problem)),
                    ScanEvent::Problem(_) | ScanEvent::Counted(..) | ScanEvent::Copy => {}
                }
                let flow = if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                Ok::<_, Infallible>(flow)
            });
        }
        if is_full && is_first {
            self.is_minimum = true;
            let note = "older sessions were not searched: more than fits a page was found before";
            self.notes.push(note.to_owned());
        }
    }

    /// Adds a match. Returns whether the page has space for more.
    fn add(&mut self, session: usize, log_match: &LogMatch) -> bool {
        let searched = &self.scope.sessions[session];
        let Some(object) = match_object(searched, log_match) else { return true };
        let n_before = self.last.filter(|(last, _)| *last == session).map_or(0, |(_, n)| n);
        if n_before == self.per_session {
            self.is_minimum = true;
            return true;
        }
        self.last = Some((session, n_before + 1));
        self.n_sessions += usize::from(n_before == 0);
        self.n_listed += 1;
        let index = self.n_listed as u64 - 1;
        index < self.request.start.item || self.show(index, session, log_match, &object)
    }

    /// Adds a match to the page. Returns whether it fits.
    fn show(&mut self, index: u64, session: usize, log_match: &LogMatch, object: &MatchObject<'_>) -> bool {
        let searched = &self.scope.sessions[session];
        let mut heading = String::new();
        if self.heading.as_ref().is_none_or(|(last, ..)| *last != session) {
            let summary = summary(searched);
            let summary = summary.as_ref();
            let app = &self.history.app;
            let title = summary.and_then(SessionSummary::title);
            let title = title.map(|title| app.masked_in(&searched.logs, &title).into_owned());
            let title = title.map(|title| shorten(&one_line(&title), 200).0);
            let project = summary.and_then(SessionSummary::project);
            let project = project.map(|project| app.masked(project).into_owned());
            let shown_title = title.as_deref().unwrap_or("untitled");
            let shown_project = one_line(project.as_deref().unwrap_or("–"));
            heading = format!("## {shown_title}\n{} · {shown_project}\n", searched.id);
            self.heading = Some((session, title, project));
        }
        let (title, project) = match &self.heading {
            Some((_, title, project)) => (title.clone(), project.clone()),
            None => (None, None),
        };
        let anchor = match &object.agent {
            Some(agent) => threadline_view::agent_anchor(agent, object.anchor),
            None => object.anchor.to_owned(),
        };
        let source = format!("{}#{anchor}", searched.id);
        let time = log_match.details.as_ref().and_then(|found| found.timestamp);
        let label = object
            .tool
            .map_or(object.kind.to_owned(), |tool| format!("{} of {}", object.kind, one_line(tool)));
        let shown_time = self.history.shown_time(time);
        self.page.push_shortened(index, |limit| {
            let text = shorten(object.text.trim(), MAX_EXCERPT.min(limit)).0;
            let place = format!("- {} · {shown_time} · {label}", one_line(&source));
            let form = format!("{heading}{place}\n  {}\n", one_line(&text));
            let item = MatchItem {
                source: source.clone(),
                title: title.as_ref().map(|title| shorten(title, limit).0),
                project: project.as_ref().map(|project| shorten(project, limit).0),
                timestamp: object.timestamp.clone(),
                kind: object.kind.to_owned(),
                tool: object.tool.map(str::to_owned),
                agent: object.agent.clone(),
                text,
            };
            (item, form)
        })
    }
}

/// Returns the note of a problem that makes the results incomplete.
fn problem_note(problem: &LogProblem) -> Option<String> {
    is_incomplete(problem).then(|| trouble_message(problem))
}

/// Returns whether a tool is one of this server, as clients name it. Its calls repeat the query.
fn is_own_tool(name: &str) -> bool {
    name.starts_with("mcp__")
        && name.contains("threadline")
        && crate::tool_names().any(|own| name.ends_with(own))
}
