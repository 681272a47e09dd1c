//! A person at a screen, while a turn runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use threadline_agent::{
    Agent, AgentEvent, PermissionAnswer, PermissionPrompt, PermissionRequest, QueuedPrompt, TurnEnd,
    TurnInput, TurnSummary,
};
use threadline_cancel::CancelToken;
use threadline_permission::PermissionMode;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

/// A person with entered prompts, or with a prompt to take back.
#[derive(Default)]
struct Person {
    prompts: Mutex<Vec<QueuedPrompt>>,
    takes_back: AtomicBool,
}

impl TurnInput for Person {
    fn take_prompts(&self) -> Vec<QueuedPrompt> {
        std::mem::take(&mut self.prompts.lock())
    }

    fn takes_prompt_back(&self) -> bool {
        self.takes_back.load(Ordering::Relaxed)
    }
}

fn interactive(stage: &Stage, api: &ScriptedApi, person: &Arc<Person>) -> Agent {
    let mut config = stage.config(stage.start());
    config.is_interactive = true;
    let mut agent = stage.agent(api, config).unwrap();
    agent.set_turn_input(Arc::clone(person) as Arc<dyn TurnInput>);
    agent
}

fn run(agent: &mut Agent, prompt: &str) -> TurnSummary {
    agent.run(&to_raw_value(prompt).unwrap(), &CancelToken::new(), &mut |_| {})
}

/// Runs a prompt and cancels its turn at the first stream event that contains a text.
fn interrupt_at(agent: &mut Agent, prompt: &str, event: &str) -> TurnSummary {
    let cancel = CancelToken::new();
    agent.run(&to_raw_value(prompt).unwrap(), &cancel, &mut |received| {
        if matches!(received, AgentEvent::Stream { raw, .. } if raw.contains(event)) {
            cancel.cancel();
        }
    })
}

/// The messages of a request: role and content.
fn messages(body: &Value) -> Vec<(String, String)> {
    let message = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        let texts = blocks.map(|block| block["text"].as_str().unwrap_or(block["type"].as_str().unwrap()));
        (message["role"].as_str().unwrap().to_owned(), texts.collect::<Vec<_>>().join(" | "))
    };
    body["messages"].as_array().unwrap().iter().map(message).collect()
}

fn queued(text: &str) -> QueuedPrompt {
    QueuedPrompt { content: to_raw_value(text).unwrap(), time: 1_700_000_000_000 }
}

fn lines(stage: &Stage) -> Vec<Value> {
    stage.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A reply that stops after its first events.
fn stalled(text: &str) -> ScriptedReply {
    let blocks = vec![json!({"type": "text", "text": text})];
    ScriptedReply::Stall { blocks, after: 420, pause: Duration::from_secs(30) }
}

#[test]
fn prompts_join_the_turn_after_its_tools_and_are_there_after_a_resume() {
    let stage = Stage::new();
    let call = ScriptedReply::call("Bash", json!({"command": "echo out"}));
    let api = ScriptedApi::start(vec![call, ScriptedReply::text("Done.")]);
    let person = Arc::new(Person::default());
    person.prompts.lock().extend([queued("also this"), queued("and that")]);
    run(&mut interactive(&stage, &api, &person), "first");
    let sent = messages(&api.requests()[1].body);
    let (role, last) = sent.last().unwrap();
    assert_eq!(role, "user");
    assert!(last.starts_with("tool_result | <system-reminder>"), "{last}");
    assert!(last.find("also this").unwrap() < last.find("and that").unwrap(), "{last}");
    let lines = lines(&stage);
    let attachment = lines.iter().find(|line| line["type"] == "attachment").unwrap();
    assert_eq!(
        attachment["attachment"],
        json!({"type": "queued_command", "prompt": "also this", "commandMode": "prompt",
            "origin": {"kind": "human"}, "timestamp": "2023-11-14T22:13:20.000Z"})
    );
    let operations: Vec<&Value> = lines.iter().filter(|line| line["type"] == "queue-operation").collect();
    assert_eq!(operations.len(), 4);
    assert_eq!(
        (&operations[0]["content"], &operations[1]["operation"]),
        (&json!("also this"), &json!("remove"))
    );
    // The same messages after a resume.
    let api = ScriptedApi::start(vec![ScriptedReply::text("Yes.")]);
    run(&mut interactive(&stage, &api, &person), "next");
    let resumed = messages(&api.requests()[0].body);
    assert_eq!(resumed[..sent.len()], sent[..]);
}

#[test]
fn a_prompt_is_taken_back_before_its_reply_begins() {
    let stage = Stage::new();
    let api =
        ScriptedApi::start(vec![ScriptedReply::text("one"), stalled("never"), ScriptedReply::text("two")]);
    let person = Arc::new(Person::default());
    let mut agent = interactive(&stage, &api, &person);
    run(&mut agent, "first");
    person.takes_back.store(true, Ordering::Relaxed);
    let summary = interrupt_at(&mut agent, "second", "message_start");
    assert_eq!(summary.end, TurnEnd::TakenBack);
    run(&mut agent, "second, better");
    let sent: Vec<String> = messages(&api.requests()[2].body).into_iter().map(|(_, text)| text).collect();
    assert_eq!(sent, ["first", "one", "second, better"]);
    let lines = stage.lines();
    assert!(lines.iter().all(|line| !line.contains("[Request interrupted")), "{lines:?}");
}

#[test]
fn a_first_prompt_is_taken_back_too() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![stalled("never"), ScriptedReply::text("two")]);
    let person = Arc::new(Person { takes_back: true.into(), ..Person::default() });
    let mut agent = interactive(&stage, &api, &person);
    assert_eq!(interrupt_at(&mut agent, "first", "message_start").end, TurnEnd::TakenBack);
    run(&mut agent, "better");
    let sent = messages(&api.requests()[1].body);
    assert_eq!(sent, [("user".to_owned(), "better".to_owned())]);
}

