//! The fields of conversation lines: the common ones, and those of each kind.

use std::borrow::Cow;

use super::{
    AttachmentBody, Content, Json, List, Message, Moment, Open, ProgressBody, Todo, ToolUseResult, lens,
};

lens! {
    /// The fields that `user`, `assistant`, `system`, `progress` and `attachment` lines share.
    Envelope {
        kind: Cow<'a, str> = "type",
        uuid: Cow<'a, str> = "uuid",
        parent_uuid: Cow<'a, str> = "parentUuid",
        /// The parent from a reader's point of view, across a compaction.
        logical_parent_uuid: Cow<'a, str> = "logicalParentUuid",
        session_id: Cow<'a, str> = "sessionId",
        /// A second copy of `sessionId`, written by some lines of 2.1.325.
        session_id_too: Cow<'a, str> = "session_id",
        timestamp: Moment = "timestamp",
        is_sidechain: bool = "isSidechain",
        is_meta: bool = "isMeta",
        user_type: Cow<'a, str> = "userType",
        entrypoint: Cow<'a, str> = "entrypoint",
        cwd: Cow<'a, str> = "cwd",
        version: Cow<'a, str> = "version",
        git_branch: Cow<'a, str> = "gitBranch",
        /// The name that a plan file of the session would have.
        slug: Cow<'a, str> = "slug",
        /// The sub-agent that wrote the line.
        agent_id: Cow<'a, str> = "agentId",
        agent_name: Cow<'a, str> = "agentName",
        team_name: Cow<'a, str> = "teamName",
        /// `bg` for a session that runs in the background.
        session_kind: Cow<'a, str> = "sessionKind",
        forked_from: ForkedFrom<'a> = "forkedFrom",
    }

    /// The origin of a copied line.
    ForkedFrom {
        session_id: Cow<'a, str> = "sessionId",
        message_uuid: Cow<'a, str> = "messageUuid",
    }

    /// The additional fields of `user` lines.
    User {
        message: Message<'a> = "message",
        tool_use_result: ToolUseResult<'a> = "toolUseResult",
        /// The line with the tool call that this result answers.
        source_tool_assistant_uuid: Cow<'a, str> = "sourceToolAssistantUUID",
        /// The tool call that made Claude Code add this text (a skill).
        source_tool_use_id: Cow<'a, str> = "sourceToolUseID",
        permission_mode: Cow<'a, str> = "permissionMode",
        permission_decision: PermissionDecision<'a> = "permissionDecision",
        prompt_id: Cow<'a, str> = "promptId",
        prompt_source: Cow<'a, str> = "promptSource",
        origin: Origin<'a> = "origin",
        turn_origin: Json<'a> = "turnOrigin",
        turn_position: TurnPosition<'a> = "turnPosition",
        turn_companion: Json<'a> = "turnCompanion",
        is_compact_summary: bool = "isCompactSummary",
        is_visible_in_transcript_only: bool = "isVisibleInTranscriptOnly",
        thinking_metadata: ThinkingMetadata<'a> = "thinkingMetadata",
        todos: List<'a, Todo<'a>> = "todos",
        plan_content: Cow<'a, str> = "planContent",
        image_paste_ids: List<'a, Json<'a>> = "imagePasteIds",
        summarize_metadata: SummarizeMetadata<'a> = "summarizeMetadata",
        summarized_turn_prompt_uuids: List<'a, Cow<'a, str>> = "summarizedTurnPromptUuids",
        holds_persons_words: bool = "holdsPersonsWords",
        tool_ends_turn: bool = "toolEndsTurn",
        mcp_call_not_read_only: bool = "mcpCallNotReadOnly",
        classifier_meta_lines: Cow<'a, str> = "classifierMetaLines",
        tool_denial_kind: Cow<'a, str> = "toolDenialKind",
        /// The parts of an MCP result besides its text (from 2.1.325).
        mcp_meta: McpMeta<'a> = "mcpMeta",
        /// The line repeats the summary of an earlier compaction.
        repeats_compact_summary: bool = "repeatsCompactSummary",
        /// The reply that the user interrupted.
        interrupted_message_id: Cow<'a, str> = "interruptedMessageId",
        /// The reply that a model refused to complete.
        refused_message_id: Cow<'a, str> = "refusedMessageId",
        queue_skip_attachments: bool = "queueSkipAttachments",
        queue_transcript_only: bool = "queueTranscriptOnly",
        sandboxed: Json<'a> = "sandboxed",
    }

    /// The parts of an MCP result besides its text.
    McpMeta {
        meta: Open<'a> = "_meta",
        /// The result as an object of the tool's output schema.
        structured_content: Open<'a> = "structuredContent",
        resource_links: List<'a, ResourceLink<'a>> = "resourceLinks",
    }

    /// A resource of an MCP server that a result refers to.
    ResourceLink {
        uri: Cow<'a, str> = "uri",
        name: Cow<'a, str> = "name",
        title: Cow<'a, str> = "title",
        description: Cow<'a, str> = "description",
        mime_type: Cow<'a, str> = "mimeType",
        size: u64 = "size",
    }

    /// Claude Code's own numbering of prompts and turns, from 1.
    TurnPosition {
        prompt_index: u64 = "promptIndex",
        turn_index: u64 = "turnIndex",
    }

    /// How a permission was granted or denied.
    PermissionDecision {
        decision: Cow<'a, str> = "decision",
        reason_type: Cow<'a, str> = "reasonType",
        source: Cow<'a, str> = "source",
        reason_code: Cow<'a, str> = "reasonCode",
        grant_scope: Cow<'a, str> = "grantScope",
        rule_source: Cow<'a, str> = "ruleSource",
    }

    /// Details of a summary of part of the conversation.
    SummarizeMetadata {
        direction: Cow<'a, str> = "direction",
        messages_summarized: u64 = "messagesSummarized",
    }

    /// The cause of a prompt, such as `human` or `task-notification`.
    Origin {
        kind: Cow<'a, str> = "kind",
        producer: Cow<'a, str> = "producer",
        run_id: Cow<'a, str> = "runId",
    }

    /// The requested amount of thinking.
    ThinkingMetadata {
        max_thinking_tokens: u64 = "maxThinkingTokens",
        level: Cow<'a, str> = "level",
        disabled: bool = "disabled",
        triggers: List<'a, ThinkingTrigger<'a>> = "triggers",
    }

    /// A keyword in a prompt that requests thinking.
    ThinkingTrigger {
        start: u64 = "start",
        end: u64 = "end",
        text: Cow<'a, str> = "text",
    }

    /// The additional fields of `assistant` lines.
    Assistant {
        message: Message<'a> = "message",
        request_id: Cow<'a, str> = "requestId",
        /// The session that made the request, on lines that a fork copied (since 2.1.327).
        request_session_id: Cow<'a, str> = "requestSessionId",
        is_api_error_message: bool = "isApiErrorMessage",
        /// Such as `rate_limit`, `invalid_request`, `authentication_failed` or `unknown`.
        error: Json<'a> = "error",
        api_error_status: u64 = "apiErrorStatus",
        api_error: Cow<'a, str> = "apiError",
        api_error_type: Cow<'a, str> = "apiErrorType",
        error_details: Json<'a> = "errorDetails",
        api_error_is_transient: bool = "apiErrorIsTransient",
        /// Sending the request again cannot succeed.
        resend_cannot_cure: bool = "resendCannotCure",
        /// The line takes the place of one that could not be sent as it was.
        heals_distinct_carrier: Json<'a> = "healsDistinctCarrier",
        is_aborted_mid_stream: bool = "isAbortedMidStream",
        failed_response_had_no_tool_call: bool = "failedResponseHadNoToolCall",
        server_classifier_request: Json<'a> = "serverClassifierRequest",
        /// Lines of a previous attempt at the same reply.
        supersedes_uuids: List<'a, Cow<'a, str>> = "supersedesUuids",
        effort: Cow<'a, str> = "effort",
        per_turn_effort: Json<'a> = "perTurnEffort",
        attribution_agent: Cow<'a, str> = "attributionAgent",
        attribution_skill: Cow<'a, str> = "attributionSkill",
        attribution_plugin: Cow<'a, str> = "attributionPlugin",
        attribution_mcp_server: Cow<'a, str> = "attributionMcpServer",
        attribution_mcp_tool: Cow<'a, str> = "attributionMcpTool",
        api_block_index: u64 = "apiBlockIndex",
        made_by: Json<'a> = "madeBy",
        prompt_cache_requested: Json<'a> = "promptCacheRequested",
        request_ref: Json<'a> = "requestRef",
        requested_model: Cow<'a, str> = "requestedModel",
        thinking_display: Json<'a> = "thinkingDisplay",
        thinking_duration_ms: f64 = "thinkingDurationMs",
        tool_input_stream_ms: Json<'a> = "toolInputStreamMs",
    }

    /// The additional fields of `progress` lines.
    Progress {
        data: ProgressBody<'a> = "data",
        tool_use_id: Cow<'a, str> = "toolUseID",
        parent_tool_use_id: Cow<'a, str> = "parentToolUseID",
    }

    /// The additional fields of `attachment` lines.
    AttachmentLine {
        attachment: AttachmentBody<'a> = "attachment",
        /// The attachment as sent to the model (from 2.1.2xx).
        rendered: List<'a, Rendered<'a>> = "rendered",
        rendered_in_human_turn: List<'a, Rendered<'a>> = "renderedInHumanTurn",
        rendered_role: Cow<'a, str> = "renderedRole",
        rendered_beside_tool_result: Json<'a> = "renderedBesideToolResult",
        /// The attachment repeats an earlier one that the context has lost.
        reread_entry: Json<'a> = "rereadEntry",
    }

    /// A text of an attachment as sent to the model.
    Rendered {
        content: Content<'a> = "content",
    }
}
