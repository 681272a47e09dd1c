//! Keys that no lens defines are reported, at any depth of a line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use threadline_entry::lens::drift;
use threadline_entry::{Entry, Kind};

/// The key that is inserted into every object.
const NEW_KEY: &str = "keyOfNextWeek";

/// Objects with arbitrary keys that are not part of the format.
const OPEN_OBJECTS: &[&str] = &[
    // Written by the model, according to the schema of a tool.
    "<tool_use>.input",
    "<server_tool_use>.input",
    // Schemas of tools, and answers in a schema that a user requested.
    ".input_schema",
    "attachment.attachment<prompt_snapshot>.tools",
    "attachment.attachment<structured_output>.data",
    // Copies of requests.
    "api-request.params",
    "api-request.cacheControl",
    "api-request-shape.shape",
    "api-request-blob.message",
    // In the formats of other programs.
    "<notebook>.file.cells[].outputs",
    "<task_reminder>.content[].metadata",
];

/// Objects with arbitrary keys and values of one type.
const MAPS: &[&str] = &[
    "cost-state.modelUsage",
    "file-history-snapshot.snapshot.trackedFileBackups",
    "user.toolUseResult.annotations",
    "user.toolUseResult.answers",
];

/// Returns the paths of objects in which a new key is not reported, with `[]` for the items of a list.
fn objects_without_drift_report(log: &[u8], seen: &mut BTreeSet<String>) -> BTreeMap<String, usize> {
    let mut missed = BTreeMap::new();
    for line in log.split(|byte| *byte == b'\n') {
        let Ok(Value::Object(line)) = serde_json::from_slice(line) else { continue };
        let line = Value::Object(line);
        let entry = Entry::parse(line.to_string().as_bytes()).0;
        if matches!(entry.kind(), Kind::Unknown | Kind::Untyped | Kind::Bad | Kind::Blank) {
            continue;
        }
        let mut unknown = Vec::new();
        drift(&entry, &mut |path| unknown.extend(path.rsplit('.').next().map(str::to_owned)));
        let mut objects = Vec::new();
        find_objects(&line, entry.kind().name().unwrap_or_default(), &mut Vec::new(), &mut objects);
        for (path, pointer) in objects {
            // An unknown key is reported itself, so its contents are not.
            let is_named = |key: &String| path.split(['.', '[', '<']).any(|step| step == key);
            let is_open = unknown.iter().any(is_named)
                || OPEN_OBJECTS.iter().any(|open| path.contains(open))
                || MAPS.contains(&&*path);
            if is_open || !seen.insert(path.clone()) {
                continue;
            }
            let mut changed = line.clone();
            let object = changed.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap();
            object.insert(NEW_KEY.to_owned(), Value::from(1));
            let changed = Entry::parse(changed.to_string().as_bytes()).0;
            let mut is_named = false;
            drift(&changed, &mut |found| is_named |= found.ends_with(NEW_KEY));
            if !is_named {
                *missed.entry(path).or_insert(0) += 1;
            }
        }
    }
    missed
}

/// Collects every object in a value: its path, and its JSON pointer.
fn find_objects(value: &Value, path: &str, pointer: &mut Vec<String>, found: &mut Vec<(String, String)>) {
    let mut inside = |value: &Value, path: &str, step: String| {
        pointer.push(step);
        find_objects(value, path, pointer, found);
        pointer.pop();
    };
    match value {
        Value::Object(members) => {
            let name = kind_of(members).map(|kind| format!("{path}<{kind}>"));
            let path = name.as_deref().filter(|_| path.contains('.')).unwrap_or(path);
            for (key, value) in members {
                inside(value, &format!("{path}.{key}"), key.replace('~', "~0").replace('/', "~1"));
            }
            let pointer: String = pointer.iter().map(|step| format!("/{step}")).collect();
            found.push((path.to_owned(), pointer));
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                inside(item, &format!("{path}[]"), i.to_string());
            }
        }
        _ => {}
    }
}

fn kind_of(members: &Map<String, Value>) -> Option<&str> {
    members.get("type")?.as_str()
}

#[test]
fn a_new_key_is_reported_in_every_object_of_every_sample() {
    let (mut seen, mut missed) = (BTreeSet::new(), BTreeMap::new());
    for sample in threadline_testkit::samples() {
        missed.append(&mut objects_without_drift_report(&sample.log, &mut seen));
        for (_, log) in &sample.agents {
            missed.append(&mut objects_without_drift_report(log, &mut seen));
        }
    }
    assert!(missed.is_empty(), "{} of {} kinds of objects: {missed:#?}", missed.len(), seen.len());
}

#[test]
fn a_new_key_is_reported_in_every_object_of_every_real_log() {
    let (mut seen, mut missed) = (BTreeSet::new(), BTreeMap::new());
    for path in threadline_testkit::shared_logs() {
        missed.append(&mut objects_without_drift_report(&std::fs::read(&path).unwrap(), &mut seen));
    }
    assert!(missed.is_empty(), "{} of {} kinds of objects: {missed:#?}", missed.len(), seen.len());
}

#[test]
fn a_new_header_of_a_failed_request_is_reported() {
    let line = r#"{"type":"system","subtype":"api_error","error":{"status":529,"headers":{"retry-after":"7","x-new":1}}}"#;
    let mut unknown = Vec::new();
    drift(&Entry::parse(line.as_bytes()).0, &mut |path| unknown.push(path.to_owned()));
    assert_eq!(unknown, ["system.error.headers.x-new"]);
}

#[test]
fn deeply_nested_values_do_not_overflow_the_stack() {
    let list = format!("{}1{}", "[".repeat(510), "]".repeat(510));
    let block = r#"[{"type":"tool_result","tool_use_id":"t","content":"#;
    let blocks = format!("{}[]{}", block.repeat(250), "}]".repeat(250));
    for line in [
        format!(r#"{{"type":"user","uuid":"u","gitBranch":{list},"toolUseResult":{list}}}"#),
        format!(r#"{{"type":"user","uuid":"u","message":{{"role":"user","content":{blocks}}}}}"#),
    ] {
        let (entry, _) = Entry::parse(line.as_bytes());
        assert!(entry.object().is_some());
        drift(&entry, &mut |_| ());
    }
}
