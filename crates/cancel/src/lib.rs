//! A token that cancels work in progress.
//!
//! A turn owns a [`CancelToken`] and passes it to every request and every tool that it starts. Work that
//! blocks registers a callback that ends it: a request closes its socket, a command kills its process group.
//!
//! ```
//! use threadline_cancel::CancelToken;
//!
//! let turn = CancelToken::new();
//! let request = turn.child();
//! turn.cancel();
//! assert!(request.is_cancelled());
//! ```

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

type Callback = Box<dyn FnOnce() + Send>;

/// A flag that is set once, with waiters and callbacks. Clones share the flag.
#[derive(Clone, Default)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The callback that cancels this token together with its parent.
    parent: OnceLock<CancelGuard>,
}

#[derive(Default)]
struct State {
    is_cancelled: bool,
    next_id: u64,
    callbacks: Vec<(u64, Callback)>,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the token: wakes all waiters and runs all callbacks on this thread. Later calls do nothing.
    pub fn cancel(&self) {
        let callbacks = {
            let mut state = self.shared.state.lock();
            state.is_cancelled = true;
            std::mem::take(&mut state.callbacks)
        };
        self.shared.changed.notify_all();
        for (_, callback) in callbacks {
            callback();
        }
    }

    /// Whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.shared.state.lock().is_cancelled
    }

    /// Waits until the token is cancelled, at most for `time`. Returns whether it was cancelled.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut state = self.shared.state.lock();
        while !state.is_cancelled {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.shared.changed.wait_for(&mut state, left);
        }
        true
    }

    /// Calls `callback` when the token is cancelled, or at once if it already is. Dropping the guard removes
    /// the callback.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> CancelGuard {
        let mut state = self.shared.state.lock();
        let id = state.next_id;
        if state.is_cancelled {
            drop(state);
            callback();
        } else {
            state.next_id += 1;
            state.callbacks.push((id, Box::new(callback)));
        }
        CancelGuard { shared: Arc::clone(&self.shared), id }
    }

    /// Returns a token that is cancelled together with this one, and can be cancelled on its own.
    pub fn child(&self) -> Self {
        let child = Self::new();
        let weak = Arc::downgrade(&child.shared);
        let guard = self.on_cancel(move || {
            if let Some(shared) = weak.upgrade() {
                Self { shared }.cancel();
            }
        });
        // A new token has no parent yet, so setting it cannot fail.
        let _ = child.shared.parent.set(guard);
        child
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// Keeps a callback registered until it is dropped.
#[must_use = "dropping the guard removes the callback"]
pub struct CancelGuard {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.shared.state.lock().callbacks.retain(|(id, _)| *id != self.id);
    }
}

impl fmt::Debug for CancelGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counter() -> (Arc<AtomicUsize>, impl Fn() -> Box<dyn FnOnce() + Send>) {
        let count = Arc::new(AtomicUsize::new(0));
        let copy = Arc::clone(&count);
        let callback = move || -> Box<dyn FnOnce() + Send> {
            let count = Arc::clone(&copy);
            Box::new(move || {
                count.fetch_add(1, Ordering::SeqCst);
            })
        };
        (count, callback)
    }

    #[test]
    fn callbacks_run_once_when_the_token_is_cancelled() {
        let (count, callback) = counter();
        let token = CancelToken::new();
        let _guard = token.on_cancel(callback());
        token.cancel();
        token.cancel();
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_dropped_guard_removes_its_callback_only() {
        let (count, callback) = counter();
        let token = CancelToken::new();
        let _kept = token.on_cancel(callback());
        drop(token.on_cancel(callback()));
        token.cancel();
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_callback_of_a_cancelled_token_runs_at_once() {
        let (count, callback) = counter();
        let token = CancelToken::new();
        token.cancel();
        let _guard = token.on_cancel(callback());
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn waiting_ends_when_another_thread_cancels() {
        let token = CancelToken::new();
        let other = token.clone();
        let thread = std::thread::spawn(move || other.wait(Duration::from_secs(60)));
        token.cancel();
        assert!(thread.join().unwrap());
        assert!(!CancelToken::new().wait(Duration::from_millis(1)));
    }

    #[test]
    fn a_child_is_cancelled_with_its_parent_and_alone() {
        let parent = CancelToken::new();
        let (first, second) = (parent.child(), parent.child());
        first.cancel();
        assert!(!parent.is_cancelled() && !second.is_cancelled());
        parent.cancel();
        assert!(second.is_cancelled());
    }
}
