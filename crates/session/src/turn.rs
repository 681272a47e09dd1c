//! Turns: a prompt and everything the model did before the next one.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_entry::lens::{AttachmentLine, Block, Progress, User};
use threadline_entry::{Kind, Millis};

use crate::input::{Input, editor_context, is_caution};
use crate::session::{Parent, Session};
use crate::thread::Thread;
use crate::tool_call::Outcome;

/// A prompt, and everything the model did before the next one.
///
/// Tool results arrive with the role `user` too, but they answer the model rather than ask it, so
/// they belong to the turn already open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Counted from 1.
    pub number: usize,
    /// The entry that opened it; `None` for what stands before the first prompt.
    pub prompt: Option<usize>,
    /// All its entries, the prompt first, or what the editor says for it.
    pub entries: Vec<usize>,
    /// How it came about.
    pub round: Round,
    /// Whether the model went on in the next turn: something came in while it worked that nobody typed.
    pub goes_on: bool,
}

/// How a user entry continues the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// The first prompt of a session.
    NewSession,
    /// A tool result: the same round goes on.
    Continue,
    /// A new prompt.
    NewRound,
    /// A new prompt after a long silence.
    Resume,
}

/// A silence this long before a prompt means that somebody came back.
const LONG_SILENCE: Millis = 5 * 60 * 1000;

impl Round {
    /// The word for it, as our JSON has it.
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
    /// The turns of the active conversation.
    pub fn turns(&self) -> Vec<Turn> {
        self.turns_of(&self.thread())
    }

