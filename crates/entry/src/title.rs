//! The title of a session. Lists, transcripts, search results, exports and reports all use these rules.

use crate::entry::Entry;
use crate::kind::Kind;
use crate::lens::User;

/// The texts that a title can be chosen from.
#[derive(Clone, Copy, Debug, Default)]
pub struct TitleSources<'a> {
    /// The title set by the user.
    pub custom: Option<&'a str>,
    /// The title set by Claude Code.
    pub generated: Option<&'a str>,
    /// The last prompt, if Claude Code recorded it.
    pub last_prompt: Option<&'a str>,
    /// The summary, which was the title in older versions.
    pub summary: Option<&'a str>,
    /// The result of a [`FirstPromptSearch`].
    pub first_prompt: Option<&'a str>,
}

impl TitleSources<'_> {
    /// Returns the title on one line, by the same precedence as Claude Code's own list: custom, generated,
    /// last prompt, summary, first prompt. A last prompt that says nothing, such as `/clear`, is skipped.
    pub fn title(&self) -> Option<String> {
        let set = |text: Option<&str>| text.map(one_line).filter(|text| !text.is_empty());
        let last_prompt = || match PromptText::of(self.last_prompt?) {
            PromptText::Prompt(text) => Some(text),
            PromptText::Command { text, .. } => Some(text),
            _ => None,
        };
        set(self.custom)
            .or_else(|| set(self.generated))
            .or_else(last_prompt)
            .or_else(|| set(self.summary))
            .or_else(|| set(self.first_prompt))
    }
}

/// Searches the lines of a log, in order, for the first prompt that says what the session is about.
///
/// That is the first prompt typed by the user, or a slash command that the model replied to. A session
/// without either is named after its first slash command, else after the first message from or to another
/// agent. `/clear` and other commands about the session itself, notifications, caveats, command output and
/// other text written by programs are skipped.
#[derive(Clone, Debug, Default)]
pub struct FirstPromptSearch {
    found: Option<String>,
    /// A slash command, until it is known whether Claude Code handled it without the model.
    pending: Option<String>,
    command: Option<String>,
    message: Option<String>,
}

impl FirstPromptSearch {
    /// Examines the next line.
    pub fn examine(&mut self, entry: &Entry) {
        if self.pending.is_some() && is_reply(entry) {
            self.found = self.pending.take();
        }
        if self.is_done() || entry.kind() != Kind::User || entry.is_meta() || entry.is_compact_summary() {
            return;
        }
        let Some(content) = entry.message().and_then(|message| message.content()) else { return };
        if content.blocks().any(|block| block.is("tool_result")) || is_from_program(entry) {
            return;
        }
        if let Some(text) = content.as_str() {
            return self.examine_text(&text, entry.is_sidechain());
        }
        for text in content.blocks().filter(|block| block.is("text")).filter_map(|block| block.text()) {
            self.examine_text(&text, entry.is_sidechain());
        }
    }

    fn examine_text(&mut self, text: &str, is_sidechain: bool) {
        if self.is_done() {
            return;
        }
        let text = match PromptText::of(text) {
            // The prompt of a sub-agent names the session only if there is nothing else.
            PromptText::Prompt(text) | PromptText::Command { text, .. } if is_sidechain => {
                PromptText::Message(text)
            }
            text => text,
        };
        // Without a reply, Claude Code handled the pending command itself.
        if !is_sidechain && !matches!(text, PromptText::Skipped) {
            self.command = self.command.take().or(self.pending.take());
        }
        match text {
            PromptText::Prompt(text) => self.found = Some(text),
            PromptText::Command { text, is_for_shell: false } => self.pending = Some(text),
            PromptText::Command { text, is_for_shell: true } => {
                self.command.get_or_insert(text);
            }
            PromptText::Message(text) => {
                self.message.get_or_insert(text);
            }
            PromptText::CommandOutput | PromptText::Skipped => {}
        }
    }

