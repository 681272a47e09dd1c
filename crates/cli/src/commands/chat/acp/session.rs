//! One session of an editor, on a thread of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use threadline_agent::{
    Agent, AgentEvent, ResumedSession, SessionStart, SharedPermissions, SystemClock, TurnEnd, TurnSummary,
};
use threadline_api::RawObject;
use threadline_cancel::CancelToken;
use threadline_permission::PermissionMode;
use threadline_term::text;
use threadline_usage::PriceBook;

use super::connection::{Connection, ErrorCode, RpcError};
use super::permission::AcpPrompt;
use super::translate::Translator;
use crate::commands::chat::config::ChatSetup;
use crate::ui;

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionOpening {
    New,
    /// The conversation so far is sent to the editor.
    Load,
    Resume,
    Fork,
}

/// A session that is about to start.
pub(super) struct OpenedSession {
    pub(super) opening: SessionOpening,
    pub(super) setup: ChatSetup,
    pub(super) prices: PriceBook,
    /// The request that is answered when the session has started.
    pub(super) request: Box<RawValue>,
}

/// A running session.
pub(super) struct SessionHandle {
    pub(super) permissions: SharedPermissions,
    prompts: Sender<QueuedPrompt>,
    /// The turn that runs or is about to run.
    turn: Arc<Mutex<Option<CancelToken>>>,
    /// Ends the session.
    cancel: CancelToken,
    thread: JoinHandle<()>,
}

struct QueuedPrompt {
    request: Box<RawValue>,
    content: Box<RawValue>,
    turn: CancelToken,
}

impl SessionHandle {
    /// Queues a prompt. The session answers the request at the end of the turn.
    pub(super) fn prompt(&self, request: &RawValue, content: Box<RawValue>) -> Result<(), RpcError> {
        let mut running = self.turn.lock();
        if running.is_some() {
            return Err(RpcError::new(ErrorCode::InvalidRequest, "a prompt of this session is running"));
        }
        let turn = self.cancel.child();
        let prompt = QueuedPrompt { request: request.to_owned(), content, turn: turn.clone() };
        self.prompts.send(prompt).map_err(|_| RpcError::internal("the session has ended"))?;
        *running = Some(turn);
        Ok(())
    }

    pub(super) fn cancel_turn(&self) {
        if let Some(turn) = &*self.turn.lock() {
            turn.cancel();
        }
    }

    /// Ends the session and waits until its log is complete.
    pub(super) fn close(self) {
        self.cancel.cancel();
        drop(self.prompts);
        // A thread that panicked has reported that itself.
        let _ = self.thread.join();
    }
}

impl OpenedSession {
    /// Starts the thread of the session. Returns its id.
    pub(super) fn start(self, connection: Arc<Connection>, cancel: CancelToken) -> (String, SessionHandle) {
        let session_id = match &self.setup.agent.start {
            SessionStart::New { session_id, .. } | SessionStart::Fork { session_id, .. } => {
                session_id.clone()
            }
            SessionStart::Resume { log } => {
                log.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
            }
        };
        let permissions = self.setup.agent.permissions.clone();
        let (prompts, receiver) = channel();
        let turn = Arc::new(Mutex::new(None));
        let thread = {
            let (id, cancel, turn) = (session_id.clone(), cancel.clone(), Arc::clone(&turn));
            std::thread::spawn(move || self.run(&id, connection, receiver, &turn, &cancel))
        };
        (session_id, SessionHandle { permissions, prompts, turn, cancel, thread })
    }

    fn run(
        self,
        session_id: &str,
        connection: Arc<Connection>,
        prompts: Receiver<QueuedPrompt>,
        turn: &Mutex<Option<CancelToken>>,
        cancel: &CancelToken,
    ) {
        let log = match &self.setup.agent.start {
            SessionStart::Resume { log } if self.opening == SessionOpening::Load => Some(log.clone()),
            _ => None,
        };
        let cwd = self.setup.agent.paths.cwd.clone();
        let version = self.setup.agent.profile.version;
        let client = Arc::new(self.setup.client);
        let agent = Agent::start(self.setup.agent, client, self.prices, Arc::new(SystemClock));
        let mut agent = match agent {
            Ok(agent) => agent,
            Err(error) => return connection.fail(&self.request, &RpcError::internal(&error.to_string())),
        };
        let servers = self.setup.mcp.connect(agent.config(), None, cancel);
        agent.add_servers(servers);
        let permissions = agent.config().permissions.clone();
        agent.set_prompt(Arc::new(AcpPrompt {
            connection: Arc::clone(&connection),
            session_id: session_id.to_owned(),
            permissions: permissions.clone(),
            cwd: cwd.clone(),
        }));
        let mut output = SessionOutput {
            session_id: session_id.to_owned(),
            translator: Translator::new(cwd),
            mode: permissions.mode(),
            permissions,
            connection,
        };
        if let Some(log) = log {
            output.send_history(&log, version);
        }
        output.connection.respond(&self.request, &output.opened(self.opening));
        output.send_commands(&agent);
        for prompt in prompts {
            let answer = output.run_prompt(&mut agent, &prompt);
            // The next prompt may come as soon as this one is answered.
            *turn.lock() = None;
            match answer {
                Ok(result) => output.connection.respond(&prompt.request, &result),
                Err(error) => output.connection.fail(&prompt.request, &error),
            }
        }
        if let Err(error) = agent.finish(&mut |_| {}) {
            ui::write_stderr(&text!("{error}\n"));
        }
    }
}

