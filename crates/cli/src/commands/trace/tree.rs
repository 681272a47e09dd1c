//! Spans as a tree for people, and as JSON lines.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use threadline_term::{TermText, text};
use threadline_trace::{SpanId, SpanKind, TraceSpan};
use threadline_usage::Money;
use threadline_view::humanize::plural;
use threadline_view::wire::{SpanObject, TokensObject};

/// Returns a span as JSON.
pub(super) fn span_object<'a>(session: &'a str, span: &'a TraceSpan) -> SpanObject<'a> {
    let at = |millis| Timestamp::from_millisecond(millis).ok().map(|at| at.to_string());
    SpanObject {
        session,
        trace: span.trace.to_string(),
        span: span.id.to_string(),
        parent: span.parent.map(|id| id.to_string()),
        kind: span.kind.name(),
        name: &span.name,
        started_at: at(span.start),
        ended_at: at(span.end),
        error: span.error.as_deref(),
        events: span.events.iter().map(|event| event.name).collect(),
        tokens: span.usage.map(|(used, _)| TokensObject {
            input: used.input,
            output: used.output,
            cache_read: used.cache_read,
            cache_write: used.cache_write(),
        }),
        cost: span.usage.and_then(|(_, cost)| cost).map(|cost| cost.to_string()),
    }
}

/// Renders the spans of a session as a tree, with totals.
pub(super) fn render(session: &str, spans: &[TraceSpan]) -> TermText {
    let mut out = text!("{session}\n");
    let mut below: HashMap<SpanId, Vec<&TraceSpan>> = HashMap::new();
    for span in spans {
        if let Some(parent) = span.parent {
            below.entry(parent).or_default().push(span);
        }
    }
    let ids: HashSet<SpanId> = spans.iter().map(|span| span.id).collect();
    let roots = spans.iter().filter(|span| span.parent.is_none_or(|parent| !ids.contains(&parent)));
    for root in roots {
        render_span(root, &below, "  ", "  ", &mut out);
    }
    let cost: Money = spans.iter().filter_map(|span| span.usage?.1).sum();
    let turns = spans.iter().filter(|span| span.kind == SpanKind::Turn).count();
    let (turns, spans) = (plural(turns as u64, "turn"), plural(spans.len() as u64, "span"));
    let _ = writeln!(out, "  {turns}, {spans}, {}", cost.short());
    out
}

fn render_span(
    span: &TraceSpan,
    below: &HashMap<SpanId, Vec<&TraceSpan>>,
    first: &str,
    rest: &str,
    out: &mut TermText,
) {
    let seconds = (span.end - span.start) as f64 / 1000.0;
    let _ = write!(out, "{first}{}  {seconds:.1} s", span.name);
    if let Some((used, cost)) = span.usage {
        let _ = write!(out, "  {} in {} out", used.context(), used.output);
        if let Some(cost) = cost {
            let _ = write!(out, "  {}", cost.short());
        }
    }
    for event in &span.events {
        let _ = write!(out, "  [{}]", event.name);
    }
    if let Some(error) = &span.error {
        let line = error.lines().next().unwrap_or_default();
        let cut = line.floor_char_boundary(60);
        let _ = write!(out, "  error: {}", &line[..cut]);
    }
    out.push("\n");
    let children = below.get(&span.id).map(|children| &children[..]).unwrap_or_default();
    for (i, child) in children.iter().enumerate() {
        let (mark, bar) = if i + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        render_span(child, below, &format!("{rest}{mark}"), &format!("{rest}{bar}"), out);
    }
}
