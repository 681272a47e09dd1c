//! The home page: the list of sessions, filtered and sorted.

use std::time::Duration;

use threadline_app::time::{end_of, millis, start_of};
use threadline_html::{HomePage, PageFrame, ViewerTab};
use threadline_view::wire::CardObject;
use threadline_view::{FilterChoices, Selection};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// How long an HTML page waits for figures that are not counted yet: longer if the filter or the sort order
/// needs them.
const BROWSE_TIMEOUT: Duration = Duration::from_millis(15);
const FILTER_TIMEOUT: Duration = Duration::from_millis(200);
/// JSON and Markdown wait for complete figures.
pub(super) const COMPLETE_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let now = state.now();
    let event_no = state.changes.count(state.app.store());
    let selection = Selection::of(request.query_pairs(), |text, end| moment(text, end, &state.now_here()));
    let timeout = match request.format {
        ResponseFormat::Html if selection.needs_figures() => FILTER_TIMEOUT,
        ResponseFormat::Html => BROWSE_TIMEOUT,
        _ => COMPLETE_TIMEOUT,
    };
    let shown = state.cards(timeout);
    let chosen = selection.select(&shown.cards);
    if request.format == ResponseFormat::Json {
        return PageResponse::json_lines(chosen.cards.iter().map(|card| CardObject::from(*card)));
    }
    let choices = FilterChoices::of(&shown.cards, &selection);
    let homes: Vec<String> =
        state.app.store().homes().iter().map(|home| home.root().display().to_string()).collect();
    let page = HomePage {
        selection: &selection,
        chosen: &chosen,
        choices: &choices,
        total: shown.cards.len(),
        read_errors: &shown.unread,
        homes: &homes,
        event_no,
        now: millis(now),
        zone: &state.zone,
    };
    if request.format == ResponseFormat::Markdown {
        return Ok(PageResponse::Markdown(threadline_html::home_markdown(&page)));
    }
    let title = match &selection.project {
        Some(project) => format!("{} · threadline", threadline_html::project_name(project)),
        None => "Sessions · threadline".to_owned(),
    };
    let frame = PageFrame {
        title: &title,
        tab: ViewerTab::Home,
        class: "lists",
        scripts: &["lists.js"],
        settings: state.settings,
    };
    Ok(super::list_page(&frame, &threadline_html::home(&page)))
}

/// Parses a time; returns its start, or its end if `end` is set.
fn moment(text: &str, end: bool, now: &jiff::Zoned) -> Option<i64> {
    if end { end_of(text, now).ok() } else { start_of(text, now).ok() }
}
