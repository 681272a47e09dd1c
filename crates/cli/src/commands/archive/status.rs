//! `archive status`: archived and missing sessions, and those that Claude Code deletes next.

use std::time::{Duration, SystemTime};

use threadline_archive::{Archive, HomeStatus, LocalSession};
use threadline_settings::user_settings;
use threadline_term::{visible, visible_name};
use threadline_view::humanize::{bytes, plural};
use threadline_view::wire::{ArchiveHomeObject, ArchiveSessionObject};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::{env, machine};

/// Show what is archived, what is missing, and what Claude Code deletes next
///
/// Exits with 1 if a session is not archived.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// List every session
    #[arg(long, short)]
    all: bool,
}

/// The number of days after which Claude Code deletes sessions, unless its settings say otherwise.
const CLEANUP_DAYS: f64 = 30.0;

/// Sessions that will be deleted within this time are listed.
const SOON: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(crate) fn run(cx: &Context, args: &StatusArgs) -> Result<CommandOutcome, CommandError> {
    let location = super::location(cx, cx.source.from.as_deref())?;
    // Without a push, the default archive does not exist yet.
    let archive = match cx.source.from {
        Some(_) => super::open(cx)?,
        None => Archive::create_with_key(&location, &env::storage_options(), cx.archive_key()?)?,
    };
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    let mut is_complete = true;
    for home in cx.store().homes().iter().filter(|home| home.root().is_dir()) {
        let origin = machine::origin(cx.app.state_dir()?, home.root())?;
        let status = archive.status(cx.store(), home, &origin)?;
        is_complete &= status.missing.is_empty() && status.changed.is_empty();
        let days = user_settings(home.root()).cleanup_period_days.unwrap_or(CLEANUP_DAYS).max(0.0);
        let keeps = Duration::try_from_secs_f64(days * 24.0 * 60.0 * 60.0).unwrap_or(Duration::MAX);
        if cx.json {
            answer.json(&object(&location.to_string(), home.root(), days, keeps, &status))?;
            continue;
        }
        writeln!(answer, "{} in {location}", visible_name(&home.root().to_string_lossy()))?;
        let size = |sessions: &[LocalSession]| bytes(sessions.iter().map(|session| session.size).sum());
        for (sessions, what) in [
            (&status.archived, "archived"),
            (&status.changed, "changed since"),
            (&status.missing, "not archived"),
        ] {
            writeln!(answer, "  {:>6}  {what} ({})", sessions.len(), size(sessions))?;
        }
        writeln!(answer, "  {:>6}  in the archive only", status.archive_only.len())?;
        let limit = if args.all { usize::MAX } else { 10 };
        for id in status.archive_only.iter().take(limit) {
            writeln!(answer, "          {}", visible(id))?;
        }
        let lost = &status.prompts_only;
        if !lost.is_empty() {
            writeln!(
                answer,
                "  {:>6}  deleted before they were archived; only their prompts are left",
                lost.len()
            )?;
            for (id, prompts) in lost.iter().take(limit) {
                writeln!(answer, "          {}  {}", visible(id), plural(*prompts as u64, "prompt"))?;
            }
        }
        let next = next_deletions(&status, keeps, SystemTime::now());
        let zone = cx.zone();
        writeln!(answer, "Claude Code deletes sessions {days} days after their last change")?;
        for (session, at) in next.iter().take(limit) {
            let day = jiff::Timestamp::try_from(*at).map(|at| at.to_zoned(zone.clone()).date().to_string());
            let state = if is_in(&status.archived, session) { "archived" } else { "NOT archived" };
            writeln!(answer, "  {}  {}  {state}", day.unwrap_or_default(), visible(&session.id))?;
        }
        if next.len() > limit {
            writeln!(answer, "  and {} more within a week (--all lists them)", next.len() - limit)?;
        }
    }
    answer.finish()?;
    if !is_complete {
        cx.ui.note("hint: copy them: `threadline archive push`");
    }
    Ok(if is_complete { CommandOutcome::Done } else { CommandOutcome::Negative })
}

fn is_in(sessions: &[LocalSession], session: &LocalSession) -> bool {
    sessions.iter().any(|other| other.id == session.id)
}

/// Returns the sessions that Claude Code deletes within a week, and when, soonest first.
fn next_deletions(status: &HomeStatus, keeps: Duration, now: SystemTime) -> Vec<(&LocalSession, SystemTime)> {
    let sessions = status.archived.iter().chain(&status.changed).chain(&status.missing);
    let mut next: Vec<_> = sessions
        .filter_map(|session| Some((session, session.modified.checked_add(keeps)?)))
        .filter(|(_, at)| *at <= now + SOON)
        .collect();
    next.sort_by_key(|(session, at)| (*at, session.id.clone()));
    next
}

fn object<'a>(
    location: &'a str,
    home: &'a std::path::Path,
    days: f64,
    keeps: Duration,
    status: &'a HomeStatus,
) -> ArchiveHomeObject<'a> {
    let session = |state: &'static str| {
        move |session: &'a LocalSession| ArchiveSessionObject {
            id: &session.id,
            state,
            size_bytes: Some(session.size),
            prompts: None,
            deleted_at: session
                .modified
                .checked_add(keeps)
                .and_then(|at| jiff::Timestamp::try_from(at).ok())
                .map(|at| at.to_string()),
        }
    };
    let other = |id: &'a str, state: &'static str, prompts: Option<usize>| ArchiveSessionObject {
        id,
        state,
        size_bytes: None,
        prompts,
        deleted_at: None,
    };
    let mut sessions: Vec<_> = status.archived.iter().map(session("archived")).collect();
    sessions.extend(status.changed.iter().map(session("changed")));
    sessions.extend(status.missing.iter().map(session("missing")));
    sessions.extend(status.archive_only.iter().map(|id| other(id, "archive_only", None)));
    sessions
        .extend(status.prompts_only.iter().map(|(id, prompts)| other(id, "prompts_only", Some(*prompts))));
    ArchiveHomeObject { location, home, cleanup_period_days: days, sessions }
}
