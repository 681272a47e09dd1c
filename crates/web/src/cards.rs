//! The sessions as a list shows them: at once from their heads and tails, and with figures as soon as these are counted.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use threadline_store::{Glance, LogFile, SessionFile, SessionLogs, Store, glance_all};
use threadline_view::SessionCard;

use crate::counter::{Counted, Counter};

/// A session that was written to so recently is being written.
const LIVE: Duration = Duration::from_secs(120);

/// Remembers what the heads and tails of logs told, by path, length and time.
#[derive(Default)]
pub(crate) struct Cards {
    known: Mutex<HashMap<PathBuf, (u64, SystemTime, Glance)>>,
}

/// The sessions, the last modified first.
pub(crate) struct Shown {
    pub(crate) cards: Vec<SessionCard>,
    pub(crate) logs: Arc<Vec<SessionLogs>>,
    pub(crate) counted: Arc<Counted>,
    /// What could not be read, in words.
    pub(crate) unread: Vec<String>,
}

impl Cards {
    /// The sessions of a store, with the figures that are known after waiting up to `patience` for them.
    pub(crate) fn show(
        &self,
        store: &Store,
        counter: &Counter,
        now: SystemTime,
        patience: Duration,
    ) -> Shown {
        let listing = store.session_logs();
        let mut unread: Vec<String> = listing.unread.iter().map(ToString::to_string).collect();
        let logs = Arc::new(listing.found);
        let counted = counter.count(&logs, patience);
        let glances = self.glances(&logs, &mut unread);
        let mut cards: Vec<SessionCard> = logs
            .iter()
            .filter_map(|session| {
                let glance = glances.get(&session.own.as_ref()?.path).filter(|glance| glance.is_listed())?;
                Some(card(session, glance, &counted, now))
            })
            .collect();
        cards.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        let mut seen = std::collections::HashSet::new();
        cards.retain(|card| seen.insert(card.id.clone()));
        Shown { cards, logs, counted, unread }
    }

    /// What the sessions are called and where they ran.
    fn glances(&self, logs: &[SessionLogs], unread: &mut Vec<String>) -> HashMap<PathBuf, Glance> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let own = || logs.iter().filter_map(|session| Some((&session.file, session.own.as_ref()?)));
        let is_known = |log: &LogFile| {
            known
                .get(&log.path)
                .is_some_and(|(size, modified, _)| (*size, *modified) == (log.size, log.modified))
        };
        let fresh: Vec<(SessionFile, &LogFile)> = own()
            .filter(|(_, log)| !is_known(log))
            .map(|(file, log)| (SessionFile { path: log.path.clone(), ..file.clone() }, log))
            .collect();
        let files: Vec<SessionFile> = fresh.iter().map(|(file, _)| file.clone()).collect();
        let mut glances: HashMap<PathBuf, Glance> = HashMap::new();
        let looked = if files.is_empty() { Vec::new() } else { glance_all(&files) };
        for ((_, log), glance) in fresh.iter().zip(looked) {
            match glance {
                Ok(glance) => {
                    known.insert(log.path.clone(), (log.size, log.modified, glance));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => unread.push(error.to_string()),
            }
        }
        for (_, log) in own() {
            if let Some((_, _, glance)) = known.get(&log.path) {
                glances.insert(log.path.clone(), glance.clone());
            }
        }
        if known.len() > glances.len() {
            known.retain(|path, _| glances.contains_key(path));
        }
        glances
    }
}

fn card(session: &SessionLogs, glance: &Glance, counted: &Counted, now: SystemTime) -> SessionCard {
    let written = session.logs().map(|log| log.modified).max().unwrap_or(UNIX_EPOCH);
    let file = &session.file;
    let project = glance.cwd.clone().or_else(|| file.folder.clone()).unwrap_or_default();
    SessionCard {
        id: file.id.to_string(),
        project,
        title: glance.title().or(glance.opening()).or(glance.heading()).unwrap_or(&file.id).to_owned(),
        first_prompt: glance.opening().map(str::to_owned),
        branch: glance.git_branch.clone(),
        tag: glance.tag.clone(),
        version: glance.version.clone(),
        created: glance
            .created
            .as_ref()
            .and_then(|at| at.parse::<jiff::Timestamp>().ok())
            .map(|at| at.as_millisecond()),
        modified: millis(written),
        size: session.own.as_ref().map_or(0, |own| own.size),
        agents: session.agents.len(),
        live: now.duration_since(written).map_or(true, |since| since < LIVE),
        figures: counted.figures.get(&*file.id).cloned(),
    }
}

/// A moment in milliseconds since 1970.
pub(crate) fn millis(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
