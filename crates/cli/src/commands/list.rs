use std::path::Path;
use std::time::SystemTime;

use threadline_app::time::TimeRange;
use threadline_app::{CardFilter, FigureOptions};
use threadline_entry::Millis;
use threadline_term::{TableColumn, TermText};
use threadline_view::humanize::{bytes, count, minute, plural, short_id, time_or_date};
use threadline_view::wire::CardObject;
use threadline_view::{Selection, SessionCard, SessionCardFigures, SortBy, TypedTime, short_path};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// List sessions with turns and cost, last active first
///
/// "Last active" is the time of the last message. Turns and cost are counted from all logs and kept in a
/// cache in $XDG_CACHE_HOME/threadline, which can be deleted at any time; logs that have changed are
/// counted again.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only sessions with these words in their title or first prompt, or with an id that starts with one
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// Only sessions whose project, working directory or project folder contains this
    #[arg(long, short, value_name = "TEXT")]
    project: Option<String>,

    /// Only sessions active at or after this time: 2026-11-01, 2026-11, `today`, `yesterday`, `7d`, `12h`,
    /// `all`
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only sessions started before the end of this day or time
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// Only sessions on a branch that contains this
    #[arg(long, value_name = "TEXT")]
    branch: Option<String>,

    /// Only sessions that used a model whose name contains this
    #[arg(long, value_name = "TEXT")]
    model: Option<String>,

    /// Only sessions that called this tool; `mcp__*` for several
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Only sessions with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// Only pinned sessions
    #[arg(long)]
    pinned: bool,

    /// Sort order
    #[arg(long, value_name = "ORDER", default_value = "active")]
    sort: SortOrder,

    /// Maximum number of sessions; 0 for all
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,

    /// Include logs without a title or prompt
    #[arg(long, short)]
    all: bool,

    /// Do not count turns and cost: read only the first and last lines of each log
    #[arg(long, conflicts_with_all = ["model", "tool"])]
    no_figures: bool,

    /// Count turns and cost without the cache
    #[arg(long, conflicts_with = "no_figures")]
    no_cache: bool,
}

/// The order of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SortOrder {
    /// Last active first
    Active,
    /// Last started first
    Started,
    /// Highest cost first
    Cost,
    /// Most errors first
    Errors,
    /// Most turns first
    Turns,
    /// Largest log first
    Size,
}

impl From<SortOrder> for SortBy {
    fn from(order: SortOrder) -> Self {
        match order {
            SortOrder::Active => Self::Active,
            SortOrder::Started => Self::Started,
            SortOrder::Cost => Self::Cost,
            SortOrder::Errors => Self::Errors,
            SortOrder::Turns => Self::Turns,
            SortOrder::Size => Self::Size,
        }
    }
}

