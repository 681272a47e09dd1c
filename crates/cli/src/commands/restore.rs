use std::collections::BTreeMap;
use std::path::PathBuf;

use threadline_app::Mask;
use threadline_app::restore::{
    ContentSource, FileRestore, RestoreAction, RestoreOptions, RestorePlan, RestorePoint, relative_label,
    turns_with_changes,
};
use threadline_evidence::{Certainty, EvidenceBasis, FileEvidence};
use threadline_session::{EntryIndex, SessionFamily, Turn};
use threadline_store::{SessionFile, WriteRisk};
use threadline_term::{ColumnAlign, TableColumn, TextLabel, truncate, visible, visible_name};
use threadline_view::humanize::{bytes, line_change, plural};
use threadline_view::wire::RestoredFile;

use crate::commands::edit::command_line;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Restore files as they were at a prompt
///
/// Claude Code keeps a backup of each file before a tool changes it, and records at every prompt which backup
/// is current. If a backup is gone, the text is taken from the edits in the log. Without --at, lists the
/// turns and the files that each changed. With --at, lists the files as they were when that turn began, and
/// the changes that restoring them would make; --diff shows these line by line. Nothing is written without
/// --apply.
///
/// Files that shell commands changed are restored where the log lists the changes and the text before is
/// known. Other commands may have changed a file too: its text is not known from there on, and it is left
/// alone. So are links, and texts whose encoding or line ends cannot be known.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Only these files: a path, the end of a path, or a folder
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    /// Restore the files as they were when this turn began: `3`, `-1` for the last turn, `m42` for the turn
    /// of line 42, or `end` for the end of the session
    #[arg(long, value_name = "TURN", allow_hyphen_values = true)]
    at: Option<RestorePoint>,

    /// Show the difference between the current and the restored files
    #[arg(long, requires = "at")]
    diff: bool,

    /// Write the files below this folder, which is created if needed
    #[arg(long, value_name = "DIR", requires = "at")]
    to: Option<PathBuf>,

    /// Write the files: below --to, or to their own paths; `threadline op undo ID --apply` reverts this
    #[arg(long, requires = "at")]
    apply: bool,

    /// Also write contents that are likely and not certain
    ///
    /// They are derived from something that is not proven: a commit, the file on disk, or a command whose
    /// text says what it does.
    #[arg(long, requires = "at")]
    likely: bool,

    /// Also write outside of the project, and files that other programs may run commands from
    ///
    /// The project is the directory that the session worked in, if you are in it or the log is in Claude
    /// Code's folder for it; with --to, that folder. Other programs may run commands from hidden files, such
    /// as those in .git or .vscode, and from a few others (SECURITY.md lists them), in any folder. The plan
    /// lists these files separately.
    #[arg(long, requires = "at")]
    outside: bool,

    /// List the files and write nothing (the default)
    #[arg(long = "dry-run", conflicts_with = "apply")]
    _dry_run: bool,
}

pub(crate) fn run(cx: &Context, args: &RestoreArgs) -> Result<CommandOutcome, CommandError> {
    if args.apply {
        cx.app.finish_interrupted_operations();
    }
    let file = cx.app.find_to_change(&args.session)?;
    let family = threadline_app::load_unpriced(&file)?.complete()?.family;
    let evidence = cx.app.file_evidence(&file, &family);
    if evidence.is_empty() {
        cx.ui.note("no tool changed a file in this session: nothing to restore");
        note_commands(cx, &family);
        return Ok(CommandOutcome::Negative);
    }
    let agents = file.agents().found.into_iter().map(|agent| agent.path);
    let mask = cx.app.session_mask(&[file.path.clone()].into_iter().chain(agents).collect::<Vec<_>>());
    let Some(point) = args.at else {
        list_turns(cx, &family, &evidence, &mask)?;
        note_commands(cx, &family);
        return Ok(CommandOutcome::Done);
    };
    let (at, number) = point.resolve(&family)?;
    let moment = match number {
        Some(number) => format!("the beginning of turn {number}"),
        None => "the end of the session".to_owned(),
    };
    let options = RestoreOptions { to: args.to.clone(), names: args.files.clone(), likely: args.likely };
    let plan = cx.app.plan_restore(&file, &evidence, at, &options)?;
    let receipt = if args.apply { plan.apply(&cx.app, args.outside, &command_line())? } else { None };
    let title = match &plan.root {
        Ok(root) => format!("Files at {moment} in {}", visible_name(&root.path().to_string_lossy())),
        Err(why) => {
            cx.ui.note(why);
            format!("Files at {moment}")
        }
    };
    let receipt = receipt.as_ref().map(|receipt| &*receipt.id);
    let reported = report(cx, args, &family, &title, &plan.files, receipt, &mask);
    match receipt {
        Some(id) => cx.ui.report_unprinted(reported, id),
        None => reported?,
    }
    note_missing(cx, &file, &plan.files);
    note_commands(cx, &family);
    let is_missing = |file: &FileRestore| {
        matches!(file.action, RestoreAction::Likely | RestoreAction::Cannot | RestoreAction::Blocked)
            || file.risk.is_some() && !args.outside
    };
    let partly = args.apply && plan.files.iter().any(is_missing);
    Ok(if partly { CommandOutcome::Partial } else { CommandOutcome::Done })
}

