//! A person at a screen, while a turn runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use threadline_agent::{Agent, AgentEvent, QueuedPrompt, TurnEnd, TurnInput, TurnSummary};
use threadline_cancel::CancelToken;
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
        std::mem::take(&mut self.prompts.lock().unwrap())
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
    let queued = |text: &str| QueuedPrompt { content: to_raw_value(text).unwrap(), time: 1_700_000_000_000 };
    person.prompts.lock().unwrap().extend([queued("also this"), queued("and that")]);
    run(&mut interactive(&stage, &api, &person), "first");
    let sent = messages(&api.requests()[1].body);
    let (role, last) = sent.last().unwrap();
    assert_eq!(role, "user");
    assert!(last.starts_with("tool_result | <system-reminder>"), "{last}");
    assert!(last.find("also this").unwrap() < last.find("and that").unwrap(), "{last}");
    let lines: Vec<Value> = stage.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
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
    assert_eq!(sent[2].1, "[Request interrupted by user] | go on");
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