pub(crate) fn run(cx: &Context, args: &ListArgs) -> Result<CommandOutcome, CommandError> {
    let zone = cx.zone();
    let now = SystemTime::now();
    let today = jiff::Timestamp::try_from(now).unwrap_or_default().to_zoned(zone.clone());
    let range = TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &today)?;
    let typed = |text: &Option<String>, at: Option<Millis>| {
        text.clone().zip(at).map(|(text, at)| TypedTime { text, at })
    };
    let filter = CardFilter {
        selection: Selection {
            words: args.query.join(" "),
            since: typed(&args.since, range.from),
            until: typed(&args.until, range.to),
            tag: args.tag.clone(),
            pinned: args.pinned,
            sort: args.sort.into(),
            ..Selection::default()
        },
        project: args.project.clone(),
        branch: args.branch.clone(),
        model: args.model.clone(),
        tool: args.tool.clone(),
        untitled: args.all,
    };
    if args.no_figures && filter.needs_figures() {
        return Err(CommandError::new("this order needs figures").hint("leave out --no-figures"));
    }
    let options = (!args.no_figures).then(|| {
        let options = cx.app.figure_options();
        FigureOptions { cache: options.cache.filter(|_| !args.no_cache), ..options }
    });
    // The number of logs is known when they are listed.
    let progress = cx.ui.progress("reading log", 0);
    let listed = cx.app.list_cards(&filter, &zone, options.as_ref(), now, &|n_logs| progress.step_of(n_logs));
    drop(progress);
    let (mut sessions, unread) = listed?;
    let n_found = sessions.len();
    sessions.truncate(args.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX));
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        answer.json_lines(&sessions, CardObject::from)?;
    } else if !sessions.is_empty() {
        answer.text(&render(cx, &today, &sessions, options.is_some(), args.sort))?;
    }
    answer.finish()?;
    for message in &unread {
        cx.ui.warn(message);
    }
    let is_fork =
        |session: &SessionCard| session.figures.as_ref().is_some_and(|figures| figures.inherited_calls > 0);
    if !cx.json && sessions.iter().any(is_fork) {
        cx.ui.note(&format!("{INHERITED} forks: their turns include calls that count in another session"));
    }
    write_notes(cx, &filter, n_found, sessions.len());
    let outcome = match (unread.is_empty(), sessions.is_empty()) {
        (false, _) => CommandOutcome::Partial,
        (true, true) => CommandOutcome::Negative,
        (true, false) => CommandOutcome::Done,
    };
    // The process ends soon. To free the cards one by one would take longer.
    std::mem::forget(sessions);
    Ok(outcome)
}

/// Returns the cost of the calls that a session made itself, with a mark if its turns include others.
fn cost(figures: &SessionCardFigures) -> String {
    let cost = figures.totals.short_cost();
    if figures.inherited_calls > 0 { format!("{cost} {INHERITED}") } else { cost }
}

/// Marks the cost of a session whose turns include calls of other sessions.
const INHERITED: char = '+';

fn write_notes(cx: &Context, filter: &CardFilter, n_found: usize, n_shown: usize) {
    if n_shown < n_found {
        cx.ui.note(&format!("{n_shown} of {}", plural(n_found as u64, "session")));
    }
    if n_found > 0 {
        return;
    }
    if cx.note_if_empty() {
        return;
    }
    let CardFilter { project, branch, model, tool, selection, .. } = filter;
    let is_filtered = [project, branch, model, tool].iter().any(|text| text.is_some());
    cx.ui.note(match is_filtered || selection.has_filter() {
        true => "no sessions match these filters",
        false => "no sessions with a title or prompt; --all lists the others",
    });
}

/// On a page with fewer columns, times and projects are shortened for the sake of the titles.
const WIDE_PAGE: usize = 120;

/// How the sessions are shown.
struct ListLayout {
    /// The current time, in the zone of the person.
    now: jiff::Zoned,
    has_figures: bool,
    has_labels: bool,
    is_narrow: bool,
    sort: SortOrder,
}

fn render(
    cx: &Context,
    now: &jiff::Zoned,
    sessions: &[SessionCard],
    has_figures: bool,
    sort: SortOrder,
) -> TermText {
    let layout = ListLayout {
        now: now.clone(),
        has_figures,
        has_labels: sessions.iter().any(|session| session.pinned || !session.tags.is_empty()),
        is_narrow: cx.ui.page().width.is_some_and(|width| width < WIDE_PAGE),
        sort,
    };
    let home = cx.app.config().home_dir.as_deref().and_then(Path::to_str);
    let rows: Vec<Vec<String>> = sessions.iter().map(|session| layout.row(session, home)).collect();
    cx.ui.table(&layout.columns(sessions), &rows)
}

/// Returns the last component of the path of a project.
fn project_name(session: &SessionCard) -> &str {
    session.project.rsplit(['/', '\\']).find(|name| !name.is_empty()).unwrap_or(&session.project)
}

