//! Summarises a tool call in one line: tool, subject and result.

use threadline_entry::Json;
use threadline_entry::lens::{EditResult, PatchHunk};
use threadline_session::{Session, ToolCall, ToolOutcome};

use super::extract::{WordFrequency, cut, extract};

/// A tool call, summarised in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallFact {
    /// The tool, such as `Read` or `Bash`.
    pub(crate) tool: String,
    /// The subject: a path, a command, a pattern.
    pub(crate) subject: String,
    /// The result, if it is worth reporting.
    pub(crate) outcome: String,
    /// Whether the call succeeded.
    pub(crate) ok: bool,
}

impl CallFact {
    /// Formats the line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.tool.clone();
        if !self.subject.is_empty() {
            line.push(' ');
            line.push_str(&self.subject);
        }
        if !self.outcome.is_empty() {
            line.push_str(" → ");
            line.push_str(&self.outcome);
        }
        line
    }
}

/// The size limits of a fact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FactLimits {
    /// Bytes of the subject.
    pub(crate) subject: usize,
    /// Bytes of a successful result.
    pub(crate) outcome: usize,
    /// Bytes of a sub-agent's answer.
    pub(crate) agent: usize,
}

/// Bytes of an error message. Errors are always included, so that they are not repeated.
const MAX_ERROR: usize = 200;
/// Bytes of the person's reason for a refusal.
const MAX_REFUSAL: usize = 2000;

