//! Sub-agents: loops of their own for single tasks, with a log of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use threadline_api::{BlockKind, RawObject, Usage, full_model_name};
use threadline_cancel::CancelToken;
use threadline_entry::lens::{EditResult, FromJson};
use threadline_entry::write::{AgentMetaFile, LineContext};
use threadline_entry::{Json, Millis};
use threadline_tools::{
    BackgroundTasks, FileStates, Permit, ResultContent, ShellState, Tool, ToolInput, ToolOutput,
    ToolSelection, ToolSet,
};

use crate::agent::{Agent, request, tool_json};
use crate::agent_definition::{AgentDefinition, DEFAULT_AGENT};
use crate::agent_tool::AgentTool;
use crate::background_agents::{BackgroundAgents, BackgroundMessage, FinishedAgent};
use crate::conversation::Conversation;
use crate::cost::ModelUsageTotals;
use crate::event::{AgentEvent, TurnEnd, TurnSummary};
use crate::git;
use crate::model_access::ToolRequests;
use crate::resume::Filler;
use crate::send_message::COORDINATOR;
use crate::session_writer::SessionWriter;
use crate::tool_calls::{CallScope, PendingCall};
use crate::turn::TurnPrompt;

/// The maximum depth of nested sub-agents. Those at this depth cannot start others.
const MAX_DEPTH: u32 = 3;

/// Tools of the session's own loop, which sub-agents are not given.
const MAIN_LOOP_TOOLS: &[&str] =
    &["AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "StructuredOutput", "TaskOutput"];

/// A sub-agent, as events name it.
#[derive(Clone, Debug)]
pub struct SubAgentSource {
    /// Its id, which is part of the name of its log.
    pub agent_id: String,
    /// Its kind.
    pub agent_type: String,
    /// The call that started it.
    pub tool_use_id: String,
    /// The task in a few words.
    pub description: String,
    /// The task.
    pub prompt: String,
}

/// The tokens, calls and time of a sub-agent so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubAgentUsage {
    /// The tokens of the last request, and all output.
    pub total_tokens: u64,
    /// The number of calls.
    pub tool_uses: u64,
    /// The time since it was started.
    pub duration: Duration,
}

/// An event of a sub-agent.
#[derive(Clone, Debug)]
pub enum SubAgentEvent {
    /// It was started.
    Started,
    /// Its task was written to its log.
    Prompt {
        /// The id of the line.
        uuid: String,
        /// The message.
        message: RawObject,
        /// The time of the line.
        timestamp: Millis,
    },
    /// A content block of a reply.
    Assistant {
        /// The id of the line.
        uuid: String,
        /// The message with this block only.
        message: RawObject,
        /// The id of the request.
        request_id: Option<String>,
    },
    /// The result of one of its calls.
    User {
        /// The id of the line.
        uuid: String,
        /// The message.
        message: RawObject,
        /// The time of the line.
        timestamp: Millis,
    },
    /// It calls a tool.
    Progress {
        /// The call in a few words.
        activity: String,
        /// The tool.
        tool_name: String,
        /// Tokens, calls and time so far.
        usage: SubAgentUsage,
    },
    /// It is done.
    Finished {
        /// `completed` or `failed`.
        status: &'static str,
        /// The task, or its outcome.
        summary: String,
        /// The file with its messages, for one in the background; empty otherwise.
        output_file: String,
        /// Tokens, calls and time.
        usage: SubAgentUsage,
        /// The time.
        timestamp: Millis,
    },
}

/// An event of a sub-agent and the sub-agent.
pub(crate) type SubAgentReport = (Arc<SubAgentSource>, SubAgentEvent);

/// The role of an agent that is a sub-agent.
#[derive(Clone, Debug)]
pub(crate) struct SubAgentRole {
    pub(crate) source: Arc<SubAgentSource>,
    /// The prompt of the session that its lines belong to.
    pub(crate) prompt_id: String,
    /// The depth of nesting, from 1.
    pub(crate) depth: u32,
}

/// The record of a finished sub-agent in the log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentRecord<'a> {
    status: &'static str,
    prompt: &'a str,
    agent_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_type: Option<&'a str>,
    content: &'a [RawObject],
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_model: Option<&'a str>,
    total_duration_ms: u64,
    total_tokens: u64,
    total_tool_use_count: u64,
    usage: &'a RawObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_stats: Option<ToolStats>,
}

