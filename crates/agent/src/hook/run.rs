//! Runs the hooks of an event.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use threadline_api::RawObject;
use threadline_cancel::CancelToken;
use threadline_tools::{ShellCommand, ShellEnd};

use super::output::HookOutput;
use super::settings::{HookCallbacks, HookCommand, HookEvent, HookSettings};

/// The largest number of bytes that are read from a hook.
const MAX_OUTPUT: u64 = 1 << 20;

/// How a hook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookOutcome {
    /// With exit code 0.
    Success,
    /// With exit code 2: it stops the subject of the event.
    Blocked,
    /// With another exit code, or it could not be started: it has no effect.
    Failed,
    /// It took too long, or was interrupted.
    Cancelled,
}

/// An event with its values, for the hooks that are set for it.
pub(crate) struct HookCall<'a> {
    pub(crate) event: HookEvent,
    /// The subject of the event, which matchers are compared with: a tool, a source, a kind of sub-agent.
    pub(crate) object: &'a str,
    /// The values that hooks get on standard input.
    pub(crate) input: RawObject,
    pub(crate) cwd: &'a Path,
    pub(crate) environment: &'a [(OsString, OsString)],
}

/// A hook that has run.
#[derive(Clone, Debug)]
pub struct HookRun {
    /// The event.
    pub event: HookEvent,
    /// The event with its object, such as `PreToolUse:Bash`.
    pub name: String,
    /// The command line.
    pub command: String,
    /// The longest time that it may run.
    pub(crate) timeout: Duration,
    /// How it ended.
    pub outcome: HookOutcome,
    /// The exit code.
    pub exit_code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How long it ran.
    pub duration: Duration,
    pub(crate) is_timeout: bool,
    /// Whether it is a function of the program that started the session. Such hooks leave no lines.
    pub(crate) is_callback: bool,
    /// Its answer.
    pub(crate) output: HookOutput,
}

impl HookCall<'_> {
    /// Adds a value to the input.
    pub(crate) fn with(mut self, key: &str, value: impl Serialize) -> Self {
        self.input.set(key, value);
        self
    }

    /// The event with its object, if the object is part of its name.
    pub(crate) fn name(&self) -> String {
        let has_object = !self.object.is_empty()
            && !matches!(self.event, HookEvent::SubagentStart | HookEvent::SubagentStop);
        if has_object {
            format!("{}:{}", self.event.name(), self.object)
        } else {
            self.event.name().to_owned()
        }
    }

    /// Runs all hooks that are set for the event at the same time. Returns them in the order of the settings.
    pub(crate) fn run(&self, settings: &HookSettings, cancel: &CancelToken) -> Vec<HookRun> {
        let commands = settings.commands(self.event, self.object);
        let input = format!("{}\n", self.input.to_json());
        let run = |command: &HookCommand| match settings.callbacks().filter(|_| command.is_callback) {
            Some(callbacks) => self.run_callback(command, callbacks, cancel),
            None => self.run_command(command, &input, cancel),
        };
        match commands.as_slice() {
            [] => Vec::new(),
            [command] => vec![run(command)],
            commands => std::thread::scope(|scope| {
                let threads: Vec<_> =
                    commands.iter().map(|command| scope.spawn(move || run(command))).collect();
                threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
            }),
        }
    }

    /// Calls a function of the program that started the session.
    fn run_callback(
        &self,
        hook: &HookCommand,
        callbacks: &dyn HookCallbacks,
        cancel: &CancelToken,
    ) -> HookRun {
        let start = Instant::now();
        let mut run = self.new_run(hook);
        match callbacks.call(&hook.command, &self.input, cancel) {
            Ok(answer) => {
                (run.outcome, run.exit_code) = (HookOutcome::Success, 0);
                run.output = HookOutput::parse(&answer);
                run.stdout = answer;
            }
            Err(error) => run.stderr = error,
        }
        run.duration = start.elapsed();
        run
    }

    /// Returns a hook that has not run yet.
    fn new_run(&self, hook: &HookCommand) -> HookRun {
        HookRun {
            event: self.event,
            name: self.name(),
            command: hook.command.clone(),
            timeout: hook.timeout,
            outcome: HookOutcome::Failed,
            exit_code: 1,
            stdout: String::new(),
            stderr: String::new(),
            duration: Duration::ZERO,
            is_timeout: false,
            is_callback: hook.is_callback,
            output: HookOutput::default(),
        }
    }

    fn run_command(&self, hook: &HookCommand, input: &str, cancel: &CancelToken) -> HookRun {
        let command = ShellCommand {
            command: &hook.command,
            cwd: self.cwd,
            environment: self.environment,
            input,
            timeout: hook.timeout,
            max_output: MAX_OUTPUT,
        };
        let mut run = self.new_run(hook);
        let result = match command.run(cancel) {
            Ok(result) => result,
            Err(error) => {
                run.stderr = error.to_string();
                return run;
            }
        };
        run.duration = result.duration;
        run.stdout = result.stdout;
        run.stderr = result.stderr;
        run.is_timeout = result.end == ShellEnd::TimedOut;
        (run.outcome, run.exit_code) = match result.end {
            ShellEnd::Exit(0) => (HookOutcome::Success, 0),
            ShellEnd::Exit(2) => (HookOutcome::Blocked, 2),
            ShellEnd::Exit(code) => (HookOutcome::Failed, code),
            ShellEnd::TimedOut | ShellEnd::Cancelled => (HookOutcome::Cancelled, 1),
        };
        if run.outcome == HookOutcome::Success {
            run.output = HookOutput::parse(&run.stdout);
        }
        run
    }
}

