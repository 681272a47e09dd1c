//! Pieces: the searchable text of a line, one piece per block of its message.
//!
//! The changes that a shell command made to files, which are in `toolUseResult`, are a part of its result.
//!
//! Deliberately excluded: images and documents, signatures, the rest of `toolUseResult` (a copy of the result),
//! `progress` (copies of output from sub-agents and commands), raw API requests, file history, queues and
//! `last-prompt` (copies of prompts), and attachments added by Claude Code.
//!
//! Whether a text is a prompt is decided from the line alone, by the same criteria as `session::InputKind`,
//! because this crate must not depend on sessions.

use std::borrow::Cow;

use threadline_entry::lens::{
    AiTitle, AttachmentLine, BashEditDiff, BashEditFile, BashResult, Block, Content, CustomTitle, Envelope,
    List, PatchHunk, Summary, System, User,
};
use threadline_entry::{Entry, Json, JsonKind, Kind, value};

/// The kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TextKind {
    /// Typed by the user: a prompt, a slash command, a `!command`.
    Prompt,
    /// Text of the model.
    Reply,
    /// Thinking of the model.
    Thinking,
    /// The input of a tool call.
    Tool,
    /// The result of a tool call.
    Result,
    /// The output of a slash command or a `!command`.
    Output,
    /// The task given to a sub-agent.
    Task,
    /// A summary that replaces a conversation.
    Summary,
    /// A title of the session.
    Title,
    /// Inserted by Claude Code: a skill, a reminder, a notification of a background task. Also the JSON of a
    /// line that exceeds a limit.
    Notice,
}

impl TextKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::Prompt,
        Self::Reply,
        Self::Thinking,
        Self::Tool,
        Self::Result,
        Self::Output,
        Self::Task,
        Self::Summary,
        Self::Title,
        Self::Notice,
    ];

    /// Returns the name used in queries and in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Reply => "reply",
            Self::Thinking => "thinking",
            Self::Tool => "tool",
            Self::Result => "result",
            Self::Output => "output",
            Self::Task => "task",
            Self::Summary => "summary",
            Self::Title => "title",
            Self::Notice => "notice",
        }
    }

    /// Returns the display priority: 0 for text of the user, 1 for text of the model, 2 for everything else.
    pub fn rank(self) -> usize {
        match self {
            Self::Prompt | Self::Title => 0,
            Self::Reply | Self::Thinking | Self::Summary => 1,
            _ => 2,
        }
    }
}

/// The role of a message as in the API: tool results have the role `user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PieceRole {
    /// The user, including tool results and text inserted by Claude Code.
    User,
    /// The model.
    Assistant,
    /// Claude Code, outside of the conversation.
    System,
}

impl PieceRole {
    /// All roles.
    pub const ALL: &'static [Self] = &[Self::User, Self::Assistant, Self::System];

    /// Returns the name used in queries.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// A piece of text.
#[derive(Clone, Debug)]
pub struct TextPiece<'e> {
    /// The index of the block in the line's message, from 0.
    pub block_idx: usize,
    /// Its kind.
    pub kind: TextKind,
    /// Its role.
    pub role: PieceRole,
    /// The decoded text. For a call, the strings of its input, joined by newlines.
    pub text: Cow<'e, str>,
    /// For a call, the name of the tool.
    pub tool: Option<Cow<'e, str>>,
    /// For a call, its input.
    pub input: Option<Json<'e>>,
    /// For a result, the id of its call.
    pub call_id: Option<Cow<'e, str>>,
    /// Whether a tool or the API reported an error.
    pub is_error: bool,
}

impl<'e> TextPiece<'e> {
    fn new(kind: TextKind, role: PieceRole, text: Cow<'e, str>) -> Self {
        Self { block_idx: 0, kind, role, text, tool: None, input: None, call_id: None, is_error: false }
    }

    fn at(self, block_idx: usize) -> Self {
        Self { block_idx, ..self }
    }
}

