//! The decision about a call.

use std::path::{Path, PathBuf};

use crate::bash::{BashVerdict, DeniedCommand, decide_command};
use crate::files::{Access, Protection, Workspace, is_environment, resolve_links};
use crate::mode::PermissionMode;
use crate::rule::{RuleEffect, RuleSet};

/// The permissions of a session.
#[derive(Clone, Debug)]
pub struct Permissions {
    /// The mode.
    pub mode: PermissionMode,
    /// The rules.
    pub rules: RuleSet,
    /// The working folders.
    pub workspace: Workspace,
}

/// A call, as far as the decision depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// Whether the call changes nothing.
    pub is_read_only: bool,
    /// The thing that the call works on.
    pub target: CallTarget<'a>,
}

/// The thing that a call works on.
#[derive(Clone, Copy, Debug)]
pub enum CallTarget<'a> {
    /// Nothing that rules can name.
    None,
    /// A shell command.
    Command {
        /// The command.
        command: &'a str,
        /// The current folder of the shell.
        cwd: &'a Path,
    },
    /// A file or folder, absolute and without `..`.
    Path {
        /// The path.
        path: &'a Path,
        /// The path as the model wrote it.
        given: &'a str,
        /// Whether it is read or changed.
        access: Access,
    },
    /// An address.
    Url(&'a str),
    /// A text that rules name, such as the type of an agent or the name of a skill.
    Text(&'a str),
    /// The person: the call is a question, which is asked in every mode that asks.
    Person,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow,
    /// It may if a person agrees.
    Ask(AskReason),
    /// It may not.
    Deny(Refusal),
}

/// Why a call needs an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskReason {
    /// The text for the model if there is no one to ask.
    pub message: String,
    /// The path that a command is not permitted to use.
    pub blocked_path: Option<PathBuf>,
    /// Changes that would permit the call.
    pub suggestions: Vec<Suggestion>,
    /// The check that led to the question.
    pub basis: AskBasis,
}

/// The check that led to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskBasis {
    /// None in particular: nothing permits the call.
    NotGranted,
    /// The path is outside of the working folders.
    OutsideWorkspace,
    /// Another reason, in words.
    Other(String),
    /// The mode does not permit the call.
    Mode,
    /// Parts of a compound command.
    Parts,
    /// A file or folder that needs care, in words, and whether a program may approve it.
    Safety {
        /// The reason.
        reason: String,
        /// Whether a program may approve it.
        is_approvable: bool,
    },
}

impl AskReason {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            blocked_path: None,
            suggestions: Vec::new(),
            basis: AskBasis::NotGranted,
        }
    }

    /// Returns the reason of a hook that wants a person to be asked.
    #[must_use]
    pub fn from_hook(reason: &str) -> Self {
        Self::stated(reason)
    }

    /// Returns a reason that is also shown with the question.
    pub(crate) fn stated(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { basis: AskBasis::Other(message.clone()), ..Self::new(message) }
    }

    pub(crate) fn at(message: impl Into<String>, path: &Path) -> Self {
        Self { blocked_path: Some(path.to_owned()), ..Self::new(message) }
    }
}

/// A change that would permit a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suggestion {
    /// Another mode for the session.
    SetMode(PermissionMode),
    /// A further working folder for the session.
    AddDirectory(PathBuf),
    /// Rules: the tool, and the text in parentheses.
    AllowRules {
        /// The rules.
        rules: Vec<(String, Option<String>)>,
        /// Whether they are for the session only, and not for the settings of the project.
        is_for_session: bool,
    },
}

impl Suggestion {
    pub(crate) fn rule(tool: &str, content: Option<String>, is_for_session: bool) -> Self {
        Self::AllowRules { rules: vec![(tool.to_owned(), content)], is_for_session }
    }
}

/// Why a call does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The text for the model.
    pub message: String,
    /// Whether the input counts as invalid. Such calls are not listed as denied.
    pub is_invalid_input: bool,
    /// The check that led to it.
    pub basis: RefusalBasis,
}

