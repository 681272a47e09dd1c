//! Permissions of a session: the decision about each call, and the question to a person or a program.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::value::RawValue;
use threadline_cancel::CancelToken;
use threadline_permission::{
    Access, AskReason, Call, CallTarget, Decision, PermissionMode, Permissions, Refusal, Workspace,
};
use threadline_tools::{Permit, Tool, ToolInput, ToolOutput, absolute_path, validate};

use crate::agent::Agent;
use crate::hook::HookDecision;
use crate::session_hooks::CallVerdict;
use crate::tool_calls::{CallOutcome, PendingCall};

/// The permissions of a session, which a front end may change while a turn runs. Clones share them.
#[derive(Clone, Debug)]
pub struct SharedPermissions {
    shared: Arc<RwLock<Permissions>>,
}

impl SharedPermissions {
    /// Shares permissions.
    pub fn new(permissions: Permissions) -> Self {
        Self { shared: Arc::new(RwLock::new(permissions)) }
    }

    /// Returns the mode.
    pub fn mode(&self) -> PermissionMode {
        self.read(|permissions| permissions.mode)
    }

    /// Reads the permissions.
    pub fn read<T>(&self, read: impl FnOnce(&Permissions) -> T) -> T {
        read(&self.shared.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the permissions for the rest of the session.
    pub fn update(&self, change: impl FnOnce(&mut Permissions)) {
        change(&mut self.shared.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Answers questions about calls: a person at a screen, or a program over a protocol.
pub trait PermissionPrompt: Send + Sync {
    /// Asks about a call and waits for the answer. Returns early with [`PermissionAnswer::Interrupt`] if the
    /// turn is cancelled. Calls of one reply may ask at the same time.
    fn ask(&self, request: &PermissionRequest<'_>, cancel: &CancelToken) -> PermissionAnswer;
}

/// A question about a call.
#[derive(Debug)]
pub struct PermissionRequest<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The id of the call.
    pub tool_use_id: &'a str,
    /// The input of the call.
    pub input: &'a RawValue,
    /// One line about the call: a command, a path, an address.
    pub description: String,
    /// Why the call is not permitted by itself, and changes that would permit it.
    pub reason: &'a AskReason,
    /// The protections that the sandbox of a command lacks, in words.
    pub missing_protections: Option<&'a str>,
}

/// The answer to a question about a call.
#[derive(Debug)]
pub enum PermissionAnswer {
    /// The call may run, with another input if one is given.
    Allow {
        /// The input.
        input: Option<Box<RawValue>>,
    },
    /// The call may not run; the text is for the model.
    Deny(String),
    /// The call may not run, and the turn ends.
    Interrupt,
}

/// Tools whose calls change the file that they name.
const EDITS: &[&str] = &["Write", "Edit", "MultiEdit", "NotebookEdit"];

impl Agent {
    /// Sets the answers to questions about calls. Without it, such calls are refused.
    pub fn set_prompt(&mut self, prompt: Arc<dyn PermissionPrompt>) {
        self.prompt = Some(prompt);
    }

    /// Returns the permit of a call, and the input if the answer to a question changed it. `check` returns
    /// the result of a call that fails in any case.
    pub(crate) fn permit(
        &self,
        call: &PendingCall,
        tool: &dyn Tool,
        input: &ToolInput,
        (verdict, check): (&CallVerdict, &dyn Fn() -> Option<ToolOutput>),
        cancel: &CancelToken,
    ) -> Result<(Permit, Option<ToolInput>), CallOutcome> {
        let decision = self.decide(&call.name, tool, input);
        // A call that fails in any case is not asked about, if its file may be read.
        let is_rule = matches!(&decision, Decision::Deny(refusal) if refusal.is_invalid_input);
        if decision != Decision::Allow
            && !is_rule
            && self.may_check(&call.name, input)
            && let Some(output) = check()
        {
            return Err(CallOutcome::Output(output));
        }
        let reason = match (decision, verdict.decision) {
            (Decision::Deny(refusal), _) if !refusal.is_unasked => return Err(refused(refusal)),
            // A hook that allows a call answers the question about it.
            (_, Some(HookDecision::Allow)) => return Ok((Permit::issue(), None)),
            (Decision::Deny(refusal), _) => return Err(refused(refusal)),
            (_, Some(HookDecision::Ask)) => AskReason::from_hook(&verdict.reason),
            (Decision::Allow, _) => return Ok((Permit::issue(), None)),
            (Decision::Ask(reason), _) => reason,
        };
        let Some(prompt) = &self.prompt else {
            return Err(CallOutcome::Denied(reason.message));
        };
        let request = PermissionRequest {
            tool: &call.name,
            tool_use_id: &call.id,
            input: input.raw(),
            description: self.describe(input),
            reason: &reason,
            missing_protections: self
                .config
                .sandbox
                .as_ref()
                .filter(|_| call.name == "Bash")
                .and_then(|sandbox| sandbox.missing.as_deref()),
        };
        match prompt.ask(&request, cancel) {
            PermissionAnswer::Allow { input: None } => Ok((Permit::issue(), None)),
            PermissionAnswer::Allow { input: Some(changed) } => {
                let changed = validate(tool, &changed, &self.shell.cwd()).map_err(CallOutcome::Output)?;
                // A program that changes the input answers for it, but not against a rule that refuses it.
                if let Decision::Deny(refusal) = self.decide(&call.name, tool, &changed) {
                    return Err(refused(refusal));
                }
                Ok((Permit::issue(), Some(changed)))
            }
            PermissionAnswer::Deny(message) => Err(CallOutcome::Denied(message)),
            PermissionAnswer::Interrupt => Err(CallOutcome::Stopped),
        }
    }

    fn decide(&self, name: &str, tool: &dyn Tool, input: &ToolInput) -> Decision {
        let cwd = self.shell.cwd();
        let home = self.config.paths.user_home.as_deref();
        // An absolute pattern takes precedence over the folder, and one with `..` leaves it.
        let pattern = input.text("pattern").filter(|_| name == "Glob");
        let pattern = pattern.filter(|pattern| pattern.starts_with('/') || pattern.contains(".."));
        let named = ["file_path", "notebook_path", "path"].iter().find_map(|name| input.text(name));
        let is_file_tool = EDITS.contains(&name) || ["Read", "Glob", "Grep", "LS"].contains(&name);
        let given = pattern.or(named).filter(|_| is_file_tool);
        let path = given.map(|given| absolute_path(given, &cwd, home));
        let access = if EDITS.contains(&name) { Access::Write } else { Access::Read };
        let target = match (name, given, &path) {
            ("Bash", ..) => {
                CallTarget::Command { command: input.text("command").unwrap_or_default(), cwd: &cwd }
            }
            ("WebFetch", ..) => CallTarget::Url(input.text("url").unwrap_or_default()),
            ("Agent" | "Task", ..) => {
                CallTarget::Text(input.text("subagent_type").unwrap_or("general-purpose"))
            }
            ("Skill", ..) => CallTarget::Text(input.text("skill").unwrap_or_default()),
            (_, Some(given), Some(path)) => CallTarget::Path { path, given, access },
            ("Glob" | "Grep", ..) => CallTarget::Path { path: &cwd, given: "", access },
            _ => CallTarget::None,
        };
        let call = Call { tool: name, is_read_only: tool.is_read_only(input), target };
        self.config.permissions.read(|permissions| permissions.decide(call))
    }

    /// Returns whether the file of an edit may be read, so that an error about it reveals nothing.
    fn may_check(&self, name: &str, input: &ToolInput) -> bool {
        let named = ["file_path", "notebook_path"].iter().find_map(|name| input.text(name));
        let Some(named) = named.filter(|_| EDITS.contains(&name)) else { return false };
        let path = absolute_path(named, &self.shell.cwd(), self.config.paths.user_home.as_deref());
        self.config.permissions.read(|permissions| {
            permissions.workspace.contains(&path, Access::Read) && !permissions.is_read_denied(&path)
        })
    }

    /// Returns one line about a call.
    fn describe(&self, input: &ToolInput) -> String {
        if let Some(text) = input.text("description").filter(|text| !text.is_empty()) {
            return text.to_owned();
        }
        let named = ["file_path", "notebook_path", "path"].iter().find_map(|name| input.text(name));
        if let Some(path) = named {
            return self.shown_path(Path::new(path));
        }
        let named = ["command", "url", "query", "pattern"].iter().find_map(|name| input.text(name));
        named.unwrap_or_default().to_owned()
    }

    /// Returns a path relative to the working folder or the home folder.
    fn shown_path(&self, path: &Path) -> String {
        let paths = &self.config.paths;
        if let Ok(rest) = path.strip_prefix(&paths.cwd) {
            return rest.display().to_string();
        }
        match paths.user_home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }

    /// Adds the folders of the client's own files to those that may be read.
    pub(crate) fn permit_own_files(&self) {
        let own = [self.tasks_dir().to_owned(), self.side_dir().to_owned()];
        self.config.permissions.update(|permissions| permissions.workspace.readable.extend(own));
    }
}

fn refused(refusal: Refusal) -> CallOutcome {
    if refusal.is_invalid_input {
        CallOutcome::Invalid(refusal.message)
    } else {
        CallOutcome::Denied(refusal.message)
    }
}

/// Returns the folders of a session.
impl From<&crate::config::AgentPaths> for Workspace {
    fn from(paths: &crate::config::AgentPaths) -> Self {
        Self {
            cwd: paths.cwd.clone(),
            additional_dirs: paths.additional_dirs.clone(),
            home: paths.user_home.clone(),
            readable: Vec::new(),
        }
    }
}