    /// Returns whether the next reply matters: whether a command was examined that the model may have seen.
    pub fn needs_reply(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns whether a prompt was found, so that no further lines are needed.
    pub fn is_done(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the prompt on one line, 200 characters at most.
    pub fn finish(self) -> Option<String> {
        self.found.or(self.command).or(self.pending).or(self.message)
    }
}

/// Returns whether the line is part of a reply of the model, rather than of Claude Code in its place.
fn is_reply(entry: &Entry) -> bool {
    let model = || entry.message().and_then(|message| message.model());
    entry.kind() == Kind::Assistant && model().is_none_or(|model| model != "<synthetic>")
}

/// Returns whether the line records that a program sent it: a finished task, or the host of the session.
fn is_from_program(entry: &Entry) -> bool {
    let Some(line) = entry.lens::<User<'_>>() else { return false };
    let turn_origin = line.turn_origin().and_then(|origin| origin.as_str());
    let named = [line.prompt_source(), turn_origin, line.origin().and_then(|origin| origin.kind())];
    named.into_iter().flatten().any(|name| matches!(&*name, "system" | "host_synthetic"))
}

/// A user text, by what it contributes to a title.
enum PromptText {
    Prompt(String),
    /// A slash command, or `!command` for the shell.
    Command {
        text: String,
        is_for_shell: bool,
    },
    CommandOutput,
    Message(String),
    Skipped,
}

/// Prefixes of text written by a program.
const PROGRAM_PREFIXES: &[&str] = &[
    "<local-command-caveat>",
    "Caveat: The messages below were generated by the user while running local commands",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification",
    "<agent-notification",
    "<ci-monitor-event",
    "<session-start-hook>",
    "<user-prompt-submit-hook>",
    "<tick>",
    "<goal>",
    "Operation stopped by hook",
    "This session is being continued from a previous conversation",
];

/// Tags of context that a program puts around or before a prompt.
const CONTEXT_TAGS: &[&str] = &["ide_opened_file", "ide_selection", "new-diagnostics", "system-reminder"];

/// Commands about the session itself, which say nothing about its content.
const SESSION_COMMANDS: &[&str] =
    &["/clear", "/compact", "/context", "/cost", "/exit", "/login", "/logout", "/quit", "/resume", "/status"];

impl PromptText {
    fn of(text: &str) -> Self {
        let mut text = text.trim();
        while let Some(rest) = CONTEXT_TAGS.iter().find_map(|tag| after_element(text, tag)) {
            text = rest.trim_start();
        }
        if text.is_empty() || PROGRAM_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
            return Self::Skipped;
        }
        if text.strip_prefix("[Request interrupted by user").is_some_and(|rest| rest.contains(']')) {
            return Self::Skipped;
        }
        if text.starts_with("<local-command-std") {
            return Self::CommandOutput;
        }
        if text.starts_with("<command-") {
            let name = element(text, "command-name").unwrap_or_default().trim_start_matches('/');
            return Self::of_command(name, element(text, "command-args").unwrap_or_default());
        }
        // The form in which commands are typed. A path is not a command.
        if let Some(command) = text.strip_prefix('/') {
            let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
            if !name.contains('/') && !name.is_empty() {
                return Self::of_command(name, arguments);
            }
        }
        if text.starts_with("<teammate-message") {
            let (tag, body) = text.split_once('>').unwrap_or((text, ""));
            let body = body.split_once("</teammate-message>").map_or(body, |(body, _)| body);
            let message = attribute(tag, "summary").unwrap_or(body);
            return Self::Message(match attribute(tag, "teammate_id") {
                Some(sender) => shorten(&format!("{sender}: {message}")),
                None => shorten(message),
            })
            .or_skipped();
        }
        if let Some(command) = element(text, "bash-input").filter(|_| text.starts_with("<bash-input>")) {
            return Self::Command { text: shorten(&format!("!{command}")), is_for_shell: true };
        }
        Self::Prompt(shorten(without_tags(text))).or_skipped()
    }

    fn of_command(name: &str, arguments: &str) -> Self {
        let (name, arguments) = (format!("/{}", name.trim()), arguments.trim());
        if name == "/" || SESSION_COMMANDS.contains(&&*name) {
            return Self::Skipped;
        }
        let text = shorten(&format!("{name} {arguments}"));
        Self::Command { text, is_for_shell: false }
    }

    fn or_skipped(self) -> Self {
        match self {
            Self::Prompt(text) | Self::Message(text) if text.is_empty() => Self::Skipped,
            other => other,
        }
    }
}

/// Returns the text inside the first element with this tag.
fn element<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
}

/// Returns the value of an attribute of a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"')?.0).filter(|value| !value.is_empty())
}

/// Returns the text after an element that it begins with.
fn after_element<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let rest = text.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix('>')?;
    Some(rest.split_once(&format!("</{tag}>"))?.1)
}

/// Returns the text inside the elements that it begins with: `<task>Fix it</task> now` is `Fix it`. An
/// opening tag that is not closed is kept, since it may be what the text is about.
fn without_tags(text: &str) -> &str {
    let mut text = text.trim();
    while let Some((tag, rest)) = text.strip_prefix('<').and_then(|text| text.split_once('>')) {
        let name = tag.split(char::is_whitespace).next().unwrap_or_default();
        let is_name = |ch: char| ch.is_alphanumeric() || matches!(ch, '-' | '_' | ':' | '.');
        let inside = rest.split_once(&format!("</{name}>"));
        match inside {
            Some((inside, after)) if !name.is_empty() && name.chars().all(is_name) => {
                text = if inside.trim().is_empty() { after.trim() } else { inside.trim() };
            }
            _ => break,
        }
    }
    text
}

