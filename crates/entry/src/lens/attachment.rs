//! `attachment` lines: context that Claude Code added to the conversation.

use std::borrow::Cow;

use super::{Json, List, Origin, lens};

lens! {
    /// The body of an `attachment` line. Which fields it has depends on [`AttachmentBody::kind`].
    AttachmentBody {
        kind: Cow<'a, str> = "type",
        /// A string for hooks and listings; an object for files.
        content: Json<'a> = "content",

        /// `file`, `edited_text_file`, `nested_memory`, `directory`, `compact_file_reference` …
        filename: Cow<'a, str> = "filename",
        path: Cow<'a, str> = "path",
        display_path: Cow<'a, str> = "displayPath",
        snippet: Cow<'a, str> = "snippet",

        /// `hook_success`, `hook_additional_context`, `hook_system_message`, `hook_non_blocking_error` …
        hook_event: Cow<'a, str> = "hookEvent",
        hook_name: Cow<'a, str> = "hookName",
        tool_use_id: Cow<'a, str> = "toolUseID",
        command: Cow<'a, str> = "command",
        exit_code: f64 = "exitCode",
        duration_ms: f64 = "durationMs",
        stdout: Cow<'a, str> = "stdout",
        stderr: Cow<'a, str> = "stderr",
        blocking_error: Json<'a> = "blockingError",

        /// `queued_command`: a prompt typed while the model was at work.
        prompt: Json<'a> = "prompt",
        command_mode: Cow<'a, str> = "commandMode",
        origin: Origin<'a> = "origin",
        source_uuid: Cow<'a, str> = "source_uuid",
        timestamp: Cow<'a, str> = "timestamp",

        /// `task_reminder`, `todo_reminder`, `skill_listing`.
        item_count: u64 = "itemCount",
        skill_count: u64 = "skillCount",
        names: List<'a, Cow<'a, str>> = "names",
        digests: Json<'a> = "digests",
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

        /// `environment`, `model`, `instructions`, `session_context`, `prompt_snapshot`, `remote_session_change`.
        snapshot: Json<'a> = "snapshot",
        identity: Json<'a> = "identity",
        text: Cow<'a, str> = "text",
        context: Json<'a> = "context",
        cli_prefix: Json<'a> = "cliPrefix",
        context_rendering: Json<'a> = "contextRendering",
        echo_wire_tool_inputs: Json<'a> = "echoWireToolInputs",
        inline_tools: Json<'a> = "inlineTools",
        kept_reminders: Json<'a> = "keptReminders",
        reminder_fold: Json<'a> = "reminderFold",
        system_prompt: Json<'a> = "systemPrompt",
        system_turns: Json<'a> = "systemTurns",
        tool_change_header: Json<'a> = "toolChangeHeader",
        tools: Json<'a> = "tools",
        commit: Json<'a> = "commit",
        managed_commit: Json<'a> = "managedCommit",
        managed_pr: Json<'a> = "managedPr",
        pr: Json<'a> = "pr",
        send_user_file_hint: Json<'a> = "sendUserFileHint",
        url: Json<'a> = "url",
    }
}

/// The attachment types that we know.
pub const ATTACHMENT_TYPES: &[&str] = &[
    "agent_listing_delta",
    "auto_mode",
    "command_permissions",
    "compact_file_reference",
    "date",
    "date_change",
    "deferred_tools_delta",
    "directory",
    "edited_text_file",
    "environment",
    "file",
    "hook_additional_context",
    "hook_non_blocking_error",
    "hook_success",
    "hook_system_message",
    "instructions",
    "mcp_instructions_delta",
    "model",
    "nested_memory",
    "plan_mode",
    "plan_mode_exit",
    "prompt_snapshot",
    "queued_command",
    "remote_session_change",
    "session_context",
    "skill_listing",
    "task_reminder",
    "todo_reminder",
];
