//! Messages of the agent's thread to the screen.

use std::path::PathBuf;
use std::time::Duration;

use threadline_agent::{BackgroundSwitch, RewindPoint};
use threadline_term::TermText;

use crate::approval::Approval;

/// A message of the agent's thread. Texts are rendered already, so that the screen has little to do.
#[derive(Debug)]
pub(crate) enum AgentMessage {
    /// The session was opened.
    Opened(SessionFacts),
    /// The session cannot be opened or continued, for this reason.
    Failed(String),
    /// Finished lines for the scrollback.
    Print(Vec<TermText>),
    /// A turn begins.
    TurnStart,
    /// The turn does something else now.
    Phase(Phase),
    /// More text of the reply.
    Text(String),
    /// The first `bytes` of the text so far are finished.
    TextFinished { bytes: usize, lines: Vec<TermText>, is_code: bool },
    /// The tokens of the conversation, and of the reply so far.
    Tokens { context: u64, output: u64 },
    /// A call begins.
    CallStart { id: String, name: String, subject: String },
    /// Output of a running command.
    CallOutput { id: String, text: String },
    /// A call has ended.
    CallEnd { id: String, lines: Vec<TermText> },
    /// A sub-agent made progress, or ended.
    SubAgent(SubAgentProgress),
    /// The list of things to do.
    Todos(Vec<TodoLine>),
    /// A call needs an answer.
    Ask(Box<Approval>),
    /// The session continues under another id.
    SessionChanged(String),
    /// A background task was started or has ended; the tasks that run.
    BackgroundTasks(Vec<BackgroundTask>),
    /// The prompts to which the conversation can return.
    RewindPoints(Vec<RewindPoint>),
    /// The conversation returned to an earlier prompt, with this text.
    Rewound { prompt: String },
    /// The turn has ended.
    TurnEnd(TurnOutcome),
    /// The agent's thread has ended.
    Closed,
}

/// The session, as the screen shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionFacts {
    pub(crate) id: String,
    pub(crate) log: PathBuf,
    pub(crate) model: String,
    /// Names and descriptions of commands from files.
    pub(crate) commands: Vec<(String, String)>,
    /// Lines for `/agents`, `/mcp` and `/status`.
    pub(crate) agents: Vec<String>,
    pub(crate) mcp: Vec<String>,
    pub(crate) sandbox: String,
    pub(crate) tools: usize,
    pub(crate) memory: Vec<PathBuf>,
    /// The tokens of the conversation so far.
    pub(crate) context: u64,
    /// Moves running commands to the background.
    pub(crate) background: Option<BackgroundSwitch>,
}

/// The activity of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Requesting,
    Thinking,
    Replying,
    RunningTools,
    Compacting,
    /// A request failed and is repeated.
    Retrying {
        attempt: u32,
        max_retries: u32,
        delay: Duration,
        reason: String,
    },
}

/// A sub-agent while it works.
#[derive(Clone, Debug)]
pub(crate) struct SubAgentProgress {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) description: String,
    pub(crate) activity: String,
    pub(crate) calls: u64,
    pub(crate) tokens: u64,
    pub(crate) is_finished: bool,
}

/// An item of the list of things to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TodoLine {
    pub(crate) text: String,
    pub(crate) status: TodoStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

/// A command in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackgroundTask {
    pub(crate) id: String,
    pub(crate) description: String,
}

/// The end of a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnOutcome {
    /// The cost of the process so far, in dollars.
    pub(crate) cost_usd: f64,
    /// A sentence about the end, if it is not the usual one.
    pub(crate) problem: Option<String>,
    /// Whether the conversation is as it was before the prompt, which goes back into the composer.
    pub(crate) is_taken_back: bool,
}
