//! Style and script, which are ours alone and the same for everybody.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::answer::Problem;
use crate::ask::Form;

/// An asset by its name. Its address holds a stamp of its content, so it may be kept for good.
pub(crate) async fn asset(Path((stamp, name)): Path<(String, String)>) -> Response {
    match threadline_html::asset(&name) {
        Some((kind, text)) => {
            let keep = if stamp == threadline_html::stamp() {
                "public, max-age=31536000, immutable"
            } else {
                "no-cache"
            };
            ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], text).into_response()
        }
        None => Problem::not_found("There is no such file").answer(Form::Html),
    }
}
