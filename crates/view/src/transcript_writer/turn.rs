//! Turns: their totals and their items.

use foldhash::HashSet;
use threadline_entry::Millis;
use threadline_session::{EntryIndex, Reply, Session, Thread, Turn};
use threadline_usage::UsageTotals;

use super::TranscriptWriter;
use crate::card::asks_person;
use crate::transcript::{ItemBody, TranscriptItem, TurnTiming, TurnTokens, TurnView, anchor};
use crate::transcript_parts::TurnCursor;

impl TranscriptWriter<'_> {
    /// Builds all turns of a conversation.
    pub(crate) fn turns_of(&self, thread: &Thread) -> Vec<TurnView> {
        let mut cursor = TurnCursor::new(self.session().turns_of(thread), None);
        let mut turns: Vec<TurnView> = std::iter::from_fn(|| cursor.next_turn(self)).collect();
        turns.shrink_to_fit();
        turns
    }

    /// Returns a turn without its items and without the cost of its sub-agents, given the end of the previous
    /// turn.
    pub(crate) fn new_turn(&self, turn: &Turn, previous_end: Option<Millis>) -> TurnView {
        let session = self.session();
        self.turn_header(turn, previous_end, &|reply| reply.usage(session).map(TurnTokens::of))
    }

    /// Builds the items of one line of a turn, or some of them from `first_block` on, and adds the cost of
    /// the sub-agents that it started.
    pub(crate) fn turn_items(
        &self,
        turn: &Turn,
        (entry_idx, first_block): (EntryIndex, usize),
        spent_by_agents: &mut UsageTotals,
    ) -> Vec<TranscriptItem> {
        let mut items = self.items(entry_idx, first_block);
        if turn.number == 1 && turn.prompt.is_some_and(|prompt| entry_idx < prompt) {
            items.iter_mut().for_each(demote_early_command);
        }
        for item in &items {
            if let ItemBody::Call(call) = &item.body {
                call.agents.iter().for_each(|agent| *spent_by_agents += &agent.spent);
            }
        }
        items
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
        let mut known: HashSet<&str> = HashSet::default();
        for reply in turn.replies(session).into_iter().map(|reply| &session.replies()[reply]) {
            tokens += used(reply).unwrap_or_default();
            let model = reply.model.as_deref().filter(|model| !model.starts_with('<'));
            models.extend(model.filter(|model| known.insert(model)).map(str::to_owned));
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
            title: String::new(),
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
    let (mut tools, mut user_response, mut until) = (0, 0, Millis::MIN);
    for (start, end, asks) in ran {
        let took = (end - start.max(until)).max(0);
        *(if asks { &mut user_response } else { &mut tools }) += took;
        until = until.max(end);
    }
    let Some((start, end)) = span else {
        return TurnTiming { tools, user_response, ..TurnTiming::default() };
    };
    TurnTiming {
        tools,
        user_response,
        model: (end - start - tools - user_response).max(0),
        idle: before.map_or(0, |before| (start - before).max(0)),
    }
}
