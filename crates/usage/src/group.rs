//! Adds calls up by time, place, model or tool.

use std::collections::BTreeMap;
use std::hash::Hash;

use foldhash::{HashMap, HashSet};
use jiff::tz::TimeZone;
use rayon::prelude::*;
use threadline_entry::Millis;

use crate::calls::{CompactionFigures, ModelCall, ModelCalls};
use crate::days::DayLookup;
use crate::name_table::NameId;
use crate::price_book::{ModelPrice, PriceBook};
use crate::scan::{CallRow, ToolUse, UNDATED};
use crate::stored::CallSum;
use crate::totals::UsageTotals;

/// The property that calls are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// The day of the call's first line, in a time zone.
    Day,
    /// The ISO 8601 week of that day.
    Week,
    /// The month of that day.
    Month,
    /// The session that the call belongs to, including its sub-agents.
    Session,
    /// The directory that the session began in.
    Project,
    /// The model.
    Model,
    /// The tools that the reply called. Figures are split evenly between them; remainders go to the first by
    /// name.
    Tool,
    /// The branch that was checked out, per project.
    Branch,
}

impl GroupBy {
    /// All properties.
    pub const ALL: [Self; 8] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Session,
        Self::Project,
        Self::Model,
        Self::Tool,
        Self::Branch,
    ];

    /// Returns the name, as in `usage --by` and in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Session => "session",
            Self::Project => "project",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Branch => "branch",
        }
    }

    /// Returns the property with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// The common property of the calls in a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallGroupKey {
    /// `2026-11-01`; `undated` for calls without a timestamp.
    Day(String),
    /// `2026-W44`.
    Week(String),
    /// `2026-11`.
    Month(String),
    /// A session and its project.
    Session {
        /// The session id.
        session: String,
        /// The directory that the session began in.
        project: String,
    },
    /// The directory, or else the project's folder name.
    Project(String),
    /// The model's name.
    Model(String),
    /// The tool's name; `(none)` for replies without tool calls.
    Tool(String),
    /// A branch of a project.
    Branch {
        /// The directory that the session began in.
        project: String,
        /// The branch; empty if none was checked out.
        branch: String,
    },
}

/// The calls of one group, added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallGroup {
    /// The common property of its calls.
    pub key: CallGroupKey,
    /// Their sum.
    pub totals: UsageTotals,
    /// When the first call was made, in milliseconds since 1970.
    pub first_at: Option<Millis>,
    /// When the last call was made.
    pub last_at: Option<Millis>,
}

/// All groups and their total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGroups {
    /// The groups: days, weeks and months in order of time, sessions by their first call, others by cost,
    /// highest first.
    pub groups: Vec<CallGroup>,
    /// The total of all calls, which equals the sum of the groups.
    pub total: UsageTotals,
}

/// The label for replies without tool calls.
const NO_TOOL: &str = "(none)";

/// The number of calls per parallel task; fewer are added up on one core.
const CHUNK_CALLS: usize = 1 << 14;

impl CallGroups {
    /// Adds up the calls that `keep` accepts, given the time and session of each.
    pub fn of(
        calls: &ModelCalls,
        by: GroupBy,
        book: &PriceBook,
        zone: &TimeZone,
        keep: impl Fn(Option<Millis>, &str) -> bool + Sync,
    ) -> Self {
        Self::of_calls(calls, by, book, zone, |call| keep(call.at, call.session))
    }

