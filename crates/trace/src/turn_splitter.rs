//! Splits a log into turns while it is read, in file order.
//!
//! A trace must be final once it is sent, and a hook reads only the new part of a log. A turn is therefore
//! found without looking back or ahead: it begins with a prompt and contains every line up to the next, on
//! any branch of the conversation. Rewound branches are included, since they were paid for all the same.

use std::borrow::Cow;

use threadline_entry::{Entry, Finding, Kind, Millis, Position, value};
use threadline_session::{EntryIndex, InputKind, Round, Session, Turn};

use crate::id::TraceId;

/// A turn, or the rest of one whose beginning was sent before.
#[derive(Clone, Debug)]
pub struct TurnPart {
    /// Its lines. The rest of a turn has the prompt as first line.
    pub session: Session,
    /// The owner of the log.
    pub owner: LogOwner,
    /// The number of the turn, counted from 1 over the turns that are sent.
    pub number: usize,
    /// The part of the turn sent before, if this is not its beginning.
    pub sent_part: Option<TurnProgress>,
    /// The id of the last reply of the previous turn, whose lines may continue in this one.
    pub previous_reply: Option<String>,
    /// The position of the prompt; `None` if the log begins without one.
    pub prompt_at: Option<Position>,
    /// The position of its first line.
    pub from: Position,
    /// The position after its last line.
    pub to: Position,
}

/// The state of a turn of which a part was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnProgress {
    /// Its trace.
    pub trace: TraceId,
    /// When the turn began.
    pub start: Millis,
    /// When the last line before this part was written.
    pub last_at: Millis,
}

/// The owner of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOwner {
    /// A session. Lines of sub-agents in its log open no turn.
    Session,
    /// A sub-agent. All lines of its log belong to it.
    Agent,
}

/// Splits a log into turns.
#[derive(Debug)]
pub struct TurnSplitter {
    owner: LogOwner,
    /// The number of turns so far that are worth sending.
    number: usize,
    current: Option<TurnPart>,
    /// The id of the last reply of the previous turn.
    previous_reply: Option<String>,
}

/// The number of hexadecimal digits in a turn key: enough to be unique within one session.
const KEY_LENGTH: usize = 12;

impl TurnSplitter {
    /// Creates a splitter for a log of which `number` turns were read before.
    pub fn new(owner: LogOwner, number: usize) -> Self {
        Self { owner, number, current: None, previous_reply: None }
    }

    /// Creates a splitter that continues a turn whose beginning was read before. `prompt` is the first line
    /// of the turn.
    pub fn resume(
        owner: LogOwner,
        number: usize,
        continued: TurnProgress,
        prompt: Option<Entry>,
        at: Position,
    ) -> Self {
        let mut session = Session::new();
        let prompt_at = prompt.as_ref().map(Entry::at);
        if let Some(prompt) = prompt {
            session.push(prompt, Vec::new());
        }
        let part = TurnPart {
            session,
            owner,
            number,
            sent_part: Some(continued),
            previous_reply: None,
            prompt_at,
            from: at,
            to: at,
        };
        Self { current: Some(part), ..Self::new(owner, number) }
    }

    /// Sets the id of the last reply read before.
    #[must_use]
    pub fn with_previous_reply(mut self, reply: Option<&str>) -> Self {
        self.previous_reply = reply.map(str::to_owned);
        self
    }

    /// Adds the next entry. Returns a turn when the next one begins.
    ///
    /// Lines that are not part of the conversation are skipped.
    pub fn push(&mut self, entry: Entry, findings: Vec<Finding>) -> Option<TurnPart> {
        let kind = entry.kind();
        if !matches!(kind, Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment) {
            return None;
        }
        // Scaffolding that Claude Code writes in place of a reply.
        if kind == Kind::Assistant && entry.is_meta() {
            return None;
        }
        let at = entry.at();
        let mut done = None;
        if kind == Kind::User && self.opens_turn(&entry) {
            done = self.take(at);
            self.begin(at, Some(at));
        }
        if self.current.is_none() {
            self.begin(at, None);
        }
        let ended = Position {
            byte_offset: at.byte_offset + entry.as_bytes().len() as u64 + 1,
            line_no: at.line_no + 1,
        };
        if let Some(part) = &mut self.current {
            part.session.push(entry, findings);
            part.to = ended;
        }
        done
    }

    /// Returns when the turn being read began.
    pub fn current_start(&self) -> Option<Millis> {
        self.current.as_ref()?.start()
    }

    /// Returns the last turn, which may be incomplete.
    pub fn finish(mut self, end: Position) -> Option<TurnPart> {
        self.take(end)
    }

