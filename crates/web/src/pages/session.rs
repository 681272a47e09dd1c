//! The page of a session, and the parts of it that are loaded later.

use threadline_app::{LiveError, ReadSpans, SessionSelector, TurnSpan};
use threadline_html::{Markup, Options, PartTurn, Served, served_page};
use threadline_store::SessionFile;
use threadline_view::{TurnView, anchor_line};

use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::held::Held;
use crate::plan::Plan;
use crate::shelf::no_such_session;
use crate::state::State;

/// Tool output longer than this is truncated on pages; the raw line has all of it.
const MAX_OUTPUT: usize = 200 << 10;

/// Approximate number of log bytes in the parts that are sent with a page. A session of up to `WHOLE` bytes
/// is sent completely.
const FIRST: u64 = 160 << 10;
const WHOLE: u64 = 600 << 10;

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let look = look(ask)?;
    match ask.form {
        Form::Html => html(state, ask, &look),
        Form::Json | Form::Markdown => super::twin::page(state, ask, &look),
    }
}

/// What of the session is asked for.
pub(crate) fn look(ask: &Ask) -> Result<SessionSelector, Problem> {
    let leaf = ask
        .get("branch")
        .map(|name| anchor_line(name).ok_or_else(|| Problem::bad("That is no name of a branch")));
    Ok(SessionSelector { agent: ask.get("agent").map(str::to_owned), leaf: leaf.transpose()? })
}

/// What stands behind the address of a page, and of everything that it asks for.
fn query(look: &SessionSelector) -> String {
    let mut parts = Vec::new();
    if let Some(agent) = &look.agent {
        parts.push(format!("agent={}", threadline_html::url(agent)));
    }
    if let Some(leaf) = look.leaf {
        parts.push(format!("branch=m{leaf}"));
    }
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

pub(crate) fn options(state: &State, id: &str) -> Options {
    Options {
        max_output: Some(MAX_OUTPUT),
        served_at: Some(format!("/s/{}", threadline_html::url(id))),
        ..Options::new(state.zone.clone())
    }
}

fn html(state: &State, ask: &Ask, look: &SessionSelector) -> Result<Answer, Problem> {
    let id = ask.part(0);
    let at = ask.get("at").and_then(anchor_line);
    let (plan, told, drawn, facts) = state.shelf.with(&state.app, id, |held| {
        held.live.count();
        let plan = held.plan(look)?;
        let from = at.map_or(0, |line| plan.part_at(line));
        let drawn = first_parts(held, look, &plan, from)?;
        let spans: Vec<TurnSpan> =
            plan.parts[drawn.clone()].iter().flat_map(|(_, spans)| spans.clone()).collect();
        let told = held.read(look, &plan, &spans)?;
        Ok((plan, told, drawn, Facts::of(held, look)?))
    })?;
    let options = options(state, id);
    let mut markup = draw(&told, &plan, &plan.parts[drawn.clone()], &options).into_iter();
    let parts = plan.parts.iter().enumerate();
    let parts =
        parts.map(|(i, (part, _))| (part, if drawn.contains(&i) { markup.next() } else { None })).collect();
    let query = query(look);
    let served = facts.served(&plan, &options, &query, parts);
    Ok(Answer::Html(served_page(&served)))
}

/// Data of a page besides the conversation.
pub(crate) struct Facts {
    file: SessionFile,
    size: u64,
    agent: Option<String>,
    branch: bool,
    cwd: Option<String>,
}

impl Facts {
    pub(crate) fn of(held: &Held, look: &SessionSelector) -> Result<Self, Problem> {
        let agent = held.live.family().agents.iter().find(|agent| Some(&agent.id) == look.agent.as_ref());
        Ok(Self {
            file: held.live.file().clone(),
            size: held.live.log(look)?.0.bytes(),
            agent: agent.map(|agent| agent.description.clone().unwrap_or_else(|| agent.id.clone())),
            branch: look.leaf.is_some(),
            cwd: held.live.cwd(),
        })
    }

    pub(crate) fn served<'a>(
        &self,
        plan: &'a Plan,
        options: &'a Options,
        query: &'a str,
        parts: Vec<(&'a threadline_html::Part, Option<Markup>)>,
    ) -> Served<'a> {
        let mut notes = Vec::new();
        if plan.skipped > 0 {
            notes.push(format!(
                "Log too large: showing lines {} to the end. Show all: `threadline show {}`",
                plan.skipped + 1,
                self.file.id
            ));
        }
        if plan.torn {
            notes.push(
                "The last line of the log is incomplete (still being written, or truncated)".to_owned(),
            );
        }
        let instead = match (&self.agent, self.branch) {
            (Some(agent), _) => Some(format!("Sub-agent: {agent}.")),
            (None, true) => Some("Abandoned branch.".to_owned()),
            (None, false) => None,
        };
        Served {
            layout: &plan.layout,
            options,
            query,
            parts,
            rail: &plan.rail,
            resume: instead
                .is_none()
                .then(|| threadline_view::resume_command(&self.file.id, self.cwd.as_deref())),
            size: self.size,
            notes,
            instead,
            last_line: plan.lines,
            stamp: &plan.stamp,
        }
    }
}

