//! Builds transcripts: a whole conversation at once, turn by turn, or part by part.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use threadline_entry::{Finding, Severity, key};
use threadline_session::{Branch, InputKind, Session, SessionFamily, Thread, editor_context};

use crate::card::tag_text;
use crate::outline::text_title;
use crate::spending::Spending;
use crate::transcript::{BranchView, Transcript, TranscriptItem, TurnView, anchor};
use crate::transcript_writer::{TranscriptWriter, strip_tags};

/// Reads output that Claude Code saved to a separate file, given the path in the log.
///
/// Returns `None` if the file cannot be read.
pub type OutputReader<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The inputs of a transcript, with methods that build it.
#[derive(Clone, Copy)]
pub struct TranscriptBuilder<'a> {
    /// The session and its sub-agents.
    pub family: &'a SessionFamily,
    /// Reads output that was saved to a separate file.
    pub read_output: OutputReader<'a>,
    /// The cost of the calls; without it, every `spent` field stays empty.
    pub spending: Option<&'a Spending>,
}

/// Returns the transcript of a session, without costs. See [`TranscriptBuilder::transcript`].
pub fn transcript(family: &SessionFamily, kept: OutputReader<'_>) -> Transcript {
    TranscriptBuilder { family, read_output: kept, spending: None }.transcript()
}

/// A part of a conversation, as [`TranscriptBuilder::each_part`] emits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptPart {
    /// Consecutive items of the turn that is emitted next.
    Items(Vec<TranscriptItem>),
    /// The turn that contains the preceding items; its own `items` are empty.
    Turn(Box<TurnView>),
}

/// Collects the items of a turn until the turn itself arrives.
#[derive(Default)]
pub(crate) struct TurnCollector(Vec<TranscriptItem>);

impl TurnCollector {
    /// Adds the next part. Returns the completed turn, with its items, when `part` ends one.
    pub(crate) fn add(&mut self, part: TranscriptPart) -> Option<TurnView> {
        match part {
            TranscriptPart::Items(items) => {
                self.0.extend(items);
                None
            }
            TranscriptPart::Turn(turn) => {
                // Most branches are short, and a log may have very many of them.
                let mut items = std::mem::take(&mut self.0);
                items.shrink_to_fit();
                Some(TurnView { items, ..*turn })
            }
        }
    }
}

impl<'a> TranscriptBuilder<'a> {
    /// Creates a builder that reads no files and reports no cost.
    pub fn new(family: &'a SessionFamily) -> Self {
        Self { family, read_output: &|_| None, spending: None }
    }

    /// Returns the transcript of the session, with each sub-agent nested in the call that started it.
    pub fn transcript(self) -> Transcript {
        let (mut turns, mut gathered) = (Vec::new(), TurnCollector::default());
        let told = self.each_part(&mut |part| turns.extend(gathered.add(part)));
        Transcript { turns, ..told }
    }

    /// Returns the facts about the session and its total cost, without any turns.
    pub fn header(self) -> Transcript {
        let session = &self.family.main;
        Transcript {
            spent: self.spending.map(|spending| spending.total().clone()).unwrap_or_default(),
            ..session_facts(session)
        }
    }

    /// Emits a conversation part by part, so that a large one is not in memory twice and the first parts
    /// can be rendered while the rest are built.
    ///
    /// Returns the transcript without its turns.
    pub fn each_part(self, sink: &mut dyn FnMut(TranscriptPart)) -> Transcript {
        let told = self.each_wanted_part(&|_, _| true, &mut |_, part| {
            sink(part);
            ControlFlow::Continue(())
        });
        Transcript { findings: findings(&self.family.main), ..told }
    }

    /// Returns the number of the turn that contains a line of the log, or `None` if the line is not part of
    /// the active conversation.
    pub fn turn_of_line(self, line_no: u64) -> Option<usize> {
        let session = &self.family.main;
        let met = RefCell::default();
        let teller = TranscriptWriter { builder: self, agent: None, depth: 0, visited: &met };
        let is_there = |&idx: &usize| session.entries()[idx].at().line_no == line_no;
        let turns = session.turns_of(&teller.thread());
        turns.iter().find(|turn| turn.entries.iter().any(&is_there)).map(|turn| turn.number)
    }

    /// Emits the turns that `wanted` accepts, given a turn's number and the number of turns, until `sink`
    /// breaks.
    ///
    /// After a break, branches and unattached sub-agents are not built either. The findings, which take the
    /// longest to compute, are left empty: call [`findings`].
    pub fn each_wanted_turn(
        self,
        wanted: &dyn Fn(usize, usize) -> bool,
        sink: &mut dyn FnMut(&Transcript, TurnView) -> ControlFlow<()>,
    ) -> Transcript {
        let mut gathered = TurnCollector::default();
        self.each_wanted_part(wanted, &mut |told, part| match gathered.add(part) {
            Some(turn) => sink(told, turn),
            None => ControlFlow::Continue(()),
        })
    }

