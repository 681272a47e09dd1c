//! Renders every tool and every kind of entry as Markdown and as our JSON.

use std::collections::BTreeMap;

use threadline_session::SessionFamily;
use threadline_view::{DetailLevel, ItemBody, Transcript, TurnView, markdown, transcript, wire};

#[test]
fn every_tool_and_every_kind_of_entry() {
    for sample in threadline_testkit::samples() {
        let family = SessionFamily::from_bytes(&sample.log, sample.agents);
        let view = transcript(&family, &|_| None);
        let mut text = markdown(&view, DetailLevel::Tools);
        text.push_str("\n════ full ════\n\n");
        text.push_str(&markdown(&view, DetailLevel::Full));
        text.push_str("\n════ json ════\n\n");
        wire::show(&view, &mut |object| {
            text.push_str(&serde_json::to_string(&object).unwrap());
            text.push('\n');
        });
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(sample.name, text);
        });
    }
}

/// Returns the anchor of every item, with its kind.
fn anchors(view: &Transcript) -> BTreeMap<(String, String), &'static str> {
    fn add(agent: &str, turns: &[TurnView], names: &mut BTreeMap<(String, String), &'static str>) {
        for item in turns.iter().flat_map(|turn| &turn.items) {
            let kind = match &item.body {
                ItemBody::Input { input, .. } if input.is_command_line() || input.is_command_output() => {
                    "command"
                }
                // A command before the first prompt becomes an event as soon as that prompt is logged.
                ItemBody::Event { label, .. } if label.starts_with("earlier ") => "command",
                ItemBody::Input { input, .. } => input.name(),
                ItemBody::Text(_) => "text",
                ItemBody::Thinking(_) => "thinking",
                ItemBody::Call(call) => {
                    call.agents.iter().for_each(|agent| add(&agent.id, &agent.turns, names));
                    "call"
                }
                ItemBody::Compaction { .. } => "compaction",
                ItemBody::Link { .. } => "link",
                ItemBody::Error { .. } => "trouble",
                ItemBody::Event { .. } => "event",
                ItemBody::Unknown { .. } => "unknown",
            };
            assert_eq!(names.insert((agent.to_owned(), item.anchor.clone()), kind), None, "{}", item.anchor);
        }
    }
    let mut names = BTreeMap::new();
    add("", &view.turns, &mut names);
    view.end.branches.iter().for_each(|branch| add("", &branch.turns, &mut names));
    view.end.agents.iter().for_each(|agent| add(&agent.id, &agent.turns, &mut names));
    names
}

#[test]
fn anchors_are_stable_while_a_session_grows() {
    for sample in threadline_testkit::samples() {
        let whole = SessionFamily::from_bytes(&sample.log, sample.agents.clone());
        let whole = anchors(&transcript(&whole, &|_| None));
        for (end, _) in sample.log.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            let family = SessionFamily::from_bytes(&sample.log[..=end], sample.agents.clone());
            for (name, kind) in anchors(&transcript(&family, &|_| None)) {
                assert_eq!(whole.get(&name), Some(&kind), "{}: {name:?} after {end} bytes", sample.name);
            }
        }
    }
}
