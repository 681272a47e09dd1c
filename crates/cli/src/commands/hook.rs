//! `hook`: run by Claude Code at its events, for all features.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Parser;
use jiff::Timestamp;
use serde::Deserialize;
use threadline_app::file_copies::{DEFAULT_LIMIT, FileRecorder, RecordOutcome, RecordedCall, RecordedEvent};
use threadline_app::{App, AppConfig};
use threadline_settings::FEATURE_SEPARATOR;
use threadline_trace::HookLog;
use threadline_view::humanize::plural;

use super::trace::{self, TraceCommand};
use super::{Command as CliCommand, archive};
use crate::Cli;
use crate::config::{ConfigFile, UserConfig};
use crate::context::{Context, secret_rules};
use crate::error::{CommandError, CommandOutcome};
use crate::{env, ui};

/// Run the features that `threadline setup` turned on; a hook of Claude Code
///
/// Reads the hook's JSON from standard input, writes nothing to standard output, and always exits with 0, so
/// that Claude Code is never interrupted. `threadline setup --log` shows what hooks did.
#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// Options, and names of features with their options, separated by `+`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FEATURE")]
    words: Vec<OsString>,
}

pub(crate) fn run(args: HookArgs) -> Result<CommandOutcome, CommandError> {
    run_words(args.words);
    Ok(CommandOutcome::Done)
}

/// Maximum number of bytes read from stdin.
const MAX_INPUT: u64 = 64 << 20;

/// The fields of the input of a hook that are used here.
#[derive(Debug, Deserialize)]
struct HookEventInput {
    session_id: String,
    #[serde(default)]
    hook_event_name: String,
    #[serde(default)]
    cwd: PathBuf,
    transcript_path: Option<PathBuf>,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_use_id: String,
    agent_id: Option<String>,
    #[serde(default)]
    tool_input: HookToolInput,
}

#[derive(Debug, Default, Deserialize)]
struct HookToolInput {
    #[serde(default)]
    command: serde_json::Value,
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct HookLine {
    state_dir: Option<PathBuf>,
    /// The session whose postponed comparisons are to be made.
    finish: Option<String>,
    /// Whether to remove copies over the limit.
    cleans_up: bool,
    /// Features with their arguments.
    features: Vec<(String, Vec<String>)>,
}

impl HookLine {
    fn parse(words: Vec<OsString>) -> Self {
        let mut line = Self::default();
        let words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
        let mut words = words.peekable();
        while let Some(option) = words.next_if(|word| word.starts_with("--")) {
            match option.split_once('=') {
                Some(("--state-dir", value)) => line.state_dir = Some(value.into()),
                Some(("--finish", value)) => line.finish = Some(value.to_owned()),
                None if option == "--clean-up" => line.cleans_up = true,
                // Of a later version.
                _ => {}
            }
        }
        let words: Vec<String> = words.collect();
        for group in words.split(|word| word == FEATURE_SEPARATOR) {
            if let Some((name, arguments)) = group.split_first() {
                line.features.push((name.clone(), arguments.to_vec()));
            }
        }
        line
    }
}

/// Returns the log of what hooks did, below the state folder.
pub(crate) fn hook_log(state_dir: &Path) -> HookLog {
    HookLog::open(&state_dir.join("hooks"))
}

/// Runs the hook with the words after `hook`.
pub(crate) fn run_words(words: Vec<OsString>) {
    let line = HookLine::parse(words);
    if let Some(folder) = &line.state_dir {
        env::set_state_dir(folder.clone());
    }
    let Some(state_dir) = env::state_dir() else { return };
    let hook = Hook { log: hook_log(&state_dir), state_dir };
    if line.finish.is_some() || line.cleans_up {
        hook.work_later(&line);
    } else if io::stdin().is_terminal() {
        ui::write_stderr(&threadline_term::text!(
            "threadline hook is run by Claude Code; turn features on with `threadline setup`\n"
        ));
    } else {
        let mut input = Vec::new();
        match io::stdin().lock().take(MAX_INPUT).read_to_end(&mut input) {
            Ok(_) => hook.run(line.features, &input),
            Err(error) => hook.write("ERROR", "hook", &error.to_string()),
        }
    }
}

/// A run of the hook.
struct Hook {
    state_dir: PathBuf,
    log: HookLog,
}

impl Hook {
    /// Writes a line about a feature to the log.
    fn write(&self, level: &str, feature: &str, text: &str) {
        // There is nowhere to report a failure.
        let _ = self.log.write(Timestamp::now().as_millisecond(), level, &format!("{feature}: {text}"));
    }

