mod report;
mod statusline;

use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use threadline_app::time::TimeRange;
use threadline_app::{App, CallQuery, UsageRead, UsageSelection};
use threadline_usage::{CallGroupKey, CallGroups, GroupBy, ModelCall, PriceBook, ScanOptions};

use crate::context::{ArchivedCalls, Context};
use crate::error::{CommandError, CommandOutcome};

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
    #[arg(long, value_name = "GROUP", default_value = "day", value_parser = grouping())]
    by: GroupBy,

    /// Only the group with this name, such as a day, model or prefix of a session id (can be repeated)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Only calls from this day on: 2026-11-01, 2026-11, `today`, `yesterday`, a duration such as `7d`, `2w`,
    /// `12h`, or `all`
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

    /// Order of the groups [default: periods and sessions by time, others by cost]
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["blocks", "explain", "reconcile"])]
    sort: Option<GroupOrder>,

    /// Show only calls, tokens and cost
    #[arg(long, conflicts_with_all = ["csv", "json", "explain", "reconcile"])]
    compact: bool,

    /// Group by five-hour windows of a subscription
    ///
    /// Windows whose end Claude Code logged are exact. The others are estimates (≈) that start at the full
    /// hour (UTC) of the first call. The cost of the active window at its end is an estimate: it assumes that
    /// usage continues at the same rate.
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

impl UsageArgs {
    /// Returns whether an archive can count the calls by itself: sums of all sessions that need nothing else.
    pub(crate) fn can_be_counted_by_archive(&self, json: bool) -> bool {
        // A table of sessions has their titles, and calls are split between tools one by one.
        let is_sum = match self.by {
            GroupBy::Session => json || self.csv,
            by => by != GroupBy::Tool,
        };
        let shows_records = self.blocks || self.explain || self.reconcile;
        self.command.is_none() && self.sessions.is_empty() && is_sum && !shows_records
    }

    /// Returns which calls an archive counts, and their time range.
    pub(crate) fn call_query(&self, app: &App) -> Result<(CallQuery, TimeRange), CommandError> {
        let range = self.range(&Timestamp::now().to_zoned(self.pricing.zone()?))?;
        let context_limits = self.pricing.book(app)?.context_limits();
        Ok((CallQuery { since: range.from, until: range.to, context_limits }, range))
    }

    fn range(&self, now: &Zoned) -> Result<TimeRange, CommandError> {
        Ok(TimeRange::parse(self.since.as_deref(), self.until.as_deref(), now)?)
    }
}

#[derive(Debug, clap::Subcommand)]
enum UsageCommand {
    Statusline(statusline::StatuslineArgs),
}

/// The sources of prices and days.
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
            None => Ok(crate::env::time_zone()),
            Some(name) => crate::env::parse_time_zone(name)
                .map_err(|error| CommandError::new(error).hint("use a name such as Europe/Berlin")),
        }
    }

    fn book(&self, app: &App) -> Result<Arc<PriceBook>, CommandError> {
        match &self.prices {
            Some(file) => Ok(Arc::new(threadline_app::price_list(Some(file))?)),
            None => Ok(app.prices()?),
        }
    }
}

/// Parses the name of a grouping.
fn grouping() -> impl TypedValueParser<Value = GroupBy> {
    let value = |by: GroupBy| PossibleValue::new(by.name()).help(grouping_help(by));
    PossibleValuesParser::new(GroupBy::ALL.map(value))
        .try_map(|name| GroupBy::from_name(&name).ok_or("unknown grouping"))
}

fn grouping_help(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Day => "By day",
        GroupBy::Week => "By week, starting on Monday",
        GroupBy::Month => "By month",
        GroupBy::Session => "By session, including sub-agents",
        GroupBy::Project => "By initial working directory",
        GroupBy::Model => "By model",
        GroupBy::Tool => {
            "By tool, split equally between the tools of a reply; `(none)` for replies without tools"
        }
        GroupBy::Branch => "By project and git branch",
    }
}

/// The order of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GroupOrder {
    /// By name or period, ascending
    Name,
    /// Highest cost first
    Cost,
    /// Most tokens first
    Tokens,
    /// Most calls first
    Calls,
}

impl GroupOrder {
    fn sort(self, groups: &mut CallGroups) {
        match self {
            Self::Name => groups.groups.sort_by(|a, b| a.key.cmp(&b.key)),
            Self::Cost => groups.groups.sort_by_key(|group| Reverse(group.totals.cost)),
            Self::Tokens => groups.groups.sort_by_key(|group| Reverse(group.totals.tokens.total())),
            Self::Calls => groups.groups.sort_by_key(|group| Reverse(group.totals.calls)),
        }
    }
}

pub(crate) fn run(cx: &mut Context, args: &UsageArgs) -> Result<CommandOutcome, CommandError> {
    if let Some(UsageCommand::Statusline(args)) = &args.command {
        return statusline::run(cx, args);
    }
    let zone = args.pricing.zone()?;
    let book = args.pricing.book(&cx.app)?;
    let now = Timestamp::now();
    let archived = cx.archived_calls.take();
    let cx = &*cx;
    let range = match &archived {
        Some(archived) => archived.range,
        None => args.range(&now.to_zoned(zone.clone()))?,
    };
    let UsageSelection { logs, sessions } = cx.app.usage_logs(&args.sessions)?;
    let wants = ScanOptions {
        tools: args.by == GroupBy::Tool,
        records: args.explain,
        lines: false,
        accounts: args.reconcile,
        limits: args.blocks,
    };
    let read = match archived {
        Some(ArchivedCalls { calls, .. }) => UsageRead { calls, unread: Vec::new(), gone: Vec::new() },
        None => {
            let progress = cx.ui.progress("reading log", logs.found.len());
            logs.read(wants, &|| progress.step())
        }
    };
    let chosen = |session: &str| sessions.as_ref().is_none_or(|sessions| sessions.contains(session));
    let keep = |at: Option<i64>, session: &str| range.contains(at) && chosen(session);
    let report = report::UsageReport {
        cx,
        book: &book,
        zone: &zone,
        now: now.as_millisecond(),
        csv: args.csv,
        compact: args.compact,
    };
    let by = args.by;
    let wanted =
        |key: &CallGroupKey| args.only.is_empty() || args.only.iter().any(|name| report.is_named(key, name));
    let mut groups = CallGroups::of(&read.calls, by, &book, &zone, keep);
    let unknown: Vec<&String> = args
        .only
        .iter()
        .filter(|name| !groups.groups.iter().any(|group| report.is_named(&group.key, name)))
        .collect();
    if !unknown.is_empty() && !groups.groups.is_empty() {
        report.note_unknown(&unknown, by, &groups);
    }
    let has_calls = !groups.groups.is_empty();
    if !args.only.is_empty() {
        groups.retain(wanted);
    }
    if let Some(order) = args.sort {
        order.sort(&mut groups);
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
    // Only windows leave calls without a time out.
    let is_undated = |call: &ModelCall<'_>| args.blocks && call.at.is_none() && keep(None, call.session);
    report.write_notes(&read, &groups.total, read.calls.iter().filter(is_undated).count());
    Ok(match (read.unread.is_empty(), found) {
        (false, _) => CommandOutcome::Partial,
        (true, true) => CommandOutcome::Done,
        (true, false) => {
            // Otherwise, the reason was given.
            if !has_calls {
                cx.ui.note("no model calls found");
                cx.note_if_empty();
            }
            CommandOutcome::Negative
        }
    })
}
