//! Rendering of sessions as text. Only this file calls most of the API, so API changes affect few tests.

use std::fmt::Write;

use threadline_entry::AgentKind;
use threadline_entry::{Kind, Severity};
use threadline_session::{
    CallIndex, ClientVersion, EntryIndex, ParentLink, ReplyIndex, Session, SessionFamily, Spawn, Subagent,
    Turn,
};
use threadline_testkit::log;

pub(crate) fn session(notation: &str) -> Session {
    Session::from_bytes(&log(notation))
}

/// Returns the label of an entry: its uuid, else its line number.
pub(crate) fn name(session: &Session, idx: EntryIndex) -> String {
    let entry = &session.entries()[idx];
    let line = || format!("line{}", entry.at().line_no);
    entry.uuid().map_or_else(line, Into::into)
}

pub(crate) fn names(session: &Session, entries: &[EntryIndex]) -> String {
    entries.iter().map(|&idx| name(session, idx)).collect::<Vec<_>>().join(" ")
}

/// Renders the turns: their round, prompt, entries, replies and calls.
pub(crate) fn turns(notation: &str) -> String {
    turns_of(&session(notation))
}

pub(crate) fn turns_of(session: &Session) -> String {
    let mut out = String::new();
    for turn in session.turns() {
        let open = if turn.is_open(session) { "  open" } else { "" };
        let prompt = turn.prompt.map_or("(no prompt)".into(), |idx| text(session, idx));
        writeln!(out, "turn {}  {}  {prompt}{open}", turn.number, turn.round.name()).unwrap();
        writeln!(out, "  [{}]", names(session, &turn.entries)).unwrap();
        for reply in turn.replies(session) {
            writeln!(out, "  {}", reply_text(session, &turn, reply)).unwrap();
        }
    }
    out
}

/// Returns the first 40 characters of an entry's text.
pub(crate) fn text(session: &Session, idx: EntryIndex) -> String {
    let content = session.entries()[idx].message().and_then(|message| message.content());
    let text = content.map(|content| content.text().into_owned()).unwrap_or_default();
    format!("{:?}", text.chars().take(40).collect::<String>())
}

fn reply_text(session: &Session, turn: &Turn, reply: ReplyIndex) -> String {
    let reply = &session.replies()[reply];
    let calls = turn.tool_calls(session);
    let blocks = reply.blocks(session).map(|(entry_idx, block)| {
        let kind = block.kind().unwrap_or_default().into_owned();
        if kind != "tool_use" {
            return kind;
        }
        let id = block.id().unwrap_or_default();
        let here = |call: &&CallIndex| {
            let call = &session.tool_calls()[**call];
            *call.id == *id && call.lines.contains(&entry_idx)
        };
        let outcome = calls.iter().find(here).map(|&call| session.tool_calls()[call].outcome(session).name());
        format!("{}({id}) -> {}", block.name().unwrap_or_default(), outcome.unwrap_or("elsewhere"))
    });
    format!("{}  {}", reply.id.as_deref().unwrap_or("(no id)"), blocks.collect::<Vec<_>>().join(", "))
}

/// Renders the tree, with each entry below its parent.
pub(crate) fn tree(notation: &str) -> String {
    fn below(session: &Session, idx: EntryIndex, depth: usize, out: &mut String) {
        let mark = if session.parent(idx) == ParentLink::Dangling { "  (parent missing)" } else { "" };
        writeln!(out, "{}{}{mark}", "  ".repeat(depth), name(session, idx)).unwrap();
        for child in session.children(idx) {
            below(session, child, depth + 1, out);
        }
    }
    let session = session(notation);
    let mut out = String::new();
    for root in session.roots() {
        below(&session, root, 0, &mut out);
    }
    out
}

/// Renders where each entry of the tree belongs: the conversation, a branch, a sidechain, or none of these.
pub(crate) fn paths(notation: &str) -> String {
    paths_of(&session(notation))
}

pub(crate) fn paths_of(session: &Session) -> String {
    let thread = session.thread();
    let mut out = format!("thread: {}\n", names(session, &thread.entries));
    let mut placed = thread.entries.clone();
    for branch in session.branches() {
        let fork = branch.fork.map_or("nowhere".into(), |idx| name(session, idx));
        writeln!(out, "branch from {fork}: {}", names(session, &branch.entries)).unwrap();
        placed.extend(branch.entries);
    }
    let rest = |side: bool| -> Vec<EntryIndex> {
        let tree = session.entries().indices().filter(|&idx| session.in_tree(idx) && !placed.contains(&idx));
        tree.filter(|&idx| session.is_sidechain(idx) == side).collect()
    };
    for (label, entries) in [("sidechain", rest(true)), ("left over", rest(false))] {
        if !entries.is_empty() {
            writeln!(out, "{label}: {}", names(session, &entries)).unwrap();
        }
    }
    out
}