/// The check that led to a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalBasis {
    /// A rule.
    Rule,
    /// A rule about a part of a command.
    Parts,
    /// The call would need an answer, but the mode does not ask.
    Mode,
}

impl Refusal {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_invalid_input: false, basis: RefusalBasis::Rule }
    }

    fn invalid(message: &str) -> Self {
        let message = format!("<tool_use_error>{message}</tool_use_error>");
        Self { message, is_invalid_input: true, basis: RefusalBasis::Rule }
    }
}

/// Tools that only manage the client's own state.
const OWN_STATE: &[&str] = &[
    "TodoWrite",
    "SendMessage",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskOutput",
    "TaskStop",
    "EnterPlanMode",
    "StructuredOutput",
    "ToolSearch",
    "ListMcpResourcesTool",
    "Agent",
    "Task",
];

/// Tools that send data to other machines, such as text of files in an address.
const NETWORK: &[&str] = &["WebFetch", "WebSearch"];

/// Follows the text of a refusal in the mode `dontAsk`. Data of the session format.
const DONT_ASK_ADVICE: &str = "IMPORTANT: You *may* attempt to accomplish this action using other tools that \
    might naturally be used to accomplish this goal, e.g. using head instead of cat. But you *should not* attempt \
    to work around this denial in malicious ways, e.g. do not use your ability to run tests to execute non-test \
    actions. You should only try to work around this restriction in reasonable ways that do not attempt to bypass \
    the intent behind this denial. If you believe this capability is essential to complete the user's request, STOP \
    and explain to the user what you were trying to do and why you need this permission. Let the user decide how to \
    proceed.";

impl Permissions {
    /// Decides whether a call may run.
    #[must_use]
    pub fn decide(&self, call: Call<'_>) -> Decision {
        if self.rules.any(RuleEffect::Deny, |rule| rule.is_whole_tool(call.tool)) {
            return Decision::Deny(Refusal::new(format!("Permission to use {} has been denied.", call.tool)));
        }
        let decision = match call.target {
            CallTarget::Command { command, cwd } => self.decide_command(command, cwd),
            CallTarget::Path { path, given, access } => self.decide_path(call, path, given, access),
            CallTarget::Url(url) => self.decide_url(call, url),
            CallTarget::Text(text) => self.decide_text(call, text),
            CallTarget::Person => {
                Decision::Ask(AskReason::new(format!("{} needs an answer of the user.", call.tool)))
            }
            CallTarget::None => self.decide_tool(call),
        };
        match decision {
            Decision::Ask(_) if self.mode == PermissionMode::DontAsk => {
                let message = format!(
                    "Permission to use {} has been denied because Claude Code is running in don't ask mode. \
                     {DONT_ASK_ADVICE}",
                    call.tool
                );
                Decision::Deny(Refusal { basis: RefusalBasis::Mode, ..Refusal::new(message) })
            }
            decision => decision,
        }
    }

    /// Returns whether a rule refuses every call of a tool, so that the model need not know it.
    #[must_use]
    pub fn is_tool_denied(&self, tool: &str) -> bool {
        self.rules.any(RuleEffect::Deny, |rule| rule.is_whole_tool(tool))
    }

    /// Returns whether a rule refuses to read a file.
    #[must_use]
    pub fn is_read_denied(&self, path: &Path) -> bool {
        self.path_rule(RuleEffect::Deny, Access::Read, path)
    }

    fn is_bypassed(&self) -> bool {
        self.mode == PermissionMode::BypassPermissions
    }

    fn allow() -> Decision {
        Decision::Allow
    }

    fn has_tool_rule(&self, effect: RuleEffect, tool: &str) -> bool {
        self.rules.any(effect, |rule| rule.is_whole_tool(tool))
    }

    fn ask_for_tool(tool: &str) -> AskReason {
        let message = format!("Claude requested permissions to use {tool}, but you haven't granted it yet.");
        AskReason { suggestions: vec![Suggestion::rule(tool, None, false)], ..AskReason::new(message) }
    }

