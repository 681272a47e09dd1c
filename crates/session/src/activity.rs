//! The activity of one log: its tool calls with their outcomes and durations, its prompts and compactions,
//! and the time that the model worked or a person was waited for.
//!
//! An overview needs these of every log of a home, and building each [`Session`](crate::Session) would take
//! far longer than reading the logs. [`ActivityScan`] takes the calls and times of a line from its sketch,
//! and parses only prompts, failed results, compactions and lines with unusual syntax.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::{HashMap, HashSet};
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use threadline_entry::lens::{BashEditDiff, BashResult, Block, FromJson, Lens, Progress};
use threadline_entry::{
    BlockKind, BlockSketch, Entry, Json, Kind, LineSketch, LogLine, Millis, decode, key, parse_line,
    parse_timestamp, value, walk,
};

use crate::command_group::command_group;
use crate::input::InputKind;
use crate::tool_call::{ToolOutcome, result_outcome};

/// A pause longer than this is idle time, whatever follows it: the machine slept, or a question was not
/// answered.
pub const MAX_PAUSE: Millis = 30 * 60 * 1000;

/// Tools that ask a person, so that the time until their result is waiting time.
const QUESTIONS: &[&str] = &["AskUserQuestion", "ExitPlanMode", "exit_plan_mode"];

/// The activity of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogActivity {
    /// The names that calls refer to by their index: tools, command groups and paths.
    pub names: Vec<String>,
    /// The tool calls, in the order of their lines. A call that the log repeats is included once.
    pub calls: Vec<CallActivity>,
    /// The prompts, slash commands and shell commands that a person typed.
    pub prompts: Vec<LineMark>,
    /// The boundaries of compactions.
    pub compactions: Vec<LineMark>,
    /// The pauses between the lines of the conversation, in order.
    pub pauses: Vec<ActivityPause>,
    /// The latest time of a message.
    pub last_at: Option<Millis>,
    /// How the conversation ends.
    pub ending: LogEnding,
    /// The paths of the files that shell commands changed, by the calls that refer to a range of them.
    pub shell_edits: Vec<u32>,
}

/// A tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallActivity {
    /// A hash that identifies the call in all logs that contain it.
    pub key: u64,
    /// When its line was written.
    pub at: Option<Millis>,
    /// The number of its line, from 1.
    pub line: u32,
    /// The name of the tool.
    pub tool: u32,
    /// The group of a shell command, or the path of an edited file.
    pub detail: Option<u32>,
    /// The time until the line of its result, in milliseconds.
    pub duration: Option<u32>,
    /// The outcome.
    pub outcome: ToolOutcome,
    /// Whether a progress line repeats the call, which the log of the sub-agent may contain, too.
    pub is_progress: bool,
    /// The first of the files that a shell command changed, in [`LogActivity::shell_edits`], and their number.
    pub shell_edits: (u32, u32),
}

/// A line that counts as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineMark {
    /// A hash that identifies the line in all logs that contain it.
    pub key: u64,
    /// When it was written.
    pub at: Option<Millis>,
    /// Its number, from 1.
    pub line: u32,
}

/// The time between two lines of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityPause {
    /// A hash that identifies the line at its start in all logs that contain it. The time after a line counts
    /// once, with the session that owns the line.
    pub key: u64,
    /// Its start.
    pub start: Millis,
    /// Its end.
    pub end: Millis,
    /// The use of the time.
    pub state: ActivityState,
}

/// The use of some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActivityState {
    /// The model or a tool worked.
    Active,
    /// The session waited for a person: for the next prompt, the answer to a question, or a refused call.
    Waiting,
    /// Nothing happened for longer than [`MAX_PAUSE`].
    Idle,
}

impl ActivityState {
    /// Returns the name in links and in the public JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
        }
    }

    /// Returns the state with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Active, Self::Waiting, Self::Idle].into_iter().find(|state| state.name() == name)
    }
}

