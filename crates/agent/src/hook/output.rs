//! The answer of a hook.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The decision of a hook about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HookDecision {
    /// The call may run without asking.
    Allow,
    /// A person must be asked.
    Ask,
    /// The call does not run now, and the turn ends: the program that started it decides.
    Defer,
    /// The call may not run.
    Deny,
}

/// The answer of a hook to a question about a call.
#[derive(Clone, Debug)]
pub(crate) enum HookAnswer {
    /// The call may run, with another input if one is given.
    Allow {
        /// The input.
        input: Option<Box<RawValue>>,
    },
    /// The call may not run; the text is for the model.
    Deny {
        /// The text.
        message: String,
    },
}

impl HookAnswer {
    /// The name in session lines.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Allow { .. } => "allow",
            Self::Deny { .. } => "deny",
        }
    }
}

/// The answer of a hook, from its output.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookOutput {
    /// The output if it is a text: context for events that take it.
    pub(crate) text: String,
    /// Whether the output is an object.
    pub(crate) is_object: bool,
    /// The reason if the turn must end.
    pub(crate) stop: Option<String>,
    /// The reason if the hook blocks the event's action: the prompt, the call, the end of the turn.
    pub(crate) block: Option<String>,
    /// A message for the person.
    pub(crate) system_message: Option<String>,
    pub(crate) decision: Option<HookDecision>,
    /// The reason of the decision.
    pub(crate) decision_reason: Option<String>,
    /// The input that replaces the model's.
    pub(crate) updated_input: Option<Box<RawValue>>,
    /// A text for the model.
    pub(crate) additional_context: Option<String>,
    /// The answer to a question about a call.
    pub(crate) answer: Option<HookAnswer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawOutput {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<RawSpecificOutput>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpecificOutput {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Box<RawValue>>,
    additional_context: Option<String>,
    decision: Option<RawAnswer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAnswer {
    behavior: String,
    message: Option<String>,
    updated_input: Option<Box<RawValue>>,
}

impl HookOutput {
    /// Parses the standard output of a hook that ended well: an object, or else a text.
    pub(crate) fn parse(stdout: &str) -> Self {
        let text = stdout.trim();
        let parsed: Option<RawOutput> =
            text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
        let Some(raw) = parsed else { return Self { text: text.to_owned(), ..Self::default() } };
        let mut output = Self { is_object: true, system_message: raw.system_message, ..Self::default() };
        if raw.goes_on == Some(false) {
            output.stop = Some(raw.stop_reason.unwrap_or_default());
        }
        match raw.decision.as_deref() {
            Some("block") => {
                output.block = Some(raw.reason.clone().unwrap_or_default());
                output.decision = Some(HookDecision::Deny);
                output.decision_reason = raw.reason;
            }
            Some("approve") => {
                output.decision = Some(HookDecision::Allow);
                output.decision_reason = raw.reason;
            }
            _ => {}
        }
        if let Some(specific) = raw.hook_specific_output {
            output.decision = match specific.permission_decision.as_deref() {
                Some("allow") => Some(HookDecision::Allow),
                Some("ask") => Some(HookDecision::Ask),
                Some("defer") => Some(HookDecision::Defer),
                Some("deny") => Some(HookDecision::Deny),
                _ => output.decision,
            };
            output.decision_reason = specific.permission_decision_reason.or(output.decision_reason);
            output.updated_input = specific.updated_input;
            output.additional_context = specific.additional_context.filter(|text| !text.is_empty());
            output.answer = specific.decision.and_then(|answer| match answer.behavior.as_str() {
                "allow" => Some(HookAnswer::Allow { input: answer.updated_input }),
                "deny" => Some(HookAnswer::Deny { message: answer.message.unwrap_or_default() }),
                _ => None,
            });
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_and_everything_else_is_text() {
        let output = HookOutput::parse(
            r#" {"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"a":1},"additionalContext":"c"}} "#,
        );
        assert_eq!(output.decision, Some(HookDecision::Allow));
        assert_eq!(output.updated_input.unwrap().get(), r#"{"a":1}"#);
        assert_eq!(output.additional_context.as_deref(), Some("c"));
        assert!(output.text.is_empty());
        for text in ["{broken", "plain", r#"["a"]"#, r#"{"continue":"maybe"}"#] {
            let output = HookOutput::parse(text);
            assert_eq!((output.text.as_str(), output.is_object), (text, false));
        }
    }

    #[test]
    fn the_answer_to_a_question_is_read() {
        let answer = |decision: &str| {
            HookOutput::parse(&format!(r#"{{"hookSpecificOutput":{{"decision":{decision}}}}}"#)).answer
        };
        let allow = answer(r#"{"behavior":"allow","updatedInput":{"a":1}}"#);
        assert!(
            matches!(allow, Some(HookAnswer::Allow { input: Some(input) }) if input.get() == r#"{"a":1}"#)
        );
        let deny = answer(r#"{"behavior":"deny","message":"no"}"#);
        assert!(matches!(deny, Some(HookAnswer::Deny { message }) if message == "no"));
        assert!(answer(r#"{"behavior":"maybe"}"#).is_none());
    }

    #[test]
    fn the_older_form_of_a_decision_is_read() {
        let output = HookOutput::parse(r#"{"decision":"block","reason":"no"}"#);
        assert_eq!(output.block.as_deref(), Some("no"));
        assert_eq!(output.decision, Some(HookDecision::Deny));
        let output = HookOutput::parse(r#"{"decision":"approve"}"#);
        assert_eq!((output.block, output.decision), (None, Some(HookDecision::Allow)));
        let output = HookOutput::parse(r#"{"continue":false,"stopReason":"enough"}"#);
        assert_eq!(output.stop.as_deref(), Some("enough"));
    }
}
