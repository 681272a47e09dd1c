//! Search over all sessions, with the query syntax of `threadline search`.

use std::ops::ControlFlow;

use threadline_app::SessionSummary;
use threadline_app::search::{hit_object, is_incomplete, summary, trouble_message};
use threadline_app::time::millis;
use threadline_html::{FoundBlock, FoundSession, Frame, SearchPage, Tab};
use threadline_search::{Event, LogHit, Query, Searched};

use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::state::State;

/// Maximum number of sessions on a page, and of matches shown per session; further matches are only counted.
const SESSIONS: usize = 50;
const BLOCKS: usize = 5;
/// The search stops after this many matches.
const FINDS: usize = 2000;
/// Maximum number of matches in JSON; `threadline search --json` has no limit.
const OBJECTS: usize = 10_000;

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let text = ask.get("q").unwrap_or_default();
    let now = state.now_here();
    let query = (!text.trim().is_empty()).then(|| Query::parse(text, &now)).transpose();
    let (query, wrong) = match query {
        Ok(query) => (query, None),
        Err(error) => (None, Some(error)),
    };
    if let (Form::Json, Some(error)) = (ask.form, &wrong) {
        return Err(Problem::bad(error.to_string()));
    }
    let mut finds = Finds::default();
    if let Some(query) = &query {
        finds.run(state, ask, query);
    }
    match ask.form {
        Form::Json => Ok(Answer::Json(finds.json)),
        Form::Markdown => {
            Err(Problem::not_found("Page not found").hint("Search results are available as HTML and JSON."))
        }
        Form::Html => {
            let told = wrong.as_ref().map(ToString::to_string);
            let page = SearchPage {
                query: text,
                problem: told.as_deref().zip(wrong.as_ref().map(|error| error.span())),
                sessions: &finds.sessions,
                found: (finds.found, finds.sessions.len()),
                stopped: finds.stopped,
                troubles: &finds.troubles,
                now: now.timestamp().as_millisecond(),
                zone: &state.zone,
            };
            let title = format!("{text} · search · threadline");
            let title = if text.is_empty() { "Search · threadline" } else { &title };
            let frame = Frame { title, tab: Tab::Search, class: "lists", scripts: &["lists.js"] };
            Ok(super::list(&frame, &threadline_html::search(&page)))
        }
    }
}

/// The matches found so far.
#[derive(Default)]
struct Finds {
    sessions: Vec<FoundSession>,
    found: usize,
    stopped: bool,
    troubles: Vec<String>,
    /// The matches as JSON lines, if requested.
    json: Vec<u8>,
    /// The number of matches in the current session, and the first ones.
    count: usize,
    blocks: Vec<FoundBlock>,
}

impl Finds {
    fn run(&mut self, state: &State, ask: &Ask, query: &Query) {
        let scope = state.app.search_scope(Some(query), None);
        self.troubles.extend(scope.unread.iter().map(ToString::to_string));
        let sessions = &scope.sessions;
        let told = scope.search(query, Some(0), &ask.gone, &mut |event| {
            let flow = match event {
                Event::Hit(at, hit) if ask.form == Form::Json => self.write(&sessions[at], &hit),
                Event::Hit(at, hit) => self.hit(&sessions[at], hit),
                Event::End(at) => self.end(&sessions[at]),
                Event::Copy => ControlFlow::Continue(()),
                Event::Trouble(trouble) => {
                    self.troubles.extend(is_incomplete(&trouble).then(|| trouble_message(&trouble)));
                    ControlFlow::Continue(())
                }
            };
            Ok::<_, std::convert::Infallible>(flow)
        });
        let Ok(()) = told;
    }

    fn hit(&mut self, session: &Searched, hit: LogHit) -> ControlFlow<()> {
        self.found += 1;
        self.count += 1;
        let agent = session.agent_of(&session.logs[hit.log]);
        if let Some(found) = hit.hit.filter(|_| self.blocks.len() < BLOCKS) {
            self.blocks.push(FoundBlock {
                anchor: found.anchor,
                agent,
                kind: found.kind.name(),
                tool: found.tool,
                at: found.timestamp,
                text: found.text,
                ranges: found.ranges,
                copies: hit.copies,
            });
        }
        if self.found < FINDS {
            return ControlFlow::Continue(());
        }
        self.stopped = true;
        let _ = self.end(session);
        ControlFlow::Break(())
    }

    fn end(&mut self, session: &Searched) -> ControlFlow<()> {
        let (count, blocks) = (std::mem::take(&mut self.count), std::mem::take(&mut self.blocks));
        if count == 0 {
            return ControlFlow::Continue(());
        }
        let summary = summary(session);
        let summary = summary.as_ref();
        let heading = summary.and_then(SessionSummary::heading);
        self.sessions.push(FoundSession {
            id: session.id.clone(),
            title: heading.unwrap_or_else(|| session.id.clone()),
            project: summary.and_then(SessionSummary::project).unwrap_or(&session.folder).to_owned(),
            modified: millis(session.modified),
            count,
            blocks,
        });
        self.stopped = self.sessions.len() == SESSIONS;
        if self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Writes the same object as `threadline search --json`.
    fn write(&mut self, session: &Searched, hit: &LogHit) -> ControlFlow<()> {
        let Some(object) = hit_object(session, hit) else { return ControlFlow::Continue(()) };
        self.found += 1;
        let written = serde_json::to_writer(&mut self.json, &object);
        self.json.push(b'\n');
        match written.is_ok() && self.found < OBJECTS {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}
