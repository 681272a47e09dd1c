//! Search in all sessions, with the query language of `threadline search`.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use threadline_html::{FoundBlock, FoundSession, Frame, SearchPage, Tab};
use threadline_search::{Event, LogHit, Query, Scan, Searched, Trouble, keep_wanted};
use threadline_store::{SessionLogs, glance};
use threadline_view::wire::{HitObject, moment};

use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::cards::millis;
use crate::state::State;

/// A page shows so many sessions, and so much of each; what is beyond is counted or asked for again.
const SESSIONS: usize = 50;
const BLOCKS: usize = 5;
/// Nobody reads on after so many finds.
const FINDS: usize = 2000;
/// A program that wants more asks `threadline search --json`.
const OBJECTS: usize = 10_000;

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let text = ask.get("q").unwrap_or_default();
    let now = jiff::Timestamp::try_from(state.now()).unwrap_or_default().to_zoned(state.zone.clone());
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

/// What was found so far.
#[derive(Default)]
struct Finds {
    sessions: Vec<FoundSession>,
    found: usize,
    stopped: bool,
    troubles: Vec<String>,
    /// The finds as JSON lines, where these are asked for.
    json: Vec<u8>,
    /// Of the session at hand.
    count: usize,
    blocks: Vec<FoundBlock>,
}

impl Finds {
    fn run(&mut self, state: &State, ask: &Ask, query: &Query) {
        let listing = state.store.session_logs();
        self.troubles.extend(listing.unread.iter().map(ToString::to_string));
        let mut sessions: Vec<Searched> = listing.found.into_iter().map(searched).collect();
        keep_wanted(&mut sessions, query, &open);
        let order: Vec<usize> = (0..sessions.len()).collect();
        let scan = Scan { query, sessions: &sessions, open: &open, context: Some(0), cancelled: &ask.gone };
        let told = scan.run(&order, &mut |event| {
            let flow = match event {
                Event::Hit(at, hit) if ask.form == Form::Json => self.write(&sessions[at], &hit),
                Event::Hit(at, hit) => self.hit(&sessions[at], hit),
                Event::End(at) => self.end(&sessions[at]),
                Event::Copy => ControlFlow::Continue(()),
                Event::Trouble(trouble) => {
                    self.troubles.extend(words(&trouble));
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
        let glance = glance(&threadline_store::SessionFile::at(&session.path)).ok();
        let glance = glance.as_ref();
        self.sessions.push(FoundSession {
            id: session.id.clone(),
            title: glance.and_then(|glance| glance.heading()).unwrap_or(&session.id).to_owned(),
            project: glance.and_then(|glance| glance.cwd.clone()).unwrap_or_else(|| session.folder.clone()),
            modified: millis(session.modified),
            count,
            blocks,
        });
        self.stopped = self.sessions.len() == SESSIONS;
        if self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The same object that `threadline search --json` prints.
    fn write(&mut self, session: &Searched, hit: &LogHit) -> ControlFlow<()> {
        let Some(found) = &hit.hit else { return ControlFlow::Continue(()) };
        let path = &session.logs[hit.log];
        let object = HitObject {
            session: &session.id,
            agent: session.agent_of(path),
            path: path.to_string_lossy().into_owned(),
            line: found.line_no,
            anchor: &found.anchor,
            kind: found.kind.name(),
            tool: found.tool.as_deref(),
            timestamp: found.timestamp.map(moment),
            text: &found.text,
            ranges: found.ranges.iter().map(|range| [range.start, range.end]).collect(),
            role: found.role.name(),
            matches: found.n_matches,
            copies: hit.copies,
        };
        self.found += 1;
        let written = serde_json::to_writer(&mut self.json, &object);
        self.json.push(b'\n');
        match written.is_ok() && self.found < OBJECTS {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

fn searched(session: SessionLogs) -> Searched {
    let (modified, SessionLogs { file, own, agents }) = (session.modified(), session);
    let logs = own.into_iter().chain(agents).map(|log| log.path).collect();
    Searched { id: file.id.into(), folder: file.folder.unwrap_or_default(), path: file.path, modified, logs }
}

fn open(log: &Path) -> io::Result<Box<dyn Read>> {
    Ok(Box::new(threadline_store::open_regular(log)?))
}

/// What a reader should know; a log that went away meanwhile is nothing to tell.
fn words(trouble: &Trouble) -> Option<String> {
    match trouble {
        Trouble::Unread(path, error) => Some(format!("cannot read {}: {error}", path.display())),
        Trouble::LeftOut { path, line_no, .. } => {
            Some(format!("{}: line {line_no} skipped: too long", path.display()))
        }
        Trouble::Huge { .. } | Trouble::Gone(_) => None,
    }
}
