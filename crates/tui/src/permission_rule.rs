//! Permission rules as `/permissions` lists and changes them.

use std::path::Path;

use threadline_agent::SharedPermissions;
use threadline_permission::{PermissionRule, RuleEffect, RuleSource};

/// The effects in the order of their lists.
pub(crate) const EFFECTS: [RuleEffect; 3] = [RuleEffect::Allow, RuleEffect::Ask, RuleEffect::Deny];

/// A permission rule of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenRule {
    /// The rule, such as `Bash(make *)`.
    pub text: String,
    /// Its effect.
    pub effect: RuleEffect,
    /// Where it comes from.
    pub place: RulePlace,
    /// Whether it applies in this session. Allow rules of a folder that is not trusted do not.
    pub is_used: bool,
}

impl ScreenRule {
    /// Returns a rule that applies.
    pub fn new(text: &str, effect: RuleEffect, place: RulePlace) -> Self {
        Self { text: text.to_owned(), effect, place, is_used: true }
    }
}

/// The source of a permission rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulePlace {
    /// `.claude/settings.local.json` of the working folder.
    Local,
    /// `.claude/settings.json` of the working folder.
    Project,
    /// `settings.json` in the home of Claude Code.
    User,
    /// A flag, or an answer for this session.
    Session,
    /// `--settings`.
    Flag,
    /// Settings of the administrator.
    Managed,
}

impl RulePlace {
    /// The files to which rules can be added.
    pub(crate) const FILES: [Self; 3] = [Self::Local, Self::Project, Self::User];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Local => ".claude/settings.local.json",
            Self::Project => ".claude/settings.json",
            Self::User => "~/.claude/settings.json",
            Self::Session => "this session",
            Self::Flag => "--settings",
            Self::Managed => "managed settings",
        }
    }

    /// Whether rules cannot be removed from it.
    pub(crate) fn is_fixed(self) -> bool {
        matches!(self, Self::Flag | Self::Managed)
    }
}

/// Returns the rules with an effect: those of the settings files, then those of the session only.
pub(crate) fn all_rules(
    effect: RuleEffect,
    saved: Vec<ScreenRule>,
    permissions: &SharedPermissions,
) -> Vec<ScreenRule> {
    let mut used: Vec<String> = permissions.read(|permissions| {
        permissions.rules.list(effect).iter().map(|rule| rule.text().to_owned()).collect()
    });
    let mut rules: Vec<ScreenRule> = saved.into_iter().filter(|rule| rule.effect == effect).collect();
    for rule in &mut rules {
        let at = used.iter().position(|text| text == rule.text.trim());
        rule.is_used = at.is_some();
        if let Some(at) = at {
            used.remove(at);
        }
    }
    rules.extend(used.iter().map(|text| ScreenRule::new(text, effect, RulePlace::Session)));
    rules
}

/// Adds a rule to the session. Its paths that begin with `/` are relative to `base`.
pub(crate) fn add_to_session(rule: &ScreenRule, base: &Path, permissions: &SharedPermissions) {
    permissions.update(|permissions| {
        let workspace = permissions.workspace.clone();
        let source = RuleSource { base, cwd: &workspace.cwd, home: workspace.home.as_deref() };
        permissions.rules.add(&rule.text, rule.effect, source);
    });
}

/// Whether a text is a rule.
pub(crate) fn is_rule(text: &str, permissions: &SharedPermissions) -> bool {
    permissions.read(|permissions| {
        let workspace = &permissions.workspace;
        let source =
            RuleSource { base: &workspace.cwd, cwd: &workspace.cwd, home: workspace.home.as_deref() };
        PermissionRule::parse(text, source).is_some()
    })
}
