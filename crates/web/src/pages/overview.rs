//! The overview, and the records behind its figures.

use std::sync::Arc;
use std::time::Duration;

use threadline_app::time::{TimeRange, millis};
use threadline_app::{ActivityState, OverviewRange, ReadOverview, RecordFilter, RecordKind, RecordRow};
use threadline_html::{OverviewPage, PageFrame, RecordLine, RecordsPage, ViewerTab};
use threadline_view::Selection;
use threadline_view::wire::{OverviewObject, OverviewRecordObject};

use super::home::COMPLETE_TIMEOUT;
use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// How long an HTML page waits for logs that are not read yet.
const HTML_TIMEOUT: Duration = Duration::from_millis(1500);

/// The number of records per page.
const RECORDS_PER_PAGE: usize = 200;

/// The period that is shown first.
const DEFAULT_RANGE: &str = "30d";

/// The front page. Links of earlier versions, which select sessions, are redirected to the list.
pub(crate) fn front_page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let selection = Selection::of(request.query_pairs(), |_, _| Some(0));
    if request.query_param("range").is_none() && selection != Selection::default() {
        let pairs = request.query_pairs();
        return Ok(PageResponse::Redirect(threadline_html::href("/sessions", pairs)));
    }
    page(state, request)
}

fn read(state: &ServerState, request: &PageRequest) -> ReadOverview {
    let timeout = if request.format == ResponseFormat::Html { HTML_TIMEOUT } else { COMPLETE_TIMEOUT };
    state.overview.read(state.now(), timeout)
}

/// Returns the requested period.
fn range(
    state: &ServerState,
    request: &PageRequest,
    default_range: &str,
) -> Result<OverviewRange, PageError> {
    let now = state.now_here();
    if let Some(named) = request.query_param("range").and_then(|name| OverviewRange::named(name, &now)) {
        return Ok(named);
    }
    Ok(OverviewRange::parse(request.query_param("since"), request.query_param("until"), default_range, &now)?)
}

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    show(state, request, None, DEFAULT_RANGE)
}

/// The page of a project: the overview limited to it, with its sessions, branches and worktrees.
pub(crate) fn project(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let name = request.query_param("name").ok_or_else(|| {
        PageError::not_found("No project given").with_hint("The address has the form /project?name=DIR.")
    })?;
    show(state, request, Some(name), "all")
}

fn show(
    state: &ServerState,
    request: &PageRequest,
    project: Option<&str>,
    default_range: &str,
) -> Result<PageResponse, PageError> {
    let range = range(state, request, default_range)?;
    let event_no = state.changes.count(state.app.store());
    let ReadOverview { facts, is_reading } = read(state, request);
    let models = facts.as_ref().map(|facts| facts.models()).unwrap_or_default();
    let facts = match (facts, project) {
        (Some(facts), Some(project)) => {
            let of_project = facts.of_project(project, &state.app);
            Some(Arc::new(
                of_project.ok_or_else(|| PageError::not_found(format!("No project named {project}")))?,
            ))
        }
        (facts, _) => facts,
    };
    let overview = facts.as_ref().map(|facts| facts.overview(&range, &state.now_here(), &state.app));
    let details = project.map(|project| {
        let details = facts.as_ref().map(|facts| facts.project_details(project, &range, &state.app));
        (project, details.unwrap_or_default())
    });
    if request.format == ResponseFormat::Json {
        let overview = overview.ok_or_else(not_read)?;
        return PageResponse::json_lines([OverviewObject::from(&overview)]);
    }
    let page = OverviewPage {
        overview: overview.as_ref(),
        models: &models,
        is_reading,
        event_no,
        now: millis(state.now()),
        zone: &state.zone,
        home: home(state),
        project: details.as_ref().map(|(project, details)| (*project, details)),
    };
    let title = match project {
        Some(project) => format!("{} · threadline", threadline_html::project_name(project)),
        None => "Overview · threadline".to_owned(),
    };
    let frame = PageFrame {
        title: &title,
        tab: ViewerTab::Overview,
        class: "lists",
        scripts: &["lists.js"],
        settings: state.settings,
    };
    Ok(super::list_page(&frame, &threadline_html::overview(&page)))
}

fn home(state: &ServerState) -> Option<&str> {
    state.app.config().home_dir.as_deref().and_then(std::path::Path::to_str)
}

