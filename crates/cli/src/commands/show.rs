mod follow;
mod matches;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::process::{Command, Stdio};

use threadline_app::{OpenSession, split_anchor};
use threadline_entry::ToolPattern;
use threadline_search::Query;
use threadline_session::SessionFamily;
use threadline_term::{
    RenderedTranscript, TermPage, TermText, TranscriptRenderer, TranscriptStyle, render_outline,
    render_transcript_at,
};
use threadline_view::humanize::plural;
use threadline_view::{
    DetailLevel, ItemBody, OutlineLine, Transcript, TranscriptBuilder, TranscriptFilter, TranscriptItem,
    TranscriptPart, TurnRange, TurnView, anchor, anchor_line, count_tools, patch, wire,
};

use crate::context::Context;
use crate::env;
use crate::error::{CommandError, CommandOutcome};

/// Show a session as a conversation
///
/// Shows the active branch across compactions, with sub-agents below the calls that started them, and
/// abandoned branches last. `SESSION#m42` shows the turn that contains line 42. Markdown and code are
/// formatted on a terminal, and unchanged in a pipe.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Session id, unique prefix, title, `last`, or path to a log; append `#m42` for line 42, or `#a-ID-m42`
    /// for line 42 of a sub-agent
    session: String,

    /// Turns to show, such as `3`, `3..7`, `3..` or `-1` for the last
    #[arg(long, short, value_name = "RANGE", allow_hyphen_values = true)]
    turns: Option<TurnRange>,

    /// Level of detail [default: tools; with `#m42`, full if line 42 would not be visible otherwise]
    #[arg(long, short, value_name = "LEVEL")]
    level: Option<LevelChoice>,

    /// Highlight the matches of a search query, and open the pager at the first one
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["follow", "patch"])]
    find: Option<String>,

    /// Only calls of this tool, at any level; `mcp__*` for several (can be repeated)
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,

    /// Only messages of this role
    #[arg(long, value_name = "ROLE", value_parser = ["user", "assistant"])]
    role: Option<String>,

    /// Only errors, at any level
    #[arg(long)]
    errors: bool,

    /// Show one line per turn
    #[arg(long, conflicts_with_all = ["patch", "follow"])]
    outline: bool,

    /// Show the net changes to files, as a patch for `git apply`
    #[arg(long, conflicts_with = "follow")]
    patch: bool,

    /// Open the text in $VISUAL or $EDITOR
    #[arg(long, conflicts_with_all = ["follow", "json"])]
    editor: bool,

    /// Keep showing new lines until interrupted; `--turns -1` starts with the last turn
    #[arg(long, short)]
    follow: bool,
}

impl ShowArgs {
    /// Returns the name of the session, without the item to show.
    pub(crate) fn session(&self) -> &str {
        split_anchor(&self.session).0
    }
}

/// How much of a session to show.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LevelChoice {
    /// Prompts only
    Prompts,
    /// Also replies
    Chat,
    /// Also tool calls, one line each
    Tools,
    /// Also thinking, diffs, output and hooks, in full
    Full,
    /// The JSON lines of the log
    Raw,
}

impl From<LevelChoice> for DetailLevel {
    fn from(choice: LevelChoice) -> Self {
        match choice {
            LevelChoice::Prompts => Self::Prompts,
            LevelChoice::Chat => Self::Chat,
            LevelChoice::Tools => Self::Tools,
            LevelChoice::Full => Self::Full,
            LevelChoice::Raw => Self::Raw,
        }
    }
}

pub(crate) fn run(cx: &Context, args: &ShowArgs) -> Result<CommandOutcome, CommandError> {
    if cx.app.config().mask.is_on() && args.follow {
        return Err(CommandError::new("--follow cannot mask secrets").hint("leave out --follow or --redact"));
    }
    let (needle, anchor) = split_anchor(&args.session);
    let file = cx.app.find(needle)?;
    if args.editor {
        return open_in_editor(args);
    }
    if args.follow {
        return follow::run(cx, args, &file);
    }
    if args.patch {
        // Secrets are masked while the logs are read.
        let loaded = match cx.app.config().mask.is_on() {
            true => cx.app.load(&file)?,
            false => threadline_app::load_unpriced(&file)?,
        };
        return show_patch(cx, &loaded);
    }
    let loaded = cx.app.load(&file)?;
    let anchor = anchor.map(|anchor| main_anchor(&loaded, anchor)).transpose()?;
    let kept = |path: &str| loaded.kept_output(path);
    let shown = show(cx, args, loaded.transcript_builder(&kept), anchor.as_deref());
    let shown = shown.map(|outcome| cx.warn_unread(&loaded.unread, outcome));
    // Freeing a large session takes longer than the rest of the program.
    std::mem::forget(loaded);
    shown
}

