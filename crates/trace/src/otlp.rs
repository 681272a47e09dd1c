//! The wire format: OTLP as protobuf or JSON, gzip-compressed.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value::Value as Any,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Wire, Status, span, status};
use prost::Message;
use threadline_entry::Millis;

use crate::span::{AttributeName, AttributeValue, SpanKind, TraceSpan};

/// The encoding of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `http/protobuf`.
    Protobuf,
    /// `http/json`.
    Json,
}

impl Protocol {
    /// Returns the MIME type of a request.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// Encodes one request with these spans. They are moved into the request temporarily and back, to avoid a
/// copy.
pub(crate) fn encode(spans: &mut [Wire], resource: &[(String, String)], protocol: Protocol) -> Vec<u8> {
    let moved = spans.iter_mut().map(std::mem::take).collect();
    let attributes = resource.iter().map(|(name, value)| text(name.clone(), value.clone())).collect();
    let scope = InstrumentationScope {
        name: "threadline".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans: moved, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }],
    };
    let body = match protocol {
        Protocol::Protobuf => request.encode_to_vec(),
        Protocol::Json => serde_json::to_vec(&request).unwrap_or_default(),
    };
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    for (place, span) in spans.iter_mut().zip(scopes.flat_map(|scope| scope.spans)) {
        *place = span;
    }
    body
}

/// Compresses a request with gzip, at the fastest level.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3 + 64), Compression::fast());
    // Writing to a `Vec` does not fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}

/// Parses the response to a request that was accepted only in part: the number of rejected spans and the
/// message.
pub(crate) fn partial_success(body: &[u8], is_json: bool) -> Option<(u64, String)> {
    let (rejected, message) = if is_json {
        json_partial_success(body)?
    } else {
        let partial = ExportTraceServiceResponse::decode(body).ok()?.partial_success?;
        (u64::try_from(partial.rejected_spans).unwrap_or(0), partial.error_message)
    };
    (rejected > 0 || !message.is_empty()).then_some((rejected, message))
}

/// Reads a response in JSON. A 64-bit number is a string there, and some receivers write a number.
fn json_partial_success(body: &[u8]) -> Option<(u64, String)> {
    let response: serde_json::Value = serde_json::from_slice(body).ok()?;
    let member = |of: &serde_json::Value, name: &str, other: &str| {
        of.get(name).or_else(|| of.get(other)).filter(|value| !value.is_null()).cloned()
    };
    let partial = member(&response, "partialSuccess", "partial_success")?;
    let rejected = match member(&partial, "rejectedSpans", "rejected_spans") {
        Some(serde_json::Value::String(text)) => text.trim().parse().unwrap_or(0),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    };
    let message = member(&partial, "errorMessage", "error_message");
    Some((rejected, message.and_then(|message| message.as_str().map(str::to_owned)).unwrap_or_default()))
}

/// Converts a span to wire format.
pub(crate) fn to_wire(own: TraceSpan) -> Wire {
    let kind =
        if own.kind == SpanKind::Generation { span::SpanKind::Client } else { span::SpanKind::Internal };
    let status = own.error.map(|message| Status { message, code: status::StatusCode::Error as i32 });
    let events = own.events.into_iter().map(|event| span::Event {
        time_unix_nano: nanos(event.at),
        name: event.name.to_owned(),
        attributes: event.attributes.into_iter().map(attribute).collect(),
        dropped_attributes_count: 0,
    });
    Wire {
        trace_id: own.trace.0.to_vec(),
        span_id: own.id.0.to_vec(),
        parent_span_id: own.parent.map(|id| id.0.to_vec()).unwrap_or_default(),
        flags: 1,
        name: own.name,
        kind: kind as i32,
        start_time_unix_nano: nanos(own.start),
        end_time_unix_nano: nanos(own.end),
        attributes: own.attributes.into_iter().map(attribute).collect(),
        events: events.collect(),
        status,
        ..Wire::default()
    }
}

/// Returns the encoded size of a span in bytes.
pub(crate) fn size(span: &Wire) -> usize {
    span.encoded_len()
}

fn nanos(millis: Millis) -> u64 {
    u64::try_from(millis).unwrap_or(0).saturating_mul(1_000_000)
}

fn attribute((name, value): (AttributeName, AttributeValue)) -> KeyValue {
    let value = match value {
        AttributeValue::Text(text) => Any::StringValue(text),
        AttributeValue::Number(number) => Any::IntValue(number),
        AttributeValue::Decimal(number) => Any::DoubleValue(number),
        AttributeValue::Flag(flag) => Any::BoolValue(flag),
        AttributeValue::List(items) => Any::ArrayValue(ArrayValue {
            values: items.into_iter().map(|item| AnyValue { value: Some(Any::StringValue(item)) }).collect(),
        }),
    };
    KeyValue { key: name.into_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: String, value: String) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(Any::StringValue(value)) }), ..KeyValue::default() }
}

/// Replaces long values of a span that the receiver rejected as too large by a note, and clears event
/// attributes. Returns whether anything changed.
pub(crate) fn drop_content(span: &mut Wire) -> bool {
    let mut changed = false;
    for attribute in &mut span.attributes {
        if let Some(AnyValue { value: Some(Any::StringValue(text)) }) = &mut attribute.value
            && text.len() > 256
        {
            *text = format!("[{} bytes omitted: the receiver rejected a span of this size]", text.len());
            changed = true;
        }
    }
    for event in &mut span.events {
        changed |= !event.attributes.is_empty();
        event.attributes.clear();
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_spans_are_read_as_a_string_and_as_a_number() {
        for (body, expected) in [
            (r#"{"partialSuccess":{"rejectedSpans":"2"}}"#, Some((2, ""))),
            (r#"{"partialSuccess":{"rejectedSpans":2,"errorMessage":"no"}}"#, Some((2, "no"))),
            (r#"{"partial_success":{"rejected_spans":"3"}}"#, Some((3, ""))),
            (r#"{"partialSuccess":{"errorMessage":"slow down"}}"#, Some((0, "slow down"))),
            (r#"{"partialSuccess":{"rejectedSpans":"0"}}"#, None),
            (r#"{"partialSuccess":{}}"#, None),
            (r#"{"partialSuccess":null}"#, None),
            ("{}", None),
            ("OK", None),
        ] {
            let expected = expected.map(|(rejected, message)| (rejected, message.to_owned()));
            assert_eq!(partial_success(body.as_bytes(), true), expected, "{body}");
        }
    }
}
