//! The data of the usage page: sums by day, model and project, cache shares, and five-hour windows.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadline_entry::Millis;
use threadline_usage::{Book, By, Call, Calls, GroupKey, Groups, Totals, Window, windows};

/// The data of the usage page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageBoard {
    /// The sum of all calls.
    pub total: Totals,
    /// Days with calls, in order; undated calls are in none of them.
    pub days: Vec<DayUse>,
    /// The sum of the calls without a timestamp.
    pub undated: Totals,
    /// Models, highest cost first.
    pub models: Vec<(String, Totals)>,
    /// Projects, highest cost first.
    pub projects: Vec<(String, Totals)>,
    /// Five-hour windows, in order.
    pub windows: Vec<Window>,
}

/// The usage of one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayUse {
    /// The day.
    pub day: Date,
    /// The sum.
    pub totals: Totals,
    /// Sums by model, as indices into [`UsageBoard::models`], in that order.
    pub models: Vec<(usize, Totals)>,
}

impl DayUse {
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
        calls: &Calls,
        book: &Book,
        zone: &TimeZone,
        resets: &[Millis],
        keep: impl Fn(&Call<'_>) -> bool + Sync,
    ) -> Self {
        let named = |by: By| -> Vec<(String, Totals)> {
            let groups = Groups::of_calls(calls, by, book, zone, &keep).groups;
            groups.into_iter().map(|group| (name(group.key), group.totals)).collect()
        };
        let models = named(By::Model);
        let mut board = Self { projects: named(By::Project), ..Self::default() };
        for (day, parts) in Groups::crossed(calls, (By::Day, By::Model), book, zone, &keep) {
            board.total += &day.totals;
            let Ok(date) = name(day.key).parse::<Date>() else {
                board.undated += &day.totals;
                continue;
            };
            let place = |model: &str| models.iter().position(|(known, _)| known == model);
            let parts = parts.groups.into_iter();
            let parts = parts.filter_map(|part| Some((place(&name(part.key))?, part.totals)));
            let mut by_model: Vec<(usize, Totals)> = parts.collect();
            by_model.sort_by_key(|(model, _)| *model);
            board.days.push(DayUse { day: date, totals: day.totals, models: by_model });
        }
        board.models = models;
        board.windows = windows(calls, book, resets, keep);
        board
    }
}

/// Returns the value that the calls of a group have in common, as text.
fn name(key: GroupKey) -> String {
    match key {
        GroupKey::Day(name)
        | GroupKey::Week(name)
        | GroupKey::Month(name)
        | GroupKey::Project(name)
        | GroupKey::Model(name)
        | GroupKey::Tool(name)
        | GroupKey::Session { session: name, .. }
        | GroupKey::Branch { branch: name, .. } => name,
    }
}

#[cfg(test)]
mod tests {
    use threadline_entry::Lines;
    use threadline_testkit::log;
    use threadline_usage::{Ledger, Scan, Source, Wants};

    use super::*;

    fn calls(notation: &str) -> Calls {
        let mut scan = Scan::new(Source::session("s1.jsonl", "s1"), Wants::default());
        let bytes = log(notation);
        let mut lines = Lines::new(&bytes[..]);
        while let Some(block) = lines.next_block().unwrap() {
            scan.block(&block);
        }
        let mut ledger = Ledger::default();
        ledger.absorb(scan.finish());
        ledger.settle()
    }

    #[test]
    fn a_board_adds_up_and_names_models_by_their_place() {
        let calls = calls(
            r#"
a1        reply msg_1 tool t1 Bash {} model=claude-haiku-4-5 usage={"input_tokens":1000,"cache_read_input_tokens":3000}
a2 <- a1  reply msg_2 text "x" model=claude-opus-5 usage={"output_tokens":90000} @+1d
a3 <- a2  reply msg_3 text "x" model=claude-haiku-4-5 usage={"output_tokens":10}
a4 <- a3  reply msg_4 text "x" model=claude-haiku-4-5 usage={"output_tokens":1} -timestamp
"#,
        );
        let board = UsageBoard::of(&calls, &Book::embedded(), &TimeZone::UTC, &[], |_| true);
        let names = |all: &[(String, Totals)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
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
        let none = UsageBoard::of(&calls, &Book::embedded(), &TimeZone::UTC, &[], |_| false);
        assert_eq!(none, UsageBoard::default());
    }
}
