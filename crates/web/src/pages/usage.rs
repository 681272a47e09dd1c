//! Usage: tokens and costs, as charts, tables and records.

use std::time::Duration;

use threadline_app::time::{TimeRange, millis};
use threadline_app::{ListedCards, SessionFigures, UsageLogs, UsageNotes, window_resets};
use threadline_entry::Millis;
use threadline_html::{ExplainPage, PageFrame, UsagePage, ViewerTab};
use threadline_usage::{CallGroups, GroupBy, ModelCall, ModelCalls, ScanOptions, UsageTotals, windows};
use threadline_view::UsageBoard;
use threadline_view::wire::{GroupObject, RecordObject, WindowObject};

use super::home::COMPLETE_TIMEOUT;
use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// Maximum time to wait for figures before a page is shown with those that are available.
const HTML_TIMEOUT: Duration = Duration::from_millis(250);

/// The requested calls.
struct UsageFilter {
    range: TimeRange,
    project: Option<String>,
    model: Option<String>,
    session: Option<String>,
    branch: Option<String>,
    /// The query parameters that select them.
    asked: Vec<(String, String)>,
}

impl UsageFilter {
    fn of(state: &ServerState, request: &PageRequest) -> Result<Self, PageError> {
        let text = |name: &str| request.query_param(name).map(str::to_owned);
        let names = ["since", "until", "project", "model", "session", "branch"];
        // All times are the default.
        let is_asked = |(name, value): &(String, String)| (&**name, &**value) != ("since", "all");
        let asked = names.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?)));
        Ok(Self {
            range: TimeRange::parse(
                request.query_param("since"),
                request.query_param("until"),
                &state.now_here(),
            )?,
            project: text("project"),
            model: text("model"),
            session: text("session"),
            branch: text("branch"),
            asked: asked.filter(is_asked).collect(),
        })
    }

    /// Returns whether the calls are selected by a property that records without a call lack.
    fn selects_calls(&self) -> bool {
        self.project.is_some() || self.model.is_some() || self.branch.is_some()
    }

    fn keeps(&self, call: &ModelCall<'_>) -> bool {
        let same =
            |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        self.range.contains(call.at)
            && same(&self.project, call.project)
            && same(&self.model, call.model)
            && same(&self.session, call.session)
            && same(&self.branch, call.branch)
    }
}

fn shown(state: &ServerState, request: &PageRequest) -> ListedCards {
    let timeout = if request.format == ResponseFormat::Html { HTML_TIMEOUT } else { COMPLETE_TIMEOUT };
    state.cards(timeout)
}

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let filter = UsageFilter::of(state, request)?;
    let event_no = state.changes.count(state.app.store());
    let shown = shown(state, request);
    let calls = &shown.figures.calls;
    let now = millis(state.now());
    if request.format == ResponseFormat::Json {
        return objects(state, request, calls, &filter, now);
    }
    let keep = |call: &ModelCall<'_>| filter.keeps(call);
    let resets = window_resets(calls, &state.zone);
    let mut board = UsageBoard::of(calls, &state.prices, &state.zone, &resets, keep);
    let masked = |name: &str| state.app.masked(name).into_owned();
    board.models.iter_mut().chain(&mut board.projects).for_each(|(name, _)| *name = masked(name));
    let names = |by: GroupBy| -> Vec<String> {
        let groups = CallGroups::of_calls(calls, by, &state.prices, &state.zone, |_| true).groups;
        let named = groups.into_iter().map(|group| match group.key {
            threadline_usage::CallGroupKey::Project(name) | threadline_usage::CallGroupKey::Model(name) => {
                masked(&name)
            }
            _ => String::new(),
        });
        named.collect()
    };
    let (projects, models) = (names(GroupBy::Project), names(GroupBy::Model));
    let page = UsagePage {
        board: &board,
        parameters: &filter.asked,
        choices: (&projects, &models),
        notes: &notes(state, &shown.figures, &board.total, &filter),
        unread: shown.figures.n_missing(&shown.logs),
        event_no,
        now,
        zone: &state.zone,
    };
    if request.format == ResponseFormat::Markdown {
        return Ok(PageResponse::Markdown(threadline_html::usage_markdown(&page)));
    }
    let frame = PageFrame {
        title: "Usage · threadline",
        tab: ViewerTab::Usage,
        class: "lists",
        scripts: &["lists.js"],
        settings: state.settings,
    };
    Ok(super::list_page(&frame, &threadline_html::usage(&page)))
}

