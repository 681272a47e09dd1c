//! A transport for servers that answer each message separately: over HTTP, or inside of another program.
//!
//! Every message that is sent runs on a blocking thread of its own, so that a call that hangs blocks nothing
//! else.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::model::{ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use threadline_cancel::CancelToken;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The longest message that is accepted from a server. It is the limit of `rmcp` for standard output.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// The number of messages of a server that are kept until they are handled.
const QUEUE_LENGTH: usize = 64;

/// A way to exchange messages with one server. All functions block.
pub(crate) trait Exchange: Send + Sync + 'static {
    /// Sends a message and passes the messages of the server to `incoming`. Cancelling ends it early.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    fn send(
        &self,
        message: &OutgoingMessage,
        incoming: &Incoming,
        cancel: &CancelToken,
    ) -> Result<(), String>;

    /// Whether the answer to a request is passed on before `send` returns.
    fn answers_at_once(&self) -> bool {
        true
    }

    /// Tells the server that the session ends, if that takes a short time only.
    fn close(&self) {}
}

/// A message for a server.
pub(crate) struct OutgoingMessage {
    /// The JSON text.
    pub(crate) json: String,
    /// The id of a request; `None` for other messages.
    pub(crate) id: Option<RequestId>,
}

/// Accepts the messages of a server.
#[derive(Clone)]
pub(crate) struct Incoming {
    sender: Sender<Option<RxJsonRpcMessage<RoleClient>>>,
    wanted: Option<RequestId>,
    is_answered: Arc<AtomicBool>,
}

impl Incoming {
    /// Accepts a message, or an array of messages.
    ///
    /// # Errors
    /// Returns an error if the text is no message of the protocol.
    pub(crate) fn push(&self, json: &str) -> Result<(), String> {
        let messages: Vec<RxJsonRpcMessage<RoleClient>> = if json.trim_start().starts_with('[') {
            serde_json::from_str(json).map_err(invalid)?
        } else {
            vec![serde_json::from_str(json).map_err(invalid)?]
        };
        for message in messages {
            if self.wanted.is_some() && answered_id(&message) == self.wanted.as_ref() {
                self.is_answered.store(true, Ordering::Release);
            }
            // It is not received if the connection is being closed.
            let _ = self.sender.blocking_send(Some(message));
        }
        Ok(())
    }

    /// Whether the answer to the message that was sent has arrived.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Acquire)
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        let _ = self.sender.blocking_send(None);
    }
}

fn invalid(error: serde_json::Error) -> String {
    format!("the answer is not a message of the protocol: {error}")
}

fn answered_id(message: &RxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// The transport of `rmcp` over an [`Exchange`]. Dropping it cancels all messages that are being sent.
pub(crate) struct ExchangeTransport {
    exchange: Arc<dyn Exchange>,
    requests: Arc<Mutex<HashMap<RequestId, CancelToken>>>,
    sender: Sender<Option<RxJsonRpcMessage<RoleClient>>>,
    receiver: Receiver<Option<RxJsonRpcMessage<RoleClient>>>,
    closed: CancelToken,
}

impl ExchangeTransport {
    pub(crate) fn new(exchange: Arc<dyn Exchange>) -> Self {
        let (sender, receiver) = channel(QUEUE_LENGTH);
        Self { exchange, requests: Arc::default(), sender, receiver, closed: CancelToken::new() }
    }
}

impl Drop for ExchangeTransport {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

/// Why a message could not be sent.
#[derive(Debug)]
pub(crate) struct ExchangeError(String);

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExchangeError {}

impl Transport<RoleClient> for ExchangeTransport {
    type Error = ExchangeError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), ExchangeError>> + Send + 'static {
        let exchange = Arc::clone(&self.exchange);
        let requests = Arc::clone(&self.requests);
        let (sender, cancel) = (self.sender.clone(), self.closed.child());
        async move {
            let id = match &item {
                JsonRpcMessage::Request(request) => Some(request.id.clone()),
                _ => None,
            };
            let json = serde_json::to_string(&item).map_err(|error| ExchangeError(error.to_string()))?;
            if let Some(id) = &id {
                requests.lock().insert(id.clone(), cancel.clone());
            }
            if let Some(abandoned) = abandoned_id(&item).and_then(|id| requests.lock().remove(id)) {
                abandoned.cancel();
            }
            let is_request = id.is_some();
            let task = tokio::task::spawn_blocking(move || {
                let message = OutgoingMessage { json, id };
                let result = send_one(&*exchange, &message, sender, &cancel);
                if let Some(id) = &message.id {
                    requests.lock().remove(id);
                }
                result
            });
            // The answer to a request is received like any other message. A notification must arrive before
            // the next message is sent.
            if is_request {
                return Ok(());
            }
            let result = task.await.unwrap_or_else(|error| Err(error.to_string()));
            result.map_err(ExchangeError)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.receiver.recv().await.flatten()
    }

    async fn close(&mut self) -> Result<(), ExchangeError> {
        self.closed.cancel();
        Ok(())
    }
}

/// Sends one message. A request that fails gets an error as its answer.
fn send_one(
    exchange: &dyn Exchange,
    message: &OutgoingMessage,
    sender: Sender<Option<RxJsonRpcMessage<RoleClient>>>,
    cancel: &CancelToken,
) -> Result<(), String> {
    let incoming = Incoming { sender, wanted: message.id.clone(), is_answered: Arc::default() };
    let result = exchange.send(message, &incoming, cancel);
    let Some(id) = message.id.clone().filter(|_| !incoming.is_answered()) else {
        return result;
    };
    let reason = match result {
        Err(reason) => reason,
        Ok(()) if exchange.answers_at_once() => "the server sent no answer".to_owned(),
        Ok(()) => return Ok(()),
    };
    let error = ErrorData::new(ErrorCode(-32000), reason, None);
    let _ = incoming.sender.blocking_send(Some(JsonRpcMessage::error(error, Some(id))));
    Ok(())
}

/// Returns the request that a notification cancels.
fn abandoned_id(message: &TxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}
