//! Reminders: the text that Claude Code generates for attachments.
//!
//! Most of it is not part of a replay. There are two exceptions: reminders that the log contains and that
//! are appended to the preceding tool result, and prompts that the user queued during a turn.

use std::borrow::Cow;

use threadline_entry::{Entry, Json, key, value};

use super::MessageRole;
use super::block::ReplayBlock;
use super::request::{DraftMessage, Drafts, push_user};
use super::rule::{ReplayRule, VersionRules};

/// Returns whether a model accepts messages of role `system` between others. Models after Claude 4.7 do.
pub(super) fn takes_system_messages(model: &str) -> bool {
    let Some(name) = model.strip_prefix("claude-") else { return false };
    let numbers = name.split('-').filter_map(|part| part.parse::<u32>().ok());
    // Larger numbers are dates.
    let mut numbers = numbers.filter(|number| *number < 100);
    let major = numbers.next().unwrap_or(0);
    (major, numbers.next().unwrap_or(0)) >= (4, 8)
}

/// Sends an attachment as the reminder that Claude Code makes of it.
pub(super) fn push_attachment(
    drafts: &mut Drafts<'_>,
    entry: &Entry,
    model: Option<&str>,
    rules: VersionRules,
) {
    if !rules.has(ReplayRule::FoldReminders) {
        return;
    }
    let reminder = Reminder::of(entry, rules);
    if reminder.texts.is_empty() {
        return;
    }
    if !reminder.is_system_role {
        push_user(drafts, vec![ReplayBlock::reminder()]);
        return;
    }
    if model.is_some_and(takes_system_messages) {
        // Most reminders go into a message of role `system`, which is not part of the conversation.
        if is_queued_by_person(entry) && rules.has(ReplayRule::QueuedPromptText) {
            let texts = reminder.texts.iter().map(|text| ReplayBlock::text(without_tags(text)));
            push_user(drafts, texts.collect());
        }
        return;
    }
    for text in &reminder.texts {
        push_reminder(drafts, text, rules);
    }
}

/// The reminder for an attachment. Without text if the log does not contain it.
struct Reminder {
    /// The texts, each enclosed in its tags.
    texts: Vec<String>,
    /// Whether the reminder is sent in a message of role `system`, if the model accepts these.
    is_system_role: bool,
}

impl Reminder {
    fn of(entry: &Entry, rules: VersionRules) -> Self {
        let rendered = entry.get(key::RENDERED).filter(|_| rules.has(ReplayRule::RenderedReminders));
        if let Some(rendered) = rendered {
            let text = |item: Json<'_>| item.get(key::CONTENT).and_then(Json::as_str).map(Cow::into_owned);
            let texts = rendered.items().filter_map(text).collect();
            let is_systems = entry.get(key::RENDERED_ROLE).is_some_and(|role| role.is_str("system"));
            return Self { texts, is_system_role: is_systems };
        }
        let text = entry.get(key::ATTACHMENT).and_then(reminder_text);
        let texts = text.map(|text| format!("<system-reminder>\n{text}\n</system-reminder>"));
        Self { texts: texts.into_iter().collect(), is_system_role: true }
    }
}

/// Returns the text of a reminder for the kinds of attachment that contain nearly all of it.
fn reminder_text(attachment: Json<'_>) -> Option<String> {
    let text = |key: &str| attachment.get(key).and_then(Json::as_str);
    let number = |key: &str| attachment.get(key).map(Json::raw);
    match &*text(key::TYPE)? {
        "total_tokens_reminder" => text(key::TEXT).map(Cow::into_owned),
        "hook_additional_context" => {
            let content = attachment.get(key::CONTENT)?;
            let lines: Vec<_> = content.items().filter_map(Json::as_str).collect();
            Some(format!("{} hook additional context: {}", text(key::HOOK_NAME)?, lines.join("\n")))
        }
        "hook_stopped_continuation" => {
            Some(format!("{} hook stopped continuation: {}", text(key::HOOK_NAME)?, text(key::MESSAGE)?))
        }
        "budget_usd" => {
            let (used, total, left) = (number("used")?, number("total")?, number("remaining")?);
            Some(format!("USD budget: ${used}/${total}; ${left} remaining"))
        }
        _ => None,
    }
}

/// Returns whether an attachment is a prompt that the user typed while the model was working.
fn is_queued_by_person(entry: &Entry) -> bool {
    let Some(attachment) = entry.get(key::ATTACHMENT) else { return false };
    let origin = attachment.get(key::ORIGIN).and_then(|origin| origin.get(key::KIND));
    attachment.get(key::TYPE).is_some_and(|kind| kind.is_str(value::QUEUED_COMMAND))
        && origin.is_some_and(|kind| kind.is_str("human"))
}

/// Returns the text inside the tags of a system reminder.
fn without_tags(reminder: &str) -> &str {
    let inner = reminder.trim().strip_prefix("<system-reminder>");
    inner.and_then(|inner| inner.strip_suffix("</system-reminder>")).map_or(reminder, str::trim)
}

/// Adds a reminder: to the preceding result if there is one, else as a separate block.
fn push_reminder(drafts: &mut Drafts<'_>, text: &str, rules: VersionRules) {
    let last = drafts.last_user().and_then(DraftMessage::last_mut);
    let result = last.filter(|block| block.is(value::TOOL_RESULT));
    if result.is_some_and(|result| result.add_reminder(text, rules)) {
        return;
    }
    push_user(drafts, vec![ReplayBlock::reminder()]);
}

/// Removes the reminders that are separate blocks.
pub(super) fn drop_reminders(drafts: &mut Vec<DraftMessage<'_>>) {
    for draft in drafts.iter_mut() {
        draft.content.retain(|block| !block.is("reminder"));
    }
    drafts.retain(|draft| draft.role == MessageRole::Assistant || !draft.content.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_after_4_7_take_system_messages() {
        let takes = ["claude-opus-4-8", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5-20260901"];
        let takes_none = [
            "claude-sonnet-4-5-20250929",
            "claude-opus-4-20250514",
            "claude-opus-4-7",
            "claude-3-5-sonnet-20241022",
            "glm-5",
            "<synthetic>",
        ];
        assert!(takes.into_iter().all(takes_system_messages));
        assert!(!takes_none.into_iter().any(takes_system_messages));
    }
}
