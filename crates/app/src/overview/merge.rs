//! Merges the activity of all logs. A call, prompt, compaction or pause that several logs contain, since a
//! session was resumed or forked, is included once, with the log that owns the line: the one that owns its
//! model calls, too.

use std::collections::hash_map::Entry;
use std::path::Path;

use foldhash::{HashMap, HashSet};
use threadline_entry::{Millis, project_directory};
use threadline_session::{CallActivity, LineMark, LogActivity, LogEnding, ToolOutcome};
use threadline_store::SessionLogs;
use threadline_usage::{CallLedger, ModelCalls, PriceBook, UsageTotals};

use super::SessionTitle;
use super::facts::{
    CallFact, LogFact, MarkFact, OverviewFacts, PeriodFact, QUARTER, SessionFact, UNDATED, UsageFact,
};
use crate::time::millis;

/// The activity of a log, with its index among the logs of all sessions.
pub(super) struct MergedLog {
    pub(super) index: usize,
    pub(super) activity: LogActivity,
}

pub(super) fn merge(
    sessions: &[SessionLogs],
    titles: &[Option<SessionTitle>],
    mut logs: Vec<MergedLog>,
    ledger: CallLedger,
    prices: &PriceBook,
) -> OverviewFacts {
    let mut merger = Merger::default();
    merger.add_sessions(sessions, titles);
    let model_calls = ledger.finish();
    let ranks = model_calls.log_ranks();
    let paths: Vec<&Path> = sessions.iter().flat_map(SessionLogs::logs).map(|log| &*log.path).collect();
    logs.sort_by_cached_key(|log| {
        let rank = ranks.get(&*paths[log.index].to_string_lossy());
        (merger.facts.logs[log.index].agent.is_some(), rank.copied(), log.index)
    });
    for log in &logs {
        merger.add_log(log);
    }
    // The log of a sub-agent records a call better than the progress lines of its session.
    for log in &logs {
        merger.add_calls(log, true);
    }
    drop(logs);
    merger.add_usage(&model_calls, prices);
    let mut facts = merger.facts;
    facts.calls.sort_by_key(|call| (call.at, call.log, call.line));
    facts.prompts.sort_by_key(|mark| (mark.at, mark.log, mark.line));
    facts.compactions.sort_by_key(|mark| (mark.at, mark.log, mark.line));
    facts.periods = joined_periods(facts.periods);
    facts
}

/// Joins the pauses of each session that follow each other in the same state, and sorts them by time.
fn joined_periods(mut pauses: Vec<PeriodFact>) -> Vec<PeriodFact> {
    pauses.sort_by_key(|pause| (pause.session, pause.start, pause.end));
    let mut periods: Vec<PeriodFact> = Vec::new();
    for pause in pauses {
        match periods.last_mut() {
            Some(last)
                if (last.session, last.state, last.end) == (pause.session, pause.state, pause.start) =>
            {
                last.end = pause.end;
            }
            _ => periods.push(pause),
        }
    }
    periods.sort_by_key(|period| (period.start, period.end, period.session));
    periods
}

#[derive(Default)]
struct Merger {
    facts: OverviewFacts,
    name_ids: HashMap<String, u32>,
    session_ids: HashMap<String, u32>,
    /// The prompts and compactions that are included.
    keys: HashSet<u64>,
    /// The calls that are included.
    calls: HashMap<u64, usize>,
    /// The lines and times after which a pause is included.
    pauses: HashSet<(u64, Millis)>,
}

