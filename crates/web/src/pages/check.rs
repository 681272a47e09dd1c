//! The health check of a session, and the repairs that are possible.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use threadline_app::edit::{ChangeGroup, ChangeKind, EditError, EditTarget};
use threadline_app::{AppError, LogOwner, SessionFile};
use threadline_entry::Finding;
use threadline_html::{CheckPage, PageFrame, RepairPlan, ViewerTab};
use threadline_view::humanize::plural;
use threadline_view::wire::FindingObject;

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// Larger logs, in bytes, are not checked on a page.
const MAX_LOG_BYTES: u64 = 256 << 20;
/// A repair is planned for sessions up to this size, in bytes, with their sub-agents.
const MAX_PLANNED_BYTES: u64 = 64 << 20;

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let id = request.path_param(0);
    let file = state.app.session(id)?;
    let found = file.logs().found;
    if found.iter().any(|log| log.size > MAX_LOG_BYTES) {
        return Err(PageError::failed("Session too large to check here")
            .with_hint(format!("Run `threadline check {id}` in a terminal.")));
    }
    let mut report = state.app.session_to_check(file.clone()).check(&|| ());
    // The page is about the session; without its own log there is none.
    let is_own = |error: &mut AppError| matches!(error, AppError::Read { path, .. } if *path == file.path);
    if let Some(error) = report.unread.extract_if(.., is_own).next() {
        return Err(error.into());
    }
    let wants_notes = request.format == ResponseFormat::Html || request.query_param("notes").is_some();
    if !wants_notes {
        report.remove_notes();
    }
    let totals = report.totals();
    let read_errors: Vec<String> = report.unread.iter().map(ToString::to_string).collect();
    let is_unread = |log: &Path| {
        report.unread.iter().any(|error| matches!(error, AppError::Read { path, .. } if path == log))
    };
    let read: Vec<PathBuf> =
        found.iter().map(|log| log.path.clone()).filter(|path| !is_unread(path)).collect();
    let mut logs: Vec<_> = read
        .iter()
        .map(|path| (LogOwner::of(path).agent, path.to_string_lossy().into_owned(), report.take(path)))
        .collect();
    // The session's own log comes first.
    logs.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let is_small = found.iter().map(|log| log.size).sum::<u64>() <= MAX_PLANNED_BYTES;
    // A session is repaired with all of its sub-agents.
    let plan = if is_small && read_errors.is_empty() {
        match repair_plan(state, file.clone()) {
            Err(EditError::NothingToDo(_)) => Some(RepairPlan::default()),
            Err(EditError::App(error)) => return Err(error.into()),
            Err(error) => {
                return Err(PageError::failed("The repair could not be planned").with_hint(error.to_string()));
            }
            Ok(plan) => Some(plan),
        }
    } else {
        None
    };
    let title = state.app.title_of(file);
    let page = CheckPage {
        id,
        title: title.as_deref().unwrap_or(id),
        logs: &logs,
        read_errors: &read_errors,
        plan: plan.as_ref(),
    };
    match request.format {
        ResponseFormat::Json => {
            let all = logs.iter().flat_map(|(_, path, found)| found.iter().map(move |one| (path, one)));
            let findings = all.map(|(path, finding)| FindingObject::new(finding, path));
            PageResponse::json_lines_and_errors(findings, &read_errors)
        }
        ResponseFormat::Markdown => Ok(PageResponse::Markdown(markdown(&totals, &logs, &read_errors))),
        ResponseFormat::Html => {
            let name = format!("Health check · {}", page.title);
            let frame = PageFrame {
                title: &name,
                tab: ViewerTab::None,
                class: "lists",
                scripts: &["lists.js"],
                settings: state.settings,
            };
            Ok(super::list_page(&frame, &threadline_html::check(&page)))
        }
    }
}

/// Plans `edit repair`, and checks that it would be written. Writes nothing.
fn repair_plan(state: &ServerState, file: SessionFile) -> Result<RepairPlan, EditError> {
    let session = state.app.open_for_edit(file)?;
    // The default of `edit repair`, so that both name the same changes.
    let repairs = session.find_repairs(EditTarget::NewSession)?;
    let planned = repairs.plan()?;
    let refusal = match planned.check() {
        Ok(()) => Vec::new(),
        Err(error @ EditError::NothingToDo(_)) => return Err(error),
        Err(EditError::Unsound { reasons }) => {
            std::iter::once("the result would not be sound".to_owned()).chain(reasons).collect()
        }
        Err(error) => vec![error.to_string()],
    };
    let own = planned.plan().changes_by_reason();
    let steps = own.iter().map(step).chain(planned.plan().side_notes().iter().cloned()).collect();
    Ok(RepairPlan { steps, refusal })
}

/// Maximum number of line numbers listed per step.
const MAX_LINE_NUMBERS: usize = 12;

/// Describes changes of one kind: `line 3 removed: duplicate of line 2`, `2 lines changed (4, 7): uuid
/// added`.
fn step(group: &ChangeGroup) -> String {
    let done = match group.kind {
        ChangeKind::Removed => "removed",
        ChangeKind::Changed => "changed",
        ChangeKind::Added => "added",
    };
    let lines = &group.line_nos;
    let named: Vec<String> = lines.iter().take(MAX_LINE_NUMBERS).map(ToString::to_string).collect();
    let more = if lines.len() > MAX_LINE_NUMBERS { ", …" } else { "" };
    let subject = match &named[..] {
        [only] if group.count == 1 => format!("line {only} {done}"),
        [] => format!("{} {done}", plural(group.count as u64, "line")),
        named => format!("{} lines {done} ({}{more})", group.count, named.join(", ")),
    };
    format!("{subject}: {}", group.why)
}

fn markdown(totals: &str, logs: &[(Option<String>, String, Vec<Finding>)], read_errors: &[String]) -> String {
    let mut out = format!("# Health check\n\n{} checked, {totals}\n", plural(logs.len() as u64, "log"));
    for error in read_errors {
        let _ = write!(out, "\n{error}\n");
    }
    for (_, path, findings) in logs.iter().filter(|(_, _, findings)| !findings.is_empty()) {
        let _ = write!(out, "\n## `{path}`\n\n");
        for finding in findings {
            let line = finding.at.map_or(String::new(), |at| format!("line {}: ", at.line_no));
            let (name, severity) = (finding.code.name(), finding.severity.name());
            let message = finding.message.replace('`', "'");
            let _ =
                writeln!(out, "- {line}{severity} {name}: `{message}`. Repair: {}", finding.code.repair());
        }
    }
    out
}
