//! Splits a log into turns while it is read, in file order.
//!
//! A trace must be final once it is sent, and a hook reads only the new part of a log. A turn is therefore
//! found without looking back or ahead: it begins with a prompt and contains every line up to the next, on
//! any branch of the conversation. Rewound branches are included, since they were paid for all the same.

use std::borrow::Cow;

use threadline_entry::{Entry, Finding, Kind, Millis, Position};
use threadline_session::{Input, Round, Session, Turn};

use crate::id::TraceId;

/// A turn, or a part of one.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its lines. A part that continues a turn has the prompt as first line.
    pub session: Session,
    /// The owner of the log.
    pub whose: Whose,
    /// The number of the turn, counted from 1 over the turns that are sent.
    pub number: usize,
    /// The part of the turn sent before, if this is not its beginning.
    pub continues: Option<Continued>,
    /// Whether more of the same turn follows, so that the root span must not be sent yet.
    pub goes_on: bool,
    /// The id of the last reply of the previous turn, whose lines may continue in this one.
    pub before: Option<String>,
    /// The position of the prompt; `None` if the log begins without one.
    pub prompt_at: Option<Position>,
    /// The position of its first line.
    pub from: Position,
    /// The position after its last line.
    pub to: Position,
}

/// The state of a turn of which a part was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continued {
    /// Its trace.
    pub trace: TraceId,
    /// When the turn began.
    pub start: Millis,
    /// When the last line before this part was written.
    pub last_at: Millis,
}

/// The owner of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A session. Lines of sub-agents in its log open no turn.
    Session,
    /// A sub-agent. All lines of its log belong to it.
    Agent,
}

/// Splits a log into turns.
#[derive(Debug)]
pub struct Cutter {
    whose: Whose,
    /// The number of turns so far that are worth sending.
    number: usize,
    current: Option<Piece>,
    /// The size in bytes at which a turn is returned in parts.
    limit: u64,
    /// The id of the last reply of the previous turn.
    before: Option<String>,
}

/// The number of hexadecimal digits in a turn key: enough to be unique within one session.
const KEY_LENGTH: usize = 12;

/// The maximum size of a turn in bytes. A longer turn is returned in parts, to bound memory.
const LIMIT: u64 = 16 << 20;

impl Cutter {
    /// Creates a cutter for a log of which `number` turns were read before.
    pub fn new(whose: Whose, number: usize) -> Self {
        let limit = if whose == Whose::Agent { u64::MAX } else { LIMIT };
        Self { whose, number, current: None, limit, before: None }
    }

    /// Creates a cutter that continues a turn whose beginning was read before. `prompt` is the first line of
    /// the turn.
    pub fn resume(
        whose: Whose,
        number: usize,
        continued: Continued,
        prompt: Option<Entry>,
        at: Position,
    ) -> Self {
        let mut session = Session::new();
        let prompt_at = prompt.as_ref().map(Entry::at);
        if let Some(prompt) = prompt {
            session.push(prompt, Vec::new());
        }
        let piece = Piece {
            session,
            whose,
            number,
            continues: Some(continued),
            goes_on: false,
            before: None,
            prompt_at,
            from: at,
            to: at,
        };
        Self { whose, number, current: Some(piece), limit: LIMIT, before: None }
    }

    /// Sets the id of the last reply read before.
    #[must_use]
    pub fn behind(mut self, reply: Option<&str>) -> Self {
        self.before = reply.map(str::to_owned);
        self
    }

