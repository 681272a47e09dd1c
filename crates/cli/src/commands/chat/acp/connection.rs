//! JSON-RPC messages on the standard streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use threadline_api::RawObject;
use threadline_cancel::CancelToken;

use crate::ui;

/// The editor at the other end. All threads write to it.
#[derive(Default)]
pub(super) struct Connection {
    next_id: AtomicU64,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    /// Pending requests by id.
    pending: HashMap<String, Sender<Option<RawObject>>>,
    is_ended: bool,
}

/// The number of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorCode {
    Parse = -32700,
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    Internal = -32603,
    AuthRequired = -32000,
    NotFound = -32002,
}

/// An error as the answer to a request.
#[derive(Clone, Debug)]
pub(super) struct RpcError {
    code: ErrorCode,
    message: String,
}

impl RpcError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn internal(message: &str) -> Self {
        Self::new(ErrorCode::Internal, message)
    }
}

impl Connection {
    /// Answers a request.
    pub(super) fn respond(&self, id: &RawValue, result: &RawObject) {
        write(&RawObject::new().with("jsonrpc", "2.0").with("id", id).with("result", result));
    }

    /// Answers a request with an error.
    pub(super) fn fail(&self, id: &RawValue, error: &RpcError) {
        let error = RawObject::new().with("code", error.code as i32).with("message", &error.message);
        write(&RawObject::new().with("jsonrpc", "2.0").with("id", id).with("error", error));
    }

    /// Sends an update of a session.
    pub(super) fn update(&self, session_id: &str, update: &RawObject) {
        let params = RawObject::new().with("sessionId", session_id).with("update", update);
        let message = RawObject::new().with("jsonrpc", "2.0").with("method", "session/update");
        write(&message.with("params", params));
    }

    /// Sends a request and waits for its result; `None` if there is none, or the turn is cancelled.
    pub(super) fn request(
        &self,
        method: &str,
        params: &RawObject,
        cancel: &CancelToken,
    ) -> Option<RawObject> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        {
            let mut state = self.state.lock();
            if state.is_ended {
                return None;
            }
            state.pending.insert(id.to_string(), sender.clone());
        }
        let message = RawObject::new().with("jsonrpc", "2.0").with("id", id).with("method", method);
        write(&message.with("params", params));
        let _guard = cancel.on_cancel(move || {
            let _ = sender.send(None);
        });
        let answer = receiver.recv().ok().flatten();
        self.state.lock().pending.remove(&id.to_string());
        answer?.get_object("result")
    }

    /// Passes an answer on to the request with this id.
    pub(super) fn resolve(&self, id: &str, message: RawObject) {
        if let Some(sender) = self.state.lock().pending.remove(id) {
            let _ = sender.send(Some(message));
        }
    }

    /// Ends all requests without an answer, because none can come.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.is_ended = true;
        for (_, sender) in state.pending.drain() {
            let _ = sender.send(None);
        }
    }
}

fn write(message: &RawObject) {
    ui::write_stdout_line(&message.to_json());
}
