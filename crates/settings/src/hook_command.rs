//! Adds a hook of threadline to Claude Code's settings and removes it. Every other byte is preserved.

use std::ops::Range;

use threadline_entry::{Json, JsonKind};

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

/// A command of threadline that Claude Code runs as a hook.
#[derive(Clone, Copy, Debug)]
pub struct HookCommand {
    /// The events to register.
    pub events: &'static [&'static str],
    /// The first two arguments of the command, which identify it.
    pub arguments: [&'static str; 2],
}

impl HookCommand {
    /// Sends turns as traces. `Stop` ends a turn, `SessionEnd` ends the last one.
    pub const TRACE: Self = Self { events: &["Stop", "SessionEnd"], arguments: ["trace", "hook"] };
    /// Copies sessions into an archive.
    pub const ARCHIVE: Self = Self { events: &["SessionEnd"], arguments: ["archive", "push"] };

    /// Returns the settings with the hook added. `command` is the command line for Claude Code to run;
    /// `settings` is `None` if there is no file.
    ///
    /// # Errors
    ///
    /// If the settings are not valid.
    pub fn install(
        &self,
        settings: Option<&str>,
        command: &str,
    ) -> Result<SettingsChange, SettingsEditError> {
        let Some(before) = settings.filter(|text| !text.trim().is_empty()) else {
            let events: Vec<String> = self
                .events
                .iter()
                .map(|event| format!("    \"{event}\": [\n      {}\n    ]", group(command)))
                .collect();
            let text = format!("{{\n  \"hooks\": {{\n{}\n  }}\n}}\n", events.join(",\n"));
            return Ok(SettingsChange::Write(text));
        };
        let mut text = before.to_owned();
        for event in self.events {
            if let Some((at, added)) = self.insertion(&text, event, command)? {
                text.insert_str(at, &added);
            }
        }
        Ok(if text == before { SettingsChange::None } else { SettingsChange::Write(text) })
    }

    /// Returns the settings with the hook removed. All other bytes are preserved. `program` is a command line
    /// of this program, which may have another name than ours.
    ///
    /// # Errors
    ///
    /// If the settings are not valid.
    pub fn uninstall(&self, settings: &str, program: &str) -> Result<SettingsChange, SettingsEditError> {
        let mut text = settings.to_owned();
        while let Some(range) = self.next_removal(&text, program)? {
            text.replace_range(range, "");
        }
        if text == settings {
            return Ok(SettingsChange::None);
        }
        // The remainder of a file that `install` created.
        Ok(if text == "{\n  \n}\n" { SettingsChange::Remove } else { SettingsChange::Write(text) })
    }

    /// Whether a command line runs this hook, with a program of our name, with a suffix such as a version, or
    /// with the name of `own`, a command line of this program.
    fn is_run_by(&self, command: &str, own: &str) -> bool {
        let (program, arguments) = first_word(command.trim_start());
        let (own, _) = first_word(own.trim_start());
        let (name, own) = (program_name(&program), program_name(&own));
        let mut arguments = arguments.split_whitespace();
        let given = [arguments.next(), arguments.next()];
        let is_ours = name == "threadline" || name.starts_with("threadline-") || name == own;
        is_ours && given == self.arguments.map(Some)
    }

    /// Returns the offset and text to insert for an event; `None` if the hook is present already.
    fn insertion(
        &self,
        settings: &str,
        event: &str,
        command: &str,
    ) -> Result<Option<(usize, String)>, SettingsEditError> {
        let text = SettingsText(settings);
        let root = text.root()?;
        let Some(hooks) = root.get("hooks") else {
            let value = |indent: &str, step: &str| {
                format!(
                    "{{\n{indent}{step}\"{event}\": [\n{indent}{step}{step}{}\n{indent}{step}]\n{indent}}}",
                    group(command)
                )
            };
            return Ok(Some(last_member(&text, root, "hooks", value)));
        };
        if !hooks.is_object() {
            return Err(SettingsEditError::UnexpectedType("hooks".to_owned()));
        }
        let Some(groups) = hooks.get(event) else {
            let value = |indent: &str, step: &str| format!("[\n{indent}{step}{}\n{indent}]", group(command));
            return Ok(Some(last_member(&text, hooks, event, value)));
        };
        if groups.kind() != JsonKind::Array {
            return Err(SettingsEditError::UnexpectedType(format!("hooks.{event}")));
        }
        if groups.items().any(|group| !self.commands(group, command).is_empty()) {
            return Ok(None);
        }
        let entry = group(command);
        Ok(Some(match groups.items().last() {
            Some(last) => {
                let range = text.range(last);
                let gap = if text.is_on_own_line(range.start) {
                    format!("\n{}", text.indent(range.start))
                } else {
                    " ".into()
                };
                (range.end, format!(",{gap}{entry}"))
            }
            None => (text.range(groups).start + 1, entry),
        }))
    }

