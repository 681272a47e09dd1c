//! Search over the sessions of all homes.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use rayon::prelude::*;
use threadline_search::{HitCount, SearchMatch, Searcher, SessionScan, directories, retain_matching};
pub use threadline_search::{LogMatch, LogProblem, Query, QueryError, ScanEvent, SearchedSession};
use threadline_store::{SessionFile, SessionLogs, open_regular};
use threadline_view::humanize;
use threadline_view::wire::{MatchObject, moment};

use crate::config::App;
use crate::list::SessionSummary;
use crate::log_ends::{LogEndsCache, SettledVersions};
use crate::mask::Mask;
use crate::scope::ProjectScope;
use crate::time::now;

/// The sessions to search.
#[derive(Debug)]
pub struct SearchScope {
    mask: Mask,
    ends: Arc<LogEndsCache>,
    versions: SettledVersions,
    /// The sessions, last modified first. See [`SearchScope::newest_first`].
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
        let own_logs = listing.found.iter().filter_map(|session| session.own.as_ref());
        let versions = SettledVersions::of(own_logs, now());
        let mut sessions: Vec<SearchedSession> = listing.found.into_iter().map(searched).collect();
        if let Some(query) = query {
            retain_matching(&mut sessions, query, &open);
        }
        let (mask, ends) = (self.config().mask.clone(), Arc::clone(&self.log_ends));
        let mut searched = SearchScope { mask, ends, versions, sessions, unread: listing.errors };
        searched.retain_project(scope);
        searched
    }
}

/// The extent of a search, and the text around each match.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// The number of lines around a match; with `None`, matches are only counted.
    pub context: Option<usize>,
    /// The number of matches of a session that are reported with text, if sessions are ranked. Further ones
    /// are only counted.
    pub max_shown: usize,
    /// The number of matches of a session after which the rest of it is not searched.
    pub max_found: usize,
    /// Matches in calls of tools with these names, and in their results, are left out. Requires `context`.
    pub skips_tool: Option<fn(&str) -> bool>,
    /// Whether every session to search is known to have matches.
    pub expects_matches: bool,
}

impl Default for SearchLimits {
    /// Every match, with its line.
    fn default() -> Self {
        let (max_shown, max_found) = (usize::MAX, usize::MAX);
        Self { context: Some(0), max_shown, max_found, skips_tool: None, expects_matches: false }
    }
}

/// A session with matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedSession {
    /// The index of the session in the scope.
    pub session: usize,
    /// The number of matches.
    pub n_matches: usize,
    relevance: f64,
}

impl SearchScope {
    /// Removes the sessions that are not of a project. Reads the beginning of their logs.
    pub fn retain_project(&mut self, scope: &ProjectScope) {
        if *scope == ProjectScope::All {
            return;
        }
        let mut directories = directories(&self.sessions, &open).into_iter();
        self.sessions.retain(|session| {
            let cwd = directories.next().flatten();
            scope.contains(cwd.as_deref(), Some(&session.folder))
        });
    }

    /// Returns the sessions by index, last active first. Reads the ends of their logs.
    pub fn newest_first(&self) -> Vec<usize> {
        self.sorted_by_activity((0..self.sessions.len()).collect())
    }

    /// Reads the ends of the logs of some sessions, and sorts them: last active first, then last modified
    /// first.
    fn sorted_by_activity(&self, mut sessions: Vec<usize>) -> Vec<usize> {
        self.read_ends(&sessions);
        sessions.sort_by_key(|session| (Reverse(self.sessions[*session].last_active()), *session));
        sessions
    }

    fn read_ends(&self, sessions: &[usize]) {
        sessions.par_iter().for_each(|session| {
            let session = &self.sessions[*session];
            session.ends.get_or_init(|| self.ends.ends(session, &self.versions));
        });
    }

    /// Returns the sessions that begin with the same entry, in groups, each last active first. Only sessions
    /// are compared whose ends were read.
    fn forks(&self) -> Vec<Vec<usize>> {
        let mut groups: HashMap<[u8; 36], Vec<usize>> = HashMap::new();
        for (index, session) in self.sessions.iter().enumerate() {
            if let Some(first) = session.ends.get().and_then(|ends| ends.first_uuid) {
                groups.entry(first).or_default().push(index);
            }
        }
        let groups = groups.into_values().filter(|members| members.len() > 1);
        groups.map(|members| self.sorted_by_activity(members)).collect()
    }

