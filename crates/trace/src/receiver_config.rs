//! The receiver of spans, from a preset and environment variables.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;

use crate::otlp::Protocol;
use crate::span_options::Dialect;

/// A receiver and its connection settings.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// The URL that requests are posted to.
    pub url: String,
    /// Headers of every request. They include keys.
    pub headers: Vec<(String, String)>,
    /// The encoding of requests.
    pub protocol: Protocol,
    /// Whether requests are gzip-compressed.
    pub gzip: bool,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The naming convention of spans.
    pub dialect: Dialect,
    /// The attributes of the OTLP resource, which describes the source of all spans.
    pub resource: Vec<(String, String)>,
    /// Certificates to trust instead of the default roots, as PEM.
    pub certificates: Option<Vec<u8>>,
    /// A non-secret name that distinguishes accounts at the same URL.
    pub account: Option<String>,
}

impl std::fmt::Debug for ReceiverConfig {
    /// Omits the headers, which contain keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiverConfig")
            .field("url", &self.url)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

/// A kind of receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverPreset {
    /// Langfuse, cloud or self-hosted.
    Langfuse,
    /// Any receiver of OTLP over HTTP.
    Otlp,
}

/// The receiver options of the command line, which take precedence over the environment.
#[derive(Clone, Debug, Default)]
pub struct ReceiverOptions {
    /// The kind of receiver.
    pub preset: Option<ReceiverPreset>,
    /// Its URL.
    pub endpoint: Option<String>,
    /// The encoding of requests.
    pub protocol: Option<Protocol>,
}

/// Why no receiver could be configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverConfigError {
    /// A key of the pair that Langfuse requires is missing.
    #[error("{0} is not set, but Langfuse requires it")]
    NoKey(&'static str),
    /// No URL is configured.
    #[error("no receiver configured")]
    NoEndpoint,
    /// The URL is not an HTTP URL.
    #[error("`{0}` is not a receiver URL: it must begin with http:// or https://")]
    BadEndpoint(String),
    /// A variable has an invalid value.
    #[error("invalid {name} `{value}`: expected {expected}")]
    BadValue {
        /// The variable's name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The values that are allowed.
        expected: &'static str,
    },
}

/// The environment variables that are read, for the documentation and for callers that load them from a file.
pub const VARIABLES: &[&str] = &[
    "CC_LANGFUSE_PUBLIC_KEY",
    "LANGFUSE_PUBLIC_KEY",
    "CC_LANGFUSE_SECRET_KEY",
    "LANGFUSE_SECRET_KEY",
    "CC_LANGFUSE_BASE_URL",
    "LANGFUSE_BASE_URL",
    "LANGFUSE_HOST",
    "LANGFUSE_BASEURL",
    "LANGFUSE_REGION",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
    "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
];

/// The default timeout of a request, the same as in the OpenTelemetry SDKs.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl ReceiverConfig {
    /// Returns the receiver given by `requested`, or else by environment variables.
    ///
    /// `variable` looks up a variable; an empty value counts as unset.
    pub fn resolve(
        requested: &ReceiverOptions,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ReceiverConfigError> {
        let env = Environment(variable);
        let langfuse_key = || env.first(&["CC_LANGFUSE_PUBLIC_KEY", "LANGFUSE_PUBLIC_KEY"]);
        let otlp = || env.first(&["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]);
        let preset = requested.preset.unwrap_or(match (&requested.endpoint, otlp(), langfuse_key()) {
            (None, _, Some(_)) => ReceiverPreset::Langfuse,
            _ => ReceiverPreset::Otlp,
        });
        let mut target = match preset {
            ReceiverPreset::Langfuse => langfuse(requested, &env)?,
            ReceiverPreset::Otlp => otlp_receiver(requested, &env)?,
        };
        if let Some(protocol) = requested.protocol {
            target.protocol = protocol;
        }
        if !target.url.starts_with("http://") && !target.url.starts_with("https://") {
            return Err(ReceiverConfigError::BadEndpoint(target.url));
        }
        Ok(target)
    }
}

/// Looks up environment variables in order of precedence.
struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// Returns the first value that is set and not empty.
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| (self.0)(name).filter(|value| !value.is_empty()))
    }

    /// Returns the value of an OpenTelemetry variable; the one for traces takes precedence over the general
    /// one.
    fn otel(&self, what: &str) -> Option<String> {
        let own = format!("OTEL_EXPORTER_OTLP_TRACES_{what}");
        let common = format!("OTEL_EXPORTER_OTLP_{what}");
        self.first(&[&own, &common])
    }
}

