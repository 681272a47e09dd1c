use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;
use threadline_entry::{Finding, Severity};
use threadline_store::SessionFile;
use threadline_term::{Label, visible};
use threadline_view::wire::FindingObject;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

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

pub(crate) fn run(cx: &Context, args: &CheckArgs) -> Result<Outcome, CommandError> {
    let mut logs = Vec::new();
    // Sessions whose place in their home is looked at too.
    let mut placed = Vec::new();
    let mut found: Vec<Found> = Vec::new();
    let mut unread = Vec::new();
    for what in &args.sessions {
        if Path::new(what).is_dir() {
            logs.extend(threadline_app::logs_below(Path::new(what))?);
            continue;
        }
        let file = cx.app.find(what)?;
        logs.extend(with_agents(&file));
        if !Path::new(what).exists() {
            placed.push(file);
        }
    }
    if args.sessions.is_empty() {
        let sessions = cx.store().sessions();
        unread.extend(sessions.unread.iter().map(ToString::to_string));
        logs.extend(sessions.found.iter().flat_map(with_agents));
        placed.extend(sessions.found);
        let around = cx.store().audit(SystemTime::now());
        unread.extend(around.unread.iter().map(ToString::to_string));
        found.extend(around.found);
    }
    for file in &placed {
        match file.audit() {
            Ok(findings) => found.extend(findings.into_iter().map(|finding| (file.path.clone(), finding))),
            Err(error) => unread.push(error.to_string()),
        }
    }
    let progress = cx.ui.progress("checking log", logs.len());
    let checked: Vec<_> = logs
        .par_iter()
        .map(|path| {
            let findings = check(path);
            progress.step();
            findings
        })
        .collect();
    drop(progress);
    for result in checked {
        match result {
            Ok(findings) => found.extend(findings),
            Err(error) => unread.push(error.to_string().trim_start_matches("error: ").trim_end().to_owned()),
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.retain(|(_, finding)| args.notes || finding.severity > Severity::Note);
    report(cx, &found, logs.len())?;
    for error in &unread {
        cx.ui.warn(error);
    }
    Ok(match found.iter().any(|(_, finding)| finding.severity > Severity::Note) {
        _ if !unread.is_empty() => Outcome::Partly,
        true => Outcome::No,
        false => Outcome::Done,
    })
}

fn with_agents(file: &SessionFile) -> Vec<PathBuf> {
    let agents = file.agents().found.into_iter().map(|agent| agent.path);
    std::iter::once(file.path.clone()).chain(agents).collect()
}

fn check(path: &Path) -> Result<Vec<Found>, CommandError> {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let session = threadline_app::read_session(path, &id)?;
    Ok(session.findings().into_iter().map(|finding| (path.to_owned(), finding)).collect())
}

fn report(cx: &Context, found: &[Found], n_logs: usize) -> Result<(), CommandError> {
    if cx.json {
        let mut answer = cx.ui.answer();
        for (path, finding) in found {
            answer.json(&FindingObject::new(finding, &path.to_string_lossy()))?;
        }
        answer.finish()?;
        return Ok(());
    }
    let page = cx.ui.page();
    let mut answer = cx.ui.long_answer();
    let mut last: Option<&Path> = None;
    for (path, finding) in found {
        if last != Some(path) {
            writeln!(answer, "{}", page.paint(Label::Title, visible(&path.to_string_lossy())))?;
            last = Some(path);
        }
        let label = match finding.severity {
            Severity::Note => Label::Dim,
            Severity::Warning => Label::Warning,
            Severity::Error => Label::Error,
        };
        let severity = page.paint(label, finding.severity.name());
        let place =
            finding.at.map_or(String::new(), |at| format!("line {} (byte {})", at.line_no, at.byte_offset));
        writeln!(answer, "  {place}: {severity} {}: {}", finding.code, visible(&finding.message))?;
        writeln!(answer, "    {}", page.paint(Label::Dim, format!("repair: {}", finding.code.repair())))?;
    }
    answer.finish()?;
    let logs = if n_logs == 1 { "1 log".to_owned() } else { format!("{n_logs} logs") };
    cx.ui.note(&match found.len() {
        0 => format!("{logs} checked, nothing found"),
        1 => format!("{logs} checked, 1 finding"),
        n => format!("{logs} checked, {n} findings"),
    });
    Ok(())
}
