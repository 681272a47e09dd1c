//! `attachment` lines: attached files, hooks, and context that Claude Code added by itself.

use std::borrow::Cow;

use threadline_entry::lens::{AttachmentBody, AttachmentLine, Block, FromJson, Lens};
use threadline_entry::{Json, JsonKey, JsonKind, key};
use threadline_session::{EntryIndex, InputKind, Session};

use super::line::{file_of, strip_tags};
use super::relative_to;
use crate::card::text_of;
use crate::humanize::{bytes, joined, plural};
use crate::transcript::{ATTACHED, ItemBody};

/// Returns the content of an `attachment` line.
pub(super) fn attachment_body(session: &Session, entry_idx: EntryIndex) -> Option<ItemBody> {
    let entry = &session.entries()[entry_idx];
    let line: AttachmentLine<'_> = entry.lens()?;
    let body = line.attachment()?;
    if let Some(input) = session.input(entry_idx) {
        let prompt = body.prompt()?;
        let files = prompt.items().filter_map(<Block<'_> as FromJson<'_>>::from_json).filter_map(file_of);
        let text = strip_tags(input, text_of(prompt));
        return Some(ItemBody::Input { input, text, files: files.collect(), context: Vec::new() });
    }
    let kind = body.kind()?;
    if let Some(event) = hook(body, &kind) {
        return Some(event);
    }
    let cwd = entry.cwd().unwrap_or_default();
    let path = body.filename().or_else(|| body.path()).or_else(|| body.display_path()).unwrap_or_default();
    let path = relative_to(&path, &cwd).unwrap_or_else(|| path.into_owned());
    let (label, text) = match &*kind {
        "file" => (ATTACHED, join([path, line_count(body.content())])),
        "directory" => (ATTACHED, join([path, String::new()])),
        "compact_file_reference" => ("kept after compaction", path),
        "edited_text_file" => ("changed on disk", path),
        "nested_memory" => ("memory", path),
        "deferred_tools_delta" => ("tools", delta(body.added_names(), body.removed_names())),
        "mcp_instructions_delta" => ("MCP instructions", delta(body.added_names(), body.removed_names())),
        "agent_listing_delta" => ("agents", delta(body.added_types(), body.removed_types())),
        "skill_listing" => ("skills", plural(body.skill_count().unwrap_or(0), "skill")),
        "task_reminder" | "todo_reminder" => match body.item_count().unwrap_or(0) {
            // A reminder with no tasks only suggests making a list.
            0 => return None,
            tasks => ("reminder", plural(tasks, "task")),
        },
        "command_permissions" => match names(body.allowed_tools()) {
            none if none.is_empty() => return None,
            tools => ("allowed", tools),
        },
        "plan_mode" => ("plan mode", body.plan_file_path().unwrap_or_default().into_owned()),
        "plan_mode_exit" => ("plan mode ended", body.plan_file_path().unwrap_or_default().into_owned()),
        "date_change" | "date" => {
            ("date", body.new_date().or_else(|| body.date()).unwrap_or_default().into_owned())
        }
        "environment" => {
            let place = body.snapshot();
            let parts = place.map(|place| [place.working_directory(), place.shell(), place.os_version()]);
            ("environment", parts.into_iter().flatten().flatten().collect::<Vec<_>>().join(", "))
        }
        "model" => {
            let name = body.identity().and_then(|model| model.marketing_name().or_else(|| model.model_id()));
            ("model", name.unwrap_or_default().into_owned())
        }
        "prompt_snapshot" => {
            let size = |json: Option<Json<'_>>| json.map_or(0, |json| json.raw().len() as u64);
            ("system prompt", bytes(size(body.system_prompt()) + size(body.tools())))
        }
        "budget_usd" => {
            let dollars = |amount: Option<f64>| format!("${:.4}", amount.unwrap_or(0.0));
            ("budget", format!("{} of {} used", dollars(body.used()), dollars(body.total())))
        }
        "goal_status" => ("goal", goal(body)?),
        "max_turns_reached" => ("turn limit", format!("{} reached", body.max_turns().unwrap_or(0))),
        "unknown_command_fallback" => {
            ("unknown command", format!("/{}", body.command_name().unwrap_or_default()))
        }
        "structured_output" => {
            ("structured output", body.data().map(|data| data.raw().to_owned()).unwrap_or_default())
        }
        "instructions" => {
            let files = body.files().into_iter().flat_map(|files| files.iter());
            ("memory", joined(files.filter_map(|file| file.path()), ", "))
        }
        // These contain only the signature settings, or nothing.
        "session_context" | "remote_session_change" => return None,
        other => {
            let text = if path.is_empty() { any_text(line, body) } else { path };
            return Some(ItemBody::Event { label: other.replace('_', " "), text });
        }
    };
    Some(ItemBody::Event { label: label.to_owned(), text })
}

