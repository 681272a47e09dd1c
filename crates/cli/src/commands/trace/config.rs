//! Configuration of traces, from flags, environment variables and a key file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy;
use threadline_secret::Rules;
use threadline_trace::{
    ContentPolicy, Dialect, Protocol, ReceiverConfig, ReceiverConfigError, ReceiverOptions, ReceiverPreset,
    SpanOptions,
};
use threadline_usage::PriceBook;

use crate::context::Context;
use crate::env;
use crate::error::CommandError;

/// The receiver of traces.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ReceiverArgs {
    /// Kind of receiver [default: from the environment]
    #[arg(long, value_name = "KIND")]
    pub(crate) preset: Option<PresetName>,

    /// URL of the receiver, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,

    /// Encoding of requests
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<ProtocolName>,
}

/// The content of traces.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SpanArgs {
    /// Amount of content to send
    #[arg(long, value_name = "AMOUNT", default_value = "truncated")]
    pub(crate) content: ContentName,

    /// Truncate values longer than this many bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) limit: Option<usize>,

    /// Do not redact secrets
    #[arg(long)]
    pub(crate) no_redact: bool,

    /// User id on every trace [env: LANGFUSE_USER_ID]
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<String>,

    /// Tag on every trace (can be repeated)
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,

    /// Environment on every trace [env: LANGFUSE_TRACING_ENVIRONMENT]
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,

    /// Release on every trace [env: LANGFUSE_RELEASE]
    #[arg(long, value_name = "NAME")]
    pub(crate) release: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PresetName {
    /// Langfuse: LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL or LANGFUSE_REGION
    Langfuse,
    /// Any OTLP receiver over HTTP: OTEL_EXPORTER_OTLP_ENDPOINT and related variables
    Otlp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProtocolName {
    #[value(name = "http/protobuf")]
    Protobuf,
    #[value(name = "http/json")]
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ContentName {
    /// Structure, times, models, tokens and tool names
    None,
    /// Also directory, branch, version, descriptions
    Metadata,
    /// Also content, each value truncated at 16 kB
    Truncated,
    /// Also content, up to 1 MB per value
    Full,
}

impl ContentName {
    pub(crate) fn policy(self) -> ContentPolicy {
        match self {
            Self::None => ContentPolicy::None,
            Self::Metadata => ContentPolicy::Metadata,
            Self::Truncated => ContentPolicy::Truncated,
            Self::Full => ContentPolicy::Full,
        }
    }
}

/// Environment variables, with those of a private key file as a fallback.
pub(crate) struct TraceVariables {
    key_file_values: Vec<(String, String)>,
    key_file: Option<PathBuf>,
}

impl TraceVariables {
    /// Reads the key file, if it exists. Returns an error if others can read it.
    pub(crate) fn read() -> Result<Self, CommandError> {
        let Some(path) = key_file() else { return Ok(Self { key_file_values: Vec::new(), key_file: None }) };
        match threadline_store::read_text_file(&path) {
            Ok(text) => {
                check_private(&path)?;
                Ok(Self { key_file_values: parse_key_file(&text), key_file: Some(path) })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self { key_file_values: Vec::new(), key_file: Some(path) })
            }
            Err(error) => Err(CommandError::new(format!("cannot read {}: {error}", path.display()))),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let kept = || {
            self.key_file_values.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        env::get(name).or_else(kept).filter(|value| !value.is_empty())
    }

    /// Returns the receiver that flags and variables select.
    pub(crate) fn receiver(&self, args: &ReceiverArgs) -> Result<ReceiverConfig, CommandError> {
        let asked = ReceiverOptions {
            preset: args.preset.map(|preset| match preset {
                PresetName::Langfuse => ReceiverPreset::Langfuse,
                PresetName::Otlp => ReceiverPreset::Otlp,
            }),
            endpoint: args.endpoint.clone(),
            protocol: args.protocol.map(|protocol| match protocol {
                ProtocolName::Protobuf => Protocol::Protobuf,
                ProtocolName::Json => Protocol::Json,
            }),
        };
        let mut target = ReceiverConfig::resolve(&asked, &|name| self.get(name))
            .map_err(|error| self.config_error(&error))?;
        let certificate = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
        if let Some(path) = certificate.iter().find_map(|name| self.get(name)) {
            let pem = std::fs::read(&path);
            target.certificates =
                Some(pem.map_err(|error| CommandError::new(format!("cannot read {path}: {error}")))?);
        }
        Ok(target)
    }

    fn config_error(&self, error: &ReceiverConfigError) -> CommandError {
        let described = CommandError::new(error.to_string());
        let file = self.key_file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        match error {
            ReceiverConfigError::NoKey(_) => {
                described.hint(format!("set it in the environment, or write it to {file} (mode 0600)"))
            }
            ReceiverConfigError::NoEndpoint => described
                .hint("for an OpenTelemetry receiver, use --endpoint URL or set OTEL_EXPORTER_OTLP_ENDPOINT")
                .hint(format!("for Langfuse, set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in the environment or in {file}")),
            _ => described,
        }
    }
}

/// Parses lines of the form `NAME=value`; `#` starts a comment line.
fn parse_key_file(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = value.trim();
        let bare = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q)).unwrap_or(value);
        Some((name.trim().to_owned(), bare.to_owned()))
    };
    lines.filter_map(pair).collect()
}

#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), CommandError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(CommandError::new(format!("{} is readable by other users", path.display()))
        .hint(format!("chmod 600 {}", path.display())))
}

#[cfg(not(unix))]
fn check_private(_path: &Path) -> Result<(), CommandError> {
    Ok(())
}

/// Returns the path of the key file.
pub(crate) fn key_file() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("threadline").join("trace.env"))
}

/// The folder with the export states of sessions.
pub(crate) fn state_root(cx: &Context) -> Result<PathBuf, CommandError> {
    Ok(cx.app.state_dir()?.join("trace"))
}

/// The values that a [`SpanOptions`] borrows.
pub(crate) struct SpanSettings {
    rules: Option<Rules>,
    prices: Arc<PriceBook>,
    args: SpanArgs,
}

impl SpanSettings {
    pub(crate) fn new(args: &SpanArgs, variables: &TraceVariables, prices: Arc<PriceBook>) -> Self {
        let mut args = args.clone();
        args.user = args.user.or_else(|| variables.get(env::LANGFUSE_USER_ID));
        args.environment = args.environment.or_else(|| variables.get(env::LANGFUSE_TRACING_ENVIRONMENT));
        args.release = args.release.or_else(|| variables.get(env::LANGFUSE_RELEASE));
        let redacts = !args.no_redact && args.content.policy() > ContentPolicy::None;
        Self { rules: redacts.then(Rules::new), prices, args }
    }

    pub(crate) fn span_options(&self, dialect: Dialect) -> SpanOptions<'_> {
        SpanOptions {
            content: self.args.content.policy(),
            limit: self.args.limit,
            redact: self.rules.as_ref().map(Into::into),
            dialect,
            user: self.args.user.as_deref(),
            tags: &self.args.tag,
            environment: self.args.environment.as_deref(),
            release: self.args.release.as_deref(),
            prices: &self.prices,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_parsed_like_a_shell_script() {
        let text = "# keys\nA=1\nexport B=\"two words\"\n C = 'x' \nnothing\nEMPTY=\n";
        let pairs = parse_key_file(text);
        let borrowed: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(borrowed, [("A", "1"), ("B", "two words"), ("C", "x"), ("EMPTY", "")]);
    }
}
