//! Permission rules in the settings files of a chat, for `/permissions` and answers that are kept.

use std::path::{Path, PathBuf};

use threadline_agent::AgentPaths;
use threadline_permission::RuleEffect;
use threadline_settings::{
    RuleEntry, SettingsChange, SettingsEditError, SettingsInput, SettingsPaths, SettingsSource, SettingsStack,
};
use threadline_tui::{RulePlace, ScreenRule};

use super::ChatArgs;
use super::files::{resolve_inside, update_text};

/// The settings files with permission rules.
pub(super) struct RuleFiles {
    /// `None` for a demonstration, which has no settings.
    paths: Option<SettingsPaths>,
    input: SettingsInput,
}

impl RuleFiles {
    pub(super) fn new(paths: &AgentPaths, args: &ChatArgs, is_demo: bool) -> Self {
        let paths = SettingsPaths {
            claude_home: paths.claude_home.clone(),
            user_home: paths.user_home.clone(),
            project: paths.cwd.clone(),
            managed: SettingsPaths::managed_dir(),
        };
        let input = SettingsInput { settings: args.settings.clone(), sources: args.setting_sources.clone() };
        Self { paths: Some(paths).filter(|_| !is_demo), input }
    }

    /// Returns the rules of all files, those of the highest precedence last.
    pub(super) fn rules(&self) -> Vec<ScreenRule> {
        let stack = self.paths.as_ref().and_then(|paths| SettingsStack::load(paths, &self.input).ok());
        let stack = stack.unwrap_or_default();
        let mut rules = Vec::new();
        for file in stack.files() {
            let place = match file.source {
                SettingsSource::User => RulePlace::User,
                SettingsSource::Project => RulePlace::Project,
                SettingsSource::Local => RulePlace::Local,
                SettingsSource::Flag => RulePlace::Flag,
                SettingsSource::Managed => RulePlace::Managed,
            };
            let permissions = &file.settings.permissions;
            let lists = [
                (RuleEffect::Allow, &permissions.allow),
                (RuleEffect::Ask, &permissions.ask),
                (RuleEffect::Deny, &permissions.deny),
            ];
            for (effect, list) in lists {
                rules.extend(list.iter().map(|rule| ScreenRule::new(rule, effect, place)));
            }
        }
        rules
    }

    /// Changes the file of a rule. Returns the folder that paths in its rules are relative to.
    pub(super) fn change(
        &self,
        rule: &ScreenRule,
        mut change: impl FnMut(&RuleEntry<'_>, Option<&str>) -> Result<SettingsChange, SettingsEditError>,
    ) -> Result<PathBuf, String> {
        let Some(paths) = &self.paths else { return Err("a demonstration has no settings".to_owned()) };
        let (base, file) = place_of(rule.place, paths).ok_or("these settings cannot be changed")?;
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
        std::fs::create_dir_all(file.parent().unwrap_or(base)).map_err(failed)?;
        let home = paths.user_home.as_deref().unwrap_or(&paths.claude_home);
        // A link may lead to the project or the home folder only.
        let roots = [paths.project.as_path(), home, &paths.claude_home];
        let target = resolve_inside(&file, &roots).map_err(failed)?;
        let entry = RuleEntry { list: rule.effect.name(), rule: &rule.text };
        update_text(&target, |old| {
            Ok(match change(&entry, old).map_err(|error| format!("{}: {error}", file.display()))? {
                SettingsChange::Write(text) => Some(text),
                SettingsChange::None | SettingsChange::Remove => None,
            })
        })?;
        Ok(base.to_owned())
    }
}

/// Returns the folder that paths in rules of a file are relative to, and the file.
fn place_of(place: RulePlace, paths: &SettingsPaths) -> Option<(&Path, PathBuf)> {
    let project = paths.project.join(".claude");
    match place {
        RulePlace::Local => Some((&paths.project, project.join("settings.local.json"))),
        RulePlace::Project => Some((&paths.project, project.join("settings.json"))),
        RulePlace::User => Some((&paths.claude_home, paths.claude_home.join("settings.json"))),
        RulePlace::Session | RulePlace::Flag | RulePlace::Managed => None,
    }
}
