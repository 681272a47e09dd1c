//! The values of a turn in progress.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use threadline_api::Usage;

use crate::event::DeferredCall;
use crate::slash_command::CommandScope;

/// The values of a turn in progress.
pub(super) struct TurnState {
    pub(super) start: Instant,
    pub(super) prompt_id: String,
    /// The id of the prompt's line.
    pub(super) prompt_uuid: String,
    pub(super) num_turns: u64,
    pub(super) replies: u64,
    pub(super) api_duration: Duration,
    pub(super) first_request: Option<Duration>,
    pub(super) first_token: Option<Duration>,
    pub(super) usage: Usage,
    pub(super) text: String,
    pub(super) stop_reason: Option<String>,
    pub(super) structured_output: Option<Box<RawValue>>,
    /// The number of answers that do not match the schema.
    pub(super) schema_errors: u64,
    pub(super) denials: Vec<crate::event::Denial>,
    pub(super) deferred_call: Option<DeferredCall>,
    /// Whether the model was asked to continue after it reached the output limit.
    pub(super) has_continued: bool,
    /// Whether the model was asked for visible output.
    pub(super) has_asked_for_output: bool,
    /// Whether the model was asked for structured output.
    pub(super) has_asked_for_structure: bool,
    /// The number of times that a hook made the model continue.
    pub(super) stop_blocks: u32,
    /// Whether the line of the prompt was written in this turn.
    pub(super) has_prompt_line: bool,
    /// Whether a reply of this turn was written.
    pub(super) has_reply: bool,
    /// The id of the last reply that has begun.
    pub(super) message_id: Option<String>,
    /// The text of the reply that is being received.
    pub(super) partial_text: String,
    /// Whether the prompts were entered during an earlier turn.
    pub(super) is_queued: bool,
    /// Whether the prompt is a command from a file.
    pub(super) is_command: bool,
    /// The settings that the command changed.
    pub(super) command_scope: Option<CommandScope>,
}

impl TurnState {
    pub(super) fn new(prompt_id: String, prompt_uuid: String) -> Self {
        Self {
            start: Instant::now(),
            prompt_id,
            prompt_uuid,
            num_turns: 0,
            replies: 1,
            api_duration: Duration::ZERO,
            first_request: None,
            first_token: None,
            usage: Usage::default(),
            text: String::new(),
            stop_reason: None,
            structured_output: None,
            schema_errors: 0,
            denials: Vec::new(),
            deferred_call: None,
            has_continued: false,
            has_asked_for_output: false,
            has_asked_for_structure: false,
            stop_blocks: 0,
            has_prompt_line: false,
            has_reply: false,
            message_id: None,
            partial_text: String::new(),
            is_queued: false,
            is_command: false,
            command_scope: None,
        }
    }
}
