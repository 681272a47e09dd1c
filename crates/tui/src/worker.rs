//! The thread of the agent: runs prompts, and waits for background work between them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use threadline_agent::{
    Agent, AgentConfig, ModelChange, QueuedPrompt, SandboxConfig, SummarizeError, SummaryPart, SystemClock,
};
use threadline_api::Client;
use threadline_cancel::CancelToken;
use threadline_term::{TermText, TextLabel};
use threadline_usage::PriceBook;

use crate::approval::ScreenPrompt;
use crate::composer::EnteredPrompt;
use crate::host::ScreenHost;
use crate::message::{AgentMessage, SessionFacts, TurnOutcome};
use crate::model::SHELL_LINE;
use crate::narrator::{Narrator, note_lines};
use crate::page::SharedPage;
use crate::queue::EventQueue;
use crate::queued_input::{QueuedInput, ScreenTurnInput};
use crate::recent::recent_lines;

/// The time without an answer after which the notification hooks run.
const IDLE_TIME: Duration = Duration::from_secs(60);

/// A request to the agent.
pub(crate) enum WorkerCommand {
    Prompt(EnteredPrompt, CancelToken),
    /// Prompts that were entered during the last turn.
    Queued(Vec<QueuedPrompt>, CancelToken),
    /// A shell command that the person typed.
    Shell(String, CancelToken),
    SetModel {
        model: String,
        plan_model: Option<String>,
    },
    Rename(String),
    ListRewindPoints,
    Rewind {
        uuid: String,
        conversation: bool,
        files: bool,
    },
    /// Replaces a part of the conversation by a summary.
    Summarize {
        uuid: String,
        part: SummaryPart,
        cancel: CancelToken,
    },
    /// No work: ends the wait for background work, and a turn of it.
    Wake,
    /// A line for the memory file.
    Remember(String),
    Finish,
}

/// Everything that the thread of the agent needs.
pub(crate) struct WorkerSetup {
    pub(crate) config: AgentConfig,
    pub(crate) client: Arc<Client>,
    pub(crate) prices: PriceBook,
    pub(crate) host: Arc<dyn ScreenHost>,
    pub(crate) queue: Arc<EventQueue>,
    pub(crate) page: Arc<SharedPage>,
    pub(crate) queued: Arc<QueuedInput>,
}

/// The thread of the agent.
pub(crate) struct Worker {
    commands: Sender<WorkerCommand>,
    /// Cancels the wait for background work.
    waiting: Arc<Mutex<Option<CancelToken>>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn start(setup: WorkerSetup) -> std::io::Result<Self> {
        let (commands, receiver) = channel();
        let waiting = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&waiting);
        let thread = std::thread::Builder::new()
            .name("agent".to_owned())
            .spawn(move || AgentThread::run(setup, &receiver, &shared))?;
        Ok(Self { commands, waiting, thread: Some(thread) })
    }

    pub(crate) fn send(&self, command: WorkerCommand) {
        // A thread that has ended has reported that.
        let _ = self.commands.send(command);
        if let Some(waiting) = self.waiting.lock().take() {
            waiting.cancel();
        }
    }

    /// Waits for the end of the thread.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct AgentThread<'a> {
    agent: Agent,
    narrator: Narrator,
    host: Arc<dyn ScreenHost>,
    page: Arc<SharedPage>,
    waiting: &'a Mutex<Option<CancelToken>>,
}

