//! `search_sessions`: matches of a query.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadline_app::search::{
    LogHit, LogProblem, Query, ScanEvent, SearchLimits, SearchScope, hit_object, is_incomplete, summary,
    trouble_message,
};
use threadline_app::{ProjectScope, SessionSummary};

use crate::answer::AnswerEnd;
use crate::budget::{AnswerPage, max_items, shorten};
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
    /// Maximum number of matches per session. Default: 4.
    #[serde(default)]
    pub(crate) per_session: Option<usize>,
    /// Approximate size of the answer. Default: 6000.
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
    /// The number of sessions that were searched.
    sessions_searched: u64,
    /// The number of sessions with a match. With `sort: newest`, the search ends when the page is full.
    sessions_matched: u64,
    /// The number of matches in them. At most 20 of a session are counted.
    matches: u64,
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
    time: Option<String>,
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

/// The note of a search that ended early.
const PAGE_IS_FULL: &str = "older sessions were not searched: more than fits a page was found before";

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
        let narrow = ProjectScope::containing(project);
        scope.sessions.retain(|session| summary(session).is_some_and(|summary| summary.is_in(&narrow)));
    }
    if let Some(current) = history.current_session().filter(|_| !arguments.query.contains("session:")) {
        scope.sessions.retain(|session| session.id != current);
    }
    request.state.expect(scope.sessions.len());
    let found = FoundMatches::of(&scope, &query, arguments, request);
    if request.state.is_cancelled() {
        return Err(HistoryError::new("cancelled"));
    }
    let mut page = AnswerPage::new(arguments.max_tokens);
    let mut summaries: HashMap<usize, Option<SessionSummary>> = HashMap::new();
    let mut last_session = None;
    let skipped = usize::try_from(request.start.item).unwrap_or(usize::MAX);
    for (index, (session, hit)) in found.hits.iter().enumerate().skip(skipped) {
        let searched = &scope.sessions[*session];
        let Some(object) = hit_object(searched, hit) else { continue };
        let summary = summaries.entry(*session).or_insert_with(|| summary(searched)).as_ref();
        let title = summary.and_then(SessionSummary::title).map(|title| shorten(&one_line(&title), 200).0);
        let project = summary.and_then(SessionSummary::project).map(str::to_owned);
        let anchor = match &object.agent {
            Some(agent) => threadline_view::agent_anchor(agent, object.anchor),
            None => object.anchor.to_owned(),
        };
        let source = format!("{}#{anchor}", searched.id);
        let text = shorten(object.text.trim(), MAX_EXCERPT).0;
        let time = hit.hit.as_ref().and_then(|hit| hit.timestamp);
        let mut form = String::new();
        if last_session != Some(*session) {
            let heading = title.as_deref().unwrap_or("untitled");
            let _ = writeln!(
                form,
                "## {heading}\n{} · {}",
                searched.id,
                one_line(project.as_deref().unwrap_or("–"))
            );
        }
        let label = object.tool.map_or(object.kind.to_owned(), |tool| format!("{} of {tool}", object.kind));
        let _ = writeln!(form, "- {source} · {} · {label}\n  {}", history.shown_time(time), one_line(&text));
        let item = MatchItem {
            source,
            title,
            project,
            time: object.timestamp.clone(),
            kind: object.kind.to_owned(),
            tool: object.tool.map(str::to_owned),
            agent: object.agent.clone(),
            text,
        };
        if !page.push(index as u64, item, &form) {
            break;
        }
        last_session = Some(*session);
    }
    let shown = page.len();
    let (items, mut text, next) = page.finish();
    let mut notes = found.notes;
    if shown == 0 {
        notes.push(format!("no matches in {} ({} sessions)", history.scope.label(), scope.sessions.len()));
    }
    let end = AnswerEnd::new(request, next, notes, &mut text);
    let data = SearchAnswer {
        sessions_searched: scope.sessions.len() as u64,
        sessions_matched: found.n_sessions as u64,
        matches: found.n_matches as u64,
        items,
        end,
    };
    let summary = format!(
        "{} matches in {} of {} sessions\n\n",
        data.matches, data.sessions_matched, data.sessions_searched
    );
    Ok(ToolAnswer { data, text: summary + &text })
}

