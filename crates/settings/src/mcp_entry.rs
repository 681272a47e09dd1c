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
        let Some(before) = config else {
            return Ok(SettingsChange::Write(self.whole_file() + "\n"));
        };
        keep_byte_order_mark(before, |before| self.install_into(before))
    }

    /// Returns the text of a file with the server alone, without a line end.
    fn whole_file(&self) -> String {
        format!("{{\n  \"{SERVERS}\": {{\n    \"{NAME}\": {}\n  }}\n}}", self.value())
    }

    fn install_into(&self, before: &str) -> Result<SettingsChange, SettingsEditError> {
        if before.trim().is_empty() {
            // The white space in front distinguishes the file from one that was created; see `uninstall`.
            return Ok(SettingsChange::Write(before.to_owned() + &self.whole_file()));
        }
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
        let has_crlf = before.contains("\r\n");
        let added = if has_crlf { added.replace('\n', "\r\n") } else { added };
        let mut after = before.to_owned();
        after.replace_range(range, &added);
        Ok(if after == before { SettingsChange::None } else { SettingsChange::Write(after) })
    }

    /// Returns the configuration with the server removed. All other bytes are preserved.
    ///
    /// # Errors
    ///
    /// If the configuration is not valid, or another server has the name.
    pub fn uninstall(config: &str) -> Result<SettingsChange, SettingsEditError> {
        keep_byte_order_mark(config, uninstall_from)
    }

    /// Returns whether a configuration contains our server.
    pub fn is_installed(config: &str) -> bool {
        let root = SettingsText(config.strip_prefix(MARK).unwrap_or(config)).root();
        let server = root.ok().and_then(|root| root.get(SERVERS)?.get(NAME));
        server.is_some_and(is_own)
    }

    fn value(&self) -> String {
        let word = |text: &String| serde_json::to_string(text).unwrap_or_default();
        let arguments: Vec<String> = self.arguments.iter().map(word).collect();
        let (program, arguments) = (word(&self.program), arguments.join(", "));
        format!("{{ \"type\": \"stdio\", \"command\": {program}, \"args\": [{arguments}] }}")
    }
}

/// The byte order mark, which some editors write.
const MARK: char = '\u{feff}';

/// Changes a text without its byte order mark, and puts the mark back.
fn keep_byte_order_mark(
    text: &str,
    change: impl FnOnce(&str) -> Result<SettingsChange, SettingsEditError>,
) -> Result<SettingsChange, SettingsEditError> {
    let Some(rest) = text.strip_prefix(MARK) else { return change(text) };
    Ok(match change(rest)? {
        SettingsChange::Write(after) => SettingsChange::Write(format!("{MARK}{after}")),
        SettingsChange::Remove => SettingsChange::Write(MARK.to_string()),
        SettingsChange::None => SettingsChange::None,
    })
}

/// The remainder of a file that `install` created, or that had only white space before.
const EMPTIED: &str = "{\n  \n}";

/// Removes the server from a text without a byte order mark.
fn uninstall_from(config: &str) -> Result<SettingsChange, SettingsEditError> {
    if config.trim().is_empty() {
        return Ok(SettingsChange::None);
    }
    let text = SettingsText(config);
    let root = text.root()?;
    let servers = root.get(SERVERS).filter(|servers| servers.is_object());
    let Some((servers, entry)) = servers.and_then(|servers| Some((servers, servers.get(NAME)?))) else {
        return Ok(SettingsChange::None);
    };
    if !is_own(entry) {
        return Err(SettingsEditError::NameInUse(format!("{SERVERS}.{NAME}")));
    }
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
    Ok(match after.strip_suffix(EMPTIED) {
        _ if after.strip_suffix('\n') == Some(EMPTIED) => SettingsChange::Remove,
        Some(space) if space.trim().is_empty() => SettingsChange::Write(space.to_owned()),
        _ => SettingsChange::Write(after),
    })
}

/// Returns the ranges of the members of an object, and the index of the last one with this name, which is the
/// one that counts.
fn members(text: &SettingsText<'_>, object: Json<'_>, name: &str) -> (Vec<Range<usize>>, usize) {
    let range = |(key, value): (JsonKey<'_>, Json<'_>)| key_start(text, key)..text.range(value).end;
    let at = object.members().enumerate().filter(|(_, (key, _))| key.is(name)).map(|(at, _)| at).last();
    (object.members().map(range).collect(), at.unwrap_or(0))
}

/// Returns whether a server runs `threadline mcp`. The program may have another name if the entry has the
/// form that [`McpEntry::install`] writes.
fn is_own(server: Json<'_>) -> bool {
    let program = server.get("command").and_then(Json::as_str).unwrap_or_default();
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    // Options of every command may precede the name of the command.
    let arguments: Vec<_> =
        server.get("args").into_iter().flat_map(Json::items).map(|argument| argument.as_str()).collect();
    let has_own_name = name.trim_end_matches(".exe") == "threadline";
    let is_installed = program.len() > name.len()
        && server
            .members()
            .map(|(key, _)| key)
            .zip(["type", "command", "args"])
            .all(|(key, own)| key.is(own))
        && server.members().count() == 3
        && arguments.first().is_some_and(|first| first.as_deref() == Some("mcp"));
    (has_own_name || is_installed) && arguments.iter().any(|argument| argument.as_deref() == Some("mcp"))
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
            "{\r\n  \"numStartups\": 3\r\n}\r\n",
            "",
            " \n",
            "\u{feff}{\n  \"numStartups\": 3\n}\n",
            "\u{feff}",
            "{\"a\":\"\\u007d\",\"mcpServers\":{\"x\":{\"command\":\"}\"}}}",
        ] {
            let after = written(entry(&["mcp"]).install(Some(before)));
            let bare = after.trim_start_matches('\u{feff}');
            assert_eq!(before.contains("\r\n"), bare.replace("\r\n", "").len() != bare.len());
            assert!(!before.contains("\r\n") || !bare.replace("\r\n", "").contains('\n'), "{after:?}");
            let json = Json::parse(bare).unwrap_or_else(|| panic!("{after}"));
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
    }

    #[test]
    fn servers_of_others_are_kept() {
        let other = "{\"mcpServers\":{\"threadline\":{\"command\":\"npx\",\"args\":[\"mcp\"]}}}";
        let error = entry(&["mcp"]).install(Some(other)).unwrap_err();
        assert_eq!(error, SettingsEditError::NameInUse("mcpServers.threadline".to_owned()));
        assert_eq!(McpEntry::uninstall(other), Err(error));
        assert_eq!(McpEntry::uninstall("{\"mcpServers\":{}}"), Ok(SettingsChange::None));
        // A server that the user added behind ours.
        let first = "{\"mcpServers\":{\"threadline\":{\"command\":\"threadline\",\"args\":[\"--demo\",\"mcp\"]}, \"b\":{}}}";
        assert_eq!(written(McpEntry::uninstall(first)), "{\"mcpServers\":{\"b\":{}}}");
    }

    #[test]
    fn a_program_with_another_name_is_recognised() {
        let entry = McpEntry { program: "/opt/bin/tl-0.3".to_owned(), arguments: vec!["mcp".to_owned()] };
        let made = written(entry.install(Some("{}")));
        assert_eq!(entry.install(Some(&made)), Ok(SettingsChange::None));
        assert_eq!(written(McpEntry::uninstall(&made)), "{}");
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