/// How the conversation of a log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEnding {
    /// The log contains no conversation.
    #[default]
    Empty,
    /// With a prompt or a result, so that the model should reply.
    Working,
    /// With a reply, an error or an interruption, so that a person should continue.
    Replied,
    /// With a call of this tool that has no result yet.
    Called(u32),
    /// With a question of this tool that has no answer yet.
    Asked(u32),
}

/// Scans the lines of one log.
#[derive(Debug, Default)]
pub struct ActivityScan {
    out: LogActivity,
    name_ids: HashMap<String, u32>,
    /// The calls without a result, by a hash of their id.
    open_calls: HashMap<u64, u32>,
    keys: HashSet<u64>,
    /// The last line of the conversation: a hash that identifies it, and its time.
    last: Option<(u64, Millis)>,
    n_lines: u32,
    /// The offset at which the next line begins, unless one was skipped.
    next_offset: u64,
}

impl ActivityScan {
    /// Scans the next line. `sketch` is `None` if it has none.
    pub fn line(&mut self, line: &LogLine<'_>, sketch: Option<&LineSketch<'_>>) {
        if line.at.byte_offset > self.next_offset {
            // The reader skipped a line that is too long.
            self.n_lines = self.n_lines.saturating_add(1);
        }
        self.next_offset = line.at.byte_offset + line.bytes.len() as u64 + 1;
        self.n_lines = self.n_lines.saturating_add(1);
        match sketch {
            Some(sketch) => self.add(line, sketch),
            // Each object of a line is read on its own.
            None => parse_line(line, |entry, _| {
                self.add_entry(&LogLine { bytes: entry.as_bytes(), ..*line }, &entry);
            }),
        }
    }

    /// Returns the activity of the lines.
    pub fn finish(self) -> LogActivity {
        self.out
    }

    /// Adds a line that has unusual syntax, or one of the objects of a line.
    fn add_entry(&mut self, line: &LogLine<'_>, entry: &Entry) {
        let progress = entry.lens::<Progress<'_>>().filter(|_| entry.kind() == Kind::Progress);
        let inner = progress.and_then(|progress| progress.data()?.message());
        let around = |key: &str| inner.map_or_else(|| entry.get(key), |inner| inner.get(key));
        let message = match inner {
            Some(inner) => inner.get(key::MESSAGE).filter(|message| message.is_object()),
            None => entry.message().map(|message| message.object().json()),
        };
        let in_message = |key: &str| message.and_then(|message| message.get(key));
        let texts = [
            entry.get(key::UUID),
            entry.get(key::TIMESTAMP).or_else(|| in_message(key::TIMESTAMP)),
            in_message(key::ID),
            around(key::REQUEST_ID),
            entry.get(key::SUBTYPE),
        ];
        let texts = texts.map(|json| json.and_then(Json::as_str));
        let [uuid, timestamp, message_id, request_id, subtype] = texts.each_ref().map(as_bytes);
        let queued = InputKind::of_attachment(entry).map(|_| value::QUEUED_COMMAND.as_bytes());
        let content = in_message(key::CONTENT).into_iter().flat_map(Json::items);
        let content: Vec<Block<'_>> = content.filter_map(Block::from_json).collect();
        let names = content.iter().map(|block| [block.id().or_else(|| block.tool_use_id()), block.name()]);
        let names: Vec<_> = names.collect();
        let blocks = content.iter().zip(&names).map(|(block, names)| {
            let [id, name] = names.each_ref().map(as_bytes);
            BlockSketch {
                kind: block.kind().map(|kind| BlockKind::named(kind.as_bytes())).unwrap_or_default(),
                is_error: block.is_error().unwrap_or(false),
                id,
                name,
                input: block.input().map(|input| input.raw().as_bytes()),
            }
        });
        let sketch = LineSketch {
            kind: Some(entry.kind()),
            uuid,
            timestamp,
            is_sidechain: entry.is_sidechain(),
            message_id,
            request_id,
            subtype,
            body_type: queued,
            tool_use_result: entry.tool_use_result().map(|result| result.json().raw().as_bytes()),
            blocks: blocks.collect(),
        };
        self.add(line, &sketch);
    }

