//! The parts of a transcript, built one at a time.

use std::vec;

use threadline_session::{Branch, IndexRange, IndexVec, Session, Thread, Turn, TurnIndex};

use crate::finding_summary::FindingSummary;
use crate::outline::TurnTitle;
use crate::transcript::{
    AgentView, BranchView, ItemBody, Transcript, TranscriptHeader, TranscriptItem, TurnView, anchor,
};
use crate::transcript_builder::TranscriptBuilder;
use crate::transcript_writer::{TranscriptWriter, WriterState};

/// A part of a transcript. Each part is complete. [`TranscriptParts`] yields them in the order of the
/// variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptPart {
    /// The facts about the session, its total cost, and the numbers of its turns and branches.
    Header(Box<TranscriptHeader>),
    /// The next turn of the conversation.
    Turn(Box<TurnView>),
    /// Further items of that turn. Only with [`TranscriptParts::with_split_turns`].
    MoreItems(Vec<TranscriptItem>),
    /// The next sub-agent that was not started by a call of the conversation or of a branch.
    Agent(Box<AgentView>),
    /// The next abandoned branch.
    Branch(BranchView),
    /// The problems of the log.
    Findings(FindingSummary),
}

impl Transcript {
    /// Adds a part.
    pub fn add(&mut self, part: TranscriptPart) {
        match part {
            TranscriptPart::Header(header) => self.header = *header,
            TranscriptPart::Turn(turn) => self.turns.push(*turn),
            TranscriptPart::MoreItems(items) => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.items.extend(items);
                }
            }
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
    /// The header, until it is yielded.
    header: Option<Box<TranscriptHeader>>,
    turns: TurnViews<'a>,
    branches: vec::IntoIter<Branch>,
    /// The unattached sub-agents. `None` until the turns are built, which shows which they are.
    agents: Option<vec::IntoIter<AgentView>>,
    wants_findings: bool,
}

impl<'a> TranscriptParts<'a> {
    pub(crate) fn new(builder: TranscriptBuilder<'a>, wanted: Option<TurnPredicate<'a>>) -> Self {
        let session = &builder.family.main;
        let state = WriterState::default();
        let thread = TranscriptWriter::new(builder, None, &state).thread();
        let turns = session.turns_of(&thread);
        let branches = session.branches_outside(&thread);
        let mut spans = turns.iter().filter_map(|turn| turn.span(session));
        let span = spans.next().map(|(start, end)| (start, spans.next_back().map_or(end, |(_, end)| end)));
        let header =
            TranscriptHeader { span, n_turns: turns.len(), n_branches: branches.len(), ..builder.header() };
        let is_whole = wanted.is_none();
        Self {
            header: Some(Box::new(header)),
            turns: TurnViews { builder, state, cursor: TurnCursor::new(turns, wanted) },
            branches: if is_whole { branches } else { Vec::new() }.into_iter(),
            agents: (!is_whole).then(|| Vec::new().into_iter()),
            wants_findings: true,
        }
    }

    /// Returns the header, which is not yielded then. `None` if it was yielded or returned before.
    pub fn take_header(&mut self) -> Option<TranscriptHeader> {
        self.header.take().map(|header| *header)
    }

    /// Leaves out the findings, which take the longest to compute.
    #[must_use]
    pub fn without_findings(self) -> Self {
        Self { wants_findings: false, ..self }
    }

    /// Splits turns with very many items.
    ///
    /// Without sub-agents, the totals of a turn are known before its items, and only one part of it is in
    /// memory. Otherwise a turn is built as a whole first.
    #[must_use]
    pub fn with_split_turns(mut self) -> Self {
        self.turns.split_turns();
        self
    }

    /// Returns the items of the next line of a turn before the turn is complete. They are then missing in the
    /// turn itself. `None` if the next part is not a turn, or all items of the turn were returned.
    ///
    /// A large turn can thus be rendered while it is built.
    pub fn next_items(&mut self) -> Option<Vec<TranscriptItem>> {
        if self.header.is_some() {
            return None;
        }
        let TurnViews { builder, state, cursor } = &mut self.turns;
        cursor.next_items(&TranscriptWriter::new(*builder, None, state))
    }

    fn next_branch(&mut self) -> Option<BranchView> {
        let TurnViews { builder, state, .. } = &self.turns;
        let Branch { fork, entries } = self.branches.next()?;
        let session = &builder.family.main;
        let writer = TranscriptWriter::new(*builder, None, state);
        Some(BranchView {
            fork: fork.map(|idx| anchor(session.entries()[idx].at().line_no, 0)),
            turns: writer.turns_of(&Thread { leaf: entries.last().copied(), entries }),
        })
    }

