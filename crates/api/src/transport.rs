//! Sends one HTTP request and reads its response.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
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
        let mut builder = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls_config(config.ca_certificates.as_deref())?)
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
        let agent = self.agent.lock().clone();
        let (shared, config, in_use) = (Arc::clone(&self.agent), self.config.clone(), agent.clone());
        let guard = cancel.on_cancel(move || {
            *shared.lock() = ureq::Agent::from(config);
            in_use.shutdown();
        });
        (agent, guard)
    }
}

/// Returns the settings of encrypted connections. Certificates in PEM format are trusted besides the usual
/// ones.
pub fn tls_config(ca_certificates: Option<&[u8]>) -> Result<TlsConfig, ConfigError> {
    let mut tls = TlsConfig::builder();
    if let Some(pem) = ca_certificates {
        tls = tls.root_certs(root_certificates(pem)?);
    }
    Ok(tls.build())
}

/// Returns the usual root certificates with further ones in PEM format.
fn root_certificates(pem: &[u8]) -> Result<RootCerts, ConfigError> {
    let items = ureq::tls::parse_pem(pem).filter_map(Result::ok);
    let certificates: Vec<Certificate<'static>> = items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(ConfigError::Certificates);
    }
    let usual =
        webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| Certificate::from_der(der).to_owned());
    Ok(RootCerts::from(usual.chain(certificates).collect::<Vec<_>>()))
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

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUAwepONHXAsg3h+O9VvMNkF8u+40wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMTYxNzIyMjdaGA8yMTI2MTAyMzE3MjIy
N1owDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJZp
FrDoZ41ubUaAJQWBgfdoUSjZmS4uRiTAr5rQ7L8moMcWl47Qy7zhxIzFuKDW0sb7
5csmELsn/SOqaIZoGfSjUzBRMB0GA1UdDgQWBBR/30t3bJF1qHNJjzrP4Hr4/87+
7TAfBgNVHSMEGDAWgBR/30t3bJF1qHNJjzrP4Hr4/87+7TAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIFJJ2NpxCNfeLxEQZFqEsIv6H4E2SyjBLiU2
/fe2/qAjAiEAmy9xBKaTv9CWmrFl7yOfVPbgS18zEehqRMltD5eDP3Y=
-----END CERTIFICATE-----
";

    #[test]
    fn further_certificates_are_added_to_the_usual_ones() {
        let RootCerts::Specific(certificates) = root_certificates(CERTIFICATE.as_bytes()).unwrap() else {
            panic!("not a list")
        };
        assert_eq!(certificates.len(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len() + 1);
        assert!(matches!(root_certificates(b"no certificate"), Err(ConfigError::Certificates)));
    }
}
