//! Summaries of turns: prompts, tool calls and answers.

use std::borrow::Cow;
use std::mem;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{AttachmentLine, Lens, System, TaskResult};
use threadline_entry::{Entry, Json, Kind, key, value};
use threadline_session::{EntryIndex, InputKind, Session, ToolCall, ToolOutcome};

use super::extract::{WordFrequency, cut, extract};
use super::fact::{CallFact, FactLimits, call_fact, is_todo_tool, one_line, relative_to};

/// The level of detail of a turn's summary. Prompts are included in full at every level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SummaryLevel {
    /// One sentence of the answer, and the changed files.
    Bare,
    /// The main sentences of the answer; changes, failures and decisions.
    Short,
    /// A third of the answers, and one line per call.
    Long,
}

impl SummaryLevel {
    /// Returns the name of the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Short => "short",
            Self::Long => "long",
        }
    }

    /// Returns the share of the answers to keep, and the maximum number of bytes.
    fn answer(self) -> (f64, usize) {
        match self {
            Self::Bare => (0.02, 240),
            Self::Short => (0.12, 1000),
            Self::Long => (0.35, 6000),
        }
    }

    fn limits(self) -> FactLimits {
        match self {
            Self::Bare | Self::Short => FactLimits { subject: 100, outcome: 0, agent: 400 },
            Self::Long => FactLimits { subject: 200, outcome: 120, agent: 1200 },
        }
    }
}

/// The content of a segment of the conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentContent<'s> {
    prompts: Vec<Cow<'s, str>>,
    /// Summaries by earlier compactions.
    summaries: Vec<Cow<'s, str>>,
    texts: Vec<Cow<'s, str>>,
    calls: Vec<&'s ToolCall>,
    /// Other events, such as interruptions and notifications, each with its text.
    events: Vec<(String, Cow<'s, str>)>,
}

impl<'s> SegmentContent<'s> {
    /// Collects the content of some lines.
    pub(crate) fn of(session: &'s Session, lines: &[EntryIndex]) -> Self {
        let mut collected = Self::default();
        for &idx in lines {
            let entry = &session.entries()[idx];
            match entry.kind() {
                Kind::Assistant => collected.add_reply(session, idx, entry),
                Kind::User | Kind::Attachment => collected.add_input(session, idx, entry),
                Kind::System => {
                    let text = entry.get(key::CONTENT).and_then(|content| content.as_str());
                    let command =
                        entry.get(key::SUBTYPE).is_some_and(|subtype| subtype.is_str(value::LOCAL_COMMAND));
                    let typed = text.filter(|_| command).and_then(|text| typed_command(&text));
                    collected.events.extend(typed.map(|typed| (typed, "".into())));
                }
                _ => {}
            }
        }
        collected
    }

    fn add_reply(&mut self, session: &'s Session, idx: EntryIndex, entry: &'s Entry) {
        // Replies inserted by Claude Code are not answers.
        let model = entry.message().and_then(|message| message.model());
        if entry.is_api_error() || model.as_deref() == Some(value::SYNTHETIC_MODEL) {
            return;
        }
        for block in entry.message().into_iter().flat_map(|message| message.blocks()) {
            if let Some(text) =
                block.text().filter(|_| block.is(value::TEXT)).filter(|text| !text.trim().is_empty())
            {
                self.texts.push(text);
            } else if block.is(value::TOOL_USE) {
                self.calls.extend(session.tool_call_on(idx, &block.id().unwrap_or_default()));
            }
        }
    }

