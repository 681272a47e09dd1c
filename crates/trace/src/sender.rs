//! Delivery: splits spans into requests of acceptable size, retries temporary failures, and splits rejected
//! requests.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span as Wire;
use parking_lot::Mutex;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};

use crate::otlp;
use crate::receiver_config::ReceiverConfig;
use crate::span::TraceSpan;

/// A destination for spans.
pub trait SpanReceiver: Sync {
    /// Delivers spans. `tries` is the number of attempts per request, `until` the deadline.
    ///
    /// An error means that not all spans were delivered; some may have been. Sending them again is harmless,
    /// because ids are stable.
    fn receive(
        &self,
        spans: Vec<TraceSpan>,
        tries: u32,
        until: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        self.receive_encoded(spans.into_iter().map(otlp::to_wire).collect(), tries, until)
    }

    /// Delivers spans that are in wire format already.
    fn receive_encoded(
        &self,
        spans: Vec<Wire>,
        tries: u32,
        until: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError>;
}

/// The receiver's response to a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliverySummary {
    /// The number of accepted requests.
    pub requests: u64,
    /// Their size in bytes, before compression.
    pub bytes: u64,
    /// Spans that the receiver reported as not stored, or that it still rejected after splitting.
    pub refused: u64,
    /// The receiver's message about rejected spans.
    pub complaint: Option<String>,
}

impl DeliverySummary {
    /// Adds the figures of another delivery.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.complaint = other.complaint.or(self.complaint.take());
    }
}

/// Why spans were not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct DeliveryError {
    /// The message.
    pub why: String,
    /// How long the receiver asked to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// Whether a retry cannot help: the keys or the address are wrong.
    pub is_permanent: bool,
}

/// Sends spans over HTTP. Can be shared between threads.
pub struct HttpSender {
    agent: ureq::Agent,
    target: ReceiverConfig,
}

/// The maximum number of spans per request.
const MAX_SPANS: usize = 512;
/// The approximate maximum size of a request in bytes, before compression.
const MAX_BYTES: usize = 4 << 20;
/// The delay before the second attempt. Doubles with each further attempt.
const INITIAL_RETRY_DELAY: Duration = Duration::from_millis(250);
/// The longest delay within a run; if the receiver asks for more, the delivery fails.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// The maximum number of bytes read from a response.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// The outcome of a single request.
enum PostOutcome {
    Accepted {
        refused: u64,
        complaint: Option<String>,
    },
    /// Rejected as too large or malformed: smaller parts may be accepted.
    Rejected(String),
    /// A temporary failure: a retry may succeed.
    Temporary(DeliveryError),
    /// A permanent failure: the configuration has to change.
    Permanent(DeliveryError),
}

impl HttpSender {
    /// Creates a sender for this receiver.
    pub fn new(target: ReceiverConfig) -> Self {
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &target.certificates {
            let items = ureq::tls::parse_pem(pem).filter_map(Result::ok);
            let certificates: Vec<Certificate<'static>> = items
                .filter_map(|item| match item {
                    PemItem::Certificate(certificate) => Some(certificate),
                    _ => None,
                })
                .collect();
            tls = tls.root_certs(RootCerts::from(certificates));
        }
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls.build())
            .user_agent(concat!("threadline/", env!("CARGO_PKG_VERSION")))
            .max_redirects(0)
            .build()
            .into();
        Self { agent, target }
    }

    /// The receiver.
    pub fn target(&self) -> &ReceiverConfig {
        &self.target
    }

    /// Sends one encoded request body.
    fn post(&self, body: &[u8], until: Option<Instant>) -> PostOutcome {
        let mut timeout = self.target.timeout;
        if let Some(until) = until {
            timeout = timeout.min(until.saturating_duration_since(Instant::now()));
        }
        if timeout.is_zero() {
            return retry_later("deadline exceeded", None);
        }
        let packed;
        let mut request = self.agent.post(&self.target.url).content_type(self.target.protocol.content_type());
        for (name, value) in &self.target.headers {
            request = request.header(name, value);
        }
        let body = if self.target.gzip {
            packed = otlp::gzip(body);
            request = request.header("Content-Encoding", "gzip");
            &packed
        } else {
            body
        };
        let answer = request.config().timeout_global(Some(timeout)).build().send(body);
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return retry_later(&format!("{}: {error}", host(&self.target.url)), None),
        };
        let status = answer.status().as_u16();
        let retry_after =
            answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let is_json = answer
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        // A response cut off in the middle has a status all the same; its body is ignored.
        let response =
            answer.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_vec().unwrap_or_default();
        classify_response(status, retry_after.map(Duration::from_secs), &response, is_json)
    }

    /// Sends spans as one request, retried up to `tries` times, or as smaller requests if it is rejected.
    fn send(
        &self,
        spans: &mut [Wire],
        tries: u32,
        until: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        let body = otlp::encode(spans, &self.target.resource, self.target.protocol);
        let mut received = DeliverySummary { bytes: body.len() as u64, ..DeliverySummary::default() };
        let mut wait = INITIAL_RETRY_DELAY;
        for attempt in 1.. {
            match self.post(&body, until) {
                PostOutcome::Accepted { refused, complaint } => {
                    received.requests += 1;
                    received.refused += refused;
                    received.complaint = complaint;
                    return Ok(received);
                }
                PostOutcome::Rejected(why) => return self.send_parts(spans, why, tries, until),
                PostOutcome::Permanent(undelivered) => return Err(undelivered),
                PostOutcome::Temporary(undelivered) => {
                    let pause = undelivered.retry_after.unwrap_or(wait);
                    let over = until.is_some_and(|until| Instant::now() + pause >= until);
                    if attempt >= tries || over || pause > MAX_RETRY_DELAY {
                        return Err(undelivered);
                    }
                    std::thread::sleep(pause);
                    wait = (wait * 2).min(MAX_RETRY_DELAY);
                }
            }
        }
        Ok(received)
    }

    /// Sends both halves separately. A single rejected span is sent again without its content; if that is
    /// rejected too, it is counted as refused.
    fn send_parts(
        &self,
        spans: &mut [Wire],
        why: String,
        tries: u32,
        until: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        if let [single] = spans {
            if otlp::drop_content(single) {
                return self.send(spans, tries, until);
            }
            return Ok(DeliverySummary { refused: 1, complaint: Some(why), ..DeliverySummary::default() });
        }
        let (left, right) = spans.split_at_mut(spans.len() / 2);
        let mut received = self.send(left, tries, until)?;
        received.add(self.send(right, tries, until)?);
        Ok(received)
    }
}

