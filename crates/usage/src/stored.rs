//! The calls of logs as rows that can be stored elsewhere, such as in a database, and be read back.

use threadline_entry::Millis;

use crate::call_key::CallKey;
use crate::figures::TokenCounts;
use crate::ledger::CallLedger;
use crate::model::model;
use crate::reply_line::LineOrigin;
use crate::scan::{COMPACTION, CallRow, FAST, LogSource, REGIONAL, ScannedLog, UNDATED, US};

/// A call of a log, as a row. Rows of several logs, or of one log, may describe the same call; then their
/// keys are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCall<'a> {
    /// Identifies the call.
    pub key: [u8; 12],
    /// When its first line was written.
    pub at: Option<Millis>,
    /// The model, as written in the log.
    pub model: &'a str,
    /// The branch that was checked out; empty if there was none.
    pub branch: &'a str,
    /// The token counts.
    pub tokens: TokenCounts,
    /// The number of web searches.
    pub web_searches: u32,
    /// The origins of the figures and of the owner, and the flags, in three bytes. The meaning of the bits
    /// must not change.
    pub marks: [u8; 3],
}

impl StoredCall<'_> {
    /// Returns whether the cost of several such calls follows from the sum of their tokens. Multipliers of
    /// prices are rounded for each call.
    pub fn can_be_summed(&self) -> bool {
        let small = |tokens: u64| i32::try_from(tokens).is_ok();
        let TokenCounts { input, output, cache_read, cache_write_5m, cache_write_1h } = self.tokens;
        let is_plain =
            self.marks[2] & (FAST | US | REGIONAL | COMPACTION) == 0 && !model(self.model).regional;
        is_plain && [input, output, cache_read, cache_write_5m, cache_write_1h].into_iter().all(small)
    }
}

/// The sum of some calls of one log that have the same model, branch, flags and price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSum<'a> {
    /// When the first of the calls was made.
    pub first_at: Option<Millis>,
    /// When the last of the calls was made.
    pub last_at: Option<Millis>,
    /// The model, as written in the log.
    pub model: &'a str,
    /// The branch that was checked out; empty if there was none.
    pub branch: &'a str,
    /// The number of calls.
    pub calls: u64,
    /// The largest number of input tokens of a call. It decides between two prices.
    pub context: u64,
    /// The sum of the token counts.
    pub tokens: TokenCounts,
    /// The sum of the web searches.
    pub web_searches: u64,
    /// The flags of the calls, as in [`StoredCall::marks`].
    pub flags: u8,
}

/// A sum of calls in a ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSum {
    /// A call with the sum of the figures.
    pub(crate) row: CallRow,
    pub(crate) last_at: Millis,
    pub(crate) calls: u64,
    pub(crate) context: u64,
    pub(crate) web_searches: u64,
}

/// The facts about a log besides its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStart {
    /// The origin of the lines.
    pub source: LogSource,
    /// The time of the first line.
    pub first_at: Option<Millis>,
    /// The directory of the first line that has one.
    pub cwd: Option<String>,
    /// The number of invalid lines.
    pub n_invalid_lines: u64,
    /// Whether the log ends in an incomplete line.
    pub ends_in_incomplete_line: bool,
}

impl ScannedLog {
    /// Returns the facts about the log besides its calls.
    pub fn start(&self) -> LogStart {
        LogStart {
            source: self.source.clone(),
            first_at: self.first_at,
            cwd: self.cwd.clone(),
            n_invalid_lines: self.n_broken,
            ends_in_incomplete_line: self.ends_in_incomplete_line,
        }
    }

