//! Operations of a screen: lines of interactive sessions, the model, shell lines of the person.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine;
use threadline_api::{Message, RawObject, Role};
use threadline_cancel::CancelToken;
use threadline_tools::{BackgroundSwitch, ResultContent, ToolOutput, validate};

use crate::agent::Agent;
use crate::event::AgentEvent;
use crate::hook::HookDecision;
use crate::json::raw;
use crate::memory::{MemoryFile, memory_reminder};
use crate::resume::Filler;
use crate::session_hooks::CallVerdict;
use crate::session_writer::{UserLineFields, WriteError};
use crate::tool_calls::{CallOutcome, CallScope, PendingCall};
use crate::turn::TurnPrompt;

/// The longest output of a shell line that the model gets, in bytes.
const MAX_SHELL_OUTPUT: usize = 30_000;

/// The largest image of a prompt, in bytes. The API rejects larger ones.
pub const MAX_IMAGE_BYTES: u64 = 3_750_000;

/// Reads an image as a content block of a prompt.
///
/// # Errors
///
/// If the file cannot be read, is too large, or has no extension of an image.
pub fn image_block(path: &Path) -> io::Result<RawObject> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let media_type = match &*extension {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => return Err(io::Error::other("not an image")),
    };
    if fs_err::metadata(path)?.len() > MAX_IMAGE_BYTES {
        return Err(io::Error::other("the image is too large"));
    }
    let data = base64::engine::general_purpose::STANDARD.encode(fs_err::read(path)?);
    RawObject::parse(ResultContent::image_block(media_type, &data).get()).map_err(io::Error::other)
}

impl Agent {
    /// Whether commands or sub-agents run in the background, or have ended without being reported.
    pub fn has_background_work(&self) -> bool {
        self.background.has_running() || self.background_agents.has_running()
    }

    /// The tokens of the conversation at the last reply.
    pub fn context_tokens(&self) -> u64 {
        self.last_usage.context() + self.last_usage.output
    }

    /// The cost of the process so far, in dollars.
    pub fn cost_usd(&self) -> f64 {
        self.totals.cost_usd()
    }

    /// Gives the session a title.
    pub fn rename(&mut self, title: &str) -> Result<(), WriteError> {
        self.writer.lock().title(title)
    }

    /// Uses other memory files from the next request on.
    pub fn set_memory(&mut self, memory: Vec<MemoryFile>) {
        self.memory = memory_reminder(&memory).map(|text| Message::text_block(&text));
        self.config.memory = memory;
    }

    /// Returns a handle with which the person moves running commands to the background, and stops them.
    pub fn background_switch(&self) -> BackgroundSwitch {
        self.background.switch()
    }

    /// Lets the model answer the conversation as it is, without another prompt.
    pub fn answer(
        &mut self,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> crate::event::TurnSummary {
        self.run_turn(TurnPrompt::None, cancel, events)
    }

    /// Runs a shell command that the person typed, and adds it with its output to the conversation. Deny
    /// rules apply. Returns the output; `None` if it was interrupted, which leaves no lines.
    pub fn run_shell_line(
        &mut self,
        command: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<Option<ToolOutput>, WriteError> {
        let output = self.run_typed_command(command, cancel, events);
        let Some(output) = output.filter(|_| !cancel.is_cancelled()) else { return Ok(None) };
        self.write_modes()?;
        let mut text = output.text().to_owned();
        text.truncate(text.floor_char_boundary(MAX_SHELL_OUTPUT));
        let (out, err) = if output.is_error { ("", text.as_str()) } else { (text.as_str(), "") };
        let input = format!("<bash-input>{command}</bash-input>");
        let printed = format!("<bash-stdout>{out}</bash-stdout><bash-stderr>{err}</bash-stderr>");
        let mut writer = self.writer.lock();
        writer.user(&raw(&input), UserLineFields::default(), &*self.clock)?;
        writer.user(&raw(&printed), UserLineFields::default(), &*self.clock)?;
        drop(writer);
        let texts = [&*input, &*printed].map(Message::text_block);
        self.conversation.push(Role::User, texts.into());
        self.filler = Filler::None;
        Ok(Some(output))
    }

    fn run_typed_command(
        &self,
        command: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Option<ToolOutput> {
        let failed = |message: &str| Some(ToolOutput::not_run(message, message));
        let Some(tool) = self.tools.get("Bash") else { return failed("Bash is not available.") };
        let input = validate(tool, &raw(&RawObject::new().with("command", command)), &self.shell.cwd());
        let id = self.clock.new_uuid();
        let call = PendingCall {
            id,
            name: "Bash".to_owned(),
            line: String::new(),
            input,
            sub_agent: None,
            is_alone: true,
        };
        let Ok(input) = &call.input else { return failed("The command is not valid.") };
        // The person permits the command by typing it.
        let verdict = CallVerdict { decision: Some(HookDecision::Allow), ..CallVerdict::default() };
        let (sender, receiver) = mpsc::channel();
        let outcome = std::thread::scope(|scope| {
            let call = &call;
            let run = scope.spawn(move || {
                let output = |text| drop(sender.send(text));
                let scope = CallScope { prompt_id: "", cancel, report: &|_| {}, output: &output };
                self.run_call(call, tool, input, &verdict, scope)
            });
            for text in receiver {
                events(AgentEvent::ToolOutput { tool_use_id: &call.id, text: &text });
            }
            run.join()
        });
        match outcome {
            Ok(CallOutcome::Output(output)) => Some(output),
            Ok(CallOutcome::Denied(reason) | CallOutcome::Invalid(reason)) => failed(&reason),
            Ok(CallOutcome::Refused(refusal)) => failed(&refusal.message),
            _ => None,
        }
    }

    /// Writes the modes of an interactive session before its first line, and where the permission mode has
    /// changed.
    pub(crate) fn write_modes(&mut self) -> Result<(), WriteError> {
        if !self.config.is_interactive || self.role.is_some() {
            return Ok(());
        }
        let mode = self.config.permissions.mode().name();
        let mut writer = self.writer.lock();
        if self.written_mode.is_none() && !self.is_resumed {
            writer.mode("normal")?;
        }
        if self.written_mode != Some(mode) {
            writer.permission_mode(mode)?;
            self.written_mode = Some(mode);
        }
        Ok(())
    }

    /// Writes the duration of a turn of an interactive session.
    pub(crate) fn write_turn_duration(&mut self, duration: Duration) -> Result<(), WriteError> {
        if !self.config.is_interactive || self.role.is_some() {
            return Ok(());
        }
        let count = self.conversation.messages.len() as u64;
        self.writer.lock().turn_duration(duration, count, &*self.clock)
    }
}
