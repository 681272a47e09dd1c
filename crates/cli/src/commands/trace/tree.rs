//! Spans as a tree for people, and as JSON lines.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use threadline_entry::Millis;
use threadline_term::{TermText, text};
use threadline_trace::{SpanId, SpanKind, TraceId, TraceSpan};
use threadline_usage::{Money, TokenCounts};
use threadline_view::humanize::plural;
use threadline_view::wire::{SpanObject, TokensObject};

/// The part of a span that is shown. A session may have very many, and their attributes are large.
pub(super) struct SpanRow {
    /// The place of its trace among those of the session.
    trace: u32,
    id: SpanId,
    parent: Option<SpanId>,
    kind: SpanKind,
    name: Arc<str>,
    start: Millis,
    end: Millis,
    error: Option<Arc<str>>,
    /// The events and the usage; `None` for most spans, which have neither.
    more: Option<Box<SpanDetails>>,
}

struct SpanDetails {
    events: Vec<&'static str>,
    usage: Option<(TokenCounts, Option<Money>)>,
}

impl SpanRow {
    fn events(&self) -> &[&'static str] {
        self.more.as_ref().map_or(&[], |more| &more.events)
    }

    fn usage(&self) -> Option<&(TokenCounts, Option<Money>)> {
        self.more.as_ref()?.usage.as_ref()
    }
}

/// Collects spans to show them, instead of sending them.
#[derive(Default)]
pub(super) struct SpanRows {
    rows: Vec<SpanRow>,
    traces: Vec<TraceId>,
    /// The names and errors, each once.
    texts: HashSet<Arc<str>>,
}

impl SpanRows {
    /// Adds a span.
    pub(super) fn add(&mut self, span: TraceSpan) {
        // The spans of a trace follow each other.
        if self.traces.last() != Some(&span.trace) {
            self.traces.push(span.trace);
        }
        let events: Vec<&'static str> = span.events.iter().map(|event| event.name).collect();
        let has_more = !events.is_empty() || span.usage.is_some();
        let row = SpanRow {
            trace: self.traces.len() as u32 - 1,
            id: span.id,
            parent: span.parent,
            kind: span.kind,
            name: self.shared(&span.name),
            start: span.start,
            end: span.end,
            error: span.error.map(|error| self.shared(&error)),
            more: has_more.then(|| Box::new(SpanDetails { events, usage: span.usage })),
        };
        self.rows.push(row);
    }

    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    /// Returns the spans with their places in the tree, each before those below it.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&SpanRow, TreePlace)> {
        let tree = SpanTree::of(&self.rows);
        let mut pending: Vec<(usize, TreePlace)> = Vec::new();
        let place = |level, is_last| TreePlace { level, is_last };
        pending.extend(tree.roots.iter().rev().map(|root| (*root, place(0, false))));
        std::iter::from_fn(move || {
            let (row, at) = pending.pop()?;
            let n_above = pending.len();
            let mut child = tree.first_child[row];
            while child != NO_ROW {
                let next = tree.next_sibling[child as usize];
                pending.push((child as usize, place(at.level + 1, next == NO_ROW)));
                child = next;
            }
            pending[n_above..].reverse();
            Some((&self.rows[row], at))
        })
    }
}

/// The place of a span in the tree.
#[derive(Clone, Copy)]
pub(super) struct TreePlace {
    level: usize,
    /// Whether it is the last one below its parent.
    is_last: bool,
}

/// The rows below each row, by index.
struct SpanTree {
    roots: Vec<usize>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
}

const NO_ROW: u32 = u32::MAX;

impl SpanTree {
    fn of(rows: &[SpanRow]) -> Self {
        let mut by_id: HashMap<SpanId, u32> = HashMap::with_capacity(rows.len());
        for (row, number) in rows.iter().zip(0..) {
            by_id.entry(row.id).or_insert(number);
        }
        let none = vec![NO_ROW; rows.len()];
        let mut tree = Self { roots: Vec::new(), first_child: none.clone(), next_sibling: none };
        for (at, row) in rows.iter().enumerate().rev() {
            match row.parent.and_then(|parent| by_id.get(&parent)) {
                Some(parent) => {
                    let first = &mut tree.first_child[*parent as usize];
                    tree.next_sibling[at] = std::mem::replace(first, at as u32);
                }
                None => tree.roots.push(at),
            }
        }
        tree.roots.reverse();
        tree
    }
}

/// Returns a span of `rows` as JSON.
pub(super) fn span_object<'a>(session: &'a str, rows: &SpanRows, span: &'a SpanRow) -> SpanObject<'a> {
    let at = |millis| Timestamp::from_millisecond(millis).ok().map(|at| at.to_string());
    SpanObject {
        session,
        trace: rows.traces[span.trace as usize].to_string(),
        span: span.id.to_string(),
        parent: span.parent.map(|id| id.to_string()),
        kind: span.kind.name(),
        name: &span.name,
        started_at: at(span.start),
        ended_at: at(span.end),
        error: span.error.as_deref(),
        events: span.events().to_vec(),
        tokens: span.usage().map(|(used, _)| TokensObject {
            input: used.input,
            output: used.output,
            cache_read: used.cache_read,
            cache_write: used.cache_write(),
        }),
        cost: span.usage().and_then(|(_, cost)| *cost).map(|cost| cost.to_string()),
    }
}

/// Spans at deeper levels are indented like those at this one.
const MAX_INDENT: usize = 40;

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
        let shown = &is_last_at[1..is_last_at.len().min(MAX_INDENT + 1)];
        let mut indent = "  ".to_owned();
        if let Some((is_last, above)) = shown.split_last() {
            indent.extend(above.iter().map(|is_last| if *is_last { "   " } else { "│  " }));
            indent.push_str(if *is_last { "└─ " } else { "├─ " });
        }
        write(&span_line(&indent, span))?;
    }
    let rows = &spans.rows;
    let cost: Money = rows.iter().filter_map(|span| span.usage()?.1).sum();
    let turns = rows.iter().filter(|span| span.kind == SpanKind::Turn).count();
    let (turns, spans) = (plural(turns as u64, "turn"), plural(rows.len() as u64, "span"));
    write(&text!("  {turns}, {spans}, {}\n", cost.short()))
}

fn span_line(indent: &str, span: &SpanRow) -> TermText {
    let seconds = (span.end - span.start) as f64 / 1000.0;
    let mut out = text!("{indent}{}  {seconds:.1} s", span.name);
    if let Some((used, cost)) = span.usage() {
        let _ = write!(out, "  {} in {} out", used.context(), used.output);
        if let Some(cost) = cost {
            let _ = write!(out, "  {}", cost.short());
        }
    }
    for event in span.events() {
        let _ = write!(out, "  [{event}]");
    }
    if let Some(error) = &span.error {
        let line = error.lines().next().unwrap_or_default();
        let cut = line.floor_char_boundary(60);
        let _ = write!(out, "  error: {}", &line[..cut]);
    }
    out.push("\n");
    out
}
