//! Turns without faults.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use threadline_agent::{
    Agent, AgentEvent, CustomCommand, ModelChange, PermissionAnswer, PermissionPrompt, PermissionRequest,
    TurnEnd,
};
use threadline_cancel::CancelToken;
use threadline_permission::{PermissionMode, RuleEffect, RuleSource};
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

/// The type and the subject of each line.
fn outline(stage: &Stage) -> Vec<String> {
    let line = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap();
        let content = &line["message"]["content"];
        let kind = line["type"].as_str().unwrap();
        match content.as_array().and_then(|blocks| blocks.first()) {
            Some(block) => format!("{kind} {}", block["type"].as_str().unwrap()),
            None => kind.to_owned(),
        }
    };
    stage.lines().iter().map(line).collect()
}

#[test]
fn a_turn_with_a_call_writes_its_lines_in_order() {
    let stage = Stage::new();
    std::fs::write(stage.work().join("a.txt"), "hello\n").unwrap();
    let path = stage.work().join("a.txt");
    let (summary, api) = stage.run(
        "read it",
        vec![ScriptedReply::call("Read", json!({"file_path": path})), ScriptedReply::text("It says hello.")],
    );
    assert_eq!(
        (summary.end, summary.text.as_str(), summary.num_turns),
        (TurnEnd::Completed, "It says hello.", 2)
    );
    assert_eq!(
        outline(&stage),
        [
            "queue-operation",
            "queue-operation",
            "user",
            "file-history-snapshot",
            "assistant tool_use",
            "user tool_result",
            "assistant text",
            "last-prompt"
        ]
    );
    let sent = &api.requests()[1].body["messages"][2]["content"][0];
    assert_eq!(sent["content"], "1\thello\n2\t");
}

#[test]
fn a_resumed_session_sends_what_was_said_before_with_its_thinking() {
    let stage = Stage::new();
    let thinking = ScriptedReply::thinking("Let me see.");
    let first = vec![ScriptedReply::blocks(vec![thinking, json!({"type": "text", "text": "Hi."})])];
    stage.run("hello", first);
    let (summary, api) = stage.run("again", vec![ScriptedReply::text("Hi again.")]);
    assert_eq!(summary.end, TurnEnd::Completed);
    let messages = &api.requests()[0].body["messages"];
    let roles: Vec<&str> = messages.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(messages[1]["content"][0]["thinking"], "Let me see.");
}

#[test]
fn an_error_of_the_api_is_part_of_the_session_and_the_next_prompt_goes_on() {
    let stage = Stage::new();
    let (summary, _) = stage.run("one", vec![ScriptedReply::error(400, "invalid_request_error", "no")]);
    assert_eq!(summary.text, "API Error: 400 no");
    assert!(matches!(summary.end, TurnEnd::ApiError { status: Some(400), .. }));
    let (summary, api) = stage.run("two", vec![ScriptedReply::text("fine")]);
    assert_eq!(summary.end, TurnEnd::Completed);
    let sent = api.requests()[0].body["messages"].to_string();
    assert!(!sent.contains("API Error") && sent.contains("one") && sent.contains("two"), "{sent}");
}

#[test]
fn a_temporary_error_is_retried() {
    let stage = Stage::new();
    let (summary, api) = stage.run(
        "one",
        vec![ScriptedReply::error(529, "overloaded_error", "Overloaded"), ScriptedReply::text("fine")],
    );
    assert_eq!((summary.end, api.requests().len()), (TurnEnd::Completed, 2));
}

#[test]
fn the_fallback_model_answers_when_the_first_one_is_overloaded() {
    let stage = Stage::new();
    let overloaded = || ScriptedReply::error(529, "overloaded_error", "Overloaded");
    let api = ScriptedApi::start(vec![overloaded(), overloaded(), overloaded(), ScriptedReply::text("fine")]);
    let mut config = stage.config(stage.start());
    config.fallback_model = Some("claude-haiku-4-5".to_owned());
    let summary = stage.run_with("one", &api, config, &CancelToken::new());
    assert_eq!((summary.end, summary.text.as_str()), (TurnEnd::Completed, "fine"));
    let models: Vec<Value> = api.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["claude-sonnet-4-5", "claude-sonnet-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"]);
}

