//! Faults: broken streams, interrupted processes, random errors. The session must resume every time.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use threadline_agent::{ResumeError, ResumedSession, SessionStart, TurnEnd};
use threadline_cancel::CancelToken;
use threadline_entry::{Code, Finding, LineReader, Severity, parse_line};
use threadline_session::Session;
use threadline_testkit::api::{ScriptedApi, ScriptedReply, events, sse};

use crate::harness::{SESSION, Stage};

/// Checks that the log can be resumed: the strict API accepts the conversation with another prompt.
pub(crate) fn assert_resumes(stage: &Stage, what: &str) {
    remove_empty_log(stage, what);
    let (summary, api) = stage.run("go on", vec![ScriptedReply::text("went on")]);
    assert_eq!(summary.end, TurnEnd::Completed, "{what}: {} after {:?}", summary.text, api.requests().last());
    assert_sound(stage, what);
}

/// Removes a log that ends before its first prompt, and has no conversation. A new prompt starts one.
pub(crate) fn remove_empty_log(stage: &Stage, what: &str) {
    match ResumedSession::read(&stage.log(), "2.1.197") {
        Ok(_) => {}
        Err(ResumeError::Empty { .. }) => std::fs::remove_file(stage.log()).unwrap(),
        Err(ResumeError::Read { .. }) if !stage.log().exists() => {}
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Checks that `threadline check` finds nothing wrong with the log, except for a line that was torn.
fn assert_sound(stage: &Stage, what: &str) {
    assert_sound_log(&stage.log(), what);
}

pub(crate) fn assert_sound_log(path: &Path, what: &str) {
    let log = std::fs::read(path).unwrap();
    let mut session = Session::with_id(SESSION);
    let mut lines = LineReader::new(&*log);
    while let Some(line) = lines.next().unwrap() {
        parse_line(&line, |entry, findings| session.push(entry, findings));
    }
    let is_expected = |finding: &Finding| what.contains("torn: true") && finding.code == Code::BrokenLine;
    let findings = session.findings();
    let wrong: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note && !is_expected(finding))
        .collect();
    assert!(wrong.is_empty(), "{what}: {wrong:#?}\n{}", String::from_utf8_lossy(&log));
}

fn two_blocks() -> Vec<Value> {
    vec![
        json!({"type": "text", "text": "Näh."}),
        json!({"type": "tool_use", "name": "Bash", "input": {"command": "echo x"}}),
    ]
}

#[test]
fn a_stream_may_be_cut_at_every_byte() {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": two_blocks(),
        "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let length = sse(&events(&message)).len() + 100;
    // Every byte in release; in the debug test, every eleventh, from another start in each block of eleven.
    let step = if cfg!(debug_assertions) { 11 } else { 1 };
    for after in (0..length).step_by(step) {
        let stage = Stage::new();
        let replies = vec![
            ScriptedReply::Cut { blocks: two_blocks(), after },
            ScriptedReply::text("recovered"),
            ScriptedReply::text("recovered again"),
        ];
        let (summary, _) = stage.run("start", replies);
        assert_eq!(summary.end, TurnEnd::Completed, "cut after {after} bytes: {}", summary.text);
        assert_resumes(&stage, &format!("cut after {after} bytes"));
    }
}

/// A session with thinking, parallel calls, an edit and two turns.
fn long_session(stage: &Stage) -> Vec<String> {
    let path = stage.work().join("a.txt");
    std::fs::write(&path, "one\n").unwrap();
    stage.run(
        "first",
        vec![
            ScriptedReply::blocks(vec![
                ScriptedReply::thinking("Hm."),
                json!({"type": "text", "text": "Reading."}),
                json!({"type": "tool_use", "name": "Read", "input": {"file_path": path}}),
                json!({"type": "tool_use", "name": "Bash", "input": {"command": "echo a"}}),
            ]),
            ScriptedReply::call("Edit", json!({"file_path": path, "old_string": "one", "new_string": "two"})),
            ScriptedReply::text("Edited."),
        ],
    );
    stage.run("second", vec![ScriptedReply::call("Nope", json!({})), ScriptedReply::text("Done.")]);
    stage.lines()
}

#[test]
fn a_session_resumes_after_a_kill_at_every_line() {
    let stage = Stage::new();
    let lines = long_session(&stage);
    assert!(lines.len() > 15, "{}", lines.len());
    for count in 0..=lines.len() {
        for torn in [false, true] {
            let stage = Stage::new();
            let mut text: String = lines[..count].iter().map(|line| format!("{line}\n")).collect();
            if torn && let Some(next) = lines.get(count) {
                text.push_str(next.get(..next.len() / 2).unwrap_or(""));
            }
            if text.is_empty() {
                continue;
            }
            std::fs::create_dir_all(stage.log().parent().unwrap()).unwrap();
            std::fs::write(stage.log(), text).unwrap();
            assert_resumes(&stage, &format!("after {count} lines, torn: {torn}"));
        }
    }
}

#[test]
fn a_session_survives_random_faults() {
    // 1,000 runs in release.
    let runs = if cfg!(debug_assertions) { 60 } else { 1000 };
    for seed in 0..runs {
        let mut random = Random(seed * 2 + 1);
        let stage = Stage::new();
        for turn in 0..3 {
            let replies = (0..6).map(|_| random_reply(&mut random)).collect();
            stage.run(&format!("turn {turn} of run {seed}"), replies);
        }
        assert_resumes(&stage, &format!("run {seed}"));
    }
}

pub(crate) fn random_reply(random: &mut Random) -> ScriptedReply {
    let call = || vec![json!({"type": "tool_use", "name": "Bash", "input": {"command": "echo x"}})];
    match random.below(11) {
        0 => ScriptedReply::error(529, "overloaded_error", "Overloaded"),
        1 => ScriptedReply::error(400, "invalid_request_error", "no"),
        2 => ScriptedReply::error(500, "api_error", "oops"),
        3 => ScriptedReply::Cut { blocks: two_blocks(), after: random.below(1600) },
        4 => ScriptedReply::ErrorEvent { blocks: two_blocks(), after: random.below(12) },
        5 => ScriptedReply::Raw(b"event: nonsense\ndata: {{{\n\n".to_vec()),
        6 => ScriptedReply::blocks(vec![ScriptedReply::thinking("Hm."), call().remove(0)]),
        7 => ScriptedReply::Message { blocks: call(), stop_reason: Some("max_tokens") },
        8 => ScriptedReply::blocks(call()),
        9 => ScriptedReply::blocks(Vec::new()),
        _ => ScriptedReply::text("done"),
    }
}

#[test]
fn cancelling_ends_a_stalled_stream_at_once() {
    let stage = Stage::new();
    let blocks = vec![json!({"type": "text", "text": "slow"})];
    let api =
        ScriptedApi::start(vec![ScriptedReply::Stall { blocks, after: 200, pause: Duration::from_secs(30) }]);
    let cancel = CancelToken::new();
    let other = cancel.clone();
    let start = std::time::Instant::now();
    let summary = std::thread::scope(|scope| {
        scope.spawn(|| {
            api.wait_for_requests(1);
            other.cancel();
        });
        stage.run_with("wait", &api, stage.config(stage.start()), &cancel)
    });
    assert_eq!(summary.end, TurnEnd::Interrupted { during_tools: false });
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_resumes(&stage, "interrupted stream");
}

#[test]
fn cancelling_ends_a_running_command() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![ScriptedReply::call(
        "Bash",
        json!({"command": "echo x > started; sleep 60"}),
    )]);
    let cancel = CancelToken::new();
    let other = cancel.clone();
    let started = stage.work().join("started");
    assert!(std::process::Command::new("mkfifo").arg(&started).status().unwrap().success());
    let summary = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Reading waits until the command writes.
            std::fs::read(&started).unwrap();
            other.cancel();
        });
        stage.run_with("run", &api, stage.config(stage.start()), &cancel)
    });
    assert_eq!(summary.end, TurnEnd::Interrupted { during_tools: true });
    assert_resumes(&stage, "interrupted command");
}

