//! Events of a turn, for front ends.

use std::time::Duration;

use serde_json::value::RawValue;
use threadline_api::RawObject;
use threadline_entry::Millis;
use threadline_permission::{PermissionMode, Refusal};
use threadline_tools::FinishedTask;

use crate::cost::ModelUsageTotals;
use crate::hook::HookRun;
use crate::session_writer::WrittenCompaction;
use crate::sub_agent::{SubAgentEvent, SubAgentSource};

/// An event of a turn.
#[derive(Debug)]
pub enum AgentEvent<'a> {
    /// The prompt was written to the session.
    Prompt {
        /// The id of its line.
        uuid: &'a str,
        /// The message.
        message: &'a RawObject,
        /// The time of its line.
        timestamp: Millis,
    },
    /// A request is about to be sent.
    Requesting,
    /// A request failed and is sent again after a delay.
    Retry {
        /// The number of the retry, from 1.
        attempt: u32,
        /// The largest number of retries.
        max_retries: u32,
        /// The delay.
        delay: Duration,
        /// The HTTP status, if there was a response.
        status: Option<u16>,
        /// The kind of error.
        kind: RetryKind,
    },
    /// An event of the API's stream.
    Stream {
        /// The event as the API sent it.
        raw: &'a str,
        /// The time since the request was sent, for the first event.
        first_after: Option<Duration>,
    },
    /// A content block of a reply is complete, or the client wrote a reply itself.
    Assistant {
        /// The id of its line.
        uuid: &'a str,
        /// The message with this block only.
        message: &'a RawObject,
        /// The id of the request.
        request_id: Option<&'a str>,
        /// The kind of error, if the client wrote the reply.
        error: Option<&'a str>,
    },
    /// A tool begins to run.
    ToolStart {
        /// The id of the call.
        tool_use_id: &'a str,
        /// The name of the tool.
        name: &'a str,
    },
    /// A running command has written output.
    ToolOutput {
        /// The id of the call.
        tool_use_id: &'a str,
        /// The new output, at most a few kilobytes.
        text: &'a str,
    },
    /// A user message that the person did not write: the result of a tool, or a note of the client.
    User {
        /// The id of its line.
        uuid: &'a str,
        /// The message.
        message: &'a RawObject,
        /// The time of its line.
        timestamp: Millis,
        /// The result as data.
        tool_use_result: Option<&'a RawValue>,
        /// Whether the client wrote the message by itself, to ask the model for something.
        is_synthetic: bool,
        /// Whether it is the result of a call that was interrupted. Its text is that of a rejected call,
        /// as in Claude Code.
        is_interrupted: bool,
    },
    /// A command started to run in the background.
    TaskStart {
        /// The id of the task.
        task_id: &'a str,
        /// The call that started it.
        tool_use_id: &'a str,
        /// The description or the command.
        description: &'a str,
    },
    /// The model stopped a command in the background.
    TaskStop {
        /// The id of the task.
        task_id: &'a str,
        /// The call that started it.
        tool_use_id: &'a str,
        /// The description or the command.
        description: &'a str,
        /// The time.
        timestamp: Millis,
    },
    /// A command in the background ended.
    TaskEnd {
        /// The task.
        task: &'a FinishedTask,
        /// The time.
        timestamp: Millis,
    },
    /// An event of a sub-agent.
    SubAgent {
        /// The sub-agent.
        source: &'a SubAgentSource,
        /// The event.
        event: &'a SubAgentEvent,
    },
    /// A turn begins: its prompt was accepted.
    TurnStart,
    /// The session continues in another log.
    SessionChanged {
        /// The id of the new session.
        session_id: &'a str,
    },
    /// The output of a command of the client was written as a user message.
    CommandOutput {
        /// The id of its line.
        uuid: &'a str,
        /// The message.
        message: &'a RawObject,
        /// The time of its line.
        timestamp: Millis,
    },
    /// The conversation is compacted.
    Compaction(CompactionEvent<'a>),
    /// A hook has run.
    Hook {
        /// An id of this run.
        id: &'a str,
        /// The hook.
        run: &'a HookRun,
    },
    /// A prompt was not sent, for the reason in the text.
    PromptStopped {
        /// The id of its line.
        uuid: &'a str,
        /// The text.
        text: &'a str,
    },
    /// A short text that a screen shows for a moment.
    Notification {
        /// The kind of notification.
        key: &'a str,
        /// The text.
        text: &'a str,
    },
    /// A rule or the mode refused a call, although a person or a program could be asked.
    Refused {
        /// The tool.
        tool: &'a str,
        /// The id of the call.
        tool_use_id: &'a str,
        /// The reason.
        refusal: &'a Refusal,
    },
    /// A tool changed the permission mode.
    PermissionMode(PermissionMode),
    /// A text for the person that is not part of the output.
    Warning(&'a str),
    /// A turn has ended.
    TurnEnd(&'a TurnSummary),
}

/// A step of a compaction.
#[derive(Clone, Copy, Debug)]
pub enum CompactionEvent<'a> {
    /// The model is asked for a summary.
    Start,
    /// There is a summary, or an error.
    End {
        /// Why there is no summary.
        error: Option<&'a str>,
    },
    /// The boundary and the summary were written.
    Boundary(&'a WrittenCompaction),
}

/// The kind of error of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryKind {
    /// The key is wrong.
    Authentication,
    /// Too many requests.
    RateLimit,
    /// The API is overloaded.
    Overloaded,
    /// The API failed.
    Server,
    /// Another error, such as a lost connection.
    Unknown,
}

impl RetryKind {
    /// The name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Authentication => "authentication_failed",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server_error",
            Self::Unknown => "unknown",
        }
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// The model finished.
    Completed,
    /// The API failed; the summary's text is the error.
    ApiError {
        /// The HTTP status.
        status: Option<u16>,
        /// The reason in the output, such as `prompt_too_long`.
        reason: &'static str,
    },
    /// The model refused.
    Refused,
    /// The prompt was not sent: a hook stopped it, or it is a command of the client. The summary's text is
    /// the reason, or the output of the command.
    NotSent,
    /// A hook ended the turn, after a tool or when the model had finished.
    StoppedByHook {
        /// Whether it was a hook of a tool.
        after_tool: bool,
    },
    /// The person interrupted, while a tool ran or while the model replied.
    Interrupted {
        /// Whether a tool ran.
        during_tools: bool,
    },
    /// The person interrupted before the reply began, and takes the prompt back. The conversation is as it
    /// was before.
    TakenBack,
    /// A hook deferred a call, which did not run.
    Deferred,
    /// The number of replies reached its limit.
    MaxTurns(u64),
    /// The model gave this many answers that do not match the JSON schema.
    MaxSchemaErrors(u64),
    /// The cost reached its limit.
    MaxBudget(f64),
    /// The session could not be written, or another fault of the client.
    Failed(String),
}