    fn next_agent(&mut self) -> Option<AgentView> {
        let TurnViews { builder, state, .. } = &self.turns;
        let agents = self.agents.get_or_insert_with(|| {
            let writer = TranscriptWriter::new(*builder, None, state);
            if !builder.family.agents.is_empty() {
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
        if let Some(header) = self.header.take() {
            return Some(TranscriptPart::Header(header));
        }
        if let Some(turn) = self.turns.next_part() {
            return Some(turn);
        }
        if let Some(agent) = self.next_agent() {
            return Some(TranscriptPart::Agent(Box::new(agent)));
        }
        if let Some(branch) = self.next_branch() {
            return Some(TranscriptPart::Branch(branch));
        }
        let wants_findings = std::mem::take(&mut self.wants_findings);
        wants_findings.then(|| TranscriptPart::Findings(FindingSummary::of(&self.turns.builder.family.main)))
    }
}

/// Builds the turns of a conversation one at a time, and nothing else.
pub struct TurnViews<'a> {
    builder: TranscriptBuilder<'a>,
    state: WriterState,
    cursor: TurnCursor<'a>,
}

impl<'a> TurnViews<'a> {
    pub(crate) fn new(builder: TranscriptBuilder<'a>, wanted: TurnPredicate<'a>) -> Self {
        let state = WriterState::default();
        let turns = builder.family.main.turns_of(&TranscriptWriter::new(builder, None, &state).thread());
        Self { builder, state, cursor: TurnCursor::new(turns, Some(wanted)) }
    }
}

impl TurnViews<'_> {
    /// Splits turns with very many items, as [`TranscriptParts::with_split_turns`] does.
    pub fn split(mut self) -> impl Iterator<Item = TranscriptPart> {
        self.split_turns();
        std::iter::from_fn(move || self.next_part())
    }

    fn split_turns(&mut self) {
        self.cursor.split_mode = match self.builder.family.agents.is_empty() {
            true => SplitMode::WhileBuilding,
            false => SplitMode::AfterBuilding,
        };
    }

    fn next_part(&mut self) -> Option<TranscriptPart> {
        self.cursor.next_part(&TranscriptWriter::new(self.builder, None, &self.state))
    }
}

impl Iterator for TurnViews<'_> {
    type Item = TurnView;

    fn next(&mut self) -> Option<TurnView> {
        self.cursor.next_turn(&TranscriptWriter::new(self.builder, None, &self.state))
    }
}

/// A position in the turns of a conversation, up to which they are built.
pub(crate) struct TurnCursor<'a> {
    turns: IndexVec<TurnIndex, Turn>,
    wanted: Option<TurnPredicate<'a>>,
    /// The index of the turn to open next.
    next_turn: TurnIndex,
    open: Option<OpenTurn>,
    split_mode: SplitMode,
    /// Items of the last turn that were not yielded yet, with [`SplitMode::AfterBuilding`].
    rest: vec::IntoIter<TranscriptItem>,
}

/// When turns with more items than [`MAX_ITEMS`] are split.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SplitMode {
    Never,
    WhileBuilding,
    AfterBuilding,
}

/// The number of items after which a turn is split.
const MAX_ITEMS: usize = 1000;

/// A turn under construction.
struct OpenTurn {
    /// Its index.
    turn: TurnIndex,
    /// The position in its entries of the next one to build.
    next_entry: usize,
    /// The next block of that entry to build.
    next_block: usize,
    /// Whether a part of the turn was yielded.
    is_split: bool,
    title: TurnTitle,
    /// The turn as far as it is built.
    view: TurnView,
}

/// Returns whether no more items are added to a part of a turn.
fn is_full_part(items: &[TranscriptItem]) -> bool {
    // Renderers count consecutive thinking blocks without text.
    let is_counted =
        |item: &TranscriptItem| matches!(&item.body, ItemBody::Thinking(text) if text.is_empty());
    items.len() >= MAX_ITEMS && !items.last().is_some_and(is_counted)
}

impl<'a> TurnCursor<'a> {
    /// Starts before the first of the turns that `wanted` accepts; without it, of all turns.
    pub(crate) fn new(turns: IndexVec<TurnIndex, Turn>, wanted: Option<TurnPredicate<'a>>) -> Self {
        Self {
            turns,
            wanted,
            next_turn: TurnIndex::FIRST,
            open: None,
            split_mode: SplitMode::Never,
            rest: Vec::new().into_iter(),
        }
    }