    /// Adds a line.
    fn add(&mut self, line: &LogLine<'_>, read: &LineSketch<'_>) {
        let calls = || read.blocks.iter().filter(|block| block.kind.is_call());
        let results = || read.blocks.iter().filter(|block| block.kind.is_result());
        let has_results = results().next().is_some();
        let matters = match read.kind {
            Some(Kind::User | Kind::Assistant) => true,
            Some(Kind::Progress) => has_results || calls().next().is_some(),
            Some(Kind::Attachment) => read.body_type == Some(value::QUEUED_COMMAND.as_bytes()),
            Some(Kind::System) => read.subtype == Some(value::COMPACT_BOUNDARY.as_bytes()),
            _ => false,
        };
        if !matters {
            return;
        }
        let at = read.timestamp.and_then(|text| parse_timestamp(std::str::from_utf8(text).ok()?));
        self.out.last_at = self.out.last_at.max(at);
        let mark = LineMark { key: line_key(read, line), at, line: self.n_lines };
        let mut failures = FailureOutcomes::of(line);
        match read.kind {
            Some(Kind::Assistant | Kind::Progress) => {
                let mut call = None;
                for block in calls() {
                    call = self.add_call(read, block, at).or(call);
                }
                for block in results() {
                    self.add_result(&mut failures, block, at);
                }
                if read.kind == Some(Kind::Assistant) && !read.is_sidechain {
                    self.pass(&mark, ActivityState::Active);
                    self.out.ending = match call {
                        Some(tool) if self.is_question(tool) => LogEnding::Asked(tool),
                        Some(tool) => LogEnding::Called(tool),
                        None => LogEnding::Replied,
                    };
                }
            }
            Some(Kind::User) if has_results => {
                let mut state = ActivityState::Active;
                for (i, block) in results().enumerate() {
                    if i == 0 {
                        self.add_shell_edits(line, read, block);
                    }
                    if self.add_result(&mut failures, block, at) {
                        state = ActivityState::Waiting;
                    }
                }
                if !read.is_sidechain {
                    self.pass(&mark, state);
                    self.out.ending = LogEnding::Working;
                }
            }
            Some(Kind::User) if !read.is_sidechain => self.add_input(line, &mark),
            Some(Kind::Attachment) if !read.is_sidechain => {
                let is_prompt =
                    |entry: &Entry| InputKind::of_attachment(entry) == Some(InputKind::QueuedPrompt);
                if only_entry(line).as_ref().is_some_and(is_prompt) {
                    self.out.prompts.extend(self.keys.insert(mark.key).then_some(mark));
                }
            }
            Some(Kind::System) => {
                self.out.compactions.extend(self.keys.insert(mark.key).then_some(mark));
            }
            _ => {}
        }
    }

    /// Adds a user line without results.
    fn add_input(&mut self, line: &LogLine<'_>, mark: &LineMark) {
        let input = only_entry(line).map_or(InputKind::Meta, |entry| InputKind::of_user(&entry));
        if input.is_typed() {
            self.out.prompts.extend(self.keys.insert(mark.key).then_some(*mark));
            self.pass(mark, ActivityState::Waiting);
        } else {
            self.pass(mark, ActivityState::Active);
        }
        let ends = input.is_command_output() || matches!(input, InputKind::Interrupt | InputKind::HookStop);
        self.out.ending = if ends { LogEnding::Replied } else { LogEnding::Working };
    }

    /// Adds a call. Returns its tool.
    fn add_call(
        &mut self,
        read: &LineSketch<'_>,
        block: &BlockSketch<'_>,
        at: Option<Millis>,
    ) -> Option<u32> {
        let id = block.id.unwrap_or_default();
        let name = std::str::from_utf8(block.name?).ok()?;
        let key = call_key(read, id);
        let tool = self.name(name);
        if !self.keys.insert(key) {
            return Some(tool);
        }
        let detail = self.detail(name, block.input);
        let next = self.out.calls.len() as u32;
        self.out.calls.push(CallActivity {
            key,
            at,
            line: self.n_lines,
            tool,
            detail,
            duration: None,
            outcome: ToolOutcome::Missing,
            is_progress: read.kind == Some(Kind::Progress),
            shell_edits: (0, 0),
        });
        self.open_calls.insert(hash(&[id]), next);
        Some(tool)
    }

