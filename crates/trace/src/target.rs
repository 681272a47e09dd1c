//! Where spans go: presets, and what the environment says.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::otlp::Protocol;
use crate::shape::Dialect;

/// A receiver, and how to talk to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Where requests go.
    pub url: String,
    /// What stands in the head of every request. Keys are among them.
    pub headers: Vec<(String, String)>,
    /// How requests are written.
    pub protocol: Protocol,
    /// Whether they are deflated.
    pub gzip: bool,
    /// How long one may take.
    pub timeout: Duration,
    /// How spans are called.
    pub dialect: Dialect,
    /// What every span is from.
    pub resource: Vec<(String, String)>,
    /// Certificates to trust instead of the usual ones, as PEM.
    pub certificates: Option<Vec<u8>>,
    /// What tells this receiver from another one at the same address, and is no secret.
    pub account: Option<String>,
}

impl std::fmt::Debug for Target {
    /// Without the headers, which hold keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("url", &self.url)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

/// A kind of receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Langfuse, in the cloud or elsewhere.
    Langfuse,
    /// Anything that takes OTLP over HTTP.
    Otlp,
}

/// What was asked for on the command line; it goes before the environment.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The kind of receiver.
    pub preset: Option<Preset>,
    /// Its address.
    pub endpoint: Option<String>,
    /// How requests are written.
    pub protocol: Option<Protocol>,
}

/// Why there is no receiver.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// Langfuse wants a pair of keys.
    #[error("Langfuse needs {0}")]
    NoKey(&'static str),
    /// No address is known.
    #[error("no receiver is known")]
    NoEndpoint,
    /// The address is none.
    #[error("`{0}` is no address of a receiver: it begins with http:// or https://")]
    BadEndpoint(String),
    /// A value that says nothing.
    #[error("{name} is `{value}`, which is not {expected}")]
    BadValue {
        /// The variable.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// The variables that are read, for the documents and for those who keep them in a file.
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

/// How long a request may take where nothing else is said, as the OpenTelemetry SDKs have it.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Target {
    /// The receiver that was asked for, else the one that the environment tells of.
    ///
    /// `variable` looks up a variable and answers nothing for one that is empty.
    pub fn find(asked: &Asked, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, TargetError> {
        let env = Env(variable);
        let langfuse_key = || env.first(&["CC_LANGFUSE_PUBLIC_KEY", "LANGFUSE_PUBLIC_KEY"]);
        let otlp = || env.first(&["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]);
        let preset = asked.preset.unwrap_or(match (&asked.endpoint, otlp(), langfuse_key()) {
            (None, _, Some(_)) => Preset::Langfuse,
            _ => Preset::Otlp,
        });
        let mut target = match preset {
            Preset::Langfuse => langfuse(asked, &env)?,
            Preset::Otlp => generic(asked, &env)?,
        };
        if let Some(protocol) = asked.protocol {
            target.protocol = protocol;
        }
        if !target.url.starts_with("http://") && !target.url.starts_with("https://") {
            return Err(TargetError::BadEndpoint(target.url));
        }
        Ok(target)
    }
}

/// The environment, asked for variables in order of rank.
struct Env<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Env<'_> {
    /// The first that is set to something. An empty one hides nothing.
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| (self.0)(name).filter(|value| !value.is_empty()))
    }

    /// What the OpenTelemetry variable says, rather for traces than for everything.
    fn otel(&self, what: &str) -> Option<String> {
        let own = format!("OTEL_EXPORTER_OTLP_TRACES_{what}");
        let common = format!("OTEL_EXPORTER_OTLP_{what}");
        self.first(&[&own, &common])
    }
}

fn langfuse(asked: &Asked, env: &Env<'_>) -> Result<Target, TargetError> {
    let public = env.first(&["CC_LANGFUSE_PUBLIC_KEY", "LANGFUSE_PUBLIC_KEY"]);
    let public = public.ok_or(TargetError::NoKey("LANGFUSE_PUBLIC_KEY"))?;
    let secret = env.first(&["CC_LANGFUSE_SECRET_KEY", "LANGFUSE_SECRET_KEY"]);
    let secret = secret.ok_or(TargetError::NoKey("LANGFUSE_SECRET_KEY"))?;
    let named = ["CC_LANGFUSE_BASE_URL", "LANGFUSE_BASE_URL", "LANGFUSE_HOST", "LANGFUSE_BASEURL"];
    let base = match asked.endpoint.clone().or_else(|| env.first(&named)) {
        Some(base) => base,
        None => region(env.first(&["LANGFUSE_REGION"]))?.to_owned(),
    };
    let path = "/api/public/otel/v1/traces";
    let base = base.trim_end_matches('/');
    let url = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}{path}") };
    Ok(Target {
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
        timeout: TIMEOUT,
        dialect: Dialect::Langfuse,
        resource: resource(env),
        certificates: None,
        account: Some(public),
    })
}

