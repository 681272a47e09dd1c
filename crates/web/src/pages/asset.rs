//! Stylesheets and scripts, which are the same for every user.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::request::ResponseFormat;
use crate::response::PageError;

/// Returns an asset by its name. Its path contains a hash of all assets, so the browser may cache it
/// indefinitely if the hash is current.
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
        None => PageError::not_found("File not found").to_response(ResponseFormat::Html),
    }
}
