//! Lines that are not part of the conversation: titles, queues, snapshots, bookkeeping.

use std::borrow::Cow;

use super::{Block, Json, Knows, List, Map, Mixed, Moment, Open, lens};
use crate::kind::Kind;
use crate::lens::Lens;

lens! {
    /// The fields that all such lines share.
    Record {
        kind: Cow<'a, str> = "type",
        session_id: Cow<'a, str> = "sessionId",
        session_id_too: Cow<'a, str> = "session_id",
        timestamp: Moment = "timestamp",
        uuid: Cow<'a, str> = "uuid",
        agent_id: Cow<'a, str> = "agentId",
        version: Cow<'a, str> = "version",
        cwd: Cow<'a, str> = "cwd",
    }

    /// `summary`: a title for the conversation that ends at a leaf, possibly of another file.
    Summary {
        summary: Cow<'a, str> = "summary",
        leaf_uuid: Cow<'a, str> = "leafUuid",
    }

    /// `file-history-snapshot`.
    FileHistorySnapshot {
        message_id: Cow<'a, str> = "messageId",
        snapshot: Snapshot<'a> = "snapshot",
        is_snapshot_update: bool = "isSnapshotUpdate",
    }

    /// The files at the time of a prompt.
    Snapshot {
        message_id: Cow<'a, str> = "messageId",
        timestamp: Moment = "timestamp",
        /// The snapshot was taken before the turn changed a file.
        pre_checkpoint: Json<'a> = "preCheckpoint",
        /// A map from path to [`Backup`].
        tracked_file_backups: Map<'a, Backup<'a>> = "trackedFileBackups",
    }

    /// The backup of a file's earlier content; without a name if the file did not exist.
    Backup {
        backup_file_name: Cow<'a, str> = "backupFileName",
        version: u64 = "version",
        backup_time: Moment = "backupTime",
        real_parent_dir: Cow<'a, str> = "realParentDir",
    }

    /// `file-history-delta`: one more backup for a snapshot.
    FileHistoryDelta {
        message_id: Cow<'a, str> = "messageId",
        snapshot_message_id: Cow<'a, str> = "snapshotMessageId",
        tracking_path: Cow<'a, str> = "trackingPath",
        backup: Backup<'a> = "backup",
    }

    /// `queue-operation`.
    QueueOperation {
        /// `enqueue`, `dequeue`, `remove` or `popAll`.
        operation: Cow<'a, str> = "operation",
        content: Mixed<'a, Block<'a>> = "content",
        /// Why a prompt was removed from the queue, such as `absorbed_mid_turn`.
        reason: Cow<'a, str> = "reason",
        command_uuid: Cow<'a, str> = "commandUuid",
        delivery_id: Cow<'a, str> = "deliveryId",
    }

    /// `last-prompt`.
    LastPrompt {
        last_prompt: Cow<'a, str> = "lastPrompt",
        leaf_uuid: Cow<'a, str> = "leafUuid",
        /// Whether the user selected the leaf, by a rewind.
        explicit: bool = "explicit",
    }

    /// `custom-title`.
    CustomTitle {
        custom_title: Cow<'a, str> = "customTitle",
    }

    /// `ai-title`.
    AiTitle {
        ai_title: Cow<'a, str> = "aiTitle",
    }

    /// `tag`.
    Tag {
        tag: Cow<'a, str> = "tag",
    }

    /// `agent-name`, `agent-color`, `agent-setting`.
    AgentSetup {
        agent_name: Cow<'a, str> = "agentName",
        agent_color: Cow<'a, str> = "agentColor",
        agent_setting: Json<'a> = "agentSetting",
    }

    /// `mode`.
    Mode {
        mode: Cow<'a, str> = "mode",
    }

    /// `permission-mode`.
    PermissionMode {
        permission_mode: Cow<'a, str> = "permissionMode",
    }

    /// `pr-link`.
    PrLink {
        pr_number: u64 = "prNumber",
        pr_url: Cow<'a, str> = "prUrl",
        pr_repository: Cow<'a, str> = "prRepository",
    }

    /// `frame-link`.
    FrameLink {
        path: Cow<'a, str> = "path",
        frame_url: Cow<'a, str> = "frameUrl",
        title: Cow<'a, str> = "title",
    }

    /// `content-replacement`.
    ContentReplacement {
        replacements: List<'a, Replacement<'a>> = "replacements",
    }

    /// The placeholder for content that was moved out of the log.
    Replacement {
        kind: Cow<'a, str> = "kind",
        tool_use_id: Cow<'a, str> = "toolUseId",
        replacement: Cow<'a, str> = "replacement",
    }

    /// `cost-state`: Claude Code's own running totals.
    CostState {
        total_cost_usd: f64 = "totalCostUSD",
        total_api_duration: f64 = "totalAPIDuration",
        total_api_duration_without_retries: f64 = "totalAPIDurationWithoutRetries",
        total_tool_duration: f64 = "totalToolDuration",
        total_duration: f64 = "totalDuration",
        total_lines_added: u64 = "totalLinesAdded",
        total_lines_removed: u64 = "totalLinesRemoved",
        start_time: f64 = "startTime",
        /// A map from model to [`ModelUsage`].
        model_usage: Map<'a, ModelUsage<'a>> = "modelUsage",
        has_unknown_model_cost: bool = "hasUnknownModelCost",
    }

    /// The usage and cost of one model, in Claude Code's own totals.
    ModelUsage {
        input_tokens: u64 = "inputTokens",
        output_tokens: u64 = "outputTokens",
        thinking_tokens: u64 = "thinkingTokens",
        cache_read_input_tokens: u64 = "cacheReadInputTokens",
        cache_creation_input_tokens: u64 = "cacheCreationInputTokens",
        cache_creation_ephemeral_5m_input_tokens: u64 = "cacheCreationEphemeral5mInputTokens",
        cache_creation_ephemeral_1h_input_tokens: u64 = "cacheCreationEphemeral1hInputTokens",
        web_search_requests: u64 = "webSearchRequests",
        cost_usd: f64 = "costUSD",
    }

    /// `tools-used`.
    ToolsUsed {
        tools: List<'a, Cow<'a, str>> = "tools",
    }

    /// `atis-latch`.
    AtisLatch {
        atis: Json<'a> = "atis",
    }

    /// `api-request`: a request, with its parts by reference.
    ApiRequest {
        id: Cow<'a, str> = "id",
        base: Json<'a> = "base",
        keep: Json<'a> = "keep",
        tail: List<'a, Json<'a>> = "tail",
        params: Open<'a> = "params",
        shape_hash: Cow<'a, str> = "shapeHash",
        query_source: Cow<'a, str> = "querySource",
        cache_control: Open<'a> = "cacheControl",
        request_digest: Json<'a> = "requestDigest",
    }

    /// `api-request-shape`: the system prompt and tools of requests.
    ApiRequestShape {
        shape: Open<'a> = "shape",
        shape_hash: Cow<'a, str> = "shapeHash",
    }

    /// `api-request-blob`: a second copy of a message.
    ApiRequestBlob {
        hash: Cow<'a, str> = "hash",
        message: Open<'a> = "message",
    }

    /// `relocated`: the session was moved to another working directory.
    Relocated {
        relocated_cwd: Cow<'a, str> = "relocatedCwd",
    }

    /// `worktree-state`: the worktree that the session is in; `null` after leaving it.
    WorktreeState {
        worktree_session: WorktreeSession<'a> = "worktreeSession",
    }

    /// A worktree that a session works in.
    WorktreeSession {
        worktree_name: Cow<'a, str> = "worktreeName",
        worktree_path: Cow<'a, str> = "worktreePath",
        worktree_branch: Cow<'a, str> = "worktreeBranch",
        original_cwd: Cow<'a, str> = "originalCwd",
        pre_enter_original_cwd: Cow<'a, str> = "preEnterOriginalCwd",
    }

    /// `fork-context-ref`: a sub-agent starts from the conversation of its parent.
    ForkContextRef {
        parent_session_id: Cow<'a, str> = "parentSessionId",
        parent_last_uuid: Cow<'a, str> = "parentLastUuid",
        context_length: u64 = "contextLength",
    }
}

