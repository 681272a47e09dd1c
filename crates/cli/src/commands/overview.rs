use std::time::SystemTime;

use threadline_app::{OverviewOptions, OverviewRange};
use threadline_term::render_overview;
use threadline_view::wire::OverviewObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Show activity and cost over all sessions
///
/// The table compares today, 7 days, 30 days and a year with the period before. Everything else is about the
/// selected period, by default the last 30 days. Calls and prompts that a resumed or forked session repeats
/// count once. Active time is that in which the model or tools worked, added up over all sessions; waiting
/// time is that until the next prompt or answer; pauses of more than 30 minutes are idle. These times are
/// estimates, since logs do not record how long a permission was waited for.
///
/// Results are cached in $XDG_CACHE_HOME/threadline, which can be deleted at any time.
#[derive(Debug, clap::Args)]
pub(crate) struct OverviewArgs {
    /// Start of the period: 2026-11-01, 2026-11, `today`, `yesterday`, `7d`, `12h` [default: 30 days]
    ///
    /// `7d` is the last 7 days with today, `year` the last 365, and `all` the whole time. Times are rounded
    /// down to a quarter of an hour.
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// End of the period, inclusive
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// Read all logs without the cache
    #[arg(long)]
    no_cache: bool,
}

pub(crate) fn run(cx: &Context, args: &OverviewArgs) -> Result<CommandOutcome, CommandError> {
    let now = SystemTime::now();
    let here = jiff::Timestamp::try_from(now).unwrap_or_default().to_zoned(cx.zone());
    let range = OverviewRange::parse(args.since.as_deref(), args.until.as_deref(), "30d", &here)?;
    let options = cx.app.overview_options();
    let options = OverviewOptions { cache: options.cache.filter(|_| !args.no_cache), ..options };
    let sessions = cx.store().session_logs();
    let unread = sessions.errors.iter().map(ToString::to_string).collect();
    let progress = cx.ui.progress("reading log", sessions.found.iter().map(|one| one.logs().count()).sum());
    let facts = cx.app.overview_facts_of(&sessions.found, unread, &options, now, &|| progress.step());
    drop(progress);
    let facts = facts?;
    let overview = facts.overview(&range, &here, &cx.app);
    if cx.json {
        let mut answer = cx.ui.output();
        answer.json(&OverviewObject::from(&overview))?;
        answer.finish()?;
    } else {
        let home = cx.app.config().home_dir.as_deref().and_then(std::path::Path::to_str);
        let mut answer = cx.ui.paged_output();
        answer.text(&render_overview(&overview, cx.ui.page(), home))?;
        answer.finish()?;
    }
    for message in &overview.unread {
        cx.ui.warn(message);
    }
    if facts.is_empty() {
        if !cx.note_if_empty() {
            cx.ui.note("no activity in any session");
        }
        return Ok(CommandOutcome::Negative);
    }
    if overview.inactivity().is_some() {
        cx.ui.note("all time: `threadline overview --since all`");
    }
    Ok(if overview.unread.is_empty() { CommandOutcome::Done } else { CommandOutcome::Partial })
}
