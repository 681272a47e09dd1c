//! Runs the tool calls of a reply: checks input and permission, and writes the results to the session.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use threadline_api::{Message, RawObject, Reply, Role};
use threadline_cancel::CancelToken;
use threadline_entry::Json;
use threadline_entry::write::{Attachment, HookSource};
use threadline_permission::{PermissionMode, Refusal};
use threadline_tools::{
    FileObserver, ResultContent, Tool, ToolContext, ToolInput, ToolOutput, ToolProgress, unparsed_input,
    validate,
};

use crate::agent::{Agent, KnownTask};
use crate::agent_tool::AgentTool;
use crate::clock::Clock;
use crate::cost::ModelUsageTotals;
use crate::error_text::filler;
use crate::event::{AgentEvent, DeferredCall, Denial};
use crate::file_history::FileBackups;
use crate::hook::{HookCall, HookDecision, HookEvent, HookRun};
use crate::plan_mode::PlanTool;
use crate::progress::CommandProgress;
use crate::send_message::SEND_MESSAGE;
use crate::session_hooks::{CallVerdict, hook_reminder};
use crate::session_writer::{SessionWriter, UserLineFields, WriteError};
use crate::shell_call::ShellCall;
use crate::skill_tool::SKILL;
use crate::slash_command::ChangedLines;
use crate::sub_agent::{SubAgentReport, SubAgentSource};

/// The tool for answers that match a JSON schema.
const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// The name of the shell tool.
const SHELL_TOOL: &str = "Bash";

/// A tool call of a reply, with validated input.
pub(crate) struct PendingCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The uuid of the session line with the call.
    pub(crate) line: String,
    /// The input, or the error result if the input is invalid or the tool is not available.
    pub(crate) input: Result<ToolInput, ToolOutput>,
    /// The sub-agent that the call starts.
    pub(crate) sub_agent: Option<Arc<SubAgentSource>>,
    /// Whether the reply has no other call.
    pub(crate) is_alone: bool,
}

/// The turn that a call belongs to, and where its sub-agents report to.
#[derive(Clone, Copy)]
pub(crate) struct CallScope<'a> {
    pub(crate) prompt_id: &'a str,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) report: &'a (dyn Fn(SubAgentReport) + Sync),
    /// Receives the output of a running command.
    pub(crate) output: &'a (dyn Fn(String) + Sync),
}

/// The results of a reply's calls.
#[derive(Default)]
pub(crate) struct CallResults {
    /// The result blocks in the order in which they were written.
    pub(crate) blocks: Vec<RawObject>,
    /// Blocks of the user message that follows the results.
    pub(crate) follow_up: Vec<RawObject>,
    /// The call that these blocks belong to, if it used a skill, and the skill.
    pub(crate) skill: Option<(String, String)>,
    /// The lines that were added to files and removed from them.
    pub(crate) changed_lines: ChangedLines,
    /// The files that were read.
    pub(crate) read_files: Vec<PathBuf>,
    /// The number of user lines that were written.
    pub(crate) messages: u64,
    pub(crate) denials: Vec<Denial>,
    /// Texts of hooks for the model.
    pub(crate) reminders: Vec<String>,
    /// Whether a hook ended the turn.
    pub(crate) is_stopped: bool,
    /// The number of `StructuredOutput` calls that do not match the schema.
    pub(crate) schema_errors: u64,
    /// The call that a hook deferred.
    pub(crate) deferred_call: Option<DeferredCall>,
    /// The input of a successful `StructuredOutput` call.
    pub(crate) structured_output: Option<Box<RawValue>>,
    pub(crate) is_interrupted: bool,
    /// Whether the person interrupted the turn by refusing a call.
    pub(crate) is_refused: bool,
    /// Tokens and cost of the sub-agents.
    pub(crate) sub_agent_totals: Vec<ModelUsageTotals>,
}

impl CallResults {
    /// Adds a call that was not permitted.
    fn deny(&mut self, call: &PendingCall) {
        if let Ok(input) = &call.input {
            self.denials.push(Denial {
                tool_name: call.name.clone(),
                tool_use_id: call.id.clone(),
                tool_input: input.raw().to_owned(),
            });
        }
    }
}

