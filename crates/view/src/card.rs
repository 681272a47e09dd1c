//! Cards: the input and result of each tool call, as structured data.

mod command_changes;
mod file;
mod search;
mod shell;
mod talk;
mod task;

use std::borrow::Cow;

use threadline_entry::lens::{SmallResult, ToolUseResult};
use threadline_entry::{Json, JsonKey, JsonKind};

pub(crate) use self::command_changes::{CommandChangeCounts, runs_commands};
pub use self::command_changes::{CommandChanges, CommandFileChange, CommandFileChangeKind};
use crate::diff::Hunk;
use crate::humanize::{bytes, duration, joined, plural};

/// The input and result of a call, by kind of tool. The raw result text is kept in the
/// [`CallView`](crate::CallView).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCard {
    /// A command.
    Command(CommandCard),
    /// A file that was read: the part that the model got.
    File {
        /// The path.
        path: String,
        /// The text; empty for files without text.
        text: String,
        /// The number of the first line, from 1.
        start_line: u64,
        /// The number of lines in the file, if known.
        total_lines: Option<u64>,
    },
    /// A change to a file.
    Diff {
        /// The path.
        path: String,
        /// Whether the call created the file.
        created: bool,
        /// The changed lines.
        hunks: Vec<Hunk>,
        /// Whether a person modified the model's proposal.
        by_hand: bool,
    },
    /// A search for files or lines.
    Matches {
        /// The pattern.
        pattern: String,
        /// The directory or file searched; empty for the working directory.
        place: String,
        /// The files found, if they are listed.
        files: Vec<String>,
        /// The lines found, if they are listed.
        lines: String,
    },
    /// A task for a sub-agent.
    Agent {
        /// A short description.
        description: String,
        /// The agent type.
        agent_type: String,
        /// The prompt.
        prompt: String,
        /// The answer, in Markdown.
        answer: String,
        /// Whether the agent runs in the background.
        background: bool,
    },
    /// A to-do list, with the changes made to it.
    Todos(Vec<Todo>),
    /// A web page that was fetched.
    Page {
        /// The address.
        url: String,
        /// The HTTP status.
        status: String,
        /// The question that the page should answer.
        prompt: String,
        /// The answer, in Markdown.
        text: String,
    },
    /// A web search.
    Links {
        /// The query.
        query: String,
        /// Title and address of each result.
        links: Vec<(String, String)>,
        /// The summary of the results, in Markdown.
        text: String,
    },
    /// A plan, in Markdown.
    Plan(String),
    /// Questions to the person.
    Questions(Vec<Question>),
    /// A message to another agent.
    Message {
        /// The recipient.
        to: String,
        /// The text.
        text: String,
    },
    /// Any other tool: the fields of its input.
    Fields(Vec<(String, String)>),
}

/// A command and its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandCard {
    /// The command line.
    pub command: String,
    /// The purpose, as stated by the model.
    pub description: String,
    /// The standard output.
    pub output: CommandOutput,
    /// The standard error, if it was logged separately.
    pub errors: String,
    /// The exit code, if logged.
    pub exit_code: Option<i64>,
    /// The id of the background task that the command runs as.
    pub background: Option<String>,
    /// The path of the whole output, if it was too long for the log and could not be read.
    pub kept_at: Option<String>,
    /// The changes that the command made to files.
    pub changes: CommandChanges,
}

/// The standard output of a command, with its colour sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOutput {
    /// A text of its own.
    Text(String),
    /// The text of the call's result, from this offset on. It may be long, so it is not copied.
    EndOfResult(usize),
}

impl CommandOutput {
    /// Returns the text, given that of the call's result.
    pub fn text<'c>(&'c self, result: &'c str) -> &'c str {
        match self {
            Self::Text(text) => text,
            Self::EndOfResult(start) => result.get(*start..).unwrap_or_default(),
        }
    }
}