    fn decide_command(&self, command: &str, cwd: &Path) -> Decision {
        if command.chars().any(|ch| ch.is_control() && !"\n\t".contains(ch)) {
            return Decision::Deny(Refusal::invalid(
                "InputValidationError: [\n  {\n    \"code\": \"custom\",\n    \"path\": [\n      \"command\"\n    ],\n    \
                 \"message\": \"command contains control characters that would be hidden in the approval dialog\"\n  \
                 }\n]",
            ));
        }
        match decide_command(self, command, cwd) {
            BashVerdict::Allow => Self::allow(),
            BashVerdict::Ask(reason) => Decision::Ask(reason),
            BashVerdict::Deny(DeniedCommand { part, file }) => {
                let mut message = format!("Permission to use Bash with command {part} has been denied.");
                if let Some(file) = file {
                    message.push_str(&format!(" It would read {}, which a rule refuses.", file.display()));
                }
                Decision::Deny(Refusal { basis: RefusalBasis::Parts, ..Refusal::new(message) })
            }
        }
    }

    fn decide_tool(&self, call: Call<'_>) -> Decision {
        if self.has_tool_rule(RuleEffect::Ask, call.tool) {
            return Decision::Ask(Self::ask_for_tool(call.tool));
        }
        let is_harmless = OWN_STATE.contains(&call.tool)
            || call.is_read_only && !NETWORK.contains(&call.tool) && !call.tool.starts_with("mcp__");
        if self.is_bypassed() || is_harmless || self.has_tool_rule(RuleEffect::Allow, call.tool) {
            return Self::allow();
        }
        Decision::Ask(Self::ask_for_tool(call.tool))
    }

    fn decide_text(&self, call: Call<'_>, text: &str) -> Decision {
        let matches = |effect| self.rules.any(effect, |rule| rule.matches_text(call.tool, text));
        if matches(RuleEffect::Deny) {
            let message = format!("Permission to use {}({text}) has been denied.", call.tool);
            return Decision::Deny(Refusal::new(message));
        }
        if matches(RuleEffect::Ask) {
            return Decision::Ask(Self::ask_for_tool(call.tool));
        }
        if matches(RuleEffect::Allow) { Self::allow() } else { self.decide_tool(call) }
    }

    fn decide_url(&self, call: Call<'_>, url: &str) -> Decision {
        let host = url_host(url);
        let matches = |effect| {
            host.as_deref()
                .is_some_and(|host| self.rules.any(effect, |rule| rule.matches_host(call.tool, host)))
        };
        if matches(RuleEffect::Deny) {
            let host = host.as_deref().unwrap_or_default();
            let message = format!("{} denied access to domain:{host}.", call.tool);
            return Decision::Deny(Refusal::new(message));
        }
        if matches(RuleEffect::Ask) {
            return Decision::Ask(Self::ask_for_tool(call.tool));
        }
        if matches(RuleEffect::Allow) {
            return Self::allow();
        }
        match self.decide_tool(call) {
            Decision::Ask(reason) => {
                let content = host.map(|host| format!("domain:{host}"));
                Decision::Ask(AskReason {
                    suggestions: vec![Suggestion::rule(call.tool, content, false)],
                    ..reason
                })
            }
            decision => decision,
        }
    }

