//! HTTP requests to one server.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use threadline_api::{SseEvent, SseParser, tls_config};
use threadline_cancel::{CancelGuard, CancelToken};
use ureq::Body;
use ureq::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};

use crate::exchange::MAX_MESSAGE;

/// Settings for servers over HTTP.
#[derive(Clone, Debug)]
pub struct McpHttpOptions {
    /// Returns the proxy for an address.
    pub proxy: fn(&str) -> Option<String>,
    /// Certificates in PEM format that are trusted besides the usual ones.
    pub ca_certificates: Option<Vec<u8>>,
    /// The value of the header `User-Agent`.
    pub user_agent: String,
}

/// How long a message without an answer, and the end of a session, may take.
const SHORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends requests to one server. A connection serves one request at a time, so that it can be closed alone.
pub(crate) struct HttpClient {
    url: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    config: ureq::config::Config,
    /// Agents with a connection that may be open.
    idle: Arc<Mutex<Vec<ureq::Agent>>>,
}

/// A request to the server.
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Uri,
    pub(crate) accept: &'static str,
    pub(crate) headers: &'a [(&'static str, String)],
    pub(crate) body: &'a str,
    /// Whether the request takes a short time only.
    pub(crate) is_short: bool,
}

impl HttpClient {
    /// Checks the address and the headers of a server.
    ///
    /// # Errors
    /// Returns the reason why the server cannot be used.
    pub(crate) fn new(
        url: &str,
        headers: &[(String, String)],
        options: &McpHttpOptions,
        connect_timeout: Duration,
    ) -> Result<Self, String> {
        let address: Uri = url.parse().map_err(|error| format!("its address is not valid: {error}"))?;
        if !matches!(address.scheme_str(), Some("http" | "https")) || address.host().is_none() {
            return Err("its address is not an http or https address".to_owned());
        }
        let headers = headers.iter().map(|(name, value)| {
            let invalid = || format!("its header `{name}` is not valid");
            let parsed = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
            Ok((parsed, HeaderValue::try_from(value.as_str()).map_err(|_| invalid())?))
        });
        let headers = headers.collect::<Result<Vec<_>, String>>()?;
        let tls = tls_config(options.ca_certificates.as_deref()).map_err(|error| error.to_string())?;
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls)
            .user_agent(&options.user_agent)
            // A redirect could send the headers, and with them credentials, to another server.
            .max_redirects(0)
            .timeout_connect(Some(connect_timeout))
            .proxy(None);
        if let Some(proxy) = (options.proxy)(url) {
            let parsed = ureq::Proxy::new(&proxy).map_err(|_| format!("the proxy `{proxy}` is not valid"))?;
            config = config.proxy(Some(parsed));
        }
        Ok(Self { url: address, headers, config: config.build(), idle: Arc::default() })
    }

    /// The address of the server.
    pub(crate) fn url(&self) -> &Uri {
        &self.url
    }

    /// Sends a request and returns the head of its response. Cancelling closes the connection.
    pub(crate) fn send(
        &self,
        request: &HttpRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<HttpResponse, String> {
        let agent = self.idle.lock().pop();
        let agent = agent.unwrap_or_else(|| ureq::Agent::from(self.config.clone()));
        let closed = agent.clone();
        let guard = cancel.on_cancel(move || closed.shutdown());
        if cancel.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        let mut builder = Request::builder().method(&request.method).uri(request.url);
        builder = builder.header("accept", request.accept);
        if !request.body.is_empty() {
            builder = builder.header("content-type", "application/json");
        }
        for (name, value) in request.headers {
            builder = builder.header(*name, value);
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        let http = builder.body(request.body).map_err(|error| error.to_string())?;
        let timeout = request.is_short.then_some(SHORT_TIMEOUT);
        let http = agent.configure_request(http).timeout_global(timeout).build();
        let response = agent.run(http).map_err(|error| error_text(&error))?;
        let pool = Arc::clone(&self.idle);
        Ok(HttpResponse { response, connection: UsedConnection { agent, pool, _guard: guard } })
    }
}

fn error_text(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "the server did not answer in time".to_owned(),
        error => format!("the server cannot be reached: {error}"),
    }
}

/// The connection of a response.
struct UsedConnection {
    agent: ureq::Agent,
    pool: Arc<Mutex<Vec<ureq::Agent>>>,
    _guard: CancelGuard,
}

impl UsedConnection {
    /// Keeps the connection for another request.
    fn release(self, cancel: &CancelToken) {
        let Self { agent, pool, _guard } = self;
        drop(_guard);
        // An agent that was shut down accepts no request.
        if !cancel.is_cancelled() {
            pool.lock().push(agent);
        }
    }
}

/// A response whose body was not read yet.
pub(crate) struct HttpResponse {
    response: Response<Body>,
    connection: UsedConnection,
}

impl HttpResponse {
    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the media type without parameters.
    pub(crate) fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns an error unless the server accepted the request.
    pub(crate) fn check(self) -> Result<Self, String> {
        let status = self.status();
        if status.is_success() {
            return Ok(self);
        }
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                format!("the server wants other credentials (HTTP status {}); set `headers`", status.as_u16())
            }
            _ if status.is_redirection() => {
                format!("the server redirects to another address (HTTP status {})", status.as_u16())
            }
            _ => format!("the server answered with HTTP status {}", status.as_u16()),
        })
    }

    /// Reads the body as text.
    pub(crate) fn text(self, cancel: &CancelToken) -> Result<String, String> {
        let mut bytes = Vec::new();
        let mut body = self.response.into_body().into_reader().take(MAX_MESSAGE as u64 + 1);
        body.read_to_end(&mut bytes).map_err(|_| interrupted())?;
        if bytes.len() > MAX_MESSAGE {
            return Err(too_long());
        }
        drop(body);
        self.connection.release(cancel);
        String::from_utf8(bytes).map_err(|_| "the answer is not UTF-8".to_owned())
    }

    /// Reads the body as a stream of events until it ends, or `handle` returns `false` or an error.
    pub(crate) fn events(
        self,
        handle: &mut dyn FnMut(SseEvent) -> Result<bool, String>,
    ) -> Result<(), String> {
        let mut body = self.response.into_body().into_reader();
        let mut parser = SseParser::new();
        let mut buffer = [0; 16 << 10];
        let mut unfinished = 0;
        loop {
            let length = body.read(&mut buffer).map_err(|_| interrupted())?;
            if length == 0 {
                return Ok(());
            }
            unfinished += length;
            let mut events = Vec::new();
            let is_valid = parser.push(&buffer[..length], &mut |event| events.push(event));
            if !events.is_empty() {
                unfinished = 0;
            }
            for event in events {
                if !handle(event)? {
                    return Ok(());
                }
            }
            if !is_valid || unfinished > MAX_MESSAGE {
                return Err(too_long());
            }
        }
    }
}

fn interrupted() -> String {
    "the connection was interrupted".to_owned()
}

fn too_long() -> String {
    format!("a message of the server is longer than {} MB", MAX_MESSAGE >> 20)
}
