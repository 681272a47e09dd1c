//! Output of `usage`: tables for people, JSON and CSV for programs.

use std::collections::HashMap;

use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use threadline_app::{ListFilter, UsageNotes, UsageRead, window_resets};
use threadline_term::{TableColumn, TermText, TextLabel, text, truncate, visible, visible_name};
use threadline_usage::{
    CallGroup, CallGroupKey, CallGroups, GroupBy, LimitWindow, ModelCalls, Money, PriceBook,
    RecordExplanation, RecordVerdict, UsageTotals, reconcile, windows,
};
use threadline_view::humanize::{count, minute, plural, short_count, short_id};
use threadline_view::wire::{GroupObject, ReconciledObject, RecordObject, WindowObject};
use threadline_view::{short_model, short_path};

use crate::context::Context;
use crate::error::CommandError;

/// Options of the output.
pub(super) struct UsageReport<'a> {
    pub(super) cx: &'a Context,
    pub(super) book: &'a PriceBook,
    pub(super) zone: &'a TimeZone,
    /// The current time, in milliseconds since 1970.
    pub(super) now: i64,
    pub(super) csv: bool,
    /// Whether tables show only the number of calls, all tokens and the cost.
    pub(super) compact: bool,
}

impl UsageReport<'_> {
    /// Writes the groups. Returns whether there are any.
    pub(super) fn groups(
        &self,
        calls: &ModelCalls,
        by: GroupBy,
        groups: &CallGroups,
    ) -> Result<bool, CommandError> {
        let mut answer =
            if self.cx.json || self.csv { self.cx.ui.output() } else { self.cx.ui.paged_output() };
        if self.cx.json {
            let inherited = calls.inherited();
            for group in &groups.groups {
                answer.json(&GroupObject::new(group, by, &inherited))?;
            }
        } else if self.csv {
            answer.data(&csv(by, &groups.groups, &|cell| self.cx.app.masked(cell).into_owned()))?;
        } else if !groups.groups.is_empty() {
            answer.text(&self.table(by, groups))?;
        }
        answer.finish()?;
        Ok(!groups.groups.is_empty())
    }

    fn table(&self, by: GroupBy, groups: &CallGroups) -> TermText {
        let changes = changes(by, groups);
        let mut columns = key_table_columns(by);
        let n_keys = columns.len();
        // The figures of a call are divided among the tools that it used, so the number of uses is a separate
        // column.
        columns.extend((by == GroupBy::Tool).then(|| TableColumn::number("uses")));
        columns.extend(self.total_columns());
        columns
            .extend(changes.as_ref().map(|_| TableColumn { drop_order: 6, ..TableColumn::number("change") }));
        // The names of tools need the space of the bars.
        let bar_order = if by == GroupBy::Tool { 10 } else { 7 };
        columns.push(TableColumn { can_shrink: false, drop_order: bar_order, ..TableColumn::text("") });
        let cells = |totals: &UsageTotals, change: Option<&String>| {
            let mut cells = Vec::new();
            cells.extend((by == GroupBy::Tool).then(|| count(totals.tool_calls)));
            cells.extend(self.total_cells(totals));
            cells.extend(changes.as_ref().map(|_| change.cloned().unwrap_or_default()));
            cells
        };
        let titles = self.titles(by);
        let largest =
            groups.groups.iter().map(|group| bar_weight(&group.totals, &groups.total)).fold(0.0, f64::max);
        let mut rows: Vec<Vec<String>> = Vec::new();
        for group in &groups.groups {
            let mut row = self.key_row(&group.key, &titles);
            row.extend(cells(&group.totals, changes.as_ref().and_then(|changes| changes.get(&group.key))));
            row.push(bar(bar_weight(&group.totals, &groups.total), largest));
            rows.push(row);
        }
        let mut total = vec![String::new(); n_keys];
        "total".clone_into(&mut total[0]);
        total.extend(cells(&groups.total, None));
        rows.push(total);
        self.cx.ui.table(&columns, &rows)
    }

    /// Returns the titles of sessions by id, if groups are sessions.
    fn titles(&self, by: GroupBy) -> HashMap<String, String> {
        if by != GroupBy::Session {
            return HashMap::new();
        }
        let sessions = self.cx.app.list(&ListFilter::default()).found;
        let title = |title: String| self.cx.app.masked(&title).into_owned();
        sessions.iter().filter_map(|one| Some((one.file.id.to_string(), title(one.title()?)))).collect()
    }

    /// Returns the cells of a group's key in a table.
    fn key_row(&self, key: &CallGroupKey, titles: &HashMap<String, String>) -> Vec<String> {
        let home = self.cx.app.config().home_dir.as_deref().and_then(std::path::Path::to_str);
        let path = |path: &str| visible_name(&short_path(path, home)).into_owned();
        match key {
            CallGroupKey::Session { session, project } => {
                let title = titles.get(session).map_or("–", |title| title);
                // In a pipe, nothing else limits the title, which is not the last column.
                vec![short_id(session).to_owned(), truncate(title, 60), path(project)]
            }
            CallGroupKey::Project(project) => vec![path(project)],
            CallGroupKey::Branch { project, branch } => vec![path(project), visible(branch).into_owned()],
            CallGroupKey::Model(model) => vec![visible(short_model(model)).into_owned()],
            key => key_cells(key).map(|cell| visible(cell).into_owned()).collect(),
        }
    }

    /// Returns whether `name` names a group: as it is stored or printed, or by a prefix of the id of a
    /// session.
    pub(super) fn is_named(&self, key: &CallGroupKey, name: &str) -> bool {
        let is_printed = match key {
            CallGroupKey::Session { session, .. } => !name.is_empty() && session.starts_with(name),
            key => self.key_row(key, &HashMap::new()).iter().any(|cell| cell == name),
        };
        is_printed || key_cells(key).any(|cell| cell == name)
    }

    /// Prints a note about names without a group, with the names of the existing groups.
    pub(super) fn note_unknown(&self, names: &[&String], by: GroupBy, groups: &CallGroups) {
        const MAX_NAMES: usize = 8;
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let name = |key: &CallGroupKey| match key {
            CallGroupKey::Session { session, .. } => short_id(session).to_owned(),
            key => self.key_row(key, &HashMap::new()).join(" "),
        };
        let known: Vec<String> = groups.groups.iter().take(MAX_NAMES).map(|group| name(&group.key)).collect();
        let more = if groups.groups.len() > MAX_NAMES { ", …" } else { "" };
        self.cx.ui.note(&format!(
            "no {} {}; there are {}{more}",
            by.name(),
            quoted.join(", "),
            known.join(", ")
        ));
    }

    /// Returns the columns of [`UsageReport::total_cells`]. Cache columns are left out first on a narrow
    /// page.
    fn total_columns(&self) -> Vec<TableColumn> {
        let number = |name, drop_order| TableColumn { drop_order, ..TableColumn::number(name) };
        match self.compact {
            true => vec![number("calls", 3), number("tokens", 0), number("cost", 0)],
            false => vec![
                number("calls", 3),
                number("input", 4),
                number("output", 5),
                number("cache read", 9),
                number("cache write", 8),
                number("cost", 0),
            ],
        }
    }

    /// Returns the cells of totals.
    fn total_cells(&self, totals: &UsageTotals) -> Vec<String> {
        let tokens = totals.tokens;
        if self.compact {
            return vec![count(totals.calls), short_count(tokens.total()), totals.short_cost()];
        }
        vec![
            count(totals.calls),
            count(tokens.input),
            count(tokens.output),
            count(tokens.cache_read),
            count(tokens.cache_write()),
            totals.short_cost(),
        ]
    }

    /// Writes the five-hour windows. Returns whether there are any.
    pub(super) fn windows(
        &self,
        calls: &ModelCalls,
        keep: impl Fn(Option<i64>, &str) -> bool,
    ) -> Result<bool, CommandError> {
        let resets = window_resets(calls, self.zone);
        let windows = windows(calls, self.book, &resets, |call| keep(call.at, call.session));
        if self.cx.json {
            let mut answer = self.cx.ui.output();
            for window in &windows {
                answer.json(&WindowObject::new(window, self.now))?;
            }
            answer.finish()?;
        } else if !windows.is_empty() {
            let mut answer = self.cx.ui.paged_output();
            answer.text(&self.window_table(&windows))?;
            answer.finish()?;
            if windows.iter().any(|window| !window.stated) {
                self.cx.ui.note("≈ estimated end: no log states it");
            }
        }
        Ok(!windows.is_empty())
    }

    fn window_table(&self, windows: &[LimitWindow]) -> TermText {
        let text =
            |name, drop_order| TableColumn { can_shrink: false, drop_order, ..TableColumn::text(name) };
        let mut columns = vec![text("from", 0), text("to", 2)];
        columns.extend(self.total_columns());
        columns.push(TableColumn { drop_order: 7, ..TableColumn::number("per hour") });
        let is_active = windows.iter().any(|window| window.is_active(self.now));
        columns.extend(is_active.then(|| text("active", 0)));
        let clock = |at: i64| {
            let at = Timestamp::from_millisecond(at).map(|at| at.to_zoned(self.zone.clone()));
            at.map(|at| at.strftime("%H:%M").to_string()).unwrap_or_default()
        };
        let row = |window: &LimitWindow| {
            let estimate = if window.stated { "" } else { "≈" };
            let mut row = vec![minute(window.start, self.zone), format!("{estimate}{}", clock(window.end))];
            row.extend(self.total_cells(&window.totals));
            row.push(window.cost_per_hour().map(Money::short).unwrap_or_default());
            let projected = window.projected(self.now).filter(|_| window.is_active(self.now));
            row.extend(is_active.then(|| match (window.is_active(self.now), projected) {
                (true, Some(cost)) => format!("estimate at end: {}", cost.short()),
                (true, None) => "yes".to_owned(),
                (false, _) => String::new(),
            }));
            row
        };
        let rows: Vec<Vec<String>> = windows.iter().map(row).collect();
        self.cx.ui.table(&columns, &rows)
    }

    /// Writes every record. Returns whether there are any.
    pub(super) fn explain(
        &self,
        calls: &ModelCalls,
        marked: Option<&[bool]>,
        keep: impl Fn(Option<i64>, &str) -> bool,
    ) -> Result<bool, CommandError> {
        let records = calls.explain_marked(self.book, marked, keep);
        let mut answer = if self.cx.json { self.cx.ui.output() } else { self.cx.ui.paged_output() };
        let page = self.cx.ui.page();
        let mut last = None;
        for record in &records {
            if self.cx.json {
                answer.json(&RecordObject::from(record))?;
                continue;
            }
            if last != Some(&record.path) {
                writeln!(answer, "{}", page.paint(TextLabel::Title, visible_name(&record.path)))?;
                last = Some(&record.path);
            }
            writeln!(answer, "{}", record_line(page, record))?;
        }
        answer.finish()?;
        let n_counted = records.iter().filter(|record| record.verdict == RecordVerdict::Counted).count();
        let cost: Money = records.iter().filter_map(|record| record.cost).sum();
        self.cx.ui.note(&format!(
            "{} counted, {} not counted; {}",
            plural(n_counted as u64, "record"),
            count((records.len() - n_counted) as u64),
            cost.short()
        ));
        Ok(!records.is_empty())
    }

    /// Writes our figures next to those of Claude Code. Returns whether any session has both.
    pub(super) fn reconcile(
        &self,
        calls: &ModelCalls,
        keep: impl Fn(&str) -> bool,
    ) -> Result<bool, CommandError> {
        let sessions = reconcile(calls, self.book, keep);
        let mut answer = if self.cx.json { self.cx.ui.output() } else { self.cx.ui.paged_output() };
        for session in &sessions {
            let difference = session.theirs.cost - session.ours.cost;
            if self.cx.json {
                answer.json(&ReconciledObject::from(session))?;
                continue;
            }
            let page = self.cx.ui.page();
            writeln!(answer, "{}", page.paint(TextLabel::Title, visible(&session.session)))?;
            let (ours, theirs) = (session.ours.cost.short(), session.theirs.cost.short());
            writeln!(answer, "  threadline {ours}, Claude Code {theirs}, difference {}", difference.short())?;
            for reason in &session.reasons {
                writeln!(answer, "  {}", visible(reason))?;
            }
        }
        answer.finish()?;
        if sessions.is_empty() {
            self.cx.ui.note("no session contains the cost that newer versions of Claude Code log");
        }
        Ok(!sessions.is_empty())
    }

    /// Writes notes on the figures, and warnings about logs that could not be read.
    pub(super) fn write_notes(&self, read: &UsageRead, total: &UsageTotals, n_undated: usize) {
        let ui = &self.cx.ui;
        for error in &read.unread {
            ui.warn(error);
        }
        let notes = UsageNotes { calls: &read.calls, total, n_undated, gone: &read.gone, prices: self.book };
        for note in notes.texts() {
            ui.note(&note);
        }
    }
}

