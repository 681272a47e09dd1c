//! A session as a conversation: turns, and in each turn what was asked, said and done.

use std::borrow::Cow;

use threadline_entry::lens::{Block, ProgressBody, StopHookSummary, System, TurnDuration};
use threadline_entry::{Entry, Json, JsonKind, Kind, Millis};
use threadline_session::{Agent, Compaction, Family, Input, Outcome, Round, Session, ToolCall, Turn};

/// A session as a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The session's id.
    pub id: Option<String>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Where it ran.
    pub cwd: Option<String>,
    /// The branch it ended on.
    pub git_branch: Option<String>,
    /// The version that wrote its last line.
    pub version: Option<String>,
    /// The conversation, turn by turn.
    pub turns: Vec<TurnView>,
    /// How many branches the conversation left.
    pub branches: usize,
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
    /// The models that answered, in order.
    pub models: Vec<String>,
    /// What it used.
    pub tokens: Tokens,
    /// Whether the model has not finished.
    pub open: bool,
    /// How it continues the turn before.
    pub round: Round,
    /// What happened.
    pub items: Vec<Item>,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// What.
    pub body: Body,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The user's side: a prompt, or text that was put in the user's mouth.
    Input {
        /// What kind of text it is.
        input: Input,
        /// The text.
        text: String,
        /// How many images came with it.
        images: usize,
    },
    /// The model said something, in Markdown.
    Text(String),
    /// The model thought; empty where the log keeps the signature alone.
    Thinking(String),
    /// The model called a tool.
    Call(CallView),
    /// The conversation was compacted.
    Compaction {
        /// `auto` or `manual`.
        trigger: Option<String>,
        /// Tokens before and after, where the log tells.
        before: Option<u64>,
        /// Tokens after.
        after: Option<u64>,
        /// What stands for the conversation from here on.
        summary: Option<String>,
    },
    /// Something happened around the conversation: a hook, an attachment, an API error.
    Event {
        /// What, in a word.
        label: String,
        /// More about it; may be empty.
        text: String,
    },
    /// A line that we do not know.
    Unknown {
        /// Its type.
        kind: String,
        /// The line as it stands.
        raw: String,
    },
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
    /// The input as it stands in the log.
    pub input: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Option<Millis>,
    /// What the model was told.
    pub result: String,
    /// The sub-agents that it started.
    pub agents: Vec<AgentView>,
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
    /// What it did.
    pub turns: Vec<TurnView>,
}

/// The conversation of a session and, inside the calls that started them, those of its sub-agents.
pub fn transcript(family: &Family) -> Transcript {
    let session = &family.main;
    let last = |key: &str| {
        let found = session.entries().iter().rev().find_map(|entry| entry.get(key)?.as_str());
        found.filter(|text| !text.is_empty()).map(Cow::into_owned)
    };
    Transcript {
        id: session.id().map(Cow::into_owned),
        title: session.title().map(Cow::into_owned),
        cwd: session.entries().iter().find_map(|entry| entry.get("cwd")?.as_str()).map(Cow::into_owned),
        git_branch: last("gitBranch"),
        version: last("version"),
        turns: Teller { family, agent: None, depth: 0 }.turns(),
        branches: session.branches().len(),
    }
}

/// The name of the `block_idx`th block of a line. Logs only grow, so a line keeps its name.
pub fn anchor(line_no: u64, block_idx: usize) -> String {
    if block_idx == 0 { format!("m{line_no}") } else { format!("m{line_no}.{}", block_idx + 1) }
}

/// Sub-agents start sub-agents; nobody reads further down than this.
const DEPTH: usize = 100;

/// Tells what happened in one session of a family.
struct Teller<'f> {
    family: &'f Family,
    agent: Option<usize>,
    depth: usize,
}

