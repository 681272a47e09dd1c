//! Runs a configured shell command, such as a hook, and collects its output.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use threadline_cancel::CancelToken;

use crate::process::{Exit, KillSignal, exit_of, kill_group, own_group, wait_for_exit};

/// A command line of the settings, with its input and its limits.
#[derive(Debug)]
pub struct ShellCommand<'a> {
    /// The command line.
    pub command: &'a str,
    /// The working folder.
    pub cwd: &'a Path,
    /// The whole environment.
    pub environment: &'a [(OsString, OsString)],
    /// Standard input.
    pub input: &'a str,
    /// The longest time that it may run.
    pub timeout: Duration,
    /// The largest number of bytes that are read from each output.
    pub max_output: u64,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellResult {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How the command ended.
    pub end: ShellEnd,
    /// How long it ran.
    pub duration: Duration,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellEnd {
    /// With this exit code; 128 and the signal's number if a signal ended it.
    Exit(i32),
    /// It took too long, and was ended.
    TimedOut,
    /// The person interrupted it.
    Cancelled,
}

/// Why the wait for a command ended.
enum Wakeup {
    Exited,
    Cancelled,
}

/// The time between the request to end and the end by force.
const KILL_GRACE: Duration = Duration::from_millis(500);

impl ShellCommand<'_> {
    /// Runs the command in a process group of its own, which is ended with it.
    ///
    /// # Errors
    ///
    /// If it cannot be started, and on systems that are not Unix: there is no shell for it, and no process
    /// group to end.
    pub fn run(&self, cancel: &CancelToken) -> io::Result<ShellResult> {
        if cfg!(not(unix)) {
            let message = "shell commands of settings are not supported on this system";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let start = Instant::now();
        // Files instead of pipes: a process that outlives the command cannot block us.
        let mut input = tempfile::tempfile()?;
        input.write_all(self.input.as_bytes())?;
        input.rewind()?;
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(self.command).current_dir(self.cwd).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(input)).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        own_group(&mut command);
        let mut child = command.spawn()?;
        let group = child.id();
        let (sender, receiver) = mpsc::channel();
        let end = std::thread::scope(|scope| {
            let exited = sender.clone();
            let child = &child;
            scope.spawn(move || {
                wait_for_exit(child);
                let _ = exited.send(Wakeup::Exited);
            });
            let guard = cancel.on_cancel(move || {
                let _ = sender.send(Wakeup::Cancelled);
            });
            let end = match receiver.recv_timeout(self.timeout) {
                Ok(Wakeup::Exited) => None,
                Ok(Wakeup::Cancelled) => Some(ShellEnd::Cancelled),
                Err(_) => Some(ShellEnd::TimedOut),
            };
            drop(guard);
            if end.is_some() {
                kill_group(group, KillSignal::Terminate);
                if receiver.recv_timeout(KILL_GRACE).is_err() {
                    kill_group(group, KillSignal::Kill);
                }
            }
            end
        });
        let exit = match exit_of(child.wait()?) {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        };
        Ok(ShellResult {
            stdout: self.read(stdout)?,
            stderr: self.read(stderr)?,
            end: end.unwrap_or(ShellEnd::Exit(exit)),
            duration: start.elapsed(),
        })
    }

    fn read(&self, mut file: File) -> io::Result<String> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(self.max_output).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn run(command: &str, timeout: Duration, cancel: &CancelToken) -> ShellResult {
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let command = ShellCommand {
            command,
            cwd: Path::new("/"),
            environment: &environment,
            input: "in\n",
            timeout,
            max_output: 100,
        };
        command.run(cancel).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_command_gets_its_input_and_returns_both_outputs() {
        let result = run("cat; echo err >&2; exit 3", LONG, &CancelToken::new());
        assert_eq!((&*result.stdout, &*result.stderr), ("in\n", "err\n"));
        assert_eq!(result.end, ShellEnd::Exit(3));
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let result = run("echo begin; sleep 60", Duration::from_millis(300), &CancelToken::new());
        assert_eq!((&*result.stdout, result.end), ("begin\n", ShellEnd::TimedOut));
        assert!(result.duration < LONG);
    }

    #[test]
    fn an_interrupt_ends_a_command() {
        let cancel = CancelToken::new();
        cancel.cancel();
        assert_eq!(run("sleep 60", LONG, &cancel).end, ShellEnd::Cancelled);
    }

    #[test]
    fn a_process_that_is_left_behind_does_not_block() {
        let result = run("sleep 60 & echo done", LONG, &CancelToken::new());
        assert_eq!(&*result.stdout, "done\n");
        assert!(result.duration < LONG);
    }

    #[test]
    fn long_output_is_cut() {
        assert_eq!(run("yes | head -c 1000", LONG, &CancelToken::new()).stdout.len(), 100);
    }
}
