//! Permissions of a chat, from flags and settings files.

use std::path::{Path, PathBuf};

use threadline_agent::{AgentPaths, SharedPermissions};
use threadline_permission::{PermissionMode, Permissions, RuleEffect, RuleSet, RuleSource, Workspace};
use threadline_settings::{SettingsStack, SourcedRule};

use super::ChatArgs;
use crate::error::CommandError;

/// Returns the permissions at the start of a session.
pub(super) fn permissions(
    args: &ChatArgs,
    settings: &SettingsStack,
    paths: &AgentPaths,
    is_demo: bool,
) -> Result<SharedPermissions, CommandError> {
    // The script of the demonstration runs one harmless command.
    let mode = if is_demo { PermissionMode::BypassPermissions } else { mode(args, settings)? };
    let mut rules = RuleSet::default();
    let home = paths.user_home.as_deref();
    let mut add = |rule: &SourcedRule<'_>, effect| {
        rules.add(rule.rule, effect, RuleSource { base: rule.base, cwd: &paths.cwd, home });
    };
    settings.allow_rules().iter().for_each(|rule| add(rule, RuleEffect::Allow));
    settings.ask_rules().iter().for_each(|rule| add(rule, RuleEffect::Ask));
    settings.deny_rules().iter().for_each(|rule| add(rule, RuleEffect::Deny));
    let flags = [(&args.allowed_tools, RuleEffect::Allow), (&args.disallowed_tools, RuleEffect::Deny)];
    for (lists, effect) in flags {
        for rule in super::config::split_names(lists) {
            rules.add(&rule, effect, RuleSource { base: &paths.cwd, cwd: &paths.cwd, home });
        }
    }
    let shared = SharedPermissions::new(Permissions { mode, rules, workspace: Workspace::from(paths) });
    Ok(if settings.is_bypass_disabled() { shared.without_bypass() } else { shared })
}

/// Returns the mode at the start of a session.
fn mode(args: &ChatArgs, settings: &SettingsStack) -> Result<PermissionMode, CommandError> {
    let mode = if args.dangerously_skip_permissions {
        PermissionMode::BypassPermissions
    } else if let Some(name) = &args.permission_mode {
        parse_mode(name).ok_or_else(|| unknown_mode(name))?
    } else {
        // A mode that is not known here, such as `auto`, does not keep a session from starting.
        settings.default_mode().and_then(PermissionMode::parse).unwrap_or(PermissionMode::Default)
    };
    let is_disabled = mode == PermissionMode::BypassPermissions && settings.is_bypass_disabled();
    Ok(if is_disabled { PermissionMode::Default } else { mode })
}

fn unknown_mode(name: &str) -> CommandError {
    let names: Vec<&str> = PermissionMode::ALL.iter().map(|(name, _)| *name).collect();
    let error = CommandError::new(format!("there is no permission mode `{name}`"));
    error.hint(format!("modes: {}", names.join(", ")))
}

/// Parses the name of a mode. `auto`, in which the API judges calls, is `default` here, as in Claude Code
/// with models that do not support it.
pub(super) fn parse_mode(name: &str) -> Option<PermissionMode> {
    if name == "auto" { Some(PermissionMode::Default) } else { PermissionMode::parse(name) }
}

/// Returns the working folders that settings files add. Folders that do not exist are left out.
pub(super) fn additional_directories(
    settings: &SettingsStack,
    cwd: &Path,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let folders = settings.additional_directories();
    let folders = folders.iter().map(|folder| match (folder.rule.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cwd.join(folder.rule),
    });
    folders.filter_map(|folder| folder.canonicalize().ok()).filter(|folder| folder.is_dir()).collect()
}
