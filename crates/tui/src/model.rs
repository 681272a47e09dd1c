//! The state of the screen, and how keys and messages change it. It does no I/O.

mod approval_state;
mod dialog;
mod keys;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use threadline_agent::{RewindPoint, SharedPermissions};
use threadline_permission::{RuleEffect, Suggestion};
use threadline_term::{TermText, TextLabel};

use crate::approval::Approval;
use crate::command::{COMMANDS, ScreenCommand};
use crate::composer::{Composer, EnteredPrompt, PromptHistory};
use crate::message::{
    AgentMessage, BackgroundTask, Phase, SessionFacts, SubAgentProgress, TodoLine, TodoStatus, TurnOutcome,
};
use crate::narrator::{note_lines, prompt_lines};
use crate::page::SharedPage;
use crate::permission_rule::{ScreenRule, all_rules};
use crate::queued_input::{NextInput, QueuedEntry, QueuedInput};
use crate::theme::Theme;

pub(crate) use self::approval_state::ApprovalState;
pub(crate) use self::dialog::{Dialog, RewindScope};

/// The number of bytes that are kept of a running command's output.
const MAX_OUTPUT: usize = 4 << 10;
/// The id of a shell line of the person among the running calls.
pub(crate) const SHELL_LINE: &str = "shell";
/// How long a notice is shown, and a second key counts as the second one.
pub(crate) const NOTICE_TIME: Duration = Duration::from_secs(2);

/// A request of the screen to the rest of the program.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Runs a prompt.
    Prompt(EnteredPrompt),
    /// Runs prompts that were entered during the last turn, as one turn.
    Queued(Vec<QueuedEntry>),
    /// Runs a shell command.
    Shell(String),
    /// Cancels the turn.
    Interrupt,
    /// Moves the running commands to the background.
    MoveToBackground,
    /// Attaches the image of the clipboard.
    PasteImage,
    Leave,
    /// Leaves, because the session cannot be continued.
    Fail,
    Suspend,
    /// Opens the draft in an editor.
    EditDraft,
    /// Opens the call that is asked about in an editor.
    EditApproval,
    /// Changes the permissions.
    ApplySuggestion(Suggestion),
    /// Reads the rules of the settings files, and lists those with an effect.
    ShowRules(RuleEffect),
    /// Saves a rule, and uses it.
    AddRule(ScreenRule),
    RemoveRule(ScreenRule),
    SetModel(String),
    Rename(String),
    Export(Option<PathBuf>),
    Remember(String),
    ListRewindPoints,
    Rewind(String, RewindScope),
    PickSession,
    /// Shows the whole session in a pager.
    ShowSession,
    /// Stops a background command, also while a turn runs.
    StopTask(String),
    /// Reads the files of the working folder.
    ListFiles,
    /// The terminal should be drawn from the beginning.
    Redraw,
}

/// The state of the screen.
pub(crate) struct Model {
    pub(crate) page: Arc<SharedPage>,
    /// The rows of the terminal.
    pub(crate) rows: usize,
    pub(crate) composer: Composer,
    /// Prompts that were entered while a turn ran.
    pub(crate) queued: Arc<QueuedInput>,
    /// The stashed draft.
    pub(crate) stash: Option<String>,
    pub(crate) turn: Option<RunningTurn>,
    pub(crate) approvals: VecDeque<ApprovalState>,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) todos: Vec<TodoLine>,
    pub(crate) shows_todos: bool,
    pub(crate) tasks: Vec<BackgroundTask>,
    /// Background commands that the person stopped; their end is not reported.
    stopped_tasks: Vec<String>,
    pub(crate) permissions: SharedPermissions,
    pub(crate) facts: SessionFacts,
    /// Whether the session is open; prompts are queued before.
    pub(crate) is_open: bool,
    pub(crate) is_demo: bool,
    pub(crate) may_bypass: bool,
    pub(crate) cost_usd: f64,
    pub(crate) context: u64,
    /// The output of the user's status-line command.
    pub(crate) status_line: Option<String>,
    pub(crate) theme: Theme,
    notice: Option<(String, Instant)>,
    /// The last press of a key that has a meaning if it is pressed twice.
    last_key: Option<(DoubleKey, Instant)>,
    /// Finished lines that are not printed yet.
    pub(crate) finished: Vec<TermText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DoubleKey {
    Esc,
    CtrlC,
    CtrlD,
}

