//! Summaries of conversations by a model: the request, and the removal of old tool output if the
//! conversation does not fit into it.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use threadline_api::{
    ApiError, BlockKind, Client, Message, MessagesRequest, RawObject, Reply, Role, model_info,
};
use threadline_cancel::CancelToken;

use crate::conversation::Conversation;
use crate::json::raw;

/// The request for a summary.
const INSTRUCTION: &str = "Summarise this conversation so that the work can go on without it. Write down: what \
the user asked for, in the user's words where they matter; decisions and their reasons; files that were read, \
created or changed, with the important parts of their content; commands and their results; errors and how they \
were solved; what is done, what is in progress and what comes next. Do not call tools. Think first inside \
<analysis> tags, then write the summary inside <summary> tags.";

/// Precedes the instruction if the summary replaces only the end of the conversation.
const LATER_PART: &str = "Summarise only the part of this conversation that begins with the user's message \
quoted below. Everything before that message stays in the conversation: do not repeat it.";

/// Replaces the content of a result that was removed.
const REMOVED: &str = "[Old tool result content cleared]";

/// Results at the end of a conversation that are kept, as a number of messages.
const KEPT_MESSAGES: usize = 4;

/// Results of at most this many bytes are not worth removing.
const SMALL_RESULT: usize = 400;

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// The request failed.
    #[error(transparent)]
    Request(#[from] ApiError),
    /// The reply contains none.
    #[error("the model returned no summary")]
    Empty,
}

/// Asks a model for a summary of messages, such as the older part of a session.
///
/// # Errors
///
/// Returns an error if the request fails, or if its reply contains no summary.
pub fn summarize(
    client: &Client,
    model: &str,
    messages: Vec<Message>,
    instructions: &str,
    cancel: &CancelToken,
) -> Result<String, SummaryError> {
    let mut conversation = Conversation::new(messages);
    conversation.normalize();
    let mut request = MessagesRequest::new(model, model_info(model).max_output);
    request.tools = called_tools(&conversation.messages);
    request.messages = conversation.messages;
    let reply = request_summary(client, &mut request, &instruction(None, instructions), 0, cancel)?;
    let summary = summary_of(&reply.text());
    if summary.is_empty() { Err(SummaryError::Empty) } else { Ok(summary) }
}

/// Returns definitions of the tools that messages call, without which the API does not accept the calls.
fn called_tools(messages: &[Message]) -> Vec<RawObject> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let calls = blocks.filter(|block| BlockKind::of(block) == BlockKind::ToolUse);
    let names: BTreeSet<String> = calls.filter_map(|block| block.get_str("name")).collect();
    let schema = RawObject::new().with("type", "object");
    names.iter().map(|name| RawObject::new().with("name", name).with("input_schema", &schema)).collect()
}

/// Returns the request for a summary: of everything, or of the part that begins with a message.
pub(crate) fn instruction(first: Option<&str>, instructions: &str) -> String {
    let mut text = match first {
        None => INSTRUCTION.to_owned(),
        Some(first) => format!("{LATER_PART}\n\n<message>\n{first}\n</message>\n\n{INSTRUCTION}"),
    };
    if !instructions.is_empty() {
        text.push_str(&format!("\n\nThe user adds: {instructions}"));
    }
    text
}

/// Sends the messages of a request with the instruction at their end, and leaves them as they were.
///
/// At least `excess` bytes of old tool output are removed before, and all of it if the API rejects the
/// request as too long. The output is put back after the request.
pub(crate) fn request_summary(
    client: &Client,
    request: &mut MessagesRequest,
    instruction: &str,
    excess: usize,
    cancel: &CancelToken,
) -> Result<Reply, ApiError> {
    let mut removed = remove_results(&mut request.messages, excess);
    let mut conversation = Conversation::new(std::mem::take(&mut request.messages));
    conversation.push(Role::User, vec![Message::text_block(instruction)]);
    request.messages = conversation.messages;
    let mut reply = client.send(request, cancel, &mut |_| {});
    if reply.as_ref().is_err_and(is_too_long) {
        let more = remove_results(&mut request.messages, usize::MAX);
        if !more.is_empty() {
            removed.extend(more);
            reply = client.send(request, cancel, &mut |_| {});
        }
    }
    if let Some(last) = request.messages.last_mut() {
        last.content.pop();
    }
    request.messages.retain(|message| !message.content.is_empty());
    restore_results(&mut request.messages, removed);
    reply
}

