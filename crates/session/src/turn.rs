//! Turns: a prompt and everything the model did before the next one.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{AttachmentLine, Block, Progress, User};
use threadline_entry::{Entry, Kind, Millis, value};

use crate::index::{CallIndex, EntryIndex, IndexVec, ReplyIndex, TurnIndex};
use crate::input::{InputKind, editor_context, is_command_caveat};
use crate::session::{ParentLink, Session};
use crate::thread::Thread;
use crate::tool_call::ToolOutcome;

/// A prompt, and everything the model did before the next one.
///
/// Tool results have the role `user` too. They answer the model, so they belong to the turn that is already
/// open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The number of the turn, counted from 1.
    pub number: usize,
    /// The entry that opened the turn. `None` for content that precedes the first prompt.
    pub prompt: Option<EntryIndex>,
    /// All entries of the turn. The first one is the prompt, or editor context, an image or a notification
    /// that arrived on a separate line before the prompt.
    pub entries: Vec<EntryIndex>,
    /// How the turn was started.
    pub round: Round,
    /// Whether the next turn was opened by input that was not typed, such as a task notification. The model
    /// then continued its work there, so this turn is not open.
    pub continues_in_next: bool,
}

/// How a user entry continues the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// The first prompt of a session.
    NewSession,
    /// An entry inside a turn, such as a tool result.
    Continue,
    /// A new prompt.
    NewRound,
    /// A new prompt after a long pause.
    Resume,
}

/// A pause longer than this before a prompt makes it a [`Round::Resume`].
const RESUME_PAUSE: Millis = 5 * 60 * 1000;

impl Round {
    /// Returns the name used in the public JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewSession => "new_session",
            Self::Continue => "continue",
            Self::NewRound => "new_round",
            Self::Resume => "resume",
        }
    }
}

impl Session {
    /// Returns the turns of the active conversation.
    pub fn turns(&self) -> IndexVec<TurnIndex, Turn> {
        self.turns_of(&self.thread())
    }

    /// Returns the turns of a conversation.
    pub fn turns_of(&self, thread: &Thread) -> IndexVec<TurnIndex, Turn> {
        split_turns(self, &self.parents_first(&thread.entries)).into()
    }

    /// Returns entries in file order, except that every entry follows its parent. 2.1.300 may write a reply
    /// before its prompt.
    fn parents_first<'e>(&self, entries: &'e [EntryIndex]) -> Cow<'e, [EntryIndex]> {
        let parent = |idx: EntryIndex| match self.parent(idx) {
            ParentLink::Entry(parent) => Some(parent),
            ParentLink::Root | ParentLink::Dangling => None,
        };
        if entries.iter().all(|&idx| parent(idx).is_none_or(|parent| parent < idx)) {
            return Cow::Borrowed(entries);
        }
        let mut pending: HashSet<EntryIndex> = entries.iter().copied().collect();
        let mut waiting: HashMap<EntryIndex, Vec<EntryIndex>> = HashMap::default();
        let mut ordered = Vec::with_capacity(entries.len());
        for &idx in entries {
            if let Some(parent) = parent(idx).filter(|parent| pending.contains(parent)) {
                waiting.entry(parent).or_default().push(idx);
                continue;
            }
            let mut ready = vec![idx];
            while let Some(idx) = ready.pop() {
                ordered.push(idx);
                pending.remove(&idx);
                ready.extend(waiting.remove(&idx).into_iter().flatten().rev());
            }
        }
        Cow::Owned(ordered)
    }

    /// Returns how an entry of a turn continues the conversation.
    pub fn round(&self, turn: &Turn, entry_idx: EntryIndex) -> Round {
        if turn.prompt == Some(entry_idx) { turn.round } else { Round::Continue }
    }
}

/// The turn that the next entries are added to.
struct OpenTurn {
    turn: Turn,
    /// The number of entries that the turn was opened with.
    n_first: usize,
    /// Whether it contains only editor context, images and lines that are not input.
    is_blank: bool,
    has_model_reply: bool,
}

