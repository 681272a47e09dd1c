//! Activity: prompts by day and hour, tools, commands, files and times.

use threadline_view::{humanize, short_tool};

use super::{Figures, section, time};
use crate::lists::chart::{self, CalendarDay, ChartBar, HeatCell};
use crate::lists::figure_table::{FigureCell, figure_table};
use crate::lists::link;
use crate::lists::usage_table::percent;
use crate::markup::Markup;
use crate::text_format;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

pub(super) fn calendar(out: &mut Markup, figures: Figures<'_>) {
    let days = &figures.overview.calendar;
    let Some(last) = days.last() else { return };
    section(out, "Calendar", "prompts per day of a year; darker is more");
    let most = days.iter().map(|day| day.prompts).max().unwrap_or(0).max(1);
    let day_link = |day: &str| figures.time_link("/records", day, day, &[("kind", "prompts")]);
    let active = days.iter().filter(|day| day.prompts > 0);
    let cells: Vec<CalendarDay> = active
        .clone()
        .map(|day| CalendarDay {
            day: day.day,
            href: day_link(&day.day.to_string()),
            title: format!(
                "{}: {}, {}",
                day.day.strftime("%A, %-d %B %Y"),
                humanize::plural(day.prompts, "prompt"),
                text_format::money(day.cost)
            ),
            share: day.prompts as f64 / most as f64,
        })
        .collect();
    chart::calendar(out, "Prompts per day", &cells, last.day);
    let rows = active.rev().map(|day| {
        let date = day.day.to_string();
        let usage = figures.time_link("/usage", &date, &date, &[]);
        let sessions = figures.time_link("/sessions", &date, &date, &[]);
        vec![
            FigureCell::link(date.clone(), sessions),
            FigureCell::link(humanize::count(day.prompts), day_link(&date)),
            FigureCell::link(text_format::money(day.cost), usage),
        ]
    });
    figure_table(out, &[("day", false), ("prompts", true), ("cost", true)], rows, Some("Table of days"));
    out.lit("</section>\n");
}

