//! Renders a session as Markdown, for people and for models.

use std::borrow::Cow;
use std::fmt::{self, Write};

use threadline_entry::Millis;
use threadline_session::{InputKind, ToolOutcome};

use crate::card::{CommandChanges, ToolCard, first_line};
use crate::diff::Hunk;
use crate::filter::{DetailLevel, TranscriptFilter};
use crate::humanize::{OneLine, one_line};
use crate::name::{input_name, outcome_name};
use crate::program_output::strip_colours;
use crate::transcript::{
    AgentView, BranchView, CallView, ItemBody, Transcript, TranscriptHeader, TranscriptItem, TurnView,
};
use crate::transcript_parts::TranscriptPart;
use crate::visible::visible;

/// Renders a session as Markdown.
///
/// Prompts are quoted below a numbered heading, replies are copied verbatim, and a tool call is a list item
/// with its result in short. From [`DetailLevel::Full`] on, inputs and outputs of tools follow in
/// fenced blocks.
pub fn markdown(transcript: &Transcript, level: DetailLevel) -> String {
    let mut renderer = MarkdownRenderer::new(&transcript.header, level);
    let mut out = renderer.take_output();
    for turn in &transcript.turns {
        renderer.turn(turn);
        out.push_str(&renderer.take_output());
    }
    transcript.end.agents.iter().for_each(|agent| renderer.agent(agent));
    transcript.end.branches.iter().for_each(|branch| renderer.branch(branch));
    out.push_str(&renderer.finish());
    out
}

/// Renders a session as Markdown part by part, as [`markdown`] does.
pub struct MarkdownRenderer {
    writer: MarkdownWriter,
    /// The span of the conversation.
    span: Option<(Millis, Millis)>,
    /// White space that ends the text so far. It is left out at the end.
    gap: String,
}

impl MarkdownRenderer {
    /// Starts with the title and the facts about a session.
    pub fn new(header: &TranscriptHeader, level: DetailLevel) -> Self {
        let mut writer =
            MarkdownWriter { out: String::new(), level, cwd: header.cwd.clone(), in_list: false };
        writer.header(header);
        Self { writer, span: header.span, gap: String::new() }
    }

    /// Adds a part. The header and findings are ignored.
    pub fn part(&mut self, part: &TranscriptPart) {
        match part {
            TranscriptPart::Turn(turn) => self.turn(turn),
            TranscriptPart::Agent(agent) => self.agent(agent),
            TranscriptPart::Branch(branch) => self.branch(branch),
            TranscriptPart::Header(_) | TranscriptPart::Findings(_) => {}
        }
    }

    fn turn(&mut self, turn: &TurnView) {
        self.writer.turns(std::slice::from_ref(turn));
    }

    fn agent(&mut self, agent: &AgentView) {
        if self.writer.wants(&agent.turns) {
            self.writer.leave_list();
            let about = agent.description.as_deref().or(agent.agent_type.as_deref()).unwrap_or(&agent.id);
            let _ = writeln!(self.writer.out, "# Sub-agent without a call: {}\n", one_line(about));
            self.writer.turns(&agent.turns);
        }
    }

    fn branch(&mut self, branch: &BranchView) {
        if self.writer.wants(&branch.turns) {
            self.writer.leave_list();
            let _ = match &branch.fork {
                Some(fork) => writeln!(self.writer.out, "# Abandoned branch at {fork}\n"),
                None if branch.is_earlier_conversation(self.span) => {
                    writeln!(self.writer.out, "# Earlier conversation\n")
                }
                None => writeln!(self.writer.out, "# Unconnected branch\n"),
            };
            self.writer.turns(&branch.turns);
        }
    }

    /// Returns the text since the last call, without white space at its end, which follows later.
    pub fn take_output(&mut self) -> String {
        let mut out = self.writer.take_output();
        out.insert_str(0, &self.gap);
        self.gap = out.split_off(out.trim_end().len());
        out
    }

    /// Returns the rest of the text.
    pub fn finish(mut self) -> String {
        self.take_output() + "\n"
    }
}

struct MarkdownWriter {
    out: String,
    level: DetailLevel,
    cwd: Option<String>,
    in_list: bool,
}

