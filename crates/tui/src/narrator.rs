//! Translates events of the agent to messages for the screen. It runs on the agent's thread.

mod call;

use std::sync::Arc;
use std::time::Instant;

use serde_json::value::RawValue;
use threadline_agent::{
    AgentEvent, CompactionEvent, RetryKind, SubAgentEvent, SubAgentSource, TurnEnd, TurnSummary,
};
use threadline_api::{BlockKind, Delta, RawObject, StreamEvent, Usage};
use threadline_entry::write::SyntheticLine;
use threadline_entry::{Millis, value};
use threadline_term::{MarkdownStream, TermText, TextLabel, text, visible};
use threadline_view::humanize::{count, duration};

use self::call::{CallResult, OpenCalls};
use crate::message::{AgentMessage, BackgroundTask, Phase, SubAgentProgress, TurnOutcome};
use crate::page::SharedPage;
use crate::queue::EventQueue;

/// The longest thinking text that is kept for its first words.
const THINKING_START: usize = 400;

/// Translates events of the agent.
pub(crate) struct Narrator {
    queue: Arc<EventQueue>,
    page: Arc<SharedPage>,
    markdown: MarkdownStream,
    /// Whether text of the current block was sent.
    has_text: bool,
    /// The text of the current reply that was sent, so that a repeated reply can be recognised.
    is_replying: bool,
    thinking: Option<ThinkingBlock>,
    calls: OpenCalls,
    tasks: Vec<BackgroundTask>,
    compaction_error: Option<String>,
    /// Tokens before the reply, and of the reply.
    context: u64,
    output: u64,
    /// The output of finished replies of this turn.
    finished_output: u64,
}

struct ThinkingBlock {
    start: Instant,
    text: String,
}

impl Narrator {
    pub(crate) fn new(queue: Arc<EventQueue>, page: Arc<SharedPage>) -> Self {
        Self {
            queue,
            page,
            markdown: MarkdownStream::new(),
            has_text: false,
            is_replying: false,
            thinking: None,
            calls: OpenCalls::default(),
            tasks: Vec::new(),
            compaction_error: None,
            context: 0,
            output: 0,
            finished_output: 0,
        }
    }

    pub(crate) fn send(&self, message: AgentMessage) {
        self.queue.push_agent(message);
    }

    fn print(&self, lines: Vec<TermText>) {
        if !lines.is_empty() {
            self.send(AgentMessage::Print(lines));
        }
    }

    /// Prints wrapped text in one style, after an empty line.
    fn print_note(&self, label: TextLabel, note: &str) {
        self.print(note_lines(&self.page, label, note));
    }