impl OpenTurn {
    /// Opens a turn with its first entries.
    fn new(session: &Session, turn: Turn) -> Self {
        let n_first = turn.entries.len();
        let mut opened = Self { turn, n_first, is_blank: true, has_model_reply: false };
        for at in 0..n_first {
            opened.examine(session, opened.turn.entries[at]);
        }
        opened
    }

    fn push(&mut self, session: &Session, idx: EntryIndex) {
        self.examine(session, idx);
        self.turn.entries.push(idx);
    }

    fn examine(&mut self, session: &Session, idx: EntryIndex) {
        self.is_blank = self.is_blank && is_blank(session, idx);
        self.has_model_reply = self.has_model_reply || is_model_reply(session, idx);
    }

    /// Returns whether an entry of this kind continues the turn instead of opening a new one: nothing has
    /// been typed in the turn, or it was opened by a notification, and the model has not replied.
    fn accepts_prompt(&self, session: &Session, input: InputKind) -> bool {
        let is_notification =
            |idx: EntryIndex| session.input(idx).is_some_and(InputKind::is_task_notification);
        if self.turn.prompt.is_some_and(is_notification) {
            return !self.has_model_reply;
        }
        input.is_typed() && self.is_blank
    }

    /// Removes the last entries that belong to the turn that follows: the caveat before a command, and the
    /// hooks of a session start. Those that the turn was opened with stay, so each is moved at most once.
    fn take_next_entries(&mut self, session: &Session) -> std::vec::Drain<'_, EntryIndex> {
        let own = &self.turn.entries[self.n_first..];
        let n_next = own.iter().rev().take_while(|&&idx| belongs_to_next_turn(session, idx)).count();
        self.turn.entries.drain(self.turn.entries.len() - n_next..)
    }
}

/// Splits a conversation into turns. Every entry follows its parent.
fn split_turns(session: &Session, ordered: &[EntryIndex]) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut last: Option<OpenTurn> = None;
    // Hooks, attachments and injected text before the first prompt become part of its turn.
    let mut before = Vec::new();
    let local = local_commands(session, ordered);
    // The turn number that Claude Code recorded, in versions that do.
    let mut own_number = None;
    for &idx in ordered {
        let mut input =
            session.input(idx).filter(|input| input.opens_turn()).filter(|_| !local.contains(&idx));
        if let Some(number) = recorded_turn_index(session, idx) {
            match own_number {
                Some(before) if number == before => input = None,
                Some(before) if number > before => input = input.or(session.input(idx)),
                _ => {}
            }
            own_number = Some(number);
        }
        // Editor context, images and task notifications may be on separate lines before the prompt.
        let waiting =
            last.as_mut().filter(|open| input.is_some_and(|input| open.accepts_prompt(session, input)));
        if let Some(open) = waiting {
            (open.turn.prompt, input) = (Some(idx), None);
        }
        let spoken = match session.input(idx) {
            Some(input) => input != InputKind::Meta && !input.is_command_line() && !input.is_command_output(),
            None => session.entries()[idx].kind() == Kind::Assistant,
        };
        if input.is_some() || (last.is_none() && spoken) {
            let mut entries = vec![idx];
            entries.append(&mut before);
            if let Some(last) = &mut last {
                entries.extend(last.take_next_entries(session));
                last.turn.continues_in_next = input.is_some_and(|input| !input.is_typed());
            }
            let previous = last.as_ref().map(|open| &open.turn);
            let round = round_after(session, previous, idx);
            let number = previous.map_or(1, |previous| previous.number + 1);
            let prompt = input.map(|_| idx);
            let opened = Turn { number, prompt, entries, round, continues_in_next: false };
            turns.extend(last.replace(OpenTurn::new(session, opened)).map(|open| open.turn));
        } else if let Some(open) = &mut last {
            open.push(session, idx);
        } else {
            before.push(idx);
        }
    }
    // The log contains no prompt and no reply, only local commands or injected text: they form one
    // turn.
    let mut last = last.map(|open| open.turn);
    if last.is_none() && before.iter().any(|&idx| session.input(idx).is_some()) {
        let round = Round::NewSession;
        last = Some(Turn { number: 1, prompt: None, entries: before, round, continues_in_next: false });
    }
    turns.extend(last);
    turns.iter_mut().for_each(|turn: &mut Turn| turn.entries.shrink_to_fit());
    turns
}

