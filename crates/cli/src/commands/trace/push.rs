//! `trace push`: sends existing sessions.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use rayon::prelude::*;
use threadline_app::time::range_start;
use threadline_store::{FolderAgents, SessionFile};
use threadline_trace::{
    DeliverySummary, Dialect, ExportError, ExportSummary, Exporter, HttpSender, SpanVisitor, StateDir,
};
use threadline_view::humanize::plural;
use threadline_view::wire::PushObject;

use super::config::{PresetName, ReceiverArgs, SpanArgs, SpanSettings, TraceVariables, state_root};
use super::tree::{self, SpanRows};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Send past sessions
///
/// Progress is saved, so an interrupted push continues where it stopped. Ids are derived from the logs, so
/// sending a turn again creates no duplicates.
#[derive(Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// Session id, unique prefix, title, `last`, or path to a log (can be repeated)
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    sessions: Vec<String>,

    /// Every session
    #[arg(long, conflicts_with = "sessions")]
    all: bool,

    /// Only sessions modified since: 2026-11-01, today, yesterday, 7d, 2w, 12h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Also send turns that were already sent
    #[arg(long)]
    again: bool,

    /// Include unfinished turns
    #[arg(long)]
    unfinished: bool,

    /// Show the spans as a tree and send nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    target: ReceiverArgs,

    #[command(flatten)]
    shape: SpanArgs,
}

/// A session that was not written to for this long is considered finished.
pub(super) const FINISHED_AFTER: Duration = Duration::from_secs(60 * 60);

pub(crate) fn run(cx: &Context, args: &PushArgs) -> Result<CommandOutcome, CommandError> {
    let now = Timestamp::now();
    let (files, unread) = select_sessions(cx, args, now)?;
    for problem in &unread {
        cx.ui.warn(problem);
    }
    let variables = TraceVariables::read()?;
    let settings = SpanSettings::new(&args.shape, &variables, cx.app.prices()?);
    let outcome = if args.dry_run {
        show_spans(cx, args, &files, &variables, &settings, now)?
    } else {
        send_sessions(cx, args, &files, &variables, &settings, now)?
    };
    Ok(if unread.is_empty() { outcome } else { CommandOutcome::Partial })
}

/// A session, and whether its last turn is considered finished.
type SelectedSession = (SessionFile, bool);

