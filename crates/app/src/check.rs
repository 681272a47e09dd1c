//! Health checks of sessions: their lines, their sub-agents, and their place in a home.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use rayon::prelude::*;
use threadline_edit::REPAIRED_CODES;
use threadline_entry::{Code, Entry, Finding, Kind, Position, Severity, StringRole, visit_strings};
use threadline_secret::Rules;
use threadline_session::Session;
use threadline_store::{SessionFile, agent_id};
use threadline_view::humanize::plural;

use crate::config::App;
use crate::error::AppError;
use crate::list::SessionSummary;
use crate::load::{logs_below, read_session};
use crate::session_secrets::{SecretPlaces, SessionSecrets};

/// Findings of a check, by file.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// The findings with the file that each is about, ordered by file.
    pub findings: Vec<(Arc<Path>, Finding)>,
    /// Number of logs that were checked.
    pub n_logs: usize,
    /// The errors of files that could not be read.
    pub unread: Vec<AppError>,
}

/// The findings with one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSummary {
    /// The code.
    pub code: Code,
    /// The highest severity of its findings.
    pub severity: Severity,
    /// The number of findings.
    pub findings: usize,
    /// The number of sessions with such a finding.
    pub sessions: usize,
}

impl CheckReport {
    /// Returns the findings by code: errors first, then warnings and notes, each most frequent first.
    pub fn by_code(&self) -> Vec<CodeSummary> {
        let mut codes: Vec<(CodeSummary, HashSet<PathBuf>)> = Vec::new();
        for (path, finding) in &self.findings {
            let known = codes.iter().position(|(summary, _)| summary.code == finding.code);
            let at = known.unwrap_or_else(|| {
                let Finding { code, severity, .. } = *finding;
                codes.push((CodeSummary { code, severity, findings: 0, sessions: 0 }, HashSet::new()));
                codes.len() - 1
            });
            let (summary, sessions) = &mut codes[at];
            summary.severity = summary.severity.max(finding.severity);
            summary.findings += 1;
            sessions.insert(LogOwner::of(path).log);
        }
        let counted = |(summary, sessions): (CodeSummary, HashSet<PathBuf>)| CodeSummary {
            sessions: sessions.len(),
            ..summary
        };
        let mut codes: Vec<CodeSummary> = codes.into_iter().map(counted).collect();
        codes
            .sort_by_key(|summary| (Reverse(summary.severity), Reverse(summary.findings), summary.code.id()));
        codes
    }

    /// Returns the number of problems: findings that are not notes.
    pub fn n_problems(&self) -> usize {
        self.findings.iter().filter(|(_, finding)| finding.severity.is_problem()).count()
    }

    /// Removes the notes, which no front end shows unless requested. Returns their number.
    pub fn remove_notes(&mut self) -> usize {
        let n_findings = self.findings.len();
        self.findings.retain(|(_, finding)| finding.severity.is_problem());
        n_findings - self.findings.len()
    }

    /// Returns the totals in words: "no problems found", "3 problems", "3 problems, 2 notes".
    pub fn totals(&self) -> String {
        let n_problems = self.n_problems();
        let problems = match n_problems {
            0 => "no problems found".to_owned(),
            n => plural(n as u64, "problem"),
        };
        match self.findings.len() - n_problems {
            0 => problems,
            n => format!("{problems}, {}", plural(n as u64, "note")),
        }
    }

    /// Returns the number of problems that `edit repair` fixes, and the logs of the sessions that have one.
    pub fn repairable(&self) -> (usize, HashSet<PathBuf>) {
        let is_repaired =
            |finding: &Finding| finding.severity.is_problem() && REPAIRED_CODES.contains(&finding.code);
        let repaired = || self.findings.iter().filter(|(_, finding)| is_repaired(finding));
        let sessions: HashSet<PathBuf> = repaired().map(|(path, _)| LogOwner::of(path).log).collect();
        (repaired().count(), sessions)
    }

    /// Removes and returns the findings about one file.
    pub fn take(&mut self, path: &Path) -> Vec<Finding> {
        self.findings.extract_if(.., |(about, _)| **about == *path).map(|(_, finding)| finding).collect()
    }
}

/// The logs and sessions to check.
#[derive(Debug, Default)]
pub struct CheckTargets {
    /// The logs to check line by line.
    pub logs: Vec<PathBuf>,
    /// Sessions of a home; their location in it and their backups are checked, too.
    placed: Vec<SessionFile>,
    /// Findings about the homes themselves.
    findings: Vec<(Arc<Path>, Finding)>,
    unread: Vec<AppError>,
    secrets: Arc<SessionSecrets>,
}

impl App {
    /// Selects a session of a home with its sub-agents.
    pub fn session_to_check(&self, file: SessionFile) -> CheckTargets {
        let mut targets = self.no_check_targets();
        targets.add_logs(&file);
        targets.placed.push(file);
        targets
    }

    fn no_check_targets(&self) -> CheckTargets {
        CheckTargets { secrets: Arc::clone(self.config().mask.finder()), ..CheckTargets::default() }
    }

    /// Returns the sessions, files and folders to check, by name. If `named` is empty, returns all sessions
    /// and includes findings about their homes.
    ///
    /// # Errors
    ///
    /// If a name matches no session or several, or if a named folder cannot be read.
    pub fn check_targets(&self, named: &[String], now: SystemTime) -> Result<CheckTargets, AppError> {
        let mut targets = self.no_check_targets();
        for name in named {
            if Path::new(name).is_dir() {
                targets.logs.extend(logs_below(Path::new(name))?);
                continue;
            }
            let file = self.find(name)?;
            targets.add_logs(&file);
            // A log that is named by its path may be a copy, outside of any home.
            if !Path::new(name).exists() {
                targets.placed.push(file);
            }
        }
        if named.is_empty() {
            let sessions = self.store().sessions();
            targets.unread.extend(sessions.errors.into_iter().map(AppError::from));
            sessions.found.iter().for_each(|file| targets.add_logs(file));
            targets.placed = sessions.found;
            let around = self.store().audit(now);
            targets.unread.extend(around.errors.into_iter().map(AppError::from));
            targets.findings = around.found.into_iter().map(|(path, one)| (path.into(), one)).collect();
        }
        Ok(targets)
    }
}

