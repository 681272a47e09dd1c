//! Exports a session: reads the new part of its log, converts it to spans, delivers them, and saves the
//! progress.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Instant;

use threadline_entry::{Ending, Entry, Kind, Millis, Position, parse_line};
use threadline_session::{Family, Outcome, Session};
use threadline_store::{AgentFile, Mark, SessionFile};

use crate::agents::{Agents, Run, lines_from, runs_of};
use crate::cut::{Continued, Cutter, Head, Piece, Whose};
use crate::sender::{Receive, Received, Undelivered};
use crate::shape::Shape;
use crate::span::{Span, SpanKind};
use crate::spool;
use crate::state::{Pending, State, States};
use crate::told::Told;
use crate::turn::{Home, spans_of, spans_of_agent, tool_span};

/// Exports sessions to a receiver.
pub struct Exporter<'a> {
    /// How spans are built.
    pub shape: Shape<'a>,
    /// Where spans are sent.
    pub receiver: &'a dyn Receive,
    /// The progress of earlier exports. `None` sends everything and saves nothing.
    pub states: Option<&'a States>,
    /// Whether undelivered spans are kept in a spool file.
    pub spools: bool,
    /// The number of attempts per request.
    pub tries: u32,
    /// The deadline.
    pub until: Option<Instant>,
    /// The current time, stored as the time of delivery.
    pub now: Millis,
}

/// The result of exporting a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The number of turns delivered.
    pub turns: usize,
    /// The number of spans delivered.
    pub spans: u64,
    /// The number of bytes of the log that were read.
    pub bytes: u64,
    /// The receiver's response.
    pub received: Received,
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
    Undelivered(#[from] Undelivered),
    /// Another process is exporting the same session.
    #[error("another process is exporting this session")]
    Busy,
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Spans are delivered when at least this many are buffered.
const ENOUGH_SPANS: usize = 512;
/// Spans are also delivered when they take about this many bytes.
const ENOUGH_BYTES: usize = 3 << 20;

impl Exporter<'_> {
    /// Exports the new part of a session. `is_over` means that the session has ended, so that an unfinished
    /// last turn is sent too.
    pub fn session(
        &self,
        file: &SessionFile,
        agents: Vec<AgentFile>,
        is_over: bool,
    ) -> Result<Exported, ExportError> {
        let key = States::key(file);
        let _lock = match self.states {
            Some(states) => Some(states.lock(&key, self.until)?.ok_or(ExportError::Busy)?),
            None => None,
        };
        let mut state = self.states.map(|states| states.load(&key)).unwrap_or_default();
        state.session = file.id.to_string();
        state.path.clone_from(&file.path);
        let mut exported = Exported::default();
        if let Some(states) = self.states {
            spool::drain(states, &key, &mut state, self, &mut exported)?;
        }
        let mut work = Work {
            exporter: self,
            file,
            key,
            is_over,
            told: Told::default(),
            agents: Agents::default(),
            saved: state.clone(),
            next: state,
            spans: Vec::new(),
            weight: 0,
            reached: None,
            already: BTreeSet::new(),
            last: None,
            exported,
        };
        let result = work.run(agents);
        if let Err(error) = &result {
            work.note(error);
        }
        result?;
        Ok(work.exported)
    }
}

/// The export of one session in progress.
struct Work<'a> {
    exporter: &'a Exporter<'a>,
    file: &'a SessionFile,
    key: String,
    is_over: bool,
    told: Told,
    agents: Agents,
    /// The progress as saved on disk.
    saved: State,
    /// The progress once the buffered spans are delivered.
    next: State,
    spans: Vec<Span>,
    /// The approximate size of the buffered spans in bytes.
    weight: usize,
    /// The end of the last turn added to the buffer.
    reached: Option<Position>,
    /// The keys of the turns sent before the log was rewritten, and the last of those turns.
    already: BTreeSet<String>,
    last: Option<((Continued, Option<Position>), String)>,
    exported: Exported,
}

