//! A program on a pseudo-terminal, with an emulator that shows its screen.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// How long a test waits for a screen.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The rows of the scrollback.
const SCROLLBACK: usize = 100_000;

/// A program on a pseudo-terminal.
pub struct TestTerminal {
    master: File,
    /// Keeps the terminal open after the program has ended.
    slave: File,
    child: Child,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<Emulator>,
    changed: Condvar,
}

struct Emulator {
    parser: vt100::Parser,
    /// Everything that the program has written.
    bytes: Vec<u8>,
    keeps_bytes: bool,
    /// The number of writes so far, and the time of the last one.
    writes: usize,
    last_write: Instant,
    /// The beginning of the line of the cursor that is expected, and when it was first there.
    expected: Option<String>,
    expected_at: Option<Instant>,
}

impl Emulator {
    /// Notes the time if the line of the cursor begins with the expected text.
    fn check_expected(&mut self) {
        let Some(expected) = &self.expected else { return };
        let screen = self.parser.screen();
        let (row, columns) = (screen.cursor_position().0, screen.size().1);
        if screen.contents_between(row, 0, row, columns).starts_with(expected.as_str()) {
            self.expected = None;
            self.expected_at = Some(Instant::now());
        }
    }
}

/// The start and the end of a synchronized update.
const BEGIN_UPDATE: &[u8] = b"\x1b[?2026h";
const END_UPDATE: &[u8] = b"\x1b[?2026l";

/// Returns the length of the output without an update that is not complete, or that may begin at its end.
fn complete_updates(output: &[u8]) -> usize {
    let last = |sequence: &[u8]| output.windows(sequence.len()).rposition(|window| window == sequence);
    match (last(BEGIN_UPDATE), last(END_UPDATE)) {
        (Some(begin), end) if end.is_none_or(|end| end < begin) => begin,
        _ => {
            let starts = (1..BEGIN_UPDATE.len()).rev();
            output.len() - starts.into_iter().find(|n| output.ends_with(&BEGIN_UPDATE[..*n])).unwrap_or(0)
        }
    }
}

