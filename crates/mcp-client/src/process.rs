//! The process of a server, in a process group of its own.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

/// How long a server may take to end after its input was closed.
const CLOSE_GRACE: Duration = Duration::from_millis(300);
/// How long a server may take to end after SIGTERM.
const TERMINATE_GRACE: Duration = Duration::from_secs(1);
/// The interval between two looks at the processes that end.
const POLL: Duration = Duration::from_millis(5);
/// How long the end of standard error is waited for.
const STDERR_GRACE: Duration = Duration::from_millis(500);
/// The number of bytes of standard error that are kept.
const MAX_STDERR: usize = 2_000;

/// A running server.
pub(crate) struct ServerProcess {
    child: Child,
    stderr: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// The streams of the protocol.
pub(crate) type Streams = (ChildStdout, ChildStdin);

impl ServerProcess {
    /// Starts a server. Must run inside of the runtime.
    pub(crate) fn start(
        command: &str,
        args: &[String],
        environment: impl Iterator<Item = (OsString, OsString)>,
        cwd: &Path,
    ) -> io::Result<(Self, Streams)> {
        let mut command = Command::new(command);
        command.args(args).env_clear().envs(environment).current_dir(cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a stream is missing");
        let stdin = ChildStdin::from_std(child.stdin.take().ok_or_else(missing)?)?;
        let stdout = ChildStdout::from_std(child.stdout.take().ok_or_else(missing)?)?;
        let errors = ChildStderr::from_std(child.stderr.take().ok_or_else(missing)?)?;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let reader = tokio::spawn(keep_tail(errors, Arc::clone(&stderr)));
        Ok((Self { child, stderr, reader }, (stdout, stdin)))
    }

    /// Returns the last line of standard error. Waits a short time for its end, which follows that of the
    /// process.
    pub(crate) async fn last_error_line(&mut self) -> Option<String> {
        let _ = tokio::time::timeout(STDERR_GRACE, &mut self.reader).await;
        let bytes = self.stderr.lock();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

/// Reads a stream to its end and keeps its last bytes.
async fn keep_tail(mut stream: ChildStderr, tail: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut tail = tail.lock();
        tail.extend_from_slice(&buffer[..count]);
        let excess = tail.len().saturating_sub(MAX_STDERR);
        tail.drain(..excess);
    }
}

/// Ends servers whose input was closed: waits, then sends SIGTERM and SIGKILL to their process groups.
pub(crate) fn end_all(mut processes: Vec<ServerProcess>) {
    wait_all(&mut processes, CLOSE_GRACE);
    for process in &mut processes {
        // Children of a server that ended belong to its group too.
        kill_group(process, false);
    }
    wait_all(&mut processes, TERMINATE_GRACE);
    for process in &mut processes {
        kill_group(process, true);
        let _ = process.child.wait();
    }
}

fn wait_all(processes: &mut [ServerProcess], time: Duration) {
    let end = Instant::now() + time;
    while !processes.iter_mut().all(|process| has_ended(&mut process.child)) && Instant::now() < end {
        std::thread::sleep(POLL);
    }
}

/// Returns whether a process ended, without reaping it: its id must stay valid for [`kill_group`].
#[cfg(unix)]
fn has_ended(child: &mut Child) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

#[cfg(unix)]
fn kill_group(process: &mut ServerProcess, is_forced: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = if is_forced { Signal::KILL } else { Signal::TERM };
    if let Some(pid) = i32::try_from(process.child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

#[cfg(not(unix))]
fn kill_group(process: &mut ServerProcess, is_forced: bool) {
    if is_forced {
        let _ = process.child.kill();
    }
}
