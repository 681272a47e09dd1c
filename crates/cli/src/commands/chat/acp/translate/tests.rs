use serde_json::{Value, json};
use threadline_agent::{SubAgentSource, SubAgentUsage};

use super::*;

fn object(value: &Value) -> RawObject {
    RawObject::parse(&value.to_string()).unwrap()
}

fn values(updates: &[RawObject]) -> Value {
    updates.iter().map(|update| serde_json::from_str::<Value>(&update.to_json()).unwrap()).collect()
}

fn translator() -> Translator {
    Translator::new(PathBuf::from("/home/ada"))
}

fn assistant(translator: &mut Translator, content: Value, request_id: Option<&str>) -> Value {
    let message = object(&json!({"role": "assistant", "content": content}));
    values(&translator.event(&AgentEvent::Assistant {
        uuid: "u",
        message: &message,
        request_id,
        error: None,
    }))
}

fn result(translator: &mut Translator, block: Value, record: Option<Value>) -> Value {
    let message = object(&json!({"role": "user", "content": [block]}));
    let record = record.map(|record| raw(&record));
    values(&translator.event(&AgentEvent::User {
        uuid: "u",
        message: &message,
        timestamp: 0,
        tool_use_result: record.as_deref(),
        is_synthetic: false,
        is_interrupted: false,
    }))
}

fn call(translator: &mut Translator, name: &str, input: Value) -> Value {
    assistant(translator, json!([{"type": "tool_use", "id": "t1", "name": name, "input": input}]), Some("r"))
        [0]
    .take()
}

