//! The de-duplicated calls, each with its owner, and the explanation of every record.

use std::collections::BTreeSet;

use foldhash::HashMap;
use threadline_entry::{AgentKind, Millis};

use crate::explain::{RecordExplanation, RecordVerdict, RejectReason};
use crate::figures::TokenCounts;
use crate::ledger::LedgerLog;
use crate::name_table::{NameId, NameTable};
use crate::price_book::PriceBook;
use crate::reconcile::CostAccount;
use crate::reply_line::LineOrigin;
use crate::scan::{
    COMPACTION, CallLine, CallRecord, CallRow, FAST, REGIONAL, SETTLED, ToolUse, UNDATED, UNDER_REPORTED, US,
};
use crate::stored::CallSum;
use crate::totals::UsageTotals;
use crate::window::LimitNotice;

/// All calls, each once, each with the log that owns it.
#[derive(Debug)]
pub struct ModelCalls {
    pub(crate) names: NameTable,
    pub(crate) files: Vec<LedgerLog>,
    pub(crate) rows: Vec<CallRow>,
    /// Sums of calls that are not in `rows`. Only [`CallGroups::of`](crate::CallGroups::of) includes them.
    pub(crate) sums: Vec<CallSum>,
    /// Pairs of a call and a log that contains a copy of it.
    pub(crate) copies: Vec<(u32, u32)>,
    /// Sorted by call.
    pub(crate) tools: Vec<ToolUse>,
    /// The tools of calls that several logs contain, each with the sessions of these logs.
    pub(crate) shared_tools: Vec<(NameId, ToolUse)>,
    pub(crate) records: Vec<CallRecord>,
    pub(crate) lines: Vec<CallLine>,
    pub(crate) limits: Vec<LimitNotice>,
    pub(crate) accounts: Vec<(NameId, CostAccount)>,
    pub(crate) n_broken: u64,
    pub(crate) n_torn: u64,
}

/// A model call.
#[derive(Clone, Copy, Debug)]
pub struct ModelCall<'a> {
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
    /// The kind of sub-agent that made the call, if any. The log of the session may contain its calls, too.
    pub agent: Option<AgentKind>,
    /// The token counts.
    pub tokens: TokenCounts,
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
    /// The origin of the figures, if this is the call of a compaction: it is in no line of a log.
    pub compaction: Option<CompactionFigures>,
}

/// The origin of the figures of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionFigures {
    /// Claude Code's own totals, less the calls in the logs.
    Totals,
    /// None: the calls are counted elsewhere, in the log of the agent or with the last compaction.
    Elsewhere,
    /// None: no log contains them.
    Unknown,
}

impl ModelCalls {
    /// Returns all calls, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = ModelCall<'_>> {
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
    pub fn n_invalid_lines(&self) -> u64 {
        self.n_broken
    }

    /// Returns the number of logs that end in an incomplete line; they may be growing.
    pub fn n_incomplete_logs(&self) -> u64 {
        self.n_torn
    }

    /// Returns the number of calls in each session that belong to another session and are not counted with
    /// it.
    pub fn inherited(&self) -> HashMap<&str, u64> {
        let mut pairs: Vec<(NameId, u32)> = Vec::new();
        for (row, file) in &self.copies {
            let session = self.files[*file as usize].session;
            if session != self.files[self.rows[*row as usize].file as usize].session {
                pairs.push((session, *row));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut found = HashMap::default();
        for (session, _) in pairs {
            *found.entry(self.names.get(session)).or_default() += 1;
        }
        found
    }

    /// Returns the ranks of the logs by path. Lines that several logs contain belong to the session of the
    /// log with the lowest rank: the session that made the request, if the copies name it, or else the one
    /// that started first.
    pub fn log_ranks(&self) -> HashMap<&str, u32> {
        self.files.iter().map(|file| (&*file.path, file.rank)).collect()
    }

    /// Marks the calls that `keep` accepts, for [`ModelCalls::explain_marked`].
    pub fn mark(&self, keep: impl Fn(&ModelCall<'_>) -> bool) -> Vec<bool> {
        self.rows.iter().map(|row| keep(&self.call(row))).collect()
    }

    /// Returns the logs that contain any of these calls, as owner or as a copy.
    pub fn logs_of(&self, keep: impl Fn(&ModelCall<'_>) -> bool) -> BTreeSet<&str> {
        let kept = self.mark(keep);
        let own = self.rows.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(row, _)| row.file);
        let copied = self.copies.iter().filter(|(row, _)| kept[*row as usize]).map(|(_, file)| *file);
        own.chain(copied).map(|file| &*self.files[file as usize].path).collect()
    }

    pub(crate) fn call(&self, row: &CallRow) -> ModelCall<'_> {
        let file = &self.files[row.file as usize];
        ModelCall {
            at: Some(row.at).filter(|at| *at != UNDATED),
            session: self.names.get(file.session),
            project: self.names.get(file.project),
            model: self.names.get(row.model),
            branch: self.names.get(row.branch),
            agent: match &file.agent {
                Some((_, kind)) => Some(*kind),
                None => (row.owner_origin != LineOrigin::Main).then_some(AgentKind::Task),
            },
            tokens: row.tokens,
            web_searches: u64::from(row.web_searches),
            fast: row.has(FAST),
            us: row.has(US),
            regional: row.has(REGIONAL),
            under_reported: row.has(UNDER_REPORTED),
            compaction: row.has(COMPACTION).then(|| match row.has(SETTLED) {
                true if row.tokens == TokenCounts::default() => CompactionFigures::Elsewhere,
                true => CompactionFigures::Totals,
                false => CompactionFigures::Unknown,
            }),
        }
    }

    /// Returns for each call the index of its log, in the order the logs were absorbed, the number of its
    /// first line there, and its totals. Requires [`ScanOptions::lines`](crate::ScanOptions::lines).
    pub fn located_totals<'a>(
        &'a self,
        book: &'a PriceBook,
    ) -> impl Iterator<Item = (usize, u64, UsageTotals)> + 'a {
        let mut seen = vec![false; self.rows.len()];
        self.lines.iter().filter_map(move |line| {
            let row = &self.rows[line.row as usize];
            if row.file != line.file || std::mem::replace(&mut seen[line.row as usize], true) {
                return None;
            }
            Some((line.file as usize, line.line_no, UsageTotals::of(&self.call(row), book)))
        })
    }

