use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use threadline_app::{CheckReport, LogOwner};
use threadline_entry::{Code, Finding, Severity};
use threadline_store::SessionFile;
use threadline_term::{ColumnAlign, TableColumn, TermText, TextLabel, text, truncate, visible, visible_name};
use threadline_view::humanize::{count, plural, short_id};
use threadline_view::shell_word;
use threadline_view::wire::FindingObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::ui::OutputStream;

/// Check sessions for problems
///
/// Each finding has a stable code, a position, a message and a suggested repair. Without a session, checks
/// all sessions and their home, and prints a summary by code; `--code CODE` lists the findings. Exit codes:
/// 0 no problems found, 1 problems found, 2 something could not be read.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Session id, unique prefix, title, `last`, path to a log, or a folder with logs (can be repeated)
    #[arg(value_name = "SESSION|FILE|DIR")]
    sessions: Vec<String>,

    /// Show only findings with this code or name, such as F01 or orphan-call (can be repeated)
    #[arg(long, value_name = "CODE")]
    code: Vec<String>,

    /// Also show notes: harmless findings
    #[arg(long)]
    notes: bool,
}

/// A finding and the file it is about.
type LogFinding = (Arc<Path>, Finding);

/// At most this many findings of several sessions are listed without `--code`.
const MAX_LISTED: usize = 20;

pub(crate) fn run(cx: &Context, args: &CheckArgs) -> Result<CommandOutcome, CommandError> {
    let codes = args.code.iter().map(|name| code_named(name)).collect::<Result<Vec<_>, _>>()?;
    let targets = cx.app.check_targets(&args.sessions, SystemTime::now())?;
    let progress = cx.ui.progress("checking log", targets.logs.len());
    let mut checked = targets.check(&|| progress.step());
    drop(progress);
    let wants_notes = args.notes || !codes.is_empty();
    let n_notes = if wants_notes { 0 } else { checked.remove_notes() };
    if !codes.is_empty() {
        checked.findings.retain(|(_, finding)| codes.contains(&finding.code));
    }
    if cx.json {
        let mut answer = cx.ui.output();
        for (path, finding) in &checked.findings {
            answer.json(&FindingObject::new(finding, &path.to_string_lossy()))?;
        }
        answer.finish()?;
    } else {
        let is_listed = !codes.is_empty() || args.sessions.len() == 1 || checked.findings.len() <= MAX_LISTED;
        let mut answer = cx.ui.paged_output();
        if checked.findings.len() > MAX_LISTED || !is_listed {
            write_summary(cx, &mut answer, &checked)?;
        }
        if is_listed {
            write_findings(cx, &mut answer, &checked.findings)?;
        }
        answer.finish()?;
        write_notes(cx, &checked, is_listed, n_notes);
    }
    let outcome = if checked.n_problems() > 0 { CommandOutcome::Negative } else { CommandOutcome::Done };
    Ok(cx.warn_unread(&checked.unread, outcome))
}

/// Returns the code with this id or name.
fn code_named(name: &str) -> Result<Code, CommandError> {
    let is_named = |code: &&Code| code.id().eq_ignore_ascii_case(name) || code.name() == name;
    Code::ALL.iter().find(is_named).copied().ok_or_else(|| {
        CommandError::new(format!("unknown code `{name}`"))
            .hint("use a code of the summary, such as F01 or orphan-call")
    })
}

/// Writes one line per code, most frequent first.
fn write_summary(cx: &Context, answer: &mut OutputStream, checked: &CheckReport) -> std::io::Result<()> {
    let text = |name, can_shrink| TableColumn {
        name,
        align: ColumnAlign::Left,
        can_shrink,
        ..TableColumn::default()
    };
    let number =
        |name| TableColumn { name, align: ColumnAlign::Right, can_shrink: false, ..TableColumn::default() };
    let columns = [
        number("findings"),
        number("sessions"),
        text("severity", false),
        text("code", false),
        text("repair", true),
    ];
    let rows: Vec<Vec<String>> = checked
        .by_code()
        .iter()
        .map(|summary| {
            vec![
                count(summary.findings as u64),
                count(summary.sessions as u64),
                summary.severity.name().to_owned(),
                summary.code.to_string(),
                summary.code.repair().to_owned(),
            ]
        })
        .collect();
    answer.text(&cx.ui.table(&columns, &rows))
}

/// Writes each finding, below the title of its session.
fn write_findings(cx: &Context, answer: &mut OutputStream, found: &[LogFinding]) -> std::io::Result<()> {
    let page = cx.ui.page();
    let mut last: Option<&Path> = None;
    for (path, finding) in found {
        if last != Some(path) {
            writeln!(answer, "{}", log_title(cx, path))?;
            last = Some(path);
        }
        let label = match finding.severity {
            Severity::Note => TextLabel::Dim,
            Severity::Warning => TextLabel::Warning,
            Severity::Error => TextLabel::Error,
        };
        let severity = page.paint(label, finding.severity.name());
        let place = finding.at.map_or(String::new(), |at| format!("line {}: ", at.line_no));
        writeln!(answer, "  {place}{severity} {}: {}", finding.code, visible_name(&finding.message))?;
        writeln!(answer, "    {}", page.paint(TextLabel::Dim, format!("repair: {}", finding.code.repair())))?;
    }
    Ok(())
}

/// Returns the title and id of the session that a log belongs to, or the path of another file.
fn log_title(cx: &Context, path: &Path) -> TermText {
    let page = cx.ui.page();
    let LogOwner { log, agent } = LogOwner::of(path);
    let file = SessionFile::at(&log);
    let id = short_id(&file.id).to_owned();
    let Some(title) = cx.app.title_of(file) else {
        return page.paint(TextLabel::Title, visible_name(&path.to_string_lossy()));
    };
    let agent = agent.filter(|_| log != path).map(|agent| format!(" · sub-agent {agent}"));
    let title = truncate(&visible(&title), page.width.map_or(100, |width| width.saturating_sub(12).max(20)));
    let id = page.paint(TextLabel::Dim, format!("{id}{}", visible_name(&agent.unwrap_or_default())));
    text!("{}  {id}", page.paint(TextLabel::Title, title))
}

/// Writes the totals, and the next command to type.
fn write_notes(cx: &Context, checked: &CheckReport, is_listed: bool, n_notes: usize) {
    let logs = plural(checked.n_logs as u64, "log");
    cx.ui.note(&format!("{logs} checked, {}", checked.totals()));
    if checked.n_logs == 0 {
        cx.note_if_empty();
    }
    let (findings, sessions) = checked.repairable();
    if findings > 0 {
        let mut logs = sessions.iter().map(SessionFile::at);
        let name = match (logs.next(), logs.next()) {
            (Some(only), None) if only.home.is_some() => shell_word(&only.id).into_owned(),
            (Some(only), None) => shell_word(&only.path.to_string_lossy()).into_owned(),
            _ => "SESSION".to_owned(),
        };
        cx.ui.note(&format!(
            "{} repairable in {}: `threadline edit repair {name}`",
            count(findings as u64),
            plural(sessions.len() as u64, "session")
        ));
    }
    if !is_listed {
        cx.ui.note("list the findings of a code: `threadline check --code CODE`");
    }
    if n_notes > 0 {
        cx.ui.note(&format!("{} not shown: --notes", plural(n_notes as u64, "harmless note")));
    }
}