    /// Searches the sessions, last active first, and calls `on_event` for each result, until it breaks or
    /// `cancelled` is set.
    ///
    /// The order needs the ends of all logs. They are read when there is a match, so that a search without
    /// matches takes no longer than the search itself.
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
        match self.skip_without_hits(query, cancelled, on_event)? {
            Some(first) => {
                let order = self.sorted_by_activity((first..self.sessions.len()).collect());
                self.search_in(&order, query, limits, cancelled, on_event)
            }
            None => Ok(()),
        }
    }

    /// Searches the sessions, last modified first, up to the first one with a match, and returns its index;
    /// `None` if there is none, or the search was ended. Calls `on_event` for the sessions before it.
    fn skip_without_hits<E>(
        &self,
        query: &Query,
        cancelled: &AtomicBool,
        on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<Option<usize>, E> {
        let mut first = None;
        let limits = SearchLimits { context: None, max_found: 1, ..SearchLimits::default() };
        let all: Vec<usize> = (0..self.sessions.len()).collect();
        self.scan(query, limits, &[], cancelled).run(&all, &mut |event| match event {
            ScanEvent::Match(session, _) => {
                first = Some(session);
                Ok(ControlFlow::Break(()))
            }
            event => on_event(event),
        })?;
        Ok(first)
    }

    /// Searches some of the sessions, in this order. See [`SearchScope::search`].
    ///
    /// Copies are recognised among the sessions whose ends were read: by [`SearchScope::newest_first`], or by
    /// [`SearchScope::rank`], which reads those of all sessions with matches.
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
        let forks = self.forks();
        let scan = self.scan(query, limits, &forks, cancelled);
        if !self.mask.is_on() {
            return scan.run(order, on_event);
        }
        // The mask of the last session with matches.
        let mut last: Option<(usize, Mask)> = None;
        scan.run(order, &mut |event| match event {
            ScanEvent::Match(session, mut found) => {
                let (_, mask) = match last.take_if(|(known, _)| *known == session) {
                    Some(known) => last.insert(known),
                    None => last.insert((session, self.mask.of_session(&self.sessions[session].logs))),
                };
                if let Some(found) = &mut found.details {
                    mask_match(found, mask, query);
                    found.tool = found.tool.take().map(|tool| mask.text(&tool).into_owned());
                }
                on_event(ScanEvent::Match(session, found))
            }
            event => on_event(event),
        })
    }

    fn scan<'a>(
        &'a self,
        query: &'a Query,
        limits: SearchLimits,
        forks: &'a [Vec<usize>],
        cancelled: &'a AtomicBool,
    ) -> SessionScan<'a> {
        SessionScan {
            query,
            sessions: &self.sessions,
            forks,
            open: &open,
            context: limits.context,
            max_per_session: limits.max_found,
            skips_tool: limits.skips_tool,
            expects_matches: limits.expects_matches,
            cancelled,
        }
    }

    /// Counts the matches of every session, and returns the sessions that have some, the most relevant first.
    /// Calls `on_event` for copies, problems and sessions without matches.
    ///
    /// Relevance combines the number of matches, the kinds of text they are in (titles and prompts count more
    /// than replies, and these more than tool output), and how recently the session was active. `max_found`
    /// limits the number of matches of a session that are counted.
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
        let limits = SearchLimits { context: None, max_found, ..SearchLimits::default() };
        let mut counts: HashMap<usize, HitCount> = HashMap::new();
        let all: Vec<usize> = (0..self.sessions.len()).collect();
        let mut is_stopped = false;
        // Copies are counted, too, until it is known which sessions have matches.
        self.scan(query, limits, &[], cancelled).run(&all, &mut |event| {
            match event {
                ScanEvent::Match(session, found) => counts.entry(session).or_default().add(found.kind),
                ScanEvent::End(session) if counts.contains_key(&session) => {}
                event => is_stopped = on_event(event)?.is_break(),
            }
            Ok(if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let order = self.sorted_by_activity(counts.keys().copied().collect());
        let mut forks = self.forks();
        forks.retain(|members| members.iter().any(|member| counts.contains_key(member)));
        let scan = self.scan(query, limits, &forks, cancelled);
        for members in &forks {
            counts.extend(members.iter().copied().zip(scan.count_forks(members)));
        }
        let newest = if order.len() > 1 { self.newest_activity() } else { None };
        let mut ranked = Vec::new();
        for session in order {
            let count = counts.get(&session).copied().unwrap_or_default();
            for _ in 0..count.n_copies {
                is_stopped = is_stopped || on_event(ScanEvent::Copy)?.is_break();
            }
            if count.n_matches() == 0 {
                is_stopped = is_stopped || on_event(ScanEvent::End(session))?.is_break();
                continue;
            }
            let weights = count.by_rank.iter().zip([4.0, 2.0, 1.0]);
            let weight = weights.map(|(n, weight)| *n as f64 * weight).sum();
            let active = self.sessions[session].last_active();
            let age = newest.and_then(|newest| newest.duration_since(active).ok()).unwrap_or_default();
            let relevance = relevance(weight, age);
            ranked.push(RankedSession { session, n_matches: count.n_matches(), relevance });
        }
        // The sort is stable, so sessions of equal relevance stay sorted by activity.
        ranked.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
        Ok(ranked)
    }

    /// Returns when any of the sessions was last active.
    ///
    /// A message is not later than the last modification of its log, so only the logs that were modified last
    /// are read, unless all of them were copied.
    fn newest_activity(&self) -> Option<SystemTime> {
        let read = self.sessions.iter().filter_map(|session| session.ends.get());
        let mut newest = read.map(|ends| ends.last_active).max();
        let may_be_newer = |session: &SearchedSession, newest: Option<SystemTime>| {
            let age = newest.and_then(|newest| newest.duration_since(session.modified).ok());
            age.is_none_or(|age| age < MAX_CLOCK_ERROR)
        };
        let (mut rest, mut size) = (&self.sessions[..], 16);
        while rest.first().is_some_and(|next| may_be_newer(next, newest)) {
            let (part, after) = rest.split_at(size.min(rest.len()));
            (rest, size) = (after, size * 4);
            let unread = part.par_iter().filter(|session| session.ends.get().is_none());
            newest = newest.max(unread.map(|session| self.ends.last_active(session, &self.versions)).max());
        }
        newest
    }

    /// Counts the matches of all sessions, and then searches those that have some again, the most relevant
    /// first, to call `on_event` for each result. See [`SearchScope::rank`].
    ///
    /// The second search is short: it ends when `on_event` breaks, and in each session after the matches that
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
        let max_found = limits.max_shown.min(limits.max_found);
        let limits = SearchLimits { max_found, expects_matches: true, ..limits };
        let mut rest = ranked.iter();
        let mut n_shown = 0;
        self.search_in(&order, query, limits, cancelled, &mut |event| match event {
            ScanEvent::Match(..) => {
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

/// Masks secrets in the excerpts of a match. Each is masked by itself, since a secret may be cut at the gap.
fn mask_match(found: &mut SearchMatch, mask: &Mask, query: &Query) {
    let Some(gap) = found.gap.as_deref().cloned() else {
        if let Cow::Owned(clean) = mask.excerpt(&found.text, found.cut) {
            found.ranges = query.highlight(&clean);
            found.text = clean;
        }
        return;
    };
    let (first, last) = (&found.text[..gap.start], &found.text[gap.end..]);
    let masked = [mask.excerpt(first, [found.cut[0], true]), mask.excerpt(last, [true, found.cut[1]])];
    if masked.iter().any(|text| matches!(text, Cow::Owned(_))) {
        let [first, last] = masked;
        let clean = format!("{first}{}{last}", &found.text[gap.clone()]);
        found.gap = Some(Box::new(first.len()..first.len() + gap.len()));
        found.ranges = query.highlight(&clean);
        found.text = clean;
    }
}

/// Reports the number of matches of a session that were not shown, and its end.
fn end_session<E>(
    ranked: &RankedSession,
    n_shown: usize,
    on_event: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<()>, E> {
    let n_counted = ranked.n_matches.saturating_sub(n_shown);
    if n_counted > 0 && on_event(ScanEvent::Counted(ranked.session, n_counted))?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    on_event(ScanEvent::End(ranked.session))
}

/// Returns the relevance of a session with matches of this weight that was active this long before the newest
/// one.
///
/// Further matches count less and less. A session as old as [`HALF_LIFE`] has three quarters of the relevance
/// of a new one, a very old one has half.
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
            anchors.push(found.with_excerpt(0).anchor);
            if anchors.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    )?;
    anchors.dedup();
    Ok(anchors)
}

/// The age at which half of the advantage of a recent session is gone.
const HALF_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The tolerated difference of the clock that sets the modification time of a file to that of the messages.
const MAX_CLOCK_ERROR: Duration = Duration::from_secs(24 * 3600);

fn searched(session: SessionLogs) -> SearchedSession {
    let (modified, SessionLogs { file, own, agents }) = (session.modified(), session);
    let logs = own.into_iter().chain(agents).map(|log| log.path).collect();
    SearchedSession {
        id: file.id.into(),
        folder: file.folder.unwrap_or_default(),
        path: file.path,
        modified,
        logs,
        ends: OnceLock::new(),
    }
}

fn open(log: &Path) -> io::Result<Box<dyn Read>> {
    Ok(Box::new(open_regular(log)?))
}

/// Reads the head and the tail of a session; returns `None` if its own log cannot be read.
pub fn summary(session: &SearchedSession) -> Option<SessionSummary> {
    SessionSummary::of(SessionFile::at(&session.path)).ok()
}

/// Returns a match as public JSON; `None` if it contains no text.
pub fn match_object<'a>(session: &'a SearchedSession, log_match: &'a LogMatch) -> Option<MatchObject<'a>> {
    let path = &session.logs[log_match.log];
    let found = log_match.details.as_ref()?;
    Some(MatchObject {
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
        copies: log_match.copies,
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
        LogProblem::Unread(path, error) => format!("cannot read `{}`: {error}", path.display()),
    }
}
