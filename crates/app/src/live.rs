//! A session that is followed while it is written: abridged in memory, with parts of it read again on demand.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use threadline_session::{
    AgentIndex, EmbeddedAgents, EntryIndex, Session, SessionFamily, Spawn, Subagent, Turn, TurnIndex,
};
use threadline_store::{AgentFile, SessionFile};
use threadline_usage::PriceBook;
use threadline_view::{
    FindingSummary, InheritedCalls, ItemBody, LineNotes, MAX_AGENT_DEPTH, OutputReads, Spending,
    SpendingCounter, TranscriptBuilder, TranscriptItem, TranscriptLayout, TurnView, layout, layout_turns,
    line_title,
};

use crate::error::AppError;
use crate::inherited::OwnCalls;
use crate::list::SessionSummary;
use crate::live_log::{ENTRY, LiveLog, LogChange, strip_abridged_length};
use crate::load::{OpenSession, live_at, read_agent_logs};
use crate::mask::Mask;
use crate::page_layout::{PageLayout, layout_memory};
use crate::time::{millis, now};

/// Long texts are truncated in longer lines when they are shown: no page should have megabytes of a text.
const MAX_SHOWN_LINE: usize = 16 << 20;

/// A conversation of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionSelector {
    /// That of a sub-agent, by id; that of the session itself if `None`.
    pub agent: Option<String>,
    /// The conversation that ends on this line; the active one if `None`.
    pub leaf: Option<u64>,
}

/// Why a part of a session cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The session has no such sub-agent.
    #[error("the session has no such sub-agent")]
    NoAgent,
    /// The session has no such line.
    #[error("the session has no such line")]
    NoLine,
    /// A file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A range of the entries of one turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TurnSpan {
    /// The turn, by its index in the layout.
    pub turn: TurnIndex,
    /// Indices into the entries of the turn.
    pub entries: Range<usize>,
}

impl TurnSpan {
    /// The entries of the span, by their index in the session.
    pub fn entries<'l>(&self, layout: &'l TranscriptLayout) -> &'l [EntryIndex] {
        &layout.turns[self.turn].entries[self.entries.clone()]
    }
}

/// A change of a session since the last refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveChange {
    /// None.
    Same,
    /// Lines were added, or the session's own log was deleted or has reappeared.
    Changed,
    /// A log was replaced. The session stays as it was until [`LiveSession::reopen`].
    Replaced,
}

/// A session that is followed while it is written.
///
/// Its logs are in memory with long texts truncated. [`LiveSession::refresh`] reads added lines;
/// [`LiveSession::layout`] returns the structure of a conversation, and [`LiveSession::read`] its lines.
pub struct LiveSession {
    /// The session as far as it was read, abridged.
    open: OpenSession,
    main: LiveLog,
    agents: Vec<LiveAgent>,
    notes: LineNotes,
    prices: Arc<PriceBook>,
    counter: SpendingCounter,
    /// The calls that another session made.
    inherited: Option<InheritedCalls>,
    version: u64,
    /// The layouts of this version that were requested.
    layouts: HashMap<SessionSelector, Arc<TranscriptLayout>>,
    /// Those that were divided into the parts of a page.
    page_layouts: HashMap<SessionSelector, Arc<PageLayout>>,
    is_gone: bool,
    /// Whether a log was replaced since the session was opened.
    is_void: bool,
    /// Whether the session was live when it was opened or updated last.
    was_live: bool,
}

/// A sub-agent with a log of its own.
struct LiveAgent {
    file: AgentFile,
    log: LiveLog,
    /// The call that started it, according to its metadata.
    spawn: Option<Spawn>,
}

