//! The contents of single lines: prompts without tags, compactions, `system` and `progress` lines.

use std::borrow::Cow;

use threadline_entry::lens::{
    ApiError, Block, MicrocompactBoundary, ModelRefusalFallback, Progress, QueueOperation, StopHookSummary,
    System, TurnDuration,
};
use threadline_entry::{Entry, Json, Kind, value};
use threadline_session::{Compaction, EntryIndex, InputKind, Session};

use super::notice::notices;
use crate::card::{first_line, tag_text};
use crate::humanize::{duration, plural, short_count};
use crate::name::short_model;
use crate::transcript::{AttachedFile, ItemBody};

/// Returns the image or document in a block.
pub(super) fn file_of(block: Block<'_>) -> Option<AttachedFile> {
    if !block.is(value::IMAGE) && !block.is(value::DOCUMENT) {
        return None;
    }
    let source = block.source()?;
    let media_type = source.media_type().unwrap_or("application/octet-stream".into()).into_owned();
    Some(AttachedFile { media_type, data: source.data().or_else(|| source.url())?.into_owned() })
}

/// Returns a user text without the tags that Claude Code puts around it.
pub(crate) fn strip_tags(input: InputKind, text: String) -> String {
    let inner = |name: &str| tag_text(&text, name);
    let both = |one: &str, other: &str| {
        let parts: Vec<&str> = [inner(one), inner(other)].into_iter().flatten().collect();
        let said: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| said.join("\n"))
    };
    let without_tags = match input {
        InputKind::SlashCommand => inner("command-name").map(|name| {
            let name = if name.starts_with('/') { name.to_owned() } else { format!("/{name}") };
            let args = inner("command-args").unwrap_or_default();
            format!("{name} {args}").trim_end().to_owned()
        }),
        InputKind::BashInput => inner("bash-input").map(|command| format!("!{command}")),
        InputKind::CommandOutput => both("local-command-stdout", "local-command-stderr"),
        InputKind::BashOutput => both("bash-stdout", "bash-stderr"),
        InputKind::TaskNotification | InputKind::QueuedNotification | InputKind::TeammateMessage => {
            notices(&text)
        }
        InputKind::Meta => {
            let wholly = |name: &str| {
                let rest = text.trim().strip_prefix(&format!("<{name}>"))?;
                rest.strip_suffix(&format!("</{name}>"))
            };
            let inside = wholly("local-command-caveat").or_else(|| wholly("system-reminder"));
            inside.map(|text| text.trim().to_owned())
        }
        _ => None,
    };
    without_tags.unwrap_or(text)
}

/// Returns the content of a compaction.
pub(super) fn compaction_body(session: &Session, compaction: &Compaction) -> ItemBody {
    let metadata = compaction.metadata(session);
    let summary = compaction.summary.and_then(|idx| session.entries()[idx].message()?.content());
    let spoken = |idx: &EntryIndex| matches!(session.entries()[*idx].kind(), Kind::User | Kind::Assistant);
    let before = compaction.continues.map_or(0, |idx| session.spoken_up_to(idx));
    let kept = compaction.preserved.iter().filter(|idx| spoken(idx)).count();
    ItemBody::Compaction {
        trigger: metadata.and_then(|metadata| metadata.trigger()).map(Cow::into_owned),
        before: metadata.and_then(|metadata| metadata.pre_tokens()),
        after: metadata.and_then(|metadata| metadata.post_tokens()),
        dropped: before.saturating_sub(kept),
        summary: summary.map(|content| content.text().into_owned()),
    }
}