    /// The turns of a conversation.
    pub fn turns_of(&self, thread: &Thread) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        // Hooks, attachments and what Claude Code puts in before the first prompt go to its turn.
        let mut before = Vec::new();
        let ordered = self.parents_first(&thread.entries);
        let local = self.local_commands(&ordered);
        // Claude Code's own number of the turn, where it writes one.
        let mut own_number = None;
        for &idx in &*ordered {
            let mut input =
                self.input(idx).filter(|input| input.opens_turn()).filter(|_| !local.contains(&idx));
            if let Some(number) = self.turn_index(idx) {
                match own_number {
                    Some(before) if number == before => input = None,
                    Some(before) if number > before => input = input.or(self.input(idx)),
                    _ => {}
                }
                own_number = Some(number);
            }
            // What the editor says, pictures and words of tasks may come on lines of their own before the prompt.
            let waiting =
                turns.last_mut().filter(|turn| input.is_some_and(|input| self.waits_for(turn, input)));
            if let Some(turn) = waiting {
                (turn.prompt, input) = (Some(idx), None);
            }
            let spoken = match self.input(idx) {
                Some(input) => input != Input::Meta && !input.is_command_line() && !input.is_command_output(),
                None => self.entries()[idx].kind() == Kind::Assistant,
            };
            if input.is_some() || (turns.is_empty() && spoken) {
                let mut entries = vec![idx];
                entries.append(&mut before);
                // So does the word of caution that Claude Code puts before a command, and what starts a session anew.
                if let Some(last) = turns.last_mut() {
                    let spared = last.entries.iter().rev().take_while(|&&idx| self.is_ahead(idx)).count();
                    entries.extend(last.entries.split_off(last.entries.len() - spared));
                }
                let round = self.round_after(turns.last(), idx);
                if let Some(last) = turns.last_mut() {
                    last.goes_on = input.is_some_and(|input| !input.is_typed());
                }
                let (number, prompt) = (turns.len() + 1, input.map(|_| idx));
                turns.push(Turn { number, prompt, entries, round, goes_on: false });
            } else {
                turns.last_mut().map_or(&mut before, |turn| &mut turn.entries).push(idx);
            }
        }
        // Where nothing else was said, that is all there is.
        if turns.is_empty() && before.iter().any(|&idx| self.input(idx).is_some()) {
            let round = Round::NewSession;
            turns.push(Turn { number: 1, prompt: None, entries: before, round, goes_on: false });
        }
        turns
    }

    /// Entries in file order, but each behind its parent: 2.1.300 may write a reply before its prompt.
    fn parents_first<'e>(&self, entries: &'e [usize]) -> Cow<'e, [usize]> {
        let parent = |idx: usize| match self.parent(idx) {
            Parent::Entry(parent) => Some(parent),
            Parent::Root | Parent::Dangling => None,
        };
        if entries.iter().all(|&idx| parent(idx).is_none_or(|parent| parent < idx)) {
            return Cow::Borrowed(entries);
        }
        let mut pending: FxHashSet<usize> = entries.iter().copied().collect();
        let mut waiting: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
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

    /// Claude Code's own number of the turn that a line is part of. Lines that cannot begin a turn may carry it, too.
    fn turn_index(&self, idx: usize) -> Option<u64> {
        let can_open = |input: Input| {
            !input.is_command_output() && !matches!(input, Input::ToolResult | Input::CompactSummary)
        };
        self.input(idx).filter(|&input| self.entries()[idx].kind() == Kind::User && can_open(input))?;
        self.entries()[idx].lens::<User<'_>>()?.turn_position()?.turn_index()
    }

    /// The commands that Claude Code carried out by itself, so that no model answered: `/model`, `/cost`. They open no
    /// turn, and Claude Code does not count them either.
    fn local_commands(&self, entries: &[usize]) -> FxHashSet<usize> {
        let mut local = FxHashSet::default();
        let (mut answered, mut printed) = (false, false);
        for &idx in entries.iter().rev() {
            let reply = self.reply_of(idx).map(|reply| &self.replies()[reply]);
            answered |= reply.is_some_and(|reply| !reply.is_synthetic());
            let Some(input) = self.input(idx) else { continue };
            printed |= input.is_command_output();
            if !input.opens_turn() {
                continue;
            }
            let is_system = self.entries()[idx].kind() == Kind::System;
            if input.is_command_line() && (is_system || (printed && !answered)) {
                local.insert(idx);
            } else {
                answered = false;
            }
            printed = false;
        }
        local
    }

    /// Whether an entry of this kind goes on with a turn in which nobody typed a word and no model answered.
    fn waits_for(&self, turn: &Turn, input: Input) -> bool {
        let is_notification = |idx: usize| self.input(idx).is_some_and(Input::is_task_notification);
        if turn.prompt.is_some_and(is_notification) {
            let is_answer =
                |idx: &usize| self.reply_of(*idx).is_some_and(|reply| !self.replies()[reply].is_synthetic());
            return !turn.entries.iter().any(is_answer);
        }
        let is_blank = |idx: &usize| match self.entries()[*idx].kind() {
            Kind::User => self.input(*idx).is_some_and(Input::is_typed) && self.is_wordless(*idx),
            Kind::Assistant => false,
            _ => self.input(*idx).is_none(),
        };
        input.is_typed() && turn.entries.iter().all(is_blank)
    }

    /// Whether nobody typed anything beside what the editor says, and pictures.
    fn is_wordless(&self, idx: usize) -> bool {
        let content = self.entries()[idx].message().and_then(|message| message.content());
        let is_context = |block: Block<'_>| block.text().is_some_and(|text| editor_context(&text).is_some());
        let is_wordless = |block: Block<'_>| is_context(block) || block.is("image") || block.is("document");
        content.is_some_and(|content| content.blocks().next().is_some() && content.blocks().all(is_wordless))
    }

    /// Whether a line is about what comes next: the word of caution before a command, or a hook that runs as a session starts.
    fn is_ahead(&self, idx: usize) -> bool {
        let entry = &self.entries()[idx];
        let hook = match entry.kind() {
            Kind::User => {
                let text = || entry.message()?.content()?.as_str();
                return self.input(idx) == Some(Input::Meta) && text().is_some_and(|text| is_caution(&text));
            }
            Kind::Progress => entry.lens::<Progress<'_>>().and_then(|line| line.data()?.hook_event()),
            Kind::Attachment => {
                entry.lens::<AttachmentLine<'_>>().and_then(|line| line.attachment()?.hook_event())
            }
            _ => None,
        };
        hook.is_some_and(|event| event == "SessionStart")
    }

    /// How the entry that opens a turn continues the turn before.
    fn round_after(&self, before: Option<&Turn>, idx: usize) -> Round {
        let Some(before) = before else { return Round::NewSession };
        let last = before.entries.iter().filter_map(|&idx| self.timestamp(idx)).max();
        match (last, self.timestamp(idx)) {
            (Some(last), Some(now)) if now - last > LONG_SILENCE => Round::Resume,
            _ => Round::NewRound,
        }
    }

    /// The round that any user entry of a turn belongs to.
    pub fn round(&self, turn: &Turn, entry_idx: usize) -> Round {
        if turn.prompt == Some(entry_idx) { turn.round } else { Round::Continue }
    }
}

