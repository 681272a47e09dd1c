//! A timer of the system that runs `archive push`: a systemd user unit, or a launchd agent.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use etcetera::BaseStrategy;

use crate::commands::hook_settings::show_change;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// The name of the units.
const UNIT: &str = "threadline-archive";
/// The label of the agent.
const AGENT: &str = "threadline.archive";

/// The first line of every unit, by which `uninstall` recognises it.
const MARK: &str = "Written by `threadline setup archive --timer`";
/// The same of earlier versions.
const EARLIER_MARK: &str = "Written by `threadline archive install --timer`";

/// Minutes between two runs.
const MINUTES: u32 = 60;

/// A file of the timer.
struct TimerFile {
    path: PathBuf,
    text: String,
}

/// The timers that systems have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerKind {
    Systemd,
    Launchd,
}

impl TimerKind {
    fn of_system() -> Result<Self, CommandError> {
        match std::env::consts::OS {
            "linux" => Ok(Self::Systemd),
            "macos" => Ok(Self::Launchd),
            system => Err(CommandError::new(format!("timers are not supported on {system}"))
                .hint("let your system run `threadline archive push` every hour")),
        }
    }

    /// Returns the files of a timer that runs a command.
    fn files(self, words: &[String]) -> Result<Vec<TimerFile>, CommandError> {
        let base = etcetera::choose_base_strategy()
            .map_err(|_| CommandError::new("cannot find your home folder").hint("set HOME"))?;
        Ok(match self {
            Self::Systemd => {
                let folder = base.config_dir().join("systemd/user");
                let file = |kind: &str, text| TimerFile { path: folder.join(format!("{UNIT}.{kind}")), text };
                vec![file("service", systemd_service(words)), file("timer", systemd_timer())]
            }
            Self::Launchd => {
                let path = base.home_dir().join(format!("Library/LaunchAgents/{AGENT}.plist"));
                vec![TimerFile { path, text: launchd_agent(words) }]
            }
        })
    }

    /// Returns the commands that start and stop the timer.
    fn commands(self, is_start: bool, files: &[TimerFile]) -> Vec<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let unit = format!("{UNIT}.timer");
        match (self, is_start) {
            (Self::Systemd, true) => vec![
                words(&["systemctl", "--user", "daemon-reload"]),
                words(&["systemctl", "--user", "enable", "--now", &unit]),
            ],
            (Self::Systemd, false) => vec![words(&["systemctl", "--user", "disable", "--now", &unit])],
            (Self::Launchd, _) => {
                let verb = if is_start { "load" } else { "unload" };
                let path = files.first().map(|file| file.path.to_string_lossy().into_owned());
                vec![words(&["launchctl", verb, "-w", &path.unwrap_or_default()])]
            }
        }
    }
}

fn systemd_service(words: &[String]) -> String {
    let command: Vec<String> = words.iter().map(|word| systemd_word(word)).collect();
    format!(
        "# {MARK}\n[Unit]\nDescription=Copy Claude Code sessions into an archive\n\n[Service]\nType=oneshot\n\
         # Credentials of object storage, such as AWS_ACCESS_KEY_ID\n\
         EnvironmentFile=-%E/threadline/archive.env\nExecStart={}\nNice=10\n",
        command.join(" ")
    )
}

fn systemd_timer() -> String {
    format!(
        "# {MARK}\n[Unit]\nDescription=Copy Claude Code sessions into an archive\n\n[Timer]\n\
         OnStartupSec=5min\nOnUnitActiveSec={MINUTES}min\nRandomizedDelaySec=5min\n\n\
         [Install]\nWantedBy=timers.target\n"
    )
}

/// Quotes a word of a command line of systemd.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