impl Agent {
    /// Checks a `tool_use` block of the session line `line`. Replaces the input by the validated one, which
    /// is logged and sent back to the model.
    pub(crate) fn prepare_call(&self, block: &mut RawObject, line: &str) -> PendingCall {
        let id = block.get_str("id").unwrap_or_default();
        let name = block.get_str("name").unwrap_or_default();
        let unparsed = block.get_str(Reply::UNPARSED_INPUT);
        block.remove(Reply::UNPARSED_INPUT);
        let unparsed = unparsed.filter(|_| self.config.profile.reports_unparsed_input());
        let input = if let Some(text) = unparsed {
            let unparsed = unparsed_input(&name, &text);
            block.set_raw("input", unparsed.input);
            Err(unparsed.output)
        } else {
            match self.tools.get(&name) {
                None => Err(self.tools.unavailable(&name)),
                Some(tool) => {
                    let input = block.get("input").unwrap_or(RawValue::NULL);
                    let plan = (tool.name() == PlanTool::Exit.name()).then(|| self.plan_input(input));
                    validate(tool, plan.as_deref().unwrap_or(input), &self.shell.cwd())
                }
            }
        };
        if let Ok(input) = &input {
            block.set_raw("input", input.raw().to_owned());
        }
        let is_sub_agent = name == self.agent_tool();
        let sub_agent =
            input.as_ref().ok().filter(|_| is_sub_agent).and_then(|input| self.sub_agent_source(&id, input));
        PendingCall { id, name, line: line.to_owned(), input, sub_agent, is_alone: false }
    }

