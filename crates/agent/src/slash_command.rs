//! Prompts that begin with a slash: commands of the client, and commands and skills from files.

use std::path::Path;

use serde_json::value::RawValue;
use threadline_api::{Message, RawObject, Role, full_model_name};
use threadline_cancel::CancelToken;
use threadline_entry::Json;
use threadline_entry::write::Attachment;
use threadline_permission::{RuleEffect, RuleSource};
use threadline_tools::validate;

use crate::agent::Agent;
use crate::custom_command::CustomCommand;
use crate::error_text::filler;
use crate::event::AgentEvent;
use crate::json::raw;
use crate::session_hooks::CallVerdict;
use crate::session_writer::{UserLineFields, WriteError};
use crate::tool_calls::{CallOutcome, CallScope, PendingCall};

/// Commands of Claude Code's screen. Without a screen, their output is that they are not available.
const SCREEN_COMMANDS: &[&str] = &[
    "add-dir",
    "agents",
    "export",
    "help",
    "hooks",
    "ide",
    "login",
    "logout",
    "mcp",
    "memory",
    "model",
    "permissions",
    "plan",
    "rename",
    "resume",
    "rewind",
    "status",
    "statusline",
    "tasks",
    "theme",
    "vim",
];
/// The largest number of files that a prompt can refer to.
const MAX_MENTIONS: usize = 20;

/// A command of the client that needs no screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalCommand {
    /// Begins another session.
    Clear,
    /// Replaces the conversation by a summary.
    Compact,
    /// Reports how much of the context window is used.
    Context,
    /// Reports tokens and cost.
    Usage,
}

impl LocalCommand {
    /// The names that a prompt can use. The first name of a command is the one in session lines.
    const NAMES: [(&'static str, Self); 5] = [
        ("clear", Self::Clear),
        ("compact", Self::Compact),
        ("context", Self::Context),
        ("usage", Self::Usage),
        ("cost", Self::Usage),
    ];

    /// Returns the command with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, command)| *command)
    }

    /// The name in session lines.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, command)| *command == self).map_or("", |(name, _)| name)
    }

    /// All names, with those of the same command.
    fn names<'a>() -> impl Iterator<Item = &'a str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }
}

/// A prompt that begins with a slash, in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlashPrompt<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
}

impl<'a> SlashPrompt<'a> {
    /// Parses a prompt. A path such as `/tmp/x` is not a command.
    pub(crate) fn parse(prompt: &'a str) -> Option<Self> {
        let rest = prompt.strip_prefix('/')?;
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let is_name = |ch: char| ch.is_alphanumeric() || matches!(ch, '_' | '-' | ':' | '.');
        let is_command = !name.is_empty() && name.chars().all(is_name);
        is_command.then(|| Self { name, arguments: arguments.trim() })
    }
}

/// The meaning of a prompt that begins with a slash.
pub(crate) enum SlashMeaning {
    /// A command or skill from a file, with its arguments.
    Custom(ExpandedCommand),
    /// A command of the client, with its arguments.
    Local(LocalCommand, String),
    /// It cannot be used, for the reason in the text.
    Unusable(String),
}

/// A command or skill with its arguments filled in.
#[derive(Clone, Debug)]
pub(crate) struct ExpandedCommand {
    pub(crate) command: CustomCommand,
    pub(crate) arguments: String,
    pub(crate) text: String,
    /// The blocks of a prompt of an MCP server, which are sent as they are.
    pub(crate) blocks: Vec<RawObject>,
}

impl ExpandedCommand {
    /// The text of the prompt line.
    pub(crate) fn prompt_line(&self) -> String {
        let name = &self.command.name;
        let mut text =
            format!("<command-message>{name}</command-message>\n<command-name>/{name}</command-name>");
        if !self.arguments.is_empty() {
            text.push_str(&format!("\n<command-args>{}</command-args>", self.arguments));
        }
        text
    }