/// Returns whether a tool maintains the to-do list, which is summarised once, in its final state.
pub(crate) fn is_todo_tool(name: &str) -> bool {
    matches!(name, "TodoWrite" | "TodoRead" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet")
}

/// Summarises a call.
pub(crate) fn call_fact(
    session: &Session,
    call: &ToolCall,
    root: Option<&str>,
    room: FactLimits,
) -> CallFact {
    let input = call.block(session).and_then(|block| block.input());
    let text = |key: &str| input.and_then(|input| input.get(key)?.as_str()).map(|text| text.into_owned());
    let path = |key: &str| text(key).map(|path| relative_to(&path, root).to_owned());
    let said =
        || call.result(session).and_then(|block| block.content()).map(|content| content.text().into_owned());
    let (what, on) = match &*call.name {
        "Bash" | "PowerShell" => {
            ("Bash", text("command").map(|command| format!("`{}`", one_line(&command, room.subject))))
        }
        "Read" | "Write" | "Edit" | "MultiEdit" => (&*call.name, path("file_path")),
        "NotebookEdit" => ("NotebookEdit", path("notebook_path")),
        "Grep" | "Glob" => {
            let place = path("path").map(|place| format!(" in {place}")).unwrap_or_default();
            (
                &*call.name,
                text("pattern").map(|pattern| format!("`{}`{place}", one_line(&pattern, room.subject))),
            )
        }
        "Task" | "Agent" => {
            let kind = text("subagent_type").map(|kind| format!(" ({kind})")).unwrap_or_default();
            ("Agent", text("description").map(|what| format!("\"{}\"{kind}", one_line(&what, room.subject))))
        }
        "WebFetch" => ("WebFetch", text("url")),
        "WebSearch" | "ToolSearch" => (&*call.name, text("query").map(|query| format!("\"{query}\""))),
        "Skill" => ("Skill", text("skill").or_else(|| text("command"))),
        "AskUserQuestion" | "ExitPlanMode" => (&*call.name, None),
        name => (name, input.and_then(first_text).map(|text| one_line(&text, room.subject))),
    };
    let outcome = call.outcome(session);
    let result_text = match outcome {
        ToolOutcome::Ok => match &*call.name {
            "Edit" | "MultiEdit" | "Write" => changed_lines(session, call),
            "Read" | "Skill" | "ToolSearch" | "Glob" | "NotebookEdit" => String::new(),
            "AskUserQuestion" => {
                said().map(|said| cut(said.trim(), MAX_REFUSAL).into_owned()).unwrap_or_default()
            }
            "ExitPlanMode" => "plan approved by the user".to_owned(),
            "Bash" | "PowerShell" => said().map(|said| last_line(&said, room.outcome)).unwrap_or_default(),
            "Task" | "Agent" => said().map(|said| agent_answer(&said, room.agent)).unwrap_or_default(),
            _ => said().map(|said| one_line(&said, room.outcome)).unwrap_or_default(),
        },
        ToolOutcome::Error => {
            let said = said().unwrap_or_default();
            format!("failed: {}", error_line(&said))
        }
        ToolOutcome::Denied => match said().as_deref().and_then(reason) {
            Some(reason) => format!("denied by the user: {}", cut(reason, MAX_REFUSAL)),
            None => "denied by the user".to_owned(),
        },
        ToolOutcome::Interrupted => "interrupted".to_owned(),
        ToolOutcome::Missing => "no result".to_owned(),
    };
    let on = on.map(|on| cut(&on, room.subject.max(200)).into_owned()).unwrap_or_default();
    CallFact { tool: what.to_owned(), subject: on, outcome: result_text, ok: outcome == ToolOutcome::Ok }
}

/// Shortens the answer of a sub-agent. A confirmation of its start is not an answer.
fn agent_answer(said: &str, most: usize) -> String {
    let said = said.split("\nagentId:").next().unwrap_or(said);
    if said.contains("launched successfully") {
        return "started in the background".to_owned();
    }
    extract(&[said], 0.3, most, &WordFrequency::default()).replace('\n', " ")
}

/// Returns the person's reason for refusing a call.
fn reason(said: &str) -> Option<&str> {
    let (_, reason) = said.split_once("the user said:")?;
    let reason = reason.split("\n\nNote:").next().unwrap_or(reason);
    Some(reason.trim()).filter(|reason| !reason.is_empty())
}

/// Returns the line of an error message that describes the error, else its first line.
fn error_line(said: &str) -> String {
    let said = said.trim().trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let code = lines.clone().next().filter(|line| line.starts_with("Exit code"));
    let names_error = |line: &&str| {
        let lower = line.to_lowercase();
        ["error", "fail", "panic", "fatal", "not found", "no such", "denied", "cannot"]
            .iter()
            .any(|word| lower.contains(word))
    };
    let error_text = lines.clone().find(names_error).or_else(|| lines.nth(usize::from(code.is_some())));
    match (code, error_text) {
        (Some(code), Some(line)) if code != line => cut(&format!("{code}, {line}"), MAX_ERROR).into_owned(),
        (Some(line), _) | (None, Some(line)) => cut(line, MAX_ERROR).into_owned(),
        (None, None) => "no error message".to_owned(),
    }
}

/// Returns the numbers of added and removed lines.
fn changed_lines(session: &Session, call: &ToolCall) -> String {
    let record = call.results.first().and_then(|at| at.record(session));
    let patch = record.and_then(|record| record.of::<EditResult<'_>>()?.structured_patch());
    let lines = patch
        .into_iter()
        .flat_map(|patch| patch.iter())
        .flat_map(|hunk: PatchHunk<'_>| hunk.lines().into_iter().flat_map(|lines| lines.iter()));
    let (mut added, mut removed) = (0, 0);
    for line in lines {
        added += usize::from(line.starts_with('+'));
        removed += usize::from(line.starts_with('-'));
    }
    if added + removed > 0 {
        return format!("+{added} −{removed}");
    }
    let content = call.block(session).and_then(|block| block.input()?.get("content")?.as_str());
    content.map(|content| format!("{} lines", content.lines().count())).unwrap_or_default()
}

/// Returns the first string of the input.
fn first_text(input: Json<'_>) -> Option<String> {
    input.members().find_map(|(_, value)| value.as_str()).map(|text| text.into_owned())
}

/// Returns the last line that contains a letter or digit.
fn last_line(text: &str, most: usize) -> String {
    let mut lines =
        text.lines().map(str::trim).filter(|line| most > 0 && line.chars().any(char::is_alphanumeric));
    lines.next_back().map(|line| cut(line, most).into_owned()).unwrap_or_default()
}

/// Joins a text into one line of at most `most` bytes.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    if most == 0 {
        return String::new();
    }
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > most {
            break;
        }
    }
    cut(&line, most).into_owned()
}

/// Returns a path relative to the working directory, if it is inside it.
pub(crate) fn relative_to<'p>(path: &'p str, root: Option<&str>) -> &'p str {
    let below = root.and_then(|root| path.strip_prefix(root)).and_then(|path| path.strip_prefix(['/', '\\']));
    below.unwrap_or(path)
}
