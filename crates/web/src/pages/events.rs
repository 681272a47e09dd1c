//! Word that something changed, for pages that are open.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use crate::state::State;

/// Much that changes at once is told once.
const PAUSE: Duration = Duration::from_millis(250);

/// An endless answer: `changed` whenever a session was written to or counted, with how much was told so far.
///
/// The first word comes at once, so that a page can tell whether it missed something while it was on its way.
pub(crate) async fn events(state: State) -> Response {
    let mut news = state.news.listen(&state.store);
    news.mark_changed();
    let told = stream::unfold((news, false), |(mut news, greeted)| async move {
        news.changed().await.ok()?;
        if greeted {
            tokio::time::sleep(PAUSE).await;
        }
        let count = news.borrow_and_update().to_string();
        Some((Ok::<_, Infallible>(Event::default().event("changed").data(count)), (news, true)))
    });
    Sse::new(told).keep_alive(KeepAlive::new().interval(Duration::from_secs(20))).into_response()
}