/// Returns the text on one line, truncated to the maximum length, without a common introduction of plans.
fn shorten(text: &str) -> String {
    let text = text.trim();
    let plan = text.strip_prefix("Implement the following plan:");
    let plan = plan.map(|plan| plan.trim_start().trim_start_matches(['#', ' ']));
    let plan = plan.and_then(|plan| plan.lines().next()).filter(|line| !line.is_empty());
    let text = plan.unwrap_or(text);
    match text.char_indices().nth(200) {
        Some((end, _)) => one_line(before_long_word(text, end)) + "…",
        None => one_line(text),
    }
}

/// Returns the text before `end`, without a long word that continues after it: a part of a token would not be
/// recognised as a secret.
fn before_long_word(text: &str, end: usize) -> &str {
    const LONG: usize = 16;
    let (shown, rest) = text.split_at(end);
    let space = shown.char_indices().rev().find(|(_, ch)| ch.is_whitespace());
    let start = space.map_or(0, |(at, ch)| at + ch.len_utf8());
    let tail = rest.split(char::is_whitespace).next().unwrap_or_default();
    let is_long = shown.len() - start + tail.len() > LONG && !tail.is_empty();
    if start > 0 && is_long && shown[start..].is_ascii() { &shown[..start] } else { shown }
}

/// Returns the text with single spaces instead of any white space.
fn one_line(text: &str) -> String {
    let mut words = text.split_whitespace();
    let mut line = String::with_capacity(text.len());
    line.push_str(words.next().unwrap_or_default());
    for word in words {
        line.push(' ');
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(lines: &[String]) -> Option<String> {
        let mut search = FirstPromptSearch::default();
        lines.iter().for_each(|line| search.examine(&Entry::parse(line.as_bytes()).0));
        search.finish()
    }

    fn user(content: &str, more: &str) -> String {
        format!(r#"{{"type":"user","message":{{"role":"user","content":{content}}}{more}}}"#)
    }

    fn typed(text: &str) -> String {
        user(&serde_json::to_string(text).unwrap(), "")
    }

    #[test]
    fn the_first_prompt_is_typed_by_the_user() {
        for (content, more, expected) in [
            (r#""hi\nthere  ""#, "", Some("hi there")),
            (r#"[{"type":"text","text":" one "},{"type":"text","text":"two"}]"#, "", Some("one")),
            (r#"[{"type":"image"},{"type":"text","text":"look"}]"#, "", Some("look")),
            (r#""he said \"tool_result\"""#, "", Some("he said \"tool_result\"")),
            (r#"[{"type":"tool_result","content":"x"},{"type":"text","text":"no"}]"#, "", None),
            (r#""meta""#, r#","isMeta":true"#, None),
            (r#""meta""#, r#", "isMeta" : true"#, None),
            (r#""summary""#, r#","isCompactSummary":true"#, None),
            (r#""not meta""#, r#","isMeta":false"#, Some("not meta")),
            (r#""a task finished""#, r#","promptSource":"system""#, None),
            (r#""   ""#, "", None),
            ("42", "", None),
        ] {
            assert_eq!(first(&[user(content, more)]).as_deref(), expected, "{content}{more}");
        }
        assert_eq!(first(&[r#"{"type":"assistant","message":{"content":[{"type":"user"}]}}"#.into()]), None);
        assert_eq!(first(&["{\"type\":\"user\",\"message\":{\"content\":\"to".into()]), None);
    }

    #[test]
    fn text_written_by_programs_and_tags_are_no_title() {
        for (text, expected) in [
            ("<local-command-stdout>x", None),
            ("<local-command-caveat>Caveat: …</local-command-caveat>", None),
            ("<session-start-hook>x", None),
            ("<task-notification>\n<task-id>b1</task-id>\n</task-notification>", None),
            ("<tick>", None),
            ("<goal>x", None),
            ("[Request interrupted by user for tool use]", None),
            ("[Request interrupted by user", Some("[Request interrupted by user")),
            ("<ide_opened_file>a\nb</ide_opened_file>", None),
            (" <ide_selection>a</ide_selection> ", None),
            ("<ide_selection>a</ide_selection> why?", Some("why?")),
            ("<system-reminder>be brief</system-reminder>\nwhy?", Some("why?")),
            ("<new-diagnostics>a.rs: unused</new-diagnostics> fix it", Some("fix it")),
            ("This session is being continued from a previous conversation that ran out of context.", None),
            ("<bash-input>git switch main</bash-input>", Some("!git switch main")),
            ("<task>Fix the loom</task>\n<rules>none</rules>", Some("Fix the loom")),
            ("<doc><name>a</name></doc>", Some("a")),
            ("<div> is never closed", Some("<div> is never closed")),
            ("a < b", Some("a < b")),
            ("Implement the following plan:\n\n# Faster loom\n\nSteps", Some("Faster loom")),
            (
                "<teammate-message teammate_id=\"lead\">look at it</teammate-message>",
                Some("lead: look at it"),
            ),
            ("/clear", None),
            ("/review the loom", Some("/review the loom")),
            ("/usr/bin/loom is broken", Some("/usr/bin/loom is broken")),
            ("<command-message>c</command-message>\n<command-name>/c</command-name>", Some("/c")),
            (
                "<command-name>/c</command-name><command-message>c</command-message><command-args>a  b</command-args>",
                Some("/c a b"),
            ),
            ("<command-name>/clear</command-name>", None),
            ("<command-name></command-name>", None),
        ] {
            assert_eq!(first(&[typed(text)]).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_command_that_the_model_saw_is_as_good_as_a_prompt() {
        let command = |text: &str| {
            let (name, arguments) = text.split_once(' ').unwrap_or((text, ""));
            typed(&format!("<command-name>{name}</command-name><command-args>{arguments}</command-args>"))
        };
        let prompt = typed("go on");
        let output = typed("<local-command-stdout>done</local-command-stdout>");
        assert_eq!(first(&[command("/init"), command("/other")]).as_deref(), Some("/init"));
        assert_eq!(first(&[command("/init"), prompt.clone()]).as_deref(), Some("go on"));
        let reply = |model: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"role":"assistant","model":"{model}","content":[]}}}}"#
            )
        };
        let [real, synthetic] = ["claude-opus-4", "<synthetic>"].map(reply);
        let review = command("/review it");
        assert_eq!(first(&[review.clone(), real.clone(), prompt.clone()]).as_deref(), Some("/review it"));
        assert_eq!(
            first(&[command("/init"), real.clone(), prompt.clone()]).as_deref(),
            Some("/init"),
            "a command without arguments"
        );
        assert_eq!(
            first(&[command("/model"), output.clone(), command("/check"), real.clone()]).as_deref(),
            Some("/check")
        );
        let shell = typed("<bash-input>ls</bash-input>");
        assert_eq!(first(&[shell, real, prompt.clone()]).as_deref(), Some("go on"));
        assert_eq!(first(&[review.clone(), synthetic, prompt.clone()]).as_deref(), Some("go on"));
        assert_eq!(first(&[review, prompt.clone()]).as_deref(), Some("go on"));
        assert_eq!(first(&[command("/model opus"), output.clone(), prompt]).as_deref(), Some("go on"));
        assert_eq!(first(&[command("/model opus"), output]).as_deref(), Some("/model opus"));
    }

    #[test]
    fn a_prompt_is_truncated_at_200_characters() {
        let exact = "é".repeat(200);
        assert_eq!(first(&[typed(&exact)]), Some(exact.clone()));
        assert_eq!(first(&[typed(&format!("{exact}x"))]), Some(format!("{exact}…")));
        let spaced = format!("{}  {}", "a".repeat(198), "b");
        assert_eq!(first(&[typed(&spaced)]), Some(format!("{}…", "a".repeat(198))));
        let token = format!("{} {}", "a".repeat(180), "k".repeat(40));
        assert_eq!(first(&[typed(&token)]), Some(format!("{}…", "a".repeat(180))), "a cut token");
    }

    #[test]
    fn titles_have_an_order_of_precedence() {
        let sources = TitleSources {
            custom: Some("Mine"),
            generated: Some("Theirs"),
            last_prompt: Some("last\nwords"),
            summary: Some("Old"),
            first_prompt: Some("first"),
        };
        let title = |sources: TitleSources<'_>| sources.title().unwrap();
        assert_eq!(title(sources), "Mine");
        let sources = TitleSources { custom: Some(" "), ..sources };
        assert_eq!(title(sources), "Theirs");
        let sources = TitleSources { generated: None, ..sources };
        assert_eq!(title(sources), "last words");
        assert_eq!(title(TitleSources { last_prompt: Some("/clear"), ..sources }), "Old");
        let sources = TitleSources { last_prompt: None, summary: None, ..sources };
        assert_eq!(title(sources), "first");
        assert_eq!(TitleSources::default().title(), None);
    }
}