/// Returns the names of the columns of a group's key.
fn key_columns(by: GroupBy) -> &'static [&'static str] {
    match by {
        GroupBy::Day => &["day"],
        GroupBy::Week => &["week"],
        GroupBy::Month => &["month"],
        GroupBy::Session => &["session", "project"],
        GroupBy::Project => &["project"],
        GroupBy::Model => &["model"],
        GroupBy::Tool => &["tool"],
        GroupBy::Branch => &["project", "branch"],
    }
}

/// Returns the cells of a group's key.
fn key_cells(key: &CallGroupKey) -> impl Iterator<Item = &str> {
    let (first, second): (&str, Option<&str>) = match key {
        CallGroupKey::Day(name)
        | CallGroupKey::Week(name)
        | CallGroupKey::Month(name)
        | CallGroupKey::Project(name)
        | CallGroupKey::Model(name)
        | CallGroupKey::Tool(name) => (name, None),
        CallGroupKey::Session { session, project } => (session, Some(project)),
        CallGroupKey::Branch { project, branch } => (project, Some(branch)),
    };
    [Some(first), second].into_iter().flatten()
}

/// Returns the columns of a group's key in a table.
fn key_table_columns(by: GroupBy) -> Vec<TableColumn> {
    let fixed = |name| TableColumn { can_shrink: false, ..TableColumn::text(name) };
    let path = TableColumn { keeps_end: true, ..TableColumn::text("project") };
    match by {
        GroupBy::Session => {
            let title = TableColumn { min_width: 20, ..TableColumn::text("title") };
            vec![fixed("session"), title, TableColumn { drop_order: 10, ..path }]
        }
        GroupBy::Project => vec![path],
        GroupBy::Branch => vec![path, TableColumn::text("branch")],
        GroupBy::Model => vec![TableColumn { min_width: 20, ..TableColumn::text("model") }],
        // The end of the name of an MCP tool is the name of the tool itself.
        GroupBy::Tool => {
            let name = TableColumn::text("tool");
            vec![TableColumn { keeps_end: true, min_width: 20, good_width: 40, ..name }]
        }
        by => key_columns(by).iter().map(|name| fixed(name)).collect(),
    }
}

