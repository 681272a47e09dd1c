//! Classification of user entries. Many entries with the role `user` were not typed by a person.

use threadline_entry::lens::{System, User};
use threadline_entry::{Entry, Kind, value};

/// The kind of a user entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InputKind {
    /// Typed by the user, or sent by a script through the SDK.
    Prompt,
    /// A prompt with lines selected in the editor.
    IdeSelection,
    /// A prompt with the name of the file open in the editor.
    IdeOpenedFile,
    /// `/command`.
    SlashCommand,
    /// `!command`.
    BashInput,
    /// A prompt typed while the model was working.
    QueuedPrompt,
    /// A message from another agent of the team.
    TeammateMessage,
    /// A notification from a background task.
    TaskNotification,
    /// A notification from a background task, delivered while the model was working.
    QueuedNotification,
    /// An event sent by the program that hosts the session, such as the state of a CI run.
    HostEvent,
    /// The result of a tool call.
    ToolResult,
    /// The output of a slash command.
    CommandOutput,
    /// The output of a `!command`.
    BashOutput,
    /// The user interrupted the model.
    Interrupt,
    /// A hook stopped the model.
    HookStop,
    /// The summary that replaces a compacted conversation.
    CompactSummary,
    /// Text injected by Claude Code: a skill, a caveat, a reminder.
    Meta,
}

/// Prefixes of generated text, and the kind of input that each indicates.
const TAGS: &[(&str, InputKind)] = &[
    ("<command-name>", InputKind::SlashCommand),
    ("<command-message>", InputKind::SlashCommand),
    ("<local-command-stdout>", InputKind::CommandOutput),
    ("<local-command-stderr>", InputKind::CommandOutput),
    ("<local-command-caveat>", InputKind::Meta),
    (CAVEAT_PREFIX, InputKind::Meta),
    ("<bash-input>", InputKind::BashInput),
    ("<bash-stdout>", InputKind::BashOutput),
    ("<bash-stderr>", InputKind::BashOutput),
    ("<task-notification", InputKind::TaskNotification),
    ("<agent-notification", InputKind::TaskNotification),
    ("<teammate-message", InputKind::TeammateMessage),
    ("<ci-monitor-event", InputKind::HostEvent),
    ("<session-start-hook>", InputKind::Meta),
    ("<user-prompt-submit-hook>", InputKind::Meta),
    ("<system-reminder>", InputKind::Meta),
    ("<tick>", InputKind::Meta),
    ("<goal>", InputKind::Meta),
    ("[Request interrupted by user", InputKind::Interrupt),
    ("Operation stopped by hook", InputKind::HookStop),
];

impl InputKind {
    /// Returns the kind of a text that begins with one of the [`TAGS`].
    pub(crate) fn of_tag(text: &str) -> Option<Self> {
        let text = text.trim_start();
        TAGS.iter().find(|(tag, _)| text.starts_with(tag)).map(|(_, input)| *input)
    }

