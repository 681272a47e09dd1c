//! Calls added up: by time, by place, by model, by tool.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rustc_hash::FxHashMap;
use threadline_entry::Millis;

use crate::book::{Book, Price};
use crate::calls::{Call, Calls};
use crate::figures::Tokens;
use crate::money::Money;
use crate::names::NameId;
use crate::scan::{Row, UNDATED};

/// What calls are added up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The day of the call's first line, in a time zone.
    Day,
    /// The week of that day, from Monday on, numbered as ISO 8601 does.
    Week,
    /// The month of that day.
    Month,
    /// The session that the call belongs to, its sub-agents' calls among them.
    Session,
    /// The directory that the session began in.
    Project,
    /// The model.
    Model,
    /// The tools that the reply called. Figures are split evenly over them; what cannot be split goes to the
    /// first by name.
    Tool,
    /// The branch that was checked out, of one project.
    Branch,
}

/// The sum of some calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Totals {
    /// How many calls.
    pub calls: u64,
    /// What they used.
    pub tokens: Tokens,
    /// How often they searched the web.
    pub web_searches: u64,
    /// What those with a price cost.
    pub cost: Money,
    /// The models that have no price; their calls are not in `cost`.
    pub unpriced: BTreeSet<String>,
    /// How many calls have no price.
    pub unpriced_calls: u64,
    /// How many calls used more output tokens than their log says.
    pub under_reported: u64,
    /// How often a tool was called; only by tool.
    pub tool_calls: u64,
}

impl AddAssign<&Self> for Totals {
    fn add_assign(&mut self, other: &Self) {
        self.calls += other.calls;
        let (ours, theirs) = (&mut self.tokens, &other.tokens);
        ours.input = ours.input.saturating_add(theirs.input);
        ours.output = ours.output.saturating_add(theirs.output);
        ours.cache_read = ours.cache_read.saturating_add(theirs.cache_read);
        ours.cache_write_5m = ours.cache_write_5m.saturating_add(theirs.cache_write_5m);
        ours.cache_write_1h = ours.cache_write_1h.saturating_add(theirs.cache_write_1h);
        self.web_searches += other.web_searches;
        self.cost += other.cost;
        if !other.unpriced.is_subset(&self.unpriced) {
            self.unpriced.extend(other.unpriced.iter().cloned());
        }
        self.unpriced_calls += other.unpriced_calls;
        self.under_reported += other.under_reported;
        self.tool_calls += other.tool_calls;
    }
}

impl Totals {
    /// Whether the calls cost more than `cost` says: some have no price, or a log that tells of less than they used.
    pub fn is_least(&self) -> bool {
        self.unpriced_calls > 0 || self.under_reported > 0
    }

    /// The cost in short, for people: `$0.42`; `≥ $0.42` where it was more; `no price` where nothing has one.
    pub fn short_cost(&self) -> String {
        if self.unpriced_calls == self.calls && self.calls > 0 && self.cost == Money::ZERO {
            return "no price".to_owned();
        }
        format!("{}{}", if self.is_least() { "≥ " } else { "" }, self.cost.short())
    }

