//! Live updates of a session page, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use threadline_app::{PageLayout, SessionSelector};

use super::session::parse_selector;
use crate::request::{PageRequest, ResponseFormat};
use crate::response::PageError;
use crate::server::shutdown_started;
use crate::state::{ServerState, ServerStates};
use crate::watch::SessionWatch;

/// How often a page learns whether its session is still live, if the log does not change.
const LIVE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Sends the differences since the page was rendered, and then every change.
pub(crate) async fn live(
    axum::extract::State(states): axum::extract::State<ServerStates>,
    headers: HeaderMap,
    Path(id): Path<String>,
    query: Result<Query<Vec<(String, String)>>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let state = states.of(&headers).clone();
    let query = query.map(|Query(query)| query).unwrap_or_default();
    let request = PageRequest {
        format: ResponseFormat::Json,
        path_params: vec![id.clone()],
        query,
        cancelled: Arc::default(),
    };
    let selector = match parse_selector(&request) {
        Ok(selector) => selector,
        Err(problem) => return problem.to_response(ResponseFormat::Json),
    };
    let following = LiveUpdates {
        watch: state.watches.follow(&state, &id),
        id,
        selector,
        // A page rendered by an earlier run of the server gets everything.
        client: ClientPageState {
            parts: request
                .query_param("have")
                .map(|have| have.split(',').map(parse_stamp).collect())
                .unwrap_or_default(),
            ..ClientPageState::default()
        },
        has_sent: false,
        state,
    };
    let events = futures_util::stream::unfold(following, |mut following| async {
        let event = following.next().await?;
        Some((Ok::<_, Infallible>(event), following))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn parse_stamp(text: &str) -> (String, String) {
    let (name, stamp) = text.split_once(':').unwrap_or((text, ""));
    (name.to_owned(), stamp.to_owned())
}

/// A client that follows a session.
struct LiveUpdates {
    state: ServerState,
    watch: Arc<SessionWatch>,
    id: String,
    selector: SessionSelector,
    client: ClientPageState,
    has_sent: bool,
}

/// The state of the page on the client.
#[derive(Default)]
struct ClientPageState {
    parts: Vec<(String, String)>,
    rail: Vec<String>,
    turns: Vec<String>,
    bad: Vec<String>,
    tools: Vec<(String, usize)>,
    stamp: String,
    /// Whether the session is marked as live, once that was sent.
    is_live: Option<bool>,
}

impl LiveUpdates {
    /// Returns the next event: first the differences to the page, then one whenever the session has changed.
    async fn next(&mut self) -> Option<Event> {
        let mut version = self.watch.version.clone();
        loop {
            if self.has_sent {
                tokio::select! {
                    changed = version.changed() => changed.ok()?,
                    () = shutdown_started(self.state.shutdown.subscribe()) => return None,
                    () = tokio::time::sleep(LIVE_CHECK_INTERVAL) => {}
                }
            }
            let first = !std::mem::replace(&mut self.has_sent, true);
            version.mark_unchanged();
            let (state, id, selector) = (self.state.clone(), self.id.clone(), self.selector.clone());
            let layout = tokio::task::spawn_blocking(move || {
                state.with_session(&id, |live| Ok((live.page_layout(&selector)?, live.is_live())))
            });
            match layout.await {
                Ok(Ok((layout, is_live))) => {
                    if let Some(change) = self
                        .client
                        .update_to(&layout, is_live)
                        .or_else(|| first.then(|| json!({"same": true})))
                    {
                        return Event::default().event("change").data(change.to_string()).into();
                    }
                }
                Ok(Err(problem)) => return Some(gone_event(&problem)),
                Err(_) => return None,
            }
        }
    }
}

fn gone_event(problem: &PageError) -> Event {
    Event::default().event("gone").data(json!({"message": problem.message, "hint": problem.hint}).to_string())
}

impl ClientPageState {
    /// Returns the update that brings a page to this layout, or `None` if it is up to date.
    fn update_to(&mut self, layout: &PageLayout, is_live: bool) -> Option<Value> {
        let parts: Vec<_> =
            layout.parts.iter().map(|(part, _)| (part.name.clone(), part.stamp.clone())).collect();
        let rail: Vec<_> = layout.outline_parts.iter().map(|rail| rail.stamp.clone()).collect();
        let turns: Vec<_> = layout.layout.turns.iter().map(|turn| turn.turn.anchor.clone()).collect();
        let mut change = json!({});
        if let Some(from) = first_difference(&self.parts, &parts) {
            let rest = layout.parts[from..]
                .iter()
                .map(|(part, _)| json!([part.name, part.stamp, part.lines.0, part.lines.1, part.rows]));
            change["parts"] = json!({"from": from, "rest": rest.collect::<Vec<_>>()});
        }
        if let Some(from) = first_difference(&self.rail, &rail) {
            change["rail"] = json!({"from": from, "rest": rail[from..]});
        }
        if let Some(from) = first_difference(&self.turns, &turns) {
            change["turns"] = json!({"from": from, "rest": turns[from..]});
        }
        if let Some(from) = first_difference(&self.bad, &layout.layout.error_anchors) {
            change["bad"] = json!({"from": from, "rest": layout.layout.error_anchors[from..]});
        }
        if self.tools != layout.layout.tools {
            change["tools"] = json!(layout.layout.tools);
        }
        if self.stamp != layout.stamp {
            change["stamp"] = json!(layout.stamp);
        }
        if self.is_live != Some(is_live) {
            change["live"] = json!(is_live);
        }
        let known = change.as_object().is_some_and(|change| change.is_empty());
        change["last"] = json!(layout.lines);
        *self = Self {
            parts,
            rail,
            turns,
            bad: layout.layout.error_anchors.clone(),
            tools: layout.layout.tools.clone(),
            stamp: layout.stamp.clone(),
            is_live: Some(is_live),
        };
        (!known).then_some(change)
    }
}

/// Returns the index from which two lists differ, if they do.
fn first_difference<T: PartialEq>(before: &[T], after: &[T]) -> Option<usize> {
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    (same < before.len() || same < after.len()).then_some(same)
}
