//! The pages, one file each.
//!
//! A page is a [`PageHandler`], a function with plain blocking code. [`add_page`] adds it to the router in
//! all formats: `/usage`, `/usage.json` and `/usage.md` are the same page. Path parameters (`/s/{id}`) are
//! available as [`PageRequest::path_param`]. To add a page, write its file and add a line to [`router`].

mod asset;
mod blame;
mod check;
mod compare;
mod context;
mod events;
mod export;
mod home;
mod labels;
mod live;
mod neighbour;
mod overview;
mod palette;
mod search;
mod session;
mod session_text;
mod usage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{OriginalUri, Query, RawPathParams};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodFilter, get, on};
use threadline_app::{AppError, FindError};
use threadline_html::{Markup, PageFrame};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::{ServerState, ServerStates};

/// The handler of a page.
type PageHandler = fn(&ServerState, &PageRequest) -> Result<PageResponse, PageError>;

pub(crate) fn router(state: ServerStates) -> Router {
    let mut router = Router::new();
    router = add_page(router, &state, "/", overview::front_page);
    router = add_page(router, &state, "/overview", overview::page);
    router = add_page(router, &state, "/records", overview::records);
    router = add_page(router, &state, "/project", overview::project);
    router = add_page(router, &state, "/sessions", home::page);
    // The list was the front page of earlier versions.
    router = add_page(router, &state, "/index", home::page);
    router = add_page(router, &state, "/s/{id}", session::page);
    router = add_page(router, &state, "/s/{id}/part", session::part);
    router = add_page(router, &state, "/s/{id}/outline", session::outline_section);
    router = add_page(router, &state, "/s/{id}/frame", session::page_frame);
    router = add_page(router, &state, "/s/{id}/agent", session::inline_agent);
    router = add_page(router, &state, "/s/{id}/raw", session::raw_line);
    router = add_page(router, &state, "/s/{id}/find", session::find);
    router = add_page(router, &state, "/s/{id}/changes", session::changes);
    router = add_page(router, &state, "/s/{id}/export", export::page);
    router = add_action(router, &state, "/s/{id}/labels", labels::change);
    router = add_page(router, &state, "/s/{id}/previous", neighbour::previous);
    router = add_page(router, &state, "/s/{id}/next", neighbour::next);
    router = router.merge(Router::new().route("/s/{id}/live", get(live::live)).with_state(state.clone()));
    router = add_page(router, &state, "/s/{id}/check", check::page);
    router = add_page(router, &state, "/palette", palette::page);
    router = add_page(router, &state, "/s/{id}/context", context::page);
    router = add_page(router, &state, "/blame", blame::page);
    router = add_page(router, &state, "/file", blame::file);
    router = add_page(router, &state, "/compare", compare::page);
    router = add_page(router, &state, "/search", search::page);
    router = add_page(router, &state, "/usage", usage::page);
    router = add_page(router, &state, "/usage/explain", usage::explain);
    let live = state.plain().clone();
    router = router.route("/events", get(move || events::events(live.clone())));
    router.route("/assets/{stamp}/{name}", get(asset::asset)).fallback(not_found)
}

/// Adds a page in all formats.
fn add_page(router: Router, states: &ServerStates, path: &'static str, page: PageHandler) -> Router {
    add_route(router, states, path, page, MethodFilter::GET)
}

/// Adds a request that changes something. The guard must know its path.
fn add_action(router: Router, states: &ServerStates, path: &'static str, action: PageHandler) -> Router {
    add_route(router, states, path, action, MethodFilter::POST)
}

fn add_route(
    router: Router,
    states: &ServerStates,
    path: &'static str,
    page: PageHandler,
    method: MethodFilter,
) -> Router {
    let states = states.clone();
    let handler = on(
        method,
        move |OriginalUri(uri): OriginalUri,
              headers: HeaderMap,
              params: RawPathParams,
              query: Result<Query<Vec<(String, String)>>, QueryRejection>| {
            let mut parts: Vec<String> = params.iter().map(|(_, value)| value.to_owned()).collect();
            let form = ResponseFormat::split_suffix(uri.path()).0;
            if let Some(last) = parts.last_mut() {
                *last = ResponseFormat::split_suffix(last).1.to_owned();
            }
            let request = PageRequest {
                format: form,
                path_params: parts,
                query: query.map(|Query(query)| query).unwrap_or_default(),
                cancelled: Arc::default(),
            };
            let state = states.of(&headers).clone();
            async move {
                let answer = run_page(state.clone(), page, request.clone()).await;
                let is_unknown = path.starts_with("/s/{id}") && answer.status() == StatusCode::NOT_FOUND;
                let redirect = if is_unknown { redirect_to_session(state, request, uri).await } else { None };
                redirect.unwrap_or(answer)
            }
        },
    );
    let mut router = router.route(path, handler.clone());
    if path != "/" && !path.ends_with('}') {
        router = router.route(&format!("{path}.json"), handler.clone()).route(&format!("{path}.md"), handler);
    }
    router
}

/// Redirects `/s/NAME` to the full address of the session, if `NAME` is no id but the beginning of one, or
/// a title: the rule of the command line, [`App::find_named`](threadline_app::App::find_named). Returns an
/// error page if several sessions match, and `None` if none does.
async fn redirect_to_session(state: ServerState, request: PageRequest, uri: Uri) -> Option<Response> {
    let format = request.format;
    let found = tokio::task::spawn_blocking(move || {
        let name = request.path_param(0);
        match state.app.session(name) {
            Ok(_) => None,
            Err(_) => Some(state.app.find_named(name)),
        }
    });
    match found.await.ok()?? {
        Ok(file) => {
            let suffix = match uri.path().strip_prefix("/s/")?.split_once('/') {
                Some((_, page)) => format!("/{page}"),
                None => format.suffix().to_owned(),
            };
            let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            let id = threadline_html::encode_url(&file.id);
            Some(Redirect::temporary(&format!("/s/{id}{suffix}{query}")).into_response())
        }
        Err(AppError::Find(error @ FindError::Ambiguous { .. })) => {
            Some(PageError::from(AppError::Find(error)).to_response(format))
        }
        Err(_) => None,
    }
}

/// Wraps the content of a list page in its frame.
fn list_page(frame: &PageFrame<'_>, content: &Markup) -> PageResponse {
    let mut page = threadline_html::site_head(frame);
    page.add(content).lit("</body>\n</html>\n");
    PageResponse::Html(page)
}

/// Runs a page on a blocking thread. If it panics, only this request fails.
async fn run_page(state: ServerState, page: PageHandler, request: PageRequest) -> Response {
    let form = request.format;
    let _leaving = CancelOnDrop(Arc::clone(&request.cancelled));
    let done = tokio::task::spawn_blocking(move || {
        // The client may have disconnected while the request was queued.
        if request.cancelled.load(Ordering::Relaxed) {
            return Err(PageError::failed("Client disconnected"));
        }
        let response = page(&state, &request)?;
        let mask = &state.app.config().mask;
        Ok(if mask.is_on() { response.into_masked_response(mask) } else { response.into_response() })
    })
    .await;
    match done {
        Ok(Ok(answer)) => answer,
        Ok(Err(problem)) => problem.to_response(form),
        Err(_) => PageError::failed("Internal error")
            .with_hint("This is a bug in threadline. Other pages still work.")
            .to_response(form),
    }
}

/// Sets the flag when dropped: the client disconnected, or has its response.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn not_found(OriginalUri(uri): OriginalUri) -> Response {
    PageError::not_found("Page not found").to_response(ResponseFormat::split_suffix(uri.path()).0)
}