impl MarkdownWriter {
    /// Returns the text since the last call, with control characters made visible so that it is safe to
    /// print.
    fn take_output(&mut self) -> String {
        let out = std::mem::take(&mut self.out);
        match visible(&out) {
            Cow::Owned(shown) => shown,
            Cow::Borrowed(_) => out,
        }
    }

    fn header(&mut self, header: &TranscriptHeader) {
        let title = header.heading().unwrap_or("Session");
        let _ = writeln!(self.out, "# {}\n", one_line(title));
        let facts = [&header.id, &header.cwd, &header.git_branch];
        let mut facts: Vec<String> = facts.into_iter().flatten().map(|fact| one_line(fact)).collect();
        if header.spent.calls > 0 {
            let caveat = header.spent.caveat().map(|caveat| format!(" ({})", one_line(&caveat)));
            facts.push(format!("{}{}", header.spent.short_cost(), caveat.unwrap_or_default()));
        }
        if !facts.is_empty() {
            let _ = writeln!(self.out, "{}\n", facts.join(" · "));
        }
    }

    /// Returns whether any item of some turns is wanted.
    fn wants(&self, turns: &[TurnView]) -> bool {
        turns.iter().any(|turn| turn.items.iter().any(|item| self.is_wanted(item)))
    }

    fn is_wanted(&self, item: &TranscriptItem) -> bool {
        TranscriptFilter::up_to_level(self.level).wants(item)
    }

    fn turns(&mut self, turns: &[TurnView]) {
        for turn in turns {
            if !turn.items.iter().any(|item| self.is_wanted(item)) {
                continue;
            }
            let _ = writeln!(self.out, "## {}\n", turn.number);
            for item in &turn.items {
                if self.is_wanted(item) {
                    self.item(item, 0);
                }
            }
            self.leave_list();
        }
    }

    /// Ends a list of calls, if one is open.
    fn leave_list(&mut self) {
        if std::mem::take(&mut self.in_list) {
            self.out.push('\n');
        }
    }

    fn item(&mut self, item: &TranscriptItem, depth: usize) {
        match &item.body {
            ItemBody::Input { input, text, files, context } => {
                for about in context {
                    self.list_item(depth, format_args!("editor: {}", OneLine(about)));
                }
                for file in files {
                    self.list_item(depth, &file.media_type);
                }
                let printed =
                    matches!(input, InputKind::Interrupt | InputKind::CommandOutput | InputKind::BashOutput);
                if let Some(name) = input_name(*input).filter(|_| !printed) {
                    self.list_item(depth, name);
                }
                match input {
                    InputKind::Interrupt => self.list_item(depth, "interrupted"),
                    InputKind::CommandOutput | InputKind::BashOutput => self.fence(depth, "", text),
                    _ if text.is_empty() => {}
                    _ => self.quote(text),
                }
            }
            ItemBody::Text(text) if text.trim().is_empty() => {}
            ItemBody::Text(text) if depth == 0 => {
                self.leave_list();
                let _ = writeln!(self.out, "{}\n", text.trim());
            }
            ItemBody::Text(text) => self.list_item(depth, OneLine(text)),
            ItemBody::Thinking(_) if self.level < DetailLevel::Full => {}
            ItemBody::Thinking(text) if text.trim().is_empty() => {
                self.list_item(depth, "*thinking (not in the log)*")
            }
            ItemBody::Thinking(text) => self.list_item(depth, format_args!("*thinking: {}*", OneLine(text))),
            ItemBody::Call(call) => self.call(call, depth),
            ItemBody::Compaction { trigger, before, after, summary, .. } => {
                let mut line = "compacted".to_owned();
                if let Some(trigger) = trigger {
                    let _ = write!(line, ", {}", OneLine(trigger));
                }
                if let (Some(before), Some(after)) = (before, after) {
                    let _ = write!(line, ", {before} → {after} tokens");
                }
                self.list_item(depth, &line);
                if let Some(summary) = summary.as_ref().filter(|_| self.level >= DetailLevel::Full) {
                    self.quote(summary);
                }
            }
            ItemBody::Link { label, url } => {
                self.list_item(depth, format_args!("{}: {}", OneLine(label), OneLine(url)))
            }
            ItemBody::Error { label, text } => {
                self.list_item(depth, format_args!("✗ {}: {}", OneLine(label), OneLine(text)))
            }
            ItemBody::Event { label, text } if text.is_empty() => self.list_item(depth, OneLine(label)),
            ItemBody::Event { label, text } => {
                self.list_item(depth, format_args!("{}: {}", OneLine(label), OneLine(text)))
            }
            ItemBody::Unknown { kind, raw } => {
                match kind {
                    Some(kind) => self.list_item(depth, format_args!("unknown line {}", OneLine(kind))),
                    None => self.list_item(depth, "unreadable line"),
                }
                if self.level >= DetailLevel::Full {
                    self.fence(depth, "", raw);
                }
            }
        }
    }

