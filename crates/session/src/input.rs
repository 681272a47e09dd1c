//! What a user entry is: much that arrives with the role `user` was not typed by anybody.

use threadline_entry::{Entry, Kind};

/// The kind of a user entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// Typed by the person, or given by a script in their place.
    Prompt,
    /// A prompt that came with lines selected in the editor.
    IdeSelection,
    /// A prompt that came with the name of the file open in the editor.
    IdeOpenedFile,
    /// `/command`.
    SlashCommand,
    /// `!command`.
    BashInput,
    /// A prompt typed while the model was at work.
    QueuedPrompt,
    /// A message of another agent of the team.
    TeammateMessage,
    /// Word of a task that ran in the background.
    TaskNotification,
    /// What a tool returned.
    ToolResult,
    /// What a slash command printed.
    CommandOutput,
    /// What a `!command` printed.
    BashOutput,
    /// The person stopped the model.
    Interrupt,
    /// The summary that stands for a compacted conversation.
    CompactSummary,
    /// Text that Claude Code put in: a skill, a caveat, a reminder.
    Meta,
}

/// Tags that a machine text begins with, and what it is.
const TAGS: &[(&str, Input)] = &[
    ("<command-name>", Input::SlashCommand),
    ("<command-message>", Input::SlashCommand),
    ("<local-command-stdout>", Input::CommandOutput),
    ("<local-command-stderr>", Input::CommandOutput),
    ("<local-command-caveat>", Input::Meta),
    (CAUTION, Input::Meta),
    ("<bash-input>", Input::BashInput),
    ("<bash-stdout>", Input::BashOutput),
    ("<bash-stderr>", Input::BashOutput),
    ("<task-notification", Input::TaskNotification),
    ("<agent-notification", Input::TaskNotification),
    ("<teammate-message", Input::TeammateMessage),
    ("<session-start-hook>", Input::Meta),
    ("<user-prompt-submit-hook>", Input::Meta),
    ("<system-reminder>", Input::Meta),
    ("<tick>", Input::Meta),
    ("<goal>", Input::Meta),
    ("[Request interrupted by user", Input::Interrupt),
];

impl Input {
    /// What a text is that begins with a tag.
    pub(crate) fn of_tag(text: &str) -> Option<Self> {
        let text = text.trim_start();
        TAGS.iter().find(|(tag, _)| text.starts_with(tag)).map(|(_, input)| *input)
    }

    /// The kind of a `user` entry that holds no tool result.
    pub fn of_user(entry: &Entry) -> Self {
        if entry.flag("isCompactSummary") {
            return Self::CompactSummary;
        }
        let Some(content) = entry.message().and_then(|message| message.content()) else {
            return if entry.flag("isMeta") { Self::Meta } else { Self::Prompt };
        };
        if let Some(text) = content.as_str() {
            let input = Self::of_tag(&text).unwrap_or_else(|| Self::of_text(&text));
            return if input == Self::Prompt && entry.flag("isMeta") { Self::Meta } else { input };
        }
        let mut ide = None;
        let mut first = None;
        let mut typed = false;
        for text in content.blocks().filter(|block| block.is("text")).filter_map(|block| block.text()) {
            match (Self::of_tag(&text), Self::of_text(&text)) {
                (Some(input), _) => first = first.or(Some(input)),
                (None, Self::Prompt) => typed = true,
                (None, context) => ide = ide.or(Some(context)),
            }
        }
        if entry.flag("isMeta") {
            return Self::Meta;
        }
        match (typed, ide, first) {
            (_, Some(context), _) => context,
            (false, None, Some(input)) => input,
            _ => Self::Prompt,
        }
    }

    /// A prompt, or the editor's context around one.
    fn of_text(text: &str) -> Self {
        if text.contains("<ide_selection>") {
            Self::IdeSelection
        } else if text.contains("<ide_opened_file>") {
            Self::IdeOpenedFile
        } else {
            Self::Prompt
        }
    }

    /// The kind of an `attachment` entry, where it stands for something the user said.
    pub fn of_attachment(entry: &Entry) -> Option<Self> {
        let line: threadline_entry::lens::AttachmentLine<'_> = entry.lens()?;
        let body = line.attachment()?;
        if entry.kind() != Kind::Attachment || body.kind()? != "queued_command" {
            return None;
        }
        let prompt = body.prompt().and_then(|prompt| prompt.as_str()).unwrap_or_default();
        match (body.command_mode().as_deref(), Self::of_tag(&prompt)) {
            (Some("task-notification"), _) | (_, Some(Self::TaskNotification)) => {
                Some(Self::TaskNotification)
            }
            _ => Some(Self::QueuedPrompt),
        }
    }

    /// Whether the editor says something in it.
    pub fn is_from_editor(self) -> bool {
        matches!(self, Self::IdeSelection | Self::IdeOpenedFile)
    }

    /// Whether a person typed it.
    pub fn is_typed(self) -> bool {
        matches!(
            self,
            Self::Prompt
                | Self::IdeSelection
                | Self::IdeOpenedFile
                | Self::SlashCommand
                | Self::BashInput
                | Self::QueuedPrompt
        )
    }

    /// Whether a new turn begins with it. A queued prompt steers the turn that is under way.
    pub fn opens_turn(self) -> bool {
        (self.is_typed() && self != Self::QueuedPrompt)
            || matches!(self, Self::TeammateMessage | Self::TaskNotification)
    }

    /// The word for it, as our JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::IdeSelection => "ide_selection",
            Self::IdeOpenedFile => "ide_opened_file",
            Self::SlashCommand => "slash_command",
            Self::BashInput => "bash_input",
            Self::QueuedPrompt => "queued_prompt",
            Self::TeammateMessage => "teammate_message",
            Self::TaskNotification => "task_notification",
            Self::ToolResult => "tool_result",
            Self::CommandOutput => "command_output",
            Self::BashOutput => "bash_output",
            Self::Interrupt => "interrupt",
            Self::CompactSummary => "compact_summary",
            Self::Meta => "meta",
        }
    }
}

/// How the word of caution begins that Claude Code puts before a command and what it printed.
const CAUTION: &str = "Caveat: The messages below were generated by the user while running local commands";

/// Whether a text is the word of caution that stands before a command.
pub fn is_caution(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<local-command-caveat>") || text.starts_with(CAUTION)
}

/// What the editor says, if the whole text is that.
pub fn editor_context(text: &str) -> Option<&str> {
    let text = text.trim();
    ["ide_opened_file", "ide_selection"].iter().find_map(|tag| {
        let inner = text.strip_prefix(&format!("<{tag}>"))?.strip_suffix(&format!("</{tag}>"))?;
        Some(inner.trim())
    })
}