impl LiveSession {
    /// Reads a session and its sub-agents.
    ///
    /// With a mask, the secrets of all lines are masked in everything that is shown.
    ///
    /// # Errors
    ///
    /// If the session's own log cannot be read, or a log cannot be read again to find its secrets. Sub-agents
    /// that cannot be read at all are left out.
    pub fn open(file: SessionFile, prices: Arc<PriceBook>, mask: Mask) -> io::Result<Self> {
        let (main, session) = LiveLog::open(&file.path, &file.id)?;
        let mut live = Self {
            open: OpenSession::empty(file, mask),
            main,
            agents: Vec::new(),
            notes: LineNotes::default(),
            prices,
            counter: SpendingCounter::default(),
            inherited: None,
            version: 1,
            layouts: HashMap::new(),
            page_layouts: HashMap::new(),
            is_gone: false,
            is_void: false,
            was_live: false,
        };
        let agents = live.read_new_agents();
        live.learn_all_secrets();
        live.join(session, agents);
        live.was_live = live.is_live();
        Ok(live)
    }

    fn logs(&self) -> impl Iterator<Item = &LiveLog> {
        self.agents.iter().map(|agent| &agent.log).chain([&self.main])
    }

    fn set_mask(&mut self, mask: Mask) {
        for log in self.agents.iter_mut().map(|agent| &mut agent.log).chain([&mut self.main]) {
            log.mask = mask.clone();
            log.set_learnt();
        }
        self.open.mask = mask;
    }

    /// Learns the secrets of all logs.
    fn learn_all_secrets(&mut self) {
        if self.open.mask.is_on() {
            let agents = self.agents.iter().map(|agent| agent.file.path.clone());
            let logs: Vec<PathBuf> = std::iter::once(self.open.file.path.clone()).chain(agents).collect();
            self.set_mask(self.open.mask.of_session(&logs));
        }
    }

    /// Learns the secrets in lines that were added.
    fn learn_secrets(&mut self) -> io::Result<()> {
        let mask = &self.open.mask;
        if !mask.is_on() {
            return Ok(());
        }
        let parts: Vec<(&LiveLog, Range<u64>)> =
            self.logs().flat_map(|log| log.new_ranges().into_iter().map(move |range| (log, range))).collect();
        let learn = |(log, range): (&LiveLog, Range<u64>)| Ok(mask.find_secrets(&log.read_range(range)?));
        let secrets = parts.into_par_iter().map(learn).collect::<io::Result<Vec<_>>>()?;
        let mut learnt = mask.clone();
        learnt.add(secrets.into_iter().flatten());
        self.set_mask(learnt);
        Ok(())
    }

