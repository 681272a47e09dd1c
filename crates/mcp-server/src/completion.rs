//! Completion of the arguments of prompts and of addresses.

use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use threadline_app::{LiveError, SessionSelector};

use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::prompt::is_session_argument;

/// Returns the values of an argument that begin with, or contain, the text typed so far.
pub(crate) fn complete(history: &History, request: &CompleteRequestParams) -> CompletionInfo {
    let typed = request.argument.value.trim();
    let name = &*request.argument.name;
    let values = match &request.r#ref {
        Reference::Prompt(prompt) if is_session_argument(&prompt.name, name) => sessions(history, typed),
        Reference::Resource(_) => {
            let session = request.context.as_ref().and_then(|context| context.get_argument("session"));
            match (name, session) {
                ("session", _) => sessions(history, typed),
                ("agent", Some(session)) => agents(history, session, typed).unwrap_or_default(),
                ("turns", Some(session)) => turns(history, session, typed).unwrap_or_default(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    let total = values.len();
    let values: Vec<String> =
        values.iter().take(CompletionInfo::MAX_VALUES).map(|value| history.mask(value)).collect();
    let has_more = total > values.len();
    CompletionInfo::with_pagination(values, u32::try_from(total).ok(), has_more).unwrap_or_default()
}

/// Returns the ids of sessions whose id begins with the text, or whose title contains it.
fn sessions(history: &History, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let is_match = |id: &str, title: Option<String>| {
        id.to_lowercase().starts_with(&typed)
            || title.is_some_and(|title| one_line(&title).to_lowercase().contains(&typed))
    };
    let sessions = history.app.list_in(&history.scope).into_iter();
    sessions
        .filter(|session| is_match(&session.file.id, session.title()))
        .map(|session| session.file.id.to_string())
        .collect()
}

fn agents(history: &History, session: &str, typed: &str) -> Result<Vec<String>, HistoryError> {
    let (file, _) = history.find(session)?;
    history.sessions.with(&history.app, &file.id, |live| {
        let ids = live.family().agents.iter().map(|agent| agent.id.clone());
        Ok(ids.filter(|id| id.starts_with(typed)).collect())
    })
}

fn turns(history: &History, session: &str, typed: &str) -> Result<Vec<String>, HistoryError> {
    let (file, _) = history.find(session)?;
    history.sessions.with(&history.app, &file.id, |live| {
        let plan = live.cached_layout(&SessionSelector::default()).map_err(|error: LiveError| error)?;
        let numbers = (1..=plan.turns.len()).map(|number| number.to_string());
        Ok(numbers.filter(|number| number.starts_with(typed)).collect())
    })
}