    fn add_input(&mut self, session: &'s Session, idx: EntryIndex, entry: &'s Entry) {
        let Some(input) = session.input(idx) else { return };
        let said = || match entry.kind() {
            Kind::Attachment => {
                let line: Option<AttachmentLine<'s>> = entry.lens();
                let prompt = line.and_then(|line| line.attachment()?.object().get("prompt")).map(text_of);
                prompt.unwrap_or_default()
            }
            Kind::System => entry.lens::<System<'s>>().and_then(System::content).unwrap_or_default(),
            _ => entry
                .message()
                .and_then(|message| message.content())
                .map(|content| text_of(content.json()))
                .unwrap_or_default(),
        };
        match input {
            InputKind::CompactSummary => self.summaries.push(said()),
            InputKind::SlashCommand | InputKind::BashInput => {
                let said = said();
                self.prompts.push(typed_command(&said).map_or(said, Cow::Owned));
            }
            input if input.is_typed() => self.prompts.push(said()),
            InputKind::TeammateMessage
            | InputKind::TaskNotification
            | InputKind::QueuedNotification
            | InputKind::HostEvent => {
                let said = said();
                let (summary, result) = (tag_text(&said, "summary"), tag_text(&said, "result"));
                let about =
                    summary.map_or_else(|| input.name().replace('_', " "), |summary| one_line(summary, 300));
                let rest = result.or(summary.is_none().then_some(&*said)).unwrap_or_default().to_owned();
                self.events.push((about, rest.into()));
            }
            // Text typed while a tool ran is logged next to its result.
            InputKind::ToolResult => {
                let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
                let typed = blocks.filter(|block| block.is(value::TEXT)).filter_map(|block| block.text());
                self.prompts.extend(typed.filter(|text| !text.trim_start().starts_with(['<', '['])));
            }
            InputKind::Interrupt => self.events.push(("interrupted by the user".to_owned(), "".into())),
            InputKind::HookStop => self.events.push((one_line(&said(), 160), "".into())),
            InputKind::CommandOutput | InputKind::BashOutput => {
                let said = said();
                let inner = said.split(['<', '>']).find(|part| part.contains(' ') || part.len() > 30);
                self.events
                    .extend(inner.map(|inner| (format!("output: {}", one_line(inner, 160)), "".into())));
            }
            _ => {}
        }
    }

    /// Returns the answers, to count the frequency of words.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// Writes the summary of the segment.
    pub(crate) fn write(
        &self,
        session: &Session,
        level: SummaryLevel,
        root: Option<&str>,
        frequency: &WordFrequency,
        out: &mut String,
    ) {
        let mut part = |name: &str, text: &str| {
            if !text.trim().is_empty() {
                let parts = ["<", name, ">\n", text.trim_matches('\n'), "\n</", name, ">\n"];
                out.extend(parts);
            }
        };
        self.summaries.iter().for_each(|text| part("earlier-summary", text));
        self.prompts.iter().for_each(|text| part("asked", text));
        let mut done = self.done(session, level, root);
        if level > SummaryLevel::Bare {
            done.extend(self.events.iter().map(|(about, rest)| {
                let said = extract(&[rest], 0.3, level.limits().agent, frequency).replace('\n', " ");
                if said.is_empty() { about.clone() } else { format!("{about} → {said}") }
            }));
        }
        let done: Vec<String> = done.into_iter().map(|line| format!("- {line}")).collect();
        part("done", &done.join("\n"));
        let texts: Vec<&str> = self.texts().collect();
        let (share, most) = level.answer();
        part("answered", &extract(&texts, share, most, frequency));
    }

    /// Returns one line per reported call.
    fn done(&self, session: &Session, level: SummaryLevel, root: Option<&str>) -> Vec<String> {
        let mut facts = FactLines::default();
        let mut passed_over = NameCounter::default();
        for &call in &self.calls {
            if is_todo_tool(&call.name) {
                continue;
            }
            let fact = call_fact(session, call, root, level.limits());
            let class = CallClass::of(&fact);
            if let Some(plan) = plan(session, call).filter(|_| level > SummaryLevel::Bare) {
                let most = if level == SummaryLevel::Long { 8000 } else { 2000 };
                facts.push(CallFact { outcome: format!("{}\n{}", fact.outcome, cut(&plan, most)), ..fact });
                continue;
            }
            let is_included = match level {
                SummaryLevel::Bare => class == CallClass::Change || class == CallClass::Decision,
                SummaryLevel::Short => !matches!(class, CallClass::Read | CallClass::Other),
                SummaryLevel::Long => true,
            };
            if !is_included && level == SummaryLevel::Short {
                passed_over.add(read_label(&fact.tool));
            }
            if is_included {
                facts.add(fact);
            }
        }
        let lines = facts.lines;
        // A failed call is omitted if the same call succeeded later.
        let succeeded = lines.iter().enumerate().filter(|(_, (_, fact))| fact.ok);
        let last_success: HashMap<(&str, &str), usize> =
            succeeded.map(|(at, (_, fact))| ((&*fact.tool, &*fact.subject), at)).collect();
        let is_superseded = |at: usize, fact: &CallFact| {
            let success = last_success.get(&(&*fact.tool, &*fact.subject));
            !fact.ok && !fact.subject.is_empty() && success.is_some_and(|success| *success > at)
        };
        let lines = lines.iter().enumerate().filter(|(at, (_, fact))| !is_superseded(*at, fact));
        let mut out: Vec<String> = lines.map(|(_, (times, fact))| fact.line() + times).collect();
        if !passed_over.counts.is_empty() {
            let counts = passed_over.counts.iter().map(|(word, count)| plural(word, *count));
            let counts: Vec<String> = counts.collect();
            let beside = if out.is_empty() { "" } else { "also: " };
            out.push(format!("{beside}{}", counts.join(", ")));
        }
        out
    }

