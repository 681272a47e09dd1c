//! `check_session`: the problems of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadline_app::LogOwner;
use threadline_view::humanize::plural;

use crate::answer::AnswerEnd;
use crate::budget::{AnswerPage, shorten};
use crate::call::PageRequestState;
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::{HistoryTool, ToolAnswer};

pub(crate) struct CheckSession;

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckArguments {
    /// The id, a unique beginning of it, the title, or `last`.
    session: String,
    /// Also returns notes: harmless findings.
    #[serde(default)]
    notes: Option<bool>,
    /// Approximate size of the answer, from 400 to 50000. Default: 6000.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// The next_cursor of the previous page.
    #[serde(default)]
    #[expect(dead_code, reason = "read before the arguments are parsed")]
    cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CheckAnswer {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// The number of logs, with those of sub-agents.
    logs: u64,
    /// The number of findings on all pages.
    total: u64,
    /// The number of problems that `threadline edit repair` fixes.
    repairable: u64,
    items: Vec<CheckFinding>,
    #[serde(flatten)]
    end: AnswerEnd,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CheckFinding {
    /// The session and the line, for read_session.
    source: String,
    /// error, warning or note.
    severity: &'static str,
    code: &'static str,
    name: &'static str,
    message: String,
    repair: &'static str,
}

impl HistoryTool for CheckSession {
    const NAME: &'static str = "check_session";
    const TITLE: &'static str = "Check a session";
    const DESCRIPTION: &'static str = "Checks the log of a session for problems, such as lines that are not \
        valid, missing parents, calls without results, and secrets.";
    type Arguments = CheckArguments;
    type Answer = CheckAnswer;

    fn run(
        history: &History,
        arguments: CheckArguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<CheckAnswer>, HistoryError> {
        let (file, _) = history.find(&arguments.session)?;
        let summary = history.summary(file.clone())?;
        let mut report = history.app.session_to_check(file.clone()).check(&|| ());
        let n_notes = if arguments.notes == Some(true) { 0 } else { report.remove_notes() };
        report.findings.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
        let (repairable, _) = report.repairable();
        let mut page = AnswerPage::new(arguments.max_tokens);
        let skipped = usize::try_from(request.start.item).unwrap_or(usize::MAX);
        for (index, (path, finding)) in report.findings.iter().enumerate().skip(skipped) {
            let line = finding.at.map(|at| format!("m{}", at.line_no));
            let anchor = match (LogOwner::of(path).agent, line) {
                (Some(agent), Some(line)) => format!("#{}", threadline_view::agent_anchor(&agent, &line)),
                (None, Some(line)) => format!("#{line}"),
                _ => String::new(),
            };
            let goes_on = page.push_shortened(index as u64, |limit| {
                let item = CheckFinding {
                    source: format!("{}{anchor}", file.id),
                    severity: finding.severity.name(),
                    code: finding.code.id(),
                    name: finding.code.name(),
                    message: shorten(&one_line(&finding.message), limit.min(500)).0,
                    repair: finding.code.repair(),
                };
                let text = format!(
                    "- {} · {} {} {}: {}\n",
                    item.source, item.severity, item.code, item.name, item.message
                );
                (item, text)
            });
            if !goes_on {
                break;
            }
        }
        let (items, mut text, next) = page.finish();
        let mut notes: Vec<String> = report.unread.iter().map(ToString::to_string).collect();
        if repairable > 0 {
            notes.push(format!("`threadline edit repair {}` fixes {repairable} of them", file.id));
        }
        if n_notes > 0 {
            notes.push(format!("{} not returned; pass notes: true", plural(n_notes as u64, "harmless note")));
        }
        let end = AnswerEnd::new(request, next, notes, &mut text);
        let title = summary.title().map(|title| shorten(&one_line(&title), 200).0);
        let project = summary.project().map(str::to_owned);
        let heading = format!(
            "# {}\n{} · {} · {}\n\n",
            title.as_deref().unwrap_or("untitled"),
            file.id,
            one_line(project.as_deref().unwrap_or("–")),
            report.totals()
        );
        let data = CheckAnswer {
            session: file.id.to_string(),
            title,
            project,
            logs: report.n_logs as u64,
            total: report.findings.len() as u64,
            repairable: repairable as u64,
            items,
            end,
        };
        Ok(ToolAnswer { data, text: heading + &text })
    }
}
