//! `diff`: what a session did to files.

use threadline_app::restore::{is_named, relative_label};
use threadline_evidence::{Certainty, uncertain_commands};
use threadline_session::SessionFamily;
use threadline_term::{ColumnAlign, TableColumn, TextLabel, visible, visible_name};
use threadline_view::humanize::{line_change, plural};
use threadline_view::{FileChange, Hunk, TurnRange, patch, wire};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Show what a session did to files
///
/// Shows each file that the session and its sub-agents created, changed, renamed or deleted, by which calls, and
/// how certain that is: `exact` (a chain of recorded contents proves it), `likely` (derived, or from a base that
/// is not proven), or `changed` (the text is not known). The output is a patch for `git apply`; what is known
/// only in part is a comment in it.
///
/// Changes are known from the texts and edits of tools, from the lists of changes and the texts of shell
/// commands, from backups, from the commit at the beginning of the session, from the files on disk, and from the
/// copies of `threadline setup files`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    #[arg(default_value = "last")]
    session: String,

    /// Only these files: a path, the end of a path, or a folder
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    /// List the files without their changed lines
    #[arg(long)]
    stat: bool,

    /// Only the changes of these turns: `3`, `2..4`, `-1`
    #[arg(long, value_name = "TURNS", allow_hyphen_values = true)]
    at: Option<TurnRange>,
}

pub(crate) fn run(cx: &Context, args: &DiffArgs) -> Result<CommandOutcome, CommandError> {
    let file = cx.app.find(&args.session)?;
    let loaded = cx.app.load(&file)?;
    let family = &loaded.family;
    let changes = cx.app.net_changes(&loaded, args.at);
    let root = loaded.cwd();
    let is_asked = |change: &FileChange| {
        args.files.is_empty() || args.files.iter().any(|name| is_named(&change.path, name, root.as_deref()))
    };
    let changes: Vec<FileChange> = changes.into_iter().filter(is_asked).collect();
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        for change in &changes {
            answer.json(&wire::ChangeObject::from(change))?;
        }
    } else if args.stat {
        answer.text(&table(cx, &changes, family, root.as_deref()))?;
    } else {
        for change in &changes {
            let label = visible_name(&relative_label(&change.path, root.as_deref())).into_owned();
            let line = format!("# {label}: {}", facts(change, family, root.as_deref()));
            writeln!(answer, "{}", cx.ui.page().paint(TextLabel::Dim, &line))?;
            let text = patch(std::slice::from_ref(change), root.as_deref());
            answer.patch(cx.ui.page(), &cx.app.masked(&text))?;
        }
    }
    answer.finish()?;
    note_missing(cx, &changes, family);
    let outcome = if changes.is_empty() { CommandOutcome::Negative } else { CommandOutcome::Done };
    Ok(cx.warn_unread(&loaded.unread, outcome))
}

/// Describes a change in a few words: its kind, its calls, how certain it is.
fn facts(change: &FileChange, family: &SessionFamily, root: Option<&str>) -> String {
    let status = match &change.renamed_from {
        Some(from) => format!("renamed from {}", visible_name(&relative_label(from, root))),
        None => change.status().to_owned(),
    };
    let source = change.source.map_or("", |source| source.name());
    let certainty = match (change.certainty, source) {
        (Certainty::Changed, _) | (_, "") => change.certainty.name().to_owned(),
        (certainty, source) => format!("{}, from {source}", certainty.name()),
    };
    format!("{status} by {} ({certainty})", change.call_names(family))
}

fn table(
    cx: &Context,
    changes: &[FileChange],
    family: &SessionFamily,
    root: Option<&str>,
) -> threadline_term::TermText {
    let columns = [
        TableColumn { keeps_end: true, min_width: 24, ..TableColumn::text("file") },
        TableColumn::number("lines"),
        TableColumn { align: ColumnAlign::Left, can_shrink: true, ..TableColumn::text("change") },
    ];
    let row = |change: &FileChange| {
        let (added, removed) = Hunk::counts(&change.hunks());
        let label = visible(&relative_label(&change.path, root)).into_owned();
        vec![label, line_change(added, removed), facts(change, family, root)]
    };
    let rows: Vec<Vec<String>> = changes.iter().map(row).collect();
    cx.ui.table(&columns, &rows)
}

/// Notes what the patch lacks.
fn note_missing(cx: &Context, changes: &[FileChange], family: &SessionFamily) {
    let partial = changes.iter().filter(|change| !change.has_whole() && !change.is_chain).count();
    if partial > 0 {
        let files = plural(partial as u64, "file");
        cx.ui.note(&format!("{files} changed in a way that is not known as a whole: comments in the patch"));
    }
    let commands = uncertain_commands(family);
    if commands > 0 {
        let commands = plural(commands as u64, "shell command");
        cx.ui
            .note(&format!("{commands} may have changed other files; `threadline setup files` records them"));
    }
    if changes.is_empty() {
        cx.ui.note("no file changes in the log");
    }
}
