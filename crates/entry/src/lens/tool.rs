//! `toolUseResult`: the structured result of a tool, for display. Its fields depend on the tool.

use std::borrow::Cow;

use foldhash::HashSet;

use super::{Drift, FromJson, Json, JsonKind, Knows, List, Map, Mixed, Object, Open, Usage, lens};
use crate::lens::{Content, Lens};

/// The structured result of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolUseResult<'a>(Json<'a>);

impl<'a> ToolUseResult<'a> {
    pub(crate) fn new(json: Json<'a>) -> Self {
        Self(json)
    }

    /// Returns the result as JSON.
    pub fn json(self) -> Json<'a> {
        self.0
    }

    /// Returns the error message: the result of a failed or denied call is a string.
    pub fn error_text(self) -> Option<Cow<'a, str>> {
        self.0.as_str()
    }

    /// Returns the content blocks of the result of an MCP tool.
    pub fn blocks(self) -> Option<Content<'a>> {
        (self.0.kind() == JsonKind::Array).then(|| Content::from_json(self.0)).flatten()
    }

    /// Reads the result through the lens of one tool: `result.of::<BashResult>()`.
    pub fn of<L: Lens<'a>>(self) -> Option<L> {
        self.0.is_object().then(|| L::over(Object::new(self.0)))
    }
}

impl<'a> BashEditDiff<'a> {
    /// Returns the paths of the changed files, each once, with the lines of those that are listed with them.
    pub fn changed_files_once(self) -> Vec<(Cow<'a, str>, Option<BashEditFile<'a>>)> {
        let mut seen = HashSet::default();
        let listed = self.files().into_iter().flat_map(List::iter);
        let listed = listed.filter_map(|file| Some((file.file_path()?, Some(file))));
        let named = self.changed_files().into_iter().flat_map(List::iter).map(|path| (path, None));
        listed.chain(named).filter(|(path, _)| seen.insert(path.clone())).collect()
    }
}

impl<'a> FromJson<'a> for ToolUseResult<'a> {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        Some(Self(json))
    }

    /// The tool call is on another line, so a key is known if the lens of any tool defines it.
    fn drift(json: Json<'_>, drift: &mut Drift<'_>) {
        match json.kind() {
            JsonKind::Object => drift.members(json, RESULT_LENSES),
            _ => Content::drift(json, drift),
        }
    }
}