#[test]
fn the_number_of_replies_is_limited() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Bash", json!({"command": "true"})),
        ScriptedReply::call("Bash", json!({"command": "true"})),
        ScriptedReply::text("never"),
    ]);
    let mut config = stage.config(stage.start());
    config.max_turns = Some(2);
    let summary = stage.run_with("loop", &api, config, &CancelToken::new());
    assert_eq!((summary.end, api.requests().len()), (TurnEnd::MaxTurns(2), 2));
}

#[test]
fn a_call_that_is_not_permitted_is_refused_and_reported() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Bash", json!({"command": "touch made"})),
        ScriptedReply::text("refused"),
    ]);
    let config = stage.config(stage.start());
    config.permissions.update(|permissions| permissions.mode = PermissionMode::Default);
    let summary = stage.run_with("try", &api, config, &CancelToken::new());
    assert_eq!(summary.denials.len(), 1);
    assert!(!stage.work().join("made").exists());
}

#[test]
fn paths_that_lead_out_of_the_working_folder_need_permission() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret words\n").unwrap();
    let absolute = outside.path().join("secret").display().to_string();
    let pattern = format!("{}/*", outside.path().display());
    let calls = [
        ("Read", json!({"file_path": format!("missing/../../../../../../../..{absolute}")})),
        ("Read", json!({"file_path": "~/secret"})),
        ("Glob", json!({"pattern": pattern})),
        ("Glob", json!({"pattern": "../**"})),
        ("Grep", json!({"pattern": "secret", "path": "~"})),
    ];
    for (tool, input) in calls {
        let stage = Stage::new();
        let api =
            ScriptedApi::start(vec![ScriptedReply::call(tool, input.clone()), ScriptedReply::text("done")]);
        let mut config = stage.config(stage.start());
        config.permissions.update(|permissions| permissions.mode = PermissionMode::Default);
        config.tools = Some(vec!["Read".to_owned(), "Glob".to_owned(), "Grep".to_owned()]);
        config.paths.user_home = Some(outside.path().to_owned());
        let home = config.paths.user_home.clone();
        config.permissions.update(|permissions| permissions.workspace.home = home);
        let summary = stage.run_with("look", &api, config, &CancelToken::new());
        assert_eq!(summary.denials.len(), 1, "{tool} {input}: {}", api.requests()[1].body["messages"][2]);
    }
}

#[test]
fn an_edit_that_fails_in_any_case_is_no_denial() {
    let stage = Stage::new();
    std::fs::write(stage.work().join("unread.txt"), "text\n").unwrap();
    let edit = json!({"file_path": "unread.txt", "old_string": "text", "new_string": "new"});
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Edit", edit),
        ScriptedReply::call("Write", json!({"file_path": "new.txt", "content": "x"})),
        ScriptedReply::text("done"),
    ]);
    let config = stage.config(stage.start());
    config.permissions.update(|permissions| permissions.mode = PermissionMode::Default);
    let summary = stage.run_with("edit", &api, config, &CancelToken::new());
    let result = |request: usize, at: usize| api.requests()[request].body["messages"][at].to_string();
    assert!(result(1, 2).contains("File has not been read yet"), "{}", result(1, 2));
    assert!(result(2, 4).contains("Claude requested permissions to write to"), "{}", result(2, 4));
    assert_eq!(summary.denials.len(), 1);
    assert_eq!(std::fs::read_to_string(stage.work().join("unread.txt")).unwrap(), "text\n");
}

/// Answers in turn.
struct ScriptedPrompt {
    answers: Mutex<Vec<PermissionAnswer>>,
    asked: Mutex<Vec<String>>,
}

impl PermissionPrompt for ScriptedPrompt {
    fn ask(&self, request: &PermissionRequest<'_>, _: &CancelToken) -> PermissionAnswer {
        self.asked.lock().push(format!("{} {}", request.tool, request.description));
        self.answers.lock().remove(0)
    }
}

