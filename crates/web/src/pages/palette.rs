//! The palette: what matches the text that a person types into it.

use std::time::Duration;

use threadline_app::{PaletteKind, PaletteMatch};
use threadline_html::{encode_url, href, project_name};
use threadline_view::wire::PaletteObject;

use crate::request::PageRequest;
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// How long the first request waits for the logs to be read.
const FIRST_TIMEOUT: Duration = Duration::from_secs(20);

/// Pages of the viewer.
const PAGES: &[(&str, &str)] =
    &[("Overview", "/"), ("Sessions", "/sessions"), ("Search", "/search"), ("Usage", "/usage")];

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let query = request.query_param("q").unwrap_or_default();
    let facts = state.overview.latest(state.now(), FIRST_TIMEOUT).facts;
    let matches = facts.map(|facts| facts.palette(query, &state.app)).unwrap_or_default();
    let words = query.trim().to_lowercase();
    let pages = PAGES.iter().filter(|(name, _)| name.to_lowercase().starts_with(&words));
    let mut objects: Vec<PaletteObject> = pages
        .map(|(name, href)| PaletteObject {
            kind: "page",
            label: (*name).to_owned(),
            detail: String::new(),
            href: (*href).to_owned(),
        })
        .collect();
    let found = matches.into_iter().map(object);
    // Pages come last unless their name was typed.
    match words.is_empty() {
        true => objects = found.chain(objects).collect(),
        false => objects.extend(found),
    }
    if !words.is_empty() {
        objects.push(PaletteObject {
            kind: "search",
            label: format!("Search all sessions for “{}”", query.trim()),
            detail: String::new(),
            href: href("/search", [("q", query.trim())]),
        });
    }
    PageResponse::json_lines(objects)
}

fn object(found: PaletteMatch) -> PaletteObject {
    let href = match found.kind {
        PaletteKind::Session => format!("/s/{}", encode_url(&found.key)),
        PaletteKind::Project => href("/project", [("name", &*found.key)]),
        PaletteKind::File => href("/file", [("path", &*found.key)]),
        PaletteKind::Command => href("/records", [("command", &*found.key)]),
    };
    let detail = match found.kind {
        PaletteKind::Session => project_name(&found.detail).to_owned(),
        _ => found.detail,
    };
    PaletteObject { kind: found.kind.name(), label: found.label, detail, href }
}