    /// Whether this user line begins a turn.
    fn opens_turn(&self, entry: &Entry) -> bool {
        if self.owner == LogOwner::Session && entry.is_sidechain() {
            return false;
        }
        let has_result =
            entry.message().is_some_and(|message| message.blocks().any(|block| block.is(value::TOOL_RESULT)));
        !has_result && InputKind::of_user(entry).opens_turn()
    }

    fn begin(&mut self, at: Position, prompt_at: Option<Position>) {
        self.current = Some(TurnPart {
            session: Session::new(),
            owner: self.owner,
            number: self.number + 1,
            sent_part: None,
            previous_reply: self.previous_reply.clone(),
            prompt_at,
            from: at,
            to: at,
        });
    }

    /// Returns the current turn and counts it if it is a turn that will be sent.
    fn take(&mut self, end: Position) -> Option<TurnPart> {
        let mut part = self.current.take()?;
        part.to = part.to.max(end);
        let last = part.session.replies().last().and_then(|reply| reply.id.clone());
        self.previous_reply = last.or(self.previous_reply.take());
        if part.sent_part.is_none() && part.is_exportable() {
            self.number = part.number;
        }
        Some(part)
    }
}

impl TurnPart {
    /// Whether it has a reply, of a model or written by Claude Code itself.
    pub fn has_reply(&self) -> bool {
        !self.session.replies().is_empty()
    }

    /// Whether there is something to send: a reply or a compaction.
    pub fn is_exportable(&self) -> bool {
        self.has_reply() || self.session.entries().indices().any(|idx| self.session.is_boundary(idx))
    }

    /// Whether the model has finished its turn. Later lines may still continue it.
    pub fn is_complete(&self) -> bool {
        // All lines of the turn, on any branch.
        let own = |idx: &EntryIndex| self.session.in_tree(*idx) && self.is_own(&self.session.entries()[*idx]);
        let entries = self.session.entries().indices().filter(own).collect();
        let prompt = self.prompt_at.map(|_| EntryIndex::FIRST);
        let turn =
            Turn { number: self.number, prompt, entries, round: Round::NewRound, continues_in_next: false };
        self.is_exportable() && !turn.is_open(&self.session)
    }

    /// Whether a line belongs to the owner of the log rather than to a sub-agent inside it.
    fn is_own(&self, entry: &Entry) -> bool {
        self.owner == LogOwner::Agent || !entry.is_sidechain()
    }

    /// Returns the trace id of the turn.
    ///
    /// It is derived from the id of the first reply, which survives a fork and lines written again with new
    /// uuids. A turn without replies uses the uuid of its first line.
    pub fn trace(&self) -> TraceId {
        if let Some(continued) = &self.sent_part {
            return continued.trace;
        }
        let replies = self
            .session
            .entries()
            .iter()
            .filter(|entry| entry.kind() == Kind::Assistant && self.is_own(entry));
        let is_own =
            |id: &Cow<'_, str>| id.starts_with("msg_") && self.previous_reply.as_deref() != Some(&**id);
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
        for (idx, entry) in self.session.entries().enumerated() {
            let is_prompt = idx == EntryIndex::FIRST && self.prompt_at.is_some();
            if is_prompt || self.session.timestamp(idx).is_some_and(|time| time > at) {
                session.push(entry.clone(), Vec::new());
            }
        }
        self.session = session;
    }

    /// Returns when the turn began: the time of its first line that has a timestamp.
    pub fn start(&self) -> Option<Millis> {
        let first = || self.session.entries().indices().find_map(|idx| self.session.timestamp(idx));
        self.sent_part.map(|continued| continued.start).or_else(first)
    }

    /// Returns when its last line was written.
    pub fn last_at(&self) -> Option<Millis> {
        let last = self.session.entries().indices().filter_map(|idx| self.session.timestamp(idx)).max();
        self.sent_part.map(|continued| continued.last_at).max(last)
    }

    /// Returns the state needed to continue the turn later.
    pub fn progress(&self) -> TurnProgress {
        let start = self.start().unwrap_or(0);
        TurnProgress { trace: self.trace(), start, last_at: self.last_at().unwrap_or(start) }
    }

    /// Returns the properties of the turn without its lines.
    pub fn header(&self) -> TurnHeader {
        TurnHeader {
            trace: self.trace(),
            number: self.number,
            start: self.start().unwrap_or(0),
            sent_part: self.sent_part,
            has_prompt: self.prompt_at.is_some(),
            is_exportable: self.is_exportable(),
        }
    }
}

/// The properties of a turn, or of the rest of one, without its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnHeader {
    /// Its trace.
    pub trace: TraceId,
    /// The number of the turn, counted from 1.
    pub number: usize,
    /// When the turn began.
    pub start: Millis,
    /// The part of the turn sent before, if this is not its beginning.
    pub sent_part: Option<TurnProgress>,
    /// Whether its first line is a prompt.
    pub has_prompt: bool,
    /// Whether there is something to send.
    pub is_exportable: bool,
}
