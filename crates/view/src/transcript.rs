//! A session as a conversation: turns, and in each turn what was asked, said and done.

use std::borrow::Cow;
use std::ops::AddAssign;

use threadline_entry::lens::Usage;
use threadline_entry::{AgentKind, Finding, Millis};
use threadline_session::{Input, Outcome, Round};
use threadline_usage::Totals;

use crate::card::{Card, is_refusal, went_wrong};
use crate::indented::indented;

/// A session as a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The session's id.
    pub id: Option<String>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// The first line of the first prompt, which stands for a title where there is none.
    pub first_prompt: Option<String>,
    /// Where it ran.
    pub cwd: Option<String>,
    /// The branch it ended on.
    pub git_branch: Option<String>,
    /// The version that wrote its last line.
    pub version: Option<String>,
    /// When the conversation began and when it ended.
    pub span: Option<(Millis, Millis)>,
    /// How many turns the conversation has, told or not.
    pub n_turns: usize,
    /// The conversation, turn by turn.
    pub turns: Vec<TurnView>,
    /// How many branches the conversation left, told or not.
    pub n_branches: usize,
    /// What the conversation left behind: rewinds and retries.
    pub branches: Vec<BranchView>,
    /// Sub-agents that no call of the conversation started.
    pub agents: Vec<AgentView>,
    /// What is wrong with the session.
    pub findings: Vec<Finding>,
    /// What all of it cost. Here and below: no calls, if nobody asked what they cost.
    pub spent: Totals,
}

impl Transcript {
    /// What to call the session: its title, else how it begins, else its id.
    pub fn heading(&self) -> Option<&str> {
        let said =
            |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).is_some();
        [&self.title, &self.first_prompt, &self.id].into_iter().find(|text| said(text))?.as_deref()
    }
}

/// A path that the conversation left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchView {
    /// The anchor of the line it left at; `None` if it never met the conversation.
    pub fork: Option<String>,
    /// What happened on it.
    pub turns: Vec<TurnView>,
}

impl BranchView {
    /// Whether it ended before the conversation began, given when that was: a conversation before the context was cleared.
    pub fn is_before(&self, conversation: Option<(Millis, Millis)>) -> bool {
        let ended = self.turns.iter().filter_map(|turn| turn.span).map(|(_, end)| end).max();
        self.fork.is_none() && ended.zip(conversation).is_some_and(|(end, (start, _))| end <= start)
    }
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnView {
    /// Counted from 1.
    pub number: usize,
    /// Its name in links: the anchor of the line that opens it.
    pub anchor: String,
    /// When it began and when it ended.
    pub span: Option<(Millis, Millis)>,
    /// What the time went to.
    pub timing: Timing,
    /// The models that answered, in order.
    pub models: Vec<String>,
    /// What it used.
    pub tokens: Tokens,
    /// What it cost, with the sub-agents that it started.
    pub spent: Totals,
    /// What those sub-agents cost.
    pub spent_by_agents: Totals,
    /// Whether the model has not finished.
    pub open: bool,
    /// How it continues the turn before.
    pub round: Round,
    /// What happened.
    pub items: Vec<Item>,
}

/// What the time of a turn went to, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Tools ran.
    pub tools: Millis,
    /// The person was asked something by a tool, and answered.
    pub answering: Millis,
    /// The model was at work, or nothing is known of.
    pub model: Millis,
    /// Nobody asked anything, before the turn.
    pub waiting: Millis,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it all")]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name in links, which stays the same while the session grows.
    pub anchor: String,
    /// The line it stands on.
    pub line_no: u64,
    /// When.
    pub at: Option<Millis>,
    /// What the reply cost that begins here.
    pub spent: Option<Box<Totals>>,
    /// What.
    pub body: Body,
}

impl Item {
    /// Whether something went wrong there.
    pub fn is_bad(&self) -> bool {
        match &self.body {
            Body::Call(call) => {
                let inside =
                    |agent: &AgentView| agent.turns.iter().any(|turn| turn.items.iter().any(Self::is_bad));
                call.is_bad() || call.agents.iter().any(inside)
            }
            Body::Trouble { .. } | Body::Unknown { .. } => true,
            _ => false,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The user's side: a prompt, or text that was put in the user's mouth.
    Input {
        /// What kind of text it is.
        input: Input,
        /// The text, without the tags around it.
        text: String,
        /// Images and documents that came with it.
        files: Vec<Attached>,
        /// What the editor added: the lines selected, the file open.
        context: Vec<String>,
    },
    /// The model said something, in Markdown.
    Text(String),
    /// The model thought; empty where the log keeps the signature alone.
    Thinking(String),
    /// The model called a tool.
    Call(Box<CallView>),
    /// The conversation was compacted.
    Compaction {
        /// `auto` or `manual`.
        trigger: Option<String>,
        /// Tokens before, where the log tells.
        before: Option<u64>,
        /// Tokens after, where the log tells.
        after: Option<u64>,
        /// How many lines of the conversation it left out.
        dropped: usize,
        /// What stands for the conversation from here on.
        summary: Option<String>,
    },
    /// Something worth opening came of the session: a pull request, an artifact.
    Link {
        /// What it is.
        label: String,
        /// Where it is.
        url: String,
    },
    /// Something went wrong around the conversation: an API error, a refusal.
    Trouble {
        /// What, in a word.
        label: String,
        /// More about it.
        text: String,
    },
    /// Something happened around the conversation: a hook, an attachment.
    Event {
        /// What, in a word.
        label: String,
        /// More about it; may be empty.
        text: String,
    },
    /// A line that we do not know, or that is no entry at all.
    Unknown {
        /// Its type, if it has one.
        kind: Option<String>,
        /// The line as it stands.
        raw: String,
    },
}

/// The label of what a person gave along with a prompt.
pub(crate) const ATTACHED: &str = "attached";

impl Body {
    /// Whether it is a file or folder that a person gave along with a prompt.
    pub fn is_attachment(&self) -> bool {
        matches!(self, Self::Event { label, .. } if label == ATTACHED)
    }
}

/// An image or document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its type, such as `image/png`.
    pub media_type: String,
    /// Its bytes in base 64.
    pub data: String,
}

/// A tool call and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallView {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it was about, in one line: the command, the path, the pattern.
    pub subject: String,
    /// What happened, in a few words: `63 lines`, `+12 −3`, `exit 101`.
    pub gist: String,
    /// The whole of it.
    pub card: Card,
    /// The input as it stands in the log.
    pub input: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Option<Millis>,
    /// What the model was told.
    pub result: String,
    /// Images that the model was shown.
    pub files: Vec<Attached>,
    /// The sub-agents that it started.
    pub agents: Vec<AgentView>,
}