    fn call(&mut self, call: &CallView, depth: usize) {
        let mut line = one_line(&call.name);
        let subject = self
            .cwd
            .as_deref()
            .and_then(|cwd| call.subject.strip_prefix(cwd)?.strip_prefix(['/', '\\']))
            .unwrap_or(&call.subject);
        if !subject.is_empty() {
            let _ = write!(line, " {}", code(&one_line(subject)));
        }
        if call.is_error() {
            let _ = write!(line, " ✗ {}", outcome_name(call.outcome));
        }
        let result = call.short_result();
        if !result.is_empty() {
            let _ = write!(line, " ({})", OneLine(&result));
        } else if call.outcome != ToolOutcome::Ok && !call.is_error() {
            let _ = write!(line, " ({})", call.state());
        }
        self.list_item(depth, &line);
        if self.level >= DetailLevel::Full {
            self.call_details(call, depth);
        } else if let Some(complaint) = call.error_text() {
            self.fence(depth, "", first_line(complaint));
        }
        if let Some(said) = call.denial_reason() {
            self.quote(said);
        }
        for agent in &call.agents {
            for item in agent.turns.iter().flat_map(|turn| &turn.items) {
                // The prompt of an agent is already shown as the input of its call.
                if self.is_wanted(item) && !matches!(item.body, ItemBody::Input { .. }) {
                    self.item(item, depth + 1);
                }
            }
        }
    }

    /// Writes the input and output of a tool, as far as the list item does not contain them.
    fn call_details(&mut self, call: &CallView, depth: usize) {
        match &call.card {
            ToolCard::Diff { hunks, .. } if call.outcome == ToolOutcome::Ok => {
                self.fence(depth, "diff", &Hunk::patch_text(hunks))
            }
            ToolCard::Command(card) => {
                if card.command.contains('\n') {
                    self.fence(depth, card_language(&call.name), &card.command);
                }
                self.fence(depth, "", card.output.text(&call.result));
                self.fence(depth, "", &card.errors);
                self.command_changes(&card.changes, depth + 1);
            }
            ToolCard::File { text, .. } if call.outcome == ToolOutcome::Ok => self.fence(depth, "", text),
            ToolCard::Agent { prompt, answer, .. } => {
                self.fence(depth, "", prompt);
                if !call.answer_is_shown() {
                    self.fence(depth, "", answer);
                }
            }
            ToolCard::Plan(plan) => self.fence(depth, "", plan),
            ToolCard::Diff { hunks, .. } => {
                self.fence(depth, "diff", &Hunk::patch_text(hunks));
                self.fence(depth, "", &call.result);
            }
            ToolCard::Todos(todos) if !todos.is_empty() => {
                for todo in todos {
                    let tick = if todo.status == "completed" { 'x' } else { ' ' };
                    let begun = (todo.status == "in_progress").then(|| "in progress".to_owned());
                    let change = todo.change().or(begun).map(|change| format!(" ({change})"));
                    let change = change.unwrap_or_default();
                    self.list_item(depth + 1, format_args!("[{tick}] {}{change}", OneLine(&todo.text)));
                    self.fence(depth + 1, "", &todo.detail);
                }
            }
            ToolCard::Questions(questions) if questions.iter().any(|question| question.answer.is_some()) => {
                for question in questions {
                    self.list_item(depth + 1, OneLine(&question.text));
                    for option in &question.options {
                        let tick = if question.has_chosen(&option.label) { 'x' } else { ' ' };
                        let meant = Some(one_line(&option.description)).filter(|meant| !meant.is_empty());
                        let meant = meant.map(|meant| format!(": {meant}")).unwrap_or_default();
                        self.list_item(depth + 2, format_args!("[{tick}] {}{meant}", OneLine(&option.label)));
                    }
                    for said in question.free_text_answer().iter().chain(&question.notes) {
                        self.list_item(depth + 2, format_args!("[x] {}", OneLine(said)));
                    }
                }
            }
            ToolCard::Message { text, .. } => {
                self.fence(depth, "", text);
                self.fence(depth, "", &call.result);
            }
            ToolCard::Page { prompt, .. } => {
                self.fence(depth, "", prompt);
                self.fence(depth, "", &call.result);
            }
            ToolCard::Fields(_) => {
                self.fence(depth, "json", &call.input);
                self.fence(depth, "", &call.result);
            }
            _ => self.fence(depth, "", &call.result),
        }
    }

