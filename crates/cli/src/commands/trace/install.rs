//! `trace install` and `trace uninstall`: the hook in Claude Code's settings.

use threadline_settings::HookFeature;
use threadline_view::shell_word;

use super::config::{ContentName, PresetName, ProtocolName, TraceVariables, key_file};
use crate::commands::hook_settings::{self, HookSettingsArgs};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Add the hook to Claude Code's settings
///
/// Shows the change; --apply writes it. Everything else in the file stays unchanged. Keys are never written
/// to settings: they are read from the environment, or from a private file.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    settings: HookSettingsArgs,

    /// Kind of receiver [default: from the environment when the hook runs]
    #[arg(long, value_name = "KIND")]
    preset: Option<PresetName>,

    /// URL of the receiver
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,

    /// Encoding of requests
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<ProtocolName>,

    /// Amount of content to send
    #[arg(long, value_name = "AMOUNT")]
    content: Option<ContentName>,
}

/// Remove the hook from Claude Code's settings
///
/// Shows the change; --apply writes it. The rest of the file stays byte-identical.
#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    settings: HookSettingsArgs,
}

pub(crate) fn run(cx: &Context, args: &InstallArgs) -> Result<CommandOutcome, CommandError> {
    let outcome = hook_settings::install(cx, &args.settings, HookFeature::TRACE, &hook_arguments(args)?)?;
    let target = super::config::ReceiverArgs {
        preset: args.preset,
        endpoint: args.endpoint.clone(),
        protocol: args.protocol,
    };
    if let Err(error) = TraceVariables::read()?.receiver(&target) {
        cx.ui.warn(error.to_string().trim_start_matches("error: ").trim_end());
        if let Some(file) = key_file() {
            cx.ui.note(&format!("put the keys into {} (mode 0600)", file.display()));
        }
    }
    Ok(outcome)
}

pub(crate) fn run_uninstall(cx: &Context, args: &UninstallArgs) -> Result<CommandOutcome, CommandError> {
    hook_settings::uninstall(cx, &args.settings, HookFeature::TRACE)
}

impl InstallArgs {
    /// Returns the arguments that remove what these install.
    pub(crate) fn uninstall(&self) -> UninstallArgs {
        UninstallArgs { settings: self.settings.clone() }
    }
}

/// Returns the arguments of the hook, without keys.
fn hook_arguments(args: &InstallArgs) -> Result<String, CommandError> {
    let mut words = Vec::new();
    let name = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
        value().map(|value| value.get_name().to_owned())
    };
    use clap::ValueEnum;
    if let Some(preset) = args.preset.and_then(|preset| name(&|| preset.to_possible_value())) {
        words.extend(["--preset".to_owned(), preset]);
    }
    if let Some(endpoint) = &args.endpoint {
        if endpoint.contains('@') {
            return Err(CommandError::new(
                "--endpoint contains a key, which would be written to the settings",
            )
            .hint("put it into OTEL_EXPORTER_OTLP_HEADERS"));
        }
        words.extend(["--endpoint".to_owned(), shell_word(endpoint).into_owned()]);
    }
    if let Some(protocol) = args.protocol.and_then(|protocol| name(&|| protocol.to_possible_value())) {
        words.extend(["--protocol".to_owned(), protocol]);
    }
    if let Some(content) = args.content.and_then(|content| name(&|| content.to_possible_value())) {
        words.extend(["--content".to_owned(), content]);
    }
    Ok(words.join(" "))
}
