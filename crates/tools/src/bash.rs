//! Bash: runs a command in a shell.

mod command_words;
mod git_operation;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::background::{NewTask, file_size};
use crate::context::{ToolContext, ToolProgress};
use crate::output::{Failure, ResultContent, ToolOutput};
use crate::process::{Exit, SIGTERM};
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, optional, required};
use crate::side_output::persisted_text;
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

use git_operation::GitOperation;

/// The Bash tool.
pub(crate) struct Bash {
    pub(crate) profile: &'static Profile,
}

const PARAMETERS: &[Parameter] = &[
    required("command", Kind::Text(0), "The command line to run"),
    optional("timeout", Kind::Number(None), "Time limit in milliseconds; at most 600000, 120000 if left out"),
    optional("description", Kind::Text(0), "What the command does, in a few words"),
    optional("run_in_background", Kind::Flag, "Return at once and let the command run in the background"),
    optional("dangerouslyDisableSandbox", Kind::Flag, "Run without the sandbox, where one is in use"),
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BashRecord<'a> {
    stdout: &'a str,
    stderr: &'a str,
    interrupted: bool,
    is_image: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_code_interpretation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_output_expected: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background_task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backgrounded_by_user: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    persisted_output_path: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    persisted_output_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_operation: Option<GitOperation<'a>>,
}

impl BashRecord<'_> {
    /// Returns the record of a command without output.
    fn empty() -> Self {
        Self {
            stdout: "",
            stderr: "",
            interrupted: false,
            is_image: false,
            return_code_interpretation: None,
            no_output_expected: None,
            background_task_id: None,
            backgrounded_by_user: None,
            persisted_output_path: None,
            persisted_output_size: None,
            git_operation: None,
        }
    }
}

