//! A session as JSON lines or Markdown, generated turn by turn while it is sent.

use threadline_app::{PageLayout, SessionSelector};
use threadline_view::{DetailLevel, TurnView, markdown_header, markdown_turns, wire};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{BodyChunks, PageError, PageResponse, json_line};
use crate::state::ServerState;

pub(crate) fn page(
    state: &ServerState,
    ask: &PageRequest,
    selector: &SessionSelector,
) -> Result<PageResponse, PageError> {
    let (id, selector, form) = (ask.path_param(0).to_owned(), selector.clone(), ask.format);
    let plan = state.with_session(&id, |live| {
        live.settle();
        Ok(live.page_layout(&selector)?)
    })?;
    let state = state.clone();
    let mut turns = plan.layout.turns.indices();
    let mut is_first = true;
    let pieces = move || {
        if std::mem::take(&mut is_first) {
            return Some(head_chunk(&plan, form));
        }
        let turn = turns.next()?;
        let view = state.with_session(&id, |live| Ok(live.turn(&selector, &plan.layout, turn)?));
        // The head was already sent, so only the error can follow.
        Some(view.map_or_else(|problem| error_chunk(&problem, form), |view| turn_chunk(&view, &plan, form)))
    };
    let kind =
        if form == ResponseFormat::Json { "application/x-ndjson" } else { "text/markdown; charset=utf-8" };
    Ok(PageResponse::Streamed(kind, BodyChunks(Box::new(pieces))))
}

fn head_chunk(plan: &PageLayout, form: ResponseFormat) -> Vec<u8> {
    let header = &plan.layout.header;
    match form {
        ResponseFormat::Json => {
            json_line(&wire::show_session(header, plan.layout.turns.len(), plan.layout.branches.len()))
        }
        _ => markdown_header(header).into_bytes(),
    }
}

fn turn_chunk(turn: &TurnView, plan: &PageLayout, form: ResponseFormat) -> Vec<u8> {
    let turns = std::slice::from_ref(turn);
    match form {
        ResponseFormat::Json => {
            let mut out = Vec::new();
            wire::show_turns(turns, None, &mut |object| out.extend(json_line(&object)));
            out
        }
        _ => format!("\n{}", markdown_turns(turns, plan.layout.header.cwd.as_deref(), DetailLevel::Tools))
            .into_bytes(),
    }
}

fn error_chunk(problem: &PageError, form: ResponseFormat) -> Vec<u8> {
    match form {
        ResponseFormat::Json => json_line(&problem.object()),
        _ => format!("\n{}\n", problem.message).into_bytes(),
    }
}
