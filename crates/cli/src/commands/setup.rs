//! `setup`: turns the features that Claude Code runs on and off.

use std::path::PathBuf;

use threadline_settings::{HookFeature, McpEntry, SettingsChange, StatusLine};
use threadline_term::{TableColumn, TextLabel};
use threadline_view::wire::{SetupLogObject, SetupObject};

use super::archive::install as archive;
use super::hook::hook_log;
use super::hook_settings::{
    self, HookSettingsArgs, SettingsScope, change_settings, program_word, read, settings_path,
};
use super::mcp::install as mcp;
use super::trace::install as trace;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Turn features on that Claude Code runs: archive, files, trace, mcp, statusline
///
/// Without a name, shows which are on. With one, shows how the settings change; --apply writes that, and
/// --remove turns the feature off. Everything else in the settings stays unchanged.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SetupArgs {
    #[command(subcommand)]
    feature: Option<SetupFeature>,

    /// Show what hooks did, newest last
    #[arg(long)]
    log: bool,

    /// The number of lines of --log
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, requires = "log")]
    lines: usize,
}

#[derive(Debug, clap::Subcommand)]
enum SetupFeature {
    Archive(SetupArchiveArgs),
    Files(SetupFilesArgs),
    Trace(SetupTraceArgs),
    Mcp(SetupMcpArgs),
    Statusline(SetupStatuslineArgs),
}

/// Copy every session into an archive when it ends, by a hook, or every hour, by a timer
///
/// Shows the change; --apply writes it. The timer is a systemd user unit (Linux) or a launchd agent (macOS),
/// which --apply also starts.
#[derive(Debug, clap::Args)]
struct SetupArchiveArgs {
    #[command(flatten)]
    install: archive::InstallArgs,

    /// Turn the feature off
    #[arg(long)]
    remove: bool,
}

/// Keep the texts of files around shell calls
///
/// A log does not contain what a shell command does to files. The hook compares the project before and after
/// each call, also of sub-agents, in every mode, and if the call fails, and keeps the texts of files that
/// changed below the state folder, at most 500 MB (`files_limit` in config.toml), the newest. Files that git
/// ignores are included if the session names them. Secrets are not: of files such as `.env` and keys, and of
/// those in which `edit redact` would find a secret, only hashes are kept. `edit redact` and `edit delete`
/// also remove the copies.
#[derive(Debug, clap::Args)]
struct SetupFilesArgs {
    #[command(flatten)]
    settings: HookSettingsArgs,

    /// Turn the feature off; copies stay
    #[arg(long)]
    remove: bool,
}

/// Send every new turn as a trace
///
/// Shows the change; --apply writes it. Keys are never written to settings: they are read from the
/// environment, or from a private file.
#[derive(Debug, clap::Args)]
struct SetupTraceArgs {
    #[command(flatten)]
    install: trace::InstallArgs,

    /// Turn the feature off
    #[arg(long)]
    remove: bool,
}

/// Let Claude Code search and read sessions, by the MCP server
///
/// Shows the change of Claude Code's configuration; --apply writes it. Close Claude Code before: it writes
/// the same file, and may not read the change. --remove undoes it. --home is written as an option of the
/// server.
#[derive(Debug, clap::Args)]
struct SetupMcpArgs {
    #[command(flatten)]
    install: mcp::McpInstallArgs,

    /// Turn the feature off
    #[arg(long)]
    remove: bool,
}

/// Show cost and context of the session in the status line of Claude Code
///
/// Shows the change; --apply writes it. The status line of another program is kept.
#[derive(Debug, clap::Args)]
struct SetupStatuslineArgs {
    #[command(flatten)]
    settings: HookSettingsArgs,