/// The version used for replays in tests that do not depend on the version.
pub(crate) const V197: ClientVersion = ClientVersion::new(2, 1, 197);

/// Renders the messages that Claude Code 2.1.197 sends: roles, and blocks with their ids.
pub(crate) fn replay(notation: &str) -> String {
    let session = session(notation);
    let Some(messages) = session.replay(V197) else { return "refused\n".into() };
    let mut out = String::new();
    for message in messages {
        let mut json = String::new();
        message.write_json(&mut json);
        let message: serde_json::Value = serde_json::from_str(&json).unwrap();
        let blocks = message["content"].as_array().unwrap().iter().map(|block| {
            let id =
                [&block["id"], &block["tool_use_id"], &block["text"]].into_iter().find_map(|id| id.as_str());
            format!("{} {}", block["type"].as_str().unwrap_or("?"), id.unwrap_or_default())
        });
        let blocks: Vec<String> = blocks.map(|block| block.trim_end().to_owned()).collect();
        writeln!(out, "{}: {}", message["role"].as_str().unwrap(), blocks.join(", ")).unwrap();
    }
    out
}

/// Renders the findings: line, code, severity, message.
pub(crate) fn findings(notation: &str) -> String {
    findings_of(&session(notation))
}

pub(crate) fn findings_of(session: &Session) -> String {
    let mut out = String::new();
    for finding in session.findings() {
        let line = finding.at.map_or("-".into(), |at| at.line_no.to_string());
        let (code, how) = (finding.code, finding.severity.name());
        writeln!(out, "line {line}  {code}  {how}: {}", finding.message).unwrap();
    }
    out
}

/// Returns whether all findings are notes.
pub(crate) fn is_sound(session: &Session) -> bool {
    session.findings().iter().all(|finding| finding.severity == Severity::Note)
}

/// Returns an agent as its log and `meta.json` describe it. The latter may name the call that started it.
pub(crate) fn agent(id: &str, tool_use_id: Option<&str>, notation: &str) -> Subagent {
    let spawn = tool_use_id.map(|id| Spawn { agent: None, tool_use_id: id.into() });
    let (kind, session) = (AgentKind::Task, session(notation));
    Subagent { id: id.into(), kind, agent_type: None, description: None, workflow_run: None, session, spawn }
}

/// Renders a family: each agent, the call that started it, and its conversation.
pub(crate) fn agents(family: &SessionFamily) -> String {
    let mut out = String::new();
    for (i, agent) in family.agents.enumerated() {
        let spawn = agent.spawn.as_ref().map_or("an unknown call".into(), |spawn| {
            let by = spawn.agent.map_or("the session", |by| &family.agents[by].id);
            let known = family.spawned_by(spawn.agent, &spawn.tool_use_id).any(|spawned| spawned == i);
            assert!(known, "spawned_by and spawn disagree");
            format!("{} of {by}", spawn.tool_use_id)
        });
        let called = [&agent.agent_type, &agent.description].into_iter().flatten();
        let called: Vec<String> = called.map(|text| format!(" {text:?}")).collect();
        writeln!(out, "{} {:?}{} started by {spawn}", agent.id, agent.kind, called.concat()).unwrap();
        let said = &agent.session;
        writeln!(out, "  {}", paths_of(said).trim_end().replace('\n', "\n  ")).unwrap();
        let replies = said.replies().iter().map(|reply| reply.id.as_deref().unwrap_or("(no id)"));
        writeln!(out, "  replies: {}", replies.collect::<Vec<_>>().join(" ")).unwrap();
    }
    out
}

/// Renders the kind of each user or attachment entry, in file order.
pub(crate) fn inputs(notation: &str) -> String {
    let session = session(notation);
    let mut out = String::new();
    for idx in session.entries().indices() {
        if let Some(input) = session.input(idx) {
            let opens = if input.opens_turn() { "opens a turn" } else { "" };
            let typed = if input.is_typed() { "typed" } else { "" };
            let line = format!("{:4} {:18} {typed:6} {opens}", name(&session, idx), input.name());
            writeln!(out, "{}", line.trim_end()).unwrap();
        } else {
            assert!(session.entries()[idx].kind() != Kind::User, "a user entry is some input");
        }
    }
    out
}
