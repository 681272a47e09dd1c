//! Programs that the screen runs during the conversation, with a limit on their time and output.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Runs a command with a text on its standard input. Returns at most `max_bytes` of its standard output;
/// `None` if it cannot be started, takes too long, or fails.
pub(super) fn output_of(
    command: &mut Command,
    input: &str,
    max_bytes: u64,
    longest: Duration,
) -> Option<Vec<u8>> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().ok()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that reads nothing is fine.
        let _ = stdin.write_all(input.as_bytes());
    }
    let mut output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.by_ref().take(max_bytes).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    let bytes = receiver.recv_timeout(longest);
    if bytes.is_err() {
        let _ = child.kill();
    }
    let is_success = child.wait().is_ok_and(|status| status.success());
    bytes.ok().filter(|bytes| is_success || bytes.len() as u64 == max_bytes)
}