    /// The prompt, for the mark at the end of the log.
    pub(crate) fn short_prompt(&self) -> String {
        format!("/{} {}", self.command.name, self.arguments).trim_end().to_owned()
    }
}

/// The settings that a command changed for its turn.
#[derive(Default)]
pub(crate) struct CommandScope {
    model: Option<(String, String)>,
}

impl Agent {
    /// Returns the meaning of a prompt that begins with a slash; `None` if it is an ordinary prompt.
    pub(crate) fn slash_meaning(&self, prompt: &str, cancel: &CancelToken) -> Option<SlashMeaning> {
        let slash = SlashPrompt::parse(prompt).filter(|_| self.config.has_slash_commands)?;
        let commands = &self.config.commands;
        if let Some(command) = commands.iter().find(|command| command.name == slash.name) {
            let text = command.expand(slash.arguments, &self.session_id());
            let arguments = slash.arguments.to_owned();
            let command = command.clone();
            return Some(SlashMeaning::Custom(ExpandedCommand {
                command,
                arguments,
                text,
                blocks: Vec::new(),
            }));
        }
        if let Some(meaning) = self.mcp_prompt(slash, cancel) {
            return Some(meaning);
        }
        if let Some(command) = LocalCommand::parse(slash.name) {
            return Some(SlashMeaning::Local(command, slash.arguments.to_owned()));
        }
        if SCREEN_COMMANDS.contains(&slash.name) {
            return Some(SlashMeaning::Unusable(format!(
                "/{} isn't available in this environment.",
                slash.name
            )));
        }
        let names = commands.iter().map(|command| command.name.as_str());
        let known = names.chain(LocalCommand::names()).chain(SCREEN_COMMANDS.iter().copied());
        let similar = known.filter(|name| distance(name, slash.name) <= 1).min_by_key(|name| name.len());
        let hint = similar.map(|name| format!(". Did you mean /{name}?")).unwrap_or_default();
        Some(SlashMeaning::Unusable(format!("Unknown command: /{}{hint}", slash.name)))
    }

    /// Applies the model and the rules of a command for its turn.
    pub(crate) fn enter_command(&mut self, command: &CustomCommand) -> CommandScope {
        let mut scope = CommandScope::default();
        if let Some(model) = &command.model {
            let model = full_model_name(model);
            scope.model = Some((self.config.model.clone(), self.request.model.clone()));
            self.request.model.clone_from(&model);
            self.config.model = model;
        }
        let paths = &self.config.paths;
        let source = RuleSource { base: &paths.cwd, cwd: &paths.cwd, home: paths.user_home.as_deref() };
        self.writer.lock().set_attribution_skill(Some(command.name.clone()));
        if command.allowed_tools.is_empty() {
            return scope;
        }
        self.config.permissions.update(|permissions| {
            for rule in &command.allowed_tools {
                permissions.rules.add_temporary(rule, RuleEffect::Allow, source);
            }
        });
        scope
    }

    /// Restores the settings after the turn of a command.
    pub(crate) fn leave_command(&mut self, scope: CommandScope) {
        if let Some((config, request)) = scope.model {
            self.config.model = config;
            self.request.model = request;
        }
        // Rules that a person or a program has added during the turn stay.
        self.config.permissions.update(|permissions| permissions.rules.remove_temporary());
        self.writer.lock().set_attribution_skill(None);
    }

    /// Writes the text of a command below its prompt line, and adds it to the conversation.
    pub(crate) fn write_command_text(
        &mut self,
        command: &ExpandedCommand,
        prompt_id: &str,
        cancel: &CancelToken,
    ) -> Result<(), WriteError> {
        let mut blocks = command.blocks.clone();
        if blocks.is_empty() {
            let text = self.run_embedded_commands(&command.text, cancel);
            blocks.push(Message::text_block(&text));
        }
        let fields =
            UserLineFields { prompt_id: Some(prompt_id), is_meta: true, ..UserLineFields::default() };
        self.writer.lock().user(&raw(&blocks), fields, &*self.clock)?;
        self.conversation.push(Role::User, blocks);
        // Only the file and the arguments can mention files, and not the output of commands.
        self.attach_mentioned_files(&command.text, cancel)
    }