/// Returns the commands that Claude Code executed itself, without a reply of the model: `/model`,
/// `/cost`.
///
/// They open no turn. Claude Code does not count them either.
fn local_commands(session: &Session, entries: &[EntryIndex]) -> HashSet<EntryIndex> {
    let mut local = HashSet::default();
    let (mut answered, mut printed) = (false, false);
    for &idx in entries.iter().rev() {
        answered |= is_model_reply(session, idx);
        let Some(input) = session.input(idx) else { continue };
        printed |= input.is_command_output();
        if !input.opens_turn() {
            continue;
        }
        let is_system = session.entries()[idx].kind() == Kind::System;
        if input.is_command_line() && (is_system || (printed && !answered)) {
            local.insert(idx);
        } else {
            answered = false;
        }
        printed = false;
    }
    local
}

/// Returns whether an entry is editor context, images or documents without typed text, or is not input.
fn is_blank(session: &Session, idx: EntryIndex) -> bool {
    match session.entries()[idx].kind() {
        Kind::User => {
            session.input(idx).is_some_and(InputKind::is_typed) && has_no_typed_text(&session.entries()[idx])
        }
        Kind::Assistant => false,
        _ => session.input(idx).is_none(),
    }
}

/// Returns how the entry that opens a turn continues the previous turn.
fn round_after(session: &Session, before: Option<&Turn>, idx: EntryIndex) -> Round {
    let Some(before) = before else { return Round::NewSession };
    let last = before.entries.iter().filter_map(|&idx| session.timestamp(idx)).max();
    match (last, session.timestamp(idx)) {
        (Some(last), Some(now)) if now - last > RESUME_PAUSE => Round::Resume,
        _ => Round::NewRound,
    }
}

/// Returns whether an entry is part of a reply of the model.
fn is_model_reply(session: &Session, idx: EntryIndex) -> bool {
    session.reply_of(idx).is_some_and(|reply| !session.replies()[reply].is_synthetic())
}

