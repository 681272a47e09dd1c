//! The home page: the list of sessions, filtered and sorted.

use std::time::Duration;

use threadline_app::time::{end_of, millis, start_of};
use threadline_html::{Frame, HomePage, Tab};
use threadline_view::wire::CardObject;
use threadline_view::{Choices, Selection};

use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::state::State;

/// How long an HTML page waits for figures that are not counted yet: longer if the filter or the sort order
/// needs them.
const GLANCE: Duration = Duration::from_millis(15);
const MOMENT: Duration = Duration::from_millis(200);
/// JSON and Markdown wait for complete figures.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let now = state.now();
    let news = state.news.count(state.app.store());
    let selection = Selection::of(ask.pairs(), |text, end| moment(text, end, &state.now_here()));
    let patience = match ask.form {
        Form::Html if selection.needs_figures() => MOMENT,
        Form::Html => GLANCE,
        _ => PATIENCE,
    };
    let shown = state.cards(patience);
    let chosen = selection.choose(&shown.cards);
    if ask.form == Form::Json {
        return Answer::json(chosen.cards.iter().map(|card| CardObject::from(*card)));
    }
    let choices = Choices::of(&shown.cards, &selection);
    let homes: Vec<String> =
        state.app.store().homes().iter().map(|home| home.root().display().to_string()).collect();
    let page = HomePage {
        selection: &selection,
        chosen: &chosen,
        choices: &choices,
        total: shown.cards.len(),
        unread: &shown.unread,
        homes: &homes,
        news,
        now: millis(now),
        zone: &state.zone,
    };
    if ask.form == Form::Markdown {
        return Ok(Answer::Markdown(threadline_html::home_markdown(&page)));
    }
    let title = match &selection.project {
        Some(project) => format!("{} · threadline", threadline_html::project_name(project)),
        None => "Sessions · threadline".to_owned(),
    };
    let frame = Frame { title: &title, tab: Tab::Home, class: "lists", scripts: &["lists.js"] };
    Ok(super::list(&frame, &threadline_html::home(&page)))
}

/// Parses a time; returns its start, or its end if `end` is set.
fn moment(text: &str, end: bool, now: &jiff::Zoned) -> Option<i64> {
    if end { end_of(text, now).ok() } else { start_of(text, now).ok() }
}
