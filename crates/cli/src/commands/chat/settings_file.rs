//! Changes files with settings. Everything else in them stays, in its order.

use serde_json::value::RawValue;
use threadline_api::RawObject;

/// Returns the text of a settings file with more allow rules, or `None` if it is not a JSON object.
pub(super) fn with_allow_rules(text: Option<&str>, rules: &[String]) -> Option<String> {
    let text = text.filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let mut settings = RawObject::parse(text).ok()?;
    let mut permissions = match settings.get("permissions") {
        Some(_) => settings.get_object("permissions")?,
        None => RawObject::new(),
    };
    let mut allow: Vec<String> = match permissions.get("allow") {
        Some(list) => serde_json::from_str(list.get()).ok()?,
        None => Vec::new(),
    };
    for rule in rules {
        if !allow.contains(rule) {
            allow.push(rule.clone());
        }
    }
    permissions.set("allow", allow);
    settings.set("permissions", permissions);
    let mut out = String::new();
    write_pretty(&settings.to_json(), 0, &mut out);
    out.push('\n');
    Some(out)
}

/// Returns the text of the file with the state of Claude Code, in which a folder is trusted; `None` if it is
/// not a JSON object.
pub(super) fn with_trusted_folder(text: Option<&str>, folder: &str) -> Option<String> {
    let text = text.filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let mut state = RawObject::parse(text).ok()?;
    let member = |object: &RawObject, key: &str| match object.get(key) {
        Some(_) => object.get_object(key),
        None => Some(RawObject::new()),
    };
    let mut projects = member(&state, "projects")?;
    let mut project = member(&projects, folder)?;
    project.set("hasTrustDialogAccepted", true);
    projects.set(folder, project);
    state.set("projects", projects);
    let mut out = String::new();
    write_pretty(&state.to_json(), 0, &mut out);
    out.push('\n');
    Some(out)
}

/// Writes JSON with an indent of two spaces.
fn write_pretty(json: &str, indent: usize, out: &mut String) {
    let gap = |indent: usize| "  ".repeat(indent);
    if let Ok(object) = RawObject::parse(json)
        && !object.is_empty()
    {
        out.push_str("{\n");
        for (i, (key, value)) in object.members().enumerate() {
            out.push_str(if i == 0 { "" } else { ",\n" });
            out.push_str(&format!("{}{}: ", gap(indent + 1), serde_json::Value::from(key)));
            write_pretty(value.get(), indent + 1, out);
        }
        out.push_str(&format!("\n{}}}", gap(indent)));
    } else if let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(json)
        && !list.is_empty()
    {
        out.push_str("[\n");
        for (i, value) in list.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ",\n" });
            out.push_str(&gap(indent + 1));
            write_pretty(value.get(), indent + 1, out);
        }
        out.push_str(&format!("\n{}]", gap(indent)));
    } else {
        out.push_str(json.trim());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_trusted_and_the_rest_stays() {
        let old = r#"{"numStartups": 5, "projects": {"/a": {"x": 1.0, "hasTrustDialogAccepted": false}}, "z": null}"#;
        let new = with_trusted_folder(Some(old), "/a").unwrap();
        let compact: String = new.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            compact,
            r#"{ "numStartups": 5, "projects": { "/a": { "x": 1.0, "hasTrustDialogAccepted": true } }, "z": null }"#
        );
        assert!(with_trusted_folder(None, "/b").unwrap().contains("\"/b\": {\n"));
        for broken in ["[]", "{", r#"{"projects": 1}"#, r#"{"projects": {"/a": []}}"#] {
            assert_eq!(with_trusted_folder(Some(broken), "/a"), None, "{broken}");
        }
    }

    #[test]
    fn rules_are_added_and_the_rest_stays() {
        let rules = ["Bash(make *)".to_owned(), "Edit".to_owned()];
        let new = with_allow_rules(None, &rules).unwrap();
        assert_eq!(
            new,
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(make *)\",\n      \"Edit\"\n    ]\n  }\n}\n"
        );
        let old =
            r#"{"z": [], "permissions": {"deny": ["Read(.env)"], "allow": ["Edit"]}, "a": {"b": 1.50}}"#;
        let new = with_allow_rules(Some(old), &rules).unwrap();
        let compact: String = new.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            compact,
            r#"{ "z": [], "permissions": { "deny": [ "Read(.env)" ], "allow": [ "Edit", "Bash(make *)" ] }, "a": { "b": 1.50 } }"#
        );
        for broken in ["[]", "{", r#"{"permissions": 1}"#, r#"{"permissions": {"allow": {}}}"#] {
            assert_eq!(with_allow_rules(Some(broken), &rules), None, "{broken}");
        }
    }
}