    /// Runs the calls of a reply in order. Adjacent calls that only read run at the same time. Each result is
    /// written as soon as it is available.
    pub(crate) fn run_calls(
        &mut self,
        mut calls: Vec<PendingCall>,
        prompt_id: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<CallResults, WriteError> {
        let mut results = CallResults::default();
        if let [call] = calls.as_mut_slice() {
            call.is_alone = true;
        }
        let mut calls = calls.into_iter().peekable();
        while let Some(first) = calls.next() {
            if results.is_interrupted {
                self.write_result(
                    &first,
                    FinishedCall::new(CallOutcome::Rejected),
                    prompt_id,
                    events,
                    &mut results,
                )?;
                continue;
            }
            let mut group = vec![first];
            if self.is_parallel(&group[0]) {
                while let Some(next) = calls.next_if(|call| self.is_parallel(call)) {
                    group.push(next);
                }
            }
            self.run_group(group, prompt_id, cancel, events, &mut results)?;
        }
        results.is_interrupted |= cancel.is_cancelled();
        Ok(results)
    }

    /// Whether a call may run at the same time as others: it only reads, or it returns an error at once.
    fn is_parallel(&self, call: &PendingCall) -> bool {
        let tool = self.tools.get(&call.name);
        match (&call.input, tool) {
            (Ok(input), Some(tool)) => tool.is_read_only(input),
            _ => true,
        }
    }

    /// Runs calls at the same time, and writes their results in the order in which they end.
    fn run_group(
        &self,
        group: Vec<PendingCall>,
        prompt_id: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
        results: &mut CallResults,
    ) -> Result<(), WriteError> {
        for call in &group {
            self.writer.lock().start_call(&call.id, &call.line);
            events(AgentEvent::ToolStart { tool_use_id: &call.id, name: &call.name });
        }
        let is_sub_agent = |call: &PendingCall| call.name == self.agent_tool();
        // Commands and sub-agents report while they run.
        let reports = |call: &PendingCall| is_sub_agent(call) || matches!(&*call.name, "Bash" | SEND_MESSAGE);
        if group.len() == 1 && !group.iter().any(reports) {
            for call in &group {
                let scope = CallScope { prompt_id, cancel, report: &|_| {}, output: &|_| {} };
                let done = self.finish_call(call, scope);
                self.write_result(call, done, prompt_id, events, results)?;
            }
            return Ok(());
        }
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for (i, call) in group.iter().enumerate() {
                let sender = sender.clone();
                scope.spawn(move || {
                    // The receiver is gone if a result could not be written; there is nothing to report then.
                    let report = |report| drop(sender.send(CallMessage::SubAgent(report)));
                    let output = |text| drop(sender.send(CallMessage::Output(i, text)));
                    let scope = CallScope { prompt_id, cancel, report: &report, output: &output };
                    let outcome = self.finish_call(call, scope);
                    drop(sender.send(CallMessage::Done(i, Box::new(outcome))));
                });
            }
            drop(sender);
            let mut progress: Vec<_> = group.iter().map(|_| CommandProgress::new()).collect();
            receiver.into_iter().try_for_each(|message| match message {
                CallMessage::SubAgent((source, event)) => {
                    events(AgentEvent::SubAgent { source: &source, event: &event });
                    self.write_agent_progress(&source, &event)
                }
                CallMessage::Output(i, text) => {
                    events(AgentEvent::ToolOutput { tool_use_id: &group[i].id, text: &text });
                    self.write_command_progress(&group[i].id, &mut progress[i], &text)
                }
                CallMessage::Done(i, outcome) => {
                    self.write_result(&group[i], *outcome, prompt_id, events, results)
                }
            })
        })
    }

    /// Runs one call with its hooks.
    fn finish_call(&self, call: &PendingCall, scope: CallScope<'_>) -> FinishedCall {
        let cancel = scope.cancel;
        let (input, tool) = match (&call.input, self.tools.get(&call.name)) {
            (Err(output), _) => return FinishedCall::new(CallOutcome::Output(output.clone())),
            (Ok(_), None) => {
                return FinishedCall::new(CallOutcome::Output(self.tools.unavailable(&call.name)));
            }
            (Ok(input), Some(tool)) => (input, tool),
        };
        if cancel.is_cancelled() {
            return FinishedCall::new(CallOutcome::Rejected);
        }
        let before = self.tool_hooks(HookEvent::PreToolUse, call, input, cancel, |event| event);
        let verdict = Self::call_verdict(&before);
        let updated = verdict.updated_input.as_deref();
        let updated = updated.map(|input| validate(tool, input, &self.shell.cwd()));
        let mut finished = FinishedCall::new(CallOutcome::Rejected);
        match self.write_call_hooks(&before, &call.id, &call.line) {
            Ok(line) => finished.hook_line = line,
            Err(error) => finished.write_error = Some(error),
        }
        finished.before = before;
        let input = match &updated {
            None => input,
            Some(Ok(input)) => input,
            Some(Err(output)) => {
                finished.outcome = CallOutcome::Output(output.clone());
                return finished;
            }
        };
        let start = Instant::now();
        finished.outcome = match verdict.decision {
            Some(HookDecision::Deny) => CallOutcome::Denied(verdict.reason.clone()),
            Some(HookDecision::Defer) if self.can_defer(call) => {
                CallOutcome::Deferred(input.raw().to_owned())
            }
            _ => self.run_call(call, tool, input, &verdict, scope),
        };
        let duration = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let output = match &finished.outcome {
            CallOutcome::Output(output) => Some(output),
            CallOutcome::SubAgent(ended) => Some(&ended.0),
            CallOutcome::ModeChange(output, _) => Some(output),
            _ => None,
        };
        if let Some(output) = output {
            finished.after = if output.is_error {
                self.tool_hooks(HookEvent::PostToolUseFailure, call, input, cancel, |event| {
                    event
                        .with("error", output.text())
                        .with("is_interrupt", false)
                        .with("duration_ms", duration)
                })
            } else {
                self.tool_hooks(HookEvent::PostToolUse, call, input, cancel, |event| {
                    let event = match &output.record {
                        Some(record) => event.with("tool_response", record),
                        None => event.with("tool_response", output.text()),
                    };
                    event.with("duration_ms", duration)
                })
            };
        }
        finished.verdict = verdict;
        finished
    }

    /// Whether a call can be left to the program that started the turn. If the reply has other calls, their
    /// results could not be sent without this one; a person at a screen is asked instead.
    fn can_defer(&self, call: &PendingCall) -> bool {
        call.is_alone && self.role.is_none() && !self.config.is_interactive
    }

    /// Runs the hooks of a call.
    fn tool_hooks<'a>(
        &'a self,
        event: HookEvent,
        call: &'a PendingCall,
        input: &ToolInput,
        cancel: &CancelToken,
        add_values: impl FnOnce(HookCall<'a>) -> HookCall<'a>,
    ) -> Vec<HookRun> {
        if !self.config.hooks.has(event) {
            return Vec::new();
        }
        let hook = self
            .hook_call(event, &call.name)
            .with("tool_name", &call.name)
            .with("tool_input", input.raw())
            .with("tool_use_id", &call.id);
        self.run_hooks(&add_values(hook), cancel)
    }

    /// The name of the tool that starts sub-agents.
    fn agent_tool(&self) -> &'static str {
        AgentTool::name_in(self.config.profile.version)
    }

    /// Returns the context in which a tool runs.
    pub(crate) fn tool_context<'a>(
        &'a self,
        cancel: &'a CancelToken,
        tool_use_id: &'a str,
        observer: &'a dyn FileObserver,
        is_hidden: &'a (dyn Fn(&Path) -> bool + Sync),
    ) -> ToolContext<'a> {
        ToolContext {
            cancel,
            tool_use_id,
            project: &self.config.paths.cwd,
            additional_dirs: &self.config.paths.additional_dirs,
            home: self.config.paths.user_home.as_deref(),
            shell: &self.shell,
            files: &self.files,
            observer,
            side_files: self.side_dir(),
            tasks_dir: self.tasks_dir(),
            task_list_dir: self.task_list_dir(),
            background: &self.background,
            environment: &self.config.environment,
            launcher: self.config.sandbox.as_ref().map(|sandbox| &sandbox.launcher),
            is_hidden,
            limits: &self.limits,
            model: &self.requests,
            progress: &|_| {},
        }
    }

    /// Whether a file may not be read.
    pub(crate) fn is_hidden(&self, path: &Path) -> bool {
        self.config.permissions.read(|permissions| permissions.is_read_denied(path))
    }

    /// Runs one call, if it is permitted.
    pub(crate) fn run_call(
        &self,
        call: &PendingCall,
        tool: &dyn Tool,
        input: &ToolInput,
        verdict: &CallVerdict,
        scope: CallScope<'_>,
    ) -> CallOutcome {
        let cancel = scope.cancel;
        if cancel.is_cancelled() {
            return CallOutcome::Rejected;
        }
        let observer = BackupObserver {
            backups: &self.backups,
            writer: &self.main_writer,
            clock: &*self.clock,
            line: &call.line,
        };
        let is_hidden = |path: &Path| self.is_hidden(path);
        let progress = |ToolProgress::Output(text)| (scope.output)(text);
        let context =
            ToolContext { progress: &progress, ..self.tool_context(cancel, &call.id, &observer, &is_hidden) };
        let plan_tool = PlanTool::parse(&call.name);
        if let Some(output) = plan_tool.and_then(|tool| self.check_plan_call(tool)) {
            return CallOutcome::Output(output);
        }
        let check = || tool.check(input, &context);
        let (permit, changed) = match self.permit(call, tool, input, (verdict, &check), cancel) {
            Ok(permitted) => permitted,
            Err(outcome) => return outcome,
        };
        if let Some(tool) = plan_tool {
            return self.run_plan_call(tool, input, changed.as_ref(), permit);
        }
        let input = changed.as_ref().unwrap_or(input);
        if call.name == self.agent_tool() {
            let (output, totals) = self.run_sub_agent(call, input, permit, scope);
            return if cancel.is_cancelled() {
                CallOutcome::Rejected
            } else {
                CallOutcome::SubAgent(Box::new((output, totals)))
            };
        }
        let output = if call.name == SEND_MESSAGE && self.role.is_none() {
            self.send_message(&call.id, input, permit, scope)
        } else {
            let watched = self.config.shell_observer.as_deref().filter(|_| call.name == SHELL_TOOL);
            let watched = watched.map(|observer| (observer, self.shell_call(call, input)));
            if let Some((observer, call)) = &watched {
                observer.before(call);
            }
            let output = tool.run(input, &context, permit);
            if let Some((observer, call)) = &watched {
                observer.after(call);
            }
            output
        };
        if cancel.is_cancelled() { CallOutcome::Rejected } else { CallOutcome::Output(output) }
    }

    /// Describes a call of the shell tool for the observer.
    fn shell_call<'a>(&'a self, call: &'a PendingCall, input: &ToolInput) -> ShellCall<'a> {
        ShellCall {
            session_id: self.session_id(),
            tool_use_id: &call.id,
            agent_id: self.role.as_ref().map(|role| &*role.source.agent_id),
            tool: &call.name,
            command: input.text("command").map(str::to_owned),
            cwd: self.shell.cwd(),
            project: &self.config.paths.cwd,
            log: self.main_writer.lock().path().to_owned(),
        }
    }

    /// Writes an attachment for each file that another program changed after the model wrote it, and adds a
    /// note about it to the conversation.
    pub(crate) fn report_changed_files(&mut self) -> Result<(), WriteError> {
        for file in self.files.take_changed(self.config.profile, &self.limits) {
            let filename = file.path.to_string_lossy();
            let attachment = Attachment::EditedTextFile { filename: &filename, snippet: &file.snippet };
            self.writer.lock().attachment(attachment, &*self.clock)?;
            let note = format!(
                "<system-reminder>\n{filename} was changed by another program after you wrote it. Keep the change \
                 unless the user asks otherwise. The changed lines:\n{}\n</system-reminder>",
                file.snippet
            );
            self.conversation.push(Role::User, vec![Message::text_block(&note)]);
        }
        Ok(())
    }

    /// Returns the background tasks that a call has started.
    fn new_tasks(&self, call: &PendingCall) -> Vec<KnownTask> {
        let mut known = self.known_tasks.lock();
        let input = call.input.as_ref().ok();
        let description = input.and_then(|input| input.text("description").or_else(|| input.text("command")));
        let running = self.background.running().into_iter();
        let new: Vec<KnownTask> = running
            .filter(|id| known.iter().all(|task| task.id != *id))
            .map(|id| KnownTask {
                id,
                tool_use_id: call.id.clone(),
                description: description.unwrap_or_default().to_owned(),
            })
            .collect();
        known.extend(new.iter().cloned());
        new
    }

    /// Returns the background task that a call has stopped.
    fn stopped_task(&self, call: &PendingCall, output: &ToolOutput) -> Option<KnownTask> {
        let input = call.input.as_ref().ok().filter(|_| call.name == "TaskStop" && !output.is_error)?;
        let id = input.text("task_id").or_else(|| input.text("shell_id"))?;
        self.known_tasks.lock().iter().find(|task| task.id == id).cloned()
    }

    /// Writes that a hook deferred a call, which gets no result.
    fn defer_call(
        &self,
        call: &PendingCall,
        hook_line: Option<&str>,
        input: Box<RawValue>,
        results: &mut CallResults,
    ) -> Result<(), WriteError> {
        let mut writer = self.writer.lock();
        let parent = writer.end_call(&call.id).unwrap_or_else(|| call.line.clone());
        let attachment = Attachment::HookDeferredTool {
            // As in Claude Code, the place where the hook is set, and not its event.
            source: HookSource {
                name: "settings",
                tool_use_id: &call.id,
                event: HookEvent::PreToolUse.name(),
            },
            tool: &call.name,
            input: Json::parse(input.get()).unwrap_or(Json::NULL),
            mode: self.config.permissions.mode().name(),
        };
        writer.attachment_below(hook_line.or(Some(&parent)), attachment, &*self.clock)?;
        results.deferred_call = Some(DeferredCall { id: call.id.clone(), name: call.name.clone(), input });
        Ok(())
    }

    fn write_result(
        &self,
        call: &PendingCall,
        finished: FinishedCall,
        prompt_id: &str,
        events: &mut dyn FnMut(AgentEvent<'_>),
        results: &mut CallResults,
    ) -> Result<(), WriteError> {
        if let Some(error) = finished.write_error {
            return Err(error);
        }
        for run in finished.before.iter().chain(&finished.after) {
            self.report_hook(run, events);
        }
        let mcp_tool = self.config.mcp.tool(&call.name);
        if let Some(tool) = mcp_tool.filter(|_| matches!(finished.outcome, CallOutcome::Output(_))) {
            self.writer.lock().set_attribution_mcp(Some((tool.server.clone(), tool.tool.clone())));
        }
        let is_interrupted = matches!(finished.outcome, CallOutcome::Rejected);
        let output = match finished.outcome {
            CallOutcome::Deferred(input) => {
                return self.defer_call(call, finished.hook_line.as_deref(), input, results);
            }
            CallOutcome::Output(output) => output,
            CallOutcome::SubAgent(ended) => {
                let (output, totals) = *ended;
                results.sub_agent_totals.push(totals);
                output
            }
            CallOutcome::ModeChange(output, mode) => {
                events(AgentEvent::PermissionMode(mode));
                output
            }
            CallOutcome::Rejected => ToolOutput::not_run(filler::REJECTED, filler::REJECTED_RECORD),
            CallOutcome::Refused(refusal) => {
                results.deny(call);
                if self.prompt.is_some() && self.role.is_none() {
                    let (tool, tool_use_id) = (call.name.as_str(), call.id.as_str());
                    events(AgentEvent::Refused { tool, tool_use_id, refusal: &refusal });
                }
                ToolOutput::not_run(&refusal.message, &format!("Error: {}", refusal.message))
            }
            CallOutcome::Denied(reason) => {
                results.deny(call);
                ToolOutput::not_run(&reason, &format!("Error: {reason}"))
            }
            CallOutcome::Invalid(message) => {
                let record = message.replace("<tool_use_error>", "").replace("</tool_use_error>", "");
                ToolOutput::not_run(&message, &format!("Error: {record}"))
            }
            CallOutcome::Stopped => {
                results.deny(call);
                (results.is_interrupted, results.is_refused) = (true, true);
                ToolOutput::not_run(filler::REJECTED, filler::REJECTED_RECORD)
            }
        };
        let block = result_block(call, &output);
        let parent = self.writer.lock().end_call(&call.id).unwrap_or_else(|| call.line.clone());
        let message = RawObject::new().with("role", "user").with("content", [&block]);
        let fields = UserLineFields {
            prompt_id: Some(prompt_id),
            // The log of a sub-agent has no records.
            tool_use_result: output.record.as_deref().filter(|_| self.role.is_none()),
            source_tool_assistant_uuid: Some(&call.line),
            tool_ends_turn: output.ends_turn,
            parent: Some(&parent),
            ..UserLineFields::default()
        };
        let content = message.get("content").unwrap_or(RawValue::NULL);
        if is_file_call(call, &output) {
            // Sub-agents work on the plan of the session.
            let plan = self.main_writer.lock().name_plan(&*self.clock);
            self.writer.lock().set_plan(plan);
        }
        let written = {
            let mut writer = self.writer.lock();
            writer.set_cwd(&self.shell.cwd());
            if let Some(request) = &output.pull_request {
                writer.pull_request(request, &*self.clock)?;
            }
            if output.ends_turn
                && let Ok(input) = &call.input
            {
                let data = Json::parse(input.raw().get()).unwrap_or(Json::NULL);
                let attachment = Attachment::StructuredOutput { data, tool_use_id: &call.id };
                writer.attachment(attachment, &*self.clock)?;
            }
            writer.user(content, fields, &*self.clock)?
        };
        let (reminders, is_stopped) = self.write_result_hooks(&finished.after, &call.id, &written.uuid)?;
        let contexts = finished.before.iter().filter_map(|run| {
            let context = run.output.additional_context.as_ref()?;
            Some(hook_reminder(&run.name, context))
        });
        results.reminders.extend(contexts.chain(reminders));
        results.is_stopped |= is_stopped;
        if let Some((message, run)) = &finished.verdict.stop {
            results.is_stopped = true;
            let source = HookSource { name: &run.name, tool_use_id: &call.id, event: run.event.name() };
            let attachment = Attachment::HookStoppedContinuation { source, message };
            self.writer.lock().attachment(attachment, &*self.clock)?;
        }
        for task in self.new_tasks(call) {
            events(AgentEvent::TaskStart {
                task_id: &task.id,
                tool_use_id: &task.tool_use_id,
                description: &task.description,
            });
        }
        if let Some(task) = self.stopped_task(call, &output) {
            events(AgentEvent::TaskStop {
                task_id: &task.id,
                tool_use_id: &task.tool_use_id,
                description: &task.description,
                timestamp: written.timestamp,
            });
        }
        events(AgentEvent::User {
            uuid: &written.uuid,
            message: &message,
            timestamp: written.timestamp,
            tool_use_result: output.record.as_deref(),
            is_synthetic: false,
            is_interrupted,
        });
        results.messages += 1;
        if call.name == STRUCTURED_OUTPUT && !output.ends_turn {
            results.schema_errors += 1;
        }
        if let Some(record) = &output.record {
            let changed = ChangedLines::of(record);
            results.changed_lines.added += changed.added;
            results.changed_lines.removed += changed.removed;
        }
        let path = call.input.as_ref().ok().and_then(|input| input.text("file_path"));
        if let Some(path) = path.filter(|_| call.name == "Read" && !output.is_error) {
            results.read_files.push(path.into());
        }
        if call.name == SKILL
            && !output.is_error
            && let Ok(input) = &call.input
        {
            let skill = input.text("skill").unwrap_or_default().trim_start_matches('/');
            results.skill = Some((call.id.clone(), skill.to_owned()));
        }
        results.blocks.push(block);
        results
            .follow_up
            .extend(output.follow_up.iter().filter_map(|block| RawObject::parse(block.get()).ok()));
        if output.ends_turn
            && let Ok(input) = &call.input
        {
            results.structured_output = Some(input.raw().to_owned());
        }
        Ok(())
    }
}

