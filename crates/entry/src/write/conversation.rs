//! Lines of the conversation: prompts, tool results, replies, compact boundaries.

use std::borrow::Cow;

use super::object::ObjectWriter;
use super::timestamp;
use crate::Entry;
use crate::json::Json;
use crate::timestamp::Millis;

/// The values that all lines of one process have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineContext<'a> {
    /// Whether the lines belong to a sub-agent.
    pub is_sidechain: bool,
    /// The sub-agent.
    pub agent_id: Option<Cow<'a, str>>,
    /// `external` for people.
    pub user_type: Option<Cow<'a, str>>,
    /// The program that the session was started with, such as `cli`.
    pub entrypoint: Option<Cow<'a, str>>,
    /// The working directory.
    pub cwd: Option<Cow<'a, str>>,
    /// The session.
    pub session_id: Option<Cow<'a, str>>,
    /// The version of Claude Code.
    pub version: Option<Cow<'a, str>>,
    /// The branch of the repository.
    pub git_branch: Option<Cow<'a, str>>,
    /// The name of the session's plan.
    pub slug: Option<Cow<'a, str>>,
    /// Whether these values come before the type and the message, as in the lines of early versions.
    pub is_leading: bool,
}

impl<'a> LineContext<'a> {
    /// Returns the context of a line.
    pub fn of(entry: &'a Entry) -> Self {
        let Some(envelope) = entry.envelope() else { return Self::default() };
        Self {
            is_sidechain: envelope.is_sidechain().unwrap_or(false),
            agent_id: envelope.agent_id(),
            user_type: envelope.user_type(),
            entrypoint: envelope.entrypoint(),
            cwd: envelope.cwd(),
            session_id: envelope.session_id(),
            version: envelope.version(),
            git_branch: envelope.git_branch(),
            slug: envelope.slug(),
            is_leading: false,
        }
    }

    /// Adds the values at the end of a line, unless they are at its beginning.
    pub(super) fn write(&self, object: ObjectWriter) -> ObjectWriter {
        if self.is_leading { object } else { self.write_values(object) }
    }

    fn write_values(&self, object: ObjectWriter) -> ObjectWriter {
        object
            .optional_string("userType", self.user_type.as_deref())
            .optional_string("entrypoint", self.entrypoint.as_deref())
            .optional_string("cwd", self.cwd.as_deref())
            .optional_string("sessionId", self.session_id.as_deref())
            .optional_string("version", self.version.as_deref())
            .optional_string("gitBranch", self.git_branch.as_deref())
            .optional_string("slug", self.slug.as_deref())
    }
}

/// The id of a line, its parent and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHeader<'a> {
    /// The id of the line.
    pub uuid: &'a str,
    /// The id of the line that it continues; `None` for a root.
    pub parent_uuid: Option<&'a str>,
    /// The time of the line.
    pub timestamp: Millis,
}

impl LineHeader<'_> {
    /// Starts a line with its parent.
    pub(super) fn start(&self, logical_parent: Option<&str>, context: &LineContext<'_>) -> ObjectWriter {
        let object = ObjectWriter::new()
            .nullable_string("parentUuid", self.parent_uuid)
            .optional_string("logicalParentUuid", logical_parent)
            .bool("isSidechain", context.is_sidechain)
            .optional_string("agentId", context.agent_id.as_deref());
        if context.is_leading { context.write_values(object) } else { object }
    }

    pub(super) fn write_id_and_time(&self, object: ObjectWriter) -> ObjectWriter {
        object.string("uuid", self.uuid).string("timestamp", &timestamp(self.timestamp))
    }
}