#[test]
fn text_that_was_seen_before_an_interruption_is_kept() {
    let stage = Stage::new();
    let blocks = vec![json!({"type": "text", "text": "A beginning."})];
    let stalled = ScriptedReply::Stall { blocks, after: 950, pause: Duration::from_secs(30) };
    let api = ScriptedApi::start(vec![stalled, ScriptedReply::text("two")]);
    let person = Arc::new(Person { takes_back: true.into(), ..Person::default() });
    let mut agent = interactive(&stage, &api, &person);
    let summary = interrupt_at(&mut agent, "first", "text_delta");
    assert_eq!(summary.end, TurnEnd::Interrupted { during_tools: false });
    run(&mut agent, "go on");
    let sent = messages(&api.requests()[1].body);
    assert_eq!(sent[1].0, "assistant");
    assert!("A beginning.".starts_with(&sent[1].1) && !sent[1].1.is_empty(), "{sent:?}");
    assert_eq!(sent[2].1, "[Request interrupted by user]\n | go on");
}

#[test]
fn an_interrupted_shell_line_leaves_no_lines_and_a_finished_one_is_answered() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![ScriptedReply::text("I see.")]);
    let mut agent = interactive(&stage, &api, &Arc::new(Person::default()));
    let cancel = CancelToken::new();
    cancel.cancel();
    assert!(agent.run_shell_line("echo no", &cancel, &mut |_| {}).unwrap().is_none());
    assert!(stage.lines().is_empty());
    agent.run_shell_line("echo yes", &CancelToken::new(), &mut |_| {}).unwrap();
    assert_eq!(agent.answer(&CancelToken::new(), &mut |_| {}).text, "I see.");
    let sent = messages(&api.requests()[0].body);
    assert_eq!(
        sent,
        [(
            "user".to_owned(),
            "<bash-input>echo yes</bash-input> | <bash-stdout>yes</bash-stdout><bash-stderr></bash-stderr>"
                .to_owned()
        )]
    );
}

#[test]
fn prompts_that_were_queued_are_one_turn_with_a_line_each() {
    let stage = Stage::new();
    let api = ScriptedApi::start(["one", "two", "three"].map(ScriptedReply::text).to_vec());
    let mut config = stage.config(stage.start());
    (config.is_interactive, config.prompt_source) = (true, Some("typed".to_owned()));
    let mut agent = stage.agent(&api, config).unwrap();
    run(&mut agent, "first");
    let prompts = ["also this", "and that", "and more"].map(queued);
    assert_eq!(agent.run_queued(&prompts, &CancelToken::new(), &mut |_| {}).text, "two");
    agent.finish(&mut |_| {}).unwrap();
    let sent = messages(&api.requests()[1].body);
    assert_eq!(sent[2], ("user".to_owned(), "also this\n | and that\n | and more".to_owned()));
    let lines = lines(&stage);
    let operations: Vec<(&Value, &Value)> = lines
        .iter()
        .filter(|line| line["type"] == "queue-operation")
        .map(|line| (&line["operation"], &line["content"]))
        .collect();
    let (enqueue, dequeue) = (&json!("enqueue"), &json!("dequeue"));
    let contents = ["also this", "and that", "and more"].map(|text| json!(text));
    let expected = [enqueue, enqueue, enqueue].into_iter().zip(&contents);
    assert_eq!(operations, expected.chain([(dequeue, &Value::Null); 3]).collect::<Vec<_>>());
    let prompt = |text: &str| lines.iter().find(|line| line["message"]["content"] == text).unwrap();
    let [first, second, third] = ["also this", "and that", "and more"].map(prompt);
    let duration = lines.iter().find(|line| line["subtype"] == "turn_duration").unwrap();
    assert_eq!(first["parentUuid"], duration["uuid"]);
    assert_eq!((&second["parentUuid"], &third["parentUuid"]), (&first["uuid"], &second["uuid"]));
    assert_eq!(first["promptId"], third["promptId"]);
    assert_eq!(third["promptSource"], "queued");
    assert_eq!(third["origin"], json!({"kind": "human"}));
    let snapshots = lines.iter().filter(|line| line["type"] == "file-history-snapshot");
    assert_eq!(snapshots.count(), 4, "one per prompt");
    let mark = lines.iter().find(|line| line["type"] == "last-prompt").unwrap();
    assert_eq!(mark["lastPrompt"], "also this");
    // The same message after a resume.
    let mut resumed = interactive(&stage, &api, &Arc::new(Person::default()));
    run(&mut resumed, "next");
    assert_eq!(messages(&api.requests()[2].body)[..3], sent[..]);
}