    /// Writes the changes that a command made to files.
    fn command_changes(&mut self, changes: &CommandChanges, depth: usize) {
        for file in changes.detailed() {
            self.list_item(depth, format_args!("{} ({})", code(&one_line(&file.short_path)), file.gist()));
            self.fence(depth, "diff", &Hunk::patch_text(&file.hunks));
        }
        if let Some(rest) = changes.rest() {
            self.list_item(depth, OneLine(&rest));
        }
    }

    /// Writes a list item.
    fn list_item(&mut self, depth: usize, text: impl fmt::Display) {
        self.in_list = true;
        let _ = writeln!(self.out, "{:indent$}- {text}", "", indent = depth * 2);
    }

    fn quote(&mut self, text: &str) {
        self.leave_list();
        for line in text.trim().lines() {
            let _ = writeln!(self.out, "> {}", line.trim_end());
        }
        self.out.push('\n');
    }

    /// Writes a fenced block that no line of the text can close. Colours are removed.
    fn fence(&mut self, depth: usize, language: &str, text: &str) {
        let text = strip_colours(text);
        let text = text.trim_end().trim_start_matches(['\n', '\r']);
        if text.is_empty() {
            return;
        }
        let longest = |tick: char| text.split(|ch| ch != tick).map(str::len).max().unwrap_or(0);
        // A fence is written twice, so that of a text of ticks would be longer than the text.
        let (tick, longest) = match longest('`') {
            length if length <= LONG_FENCE => ("`", length),
            _ => ("~", longest('~')),
        };
        let ticks = tick.repeat(longest.max(2) + 1);
        self.in_list = true;
        // Every line of a text is indented, and there may be very many short ones.
        let indent = " ".repeat(depth.min(MAX_FENCE_DEPTH) * 2 + 2);
        let _ = writeln!(self.out, "{indent}{ticks}{language}");
        for line in text.lines() {
            let _ = writeln!(self.out, "{indent}{line}");
        }
        let _ = writeln!(self.out, "{indent}{ticks}");
    }
}

/// Fenced blocks deeper in nested sub-agents are indented like those of this depth. Three levels are rare.
const MAX_FENCE_DEPTH: usize = 40;

/// A text with more backticks in a row is fenced with tildes.
const LONG_FENCE: usize = 100;

/// Returns the language of a multi-line command.
fn card_language(tool: &str) -> &'static str {
    match tool {
        "Workflow" => "js",
        "PowerShell" => "powershell",
        _ => "sh",
    }
}

/// Formats text as inline code, with more backticks around it than in it.
fn code(text: &str) -> String {
    let longest = text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    if longest > 0 { format!("{ticks} {text} {ticks}") } else { format!("{ticks}{text}{ticks}") }
}

#[cfg(test)]
mod tests {
    use threadline_session::{Session, SessionFamily};

    use super::*;

    fn rendered(notation: &str, level: DetailLevel) -> String {
        let session = Session::from_bytes(&threadline_testkit::log(notation));
        markdown(&crate::transcript(&SessionFamily::new(session, Vec::new()), &|_| None), level)
    }

