//! Errors of requests to the Messages API.

use std::time::Duration;

use crate::stream::WireError;

/// The kind of an error of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is malformed (400).
    InvalidRequest,
    /// The key is missing or wrong (401).
    Authentication,
    /// There is a problem with the payment (402).
    Billing,
    /// The key has no permission for the request (403).
    Permission,
    /// The model or the address does not exist (404).
    NotFound,
    /// The request is larger than 32 MB (413).
    TooLarge,
    /// Too many requests or tokens (429).
    RateLimit,
    /// An internal error of the API (500).
    Api,
    /// The API is overloaded (529).
    Overloaded,
    /// Another kind, by the name that the API gives it.
    Other(String),
}

impl ErrorKind {
    /// Returns the kind by the API's name for it.
    pub fn from_name(name: &str) -> Self {
        match name {
            "invalid_request_error" => Self::InvalidRequest,
            "authentication_error" => Self::Authentication,
            "billing_error" => Self::Billing,
            "permission_error" => Self::Permission,
            "not_found_error" => Self::NotFound,
            "request_too_large" => Self::TooLarge,
            "rate_limit_error" => Self::RateLimit,
            "api_error" => Self::Api,
            "overloaded_error" => Self::Overloaded,
            other => Self::Other(other.to_owned()),
        }
    }

    fn from_status(status: u16) -> Self {
        match status {
            400 => Self::InvalidRequest,
            401 => Self::Authentication,
            402 => Self::Billing,
            403 => Self::Permission,
            404 => Self::NotFound,
            413 => Self::TooLarge,
            429 => Self::RateLimit,
            529 => Self::Overloaded,
            _ => Self::Api,
        }
    }
}

/// An error of a request to the Messages API.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The API answered with an error status.
    #[error("API error {status}: {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The kind that the body names, or the status implies.
        kind: ErrorKind,
        /// The message of the API, or the beginning of the body if it is not the API's JSON.
        message: String,
        /// The time to wait before a retry, if the API names one.
        retry_after: Option<Duration>,
        /// Whether the API recommends a retry (the `x-should-retry` header).
        should_retry: Option<bool>,
        /// The `request-id` header.
        request_id: Option<String>,
        /// The beginning of the body.
        body: String,
    },
    /// The API sent an error event after the stream had begun.
    #[error("API error in the stream: {message}")]
    Stream {
        /// The kind that the event names.
        kind: ErrorKind,
        /// The message of the API.
        message: String,
    },
    /// There is no key for the API.
    #[error("no API key: {0}")]
    Key(String),
    /// The connection ended before the reply was complete.
    #[error("the connection was closed before the reply was complete")]
    Truncated,
    /// No data arrived for the configured time.
    #[error("no data from the API for {} s", .0.as_secs())]
    Timeout(Duration),
    /// The API could not be reached, or the connection failed.
    #[error("cannot reach the API: {0}")]
    Network(String),
    /// The response is not a reply of the Messages API.
    #[error("the response is not a reply of the Messages API: {0}")]
    InvalidResponse(String),
    /// The request was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// The number of bytes of an error's body that are kept.
const MAX_KEPT_BODY: usize = 4096;

impl ApiError {
    /// Creates the error of a response with an error status.
    pub(crate) fn from_response(status: u16, headers: &[(String, String)], body: &[u8]) -> Self {
        #[derive(serde::Deserialize)]
        struct WireBody {
            error: WireError,
        }
        let header = |name: &str| {
            headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let (kind, message) = match serde_json::from_slice::<WireBody>(body) {
            Ok(body) if !body.error.kind.is_empty() => {
                (ErrorKind::from_name(&body.error.kind), body.error.message)
            }
            _ => {
                let text = String::from_utf8_lossy(&body[..body.len().min(500)]);
                (ErrorKind::from_status(status), text.trim().to_owned())
            }
        };
        let retry_after = header("retry-after-ms")
            .and_then(|value| value.trim().parse().ok().map(Duration::from_millis))
            .or_else(|| {
                header("retry-after").and_then(|value| value.trim().parse().ok().map(Duration::from_secs))
            });
        let should_retry = header("x-should-retry").and_then(|value| value.parse().ok());
        let request_id = header("request-id").cloned();
        let body = String::from_utf8_lossy(&body[..body.len().min(MAX_KEPT_BODY)]).into_owned();
        Self::Status { status, kind, message, retry_after, should_retry, request_id, body }
    }

    /// The HTTP status, if the API answered with one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The `request-id` of the response.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Status { request_id, .. } => request_id.as_deref(),
            _ => None,
        }
    }

    /// The kind of error, if the API named one.
    pub fn kind(&self) -> Option<&ErrorKind> {
        match self {
            Self::Status { kind, .. } | Self::Stream { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// Whether the reply ended early after it had begun. The request may then be sent again without
    /// streaming.
    pub fn is_broken_stream(&self) -> bool {
        matches!(self, Self::Stream { .. } | Self::Truncated | Self::Timeout(_) | Self::InvalidResponse(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_status_has_the_kind_and_the_message_of_its_body() {
        let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let headers =
            [("Retry-After".to_owned(), "3".to_owned()), ("request-id".to_owned(), "req_1".to_owned())];
        let error = ApiError::from_response(529, &headers, body);
        let ApiError::Status { kind, message, retry_after, request_id, .. } = error else { panic!() };
        assert_eq!((kind, message.as_str()), (ErrorKind::Overloaded, "Overloaded"));
        assert_eq!((retry_after, request_id.as_deref()), (Some(Duration::from_secs(3)), Some("req_1")));
    }

    #[test]
    fn a_body_of_a_gateway_is_quoted() {
        let error = ApiError::from_response(502, &[], b"<h1>Bad gateway</h1>\n");
        assert_eq!(error.to_string(), "API error 502: <h1>Bad gateway</h1>");
        assert_eq!(error.kind(), Some(&ErrorKind::Api));
    }
}
