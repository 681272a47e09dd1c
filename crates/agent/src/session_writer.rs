//! Writes the lines of a session, in order. Nothing else of the client writes to the log.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::value::RawValue;
use threadline_api::RawObject;
use threadline_entry::write::{
    AgentNameLine, AssistantLine, Attachment, AttachmentLine, CompactBoundaryLine, CompactDetails,
    CustomTitleLine, FileHistorySnapshotLine, InformationLine, LastPromptLine, LineContext, LineHeader,
    LocalCommandLine, ModeLine, PermissionModeLine, PrLinkLine, ProgressData, ProgressLine,
    QueueOperationLine, SummarizedPart, SummaryLine, SyntheticLine, TurnDurationLine, UserContent, UserLine,
};
use threadline_entry::{Json, Millis};
use threadline_store::{AppendError, FileSnapshot, append, create_new};
use threadline_tools::PullRequest;

use crate::clock::Clock;
use crate::partial_summary::SummaryPart;
use crate::session_format::{SessionFormat, slug};

/// A line could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the session `{}`: {error}", .path.display())]
pub struct WriteError {
    path: PathBuf,
    #[source]
    error: AppendError,
}

/// Writes the lines of a session. Each line is in the file when its method returns.
///
/// A file that another program replaced or rewrote is not written to: it contains another conversation.
pub struct SessionWriter {
    path: PathBuf,
    is_persistent: bool,
    /// The file when it was first written or read. It may only grow from then on.
    snapshot: Option<FileSnapshot>,
    session_id: String,
    format: &'static SessionFormat,
    /// The kind of sub-agent that replies are attributed to.
    attribution: Option<String>,
    context: LineContext<'static>,
    /// The id of the last line of the conversation.
    tip: Option<String>,
    /// The time of the last line. Later lines have a later time, also if the clock is set back.
    last_time: Millis,
    /// The skill or command that replies follow.
    attribution_skill: Option<String>,
    /// The MCP server and its tool that was called last in this turn.
    attribution_mcp: Option<(String, String)>,
    /// The last line of each running call: the call itself, or a report about it.
    call_ends: HashMap<String, String>,
    /// The title that is written at the end of the log.
    summary_title: Option<String>,
}

/// A line that was written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenLine {
    pub(crate) uuid: String,
    pub(crate) timestamp: Millis,
}

/// The values of a compaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactBoundary<'a> {
    pub(crate) trigger: &'static str,
    pub(crate) pre_tokens: u64,
    pub(crate) post_tokens: u64,
    pub(crate) dropped_tokens: u64,
    pub(crate) duration: Duration,
    /// The lines that stay part of the conversation.
    pub(crate) preserved: &'a [String],
    /// The part that the summary replaces, if it is not everything up to the last reply.
    pub(crate) part: Option<SummarizedPart>,
    /// The line that the boundary continues; `None` for the last one.
    pub(crate) logical_parent: Option<&'a str>,
}

/// A compaction that was written.
#[derive(Clone, Debug)]
pub struct WrittenCompaction {
    /// The line of the boundary.
    pub uuid: String,
    /// The time of the boundary.
    pub timestamp: Millis,
    /// The line of the summary.
    pub summary_uuid: String,
    /// The time of the summary.
    pub summary_time: Millis,
    /// The text that replaces the conversation.
    pub summary: String,
    /// `manual` or `auto`.
    pub trigger: &'static str,
    /// The number of tokens before.
    pub pre_tokens: u64,
    /// The estimated number of tokens after.
    pub post_tokens: u64,
    /// The number of tokens that were removed.
    pub dropped_tokens: u64,
    /// How long the summary took.
    pub duration: Duration,
    /// The lines before the boundary that are still part of the conversation.
    pub preserved: Vec<String>,
}

/// The optional values of a user line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UserLineFields<'a> {
    pub(crate) prompt_id: Option<&'a str>,
    pub(crate) is_meta: bool,
    pub(crate) permission_mode: Option<&'a str>,
    pub(crate) prompt_source: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) tool_use_result: Option<&'a RawValue>,
    pub(crate) source_tool_assistant_uuid: Option<&'a str>,
    pub(crate) tool_ends_turn: bool,
    /// The call that a text of the client belongs to.
    pub(crate) source_tool_use_id: Option<&'a str>,
    /// The reply that the person interrupted.
    pub(crate) interrupted_message_id: Option<&'a str>,
    /// The line that this one continues; `None` for the last one.
    pub(crate) parent: Option<&'a str>,
    /// The id of the line, if it has one already.
    pub(crate) uuid: Option<&'a str>,
}

