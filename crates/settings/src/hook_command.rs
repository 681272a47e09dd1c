//! Adds a hook of threadline to Claude Code's settings and removes it. Every other byte is preserved.

use std::ops::Range;

use threadline_entry::{Json, JsonKey, JsonKind};

use crate::json_text::{SettingsText, key_start, last_member, with_comma};

/// Why the settings were not changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsEditError {
    /// The file is not a JSON object.
    #[error("the settings are not a JSON object")]
    NotAnObject,
    /// A value has another type than Claude Code expects.
    #[error("`{0}` in the settings has an unexpected type")]
    UnexpectedType(String),
    /// Another program has the name.
    #[error("`{0}` in the settings is another program")]
    NameInUse(String),
}

/// The change to make to the settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsChange {
    /// No change is needed.
    None,
    /// Write this text to the file.
    Write(String),
    /// Remove the file: it contains nothing else.
    Remove,
}

/// An event at which Claude Code runs hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookEvent {
    /// The name.
    pub name: &'static str,
    /// The tools whose calls matter, in the syntax of the settings; `None` for all, and for other events.
    pub matcher: Option<&'static str>,
}

/// A feature that runs at events of Claude Code. One command, `threadline hook`, serves all of them: it names
/// the features that are on for its event.
#[derive(Clone, Copy, Debug)]
pub struct HookFeature {
    /// The name on the command line.
    pub name: &'static str,
    /// The events.
    pub events: &'static [HookEvent],
    /// The first two arguments of the command that earlier versions installed.
    pub earlier: Option<[&'static str; 2]>,
}

const fn event(name: &'static str) -> HookEvent {
    HookEvent { name, matcher: None }
}

const fn shell_event(name: &'static str) -> HookEvent {
    HookEvent { name, matcher: Some("Bash") }
}

/// The program that hooks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookProgram {
    /// Its path, as a word of a command line.
    pub program: String,
    /// Options of `threadline hook`, as words that each begin with `--`.
    pub options: Vec<String>,
}

/// A feature that is on at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledHook {
    /// The feature.
    pub feature: &'static str,
    /// The event.
    pub event: String,
    /// The command line.
    pub command: String,
}

/// The word between two features.
pub const FEATURE_SEPARATOR: &str = "+";

impl HookFeature {
    /// Keeps the texts of files around shell calls.
    pub const FILES: Self = Self {
        name: "files",
        events: &[
            shell_event("PreToolUse"),
            shell_event("PostToolUse"),
            shell_event("PostToolUseFailure"),
            event("SubagentStop"),
        ],
        earlier: None,
    };
    /// Sends turns as traces. `Stop` ends a turn, `SessionEnd` ends the last one.
    pub const TRACE: Self = Self {
        name: "trace",
        events: &[event("Stop"), event("SessionEnd")],
        earlier: Some(["trace", "hook"]),
    };
    /// Copies sessions into an archive.
    pub const ARCHIVE: Self =
        Self { name: "archive", events: &[event("SessionEnd")], earlier: Some(["archive", "push"]) };
    /// All features, in the order in which a command line names them.
    pub const ALL: [Self; 3] = [Self::FILES, Self::TRACE, Self::ARCHIVE];