    /// Adds the next entry. Returns a turn when the next one begins, or a part of a turn when it exceeds the
    /// size limit.
    ///
    /// Lines that are not part of the conversation are skipped.
    pub fn push(&mut self, entry: Entry, findings: Vec<Finding>) -> Option<Piece> {
        let kind = entry.kind();
        if !matches!(kind, Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment) {
            return None;
        }
        // Scaffolding that Claude Code writes in place of a reply.
        if kind == Kind::Assistant && entry.flag("isMeta") {
            return None;
        }
        let at = entry.at();
        let mut done = None;
        if kind == Kind::User && self.opens(&entry) {
            done = self.take(at);
            self.begin(at, Some(at));
        } else if kind == Kind::Assistant && self.is_long(at, &entry) {
            done = self.split(at);
        }
        if self.current.is_none() {
            self.begin(at, None);
        }
        let ended = Position {
            byte_offset: at.byte_offset + entry.as_bytes().len() as u64 + 1,
            line_no: at.line_no + 1,
        };
        if let Some(piece) = &mut self.current {
            piece.session.push(entry, findings);
            piece.to = ended;
        }
        done
    }

    /// Returns when the turn being read began.
    pub fn current_start(&self) -> Option<Millis> {
        self.current.as_ref()?.start()
    }

    /// Returns the last turn, which may be incomplete.
    pub fn finish(mut self, end: Position) -> Option<Piece> {
        self.take(end)
    }

    /// Whether this user line begins a turn.
    fn opens(&self, entry: &Entry) -> bool {
        if self.whose == Whose::Session && entry.flag("isSidechain") {
            return false;
        }
        let has_result =
            entry.message().is_some_and(|message| message.blocks().any(|block| block.is("tool_result")));
        !has_result && Input::of_user(entry).opens_turn()
    }

    fn begin(&mut self, at: Position, prompt_at: Option<Position>) {
        self.current = Some(Piece {
            session: Session::new(),
            whose: self.whose,
            number: self.number + 1,
            continues: None,
            goes_on: false,
            before: self.before.clone(),
            prompt_at,
            from: at,
            to: at,
        });
    }

    /// Returns the current piece and counts it if it is a turn that will be sent.
    fn take(&mut self, end: Position) -> Option<Piece> {
        let mut piece = self.current.take()?;
        piece.to = piece.to.max(end);
        let last = piece.session.replies().last().and_then(|reply| reply.id.clone());
        self.before = last.or(self.before.take());
        if piece.continues.is_none() && piece.has_substance() {
            self.number = piece.number;
        }
        Some(piece)
    }

    /// Whether the current piece has reached the size limit and `entry` begins a new reply, with no tool call
    /// pending.
    fn is_long(&self, at: Position, entry: &Entry) -> bool {
        let Some(piece) = &self.current else { return false };
        if at.byte_offset - piece.from.byte_offset < self.limit
            || entry.flag("isSidechain") != (self.whose == Whose::Agent)
        {
            return false;
        }
        let id = entry.message().and_then(|message| message.id());
        let known = piece.session.replies().iter().rev().any(|reply| reply.id.as_deref() == id.as_deref());
        !known && piece.has_reply() && piece.session.tool_calls().iter().all(|call| !call.results.is_empty())
    }

    /// Returns a part of the current turn and continues with the rest.
    fn split(&mut self, at: Position) -> Option<Piece> {
        let mut piece = self.current.take()?;
        piece.goes_on = true;
        piece.to = at;
        self.number = piece.number;
        let prompt = piece.prompt_at.and_then(|_| piece.session.entries().first().cloned());
        let continued = piece.continued();
        let next = Self::resume(self.whose, piece.number, continued, prompt, at);
        *self = Self { limit: self.limit, before: self.before.take(), ..next };
        Some(piece)
    }
}

impl Piece {
    /// Whether it has a reply, of a model or written by Claude Code itself.
    pub fn has_reply(&self) -> bool {
        !self.session.replies().is_empty()
    }

    /// Whether there is something to send: a reply or a compaction.
    pub fn has_substance(&self) -> bool {
        self.has_reply() || (0..self.session.entries().len()).any(|idx| self.session.is_boundary(idx))
    }

    /// Whether the model has finished its turn. Later lines may still continue it.
    pub fn is_complete(&self) -> bool {
        // All lines of the turn, on any branch.
        let own = |idx: &usize| self.session.in_tree(*idx) && self.is_own(&self.session.entries()[*idx]);
        let entries = (0..self.session.entries().len()).filter(own).collect();
        let prompt = self.prompt_at.map(|_| 0);
        let turn = Turn { number: self.number, prompt, entries, round: Round::NewRound, goes_on: false };
        self.has_substance() && !turn.is_open(&self.session)
    }

