//! Search over the sessions of all homes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
pub use threadline_search::{LogHit, LogProblem, Query, ScanEvent, SearchedSession};
use threadline_search::{Searcher, SessionScan, directories, retain_matching};
use threadline_store::{SessionFile, SessionLogs, open_regular, read_last_active};
use threadline_view::humanize;
use threadline_view::wire::{HitObject, moment};

use crate::config::App;
use crate::list::SessionSummary;

/// The sessions to search, last active first.
#[derive(Debug)]
pub struct SearchScope {
    /// The sessions.
    pub sessions: Vec<SearchedSession>,
    /// Folders that could not be read.
    pub unread: Vec<io::Error>,
}

impl App {
    /// Returns the sessions that the `session:` and `project:` fields of a query select. With `project`, only
    /// those with this text in their working directory or project folder.
    pub fn search_scope(&self, query: Option<&Query>, project: Option<&str>) -> SearchScope {
        let listing = self.store().session_logs();
        let mut sessions: Vec<SearchedSession> = listing.found.into_iter().map(searched).collect();
        if let Some(query) = query {
            retain_matching(&mut sessions, query, &open);
        }
        if let Some(text) = project {
            let mut directories = directories(&sessions, &open).into_iter();
            sessions.retain(|session| {
                let cwd = directories.next().flatten().unwrap_or_default();
                cwd.contains(text) || session.folder.contains(text)
            });
        }
        sessions.par_iter_mut().for_each(|session| {
            if let Ok(last_active) = read_last_active(&session.path) {
                session.last_active = last_active;
            }
        });
        sessions.sort_by_key(|session| std::cmp::Reverse(session.last_active));
        SearchScope { sessions, unread: listing.errors }
    }
}

impl SearchScope {
    /// Searches the sessions in order and calls `on_event` for each result, until it breaks or `cancelled` is
    /// set.
    ///
    /// `context` is the number of lines around a hit; with `None`, hits contain no text.
    ///
    /// # Errors
    ///
    /// Those of `on_event`.
    pub fn search<E: Send>(
        &self,
        query: &Query,
        context: Option<usize>,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let order: Vec<usize> = (0..self.sessions.len()).collect();
        self.search_in(&order, query, context, cancelled, on_event)
    }

    /// Searches some of the sessions, in this order. See [`SearchScope::search`].
    ///
    /// # Errors
    ///
    /// Those of `on_event`.
    pub fn search_in<E: Send>(
        &self,
        order: &[usize],
        query: &Query,
        context: Option<usize>,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let scan = SessionScan { query, sessions: &self.sessions, open: &open, context, cancelled };
        scan.run(order, &mut |event| on_event(event))
    }

    /// Returns the sessions by rank: those with a hit in a prompt first, then in a reply; then by number of
    /// hits.
    ///
    /// Searches everything once, and keeps only counts.
    pub fn ranked(&self, query: &Query) -> Vec<usize> {
        let mut found: HashMap<usize, (usize, usize)> = HashMap::new();
        let counted = self.search(query, None, &AtomicBool::new(false), &mut |event| {
            if let ScanEvent::Hit(session, hit) = event {
                let (best, count) = found.entry(session).or_insert((usize::MAX, 0));
                *best = (*best).min(hit.kind.rank());
                *count += 1;
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        let Ok(()) = counted;
        let mut order: Vec<usize> = (0..self.sessions.len()).collect();
        // Sessions without a hit stay, so that the search reports their errors.
        order.sort_by_key(|session| {
            let (best, count) = found.get(session).copied().unwrap_or((usize::MAX, 0));
            (best, std::cmp::Reverse(count), *session)
        });
        order
    }
}

/// Returns the anchors of the blocks of one log that match a query, at most `limit`.
///
/// # Errors
///
/// If the log cannot be read.
pub fn matching_anchors(log: &Path, query: &Query, limit: usize) -> io::Result<Vec<String>> {
    let mut anchors: Vec<String> = Vec::new();
    Searcher::new(query).search(
        || open_regular(log),
        |found| {
            anchors.push(found.hit(0).anchor);
            if anchors.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    )?;
    anchors.dedup();
    Ok(anchors)
}

fn searched(session: SessionLogs) -> SearchedSession {
    let (modified, SessionLogs { file, own, agents }) = (session.modified(), session);
    let logs = own.into_iter().chain(agents).map(|log| log.path).collect();
    SearchedSession {
        id: file.id.into(),
        folder: file.folder.unwrap_or_default(),
        path: file.path,
        last_active: modified,
        logs,
    }
}

fn open(log: &Path) -> io::Result<Box<dyn Read>> {
    Ok(Box::new(open_regular(log)?))
}

/// Reads the head and the tail of a session; returns `None` if its own log cannot be read.
pub fn summary(session: &SearchedSession) -> Option<SessionSummary> {
    SessionSummary::of(SessionFile::at(&session.path)).ok()
}

/// Returns a hit as public JSON; `None` if it contains no text.
pub fn hit_object<'a>(session: &'a SearchedSession, hit: &'a LogHit) -> Option<HitObject<'a>> {
    let path = &session.logs[hit.log];
    let found = hit.hit.as_ref()?;
    Some(HitObject {
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
    })
}

/// Returns whether a problem makes the results incomplete.
pub fn is_incomplete(trouble: &LogProblem) -> bool {
    matches!(trouble, LogProblem::Unread(..) | LogProblem::SkippedLine { .. })
}

/// Formats a problem of a search.
pub fn trouble_message(trouble: &LogProblem) -> String {
    match trouble {
        LogProblem::HugeLine { path, line_no, length } => {
            format!("{}: line {line_no} is {} long", path.display(), humanize::bytes(*length as u64))
        }
        LogProblem::SkippedLine { path, line_no, length } => {
            format!("{}: line {line_no} skipped: {} long", path.display(), humanize::bytes(*length))
        }
        LogProblem::Gone(path) => format!("{} no longer exists", path.display()),
        LogProblem::Unread(path, error) => format!("cannot read {}: {error}", path.display()),
    }
}