    /// Returns the feature with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name == name)
    }

    /// Returns the settings with the feature on. `settings` is `None` if there is no file. With `arguments`,
    /// words of a command line, the feature gets these; otherwise it keeps those that it has.
    ///
    /// # Errors
    ///
    /// If the settings are not valid.
    pub fn install(
        &self,
        settings: Option<&str>,
        program: &HookProgram,
        arguments: Option<&str>,
    ) -> Result<SettingsChange, SettingsEditError> {
        let Some(before) = settings.filter(|text| !text.trim().is_empty()) else {
            return Ok(SettingsChange::Write(self.new_file(program, arguments)));
        };
        let mut text = before.to_owned();
        // The entry of an earlier version would run as well.
        let earlier = self.earlier_arguments(&text, &program.program)?;
        let arguments = arguments.map(str::to_owned).or(earlier);
        let is_earlier = |command: &str| self.is_earlier(command, &program.program);
        while let Some(range) = next_removal(&text, &is_earlier)? {
            text.replace_range(range, "");
        }
        for event in self.events {
            let change = self.turn_on(&text, event, program, arguments.as_deref())?;
            if let Some((range, added)) = change {
                text.replace_range(range, &added);
            }
        }
        Ok(if text == before { SettingsChange::None } else { SettingsChange::Write(text) })
    }

    /// Returns the settings with the feature off. All other bytes are preserved. `program` is a command line
    /// of this program, which may have another name than ours.
    ///
    /// # Errors
    ///
    /// If the settings are not valid.
    pub fn uninstall(&self, settings: &str, program: &str) -> Result<SettingsChange, SettingsEditError> {
        let mut text = settings.to_owned();
        while let Some((range, line)) = self.next_shared(&text, program)? {
            text.replace_range(range, &line);
        }
        let is_own = |command: &str| {
            let line = HookLine::parse(command, program);
            self.is_earlier(command, program) || line.is_some_and(|line| line.has(self.name))
        };
        while let Some(range) = next_removal(&text, &is_own)? {
            text.replace_range(range, "");
        }
        if text == settings {
            return Ok(SettingsChange::None);
        }
        // The remainder of a file that `install` created.
        Ok(if text == "{\n  \n}\n" { SettingsChange::Remove } else { SettingsChange::Write(text) })
    }

    /// Returns the features that are on in settings, with their events.
    pub fn installed(settings: &str, program: &str) -> Vec<InstalledHook> {
        let Ok(root) = SettingsText(settings).root() else { return Vec::new() };
        let mut found = Vec::new();
        for (event, groups) in root.get("hooks").into_iter().flat_map(Json::members) {
            let hooks = groups.items().flat_map(|group| group.get("hooks").into_iter().flat_map(Json::items));
            for command in hooks.filter_map(|hook| hook.get("command").and_then(Json::as_str)) {
                let line = HookLine::parse(&command, program);
                let has = |feature: &Self| {
                    feature.is_earlier(&command, program)
                        || line.as_ref().is_some_and(|line| line.has(feature.name))
                };
                found.extend(Self::ALL.iter().filter(|feature| has(feature)).map(|feature| InstalledHook {
                    feature: feature.name,
                    event: event.name().into_owned(),
                    command: command.to_string(),
                }));
            }
        }
        found
    }

    /// Returns the state folder that the hooks in settings were told to use, if it is not the default one.
    pub fn state_dir(settings: &str) -> Option<String> {
        let root = SettingsText(settings).root().ok()?;
        let groups =
            root.get("hooks").into_iter().flat_map(Json::members).flat_map(|(_, groups)| groups.items());
        let hooks = groups.flat_map(|group| group.get("hooks").into_iter().flat_map(Json::items));
        let mut commands = hooks.filter_map(|hook| hook.get("command").and_then(Json::as_str));
        commands.find_map(|command| {
            let (before, value) = command.split_once("--state-dir=")?;
            // A word with spaces is in quotes.
            let end = if before.ends_with('\'') { value.find('\'') } else { value.find(' ') };
            let is_ours = before.trim_end_matches([' ', '\'']).ends_with(" hook");
            is_ours.then(|| value[..end.unwrap_or(value.len())].to_owned())
        })
    }

    /// Whether a command line is the one that an earlier version installed for this feature.
    fn is_earlier(&self, command: &str, own: &str) -> bool {
        let Some(arguments) = own_arguments(command, own) else { return false };
        let mut words = raw_words(arguments);
        let given = [words.next(), words.next()];
        self.earlier.is_some_and(|earlier| given == earlier.map(Some))
    }

    /// Returns the arguments of a command that an earlier version installed.
    fn earlier_arguments(&self, settings: &str, own: &str) -> Result<Option<String>, SettingsEditError> {
        let text = SettingsText(settings);
        let hooks = text.root()?.get("hooks");
        let groups = hooks.into_iter().flat_map(Json::members).flat_map(|(_, groups)| groups.items());
        let commands = groups.flat_map(|group| group.get("hooks").into_iter().flat_map(Json::items));
        let mut commands = commands.filter_map(|hook| hook.get("command").and_then(Json::as_str));
        let earlier = commands.find(|command| self.is_earlier(command, own));
        let arguments = earlier.as_deref().and_then(|command| own_arguments(command, own));
        let words = arguments.map(|arguments| raw_words(arguments).skip(2).collect::<Vec<_>>());
        // The archive is always quiet.
        let words =
            words.map(|words| words.into_iter().filter(|word| *word != "--quiet").collect::<Vec<_>>());
        Ok(words.filter(|words| !words.is_empty()).map(|words| words.join(" ")))
    }

    fn new_file(&self, program: &HookProgram, arguments: Option<&str>) -> String {
        let line = HookLine::new(program, self.name, arguments);
        let events: Vec<String> = self
            .events
            .iter()
            .map(|event| format!("    \"{}\": [\n      {}\n    ]", event.name, line.group(event.name)))
            .collect();
        format!("{{\n  \"hooks\": {{\n{}\n  }}\n}}\n", events.join(",\n"))
    }

    /// Returns the range to replace, and the text to put there, to turn the feature on for an event; `None` if
    /// it is on already.
    fn turn_on(
        &self,
        settings: &str,
        event: &HookEvent,
        program: &HookProgram,
        arguments: Option<&str>,
    ) -> Result<Option<(Range<usize>, String)>, SettingsEditError> {
        let text = SettingsText(settings);
        let groups = groups_of(&text, event.name)?;
        let own = groups.into_iter().flat_map(Json::items).find_map(|group| {
            let command = own_command(group, &program.program)?;
            Some((group, command, HookLine::parse(&command.as_str()?, &program.program)?))
        });
        let Some((group, command, line)) = own else {
            let line = HookLine::new(program, self.name, arguments);
            return Ok(Some(insertion(&text, event.name, &line.group(event.name))?));
        };
        let changed = line.with(program, self.name, arguments);
        let matcher = group.get("matcher").and_then(Json::as_str).filter(|matcher| !matcher.is_empty());
        if matcher.as_deref() == changed.matcher(event.name) {
            let is_same = command.as_str().as_deref() == Some(&*changed.to_string());
            return Ok((!is_same).then(|| (text.range(command), json_text(&changed.to_string()))));
        }
        Ok(Some((text.range(group), changed.group(event.name))))
    }

    /// Returns the range of the next command that also serves other features, and the command without this
    /// one.
    fn next_shared(
        &self,
        settings: &str,
        program: &str,
    ) -> Result<Option<(Range<usize>, String)>, SettingsEditError> {
        let text = SettingsText(settings);
        let Some(hooks) = text.root()?.get("hooks").filter(|hooks| hooks.is_object()) else {
            return Ok(None);
        };
        for (event, groups) in hooks.members() {
            for group in groups.items() {
                let Some(command) = own_command(group, program) else { continue };
                let Some(line) = command.as_str().and_then(|text| HookLine::parse(&text, program)) else {
                    continue;
                };
                if !line.has(self.name) || line.features.len() == 1 {
                    continue;
                }
                let line = line.without(self.name);
                let event = event.name();
                let matcher = group.get("matcher").and_then(Json::as_str).filter(|text| !text.is_empty());
                return Ok(Some(match matcher.as_deref() == line.matcher(&event) {
                    true => (text.range(command), json_text(&line.to_string())),
                    false => (text.range(group), line.group(&event)),
                }));
            }
        }
        Ok(None)
    }
}

