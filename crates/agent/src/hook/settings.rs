//! The hooks of settings files.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use serde_json::value::RawValue;
use threadline_api::RawObject;
use threadline_cancel::CancelToken;

/// An event that hooks can be set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookEvent {
    /// A session starts, is resumed, or was compacted.
    SessionStart,
    /// A person sends a prompt.
    UserPromptSubmit,
    /// Before a tool runs.
    PreToolUse,
    /// A tool has run.
    PostToolUse,
    /// A tool has failed.
    PostToolUseFailure,
    /// A person would be asked for permission.
    PermissionRequest,
    /// The person should look at the session.
    Notification,
    /// The model has finished its turn.
    Stop,
    /// A sub-agent starts.
    SubagentStart,
    /// A sub-agent has finished.
    SubagentStop,
    /// Before the conversation is compacted.
    PreCompact,
    /// The conversation was compacted.
    PostCompact,
    /// The session ends.
    SessionEnd,
}

impl HookEvent {
    /// All events with their names.
    const ALL: [(&'static str, Self); 13] = [
        ("SessionStart", Self::SessionStart),
        ("UserPromptSubmit", Self::UserPromptSubmit),
        ("PreToolUse", Self::PreToolUse),
        ("PostToolUse", Self::PostToolUse),
        ("PostToolUseFailure", Self::PostToolUseFailure),
        ("PermissionRequest", Self::PermissionRequest),
        ("Notification", Self::Notification),
        ("Stop", Self::Stop),
        ("SubagentStart", Self::SubagentStart),
        ("SubagentStop", Self::SubagentStop),
        ("PreCompact", Self::PreCompact),
        ("PostCompact", Self::PostCompact),
        ("SessionEnd", Self::SessionEnd),
    ];

    /// The name in settings and session lines.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, event)| *event == self).map_or("", |(name, _)| name)
    }

    /// Returns the event with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, event)| *event)
    }
}

/// The hooks of a settings file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the hooks are not valid: {0}")]
pub struct HookSettingsError(String);

/// The hooks of a session, from all of its settings.
#[derive(Clone, Default)]
pub struct HookSettings {
    events: BTreeMap<HookEvent, Vec<HookRule>>,
    callbacks: Option<Arc<dyn HookCallbacks>>,
}

impl fmt::Debug for HookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookSettings").field("events", &self.events).finish_non_exhaustive()
    }
}

/// Hooks that are functions of the program that started the session.
pub trait HookCallbacks: Send + Sync {
    /// Calls a function with the event and returns its answer as JSON, or why there is none.
    fn call(&self, id: &str, input: &RawObject, cancel: &CancelToken) -> Result<String, String>;
}

/// Commands that run at events of certain objects.
#[derive(Clone, Debug)]
struct HookRule {
    matcher: HookMatcher,
    commands: Vec<HookCommand>,
}

/// A command of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookCommand {
    /// The command line, or the id of a function.
    pub(crate) command: String,
    /// Whether it is a function of the program that started the session.
    pub(crate) is_callback: bool,
    pub(crate) timeout: Duration,
}

/// The longest time that a hook may run if its settings name none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The objects that a rule applies to: tools, sources, or kinds of sub-agents.
#[derive(Clone, Debug)]
enum HookMatcher {
    All,
    /// One of these names.
    Names(Vec<String>),
    Pattern(Regex),
}

impl HookMatcher {
    fn parse(text: &str) -> Result<Self, HookSettingsError> {
        if matches!(text, "" | "*") {
            return Ok(Self::All);
        }
        let is_name = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-' | '|');
        if text.chars().all(is_name) {
            return Ok(Self::Names(text.split('|').map(str::to_owned).collect()));
        }
        Regex::new(text)
            .map(Self::Pattern)
            .map_err(|_| HookSettingsError(format!("the matcher `{text}` is not a pattern")))
    }

    fn matches(&self, object: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == object),
            Self::Pattern(pattern) => pattern.is_match(object),
        }
    }
}

#[derive(Deserialize)]
struct RawRule {
    #[serde(default)]
    matcher: Option<String>,
    hooks: Vec<RawHook>,
}

#[derive(Deserialize)]
struct RawHook {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    command: Option<String>,
    /// In seconds.
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCallbacks {
    matcher: Option<String>,
    #[serde(default)]
    hook_callback_ids: Vec<String>,
}

impl HookSettings {
    /// Adds the value of `hooks` in a settings file. Events and kinds of hooks that are not known are left
    /// out: a newer Claude Code may have written the file.
    pub fn add(&mut self, json: &RawValue) -> Result<(), HookSettingsError> {
        let events: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(json.get()).map_err(|error| HookSettingsError(error.to_string()))?;
        let mut added = Vec::new();
        for (name, rules) in events {
            let Some(event) = HookEvent::parse(&name) else { continue };
            let rules: Vec<RawRule> = serde_json::from_str(rules.get())
                .map_err(|error| HookSettingsError(format!("{name}: {error}")))?;
            for rule in rules {
                let matcher = HookMatcher::parse(rule.matcher.as_deref().unwrap_or_default())?;
                let commands = rule.hooks.into_iter().filter_map(hook_command).collect();
                added.push((event, HookRule { matcher, commands }));
            }
        }
        for (event, rule) in added {
            self.events.entry(event).or_default().push(rule);
        }
        Ok(())
    }