    /// Returns the calls as rows, in the order of the log.
    pub fn calls(&self) -> impl Iterator<Item = StoredCall<'_>> {
        self.rows.iter().map(|(key, row)| {
            let [a, b, c] = key.words().map(u32::to_le_bytes);
            let mut bytes = [0; 12];
            bytes.iter_mut().zip([a, b, c].concat()).for_each(|(to, from)| *to = from);
            StoredCall {
                key: bytes,
                at: Some(row.at).filter(|at| *at != UNDATED),
                model: self.names.get(row.model),
                branch: self.names.get(row.branch),
                tokens: row.tokens,
                web_searches: row.web_searches,
                marks: [row.figures_origin as u8, row.owner_origin as u8, row.flags],
            }
        })
    }

    /// Creates the scan of a log without calls.
    pub fn from_start(start: LogStart) -> Self {
        Self {
            source: start.source,
            first_at: start.first_at,
            cwd: start.cwd,
            n_broken: start.n_invalid_lines,
            ends_in_incomplete_line: start.ends_in_incomplete_line,
            ..Self::default()
        }
    }

    /// Adds a row. Returns `false` if its marks are not known.
    pub fn add_call(&mut self, call: &StoredCall<'_>) -> bool {
        let [figures, owner, flags] = call.marks;
        let (Some(figures_origin), Some(owner_origin)) = (origin(figures), origin(owner)) else {
            return false;
        };
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| call.key[at + i]));
        let row = CallRow {
            at: call.at.unwrap_or(UNDATED),
            tokens: call.tokens,
            web_searches: call.web_searches,
            model: self.names.id(call.model),
            branch: self.names.id(call.branch),
            file: 0,
            figures_origin,
            owner_origin,
            flags,
        };
        self.rows.push((CallKey::from_words([word(0), word(4), word(8)]), row));
        true
    }
}

impl CallLedger {
    /// Adds a sum of calls of a log that was added before, by its position. No other row may describe one of
    /// these calls.
    pub fn add_sum(&mut self, log: usize, sum: &StoredSum<'_>) {
        let name = model(sum.model);
        let row = CallRow {
            at: sum.first_at.unwrap_or(UNDATED),
            tokens: sum.tokens,
            web_searches: 0,
            model: self.names.id(&name.name),
            branch: self.names.id(sum.branch),
            file: log as u32,
            figures_origin: LineOrigin::Main,
            owner_origin: LineOrigin::Main,
            flags: sum.flags,
        };
        self.sums.push(CallSum {
            row,
            last_at: sum.last_at.unwrap_or(UNDATED),
            calls: sum.calls,
            context: sum.context,
            web_searches: sum.web_searches,
        });
    }
}

