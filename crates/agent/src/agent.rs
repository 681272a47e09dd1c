//! A session in progress.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use threadline_api::{
    Client, Message, MessagesRequest, RawObject, Thinking, Usage, full_model_name, model_info,
};
use threadline_cancel::CancelToken;
use threadline_entry::write::LineContext;
use threadline_store::{SessionId, encode_project};
use threadline_tools::{
    BackgroundTasks, FileStates, Limits, ShellState, StructuredOutput, ToolSelection, ToolSet,
};
use threadline_usage::PriceBook;

use crate::agent_definition::AgentDefinition;
use crate::agent_tool::AgentTool;
use crate::background_agents::BackgroundAgents;
use crate::clock::Clock;
use crate::config::{AgentConfig, SessionStart};
use crate::conversation::Conversation;
use crate::cost::ModelUsageTotals;
use crate::event::AgentEvent;
use crate::file_history::{FileBackups, copy_backups};
use crate::git;
use crate::hook::HookRun;
use crate::memory::memory_reminder;
use crate::model_access::ToolRequests;
use crate::model_change::ModelChange;
use crate::permission::PermissionPrompt;
use crate::resume::{Filler, OpenCall, ResumeError, ResumedSession, fork_lines};
use crate::send_message::{Mailboxes, SEND_MESSAGE, SendMessageTool};
use crate::session_hooks::CLEAR;
use crate::session_writer::{SessionWriter, WriteError, WrittenCompaction};
use crate::skill_tool::{SKILL, SkillTool};
use crate::slash_command::ChangedLines;
use crate::sub_agent::SubAgentRole;
use crate::system_prompt::system_prompt;
use crate::temp_dir;
use crate::turn_input::TurnInput;

/// Why an agent could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The session cannot be continued.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The session cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The id is not a plain file name.
    #[error("`{0}` is not a session id")]
    SessionId(String),
    /// The JSON schema cannot be used.
    #[error("the JSON schema is not valid: {0}")]
    JsonSchema(String),
    /// The folder for temporary files belongs to another user.
    #[error(
        "the folder for temporary files `{}` is not a folder of this user; set CLAUDE_CODE_TMPDIR to another one",
        .0.display()
    )]
    TempDir(PathBuf),
}

/// A session in progress: the conversation, its log, and the state of its tools.
pub struct Agent {
    pub(crate) config: AgentConfig,
    pub(crate) client: Arc<Client>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) prices: Arc<PriceBook>,
    pub(crate) tools: ToolSet,
    /// The kinds of sub-agents.
    pub(crate) agents: Arc<Vec<AgentDefinition>>,
    /// The role of a sub-agent; `None` for the session itself.
    pub(crate) role: Option<SubAgentRole>,
    pub(crate) writer: Arc<Mutex<SessionWriter>>,
    /// The writer of the session's own log, which differs for sub-agents.
    pub(crate) main_writer: Arc<Mutex<SessionWriter>>,
    pub(crate) backups: Arc<Mutex<FileBackups>>,
    /// The request without its messages.
    pub(crate) request: MessagesRequest,
    pub(crate) conversation: Conversation,
    /// The lines of the source of a fork, which are written with the first prompt.
    pub(crate) copied_lines: Vec<String>,
    pub(crate) filler: Filler,
    /// Calls of an earlier process without a result, which get one with the first prompt.
    pub(crate) open_calls: Vec<OpenCall>,
    pub(crate) shell: ShellState,
    pub(crate) files: FileStates,
    pub(crate) background: BackgroundTasks,
    pub(crate) background_agents: BackgroundAgents,
    /// The sub-agents that can get messages.
    pub(crate) mailboxes: Arc<Mailboxes>,
    /// Those of the agent that started this sub-agent.
    pub(crate) parent_mailboxes: Option<Arc<Mailboxes>>,
    /// The background tasks that were reported.
    pub(crate) known_tasks: Mutex<Vec<KnownTask>>,
    pub(crate) limits: Limits,
    pub(crate) requests: ToolRequests,
    pub(crate) totals: ModelUsageTotals,
    /// The usage of the last reply.
    pub(crate) last_usage: Usage,
    pub(crate) last_usage_json: RawObject,
    /// The prompt of the last turn, for the mark at the end of the log.
    pub(crate) last_prompt: Option<String>,
    /// Whether the last prompt was not sent.
    pub(crate) is_prompt_blocked: bool,
    /// The memory files as they are sent before the first message.
    pub(crate) memory: Option<RawObject>,
    /// The memory files that were added to results.
    pub(crate) nested_memory: std::collections::HashSet<PathBuf>,
    /// The lines that tools have changed in this process.
    pub(crate) changed_lines: ChangedLines,
    /// When the process started.
    pub(crate) started: std::time::Instant,
    /// The time in requests.
    pub(crate) api_time: std::time::Duration,
    /// The lines of the last reply.
    pub(crate) reply_lines: Vec<String>,
    /// The tokens that compactions have removed from the conversation.
    pub(crate) dropped_tokens: u64,
    /// The compaction of this turn.
    pub(crate) compaction: Option<WrittenCompaction>,
    /// The id of the last prompt.
    pub(crate) prompt_id: Option<String>,
    /// Whether the hooks of the start have run.
    pub(crate) has_run_start_hooks: bool,
    /// The hooks of the start, until their lines are written.
    pub(crate) start_runs: Vec<HookRun>,
    pub(crate) is_resumed: bool,
    /// Changes of the model, whose lines are written with the next prompt.
    pub(crate) model_changes: Vec<ModelChange>,
    /// The model outside of plan mode, while another one is used in it.
    pub(crate) model_outside_plan: Option<String>,
    /// The permission mode that was written last.
    pub(crate) written_mode: Option<&'static str>,
    /// Whether the conversation already contains the message that plan mode is on.
    pub(crate) has_reported_plan_mode: bool,
    /// Answers questions about calls that are not permitted by themselves.
    pub(crate) prompt: Option<Arc<dyn PermissionPrompt>>,
    /// The person at the screen, if prompts can join turns.
    pub(crate) turn_input: Option<Arc<dyn TurnInput>>,
    pub(crate) side_dir: PathBuf,
    pub(crate) tasks_dir: PathBuf,
    pub(crate) task_list_dir: PathBuf,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A background task that was reported.