/// Returns the anchor in the session's own log: for an item of a sub-agent, that of the call that started it,
/// which is shown with the work of the sub-agent.
fn main_anchor(loaded: &OpenSession, named: &str) -> Result<String, CommandError> {
    if anchor_line(named).is_some() {
        return Ok(named.to_owned());
    }
    let line = loaded.main_line_no(named).ok_or_else(|| no_item(named))?;
    Ok(anchor(line, 0))
}

fn no_item(anchor: &str) -> CommandError {
    CommandError::new(format!("no item `{anchor}` in the session"))
        .hint("anchors are shown after the turn number, and as `anchor` in --json")
}

/// Opens the output of this command in an editor.
fn open_in_editor(args: &ShowArgs) -> Result<CommandOutcome, CommandError> {
    let editor = env::get(env::VISUAL).or_else(|| env::get(env::EDITOR)).ok_or_else(|| {
        CommandError::new("no editor is set").hint("set $EDITOR to the command of your editor")
    })?;
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or_default();
    let arguments = std::env::args_os().skip(1).filter(|arg| arg != "--editor");
    let shown = Command::new(std::env::current_exe()?)
        .args(arguments)
        .args(["--color", "never", "--no-pager"])
        .stderr(Stdio::inherit())
        .output()?;
    if !shown.status.success() {
        return Ok(CommandOutcome::Partial);
    }
    let suffix = if args.patch { ".patch" } else { ".md" };
    let mut file = tempfile::Builder::new().prefix("threadline-").suffix(suffix).tempfile()?;
    file.write_all(&shown.stdout)?;
    file.flush()?;
    let status = Command::new(program).args(words).arg(file.path()).status().map_err(|error| {
        CommandError::new(format!("cannot run {program}: {error}")).hint("set $EDITOR to your editor")
    })?;
    Ok(if status.success() { CommandOutcome::Done } else { CommandOutcome::Negative })
}

/// Shows the conversation, or the turn of an anchor.
fn show(
    cx: &Context,
    args: &ShowArgs,
    builder: TranscriptBuilder<'_>,
    anchor: Option<&str>,
) -> Result<CommandOutcome, CommandError> {
    // JSON is not highlighted, but an invalid query is an error anyway.
    let query = args.query()?;
    let level = match anchor {
        Some(anchor) if args.level.is_none() && !cx.json => level_of(builder, anchor),
        _ => args.level(),
    };
    let filter = filter(args, level);
    let is_text = !cx.json && !args.outline;
    // The others need the whole text.
    let is_streamed = is_text && anchor.is_none() && level < DetailLevel::Raw && query.is_none();
    let wanted = |number, count| args.is_wanted(number, count);
    let parts: Box<dyn Iterator<Item = TranscriptPart>> = match anchor {
        Some(anchor) => Box::new(parts_at(&filter, builder, anchor)?.into_iter()),
        None => {
            let is_partial = args.turns.is_some() || args.outline;
            let parts = if is_partial { builder.parts_of_turns(&wanted) } else { builder.parts() };
            args.check_turns(parts.n_turns())?;
            Box::new(if is_streamed { parts } else { parts.without_findings() })
        }
    };
    let mut is_empty = true;
    let parts = parts.filter_map(|mut part| {
        let is_kept = filter.keep_part(&mut part);
        is_empty &= !is_kept || !part.has_turns();
        is_kept.then_some(part)
    });
    if args.outline {
        write_outline(cx, parts)?;
    } else if cx.json {
        write_json(cx, &filter, parts)?;
    } else if is_streamed {
        write_text(cx, level, parts)?;
    } else {
        let transcript: Transcript = parts.collect();
        let rendered = render(cx, args, builder.family, &transcript, (level, anchor));
        let is_found = matches::write_highlighted(cx, &rendered, query.as_ref())?;
        let find = args.find.as_deref().filter(|_| query.is_some_and(|query| query.has_terms()));
        if let Some(find) = find.filter(|_| !is_found) {
            let level = if level < DetailLevel::Full { "; --level full shows more" } else { "" };
            cx.ui.note(&format!("no match of `{find}` in what is shown{level}"));
        }
    }
    Ok(args.outcome(cx, builder.family, is_empty))
}