impl ListLayout {
    fn columns(&self, sessions: &[SessionCard]) -> Vec<TableColumn> {
        let active = if self.is_narrow { "active" } else { "last active" };
        let mut columns = vec![
            TableColumn { can_shrink: false, ..TableColumn::text("id") },
            TableColumn { can_shrink: false, ..TableColumn::text(active) },
            TableColumn { can_shrink: false, drop_order: 6, ..TableColumn::text("started") },
            TableColumn { drop_order: 5, ..TableColumn::number("size") },
        ];
        if self.has_figures {
            columns.push(TableColumn { drop_order: 1, ..TableColumn::number("turns") });
            columns.push(TableColumn { drop_order: 2, ..TableColumn::number("errors") });
            columns.push(TableColumn { drop_order: 1, ..TableColumn::number("cost") });
        }
        columns.push(match self.is_narrow {
            true => TableColumn { drop_order: 1, ..TableColumn::text("project") },
            false => {
                let width = sessions.iter().map(|session| project_name(session).chars().count() + 2).max();
                // Names of projects are whole up to this width, before further columns are shown.
                let good_width = width.unwrap_or(0).min(24);
                TableColumn { keeps_end: true, drop_order: 1, good_width, ..TableColumn::text("project") }
            }
        });
        columns.push(TableColumn { drop_order: 4, ..TableColumn::text("branch") });
        if self.has_labels {
            columns.push(TableColumn { drop_order: 3, ..TableColumn::text("tags") });
        }
        let good_width = if self.is_narrow { 32 } else { 40 };
        columns.push(TableColumn { min_width: 18, good_width, weight: 3, ..TableColumn::text("title") });
        self.keep_sort_column(&mut columns);
        columns
    }

    /// Keeps the column that the sessions are sorted by on a narrow page.
    fn keep_sort_column(&self, columns: &mut [TableColumn]) {
        // The time of the last message is in the second column, whatever its name is.
        if self.sort == SortOrder::Started {
            // Two times do not fit.
            columns[1].drop_order = 7;
        }
        let name = match self.sort {
            SortOrder::Active => return,
            SortOrder::Started => "started",
            SortOrder::Cost => "cost",
            SortOrder::Errors => "errors",
            SortOrder::Turns => "turns",
            SortOrder::Size => "size",
        };
        columns.iter_mut().filter(|column| column.name == name).for_each(|column| column.drop_order = 0);
    }

    fn row(&self, session: &SessionCard, home: Option<&str>) -> Vec<String> {
        let mut row = vec![
            short_id(&session.id).to_owned(),
            self.last_active(session),
            session.started.map(|at| self.time(at)).unwrap_or_default(),
            bytes(session.size),
        ];
        if self.has_figures {
            let figures = session.figures.as_deref();
            let number = |value: fn(&threadline_view::LogTally) -> u64| {
                figures.map_or_else(|| "–".to_owned(), |figures| count(value(&figures.tally)))
            };
            row.push(number(|tally| tally.turns));
            row.push(number(|tally| tally.errors));
            row.push(figures.map_or_else(|| "–".to_owned(), cost));
        }
        row.push(match self.is_narrow {
            true => project_name(session).to_owned(),
            false => short_path(&session.project, home),
        });
        row.push(session.branch.clone().unwrap_or_else(|| "–".to_owned()));
        if self.has_labels {
            let pinned = session.pinned.then_some("pinned");
            let words: Vec<&str> = pinned.into_iter().chain(session.tags.iter().map(|tag| &**tag)).collect();
            row.push(words.join(", "));
        }
        row.push(session.title.clone());
        row
    }

    fn time(&self, at: Millis) -> String {
        match self.is_narrow {
            true => time_or_date(at, &self.now),
            false => minute(at, self.now.time_zone()),
        }
    }

    fn last_active(&self, session: &SessionCard) -> String {
        let time = self.time(session.last_active);
        match session.live {
            // The time of an earlier day does not fit beside it.
            true if self.is_narrow && time.len() > 5 => "live".to_owned(),
            true => format!("{time} live"),
            false => time,
        }
    }
}
