//! Cards: what each tool was asked and what came of it, as data that says it plainly.

mod file;
mod search;
mod shell;
mod talk;
mod task;

use std::borrow::Cow;

use threadline_entry::lens::ToolUseResult;
use threadline_entry::{Json, JsonKind};

use crate::diff::Hunk;

/// What a call was about and what came of it. What a tool returned as text stands beside the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Card {
    /// A command was run.
    Command(CommandCard),
    /// A file was read: the part that was seen.
    File {
        /// Its path.
        path: String,
        /// Its text; empty for what is no text.
        text: String,
        /// The number of the first line.
        start_line: u64,
        /// How many lines the file has, where that is known.
        total_lines: Option<u64>,
    },
    /// A file was changed.
    Diff {
        /// Its path.
        path: String,
        /// Whether it did not exist before.
        created: bool,
        /// What changed.
        hunks: Vec<Hunk>,
        /// Whether a person changed what the model proposed.
        by_hand: bool,
    },
    /// Files or lines were looked for.
    Matches {
        /// What was looked for.
        pattern: String,
        /// Where; empty for the working directory.
        place: String,
        /// The files that were found, where they are listed.
        files: Vec<String>,
        /// The lines that were found, where they are listed.
        lines: String,
    },
    /// Something was given to a sub-agent.
    Agent {
        /// In a few words.
        description: String,
        /// What it was told to be.
        agent_type: String,
        /// What it was asked.
        prompt: String,
        /// What it answered, in Markdown.
        answer: String,
        /// Whether it works in the background.
        background: bool,
    },
    /// A list of things to do, and what changed in it.
    Todos(Vec<Todo>),
    /// A page was fetched.
    Page {
        /// Its address.
        url: String,
        /// How the server answered.
        status: String,
        /// What the model asked of it.
        prompt: String,
        /// What it was told, in Markdown.
        text: String,
    },
    /// The web was searched.
    Links {
        /// For what.
        query: String,
        /// Title and address of what was found.
        links: Vec<(String, String)>,
    },
    /// A plan was made, in Markdown.
    Plan(String),
    /// The person was asked.
    Questions(Vec<Question>),
    /// A message was sent to another agent.
    Message {
        /// To whom.
        to: String,
        /// What it says.
        text: String,
    },
    /// Anything else: the input, field by field.
    Fields(Vec<(String, String)>),
}

/// A command and its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandCard {
    /// What was run.
    pub command: String,
    /// What it was run for.
    pub description: String,
    /// What it printed, with the colours that it printed.
    pub output: String,
    /// What it printed as errors, where that stands apart.
    pub errors: String,
    /// How it ended, where the log tells.
    pub exit_code: Option<i64>,
    /// The task that it runs as in the background.
    pub background: Option<String>,
    /// Where its whole output is kept, if it was too long for the log and is not here.
    pub kept_at: Option<String>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// What.
    pub text: String,
    /// `pending`, `in_progress`, `completed` …
    pub status: String,
    /// What it was before, if that changed.
    pub before: Option<String>,
}

/// A question to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What was asked.
    pub text: String,
    /// What could be chosen.
    pub options: Vec<String>,
    /// What was answered.
    pub answer: Option<String>,
}

/// A call, as its card and what happened in a few words.
pub(crate) struct Told {
    pub(crate) card: Card,
    /// What it was about: a path, a command, a pattern.
    pub(crate) subject: String,
    /// What happened: `63 lines`, `+12 −3`, `exit 101`.
    pub(crate) gist: String,
}

/// Whether the cards of a tool are about what changed in a file.
pub(crate) fn changes_files(tool: &str) -> bool {
    matches!(tool, "Write" | "Edit" | "MultiEdit" | "NotebookEdit")
}

/// Everything that a call's card is made of.
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: Option<Json<'a>>,
    pub(crate) data: Option<ToolUseResult<'a>>,
    /// What the model was told.
    pub(crate) text: &'a str,
    pub(crate) failed: bool,
    /// Reads output that was kept in a file of its own.
    pub(crate) kept: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Call<'a> {
    pub(crate) fn told(&self) -> Told {
        match self.name {
            "Bash" | "PowerShell" | "BashOutput" | "Monitor" => self.command(),
            "Read" | "NotebookRead" => self.read(),
            "Write" => self.write(),
            "Edit" | "MultiEdit" => self.edit(),
            "NotebookEdit" => self.notebook(),
            "Grep" | "Glob" | "LS" => self.matches(),
            "Task" | "Agent" => self.agent(),
            "TodoWrite" => self.todos(),
            "TaskCreate" | "TaskUpdate" | "TaskGet" | "TaskList" => self.tasks(),
            "TaskOutput" | "TaskStop" | "KillBash" | "KillShell" | "AgentOutputTool" => self.task_output(),
            "WebFetch" => self.page(),
            "WebSearch" => self.links(),
            "ExitPlanMode" | "EnterPlanMode" | "exit_plan_mode" => self.plan(),
            "AskUserQuestion" => self.questions(),
            "SendMessage" => self.message(),
            "ToolSearch" => self.tool_search(),
            _ => self.fields(),
        }
    }

    fn string(&self, key: &str) -> String {
        self.input.and_then(|input| input.get(key)?.as_str()).unwrap_or_default().into_owned()
    }

    fn of<L: threadline_entry::lens::Lens<'a>>(&self) -> Option<L> {
        self.data?.of()
    }

    fn fields(&self) -> Told {
        let members = self.input.into_iter().flat_map(Json::members);
        let value = |value: Json<'_>| value.as_str().map_or_else(|| value.raw().to_owned(), Cow::into_owned);
        let fields = members.map(|(key, found)| (key.name().into_owned(), value(found))).collect();
        Told { card: Card::Fields(fields), subject: self.any_subject(), gist: String::new() }
    }

    /// What an unknown input is about: the first of the telling fields, else the first text.
    fn any_subject(&self) -> String {
        const TELLING: &[&str] = &[
            "command",
            "file_path",
            "path",
            "pattern",
            "query",
            "url",
            "skill",
            "name",
            "description",
            "subject",
            "prompt",
            "task_id",
            "bash_id",
            "shell_id",
            "operation",
            "text",
            "question",
        ];
        let telling = TELLING.iter().map(|key| self.string(key)).find(|text| !text.is_empty());
        let any = || self.input?.members().find_map(|(_, value)| Some(value.as_str()?.into_owned()));
        first_line(telling.or_else(any).unwrap_or_default().trim_start()).to_owned()
    }
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

/// Whether a value is a text or a list of blocks with text, and that text.
pub(crate) fn text_of(json: Json<'_>) -> String {
    match json.kind() {
        JsonKind::String => json.as_str().unwrap_or_default().into_owned(),
        _ => {
            let texts = json.items().filter_map(|block| Some(block.get("text")?.as_str()?.into_owned()));
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
