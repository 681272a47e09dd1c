//! Adds a permission rule to a settings file and removes it. Every other byte is preserved.

use threadline_entry::{Json, JsonKind};

use crate::hook_command::{SettingsChange, SettingsEditError};
use crate::json_text::{SettingsText, last_member, with_comma};

/// A permission rule in a settings file.
#[derive(Clone, Copy, Debug)]
pub struct RuleEntry<'a> {
    /// The list in `permissions`: `allow`, `ask` or `deny`.
    pub list: &'a str,
    /// The rule, such as `Bash(make *)`.
    pub rule: &'a str,
}

impl RuleEntry<'_> {
    /// Returns the settings with the rule at the end of its list. `settings` is `None` if there is no file.
    ///
    /// # Errors
    ///
    /// If the settings are not valid.
    pub fn add(&self, settings: Option<&str>) -> Result<SettingsChange, SettingsEditError> {
        let list = self.list;
        let quoted = serde_json::Value::from(self.rule).to_string();
        let Some(before) = settings.filter(|text| !text.trim().is_empty()) else {
            let text =
                format!("{{\n  \"permissions\": {{\n    \"{list}\": [\n      {quoted}\n    ]\n  }}\n}}\n");
            return Ok(SettingsChange::Write(text));
        };
        let text = SettingsText(before);
        let root = text.root()?;
        let one = |indent: &str, step: &str| format!("[\n{indent}{step}{quoted}\n{indent}]");
        let (at, added) = match self.find(root)? {
            FoundList::NoPermissions => last_member(&text, root, "permissions", |indent, step| {
                let inner = format!("{indent}{step}");
                format!("{{\n{inner}\"{list}\": {}\n{indent}}}", one(&inner, step))
            }),
            FoundList::NoList(permissions) => last_member(&text, permissions, list, one),
            FoundList::List(rules) if rules.items().any(|item| item.is_str(self.rule)) => {
                return Ok(SettingsChange::None);
            }
            FoundList::List(rules) => match rules.items().last() {
                Some(last) => {
                    let range = text.range(last);
                    let gap = if text.is_on_own_line(range.start) {
                        format!("\n{}", text.indent(range.start))
                    } else {
                        " ".to_owned()
                    };
                    (range.end, format!(",{gap}{quoted}"))
                }
                None => (text.range(rules).start + 1, quoted),
            },
        };
        let mut after = before.to_owned();
        after.insert_str(at, &added);
        Ok(SettingsChange::Write(after))
    }

    /// Returns the settings without the rule.
    ///
    /// # Errors
    ///
    /// If the settings are not valid.
    pub fn remove(&self, settings: &str) -> Result<SettingsChange, SettingsEditError> {
        let text = SettingsText(settings);
        let FoundList::List(rules) = self.find(text.root()?)? else { return Ok(SettingsChange::None) };
        let items: Vec<Json<'_>> = rules.items().collect();
        let ranges: Vec<_> = items.iter().map(|item| text.range(*item)).collect();
        let Some(at) = items.iter().position(|item| item.is_str(self.rule)) else {
            return Ok(SettingsChange::None);
        };
        let list = text.range(rules);
        // White space around the only item would be all that is left of the list.
        let range = if items.len() == 1 { list.start + 1..list.end - 1 } else { with_comma(&ranges, at) };
        let mut after = settings.to_owned();
        after.replace_range(range, "");
        Ok(SettingsChange::Write(after))
    }

    fn find<'j>(&self, root: Json<'j>) -> Result<FoundList<'j>, SettingsEditError> {
        let unexpected = |name: String| Err(SettingsEditError::UnexpectedType(name));
        let Some(permissions) = root.get("permissions") else { return Ok(FoundList::NoPermissions) };
        if !permissions.is_object() {
            return unexpected("permissions".to_owned());
        }
        let Some(rules) = permissions.get(self.list) else { return Ok(FoundList::NoList(permissions)) };
        if rules.kind() != JsonKind::Array {
            return unexpected(format!("permissions.{}", self.list));
        }
        Ok(FoundList::List(rules))
    }
}