/// What stands before the words of a person who refused a call.
const SAID: &str = "the user said:\n";

/// How Claude Code says that the person would rather talk about a question.
pub(crate) const CLARIFY: &str = "The user wants to clarify these questions.";

impl CallView {
    /// Whether something went wrong with it.
    pub fn is_bad(&self) -> bool {
        went_wrong(&self.name, self.outcome)
    }

    /// What the person said to refuse it.
    pub fn objection(&self) -> Option<&str> {
        let denied = self.outcome == Outcome::Denied;
        let said = self.result.split_once(SAID).filter(|_| denied).map(|(_, said)| said.trim());
        said.filter(|said| !said.starts_with(CLARIFY))
    }

    /// Whether what a sub-agent answered stands at the end of what is known of its work.
    pub fn answer_is_told(&self) -> bool {
        let Card::Agent { answer, background, .. } = &self.card else { return false };
        fn last(agent: &AgentView) -> Option<&str> {
            let items = agent.turns.iter().rev().flat_map(|turn| turn.items.iter().rev());
            let mut texts = items.filter_map(|item| match &item.body {
                Body::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
                _ => None,
            });
            texts.next()
        }
        // One in the background answers later, in a prompt of its own.
        self.agents.iter().any(|agent| *background || last(agent).is_some_and(|last| answer.contains(last)))
    }

    /// What the model was told, set for people.
    pub fn shown_result(&self) -> Cow<'_, str> {
        // What other cards hold has a form of its own.
        if matches!(self.card, Card::Fields(_)) {
            indented(&self.result)
        } else {
            Cow::Borrowed(&self.result)
        }
    }

    /// What the model was told, where something went wrong and that says more than the outcome does.
    pub fn complaint(&self) -> Option<&str> {
        let text = self.result.trim();
        // How a command ended is said already.
        let told = text.strip_prefix("Exit code ").filter(|_| matches!(self.card, Card::Command(_)));
        let text = told.map_or(text, |rest| rest.split_once('\n').map_or("", |(_, rest)| rest));
        Some(text).filter(|text| self.outcome != Outcome::Ok && !is_refusal(text) && !text.is_empty())
    }
}

/// A sub-agent and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentView {
    /// Its id.
    pub id: String,
    /// What it was told to be.
    pub agent_type: Option<String>,
    /// What it was asked to do, in a few words.
    pub description: Option<String>,
    /// What it was started for.
    pub kind: AgentKind,
    /// What it cost, with the sub-agents that it started itself.
    pub spent: Totals,
    /// What it did.
    pub turns: Vec<TurnView>,
}

impl AgentView {
    /// What to call it: what it was asked to do, else what it was started for, told to be, or its id.
    pub fn name(&self) -> &str {
        let started_for = match self.kind {
            AgentKind::Compaction => Some("sums up the conversation"),
            AgentKind::SideQuestion => Some("a question on the side"),
            _ => None,
        };
        let said = self.description.as_deref().or(started_for).or(self.agent_type.as_deref());
        said.unwrap_or(&self.id)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

impl Tokens {
    pub(crate) fn of(usage: Usage<'_>) -> Self {
        Self {
            input: usage.input_tokens().unwrap_or(0),
            output: usage.output_tokens().unwrap_or(0),
            cache_read: usage.cache_read_input_tokens().unwrap_or(0),
            cache_write: usage.cache_creation_input_tokens().unwrap_or(0),
        }
    }

    /// All that the model was given to read.
    pub fn context(self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// The name of the `block_idx`th block of a line. Logs only grow, so a line keeps its name.
pub fn anchor(line_no: u64, block_idx: usize) -> String {
    if block_idx == 0 { format!("m{line_no}") } else { format!("m{line_no}.{}", block_idx + 1) }
}
