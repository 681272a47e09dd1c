//! The columns of the tables.

use std::sync::Arc;

use parquet::errors::Result;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableKind {
    /// One row per model call.
    Usage,
    /// One row per prompt, other input, and reply.
    Messages,
    /// One row per tool call.
    ToolCalls,
    /// One row per turn.
    Turns,
}

impl TableKind {
    /// All tables.
    pub const ALL: [Self; 4] = [Self::Usage, Self::Messages, Self::ToolCalls, Self::Turns];

    /// Returns the name, which is also that of the folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Messages => "messages",
            Self::ToolCalls => "tool_calls",
            Self::Turns => "turns",
        }
    }

    /// Returns the columns as a Parquet message type.
    pub fn schema(self) -> &'static str {
        match self {
            Self::Usage => USAGE,
            Self::Messages => MESSAGES,
            Self::ToolCalls => TOOL_CALLS,
            Self::Turns => TURNS,
        }
    }

    pub(crate) fn parquet_type(self) -> Result<Arc<Type>> {
        Ok(Arc::new(parse_message_type(self.schema())?))
    }
}

const USAGE: &str = "message usage {
  optional int64 at (TIMESTAMP(MILLIS,true));
  required binary session (STRING);
  optional binary machine (STRING);
  optional binary user (STRING);
  optional binary project (STRING);
  optional binary branch (STRING);
  optional binary agent_kind (STRING);
  required binary model (STRING);
  required int64 input_tokens;
  required int64 output_tokens;
  required int64 cache_read_tokens;
  required int64 cache_write_5m_tokens;
  required int64 cache_write_1h_tokens;
  required int64 web_searches;
  required boolean fast;
  required boolean under_reported;
  optional fixed_len_byte_array(16) cost_usd (DECIMAL(38,15));
}";

const MESSAGES: &str = "message messages {
  optional int64 at (TIMESTAMP(MILLIS,true));
  required binary session (STRING);
  optional binary agent (STRING);
  required int64 line;
  optional binary uuid (STRING);
  optional binary message_id (STRING);
  required binary role (STRING);
  required binary kind (STRING);
  optional binary model (STRING);
  required int32 tool_calls;
  optional int64 text_bytes;
  optional binary text (STRING);
}";

const TOOL_CALLS: &str = "message tool_calls {
  optional int64 at (TIMESTAMP(MILLIS,true));
  required binary session (STRING);
  optional binary agent (STRING);
  required int64 line;
  required binary call_id (STRING);
  optional binary message_id (STRING);
  required binary tool (STRING);
  required binary outcome (STRING);
  optional int64 duration_ms;
  optional int64 input_bytes;
  optional int64 result_bytes;
  optional binary input (STRING);
  optional binary result (STRING);
}";

const TURNS: &str = "message turns {
  optional int64 at (TIMESTAMP(MILLIS,true));
  required binary session (STRING);
  required int32 number;
  required binary round (STRING);
  optional int64 duration_ms;
  required int32 replies;
  required int32 tool_calls;
  required int32 failed_tool_calls;
  required boolean open;
  optional binary prompt (STRING);
}";
