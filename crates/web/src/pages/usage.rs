//! Usage: tokens and money, as charts, as tables, and down to the records.

use std::time::Duration;

use jiff::tz::TimeZone;
use threadline_entry::Millis;
use threadline_html::{ExplainPage, Frame, Tab, UsagePage};
use threadline_usage::{By, Call, Calls, Groups, Ledger, Totals, Wants, reset_of, windows};
use threadline_view::UsageBoard;
use threadline_view::wire::{GroupObject, RecordObject, WindowObject};

use super::home::PATIENCE;
use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::cards::{Shown, millis};
use crate::counter::{Counted, scan};
use crate::state::State;

/// A reader waits so long for figures before they are shown as far as they are known.
const MOMENT: Duration = Duration::from_millis(250);

/// Which calls are asked for.
struct Wanted {
    from: Option<Millis>,
    to: Option<Millis>,
    project: Option<String>,
    model: Option<String>,
    session: Option<String>,
    /// The parts of the link that say so.
    asked: Vec<(String, String)>,
}

impl Wanted {
    fn of(state: &State, ask: &Ask) -> Result<Self, Problem> {
        let bound = |name: &str, end: bool| {
            ask.get(name).map(|text| state.moment(text, end).ok_or_else(|| no_day(text))).transpose()
        };
        let text = |name: &str| ask.get(name).map(str::to_owned);
        let names = ["since", "until", "project", "model", "session"];
        let asked = names.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?))).collect();
        Ok(Self {
            from: bound("since", false)?,
            to: bound("until", true)?,
            project: text("project"),
            model: text("model"),
            session: text("session"),
            asked,
        })
    }

    /// What is undated is in no stretch of time but the endless one.
    fn in_time(&self, at: Option<Millis>) -> bool {
        match at {
            Some(at) => self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to),
            None => self.from.is_none() && self.to.is_none(),
        }
    }

    fn keeps(&self, call: &Call<'_>) -> bool {
        let same =
            |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        self.in_time(call.at)
            && same(&self.project, call.project)
            && same(&self.model, call.model)
            && same(&self.session, call.session)
    }
}

fn no_day(text: &str) -> Problem {
    Problem::bad(format!("“{text}” is not a date"))
        .hint("Use 2026-11-01, 2026-11, today, yesterday, 7d, 2w or 12h.")
}

fn shown(state: &State, ask: &Ask) -> Shown {
    let patience = if ask.form == Form::Html { MOMENT } else { PATIENCE };
    state.cards.show(&state.store, &state.counter, state.now(), patience)
}

/// The ends of five-hour windows that logs name.
fn resets(calls: &Calls, zone: &TimeZone) -> Vec<Millis> {
    let named = |name: &str| TimeZone::get(name).ok();
    calls.limits().iter().filter_map(|limit| reset_of(limit, zone, named)).collect()
}

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let wanted = Wanted::of(state, ask)?;
    let news = state.news.count(&state.store);
    let shown = shown(state, ask);
    let calls = &shown.counted.calls;
    let now = millis(state.now());
    if ask.form == Form::Json {
        return objects(state, ask, calls, &wanted, now);
    }
    let keep = |call: &Call<'_>| wanted.keeps(call);
    let board = UsageBoard::of(calls, &state.book, &state.zone, &resets(calls, &state.zone), keep);
    let names = |by: By| -> Vec<String> {
        let groups = Groups::of_calls(calls, by, &state.book, &state.zone, |_| true).groups;
        let named = groups.into_iter().map(|group| match group.key {
            threadline_usage::GroupKey::Project(name) | threadline_usage::GroupKey::Model(name) => name,
            _ => String::new(),
        });
        named.collect()
    };
    let (projects, models) = (names(By::Project), names(By::Model));
    let page = UsagePage {
        board: &board,
        asked: &wanted.asked,
        choices: (&projects, &models),
        notes: &notes(state, &shown.counted, &board.total),
        unread: shown.counted.missing(&shown.logs),
        news,
        now,
        zone: &state.zone,
    };
    if ask.form == Form::Markdown {
        return Ok(Answer::Markdown(threadline_html::usage_markdown(&page)));
    }
    let frame =
        Frame { title: "Usage · threadline", tab: Tab::Usage, class: "lists", scripts: &["lists.js"] };
    Ok(super::list(&frame, &threadline_html::usage(&page)))
}