/// The content of a user line.
#[derive(Clone, Copy, Debug)]
pub enum UserContent<'a> {
    /// A text.
    Text(&'a str),
    /// An array of content blocks.
    Blocks(Json<'a>),
}

/// A `user` line: a prompt, a tool result, or a summary.
#[derive(Clone, Debug)]
pub struct UserLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The prompt that the line belongs to.
    pub prompt_id: Option<&'a str>,
    /// The content of the message.
    pub content: UserContent<'a>,
    /// Whether the text was written by Claude Code, and not by a person.
    pub is_meta: bool,
    /// Whether it is the summary after a compact boundary.
    pub is_compact_summary: bool,
    /// The part of the conversation that a summary replaces, if it is not all of it.
    pub summarized_part: Option<SummarizedPart>,
    /// The result of a tool as data for display.
    pub tool_use_result: Option<Json<'a>>,
    /// The line with the call that this result answers.
    pub source_tool_assistant_uuid: Option<&'a str>,
    /// The permission mode of a prompt.
    pub permission_mode: Option<&'a str>,
    /// Where a prompt comes from, such as `sdk`.
    pub prompt_source: Option<&'a str>,
    /// The program that made a prompt, if it was not a person: an object.
    pub origin: Option<Json<'a>>,
    /// Whether the result of a tool ends the turn.
    pub tool_ends_turn: bool,
    /// The call that a text of the client belongs to.
    pub source_tool_use_id: Option<&'a str>,
    /// The reply that the user interrupted.
    pub interrupted_message_id: Option<&'a str>,
}

/// The part of a conversation that a summary replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummarizedPart {
    /// The number of lines.
    pub messages: u64,
    /// `from` a prompt on, or `up_to` it.
    pub direction: &'static str,
}

impl<'a> UserLine<'a> {
    /// A line with this content and no optional values.
    pub fn new(header: LineHeader<'a>, context: &'a LineContext<'a>, content: UserContent<'a>) -> Self {
        Self {
            header,
            context,
            prompt_id: None,
            content,
            is_meta: false,
            is_compact_summary: false,
            summarized_part: None,
            tool_use_result: None,
            source_tool_assistant_uuid: None,
            permission_mode: None,
            prompt_source: None,
            origin: None,
            tool_ends_turn: false,
            source_tool_use_id: None,
            interrupted_message_id: None,
        }
    }

    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        let message = ObjectWriter::new().string("role", "user");
        let message = match self.content {
            UserContent::Text(text) => message.string("content", text),
            UserContent::Blocks(blocks) => message.json("content", blocks),
        };
        let object = self
            .header
            .start(None, self.context)
            .optional_string("promptId", self.prompt_id)
            .string("type", "user")
            .object("message", message)
            .flag("isVisibleInTranscriptOnly", self.is_compact_summary && self.summarized_part.is_none())
            .flag("isCompactSummary", self.is_compact_summary)
            .flag("isMeta", self.is_meta);
        let object = match &self.summarized_part {
            Some(part) => {
                let details = ObjectWriter::new().number("messagesSummarized", part.messages);
                object.object("summarizeMetadata", details.string("direction", part.direction))
            }
            None => object,
        };
        let object = self
            .header
            .write_id_and_time(object)
            .optional_json("toolUseResult", self.tool_use_result)
            .flag("toolEndsTurn", self.tool_ends_turn)
            .optional_string("sourceToolUseID", self.source_tool_use_id)
            .optional_string("sourceToolAssistantUUID", self.source_tool_assistant_uuid)
            .optional_string("permissionMode", self.permission_mode)
            .optional_json("origin", self.origin)
            .optional_string("promptSource", self.prompt_source)
            .optional_string("interruptedMessageId", self.interrupted_message_id);
        self.context.write(object).finish()
    }
}

/// An `assistant` line: blocks of a reply.
#[derive(Clone, Debug)]
pub struct AssistantLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The message as the API returned it, with the blocks of this line.
    pub message: Json<'a>,
    /// The request that the API answered.
    pub request_id: Option<&'a str>,
    /// The kind of sub-agent that replied.
    pub attribution_agent: Option<&'a str>,
    /// Whether the message is an error of the API that Claude Code shows as a reply.
    pub is_api_error: bool,
    /// The skill or command that the reply follows.
    pub attribution_skill: Option<&'a str>,
    /// The MCP server and its tool that was called last in this turn.
    pub attribution_mcp: Option<(&'a str, &'a str)>,
}

impl AssistantLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        let object = self
            .header
            .start(None, self.context)
            .json("message", self.message)
            .optional_string("requestId", self.request_id)
            .optional_string("attributionAgent", self.attribution_agent)
            .string("type", "assistant");
        // The first part of a name such as `plugin:skill` is a plugin.
        let plugin = self.attribution_skill.and_then(|skill| Some(skill.split_once(':')?.0));
        let object = object
            .optional_string("attributionSkill", self.attribution_skill)
            .optional_string("attributionPlugin", plugin)
            .optional_string("attributionMcpServer", self.attribution_mcp.map(|(server, _)| server))
            .optional_string("attributionMcpTool", self.attribution_mcp.map(|(_, tool)| tool));
        let object = self.header.write_id_and_time(object).flag("isApiErrorMessage", self.is_api_error);
        self.context.write(object).finish()
    }
}

