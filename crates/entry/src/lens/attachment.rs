//! `attachment` lines: context that Claude Code added to the conversation.

use std::borrow::Cow;

use super::{Block, Json, List, Mixed, Open, Origin, ReadFile, lens};

lens! {
    /// The body of an `attachment` line. Which fields it has depends on [`AttachmentBody::kind`].
    AttachmentBody {
        kind: Cow<'a, str> = "type",
        /// A string for hooks and listings; an object for files.
        content: Mixed<'a, AttachedContent<'a>> = "content",

        /// `file`, `edited_text_file`, `nested_memory`, `directory`, `compact_file_reference` and others.
        filename: Cow<'a, str> = "filename",
        path: Cow<'a, str> = "path",
        display_path: Cow<'a, str> = "displayPath",
        snippet: Cow<'a, str> = "snippet",

        /// `hook_success`, `hook_additional_context`, `hook_system_message`, `hook_non_blocking_error` and
        /// others.
        hook_event: Cow<'a, str> = "hookEvent",
        hook_name: Cow<'a, str> = "hookName",
        tool_use_id: Cow<'a, str> = "toolUseID",
        command: Cow<'a, str> = "command",
        exit_code: f64 = "exitCode",
        duration_ms: f64 = "durationMs",
        stdout: Cow<'a, str> = "stdout",
        stderr: Cow<'a, str> = "stderr",
        blocking_error: Mixed<'a, BlockingError<'a>> = "blockingError",
        /// `hook_stopped_continuation`.
        message: Cow<'a, str> = "message",

        /// `queued_command`: a prompt that was typed while the model was working.
        prompt: Mixed<'a, Block<'a>> = "prompt",
        command_mode: Cow<'a, str> = "commandMode",
        origin: Origin<'a> = "origin",
        source_uuid: Cow<'a, str> = "source_uuid",
        timestamp: Cow<'a, str> = "timestamp",
        delivery_id: Cow<'a, str> = "delivery_id",
        run_id: Cow<'a, str> = "runId",
        human_turn: Json<'a> = "humanTurn",
        tools_used_delta: List<'a, Cow<'a, str>> = "toolsUsedDelta",
        usage: TaskUsage<'a> = "usage",

        /// `task_reminder`, `todo_reminder`, `skill_listing`.
        item_count: u64 = "itemCount",
        skill_count: u64 = "skillCount",
        names: List<'a, Cow<'a, str>> = "names",
        digests: Open<'a> = "digests",
        is_initial: bool = "isInitial",

        /// `deferred_tools_delta`, `agent_listing_delta`, `mcp_instructions_delta`.
        added_lines: Json<'a> = "addedLines",
        added_names: Json<'a> = "addedNames",
        added_types: Json<'a> = "addedTypes",
        added_blocks: Json<'a> = "addedBlocks",
        removed_names: Json<'a> = "removedNames",
        removed_types: Json<'a> = "removedTypes",
        readded_names: Json<'a> = "readdedNames",
        pending_mcp_servers: Json<'a> = "pendingMcpServers",
        needs_auth_mcp_servers: Json<'a> = "needsAuthMcpServers",
        failed_mcp_servers: Json<'a> = "failedMcpServers",
        wire_hidden_names: Json<'a> = "wireHiddenNames",
        show_concurrency_note: bool = "showConcurrencyNote",
        built_in_types: Json<'a> = "builtInTypes",
        built_in_plugin_types: Json<'a> = "builtInPluginTypes",

        /// `command_permissions`.
        allowed_tools: Json<'a> = "allowedTools",

        /// `plan_mode`, `plan_mode_exit`.
        plan_exists: bool = "planExists",
        plan_file_path: Cow<'a, str> = "planFilePath",
        reminder_type: Cow<'a, str> = "reminderType",
        is_sub_agent: bool = "isSubAgent",

        /// `auto_mode`.
        auto_mode_consent_flow: Json<'a> = "autoModeConsentFlow",
        bash_first: Json<'a> = "bashFirst",
        bash_first_steer: Json<'a> = "bashFirstSteer",
        bypass: Json<'a> = "bypass",
        finish_exposed_work: Json<'a> = "finishExposedWork",
        steer_only: Json<'a> = "steerOnly",

        /// `date_change`, `date`.
        new_date: Cow<'a, str> = "newDate",
        date: Cow<'a, str> = "date",

        /// `environment`, `model`, `instructions`, `session_context`, `prompt_snapshot`,
        /// `remote_session_change`.
        snapshot: EnvironmentSnapshot<'a> = "snapshot",
        changes: List<'a, EnvironmentChange<'a>> = "changes",
        identity: ModelIdentity<'a> = "identity",
        files: List<'a, InstructionFile<'a>> = "files",
        saved_copy_framing: SavedCopyFraming<'a> = "savedCopyFraming",
        text: Cow<'a, str> = "text",
        context: SessionContext<'a> = "context",
        cli_prefix: Json<'a> = "cliPrefix",
        context_rendering: Json<'a> = "contextRendering",
        echo_wire_tool_inputs: Json<'a> = "echoWireToolInputs",
        inline_tools: Json<'a> = "inlineTools",
        kept_reminders: Json<'a> = "keptReminders",
        reminder_fold: Json<'a> = "reminderFold",
        system_prompt: Json<'a> = "systemPrompt",
        system_turns: Json<'a> = "systemTurns",
        tool_change_header: Json<'a> = "toolChangeHeader",
        tools: Open<'a> = "tools",
        commit: Json<'a> = "commit",
        managed_commit: Json<'a> = "managedCommit",
        managed_pr: Json<'a> = "managedPr",
        pr: Json<'a> = "pr",
        send_user_file_hint: Json<'a> = "sendUserFileHint",
        url: Json<'a> = "url",

        /// `budget_usd`.
        used: f64 = "used",
        total: f64 = "total",
        remaining: f64 = "remaining",

        /// `goal_status`: a condition that must hold before the model may stop, and the last check of it.
        condition: Cow<'a, str> = "condition",
        met: bool = "met",
        reason: Cow<'a, str> = "reason",
        iterations: u64 = "iterations",
        tokens: u64 = "tokens",
        /// The goal was set; it was not checked yet.
        sentinel: bool = "sentinel",

        /// `max_turns_reached`.
        max_turns: u64 = "maxTurns",
        turn_count: u64 = "turnCount",
        exit_committed: bool = "exitCommitted",

        /// `structured_output`: the answer, in the requested schema.
        data: Open<'a> = "data",

        /// `deferred_tools_record`.
        entries: List<'a, DeferredTool<'a>> = "entries",

        /// `unknown_command_fallback`.
        command_name: Cow<'a, str> = "commandName",
        available_command_names: List<'a, Cow<'a, str>> = "availableCommandNames",
        available_command_count: u64 = "availableCommandCount",
    }

    /// Objects under `content`: a file that was read, a memory file, a task or a to-do item.
    AttachedContent {
        kind: Cow<'a, str> = "type",
        file: ReadFile<'a> = "file",
        path: Cow<'a, str> = "path",
        content: Cow<'a, str> = "content",
        raw_content: Cow<'a, str> = "rawContent",
        content_differs_from_disk: bool = "contentDiffersFromDisk",
        globs: List<'a, Cow<'a, str>> = "globs",
        parent: Cow<'a, str> = "parent",
        id: Cow<'a, str> = "id",
        subject: Cow<'a, str> = "subject",
        description: Cow<'a, str> = "description",
        status: Cow<'a, str> = "status",
        owner: Cow<'a, str> = "owner",
        blocks: List<'a, Cow<'a, str>> = "blocks",
        blocked_by: List<'a, Cow<'a, str>> = "blockedBy",
        metadata: Open<'a> = "metadata",
        active_form: Cow<'a, str> = "activeForm",
        priority: Cow<'a, str> = "priority",
    }

    /// Why a hook blocked the model.
    BlockingError {
        blocking_error: Cow<'a, str> = "blockingError",
        command: Cow<'a, str> = "command",
    }

    /// The resources that a background task used.
    TaskUsage {
        duration_ms: f64 = "durationMs",
        tool_uses: u64 = "toolUses",
        total_tokens: u64 = "totalTokens",
    }

    /// The environment of a session.
    EnvironmentSnapshot {
        working_directory: Cow<'a, str> = "workingDirectory",
        additional_working_directories: List<'a, Cow<'a, str>> = "additionalWorkingDirectories",
        is_git_repo: bool = "isGitRepo",
        is_worktree: bool = "isWorktree",
        os_version: Cow<'a, str> = "osVersion",
        platform: Cow<'a, str> = "platform",
        shell: Cow<'a, str> = "shell",
    }

    /// Information about the folder of a session.
    SessionContext {
        git_status: Json<'a> = "gitStatus",
    }

    /// A change of the environment.
    EnvironmentChange {
        field: Cow<'a, str> = "field",
        from: Json<'a> = "from",
        to: Json<'a> = "to",
    }

    /// The model of a session.
    ModelIdentity {
        model_id: Cow<'a, str> = "modelId",
        marketing_name: Cow<'a, str> = "marketingName",
        knowledge_cutoff: Cow<'a, str> = "knowledgeCutoff",
    }

    /// A memory file that was loaded.
    InstructionFile {
        kind: Cow<'a, str> = "type",
        path: Cow<'a, str> = "path",
        content: Cow<'a, str> = "content",
        globs: List<'a, Cow<'a, str>> = "globs",
        parent: Cow<'a, str> = "parent",
    }

    /// How the copy of a file is presented to the model.
    SavedCopyFraming {
        enveloped: bool = "enveloped",
    }

    /// A tool that is loaded on demand.
    DeferredTool {
        name: Cow<'a, str> = "name",
        description: Cow<'a, str> = "description",
        input_schema: Open<'a> = "input_schema",
        defer_loading: bool = "defer_loading",
    }
}

/// The known attachment types.
pub const ATTACHMENT_TYPES: &[&str] = &[
    "agent_listing_delta",
    "auto_mode",
    "budget_usd",
    "command_permissions",
    "compact_file_reference",
    "date",
    "date_change",
    "deferred_tools_delta",
    "deferred_tools_record",
    "directory",
    "edited_text_file",
    "environment",
    "file",
    "goal_status",
    "hook_additional_context",
    "hook_blocking_error",
    "hook_cancelled",
    "hook_non_blocking_error",
    "hook_stopped_continuation",
    "hook_success",
    "hook_system_message",
    "instructions",
    "max_turns_reached",
    "mcp_instructions_delta",
    "model",
    "nested_memory",
    "plan_mode",
    "plan_mode_exit",
    "prompt_snapshot",
    "queued_command",
    "remote_session_change",
    "session_context",
    "silent_turn_reminder",
    "skill_listing",
    "structured_output",
    "task_reminder",
    "todo_reminder",
    "total_tokens_reminder",
    "ultrathink_effort",
    "unknown_command_fallback",
];