    /// Adds up the calls that `keep` accepts, in parallel if there are many.
    pub fn of_calls(
        calls: &ModelCalls,
        by: GroupBy,
        book: &PriceBook,
        zone: &TimeZone,
        keep: impl Fn(&ModelCall<'_>) -> bool + Sync,
    ) -> Self {
        let add = |(n, rows): (usize, &[CallRow])| {
            let mut adder = GroupAdder::new(calls, book);
            let mut days = DayLookup::new(zone, by);
            for (row, place) in rows.iter().zip(n * CHUNK_CALLS..) {
                let call = calls.call(row);
                if call.compaction != Some(CompactionFigures::Elsewhere) && keep(&call) {
                    adder.count(place, row, &call, &mut days, |id| id);
                }
            }
            adder
        };
        let mut adder = match &*calls.rows {
            rows if rows.len() <= CHUNK_CALLS => add((0, rows)),
            rows => rows
                .par_chunks(CHUNK_CALLS)
                .enumerate()
                .map(add)
                .reduce(|| GroupAdder::new(calls, book), GroupAdder::join),
        };
        let mut days = DayLookup::new(zone, by);
        for sum in &calls.sums {
            let call = calls.call(&sum.row);
            if let Some(id) = group_id(calls, &sum.row, &mut days).filter(|_| keep(&call)) {
                adder.count_sum(id, sum, &call);
            }
        }
        Self::new(calls, adder.groups, &days)
    }

    /// Keeps only the groups that `wanted` accepts, and recomputes the total.
    pub fn retain(&mut self, wanted: impl Fn(&CallGroupKey) -> bool) {
        self.groups.retain(|group| wanted(&group.key));
        self.total = UsageTotals::default();
        for group in &self.groups {
            self.total += &group.totals;
        }
    }

    /// Groups calls by two properties: by `outer`, and within each group by `inner`.
    ///
    /// The outer groups are in the order of [`CallGroups::of`]. Calls are not split between tools here, so
    /// `outer` must not be [`GroupBy::Tool`]; no groups are returned in that case.
    pub fn nested(
        calls: &ModelCalls,
        (outer, inner): (GroupBy, GroupBy),
        book: &PriceBook,
        zone: &TimeZone,
        keep: impl Fn(&ModelCall<'_>) -> bool + Sync,
    ) -> Vec<(CallGroup, Self)> {
        let add = |(n, rows): (usize, &[CallRow])| {
            let mut adder = GroupAdder::new(calls, book);
            let (mut outer_days, mut inner_days) = (DayLookup::new(zone, outer), DayLookup::new(zone, inner));
            for (row, place) in rows.iter().zip(n * CHUNK_CALLS..) {
                let call = calls.call(row);
                if let Some(id) = group_id(calls, row, &mut outer_days).filter(|_| keep(&call)) {
                    adder.count(place, row, &call, &mut inner_days, |inner| (id, inner));
                }
            }
            adder
        };
        let chunks = calls.rows.par_chunks(CHUNK_CALLS).enumerate().map(add);
        let sums = chunks.reduce(|| GroupAdder::new(calls, book), GroupAdder::join).groups;
        let mut whole = GroupAdder::new(calls, book);
        let mut parts: HashMap<GroupId, Vec<(GroupId, GroupSum)>> = HashMap::default();
        for ((id, inner), part) in sums {
            let totals = &mut whole.sum(id, part.first, part.last).totals;
            *totals += &part.totals;
            totals.tool_calls = 0;
            parts.entry(id).or_default().push((inner, part));
        }
        let (outer_days, inner_days) = (DayLookup::new(zone, outer), DayLookup::new(zone, inner));
        let groups = sorted_groups(calls, whole.groups, &outer_days).0;
        let with_parts = groups.into_iter().map(|(id, group)| (group, parts.remove(&id).unwrap_or_default()));
        let with_parts: Vec<(CallGroup, Vec<(GroupId, GroupSum)>)> = with_parts.collect();
        let finish = |(group, parts)| (group, Self::new(calls, parts, &inner_days));
        with_parts.into_par_iter().map(finish).collect()
    }

    fn new(calls: &ModelCalls, sums: Vec<(GroupId, GroupSum)>, days: &DayLookup<'_>) -> Self {
        let (groups, total) = sorted_groups(calls, sums, days);
        Self { groups: groups.into_iter().map(|(_, group)| group).collect(), total }
    }
}

/// Returns the group of a call; `None` for [`GroupBy::Tool`], where a call is split.
fn group_id(calls: &ModelCalls, row: &CallRow, days: &mut DayLookup<'_>) -> Option<GroupId> {
    let file = &calls.files[row.file as usize];
    Some(match days.by {
        GroupBy::Day | GroupBy::Week | GroupBy::Month => (days.of(row.at), 0),
        GroupBy::Session => (u64::from(file.session), file.project),
        GroupBy::Project => (u64::from(file.project), 0),
        GroupBy::Model => (u64::from(row.model), 0),
        GroupBy::Branch => (u64::from(file.project), row.branch),
        GroupBy::Tool => return None,
    })
}

/// The id of a group while calls are added up.
type GroupId = (u64, NameId);

/// The id of the group without tool calls.
const NO_TOOL_ID: GroupId = (u64::MAX, 0);

/// Returns the key of a group.
fn key_of(calls: &ModelCalls, (id, more): GroupId, days: &DayLookup<'_>) -> CallGroupKey {
    let name = |id: u64| calls.names.get(id as NameId).to_owned();
    match days.by {
        GroupBy::Day => CallGroupKey::Day(days.label(id)),
        GroupBy::Week => CallGroupKey::Week(days.label(id)),
        GroupBy::Month => CallGroupKey::Month(days.label(id)),
        GroupBy::Session => CallGroupKey::Session { session: name(id), project: name(u64::from(more)) },
        GroupBy::Project => CallGroupKey::Project(name(id)),
        GroupBy::Model => CallGroupKey::Model(name(id)),
        GroupBy::Tool if (id, more) == NO_TOOL_ID => CallGroupKey::Tool(NO_TOOL.to_owned()),
        GroupBy::Tool => CallGroupKey::Tool(name(id)),
        GroupBy::Branch => CallGroupKey::Branch { project: name(id), branch: name(u64::from(more)) },
    }
}

impl ModelCalls {
    /// Marks the calls that belong to groups that `wanted` accepts; for [`GroupBy::Tool`], calls with at
    /// least one such tool.
    pub fn in_groups(
        &self,
        by: GroupBy,
        zone: &TimeZone,
        wanted: impl Fn(&CallGroupKey) -> bool,
    ) -> Vec<bool> {
        let mut days = DayLookup::new(zone, by);
        let mut known: HashMap<GroupId, bool> = HashMap::default();
        let mut is_wanted = |id: GroupId, days: &DayLookup<'_>| {
            *known.entry(id).or_insert_with(|| wanted(&key_of(self, id, days)))
        };
        let rows = self.rows.iter().zip(0..);
        rows.map(|(row, place)| match group_id(self, row, &mut days) {
            Some(id) => is_wanted(id, &days),
            None => match self.tools_of(place) {
                [] => is_wanted(NO_TOOL_ID, &days),
                tools => tools.iter().any(|tool| is_wanted((u64::from(tool.name), 0), &days)),
            },
        })
        .collect()
    }

    /// Returns how often each session called each tool, with its sub-agents and on all branches. A tool call
    /// that the logs of several sessions contain counts in each of them.
    pub fn tools_by_session(&self) -> HashMap<&str, Vec<(&str, u64)>> {
        let mut counts: HashMap<(NameId, NameId), u64> = HashMap::default();
        let shared: HashSet<u32> = self.shared_tools.iter().map(|(_, tool)| tool.row).collect();
        for tool in self.tools.iter().filter(|tool| !shared.contains(&tool.row)) {
            let file = &self.files[self.rows[tool.row as usize].file as usize];
            *counts.entry((file.session, tool.name)).or_default() += 1;
        }
        for (session, tool) in &self.shared_tools {
            *counts.entry((*session, tool.name)).or_default() += 1;
        }
        let mut sessions: HashMap<&str, Vec<(&str, u64)>> = HashMap::default();
        for ((session, tool), count) in counts {
            sessions.entry(self.names.get(session)).or_default().push((self.names.get(tool), count));
        }
        sessions
    }

    /// Returns the tools that a call used.
    fn tools_of(&self, row: u32) -> &[ToolUse] {
        let from = self.tools.partition_point(|tool| tool.row < row);
        let to = from + self.tools[from..].partition_point(|tool| tool.row == row);
        &self.tools[from..to]
    }
}

/// Adds up calls by the id of their group.
struct GroupAdder<'a, Id> {
    calls: &'a ModelCalls,
    book: &'a PriceBook,
    /// The prices of the last model: the next call nearly always has the same.
    prices: Option<(NameId, &'a [ModelPrice])>,
    groups: Vec<(Id, GroupSum)>,
    places: HashMap<Id, usize>,
    /// The index of the last group.
    last: usize,
}

/// The sum of a group, and the times of its first and last call.
struct GroupSum {
    totals: UsageTotals,
    first: Millis,
    last: Millis,
}

impl<'a, Id: Copy + Eq + Hash> GroupAdder<'a, Id> {
    fn new(calls: &'a ModelCalls, book: &'a PriceBook) -> Self {
        Self { calls, book, prices: None, groups: Vec::new(), places: HashMap::default(), last: 0 }
    }