    /// Why the calls cost more than `cost` says, in a sentence or two; nothing where they do not.
    pub fn caveat(&self) -> Option<String> {
        let calls = |count: u64| if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
        let mut reasons = Vec::new();
        if self.unpriced_calls > 0 {
            let names: Vec<&str> = self.unpriced.iter().map(|name| &**name).collect();
            reasons.push(format!("{} without a price ({})", calls(self.unpriced_calls), names.join(", ")));
        }
        if self.under_reported > 0 {
            reasons.push(format!("{} with more output than the log says", calls(self.under_reported)));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// A call as a sum of one.
    pub(crate) fn of(call: &Call<'_>, book: &Book) -> Self {
        Self::by_prices(call, book, book.prices(call.model))
    }

    fn by_prices(call: &Call<'_>, book: &Book, prices: &[Price]) -> Self {
        let cost = book.cost_by(prices, call);
        let mut unpriced = BTreeSet::new();
        if cost.is_none() {
            let fast = call.fast && !prices.is_empty();
            unpriced.insert(if fast { format!("{} (fast)", call.model) } else { call.model.to_owned() });
        }
        Self {
            calls: 1,
            tokens: call.tokens,
            web_searches: call.web_searches,
            cost: cost.unwrap_or(Money::ZERO),
            unpriced_calls: u64::from(cost.is_none()),
            unpriced,
            under_reported: u64::from(call.under_reported),
            tool_calls: 0,
        }
    }

    /// The share of the `n`th of `count`: what cannot be split goes to the first.
    fn share(&self, n: u64, count: u64) -> Self {
        let share = |whole: u64| whole / count + u64::from(n < whole % count);
        let steps = self.cost.steps();
        let count_steps = i128::from(count);
        let first = if n == 0 { steps % count_steps } else { 0 };
        Self {
            calls: share(self.calls),
            tokens: Tokens {
                input: share(self.tokens.input),
                output: share(self.tokens.output),
                cache_read: share(self.tokens.cache_read),
                cache_write_5m: share(self.tokens.cache_write_5m),
                cache_write_1h: share(self.tokens.cache_write_1h),
            },
            web_searches: share(self.web_searches),
            cost: Money::from_steps(steps / count_steps + first),
            unpriced: self.unpriced.clone(),
            unpriced_calls: share(self.unpriced_calls),
            under_reported: share(self.under_reported),
            tool_calls: 0,
        }
    }
}

/// What the calls of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// `2026-11-01`; `undated` for calls without a moment.
    Day(String),
    /// `2026-W44`.
    Week(String),
    /// `2026-11`.
    Month(String),
    /// A session and the project it belongs to.
    Session {
        /// Its id.
        session: String,
        /// Where it began.
        project: String,
    },
    /// The directory, else the folder.
    Project(String),
    /// The model's name.
    Model(String),
    /// The tool's name; `(none)` for replies that called none.
    Tool(String),
    /// A branch of a project.
    Branch {
        /// Where the session began.
        project: String,
        /// The branch; empty if none was checked out.
        branch: String,
    },
}

/// Calls that belong together, and their sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they have in common.
    pub key: GroupKey,
    /// Their sum.
    pub totals: Totals,
    /// When the first of them was made, in milliseconds since 1970.
    pub first_at: Option<Millis>,
    /// When the last of them was made.
    pub last_at: Option<Millis>,
}

/// All groups, and the sum of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// By time, the earliest first; sessions by their first call; all else by cost, the dearest first.
    pub groups: Vec<Group>,
    /// The sum over all calls, which is that of the groups.
    pub total: Totals,
}

/// The name of what calls no tool.
const NO_TOOL: &str = "(none)";

impl Groups {
    /// Adds up the calls that `keep` says yes to, given a moment and a session.
    pub fn of(
        calls: &Calls,
        by: By,
        book: &Book,
        zone: &TimeZone,
        keep: impl Fn(Option<Millis>, &str) -> bool,
    ) -> Self {
        Self::of_calls(calls, by, book, zone, |call| keep(call.at, call.session))
    }

