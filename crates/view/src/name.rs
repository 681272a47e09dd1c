//! Short display names.

use threadline_session::{InputKind, ToolOutcome};

/// Returns the label of a user text; `None` for input of the person, which needs no label.
pub fn input_name(input: InputKind) -> Option<&'static str> {
    Some(match input {
        InputKind::Prompt
        | InputKind::IdeSelection
        | InputKind::IdeOpenedFile
        | InputKind::SlashCommand
        | InputKind::BashInput => return None,
        InputKind::QueuedPrompt => "queued",
        InputKind::TeammateMessage => "teammate message",
        InputKind::TaskNotification | InputKind::QueuedNotification => "background task finished",
        InputKind::HostEvent => "event",
        InputKind::ToolResult => "result",
        InputKind::CommandOutput | InputKind::BashOutput => "output",
        InputKind::Interrupt => "interrupted",
        InputKind::HookStop => "stopped by hook",
        InputKind::CompactSummary => "summary",
        InputKind::Meta => "context",
    })
}

/// Returns the display name of an outcome.
pub fn outcome_name(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Missing => "no result",
        other => other.name(),
    }
}

/// Returns the name of a tool without its MCP server prefix.
pub fn short_tool(name: &str) -> &str {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((_, tool)) if !tool.is_empty() => tool,
        _ => name,
    }
}

/// Returns a model's name without the `claude-` prefix and the date: `opus-4-5`.
pub fn short_model(model: &str) -> &str {
    let name = model.strip_prefix("claude-").unwrap_or(model);
    match name.rsplit_once('-') {
        Some((name, date)) if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

/// Returns a path with `~` in place of the user's home directory.
pub fn short_path(path: &str, home: Option<&str>) -> String {
    let home = home.map(|home| home.trim_end_matches(['/', '\\'])).filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with(['/', '\\']) => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened() {
        let models = ["claude-opus-4-5-20251101", "claude-opus-4-5", "gpt-9", "claude-20251101"];
        assert_eq!(models.map(short_model), ["opus-4-5", "opus-4-5", "gpt-9", "20251101"]);
        let paths = ["/home/ada/loom", "/home/ada", "/home/adam", "/srv"];
        assert_eq!(
            paths.map(|path| short_path(path, Some("/home/ada/"))),
            ["~/loom", "~", "/home/adam", "/srv"]
        );
        assert_eq!(short_path("/srv", None), "/srv");
        let tools = ["mcp__loom__weave", "mcp__loom__", "mcp__loom", "Bash"];
        assert_eq!(tools.map(short_tool), ["weave", "mcp__loom__", "mcp__loom", "Bash"]);
    }
}
