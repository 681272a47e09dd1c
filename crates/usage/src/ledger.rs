//! The ledger: the calls of all logs, each once.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use threadline_entry::{AgentKind, Millis};

use crate::book::Book;
use crate::explain::{Explained, Reason, Verdict};
use crate::group::Totals;
use crate::key::Key;
use crate::model::model;
use crate::names::{NameId, Names};
use crate::reconcile::Account;
use crate::reply::{Nearness, Tokens};
use crate::scan::{FAST, FORK, REGIONAL, Record, Row, Scanned, ToolUse, UNDATED, UNDER_REPORTED, US};
use crate::window::Limit;

/// Gathers what the logs hold, in any order.
///
/// The result is the same whatever the order, and however often the same log is given.
#[derive(Debug, Default)]
pub struct Ledger {
    names: Names,
    files: Vec<File>,
    rows: Vec<Row>,
    index: FxHashMap<Key, u32>,
    /// Other logs that hold a call.
    rivals: Vec<Rival>,
    tools: Vec<ToolUse>,
    records: Vec<Record>,
    limits: Vec<Limit>,
    accounts: Vec<(NameId, Account)>,
    n_broken: u64,
    n_torn: u64,
}

/// A log that calls come from.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: Box<str>,
    pub(crate) session: NameId,
    pub(crate) agent: Option<(Box<str>, AgentKind)>,
    first_at: Option<Millis>,
    cwd: Option<NameId>,
    folder: Option<NameId>,
    /// Of the session; known when all logs are.
    pub(crate) project: NameId,
}

/// A log that holds a call too, and perhaps owns it.
#[derive(Clone, Copy, Debug)]
struct Rival {
    row: u32,
    file: u32,
    branch: NameId,
    owner: Nearness,
    is_fork: bool,
}

