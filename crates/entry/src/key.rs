//! The keys of the format that code outside of this crate has to name.
//!
//! Most code reads a line through its [lenses](crate::lens). These constants are for code that cannot: scans
//! that [pick](crate::walk::pick) a few values of a line, byte searches, and edits that replace one member.
//! No other crate spells a key, so a key that Claude Code renames is changed in this crate only.

macro_rules! keys {
    ($($name:ident = $key:literal,)*) => {
        $(
            #[doc = concat!("The key `", $key, "`.")]
            pub const $name: &str = $key;
        )*

        /// The keys in quotes, to search for in the bytes of a line.
        ///
        /// They cannot be part of a string in a line, where quotes are escaped.
        pub mod quoted {
            $(
                #[doc = concat!("The key `\"", $key, "\"`.")]
                pub const $name: &str = concat!("\"", $key, "\"");
            )*
        }

        /// The keys with the value `true`, as Claude Code writes them.
        pub mod set_true {
            $(
                #[doc = concat!("The text `\"", $key, "\":true`.")]
                pub const $name: &str = concat!("\"", $key, "\":true");
            )*
        }

        /// The keys as first member of an object, as Claude Code writes them.
        pub mod first {
            $(
                #[doc = concat!("The text `{\"", $key, "\":`.")]
                pub const $name: &str = concat!("{\"", $key, "\":");
            )*
        }
    };
}

/// Words that nearly every line contains, so that searching for one of them hardly excludes a line.
pub const FREQUENT_WORDS: &str = "parentUuid isSidechain userType external sessionId version gitBranch type message \
                                  role user assistant content text timestamp model usage input_tokens output_tokens \
                                  requestId entrypoint tool_use tool_result tool_use_id toolUseResult stop_reason \
                                  cache_creation_input_tokens";

keys! {
    AGENT_ID = "agentId",
    AGENT_NAME = "agentName",
    AGENT_TYPE = "agentType",
    AI_TITLE = "aiTitle",
    ATTACHMENT = "attachment",
    BACKUP_FILE_NAME = "backupFileName",
    BASH_EDIT_DIFF = "bashEditDiff",
    BLOCKING_ERROR = "blockingError",
    CACHE_CREATION = "cache_creation",
    CACHE_CREATION_INPUT_TOKENS = "cache_creation_input_tokens",
    CACHE_READ_INPUT_TOKENS = "cache_read_input_tokens",
    COMMAND = "command",
    CONTENT = "content",
    CUSTOM_TITLE = "customTitle",
    CWD = "cwd",
    DATA = "data",
    DEFER_LOADING = "defer_loading",
    EPHEMERAL_1H_INPUT_TOKENS = "ephemeral_1h_input_tokens",
    EPHEMERAL_5M_INPUT_TOKENS = "ephemeral_5m_input_tokens",
    FILE = "file",
    FORKED_FROM = "forkedFrom",
    GIT_BRANCH = "gitBranch",
    HOOK_NAME = "hookName",
    ID = "id",
    INFERENCE_GEO = "inference_geo",
    INPUT = "input",
    INPUT_TOKENS = "input_tokens",
    IS_API_ERROR_MESSAGE = "isApiErrorMessage",
    IS_COMPACT_SUMMARY = "isCompactSummary",
    IS_DISPLAY_ONLY = "isDisplayOnly",
    IS_ERROR = "is_error",
    IS_META = "isMeta",
    IS_SIDECHAIN = "isSidechain",
    ITERATIONS = "iterations",
    KIND = "kind",
    LAST_PROMPT = "lastPrompt",
    LEAF_UUID = "leafUuid",
    LOGICAL_PARENT_UUID = "logicalParentUuid",
    MEDIA_TYPE = "media_type",
    MESSAGE = "message",
    MESSAGE_ID = "messageId",
    MODEL = "model",
    NAME = "name",
    NUM_LINES = "numLines",
    OPERATION = "operation",
    ORIGIN = "origin",
    OUTPUT_TOKENS = "output_tokens",
    PARENT_UUID = "parentUuid",
    RENDERED = "rendered",
    RENDERED_ROLE = "renderedRole",
    REQUEST_ID = "requestId",
    REQUEST_SESSION_ID = "requestSessionId",
    ROLE = "role",
    SERVER_TOOL_USE = "server_tool_use",
    SESSION_ID = "sessionId",
    SESSION_ID_SNAKE = "session_id",
    SLUG = "slug",
    SNAPSHOT_MESSAGE_ID = "snapshotMessageId",
    SOURCE = "source",
    SOURCE_TOOL_ASSISTANT_UUID = "sourceToolAssistantUUID",
    SOURCE_TOOL_USE_ID = "sourceToolUseID",
    SPEED = "speed",
    STDOUT = "stdout",
    STOP_REASON = "stop_reason",
    SUBTYPE = "subtype",
    SUMMARY = "summary",
    TAG = "tag",
    TEAM_NAME = "teamName",
    TEXT = "text",
    THINKING = "thinking",
    TIMESTAMP = "timestamp",
    TOOL_NAME = "tool_name",
    TOOL_USE_ID = "tool_use_id",
    TOOL_USE_ID_CAMEL = "toolUseId",
    TOOL_USE_RESULT = "toolUseResult",
    TYPE = "type",
    USAGE = "usage",
    UUID = "uuid",
    VERSION = "version",
    WEB_SEARCH_REQUESTS = "web_search_requests",
}