    const TALK: &str = r#"
u1        user   "why is it slow?\n\nPlease look."
a1 <- u1  reply  m1 thinking "Perhaps a sleep."
a2 <- a1  reply  m1 tool t1 Bash {"command":"grep sleep *"}
r1 <- a2  result t1 "Exit code 2\n```" error
a3 <- r1  reply  m2 text "A `sleep` on **line 9**."
u2 <- a3  user   "take it out"
a4 <- u2  reply  m3 tool t2 Edit {"file_path":"/home/ada/loom/a.rs","old_string":"sleep(9);","new_string":"wait();"}
r2 <- a4  result t2 "done"
"#;

    #[test]
    fn calls_are_one_line_each() {
        insta::assert_snapshot!(rendered(TALK, DetailLevel::Tools), @r#"
        # why is it slow? Please look.

        s1 · /home/ada/loom · main

        ## 1

        > why is it slow?
        > 
        > Please look.

        - Bash `grep sleep *` ✗ error (exit 2)
          ````
          ```
          ````

        A `sleep` on **line 9**.

        ## 2

        > take it out

        - Edit `a.rs` (+1 −1)
        "#);
    }

    #[test]
    fn fences_are_longer_than_those_inside() {
        insta::assert_snapshot!(rendered(TALK, DetailLevel::Full), @r#"
        # why is it slow? Please look.

        s1 · /home/ada/loom · main

        ## 1

        > why is it slow?
        > 
        > Please look.

        - *thinking: Perhaps a sleep.*
        - Bash `grep sleep *` ✗ error (exit 2)
          ````
          ```
          ````

        A `sleep` on **line 9**.

        ## 2

        > take it out

        - Edit `a.rs` (+1 −1)
          ```diff
          @@ -0 +0 @@
          -sleep(9);
          +wait();
          ```
        "#);
    }

    #[test]
    fn changes_of_a_command_follow_its_output() {
        let log = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash {"command":"./weave"}
r1 <- a1  result t1 "ok" {"stdout":"ok","bashEditDiff":{"files":[{"filePath":"/home/ada/loom/a.rs","hunks":[{"oldStart":3,"newStart":3,"lines":["-```","+b"]}]}],"moreFiles":1,"changedFiles":["/home/ada/loom/a.rs","/home/ada/loom/b.png"]}}
"#;
        insta::assert_snapshot!(rendered(log, DetailLevel::Tools), @"
        # go

        s1 · /home/ada/loom · main

        ## 1

        > go

        - Bash `./weave` (changed 2 files, +1 −1)
        ");
        insta::assert_snapshot!(rendered(log, DetailLevel::Full), @r#"
        # go

        s1 · /home/ada/loom · main

        ## 1

        > go

        - Bash `./weave` (changed 2 files, +1 −1)
          ```
          ok
          ```
          - `a.rs` (+1 −1)
            ````diff
            @@ -3 +3 @@
            -```
            +b
            ````
          - 1 more file changed (lines not recorded): b.png
        "#);
    }

    #[test]
    fn a_blank_reply_is_omitted_and_an_unknown_block_is_shown() {
        let log = "u1 user \"go\"\na1 <- u1 reply m1 text \"\\n\\n\"\na2 <- a1 reply m2 {\"type\":\"hologram\",\"shape\":\"cube\"}";
        insta::assert_snapshot!(rendered(log, DetailLevel::Full), @r#"
        # go

        s1 · /home/ada/loom · main

        ## 1

        > go

        - hologram: {"type":"hologram","shape":"cube"}
        "#);
    }

    #[test]
    fn prompts_alone() {
        insta::assert_snapshot!(rendered(TALK, DetailLevel::Prompts), @r#"
        # why is it slow? Please look.

        s1 · /home/ada/loom · main

        ## 1

        > why is it slow?
        > 
        > Please look.

        ## 2

        > take it out
        "#);
    }

    #[test]
    fn the_indentation_of_fenced_blocks_is_limited() {
        let fenced = |depth: usize| {
            let (out, level) = (String::new(), DetailLevel::Full);
            let mut writer = MarkdownWriter { out, level, cwd: None, in_list: false };
            writer.fence(depth, "", "a\nb");
            writer.out
        };
        assert!(fenced(1).contains("\n    a\n    b\n"));
        assert_eq!(fenced(90), fenced(40));
    }
}
