//! The layers keep their borders: keys and values of the format are spelled in `entry` only, public JSON in
//! `view::wire` only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Keys that are also something else, so that the word alone does not show a violation.
///
/// Keys without an underscore or an upper-case letter (`type`, `message`, `text`, `usage`, …) are words that
/// labels, CSS classes and our own JSON use too. Of those, only [`LOOKED_UP_KEYS`] are checked, and only
/// where they are looked up.
const AMBIGUOUS_KEYS: &[&str] = &[
    // Also a type of blocks.
    "server_tool_use",
    // Also inputs of tools. An input belongs to its tool, not to the log, and is read where that tool is.
    "activeForm",
    "blockedBy",
    "cell_id",
    "edit_mode",
    "new_source",
    "new_string",
    "notebook_path",
    "old_string",
    "replace_all",
    "shell_id",
    "taskId",
    "task_id",
];

/// Words that are looked up with `get("…")` in nothing but lines, messages and blocks.
const LOOKED_UP_KEYS: &[&str] =
    &["attachment", "cwd", "rendered", "subtype", "timestamp", "type", "usage", "uuid"];

/// Files that use the same word for something else.
const OTHER_USES: &[(&str, &str, &str)] = &[
    ("agent/src/permission.rs", "toolName", "a member of a rule in the control protocol"),
    ("agent/src/plan_mode.rs", "planFilePath", "an input of ExitPlanMode"),
    ("agent/src/skill_tool.rs", "commandName", "a member of the tool's own result"),
    ("trace/src/generation.rs", "cache_read_input_tokens", "an attribute of a Langfuse span"),
    ("view/src/card/search.rs", "filePath", "an input of the LSP tool"),
    ("view/src/transcript_writer/notice.rs", "total_tokens", "a tag in the text of a notification"),
    ("view/src/transcript_writer/notice.rs", "teammate_id", "an attribute in the text of a message"),
];

/// Files that use the same word as a value of the format for something else.
const OTHER_VALUES: &[(&str, &str, &str)] = &[
    ("session/src/input.rs", "tool_result", "a kind of input in our public JSON"),
    ("trace/src/event.rs", "api_error", "the name of an event in a span"),
];

/// Sources of the client, which implement other protocols with the same words as logs, and whether all of
/// the keys may appear. Where they may not, keys in camel case belong to logs only.
const PROTOCOLS: &[(&str, bool, &str)] = &[
    ("api/", true, "the Messages API"),
    ("tools/", true, "inputs, results and files of tools"),
    ("agent/", false, "messages of the API"),
    ("mcp-client/", true, "the Model Context Protocol"),
    ("mcp-server/", true, "the Model Context Protocol"),
    ("cli/src/commands/chat", true, "the events that Claude Code prints"),
];

/// Files outside of `view::wire` that serialise JSON, and why it is not our public output.
const OTHER_JSON: &[(&str, &str)] = &[
    ("app/src/file_copies/call_log.rs", "the record of the calls of a session on disk"),
    ("app/src/file_copies/content_store.rs", "hashes in that record"),
    ("app/src/file_copies/file_index.rs", "words of that record"),
    ("app/src/file_copies/recorder.rs", "calls that have not ended, on disk"),
    ("archive/src/level.rs", "a level in the objects of an archive"),
    ("archive/src/manifest.rs", "the manifests of an archive"),
    ("archive/src/segment.rs", "the table of a segment of an archive"),
    ("cli/src/commands/export/all.rs", "the manifest in an export folder, which only the next export reads"),
    ("cli/src/ui.rs", "prints any value of view::wire"),
    ("store/src/op/operation.rs", "receipts on disk"),
    ("store/src/op/receipt.rs", "receipts on disk"),
    ("tables/src/partition.rs", "the name of the type that writes Parquet files"),
    ("trace/src/state.rs", "the state of an export on disk"),
    ("web/src/pages/live.rs", "events for the page's own script"),
    ("web/src/pages/session.rs", "answers to the page's own script"),
    ("web/src/response.rs", "writes any value of view::wire"),
];

/// Files whose types are stored in cache files, which only the same build reads. They are never JSON.
const CACHED: &[&str] = &[
    "app/src/cache_file.rs",
    "app/src/figures.rs",
    "app/src/log_cache.rs",
    "app/src/overview/facts.rs",
    "session/src/activity.rs",
    "session/src/tool_call.rs",
    "usage/src/call_key.rs",
    "usage/src/figures.rs",
    "usage/src/money.rs",
    "usage/src/name_table.rs",
    "usage/src/reconcile.rs",
    "usage/src/reply_line.rs",
    "usage/src/scan.rs",
    "usage/src/totals.rs",
    "view/src/session_card.rs",
];

