//! Cards: what each tool was asked and what came of it, as data that says it plainly.

use std::borrow::Cow;

use threadline_entry::lens::{
    AgentResult, AskUserQuestionResult, BashOutputResult, BashResult, EditResult, FromJson, GlobResult,
    GrepResult, List, MultiEditResult, NotebookEditResult, PlanResult, ReadResult, SendMessageResult,
    TaskItem, TaskResult, TaskUpdateResult, TodoWriteResult, ToolSearchResult, ToolUseResult, WebFetchResult,
    WebSearchResult, WriteResult,
};
use threadline_entry::{Json, JsonKind};

use crate::diff::{Hunk, hunks};

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

    fn command(&self) -> Told {
        let mut card = CommandCard {
            command: self.string("command"),
            description: self.string("description"),
            exit_code: exit_code(self.text),
            ..CommandCard::default()
        };
        if let Some(polled) = self.of::<BashOutputResult<'_>>().filter(|result| result.shell_id().is_some()) {
            card.command = polled.command().unwrap_or_default().into_owned();
            card.exit_code = polled.exit_code().map(|code| code as i64);
        }
        match self.of::<BashResult<'_>>() {
            Some(result) if result.stdout().is_some() => {
                card.output = result.stdout().unwrap_or_default().into_owned();
                card.errors = result.stderr().unwrap_or_default().into_owned();
                card.background = result.background_task_id().map(Cow::into_owned);
                if let Some(path) = result.persisted_output_path() {
                    match (self.kept)(&path) {
                        Some(whole) => card.output = whole,
                        None => card.kept_at = Some(path.into_owned()),
                    }
                }
            }
            _ => self.text.clone_into(&mut card.output),
        }
        let gist = match (card.exit_code, &card.background) {
            (Some(code), _) if code != 0 => format!("exit {code}"),
            (_, Some(task)) => format!("in the background as {task}"),
            _ => String::new(),
        };
        let subject = first_line(&card.command).to_owned();
        let subject = if subject.is_empty() { self.any_subject() } else { subject };
        Told { card: Card::Command(card), subject, gist }
    }

    fn read(&self) -> Told {
        let path = self.string("file_path");
        let file = self.of::<ReadResult<'_>>().and_then(|result| result.file());
        let text = file.and_then(|file| file.content()).map_or_else(|| self.text.to_owned(), Cow::into_owned);
        let lines = file.and_then(|file| file.num_lines()).unwrap_or_else(|| text.lines().count() as u64);
        let total_lines = file.and_then(|file| file.total_lines());
        let gist = match (self.failed, total_lines) {
            (true, _) => String::new(),
            (_, Some(total)) if total > lines => format!("{} of {}", plural(lines, "line"), total),
            _ if file.is_some_and(|file| file.base64().is_some()) => "image".to_owned(),
            _ => plural(lines, "line"),
        };
        let start_line = file.and_then(|file| file.start_line()).unwrap_or(1);
        Told { subject: path.clone(), card: Card::File { path, text, start_line, total_lines }, gist }
    }

    fn write(&self) -> Told {
        let path = self.string("file_path");
        let content = self.string("content");
        let result = self.of::<WriteResult<'_>>();
        let original = result.and_then(|result| result.original_file());
        let created = result.is_none_or(|result| result.kind().is_none_or(|kind| kind == "create"))
            && original.is_none();
        let hunks =
            match result.and_then(|result| result.structured_patch()).filter(|patch| !patch.is_empty()) {
                Some(patch) => noted(patch),
                None => hunks(original.as_deref().unwrap_or_default(), &content),
            };
        let by_hand = result.and_then(|result| result.user_modified()).unwrap_or(false);
        self.diff(path, created, hunks, by_hand)
    }

    fn edit(&self) -> Told {
        let path = self.string("file_path");
        let edit = self.of::<EditResult<'_>>();
        let several = self.of::<MultiEditResult<'_>>();
        let patch = edit.and_then(|result| result.structured_patch());
        let patch = patch.or_else(|| several.and_then(|result| result.structured_patch()));
        let found = match patch.filter(|patch| !patch.is_empty()) {
            Some(patch) => noted(patch),
            // Without a result there is only what was asked for, at no known place.
            None => {
                let edits = self.input.and_then(|input| input.get("edits"));
                let asked = edits.map_or_else(
                    || self.input.into_iter().collect(),
                    |edits| edits.items().collect::<Vec<_>>(),
                );
                asked.into_iter().flat_map(proposed).collect()
            }
        };
        let by_hand = edit.and_then(|result| result.user_modified()).unwrap_or(false);
        self.diff(path, false, found, by_hand)
    }

    fn notebook(&self) -> Told {
        let path = self.string("notebook_path");
        let result = self.of::<NotebookEditResult<'_>>();
        let source = result.and_then(|result| result.new_source());
        let source = source.map_or_else(|| self.string("new_source"), Cow::into_owned);
        let removed = self.string("edit_mode") == "delete";
        let hunks = if removed { Vec::new() } else { hunks("", &source) };
        self.diff(path, false, hunks, false)
    }

    fn diff(&self, path: String, created: bool, hunks: Vec<Hunk>, by_hand: bool) -> Told {
        let (added, removed) = Hunk::counts(&hunks);
        let gist = match (self.failed, created) {
            (true, _) => String::new(),
            (_, true) => format!("new, {}", plural(added as u64, "line")),
            _ => format!("+{added} −{removed}"),
        };
        Told { subject: path.clone(), card: Card::Diff { path, created, hunks, by_hand }, gist }
    }

    fn matches(&self) -> Told {
        let pattern = self.string("pattern");
        let place = self.string("path");
        let grep = self.of::<GrepResult<'_>>();
        let glob = self.of::<GlobResult<'_>>();
        let listed =
            grep.and_then(|result| result.filenames()).or_else(|| glob.and_then(|result| result.filenames()));
        let files: Vec<String> =
            listed.into_iter().flat_map(|files| files.iter()).map(Cow::into_owned).collect();
        let lines = match grep {
            Some(grep) => grep.content().unwrap_or_default().into_owned(),
            None if files.is_empty() => self.text.to_owned(),
            None => String::new(),
        };
        let n_files = grep.and_then(|grep| grep.num_files()).unwrap_or(files.len() as u64);
        let gist = if self.failed {
            String::new()
        } else if lines.is_empty() {
            plural(n_files, "file")
        } else {
            let n_lines =
                grep.and_then(|grep| grep.num_lines()).unwrap_or_else(|| lines.lines().count() as u64);
            if n_files > 0 {
                format!("{} in {}", plural(n_lines, "line"), plural(n_files, "file"))
            } else {
                plural(n_lines, "line")
            }
        };
        let subject = if pattern.is_empty() { place.clone() } else { pattern.clone() };
        Told { card: Card::Matches { pattern, place, files, lines }, subject, gist }
    }

    fn agent(&self) -> Told {
        let result = self.of::<AgentResult<'_>>();
        let answer = result.and_then(|result| result.content()).map(|content| content.text().into_owned());
        let background = result.and_then(|result| result.is_async()).unwrap_or(false);
        let mut gist = Vec::new();
        if let Some(calls) = result.and_then(|result| result.total_tool_use_count()) {
            gist.push(plural(calls, "call"));
        }
        if let Some(tokens) = result.and_then(|result| result.total_tokens()) {
            gist.push(format!("{} tokens", short_count(tokens)));
        }
        if background {
            gist.push("in the background".to_owned());
        }
        let description = self.string("description");
        let card = Card::Agent {
            description: description.clone(),
            agent_type: self.string("subagent_type"),
            prompt: self.string("prompt"),
            answer: answer.unwrap_or_else(|| self.text.to_owned()),
            background,
        };
        Told { card, subject: description, gist: gist.join(" · ") }
    }

    fn todos(&self) -> Told {
        let result = self.of::<TodoWriteResult<'_>>();
        let old: Vec<_> =
            result.and_then(|result| result.old_todos()).into_iter().flat_map(|todos| todos.iter()).collect();
        let asked = || self.input.and_then(|input| List::from_json(input.get("todos")?));
        let new = result.and_then(|result| result.new_todos()).or_else(asked);
        let text = |todo: threadline_entry::lens::Todo<'_>| todo.content().unwrap_or_default().into_owned();
        let status = |todo: threadline_entry::lens::Todo<'_>| todo.status().unwrap_or_default().into_owned();
        let todos: Vec<Todo> = new
            .into_iter()
            .flat_map(|todos| todos.iter())
            .map(|todo| {
                let before =
                    old.iter().find(|before| text(**before) == text(todo)).map(|before| status(*before));
                let status = status(todo);
                let before = before.filter(|before| *before != status);
                Todo { text: text(todo), status, before }
            })
            .collect();
        let done = todos.iter().filter(|todo| todo.status == "completed").count();
        let subject = todos.iter().find(|todo| todo.status == "in_progress").map(|todo| todo.text.clone());
        Told {
            gist: format!("{done} of {} done", todos.len()),
            card: Card::Todos(todos),
            subject: subject.unwrap_or_default(),
        }
    }

    fn tasks(&self) -> Told {
        let result = self.of::<TaskResult<'_>>();
        let one = result.and_then(|result| result.task());
        let many = result.and_then(|result| result.tasks()).into_iter().flat_map(|tasks| tasks.iter());
        let todo = |task: TaskItem<'_>| Todo {
            text: task.subject().or_else(|| task.description()).unwrap_or_default().into_owned(),
            status: task.status().unwrap_or("pending".into()).into_owned(),
            before: None,
        };
        let mut todos: Vec<Todo> = one.into_iter().chain(many).map(todo).collect();
        let change = self.of::<TaskUpdateResult<'_>>().and_then(|result| result.status_change());
        let part = |key: &str| change.and_then(|change| Some(change.get(key)?.as_str()?.into_owned()));
        let mut subject = self.string("subject");
        if let Some(status) =
            part("to").or_else(|| Some(self.string("status")).filter(|status| !status.is_empty()))
        {
            let text =
                if subject.is_empty() { format!("#{}", self.string("taskId")) } else { subject.clone() };
            todos.push(Todo { text: text.clone(), status, before: part("from") });
            subject = text;
        }
        let gist = match &todos[..] {
            [Todo { status, before: Some(before), .. }] => format!("{before} → {status}"),
            [Todo { status, .. }] if self.name == "TaskUpdate" => status.clone(),
            [] | [_] => String::new(),
            several => plural(several.len() as u64, "task"),
        };
        Told { card: Card::Todos(todos), subject, gist }
    }

    fn task_output(&self) -> Told {
        let task = self.of::<TaskResult<'_>>().and_then(|result| result.task());
        let text = |value: Option<Cow<'_, str>>| value.unwrap_or_default().into_owned();
        let id = ["task_id", "shell_id", "bash_id", "agentId"]
            .into_iter()
            .map(|key| self.string(key))
            .find(|id| !id.is_empty());
        let card = CommandCard {
            description: text(task.and_then(|task| task.description())),
            output: task
                .and_then(|task| task.output().or_else(|| task.result()))
                .map_or_else(|| self.text.to_owned(), Cow::into_owned),
            exit_code: task.and_then(|task| task.exit_code()).map(|code| code as i64),
            background: id.clone(),
            ..CommandCard::default()
        };
        let status = text(task.and_then(|task| task.status()));
        let gist = match card.exit_code {
            Some(code) if code != 0 => format!("{status}, exit {code}"),
            _ => status,
        };
        let subject =
            if card.description.is_empty() { id.unwrap_or_default() } else { card.description.clone() };
        Told { card: Card::Command(card), subject, gist }
    }

    fn page(&self) -> Told {
        let url = self.string("url");
        let result = self.of::<WebFetchResult<'_>>();
        let code = result.and_then(|result| result.code());
        let status = code.map(|code| {
            let text = result.and_then(|result| result.code_text()).unwrap_or_default();
            format!("{code} {text}").trim_end().to_owned()
        });
        let text =
            result.and_then(|result| result.result()).map_or_else(|| self.text.to_owned(), Cow::into_owned);
        let status = status.unwrap_or_default();
        let gist = if self.failed { String::new() } else { status.clone() };
        Told {
            subject: url.clone(),
            card: Card::Page { url, status, prompt: self.string("prompt"), text },
            gist,
        }
    }

    fn links(&self) -> Told {
        let query = self.string("query");
        let results = self.of::<WebSearchResult<'_>>().and_then(|result| result.results());
        let mut links = Vec::new();
        for result in results.into_iter().flat_map(|results| results.iter()) {
            for link in result.get("content").into_iter().flat_map(Json::items) {
                let text = |key: &str| link.get(key).and_then(Json::as_str).unwrap_or_default().into_owned();
                links.push((text("title"), text("url")));
            }
        }
        let gist = if self.failed { String::new() } else { plural(links.len() as u64, "result") };
        Told { subject: query.clone(), card: Card::Links { query, links }, gist }
    }

    fn plan(&self) -> Told {
        let noted = self.of::<PlanResult<'_>>().and_then(|result| result.plan());
        let plan = noted.map_or_else(|| self.string("plan"), Cow::into_owned);
        let subject = first_line(plan.trim_start_matches(['#', ' ', '\n'])).to_owned();
        let gist = match (self.name, self.failed) {
            ("EnterPlanMode", _) => String::new(),
            (_, true) => "kept planning".to_owned(),
            _ => "approved".to_owned(),
        };
        Told { card: Card::Plan(plan), subject, gist }
    }

    fn questions(&self) -> Told {
        let answers = self.of::<AskUserQuestionResult<'_>>().and_then(|result| result.answers());
        let asked = self.input.and_then(|input| input.get("questions"));
        let questions: Vec<Question> = asked
            .into_iter()
            .flat_map(Json::items)
            .map(|question| {
                let text = question.get("question").and_then(Json::as_str).unwrap_or_default().into_owned();
                let options = question.get("options").into_iter().flat_map(Json::items);
                let label = |option: Json<'_>| {
                    option.as_str().or_else(|| option.get("label")?.as_str()).map(Cow::into_owned)
                };
                let answer =
                    answers.and_then(|answers| answers.get(&text)).map(|answer| match answer.as_str() {
                        Some(answer) => answer.into_owned(),
                        None => answer.raw().to_owned(),
                    });
                Question { options: options.filter_map(label).collect(), answer, text }
            })
            .collect();
        let gist: Vec<&str> = questions.iter().filter_map(|question| question.answer.as_deref()).collect();
        let gist = gist.join("; ");
        let subject = questions.first().map(|question| question.text.clone()).unwrap_or_default();
        Told { card: Card::Questions(questions), subject, gist }
    }

    fn message(&self) -> Told {
        let to = ["to", "recipient", "target_agent_id"]
            .into_iter()
            .map(|key| self.string(key))
            .find(|to| !to.is_empty());
        let text =
            ["message", "content"].into_iter().map(|key| self.string(key)).find(|text| !text.is_empty());
        let sent = self.of::<SendMessageResult<'_>>().and_then(|result| result.success());
        let gist = if sent == Some(false) { "not sent".to_owned() } else { String::new() };
        let to = to.unwrap_or_default();
        Told { subject: to.clone(), card: Card::Message { to, text: text.unwrap_or_default() }, gist }
    }

    fn tool_search(&self) -> Told {
        let found = self.of::<ToolSearchResult<'_>>().and_then(|result| result.matches());
        let found: Vec<String> =
            found.into_iter().flat_map(|found| found.iter()).map(Cow::into_owned).collect();
        let pattern = self.string("query");
        let gist = plural(found.len() as u64, "tool");
        let card = Card::Matches {
            pattern: pattern.clone(),
            place: String::new(),
            files: found,
            lines: String::new(),
        };
        Told { card, subject: pattern, gist }
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

fn noted(patch: List<'_, threadline_entry::lens::PatchHunk<'_>>) -> Vec<Hunk> {
    patch.iter().map(Hunk::noted).collect()
}

/// The hunks of an edit that was asked for; where it would have been is not known.
fn proposed(edit: Json<'_>) -> Vec<Hunk> {
    let text = |key: &str| edit.get(key).and_then(Json::as_str).unwrap_or_default();
    let mut found = hunks(&text("old_string"), &text("new_string"));
    for hunk in &mut found {
        (hunk.old_start, hunk.new_start) = (0, 0);
    }
    found
}

/// How a command ended, as the text for the model begins.
fn exit_code(text: &str) -> Option<i64> {
    let rest = text.trim_start().trim_start_matches("Error: ").strip_prefix("Exit code ")?;
    let digits = rest.find(|ch: char| !ch.is_ascii_digit() && ch != '-').unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

fn plural(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, noun) => format!("1 {noun}"),
        (n, noun) => format!("{n} {noun}s"),
    }
}

fn short_count(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
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
