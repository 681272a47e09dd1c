//! Spans as a tree for people, and as JSON lines.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use threadline_entry::Millis;
use threadline_term::{TermText, text, visible_name};
use threadline_trace::{SpanId, SpanKind, TraceId, TraceSpan};
use threadline_usage::byte_codec::{ByteReader, put_number, put_signed};
use threadline_usage::{Money, TokenCounts};
use threadline_view::humanize::plural;
use threadline_view::wire::{SpanObject, TokensObject};

/// The part of a span that is shown.
pub(super) struct SpanRow {
    /// The place of its trace among those of the session.
    trace: u32,
    id: SpanId,
    parent: Option<SpanId>,
    kind: SpanKind,
    name: TextId,
    error: Option<TextId>,
    start: Millis,
    end: Millis,
    /// The events and the usage, if there are any.
    more: Option<Box<SpanDetails>>,
}

/// The number of a name or of an error of [`SpanRows`], from one.
#[derive(Clone, Copy)]
struct TextId(NonZeroU32);

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
///
/// They are kept as bytes until all are known, because the session is in memory at the same time.
#[derive(Default)]
pub(super) struct SpanRowBuilder {
    bytes: Vec<u8>,
    /// The events and the usage of the spans that have any.
    details: Vec<SpanDetails>,
    traces: Vec<TraceId>,
    /// The names and errors, each once, and their numbers.
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TextId>,
    /// The start and the parent of the span before.
    last: (Millis, Option<SpanId>),
}

/// The kinds of spans, by the number that stands for each.
const KINDS: [SpanKind; 4] = [SpanKind::Turn, SpanKind::Generation, SpanKind::Tool, SpanKind::Agent];

impl SpanRowBuilder {
    /// Adds a span.
    pub(super) fn add(&mut self, span: TraceSpan) {
        // The spans of a trace follow each other.
        if self.traces.last() != Some(&span.trace) {
            self.traces.push(span.trace);
        }
        let (name, error) = (self.text_id(&span.name), span.error.map(|error| self.text_id(&error)));
        let events: Vec<&'static str> = span.events.iter().map(|event| event.name).collect();
        let has_more = !events.is_empty() || span.usage.is_some();
        if has_more {
            self.details.push(SpanDetails { events, usage: span.usage });
        }
        let (last_start, last_parent) = std::mem::replace(&mut self.last, (span.start, span.parent));
        let has_last_parent = span.parent == last_parent;
        let kind = KINDS.iter().position(|kind| *kind == span.kind).unwrap_or_default();
        let out = &mut self.bytes;
        out.extend([kind as u8, u8::from(has_more), u8::from(has_last_parent)]);
        if !has_last_parent {
            out.push(u8::from(span.parent.is_some()));
            out.extend(span.parent.iter().flat_map(|parent| parent.0));
        }
        out.extend(span.id.0);
        put_number(out, self.traces.len() as u64 - 1);
        put_number(out, u64::from(name.0.get()));
        put_number(out, error.map_or(0, |error| u64::from(error.0.get())));
        put_signed(out, span.start.wrapping_sub(last_start));
        put_signed(out, span.end.wrapping_sub(span.start));
    }

    fn text_id(&mut self, text: &str) -> TextId {
        if let Some(known) = self.ids.get(text) {
            return *known;
        }
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        let id = TextId(NonZeroU32::new(self.texts.len() as u32).unwrap_or(NonZeroU32::MAX));
        self.ids.insert(text, id);
        id
    }

    /// Returns the spans, in the order in which they were added.
    pub(super) fn finish(self) -> SpanRows {
        let mut details = self.details.into_iter();
        let mut last = (0, None);
        let mut bytes = ByteReader(&self.bytes);
        let rows = std::iter::from_fn(|| read_row(&mut bytes, &mut details, &mut last)).collect();
        SpanRows { rows, traces: self.traces, texts: self.texts }
    }
}

/// Reads a span that a [`SpanRowBuilder`] has added. `last` has the start and the parent of the one before.
fn read_row(
    bytes: &mut ByteReader<'_>,
    details: &mut impl Iterator<Item = SpanDetails>,
    last: &mut (Millis, Option<SpanId>),
) -> Option<SpanRow> {
    let [kind, has_more, has_last_parent] = [bytes.byte()?, bytes.byte()?, bytes.byte()?];
    if has_last_parent == 0 {
        last.1 = if bytes.byte()? == 0 { None } else { Some(read_id(bytes)?) };
    }
    let id = read_id(bytes)?;
    let trace = bytes.small()?;
    let (name, error) =
        (TextId(NonZeroU32::new(bytes.small()?)?), NonZeroU32::new(bytes.small()?).map(TextId));
    last.0 = last.0.wrapping_add(bytes.signed()?);
    let (start, parent) = *last;
    Some(SpanRow {
        trace,
        id,
        parent,
        kind: *KINDS.get(usize::from(kind))?,
        name,
        error,
        start,
        end: start.wrapping_add(bytes.signed()?),
        more: if has_more == 0 { None } else { details.next().map(Box::new) },
    })
}

fn read_id(bytes: &mut ByteReader<'_>) -> Option<SpanId> {
    let (id, rest) = bytes.0.split_first_chunk()?;
    bytes.0 = rest;
    Some(SpanId(*id))
}

/// The spans of a session.
pub(super) struct SpanRows {
    rows: Vec<SpanRow>,
    traces: Vec<TraceId>,
    texts: Vec<Arc<str>>,
}

impl SpanRows {
    fn text(&self, id: TextId) -> &str {
        self.texts.get(id.0.get() as usize - 1).map_or("", |text| text)
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
pub(super) fn span_object<'a>(session: &'a str, rows: &'a SpanRows, span: &'a SpanRow) -> SpanObject<'a> {
    let at = |millis| Timestamp::from_millisecond(millis).ok().map(|at| at.to_string());
    SpanObject {
        session,
        trace: rows.traces[span.trace as usize].to_string(),
        span: span.id.to_string(),
        parent: span.parent.map(|id| id.to_string()),
        kind: span.kind.name(),
        name: rows.text(span.name),
        started_at: at(span.start),
        ended_at: at(span.end),
        error: span.error.map(|error| rows.text(error)),
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
        write(&span_line(&indent, spans, span))?;
    }
    let rows = &spans.rows;
    let cost: Money = rows.iter().filter_map(|span| span.usage()?.1).sum();
    let turns = rows.iter().filter(|span| span.kind == SpanKind::Turn).count();
    let (turns, spans) = (plural(turns as u64, "turn"), plural(rows.len() as u64, "span"));
    write(&text!("  {turns}, {spans}, {}\n", cost.short()))
}

fn span_line(indent: &str, rows: &SpanRows, span: &SpanRow) -> TermText {
    let seconds = (span.end - span.start) as f64 / 1000.0;
    let mut out = text!("{indent}{}  {seconds:.1} s", visible_name(rows.text(span.name)));
    if let Some((used, cost)) = span.usage() {
        let _ = write!(out, "  {} in {} out", used.context(), used.output);
        if let Some(cost) = cost {
            let _ = write!(out, "  {}", cost.short());
        }
    }
    for event in span.events() {
        let _ = write!(out, "  [{event}]");
    }
    if let Some(error) = span.error {
        let line = rows.text(error).lines().next().unwrap_or_default();
        let cut = line.floor_char_boundary(60);
        let _ = write!(out, "  error: {}", &line[..cut]);
    }
    out.push("\n");
    out
}
