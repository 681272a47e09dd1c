//! A home, a working folder and a scripted model for one test.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use tempfile::TempDir;
use threadline_agent::{
    Agent, AgentConfig, AgentError, AgentPaths, HookSettings, SessionStart, SharedPermissions, SystemClock,
    TurnSummary,
};
use threadline_api::{ApiConfig, Auth, Client};
use threadline_cancel::CancelToken;
use threadline_permission::{PermissionMode, Permissions, RuleSet, Workspace};
use threadline_testkit::api::{ScriptedApi, ScriptedReply};
use threadline_tools::{Limits, Profile};
use threadline_usage::PriceBook;

pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// The folders of a test.
pub(crate) struct Stage {
    dir: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("work")).unwrap();
        Self { dir }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn log(&self) -> PathBuf {
        let project = threadline_store::encode_project(&self.work().to_string_lossy());
        self.dir
            .path()
            .canonicalize()
            .unwrap()
            .join("home/projects")
            .join(project)
            .join(format!("{SESSION}.jsonl"))
    }

    /// The lines of the log, without their newlines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn config(&self, start: SessionStart) -> AgentConfig {
        let root = self.dir.path().canonicalize().unwrap();
        AgentConfig {
            profile: Profile::find("2.1.197").unwrap(),
            paths: AgentPaths {
                cwd: self.work(),
                additional_dirs: Vec::new(),
                claude_home: root.join("home"),
                user_home: None,
                temp_dir: root.join("tmp"),
            },
            start,
            is_persistent: true,
            has_file_history: true,
            model: "claude-sonnet-4-5".to_owned(),
            plan_model: None,
            fallback_model: None,
            small_model: None,
            betas: Vec::new(),
            limits: Limits::default(),
            effort: None,
            max_output_tokens: None,
            max_thinking_tokens: None,
            system_prompt: None,
            append_system_prompt: None,
            tools: None,
            disallowed_tools: Vec::new(),
            agents: Vec::new(),
            json_schema: None,
            permissions: SharedPermissions::new(Permissions {
                mode: PermissionMode::BypassPermissions,
                rules: RuleSet::default(),
                workspace: Workspace { cwd: self.work(), ..Workspace::default() },
            }),
            max_turns: None,
            max_budget_usd: None,
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            memory: Vec::new(),
            commands: Vec::new(),
            has_auto_compact: true,
            has_slash_commands: true,
            hooks: HookSettings::default(),
            hook_environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            mcp: threadline_mcp_client::McpServers::default(),
            sandbox: None,
            is_interactive: false,
            entrypoint: "test".to_owned(),
            prompt_source: None,
            platform: "linux".to_owned(),
            today: "2026-11-16".to_owned(),
            shell_observer: None,
        }
    }

    /// How a session starts or continues: the log exists or not.
    pub(crate) fn start(&self) -> SessionStart {
        if self.log().is_file() {
            SessionStart::Resume { log: self.log() }
        } else {
            SessionStart::New { session_id: SESSION.to_owned(), title: None }
        }
    }

    pub(crate) fn agent(&self, api: &ScriptedApi, config: AgentConfig) -> Result<Agent, AgentError> {
        let mut settings = ApiConfig::new(Auth::ApiKey("sk-test".to_owned()));
        settings.base_url = api.url();
        settings.idle_timeout = Duration::from_secs(20);
        settings.retry.initial_delay = Duration::from_millis(1);
        settings.retry.max_delay = Duration::from_millis(2);
        settings.retry.max_retries = 2;
        let client = Client::new(settings).unwrap();
        Agent::start(config, Arc::new(client), PriceBook::embedded(), Arc::new(SystemClock))
    }

    /// Runs one prompt with a script, in a new process as it were.
    pub(crate) fn run(&self, prompt: &str, replies: Vec<ScriptedReply>) -> (TurnSummary, ScriptedApi) {
        let api = ScriptedApi::start(replies);
        let summary = self.run_with(prompt, &api, self.config(self.start()), &CancelToken::new());
        (summary, api)
    }

    pub(crate) fn run_with(
        &self,
        prompt: &str,
        api: &ScriptedApi,
        config: AgentConfig,
        cancel: &CancelToken,
    ) -> TurnSummary {
        let mut agent = self.agent(api, config).unwrap();
        let summary = agent.run(&to_raw_value(prompt).unwrap(), cancel, &mut |_| {});
        agent.finish(&mut |_| {}).unwrap();
        summary
    }
}
