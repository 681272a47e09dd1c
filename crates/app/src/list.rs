//! Lists of sessions. Titles and directories come from the heads and tails of logs, which are read
//! immediately; figures are added when they have been counted.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use parking_lot::Mutex;
use rayon::prelude::*;
use threadline_entry::{ToolPattern, project_directory};
use threadline_store::{
    Listing, LiveRule, LogFile, SessionFile, SessionLogs, SessionPreview, keep_last_active, preview_all,
    read_session_preview,
};
use threadline_view::{Selection, SessionCard, SessionCardFigures, take_in_order};

use crate::config::App;
use crate::counter::{SessionCounter, SessionFigures};
use crate::error::AppError;
use crate::figures::FigureOptions;
use crate::labels::SessionLabels;
use crate::scope::ProjectScope;
use crate::time::millis;

/// Which sessions to list.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Only sessions with this text in their working directory or project folder.
    pub project: Option<String>,
    /// Also logs without a title and a prompt.
    pub untitled: bool,
    /// At most this many.
    pub limit: Option<usize>,
}

/// A session with the facts from the head and the tail of its log.
#[derive(Clone, Debug)]
pub struct SessionSummary {
    /// The files of the session.
    pub file: SessionFile,
    /// The facts.
    pub preview: SessionPreview,
}

impl SessionSummary {
    /// Reads the head and the tail of a session's log.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn of(file: SessionFile) -> io::Result<Self> {
        Ok(Self { preview: read_session_preview(&file)?, file })
    }

    /// Returns whether the session belongs to a project.
    pub fn is_in(&self, scope: &ProjectScope) -> bool {
        scope.contains(self.preview.cwd.as_deref(), self.file.folder.as_deref())
    }

    /// Returns the title of the session; `None` if it has neither a title nor a prompt.
    pub fn title(&self) -> Option<String> {
        self.preview.title()
    }

    /// Returns the project: the working directory, or the project folder if the log contains none; for a
    /// worktree, that of its repository.
    pub fn project(&self) -> Option<&str> {
        project(&self.preview, &self.file)
    }
}

fn project<'a>(preview: &'a SessionPreview, file: &'a SessionFile) -> Option<&'a str> {
    preview.cwd.as_deref().or(file.folder.as_deref()).map(project_directory)
}

impl App {
    /// Returns the sessions of all homes, last active first; of several files with one id, the one last
    /// active.
    ///
    /// Reads the head and the tail of each log.
    pub fn list(&self, filter: &ListFilter) -> Listing<SessionSummary> {
        let listing = if filter.untitled { self.list_untitled() } else { self.store().list() };
        let summaries = listing.found.into_iter().map(|(file, preview)| SessionSummary { file, preview });
        let scope = filter.project.as_deref().map_or(ProjectScope::All, ProjectScope::containing);
        let found = summaries
            .filter(|session| session.is_in(&scope))
            .take(filter.limit.unwrap_or(usize::MAX))
            .collect();
        Listing { found, errors: listing.errors }
    }

    /// Returns the sessions with and without a title, in the order of [`App::list`].
    fn list_untitled(&self) -> Listing<(SessionFile, SessionPreview)> {
        let sessions = self.store().sessions();
        let previews = preview_all(&sessions.found);
        let mut listing = Listing { found: Vec::new(), errors: sessions.errors };
        for (file, preview) in sessions.found.into_iter().zip(previews) {
            match preview {
                Ok(preview) => listing.found.push((file, preview)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => listing.errors.push(error),
            }
        }
        keep_last_active(&mut listing.found);
        listing
    }
}

/// Which sessions to list with figures. Texts are matched anywhere in the value, ignoring case.
#[derive(Clone, Debug, Default)]
pub struct CardFilter {
    /// Words, times and sort order. Its other filters are exact.
    pub selection: Selection,
    /// A part of the project, of the working directory, or of the project folder.
    pub project: Option<String>,
    /// A part of the branch.
    pub branch: Option<String>,
    /// A part of the name of a model that was used.
    pub model: Option<String>,
    /// The name of a tool that was called; `mcp__*` for several.
    pub tool: Option<String>,
    /// Also logs without a title and a prompt.
    pub untitled: bool,
}

impl CardFilter {
    /// Returns whether figures are needed to select or sort the sessions.
    pub fn needs_figures(&self) -> bool {
        self.model.is_some() || self.tool.is_some() || self.selection.needs_figures()
    }