/// An `assistant` line that the client wrote itself: an error of the API, or a filler.
#[derive(Clone, Debug)]
pub struct SyntheticLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The id of the message.
    pub message_id: &'a str,
    /// The text.
    pub text: &'a str,
    /// The request that failed.
    pub request_id: Option<&'a str>,
    /// Whether the text is an error of the API.
    pub is_api_error: bool,
    /// The kind of error, such as `rate_limit`.
    pub error: Option<&'a str>,
    /// The message of the API, if the text differs from it.
    pub error_details: Option<&'a str>,
    /// The HTTP status of the error.
    pub api_error_status: Option<u16>,
    /// The stop reason: `refusal`, or else `stop_sequence`.
    pub stop_reason: &'a str,
    /// Whether the line has the members that early versions do not write.
    pub has_details: bool,
}

impl SyntheticLine<'_> {
    /// The model that such messages name.
    pub const MODEL: &'static str = "<synthetic>";

    /// Returns the message.
    pub fn message(&self) -> String {
        let common = r#""input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":null,"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}"#;
        let later = r#","inference_geo":null,"iterations":null,"speed":null"#;
        let usage = format!("{{{common}{}}}", if self.has_details { later } else { "" });
        let block = ObjectWriter::new().string("type", "text").string("text", self.text).finish();
        let object = ObjectWriter::new()
            .string("id", self.message_id)
            .json("container", Json::NULL)
            .string("model", Self::MODEL)
            .string("role", "assistant");
        let object = if self.has_details { object.json("stop_details", Json::NULL) } else { object };
        object
            .string("stop_reason", self.stop_reason)
            .string("stop_sequence", "")
            .string("type", "message")
            .json("usage", Json::parse(&usage).unwrap_or(Json::NULL))
            .json("content", Json::parse(&format!("[{block}]")).unwrap_or(Json::NULL))
            .json("context_management", Json::NULL)
            .finish()
    }

    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        let message = self.message();
        let object = self.header.start(None, self.context).string("type", "assistant");
        let object = self
            .header
            .write_id_and_time(object)
            .json("message", Json::parse(&message).unwrap_or(Json::NULL))
            .optional_string("requestId", self.request_id)
            .optional_string("error", self.error)
            .optional_string("errorDetails", self.error_details.filter(|_| self.has_details))
            .bool("isApiErrorMessage", self.is_api_error);
        let object = match self.api_error_status.filter(|_| self.has_details) {
            Some(status) => object.number("apiErrorStatus", u64::from(status)),
            None => object,
        };
        self.context.write(object).finish()
    }
}

