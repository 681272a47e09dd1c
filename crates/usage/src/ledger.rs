//! The ledger: merges the calls of many logs and counts each call once.

use std::collections::hash_map::Entry;

use foldhash::HashMap;
use threadline_entry::{AgentKind, Millis, project_directory};

use crate::call_key::{CallKey, find_repeats};
use crate::calls::ModelCalls;
use crate::figures::TokenCounts;
use crate::model::model;
use crate::name_table::{NameId, NameTable};
use crate::reconcile::{CostAccount, CostAccountModel};
use crate::reply_line::LineOrigin;
use crate::scan::{
    COMPACTION, CallLine, CallRecord, CallRow, IS_FORK, REGIONAL, SETTLED, ScannedLog, ToolUse, UNDATED,
};
use crate::stored::CallSum;
use crate::window::LimitNotice;

/// Collects the scans of logs, in any order.
///
/// The result depends neither on the order nor on how often a log is added.
#[derive(Debug, Default)]
pub struct CallLedger {
    pub(crate) names: NameTable,
    files: Vec<LedgerLog>,
    /// One row per run of consecutive lines of a call; after folding, one per call.
    rows: Vec<CallRow>,
    /// The key of each row.
    keys: Vec<CallKey>,
    /// Sums of calls that no row describes.
    pub(crate) sums: Vec<CallSum>,
    tools: Vec<ToolUse>,
    /// The tools of calls that several logs contain, each with the log that contains it.
    shared_tools: Vec<(u32, ToolUse)>,
    records: Vec<CallRecord>,
    lines: Vec<CallLine>,
    limits: Vec<LimitNotice>,
    accounts: Vec<(NameId, CostAccount)>,
    n_broken: u64,
    n_torn: u64,
}

/// A log that contains calls.
#[derive(Debug)]
pub(crate) struct LedgerLog {
    pub(crate) path: Box<str>,
    pub(crate) session: NameId,
    pub(crate) agent: Option<(Box<str>, AgentKind)>,
    first_at: Option<Millis>,
    /// The other sessions that lines were copied from.
    origins: Box<[NameId]>,
    /// The position of the log among all: lines that several logs contain belong to the one with the lowest.
    pub(crate) rank: u32,
    cwd: Option<NameId>,
    folder: Option<NameId>,
    /// The project of the session; set once all logs are known.
    pub(crate) project: NameId,
}

/// A further run of lines of a call: in another log, which may own the call, or later in the same log.
#[derive(Clone, Copy, Debug)]
struct DuplicateRow {
    row: u32,
    file: u32,
    branch: NameId,
    owner: LineOrigin,
    is_fork: bool,
}

/// Marks a row that was merged into another.
const MERGED: u32 = u32::MAX;

impl CallLedger {
    /// Adds the scan of one log.
    pub fn add(&mut self, scanned: ScannedLog) {
        let ScannedLog { source, names, rows, .. } = scanned;
        let file = self.files.len() as u32;
        let session = source.session.as_deref().unwrap_or_default();
        let file_info = LedgerLog {
            session: self.names.id(session),
            agent: source.agent.map(|(id, kind)| (id.into(), kind)),
            first_at: scanned.first_at,
            origins: scanned.origins.iter().map(|origin| self.names.id(origin)).collect(),
            rank: 0,
            cwd: scanned.cwd.map(|cwd| self.names.id(&cwd)),
            folder: source.folder.map(|folder| self.names.id(&folder)),
            project: 0,
            path: source.path.into(),
        };
        if let Some(account) = scanned.account.filter(|_| file_info.agent.is_none()) {
            self.accounts.push((file_info.session, account));
        }
        self.files.push(file_info);
        self.limits.extend(scanned.limits);
        self.n_broken += scanned.n_broken;
        self.n_torn += u64::from(scanned.ends_in_incomplete_line);

        let ids: Vec<NameId> = names.iter().map(|name| self.names.id(name)).collect();
        let models: Vec<(NameId, u8)> = names
            .iter()
            .map(|name| {
                let model = model(name);
                (self.names.id(&model.name), if model.regional { REGIONAL } else { 0 })
            })
            .collect();
        let settled = |row: CallRow| {
            let (model, regional) = models[row.model as usize];
            CallRow { file, model, branch: ids[row.branch as usize], flags: row.flags | regional, ..row }
        };
        let first = self.rows.len() as u32;
        self.keys.extend(rows.iter().map(|(key, _)| *key));
        self.rows.extend(rows.into_iter().map(|(_, row)| settled(row)));
        self.tools.extend(scanned.tools.into_iter().map(|tool| ToolUse {
            row: first + tool.row,
            name: ids[tool.name as usize],
            ..tool
        }));
        self.records.extend(scanned.records.into_iter().map(|record| {
            let found = record.call.map(|(place, row)| (first + place, settled(row)));
            CallRecord { file, call: found, ..record }
        }));
        let lines = scanned.lines.into_iter();
        self.lines.extend(lines.map(|line| CallLine { row: first + line.row, file, ..line }));
    }

