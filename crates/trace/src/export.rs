//! Exports a session: reads the new part of its log, converts it to spans, delivers them, and saves the
//! progress.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Instant;

use threadline_entry::{Ending, Entry, Kind, Millis, Position, parse_line};
use threadline_secret::KnownSecrets;
use threadline_session::{IndexVec, Session, SessionFamily, ToolOutcome};
use threadline_store::{AgentFile, FileMark, SessionFile};

use crate::agent_runs::{AgentRun, UnsentAgentLogs, lines_from, runs_of};
use crate::sender::{DeliveryError, DeliverySummary, SpanReceiver};
use crate::sent_replies::SentReplies;
use crate::session_secrets::{SecretLearner, SecretLines};
use crate::span::{SpanKind, TraceSpan};
use crate::span_options::SpanOptions;
use crate::spool;
use crate::state::{ExportState, PendingAgent, StateDir};
use crate::turn::{TurnSpanParent, agent_spans_of, spans_of, tool_span_id};
use crate::turn_splitter::{LogOwner, TurnHeader, TurnPart, TurnProgress, TurnSplitter};

/// Exports sessions to a receiver.
pub struct Exporter<'a> {
    /// How spans are built.
    pub options: SpanOptions<'a>,
    /// Where spans are sent.
    pub receiver: &'a dyn SpanReceiver,
    /// The progress of earlier exports. `None` sends everything and saves nothing.
    pub states: Option<&'a StateDir>,
    /// Whether undelivered spans are kept in a spool file.
    pub use_spool: bool,
    /// The number of attempts per request.
    pub tries: u32,
    /// The deadline.
    pub until: Option<Instant>,
    /// The current time, stored as the time of delivery.
    pub now: Millis,
}

/// The result of exporting a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// The number of turns delivered.
    pub turns: usize,
    /// The number of spans delivered.
    pub spans: u64,
    /// The number of bytes of the log that were read.
    pub bytes: u64,
    /// The receiver's response.
    pub received: DeliverySummary,
    /// Whether the log ends in an unfinished turn that was not sent.
    pub is_open: bool,
    /// The number of spans written to the spool because the receiver did not accept them.
    pub spooled: u64,
}

/// Why a session was not exported, or only in part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The receiver did not accept the spans.
    #[error(transparent)]
    Undelivered(#[from] DeliveryError),
    /// Another process is exporting the same session.
    #[error("another process is exporting this session")]
    Busy,
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Spans are delivered at the end of a turn once at least this many are buffered.
const FLUSH_SPANS: usize = 512;

impl Exporter<'_> {
    /// Exports the new part of a session. `is_over` means that the session has ended, so that an unfinished
    /// last turn is sent too.
    pub fn session(
        &self,
        file: &SessionFile,
        agents: Vec<AgentFile>,
        is_over: bool,
    ) -> Result<ExportSummary, ExportError> {
        let key = StateDir::key(file);
        let _lock = match self.states {
            Some(states) => Some(states.lock(&key, self.until)?.ok_or(ExportError::Busy)?),
            None => None,
        };
        let mut state = self.states.map(|states| states.load(&key)).unwrap_or_default();
        state.session = file.id.to_string();
        state.path.clone_from(&file.path);
        let mut exported = ExportSummary::default();
        if let Some(states) = self.states {
            spool::drain(states, &key, &mut state, self, &mut exported)?;
        }
        let mut work = SessionExport {
            exporter: self,
            file,
            key,
            is_over,
            sent: SentReplies::default(),
            secrets: None,
            secret_lines: None,
            agents: UnsentAgentLogs::default(),
            saved: state.clone(),
            next: state,
            spans: Vec::new(),
            reached: None,
            sent_before_rewrite: BTreeSet::new(),
            last_before_rewrite: None,
            exported,
        };
        let result = work.run(agents);
        if let Err(error) = &result {
            work.save_error(error);
        }
        result?;
        Ok(work.exported)
    }
}