    fn decide_path(&self, call: Call<'_>, path: &Path, given: &str, access: Access) -> Decision {
        let resolved = resolve_links(path);
        let verb = if access == Access::Read { "read" } else { "write" };
        let rule = |effect: RuleEffect, path: &Path| self.own_path_rule(effect, access, path);
        if rule(RuleEffect::Deny, path) || rule(RuleEffect::Deny, &resolved) {
            let is_search = ["Glob", "Grep"].contains(&call.tool);
            if rule(RuleEffect::Deny, path) && !is_search {
                return Decision::Deny(Refusal::invalid(
                    "File is in a directory that is denied by your permission settings.",
                ));
            }
            let shown = if call.tool == "Grep" { given.to_owned() } else { path.display().to_string() };
            let verb = if access == Access::Read { "read" } else { "edit" };
            return Decision::Deny(Refusal::new(format!("Permission to {verb} {shown} has been denied.")));
        }
        let shown = path.display();
        let preposition = if access == Access::Read { "from" } else { "to" };
        let mut not_granted = AskReason::new(format!(
            "Claude requested permissions to {verb} {preposition} {shown}, but you haven't granted it yet."
        ));
        let is_inside = self.workspace.contains(path, access);
        if !is_inside {
            not_granted.basis = AskBasis::OutsideWorkspace;
        }
        not_granted.suggestions = self.path_suggestions(path, access, is_inside);
        let is_asked = rule(RuleEffect::Ask, path)
            || rule(RuleEffect::Ask, &resolved)
            || self.has_tool_rule(RuleEffect::Ask, call.tool);
        if is_asked {
            return Decision::Ask(not_granted);
        }
        if self.is_bypassed() || self.workspace.plan_file.as_deref() == Some(path) && path == resolved {
            return Self::allow();
        }
        if access == Access::Read && is_environment(path) {
            return Decision::Ask(not_granted);
        }
        if access == Access::Write {
            match self.workspace.protection(path) {
                Some(Protection::Sensitive) => {
                    return Decision::Ask(sensitive(path));
                }
                Some(Protection::ClientConfig) => return Decision::Ask(not_granted),
                None => {}
            }
            if self.mode == PermissionMode::Plan {
                let message = format!("Cannot write to {shown} while in plan mode.");
                return Decision::Ask(AskReason { basis: AskBasis::Mode, ..AskReason::new(message) });
            }
        }
        let is_allowed = match access {
            Access::Read => is_inside,
            Access::Write => is_inside && self.mode == PermissionMode::AcceptEdits,
        };
        let has_rule = self.has_tool_rule(RuleEffect::Allow, call.tool)
            || rule(RuleEffect::Allow, path) && rule(RuleEffect::Allow, &resolved);
        if is_allowed || has_rule { Self::allow() } else { Decision::Ask(not_granted) }
    }

    fn path_suggestions(&self, path: &Path, access: Access, is_inside: bool) -> Vec<Suggestion> {
        let folder = path.parent().unwrap_or(path).to_owned();
        match access {
            Access::Write => {
                let mode = Suggestion::SetMode(PermissionMode::AcceptEdits);
                if is_inside { vec![mode] } else { vec![mode, Suggestion::AddDirectory(folder)] }
            }
            Access::Read => {
                let content = Some(format!("/{}/**", folder.display()));
                vec![Suggestion::rule("Read", content, true)]
            }
        }
    }

    /// Returns whether a rule names a path for this access.
    pub(crate) fn own_path_rule(&self, effect: RuleEffect, access: Access, path: &Path) -> bool {
        let tool = if access == Access::Read { "Read" } else { "Edit" };
        self.rules.names_path(effect, tool, path)
    }

    /// Returns whether a rule names a path, as it is written or with its links resolved.
    pub(crate) fn path_rule(&self, effect: RuleEffect, access: Access, path: &Path) -> bool {
        if !self.rules.has_paths(effect) {
            return false;
        }
        let resolved = resolve_links(path);
        let written = self.own_path_rule(effect, access, path);
        let real = self.own_path_rule(effect, access, &resolved);
        if effect == RuleEffect::Allow { written && real } else { written || real }
    }
}

/// Returns the reason for a protected file.
pub(crate) fn sensitive(path: &Path) -> AskReason {
    let message =
        format!("Claude requested permissions to edit {} which is a sensitive file.", path.display());
    AskReason {
        basis: AskBasis::Safety { reason: message.clone(), is_approvable: true },
        suggestions: vec![Suggestion::SetMode(PermissionMode::AcceptEdits)],
        ..AskReason::new(message)
    }
}

/// Returns the host of an address, in lower case.
fn url_host(url: &str) -> Option<String> {
    let (_, rest) = url.trim().split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}
