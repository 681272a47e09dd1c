//! Adds threadline as an MCP server to Claude Code's configuration and removes it. Every other byte is
//! preserved.

use std::ops::Range;

use threadline_entry::{Json, JsonKey};

use crate::hook_command::{SettingsChange, SettingsEditError};
use crate::json_text::{SettingsText, key_start, last_member, with_comma};

/// The name of the member with all servers.
const SERVERS: &str = "mcpServers";

/// The name of our server.
const NAME: &str = "threadline";

/// The command that Claude Code runs as an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpEntry {
    /// The program.
    pub program: String,
    /// Its arguments, of which the first is `mcp`.
    pub arguments: Vec<String>,
}

impl McpEntry {
    /// Returns the configuration with the server added; if it is present with other arguments, with these
    /// replaced. `config` is `None` if there is no file.
    ///
    /// # Errors
    ///
    /// If the configuration is not valid, or another server has the name.
    pub fn install(&self, config: Option<&str>) -> Result<SettingsChange, SettingsEditError> {
        let Some(before) = config.filter(|text| !text.trim().is_empty()) else {
            let text = format!("{{\n  \"{SERVERS}\": {{\n    \"{NAME}\": {}\n  }}\n}}\n", self.value());
            return Ok(SettingsChange::Write(text));
        };
        let text = SettingsText(before);
        let root = text.root()?;
        let (range, added) = match root.get(SERVERS) {
            None => {
                let value = |indent: &str, step: &str| {
                    format!("{{\n{indent}{step}\"{NAME}\": {}\n{indent}}}", self.value())
                };
                let (at, added) = last_member(&text, root, SERVERS, value);
                (at..at, added)
            }
            Some(servers) if !servers.is_object() => {
                return Err(SettingsEditError::UnexpectedType(SERVERS.to_owned()));
            }
            Some(servers) => match servers.get(NAME) {
                Some(other) if !is_own(other) => {
                    return Err(SettingsEditError::NameInUse(format!("{SERVERS}.{NAME}")));
                }
                Some(own) => (text.range(own), self.value()),
                None => {
                    let (at, added) = last_member(&text, servers, NAME, |_, _| self.value());
                    (at..at, added)
                }
            },
        };
        let mut after = before.to_owned();
        after.replace_range(range, &added);
        Ok(if after == before { SettingsChange::None } else { SettingsChange::Write(after) })
    }

    /// Returns the configuration with the server removed. All other bytes are preserved.
    ///
    /// # Errors
    ///
    /// If the configuration is not valid.
    pub fn uninstall(config: &str) -> Result<SettingsChange, SettingsEditError> {
        let text = SettingsText(config);
        let root = text.root()?;
        let servers = root.get(SERVERS).filter(|servers| servers.is_object());
        let Some(servers) = servers.filter(|servers| servers.get(NAME).is_some_and(is_own)) else {
            return Ok(SettingsChange::None);
        };
        let (members, at) = members(&text, servers, NAME);
        let removed = if members.len() > 1 {
            with_comma(&members, at)
        } else if members[at].start == text.range(servers).start + 1 {
            // Directly after the brace: the object existed and was empty.
            members[at].clone()
        } else {
            let (members, at) = self::members(&text, root, SERVERS);
            if members.len() > 1 { with_comma(&members, at) } else { members[at].clone() }
        };
        let mut after = config.to_owned();
        after.replace_range(removed, "");
        // The remainder of a file that `install` created.
        Ok(if after == "{\n  \n}\n" { SettingsChange::Remove } else { SettingsChange::Write(after) })
    }

    fn value(&self) -> String {
        let word = |text: &String| serde_json::to_string(text).unwrap_or_default();
        let arguments: Vec<String> = self.arguments.iter().map(word).collect();
        let (program, arguments) = (word(&self.program), arguments.join(", "));
        format!("{{ \"type\": \"stdio\", \"command\": {program}, \"args\": [{arguments}] }}")
    }
}

/// Returns the ranges of the members of an object, and the index of the last one with this name, which is the
/// one that counts.
fn members(text: &SettingsText<'_>, object: Json<'_>, name: &str) -> (Vec<Range<usize>>, usize) {
    let range = |(key, value): (JsonKey<'_>, Json<'_>)| key_start(text, key)..text.range(value).end;
    let at = object.members().enumerate().filter(|(_, (key, _))| key.is(name)).map(|(at, _)| at).last();
    (object.members().map(range).collect(), at.unwrap_or(0))
}

