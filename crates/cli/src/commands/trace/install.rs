//! `trace install` and `trace uninstall`: the hook in Claude Code's settings.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use similar::TextDiff;
use threadline_trace::{SettingsChange, install, uninstall};
use threadline_view::shell_word;
use threadline_view::wire::InstallObject;

use super::config::{ContentName, PresetName, ProtocolName, TraceVariables, key_file};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Add the hook to Claude Code's settings
///
/// Shows the change; --apply writes it. Everything else in the file stays unchanged. Keys are never written
/// to settings: they are read from the environment, or from a private file.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    /// Settings file to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: SettingsScope,

    /// Write the change
    #[arg(long)]
    apply: bool,

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
    /// Settings file to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: SettingsScope,

    /// Write the change
    #[arg(long)]
    apply: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SettingsScope {
    /// Your settings for all projects: settings.json in Claude Code's folder
    User,
    /// Shared settings of the project: .claude/settings.json
    Project,
    /// Your settings for this project: .claude/settings.local.json
    Local,
}

pub(crate) fn run(cx: &Context, args: &InstallArgs) -> Result<CommandOutcome, CommandError> {
    let path = settings_path(cx, args.scope)?;
    let before = read(&path)?;
    let change =
        install(before.as_deref(), &hook_command(args)?).map_err(|error| settings_error(&path, &error))?;
    let outcome = show_or_apply(cx, &path, before.as_deref(), &change, args.apply)?;
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
    let path = settings_path(cx, args.scope)?;
    let before = read(&path)?;
    let change = match &before {
        Some(text) => uninstall(text).map_err(|error| settings_error(&path, &error))?,
        None => SettingsChange::None,
    };
    show_or_apply(cx, &path, before.as_deref(), &change, args.apply)
}

/// Shows a change, and applies it if `apply` is set.
fn show_or_apply(
    cx: &Context,
    path: &Path,
    before: Option<&str>,
    change: &SettingsChange,
    apply: bool,
) -> Result<CommandOutcome, CommandError> {
    let after = match change {
        SettingsChange::Write(after) => Some(&**after),
        SettingsChange::None => before,
        SettingsChange::Remove => None,
    };
    let changed = *change != SettingsChange::None;
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&InstallObject { path, changed, applied: changed && apply, settings: after })?;
    } else if changed {
        writeln!(answer, "{}", path.display())?;
        let difference = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
        answer.patch(cx.ui.page(), &difference.unified_diff().context_radius(2).to_string())?;
    } else {
        writeln!(answer, "{}: no changes", path.display())?;
    }
    answer.finish()?;
    if changed && apply {
        match after {
            Some(after) => replace_file(path, after)?,
            None => std::fs::remove_file(path)?,
        }
    } else if changed {
        cx.ui.note("dry run: nothing written; add --apply to write");
    }
    Ok(CommandOutcome::Done)
}

/// Returns the command line of the hook, without keys.
fn hook_command(args: &InstallArgs) -> Result<String, CommandError> {
    let program = std::env::current_exe()?;
    let program =
        program.to_str().ok_or_else(|| CommandError::new("the path of this program is not valid UTF-8"))?;
    let mut words = vec![shell_word(program).into_owned(), "trace".to_owned(), "hook".to_owned()];
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

fn settings_path(cx: &Context, scope: SettingsScope) -> Result<PathBuf, CommandError> {
    Ok(match scope {
        SettingsScope::User => {
            let home = cx
                .store()
                .homes()
                .first()
                .ok_or_else(|| CommandError::new("no Claude Code home found").hint("use --home DIR"))?;
            home.root().join("settings.json")
        }
        SettingsScope::Project => std::env::current_dir()?.join(".claude/settings.json"),
        SettingsScope::Local => std::env::current_dir()?.join(".claude/settings.local.json"),
    })
}

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::new(format!("cannot read {}: {error}", path.display()))),
    }
}

fn settings_error(path: &Path, error: &threadline_trace::InstallError) -> CommandError {
    CommandError::new(format!("{}: {error}", path.display())).hint("the file was not changed")
}

/// Replaces a file atomically, following links and keeping its permissions.
fn replace_file(path: &Path, text: &str) -> Result<(), CommandError> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".settings").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(&real) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&real).map_err(|error| error.error)?;
    Ok(())
}
