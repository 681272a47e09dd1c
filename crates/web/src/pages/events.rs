//! Change events for open list pages.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use crate::state::ServerState;

/// Changes within this interval are sent as one event.
const BATCH_INTERVAL: Duration = Duration::from_millis(250);

/// An endless event stream: `changed` whenever a session was written to or counted, with the number of
/// changes so far.
///
/// The first event is sent immediately, so that a page can detect changes that it missed while it was
/// loading.
pub(crate) async fn events(state: ServerState) -> Response {
    let mut changes = state.changes.subscribe(state.app.store());
    changes.mark_changed();
    let messages = stream::unfold((changes, false), |(mut changes, greeted)| async move {
        changes.changed().await.ok()?;
        if greeted {
            tokio::time::sleep(BATCH_INTERVAL).await;
        }
        let count = changes.borrow_and_update().to_string();
        Some((Ok::<_, Infallible>(Event::default().event("changed").data(count)), (changes, true)))
    });
    Sse::new(messages).keep_alive(KeepAlive::new().interval(Duration::from_secs(20))).into_response()
}