/// Writes the conversation part by part while it is built, so that the first screen appears at once.
fn write_text(
    cx: &Context,
    level: DetailLevel,
    parts: impl Iterator<Item = TranscriptPart>,
) -> Result<(), CommandError> {
    let style = style(level);
    let mut renderer = TranscriptRenderer::new(cx.ui.page(), &style);
    let mut answer = cx.ui.paged_output();
    let mut written = 0;
    for part in parts {
        let text = renderer.part(&part);
        answer.text(&text)?;
        // The first screens are flushed at once; the rest is written in larger pieces.
        written += text.len();
        if written < FIRST_SCREENS {
            answer.flush()?;
        }
    }
    Ok(answer.finish()?)
}

/// Writes one line per turn.
fn write_outline(cx: &Context, parts: impl Iterator<Item = TranscriptPart>) -> Result<(), CommandError> {
    let mut lines = Vec::new();
    for part in parts {
        if let TranscriptPart::Turn(turn) = part {
            lines.push(OutlineLine::of(&turn));
        }
    }
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        for line in &lines {
            answer.json(&wire::OutlineObject::from(line))?;
        }
    } else {
        answer.text(&render_outline(&lines, cx.ui.page()))?;
    }
    Ok(answer.finish()?)
}

/// Writes the conversation as JSON, part by part.
fn write_json(
    cx: &Context,
    filter: &TranscriptFilter,
    parts: impl Iterator<Item = TranscriptPart>,
) -> Result<(), CommandError> {
    let mut answer = cx.ui.output();
    let mut writer = wire::ShowWriter::default();
    for part in parts {
        let mut result = Ok(());
        writer.part(&part, &mut |object| {
            if result.is_ok() && !object.is_call_around(filter) {
                result = answer.json(&object);
            }
        });
        result?;
    }
    Ok(answer.finish()?)
}

/// Output up to this many bytes is flushed after each part.
const FIRST_SCREENS: usize = 1 << 16;

/// Renders a transcript as a whole, as text or as the lines of the log.
fn render(
    cx: &Context,
    args: &ShowArgs,
    family: &SessionFamily,
    transcript: &Transcript,
    (level, anchor): (DetailLevel, Option<&str>),
) -> RenderedTranscript {
    if level == DetailLevel::Raw {
        let some = args.turns.is_some() || anchor.is_some() || args.errors || args.role.is_some();
        let text = raw(family, (some || !args.tool.is_empty()).then_some(transcript));
        return RenderedTranscript { text, ..RenderedTranscript::default() };
    }
    // A match in the rest of a truncated line would be lost.
    let page = TermPage { whole_lines: args.find.is_some(), ..cx.ui.page() };
    let item = anchor.and_then(|anchor| shown_item(transcript, anchor));
    render_transcript_at(transcript, page, &style(level), item)
}

/// Returns the anchor of the item that shows a line: its own, or else the last one before it, since a result
/// is shown with its call.
fn shown_item<'t>(transcript: &'t Transcript, anchor: &'t str) -> Option<&'t str> {
    let items = || transcript.turns.iter().flat_map(|turn| &turn.items);
    if items().any(|item| item.anchor == anchor) {
        return Some(anchor);
    }
    let line = anchor_line(anchor)?;
    let before = items().filter(|item| item.line_no <= line).max_by_key(|item| item.line_no);
    before.map(|item| &*item.anchor)
}

/// Returns the level at which the item with this anchor is visible in full: the text of prompts and replies
/// is at the default level, thinking, tool calls and their output only at the full one.
fn level_of(builder: TranscriptBuilder<'_>, anchor: &str) -> DetailLevel {
    let shows_text = |item: &TranscriptItem| match &item.body {
        ItemBody::Input { input, .. } => input.is_typed() || input.opens_turn(),
        ItemBody::Text(_) => true,
        _ => false,
    };
    let line = anchor_line(anchor);
    let number = line.and_then(|line| builder.turn_of_line(line));
    let Some(number) = number else { return DetailLevel::Full };
    let is_wanted = |other, _| other == number;
    let found: Transcript = builder.parts_of_turns(&is_wanted).without_findings().collect();
    let mut items = found.turns.iter().flat_map(|turn| &turn.items).filter(|item| item.anchor == anchor);
    match items.next() {
        Some(item) if shows_text(item) => DetailLevel::Tools,
        _ => DetailLevel::Full,
    }
}

