//! Cards: what each tool was asked and what came of it, as data that says it plainly.

mod file;
mod search;
mod shell;
mod talk;
mod task;

use std::borrow::Cow;

use threadline_entry::lens::{SmallResult, ToolUseResult};
use threadline_entry::{Json, JsonKind};
use threadline_session::Outcome;

use crate::diff::Hunk;
use crate::figure::{bytes, duration, plural};

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
        /// What was made of it, in Markdown.
        text: String,
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
    /// Whether it was not there before, where others were.
    pub is_new: bool,
    /// More about it, where it has more than a line.
    pub detail: String,
}

impl Todo {
    /// What became of it, in words, if that changed.
    pub fn change(&self) -> Option<String> {
        let words = |status: &str| status.replace('_', " ");
        match &self.before {
            Some(before) => Some(format!("{} → {}", words(before), words(&self.status))),
            None => self.is_new.then(|| "new".to_owned()),
        }
    }
}

/// A question to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What was asked.
    pub text: String,
    /// What could be chosen.
    pub options: Vec<Choice>,
    /// What was answered.
    pub answer: Option<String>,
    /// What the person wrote beside the answer.
    pub notes: Option<String>,
}

/// Something that could be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it is called.
    pub label: String,
    /// What it would mean.
    pub description: String,
}

impl Question {
    /// Whether an option was chosen, alone or with others.
    pub fn chose(&self, option: &str) -> bool {
        self.answer.as_deref().is_some_and(|answer| without(answer, option).is_some())
    }

    /// What was answered in the person's own words, alone or beside what was chosen.
    pub fn own_answer(&self) -> Option<String> {
        let mut left = self.answer.clone()?;
        for option in &self.options {
            left = without(&left, &option.label).unwrap_or(left);
        }
        Some(left).filter(|left| !left.is_empty())
    }
}

/// A list of answers without one of them, if that is in it. An answer may hold what stands between two.
fn without(answers: &str, one: &str) -> Option<String> {
    if one.is_empty() {
        return None;
    }
    let is_part = |at: &usize| {
        let (before, after) = (&answers[..*at], &answers[at + one.len()..]);
        (before.is_empty() || before.ends_with(", ")) && (after.is_empty() || after.starts_with(", "))
    };
    let at = answers.match_indices(one).map(|(at, _)| at).find(is_part)?;
    let (before, after) = (&answers[..at], &answers[at + one.len()..]);
    let (before, after) = (before.trim_end_matches(", "), after.trim_start_matches(", "));
    let between = if before.is_empty() || after.is_empty() { "" } else { ", " };
    Some(format!("{before}{between}{after}"))
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

/// Whether a tool waits for what a person says to it.
pub(crate) fn asks_person(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode" | "exit_plan_mode")
}

/// Whether something went wrong with a call. A person who would rather talk about a question or a plan is no failure.
pub(crate) fn went_wrong(tool: &str, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Ok => false,
        Outcome::Denied => !asks_person(tool),
        _ => true,
    }
}

/// Whether a tool starts sub-agents.
pub(crate) fn is_agents(tool: &str) -> bool {
    matches!(tool, "Task" | "Agent")
}

/// Everything that a call's card is made of.
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: Option<Json<'a>>,
    pub(crate) data: Option<ToolUseResult<'a>>,
    /// What the model was told.
    pub(crate) text: &'a str,
    pub(crate) failed: bool,
    /// How many pictures came back.
    pub(crate) pictures: usize,
    /// Where it ran.
    pub(crate) cwd: &'a str,
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
            "TaskOutput" | "AgentOutputTool" => self.task_output(),
            "TaskStop" | "KillBash" | "KillShell" => self.stop(),
            "WebFetch" => self.page(),
            "WebSearch" => self.links(),
            "ExitPlanMode" | "EnterPlanMode" | "exit_plan_mode" => self.plan(),
            "AskUserQuestion" => self.questions(),
            "SendMessage" => self.message(),
            "ToolSearch" => self.tool_search(),
            "LSP" => self.symbols(),
            "Workflow" => self.workflow(),
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
        let gist = if self.failed { String::new() } else { self.small_gist() };
        Told { card: Card::Fields(fields), subject: self.any_subject(), gist }
    }

    /// What came of a call that has no card of its own, as far as its result tells.
    fn small_gist(&self) -> String {
        let small = self.of::<SmallResult<'_>>();
        match self.name {
            "Skill" => Some(first_line(self.string("args").trim_start()).to_owned()),
            "ReportFindings" => small.and_then(|small| small.count()).map(|count| plural(count, "finding")),
            "ScheduleWakeup" if small.and_then(|small| small.stopped()) == Some(true) => {
                Some("called off".to_owned())
            }
            "ScheduleWakeup" => small
                .and_then(|small| small.clamped_delay_seconds())
                .map(|seconds| format!("in {}", duration((seconds * 1000.0) as i64))),
            "Artifact" => small.and_then(|small| small.url()).map(Cow::into_owned),
            _ => None,
        }
        .unwrap_or_else(|| self.answer_in_short())
    }

    /// What a tool said that nothing is known about: in its own words where they are few.
    fn answer_in_short(&self) -> String {
        let text = self.text.trim();
        let said = match text.lines().count() {
            0 => String::new(),
            1 if text.starts_with(['{', '[', '"']) => bytes(text.len() as u64),
            1 => text.to_owned(),
            lines => plural(lines as u64, "line"),
        };
        let pictures = match self.pictures {
            0 => String::new(),
            1 => "image".to_owned(),
            several => format!("{several} images"),
        };
        let parts = [said, pictures];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
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
            "uri",
            "skill",
            "title",
            "name",
            "description",
            "subject",
            "prompt",
            "reason",
            "task_id",
            "bash_id",
            "shell_id",
            "operation",
            "text",
            "question",
        ];
        let telling = TELLING.iter().map(|key| self.string(key)).find(|text| !text.is_empty());
        let any = || self.input?.members().find_map(|(_, value)| Some(value.as_str()?.into_owned()));
        let text = telling.or_else(any).unwrap_or_default();
        let more = text.trim().lines().nth(1).map(|_| " …").unwrap_or_default();
        format!("{}{more}", first_line(text.trim_start()))
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
            let text =
                |block: Json<'_>| Some(block.as_str().or_else(|| block.get("text")?.as_str())?.into_owned());
            let texts = json.items().filter_map(text);
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Whether a text says that the person refused or stopped a call, and nothing in the person's words.
pub(crate) fn is_refusal(text: &str) -> bool {
    const REFUSED: &[&str] =
        &["User rejected tool use", "The user doesn't want to ", "[Request interrupted by user"];
    REFUSED.iter().any(|refused| text.starts_with(refused))
}

/// The result of a failed call without the tags around the error. Claude Code may append reminders to it.
pub(crate) fn untagged_error(text: &str) -> Cow<'_, str> {
    let Some(error) = text.trim().strip_prefix("<tool_use_error>") else { return text.into() };
    match error.split_once("</tool_use_error>") {
        Some((error, "")) => error.into(),
        Some((error, more)) => format!("{error}{more}").into(),
        None => error.into(),
    }
}

/// What stands in a tag.
pub(crate) fn tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let start = text.find(&format!("<{name}>"))? + name.len() + 2;
    let end = text[start..].find(&format!("</{name}>"))? + start;
    Some(text[start..end].trim())
}