/// Returns whether a server runs `threadline mcp`.
fn is_own(server: Json<'_>) -> bool {
    let program = server.get("command").and_then(Json::as_str).unwrap_or_default();
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    // Options of every command may precede the name of the command.
    let mut arguments = server.get("args").into_iter().flat_map(Json::items);
    name.trim_end_matches(".exe") == "threadline"
        && arguments.any(|argument| argument.as_str().as_deref() == Some("mcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(arguments: &[&str]) -> McpEntry {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        McpEntry { program: "/usr/bin/threadline".to_owned(), arguments }
    }

    fn written(change: Result<SettingsChange, SettingsEditError>) -> String {
        match change.unwrap() {
            SettingsChange::Write(text) => text,
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
            "{\"numStartups\":3}",
            "{\n  \"numStartups\": 3,\n  \"projects\": {\n    \"/a\": {\"mcpServers\": {}}\n  }\n}\n",
            "{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t}\n}",
            "{\"mcpServers\":{}}",
            "{\n  \"mcpServers\": {}\n}\n",
            "{\n  \"mcpServers\": {\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"threadline\", \"args\": [\"x\"]}\n  },\n  \"z\": 1\n}",
            "{\r\n  \"mcpServers\": {\"a\":{},\"b\":{}}\r\n}",
            "{\"a\":\"\\u007d\",\"mcpServers\":{\"x\":{\"command\":\"}\"}}}",
        ] {
            let after = written(entry(&["mcp"]).install(Some(before)));
            let json = Json::parse(&after).unwrap_or_else(|| panic!("{after}"));
            assert!(json.get(SERVERS).unwrap().get(NAME).is_some_and(is_own), "{after}");
            let mut rest = after.bytes();
            assert!(before.bytes().all(|byte| rest.any(|other| other == byte)), "{after}");
            assert_eq!(entry(&["mcp"]).install(Some(&after)), Ok(SettingsChange::None));
            assert_eq!(written(McpEntry::uninstall(&after)), before);
            // Other arguments replace the first ones, and are removed as well.
            let changed = written(entry(&["mcp", "--all"]).install(Some(&after)));
            assert_eq!(written(entry(&["mcp"]).install(Some(&changed))), after);
            assert_eq!(written(McpEntry::uninstall(&changed)), before);
        }
    }

    #[test]
    fn a_created_file_is_removed() {
        let made = written(entry(&["mcp"]).install(None));
        assert_eq!(
            made,
            "{\n  \"mcpServers\": {\n    \"threadline\": { \"type\": \"stdio\", \"command\": \"/usr/bin/threadline\", \"args\": [\"mcp\"] }\n  }\n}\n"
        );
        assert_eq!(McpEntry::uninstall(&made), Ok(SettingsChange::Remove));
        assert_eq!(written(entry(&["mcp"]).install(Some(" \n"))), made);
    }

    #[test]
    fn servers_of_others_are_kept() {
        let other = "{\"mcpServers\":{\"threadline\":{\"command\":\"npx\",\"args\":[\"mcp\"]}}}";
        let error = entry(&["mcp"]).install(Some(other)).unwrap_err();
        assert_eq!(error, SettingsEditError::NameInUse("mcpServers.threadline".to_owned()));
        assert_eq!(McpEntry::uninstall(other), Ok(SettingsChange::None));
        assert_eq!(McpEntry::uninstall("{\"mcpServers\":{}}"), Ok(SettingsChange::None));
        // A server that the user added behind ours.
        let first = "{\"mcpServers\":{\"threadline\":{\"command\":\"threadline\",\"args\":[\"--demo\",\"mcp\"]}, \"b\":{}}}";
        assert_eq!(written(McpEntry::uninstall(first)), "{\"mcpServers\":{\"b\":{}}}");
    }

    #[test]
    fn malformed_configurations_are_rejected() {
        for wrong in ["[]", "{", "1"] {
            assert_eq!(entry(&["mcp"]).install(Some(wrong)), Err(SettingsEditError::NotAnObject));
            assert_eq!(McpEntry::uninstall(wrong), Err(SettingsEditError::NotAnObject));
        }
        let list = entry(&["mcp"]).install(Some("{\"mcpServers\":[]}"));
        assert_eq!(list, Err(SettingsEditError::UnexpectedType("mcpServers".to_owned())));
    }
}
