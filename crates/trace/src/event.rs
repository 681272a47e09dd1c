//! Span events: compactions, failed requests, hooks and interruptions recorded in a log.

use std::borrow::Cow;

use threadline_entry::lens::{ApiError, AttachmentLine, CompactBoundary, StopHookSummary, System};
use threadline_entry::{Entry, Kind, Millis, value};
use threadline_session::{EntryIndex, InputKind, Session};

use crate::attribute as name;
use crate::generation::Generation;
use crate::span::{AttributeValue, SpanEvent};
use crate::span_options::SpanOptions;

/// Returns the subtype of a `system` line; `None` for other lines.
pub(crate) fn subtype(entry: &Entry) -> Option<Cow<'_, str>> {
    if entry.kind() != Kind::System {
        return None;
    }
    entry.lens::<System<'_>>()?.subtype()
}

/// Returns the event that a line records. A line without a timestamp gets the time `before`.
pub(crate) fn of(
    session: &Session,
    idx: EntryIndex,
    before: Millis,
    options: &SpanOptions<'_>,
) -> Option<SpanEvent> {
    let entry = &session.entries()[idx];
    let at = session.timestamp(idx).unwrap_or(before);
    let event = |name, attributes| Some(SpanEvent { name, at, attributes });
    match entry.kind() {
        Kind::User if session.input(idx) == Some(InputKind::Interrupt) => event("interrupted", Vec::new()),
        Kind::System => match &*subtype(entry)? {
            value::COMPACT_BOUNDARY => event("compaction", compaction(entry)),
            "api_error" => event("api_error", failed_request(entry, options)),
            "stop_hook_summary" => event("hooks", stop_hooks(entry, options)),
            "model_refusal_fallback" => event("model_fallback", Vec::new()),
            _ => None,
        },
        Kind::Attachment => {
            let body = entry.lens::<AttachmentLine<'_>>()?.attachment()?;
            let kind = body.kind()?;
            let hook =
                body.hook_name().or_else(|| body.hook_event()).filter(|_| kind.starts_with("hook_"))?;
            let mut attributes = vec![(name::EVENT_HOOK.into(), AttributeValue::from(&*hook))];
            if kind.ends_with("error") {
                attributes.push((name::ERROR_TYPE.into(), AttributeValue::from(&*kind)));
            }
            event("hook", attributes)
        }
        _ => None,
    }
}

/// Returns the event for a message that Claude Code wrote in place of a reply.
pub(crate) fn api_error(generation: &Generation<'_>, text: Option<&str>) -> SpanEvent {
    let mut attributes = Vec::new();
    if let Some(text) = text {
        attributes.push((name::EVENT_MESSAGE.into(), AttributeValue::from(text)));
    }
    if let Some(status) = generation.status {
        attributes.push((name::EVENT_STATUS.into(), AttributeValue::from(status)));
    }
    SpanEvent {
        name: if generation.is_error { "api_error" } else { "notice" },
        at: generation.end,
        attributes,
    }
}

fn compaction(entry: &Entry) -> Vec<(crate::span::AttributeName, AttributeValue)> {
    let mut attributes = Vec::new();
    let metadata = entry.lens::<CompactBoundary<'_>>().and_then(|line| line.compact_metadata());
    let Some(metadata) = metadata else { return attributes };
    if let Some(trigger) = metadata.trigger() {
        attributes.push((name::EVENT_TRIGGER.into(), AttributeValue::from(&*trigger)));
    }
    if let Some(tokens) = metadata.pre_tokens() {
        attributes.push((name::EVENT_TOKENS_BEFORE.into(), AttributeValue::from(tokens)));
    }
    if let Some(tokens) = metadata.post_tokens() {
        attributes.push((name::EVENT_TOKENS_AFTER.into(), AttributeValue::from(tokens)));
    }
    attributes
}

fn failed_request(
    entry: &Entry,
    options: &SpanOptions<'_>,
) -> Vec<(crate::span::AttributeName, AttributeValue)> {
    let mut attributes = Vec::new();
    let Some(line) = entry.lens::<ApiError<'_>>() else { return attributes };
    if let Some(attempt) = line.retry_attempt() {
        attributes.push((name::EVENT_ATTEMPT.into(), AttributeValue::from(attempt)));
    }
    let status = line.error().and_then(|error| error.get("status")?.as_u64());
    if let Some(status) = status {
        attributes.push((name::EVENT_STATUS.into(), AttributeValue::from(status)));
    }
    let code = line.cause().and_then(|cause| cause.get("code")?.as_str());
    if let Some(code) = code.and_then(|code| options.metadata(&code)) {
        attributes.push((name::EVENT_MESSAGE.into(), code.into()));
    }
    attributes
}

fn stop_hooks(entry: &Entry, options: &SpanOptions<'_>) -> Vec<(crate::span::AttributeName, AttributeValue)> {
    let mut attributes = vec![(name::EVENT_HOOK.into(), AttributeValue::from("Stop"))];
    let Some(line) = entry.lens::<StopHookSummary<'_>>() else { return attributes };
    if let Some(count) = line.hook_count() {
        attributes.push((name::EVENT_HOOKS.into(), AttributeValue::from(count)));
    }
    let errors: Vec<String> = line
        .hook_errors()
        .into_iter()
        .flat_map(|errors| errors.iter())
        .filter_map(|error| options.metadata(&error.as_str()?))
        .collect();
    if !errors.is_empty() {
        attributes.push((name::EVENT_HOOK_ERRORS.into(), AttributeValue::List(errors)));
    }
    attributes
}