/// The value of an attachment that the client writes.
#[derive(Clone, Copy, Debug)]
pub enum Attachment<'a> {
    /// The number of replies reached its limit.
    MaxTurnsReached {
        /// The limit.
        max_turns: u64,
        /// The number of replies.
        turn_count: u64,
    },
    /// A file that the model has written was changed by another program.
    EditedTextFile {
        /// The path of the file.
        filename: &'a str,
        /// The changed lines with their numbers.
        snippet: &'a str,
    },
    /// The session is in plan mode.
    PlanMode {
        /// The file for the plan.
        plan_file: &'a str,
        /// Whether that file exists.
        exists: bool,
    },
    /// Plan mode is off again.
    PlanModeExit {
        /// The file for the plan.
        plan_file: &'a str,
        /// Whether that file exists.
        exists: bool,
    },
    /// A prompt that was entered while a turn ran, and became part of it.
    QueuedCommand {
        /// The prompt: a string or an array of content blocks.
        prompt: Json<'a>,
        /// When it was entered.
        timestamp: Millis,
    },
    /// A hook answered the question about a call.
    HookPermissionDecision {
        /// `allow` or `deny`.
        decision: &'a str,
        /// The call.
        tool_use_id: &'a str,
        /// The event of the hook.
        event: &'a str,
    },
    /// A hook deferred a call, which has no result.
    HookDeferredTool {
        /// The hook.
        source: HookSource<'a>,
        /// The tool.
        tool: &'a str,
        /// The input of the call.
        input: Json<'a>,
        /// The permission mode.
        mode: &'a str,
    },
    /// The structured output of a turn.
    StructuredOutput {
        /// The output.
        data: Json<'a>,
        /// The call that returned it.
        tool_use_id: &'a str,
    },
    /// A file that a prompt refers to.
    File {
        /// The path of the file.
        filename: &'a str,
        /// The content, as a result of Read.
        content: Json<'a>,
        /// The path as it is shown.
        display_path: &'a str,
    },
    /// A hook ended well.
    HookSuccess {
        /// The hook.
        source: HookSource<'a>,
        /// The output if it is a text, without white space at its ends.
        content: &'a str,
        /// The process.
        process: HookProcess<'a>,
    },
    /// A hook failed, which has no effect.
    HookNonBlockingError {
        /// The hook.
        source: HookSource<'a>,
        /// The process.
        process: HookProcess<'a>,
    },
    /// A hook stopped something, and gave a reason.
    HookBlockingError {
        /// The hook.
        source: HookSource<'a>,
        /// The reason.
        reason: &'a str,
        /// The command line.
        command: &'a str,
    },
    /// A hook took too long or was interrupted.
    HookCancelled {
        /// The hook.
        source: HookSource<'a>,
        /// The command line.
        command: &'a str,
        /// How long it ran, in milliseconds.
        duration: u64,
        /// The longest time that it may run, in milliseconds, if it took longer.
        timeout: Option<u64>,
    },
    /// A hook adds texts to the conversation.
    HookAdditionalContext {
        /// The hook.
        source: HookSource<'a>,
        /// The texts: an array of strings.
        content: Json<'a>,
    },
    /// A hook shows a message to the person.
    HookSystemMessage {
        /// The hook.
        source: HookSource<'a>,
        /// The message.
        content: &'a str,
    },
    /// A hook ended the turn.
    HookStoppedContinuation {
        /// The hook.
        source: HookSource<'a>,
        /// The reason.
        message: &'a str,
    },
}

/// The hook that an attachment is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookSource<'a> {
    /// The event with its object, such as `PreToolUse:Bash`.
    pub name: &'a str,
    /// The call, or an id for events without a call.
    pub tool_use_id: &'a str,
    /// The event.
    pub event: &'a str,
}

impl HookSource<'_> {
    fn write(self, object: ObjectWriter) -> ObjectWriter {
        object
            .string("hookName", self.name)
            .string("toolUseID", self.tool_use_id)
            .string("hookEvent", self.event)
    }
}

/// The process of a hook that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookProcess<'a> {
    /// The command line.
    pub command: &'a str,
    /// Standard output.
    pub stdout: &'a str,
    /// Standard error.
    pub stderr: &'a str,
    /// The exit code.
    pub exit_code: i32,
    /// How long it ran, in milliseconds.
    pub duration: u64,
}

impl HookProcess<'_> {
    fn write_end(self, object: ObjectWriter) -> ObjectWriter {
        // An exit code is not negative.
        let exit_code = u64::try_from(self.exit_code).unwrap_or_default();
        object
            .number("exitCode", exit_code)
            .string("command", self.command)
            .number("durationMs", self.duration)
    }
}

