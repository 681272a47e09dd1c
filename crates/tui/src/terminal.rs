//! The state of the terminal: raw mode and its features, restored in every case.

use std::io::{self, Write};
use std::sync::Once;

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// Bracketed paste, and distinct codes for keys such as Shift-Enter where the terminal supports it.
const ENTER: &str = "\u{1b}[?2004h\u{1b}[>1u";
/// Ends synchronized output and all of the above, resets styles, shows the cursor.
const LEAVE: &str = "\u{1b}[?2026l\u{1b}[<u\u{1b}[?2004l\u{1b}[0m\u{1b}[?25h";

/// The terminal in raw mode. It is restored when this is dropped, and before a panic is reported.
#[derive(Debug)]
pub(crate) struct RawTerminal(());

impl RawTerminal {
    pub(crate) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        set_raw()?;
        Ok(Self(()))
    }

    /// Runs something that uses the terminal itself, such as an editor.
    pub(crate) fn lend<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let result = work();
        set_raw()?;
        Ok(result)
    }

    /// Enters raw mode again, after another program has changed the terminal.
    pub(crate) fn reset(&self) -> io::Result<()> {
        set_raw()
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn set_raw() -> io::Result<()> {
    // After another program, the terminal may be in another mode than crossterm remembers.
    let _ = disable_raw_mode();
    enable_raw_mode()?;
    let mut out = io::stdout();
    out.write_all(ENTER.as_bytes()).and_then(|()| out.flush())
}

/// Restores the terminal. A terminal that is gone needs nothing.
fn restore() {
    let mut out = io::stdout();
    let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
    let _ = disable_raw_mode();
}

/// Stops this process, as Ctrl-Z does.
pub(crate) fn suspend() {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        let _ = kill_process(getpid(), Signal::TSTP);
    }
}