/// A call that has ended, with its hooks.
struct FinishedCall {
    outcome: CallOutcome,
    /// The hooks before the call.
    before: Vec<HookRun>,
    /// The last line about them.
    hook_line: Option<String>,
    /// The decision of the hooks before the call.
    verdict: CallVerdict,
    /// The hooks after the call.
    after: Vec<HookRun>,
    /// The lines of the hooks could not be written.
    write_error: Option<WriteError>,
}

impl FinishedCall {
    fn new(outcome: CallOutcome) -> Self {
        Self {
            outcome,
            before: Vec::new(),
            hook_line: None,
            verdict: CallVerdict::default(),
            after: Vec::new(),
            write_error: None,
        }
    }
}

/// A message of the thread of a call.
enum CallMessage {
    SubAgent(SubAgentReport),
    Output(usize, String),
    Done(usize, Box<FinishedCall>),
}

/// The outcome of a call.
pub(crate) enum CallOutcome {
    Output(ToolOutput),
    /// A sub-agent ended: its result, and its tokens and cost.
    SubAgent(Box<(ToolOutput, ModelUsageTotals)>),
    /// The call changed the mode of the session.
    ModeChange(ToolOutput, PermissionMode),
    /// A rule or the mode does not permit it.
    Refused(Refusal),
    /// It was not permitted, for this reason.
    Denied(String),
    /// A hook deferred it; its input.
    Deferred(Box<RawValue>),
    /// A rule refuses the file, which counts as invalid input.
    Invalid(String),
    /// The answer to a question ends the turn.
    Stopped,
    /// The user interrupted the turn. Claude Code records such calls as rejected.
    Rejected,
}

