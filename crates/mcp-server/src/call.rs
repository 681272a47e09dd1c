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
    /// Whether the end of the text names the whole call for the next page. Set where the reader did not call
    /// the tool: for resources and prompts.
    names_next_call: bool,
    cancelled: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    total: Arc<AtomicUsize>,
}

impl ToolCallState {
    /// Creates the state of a call whose text names the whole call for the next page.
    pub(crate) fn naming_next_call() -> Self {
        Self { names_next_call: true, ..Self::default() }
    }

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
    /// The name and the arguments of the call, if the text names the call for the next page.
    named_call: Option<(String, Map<String, Value>)>,
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
        let named_call = state.names_next_call.then(|| {
            let mut arguments = arguments.clone();
            arguments.remove("max_tokens");
            (name.to_owned(), arguments)
        });
        Ok(Self { start, digest, named_call, state })
    }

    /// Returns how to request the next page, given its cursor.
    pub(crate) fn next_request(&self, cursor: &str) -> String {
        match &self.named_call {
            Some((name, arguments)) => {
                let mut arguments = arguments.clone();
                arguments.insert("cursor".to_owned(), cursor.into());
                format!("the tool {name} with {}", Value::Object(arguments))
            }
            None => format!("the same arguments with cursor \"{cursor}\""),
        }
    }

    /// Returns the cursor of a place.
    pub(crate) fn cursor(&self, place: Option<PagePlace>) -> Option<String> {
        place.map(|place| place.cursor(self.digest))
    }
}