impl HookRun {
    /// Why the hook blocks the prompt, call or end of the turn, if it does.
    pub(crate) fn blocking_reason(&self) -> Option<String> {
        match self.outcome {
            HookOutcome::Blocked => {
                let stderr = self.stderr.trim();
                let stderr = if stderr.is_empty() { "No stderr output" } else { stderr };
                Some(format!("[{}]: {stderr}", self.command))
            }
            _ => self.output.block.clone(),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn run(hooks: &[&str], object: &str) -> Vec<HookRun> {
        let hooks: Vec<String> = hooks
            .iter()
            .map(|command| {
                let command = serde_json::to_string(command).unwrap();
                format!(r#"{{"type":"command","command":{command},"timeout":20}}"#)
            })
            .collect();
        let json = format!(r#"{{"PreToolUse":[{{"matcher":"Bash","hooks":[{}]}}]}}"#, hooks.join(","));
        let mut settings = HookSettings::default();
        settings.add(serde_json::from_str(&json).unwrap()).unwrap();
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let call = HookCall {
            event: HookEvent::PreToolUse,
            object,
            input: RawObject::new(),
            cwd: Path::new("/"),
            environment: &environment,
        };
        call.with("tool_name", "Bash").run(&settings, &CancelToken::new())
    }

    #[test]
    fn hooks_get_the_event_and_answer_with_output_and_exit_code() {
        let runs =
            run(&["cat", "echo no >&2; exit 2", "exit 7", "sleep 0.1; echo '{\"continue\":false}'"], "Bash");
        let outcomes: Vec<HookOutcome> = runs.iter().map(|run| run.outcome).collect();
        use HookOutcome::{Blocked, Failed, Success};
        assert_eq!(outcomes, [Success, Blocked, Failed, Success]);
        assert_eq!(runs[0].stdout, "{\"tool_name\":\"Bash\"}\n");
        assert_eq!(runs[0].name, "PreToolUse:Bash");
        assert_eq!(runs[1].blocking_reason().unwrap(), "[echo no >&2; exit 2]: no");
        assert_eq!(runs[3].output.stop.as_deref(), Some(""));
    }

    #[test]
    fn hooks_of_other_tools_do_not_run() {
        assert!(run(&["true"], "Read").is_empty());
    }
}
