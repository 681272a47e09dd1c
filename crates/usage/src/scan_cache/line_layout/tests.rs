use proptest::prelude::*;
use serde_json::Value;

use super::LineLayoutCache;

const PATHS: [&[&str]; 6] = [
    &["type"],
    &["message", "id"],
    &["message", "usage", "in"],
    &["message", "usage", "deep", "x"],
    &["message", "usage", "deep", "y"],
    &["branch"],
];

fn layout_cache() -> LineLayoutCache<6> {
    LineLayoutCache::new(PATHS, &[1])
}

/// Checks that the values read equal those of serde_json; returns whether any were read.
fn assert_agrees(trails: &mut LineLayoutCache<6>, line: &str) -> Result<bool, TestCaseError> {
    let Ok(value) = serde_json::from_str::<Value>(line) else { return Ok(false) };
    let mut any = false;
    for hit in memchr::memmem::find_iter(line.as_bytes(), b"\"usage\"") {
        let Some(found) = trails.read(line.as_bytes(), hit) else { continue };
        any = true;
        for (i, path) in PATHS.iter().enumerate() {
            let expected = path.iter().try_fold(&value, |value, key| value.as_object()?.get(*key));
            let found = found.get(i).map(|json| serde_json::from_str::<Value>(json.raw()).unwrap());
            prop_assert_eq!(found.as_ref(), expected, "{:?} of {}", path, line);
        }
    }
    Ok(any)
}