#[test]
fn a_prompt_allows_changes_denies_and_interrupts() {
    let stage = Stage::new();
    let touch = |name: &str| ScriptedReply::call("Bash", json!({"command": format!("touch {name}")}));
    let api = ScriptedApi::start(vec![touch("one"), touch("two"), touch("three"), touch("four")]);
    let config = stage.config(stage.start());
    config.permissions.update(|permissions| {
        permissions.mode = PermissionMode::Default;
        let cwd = permissions.workspace.cwd.clone();
        let source = RuleSource { base: &cwd, cwd: &cwd, home: None };
        permissions.rules.add("Bash(rm:*)", RuleEffect::Deny, source);
    });
    let changed = |command: &str| {
        let input = serde_json::value::to_raw_value(&json!({"command": command})).unwrap();
        PermissionAnswer::Allow { input: Some(input) }
    };
    let prompt = Arc::new(ScriptedPrompt {
        answers: Mutex::new(vec![
            PermissionAnswer::Allow { input: None },
            changed("touch changed"),
            changed("rm one"),
            PermissionAnswer::Interrupt,
        ]),
        asked: Mutex::default(),
    });
    let mut agent = stage.agent(&api, config).unwrap();
    agent.set_prompt(Arc::clone(&prompt) as Arc<dyn PermissionPrompt>);
    let prompt_text = serde_json::value::to_raw_value("try").unwrap();
    let summary = agent.run(&prompt_text, &CancelToken::new(), &mut |_| {});
    assert_eq!(summary.end, TurnEnd::Interrupted { during_tools: true });
    // The input that a deny rule matches, and the interrupted call.
    assert_eq!(summary.denials.len(), 2);
    assert_eq!(
        *prompt.asked.lock(),
        ["Bash touch one", "Bash touch two", "Bash touch three", "Bash touch four"]
    );
    let exists = |name: &str| stage.work().join(name).exists();
    assert!(exists("one") && exists("changed"));
    assert!(!exists("two") && !exists("three") && !exists("four"));
}

#[test]
fn the_key_is_not_in_the_environment_of_commands() {
    let stage = Stage::new();
    let (_, api) = stage.run(
        "env",
        vec![ScriptedReply::call("Bash", json!({"command": "env"})), ScriptedReply::text("done")],
    );
    let result = api.requests()[1].body["messages"][2].to_string();
    assert!(!result.contains("sk-test"), "{result}");
}

#[test]
fn a_changed_file_has_a_backup() {
    let stage = Stage::new();
    let path = stage.work().join("a.txt");
    std::fs::write(&path, "old\n").unwrap();
    stage.run(
        "edit",
        vec![
            ScriptedReply::call("Read", json!({"file_path": path})),
            ScriptedReply::call("Edit", json!({"file_path": path, "old_string": "old", "new_string": "new"})),
            ScriptedReply::text("done"),
        ],
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
    let snapshots: Vec<Value> = stage
        .lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["type"] == "file-history-snapshot")
        .collect();
    let name = snapshots[1]["snapshot"]["trackedFileBackups"]["a.txt"]["backupFileName"].as_str().unwrap();
    let home = stage.log().ancestors().nth(3).unwrap().to_owned();
    let backup = home.join("file-history").join(crate::harness::SESSION).join(name);
    assert_eq!(std::fs::read_to_string(backup).unwrap(), "old\n");
}

/// The lines of the conversation, parsed.
fn conversation(stage: &Stage) -> Vec<Value> {
    let lines = stage.lines().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
    lines.filter(|line| line["uuid"].is_string()).collect()
}

#[test]
fn lines_have_ids_parents_times_and_the_facts_of_the_process() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.work().join(".git")).unwrap();
    std::fs::write(stage.work().join(".git/HEAD"), "ref: refs/heads/loom\n").unwrap();
    let reply = ScriptedReply::blocks(vec![
        ScriptedReply::thinking("Hm."),
        json!({"type": "text", "text": "Running."}),
        json!({"type": "tool_use", "name": "Bash", "input": {"command": "echo x"}}),
    ]);
    stage.run("go", vec![reply, ScriptedReply::text("Done.")]);
    let lines = conversation(&stage);
    let mut parent = Value::Null;
    for line in &lines {
        let uuid = uuid::Uuid::parse_str(line["uuid"].as_str().unwrap()).unwrap();
        assert_eq!((uuid.get_version_num(), &line["parentUuid"]), (4, &parent), "{line}");
        parent = line["uuid"].clone();
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
        assert_eq!(line["cwd"], json!(stage.work()));
        assert_eq!((&line["gitBranch"], &line["version"]), (&json!("loom"), &json!("2.1.197")));
    }
    let replies: Vec<_> = lines.iter().filter(|line| line["requestId"] == "req_1").collect();
    assert_eq!(replies.len(), 3, "one line per block");
    assert!(replies.iter().all(|line| line["message"]["content"].as_array().unwrap().len() == 1));
}