    /// Runs the features at an event.
    fn run(&self, features: Vec<(String, Vec<String>)>, input: &[u8]) {
        let event: HookEventInput = match serde_json::from_slice(input) {
            Ok(event) => event,
            Err(error) => {
                return self.write("ERROR", "hook", &format!("stdin is not the input of a hook: {error}"));
            }
        };
        let mut waiting = Vec::new();
        let mut archives = Vec::new();
        for (name, arguments) in features {
            match &*name {
                "files" => self.record_files(&event),
                "trace" => waiting.extend(self.start_trace(&arguments, input)),
                "archive" => archives.push(arguments),
                _ => self.write("WARN", &name, "unknown feature"),
            }
        }
        // Spans are sent meanwhile.
        for arguments in &archives {
            self.push_archive(&event, arguments);
        }
        for (done, time) in waiting {
            if done.recv_timeout(time).is_err() {
                self.write("WARN", "trace", "deadline exceeded");
            }
        }
    }

    /// Sends spans on a thread. Returns what signals its end, and how long to wait for that.
    fn start_trace(&self, arguments: &[String], input: &[u8]) -> Option<(mpsc::Receiver<()>, Duration)> {
        let cli = self.parse("trace", &["trace", "hook"], arguments)?;
        let CliCommand::Trace(TraceCommand::Hook(args)) = cli.command else { return None };
        let time = args.timeout() + Duration::from_secs(1);
        let (input, (sender, receiver)) = (input.to_vec(), mpsc::channel());
        let log = self.log.clone();
        std::thread::spawn(move || {
            let cx = Context::new(&cli.global, crate::context::SourceUse::None);
            if let Err(error) = cx.and_then(|cx| trace::hook::run_with_input(&cx, &args, &input)) {
                let at = Timestamp::now().as_millisecond();
                let _ = log.write(at, "ERROR", &format!("trace: {}", first_line(&error)));
            }
            // Nothing waits for it after the deadline.
            let _ = sender.send(());
        });
        Some((receiver, time))
    }

    fn push_archive(&self, event: &HookEventInput, arguments: &[String]) {
        let Some(cli) = self.parse("archive", &["--quiet", "archive", "push"], arguments) else { return };
        let started = Instant::now();
        let run = |cx: Context| match &cli.command {
            CliCommand::Archive(command) => archive::run(&cx, command),
            _ => Ok(CommandOutcome::Done),
        };
        match Context::new(&cli.global, crate::context::SourceUse::Archive).and_then(run) {
            Ok(_) => {
                let time = started.elapsed().as_secs_f64();
                self.write("INFO", "archive", &format!("{} {time:.1} s", about(event)));
            }
            Err(error) => self.write("ERROR", "archive", &first_line(&error)),
        }
    }

    /// Parses the command line of a feature.
    fn parse(&self, feature: &str, command: &[&str], arguments: &[String]) -> Option<Cli> {
        let words = ["threadline"].iter().chain(command).map(|word| (*word).to_owned());
        match Cli::try_parse_from(words.chain(arguments.iter().cloned())) {
            Ok(cli) => Some(cli),
            Err(error) => {
                self.write("ERROR", feature, error.to_string().lines().next().unwrap_or_default());
                None
            }
        }
    }

    /// Keeps the texts of files around a shell call.
    fn record_files(&self, event: &HookEventInput) {
        let recorded = match &*event.hook_event_name {
            "PreToolUse" => RecordedEvent::Before,
            "PostToolUse" | "PostToolUseFailure" => RecordedEvent::After,
            "SubagentStop" => RecordedEvent::AgentEnd,
            _ => return,
        };
        if recorded != RecordedEvent::AgentEnd && event.tool_name != "Bash" {
            return;
        }
        let call = RecordedCall {
            session_id: event.session_id.clone(),
            event: recorded,
            tool_use_id: event.tool_use_id.clone(),
            agent_id: event.agent_id.clone(),
            tool: event.tool_name.clone(),
            cwd: event.cwd.clone(),
            project: env::get(env::CLAUDE_PROJECT_DIR).map(PathBuf::from),
            command: event.tool_input.command.as_str().map(str::to_owned),
            log: event.transcript_path.clone(),
        };
        let Some(recorder) = self.recorder() else { return };
        let started = Instant::now();
        if recorded == RecordedEvent::After && recorder.takes_long(&call) {
            match recorder.postpone(&call) {
                Ok(()) => self.start_later(&[format!("--finish={}", call.session_id)]),
                Err(error) => self.write("ERROR", "files", &error.to_string()),
            }
            return;
        }
        self.report(&about(event), started, recorder.record(&call));
    }