impl Work<'_> {
    fn run(&mut self, files: Vec<AgentFile>) -> Result<(), ExportError> {
        let path = &self.file.path;
        let mark = self.next.mark();
        if let Some(mark) = mark
            && Mark::of(path, mark.at)? != Some(mark)
        {
            // The file was replaced or rewritten since the last export.
            self.told = self.next.told();
            self.already = self.next.sent().clone();
            self.last = self.next.last().zip(self.next.last_key().map(str::to_owned));
            self.next.start_over();
        } else {
            self.told = self.next.told();
        }
        self.pending(&files)?;
        self.agents = Agents::new(files, &self.next);
        let at = self.next.mark().map_or(Position::START, |mark| mark.at);
        let whose = whose_log(path)?;
        let mut cutter = match self.next.last() {
            Some((continued, prompt_at)) => {
                let prompt = prompt_at.and_then(|at| read_entry(path, at).ok().flatten());
                Cutter::resume(whose, self.next.turns, continued, prompt, at)
            }
            None => Cutter::new(whose, self.next.turns),
        };
        cutter = cutter.behind(self.told.last().map(|(id, _)| id));
        let mut lines = lines_from(path, at)?;
        let mut end = at;
        while let Some(line) = lines.next()? {
            if line.ending == Ending::None && !(self.is_over && crate::agents::is_whole(line.bytes)) {
                break;
            }
            let mut done = None;
            parse_line(&line, |entry, findings| done = done.take().or(cutter.push(entry, findings)));
            end = lines.at();
            if let Some(piece) = done {
                // A command that is logged late, such as `/compact`, carries the time it was typed.
                let behind = piece.last_at().map(|last| last + 1);
                self.take(piece, cutter.current_start().max(behind))?;
            }
        }
        self.exported.bytes = end.byte_offset - at.byte_offset;
        if let Some(piece) = cutter.finish(end) {
            if piece.is_complete() || (self.is_over && piece.has_substance()) {
                self.take(piece, None)?;
            } else {
                self.exported.is_open = piece.prompt_at.is_some() && piece.continues.is_none();
            }
        }
        self.flush()
    }

    /// Adds the spans of a turn, or of a part of one, to the buffer. `until` is the start of the next turn.
    fn take(&mut self, mut piece: Piece, until: Option<Millis>) -> Result<(), ExportError> {
        let key = piece.key();
        if self.already.contains(&key) && !self.is_grown(&mut piece, &key, until)? {
            return Ok(());
        }
        let head = piece.head();
        if !head.has_substance {
            return Ok(());
        }
        let (continued, prompt_at, to) = (piece.continued(), piece.prompt_at, piece.to);
        let owner = copied_from(&piece, self.file);
        let is_elsewhere = |owner: &String| self.file.path.with_file_name(format!("{owner}.jsonl")).exists();
        // Turns copied from another session are sent by that session, if its log exists.
        if !owner.as_ref().is_some_and(is_elsewhere) {
            let session = owner.unwrap_or_else(|| self.file.id.to_string());
            let runs = self.agents.take(until)?;
            let main = std::mem::take(&mut piece.session);
            let (family, waiting) = self.family(&head, main, runs, &session);
            let spans = spans_of(&head, &family, &session, &mut self.told, &self.exporter.shape);
            self.weight += spans.iter().map(Span::weight).sum::<usize>();
            self.spans.extend(spans);
            self.next.pending.extend(waiting);
        }
        self.next.turns = head.number;
        self.next.set_last(continued, prompt_at, key);
        self.next.set_told(&self.told);
        self.reached = Some(to);
        if self.spans.len() >= ENOUGH_SPANS || self.weight >= ENOUGH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether a turn sent before the log was rewritten has new replies. If so, the piece is reduced to its
    /// new lines; if not, the turn is recorded as sent.
    fn is_grown(&mut self, piece: &mut Piece, key: &str, until: Option<Millis>) -> Result<bool, ExportError> {
        let last = self.last.as_ref().filter(|(_, last)| last == key).map(|((continued, _), _)| *continued);
        let (number, prompt_at, to) = (piece.number, piece.prompt_at, piece.to);
        if let Some(continued) = last {
            piece.keep_after(continued.last_at);
            piece.continues = Some(continued);
            if piece.has_reply() {
                return Ok(true);
            }
        }
        // Its sub-agents were sent with it.
        for run in self.agents.take(until)? {
            self.next.agents.insert(run.agent.id, run.to);
        }
        let continued = last.unwrap_or_else(|| piece.continued());
        self.next.turns = number;
        self.next.set_last(continued, prompt_at, key.to_owned());
        self.reached = Some(to);
        Ok(false)
    }

    /// Joins a piece with the sub-agent runs that belong to it. Runs still in progress are returned
    /// separately.
    fn family(
        &mut self,
        head: &Head,
        main: Session,
        runs: Vec<Run>,
        session: &str,
    ) -> (Family, Vec<Pending>) {
        let ends: Vec<(u64, bool)> =
            runs.iter().map(|run| (run.to, run.is_complete || self.is_over)).collect();
        let agents = runs.into_iter().map(|run| run.agent).collect();
        let mut family = Family::new(main, agents);
        let mut waiting = Vec::new();
        let mut under_way = vec![false; family.agents.len()];
        for (i, (to, is_complete)) in ends.iter().enumerate() {
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
                let parent = call.map_or(root, |(owner, call)| tool_span(head.trace, call, owner));
                waiting.push(Pending::new(&agent.id, head.trace, parent, head.number, session));
            } else {
                self.next.agents.insert(agent.id.clone(), *to);
            }
        }
        if under_way.contains(&true) {
            // Removing agents shifts indices, so the parent of each is determined again.
            let agents = std::mem::take(&mut family.agents).into_iter().zip(&under_way).take(ends.len());
            let done = agents.filter(|(_, under_way)| !**under_way).map(|(agent, _)| agent).collect();
            family = Family::new(std::mem::take(&mut family.main), done);
        }
        (family, waiting)
    }

    /// Adds sub-agents that were still running when their turn was sent, if they have finished now.
    fn pending(&mut self, files: &[AgentFile]) -> Result<(), ExportError> {
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
            let family = Family::new(Session::new(), agents);
            let home = Home { session: pending.session.clone(), trace, number: pending.number };
            self.spans.extend(spans_of_agent(&family, &home, parent, &mut self.told, &self.exporter.shape));
            self.next.agents.insert(file.id.clone(), to);
        }
        Ok(())
    }

    /// Delivers the buffered spans and saves the progress.
    fn flush(&mut self) -> Result<(), ExportError> {
        let spans = std::mem::take(&mut self.spans);
        self.weight = 0;
        let count = spans.len() as u64;
        let turns = spans.iter().filter(|span| span.kind == SpanKind::Turn).count();
        if let Some(at) = self.reached.take()
            && let Some(mark) = Mark::of(&self.file.path, at)?
        {
            self.next.set_mark(mark);
        }
        if count > 0 {
            let kept = self.exporter.spools.then(|| spans.clone());
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
                }
                Err(undelivered) => return self.keep(kept, undelivered),
            }
        }
        self.save()
    }

    /// Writes undelivered spans to the spool, so that they survive the deletion of the log. Returns the
    /// delivery error in any case.
    fn keep(&mut self, spans: Option<Vec<Span>>, undelivered: Undelivered) -> Result<(), ExportError> {
        let (Some(spans), Some(states)) = (spans, self.exporter.states) else {
            return Err(undelivered.into());
        };
        let count = spans.len() as u64;
        let Some(spooled) = spool::keep(states, &self.key, &self.next, spans)? else {
            return Err(undelivered.into());
        };
        self.next.spool.push(spooled);
        self.next.error = Some(undelivered.why.clone());
        self.exported.spooled += count;
        self.save()?;
        Err(undelivered.into())
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
    fn note(&mut self, error: &ExportError) {
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
    if call.outcome(session) == Outcome::Missing {
        return true;
    }
    let result = call.results.first().and_then(|at| session.entries()[at.entry_idx].tool_use_result());
    let result = result.and_then(|result| result.of::<AgentResult<'_>>());
    result.is_some_and(|result| {
        result.is_async().unwrap_or(false)
            || result.status().is_some_and(|status| status.contains("launched"))
    })
}

/// Returns the session that a turn was copied from, according to its first line.
fn copied_from(piece: &Piece, file: &SessionFile) -> Option<String> {
    let first = piece.session.entries().first()?;
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

/// Returns the owner of a log. A log at a session's path whose first conversation line belongs to a sub-agent
/// is that sub-agent's log.
fn whose_log(path: &Path) -> Result<Whose, ExportError> {
    let mut lines = lines_from(path, Position::START)?;
    let mut whose = None;
    while whose.is_none()
        && let Some(line) = lines.next()?
    {
        parse_line(&line, |entry, _| {
            if matches!(entry.kind(), Kind::User | Kind::Assistant | Kind::System | Kind::Attachment) {
                let is_agents = entry.flag("isSidechain");
                whose.get_or_insert(if is_agents { Whose::Agent } else { Whose::Session });
            }
        });
    }
    Ok(whose.unwrap_or(Whose::Session))
}
