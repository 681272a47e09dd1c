//! Commands of the screen: prompts that begin with a slash.

/// A command that the screen runs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScreenCommand {
    Agents,
    Exit,
    Export,
    Help,
    Mcp,
    Memory,
    Model,
    Permissions,
    Rename,
    Resume,
    Rewind,
    Status,
    Tasks,
    Theme,
    Todos,
    Vim,
}

/// The commands with their descriptions. Those without a [`ScreenCommand`] are commands of the agent.
pub(crate) const COMMANDS: &[(&str, &str, Option<ScreenCommand>)] = &[
    ("agents", "list the kinds of sub-agents", Some(ScreenCommand::Agents)),
    ("clear", "start a new conversation", None),
    ("compact", "replace the conversation by a summary [instructions]", None),
    ("context", "show how full the context window is", None),
    ("cost", "show tokens and cost", None),
    ("exit", "leave", Some(ScreenCommand::Exit)),
    ("export", "write the conversation to a Markdown file [file]", Some(ScreenCommand::Export)),
    ("help", "show keys and commands", Some(ScreenCommand::Help)),
    ("mcp", "list the MCP servers", Some(ScreenCommand::Mcp)),
    ("memory", "list the memory files", Some(ScreenCommand::Memory)),
    ("model", "show or change the model [name]", Some(ScreenCommand::Model)),
    ("permissions", "list, add and remove permission rules", Some(ScreenCommand::Permissions)),
    ("rename", "give the session a title <title>", Some(ScreenCommand::Rename)),
    ("resume", "continue another session", Some(ScreenCommand::Resume)),
    ("rewind", "return to an earlier prompt", Some(ScreenCommand::Rewind)),
    ("status", "show session, model and settings", Some(ScreenCommand::Status)),
    ("tasks", "list and stop background commands", Some(ScreenCommand::Tasks)),
    ("theme", "change the colours [terminal, dark, light, none]", Some(ScreenCommand::Theme)),
    ("todos", "show or hide the list of things to do", Some(ScreenCommand::Todos)),
    ("vim", "switch vi keys on or off", Some(ScreenCommand::Vim)),
];

/// Other names of commands.
const ALIASES: &[(&str, ScreenCommand)] = &[
    ("quit", ScreenCommand::Exit),
    ("?", ScreenCommand::Help),
    ("bashes", ScreenCommand::Tasks),
    ("continue", ScreenCommand::Resume),
];

impl ScreenCommand {
    /// Returns the command of a prompt, and its arguments.
    pub(crate) fn parse(prompt: &str) -> Option<(Self, &str)> {
        let rest = prompt.strip_prefix('/')?;
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let known = COMMANDS.iter().find(|(known, ..)| *known == name).and_then(|(.., command)| *command);
        let alias = || ALIASES.iter().find(|(known, _)| *known == name).map(|(_, command)| *command);
        known.or_else(alias).map(|command| (command, arguments.trim()))
    }

    /// Whether the command can run while the model works.
    pub(crate) fn is_always_available(self) -> bool {
        !matches!(self, Self::Resume | Self::Rewind)
    }
}

/// The keys, for `/help`.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while it works: queue"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "new line"),
    ("Esc", "interrupt; twice in an empty prompt: rewind"),
    ("Up", "while prompts are queued: change them"),
    ("Ctrl-B", "let a running command continue in the background"),
    ("Ctrl-S", "put the prompt aside, or bring it back"),
    ("Ctrl-V", "attach the image of the clipboard"),
    ("Ctrl-C", "clear the prompt, or interrupt; twice: leave"),
    ("Shift-Tab", "next permission mode"),
    ("Up, Down", "move, or recall earlier prompts"),
    ("Ctrl-R", "search earlier prompts"),
    ("Ctrl-O", "show the whole session in a pager"),
    ("Ctrl-G", "edit the prompt in $EDITOR"),
    ("Ctrl-T", "show or hide the list of things to do"),
    ("Ctrl-Z", "suspend"),
    ("Ctrl-A Ctrl-E Alt-B Alt-F", "begin and end of the line, word back and forward"),
    ("Ctrl-K Ctrl-U Ctrl-W Ctrl-Y Ctrl-_", "kill to the end, to the beginning, a word; insert it; undo"),
    ("/", "commands"),
    ("@", "files"),
    ("!", "run a shell command"),
    ("#", "add a line to CLAUDE.md"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_parsed_as_commands() {
        assert_eq!(ScreenCommand::parse("/model sonnet"), Some((ScreenCommand::Model, "sonnet")));
        assert_eq!(ScreenCommand::parse("/quit"), Some((ScreenCommand::Exit, "")));
        for other in ["/clear", "/models", "model", "/tmp/x"] {
            assert_eq!(ScreenCommand::parse(other), None, "{other}");
        }
        assert!(COMMANDS.is_sorted_by_key(|(name, ..)| *name));
    }
}