pub(super) fn hours(out: &mut Markup, figures: Figures<'_>) {
    let hours = &figures.overview.hours;
    section(out, "Hours of the week", "prompts in the period; darker is more");
    let most = hours.iter().flatten().copied().max().unwrap_or(0).max(1);
    let cell_link = |weekday: usize, hour: usize| {
        let (weekday, hour) = (weekday.to_string(), hour.to_string());
        figures.records(&[("kind", "prompts"), ("weekday", &weekday), ("hour", &hour)])
    };
    let cells = hours.iter().enumerate().flat_map(|(weekday, day)| {
        let cell = move |(hour, prompts): (usize, &u64)| HeatCell {
            row: weekday,
            column: hour,
            href: cell_link(weekday, hour),
            title: format!("{} {hour:02}:00: {}", WEEKDAYS[weekday], humanize::plural(*prompts, "prompt")),
            share: *prompts as f64 / most as f64,
        };
        day.iter().enumerate().filter(|(_, prompts)| **prompts > 0).map(cell)
    });
    let cells: Vec<HeatCell> = cells.collect();
    chart::heat_map(out, "Prompts by weekday and hour", &WEEKDAYS, &cells);
    const HOURS: [&str; 24] = [
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17",
        "18", "19", "20", "21", "22", "23",
    ];
    let columns: Vec<(&'static str, bool)> =
        std::iter::once(("", false)).chain(HOURS.iter().map(|hour| (*hour, true))).collect();
    let rows = hours.iter().enumerate().map(|(weekday, day)| {
        let cells = day.iter().enumerate().map(|(hour, prompts)| match prompts {
            0 => FigureCell::plain("0"),
            _ => FigureCell::link(humanize::count(*prompts), cell_link(weekday, hour)),
        });
        std::iter::once(FigureCell::plain(WEEKDAYS[weekday])).chain(cells).collect()
    });
    figure_table(out, &columns, rows, Some("Table of hours"));
    out.lit("</section>\n");
}

fn more_text(order: &str, rest: usize) -> String {
    match rest {
        0 => order.to_owned(),
        rest => format!("{order}; {} more", humanize::count(rest as u64)),
    }
}

pub(super) fn tools(out: &mut Markup, figures: Figures<'_>) {
    let overview = figures.overview;
    let rest = overview.n_tools.saturating_sub(overview.tools.len());
    section(out, "Tools", &more_text("most calls first", rest));
    let bars: Vec<ChartBar> = overview
        .tools
        .iter()
        .map(|tool| ChartBar {
            label: text_format::excerpt(short_tool(&tool.tool), 24),
            href: Some(figures.records(&[("tool", &tool.tool)])),
            title: format!(
                "{}: {}, {} failed",
                tool.tool,
                humanize::plural(tool.calls, "call"),
                humanize::count(tool.failed)
            ),
            value: tool.calls as f64,
            shown: humanize::count(tool.calls),
        })
        .collect();
    chart::bars(out, "Calls by tool", &bars);
    let duration = |time: Option<i64>, tool: &str| match time {
        None => FigureCell::plain("–"),
        Some(time) => {
            let longest = figures.records(&[("tool", tool), ("sort", "longest")]);
            FigureCell::link(humanize::duration(time), longest)
        }
    };
    let rows = overview.tools.iter().map(|tool| {
        let sessions = figures.link("/sessions", &[("tool", &tool.tool)]);
        vec![
            FigureCell::link(short_tool(&tool.tool), sessions).titled(tool.tool.clone()),
            FigureCell::link(humanize::count(tool.calls), figures.records(&[("tool", &tool.tool)])),
            failed_cell(tool.failed, || figures.records(&[("tool", &tool.tool), ("failed", "1")])),
            duration(tool.median, &tool.tool),
            duration(tool.p95, &tool.tool),
        ]
    });
    let columns = [("tool", false), ("calls", true), ("failed", true), ("median", true), ("p95", true)];
    figure_table(out, &columns, rows, None);
    out.lit("</section>\n");
}

fn failed_cell(failed: u64, href: impl FnOnce() -> String) -> FigureCell {
    match failed {
        0 => FigureCell::plain("0"),
        _ => FigureCell::link(humanize::count(failed), href()),
    }
}

pub(super) fn commands(out: &mut Markup, figures: Figures<'_>) {
    let overview = figures.overview;
    let rest = overview.n_commands.saturating_sub(overview.commands.len());
    section(out, "Failing commands", &more_text("shell commands, most failures first", rest));
    if overview.commands.is_empty() {
        out.lit("<p class=\"quiet\">None</p></section>\n");
        return;
    }
    let bars: Vec<ChartBar> = overview
        .commands
        .iter()
        .map(|command| ChartBar {
            label: text_format::excerpt(&command.command, 24),
            href: Some(figures.records(&[("command", &command.command), ("failed", "1")])),
            title: format!("{}: {} of {} failed", command.command, command.failed, command.runs),
            value: command.failed as f64,
            shown: humanize::count(command.failed),
        })
        .collect();
    chart::bars(out, "Failures by command", &bars);
    let rows = overview.commands.iter().map(|command| {
        let name = [("command", &*command.command)];
        let failed = [("command", &*command.command), ("failed", "1")];
        let share = command.failed as f64 / command.runs.max(1) as f64;
        vec![
            FigureCell::link(command.command.clone(), figures.records(&name)),
            failed_cell(command.failed, || figures.records(&failed)),
            FigureCell::link(humanize::count(command.runs), figures.records(&name)),
            FigureCell::plain(percent(Some(share))),
        ]
    });
    let columns = [("command", false), ("failed", true), ("runs", true), ("share", true)];
    figure_table(out, &columns, rows, None);
    out.lit("</section>\n");
}

pub(super) fn files(out: &mut Markup, figures: Figures<'_>) {
    let overview = figures.overview;
    let rest = overview.n_files.saturating_sub(overview.files.len());
    section(out, "Edited files", &more_text("most edits first", rest));
    if overview.files.is_empty() {
        out.lit("<p class=\"quiet\">None</p></section>\n");
        return;
    }
    let has_shell_edits = overview.files.iter().any(|file| file.shell_edits > 0);
    let rows = overview.files.iter().map(|file| {
        let edits = figures.records(&[("file", &file.path)]);
        let sessions = figures.records(&[("kind", "sessions"), ("file", &file.path)]);
        let by_shell = if file.shell_edits > 0 { humanize::count(file.shell_edits) } else { String::new() };
        let mut row = vec![
            FigureCell::link(figures.path(&file.path), link::href("/file", [("path", &*file.path)])),
            FigureCell::link(humanize::count(file.edits + file.shell_edits), edits),
            FigureCell::link(humanize::count(file.sessions), sessions),
        ];
        row.extend(has_shell_edits.then(|| FigureCell::plain(by_shell)));
        row
    });
    let columns = [("file", false), ("edits", true), ("sessions", true), ("by shell", true)];
    figure_table(out, &columns[..if has_shell_edits { 4 } else { 3 }], rows, None);
    out.lit("</section>\n");
}

pub(super) fn times(out: &mut Markup, figures: Figures<'_>) {
    let selected = &figures.overview.selected.figures;
    section(out, "Time", "estimates, added up over all sessions");
    let states = [
        ("Active", "the model or tools worked", selected.active),
        ("Waiting", "for a prompt or an answer, up to 30 minutes", selected.waiting),
        ("Idle", "longer pauses", selected.idle),
    ];
    let periods = |name: &str| {
        let state = name.to_lowercase();
        figures.records(&[("kind", "periods"), ("state", &state), ("sort", "longest")])
    };
    let bars: Vec<ChartBar> = states
        .iter()
        .map(|(name, meaning, millis)| ChartBar {
            label: (*name).to_owned(),
            href: Some(periods(name)),
            title: format!("{name}: {meaning}"),
            value: *millis as f64,
            shown: time(*millis),
        })
        .collect();
    chart::bars(out, "Active, waiting and idle time", &bars);
    let rows = states.iter().map(|(name, meaning, millis)| {
        vec![
            FigureCell::link(*name, periods(name)),
            FigureCell::plain(*meaning),
            FigureCell::link(time(*millis), periods(name)),
        ]
    });
    figure_table(out, &[("state", false), ("meaning", false), ("time", true)], rows, None);
    let usage = &figures.overview.agent_usage;
    let rows = [
        vec![
            FigureCell::link("Agent calls", figures.records(&[("agents", "1")])),
            FigureCell::link(humanize::count(selected.agent_calls), figures.records(&[("agents", "1")])),
            FigureCell::link(usage.short_cost(), figures.records(&[("kind", "agent-costs")])),
        ],
        vec![
            FigureCell::link("Compactions", figures.records(&[("kind", "compactions")])),
            FigureCell::link(
                humanize::count(selected.compactions),
                figures.records(&[("kind", "compactions")]),
            ),
            FigureCell::plain(""),
        ],
    ];
    figure_table(out, &[("", false), ("count", true), ("cost", true)], rows, None);
    out.lit("</section>\n");
}