/// Calls `sink` with each piece of text of a line, in order.
pub fn text_pieces<'e>(entry: &'e Entry, sink: &mut dyn FnMut(TextPiece<'e>)) {
    let title = |text: Option<Cow<'e, str>>, kind: TextKind, sink: &mut dyn FnMut(TextPiece<'e>)| {
        if let Some(text) = text {
            sink(TextPiece::new(kind, PieceRole::System, text));
        }
    };
    match entry.kind() {
        Kind::User => of_user(entry, sink),
        Kind::Assistant => of_reply(entry, sink),
        Kind::System => {
            let text = entry.lens::<System<'_>>().and_then(System::content);
            let kind = text.as_ref().and_then(|text| tagged(text)).unwrap_or(TextKind::Notice);
            title(text, kind, sink);
        }
        Kind::Attachment => queued(entry, sink),
        Kind::Summary => title(entry.lens().and_then(Summary::summary), TextKind::Summary, sink),
        Kind::CustomTitle => title(entry.lens().and_then(CustomTitle::custom_title), TextKind::Title, sink),
        Kind::AiTitle => title(entry.lens().and_then(AiTitle::ai_title), TextKind::Title, sink),
        // Its content was not read, so its JSON is searched.
        Kind::Bad if entry.is_over_limit() => title(Some(entry.text().into()), TextKind::Notice, sink),
        _ => {}
    }
}

/// Visits a user line: all its texts are one piece, and each result is another.
fn of_user<'e>(entry: &'e Entry, sink: &mut dyn FnMut(TextPiece<'e>)) {
    let Some(content) = entry.message().and_then(|message| message.content()) else { return };
    let text = content.text();
    if !text.is_empty() {
        sink(TextPiece::new(kind_of_input(entry, content, &text), PieceRole::User, text));
    }
    // The structured result of a line belongs to its first result.
    let mut changes = changes_of_command(entry);
    for (i, block) in content.blocks().enumerate() {
        if block.is(value::TOOL_RESULT) || block.is(value::MCP_TOOL_RESULT) {
            let mut piece = result(block, PieceRole::User).at(i);
            if let Some(changes) = changes.take() {
                add_changes(piece.text.to_mut(), changes);
            }
            sink(piece);
        }
    }
}

/// Returns the changes that a command made to files, in the line of its result.
fn changes_of_command(entry: &Entry) -> Option<BashEditDiff<'_>> {
    entry.tool_use_result()?.of::<BashResult<'_>>()?.bash_edit_diff()
}

/// Adds the paths and the changed lines of files, with their signs.
fn add_changes(text: &mut String, changes: BashEditDiff<'_>) {
    let mut add = |line: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(line);
    };
    for (path, file) in changes.changed_files_once() {
        add(&path);
        let hunks = file.and_then(BashEditFile::hunks).into_iter().flat_map(List::iter);
        hunks.filter_map(PatchHunk::lines).flat_map(List::iter).for_each(|line| add(&line));
    }
}

/// Prefixes of user texts that were not simply typed.
const TAGS: &[(&str, TextKind)] = &[
    ("<command-name>", TextKind::Prompt),
    ("<command-message>", TextKind::Prompt),
    ("<bash-input>", TextKind::Prompt),
    ("<local-command-stdout>", TextKind::Output),
    ("<local-command-stderr>", TextKind::Output),
    ("<bash-stdout>", TextKind::Output),
    ("<bash-stderr>", TextKind::Output),
    ("<local-command-caveat>", TextKind::Notice),
    ("Caveat: The messages below were generated by the user while running local commands", TextKind::Notice),
    ("<task-notification", TextKind::Notice),
    ("<agent-notification", TextKind::Notice),
    ("<teammate-message", TextKind::Notice),
    ("<session-start-hook>", TextKind::Notice),
    ("<user-prompt-submit-hook>", TextKind::Notice),
    ("<system-reminder>", TextKind::Notice),
    ("<tick>", TextKind::Notice),
    ("<goal>", TextKind::Notice),
    ("[Request interrupted by user", TextKind::Notice),
];

fn tagged(text: &str) -> Option<TextKind> {
    let text = text.trim_start();
    TAGS.iter().find(|(tag, _)| text.starts_with(tag)).map(|(_, kind)| *kind)
}