    /// Merges the rows of each call into one. Returns the rows that were merged into another.
    fn merge_rows(&mut self) -> Vec<DuplicateRow> {
        let keys = std::mem::take(&mut self.keys);
        let repeats = find_repeats(&keys);
        drop(keys);
        let mut rivals = Vec::with_capacity(repeats.len());
        for (first, again) in repeats {
            let row = self.rows[again as usize];
            self.rows[first as usize].merge(&row, &self.names);
            let CallRow { file, branch, owner_origin: owner, .. } = row;
            rivals.push((again, DuplicateRow { row: first, file, branch, owner, is_fork: row.has(IS_FORK) }));
        }
        self.drop_rows(&mut rivals);
        rivals.into_iter().map(|(_, rival)| rival).collect()
    }

    /// Removes the merged rows and updates all row indices.
    fn drop_rows(&mut self, rivals: &mut [(u32, DuplicateRow)]) {
        if rivals.is_empty() {
            return;
        }
        let mut places: Vec<u32> = vec![0; self.rows.len()];
        const SHARED: u32 = 1;
        for (row, rival) in rivals.iter() {
            places[rival.row as usize] = SHARED;
            places[*row as usize] = MERGED;
        }
        let shared = self.tools.iter().filter(|tool| places[tool.row as usize] != 0);
        self.shared_tools = shared.map(|tool| (self.rows[tool.row as usize].file, *tool)).collect();
        let (mut at, mut kept) = (0, 0);
        self.rows.retain(|_| {
            let keep = places[at] != MERGED;
            if keep {
                places[at] = kept;
                kept += 1;
            }
            at += 1;
            keep
        });
        for (row, rival) in rivals {
            rival.row = places[rival.row as usize];
            places[*row as usize] = rival.row;
        }
        let shared = self.shared_tools.iter_mut().map(|(_, tool)| tool);
        self.tools.iter_mut().chain(shared).for_each(|tool| tool.row = places[tool.row as usize]);
        for (place, _) in self.records.iter_mut().filter_map(|record| record.call.as_mut().ok()) {
            *place = places[*place as usize];
        }
        self.lines.iter_mut().for_each(|line| line.row = places[line.row as usize]);
    }

    /// Determines which log owns each call, after all logs were added.
    pub fn finish(mut self) -> ModelCalls {
        let rivals = self.merge_rows();
        let sessions = self.sessions();
        for file in &mut self.files {
            file.project = sessions.get(&file.session).map_or(0, |session| session.project);
        }
        self.rank_logs(&sessions);
        let order = |rival: &DuplicateRow| {
            let rank = self.files[rival.file as usize].rank;
            (rival.owner, rival.is_fork, rank)
        };
        let mut copies = Vec::with_capacity(rivals.len());
        for rival in &rivals {
            let row = &mut self.rows[rival.row as usize];
            let CallRow { file, branch, owner_origin: owner, .. } = *row;
            let holder = DuplicateRow { row: rival.row, file, branch, owner, is_fork: row.has(IS_FORK) };
            let loser = if order(rival) < order(&holder) {
                row.file = rival.file;
                row.branch = rival.branch;
                row.owner_origin = rival.owner;
                row.flags = (row.flags & !IS_FORK) | if rival.is_fork { IS_FORK } else { 0 };
                holder
            } else {
                *rival
            };
            // Separate runs of lines within one log are not copies.
            if loser.file != row.file {
                copies.push((loser.row, loser.file));
            }
        }
        self.settle_compactions(&sessions);
        // A tool call on several lines or in several logs is counted once.
        self.tools.sort_unstable();
        self.tools.dedup_by_key(|tool| (tool.row, tool.id));
        for (file, _) in &mut self.shared_tools {
            *file = self.files[*file as usize].session;
        }
        self.shared_tools.sort_unstable();
        self.shared_tools.dedup_by_key(|(session, tool)| (*session, tool.row, tool.id));
        self.limits.sort_unstable();
        self.limits.dedup();
        ModelCalls {
            names: self.names,
            files: self.files,
            rows: self.rows,
            sums: self.sums,
            copies,
            tools: self.tools,
            shared_tools: self.shared_tools,
            records: self.records,
            lines: self.lines,
            limits: self.limits,
            accounts: self.accounts,
            n_broken: self.n_broken,
            n_torn: self.n_torn,
        }
    }

