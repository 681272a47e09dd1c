//! What a user entry is: much that arrives with the role `user` was not typed by anybody.

use threadline_entry::lens::{System, User};
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
    /// The same, delivered while the model was at work.
    QueuedNotification,
    /// An event that the program around the session sent, such as the state of a CI run.
    HostEvent,
    /// What a tool returned.
    ToolResult,
    /// What a slash command printed.
    CommandOutput,
    /// What a `!command` printed.
    BashOutput,
    /// The person stopped the model.
    Interrupt,
    /// A hook stopped the model.
    HookStop,
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
    ("<ci-monitor-event", Input::HostEvent),
    ("<session-start-hook>", Input::Meta),
    ("<user-prompt-submit-hook>", Input::Meta),
    ("<system-reminder>", Input::Meta),
    ("<tick>", Input::Meta),
    ("<goal>", Input::Meta),
    ("[Request interrupted by user", Input::Interrupt),
    ("Operation stopped by hook", Input::HookStop),
];

impl Input {
    /// What a text is that begins with a tag.
    pub(crate) fn of_tag(text: &str) -> Option<Self> {
        let text = text.trim_start();
        TAGS.iter().find(|(tag, _)| text.starts_with(tag)).map(|(_, input)| *input)
    }

    /// The kind of a `user` entry that holds no tool result. Where the line names its source, that decides whether
    /// somebody typed it; otherwise the tags in its text do.
    pub fn of_user(entry: &Entry) -> Self {
        if entry.flag("isCompactSummary") {
            return Self::CompactSummary;
        }
        let input = Self::of_content(entry);
        let is_machine_text = matches!(
            input,
            Self::Meta | Self::Interrupt | Self::HookStop | Self::TaskNotification | Self::HostEvent
        );
        match Source::of(entry) {
            Some(Source::Person) if is_machine_text && !entry.flag("isMeta") => Self::Prompt,
            Some(Source::Program) if input.is_prompt() => Self::HostEvent,
            _ => input,
        }
    }

    /// The kind of a `user` entry by what it says.
    fn of_content(entry: &Entry) -> Self {
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
        if entry.flag("isMeta") && first != Some(Self::HookStop) {
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
                Some(Self::QueuedNotification)
            }
            _ => Some(Self::QueuedPrompt),
        }
    }

    /// The kind of a `system` entry of subtype `local_command`; `None` for other entries.
    pub fn of_system(entry: &Entry) -> Option<Self> {
        let line: System<'_> = entry.lens()?;
        if entry.kind() != Kind::System || line.subtype()? != "local_command" {
            return None;
        }
        let content = line.content().unwrap_or_default();
        let tagged =
            Self::of_tag(&content).filter(|input| input.is_command_line() || input.is_command_output());
        let named =
            || if content.contains("<command-name>") { Self::SlashCommand } else { Self::CommandOutput };
        Some(tagged.unwrap_or_else(named))
    }

    /// Whether the editor says something in it.
    pub fn is_from_editor(self) -> bool {
        matches!(self, Self::IdeSelection | Self::IdeOpenedFile)
    }

    /// Whether it is a prompt, with or without what the editor says.
    pub fn is_prompt(self) -> bool {
        self == Self::Prompt || self.is_from_editor()
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

    /// Whether it is a command: `/model`, `!ls`.
    pub fn is_command_line(self) -> bool {
        matches!(self, Self::SlashCommand | Self::BashInput)
    }

    /// Whether it is the output of such a command.
    pub fn is_command_output(self) -> bool {
        matches!(self, Self::CommandOutput | Self::BashOutput)
    }

    /// Whether it is word of a task that ran in the background.
    pub fn is_task_notification(self) -> bool {
        matches!(self, Self::TaskNotification | Self::QueuedNotification)
    }

    /// Whether a turn that ends with it is finished, though no model had the last word.
    pub(crate) fn ends_turn(self) -> bool {
        self.is_command_output() || matches!(self, Self::Interrupt | Self::HookStop)
    }

    /// Whether a new turn begins with it. A queued prompt steers the turn that is under way.
    pub fn opens_turn(self) -> bool {
        (self.is_typed() && self != Self::QueuedPrompt)
            || matches!(self, Self::TeammateMessage | Self::TaskNotification | Self::HostEvent)
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
            Self::QueuedNotification => "queued_notification",
            Self::HostEvent => "host_event",
            Self::ToolResult => "tool_result",
            Self::CommandOutput => "command_output",
            Self::BashOutput => "bash_output",
            Self::Interrupt => "interrupt",
            Self::HookStop => "hook_stop",
            Self::CompactSummary => "compact_summary",
            Self::Meta => "meta",
        }
    }
}

/// Who gave a prompt, as newer versions of Claude Code say on its line.
enum Source {
    /// Somebody, at the keyboard or through the SDK.
    Person,
    /// A program: a task that ended, or the host of the session.
    Program,
}

impl Source {
    fn of(entry: &Entry) -> Option<Self> {
        let line: User<'_> = entry.lens()?;
        let turn_origin = line.turn_origin().and_then(|origin| origin.as_str());
        let named = [line.prompt_source(), turn_origin, line.origin().and_then(|origin| origin.kind())];
        named.into_iter().flatten().find_map(|name| match &*name {
            "typed" | "sdk" | "human" => Some(Self::Person),
            "system" | "host_synthetic" => Some(Self::Program),
            _ => None,
        })
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