/// The same objects that `threadline usage --json` prints.
fn objects(state: &State, ask: &Ask, calls: &Calls, wanted: &Wanted, now: Millis) -> Result<Answer, Problem> {
    let by = match ask.get("by").unwrap_or("day") {
        "day" => By::Day,
        "week" => By::Week,
        "month" => By::Month,
        "session" => By::Session,
        "project" => By::Project,
        "model" => By::Model,
        "tool" => By::Tool,
        "branch" => By::Branch,
        "window" => {
            let resets = resets(calls, &state.zone);
            let windows = windows(calls, &state.book, &resets, |call| wanted.keeps(call));
            return Answer::json(windows.iter().map(|window| WindowObject::new(window, now)));
        }
        other => {
            return Err(Problem::bad(format!("Unknown grouping “{other}”"))
                .hint("Use day, week, month, session, project, model, tool, branch or window."));
        }
    };
    let groups = Groups::of_calls(calls, by, &state.book, &state.zone, |call| wanted.keeps(call));
    let inherited = calls.inherited();
    Answer::json(groups.groups.iter().map(|group| GroupObject::new(group, by, &inherited)))
}

/// What a reader should know of the figures.
fn notes(state: &State, counted: &Counted, total: &Totals) -> Vec<String> {
    let many = |count: u64, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let mut notes = Vec::new();
    if total.unpriced_calls > 0 {
        let names: Vec<&str> = total.unpriced.iter().map(|name| &**name).collect();
        let calls = many(total.unpriced_calls, "call", "calls");
        notes.push(format!("No price for {}: {calls} not included in the cost.", names.join(", ")));
    }
    if total.under_reported > 0 {
        let calls = many(total.under_reported, "call was", "calls were");
        notes.push(format!("{calls} logged by versions up to 2.1.58, which under-report output tokens."));
    }
    if counted.calls.n_broken() > 0 {
        let lines = many(counted.calls.n_broken(), "line is", "lines are");
        notes.push(format!("{lines} invalid and not counted."));
    }
    if counted.calls.n_torn() > 0 {
        let logs = many(counted.calls.n_torn(), "log ends", "logs end");
        notes.push(format!("{logs} with an incomplete line (perhaps still being written)."));
    }
    notes.extend(counted.failed.iter().cloned());
    notes.push(format!("Prices as of {} ({}).", state.book.updated(), state.book.digest()));
    notes
}

/// Every record behind a figure.
///
/// Only the logs that hold such a call are read again for their lines; what is known of the others decides, as always,
/// which record of a call was counted.
pub(crate) fn explain(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let wanted = Wanted::of(state, ask)?;
    let shown = state.cards.show(&state.store, &state.counter, state.now(), PATIENCE);
    let held = shown.counted.calls.logs_of(|call| wanted.keeps(call));
    let mut ledger = Ledger::default();
    let mut buffer = Vec::new();
    let wants = Wants { records: true, ..Wants::default() };
    for log in shown.logs.iter().flat_map(|session| session.logs()) {
        if wanted.asked.is_empty() || held.contains(&*log.path.to_string_lossy()) {
            // A log that is gone by now has no records.
            if let Ok(scanned) = scan(log, wants, &mut buffer) {
                ledger.absorb(scanned);
            }
        }
    }
    let calls = ledger.settle();
    let of_session = |session: &str| wanted.session.as_ref().is_none_or(|wanted| wanted == session);
    let mut records = calls.explain(&state.book, |at, session| wanted.in_time(at) && of_session(session));
    let mut projects = std::collections::HashMap::new();
    for call in calls.iter() {
        projects.insert(call.session, call.project);
    }
    let same = |wanted: &Option<String>, value: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
    };
    records.retain(|record| {
        same(&wanted.model, record.model.as_deref())
            && same(&wanted.project, projects.get(&*record.session).copied())
    });
    if ask.form == Form::Json {
        return Answer::json(records.iter().map(RecordObject::from));
    }
    if ask.form == Form::Markdown {
        return Err(
            Problem::not_found("Page not found").hint("Usage records are available as HTML and JSON.")
        );
    }
    let number = ask.get("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or(1);
    let page = ExplainPage {
        asked: &wanted.asked,
        records: &records,
        page: number.saturating_sub(1),
        zone: &state.zone,
    };
    let frame = Frame {
        title: "Usage records · threadline",
        tab: Tab::Usage,
        class: "lists",
        scripts: &["lists.js"],
    };
    Ok(super::list(&frame, &threadline_html::explain(&page)))
}
