//! How a conversation is cut into parts that can be sent and drawn one by one.
//!
//! Where a part ends depends on what stands before its end and on nothing else, so that a session that grows keeps the
//! parts it had, but for the last ones.

use threadline_app::{LiveLog, TurnSpan};
use threadline_html::{Part, RailPart};
use threadline_session::Session;
use threadline_view::{Layout, TurnView};

use crate::held::stamp;

/// A part ends once its lines have about so many bytes,
const PART: u64 = 64 << 10;

/// or so many turns,
const TURNS: usize = 40;

/// or so many lines.
const ENTRIES: usize = 120;

/// A turn that is longer than this is cut.
const LONG_TURN: u64 = 96 << 10;

/// So many turns stand in a stretch of the outline.
const RAIL: usize = 100;

/// How a conversation is cut into parts.
pub(crate) struct Plan {
    /// Where everything stands.
    pub(crate) layout: Layout,
    /// The parts, in order, each with the stretches of turns in it.
    pub(crate) parts: Vec<(Part, Vec<TurnSpan>)>,
    /// The outline, in stretches.
    pub(crate) rail: Vec<RailPart>,
    /// How long the log is, in lines and in bytes.
    pub(crate) lines: u64,
    /// How many lines of a log that is too long are not shown.
    pub(crate) skipped: u64,
    /// Whether the log ends in the middle of a line.
    pub(crate) torn: bool,
    /// What changes when anything outside of the parts and the outline does.
    pub(crate) stamp: String,
}

impl Plan {
    pub(crate) fn new(layout: Layout, session: &Session, log: &LiveLog) -> Self {
        let mut plan = Self {
            parts: Vec::new(),
            rail: Vec::new(),
            lines: log.n_lines(),
            skipped: log.skipped,
            torn: log.torn > 0,
            stamp: String::new(),
            layout,
        };
        let line = |idx: usize| session.entries()[idx].at().line_no;
        let size = |idx: usize| log.size(line(idx));
        let mut spans: Vec<TurnSpan> = Vec::new();
        let mut bytes = 0;
        let mut rows = 0;
        for (number, turn) in plan.layout.turns.iter().enumerate() {
            let long = turn.entries.iter().map(|&idx| size(idx)).sum::<u64>() > LONG_TURN;
            let mut from = 0;
            for (i, &idx) in turn.entries.iter().enumerate() {
                bytes += size(idx);
                rows += 1;
                let last = i + 1 == turn.entries.len();
                let cut = long && (bytes >= PART || rows >= ENTRIES);
                if !cut && !last {
                    continue;
                }
                spans.push(TurnSpan { turn: number, entries: from..i + 1 });
                from = i + 1;
                // A part that ends in the middle of a turn ends there; turns that fit are kept together.
                if cut || bytes >= PART || rows >= ENTRIES || spans.len() >= TURNS {
                    plan.parts.push((Part::default(), std::mem::take(&mut spans)));
                    (bytes, rows) = (0, 0);
                }
            }
        }
        if !spans.is_empty() {
            plan.parts.push((Part::default(), spans));
        }
        for i in 0..plan.parts.len() {
            plan.parts[i].0 = plan.part(&plan.parts[i].1, session, &line);
        }
        let turns = &plan.layout.turns;
        plan.rail = turns
            .chunks(RAIL)
            .enumerate()
            .map(|(number, turns)| RailPart {
                number,
                stamp: stamp(turns.iter().map(|turn| &turn.line).collect::<Vec<_>>()),
            })
            .collect();
        let told = &plan.layout.told;
        plan.stamp = stamp((
            (
                &told.title,
                &told.git_branch,
                &told.version,
                told.findings.len(),
                told.agents.len(),
                turns.len(),
                log.torn > 0,
            ),
            plan.layout.branches.iter().map(|branch| (&branch.anchor, branch.turns)).collect::<Vec<_>>(),
            plan.rail.iter().map(|rail| &rail.stamp).collect::<Vec<_>>(),
        ));
        plan
    }

    fn part(&self, spans: &[TurnSpan], session: &Session, line: &dyn Fn(usize) -> u64) -> Part {
        let mut entries: Vec<usize> =
            spans.iter().flat_map(|span| span.entries(&self.layout).iter().copied()).collect();
        let first = entries.first().map_or(0, |&idx| line(idx));
        entries.sort_unstable();
        let heads: Vec<String> = spans
            .iter()
            .filter(|span| span.entries.start == 0)
            .map(|span| head(&self.layout.turns[span.turn].turn))
            .collect();
        let needed: Vec<u64> = Layout::needed(session, &entries).into_iter().map(line).collect();
        let agents = entries.iter().map(|&idx| self.layout.agents_on(line(idx))).sum::<usize>();
        Part {
            name: format!("m{first}"),
            stamp: stamp((spans, heads, needed, agents)),
            lines: (entries.first().map_or(0, |&idx| line(idx)), entries.last().map_or(0, |&idx| line(idx))),
            rows: entries.len() + 4 * spans.len(),
        }
    }

    /// The part that a line stands in, or the last one before it.
    pub(crate) fn part_at(&self, line: u64) -> usize {
        let holds = |(part, _): &(Part, Vec<TurnSpan>)| part.lines.0 <= line && line <= part.lines.1;
        let before = || self.parts.iter().rposition(|(part, _)| part.lines.0 <= line);
        self.parts.iter().position(holds).or_else(before).unwrap_or(0)
    }

    /// Whether a line is part of the conversation, as far as its parts tell.
    pub(crate) fn holds(&self, line: u64) -> bool {
        self.parts.iter().any(|(part, _)| part.lines.0 <= line && line <= part.lines.1)
    }

    /// The part with this name.
    pub(crate) fn part_named(&self, name: &str) -> Option<usize> {
        self.parts.iter().position(|(part, _)| part.name == name)
    }

    /// About how much memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let entries: usize = self.layout.turns.iter().map(|turn| turn.entries.capacity() * 8).sum();
        entries
            + self.layout.turns.len() * 900
            + self.parts.len() * 300
            + (self.lines - self.skipped) as usize * 120
    }
}

/// What changes when the head of a turn would be drawn differently.
fn head(turn: &TurnView) -> String {
    let TurnView {
        number,
        anchor,
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
    stamp((number, anchor, span, timing, models, tokens, spent, spent_by_agents, open, round))
}
