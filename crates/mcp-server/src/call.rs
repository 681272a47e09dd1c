//! A call of a tool: its place in the answer, progress and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Map, Value};

use crate::budget::{PagePlace, request_digest};
use crate::error::HistoryError;

/// The state of one call, shared by the thread that answers it and the one that reports progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolCallState {
    /// Stops a scan of logs. A finished scan sets it as well, so a call can have one scan.
    pub(crate) stop_scan: Arc<AtomicBool>,
    cancelled: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    total: Arc<AtomicUsize>,
}

impl ToolCallState {
    /// Sets the number of steps.
    pub(crate) fn expect(&self, total: usize) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Reports that one step is done.
    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of finished steps, and of all steps.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Cancels the call, because the client no longer waits for it.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.stop_scan.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// A request for one page of an answer.
pub(crate) struct PageRequestState {
    /// The place at which the page begins.
    pub(crate) start: PagePlace,
    digest: u32,
    /// Progress and cancellation.
    pub(crate) state: ToolCallState,
}

impl PageRequestState {
    /// Reads the cursor of a request.
    ///
    /// # Errors
    ///
    /// If it is not a cursor of this request.
    pub(crate) fn new(
        name: &str,
        arguments: &Map<String, Value>,
        state: ToolCallState,
    ) -> Result<Self, HistoryError> {
        let digest = request_digest(name, arguments);
        let start = match arguments.get("cursor") {
            None | Some(Value::Null) => PagePlace::default(),
            Some(cursor) => {
                cursor.as_str().and_then(|cursor| PagePlace::parse(cursor, digest)).ok_or_else(|| {
                    HistoryError::new("the cursor belongs to another request")
                        .hint("repeat the arguments of the request that returned it, or omit it")
                })?
            }
        };
        Ok(Self { start, digest, state })
    }

    /// Returns the cursor of a place.
    pub(crate) fn cursor(&self, place: Option<PagePlace>) -> Option<String> {
        place.map(|place| place.cursor(self.digest))
    }
}
