//! Sends a request, reads its stream, and retries.

use std::io::Read;
use std::time::{Duration, Instant};

use threadline_cancel::CancelToken;

use crate::config::{ApiConfig, Auth, ConfigError};
use crate::error::ApiError;
use crate::raw_object::RawObject;
use crate::reply::{Reply, ReplyBuilder};
use crate::request::MessagesRequest;
use crate::sse::SseParser;
use crate::stream::StreamEvent;
use crate::transport::{HttpTransport, Transport, TransportRequest, TransportResponse};

/// Something that happens while a request is sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// A request is about to be sent.
    Requesting,
    /// An attempt failed, and the next one follows after a delay.
    Retry {
        /// The number of the retry, from 1.
        attempt: u32,
        /// The largest number of retries.
        max_retries: u32,
        /// The delay before it.
        delay: Duration,
        /// Why the attempt failed.
        error: &'a ApiError,
    },
    /// An event of the stream.
    Stream {
        /// The event as the API sent it.
        raw: &'a str,
        /// The event.
        event: &'a StreamEvent,
        /// The time since the request was sent.
        elapsed: Duration,
    },
    /// A content block is complete; it is the last one of the reply. Comes before the event that ended it.
    Block {
        /// The reply so far.
        reply: &'a Reply,
    },
    /// The stream broke off inside its first block. Everything of it is discarded, and the request is sent
    /// again without streaming.
    Restart,
}

/// Sends requests to the Messages API. Can be shared between threads.
pub struct Client {
    config: ApiConfig,
    transport: Box<dyn Transport>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The largest response that is read without streaming, and the largest error message.
const MAX_BODY: u64 = 64 << 20;

impl Client {
    /// Creates a client that uses HTTP.
    pub fn new(config: ApiConfig) -> Result<Self, ConfigError> {
        let transport = HttpTransport::new(&config)?;
        Ok(Self::with_transport(config, Box::new(transport)))
    }

    /// Creates a client with another transport.
    pub fn with_transport(config: ApiConfig, transport: Box<dyn Transport>) -> Self {
        Self { config, transport }
    }

    /// The settings.
    pub fn config(&self) -> &ApiConfig {
        &self.config
    }

