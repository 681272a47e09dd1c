//! Runs the binary in an isolated environment.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use threadline_testkit::TestHome;

/// The exit code and output of one run of the binary.
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl RunOutput {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let done = command.output().unwrap();
        Self {
            code: done.status.code().unwrap(),
            out: String::from_utf8(done.stdout).unwrap(),
            err: String::from_utf8(done.stderr).unwrap(),
        }
    }

    /// Parses stdout as a single JSON object.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// Parses stdout as JSON lines.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl std::fmt::Display for RunOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit: {}\n----- stdout -----\n{}----- stderr -----\n{}", self.code, self.out, self.err)
    }
}

/// Returns a command that is isolated from the developer's home and settings.
pub(crate) fn command(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadline"));
    let nowhere = Path::new(env!("CARGO_TARGET_TMPDIR"));
    command.args(args).env_clear().env("HOME", nowhere.join("nobody")).env("TZ", "UTC");
    command.env("XDG_STATE_HOME", nowhere.join("state"));
    command.env("XDG_CACHE_HOME", nowhere.join("cache")).stdin(Stdio::null());
    command
}

pub(crate) fn threadline(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> RunOutput {
    RunOutput::of(&mut command(args))
}

/// Runs the binary against a home and replaces its path with `[home]` in the output.
pub(crate) fn at_home(home: &TestHome, args: &[&str]) -> RunOutput {
    let root = home.root().to_str().unwrap();
    let mut run = threadline([&["--home", root], args].concat());
    run.out = run.out.replace(root, "[home]");
    run.err = run.err.replace(root, "[home]");
    run
}
