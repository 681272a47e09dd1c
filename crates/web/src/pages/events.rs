//! Word that something changed, for pages that are open.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use crate::state::State;

/// Much that changes at once is told once.
const PAUSE: Duration = Duration::from_millis(250);

/// An endless answer: `changed` whenever a session was written to or counted.
pub(crate) async fn events(state: State) -> Response {
    let news = state.news.listen(&state.store);
    let told = stream::unfold(news, |mut news| async move {
        news.changed().await.ok()?;
        tokio::time::sleep(PAUSE).await;
        news.mark_unchanged();
        Some((Ok::<_, Infallible>(Event::default().event("changed").data("")), news))
    });
    Sse::new(told).keep_alive(KeepAlive::new().interval(Duration::from_secs(20))).into_response()
}