fn langfuse(
    requested: &ReceiverOptions,
    env: &Environment<'_>,
) -> Result<ReceiverConfig, ReceiverConfigError> {
    let public = env.first(&["CC_LANGFUSE_PUBLIC_KEY", "LANGFUSE_PUBLIC_KEY"]);
    let public = public.ok_or(ReceiverConfigError::NoKey("LANGFUSE_PUBLIC_KEY"))?;
    let secret = env.first(&["CC_LANGFUSE_SECRET_KEY", "LANGFUSE_SECRET_KEY"]);
    let secret = secret.ok_or(ReceiverConfigError::NoKey("LANGFUSE_SECRET_KEY"))?;
    let named = ["CC_LANGFUSE_BASE_URL", "LANGFUSE_BASE_URL", "LANGFUSE_HOST", "LANGFUSE_BASEURL"];
    let base = match requested.endpoint.clone().or_else(|| env.first(&named)) {
        Some(base) => base,
        None => region(env.first(&["LANGFUSE_REGION"]))?.to_owned(),
    };
    let path = "/api/public/otel/v1/traces";
    let base = base.trim_end_matches('/');
    let url = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}{path}") };
    Ok(ReceiverConfig {
        url,
        headers: vec![
            (
                "Authorization".to_owned(),
                format!("Basic {}", BASE64_STANDARD.encode(format!("{public}:{secret}"))),
            ),
            ("x-langfuse-ingestion-version".to_owned(), "4".to_owned()),
        ],
        protocol: Protocol::Protobuf,
        gzip: true,
        timeout: DEFAULT_TIMEOUT,
        dialect: Dialect::Langfuse,
        resource: resource(env),
        certificates: None,
        account: Some(public),
    })
}

/// Returns the URL of a Langfuse cloud region. Keys do not identify their region, so it has to be given; the
/// default is `eu`.
fn region(name: Option<String>) -> Result<&'static str, ReceiverConfigError> {
    let Some(name) = name else { return Ok("https://cloud.langfuse.com") };
    match &*name.to_ascii_lowercase() {
        "eu" => Ok("https://cloud.langfuse.com"),
        "us" => Ok("https://us.cloud.langfuse.com"),
        "jp" => Ok("https://jp.cloud.langfuse.com"),
        "hipaa" => Ok("https://hipaa.cloud.langfuse.com"),
        _ => Err(ReceiverConfigError::BadValue {
            name: "LANGFUSE_REGION",
            value: name,
            expected: "eu, us, jp or hipaa",
        }),
    }
}

