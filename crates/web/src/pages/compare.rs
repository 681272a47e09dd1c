//! Two sessions or branches side by side.

use threadline_app::compare::{Comparison, ConversationName};
use threadline_app::split_anchor;
use threadline_html::{ComparePage, PageFrame, ViewerTab};
use threadline_view::{Hunk, hunks};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let names = [request.query_param("a").unwrap_or_default(), request.query_param("b").unwrap_or_default()];
    let is_asked = names.iter().all(|name| !name.is_empty());
    let compared = if is_asked { Some(compare(state, names)) } else { None };
    let (compared, problem) = match compared {
        Some(Ok(compared)) => (Some(compared), None),
        Some(Err(problem)) => (None, Some(problem)),
        None => (None, None),
    };
    match (request.format, &compared) {
        (ResponseFormat::Json, Some(compared)) => {
            let read_errors: Vec<String> = compared.unread.iter().map(ToString::to_string).collect();
            PageResponse::json_lines_and_errors([compared.object()], &read_errors)
        }
        (ResponseFormat::Json, None) => {
            let problem = problem.unwrap_or_else(|| "two sessions are needed".to_owned());
            Err(PageError::bad_request(problem).with_hint("Use /compare.json?a=SESSION&b=SESSION."))
        }
        (ResponseFormat::Markdown, _) => {
            Err(PageError::not_found("Page not found")
                .with_hint("Comparisons are available as HTML and JSON."))
        }
        (ResponseFormat::Html, _) => {
            let object = compared.as_ref().map(Comparison::object);
            let costs = compared.as_ref().map(|compared| {
                let [a, b] = compared.sides.each_ref().map(|side| side.spent.short_cost());
                [a, b, compared.cost_difference()]
            });
            let diffs: Vec<Vec<Hunk>> = compared.as_ref().map_or_else(Vec::new, |compared| {
                let texts = compared.files.iter().map(|file| file.texts());
                texts.map(|texts| texts.map_or_else(Vec::new, |(old, new)| hunks(&old, &new))).collect()
            });
            let notes = compared.as_ref().map(|compared| compared.sides.each_ref().map(|side| side.notes()));
            let unread = compared.as_ref().map_or(&[][..], |compared| &compared.unread);
            let page = ComparePage {
                names,
                problem: problem.as_deref(),
                compared: object.as_ref(),
                costs: costs.unwrap_or_default(),
                notes: notes.unwrap_or_default(),
                diffs: &diffs,
                read_errors: &unread.iter().map(ToString::to_string).collect::<Vec<_>>(),
            };
            let frame = PageFrame {
                title: "Compare · threadline",
                tab: ViewerTab::None,
                class: "lists",
                scripts: &["lists.js"],
                settings: state.settings,
            };
            Ok(super::list_page(&frame, &threadline_html::compare(&page)))
        }
    }
}

/// Compares two conversations by name. A name is never used as a path.
fn compare(state: &ServerState, names: [&str; 2]) -> Result<Comparison, String> {
    let find = |name: &str| {
        let (session, anchor) = split_anchor(name);
        let file = state.app.find_named(session).map_err(|error| error.to_string())?;
        Ok::<_, String>(ConversationName { file, anchor: anchor.map(str::to_owned) })
    };
    let (a, b) = (find(names[0])?, find(names[1])?);
    state.app.compare([&a, &b]).map_err(|error| error.to_string())
}