/// Returns the change of the cost since the previous period; `None` without any. A period without calls
/// before it has none.
fn changes(by: GroupBy, groups: &CallGroups) -> Option<HashMap<CallGroupKey, String>> {
    if !matches!(by, GroupBy::Day | GroupBy::Week | GroupBy::Month) || groups.groups.len() < 2 {
        return None;
    }
    let mut periods: Vec<&CallGroup> = groups.groups.iter().collect();
    periods.sort_by(|a, b| a.key.cmp(&b.key));
    let change = |pair: &[&CallGroup]| {
        if first_day(&pair[1].key)? != next_first_day(&pair[0].key)? {
            return None;
        }
        let [before, after] = [pair[0], pair[1]].map(|group| group.totals.cost.to_f64());
        let percent = (before >= 0.01).then(|| (after / before - 1.0) * 100.0)?;
        let text = match percent {
            percent if percent >= 999.5 => format!("×{:.0}", after / before),
            percent if percent <= -0.5 => format!("−{:.0} %", -percent),
            percent => format!("+{:.0} %", percent.max(0.0)),
        };
        Some((pair[1].key.clone(), text))
    };
    let changes: HashMap<CallGroupKey, String> = periods.windows(2).filter_map(change).collect();
    (!changes.is_empty()).then_some(changes)
}