/// Sends the updates of a session.
struct SessionOutput {
    session_id: String,
    connection: Arc<Connection>,
    translator: Translator,
    permissions: SharedPermissions,
    /// The mode that was last reported to the editor.
    mode: PermissionMode,
}

impl SessionOutput {
    /// Returns the answer to the request that opened the session.
    fn opened(&self, opening: SessionOpening) -> RawObject {
        let modes = PermissionMode::ALL.iter().map(|(id, _)| {
            RawObject::new()
                .with("id", id)
                .with("name", mode_name(id))
                .with("description", mode_description(id))
        });
        let modes = RawObject::new()
            .with("currentModeId", self.mode.name())
            .with("availableModes", modes.collect::<Vec<_>>());
        let result = match opening {
            SessionOpening::New | SessionOpening::Fork => {
                RawObject::new().with("sessionId", &self.session_id)
            }
            SessionOpening::Load | SessionOpening::Resume => RawObject::new(),
        };
        result.with("modes", modes)
    }

    /// Sends the conversation so far.
    fn send_history(&mut self, log: &Path, version: &str) {
        // The session has been opened, so that its log can be read.
        let Ok(session) = ResumedSession::read(log, version) else { return };
        for update in self.translator.history(&session.messages) {
            self.connection.update(&self.session_id, &update);
        }
    }

    /// Sends the commands that a prompt can begin with.
    fn send_commands(&self, agent: &Agent) {
        let config = agent.config();
        let own = config.commands.iter().map(|command| (command.name.as_str(), command.description.as_str()));
        let prompts =
            config.mcp.prompts().map(|prompt| (prompt.command.as_str(), prompt.description.as_str()));
        let local = [
            ("compact", "Replace the conversation by a summary"),
            ("context", "Show how much of the context window is used"),
            ("usage", "Show tokens and cost"),
        ];
        let command = |(name, description): (&str, &str)| {
            let input = RawObject::new().with("hint", "arguments");
            RawObject::new().with("name", name).with("description", description).with("input", input)
        };
        let commands: Vec<RawObject> = own.chain(prompts).chain(local).map(command).collect();
        let update = RawObject::new()
            .with("sessionUpdate", "available_commands_update")
            .with("availableCommands", commands);
        self.connection.update(&self.session_id, &update);
    }

    fn run_prompt(&mut self, agent: &mut Agent, prompt: &QueuedPrompt) -> Result<RawObject, RpcError> {
        self.report_mode();
        let mut summary = agent.run(&prompt.content, &prompt.turn, &mut |event| self.event(&event));
        if !prompt.turn.is_cancelled()
            && let Some(last) = agent.run_background(&prompt.turn, &mut |event| self.event(&event))
        {
            summary = last;
        }
        self.report_mode();
        stop_reason(&summary).map(|reason| RawObject::new().with("stopReason", reason))
    }

    fn event(&mut self, event: &AgentEvent<'_>) {
        if let AgentEvent::Warning(warning) = event {
            ui::write_stderr(&text!("{warning}\n"));
        }
        for update in self.translator.event(event) {
            self.connection.update(&self.session_id, &update);
        }
        if matches!(event, AgentEvent::User { .. }) {
            self.report_mode();
        }
    }

    /// Reports the mode if it has changed since the last report.
    fn report_mode(&mut self) {
        let mode = self.permissions.mode();
        if std::mem::replace(&mut self.mode, mode) != mode {
            let update = RawObject::new().with("sessionUpdate", "current_mode_update");
            self.connection.update(&self.session_id, &update.with("currentModeId", mode.name()));
        }
    }
}

/// Returns why a turn ended.
fn stop_reason(summary: &TurnSummary) -> Result<&'static str, RpcError> {
    match &summary.end {
        TurnEnd::Interrupted { .. } => Ok("cancelled"),
        TurnEnd::MaxTurns(_) | TurnEnd::MaxBudget(_) | TurnEnd::MaxSchemaErrors(_) => Ok("max_turn_requests"),
        TurnEnd::Refused => Ok("refusal"),
        TurnEnd::ApiError { .. } => Err(RpcError::internal(&summary.text)),
        TurnEnd::Failed(error) => Err(RpcError::internal(error)),
        _ if summary.stop_reason.as_deref() == Some("max_tokens") => Ok("max_tokens"),
        _ => Ok("end_turn"),
    }
}

fn mode_name(id: &str) -> &'static str {
    match id {
        "acceptEdits" => "Accept edits",
        "plan" => "Plan",
        "dontAsk" => "Don't ask",
        "bypassPermissions" => "Bypass permissions",
        _ => "Default",
    }
}

fn mode_description(id: &str) -> &'static str {
    match id {
        "acceptEdits" => "Edits inside of the working folders run without a question",
        "plan" => "Files are not changed; the model presents a plan",
        "dontAsk" => "Everything that would be asked about is refused",
        "bypassPermissions" => "Everything runs that no rule refuses",
        _ => "Everything but reading is asked about",
    }
}