#[test]
fn a_log_that_cannot_be_written_ends_the_turn() {
    let stage = Stage::new();
    let folder = stage.log().parent().unwrap().to_owned();
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::fs::write(&folder, "a file where the folder should be").unwrap();
    let (summary, api) = {
        let api = ScriptedApi::start(vec![ScriptedReply::text("never")]);
        let mut agent = stage.agent(&api, stage.config(stage.start())).unwrap();
        let prompt = serde_json::value::to_raw_value("hello").unwrap();
        (agent.run(&prompt, &CancelToken::new(), &mut |_| {}), api)
    };
    assert!(matches!(summary.end, TurnEnd::Failed(_)), "{:?}", summary.end);
    assert!(api.requests().is_empty(), "nothing is sent before the prompt is in the log");
}

#[test]
fn two_clients_on_one_session_leave_a_session_that_resumes() {
    let stage = Stage::new();
    stage.run("start", vec![ScriptedReply::text("started")]);
    let replies =
        || vec![ScriptedReply::call("Bash", json!({"command": "echo x"})), ScriptedReply::text("done")];
    let apis = [ScriptedApi::start(replies()), ScriptedApi::start(replies())];
    let mut agents: Vec<_> =
        apis.iter().map(|api| stage.agent(api, stage.config(stage.start())).unwrap()).collect();
    std::thread::scope(|scope| {
        for (i, agent) in agents.iter_mut().enumerate() {
            scope.spawn(move || {
                let prompt = serde_json::value::to_raw_value(&format!("client {i}")).unwrap();
                let summary = agent.run(&prompt, &CancelToken::new(), &mut |_| {});
                assert_eq!(summary.end, TurnEnd::Completed, "{}", summary.text);
                agent.finish(&mut |_| {}).unwrap();
            });
        }
    });
    assert!(stage.lines().iter().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let (summary, _) = stage.run("go on", vec![ScriptedReply::text("went on")]);
    assert_eq!(summary.end, TurnEnd::Completed, "{}", summary.text);
}

#[test]
fn a_session_that_is_replaced_is_not_written_to() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![ScriptedReply::text("one"), ScriptedReply::text("two")]);
    let mut agent = stage.agent(&api, stage.config(stage.start())).unwrap();
    let mut run = |prompt: &str| {
        agent.run(&serde_json::value::to_raw_value(prompt).unwrap(), &CancelToken::new(), &mut |_| {}).end
    };
    assert_eq!(run("first"), TurnEnd::Completed);
    let other = stage.log().with_extension("other");
    std::fs::write(&other, "{\"type\":\"summary\"}\n").unwrap();
    std::fs::rename(&other, stage.log()).unwrap();
    let end = run("second");
    let TurnEnd::Failed(message) = &end else { panic!("{end:?}") };
    assert!(message.contains("was replaced or rewritten"), "{message}");
    assert_eq!(api.requests().len(), 1, "nothing is sent that the log does not contain");
    assert_eq!(std::fs::read_to_string(stage.log()).unwrap(), "{\"type\":\"summary\"}\n");
}

#[test]
fn a_fork_has_the_backups_of_its_source() {
    let stage = Stage::new();
    long_session(&stage);
    let new = "99999999-2222-4333-8444-555555555555".to_owned();
    let api = ScriptedApi::start(vec![ScriptedReply::text("forked")]);
    let start = SessionStart::Fork { log: stage.log(), session_id: new.clone() };
    let config = stage.config(start);
    let history = config.paths.claude_home.join("file-history");
    stage.run_with("go on", &api, config, &CancelToken::new());
    let names = |id: &str| -> Vec<_> {
        let mut names: Vec<_> =
            std::fs::read_dir(history.join(id)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let copied = names(&new);
    assert!(!copied.is_empty() && names(SESSION).iter().any(|name| *name == copied[0]), "{copied:?}");
}

/// A small generator of numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}