/// The record of a sub-agent that was started in the background.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BackgroundRecord<'a> {
    is_async: bool,
    status: &'static str,
    agent_id: &'a str,
    description: &'a str,
    resolved_model: &'a str,
    prompt: &'a str,
    output_file: &'a str,
    can_read_output_file: bool,
}

/// The calls of a sub-agent by kind.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolStats {
    read_count: u64,
    search_count: u64,
    bash_count: u64,
    edit_file_count: u64,
    lines_added: u64,
    lines_removed: u64,
    other_tool_count: u64,
}

impl ToolStats {
    fn add_call(&mut self, tool: &str) {
        match tool {
            "Read" => self.read_count += 1,
            "Grep" | "Glob" => self.search_count += 1,
            "Bash" => self.bash_count += 1,
            "Edit" | "Write" | "NotebookEdit" => self.edit_file_count += 1,
            _ => self.other_tool_count += 1,
        }
    }

    /// Counts the changed lines in the record of an edit.
    fn add_record(&mut self, record: &RawValue) {
        let record = Json::parse(record.get()).and_then(EditResult::from_json);
        for hunk in record.and_then(EditResult::structured_patch).into_iter().flat_map(|hunks| hunks.iter()) {
            let lines = || hunk.lines().into_iter().flat_map(|lines| lines.iter());
            self.lines_added += lines().filter(|line| line.starts_with('+')).count() as u64;
            self.lines_removed += lines().filter(|line| line.starts_with('-')).count() as u64;
        }
    }
}

/// Forwards the events of a sub-agent and counts.
struct Forwarder<'a> {
    source: Arc<SubAgentSource>,
    start: Instant,
    cwd: &'a Path,
    report: &'a (dyn Fn(SubAgentReport) + Sync),
    /// Whether the session does not wait for the sub-agent.
    is_background: bool,
    /// Texts of a reply; they are reported if calls follow. The last text is the result, and is reported in
    /// the background only.
    pending: Vec<SubAgentEvent>,
    stats: ToolStats,
    input_tokens: u64,
    output_tokens: u64,
    tool_uses: u64,
}

impl<'a> Forwarder<'a> {
    fn new(source: &Arc<SubAgentSource>, cwd: &'a Path, report: &'a (dyn Fn(SubAgentReport) + Sync)) -> Self {
        Self {
            source: Arc::clone(source),
            start: Instant::now(),
            cwd,
            report,
            is_background: false,
            pending: Vec::new(),
            stats: ToolStats::default(),
            input_tokens: 0,
            output_tokens: 0,
            tool_uses: 0,
        }
    }

    /// Runs a task. `origin` is its source, if it is not the first one.
    fn run(
        &mut self,
        agent: &mut Agent,
        task: &str,
        origin: Option<&str>,
        cancel: &CancelToken,
    ) -> TurnSummary {
        let task = to_raw_value(task).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let prompt = origin.map_or(TurnPrompt::Typed(&task), |origin| TurnPrompt::Message(&task, origin));
        let summary = agent.run_turn(prompt, cancel, &mut |event| self.event(&event));
        for event in std::mem::take(&mut self.pending).into_iter().filter(|_| self.is_background) {
            self.send(event);
        }
        summary
    }

    fn send(&self, event: SubAgentEvent) {
        (self.report)((Arc::clone(&self.source), event));
    }

    fn usage(&self) -> SubAgentUsage {
        SubAgentUsage {
            total_tokens: self.input_tokens + self.output_tokens,
            tool_uses: self.tool_uses,
            duration: self.start.elapsed(),
        }
    }