/// Returns the same objects as `threadline usage --json`.
fn objects(
    state: &ServerState,
    request: &PageRequest,
    calls: &ModelCalls,
    filter: &UsageFilter,
    now: Millis,
) -> Result<PageResponse, PageError> {
    let name = request.query_param("by").unwrap_or(GroupBy::Day.name());
    if name == "window" {
        let resets = window_resets(calls, &state.zone);
        let windows = windows(calls, &state.prices, &resets, |call| filter.keeps(call));
        return PageResponse::json_lines(windows.iter().map(|window| WindowObject::new(window, now)));
    }
    let by = GroupBy::from_name(name).ok_or_else(|| {
        let names = GroupBy::ALL.map(GroupBy::name).join(", ");
        PageError::bad_request(format!("Unknown grouping “{name}”"))
            .with_hint(format!("Use {names} or window."))
    })?;
    let groups = CallGroups::of_calls(calls, by, &state.prices, &state.zone, |call| filter.keeps(call));
    let inherited = calls.inherited();
    PageResponse::json_lines(groups.groups.iter().map(|group| GroupObject::new(group, by, &inherited)))
}

/// Returns notes on the figures, as sentences.
fn notes(
    state: &ServerState,
    figures: &SessionFigures,
    total: &UsageTotals,
    filter: &UsageFilter,
) -> Vec<String> {
    let calls = &figures.calls;
    let n_undated = calls.iter().filter(|call| call.at.is_none() && filter.keeps(call)).count();
    // The list of the server has no logs that were deleted.
    let notes = UsageNotes { calls, total, n_undated, gone: &[], prices: &state.prices }.texts();
    figures.unread.iter().chain(&notes).map(|note| sentence(note)).collect()
}

/// Formats a note as a sentence, with a capital and a full stop.
fn sentence(note: &str) -> String {
    let mut rest = note.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).chain(['.']).collect()
}

/// Shows every record of the requested calls, counted or not.
///
/// Reads only the logs that contain such a call, or all logs if there is no filter.
pub(crate) fn explain(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let filter = UsageFilter::of(state, request)?;
    let shown = state.cards(COMPLETE_TIMEOUT);
    let keep = |call: &ModelCall<'_>| filter.keeps(call);
    let logs = UsageLogs::of_cards(&shown, (!filter.asked.is_empty()).then_some(&keep));
    let wants = ScanOptions { records: true, ..ScanOptions::default() };
    let calls = logs.read(wants, &|| ()).calls;
    let marked = filter.selects_calls().then(|| calls.mark(keep));
    let of_session = |session: &str| filter.session.as_ref().is_none_or(|wanted| wanted == session);
    let records = calls.explain_marked(&state.prices, marked.as_deref(), |at, session| {
        filter.range.contains(at) && of_session(session)
    });
    if request.format == ResponseFormat::Json {
        return PageResponse::json_lines(records.iter().map(RecordObject::from));
    }
    if request.format == ResponseFormat::Markdown {
        return Err(
            PageError::not_found("Page not found").with_hint("Usage records are available as HTML and JSON.")
        );
    }
    let number = request.query_param("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or(1);
    let page = ExplainPage {
        parameters: &filter.asked,
        records: &records,
        page: number.saturating_sub(1),
        zone: &state.zone,
    };
    let frame = PageFrame {
        title: "Usage records · threadline",
        tab: ViewerTab::Usage,
        class: "lists",
        scripts: &["lists.js"],
        settings: state.settings,
    };
    Ok(super::list_page(&frame, &threadline_html::explain(&page)))
}
