//! Usage: tokens and costs, as charts, tables and records.

use std::time::Duration;

use threadline_app::time::{TimeRange, millis};
use threadline_app::{ListedCards, LogScanner, SessionFigures, prices_note, usage_notes, window_resets};
use threadline_entry::Millis;
use threadline_html::{ExplainPage, Frame, Tab, UsagePage};
use threadline_usage::{By, Call, Calls, Groups, Ledger, Totals, Wants, windows};
use threadline_view::UsageBoard;
use threadline_view::wire::{GroupObject, RecordObject, WindowObject};

use super::home::PATIENCE;
use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::state::State;

/// Maximum time to wait for figures before a page is shown with those that are available.
const MOMENT: Duration = Duration::from_millis(250);

/// The requested calls.
struct Wanted {
    range: TimeRange,
    project: Option<String>,
    model: Option<String>,
    session: Option<String>,
    /// The query parameters that select them.
    asked: Vec<(String, String)>,
}

impl Wanted {
    fn of(state: &State, ask: &Ask) -> Result<Self, Problem> {
        let text = |name: &str| ask.get(name).map(str::to_owned);
        let names = ["since", "until", "project", "model", "session"];
        let asked = names.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?))).collect();
        Ok(Self {
            range: TimeRange::parse(ask.get("since"), ask.get("until"), &state.now_here())?,
            project: text("project"),
            model: text("model"),
            session: text("session"),
            asked,
        })
    }

    fn keeps(&self, call: &Call<'_>) -> bool {
        let same =
            |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        self.range.contains(call.at)
            && same(&self.project, call.project)
            && same(&self.model, call.model)
            && same(&self.session, call.session)
    }
}

fn shown(state: &State, ask: &Ask) -> ListedCards {
    let patience = if ask.form == Form::Html { MOMENT } else { PATIENCE };
    state.cards(patience)
}

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let wanted = Wanted::of(state, ask)?;
    let news = state.news.count(state.app.store());
    let shown = shown(state, ask);
    let calls = &shown.figures.calls;
    let now = millis(state.now());
    if ask.form == Form::Json {
        return objects(state, ask, calls, &wanted, now);
    }
    let keep = |call: &Call<'_>| wanted.keeps(call);
    let board = UsageBoard::of(calls, &state.prices, &state.zone, &window_resets(calls, &state.zone), keep);
    let names = |by: By| -> Vec<String> {
        let groups = Groups::of_calls(calls, by, &state.prices, &state.zone, |_| true).groups;
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
        notes: &notes(state, &shown.figures, &board.total),
        unread: shown.figures.n_missing(&shown.logs),
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

/// Returns the same objects as `threadline usage --json`.
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
            let resets = window_resets(calls, &state.zone);
            let windows = windows(calls, &state.prices, &resets, |call| wanted.keeps(call));
            return Answer::json(windows.iter().map(|window| WindowObject::new(window, now)));
        }
        other => {
            return Err(Problem::bad(format!("Unknown grouping “{other}”"))
                .hint("Use day, week, month, session, project, model, tool, branch or window."));
        }
    };
    let groups = Groups::of_calls(calls, by, &state.prices, &state.zone, |call| wanted.keeps(call));
    let inherited = calls.inherited();
    Answer::json(groups.groups.iter().map(|group| GroupObject::new(group, by, &inherited)))
}

/// Returns notes on the figures, as sentences.
fn notes(state: &State, figures: &SessionFigures, total: &Totals) -> Vec<String> {
    let mut notes = usage_notes(&figures.calls, total);
    notes.extend(figures.unread.iter().cloned());
    notes.push(prices_note(&state.prices));
    notes.iter().map(|note| sentence(note)).collect()
}

/// Formats a note as a sentence, with a capital and a full stop.
fn sentence(note: &str) -> String {
    let mut rest = note.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).chain(['.']).collect()
}

/// Shows every record of the requested calls, counted or not.
///
/// Reads only the logs that contain such a call, or all logs if there is no filter.
pub(crate) fn explain(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let wanted = Wanted::of(state, ask)?;
    let shown = state.cards(PATIENCE);
    let held = shown.figures.calls.logs_of(|call| wanted.keeps(call));
    let mut ledger = Ledger::default();
    let mut scanner = LogScanner::default();
    let wants = Wants { records: true, ..Wants::default() };
    for log in shown.logs.iter().flat_map(|session| session.logs()) {
        if wanted.asked.is_empty() || held.contains(&*log.path.to_string_lossy()) {
            // A log that was deleted meanwhile has no records.
            if let Ok((scanned, _)) = scanner.scan(log, wants) {
                ledger.absorb(scanned);
            }
        }
    }
    let calls = ledger.settle();
    let of_session = |session: &str| wanted.session.as_ref().is_none_or(|wanted| wanted == session);
    let mut records =
        calls.explain(&state.prices, |at, session| wanted.range.contains(at) && of_session(session));
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