/// Returns the state of a goal: a condition that must hold before the model may stop.
fn goal(body: AttachmentBody<'_>) -> Option<String> {
    let condition = body.condition()?;
    let state = match (body.met(), body.sentinel(), body.iterations()) {
        (Some(true), ..) => "met".to_owned(),
        (_, Some(true), _) => "set".to_owned(),
        (.., Some(checks)) => format!("not met after {}", plural(checks, "check")),
        _ => "not met".to_owned(),
    };
    let reason = body.reason().unwrap_or_default().into_owned();
    Some(join([format!("{state}: {condition}"), reason]))
}

/// Returns the text of an attachment of any other type: its text fields, else the text that was sent to the
/// model, else all of its fields.
fn any_text(line: AttachmentLine<'_>, body: AttachmentBody<'_>) -> String {
    let own = body.text().or_else(|| body.message()).map(Cow::into_owned);
    let own = own.or_else(|| body.content().map(text_of)).filter(|text| !text.is_empty());
    let sent = || {
        let texts =
            line.rendered().into_iter().flat_map(|texts| texts.iter()).filter_map(|text| text.content());
        let texts = texts.map(|text| strip_tags(InputKind::Meta, text.text().into_owned()));
        Some(joined(texts, "\n")).filter(|text| !text.trim().is_empty())
    };
    own.or_else(sent).unwrap_or_else(|| {
        let is_id = |key: &str| key == "type" || key.to_lowercase().ends_with("id");
        let fields = body.object().json().members().filter(|(key, _)| !is_id(&key.name()));
        let field = |(key, value): (JsonKey<'_>, Json<'_>)| {
            let value = value.as_str().unwrap_or_else(|| value.raw().into());
            format!("{}: {value}", key.name())
        };
        joined(fields.map(field), ", ")
    })
}

/// Returns the event of a hook.
fn hook(body: AttachmentBody<'_>, kind: &str) -> Option<ItemBody> {
    let name = body.hook_name().or_else(|| body.hook_event())?;
    let blocked = body.blocking_error().and_then(|error| {
        error.as_str().or_else(|| error.get(key::BLOCKING_ERROR)?.as_str()).map(|text| text.into_owned())
    });
    let said = body.content().map(text_of).filter(|said| !said.is_empty());
    Some(match kind {
        "hook_stopped_continuation" => {
            let why = body.message().map(Cow::into_owned).or(said).unwrap_or_default();
            ItemBody::Error { label: "stopped by hook".to_owned(), text: join([name.into_owned(), why]) }
        }
        "hook_non_blocking_error" | "hook_blocking_error" | "hook_cancelled" => {
            let errors = blocked.or_else(|| Some(body.stderr()?.into_owned())).or(said).unwrap_or_default();
            let text = join([name.into_owned(), errors]);
            match kind {
                "hook_blocking_error" => ItemBody::Error { label: "stopped by hook".to_owned(), text },
                // The conversation continued as if the hook had not run.
                _ => ItemBody::Event { label: "hook failed".to_owned(), text },
            }
        }
        _ => {
            let label = match kind {
                "hook_additional_context" => "hook context",
                "hook_system_message" => "hook message",
                _ => "hook",
            };
            let ran = || body.command().filter(|command| command != "callback").map(Cow::into_owned);
            let said = said.or_else(ran).unwrap_or_default();
            ItemBody::Event { label: label.to_owned(), text: join([name.into_owned(), said]) }
        }
    })
}

/// Joins a topic and its details, skipping empty parts.
fn join(parts: [String; 2]) -> String {
    let [topic, rest] = parts;
    let rest = rest.trim();
    match (topic.is_empty(), rest.is_empty()) {
        (_, true) => topic,
        (true, _) => rest.to_owned(),
        _ => format!("{topic}: {rest}"),
    }
}

/// Returns the number of lines of an attached file.
fn line_count(content: Option<Json<'_>>) -> String {
    let lines = content.and_then(|content| content.get("file")?.get(key::NUM_LINES)?.as_u64());
    lines.map(|lines| plural(lines, "line")).unwrap_or_default()
}

/// Returns the added names and the number of removed ones.
fn delta(added: Option<Json<'_>>, removed: Option<Json<'_>>) -> String {
    let gone = removed.map_or(0, |removed| removed.items().count());
    let added = names(added);
    match (added.is_empty(), gone) {
        (_, 0) => added,
        (true, gone) => format!("{gone} removed"),
        (false, gone) => format!("{added}; {gone} removed"),
    }
}

/// Joins the first few names of a list.
fn names(list: Option<Json<'_>>) -> String {
    const FEW: usize = 8;
    let mut all = list.filter(|list| list.kind() == JsonKind::Array).into_iter().flat_map(Json::items);
    let few = joined(all.by_ref().take(FEW).filter_map(Json::as_str), ", ");
    match all.count() {
        0 => few,
        more => format!("{few} and {more} more"),
    }
}