    /// Replaces commands such as `` !`git status` `` by their output, if they are permitted.
    fn run_embedded_commands(&self, text: &str, cancel: &CancelToken) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("!`") {
            let Some(length) = rest[start + 2..].find('`') else { break };
            result.push_str(&rest[..start]);
            let command = &rest[start + 2..start + 2 + length];
            let input = RawObject::new().with("command", command);
            match self.run_own_call("Bash", &input, cancel) {
                Ok(output) => result.push_str(output.text().trim_end()),
                Err(reason) => result.push_str(&format!("[`{command}` was not run: {reason}]")),
            }
            rest = &rest[start + 2 + length + 1..];
        }
        result.push_str(rest);
        result
    }

    /// Attaches the files that a text mentions as `@path`, if they may be read.
    pub(crate) fn attach_mentioned_files(
        &mut self,
        text: &str,
        cancel: &CancelToken,
    ) -> Result<(), WriteError> {
        for mention in mentions(text) {
            let path = self.config.paths.cwd.join(mention);
            if path.is_file() {
                self.attach_file(&path, cancel)?;
            } else {
                self.attach_resource(mention, cancel)?;
            }
        }
        Ok(())
    }

    /// Attaches a file, if it is a text that may be read.
    pub(crate) fn attach_file(&mut self, path: &Path, cancel: &CancelToken) -> Result<(), WriteError> {
        if !path.is_file() {
            return Ok(());
        }
        let name = path.to_string_lossy();
        let shown = path.strip_prefix(&self.config.paths.cwd).unwrap_or(path).to_string_lossy();
        let input = RawObject::new().with("file_path", &name);
        let Ok(output) = self.run_own_call("Read", &input, cancel) else { return Ok(()) };
        let Some(record) = output.record.as_deref().filter(|record| is_text_record(record)) else {
            return Ok(());
        };
        let attachment = Attachment::File {
            filename: &name,
            content: Json::parse(record.get()).unwrap_or(Json::NULL),
            display_path: &shown,
        };
        self.writer.lock().attachment(attachment, &*self.clock)?;
        let note = format!(
            "<system-reminder>\nThe content of the file {name}:\n{}\n</system-reminder>",
            output.text()
        );
        self.conversation.push(Role::User, vec![Message::text_block(&note)]);
        Ok(())
    }

    /// Runs a tool for the client itself, under the same permissions as a call of the model.
    fn run_own_call(
        &self,
        name: &str,
        input: &RawObject,
        cancel: &CancelToken,
    ) -> Result<threadline_tools::ToolOutput, String> {
        let tool = self.tools.get(name).ok_or_else(|| format!("the tool {name} is not enabled"))?;
        let input = validate(tool, &raw(input), &self.shell.cwd());
        let call = PendingCall {
            id: self.clock.new_uuid(),
            name: name.to_owned(),
            line: String::new(),
            input,
            sub_agent: None,
            is_alone: true,
        };
        let scope = CallScope { prompt_id: "", cancel, report: &|_| {}, output: &|_| {} };
        let Ok(input) = &call.input else { return Err("its input is not valid".to_owned()) };
        match self.run_call(&call, tool, input, &CallVerdict::default(), scope) {
            CallOutcome::Output(output) if !output.is_error => Ok(output),
            CallOutcome::Output(output) => Err(output.text().to_owned()),
            CallOutcome::Denied(reason) | CallOutcome::Invalid(reason) => Err(reason),
            CallOutcome::Refused(refusal) => Err(refusal.message),
            _ => Err("interrupted".to_owned()),
        }
    }

    /// Writes the lines of a command of the client, and reports its output. Returns the output.
    pub(crate) fn write_local_command(
        &mut self,
        command: LocalCommand,
        arguments: &str,
        output: &str,
        prompt_id: &str,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let fields = UserLineFields { prompt_id: Some(prompt_id), ..UserLineFields::default() };
        let command = command_line(command.name(), arguments);
        let mut writer = self.writer.lock();
        let caveat = UserLineFields { is_meta: true, ..fields };
        writer.user(&raw(&filler::COMMAND_CAVEAT), caveat, &*self.clock)?;
        writer.user(&raw(&command), fields, &*self.clock)?;
        drop(writer);
        let texts = [filler::COMMAND_CAVEAT, command.as_str()].map(Message::text_block);
        self.conversation.push(Role::User, texts.into());
        self.write_command_output(output, events)
    }

    /// Writes a prompt that begins with a slash and cannot be used, and reports the reason.
    pub(crate) fn write_unusable_command(
        &mut self,
        prompt: &str,
        reason: &str,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        self.writer.lock().local_command(prompt, &*self.clock)?;
        self.conversation.push(Role::User, vec![Message::text_block(prompt)]);
        self.write_command_output(reason, events)
    }

    fn write_command_output(
        &mut self,
        output: &str,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let text = format!("<local-command-stdout>{output}</local-command-stdout>");
        let (uuid, message) = {
            let mut writer = self.writer.lock();
            let uuid = writer.local_command(&text, &*self.clock)?;
            let shown = if output.is_empty() { "(no content)" } else { output };
            (uuid, writer.synthetic_message(shown, &*self.clock))
        };
        self.conversation.push(Role::User, vec![Message::text_block(&text)]);
        events(AgentEvent::Assistant { uuid: &uuid, message: &message, request_id: None, error: None });
        Ok(())
    }

    /// Returns the usage and cost of this process.
    pub(crate) fn usage_report(&self) -> String {
        let models = &self.totals.models;
        let usage = if models.is_empty() {
            format!("Usage:                 {}", usage_text(&threadline_api::Usage::default()))
        } else {
            let lines = models.iter().map(|model| {
                let name = format!("{}:", threadline_usage::model(&model.model).name);
                format!("\n{name:>21}  {} (${:.4})", usage_text(&model.usage), model.cost_usd)
            });
            format!("Usage by model:{}", lines.collect::<String>())
        };
        format!(
            "Total cost:            ${:.4}\nTotal duration (API):  {}\nTotal duration (wall): {}\nTotal code \
             changes:    {} lines added, {} lines removed\n{usage}",
            // The sum of no costs is negative zero.
            self.totals.cost_usd().abs(),
            short_duration(self.api_time),
            short_duration(self.started.elapsed()),
            self.changed_lines.added,
            self.changed_lines.removed,
        )
    }

    /// Returns how much of the context window the conversation uses, from the usage of the last reply.
    pub(crate) fn context_report(&self) -> String {
        let window = threadline_api::model_info(&self.config.model).context_window;
        let used = self.last_usage.context();
        let percent = used * 100 / window.max(1);
        format!(
            "## Context Usage\n\n**Model:** {}  \n**Tokens:** {used} / {window} ({percent}%)\n",
            self.config.model
        )
    }
}