lens! {
    /// Result of Bash, PowerShell.
    BashResult {
        stdout: Cow<'a, str> = "stdout",
        stderr: Cow<'a, str> = "stderr",
        interrupted: bool = "interrupted",
        is_image: bool = "isImage",
        no_output_expected: bool = "noOutputExpected",
        return_code_interpretation: Cow<'a, str> = "returnCodeInterpretation",
        background_task_id: Cow<'a, str> = "backgroundTaskId",
        git_operation: GitOperation<'a> = "gitOperation",
        persisted_output_path: Cow<'a, str> = "persistedOutputPath",
        persisted_output_size: u64 = "persistedOutputSize",
        code: Json<'a> = "code",
        /// Files that the command changed (from 2.1.269, in a git repository).
        bash_edit_diff: BashEditDiff<'a> = "bashEditDiff",
        stale_read_file_state_hint: Cow<'a, str> = "staleReadFileStateHint",
        timed_out_after_ms: Json<'a> = "timedOutAfterMs",
    }

    /// The effect of a command on a git repository.
    GitOperation {
        commit: GitCommit<'a> = "commit",
        push: GitPush<'a> = "push",
        branch: GitBranch<'a> = "branch",
        pr: GitPullRequest<'a> = "pr",
    }

    /// A commit that a command created.
    GitCommit {
        kind: Cow<'a, str> = "kind",
        sha: Cow<'a, str> = "sha",
        branch: Cow<'a, str> = "branch",
    }

    /// A branch that a command pushed.
    GitPush {
        branch: Cow<'a, str> = "branch",
    }

    /// A branch that a command created or switched to.
    GitBranch {
        action: Cow<'a, str> = "action",
        #[doc = "The branch."]
        reference: Cow<'a, str> = "ref",
    }

    /// A pull request that a command created or changed.
    GitPullRequest {
        action: Cow<'a, str> = "action",
        number: u64 = "number",
        url: Cow<'a, str> = "url",
    }

    /// The changes that a command made to files.
    BashEditDiff {
        files: List<'a, BashEditFile<'a>> = "files",
        /// The number of changed files that are not listed with their text.
        more_files: u64 = "moreFiles",
        changed_files: List<'a, Cow<'a, str>> = "changedFiles",
        /// The command changed files, and Claude Code did not look at which.
        skipped: bool = "skipped",
        skipped_large: Json<'a> = "skippedLarge",
        restricted: Json<'a> = "restricted",
    }

    /// A file that a command changed. For a file tracked by git, the hunks may be relative to the last
    /// commit.
    BashEditFile {
        file_path: Cow<'a, str> = "filePath",
        hunks: List<'a, PatchHunk<'a>> = "hunks",
        created: bool = "created",
        deleted: bool = "deleted",
    }

    /// Result of BashOutput.
    BashOutputResult {
        command: Cow<'a, str> = "command",
        exit_code: f64 = "exitCode",
        shell_id: Cow<'a, str> = "shellId",
        status: Cow<'a, str> = "status",
        stdout: Cow<'a, str> = "stdout",
        stderr: Cow<'a, str> = "stderr",
        stdout_lines: u64 = "stdoutLines",
        stderr_lines: u64 = "stderrLines",
        timestamp: Cow<'a, str> = "timestamp",
    }

    /// Result of KillBash, KillShell, TaskStop.
    StopResult {
        message: Cow<'a, str> = "message",
        success: bool = "success",
        shell_id: Cow<'a, str> = "shell_id",
        task_id: Cow<'a, str> = "task_id",
        task_type: Cow<'a, str> = "task_type",
        command: Cow<'a, str> = "command",
    }

    /// Result of Read.
    ReadResult {
        kind: Cow<'a, str> = "type",
        file: ReadFile<'a> = "file",
    }

    /// The file, or part of a file, that was read.
    ReadFile {
        file_path: Cow<'a, str> = "filePath",
        content: Cow<'a, str> = "content",
        num_lines: u64 = "numLines",
        start_line: u64 = "startLine",
        total_lines: u64 = "totalLines",
        /// For an image.
        base64: Cow<'a, str> = "base64",
        kind: Cow<'a, str> = "type",
        original_size: u64 = "originalSize",
        dimensions: ImageDimensions<'a> = "dimensions",
        /// For a notebook.
        cells: List<'a, NotebookCell<'a>> = "cells",
        count: u64 = "count",
        output_dir: Cow<'a, str> = "outputDir",
    }

    /// The original size of an image, and its size as displayed.
    ImageDimensions {
        original_width: u64 = "originalWidth",
        original_height: u64 = "originalHeight",
        display_width: u64 = "displayWidth",
        display_height: u64 = "displayHeight",
    }

    /// A cell of a notebook.
    NotebookCell {
        cell_type: Cow<'a, str> = "cellType",
        cell_id: Cow<'a, str> = "cell_id",
        language: Cow<'a, str> = "language",
        execution_count: Json<'a> = "execution_count",
        source: Cow<'a, str> = "source",
        /// In the formats of the notebook's tools.
        outputs: Open<'a> = "outputs",
    }

    /// Result of Edit.
    EditResult {
        file_path: Cow<'a, str> = "filePath",
        old_string: Cow<'a, str> = "oldString",
        new_string: Cow<'a, str> = "newString",
        original_file: Cow<'a, str> = "originalFile",
        structured_patch: List<'a, PatchHunk<'a>> = "structuredPatch",
        user_modified: bool = "userModified",
        replace_all: bool = "replaceAll",
        stale_recovered: bool = "staleRecovered",
        memdir_stamped: bool = "memdirStamped",
    }

    /// Result of MultiEdit.
    MultiEditResult {
        file_path: Cow<'a, str> = "filePath",
        edits: List<'a, TextReplacement<'a>> = "edits",
        original_file_contents: Cow<'a, str> = "originalFileContents",
        structured_patch: List<'a, PatchHunk<'a>> = "structuredPatch",
        user_modified: bool = "userModified",
    }

    /// One replacement of a MultiEdit.
    TextReplacement {
        old_string: Cow<'a, str> = "old_string",
        new_string: Cow<'a, str> = "new_string",
        replace_all: bool = "replace_all",
    }

    /// Result of Write.
    WriteResult {
        /// `create` or `update`.
        kind: Cow<'a, str> = "type",
        file_path: Cow<'a, str> = "filePath",
        content: Cow<'a, str> = "content",
        original_file: Cow<'a, str> = "originalFile",
        structured_patch: List<'a, PatchHunk<'a>> = "structuredPatch",
        user_modified: bool = "userModified",
        memdir_stamped: bool = "memdirStamped",
    }

    /// One hunk of a patch.
    PatchHunk {
        old_start: u64 = "oldStart",
        old_lines: u64 = "oldLines",
        new_start: u64 = "newStart",
        new_lines: u64 = "newLines",
        lines: List<'a, Cow<'a, str>> = "lines",
    }

    /// Result of NotebookEdit.
    NotebookEditResult {
        cell_number: Json<'a> = "cell_number",
        cell_id: Cow<'a, str> = "cell_id",
        cell_type: Cow<'a, str> = "cell_type",
        edit_mode: Cow<'a, str> = "edit_mode",
        error: Cow<'a, str> = "error",
        language: Cow<'a, str> = "language",
        new_source: Cow<'a, str> = "new_source",
        notebook_path: Cow<'a, str> = "notebook_path",
        old_source: Cow<'a, str> = "old_source",
        original_file: Cow<'a, str> = "original_file",
        updated_file: Cow<'a, str> = "updated_file",
    }

    /// Result of Grep.
    GrepResult {
        mode: Cow<'a, str> = "mode",
        filenames: List<'a, Cow<'a, str>> = "filenames",
        num_files: u64 = "numFiles",
        content: Cow<'a, str> = "content",
        num_lines: u64 = "numLines",
        num_matches: u64 = "numMatches",
        total_lines: u64 = "totalLines",
        total_files: u64 = "totalFiles",
        applied_limit: u64 = "appliedLimit",
        applied_offset: u64 = "appliedOffset",
    }

    /// Result of Glob.
    GlobResult {
        filenames: List<'a, Cow<'a, str>> = "filenames",
        num_files: u64 = "numFiles",
        duration_ms: f64 = "durationMs",
        truncated: bool = "truncated",
        count_is_complete: bool = "countIsComplete",
        total_matches: u64 = "totalMatches",
    }

    /// Result of Task, Agent.
    AgentResult {
        status: Cow<'a, str> = "status",
        prompt: Cow<'a, str> = "prompt",
        agent_id: Cow<'a, str> = "agentId",
        agent_type: Cow<'a, str> = "agentType",
        content: Content<'a> = "content",
        total_duration_ms: u64 = "totalDurationMs",
        total_tokens: u64 = "totalTokens",
        total_tool_use_count: u64 = "totalToolUseCount",
        usage: Usage<'a> = "usage",
        tool_stats: ToolStats<'a> = "toolStats",
        resolved_model: Cow<'a, str> = "resolvedModel",
        is_async: bool = "isAsync",
        description: Cow<'a, str> = "description",
        output_file: Cow<'a, str> = "outputFile",
        can_read_output_file: bool = "canReadOutputFile",
        can_continue_agent: bool = "canContinueAgent",
    }

    /// The number of calls of a sub-agent by kind of tool.
    ToolStats {
        bash_count: u64 = "bashCount",
        edit_file_count: u64 = "editFileCount",
        lines_added: u64 = "linesAdded",
        lines_removed: u64 = "linesRemoved",
        other_tool_count: u64 = "otherToolCount",
        read_count: u64 = "readCount",
        search_count: u64 = "searchCount",
    }

    /// Result of Task, Agent when it started a teammate, which has its own session.
    TeammateResult {
        agent_id: Cow<'a, str> = "agent_id",
        teammate_id: Cow<'a, str> = "teammate_id",
        agent_type: Cow<'a, str> = "agent_type",
        name: Cow<'a, str> = "name",
        team_name: Cow<'a, str> = "team_name",
        color: Cow<'a, str> = "color",
        model: Cow<'a, str> = "model",
        is_splitpane: bool = "is_splitpane",
        plan_mode_required: bool = "plan_mode_required",
        tmux_pane_id: Cow<'a, str> = "tmux_pane_id",
        tmux_session_name: Cow<'a, str> = "tmux_session_name",
        tmux_window_name: Cow<'a, str> = "tmux_window_name",
    }

    /// Result of TeamCreate, TeamDelete.
    TeamResult {
        lead_agent_id: Cow<'a, str> = "lead_agent_id",
        team_file_path: Cow<'a, str> = "team_file_path",
        team_name: Cow<'a, str> = "team_name",
        message: Cow<'a, str> = "message",
        success: bool = "success",
    }

    /// Result of SendMessage.
    SendMessageResult {
        message: Cow<'a, str> = "message",
        success: bool = "success",
        routing: MessageRouting<'a> = "routing",
        request_id: Cow<'a, str> = "request_id",
        target: Cow<'a, str> = "target",
        pin: MessagePin<'a> = "pin",
        resumed_agent_id: Cow<'a, str> = "resumedAgentId",
        revived_agent_id: Cow<'a, str> = "revivedAgentId",
    }

    /// The sender and the receiver of a message.
    MessageRouting {
        sender: Cow<'a, str> = "sender",
        sender_color: Cow<'a, str> = "senderColor",
        target: Cow<'a, str> = "target",
        target_color: Cow<'a, str> = "targetColor",
        summary: Cow<'a, str> = "summary",
        content: Cow<'a, str> = "content",
    }

    /// The agent that a name refers to.
    MessagePin {
        id: Cow<'a, str> = "id",
        name: Cow<'a, str> = "name",
        #[doc = "How the agent is referred to."]
        reference: Json<'a> = "ref",
    }

    /// Result of TodoWrite.
    TodoWriteResult {
        old_todos: List<'a, Todo<'a>> = "oldTodos",
        new_todos: List<'a, Todo<'a>> = "newTodos",
    }

    /// One to-do item.
    Todo {
        id: Cow<'a, str> = "id",
        content: Cow<'a, str> = "content",
        status: Cow<'a, str> = "status",
        active_form: Cow<'a, str> = "activeForm",
        priority: Cow<'a, str> = "priority",
    }

    /// Result of TaskCreate, TaskGet, TaskOutput, TaskList.
    TaskResult {
        task: TaskItem<'a> = "task",
        tasks: List<'a, TaskItem<'a>> = "tasks",
        retrieval_status: Cow<'a, str> = "retrieval_status",
    }

    /// One task.
    TaskItem {
        id: Cow<'a, str> = "id",
        subject: Cow<'a, str> = "subject",
        description: Cow<'a, str> = "description",
        status: Cow<'a, str> = "status",
        owner: Cow<'a, str> = "owner",
        blocks: Json<'a> = "blocks",
        blocked_by: Json<'a> = "blockedBy",
        task_id: Cow<'a, str> = "task_id",
        task_type: Cow<'a, str> = "task_type",
        output: Cow<'a, str> = "output",
        exit_code: f64 = "exitCode",
        prompt: Cow<'a, str> = "prompt",
        result: Cow<'a, str> = "result",
        error: Cow<'a, str> = "error",
    }

    /// Result of TaskUpdate.
    TaskUpdateResult {
        task_id: Cow<'a, str> = "taskId",
        success: bool = "success",
        updated_fields: List<'a, Cow<'a, str>> = "updatedFields",
        status_change: StatusChange<'a> = "statusChange",
        verification_nudge_needed: bool = "verificationNudgeNeeded",
        error: Cow<'a, str> = "error",
    }

    /// The status of a task before and after.
    StatusChange {
        from: Cow<'a, str> = "from",
        to: Cow<'a, str> = "to",
    }

    /// Result of WebFetch.
    WebFetchResult {
        url: Cow<'a, str> = "url",
        bytes: u64 = "bytes",
        code: u64 = "code",
        code_text: Cow<'a, str> = "codeText",
        result: Cow<'a, str> = "result",
        duration_ms: f64 = "durationMs",
    }

    /// Result of WebSearch.
    WebSearchResult {
        query: Cow<'a, str> = "query",
        results: Mixed<'a, SearchHits<'a>> = "results",
        duration_seconds: f64 = "durationSeconds",
        search_count: u64 = "searchCount",
    }

    /// The matches of one search, or a single match.
    SearchHits {
        tool_use_id: Cow<'a, str> = "tool_use_id",
        content: Mixed<'a, SearchHits<'a>> = "content",
        title: Cow<'a, str> = "title",
        url: Cow<'a, str> = "url",
    }

    /// Result of EnterPlanMode, ExitPlanMode.
    PlanResult {
        plan: Cow<'a, str> = "plan",
        is_agent: bool = "isAgent",
        file_path: Cow<'a, str> = "filePath",
        has_task_tool: bool = "hasTaskTool",
        plan_was_edited: bool = "planWasEdited",
        message: Cow<'a, str> = "message",
    }

    /// Result of AskUserQuestion.
    AskUserQuestionResult {
        questions: List<'a, Question<'a>> = "questions",
        /// A map from question to answer.
        answers: Map<'a, Json<'a>> = "answers",
        annotations: Map<'a, Annotation<'a>> = "annotations",
    }

    /// A question with its choices.
    Question {
        question: Cow<'a, str> = "question",
        header: Cow<'a, str> = "header",
        multi_select: bool = "multiSelect",
        options: List<'a, Choice<'a>> = "options",
    }

    /// An answer option of a question.
    Choice {
        label: Cow<'a, str> = "label",
        description: Cow<'a, str> = "description",
        preview: Cow<'a, str> = "preview",
    }

    /// A remark of the user on an answer.
    Annotation {
        notes: Cow<'a, str> = "notes",
        preview: Cow<'a, str> = "preview",
    }

    /// Result of Skill.
    SkillResult {
        success: bool = "success",
        command_name: Cow<'a, str> = "commandName",
        allowed_tools: List<'a, Cow<'a, str>> = "allowedTools",
        model: Cow<'a, str> = "model",
    }

    /// Result of ToolSearch.
    ToolSearchResult {
        matches: List<'a, Cow<'a, str>> = "matches",
        query: Cow<'a, str> = "query",
        total_deferred_tools: u64 = "total_deferred_tools",
    }

    /// Result of Workflow.
    WorkflowResult {
        run_id: Cow<'a, str> = "runId",
        task_id: Cow<'a, str> = "taskId",
        transcript_dir: Cow<'a, str> = "transcriptDir",
        script_path: Cow<'a, str> = "scriptPath",
        status: Cow<'a, str> = "status",
        summary: Cow<'a, str> = "summary",
    }

    /// Result of LSP.
    LspResult {
        operation: Cow<'a, str> = "operation",
        result: Cow<'a, str> = "result",
        file_path: Cow<'a, str> = "filePath",
        result_count: u64 = "resultCount",
        file_count: u64 = "fileCount",
    }

    /// Result of Artifact, ReportFindings, ScheduleWakeup, CronCreate, Monitor.
    SmallResult {
        id: Cow<'a, str> = "id",
        human_schedule: Cow<'a, str> = "humanSchedule",
        next_fire_at: Json<'a> = "nextFireAt",
        recurring: bool = "recurring",
        durable: bool = "durable",
        path: Cow<'a, str> = "path",
        title: Cow<'a, str> = "title",
        updated: bool = "updated",
        url: Cow<'a, str> = "url",
        live_subscription: Json<'a> = "liveSubscription",
        count: u64 = "count",
        findings: List<'a, ReviewFinding<'a>> = "findings",
        level: Cow<'a, str> = "level",
        scheduled_for: Json<'a> = "scheduledFor",
        clamped_delay_seconds: f64 = "clampedDelaySeconds",
        was_clamped: bool = "wasClamped",
        cancelled_wakeups: u64 = "cancelledWakeups",
        stopped: bool = "stopped",
        persistent: bool = "persistent",
        timeout_ms: u64 = "timeoutMs",
    }

    /// A finding of a review.
    ReviewFinding {
        category: Cow<'a, str> = "category",
        failure_scenario: Cow<'a, str> = "failure_scenario",
        file: Cow<'a, str> = "file",
        line: u64 = "line",
        outcome: Cow<'a, str> = "outcome",
        short_summary: Cow<'a, str> = "short_summary",
        summary: Cow<'a, str> = "summary",
        verdict: Cow<'a, str> = "verdict",
    }
}

const RESULT_LENSES: &[Knows] = &[
    BashResult::knows,
    BashOutputResult::knows,
    StopResult::knows,
    ReadResult::knows,
    EditResult::knows,
    MultiEditResult::knows,
    WriteResult::knows,
    NotebookEditResult::knows,
    GrepResult::knows,
    GlobResult::knows,
    AgentResult::knows,
    TeammateResult::knows,
    TeamResult::knows,
    SendMessageResult::knows,
    TodoWriteResult::knows,
    TaskResult::knows,
    TaskUpdateResult::knows,
    WebFetchResult::knows,
    WebSearchResult::knows,
    PlanResult::knows,
    AskUserQuestionResult::knows,
    SkillResult::knows,
    ToolSearchResult::knows,
    WorkflowResult::knows,
    LspResult::knows,
    SmallResult::knows,
];