#[test]
fn the_format_of_2_1_20_has_the_lines_of_that_version() {
    let stage = Stage::new();
    std::fs::write(stage.work().join("a.txt"), "hello\n").unwrap();
    let path = stage.work().join("a.txt");
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Read", json!({"file_path": path})),
        ScriptedReply::text("It says hello."),
    ]);
    let mut config = stage.config(stage.start());
    config.profile = threadline_tools::Profile::find("2.1.20").unwrap();
    let todos = config.paths.claude_home.join("todos");
    stage.run_with("read it", &api, config, &CancelToken::new());
    assert_eq!(
        outline(&stage),
        [
            "file-history-snapshot",
            "queue-operation",
            "user",
            "assistant tool_use",
            "user tool_result",
            "assistant text"
        ]
    );
    let lines = conversation(&stage);
    let keys: Vec<&str> = lines[0].as_object().unwrap().keys().map(String::as_str).collect();
    for key in ["promptId", "promptSource", "entrypoint", "slug"] {
        assert!(!keys.contains(&key), "{key} is not of that version");
    }
    assert_eq!((&lines[1]["message"]["stop_reason"], &lines[0]["gitBranch"]), (&Value::Null, &json!("")));
    let slug = lines[2]["slug"].as_str().unwrap();
    assert_eq!((slug.split('-').count(), &lines[3]["slug"]), (3, &json!(slug)));
    assert_eq!(std::fs::read_dir(todos).unwrap().count(), 1);
}

