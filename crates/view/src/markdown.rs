//! Renders a session as Markdown, for people and for models.

use std::borrow::Cow;
use std::fmt::Write;

use threadline_session::{Input, Outcome};

use crate::card::{Card, first_line};
use crate::diff::{Change, Hunk};
use crate::filter::{Filter, Level};
use crate::name::{input_name, outcome_name};
use crate::printed::uncoloured;
use crate::transcript::{Body, CallView, Item, Transcript, TurnView};
use crate::visible::visible;

/// Renders a session as Markdown.
///
/// Prompts are quoted below a numbered heading, replies are copied verbatim, and a tool call is a list item
/// with its result in short. From [`Level::Full`] on, inputs and outputs of tools follow in fenced blocks.
pub fn markdown(transcript: &Transcript, level: Level) -> String {
    let mut writer = Writer { out: String::new(), level, cwd: transcript.cwd.as_deref(), in_list: false };
    let title = transcript.heading().unwrap_or("Session");
    let _ = writeln!(writer.out, "# {}\n", one_line(title));
    let about = [&transcript.id, &transcript.cwd, &transcript.git_branch];
    let mut about: Vec<String> = about.into_iter().flatten().map(|fact| one_line(fact)).collect();
    if transcript.spent.calls > 0 {
        let caveat = transcript.spent.caveat().map(|caveat| format!(" ({})", one_line(&caveat)));
        about.push(format!("{}{}", transcript.spent.short_cost(), caveat.unwrap_or_default()));
    }
    if !about.is_empty() {
        let _ = writeln!(writer.out, "{}\n", about.join(" · "));
    }
    writer.turns(&transcript.turns);
    for agent in &transcript.agents {
        let wanted = agent.turns.iter().any(|turn| turn.items.iter().any(|item| writer.wants(item)));
        if wanted {
            let about = agent.description.as_deref().or(agent.agent_type.as_deref()).unwrap_or(&agent.id);
            let _ = writeln!(writer.out, "# Sub-agent without a call: {}\n", one_line(about));
            writer.turns(&agent.turns);
        }
    }
    for branch in &transcript.branches {
        let wanted = branch.turns.iter().any(|turn| turn.items.iter().any(|item| writer.wants(item)));
        if wanted {
            let _ = match &branch.fork {
                Some(fork) => writeln!(writer.out, "# Abandoned branch at {fork}\n"),
                None if branch.is_before(transcript.span) => {
                    writeln!(writer.out, "# Earlier conversation\n")
                }
                None => writeln!(writer.out, "# Unconnected branch\n"),
            };
            writer.turns(&branch.turns);
        }
    }
    let end = writer.out.trim_end().len();
    writer.out.truncate(end);
    writer.out.push('\n');
    writer.written()
}

/// Renders some turns of a session, exactly as [`markdown`] does.
pub fn markdown_turns(turns: &[TurnView], cwd: Option<&str>, level: Level) -> String {
    let mut writer = Writer { out: String::new(), level, cwd, in_list: false };
    writer.turns(turns);
    writer.leave_list();
    writer.written()
}

struct Writer<'a> {
    out: String,
    level: Level,
    cwd: Option<&'a str>,
    in_list: bool,
}

