//! Calls: each once, each with its owner, and every record with what became of it.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use threadline_entry::{AgentKind, Millis};

use crate::book::Book;
use crate::explain::{Explained, Reason, Verdict};
use crate::figures::Tokens;
use crate::ledger::File;
use crate::names::{NameId, Names};
use crate::reconcile::Account;
use crate::reply::Nearness;
use crate::scan::{FAST, REGIONAL, Record, Row, ToolUse, UNDATED, UNDER_REPORTED, US};
use crate::totals::Totals;
use crate::window::Limit;

/// All calls, each once, each with its owner.
#[derive(Debug)]
pub struct Calls {
    pub(crate) names: Names,
    pub(crate) files: Vec<File>,
    pub(crate) rows: Vec<Row>,
    /// Calls and logs that hold them without owning them.
    pub(crate) copies: Vec<(u32, u32)>,
    /// By call.
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) records: Vec<Record>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) accounts: Vec<(NameId, Account)>,
    pub(crate) n_broken: u64,
    pub(crate) n_torn: u64,
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
        self.explain_some(book, None, keep)
    }

    /// The same for those calls alone that are marked, as [`Calls::in_groups`] does; what tells of no call is left out.
    pub fn explain_some(
        &self,
        book: &Book,
        marked: Option<&[bool]>,
        keep: impl Fn(Option<Millis>, &str) -> bool,
    ) -> Vec<Explained> {
        let is_marked = |call: Option<u32>| match (marked, call) {
            (None, _) => true,
            (Some(marked), Some(place)) => marked.get(place as usize) == Some(&true),
            (Some(_), None) => false,
        };
        let counted = self.counted();
        let mut out = Vec::new();
        for (i, record) in self.records.iter().enumerate() {
            if !is_marked(record.found.as_ref().ok().map(|(place, _)| *place)) {
                continue;
            }
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
