//! A session as JSON lines or Markdown, generated turn by turn while it is sent.

use threadline_app::SessionSelector;
use threadline_view::{Level, Transcript, TurnView, markdown, markdown_turns, wire};

use crate::answer::{Answer, Pieces, Problem};
use crate::ask::{Ask, Form};
use crate::plan::Plan;
use crate::state::State;

pub(crate) fn page(state: &State, ask: &Ask, look: &SessionSelector) -> Result<Answer, Problem> {
    let (id, look, form) = (ask.part(0).to_owned(), look.clone(), ask.form);
    let plan = state.shelf.with(&state.app, &id, |held| {
        held.live.settle();
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
        let told =
            state.shelf.with(&state.app, &id, |held| Ok(held.live.turn(&look, &plan.layout, at - 1)?));
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