    /// Builds the rest of the open turn, or else the next turn.
    pub(crate) fn next_turn(&mut self, writer: &TranscriptWriter<'_>) -> Option<TurnView> {
        while let Some(items) = self.next_items(writer) {
            if let Some(open) = &mut self.open {
                open.view.items.extend(items);
            }
        }
        let mut view = self.open.take()?.view;
        view.spent += &view.spent_by_agents;
        // Most turns of branches are short, and a log may have very many of them.
        view.items.shrink_to_fit();
        Some(view)
    }

    /// Builds the rest of the open turn, or else the next turn; only the next part of it if turns are split.
    fn next_part(&mut self, writer: &TranscriptWriter<'_>) -> Option<TranscriptPart> {
        match self.split_mode {
            SplitMode::Never => return Some(TranscriptPart::Turn(Box::new(self.next_turn(writer)?))),
            SplitMode::WhileBuilding => {}
            SplitMode::AfterBuilding => {
                if let Some(items) = self.next_rest() {
                    return Some(TranscriptPart::MoreItems(items));
                }
                let mut turn = self.next_turn(writer)?;
                self.rest = std::mem::take(&mut turn.items).into_iter();
                turn.items = self.next_rest().unwrap_or_default();
                return Some(TranscriptPart::Turn(Box::new(turn)));
            }
        }
        while let Some(items) = self.next_items(writer) {
            let Some(open) = &mut self.open else { continue };
            open.view.items.extend(items);
            if is_full_part(&open.view.items) {
                let items = std::mem::take(&mut open.view.items);
                if std::mem::replace(&mut open.is_split, true) {
                    return Some(TranscriptPart::MoreItems(items));
                }
                return Some(TranscriptPart::Turn(Box::new(TurnView { items, ..open.view.clone() })));
            }
        }
        let OpenTurn { is_split, view, .. } = self.open.take()?;
        Some(match is_split {
            true => TranscriptPart::MoreItems(view.items),
            false => TranscriptPart::Turn(Box::new(view)),
        })
    }

    /// Returns the next items of a turn that is built. `None` if there are no more.
    fn next_rest(&mut self) -> Option<Vec<TranscriptItem>> {
        let mut items = Vec::with_capacity(self.rest.len().min(MAX_ITEMS));
        while !is_full_part(&items) {
            match self.rest.next() {
                Some(item) => items.push(item),
                None => break,
            }
        }
        (!items.is_empty()).then_some(items)
    }

    /// Builds the items of the next line of the open turn, or else of the next turn. `None` if the turn has
    /// no more lines.
    fn next_items(&mut self, writer: &TranscriptWriter<'_>) -> Option<Vec<TranscriptItem>> {
        if self.open.is_none() {
            self.open = self.open_turn(writer);
        }
        let OpenTurn { turn, next_entry, next_block, view, title, .. } = self.open.as_mut()?;
        let turn = &self.turns[*turn];
        let entry_idx = *turn.entries.get(*next_entry)?;
        let first_block = *next_block;
        match writer.next_block(entry_idx, first_block) {
            Some(next) => *next_block = next,
            None => (*next_entry, *next_block) = (*next_entry + 1, 0),
        }
        let items = writer.turn_items(turn, (entry_idx, first_block), &mut view.spent_by_agents);
        items.iter().for_each(|item| title.add(&item.body));
        if view.title != title.text() {
            view.title = title.text().to_owned();
        }
        Some(items)
    }

    fn open_turn(&mut self, writer: &TranscriptWriter<'_>) -> Option<OpenTurn> {
        let session: &Session = writer.session();
        let count = self.turns.len();
        let is_wanted =
            |&turn: &TurnIndex| self.wanted.is_none_or(|wanted| wanted(self.turns[turn].number, count));
        let found = (self.next_turn..self.turns.end()).indices().find(is_wanted);
        self.next_turn = found.map_or(self.turns.end(), TurnIndex::next);
        let turn = found?;
        let previous = turn.previous().and_then(|previous| self.turns[previous].span(session));
        let view = writer.new_turn(&self.turns[turn], previous.map(|(_, end)| end));
        let title = TurnTitle::default();
        Some(OpenTurn { turn, next_entry: 0, next_block: 0, is_split: false, title, view })
    }
}