    /// Gives the compactions of each session the model of the conversation, and the figures that Claude
    /// Code's own totals have besides the calls in the logs.
    ///
    /// Several compactions of a session share these figures; the last one gets them.
    fn settle_compactions(&mut self, sessions: &HashMap<NameId, SessionStart>) {
        let mut compactions: HashMap<NameId, Vec<u32>> = HashMap::default();
        for (row, place) in self.rows.iter().zip(0..).filter(|(row, _)| row.has(COMPACTION)) {
            compactions.entry(self.files[row.file as usize].session).or_default().push(place);
        }
        if compactions.is_empty() {
            return;
        }
        let mut logged: HashMap<(NameId, NameId), TokenCounts> = HashMap::default();
        let sums = self.sums.iter().map(|sum| &sum.row);
        for row in self.rows.iter().chain(sums).filter(|row| !row.has(COMPACTION)) {
            let session = self.files[row.file as usize].session;
            if compactions.contains_key(&session) {
                *logged.entry((session, row.model)).or_default() += &row.tokens;
            }
        }
        // The model of the conversation is the one that was used most.
        let mut models: HashMap<NameId, (u64, NameId)> = HashMap::default();
        for (&(session, model), tokens) in &logged {
            let order = |(total, model): (u64, NameId)| (total, self.names.get(model));
            let used = (tokens.total(), model);
            let most = models.entry(session).or_insert(used);
            if order(used) > order(*most) {
                *most = used;
            }
        }
        let mut agents: HashMap<NameId, usize> = HashMap::default();
        for file in self.files.iter().filter(|file| matches!(&file.agent, Some((_, AgentKind::Compaction)))) {
            *agents.entry(file.session).or_default() += 1;
        }
        let accounts: HashMap<NameId, &CostAccount> =
            self.accounts.iter().map(|(session, account)| (*session, account)).collect();
        for (session, mut places) in compactions {
            places.sort_by_key(|place| self.rows[*place as usize].at);
            let Some(&(_, model)) = models.get(&session) else { continue };
            // The log of an agent that compacts contains its call.
            let in_agents = agents.get(&session).copied().unwrap_or(0).min(places.len());
            let of_agents: Vec<u32> = places.drain(..in_agents).collect();
            let sizes = places.iter().map(|place| self.rows[*place as usize].tokens.cache_read);
            let before = sizes.fold(0, u64::saturating_add);
            let started = sessions.get(&session).and_then(|session| session.first_at);
            let rest = accounts.get(&session).and_then(|account| {
                let theirs = account.models.iter().find(|other| other.name == self.names.get(model))?;
                let ours = logged.get(&(session, model)).copied().unwrap_or_default();
                unlogged_tokens(account, theirs, ours, started, before)
            });
            let has_rest = rest.is_some();
            let mut figures = rest;
            for place in places.into_iter().rev() {
                let row = &mut self.rows[place as usize];
                row.model = model;
                row.tokens = figures.take().unwrap_or_default();
                row.flags |= if has_rest { SETTLED } else { 0 };
            }
            for place in of_agents {
                let row = &mut self.rows[place as usize];
                row.model = model;
                row.tokens = TokenCounts::default();
                row.flags |= SETTLED;
            }
        }
    }