impl SpanReceiver for HttpSender {
    fn receive_encoded(
        &self,
        mut spans: Vec<Wire>,
        tries: u32,
        until: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        let mut received = DeliverySummary::default();
        let mut rest = &mut spans[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |span: &&Wire| {
                bytes += otlp::size(span);
                bytes <= MAX_BYTES
            };
            let count = rest.iter().take(MAX_SPANS).take_while(fits).count().max(1);
            let (part, others) = rest.split_at_mut(count);
            received.add(self.send(part, tries, until)?);
            rest = others;
        }
        Ok(received)
    }
}

/// Classifies a response by its status and body.
fn classify_response(
    status: u16,
    retry_after: Option<Duration>,
    response: &[u8],
    is_json: bool,
) -> PostOutcome {
    let message = || {
        let text = String::from_utf8_lossy(&response[..response.len().min(300)]);
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("the receiver returned {status} {}", text.trim()).trim().to_owned()
    };
    match status {
        200..=299 => match otlp::partial_success(response, is_json) {
            Some((refused, message)) => PostOutcome::Accepted { refused, complaint: Some(message) },
            None => PostOutcome::Accepted { refused: 0, complaint: None },
        },
        400 | 413 | 422 => PostOutcome::Rejected(message()),
        408 | 425 | 429 | 500..=599 => retry_later(&message(), retry_after),
        _ => PostOutcome::Permanent(DeliveryError { why: message(), retry_after: None, is_permanent: true }),
    }
}

fn retry_later(why: &str, retry_after: Option<Duration>) -> PostOutcome {
    PostOutcome::Temporary(DeliveryError { why: why.to_owned(), retry_after, is_permanent: false })
}

/// Returns the host of a URL. Messages contain nothing else of it, since the rest may contain keys.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// Passes spans to a function instead of sending them.
pub struct SpanVisitor<F>(Mutex<F>);

impl<F: FnMut(TraceSpan) + Send> SpanVisitor<F> {
    /// Creates a receiver that calls `visit` with each span.
    pub fn new(visit: F) -> Self {
        Self(Mutex::new(visit))
    }
}

impl<F: FnMut(TraceSpan) + Send> SpanReceiver for SpanVisitor<F> {
    fn receive(
        &self,
        spans: Vec<TraceSpan>,
        _: u32,
        _: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        let mut visit = self.0.lock();
        spans.into_iter().for_each(&mut *visit);
        Ok(DeliverySummary { requests: 1, ..DeliverySummary::default() })
    }

    fn receive_encoded(
        &self,
        _: Vec<Wire>,
        _: u32,
        _: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        Ok(DeliverySummary::default())
    }
}

/// Collects spans in memory instead of sending them.
#[derive(Debug, Default)]
pub struct SpanCollector(Mutex<Vec<TraceSpan>>);

impl SpanCollector {
    /// Removes and returns the collected spans, in order.
    pub fn take(&self) -> Vec<TraceSpan> {
        std::mem::take(&mut self.0.lock())
    }
}

impl SpanReceiver for SpanCollector {
    fn receive(
        &self,
        spans: Vec<TraceSpan>,
        _: u32,
        _: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        self.0.lock().extend(spans);
        Ok(DeliverySummary { requests: 1, ..DeliverySummary::default() })
    }

    fn receive_encoded(
        &self,
        _: Vec<Wire>,
        _: u32,
        _: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        Ok(DeliverySummary::default())
    }
}
