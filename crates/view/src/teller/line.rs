//! What a single line says: prompts without their tags, compactions, `system`, `attachment` and `progress` lines.

use std::borrow::Cow;

use threadline_entry::lens::{
    ApiError, AttachmentLine, Block, ModelRefusalFallback, Progress, StopHookSummary, System, TurnDuration,
};
use threadline_entry::{Entry, Kind};
use threadline_session::{Compaction, Input, Session};

use crate::card::text_of;
use crate::transcript::{Attached, Body};

/// The image or document that a block holds.
pub(super) fn file_of(block: Block<'_>) -> Option<Attached> {
    if !block.is("image") && !block.is("document") {
        return None;
    }
    let source = block.source()?;
    let media_type = source.media_type().unwrap_or("application/octet-stream".into()).into_owned();
    Some(Attached { media_type, data: source.data().or_else(|| source.url())?.into_owned() })
}

/// What the editor says, if the whole text is that.
pub(super) fn editor_context(text: &str) -> Option<&str> {
    let text = text.trim();
    ["ide_opened_file", "ide_selection"].iter().find_map(|tag| {
        let inner = text.strip_prefix(&format!("<{tag}>"))?.strip_suffix(&format!("</{tag}>"))?;
        Some(inner.trim())
    })
}

/// The text of a machine's line without the tags around it.
pub(super) fn untagged(input: Input, text: String) -> String {
    let inner = |tag: &str| -> Option<&str> {
        let start = text.find(&format!("<{tag}>"))? + tag.len() + 2;
        let end = text[start..].find(&format!("</{tag}>"))? + start;
        Some(text[start..end].trim())
    };
    let told = match input {
        Input::SlashCommand => inner("command-name").map(|name| {
            let name = if name.starts_with('/') { name.to_owned() } else { format!("/{name}") };
            let args = inner("command-args").unwrap_or_default();
            format!("{name} {args}").trim_end().to_owned()
        }),
        Input::BashInput => inner("bash-input").map(|command| format!("!{command}")),
        Input::CommandOutput => {
            inner("local-command-stdout").or_else(|| inner("local-command-stderr")).map(str::to_owned)
        }
        Input::BashOutput => {
            let parts = [inner("bash-stdout"), inner("bash-stderr")];
            let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            Some(parts.join("\n"))
        }
        Input::TaskNotification => inner("summary").map(|summary| match inner("result") {
            Some(result) => format!("{summary}\n\n{result}"),
            None => summary.to_owned(),
        }),
        Input::TeammateMessage => text.find('>').map(|end| {
            let body = text[end + 1..].trim();
            body.strip_suffix("</teammate-message>").unwrap_or(body).trim().to_owned()
        }),
        _ => None,
    };
    told.unwrap_or(text)
}

/// A compaction: what it was about, and what it dropped.
pub(super) fn compacted(session: &Session, compaction: &Compaction) -> Body {
    let metadata = compaction.metadata(session);
    let summary = compaction.summary.and_then(|idx| session.entries()[idx].message()?.content());
    let spoken = |idx: &usize| matches!(session.entries()[*idx].kind(), Kind::User | Kind::Assistant);
    let before = compaction.continues.map_or(0, |idx| session.ancestors(idx).filter(spoken).count());
    let kept = compaction.preserved.iter().filter(|idx| spoken(idx)).count();
    Body::Compaction {
        trigger: metadata.and_then(|metadata| metadata.trigger()).map(Cow::into_owned),
        before: metadata.and_then(|metadata| metadata.pre_tokens()),
        after: metadata.and_then(|metadata| metadata.post_tokens()),
        dropped: before.saturating_sub(kept),
        summary: summary.map(|content| content.text().into_owned()),
    }
}

/// A `system` line other than a compaction.
pub(super) fn event(entry: &Entry) -> Option<Body> {
    let system: System<'_> = entry.lens()?;
    let subtype = system.subtype()?;
    let content = system.content().unwrap_or_default().into_owned();
    Some(match &*subtype {
        "turn_duration" => {
            let seconds = entry.lens::<TurnDuration<'_>>()?.duration_ms()? / 1000;
            Body::Event { label: "turn took".to_owned(), text: format!("{seconds} s") }
        }
        "stop_hook_summary" => {
            let hooks: StopHookSummary<'_> = entry.lens()?;
            let errors = hooks.hook_errors().map_or(0, |errors| errors.len());
            let text = format!("{} ran, {errors} failed", hooks.hook_count().unwrap_or(0));
            Body::Event { label: "stop hooks".to_owned(), text }
        }
        "api_error" => {
            let error: ApiError<'_> = entry.lens()?;
            let (attempt, most) = (error.retry_attempt().unwrap_or(0), error.max_retries().unwrap_or(0));
            let status = error
                .error()
                .and_then(|error| error.get("status"))
                .map(|status| format!(" {}", status.raw()));
            let text = format!(
                "retry {attempt} of {most}{}",
                status.map(|s| format!(" after status{s}")).unwrap_or_default()
            );
            Body::Trouble { label: "API error".to_owned(), text }
        }
        "model_refusal_fallback" => {
            let refusal: ModelRefusalFallback<'_> = entry.lens()?;
            let (from, to) =
                (refusal.original_model().unwrap_or_default(), refusal.fallback_model().unwrap_or_default());
            Body::Trouble { label: "refused".to_owned(), text: format!("{from} refused, {to} answers") }
        }
        "local_command" => {
            let input =
                if content.contains("<command-name>") { Input::SlashCommand } else { Input::CommandOutput };
            Body::Input { input, text: untagged(input, content), files: Vec::new(), context: Vec::new() }
        }
        other => Body::Event { label: other.replace('_', " "), text: content },
    })
}

/// An `attachment` line.
pub(super) fn attached(session: &Session, entry_idx: usize) -> Option<Body> {
    let line: AttachmentLine<'_> = session.entries()[entry_idx].lens()?;
    let body = line.attachment()?;
    if let Some(input) = session.input(entry_idx) {
        let prompt = body.prompt()?;
        let blocks =
            prompt.items().filter_map(<Block<'_> as threadline_entry::lens::FromJson<'_>>::from_json);
        let files = blocks.filter_map(file_of).collect();
        return Some(Body::Input {
            input,
            text: untagged(input, text_of(prompt)),
            files,
            context: Vec::new(),
        });
    }
    let about = body.filename().or_else(|| body.path()).or_else(|| body.hook_name());
    let mut text = about.unwrap_or_default().into_owned();
    if let Some(said) =
        body.content().filter(|_| body.hook_event().is_some()).map(text_of).filter(|said| !said.is_empty())
    {
        text = format!("{text}: {said}");
    }
    let label = body.kind()?;
    Some(match &*label {
        "hook_non_blocking_error" | "hook_blocking_error" => {
            let errors = body.stderr().unwrap_or_default();
            Body::Trouble {
                label: "hook failed".to_owned(),
                text: format!("{text} {errors}").trim_end().to_owned(),
            }
        }
        _ => Body::Event { label: label.replace('_', " "), text },
    })
}

/// A `progress` line. Sub-agents are told with the call that started them.
pub(super) fn progress(entry: &Entry) -> Option<Body> {
    let line: Progress<'_> = entry.lens()?;
    let body = line.data()?;
    let kind = body.kind()?;
    if kind == "agent_progress" || kind == "bash_progress" {
        return None;
    }
    let about = body.hook_name().or_else(|| body.query()).or_else(|| body.tool_name());
    let about = about.or_else(|| body.task_description()).unwrap_or_default();
    Some(Body::Event { label: kind.replace('_', " "), text: about.into_owned() })
}