    /// Turn the feature off
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(cx: &Context, args: &SetupArgs) -> Result<CommandOutcome, CommandError> {
    match &args.feature {
        None if args.log => show_log(cx, args.lines),
        None => show_features(cx),
        Some(SetupFeature::Archive(args)) if args.remove => {
            archive::run_uninstall(cx, &args.install.uninstall())
        }
        Some(SetupFeature::Archive(args)) => archive::run(cx, &args.install),
        Some(SetupFeature::Files(args)) if args.remove => {
            hook_settings::uninstall(cx, &args.settings, HookFeature::FILES)
        }
        Some(SetupFeature::Files(args)) => hook_settings::install(cx, &args.settings, HookFeature::FILES, ""),
        Some(SetupFeature::Trace(args)) if args.remove => trace::run_uninstall(cx, &args.install.uninstall()),
        Some(SetupFeature::Trace(args)) => trace::run(cx, &args.install),
        Some(SetupFeature::Mcp(args)) if args.remove => mcp::uninstall(cx, &args.install.uninstall()),
        Some(SetupFeature::Mcp(args)) => mcp::run(cx, &args.install),
        Some(SetupFeature::Statusline(args)) => run_statusline(cx, args),
    }
}

fn run_statusline(cx: &Context, args: &SetupStatuslineArgs) -> Result<CommandOutcome, CommandError> {
    if args.remove {
        return change_settings(cx, &args.settings, "turned off statusline", |before| match before {
            Some(text) => StatusLine::uninstall(text),
            None => Ok(SettingsChange::None),
        });
    }
    let line = StatusLine { command: format!("{} usage statusline", program_word()?) };
    change_settings(cx, &args.settings, "turned on statusline", |before| line.install(before))
}

/// A feature, and what is known of it.
#[derive(Debug, Default)]
struct FeatureState {
    name: &'static str,
    /// The files that turn it on.
    places: Vec<PathBuf>,
    last_run: Option<String>,
    last_error: Option<String>,
}

/// The names of the features, in the order of the table.
const FEATURES: [&str; 5] = ["archive", "files", "trace", "mcp", "statusline"];

fn feature_states(cx: &Context) -> Result<Vec<FeatureState>, CommandError> {
    let program = program_word()?;
    let mut states = FEATURES.map(|name| FeatureState { name, ..FeatureState::default() });
    let mut add = |name: &str, place: PathBuf| {
        let state = states.iter_mut().find(|state| state.name == name);
        if let Some(state) = state.filter(|state| !state.places.contains(&place)) {
            state.places.push(place);
        }
    };
    for scope in [SettingsScope::User, SettingsScope::Project, SettingsScope::Local] {
        let path = settings_path(cx, scope)?;
        let Some(text) = read(&path)? else { continue };
        for hook in HookFeature::installed(&text, &program) {
            add(hook.feature, path.clone());
        }
        if StatusLine::installed(&text).is_some() {
            add("statusline", path);
        }
    }
    for path in mcp::config_files(cx)? {
        if read(&path)?.is_some_and(|text| McpEntry::is_installed(&text)) {
            add("mcp", path);
        }
    }
    archive::timer_files().into_iter().for_each(|path| add("archive", path));
    let log = log_lines(cx, usize::MAX)?;
    for state in &mut states {
        let own = || log.iter().rev().filter(|line| line.feature == state.name);
        let (run, error) = (own().next(), own().find(|line| line.level == "ERROR"));
        state.last_run = run.map(|line| line.at.clone());
        state.last_error = error.map(|line| format!("{} {}", line.at, line.text));
    }
    Ok(states.into())
}

fn show_features(cx: &Context) -> Result<CommandOutcome, CommandError> {
    let states = feature_states(cx)?;
    let mut answer = cx.ui.output();
    if cx.json {
        for state in &states {
            let last_run = state.last_run.as_deref();
            answer.json(&SetupObject {
                feature: state.name,
                on: !state.places.is_empty(),
                paths: &state.places,
                last_run,
                last_error: state.last_error.as_deref(),
            })?;
        }
        answer.finish()?;
        return Ok(CommandOutcome::Done);
    }
    let columns = [
        TableColumn { can_shrink: false, ..TableColumn::text("feature") },
        TableColumn { can_shrink: false, ..TableColumn::text("state") },
        TableColumn { min_width: 20, ..TableColumn::text("where") },
        TableColumn { can_shrink: false, ..TableColumn::text("last run") },
        TableColumn { can_shrink: true, ..TableColumn::text("last error") },
    ];
    let row = |state: &FeatureState| {
        let is_on = if state.places.is_empty() { "off" } else { "on" };
        let places: Vec<String> = state.places.iter().map(|path| path.display().to_string()).collect();
        let last_run = state.last_run.as_deref().map(short_time).unwrap_or_default();
        let error = state.last_error.clone().unwrap_or_default();
        vec![state.name.to_owned(), is_on.to_owned(), places.join(", "), last_run, error]
    };
    answer.text(&cx.ui.table(&columns, &states.iter().map(row).collect::<Vec<_>>()))?;
    answer.finish()?;
    cx.ui.note("turn one on: `threadline setup NAME`; off: `threadline setup NAME --remove`");
    Ok(CommandOutcome::Done)
}

/// Returns the time of a line of a log without fractions of seconds.
fn short_time(at: &str) -> String {
    at.get(..19).unwrap_or(at).replace('T', " ")
}

/// A line of the log of hooks.
#[derive(Debug)]
struct HookLogLine {
    at: String,
    level: String,
    feature: String,
    text: String,
}

/// Returns the last lines of the logs of all hooks, newest last.
fn log_lines(cx: &Context, count: usize) -> Result<Vec<HookLogLine>, CommandError> {
    let state_dir = cx.app.state_dir()?;
    let split = |line: String, feature: Option<&str>| {
        let mut words = line.splitn(3, ' ');
        let (at, level, text) = (words.next()?, words.next()?, words.next()?);
        let (feature, text) = match feature {
            Some(feature) => (feature, text),
            None => text.split_once(": ")?,
        };
        let [at, level, feature, text] = [at, level, feature, text].map(str::to_owned);
        Some(HookLogLine { at, level, feature, text })
    };
    let trace = threadline_trace::HookLog::open(&state_dir.join("trace")).tail(count);
    let mut lines: Vec<HookLogLine> =
        trace.into_iter().filter_map(|line| split(line, Some("trace"))).collect();
    lines.extend(hook_log(state_dir).tail(count).into_iter().filter_map(|line| split(line, None)));
    lines.sort_by(|a, b| a.at.cmp(&b.at));
    let first = lines.len().saturating_sub(count);
    Ok(lines.split_off(first))
}

fn show_log(cx: &Context, count: usize) -> Result<CommandOutcome, CommandError> {
    let lines = log_lines(cx, count)?;
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    for line in &lines {
        let HookLogLine { at, level, feature, text } = line;
        if cx.json {
            answer.json(&SetupLogObject { at, level, feature, text })?;
            continue;
        }
        let time = cx.ui.page().paint(TextLabel::Dim, short_time(at));
        let text = threadline_term::visible(text);
        writeln!(answer, "{time} {level} {feature}: {text}")?;
    }
    answer.finish()?;
    if lines.is_empty() {
        cx.ui.note("no hook has run yet");
    }
    Ok(CommandOutcome::Done)
}
