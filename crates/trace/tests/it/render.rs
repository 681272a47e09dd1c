//! Helpers: logs in notation as input, spans as text as output.

use std::fmt::Write;

use threadline_entry::{LineReader, Position, parse_line};
use threadline_session::{SessionFamily, Subagent};
use threadline_trace::{
    AttributeValue, ContentPolicy, Dialect, LogOwner, SentReplies, SpanId, SpanOptions, TraceSpan, TurnPart,
    TurnSplitter, spans_of,
};
use threadline_usage::PriceBook;

/// The default options for tests.
pub(crate) fn options(prices: &PriceBook) -> SpanOptions<'_> {
    SpanOptions {
        content: ContentPolicy::Truncated,
        limit: None,
        redact: None,
        dialect: Dialect::Langfuse,
        user: None,
        tags: &[],
        environment: None,
        release: None,
        prices,
    }
}

/// Returns the turns of a log.
pub(crate) fn turn_parts(bytes: &[u8]) -> Vec<TurnPart> {
    let mut cutter = TurnSplitter::new(LogOwner::Session, 0);
    let mut pieces = Vec::new();
    let mut lines = LineReader::new(bytes);
    while let Some(line) = lines.next().unwrap() {
        parse_line(&line, |entry, findings| pieces.extend(cutter.push(entry, findings)));
    }
    let end = Position { line_no: lines.at().line_no, byte_offset: bytes.len() as u64 };
    pieces.extend(cutter.finish(end));
    pieces
}

/// Returns the spans of a log without sub-agents.
pub(crate) fn spans(notation: &str) -> Vec<TraceSpan> {
    spans_with(notation, Vec::new(), &options(&PriceBook::embedded()))
}

/// Returns the spans that a log adds to those that were sent before.
pub(crate) fn spans_again(notation: &str, sent: &mut SentReplies) -> Vec<TraceSpan> {
    spans_beside(notation, Vec::new(), &options(&PriceBook::embedded()), sent)
}

pub(crate) fn spans_with(notation: &str, agents: Vec<Subagent>, options: &SpanOptions<'_>) -> Vec<TraceSpan> {
    spans_beside(notation, agents, options, &mut SentReplies::default())
}

fn spans_beside(
    notation: &str,
    agents: Vec<Subagent>,
    options: &SpanOptions<'_>,
    sent: &mut SentReplies,
) -> Vec<TraceSpan> {
    let mut agents = Some(agents);
    let mut all = Vec::new();
    for piece in turn_parts(&threadline_testkit::log(notation)) {
        let head = piece.header();
        let family = SessionFamily::new(piece.session, agents.take().unwrap_or_default());
        all.extend(spans_of(&head, &family, "s1", sent, options));
    }
    all
}

/// Renders the spans as a tree, with times in seconds after ten o'clock.
pub(crate) fn tree(spans: &[TraceSpan]) -> String {
    let mut out = String::new();
    for span in spans.iter().filter(|span| !spans.iter().any(|above| Some(above.id) == span.parent)) {
        branch(span, spans, 0, &mut out);
    }
    out
}

fn branch(span: &TraceSpan, spans: &[TraceSpan], depth: usize, out: &mut String) {
    let second = |at: i64| (at - 1_767_261_600_000) as f64 / 1000.0;
    let _ = write!(out, "{}{} {}", "  ".repeat(depth), span.kind.name(), span.name);
    if span.start > 0 {
        let _ = write!(out, " {}..{}", second(span.start), second(span.end));
    }
    if let Some((used, _)) = span.usage {
        let _ = write!(out, " {}/{}", used.context(), used.output);
    }
    if let Some(error) = &span.error {
        let _ = write!(out, " ERROR {error}");
    }
    for event in &span.events {
        let _ = write!(out, " [{} {}]", event.name, second(event.at));
    }
    for (name, sign) in [("langfuse.observation.input", "<"), ("langfuse.observation.output", ">")] {
        if let Some(text) = span.text(name) {
            let _ = write!(out, " {sign} {text}");
        }
    }
    out.push('\n');
    for child in spans.iter().filter(|child| child.parent == Some(span.id)) {
        branch(child, spans, depth + 1, out);
    }
}

/// Renders all attributes of a span, one per line.
pub(crate) fn attributes(span: &TraceSpan) -> String {
    let mut lines: Vec<String> = span
        .attributes
        .iter()
        .map(|(name, value)| match value {
            AttributeValue::Text(text) => format!("{name}: {text}"),
            other => format!("{name}: {other:?}"),
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

pub(crate) fn ids(spans: &[TraceSpan]) -> Vec<SpanId> {
    spans.iter().map(|span| span.id).collect()
}
