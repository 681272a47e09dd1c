//! Sends one HTTP request and reads its response.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use threadline_cancel::CancelToken;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};

use crate::config::{ApiConfig, ConfigError};
use crate::error::ApiError;

/// A POST request.
#[derive(Debug)]
pub struct TransportRequest<'a> {
    /// The address.
    pub url: &'a str,
    /// The headers.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

/// A response whose body is read while it arrives.
pub struct TransportResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body. Reading fails with [`io::ErrorKind::TimedOut`] if nothing arrives for too long.
    pub body: Box<dyn Read + Send>,
}

impl std::fmt::Debug for TransportResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransportResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Sends requests. The real one uses HTTP; a demonstration answers from a script.
pub trait Transport: Send + Sync {
    /// Sends a request and returns as soon as the response begins. Cancelling ends this call and every read
    /// of the body.
    fn post(
        &self,
        request: &TransportRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<TransportResponse, ApiError>;
}

/// HTTP/1.1 over TCP or TLS, with one pool of connections.
#[derive(Debug)]
pub struct HttpTransport {
    /// Replaced when a request is cancelled, because that closes all connections of the agent.
    agent: Arc<Mutex<ureq::Agent>>,
    config: ureq::config::Config,
    idle_timeout: Duration,
}

impl HttpTransport {
    /// Creates a transport with the timeouts, proxy and certificates of `config`.
    pub fn new(config: &ApiConfig) -> Result<Self, ConfigError> {
        if !config.base_url.starts_with("http://") && !config.base_url.starts_with("https://") {
            return Err(ConfigError::BaseUrl(config.base_url.clone()));
        }
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &config.ca_certificates {
            tls = tls.root_certs(root_certificates(pem)?);
        }
        let mut builder = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls.build())
            .user_agent(&config.user_agent)
            .max_redirects(0)
            .timeout_connect(Some(config.connect_timeout))
            .timeout_per_read(Some(config.idle_timeout))
            .timeout_per_write(Some(config.idle_timeout))
            .proxy(None);
        if let Some(proxy) = &config.proxy {
            let proxy = ureq::Proxy::new(proxy).map_err(|_| ConfigError::Proxy(proxy.clone()))?;
            builder = builder.proxy(Some(proxy));
        }
        let http = builder.build();
        let agent = Arc::new(Mutex::new(ureq::Agent::from(http.clone())));
        Ok(Self { agent, config: http, idle_timeout: config.idle_timeout })
    }

    /// Returns the agent, and registers that cancelling closes its connections.
    fn agent(&self, cancel: &CancelToken) -> (ureq::Agent, threadline_cancel::CancelGuard) {
        let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (shared, config, in_use) = (Arc::clone(&self.agent), self.config.clone(), agent.clone());
        let guard = cancel.on_cancel(move || {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = ureq::Agent::from(config);
            in_use.shutdown();
        });
        (agent, guard)
    }
}

/// Parses the certificates that are trusted.
fn root_certificates(pem: &[u8]) -> Result<RootCerts, ConfigError> {
    let items = ureq::tls::parse_pem(pem).filter_map(Result::ok);
    let certificates: Vec<Certificate<'static>> = items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() { Err(ConfigError::Certificates) } else { Ok(RootCerts::from(certificates)) }
}

impl Transport for HttpTransport {
    fn post(
        &self,
        request: &TransportRequest<'_>,
        cancel: &CancelToken,
    ) -> Result<TransportResponse, ApiError> {
        let (agent, guard) = self.agent(cancel);
        let mut post = agent.post(request.url);
        for (name, value) in request.headers {
            post = post.header(name, value);
        }
        let response = post.send(request.body).map_err(|error| match error {
            _ if cancel.is_cancelled() => ApiError::Cancelled,
            ureq::Error::Timeout(_) => ApiError::Timeout(self.idle_timeout),
            error => ApiError::Network(error.to_string()),
        })?;
        let (head, body) = response.into_parts();
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let body = CancellableBody { body: body.into_reader(), _guard: guard };
        Ok(TransportResponse { status: head.status.as_u16(), headers, body: Box::new(body) })
    }
}

/// A body that ends when its request is cancelled.
struct CancellableBody<R> {
    body: R,
    _guard: threadline_cancel::CancelGuard,
}

impl<R: Read> Read for CancellableBody<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer).map_err(|error| {
            let is_timeout = error
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<ureq::Error>())
                .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)));
            if is_timeout { io::Error::new(io::ErrorKind::TimedOut, error) } else { error }
        })
    }
}