    /// Merges two partial results.
    fn join(mut self, other: Self) -> Self {
        for (id, sum) in other.groups {
            self.sum(id, sum.first, sum.last).totals += &sum.totals;
        }
        self
    }

    fn prices(&mut self, row: &CallRow, call: &ModelCall<'_>) -> &'a [ModelPrice] {
        match self.prices {
            Some((model, prices)) if model == row.model => prices,
            _ => self.prices.insert((row.model, self.book.prices(call.model))).1,
        }
    }

    /// Adds a call, given the id of its group or, if it is split, those of its groups.
    fn count(
        &mut self,
        place: usize,
        row: &CallRow,
        call: &ModelCall<'_>,
        days: &mut DayLookup<'_>,
        id: impl Fn(GroupId) -> Id,
    ) {
        match group_id(self.calls, row, days) {
            Some(group) => self.count_in(id(group), row, call),
            None => {
                let prices = self.prices(row, call);
                let totals = UsageTotals::by_prices(call, self.book, prices);
                self.add_by_tool(place as u32, row.at, &totals, id);
            }
        }
    }

    fn count_in(&mut self, id: Id, row: &CallRow, call: &ModelCall<'_>) {
        let (book, prices) = (self.book, self.prices(row, call));
        self.sum_at(id, row.at).totals.count(call, book, prices);
    }

    fn count_sum(&mut self, id: Id, sum: &CallSum, call: &ModelCall<'_>) {
        let (book, prices) = (self.book, self.prices(&sum.row, call));
        let last = if sum.last_at == UNDATED { Millis::MIN } else { sum.last_at };
        self.sum(id, sum.row.at, last).totals.count_sum(sum, call, book, prices);
    }

    /// Returns the sum of a group and extends its time range to `at`.
    fn sum_at(&mut self, id: Id, at: Millis) -> &mut GroupSum {
        self.sum(id, at, if at == UNDATED { Millis::MIN } else { at })
    }

    /// Returns the sum of a group and extends its time range to `first..=last`.
    fn sum(&mut self, id: Id, first: Millis, last: Millis) -> &mut GroupSum {
        if self.groups.get(self.last).is_none_or(|(known, _)| *known != id) {
            self.last = *self.places.entry(id).or_insert_with(|| {
                let none = GroupSum { totals: UsageTotals::default(), first: UNDATED, last: Millis::MIN };
                self.groups.push((id, none));
                self.groups.len() - 1
            });
        }
        let sum = &mut self.groups[self.last].1;
        sum.first = sum.first.min(first);
        sum.last = sum.last.max(last);
        sum
    }

    /// Splits a call between the tools it called.
    fn add_by_tool(&mut self, row: u32, at: Millis, totals: &UsageTotals, id: impl Fn(GroupId) -> Id) {
        let mut counts: BTreeMap<&str, (NameId, u64)> = BTreeMap::new();
        for tool in self.calls.tools_of(row) {
            counts.entry(self.calls.names.get(tool.name)).or_insert((tool.name, 0)).1 += 1;
        }
        if counts.is_empty() {
            self.sum_at(id(NO_TOOL_ID), at).totals += totals;
            return;
        }
        let count = counts.len() as u64;
        for (n, (name, uses)) in counts.into_values().enumerate() {
            let share = UsageTotals { tool_calls: uses, ..totals.share(n as u64, count) };
            self.sum_at(id((u64::from(name), 0)), at).totals += &share;
        }
    }
}

/// Returns the groups in order, each with its id, and the total.
fn sorted_groups(
    calls: &ModelCalls,
    sums: Vec<(GroupId, GroupSum)>,
    days: &DayLookup<'_>,
) -> (Vec<(GroupId, CallGroup)>, UsageTotals) {
    let mut total = UsageTotals::default();
    let group = |(id, GroupSum { totals, first, last })| {
        total += &totals;
        let first_at = Some(first).filter(|at| *at != UNDATED);
        let last_at = Some(last).filter(|at| *at != Millis::MIN);
        (id, CallGroup { key: key_of(calls, id, days), totals, first_at, last_at })
    };
    let mut groups: Vec<(GroupId, CallGroup)> = sums.into_iter().map(group).collect();
    let first = |group: &CallGroup| group.first_at.unwrap_or(UNDATED);
    match days.by {
        GroupBy::Day | GroupBy::Week | GroupBy::Month => groups.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key)),
        GroupBy::Session => groups.sort_by(|(_, a), (_, b)| (first(a), &a.key).cmp(&(first(b), &b.key))),
        _ => groups.sort_by(|(_, a), (_, b)| {
            let size = |group: &CallGroup| (group.totals.cost, group.totals.tokens.total());
            size(b).cmp(&size(a)).then_with(|| a.key.cmp(&b.key))
        }),
    }
    (groups, total)
}
