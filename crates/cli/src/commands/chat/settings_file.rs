//! Changes files with settings. Everything else in them stays, in its order.

use serde_json::value::RawValue;
use threadline_api::RawObject;

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
}
