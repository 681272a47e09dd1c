//! Responses of pages, and errors.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use threadline_app::{AppError, FindError, Mask, SessionCandidate};
use threadline_html::{Markup, PageFrame, ViewerSettings, ViewerTab};
use threadline_view::wire::ErrorObject;

use crate::request::ResponseFormat;

/// The response of a page.
#[derive(Debug)]
pub(crate) enum PageResponse {
    /// A whole page.
    Html(Markup),
    /// JSON lines, one object per line.
    JsonLines(Vec<u8>),
    /// Markdown.
    Markdown(String),
    /// Plain text.
    Text(String),
    /// A part of a page, and its stamp.
    Fragment(Markup, String),
    /// A JSON object for our scripts.
    JsonObject(serde_json::Value),
    /// An HTML file to save, with its name.
    Download(String, Vec<u8>),
    /// A redirect to another page of the server.
    Redirect(String),
    /// A long response, generated piece by piece while it is sent: its content type and the generator.
    Streamed(&'static str, BodyChunks),
}

/// Generates the next piece of a long response, or `None` at the end.
pub(crate) struct BodyChunks(pub(crate) Box<dyn FnMut() -> Option<Vec<u8>> + Send>);

impl std::fmt::Debug for BodyChunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BodyChunks")
    }
}

impl BodyChunks {
    /// Converts the pieces to a body. Each is generated on a blocking thread, after the previous one was
    /// taken.
    fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::unfold(Some(self), |pieces| async {
            let mut pieces = pieces?;
            let (pieces, next) = tokio::task::spawn_blocking(move || {
                let next = (pieces.0)();
                (pieces, next)
            })
            .await
            .ok()?;
            next.map(|next| (Ok::<_, std::convert::Infallible>(next), Some(pieces)))
        }))
    }
}

/// Serialises an object as one line.
pub(crate) fn json_line(object: &impl serde::Serialize) -> Vec<u8> {
    let mut out = serde_json::to_vec(object).unwrap_or_default();
    out.push(b'\n');
    out
}

impl PageResponse {
    /// Serialises objects as JSON lines.
    pub(crate) fn json_lines<T: serde::Serialize>(
        objects: impl IntoIterator<Item = T>,
    ) -> Result<Self, PageError> {
        let mut out = Vec::new();
        for object in objects {
            serde_json::to_writer(&mut out, &object).map_err(|error| PageError::failed(error.to_string()))?;
            out.push(b'\n');
        }
        Ok(Self::JsonLines(out))
    }

    /// Serialises objects as JSON lines, and then one object per file that could not be read.
    pub(crate) fn json_lines_and_errors<T: serde::Serialize>(
        objects: impl IntoIterator<Item = T>,
        read_errors: &[String],
    ) -> Result<Self, PageError> {
        let mut response = Self::json_lines(objects)?;
        if let Self::JsonLines(out) = &mut response {
            let errors = read_errors.iter().map(|error| ErrorObject::new(error, None));
            out.extend(errors.flat_map(|error| json_line(&error)));
        }
        Ok(response)
    }

    /// Returns the response with secrets masked, as the last step. This covers names, such as those of models
    /// and tools; the texts of sessions are masked before. Files to save are masked as their link says.
    pub(crate) fn into_masked_response(self, mask: &Mask) -> Response {
        match self {
            Self::Html(markup) => html_response(mask.markup(&markup.into_string()).into_owned()),
            Self::Fragment(markup, stamp) => {
                let markup = mask.markup(&markup.into_string()).into_owned();
                with_stamp(html_response(markup), stamp)
            }
            Self::JsonLines(bytes) => {
                let json = String::from_utf8_lossy(&bytes);
                Self::JsonLines(mask.json(&json).into_owned().into_bytes()).into_response()
            }
            Self::JsonObject(value) => {
                let json = mask.json(&value.to_string()).into_owned();
                ([(header::CONTENT_TYPE, "application/json")], json).into_response()
            }
            Self::Markdown(text) => Self::Markdown(mask.text(&text).into_owned()).into_response(),
            Self::Text(text) => Self::Text(mask.text(&text).into_owned()).into_response(),
            Self::Streamed(kind, mut pieces) => {
                let mask = mask.clone();
                let masked = move || {
                    let piece = (pieces.0)()?;
                    Some(match std::str::from_utf8(&piece).map(|text| mask.markup(text)) {
                        Ok(Cow::Owned(masked)) => masked.into_bytes(),
                        _ => piece,
                    })
                };
                Self::Streamed(kind, BodyChunks(Box::new(masked))).into_response()
            }
            Self::Download(..) | Self::Redirect(_) => self.into_response(),
        }
    }
}

fn html_response(markup: String) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], markup).into_response()
}

fn with_stamp(mut response: Response, stamp: String) -> Response {
    let stamp = HeaderValue::try_from(stamp).unwrap_or(HeaderValue::from_static(""));
    response.headers_mut().insert("x-stamp", stamp);
    response
}