/// The matches of a search, in the order in which they are listed.
struct FoundMatches {
    hits: Vec<(usize, LogHit)>,
    n_matches: usize,
    n_sessions: usize,
    notes: Vec<String>,
}

impl FoundMatches {
    fn of(
        scope: &SearchScope,
        query: &Query,
        arguments: &SearchArguments,
        request: &PageRequestState,
    ) -> Self {
        let mut found = Self { hits: Vec::new(), n_matches: 0, n_sessions: 0, notes: Vec::new() };
        match arguments.sort.unwrap_or_default() {
            SearchOrder::Relevance => {
                let order = found.rank(scope, query, request);
                found.collect(scope, &order, query, arguments, request);
            }
            SearchOrder::Newest => {
                let order: Vec<usize> = (0..scope.sessions.len()).collect();
                found.collect(scope, &order, query, arguments, request);
                let sessions = found.hits.chunk_by(|(a, _), (b, _)| a == b);
                (found.n_matches, found.n_sessions) = (found.hits.len(), sessions.count());
            }
        }
        found
    }

    /// Counts the matches of all sessions, and returns the order of those that have some.
    fn rank(&mut self, scope: &SearchScope, query: &Query, request: &PageRequestState) -> Vec<usize> {
        let Ok(ranked) = scope.rank(query, MAX_COUNTED, &request.state.stop_scan, &mut |event| {
            match event {
                ScanEvent::End(_) => request.state.step(),
                ScanEvent::Problem(problem) => self.note_problem(&problem),
                _ => {}
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        self.n_sessions = ranked.len();
        self.n_matches = ranked.iter().map(|ranked| ranked.n_hits).sum();
        if ranked.iter().any(|ranked| ranked.n_hits == MAX_COUNTED) {
            self.notes.push(format!("at most {MAX_COUNTED} matches of a session are counted"));
        }
        ranked.iter().map(|ranked| ranked.session).collect()
    }

    /// Collects the matches of sessions, in this order, until there are enough for the page.
    fn collect(
        &mut self,
        scope: &SearchScope,
        order: &[usize],
        query: &Query,
        arguments: &SearchArguments,
        request: &PageRequestState,
    ) {
        let is_ranked = arguments.sort.unwrap_or_default() == SearchOrder::Relevance;
        let per_session = arguments.per_session.unwrap_or(PER_SESSION).clamp(1, MAX_PER_SESSION);
        // Enough for the page, and for the first item of the next one.
        let skipped = usize::try_from(request.start.item).unwrap_or(usize::MAX);
        let enough = skipped.saturating_add(max_items(arguments.max_tokens));
        let names_tool = arguments.query.contains("tool:");
        let mut n_in_session = 0;
        // More than are shown, because calls of this server are left out.
        let limits = SearchLimits { max_found: per_session * 4, ..SearchLimits::default() };
        let Ok(()) = scope.search_in(order, query, limits, &request.state.stop_scan, &mut |event| {
            match event {
                ScanEvent::Hit(session, hit) => {
                    let tool = hit.hit.as_ref().and_then(|hit| hit.tool.as_deref());
                    let is_shown = names_tool || !tool.is_some_and(is_own_tool);
                    if is_shown && n_in_session < per_session {
                        n_in_session += 1;
                        self.hits.push((session, hit));
                    }
                    if self.hits.len() > enough {
                        if !is_ranked {
                            self.notes.push(PAGE_IS_FULL.to_owned());
                        }
                        return Ok::<_, Infallible>(ControlFlow::Break(()));
                    }
                }
                ScanEvent::End(_) => {
                    n_in_session = 0;
                    request.state.step();
                }
                ScanEvent::Problem(problem) if !is_ranked => self.note_problem(&problem),
                ScanEvent::Problem(_) | ScanEvent::Counted(..) | ScanEvent::Copy => {}
            }
            Ok(ControlFlow::Continue(()))
        });
    }

    fn note_problem(&mut self, problem: &LogProblem) {
        if is_incomplete(problem) {
            self.notes.push(trouble_message(problem));
        }
    }
}

/// Returns whether a tool is one of this server, as clients name it. Its calls repeat the query.
fn is_own_tool(name: &str) -> bool {
    name.starts_with("mcp__")
        && name.contains("threadline")
        && crate::tool_names().any(|own| name.ends_with(own))
}