/// The export of one session in progress.
struct SessionExport<'a> {
    exporter: &'a Exporter<'a>,
    file: &'a SessionFile,
    key: String,
    is_over: bool,
    sent: SentReplies,
    /// The secrets of the session.
    secrets: Option<KnownSecrets>,
    secret_lines: Option<SecretLines>,
    agents: UnsentAgentLogs,
    /// The progress as saved on disk.
    saved: ExportState,
    /// The progress once the buffered spans are delivered.
    next: ExportState,
    spans: Vec<TraceSpan>,
    /// The end of the last turn added to the buffer.
    reached: Option<Position>,
    /// The keys of the turns sent before the log was rewritten, and the last of those turns.
    sent_before_rewrite: BTreeSet<String>,
    last_before_rewrite: Option<((TurnProgress, Option<Position>), String)>,
    exported: ExportSummary,
}

/// A failed delivery of spans.
struct FailedDelivery {
    error: ExportError,
    is_spooled: bool,
}

impl SessionExport<'_> {
    fn run(&mut self, files: Vec<AgentFile>) -> Result<(), ExportError> {
        let path = &self.file.path;
        let mark = self.next.mark();
        if let Some(mark) = mark
            && FileMark::of(path, mark.at)? != Some(mark)
        {
            // The file was replaced or rewritten since the last export.
            self.sent = self.next.sent_replies();
            self.sent_before_rewrite = self.next.sent().clone();
            self.last_before_rewrite = self.next.last().zip(self.next.last_key().map(str::to_owned));
            self.next.start_over();
        } else {
            self.sent = self.next.sent_replies();
        }
        self.learn_secrets(&files)?;
        self.add_pending_agents(&files)?;
        self.agents = UnsentAgentLogs::new(files, &self.next);
        let at = self.next.mark().map_or(Position::START, |mark| mark.at);
        let owner = log_owner(path)?;
        let mut splitter = match self.next.last() {
            Some((continued, prompt_at)) => {
                let prompt = prompt_at.and_then(|at| read_entry(path, at).ok().flatten());
                TurnSplitter::resume(owner, self.next.turns, continued, prompt, at)
            }
            None => TurnSplitter::new(owner, self.next.turns),
        };
        splitter = splitter.with_previous_reply(self.sent.last().map(|(id, _)| id));
        let mut lines = lines_from(path, at)?;
        let mut end = at;
        while let Some(line) = lines.next()? {
            if line.ending == Ending::None
                && !(self.is_over && crate::agent_runs::is_complete_json(line.bytes))
            {
                break;
            }
            let mut done = None;
            parse_line(&line, |entry, findings| done = done.take().or(splitter.push(entry, findings)));
            end = lines.at();
            if let Some(part) = done {
                // A command that is logged late, such as `/compact`, carries the time it was typed.
                let behind = part.last_at().map(|last| last + 1);
                self.add_part(part, splitter.current_start().max(behind))?;
            }
        }
        self.exported.bytes = end.byte_offset - at.byte_offset;
        if let Some(part) = splitter.finish(end) {
            if part.is_complete() || (self.is_over && part.is_exportable()) {
                self.add_part(part, None)?;
            } else {
                self.exported.is_open = part.prompt_at.is_some() && part.sent_part.is_none();
            }
        }
        self.flush()
    }

    /// Learns the secrets of the lines to send, and of those that were sent before.
    fn learn_secrets(&mut self, files: &[AgentFile]) -> Result<(), ExportError> {
        let Some(redact) = self.exporter.options.redact else { return Ok(()) };
        let from = self.next.mark().map_or(0, |mark| mark.at.byte_offset);
        let saved = self.next.secrets.clone();
        let none = BTreeSet::new();
        let own = saved.as_ref().map(|saved| saved.get("").unwrap_or(&none));
        let mut learner = SecretLearner::new(redact.rules);
        learner.read_log("", &self.file.path, from, own)?;
        // Only sub-agents that were modified lately are given.
        let has_others = saved.as_ref().is_none_or(|saved| saved.keys().any(|id| !id.is_empty()));
        let all = if has_others && from > 0 { self.file.agents().found } else { Vec::new() };
        let others = all.into_iter().filter(|agent| files.iter().all(|file| file.path != agent.path));
        learner.read_agents(files, &self.next.agents, saved.as_ref())?;
        // Nothing of these is sent, so that one that cannot be read does not prevent the export.
        let _ = learner.read_agents(&others.collect::<Vec<_>>(), &self.next.agents, saved.as_ref());
        let (secrets, lines) = learner.finish();
        (self.secrets, self.secret_lines) = (secrets, Some(lines));
        Ok(())
    }

    /// Adds the spans of a turn, or of a part of one, to the buffer. `until` is the start of the next turn.
    fn add_part(&mut self, mut part: TurnPart, until: Option<Millis>) -> Result<(), ExportError> {
        let key = part.key();
        if self.sent_before_rewrite.contains(&key) && !self.has_grown(&mut part, &key, until)? {
            return Ok(());
        }
        let head = part.header();
        if !head.is_exportable {
            return Ok(());
        }
        let (continued, prompt_at, to) = (part.progress(), part.prompt_at, part.to);
        let owner = copied_from(&part, self.file);
        let is_elsewhere = |owner: &String| self.file.path.with_file_name(format!("{owner}.jsonl")).exists();
        // Turns copied from another session are sent by that session, if its log exists.
        if !owner.as_ref().is_some_and(is_elsewhere) {
            let session = owner.unwrap_or_else(|| self.file.id.to_string());
            let runs = self.agents.take(until)?;
            let main = std::mem::take(&mut part.session);
            let (family, waiting) = self.family(&head, main, runs, &session);
            self.build(|sent, options| spans_of(&head, &family, &session, sent, options));
            self.next.pending.extend(waiting);
        }
        self.next.turns = head.number;
        self.next.set_last(continued, prompt_at, key);
        self.next.set_sent_replies(&self.sent);
        self.reached = Some(to);
        if self.spans.len() >= FLUSH_SPANS {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds the spans of a turn or of a sub-agent to the buffer.
    fn build(&mut self, spans: impl FnOnce(&mut SentReplies, &SpanOptions<'_>) -> Vec<TraceSpan>) {
        let options = self.exporter.options.with_session_secrets(self.secrets.as_ref());
        self.spans.extend(spans(&mut self.sent, &options));
    }

    /// Whether a turn sent before the log was rewritten has new replies. If so, the part is reduced to its
    /// new lines; if not, the turn is recorded as sent.
    fn has_grown(
        &mut self,
        part: &mut TurnPart,
        key: &str,
        until: Option<Millis>,
    ) -> Result<bool, ExportError> {
        let last = self
            .last_before_rewrite
            .as_ref()
            .filter(|(_, last)| last == key)
            .map(|((continued, _), _)| *continued);
        let (number, prompt_at, to) = (part.number, part.prompt_at, part.to);
        if let Some(continued) = last {
            part.keep_after(continued.last_at);
            part.sent_part = Some(continued);
            if part.has_reply() {
                return Ok(true);
            }
        }
        // Its sub-agents were sent with it.
        for run in self.agents.take(until)? {
            self.next.agents.insert(run.agent.id, run.to);
        }
        let continued = last.unwrap_or_else(|| part.progress());
        self.next.turns = number;
        self.next.set_last(continued, prompt_at, key.to_owned());
        self.reached = Some(to);
        Ok(false)
    }

    /// Joins a turn with the sub-agent runs that belong to it. Runs still in progress are returned
    /// separately.
    fn family(
        &mut self,
        head: &TurnHeader,
        main: Session,
        runs: Vec<AgentRun>,
        session: &str,
    ) -> (SessionFamily, Vec<PendingAgent>) {
        let ends: Vec<(u64, bool)> =
            runs.iter().map(|run| (run.to, run.is_complete || self.is_over)).collect();
        let agents = runs.into_iter().map(|run| run.agent).collect();
        let mut family = SessionFamily::new(main, agents);
        let mut waiting = Vec::new();
        let mut under_way = IndexVec::filled(false, family.agents.len());
        for (i, (to, is_complete)) in family.agents.indices().zip(&ends) {
            let agent = &family.agents[i];
            let call = agent.spawn.as_ref().and_then(|spawn| {
                let owner = family.session(spawn.agent);
                Some((owner, owner.tool_call(&spawn.tool_use_id)?))
            });
            let above = agent.spawn.as_ref().and_then(|spawn| spawn.agent);
            let was_answered = call.is_some_and(|(owner, call)| !is_launched(owner, call));
            if above.is_some_and(|above| under_way[above]) || !(*is_complete || was_answered) {
                under_way[i] = true;
                let root = head.trace.span(&["turn"]);
                let parent = call.map_or(root, |(owner, call)| tool_span_id(head.trace, call, owner));
                waiting.push(PendingAgent::new(&agent.id, head.trace, parent, head.number, session));
            } else {
                self.next.agents.insert(agent.id.clone(), *to);
            }
        }
        if under_way.iter().any(|&under_way| under_way) {
            // Removing agents shifts indices, so the parent of each is determined again.
            let agents = std::mem::take(&mut family.agents).into_iter().zip(&under_way).take(ends.len());
            let done = agents.filter(|(_, under_way)| !**under_way).map(|(agent, _)| agent).collect();
            family = SessionFamily::new(std::mem::take(&mut family.main), done);
        }
        (family, waiting)
    }

    /// Adds sub-agents that were still running when their turn was sent, if they have finished now.
    fn add_pending_agents(&mut self, files: &[AgentFile]) -> Result<(), ExportError> {
        for pending in std::mem::take(&mut self.next.pending) {
            let file = files.iter().find(|file| file.id == pending.agent);
            let (Some(file), Some(trace), Some(parent)) = (file, pending.trace(), pending.parent()) else {
                continue;
            };
            let from = self.next.agents.get(&file.id).copied().unwrap_or(0);
            let runs = runs_of(file, from)?;
            if !runs.iter().all(|run| run.is_complete || self.is_over) {
                self.next.pending.push(pending);
                continue;
            }
            let Some(to) = runs.last().map(|run| run.to) else { continue };
            let agents = runs.into_iter().map(|run| run.agent).collect();
            let family = SessionFamily::new(Session::new(), agents);
            let turn = TurnSpanParent { session: pending.session.clone(), trace, number: pending.number };
            self.build(|sent, options| agent_spans_of(&family, &turn, parent, sent, options));
            self.next.agents.insert(file.id.clone(), to);
        }
        Ok(())
    }

    /// Delivers the buffered spans and saves the progress.
    fn flush(&mut self) -> Result<(), ExportError> {
        if let Some(at) = self.reached.take()
            && let Some(mark) = FileMark::of(&self.file.path, at)?
        {
            self.next.set_mark(mark);
            self.next.secrets.clone_from(&self.secret_lines);
        }
        match self.deliver() {
            Ok(()) => self.save(),
            Err(failure) => {
                if failure.is_spooled {
                    self.save()?;
                }
                Err(failure.error)
            }
        }
    }

    /// Delivers the buffered spans. If the receiver does not accept them, they go to the spool.
    fn deliver(&mut self) -> Result<(), FailedDelivery> {
        let spans = std::mem::take(&mut self.spans);
        let count = spans.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let turns = spans.iter().filter(|span| span.kind == SpanKind::Turn).count();
        let kept = self.exporter.use_spool.then(|| spans.clone());
        match self.exporter.receiver.receive(spans, self.exporter.tries, self.exporter.until) {
            Ok(received) => {
                let taken = count.saturating_sub(received.refused);
                self.next.spans += taken;
                self.next.refused += received.refused;
                self.next.error.clone_from(&received.complaint);
                if taken > 0 {
                    self.next.sent_at = Some(self.exporter.now);
                    self.exported.turns += turns;
                }
                self.exported.spans += taken;
                self.exported.received.add(received);
                Ok(())
            }
            Err(undelivered) => {
                self.next.error = Some(undelivered.why.clone());
                Err(self.spool(kept, undelivered.into()))
            }
        }
    }

    /// Writes undelivered spans to the spool, so that they survive the deletion of the log.
    fn spool(&mut self, spans: Option<Vec<TraceSpan>>, error: ExportError) -> FailedDelivery {
        let (Some(spans), Some(states)) = (spans, self.exporter.states) else {
            return FailedDelivery { error, is_spooled: false };
        };
        let count = spans.len() as u64;
        match spool::store_spans(states, &self.key, &self.next, spans) {
            Ok(Some(spooled)) => {
                self.next.spool.push(spooled);
                self.exported.spooled += count;
                FailedDelivery { error, is_spooled: true }
            }
            Ok(None) => FailedDelivery { error, is_spooled: false },
            Err(unwritten) => FailedDelivery { error: unwritten.into(), is_spooled: false },
        }
    }

    fn save(&mut self) -> Result<(), ExportError> {
        if let Some(states) = self.exporter.states
            && self.next != self.saved
        {
            states.save(&self.key, &self.next)?;
        }
        self.saved.clone_from(&self.next);
        Ok(())
    }

    /// Saves an error together with the progress made so far.
    fn save_error(&mut self, error: &ExportError) {
        if let Some(states) = self.exporter.states {
            self.saved.error = Some(error.to_string());
            // The caller already reports an error.
            let _ = states.save(&self.key, &self.saved);
        }
    }
}

/// Whether a tool call only launched its sub-agent, which continues in the background.
fn is_launched(session: &Session, call: &threadline_session::ToolCall) -> bool {
    use threadline_entry::lens::AgentResult;
    if call.outcome(session) == ToolOutcome::Missing {
        return true;
    }
    let result = call.results.first().and_then(|at| at.record(session));
    let result = result.and_then(|result| result.of::<AgentResult<'_>>());
    result.is_some_and(|result| {
        result.is_async().unwrap_or(false)
            || result.status().is_some_and(|status| status.contains("launched"))
    })
}

/// Returns the session that a turn was copied from, according to its first line.
fn copied_from(part: &TurnPart, file: &SessionFile) -> Option<String> {
    let first = part.session.entries().first()?;
    let origin = first.envelope()?.forked_from()?.session_id()?;
    (*origin != *file.id).then(|| origin.into_owned())
}

/// Reads the entry at a position of a log.
fn read_entry(path: &std::path::Path, at: Position) -> io::Result<Option<Entry>> {
    let mut lines = lines_from(path, at)?;
    let mut found = None;
    if let Some(line) = lines.next()? {
        parse_line(&line, |entry, _| found = found.take().or(Some(entry)));
    }
    Ok(found)
}

/// Returns the owner of a log. A log at a session's path owner first conversation line belongs to a sub-agent
/// is that sub-agent's log.
fn log_owner(path: &Path) -> Result<LogOwner, ExportError> {
    let mut lines = lines_from(path, Position::START)?;
    let mut owner = None;
    while owner.is_none()
        && let Some(line) = lines.next()?
    {
        parse_line(&line, |entry, _| {
            if matches!(entry.kind(), Kind::User | Kind::Assistant | Kind::System | Kind::Attachment) {
                let is_agents = entry.is_sidechain();
                owner.get_or_insert(if is_agents { LogOwner::Agent } else { LogOwner::Session });
            }
        });
    }
    Ok(owner.unwrap_or(LogOwner::Session))
}
