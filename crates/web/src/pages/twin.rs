//! A session as JSON lines or Markdown, generated turn by turn while it is sent.

use std::sync::Arc;

use threadline_view::{AgentView, Body, Level, Transcript, TurnView, markdown, markdown_turns, wire};

use super::session::turns_of;
use crate::answer::{Answer, Pieces, Problem};
use crate::ask::{Ask, Form};
use crate::held::{Held, Look};
use crate::plan::{Plan, Span};
use crate::state::State;

/// Maximum nesting depth of sub-agents.
const DEPTH: usize = 32;

pub(crate) fn page(state: &State, ask: &Ask, look: &Look) -> Result<Answer, Problem> {
    let (id, look, form) = (ask.part(0).to_owned(), look.clone(), ask.form);
    let plan = state.shelf.with(&state.app, &id, |held| {
        held.settle();
        Ok(held.plan(&look)?)
    })?;
    let state = state.clone();
    let turns = plan.layout.turns.len();
    let mut next = 0;
    let pieces = move || {
        next += 1;
        let at = next - 1;
        if at == 0 {
            return Some(head(&plan, form));
        }
        if at > turns {
            return None;
        }
        let told = state.shelf.with(&state.app, &id, |held| turn(held, &look, &plan, at - 1, DEPTH));
        // The head was sent, so what is left is to say where it ends.
        Some(told.map_or_else(|problem| trouble(&problem, form), |told| piece(&told, &plan, form)))
    };
    let kind = if form == Form::Json { "application/x-ndjson" } else { "text/markdown; charset=utf-8" };
    Ok(Answer::Long(kind, Pieces(Box::new(pieces))))
}

fn head(plan: &Plan, form: Form) -> Vec<u8> {
    let told = &plan.layout.told;
    match form {
        Form::Json => line(&wire::show_session(told, plan.layout.turns.len(), plan.layout.branches.len())),
        _ => markdown(&Transcript { agents: Vec::new(), ..told.clone() }, Level::Tools).into_bytes(),
    }
}

fn piece(turn: &TurnView, plan: &Plan, form: Form) -> Vec<u8> {
    let turns = std::slice::from_ref(turn);
    match form {
        Form::Json => {
            let mut out = Vec::new();
            wire::show_turns(turns, None, &mut |object| out.extend(line(&object)));
            out
        }
        _ => {
            format!("\n{}", markdown_turns(turns, plan.layout.told.cwd.as_deref(), Level::Tools)).into_bytes()
        }
    }
}

fn line(object: &impl serde::Serialize) -> Vec<u8> {
    let mut out = serde_json::to_vec(object).unwrap_or_default();
    out.push(b'\n');
    out
}

fn trouble(problem: &Problem, form: Form) -> Vec<u8> {
    match form {
        Form::Json => {
            line(&serde_json::json!({"type": "error", "message": problem.what, "hint": problem.hint}))
        }
        _ => format!("\n{}\n", problem.what).into_bytes(),
    }
}

/// Returns a whole turn, with the turns of its sub-agents.
fn turn(
    held: &mut Held,
    look: &Look,
    plan: &Arc<Plan>,
    at: usize,
    depth: usize,
) -> Result<TurnView, Problem> {
    let spans = [Span { turn: at, entries: 0..plan.layout.turns[at].entries.len() }];
    let told = held.read(look, plan, &spans)?;
    let mut turns = turns_of(plan, &told, &spans);
    let mut turn = turns.pop().ok_or_else(|| Problem::not_found("Turn not found"))?;
    for item in &mut turn.items {
        if let Body::Call(call) = &mut item.body {
            call.agents.iter_mut().try_for_each(|agent| fill(held, agent, depth))?;
        }
    }
    Ok(turn)
}

fn fill(held: &mut Held, agent: &mut AgentView, depth: usize) -> Result<(), Problem> {
    if depth == 0 {
        return Ok(());
    }
    let look = Look { agent: Some(agent.id.clone()), leaf: None };
    let plan = held.plan(&look)?;
    for at in 0..plan.layout.turns.len() {
        agent.turns.push(turn(held, &look, &plan, at, depth - 1)?);
    }
    Ok(())
}
