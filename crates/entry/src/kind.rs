//! The kinds of lines.

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// The kind of a line. A `type` of a future Claude Code is [`Kind::Unknown`], not an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $variant,)*
            /// An object with an unknown type.
            Unknown,
            /// An object without a type.
            Untyped,
            /// A line that is empty or contains only white space.
            Blank,
            /// A line that is not a JSON object.
            Bad,
        }

        impl Kind {
            /// Every kind that has a `type` name.
            pub const NAMED: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the kind of lines with this `type`.
            pub fn named(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }

            /// Returns the `type` of such lines; `None` for the kinds that the format does not name.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// A prompt, a tool result, or text that Claude Code added in the role of the user.
    User = "user",
    /// One block, rarely several, of a reply of the model.
    Assistant = "assistant",
    /// An event: compaction, hook summary, API error, local command and others.
    System = "system",
    /// A progress report of a tool, hook or agent (up to 2.1.81).
    Progress = "progress",
    /// Context that was attached to the conversation (from 2.1.92).
    Attachment = "attachment",
    /// A title for a conversation, written by old versions.
    Summary = "summary",
    /// The backups of files at the time of a prompt.
    FileHistorySnapshot = "file-history-snapshot",
    /// The backup of one more file for a snapshot (from 2.1.220).
    FileHistoryDelta = "file-history-delta",
    /// A prompt that was queued, or taken from the queue.
    QueueOperation = "queue-operation",
    /// The last prompt and the current leaf.
    LastPrompt = "last-prompt",
    /// A title that the user set.
    CustomTitle = "custom-title",
    /// A title that a model generated.
    AiTitle = "ai-title",
    /// A label that the user set.
    Tag = "tag",
    /// The name of the agent that runs the session.
    AgentName = "agent-name",
    /// The colour of the agent that runs the session.
    AgentColor = "agent-color",
    /// The settings of the agent that runs the session.
    AgentSetting = "agent-setting",
    /// The input mode.
    Mode = "mode",
    /// The permission mode.
    PermissionMode = "permission-mode",
    /// A pull request that was created in the session.
    PrLink = "pr-link",
    /// An artifact that was published.
    FrameLink = "frame-link",
    /// Placeholders for content that was moved out of the log.
    ContentReplacement = "content-replacement",
    /// Claude Code's own totals of tokens and cost.
    CostState = "cost-state",
    /// Names of the tools used so far.
    ToolsUsed = "tools-used",
    /// Internal bookkeeping of Claude Code.
    AtisLatch = "atis-latch",
    /// A link to a session on another machine.
    BridgeSession = "bridge-session",
    /// Entries to be excluded from the history.
    HistorySuppression = "history-suppression",
    /// A request to the API, with its parts by reference.
    ApiRequest = "api-request",
    /// The system prompt and tools of requests.
    ApiRequestShape = "api-request-shape",
    /// A message of a request to the API.
    ApiRequestBlob = "api-request-blob",
    /// The session was moved to another working directory (from 2.1.220).
    Relocated = "relocated",
    /// The worktree that the session is in (from 2.1.220).
    WorktreeState = "worktree-state",
    /// The conversation that a sub-agent starts from (from 2.1.325).
    ForkContextRef = "fork-context-ref",
}