#[derive(Clone, Debug)]
pub(crate) struct KnownTask {
    pub(crate) id: String,
    pub(crate) tool_use_id: String,
    pub(crate) description: String,
}

/// The beta features that requests use.
const BETAS: &[&str] = &["interleaved-thinking-2025-05-14", "context-management-2025-06-27"];
/// The beta feature of the effort parameter.
const EFFORT_BETA: &str = "effort-2025-11-24";
/// The beta feature of the long context window.
const LONG_CONTEXT_BETA: &str = "context-1m-2025-08-07";
/// The model for small tasks.
const SMALL_MODEL: &str = "haiku";
/// The share of the output tokens of a model that it may think at most: all but one.
const TOKENS_AFTER_THINKING: u64 = 1;

impl Agent {
    /// Starts, resumes or forks a session.
    pub fn start(
        config: AgentConfig,
        client: Arc<Client>,
        prices: PriceBook,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AgentError> {
        let version = config.profile.version;
        if !temp_dir::is_private(&config.paths.temp_dir) {
            return Err(AgentError::TempDir(config.paths.temp_dir));
        }
        let project = config
            .paths
            .claude_home
            .join("projects")
            .join(encode_project(&config.paths.cwd.to_string_lossy()));
        let mut resumed = None;
        let (session_id, log) = match &config.start {
            SessionStart::New { session_id, .. } => {
                let id =
                    SessionId::new(session_id).ok_or_else(|| AgentError::SessionId(session_id.clone()))?;
                (session_id.clone(), id.log_in(&project))
            }
            SessionStart::Resume { log } => {
                let session = resumed.insert(ResumedSession::read(log, version)?);
                let id = &session.session_id;
                SessionId::new(id).ok_or_else(|| AgentError::SessionId(id.clone()))?;
                (id.clone(), log.clone())
            }
            SessionStart::Fork { log, session_id } => {
                let id =
                    SessionId::new(session_id).ok_or_else(|| AgentError::SessionId(session_id.clone()))?;
                resumed = Some(ResumedSession::read(log, version)?);
                (session_id.clone(), id.log_in(&project))
            }
        };
        let context = LineContext {
            user_type: Some("external".into()),
            entrypoint: Some(config.entrypoint.clone().into()),
            cwd: Some(config.paths.cwd.to_string_lossy().into_owned().into()),
            session_id: Some(session_id.clone().into()),
            version: Some(version.into()),
            slug: resumed.as_ref().and_then(|session| session.slug.clone()).map(Into::into),
            ..LineContext::default()
        };
        let tip = resumed.as_ref().and_then(|session| session.tip.clone());
        let last_time = resumed.as_ref().map_or(0, |session| session.last_time);
        let mut writer = SessionWriter::new(log.clone(), config.is_persistent, context, tip, last_time);
        writer.set_git_branch(git::branch(&config.paths.cwd));
        let mut copied_lines = Vec::new();
        match &config.start {
            SessionStart::New { title: Some(title), .. } => writer.title(title)?,
            SessionStart::New { .. } | SessionStart::Resume { .. } => {}
            SessionStart::Fork { log: source, session_id } => {
                writer.mode("normal")?;
                copied_lines = fork_lines(source, session_id)?;
            }
        }
        let is_resumed = resumed.is_some();
        let is_fork = matches!(config.start, SessionStart::Fork { .. });
        let files = FileStates::new();
        for file in resumed.as_ref().map_or(&[][..], |session| &session.seen_files) {
            files.restore(file.path.clone(), &file.content, u64::try_from(file.time).unwrap_or_default());
        }
        let history = config.has_file_history && config.is_persistent;
        let history = history.then(|| config.paths.claude_home.join("file-history").join(&session_id));
        let tracked = resumed.as_ref().map(|session| session.tracked.clone()).unwrap_or_default();
        if let (Some(history), Some(source)) = (&history, &resumed)
            && is_fork
        {
            let source = config.paths.claude_home.join("file-history").join(&source.session_id);
            copy_backups(&tracked, &source, history);
        }
        let backups = FileBackups::new(history, config.paths.cwd.clone(), tracked);
        let request = request(&config);
        let selection =
            ToolSelection { only: config.tools.clone(), without: config.disallowed_tools.clone() };
        let denied = |name: &str| config.permissions.read(|permissions| permissions.is_tool_denied(name));
        let mut tools = ToolSet::new(config.profile, &selection, &denied);
        let agents = Arc::new(AgentDefinition::all(&config.agents));
        let agent_tool = AgentTool::name_in(version);
        if is_offered(&config, agent_tool) {
            tools.push(Box::new(AgentTool::new(agent_tool, &agents)));
            if agent_tool == "Agent" && is_offered(&config, SEND_MESSAGE) {
                tools.push(Box::new(SendMessageTool));
            }
        }
        if let Some(schema) = &config.json_schema {
            let schema: Box<RawValue> =
                serde_json::from_str(schema).map_err(|error| AgentError::JsonSchema(error.to_string()))?;
            let tool = StructuredOutput::new(&schema)
                .ok_or_else(|| AgentError::JsonSchema("it must be an object".to_owned()))?;
            tools.push(Box::new(tool));
        }
        if is_offered(&config, SKILL) {
            tools.push(Box::new(SkillTool::new(&config.commands, &session_id)));
        }
        let folder = log.parent().unwrap_or(Path::new("")).join(&session_id);
        let slug = encode_project(&config.paths.cwd.to_string_lossy());
        let writer = Arc::new(Mutex::new(writer));
        let (messages, filler) = match resumed.as_mut() {
            Some(session) => (std::mem::take(&mut session.messages), session.filler),
            None => (Vec::new(), Filler::None),
        };
        let thinking_models =
            resumed.as_mut().map(|session| std::mem::take(&mut session.thinking_models)).unwrap_or_default();
        let mut agent = Self {
            requests: ToolRequests {
                client: Arc::clone(&client),
                model: request.model.clone(),
                small_model: config.small_model.clone().unwrap_or_else(|| full_model_name(SMALL_MODEL)),
            },
            request,
            client,
            clock,
            prices: Arc::new(prices),
            tools,
            agents,
            role: None,
            main_writer: Arc::clone(&writer),
            writer,
            backups: Arc::new(Mutex::new(backups)),
            conversation: Conversation::new(messages).with_thinking_models(thinking_models),
            model_outside_plan: None,
            copied_lines,
            filler,
            open_calls: resumed
                .as_mut()
                .map(|session| std::mem::take(&mut session.open_calls))
                .unwrap_or_default(),
            shell: ShellState::new(config.paths.cwd.clone()),
            files,
            background: BackgroundTasks::new(),
            background_agents: BackgroundAgents::new(),
            mailboxes: Arc::default(),
            parent_mailboxes: None,
            known_tasks: Mutex::new(Vec::new()),
            limits: config.limits.clone(),
            totals: ModelUsageTotals::default(),
            last_usage: resumed.as_ref().map(|session| session.last_usage).unwrap_or_default(),
            last_usage_json: RawObject::new(),
            last_prompt: resumed.as_ref().and_then(|session| session.last_prompt.clone()).filter(|_| is_fork),
            is_prompt_blocked: false,
            memory: memory_reminder(&config.memory).map(|text| Message::text_block(&text)),
            nested_memory: std::collections::HashSet::new(),
            changed_lines: ChangedLines::default(),
            started: std::time::Instant::now(),
            api_time: std::time::Duration::ZERO,
            reply_lines: resumed.as_ref().map(|session| session.reply_lines.clone()).unwrap_or_default(),
            dropped_tokens: resumed.as_ref().map(|session| session.dropped_tokens).unwrap_or_default(),
            compaction: None,
            prompt_id: None,
            has_run_start_hooks: false,
            start_runs: Vec::new(),
            is_resumed,
            model_changes: Vec::new(),
            written_mode: None,
            has_reported_plan_mode: false,
            prompt: None,
            turn_input: None,
            side_dir: folder.join("tool-results"),
            tasks_dir: config.paths.temp_dir.join(slug).join(&session_id).join("tasks"),
            task_list_dir: config.paths.claude_home.join("tasks").join(&session_id),
            config,
        };
        agent.permit_own_files();
        let servers = std::mem::take(&mut agent.config.mcp);
        agent.add_servers(servers);
        if agent.config.is_persistent && agent.writer.lock().format().has_todo_file {
            agent.create_todo_file(&session_id);
        }
        Ok(agent)
    }

    /// Whether the model is given a tool that is not part of the profile's list.
    pub(crate) fn is_offered(&self, name: &str) -> bool {
        is_offered(&self.config, name)
    }

    /// Creates an empty to-do list on disk, unless there is one. Nothing depends on it.
    fn create_todo_file(&self, session_id: &str) {
        let folder = self.config.paths.claude_home.join("todos");
        let file = folder.join(format!("{session_id}-agent-{session_id}.json"));
        if !file.exists() {
            let _ = fs_err::create_dir_all(&folder).and_then(|()| fs_err::write(&file, "[]"));
        }
    }

    /// Starts a new session with an empty conversation. The old one gets a title if one is given.
    pub(crate) fn clear(
        &mut self,
        title: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        self.end_hooks(CLEAR, events);
        let session_id = self.clock.new_uuid();
        {
            let mut writer = self.writer.lock();
            if !title.is_empty() {
                writer.custom_title(title)?;
            }
            let folder = writer.path().parent().unwrap_or(Path::new("")).to_owned();
            writer.start_session(&session_id, folder.join(format!("{session_id}.jsonl")));
            self.side_dir = folder.join(&session_id).join("tool-results");
        }
        let paths = &self.config.paths;
        let slug = encode_project(&paths.cwd.to_string_lossy());
        self.tasks_dir = paths.temp_dir.join(slug).join(&session_id).join("tasks");
        self.task_list_dir = paths.claude_home.join("tasks").join(&session_id);
        let history = self.config.has_file_history && self.config.is_persistent;
        let history = history.then(|| paths.claude_home.join("file-history").join(&session_id));
        self.backups = Arc::new(Mutex::new(FileBackups::new(history, paths.cwd.clone(), Vec::new())));
        self.conversation = Conversation::new(Vec::new());
        self.files = FileStates::new();
        self.filler = Filler::None;
        self.last_usage = Usage::default();
        self.reply_lines.clear();
        self.dropped_tokens = 0;
        // The end of the new session is marked like that of a resumed one.
        self.is_resumed = true;
        events(AgentEvent::SessionChanged { session_id: &session_id });
        self.config.start = SessionStart::New { session_id, title: None };
        self.run_start_hooks(CLEAR, cancel, events);
        self.write_start_hooks()
    }

    /// The id of the session.
    pub fn session_id(&self) -> String {
        self.writer.lock().session_id().to_owned()
    }

    /// The log of the session.
    pub fn log(&self) -> PathBuf {
        self.writer.lock().path().to_owned()
    }

    /// The settings.
    pub fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Adds kinds of sub-agents, which replace others of the same name.
    pub fn add_agents(&mut self, definitions: Vec<AgentDefinition>) {
        self.config.agents.extend(definitions);
        self.agents = Arc::new(AgentDefinition::all(&self.config.agents));
        let name = AgentTool::name_in(self.config.profile.version);
        if self.tools.get(name).is_some() {
            self.tools.push(Box::new(AgentTool::new(name, &self.agents)));
            self.request.tools = self.tools.definitions().iter().map(tool_json).collect();
        }
    }

    /// The names of the kinds of sub-agents.
    pub fn agent_names(&self) -> Vec<String> {
        self.agents.iter().map(|definition| definition.name.clone()).collect()
    }

    /// The names of the tools that the model is given.
    pub fn tool_names(&self) -> Vec<String> {
        self.tools.tools().map(|tool| tool.name().to_owned()).collect()
    }

    /// Ends all background tasks, writes the marks at the end of the log, runs the hooks of the end, and ends
    /// the MCP servers. The log is complete before the hooks run, which may take long or be killed.
    pub fn finish(&mut self, events: &mut dyn FnMut(AgentEvent<'_>)) -> Result<(), WriteError> {
        self.background_agents.end_all();
        self.background.kill_all(self.limits.kill_grace);
        let written = self.write_end_marks();
        self.end_hooks("other", events);
        self.config.mcp.end();
        written
    }

    fn write_end_marks(&self) -> Result<(), WriteError> {
        let mut writer = self.writer.lock();
        if self.last_prompt.is_some() || self.is_prompt_blocked {
            writer.last_prompt(self.last_prompt.as_deref())?;
        }
        if self.is_resumed && !matches!(self.config.start, SessionStart::Fork { .. }) {
            writer.mode("normal")?;
        }
        writer.summary()
    }

    pub(crate) fn side_dir(&self) -> &Path {
        &self.side_dir
    }

    pub(crate) fn tasks_dir(&self) -> &Path {
        &self.tasks_dir
    }

    pub(crate) fn task_list_dir(&self) -> &Path {
        &self.task_list_dir
    }
}

pub(crate) fn tool_json(tool: &threadline_tools::ToolDefinition) -> RawObject {
    RawObject::new()
        .with("name", &tool.name)
        .with("description", &tool.description)
        .with("input_schema", &tool.input_schema)
}

/// Whether the flags select a tool, and no rule refuses it.
fn is_offered(config: &AgentConfig, name: &str) -> bool {
    let is_named = |names: &[String]| names.iter().any(|other| other == name);
    config.tools.as_deref().is_none_or(is_named)
        && !is_named(&config.disallowed_tools)
        && !config.permissions.read(|permissions| permissions.is_tool_denied(name))
}

/// Returns the request without messages and tools.
pub(crate) fn request(config: &AgentConfig) -> MessagesRequest {
    let info = model_info(&config.model);
    let model = config.model.strip_suffix("[1m]").unwrap_or(&config.model);
    let max_tokens = config.max_output_tokens.unwrap_or(info.max_output);
    let mut request = MessagesRequest::new(model, max_tokens);
    request.system = system_prompt(config, git::is_repository(&config.paths.cwd));
    request.betas = BETAS.iter().map(|beta| (*beta).to_owned()).collect();
    if info.can_think {
        let budget = config.max_thinking_tokens.unwrap_or(u64::MAX).min(max_tokens - TOKENS_AFTER_THINKING);
        request.thinking = match (budget, info.has_adaptive_thinking) {
            (0, _) => None,
            (_, true) => Some(Thinking::Adaptive),
            (budget, false) => Some(Thinking::Enabled { budget_tokens: budget }),
        };
        if request.thinking.is_some() {
            let keep = RawObject::new().with("type", "clear_thinking_20251015").with("keep", "all");
            request.extra.set("context_management", RawObject::new().with("edits", [keep]));
        }
    }
    if info.has_adaptive_thinking || config.effort.is_some() {
        request.effort = Some(config.effort.clone().unwrap_or_else(|| "high".to_owned()));
        request.betas.push(EFFORT_BETA.to_owned());
    }
    request.betas.extend(config.betas.iter().cloned());
    if config.model.ends_with("[1m]") {
        request.betas.push(LONG_CONTEXT_BETA.to_owned());
    }
    request
}