impl Attachment<'_> {
    /// Returns the value as JSON.
    pub fn to_json(self) -> String {
        let start = |kind: &str| ObjectWriter::new().string("type", kind);
        match self {
            Self::MaxTurnsReached { max_turns, turn_count } => {
                start("max_turns_reached").number("maxTurns", max_turns).number("turnCount", turn_count)
            }
            Self::EditedTextFile { filename, snippet } => {
                start("edited_text_file").string("filename", filename).string("snippet", snippet)
            }
            Self::PlanMode { plan_file, exists } => start("plan_mode")
                .string("reminderType", "full")
                .bool("isSubAgent", false)
                .string("planFilePath", plan_file)
                .bool("planExists", exists),
            Self::PlanModeExit { plan_file, exists } => {
                start("plan_mode_exit").string("planFilePath", plan_file).bool("planExists", exists)
            }
            Self::QueuedCommand { prompt, timestamp: time } => start(crate::value::QUEUED_COMMAND)
                .json("prompt", prompt)
                .string("commandMode", "prompt")
                .object("origin", ObjectWriter::new().string("kind", "human"))
                .string("timestamp", &timestamp(time)),
            Self::HookPermissionDecision { decision, tool_use_id, event } => {
                start("hook_permission_decision")
                    .string("decision", decision)
                    .string("toolUseID", tool_use_id)
                    .string("hookEvent", event)
            }
            Self::HookDeferredTool { source, tool, input, mode } => start("hook_deferred_tool")
                .string("toolUseID", source.tool_use_id)
                .string("toolName", tool)
                .json("toolInput", input)
                .string("hookName", source.name)
                .string("hookEvent", source.event)
                .string("permissionMode", mode),
            Self::StructuredOutput { data, tool_use_id } => {
                start("structured_output").json("data", data).string("toolUseID", tool_use_id)
            }
            Self::File { filename, content, display_path } => start("file")
                .string("filename", filename)
                .json("content", content)
                .string("displayPath", display_path),
            Self::HookSuccess { source, content, process } => {
                let object = source.write(start("hook_success")).string("content", content);
                process.write_end(object.string("stdout", process.stdout).string("stderr", process.stderr))
            }
            Self::HookNonBlockingError { source, process } => {
                let object = source.write(start("hook_non_blocking_error"));
                process.write_end(object.string("stderr", process.stderr).string("stdout", process.stdout))
            }
            Self::HookBlockingError { source, reason, command } => {
                let error = ObjectWriter::new().string("blockingError", reason).string("command", command);
                source.write(start("hook_blocking_error")).object("blockingError", error)
            }
            Self::HookCancelled { source, command, duration, timeout } => {
                let object = source.write(start("hook_cancelled")).string("command", command);
                let object = object.number("durationMs", duration).bool("timedOut", timeout.is_some());
                match timeout {
                    Some(timeout) => object.number("timeoutMs", timeout),
                    None => object,
                }
            }
            Self::HookAdditionalContext { source, content } => {
                source.write(start("hook_additional_context").json("content", content))
            }
            Self::HookSystemMessage { source, content } => {
                source.write(start("hook_system_message").string("content", content))
            }
            Self::HookStoppedContinuation { source, message } => {
                source.write(start("hook_stopped_continuation").string("message", message))
            }
        }
        .finish()
    }
}

/// An `attachment` line: context that the client adds to the conversation.
#[derive(Clone, Debug)]
pub struct AttachmentLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The attachment.
    pub attachment: Attachment<'a>,
}

impl AttachmentLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        let attachment = self.attachment.to_json();
        let object = self
            .header
            .start(None, self.context)
            .json("attachment", Json::parse(&attachment).unwrap_or(Json::NULL))
            .string("type", "attachment");
        let object = self.header.write_id_and_time(object);
        self.context.write(object).finish()
    }
}

/// A `system` line with a command of the client, or its output.
#[derive(Clone, Debug)]
pub struct LocalCommandLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The command or its output.
    pub content: &'a str,
}

impl LocalCommandLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        // In lines of type `system` the time is before the id.
        let object = self
            .header
            .start(None, self.context)
            .string("type", "system")
            .string("subtype", "local_command")
            .string("content", self.content)
            .string("level", "info")
            .string("timestamp", &timestamp(self.header.timestamp))
            .string("uuid", self.header.uuid)
            .bool("isMeta", false);
        self.context.write(object).finish()
    }
}

/// A `system` line after a turn: how long it took.
#[derive(Clone, Debug)]
pub struct TurnDurationLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The duration in milliseconds.
    pub duration: u64,
    /// The number of lines of the conversation so far; older versions do not write it.
    pub message_count: Option<u64>,
}

impl TurnDurationLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        // In lines of type `system` the time is before the id.
        let object = self
            .header
            .start(None, self.context)
            .string("type", "system")
            .string("subtype", "turn_duration")
            .number("durationMs", self.duration);
        let object = match self.message_count {
            Some(count) => object.number("messageCount", count),
            None => object,
        };
        let object = object
            .string("timestamp", &timestamp(self.header.timestamp))
            .string("uuid", self.header.uuid)
            .bool("isMeta", false);
        self.context.write(object).finish()
    }
}

/// A `system` line that shows a text to the person.
#[derive(Clone, Debug)]
pub struct InformationLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The text.
    pub content: &'a str,
    /// How important it is: `info` or `warning`.
    pub level: &'a str,
    /// Whether the prompt before it is not answered.
    pub prevents_continuation: bool,
}