    /// Returns every record of a call, sorted by log and line, with the reason if it was not counted.
    ///
    /// `keep` selects records by time and session. Requires
    /// [`ScanOptions::records`](crate::ScanOptions::records).
    pub fn explain(
        &self,
        book: &PriceBook,
        keep: impl Fn(Option<Millis>, &str) -> bool,
    ) -> Vec<RecordExplanation> {
        self.explain_marked(book, None, keep)
    }

    /// Returns the same for marked calls only; records without a call are left out if `marked` is given.
    ///
    /// [`ModelCalls::in_groups`] and [`ModelCalls::mark`] mark calls.
    pub fn explain_marked(
        &self,
        book: &PriceBook,
        marked: Option<&[bool]>,
        keep: impl Fn(Option<Millis>, &str) -> bool,
    ) -> Vec<RecordExplanation> {
        let is_marked = |call: Option<u32>| match (marked, call) {
            (None, _) => true,
            (Some(marked), Some(place)) => marked.get(place as usize) == Some(&true),
            (Some(_), None) => false,
        };
        let counted = self.counted_records();
        let mut out = Vec::new();
        for (i, record) in self.records.iter().enumerate() {
            if !is_marked(record.call.as_ref().ok().map(|(place, _)| *place)) {
                continue;
            }
            let file = &self.files[record.file as usize];
            let own = self.names.get(file.session);
            let dated = |at: Millis| Some(at).filter(|at| *at != UNDATED);
            let mut explanation = RecordExplanation {
                path: file.path.to_string(),
                line: record.at.line_no,
                byte_offset: record.at.byte_offset,
                at: None,
                session: own.to_owned(),
                message_id: record.message_id.as_deref().map(str::to_owned),
                model: None,
                tokens: TokenCounts::default(),
                cost: None,
                verdict: RecordVerdict::Counted,
            };
            match &record.call {
                Err((at, reason)) => {
                    explanation.at = dated(*at);
                    explanation.verdict = RecordVerdict::Rejected(reason.clone());
                    if !keep(explanation.at, own) {
                        continue;
                    }
                }
                Ok((place, row)) => {
                    let call = self.call(&self.rows[*place as usize]);
                    if !keep(call.at, call.session) && !keep(call.at, own) {
                        continue;
                    }
                    explanation.at = dated(row.at);
                    explanation.session = call.session.to_owned();
                    explanation.model = Some(self.names.get(row.model).to_owned());
                    explanation.tokens = row.tokens;
                    let winner = counted[place];
                    if winner == i {
                        explanation.cost = book.cost(&call);
                    } else {
                        explanation.verdict = RecordVerdict::Rejected(self.rejection_reason(
                            record,
                            row,
                            winner,
                            call.session != own,
                        ));
                    }
                }
            }
            out.push(explanation);
        }
        out.sort_by(|a, b| (&a.path, a.line, &a.model).cmp(&(&b.path, b.line, &b.model)));
        out
    }

    /// Returns the index of the record that was counted, for each call.
    fn counted_records(&self) -> HashMap<u32, usize> {
        let mut counted: HashMap<u32, usize> = HashMap::default();
        let place = |record: &CallRecord, owner: u32| {
            (record.file != owner, &self.files[record.file as usize].path, record.at)
        };
        for (i, record) in self.records.iter().enumerate() {
            let Ok((at, row)) = &record.call else { continue };
            let owner = self.rows[*at as usize].file;
            counted
                .entry(*at)
                .and_modify(|best| {
                    let rival = &self.records[*best];
                    let Ok((_, other)) = &rival.call else { return };
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
    fn rejection_reason(
        &self,
        record: &CallRecord,
        row: &CallRow,
        winner: usize,
        inherited: bool,
    ) -> RejectReason {
        let winner = &self.records[winner];
        let line = winner.at.line_no;
        if winner.file == record.file {
            return RejectReason::SameReply { line };
        }
        let path = self.files[winner.file as usize].path.to_string();
        match row.figures_origin {
            LineOrigin::Progress => RejectReason::Progress { path, line },
            _ => RejectReason::Copy { path, line, inherited },
        }
    }
}