    /// Returns the kind of a `user` entry that contains no tool result.
    ///
    /// If the line records its source, that decides whether it was typed. Otherwise the tags in its text
    /// do.
    pub fn of_user(entry: &Entry) -> Self {
        if entry.is_compact_summary() {
            return Self::CompactSummary;
        }
        if entry.lens::<User<'_>>().and_then(|line| line.repeats_compact_summary()) == Some(true) {
            return Self::Meta;
        }
        let input = Self::of_content(entry);
        let is_machine_text = matches!(
            input,
            Self::Meta | Self::Interrupt | Self::HookStop | Self::TaskNotification | Self::HostEvent
        );
        match PromptSource::of(entry) {
            Some(PromptSource::Person) if is_machine_text && !entry.is_meta() => Self::Prompt,
            Some(PromptSource::Program) if input.is_prompt() => Self::HostEvent,
            _ => input,
        }
    }

    /// Returns the kind of a `user` entry, determined from its content and its `isMeta` flag.
    fn of_content(entry: &Entry) -> Self {
        let Some(content) = entry.message().and_then(|message| message.content()) else {
            return if entry.is_meta() { Self::Meta } else { Self::Prompt };
        };
        if let Some(text) = content.as_str() {
            let input = Self::of_tag(&text).unwrap_or_else(|| Self::of_text(&text));
            return if input == Self::Prompt && entry.is_meta() { Self::Meta } else { input };
        }
        let mut ide = None;
        let mut first = None;
        let mut typed = false;
        for text in content.blocks().filter(|block| block.is(value::TEXT)).filter_map(|block| block.text()) {
            match (Self::of_tag(&text), Self::of_text(&text)) {
                (Some(input), _) => first = first.or(Some(input)),
                (None, Self::Prompt) => typed = true,
                (None, context) => ide = ide.or(Some(context)),
            }
        }
        if entry.is_meta() && first != Some(Self::HookStop) {
            return Self::Meta;
        }
        match (typed, ide, first) {
            (_, Some(context), _) => context,
            (false, None, Some(input)) => input,
            _ => Self::Prompt,
        }
    }

    /// Returns the kind of a text without a tag: a prompt, or one with editor context.
    fn of_text(text: &str) -> Self {
        if text.contains("<ide_selection>") {
            Self::IdeSelection
        } else if text.contains("<ide_opened_file>") {
            Self::IdeOpenedFile
        } else {
            Self::Prompt
        }
    }

    /// Returns the kind of an `attachment` entry that contains queued input. `None` for other entries.
    pub fn of_attachment(entry: &Entry) -> Option<Self> {
        let line: threadline_entry::lens::AttachmentLine<'_> = entry.lens()?;
        let body = line.attachment()?;
        if entry.kind() != Kind::Attachment || body.kind()? != value::QUEUED_COMMAND {
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

    /// Returns the kind of a `system` entry of subtype `local_command`. `None` for other entries.
    pub fn of_system(entry: &Entry) -> Option<Self> {
        let line: System<'_> = entry.lens()?;
        if entry.kind() != Kind::System || line.subtype()? != value::LOCAL_COMMAND {
            return None;
        }
        let content = line.content().unwrap_or_default();
        let tagged =
            Self::of_tag(&content).filter(|input| input.is_command_line() || input.is_command_output());
        let named =
            || if content.contains("<command-name>") { Self::SlashCommand } else { Self::CommandOutput };
        Some(tagged.unwrap_or_else(named))
    }

    /// Returns whether the input includes editor context.
    pub fn is_from_editor(self) -> bool {
        matches!(self, Self::IdeSelection | Self::IdeOpenedFile)
    }

    /// Returns whether the input is a prompt, with or without editor context.
    pub fn is_prompt(self) -> bool {
        self == Self::Prompt || self.is_from_editor()
    }

    /// Returns whether a person typed the input.
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

    /// Returns whether the input is a command: `/model`, `!ls`.
    pub fn is_command_line(self) -> bool {
        matches!(self, Self::SlashCommand | Self::BashInput)
    }

    /// Returns whether the input is the output of a command.
    pub fn is_command_output(self) -> bool {
        matches!(self, Self::CommandOutput | Self::BashOutput)
    }

    /// Returns whether the input is a notification from a background task.
    pub fn is_task_notification(self) -> bool {
        matches!(self, Self::TaskNotification | Self::QueuedNotification)
    }

    /// Returns whether a turn that ends with this input is finished, although no reply follows it.
    pub(crate) fn ends_turn(self) -> bool {
        self.is_command_output() || matches!(self, Self::Interrupt | Self::HookStop)
    }

    /// Returns whether the input opens a new turn. A queued prompt does not: it steers the current turn.
    pub fn opens_turn(self) -> bool {
        (self.is_typed() && self != Self::QueuedPrompt)
            || matches!(self, Self::TeammateMessage | Self::TaskNotification | Self::HostEvent)
    }

    /// Returns the name used in the public JSON.
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

/// The source of a prompt, which newer versions of Claude Code record on its line.
enum PromptSource {
    /// A person, at the keyboard or through the SDK.
    Person,
    /// A program: a finished task, or the host of the session.
    Program,
}

impl PromptSource {
    fn of(entry: &Entry) -> Option<Self> {
        let line: User<'_> = entry.lens()?;
        // Programs that use the SDK record it as the source of notifications, too.
        if line.origin().and_then(|origin| origin.kind()).is_some_and(|kind| kind == "task-notification") {
            return Some(Self::Program);
        }
        let turn_origin = line.turn_origin().and_then(|origin| origin.as_str());
        let named = [line.prompt_source(), turn_origin, line.origin().and_then(|origin| origin.kind())];
        named.into_iter().flatten().find_map(|name| match &*name {
            "typed" | "sdk" | "human" => Some(Self::Person),
            "system" | "host_synthetic" => Some(Self::Program),
            _ => None,
        })
    }
}

/// The prefix of the caveat that Claude Code inserts before a command and its output.
const CAVEAT_PREFIX: &str =
    "Caveat: The messages below were generated by the user while running local commands";

/// Returns whether a text is the caveat before a local command.
pub fn is_command_caveat(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<local-command-caveat>") || text.starts_with(CAVEAT_PREFIX)
}

/// Returns the content of an editor context tag, if the tag is the whole text.
pub fn editor_context(text: &str) -> Option<&str> {
    let text = text.trim();
    ["ide_opened_file", "ide_selection"].iter().find_map(|tag| {
        let inner = text.strip_prefix(&format!("<{tag}>"))?.strip_suffix(&format!("</{tag}>"))?;
        Some(inner.trim())
    })
}
