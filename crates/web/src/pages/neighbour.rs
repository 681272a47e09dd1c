//! Redirects from a session to its neighbours in the list of sessions, which is sorted by last activity.

use std::cmp::Reverse;
use std::time::Duration;

use crate::request::PageRequest;
use crate::response::{PageError, PageResponse, session_not_found};
use crate::state::ServerState;

/// Redirects to the session above this one in the list.
pub(crate) fn previous(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    redirect(state, request.path_param(0), |at| at.checked_sub(1))
}

/// Redirects to the session below this one in the list.
pub(crate) fn next(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    redirect(state, request.path_param(0), |at| at.checked_add(1))
}

/// Redirects to a neighbour, or to the list if there is none.
fn redirect(
    state: &ServerState,
    id: &str,
    step: impl FnOnce(usize) -> Option<usize>,
) -> Result<PageResponse, PageError> {
    // The order does not need the figures.
    let shown = state.cards(Duration::ZERO);
    let mut ids: Vec<(Reverse<i64>, &str)> =
        shown.cards.iter().map(|card| (Reverse(card.last_active), &*card.id)).collect();
    ids.sort();
    let at = ids.iter().position(|(_, known)| *known == id).ok_or_else(session_not_found)?;
    let neighbour = step(at).and_then(|at| ids.get(at));
    Ok(PageResponse::Redirect(match neighbour {
        Some((_, id)) => format!("/s/{}", threadline_html::encode_url(id)),
        None => "/sessions".to_owned(),
    }))
}
