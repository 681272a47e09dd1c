//! The background search of the picker: one at a time, cancelled by the next one.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use threadline_app::search::{SearchLimits, summary};
use threadline_app::{App, ListFilter, SessionSummary};
use threadline_search::{Query, ScanEvent, SearchedSession};
use threadline_store::SessionFile;
use threadline_view::humanize::minute;

use super::super::Sort;
use super::{PickerMatch, PickerRow, SearchMessage};

/// A search starts if the input did not change for this long.
const DEBOUNCE: Duration = Duration::from_millis(60);

/// Maximum number of sessions in the list, and of matches per session.
const MAX_ROWS: usize = 1000;
const MAX_MATCHES: usize = 200;

/// A handle of the background search thread. Dropping it cancels the search and joins the thread.
pub(super) struct BackgroundSearch {
    requests: Option<Sender<SearchRequest>>,
    /// The number of the latest search.
    number: usize,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct SearchRequest {
    number: usize,
    text: String,
    sort: Sort,
    cancelled: Arc<AtomicBool>,
}

impl BackgroundSearch {
    /// Starts the thread. Returns its handle and the receiver of its messages, each with the number of its
    /// search.
    pub(super) fn start(app: Arc<App>, project: Option<String>) -> (Self, Receiver<(usize, SearchMessage)>) {
        let (asks, asked) = channel();
        let (sender, results) = channel();
        let thread = std::thread::spawn(move || run_searches(&app, project.as_deref(), &asked, &sender));
        let hunt = Self { requests: Some(asks), number: 0, cancelled: Arc::default(), thread: Some(thread) };
        (hunt, results)
    }

    /// Cancels the current search and starts another one. Returns its number.
    pub(super) fn request(&mut self, text: &str, sort: Sort) -> usize {
        self.cancelled.store(true, Ordering::Relaxed);
        self.cancelled = Arc::default();
        self.number += 1;
        let ask = SearchRequest {
            number: self.number,
            text: text.to_owned(),
            sort,
            cancelled: Arc::clone(&self.cancelled),
        };
        if let Some(asks) = &self.requests {
            // The thread runs as long as this handle exists.
            let _ = asks.send(ask);
        }
        self.number
    }
}

impl Drop for BackgroundSearch {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run_searches(
    app: &App,
    project: Option<&str>,
    asked: &Receiver<SearchRequest>,
    sender: &Sender<(usize, SearchMessage)>,
) {
    while let Ok(mut ask) = asked.recv() {
        // Only the latest of several requests counts.
        loop {
            match asked.recv_timeout(DEBOUNCE) {
                Ok(newer) => ask = newer,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let tell = |news: SearchMessage| {
            // The flag of the request is ignored here: the scan also sets it when it ends, and sorted
            // results are sent after that.
            match sender.send((ask.number, news)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        let flow = if ask.text.trim().is_empty() {
            list_recent(app, project, &tell)
        } else {
            search(app, project, &ask, &tell)
        };
        if let ControlFlow::Continue(n_listed) = flow {
            let _ = tell(SearchMessage::Done(n_listed));
        }
    }
}

/// Lists the latest sessions, for an empty query. Returns how many there are.
fn list_recent(
    app: &App,
    project: Option<&str>,
    tell: &dyn Fn(SearchMessage) -> ControlFlow<()>,
) -> ControlFlow<(), Option<usize>> {
    let filter = ListFilter { project: project.map(str::to_owned), ..ListFilter::default() };
    let listed = app.list(&filter).found;
    let scope = app.search_scope(None, project);
    let by_path: HashMap<&Path, &SearchedSession> =
        scope.sessions.iter().map(|session| (&*session.path, session)).collect();
    for recent in listed.iter().take(100) {
        let Some(session) = by_path.get(&*recent.file.path) else { continue };
        let when = shown_time(recent.preview.last_active);
        tell(SearchMessage::Row(PickerRow { when, ..row(app, session) }))?;
    }
    ControlFlow::Continue(Some(listed.len()))
}

fn search(
    app: &App,
    project: Option<&str>,
    ask: &SearchRequest,
    tell: &dyn Fn(SearchMessage) -> ControlFlow<()>,
) -> ControlFlow<(), Option<usize>> {
    let query = match Query::parse(&ask.text, &jiff::Zoned::now()) {
        Ok(query) => query,
        Err(error) => {
            tell(SearchMessage::Bad(error.to_string()))?;
            return ControlFlow::Break(());
        }
    };
    let scope = app.search_scope(Some(&query), project);
    let sessions = &scope.sessions;
    let mut finds = Vec::new();
    let mut n_matches = 0;
    let mut rows = 0;
    let mut on_event = |event| {
        match event {
            ScanEvent::Match(session, log_match) => {
                n_matches += 1;
                if let Some(found) = log_match.details.filter(|_| finds.len() < MAX_MATCHES) {
                    finds.push(PickerMatch {
                        path: sessions[session].logs[log_match.log].clone(),
                        anchor: found.anchor,
                        byte_offset: found.byte_offset,
                        block_idx: found.block_idx,
                        text_offset: found.within.start,
                    });
                }
            }
            ScanEvent::Counted(_, count) => n_matches += count,
            ScanEvent::End(session) if n_matches > 0 => {
                let row = PickerRow {
                    match_count: n_matches,
                    matches: std::mem::take(&mut finds),
                    ..row(app, &sessions[session])
                };
                n_matches = 0;
                rows += 1;
                if tell(SearchMessage::Row(row)).is_break() || rows == MAX_ROWS {
                    return Ok(ControlFlow::Break(()));
                }
            }
            ScanEvent::End(_) | ScanEvent::Copy | ScanEvent::Problem(_) => {}
        }
        Ok::<_, std::convert::Infallible>(ControlFlow::Continue(()))
    };
    let limits = SearchLimits { max_shown: MAX_MATCHES, ..SearchLimits::default() };
    let Ok(()) = match ask.sort {
        Sort::Newest => scope.search(&query, limits, &ask.cancelled, &mut on_event),
        Sort::Relevance => scope.search_by_relevance(&query, limits, &ask.cancelled, &mut on_event),
    };
    // Also if the search was cancelled: the receiver ignores messages of earlier searches.
    ControlFlow::Continue(None)
}

fn shown_time(time: SystemTime) -> String {
    minute(threadline_app::time::millis(time), &crate::env::time_zone())
}

/// Builds the row of a session, without matches.
fn row(app: &App, session: &SearchedSession) -> PickerRow {
    let summary = summary(session);
    let heading = summary.as_ref().and_then(SessionSummary::title);
    let project = summary.as_ref().and_then(SessionSummary::project).map(str::to_owned);
    let directory = summary.and_then(|summary| summary.preview.cwd);
    PickerRow {
        resume: app.resume_command(&SessionFile::at(&session.path), directory.as_deref()),
        path: session.path.clone(),
        logs: session.logs.clone(),
        heading: heading.map_or_else(
            || "(no title)".to_owned(),
            |title| app.masked_in(&session.logs, &title).into_owned(),
        ),
        when: shown_time(session.last_active()),
        project: project.map(|project| app.masked(&project).into_owned()),
        ..PickerRow::default()
    }
}
