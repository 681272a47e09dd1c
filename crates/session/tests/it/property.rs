//! Properties that hold for any log, however malformed.

use std::collections::HashSet;

use proptest::prelude::*;
use threadline_entry::{Kind, LineReader, parse_line};
use threadline_session::{ClientVersion, EntryIndex, IndexVec, Session, SessionFamily};

use crate::render::{findings_of, paths_of, turns_of};

/// Generates a line of any kind.
///
/// Uuids, message ids and tool ids come from small pools, so that duplicates, cycles, missing and late
/// parents, and reused ids all occur.
fn line() -> impl Strategy<Value = String> {
    let uuid = (0..9u8).prop_map(|n| if n == 8 { String::new() } else { format!(r#""uuid":"{n}","#) });
    let parent = (0..10u8).prop_map(|n| match n {
        8 => r#""parentUuid":null,"#.to_owned(),
        9 => String::new(),
        n => format!(r#""parentUuid":"{n}","#),
    });
    let time = (0..40u8).prop_map(|n| match n {
        39 => String::new(),
        n => format!(r#""timestamp":"2026-01-01T10:00:{n:02}.000Z","#),
    });
    let flags = prop_oneof![
        6 => Just(""),
        1 => Just(r#""isSidechain":true,"#),
        1 => Just(r#""isMeta":true,"#),
        1 => Just(r#""isCompactSummary":true,"#),
        1 => Just(r#""isApiErrorMessage":true,"#),
    ];
    let head = (uuid, parent, time, flags)
        .prop_map(|(uuid, parent, time, flags)| format!("{uuid}{parent}{time}{flags}"));
    let object = (head, body()).prop_map(|(head, body)| format!("{{{head}{body}}}")).boxed();
    prop_oneof![
        20 => object.clone().prop_map(|line| line + "\n"),
        1 => object.clone(),
        1 => object.prop_map(|line| format!("{}\n", &line[..line.len() / 2])),
        1 => prop_oneof![Just("\n"), Just("42\n"), Just("// note\n"), Just("\u{feff}{}\n"), Just("{\"type\":\"mode\"}\n")]
            .prop_map(str::to_owned),
    ]
}

fn body() -> impl Strategy<Value = String> {
    let text =
        prop_oneof![Just(r#"{"type":"text","text":"hm"}"#), Just(r#"{"type":"text","text":" "}"#), Just("7")];
    let call = (0..4u8).prop_map(|n| {
        format!(r#"{{"type":"tool_use","id":"t{n}","name":"Bash","input":{{"prompt":"go"}}}}"#)
    });
    let result =
        (0..4u8).prop_map(|n| format!(r#"{{"type":"tool_result","tool_use_id":"t{n}","content":"ok"}}"#));
    let thinking = Just(r#"{"type":"thinking","thinking":"","signature":"s"}"#.to_owned());
    let nameless = Just(r#"{"type":"tool_use","name":"Nameless"}"#.to_owned());
    let text = text.prop_map(str::to_owned).boxed();
    let said = content(prop_oneof![2 => text.clone(), 1 => thinking, 4 => call, 1 => nameless].boxed());
    let asked = content(prop_oneof![1 => text, 2 => result].boxed());
    let reply = (0..4u8, prop_oneof![3 => Just("claude"), 1 => Just("<synthetic>")], said).prop_map(
        |(id, model, content)| {
            let id = if id == 3 { String::new() } else { format!(r#""id":"m{id}","#) };
            format!(r#""type":"assistant","message":{{{id}"model":"{model}","content":{content}}}"#)
        },
    );
    let user = asked.prop_map(|content| format!(r#""type":"user","message":{{"content":{content}}}"#));
    let boundary = (0..9u8, 0..9u8).prop_map(|(head, tail)| {
        let kept = format!(r#"{{"headUuid":"{head}","anchorUuid":"{tail}","tailUuid":"{tail}"}}"#);
        let metadata =
            format!(r#""compactMetadata":{{"preservedSegment":{}}}"#, if head > 4 { &kept } else { "null" });
        format!(r#""type":"system","subtype":"compact_boundary","logicalParentUuid":"{tail}",{metadata}"#)
    });
    let progress = (0..4u8).prop_map(|n| {
        let said = r#"{"type":"user","message":{"content":"go"}}"#;
        format!(r#""type":"progress","parentToolUseID":"t{n}","data":{{"type":"agent_progress","agentId":"a{n}","message":{said}}}"#)
    });
    prop_oneof![
        4 => reply,
        4 => user,
        1 => boundary,
        1 => progress,
        1 => Just(r#""type":"progress","data":{"type":"hook_progress"}"#.to_owned()),
        1 => Just(r#""type":"attachment","attachment":{"type":"queued_command","prompt":"go"}"#.to_owned()),
        1 => Just(r#""type":"system","subtype":"api_error""#.to_owned()),
        1 => Just(r#""type":"hologram""#.to_owned()),
        1 => (0..9u8).prop_map(|n| format!(r#""type":"last-prompt","leafUuid":"{n}""#)),
    ]
}

/// Generates a string or a few blocks.
fn content(block: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let blocks = prop::collection::vec(block, 0..3).prop_map(|blocks| format!("[{}]", blocks.join(",")));
    prop_oneof![
        1 => Just("\"go\"".to_owned()),
        1 => Just("\"[Request interrupted by user]\"".to_owned()),
        4 => blocks,
    ]
}

fn a_log() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..24).prop_map(|lines| lines.concat())
}

/// Renders the result of every query of a session.
fn query_all(session: &Session) -> String {
    let replies: Vec<_> = session
        .replies()
        .iter()
        .map(|reply| (&reply.id, &reply.entries, reply.blocks(session).count()))
        .collect();
    let calls: Vec<_> = session
        .tool_calls()
        .iter()
        .map(|call| (call, call.outcome(session), call.duration(session)))
        .collect();
    let rest = (
        session.compactions(),
        session.title(),
        session.id(),
        session.previous_session(),
        session.forked_from(),
    );
    format!("{}{}{}{replies:?}{calls:?}{rest:?}", turns_of(session), paths_of(session), findings_of(session))
}

proptest! {
    #[test]
    fn no_query_panics_on_any_log(log in a_log()) {
        let session = Session::from_bytes(log.as_bytes());
        query_all(&session);
        SessionFamily::new(session, Vec::new());
    }

    #[test]
    fn every_message_is_in_one_place(log in a_log()) {
        let session = Session::from_bytes(log.as_bytes());
        let thread = session.thread();
        let side = thread.leaf.is_some_and(|leaf| session.is_sidechain(leaf));
        let mut places = IndexVec::filled(0, session.entries().len());
        for &idx in thread.entries.iter().chain(session.branches().iter().flat_map(|branch| &branch.entries)) {
            prop_assert!(session.in_tree(idx) || Some(idx) == thread.leaf, "line {idx:?} is not in the tree");
            places[idx] += 1;
        }
        for (idx, entry) in session.entries().enumerated().filter(|(idx, _)| session.in_tree(*idx)) {
            let spoken = matches!(entry.kind(), Kind::User | Kind::Assistant) && session.is_sidechain(idx) == side;
            prop_assert!(places[idx] <= 1, "line {idx:?} is in {} places", places[idx]);
            prop_assert!(places[idx] == 1 || !spoken, "line {idx:?} is in no place");
        }
        prop_assert!(thread.entries.is_sorted());
        let turns: Vec<EntryIndex> = session.turns().into_iter().flat_map(|turn| turn.entries).collect();
        let spoken = |idx: &EntryIndex| matches!(session.entries()[*idx].kind(), Kind::User | Kind::Assistant);
        prop_assert_eq!(turns.iter().collect::<HashSet<_>>().len(), turns.len(), "turns share no lines");
        prop_assert!(thread.entries.iter().filter(|idx| spoken(idx)).all(|idx| turns.contains(idx)), "turns contain every message");
    }

    #[test]
    fn parents_and_children_are_consistent(log in a_log()) {
        let session = Session::from_bytes(log.as_bytes());
        let n = session.entries().len();
        for idx in session.entries().indices() {
            prop_assert!(session.ancestors(idx).take(n + 1).count() <= n);
            let children: Vec<EntryIndex> = session.children(idx).take(n + 1).collect();
            prop_assert!(children.len() <= n);
            for child in children {
                prop_assert_eq!(session.ancestors(child).nth(1), Some(idx));
            }
        }
        let below: usize = session.entries().indices().map(|idx| session.children(idx).count()).sum();
        prop_assert_eq!(below + session.roots().count(), session.entries().indices().filter(|&idx| session.in_tree(idx)).count());
    }

    #[test]
    fn a_replay_is_a_request_that_the_api_accepts(log in a_log()) {
        let session = Session::from_bytes(log.as_bytes());
        let mut open: Vec<String> = Vec::new();
        for message in session.replay(ClientVersion::NEWEST).unwrap_or_default() {
            let mut json = String::new();
            message.write_json(&mut json);
            let message: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            let blocks = message["content"].as_array().expect("a list");
            prop_assert!(!blocks.is_empty(), "a message without content");
            let ids = |kind: &str, key: &str| -> Vec<String> {
                let blocks = blocks.iter().filter(|block| block["type"] == kind);
                blocks.filter_map(|block| block[key].as_str().map(str::to_owned)).collect()
            };
            let mut results = ids("tool_result", "tool_use_id");
            open.sort();
            results.sort();
            prop_assert_eq!(&results, &open, "each call is answered once, in the message that follows");
            open = ids("tool_use", "id");
        }
        prop_assert!(open.is_empty(), "calls at the end are answered or omitted");
    }

    #[test]
    fn an_incremental_session_equals_one_read_at_once(log in a_log(), cut in 0..200usize) {
        let whole = Session::from_bytes(log.as_bytes());
        let mut grown = Session::new();
        let mut lines = LineReader::new(log.as_bytes());
        let mut at = 0;
        while let Ok(Some(line)) = lines.next() {
            parse_line(&line, |entry, findings| {
                grown.push(entry, findings);
                at += 1;
                if at == cut % 24 {
                    // Queries do not change the session.
                    query_all(&grown);
                }
            });
        }
        prop_assert_eq!(query_all(&grown), query_all(&whole));
    }

    #[test]
    fn no_query_panics_on_any_bytes(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..300)) {
        query_all(&Session::from_bytes(&bytes));
    }
}