#[test]
fn deltas_are_chunks_and_are_not_sent_again() {
    let mut translator = translator();
    let mut stream = |event: Value| {
        let raw = event.to_string();
        values(&translator.event(&AgentEvent::Stream { raw: &raw, first_after: None }))
    };
    let text = json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}});
    let chunk =
        |kind: &str, text: &str| json!([{"sessionUpdate": kind, "content": {"type": "text", "text": text}}]);
    assert_eq!(stream(text), chunk("agent_message_chunk", "Hi"));
    let thinking =
        json!({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm"}});
    assert_eq!(stream(thinking), chunk("agent_thought_chunk", "Hm"));
    for other in [json!({"type": "ping"}), json!({"type": "x", "delta": {"type": "new"}}), json!([])] {
        assert_eq!(stream(other.clone()), json!([]), "{other}");
    }
    let block = || json!([{"type": "text", "text": "Hi"}]);
    assert_eq!(assistant(&mut translator, block(), Some("r")), json!([]));
    // A message of the client itself, and a reply without a stream.
    assert_eq!(assistant(&mut translator, block(), None), chunk("agent_message_chunk", "Hi"));
    translator.event(&AgentEvent::Requesting);
    assert_eq!(assistant(&mut translator, block(), Some("r")), chunk("agent_message_chunk", "Hi"));
}

#[test]
fn calls_have_a_title_a_kind_and_locations() {
    let described = |name: &str, input: Value| {
        let call = call(&mut translator(), name, input);
        (call["title"].clone(), call["kind"].clone(), call["locations"].clone(), call["status"].clone())
    };
    let row =
        |title: &str, kind: &str, locations: Value| (json!(title), json!(kind), locations, json!("pending"));
    let read = row("Read a.txt", "read", json!([{"path": "/home/ada/a.txt", "line": 7}]));
    assert_eq!(described("Read", json!({"file_path": "a.txt", "offset": 7})), read);
    assert_eq!(described("Bash", json!({"command": "ls\nrm"})), row("ls", "execute", Value::Null));
    let grep = row("Grep x", "search", json!([{"path": "/src"}]));
    assert_eq!(described("Grep", json!({"pattern": "x", "path": "/src"})), grep);
    assert_eq!(described("WebFetch", json!({"url": "u"})), row("WebFetch u", "fetch", Value::Null));
    assert_eq!(described("Agent", json!({"description": "Look"})), row("Look", "think", Value::Null));
    assert_eq!(described("mcp__a__b", json!({})), row("mcp__a__b", "other", Value::Null));
    assert_eq!(described("ExitPlanMode", json!({})), row("ExitPlanMode", "switch_mode", Value::Null));
}

#[test]
fn edits_are_differences_that_stay() {
    let mut translator = translator();
    let edit = json!({"file_path": "/a", "old_string": "x", "new_string": "y"});
    let started = call(&mut translator, "Edit", edit.clone());
    let diff = json!([{"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}]);
    assert_eq!((&started["content"], &started["rawInput"]), (&diff, &edit));
    let block = json!({"type": "tool_result", "tool_use_id": "t1", "content": "updated"});
    let done = json!([{"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "rawOutput": {"k": 1}}]);
    assert_eq!(result(&mut translator, block, Some(json!({"k": 1}))), done);
    let write = call(&mut translator, "Write", json!({"file_path": "/a", "content": "z"}));
    assert_eq!(write["content"], json!([{"type": "diff", "path": "/a", "oldText": null, "newText": "z"}]));
}

#[test]
fn results_have_texts_and_images_and_failures() {
    let mut translator = translator();
    call(&mut translator, "Bash", json!({"command": "x"}));
    let content = json!([{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}]);
    let block = json!({"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": true});
    let update = result(&mut translator, block.clone(), None)[0].take();
    assert_eq!(update["status"], "failed");
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let shown = json!([{"type": "content", "content": {"type": "text", "text": "a"}}, {"type": "content", "content": image}]);
    assert_eq!(update["content"], shown);
    // The result of a call that was not sent to the editor.
    assert_eq!(result(&mut translator, block, None), json!([]));
}

#[test]
fn tasks_are_a_plan() {
    let mut translator = translator();
    let mut run = |name: &str, input: Value, record: Value| {
        call(&mut translator, name, input);
        let block = json!({"type": "tool_result", "tool_use_id": "t1", "content": "ok"});
        result(&mut translator, block, Some(record))[1]["entries"].take()
    };
    let entry =
        |content: &str, status: &str| json!({"content": content, "priority": "medium", "status": status});
    let created = run("TaskCreate", json!({"subject": "A"}), json!({"task": {"id": "1", "subject": "A"}}));
    assert_eq!(created, json!([entry("A", "pending")]));
    run("TaskCreate", json!({"subject": "B"}), json!({"task": {"id": "2", "subject": "B"}}));
    let updated =
        run("TaskUpdate", json!({"taskId": "1", "status": "in_progress", "subject": "A2"}), json!({}));
    assert_eq!(updated, json!([entry("A2", "in_progress"), entry("B", "pending")]));
    let deleted = run("TaskUpdate", json!({"taskId": "1", "status": "deleted"}), json!({}));
    assert_eq!(deleted, json!([entry("B", "pending")]));
    let todos = run("TodoWrite", json!({"todos": [{"content": "C", "status": "completed"}]}), json!({}));
    assert_eq!(todos, json!([entry("C", "completed")]));
}

#[test]
fn progress_of_a_sub_agent_is_the_title_of_its_call() {
    let source = SubAgentSource {
        agent_id: "a1".to_owned(),
        tool_use_id: "t9".to_owned(),
        agent_type: "Explore".to_owned(),
        description: "Look".to_owned(),
        prompt: String::new(),
    };
    let usage = SubAgentUsage { total_tokens: 0, tool_uses: 0, duration: std::time::Duration::ZERO };
    let event =
        SubAgentEvent::Progress { activity: "Reading a".to_owned(), tool_name: "Read".to_owned(), usage };
    let updates = values(&translator().event(&AgentEvent::SubAgent { source: &source, event: &event }));
    assert_eq!((&updates[0]["toolCallId"], &updates[0]["title"]), (&json!("t9"), &json!("Look: Reading a")));
}

#[test]
fn prompts_are_texts_or_blocks() {
    let translated = |blocks: Value| {
        let blocks: Vec<RawObject> = blocks.as_array().unwrap().iter().map(object).collect();
        prompt(&blocks).map(|content| serde_json::from_str::<Value>(content.get()).unwrap())
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(translated(json!([text("/compact")])).unwrap(), "/compact");
    let link = json!({"type": "resource_link", "name": "a", "uri": "file:///home/ada/a.txt"});
    assert_eq!(translated(json!([text("See "), link])).unwrap(), "See @/home/ada/a.txt");
    let resource = json!({"type": "resource", "resource": {"uri": "file:///b", "text": "B"}});
    assert_eq!(translated(json!([resource])).unwrap(), "<context ref=\"file:///b\">\nB\n</context>");
    let image = json!({"type": "image", "mimeType": "image/png", "data": "QQ=="});
    let source = json!({"type": "base64", "media_type": "image/png", "data": "QQ=="});
    let blocks = json!([text("See"), {"type": "image", "source": source}]);
    assert_eq!(translated(json!([text("See"), image])).unwrap(), blocks);
    assert!(translated(json!([{"type": "audio", "data": ""}])).is_err());
    assert!(translated(json!([])).is_err());
}

#[test]
fn history_has_prompts_replies_and_calls_without_reminders() {
    let message =
        |role, content: Value| Message::new(role, content.as_array().unwrap().iter().map(object).collect());
    let messages = [
        message(
            Role::User,
            json!([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "Go"}]),
        ),
        message(
            Role::Assistant,
            json!([{"type": "thinking", "thinking": "Hm"}, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]),
        ),
        message(Role::User, json!([{"type": "tool_result", "tool_use_id": "t1", "content": "a"}])),
        message(Role::Assistant, json!([{"type": "text", "text": "Done"}])),
    ];
    let updates = values(&translator().history(&messages));
    let kinds: Vec<&str> =
        updates.as_array().unwrap().iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
    let expected =
        ["user_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "agent_message_chunk"];
    assert_eq!(kinds, expected);
    assert_eq!(updates[0]["content"]["text"], "Go");
}