/// Returns the text of the line of a client's command.
pub(crate) fn command_line(name: &str, arguments: &str) -> String {
    format!(
        "<command-name>/{name}</command-name>\n            <command-message>{name}</command-message>\n            \
         <command-args>{arguments}</command-args>"
    )
}

/// The lines that tools have added to files and removed from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedLines {
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct EditRecord {
    structured_patch: Vec<EditHunk>,
    #[serde(default)]
    original_file: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

#[derive(serde::Deserialize)]
struct EditHunk {
    lines: Vec<String>,
}

impl ChangedLines {
    /// Counts the lines of the record of an edit; none for other records.
    pub(crate) fn of(record: &RawValue) -> Self {
        let Ok(record) = serde_json::from_str::<EditRecord>(record.get()) else { return Self::default() };
        let count = |sign: char| {
            let lines = record.structured_patch.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.starts_with(sign)).count()
        };
        match (&record.original_file, &record.content) {
            // A new file has no patch.
            (None, Some(content)) => Self { added: content.lines().count(), removed: 0 },
            _ => Self { added: count('+'), removed: count('-') },
        }
    }
}

fn usage_text(usage: &threadline_api::Usage) -> String {
    format!(
        "{} input, {} output, {} cache read, {} cache write",
        short_count(usage.input),
        short_count(usage.output),
        short_count(usage.cache_read),
        short_count(usage.cache_write)
    )
}