    /// Returns the paths of the changed files, once per successful call.
    pub(crate) fn changed_files(&self, session: &Session, root: Option<&str>) -> Vec<String> {
        let changes = self.calls.iter().filter(|call| {
            matches!(&*call.name, "Write" | "Edit" | "MultiEdit" | "NotebookEdit")
                && call.outcome(session) == ToolOutcome::Ok
        });
        let path = |input: Json<'_>| {
            let path = input.get("file_path").or_else(|| input.get("notebook_path"))?.as_str()?;
            Some(relative_to(&path, root).to_owned())
        };
        changes.filter_map(|call| path(call.block(session)?.input()?)).collect()
    }

    /// Applies the calls to a to-do list.
    pub(crate) fn update_todos(&self, session: &Session, todos: &mut TodoList) {
        for &call in &self.calls {
            let Some(input) = call.block(session).and_then(|block| block.input()) else { continue };
            let text = |json: Json<'_>, key: &str| {
                json.get(key).and_then(|value| value.as_str()).map(Cow::into_owned)
            };
            match &*call.name {
                "TodoWrite" => {
                    let items = input.get("todos").into_iter().flat_map(|todos| todos.items());
                    let todo = |item| {
                        let status = text(item, "status").unwrap_or_default();
                        Some(TodoItem { status, subject: text(item, "content")? })
                    };
                    *todos = TodoList { items: items.filter_map(todo).collect(), ..TodoList::default() };
                }
                "TaskCreate" => {
                    let record = call.results.first().and_then(|at| at.record(session));
                    let result: Option<TaskResult<'_>> = record.and_then(|record| record.of());
                    let id = result.and_then(|result| result.task()?.id()).map(Cow::into_owned);
                    if let (Some(id), Some(subject)) = (id, text(input, "subject")) {
                        todos.places.entry(id).or_insert(todos.items.len());
                        todos.items.push(TodoItem { status: "pending".to_owned(), subject });
                    }
                }
                "TaskUpdate" => {
                    let place = text(input, "taskId").and_then(|id| todos.places.get(&id).copied());
                    if let Some(todo) = place.and_then(|place| todos.items.get_mut(place)) {
                        todo.status = text(input, "status").unwrap_or(mem::take(&mut todo.status));
                        todo.subject = text(input, "subject").unwrap_or(mem::take(&mut todo.subject));
                    }
                }
                _ => {}
            }
        }
    }
}

/// A to-do list.
#[derive(Default)]
pub(crate) struct TodoList {
    pub(crate) items: Vec<TodoItem>,
    /// The places of the items that have an id.
    places: HashMap<String, usize>,
}

/// An item of a to-do list.
pub(crate) struct TodoItem {
    pub(crate) status: String,
    pub(crate) subject: String,
}

/// The kind of a call, which decides the levels that report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallClass {
    /// It changed a file.
    Change,
    /// The person decided something.
    Decision,
    /// It failed.
    Failure,
    /// A sub-agent answered.
    Agent,
    /// An unknown tool.
    Other,
    /// It only read something.
    Read,
}

impl CallClass {
    fn of(fact: &CallFact) -> Self {
        match &*fact.tool {
            "AskUserQuestion" | "ExitPlanMode" => Self::Decision,
            _ if fact.outcome.starts_with("denied by the user") => Self::Decision,
            "Bash" if !fact.ok => Self::Failure,
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" if fact.ok => Self::Change,
            "Agent" => Self::Agent,
            // A failed read is not worth reporting.
            "Read" | "Grep" | "Glob" | "WebFetch" | "WebSearch" | "ToolSearch" | "Skill" | "Bash" | "LS" => {
                Self::Read
            }
            _ if !fact.ok => Self::Failure,
            _ => Self::Other,
        }
    }
}

fn read_label(what: &str) -> String {
    let word = match what {
        "Read" => "file read",
        "Grep" | "Glob" | "ToolSearch" | "LS" => "search",
        "Bash" => "successful command",
        "WebFetch" | "WebSearch" => "web request",
        other => return format!("call of {}", other.rsplit("__").next().unwrap_or(other)),
    };
    word.to_owned()
}