impl Turn {
    /// The replies in it, each once, in order.
    pub fn replies(&self, session: &Session) -> Vec<usize> {
        let mut replies: Vec<usize> = self.entries.iter().filter_map(|&idx| session.reply_of(idx)).collect();
        replies.dedup();
        // The lines of a reply nearly always follow each other.
        if !replies.is_sorted() {
            let mut seen = FxHashSet::default();
            replies.retain(|&reply| seen.insert(reply));
        }
        replies
    }

    /// The tool calls in it, by their place in [`Session::tool_calls`].
    pub fn tool_calls(&self, session: &Session) -> Vec<usize> {
        let mut own = self.entries.clone();
        own.sort_unstable();
        let replies = self.replies(session).into_iter();
        let mut calls: Vec<usize> =
            replies.flat_map(|reply| session.replies()[reply].calls.iter().copied()).collect();
        calls.retain(|&call| session.tool_calls()[call].lines().any(|line| own.binary_search(&line).is_ok()));
        calls.sort_unstable();
        calls
    }

    /// Its entries without the commands at its end that Claude Code carried out by itself: they may come hours later.
    fn answered_entries(&self, session: &Session) -> &[usize] {
        let is_command = |&idx: &usize| {
            let is_command_line = session.input(idx).is_some_and(Input::is_command_line);
            Some(idx) != self.prompt && (is_command_line || session.is_ahead(idx))
        };
        let answered =
            self.entries.iter().rposition(|&idx| session.reply_of(idx).is_some()).map_or(0, |at| at + 1);
        let commands = self.entries[answered..].iter().position(is_command);
        match commands.map(|at| answered + at) {
            Some(end) if end > 0 => &self.entries[..end],
            _ => &self.entries,
        }
    }

    /// When it began and when its newest entry was made.
    pub fn span(&self, session: &Session) -> Option<(Millis, Millis)> {
        let entries = self.answered_entries(session);
        // What stands beside the conversation may be written long after it.
        let of_tree =
            |idx: &&usize| session.in_tree(**idx) || !entries.iter().any(|&idx| session.in_tree(idx));
        let times = || entries.iter().filter(of_tree).filter_map(|&idx| session.timestamp(idx));
        let start = self.prompt.and_then(|idx| session.timestamp(idx)).or_else(|| times().min())?;
        Some((start, times().max()?.max(start)))
    }

    /// Whether the model has not finished: nothing was answered yet, or a call has no result.
    ///
    /// What the person stopped is finished, and so is a command that Claude Code carried out by itself.
    pub fn is_open(&self, session: &Session) -> bool {
        if self.goes_on {
            return false;
        }
        let last_input = self.answered_entries(session).iter().rev().find_map(|&idx| {
            let said = session.reply_of(idx).is_some()
                || session.input(idx).is_some_and(|input| input != Input::Meta);
            said.then(|| session.input(idx))
        });
        if last_input.flatten().is_some_and(Input::ends_turn) {
            return false;
        }
        let Some(last) = self.replies(session).into_iter().map(|reply| &session.replies()[reply]).next_back()
        else {
            return self.prompt.is_some();
        };
        // A call that was answered waits for the next reply; one that was denied or stopped ends the turn.
        last.calls
            .iter()
            .map(|&call| &session.tool_calls()[call])
            .any(|call| matches!(call.outcome(session), Outcome::Missing | Outcome::Ok | Outcome::Error))
    }
}
