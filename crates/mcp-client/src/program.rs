//! Servers inside of the program that drives the session.

use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;
use threadline_cancel::CancelToken;

use crate::exchange::{Exchange, Incoming, OutgoingMessage};

/// Accepts a message of a server that is not an answer.
pub type McpMessageSink = Box<dyn Fn(&RawValue) -> Result<(), String> + Send + Sync>;

/// The program that drives the session and has servers inside of it.
pub trait McpProgram: Send + Sync {
    /// Sends a message to a server and blocks until there is an answer. A notification has one, too, which is
    /// ignored.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    fn send(&self, server: &str, message: &RawValue, cancel: &CancelToken) -> Result<Box<RawValue>, String>;

    /// Sets the receiver of the messages that a server sends by itself.
    fn receive(&self, server: &str, sink: McpMessageSink);
}

/// A server inside of a program.
pub(crate) struct ProgramServer {
    name: String,
    program: Arc<dyn McpProgram>,
    is_received: OnceLock<()>,
}

impl ProgramServer {
    pub(crate) fn new(name: String, program: Arc<dyn McpProgram>) -> Self {
        Self { name, program, is_received: OnceLock::new() }
    }
}

impl Exchange for ProgramServer {
    fn send(
        &self,
        message: &OutgoingMessage,
        incoming: &Incoming,
        cancel: &CancelToken,
    ) -> Result<(), String> {
        self.is_received.get_or_init(|| {
            let incoming = incoming.clone();
            self.program.receive(&self.name, Box::new(move |message| incoming.push(message.get())));
        });
        let json: &RawValue = serde_json::from_str(&message.json).map_err(|error| error.to_string())?;
        let answer = self.program.send(&self.name, json, cancel)?;
        if message.id.is_some() { incoming.push(answer.get()) } else { Ok(()) }
    }
}
