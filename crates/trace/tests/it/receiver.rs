//! An in-process receiver that can fail in every way that real receivers do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span as Wire;
use parking_lot::Mutex;
use prost::Message;
use threadline_trace::{Dialect, Protocol, ReceiverConfig};

/// How to respond to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Accept it.
    None,
    /// Close the connection without a response.
    Hang,
    /// Accept it, and close the connection without a response.
    Forget,
    /// Send no response until the sender times out.
    Stall,
    /// Respond with this status and accept nothing.
    Status(u16),
    /// Respond 429, with this many seconds in `Retry-After`.
    Busy(u64),
    /// Accept it if it has at most this many spans, else respond 413.
    AtMost(usize),
    /// Accept it, and report one span as rejected.
    Partial,
    /// Accept it, and cut the response off in the middle.
    Broken,
}

/// Everything received so far.
#[derive(Default)]
pub(crate) struct ReceivedSpans {
    /// The last version of each span.
    pub(crate) spans: BTreeMap<(Vec<u8>, Vec<u8>), Wire>,
    /// The headers of each request.
    pub(crate) heads: Vec<String>,
    /// The number of spans received, repeated ones included.
    pub(crate) count: usize,
}

type FaultPlan = Box<dyn FnMut() -> Fault + Send>;

pub(crate) struct Receiver {
    pub(crate) port: u16,
    pub(crate) received: Arc<Mutex<ReceivedSpans>>,
    plan: Arc<Mutex<FaultPlan>>,
}

impl Receiver {
    pub(crate) fn start(plan: impl FnMut() -> Fault + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(ReceivedSpans::default()));
        let plan: Arc<Mutex<FaultPlan>> = Arc::new(Mutex::new(Box::new(plan)));
        let (shared, faults) = (received.clone(), plan.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (received, plan) = (shared.clone(), faults.clone());
                std::thread::spawn(move || serve(stream, &received, &plan));
            }
        });
        Self { port, received, plan }
    }

    /// Starts a receiver that accepts everything.
    pub(crate) fn accepting() -> Self {
        Self::start(|| Fault::None)
    }

    pub(crate) fn set_faults(&self, plan: impl FnMut() -> Fault + Send + 'static) {
        *self.plan.lock() = Box::new(plan);
    }

    pub(crate) fn target(&self) -> ReceiverConfig {
        ReceiverConfig {
            url: format!("http://127.0.0.1:{}/v1/traces", self.port),
            headers: vec![("x-test".to_owned(), "1".to_owned())],
            protocol: Protocol::Protobuf,
            gzip: true,
            timeout: Duration::from_secs(20),
            dialect: Dialect::Langfuse,
            resource: vec![("service.name".to_owned(), "claude-code".to_owned())],
            certificates: None,
            account: None,
        }
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        let received = self.received.lock();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        received.spans.keys().map(|(trace, span)| format!("{}/{}", hex(trace), hex(span))).collect()
    }
}

/// Serves a connection until it is closed.
fn serve(stream: TcpStream, received: &Mutex<ReceivedSpans>, plan: &Mutex<FaultPlan>) {
    let Ok(own) = stream.try_clone() else { return };
    let mut reader = BufReader::new(own);
    let mut writer = stream;
    while let Some((head, body)) = read_request(&mut reader) {
        let fault = (plan.lock())();
        let spans = decode(&head, &body);
        let takes = match fault {
            Fault::None | Fault::Forget | Fault::Partial | Fault::Broken => true,
            Fault::AtMost(most) => spans.len() <= most,
            Fault::Hang | Fault::Stall | Fault::Status(_) | Fault::Busy(_) => false,
        };
        if takes {
            let mut received = received.lock();
            received.heads.push(head);
            received.count += spans.len();
            for span in spans {
                received.spans.insert((span.trace_id.clone(), span.span_id.clone()), span);
            }
        }
        let refused =
            ExportTracePartialSuccess { rejected_spans: 1, error_message: "not that one".to_owned() };
        let partial = ExportTraceServiceResponse { partial_success: Some(refused) }.encode_to_vec();
        let answer = match fault {
            Fault::None => answer(200, "", b""),
            Fault::AtMost(_) => answer(if takes { 200 } else { 413 }, "", b""),
            Fault::Status(status) => answer(status, "", b"no"),
            Fault::Busy(seconds) => answer(429, &format!("Retry-After: {seconds}\r\n"), b"slow down"),
            Fault::Partial => answer(200, "Content-Type: application/x-protobuf\r\n", &partial),
            Fault::Broken => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc".to_vec(),
            Fault::Hang | Fault::Forget => return,
            Fault::Stall => {
                std::thread::sleep(Duration::from_millis(60));
                return;
            }
        };
        if writer.write_all(&answer).is_err() || fault == Fault::Broken {
            return;
        }
    }
}

fn answer(status: u16, more: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status} X\r\n{more}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend(body);
    bytes
}

fn read_request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let length = head.to_ascii_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn decode(head: &str, body: &[u8]) -> Vec<Wire> {
    let head = head.to_ascii_lowercase();
    let mut plain = Vec::new();
    if head.contains("content-encoding: gzip") {
        GzDecoder::new(body).read_to_end(&mut plain).unwrap();
    } else {
        plain.extend(body);
    }
    let request: ExportTraceServiceRequest = if head.contains("application/json") {
        serde_json::from_slice(&plain).unwrap()
    } else {
        ExportTraceServiceRequest::decode(&*plain).unwrap()
    };
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}