/// The command line of our hook at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HookLine {
    program: HookProgram,
    /// The names of features, with their arguments as they are written.
    features: Vec<(String, String)>,
}

impl HookLine {
    fn new(program: &HookProgram, name: &str, arguments: Option<&str>) -> Self {
        let features = vec![(name.to_owned(), arguments.unwrap_or_default().to_owned())];
        Self { program: program.clone(), features }
    }

    /// Parses a command line; `None` if it is not one of `threadline hook`.
    fn parse(command: &str, own: &str) -> Option<Self> {
        let arguments = own_arguments(command, own)?;
        let program = command[..command.len() - arguments.len()].trim().to_owned();
        let mut words = raw_words(arguments).peekable();
        if words.next() != Some("hook") {
            return None;
        }
        let mut options = Vec::new();
        while let Some(option) = words.next_if(|word| word.starts_with("--")) {
            options.push(option.to_owned());
        }
        let mut features: Vec<(String, String)> = Vec::new();
        let words: Vec<&str> = words.collect();
        for group in words.split(|word| *word == FEATURE_SEPARATOR) {
            let (name, arguments) = group.split_first()?;
            features.push(((*name).to_owned(), arguments.join(" ")));
        }
        Some(Self { program: HookProgram { program, options }, features })
    }

    fn has(&self, name: &str) -> bool {
        self.features.iter().any(|(known, _)| known == name)
    }