/// The address of Langfuse's own servers. Keys do not say which of them they are for, so one must be named.
fn region(name: Option<String>) -> Result<&'static str, TargetError> {
    let Some(name) = name else { return Ok("https://cloud.langfuse.com") };
    match &*name.to_ascii_lowercase() {
        "eu" => Ok("https://cloud.langfuse.com"),
        "us" => Ok("https://us.cloud.langfuse.com"),
        "jp" => Ok("https://jp.cloud.langfuse.com"),
        "hipaa" => Ok("https://hipaa.cloud.langfuse.com"),
        _ => Err(TargetError::BadValue {
            name: "LANGFUSE_REGION",
            value: name,
            expected: "eu, us, jp or hipaa",
        }),
    }
}

fn generic(asked: &Asked, env: &Env<'_>) -> Result<Target, TargetError> {
    // The variable for traces is used as it stands; to the common one the path is added.
    let common = |base: String| {
        let base = base.trim_end_matches('/').to_owned();
        if base.ends_with("/v1/traces") { base } else { format!("{base}/v1/traces") }
    };
    let url = asked
        .endpoint
        .clone()
        .map(common)
        .or_else(|| env.first(&["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]))
        .or_else(|| env.first(&["OTEL_EXPORTER_OTLP_ENDPOINT"]).map(common))
        .ok_or(TargetError::NoEndpoint)?;
    let protocol = match env.otel("PROTOCOL").as_deref() {
        None | Some("http/protobuf") => Protocol::Protobuf,
        Some("http/json") => Protocol::Json,
        Some(other) => {
            return Err(TargetError::BadValue {
                name: "OTEL_EXPORTER_OTLP_PROTOCOL",
                value: other.to_owned(),
                expected: "http/protobuf or http/json",
            });
        }
    };
    let timeout = env.otel("TIMEOUT").and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
    let headers = pairs(&env.otel("HEADERS").unwrap_or_default());
    Ok(Target {
        url,
        headers,
        protocol,
        gzip: env.otel("COMPRESSION").is_none_or(|value| value != "none"),
        timeout: timeout.unwrap_or(TIMEOUT),
        dialect: Dialect::GenAi,
        resource: resource(env),
        certificates: None,
        account: None,
    })
}

/// What every span is from. MLflow knows the service by this name.
fn resource(env: &Env<'_>) -> Vec<(String, String)> {
    let mut all = pairs(&env.first(&["OTEL_RESOURCE_ATTRIBUTES"]).unwrap_or_default());
    all.retain(|(name, _)| name != "service.name");
    let service = env.first(&["OTEL_SERVICE_NAME"]).unwrap_or_else(|| "claude-code".to_owned());
    all.insert(0, ("service.name".to_owned(), service));
    all
}

/// `a=1,b=2`, with percent signs as in addresses.
fn pairs(list: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), unescape(value.trim())))
    };
    list.split(',').filter_map(pair).collect()
}

fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let hex = more.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = &more[2..];
            }
            _ => {
                out.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