/// Returns the first day of a period.
fn first_day(key: &CallGroupKey) -> Option<Date> {
    match key {
        CallGroupKey::Day(day) => day.parse().ok(),
        CallGroupKey::Month(month) => format!("{month}-01").parse().ok(),
        CallGroupKey::Week(week) => {
            let (year, week) = week.split_once("-W")?;
            let monday = ISOWeekDate::new(year.parse().ok()?, week.parse().ok()?, Weekday::Monday);
            Some(monday.ok()?.date())
        }
        _ => None,
    }
}

/// Returns the first day of the period after this one.
fn next_first_day(key: &CallGroupKey) -> Option<Date> {
    let length = match key {
        CallGroupKey::Day(_) => 1.day(),
        CallGroupKey::Week(_) => 1.week(),
        CallGroupKey::Month(_) => 1.month(),
        _ => return None,
    };
    first_day(key)?.checked_add(length).ok()
}

/// Returns the weight of a group's bar: its cost, or its tokens if nothing has a cost.
fn bar_weight(totals: &UsageTotals, whole: &UsageTotals) -> f64 {
    if whole.cost > Money::ZERO { totals.cost.to_f64() } else { totals.tokens.total() as f64 }
}

/// Renders a bar of up to 20 columns, in eighths.
fn bar(weight: f64, largest: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = if largest > 0.0 { (weight / largest * 160.0).round() as usize } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn record_line(page: threadline_term::TermPage, record: &RecordExplanation) -> TermText {
    let model = visible(record.model.as_deref().unwrap_or("–"));
    let id = visible_name(record.message_id.as_deref().unwrap_or("–"));
    let tokens = record.tokens;
    let mut line = format!("  {:>6}  {id}  {model}", record.line);
    // A record that is not a model call has no model and no figures.
    if record.model.is_some() {
        line.push_str(&format!(
            "  {} in, {} out, {} read, {} written",
            count(tokens.input),
            count(tokens.output),
            count(tokens.cache_read),
            count(tokens.cache_write())
        ));
    }
    match &record.verdict {
        RecordVerdict::Counted => {
            let cost = record.cost.map_or_else(|| "no price".to_owned(), Money::short);
            text!("{line}  counted, {cost}")
        }
        RecordVerdict::Rejected(reason) => {
            let reason = format!("not counted: {}", visible(&reason.to_string()));
            text!("{line}  {}", page.paint(TextLabel::Dim, &reason))
        }
    }
}

/// Formats the groups as comma-separated values, with a header line. `mask` masks secrets in names.
fn csv(by: GroupBy, groups: &[CallGroup], mask: &dyn Fn(&str) -> String) -> String {
    let mut out = key_columns(by).join(",");
    out.push_str(
        ",calls,input_tokens,output_tokens,cache_read_tokens,cache_write_5m_tokens,cache_write_1h_tokens,\
         web_searches,cost_usd,unpriced_models\n",
    );
    for group in groups {
        let (totals, tokens) = (&group.totals, group.totals.tokens);
        let unpriced: Vec<_> = totals.unpriced.iter().map(String::as_str).collect();
        let numbers = [
            totals.calls,
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write_5m,
            tokens.cache_write_1h,
            totals.web_searches,
        ];
        let cells = key_cells(&group.key).map(|cell| csv_cell(&mask(cell)));
        let cells = cells.chain(numbers.iter().map(ToString::to_string));
        let cells = cells.chain([totals.cost.to_string(), csv_cell(&mask(&unpriced.join(";")))]);
        out.push_str(&cells.collect::<Vec<_>>().join(","));
        out.push('\n');
    }
    out
}

fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_that_from_the_previous_period() {
        let is_next = |before: CallGroupKey, after: CallGroupKey| {
            first_day(&after).is_some() && first_day(&after) == next_first_day(&before)
        };
        let [day, week, month] = [CallGroupKey::Day, CallGroupKey::Week, CallGroupKey::Month].map(|key| {
            move |before: &str, after: &str| is_next(key(before.to_owned()), key(after.to_owned()))
        });
        assert!(day("2026-02-28", "2026-03-01") && !day("2026-02-27", "2026-03-01"));
        assert!(!day("2026-02-28", "undated"));
        assert!(week("2026-W53", "2027-W01") && !week("2026-W50", "2026-W52"));
        assert!(month("2025-12", "2026-01") && !month("2026-03", "2026-07"));
    }
}
