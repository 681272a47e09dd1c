//! Prompts: questions about the sessions, with what was found.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use crate::error::HistoryError;
use crate::history::History;
use crate::tool::tool_named;

/// A prompt with one argument.
struct PromptRow {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    argument: &'static str,
    argument_description: &'static str,
    is_required: bool,
    messages: fn(&History, Option<&str>) -> Result<String, HistoryError>,
}

const PROMPTS: [PromptRow; 3] = [
    PromptRow {
        name: "decisions",
        title: "What did we decide about …",
        description: "Collects what earlier sessions decided about a topic",
        argument: "topic",
        argument_description: "Words to search for",
        is_required: true,
        messages: decisions,
    },
    PromptRow {
        name: "continue",
        title: "Continue from session …",
        description: "Continues the work of an earlier session",
        argument: "session",
        argument_description: "The id or the title of the session",
        is_required: true,
        messages: continue_session,
    },
    PromptRow {
        name: "recent",
        title: "What happened since …",
        description: "Summarises the sessions of the last days",
        argument: "since",
        argument_description: "A day or a span, such as yesterday or 7d. Default: 7d",
        is_required: false,
        messages: recent,
    },
];

/// Returns the prompts.
pub(crate) fn list() -> Vec<Prompt> {
    let prompt = |row: &PromptRow| {
        let argument = PromptArgument::new(row.argument)
            .with_description(row.argument_description)
            .with_required(row.is_required);
        Prompt::new(row.name, Some(row.description), Some(vec![argument])).with_title(row.title)
    };
    PROMPTS.iter().map(prompt).collect()
}

/// Returns the argument of a prompt that names a session.
pub(crate) fn is_session_argument(prompt: &str, argument: &str) -> bool {
    let row = PROMPTS.iter().find(|row| row.name == prompt);
    row.is_some_and(|row| row.argument == argument && argument == "session")
}

/// Returns a prompt with what was found.
pub(crate) fn get(
    history: &History,
    name: &str,
    arguments: Option<&Map<String, Value>>,
) -> Result<GetPromptResult, HistoryError> {
    let row = PROMPTS.iter().find(|row| row.name == name);
    let row = row.ok_or_else(|| HistoryError::new(format!("there is no prompt `{name}`")))?;
    let value = arguments.and_then(|arguments| arguments.get(row.argument)?.as_str());
    let value = value.map(str::trim).filter(|value| !value.is_empty());
    if value.is_none() && row.is_required {
        return Err(HistoryError::new(format!("the argument `{}` is missing", row.argument)));
    }
    let text = (row.messages)(history, value)?;
    let message = PromptMessage::new_text(Role::User, history.mask(&text));
    Ok(GetPromptResult::new(vec![message]).with_description(row.description))
}

/// Runs a tool and returns the text of its answer.
fn answer(history: &History, tool: &str, arguments: Value) -> Result<String, HistoryError> {
    let row = tool_named(tool).ok_or_else(|| HistoryError::new(format!("there is no tool `{tool}`")))?;
    let Value::Object(arguments) = arguments else { return Ok(String::new()) };
    row.text(history, arguments)
}

fn decisions(history: &History, topic: Option<&str>) -> Result<String, HistoryError> {
    // A topic is prose: quotes and slashes have no meaning in it.
    let topic = topic.unwrap_or_default().replace(['"', '/'], " ");
    let found =
        answer(history, "search_sessions", serde_json::json!({ "query": topic, "max_tokens": 5000 }))?;
    Ok(format!(
        "What did we decide about {topic}? The excerpts below are from earlier sessions. Read more of them \
         with read_session where they are not enough, and search with other words if they miss the point. \
         Name the source (session#item) and the date of each decision, and say if decisions contradict each \
         other.\n\n{found}"
    ))
}

fn continue_session(history: &History, session: Option<&str>) -> Result<String, HistoryError> {
    let session = session.unwrap_or_default();
    let outline =
        answer(history, "read_session", serde_json::json!({ "session": session, "max_tokens": 2500 }))?;
    let last = serde_json::json!({ "session": session, "turns": "-2..", "max_tokens": 4000 });
    let last = answer(history, "read_session", last)?;
    Ok(format!(
        "Continue the work of this earlier session. Its outline and its last turns are below; read the \
         turns that matter with read_session, and its edits with session_changes. Compare with the present \
         state of the files before you change anything. Begin with a short summary of what was done and what \
         is left.\n\n{outline}\n{last}"
    ))
}

fn recent(history: &History, since: Option<&str>) -> Result<String, HistoryError> {
    let since = since.unwrap_or("7d");
    let found = answer(history, "list_sessions", serde_json::json!({ "since": since, "max_tokens": 5000 }))?;
    Ok(format!(
        "Summarise what happened in the sessions below (since {since}), by topic. Read the sessions whose \
         title says too little with read_session. Name the sessions that are not finished.\n\n{found}"
    ))
}