impl Tool for Bash {
    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> String {
        "Runs a command in a shell and returns its output. The current folder persists between calls as long as it \
         stays inside the project; variables, functions and aliases do not. There is no input. A command that exceeds \
         its time limit continues in the background. Use `run_in_background` for servers and long builds; a message \
         follows when they end."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn rewrite(&self, input: &mut ToolInput, cwd: &Path) {
        let command = input.text("command").unwrap_or_default();
        let command = command.replacen(&format!("cd {} && ", cwd.display()), "", 1).replace("\\\\;", "\\;");
        let member = |name: &str| input.json().get(name).cloned();
        let members = vec![
            ("command", Some(command.as_str().into())),
            ("timeout", member("timeout")),
            ("description", member("description")),
            ("run_in_background", member("run_in_background")),
            ("dangerouslyDisableSandbox", member("dangerouslyDisableSandbox")),
        ];
        input.set_members(members);
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.execute(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl Bash {
    fn execute(&self, input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
        if cfg!(not(unix)) {
            return Err(Failure::Failed("Bash is not supported on this system.".to_owned()));
        }
        let command = input.text("command").unwrap_or_default();
        if command.contains('\0') {
            return Err(Failure::Refused("Command contains null bytes".to_owned()));
        }
        let description = input.text("description").filter(|text| !text.is_empty()).unwrap_or(command);
        let unprepared = |error: io::Error| {
            Failure::Failed(format!("Cannot create a file in {}: {error}", context.tasks_dir.display()))
        };
        let cwd_file = CwdFile::new(context.tasks_dir).map_err(unprepared)?;
        let command_file = CommandFile::new(command, context.tasks_dir).map_err(unprepared)?;
        let new =
            NewTask { tool_use_id: context.tool_use_id, command, description, tasks_dir: context.tasks_dir };
        let is_background = input.flag("run_in_background");
        let mut script =
            format!("eval {}", command_file.as_ref().map_or_else(|| quote(command), CommandFile::expression));
        if !is_background {
            script.push_str(&format!(" && pwd -P >| {}", quote(&cwd_file.path().to_string_lossy())));
        }
        let mut shell = shell_command(&script, context);
        let started = context.background.start(&new, &mut shell);
        let (id, output_file) =
            started.map_err(|error| Failure::Failed(format!("Cannot run the shell: {error}")))?;
        let call = Call { profile: self.profile, command, id: &id, output_file: &output_file, context };
        if is_background {
            // The shell may read it later.
            if let Some(file) = command_file {
                file.keep();
            }
            return Ok(call.moved_to_background(false));
        }
        let limits = context.limits;
        let timeout = input.number("timeout").map_or(limits.bash_timeout, |milliseconds| {
            Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0).unwrap_or(Duration::MAX)
        });
        let exit = call.wait(timeout.min(limits.bash_timeout_max));
        match exit {
            Some(exit) => call.finished(exit, &cwd_file),
            None if context.cancel.is_cancelled() => Ok(call.interrupted()),
            None if context.background.is_released(&id) => Ok(call.moved_to_background(true)),
            None if command_words::may_move_to_background(command) => Ok(call.moved_to_background(false)),
            None => Err(call.timed_out(timeout)),
        }
    }
}

/// A started command.
struct Call<'a> {
    profile: &'static Profile,
    command: &'a str,
    id: &'a str,
    output_file: &'a Path,
    context: &'a ToolContext<'a>,
}

impl Call<'_> {
    /// Passes on the output until the command ends, and kills one that writes without end.
    fn wait(&self, timeout: Duration) -> Option<Exit> {
        let context = self.context;
        let mut tail = OutputTail { path: self.output_file, offset: 0 };
        let mut is_killed = false;
        let mut poll = || {
            if let Some(text) = tail.read_new() {
                (context.progress)(ToolProgress::Output(text));
            }
            if !is_killed && file_size(self.output_file) > context.limits.bash_output_max {
                is_killed = true;
                context.background.kill(self.id, Duration::ZERO);
            }
        };
        context.background.wait(self.id, timeout, context.cancel, &mut poll)
    }

    fn finished(&self, exit: Exit, cwd_file: &CwdFile) -> Result<ToolOutput, Failure> {
        let output = self.read_output();
        let reset = self.follow_cwd(cwd_file);
        self.context.background.remove(self.id);
        let code = match exit {
            Exit::Code(code) => code,
            Exit::Signal(SIGTERM) => self.profile.sigterm_code,
            Exit::Signal(_) => 1,
        };
        let meaning = command_words::exit_meaning(self.command, code);
        if code != 0 && meaning.is_none() {
            let _ = fs::remove_file(self.output_file);
            let text = trim_output(&output.text);
            let separator = if text.is_empty() { "" } else { "\n" };
            return Err(Failure::Failed(format!("Exit code {code}{separator}{text}")));
        }
        let kept = self.keep_large_output(&output);
        let stdout = if kept.is_some() { output.text.trim_end() } else { trim_output(&output.text) };
        let image = data_url(stdout).filter(|_| kept.is_none());
        let git_operation = if self.profile.bash_records_git && code == 0 {
            GitOperation::find(self.command, stdout)
        } else {
            None
        };
        let pull_request = git_operation.as_ref().and_then(GitOperation::created_pull_request);
        let record = BashRecord {
            stdout,
            stderr: reset.as_deref().unwrap_or_default(),
            interrupted: false,
            is_image: image.is_some(),
            return_code_interpretation: meaning,
            no_output_expected: self.expectation(),
            background_task_id: None,
            backgrounded_by_user: None,
            persisted_output_path: kept.as_deref(),
            persisted_output_size: kept.is_some().then_some(output.size),
            git_operation,
        };
        let shown = match &kept {
            Some(path) => self.preview(&output, path),
            None => stdout.to_owned(),
        };
        let parts = [shown.as_str(), reset.as_deref().unwrap_or_default().trim()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let text = if parts.is_empty() { self.profile.bash_no_output.to_owned() } else { parts.join("\n") };
        let mut result = ToolOutput::success(text, &record);
        result.pull_request = pull_request.map(Box::new);
        if let Some((media_type, data)) = image {
            result.content = ResultContent::Blocks(vec![ResultContent::image_block(media_type, data)]);
        }
        Ok(result)
    }

    fn expectation(&self) -> Option<bool> {
        self.profile.bash_records_expectation.then(|| command_words::is_silent(self.command))
    }

    fn moved_to_background(&self, by_user: bool) -> ToolOutput {
        self.context.background.detach(self.id, self.context.limits.bash_output_max);
        let state = if by_user {
            "Command was manually backgrounded by user"
        } else {
            "Command running in background"
        };
        let mut text = format!(
            "{state} with ID: {}. Output is being written to: {}.",
            self.id,
            self.output_file.display()
        );
        if self.profile.background_notifies && !by_user {
            text.push_str(
                " You will be notified when it completes. To check interim output, use Read on that file path.",
            );
        } else {
            text = text.trim_end_matches('.').to_owned();
        }
        let record = BashRecord {
            no_output_expected: self.profile.bash_records_expectation.then_some(false),
            background_task_id: Some(self.id),
            backgrounded_by_user: by_user.then_some(true),
            ..BashRecord::empty()
        };
        ToolOutput::success(text, &record)
    }

    /// Ends a cancelled command and returns its output so far.
    fn interrupted(&self) -> ToolOutput {
        self.context.background.kill(self.id, self.context.limits.kill_grace);
        let output = self.read_output();
        self.discard();
        let stdout = trim_output(&output.text);
        let record = BashRecord {
            stdout,
            interrupted: true,
            no_output_expected: self.expectation(),
            ..BashRecord::empty()
        };
        let note = "<error>Command was aborted before completion</error>";
        let text = if stdout.is_empty() { note.to_owned() } else { format!("{stdout}\n{note}") };
        ToolOutput { is_error: true, ..ToolOutput::success(text, &record) }
    }

    fn timed_out(&self, timeout: Duration) -> Failure {
        self.context.background.kill(self.id, self.context.limits.kill_grace);
        let output = self.read_output();
        self.discard();
        let text = trim_output(&output.text);
        let separator = if text.is_empty() { "" } else { "\n" };
        let time = show_duration(timeout);
        Failure::Failed(format!("Exit code 143\nCommand timed out after {time}{separator}{text}"))
    }

    fn discard(&self) {
        self.context.background.remove(self.id);
        let _ = fs::remove_file(self.output_file);
    }

    fn read_output(&self) -> OutputHead {
        OutputHead::read(self.output_file, self.context.limits.bash_output_bytes)
    }

    /// Moves an output that is too large to show to the side files; removes others. Returns where it is kept.
    fn keep_large_output(&self, output: &OutputHead) -> Option<PathBuf> {
        if output.size <= self.context.limits.bash_output_bytes {
            let _ = fs::remove_file(self.output_file);
            return None;
        }
        let kept = self.context.side_files.join(format!("{}.txt", self.id));
        let moved = fs::create_dir_all(self.context.side_files).and_then(|()| {
            // A rename fails between file systems.
            fs::rename(self.output_file, &kept).or_else(|_| {
                fs::copy(self.output_file, &kept)?;
                fs::remove_file(self.output_file)
            })
        });
        Some(if moved.is_ok() { kept } else { self.output_file.to_owned() })
    }

    fn preview(&self, output: &OutputHead, path: &Path) -> String {
        persisted_text(&output.text, output.size, path, self.context.limits.preview_chars)
    }

    /// Takes over the folder in which the command ended. Returns a note if it is outside of the project.
    fn follow_cwd(&self, cwd_file: &CwdFile) -> Option<String> {
        let cwd = cwd_file.read()?;
        if self.context.is_inside(&cwd) {
            self.context.shell.set_cwd(cwd);
            return None;
        }
        self.context.shell.set_cwd(self.context.project);
        let line_end = if self.profile.reset_note_begins_line { "\n" } else { "" };
        Some(format!("{line_end}Shell cwd was reset to {}", self.context.project.display()))
    }
}

/// Returns the media type and the data of an output that is one image as a data URL.
fn data_url(text: &str) -> Option<(&str, &str)> {
    let (media_type, data) = text.trim().strip_prefix("data:")?.split_once(";base64,")?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    (media_type.starts_with("image/") && !data.is_empty() && data.bytes().all(is_base64))
        .then_some((media_type, data))
}

/// Returns a time as the reference shows it: `0s`, `59s`, `2m 0s`.
fn show_duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => format!("{}m {}s", seconds / 60, seconds % 60),
    }
}