    /// Sorts the logs so that the origin of copied lines precedes the copies.
    ///
    /// A fork follows the sessions that its lines name as their origin. Otherwise the log that started first
    /// precedes: a fork that names no origin begins with lines of its own.
    fn rank_logs(&mut self, sessions: &HashMap<NameId, SessionStart>) {
        let mut origins: HashMap<NameId, Vec<NameId>> = HashMap::default();
        for file in self.files.iter().filter(|file| !file.origins.is_empty()) {
            let others = file.origins.iter().filter(|origin| **origin != file.session);
            origins.entry(file.session).or_default().extend(others);
        }
        let depths = fork_depths(&origins);
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_cached_key(|index| {
            let file = &self.files[*index];
            let depth = depths.get(&file.session).copied().unwrap_or(0);
            let agent = file.agent.as_ref().map(|(id, _)| id.clone());
            // Undated logs sort last.
            let times = [sessions[&file.session].first_at, file.first_at].map(|at| at.unwrap_or(UNDATED));
            (depth, times, self.names.get(file.session), agent, file.path.clone())
        });
        for (rank, index) in (0..).zip(order) {
            self.files[index].rank = rank;
        }
    }

    /// Determines when and where each session began, from its own log or else from its agents' logs.
    fn sessions(&mut self) -> HashMap<NameId, SessionStart> {
        let nowhere = self.names.id("");
        let mut sessions: HashMap<NameId, SessionStart> = HashMap::default();
        // A worktree belongs to the project of its repository.
        let mut projects: HashMap<NameId, NameId> = HashMap::default();
        for place in self.files.iter().map(|file| file.cwd.or(file.folder).unwrap_or(nowhere)) {
            if let Entry::Vacant(slot) = projects.entry(place) {
                let project = project_directory(self.names.get(place)).to_owned();
                slot.insert(self.names.id(&project));
            }
        }
        let mut files: Vec<&LedgerLog> = self.files.iter().collect();
        // A session's own log is preferred to an agent's, a directory to a folder name, an earlier log to a
        // later one.
        files.sort_by_cached_key(|file| {
            let first_at = file.first_at.unwrap_or(UNDATED);
            let project = self.names.get(file.cwd.or(file.folder).unwrap_or(nowhere));
            (file.agent.is_some(), file.cwd.is_none(), first_at, project)
        });
        for file in &files {
            let project = projects[&file.cwd.or(file.folder).unwrap_or(nowhere)];
            sessions.entry(file.session).or_insert(SessionStart { project, first_at: None });
        }
        files.sort_by_key(|file| (file.agent.is_some(), file.first_at.unwrap_or(UNDATED)));
        for file in files {
            if let Some(session) = sessions.get_mut(&file.session) {
                session.first_at = session.first_at.or(file.first_at);
            }
        }
        sessions
    }
}

/// The longest time between the start of Claude Code and the first line of a session that it began. Later,
/// the account may contain another session.
const MAX_START_DELAY: Millis = 10 * 60 * 1000;

/// How many more tokens than the conversations before them compactions may use: for instructions and
/// summaries.
const MAX_COMPACTION_TOKENS: u64 = 100_000;

/// Returns the tokens of a model in Claude Code's account besides those in the logs: the calls of
/// compactions.
///
/// `None` if the account is of another time than the session, or if the difference cannot be theirs. `before`
/// is the number of tokens in the conversations that were compacted.
fn unlogged_tokens(
    account: &CostAccount,
    theirs: &CostAccountModel,
    ours: TokenCounts,
    started: Option<Millis>,
    before: u64,
) -> Option<TokenCounts> {
    let delay = started?.saturating_sub(account.start?);
    let rest = theirs.tokens.checked_minus(ours)?;
    let limit = before.saturating_mul(2).saturating_add(MAX_COMPACTION_TOKENS);
    ((-MAX_START_DELAY..MAX_START_DELAY).contains(&delay) && rest.total() <= limit).then_some(rest)
}

/// Returns how many forks lie between each session and its first origin, given the sessions that its lines
/// name as their origins.
fn fork_depths(origins: &HashMap<NameId, Vec<NameId>>) -> HashMap<NameId, usize> {
    let mut depths: HashMap<NameId, usize> = HashMap::default();
    // Sessions that name each other would never end.
    for _ in 0..origins.len() {
        let depth_of = |named: &Vec<NameId>| {
            let deepest = named.iter().map(|origin| depths.get(origin).copied().unwrap_or(0)).max();
            deepest.map_or(0, |deepest| deepest + 1)
        };
        let next = origins.iter().map(|(session, named)| (*session, depth_of(named))).collect();
        if std::mem::replace(&mut depths, next) == depths {
            break;
        }
    }
    depths
}

/// When and where a session began.
struct SessionStart {
    project: NameId,
    first_at: Option<Millis>,
}