/// A turn in progress.
pub(crate) struct RunningTurn {
    pub(crate) start: Instant,
    pub(crate) phase: Phase,
    /// When the phase began.
    pub(crate) phase_start: Instant,
    /// The text of the reply that is not finished.
    pub(crate) tail: String,
    pub(crate) tail_is_code: bool,
    pub(crate) output_tokens: u64,
    pub(crate) calls: Vec<RunningCall>,
    pub(crate) agents: Vec<SubAgentProgress>,
    pub(crate) is_cancelled: bool,
    /// The prompt, as long as no reply to it was shown.
    pub(crate) unanswered: Option<String>,
}

/// A call in progress.
pub(crate) struct RunningCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) subject: String,
    pub(crate) start: Instant,
    /// The end of its output.
    pub(crate) output: String,
}

impl RunningTurn {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            start: now,
            phase: Phase::Requesting,
            phase_start: now,
            tail: String::new(),
            tail_is_code: false,
            output_tokens: 0,
            calls: Vec::new(),
            agents: Vec::new(),
            is_cancelled: false,
            unanswered: None,
        }
    }

    /// Whether the turn waits for a command.
    pub(crate) fn has_running_command(&self) -> bool {
        self.calls.iter().any(|call| call.name == "Bash")
    }
}

impl Model {
    pub(crate) fn new(
        page: Arc<SharedPage>,
        rows: usize,
        permissions: SharedPermissions,
        history: PromptHistory,
    ) -> Self {
        let mut composer = Composer::new(history);
        composer.source.commands = builtin_commands();
        Self {
            page,
            rows,
            composer,
            queued: Arc::default(),
            stash: None,
            turn: None,
            approvals: VecDeque::new(),
            dialog: None,
            todos: Vec::new(),
            shows_todos: true,
            tasks: Vec::new(),
            stopped_tasks: Vec::new(),
            permissions,
            facts: SessionFacts::default(),
            is_open: false,
            is_demo: false,
            may_bypass: false,
            cost_usd: 0.0,
            context: 0,
            status_line: None,
            theme: Theme::Terminal,
            notice: None,
            last_key: None,
            finished: Vec::new(),
        }
    }

    /// Prints a note above the composer.
    pub(crate) fn note(&mut self, label: TextLabel, note: &str) {
        self.finished.extend(note_lines(&self.page, label, note));
    }

    /// Shows a text for a moment.
    pub(crate) fn notify(&mut self, notice: &str, now: Instant) {
        self.notice = Some((notice.to_owned(), now));
    }

    pub(crate) fn notice(&self, now: Instant) -> Option<&str> {
        let (text, at) = self.notice.as_ref()?;
        (now.duration_since(*at) < NOTICE_TIME).then_some(text)
    }

