//! Tests with real sessions: replays compared with recorded requests, and invariants of the model.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use threadline_entry::{Code, Json, JsonKind, Severity};
use threadline_session::{ClientVersion, ReplayMessage, Session, SessionFamily};
use threadline_testkit::{shared, shared_logs};

/// Returns the versions with recorded replays.
fn recorded_versions(shared: &Path) -> Vec<String> {
    let files = std::fs::read_dir(shared.join("truth")).expect("the truth");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    names.filter_map(|name| Some(name.strip_prefix("replay-")?.strip_suffix(".jsonl")?.to_owned())).collect()
}

/// Returns the sessions with a recorded replay by a version: their name, their log, and the digest of the
/// request.
fn recorded_replays(shared: &Path, version: &str) -> Vec<(String, Session, Value)> {
    let truth = shared.join(format!("truth/replay-{version}.jsonl"));
    let truth = std::fs::read_to_string(truth).expect("the truth");
    let truths = truth.lines().map(|line| {
        let truth: Value = serde_json::from_str(line).expect("a line of the truth");
        let file = truth["file"].as_str().expect("a file").to_owned();
        let bytes = std::fs::read(shared.join("corpus").join(&file)).expect("a session of the corpus");
        (file, Session::from_bytes(&bytes), truth["digest"].clone())
    });
    truths.collect()
}

