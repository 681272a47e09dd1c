//! Layouts: the structure of a conversation, so that parts of it can be built without the rest.
//!
//! A [`TranscriptLayout`] can be computed from a session whose long texts are
//! [abridged](threadline_entry::abridge). It contains everything that depends on the whole session (the lines
//! of each turn, token counts, totals) and no text. To build a part, read the lines that
//! [`TranscriptLayout::required_entries`] returns, push them into a new session, and call
//! [`TranscriptLayout::items`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use foldhash::HashMap;
use threadline_entry::{Kind, Millis};
use threadline_session::{
    AgentIndex, EntryIndex, IndexRange, IndexVec, Reply, Session, SessionFamily, Thread, ToolOutcome, Turn,
    TurnIndex,
};
use threadline_usage::UsageTotals;

use crate::call_count::count_tool_calls;
use crate::finding_summary::FindingSummary;
use crate::line_note::{LineMark, LineNote, LineNotes};
use crate::outline::{OutlineLine, TitleSource, notification_title};
use crate::transcript::{
    AgentView, ItemBody, TranscriptHeader, TranscriptItem, TurnView, anchor, anchor_line, error_anchors,
};
use crate::transcript_builder::{TranscriptBuilder, session_facts};
use crate::transcript_writer::{TranscriptWriter, demote_early_command, fill_agent_names, set_topic};

/// The structure of a conversation: its turns, branches and totals, without the text.
#[derive(Clone, Debug, Default)]
pub struct TranscriptLayout {
    /// The facts about the session.
    pub header: TranscriptHeader,
    /// The problems of the log.
    pub findings: FindingSummary,
    /// Sub-agents that were not started by a call of the conversation, without their turns.
    pub unattached_agents: Vec<AgentView>,
    /// The turns, in order.
    pub turns: IndexVec<TurnIndex, TurnLayout>,
    /// The tools called and how often, in order of first use.
    pub tools: Vec<(String, usize)>,
    /// The places of the tools in `tools`.
    tool_places: HashMap<String, usize>,
    /// The anchors of the errors, in order.
    pub error_anchors: Vec<String>,
    /// The abandoned branches.
    pub branches: Vec<BranchLayout>,
    /// The number of lines that each compaction removed, by the anchor of its boundary.
    dropped: HashMap<String, usize>,
    /// The topics of calls whose input contains only an id, by the anchor of the call.
    topics: BTreeMap<String, String>,
    /// The sub-agents that calls started, by the anchor of the call.
    agents: BTreeMap<String, Vec<AgentView>>,
    agents_by_line: HashMap<u64, usize>,
    /// The start times of running calls, by the anchor of the call.
    running: BTreeMap<String, Millis>,
}

/// A turn with its entries and totals.
#[derive(Clone, Debug)]
pub struct TurnLayout {
    /// The turn, without its items.
    pub turn: TurnView,
    /// Its line in the outline.
    pub line: OutlineLine,
    /// Its entries, as indices into [`Session::entries`].
    pub entries: Vec<EntryIndex>,
    /// The input tokens of its last reply.
    pub context: u64,
    /// The line number of the prompt that opened it.
    pub prompt_line: Option<u64>,
    /// The number of the line that contains the title, if the title may differ when texts were truncated.
    pub whole_title_on: Option<u64>,
}

/// An abandoned branch.
#[derive(Clone, Debug)]
pub struct BranchLayout {
    /// The index of its last message; pass it to [`layout`] for the layout of the branch.
    pub leaf: EntryIndex,
    /// The anchor of its last message.
    pub anchor: String,
    /// The anchor of the line where it forked off; `None` if it has no line in common with the
    /// conversation.
    pub fork: Option<String>,
    /// The title of its first turn that has one.
    pub title: String,
    /// The number of turns.
    pub turns: usize,
}