impl Writer<'_> {
    /// Returns the text, with control characters made visible so that it is safe to print.
    fn written(self) -> String {
        match visible(&self.out) {
            Cow::Owned(shown) => shown,
            Cow::Borrowed(_) => self.out,
        }
    }

    fn wants(&self, item: &Item) -> bool {
        Filter::level(self.level).wants(item)
    }

    fn turns(&mut self, turns: &[TurnView]) {
        for turn in turns {
            if !turn.items.iter().any(|item| self.wants(item)) {
                continue;
            }
            self.leave_list();
            let _ = writeln!(self.out, "## {}\n", turn.number);
            for item in &turn.items {
                if self.wants(item) {
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

    fn item(&mut self, item: &Item, depth: usize) {
        match &item.body {
            Body::Input { input, text, files, context } => {
                for about in context {
                    self.line(depth, &format!("editor: {}", one_line(about)));
                }
                for file in files {
                    self.line(depth, &file.media_type);
                }
                let printed = matches!(input, Input::Interrupt | Input::CommandOutput | Input::BashOutput);
                if let Some(name) = input_name(*input).filter(|_| !printed) {
                    self.line(depth, name);
                }
                match input {
                    Input::Interrupt => self.line(depth, "interrupted"),
                    Input::CommandOutput | Input::BashOutput => self.fence(depth, "", text),
                    _ if text.is_empty() => {}
                    _ => self.quote(text),
                }
            }
            Body::Text(text) if text.trim().is_empty() => {}
            Body::Text(text) if depth == 0 => {
                self.leave_list();
                let _ = writeln!(self.out, "{}\n", text.trim());
            }
            Body::Text(text) => self.line(depth, &one_line(text)),
            Body::Thinking(_) if self.level < Level::Full => {}
            Body::Thinking(text) if text.trim().is_empty() => self.line(depth, "*thinking (not in the log)*"),
            Body::Thinking(text) => self.line(depth, &format!("*thinking: {}*", one_line(text))),
            Body::Call(call) => self.call(call, depth),
            Body::Compaction { trigger, before, after, summary, .. } => {
                let mut told = "compacted".to_owned();
                if let Some(trigger) = trigger {
                    let _ = write!(told, ", {}", one_line(trigger));
                }
                if let (Some(before), Some(after)) = (before, after) {
                    let _ = write!(told, ", {before} → {after} tokens");
                }
                self.line(depth, &told);
                if let Some(summary) = summary.as_ref().filter(|_| self.level >= Level::Full) {
                    self.quote(summary);
                }
            }
            Body::Link { label, url } => self.line(depth, &format!("{}: {}", one_line(label), one_line(url))),
            Body::Trouble { label, text } => {
                self.line(depth, &format!("✗ {}: {}", one_line(label), one_line(text)))
            }
            Body::Event { label, text } if text.is_empty() => self.line(depth, &one_line(label)),
            Body::Event { label, text } => {
                self.line(depth, &format!("{}: {}", one_line(label), one_line(text)))
            }
            Body::Unknown { kind, raw } => {
                match kind {
                    Some(kind) => self.line(depth, &format!("unknown line {}", one_line(kind))),
                    None => self.line(depth, "unreadable line"),
                }
                if self.level >= Level::Full {
                    self.fence(depth, "", raw);
                }
            }
        }
    }

    fn call(&mut self, call: &CallView, depth: usize) {
        let mut told = one_line(&call.name);
        let subject = self
            .cwd
            .and_then(|cwd| call.subject.strip_prefix(cwd)?.strip_prefix(['/', '\\']))
            .unwrap_or(&call.subject);
        if !subject.is_empty() {
            let _ = write!(told, " {}", code(&one_line(subject)));
        }
        if call.is_bad() {
            let _ = write!(told, " ✗ {}", outcome_name(call.outcome));
        }
        if !call.gist.is_empty() {
            let _ = write!(told, " ({})", one_line(&call.gist));
        } else if call.outcome != Outcome::Ok && !call.is_bad() {
            let _ = write!(told, " ({})", outcome_name(call.outcome));
        }
        self.line(depth, &told);
        if self.level >= Level::Full {
            self.whole(call, depth);
        } else if let Some(complaint) = call.complaint() {
            self.fence(depth, "", first_line(complaint));
        }
        if let Some(said) = call.objection() {
            self.quote(said);
        }
        for agent in &call.agents {
            for item in agent.turns.iter().flat_map(|turn| &turn.items) {
                // The prompt of an agent is already shown as the input of its call.
                if self.wants(item) && !matches!(item.body, Body::Input { .. }) {
                    self.item(item, depth + 1);
                }
            }
        }
    }

    /// Writes the input and output of a tool, as far as the list item does not contain them.
    fn whole(&mut self, call: &CallView, depth: usize) {
        match &call.card {
            Card::Diff { hunks, .. } if call.outcome == Outcome::Ok => {
                self.fence(depth, "diff", &patch(hunks))
            }
            Card::Command(card) => {
                if card.command.contains('\n') {
                    self.fence(depth, card_language(&call.name), &card.command);
                }
                self.fence(depth, "", &card.output);
                self.fence(depth, "", &card.errors);
            }
            Card::File { text, .. } if call.outcome == Outcome::Ok => self.fence(depth, "", text),
            Card::Agent { prompt, answer, .. } => {
                self.fence(depth, "", prompt);
                if !call.answer_is_told() {
                    self.fence(depth, "", answer);
                }
            }
            Card::Plan(plan) => self.fence(depth, "", plan),
            Card::Diff { hunks, .. } => {
                self.fence(depth, "diff", &patch(hunks));
                self.fence(depth, "", &call.result);
            }
            Card::Todos(todos) if !todos.is_empty() => {
                for todo in todos {
                    let tick = if todo.status == "completed" { 'x' } else { ' ' };
                    let begun = (todo.status == "in_progress").then(|| "in progress".to_owned());
                    let change = todo.change().or(begun).map(|change| format!(" ({change})"));
                    let change = change.unwrap_or_default();
                    self.line(depth + 1, &format!("[{tick}] {}{change}", one_line(&todo.text)));
                    self.fence(depth + 1, "", &todo.detail);
                }
            }
            Card::Questions(questions) if questions.iter().any(|question| question.answer.is_some()) => {
                for question in questions {
                    self.line(depth + 1, &one_line(&question.text));
                    for option in &question.options {
                        let tick = if question.chose(&option.label) { 'x' } else { ' ' };
                        let meant = Some(one_line(&option.description)).filter(|meant| !meant.is_empty());
                        let meant = meant.map(|meant| format!(": {meant}")).unwrap_or_default();
                        self.line(depth + 2, &format!("[{tick}] {}{meant}", one_line(&option.label)));
                    }
                    for said in question.own_answer().iter().chain(&question.notes) {
                        self.line(depth + 2, &format!("[x] {}", one_line(said)));
                    }
                }
            }
            Card::Message { text, .. } => {
                self.fence(depth, "", text);
                self.fence(depth, "", &call.result);
            }
            Card::Page { prompt, .. } => {
                self.fence(depth, "", prompt);
                self.fence(depth, "", &call.result);
            }
            Card::Fields(_) => {
                self.fence(depth, "json", &call.input);
                self.fence(depth, "", &call.result);
            }
            _ => self.fence(depth, "", &call.result),
        }
    }

    /// Writes a list item.
    fn line(&mut self, depth: usize, text: &str) {
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
        let text = uncoloured(text);
        let text = text.trim_end().trim_start_matches(['\n', '\r']);
        if text.is_empty() {
            return;
        }
        let longest = text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0);
        let ticks = "`".repeat(longest.max(2) + 1);
        self.in_list = true;
        let indent = " ".repeat(depth * 2 + 2);
        let _ = writeln!(self.out, "{indent}{ticks}{language}");
        for line in text.lines() {
            let _ = writeln!(self.out, "{indent}{line}");
        }
        let _ = writeln!(self.out, "{indent}{ticks}");
    }
}

/// Returns the language of a multi-line command.
fn card_language(tool: &str) -> &'static str {
    match tool {
        "Workflow" => "js",
        "PowerShell" => "powershell",
        _ => "sh",
    }
}

/// Formats hunks as the lines of a patch.
fn patch(hunks: &[Hunk]) -> String {
    let mut out = String::new();
    for hunk in hunks {
        let _ = writeln!(out, "@@ -{} +{} @@", hunk.old_start, hunk.new_start);
        for line in &hunk.lines {
            out.push(match line.change {
                Change::Kept => ' ',
                Change::Added => '+',
                Change::Removed => '-',
            });
            out.push_str(&line.text);
            out.push('\n');
        }
    }
    out
}

/// Formats text as inline code, with more backticks around it than in it.
fn code(text: &str) -> String {
    let longest = text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    if longest > 0 { format!("{ticks} {text} {ticks}") } else { format!("{ticks}{text}{ticks}") }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use threadline_session::{Family, Session};

    use super::*;

    fn drawn(notation: &str, level: Level) -> String {
        let session = Session::from_bytes(&threadline_testkit::log(notation));
        markdown(&crate::transcript(&Family::new(session, Vec::new()), &|_| None), level)
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
    fn a_line_a_call() {
        insta::assert_snapshot!(drawn(TALK, Level::Tools), @r#"
        # why is it slow?

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
    fn fences_hold_whatever_is_inside() {
        insta::assert_snapshot!(drawn(TALK, Level::Full), @r#"
        # why is it slow?

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
    fn a_reply_of_blanks_is_nothing_and_an_unknown_block_is_quoted() {
        let log = "u1 user \"go\"\na1 <- u1 reply m1 text \"\\n\\n\"\na2 <- a1 reply m2 {\"type\":\"hologram\",\"shape\":\"cube\"}";
        insta::assert_snapshot!(drawn(log, Level::Full), @r#"
        # go

        s1 · /home/ada/loom · main

        ## 1

        > go

        - hologram: {"type":"hologram","shape":"cube"}
        "#);
    }

    #[test]
    fn prompts_alone() {
        insta::assert_snapshot!(drawn(TALK, Level::Prompts), @r#"
        # why is it slow?

        s1 · /home/ada/loom · main

        ## 1

        > why is it slow?
        > 
        > Please look.

        ## 2

        > take it out
        "#);
    }
}