fn not_read() -> PageError {
    PageError::failed("The logs are not read yet").with_hint("Try again in a moment.")
}

/// The parameters of the records, in the order in which they are shown.
const PARAMETERS: &[&str] = &[
    "kind",
    "tool",
    "command",
    "file",
    "failed",
    "agents",
    "state",
    "directory",
    "project",
    "session",
    "weekday",
    "hour",
    "since",
    "until",
    "sort",
];

fn filter(state: &ServerState, request: &PageRequest) -> Result<RecordFilter, PageError> {
    let text = |name: &str| request.query_param(name).map(str::to_owned);
    let number = |name: &str| request.query_param(name).and_then(|number| number.parse().ok());
    let kind = request.query_param("kind").unwrap_or_default();
    let bounds = [request.query_param("since"), request.query_param("until")];
    let kinds = RecordKind::ALL;
    Ok(RecordFilter {
        kind: kinds.into_iter().find(|known| known.name() == kind).unwrap_or_default(),
        range: TimeRange::parse(bounds[0], bounds[1], &state.now_here())?,
        project: text("project"),
        session: text("session"),
        tool: text("tool"),
        command: text("command"),
        file: text("file"),
        failed: request.query_param("failed").is_some(),
        agents: request.query_param("agents").is_some(),
        weekday: number("weekday"),
        hour: number("hour"),
        state: request.query_param("state").and_then(ActivityState::named),
        directory: text("directory"),
        longest_first: request.query_param("sort") == Some("longest"),
    })
}

/// The records behind a figure of the overview.
pub(crate) fn records(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let filter = filter(state, request)?;
    let event_no = state.changes.count(state.app.store());
    let ReadOverview { facts, is_reading } = read(state, request);
    let facts = facts.ok_or_else(not_read)?;
    if request.format == ResponseFormat::Json {
        let found = facts.records(&filter, &state.zone, &state.app, 0, usize::MAX);
        return PageResponse::json_lines(found.rows.iter().map(object));
    }
    let asked = request.query_param("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or(1);
    let skip = asked.saturating_sub(1).saturating_mul(RECORDS_PER_PAGE);
    let mut found = facts.records(&filter, &state.zone, &state.app, skip, RECORDS_PER_PAGE);
    let parameters: Vec<(String, String)> = PARAMETERS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), request.query_param(name)?.to_owned())))
        .collect();
    if filter.kind == RecordKind::Prompts {
        state.app.add_prompts(&mut found.rows, &state.cards(Duration::ZERO).logs);
    }
    let lines: Vec<RecordLine> = found.rows.into_iter().map(line).collect();
    let pages = found.total.div_ceil(RECORDS_PER_PAGE).max(1);
    let page = RecordsPage {
        parameters: &parameters,
        noun: filter.kind.noun(),
        records: &lines,
        total: found.total,
        page: (asked.saturating_sub(1).min(pages - 1), pages),
        is_reading,
        event_no,
        zone: &state.zone,
        home: home(state),
    };
    let frame = PageFrame {
        title: "Records · threadline",
        tab: ViewerTab::Overview,
        class: "lists",
        scripts: &["lists.js"],
        settings: state.settings,
    };
    Ok(super::list_page(&frame, &threadline_html::records(&page)))
}

fn line(row: RecordRow) -> RecordLine {
    RecordLine {
        at: row.at,
        session: (row.session, row.title),
        project: row.project,
        agent: row.agent,
        line: row.line.map(u64::from),
        tool: row.tool,
        detail: row.detail,
        duration: row.duration,
        outcome: row.outcome.map(threadline_view::outcome_name),
        state: row.state.map(ActivityState::name),
        cost: row.cost,
        prompt: row.prompt,
    }
}

fn object(row: &RecordRow) -> OverviewRecordObject<'_> {
    OverviewRecordObject {
        at: row.at.map(threadline_view::wire::moment),
        session: &row.session,
        project: &row.project,
        agent: row.agent.as_deref(),
        line: row.line.map(u64::from),
        tool: row.tool.as_deref(),
        detail: row.detail.as_deref(),
        duration_ms: row.duration,
        outcome: row.outcome.map(|outcome| outcome.name()),
        state: row.state.map(ActivityState::name),
        usage: row.cost.as_ref().map(Into::into),
    }
}
