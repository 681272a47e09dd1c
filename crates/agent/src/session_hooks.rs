//! The hooks of a session: their input, the lines that record them, and the effects of their answers.

use std::sync::Arc;

use serde_json::value::RawValue;
use threadline_api::{Message, RawObject, Role};
use threadline_cancel::CancelToken;
use threadline_entry::Json;
use threadline_entry::write::{Attachment, HookProcess, HookSource};

use crate::agent::Agent;
use crate::config::SessionStart;
use crate::event::AgentEvent;
use crate::hook::{
    HookCall, HookCallbacks, HookDecision, HookEvent, HookOutcome, HookRun, HookSettingsError,
};
use crate::json::raw;
use crate::session_writer::{UserLineFields, WriteError};

/// The maximum number of times in a turn that a hook can make the model continue instead of stopping.
const MAX_STOP_BLOCKS: u32 = 8;

/// The reason and the source of the hooks when `/clear` ends a session and starts another.
pub(crate) const CLEAR: &str = "clear";

/// The decision of the hooks about a prompt.
pub(crate) enum PromptVerdict {
    /// The prompt is sent; the hooks that ran leave their lines below it.
    Send(Vec<HookRun>),
    /// The prompt is not sent, and not written.
    Block(String),
    /// The prompt is written, but not sent.
    Stop(String),
}

/// The decision of the hooks at the end of a turn.
pub(crate) enum StopVerdict {
    /// The turn ends.
    End,
    /// The turn ends because a hook ended it.
    Stopped,
    /// The model continues.
    GoOn,
    /// The same, and the limit is reached.
    Exhausted,
}

/// The decision of the hooks before a call.
#[derive(Default)]
pub(crate) struct CallVerdict {
    pub(crate) decision: Option<HookDecision>,
    /// The text for the model, if the call does not run.
    pub(crate) reason: String,
    pub(crate) updated_input: Option<Box<RawValue>>,
    /// The reason, if the turn ends after the call.
    pub(crate) stop: Option<(String, HookRun)>,
}

impl Agent {
    /// Starts the description of an event, with the values that all events have.
    pub(crate) fn hook_call<'a>(&'a self, event: HookEvent, object: &'a str) -> HookCall<'a> {
        let mut input = RawObject::new().with("session_id", self.session_id());
        let log = self.main_writer.lock().path().to_owned();
        input.set("transcript_path", log.to_string_lossy());
        input.set("cwd", self.shell.cwd().to_string_lossy());
        let is_before_prompts = event == HookEvent::SessionStart && object != CLEAR;
        if let Some(prompt_id) = self.prompt_id.as_ref().filter(|_| !is_before_prompts) {
            input.set("prompt_id", prompt_id);
        }
        let has_mode = !matches!(
            event,
            HookEvent::SessionStart
                | HookEvent::SessionEnd
                | HookEvent::PreCompact
                | HookEvent::PostCompact
                | HookEvent::SubagentStart
        );
        if has_mode {
            input.set("permission_mode", self.config.permissions.mode().name());
        }
        if let Some(role) = &self.role {
            input.set("agent_id", &role.source.agent_id);
            input.set("agent_type", &role.source.agent_type);
        }
        input.set("hook_event_name", event.name());
        HookCall {
            event,
            object,
            input,
            cwd: &self.config.paths.cwd,
            environment: &self.config.hook_environment,
        }
    }

    pub(crate) fn run_hooks(&self, call: &HookCall<'_>, cancel: &CancelToken) -> Vec<HookRun> {
        self.write_hook_progress(call);
        call.run(&self.config.hooks, cancel)
    }

    /// Adds hooks that are functions of the program that started the session.
    pub fn add_hook_callbacks(
        &mut self,
        json: &RawValue,
        callbacks: Arc<dyn HookCallbacks>,
    ) -> Result<(), HookSettingsError> {
        self.config.hooks.add_callbacks(json, callbacks)
    }