/// The source of one file: its path below `crates`, and its code without comments and inline tests.
struct SourceFile {
    path: String,
    code: String,
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap().replace("\r\n", "\n")
}

/// Returns the sources of all crates except `testkit`, without tests.
fn sources() -> Vec<SourceFile> {
    fn visit(dir: &Path, root: &Path, out: &mut Vec<SourceFile>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|name| name == "tests");
            if path.is_dir() && !is_test {
                visit(&path, root, out);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                out.push(SourceFile { path: name, code: code_of(&read(&path)) });
            }
        }
    }
    let root = crates();
    let mut out = Vec::new();
    for entry in std::fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        if path.join("src").is_dir() && path.file_name().is_none_or(|name| name != "testkit") {
            visit(&path.join("src"), &root, &mut out);
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(out.len() > 200, "only {} files found", out.len());
    out
}

/// Returns the code before the inline tests, without lines that are comments.
fn code_of(text: &str) -> String {
    let end = text.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| {
        let line = text[*at..].lines().nth(1).unwrap_or_default();
        line.ends_with('{')
    });
    let code = &text[..end.map_or(text.len(), |(at, _)| at)];
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the keys that the lenses define: the literals of `name: Type = "key",` in their tables.
fn lens_keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for entry in std::fs::read_dir(crates().join("entry/src/lens")).unwrap() {
        for line in read(&entry.unwrap().path()).lines() {
            let field = line.trim().strip_suffix("\",").and_then(|line| line.rsplit_once(" = \""));
            if let Some((_, key)) = field.filter(|(field, _)| field.contains(": ")) {
                keys.insert(key.to_owned());
            }
        }
    }
    assert!(keys.len() > 500, "only {} keys found", keys.len());
    keys
}

/// Returns every word of `code` that is in quotes, escaped or not: `"word"` or `\"word\"`.
fn quoted_words(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices('"').filter_map(|(at, _)| {
        let rest = &code[at + 1..];
        let is_word = |ch: char| ch.is_ascii_alphanumeric() || ch == '_';
        let end = rest.find(|ch| !is_word(ch))?;
        let closes = rest[end..].starts_with('"') || rest[end..].starts_with("\\\"");
        (end > 0 && closes).then_some(&rest[..end])
    })
}

