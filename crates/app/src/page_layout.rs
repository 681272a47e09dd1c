//! Splits a conversation into parts that can be sent and rendered one by one.
//!
//! The end of a part depends only on the lines before it, so a growing session keeps all parts except the
//! last ones.

use std::sync::Arc;

use threadline_session::{EntryIndex, Session};
use threadline_view::{OutlinePart, PagePart, TranscriptLayout, TurnView};

use crate::live::TurnSpan;
use crate::live_log::LiveLog;

/// A part ends when its lines have about this many bytes,
const PART_BYTES: u64 = 64 << 10;

/// or this many turns,
const PART_TURNS: usize = 40;

/// or this many lines.
const PART_ENTRIES: usize = 120;

/// Longer turns, in bytes, are split.
const LONG_TURN: u64 = 96 << 10;

/// Number of turns in one part of the outline.
const OUTLINE_PART_TURNS: usize = 100;

/// A conversation, divided into the parts of a page.
pub struct PageLayout {
    /// The structure of the conversation.
    pub layout: Arc<TranscriptLayout>,
    /// The parts, in order, each with its ranges of turns.
    pub parts: Vec<(PagePart, Vec<TurnSpan>)>,
    /// The parts of the outline.
    pub outline_parts: Vec<OutlinePart>,
    /// Number of lines in the log.
    pub lines: u64,
    /// Whether the log ends in the middle of a line.
    pub torn: bool,
    /// A hash of everything on the page except the parts and the outline.
    pub stamp: String,
}

impl PageLayout {
    /// Splits the conversation with this structure. `session` and `log` are those that contain it.
    pub(crate) fn new(layout: Arc<TranscriptLayout>, session: &Session, log: &LiveLog) -> Self {
        let mut plan = Self {
            parts: Vec::new(),
            outline_parts: Vec::new(),
            lines: log.n_lines(),
            torn: log.torn > 0,
            stamp: String::new(),
            layout,
        };
        let line = |idx: EntryIndex| session.entries()[idx].at().line_no;
        let size = |idx: EntryIndex| log.size(line(idx));
        let mut spans: Vec<TurnSpan> = Vec::new();
        let mut bytes = 0;
        let mut rows = 0;
        for (index, turn) in plan.layout.turns.enumerated() {
            let long = turn.entries.iter().map(|&idx| size(idx)).sum::<u64>() > LONG_TURN;
            let mut from = 0;
            for (i, &idx) in turn.entries.iter().enumerate() {
                bytes += size(idx);
                rows += 1;
                let last = i + 1 == turn.entries.len();
                let cut = long && (bytes >= PART_BYTES || rows >= PART_ENTRIES);
                if !cut && !last {
                    continue;
                }
                spans.push(TurnSpan { turn: index, entries: from..i + 1 });
                from = i + 1;
                // A part that ends in the middle of a turn ends there; turns that fit are kept together.
                if cut || bytes >= PART_BYTES || rows >= PART_ENTRIES || spans.len() >= PART_TURNS {
                    plan.parts.push((PagePart::default(), std::mem::take(&mut spans)));
                    (bytes, rows) = (0, 0);
                }
            }
        }
        if !spans.is_empty() {
            plan.parts.push((PagePart::default(), spans));
        }
        for i in 0..plan.parts.len() {
            plan.parts[i].0 = plan.part(&plan.parts[i].1, session, &line);
        }
        let turns = plan.layout.turns.as_slice();
        plan.outline_parts = turns
            .chunks(OUTLINE_PART_TURNS)
            .enumerate()
            .map(|(number, turns)| OutlinePart {
                number,
                stamp: stamp(turns.iter().map(|turn| &turn.line).collect::<Vec<_>>()),
            })
            .collect();
        let header = &plan.layout.header;
        plan.stamp = stamp((
            (
                &header.title,
                &header.git_branch,
                &header.version,
                plan.layout.findings.count,
                plan.layout.unattached_agents.len(),
                turns.len(),
                log.torn > 0,
            ),
            plan.layout.branches.iter().map(|branch| (&branch.anchor, branch.turns)).collect::<Vec<_>>(),
            plan.outline_parts.iter().map(|rail| &rail.stamp).collect::<Vec<_>>(),
        ));
        plan
    }

    fn part(&self, spans: &[TurnSpan], session: &Session, line: &dyn Fn(EntryIndex) -> u64) -> PagePart {
        let mut entries: Vec<EntryIndex> =
            spans.iter().flat_map(|span| span.entries(&self.layout).iter().copied()).collect();
        let first = entries.first().map_or(0, |&idx| line(idx));
        entries.sort_unstable();
        let heads: Vec<String> = spans
            .iter()
            .filter(|span| span.entries.start == 0)
            .map(|span| heading_key(&self.layout.turns[span.turn].turn))
            .collect();
        let needed: Vec<u64> =
            TranscriptLayout::required_entries(session, &entries).into_iter().map(line).collect();
        let agents = entries.iter().map(|&idx| self.layout.agents_on(line(idx))).sum::<usize>();
        let lines = (entries.first().map_or(0, |&idx| line(idx)), entries.last().map_or(0, |&idx| line(idx)));
        let is_running = self.layout.is_running(lines.0..=lines.1);
        PagePart {
            name: format!("m{first}"),
            stamp: stamp((spans, heads, needed, agents, is_running)),
            lines,
            rows: entries.len() + 4 * spans.len(),
        }
    }

    /// Returns the part that contains a line, or else the last part before it.
    pub fn part_at(&self, line: u64) -> usize {
        let contains = |(part, _): &(PagePart, Vec<TurnSpan>)| part.lines.0 <= line && line <= part.lines.1;
        let before = || self.parts.iter().rposition(|(part, _)| part.lines.0 <= line);
        self.parts.iter().position(contains).or_else(before).unwrap_or(0)
    }

    /// Returns whether a line is in the range of any part.
    pub fn contains_line(&self, line: u64) -> bool {
        self.parts.iter().any(|(part, _)| part.lines.0 <= line && line <= part.lines.1)
    }

    /// Returns the part with this name.
    pub fn find_part(&self, name: &str) -> Option<usize> {
        self.parts.iter().position(|(part, _)| part.name == name)
    }

    /// Estimates the memory it uses, besides that of the layout.
    pub(crate) fn memory_size(&self) -> usize {
        self.parts.len() * 300
    }
}

/// Estimates the memory that the layout of a log uses.
pub(crate) fn layout_memory(layout: &TranscriptLayout, log: &LiveLog) -> usize {
    let entries: usize =
        layout.turns.iter().map(|turn| turn.entries.capacity() * size_of::<EntryIndex>()).sum();
    entries + layout.turns.len() * 900 + log.n_lines() as usize * 120
}

/// Returns a text that changes whenever the heading of a turn is rendered differently.
fn heading_key(turn: &TurnView) -> String {
    let TurnView {
        number,
        anchor,
        title,
        span,
        timing,
        models,
        tokens,
        spent,
        spent_by_agents,
        open,
        round,
        items: _,
    } = turn;
    stamp((number, anchor, title, span, timing, models, tokens, spent, spent_by_agents, open, round))
}

/// Returns a short text that changes if the value does.
fn stamp(value: impl std::hash::Hash) -> String {
    format!("{:x}", threadline_entry::hash_of(&value))
}
