//! From what a person typed to sessions in memory.

use std::io::Read;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use threadline_entry::{Entry, Finding};
use threadline_html::{RawLine, RawLines};
use threadline_session::{Agent, Family, Inside, Session, Spawn};
use threadline_store::{AgentFile, Candidate, FindError, SessionFile, read_log};
use threadline_usage::Book;
use threadline_view::Spending;

use crate::context::Context;
use crate::error::CommandError;

/// The file of the session that `needle` names.
pub(crate) fn find(cx: &Context, needle: &str) -> Result<SessionFile, CommandError> {
    cx.store.find(needle).map_err(|error| {
        let mut told = CommandError::new(error.to_string());
        match &error {
            FindError::NoMatch { near, .. } => {
                for candidate in near {
                    told = told.hint(format!("did you mean {}", describe(candidate)));
                }
                if near.is_empty() {
                    told = told.hint("`threadline list` shows the sessions there are");
                }
            }
            FindError::Ambiguous { found, .. } => {
                for candidate in found.iter().take(8) {
                    told = told.hint(describe(candidate));
                }
            }
            _ => {}
        }
        told
    })
}

fn describe(candidate: &Candidate) -> String {
    match &candidate.title {
        Some(title) => format!("{} \"{}\"", candidate.id, threadline_term::visible(title)),
        None => candidate.id.to_string(),
    }
}

/// Reads a whole log.
pub(crate) fn session(path: &Path, id: &str) -> Result<Session, CommandError> {
    let mut session = Session::with_id(id);
    read(path, |entry, findings| session.push(entry, findings))?;
    Ok(session)
}

/// Reads a whole log whose lines go to `raw` too.
fn session_and_lines(path: &Path, id: &str, raw: &mut RawLines) -> Result<Session, CommandError> {
    let mut session = Session::with_id(id);
    read(path, |entry, findings| {
        raw.add(raw_line(&entry));
        session.push(entry, findings);
    })?;
    Ok(session)
}

fn raw_line(entry: &Entry) -> RawLine {
    let (whole, range) = entry.shared_text();
    RawLine { line_no: entry.at().line_no, whole, range }
}

fn read(path: &Path, sink: impl FnMut(Entry, Vec<Finding>)) -> Result<(), CommandError> {
    read_log(path, sink)
        .map_err(|error| CommandError::new(format!("cannot read {}: {error}", path.display())))
}

/// Reads a session with its sub-agents.
pub(crate) fn family(file: &SessionFile) -> Result<Family, CommandError> {
    let main = session(&file.path, &file.id)?;
    let agents = agents(file)?;
    // Of a large session both take a while.
    let (inside, _) = rayon::join(|| Inside::of(&main, &agents), || main.thread());
    Ok(Family::with(main, agents, inside))
}

/// Reads a session with its sub-agents and what its calls cost; all lines go to `raw` on the way.
pub(crate) fn family_and_lines(
    file: &SessionFile,
    raw: &mut RawLines,
) -> Result<(Family, Spending), CommandError> {
    let read = || {
        raw.begin("");
        let main = session_and_lines(&file.path, &file.id, raw)?;
        let mut read = |file: &AgentFile| {
            raw.begin(&file.id);
            agent(file, session_and_lines(&file.path, &file.id, raw)?)
        };
        let agents = file.agents().found.iter().map(&mut read).collect::<Result<Vec<_>, _>>()?;
        raw.close();
        Ok::<_, CommandError>((main, agents))
    };
    let (read, book) = rayon::join(read, || book(None));
    let (main, agents) = read?;
    let (family, spending) = price(main, agents, &book?);
    for agent in &family.agents[family.logged().len()..] {
        raw.begin(&agent.id);
        agent.session.entries().iter().for_each(|entry| raw.add(raw_line(entry)));
    }
    Ok((family, spending))
}

/// Reads a session with its sub-agents, and what its calls cost by the price book that holds here.
pub(crate) fn priced_family(file: &SessionFile) -> Result<(Family, Spending), CommandError> {
    let book = book(None)?;
    Ok(price(session(&file.path, &file.id)?, agents(file)?, &book))
}

/// Joins a session with its sub-agents, and adds up what their calls cost.
fn price(main: Session, agents: Vec<Agent>, book: &Book) -> (Family, Spending) {
    let spend = || {
        // Everybody asks for the conversation next.
        main.thread();
        Spending::of_logs(&main, &agents, book)
    };
    let (inside, spending) = rayon::join(|| Inside::of(&main, &agents), spend);
    (Family::with(main, agents, inside), spending)
}

/// Reads the sub-agents of a session.
pub(crate) fn agents(file: &SessionFile) -> Result<Vec<Agent>, CommandError> {
    file.agents().found.iter().map(|file| agent(file, session(&file.path, &file.id)?)).collect()
}

/// The price book: the one that comes with the program, with the person's own laid over it. Without a name, theirs is
/// looked for where configuration lies.
pub(crate) fn book(named: Option<&Path>) -> Result<Book, CommandError> {
    let file = named.map(Path::to_owned).or_else(|| {
        let config = etcetera::choose_base_strategy().map(|base| base.config_dir()).ok();
        config.map(|config| config.join("threadline/prices.json")).filter(|file| file.is_file())
    });
    let Some(file) = file else { return Ok(Book::embedded()) };
    let could_not =
        |error: &dyn std::fmt::Display| CommandError::new(format!("cannot read {}: {error}", file.display()));
    let json = std::fs::read_to_string(&file).map_err(|error| could_not(&error))?;
    Book::embedded().with(&json).map_err(|error| could_not(&error))
}

/// What the calls of a session cost, by the price book that holds here.
pub(crate) fn spending(family: &Family) -> Result<Spending, CommandError> {
    Ok(Spending::of(family, &book(None)?))
}

/// Reads output that was kept in a file of its own, beside the log.
pub(crate) fn kept_output(file: &SessionFile, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    file.kept_output(path)?.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn agent(file: &AgentFile, session: Session) -> Result<Agent, CommandError> {
    let meta = file.read_meta()?;
    let meta = meta.as_ref();
    Ok(Agent {
        id: file.id.clone(),
        kind: file.kind,
        agent_type: meta.and_then(|meta| meta.agent_type()),
        description: meta.and_then(|meta| meta.description()),
        workflow_run: file.run.clone(),
        session,
        spawn: meta.and_then(|meta| meta.tool_use_id()).map(|tool_use_id| Spawn { agent: None, tool_use_id }),
    })
}

/// The paths of every log below a folder, in order. A folder that cannot be looked into ends it.
pub(crate) fn logs_below(dir: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let logs = threadline_store::logs_below(dir);
    match logs.unread.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(logs.found.into_iter().map(|log| log.path).collect()),
    }
}