pub(crate) fn origin(byte: u8) -> Option<LineOrigin> {
    let all = [LineOrigin::Main, LineOrigin::Sidechain, LineOrigin::Replay, LineOrigin::Progress];
    all.into_iter().find(|origin| *origin as u8 == byte)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use jiff::tz::TimeZone;
    use threadline_entry::LineReader;
    use threadline_testkit::shared_logs;

    use super::*;
    use crate::group::{CallGroups, GroupBy};
    use crate::price_book::PriceBook;
    use crate::scan::{ScanOptions, UsageScan};

    const LOG: &str = r#"{"type":"assistant","timestamp":"2026-11-01T10:00:00.000Z","sessionId":"s1","cwd":"/p","message":{"id":"msg_1","model":"claude-opus-5","content":[],"usage":{"input_tokens":100,"output_tokens":7}}}
{"type":"assistant","timestamp":"2026-11-01T10:01:00.000Z","sessionId":"s1","cwd":"/p","message":{"id":"msg_2","model":"claude-opus-5","content":[],"usage":{"input_tokens":300000,"output_tokens":9}}}
{"type":"assistant","timestamp":"2026-11-02T10:01:00.000Z","sessionId":"s1","cwd":"/p","message":{"id":"msg_3","model":"nobody-1","content":[],"usage":{"input_tokens":3,"output_tokens":9}}}
"#;

    fn scanned(log: &[u8], session: &str) -> ScannedLog {
        let mut scan = UsageScan::new(LogSource::session(session, session), ScanOptions::default());
        let mut lines = LineReader::new(log);
        while let Some(block) = lines.next_block().unwrap() {
            scan.block(&block);
        }
        scan.finish()
    }

    fn groups(ledger: CallLedger) -> Vec<CallGroups> {
        let calls = ledger.finish();
        let book = PriceBook::embedded();
        [GroupBy::Day, GroupBy::Session, GroupBy::Model, GroupBy::Branch, GroupBy::Project]
            .map(|by| CallGroups::of(&calls, by, &book, &TimeZone::UTC, |_, _| true))
            .to_vec()
    }

    #[test]
    fn stored_rows_and_sums_add_up_as_the_logs_do() {
        let mut logs = vec![LOG.as_bytes().to_vec()];
        logs.extend(shared_logs().iter().map(|log| std::fs::read(log).unwrap()));
        let scans: Vec<_> = logs.iter().zip(0..).map(|(log, n)| scanned(log, &format!("s{n}"))).collect();
        let mut n_rows: HashMap<[u8; 12], usize> = HashMap::new();
        scans.iter().flat_map(ScannedLog::calls).for_each(|call| *n_rows.entry(call.key).or_default() += 1);
        let (mut plain, mut rows, mut sums) = Default::default();
        for (place, scan) in scans.into_iter().enumerate() {
            let mut copy = ScannedLog::from_start(scan.start());
            assert!(scan.calls().all(|call| copy.add_call(&call)));
            assert!(copy.calls().eq(scan.calls()));
            CallLedger::add(&mut rows, copy);
            // Sums of one call each, for calls that occur once.
            let mut rest = ScannedLog::from_start(scan.start());
            let (summed, single): (Vec<_>, Vec<_>) =
                scan.calls().partition(|call| call.can_be_summed() && n_rows[&call.key] == 1);
            single.iter().for_each(|call| assert!(rest.add_call(call)));
            CallLedger::add(&mut sums, rest);
            for call in &summed {
                let sum = StoredSum {
                    first_at: call.at,
                    last_at: call.at,
                    model: call.model,
                    branch: call.branch,
                    calls: 1,
                    context: call.tokens.context(),
                    tokens: call.tokens,
                    web_searches: call.web_searches.into(),
                    flags: call.marks[2],
                };
                CallLedger::add_sum(&mut sums, place, &sum);
            }
            drop((summed, single));
            CallLedger::add(&mut plain, scan);
        }
        let expected = groups(plain);
        assert_eq!(groups(rows), expected);
        assert_eq!(groups(sums), expected);
    }

    #[test]
    fn a_sum_costs_as_much_as_its_calls() {
        let mut sums = CallLedger::default();
        let scan = scanned(LOG.as_bytes(), "s1");
        sums.add(ScannedLog::from_start(scan.start()));
        let [first, second, third] = &scan.calls().collect::<Vec<_>>()[..] else { panic!() };
        let mut tokens = first.tokens;
        tokens += &first.tokens;
        let sum = StoredSum {
            first_at: first.at,
            last_at: first.at.map(|at| at + 5),
            model: first.model,
            branch: "",
            calls: 2,
            context: 100,
            tokens,
            web_searches: 0,
            flags: first.marks[2],
        };
        sums.add_sum(0, &sum);
        let long = StoredSum { calls: 1, context: 300_000, tokens: second.tokens, ..sum.clone() };
        sums.add_sum(0, &long);
        sums.add_sum(0, &StoredSum { calls: 1, model: third.model, tokens: third.tokens, ..sum });
        let [days, ..] = &groups(sums)[..] else { panic!() };
        let mut plain = CallLedger::default();
        plain.add(scan.clone());
        let [plain, ..] = &groups(plain)[..] else { panic!() };
        assert_eq!((days.total.calls, days.total.unpriced_calls), (4, 1));
        assert!(days.total.cost > plain.total.cost);
        assert_eq!(days.groups[0].last_at, first.at.map(|at| at + 5));
    }
}