    /// Whether a line belongs to the owner of the log rather than to a sub-agent inside it.
    fn is_own(&self, entry: &Entry) -> bool {
        self.whose == Whose::Agent || !entry.flag("isSidechain")
    }

    /// Returns the trace id of the turn.
    ///
    /// It is derived from the id of the first reply, which survives a fork and a log written out again with
    /// new uuids. A turn without replies uses the uuid of its first line.
    pub fn trace(&self) -> TraceId {
        if let Some(continued) = &self.continues {
            return continued.trace;
        }
        let replies = self
            .session
            .entries()
            .iter()
            .filter(|entry| entry.kind() == Kind::Assistant && self.is_own(entry));
        let is_own = |id: &Cow<'_, str>| id.starts_with("msg_") && self.before.as_deref() != Some(&**id);
        let mut ids = replies.filter_map(|entry| entry.message()?.id()).filter(is_own);
        if let Some(id) = ids.next() {
            return TraceId::of(&id);
        }
        let mut uuids = self.session.entries().iter().filter_map(Entry::uuid);
        match uuids.next() {
            Some(uuid) => TraceId::of(&uuid),
            None => TraceId::of(self.session.entries().first().map_or("", |entry| entry.text())),
        }
    }

    /// Returns the key of the turn within its log, a short hash of the uuid of its prompt. Editing other
    /// lines does not change it.
    pub(crate) fn key(&self) -> String {
        let uuid = self.session.entries().first().and_then(Entry::uuid);
        let mut key = uuid.map_or_else(|| self.trace(), |uuid| TraceId::of(&uuid)).to_string();
        key.truncate(KEY_LENGTH);
        key
    }

    /// Removes the lines written up to `at`, except the prompt.
    pub(crate) fn keep_after(&mut self, at: Millis) {
        let mut session = Session::new();
        for (idx, entry) in self.session.entries().iter().enumerate() {
            let is_prompt = idx == 0 && self.prompt_at.is_some();
            if is_prompt || self.session.timestamp(idx).is_some_and(|time| time > at) {
                session.push(entry.clone(), Vec::new());
            }
        }
        self.session = session;
    }

    /// Returns when the turn began: the time of its first line that has a timestamp.
    pub fn start(&self) -> Option<Millis> {
        let first = || (0..self.session.entries().len()).find_map(|idx| self.session.timestamp(idx));
        self.continues.map(|continued| continued.start).or_else(first)
    }

    /// Returns when its last line was written.
    pub fn last_at(&self) -> Option<Millis> {
        let last = (0..self.session.entries().len()).filter_map(|idx| self.session.timestamp(idx)).max();
        self.continues.map(|continued| continued.last_at).max(last)
    }

    /// Returns the state needed to continue the turn later.
    pub fn continued(&self) -> Continued {
        let start = self.start().unwrap_or(0);
        Continued { trace: self.trace(), start, last_at: self.last_at().unwrap_or(start) }
    }

    /// Returns the properties of the turn without its lines.
    pub fn head(&self) -> Head {
        Head {
            trace: self.trace(),
            number: self.number,
            start: self.start().unwrap_or(0),
            continues: self.continues,
            goes_on: self.goes_on,
            has_prompt: self.prompt_at.is_some(),
            has_substance: self.has_substance(),
        }
    }
}

/// The properties of a turn, or of a part of one, without its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its trace.
    pub trace: TraceId,
    /// The number of the turn, counted from 1.
    pub number: usize,
    /// When the turn began.
    pub start: Millis,
    /// The part of the turn sent before, if this is not its beginning.
    pub continues: Option<Continued>,
    /// Whether more of the same turn follows.
    pub goes_on: bool,
    /// Whether its first line is a prompt.
    pub has_prompt: bool,
    /// Whether there is something to send.
    pub has_substance: bool,
}