    fn matches(&self, card: &SessionCard) -> bool {
        let has = |wanted: &Option<String>, values: &[Option<&str>]| {
            let Some(wanted) = wanted.as_ref().map(|wanted| wanted.to_lowercase()) else { return true };
            values.iter().flatten().any(|value| value.to_lowercase().contains(&wanted))
        };
        let figures = card.figures.as_deref();
        let models: Vec<Option<&str>> =
            figures.iter().flat_map(|figures| &figures.models).map(|name| Some(&**name)).collect();
        let called = |wanted: &String| {
            let pattern = ToolPattern::new(wanted);
            figures.is_some_and(|figures| figures.tools.iter().any(|(name, _)| pattern.matches(name)))
        };
        has(&self.project, &[Some(&card.project), Some(&card.folder), card.cwd.as_deref()])
            && has(&self.branch, &[card.branch.as_deref()])
            && has(&self.model, &models)
            && self.tool.as_ref().is_none_or(called)
    }
}

impl App {
    /// Returns the sessions of all homes with figures, in the order of the selection. Its page is ignored.
    ///
    /// Without `options`, nothing is counted, and [`SessionCard::figures`] is `None`.
    ///
    /// # Errors
    ///
    /// Those of [`App::count_figures`].
    pub fn list_cards(
        &self,
        filter: &CardFilter,
        zone: &TimeZone,
        options: Option<&FigureOptions>,
        now: SystemTime,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<(Vec<SessionCard>, Vec<String>), AppError> {
        let listing = self.store().session_logs();
        let mut unread: Vec<String> = listing.errors.iter().map(ToString::to_string).collect();
        let sessions = &listing.found;
        let count = || options.map(|options| self.count_figures(sessions, zone, options, now, progress));
        // Without a cache, all logs are read anyway, and most previews need no other read.
        let reads_all = options.is_some_and(|options| !options.has_cache());
        let (previews, counted) =
            rayon::join(|| if reads_all { Vec::new() } else { previews(sessions, Vec::new()) }, count);
        let counted = counted.transpose()?.unwrap_or_default();
        unread.extend(counted.unread);
        let figures = counted.by_session;
        let previews = if reads_all { self::previews(sessions, counted.previews) } else { previews };
        let labels = self.labels().unwrap_or_else(|error| {
            unread.push(error.to_string());
            SessionLabels::default()
        });
        let live_rule = LiveRule::read(self.store().homes());
        let card = |(session, preview): (&SessionLogs, io::Result<SessionPreview>)| {
            let preview = preview?;
            let title = preview.title().or_else(|| filter.untitled.then(|| session.file.id.to_string()));
            let title = title.filter(|_| !preview.is_sidechain);
            Ok(title.map(|title| {
                let figures = figures.get(&*session.file.id).cloned();
                card(session, preview, title, figures, &labels, &live_rule, now)
            }))
        };
        let made: Vec<io::Result<Option<SessionCard>>> =
            sessions.par_iter().zip(previews).map(card).collect();
        let (mut cards, mut listed) = (Vec::new(), Vec::new());
        for (session, card) in sessions.iter().zip(made) {
            match card {
                Ok(Some(card)) => {
                    cards.push(card);
                    listed.push(session);
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unread.push(error.to_string()),
            }
        }
        self.mask_cards(&mut cards, &listed);
        let mut cards = last_active_cards(cards);
        cards.retain(|card| filter.matches(card));
        let cards = filter.selection.into_sorted(cards);
        // Dropping large lists takes a while, and nothing needs to wait for it.
        rayon::spawn(move || drop((listing, figures)));
        unread.sort();
        unread.dedup();
        Ok((cards, unread))
    }
}

/// Returns the previews of all sessions. Reads those of sessions with a log of their own that are not in
/// `known`, which has one element per session or is empty.
fn previews(sessions: &[SessionLogs], known: Vec<Option<SessionPreview>>) -> Vec<io::Result<SessionPreview>> {
    let known: Vec<_> = known.into_iter().chain(std::iter::repeat(None)).take(sessions.len()).collect();
    let is_read = |(session, known): &(&SessionLogs, &Option<_>)| known.is_none() && session.own.is_some();
    let files = sessions.iter().zip(&known).filter(is_read).map(|(session, _)| session.file.clone());
    let mut read = preview_all(&files.collect::<Vec<_>>()).into_iter();
    let no_log = || Err(io::ErrorKind::NotFound.into());
    let preview = |(session, known): (&SessionLogs, Option<_>)| match known {
        Some(preview) => Ok(preview),
        None if session.own.is_some() => read.next().unwrap_or_else(no_log),
        None => no_log(),
    };
    sessions.iter().zip(known).map(preview).collect()
}

impl App {
    /// Masks secrets in the texts of cards, if the configuration requires it. `sessions` has the logs of each
    /// card: secrets in a title or a prompt that only another line identifies are masked, too.
    fn mask_cards(&self, cards: &mut [SessionCard], sessions: &[&SessionLogs]) {
        if !self.config().mask.is_on() {
            return;
        }
        cards.par_iter_mut().zip(sessions).for_each(|(card, session)| {
            let texts = [Some(&mut card.title), card.first_prompt.as_mut(), card.tag.as_mut()];
            let texts: Vec<&mut String> = texts.into_iter().flatten().collect();
            let logs: Vec<PathBuf> = session.logs().map(|log| log.path.clone()).collect();
            let mask = self.mask_for(&texts.iter().map(|text| text.as_str()).collect::<Vec<_>>(), &logs);
            for text in texts {
                // The end of a long text is cut off.
                *text = mask.excerpt(text, [false, text.ends_with('…')]).into_owned();
            }
        });
        for card in cards {
            let names = [&mut card.title, &mut card.project, &mut card.folder];
            let texts =
                [&mut card.first_prompt, &mut card.branch, &mut card.tag, &mut card.cwd, &mut card.version];
            let texts = texts.into_iter().flatten().chain(names).chain(&mut card.tags);
            texts.for_each(|text| self.mask_string(text));
            if let Some(figures) = card.figures.as_mut().map(Arc::make_mut) {
                let models = figures.models.iter().map(|model| self.masked(model).into_owned());
                figures.models = models.collect();
                let tools =
                    figures.tools.iter().map(|(tool, count)| (self.masked(tool).into_owned(), *count));
                figures.tools = tools.collect();
            }
        }
    }
}

/// Returns the cards by last activity, latest first, with one card per session.
fn last_active_cards(cards: Vec<SessionCard>) -> Vec<SessionCard> {
    let mut order: Vec<usize> = (0..cards.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&cards[a], &cards[b]);
        let newest = b.last_active.cmp(&a.last_active);
        newest.then_with(|| a.id.cmp(&b.id)).then_with(|| b.modified.cmp(&a.modified))
    });
    let mut seen = HashSet::with_capacity(cards.len());
    order.retain(|&place| seen.insert(&cards[place].id));
    take_in_order(cards, order)
}

/// The sessions as cards with figures, for a front end that lists them repeatedly.
///
/// Caches the heads and tails of logs by path, size and modification time.
#[derive(Default)]
pub struct CardList {
    known: Mutex<HashMap<PathBuf, (u64, SystemTime, SessionPreview)>>,
}

/// A snapshot of a [`CardList`].
pub struct ListedCards {
    /// The sessions, last active first.
    pub cards: Vec<SessionCard>,
    /// The logs of all sessions, also of those without a card.
    pub logs: Arc<Vec<SessionLogs>>,
    /// The figures that were available.
    pub figures: Arc<SessionFigures>,
    /// Messages about logs that could not be read.
    pub unread: Vec<String>,
}

impl CardList {
    /// Returns the sessions of all homes. Waits up to `timeout` for figures that are not available yet.
    pub fn list(
        &self,
        app: &App,
        counter: &SessionCounter,
        now: SystemTime,
        timeout: Duration,
    ) -> ListedCards {
        let listing = app.store().session_logs();
        let mut unread: Vec<String> = listing.errors.iter().map(ToString::to_string).collect();
        let logs = Arc::new(listing.found);
        let figures = counter.count(&logs, timeout);
        let previews = self.previews(&logs, &mut unread);
        let labels = app.labels().unwrap_or_else(|error| {
            unread.push(error.to_string());
            SessionLabels::default()
        });
        let live_rule = LiveRule::read(app.store().homes());
        let (mut cards, listed): (Vec<SessionCard>, Vec<&SessionLogs>) = logs
            .iter()
            .filter_map(|session| {
                let preview =
                    previews.get(&session.own.as_ref()?.path).filter(|preview| !preview.is_sidechain)?;
                let title = preview.title()?;
                let figures = figures.by_session.get(&*session.file.id).cloned();
                Some((card(session, preview.clone(), title, figures, &labels, &live_rule, now), session))
            })
            .unzip();
        app.mask_cards(&mut cards, &listed);
        ListedCards { cards: last_active_cards(cards), logs, figures, unread }
    }

