//! Lines are written with the format's key order, and the lenses read back the same values.

use proptest::prelude::*;

use super::*;
use crate::json::Json;
use crate::lens::{self, drift};
use crate::{Entry, Kind};

const TIME: Millis = 1_767_261_600_007;

fn context() -> LineContext<'static> {
    LineContext {
        is_sidechain: false,
        agent_id: None,
        user_type: Some("external".into()),
        entrypoint: Some("cli".into()),
        cwd: Some("/home/ada/loom".into()),
        session_id: Some("s1".into()),
        version: Some("2.1.197".into()),
        git_branch: Some("main".into()),
        slug: None,
        is_leading: false,
    }
}

fn keys(line: &str) -> String {
    let (entry, findings) = Entry::parse(line.as_bytes());
    assert!(findings.is_empty() && !line.contains('\n'), "{line}");
    let keys: Vec<_> = entry.members().map(|(key, _)| key.name().into_owned()).collect();
    keys.join(" ")
}

#[test]
fn keys_are_in_the_order_of_the_format() {
    let context = context();
    let header = LineHeader { uuid: "u2", parent_uuid: Some("u1"), timestamp: TIME };
    let blocks = Json::parse(r#"[{"type":"tool_result","tool_use_id":"t1","content":"a"}]"#).unwrap();
    let result = UserLine {
        prompt_id: Some("p1"),
        tool_use_result: Json::parse("{\"stdout\":\n\"a\"}"),
        source_tool_assistant_uuid: Some("a1"),
        ..UserLine::new(header, &context, UserContent::Blocks(blocks))
    };
    assert_eq!(
        keys(&result.to_line()),
        "parentUuid isSidechain promptId type message uuid timestamp toolUseResult sourceToolAssistantUUID \
         userType entrypoint cwd sessionId version gitBranch"
    );
    let summary =
        UserLine { is_compact_summary: true, ..UserLine::new(header, &context, UserContent::Text("before")) };
    assert_eq!(
        keys(&summary.to_line()),
        "parentUuid isSidechain type message isVisibleInTranscriptOnly isCompactSummary uuid timestamp \
         userType entrypoint cwd sessionId version gitBranch"
    );
    let message = Json::parse(r#"{"model":"m","id":"m1","type":"message","role":"assistant","content":[]}"#);
    let reply = AssistantLine {
        header,
        context: &context,
        message: message.unwrap(),
        request_id: Some("req"),
        attribution_agent: None,
        is_api_error: false,
        attribution_skill: None,
        attribution_mcp: None,
    };
    assert_eq!(
        keys(&reply.to_line()),
        "parentUuid isSidechain message requestId type uuid timestamp userType entrypoint cwd sessionId \
         version gitBranch"
    );
    let boundary = CompactBoundaryLine {
        uuid: "b1",
        logical_parent_uuid: Some("u2"),
        timestamp: TIME,
        context: &context,
        trigger: "manual",
        pre_tokens: 7,
        details: None,
    };
    assert_eq!(
        keys(&boundary.to_line()),
        "parentUuid logicalParentUuid isSidechain type subtype content isMeta timestamp uuid level \
         compactMetadata userType entrypoint cwd sessionId version gitBranch"
    );
    let snapshot = FileHistorySnapshotLine {
        message_id: "u1",
        snapshot_message_id: "u1",
        tracked_file_backups: Json::parse("{}").unwrap(),
        timestamp: TIME,
        is_snapshot_update: false,
    };
    assert_eq!(keys(&snapshot.to_line()), "type messageId snapshot isSnapshotUpdate");
}

/// No lens finds a key that it does not know.
fn read(line: &str) -> Entry {
    let (entry, findings) = Entry::parse(line.as_bytes());
    assert!(findings.is_empty(), "{findings:?} in {line}");
    let mut unknown = Vec::new();
    drift(&entry, &mut |key| unknown.push(key.to_owned()));
    assert!(unknown.is_empty(), "{unknown:?} in {line}");
    entry
}

proptest! {
    #[test]
    fn the_lenses_read_back_what_was_written(
        text in any::<String>(),
        id in any::<String>(),
        cwd in proptest::option::of(any::<String>()),
        is_sidechain in any::<bool>(),
        time in 0_i64..4_000_000_000_000,
        tokens in any::<u64>(),
    ) {
        let context = LineContext {
            is_sidechain,
            agent_id: is_sidechain.then(|| id.as_str().into()),
            cwd: cwd.as_deref().map(Into::into),
            ..context()
        };
        let header = LineHeader { uuid: &id, parent_uuid: Some(&text), timestamp: time };

        let line = UserLine::new(header, &context, UserContent::Text(&text)).to_line();
        let entry = read(&line);
        assert_eq!(entry.kind(), Kind::User);
        assert_eq!(LineContext::of(&entry), context.clone());
        assert_eq!(entry.uuid().as_deref(), Some(&*id));
        assert_eq!(entry.parent_uuid().as_deref(), Some(&*text));
        assert_eq!(entry.timestamp(), Some(time));
        assert_eq!(entry.message().unwrap().content().unwrap().text(), &*text);

        let blocks = format!("[{{\"type\":\"text\",\n\"text\":{}}}]", quote(&text));
        let message = format!(
            "{{\"model\":{},\"id\":\"m1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":{blocks}}}",
            quote(&id)
        );
        let reply = AssistantLine {
            header,
            context: &context,
            message: Json::parse(&message).unwrap(),
            request_id: Some(&text),
            attribution_agent: None,
            is_api_error: false,
        attribution_skill: None,
        attribution_mcp: None,
        };
        let line = reply.to_line();
        assert!(!line.contains('\n'));
        let entry = read(&line);
        assert_eq!(entry.kind(), Kind::Assistant);
        let message = entry.message().unwrap();
        assert_eq!(message.model().as_deref(), Some(&*id));
        assert_eq!(message.blocks().next().unwrap().text().as_deref(), Some(&*text));

        let boundary = CompactBoundaryLine {
            uuid: &id,
            logical_parent_uuid: Some(&text),
            timestamp: time,
            context: &context,
            trigger: "auto",
            pre_tokens: tokens,
            details: None,
        };
        let entry = read(&boundary.to_line());
        let metadata = entry.lens::<lens::CompactBoundary<'_>>().unwrap().compact_metadata().unwrap();
        assert_eq!(metadata.pre_tokens(), Some(tokens));
        assert_eq!(entry.parent_uuid(), None);
        assert_eq!(entry.envelope().unwrap().logical_parent_uuid().as_deref(), Some(&*text));

        let entry = read(&CustomTitleLine { title: &text, session_id: &id }.to_line());
        let title = entry.lens::<lens::CustomTitle<'_>>().unwrap();
        assert_eq!(title.custom_title().as_deref(), Some(&*text));
        assert_eq!(entry.session_id().as_deref(), Some(&*id));

        let entry = read(&TagLine { tag: &text, session_id: &id }.to_line());
        assert_eq!(entry.lens::<lens::Tag<'_>>().unwrap().tag().as_deref(), Some(&*text));

        let entry = read(&SummaryLine { summary: &text, leaf_uuid: &id }.to_line());
        let summary = entry.lens::<lens::Summary<'_>>().unwrap();
        assert_eq!(summary.summary().as_deref(), Some(&*text));
        assert_eq!(summary.leaf_uuid().as_deref(), Some(&*id));

        let line = LastPromptLine { last_prompt: Some(&text), leaf_uuid: &id, session_id: "s1" }.to_line();
        let entry = read(&line);
        assert_eq!(entry.lens::<lens::LastPrompt<'_>>().unwrap().last_prompt().as_deref(), Some(&*text));

        let entry = read(&ModeLine { mode: &text, session_id: &id }.to_line());
        assert_eq!(entry.lens::<lens::Mode<'_>>().unwrap().mode().as_deref(), Some(&*text));

        let queued = QueueOperationLine {
            operation: "enqueue",
            timestamp: time,
            session_id: &id,
            content: Some(&text),
        };
        let entry = read(&queued.to_line());
        let queued = entry.lens::<lens::QueueOperation<'_>>().unwrap();
        assert_eq!(queued.operation().as_deref(), Some("enqueue"));
        assert_eq!(entry.timestamp(), Some(time));

        let backups = format!("{{{}:{{\"backupFileName\":\"01@v1\",\"version\":1}}}}", quote(&text));
        let snapshot = FileHistorySnapshotLine {
            message_id: &id,
            snapshot_message_id: &id,
            tracked_file_backups: Json::parse(&backups).unwrap(),
            timestamp: time,
            is_snapshot_update: true,
        };
        let entry = read(&snapshot.to_line());
        let snapshot = entry.lens::<lens::FileHistorySnapshot<'_>>().unwrap();
        assert_eq!(snapshot.is_snapshot_update(), Some(true));
        assert_eq!(snapshot.snapshot().unwrap().message_id().as_deref(), Some(&*id));

        let origin = ForkOrigin { session_id: &id, message_uuid: &text }.to_json();
        let line = format!("{{\"type\":\"user\",\"{}\":{origin}}}", ForkOrigin::KEY);
        let entry = read(&line);
        let origin = entry.envelope().unwrap().forked_from().unwrap();
        assert_eq!(origin.message_uuid().as_deref(), Some(&*text));
    }
}

#[test]
fn early_versions_put_the_common_values_first() {
    let context = LineContext { is_leading: true, entrypoint: None, ..context() };
    let header = LineHeader { uuid: "u1", parent_uuid: None, timestamp: TIME };
    let line = UserLine::new(header, &context, UserContent::Text("Hello")).to_line();
    assert_eq!(
        keys(&line),
        "parentUuid isSidechain userType cwd sessionId version gitBranch type message uuid timestamp"
    );
}
