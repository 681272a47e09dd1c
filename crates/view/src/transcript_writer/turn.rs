//! Turns: their totals and their items.

use threadline_entry::Millis;
use threadline_session::{Reply, Session, Thread, Turn};
use threadline_usage::UsageTotals;

use super::TranscriptWriter;
use crate::card::asks_person;
use crate::transcript::{ItemBody, TranscriptItem, TurnTiming, TurnTokens, TurnView, anchor};
use crate::transcript_builder::{TranscriptPart, TurnCollector};

/// The number of items after which a part is emitted.
const ITEMS_PER_PART: usize = 32;

impl TranscriptWriter<'_> {
    pub(crate) fn turns_of(&self, thread: &Thread) -> Vec<TurnView> {
        let (mut turns, mut gathered) = (Vec::new(), TurnCollector::default());
        let found = self.session().turns_of(thread);
        self.each_part_of(&found, &|_, _| true, &mut |part| turns.extend(gathered.add(part)));
        turns.shrink_to_fit();
        turns
    }

    /// Emits the turns that `wanted` accepts, given a turn's number and the number of turns.
    pub(crate) fn each_part_of(
        &self,
        turns: &[Turn],
        wanted: &dyn Fn(usize, usize) -> bool,
        sink: &mut dyn FnMut(TranscriptPart),
    ) {
        let session = self.session();
        let mut before = None;
        for turn in turns {
            if wanted(turn.number, turns.len()) {
                let told = self.turn(turn, before, sink);
                sink(TranscriptPart::Turn(Box::new(told)));
            }
            before = turn.span(session).map(|(_, end)| end);
        }
    }

    fn turn(&self, turn: &Turn, before: Option<Millis>, sink: &mut dyn FnMut(TranscriptPart)) -> TurnView {
        let session = self.session();
        let used = |reply: &Reply| reply.usage(session).map(TurnTokens::of);
        let mut told = self.turn_header(turn, before, &used);
        let mut items = Vec::new();
        for &idx in &turn.entries {
            let mut more = self.items(idx);
            if turn.number == 1 && turn.prompt.is_some_and(|prompt| idx < prompt) {
                more.iter_mut().for_each(demote_early_command);
            }
            for item in &more {
                if let ItemBody::Call(call) = &item.body {
                    call.agents.iter().for_each(|agent| told.spent_by_agents += &agent.spent);
                }
            }
            items.extend(more);
            if items.len() >= ITEMS_PER_PART {
                sink(TranscriptPart::Items(std::mem::take(&mut items)));
            }
        }
        sink(TranscriptPart::Items(items));
        told.spent += &told.spent_by_agents;
        told
    }

    /// Returns a turn without its items and without the cost of its sub-agents. `used` returns the tokens
    /// of a reply.
    pub(crate) fn turn_header(
        &self,
        turn: &Turn,
        before: Option<Millis>,
        used: &dyn Fn(&Reply) -> Option<TurnTokens>,
    ) -> TurnView {
        let session = self.session();
        let mut tokens = TurnTokens::default();
        let mut models: Vec<String> = Vec::new();
        for reply in turn.replies(session).into_iter().map(|reply| &session.replies()[reply]) {
            tokens += used(reply).unwrap_or_default();
            if let Some(model) =
                reply.model.as_ref().filter(|model| !model.starts_with('<') && !models.contains(model))
            {
                models.push(model.clone());
            }
        }
        let first = turn.prompt.or(turn.entries.first().copied());
        let span = turn.span(session);
        let mut spent = UsageTotals::default();
        for totals in turn.entries.iter().filter_map(|&idx| self.cost_on(&session.entries()[idx])) {
            spent += totals;
        }
        models.shrink_to_fit();
        TurnView {
            number: turn.number,
            anchor: anchor(first.map_or(0, |idx| session.entries()[idx].at().line_no), 0),
            timing: timing(session, turn, span, before),
            span,
            models,
            tokens,
            spent,
            spent_by_agents: UsageTotals::default(),
            open: turn.is_open(session),
            round: turn.round,
            items: Vec::new(),
        }
    }
}

/// Turns a command that was run before the first prompt into an event, so that the prompt is the first
/// input of its turn.
pub(crate) fn demote_early_command(item: &mut TranscriptItem) {
    if let ItemBody::Input { input, text, .. } = &mut item.body
        && (input.is_command_line() || input.is_command_output())
    {
        let label = if input.is_command_line() { "earlier command" } else { "earlier output" };
        item.body = ItemBody::Event { label: label.to_owned(), text: std::mem::take(text) };
    }
}

/// Computes the breakdown of a turn's time. Overlapping tool calls are counted once.
fn timing(
    session: &Session,
    turn: &Turn,
    span: Option<(Millis, Millis)>,
    before: Option<Millis>,
) -> TurnTiming {
    let calls = turn.tool_calls(session).into_iter().map(|call| &session.tool_calls()[call]);
    let mut ran: Vec<(Millis, Millis, bool)> = calls
        .filter_map(|call| {
            let end = session.timestamp(call.results.first()?.entry_idx)?;
            Some((session.timestamp(call.entry_idx)?, end, asks_person(&call.name)))
        })
        .collect();
    ran.sort_unstable();
    let (mut tools, mut answering, mut until) = (0, 0, Millis::MIN);
    for (start, end, asks) in ran {
        let took = (end - start.max(until)).max(0);
        *(if asks { &mut answering } else { &mut tools }) += took;
        until = until.max(end);
    }
    let Some((start, end)) = span else { return TurnTiming { tools, answering, ..TurnTiming::default() } };
    TurnTiming {
        tools,
        answering,
        model: (end - start - tools - answering).max(0),
        waiting: before.map_or(0, |before| (start - before).max(0)),
    }
}