/// Returns the header and the turn that contains the item with this anchor.
///
/// The MCP server looks up a single item instead of a turn, and the viewer a part of a page, which may
/// contain several turns or a piece of one.
fn parts_at(
    filter: &TranscriptFilter,
    builder: TranscriptBuilder<'_>,
    anchor: &str,
) -> Result<Vec<TranscriptPart>, CommandError> {
    let line = anchor_line(anchor);
    // The item is usually part of the conversation; then no other turn is built.
    if let Some(number) = line.and_then(|line| builder.turn_of_line(line)) {
        let is_wanted = |other, _| other == number;
        let mut parts: Vec<TranscriptPart> = builder.parts_of_turns(&is_wanted).without_findings().collect();
        parts.retain_mut(|part| filter.keep_part(part));
        if parts.iter().any(TranscriptPart::has_turns) {
            return Ok(parts);
        }
    }
    let mut transcript: Transcript = builder.parts().without_findings().collect();
    filter.apply(&mut transcript);
    let last_line = builder.family.main.entries().last().map_or(0, |entry| entry.at().line_no);
    let turn = turn_of(&mut transcript, anchor, line.filter(|line| (1..=last_line).contains(line)));
    let turn = turn.ok_or_else(|| no_item(anchor))?;
    let Transcript { header, end, .. } = transcript;
    let parts = [TranscriptPart::Header(Box::new(header)), TranscriptPart::Turn(Box::new(turn))];
    let agents = end.agents.into_iter().map(|agent| TranscriptPart::Agent(Box::new(agent)));
    Ok(parts.into_iter().chain(agents).collect())
}

/// Takes the turn that contains the item with this anchor from a transcript. A line without an item of its
/// own (a result, shown with its call; a summary, shown with its compaction) belongs to the turn around it.
fn turn_of(transcript: &mut Transcript, anchor: &str, line: Option<u64>) -> Option<TurnView> {
    let has = |turn: &TurnView| turn.anchor == anchor || turn.items.iter().any(|item| item.anchor == anchor);
    if let Some(at) = transcript.turns.iter().position(has) {
        return Some(transcript.turns.swap_remove(at));
    }
    let mut turns = transcript.end.branches.iter_mut().flat_map(|branch| branch.turns.drain(..));
    if let Some(turn) = turns.find(has) {
        return Some(turn);
    }
    let line = line.filter(|_| !transcript.turns.is_empty())?;
    let first_line = |turn: &TurnView| turn.items.iter().map(|item| item.line_no).min().unwrap_or(0);
    let around = transcript.turns.iter().rposition(|turn| first_line(turn) <= line);
    Some(transcript.turns.swap_remove(around.unwrap_or(0)))
}

impl ShowArgs {
    /// Returns the chosen level, or the default one.
    fn level(&self) -> DetailLevel {
        self.level.unwrap_or(LevelChoice::Tools).into()
    }

    /// Parses the query of `--find`.
    fn query(&self) -> Result<Option<Query>, CommandError> {
        self.find.as_deref().map(super::search::parse).transpose()
    }

    /// Returns an error if `--turns` selects none of `count` turns.
    fn check_turns(&self, count: usize) -> Result<(), CommandError> {
        if self.turns.is_none() || (1..=count).any(|number| self.is_wanted(number, count)) {
            return Ok(());
        }
        let turns = plural(count as u64, "turn");
        let error = CommandError::new(format!("no such turn: the session has {turns}"));
        Err(match count {
            0 => error,
            count => error.hint(format!("use --turns 1..{count}, or -1 for the last turn")),
        })
    }