    /// Returns the heads and tails of the sessions' own logs.
    fn previews(&self, logs: &[SessionLogs], unread: &mut Vec<String>) -> HashMap<PathBuf, SessionPreview> {
        let mut known = self.known.lock();
        let own = || logs.iter().filter_map(|session| Some((&session.file, session.own.as_ref()?)));
        let is_known = |log: &LogFile| {
            let known = known.get(&log.path);
            known.is_some_and(|(size, modified, _)| (*size, *modified) == (log.size, log.modified))
        };
        let fresh: Vec<(SessionFile, &LogFile)> = own()
            .filter(|(_, log)| !is_known(log))
            .map(|(file, log)| (SessionFile { path: log.path.clone(), ..file.clone() }, log))
            .collect();
        let files: Vec<SessionFile> = fresh.iter().map(|(file, _)| file.clone()).collect();
        let read = if files.is_empty() { Vec::new() } else { preview_all(&files) };
        for ((_, log), preview) in fresh.iter().zip(read) {
            match preview {
                Ok(preview) => {
                    known.insert(log.path.clone(), (log.size, log.modified, preview));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unread.push(error.to_string()),
            }
        }
        let mut previews: HashMap<PathBuf, SessionPreview> = HashMap::new();
        for (_, log) in own() {
            if let Some((_, _, preview)) = known.get(&log.path) {
                previews.insert(log.path.clone(), preview.clone());
            }
        }
        if known.len() > previews.len() {
            known.retain(|path, _| previews.contains_key(path));
        }
        previews
    }
}

fn card(
    session: &SessionLogs,
    preview: SessionPreview,
    title: String,
    figures: Option<Arc<SessionCardFigures>>,
    labels: &SessionLabels,
    live_rule: &LiveRule,
    now: SystemTime,
) -> SessionCard {
    let file = &session.file;
    let label = labels.get(&file.id);
    // A log without a time was last active when it was modified.
    let last_message = preview.started.map(|_| preview.last_active);
    SessionCard {
        id: file.id.to_string(),
        pinned: label.is_pinned,
        tags: label.tags.into_iter().collect(),
        path: session.own.as_ref().map_or(&file.path, |own| &own.path).to_string_lossy().into_owned(),
        folder: file.folder.clone().unwrap_or_default(),
        project: project(&preview, file).unwrap_or_default().to_owned(),
        cwd: preview.cwd,
        modified: millis(preview.modified),
        title,
        first_prompt: preview.first_prompt,
        branch: preview.git_branch,
        tag: preview.tag,
        version: preview.version,
        started: preview.started,
        last_active: millis(preview.last_active),
        size: session.own.as_ref().map_or(0, |own| own.size),
        live: live_rule.evidence_in(session, last_message, now).is_some(),
        figures,
    }
}
