//! Notes: the contribution of each line to the outline of its turn.
//!
//! A layout needs counts and titles, not the text. Notes are computed once per line and kept: when a
//! session grows, only new lines and calls with a new result are processed.

use threadline_entry::Kind;
use threadline_session::{
    AgentIndex, BlockPosition, CallIndex, EntryIndex, IndexRange, IndexVec, Session, SessionFamily,
    ToolOutcome,
};

use crate::card::{CardInput, CommandChangeCounts, changes_files, runs_commands};
use crate::outline::{TitleSource, item_title};
use crate::transcript::{ItemBody, TurnTokens};
use crate::transcript_builder::TranscriptBuilder;
use crate::transcript_writer::{BlockContent, CallBlock, TranscriptWriter};

/// The notes of a session and of its sub-agents.
#[derive(Clone, Debug, Default)]
pub struct LineNotes {
    main: IndexVec<EntryIndex, LineNote>,
    agents: IndexVec<AgentIndex, IndexVec<EntryIndex, LineNote>>,
}

impl LineNotes {
    /// Computes the notes of a family.
    pub fn of(family: &SessionFamily) -> Self {
        let mut notes = Self::default();
        notes.update(family);
        notes
    }

    /// Updates the notes after a family has grown. The sub-agents must be the previous ones in the same
    /// order, optionally followed by new ones.
    pub fn update(&mut self, family: &SessionFamily) {
        update_notes(&mut self.main, family, None);
        self.agents.resize_with(family.agents.len(), IndexVec::new);
        for (agent, notes) in self.agents.enumerated_mut() {
            update_notes(notes, family, Some(agent));
        }
    }

    /// Discards the notes of the sub-agents, after their list or order has changed.
    pub fn clear_agents(&mut self) {
        self.agents.clear();
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory_use(&self) -> usize {
        let count = self.main.len() + self.agents.iter().map(IndexVec::len).sum::<usize>();
        count * (size_of::<LineNote>() + 32)
    }

    /// Returns the notes of the main session or of one sub-agent, by entry index.
    pub(crate) fn for_session(&self, agent: Option<AgentIndex>) -> &IndexVec<EntryIndex, LineNote> {
        agent.map_or(&self.main, |agent| &self.agents[agent])
    }
}

/// The contribution of one line to the outline of its turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineNote {
    /// The title that the line gives to its turn, unless an earlier line gives a better one.
    pub(crate) title: Option<(TitleSource, Box<str>)>,
    /// The marks on the line, by block index.
    pub(crate) marks: Box<[(u32, LineMark)]>,
    /// The token counts of the reply, as logged on this line.
    pub(crate) reply_tokens: Option<TurnTokens>,
}

/// Something on a line that is counted.
#[derive(Clone, Debug)]
pub(crate) enum LineMark {
    /// A tool call.
    Call(CallNote),
    /// An error outside the tool calls.
    Error,
    /// A compaction.
    Compaction,
    /// A line of an unknown type.
    Unknown,
}

/// The counted facts of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallNote {
    /// Its index in [`Session::tool_calls`].
    pub(crate) call: CallIndex,
    /// Its outcome, and the result that the outcome was read from.
    pub(crate) outcome: ToolOutcome,
    result: Option<BlockPosition>,
    /// The numbers of added and removed lines, if the call changed a file.
    pub(crate) changed_lines: Option<(usize, usize)>,
    /// The changes that a command made to files.
    pub(crate) by_command: CommandChangeCounts,
}

fn update_notes(
    notes: &mut IndexVec<EntryIndex, LineNote>,
    family: &SessionFamily,
    agent: Option<AgentIndex>,
) {
    let session = family.session(agent);
    let writer = TranscriptWriter::without_agents(TranscriptBuilder::new(family), agent);
    for (idx, note) in notes.enumerated_mut() {
        if note.is_stale(session, idx) {
            *note = LineNote::of(&writer, session, idx);
        }
    }
    let new = notes.end()..session.entries().end();
    notes.extend(new.indices().map(|idx| LineNote::of(&writer, session, idx)));
}

impl LineNote {
    fn of(writer: &TranscriptWriter<'_>, session: &Session, idx: EntryIndex) -> Self {
        let entry = &session.entries()[idx];
        let (mut title, mut marks) = (None, Vec::new());
        // Nothing in these kinds is counted.
        let is_counted = !matches!(entry.kind(), Kind::Progress | Kind::PrLink | Kind::FrameLink);
        for (block_idx, content) in is_counted.then(|| writer.contents(idx)).into_iter().flatten() {
            let mark = match content {
                BlockContent::Call(call) => LineMark::Call(CallNote::of(session, call)),
                BlockContent::Compaction => LineMark::Compaction,
                BlockContent::Body(ItemBody::Error { .. }) => LineMark::Error,
                BlockContent::Body(ItemBody::Unknown { .. }) => LineMark::Unknown,
                BlockContent::Body(body) => {
                    let found = || item_title(&body).map(|(source, title)| (source, Box::from(&*title)));
                    title = title.or_else(found);
                    continue;
                }
            };
            marks.push((block_idx as u32, mark));
        }
        let usage = (entry.kind() == Kind::Assistant).then(|| entry.message()?.usage()).flatten();
        let used = usage.map(TurnTokens::of);
        Self { title, marks: marks.into(), reply_tokens: used }
    }

    /// Returns whether a call on the line has got its result since, or turned out to have been interrupted.
    fn is_stale(&self, session: &Session, idx: EntryIndex) -> bool {
        self.marks.iter().any(|(block_idx, mark)| match mark {
            LineMark::Call(call) => {
                let now = &session.tool_calls()[call.call];
                now.result_of_block(idx, *block_idx as usize, session) != call.result
                    || (call.outcome == ToolOutcome::Denied
                        && now.outcome_of(call.result, session) != ToolOutcome::Denied)
            }
            _ => false,
        })
    }
}

impl CallNote {
    fn of(session: &Session, call_block: CallBlock<'_>) -> Self {
        let CallBlock { block, result, .. } = call_block;
        let call = &session.tool_calls()[call_block.call];
        let outcome = call_block.outcome(session);
        let data = || result.and_then(|at| at.record(session));
        let changes = || {
            let data = data();
            let failed = outcome != ToolOutcome::Ok;
            let (name, input, kept) = (&*call.name, block.input(), &|_: &str| None);
            CardInput { name, input, data, text: "", failed, n_images: 0, cwd: "", read_output: kept }
                .changed_lines()
        };
        let changed_lines = if changes_files(&call.name) { changes() } else { None };
        let is_command = runs_commands(&call.name) && outcome == ToolOutcome::Ok;
        let by_command = match is_command {
            true => CommandChangeCounts::of_result(&call.name, data()),
            false => CommandChangeCounts::default(),
        };
        Self { call: call_block.call, outcome, result, changed_lines, by_command }
    }
}
