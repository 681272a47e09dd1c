//! The pages, one file each.
//!
//! A page is a [`Page`], a function with plain blocking code. [`page`] adds it to the router in all formats:
//! `/usage`, `/usage.json` and `/usage.md` are the same page. Path parameters (`/s/{id}`) are available as
//! [`Ask::part`]. To add a page, write its file and add a line to [`router`].

mod asset;
mod check;
mod events;
mod home;
mod live;
mod search;
mod session;
mod twin;
mod usage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{OriginalUri, Query, RawPathParams};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use threadline_html::{Frame, Markup};

use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::state::State;

/// The handler of a page.
type Page = fn(&State, &Ask) -> Result<Answer, Problem>;

pub(crate) fn router(state: State) -> Router {
    let mut router = Router::new();
    router = page(router, &state, "/", home::page);
    router = page(router, &state, "/s/{id}", session::page);
    router = page(router, &state, "/s/{id}/part", session::part);
    router = page(router, &state, "/s/{id}/rail", session::rail);
    router = page(router, &state, "/s/{id}/around", session::around);
    router = page(router, &state, "/s/{id}/inside", session::inside);
    router = page(router, &state, "/s/{id}/raw", session::raw);
    router = page(router, &state, "/s/{id}/find", session::find);
    router = page(router, &state, "/s/{id}/changes", session::changes);
    router = router.merge(Router::new().route("/s/{id}/live", get(live::live)).with_state(state.clone()));
    router = page(router, &state, "/s/{id}/check", check::page);
    router = page(router, &state, "/search", search::page);
    router = page(router, &state, "/usage", usage::page);
    router = page(router, &state, "/usage/explain", usage::explain);
    let live = state.clone();
    router = router.route("/events", get(move || events::events(live.clone())));
    router.route("/assets/{stamp}/{name}", get(asset::asset)).fallback(nowhere)
}

/// Adds a page in all formats. Those of `/` are `/index.json` and `/index.md`.
fn page(router: Router, state: &State, path: &'static str, page: Page) -> Router {
    let state = state.clone();
    let handler = get(
        move |OriginalUri(uri): OriginalUri,
              params: RawPathParams,
              query: Result<Query<Vec<(String, String)>>, QueryRejection>| {
            let mut parts: Vec<String> = params.iter().map(|(_, value)| value.to_owned()).collect();
            let form = Form::of(uri.path()).0;
            if let Some(last) = parts.last_mut() {
                *last = Form::of(last).1.to_owned();
            }
            let ask = Ask {
                form,
                path: parts,
                query: query.map(|Query(query)| query).unwrap_or_default(),
                gone: Arc::default(),
            };
            run(state.clone(), page, ask)
        },
    );
    let mut router = router.route(path, handler.clone());
    if path == "/" {
        router = router.route("/index.json", handler.clone()).route("/index.md", handler);
    } else if !path.ends_with('}') {
        router = router.route(&format!("{path}.json"), handler.clone()).route(&format!("{path}.md"), handler);
    }
    router
}

/// Wraps the content of a list page in its frame.
fn list(frame: &Frame<'_>, content: &Markup) -> Answer {
    let mut page = threadline_html::site_head(frame);
    page.add(content).lit("</body>\n</html>\n");
    Answer::Html(page)
}

/// Runs a page on a blocking thread. If it panics, only this request fails.
async fn run(state: State, page: Page, ask: Ask) -> Response {
    let form = ask.form;
    let _leaving = Leaving(Arc::clone(&ask.gone));
    let done = tokio::task::spawn_blocking(move || {
        // The client may have disconnected while the request was queued.
        if ask.gone.load(Ordering::Relaxed) {
            return Err(Problem::failed("Client disconnected"));
        }
        page(&state, &ask)
    })
    .await;
    match done {
        Ok(Ok(answer)) => answer.into_response(),
        Ok(Err(problem)) => problem.answer(form),
        Err(_) => Problem::failed("Internal error")
            .hint("This is a bug in threadline. Other pages still work.")
            .answer(form),
    }
}

/// Sets the flag when dropped: the client disconnected, or has its response.
struct Leaving(Arc<AtomicBool>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn nowhere(OriginalUri(uri): OriginalUri) -> Response {
    Problem::not_found("Page not found").answer(Form::of(uri.path()).0)
}
