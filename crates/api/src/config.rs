//! The address, the key and the limits of the API.

use std::sync::Arc;
use std::time::Duration;

use crate::retry::RetryPolicy;

/// How requests are authenticated.
#[derive(Clone)]
#[non_exhaustive]
pub enum Auth {
    /// An API key, sent as `x-api-key`.
    ApiKey(String),
    /// A token, sent as `Authorization: Bearer`.
    Bearer(String),
    /// A key from elsewhere that may change, sent as `x-api-key` and as a token.
    Source(Arc<dyn KeySource>),
    /// Nothing is sent, for gateways that add the key.
    None,
}

/// Provides keys that may change while the client runs, such as those of a program.
pub trait KeySource: Send + Sync {
    /// Returns the current key.
    ///
    /// # Errors
    /// Returns the reason if there is none.
    fn key(&self) -> Result<String, String>;

    /// Is called when the API has rejected the key. The next call of [`key`](Self::key) should return a new
    /// one.
    fn reject(&self);
}

impl std::fmt::Debug for Auth {
    /// Keys are secrets and are not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ApiKey(_) => "ApiKey(…)",
            Self::Bearer(_) => "Bearer(…)",
            Self::Source(_) => "Source(…)",
            Self::None => "None",
        })
    }
}

/// Where and how requests are sent.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// The address of the API, without `/v1/messages`.
    pub base_url: String,
    /// The key.
    pub auth: Auth,
    /// Further headers. They replace those of the client.
    pub headers: Vec<(String, String)>,
    /// The value of `User-Agent`.
    pub user_agent: String,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long the API may send nothing before the request counts as failed.
    pub idle_timeout: Duration,
    /// When a failed request is sent again.
    pub retry: RetryPolicy,
    /// A proxy for HTTPS and HTTP, as a URL.
    pub proxy: Option<String>,
    /// Certificates in PEM format that are trusted besides the usual ones.
    pub ca_certificates: Option<Vec<u8>>,
}

impl ApiConfig {
    /// The public API with this key, and the usual limits.
    pub fn new(auth: Auth) -> Self {
        Self {
            base_url: "https://api.anthropic.com".to_owned(),
            auth,
            headers: Vec::new(),
            user_agent: concat!("threadline/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            retry: RetryPolicy::default(),
            proxy: None,
            ca_certificates: None,
        }
    }

    /// The host and port of the API, for messages.
    pub fn host(&self) -> &str {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address is not an HTTP URL.
    #[error("`{0}` is not an http:// or https:// address")]
    BaseUrl(String),
    /// The proxy is not a URL that can be used.
    #[error("`{0}` is not the address of a proxy")]
    Proxy(String),
    /// The certificates cannot be read.
    #[error("no certificate in PEM format found in the file with certificates")]
    Certificates,
    /// A header cannot be sent.
    #[error("`{0}` is not a valid header")]
    Header(String),
}