/// Returns the selected sessions, oldest first, and the errors of folders that could not be read.
fn select_sessions(
    cx: &Context,
    args: &PushArgs,
    now: Timestamp,
) -> Result<(Vec<SelectedSession>, Vec<String>), CommandError> {
    let mut unread = Vec::new();
    let found = if args.all {
        let listing = cx.store().sessions();
        unread.extend(listing.errors.iter().map(ToString::to_string));
        listing.found
    } else {
        args.sessions.iter().map(|needle| cx.app.find(needle)).collect::<Result<_, _>>()?
    };
    let zone = crate::env::time_zone();
    let now_here = now.to_zoned(zone);
    let since = args.since.as_deref().map(|text| range_start(text, &now_here)).transpose()?.flatten();
    let mut sessions = Vec::new();
    for file in found {
        let written = std::fs::metadata(&file.path).and_then(|metadata| metadata.modified())?;
        let idle = SystemTime::from(now).duration_since(written).unwrap_or_default();
        let written = Timestamp::try_from(written).map_or(i64::MIN, Timestamp::as_millisecond);
        if since.is_none_or(|since| since <= written) {
            sessions.push((written, file, args.unfinished || idle > FINISHED_AFTER));
        }
    }
    // A fork is usually newer than its original.
    sessions.sort_by(|a, b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
    Ok((sessions.into_iter().map(|(_, file, is_over)| (file, is_over)).collect(), unread))
}

/// Prints the spans that would be sent.
fn show_spans(
    cx: &Context,
    args: &PushArgs,
    files: &[SelectedSession],
    variables: &TraceVariables,
    settings: &SpanSettings,
    now: Timestamp,
) -> Result<CommandOutcome, CommandError> {
    // Nothing is sent, so no receiver needs to be configured.
    let dialect = match (args.target.preset, variables.receiver(&args.target)) {
        (Some(PresetName::Langfuse), _) => Dialect::Langfuse,
        (_, Ok(target)) => target.dialect,
        _ => Dialect::GenAi,
    };
    let folders = AgentFolders::of(files);
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    for (file, is_over) in files {
        let mut spans = SpanRows::default();
        let receiver = SpanVisitor::new(|span| spans.add(span));
        let exporter = Exporter {
            options: settings.span_options(dialect),
            receiver: &receiver,
            states: None,
            use_spool: false,
            tries: 1,
            until: None,
            now: now.as_millisecond(),
        };
        exporter.session(file, folders.agents(file), *is_over).map_err(|error| export_error(file, &error))?;
        if cx.json {
            for (span, _) in spans.in_order() {
                answer.json(&tree::span_object(&file.id, span))?;
            }
        } else {
            tree::render(&file.id, &spans, &mut |line| answer.text(line))?;
        }
    }
    answer.finish()?;
    Ok(CommandOutcome::Done)
}

fn send_sessions(
    cx: &Context,
    args: &PushArgs,
    files: &[SelectedSession],
    variables: &TraceVariables,
    settings: &SpanSettings,
    now: Timestamp,
) -> Result<CommandOutcome, CommandError> {
    let target = variables.receiver(&args.target)?;
    let states = StateDir::open(&state_root(cx)?, &target);
    states.prepare(&target)?;
    let sender = HttpSender::new(target);
    let exporter = Exporter {
        options: settings.span_options(sender.target().dialect),
        receiver: &sender,
        states: Some(&states),
        use_spool: false,
        tries: 6,
        until: None,
        now: now.as_millisecond(),
    };
    let folders = AgentFolders::of(files);
    let progress = cx.ui.progress("sent", files.len());
    // A delivery error (wrong keys or address) concerns all sessions, so the remaining ones are skipped.
    let stop: Mutex<Option<String>> = Mutex::new(None);
    let stopped = || stop.lock().clone();
    let results: Vec<Option<Result<ExportSummary, ExportError>>> = files
        .par_iter()
        .map(|(file, is_over)| {
            if stopped().is_some() {
                return None;
            }
            if args.again {
                reset_state(&states, file);
            }
            let result = exporter.session(file, folders.agents(file), *is_over);
            if let Err(ExportError::Undelivered(error)) = &result {
                *stop.lock() = Some(error.to_string());
            }
            progress.step();
            Some(result)
        })
        .collect();
    drop(progress);
    report(cx, files, &results)
}

/// Resets the saved state of a session, so that all of it is sent again.
fn reset_state(states: &StateDir, file: &SessionFile) {
    let key = StateDir::key(file);
    let mut state = states.load(&key);
    state.forget();
    // If the state cannot be saved, sending reports the error.
    let _ = states.save(&key, &state);
}

fn report(
    cx: &Context,
    files: &[SelectedSession],
    results: &[Option<Result<ExportSummary, ExportError>>],
) -> Result<CommandOutcome, CommandError> {
    let mut answer = cx.ui.output();
    let mut total = ExportSummary::default();
    let (mut sent, mut failed, mut untried, mut rejected) = (0, 0, 0, 0);
    for ((file, _), result) in files.iter().zip(results) {
        let nothing = ExportSummary::default();
        let (exported, error) = match result {
            None => {
                untried += 1;
                continue;
            }
            Some(Ok(exported)) => (exported, None),
            Some(Err(error)) => (&nothing, Some(error.to_string())),
        };
        if cx.json {
            answer.json(&PushObject {
                session: &file.id,
                path: &file.path,
                turns: exported.turns,
                spans: exported.spans,
                requests: exported.received.requests,
                refused: exported.received.refused,
                unfinished: exported.is_open,
                error: error.clone(),
            })?;
        }
        match error {
            Some(error) => {
                failed += 1;
                cx.ui.warn(&format!("{}: {error}", file.id));
            }
            None if exported.spans > 0 => sent += 1,
            None => rejected += usize::from(exported.received.refused > 0),
        }
        total.turns += exported.turns;
        total.spans += exported.spans;
        total.received.add(exported.received.clone());
    }
    let DeliverySummary { requests, refused, complaint, .. } = &total.received;
    if !cx.json {
        let unchanged = files.len() - sent - failed - untried - rejected;
        let rejected = if rejected > 0 { format!("{rejected} rejected, ") } else { String::new() };
        writeln!(
            answer,
            "{} sent: {}, {} in {}; {rejected}{unchanged} unchanged",
            plural(sent as u64, "session"),
            plural(total.turns as u64, "turn"),
            plural(total.spans, "span"),
            plural(*requests, "request")
        )?;
    }
    answer.finish()?;
    if *refused > 0 {
        cx.ui.warn(&format!(
            "the receiver rejected {}: {}; --again sends them once more",
            plural(*refused, "span"),
            complaint.as_deref().filter(|why| !why.is_empty()).unwrap_or("no reason given")
        ));
    }
    if untried > 0 {
        let untried = plural(untried as u64, "session");
        cx.ui.warn(&format!("{untried} not attempted; run the same command to continue"));
    }
    Ok(if failed + untried > 0 || *refused > 0 { CommandOutcome::Partial } else { CommandOutcome::Done })
}

fn export_error(file: &SessionFile, error: &ExportError) -> CommandError {
    CommandError::new(format!("{}: {error}", file.path.display()))
}

/// The sub-agent files next to sessions, by folder. Each folder is read once.
struct AgentFolders(std::collections::HashMap<PathBuf, FolderAgents>);

impl AgentFolders {
    fn of(files: &[SelectedSession]) -> Self {
        let mut folders: Vec<PathBuf> =
            files.iter().filter_map(|(file, _)| file.path.parent().map(PathBuf::from)).collect();
        folders.sort();
        folders.dedup();
        Self(folders.into_par_iter().map(|folder| (folder.clone(), FolderAgents::of(&folder))).collect())
    }

    fn agents(&self, file: &SessionFile) -> Vec<threadline_store::AgentFile> {
        let folder = file.path.parent().and_then(|folder| self.0.get(folder));
        folder.map(|folder| folder.of_session(&file.path, &file.id).found).unwrap_or_default()
    }
}