    /// Emits the turns that `wanted` accepts, given a turn's number and the number of turns. Builds nothing
    /// else.
    pub fn each_turn(self, wanted: &dyn Fn(usize, usize) -> bool, sink: &mut dyn FnMut(TurnView)) {
        let met = RefCell::default();
        let teller = TranscriptWriter { builder: self, agent: None, depth: 0, visited: &met };
        let turns = self.family.main.turns_of(&teller.thread());
        let mut gathered = TurnCollector::default();
        teller.each_part_of(&turns, wanted, &mut |part| gathered.add(part).into_iter().for_each(&mut *sink));
    }

    fn each_wanted_part(
        self,
        wanted: &dyn Fn(usize, usize) -> bool,
        sink: &mut dyn FnMut(&Transcript, TranscriptPart) -> ControlFlow<()>,
    ) -> Transcript {
        let session = &self.family.main;
        let met = RefCell::default();
        let teller = TranscriptWriter { builder: self, agent: None, depth: 0, visited: &met };
        let thread = teller.thread();
        let turns = session.turns_of(&thread);
        let branches = session.branches_outside(&thread);
        let mut told = self.header();
        (told.n_turns, told.n_branches) = (turns.len(), branches.len());
        let mut spans = turns.iter().filter_map(|turn| turn.span(session));
        told.span = spans.next().map(|(start, end)| (start, spans.next_back().map_or(end, |(_, end)| end)));
        let ended = Cell::new(false);
        let wanted = |number: usize, count: usize| !ended.get() && wanted(number, count);
        teller.each_part_of(&turns, &wanted, &mut |part| ended.set(sink(&told, part).is_break()));
        if ended.get() {
            return told;
        }
        let branch = |branch: Branch| BranchView {
            fork: branch.fork.map(|idx| anchor(session.entries()[idx].at().line_no, 0)),
            turns: teller.turns_of(&Thread { leaf: branch.entries.last().copied(), entries: branch.entries }),
        };
        told.branches = branches.into_iter().map(branch).collect();
        told.agents = teller.unattached_agents(&|agent| teller.agent(agent));
        told
    }
}

/// Returns the facts about a session that do not depend on its turns: id, title, first prompt, directory,
/// branch and version.
pub(crate) fn session_facts(session: &Session) -> Transcript {
    let last = |key: &str| {
        let found = session.entries().iter().rev().find_map(|entry| entry.get(key)?.as_str());
        found.filter(|text| !text.is_empty()).map(Cow::into_owned)
    };
    let typed = |entries: &[usize], wanted: &dyn Fn(InputKind) -> bool| {
        entries.iter().find_map(|&idx| {
            let input = session.input(idx).filter(|input| wanted(*input))?;
            let content = session.entries()[idx].message()?.content()?;
            let mut texts = content.blocks().filter_map(|block| block.text());
            let text = content.as_str().or_else(|| texts.find(|text| editor_context(text).is_none()))?;
            let text = strip_tags(input, text.into_owned());
            Some(text_title(&text).to_owned()).filter(|line| !line.is_empty())
        })
    };
    let prompt = |input: InputKind| input == InputKind::Prompt || input.is_from_editor();
    let command = |input: InputKind| input == InputKind::SlashCommand;
    let message = |input: InputKind| input == InputKind::TeammateMessage;
    let thread = session.thread().entries;
    let said = |wanted: &dyn Fn(InputKind) -> bool| typed(&thread, wanted);
    let began = opening_command(session, &thread).and_then(|idx| typed(&[idx], &command));
    // A session with only commands is named after the first one; a teammate's session after its first
    // message.
    let said = began.or_else(|| said(&prompt)).or_else(|| said(&command)).or_else(|| said(&message));
    Transcript {
        id: session.id().map(Cow::into_owned),
        title: session.title().map(Cow::into_owned),
        first_prompt: said.or_else(|| typed(&(0..session.entries().len()).collect::<Vec<_>>(), &prompt)),
        cwd: session.entries().iter().find_map(|entry| entry.cwd()).map(Cow::into_owned),
        git_branch: last(key::GIT_BRANCH),
        version: last("version"),
        ..Transcript::default()
    }
}

/// Returns the slash command that a conversation begins with, if it has arguments and the model replied to
/// it before any prompt was typed.
fn opening_command(session: &Session, thread: &[usize]) -> Option<usize> {
    let has_words = |idx: usize| {
        let text = || session.entries()[idx].message()?.content()?.as_str();
        text().is_some_and(|text| tag_text(&text, "command-args").is_some_and(|words| !words.is_empty()))
    };
    let mut command = None;
    for &idx in thread {
        match session.input(idx) {
            Some(InputKind::SlashCommand) => command = Some(idx).filter(|&idx| has_words(idx)),
            // Claude Code handled the command locally.
            Some(InputKind::CommandOutput) => command = None,
            Some(input) if input.opens_turn() && input != InputKind::BashInput => return None,
            _ => {}
        }
        let reply = session.reply_of(idx).map(|reply| &session.replies()[reply]);
        if command.is_some() && reply.is_some_and(|reply| !reply.is_synthetic()) {
            return command;
        }
    }
    None
}

/// Returns the problems of a log, without notes. Secrets are not searched for: they are no defect of the
/// log, and the search would take longer than everything else.
pub fn findings(session: &Session) -> Vec<Finding> {
    let mut findings = session.faults();
    findings.retain(|finding| finding.severity > Severity::Note);
    findings
}