/// Whether a call worked on a file. A call that was refused before did not.
fn is_file_call(call: &PendingCall, output: &ToolOutput) -> bool {
    const FILE_TOOLS: &[&str] = &["Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"];
    let is_invalid = output.is_error && output.text().starts_with("<tool_use_error>");
    FILE_TOOLS.contains(&call.name.as_str()) && !is_invalid
}

/// Returns the `tool_result` block of a call.
fn result_block(call: &PendingCall, output: &ToolOutput) -> RawObject {
    let mut block = RawObject::new();
    let content = |block: &mut RawObject| match &output.content {
        ResultContent::Text(text) => block.set("content", text),
        ResultContent::Blocks(blocks) => block.set("content", blocks),
    };
    if output.is_error {
        block.set("type", "tool_result");
        content(&mut block);
        block.set("is_error", true);
        block.set("tool_use_id", &call.id);
        return block;
    }
    block.set("tool_use_id", &call.id);
    block.set("type", "tool_result");
    content(&mut block);
    // Claude Code writes the flag for shell commands only.
    if call.name == "Bash" {
        block.set("is_error", false);
    }
    block
}

/// Backs up files before tools change them.
struct BackupObserver<'a> {
    backups: &'a Mutex<FileBackups>,
    writer: &'a Mutex<SessionWriter>,
    clock: &'a dyn Clock,
    line: &'a str,
}

impl FileObserver for BackupObserver<'_> {
    fn before_change(&self, path: &Path) {
        // An error does not stop the edit: the line with its result cannot be written either, which is
        // reported.
        let _ = self.backups.lock().before_change(path, self.line, &mut self.writer.lock(), self.clock);
    }
}