    /// Sends a request and returns the whole reply. `events` is called while it arrives.
    ///
    /// Temporary errors are retried. A stream that breaks off inside its first block is requested once more,
    /// without streaming; one that breaks off later returns what is complete.
    pub fn send(
        &self,
        request: &MessagesRequest,
        cancel: &CancelToken,
        events: &mut dyn FnMut(ClientEvent<'_>),
    ) -> Result<Reply, ApiError> {
        match self.send_with_retries(request, true, cancel, events) {
            Err(error)
                if !cancel.is_cancelled() && (error.is_broken_stream() || error.status() == Some(404)) =>
            {
                events(ClientEvent::Restart);
                self.send_with_retries(request, false, cancel, events)
            }
            result => result,
        }
    }

    /// Counts the tokens of a request without sending it to a model.
    pub fn count_tokens(&self, request: &MessagesRequest, cancel: &CancelToken) -> Result<u64, ApiError> {
        let mut body = RawObject::parse(&String::from_utf8_lossy(&request.body(false)))
            .map_err(|error| ApiError::InvalidResponse(error.to_string()))?;
        for key in ["max_tokens", "metadata", "stream"] {
            body.remove(key);
        }
        let response = self.post("/v1/messages/count_tokens", request, body.to_json().as_bytes(), cancel)?;
        let body = read_all(response.body, cancel)?;
        let answer: RawObject =
            serde_json::from_slice(&body).map_err(|error| ApiError::InvalidResponse(error.to_string()))?;
        answer
            .get_u64("input_tokens")
            .ok_or_else(|| ApiError::InvalidResponse("no `input_tokens`".to_owned()))
    }

    fn send_with_retries(
        &self,
        request: &MessagesRequest,
        stream: bool,
        cancel: &CancelToken,
        events: &mut dyn FnMut(ClientEvent<'_>),
    ) -> Result<Reply, ApiError> {
        let body = request.body(stream);
        for attempt in 1.. {
            let error = match self.attempt(request, &body, stream, cancel, events) {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if cancel.is_cancelled() {
                return Err(ApiError::Cancelled);
            }
            let is_over = stream && error.is_broken_stream();
            let Some(delay) = self.config.retry.delay(attempt, &error, jitter()).filter(|_| !is_over) else {
                return Err(error);
            };
            let max_retries = self.config.retry.max_retries;
            events(ClientEvent::Retry { attempt, max_retries, delay, error: &error });
            if cancel.wait(delay) {
                return Err(ApiError::Cancelled);
            }
        }
        unreachable!("the retry policy ends the loop")
    }

    fn attempt(
        &self,
        request: &MessagesRequest,
        body: &[u8],
        stream: bool,
        cancel: &CancelToken,
        events: &mut dyn FnMut(ClientEvent<'_>),
    ) -> Result<Reply, ApiError> {
        events(ClientEvent::Requesting);
        let start = Instant::now();
        let response = self.post("/v1/messages?beta=true", request, body, cancel)?;
        let header = |name: &str| {
            response
                .headers
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.as_str())
        };
        let request_id = header("request-id").map(str::to_owned);
        let is_stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if !is_stream {
            return Reply::from_response(&read_all(response.body, cancel)?, request_id);
        }
        if !stream {
            return Err(ApiError::InvalidResponse("a stream that was not asked for".to_owned()));
        }
        self.read_stream(response.body, request_id, start, cancel, events)
    }

    /// Reads a stream to its end, or to the first complete block before it breaks.
    fn read_stream(
        &self,
        mut body: Box<dyn Read + Send>,
        request_id: Option<String>,
        start: Instant,
        cancel: &CancelToken,
        events: &mut dyn FnMut(ClientEvent<'_>),
    ) -> Result<Reply, ApiError> {
        let mut builder = ReplyBuilder::new(request_id);
        let mut parser = SseParser::new();
        let mut buffer = vec![0; 16 << 10];
        let mut parsed = Vec::new();
        while !builder.is_complete() {
            let count = match body.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) if cancel.is_cancelled() => return Err(ApiError::Cancelled),
                Err(_) if !builder.reply().blocks.is_empty() => break,
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    return Err(ApiError::Timeout(self.config.idle_timeout));
                }
                Err(_) => return Err(ApiError::Truncated),
            };
            if cancel.is_cancelled() {
                return Err(ApiError::Cancelled);
            }
            if count == 0 {
                break;
            }
            if !parser.push(&buffer[..count], &mut |event| parsed.push(event)) {
                return Err(ApiError::InvalidResponse("a line of the stream is too long".to_owned()));
            }
            for raw in parsed.drain(..) {
                let Some(event) = StreamEvent::parse(&raw.data) else { continue };
                let is_error = matches!(event, StreamEvent::Error { .. });
                let completed = match builder.push(&event) {
                    Ok(completed) => completed,
                    Err(_) if !builder.reply().blocks.is_empty() => return builder.finish(),
                    Err(error) => return Err(error),
                };
                if completed.is_some() {
                    events(ClientEvent::Block { reply: builder.reply() });
                }
                if !is_error {
                    events(ClientEvent::Stream { raw: &raw.data, event: &event, elapsed: start.elapsed() });
                }
            }
        }
        builder.finish()
    }

    fn post(
        &self,
        path: &str,
        request: &MessagesRequest,
        body: &[u8],
        cancel: &CancelToken,
    ) -> Result<TransportResponse, ApiError> {
        if cancel.is_cancelled() {
            return Err(ApiError::Cancelled);
        }
        let url = format!("{}{path}", self.config.base_url.trim_end_matches('/'));
        let headers = self.headers(request)?;
        let response =
            self.transport.post(&TransportRequest { url: &url, headers: &headers, body }, cancel)?;
        if (200..300).contains(&response.status) {
            return Ok(response);
        }
        if response.status == 401
            && let Auth::Source(source) = &self.config.auth
        {
            source.reject();
        }
        // A body that breaks off still has a status.
        let mut text = Vec::new();
        let _ = response.body.take(MAX_BODY).read_to_end(&mut text);
        Err(ApiError::from_response(response.status, &response.headers, &text))
    }

    fn headers(&self, request: &MessagesRequest) -> Result<Vec<(String, String)>, ApiError> {
        let mut headers = vec![
            ("accept".to_owned(), "application/json".to_owned()),
            ("anthropic-version".to_owned(), "2023-06-01".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned()),
        ];
        match &self.config.auth {
            Auth::ApiKey(key) => headers.push(("x-api-key".to_owned(), key.clone())),
            Auth::Bearer(token) => headers.push(("authorization".to_owned(), format!("Bearer {token}"))),
            Auth::Source(source) => {
                let key = source.key().map_err(ApiError::Key)?;
                headers.push(("authorization".to_owned(), format!("Bearer {key}")));
                headers.push(("x-api-key".to_owned(), key));
            }
            Auth::None => {}
        }
        if !request.betas.is_empty() {
            headers.push(("anthropic-beta".to_owned(), request.betas.join(",")));
        }
        for (name, value) in &self.config.headers {
            headers.retain(|(old, _)| !old.eq_ignore_ascii_case(name));
            headers.push((name.clone(), value.clone()));
        }
        Ok(headers)
    }
}

/// Reads a whole body.
fn read_all(body: Box<dyn Read + Send>, cancel: &CancelToken) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    match body.take(MAX_BODY).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) if cancel.is_cancelled() => Err(ApiError::Cancelled),
        Err(_) => Err(ApiError::Truncated),
    }
}

/// Returns a number between 0 and 1 that differs between processes and calls.
fn jitter() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let random = RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1u64 << 53) as f64
}