/// Returns the range of parts that are sent with the page.
fn first_parts(
    held: &Held,
    look: &SessionSelector,
    plan: &Plan,
    from: usize,
) -> Result<std::ops::Range<usize>, Problem> {
    let log = held.live.log(look)?.0;
    let size =
        |part: &threadline_html::Part| (part.lines.0..=part.lines.1).map(|line| log.size(line)).sum::<u64>();
    if from == 0 && log.bytes() <= WHOLE {
        return Ok(0..plan.parts.len());
    }
    let mut to = from;
    let mut bytes = 0;
    while to < plan.parts.len() && (to == from || bytes < FIRST) {
        bytes += size(&plan.parts[to].0);
        to += 1;
    }
    Ok(from..to)
}

/// Renders parts from their lines.
fn draw(
    told: &ReadSpans,
    plan: &Plan,
    parts: &[(threadline_html::Part, Vec<TurnSpan>)],
    options: &Options,
) -> Vec<Markup> {
    let mut at = 0;
    let mut drawn = Vec::new();
    for (_, spans) in parts {
        let turns: Vec<PartTurn> = spans
            .iter()
            .map(|span| {
                at += 1;
                let turn = &plan.layout.turns[span.turn].turn;
                let turn = TurnView { items: told.items(&plan.layout, at - 1), ..turn.clone() };
                PartTurn { turn, goes_on: span.entries.start > 0 }
            })
            .collect();
        drawn.push(threadline_html::part(&turns, &plan.layout, options));
    }
    drawn
}

/// Returns one part, which the page loads when it comes into view.
pub(crate) fn part(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let (id, look) = (ask.part(0), look(ask)?);
    let name = ask.get("name").unwrap_or_default();
    let (plan, told, at) = state.shelf.with(&state.app, id, |held| {
        let plan = held.plan(&look)?;
        let at = plan.part_named(name).ok_or_else(|| Problem::not_found("Part not found"))?;
        let told = held.read(&look, &plan, &plan.parts[at].1)?;
        Ok((plan, told, at))
    })?;
    let mut drawn = draw(&told, &plan, &plan.parts[at..=at], &options(state, id));
    let stamp = plan.parts[at].0.stamp.clone();
    Ok(Answer::Part(drawn.pop().unwrap_or_default(), stamp))
}

/// Returns a section of the outline.
pub(crate) fn rail(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let (id, look) = (ask.part(0), look(ask)?);
    let plan = state.shelf.with(&state.app, id, |held| Ok(held.plan(&look)?))?;
    let number = ask.get("number").and_then(|number| number.parse::<usize>().ok());
    let rail = number
        .and_then(|number| plan.rail.get(number))
        .ok_or_else(|| Problem::not_found("Part not found"))?;
    Ok(Answer::Part(threadline_html::rail_part(&plan.layout, rail.number), rail.stamp.clone()))
}

/// Renders everything around the conversation again.
pub(crate) fn around(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let (id, look) = (ask.part(0), look(ask)?);
    let (plan, facts) =
        state.shelf.with(&state.app, id, |held| Ok((held.plan(&look)?, Facts::of(held, &look)?)))?;
    let (options, query) = (options(state, id), query(&look));
    let served = facts.served(&plan, &options, &query, Vec::new());
    let (opening, ending) = threadline_html::around(&served);
    let object =
        serde_json::json!({"opening": opening.as_str(), "ending": ending.as_str(), "stamp": plan.stamp});
    Ok(Answer::Data(object))
}

/// A sub-agent log larger than this, in more than 8 parts, is not shown inline.
const INSIDE: u64 = 1 << 20;

/// Renders the conversation of a sub-agent, to be shown inline in the call that started it.
pub(crate) fn inside(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let (id, look) = (ask.part(0), look(ask)?);
    let agent = look.agent.clone().ok_or_else(|| Problem::bad("Missing parameter: agent"))?;
    let read = state.shelf.with(&state.app, id, |held| {
        let plan = held.plan(&look)?;
        let spans: Vec<TurnSpan> = plan.parts.iter().flat_map(|(_, spans)| spans.clone()).collect();
        if held.live.log(&look)?.0.bytes() > INSIDE && plan.parts.len() > 8 {
            return Ok(None);
        }
        let told = held.read(&look, &plan, &spans)?;
        Ok(Some((plan, told, spans)))
    })?;
    let Some((plan, told, spans)) = read else {
        let mut note = Markup::new();
        note.lit("<p class=\"note\">Too large to show inline</p>");
        return Ok(Answer::Html(note));
    };
    let turns = turns_of(&plan, &told, &spans);
    let cwd = plan.layout.told.cwd.as_deref();
    Ok(Answer::Html(threadline_html::inside(&turns, &agent, cwd, &options(state, id))))
}