impl<'f> Teller<'f> {
    fn session(&self) -> &'f Session {
        self.family.session(self.agent)
    }

    fn turns(&self) -> Vec<TurnView> {
        let session = self.session();
        let thread = session.thread();
        let compactions = session.compactions();
        session.turns_of(&thread).iter().map(|turn| self.turn(turn, &compactions)).collect()
    }

    fn turn(&self, turn: &Turn, compactions: &[Compaction]) -> TurnView {
        let session = self.session();
        let mut tokens = Tokens::default();
        let mut models: Vec<String> = Vec::new();
        for reply in turn.replies(session).into_iter().map(|reply| &session.replies()[reply]) {
            tokens.add(reply.usage(session));
            if let Some(model) =
                reply.model.as_ref().filter(|model| !model.starts_with('<') && !models.contains(model))
            {
                models.push(model.clone());
            }
        }
        let first = turn.entries.first().map_or(0, |&idx| session.entries()[idx].at().line_no);
        TurnView {
            number: turn.number,
            anchor: anchor(first, 0),
            span: turn.span(session),
            models,
            tokens,
            open: turn.is_open(session),
            round: turn.round,
            items: turn.entries.iter().flat_map(|&idx| self.items(idx, compactions)).collect(),
        }
    }

    /// What one line tells.
    fn items(&self, entry_idx: usize, compactions: &[Compaction]) -> Vec<Item> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let item = |block_idx: usize, body: Body| Item {
            anchor: anchor(entry.at().line_no, block_idx),
            line_no: entry.at().line_no,
            at: session.timestamp(entry_idx),
            body,
        };
        let one = |body: Option<Body>| body.map(|body| item(0, body)).into_iter().collect();
        match entry.kind() {
            Kind::Assistant => {
                let content = entry.message().and_then(|message| message.content());
                // Foreign writers put a reply's text where its blocks should be.
                if let Some(text) = content.and_then(|content| content.as_str()) {
                    return one(Some(Body::Text(text.into_owned())));
                }
                let blocks = entry.message().into_iter().flat_map(|message| message.blocks()).enumerate();
                let told = blocks.filter_map(|(i, block)| Some(item(i, self.said(entry_idx, block)?)));
                told.collect()
            }
            Kind::User => one(self.asked(entry_idx)),
            Kind::Attachment => one(attached(session, entry_idx)),
            Kind::System => {
                let compaction = compactions.iter().find(|compaction| compaction.boundary == entry_idx);
                one(compaction.map(|compaction| compacted(session, compaction)).or_else(|| event(entry)))
            }
            Kind::Progress => one(progress(entry)),
            Kind::Unknown | Kind::Untyped => {
                let kind = entry.type_name().unwrap_or("(none)".into()).into_owned();
                one(Some(Body::Unknown { kind, raw: entry.text().to_owned() }))
            }
            _ => Vec::new(),
        }
    }

    /// A block of a reply.
    fn said(&self, entry_idx: usize, block: Block<'_>) -> Option<Body> {
        let session = self.session();
        Some(match &*block.kind()? {
            "text" => Body::Text(block.text()?.into_owned()),
            "thinking" => Body::Thinking(block.thinking().unwrap_or_default().into_owned()),
            "redacted_thinking" => Body::Thinking(String::new()),
            "tool_use" => {
                let call = session.tool_call_on(entry_idx, &block.id()?)?;
                Body::Call(self.call(call, block))
            }
            kind => Body::Event { label: kind.to_owned(), text: String::new() },
        })
    }

    fn call(&self, call: &ToolCall, block: Block<'_>) -> CallView {
        let session = self.session();
        let input = block.input();
        let result = call.result(session).and_then(|block| block.content());
        let agents = if self.depth < DEPTH {
            let spawned = self.family.spawned_by(self.agent, &call.id);
            spawned.map(|agent| self.agent(agent, &self.family.agents[agent])).collect()
        } else {
            Vec::new()
        };
        CallView {
            id: call.id.clone(),
            name: call.name.clone(),
            subject: input.map(subject).unwrap_or_default(),
            input: input.map(|input| input.raw().to_owned()).unwrap_or_default(),
            outcome: call.outcome(session),
            duration: call.duration(session),
            result: result.map(|content| content.text().into_owned()).unwrap_or_default(),
            agents,
        }
    }

    fn agent(&self, idx: usize, agent: &Agent) -> AgentView {
        let below = Teller { family: self.family, agent: Some(idx), depth: self.depth + 1 };
        AgentView {
            id: agent.id.clone(),
            agent_type: agent.agent_type.clone(),
            description: agent.description.clone(),
            turns: below.turns(),
        }
    }

    /// A user line. Results are told with their calls, and summaries with their compaction.
    fn asked(&self, entry_idx: usize) -> Option<Body> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let input = session.input(entry_idx)?;
        let content = entry.message()?.content()?;
        let text = content.text().into_owned();
        if input == Input::ToolResult {
            // Text beside a result is the person's.
            return (!text.is_empty()).then_some(Body::Input { input: Input::Prompt, text, images: 0 });
        }
        if input == Input::CompactSummary {
            return None;
        }
        let images = content.blocks().filter(|block| block.is("image") || block.is("document")).count();
        Some(Body::Input { input, text, images })
    }
}