/// The values of an error line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ErrorFields<'a> {
    pub(crate) is_api_error: bool,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) error_details: Option<&'a str>,
    pub(crate) status: Option<u16>,
    /// Whether the model refused.
    pub(crate) is_refusal: bool,
}

impl SessionWriter {
    /// Creates a writer for the log at `path`. The file is created with the first line.
    ///
    /// `tip` is the last line of the conversation so far, and `last_time` its time.
    pub fn new(
        path: PathBuf,
        is_persistent: bool,
        context: LineContext<'static>,
        tip: Option<String>,
        last_time: Millis,
    ) -> Self {
        let snapshot = FileSnapshot::take(&path).ok();
        let session_id = context.session_id.as_deref().unwrap_or_default().to_owned();
        let format = SessionFormat::of(context.version.as_deref().unwrap_or_default());
        let mut context = context;
        context.is_leading = format.has_leading_context;
        if !format.has_entrypoint {
            context.entrypoint = None;
        }
        Self {
            format,
            attribution: None,
            path,
            is_persistent,
            snapshot,
            session_id,
            context,
            tip,
            last_time,
            attribution_skill: None,
            attribution_mcp: None,
            call_ends: HashMap::new(),
            summary_title: None,
        }
    }

    /// Continues with a new session: another id, another log, and no lines before.
    pub(crate) fn start_session(&mut self, session_id: &str, path: PathBuf) {
        self.snapshot = None;
        self.path = path;
        self.session_id = session_id.to_owned();
        self.context.session_id = Some(session_id.to_owned().into());
        self.tip = None;
    }

    /// The log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id of the session.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The last line of the conversation.
    pub fn tip(&self) -> Option<&str> {
        self.tip.as_deref()
    }

    /// Attributes replies to a kind of sub-agent.
    pub(crate) fn set_attribution(&mut self, agent_type: &str) {
        self.attribution = Some(agent_type.to_owned());
    }