/// Returns the content of a `system` line other than a compaction.
pub(super) fn system_body(entry: &Entry) -> Option<ItemBody> {
    let system: System<'_> = entry.lens()?;
    let subtype = system.subtype()?;
    let content = system.content().unwrap_or_default().into_owned();
    Some(match &*subtype {
        "turn_duration" => {
            let millis = entry.lens::<TurnDuration<'_>>()?.duration_ms()?;
            ItemBody::Event { label: "turn duration".to_owned(), text: duration(millis as i64) }
        }
        "stop_hook_summary" => {
            let hooks: StopHookSummary<'_> = entry.lens()?;
            let errors = hooks.hook_errors();
            let failed = errors.map_or(0, |errors| errors.len());
            let mut text = format!("{} ran", hooks.hook_count().unwrap_or(0));
            let said = errors.into_iter().flat_map(|errors| errors.iter()).next();
            let said = said.map(|said| said.as_str().unwrap_or(said.raw().into()).into_owned());
            let said = said.unwrap_or_default();
            if hooks.prevented_continuation() == Some(true) {
                let why = hooks.stop_reason().filter(|why| !why.is_empty()).map_or(said, Cow::into_owned);
                return Some(ItemBody::Error { label: "stopped by hook".to_owned(), text: why });
            }
            if failed > 0 {
                text = format!("{text}, {failed} failed: {}", first_line(said.trim()));
            }
            ItemBody::Event { label: "stop hooks".to_owned(), text }
        }
        value::API_ERROR => ItemBody::Error { label: "API error".to_owned(), text: api_error(entry.lens()?) },
        "model_refusal_fallback" => {
            let refusal: ModelRefusalFallback<'_> = entry.lens()?;
            let (from, to) =
                (refusal.original_model().unwrap_or_default(), refusal.fallback_model().unwrap_or_default());
            let why = refusal.api_refusal_category().map(|why| format!(" ({why})")).unwrap_or_default();
            let mut text = format!("{} refused{why}, {} answers", short_model(&from), short_model(&to));
            if let Some(explained) = refusal.api_refusal_explanation().filter(|text| !text.is_empty()) {
                text = format!("{text}: {explained}");
            }
            ItemBody::Error { label: "refused".to_owned(), text }
        }
        "microcompact_boundary" => {
            let cleared = entry.lens::<MicrocompactBoundary<'_>>()?.microcompact_metadata();
            let results = cleared.and_then(|cleared| cleared.compacted_tool_ids()).map_or(0, |ids| ids.len());
            let saved = cleared.and_then(|cleared| cleared.tokens_saved()).unwrap_or(0);
            let text = format!("{}, {} tokens saved", plural(results as u64, "result"), short_count(saved));
            ItemBody::Event { label: "old results cleared".to_owned(), text }
        }
        "away_summary" => ItemBody::Event { label: "recap".to_owned(), text: content },
        value::LOCAL_COMMAND => {
            let input = InputKind::of_system(entry)?;
            ItemBody::Input {
                input,
                text: strip_tags(input, content),
                files: Vec::new(),
                context: Vec::new(),
            }
        }
        other => ItemBody::Event { label: other.replace('_', " "), text: content },
    })
}

/// Returns the reason why a request failed, and when it is retried.
fn api_error(line: ApiError<'_>) -> String {
    let error = line.error();
    let text = |json: Option<Json<'_>>| json.and_then(|json| json.as_str()).map(Cow::into_owned);
    // The API's error is nested in the error of the client, sometimes twice.
    let inner = error.and_then(|error| error.get("error")).and_then(|body| body.get("error").or(Some(body)));
    let said = text(inner.and_then(|inner| inner.get("message")));
    let said = said.or_else(|| text(error.and_then(|error| error.get("message"))));
    let cause = line.cause().or_else(|| error.and_then(|error| error.get("cause")));
    let said = said.or_else(|| text(cause.and_then(|cause| cause.get("code"))));
    let status = error.and_then(|error| error.get("status")).map(|status| format!("status {}", status.raw()));
    let mut parts: Vec<String> = said.into_iter().chain(status).collect();
    if let (Some(attempt), Some(most)) = (line.retry_attempt(), line.max_retries()) {
        parts.push(format!("try {attempt} of {most}"));
    }
    if let Some(wait) = line.retry_in_ms() {
        parts.push(format!("retry in {}", duration(wait as i64)));
    }
    parts.join(", ")
}

/// Returns the content of a queue line: a prompt that steered the turn, or one that was withdrawn.
pub(super) fn queue_body(session: &Session, entry_idx: EntryIndex) -> Option<ItemBody> {
    if let Some(text) = session.steering_prompt(entry_idx) {
        let (input, text) = (InputKind::QueuedPrompt, text.into_owned());
        return Some(ItemBody::Input { input, text, files: Vec::new(), context: Vec::new() });
    }
    let line: QueueOperation<'_> = session.entries()[entry_idx].lens()?;
    let text = line.content().filter(|_| line.operation().as_deref() == Some("popAll"))?.as_str()?;
    let label = "withdrawn".to_owned();
    (!text.trim().is_empty()).then(|| ItemBody::Event { label, text: text.into_owned() })
}

/// Returns the content of a `progress` line, such as a running hook. The progress of tool calls is not
/// shown: their results contain it.
pub(super) fn progress(entry: &Entry) -> Option<ItemBody> {
    const OF_CALLS: &[&str] = &[
        value::AGENT_PROGRESS,
        "bash_progress",
        "mcp_progress",
        "powershell_progress",
        "query_update",
        "search_results_received",
        "waiting_for_task",
    ];
    let line: Progress<'_> = entry.lens()?;
    let body = line.data()?;
    let kind = body.kind()?;
    if OF_CALLS.contains(&&*kind) {
        return None;
    }
    let said = |text: Option<Cow<'_, str>>| text.unwrap_or_default().trim().to_owned();
    if kind == "hook_progress" {
        let (name, command) = (said(body.hook_name()), said(body.command()));
        // Hooks inside Claude Code have no command.
        let within = command.is_empty() || command == "callback";
        let text = if within { name } else { format!("{name}: {command}") };
        return Some(ItemBody::Event { label: "hook".to_owned(), text });
    }
    let about = body.query().or_else(|| body.tool_name()).or_else(|| body.task_description());
    Some(ItemBody::Event { label: kind.replace('_', " "), text: said(about) })
}