/// Whether the API refused a request because it is too long for the model.
fn is_too_long(error: &ApiError) -> bool {
    error.status() == Some(400) && error.to_string().to_lowercase().contains("too long")
}

/// Content that was removed from a message.
struct RemovedResult {
    message: usize,
    block: usize,
    content: Box<RawValue>,
}

/// Removes the content of tool results, oldest first, until `bytes` bytes are gone. Results at the end stay.
fn remove_results(messages: &mut [Message], bytes: usize) -> Vec<RemovedResult> {
    let mut removed = Vec::new();
    let mut count = 0;
    let end = messages.len().saturating_sub(KEPT_MESSAGES);
    for (message, content) in messages[..end].iter_mut().map(|message| &mut message.content).enumerate() {
        for (block, result) in content.iter_mut().enumerate() {
            if count >= bytes {
                return removed;
            }
            let is_result = result.get_str("type").as_deref() == Some("tool_result");
            let Some(old) = result.get("content").filter(|old| is_result && old.get().len() > SMALL_RESULT)
            else {
                continue;
            };
            count += old.get().len();
            removed.push(RemovedResult { message, block, content: old.to_owned() });
            result.set_raw("content", raw(REMOVED));
        }
    }
    removed
}

fn restore_results(messages: &mut [Message], removed: Vec<RemovedResult>) {
    for result in removed {
        let block =
            messages.get_mut(result.message).and_then(|message| message.content.get_mut(result.block));
        if let Some(block) = block {
            block.set_raw("content", result.content);
        }
    }
}

/// Returns the summary in a reply: the text inside of `<summary>`, or all of it without the analysis.
pub(crate) fn summary_of(text: &str) -> String {
    let between = |start: &str, end: &str| {
        let from = text.find(start)? + start.len();
        let to = text[from..].find(end).map_or(text.len(), |to| from + to);
        Some((from, to))
    };
    if let Some((from, to)) = between("<summary>", "</summary>") {
        return text[from..to].trim().to_owned();
    }
    match between("<analysis>", "</analysis>") {
        Some((_, to)) => text[to..].trim_start_matches("</analysis>").trim().to_owned(),
        None => text.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(size: usize) -> Message {
        let block = RawObject::new()
            .with("type", "tool_result")
            .with("tool_use_id", "t")
            .with("content", "x".repeat(size));
        Message::new(Role::User, vec![block])
    }

    #[test]
    fn old_results_are_removed_until_enough_is_gone_and_put_back() {
        let mut messages: Vec<Message> = [1000, 10, 2000, 3000, 1000, 1000, 1000, 1000].map(result).into();
        let sizes = |messages: &[Message]| -> Vec<usize> {
            messages.iter().map(|message| message.content[0].get_str("content").unwrap().len()).collect()
        };
        let removed = remove_results(&mut messages, 2500);
        let gone = REMOVED.len();
        assert_eq!(sizes(&messages), [gone, 10, gone, 3000, 1000, 1000, 1000, 1000]);
        restore_results(&mut messages, removed);
        assert_eq!(sizes(&messages), [1000, 10, 2000, 3000, 1000, 1000, 1000, 1000]);
        assert_eq!(remove_results(&mut messages, usize::MAX).len(), 3, "those at the end stay");
    }

    #[test]
    fn the_summary_is_found_in_a_reply() {
        assert_eq!(summary_of("<analysis>a</analysis>\n<summary> S\nT </summary> x"), "S\nT");
        assert_eq!(summary_of("<analysis>a</analysis>\nS"), "S");
        assert_eq!(summary_of("<summary>cut off"), "cut off");
        assert_eq!(summary_of("plain"), "plain");
        assert_eq!(summary_of("<analysis>never ends"), "");
    }
}
