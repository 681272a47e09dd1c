//! Sums of calls.

use std::collections::BTreeSet;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::calls::{CompactionFigures, ModelCall};
use crate::figures::TokenCounts;
use crate::money::Money;
use crate::price_book::{ModelPrice, PriceBook};
use crate::stored::CallSum;

/// The sum of some calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UsageTotals {
    /// The number of calls.
    pub calls: u64,
    /// Their token counts.
    pub tokens: TokenCounts,
    /// The number of web searches.
    pub web_searches: u64,
    /// The cost of the calls that have a price.
    pub cost: Money,
    /// The models without a price; their calls are not included in `cost`.
    pub unpriced: BTreeSet<String>,
    /// The number of calls without a price.
    pub unpriced_calls: u64,
    /// The number of calls that used more output tokens than their log contains.
    pub under_reported: u64,
    /// The number of compactions whose calls are in no log.
    pub unlogged_compactions: u64,
    /// The number of tool calls; set only when grouped by tool.
    pub tool_calls: u64,
}

impl AddAssign<&Self> for UsageTotals {
    fn add_assign(&mut self, other: &Self) {
        self.calls += other.calls;
        self.tokens += &other.tokens;
        self.web_searches += other.web_searches;
        self.cost += other.cost;
        self.unpriced.extend(other.unpriced.iter().cloned());
        self.unpriced_calls += other.unpriced_calls;
        self.under_reported += other.under_reported;
        self.unlogged_compactions += other.unlogged_compactions;
        self.tool_calls += other.tool_calls;
    }
}

impl UsageTotals {
    /// Returns these totals without the calls of `part`, which must be included in them.
    #[must_use]
    pub fn minus(&self, part: &Self) -> Self {
        let unpriced_calls = self.unpriced_calls.saturating_sub(part.unpriced_calls);
        Self {
            calls: self.calls.saturating_sub(part.calls),
            tokens: self.tokens.minus(part.tokens),
            web_searches: self.web_searches.saturating_sub(part.web_searches),
            cost: if part.cost < self.cost { self.cost - part.cost } else { Money::ZERO },
            unpriced: if unpriced_calls > 0 { self.unpriced.clone() } else { BTreeSet::new() },
            unpriced_calls,
            under_reported: self.under_reported.saturating_sub(part.under_reported),
            unlogged_compactions: self.unlogged_compactions.saturating_sub(part.unlogged_compactions),
            tool_calls: self.tool_calls.saturating_sub(part.tool_calls),
        }
    }

    /// Whether `cost` is only a lower bound: some calls have no price, are in no log, or their log contains
    /// too few output tokens.
    pub fn is_lower_bound(&self) -> bool {
        self.unpriced_calls > 0 || self.under_reported > 0 || self.unlogged_compactions > 0
    }

    /// Formats the cost for display: `$0.42`; `≥ $0.42` if it is a lower bound; `no price` if no call has
    /// one.
    pub fn short_cost(&self) -> String {
        if self.unpriced_calls == self.calls && self.calls > 0 && self.cost == Money::ZERO {
            return "no price".to_owned();
        }
        format!("{}{}", if self.is_lower_bound() { "≥ " } else { "" }, self.cost.short())
    }

    /// Returns the names of the models without a price: the first few, and how many more there are.
    pub fn unpriced_models(&self) -> String {
        let names: Vec<&str> = self.unpriced.iter().map(String::as_str).take(8).collect();
        match self.unpriced.len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    /// Returns why `cost` is only a lower bound; `None` if it is exact.
    pub fn caveat(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if self.unpriced_calls > 0 {
            let calls = format_calls(self.unpriced_calls);
            reasons.push(format!("{calls} without a price ({})", self.unpriced_models()));
        }
        if self.under_reported > 0 {
            reasons.push(format!("{} with under-reported output tokens", format_calls(self.under_reported)));
        }
        match self.unlogged_compactions {
            0 => {}
            1 => reasons.push("1 compaction whose call is not logged".to_owned()),
            n => reasons.push(format!("{n} compactions whose calls are not logged")),
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns the totals of a single call.
    pub fn of(call: &ModelCall<'_>, book: &PriceBook) -> Self {
        Self::by_prices(call, book, book.prices(call.model))
    }

    pub(crate) fn by_prices(call: &ModelCall<'_>, book: &PriceBook, prices: &[ModelPrice]) -> Self {
        let mut totals = Self::default();
        totals.count(call, book, prices);
        totals
    }

    /// Adds a call.
    pub(crate) fn count(&mut self, call: &ModelCall<'_>, book: &PriceBook, prices: &[ModelPrice]) {
        match call.compaction {
            Some(CompactionFigures::Unknown) => return self.unlogged_compactions += 1,
            Some(CompactionFigures::Elsewhere) => return,
            Some(CompactionFigures::Totals) | None => {}
        }
        self.calls += 1;
        self.tokens += &call.tokens;
        self.web_searches += call.web_searches;
        self.under_reported += u64::from(call.under_reported);
        match book.cost_by(prices, call) {
            Some(cost) => self.cost += cost,
            None => {
                self.unpriced_calls += 1;
                let is_fast = call.fast && !prices.is_empty();
                let name = if is_fast { format!("{} (fast)", call.model) } else { call.model.to_owned() };
                self.unpriced.insert(name);
            }
        }
    }

    /// Adds a sum of calls; `call` has the sum of their figures.
    pub(crate) fn count_sum(
        &mut self,
        sum: &CallSum,
        call: &ModelCall<'_>,
        book: &PriceBook,
        prices: &[ModelPrice],
    ) {
        self.calls += sum.calls;
        self.tokens += &call.tokens;
        self.web_searches += sum.web_searches;
        self.under_reported += if call.under_reported { sum.calls } else { 0 };
        let call = ModelCall { web_searches: sum.web_searches, ..*call };
        match book.cost_with(prices, &call, sum.context) {
            Some(cost) => self.cost += cost,
            None => {
                self.unpriced_calls += sum.calls;
                self.unpriced.insert(call.model.to_owned());
            }
        }
    }

    /// Returns share `n` of `count` equal parts. Remainders go to the first shares.
    pub(crate) fn share(&self, n: u64, count: u64) -> Self {
        let share = |whole: u64| whole / count + u64::from(n < whole % count);
        let steps = self.cost.steps();
        let count_steps = i128::from(count);
        let first = if n == 0 { steps % count_steps } else { 0 };
        Self {
            calls: share(self.calls),
            tokens: TokenCounts {
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
            unlogged_compactions: share(self.unlogged_compactions),
            tool_calls: 0,
        }
    }
}

/// Formats a number of calls.
pub(crate) fn format_calls(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

#[cfg(test)]
mod tests {
    use super::UsageTotals;

    #[test]
    fn a_text_about_many_models_without_a_price_names_few() {
        let mut totals = UsageTotals { calls: 1000, unpriced_calls: 1000, ..UsageTotals::default() };
        totals.unpriced = (100..1100).map(|idx| format!("m{idx}")).collect();
        let names = "m100, m1000, m1001, m1002, m1003, m1004, m1005, m1006 and 992 more";
        assert_eq!(totals.unpriced_models(), names);
        assert_eq!(totals.caveat().unwrap(), format!("1000 calls without a price ({names})"));
        totals.unpriced = (1..=9).map(|idx| format!("m{idx}")).collect();
        assert_eq!(totals.unpriced_models(), "m1, m2, m3, m4, m5, m6, m7, m8 and 1 more");
    }
}