#[test]
fn a_line_with_a_known_layout_is_read_from_the_cache() {
    let mut trails = layout_cache();
    let line = |id: &str, content: &str, usage: &str| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":{id},\"content\":{content},\"usage\":{usage}}},\"branch\":\"é\"}}"
        )
    };
    for (id, content, usage) in [
        ("\"a\"", "[]", r#"{"in":1,"deep":{"x":2}}"#),
        ("\"b\\\"\"", r#"[{"usage":{"in":7},"a":"}},\"usage\""}]"#, r#"{"in":10,"deep":{"x":20}}"#),
        ("null", "\"text\"", r#"{"in":"1","deep":{"x":{"y":1}}}"#),
    ] {
        assert!(assert_agrees(&mut trails, &line(id, content, usage)).unwrap(), "{usage}");
        assert_eq!(trails.layouts.len(), 1);
    }
    // A value that was not an object before may be one now.
    for usage in ["{\"deep\":null}", "{\"deep\":{\"x\":1}}", "{\"deep\":{}}", "{\"deep\":null}"] {
        assert!(assert_agrees(&mut trails, &line("1", "[]", usage)).unwrap(), "{usage}");
    }
    assert_eq!(trails.layouts.len(), 4);
    for odd in [
        r#"{"message":{"id":1,"content":[],"usage":{}},"message":{"usage":{}}}"#,
        r#"{"message":{"id":1,"content":[],"usage":{}},"message":"none"}"#,
        r#"{"message":{"id":1,"content":[],"usage":{"in":1,"in":2}}}"#,
        r#"{"message":{"id":1,"content":[],"usage":{"i\u006e":1}}}"#,
        r#"{"message":{"content":[],"id":1,"usage":{}}}"#,
        r#"{"message":{"id":1,"usage":{}}}"#,
        r#"{"message":{"id":1,"content":[],"usage":{}}}{}"#,
        r#"{"message":{"id":1,"content":[]},"other":{"usage":{}}}"#,
        r#"{"message":{"id":1,"content":[],"usage":{}}"#,
        "\"usage\"",
    ] {
        let hit = odd.find("\"usage\"").unwrap();
        assert!(trails.read(odd.as_bytes(), hit).is_none(), "{odd}");
    }
}

#[test]
fn stable_values_may_change() {
    let mut trails = layout_cache();
    let line = |id: &str, deep: &str, branch: &str| {
        let message = format!(r#"{{"id":{id},"content":[1],"usage":{{"in":null,"deep":{{"x":{deep}}}}}}}"#);
        format!(r#"{{"type":"assistant","message":{message},"branch":{branch},"last":true}}"#)
    };
    for (id, deep, branch) in [
        ("\"a\"", "\"x\"", "\"b\""),
        ("\"a\"", "\"x\"", "\"b\""),
        ("\"a\"", "\"x\"", "\"b\""),
        ("\"ab\"", "\"x\"", "\"b\""),
        ("\"a\"", "\"x\"", "\"\""),
        ("\"a\"", "{\"x\":\"x\"}", "\"b\\\"\""),
        ("true", "\"x\"", "\"b\""),
        ("\"a\"", "\"x\"", "{}"),
    ] {
        assert!(assert_agrees(&mut trails, &line(id, deep, branch)).unwrap(), "{id} {deep} {branch}");
        assert_eq!(trails.layouts.len(), 1);
    }
    let short = trails.layouts[0].fast_path.as_ref().unwrap();
    assert_eq!(short.template.steps.len(), 4, "id, content, branch, and the end; x changed twice");
}

#[test]
fn lines_with_equal_stable_values_have_equal_ids() {
    let mut trails = layout_cache();
    let mut alike_in = |kind: &str, id: &str, branch: &str, paths: &[usize]| {
        let message = format!(r#"{{"id":"{id}","content":[],"usage":{{"in":1}}}}"#);
        let line = format!(r#"{{"type":"{kind}","message":{message},"branch":"{branch}"}}"#);
        let found = trails.read(line.as_bytes(), line.find("\"usage\"").unwrap()).unwrap();
        found.stable_values_id(paths.iter().fold(0, |all, path| all | 1 << path))
    };
    let (kind, id, tokens, missing, branch) = (0, 1, 2, 4, 5);
    assert_eq!(alike_in("a", "1", "main", &[kind]), None, "no earlier line to compare with");
    assert_eq!(alike_in("a", "2", "main", &[kind]), None, "a changing value is learned");
    let first = alike_in("a", "3", "main", &[kind, missing, branch]);
    assert!(first.is_some());
    assert_eq!(alike_in("a", "4", "main", &[kind, missing, branch]), first);
    assert_eq!(alike_in("a", "4", "main", &[kind, id]), None);
    assert_eq!(alike_in("a", "4", "main", &[tokens]), None, "numbers change");
    // A value that changes rarely is compared with its last value.
    for name in ["other", "main"] {
        assert_eq!(alike_in("a", "5", name, &[kind]), None);
        let again = alike_in("a", "6", name, &[kind, branch]);
        assert!(again.is_some() && again != first);
        assert_eq!(alike_in("a", "7", name, &[kind, branch]), again);
    }
    assert_eq!(alike_in("a", "5", "other", &[kind]), None);
    let often = alike_in("a", "5", "main", &[kind, missing]);
    assert!(often.is_some());
    assert_eq!(alike_in("a", "6", "other", &[kind, missing]), often);
    assert_eq!(alike_in("a", "6", "other", &[branch]), None);
}

fn any_object(value: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> + Clone {
    let name = prop::sample::select(vec!["in", "deep", "x", "y", "id", "usage", "content", "message"]);
    let member = (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(",")))
}

/// Mostly lines of the expected structure, and some that differ.
fn any_line() -> impl Strategy<Value = String> {
    let plain =
        prop::sample::select(vec!["1", "null", "\"\"", "\"}\\\",\"", "[]", "[{\"usage\":1}]", "{}", "\"é\""]);
    let leaf = plain.prop_map(str::to_owned);
    let value = prop_oneof![3 => leaf.clone(), 1 => any_object(leaf.clone())];
    let usage = prop_oneof![
        4 => (leaf.clone(), value.clone()).prop_map(|(a, b)| format!("{{\"in\":{a},\"deep\":{b}}}")),
        1 => any_object(value.clone())
    ];
    let message = prop_oneof![
        4 => (value.clone(), usage.clone())
            .prop_map(|(content, usage)| format!("{{\"id\":1,\"content\":{content},\"usage\":{usage}}}")),
        1 => any_object(prop_oneof![value.clone(), usage])
    ];
    (message, leaf.clone(), prop_oneof![4 => Just(String::new()), 1 => any_object(value)]).prop_map(
        |(message, branch, more)| {
            let more = if more.is_empty() { more } else { format!(",\"message\":{more}") };
            format!("{{\"type\":\"x\",\"message\":{message},\"branch\":{branch}{more}}}")
        },
    )
}

proptest! {
    #[test]
    fn cached_layouts_and_serde_json_agree_on_any_lines(lines in prop::collection::vec(any_line(), 1..12)) {
        let mut trails = layout_cache();
        for line in &lines {
            assert_agrees(&mut trails, line)?;
        }
    }

    #[test]
    fn the_cache_does_not_panic_on_any_bytes(
        lines in prop::collection::vec(any_line(), 2..4), cut in any::<prop::sample::Index>(), put in any::<u8>()
    ) {
        let mut trails = layout_cache();
        for line in lines {
            let mut line = line.into_bytes();
            let hit = memchr::memmem::find(&line, b"\"usage\"").unwrap_or(0);
            let _ = trails.read(&line, hit);
            let at = cut.index(line.len());
            line[at] = put;
            let _ = trails.read(&line, hit);
            let _ = trails.read(&line, at);
            let _ = trails.read(&line[..at], hit);
        }
    }
}