    /// Adds the files that a shell command changed, from the line of its result, before the result is joined.
    fn add_shell_edits(&mut self, line: &LogLine<'_>, read: &LineSketch<'_>, block: &BlockSketch<'_>) {
        static KEY: LazyLock<Finder<'static>> =
            LazyLock::new(|| Finder::new(key::quoted::BASH_EDIT_DIFF.as_bytes()));
        let has_changes = |result: &[u8]| KEY.find(result).is_some();
        if block.is_error || !read.tool_use_result.is_some_and(has_changes) {
            return;
        }
        let Some(place) = self.open_calls.get(&hash(&[block.id.unwrap_or_default()])).copied() else {
            return;
        };
        let tool = self.out.calls.get(place as usize).and_then(|call| self.out.names.get(call.tool as usize));
        if !tool.is_some_and(|tool| matches!(&**tool, "Bash" | "PowerShell")) {
            return;
        }
        let paths = only_entry(line).map(|entry| changed_paths(&entry)).unwrap_or_default();
        let first = self.out.shell_edits.len() as u32;
        for path in &paths {
            let path = self.name(path);
            self.out.shell_edits.push(path);
        }
        if let Some(call) = self.out.calls.get_mut(place as usize) {
            call.shell_edits = (first, paths.len() as u32);
        }
    }

    /// Joins a result with its call. Returns whether a person was asked.
    fn add_result(
        &mut self,
        failures: &mut FailureOutcomes<'_>,
        block: &BlockSketch<'_>,
        at: Option<Millis>,
    ) -> bool {
        let id = block.id.unwrap_or_default();
        let Some(place) = self.open_calls.remove(&hash(&[id])) else { return false };
        // Results of successful calls need not be parsed.
        let outcome = if block.is_error { failures.get(id) } else { ToolOutcome::Ok };
        let Some(call) = self.out.calls.get_mut(place as usize) else { return false };
        call.outcome = outcome;
        call.duration = at.zip(call.at).map(|(end, start)| (end - start).clamp(0, u32::MAX.into()) as u32);
        let tool = call.tool;
        outcome == ToolOutcome::Denied || self.is_question(tool)
    }

    /// Returns the command group or the edited file of a call.
    fn detail(&mut self, tool: &str, input: Option<&[u8]>) -> Option<u32> {
        let key = match tool {
            "Bash" => "command",
            "Edit" | "Write" | "MultiEdit" => "file_path",
            "NotebookEdit" => "notebook_path",
            _ => return None,
        };
        let text = input_text(input?, key)?;
        if tool == "Bash" { Some(self.name(&command_group(&text))) } else { Some(self.name(&text)) }
    }

    fn is_question(&self, tool: u32) -> bool {
        self.out.names.get(tool as usize).is_some_and(|name| QUESTIONS.contains(&&**name))
    }

    /// Adds the time since the last line of the conversation.
    fn pass(&mut self, mark: &LineMark, state: ActivityState) {
        let Some(at) = mark.at else { return };
        let Some((key, start)) = self.last else {
            self.last = Some((mark.key, at));
            return;
        };
        // Lines that a log repeats are older than those before them.
        if at <= start {
            return;
        }
        self.last = Some((mark.key, at));
        let state = if at - start > MAX_PAUSE { ActivityState::Idle } else { state };
        self.out.pauses.push(ActivityPause { key, start, end: at, state });
    }

    /// Returns the index of a name.
    fn name(&mut self, name: &str) -> u32 {
        if let Some(id) = self.name_ids.get(name) {
            return *id;
        }
        let id = self.out.names.len() as u32;
        self.out.names.push(name.to_owned());
        self.name_ids.insert(name.to_owned(), id);
        id
    }
}

