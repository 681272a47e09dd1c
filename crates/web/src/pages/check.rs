//! Check: what is wrong with a session, and what would mend it.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use threadline_entry::{Finding, Lines, Severity, parse_line};
use threadline_html::{CheckPage, Frame, Tab};
use threadline_session::Session;
use threadline_store::glance;
use threadline_view::wire::FindingObject;

use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::state::State;

/// Longer logs are not read into memory for a page.
const MOST: u64 = 256 << 20;

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let id = ask.part(0);
    let file = state.store.session(id).ok_or_else(|| {
        Problem::not_found("There is no such session").hint("It was deleted or moved, or its id is another.")
    })?;
    let mut logs = Vec::new();
    for log in file.logs().found {
        if log.size > MOST {
            return Err(Problem::failed("This session is too long to be checked on a page")
                .hint(format!("`threadline check {id}` checks it in a terminal.")));
        }
        let mut found = findings(&log.path)?;
        if log.path == file.path {
            found.extend(file.audit()?);
        }
        let agent = log.agent().map(|agent| agent.id);
        logs.push((agent, log.path.to_string_lossy().into_owned(), found));
    }
    let title = glance(&file).ok().and_then(|glance| glance.heading().map(str::to_owned));
    let page = CheckPage { id, title: title.as_deref().unwrap_or(id), logs: &logs, plan: None };
    match ask.form {
        Form::Json => {
            let all = logs.iter().flat_map(|(_, path, found)| found.iter().map(move |one| (path, one)));
            Answer::json(all.map(|(path, finding)| FindingObject::new(finding, path)))
        }
        Form::Markdown => Ok(Answer::Markdown(markdown(&logs))),
        Form::Html => {
            let name = format!("What is wrong · {}", page.title);
            let frame = Frame { title: &name, tab: Tab::None, class: "lists", scripts: &["lists.js"] };
            Ok(super::list(&frame, &threadline_html::check(&page)))
        }
    }
}

fn findings(path: &Path) -> Result<Vec<Finding>, Problem> {
    let mut session = Session::with_id(path.file_stem().unwrap_or_default().to_string_lossy());
    let mut lines = Lines::new(File::open(path)?);
    while let Some(line) = lines.next()? {
        parse_line(&line, |entry, findings| session.push(entry, findings));
    }
    Ok(session.findings())
}

fn markdown(logs: &[(Option<String>, String, Vec<Finding>)]) -> String {
    let mut out = "# What is wrong\n".to_owned();
    for (_, path, findings) in logs {
        let _ = write!(out, "\n## `{path}`\n\n");
        let wrong: Vec<&Finding> =
            findings.iter().filter(|finding| finding.severity > Severity::Note).collect();
        if wrong.is_empty() {
            out.push_str("Nothing.\n");
        }
        for finding in wrong {
            let line = finding.at.map_or(String::new(), |at| format!("line {}: ", at.line_no));
            let (name, severity) = (finding.code.name(), finding.severity.name());
            let message = finding.message.replace('`', "'");
            let _ =
                writeln!(out, "- {line}{severity} {name}: `{message}`. Repair: {}", finding.code.repair());
        }
    }
    out
}
