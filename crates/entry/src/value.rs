//! The values of the format that code outside of this crate has to name: types of blocks, subtypes of lines.
//!
//! Like the [keys](crate::key), no other crate spells them.

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        $(
            $(#[$doc])*
            pub const $name: &str = $value;
        )*

        /// The values in quotes, to search for in the bytes of a line.
        pub mod quoted {
            $(
                #[doc = concat!("The value `\"", $value, "\"`.")]
                pub const $name: &str = concat!("\"", $value, "\"");
            )*
        }
    };
}

values! {
    /// The type of a progress line that repeats a message of a sub-agent.
    AGENT_PROGRESS = "agent_progress",
    /// The subtype of a system line about a failed request.
    API_ERROR = "api_error",
    /// The subtype of the boundary of a compaction.
    COMPACT_BOUNDARY = "compact_boundary",
    /// The type of a block with a document.
    DOCUMENT = "document",
    /// The type of a block with an image.
    IMAGE = "image",
    /// The subtype of a system line with a command that Claude Code executed itself.
    LOCAL_COMMAND = "local_command",
    /// The type of a block with the result of an [MCP call](MCP_TOOL_USE).
    MCP_TOOL_RESULT = "mcp_tool_result",
    /// The type of a block with a call of an MCP server, made by the API.
    MCP_TOOL_USE = "mcp_tool_use",
    /// The type of an attachment with a queued prompt.
    QUEUED_COMMAND = "queued_command",
    /// The type of a block with encrypted thinking.
    REDACTED_THINKING = "redacted_thinking",
    /// The type of a block with a tool call that the API runs.
    SERVER_TOOL_USE = "server_tool_use",
    /// The model of messages that Claude Code generated itself.
    SYNTHETIC_MODEL = "<synthetic>",
    /// The type of a block with text.
    TEXT = "text",
    /// The type of a block with thinking.
    THINKING = "thinking",
    /// The type of a block with the result of a tool call.
    TOOL_RESULT = "tool_result",
    /// The type of a block with a tool call.
    TOOL_USE = "tool_use",
}

/// Returns whether blocks of this type are calls of tools.
pub fn is_call(kind: &[u8]) -> bool {
    [TOOL_USE, SERVER_TOOL_USE, MCP_TOOL_USE].iter().any(|call| kind == call.as_bytes())
}