    pub(crate) fn event(&mut self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::TurnStart => {
                self.finished_output = 0;
                self.send(AgentMessage::TurnStart);
            }
            AgentEvent::Requesting => self.send(AgentMessage::Phase(Phase::Requesting)),
            AgentEvent::Retry { attempt, max_retries, delay, status, kind } => {
                self.send(AgentMessage::Phase(Phase::Retrying {
                    attempt: *attempt,
                    max_retries: *max_retries,
                    delay: *delay,
                    reason: retry_reason(*kind, *status),
                }));
            }
            AgentEvent::Stream { raw, .. } => self.stream(raw),
            AgentEvent::Assistant { message, error, uuid, .. } => self.assistant(uuid, message, *error),
            AgentEvent::ToolStart { tool_use_id, name } => {
                let subject = self.calls.start(tool_use_id);
                self.send(AgentMessage::CallStart {
                    id: (*tool_use_id).to_owned(),
                    name: (*name).to_owned(),
                    subject,
                });
            }
            AgentEvent::ToolOutput { tool_use_id, text } => self
                .send(AgentMessage::CallOutput { id: (*tool_use_id).to_owned(), text: (*text).to_owned() }),
            AgentEvent::User {
                message, timestamp, tool_use_result, is_synthetic, is_interrupted, ..
            } => {
                let result = CallResult {
                    timestamp: *timestamp,
                    record: *tool_use_result,
                    is_interrupted: *is_interrupted,
                };
                self.user(message, result, *is_synthetic);
            }
            AgentEvent::TaskStart { task_id, description, .. } => {
                let (id, description) = ((*task_id).to_owned(), (*description).to_owned());
                self.tasks.push(BackgroundTask { id, description });
                self.send(AgentMessage::BackgroundTasks(self.tasks.clone()));
            }
            AgentEvent::TaskStop { task_id, .. } => self.remove_task(task_id),
            AgentEvent::TaskEnd { task, .. } => {
                self.remove_task(&task.id);
                self.print_note(TextLabel::Dim, &format!("· {}", task.summary()));
            }
            AgentEvent::SubAgent { source, event } => self.sub_agent(source, event),
            AgentEvent::SessionChanged { session_id } => {
                self.send(AgentMessage::SessionChanged((*session_id).to_owned()));
            }
            AgentEvent::Compaction(step) => self.compaction(*step),
            AgentEvent::PromptStopped { text, .. } => self.print_note(TextLabel::Warning, text),
            AgentEvent::Notification { text, .. } => self.print_note(TextLabel::Dim, text),
            AgentEvent::Warning(text) => self.print_note(TextLabel::Warning, text),
            AgentEvent::TurnEnd(summary) => self.turn_end(summary),
            // The mode is part of the status line, and a refusal of the result that follows.
            AgentEvent::PermissionMode(_)
            | AgentEvent::Refused { .. }
            | AgentEvent::Prompt { .. }
            | AgentEvent::CommandOutput { .. }
            | AgentEvent::Hook { .. } => {}
        }
    }

    fn stream(&mut self, raw: &str) {
        match StreamEvent::parse(raw) {
            Some(StreamEvent::MessageStart { message }) => {
                if std::mem::take(&mut self.is_replying) {
                    self.restart_reply();
                }
                let usage = message.get_object("usage").map(|usage| Usage::of(&usage)).unwrap_or_default();
                self.context = usage.context();
                self.output = 0;
                self.send_tokens();
            }
            Some(StreamEvent::BlockStart { block, .. }) => match BlockKind::of(&block) {
                BlockKind::Thinking | BlockKind::RedactedThinking => {
                    self.thinking = Some(ThinkingBlock { start: Instant::now(), text: String::new() });
                    self.send(AgentMessage::Phase(Phase::Thinking));
                }
                BlockKind::Text => self.send(AgentMessage::Phase(Phase::Replying)),
                _ => {}
            },
            Some(StreamEvent::BlockDelta { delta: Delta::Text(text), .. }) => self.text(&text),
            Some(StreamEvent::BlockDelta { delta: Delta::Thinking(text), .. }) => {
                let thinking = self
                    .thinking
                    .get_or_insert_with(|| ThinkingBlock { start: Instant::now(), text: String::new() });
                if thinking.text.len() < THINKING_START {
                    thinking.text.push_str(&text);
                }
            }
            Some(StreamEvent::MessageDelta { usage: Some(usage), .. }) => {
                self.output = Usage::of(&usage).output;
                self.send_tokens();
            }
            Some(StreamEvent::MessageStop) => {
                self.is_replying = false;
                self.finished_output += std::mem::take(&mut self.output);
            }
            _ => {}
        }
    }

    fn send_tokens(&self) {
        let output = self.finished_output + self.output;
        self.send(AgentMessage::Tokens { context: self.context + self.output, output });
    }

    fn text(&mut self, text: &str) {
        self.is_replying = true;
        if !std::mem::replace(&mut self.has_text, true) {
            self.print(vec![TermText::new()]);
        }
        self.send(AgentMessage::Text(text.to_owned()));
        let (bytes, lines) = self.markdown.push(text, self.page.get());
        if bytes > 0 {
            let is_code = self.markdown.is_code();
            self.send(AgentMessage::TextFinished { bytes, lines, is_code });
        }
    }

    /// Ends the text of a reply that was cut off and is sent again.
    fn restart_reply(&mut self) {
        self.end_text();
        self.print_note(TextLabel::Warning, "The connection was lost; the reply starts again.");
    }

    fn end_text(&mut self) {
        if std::mem::take(&mut self.has_text) {
            let lines = self.markdown.finish(self.page.get());
            self.send(AgentMessage::TextFinished { bytes: usize::MAX, lines, is_code: false });
        }
    }

    /// Handles a complete block of a reply.
    fn assistant(&mut self, uuid: &str, message: &RawObject, error: Option<&str>) {
        for block in blocks(message) {
            match BlockKind::of(&block) {
                BlockKind::Text => {
                    let text = block.get_str("text").unwrap_or_default();
                    if error.is_some() {
                        self.end_text();
                        self.print_note(TextLabel::Error, &format!("✗ {text}"));
                    } else if is_command_output(message, &text) {
                        // The reason of a failed compaction was printed.
                        if self.compaction_error.take().as_deref() != Some(&*text) {
                            self.print(output_lines(&self.page, &text));
                        }
                    } else {
                        if !self.has_text && !text.trim().is_empty() {
                            self.text(&text);
                        }
                        self.end_text();
                    }
                }
                BlockKind::Thinking | BlockKind::RedactedThinking => self.end_thinking(),
                BlockKind::ToolUse => self.calls.add(uuid, message, &block),
                _ => {}
            }
        }
    }

    fn end_thinking(&mut self) {
        let Some(thinking) = self.thinking.take() else { return };
        let millis = Millis::try_from(thinking.start.elapsed().as_millis()).unwrap_or_default();
        let page = self.page.get();
        let about = format!("~ thought for {}", duration(millis));
        let start = visible(thinking.text.trim()).split_whitespace().collect::<Vec<_>>().join(" ");
        let width = page.width.unwrap_or(80).min(100);
        let line = if start.is_empty() { about } else { format!("{about}: {start}") };
        self.print(vec![
            TermText::new(),
            page.paint(TextLabel::Dim, threadline_term::truncate(&line, width)),
        ]);
    }

    fn user(&mut self, message: &RawObject, result: CallResult<'_>, is_synthetic: bool) {
        for block in blocks(message) {
            match BlockKind::of(&block) {
                BlockKind::Other(kind) if kind == value::TOOL_RESULT => {
                    let id = self.calls.result_id(&block);
                    let ended = self.calls.end(message, &block, result, self.page.get());
                    self.send(AgentMessage::CallEnd { id, lines: ended.lines });
                    if let Some(todos) = ended.todos {
                        self.send(AgentMessage::Todos(todos));
                    }
                }
                BlockKind::Text if !is_synthetic => {
                    let text = block.get_str("text").unwrap_or_default();
                    if text.starts_with("[Request interrupted") {
                        self.end_text();
                        self.thinking = None;
                        self.print_note(TextLabel::Warning, "■ interrupted");
                    }
                }
                _ => {}
            }
        }
    }

    fn remove_task(&mut self, id: &str) {
        self.tasks.retain(|task| task.id != id);
        self.send(AgentMessage::BackgroundTasks(self.tasks.clone()));
    }

    fn sub_agent(&mut self, source: &SubAgentSource, event: &SubAgentEvent) {
        let progress = |activity: &str, calls, tokens, is_finished| SubAgentProgress {
            id: source.tool_use_id.clone(),
            kind: source.agent_type.clone(),
            description: source.description.clone(),
            activity: activity.to_owned(),
            calls,
            tokens,
            is_finished,
        };
        let progress = match event {
            SubAgentEvent::Started => progress("starting", 0, 0, false),
            SubAgentEvent::Progress { activity, usage, .. } => {
                progress(activity, usage.tool_uses, usage.total_tokens, false)
            }
            SubAgentEvent::Finished { usage, .. } => progress("", usage.tool_uses, usage.total_tokens, true),
            SubAgentEvent::Prompt { .. } | SubAgentEvent::Assistant { .. } | SubAgentEvent::User { .. } => {
                return;
            }
        };
        self.send(AgentMessage::SubAgent(progress));
    }

    /// Takes the error of the last compaction, if it has failed and was printed.
    pub(crate) fn take_compaction_error(&mut self) -> Option<String> {
        self.compaction_error.take()
    }

    fn compaction(&mut self, step: CompactionEvent<'_>) {
        match step {
            CompactionEvent::Start => self.send(AgentMessage::Phase(Phase::Compacting)),
            CompactionEvent::End { error: Some(error) } => {
                self.compaction_error = Some(error.to_owned());
                self.print_note(TextLabel::Error, &format!("✗ The conversation was not compacted: {error}"));
            }
            CompactionEvent::End { error: None } => {}
            CompactionEvent::Boundary(written) => {
                let (before, after) = (count(written.pre_tokens), count(written.post_tokens));
                self.print_note(
                    TextLabel::Warning,
                    &format!("══ compacted: {before} → {after} tokens. The log keeps everything before."),
                );
                self.send(AgentMessage::Tokens { context: written.post_tokens, output: 0 });
            }
        }
    }

    fn turn_end(&mut self, summary: &TurnSummary) {
        self.end_text();
        self.thinking = None;
        self.is_replying = false;
        let problem = match &summary.end {
            TurnEnd::MaxTurns(limit) => Some(format!("Stopped after {limit} replies (--max-turns).")),
            TurnEnd::MaxSchemaErrors(count) => {
                Some(format!("Stopped: {count} answers do not match the schema."))
            }
            TurnEnd::MaxBudget(budget) => Some(format!("Stopped: the budget of ${budget} is used up.")),
            TurnEnd::Failed(error) => Some(format!("✗ {error}")),
            TurnEnd::StoppedByHook { .. } => Some("Stopped by a hook.".to_owned()),
            _ => None,
        };
        let is_taken_back = summary.end == TurnEnd::TakenBack;
        let cost_usd = summary.totals.cost_usd();
        self.send(AgentMessage::TurnEnd(TurnOutcome { cost_usd, problem, is_taken_back }));
    }
}

