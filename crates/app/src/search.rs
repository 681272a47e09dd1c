//! Search over the sessions of all homes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rayon::prelude::*;
pub use threadline_search::{LogHit, LogProblem, Query, QueryError, ScanEvent, SearchedSession};
use threadline_search::{Searcher, SessionScan, directories, retain_matching};
use threadline_store::{SessionFile, SessionLogs, open_regular, read_last_active};
use threadline_view::humanize;
use threadline_view::wire::{HitObject, moment};

use crate::config::App;
use crate::list::SessionSummary;
use crate::redaction::DisplayRedaction;
use crate::scope::ProjectScope;

/// The sessions to search, last active first.
#[derive(Debug)]
pub struct SearchScope {
    redaction: Option<Arc<DisplayRedaction>>,
    /// The sessions.
    pub sessions: Vec<SearchedSession>,
    /// Folders that could not be read.
    pub unread: Vec<io::Error>,
}

impl App {
    /// Returns the sessions that the `session:` and `project:` fields of a query select. With `project`, only
    /// those with this text in their working directory or project folder.
    pub fn search_scope(&self, query: Option<&Query>, project: Option<&str>) -> SearchScope {
        self.search_scope_in(query, &project.map_or(ProjectScope::All, ProjectScope::containing))
    }

    /// Returns the sessions of a project that the `session:` and `project:` fields of a query select.
    pub fn search_scope_in(&self, query: Option<&Query>, scope: &ProjectScope) -> SearchScope {
        let listing = self.store().session_logs();
        let mut sessions: Vec<SearchedSession> = listing.found.into_iter().map(searched).collect();
        if let Some(query) = query {
            retain_matching(&mut sessions, query, &open);
        }
        if *scope != ProjectScope::All {
            let mut directories = directories(&sessions, &open).into_iter();
            sessions.retain(|session| {
                let cwd = directories.next().flatten();
                scope.contains(cwd.as_deref(), Some(&session.folder))
            });
        }
        sessions.par_iter_mut().for_each(|session| {
            // Without its own log, a session was last active when one of its sub-agents was.
            let own = read_last_active(&session.path).ok();
            let agents = || session.logs.iter().filter_map(|log| read_last_active(log).ok()).max();
            session.last_active = own.or_else(agents).unwrap_or(session.last_active);
        });
        sessions.sort_by_key(|session| std::cmp::Reverse(session.last_active));
        SearchScope { redaction: self.config().redaction.clone(), sessions, unread: listing.errors }
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
        scan.run(order, &mut |mut event| {
            if let ScanEvent::Hit(_, hit) = &mut event {
                self.mask_hit(query, hit);
            }
            on_event(event)
        })
    }

    /// Masks secrets in the text of a hit, if the configuration requires it.
    fn mask_hit(&self, query: &Query, hit: &mut LogHit) {
        if let (LogHit { hit: Some(hit), .. }, Some(redaction)) = (hit, &self.redaction)
            && let Cow::Owned(clean) = redaction.text(&hit.text)
        {
            hit.ranges = query.highlight(&clean);
            hit.text = clean;
        }
    }

    /// Searches all sessions once, and then calls `on_event` for each result, the most relevant sessions
    /// first.
    ///
    /// Relevance combines the number of matches, the kinds of text they are in (titles and prompts count more
    /// than replies, and these more than tool output), and how recently the session was active. At most
    /// `max_kept` matches of a session have text; the others are only counted.
    ///
    /// # Errors
    ///
    /// Those of `on_event`.
    pub fn search_by_relevance<E: Send>(
        &self,
        query: &Query,
        context: Option<usize>,
        max_kept: usize,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut found: HashMap<usize, SessionMatches> = HashMap::new();
        let order: Vec<usize> = (0..self.sessions.len()).collect();
        let scan = SessionScan { query, sessions: &self.sessions, open: &open, context, cancelled };
        // Hits that are only counted need not be masked.
        scan.run(&order, &mut |event| match event {
            ScanEvent::Hit(session, hit) => {
                found.entry(session).or_default().add(hit, max_kept);
                Ok(ControlFlow::Continue(()))
            }
            ScanEvent::End(session) if found.contains_key(&session) => Ok(ControlFlow::Continue(())),
            event => on_event(event),
        })?;
        let newest = self.sessions.iter().map(|session| session.last_active).max();
        let mut ranked: Vec<(f64, usize, SessionMatches)> = found
            .into_iter()
            .map(|(session, matches)| {
                let active = self.sessions[session].last_active;
                let age = newest.and_then(|newest| newest.duration_since(active).ok()).unwrap_or_default();
                (matches.relevance(age), session, matches)
            })
            .collect();
        ranked.sort_by(|(x, a, _), (y, b, _)| y.total_cmp(x).then_with(|| a.cmp(b)));
        for (_, session, matches) in ranked {
            for mut hit in matches.hits() {
                self.mask_hit(query, &mut hit);
                if on_event(ScanEvent::Hit(session, hit))?.is_break() {
                    return Ok(());
                }
            }
            if on_event(ScanEvent::End(session))?.is_break() {
                return Ok(());
            }
        }
        Ok(())
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

/// The matches of one session.
#[derive(Default)]
struct SessionMatches {
    kept: Vec<LogHit>,
    /// The number of matches that were not kept, and one of them without its text.
    dropped: Option<(usize, LogHit)>,
    /// The sum of the weights of all matches.
    weight: f64,
}

impl SessionMatches {
    fn add(&mut self, mut hit: LogHit, max_kept: usize) {
        self.weight += [4.0, 2.0, 1.0][hit.kind.rank().min(2)];
        if self.kept.len() < max_kept {
            return self.kept.push(hit);
        }
        hit.hit = None;
        self.dropped.get_or_insert((0, hit)).0 += 1;
    }

    /// Returns the relevance of a session that was active this long before the newest one.
    ///
    /// Further matches count less and less. A session as old as [`HALF_LIFE`] has three quarters of the
    /// relevance of a new one, a very old one has half.
    fn relevance(&self, age: Duration) -> f64 {
        let recency = 0.5_f64.powf(age.as_secs_f64() / HALF_LIFE.as_secs_f64());
        (1.0 + self.weight).ln() * (0.5 + 0.5 * recency)
    }

    fn hits(self) -> impl Iterator<Item = LogHit> {
        let dropped = self.dropped.into_iter().flat_map(|(n, hit)| std::iter::repeat_n(hit, n));
        self.kept.into_iter().chain(dropped)
    }
}

/// The age at which half of the advantage of a recent session is gone.
const HALF_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

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
