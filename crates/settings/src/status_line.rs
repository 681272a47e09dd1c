//! The command of the status line in Claude Code's settings.

use threadline_entry::Json;

use crate::hook_command::{SettingsChange, SettingsEditError};
use crate::json_text::{SettingsText, key_start, last_member, with_comma};

/// The key of the entry.
const KEY: &str = "statusLine";

/// A status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusLine {
    /// The command line that prints it.
    pub command: String,
}

/// The remainder of a file that `install` created.
const EMPTIED: &str = "{\n  \n}\n";

impl StatusLine {
    /// Returns the settings with this status line. `settings` is `None` if there is no file.
    ///
    /// # Errors
    ///
    /// If the settings are not valid, or another program prints the status line.
    pub fn install(&self, settings: Option<&str>) -> Result<SettingsChange, SettingsEditError> {
        let command = serde_json::to_string(&self.command).unwrap_or_default();
        let value = format!("{{ \"type\": \"command\", \"command\": {command} }}");
        let Some(before) = settings.filter(|text| !text.trim().is_empty()) else {
            return Ok(SettingsChange::Write(format!("{{\n  \"{KEY}\": {value}\n}}\n")));
        };
        let text = SettingsText(before);
        let root = text.root()?;
        let mut after = before.to_owned();
        match root.get(KEY) {
            None => {
                let (at, added) = last_member(&text, root, KEY, |_, _| value.clone());
                after.insert_str(at, &added);
            }
            Some(entry) if is_own(entry) => {
                // Other members, such as the padding, are the user's.
                let own = entry.get("command").filter(|_| entry.is_object());
                let range = own.map_or_else(|| text.range(entry), |own| text.range(own));
                after.replace_range(range, if own.is_some() { &command } else { &value });
            }
            Some(_) => return Err(SettingsEditError::NameInUse(KEY.to_owned())),
        }
        Ok(if after == before { SettingsChange::None } else { SettingsChange::Write(after) })
    }

    /// Returns the settings without our status line. All other bytes are preserved.
    ///
    /// # Errors
    ///
    /// If the settings are not valid, or another program prints the status line.
    pub fn uninstall(settings: &str) -> Result<SettingsChange, SettingsEditError> {
        if settings.trim().is_empty() {
            return Ok(SettingsChange::None);
        }
        let text = SettingsText(settings);
        let root = text.root()?;
        let Some(entry) = root.get(KEY) else { return Ok(SettingsChange::None) };
        if !is_own(entry) {
            return Err(SettingsEditError::NameInUse(KEY.to_owned()));
        }
        let members: Vec<_> =
            root.members().map(|(key, value)| key_start(&text, key)..text.range(value).end).collect();
        let at = root.members().position(|(key, _)| key.is(KEY)).unwrap_or(0);
        let range = if members.len() > 1 { with_comma(&members, at) } else { members[at].clone() };
        let mut after = settings.to_owned();
        after.replace_range(range, "");
        Ok(if after == EMPTIED { SettingsChange::Remove } else { SettingsChange::Write(after) })
    }

    /// Returns the command of our status line in settings, if it is ours.
    pub fn installed(settings: &str) -> Option<String> {
        let entry = SettingsText(settings).root().ok()?.get(KEY).filter(|entry| is_own(*entry))?;
        Some(entry.get("command")?.as_str()?.into_owned())
    }
}

/// Returns whether `threadline usage statusline` prints the status line.
fn is_own(entry: Json<'_>) -> bool {
    let command = entry.get("command").and_then(Json::as_str);
    command.is_some_and(|command| command.contains("threadline") && command.contains(" usage statusline"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: &str) -> StatusLine {
        StatusLine { command: command.to_owned() }
    }

    #[test]
    fn uninstall_restores_the_original_bytes() {
        for before in ["{}", "{\n}\n", "{\"a\":1}", "{\n\t\"a\": {},\n\t\"b\": 2\n}\n"] {
            let installed = line("/x/threadline usage statusline").install(Some(before)).unwrap();
            let SettingsChange::Write(after) = installed else { panic!("{before}") };
            assert_eq!(StatusLine::installed(&after).as_deref(), Some("/x/threadline usage statusline"));
            let moved = line("/y/threadline usage statusline").install(Some(&after)).unwrap();
            assert_eq!(moved, SettingsChange::Write(after.replace("/x/", "/y/")));
            assert_eq!(StatusLine::uninstall(&after).unwrap(), SettingsChange::Write(before.to_owned()));
        }
        let SettingsChange::Write(made) = line("threadline usage statusline").install(None).unwrap() else {
            panic!()
        };
        assert_eq!(StatusLine::uninstall(&made).unwrap(), SettingsChange::Remove);
    }

    #[test]
    fn the_status_line_of_another_program_is_kept() {
        let other = "{\"statusLine\":{\"type\":\"command\",\"command\":\"starship\"}}";
        let error = SettingsEditError::NameInUse("statusLine".to_owned());
        assert_eq!(line("threadline usage statusline").install(Some(other)).unwrap_err(), error);
        assert_eq!(StatusLine::uninstall(other).unwrap_err(), error);
        assert_eq!(StatusLine::installed(other), None);
    }
}
