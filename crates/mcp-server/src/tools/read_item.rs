//! Items of a conversation as text.

use std::borrow::Cow;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use threadline_view::humanize::plural;
use threadline_view::{
    CallView, CommandChanges, DetailLevel, Hunk, ItemBody, ToolCard, TranscriptItem, input_name,
    outcome_name, strip_colours,
};

use crate::budget::shorten;

/// One item of an answer of `read_session`: a turn, a prompt, a reply, a call, an event or a sub-agent.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ReadItem {
    /// The session and the item, such as ID#m42.
    pub(crate) source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<String>,
    /// turn, agent, prompt, input, reply, thinking, call, compaction, link, error, event or unknown.
    pub(crate) kind: String,
    /// The name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// The item in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// The ids of sub-agents, for the argument agent.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) agents: Vec<String>,
    pub(crate) text: String,
    /// Whether the text is incomplete. Pass the item for the whole.
    pub(crate) cut: bool,
}

/// An item as text.
pub(crate) struct ItemText {
    pub(crate) kind: &'static str,
    pub(crate) tool: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) agents: Vec<String>,
    pub(crate) body: String,
}

impl ItemText {
    /// Converts an item. From [`DetailLevel::Full`] on, a call contains its input and its output.
    pub(crate) fn of(item: &TranscriptItem, level: DetailLevel) -> Self {
        let (kind, summary, body) = match &item.body {
            ItemBody::Input { input, text, files, context } => {
                let kind = if input.is_typed() || input.opens_turn() { "prompt" } else { "input" };
                let mut summary: Vec<String> = input_name(*input).map(str::to_owned).into_iter().collect();
                summary.extend(context.iter().map(|about| format!("editor: {about}")));
                summary.extend(files.iter().map(|file| file.media_type.clone()));
                (kind, Some(summary.join(", ")).filter(|text| !text.is_empty()), text.clone())
            }
            ItemBody::Text(text) => ("reply", None, text.clone()),
            ItemBody::Thinking(text) if text.trim().is_empty() => {
                ("thinking", Some("not in the log".to_owned()), String::new())
            }
            ItemBody::Thinking(text) => ("thinking", None, text.clone()),
            ItemBody::Call(call) => return Self::of_call(call, level),
            ItemBody::Compaction { trigger, before, after, dropped, summary } => {
                let mut facts: Vec<String> = trigger.iter().cloned().collect();
                if let (Some(before), Some(after)) = (before, after) {
                    facts.push(format!("{before} to {after} tokens"));
                }
                facts.push(format!("{} replaced by a summary", plural(*dropped as u64, "line")));
                ("compaction", Some(facts.join(", ")), summary.clone().unwrap_or_default())
            }
            ItemBody::Link { label, url } => ("link", Some(label.clone()), url.clone()),
            ItemBody::Error { label, text } => ("error", Some(label.clone()), text.clone()),
            ItemBody::Event { label, text } => ("event", Some(label.clone()), text.clone()),
            ItemBody::Unknown { kind, raw } => ("unknown", kind.clone(), raw.clone()),
        };
        Self { kind, tool: None, summary, agents: Vec::new(), body: body.trim().to_owned() }
    }

    fn of_call(call: &CallView, level: DetailLevel) -> Self {
        let state = Some(call.short_result()).filter(|result| !result.is_empty());
        let state = state.map_or_else(|| call.state().into_owned(), Cow::into_owned);
        let outcome = outcome_name(call.outcome);
        let state = if call.is_error() && state != outcome { format!("{outcome}, {state}") } else { state };
        let summary = [&call.subject, &state].into_iter().filter(|text| !text.is_empty());
        let summary: Vec<&str> = summary.map(String::as_str).collect();
        let body = match level {
            DetailLevel::Full => whole_call(call),
            _ => call.error_text().map(strip_colours).unwrap_or_default(),
        };
        Self {
            kind: "call",
            tool: Some(call.name.clone()),
            summary: Some(summary.join(": ")).filter(|text| !text.is_empty()),
            agents: call.agents.iter().map(|agent| agent.id.clone()).collect(),
            body,
        }
    }

    /// Shortens the summary to at most this size.
    pub(crate) fn shorten_summary(&mut self, limit: usize) {
        if let Some(summary) = &mut self.summary {
            *summary = shorten(summary, limit).0;
        }
    }

    /// Formats the item with the part of its text that is shown.
    pub(crate) fn form(&self, anchor: &str, time: &str, shown: &str) -> String {
        let mut out = format!("[{anchor} · {time}] {}", self.kind);
        for fact in self.tool.iter().chain(&self.summary) {
            let _ = write!(out, " · {}", crate::history::one_line(fact));
        }
        if !self.agents.is_empty() {
            let _ = write!(out, " · sub-agents: {}", crate::history::one_line(&self.agents.join(", ")));
        }
        out.push('\n');
        for line in shown.lines() {
            let _ = writeln!(out, "  {line}");
        }
        out
    }
}

/// Formats the input and the output of a call.
fn whole_call(call: &CallView) -> String {
    let mut out = String::new();
    let mut section = |name: &str, text: &str| {
        let text = strip_colours(text);
        if !text.trim().is_empty() {
            let _ = writeln!(out, "{name}:\n{}", text.trim_end());
        }
    };
    match &call.card {
        ToolCard::Command(card) => {
            section("command", &card.command);
            let output = card.output.text(&call.result);
            section("output", output);
            section("errors", &card.errors);
            if output.trim().is_empty() && card.errors.trim().is_empty() {
                section("result", &call.result);
            }
            section("changes", &changes_text(&card.changes));
        }
        ToolCard::Diff { hunks, .. } => {
            section("change", &Hunk::patch_text(hunks));
            section("result", &call.result);
        }
        _ => {
            section("input", &call.input);
            section("result", &call.formatted_result());
        }
    }
    out
}

/// Formats the changes that a command made to files.
fn changes_text(changes: &CommandChanges) -> String {
    let mut out = String::new();
    for file in changes.detailed() {
        let _ = writeln!(out, "{} ({})", file.short_path, file.gist());
        out.push_str(&Hunk::patch_text(&file.hunks));
    }
    out.extend(changes.rest());
    out
}
