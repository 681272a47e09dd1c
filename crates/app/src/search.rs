//! Search over the sessions of all homes.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rayon::prelude::*;
pub use threadline_search::{LogHit, LogProblem, Query, QueryError, ScanEvent, SearchedSession};
use threadline_search::{Searcher, SessionScan, directories, read_first_uuid, retain_matching};
use threadline_store::{SessionFile, SessionLogs, last_active_in, open_regular, read_last_active};
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
            let own = open_regular(&session.path).ok().and_then(|mut log| {
                session.first_uuid = read_first_uuid(&mut log);
                last_active_in(&mut log).ok()
            });
            let agents = || session.logs.iter().filter_map(|log| read_last_active(log).ok()).max();
            session.last_active = own.or_else(agents).unwrap_or(session.last_active);
        });
        sessions.sort_by_key(|session| std::cmp::Reverse(session.last_active));
        SearchScope { redaction: self.config().redaction.clone(), sessions, unread: listing.errors }
    }
}

/// The extent of a search, and the text around each hit.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// The number of lines around a hit; with `None`, hits are only counted.
    pub context: Option<usize>,
    /// The number of hits of a session that are reported with text, if sessions are ranked. Further ones are
    /// only counted.
    pub max_shown: usize,
    /// The number of hits of a session after which the rest of it is not searched.
    pub max_found: usize,
}

impl Default for SearchLimits {
    /// Every hit, with its line.
    fn default() -> Self {
        Self { context: Some(0), max_shown: usize::MAX, max_found: usize::MAX }
    }
}

/// A session with hits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedSession {
    /// The index of the session in the scope.
    pub session: usize,
    /// The number of hits.
    pub n_hits: usize,
    relevance: f64,
}

impl SearchScope {
    /// Searches the sessions in order and calls `on_event` for each result, until it breaks or `cancelled` is
    /// set.
    ///
    /// # Errors
    ///
    /// Those of `on_event`.
    pub fn search<E>(
        &self,
        query: &Query,
        limits: SearchLimits,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let order: Vec<usize> = (0..self.sessions.len()).collect();
        self.search_in(&order, query, limits, cancelled, on_event)
    }

    /// Searches some of the sessions, in this order. See [`SearchScope::search`].
    ///
    /// # Errors
    ///
    /// Those of `on_event`.
    pub fn search_in<E>(
        &self,
        order: &[usize],
        query: &Query,
        limits: SearchLimits,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let scan = SessionScan {
            query,
            sessions: &self.sessions,
            open: &open,
            context: limits.context,
            max_per_session: limits.max_found,
            cancelled,
        };
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

    /// Counts the hits of every session, and returns the sessions that have some, the most relevant first.
    /// Calls `on_event` for copies, problems and sessions without hits.
    ///
    /// Relevance combines the number of hits, the kinds of text they are in (titles and prompts count more
    /// than replies, and these more than tool output), and how recently the session was active. `max_found`
    /// limits the number of hits of a session that are counted.
    ///
    /// # Errors
    ///
    /// Those of `on_event`.
    pub fn rank<E>(
        &self,
        query: &Query,
        max_found: usize,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<Vec<RankedSession>, E> {
        let newest = self.sessions.iter().map(|session| session.last_active).max();
        let mut ranked = Vec::new();
        let (mut n_hits, mut weight) = (0, 0.0);
        let limits = SearchLimits { context: None, max_found, ..SearchLimits::default() };
        self.search(query, limits, cancelled, &mut |event| match event {
            ScanEvent::Hit(_, hit) => {
                n_hits += 1;
                weight += [4.0, 2.0, 1.0][hit.kind.rank().min(2)];
                Ok(ControlFlow::Continue(()))
            }
            ScanEvent::End(session) if n_hits > 0 => {
                let active = self.sessions[session].last_active;
                let age = newest.and_then(|newest| newest.duration_since(active).ok()).unwrap_or_default();
                ranked.push(RankedSession { session, n_hits, relevance: relevance(weight, age) });
                (n_hits, weight) = (0, 0.0);
                Ok(ControlFlow::Continue(()))
            }
            event => on_event(event),
        })?;
        ranked.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then_with(|| a.session.cmp(&b.session)));
        Ok(ranked)
    }

    /// Counts the hits of all sessions, and then searches those that have some again, the most relevant
    /// first, to call `on_event` for each result. See [`SearchScope::rank`].
    ///
    /// The second search is short: it ends when `on_event` breaks, and in each session after the hits that
    /// are shown.
    ///
    /// # Errors
    ///
    /// Those of `on_event`.
    pub fn search_by_relevance<E>(
        &self,
        query: &Query,
        limits: SearchLimits,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut is_stopped = false;
        let ranked = self.rank(query, limits.max_found, cancelled, &mut |event| {
            let flow = on_event(event)?;
            is_stopped = flow.is_break();
            Ok(flow)
        })?;
        if is_stopped {
            return Ok(());
        }
        if limits.context.is_none() {
            for session in &ranked {
                if end_session(session, 0, on_event)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let order: Vec<usize> = ranked.iter().map(|ranked| ranked.session).collect();
        let limits = SearchLimits { max_found: limits.max_shown.min(limits.max_found), ..limits };
        let mut rest = ranked.iter();
        let mut n_shown = 0;
        self.search_in(&order, query, limits, cancelled, &mut |event| match event {
            ScanEvent::Hit(..) => {
                n_shown += 1;
                on_event(event)
            }
            ScanEvent::End(_) => match rest.next() {
                Some(ranked) => end_session(ranked, std::mem::take(&mut n_shown), on_event),
                None => Ok(ControlFlow::Break(())),
            },
            // These were reported by the first search.
            ScanEvent::Counted(..) | ScanEvent::Copy | ScanEvent::Problem(_) => Ok(ControlFlow::Continue(())),
        })
    }
}

/// Reports the number of hits of a session that were not shown, and its end.
fn end_session<E>(
    ranked: &RankedSession,
    n_shown: usize,
    on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<()>, E> {
    let n_counted = ranked.n_hits.saturating_sub(n_shown);
    if n_counted > 0 && on_event(ScanEvent::Counted(ranked.session, n_counted))?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    on_event(ScanEvent::End(ranked.session))
}

/// Returns the relevance of a session with hits of this weight that was active this long before the newest
/// one.
///
/// Further hits count less and less. A session as old as [`HALF_LIFE`] has three quarters of the relevance of
/// a new one, a very old one has half.
fn relevance(weight: f64, age: Duration) -> f64 {
    let recency = 0.5_f64.powf(age.as_secs_f64() / HALF_LIFE.as_secs_f64());
    (1.0 + weight).ln() * (0.5 + 0.5 * recency)
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
        first_uuid: None,
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
