//! A small HTTP server that answers from a function.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use parking_lot::Mutex;
use serde_json::{Value, json};

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The JSON body; null if there is none.
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// An answer of the server.
pub(crate) enum Answer {
    /// A status, headers and a body.
    Full(u16, Vec<(&'static str, String)>, String),
    /// A stream of events, which lasts until the sender is dropped.
    Stream(Receiver<String>),
    /// No answer until the client closes the connection.
    Hang,
}

pub(crate) fn json_answer(body: &Value) -> Answer {
    let headers = vec![("content-type", "application/json".to_owned())];
    Answer::Full(200, headers, body.to_string())
}

pub(crate) fn event_answer(events: &str) -> Answer {
    Answer::Full(200, vec![("content-type", "text/event-stream".to_owned())], events.to_owned())
}

pub(crate) fn status(status: u16) -> Answer {
    Answer::Full(status, Vec::new(), String::new())
}

/// Returns the result of a request of the protocol, by its method.
pub(crate) fn result(request: &Value) -> Option<Value> {
    let id = request.get("id")?;
    let result = match request["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "3"}]}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// A server on loopback. Its thread lasts until the end of the test process.
pub(crate) struct HttpServer {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl HttpServer {
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        Self { port, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Answer) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let request =
        Request { method, path, headers, body: serde_json::from_slice(&body).unwrap_or(Value::Null) };
    log.lock().push(request.clone());
    let sent = match answer(&request) {
        Answer::Full(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()))
        }
        Answer::Stream(events) => {
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
            let mut sent = stream.write_all(head.as_bytes());
            for event in events {
                sent = sent.and_then(|()| stream.write_all(event.as_bytes()));
            }
            sent
        }
        // Ends when the client closes the connection.
        Answer::Hang => reader.read_to_end(&mut Vec::new()).map(|_| ()),
    };
    // A client that hangs up is part of the tests.
    let _ = sent;
}

/// Returns a channel for the events of a stream.
pub(crate) fn event_stream() -> (std::sync::mpsc::Sender<String>, Receiver<String>) {
    channel()
}
