use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use threadline_app::blame::{BlameError, BlameOptions, BlamedLine, FileBlame, LoggedEdit};
use threadline_entry::Millis;
use threadline_evidence::LineOrigin;
use threadline_term::{ColumnAlign, TableColumn, TermText, TextLabel, text, truncate, visible};
use threadline_view::humanize::{line_change, minute, plural, short_id};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Show which session, turn and prompt wrote each line of a file
///
/// Replays the edits that all sessions made to the file, up to its present text, and adds the commits of
/// `git blame`. A line is assigned to an edit only if that is certain. Otherwise, its origin is `older`
/// (there before the first logged edit), `outside` (written by hand or by a program), `reformatted`
/// (outside, but only white space differs from a line of a session), or `ambiguous`.
///
/// Edits in other working trees of the repository, and under earlier names of the file, count if they were
/// committed. Only changes that a log contains can be assigned: those of tools, and those of shell commands
/// where Claude Code listed the changed lines.
#[derive(Debug, clap::Args)]
pub(crate) struct BlameArgs {
    /// File, with `:12` or `:12-20` for some lines
    #[arg(value_name = "FILE[:LINES]")]
    file: PathBuf,

    /// List the edits of the file by all sessions, in order, instead of its lines
    #[arg(long)]
    edits: bool,

    /// Use the logs only
    #[arg(long)]
    no_git: bool,
}

/// A file and the requested lines, from 1.
struct FileLines {
    file: PathBuf,
    lines: Option<LineNumbers>,
}

/// A range of line numbers, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineNumbers {
    first: usize,
    last: usize,
}

impl FromStr for LineNumbers {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, last) = text.split_once(['-', ',']).unwrap_or((text, text));
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0).ok_or(());
        let (first, last) = (number(first)?, number(last)?);
        if first <= last { Ok(Self { first, last }) } else { Err(()) }
    }
}

impl FileLines {
    /// Splits the argument. A file whose name ends in `:12` is preferred, if it exists.
    fn of(argument: &Path) -> Self {
        let whole = || Self { file: argument.to_owned(), lines: None };
        let Some((file, lines)) = argument.to_str().and_then(|text| text.rsplit_once(':')) else {
            return whole();
        };
        match lines.parse() {
            Ok(lines) if !argument.exists() => Self { file: file.into(), lines: Some(lines) },
            _ => whole(),
        }
    }
}

impl From<BlameError> for CommandError {
    fn from(error: BlameError) -> Self {
        match error {
            BlameError::App(error) => error.into(),
            error @ BlameError::OtherMachine { .. } => {
                Self::new(error.to_string()).hint("`threadline blame --edits FILE` lists its edits")
            }
            error => Self::new(error.to_string()),
        }
    }
}

pub(crate) fn run(cx: &Context, args: &BlameArgs) -> Result<CommandOutcome, CommandError> {
    let FileLines { file, lines } = FileLines::of(&args.file);
    if args.edits {
        return list_edits(cx, &file);
    }
    let blame = cx.app.blame(&file, BlameOptions { without_git: args.no_git, only_edited: false })?;
    let n_lines = blame.lines.len();
    let shown = match lines {
        Some(LineNumbers { first, .. }) if first > n_lines => {
            let count = plural(n_lines as u64, "line");
            return Err(CommandError::new(format!("no line {first}: {} has {count}", file.display())));
        }
        Some(LineNumbers { first, last }) => first - 1..last.min(n_lines),
        None => 0..n_lines,
    };
    if cx.json {
        let mut answer = cx.ui.output();
        for object in blame.objects(&cx.app, shown) {
            answer.json(&object)?;
        }
        answer.finish()?;
        return Ok(cx.warn_unread(&blame.unread, CommandOutcome::Done));
    }
    let mut answer = cx.ui.paged_output();
    answer.text(&render_lines(cx, &blame, shown.clone()))?;
    answer.text(&render_turns(cx, &blame, shown.clone()))?;
    answer.finish()?;
    note_unknown(cx, &blame, shown);
    Ok(cx.warn_unread(&blame.unread, CommandOutcome::Done))
}

/// The number of columns before the line numbers.
const MARGIN: usize = 19;

fn render_lines(cx: &Context, blame: &FileBlame, shown: Range<usize>) -> TermText {
    let page = cx.ui.page();
    let number_width = shown.end.to_string().len();
    let text_width = page.width.map(|width| width.saturating_sub(MARGIN + number_width + 3).max(20));
    let mut out = TermText::default();
    let mut last = String::new();
    for at in shown {
        let line = &blame.lines[at];
        let (label, margin) = margin(blame, line);
        // A run of lines of one origin shows it once.
        let margin_text = if margin == last { String::new() } else { margin.clone() };
        last = margin;
        let gap = " ".repeat(MARGIN.saturating_sub(text!("{margin_text}").width()));
        let code = visible(&cx.app.masked(&line.text)).replace('\t', "    ");
        let code = text_width.map_or_else(|| code.clone(), |width| truncate(&code, width));
        let number = page.paint(TextLabel::Dim, format!("{:>number_width$}", at + 1));
        out += text!("{}{gap}{number}  {code}\n", page.paint(label, margin_text));
    }
    out
}

