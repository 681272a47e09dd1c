use std::path::Path;
use std::time::SystemTime;

use threadline_app::time::TimeRange;
use threadline_app::{CardFilter, EMPTY_HINT, FigureOptions};
use threadline_entry::Millis;
use threadline_term::{TableColumn, TermText};
use threadline_view::humanize::{bytes, count, minute, plural, short_id};
use threadline_view::wire::CardObject;
use threadline_view::{Selection, SessionCard, SortBy, TypedTime, short_path};

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

    /// Only sessions active at or after this time: 2026-11-01, 2026-11, `today`, `yesterday`, `7d`, `12h`
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
        for session in &sessions {
            answer.json(&CardObject::from(session))?;
        }
    } else if !sessions.is_empty() {
        answer.text(&render(cx, &zone, &sessions, options.is_some(), args.sort))?;
    }
    answer.finish()?;
    for message in &unread {
        cx.ui.warn(message);
    }
    write_notes(cx, &filter, n_found, sessions.len());
    Ok(match (unread.is_empty(), sessions.is_empty()) {
        (false, _) => CommandOutcome::Partial,
        (true, true) => CommandOutcome::Negative,
        (true, false) => CommandOutcome::Done,
    })
}

fn write_notes(cx: &Context, filter: &CardFilter, n_found: usize, n_shown: usize) {
    if n_shown < n_found {
        cx.ui.note(&format!("{n_shown} of {}", plural(n_found as u64, "session")));
    }
    if n_found > 0 {
        return;
    }
    let CardFilter { project, branch, model, tool, selection, .. } = filter;
    let is_filtered = [project, branch, model, tool].iter().any(|text| text.is_some());
    if is_filtered || selection.has_filter() {
        cx.ui.note("no sessions match these filters");
        return;
    }
    let homes: Vec<_> = cx.store().homes().iter().map(|home| home.root().display().to_string()).collect();
    cx.ui.note(&format!("no sessions in {}", homes.join(", ")));
    cx.ui.note(&format!("hint: {EMPTY_HINT}"));
}

/// The width up to which the names of projects are whole, before further columns are shown.
const MAX_NAME_WIDTH: usize = 24;

fn render(
    cx: &Context,
    zone: &jiff::tz::TimeZone,
    sessions: &[SessionCard],
    has_figures: bool,
    sort: SortOrder,
) -> TermText {
    let mut columns = vec![
        TableColumn { can_shrink: false, ..TableColumn::text("id") },
        TableColumn { can_shrink: false, ..TableColumn::text("last active") },
        TableColumn { can_shrink: false, drop_order: 5, ..TableColumn::text("started") },
        TableColumn { drop_order: 4, ..TableColumn::number("size") },
    ];
    if has_figures {
        columns.push(TableColumn::number("turns"));
        columns.push(TableColumn { drop_order: 6, ..TableColumn::number("errors") });
        columns.push(TableColumn::number("cost"));
    }
    // The last component of a path is its name.
    let names = sessions.iter().filter_map(|session| session.project.rsplit(['/', '\\']).next());
    let name_width = names.map(|name| name.chars().count() + 2).max().unwrap_or(0);
    columns.push(TableColumn {
        keeps_end: true,
        drop_order: 1,
        good_width: name_width.min(MAX_NAME_WIDTH),
        ..TableColumn::text("project")
    });
    columns.push(TableColumn { drop_order: 3, ..TableColumn::text("branch") });
    let has_labels = sessions.iter().any(|session| session.pinned || !session.tags.is_empty());
    if has_labels {
        columns.push(TableColumn { drop_order: 2, ..TableColumn::text("tags") });
    }
    columns.push(TableColumn { min_width: 18, good_width: 40, weight: 3, ..TableColumn::text("title") });
    keep_sort_column(&mut columns, sort);
    let shown = |at: i64| minute(at, zone);
    let home = cx.app.config().home_dir.as_deref().and_then(Path::to_str);
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|session| {
            let mut row = vec![
                short_id(&session.id).to_owned(),
                if session.live {
                    format!("{} live", shown(session.last_active))
                } else {
                    shown(session.last_active)
                },
                session.started.map(shown).unwrap_or_default(),
                bytes(session.size),
            ];
            if has_figures {
                let figures = session.figures.as_ref();
                let number = |value: fn(&threadline_view::LogTally) -> u64| {
                    figures.map_or_else(|| "–".to_owned(), |figures| count(value(&figures.tally)))
                };
                row.push(number(|tally| tally.turns));
                row.push(number(|tally| tally.errors));
                row.push(figures.map_or_else(|| "–".to_owned(), |figures| figures.totals.short_cost()));
            }
            row.push(short_path(&session.project, home));
            row.push(session.branch.clone().unwrap_or_else(|| "–".to_owned()));
            if has_labels {
                let pinned = session.pinned.then_some("pinned");
                let words: Vec<&str> =
                    pinned.into_iter().chain(session.tags.iter().map(|tag| &**tag)).collect();
                row.push(words.join(", "));
            }
            row.push(session.title.clone());
            row
        })
        .collect();
    cx.ui.table(&columns, &rows)
}

/// Keeps the column that the sessions are sorted by on a narrow page.
fn keep_sort_column(columns: &mut [TableColumn], sort: SortOrder) {
    let name = match sort {
        SortOrder::Active => "last active",
        SortOrder::Started => "started",
        SortOrder::Cost => "cost",
        SortOrder::Errors => "errors",
        SortOrder::Turns => "turns",
        SortOrder::Size => "size",
    };
    for column in columns {
        if column.name == name {
            column.drop_order = 0;
        } else if column.name == "last active" && sort == SortOrder::Started {
            // Two times do not fit.
            column.drop_order = 7;
        }
    }
}
