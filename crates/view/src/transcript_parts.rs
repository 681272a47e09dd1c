//! The parts of a transcript, built one at a time.

use std::vec;

use threadline_session::{Branch, IndexRange, IndexVec, Thread, Turn, TurnIndex};

use crate::finding_summary::FindingSummary;
use crate::transcript::{AgentView, BranchView, Transcript, TranscriptHeader, TurnView, anchor};
use crate::transcript_builder::TranscriptBuilder;
use crate::transcript_writer::TranscriptWriter;

/// A part of a transcript. Each part is complete. [`TranscriptParts`] yields them in the order of the
/// variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptPart {
    /// The facts about the session, its total cost, and the numbers of its turns and branches.
    Header(Box<TranscriptHeader>),
    /// The next turn of the conversation.
    Turn(Box<TurnView>),
    /// The next sub-agent that was not started by a call of the conversation or of a branch.
    Agent(Box<AgentView>),
    /// The next abandoned branch.
    Branch(BranchView),
    /// The problems of the log.
    Findings(FindingSummary),
}

impl TranscriptPart {
    /// Returns whether it contains turns.
    pub fn has_turns(&self) -> bool {
        match self {
            Self::Turn(_) => true,
            Self::Agent(agent) => !agent.turns.is_empty(),
            Self::Branch(branch) => !branch.turns.is_empty(),
            Self::Header(_) | Self::Findings(_) => false,
        }
    }
}

impl Transcript {
    /// Adds a part.
    pub fn add(&mut self, part: TranscriptPart) {
        match part {
            TranscriptPart::Header(header) => self.header = *header,
            TranscriptPart::Turn(turn) => self.turns.push(*turn),
            TranscriptPart::Branch(branch) => self.end.branches.push(branch),
            TranscriptPart::Agent(agent) => self.end.agents.push(*agent),
            TranscriptPart::Findings(findings) => self.end.findings = findings,
        }
    }
}

impl FromIterator<TranscriptPart> for Transcript {
    fn from_iter<I: IntoIterator<Item = TranscriptPart>>(parts: I) -> Self {
        let mut transcript = Self::default();
        parts.into_iter().for_each(|part| transcript.add(part));
        transcript
    }
}

/// Selects turns, given the number of a turn and the number of turns.
pub type TurnPredicate<'a> = &'a dyn Fn(usize, usize) -> bool;

/// Builds a transcript part by part, so that a large one is never in memory as a whole, and its first parts
/// can be rendered before the rest is built.
///
/// Collect the parts for a whole [`Transcript`].
pub struct TranscriptParts<'a> {
    writer: TranscriptWriter<'a>,
    wanted: Option<TurnPredicate<'a>>,
    /// The conversation, until the header is yielded.
    thread: Option<Thread>,
    turns: IndexVec<TurnIndex, Turn>,
    /// The index of the turn to build next.
    next_turn: TurnIndex,
    branches: vec::IntoIter<Branch>,
    /// The unattached sub-agents. `None` until the turns are built, which shows which they are.
    agents: Option<vec::IntoIter<AgentView>>,
    wants_findings: bool,
}

impl<'a> TranscriptParts<'a> {
    /// Starts before the header. With `wanted`, only the turns that it accepts are built, and no branches and
    /// unattached sub-agents.
    pub(crate) fn new(builder: TranscriptBuilder<'a>, wanted: Option<TurnPredicate<'a>>) -> Self {
        let writer = TranscriptWriter::new(builder, None);
        let thread = writer.thread();
        Self {
            turns: builder.family.main.turns_of(&thread),
            thread: Some(thread),
            next_turn: TurnIndex::FIRST,
            branches: Vec::new().into_iter(),
            agents: wanted.is_some().then(|| Vec::new().into_iter()),
            wants_findings: true,
            writer,
            wanted,
        }
    }

    /// Returns the header, which is not yielded then. `None` if it was yielded or returned before.
    pub fn take_header(&mut self) -> Option<TranscriptHeader> {
        let thread = self.thread.take()?;
        let session = self.writer.session();
        let branches = session.branches_outside(&thread);
        let mut spans = self.turns.iter().filter_map(|turn| turn.span(session));
        let span = spans.next().map(|(start, end)| (start, spans.next_back().map_or(end, |(_, end)| end)));
        let (n_turns, n_branches) = (self.turns.len(), branches.len());
        if self.wanted.is_none() {
            self.branches = branches.into_iter();
        }
        Some(TranscriptHeader { span, n_turns, n_branches, ..self.writer.builder.header() })
    }

    /// Returns the number of turns of the conversation.
    pub fn n_turns(&self) -> usize {
        self.turns.len()
    }

    /// Leaves out the findings, which take the longest to compute.
    #[must_use]
    pub fn without_findings(self) -> Self {
        Self { wants_findings: false, ..self }
    }

    /// Builds the next turn that is wanted.
    fn next_turn(&mut self) -> Option<TurnView> {
        let count = self.turns.len();
        let is_wanted =
            |&turn: &TurnIndex| self.wanted.is_none_or(|wanted| wanted(self.turns[turn].number, count));
        let found = (self.next_turn..self.turns.end()).indices().find(is_wanted);
        self.next_turn = found.map_or(self.turns.end(), TurnIndex::next);
        let turn = found?;
        let previous = turn.previous().map(|previous| &self.turns[previous]);
        Some(self.writer.turn(&self.turns[turn], previous))
    }

    fn next_branch(&mut self) -> Option<BranchView> {
        let Branch { fork, entries } = self.branches.next()?;
        let session = self.writer.session();
        Some(BranchView {
            fork: fork.map(|idx| anchor(session.entries()[idx].at().line_no, 0)),
            turns: self.writer.turns_of(&Thread { leaf: entries.last().copied(), entries }),
        })
    }

    fn next_agent(&mut self) -> Option<AgentView> {
        let writer = &self.writer;
        let agents = self.agents.get_or_insert_with(|| {
            if !writer.builder.family.agents.is_empty() {
                // The branches follow, so their sub-agents are not built yet.
                self.branches.as_slice().iter().for_each(|branch| writer.visit_agents_of(&branch.entries));
            }
            writer.unattached_agents(&|agent| writer.agent(agent)).into_iter()
        });
        agents.next()
    }
}

impl Iterator for TranscriptParts<'_> {
    type Item = TranscriptPart;

    fn next(&mut self) -> Option<TranscriptPart> {
        if let Some(header) = self.take_header() {
            return Some(TranscriptPart::Header(Box::new(header)));
        }
        if let Some(turn) = self.next_turn() {
            return Some(TranscriptPart::Turn(Box::new(turn)));
        }
        if let Some(agent) = self.next_agent() {
            return Some(TranscriptPart::Agent(Box::new(agent)));
        }
        if let Some(branch) = self.next_branch() {
            return Some(TranscriptPart::Branch(branch));
        }
        let wants_findings = std::mem::take(&mut self.wants_findings);
        wants_findings.then(|| TranscriptPart::Findings(FindingSummary::of(&self.writer.builder.family.main)))
    }
}