    /// Masks secrets in a text of the session, if they are masked.
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.open.mask.text(text)
    }

    /// Masks secrets in the texts of a layout.
    fn mask_layout(&self, layout: &mut TranscriptLayout) {
        if self.open.mask.is_on() {
            layout.each_text(&mut |text| self.open.mask.mask_string(text));
        }
    }

    /// Reads the lines added to the logs.
    ///
    /// # Errors
    ///
    /// If the session's own log cannot be read. The session stays as it was.
    pub fn refresh(&mut self) -> io::Result<LiveChange> {
        if self.is_void {
            return Ok(LiveChange::Replaced);
        }
        let family = &mut self.open.family;
        let mut change = self.main.follow(&mut family.main)?;
        for (logged, agent) in self.agents.iter_mut().zip(family.agents.iter_mut()) {
            match logged.log.follow(&mut agent.session) {
                Ok(LogChange::Grown) if change == LogChange::Same => change = LogChange::Grown,
                Ok(LogChange::Replaced) => change = LogChange::Replaced,
                _ => {}
            }
        }
        if change == LogChange::Replaced {
            self.is_void = true;
            return Ok(LiveChange::Replaced);
        }
        let was_gone = std::mem::replace(&mut self.is_gone, change == LogChange::Gone);
        if change != LogChange::Grown && was_gone == self.is_gone {
            return Ok(LiveChange::Same);
        }
        let n_known = self.agents.len();
        // The start of a sub-agent is noted in a log that is known.
        let mut fresh = if change == LogChange::Grown { self.read_new_agents() } else { Vec::new() };
        self.learn_secrets()?;
        self.mark_changed();
        if fresh.is_empty() && self.open.family.update() {
            let (main, agents) = (&self.open.family.main, self.open.family.agents_with_log());
            let mut spending = self.counter.count(main, agents, &self.prices);
            spending.set_inherited(self.inherited.clone());
            self.open.spending = Some(Arc::new(spending));
        } else {
            let SessionFamily { main, agents, .. } = std::mem::take(&mut self.open.family);
            let mut agents = agents.into_vec();
            agents.truncate(n_known);
            agents.append(&mut fresh);
            self.join(main, agents);
        }
        Ok(LiveChange::Changed)
    }

    /// Raises the version and discards what was computed from the previous one.
    fn mark_changed(&mut self) {
        self.version += 1;
        self.layouts.clear();
        self.page_layouts.clear();
    }

    /// Reads lines that were added, or the whole session again if a log was replaced.
    ///
    /// # Errors
    ///
    /// Those of reading. The session stays as it was.
    pub fn update(&mut self) -> io::Result<()> {
        if self.refresh()? == LiveChange::Replaced {
            self.reopen()?;
        }
        // A call stops running without a change of the log if Claude Code exits. It is shown as running if a
        // process has opened the session since.
        let is_live = self.is_live();
        let was_live = std::mem::replace(&mut self.was_live, is_live);
        let is_running = self.layouts.values().any(|layout| layout.has_running_calls());
        let is_new = is_live && !was_live && !self.layouts.is_empty();
        if is_new && !is_running || !is_live && is_running {
            self.mark_changed();
        }
        Ok(())
    }

    /// Opens the session again, after a log was replaced.
    ///
    /// # Errors
    ///
    /// Those of [`LiveSession::open`]. The session stays as it was.
    pub fn reopen(&mut self) -> io::Result<()> {
        let version = self.version + 1;
        let (file, prices) = (self.open.file.clone(), Arc::clone(&self.prices));
        let mut fresh = Self::open(file, prices, self.open.mask.clone())?;
        if let Some(spending) = &mut fresh.open.spending {
            Arc::make_mut(spending).set_inherited(self.inherited.clone());
        }
        fresh.inherited = self.inherited.take();
        *self = Self { version, ..fresh };
        Ok(())
    }

    /// Reads the sub-agents with logs that are not known yet.
    fn read_new_agents(&mut self) -> Vec<Subagent> {
        let listing = self.open.file.agents();
        let mut unread: Vec<AppError> = listing.errors.into_iter().map(AppError::from).collect();
        let known: HashSet<PathBuf> = self.agents.iter().map(|agent| agent.file.path.clone()).collect();
        let new = listing.found.into_iter().filter(|file| !known.contains(&file.path));
        let mut logs = Vec::new();
        let agents = read_agent_logs(new, &mut unread, |file| {
            let opened = LiveLog::open(&file.path, &file.id);
            let (log, session) = opened.map_err(AppError::read(&file.path))?;
            logs.push((file.clone(), log));
            Ok(session)
        });
        let logs = logs.into_iter().zip(&agents);
        self.agents.extend(logs.map(|((file, log), agent)| LiveAgent {
            file,
            log,
            spawn: agent.spawn.clone(),
        }));
        self.open.unread = unread;
        agents
    }

    /// Joins the session with its sub-agents, and counts costs.
    fn join(&mut self, main: Session, mut agents: Vec<Subagent>) {
        for (agent, logged) in agents.iter_mut().zip(&self.agents) {
            agent.spawn.clone_from(&logged.spawn);
        }
        let (counter, prices) = (&mut self.counter, &self.prices);
        // These are independent: costs, the conversation, which every caller asks for next, and sub-agents
        // inside the session's log.
        let (mut spending, (inside, _)) = rayon::join(
            || counter.count(&main, &agents, prices),
            || rayon::join(|| EmbeddedAgents::find(&main, &agents), || main.thread()),
        );
        self.open.family = SessionFamily::with_embedded(main, agents, inside);
        spending.set_inherited(self.inherited.clone());
        self.open.spending = Some(Arc::new(spending));
        self.notes.clear_agents();
    }

    /// Separates the calls that the session made itself from those that it inherited.
    pub(crate) fn set_own_calls(&mut self, own: OwnCalls) {
        if let Some(spending) = &mut self.open.spending {
            let spending = Arc::make_mut(spending);
            spending.set_own(&own.usage, own.origin);
            self.inherited = spending.inherited().cloned();
        }
        self.mark_changed();
    }

    /// Where the session is.
    pub fn file(&self) -> &SessionFile {
        &self.open.file
    }

    /// A number that rises with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether the session's own log was deleted.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The session and its sub-agents, abridged.
    pub fn family(&self) -> &SessionFamily {
        &self.open.family
    }

    /// The errors of sub-agents that could not be read, or not completely.
    pub fn unread(&self) -> &[AppError] {
        &self.open.unread
    }

    /// The working directory that the session started in.
    pub fn cwd(&self) -> Option<String> {
        self.open.cwd()
    }

    /// Returns whether the session is live, by the rule of the session list. Reads the end of the log.
    pub fn is_live(&self) -> bool {
        live_at(&self.open.file).is_some()
    }

    /// Approximate memory in bytes.
    pub fn weight(&self) -> usize {
        // Sub-agents without a log share the texts of the session's own.
        let inside = self.open.family.embedded_agents();
        let layout_memory = |(selector, layout): (&SessionSelector, &Arc<TranscriptLayout>)| {
            self.log(selector).map_or(0, |(log, _)| layout_memory(layout, log))
        };
        self.main.weight
            + self.agents.iter().map(|agent| agent.log.weight).sum::<usize>()
            + inside.iter().map(|agent| agent.session.entries().len() * ENTRY).sum::<usize>()
            + self.notes.memory_use()
            + self.layouts.iter().map(layout_memory).sum::<usize>()
            + self.page_layouts.values().map(|layout| layout.memory_size()).sum::<usize>()
    }

    /// The log and the abridged session of a conversation.
    ///
    /// # Errors
    ///
    /// [`LiveError::NoAgent`].
    pub fn log(&self, selector: &SessionSelector) -> Result<(&LiveLog, &Session), LiveError> {
        let agent = self.agent(selector)?;
        Ok((self.log_of(agent), self.open.family.session(agent)))
    }

    fn agent(&self, selector: &SessionSelector) -> Result<Option<AgentIndex>, LiveError> {
        let Some(id) = &selector.agent else { return Ok(None) };
        self.open.family.find_agent(id).map(Some).ok_or(LiveError::NoAgent)
    }

    /// The log that contains the lines of a sub-agent: its own, or that of the session.
    fn log_of(&self, agent: Option<AgentIndex>) -> &LiveLog {
        agent.and_then(|agent| self.agents.get(agent.position())).map_or(&self.main, |agent| &agent.log)
    }

    /// The structure of a conversation: its turns with their entries, costs and findings, without texts.
    ///
    /// # Errors
    ///
    /// If there is no such conversation.
    pub fn layout(&mut self, selector: &SessionSelector) -> Result<TranscriptLayout, LiveError> {
        self.notes.update(&self.open.family);
        let agent = self.agent(selector)?;
        let session = self.open.family.session(agent);
        let on_line = |line: u64| session.entries().rfind_index(|entry| entry.at().line_no == line);
        let leaf = selector.leaf.map(|line| on_line(line).ok_or(LiveError::NoLine)).transpose()?;
        let findings = FindingSummary::of(session);
        let mut layout = layout(self.transcript_builder(), &self.notes, agent, leaf, findings);
        // The texts in memory are truncated. Lists read the title from the file, and so does a page.
        if agent.is_none()
            && let Ok(summary) = SessionSummary::of(self.open.file.clone())
        {
            layout.header.title = summary.title().or(layout.header.title);
            layout.header.first_prompt = summary.preview.first_prompt.or(layout.header.first_prompt);
        }
        let titles = self.whole_titles(&layout, agent);
        for turn in layout.turns.iter_mut() {
            if let Some(title) = turn.whole_title_on.and_then(|line| titles.get(&line)) {
                turn.line.title.clone_from(title);
            }
        }
        self.mask_layout(&mut layout);
        for turn in layout.turns.iter_mut() {
            strip_abridged_length(&mut turn.line.title);
            turn.turn.title.clone_from(&turn.line.title);
        }
        layout.branches.iter_mut().for_each(|branch| strip_abridged_length(&mut branch.title));
        Ok(layout)
    }

    /// Returns the titles of turns that truncated texts do not contain, by the number of the line.
    fn whole_titles(&self, layout: &TranscriptLayout, agent: Option<AgentIndex>) -> HashMap<u64, String> {
        let lines: BTreeSet<u64> = layout.turns.iter().filter_map(|turn| turn.whole_title_on).collect();
        if lines.is_empty() {
            return HashMap::new();
        }
        let lines: Vec<u64> = lines.into_iter().collect();
        // Without the file, the titles of the truncated texts remain.
        let Ok(session) = self.log_of(agent).session_of(&lines, usize::MAX) else { return HashMap::new() };
        let entries = session.entries().iter();
        entries.filter_map(|entry| Some((entry.at().line_no, line_title(entry.clone())?))).collect()
    }

    fn transcript_builder(&self) -> TranscriptBuilder<'_> {
        // To find out whether the session is live, the logs of all sub-agents are read: once per update.
        self.open.transcript_builder_at(&|_| None, self.was_live.then(|| millis(now())))
    }

    /// The structure of a conversation. It is cached until the session changes.
    ///
    /// # Errors
    ///
    /// If there is no such conversation.
    pub fn cached_layout(&mut self, selector: &SessionSelector) -> Result<Arc<TranscriptLayout>, LiveError> {
        if let Some(layout) = self.layouts.get(selector) {
            return Ok(Arc::clone(layout));
        }
        let layout = Arc::new(self.layout(selector)?);
        self.layouts.insert(selector.clone(), Arc::clone(&layout));
        Ok(layout)
    }

    /// A conversation, divided into the parts of a page. It is cached until the session changes.
    ///
    /// # Errors
    ///
    /// If there is no such conversation.
    pub fn page_layout(&mut self, selector: &SessionSelector) -> Result<Arc<PageLayout>, LiveError> {
        if let Some(layout) = self.page_layouts.get(selector) {
            return Ok(Arc::clone(layout));
        }
        let layout = self.cached_layout(selector)?;
        let (log, session) = self.log(selector)?;
        let layout = Arc::new(PageLayout::new(layout, session, log));
        self.page_layouts.insert(selector.clone(), Arc::clone(&layout));
        Ok(layout)
    }

    /// The structure of the turns of the active conversation that `wanted` accepts. It is called for every
    /// turn, in order.
    ///
    /// Costs less than [`LiveSession::layout`] where few turns are wanted.
    pub fn layout_turns(&mut self, wanted: &mut dyn FnMut(&Turn) -> bool) -> TranscriptLayout {
        self.notes.update(&self.open.family);
        let builder = self.transcript_builder();
        let mut layout = layout_turns(builder, &self.notes, wanted);
        self.mask_layout(&mut layout);
        layout
    }

    /// Reads the lines of some spans of a conversation again, whole.
    ///
    /// # Errors
    ///
    /// If there is no such conversation, or a file cannot be read.
    pub fn read(
        &self,
        selector: &SessionSelector,
        layout: &TranscriptLayout,
        spans: &[TurnSpan],
    ) -> Result<ReadSpans, LiveError> {
        let agent = self.agent(selector)?;
        let session = self.open.family.session(agent);
        let line = |idx: EntryIndex| session.entries()[idx].at().line_no;
        let mut all: Vec<EntryIndex> =
            spans.iter().flat_map(|span| span.entries(layout).iter().copied()).collect();
        all.sort_unstable();
        let mut needed: Vec<u64> =
            TranscriptLayout::required_entries(session, &all).into_iter().map(line).collect();
        needed.dedup();
        let mut family = SessionFamily::default();
        family.main = self.log_of(agent).session_of(&needed, MAX_SHOWN_LINE)?;
        // A sub-agent without a log is inside the progress lines of the session.
        if agent.is_some_and(|agent| agent.position() >= self.agents.len()) {
            let id = selector.agent.as_deref();
            let inner = SessionFamily::new(family.main, Vec::new());
            let found = inner.agents.into_iter().find(|agent| Some(&*agent.id) == id);
            family.main = found.map_or(inner.main, |agent| agent.session);
        }
        let lines =
            spans.iter().map(|span| span.entries(layout).iter().map(|&idx| line(idx)).collect()).collect();
        let log = Spending::log_index(&self.open.family, agent);
        let open = OpenSession::empty(self.open.file.clone(), self.open.mask.clone());
        let open = OpenSession { family, spending: self.open.spending.clone(), ..open };
        Ok(ReadSpans { open, lines, log, output_reads: OutputReads::default() })
    }

    /// Reads a whole turn, with the work of the sub-agents that it started.
    ///
    /// # Errors
    ///
    /// If there is no such conversation, or a file cannot be read.
    pub fn turn(
        &mut self,
        selector: &SessionSelector,
        layout: &TranscriptLayout,
        turn: TurnIndex,
    ) -> Result<TurnView, LiveError> {
        self.turn_within(selector, layout, turn, MAX_AGENT_DEPTH)
    }

    fn turn_within(
        &mut self,
        selector: &SessionSelector,
        layout: &TranscriptLayout,
        turn: TurnIndex,
        depth: usize,
    ) -> Result<TurnView, LiveError> {
        let span = TurnSpan { turn, entries: 0..layout.turns[turn].entries.len() };
        let mut items = self.read(selector, layout, &[span])?.items(layout, 0);
        self.read_agents_of(&mut items, depth)?;
        Ok(TurnView { items, ..layout.turns[turn].turn.clone() })
    }

    /// Reads the work of the sub-agents that were started by some items, into these items.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn read_agents(&mut self, items: &mut [TranscriptItem]) -> Result<(), LiveError> {
        self.read_agents_of(items, MAX_AGENT_DEPTH)
    }

    fn read_agents_of(&mut self, items: &mut [TranscriptItem], depth: usize) -> Result<(), LiveError> {
        let calls = items.iter_mut().filter_map(|item| match &mut item.body {
            ItemBody::Call(call) => Some(call),
            _ => None,
        });
        for agent in calls.flat_map(|call| &mut call.agents).filter(|_| depth > 0) {
            let selector = SessionSelector { agent: Some(agent.id.clone()), leaf: None };
            let layout = self.layout(&selector)?;
            for turn in layout.turns.indices() {
                agent.turns.push(self.turn_within(&selector, &layout, turn, depth - 1)?);
            }
        }
        Ok(())
    }
}

/// The lines of some spans of a conversation, whole.
pub struct ReadSpans {
    /// The session with these lines only.
    open: OpenSession,
    /// The lines of each span, in the order of the conversation.
    lines: Vec<Vec<u64>>,
    /// The index of the log in the costs of the session.
    log: usize,
    output_reads: OutputReads,
}

impl ReadSpans {
    /// The items of a span, by its index. `layout` is the one that the spans are of.
    pub fn items(&self, layout: &TranscriptLayout, span: usize) -> Vec<TranscriptItem> {
        let read_output = |path: &str| self.output_reads.read(path, |path| self.open.kept_output(path));
        let builder = self.open.transcript_builder_at(&read_output, Some(millis(now())));
        layout.items(builder, &self.lines[span], self.log)
    }
}