fn as_bytes<'t>(text: &'t Option<Cow<'_, str>>) -> Option<&'t [u8]> {
    text.as_deref().map(str::as_bytes)
}

/// Returns the entry of a line that contains exactly one.
fn only_entry(line: &LogLine<'_>) -> Option<Entry> {
    let mut entries = Vec::new();
    parse_line(line, |entry, _| entries.push(entry));
    entries.pop().filter(|_| entries.is_empty())
}

/// Returns the paths of the files that a shell command changed.
fn changed_paths(entry: &Entry) -> Vec<String> {
    let result = entry.tool_use_result().and_then(|result| result.of::<BashResult<'_>>());
    let files = result.and_then(BashResult::bash_edit_diff).map(BashEditDiff::changed_files_once);
    files.into_iter().flatten().map(|(path, _)| path.into_owned()).collect()
}

/// The outcomes of the failed calls of a line, which is parsed when the first one is needed.
struct FailureOutcomes<'l> {
    line: &'l LogLine<'l>,
    by_id: Option<HashMap<Vec<u8>, ToolOutcome>>,
}

impl<'l> FailureOutcomes<'l> {
    fn of(line: &'l LogLine<'l>) -> Self {
        Self { line, by_id: None }
    }

    /// Returns the outcome of a call.
    fn get(&mut self, id: &[u8]) -> ToolOutcome {
        let by_id = self.by_id.get_or_insert_with(|| {
            let mut by_id = HashMap::default();
            parse_line(self.line, |entry, _| {
                for block in entry.message().into_iter().flat_map(|message| message.blocks()) {
                    if let Some(id) = block.tool_use_id() {
                        // The first result of a call decides.
                        let id = id.as_bytes().to_vec();
                        by_id.entry(id).or_insert_with(|| result_outcome(&entry, block));
                    }
                }
            });
            by_id
        });
        by_id.get(id).copied().unwrap_or(ToolOutcome::Error)
    }
}

/// Returns a member of the input of a call, if it is a string.
fn input_text<'i>(input: &'i [u8], key: &str) -> Option<Cow<'i, str>> {
    let mut found = None;
    walk::visit_members(input, 0, |name, start| {
        let end = walk::skip_value(input, start);
        if name != key.as_bytes() {
            return Some(end);
        }
        found = input.get(start..end);
        None
    });
    let text = std::str::from_utf8(found?).ok()?;
    Some(decode(text.strip_prefix('"')?.strip_suffix('"')?))
}

/// Returns the hash that identifies a call. Only ids of the API are unique.
fn call_key(read: &LineSketch<'_>, id: &[u8]) -> u64 {
    match (read.message_id, read.request_id) {
        (Some(message), _) if message.starts_with(b"msg_") => hash(&[b"call", message, id]),
        (Some(message), Some(request)) => hash(&[b"request", message, request, id]),
        (message, _) => hash(&[b"time", message.unwrap_or_default(), read.timestamp.unwrap_or_default(), id]),
    }
}

/// Returns the hash that identifies a line.
fn line_key(read: &LineSketch<'_>, line: &LogLine<'_>) -> u64 {
    match (read.uuid, read.timestamp) {
        (Some(uuid), _) => hash(&[b"uuid", uuid]),
        (None, Some(time)) => hash(&[b"line", time]),
        (None, None) => hash(&[b"line", line.bytes]),
    }
}

/// Returns a 64-bit hash of several texts and their boundaries. Two of a million differ with a probability of
/// about 1 − 10⁻⁷.
fn hash(parts: &[&[u8]]) -> u64 {
    const FACTOR: u64 = 0xa076_1d64_78bd_642f;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for part in parts {
        for chunk in part.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            state = fold(state ^ u64::from_le_bytes(word), FACTOR);
        }
        state = fold(state ^ part.len() as u64, 0xe703_7ed1_a0b4_28db);
    }
    state
}

#[cfg(test)]
mod tests;
