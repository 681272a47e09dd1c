//! `threadline __sandbox-exec`: restricts this process and executes another program. Not for people.

use std::ffi::OsString;
use std::process::ExitCode;

use threadline_sandbox::{SandboxPolicy, restrict};
use threadline_term::text;

use crate::ui;

/// The name of the command.
const COMMAND: &str = "__sandbox-exec";
const WRITE: &str = "--write";
const NETWORK: &str = "--network";
/// The exit code of a program that cannot be executed, as shells use it.
const CANNOT_EXECUTE: u8 = 126;

/// Returns the arguments that restrict a process; `--` and the program follow.
pub(crate) fn arguments(policy: &SandboxPolicy) -> Vec<OsString> {
    let mut arguments = vec![OsString::from(COMMAND)];
    arguments.extend(policy.writable.iter().flat_map(|path| [OsString::from(WRITE), path.into()]));
    if policy.allows_network {
        arguments.push(NETWORK.into());
    }
    arguments
}

/// Returns the arguments of this process, if it is to restrict itself.
pub(crate) fn requested() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().filter(|name| name == COMMAND)?;
    Some(arguments.collect())
}

/// Restricts this process and executes the program. Returns only if that fails.
pub(crate) fn run(arguments: Vec<OsString>) -> ExitCode {
    let failure = match parse(arguments) {
        None => "invalid arguments".to_owned(),
        Some((policy, program)) => match restrict(&policy) {
            Err(error) => error.to_string(),
            Ok(()) => execute(&program),
        },
    };
    ui::write_stderr(&text!("cannot run the command in the sandbox: {failure}\n"));
    ExitCode::from(CANNOT_EXECUTE)
}

fn parse(arguments: Vec<OsString>) -> Option<(SandboxPolicy, Vec<OsString>)> {
    let mut policy = SandboxPolicy::default();
    let mut arguments = arguments.into_iter();
    loop {
        let argument = arguments.next()?;
        if argument == "--" {
            let program: Vec<OsString> = arguments.collect();
            return (!program.is_empty()).then_some((policy, program));
        } else if argument == WRITE {
            policy.writable.push(arguments.next()?.into());
        } else if argument == NETWORK {
            policy.allows_network = true;
        } else {
            return None;
        }
    }
}

#[cfg(unix)]
fn execute(program: &[OsString]) -> String {
    use std::os::unix::process::CommandExt;
    std::process::Command::new(&program[0]).args(&program[1..]).exec().to_string()
}

#[cfg(not(unix))]
fn execute(_: &[OsString]) -> String {
    "not supported on this system".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_survives_the_command_line() {
        let policy = SandboxPolicy { writable: vec!["/a b".into(), "--".into()], allows_network: true };
        let mut words = arguments(&policy).split_off(1);
        words.extend(["--", "sh", "-c", "x"].map(OsString::from));
        let (parsed, program) = parse(words).unwrap();
        assert_eq!((parsed.writable, parsed.allows_network), (policy.writable, true));
        assert_eq!(program, ["sh", "-c", "x"]);
        for invalid in [vec![], vec!["--"], vec!["--write"], vec!["--nope", "--", "sh"]] {
            assert!(parse(invalid.into_iter().map(OsString::from).collect()).is_none());
        }
    }
}