impl CheckTargets {
    /// Adds the log of a session and those of its sub-agents.
    fn add_logs(&mut self, file: &SessionFile) {
        let agents = file.agents();
        self.logs.push(file.path.clone());
        self.logs.extend(agents.found.into_iter().map(|agent| agent.path));
        self.unread.extend(agents.errors.into_iter().map(AppError::from));
    }

    /// Checks all targets in parallel. `progress` is called once per log.
    pub fn check(self, progress: &(dyn Fn() + Sync)) -> CheckReport {
        let Self { logs, placed, mut findings, mut unread, secrets } = self;
        for file in &placed {
            match file.audit() {
                Ok(found) => {
                    let path: Arc<Path> = file.path.as_path().into();
                    findings.extend(found.into_iter().map(|one| (Arc::clone(&path), one)));
                }
                Err(error) => unread.push(error.into()),
            }
        }
        // The logs of a session share a cache.
        let mut sessions: BTreeMap<PathBuf, Vec<&PathBuf>> = BTreeMap::new();
        for log in &logs {
            sessions.entry(LogOwner::of(log).log).or_default().push(log);
        }
        let check = |(session, logs): (&PathBuf, &Vec<&PathBuf>)| {
            let mut lines = secrets.lines(&RULES, session);
            let check = |path: &&PathBuf| {
                let found = check_log(path, &mut lines);
                progress();
                found.map(|found| (Arc::<Path>::from(path.as_path()), found))
            };
            let checked: Vec<_> = logs.iter().map(check).collect();
            lines.save();
            checked
        };
        let checked: Vec<_> = sessions.par_iter().map(check).collect();
        for result in checked.into_iter().flatten() {
            match result {
                Ok((path, found)) => findings.extend(found.into_iter().map(|one| (Arc::clone(&path), one))),
                Err(error) => unread.push(error),
            }
        }
        findings.sort_by(|(a, _), (b, _)| a.cmp(b));
        CheckReport { findings, n_logs: logs.len(), unread }
    }
}

/// Returns the findings in the lines of one log.
///
/// # Errors
///
/// If the file cannot be read.
fn check_log(path: &Path, secrets: &mut SecretPlaces) -> Result<Vec<Finding>, AppError> {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let session = read_session(path, &id)?;
    let lines = secrets.of_log(&RULES, path).map_err(AppError::read(path))?;
    let has_secrets = |at: Position| lines.binary_search_by_key(&at.line_no, |at| at.line_no).is_ok();
    Ok(findings_of(&session, has_secrets))
}

/// Returns the findings about a session and the secrets in it, in file order.
pub(crate) fn all_findings(session: &Session) -> Vec<Finding> {
    findings_of(session, |_| true)
}

/// Returns the findings about a session and the secrets in some of its lines, in file order.
fn findings_of(session: &Session, may_have_secrets: impl Fn(Position) -> bool) -> Vec<Finding> {
    let mut findings = session.findings().to_vec();
    for entry in session.entries().iter().filter(|entry| may_have_secrets(entry.at())) {
        let secret = |what: &str| Finding::new(Code::Secret, entry.at(), format!("{what} in plain text"));
        findings.extend(secrets_in(entry).into_iter().map(secret));
    }
    findings.sort_by_key(|finding| (finding.at.map(|at| at.byte_offset), finding.code));
    findings
}

static RULES: LazyLock<Rules> = LazyLock::new(Rules::new);

/// Returns the kinds of secrets in a line, each once. Ids and opaque data, such as signatures and images, are
/// skipped.
fn secrets_in(entry: &Entry) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let mut add = |key: &str, text: &str| {
        for found in RULES.find_in_member(key, text) {
            if !kinds.contains(&found.description) {
                kinds.push(found.description);
            }
        }
    };
    // A line that is not JSON is searched as raw text.
    if entry.kind() == Kind::Bad {
        add("", entry.text());
    } else {
        visit_strings(entry.text(), |text| {
            if !matches!(text.role, StringRole::Id | StringRole::Opaque) {
                add(text.key, &text.decoded());
            }
        });
    }
    kinds
}

/// The session and the sub-agent that a log belongs to, according to its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOwner {
    /// The log of the session: for a sub-agent's log in the folder of a session, that session's; else the log
    /// itself.
    pub log: PathBuf,
    /// The id of the sub-agent; `None` for the log of a session.
    pub agent: Option<String>,
}

impl LogOwner {
    /// Returns the owner of the log at `path`.
    pub fn of(path: &Path) -> Self {
        let subagents = path.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "subagents"));
        let folder = subagents.and_then(Path::parent);
        let log = folder
            .map(|folder| folder.with_added_extension("jsonl"))
            .filter(|log| log.is_file())
            .unwrap_or_else(|| path.to_owned());
        Self { log, agent: agent_id(path).map(str::to_owned) }
    }
}

impl App {
    /// Returns the title of a session, with secrets masked if the configuration requires it; `None` if it has
    /// none or cannot be read.
    pub fn title_of(&self, file: SessionFile) -> Option<String> {
        let title = SessionSummary::of(file).ok()?.title()?;
        Some(self.masked(&title).into_owned())
    }
}

#[cfg(test)]
mod tests;