impl InformationLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        // In lines of type `system` the time is before the id.
        let object = self
            .header
            .start(None, self.context)
            .string("type", "system")
            .string("subtype", "informational")
            .string("content", self.content)
            .bool("isMeta", false)
            .string("timestamp", &timestamp(self.header.timestamp))
            .string("uuid", self.header.uuid)
            .string("level", self.level)
            .flag("preventContinuation", self.prevents_continuation);
        self.context.write(object).finish()
    }
}

/// A `system` line that marks a compaction. It has no parent.
#[derive(Clone, Debug)]
pub struct CompactBoundaryLine<'a> {
    /// The id of the line.
    pub uuid: &'a str,
    /// The last line before the compaction.
    pub logical_parent_uuid: Option<&'a str>,
    /// The time of the line.
    pub timestamp: Millis,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// `manual` or `auto`.
    pub trigger: &'a str,
    /// The number of tokens before the compaction.
    pub pre_tokens: u64,
    /// The values that later versions add.
    pub details: Option<CompactDetails<'a>>,
}

/// The values of a compaction that later versions write.
#[derive(Clone, Copy, Debug)]
pub struct CompactDetails<'a> {
    /// The duration in milliseconds.
    pub duration: u64,
    /// The number of lines that the summary replaces, if it replaces a part of the conversation.
    pub messages_summarized: Option<u64>,
    /// The line that the preserved lines follow: that of the summary, or the boundary if they precede the
    /// summary.
    pub anchor_uuid: &'a str,
    /// The lines before the boundary that are still part of the conversation, in order.
    pub preserved: &'a [String],
    /// The number of tokens after the compaction.
    pub post_tokens: u64,
    /// The number of tokens that all compactions removed.
    pub dropped_tokens: u64,
}

impl CompactDetails<'_> {
    fn write(self, object: ObjectWriter) -> ObjectWriter {
        let object = match self.messages_summarized {
            Some(count) => object.number("messagesSummarized", count),
            None => object,
        };
        let object = object.number("durationMs", self.duration);
        let object = match (self.preserved.first(), self.preserved.last()) {
            (Some(head), Some(tail)) => {
                let segment = ObjectWriter::new()
                    .string("headUuid", head)
                    .string("anchorUuid", self.anchor_uuid)
                    .string("tailUuid", tail);
                let uuids: Vec<String> = self.preserved.iter().map(|uuid| super::quote(uuid)).collect();
                let uuids = format!("[{}]", uuids.join(","));
                let uuids = Json::parse(&uuids).unwrap_or(Json::NULL);
                let messages = ObjectWriter::new()
                    .string("anchorUuid", self.anchor_uuid)
                    .json("uuids", uuids)
                    .json("allUuids", uuids);
                object.object("preservedSegment", segment).object("preservedMessages", messages)
            }
            _ => object,
        };
        object.number("postTokens", self.post_tokens).number("cumulativeDroppedTokens", self.dropped_tokens)
    }
}

impl CompactBoundaryLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        let header = LineHeader { uuid: self.uuid, parent_uuid: None, timestamp: self.timestamp };
        let metadata =
            ObjectWriter::new().string("trigger", self.trigger).number("preTokens", self.pre_tokens);
        let metadata = match self.details {
            Some(details) => details.write(metadata),
            None => metadata,
        };
        // In lines of type `system` the time is before the id.
        let object = header
            .start(self.logical_parent_uuid, self.context)
            .string("type", "system")
            .string("subtype", "compact_boundary")
            .string("content", "Conversation compacted")
            .bool("isMeta", false)
            .string("timestamp", &timestamp(self.timestamp))
            .string("uuid", self.uuid)
            .string("level", "info")
            .object("compactMetadata", metadata);
        self.context.write(object).finish()
    }
}

/// The value of `forkedFrom`: the line that a copied line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkOrigin<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The line.
    pub message_uuid: &'a str,
}

impl ForkOrigin<'_> {
    /// The key of the value in a line.
    pub const KEY: &'static str = "forkedFrom";

    /// Returns the value as JSON.
    pub fn to_json(self) -> String {
        ObjectWriter::new()
            .string("sessionId", self.session_id)
            .string("messageUuid", self.message_uuid)
            .finish()
    }
}
