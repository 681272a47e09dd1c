//! The lines of a file with the turns that wrote them, and the edits of a file.
//!
//! A page shows the text of a file only if a session edited it: any other path is not read.

use std::path::Path;

use threadline_app::AppError;
use threadline_app::blame::{BlameError, BlameOptions};
use threadline_entry::is_absolute_path;
use threadline_html::{BlamePage, FileLocation, FilePage, PageFrame, ViewerTab};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageLink, PageResponse};
use crate::state::ServerState;

fn path_of(request: &PageRequest) -> Result<&Path, PageError> {
    let path = request.query_param("path").filter(|path| is_absolute_path(path));
    path.map(Path::new).ok_or_else(|| {
        PageError::bad_request("No file").with_hint("Use /file?path=/absolute/path, or a link of a session.")
    })
}

fn page_error(error: BlameError) -> PageError {
    match error {
        BlameError::App(error) => error.into(),
        BlameError::NotEdited { .. } => PageError::not_found("No session edited this file")
            .with_hint("Only files that a session edited are shown. `threadline blame FILE` shows any file."),
        BlameError::OtherMachine { path } => {
            let edits = threadline_html::href("/file", [("path", &*path.to_string_lossy())]);
            let label = "All edits of this file".to_owned();
            PageError {
                links: vec![PageLink { href: edits, label, detail: String::new() }],
                ..PageError::not_found("The file is not on this machine")
            }
            .with_hint("Its sessions were copied from another machine.")
        }
        error => PageError::failed(error.to_string()),
    }
}

fn messages(errors: &[AppError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn no_markdown() -> PageError {
    PageError::not_found("Page not found").with_hint("Files are available as HTML and JSON.")
}

/// Shows the edits of a file in order.
pub(crate) fn file(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let found = state.app.file_edits(path_of(request)?).map_err(page_error)?;
    let edits: Vec<_> = found.edits.iter().map(|edit| edit.object(&state.app)).collect();
    match request.format {
        ResponseFormat::Json => PageResponse::json_lines(edits),
        ResponseFormat::Markdown => Err(no_markdown()),
        ResponseFormat::Html => {
            let path = found.path.to_string_lossy();
            let location = if found.is_on_other_machine() {
                FileLocation::OtherMachine
            } else if !edits.is_empty() && found.path.is_file() {
                FileLocation::Here
            } else {
                FileLocation::Gone
            };
            let page =
                FilePage { path: &path, edits: &edits, location, read_errors: &messages(&found.unread) };
            Ok(super::list_page(
                &frame(state, &format!("{path} · threadline")),
                &threadline_html::file(&page),
            ))
        }
    }
}

/// Shows the lines of a file with their origins.
pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let options = BlameOptions { only_edited: true, ..BlameOptions::default() };
    let blame = state.app.blame(path_of(request)?, options).map_err(page_error)?;
    let all = 0..blame.lines.len();
    let lines: Vec<_> = blame.objects(&state.app, all.clone()).collect();
    match request.format {
        ResponseFormat::Json => PageResponse::json_lines(lines),
        ResponseFormat::Markdown => Err(no_markdown()),
        ResponseFormat::Html => {
            let turns = blame.turns(all);
            let turns: Vec<_> = turns
                .iter()
                .map(|turn| (blame.edits[turn.first_edit].object(&state.app), turn.n_lines))
                .collect();
            let path = blame.path.to_string_lossy();
            let page = BlamePage {
                path: &path,
                lines: &lines,
                turns: &turns,
                n_edits: blame.edits.len(),
                is_in_git: blame.is_in_git,
                read_errors: &messages(&blame.unread),
            };
            let title = format!("Blame · {path}");
            Ok(super::list_page(&frame(state, &title), &threadline_html::blame(&page)))
        }
    }
}

fn frame<'a>(state: &ServerState, title: &'a str) -> PageFrame<'a> {
    PageFrame {
        title,
        tab: ViewerTab::None,
        class: "lists",
        scripts: &["lists.js"],
        settings: state.settings,
    }
}
