//! Decides whether a call may run.

use std::path::Path;

use threadline_tools::Permit;

use crate::hook::HookDecision;

/// The permission mode of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionMode {
    /// Tools that only read run; the rest needs permission.
    Default,
    /// Edits of files in the working folders run as well.
    AcceptEdits,
    /// Nothing is changed.
    Plan,
    /// Everything runs.
    BypassPermissions,
    /// Tools that only read run; the rest is refused without asking.
    DontAsk,
}

impl PermissionMode {
    /// All modes with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("default", Self::Default),
        ("acceptEdits", Self::AcceptEdits),
        ("plan", Self::Plan),
        ("bypassPermissions", Self::BypassPermissions),
        ("dontAsk", Self::DontAsk),
    ];

    /// The name in flags and session lines.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }

    /// Returns the mode with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}

/// The permissions of the tools of a session.
#[derive(Clone, Debug)]
pub struct Permissions {
    /// The mode.
    pub mode: PermissionMode,
    /// Rules that allow calls: `Tool` or `Tool(exact input)`.
    pub allowed: Vec<String>,
    /// Rules that deny calls.
    pub denied: Vec<String>,
}

/// Whether a call may run.
#[derive(Debug)]
pub enum PermissionDecision {
    /// It may.
    Allow(Permit),
    /// It may not; the text is for the model.
    Deny(String),
}

/// The facts about a call that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallFacts<'a> {
    pub(crate) tool: &'a str,
    /// Whether the call changes nothing.
    pub(crate) is_read_only: bool,
    /// The command of a shell call.
    pub(crate) command: Option<&'a str>,
    /// The file that the call works on.
    pub(crate) path: Option<&'a Path>,
    /// Whether the file is inside the working folders.
    pub(crate) is_inside: bool,
}

/// Tools that only manage the client's own state.
const OWN_STATE: &[&str] = &[
    "TodoWrite",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskOutput",
    "TaskStop",
    "StructuredOutput",
];

/// Tools that send data to other machines, such as text of files in an address.
const NETWORK: &[&str] = &["WebFetch", "WebSearch"];

/// Tools that edit files.
const EDITS: &[&str] = &["Write", "Edit", "MultiEdit", "NotebookEdit"];

impl Permissions {
    /// Decides whether a call may run that a hook may have allowed. Rules that deny it still count.
    pub(crate) fn decide_with_hook(
        &self,
        call: CallFacts<'_>,
        decision: Option<HookDecision>,
    ) -> PermissionDecision {
        let is_denied = self.denied.iter().any(|rule| matches_rule(rule, call));
        if decision == Some(HookDecision::Allow) && !is_denied {
            return PermissionDecision::Allow(Permit::issue());
        }
        self.decide(call)
    }

    /// Decides whether a call may run.
    pub(crate) fn decide(&self, call: CallFacts<'_>) -> PermissionDecision {
        if self.denied.iter().any(|rule| matches_rule(rule, call)) {
            let what = call.command.map(|command| format!(" with command {command}")).unwrap_or_default();
            return PermissionDecision::Deny(format!(
                "Permission to use {}{what} has been denied.",
                call.tool
            ));
        }
        let is_own = OWN_STATE.contains(&call.tool);
        let is_edit = EDITS.contains(&call.tool);
        let is_network = NETWORK.contains(&call.tool);
        let is_safe_read = call.is_read_only && call.command.is_none() && call.is_inside && !is_network;
        let is_allowed = self.mode == PermissionMode::BypassPermissions
            || is_own
            || is_safe_read
            || self.mode == PermissionMode::AcceptEdits && is_edit && call.is_inside
            || self.mode != PermissionMode::Plan && self.allowed.iter().any(|rule| matches_rule(rule, call));
        if is_allowed {
            return PermissionDecision::Allow(Permit::issue());
        }
        PermissionDecision::Deny(self.reason(call, is_edit))
    }

