use std::path::{Path, PathBuf};
use std::time::SystemTime;

use threadline_entry::{Finding, Severity};
use threadline_term::{TextLabel, visible};
use threadline_view::wire::FindingObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Check sessions for problems
///
/// Each finding has a stable code, a position, a message and a suggested repair. Without a session, checks
/// all sessions and their home. Exit codes: 0 no problems found, 1 problems found, 2 something could not be
/// read.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Session id, unique prefix, title, `last`, path to a log, or a folder with logs (can be repeated)
    #[arg(value_name = "SESSION|FILE|DIR")]
    sessions: Vec<String>,

    /// Also show notes: harmless findings
    #[arg(long)]
    notes: bool,
}

/// A finding and the file it is about.
type Found = (PathBuf, Finding);

pub(crate) fn run(cx: &Context, args: &CheckArgs) -> Result<CommandOutcome, CommandError> {
    let targets = cx.app.check_targets(&args.sessions, SystemTime::now())?;
    let progress = cx.ui.progress("checking log", targets.logs.len());
    let checked = targets.check(&|| progress.step());
    drop(progress);
    let mut found = checked.findings;
    found.retain(|(_, finding)| args.notes || finding.severity > Severity::Note);
    report(cx, &found, checked.n_logs)?;
    let outcome = match found.iter().any(|(_, finding)| finding.severity > Severity::Note) {
        true => CommandOutcome::Negative,
        false => CommandOutcome::Done,
    };
    Ok(cx.warn_unread(&checked.unread, outcome))
}

fn report(cx: &Context, found: &[Found], n_logs: usize) -> Result<(), CommandError> {
    if cx.json {
        let mut answer = cx.ui.output();
        for (path, finding) in found {
            answer.json(&FindingObject::new(finding, &path.to_string_lossy()))?;
        }
        answer.finish()?;
        return Ok(());
    }
    let page = cx.ui.page();
    let mut answer = cx.ui.paged_output();
    let mut last: Option<&Path> = None;
    for (path, finding) in found {
        if last != Some(path) {
            writeln!(answer, "{}", page.paint(TextLabel::Title, visible(&path.to_string_lossy())))?;
            last = Some(path);
        }
        let label = match finding.severity {
            Severity::Note => TextLabel::Dim,
            Severity::Warning => TextLabel::Warning,
            Severity::Error => TextLabel::Error,
        };
        let severity = page.paint(label, finding.severity.name());
        let place =
            finding.at.map_or(String::new(), |at| format!("line {} (byte {}): ", at.line_no, at.byte_offset));
        writeln!(answer, "  {place}{severity} {}: {}", finding.code, visible(&finding.message))?;
        writeln!(answer, "    {}", page.paint(TextLabel::Dim, format!("repair: {}", finding.code.repair())))?;
    }
    answer.finish()?;
    let logs = if n_logs == 1 { "1 log".to_owned() } else { format!("{n_logs} logs") };
    cx.ui.note(&match found.len() {
        0 => format!("{logs} checked, no problems found"),
        1 => format!("{logs} checked, 1 finding"),
        n => format!("{logs} checked, {n} findings"),
    });
    Ok(())
}