#[test]
fn quoted_words_are_found_in_any_quotes() {
    let found: Vec<_> =
        quoted_words(r##"get("isMeta"), "\"cwd\":", r#""a_b":true"#, "two words""##).collect();
    assert!(["isMeta", "cwd", "a_b"].iter().all(|word| found.contains(word)), "{found:?}");
    assert!(!found.contains(&"two"), "{found:?}");
}

#[test]
fn format_keys_are_spelled_in_entry_only() {
    let mut keys = lens_keys();
    keys.retain(|key| key.contains(|ch: char| ch == '_' || ch.is_ascii_uppercase()));
    for ambiguous in AMBIGUOUS_KEYS {
        assert!(keys.remove(*ambiguous), "`{ambiguous}` is not a key of the lenses any more");
    }
    let mut unused: Vec<_> = OTHER_USES.iter().map(|(path, key, _)| (*path, *key)).collect();
    let mut found = Vec::new();
    for file in sources().iter().filter(|file| !file.path.starts_with("entry/")) {
        let protocol = PROTOCOLS.iter().find(|(path, _, _)| file.path.starts_with(path));
        let is_log_key = |word: &str| match protocol {
            Some((_, true, _)) => false,
            Some(_) => word.contains(|ch: char| ch.is_ascii_uppercase()),
            None => true,
        };
        for word in quoted_words(&file.code).filter(|word| keys.contains(*word) && is_log_key(word)) {
            let is_other = |use_: &(&str, &str)| use_.0 == file.path && use_.1 == word;
            unused.retain(|use_| !is_other(use_));
            if !OTHER_USES.iter().any(|(path, key, _)| is_other(&(path, key))) {
                found.push(format!("{}: \"{word}\"", file.path));
            }
        }
        let lookups = LOOKED_UP_KEYS.iter().map(|word| format!("get(\"{word}\")"));
        let lookups = lookups.filter(|lookup| protocol.is_none() && file.code.contains(lookup));
        found.extend(lookups.map(|lookup| format!("{}: {lookup}", file.path)));
    }
    assert!(found.is_empty(), "use a lens or a constant of entry::key:\n{}", found.join("\n"));
    assert!(unused.is_empty(), "remove from OTHER_USES: {unused:?}");
}

#[test]
fn key_constants_are_keys_of_a_lens() {
    let keys = lens_keys();
    let text = read(&crates().join("entry/src/key.rs"));
    let (_, table) = text.split_once("\nkeys! {\n").unwrap();
    let named: Vec<_> = table.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert!(named.len() > 50, "{named:?}");
    let unknown: Vec<_> = named.iter().filter(|key| !keys.contains(**key)).collect();
    assert!(unknown.is_empty(), "no lens defines {unknown:?}");
    assert!(table.lines().is_sorted_by(|a, b| a == &"}" || b == &"}" || a < b), "the table is not sorted");
}

#[test]
fn format_values_are_spelled_in_entry_only() {
    let text = read(&crates().join("entry/src/value.rs"));
    let (_, table) = text.split_once("\nvalues! {\n").unwrap();
    let values: Vec<_> = table.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert!(values.len() > 10, "{values:?}");
    // Other values are words that labels and our own JSON use too. They are checked where a type is compared.
    let (clear, words): (Vec<_>, Vec<_>) = values.into_iter().partition(|value| value.contains(['_', '<']));
    let mut unused: Vec<_> = OTHER_VALUES.iter().map(|(path, value, _)| (*path, *value)).collect();
    let mut found = Vec::new();
    let is_exempt = |path: &str| {
        path.starts_with("entry/") || PROTOCOLS.iter().any(|(folder, ..)| path.starts_with(folder))
    };
    for file in sources().iter().filter(|file| !is_exempt(&file.path)) {
        for value in clear.iter().filter(|value| file.code.contains(&format!("\"{value}\""))) {
            let is_other = |use_: &(&str, &str)| use_.0 == file.path && use_.1 == *value;
            unused.retain(|use_| !is_other(use_));
            if !OTHER_VALUES.iter().any(|(path, value, _)| is_other(&(path, value))) {
                found.push(format!("{}: \"{value}\"", file.path));
            }
        }
        let compared =
            words.iter().flat_map(|word| [format!(".is(\"{word}\")"), format!("is_str(\"{word}\")")]);
        let compared = compared.filter(|compared| file.code.contains(compared));
        found.extend(compared.map(|compared| format!("{}: {compared}", file.path)));
    }
    assert!(found.is_empty(), "use a constant of entry::value:\n{}", found.join("\n"));
    assert!(unused.is_empty(), "remove from OTHER_VALUES: {unused:?}");
}

#[test]
fn public_json_is_defined_in_view_wire_only() {
    let mut unused: BTreeSet<&str> =
        OTHER_JSON.iter().map(|(path, _)| *path).chain(CACHED.iter().copied()).collect();
    let mut found = Vec::new();
    for file in sources() {
        assert!(!CACHED.contains(&&*file.path) || !file.code.contains("serde_json"), "{}", file.path);
        let is_wire = file.path.starts_with("view/src/wire");
        let is_protocol = PROTOCOLS.iter().any(|(path, _, _)| file.path.starts_with(path));
        if is_wire || is_protocol || !(file.code.contains("Serialize") || file.code.contains("json!")) {
            continue;
        }
        if !unused.remove(&*file.path) {
            found.push(file.path);
        }
    }
    assert!(found.is_empty(), "move these types to view::wire:\n{}", found.join("\n"));
    assert!(unused.is_empty(), "remove from OTHER_JSON or CACHED: {unused:?}");
}

#[test]
fn calls_are_permitted_by_the_permission_check_only() {
    let issuers = sources().into_iter().filter(|file| file.code.contains("Permit::issue()"));
    let issuers: Vec<String> = issuers.map(|file| file.path).collect();
    let is_allowed =
        |path: &String| path.starts_with("agent/src/permission") || path == "tools/src/testing.rs";
    assert!(issuers.iter().all(is_allowed), "ask `Permissions` for a permit instead: {issuers:?}");
    assert!(issuers.iter().any(|path| path.starts_with("agent/src/permission")), "{issuers:?}");
}