    /// Returns the outcome, given whether nothing was shown. Prints a note if options selected nothing.
    fn outcome(&self, cx: &Context, family: &SessionFamily, is_empty: bool) -> CommandOutcome {
        let filter = filter(self, self.level());
        if !is_empty || !filter.selects_items() {
            return CommandOutcome::Done;
        }
        let used = count_tools(family);
        let is_used = |name: &String| {
            let pattern = ToolPattern::new(name);
            used.keys().any(|tool| pattern.matches(tool))
        };
        let unused: Vec<String> =
            self.tool.iter().filter(|name| !is_used(name)).map(|name| format!("`{name}`")).collect();
        let is_only = |others: &[bool]| self.turns.is_none() && !others.contains(&true);
        cx.ui.note(&if !unused.is_empty() {
            format!("no calls of {}; {}", unused.join(", "), tools_text(&used))
        } else if self.errors && is_only(&[!self.tool.is_empty(), self.role.is_some()]) {
            "no errors".to_owned()
        } else {
            "nothing in the session matches these options".to_owned()
        });
        CommandOutcome::Negative
    }

    /// Returns whether a turn is in the range of `--turns`, given its number and the number of turns.
    fn is_wanted(&self, number: usize, count: usize) -> bool {
        self.turns.is_none_or(|range| range.contains(number, count))
    }
}

fn filter(args: &ShowArgs, level: DetailLevel) -> TranscriptFilter {
    let tools = args.tool.iter().map(|name| ToolPattern::new(name)).collect();
    TranscriptFilter { level, tools, errors_only: args.errors, role: args.role.clone() }
}

/// Names the tools that a session used, the most frequent first.
fn tools_text(used: &BTreeMap<String, u64>) -> String {
    const MAX_TOOLS: usize = 8;
    if used.is_empty() {
        return "the session used no tools".to_owned();
    }
    let mut tools: Vec<(&String, &u64)> = used.iter().collect();
    tools.sort_by_key(|(_, count)| Reverse(**count));
    let names: Vec<&str> = tools.iter().take(MAX_TOOLS).map(|(name, _)| &***name).collect();
    let more = if tools.len() > MAX_TOOLS { ", …" } else { "" };
    format!("the session used {}{more}", names.join(", "))
}

fn style(level: DetailLevel) -> TranscriptStyle {
    TranscriptStyle { level, zone: crate::env::time_zone() }
}

/// Returns the raw lines of the log: all, or those of the chosen items and of the results of their calls.
fn raw(family: &SessionFamily, chosen: Option<&Transcript>) -> TermText {
    let entries = family.main.entries();
    let lines: Option<HashSet<u64>> = chosen.map(|chosen| {
        let branches = chosen.end.branches.iter().flat_map(|branch| &branch.turns);
        let items = chosen.turns.iter().chain(branches).flat_map(|turn| &turn.items);
        let mut lines: HashSet<u64> = items.map(|item| item.line_no).collect();
        for call in family.main.tool_calls() {
            if lines.contains(&entries[call.entry_idx].at().line_no) {
                lines.extend(call.results.iter().map(|result| entries[result.entry_idx].at().line_no));
            }
        }
        lines
    });
    let mut out = TermText::new();
    for entry in
        entries.iter().filter(|entry| lines.as_ref().is_none_or(|lines| lines.contains(&entry.at().line_no)))
    {
        out.push(entry.text());
        out.push("\n");
    }
    out
}

fn show_patch(cx: &Context, loaded: &OpenSession) -> Result<CommandOutcome, CommandError> {
    let family = &loaded.family;
    let changes = cx.app.net_changes(loaded, None);
    let cwd = loaded.cwd();
    if cx.json {
        let mut answer = cx.ui.output();
        for file in &changes {
            answer.json(&wire::ChangeObject::from(file))?;
        }
        answer.finish()?;
    } else {
        let mut answer = cx.ui.paged_output();
        answer.patch(cx.ui.page(), &cx.app.masked(&patch(&changes, cwd.as_deref())))?;
        answer.finish()?;
        for file in changes.iter().filter(|file| !file.notes.is_empty()) {
            cx.ui.note(&format!("{}: {}", file.path, file.notes.join("; ")));
        }
    }
    let commands = threadline_evidence::uncertain_commands(family);
    if commands > 0 {
        let commands = plural(commands as u64, "shell command");
        cx.ui.note(&format!("{commands} may have changed files; their changes are not in the log"));
    }
    if changes.is_empty() {
        cx.ui.note("no file changes in the log");
    }
    let outcome = if changes.is_empty() { CommandOutcome::Negative } else { CommandOutcome::Done };
    Ok(cx.warn_unread(&loaded.unread, outcome))
}
