//! The streamable transport: each message is a request, whose response contains the answer.

use parking_lot::Mutex;

use serde::Deserialize;
use threadline_cancel::CancelToken;
use ureq::http::{Method, StatusCode};

use super::client::{HttpClient, HttpRequest};
use crate::exchange::{Exchange, Incoming, OutgoingMessage};

const ACCEPT: &str = "application/json, text/event-stream";

/// A server with the streamable transport.
pub(crate) struct StreamableServer {
    client: HttpClient,
    session: Mutex<HttpSession>,
}

/// The values of a session that later requests repeat.
#[derive(Clone, Default)]
struct HttpSession {
    id: Option<String>,
    protocol_version: Option<String>,
}

#[derive(Deserialize)]
struct InitializeAnswer {
    result: InitializeResult,
}

#[derive(Deserialize)]
struct InitializeResult {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
}

impl StreamableServer {
    pub(crate) fn new(client: HttpClient) -> Self {
        Self { client, session: Mutex::default() }
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let session = self.session.lock().clone();
        let headers = [("mcp-session-id", session.id), ("mcp-protocol-version", session.protocol_version)];
        headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Remembers the version of the protocol, which is in the answer to the first request.
    fn note_version(&self, json: &str) {
        let mut session = self.session.lock();
        if session.protocol_version.is_none()
            && let Ok(answer) = serde_json::from_str::<InitializeAnswer>(json)
        {
            session.protocol_version = Some(answer.result.protocol_version);
        }
    }
}

impl Exchange for StreamableServer {
    fn send(
        &self,
        message: &OutgoingMessage,
        incoming: &Incoming,
        cancel: &CancelToken,
    ) -> Result<(), String> {
        let request = HttpRequest {
            method: Method::POST,
            url: self.client.url(),
            accept: ACCEPT,
            headers: &self.headers(),
            body: &message.json,
            is_short: message.id.is_none(),
        };
        let response = self.client.send(&request, cancel)?;
        if response.status() == StatusCode::NOT_FOUND && self.session.lock().id.is_some() {
            return Err("the server has ended the session".to_owned());
        }
        let response = response.check()?;
        if let Some(id) = response.header("mcp-session-id") {
            self.session.lock().id.get_or_insert_with(|| id.to_owned());
        }
        if message.id.is_none() {
            return response.text(cancel).map(|_| ());
        }
        match response.media_type().as_str() {
            "application/json" => {
                let json = response.text(cancel)?;
                self.note_version(&json);
                incoming.push(&json)
            }
            "text/event-stream" => response.events(&mut |event| {
                // Only events of this type are messages; an event without data keeps the connection open.
                if matches!(event.name.as_str(), "" | "message") && !event.data.is_empty() {
                    self.note_version(&event.data);
                    incoming.push(&event.data)?;
                }
                Ok(!incoming.is_answered())
            }),
            other => Err(format!("the server answered with `{}`", other.escape_default())),
        }
    }

    fn close(&self) {
        if self.session.lock().id.is_none() {
            return;
        }
        let request = HttpRequest {
            method: Method::DELETE,
            url: self.client.url(),
            accept: ACCEPT,
            headers: &self.headers(),
            body: "",
            is_short: true,
        };
        // The server ends the session by itself after a while.
        let _ = self.client.send(&request, &CancelToken::new());
    }
}
