//! Checks the spans of any session: no two spans of a turn and no two calls of a trace share an id, no span
//! is its own parent or ends before it begins, no reply is sent twice, and no span contains a secret.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use threadline_entry::{LineReader, Position, parse_line};
use threadline_fuzz::log;
use threadline_secret::Rules;
use threadline_session::SessionFamily;
use threadline_trace::{
    AttributeValue, ContentPolicy, Dialect, LogOwner, SentReplies, SpanKind, SpanOptions, TraceSpan,
    TurnSplitter, spans_of,
};
use threadline_usage::PriceBook;

thread_local! {
    static RULES: &'static Rules = Box::leak(Box::new(Rules::new()));
    static BOOK: &'static PriceBook = Box::leak(Box::new(PriceBook::embedded()));
}

fn all_spans(bytes: &[u8], shape: &SpanOptions<'_>, sent: &mut SentReplies) -> Vec<TraceSpan> {
    let mut cutter = TurnSplitter::new(LogOwner::Session, 0);
    let mut pieces = Vec::new();
    let mut lines = LineReader::new(bytes);
    while let Some(line) = lines.next().expect("reading from memory") {
        parse_line(&line, |entry, findings| pieces.extend(cutter.push(entry, findings)));
    }
    let end = Position { line_no: lines.at().line_no, byte_offset: bytes.len() as u64 };
    pieces.extend(cutter.finish(end));
    let mut spans = Vec::new();
    for piece in pieces {
        let head = piece.header();
        let family = SessionFamily::new(piece.session, Vec::new());
        let part = spans_of(&head, &family, "s1", sent, shape);
        let mut ids = HashSet::new();
        for span in &part {
            assert!(ids.insert((span.trace, span.id)), "two spans with one id: {}", span.name);
        }
        spans.extend(part);
    }
    spans
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, data)) = data.split_first() else { return };
    let bytes = log(data);
    let rules = RULES.with(|rules| *rules);
    let shape = SpanOptions {
        content: [
            ContentPolicy::None,
            ContentPolicy::Metadata,
            ContentPolicy::Truncated,
            ContentPolicy::Full,
        ][usize::from(how) % 4],
        limit: (how & 4 != 0).then_some(100),
        redact: Some(rules.into()),
        dialect: if how & 8 == 0 { Dialect::Langfuse } else { Dialect::GenAi },
        user: None,
        tags: &[],
        environment: None,
        release: None,
        prices: BOOK.with(|book| *book),
    };
    let mut sent = SentReplies::default();
    let spans = all_spans(&bytes, &shape, &mut sent);
    // A reply that continues is sent again under its id and replaces the earlier version; a call is sent
    // once. Two prompts with one uuid share a trace: a trace is named after a reply or a prompt, so that a
    // log that was written again sends the same ids, and a log that uses a uuid twice says that both are
    // one prompt.
    let mut calls = HashSet::new();
    for span in &spans {
        let is_new = span.kind != SpanKind::Tool || calls.insert((span.trace, span.id));
        assert!(is_new, "two calls with one id: {}", span.name);
        assert!(span.start <= span.end, "{} ends before it begins", span.name);
    }
    for span in &spans {
        if let Some(parent) = span.parent {
            // A reply that continues in the next turn has its first part in another trace.
            assert!(parent != span.id, "{} is its own parent", span.name);
        }
        let clean = |text: &str| assert!(!rules.has_findings(text), "a secret leaves in {text}");
        clean(&span.name);
        span.error.as_deref().into_iter().for_each(clean);
        let events = span.events.iter().flat_map(|event| &event.attributes);
        for (_, value) in span.attributes.iter().chain(events) {
            match value {
                AttributeValue::Text(text) => clean(text),
                AttributeValue::List(list) => list.iter().for_each(|text| clean(text)),
                _ => {}
            }
        }
    }
    // A turn without replies, such as a compaction, may be sent again; replies and calls are sent once.
    let again = all_spans(&bytes, &shape, &mut sent);
    let twice =
        again.iter().filter(|span| matches!(span.kind, SpanKind::Generation | SpanKind::Tool)).count();
    assert_eq!(twice, 0, "spans are sent twice");
});
