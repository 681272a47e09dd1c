//! Turns: their totals and their items.

use foldhash::HashSet;
use threadline_entry::Millis;
use threadline_session::{Reply, Session, Thread, Turn};
use threadline_usage::UsageTotals;

use super::TranscriptWriter;
use crate::card::asks_person;
use crate::outline::TurnTitle;
use crate::transcript::{ItemBody, TranscriptItem, TurnTiming, TurnTokens, TurnView, anchor};

impl TranscriptWriter<'_> {
    /// Builds all turns of a conversation.
    pub(crate) fn turns_of(&self, thread: &Thread) -> Vec<TurnView> {
        let turns = self.session().turns_of(thread);
        let previous = std::iter::once(None).chain(turns.iter().map(Some));
        turns.iter().zip(previous).map(|(turn, previous)| self.turn(turn, previous)).collect()
    }

    /// Builds a turn with its items, given the previous turn.
    pub(crate) fn turn(&self, turn: &Turn, previous: Option<&Turn>) -> TurnView {
        let session = self.session();
        let previous_end = previous.and_then(|previous| previous.span(session)).map(|(_, end)| end);
        let mut view =
            self.turn_header(turn, previous_end, &|reply| reply.usage(session).map(TurnTokens::of));
        let mut title = TurnTitle::default();
        for &entry_idx in &turn.entries {
            let mut items = self.items(entry_idx);
            if turn.number == 1 && turn.prompt.is_some_and(|prompt| entry_idx < prompt) {
                items.iter_mut().for_each(demote_early_command);
            }
            for item in &items {
                title.add(&item.body);
                if let ItemBody::Call(call) = &item.body {
                    call.agents.iter().for_each(|agent| view.spent_by_agents += &agent.spent);
                }
            }
            view.items.extend(items);
        }
        view.title = title.into_text();
        view.spent += &view.spent_by_agents;
        view
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