    /// Returns the line with a feature, which keeps its arguments if no others are given.
    fn with(mut self, program: &HookProgram, name: &str, arguments: Option<&str>) -> Self {
        self.program = program.clone();
        match (self.features.iter_mut().find(|(known, _)| known == name), arguments) {
            (Some((_, own)), Some(arguments)) => arguments.clone_into(own),
            (Some(_), None) => {}
            (None, arguments) => {
                self.features.push((name.to_owned(), arguments.unwrap_or_default().to_owned()));
            }
        }
        let place = |name: &str| HookFeature::ALL.iter().position(|feature| feature.name == name);
        self.features.sort_by_key(|(name, _)| place(name));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.features.retain(|(known, _)| known != name);
        self
    }

    /// Returns the tools whose calls matter to the features, if all agree.
    fn matcher(&self, event: &str) -> Option<&'static str> {
        let matcher = |(name, _): &(String, String)| {
            let events = HookFeature::named(name)?.events;
            events.iter().find(|known| known.name == event)?.matcher
        };
        let first = self.features.first().and_then(matcher);
        first.filter(|_| self.features.iter().all(|feature| matcher(feature) == first))
    }

    /// Returns the hook entry for the list of an event.
    fn group(&self, event: &str) -> String {
        let command = json_text(&self.to_string());
        let matcher = self.matcher(event).map(|matcher| format!("\"matcher\": {}, ", json_text(matcher)));
        let matcher = matcher.unwrap_or_default();
        format!("{{ {matcher}\"hooks\": [{{ \"type\": \"command\", \"command\": {command} }}] }}")
    }
}

impl std::fmt::Display for HookLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} hook", self.program.program)?;
        self.program.options.iter().try_for_each(|option| write!(f, " {option}"))?;
        for (at, (name, arguments)) in self.features.iter().enumerate() {
            let separator = if at > 0 { " + " } else { " " };
            let gap = if arguments.is_empty() { "" } else { " " };
            write!(f, "{separator}{name}{gap}{arguments}")?;
        }
        Ok(())
    }
}

fn json_text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns the command of an entry that runs `threadline hook`.
fn own_command<'j>(group: Json<'j>, own: &str) -> Option<Json<'j>> {
    let hooks = group.get("hooks").into_iter().flat_map(Json::items);
    let commands = hooks.filter_map(|hook| hook.get("command"));
    commands
        .into_iter()
        .find(|command| command.as_str().is_some_and(|command| HookLine::parse(&command, own).is_some()))
}

/// Returns the list of the hooks of an event.
fn groups_of<'j>(text: &SettingsText<'j>, event: &str) -> Result<Option<Json<'j>>, SettingsEditError> {
    let Some(hooks) = text.root()?.get("hooks") else { return Ok(None) };
    if !hooks.is_object() {
        return Err(SettingsEditError::UnexpectedType("hooks".to_owned()));
    }
    let Some(groups) = hooks.get(event) else { return Ok(None) };
    match groups.kind() {
        JsonKind::Array => Ok(Some(groups)),
        _ => Err(SettingsEditError::UnexpectedType(format!("hooks.{event}"))),
    }
}

