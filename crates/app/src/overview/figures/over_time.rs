//! The figures over time: cost and tokens by model and bin, the calendar, and the prompts by hour.

use foldhash::HashMap;
use threadline_entry::Millis;
use threadline_usage::UsageTotals;
use threadline_view::{BinSize, DayActivity, Overview, UsageBin};

use super::super::facts::{OverviewFacts, QUARTER, UNDATED, UsageFact};
use super::super::local_time::{LocalTime, date_of, day_number, since_text, start_of_day, until_text, zoned};
use super::Computation;

impl OverviewFacts {
    /// Returns all models, highest cost first: the order of [`threadline_usage::CallGroups`].
    pub fn models(&self) -> Vec<String> {
        self.model_totals(|_| true).into_iter().map(|(model, _)| self.name(model).to_owned()).collect()
    }

    /// Returns the sums of some facts by model, highest cost first.
    fn model_totals(&self, is_kept: impl Fn(&UsageFact) -> bool) -> Vec<(u32, UsageTotals)> {
        let mut models: HashMap<u32, UsageTotals> = HashMap::default();
        for fact in self.usage.iter().filter(|fact| is_kept(fact)) {
            *models.entry(fact.model).or_default() += &fact.totals;
        }
        let mut models: Vec<(u32, UsageTotals)> = models.into_iter().collect();
        models.sort_by(|(a, x), (b, y)| {
            let tokens = |totals: &UsageTotals| totals.tokens.total();
            let by_name = self.name(*a).cmp(self.name(*b));
            y.cost.cmp(&x.cost).then_with(|| tokens(y).cmp(&tokens(x))).then(by_name)
        });
        models
    }
}

