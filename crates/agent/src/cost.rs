//! Tokens and cost of the requests of this process, by model.

use threadline_api::Usage;
use threadline_usage::PriceBook;

/// The tokens and the cost of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelUsage {
    /// The name of the model.
    pub model: String,
    /// The tokens and web searches of all its replies.
    pub usage: Usage,
    /// The cost in dollars; 0 if the model has no price.
    pub cost_usd: f64,
}

/// The tokens and the cost of all requests of this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelUsageTotals {
    /// By model, in the order of their first use.
    pub models: Vec<ModelUsage>,
}

impl ModelUsageTotals {
    /// Adds a reply of `model`.
    pub fn add(&mut self, model: &str, usage: &Usage, prices: &PriceBook) {
        let cost = cost(model, usage, prices);
        let entry = self.entry(model);
        entry.usage = entry.usage.plus(*usage);
        entry.cost_usd += cost;
    }

    /// Adds the totals of a sub-agent.
    pub fn merge(&mut self, other: &Self) {
        for added in &other.models {
            let entry = self.entry(&added.model);
            entry.usage = entry.usage.plus(added.usage);
            entry.cost_usd += added.cost_usd;
        }
    }

    fn entry(&mut self, model: &str) -> &mut ModelUsage {
        let position = self.models.iter().position(|entry| entry.model == model).unwrap_or_else(|| {
            self.models.push(ModelUsage { model: model.to_owned(), ..ModelUsage::default() });
            self.models.len() - 1
        });
        &mut self.models[position]
    }

    /// The cost of all models in dollars.
    pub fn cost_usd(&self) -> f64 {
        self.models.iter().map(|entry| entry.cost_usd).sum()
    }
}

/// The price of one web search in dollars.
const WEB_SEARCH_USD: f64 = 0.01;

/// Returns the cost of a reply in dollars; 0 if the model has no price.
///
/// The figures are added in the order of Claude Code, as 64-bit floats, so that both clients report the same
/// sum. `threadline usage` computes exactly.
fn cost(model: &str, usage: &Usage, prices: &PriceBook) -> f64 {
    let name = model.strip_suffix("[1m]").unwrap_or(model);
    let name = threadline_usage::model(name).name;
    let Some(price) = prices.prices(&name).last() else { return 0.0 };
    // A rate is in 10⁻¹⁵ dollars per token; Claude Code multiplies with dollars per million tokens.
    let part = |tokens: u64, rate: u64| tokens as f64 / 1e6 * (rate as f64 / 1e9);
    let rates = &price.rates;
    let short_writes = usage.cache_write.saturating_sub(usage.cache_write_1h);
    part(usage.input, rates.input)
        + part(usage.output, rates.output)
        + part(usage.cache_read, rates.read)
        + part(short_writes, rates.write_5m)
        + part(usage.cache_write_1h, rates.write_1h)
        + usage.web_searches as f64 * WEB_SEARCH_USD
}
