//! `archive restore`: puts a session back in its place.

use std::path::PathBuf;

use threadline_archive::{OriginFilter, PrivacyLevel, RestoreReport, RestoreTarget};
use threadline_term::{visible, visible_name};
use threadline_view::humanize::plural;
use threadline_view::wire::ArchiveRestoreObject;

use crate::commands::edit::command_line;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Put an archived session back in its place, byte for byte
///
/// If a file exists and differs, nothing is written; --force replaces it. `threadline op undo` reverts this.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// Session id, or the beginning of it
    #[arg(value_name = "SESSION")]
    session: String,

    /// Directory of another project to put it into
    #[arg(long, value_name = "PROJECT")]
    to: Option<PathBuf>,

    /// Replace files that differ
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(cx: &Context, args: &RestoreArgs) -> Result<CommandOutcome, CommandError> {
    let archive = super::open(cx)?;
    let home =
        cx.store().homes().first().ok_or_else(|| CommandError::new("there is no home to restore to"))?;
    let project = args.to.as_ref().map(std::path::absolute).transpose()?;
    let target = RestoreTarget { home: home.clone(), project, force: args.force };
    let filter = OriginFilter { machine: cx.source.machine.clone(), user: cx.source.user.clone() };
    let report = archive.restore(&args.session, &filter, &target, &cx.app, &command_line())?;
    let receipt = report.receipt.as_ref().map(|receipt| &*receipt.id);
    // If it cannot be printed, the files have been restored all the same.
    let printed = print(cx, &report, receipt);
    match receipt {
        Some(receipt) => {
            cx.ui.note(&format!("undo: `threadline op undo {receipt}`"));
            cx.ui.report_unprinted(printed, receipt);
        }
        None => printed?,
    }
    match report.session.level {
        PrivacyLevel::Full => {}
        PrivacyLevel::Redacted => cx.ui.warn("the archived copy is redacted: secrets in it were replaced"),
        PrivacyLevel::Metadata => cx.ui.warn("the archived copy has no texts: it cannot be resumed"),
    }
    Ok(CommandOutcome::Done)
}

fn print(cx: &Context, report: &RestoreReport, receipt: Option<&str>) -> Result<(), CommandError> {
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&ArchiveRestoreObject {
            session: &report.session.id,
            machine: &report.session.origin.machine,
            level: report.session.level.name(),
            written: &report.written,
            present: &report.present,
            receipt,
        })?;
    } else if report.written.is_empty() {
        writeln!(answer, "{}: every file is in its place already", visible(&report.session.id))?;
    } else {
        for path in &report.written {
            writeln!(answer, "{}", visible_name(&path.to_string_lossy()))?;
        }
        let files = plural(report.written.len() as u64, "file");
        writeln!(answer, "{}: {files} restored", visible(&report.session.id))?;
    }
    Ok(answer.finish()?)
}