    /// Returns the hook commands in an entry that run this hook.
    fn commands<'j>(&self, group: Json<'j>, own: &str) -> Vec<Json<'j>> {
        let hooks = group.get("hooks").into_iter().flat_map(Json::items);
        hooks
            .filter(|hook| {
                hook.get("command").and_then(Json::as_str).is_some_and(|text| self.is_run_by(&text, own))
            })
            .collect()
    }

    /// Returns the next range to remove, including the comma and white space that were inserted with it.
    fn next_removal(&self, settings: &str, program: &str) -> Result<Option<Range<usize>>, SettingsEditError> {
        let text = SettingsText(settings);
        let root = text.root()?;
        let Some(hooks) = root.get("hooks").filter(|hooks| hooks.is_object()) else { return Ok(None) };
        for (key, groups) in hooks.members() {
            let items: Vec<Json<'_>> = groups.items().collect();
            for (i, item) in items.iter().enumerate() {
                let own = self.commands(*item, program);
                let Some(command) = own.first() else { continue };
                let commands: Vec<Json<'_>> = item.get("hooks").into_iter().flat_map(Json::items).collect();
                if commands.len() > 1 {
                    // The user moved our command into an entry with others.
                    let at = commands.iter().position(|other| other == command).unwrap_or(0);
                    return Ok(Some(with_comma(
                        &commands.iter().map(|json| text.range(*json)).collect::<Vec<_>>(),
                        at,
                    )));
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
                let members: Vec<_> = hooks
                    .members()
                    .map(|(key, value)| key_start(&text, key)..text.range(value).end)
                    .collect();
                if members.len() > 1 {
                    let at = hooks
                        .members()
                        .position(|(other, _)| other.raw().as_ptr() == key.raw().as_ptr())
                        .unwrap_or(0);
                    return Ok(Some(with_comma(&members, at)));
                }
                let object = text.range(hooks);
                // Our member directly after the brace: the object existed and was empty.
                if members[0].start == object.start + 1 {
                    return Ok(Some(members[0].clone()));
                }
                let tops: Vec<_> =
                    root.members().map(|(key, value)| key_start(&text, key)..text.range(value).end).collect();
                let at = root.members().position(|(key, _)| key.is("hooks")).unwrap_or(0);
                return Ok(Some(if tops.len() > 1 { with_comma(&tops, at) } else { tops[0].clone() }));
            }
        }
        Ok(None)
    }
}