impl<'a> AgentThread<'a> {
    fn run(setup: WorkerSetup, commands: &Receiver<WorkerCommand>, waiting: &'a Mutex<Option<CancelToken>>) {
        let queue = Arc::clone(&setup.queue);
        // The screen must not wait for a thread that has panicked. The session is complete up to the last
        // line, and resumes.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Self::open(setup, waiting).map(|mut thread| thread.serve(commands))
        }));
        let error = match ended {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some("internal error; the session can be resumed".to_owned()),
        };
        if let Some(error) = error {
            queue.push_agent(AgentMessage::Failed(error));
        }
        queue.push_agent(AgentMessage::Closed);
    }

    fn open(setup: WorkerSetup, waiting: &'a Mutex<Option<CancelToken>>) -> Result<Self, String> {
        let WorkerSetup { mut config, client, prices, host, queue, page, queued } = setup;
        config.mcp = host.connect_mcp(&config, &CancelToken::new());
        let cwd = config.paths.cwd.clone();
        let resumed = match &config.start {
            threadline_agent::SessionStart::Resume { log }
            | threadline_agent::SessionStart::Fork { log, .. } => Some(log.clone()),
            threadline_agent::SessionStart::New { .. } => None,
        };
        let mut agent =
            Agent::start(config, client, prices, Arc::new(SystemClock)).map_err(|error| error.to_string())?;
        agent.set_prompt(Arc::new(ScreenPrompt { queue: Arc::clone(&queue), page: Arc::clone(&page), cwd }));
        let (events, input_page) = (Arc::clone(&queue), Arc::clone(&page));
        agent.set_turn_input(Arc::new(ScreenTurnInput { queued, events, page: input_page }));
        let narrator = Narrator::new(queue, Arc::clone(&page));
        if let Some(log) = resumed {
            narrator.send(AgentMessage::Print(recent_lines(&log, page.get())));
        }
        let thread = Self { agent, narrator, host, page, waiting };
        thread.narrator.send(AgentMessage::Opened(thread.facts()));
        Ok(thread)
    }

    fn facts(&self) -> SessionFacts {
        let config = self.agent.config();
        let commands = config.commands.iter();
        let mcp = config.mcp.statuses().iter().map(|server| match &server.error {
            None => format!("{}  connected", server.name),
            Some(error) => format!("{}  failed: {error}", server.name),
        });
        SessionFacts {
            id: self.agent.session_id(),
            log: self.agent.log(),
            model: config.model.clone(),
            commands: commands.map(|command| (command.name.clone(), command.description.clone())).collect(),
            agents: self.agent.agent_names(),
            mcp: mcp.collect(),
            sandbox: match &config.sandbox {
                None => "off: commands run without restrictions (--sandbox)".to_owned(),
                Some(SandboxConfig { missing: None, .. }) => "on".to_owned(),
                Some(SandboxConfig { missing: Some(missing), .. }) => format!("on; {missing}"),
            },
            tools: self.agent.tool_names().len(),
            memory: config.memory.iter().map(|file| file.path.clone()).collect::<Vec<PathBuf>>(),
            context: self.agent.context_tokens(),
            background: Some(self.agent.background_switch()),
        }
    }

    fn serve(&mut self, commands: &Receiver<WorkerCommand>) {
        while let Some(command) = self.next(commands) {
            match command {
                WorkerCommand::Finish => break,
                command => self.command(command),
            }
        }
        let Self { agent, narrator, .. } = self;
        if let Err(error) = agent.finish(&mut |event| narrator.event(&event)) {
            self.note(TextLabel::Error, &format!("✗ {error}"));
        }
    }

    /// Returns the next command. Turns of background work run until there is one.
    fn next(&mut self, commands: &Receiver<WorkerCommand>) -> Option<WorkerCommand> {
        loop {
            if let Ok(command) = commands.try_recv() {
                return Some(command);
            }
            if !self.agent.has_background_work() {
                return match commands.recv_timeout(IDLE_TIME) {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Disconnected) => None,
                    Err(RecvTimeoutError::Timeout) => {
                        self.agent.notify_idle();
                        commands.recv().ok()
                    }
                };
            }
            let cancel = CancelToken::new();
            *self.waiting.lock() = Some(cancel.clone());
            // A command that arrived before the wait began has not cancelled it.
            if let Ok(command) = commands.try_recv() {
                self.waiting.lock().take();
                return Some(command);
            }
            let Self { agent, narrator, .. } = self;
            agent.run_background(&cancel, &mut |event| narrator.event(&event));
            self.waiting.lock().take();
        }
    }

    fn command(&mut self, command: WorkerCommand) {
        let Self { agent, narrator, .. } = self;
        match command {
            WorkerCommand::Prompt(prompt, cancel) => {
                let content = content(&prompt);
                agent.run(&content, &cancel, &mut |event| narrator.event(&event));
                // Commands such as /clear change the session.
                self.narrator.send(AgentMessage::Opened(self.facts()));
            }
            WorkerCommand::Queued(prompts, cancel) => {
                agent.run_queued(&prompts, &cancel, &mut |event| narrator.event(&event));
                self.narrator.send(AgentMessage::Opened(self.facts()));
            }
            WorkerCommand::Shell(command, cancel) => self.shell(&command, &cancel),
            WorkerCommand::SetModel { model, plan_model } => {
                let (requested, uuid) = (model.clone(), agent.new_uuid());
                agent.set_model(ModelChange { requested, model, plan_model, uuid });
                self.narrator.send(AgentMessage::Opened(self.facts()));
            }
            WorkerCommand::Rename(title) => match agent.rename(&title) {
                Ok(()) => self.note(TextLabel::Dim, &format!("The session is now called “{title}”.")),
                Err(error) => self.note(TextLabel::Error, &format!("✗ {error}")),
            },
            WorkerCommand::ListRewindPoints => {
                let points = agent.rewind_points().unwrap_or_default();
                narrator.send(AgentMessage::RewindPoints(points));
            }
            WorkerCommand::Rewind { uuid, conversation, files } => self.rewind(&uuid, conversation, files),
            WorkerCommand::Summarize { uuid, part, cancel } => self.summarize(&uuid, part, &cancel),
            WorkerCommand::Remember(note) => match self.host.remember(&note) {
                Ok((file, memory)) => {
                    self.agent.set_memory(memory);
                    self.note(TextLabel::Dim, &format!("Added to {}.", file.display()));
                }
                Err(error) => self.note(TextLabel::Error, &format!("✗ {error}")),
            },
            WorkerCommand::Wake | WorkerCommand::Finish => {}
        }
    }

    /// Runs a shell command of the person, and lets the model answer to its output.
    fn shell(&mut self, command: &str, cancel: &CancelToken) {
        let Self { agent, narrator, .. } = self;
        narrator.send(AgentMessage::TurnStart);
        let (name, subject) = ("Bash".to_owned(), command.to_owned());
        narrator.send(AgentMessage::CallStart { id: SHELL_LINE.to_owned(), name, subject });
        let output = agent.run_shell_line(command, cancel, &mut |event| {
            if let threadline_agent::AgentEvent::ToolOutput { text, .. } = event {
                narrator.send(AgentMessage::CallOutput { id: SHELL_LINE.to_owned(), text: text.to_owned() });
            }
        });
        let (lines, is_run) = match &output {
            Ok(Some(output)) => (shell_lines(&self.page, output.text(), output.is_error), true),
            Ok(None) => (Vec::new(), false),
            Err(error) => (note_lines(&self.page, TextLabel::Error, &format!("✗ {error}")), false),
        };
        let Self { agent, narrator, .. } = self;
        narrator.send(AgentMessage::CallEnd { id: SHELL_LINE.to_owned(), lines });
        if is_run {
            agent.answer(cancel, &mut |event| narrator.event(&event));
            self.narrator.send(AgentMessage::Opened(self.facts()));
            return;
        }
        let is_taken_back = matches!(output, Ok(None));
        let outcome = TurnOutcome { cost_usd: -1.0, is_taken_back, ..TurnOutcome::default() };
        narrator.send(AgentMessage::TurnEnd(outcome));
    }

    fn rewind(&mut self, uuid: &str, conversation: bool, files: bool) {
        if files {
            match self.host.restore_files(&self.agent.log(), uuid) {
                Ok(done) => self.note(TextLabel::Dim, &done),
                Err(error) => self.note(TextLabel::Error, &format!("✗ The files were not restored: {error}")),
            }
        }
        if conversation {
            match self.agent.rewind(uuid) {
                Ok(prompt) => {
                    self.note(
                        TextLabel::Warning,
                        "╌╌ returned to an earlier prompt; the log keeps what followed",
                    );
                    self.narrator.send(AgentMessage::Opened(self.facts()));
                    self.narrator.send(AgentMessage::Rewound { prompt });
                }
                Err(error) => self.note(TextLabel::Error, &format!("✗ {error}")),
            }
        }
    }

    /// Replaces a part of the conversation by a summary. The prompt of a part that is gone goes back into the
    /// composer.
    fn summarize(&mut self, uuid: &str, part: SummaryPart, cancel: &CancelToken) {
        let Self { agent, narrator, .. } = self;
        let result = agent.summarize_part(uuid, part, cancel, &mut |event| narrator.event(&event));
        match result {
            Ok(prompt) => {
                self.narrator.send(AgentMessage::Opened(self.facts()));
                if part == SummaryPart::From {
                    self.narrator.send(AgentMessage::Rewound { prompt });
                }
            }
            // A request that failed was reported already.
            Err(SummarizeError::Cancelled) => {}
            Err(error) if self.narrator.take_compaction_error() == Some(error.to_string()) => {}
            Err(error) => self.note(TextLabel::Error, &format!("✗ There is no summary: {error}")),
        }
        let outcome = TurnOutcome { cost_usd: self.agent.cost_usd(), ..TurnOutcome::default() };
        self.narrator.send(AgentMessage::TurnEnd(outcome));
    }

    fn note(&self, label: TextLabel, note: &str) {
        self.narrator.send(AgentMessage::Print(note_lines(&self.page, label, note)));
    }
}

/// Returns the output of a shell line, at most some of its lines.
fn shell_lines(page: &SharedPage, output: &str, is_error: bool) -> Vec<TermText> {
    const MAX_LINES: usize = 60;
    let page = page.get();
    let label = if is_error { TextLabel::Error } else { TextLabel::Dim };
    let output = threadline_term::without_colours(output);
    let mut lines: Vec<TermText> = page.wrap(output.trim_end(), 2);
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    let mut lines: Vec<TermText> =
        lines.into_iter().map(|line| threadline_term::text!("  {}", page.paint(label, line))).collect();
    if more > 0 {
        lines.push(page.paint(TextLabel::Dim, format!("  … {more} more lines")));
    }
    lines
}

/// Returns the content of a prompt: a text, or blocks if there are images.
pub(crate) fn content(prompt: &EnteredPrompt) -> Box<RawValue> {
    let text = || to_raw_value(&prompt.text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    if prompt.images.is_empty() {
        return text();
    }
    let images = prompt.images.iter().filter_map(|path| threadline_agent::image_block(path).ok());
    let mut blocks = vec![threadline_api::Message::text_block(&prompt.text)];
    blocks.extend(images);
    to_raw_value(&blocks).unwrap_or_else(|_| text())
}
