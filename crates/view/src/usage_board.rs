//! The data of the usage page: sums by day, model and project, cache shares, and five-hour windows.

use foldhash::HashMap;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadline_entry::Millis;
use threadline_usage::{
    CallGroupKey, CallGroups, GroupBy, LimitWindow, ModelCall, ModelCalls, PriceBook, UsageTotals, windows,
};

/// The data of the usage page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageBoard {
    /// The sum of all calls.
    pub total: UsageTotals,
    /// Days with calls, in order; undated calls are in none of them.
    pub days: Vec<DayUsage>,
    /// The sum of the calls without a timestamp.
    pub undated: UsageTotals,
    /// Models, highest cost first.
    pub models: Vec<(String, UsageTotals)>,
    /// Projects, highest cost first.
    pub projects: Vec<(String, UsageTotals)>,
    /// Five-hour windows, in order.
    pub windows: Vec<LimitWindow>,
}

/// The usage of one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayUsage {
    /// The day.
    pub day: Date,
    /// The sum.
    pub totals: UsageTotals,
    /// Sums by model, as indices into [`UsageBoard::models`], in that order.
    pub models: Vec<(usize, UsageTotals)>,
}

impl DayUsage {
    /// Returns the input tokens of the day: read from the cache, written to it, and uncached.
    pub fn context(&self) -> [u64; 3] {
        let tokens = self.totals.tokens;
        [tokens.cache_read, tokens.cache_write(), tokens.input]
    }
}

impl UsageBoard {
    /// Adds up the calls that `keep` accepts.
    ///
    /// `resets` are the ends of five-hour windows that the logs contain.
    pub fn of(
        calls: &ModelCalls,
        book: &PriceBook,
        zone: &TimeZone,
        resets: &[Millis],
        keep: impl Fn(&ModelCall<'_>) -> bool + Sync,
    ) -> Self {
        let named = |by: GroupBy| -> Vec<(String, UsageTotals)> {
            let groups = CallGroups::of_calls(calls, by, book, zone, &keep).groups;
            groups.into_iter().map(|group| (name(group.key), group.totals)).collect()
        };
        let models = named(GroupBy::Model);
        let places: HashMap<&str, usize> =
            models.iter().enumerate().map(|(place, (model, _))| (&**model, place)).collect();
        let mut board = Self { projects: named(GroupBy::Project), ..Self::default() };
        for (day, parts) in CallGroups::nested(calls, (GroupBy::Day, GroupBy::Model), book, zone, &keep) {
            board.total += &day.totals;
            let Ok(date) = name(day.key).parse::<Date>() else {
                board.undated += &day.totals;
                continue;
            };
            let parts = parts.groups.into_iter();
            let parts = parts.filter_map(|part| Some((*places.get(&*name(part.key))?, part.totals)));
            let mut by_model: Vec<(usize, UsageTotals)> = parts.collect();
            by_model.sort_by_key(|(model, _)| *model);
            board.days.push(DayUsage { day: date, totals: day.totals, models: by_model });
        }
        board.models = models;
        board.windows = windows(calls, book, resets, keep);
        board
    }
}

/// Returns the value that the calls of a group have in common, as text.
fn name(key: CallGroupKey) -> String {
    match key {
        CallGroupKey::Day(name)
        | CallGroupKey::Week(name)
        | CallGroupKey::Month(name)
        | CallGroupKey::Project(name)
        | CallGroupKey::Model(name)
        | CallGroupKey::Tool(name)
        | CallGroupKey::Session { session: name, .. }
        | CallGroupKey::Branch { branch: name, .. } => name,
    }
}

#[cfg(test)]
mod tests {
    use threadline_entry::LineReader;
    use threadline_testkit::log;
    use threadline_usage::{CallLedger, LogSource, ScanOptions, UsageScan};

    use super::*;

    fn calls(notation: &str) -> ModelCalls {
        let mut scan = UsageScan::new(LogSource::session("s1.jsonl", "s1"), ScanOptions::default());
        let bytes = log(notation);
        let mut lines = LineReader::new(&bytes[..]);
        while let Some(block) = lines.next_block().unwrap() {
            scan.block(&block);
        }
        let mut ledger = CallLedger::default();
        ledger.add(scan.finish());
        ledger.finish()
    }

    #[test]
    fn sums_add_up_and_days_refer_to_models_by_index() {
        let calls = calls(
            r#"
a1        reply msg_1 tool t1 Bash {} model=claude-haiku-4-5 usage={"input_tokens":1000,"cache_read_input_tokens":3000}
a2 <- a1  reply msg_2 text "x" model=claude-opus-5 usage={"output_tokens":90000} @+1d
a3 <- a2  reply msg_3 text "x" model=claude-haiku-4-5 usage={"output_tokens":10}
a4 <- a3  reply msg_4 text "x" model=claude-haiku-4-5 usage={"output_tokens":1} -timestamp
"#,
        );
        let board = UsageBoard::of(&calls, &PriceBook::embedded(), &TimeZone::UTC, &[], |_| true);
        let names =
            |all: &[(String, UsageTotals)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&board.models), ["claude-opus-5", "claude-haiku-4-5"]);
        assert_eq!(names(&board.projects), ["/home/ada/loom"]);
        assert_eq!((board.total.calls, board.undated.calls, board.windows.len()), (4, 1, 2));
        let days: Vec<_> = board
            .days
            .iter()
            .map(|day| {
                (
                    day.day.to_string(),
                    day.models.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
                    day.context(),
                )
            })
            .collect();
        assert_eq!(
            days,
            [
                ("2026-01-01".to_owned(), vec![1], [3000, 0, 1000]),
                ("2026-01-02".to_owned(), vec![0, 1], [0, 0, 0])
            ]
        );
        let none = UsageBoard::of(&calls, &PriceBook::embedded(), &TimeZone::UTC, &[], |_| false);
        assert_eq!(none, UsageBoard::default());
    }
}
