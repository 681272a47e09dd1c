//! The threads that read keys and signals.

use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::queue::{EventQueue, InputEvent};

/// Lets the input thread read one event at a time. While a key is being handled, the thread does not read, so
/// that an editor or another program can use the terminal.
#[derive(Debug, Default)]
pub(crate) struct InputGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_open: bool,
    is_closed: bool,
}

impl InputGate {
    /// Lets the thread read the next event.
    pub(crate) fn open(&self) {
        self.state.lock().is_open = true;
        self.changed.notify_one();
    }

    /// Ends the thread before it reads another event.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits until the next event may be read. Returns `false` if there will be none.
    fn wait(&self) -> bool {
        let is_waiting = |state: &mut GateState| !state.is_open && !state.is_closed;
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, is_waiting);
        state.is_open = false;
        !state.is_closed
    }
}

/// Starts the thread that reads keys.
pub(crate) fn start_input(queue: &Arc<EventQueue>, gate: &Arc<InputGate>) -> io::Result<()> {
    let (queue, gate) = (Arc::clone(queue), Arc::clone(gate));
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        while gate.wait() {
            match crossterm::event::read() {
                Ok(event) => queue.push_input(InputEvent::Terminal(event)),
                // The terminal is gone.
                Err(_) => {
                    queue.push_input(InputEvent::Terminate);
                    break;
                }
            }
        }
    })?;
    Ok(())
}

/// Starts the thread that handles signals.
pub(crate) fn start_signals(queue: &Arc<EventQueue>) -> io::Result<()> {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGCONT])?;
        let queue = Arc::clone(queue);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                queue.push_input(match signal {
                    SIGCONT => InputEvent::Continued,
                    SIGINT => InputEvent::Interrupt,
                    _ => InputEvent::Terminate,
                });
            }
        })?;
    }
    #[cfg(not(unix))]
    let _ = queue;
    Ok(())
}
