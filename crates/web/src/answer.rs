//! What a page answers, and what it says when it cannot.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use threadline_html::{Frame, Markup, Tab};

use crate::ask::Form;

/// What a page answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A page to read, whole.
    Html(Markup),
    /// JSON lines, each an object.
    Json(Vec<u8>),
    /// Markdown.
    #[allow(dead_code, reason = "short pages answer with it")]
    Markdown(String),
    /// Text as it is.
    Text(String),
    /// A part of a page, with what it was made from.
    Part(Markup, String),
    /// A JSON object for a script of ours.
    Data(serde_json::Value),
    /// Something long, made piece by piece as it is read: its type, and what makes the next piece.
    Long(&'static str, Pieces),
}

/// Makes the next piece of a long answer, until there is none.
pub(crate) struct Pieces(pub(crate) Box<dyn FnMut() -> Option<Vec<u8>> + Send>);

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pieces")
    }
}

impl Pieces {
    /// The pieces as a body. Each is made where it may block, and only once the one before was taken.
    fn body(self) -> Body {
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

impl Answer {
    /// JSON lines out of objects.
    pub(crate) fn json<T: serde::Serialize>(objects: impl IntoIterator<Item = T>) -> Result<Self, Problem> {
        let mut out = Vec::new();
        for object in objects {
            serde_json::to_writer(&mut out, &object).map_err(|error| Problem::failed(error.to_string()))?;
            out.push(b'\n');
        }
        Ok(Self::Json(out))
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let (kind, body) = match self {
            Self::Html(markup) => ("text/html; charset=utf-8", Body::from(markup.into_string())),
            Self::Json(bytes) => ("application/x-ndjson", Body::from(bytes)),
            Self::Markdown(text) => ("text/markdown; charset=utf-8", Body::from(text)),
            Self::Text(text) => ("text/plain; charset=utf-8", Body::from(text)),
            Self::Part(markup, stamp) => {
                let stamp = HeaderValue::try_from(stamp).unwrap_or(HeaderValue::from_static(""));
                let mut response = Self::Html(markup).into_response();
                response.headers_mut().insert("x-stamp", stamp);
                return response;
            }
            Self::Data(value) => ("application/json", Body::from(value.to_string())),
            Self::Long(kind, pieces) => (kind, pieces.body()),
        };
        ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
    }
}

/// Why a page cannot answer, in words for the person who asked.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// What happened, in one sentence.
    pub(crate) what: String,
    /// What can be done about it.
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self { status, what: what.into(), hint: None }
    }

    /// There is no such thing.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// It is there, and could not be told.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    }

    /// What was asked makes no sense.
    pub(crate) fn bad(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The problem, in the form that was asked for.
    pub(crate) fn answer(&self, form: Form) -> Response {
        let answer = match form {
            Form::Html => Answer::Html(self.page()),
            Form::Json => {
                let object = serde_json::json!({"type": "problem", "message": self.what, "hint": self.hint});
                Answer::Json(format!("{object}\n").into_bytes())
            }
            Form::Markdown => Answer::Text(format!("{}\n", self.what)),
        };
        (self.status, answer).into_response()
    }

    fn page(&self) -> Markup {
        let mut body = Markup::new();
        body.lit("<header class=\"opening\"><h1>").text(&self.what).lit("</h1>");
        if let Some(hint) = &self.hint {
            body.lit("<p class=\"facts\">").text(hint).lit("</p>");
        }
        body.lit("<p class=\"facts\"><a href=\"/\">All sessions</a></p></header>");
        threadline_html::site(
            &Frame { title: &self.what, tab: Tab::None, class: "problem", scripts: &[] },
            &body,
        )
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                Self::not_found("That file is gone").hint("It was deleted or moved while the page was open.")
            }
            _ => Self::failed("The file could not be read").hint(error.to_string()),
        }
    }
}