    fn event(&mut self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::Prompt { uuid, message, timestamp } if !self.is_background => {
                let text = message.get_str("content").unwrap_or_default();
                let mut message = (*message).clone();
                message.set("content", [threadline_api::Message::text_block(&text)]);
                self.send(SubAgentEvent::Prompt { uuid: (*uuid).to_owned(), message, timestamp: *timestamp });
            }
            AgentEvent::Assistant { uuid, message, request_id, .. } => {
                self.count(message);
                let event = SubAgentEvent::Assistant {
                    uuid: (*uuid).to_owned(),
                    message: (*message).clone(),
                    request_id: request_id.map(str::to_owned),
                };
                self.pending.push(event);
                let blocks: Vec<RawObject> = content(message);
                if let Some(call) = blocks.iter().find(|block| BlockKind::of(block) == BlockKind::ToolUse) {
                    for event in std::mem::take(&mut self.pending) {
                        self.send(event);
                    }
                    self.add_call(call);
                }
            }
            AgentEvent::User { uuid, message, timestamp, tool_use_result, .. } => {
                if let Some(record) = tool_use_result {
                    self.stats.add_record(record);
                }
                let (uuid, message) = ((*uuid).to_owned(), (*message).clone());
                self.send(SubAgentEvent::User { uuid, message, timestamp: *timestamp });
            }
            AgentEvent::SubAgent { source, event } => {
                (self.report)((Arc::new((*source).clone()), (*event).clone()));
            }
            _ => {}
        }
    }

    fn count(&mut self, message: &RawObject) {
        let usage = message.get_object("usage").unwrap_or_default();
        let tokens = |key: &str| usage.get_u64(key).unwrap_or_default();
        self.input_tokens = tokens("input_tokens")
            + tokens("cache_creation_input_tokens")
            + tokens("cache_read_input_tokens");
        self.output_tokens += tokens("output_tokens");
    }

    fn add_call(&mut self, call: &RawObject) {
        let tool_name = call.get_str("name").unwrap_or_default();
        let input = call.get_object("input").unwrap_or_default();
        self.tool_uses += 1;
        self.stats.add_call(&tool_name);
        let activity = activity(&tool_name, &input, self.cwd);
        self.send(SubAgentEvent::Progress { activity, tool_name, usage: self.usage() });
    }
}

impl Agent {
    /// Runs the sub-agent of a call to its end. Returns its result and its cost.
    pub(crate) fn run_sub_agent(
        &self,
        call: &PendingCall,
        input: &ToolInput,
        _permit: Permit,
        scope: CallScope<'_>,
    ) -> (ToolOutput, ModelUsageTotals) {
        let agent_type = agent_type(input);
        let definition = self.agents.iter().find(|definition| definition.name == agent_type);
        let (Some(definition), Some(source)) = (definition, &call.sub_agent) else {
            let names: Vec<&str> = self.agents.iter().map(|definition| definition.name.as_str()).collect();
            let message =
                format!("Agent type '{agent_type}' not found. Available agents: {}", names.join(", "));
            return (
                ToolOutput::not_run(&message, &format!("Error: {message}")),
                ModelUsageTotals::default(),
            );
        };
        let mut agent = self.sub_agent(definition, source, scope.prompt_id, input.text("model"));
        if input.flag("run_in_background") {
            let output = self.start_in_background(agent, source);
            return (output, ModelUsageTotals::default());
        }
        self.mailboxes.start(&source.agent_id);
        let mut forwarder = Forwarder::new(source, &self.config.paths.cwd, scope.report);
        let summary = forwarder.run(&mut agent, &source.prompt, None, scope.cancel);
        let usage = forwarder.usage();
        forwarder.send(SubAgentEvent::Finished {
            status: if is_success(&summary.end) { "completed" } else { "failed" },
            summary: source.description.clone(),
            output_file: String::new(),
            usage,
            timestamp: self.clock.now(),
        });
        if let TurnEnd::Failed(error) = &summary.end {
            return (ToolOutput::not_run(error, &format!("Error: {error}")), agent.totals);
        }
        let output = agent.sub_agent_output(source, &summary.text, &forwarder, usage.duration);
        let totals = agent.totals.clone();
        // A message that arrived before it was stored is its next task.
        if let Some((agent, messages)) = self.mailboxes.finish(&source.agent_id, agent) {
            self.resume_in_background(agent, &messages.join("\n\n"));
        }
        (output, totals)
    }