    /// Returns when the screen changes by itself, if it does.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let notice = self.notice.as_ref().map(|(_, at)| *at + NOTICE_TIME).filter(|end| *end > now);
        // The elapsed time of a turn.
        let second = self.turn.as_ref().filter(|_| self.approvals.is_empty()).map(|turn| {
            let elapsed = now.duration_since(turn.start);
            now + Duration::from_millis(1000 - u64::from(elapsed.subsec_millis()))
        });
        notice.into_iter().chain(second).min()
    }

    /// Handles a message of the agent.
    pub(crate) fn receive(&mut self, message: AgentMessage, now: Instant) -> Vec<Effect> {
        match message {
            AgentMessage::Opened(facts) => return self.opened(facts),
            AgentMessage::Failed(error) => {
                self.note(TextLabel::Error, &format!("✗ {error}"));
                return vec![Effect::Fail];
            }
            AgentMessage::Print(lines) => self.finished.extend(lines),
            AgentMessage::TurnStart => drop(self.turn.get_or_insert_with(|| RunningTurn::new(now))),
            AgentMessage::Rewound { prompt } => self.composer.put_back(&prompt),
            AgentMessage::Todos(todos) => {
                let is_done = todos.iter().all(|todo| todo.status == TodoStatus::Completed);
                self.todos = if is_done { Vec::new() } else { todos };
            }
            AgentMessage::Ask(approval) => self.ask(*approval),
            AgentMessage::SessionChanged(id) => {
                self.facts.id = id;
                self.todos.clear();
                self.context = 0;
            }
            AgentMessage::BackgroundTasks(tasks) => {
                self.stopped_tasks.retain(|id| tasks.iter().any(|task| task.id == *id));
                self.tasks = tasks;
                self.tasks.retain(|task| !self.stopped_tasks.contains(&task.id));
            }
            AgentMessage::RewindPoints(points) => self.show_rewind(points, now),
            AgentMessage::TurnEnd(outcome) => return self.turn_ended(outcome),
            AgentMessage::Closed => {}
            message => self.receive_in_turn(message, now),
        }
        Vec::new()
    }

    /// Handles a message about the turn in progress.
    fn receive_in_turn(&mut self, message: AgentMessage, now: Instant) {
        let turn = self.turn.get_or_insert_with(|| RunningTurn::new(now));
        match message {
            AgentMessage::Phase(phase) => {
                turn.phase = phase;
                turn.phase_start = now;
            }
            AgentMessage::Text(text) => {
                turn.tail.push_str(&text);
                turn.unanswered = None;
            }
            AgentMessage::TextFinished { bytes, lines, is_code } => {
                turn.tail.drain(..bytes.min(turn.tail.len()));
                turn.tail_is_code = is_code;
                self.finished.extend(lines);
            }
            AgentMessage::Tokens { context, output } => {
                self.context = context;
                turn.output_tokens = output;
            }
            AgentMessage::CallStart { id, name, subject } => {
                turn.phase = Phase::RunningTools;
                turn.phase_start = now;
                // A shell line of the person is given back if it is interrupted, too.
                if id != SHELL_LINE {
                    turn.unanswered = None;
                }
                turn.calls.push(RunningCall { id, name, subject, start: now, output: String::new() });
            }
            AgentMessage::CallOutput { id, text } => {
                if let Some(call) = turn.calls.iter_mut().find(|call| call.id == id) {
                    call.output.push_str(&text);
                    let start = call.output.len().saturating_sub(MAX_OUTPUT);
                    call.output.drain(..call.output.ceil_char_boundary(start));
                }
            }
            AgentMessage::CallEnd { id, lines } => {
                turn.calls.retain(|call| call.id != id);
                turn.agents.retain(|agent| agent.id != id);
                self.finished.extend(lines);
            }
            AgentMessage::SubAgent(progress) => {
                turn.agents.retain(|agent| agent.id != progress.id || !progress.is_finished);
                match turn.agents.iter_mut().find(|agent| agent.id == progress.id) {
                    Some(known) => *known = progress,
                    None if !progress.is_finished => turn.agents.push(progress),
                    None => {}
                }
            }
            _ => {}
        }
    }

    fn opened(&mut self, facts: SessionFacts) -> Vec<Effect> {
        let mut commands = builtin_commands();
        for (name, description) in &facts.commands {
            if !commands.iter().any(|(known, _)| known == name) {
                commands.push((name.clone(), description.clone()));
            }
        }
        self.composer.source.commands = commands;
        self.context = facts.context;
        self.facts = facts;
        self.is_open = true;
        self.run_queued()
    }

    fn ask(&mut self, approval: Approval) {
        self.approvals.push_back(ApprovalState::new(approval));
    }

    fn turn_ended(&mut self, outcome: TurnOutcome) -> Vec<Effect> {
        let turn = self.turn.take();
        self.approvals.clear();
        if outcome.is_taken_back
            && let Some(prompt) = turn.and_then(|turn| turn.unanswered)
        {
            self.note(TextLabel::Warning, "■ interrupted; the prompt is in the composer again");
            self.composer.put_back(&prompt);
        }
        if outcome.cost_usd >= 0.0 {
            self.cost_usd = outcome.cost_usd;
        }
        if let Some(problem) = &outcome.problem {
            self.note(TextLabel::Warning, problem);
        }
        self.run_queued()
    }

    /// Runs the prompts that were entered before, or the next command.
    fn run_queued(&mut self) -> Vec<Effect> {
        if self.turn.is_some() || !self.is_open {
            return Vec::new();
        }
        match self.queued.take_next() {
            Some(NextInput::Prompts(prompts)) => {
                for entry in &prompts {
                    self.finished.extend(prompt_lines(&self.page, &entry.prompt.shown));
                }
                vec![Effect::Queued(prompts)]
            }
            Some(NextInput::Command(command)) => self.run(command),
            None => Vec::new(),
        }
    }

    /// Runs a prompt that was entered, or queues it.
    pub(crate) fn submit(&mut self, prompt: EnteredPrompt, now: Instant) -> Vec<Effect> {
        let is_command = ScreenCommand::parse(prompt.text.trim());
        if let Some((command, arguments)) = is_command
            && (self.turn.is_none() && self.is_open || command.is_always_available())
        {
            let arguments = arguments.to_owned();
            self.finished.extend(prompt_lines(&self.page, &prompt.shown));
            return self.run_command(command, &arguments, now);
        }
        if self.turn.is_some() || !self.is_open {
            self.queued.push(prompt, now_millis());
            return Vec::new();
        }
        self.run(prompt)
    }

    fn run(&mut self, prompt: EnteredPrompt) -> Vec<Effect> {
        self.finished.extend(prompt_lines(&self.page, &prompt.shown));
        let text = prompt.text.trim();
        if let Some(command) = text.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            return vec![Effect::Shell(command.to_owned())];
        }
        if let Some(note) =
            text.strip_prefix('#').map(str::trim).filter(|note| !note.is_empty() && !note.starts_with('#'))
        {
            return vec![Effect::Remember(note.to_owned())];
        }
        if let Some((command, arguments)) = ScreenCommand::parse(text) {
            let arguments = arguments.to_owned();
            return self.run_command(command, &arguments, Instant::now());
        }
        vec![Effect::Prompt(prompt)]
    }

    /// Marks the begin of a turn of a prompt.
    pub(crate) fn start_turn(&mut self, prompt: Option<String>, now: Instant) {
        self.queued.set_takes_back(false);
        self.turn = Some(RunningTurn { unanswered: prompt, ..RunningTurn::new(now) });
    }

    /// Removes a background command from the list, and stops it.
    pub(crate) fn stop_task(&mut self, id: String) -> Vec<Effect> {
        for task in self.tasks.extract_if(.., |task| task.id == id).collect::<Vec<_>>() {
            self.note(TextLabel::Dim, &format!("· Background command \"{}\" was stopped", task.description));
        }
        self.stopped_tasks.push(id.clone());
        vec![Effect::StopTask(id)]
    }

    /// Lists the rules with an effect. `saved` are those of the settings files.
    pub(crate) fn show_rules(&mut self, effect: RuleEffect, saved: Vec<ScreenRule>) {
        let rules = all_rules(effect, saved, &self.permissions);
        self.dialog = Some(Dialog::rules(effect, self.permissions.mode(), rules));
    }

    fn show_rewind(&mut self, points: Vec<RewindPoint>, now: Instant) {
        if points.is_empty() {
            self.notify("There is no earlier prompt.", now);
        } else {
            self.dialog = Some(Dialog::rewind(points));
        }
    }
}

/// The time in milliseconds since 1970.
pub(crate) fn now_millis() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or_default()
}

fn builtin_commands() -> Vec<(String, String)> {
    COMMANDS.iter().map(|(name, about, _)| ((*name).to_owned(), (*about).to_owned())).collect()
}