/// Returns the turn number that Claude Code recorded on a line. `None` on lines that cannot open a turn.
fn recorded_turn_index(session: &Session, idx: EntryIndex) -> Option<u64> {
    let (entry, input) = (&session.entries()[idx], session.input(idx)?);
    let can_open = !input.is_command_output()
        && !matches!(input, InputKind::ToolResult | InputKind::CompactSummary)
        && entry.kind() == Kind::User;
    // Most inputs are tool results, whose text need not be read.
    can_open.then(|| entry.lens::<User<'_>>())??.turn_position()?.turn_index()
}

/// Returns whether an entry contains only editor context, images and documents, and no typed text.
fn has_no_typed_text(entry: &Entry) -> bool {
    let content = entry.message().and_then(|message| message.content());
    let is_context = |block: Block<'_>| block.text().is_some_and(|text| editor_context(&text).is_some());
    let is_wordless =
        |block: Block<'_>| is_context(block) || block.is(value::IMAGE) || block.is(value::DOCUMENT);
    content.is_some_and(|content| content.blocks().next().is_some() && content.blocks().all(is_wordless))
}

/// Returns whether a line belongs to the next turn: the caveat before a command, or a session start
/// hook.
fn belongs_to_next_turn(session: &Session, idx: EntryIndex) -> bool {
    let entry = &session.entries()[idx];
    let hook = match entry.kind() {
        Kind::User => {
            let text = || entry.message()?.content()?.as_str();
            return session.input(idx) == Some(InputKind::Meta)
                && text().is_some_and(|text| is_command_caveat(&text));
        }
        Kind::Progress => entry.lens::<Progress<'_>>().and_then(|line| line.data()?.hook_event()),
        Kind::Attachment => {
            entry.lens::<AttachmentLine<'_>>().and_then(|line| line.attachment()?.hook_event())
        }
        _ => None,
    };
    hook.is_some_and(|event| event == "SessionStart")
}

impl Turn {
    /// Returns the replies of the turn, each once, in order.
    pub fn replies(&self, session: &Session) -> Vec<ReplyIndex> {
        let mut replies: Vec<ReplyIndex> =
            self.entries.iter().filter_map(|&idx| session.reply_of(idx)).collect();
        replies.dedup();
        // The lines of a reply are nearly always contiguous.
        if !replies.is_sorted() {
            let mut seen = HashSet::default();
            replies.retain(|&reply| seen.insert(reply));
        }
        replies
    }

    /// Returns the tool calls of the turn, as indexes into [`Session::tool_calls`].
    pub fn tool_calls(&self, session: &Session) -> Vec<CallIndex> {
        // Not by the calls of its replies: a reply may have lines in very many turns.
        let mut calls: Vec<CallIndex> = self.entries.iter().flat_map(|&idx| session.calls_on(idx)).collect();
        calls.sort_unstable();
        calls.dedup();
        calls
    }

    /// Returns the entries without trailing local commands, which may have been typed hours after the turn.
    fn entries_without_local_commands(&self, session: &Session) -> &[EntryIndex] {
        let is_command = |&idx: &EntryIndex| {
            let is_command_line = session.input(idx).is_some_and(InputKind::is_command_line);
            Some(idx) != self.prompt && (is_command_line || belongs_to_next_turn(session, idx))
        };
        let answered =
            self.entries.iter().rposition(|&idx| session.reply_of(idx).is_some()).map_or(0, |at| at + 1);
        let commands = self.entries[answered..].iter().position(is_command);
        match commands.map(|at| answered + at) {
            Some(end) if end > 0 => &self.entries[..end],
            _ => &self.entries,
        }
    }

    /// Returns the time of the prompt and the time of the newest entry.
    pub fn span(&self, session: &Session) -> Option<(Millis, Millis)> {
        let entries = self.entries_without_local_commands(session);
        // Entries outside the tree may be written long after the turn.
        let has_tree_entry = entries.iter().any(|&idx| session.in_tree(idx));
        let of_tree = |idx: &&EntryIndex| session.in_tree(**idx) || !has_tree_entry;
        let times = || entries.iter().filter(of_tree).filter_map(|&idx| session.timestamp(idx));
        let start = self.prompt.and_then(|idx| session.timestamp(idx)).or_else(|| times().min())?;
        Some((start, times().max()?.max(start)))
    }

    /// Returns whether the model has not finished: it has not replied, or calls of its last reply await a
    /// result or a further reply.
    ///
    /// A turn that was interrupted is finished, and so is a command that Claude Code executed itself.
    pub fn is_open(&self, session: &Session) -> bool {
        if self.continues_in_next {
            return false;
        }
        let last_input = self.entries_without_local_commands(session).iter().rev().find_map(|&idx| {
            let said = session.reply_of(idx).is_some()
                || session.input(idx).is_some_and(|input| input != InputKind::Meta);
            said.then(|| session.input(idx))
        });
        if last_input.flatten().is_some_and(InputKind::ends_turn) {
            return false;
        }
        let Some(last) = self.replies(session).pop() else {
            return self.prompt.is_some();
        };
        // After a result, the model replies again. A denied or interrupted call ends the turn. The calls may
        // be on lines of a later turn, if a prompt was typed before them.
        let calls = session.replies()[last].calls.iter();
        calls.map(|&call| &session.tool_calls()[call]).any(|call| {
            matches!(call.outcome(session), ToolOutcome::Missing | ToolOutcome::Ok | ToolOutcome::Error)
        })
    }
}
