mod logs;
mod report;
mod statusline;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use threadline_store::logs_below;
use threadline_usage::{Book, By, GroupKey, Groups, Wants};

use self::logs::{Logs, Read};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Count tokens and cost
///
/// Each model call counts once: the lines of a reply, and copies in forks, resumed sessions and logs of
/// sub-agents, are recognised by id. Prices depend on the date of the call. Models without a price are
/// named and not included in the cost. --explain shows every record, counted or not, with the reason.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct UsageArgs {
    #[command(subcommand)]
    command: Option<UsageCommand>,

    /// Session id, unique prefix, title, `last`, path to a log, or a folder with logs (can be repeated)
    /// [default: all]
    #[arg(value_name = "SESSION|FILE|DIR")]
    sessions: Vec<String>,

    /// Grouping
    #[arg(long, value_name = "GROUP", default_value = "day")]
    by: Grouping,

    /// Only the group with this name, such as a day, session or model (can be repeated)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Only calls since: a date, `today`, `yesterday`, or a duration such as `7d`, `2w`, `12h`
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only calls until this day, inclusive
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    #[command(flatten)]
    pricing: Pricing,

    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// Group by five-hour windows of a subscription
    ///
    /// Windows whose end Claude Code logged are exact. The others are estimates that start at the full hour
    /// (UTC) of the first call.
    #[arg(long, conflicts_with_all = ["by", "only", "csv"])]
    blocks: bool,

    /// Show every record, counted or not, with the reason
    ///
    /// With --by and --only, the records of one total: `--by model --only claude-opus-5 --explain`.
    #[arg(long, conflicts_with_all = ["csv", "blocks"])]
    explain: bool,

    /// Compare with the cost that Claude Code logged, for sessions that have it
    #[arg(long, conflicts_with_all = ["by", "only", "csv", "blocks", "explain"])]
    reconcile: bool,
}

#[derive(Debug, clap::Subcommand)]
enum UsageCommand {
    Statusline(statusline::StatuslineArgs),
}

/// Where prices and days come from.
#[derive(Debug, clap::Args)]
struct Pricing {
    /// File with prices that override the built-in ones
    ///
    /// By default $XDG_CONFIG_HOME/threadline/prices.json, if it exists. Format: {"prices": [{"model": …,
    /// "input": …, "output": …, "write_5m": …, "write_1h": …, "read": …}]}, in dollars per million tokens;
    /// `from` is the first day of a price.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,

    /// Time zone for days, such as `Europe/Berlin` or `UTC` [default: the system's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
}

impl Pricing {
    fn zone(&self) -> Result<TimeZone, CommandError> {
        match &self.tz {
            None => Ok(crate::env::zone()),
            Some(name) if name.eq_ignore_ascii_case("utc") => Ok(TimeZone::UTC),
            Some(name) => TimeZone::get(name).map_err(|_| {
                CommandError::new(format!("no time zone `{name}`"))
                    .hint("zones have names such as Europe/Berlin")
            }),
        }
    }