/// Computes the layout of a session's conversation, or of a sub-agent's.
///
/// With `leaf`, lays out the conversation as if it had ended at that entry. `notes` must be up to date with
/// the family. `findings` are those of the log: see [`FindingSummary::of`]. They take longer to compute than
/// the rest, so a caller may cache them.
pub fn layout(
    builder: TranscriptBuilder<'_>,
    notes: &LineNotes,
    agent: Option<AgentIndex>,
    leaf: Option<EntryIndex>,
    findings: FindingSummary,
) -> TranscriptLayout {
    let session = builder.family.session(agent);
    let layout_builder = LayoutBuilder { writer: TranscriptWriter::new(builder, agent), notes };
    let mut layout =
        TranscriptLayout { header: session_facts(session), findings, ..TranscriptLayout::default() };
    let mut thread = leaf.map_or_else(|| session.thread(), |leaf| session.thread_to(leaf));
    layout_builder.writer.add_lines_outside_tree(&mut thread);
    layout_builder.turns(&thread, &mut |_| true, &mut layout);
    layout.header.spent = match (agent, builder.spending) {
        (None, Some(spending)) => {
            layout.header.inherited = spending.inherited().cloned();
            spending.own()
        }
        _ => layout.turns.iter().fold(UsageTotals::default(), |mut sum, turn| {
            sum += &turn.turn.spent;
            sum
        }),
    };
    if leaf.is_none() {
        layout.branches = layout_builder.branches();
    }
    // Those of a sub-agent or of a branch are the sums over its turns.
    let sum = |figure: fn(&OutlineLine) -> usize| layout.turns.iter().map(|turn| figure(&turn.line)).sum();
    (layout.header.errors, layout.header.n_calls, layout.header.n_agents) = match (agent, leaf) {
        (None, None) => {
            let family = builder.family;
            (session_errors(family, notes), count_tool_calls(family), family.agents.len())
        }
        _ => (sum(|line| line.errors), sum(|line| line.calls), layout.agents.values().map(Vec::len).sum()),
    };
    if agent.is_none() && leaf.is_none() {
        layout.unattached_agents =
            layout_builder.writer.unattached_agents(&|agent| layout_builder.agent(agent).0);
    }
    layout
}

/// Lays out the turns of a session's active conversation that `wanted` accepts, and nothing else of it. It
/// is called for every turn, in order. The notes are those of the family as it is now.
pub fn layout_turns(
    builder: TranscriptBuilder<'_>,
    notes: &LineNotes,
    wanted: &mut dyn FnMut(&Turn) -> bool,
) -> TranscriptLayout {
    let layout_builder = LayoutBuilder { writer: TranscriptWriter::new(builder, None), notes };
    let mut layout = TranscriptLayout::default();
    let mut thread = builder.family.main.thread();
    layout_builder.writer.add_lines_outside_tree(&mut thread);
    layout_builder.turns(&thread, wanted, &mut layout);
    layout
}

/// Adds up the notes of the entries.
struct LayoutBuilder<'a> {
    writer: TranscriptWriter<'a>,
    notes: &'a LineNotes,
}

/// The totals of some lines, including the sub-agents that they started.
#[derive(Default)]
struct LayoutTotals {
    calls: usize,
    errors: usize,
    edits: usize,
    lines: (usize, usize),
    shell_edits: usize,
    shell_lines: (usize, usize),
    compactions: usize,
    /// The errors, without those of sub-agents.
    own_errors: usize,
    spent_by_agents: UsageTotals,
}

impl LayoutTotals {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.edits += other.edits;
        self.lines.0 += other.lines.0;
        self.lines.1 += other.lines.1;
        self.shell_edits += other.shell_edits;
        self.shell_lines.0 += other.shell_lines.0;
        self.shell_lines.1 += other.shell_lines.1;
        self.compactions += other.compactions;
        self.own_errors += other.own_errors;
        self.spent_by_agents += &other.spent_by_agents;
    }
}

