//! The branches, worktrees and last sessions of a project.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::HashMap;
use threadline_session::ActivityState;
use threadline_view::{BranchFigures, ProjectDetails, TopSession};

use super::facts::{OverviewFacts, SessionFact, UNDATED};
use super::period::OverviewRange;
use crate::config::App;

impl OverviewFacts {
    /// Returns details of a project in a period. The facts must be those of the project: see
    /// [`OverviewFacts::of_project`].
    pub fn project_details(&self, project: &str, range: &OverviewRange, app: &App) -> ProjectDetails {
        let range = &range.range;
        let project = self.name_shown_as(project, app);
        let shown = |name: u32| app.masked(self.name(name)).into_owned();
        let mut branches: BTreeMap<u32, BranchFigures> = BTreeMap::new();
        let mut worktrees: HashMap<u32, u64> = HashMap::default();
        for session in self.listed_sessions(range) {
            if let Some(branch) = session.branch {
                branches.entry(branch).or_default().sessions += 1;
            }
            if let Some(cwd) = session.cwd.filter(|cwd| self.name(*cwd) != project) {
                *worktrees.entry(cwd).or_default() += 1;
            }
        }
        let dated = |at: i64| (at != UNDATED).then_some(at);
        for fact in self.usage.iter().filter(|fact| range.contains(dated(fact.at))) {
            branches.entry(fact.branch).or_default().usage += &fact.totals;
        }
        let mut branches: Vec<BranchFigures> = branches
            .into_iter()
            .map(|(branch, figures)| BranchFigures { branch: shown(branch), ..figures })
            .collect();
        branches.sort_by(|a, b| {
            let by_cost = b.usage.cost.cmp(&a.usage.cost);
            by_cost.then(b.sessions.cmp(&a.sessions)).then_with(|| a.branch.cmp(&b.branch))
        });
        let mut worktrees: Vec<(String, u64)> =
            worktrees.into_iter().map(|(cwd, sessions)| (shown(cwd), sessions)).collect();
        worktrees.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ProjectDetails { sessions: self.last_sessions(range, app), branches, worktrees }
    }

    /// Returns the last active sessions, with their figures in the period.
    fn last_sessions(&self, range: &crate::time::TimeRange, app: &App) -> Vec<TopSession> {
        let mut sessions: Vec<(u32, &SessionFact)> = (0..)
            .zip(&self.sessions)
            .filter(|(_, session)| session.title.is_some() && session.is_in(range))
            .collect();
        sessions.sort_by_key(|(_, session)| (Reverse(session.last_active), session.id.clone()));
        sessions.truncate(12);
        let places: HashMap<u32, usize> =
            sessions.iter().enumerate().map(|(place, (index, _))| (*index, place)).collect();
        let mut shown: Vec<TopSession> = sessions
            .iter()
            .map(|(_, session)| TopSession {
                id: session.id.clone(),
                title: app.masked(session.title.as_deref().unwrap_or(&session.id)).into_owned(),
                project: app.masked(self.name(session.project)).into_owned(),
                last_active: session.last_active,
                ..TopSession::default()
            })
            .collect();
        let dated = |at: i64| (at != UNDATED).then_some(at);
        for fact in self.usage.iter().filter(|fact| range.contains(dated(fact.at))) {
            if let Some(place) = places.get(&fact.session) {
                shown[*place].usage += &fact.totals;
            }
        }
        for mark in self.prompts.iter().filter(|mark| range.contains(dated(mark.at))) {
            if let Some(place) = places.get(&self.session_of(mark.log)) {
                shown[*place].prompts += 1;
            }
        }
        for call in self.calls.iter().filter(|call| range.contains(dated(call.at))) {
            if let Some(place) = places.get(&self.session_of(call.log)) {
                shown[*place].calls += 1;
            }
        }
        for period in self.periods.iter().filter(|period| period.state == ActivityState::Active) {
            if let Some(place) = places.get(&period.session) {
                let start = range.from.map_or(period.start, |from| period.start.max(from));
                let end = range.to.map_or(period.end, |to| period.end.min(to));
                shown[*place].active += (end - start).max(0);
            }
        }
        shown
    }
}