    fn book(&self, cx: &Context) -> Result<Arc<Book>, CommandError> {
        match &self.prices {
            Some(file) => Ok(Arc::new(threadline_app::price_list(Some(file))?)),
            None => Ok(cx.app.prices()?),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Grouping {
    /// By day
    Day,
    /// By week, starting on Monday
    Week,
    /// By month
    Month,
    /// By session, including sub-agents
    Session,
    /// By initial working directory
    Project,
    /// By model
    Model,
    /// By tool, split equally between the tools of a reply; `(none)` for replies without tools
    Tool,
    /// By project and git branch
    Branch,
}

impl From<Grouping> for By {
    fn from(grouping: Grouping) -> Self {
        match grouping {
            Grouping::Day => Self::Day,
            Grouping::Week => Self::Week,
            Grouping::Month => Self::Month,
            Grouping::Session => Self::Session,
            Grouping::Project => Self::Project,
            Grouping::Model => Self::Model,
            Grouping::Tool => Self::Tool,
            Grouping::Branch => Self::Branch,
        }
    }
}

pub(crate) fn run(cx: &Context, args: &UsageArgs) -> Result<Outcome, CommandError> {
    if let Some(UsageCommand::Statusline(args)) = &args.command {
        return statusline::run(cx, args);
    }
    let zone = args.pricing.zone()?;
    let book = args.pricing.book(cx)?;
    let now = Timestamp::now();
    let range = Range::of(args.since.as_deref(), args.until.as_deref(), &zone, now)?;
    let (logs, sessions) = chosen(cx, &args.sessions)?;
    let wants = Wants {
        tools: args.by == Grouping::Tool,
        records: args.explain,
        limits: args.blocks,
        accounts: args.reconcile,
    };
    let read = logs.read(&cx.ui, wants);
    let chosen = |session: &str| sessions.as_ref().is_none_or(|sessions| sessions.contains(session));
    let keep = |at: Option<i64>, session: &str| range.contains(at) && chosen(session);
    let report = report::Report { cx, book: &book, zone: &zone, now: now.as_millisecond(), csv: args.csv };
    let by = args.by.into();
    let wanted =
        |key: &GroupKey| args.only.is_empty() || args.only.iter().any(|name| report::is_named(key, name));
    let mut groups = Groups::of(&read.calls, by, &book, &zone, keep);
    if !args.only.is_empty() {
        groups.retain(wanted);
    }
    let found = if args.explain {
        let marked = (!args.only.is_empty()).then(|| read.calls.in_groups(by, &zone, wanted));
        report.explain(&read.calls, marked.as_deref(), keep)?
    } else if args.reconcile {
        report.reconcile(&read.calls, chosen)?
    } else if args.blocks {
        report.windows(&read.calls, keep)?
    } else {
        report.groups(&read.calls, by, &groups)?
    };
    report.notes(&read, &groups.total);
    Ok(match (read.unread.is_empty(), found) {
        (false, _) => Outcome::Partly,
        (true, true) => Outcome::Done,
        (true, false) => {
            cx.ui.note("no calls found");
            Outcome::No
        }
    })
}

/// The logs to read, and the sessions to count if not all of them.
///
/// A session of the store is counted by reading the whole store: what it inherited from another session is
/// counted there.
fn chosen(cx: &Context, named: &[String]) -> Result<(Logs, Option<HashSet<String>>), CommandError> {
    if named.is_empty() {
        return Ok((cx.store().logs().into(), None));
    }
    let mut logs = Logs::default();
    let mut sessions = HashSet::new();
    let mut in_store = false;
    let mut all = false;
    for what in named {
        if Path::new(what).is_dir() {
            logs.append(logs_below(Path::new(what)));
            all = true;
            continue;
        }
        let file = cx.app.find(what)?;
        in_store |= cx.store().homes().iter().any(|home| file.home.as_ref() == Some(home));
        logs.append(Logs::of_session(&file));
        sessions.insert(file.id.into());
    }
    if all {
        // A folder is counted whole, with whatever else was named.
        return Ok((logs.each_once(), None));
    }
    if in_store {
        logs.append(cx.store().logs());
    }
    Ok((logs.each_once(), Some(sessions)))
}

/// A stretch of time; what is undated is in none but the endless one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    from: Option<i64>,
    to: Option<i64>,
}

impl Range {
    fn of(
        since: Option<&str>,
        until: Option<&str>,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<Self, CommandError> {
        let bound = |text: Option<&str>, end: bool| {
            text.map(|text| moment(text, end, zone, now).ok_or_else(|| not_a_time(text))).transpose()
        };
        Ok(Self { from: bound(since, false)?, to: bound(until, true)? })
    }

    fn contains(self, at: Option<i64>) -> bool {
        match at {
            Some(at) => self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to),
            None => self.from.is_none() && self.to.is_none(),
        }
    }
}

pub(super) fn not_a_time(text: &str) -> CommandError {
    CommandError::new(format!("`{text}` is no day"))
        .hint("days are written as 2026-11-01, today, yesterday, 7d, 2w or 12h")
}

/// The moment that `text` names: the start of a day, or with `end` the start of the day after it.
pub(super) fn moment(text: &str, end: bool, zone: &TimeZone, now: Timestamp) -> Option<i64> {
    let today = now.to_zoned(zone.clone()).date();
    let ago = |days: i64| today.checked_sub(days.days()).ok();
    let day: Option<Date> = match text {
        "today" => Some(today),
        "yesterday" => ago(1),
        _ => {
            let number = || text[..text.len() - 1].parse::<i64>().ok().filter(|n| *n >= 0);
            match text.bytes().last()? {
                b'd' => ago(number()?),
                b'w' => ago(number()?.checked_mul(7)?),
                b'h' => return now.as_millisecond().checked_sub(number()?.checked_mul(3_600_000)?),
                _ => match text.parse::<Timestamp>() {
                    Ok(moment) => return Some(moment.as_millisecond()),
                    Err(_) => text.parse().ok(),
                },
            }
        }
    };
    let day = if end { day?.tomorrow().ok()? } else { day? };
    Some(day.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_and_end_in_their_zone() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(-5));
        let at = |text: &str, end: bool| {
            moment(text, end, &zone, now).map(|at| Timestamp::from_millisecond(at).unwrap().to_string())
        };
        assert_eq!(at("2026-11-01", false).as_deref(), Some("2026-11-01T05:00:00Z"));
        assert_eq!(at("2026-11-01", true).as_deref(), Some("2026-11-02T05:00:00Z"));
        assert_eq!(at("today", false).as_deref(), Some("2026-11-15T05:00:00Z"));
        assert_eq!(at("7d", false).as_deref(), Some("2026-11-08T05:00:00Z"));
        assert_eq!(at("2w", false).as_deref(), Some("2026-11-01T05:00:00Z"));
        assert_eq!(at("12h", true).as_deref(), Some("2026-11-15T00:00:00Z"));
        assert_eq!(at("2026-11-01T10:00:00Z", false).as_deref(), Some("2026-11-01T10:00:00Z"));
        for odd in ["", "d", "-1d", "soon", "2026-13-01", "ü"] {
            assert_eq!(at(odd, false), None, "{odd}");
        }
    }
}
