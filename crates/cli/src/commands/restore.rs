use std::path::PathBuf;
use std::str::FromStr;

use threadline_session::{At, Basis, Family, FileHistory, Turn};
use threadline_store::SessionFile;
use threadline_term::{Align, Column, Label, table, visible};
use threadline_view::wire::{ChangedFileObject, RestoreTurn, RestoredFile};
use threadline_view::{outline, transcript, wire};

use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::restoring::{self, Action, Restoring, Source, below};

/// Restore files as they were at a prompt
///
/// Uses the backups that Claude Code makes before a tool changes a file, or, if a backup is missing, the
/// edits in the log. Without --at, lists the turns and the files that each changed. With --at, lists the
/// files at the start of that turn and the changes needed to restore them; --diff shows these line by line.
/// Nothing is written without --apply.
///
/// Only files that tools edited can be restored; most changes made by shell commands are not logged.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Only these files: a path, the end of a path, or a folder
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    /// Restore to the start of this turn, such as `3`, or `-1` for the last; `m42` is the turn of line 42,
    /// `end` is the end of the session
    #[arg(long, value_name = "TURN", allow_hyphen_values = true)]
    at: Option<Place>,

    /// Show the difference between the current and the restored files
    #[arg(long, requires = "at")]
    diff: bool,

    /// Write the files below this folder, which is created if needed
    #[arg(long, value_name = "DIR", requires = "at")]
    to: Option<PathBuf>,

    /// Write the files, below --to or to their original paths; `threadline op undo` reverts it
    #[arg(long, requires = "at")]
    apply: bool,

    /// Also write files outside of the session's project
    ///
    /// The project is the working directory of the session, provided that you are in it or the log is in
    /// Claude Code's folder for it; with --to, that folder. The plan lists files outside of it separately.
    #[arg(long, requires = "at")]
    outside: bool,

    /// List the files and write nothing (the default)
    #[arg(long = "dry-run", conflicts_with = "apply")]
    _dry_run: bool,
}

/// A moment, as people type it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Turn(i64),
    Line(u64),
    End,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let line = text.trim_start_matches('#').strip_prefix('m').and_then(|line| line.parse().ok());
        match (text, line, text.parse::<i64>()) {
            ("end", ..) => Ok(Self::End),
            (_, Some(line), _) => Ok(Self::Line(line)),
            (_, None, Ok(turn)) if turn != 0 => Ok(Self::Turn(turn)),
            _ => Err("a turn is a number such as `3` or `-1`, a line such as `m42`, or `end`".to_owned()),
        }
    }
}

pub(crate) fn run(cx: &Context, args: &RestoreArgs) -> Result<Outcome, CommandError> {
    let file = cx.app.find(&args.session)?;
    let family = threadline_app::load_unpriced(&file)?.complete()?.family;
    let history = FileHistory::of(&family);
    let turns = family.main.turns();
    if history.is_empty() {
        cx.ui.note("no tool changed a file in this session, so there is nothing to bring back");
        tell_commands(cx, &family);
        return Ok(Outcome::No);
    }
    let Some(place) = args.at else {
        list_turns(cx, &family, &history, &turns)?;
        tell_commands(cx, &family);
        return Ok(Outcome::Done);
    };
    let (at, moment) = find(&turns, &family, place)?;
    let root = restoring::root(cx, &file, &history, args.to.as_deref())?;
    let mut files = Restoring::plan(&file, &history, at, args.to.as_deref(), root.as_ref().ok())?;
    // Files outside of the project come last.
    files.sort_by_key(|file| file.outside);
    files.retain(|file| file.is_one_of(&args.files, history.root()));
    if files.is_empty() {
        return Err(CommandError::new("the session knows of no such file")
            .hint("without a file, `threadline restore` lists all it knows of"));
    }
    let receipt =
        if args.apply { restoring::write(cx, &file, &files, args.to.is_some(), args.outside)? } else { None };
    let place = match &root {
        Ok(root) => visible(&root.path().to_string_lossy()).into_owned(),
        Err(why) => {
            cx.ui.note(why);
            "no project".to_owned()
        }
    };
    let title = format!("Files at {moment} in {place}");
    report(cx, args, &family, &turns, &title, &files, receipt.as_deref())?;
    tell_missing(cx, &file, &files);
    tell_commands(cx, &family);
    let is_missing = |file: &Restoring| file.action == Action::Cannot || file.outside && !args.outside;
    let partly = args.apply && files.iter().any(is_missing);
    Ok(if partly { Outcome::Partly } else { Outcome::Done })
}