impl TestTerminal {
    /// Starts a program in a session of its own, with this terminal as its controlling terminal and no other
    /// environment than `envs`.
    ///
    /// # Panics
    ///
    /// If there is no pseudo-terminal, or the program cannot be started. `setsid` of util-linux is needed.
    pub fn start(
        program: &Path,
        args: &[&str],
        envs: &[(&str, OsString)],
        cwd: &Path,
        (rows, columns): (u16, u16),
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("its other end");
        unlockpt(&master).expect("its other end");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let slave = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes()));
        let slave = slave.expect("its other end");
        set_size(&slave, rows, columns);
        let mut command = Command::new("setsid");
        command.arg("-c").arg(program).args(args).env_clear().envs(envs.iter().cloned()).current_dir(cwd);
        let end = || Stdio::from(slave.try_clone().expect("a copy of a file"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid");
        let shared = Arc::new(Shared {
            state: Mutex::new(Emulator {
                parser: vt100::Parser::new(rows, columns, SCROLLBACK),
                bytes: Vec::new(),
                keeps_bytes: true,
                writes: 0,
                last_write: Instant::now(),
                expected: None,
                expected_at: None,
            }),
            changed: Condvar::new(),
        });
        let master = File::from(master);
        let mut output = master.try_clone().expect("a copy of a file");
        let reader = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut buffer = [0; 1 << 16];
            let mut pending = Vec::new();
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let mut state = reader.state.lock();
                pending.extend(&buffer[..count]);
                // As in a terminal, an update is shown when it is complete.
                let complete = complete_updates(&pending);
                state.parser.process(&pending[..complete]);
                pending.drain(..complete);
                if state.keeps_bytes {
                    state.bytes.extend(&buffer[..count]);
                }
                state.writes += 1;
                state.last_write = Instant::now();
                state.check_expected();
                reader.changed.notify_all();
            }
        });
        Self { master, slave, child, shared }
    }

    /// Types text or keys.
    ///
    /// # Panics
    ///
    /// If the terminal is gone.
    pub fn send(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Types keys. Returns the time until the line of the cursor begins with a text, as the emulator sees it.
    ///
    /// # Panics
    ///
    /// If it does not within a minute.
    pub fn time_keys(&mut self, keys: &str, expected: &str) -> Duration {
        {
            let mut state = self.shared.state.lock();
            (state.expected, state.expected_at) = (Some(expected.to_owned()), None);
        }
        let start = Instant::now();
        self.send(keys);
        let mut state = self.shared.state.lock();
        self.shared.changed.wait_while_for(&mut state, |state| state.expected_at.is_none(), LONGEST_WAIT);
        let at = state
            .expected_at
            .unwrap_or_else(|| panic!("no {expected:?} on this screen:\n{}", text_of(state.parser.screen())));
        at.saturating_duration_since(start)
    }

    /// Pastes text, as a terminal with bracketed paste does.
    pub fn paste(&mut self, text: &str) {
        self.send(&format!("\u{1b}[200~{text}\u{1b}[201~"));
    }

    /// Changes the size.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.shared.state.lock().parser.screen_mut().set_size(rows, columns);
        set_size(&self.slave, rows, columns);
    }

    /// Waits until the screen satisfies a condition. Returns its text.
    ///
    /// # Panics
    ///
    /// If it does not within a minute.
    pub fn wait_until(&self, what: &str, is_met: impl Fn(&vt100::Screen) -> bool) -> String {
        let end = Instant::now() + LONGEST_WAIT;
        let mut state = self.shared.state.lock();
        while !is_met(state.parser.screen()) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what} on this screen:\n{}", text_of(state.parser.screen()));
            self.shared.changed.wait_for(&mut state, left);
        }
        text_of(state.parser.screen())
    }

    /// Waits for a text on the screen. Returns the text of the screen.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(&format!("{text:?}"), |screen| screen.contents().contains(text))
    }

    /// Waits until a text is not on the screen any more. Returns the text of the screen.
    pub fn wait_without(&self, text: &str) -> String {
        self.wait_until(&format!("end of {text:?}"), |screen| !screen.contents().contains(text))
    }

    /// The text of the screen, without white space at the ends of lines.
    pub fn text(&self) -> String {
        text_of(self.shared.state.lock().parser.screen())
    }

    /// Looks at the screen.
    pub fn with_screen<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.shared.state.lock().parser.screen())
    }

    /// The position of the cursor: row and column from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.shared.state.lock().parser.screen().cursor_position()
    }

    /// The text of the scrollback and the screen.
    pub fn all_text(&self) -> String {
        let mut state = self.shared.state.lock();
        let screen = state.parser.screen_mut();
        screen.set_scrollback(SCROLLBACK);
        let above = screen.scrollback();
        let columns = screen.size().1;
        let mut lines = Vec::new();
        for offset in (1..=above).rev() {
            screen.set_scrollback(offset);
            lines.push(screen.rows(0, columns).next().unwrap_or_default().trim_end().to_owned());
        }
        screen.set_scrollback(0);
        lines.push(text_of(screen));
        lines.join("\n")
    }

    /// Everything that the program has written.
    pub fn bytes(&self) -> Vec<u8> {
        self.shared.state.lock().bytes.clone()
    }

    /// Waits until the output of the program contains a sequence of bytes.
    ///
    /// # Panics
    ///
    /// If it does not within a minute.
    pub fn wait_for_bytes(&self, sequence: &[u8]) {
        let is_missing =
            |state: &mut Emulator| !state.bytes.windows(sequence.len()).any(|window| window == sequence);
        let mut state = self.shared.state.lock();
        self.shared.changed.wait_while_for(&mut state, is_missing, LONGEST_WAIT);
        assert!(!is_missing(&mut state), "no {} in the output", sequence.escape_ascii());
    }

    /// Does not keep what the program writes from now on.
    pub fn forget_bytes(&self) {
        let mut state = self.shared.state.lock();
        state.keeps_bytes = false;
        state.bytes = Vec::new();
    }

    /// The number of writes so far, and the time of the last one.
    pub fn writes(&self) -> (usize, Instant) {
        let state = self.shared.state.lock();
        (state.writes, state.last_write)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process.
    ///
    /// # Panics
    ///
    /// If the process is gone.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("an id"), signal).expect("a process");
    }

    /// Whether the terminal passes keys on without waiting for a line.
    ///
    /// # Panics
    ///
    /// If the terminal is gone.
    pub fn is_raw(&self) -> bool {
        !tcgetattr(&self.slave).expect("a terminal").local_modes.contains(LocalModes::ICANON)
    }

    /// Waits for the end of the program.
    ///
    /// # Panics
    ///
    /// If the program does not end within a minute.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let end = Instant::now() + LONGEST_WAIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a process") {
                return status;
            }
            assert!(Instant::now() < end, "the program does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_size(slave: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(slave, size).expect("a terminal");
}

fn text_of(screen: &vt100::Screen) -> String {
    let columns = screen.size().1;
    let rows: Vec<String> = screen.rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::complete_updates;

    #[test]
    fn an_update_is_shown_as_a_whole() {
        let complete = |output: &str| complete_updates(output.as_bytes());
        assert_eq!(complete("text"), 4);
        assert_eq!(complete("a\x1b[?2026hframe"), 1);
        assert_eq!(complete("a\x1b[?2026hframe\x1b[?2026lb"), 23);
        assert_eq!(complete("a\x1b[?2026hframe\x1b[?2026l\x1b[?2026hnext"), 22);
        assert_eq!(complete("a\x1b[?20"), 1);
    }
}