    /// Adds up the calls that `keep` says yes to.
    pub fn of_calls(
        calls: &Calls,
        by: By,
        book: &Book,
        zone: &TimeZone,
        keep: impl Fn(&Call<'_>) -> bool,
    ) -> Self {
        let mut adder = Adder::new(calls, book);
        let mut days = Days::new(zone, by);
        for (i, row) in calls.rows.iter().enumerate() {
            let call = calls.call(row);
            if keep(&call) {
                let totals = adder.totals(row, &call);
                adder.put(i, row, &mut days, &totals);
            }
        }
        adder.finish(&days)
    }

    /// Adds up by two things: what the calls have in common in the first, and their groups by the second.
    ///
    /// A group of groups stands where [`Groups::of`] has the group itself. Calls cannot be split over tools here, so
    /// `outer` is not [`By::Tool`].
    pub fn crossed(
        calls: &Calls,
        (outer, inner): (By, By),
        book: &Book,
        zone: &TimeZone,
        keep: impl Fn(&Call<'_>) -> bool,
    ) -> Vec<(Group, Self)> {
        let mut whole = Adder::new(calls, book);
        let mut parts: FxHashMap<GroupId, Adder<'_>> = FxHashMap::default();
        let (mut outer_days, mut inner_days) = (Days::new(zone, outer), Days::new(zone, inner));
        for (i, row) in calls.rows.iter().enumerate() {
            let call = calls.call(row);
            let Some(id) = group_id(calls, row, &mut outer_days).filter(|_| keep(&call)) else { continue };
            let totals = whole.totals(row, &call);
            whole.add(id, row.at, &totals);
            let part = parts.entry(id).or_insert_with(|| Adder::new(calls, book));
            part.put(i, row, &mut inner_days, &totals);
        }
        let groups = whole.into_groups(&outer_days).0;
        let mut part = |id| parts.remove(&id).map(|part| part.finish(&inner_days)).unwrap_or_default();
        groups.into_iter().map(|(id, group)| (group, part(id))).collect()
    }
}

/// What a call is grouped with; `None` by tool, where a call is split.
fn group_id(calls: &Calls, row: &Row, days: &mut Days<'_>) -> Option<GroupId> {
    let file = &calls.files[row.file as usize];
    Some(match days.by {
        By::Day | By::Week | By::Month => (days.of(row.at), 0),
        By::Session => (u64::from(file.session), file.project),
        By::Project => (u64::from(file.project), 0),
        By::Model => (u64::from(row.model), 0),
        By::Branch => (u64::from(file.project), row.branch),
        By::Tool => return None,
    })
}

/// What a group is known by while it grows.
type GroupId = (u64, NameId);

struct Adder<'a> {
    calls: &'a Calls,
    book: &'a Book,
    prices: FxHashMap<NameId, &'a [Price]>,
    groups: FxHashMap<GroupId, (Totals, Millis, Millis)>,
    total: Totals,
}

impl<'a> Adder<'a> {
    fn new(calls: &'a Calls, book: &'a Book) -> Self {
        Self {
            calls,
            book,
            prices: FxHashMap::default(),
            groups: FxHashMap::default(),
            total: Totals::default(),
        }
    }

    fn totals(&mut self, row: &Row, call: &Call<'_>) -> Totals {
        let prices = *self.prices.entry(row.model).or_insert_with(|| self.book.prices(call.model));
        Totals::by_prices(call, self.book, prices)
    }

    fn put(&mut self, place: usize, row: &Row, days: &mut Days<'_>, totals: &Totals) {
        match group_id(self.calls, row, days) {
            Some(id) => self.add(id, row.at, totals),
            None => self.add_by_tool(place as u32, row.at, totals),
        }
    }

    fn add(&mut self, id: GroupId, at: Millis, totals: &Totals) {
        let group = self.groups.entry(id).or_insert((Totals::default(), UNDATED, Millis::MIN));
        group.0 += totals;
        group.1 = group.1.min(at);
        if at != UNDATED {
            group.2 = group.2.max(at);
        }
        self.total += totals;
    }

    /// Splits a call over the tools it called.
    fn add_by_tool(&mut self, row: u32, at: Millis, totals: &Totals) {
        let tools = &self.calls.tools;
        let from = tools.partition_point(|tool| tool.row < row);
        let to = from + tools[from..].partition_point(|tool| tool.row == row);
        let mut counts: BTreeMap<&str, (NameId, u64)> = BTreeMap::new();
        for tool in &tools[from..to] {
            counts.entry(self.calls.names.get(tool.name)).or_insert((tool.name, 0)).1 += 1;
        }
        if counts.is_empty() {
            return self.add((u64::MAX, 0), at, totals);
        }
        let count = counts.len() as u64;
        for (n, (name, uses)) in counts.into_values().enumerate() {
            let share = Totals { tool_calls: uses, ..totals.share(n as u64, count) };
            self.add((u64::from(name), 0), at, &share);
        }
    }

    fn finish(self, days: &Days<'_>) -> Groups {
        let (groups, total) = self.into_groups(days);
        Groups { groups: groups.into_iter().map(|(_, group)| group).collect(), total }
    }

