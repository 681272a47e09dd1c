//! Child processes in process groups of their own, so that their descendants can be killed with them.
//!
//! Groups exist on Unix only; on other systems the functions for groups and signals do nothing.

use std::fs::File;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    #[cfg_attr(not(unix), expect(dead_code, reason = "signals end processes on Unix only"))]
    Signal(i32),
}

/// The signals that are sent to process groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillSignal {
    Terminate,
    Kill,
}

/// SIGTERM on every supported system.
pub(crate) const SIGTERM: i32 = 15;

/// Starts a command as the leader of a new process group, with no stdin, and with stdout and stderr in one
/// file.
pub(crate) fn spawn(command: &mut Command, output: File) -> io::Result<Child> {
    let stderr = output.try_clone()?;
    own_group(command);
    command.stdin(Stdio::null()).stdout(output).stderr(stderr).spawn()
}

#[cfg(unix)]
pub(crate) fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
pub(crate) fn own_group(_: &mut Command) {}

/// Blocks until the process ends, without reaping it: its id stays valid until [`Child::wait`].
#[cfg(unix)]
pub(crate) fn wait_for_exit(child: &Child) {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    if let Some(pid) = pid(child.id()) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
    }

    fn pid(id: u32) -> Option<Pid> {
        Pid::from_raw(i32::try_from(id).ok()?)
    }
}

#[cfg(not(unix))]
pub(crate) fn wait_for_exit(_: &Child) {}

/// Sends a signal to the process group of a child. The child must not be reaped yet: its id could belong to
/// another process.
#[cfg(unix)]
pub(crate) fn kill_group(id: u32, signal: KillSignal) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = match signal {
        KillSignal::Terminate => Signal::TERM,
        KillSignal::Kill => Signal::KILL,
    };
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

#[cfg(not(unix))]
pub(crate) fn kill_group(_: u32, _: KillSignal) {}

/// Converts the status of a process. Killed processes have no exit code.
#[cfg(unix)]
pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

#[cfg(not(unix))]
pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    Exit::Code(status.code().unwrap_or(1))
}