fn launchd_agent(words: &[String]) -> String {
    let text = |word: &String| {
        let escaped = word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!("    <string>{escaped}</string>\n")
    };
    let words: String = words.iter().map(text).collect();
    let seconds = MINUTES * 60;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- {MARK} -->\n<plist version=\"1.0\">\n<dict>\n  \
         <key>Label</key>\n  <string>{AGENT}</string>\n  <key>ProgramArguments</key>\n  <array>\n{words}  \
         </array>\n  <key>StartInterval</key>\n  <integer>{seconds}</integer>\n  <key>LowPriorityIO</key>\n  \
         <true/>\n</dict>\n</plist>\n"
    )
}

/// Writes the timer and starts it, or shows it.
pub(super) fn install(cx: &Context, words: &[String], apply: bool) -> Result<CommandOutcome, CommandError> {
    let kind = TimerKind::of_system()?;
    let files = kind.files(words)?;
    for file in &files {
        let before = read_own(&file.path)?;
        show_change(cx, &file.path, before.as_deref(), Some(&file.text), apply)?;
        if apply && before.as_deref() != Some(&*file.text) {
            write(&file.path, &file.text)?;
        }
    }
    match apply {
        true => run(cx, &kind.commands(true, &files)),
        false => cx.ui.note("dry run: nothing written or started; add --apply to do both"),
    }
    Ok(CommandOutcome::Done)
}

/// Stops the timer and removes its files, or shows that.
pub(super) fn uninstall(cx: &Context, apply: bool) -> Result<CommandOutcome, CommandError> {
    let kind = TimerKind::of_system()?;
    let files = kind.files(&[])?;
    let mut present = Vec::new();
    for file in &files {
        let before = read_own(&file.path)?;
        show_change(cx, &file.path, before.as_deref(), None, apply)?;
        present.extend(before.is_some().then_some(&file.path));
    }
    if apply && !present.is_empty() {
        run(cx, &kind.commands(false, &files));
        present.into_iter().try_for_each(std::fs::remove_file)?;
    } else if !present.is_empty() {
        cx.ui.note("dry run: nothing removed or stopped; add --apply to do both");
    }
    Ok(CommandOutcome::Done)
}

/// Returns the file of the timer, if it exists.
pub(super) fn installed_files() -> Vec<PathBuf> {
    let files = TimerKind::of_system().and_then(|kind| kind.files(&[])).unwrap_or_default();
    // The last one starts the other.
    let mut own = files.into_iter().rev().map(|file| file.path);
    own.find(|path| matches!(read_own(path), Ok(Some(_)))).into_iter().collect()
}

/// Reads a file of the timer; `None` if it does not exist.
///
/// # Errors
///
/// If it cannot be read, or if threadline did not write it.
fn read_own(path: &Path) -> Result<Option<String>, CommandError> {
    let text = match threadline_store::read_text_file(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CommandError::new(format!("cannot read {}: {error}", path.display()))),
    };
    match text.lines().take(2).any(|line| line.contains(MARK) || line.contains(EARLIER_MARK)) {
        true => Ok(Some(text)),
        false => Err(CommandError::new(format!("{} was not written by threadline", path.display()))
            .hint("the file was not changed")),
    }
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".threadline").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Runs commands of the system. One that fails is reported with its command line.
fn run(cx: &Context, commands: &[Vec<String>]) {
    for words in commands {
        let Some((program, arguments)) = words.split_first() else { continue };
        let done = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        if !done.is_ok_and(|done| done.status.success()) {
            cx.ui.warn(&format!("this command failed; run it yourself: {}", words.join(" ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_unit_are_quoted() {
        let words = ["/opt/my tools/threadline", "archive", "push", "--to", "file:/a\"b\\c%d$e"];
        let service = systemd_service(&words.map(str::to_owned));
        let line = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        assert_eq!(line, r#""/opt/my tools/threadline" "archive" "push" "--to" "file:/a\"b\\c%%d$$e""#);
    }

    #[test]
    fn words_of_an_agent_are_escaped() {
        let agent = launchd_agent(&["a&b".to_owned(), "<c>".to_owned()]);
        assert!(agent.contains("<string>a&amp;b</string>") && agent.contains("<string>&lt;c&gt;</string>"));
        assert!(agent.lines().take(2).any(|line| line.contains(MARK)));
    }
}