#[test]
fn a_queued_prompt_that_a_hook_blocks_is_left_out() {
    for blocked in 0..2 {
        let stage = Stage::new();
        let api = ScriptedApi::start(vec![ScriptedReply::text("one")]);
        let hook = json!({"type": "command", "command": "if grep -q secret; then echo no >&2; exit 2; fi"});
        let hooks = json!({"UserPromptSubmit": [{"hooks": [hook]}]}).to_string();
        let mut config = stage.config(stage.start());
        config.is_interactive = true;
        config.hooks.add(serde_json::from_str(&hooks).unwrap()).unwrap();
        let mut prompts = ["plain", "another"].map(queued).to_vec();
        prompts.insert(blocked, queued("secret"));
        let mut stopped = Vec::new();
        let mut agent = stage.agent(&api, config).unwrap();
        agent.run_queued(&prompts, &CancelToken::new(), &mut |event| {
            if let AgentEvent::PromptStopped { text, .. } = event {
                stopped.push(text.to_owned());
            }
        });
        assert!(stopped.len() == 1 && stopped[0].contains("no"), "{stopped:?}");
        let sent = messages(&api.requests()[0].body);
        assert_eq!(sent, [("user".to_owned(), "plain\n | another".to_owned())], "{blocked}");
    }
}

/// Ends every turn that asks.
struct Refusing;

impl PermissionPrompt for Refusing {
    fn ask(&self, _: &PermissionRequest<'_>, _: &CancelToken) -> PermissionAnswer {
        PermissionAnswer::Interrupt
    }
}

/// The moment at which a test interrupts a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    FirstRequest,
    FirstReply,
    ToolOutput,
    SecondRequest,
    SecondReply,
    Refusal,
}

/// Interrupts a turn of a call and a text at a moment. Returns the line of the interruption, and the ids of
/// the replies in the order of the stream.
fn interrupted_line(moment: Moment, is_interactive: bool) -> (Value, Vec<String>) {
    let stage = Stage::new();
    let command = "echo out; while [ $SECONDS -lt 20 ]; do :; done";
    let command = match moment {
        Moment::ToolOutput => command,
        Moment::Refusal => "touch made",
        _ => "echo out",
    };
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Bash", json!({ "command": command })),
        stalled("A text that does not end."),
    ]);
    let mut config = stage.config(stage.start());
    config.is_interactive = is_interactive;
    if moment == Moment::Refusal {
        config.permissions.update(|permissions| permissions.mode = PermissionMode::Default);
    }
    let mut agent = stage.agent(&api, config).unwrap();
    agent.set_prompt(Arc::new(Refusing));
    let cancel = CancelToken::new();
    let (mut requests, mut ids) = (0, Vec::new());
    agent.run(&to_raw_value("go").unwrap(), &cancel, &mut |event| {
        let now = match event {
            AgentEvent::Requesting => {
                requests += 1;
                if requests == 1 { Moment::FirstRequest } else { Moment::SecondRequest }
            }
            AgentEvent::Stream { raw, .. } if raw.contains("message_start") => {
                let event: Value = serde_json::from_str(raw).unwrap();
                ids.push(event["message"]["id"].as_str().unwrap().to_owned());
                if requests == 1 { Moment::FirstReply } else { Moment::SecondReply }
            }
            AgentEvent::ToolOutput { .. } => Moment::ToolOutput,
            _ => return,
        };
        if now == moment {
            cancel.cancel();
        }
    });
    let line = lines(&stage).into_iter().find(|line| line.to_string().contains("[Request interrupted"));
    (line.expect("line"), ids)
}

#[test]
fn an_interruption_names_the_last_reply_that_began() {
    let cases = [
        (Moment::FirstRequest, None),
        (Moment::FirstReply, Some(0)),
        (Moment::ToolOutput, Some(0)),
        (Moment::SecondRequest, Some(0)),
        (Moment::SecondReply, Some(1)),
        (Moment::Refusal, None),
    ];
    for (moment, expected) in cases {
        let (line, ids) = interrupted_line(moment, true);
        let expected = expected.map_or(Value::Null, |at: usize| json!(ids[at]));
        assert_eq!(line["interruptedMessageId"], expected, "{moment:?}");
    }
    let (line, _) = interrupted_line(Moment::ToolOutput, false);
    assert_eq!(line["interruptedMessageId"], Value::Null, "without a screen");
}