fn otlp_receiver(
    requested: &ReceiverOptions,
    env: &Environment<'_>,
) -> Result<ReceiverConfig, ReceiverConfigError> {
    // The variable for traces is a complete URL; the path is appended to the general one, as OpenTelemetry
    // specifies.
    let common = |base: String| {
        let base = base.trim_end_matches('/').to_owned();
        if base.ends_with("/v1/traces") { base } else { format!("{base}/v1/traces") }
    };
    let url = requested
        .endpoint
        .clone()
        .map(common)
        .or_else(|| env.first(&["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]))
        .or_else(|| env.first(&["OTEL_EXPORTER_OTLP_ENDPOINT"]).map(common))
        .ok_or(ReceiverConfigError::NoEndpoint)?;
    let protocol = match env.otel("PROTOCOL").as_deref() {
        None | Some("http/protobuf") => Protocol::Protobuf,
        Some("http/json") => Protocol::Json,
        Some(other) => {
            return Err(ReceiverConfigError::BadValue {
                name: "OTEL_EXPORTER_OTLP_PROTOCOL",
                value: other.to_owned(),
                expected: "http/protobuf or http/json",
            });
        }
    };
    let timeout = env.otel("TIMEOUT").and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
    let headers = pairs(&env.otel("HEADERS").unwrap_or_default());
    Ok(ReceiverConfig {
        url,
        headers,
        protocol,
        gzip: env.otel("COMPRESSION").is_none_or(|value| value != "none"),
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        dialect: Dialect::GenAi,
        resource: resource(env),
        certificates: None,
        account: None,
    })
}

/// Returns the resource attributes. The service name is the first; MLflow identifies the service by it.
fn resource(env: &Environment<'_>) -> Vec<(String, String)> {
    let mut all = pairs(&env.first(&["OTEL_RESOURCE_ATTRIBUTES"]).unwrap_or_default());
    all.retain(|(name, _)| name != "service.name");
    let service = env.first(&["OTEL_SERVICE_NAME"]).unwrap_or_else(|| "claude-code".to_owned());
    all.insert(0, ("service.name".to_owned(), service));
    all
}

/// Parses `a=1,b=2` with percent-encoded values.
fn pairs(list: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let name = name.trim();
        (!name.is_empty())
            .then(|| (name.to_owned(), percent_decode_str(value.trim()).decode_utf8_lossy().into_owned()))
    };
    list.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        requested: &ReceiverOptions,
        variables: &[(&str, &str)],
    ) -> Result<ReceiverConfig, ReceiverConfigError> {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        ReceiverConfig::resolve(requested, &lookup)
    }

    const KEYS: [(&str, &str); 2] = [("LANGFUSE_PUBLIC_KEY", "public"), ("LANGFUSE_SECRET_KEY", "hidden")];

    #[test]
    fn langfuse_is_selected_by_its_keys() {
        let target = find(&ReceiverOptions::default(), &KEYS).unwrap();
        assert_eq!(target.url, "https://cloud.langfuse.com/api/public/otel/v1/traces");
        assert_eq!(target.dialect, Dialect::Langfuse);
        let header =
            |name: &str| target.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
        assert_eq!(
            header("Authorization"),
            Some(&*format!("Basic {}", BASE64_STANDARD.encode("public:hidden")))
        );
        assert_eq!(header("x-langfuse-ingestion-version"), Some("4"));
        assert!(!format!("{target:?}").contains("hidden"));
    }

    #[test]
    fn the_server_is_selected_by_url_or_region() {
        for (name, value, url) in [
            ("LANGFUSE_REGION", "US", "https://us.cloud.langfuse.com"),
            ("LANGFUSE_REGION", "hipaa", "https://hipaa.cloud.langfuse.com"),
            ("LANGFUSE_HOST", "http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
            ("LANGFUSE_BASE_URL", "http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("CC_LANGFUSE_BASE_URL", "http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ] {
            let target = find(&ReceiverOptions::default(), &[KEYS[0], KEYS[1], (name, value)]).unwrap();
            assert_eq!(target.url, format!("{url}/api/public/otel/v1/traces"), "{name}");
        }
        let wrong = find(&ReceiverOptions::default(), &[KEYS[0], KEYS[1], ("LANGFUSE_REGION", "mars")]);
        assert_eq!(
            wrong.unwrap_err().to_string(),
            "invalid LANGFUSE_REGION `mars`: expected eu, us, jp or hipaa"
        );
    }

    #[test]
    fn claude_code_keys_take_precedence_and_empty_ones_are_ignored() {
        let own = ("CC_LANGFUSE_PUBLIC_KEY", "own");
        assert_eq!(
            find(&ReceiverOptions::default(), &[own, KEYS[0], KEYS[1]]).unwrap().account.as_deref(),
            Some("own")
        );
        let empty = ("CC_LANGFUSE_PUBLIC_KEY", "");
        assert_eq!(
            find(&ReceiverOptions::default(), &[empty, KEYS[0], KEYS[1]]).unwrap().account.as_deref(),
            Some("public")
        );
        let missing = find(&ReceiverOptions::default(), &KEYS[..1]).unwrap_err();
        assert_eq!(missing, ReceiverConfigError::NoKey("LANGFUSE_SECRET_KEY"));
    }

    #[test]
    fn a_receiver_is_configured_by_the_otel_variables() {
        let target = find(
            &ReceiverOptions::default(),
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y=1,bad"),
                ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
                ("OTEL_SERVICE_NAME", "mine"),
                ("OTEL_RESOURCE_ATTRIBUTES", "team=loom,service.name=other"),
            ],
        )
        .unwrap();
        assert_eq!(target.url, "http://127.0.0.1:4318/v1/traces");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(target.headers, [pair("x-key", "a b"), pair("y", "1")]);
        assert_eq!((target.protocol, target.gzip), (Protocol::Json, false));
        assert_eq!(target.timeout, Duration::from_millis(2500));
        assert_eq!(target.resource, [pair("service.name", "mine"), pair("team", "loom")]);
    }

    #[test]
    fn a_traces_endpoint_is_used_unchanged_and_a_flag_takes_precedence() {
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/custom");
        assert_eq!(find(&ReceiverOptions::default(), &[traces]).unwrap().url, "http://127.0.0.1:1/custom");
        let requested =
            ReceiverOptions { endpoint: Some("http://127.0.0.1:2".to_owned()), ..ReceiverOptions::default() };
        assert_eq!(
            find(&requested, &[traces, KEYS[0], KEYS[1]]).unwrap().url,
            "http://127.0.0.1:2/v1/traces"
        );
        let requested = ReceiverOptions { preset: Some(ReceiverPreset::Otlp), ..ReceiverOptions::default() };
        assert_eq!(find(&requested, &KEYS).unwrap_err(), ReceiverConfigError::NoEndpoint);
        let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        assert!(matches!(
            find(&ReceiverOptions::default(), &[traces, grpc]),
            Err(ReceiverConfigError::BadValue { .. })
        ));
        let odd =
            ReceiverOptions { endpoint: Some("localhost:4318".to_owned()), ..ReceiverOptions::default() };
        assert_eq!(
            find(&odd, &[]).unwrap_err(),
            ReceiverConfigError::BadEndpoint("localhost:4318/v1/traces".to_owned())
        );
    }
}