fn kind_of_input(entry: &Entry, content: Content<'_>, text: &str) -> TextKind {
    let user = entry.lens::<User<'_>>();
    if user.and_then(User::is_compact_summary) == Some(true) {
        return TextKind::Summary;
    }
    // If any of several texts has no tag, the user typed it.
    let kind = if content.as_str().is_some() {
        tagged(text)
    } else {
        let mut texts = content.blocks().filter(|block| block.is(value::TEXT)).filter_map(Block::text);
        let first = tagged(text);
        first.filter(|_| texts.all(|text| tagged(&text).is_some()))
    };
    let envelope: Option<Envelope<'_>> = entry.lens();
    let side = envelope.and_then(Envelope::is_sidechain) == Some(true);
    let meta = envelope.and_then(Envelope::is_meta) == Some(true);
    match kind {
        Some(kind) if !(meta && kind == TextKind::Prompt) => kind,
        _ if meta => TextKind::Notice,
        _ if side => TextKind::Task,
        _ => TextKind::Prompt,
    }
}

fn of_reply<'e>(entry: &'e Entry, sink: &mut dyn FnMut(TextPiece<'e>)) {
    let Some(content) = entry.message().and_then(|message| message.content()) else { return };
    let is_error = entry.is_api_error();
    let reply = |kind, text| TextPiece { is_error, ..TextPiece::new(kind, PieceRole::Assistant, text) };
    // Other programs may write the text of a reply as a string instead of blocks.
    if let Some(text) = content.as_str() {
        return sink(reply(TextKind::Reply, text));
    }
    for (i, block) in content.blocks().enumerate() {
        let Some(kind) = block.kind() else { continue };
        let piece = match &*kind {
            "text" => block.text().map(|text| reply(TextKind::Reply, text)),
            "thinking" => block.thinking().map(|text| reply(TextKind::Thinking, text)),
            value::TOOL_USE | value::SERVER_TOOL_USE | value::MCP_TOOL_USE => Some(call(block)),
            value::TOOL_RESULT | value::MCP_TOOL_RESULT => Some(result(block, PieceRole::Assistant)),
            _ => None,
        };
        if let Some(piece) = piece.filter(|piece| !piece.text.is_empty() || piece.tool.is_some()) {
            sink(piece.at(i));
        }
    }
}

fn call(block: Block<'_>) -> TextPiece<'_> {
    let input = block.input();
    let mut text = String::new();
    if let Some(input) = input {
        strings(input, 0, &mut text);
    }
    TextPiece {
        tool: block.name(),
        input,
        ..TextPiece::new(TextKind::Tool, PieceRole::Assistant, text.into())
    }
}

/// Joins all strings in a value by newlines, up to a nesting depth of 32.
fn strings(json: Json<'_>, depth: usize, out: &mut String) {
    match json.kind() {
        JsonKind::String => {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&json.as_str().unwrap_or_default());
        }
        JsonKind::Object if depth < 32 => {
            json.members().for_each(|(_, value)| strings(value, depth + 1, out));
        }
        JsonKind::Array if depth < 32 => json.items().for_each(|item| strings(item, depth + 1, out)),
        _ => {}
    }
}

fn result(block: Block<'_>, role: PieceRole) -> TextPiece<'_> {
    let text = block.content().map(Content::text).unwrap_or_default();
    TextPiece {
        call_id: block.tool_use_id(),
        is_error: block.is_error().unwrap_or(false),
        ..TextPiece::new(TextKind::Result, role, text)
    }
}

/// Visits a prompt that was typed while the model was working.
fn queued<'e>(entry: &'e Entry, sink: &mut dyn FnMut(TextPiece<'e>)) {
    let Some(body) = entry.lens().and_then(AttachmentLine::attachment) else { return };
    if body.kind().as_deref() != Some(value::QUEUED_COMMAND) {
        return;
    }
    let Some(prompt) = body.prompt() else { return };
    let text = match prompt.kind() {
        JsonKind::String => prompt.as_str().unwrap_or_default(),
        _ => {
            let texts = prompt.items().filter_map(|block| block.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n").into()
        }
    };
    let notice = body.command_mode().as_deref() == Some("task-notification");
    let kind = if notice { TextKind::Notice } else { tagged(&text).unwrap_or(TextKind::Prompt) };
    sink(TextPiece::new(kind, PieceRole::User, text));
}