    /// Runs a sub-agent in the background. Returns the result of the call, which does not wait for it.
    fn start_in_background(&self, agent: Self, source: &Arc<SubAgentSource>) -> ToolOutput {
        let output_file = self.output_link(source);
        let id = &source.agent_id;
        let text = format!(
            "Async agent launched successfully.\nagentId: {id} (internal ID - do not mention to user. Use SendMessage \
             with to: '{id}', summary: '<5-10 word recap>' to continue this agent.)\nThe agent is working in the \
             background. You will be notified automatically when it completes.\nDo not duplicate this agent's work — \
             avoid working with the same files or topics it is using.\noutput_file: {}\nDo NOT Read or tail this file \
             via the shell tool — it is the full subagent JSONL transcript and reading it will overflow your context. \
             If the user asks for progress, say the agent is still running; you'll get a completion notification.",
            output_file.display()
        );
        let record = BackgroundRecord {
            is_async: true,
            status: "async_launched",
            agent_id: id,
            description: &source.description,
            resolved_model: &agent.request.model,
            prompt: &source.prompt,
            output_file: &output_file.to_string_lossy(),
            can_read_output_file: true,
        };
        let mut output = ToolOutput::success("", &record);
        let block = to_raw_value(&threadline_api::Message::text_block(&text));
        output.content = ResultContent::Blocks(block.into_iter().collect());
        self.mailboxes.start(id);
        self.run_in_background(agent, source, source.prompt.clone(), None);
        output
    }

    /// Continues a sub-agent that has finished with a message. Returns the file with its messages.
    pub(crate) fn resume_in_background(&self, mut agent: Self, message: &str) -> PathBuf {
        let Some(source) = agent.role.as_ref().map(|role| Arc::clone(&role.source)) else {
            return PathBuf::new();
        };
        self.mailboxes.start(&source.agent_id);
        // Its first run was counted.
        agent.totals = ModelUsageTotals::default();
        self.run_in_background(agent, &source, message.to_owned(), Some(COORDINATOR));
        self.output_link(&source)
    }

    /// The link to the log of a sub-agent, in the folder of the output of commands.
    fn output_link(&self, source: &SubAgentSource) -> PathBuf {
        self.tasks_dir.join(format!("{}.output", source.agent_id))
    }

    /// Runs a task in the background, and the messages that come until its end.
    fn run_in_background(
        &self,
        mut agent: Self,
        source: &Arc<SubAgentSource>,
        task: String,
        origin: Option<&'static str>,
    ) {
        let output_file = self.output_link(source);
        link_output(&output_file, &agent.log());
        let (source, cwd) = (Arc::clone(source), self.config.paths.cwd.clone());
        let mailboxes = Arc::clone(&self.mailboxes);
        self.background_agents.start(move |cancel, report| {
            let mut forwarder = Forwarder { is_background: true, ..Forwarder::new(&source, &cwd, report) };
            let mut summary = forwarder.run(&mut agent, &task, origin, cancel);
            let mut totals = agent.totals.clone();
            while let Some((resumed, messages)) = mailboxes.finish(&source.agent_id, agent) {
                agent = resumed;
                summary = forwarder.run(&mut agent, &messages.join("\n\n"), Some(COORDINATOR), cancel);
                totals = agent.totals.clone();
            }
            FinishedAgent {
                usage: forwarder.usage(),
                is_success: is_success(&summary.end),
                text: summary.text,
                totals,
                output_file,
                source,
            }
        });
    }

