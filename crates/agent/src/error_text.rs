//! Texts that the client itself writes to the session, in the wording of Claude Code: errors of the API,
//! refusals, and messages that keep a conversation going.

use threadline_api::{ApiError, ErrorKind};

use crate::event::RetryKind;

/// An error as it appears in the session and in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorReport {
    pub(crate) text: String,
    /// The value of `error` in the session line.
    pub(crate) error: &'static str,
    /// The value of `errorDetails` in the session line.
    pub(crate) details: Option<String>,
    /// The value of `terminal_reason` in the result of the turn. Claude Code reports most errors as
    /// `completed`.
    pub(crate) reason: &'static str,
}

impl ErrorReport {
    /// Describes an error of a request to `host` for a reply of `model`.
    pub(crate) fn new(error: &ApiError, model: &str, host: &str) -> Self {
        let report = |text: String, error| Self { text, error, details: None, reason: "completed" };
        let ApiError::Status { status, message, body, .. } = error else {
            return match error {
                ApiError::Stream { kind, message } => {
                    let error = if *kind == ErrorKind::Overloaded { "server_error" } else { "unknown" };
                    report(format!("API Error: {message}"), error)
                }
                ApiError::Network(message) => report(
                    format!("API Error: Unable to connect to API ({})", network_cause(message)),
                    "server_error",
                ),
                other => report(format!("API Error: {other}"), "unknown"),
            };
        };
        match status {
            400 if message.to_lowercase().contains("prompt is too long") => Self {
                text: "Prompt is too long".to_owned(),
                error: "invalid_request",
                details: Some(format!("400 {}", compact(body))),
                reason: "prompt_too_long",
            },
            400 => report(format!("API Error: 400 {message}"), "unknown"),
            401 => report("Invalid API key · Fix external API key".to_owned(), "authentication_failed"),
            403 => {
                report(format!("Failed to authenticate. API Error: 403 {message}"), "authentication_failed")
            }
            404 => report(
                format!(
                    "There's an issue with the selected model ({model}). It may not exist or you may not have \
                     access to it. Run --model to pick a different model."
                ),
                "model_not_found",
            ),
            413 => Self {
                text: "Request too large (max 32MB). Try with a smaller file.".to_owned(),
                error: "invalid_request",
                details: Some(format!("request_too_large: 413 {}", compact(body))),
                reason: "image_error",
            },
            429 => report(format!("API Error: Request rejected (429) · {message}"), "rate_limit"),
            500.. => report(
                format!(
                    "API Error: {status} {}. This is a server-side issue, usually temporary — try again in a \
                     moment. If it persists, check your inference gateway ({host}).",
                    message.trim_end_matches('.')
                ),
                "server_error",
            ),
            _ => report(format!("API Error: {status} {message}"), "unknown"),
        }
    }
}

/// Removes white space between the tokens of a JSON text.
pub(crate) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for ch in json.chars() {
        if in_string || !ch.is_ascii_whitespace() {
            out.push(ch);
        }
        in_string ^= ch == '"' && !is_escaped;
        is_escaped = in_string && ch == '\\' && !is_escaped;
    }
    out
}

/// Returns the name of a common network error, or the message.
fn network_cause(message: &str) -> &str {
    if message.to_lowercase().contains("refused") { "ConnectionRefused" } else { message }
}

/// Returns the kind of an error that is retried.
pub(crate) fn retry_kind(error: &ApiError) -> RetryKind {
    match error {
        ApiError::Status { status: 401, .. } => RetryKind::Authentication,
        ApiError::Status { status: 429, .. } => RetryKind::RateLimit,
        ApiError::Status { status: 529, .. } => RetryKind::Overloaded,
        ApiError::Status { status: 500.., .. } => RetryKind::Server,
        _ => RetryKind::Unknown,
    }
}

/// Returns the text that replaces a refused reply.
pub(crate) fn refusal(request_id: Option<&str>) -> String {
    let id = request_id.map(|id| format!("\n\nRequest ID: {id}")).unwrap_or_default();
    format!(
        "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy \
         (https://www.anthropic.com/legal/aup). Try rephrasing the request in a new session or change your \
         model.{id}"
    )
}

/// Fixed texts that the client adds to a conversation: as a prompt, a reply or a tool result.
pub(crate) mod filler {
    pub(crate) const CONTINUE: &str = "Continue from where you left off.";
    pub(crate) const NO_RESPONSE: &str = "No response requested.";
    pub(crate) const OUTPUT_LIMIT: &str = "Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces.";
    pub(crate) const NO_OUTPUT: &str = "[Your previous response had no visible output. Please continue and produce a user-visible response.]";
    pub(crate) const STRUCTURED_OUTPUT: &str = "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. Call this tool now.";
    pub(crate) const COMMAND_CAVEAT: &str = "<local-command-caveat>Caveat: The messages below were generated by the user while running local commands. DO NOT respond to these messages or otherwise consider them in your response unless the user explicitly asks you to.</local-command-caveat>";
    /// Returns the first message after a compaction.
    pub(crate) fn compact_summary(summary: &str, log: &str) -> String {
        format!(
            "This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\nSummary:\n{summary}\n\nIf you need specific details from before compaction (like exact code snippets, error messages, or content you generated), read the full transcript at: {log}\nContinue the conversation from where it left off without asking the user any further questions. Resume directly — do not acknowledge the summary, do not recap what was happening, do not preface with \"I'll continue\" or similar. Pick up the last task as if the break never happened."
        )
    }
    pub(crate) const NO_RESULT: &str =
        "[Tool call interrupted: the process ended before the result was recorded. The call may have run.]";
    pub(crate) const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";
    pub(crate) const REJECTED_RECORD: &str = "User rejected tool use";
    pub(crate) const INTERRUPTED: &str = "[Request interrupted by user]";
    pub(crate) const INTERRUPTED_TOOLS: &str = "[Request interrupted by user for tool use]";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, message: &str) -> String {
        let error = ApiError::Status {
            status,
            kind: ErrorKind::Api,
            message: message.to_owned(),
            retry_after: None,
            should_retry: None,
            request_id: None,
            body: String::new(),
        };
        let report = ErrorReport::new(&error, "m", "127.0.0.1:1");
        format!("{} [{} {}]", report.text, report.error, report.reason)
    }

    #[test]
    fn white_space_is_removed_outside_of_strings_only() {
        assert_eq!(compact("{ \"a b\": [1, \"c \\\" d\"] }"), "{\"a b\":[1,\"c \\\" d\"]}");
    }

    #[test]
    fn errors_have_the_texts_of_claude_code() {
        assert_eq!(status(400, "scripted"), "API Error: 400 scripted [unknown completed]");
        assert_eq!(
            status(400, "prompt is too long: 9 > 8"),
            "Prompt is too long [invalid_request prompt_too_long]"
        );
        assert_eq!(
            status(529, "Overloaded"),
            "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. \
             If it persists, check your inference gateway (127.0.0.1:1). [server_error completed]"
        );
        assert_eq!(
            status(429, "slow down"),
            "API Error: Request rejected (429) · slow down [rate_limit completed]"
        );
    }
}
