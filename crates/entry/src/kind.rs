//! What a line says it is.

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// The type of a line. Types of next week's Claude Code are [`Kind::Unknown`], and no error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $variant,)*
            /// An object with a type that no lens knows.
            Unknown,
            /// An object without a type.
            Untyped,
            /// A line with nothing on it but white space.
            Blank,
            /// A line that is no JSON object.
            Bad,
        }

        impl Kind {
            /// Every type with a name of its own.
            pub const NAMED: &'static [Self] = &[$(Self::$variant),*];

            /// The kind of lines whose `type` is `name`.
            pub fn named(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }

            /// The `type` that such lines carry; `None` for the kinds that are ours.
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
    /// A prompt, a tool result, or text that Claude Code put in the user's mouth.
    User = "user",
    /// A block (rarely several) of a reply of the model.
    Assistant = "assistant",
    /// An event: compaction, hook summary, API error, local command …
    System = "system",
    /// What a tool, hook or agent reported while it ran (up to 2.1.81).
    Progress = "progress",
    /// Context that was attached to the conversation (from 2.1.92).
    Attachment = "attachment",
    /// A title for a conversation, written by old versions.
    Summary = "summary",
    /// Which backups hold the files as they were at a prompt.
    FileHistorySnapshot = "file-history-snapshot",
    /// One file's backup, added to a snapshot (from 2.1.220).
    FileHistoryDelta = "file-history-delta",
    /// A prompt that was queued, or taken from the queue.
    QueueOperation = "queue-operation",
    /// The last prompt and the current leaf.
    LastPrompt = "last-prompt",
    /// A title that a person gave.
    CustomTitle = "custom-title",
    /// A title that a model gave.
    AiTitle = "ai-title",
    /// A label that a person gave.
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
    /// A pull request that came out of the session.
    PrLink = "pr-link",
    /// An artifact that was published.
    FrameLink = "frame-link",
    /// Texts that stand for contents that were moved out.
    ContentReplacement = "content-replacement",
    /// Claude Code's own account of tokens and money.
    CostState = "cost-state",
    /// Names of the tools that were used so far.
    ToolsUsed = "tools-used",
    /// Bookkeeping of Claude Code.
    AtisLatch = "atis-latch",
    /// A bridge to a session elsewhere.
    BridgeSession = "bridge-session",
    /// Entries that are to be left out of the history.
    HistorySuppression = "history-suppression",
    /// A request as it was sent, by reference.
    ApiRequest = "api-request",
    /// The system prompt and tools of requests.
    ApiRequestShape = "api-request-shape",
    /// A message as it was sent in a request.
    ApiRequestBlob = "api-request-blob",
    /// The session was moved to another working directory (from 2.1.220).
    Relocated = "relocated",
    /// The worktree that the session is in (from 2.1.220).
    WorktreeState = "worktree-state",
    /// The conversation that a sub-agent starts from (from 2.1.325).
    ForkContextRef = "fork-context-ref",
}