    /// Reports the messages of sub-agents in the background that are there already.
    pub(crate) fn collect_background_agents(&mut self, events: &mut dyn FnMut(AgentEvent<'_>)) {
        while let Some(message) = self.background_agents.try_next() {
            self.add_background_message(message, events);
        }
    }

    /// Waits for a message of a sub-agent in the background.
    pub(crate) fn wait_for_background_agent(
        &mut self,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) {
        if let Some(message) = self.background_agents.next(cancel) {
            self.add_background_message(message, events);
        }
    }

    fn add_background_message(&mut self, message: BackgroundMessage, events: &mut dyn FnMut(AgentEvent<'_>)) {
        match message {
            BackgroundMessage::Report((source, event)) => {
                events(AgentEvent::SubAgent { source: &source, event: &event });
            }
            BackgroundMessage::Finished(agent) => {
                self.totals.merge(&agent.totals);
                let (status, summary) = agent.summary();
                let output_file = agent.output_file.to_string_lossy().into_owned();
                let (usage, timestamp) = (agent.usage, self.clock.now());
                let event = SubAgentEvent::Finished { status, summary, output_file, usage, timestamp };
                events(AgentEvent::SubAgent { source: &agent.source, event: &event });
                self.background_agents.add_finished(*agent);
            }
            BackgroundMessage::Woken => {}
        }
    }

    /// Returns the sub-agent that a call starts; `None` if there is no such kind.
    pub(crate) fn sub_agent_source(
        &self,
        tool_use_id: &str,
        input: &ToolInput,
    ) -> Option<Arc<SubAgentSource>> {
        let agent_type = agent_type(input);
        self.agents.iter().find(|definition| definition.name == agent_type)?;
        Some(Arc::new(SubAgentSource {
            agent_id: agent_id(&self.clock.new_uuid(), if self.has_agent_details() { 16 } else { 6 }),
            agent_type: agent_type.to_owned(),
            tool_use_id: tool_use_id.to_owned(),
            description: input.text("description").unwrap_or_default().to_owned(),
            prompt: input.text("prompt").unwrap_or_default().to_owned(),
        }))
    }

    /// Returns the result of a sub-agent for the model and the log.
    fn sub_agent_output(
        &self,
        source: &SubAgentSource,
        text: &str,
        forwarder: &Forwarder<'_>,
        duration: Duration,
    ) -> ToolOutput {
        let content: Vec<RawObject> =
            if text.is_empty() { Vec::new() } else { vec![threadline_api::Message::text_block(text)] };
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1);
        let last = self.last_usage;
        let total_tokens = last.input + last.cache_write + last.cache_read + last.output;
        let id = &source.agent_id;
        let has_details = self.has_agent_details();
        let note = format!(
            "agentId: {id} (use SendMessage with to: '{id}', summary: '<5-10 word recap>' to continue this agent)\n\
             <usage>subagent_tokens: {total_tokens}\ntool_uses: {}\nduration_ms: {millis}</usage>",
            forwarder.tool_uses
        );
        let short_note = format!("agentId: {id} (for resuming to continue this agent's work if needed)");
        let note = if has_details { note } else { short_note };
        let record = AgentRecord {
            status: "completed",
            prompt: &source.prompt,
            agent_id: id,
            agent_type: Some(source.agent_type.as_str()).filter(|_| has_details),
            content: &content,
            resolved_model: Some(self.request.model.as_str()).filter(|_| has_details),
            total_duration_ms: millis,
            total_tokens,
            total_tool_use_count: forwarder.tool_uses,
            usage: &self.last_usage_json,
            tool_stats: has_details.then_some(forwarder.stats),
        };
        let mut output = ToolOutput::success("", &record);
        let blocks = content
            .iter()
            .chain([&threadline_api::Message::text_block(&note)])
            .filter_map(|block| to_raw_value(block).ok())
            .collect();
        output.content = ResultContent::Blocks(blocks);
        output
    }

    /// The log of a sub-agent.
    pub(crate) fn agent_log(&self, id: &str) -> PathBuf {
        let folder = self.side_dir.parent().unwrap_or(&self.side_dir);
        folder.join("subagents").join(format!("agent-{id}.jsonl"))
    }

    /// Creates the agent for a task, with a log of its own.
    pub(crate) fn sub_agent(
        &self,
        definition: &AgentDefinition,
        source: &Arc<SubAgentSource>,
        prompt_id: &str,
        model: Option<&str>,
    ) -> Self {
        let depth = self.role.as_ref().map_or(0, |role| role.depth) + 1;
        let mut config = self.config.clone();
        config.plan_model = None;
        if let Some(model) = model.or(definition.model.as_deref()) {
            config.model = full_model_name(model);
        }
        if let Some(prompt) = &definition.prompt {
            config.system_prompt = Some(prompt.clone());
            config.append_system_prompt = None;
        }
        config.max_thinking_tokens = Some(0);
        config.json_schema = None;
        config.max_turns = None;
        config.max_budget_usd = None;
        let tools = self.sub_agent_tools(definition, depth);
        let cwd = self.shell.cwd();
        let context = LineContext {
            is_sidechain: true,
            agent_id: Some(source.agent_id.clone().into()),
            user_type: Some("external".into()),
            entrypoint: Some(config.entrypoint.clone().into()),
            cwd: Some(cwd.to_string_lossy().into_owned().into()),
            session_id: Some(self.session_id().into()),
            version: Some(config.profile.version.into()),
            ..LineContext::default()
        };
        let log = self.agent_log(&source.agent_id);
        let meta = log.with_extension("meta.json");
        // A sub-agent that is continued has the file already.
        if config.is_persistent && self.has_agent_details() && !meta.exists() {
            write_meta(&meta, source, depth);
        }
        let mut writer = SessionWriter::new(log, config.is_persistent, context, None, 0);
        if self.has_agent_details() {
            writer.set_attribution(&source.agent_type);
        }
        writer.set_git_branch(git::branch(&config.paths.cwd));
        let mut request = request(&config);
        request.tools = tools.definitions().iter().map(tool_json).collect();
        Self {
            requests: ToolRequests {
                client: Arc::clone(&self.client),
                model: request.model.clone(),
                small_model: self.requests.small_model.clone(),
            },
            request,
            client: Arc::clone(&self.client),
            clock: Arc::clone(&self.clock),
            prices: Arc::clone(&self.prices),
            tools,
            agents: Arc::clone(&self.agents),
            role: Some(SubAgentRole { source: Arc::clone(source), prompt_id: prompt_id.to_owned(), depth }),
            writer: Arc::new(Mutex::new(writer)),
            main_writer: Arc::clone(&self.main_writer),
            backups: Arc::clone(&self.backups),
            conversation: Conversation::new(Vec::new()),
            model_outside_plan: None,
            copied_lines: Vec::new(),
            filler: Filler::None,
            open_calls: Vec::new(),
            shell: ShellState::new(cwd),
            files: FileStates::new(),
            background: BackgroundTasks::new(),
            background_agents: BackgroundAgents::new(),
            mailboxes: Arc::default(),
            parent_mailboxes: Some(Arc::clone(&self.mailboxes)),
            known_tasks: Mutex::new(Vec::new()),
            limits: self.limits.clone(),
            totals: ModelUsageTotals::default(),
            last_usage: Usage::default(),
            last_usage_json: RawObject::new(),
            last_prompt: None,
            is_prompt_blocked: false,
            memory: self.memory.clone(),
            nested_memory: std::collections::HashSet::new(),
            changed_lines: crate::slash_command::ChangedLines::default(),
            started: std::time::Instant::now(),
            api_time: std::time::Duration::ZERO,
            reply_lines: Vec::new(),
            dropped_tokens: 0,
            compaction: None,
            prompt_id: Some(prompt_id.to_owned()),
            has_run_start_hooks: true,
            start_runs: Vec::new(),
            is_resumed: false,
            model_changes: Vec::new(),
            written_mode: None,
            has_reported_plan_mode: false,
            prompt: self.prompt.clone(),
            turn_input: None,
            side_dir: self.side_dir.clone(),
            tasks_dir: self.tasks_dir.clone(),
            task_list_dir: self.task_list_dir.clone(),
            config,
        }
    }

    /// Whether the format of the session describes sub-agents in detail.
    fn has_agent_details(&self) -> bool {
        self.writer.lock().format().has_agent_details
    }

    /// Returns the tools of a sub-agent: those of its definition that the session has.
    fn sub_agent_tools(&self, definition: &AgentDefinition, depth: u32) -> ToolSet {
        let is_wanted = |name: &String| match &definition.tools {
            Some(tools) => tools.contains(name),
            None => true,
        };
        let mut only: Vec<String> = self.tool_names().into_iter().filter(is_wanted).collect();
        // Search tools are not among those of the main loop, but an agent may ask for them.
        only.extend(
            definition
                .tools
                .iter()
                .flatten()
                .filter(|name| matches!(name.as_str(), "Glob" | "Grep"))
                .cloned(),
        );
        let mut without = definition.disallowed_tools.clone();
        without.extend(self.config.disallowed_tools.iter().cloned());
        without.extend(MAIN_LOOP_TOOLS.iter().map(|name| (*name).to_owned()));
        let name = AgentTool::name_in(self.config.profile.version);
        let has_agents = depth < MAX_DEPTH
            && only.iter().any(|tool| tool == name)
            && !without.iter().any(|tool| tool == name);
        let denied =
            |name: &str| self.config.permissions.read(|permissions| permissions.is_tool_denied(name));
        // The session does not have those that are refused.
        let mcp: Vec<String> = only
            .iter()
            .filter(|name| self.config.mcp.tool(name).is_some() && !without.contains(name))
            .cloned()
            .collect();
        let resources: Vec<String> = only.iter().filter(|name| !without.contains(name)).cloned().collect();
        let is_resource_offered = |name: &str| resources.iter().any(|other| other == name);
        let is_mcp_offered = |name: &str| mcp.iter().any(|other| other == name);
        let mut tools =
            ToolSet::new(self.config.profile, &ToolSelection { only: Some(only), without }, &denied);
        if has_agents {
            tools.push(Box::new(AgentTool::new(name, &self.agents)));
        }
        for tool in self.config.mcp.tools().filter(|tool| is_mcp_offered(tool.name())) {
            tools.push(Box::new(tool));
        }
        for tool in self.config.mcp.resource_tools() {
            if is_resource_offered(tool.name()) {
                tools.push(tool);
            }
        }
        tools
    }
}

/// Whether a sub-agent ended with an answer. An error of the API is an answer too.
fn is_success(end: &TurnEnd) -> bool {
    !matches!(end, TurnEnd::Failed(_) | TurnEnd::Interrupted { .. })
}

/// Makes the log of a sub-agent readable next to the output of commands. Nothing depends on it.
fn link_output(link: &Path, log: &Path) {
    #[cfg(unix)]
    if let Some(folder) = link.parent() {
        let _ = fs_err::create_dir_all(folder).and_then(|()| fs_err::os::unix::fs::symlink(log, link));
    }
    #[cfg(not(unix))]
    let _ = (link, log);
}

/// Returns the kind of sub-agent that a call names.
fn agent_type(input: &ToolInput) -> &str {
    input.text("subagent_type").filter(|name| !name.is_empty()).unwrap_or(DEFAULT_AGENT)
}

/// Writes the file that describes a sub-agent. It is only read for display.
fn write_meta(path: &Path, source: &SubAgentSource, depth: u32) {
    let meta = AgentMetaFile {
        agent_type: &source.agent_type,
        description: &source.description,
        tool_use_id: &source.tool_use_id,
        spawn_depth: depth,
    };
    let folder = path.parent().unwrap_or(path);
    let _ = fs_err::create_dir_all(folder).and_then(|()| fs_err::write(path, meta.to_json()));
}

/// Returns the id of a sub-agent: `a` and a number of hexadecimal digits.
fn agent_id(uuid: &str, count: usize) -> String {
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).take(count).collect();
    format!("a{digits}")
}

/// Returns the blocks of a message.
fn content(message: &RawObject) -> Vec<RawObject> {
    message.get("content").and_then(|blocks| serde_json::from_str(blocks.get()).ok()).unwrap_or_default()
}

/// Describes a call in a few words.
fn activity(tool: &str, input: &RawObject, cwd: &Path) -> String {
    let value = |key: &str| input.get_str(key).unwrap_or_default();
    let path = |key: &str| {
        let path = value(key);
        Path::new(&path).strip_prefix(cwd).map_or(path.clone(), |path| path.display().to_string())
    };
    match tool {
        "Read" => format!("Reading {}", path("file_path")),
        "Write" => format!("Writing {}", path("file_path")),
        "Edit" => format!("Editing {}", path("file_path")),
        "NotebookEdit" => format!("Editing {}", path("notebook_path")),
        "Bash" if input.get("description").is_some() => value("description"),
        "Bash" => format!("Running {}", value("command")),
        "Grep" => format!("Searching for {}", value("pattern")),
        "Glob" => format!("Finding {}", value("pattern")),
        "WebFetch" => format!("Fetching {}", value("url")),
        "WebSearch" => format!("Searching for {}", value("query")),
        "Agent" | "Task" => value("description"),
        other => other.to_owned(),
    }
}