/// Lists the turns that changed files, with the files.
fn list_turns(
    cx: &Context,
    family: &SessionFamily,
    evidence: &FileEvidence,
    mask: &Mask,
) -> Result<(), CommandError> {
    let mut listed = turns_with_changes(family, evidence);
    for turn in &mut listed {
        turn.prompt = mask.text(&turn.prompt).into_owned();
    }
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    for turn in &listed {
        if cx.json {
            answer.json(turn)?;
            continue;
        }
        let page = cx.ui.page();
        let number = page.paint(TextLabel::Strong, format!("{:>4}", turn.turn));
        let room = page.width.map_or(usize::MAX, |width| width.saturating_sub(8));
        let prompt = truncate(&visible(&turn.prompt), room);
        writeln!(answer, "{number}  {}", page.paint(TextLabel::Prompt, &prompt))?;
        for file in &turn.files {
            let by = match file.edits {
                0 => "changed by something else than an edit".to_owned(),
                n => plural(n, "edit"),
            };
            let path = visible_name(&relative_label(&file.path, evidence.root())).into_owned();
            writeln!(answer, "      {path}  {}", page.paint(TextLabel::Dim, &by))?;
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
    family: &SessionFamily,
    title: &str,
    files: &[FileRestore],
    receipt: Option<&str>,
    mask: &Mask,
) -> Result<(), CommandError> {
    let is_written = |file: &FileRestore| RestorePlan::writes(file, args.outside);
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
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
            answer.patch(page, &file.patch(mask))?;
        }
        answer.finish()?;
        return Ok(());
    }
    let text = |name: &'static str, gives_way: bool| TableColumn {
        name,
        align: ColumnAlign::Left,
        can_shrink: gives_way,
        ..TableColumn::default()
    };
    let columns = [
        TableColumn { keeps_end: true, min_width: 24, ..text("file", true) },
        TableColumn { drop_order: 2, ..text("size then", false) },
        text("current file", false),
        text("source", false),
    ];
    let turns = family.main.turns();
    let turn_of = |idx: EntryIndex| {
        let line = family.main.entries()[idx].at().line_no;
        let holds = |turn: &&Turn| {
            turn.entries.first().is_some_and(|&first| family.main.entries()[first].at().line_no <= line)
        };
        turns.iter().rev().find(holds).map_or(1, |turn| turn.number)
    };
    let row = |file: &FileRestore| {
        let known = match (&file.source, file.basis) {
            (ContentSource::Nothing, _) => "–".to_owned(),
            (source, EvidenceBasis::Exact) => source.name().to_owned(),
            (source, EvidenceBasis::Earlier(idx)) => format!("{}, turn {}", source.name(), turn_of(idx)),
            (source, EvidenceBasis::Later(idx)) => format!("first {}, turn {}", source.name(), turn_of(idx)),
            (source, EvidenceBasis::Outside) => source.name().to_owned(),
        };
        let applied = args.apply && is_written(file);
        vec![visible(&file.label).into_owned(), size_then(file), change(file, applied), known]
    };
    for files in files.chunk_by(|a, b| risk_name(a) == risk_name(b)) {
        let title = match files[0].risk {
            None => title,
            Some(WriteRisk::CommandSource) => "Other programs may run commands from these",
            Some(WriteRisk::Outside) => "Outside of the project",
        };
        writeln!(answer, "{}", page.paint(TextLabel::Title, title))?;
        let rows: Vec<Vec<String>> = files.iter().map(row).collect();
        answer.text(&cx.ui.table(&columns, &rows))?;
    }
    answer.finish()?;
    for (name, what) in [
        ("command-source", "that other programs may run commands from: --outside --apply writes these too"),
        ("outside", "outside of the project: --outside --apply writes there too"),
    ] {
        let count = files.iter().filter(|file| risk_name(file) == Some(name)).count();
        if count > 0 && !args.outside {
            cx.ui.note(&format!("{} {what}", plural(count as u64, "file")));
        }
    }
    let likely = files.iter().filter(|file| file.action == RestoreAction::Likely).count();
    if likely > 0 {
        let files = plural(likely as u64, "file");
        cx.ui.note(&format!(
            "{files} whose content is likely and not certain: --likely --apply writes these too"
        ));
    }
    let to_do = files.iter().filter(|file| is_written(file)).count();
    let files = plural(to_do as u64, "file");
    cx.ui.note(&match (receipt, &args.to) {
        (Some(receipt), _) => format!("wrote {files}; undo: `threadline op undo {receipt} --apply`"),
        _ if to_do == 0 => "nothing to write".to_owned(),
        (None, Some(dir)) => format!("--apply writes {files} below {}", dir.display()),
        (None, None) => {
            format!("--diff shows the changes, --apply writes {files}, --to DIR --apply writes elsewhere")
        }
    });
    Ok(())
}