    /// How the lines are written.
    pub(crate) fn format(&self) -> &'static SessionFormat {
        self.format
    }

    /// Sets the skill or command that further replies follow.
    pub(crate) fn set_attribution_skill(&mut self, skill: Option<String>) {
        self.attribution_skill = skill;
    }

    /// Sets the MCP server and its tool that further replies follow.
    pub(crate) fn set_attribution_mcp(&mut self, server_and_tool: Option<(String, String)>) {
        self.attribution_mcp = server_and_tool;
    }

    /// Sets the branch that further lines name; `None` outside of a repository.
    pub(crate) fn set_git_branch(&mut self, branch: Option<String>) {
        self.context.git_branch = Some(branch.map_or(self.format.no_branch.into(), Into::into));
    }

    /// Names the session's plan on further lines, if the format has that and it is not named yet. Returns the
    /// name.
    pub(crate) fn name_plan(&mut self, clock: &dyn Clock) -> Option<String> {
        if self.format.has_slug && self.context.slug.is_none() {
            self.context.slug = Some(slug(&clock.new_uuid()).into());
        }
        self.context.slug.as_deref().map(str::to_owned)
    }

    /// Returns the name of the session's plan, which further lines contain.
    pub(crate) fn plan_name(&mut self, clock: &dyn Clock) -> String {
        self.context.slug.get_or_insert_with(|| slug(&clock.new_uuid()).into()).to_string()
    }

    /// Sets the name of the plan that further lines name.
    pub(crate) fn set_plan(&mut self, plan: Option<String>) {
        self.context.slug = plan.map(Into::into);
    }

    /// Sets the folder that further lines name.
    pub(crate) fn set_cwd(&mut self, cwd: &Path) {
        self.context.cwd = Some(cwd.to_string_lossy().into_owned().into());
    }

    /// Appends lines that are complete already.
    pub fn write<L: AsRef<[u8]>>(&mut self, lines: &[L]) -> Result<(), WriteError> {
        if !self.is_persistent {
            return Ok(());
        }
        let failed = |error| WriteError { path: self.path.clone(), error };
        match &self.snapshot {
            Some(snapshot) => {
                append(&self.path, lines, Some(snapshot)).map_err(failed)?;
            }
            None => {
                create_new(&self.path, lines).map_err(failed)?;
                let snapshot = FileSnapshot::take(&self.path).map_err(|error| failed(error.into()))?;
                self.snapshot = Some(snapshot);
            }
        }
        Ok(())
    }

    /// Returns a time after that of the last line.
    fn time(&mut self, clock: &dyn Clock) -> Millis {
        self.last_time = clock.now().max(self.last_time + 1);
        self.last_time
    }

    /// Writes the two lines of a prompt that was queued and taken from the queue.
    pub(crate) fn queue(&mut self, prompt: Option<&str>, clock: &dyn Clock) -> Result<(), WriteError> {
        let (first, second) = (self.time(clock), self.time(clock));
        let line = |operation, timestamp, content| {
            QueueOperationLine { operation, timestamp, session_id: &self.session_id, content }.to_line()
        };
        let lines = [line("enqueue", first, prompt), line("dequeue", second, None)];
        self.write(if self.format.writes_enqueue { &lines[..] } else { &lines[1..] })
    }

    /// Writes the lines of prompts that were queued at a time and are all taken from the queue now.
    pub(crate) fn queue_and_dequeue(
        &mut self,
        prompts: &[(Option<String>, Millis)],
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let now = self.time(clock);
        let line = |operation, timestamp, content| {
            QueueOperationLine { operation, timestamp, session_id: &self.session_id, content }.to_line()
        };
        let entered = prompts.iter().filter(|_| self.format.writes_enqueue);
        let mut lines: Vec<String> =
            entered.map(|(prompt, time)| line("enqueue", (*time).min(now), prompt.as_deref())).collect();
        lines.extend(prompts.iter().map(|_| line("dequeue", now, None)));
        self.write(&lines)
    }

    /// Writes the two lines of a prompt that was queued at a time, and joins the turn now.
    pub(crate) fn queue_and_remove(
        &mut self,
        prompt: &str,
        time: Millis,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let now = self.time(clock);
        let line = |operation, timestamp, content| {
            QueueOperationLine { operation, timestamp, session_id: &self.session_id, content }.to_line()
        };
        let lines = [line("enqueue", time.min(now), Some(prompt)), line("remove", now, None)];
        self.write(&lines)
    }

    /// Writes a user line.
    pub(crate) fn user(
        &mut self,
        content: &RawValue,
        fields: UserLineFields<'_>,
        clock: &dyn Clock,
    ) -> Result<WrittenLine, WriteError> {
        let uuid = fields.uuid.map_or_else(|| clock.new_uuid(), str::to_owned);
        let timestamp = self.time(clock);
        let origin = fields.origin.map(|kind| RawObject::new().with("kind", kind).to_json());
        let content = json(content.get());
        let text = content.as_str();
        let header =
            LineHeader { uuid: &uuid, parent_uuid: fields.parent.or(self.tip.as_deref()), timestamp };
        let content = match &text {
            Some(text) => UserContent::Text(text),
            None => UserContent::Blocks(content),
        };
        let line = UserLine {
            prompt_id: fields.prompt_id.filter(|_| self.format.has_prompt_ids),
            is_meta: fields.is_meta,
            tool_use_result: fields.tool_use_result.map(|record| json(record.get())),
            source_tool_assistant_uuid: fields.source_tool_assistant_uuid,
            tool_ends_turn: fields.tool_ends_turn,
            source_tool_use_id: fields.source_tool_use_id,
            permission_mode: fields.permission_mode,
            prompt_source: fields.prompt_source.filter(|_| self.format.has_prompt_ids),
            origin: origin.as_deref().map(json),
            interrupted_message_id: fields
                .interrupted_message_id
                .filter(|_| self.format.names_interrupted_reply),
            ..UserLine::new(header, &self.context, content)
        };
        let line = line.to_line();
        self.write(&[line])?;
        self.tip = Some(uuid.clone());
        Ok(WrittenLine { uuid, timestamp })
    }

    /// Writes the lines of a reply: one per message, each with the given id.
    pub(crate) fn assistant(
        &mut self,
        messages: &[(String, RawObject)],
        request_id: Option<&str>,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let mut lines = Vec::with_capacity(messages.len());
        let mut parent = self.tip.clone();
        for (uuid, message) in messages {
            let message_json = message.to_json();
            let header = LineHeader { uuid, parent_uuid: parent.as_deref(), timestamp: self.time(clock) };
            let line = AssistantLine {
                header,
                context: &self.context,
                message: json(&message_json),
                request_id,
                attribution_agent: self.attribution.as_deref(),
                is_api_error: false,
                attribution_skill: self.attribution_skill.as_deref(),
                attribution_mcp: self.attribution_mcp.as_ref().map(|(server, tool)| (&**server, &**tool)),
            };
            lines.push(line.to_line());
            parent = Some(uuid.clone());
        }
        self.write(&lines)?;
        self.tip = parent;
        Ok(())
    }

    /// Writes a reply that the client made up. Returns its id and its message.
    pub(crate) fn synthetic(
        &mut self,
        text: &str,
        fields: ErrorFields<'_>,
        clock: &dyn Clock,
    ) -> Result<(String, RawObject), WriteError> {
        let (uuid, message_id, timestamp) = (clock.new_uuid(), clock.new_uuid(), self.time(clock));
        let line = SyntheticLine {
            header: LineHeader { uuid: &uuid, parent_uuid: self.tip.as_deref(), timestamp },
            context: &self.context,
            message_id: &message_id,
            text,
            request_id: fields.request_id,
            is_api_error: fields.is_api_error,
            error: fields.error,
            error_details: fields.error_details,
            api_error_status: fields.status,
            stop_reason: if fields.is_refusal { "refusal" } else { "stop_sequence" },
            has_details: self.format.has_error_details,
        };
        let (line, message) = (line.to_line(), line.message());
        self.write(&[line])?;
        self.tip = Some(uuid.clone());
        Ok((uuid, RawObject::parse(&message).unwrap_or_default()))
    }

    /// Starts the lines of a call below the line with the call.
    pub(crate) fn start_call(&mut self, id: &str, line: &str) {
        if self.format.has_progress {
            self.call_ends.insert(id.to_owned(), line.to_owned());
        }
    }

    /// Returns the line below which the result of a call is written, if there are reports about it.
    pub(crate) fn end_call(&mut self, id: &str) -> Option<String> {
        self.call_ends.remove(id)
    }

    /// Writes a report about a call, or about another thing at the end of the conversation.
    pub(crate) fn progress(
        &mut self,
        call: &str,
        report: &str,
        data: ProgressData<'_>,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let (uuid, timestamp) = (clock.new_uuid(), self.time(clock));
        let end = self.call_ends.get(call).or(self.tip.as_ref());
        let line = ProgressLine {
            header: LineHeader { uuid: &uuid, parent_uuid: end.map(String::as_str), timestamp },
            context: &self.context,
            data,
            tool_use_id: report,
            parent_tool_use_id: call,
        };
        let line = line.to_line();
        self.write(&[line])?;
        if let Some(end) = self.call_ends.get_mut(call) {
            end.clone_from(&uuid);
        }
        self.tip = Some(uuid);
        Ok(())
    }

    /// Writes an attachment at the end of the conversation.
    pub(crate) fn attachment(
        &mut self,
        attachment: Attachment<'_>,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        self.attachment_below(None, attachment, clock).map(|_| ())
    }

    /// Writes an attachment below `parent`, or at the end of the conversation. Returns its id.
    pub(crate) fn attachment_below(
        &mut self,
        parent: Option<&str>,
        attachment: Attachment<'_>,
        clock: &dyn Clock,
    ) -> Result<String, WriteError> {
        if !self.format.has_attachments {
            let last = parent.map(str::to_owned).or_else(|| self.tip.clone());
            return Ok(last.unwrap_or_default());
        }
        let (uuid, timestamp) = (clock.new_uuid(), self.time(clock));
        let line = AttachmentLine {
            header: LineHeader { uuid: &uuid, parent_uuid: parent.or(self.tip.as_deref()), timestamp },
            context: &self.context,
            attachment,
        };
        let line = line.to_line();
        self.write(&[line])?;
        self.tip = Some(uuid.clone());
        Ok(uuid)
    }

    /// Writes the boundary of a compaction and its summary.
    pub(crate) fn compaction(
        &mut self,
        boundary: &CompactBoundary<'_>,
        summary: &str,
        fields: UserLineFields<'_>,
        clock: &dyn Clock,
    ) -> Result<WrittenCompaction, WriteError> {
        let (uuid, summary_uuid) = (clock.new_uuid(), clock.new_uuid());
        // Lines before the part that is summarised follow the boundary, others the summary.
        let is_before = boundary.part.is_some_and(|part| part.direction == SummaryPart::From.name());
        let duration = u64::try_from(boundary.duration.as_millis()).unwrap_or(u64::MAX);
        let details = CompactDetails {
            duration,
            messages_summarized: boundary.part.map(|part| part.messages),
            anchor_uuid: if is_before { &uuid } else { &summary_uuid },
            preserved: boundary.preserved,
            post_tokens: boundary.post_tokens,
            dropped_tokens: boundary.dropped_tokens,
        };
        let line = CompactBoundaryLine {
            uuid: &uuid,
            logical_parent_uuid: boundary.logical_parent.or(self.tip.as_deref()),
            timestamp: clock.now().max(self.last_time + 1),
            context: &self.context,
            trigger: boundary.trigger,
            pre_tokens: boundary.pre_tokens,
            details: Some(details).filter(|_| self.format.has_attachments),
        };
        let line = line.to_line();
        let timestamp = self.time(clock);
        let summary_time = self.time(clock);
        let header = LineHeader { uuid: &summary_uuid, parent_uuid: Some(&uuid), timestamp: summary_time };
        let summary_line = UserLine {
            prompt_id: fields.prompt_id.filter(|_| self.format.has_prompt_ids),
            is_compact_summary: true,
            summarized_part: boundary.part,
            ..UserLine::new(header, &self.context, UserContent::Text(summary))
        };
        let summary_line = summary_line.to_line();
        // Both at once: a boundary without its summary would lose the conversation.
        self.write(&[line, summary_line])?;
        self.tip = Some(summary_uuid.clone());
        Ok(WrittenCompaction {
            uuid,
            timestamp,
            summary_uuid,
            summary_time,
            summary: summary.to_owned(),
            trigger: boundary.trigger,
            pre_tokens: boundary.pre_tokens,
            post_tokens: boundary.post_tokens,
            dropped_tokens: boundary.dropped_tokens,
            duration: boundary.duration,
            preserved: boundary.preserved.to_vec(),
        })
    }

    /// Writes a command of the client, or its output. Returns its id.
    pub(crate) fn local_command(&mut self, text: &str, clock: &dyn Clock) -> Result<String, WriteError> {
        let (uuid, timestamp) = (clock.new_uuid(), self.time(clock));
        let line = LocalCommandLine {
            header: LineHeader { uuid: &uuid, parent_uuid: self.tip.as_deref(), timestamp },
            context: &self.context,
            content: text,
        };
        let line = line.to_line();
        self.write(&[line])?;
        self.tip = Some(uuid.clone());
        Ok(uuid)
    }

    /// Returns a message of the client that is reported like a reply, and not written.
    pub(crate) fn synthetic_message(&self, text: &str, clock: &dyn Clock) -> RawObject {
        let (uuid, message_id) = (clock.new_uuid(), clock.new_uuid());
        let line = SyntheticLine {
            header: LineHeader { uuid: &uuid, parent_uuid: None, timestamp: clock.now() },
            context: &self.context,
            message_id: &message_id,
            text,
            request_id: None,
            is_api_error: false,
            error: None,
            error_details: None,
            api_error_status: None,
            stop_reason: "stop_sequence",
            has_details: true,
        };
        RawObject::parse(&line.message()).unwrap_or_default()
    }

    /// Writes a text for the person, after a prompt that is not sent. Returns its id.
    pub(crate) fn prompt_stopped(&mut self, text: &str, clock: &dyn Clock) -> Result<String, WriteError> {
        let (uuid, timestamp) = (clock.new_uuid(), self.time(clock));
        let line = InformationLine {
            header: LineHeader { uuid: &uuid, parent_uuid: self.tip.as_deref(), timestamp },
            context: &self.context,
            content: text,
            level: "warning",
            prevents_continuation: true,
        };
        let line = line.to_line();
        self.write(&[line])?;
        self.tip = Some(uuid.clone());
        Ok(uuid)
    }

    /// Writes a snapshot of the file history.
    pub(crate) fn snapshot(
        &mut self,
        message_id: &str,
        prompt: &str,
        backups: &RawObject,
        is_update: bool,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let backups = backups.to_json();
        let line = FileHistorySnapshotLine {
            message_id,
            snapshot_message_id: prompt,
            tracked_file_backups: json(&backups),
            timestamp: clock.now(),
            is_snapshot_update: is_update,
        };
        self.write(&[line.to_line()])
    }

    /// Writes the link to a pull request.
    pub(crate) fn pull_request(
        &mut self,
        request: &PullRequest,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let line = PrLinkLine {
            session_id: &self.session_id,
            number: request.number,
            url: &request.url,
            repository: &request.repository,
            timestamp: clock.now(),
        };
        self.write(&[line.to_line()])
    }

    /// Writes a title.
    pub(crate) fn custom_title(&mut self, title: &str) -> Result<(), WriteError> {
        if self.format.has_summary_titles {
            self.summary_title = Some(title.to_owned());
            return self.summary();
        }
        let line = CustomTitleLine { title, session_id: &self.session_id }.to_line();
        self.write(&[line])
    }

    /// Writes the title and the name that were given at the start.
    pub(crate) fn title(&mut self, title: &str) -> Result<(), WriteError> {
        if self.format.has_summary_titles {
            self.summary_title = Some(title.to_owned());
            return Ok(());
        }
        let session_id = &self.session_id;
        let lines = [
            CustomTitleLine { title, session_id }.to_line(),
            AgentNameLine { name: title, session_id }.to_line(),
        ];
        self.write(&lines)
    }

    /// Writes the title as a `summary` line at the end of the conversation, in formats that have it there.
    pub(crate) fn summary(&mut self) -> Result<(), WriteError> {
        let (Some(summary), Some(leaf_uuid)) = (&self.summary_title, &self.tip) else { return Ok(()) };
        let line = SummaryLine { summary, leaf_uuid }.to_line();
        self.write(&[line])?;
        self.summary_title = None;
        Ok(())
    }

    /// Writes the mode of a resumed session.
    pub(crate) fn mode(&mut self, mode: &str) -> Result<(), WriteError> {
        if !self.format.has_end_marks {
            return Ok(());
        }
        let line = ModeLine { mode, session_id: &self.session_id }.to_line();
        self.write(&[line])
    }

    /// Writes the permission mode of an interactive session.
    pub(crate) fn permission_mode(&mut self, mode: &str) -> Result<(), WriteError> {
        if !self.format.has_end_marks {
            return Ok(());
        }
        let line = PermissionModeLine { mode, session_id: &self.session_id }.to_line();
        self.write(&[line])
    }

    /// Writes how long a turn took.
    pub(crate) fn turn_duration(
        &mut self,
        duration: Duration,
        message_count: u64,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let (uuid, timestamp) = (clock.new_uuid(), self.time(clock));
        let line = TurnDurationLine {
            header: LineHeader { uuid: &uuid, parent_uuid: self.tip.as_deref(), timestamp },
            context: &self.context,
            duration: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            message_count: Some(message_count).filter(|_| self.format.has_end_marks),
        };
        let line = line.to_line();
        self.write(&[line])?;
        self.tip = Some(uuid);
        Ok(())
    }

    /// Continues the conversation after another line.
    pub(crate) fn set_tip(&mut self, tip: Option<String>) {
        self.tip = tip;
    }

    /// Writes the last prompt, from which other clients continue.
    pub(crate) fn last_prompt(&mut self, prompt: Option<&str>) -> Result<(), WriteError> {
        let Some(tip) = self.tip.clone().filter(|_| self.format.has_end_marks) else { return Ok(()) };
        let line =
            LastPromptLine { last_prompt: prompt, leaf_uuid: &tip, session_id: &self.session_id }.to_line();
        self.write(&[line])
    }
}

/// Parses JSON that was serialised before.
fn json(text: &str) -> Json<'_> {
    Json::parse(text).unwrap_or(Json::NULL)
}