/// How much of the path to a list of rules exists.
enum FoundList<'j> {
    NoPermissions,
    NoList(Json<'j>),
    List(Json<'j>),
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKE: RuleEntry<'_> = RuleEntry { list: "allow", rule: "Bash(make *)" };

    fn written(change: Result<SettingsChange, SettingsEditError>) -> String {
        match change {
            Ok(SettingsChange::Write(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_rule_is_added_and_every_other_byte_stays() {
        let cases = [
            ("{}", "{\"permissions\": {\n  \"allow\": [\n    \"Bash(make *)\"\n  ]\n}}"),
            (
                "{\n\t\"a\": 1.50\n}\n",
                "{\n\t\"a\": 1.50,\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Bash(make *)\"\n\t\t]\n\t}\n}\n",
            ),
            (
                r#"{"permissions": {"deny": ["Read(.env)"]}, "z": []}"#,
                "{\"permissions\": {\"deny\": [\"Read(.env)\"], \"allow\": [\n  \"Bash(make *)\"\n]}, \"z\": []}",
            ),
            (
                r#"{"permissions": {"allow": ["Edit"]}}"#,
                r#"{"permissions": {"allow": ["Edit", "Bash(make *)"]}}"#,
            ),
            (
                "{\"permissions\": {\"allow\": [\n  \"Edit\"\n]}}",
                "{\"permissions\": {\"allow\": [\n  \"Edit\",\n  \"Bash(make *)\"\n]}}",
            ),
            (r#"{"permissions": {"allow": []}}"#, r#"{"permissions": {"allow": ["Bash(make *)"]}}"#),
        ];
        for (before, after) in cases {
            assert_eq!(written(MAKE.add(Some(before))), after, "{before}");
            assert_eq!(MAKE.add(Some(after)), Ok(SettingsChange::None), "{before}");
        }
        let new = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(make *)\"\n    ]\n  }\n}\n";
        for empty in [None, Some(" \n")] {
            assert_eq!(written(MAKE.add(empty)), new);
        }
    }

    #[test]
    fn a_rule_is_removed_and_every_other_byte_stays() {
        let cases = [
            (
                r#"{"a": 1, "permissions": {"allow": ["Bash(make *)"]}}"#,
                r#"{"a": 1, "permissions": {"allow": []}}"#,
            ),
            (
                r#"{"permissions": {"allow": ["Bash(make *)", "Edit"], "deny": ["Bash(make *)"]}}"#,
                r#"{"permissions": {"allow": ["Edit"], "deny": ["Bash(make *)"]}}"#,
            ),
            (
                "{\"permissions\": {\"allow\": [\n  \"Edit\",\n  \"Bash(make *)\"\n]}}",
                "{\"permissions\": {\"allow\": [\n  \"Edit\"\n]}}",
            ),
            (
                "{\"permissions\": {\"allow\": [\n  \"Bash(\\u006dake *)\",\n  \"Edit\"\n]}}",
                "{\"permissions\": {\"allow\": [\n  \"Edit\"\n]}}",
            ),
        ];
        for (before, after) in cases {
            assert_eq!(written(MAKE.remove(before)), after, "{before}");
        }
        for without in ["{}", r#"{"permissions": {}}"#, r#"{"permissions": {"allow": ["Edit"]}}"#] {
            assert_eq!(MAKE.remove(without), Ok(SettingsChange::None), "{without}");
        }
    }

    #[test]
    fn a_file_that_is_not_valid_is_not_changed() {
        for broken in ["[]", "{", r#"{"permissions": 1}"#, r#"{"permissions": {"allow": {}}}"#] {
            assert!(MAKE.add(Some(broken)).is_err(), "{broken}");
            assert!(MAKE.remove(broken).is_err(), "{broken}");
        }
    }
}
