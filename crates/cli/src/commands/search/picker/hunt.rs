//! The background search of the picker: one at a time, cancelled by the next one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use threadline_search::{Event, Query, Scan, Searched};
use threadline_store::{Store, glance};

use super::super::files;
use super::{Find, News, Row};

/// A search starts if the input did not change for this long.
const PAUSE: Duration = Duration::from_millis(60);

/// Maximum number of sessions in the list, and of matches per session.
const MOST_ROWS: usize = 1000;
const MOST_FINDS: usize = 200;

/// A handle of the background search thread. Dropping it cancels the search and joins the thread.
pub(super) struct Hunt {
    asks: Option<Sender<Ask>>,
    /// The number of the latest search.
    number: usize,
    current: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Ask {
    number: usize,
    text: String,
    cancelled: Arc<AtomicBool>,
}

impl Hunt {
    /// Starts the thread. Returns the handle and a receiver of messages, each with the number of its search.
    pub(super) fn start(store: Store, project: Option<String>) -> (Self, Receiver<(usize, News)>) {
        let (asks, asked) = channel();
        let (tells, told) = channel();
        let thread = std::thread::spawn(move || hunt(&store, project.as_deref(), &asked, &tells));
        let hunt = Self { asks: Some(asks), number: 0, current: Arc::default(), thread: Some(thread) };
        (hunt, told)
    }

    /// Cancels the current search and starts another one. Returns its number.
    pub(super) fn ask(&mut self, text: &str) -> usize {
        self.current.store(true, Ordering::Relaxed);
        self.current = Arc::default();
        self.number += 1;
        let ask = Ask { number: self.number, text: text.to_owned(), cancelled: Arc::clone(&self.current) };
        if let Some(asks) = &self.asks {
            // The thread runs as long as this handle exists.
            let _ = asks.send(ask);
        }
        self.number
    }
}

impl Drop for Hunt {
    fn drop(&mut self) {
        self.current.store(true, Ordering::Relaxed);
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn hunt(store: &Store, project: Option<&str>, asked: &Receiver<Ask>, tells: &Sender<(usize, News)>) {
    while let Ok(mut ask) = asked.recv() {
        // Only the latest of several requests counts.
        loop {
            match asked.recv_timeout(PAUSE) {
                Ok(newer) => ask = newer,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let tell = |news: News| {
            let gone = tells.send((ask.number, news)).is_err();
            if gone || ask.cancelled.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let flow = if ask.text.trim().is_empty() {
            recent(store, project, &tell)
        } else {
            search(store, project, &ask, &tell)
        };
        if let ControlFlow::Continue(searched) = flow {
            let _ = tell(News::Done(searched));
        }
    }
}

/// Lists the latest sessions, for an empty query.
fn recent(
    store: &Store,
    project: Option<&str>,
    tell: &dyn Fn(News) -> ControlFlow<()>,
) -> ControlFlow<(), usize> {
    let (mut sessions, _) = files::sessions(store);
    super::super::keep_project(&mut sessions, project);
    for session in sessions.iter().take(100) {
        tell(News::Row(row(session)))?;
    }
    ControlFlow::Continue(sessions.len())
}

fn search(
    store: &Store,
    project: Option<&str>,
    ask: &Ask,
    tell: &dyn Fn(News) -> ControlFlow<()>,
) -> ControlFlow<(), usize> {
    let query = match Query::parse(&ask.text, &jiff::Zoned::now()) {
        Ok(query) => query,
        Err(error) => {
            tell(News::Bad(error.to_string()))?;
            return ControlFlow::Break(());
        }
    };
    let (mut sessions, _) = files::sessions(store);
    super::super::keep_wanted(&mut sessions, &query, project);
    let scan = Scan {
        query: &query,
        sessions: &sessions,
        open: &files::open,
        context: Some(0),
        cancelled: &ask.cancelled,
    };
    let order: Vec<usize> = (0..sessions.len()).collect();
    let mut finds = Vec::new();
    let mut found = 0;
    let mut rows = 0;
    let told = scan.run(&order, &mut |event| {
        match event {
            Event::Hit(session, hit) => {
                found += 1;
                if let Some(hit) =
                    hit.hit.as_ref().filter(|_| finds.len() < MOST_FINDS).map(|found| (hit.log, found))
                {
                    finds.push(Find {
                        path: sessions[session].logs[hit.0].clone(),
                        anchor: hit.1.anchor.clone(),
                        byte_offset: hit.1.byte_offset,
                        block_idx: hit.1.block_idx,
                    });
                }
            }
            Event::End(session) if found > 0 => {
                let row = Row { found, finds: std::mem::take(&mut finds), ..row(&sessions[session]) };
                found = 0;
                rows += 1;
                if tell(News::Row(row)).is_break() || rows == MOST_ROWS {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Event::End(_) | Event::Copy | Event::Trouble(_) => {}
        }
        Ok::<_, std::convert::Infallible>(ControlFlow::Continue(()))
    });
    let Ok(()) = told;
    // Also if the search was cancelled: the scan sets the flag when it ends, so it does not distinguish the
    // two. The receiver ignores messages of earlier searches.
    ControlFlow::Continue(sessions.len())
}

/// Builds the row of a session, without matches.
fn row(session: &Searched) -> Row {
    let glance = glance(&files::file(session)).ok();
    let heading = glance.as_ref().and_then(|glance| glance.heading()).unwrap_or("(no title)");
    let modified = jiff::Timestamp::try_from(session.modified).ok();
    let when =
        modified.map(|moment| moment.to_zoned(crate::env::zone()).strftime("%Y-%m-%d %H:%M").to_string());
    Row {
        id: session.id.clone(),
        path: session.path.clone(),
        heading: heading.split_whitespace().collect::<Vec<_>>().join(" "),
        when: when.unwrap_or_default(),
        directory: glance.and_then(|glance| glance.cwd),
        ..Row::default()
    }
}