impl Merger {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(id) = self.name_ids.get(name) {
            return *id;
        }
        let id = self.facts.names.len() as u32;
        self.facts.names.push(name.to_owned());
        self.name_ids.insert(name.to_owned(), id);
        id
    }

    /// Adds the sessions and their logs, in the order of [`SessionLogs::logs`].
    fn add_sessions(&mut self, sessions: &[SessionLogs], titles: &[Option<SessionTitle>]) {
        for (session, title) in sessions.iter().zip(titles) {
            let index = self.add_session(session, title.as_ref());
            for log in session.logs() {
                let agent = log.agent().map(|agent| agent.id);
                self.facts.logs.push(LogFact { session: index, agent });
            }
        }
    }

    /// Adds a session. Of several files with one id, the one last active is kept, as in lists.
    fn add_session(&mut self, session: &SessionLogs, title: Option<&SessionTitle>) -> u32 {
        let file = &session.file;
        let cwd = title.and_then(|title| title.cwd.as_deref());
        let project = cwd.or(file.folder.as_deref()).map(project_directory).unwrap_or_default();
        let fact = SessionFact {
            id: file.id.to_string(),
            title: title.and_then(|title| title.title.clone()),
            project: self.name(project),
            cwd: cwd.map(|cwd| self.name(cwd)),
            branch: title.and_then(|title| title.branch.as_deref()).map(|branch| self.name(branch)),
            started: title.and_then(|title| title.started),
            last_active: title.map_or(0, |title| title.last_active),
            modified: session.logs().map(|log| millis(log.modified)).max().unwrap_or(0),
            last_message: None,
            ending: LogEnding::Empty,
        };
        match self.session_ids.entry(fact.id.clone()) {
            Entry::Vacant(free) => {
                let index = self.facts.sessions.len() as u32;
                free.insert(index);
                self.facts.sessions.push(fact);
                index
            }
            Entry::Occupied(known) => {
                let kept = &mut self.facts.sessions[*known.get() as usize];
                let rank = |fact: &SessionFact| (fact.title.is_some(), fact.last_active, fact.modified);
                if rank(&fact) > rank(kept) {
                    *kept = fact;
                }
                *known.get()
            }
        }
    }

    fn add_log(&mut self, log: &MergedLog) {
        let index = log.index as u32;
        let LogFact { session, agent } = self.facts.logs[log.index].clone();
        self.add_calls(log, false);
        let mut marks = |marks: &[LineMark]| -> Vec<MarkFact> {
            let new = marks.iter().filter(|mark| self.keys.insert(mark.key));
            let fact =
                |mark: &LineMark| MarkFact { at: mark.at.unwrap_or(UNDATED), log: index, line: mark.line };
            new.map(fact).collect()
        };
        let (prompts, compactions) = (marks(&log.activity.prompts), marks(&log.activity.compactions));
        self.facts.prompts.extend(prompts);
        self.facts.compactions.extend(compactions);
        for pause in &log.activity.pauses {
            if self.pauses.insert((pause.key, pause.start)) {
                let (start, end, state) = (pause.start, pause.end, pause.state);
                self.facts.periods.push(PeriodFact { start, end, session, state });
            }
        }
        let last_message = &mut self.facts.sessions[session as usize].last_message;
        *last_message = log.activity.last_at.max(*last_message);
        if agent.is_none() {
            let ending = match log.activity.ending {
                LogEnding::Called(tool) => LogEnding::Called(self.copied_name(log, tool)),
                LogEnding::Asked(tool) => LogEnding::Asked(self.copied_name(log, tool)),
                ending => ending,
            };
            self.facts.sessions[session as usize].ending = ending;
        }
    }

    /// Adds the calls that are not included yet: those of progress lines, or all others.
    fn add_calls(&mut self, log: &MergedLog, of_progress: bool) {
        let mut ids: HashMap<u32, u32> = HashMap::default();
        for call in log.activity.calls.iter().filter(|call| call.is_progress == of_progress) {
            match self.calls.entry(call.key) {
                // A copy may have been made before the call ended.
                Entry::Occupied(known) => {
                    let known = *known.get();
                    if self.facts.calls[known].outcome == ToolOutcome::Missing {
                        let shell_edits = self.copied_shell_edits(log, call);
                        let known = &mut self.facts.calls[known];
                        (known.outcome, known.duration) = (call.outcome, call.duration);
                        known.shell_edits = shell_edits;
                    }
                    continue;
                }
                Entry::Vacant(free) => free.insert(self.facts.calls.len()),
            };
            let mut id = |name: u32| *ids.entry(name).or_insert_with(|| self.copied_name(log, name));
            let (tool, detail) = (id(call.tool), call.detail.map(&mut id));
            let shell_edits = self.copied_shell_edits(log, call);
            self.facts.calls.push(CallFact {
                at: call.at.unwrap_or(UNDATED),
                log: log.index as u32,
                line: call.line,
                tool,
                detail,
                duration: call.duration,
                outcome: call.outcome,
                shell_edits,
            });
        }
    }

    /// Copies the paths of the files that the command of a call changed.
    fn copied_shell_edits(&mut self, log: &MergedLog, call: &CallActivity) -> (u32, u32) {
        let (first, count) = (call.shell_edits.0 as usize, call.shell_edits.1 as usize);
        let paths = log.activity.shell_edits.get(first..first.saturating_add(count)).unwrap_or_default();
        let copied = self.facts.shell_edits.len() as u32;
        for path in paths {
            let path = self.copied_name(log, *path);
            self.facts.shell_edits.push(path);
        }
        (copied, paths.len() as u32)
    }

    /// Returns the index of a name of a log.
    fn copied_name(&mut self, log: &MergedLog, name: u32) -> u32 {
        self.name(log.activity.names.get(name as usize).map_or("", |name| name))
    }

    /// Adds up the model calls by session, model and quarter of an hour.
    fn add_usage(&mut self, calls: &ModelCalls, prices: &PriceBook) {
        let mut rows: HashMap<(Millis, u32, u32, u32, bool), UsageTotals> = HashMap::default();
        // Calls of a session follow each other, and most use one model.
        let mut last_session: Option<(&str, u32)> = None;
        let mut last_model: Option<(&str, u32)> = None;
        let mut last_branch: Option<(&str, u32)> = None;
        for call in calls.iter() {
            let session = match last_session {
                Some((id, session)) if id == call.session => session,
                _ => {
                    let session = match self.session_ids.get(call.session) {
                        Some(session) => *session,
                        None => self.add_unlisted(call.session, call.project),
                    };
                    // The project of a session with calls is that of its calls.
                    self.facts.sessions[session as usize].project = self.name(call.project);
                    session
                }
            };
            let model = match last_model {
                Some((name, model)) if name == call.model => model,
                _ => self.name(call.model),
            };
            let branch = match last_branch {
                Some((name, branch)) if name == call.branch => branch,
                _ => self.name(call.branch),
            };
            (last_session, last_model) = (Some((call.session, session)), Some((call.model, model)));
            last_branch = Some((call.branch, branch));
            let at = call.at.map_or(UNDATED, |at| at.div_euclid(QUARTER) * QUARTER);
            let row = rows.entry((at, session, model, branch, call.agent.is_some())).or_default();
            *row += &UsageTotals::of(&call, prices);
        }
        let mut usage: Vec<UsageFact> = rows
            .into_iter()
            .map(|((at, session, model, branch, is_agent), totals)| UsageFact {
                at,
                session,
                model,
                branch,
                is_agent,
                totals,
            })
            .collect();
        usage.sort_by_key(|fact| (fact.at, fact.session, fact.model, fact.branch, fact.is_agent));
        self.facts.usage = usage;
    }

    /// Adds a session that has calls, but no log of its own.
    fn add_unlisted(&mut self, id: &str, project: &str) -> u32 {
        let index = self.facts.sessions.len() as u32;
        let project = self.name(project);
        self.session_ids.insert(id.to_owned(), index);
        self.facts.sessions.push(SessionFact {
            id: id.to_owned(),
            title: None,
            project,
            cwd: None,
            branch: None,
            started: None,
            last_active: 0,
            modified: 0,
            last_message: None,
            ending: LogEnding::Empty,
        });
        index
    }
}
