//! `system` lines, by subtype.

use std::borrow::Cow;

use super::{Json, Knows, List, Mixed, Open, lens};
use crate::lens::Lens;

lens! {
    /// The fields that `system` lines of any subtype may have.
    System {
        subtype: Cow<'a, str> = "subtype",
        content: Cow<'a, str> = "content",
        level: Cow<'a, str> = "level",
        /// Shown to the user but not sent (from 2.1.325).
        is_display_only: bool = "isDisplayOnly",
        retracted_message_uuids: List<'a, Cow<'a, str>> = "retractedMessageUuids",
    }

    /// `local_command`: a command that Claude Code ran itself, or its output.
    LocalCommand {
        command_run: CommandRun<'a> = "commandRun",
        command_outcome: Json<'a> = "commandOutcome",
        context_usage: ContextUsage<'a> = "contextUsage",
    }

    /// A command with its arguments.
    CommandRun {
        command: Cow<'a, str> = "command",
        args: Cow<'a, str> = "args",
    }

    /// The report of `/context`.
    ContextUsage {
        model: Cow<'a, str> = "model",
        percentage: f64 = "percentage",
        total_tokens: u64 = "total_tokens",
        raw_max_tokens: u64 = "raw_max_tokens",
        categories: List<'a, ContextPart<'a>> = "categories",
        skills: List<'a, ContextPart<'a>> = "skills",
        agents: List<'a, ContextPart<'a>> = "agents",
        mcp_tools: List<'a, ContextPart<'a>> = "mcp_tools",
        memory_files: List<'a, ContextPart<'a>> = "memory_files",
    }

    /// A part of the context and its size.
    ContextPart {
        kind: Cow<'a, str> = "kind",
        name: Cow<'a, str> = "name",
        source: Cow<'a, str> = "source",
        path: Cow<'a, str> = "path",
        server: Cow<'a, str> = "server",
        tokens: u64 = "tokens",
    }

    /// `informational`: a message to the user.
    Informational {
        prevent_continuation: bool = "preventContinuation",
        prompt_submit_ending: PromptSubmitEnding<'a> = "promptSubmitEnding",
    }

    /// How a prompt that was not sent ended.
    PromptSubmitEnding {
        ending: PromptEnding<'a> = "ending",
        prompt_kept: bool = "promptKept",
    }

    /// Why a prompt was not sent.
    PromptEnding {
        kind: Cow<'a, str> = "kind",
        reason: Cow<'a, str> = "reason",
    }

    /// `compact_boundary`: the conversation before it was replaced by a summary.
    CompactBoundary {
        compact_metadata: CompactMetadata<'a> = "compactMetadata",
    }

    /// Statistics of a compaction.
    CompactMetadata {
        /// `auto` or `manual`.
        trigger: Cow<'a, str> = "trigger",
        pre_tokens: u64 = "preTokens",
        post_tokens: u64 = "postTokens",
        duration_ms: f64 = "durationMs",
        cumulative_dropped_tokens: u64 = "cumulativeDroppedTokens",
        /// The tail of the conversation that was kept unchanged.
        preserved_segment: PreservedSegment<'a> = "preservedSegment",
        preserved_messages: PreservedMessages<'a> = "preservedMessages",
        messages_summarized: u64 = "messagesSummarized",
        running_turn_prompt: Json<'a> = "runningTurnPrompt",
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

    /// The content that a microcompaction dropped.
    MicrocompactMetadata {
        trigger: Cow<'a, str> = "trigger",
        pre_tokens: u64 = "preTokens",
        tokens_saved: u64 = "tokensSaved",
        compacted_tool_ids: List<'a, Cow<'a, str>> = "compactedToolIds",
        cleared_attachment_uuids: List<'a, Cow<'a, str>> = "clearedAttachmentUUIDs",
    }

    /// `turn_duration`: the duration of a turn.
    TurnDuration {
        duration_ms: u64 = "durationMs",
        message_count: u64 = "messageCount",
        pending_background_agent_count: u64 = "pendingBackgroundAgentCount",
    }

    /// `stop_hook_summary`: the hooks that ran when the model stopped.
    StopHookSummary {
        hook_count: u64 = "hookCount",
        hook_infos: List<'a, HookInfo<'a>> = "hookInfos",
        hook_errors: List<'a, Json<'a>> = "hookErrors",
        failed_hook_error_indexes: List<'a, Json<'a>> = "failedHookErrorIndexes",
        hook_additional_context: List<'a, Json<'a>> = "hookAdditionalContext",
        prevented_continuation: bool = "preventedContinuation",
        stop_reason: Cow<'a, str> = "stopReason",
        has_output: bool = "hasOutput",
        tool_use_id: Cow<'a, str> = "toolUseID",
    }

    /// A hook that ran.
    HookInfo {
        command: Cow<'a, str> = "command",
        duration_ms: f64 = "durationMs",
        prompt_text: Cow<'a, str> = "promptText",
    }

    /// `api_error`: a request that failed and will be retried.
    ApiError {
        error: Mixed<'a, FailedRequest<'a>> = "error",
        cause: Mixed<'a, ErrorCause<'a>> = "cause",
        retry_in_ms: f64 = "retryInMs",
        retry_attempt: u64 = "retryAttempt",
        max_retries: u64 = "maxRetries",
        source: Cow<'a, str> = "source",
    }

    /// A failed request, as reported by the client or by the API.
    FailedRequest {
        kind: Cow<'a, str> = "type",
        status: Json<'a> = "status",
        message: Cow<'a, str> = "message",
        formatted: Cow<'a, str> = "formatted",
        cause: Mixed<'a, ErrorCause<'a>> = "cause",
        /// The error of the API, which may be nested.
        error: Mixed<'a, FailedRequest<'a>> = "error",
        details: Json<'a> = "details",
        headers: ResponseHeaders<'a> = "headers",
        request_id: Json<'a> = "requestID",
        request_id_too: Json<'a> = "requestId",
        api_request_id: Json<'a> = "request_id",
        connection: FailedConnection<'a> = "connection",
        is_network_down: bool = "isNetworkDown",
        no_response: Json<'a> = "noResponse",
        rate_limits: Open<'a> = "rateLimits",
    }

    /// The HTTP headers of a failed request's response.
    ResponseHeaders {
        retry_after: Json<'a> = "retry-after",
        should_retry: Json<'a> = "x-should-retry",
        request_id: Json<'a> = "request-id",
        organization_id: Json<'a> = "anthropic-organization-id",
        rate_limit_reset: Json<'a> = "anthropic-ratelimit-unified-reset",
        rate_limit_status: Json<'a> = "anthropic-ratelimit-unified-status",
        rate_limit_fallback: Json<'a> = "anthropic-ratelimit-unified-fallback-percentage",
        rate_limit_overage: Json<'a> = "anthropic-ratelimit-unified-overage-status",
        rate_limit_claim: Json<'a> = "anthropic-ratelimit-unified-representative-claim",
        cache_status: Json<'a> = "cf-cache-status",
        ray: Json<'a> = "cf-ray",
        connection: Json<'a> = "connection",
        content_encoding: Json<'a> = "content-encoding",
        content_length: Json<'a> = "content-length",
        content_security_policy: Json<'a> = "content-security-policy",
        content_type: Json<'a> = "content-type",
        date: Json<'a> = "date",
        keep_alive: Json<'a> = "keep-alive",
        server: Json<'a> = "server",
        server_timing: Json<'a> = "server-timing",
        set_cookie: Json<'a> = "set-cookie",
        strict_transport_security: Json<'a> = "strict-transport-security",
        transfer_encoding: Json<'a> = "transfer-encoding",
        vary: Json<'a> = "vary",
        via: Json<'a> = "via",
        upstream_time: Json<'a> = "x-envoy-upstream-service-time",
        robots: Json<'a> = "x-robots-tag",
    }

    /// A connection that failed.
    FailedConnection {
        code: Cow<'a, str> = "code",
        message: Cow<'a, str> = "message",
        is_ssl_error: bool = "isSSLError",
    }

    /// The operating system error that caused a failed request.
    ErrorCause {
        code: Cow<'a, str> = "code",
        errno: Json<'a> = "errno",
        path: Cow<'a, str> = "path",
        message: Cow<'a, str> = "message",
        cause: Json<'a> = "cause",
    }

    /// `model_refusal_fallback`: one model refused and another replied.
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

/// The lenses of `system` lines of all subtypes.
pub(crate) const SYSTEM_LENSES: &[Knows] = &[
    System::knows,
    LocalCommand::knows,
    Informational::knows,
    CompactBoundary::knows,
    MicrocompactBoundary::knows,
    TurnDuration::knows,
    StopHookSummary::knows,
    ApiError::knows,
    ModelRefusalFallback::knows,
];

/// The known subtypes.
pub const SYSTEM_SUBTYPES: &[&str] = &[
    "compact_boundary",
    "microcompact_boundary",
    "turn_duration",
    "stop_hook_summary",
    "api_error",
    "local_command",
    "model_fallback",
    "model_refusal_fallback",
    "informational",
];