    fn recorder(&self) -> Option<FileRecorder> {
        let file = UserConfig::read().unwrap_or_default().file;
        let (state_dir, home_dir) = (Some(self.state_dir.clone()), etcetera::home_dir().ok());
        let app = App::new(AppConfig { state_dir, home_dir, ..AppConfig::default() });
        file_recorder(&app, &file)
    }

    /// Writes the result of a comparison to the log, and starts a clean-up if one is due.
    fn report(&self, about: &str, started: Instant, outcome: io::Result<RecordOutcome>) {
        let time = started.elapsed().as_millis();
        match outcome {
            Err(error) => self.write("ERROR", "files", &format!("{about}: {error}")),
            Ok(outcome) => {
                let (level, note) = if outcome.is_cut { ("WARN", ", not complete") } else { ("INFO", "") };
                let changes = plural(outcome.changes as u64, "change");
                self.write(level, "files", &format!("{about}: {changes}{note}, {time} ms"));
                if outcome.is_over_limit {
                    self.start_later(&["--clean-up".to_owned()]);
                }
            }
        }
    }

    /// Starts a process that Claude Code does not wait for.
    fn start_later(&self, options: &[String]) {
        let start = || -> io::Result<()> {
            let mut command = Command::new(std::env::current_exe()?);
            let mut state_dir = OsString::from("--state-dir=");
            state_dir.push(&self.state_dir);
            command.arg("hook").arg(state_dir).args(options);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            command.spawn().map(drop)
        };
        if let Err(error) = start() {
            self.write("ERROR", "files", &error.to_string());
        }
    }

    /// Does the work that an earlier run left.
    fn work_later(&self, line: &HookLine) {
        let Some(recorder) = self.recorder() else { return };
        let started = Instant::now();
        if let Some(session) = &line.finish {
            self.report(&format!("{session} after a call"), started, recorder.finish_postponed(session));
        }
        if line.cleans_up {
            match recorder.clean_up() {
                Ok(done) => {
                    let text =
                        format!("removed {}", plural(done.contents as u64, "copy of the oldest sessions"));
                    self.write("INFO", "files", &text);
                }
                Err(error) => self.write("ERROR", "files", &error.to_string()),
            }
        }
    }
}

/// Returns a recorder of files with the user's limit and rules. `None` if there is no state folder.
pub(crate) fn file_recorder(app: &App, file: &ConfigFile) -> Option<FileRecorder> {
    let limit = file.files_limit.map_or(DEFAULT_LIMIT, |megabytes| megabytes.saturating_mul(1 << 20));
    let file = file.clone();
    // A mistake in the user's rules is no reason to keep secrets that the others find.
    app.file_recorder(limit, move || secret_rules(&file).unwrap_or_default()).ok()
}

/// Returns the session and the event as words of the log.
fn about(event: &HookEventInput) -> String {
    format!("{} {}", event.session_id, event.hook_event_name)
}

fn first_line(error: &CommandError) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_names_features_with_their_arguments() {
        let parse = |text: &str| HookLine::parse(text.split(' ').map(OsString::from).collect());
        let line = parse("--state-dir=/a=b --new files + trace --preset otlp + archive");
        assert_eq!(line.state_dir.as_deref(), Some(Path::new("/a=b")));
        let names: Vec<_> = line.features.iter().map(|(name, words)| (&**name, words.len())).collect();
        assert_eq!(names, [("files", 0), ("trace", 2), ("archive", 0)]);
        let later = parse("--finish=s --clean-up");
        assert_eq!((later.finish.as_deref(), later.cleans_up, later.features.len()), (Some("s"), true, 0));
    }
}
