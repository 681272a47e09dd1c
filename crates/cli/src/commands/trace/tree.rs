//! Spans as a tree for people, and as JSON lines.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use jiff::Timestamp;
use threadline_term::{TermText, text, visible_name};
use threadline_trace::{SpanId, SpanKind, TraceSpan};
use threadline_usage::Money;
use threadline_view::humanize::plural;
use threadline_view::wire::{SpanObject, TokensObject};

/// The spans of a session, to show them instead of sending them.
#[derive(Default)]
pub(super) struct SpanRows(Vec<TraceSpan>);

impl SpanRows {
    /// Adds a span.
    pub(super) fn add(&mut self, span: TraceSpan) {
        // Attributes contain whole texts, and are not shown.
        self.0.push(TraceSpan { attributes: Vec::new(), ..span });
    }

    /// Returns the spans with their places in the tree, each before those below it.
    pub(super) fn in_order(&self) -> Vec<(&TraceSpan, TreePlace)> {
        let mut by_id: HashMap<SpanId, usize> = HashMap::new();
        for (at, span) in self.0.iter().enumerate() {
            by_id.entry(span.id).or_insert(at);
        }
        let mut roots = Vec::new();
        let mut children = vec![Vec::new(); self.0.len()];
        for (at, span) in self.0.iter().enumerate() {
            match span.parent.and_then(|parent| by_id.get(&parent)) {
                Some(parent) => children[*parent].push(at),
                None => roots.push(at),
            }
        }
        let mut ordered = Vec::new();
        let mut pending: Vec<(usize, TreePlace)> =
            roots.into_iter().rev().map(|at| (at, TreePlace { level: 0, is_last: false })).collect();
        while let Some((at, place)) = pending.pop() {
            ordered.push((&self.0[at], place));
            let last = children[at].last().copied();
            pending.extend(
                children[at].iter().rev().map(|&child| {
                    (child, TreePlace { level: place.level + 1, is_last: Some(child) == last })
                }),
            );
        }
        ordered
    }
}

/// The place of a span in the tree.
#[derive(Clone, Copy)]
pub(super) struct TreePlace {
    level: usize,
    /// Whether it is the last one below its parent.
    is_last: bool,
}

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
        tokens: span.usage.as_ref().map(|(used, _)| TokensObject {
            input: used.input,
            output: used.output,
            cache_read: used.cache_read,
            cache_write: used.cache_write(),
        }),
        cost: span.usage.as_ref().and_then(|(_, cost)| *cost).map(|cost| cost.to_string()),
    }
}

/// Renders the spans of a session as a tree, with totals. Passes the text to `write` line by line.
pub(super) fn render(
    session: &str,
    spans: &SpanRows,
    write: &mut dyn FnMut(&TermText) -> io::Result<()>,
) -> io::Result<()> {
    write(&text!("{session}\n"))?;
    let mut is_last_at = Vec::new();
    for (span, place) in spans.in_order() {
        is_last_at.truncate(place.level);
        is_last_at.push(place.is_last);
        // Deeper spans are not indented further.
        let shown = &is_last_at[1..is_last_at.len().min(40 + 1)];
        let mut indent = "  ".to_owned();
        if let Some((is_last, above)) = shown.split_last() {
            indent.extend(above.iter().map(|is_last| if *is_last { "   " } else { "│  " }));
            indent.push_str(if *is_last { "└─ " } else { "├─ " });
        }
        write(&span_line(&indent, span))?;
    }
    let rows = &spans.0;
    let cost: Money = rows.iter().filter_map(|span| span.usage.as_ref()?.1).sum();
    let turns = rows.iter().filter(|span| span.kind == SpanKind::Turn).count();
    let (turns, spans) = (plural(turns as u64, "turn"), plural(rows.len() as u64, "span"));
    write(&text!("  {turns}, {spans}, {}\n", cost.short()))
}

fn span_line(indent: &str, span: &TraceSpan) -> TermText {
    let seconds = (span.end - span.start) as f64 / 1000.0;
    let mut out = text!("{indent}{}  {seconds:.1} s", visible_name(&span.name));
    if let Some((used, cost)) = &span.usage {
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
    out
}