impl TurnEnd {
    /// Whether the turn ended without its answer.
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Completed | Self::NotSent | Self::StoppedByHook { .. } | Self::Deferred)
    }
}

/// A call that a hook deferred.
#[derive(Clone, Debug)]
pub struct DeferredCall {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its input.
    pub input: Box<RawValue>,
}

/// A call that was not permitted.
#[derive(Clone, Debug)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// Its input.
    pub tool_input: Box<RawValue>,
}

/// How much of the context window a conversation uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextUsage {
    /// The model.
    pub model: String,
    /// The tokens of the conversation.
    pub used: u64,
    /// The tokens of the window.
    pub size: u64,
}

/// The result of a turn.
#[derive(Clone, Debug)]
pub struct TurnSummary {
    /// How it ended.
    pub end: TurnEnd,
    /// The last text of the model.
    pub text: String,
    /// The structured output, if one was asked for.
    pub structured_output: Option<Box<RawValue>>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// The number of user messages of the turn.
    pub num_turns: u64,
    /// The duration.
    pub duration: Duration,
    /// The time in requests.
    pub api_duration: Duration,
    /// The time to the first request, the first event, and the first content.
    pub first_request: Option<Duration>,
    /// The time from the start of the turn to the first content of the reply.
    pub first_token: Option<Duration>,
    /// The usage of the turn's streamed replies, as an object of the API.
    pub usage: RawObject,
    /// The usage and cost of the whole process, by model.
    pub totals: ModelUsageTotals,
    /// Calls that were not permitted.
    pub denials: Vec<Denial>,
    /// The call that a hook deferred.
    pub deferred_call: Option<DeferredCall>,
    /// The program that made the prompt, if it was not a person, such as `task-notification`.
    pub origin: Option<String>,
    /// The context window at the end of the turn.
    pub context: ContextUsage,
}