/// The moment that is meant, and how to speak of it.
fn find(turns: &[Turn], family: &Family, place: Place) -> Result<(At, String), CommandError> {
    let count = turns.len();
    let number = match place {
        Place::End => return Ok((At::End, "the end of the session".to_owned())),
        Place::Turn(number) if number < 0 => count as i64 + 1 + number,
        Place::Turn(number) => number,
        Place::Line(line) => {
            let begins = |turn: &Turn| {
                let first = turn.prompt.or(turn.entries.first().copied());
                first.is_some_and(|idx| family.main.entries()[idx].at().line_no <= line)
            };
            turns.iter().rev().find(|turn| begins(turn)).map_or(1, |turn| turn.number as i64)
        }
    };
    let turn = usize::try_from(number).ok().and_then(|number| turns.get(number.checked_sub(1)?));
    let turn = turn.ok_or_else(|| {
        CommandError::new(format!("there is no turn {number}; the session has {count}"))
            .hint("`threadline restore SESSION` lists the turns that changed files")
    })?;
    let prompt = turn.prompt.or(turn.entries.first().copied()).unwrap_or(0);
    Ok((At::Prompt(prompt), format!("the beginning of turn {number}")))
}

/// The turns that changed files, and which.
fn list_turns(
    cx: &Context,
    family: &Family,
    history: &FileHistory,
    turns: &[Turn],
) -> Result<(), CommandError> {
    let titles = outline(&transcript(family, &|_| None).turns);
    let starts: Vec<usize> =
        turns.iter().filter_map(|turn| turn.prompt.or(turn.entries.first().copied())).collect();
    let mut listed = Vec::new();
    for (i, turn) in turns.iter().enumerate() {
        let Some(&from) = starts.get(i) else { continue };
        let files = history.changed(from, starts.get(i + 1).copied());
        if files.is_empty() {
            continue;
        }
        let title = titles.iter().find(|line| line.number == turn.number);
        listed.push(RestoreTurn {
            turn: turn.number as u64,
            anchor: title.map(|line| line.anchor.clone()).unwrap_or_default(),
            started_at: family.main.timestamp(from).map(wire::moment),
            prompt: title.map(|line| line.title.clone()).unwrap_or_default(),
            files: files
                .into_iter()
                .map(|file| ChangedFileObject { path: file.path, edits: file.edits as u64 })
                .collect(),
        });
    }
    let mut answer = if cx.json { cx.ui.answer() } else { cx.ui.long_answer() };
    for turn in &listed {
        if cx.json {
            answer.json(turn)?;
            continue;
        }
        let page = cx.ui.page();
        let number = page.paint(Label::Strong, format!("{:>4}", turn.turn));
        let prompt = page.wrap(&visible(&turn.prompt), 8).into_iter().next().unwrap_or_default();
        writeln!(answer, "{number}  {}", page.paint(Label::Prompt, &prompt))?;
        for file in &turn.files {
            let by = match file.edits {
                0 => "changed by something else than an edit".to_owned(),
                1 => "1 edit".to_owned(),
                n => format!("{n} edits"),
            };
            let path = visible(&below(&file.path, history.root())).into_owned();
            writeln!(answer, "      {path}  {}", page.paint(Label::Dim, &by))?;
        }
    }
    answer.finish()?;
    if !cx.json {
        cx.ui.note("--at TURN shows the files as they were when that turn began");
    }
    Ok(())
}