/// Whole turns out of stretches.
pub(crate) fn turns_of(plan: &Plan, told: &ReadSpans, spans: &[TurnSpan]) -> Vec<TurnView> {
    let mut turns: Vec<TurnView> = Vec::new();
    for (i, span) in spans.iter().enumerate() {
        let items = told.items(&plan.layout, i);
        match turns.last_mut() {
            Some(turn) if span.entries.start > 0 => turn.items.extend(items),
            _ => turns.push(TurnView { items, ..plan.layout.turns[span.turn].turn.clone() }),
        }
    }
    turns
}

/// Maximum number of bytes sent of a raw line, unless all of it is requested.
const RAW: u64 = 1 << 20;

/// Returns a raw line of the log.
pub(crate) fn raw(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let (id, look) = (ask.part(0), look(ask)?);
    let line = ask
        .get("line")
        .and_then(|line| line.parse().ok())
        .ok_or_else(|| Problem::bad("Missing or invalid parameter: line"))?;
    let most = if ask.get("whole").is_some() { u64::MAX / 2 } else { RAW };
    let found = state.shelf.with(&state.app, id, |held| Ok(held.live.log(&look)?.0.raw(line, most)?))?;
    let (bytes, length) = found.ok_or_else(|| Problem::not_found("Line not found"))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if length > most {
        text.push_str(&format!("\n\n… truncated; {length} bytes in total"));
    }
    Ok(Answer::Text(text))
}

/// Returns the changes made to files.
pub(crate) fn changes(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let id = ask.part(0);
    let (edits, title, cwd) = state.shelf.with(&state.app, id, |held| {
        let plan = held.plan(&SessionSelector::default())?;
        Ok((held.live.edits()?, plan.layout.told.title.clone(), held.live.cwd()))
    })?;
    let edits = edits.ok_or_else(|| {
        Problem::new(axum::http::StatusCode::PAYLOAD_TOO_LARGE, "Too many changes to show here")
            .hint(format!("Run `threadline show {id} --patch` to print them."))
    })?;
    let changes = threadline_view::changes(&edits);
    match ask.form {
        Form::Html => {
            let title = title.unwrap_or_else(|| id.to_owned());
            Ok(Answer::Html(threadline_html::changes_page(
                &changes,
                &title,
                cwd.as_deref(),
                &options(state, id),
            )))
        }
        Form::Markdown => Ok(Answer::Text(threadline_view::patch(&changes, cwd.as_deref()))),
        Form::Json => Answer::json(changes.iter().map(|file| {
            let patch =
                (!file.parts.is_empty()).then(|| threadline_view::patch(std::slice::from_ref(file), None));
            serde_json::json!({"type": "change", "path": file.path, "edits": file.edits, "notes": file.notes,
                "before": file.before, "after": file.after, "patch": patch})
        })),
    }
}

/// Returns the anchors of the blocks in this conversation that match a query.
pub(crate) fn find(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let (id, look) = (ask.part(0), look(ask)?);
    let (path, plan) = state
        .shelf
        .with(&state.app, id, |held| Ok((held.live.log(&look)?.0.path.clone(), held.plan(&look)?)))?;
    let query = ask.get("q").unwrap_or_default();
    let query = threadline_search::Query::parse(query, &state.now_here())
        .map_err(|error| Problem::bad(error.to_string()))?;
    let mut names: Vec<String> = Vec::new();
    let searched = threadline_search::Searcher::new(&query).search(
        || threadline_store::open_regular(&path),
        |found| {
            names.push(found.hit(0).anchor);
            if names.len() < MOST_HITS {
                std::ops::ControlFlow::Continue(())
            } else {
                std::ops::ControlFlow::Break(())
            }
        },
    );
    searched.map_err(|error| Problem::failed("The log could not be searched").hint(error.to_string()))?;
    // What the conversation left behind is found by the search over all sessions.
    names.retain(|name| anchor_line(name).is_some_and(|line| plan.holds(line)));
    names.dedup();
    Ok(Answer::Data(serde_json::json!({"hits": names})))
}

const MOST_HITS: usize = 20_000;

impl From<LiveError> for Problem {
    fn from(missing: LiveError) -> Self {
        match missing {
            LiveError::NoAgent => Self::not_found("The session has no such sub-agent"),
            LiveError::NoLine => Self::not_found("The session has no such line"),
            LiveError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                no_such_session().hint("Its log was cut short while this page was made. Ask again.")
            }
            LiveError::Io(error) => error.into(),
        }
    }
}
