//! Permissions of a session: the decision about each call, and the question to a person or a program.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use serde_json::value::RawValue;
use threadline_api::RawObject;
use threadline_cancel::CancelToken;
use threadline_entry::write::Attachment;
use threadline_permission::{
    Access, AskReason, Call, CallTarget, Decision, PermissionMode, Permissions, Refusal, RefusalBasis,
    RuleEffect, RuleSource, Suggestion, Workspace,
};
use threadline_tools::{AskUserQuestion, Permit, Tool, ToolInput, ToolOutput, absolute_path, validate};

use crate::agent::{Agent, tool_json};
use crate::hook::{HookAnswer, HookDecision, HookEvent};
use crate::plan_mode::PlanTool;
use crate::session_hooks::CallVerdict;
use crate::tool_calls::{CallOutcome, PendingCall};

/// The permissions of a session, which a front end may change while a turn runs. Clones share them.
#[derive(Clone, Debug)]
pub struct SharedPermissions {
    shared: Arc<RwLock<PermissionState>>,
    /// Whether settings forbid the mode without questions.
    is_bypass_disabled: bool,
}

#[derive(Debug)]
struct PermissionState {
    permissions: Permissions,
    /// The mode that plan mode replaced.
    mode_before_plan: PermissionMode,
}

impl SharedPermissions {
    /// Shares permissions.
    pub fn new(permissions: Permissions) -> Self {
        let state = PermissionState { permissions, mode_before_plan: PermissionMode::Default };
        Self { shared: Arc::new(RwLock::new(state)), is_bypass_disabled: false }
    }

    /// Refuses the mode without questions for the whole session.
    #[must_use]
    pub fn without_bypass(mut self) -> Self {
        self.is_bypass_disabled = true;
        self
    }

    /// Whether settings forbid the mode without questions.
    pub fn is_bypass_disabled(&self) -> bool {
        self.is_bypass_disabled
    }