/// Returns the lens for the fields that lines of a kind add to [`Record`].
pub(crate) fn record_lenses(kind: Kind) -> Option<Knows> {
    Some(match kind {
        Kind::Summary => Summary::knows,
        Kind::FileHistorySnapshot => FileHistorySnapshot::knows,
        Kind::FileHistoryDelta => FileHistoryDelta::knows,
        Kind::QueueOperation => QueueOperation::knows,
        Kind::LastPrompt => LastPrompt::knows,
        Kind::CustomTitle => CustomTitle::knows,
        Kind::AiTitle => AiTitle::knows,
        Kind::Tag => Tag::knows,
        Kind::AgentName | Kind::AgentColor | Kind::AgentSetting => AgentSetup::knows,
        Kind::Mode => Mode::knows,
        Kind::PermissionMode => PermissionMode::knows,
        Kind::PrLink => PrLink::knows,
        Kind::FrameLink => FrameLink::knows,
        Kind::ContentReplacement => ContentReplacement::knows,
        Kind::CostState => CostState::knows,
        Kind::ToolsUsed => ToolsUsed::knows,
        Kind::AtisLatch => AtisLatch::knows,
        Kind::ApiRequest => ApiRequest::knows,
        Kind::ApiRequestShape => ApiRequestShape::knows,
        Kind::ApiRequestBlob => ApiRequestBlob::knows,
        Kind::Relocated => Relocated::knows,
        Kind::WorktreeState => WorktreeState::knows,
        Kind::ForkContextRef => ForkContextRef::knows,
        _ => return None,
    })
}