impl IntoResponse for PageResponse {
    fn into_response(self) -> Response {
        let (kind, body) = match self {
            Self::Html(markup) => return html_response(markup.into_string()),
            Self::JsonLines(bytes) => ("application/x-ndjson", Body::from(bytes)),
            Self::Markdown(text) => ("text/markdown; charset=utf-8", Body::from(text)),
            Self::Text(text) => ("text/plain; charset=utf-8", Body::from(text)),
            Self::Fragment(markup, stamp) => return with_stamp(html_response(markup.into_string()), stamp),
            Self::Download(name, bytes) => {
                let saved = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
                let mut response =
                    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], bytes).into_response();
                let saved = saved.unwrap_or(HeaderValue::from_static("attachment"));
                response.headers_mut().insert(header::CONTENT_DISPOSITION, saved);
                return response;
            }
            Self::Redirect(to) => return Redirect::temporary(&to).into_response(),
            Self::JsonObject(value) => ("application/json", Body::from(value.to_string())),
            Self::Streamed(kind, pieces) => (kind, pieces.into_body()),
        };
        ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
    }
}

/// An error with a message for the user.
#[derive(Clone, Debug)]
pub(crate) struct PageError {
    pub(crate) status: StatusCode,
    /// The message, in one sentence.
    pub(crate) message: String,
    /// A suggestion for the user.
    pub(crate) hint: Option<String>,
    /// Other pages that may have been meant.
    pub(crate) links: Vec<PageLink>,
}

/// A link to another page.
#[derive(Clone, Debug)]
pub(crate) struct PageLink {
    pub(crate) href: String,
    pub(crate) label: String,
    /// More about the page, to tell it from others with the same label.
    pub(crate) detail: String,
}

impl PageError {
    pub(crate) fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self { status, message: what.into(), hint: None, links: Vec::new() }
    }

    /// Returns a problem with status 404.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// Returns a problem with status 500: the resource exists, but could not be shown.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    }

    /// Returns a problem with status 400: the request is invalid.
    pub(crate) fn bad_request(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Renders the problem in the requested format.
    pub(crate) fn to_response(&self, form: ResponseFormat) -> Response {
        let answer = match form {
            ResponseFormat::Html => PageResponse::Html(self.page()),
            ResponseFormat::Json => PageResponse::JsonLines(json_line(&self.object())),
            ResponseFormat::Markdown => PageResponse::Text(format!("{}\n", self.message)),
        };
        (self.status, answer).into_response()
    }

    /// Returns the problem as a public JSON object.
    pub(crate) fn object(&self) -> ErrorObject<'_> {
        ErrorObject::new(&self.message, self.hint.as_deref())
    }

    fn page(&self) -> Markup {
        let mut body = Markup::new();
        body.lit("<header class=\"opening\"><h1>").text(&self.message).lit("</h1>");
        if let Some(hint) = &self.hint {
            body.lit("<p class=\"facts\">").text(hint).lit("</p>");
        }
        for link in &self.links {
            body.lit("<p class=\"facts\"><a href=\"").text(&link.href).lit("\">").text(&link.label);
            body.lit("</a> <span>").text(&link.detail).lit("</span></p>");
        }
        body.lit("<p class=\"facts\"><a href=\"/\">All sessions</a></p></header>");
        threadline_html::site(
            &PageFrame {
                title: &self.message,
                tab: ViewerTab::None,
                class: "problem",
                scripts: &[],
                settings: ViewerSettings::default(),
            },
            &body,
        )
    }
}

/// Returns a link to a session, with its project, its day and the start of its id.
fn candidate_link(candidate: &SessionCandidate) -> PageLink {
    let day = Timestamp::try_from(candidate.last_active).ok();
    let day = day.map(|time| time.to_zoned(TimeZone::UTC).date().to_string());
    let project =
        candidate.project.as_deref().map(|project| threadline_html::project_name(project).to_owned());
    let id: String = candidate.id.chars().take(8).collect();
    PageLink {
        href: format!("/s/{}", threadline_html::encode_url(&candidate.id)),
        label: candidate.title.clone().unwrap_or_else(|| candidate.id.to_string()),
        detail: project.into_iter().chain(day).chain([id]).collect::<Vec<_>>().join(" · "),
    }
}

/// Returns the error for a session that does not exist, or no longer.
pub(crate) fn session_not_found() -> PageError {
    AppError::NoSession { id: String::new() }.into()
}

impl From<AppError> for PageError {
    fn from(error: AppError) -> Self {
        let problem = match error {
            AppError::NoSession { .. } => Self::not_found("Session not found"),
            AppError::Find(FindError::Ambiguous { ref found, .. }) => Self {
                links: found.iter().map(candidate_link).collect(),
                hint: Some("Select one of them:".to_owned()),
                ..Self::not_found(error.to_string())
            },
            AppError::Find(FindError::NoMatch { .. } | FindError::Empty { .. }) => {
                Self::not_found(error.to_string())
            }
            AppError::NoAgent { .. } => Self::not_found(error.to_string())
                .with_hint("The context page of the session lists its sub-agents."),
            AppError::AmbiguousAgent { .. } => Self::not_found(error.to_string()),
            AppError::NotATime { .. } | AppError::EmptyRange { .. } => Self::bad_request(error.to_string()),
            AppError::Read { source, .. } | AppError::Io(source) => return source.into(),
            _ => Self::failed(error.to_string()),
        };
        match problem.hint {
            Some(_) => problem,
            None => error.hints().into_iter().take(1).fold(problem, Self::with_hint),
        }
    }
}

impl From<std::io::Error> for PageError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                Self::not_found("File not found").with_hint("It was deleted or moved.")
            }
            _ => Self::failed("Cannot read the file").with_hint(error.to_string()),
        }
    }
}