impl Default for CommandOutput {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// One item of a to-do list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Todo {
    /// The text.
    pub text: String,
    /// `pending`, `in_progress`, `completed` …
    pub status: String,
    /// The previous status, if it changed.
    pub before: Option<String>,
    /// Whether the item was added to an existing list.
    pub is_new: bool,
    /// Details, for items with more than one line.
    pub detail: String,
}

impl Todo {
    /// Returns the change in words, if the item changed.
    pub fn change(&self) -> Option<String> {
        let words = |status: &str| status.replace('_', " ");
        match &self.before {
            Some(before) => Some(format!("{} → {}", words(before), words(&self.status))),
            None => self.is_new.then(|| "new".to_owned()),
        }
    }
}

/// The number of bytes of answers that are searched for the options of a question. Beyond it, the answer is
/// shown as free text.
const MAX_SEARCHED_BYTES: usize = 1 << 20;

/// A question to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// The options.
    pub options: Vec<Choice>,
    /// The answer.
    pub answer: Option<String>,
    /// A note that the person added to the answer.
    pub notes: Option<String>,
}

/// An option of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The label.
    pub label: String,
    /// The explanation.
    pub description: String,
}

impl Question {
    /// Returns whether an option was chosen, alone or with others.
    pub fn has_chosen(&self, option: &str) -> bool {
        let answer = self.answer.as_deref().filter(|_| self.has_few_options());
        answer.is_some_and(|answer| remove_answer(answer, option).is_some())
    }

    /// Returns whether the answer can be searched for every option in a short time.
    fn has_few_options(&self) -> bool {
        let answer = self.answer.as_ref().map_or(0, String::len);
        answer.saturating_mul(self.options.len()) <= MAX_SEARCHED_BYTES
    }

    /// Returns the part of the answer that is not one of the options.
    pub fn free_text_answer(&self) -> Option<String> {
        let mut left = self.answer.clone()?;
        for option in self.options.iter().filter(|_| self.has_few_options()) {
            left = remove_answer(&left, &option.label).unwrap_or(left);
        }
        Some(left).filter(|left| !left.is_empty())
    }
}

