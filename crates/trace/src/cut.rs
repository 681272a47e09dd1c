//! Cuts a log into turns as it is read, in the order it was written in.
//!
//! A trace must be final once it is sent, and a hook reads only what is new. So a turn is found without
//! looking back or ahead: it begins with a prompt and holds every line up to the next, whatever branch of the
//! conversation they are on. What was rewound was said and paid for all the same.

use std::borrow::Cow;

use threadline_entry::{Entry, Finding, Kind, Millis, Position};
use threadline_session::{Input, Round, Session, Turn};

use crate::id::TraceId;

/// A turn, or a part of one.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its lines. A part that continues a turn has the prompt's line in front.
    pub session: Session,
    /// Whose log it is from.
    pub whose: Whose,
    /// Counted from 1 over the turns that are sent.
    pub number: usize,
    /// What it continues, if it is not the beginning of a turn.
    pub continues: Option<Continued>,
    /// Whether more of the same turn follows, so that its root must wait.
    pub goes_on: bool,
    /// The last reply of the turn before, which may go on in this one without being its own.
    pub before: Option<String>,
    /// Where the prompt stands; `None` if the log begins without one.
    pub prompt_at: Option<Position>,
    /// Where its first line begins.
    pub from: Position,
    /// Where the line behind its last begins.
    pub to: Position,
}

/// What is known of a turn that a part of was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continued {
    /// Its trace.
    pub trace: TraceId,
    /// When it began.
    pub start: Millis,
    /// When the last line before this part was written.
    pub last_at: Millis,
}

/// Whose log is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A session's, in which lines of sub-agents open no turn.
    Session,
    /// A sub-agent's, in which every line is one.
    Agent,
}

/// Cuts a log into turns.
#[derive(Debug)]
pub struct Cutter {
    whose: Whose,
    /// How many turns there were that have something to send.
    number: usize,
    current: Option<Piece>,
    /// How long a turn may grow before a part of it is given out.
    limit: u64,
    /// The last reply of the turn before.
    before: Option<String>,
}

/// How many hexadecimal digits of a key are kept: enough for the turns of one session.
const KEY_LENGTH: usize = 12;

/// A turn of more than this is handed out in parts, so that memory does not grow with it.
const LIMIT: u64 = 16 << 20;

impl Cutter {
    /// A cutter for a log of which `number` turns are known already.
    pub fn new(whose: Whose, number: usize) -> Self {
        let limit = if whose == Whose::Agent { u64::MAX } else { LIMIT };
        Self { whose, number, current: None, limit, before: None }
    }

    /// Goes on within a turn whose beginning was cut before. `prompt` is its first line.
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

    /// Says which reply was the last one that was read before.
    #[must_use]
    pub fn behind(mut self, reply: Option<&str>) -> Self {
        self.before = reply.map(str::to_owned);
        self
    }

    /// Takes the next entry. A turn comes back when the next one begins, a part of it when it grows too long.
    ///
    /// Lines that belong to no conversation are left out.
    pub fn push(&mut self, entry: Entry, findings: Vec<Finding>) -> Option<Piece> {
        let kind = entry.kind();
        if !matches!(kind, Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment) {
            return None;
        }
        // Claude Code's own scaffolding in the place of a reply.
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

    /// When the turn began that is being read.
    pub fn current_start(&self) -> Option<Millis> {
        self.current.as_ref()?.start()
    }

    /// The last turn, which may still be growing.
    pub fn finish(mut self, end: Position) -> Option<Piece> {
        self.take(end)
    }

    /// Whether a turn begins with this user line.
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

    /// Gives out what there is, and counts it if it is a turn that will be sent.
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

    /// Whether the current piece is too long, and another reply begins with `entry`.
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

    /// Gives out a part of the current turn and goes on with the rest.
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
    /// Whether a model, or Claude Code in its place, has answered.
    pub fn has_reply(&self) -> bool {
        !self.session.replies().is_empty()
    }

    /// Whether there is something to send: a reply, or a compaction.
    pub fn has_substance(&self) -> bool {
        self.has_reply() || (0..self.session.entries().len()).any(|idx| self.session.is_boundary(idx))
    }

    /// Whether the model has come to the end of what it had to say. What follows may still continue it.
    pub fn is_complete(&self) -> bool {
        // The lines of the turn, whatever branch they are on.
        let own = |idx: &usize| self.session.in_tree(*idx) && self.is_own(&self.session.entries()[*idx]);
        let entries = (0..self.session.entries().len()).filter(own).collect();
        let prompt = self.prompt_at.map(|_| 0);
        let turn = Turn { number: self.number, prompt, entries, round: Round::NewRound, goes_on: false };
        self.has_substance() && !turn.is_open(&self.session)
    }

    /// Whether a line is of the one whose log it is, and of no sub-agent inside it.
    fn is_own(&self, entry: &Entry) -> bool {
        self.whose == Whose::Agent || !entry.flag("isSidechain")
    }

    /// The trace that the turn is.
    ///
    /// The first reply's id survives a fork, and a log that was written out again with new uuids; what was
    /// never answered is known by its prompt.
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

    /// What the turn is known by in the log, whatever is edited in it: a short hash of the uuid of its prompt.
    pub(crate) fn key(&self) -> String {
        let uuid = self.session.entries().first().and_then(Entry::uuid);
        let mut key = uuid.map_or_else(|| self.trace(), |uuid| TraceId::of(&uuid)).to_string();
        key.truncate(KEY_LENGTH);
        key
    }

    /// Leaves out the lines that were written up to `at`, but for the prompt.
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

    /// When the turn began: with its prompt, or with the first line that says when.
    pub fn start(&self) -> Option<Millis> {
        let first = || (0..self.session.entries().len()).find_map(|idx| self.session.timestamp(idx));
        self.continues.map(|continued| continued.start).or_else(first)
    }

    /// When its last line was written.
    pub fn last_at(&self) -> Option<Millis> {
        let last = (0..self.session.entries().len()).filter_map(|idx| self.session.timestamp(idx)).max();
        self.continues.map(|continued| continued.last_at).max(last)
    }

    /// What to know of it to go on with it later.
    pub fn continued(&self) -> Continued {
        let start = self.start().unwrap_or(0);
        Continued { trace: self.trace(), start, last_at: self.last_at().unwrap_or(start) }
    }

    /// What is known of it beside its lines.
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

/// What is known of a turn, or a part of one, beside its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its trace.
    pub trace: TraceId,
    /// Counted from 1.
    pub number: usize,
    /// When it began.
    pub start: Millis,
    /// What it continues, if it is not the beginning of a turn.
    pub continues: Option<Continued>,
    /// Whether more of the same turn follows.
    pub goes_on: bool,
    /// Whether its first line is a prompt.
    pub has_prompt: bool,
    /// Whether there is something to send.
    pub has_substance: bool,
}