/// Returns the place and text to insert an entry for an event.
fn insertion(
    text: &SettingsText<'_>,
    event: &str,
    entry: &str,
) -> Result<(Range<usize>, String), SettingsEditError> {
    let root = text.root()?;
    let at = |(at, added): (usize, String)| (at..at, added);
    let Some(hooks) = root.get("hooks") else {
        let value = |indent: &str, step: &str| {
            format!(
                "{{\n{indent}{step}\"{event}\": [\n{indent}{step}{step}{entry}\n{indent}{step}]\n{indent}}}"
            )
        };
        return Ok(at(last_member(text, root, "hooks", value)));
    };
    let Some(groups) = groups_of(text, event)? else {
        let value = |indent: &str, step: &str| format!("[\n{indent}{step}{entry}\n{indent}]");
        return Ok(at(last_member(text, hooks, event, value)));
    };
    Ok(at(match groups.items().last() {
        Some(last) => {
            let range = text.range(last);
            let gap = if text.is_on_own_line(range.start) {
                format!("\n{}", text.indent(range.start))
            } else {
                " ".into()
            };
            (range.end, format!(",{gap}{entry}"))
        }
        None => (text.range(groups).start + 1, entry.to_owned()),
    }))
}

/// Returns the next range to remove, including the comma and white space that were inserted with it, of the
/// commands that `is_own`.
fn next_removal(
    settings: &str,
    is_own: &dyn Fn(&str) -> bool,
) -> Result<Option<Range<usize>>, SettingsEditError> {
    let text = SettingsText(settings);
    let root = text.root()?;
    let Some(hooks) = root.get("hooks").filter(|hooks| hooks.is_object()) else { return Ok(None) };
    let is_own =
        |hook: &Json<'_>| hook.get("command").and_then(Json::as_str).is_some_and(|text| is_own(&text));
    for (key, groups) in hooks.members() {
        let items: Vec<Json<'_>> = groups.items().collect();
        for (i, item) in items.iter().enumerate() {
            let commands: Vec<Json<'_>> = item.get("hooks").into_iter().flat_map(Json::items).collect();
            let Some(command) = commands.iter().position(is_own) else { continue };
            if commands.len() > 1 {
                // The user moved our command into an entry with others.
                let ranges: Vec<_> = commands.iter().map(|json| text.range(*json)).collect();
                return Ok(Some(with_comma(&ranges, command)));
            }
            if items.len() > 1 {
                let ranges: Vec<_> = items.iter().map(|json| text.range(*json)).collect();
                return Ok(Some(with_comma(&ranges, i)));
            }
            let list = text.range(groups);
            // Our entry directly after the bracket: the list existed and was empty.
            if text.range(*item).start == list.start + 1 {
                return Ok(Some(text.range(*item)));
            }
            return Ok(Some(member_removal(&text, root, hooks, key)));
        }
    }
    Ok(None)
}

/// Returns the range to remove for the only entry of an event.
fn member_removal(
    text: &SettingsText<'_>,
    root: Json<'_>,
    hooks: Json<'_>,
    key: JsonKey<'_>,
) -> Range<usize> {
    let ranges = |object: Json<'_>| -> Vec<Range<usize>> {
        object.members().map(|(key, value)| key_start(text, key)..text.range(value).end).collect()
    };
    let members = ranges(hooks);
    if members.len() > 1 {
        let at =
            hooks.members().position(|(other, _)| other.raw().as_ptr() == key.raw().as_ptr()).unwrap_or(0);
        return with_comma(&members, at);
    }
    // Our member directly after the brace: the object existed and was empty.
    if members[0].start == text.range(hooks).start + 1 {
        return members[0].clone();
    }
    let tops = ranges(root);
    let at = root.members().position(|(key, _)| key.is("hooks")).unwrap_or(0);
    if tops.len() > 1 { with_comma(&tops, at) } else { tops[0].clone() }
}

/// Returns the arguments of a command line of a program of our name, with a suffix such as a version, or with
/// the name of `own`, a command line of this program.
fn own_arguments<'c>(command: &'c str, own: &str) -> Option<&'c str> {
    let (program, arguments) = first_word(command.trim_start());
    let (own, _) = first_word(own.trim_start());
    let (name, own) = (program_name(&program), program_name(&own));
    (name == "threadline" || name.starts_with("threadline-") || name == own).then_some(arguments)
}

