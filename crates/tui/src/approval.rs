//! Questions about calls: a preview of the command or the change, and the answers.

mod preview;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use serde_json::value::RawValue;
use threadline_agent::{PermissionAnswer, PermissionPrompt, PermissionRequest, SharedPermissions};
use threadline_cancel::CancelToken;
use threadline_permission::{PermissionMode, RuleEffect, RuleSource, Suggestion};
use threadline_term::TermText;

pub(crate) use self::preview::{EditablePart, ModelQuestion, Preview};
use crate::host::ScreenHost;
use crate::message::AgentMessage;
use crate::page::SharedPage;
use crate::queue::EventQueue;

/// The beginning of the result of a call that the person refused.
const REFUSED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it \
                       was a file edit, the new_string was NOT written to the file).";

/// A question about a call.
#[derive(Debug)]
pub(crate) struct Approval {
    /// The id of the call.
    pub(crate) id: String,
    /// One line about the call.
    pub(crate) title: String,
    /// The preview: exactly the command that will run, or the change that will be made.
    pub(crate) lines: Vec<TermText>,
    /// Why the call is not permitted by itself.
    pub(crate) reason: Option<String>,
    pub(crate) choices: Vec<Choice>,
    /// The part of the input that can be edited.
    pub(crate) editable: Option<EditablePart>,
    input: Box<RawValue>,
    answer: Sender<PermissionAnswer>,
}

/// An answer that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Yes,
    /// Yes, with a change of the permissions.
    Always(Suggestion),
    /// Yes to a plan, in this mode.
    Approve(PermissionMode),
    /// An option of the model's question.
    Option {
        question: usize,
        label: String,
        description: String,
    },
    /// The call is opened in an editor first.
    Edit,
    /// No, with a reason for the model.
    No,
}

impl Choice {
    /// The key that chooses it, besides its number.
    pub(crate) fn key(&self) -> Option<char> {
        match self {
            Self::Yes => Some('y'),
            Self::Always(_) => Some('a'),
            Self::Edit => Some('e'),
            Self::No => Some('n'),
            Self::Approve(_) | Self::Option { .. } => None,
        }
    }

    pub(crate) fn label(&self) -> String {
        match self {
            Self::Yes => "Yes".to_owned(),
            Self::Always(suggestion) => format!("Yes, and {}", describe(suggestion)),
            Self::Approve(PermissionMode::AcceptEdits) => "Yes, and accept edits".to_owned(),
            Self::Approve(_) => "Yes, and ask about edits".to_owned(),
            Self::Option { label, description, .. } if description.is_empty() => label.clone(),
            Self::Option { label, description, .. } => format!("{label} – {description}"),
            Self::Edit => "Edit first".to_owned(),
            Self::No => "No, and say why".to_owned(),
        }
    }
}

/// Describes a change of the permissions, with the rule that is written.
fn describe(suggestion: &Suggestion) -> String {
    match suggestion {
        Suggestion::SetMode(mode) => format!("switch to {} for this session", mode.name()),
        Suggestion::AddDirectory(folder) => format!("allow {} for this session", folder.display()),
        Suggestion::AllowRules { rules, is_for_session } => {
            let rules = rule_texts(rules).join(", ");
            let place = if *is_for_session { "for this session" } else { "in .claude/settings.local.json" };
            format!("always allow {rules} {place}")
        }
    }
}

/// Returns rules as settings files contain them.
pub(crate) fn rule_texts(rules: &[(String, Option<String>)]) -> Vec<String> {
    let text = |(tool, content): &(String, Option<String>)| match content {
        Some(content) => format!("{tool}({content})"),
        None => tool.clone(),
    };
    rules.iter().map(text).collect()
}

impl Approval {
    /// Permits the call.
    pub(crate) fn allow(self, input: Option<Box<RawValue>>) {
        self.send(PermissionAnswer::Allow { input });
    }

    /// Refuses the call. Without a reason, the turn ends.
    pub(crate) fn refuse(self, reason: &str) {
        self.send(if reason.trim().is_empty() {
            PermissionAnswer::Interrupt
        } else {
            let said = reason.trim();
            PermissionAnswer::Deny(format!("{REFUSED} To tell you how to proceed, the user said:\n{said}"))
        });
    }

    fn send(self, answer: PermissionAnswer) {
        // The turn may have been cancelled, and then there is no receiver.
        let _ = self.answer.send(answer);
    }

    /// Returns the input with another value of its editable part.
    pub(crate) fn edited_input(&self, text: &str) -> Option<Box<RawValue>> {
        self.editable.as_ref()?.apply(&self.input, text)
    }

    /// Returns the input with the answers to the questions of the model.
    pub(crate) fn answered_input(&self, answers: &[(String, String)]) -> Option<Box<RawValue>> {
        preview::with_answers(&self.input, answers)
    }

    /// Returns the questions of the model, if the call asks some.
    pub(crate) fn questions(&self) -> Vec<ModelQuestion> {
        preview::questions(&self.input)
    }
}

/// Changes the permissions of the session as a person chose. Returns an error if settings cannot be written.
pub(crate) fn apply_suggestion(
    suggestion: &Suggestion,
    permissions: &SharedPermissions,
    host: &dyn ScreenHost,
) -> Result<(), String> {
    match suggestion {
        Suggestion::SetMode(mode) => permissions.set_mode(*mode),
        Suggestion::AddDirectory(folder) => permissions
            .update(|permissions| permissions.workspace.additional_dirs.push(PathBuf::from(folder))),
        Suggestion::AllowRules { rules, is_for_session } => {
            let rules = rule_texts(rules);
            permissions.update(|permissions| {
                let workspace = permissions.workspace.clone();
                let source =
                    RuleSource { base: &workspace.cwd, cwd: &workspace.cwd, home: workspace.home.as_deref() };
                for rule in &rules {
                    permissions.rules.add(rule, RuleEffect::Allow, source);
                }
            });
            if !is_for_session {
                host.save_rules(&rules)?;
            }
        }
    }
    Ok(())
}

/// Asks the person at the screen.
pub(crate) struct ScreenPrompt {
    pub(crate) queue: Arc<EventQueue>,
    pub(crate) page: Arc<SharedPage>,
    pub(crate) cwd: PathBuf,
}

impl PermissionPrompt for ScreenPrompt {
    fn ask(&self, request: &PermissionRequest<'_>, cancel: &CancelToken) -> PermissionAnswer {
        let (answer, receiver) = channel();
        let cancelled = answer.clone();
        let guard = cancel.on_cancel(move || {
            let _ = cancelled.send(PermissionAnswer::Interrupt);
        });
        let preview = Preview::of(request, &self.cwd, self.page.get());
        let mut choices = preview.choices;
        if choices.is_empty() {
            choices.push(Choice::Yes);
            choices.extend(request.reason.suggestions.iter().cloned().map(Choice::Always));
            if preview.editable.is_some() {
                choices.push(Choice::Edit);
            }
        }
        choices.push(Choice::No);
        self.queue.push_agent(AgentMessage::Ask(Box::new(Approval {
            id: request.tool_use_id.to_owned(),
            title: preview.title,
            lines: preview.lines,
            reason: preview.reason,
            choices,
            editable: preview.editable,
            input: request.input.to_owned(),
            answer,
        })));
        let answer = receiver.recv().unwrap_or(PermissionAnswer::Interrupt);
        drop(guard);
        answer
    }
}
