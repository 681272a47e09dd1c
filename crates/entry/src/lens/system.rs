//! `system` lines, by subtype.

use std::borrow::Cow;

use super::{Json, Knows, List, lens};
use crate::lens::Lens;

lens! {
    /// What every `system` line adds.
    System {
        subtype: Cow<'a, str> = "subtype",
        content: Cow<'a, str> = "content",
        level: Cow<'a, str> = "level",
    }

    /// `compact_boundary`: what came before was replaced by a summary.
    CompactBoundary {
        compact_metadata: CompactMetadata<'a> = "compactMetadata",
    }

    /// How a compaction went.
    CompactMetadata {
        /// `auto` or `manual`.
        trigger: Cow<'a, str> = "trigger",
        pre_tokens: u64 = "preTokens",
        post_tokens: u64 = "postTokens",
        duration_ms: f64 = "durationMs",
        cumulative_dropped_tokens: u64 = "cumulativeDroppedTokens",
        /// The tail of the conversation that was kept as it was.
        preserved_segment: PreservedSegment<'a> = "preservedSegment",
        preserved_messages: PreservedMessages<'a> = "preservedMessages",
    }

    /// The tail that a compaction kept.
    PreservedSegment {
        head_uuid: Cow<'a, str> = "headUuid",
        anchor_uuid: Cow<'a, str> = "anchorUuid",
        tail_uuid: Cow<'a, str> = "tailUuid",
    }

    /// The messages that a compaction kept.
    PreservedMessages {
        anchor_uuid: Cow<'a, str> = "anchorUuid",
        uuids: List<'a, Cow<'a, str>> = "uuids",
        all_uuids: List<'a, Cow<'a, str>> = "allUuids",
    }

    /// `microcompact_boundary`: old tool results were dropped from the context.
    MicrocompactBoundary {
        microcompact_metadata: MicrocompactMetadata<'a> = "microcompactMetadata",
    }

    /// What a microcompaction dropped.
    MicrocompactMetadata {
        trigger: Cow<'a, str> = "trigger",
        pre_tokens: u64 = "preTokens",
        tokens_saved: u64 = "tokensSaved",
        compacted_tool_ids: List<'a, Cow<'a, str>> = "compactedToolIds",
        cleared_attachment_uuids: List<'a, Cow<'a, str>> = "clearedAttachmentUUIDs",
    }

    /// `turn_duration`: how long a turn took.
    TurnDuration {
        duration_ms: u64 = "durationMs",
        message_count: u64 = "messageCount",
    }

    /// `stop_hook_summary`: the hooks that ran when the model stopped.
    StopHookSummary {
        hook_count: u64 = "hookCount",
        hook_infos: List<'a, Json<'a>> = "hookInfos",
        hook_errors: List<'a, Json<'a>> = "hookErrors",
        hook_additional_context: List<'a, Json<'a>> = "hookAdditionalContext",
        prevented_continuation: bool = "preventedContinuation",
        stop_reason: Cow<'a, str> = "stopReason",
        has_output: bool = "hasOutput",
        tool_use_id: Cow<'a, str> = "toolUseID",
    }

    /// `api_error`: a request failed and will be tried again.
    ApiError {
        error: Json<'a> = "error",
        cause: Json<'a> = "cause",
        retry_in_ms: f64 = "retryInMs",
        retry_attempt: u64 = "retryAttempt",
        max_retries: u64 = "maxRetries",
        source: Cow<'a, str> = "source",
    }

    /// `model_refusal_fallback`: one model refused, another answered.
    ModelRefusalFallback {
        direction: Cow<'a, str> = "direction",
        trigger: Cow<'a, str> = "trigger",
        original_model: Cow<'a, str> = "originalModel",
        fallback_model: Cow<'a, str> = "fallbackModel",
        api_refusal_category: Cow<'a, str> = "apiRefusalCategory",
        api_refusal_explanation: Cow<'a, str> = "apiRefusalExplanation",
        refused_user_message_uuid: Cow<'a, str> = "refusedUserMessageUuid",
        request_id: Cow<'a, str> = "requestId",
    }
}

/// What `system` lines may hold, whatever their subtype.
pub(crate) const SYSTEM: &[Knows] = &[
    System::knows,
    CompactBoundary::knows,
    MicrocompactBoundary::knows,
    TurnDuration::knows,
    StopHookSummary::knows,
    ApiError::knows,
    ModelRefusalFallback::knows,
];

/// The subtypes that we know.
pub const SYSTEM_SUBTYPES: &[&str] = &[
    "compact_boundary",
    "microcompact_boundary",
    "turn_duration",
    "stop_hook_summary",
    "api_error",
    "local_command",
    "model_refusal_fallback",
    "informational",
];