/// Removes blank lines at the beginning and white space at the end.
fn trim_output(text: &str) -> &str {
    let text = text.trim_end();
    let first = text.find(|ch: char| !ch.is_whitespace()).unwrap_or(text.len());
    let line = text[..first].rfind('\n').map_or(0, |at| at + 1);
    &text[line..]
}

/// The beginning of an output.
pub(crate) struct OutputHead {
    pub(crate) text: String,
    size: u64,
}

impl OutputHead {
    /// Reads at most `max` bytes. An output that cannot be read counts as empty.
    pub(crate) fn read(path: &Path, max: u64) -> Self {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(max).read_to_end(&mut bytes));
        let size = if read.is_ok() { file_size(path).max(bytes.len() as u64) } else { 0 };
        Self { text: String::from_utf8_lossy(&bytes).into_owned(), size }
    }
}

/// The new part of a growing output.
struct OutputTail<'a> {
    path: &'a Path,
    offset: u64,
}

/// The most output that is passed on at once.
const TAIL_CHUNK: u64 = 8 * 1024;

impl OutputTail<'_> {
    /// Returns the output since the last call, or the last part of it.
    fn read_new(&mut self) -> Option<String> {
        let size = file_size(self.path);
        if size <= self.offset {
            return None;
        }
        let start = self.offset.max(size.saturating_sub(TAIL_CHUNK));
        self.offset = size;
        let mut bytes = Vec::new();
        let read = File::open(self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(start))?;
            file.take(size - start).read_to_end(&mut bytes)
        });
        read.is_ok().then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A file to which the shell writes its folder when the command succeeds.