impl<'a> LayoutBuilder<'a> {
    fn notes(&self) -> &'a IndexVec<EntryIndex, LineNote> {
        self.notes.for_session(self.writer.agent)
    }

    /// Adds the turns of a conversation that `wanted` accepts to `layout`.
    fn turns(&self, thread: &Thread, wanted: &mut dyn FnMut(&Turn) -> bool, layout: &mut TranscriptLayout) {
        let session = self.writer.session();
        let (mut before, mut skipped) = (None, None);
        for turn in session.turns_of(thread) {
            if !wanted(&turn) {
                skipped = Some(turn);
                continue;
            }
            if let Some(skipped) = skipped.take() {
                before = Turn::span(&skipped, session).map(|(_, end)| end);
            }
            let laid_out = self.turn(turn, before, layout);
            before = laid_out.turn.span.map(|(_, end)| end);
            layout.turns.push(laid_out);
        }
    }

    /// Returns the layout of a turn, and adds to `layout` the data of its items that depends on the whole
    /// session.
    fn turn(&self, turn: Turn, before: Option<Millis>, layout: &mut TranscriptLayout) -> TurnLayout {
        let session = self.writer.session();
        let mut sum = LayoutTotals::default();
        for &idx in &turn.entries {
            for (block_idx, mark) in &self.notes()[idx].marks {
                let line_no = session.entries()[idx].at().line_no;
                let name = anchor(line_no, *block_idx as usize);
                let (found, agents) = self.mark(idx, *block_idx, mark);
                layout.error_anchors.extend(error_anchors(&name, found.own_errors > 0, &agents));
                sum.add(&found);
                match mark {
                    LineMark::Call(call) => {
                        let call = &session.tool_calls()[call.call];
                        layout.count(&call.name);
                        let since = self.writer.running_since(call);
                        layout.running.extend(since.map(|since| (name.clone(), since)));
                        let topic = self.writer.topic(call);
                        layout.topics.extend(topic.map(|topic| (name.clone(), topic)));
                        if !agents.is_empty() {
                            *layout.agents_by_line.entry(line_no).or_default() += agents.len();
                            layout.agents.insert(name, agents);
                        }
                    }
                    LineMark::Compaction => {
                        layout.dropped.insert(name, self.writer.dropped(idx));
                    }
                    LineMark::Error | LineMark::Unknown => {}
                }
            }
        }
        let used = |reply: &Reply| self.notes()[reply.usage_entry].reply_tokens;
        let mut view = self.writer.turn_header(&turn, before, &used);
        view.spent += &sum.spent_by_agents;
        let (title, title_entry) = self.title(&turn);
        view.title = title.to_owned();
        let line = OutlineLine {
            calls: sum.calls,
            errors: sum.errors,
            edits: sum.edits,
            lines: sum.lines,
            shell_edits: sum.shell_edits,
            shell_lines: sum.shell_lines,
            compactions: sum.compactions,
            ..OutlineLine::blank(&view)
        };
        view.spent_by_agents = sum.spent_by_agents;
        let replies = turn.replies(session).into_iter().rev().map(|reply| &session.replies()[reply]);
        let mut context = replies.filter_map(|reply| Some(used(reply)?.context()));
        let context = context.find(|context| *context > 0).unwrap_or(0);
        let line_no = |idx: EntryIndex| session.entries()[idx].at().line_no;
        let (prompt_line, whole_title_on) = (turn.prompt.map(line_no), title_entry.map(line_no));
        TurnLayout { turn: view, line, entries: turn.entries, context, prompt_line, whole_title_on }
    }

    /// Returns the title of a turn, and the entry that contains it if the title may be another one when the
    /// text of the entry was truncated.
    fn title(&self, turn: &Turn) -> (&'a str, Option<EntryIndex>) {
        let mut best: Option<(TitleSource, &'a str, EntryIndex)> = None;
        for &idx in &turn.entries {
            let Some((source, title)) = &self.notes()[idx].title else { continue };
            let is_early = turn.number == 1 && turn.prompt.is_some_and(|prompt| idx < prompt);
            if *source == TitleSource::Command && is_early {
                continue;
            }
            if !source.replaces(best.map(|(source, ..)| source)) {
                break;
            }
            best = Some((*source, title, idx));
        }
        let Some((source, title, idx)) = best else { return ("", turn.prompt) };
        // A truncated prompt begins with its title, unless that follows context or is a part of a
        // notification. Markdown without its end is not recognised.
        let is_partial = title.starts_with('<') || title == &*notification_title("");
        let whole_line = match source {
            TitleSource::Prompt | TitleSource::Command => is_partial.then_some(idx),
            TitleSource::Files => Some(idx),
            TitleSource::Reply => turn.prompt.or(title.contains('…').then_some(idx)),
        };
        (title, whole_line)
    }

    /// Returns the totals of a mark and the sub-agents that it started, without their turns.
    fn mark(&self, entry_idx: EntryIndex, block_idx: u32, mark: &LineMark) -> (LayoutTotals, Vec<AgentView>) {
        let session = self.writer.session();
        let mut agents = Vec::new();
        let sum = match mark {
            LineMark::Error => LayoutTotals { errors: 1, own_errors: 1, ..LayoutTotals::default() },
            LineMark::Unknown => LayoutTotals::default(),
            LineMark::Compaction => LayoutTotals { compactions: 1, ..LayoutTotals::default() },
            LineMark::Call(call) => {
                let failed = call.outcome.is_error();
                let changed = call.changed_lines.filter(|_| call.outcome == ToolOutcome::Ok);
                let mut sum = LayoutTotals {
                    calls: 1,
                    errors: usize::from(failed),
                    edits: usize::from(changed.is_some()),
                    lines: changed.unwrap_or_default(),
                    shell_edits: call.by_command.files,
                    shell_lines: call.by_command.lines,
                    own_errors: usize::from(failed),
                    ..LayoutTotals::default()
                };
                let call = &session.tool_calls()[call.call];
                let has_agents = call.is_last_block(entry_idx, block_idx as usize, session);
                let family = self.writer.builder.family;
                let descends = has_agents && self.writer.descends() && !family.agents.is_empty();
                let spawned = descends.then(|| family.spawned_by(self.writer.agent, &call.id));
                for agent in spawned.into_iter().flatten() {
                    let (view, inside) = self.agent(agent);
                    let spent_by_agents = view.spent.clone();
                    sum.add(&LayoutTotals { spent_by_agents, own_errors: 0, ..inside });
                    agents.push(view);
                }
                sum
            }
        };
        (sum, agents)
    }

    /// Returns a sub-agent without its turns, and the totals of its conversation.
    fn agent(&self, agent: AgentIndex) -> (AgentView, LayoutTotals) {
        let below = Self { writer: self.writer.for_agent(agent), notes: self.notes };
        let mut error_anchors = Vec::new();
        let sum = below.sum(&below.writer.thread(), &mut error_anchors);
        let mut view = below.writer.agent_without_turns(agent);
        (view.errors, view.error_anchors) = (sum.errors, error_anchors);
        view.spent += &sum.spent_by_agents;
        (view, sum)
    }

    /// Adds up a conversation, and collects the anchors of the lines with errors.
    fn sum(&self, thread: &Thread, error_anchors: &mut Vec<String>) -> LayoutTotals {
        let session = self.writer.session();
        let mut sum = LayoutTotals::default();
        for turn in session.turns_of(thread) {
            for &idx in &turn.entries {
                for (block_idx, mark) in &self.notes()[idx].marks {
                    let (found, _) = self.mark(idx, *block_idx, mark);
                    if found.errors > 0 {
                        error_anchors.push(anchor(session.entries()[idx].at().line_no, *block_idx as usize));
                    }
                    sum.add(&found);
                }
            }
        }
        sum
    }

    fn branches(&self) -> Vec<BranchLayout> {
        let session = self.writer.session();
        let spoken = |idx: EntryIndex| matches!(session.entries()[idx].kind(), Kind::User | Kind::Assistant);
        let found = session.branches().into_iter().filter_map(|branch| {
            let leaf = branch.entries.iter().copied().rfind(|&idx| spoken(idx))?;
            let thread = Thread { leaf: Some(leaf), entries: branch.entries };
            let turns = session.turns_of(&thread);
            let title = turns.iter().map(|turn| self.title(turn).0).find(|title| !title.is_empty());
            // Marks the sub-agents of the branch as visited, so that they are not listed as unattached.
            self.sum(&thread, &mut Vec::new());
            let name = |idx: EntryIndex| anchor(session.entries()[idx].at().line_no, 0);
            Some(BranchLayout {
                leaf,
                anchor: name(leaf),
                fork: branch.fork.map(name),
                title: title.unwrap_or_default().to_owned(),
                turns: turns.len(),
            })
        });
        found.filter(|branch| branch.turns > 0).collect()
    }
}