#[test]
fn a_session_that_ended_before_its_first_prompt_was_written_resumes() {
    let stage = Stage::new();
    stage.run("one", vec![ScriptedReply::text("1")]);
    let lines = stage.lines();
    std::fs::write(stage.log(), format!("{}\n", lines[0])).unwrap();
    let (summary, api) = stage.run("two", vec![ScriptedReply::text("2")]);
    assert_eq!((summary.end, summary.text.as_str()), (TurnEnd::Completed, "2"));
    assert_eq!(api.requests()[0].body["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn another_model_is_used_from_the_next_prompt_on_and_the_session_contains_the_change() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![ScriptedReply::text("One."), ScriptedReply::text("Two.")]);
    let mut agent = stage.agent(&api, stage.config(stage.start())).unwrap();
    let run = |agent: &mut Agent, prompt: &str| {
        agent.run(&to_raw_value(prompt).unwrap(), &CancelToken::new(), &mut |_| {})
    };
    run(&mut agent, "First");
    let change = ModelChange {
        requested: "haiku".to_owned(),
        model: "claude-haiku-4-5-20251001".to_owned(),
        plan_model: None,
        uuid: "33333333-2222-4333-8444-555555555555".to_owned(),
    };
    agent.set_model(change.clone());
    agent.set_max_thinking_tokens(Some(2000));
    run(&mut agent, "Second");
    agent.finish(&mut |_| {}).unwrap();
    let requests = api.requests();
    assert_eq!(requests[0].body["model"], "claude-sonnet-4-5");
    assert_eq!(requests[1].body["model"], "claude-haiku-4-5-20251001");
    assert_eq!(requests[1].body["thinking"]["budget_tokens"], 2000);
    let texts = requests[1].body["messages"].to_string();
    assert!(texts.contains("<command-args>haiku</command-args>"), "{texts}");
    let line = stage.lines().into_iter().find(|line| line.contains(&change.uuid)).unwrap();
    assert!(line.contains("Set model to haiku (claude-haiku-4-5-20251001)"), "{line}");
    // The lines are part of the conversation: a resume sends them.
    let (_, api) = stage.run("Third", vec![ScriptedReply::text("Three.")]);
    assert!(api.requests()[0].body["messages"].to_string().contains("Set model to haiku"));
}

#[test]
fn rules_that_are_added_during_a_command_stay() {
    let stage = Stage::new();
    let command = stage.work().join(".claude/commands/build.md");
    std::fs::create_dir_all(command.parent().unwrap()).unwrap();
    std::fs::write(&command, "---\nallowed-tools: Bash(make:*)\n---\nBuild").unwrap();
    let mut config = stage.config(stage.start());
    config.commands = CustomCommand::read_all(&stage.work().join("none"), &stage.work(), true);
    let permissions = config.permissions.clone();
    let rules = || permissions.read(|permissions| permissions.rules.list(RuleEffect::Allow).len());
    let api = ScriptedApi::start(vec![ScriptedReply::text("Done.")]);
    let mut agent = stage.agent(&api, config).unwrap();
    let cwd = stage.work();
    let mut during = 0;
    agent.run(&to_raw_value("/build").unwrap(), &CancelToken::new(), &mut |event| {
        if matches!(event, AgentEvent::Requesting) {
            during = rules();
            let source = RuleSource { base: &cwd, cwd: &cwd, home: None };
            permissions.update(|permissions| {
                permissions.rules.add("Bash(ls:*)", RuleEffect::Allow, source);
            });
        }
    });
    assert_eq!((during, rules()), (1, 1));
}

#[test]
fn a_model_that_gives_five_wrong_answers_for_a_schema_is_stopped() {
    let stage = Stage::new();
    let wrong = ScriptedReply::call("StructuredOutput", json!({"answer": "x"}));
    let mut replies = vec![wrong; 6];
    replies.push(ScriptedReply::text("Done."));
    let api = ScriptedApi::start(replies);
    let mut config = stage.config(stage.start());
    config.json_schema =
        Some(r#"{"type": "object", "properties": {"answer": {"type": "integer"}}}"#.to_owned());
    let summary = stage.run_with("Answer", &api, config, &CancelToken::new());
    assert_eq!(summary.end, TurnEnd::MaxSchemaErrors(5));
    assert!(summary.end.is_error());
    assert_eq!(api.requests().len(), 5);
    // The session can be continued.
    let (summary, _) = stage.run("Next", vec![ScriptedReply::text("Fine.")]);
    assert_eq!(summary.end, TurnEnd::Completed);
}

/// A reply with a thought and a text.
fn thought(text: &str) -> ScriptedReply {
    ScriptedReply::blocks(vec![ScriptedReply::thinking(text), json!({"type": "text", "text": text})])
}

/// The thoughts of a request.
fn thoughts(api: &ScriptedApi, request: usize) -> Vec<String> {
    let body = &api.requests()[request].body;
    let blocks = body["messages"].as_array().unwrap().iter().flat_map(|m| m["content"].as_array().unwrap());
    blocks.filter_map(|block| Some(block["thinking"].as_str()?.to_owned())).collect()
}

#[test]
fn a_resumed_model_gets_its_own_thinking_only() {
    let stage = Stage::new();
    let run = |model: &str, text: &str| {
        let api = ScriptedApi::start(vec![thought(text)]);
        let mut config = stage.config(stage.start());
        config.model = model.to_owned();
        stage.run_with("Go", &api, config, &CancelToken::new());
        thoughts(&api, 0)
    };
    assert_eq!(run("claude-sonnet-4-5", "A"), [""; 0]);
    assert_eq!(run("claude-opus-4-8", "B"), [""; 0]);
    assert_eq!(run("claude-sonnet-4-5", "C"), ["A"]);
    assert_eq!(run("claude-opus-4-8[1m]", "D"), ["B"]);
}

#[test]
fn a_model_that_is_used_again_gets_its_thinking_back() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![thought("A"), thought("B"), thought("C"), thought("D")]);
    let mut agent = stage.agent(&api, stage.config(stage.start())).unwrap();
    let mut go = |model: Option<&str>| {
        if let Some(model) = model {
            let uuid = agent.new_uuid();
            agent.set_model(ModelChange {
                requested: model.to_owned(),
                model: model.to_owned(),
                plan_model: None,
                uuid,
            });
        }
        agent.run(&to_raw_value("Go").unwrap(), &CancelToken::new(), &mut |_| {});
    };
    go(None);
    go(Some("claude-opus-4-8"));
    go(None);
    go(Some("claude-sonnet-4-5"));
    let sent: Vec<Vec<String>> = (0..4).map(|request| thoughts(&api, request)).collect();
    assert_eq!(sent, [vec![], vec![], vec!["B".to_owned()], vec!["A".to_owned()]]);
}

#[test]
fn plan_mode_has_a_model_of_its_own() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![thought("A"), thought("B"), thought("C")]);
    let mut config = stage.config(stage.start());
    config.plan_model = Some("claude-opus-5-5".to_owned());
    let permissions = config.permissions.clone();
    let mut agent = stage.agent(&api, config).unwrap();
    for mode in [PermissionMode::Plan, PermissionMode::Default, PermissionMode::Plan] {
        permissions.set_mode(mode);
        agent.run(&to_raw_value("Go").unwrap(), &CancelToken::new(), &mut |_| {});
    }
    let models: Vec<Value> = api.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["claude-opus-5-5", "claude-sonnet-4-5", "claude-opus-5-5"]);
    assert_eq!(thoughts(&api, 2), ["A"]);
}