struct CwdFile {
    file: tempfile::TempPath,
}

impl CwdFile {
    fn new(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let file = tempfile::Builder::new().prefix("cwd-").tempfile_in(dir)?;
        Ok(Self { file: file.into_temp_path() })
    }

    fn path(&self) -> &Path {
        &self.file
    }

    fn read(&self) -> Option<PathBuf> {
        let bytes = fs::read(&self.file).ok()?;
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        (!line.is_empty()).then(|| path_from_bytes(line))
    }
}

#[cfg(unix)]
fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// A file with a command that is too long for the arguments of a process.
struct CommandFile {
    file: tempfile::TempPath,
}

/// The longest command that is passed as an argument. Linux allows 128 KiB, of which quotes take a part.
const MAX_ARGUMENT: usize = 48 * 1024;

impl CommandFile {
    /// Saves a long command; `None` for others.
    fn new(command: &str, dir: &Path) -> io::Result<Option<Self>> {
        if command.len() <= MAX_ARGUMENT {
            return Ok(None);
        }
        let mut file = tempfile::Builder::new().prefix("command-").tempfile_in(dir)?;
        file.write_all(command.as_bytes())?;
        Ok(Some(Self { file: file.into_temp_path() }))
    }

    /// Leaves the file where it is.
    fn keep(self) {
        let _ = self.file.keep();
    }

    /// Returns the shell expression of the command.
    fn expression(&self) -> String {
        format!("\"$(cat {})\"", quote(&self.file.to_string_lossy()))
    }
}

/// Returns the shell with a script, its folder and its environment.
fn shell_command(script: &str, context: &ToolContext<'_>) -> Command {
    let shell = context.variable("SHELL").filter(|shell| is_supported_shell(shell)).unwrap_or("/bin/bash");
    let mut cwd = context.cwd();
    if !cwd.is_dir() {
        context.shell.set_cwd(context.project);
        cwd = context.project.to_owned();
    }
    let mut shell_command = match context.launcher {
        None => Command::new(shell),
        Some(launcher) => {
            let mut command = Command::new(&launcher.program);
            command.args(&launcher.arguments).arg("--").arg(shell);
            command
        }
    };
    shell_command.arg("-c").arg(script).current_dir(&cwd).env_clear();
    shell_command.envs(context.environment.iter().map(|(name, value)| (name, value)));
    // The folder before this one belongs to the shell from which this program was started.
    shell_command.env("PWD", cwd).env_remove("OLDPWD");
    shell_command
}

/// Returns whether `$SHELL` understands the commands that models write.
fn is_supported_shell(shell: &str) -> bool {
    let name = Path::new(shell).file_name().and_then(|name| name.to_str());
    matches!(name, Some("bash" | "zsh")) && Path::new(shell).is_file()
}

/// Quotes a text for a shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