/// Removes one answer from a comma-separated list; `None` if the list does not contain it.
///
/// The list cannot simply be split, because an answer may itself contain `, `.
fn remove_answer(answers: &str, one: &str) -> Option<String> {
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

/// The card of a call, with its one-line summary.
pub(crate) struct CallSummary {
    pub(crate) card: ToolCard,
    /// The subject: a path, a command, a pattern.
    pub(crate) subject: String,
    /// The result in a few words: `63 lines`, `+12 −3`, `exit 101`.
    pub(crate) gist: String,
}

/// Returns whether the cards of a tool are diffs.
pub(crate) fn changes_files(tool: &str) -> bool {
    matches!(tool, "Write" | "Edit" | "MultiEdit" | "NotebookEdit")
}

/// Returns whether a tool asks the person something.
pub(crate) fn asks_person(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode" | "exit_plan_mode")
}

/// Returns whether a tool starts sub-agents.
pub fn starts_agents(tool: &str) -> bool {
    matches!(tool, "Task" | "Agent")
}

/// The inputs of a card.
pub(crate) struct CardInput<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: Option<Json<'a>>,
    pub(crate) data: Option<ToolUseResult<'a>>,
    /// The result text that was sent to the model.
    pub(crate) text: &'a str,
    pub(crate) failed: bool,
    /// The number of images in the result.
    pub(crate) n_images: usize,
    /// The working directory of the call.
    pub(crate) cwd: &'a str,
    /// Reads output that was saved to a separate file.
    pub(crate) read_output: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> CardInput<'a> {
    pub(crate) fn summary(&self) -> CallSummary {
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
            _ => self.fields_card(),
        }
    }

    fn string(&self, key: &str) -> String {
        self.input.and_then(|input| input.get(key)?.as_str()).unwrap_or_default().into_owned()
    }

    fn of<L: threadline_entry::lens::Lens<'a>>(&self) -> Option<L> {
        self.data?.of()
    }

    fn fields_card(&self) -> CallSummary {
        let members = self.input.into_iter().flat_map(Json::members);
        let value = |value: Json<'_>| value.as_str().map_or_else(|| value.raw().to_owned(), Cow::into_owned);
        let field = |(key, found): (JsonKey<'_>, Json<'_>)| (key.name().into_owned(), value(found));
        let fields: Vec<_> = members.map(field).collect();
        let gist = if self.failed { String::new() } else { self.generic_gist() };
        CallSummary { card: ToolCard::Fields(fields), subject: self.generic_subject(), gist }
    }

    /// Returns a short result for tools without their own card, from the structured result where possible.
    fn generic_gist(&self) -> String {
        let small = self.of::<SmallResult<'_>>();
        match self.name {
            "Skill" => Some(first_line(self.string("args").trim_start()).to_owned()),
            "ReportFindings" => small.and_then(|small| small.count()).map(|count| plural(count, "finding")),
            "ScheduleWakeup" if small.and_then(|small| small.stopped()) == Some(true) => {
                Some("cancelled".to_owned())
            }
            "ScheduleWakeup" => small
                .and_then(|small| small.clamped_delay_seconds())
                .map(|seconds| format!("in {}", duration((seconds * 1000.0) as i64))),
            "Artifact" => small.and_then(|small| small.url()).map(Cow::into_owned),
            _ => None,
        }
        .unwrap_or_else(|| self.short_answer())
    }

    /// Returns a short result for an unknown tool: a single line as is, else its size.
    fn short_answer(&self) -> String {
        let text = self.text.trim();
        let said = match text.lines().count() {
            0 => String::new(),
            1 if text.starts_with(['{', '[', '"']) => bytes(text.len() as u64),
            1 => text.to_owned(),
            lines => plural(lines as u64, "line"),
        };
        let pictures = match self.n_images {
            0 => String::new(),
            1 => "image".to_owned(),
            several => format!("{several} images"),
        };
        let parts = [said, pictures];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// Returns the subject of an unknown input: the first of the well-known fields, else the first string.
    fn generic_subject(&self) -> String {
        const SUBJECT_KEYS: &[&str] = &[
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
        let subject = SUBJECT_KEYS.iter().map(|key| self.string(key)).find(|text| !text.is_empty());
        let any = || self.input?.members().find_map(|(_, value)| Some(value.as_str()?.into_owned()));
        let text = subject.or_else(any).unwrap_or_default();
        let more = text.trim().lines().nth(1).map(|_| " …").unwrap_or_default();
        format!("{}{more}", first_line(text.trim_start()))
    }
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

/// Returns the text of a string, or of a list of strings and text blocks.
pub(crate) fn text_of<'a>(json: Json<'a>) -> String {
    match json.kind() {
        JsonKind::String => json.as_str().unwrap_or_default().into_owned(),
        _ => {
            let text = |block: Json<'a>| block.as_str().or_else(|| block.get("text")?.as_str());
            joined(json.items().filter_map(text), "\n")
        }
    }
}

/// Returns whether a text only reports that the person refused or interrupted a call.
pub(crate) fn is_refusal(text: &str) -> bool {
    const REFUSALS: &[&str] =
        &["User rejected tool use", "The user doesn't want to ", "[Request interrupted by user"];
    REFUSALS.iter().any(|refused| text.starts_with(refused))
}

/// Returns the result of a failed call without the tags around the error. Claude Code may append reminders
/// after the closing tag; these are kept.
pub(crate) fn untagged_error(text: &str) -> Cow<'_, str> {
    let Some(error) = text.trim().strip_prefix("<tool_use_error>") else { return text.into() };
    match error.split_once("</tool_use_error>") {
        Some((error, "")) => error.into(),
        Some((error, more)) => format!("{error}{more}").into(),
        None => error.into(),
    }
}

/// Returns the trimmed text inside a tag.
pub(crate) fn tag_text<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let start = text.find(&format!("<{name}>"))? + name.len() + 2;
    let end = text[start..].find(&format!("</{name}>"))? + start;
    Some(text[start..end].trim())
}