    /// Adds functions of the program that started the session: by event, a list of matchers with the ids of
    /// functions.
    pub fn add_callbacks(
        &mut self,
        json: &RawValue,
        callbacks: Arc<dyn HookCallbacks>,
    ) -> Result<(), HookSettingsError> {
        let events: BTreeMap<String, Option<Vec<RawCallbacks>>> =
            serde_json::from_str(json.get()).map_err(|error| HookSettingsError(error.to_string()))?;
        for (name, rules) in events {
            let Some(event) = HookEvent::parse(&name) else { continue };
            for rule in rules.unwrap_or_default() {
                let matcher = HookMatcher::parse(rule.matcher.as_deref().unwrap_or_default())?;
                let command = |id| HookCommand { command: id, is_callback: true, timeout: DEFAULT_TIMEOUT };
                let commands = rule.hook_callback_ids.into_iter().map(command).collect();
                self.events.entry(event).or_default().push(HookRule { matcher, commands });
            }
        }
        self.callbacks = Some(callbacks);
        Ok(())
    }

    pub(crate) fn callbacks(&self) -> Option<&dyn HookCallbacks> {
        self.callbacks.as_deref()
    }

    /// Whether there is a hook for an event.
    pub(crate) fn has(&self, event: HookEvent) -> bool {
        self.events.contains_key(&event)
    }

    /// Returns the commands for an event about this object, each once.
    pub(crate) fn commands(&self, event: HookEvent, object: &str) -> Vec<&HookCommand> {
        let rules = self.events.get(&event).map_or(&[][..], Vec::as_slice);
        let mut found: Vec<&HookCommand> = Vec::new();
        for command in
            rules.iter().filter(|rule| rule.matcher.matches(object)).flat_map(|rule| &rule.commands)
        {
            if found.iter().all(|known| known.command != command.command) {
                found.push(command);
            }
        }
        found
    }
}

fn hook_command(hook: RawHook) -> Option<HookCommand> {
    if hook.kind != "command" {
        return None;
    }
    let timeout = hook.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let timeout = timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(DEFAULT_TIMEOUT);
    Some(HookCommand { command: hook.command?, is_callback: false, timeout })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(json: &str) -> Result<HookSettings, HookSettingsError> {
        let mut settings = HookSettings::default();
        settings.add(serde_json::from_str(json).unwrap())?;
        Ok(settings)
    }

    fn commands(settings: &HookSettings, event: HookEvent, object: &str) -> String {
        let found = settings.commands(event, object);
        found.iter().map(|hook| hook.command.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn matchers_are_names_or_patterns() {
        let hook = |matcher: &str, command: &str| {
            format!(r#"{{"matcher":"{matcher}","hooks":[{{"type":"command","command":"{command}"}}]}}"#)
        };
        let rules =
            [hook("Read|Bash", "a"), hook("Ba.*", "b"), hook("*", "c"), hook("", "d"), hook("read", "e")];
        let settings = settings(&format!(r#"{{"PreToolUse":[{}]}}"#, rules.join(","))).unwrap();
        assert_eq!(commands(&settings, HookEvent::PreToolUse, "Bash"), "a b c d");
        assert_eq!(commands(&settings, HookEvent::PreToolUse, "Read"), "a c d");
        assert_eq!(commands(&settings, HookEvent::PreToolUse, "Rea"), "c d");
        assert_eq!(commands(&settings, HookEvent::PostToolUse, "Bash"), "");
    }

    #[test]
    fn a_command_runs_once() {
        let rule = r#"{"hooks":[{"type":"command","command":"a"},{"type":"command","command":"a"}]}"#;
        let settings = settings(&format!(r#"{{"Stop":[{rule},{rule}]}}"#)).unwrap();
        assert_eq!(commands(&settings, HookEvent::Stop, ""), "a");
    }

    #[test]
    fn unknown_events_and_kinds_are_left_out() {
        let json = r#"{"Bogus":7,"Stop":[{"hooks":[{"type":"prompt","prompt":"x"},{"type":"command","command":"a","timeout":1.5}]}]}"#;
        let settings = settings(json).unwrap();
        let found = settings.commands(HookEvent::Stop, "");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].timeout, Duration::from_millis(1500));
    }

    #[test]
    fn a_wrong_form_is_an_error() {
        assert!(settings(r#"{"Stop":{}}"#).is_err());
        assert!(settings(r#"{"PreToolUse":[{"matcher":"(","hooks":[]}]}"#).is_err());
    }
}
