//! Notes: the contribution of each line to the outline of its turn.
//!
//! A layout needs counts and titles, not the text. Notes are computed once per line and kept: when a
//! session grows, only new lines and calls with a new result are processed.

use std::cell::RefCell;

use threadline_entry::Kind;
use threadline_entry::lens::Block;
use threadline_session::{Reply, ResultPosition, Session, SessionFamily, ToolOutcome};

use crate::card::{CardInput, ToolCard, changes_files};
use crate::diff::Hunk;
use crate::outline::{TitleSource, item_title};
use crate::transcript::{ItemBody, TurnTokens};
use crate::transcript_builder::TranscriptBuilder;
use crate::transcript_writer::{TranscriptWriter, cut_off_reason};

/// The notes of a session and of its sub-agents.
#[derive(Clone, Debug, Default)]
pub struct LineNotes {
    main: Vec<LineNote>,
    agents: Vec<Vec<LineNote>>,
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
        self.update_main(family);
        self.agents.resize_with(family.agents.len(), Vec::new);
        for (agent, notes) in self.agents.iter_mut().enumerate() {
            update_notes(notes, family, Some(agent));
        }
    }

    /// Updates the notes of the main session alone, for use before its sub-agents are loaded.
    pub fn update_main(&mut self, family: &SessionFamily) {
        update_notes(&mut self.main, family, None);
    }

    /// Discards the notes of the sub-agents, after their list or order has changed.
    pub fn clear_agents(&mut self) {
        self.agents.clear();
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory_use(&self) -> usize {
        let count = self.main.len() + self.agents.iter().map(Vec::len).sum::<usize>();
        count * (size_of::<LineNote>() + 32)
    }

    /// Returns the notes of the main session or of one sub-agent, by entry index.
    pub(crate) fn for_session(&self, agent: Option<usize>) -> &[LineNote] {
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
    pub(crate) reply_tokens: Option<LineTokens>,
}

/// The token counts of a reply, as logged on one of its lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineTokens {
    pub(crate) tokens: TurnTokens,
    /// Whether the line has an output count; such a line takes precedence over one without.
    has_output: bool,
}

/// Returns the token counts of a reply. Its lines repeat the figures and early ones are too low, so the
/// largest is used.
pub(crate) fn used(notes: &[LineNote], reply: &Reply) -> Option<TurnTokens> {
    let found = reply.entries.iter().filter_map(|&idx| notes[idx].reply_tokens);
    found.max_by_key(|used| (used.has_output, used.tokens.output)).map(|used| used.tokens)
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
    pub(crate) call: u32,
    /// Its outcome, and the result that the outcome was read from.
    pub(crate) outcome: ToolOutcome,
    result: Option<ResultPosition>,
    /// The numbers of added and removed lines, if the call changed a file.
    pub(crate) changed_lines: Option<(usize, usize)>,
}

fn update_notes(notes: &mut Vec<LineNote>, family: &SessionFamily, agent: Option<usize>) {
    let session = family.session(agent);
    let met = RefCell::default();
    let teller = TranscriptWriter::without_agents(TranscriptBuilder::new(family), agent, &met);
    for (idx, note) in notes.iter_mut().enumerate() {
        if note.is_stale(session) {
            *note = LineNote::of(&teller, session, idx);
        }
    }
    notes.extend((notes.len()..session.entries().len()).map(|idx| LineNote::of(&teller, session, idx)));
}

impl LineNote {
    fn of(teller: &TranscriptWriter<'_>, session: &Session, idx: usize) -> Self {
        let entry = &session.entries()[idx];
        let (mut title, mut marks) = (None, Vec::new());
        let mut take = |block_idx: usize, body: ItemBody| {
            let mark = match &body {
                ItemBody::Error { .. } => LineMark::Error,
                ItemBody::Unknown { .. } => LineMark::Unknown,
                ItemBody::Compaction { .. } => LineMark::Compaction,
                body => {
                    let found = item_title(body).map(|(source, title)| (source, Box::from(&*title)));
                    return title = title.take().or(found);
                }
            };
            marks.push((block_idx as u32, mark));
        };
        match entry.kind() {
            // Nothing in these is counted.
            Kind::Progress | Kind::PrLink | Kind::FrameLink => {}
            Kind::System if session.is_boundary(idx) => marks.push((0, LineMark::Compaction)),
            // Calls are noted without building their cards, except for those that change files.
            Kind::Assistant if session.calls_on(idx).next().is_some() && !entry.is_api_error() => {
                let mut calls = Vec::new();
                let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
                for (i, block) in blocks.enumerate() {
                    match CallNote::of(session, idx, block) {
                        Some(call) => calls.push((i as u32, LineMark::Call(call))),
                        None => teller.reply_block(idx, block).into_iter().for_each(|body| take(i, body)),
                    }
                }
                let n_blocks = entry.message().into_iter().flat_map(|message| message.blocks());
                if let Some((last, _)) = n_blocks.enumerate().last().filter(|(_, block)| block.is("text")) {
                    cut_off_reason(entry).into_iter().for_each(|body| take(last + 1, body));
                }
                marks.append(&mut calls);
                marks.sort_by_key(|(block_idx, _)| *block_idx);
            }
            _ => teller.bodies(idx).into_iter().for_each(|(i, body)| take(i, body)),
        }
        let usage = (entry.kind() == Kind::Assistant).then(|| entry.message()?.usage()).flatten();
        let used = usage.map(|usage| LineTokens {
            tokens: TurnTokens::of(usage),
            has_output: usage.output_tokens().is_some(),
        });
        Self { title, marks: marks.into(), reply_tokens: used }
    }

    /// Returns whether a call on the line has got its result since, or turned out to have been interrupted.
    fn is_stale(&self, session: &Session) -> bool {
        self.marks.iter().any(|(_, mark)| match mark {
            LineMark::Call(call) => {
                let now = &session.tool_calls()[call.call as usize];
                now.results.first() != call.result.as_ref()
                    || (call.outcome == ToolOutcome::Denied && now.outcome(session) != ToolOutcome::Denied)
            }
            _ => false,
        })
    }
}

impl CallNote {
    fn of(session: &Session, idx: usize, block: Block<'_>) -> Option<Self> {
        let id = block.id().filter(|_| block.is("tool_use"))?;
        let place = session.call_place_on(idx, &id)?;
        let call = &session.tool_calls()[place];
        let (outcome, result) = (call.outcome(session), call.results.first().copied());
        let told = || {
            let data = result.and_then(|at| session.entries()[at.entry_idx].tool_use_result());
            let failed = outcome != ToolOutcome::Ok;
            let (name, input, kept) = (&*call.name, block.input(), &|_: &str| None);
            CardInput { name, input, data, text: "", failed, n_images: 0, cwd: "", read_output: kept }
                .summary()
        };
        let changed = match changes_files(&call.name).then(|| told().card) {
            Some(ToolCard::Diff { hunks, .. }) => Some(Hunk::counts(&hunks)),
            _ => None,
        };
        Some(Self { call: place as u32, outcome, result, changed_lines: changed })
    }
}