/// Returns a wrapped note after an empty line.
pub(crate) fn note_lines(page: &SharedPage, label: TextLabel, note: &str) -> Vec<TermText> {
    let page = page.get();
    let mut lines = vec![TermText::new()];
    lines.extend(page.wrap(&visible(note), 0).into_iter().map(|line| page.paint(label, line)));
    lines
}

/// Whether a reply is the output of a command of the client, such as `/cost`, and not Markdown.
fn is_command_output(message: &RawObject, text: &str) -> bool {
    message.get_str("model").as_deref() == Some(SyntheticLine::MODEL) && !text.starts_with('#')
}

/// Returns a text line by line, after an empty line.
fn output_lines(page: &SharedPage, text: &str) -> Vec<TermText> {
    let mut lines = vec![TermText::new()];
    lines.extend(page.get().wrap(visible(text).trim_end(), 0));
    lines
}

/// Returns the content blocks of a message.
fn blocks(message: &RawObject) -> Vec<RawObject> {
    let content = message.get("content").map_or("[]", RawValue::get);
    if let Ok(blocks) = serde_json::from_str(content) {
        return blocks;
    }
    let text: String = serde_json::from_str(content).unwrap_or_default();
    vec![RawObject::new().with("type", "text").with("text", text)]
}

fn retry_reason(kind: RetryKind, status: Option<u16>) -> String {
    let reason = match kind {
        RetryKind::Authentication => "the key was not accepted",
        RetryKind::RateLimit => "rate limit",
        RetryKind::Overloaded => "overloaded",
        RetryKind::Server => "server error",
        RetryKind::Unknown => "no connection",
    };
    match status {
        Some(status) => format!("{reason} ({status})"),
        None => reason.to_owned(),
    }
}

/// Returns the prompt as it is shown in the scrollback.
pub(crate) fn prompt_lines(page: &SharedPage, prompt: &str) -> Vec<TermText> {
    const MAX_LINES: usize = 30;
    let page = page.get();
    let mut lines = vec![TermText::new()];
    let wrapped = page.wrap(visible(prompt).trim_end(), 2);
    let more = wrapped.len().saturating_sub(MAX_LINES);
    for line in wrapped.iter().take(MAX_LINES) {
        lines.push(page.paint(TextLabel::Prompt, text!("> {line}")));
    }
    if more > 0 {
        lines.push(page.paint(TextLabel::Dim, format!("  … {more} more lines")));
    }
    lines
}