impl Ledger {
    /// Takes what one log holds.
    pub fn absorb(&mut self, scanned: Scanned) {
        let Scanned { source, names, rows, .. } = scanned;
        let file = self.files.len() as u32;
        let session = source.session.as_deref().unwrap_or_default();
        let file_info = File {
            session: self.names.id(session),
            agent: source.agent.map(|(id, kind)| (id.into(), kind)),
            first_at: scanned.first_at,
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
        self.n_torn += u64::from(scanned.is_torn);

        let ids: Vec<NameId> = names.iter().map(|name| self.names.id(name)).collect();
        let models: Vec<(NameId, u8)> = names
            .iter()
            .map(|name| {
                let model = model(name);
                (self.names.id(&model.name), if model.regional { REGIONAL } else { 0 })
            })
            .collect();
        let settled = |row: Row| {
            let (model, regional) = models[row.model as usize];
            Row { file, model, branch: ids[row.branch as usize], flags: row.flags | regional, ..row }
        };
        let places: Vec<u32> = rows.into_iter().map(|(key, row)| self.put(key, settled(row))).collect();
        self.tools.extend(scanned.tools.into_iter().map(|tool| ToolUse {
            row: places[tool.row as usize],
            name: ids[tool.name as usize],
            ..tool
        }));
        self.records.extend(scanned.records.into_iter().map(|record| {
            let found = record.found.map(|(place, row)| (places[place as usize], settled(row)));
            Record { file, found, ..record }
        }));
    }

    fn put(&mut self, key: Key, row: Row) -> u32 {
        let next = self.rows.len() as u32;
        let place = *self.index.entry(key).or_insert(next);
        match self.rows.get_mut(place as usize) {
            Some(known) => {
                known.merge(&row, &self.names);
                let Row { file, branch, owner, .. } = row;
                self.rivals.push(Rival { row: place, file, branch, owner, is_fork: row.has(FORK) });
            }
            None => self.rows.push(row),
        }
        place
    }

    /// Decides which log each call belongs to, now that all of them are known.
    pub fn settle(mut self) -> Calls {
        let sessions = self.sessions();
        for file in &mut self.files {
            file.project = sessions.get(&file.session).map_or(0, |session| session.project);
        }
        let order = |rival: &Rival| {
            let file = &self.files[rival.file as usize];
            let session = &sessions[&file.session];
            let agent = file.agent.as_ref().map(|(id, _)| id);
            // What is not dated comes last.
            let at = |at: Option<Millis>| at.unwrap_or(UNDATED);
            let name = self.names.get(file.session);
            (rival.owner, rival.is_fork, at(session.first_at), at(file.first_at), name, agent, &file.path)
        };
        let mut copies = Vec::with_capacity(self.rivals.len());
        for rival in &self.rivals {
            let row = &mut self.rows[rival.row as usize];
            let Row { file, branch, owner, .. } = *row;
            let holder = Rival { row: rival.row, file, branch, owner, is_fork: row.has(FORK) };
            let loser = if order(rival) < order(&holder) {
                row.file = rival.file;
                row.branch = rival.branch;
                row.owner = rival.owner;
                row.flags = (row.flags & !FORK) | if rival.is_fork { FORK } else { 0 };
                holder
            } else {
                *rival
            };
            copies.push((loser.row, loser.file));
        }
        // A tool call that stands on several lines, or in several logs, is one.
        self.tools.sort_unstable();
        self.tools.dedup_by_key(|tool| (tool.row, tool.id));
        self.limits.sort_unstable();
        self.limits.dedup();
        Calls {
            names: self.names,
            files: self.files,
            rows: self.rows,
            copies,
            tools: self.tools,
            records: self.records,
            limits: self.limits,
            accounts: self.accounts,
            n_broken: self.n_broken,
            n_torn: self.n_torn,
        }
    }

    /// When and where each session began: what its own log says, else what its agents' logs say.
    fn sessions(&mut self) -> FxHashMap<NameId, Session> {
        let nowhere = self.names.id("");
        let mut sessions: FxHashMap<NameId, Session> = FxHashMap::default();
        let mut files: Vec<&File> = self.files.iter().collect();
        // Rather a session's own log than an agent's, a directory than a folder, the earlier than the later.
        files.sort_by_cached_key(|file| {
            let first_at = file.first_at.unwrap_or(UNDATED);
            let project = self.names.get(file.cwd.or(file.folder).unwrap_or(nowhere));
            (file.agent.is_some(), file.cwd.is_none(), first_at, project)
        });
        for file in &files {
            let project = file.cwd.or(file.folder).unwrap_or(nowhere);
            sessions.entry(file.session).or_insert(Session { project, first_at: None });
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

/// When and where a session began.
struct Session {
    project: NameId,
    first_at: Option<Millis>,
}

/// All calls, each once, each with its owner.
#[derive(Debug)]
pub struct Calls {
    pub(crate) names: Names,
    pub(crate) files: Vec<File>,
    pub(crate) rows: Vec<Row>,
    /// Calls and logs that hold them without owning them.
    copies: Vec<(u32, u32)>,
    /// By call.
    pub(crate) tools: Vec<ToolUse>,
    records: Vec<Record>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) accounts: Vec<(NameId, Account)>,
    n_broken: u64,
    n_torn: u64,
}

/// A call of a model.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// When its first line was written, in milliseconds since 1970.
    pub at: Option<Millis>,
    /// The session it belongs to.
    pub session: &'a str,
    /// The directory that the session began in, else the project's folder.
    pub project: &'a str,
    /// The model, by the name the price book has.
    pub model: &'a str,
    /// The branch that was checked out; empty if there was none.
    pub branch: &'a str,
    /// What the sub-agent was for that made it.
    pub agent: Option<AgentKind>,
    /// What it used.
    pub tokens: Tokens,
    /// How often it searched the web.
    pub web_searches: u64,
    /// Whether it ran in fast mode.
    pub fast: bool,
    /// Whether it had to run in the United States.
    pub us: bool,
    /// Whether it went to an endpoint of one region.
    pub regional: bool,
    /// Whether the log holds fewer output tokens than there were.
    pub under_reported: bool,
}

impl Calls {
    /// All calls, in no order that matters.
    pub fn iter(&self) -> impl Iterator<Item = Call<'_>> {
        self.rows.iter().map(|row| self.call(row))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Lines that look like calls and are no JSON.
    pub fn n_broken(&self) -> u64 {
        self.n_broken
    }

    /// Logs that end in the middle of a line; they may be growing.
    pub fn n_torn(&self) -> u64 {
        self.n_torn
    }

    /// How many calls each session holds that belong to another one, and so are not counted with it.
    pub fn inherited(&self) -> FxHashMap<&str, u64> {
        let mut pairs: Vec<(NameId, u32)> = Vec::new();
        for (row, file) in &self.copies {
            let session = self.files[*file as usize].session;
            if session != self.files[self.rows[*row as usize].file as usize].session {
                pairs.push((session, *row));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut found = FxHashMap::default();
        for (session, _) in pairs {
            *found.entry(self.names.get(session)).or_default() += 1;
        }
        found
    }

    /// The logs that hold any of these calls, whether the call belongs to them or not.
    pub fn logs_of(&self, keep: impl Fn(&Call<'_>) -> bool) -> BTreeSet<&str> {
        let kept: Vec<bool> = self.rows.iter().map(|row| keep(&self.call(row))).collect();
        let own = self.rows.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(row, _)| row.file);
        let copied = self.copies.iter().filter(|(row, _)| kept[*row as usize]).map(|(_, file)| *file);
        own.chain(copied).map(|file| &*self.files[file as usize].path).collect()
    }

    pub(crate) fn call(&self, row: &Row) -> Call<'_> {
        let file = &self.files[row.file as usize];
        Call {
            at: Some(row.at).filter(|at| *at != UNDATED),
            session: self.names.get(file.session),
            project: self.names.get(file.project),
            model: self.names.get(row.model),
            branch: self.names.get(row.branch),
            agent: file.agent.as_ref().map(|(_, kind)| *kind),
            tokens: row.tokens,
            web_searches: u64::from(row.web_searches),
            fast: row.has(FAST),
            us: row.has(US),
            regional: row.has(REGIONAL),
            under_reported: row.has(UNDER_REPORTED),
        }
    }

    /// What each call used and cost, with the log that it belongs to, counted as they were taken, and the first of
    /// its lines there. The scans must have kept the records.
    pub fn placed<'a>(&'a self, book: &'a Book) -> impl Iterator<Item = (usize, u64, Totals)> + 'a {
        let mut seen = vec![false; self.rows.len()];
        self.records.iter().filter_map(move |record| {
            let (place, _) = record.found.as_ref().ok()?;
            let row = &self.rows[*place as usize];
            if row.file != record.file || std::mem::replace(&mut seen[*place as usize], true) {
                return None;
            }
            Some((record.file as usize, record.at.line_no, Totals::of(&self.call(row), book)))
        })
    }

    /// Every record that tells of a call, by log and line, with what became of it.
    ///
    /// `keep` says which moments of which sessions are asked for. The scans must have kept the records.
    pub fn explain(&self, book: &Book, keep: impl Fn(Option<Millis>, &str) -> bool) -> Vec<Explained> {
        let counted = self.counted();
        let mut out = Vec::new();
        for (i, record) in self.records.iter().enumerate() {
            let file = &self.files[record.file as usize];
            let own = self.names.get(file.session);
            let dated = |at: Millis| Some(at).filter(|at| *at != UNDATED);
            let mut told = Explained {
                path: file.path.to_string(),
                line: record.at.line_no,
                byte_offset: record.at.byte_offset,
                at: None,
                session: own.to_owned(),
                message_id: record.message_id.as_deref().map(str::to_owned),
                model: None,
                tokens: Tokens::default(),
                cost: None,
                verdict: Verdict::Counted,
            };
            match &record.found {
                Err((at, reason)) => {
                    told.at = dated(*at);
                    told.verdict = Verdict::Rejected(reason.clone());
                    if !keep(told.at, own) {
                        continue;
                    }
                }
                Ok((place, row)) => {
                    let call = self.call(&self.rows[*place as usize]);
                    if !keep(call.at, call.session) && !keep(call.at, own) {
                        continue;
                    }
                    told.at = dated(row.at);
                    told.session = call.session.to_owned();
                    told.model = Some(self.names.get(row.model).to_owned());
                    told.tokens = row.tokens;
                    let winner = counted[place];
                    if winner == i {
                        told.cost = book.cost(&call);
                    } else {
                        told.verdict = Verdict::Rejected(self.lost(record, row, winner, call.session != own));
                    }
                }
            }
            out.push(told);
        }
        out.sort_by(|a, b| (&a.path, a.line, &a.model).cmp(&(&b.path, b.line, &b.model)));
        out
    }

    /// Which record of each call was counted.
    fn counted(&self) -> FxHashMap<u32, usize> {
        let mut counted: FxHashMap<u32, usize> = FxHashMap::default();
        let place = |record: &Record, owner: u32| {
            (record.file != owner, &self.files[record.file as usize].path, record.at)
        };
        for (i, record) in self.records.iter().enumerate() {
            let Ok((at, row)) = &record.found else { continue };
            let owner = self.rows[*at as usize].file;
            counted
                .entry(*at)
                .and_modify(|best| {
                    let rival = &self.records[*best];
                    let Ok((_, other)) = &rival.found else { return };
                    let better = row.compare(other, &self.names);
                    if better.then_with(|| place(rival, owner).cmp(&place(record, owner))).is_gt() {
                        *best = i;
                    }
                })
                .or_insert(i);
        }
        counted
    }

    /// Why a record was not counted, where `winner` was.
    fn lost(&self, record: &Record, row: &Row, winner: usize, inherited: bool) -> Reason {
        let winner = &self.records[winner];
        let line = winner.at.line_no;
        if winner.file == record.file {
            return Reason::SameReply { line };
        }
        let path = self.files[winner.file as usize].path.to_string();
        match row.figures {
            Nearness::Progress => Reason::Progress { path, line },
            _ => Reason::Copy { path, line, inherited },
        }
    }
}