/// Compares our replay for a version with the requests that this version sent, session by session.
fn compare_with_recorded(shared: &Path, version: &str) {
    let client: ClientVersion = version.parse().unwrap();
    let mut wrong = String::new();
    for (file, session, want) in recorded_replays(shared, version) {
        let got = session.replay(client).map_or(Value::Null, |messages| digest(&messages));
        if got != want {
            let place = |digest: &Value, i: usize| digest.get(i).map_or("the end".into(), Value::to_string);
            let i = (0..).find(|&i| want.get(i) != got.get(i) || want.get(i).is_none()).unwrap_or(0);
            writeln!(wrong, "{file}: message {i}: want {}, got {}", place(&want, i), place(&got, i)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_replay_equals_the_request_of_each_recorded_version() {
    let Some(shared) = shared() else { return };
    let versions = recorded_versions(&shared);
    assert!(!versions.is_empty());
    for version in versions {
        let known: ClientVersion = version.parse().unwrap();
        assert!(ClientVersion::KNOWN.contains(&known), "{version} is not a known version");
        compare_with_recorded(&shared, &version);
    }
}

#[test]
fn a_session_that_claude_code_resumes_fully_is_sound() {
    let Some(shared) = shared() else { return };
    let mut wrong = String::new();
    for (file, session, _) in recorded_replays(&shared, "2.1.197") {
        // A resume does lose unanswered calls and unreadable lines. Secrets do not affect it.
        let lossy = |code: Code| matches!(code, Code::OrphanCall | Code::BrokenLine);
        let faults = session.findings();
        let is_sound = faults.iter().all(|finding| finding.severity == Severity::Note);
        if is_sound || faults.iter().any(|finding| lossy(finding.code)) {
            continue;
        }
        writeln!(wrong, "{file}:\n{}", crate::render::findings_of(&session)).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_message_of_a_real_session_is_in_one_place() {
    for path in shared_logs() {
        let session = Session::from_bytes(&std::fs::read(&path).expect("a log"));
        let mut placed = session.thread().entries;
        placed.extend(session.branches().into_iter().flat_map(|branch| branch.entries));
        placed.sort_unstable();
        assert!(
            placed.windows(2).all(|pair| pair[0] != pair[1]),
            "{}: a line is in two places",
            path.display()
        );
        let in_turns: usize = session.turns().iter().map(|turn| turn.entries.len()).sum();
        assert!(in_turns <= session.thread().entries.len(), "{}", path.display());
        let side = session.thread().leaf.is_some_and(|leaf| session.is_sidechain(leaf));
        let spoken = session.entries().indices().filter(|&idx| {
            let said = session.input(idx).is_some() || session.reply_of(idx).is_some();
            said && session.entries()[idx].kind() != threadline_entry::Kind::Attachment
        });
        for idx in spoken.filter(|&idx| session.in_tree(idx) && session.is_sidechain(idx) == side) {
            assert!(
                placed.binary_search(&idx).is_ok(),
                "{}: line {} is in no place",
                path.display(),
                idx.position() + 1
            );
        }
    }
}

#[test]
fn every_agent_of_a_real_session_has_a_conversation_and_the_call_that_started_it() {
    for path in shared_logs() {
        let session = Session::from_bytes(&std::fs::read(&path).expect("a log"));
        let is_agents = path.components().any(|part| part.as_os_str() == "subagents");
        assert!(!is_agents || !session.turns().is_empty(), "{}", path.display());
        for agent in SessionFamily::new(session, Vec::new()).agents {
            assert!(agent.spawn.is_some(), "{}: {} has no spawning call", path.display(), agent.id);
            assert!(agent.session.branches().is_empty(), "{}: {} has branches", path.display(), agent.id);
            // An agent that was resumed has one turn per resume.
            assert!(!agent.session.turns().is_empty(), "{}: {}", path.display(), agent.id);
        }
    }
}

/// Returns the parts of a replay that must be equal: roles, order, ids, and a hash of every content.
///
/// The recorder of the expected digests computes the same digest.
fn digest(messages: &[ReplayMessage<'_>]) -> Value {
    let mut out: Vec<(String, Vec<Value>)> = Vec::new();
    for message in messages {
        let mut text = String::new();
        message.write_json(&mut text);
        let content = Json::parse(&text).and_then(|json| json.get("content")).expect("a message has content");
        let blocks: Vec<Json<'_>> = content.items().filter(|block| !is_own_addition(*block)).collect();
        if blocks.is_empty() {
            continue;
        }
        let role = message.role.name();
        let blocks = blocks.into_iter().map(block_digest);
        match out.last_mut().filter(|(last, _)| last == role) {
            Some((_, last)) => last.extend(blocks),
            None => out.push((role.into(), blocks.collect())),
        }
    }
    // Parallel calls, and their results, are unordered.
    for (_, blocks) in &mut out {
        for run in blocks
            .chunk_by_mut(|a, b| a[0] == b[0])
            .filter(|run| run[0][0].as_str().unwrap().starts_with("tool_"))
        {
            run.sort_by_key(Value::to_string);
        }
    }
    json!(out)
}

fn block_digest(block: Json<'_>) -> Value {
    let field = |key: &str| block.get(key).and_then(Json::as_str).unwrap_or_default().into_owned();
    let kind = field("type");
    match &*kind {
        "text" | "thinking" => json!([kind, short(&field(&kind))]),
        "tool_use" => json!([kind, field("id"), hash(&block.get("input").map(dumps).unwrap_or_default())]),
        "tool_result" => {
            let is_error = block.get("is_error").and_then(Json::as_bool).unwrap_or(false);
            json!([kind, field("tool_use_id"), result_digest(block.get("content")), is_error])
        }
        _ => json!([kind, hash(&block.get("source").map_or("{}".into(), dumps))]),
    }
}

/// Returns the digest of a result. References to deferred tools are rewritten at each resume, so they have
/// a fixed digest.
fn result_digest(content: Option<Json<'_>>) -> String {
    let Some(content) = content.filter(|content| !content.is_null()) else { return short("") };
    if content.kind() != JsonKind::Array {
        return content.as_str().map_or_else(|| hash(&dumps(content)), |text| short(&text));
    }
    let text = |block: Json<'_>| block.get("text").and_then(Json::as_str).unwrap_or_default().into_owned();
    let is = |block: Json<'_>, kind: &str| block.get("type").is_some_and(|json| json.is_str(kind));
    if content
        .items()
        .any(|block| is(block, "tool_reference") || text(block).contains("Tool references removed"))
    {
        return short("tool references");
    }
    if content.items().all(|block| is(block, "text")) {
        return short(&content.items().map(text).collect::<Vec<_>>().join("\n"));
    }
    hash(&dumps(content))
}

/// Returns whether Claude Code added a text itself, so that it is not in the file.
fn is_own_addition(block: Json<'_>) -> bool {
    if !block.get("type").is_some_and(|kind| kind.is_str("text")) {
        return false;
    }
    let text = block.get("text").and_then(Json::as_str).unwrap_or_default();
    let text = strip(&text);
    let lost_task = text.starts_with("<task-notification>")
        && (text.contains("<status>stopped</status>")
            || text.contains("was running when the previous Claude Code process exited"));
    let own = ["Continue from where you left off.", "No response requested.", "(no content)"];
    text.is_empty() || own.contains(&text) || text.starts_with("<system-reminder>") || lost_task
}

/// Strips white space as Python does, including four separators that Rust does not count as white space.
fn strip(text: &str) -> &str {
    text.trim_matches(|ch: char| ch.is_whitespace() || ('\x1c'..='\x1f').contains(&ch))
}

fn short(text: &str) -> String {
    hash(strip(text))
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Serializes JSON as Python's `json.dumps(value, sort_keys=True, ensure_ascii=False)` does.
fn dumps(json: Json<'_>) -> String {
    match json.kind() {
        JsonKind::Null | JsonKind::Bool => json.raw().to_owned(),
        JsonKind::String => Value::from(json.as_str().unwrap_or_default()).to_string(),
        JsonKind::Number => number(json.raw()),
        JsonKind::Array => format!("[{}]", json.items().map(dumps).collect::<Vec<_>>().join(", ")),
        JsonKind::Object => {
            let members: BTreeMap<String, String> =
                json.members().map(|(key, value)| (key.name().into_owned(), dumps(value))).collect();
            let members = members.into_iter().map(|(key, value)| format!("{}: {value}", Value::from(key)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats a number as Python does. Integers are unchanged.
fn number(raw: &str) -> String {
    if !raw.contains(['.', 'e', 'E']) {
        return raw.to_owned();
    }
    let value: f64 = raw.parse().expect("a number");
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a whole exponent");
    if value == 0.0 || (-4..16).contains(&exponent) {
        return format!("{value:?}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[test]
fn numbers_are_written_as_python_does() {
    let written =
        ["1", "-7", "0.5", "1.0", "1e3", "1e16", "1.5e-7", "0.0001", "123456789012345680.0"].map(number);
    let python = ["1", "-7", "0.5", "1.0", "1000.0", "1e+16", "1.5e-07", "0.0001", "1.2345678901234568e+17"];
    assert_eq!(written, python);
}