    /// The groups in order, each with what it was known by, and the sum of all.
    fn into_groups(self, days: &Days<'_>) -> (Vec<(GroupId, Group)>, Totals) {
        let by = days.by;
        let name = |id: u64| self.calls.names.get(id as NameId).to_owned();
        let key = |(id, more): GroupId| match by {
            By::Day => GroupKey::Day(days.label(id)),
            By::Week => GroupKey::Week(days.label(id)),
            By::Month => GroupKey::Month(days.label(id)),
            By::Session => GroupKey::Session { session: name(id), project: name(u64::from(more)) },
            By::Project => GroupKey::Project(name(id)),
            By::Model => GroupKey::Model(name(id)),
            By::Tool if id == u64::MAX => GroupKey::Tool(NO_TOOL.to_owned()),
            By::Tool => GroupKey::Tool(name(id)),
            By::Branch => GroupKey::Branch { project: name(id), branch: name(u64::from(more)) },
        };
        let mut groups: Vec<(GroupId, Group)> = self
            .groups
            .into_iter()
            .map(|(id, (totals, first, last))| {
                let first_at = Some(first).filter(|at| *at != UNDATED);
                let last_at = Some(last).filter(|at| *at != Millis::MIN);
                (id, Group { key: key(id), totals, first_at, last_at })
            })
            .collect();
        let first = |group: &Group| group.first_at.unwrap_or(UNDATED);
        match by {
            By::Day | By::Week | By::Month => groups.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key)),
            By::Session => groups.sort_by(|(_, a), (_, b)| (first(a), &a.key).cmp(&(first(b), &b.key))),
            _ => groups.sort_by(|(_, a), (_, b)| {
                let size = |group: &Group| (group.totals.cost, group.totals.tokens.total());
                size(b).cmp(&size(a)).then_with(|| a.key.cmp(&b.key))
            }),
        }
        (groups, self.total)
    }
}

/// Days in a time zone, found quickly for moments that follow each other.
struct Days<'z> {
    zone: &'z TimeZone,
    by: By,
    /// The day of the last moment: where it begins and ends, and its number.
    last: (Millis, Millis, u64),
}

/// The day 0000-01-01 is so many days before 1970.
const FIRST_DAY: i64 = 719_528;
const UNDATED_DAY: u64 = u64::MAX;

impl<'z> Days<'z> {
    fn new(zone: &'z TimeZone, by: By) -> Self {
        Self { zone, by, last: (0, 0, 0) }
    }

    /// The number of the day, week or month that a moment is in: that of its first day.
    fn of(&mut self, at: Millis) -> u64 {
        if at < self.last.0 || at >= self.last.1 {
            let Some(found) = self.find(at) else { return UNDATED_DAY };
            self.last = found;
        }
        self.last.2
    }

    fn find(&self, at: Millis) -> Option<(Millis, Millis, u64)> {
        let moment = Timestamp::from_millisecond(at).ok().filter(|_| at != UNDATED)?;
        let date = moment.to_zoned(self.zone.clone()).date();
        let start = |date: Date| Some(date.to_zoned(self.zone.clone()).ok()?.timestamp().as_millisecond());
        let (from, to) = (start(date)?, start(date.tomorrow().ok()?)?);
        let first = match self.by {
            By::Week => date.checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days()).ok()?,
            By::Month => date.first_of_month(),
            _ => date,
        };
        let epoch = Date::constant(1970, 1, 1);
        let days = i64::from(first.since(epoch).ok()?.get_days());
        Some((from, to, (days + FIRST_DAY) as u64))
    }

    fn label(&self, id: u64) -> String {
        if id == UNDATED_DAY {
            return "undated".to_owned();
        }
        let days = id as i64 - FIRST_DAY;
        let Ok(date) = Date::constant(1970, 1, 1).checked_add(days.days()) else {
            return "undated".to_owned();
        };
        match self.by {
            By::Week => {
                let week = date.iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            By::Month => date.strftime("%Y-%m").to_string(),
            _ => date.to_string(),
        }
    }
}