/// Returns the number of errors of a session, from the notes. Equals [`count_errors`](crate::count_errors).
fn session_errors(family: &SessionFamily, notes: &LineNotes) -> usize {
    let own = |agent: Option<AgentIndex>| {
        let (session, notes) = (family.session(agent), notes.for_session(agent));
        let marks = |idx: EntryIndex| notes[idx].marks.iter();
        let is_error = |mark: &LineMark| match mark {
            LineMark::Error => true,
            LineMark::Call(call) => call.outcome.is_error(),
            LineMark::Compaction | LineMark::Unknown => false,
        };
        let turns = session.turns();
        let entries = turns.iter().flat_map(|turn| turn.entries.iter().copied());
        entries.flat_map(marks).filter(|(_, mark)| is_error(mark)).count()
    };
    own(None) + family.agents.indices().map(|agent| own(Some(agent))).sum::<usize>()
}

impl TranscriptLayout {
    fn count(&mut self, tool: &str) {
        match self.tool_places.get(tool) {
            Some(place) => self.tools[*place].1 += 1,
            None => {
                self.tool_places.insert(tool.to_owned(), self.tools.len());
                self.tools.push((tool.to_owned(), 1));
            }
        }
    }

    /// Calls `visit` with every text of the layout that comes from the log.
    pub fn each_text(&mut self, visit: &mut dyn FnMut(&mut String)) {
        let header = &mut self.header;
        let facts = [&mut header.title, &mut header.first_prompt, &mut header.cwd, &mut header.git_branch];
        let agents = self.unattached_agents.iter_mut().chain(self.agents.values_mut().flatten());
        let texts = facts.into_iter().chain(agents.map(|agent| &mut agent.description)).flatten();
        let texts = texts.chain(self.turns.iter_mut().map(|turn| &mut turn.line.title));
        let texts = texts.chain(self.branches.iter_mut().map(|branch| &mut branch.title));
        texts.chain(self.topics.values_mut()).for_each(visit);
    }

