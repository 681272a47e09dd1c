//! Questions about calls, which the editor shows to the user.

use std::path::PathBuf;
use std::sync::Arc;

use threadline_agent::{PermissionAnswer, PermissionPrompt, PermissionRequest, SharedPermissions};
use threadline_api::RawObject;
use threadline_cancel::CancelToken;

use super::connection::Connection;
use super::raw;
use super::translate::describe_call;

/// Asks the user of the editor.
pub(super) struct AcpPrompt {
    pub(super) connection: Arc<Connection>,
    pub(super) session_id: String,
    pub(super) permissions: SharedPermissions,
    pub(super) cwd: PathBuf,
}

/// The choice of the user.
enum Choice {
    Option(String),
    /// The turn was cancelled.
    Cancelled,
}

/// The tool with which the model asks the user.
const QUESTION: &str = "AskUserQuestion";

impl PermissionPrompt for AcpPrompt {
    fn ask(&self, request: &PermissionRequest<'_>, cancel: &CancelToken) -> PermissionAnswer {
        let input = RawObject::parse(request.input.get()).unwrap_or_default();
        if request.tool == QUESTION {
            return self.ask_questions(request, input, cancel);
        }
        let mut call = describe_call(request.tool_use_id, request.tool, &input, &self.cwd);
        if let Some(plan) = input.get_str("plan") {
            let text = RawObject::new().with("type", "text").with("text", plan);
            call.set("content", [RawObject::new().with("type", "content").with("content", text)]);
        }
        let mut options = vec![option("allow", "Allow", "allow_once")];
        if !request.reason.suggestions.is_empty() {
            options.push(option("always", "Always allow", "allow_always"));
        }
        options.push(option("reject", "Reject", "reject_once"));
        match self.choose(&call, options, cancel) {
            Choice::Cancelled => PermissionAnswer::Interrupt,
            Choice::Option(id) if id == "allow" => PermissionAnswer::Allow { input: None },
            Choice::Option(id) if id == "always" => {
                for suggestion in &request.reason.suggestions {
                    self.permissions.accept(suggestion);
                }
                PermissionAnswer::Allow { input: None }
            }
            Choice::Option(_) => PermissionAnswer::Deny("The user refused the call.".to_owned()),
        }
    }
}

impl AcpPrompt {
    /// Asks the questions of the model one after another. The answers become part of the input.
    fn ask_questions(
        &self,
        request: &PermissionRequest<'_>,
        mut input: RawObject,
        cancel: &CancelToken,
    ) -> PermissionAnswer {
        let list = |object: &RawObject, key: &str| -> Vec<RawObject> {
            object.get(key).and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default()
        };
        let mut answers = RawObject::new();
        for question in list(&input, "questions") {
            let text = question.get_str("question").unwrap_or_default();
            let call = RawObject::new()
                .with("toolCallId", request.tool_use_id)
                .with("title", &text)
                .with("kind", "other");
            let labels: Vec<String> =
                list(&question, "options").iter().filter_map(|option| option.get_str("label")).collect();
            let choices = labels.iter().enumerate();
            let mut options: Vec<RawObject> =
                choices.map(|(index, label)| option(&index.to_string(), label, "allow_once")).collect();
            options.push(option("skip", "Skip", "reject_once"));
            match self.choose(&call, options, cancel) {
                Choice::Cancelled => return PermissionAnswer::Interrupt,
                Choice::Option(id) => {
                    let label = id.parse::<usize>().ok().and_then(|index| labels.get(index));
                    let Some(label) = label else {
                        return PermissionAnswer::Deny("The user declined to answer.".to_owned());
                    };
                    answers.set(&text, label);
                }
            }
        }
        input.set("answers", answers);
        PermissionAnswer::Allow { input: Some(raw(&input)) }
    }

    /// Shows options and returns the choice. An answer that is not valid rejects.
    fn choose(&self, call: &RawObject, options: Vec<RawObject>, cancel: &CancelToken) -> Choice {
        let params = RawObject::new()
            .with("sessionId", &self.session_id)
            .with("toolCall", call)
            .with("options", options);
        let result = self.connection.request("session/request_permission", &params, cancel);
        let outcome = result.and_then(|result| result.get_object("outcome")).unwrap_or_default();
        match outcome.get_str("outcome").as_deref() {
            Some("selected") => Choice::Option(outcome.get_str("optionId").unwrap_or_default()),
            Some("cancelled") => Choice::Cancelled,
            _ if cancel.is_cancelled() => Choice::Cancelled,
            _ => Choice::Option(String::new()),
        }
    }
}

fn option(id: &str, name: &str, kind: &str) -> RawObject {
    RawObject::new().with("optionId", id).with("name", name).with("kind", kind)
}