    /// Sets the mode that a person or a program asks for.
    ///
    /// # Errors
    /// Returns the reason why the mode cannot be used.
    pub fn change_mode(&self, mode: PermissionMode) -> Result<(), &'static str> {
        if mode == PermissionMode::BypassPermissions && self.is_bypass_disabled {
            return Err(
                "Cannot set permission mode to bypassPermissions because it is disabled by settings or \
                 configuration",
            );
        }
        self.set_mode(mode);
        Ok(())
    }

    /// Returns the mode.
    pub fn mode(&self) -> PermissionMode {
        self.read(|permissions| permissions.mode)
    }

    /// Sets the mode for the rest of the session.
    pub fn set_mode(&self, mode: PermissionMode) {
        let mut state = self.shared.write();
        let previous = std::mem::replace(&mut state.permissions.mode, mode);
        if previous != PermissionMode::Plan {
            state.mode_before_plan = previous;
        }
    }

    /// Returns to the mode before plan mode. Returns that mode, unless plan mode was off already.
    pub(crate) fn leave_plan_mode(&self) -> Option<PermissionMode> {
        let mut state = self.shared.write();
        let is_planning = state.permissions.mode == PermissionMode::Plan;
        is_planning.then(|| {
            state.permissions.mode = state.mode_before_plan;
            state.permissions.mode
        })
    }

    /// Applies a change that a question suggested, for the rest of the session.
    pub fn accept(&self, suggestion: &Suggestion) {
        match suggestion {
            // A mode that cannot be used changes nothing; the call itself was permitted.
            Suggestion::SetMode(mode) => {
                let _ = self.change_mode(*mode);
            }
            Suggestion::AddDirectory(folder) => self.update(|permissions| {
                permissions.workspace.additional_dirs.push(folder.clone());
            }),
            Suggestion::AllowRules { rules, .. } => self.update(|permissions| {
                let workspace = permissions.workspace.clone();
                let source =
                    RuleSource { base: &workspace.cwd, cwd: &workspace.cwd, home: workspace.home.as_deref() };
                for (tool, content) in rules {
                    let rule = content.as_ref().map_or(tool.clone(), |content| format!("{tool}({content})"));
                    permissions.rules.add(&rule, RuleEffect::Allow, source);
                }
            }),
        }
    }

    /// Reads the permissions.
    pub fn read<T>(&self, read: impl FnOnce(&Permissions) -> T) -> T {
        read(&self.shared.read().permissions)
    }

    /// Changes the permissions for the rest of the session.
    pub fn update(&self, change: impl FnOnce(&mut Permissions)) {
        change(&mut self.shared.write().permissions);
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

impl PermissionRequest<'_> {
    /// Returns the changes that would permit the call, as hooks and programs get them.
    pub fn suggestions(&self) -> Vec<RawObject> {
        self.reason.suggestions.iter().map(suggestion_json).collect()
    }
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

impl From<HookAnswer> for PermissionAnswer {
    fn from(answer: HookAnswer) -> Self {
        match answer {
            HookAnswer::Allow { input } => Self::Allow { input },
            HookAnswer::Deny { message } => Self::Deny(message),
        }
    }
}

/// The time without an answer after which the notification hooks run.
const NOTIFICATION_DELAY: Duration = Duration::from_secs(6);

/// Tools whose calls change the file that they name.
const EDITS: &[&str] = &["Write", "Edit", "MultiEdit", "NotebookEdit"];

impl Agent {
    /// Sets the answers to questions about calls, and offers the tools that ask a person. Without it, calls
    /// that need an answer are refused.
    pub fn set_prompt(&mut self, prompt: Arc<dyn PermissionPrompt>) {
        self.prompt = Some(prompt);
        let plan_tools = PlanTool::ALL.map(|tool| Box::new(tool) as Box<dyn Tool>);
        let tools = plan_tools.into_iter().chain([Box::new(AskUserQuestion) as Box<dyn Tool>]);
        for tool in tools {
            if self.is_offered(tool.name()) {
                self.tools.push(tool);
            }
        }
        self.request.tools = self.tools.definitions().iter().map(tool_json).collect();
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
            (Decision::Deny(refusal), _) if refusal.basis != RefusalBasis::Mode => {
                return Err(refused(refusal));
            }
            // A hook that allows a call answers the question about it.
            (_, Some(HookDecision::Allow)) => return Ok((Permit::issue(), None)),
            (Decision::Deny(refusal), _) => return Err(refused(refusal)),
            (_, Some(HookDecision::Ask | HookDecision::Defer)) => AskReason::from_hook(&verdict.reason),
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
        match self.ask(&**prompt, &request, call, cancel) {
            PermissionAnswer::Allow { input: None } => Ok((Permit::issue(), None)),
            // As in the reference, an empty input leaves the input as it is, but marks a plan as edited.
            PermissionAnswer::Allow { input: Some(changed) } if changed.get() == "{}" => {
                let is_plan = PlanTool::parse(&call.name).is_some();
                Ok((Permit::issue(), is_plan.then(|| input.clone())))
            }
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

    /// Asks about a call. The hooks of the question run at the same time, and the first answer counts.
    fn ask(
        &self,
        prompt: &dyn PermissionPrompt,
        request: &PermissionRequest<'_>,
        call: &PendingCall,
        cancel: &CancelToken,
    ) -> PermissionAnswer {
        if !self.config.is_interactive || !self.config.hooks.has(HookEvent::Notification) {
            return self.ask_with_hooks(prompt, request, call, cancel);
        }
        let waiting = cancel.child();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if !waiting.wait(NOTIFICATION_DELAY) {
                    self.notify("permission_prompt", "Claude needs your permission", &waiting);
                }
            });
            let answer = self.ask_with_hooks(prompt, request, call, cancel);
            waiting.cancel();
            answer
        })
    }

    /// Asks about a call while its hooks run.
    fn ask_with_hooks(
        &self,
        prompt: &dyn PermissionPrompt,
        request: &PermissionRequest<'_>,
        call: &PendingCall,
        cancel: &CancelToken,
    ) -> PermissionAnswer {
        if !self.config.hooks.has(HookEvent::PermissionRequest) {
            return prompt.ask(request, cancel);
        }
        let mut hook = self.hook_call(HookEvent::PermissionRequest, request.tool);
        hook = hook.with("tool_name", request.tool).with("tool_input", request.input);
        let suggestions = request.suggestions();
        if !suggestions.is_empty() {
            hook = hook.with("permission_suggestions", suggestions);
        }
        let (question, hooks) = (cancel.child(), cancel.child());
        std::thread::scope(|scope| {
            let decided = scope.spawn(|| {
                let decided = self.run_hooks(&hook, &hooks).into_iter().find_map(|run| run.output.answer);
                if decided.is_some() {
                    question.cancel();
                }
                decided
            });
            let answer = prompt.ask(request, &question);
            let was_answered = !question.is_cancelled();
            hooks.cancel();
            let decided = decided.join().unwrap_or_default().filter(|_| !was_answered);
            let Some(decided) = decided.filter(|_| !cancel.is_cancelled()) else { return answer };
            self.write_hook_decision(&decided, call);
            decided.into()
        })
    }

    /// Writes that a hook answered a question. The result of the call is written in any case, so an error
    /// is reported there.
    fn write_hook_decision(&self, answer: &HookAnswer, call: &PendingCall) {
        let attachment = Attachment::HookPermissionDecision {
            decision: answer.name(),
            tool_use_id: &call.id,
            event: HookEvent::PermissionRequest.name(),
        };
        let _ = self.writer.lock().attachment_below(Some(&call.line), attachment, &*self.clock);
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
            ("AskUserQuestion" | "ExitPlanMode", ..) => CallTarget::Person,
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

fn suggestion_json(suggestion: &Suggestion) -> RawObject {
    let kind = |name: &str| RawObject::new().with("type", name);
    match suggestion {
        Suggestion::SetMode(mode) => kind("setMode").with("mode", mode.name()).with("destination", "session"),
        Suggestion::AddDirectory(folder) => {
            kind("addDirectories").with("directories", [folder]).with("destination", "session")
        }
        Suggestion::AllowRules { rules, is_for_session } => {
            let rules: Vec<RawObject> = rules
                .iter()
                .map(|(tool, content)| {
                    let mut rule = RawObject::new().with("toolName", tool);
                    if let Some(content) = content {
                        rule.set("ruleContent", content);
                    }
                    rule
                })
                .collect();
            let destination = if *is_for_session { "session" } else { "localSettings" };
            kind("addRules").with("rules", rules).with("behavior", "allow").with("destination", destination)
        }
    }
}

fn refused(refusal: Refusal) -> CallOutcome {
    if refusal.is_invalid_input {
        CallOutcome::Invalid(refusal.message)
    } else {
        CallOutcome::Refused(refusal)
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
            plan_file: None,
        }
    }
}