impl Tokens {
    fn add(&mut self, usage: Option<threadline_entry::lens::Usage<'_>>) {
        let Some(usage) = usage else { return };
        self.input += usage.input_tokens().unwrap_or(0);
        self.output += usage.output_tokens().unwrap_or(0);
        self.cache_read += usage.cache_read_input_tokens().unwrap_or(0);
        self.cache_write += usage.cache_creation_input_tokens().unwrap_or(0);
    }
}

/// What a call is about, in one line.
pub fn subject(input: Json<'_>) -> String {
    const TELLING: &[&str] = &[
        "command",
        "file_path",
        "notebook_path",
        "path",
        "pattern",
        "query",
        "url",
        "description",
        "prompt",
        "skill",
        "subject",
        "taskId",
        "task_id",
        "question",
    ];
    // Of the two that Grep and Glob have, the pattern says more.
    let pattern = input.get("pattern").and_then(Json::as_str);
    let telling = || TELLING.iter().find_map(|key| input.get(key)?.as_str());
    let any = || input.members().find_map(|(_, value)| value.as_str());
    let text = pattern.or_else(telling).or_else(any).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

fn compacted(session: &Session, compaction: &Compaction) -> Body {
    let metadata = compaction.metadata(session);
    let summary = compaction.summary.and_then(|idx| session.entries()[idx].message()?.content());
    Body::Compaction {
        trigger: metadata.and_then(|metadata| metadata.trigger()).map(Cow::into_owned),
        before: metadata.and_then(|metadata| metadata.pre_tokens()),
        after: metadata.and_then(|metadata| metadata.post_tokens()),
        summary: summary.map(|content| content.text().into_owned()),
    }
}

/// A `system` line other than a compaction.
fn event(entry: &Entry) -> Option<Body> {
    let system: System<'_> = entry.lens()?;
    let subtype = system.subtype()?;
    let text = match &*subtype {
        "turn_duration" => {
            let seconds = entry.lens::<TurnDuration<'_>>()?.duration_ms()? / 1000;
            format!("{seconds} s")
        }
        "stop_hook_summary" => {
            let hooks: StopHookSummary<'_> = entry.lens()?;
            format!("{} hooks", hooks.hook_count().unwrap_or(0))
        }
        _ => system.content().unwrap_or_default().into_owned(),
    };
    Some(Body::Event { label: subtype.into_owned(), text })
}

/// An `attachment` line.
fn attached(session: &Session, entry_idx: usize) -> Option<Body> {
    let line: threadline_entry::lens::AttachmentLine<'_> = session.entries()[entry_idx].lens()?;
    let body = line.attachment()?;
    if let Some(input) = session.input(entry_idx) {
        let text = match body.prompt()? {
            prompt if prompt.kind() == JsonKind::String => prompt.as_str()?.into_owned(),
            prompt => {
                prompt.items().filter_map(|block| Some(block.get("text")?.as_str()?.into_owned())).collect()
            }
        };
        return Some(Body::Input { input, text, images: 0 });
    }
    let about = body.filename().or_else(|| body.path()).or_else(|| body.hook_name());
    Some(Body::Event { label: body.kind()?.into_owned(), text: about.unwrap_or_default().into_owned() })
}

/// A `progress` line. Sub-agents are told with the call that started them.
fn progress(entry: &Entry) -> Option<Body> {
    let line: threadline_entry::lens::Progress<'_> = entry.lens()?;
    let body: ProgressBody<'_> = line.data()?;
    let kind = body.kind()?;
    if kind == "agent_progress" || kind == "bash_progress" {
        return None;
    }
    let about = body.hook_name().or_else(|| body.query()).or_else(|| body.tool_name());
    Some(Body::Event { label: kind.into_owned(), text: about.unwrap_or_default().into_owned() })
}