/// Splits a command line into words, which keep their quotes.
fn raw_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let mut quote = None;
        let mut chars = rest.char_indices();
        let end = loop {
            let Some((at, ch)) = chars.next() else { break rest.len() };
            match (ch, quote) {
                (' ', None) => break at,
                ('\'' | '"', None) => quote = Some(ch),
                (ch, Some(open)) if ch == open => quote = None,
                ('\\', None | Some('"')) => drop(chars.next()),
                _ => {}
            }
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Returns the name of a program without its folder and extension.
fn program_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program).trim_end_matches(".exe")
}

/// Splits off the first word of a command and removes its quotes.
fn first_word(command: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote = None;
    let mut chars = command.char_indices();
    while let Some((at, ch)) = chars.next() {
        match (ch, quote) {
            (' ', None) => return (word, &command[at..]),
            ('\'' | '"', None) => quote = Some(ch),
            (ch, Some(open)) if ch == open => quote = None,
            // The only escape that our own quoting produces. Other backslashes are part of a Windows path.
            ('\\', None) if command[at..].starts_with("\\'") => word.extend(chars.next().map(|(_, ch)| ch)),
            (ch, _) => word.push(ch),
        }
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: HookFeature = HookFeature::TRACE;
    const PROGRAM: &str = "/usr/bin/threadline";

    fn program() -> HookProgram {
        HookProgram { program: PROGRAM.to_owned(), options: Vec::new() }
    }

    fn written(change: Result<SettingsChange, SettingsEditError>) -> String {
        match change.unwrap() {
            SettingsChange::Write(after) => after,
            other => panic!("{other:?}"),
        }
    }

    fn installed(before: &str) -> String {
        written(HOOK.install(Some(before), &program(), None))
    }

    #[test]
    fn uninstall_restores_the_original_bytes() {
        for before in [
            "{}",
            "{}\n",
            "{ }",
            "{\n}\n",
            "{\"model\":\"opus\"}",
            "{\n  \"model\": \"opus\"\n}\n",
            "{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t}\n}",
            "{\"hooks\":{}}",
            "{\n  \"hooks\": {}\n}\n",
            "{\n  \"hooks\": {\n  }\n}\n",
            "{\"hooks\":{\"Stop\":[]},\"x\":1}",
            "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
            "{\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \"matcher\": \"\",\n                \"hooks\": [\n                    { \"type\": \"command\", \"command\": \"other\" }\n                ]\n            }\n        ],\n        \"PreToolUse\": [ ]\n    },\n    \"permissions\": { \"allow\": [\"Bash(threadline trace hook)\"] }\n}\n",
            "{\r\n  \"hooks\": {\r\n    \"SessionEnd\": [{\"hooks\":[{\"type\":\"command\",\"command\":\"a\"}]},{\"hooks\":[{\"type\":\"command\",\"command\":\"b\"}]}]\r\n  }\r\n}",
            "{\"a\":\"\\u007d\",\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}",
        ] {
            let after = installed(before);
            let json = Json::parse(&after).unwrap_or_else(|| panic!("{after}"));
            assert!(json.get("hooks").unwrap().is_object());
            let events: Vec<String> =
                HookFeature::installed(&after, PROGRAM).into_iter().map(|hook| hook.event).collect();
            assert_eq!(events.len(), 2, "{after}");
            // Every original byte is still there, in order.
            let mut rest = after.bytes();
            assert!(before.bytes().all(|byte| rest.any(|other| other == byte)), "{after}");
            assert_eq!(HOOK.install(Some(&after), &program(), None).unwrap(), SettingsChange::None);
            match HOOK.uninstall(&after, PROGRAM).unwrap() {
                SettingsChange::Write(again) => assert_eq!(again, before),
                other => panic!("{before}: {other:?}\n{after}"),
            }
        }
    }

    #[test]
    fn a_created_file_is_removed() {
        let SettingsChange::Write(made) = HOOK.install(None, &program(), None).unwrap() else { panic!() };
        insta::assert_snapshot!(made, @r#"
{
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "/usr/bin/threadline hook trace" }] }
    ],
    "SessionEnd": [
      { "hooks": [{ "type": "command", "command": "/usr/bin/threadline hook trace" }] }
    ]
  }
}
"#);
        assert_eq!(HOOK.uninstall(&made, PROGRAM).unwrap(), SettingsChange::Remove);
        assert_eq!(HOOK.uninstall("{\"hooks\":{}}", PROGRAM).unwrap(), SettingsChange::None);
    }

    #[test]
    fn later_changes_by_the_user_are_kept() {
        let after = installed("{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": []}\n    ]\n  }\n}\n");
        let changed = after.replace("\"SessionEnd\": [", "\"SessionEnd\": [\n      {\"hooks\": [1]},");
        let SettingsChange::Write(back) = HOOK.uninstall(&changed, PROGRAM).unwrap() else { panic!() };
        assert!(!back.contains("threadline"), "{back}");
        assert!(Json::parse(&back).is_some(), "{back}");
        assert!(back.contains("{\"hooks\": [1]}"), "{back}");
        let moved = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x\"},{\"command\":\"threadline trace hook\"}]}]}}";
        assert_eq!(
            HOOK.uninstall(moved, PROGRAM).unwrap(),
            SettingsChange::Write("{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x\"}]}]}}".to_owned())
        );
    }

    #[test]
    fn malformed_settings_are_rejected() {
        assert_eq!(HOOK.install(Some("[]"), &program(), None), Err(SettingsEditError::NotAnObject));
        assert_eq!(HOOK.install(Some("{"), &program(), None), Err(SettingsEditError::NotAnObject));
        assert_eq!(
            HOOK.install(Some("{\"hooks\":1}"), &program(), None),
            Err(SettingsEditError::UnexpectedType("hooks".into()))
        );
        assert_eq!(
            HOOK.install(Some("{\"hooks\":{\"Stop\":{}}}"), &program(), None),
            Err(SettingsEditError::UnexpectedType("hooks.Stop".into()))
        );
        assert_eq!(HOOK.uninstall("{", PROGRAM), Err(SettingsEditError::NotAnObject));
    }

    #[test]
    fn our_command_is_recognised_by_its_program() {
        for ours in [
            "threadline trace hook",
            "/a/b/threadline trace hook --preset otlp",
            "\"C:\\x y\\threadline.exe\" trace hook",
            r"C:\x\threadline.exe trace hook",
            r"'/it'\''s here/threadline' trace hook",
            "/opt/threadline-0.2.0 trace hook",
        ] {
            assert!(HOOK.is_earlier(ours, PROGRAM), "{ours}");
        }
        assert!(HookFeature::ARCHIVE.is_earlier("threadline archive push --quiet", PROGRAM));
        for other in [
            "threadline archive push",
            "echo threadline trace hook",
            "threadline list",
            "my-threadline trace hook",
        ] {
            assert!(!HOOK.is_earlier(other, PROGRAM), "{other}");
        }
        assert!(HOOK.is_earlier("/a/tl trace hook", "'/b c/tl' trace hook --preset otlp"));
        assert!(!HOOK.is_earlier("/a/other trace hook", "/a/tl"));
    }

    #[test]
    fn a_program_of_another_name_is_installed_once_and_removed() {
        for name in ["/opt/tl", "/opt/threadline-start"] {
            let program = HookProgram { program: name.to_owned(), options: Vec::new() };
            let after = written(HOOK.install(Some("{}"), &program, Some("--preset otlp")));
            assert_eq!(
                HOOK.install(Some(&after), &program, Some("--preset otlp")).unwrap(),
                SettingsChange::None
            );
            assert_eq!(written(HOOK.uninstall(&after, name)), "{}");
        }
    }

    const OTHERS: &str = "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Edit\",\n        \"hooks\": [ { \"type\": \"command\", \"command\": \"lint hook\" } ]\n      }\n    ],\n    \"SessionEnd\": []\n  },\n  \"z\": 1\n}\n";

    #[test]
    fn features_share_a_command_per_event() {
        let trace = written(HOOK.install(Some(OTHERS), &program(), Some("--preset 'a + b'")));
        let archive = written(HookFeature::ARCHIVE.install(Some(&trace), &program(), None));
        let all = written(HookFeature::FILES.install(Some(&archive), &program(), None));
        let commands: Vec<(String, String)> = HookFeature::installed(&all, PROGRAM)
            .into_iter()
            .map(|hook| (hook.event, hook.command.replace(PROGRAM, "tl")))
            .collect();
        let commands: Vec<String> =
            commands.into_iter().map(|(event, command)| format!("{event}: {command}")).collect();
        insta::assert_snapshot!(commands.join("\n"), @r"
        PreToolUse: tl hook files
        SessionEnd: tl hook trace --preset 'a + b' + archive
        SessionEnd: tl hook trace --preset 'a + b' + archive
        Stop: tl hook trace --preset 'a + b'
        PostToolUse: tl hook files
        PostToolUseFailure: tl hook files
        SubagentStop: tl hook files
        ");
        assert!(all.contains("{ \"matcher\": \"Bash\", \"hooks\": [{"), "{all}");
        // Each can be removed alone, in any order.
        let without_trace = written(HOOK.uninstall(&all, PROGRAM));
        assert!(
            !without_trace.contains("trace") && without_trace.contains("hook archive"),
            "{without_trace}"
        );
        let without_files = written(HookFeature::FILES.uninstall(&without_trace, PROGRAM));
        assert_eq!(written(HookFeature::ARCHIVE.uninstall(&without_files, PROGRAM)), OTHERS);
        let back = written(HookFeature::FILES.uninstall(&all, PROGRAM));
        assert_eq!(back, archive);
    }

    #[test]
    fn arguments_stay_unless_others_are_given() {
        let first = written(HOOK.install(Some("{}"), &program(), Some("--preset otlp")));
        assert_eq!(HOOK.install(Some(&first), &program(), None).unwrap(), SettingsChange::None);
        let other = written(HOOK.install(Some(&first), &program(), Some("--content none")));
        assert!(other.contains("hook trace --content none") && !other.contains("otlp"), "{other}");
        let moved =
            HookProgram { program: "/new/threadline".to_owned(), options: vec!["--state-dir=/s".into()] };
        let moved = written(HOOK.install(Some(&other), &moved, None));
        assert!(moved.contains("/new/threadline hook --state-dir=/s trace --content none"), "{moved}");
        assert_eq!(written(HOOK.uninstall(&moved, PROGRAM)), "{}");
    }

    #[test]
    fn the_state_folder_of_hooks_is_found() {
        let settings = |command: &str| {
            format!(
                r#"{{"hooks":{{"PreToolUse":[{{"hooks":[{{"type":"command","command":"{command}"}}]}}]}}}}"#
            )
        };
        let found = |command: &str| HookFeature::state_dir(&settings(command));
        assert_eq!(found("/bin/threadline hook --state-dir=/s/t files").as_deref(), Some("/s/t"));
        assert_eq!(found("threadline hook '--state-dir=/a b/t' files").as_deref(), Some("/a b/t"));
        assert_eq!(found("threadline hook files"), None);
        assert_eq!(found("other --state-dir=/s"), None);
    }

    #[test]
    fn a_command_of_an_earlier_version_is_replaced() {
        let earlier = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/old/threadline trace hook --preset otlp\"}]}],\"SessionEnd\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"other\"},{\"type\":\"command\",\"command\":\"threadline archive push --quiet --level full\"}]}]}}";
        let trace = written(HOOK.install(Some(earlier), &program(), None));
        assert!(trace.contains("hook trace --preset otlp") && !trace.contains("trace hook"), "{trace}");
        let both = written(HookFeature::ARCHIVE.install(Some(&trace), &program(), None));
        assert!(both.contains("trace --preset otlp + archive --level full"), "{both}");
        assert!(!both.contains("archive push") && both.contains("\"other\""), "{both}");
        assert_eq!(HookFeature::installed(earlier, PROGRAM).len(), 2);
    }
}