    /// Returns the entries that are needed to build the given ones: tool results, the summary after a
    /// compaction, and queued prompts. The given entries are included; the result is sorted and has no
    /// duplicates.
    pub fn required_entries(session: &Session, entries: &[EntryIndex]) -> Vec<EntryIndex> {
        let mut needed = entries.to_vec();
        for &idx in entries {
            for call in session.calls_on(idx) {
                let call = &session.tool_calls()[call];
                needed.extend(call.results.iter().map(|at| at.entry_idx));
                needed.extend(session.interrupted_at(call.reply));
            }
            if let Some(summary) = session.compaction(idx).and_then(|compaction| compaction.summary) {
                needed.extend(session.ancestors(summary).take_while(|&above| above != idx));
            }
            needed.extend(session.steering_prompt_line(idx));
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Builds the items of the given lines, in the given order.
    ///
    /// The session of `builder` need only contain these lines and the entries that they need: see
    /// [`TranscriptLayout::required_entries`]. `log` is the index of their log: see
    /// [`Spending::log_index`](crate::Spending::log_index).
    pub fn items(&self, builder: TranscriptBuilder<'_>, lines: &[u64], log: usize) -> Vec<TranscriptItem> {
        let writer = TranscriptWriter::of_log(builder, log);
        let entries = builder.family.main.entries();
        let on = |line: u64| {
            let first = entries.partition_point(|entry| entry.at().line_no < line);
            (first..entries.end()).indices().take_while(move |&idx| entries[idx].at().line_no == line)
        };
        let mut items: Vec<TranscriptItem> =
            lines.iter().flat_map(|&line| on(line)).flat_map(|idx| writer.items(idx)).collect();
        self.fill_in(&mut items, builder.live_at);
        items
    }

    /// Fills in the fields of separately built items that depend on the whole session.
    fn fill_in(&self, items: &mut [TranscriptItem], now: Option<Millis>) {
        let first = self.turns.first().and_then(|turn| turn.prompt_line).unwrap_or(0);
        for item in items {
            if item.line_no < first {
                demote_early_command(item);
            }
            match &mut item.body {
                ItemBody::Compaction { dropped, .. } => {
                    *dropped = self.dropped.get(&item.anchor).copied().unwrap_or(0)
                }
                ItemBody::Call(call) => {
                    let since = self.running.get(&item.anchor);
                    call.running = since.zip(now).map(|(since, now)| (now - since).max(0));
                    call.agents = self.agents.get(&item.anchor).cloned().unwrap_or_default();
                    fill_agent_names(&mut call.agents, &call.card);
                    if let Some(topic) = self.topics.get(&item.anchor) {
                        set_topic(&mut call.subject, &mut call.card, topic);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns whether a call is running.
    pub fn has_running_calls(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns whether a call on one of the lines is running.
    pub fn is_running(&self, lines: RangeInclusive<u64>) -> bool {
        self.running.keys().filter_map(|name| anchor_line(name)).any(|line| lines.contains(&line))
    }

    /// Returns the number of sub-agents that the calls on a line started.
    pub fn agents_on(&self, line_no: u64) -> usize {
        self.agents_by_line.get(&line_no).copied().unwrap_or(0)
    }

    /// Returns the sub-agents that calls started, each with the anchor of its call, in unspecified order.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentView, &str)> {
        self.agents.iter().flat_map(|(call, agents)| agents.iter().map(move |agent| (agent, &**call)))
    }
}