fn report(
    cx: &Context,
    args: &RestoreArgs,
    family: &Family,
    turns: &[Turn],
    title: &str,
    files: &[Restoring],
    receipt: Option<&str>,
) -> Result<(), CommandError> {
    let is_written = |file: &Restoring| file.action.writes() && (args.outside || !file.outside);
    let mut answer = if cx.json { cx.ui.answer() } else { cx.ui.long_answer() };
    if cx.json {
        for file in files {
            answer.json(&object(file, receipt.filter(|_| is_written(file))))?;
        }
        answer.finish()?;
        return Ok(());
    }
    let page = cx.ui.page();
    if args.diff {
        for file in files {
            answer.patch(page, &file.patch())?;
        }
        answer.finish()?;
        return Ok(());
    }
    let text = |name: &'static str, gives_way: bool| Column { name, align: Align::Left, gives_way };
    let columns =
        [text("file", true), text("as it was", false), text("now", false), text("known from", false)];
    let turn_of = |idx: usize| {
        let line = family.main.entries()[idx].at().line_no;
        let holds = |turn: &&Turn| {
            turn.entries.first().is_some_and(|&first| family.main.entries()[first].at().line_no <= line)
        };
        turns.iter().rev().find(holds).map_or(1, |turn| turn.number)
    };
    let row = |file: &Restoring| {
        let known = match (&file.source, file.basis) {
            (Source::Nothing, _) => "–".to_owned(),
            (source, Basis::Then) => source.name().to_owned(),
            (source, Basis::Before(idx)) => {
                format!("{}, unchanged since turn {}", source.name(), turn_of(idx))
            }
            (source, Basis::After(idx)) => {
                format!("{} of turn {}, the first", source.name(), turn_of(idx))
            }
        };
        let applied = args.apply && is_written(file);
        vec![visible(&file.label).into_owned(), file.then(), file.now(applied), known]
    };
    let n_inside = files.iter().take_while(|file| !file.outside).count();
    let (inside, outside) = files.split_at(n_inside);
    for (title, files) in [(title, inside), ("Outside of the project", outside)] {
        if files.is_empty() {
            continue;
        }
        writeln!(answer, "{}", page.paint(Label::Title, title))?;
        let rows: Vec<Vec<String>> = files.iter().map(row).collect();
        answer.text(&table(page, &columns, &rows))?;
    }
    answer.finish()?;
    if !outside.is_empty() && !args.outside {
        let files = if outside.len() == 1 { "1 file".to_owned() } else { format!("{} files", outside.len()) };
        cx.ui.note(&format!("{files} outside of the project: --outside --apply writes there too"));
    }
    let to_do = files.iter().filter(|file| is_written(file)).count();
    let files = if to_do == 1 { "1 file".to_owned() } else { format!("{to_do} files") };
    cx.ui.note(&match (receipt, &args.to) {
        (Some(receipt), _) => format!("wrote {files}; `threadline op undo {receipt}` takes it back"),
        _ if to_do == 0 => "nothing to write".to_owned(),
        (None, Some(dir)) => format!("--apply writes {files} below {}", dir.display()),
        (None, None) => {
            format!("--diff shows the changes, --apply writes {files}, --to DIR --apply writes elsewhere")
        }
    });
    Ok(())
}

fn object(file: &Restoring, receipt: Option<&str>) -> RestoredFile {
    RestoredFile {
        path: file.path.clone(),
        target: file.target.to_string_lossy().into_owned(),
        action: file.action.name(),
        applied: receipt.is_some() && file.action.writes(),
        receipt: receipt.map(str::to_owned),
        source: file.source.name(),
        backup: file.backup.clone(),
        basis: match file.basis {
            Basis::Then => "exact",
            Basis::Before(_) => "earlier",
            Basis::After(_) => "later",
        },
        size_bytes: file.content.as_ref().map(|content| content.len() as u64),
        lines_added: file.lines().map(|(added, _)| added as u64),
        lines_removed: file.lines().map(|(_, removed)| removed as u64),
        note: file.note.clone(),
        outside: file.outside,
    }
}

/// Which copies are gone, and what was done about it.
fn tell_missing(cx: &Context, session: &SessionFile, files: &[Restoring]) {
    for file in files {
        if let Some(note) = &file.note {
            cx.ui.note(&format!("{}: {note}", visible(&file.label)));
        }
    }
    if session.home.is_none() {
        cx.ui.note("the log lies in no home, so there are no backups to look at");
    }
}

/// What no log can know.
fn tell_commands(cx: &Context, family: &Family) {
    let sessions = std::iter::once(&family.main).chain(family.agents.iter().map(|agent| &agent.session));
    let is_command = |name: &str| matches!(name, "Bash" | "PowerShell");
    let commands = sessions.flat_map(|session| session.tool_calls()).filter(|call| is_command(&call.name));
    match commands.count() {
        0 => {}
        1 => cx.ui.note("1 command ran; files that no edit touched are not known, whatever it did to them"),
        n => cx.ui.note(&format!(
            "{n} commands ran; files that no edit touched are not known, whatever they did to them"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn places() {
        let place = |text: &str| text.parse::<Place>();
        assert_eq!(place("3"), Ok(Place::Turn(3)));
        assert_eq!(place("-1"), Ok(Place::Turn(-1)));
        assert_eq!(place("m42"), Ok(Place::Line(42)));
        assert_eq!(place("#m42"), Ok(Place::Line(42)));
        assert_eq!(place("end"), Ok(Place::End));
        assert!(place("0").is_err());
        assert!(place("x").is_err());
    }
}