/// Returns the origin of a line in a few words.
fn margin(blame: &FileBlame, line: &BlamedLine) -> (TextLabel, String) {
    let short = |id: &str| short_id(id).to_owned();
    match &line.origin {
        LineOrigin::Edit { edit, .. } => {
            let edit = &blame.edits[*edit];
            let turn = edit.turn.map_or_else(|| "branch".to_owned(), |turn| format!("turn {turn}"));
            (TextLabel::Tool, format!("{} {turn}", short(&edit.session.id)))
        }
        LineOrigin::Unknown { reason, .. } => {
            let commit = line.commit.map(|commit| &blame.commits[commit]);
            let name = reason.name();
            match commit {
                Some(commit) if name == "older" || name == "outside" => (
                    TextLabel::Dim,
                    truncate(&format!("{} {}", short(&commit.id), commit.author), MARGIN - 1),
                ),
                _ => (TextLabel::Warning, name.to_owned()),
            }
        }
    }
}

/// Lists the turns that wrote the lines, with their prompts.
fn render_turns(cx: &Context, blame: &FileBlame, shown: Range<usize>) -> TermText {
    let turns = blame.turns(shown);
    if turns.is_empty() {
        return TermText::default();
    }
    let columns = [
        TableColumn { can_shrink: false, ..TableColumn::text("turn") },
        TableColumn::number("lines"),
        TableColumn { can_shrink: false, ..TableColumn::text("edited") },
        TableColumn::text("prompt"),
    ];
    let rows: Vec<Vec<String>> = turns
        .iter()
        .map(|turn| {
            let edit = &blame.edits[turn.first_edit];
            let anchor = edit.prompt_anchor.as_deref().unwrap_or(&edit.anchor);
            let id = short_id(&edit.session.id);
            vec![
                format!("{id}#{anchor}"),
                turn.n_lines.to_string(),
                local_time(cx, edit.edit.at),
                visible(edit.object(&cx.app).label()).into_owned(),
            ]
        })
        .collect();
    text!("\n{}", cx.ui.table(&columns, &rows))
}

fn local_time(cx: &Context, at: Option<Millis>) -> String {
    at.map(|at| minute(at, &cx.zone())).unwrap_or_default()
}

fn note_unknown(cx: &Context, blame: &FileBlame, shown: Range<usize>) {
    let lines = &blame.lines[shown];
    let is_known = |line: &&BlamedLine| matches!(line.origin, LineOrigin::Edit { .. });
    let known = lines.iter().filter(is_known).count();
    if blame.edits.is_empty() {
        return cx.ui.note("no session edited this file");
    }
    let lines = plural(lines.len() as u64, "line");
    cx.ui
        .note(&format!("{known} of {lines} written by sessions; `threadline show SESSION#m42` shows a turn"));
}

/// Lists the edits of a file by all sessions.
fn list_edits(cx: &Context, file: &Path) -> Result<CommandOutcome, CommandError> {
    let found = cx.app.file_edits(file)?;
    let outcome = if found.edits.is_empty() { CommandOutcome::Negative } else { CommandOutcome::Done };
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        for edit in &found.edits {
            answer.json(&edit.object(&cx.app))?;
        }
    } else if !found.edits.is_empty() {
        let columns = [
            TableColumn { can_shrink: false, ..TableColumn::text("edited") },
            TableColumn { can_shrink: false, ..TableColumn::text("session") },
            TableColumn { align: ColumnAlign::Right, drop_order: 1, ..TableColumn::text("turn") },
            TableColumn { can_shrink: false, ..TableColumn::text("tool") },
            TableColumn { align: ColumnAlign::Right, can_shrink: false, ..TableColumn::text("lines") },
            TableColumn { min_width: 20, ..TableColumn::text("prompt") },
        ];
        let row = |edit: &LoggedEdit| {
            let id = short_id(&edit.session.id);
            vec![
                local_time(cx, edit.edit.at),
                format!("{id}#{}", edit.anchor),
                edit.turn.map(|turn| turn.to_string()).unwrap_or_default(),
                visible(&edit.tool).into_owned(),
                edit.changed_lines()
                    .map_or_else(|| "?".to_owned(), |(added, removed)| line_change(added, removed)),
                visible(edit.object(&cx.app).label()).into_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = found.edits.iter().map(row).collect();
        answer.text(&cx.ui.table(&columns, &rows))?;
    }
    answer.finish()?;
    if found.edits.is_empty() {
        cx.ui.note("no session edited this file");
    }
    Ok(cx.warn_unread(&found.unread, outcome))
}