/// The name of a file's risk in JSON.
fn risk_name(file: &FileRestore) -> Option<&'static str> {
    match file.risk? {
        WriteRisk::CommandSource => Some("command-source"),
        WriteRisk::Outside => Some("outside"),
    }
}

/// The size of the file at the moment that it is restored to.
fn size_then(file: &FileRestore) -> String {
    match (&file.content, file.action) {
        (_, RestoreAction::Cannot) => "not known".to_owned(),
        (Some(content), _) => bytes(content.len() as u64),
        (None, _) => "not there".to_owned(),
    }
}

/// The state of the file now, or the number of lines that restoring it changes.
fn change(file: &FileRestore, applied: bool) -> String {
    match file.action {
        action if applied && action.writes() => "written".to_owned(),
        RestoreAction::Keep => "the same".to_owned(),
        RestoreAction::Change | RestoreAction::Likely => match file.changed_lines() {
            Some((added, removed)) => line_change(added, removed),
            None => "other bytes".to_owned(),
        },
        RestoreAction::Create => "not there".to_owned(),
        RestoreAction::Delete => "there".to_owned(),
        RestoreAction::Cannot => "–".to_owned(),
        RestoreAction::Blocked => "not writable".to_owned(),
    }
}

fn object(file: &FileRestore, receipt: Option<&str>) -> RestoredFile {
    RestoredFile {
        path: file.path.clone(),
        target: file.target.to_string_lossy().into_owned(),
        action: file.action.name(),
        applied: receipt.is_some() && file.action.writes(),
        receipt: receipt.map(str::to_owned),
        source: file.source.name(),
        backup: file.backup.clone(),
        basis: match file.basis {
            EvidenceBasis::Exact => "exact",
            EvidenceBasis::Earlier(_) => "earlier",
            EvidenceBasis::Later(_) | EvidenceBasis::Outside => "later",
        },
        state: match (file.certainty, file.content.is_none() && file.action != RestoreAction::Cannot) {
            (Certainty::Exact, true) => "absent",
            (Certainty::Exact, false) => "exact",
            (Certainty::Likely, _) => "likely",
            (Certainty::Changed, _) => "changed",
        },
        evidence: file.evidence.map(|evidence| evidence.name()),
        size_bytes: file.content.as_ref().map(|content| content.len() as u64),
        lines_added: file.changed_lines().map(|(added, _)| added as u64),
        lines_removed: file.changed_lines().map(|(_, removed)| removed as u64),
        note: file.note.clone(),
        outside: file.risk.is_some(),
        risk: risk_name(file),
    }
}

/// Notes about files whose backups are gone.
fn note_missing(cx: &Context, session: &SessionFile, files: &[FileRestore]) {
    let mut by_note: BTreeMap<&str, Vec<&FileRestore>> = BTreeMap::new();
    for file in files {
        if let Some(note) = &file.note {
            by_note.entry(note).or_default().push(file);
        }
    }
    for (note, files) in by_note {
        match files[..] {
            [file] => cx.ui.note(&format!("{}: {note}", visible(&file.label))),
            _ => cx.ui.note(&format!("{}: {note}", plural(files.len() as u64, "file"))),
        }
    }
    if session.home.is_none() {
        cx.ui.note("the log is not inside a Claude Code home, so there are no backups");
    }
}

/// Notes that changes by shell commands cannot be restored.
fn note_commands(cx: &Context, family: &SessionFamily) {
    match threadline_evidence::uncertain_commands(family) {
        0 => {}
        n => {
            let commands = plural(n as u64, "shell command");
            cx.ui.note(&format!("{commands} may have changed files; their changes cannot be restored"));
        }
    }
}