    /// Runs the hooks of the start of the session, once. Their lines are written with the first prompt.
    pub(crate) fn start_hooks(&mut self, cancel: &CancelToken, events: &mut dyn FnMut(AgentEvent<'_>)) {
        if std::mem::replace(&mut self.has_run_start_hooks, true) {
            return;
        }
        let source = match self.config.start {
            SessionStart::New { .. } => "startup",
            SessionStart::Resume { .. } | SessionStart::Fork { .. } => "resume",
        };
        self.run_start_hooks(source, cancel, events);
    }

    /// Runs the hooks of the start of a session. Their lines are written with the next ones.
    pub(crate) fn run_start_hooks(
        &mut self,
        source: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) {
        let call = self.hook_call(HookEvent::SessionStart, source).with("source", source);
        let runs = self.run_hooks(&call, cancel);
        for run in &runs {
            self.report_hook(run, events);
        }
        self.start_runs = runs;
    }

    /// Writes the lines of the hooks of the start. Those of a resumed session only add context.
    pub(crate) fn write_start_hooks(&mut self) -> Result<(), WriteError> {
        let runs = std::mem::take(&mut self.start_runs);
        let is_new = matches!(self.config.start, SessionStart::New { .. });
        let mut contexts = Vec::new();
        for run in &runs {
            if is_new {
                let id = self.clock.new_uuid();
                self.write_hook(run, &id, None)?;
            }
            self.add_hook_text(run);
            contexts.extend(run.output.additional_context.clone());
        }
        if contexts.is_empty() {
            return Ok(());
        }
        let name = HookEvent::SessionStart.name();
        if is_new {
            let source = HookSource { name, tool_use_id: name, event: name };
            self.write_context(&contexts, source, None)?;
        }
        for context in contexts {
            self.add_hook_reminder(name, &context);
        }
        Ok(())
    }

    /// Runs the hooks of a prompt.
    pub(crate) fn prompt_hooks(
        &self,
        prompt: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> PromptVerdict {
        let call = self.hook_call(HookEvent::UserPromptSubmit, "").with("prompt", prompt);
        let runs = self.run_hooks(&call, cancel);
        for run in &runs {
            self.report_hook(run, events);
        }
        if let Some(reason) = runs.iter().find_map(HookRun::blocking_reason) {
            return PromptVerdict::Block(format!(
                "UserPromptSubmit operation blocked by hook:\n{reason}\n\nOriginal prompt: {prompt}"
            ));
        }
        match runs.iter().find_map(|run| run.output.stop.as_ref()) {
            Some(reason) if reason.is_empty() => PromptVerdict::Stop("Operation stopped by hook".to_owned()),
            Some(reason) => PromptVerdict::Stop(format!("Operation stopped by hook: {reason}")),
            None => PromptVerdict::Send(runs),
        }
    }

    /// Writes the lines of the hooks of a prompt below it, and adds their texts to the conversation.
    pub(crate) fn write_prompt_hooks(&mut self, runs: &[HookRun]) -> Result<(), WriteError> {
        for run in runs {
            let id = self.clock.new_uuid();
            let source = HookSource { name: &run.name, tool_use_id: &id, event: run.event.name() };
            if !run.output.is_object {
                self.write_hook(run, &id, None)?;
            } else if let Some(message) = &run.output.system_message {
                let attachment = Attachment::HookSystemMessage { source, content: message };
                self.writer.lock().attachment(attachment, &*self.clock)?;
            }
            self.add_hook_text(run);
            if let Some(context) = &run.output.additional_context {
                let id = format!("hook-{}", self.clock.new_uuid());
                let source = HookSource { tool_use_id: &id, ..source };
                self.write_context(std::slice::from_ref(context), source, None)?;
                self.add_hook_reminder(&run.name, context);
            }
        }
        Ok(())
    }

    /// Runs the hooks of the start of a sub-agent, and adds their context below its task.
    pub(crate) fn sub_agent_start_hooks(&mut self, cancel: &CancelToken) -> Result<(), WriteError> {
        let Some(role) = self.role.clone() else { return Ok(()) };
        let call = self.hook_call(HookEvent::SubagentStart, &role.source.agent_type);
        let runs = self.run_hooks(&call, cancel);
        let contexts: Vec<String> =
            runs.iter().filter_map(|run| run.output.additional_context.clone()).collect();
        if contexts.is_empty() {
            return Ok(());
        }
        let (name, id) = (HookEvent::SubagentStart.name(), self.clock.new_uuid());
        self.write_context(&contexts, HookSource { name, tool_use_id: &id, event: name }, None)?;
        for context in &contexts {
            self.add_hook_reminder(name, context);
        }
        Ok(())
    }

    /// Runs the hooks at the end of a turn.
    pub(crate) fn stop_hooks(
        &mut self,
        last_text: &str,
        blocks: u32,
        num_turns: &mut u64,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<StopVerdict, WriteError> {
        let none: [&str; 0] = [];
        let mut call = match &self.role {
            None => self.hook_call(HookEvent::Stop, "").with("stop_hook_active", blocks > 0),
            Some(role) => self
                .hook_call(HookEvent::SubagentStop, &role.source.agent_type)
                .with("stop_hook_active", blocks > 0)
                .with("agent_transcript_path", self.log().to_string_lossy()),
        };
        call = call
            .with("last_assistant_message", last_text)
            .with("background_tasks", none)
            .with("session_crons", none);
        let runs = self.run_hooks(&call, cancel);
        for run in &runs {
            self.report_hook(run, events);
        }
        let id = self.clock.new_uuid();
        let mut verdict = StopVerdict::End;
        for run in &runs {
            let source = HookSource { name: &run.name, tool_use_id: &id, event: run.event.name() };
            let Some(reason) = run.blocking_reason() else {
                if let Some(message) = &run.output.stop {
                    verdict = StopVerdict::Stopped;
                    let attachment = Attachment::HookStoppedContinuation { source, message };
                    self.writer.lock().attachment(attachment, &*self.clock)?;
                }
                self.write_hook(run, &id, None)?;
                continue;
            };
            verdict = if blocks >= MAX_STOP_BLOCKS { StopVerdict::Exhausted } else { StopVerdict::GoOn };
            let text = format!("Stop hook feedback:\n{reason}");
            self.write_hook_feedback(&text, events)?;
            *num_turns += 1;
            if run.outcome == HookOutcome::Success && self.role.is_none() {
                let attachment =
                    Attachment::HookBlockingError { source, reason: &reason, command: &run.command };
                self.writer.lock().attachment(attachment, &*self.clock)?;
                self.add_hook_reminder(&run.name, &reason);
            }
        }
        let has_error =
            runs.iter().any(|run| run.blocking_reason().is_some() || run.outcome == HookOutcome::Failed);
        if has_error && blocks == 0 && self.role.is_none() {
            events(AgentEvent::Notification {
                key: "stop-hook-error",
                text: "Stop hook error occurred · ctrl+o to see",
            });
        }
        Ok(verdict)
    }

    fn write_hook_feedback(
        &mut self,
        text: &str,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let content = raw(text);
        let fields = UserLineFields {
            prompt_id: self.prompt_id.as_deref(),
            is_meta: true,
            ..UserLineFields::default()
        };
        let written = self.writer.lock().user(&content, fields, &*self.clock)?;
        let block = Message::text_block(text);
        let message = RawObject::new().with("role", "user").with("content", [&block]);
        if self.role.is_none() {
            events(AgentEvent::User {
                uuid: &written.uuid,
                message: &message,
                timestamp: written.timestamp,
                tool_use_result: None,
                is_synthetic: true,
                is_interrupted: false,
            });
        }
        self.conversation.push(Role::User, vec![block]);
        Ok(())
    }

    /// Runs the hooks that call a person to the session.
    pub(crate) fn notify(&self, kind: &str, message: &str, cancel: &CancelToken) {
        let call = self.hook_call(HookEvent::Notification, kind);
        self.run_hooks(&call.with("message", message).with("notification_type", kind), cancel);
    }

    /// Runs the hooks that call a person back after a while without an answer.
    pub fn notify_idle(&self) {
        self.notify("idle_prompt", "Claude is waiting for your input", &CancelToken::new());
    }

    /// Runs the hooks of the end of the session.
    pub(crate) fn end_hooks(&self, reason: &str, events: &mut dyn FnMut(AgentEvent<'_>)) {
        let call = self.hook_call(HookEvent::SessionEnd, reason).with("reason", reason);
        for run in self.run_hooks(&call, &CancelToken::new()) {
            if matches!(run.outcome, HookOutcome::Failed | HookOutcome::Blocked) {
                let text = format!("SessionEnd hook [{}] failed: {}", run.command, run.stderr.trim());
                events(AgentEvent::Warning(&text));
            }
        }
    }

    pub(crate) fn report_hook(&self, run: &HookRun, events: &mut dyn FnMut(AgentEvent<'_>)) {
        events(AgentEvent::Hook { id: &self.clock.new_uuid(), run });
    }

    /// Decides about a call from the answers of its hooks.
    pub(crate) fn call_verdict(runs: &[HookRun]) -> CallVerdict {
        let mut verdict = CallVerdict::default();
        for run in runs {
            let output = &run.output;
            let (decision, reason) = if run.outcome == HookOutcome::Blocked {
                let reason = run.blocking_reason().unwrap_or_default();
                (Some(HookDecision::Deny), Some(format!("{} hook error: {reason}", run.name)))
            } else {
                (output.decision, output.decision_reason.clone())
            };
            // The strictest decision counts.
            if decision > verdict.decision {
                verdict.decision = decision;
                verdict.reason = reason.unwrap_or_else(|| match decision {
                    Some(HookDecision::Defer) => {
                        format!(
                            "Hook {} deferred this tool, which is possible for a single call only",
                            run.name
                        )
                    }
                    _ => format!("Hook {} denied this tool", run.name),
                });
            }
            if output.updated_input.is_some() {
                verdict.updated_input.clone_from(&output.updated_input);
            }
            if let Some(message) = &output.stop {
                verdict.stop.get_or_insert_with(|| (message.clone(), run.clone()));
            }
        }
        verdict
    }

    /// Writes the lines of a hook before a call, below the line of the call. Returns the last of these lines.
    pub(crate) fn write_call_hooks(
        &self,
        runs: &[HookRun],
        tool_use_id: &str,
        call_line: &str,
    ) -> Result<Option<String>, WriteError> {
        if self.role.is_some() {
            // Claude Code writes no lines for hooks around the calls of a sub-agent.
            return Ok(None);
        }
        let mut parent = Some(call_line.to_owned());
        for run in runs.iter().filter(|run| run.output.decision != Some(HookDecision::Deny)) {
            if let Some(last) = self.write_hook(run, tool_use_id, parent.as_deref())? {
                parent = Some(last);
            }
            if let Some(context) = &run.output.additional_context {
                let source = HookSource { name: &run.name, tool_use_id, event: run.event.name() };
                parent =
                    Some(self.write_context(std::slice::from_ref(context), source, parent.as_deref())?);
            }
        }
        Ok(parent)
    }

    /// Writes the lines of the hooks after a call, below the line of its result. Returns the texts for the
    /// model, and whether the turn must end.
    pub(crate) fn write_result_hooks(
        &self,
        runs: &[HookRun],
        tool_use_id: &str,
        result_line: &str,
    ) -> Result<(Vec<String>, bool), WriteError> {
        let mut parent = result_line.to_owned();
        let mut texts = Vec::new();
        let mut is_stopped = false;
        for run in runs {
            let source = HookSource { name: &run.name, tool_use_id, event: run.event.name() };
            let reason = run.blocking_reason();
            let special = match (&reason, &run.output.stop) {
                (Some(reason), _) => {
                    texts.push(hook_reminder(&run.name, reason));
                    Some(Attachment::HookBlockingError { source, reason, command: &run.command })
                }
                (None, Some(message)) => {
                    is_stopped = true;
                    Some(Attachment::HookStoppedContinuation { source, message })
                }
                (None, None) => None,
            };
            if self.role.is_some() {
                texts.extend(run.output.additional_context.iter().map(|text| hook_reminder(&run.name, text)));
                continue;
            }
            if let Some(attachment) = special {
                parent = self.writer.lock().attachment_below(Some(&parent), attachment, &*self.clock)?;
                continue;
            }
            if let Some(last) = self.write_hook(run, tool_use_id, Some(&parent))? {
                parent = last;
            }
            if let Some(context) = &run.output.additional_context {
                parent = self.write_context(std::slice::from_ref(context), source, Some(&parent))?;
                texts.push(hook_reminder(&run.name, context));
            }
        }
        Ok((texts, is_stopped))
    }

    /// Writes the line of a hook below `parent`, or at the end of the conversation. Returns the id of the
    /// last line. A hook that ended well without output leaves none.
    fn write_hook(
        &self,
        run: &HookRun,
        tool_use_id: &str,
        parent: Option<&str>,
    ) -> Result<Option<String>, WriteError> {
        let source = HookSource { name: &run.name, tool_use_id, event: run.event.name() };
        let duration = u64::try_from(run.duration.as_millis()).unwrap_or(u64::MAX);
        let failure = format!("Failed with non-blocking status code: {}", no_output(run.stderr.trim()));
        let process = HookProcess {
            command: &run.command,
            stdout: &run.stdout,
            stderr: &run.stderr,
            exit_code: run.exit_code,
            duration,
        };
        let attachment = match run.outcome {
            _ if run.is_callback => return Ok(None),
            HookOutcome::Success if run.stdout.trim().is_empty() => return Ok(None),
            HookOutcome::Success => Attachment::HookSuccess { source, content: &run.output.text, process },
            HookOutcome::Failed => Attachment::HookNonBlockingError {
                source,
                process: HookProcess { stderr: &failure, ..process },
            },
            HookOutcome::Cancelled => Attachment::HookCancelled {
                source,
                command: &run.command,
                duration,
                timeout: run.is_timeout.then(|| u64::try_from(run.timeout.as_millis()).unwrap_or(u64::MAX)),
            },
            HookOutcome::Blocked => return Ok(None),
        };
        let mut writer = self.writer.lock();
        let mut last = writer.attachment_below(parent, attachment, &*self.clock)?;
        if let Some(message) = &run.output.system_message {
            let attachment = Attachment::HookSystemMessage { source, content: message };
            last = writer.attachment_below(Some(&last), attachment, &*self.clock)?;
        }
        Ok(Some(last))
    }

    fn write_context(
        &self,
        contexts: &[String],
        source: HookSource<'_>,
        parent: Option<&str>,
    ) -> Result<String, WriteError> {
        let json = serde_json::to_string(contexts).unwrap_or_else(|_| "[]".to_owned());
        let content = Json::parse(&json).unwrap_or(Json::NULL);
        let attachment = Attachment::HookAdditionalContext { source, content };
        self.writer.lock().attachment_below(parent, attachment, &*self.clock)
    }

    /// Adds the output of a hook to the conversation, if it is a text.
    fn add_hook_text(&mut self, run: &HookRun) {
        if run.outcome == HookOutcome::Success && !run.output.text.is_empty() {
            self.add_hook_reminder(&run.name, &run.output.text);
        }
    }

    fn add_hook_reminder(&mut self, name: &str, text: &str) {
        self.conversation.push(Role::User, vec![Message::text_block(&hook_reminder(name, text))]);
    }
}

/// Returns the text of a hook as the model gets it.
pub(crate) fn hook_reminder(name: &str, text: &str) -> String {
    format!("<system-reminder>\nThe hook {name} of the user says:\n{text}\n</system-reminder>")
}

fn no_output(stderr: &str) -> &str {
    if stderr.is_empty() { "No stderr output" } else { stderr }
}