    fn reason(&self, call: CallFacts<'_>, is_edit: bool) -> String {
        let tool = call.tool;
        let path = call.path.map(|path| path.display().to_string());
        match (self.mode, path) {
            (PermissionMode::DontAsk, _) => format!(
                "Permission to use {tool} has been denied because threadline is running in don't ask mode. \
                 Allow the tool with --allowedTools, or use another permission mode."
            ),
            (PermissionMode::Plan, Some(path)) if is_edit => {
                format!("Cannot write to {path} while in plan mode.")
            }
            (_, Some(path)) if is_edit => {
                format!("Claude requested permissions to write to {path}, but you haven't granted it yet.")
            }
            (_, Some(path)) => {
                format!("Claude requested permissions to read from {path}, but you haven't granted it yet.")
            }
            (_, None) if call.command.is_some() => "This command requires approval".to_owned(),
            (_, None) => {
                format!("Claude requested permissions to use {tool}, but you haven't granted it yet.")
            }
        }
    }
}

/// Whether a rule names exactly this call: `Tool`, or `Tool(command)` for shell commands.
fn matches_rule(rule: &str, call: CallFacts<'_>) -> bool {
    let rule = rule.trim();
    match rule.split_once('(') {
        None => rule == call.tool,
        Some((tool, rest)) => {
            let exact = rest.strip_suffix(')').unwrap_or(rest);
            tool == call.tool && call.command == Some(exact)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(mode: PermissionMode, allowed: &[&str], call: CallFacts<'_>) -> Result<(), String> {
        let allowed = allowed.iter().map(|rule| (*rule).to_owned()).collect();
        match (Permissions { mode, allowed, denied: Vec::new() }).decide(call) {
            PermissionDecision::Allow(_) => Ok(()),
            PermissionDecision::Deny(reason) => Err(reason),
        }
    }

    const READ: CallFacts<'_> =
        CallFacts { tool: "Read", is_read_only: true, command: None, path: None, is_inside: true };
    const BASH: CallFacts<'_> =
        CallFacts { tool: "Bash", is_read_only: false, command: Some("rm x"), path: None, is_inside: true };

    #[test]
    fn reads_inside_the_working_folder_run_in_every_mode() {
        for (name, mode) in PermissionMode::ALL {
            assert_eq!(decide(mode, &[], READ), Ok(()), "{name}");
        }
    }

    #[test]
    fn the_network_needs_permission() {
        let call = CallFacts { tool: "WebFetch", ..READ };
        let reason = decide(PermissionMode::Default, &[], call).unwrap_err();
        assert_eq!(reason, "Claude requested permissions to use WebFetch, but you haven't granted it yet.");
        assert_eq!(decide(PermissionMode::Default, &["WebFetch"], call), Ok(()));
    }

    #[test]
    fn reads_outside_need_permission() {
        let path = Path::new("/etc/passwd");
        let call = CallFacts { path: Some(path), is_inside: false, ..READ };
        let reason = decide(PermissionMode::Default, &[], call).unwrap_err();
        assert!(reason.starts_with("Claude requested permissions to read from /etc/passwd"), "{reason}");
        assert_eq!(decide(PermissionMode::BypassPermissions, &[], call), Ok(()));
    }

    #[test]
    fn a_command_runs_only_with_its_exact_rule() {
        assert!(decide(PermissionMode::Default, &[], BASH).is_err());
        assert!(decide(PermissionMode::AcceptEdits, &[], BASH).is_err());
        assert!(decide(PermissionMode::Default, &["Bash(rm)"], BASH).is_err());
        assert_eq!(decide(PermissionMode::Default, &["Bash(rm x)"], BASH), Ok(()));
        assert_eq!(decide(PermissionMode::Default, &["Bash"], BASH), Ok(()));
    }

    #[test]
    fn edits_outside_the_working_folder_are_not_accepted() {
        let path = Path::new("/etc/hosts");
        let inside = CallFacts {
            tool: "Write",
            is_read_only: false,
            command: None,
            path: Some(path),
            is_inside: true,
        };
        assert_eq!(decide(PermissionMode::AcceptEdits, &[], inside), Ok(()));
        assert!(decide(PermissionMode::AcceptEdits, &[], CallFacts { is_inside: false, ..inside }).is_err());
        assert!(decide(PermissionMode::Plan, &["Write"], inside).is_err());
    }
}