/// Returns the hook entry for the list of an event.
fn group(command: &str) -> String {
    let command = serde_json::to_string(command).unwrap_or_default();
    format!("{{ \"hooks\": [{{ \"type\": \"command\", \"command\": {command} }}] }}")
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

    const HOOK: HookCommand = HookCommand::TRACE;
    const COMMAND: &str = "/usr/bin/threadline trace hook";

    fn installed(before: &str) -> String {
        match HOOK.install(Some(before), COMMAND).unwrap() {
            SettingsChange::Write(after) => after,
            other => panic!("{other:?}"),
        }
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
            for event in HOOK.events {
                let commands = json
                    .get("hooks")
                    .unwrap()
                    .get(event)
                    .unwrap()
                    .items()
                    .flat_map(|group| HOOK.commands(group, COMMAND));
                assert_eq!(commands.count(), 1, "{after}");
            }
            // Every original byte is still there, in order.
            let mut rest = after.bytes();
            assert!(before.bytes().all(|byte| rest.any(|other| other == byte)), "{after}");
            assert_eq!(HOOK.install(Some(&after), COMMAND).unwrap(), SettingsChange::None);
            match HOOK.uninstall(&after, COMMAND).unwrap() {
                SettingsChange::Write(again) => assert_eq!(again, before),
                other => panic!("{before}: {other:?}\n{after}"),
            }
        }
    }

    #[test]
    fn a_created_file_is_removed() {
        let SettingsChange::Write(made) = HOOK.install(None, COMMAND).unwrap() else { panic!() };
        insta::assert_snapshot!(made, @r#"
{
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "/usr/bin/threadline trace hook" }] }
    ],
    "SessionEnd": [
      { "hooks": [{ "type": "command", "command": "/usr/bin/threadline trace hook" }] }
    ]
  }
}
"#);
        assert_eq!(HOOK.uninstall(&made, COMMAND).unwrap(), SettingsChange::Remove);
        assert_eq!(HOOK.uninstall("{\"hooks\":{}}", COMMAND).unwrap(), SettingsChange::None);
    }

    #[test]
    fn later_changes_by_the_user_are_kept() {
        let after = installed("{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": []}\n    ]\n  }\n}\n");
        let changed = after.replace("\"SessionEnd\": [", "\"SessionEnd\": [\n      {\"hooks\": [1]},");
        let SettingsChange::Write(back) = HOOK.uninstall(&changed, COMMAND).unwrap() else { panic!() };
        assert!(!back.contains("threadline"), "{back}");
        assert!(Json::parse(&back).is_some(), "{back}");
        assert!(back.contains("{\"hooks\": [1]}"), "{back}");
        let moved = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x\"},{\"command\":\"threadline trace hook\"}]}]}}";
        assert_eq!(
            HOOK.uninstall(moved, COMMAND).unwrap(),
            SettingsChange::Write("{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x\"}]}]}}".to_owned())
        );
    }

    #[test]
    fn malformed_settings_are_rejected() {
        assert_eq!(HOOK.install(Some("[]"), COMMAND), Err(SettingsEditError::NotAnObject));
        assert_eq!(HOOK.install(Some("{"), COMMAND), Err(SettingsEditError::NotAnObject));
        assert_eq!(
            HOOK.install(Some("{\"hooks\":1}"), COMMAND),
            Err(SettingsEditError::UnexpectedType("hooks".into()))
        );
        assert_eq!(
            HOOK.install(Some("{\"hooks\":{\"Stop\":{}}}"), COMMAND),
            Err(SettingsEditError::UnexpectedType("hooks.Stop".into()))
        );
        assert_eq!(HOOK.uninstall("{", COMMAND), Err(SettingsEditError::NotAnObject));
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
            assert!(HOOK.is_run_by(ours, COMMAND), "{ours}");
        }
        assert!(HookCommand::ARCHIVE.is_run_by("threadline archive push --quiet", COMMAND));
        for other in [
            "threadline archive push",
            "echo threadline trace hook",
            "threadline list",
            "my-threadline trace hook",
        ] {
            assert!(!HOOK.is_run_by(other, COMMAND), "{other}");
        }
        assert!(HOOK.is_run_by("/a/tl trace hook", "'/b c/tl' trace hook --preset otlp"));
        assert!(!HOOK.is_run_by("/a/other trace hook", "/a/tl"));
    }

    #[test]
    fn a_program_of_another_name_is_installed_once_and_removed() {
        for program in ["/opt/tl", "/opt/threadline-start"] {
            let command = format!("{program} trace hook --preset otlp");
            let SettingsChange::Write(after) = HOOK.install(Some("{}"), &command).unwrap() else { panic!() };
            assert_eq!(HOOK.install(Some(&after), &command).unwrap(), SettingsChange::None);
            let removed = HOOK.uninstall(&after, program).unwrap();
            assert_eq!(removed, SettingsChange::Write("{}".to_owned()));
        }
    }
}