impl Computation<'_> {
    /// Adds cost and tokens by model and over time.
    pub(super) fn add_usage(&self, overview: &mut Overview) {
        let facts = self.facts;
        for fact in facts.usage.iter().filter(|fact| self.contains(fact.at)) {
            if fact.is_agent {
                overview.agent_usage += &fact.totals;
            }
            if fact.at == UNDATED {
                overview.undated += &fact.totals;
            }
        }
        let models = facts.model_totals(|fact| self.contains(fact.at));
        let places: HashMap<u32, usize> =
            models.iter().enumerate().map(|(place, (model, _))| (*model, place)).collect();
        let mut bins = self.bins();
        let mut places_in_bins: HashMap<(usize, usize), usize> = HashMap::default();
        let mut local = LocalTime::new(self.zone);
        for fact in facts.usage.iter().filter(|fact| self.contains(fact.at)) {
            let Some(hour) = local.hour_of(fact.at) else { continue };
            let start = match bins.size {
                BinSize::Hour => hour.day * 24 + hour.hour as i64,
                size => day_number(size.first_day(date_of(hour.day))),
            };
            let place = bins.starts.partition_point(|known| *known <= start).saturating_sub(1);
            let Some(bin) = bins.bins.get_mut(place) else { continue };
            bin.totals += &fact.totals;
            let model = places[&fact.model];
            let in_bin = *places_in_bins.entry((place, model)).or_insert_with(|| {
                bin.models.push((model, UsageTotals::default()));
                bin.models.len() - 1
            });
            bin.models[in_bin].1 += &fact.totals;
        }
        bins.bins.iter_mut().for_each(|bin| bin.models.sort_by_key(|(model, _)| *model));
        overview.models =
            models.into_iter().map(|(model, totals)| (self.shown(facts.name(model)), totals)).collect();
        (overview.bin_size, overview.bins) = (bins.size, bins.bins);
    }

    /// Returns the empty bins of the period.
    fn bins(&self) -> EmptyBins {
        let facts = self.facts;
        let now = self.now.timestamp().as_millisecond();
        let first_fact = facts.usage.iter().map(|fact| fact.at).find(|at| *at != UNDATED);
        let from = self.range.range.from.or(first_fact).unwrap_or(now);
        let end = self.range.end(self.now);
        // A period that is not over yet ends today.
        let today_ends = start_of_day(self.now.date().tomorrow().unwrap_or(self.now.date()), self.zone);
        let end = end.min(today_ends.max(from + 1));
        let (Some(first), Some(last)) = (zoned(from, self.zone), zoned(end - 1, self.zone)) else {
            return EmptyBins::default();
        };
        let days = day_number(last.date()) - day_number(first.date()) + 1;
        let size = BinSize::for_days(days);
        let mut bins = EmptyBins { size, ..EmptyBins::default() };
        let limits = (from, end);
        if size == BinSize::Hour {
            self.add_hours(&mut bins, limits);
            return bins;
        }
        let mut day = size.first_day(last.date());
        let mut after = size.next_first_day(day);
        while bins.bins.len() < BinSize::MAX_BINS {
            let (start, end) = (start_of_day(day, self.zone), start_of_day(after, self.zone));
            bins.push(day_number(day), self.bin(size.label(day), (start, end), limits));
            let Some(before) = day.yesterday().ok().filter(|_| start > from) else { break };
            (day, after) = (size.first_day(before), day);
        }
        bins.reverse();
        bins
    }

    fn add_hours(&self, bins: &mut EmptyBins, limits: (Millis, Millis)) {
        const HOUR: Millis = 60 * 60 * 1000;
        let mut local = LocalTime::new(self.zone);
        let (from, end) = limits;
        let is_one_day = end - from <= 25 * HOUR;
        // Hours begin at a multiple of a quarter of an hour in every zone.
        let mut at = from;
        while at < end && bins.bins.len() < BinSize::MAX_BINS {
            let Some(hour) = local.hour_of(at) else { break };
            let start = at;
            while at < end && local.hour_of(at) == Some(hour) {
                at += QUARTER;
            }
            let day = if is_one_day { String::new() } else { format!("{} ", date_of(hour.day)) };
            let label = format!("{day}{:02}:00", hour.hour);
            bins.push(hour.day * 24 + hour.hour as i64, self.bin(label, (start, at), limits));
        }
    }

    /// Returns an empty bin, limited to the period.
    fn bin(&self, label: String, (start, end): (Millis, Millis), (from, to): (Millis, Millis)) -> UsageBin {
        UsageBin {
            label,
            since: since_text(start.max(from), self.zone),
            until: until_text(end.min(to), self.zone),
            totals: UsageTotals::default(),
            models: Vec::new(),
        }
    }

    /// Adds the calendar and the prompts by hour.
    pub(super) fn add_calendar(&self, overview: &mut Overview) {
        let last = zoned(self.range.end(self.now) - 1, self.zone);
        let last = last.map_or(self.now.date(), |last| last.date()).min(self.now.date());
        let year = jiff::Span::new().weeks(52);
        let first = BinSize::Week.first_day(last.checked_sub(year).unwrap_or(last));
        let first_number = day_number(first);
        let days = (day_number(last) - first_number + 1).clamp(1, 400);
        overview.calendar = (0..days)
            .map(|day| DayActivity { day: date_of(first_number + day), prompts: 0, cost: Default::default() })
            .collect();
        let place = |day: i64| usize::try_from(day - first_number).ok();
        let mut local = LocalTime::new(self.zone);
        for mark in &self.facts.prompts {
            let Some(hour) = local.hour_of(mark.at) else { continue };
            if self.contains(mark.at) {
                overview.hours[hour.weekday()][hour.hour] += 1;
            }
            if let Some(day) = place(hour.day).and_then(|place| overview.calendar.get_mut(place)) {
                day.prompts += 1;
            }
        }
        for fact in &self.facts.usage {
            let Some(hour) = local.hour_of(fact.at) else { continue };
            if let Some(day) = place(hour.day).and_then(|place| overview.calendar.get_mut(place)) {
                day.cost += fact.totals.cost;
            }
        }
    }
}

/// Bins without content.
#[derive(Default)]
struct EmptyBins {
    size: BinSize,
    /// The number of the first hour or day of each bin, ascending.
    starts: Vec<i64>,
    bins: Vec<UsageBin>,
}

impl EmptyBins {
    fn push(&mut self, start: i64, bin: UsageBin) {
        self.starts.push(start);
        self.bins.push(bin);
    }

    fn reverse(&mut self) {
        self.starts.reverse();
        self.bins.reverse();
    }
}