/// Returns a number with at most one decimal and a unit, such as `1.0k`, as the reference prints it.
fn short_count(number: u64) -> String {
    let number = number as f64;
    match number {
        1e6.. => format!("{:.1}m", number / 1e6),
        1e3.. => format!("{:.1}k", number / 1e3),
        _ => number.to_string(),
    }
}

fn short_duration(duration: std::time::Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1000 { format!("{millis}ms") } else { format!("{:.1}s", duration.as_secs_f64()) }
}

fn is_text_record(record: &RawValue) -> bool {
    RawObject::parse(record.get()).is_ok_and(|record| record.get_str("type").as_deref() == Some("text"))
}

/// Returns the paths that a text mentions as `@path`, each once.
fn mentions(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let Some(path) = word.strip_prefix('@') else { continue };
        let path = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
        if !path.is_empty() && !found.contains(&path) && found.len() < MAX_MENTIONS {
            found.push(path);
        }
    }
    found
}

/// Returns the number of characters that must be added, removed or replaced to get from one word to another;
/// more than 1 if it is more than 1.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 1 {
        return 2;
    }
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    (a.len() - start - end).max(b.len() - start - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_a_name_are_a_command() {
        let parse = |prompt| SlashPrompt::parse(prompt).map(|slash| (slash.name, slash.arguments));
        assert_eq!(parse("/greet Ada  L "), Some(("greet", "Ada  L")));
        assert_eq!(parse("/sub:b"), Some(("sub:b", "")));
        for prompt in ["/", "/tmp/x is a path", "// comment", "  /a lead", "text"] {
            assert_eq!(parse(prompt), None, "{prompt}");
        }
    }

    #[test]
    fn local_commands_have_names_and_aliases() {
        for name in LocalCommand::names() {
            assert!(LocalCommand::parse(name).is_some(), "{name}");
        }
        assert_eq!(LocalCommand::parse("cost").map(LocalCommand::name), Some("usage"));
        assert_eq!(LocalCommand::parse("status"), None);
    }

    #[test]
    fn changed_lines_are_counted_from_patches_and_new_files() {
        let count = |json: &str| ChangedLines::of(serde_json::from_str(json).unwrap());
        let edit = r#"{"originalFile":"a","structuredPatch":[{"lines":[" a","-b","+c","+d"]}]}"#;
        assert_eq!(count(edit), ChangedLines { added: 2, removed: 1 });
        let new = r#"{"type":"create","content":"a\nb\n","structuredPatch":[],"originalFile":null}"#;
        assert_eq!(count(new), ChangedLines { added: 2, removed: 0 });
        assert_eq!(count(r#"{"stdout":"+x"}"#), ChangedLines::default());
    }

    #[test]
    fn large_counts_are_shortened() {
        assert_eq!([0, 999, 1000, 1234, 2_500_000].map(short_count), ["0", "999", "1.0k", "1.2k", "2.5m"]);
    }

    #[test]
    fn mentions_are_words_that_begin_with_an_at_sign() {
        assert_eq!(mentions("see @a.txt, @b/c.rs and mail@x.org @a.txt ( @d)"), ["a.txt", "b/c.rs", "d"]);
    }

    #[test]
    fn similar_names_differ_in_one_character() {
        assert_eq!(distance("a", "b"), 1);
        assert_eq!(distance("clear", "cler"), 1);
        assert_eq!(distance("clear", "clear"), 0);
        assert!(distance("clear", "claer") > 1 && distance("todos", "tasks") > 1);
    }
}
