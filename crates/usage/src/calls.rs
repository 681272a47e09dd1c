//! The de-duplicated calls, each with its owner, and the explanation of every record.

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

/// All calls, each once, each with the log that owns it.
#[derive(Debug)]
pub struct Calls {
    pub(crate) names: Names,
    pub(crate) files: Vec<File>,
    pub(crate) rows: Vec<Row>,
    /// Pairs of a call and a log that contains a copy of it.
    pub(crate) copies: Vec<(u32, u32)>,
    /// Sorted by call.
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) records: Vec<Record>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) accounts: Vec<(NameId, Account)>,
    pub(crate) n_broken: u64,
    pub(crate) n_torn: u64,
}

/// A model call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// When its first line was written, in milliseconds since 1970.
    pub at: Option<Millis>,
    /// The session it belongs to.
    pub session: &'a str,
    /// The directory that the session began in, or else the project's folder name.
    pub project: &'a str,
    /// The model, by its name in the price book.
    pub model: &'a str,
    /// The branch that was checked out; empty if there was none.
    pub branch: &'a str,
    /// The kind of sub-agent that made the call, if any.
    pub agent: Option<AgentKind>,
    /// The token counts.
    pub tokens: Tokens,
    /// The number of web searches.
    pub web_searches: u64,
    /// Whether it ran in fast mode.
    pub fast: bool,
    /// Whether it was restricted to the United States.
    pub us: bool,
    /// Whether it used a regional endpoint.
    pub regional: bool,
    /// Whether the log contains fewer output tokens than were used.
    pub under_reported: bool,
}

impl Calls {
    /// Returns all calls, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = Call<'_>> {
        self.rows.iter().map(|row| self.call(row))
    }

    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no calls.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the number of lines with `"usage"` that are not valid JSON.
    pub fn n_broken(&self) -> u64 {
        self.n_broken
    }

    /// Returns the number of logs that end in an incomplete line; they may be growing.
    pub fn n_torn(&self) -> u64 {
        self.n_torn
    }

    /// Returns the number of calls in each session that belong to another session and are not counted with
    /// it.
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

    /// Returns the logs that contain any of these calls, as owner or as a copy.
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

    /// Returns for each call the index of its log, in the order the logs were absorbed, the number of its
    /// first line there, and its totals. Requires [`Wants::records`](crate::Wants::records).
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

    /// Returns every record of a call, sorted by log and line, with the reason if it was not counted.
    ///
    /// `keep` selects records by time and session. Requires [`Wants::records`](crate::Wants::records).
    pub fn explain(&self, book: &Book, keep: impl Fn(Option<Millis>, &str) -> bool) -> Vec<Explained> {
        self.explain_some(book, None, keep)
    }

    /// Returns the same for marked calls only, as [`Calls::in_groups`] marks them; records without a call are
    /// left out if `marked` is given.
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

    /// Returns the index of the record that was counted, for each call.
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

    /// Returns why a record was not counted, given the one that was.
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
