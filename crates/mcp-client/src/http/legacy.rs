//! The older transport: one stream of events with all answers, and an address for requests.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use threadline_cancel::CancelToken;
use ureq::http::{Method, Uri};

use super::client::{HttpClient, HttpRequest};
use crate::exchange::{Exchange, Incoming, OutgoingMessage};

/// A server with a stream of events.
pub(crate) struct LegacyServer {
    client: Arc<HttpClient>,
    /// The address for requests, once the stream has named it.
    endpoint: Mutex<Option<Uri>>,
    /// Closes the stream.
    closed: CancelToken,
}

impl LegacyServer {
    pub(crate) fn new(client: HttpClient) -> Self {
        Self { client: Arc::new(client), endpoint: Mutex::default(), closed: CancelToken::new() }
    }

    /// Opens the stream with the first message. Returns the address for requests.
    fn endpoint(&self, incoming: &Incoming, cancel: &CancelToken) -> Result<Uri, String> {
        let mut endpoint = self.endpoint.lock();
        if let Some(endpoint) = &*endpoint {
            return Ok(endpoint.clone());
        }
        let (sender, receiver) = channel();
        let (client, closed, incoming) = (Arc::clone(&self.client), self.closed.clone(), incoming.clone());
        let _guard = cancel.on_cancel({
            let sender: Sender<Result<Uri, String>> = sender.clone();
            let closed = closed.clone();
            move || {
                closed.cancel();
                let _ = sender.send(Err("cancelled".to_owned()));
            }
        });
        std::thread::spawn(move || {
            let reason = read_stream(&client, &incoming, &sender, &closed);
            // The first message is answered with the reason if it still waits for the address.
            if sender.send(Err(reason)).is_err() {
                incoming.close();
            }
        });
        let address = wait(&receiver)?;
        Ok(endpoint.insert(address).clone())
    }
}

fn wait(endpoint: &Receiver<Result<Uri, String>>) -> Result<Uri, String> {
    endpoint.recv().unwrap_or_else(|_| Err("the stream of the server has ended".to_owned()))
}

/// Reads the stream until it ends. Returns the reason of the end.
fn read_stream(
    client: &HttpClient,
    incoming: &Incoming,
    endpoint: &Sender<Result<Uri, String>>,
    closed: &CancelToken,
) -> String {
    let ended = || "the stream of the server has ended".to_owned();
    read_events(client, incoming, endpoint, closed).err().unwrap_or_else(ended)
}

fn read_events(
    client: &HttpClient,
    incoming: &Incoming,
    endpoint: &Sender<Result<Uri, String>>,
    closed: &CancelToken,
) -> Result<(), String> {
    let request = HttpRequest {
        method: Method::GET,
        url: client.url(),
        accept: "text/event-stream",
        headers: &[],
        body: "",
        is_short: false,
    };
    let response = client.send(&request, closed)?.check()?;
    if response.media_type() != "text/event-stream" {
        return Err("the server does not answer with a stream of events".to_owned());
    }
    response.events(&mut |event| {
        match event.name.as_str() {
            "endpoint" => {
                // An address that cannot be used ends the stream, and its reason is the answer.
                let _ = endpoint.send(Ok(resolve(client.url(), &event.data)?));
            }
            "" | "message" => incoming.push(&event.data)?,
            _ => {}
        }
        Ok(true)
    })
}

/// Returns the address for requests, which must be on the same server: requests contain credentials.
fn resolve(base: &Uri, reference: &str) -> Result<Uri, String> {
    let invalid = || "the server names an address for requests that is not valid".to_owned();
    let scheme = base.scheme_str().unwrap_or_default();
    let authority = base.authority().map_or("", |authority| authority.as_str());
    let origin = format!("{scheme}://{authority}");
    let address = if reference.contains("://") {
        reference.to_owned()
    } else if reference.starts_with("//") {
        return Err(invalid());
    } else if reference.starts_with('/') {
        format!("{origin}{reference}")
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{origin}{folder}/{reference}")
    };
    let address: Uri = address.parse().map_err(|_| invalid())?;
    let place = |uri: &Uri| {
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
        (uri.scheme_str().map(str::to_owned), uri.host().map(str::to_ascii_lowercase), port)
    };
    if place(&address) != place(base) {
        return Err("the server names an address for requests on another server".to_owned());
    }
    Ok(address)
}

impl Exchange for LegacyServer {
    fn send(
        &self,
        message: &OutgoingMessage,
        incoming: &Incoming,
        cancel: &CancelToken,
    ) -> Result<(), String> {
        let endpoint = self.endpoint(incoming, cancel)?;
        let request = HttpRequest {
            method: Method::POST,
            url: &endpoint,
            accept: "application/json, text/event-stream",
            headers: &[],
            body: &message.json,
            is_short: true,
        };
        self.client.send(&request, cancel)?.check()?.text(cancel).map(|_| ())
    }

    fn answers_at_once(&self) -> bool {
        false
    }

    fn close(&self) {
        self.closed.cancel();
    }
}

impl Drop for LegacyServer {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_on_the_server() {
        let base: Uri = "https://example.org:8443/mcp/sse?x=1".parse().unwrap();
        let resolved = |reference: &str| resolve(&base, reference).map(|uri| uri.to_string());
        for (reference, address) in [
            ("/messages?id=1", "https://example.org:8443/messages?id=1"),
            ("messages", "https://example.org:8443/mcp/messages"),
            ("https://EXAMPLE.org:8443/m", "https://EXAMPLE.org:8443/m"),
        ] {
            assert_eq!(resolved(reference).unwrap(), address);
        }
        for reference in [
            "https://evil.example/m",
            "http://example.org:8443/m",
            "https://example.org/m",
            "//evil.example/m",
            "https://example.org:8443@evil.example/m",
            "@evil.example/m\n",
        ] {
            assert!(resolved(reference).is_err(), "{reference}: {:?}", resolved(reference));
        }
    }
}