fn plural(word: &str, count: usize) -> String {
    match (count, word) {
        (1, word) => format!("1 {word}"),
        (n, "search") => format!("{n} searches"),
        (n, "successful command") => format!("{n} successful commands"),
        (n, "web request") => format!("{n} web requests"),
        (n, "file read") => format!("{n} files read"),
        (n, word) => format!("{n} {}", word.replacen("call", "calls", 1)),
    }
}

/// Counts names, in the order in which each came first.
#[derive(Default)]
pub(crate) struct NameCounter {
    pub(crate) counts: Vec<(String, usize)>,
    places: HashMap<String, usize>,
}

impl NameCounter {
    pub(crate) fn add(&mut self, name: String) {
        match self.places.get(&name) {
            Some(place) => self.counts[*place].1 += 1,
            None => {
                self.places.insert(name.clone(), self.counts.len());
                self.counts.push((name, 1));
            }
        }
    }
}

/// The facts to report, with how often each came in a row.
#[derive(Default)]
struct FactLines {
    lines: Vec<(String, CallFact)>,
    /// The lines of successful edits, by tool and subject.
    edits: HashMap<(String, String), usize>,
    /// The subjects of the last line, if several facts are merged into it.
    merged: HashSet<String>,
}

impl FactLines {
    /// Adds a fact, merged with a similar one if possible.
    fn add(&mut self, fact: CallFact) {
        if let Some((_, last)) = self.lines.last_mut()
            && last.tool == fact.tool
            && is_mergeable(&fact)
            && last.ok
        {
            if self.merged.insert(fact.subject.clone()) {
                last.subject.push_str(", ");
                last.subject.push_str(&fact.subject);
            }
            return;
        }
        if fact.ok && matches!(&*fact.tool, "Edit" | "MultiEdit") {
            let known = self.edits.entry((fact.tool.to_string(), fact.subject.clone()));
            let place = *known.or_insert(self.lines.len());
            if let Some((_, other)) = self.lines.get_mut(place) {
                if let (Some((a, b)), Some((c, d))) = (counts(&other.outcome), counts(&fact.outcome)) {
                    other.outcome = format!("+{} −{}", a + c, b + d);
                }
                return;
            }
        }
        if let Some((times, last)) = self.lines.last_mut()
            && *last == fact
        {
            let count: usize =
                times.trim_matches([' ', '(', ')']).trim_end_matches(" times").parse().unwrap_or(1);
            *times = format!(" ({} times)", count + 1);
            return;
        }
        self.push(fact);
    }

    fn push(&mut self, fact: CallFact) {
        if is_mergeable(&fact) {
            self.merged.clear();
            self.merged.insert(fact.subject.clone());
        }
        self.lines.push((String::new(), fact));
    }
}

/// Returns whether several such facts in a row are one line.
fn is_mergeable(fact: &CallFact) -> bool {
    fact.ok && matches!(&*fact.tool, "Read" | "Glob" | "Skill" | "ToolSearch")
}

fn counts(outcome: &str) -> Option<(usize, usize)> {
    let (added, removed) = outcome.strip_prefix('+')?.split_once(" −")?;
    Some((added.parse().ok()?, removed.parse().ok()?))
}

/// Returns the plan that a call proposed.
fn plan(session: &Session, call: &ToolCall) -> Option<String> {
    let plan = call.block(session)?.input()?.get("plan")?.as_str()?.into_owned();
    (call.name == "ExitPlanMode" && !plan.trim().is_empty()).then_some(plan)
}

/// Returns the text of a message content, with a placeholder for each image or document.
fn text_of(content: Json<'_>) -> Cow<'_, str> {
    if let Some(text) = content.as_str() {
        return text;
    }
    let mut out = String::new();
    for block in content.items() {
        let text = match block.get(key::TYPE).and_then(|kind| kind.as_str()).as_deref() {
            Some("text") => block.get(key::TEXT).and_then(|text| text.as_str()).unwrap_or_default(),
            Some("image") => "[image]".into(),
            Some("document") => "[document]".into(),
            _ => continue,
        };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&text);
    }
    // Kept as long as the compression.
    out.shrink_to_fit();
    out.into()
}

/// Returns a command as the person typed it.
fn typed_command(text: &str) -> Option<String> {
    if let Some(command) = tag_text(text, "bash-input") {
        return Some(format!("! {command}"));
    }
    let name = tag_text(text, "command-name")?.trim();
    let args = tag_text(text, "command-args").unwrap_or_default().trim();
    let slash = if name.starts_with('/') { "" } else { "/" };
    Some(format!("{slash}{name} {args}").trim_end().to_owned())
}

/// Returns the text inside the first tag with this name.
fn tag_text<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}
