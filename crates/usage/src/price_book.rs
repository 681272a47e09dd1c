//! The price book: prices per model and start date, with their sources.

use foldhash::HashMap;
use sha2::{Digest, Sha256};
use threadline_entry::{Json, Millis};

use crate::calls::ModelCall;
use crate::model::model;
use crate::money::{Money, decimal};

/// The prices of models over time.
///
/// A model that is not in the book has no price; prices are never guessed.
#[derive(Clone, Debug)]
pub struct PriceBook {
    /// Prices by model, oldest first.
    prices: HashMap<String, Vec<ModelPrice>>,
    /// The price of a web search, in steps of 10⁻¹⁵ dollars.
    web_search: u64,
    updated: String,
    digest: String,
}

/// The price of a model from a date on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPrice {
    /// When the price takes effect. The oldest price of a model also applies before.
    pub from: Option<Millis>,
    /// The prices of tokens.
    pub rates: TokenRates,
    /// The prices for a whole request if its input, including cached tokens, exceeds this number of tokens.
    pub long: Option<(u64, TokenRates)>,
    /// The multiplier of fast mode, in thousandths; `None` if the model has no price for fast mode.
    pub fast: Option<u64>,
    /// The multiplier of `inference_geo: us`, in thousandths.
    pub us: u64,
    /// The multiplier of a regional endpoint, in thousandths.
    pub regional: u64,
    /// The source of the price.
    pub source: String,
}

/// The price of one token of each kind, in steps of 10⁻¹⁵ dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct TokenRates {
    pub input: u64,
    pub output: u64,
    pub write_5m: u64,
    pub write_1h: u64,
    pub read: u64,
}

/// Why a price book could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriceBookError {
    /// It is not a JSON object with a list `prices`.
    #[error("a price book must be a JSON object with an array `prices`")]
    Shape,
    /// A field of a price is missing or has the wrong type.
    #[error("price {number}: expected {expected} in `{field}`")]
    Field {
        /// The number of the price in the list, counted from 1.
        number: usize,
        /// The field.
        field: &'static str,
        /// The expected type of value.
        expected: &'static str,
    },
}

const EMBEDDED: &str = include_str!("../prices.json");
/// The multiplier 1 in thousandths, and its square.
const ONE: u64 = 1000;
const ONE_SQUARED: i128 = (ONE * ONE) as i128;

impl PriceBook {
    /// Returns the price book that is compiled into the program.
    ///
    /// # Panics
    ///
    /// Never: a test parses the same file.
    pub fn embedded() -> Self {
        let empty =
            Self { prices: HashMap::default(), web_search: 0, updated: String::new(), digest: String::new() };
        let book = empty.with(EMBEDDED);
        debug_assert!(book.is_ok(), "{book:?}");
        book.unwrap_or_else(|_| unreachable!("the embedded price book is valid"))
    }

    /// Returns the book with another one merged into it: the prices that `json` has for a model replace all
    /// existing ones.
    pub fn with(mut self, json: &str) -> Result<Self, PriceBookError> {
        let book = Json::parse(json).ok_or(PriceBookError::Shape)?;
        let list = book.get("prices").ok_or(PriceBookError::Shape)?;
        let mut named: HashMap<String, Vec<ModelPrice>> = HashMap::default();
        for (i, json) in list.items().enumerate() {
            let (name, price) = read_price(json, i + 1)?;
            named.entry(name).or_default().push(price);
        }
        for (name, mut prices) in named {
            prices.sort_by_key(|price| price.from);
            self.prices.insert(name, prices);
        }
        if let Some(price) = book.get("web_search").and_then(|json| decimal(json.raw(), 15)) {
            self.web_search = price;
        }
        if let Some(updated) = book.get("updated").and_then(Json::as_str) {
            self.updated = updated.into_owned();
        }
        let mut hash = Sha256::new();
        hash.update(&self.digest);
        hash.update(json);
        self.digest = const_hex::encode(&hash.finalize()[..6]);
        Ok(self)
    }

    /// Returns the first digits of a hash over all sources of the book.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the date of the last update.
    pub fn updated(&self) -> &str {
        &self.updated
    }

    /// Returns the prices of a model, oldest first; empty if the model is unknown.
    pub fn prices(&self, name: &str) -> &[ModelPrice] {
        self.prices.get(name).map_or(&[], |prices| prices)
    }

    /// Returns the cost of a call; `None` if the model, or the mode it ran in, has no price.
    pub fn cost(&self, call: &ModelCall<'_>) -> Option<Money> {
        self.cost_by(self.prices(call.model), call)
    }

    /// Returns the numbers of input tokens above which a call has another price, sorted.
    pub fn context_limits(&self) -> Vec<u64> {
        let prices = self.prices.values().flatten();
        let mut limits: Vec<u64> =
            prices.filter_map(|price| price.long.as_ref().map(|(above, _)| *above)).collect();
        limits.sort_unstable();
        limits.dedup();
        limits
    }

    /// Returns the same, for callers that have looked up the model's prices already.
    pub(crate) fn cost_by(&self, prices: &[ModelPrice], call: &ModelCall<'_>) -> Option<Money> {
        // The totals of compactions are those of several calls.
        let context = if call.compaction.is_some() { 0 } else { call.tokens.context() };
        self.cost_with(prices, call, context)
    }

    /// Returns the same, with another number of input tokens to decide between two prices.
    pub(crate) fn cost_with(
        &self,
        prices: &[ModelPrice],
        call: &ModelCall<'_>,
        context: u64,
    ) -> Option<Money> {
        let day = call.at.unwrap_or(Millis::MAX);
        let price = prices.iter().rev().find(|price| price.from.is_none_or(|from| from <= day));
        let price = price.or(prices.first())?;
        let tokens = call.tokens;
        let rates = match &price.long {
            Some((above, rates)) if context > *above => rates,
            _ => &price.rates,
        };
        let fast = if call.fast { price.fast? } else { ONE };
        let place = match (call.us, call.regional) {
            (true, true) => price.us.max(price.regional),
            (true, false) => price.us,
            (false, true) => price.regional,
            (false, false) => ONE,
        };
        let parts = [
            (tokens.input, rates.input),
            (tokens.output, rates.output),
            (tokens.cache_write_5m, rates.write_5m),
            (tokens.cache_write_1h, rates.write_1h),
            (tokens.cache_read, rates.read),
        ];
        let steps: i128 = parts.iter().map(|(n, rate)| i128::from(*n) * i128::from(*rate)).sum();
        // Usually both multipliers are 1, and the division is slow.
        let steps = match i128::from(fast) * i128::from(place) {
            ONE_SQUARED => steps,
            times => steps * times / ONE_SQUARED,
        };
        Some(Money::from_steps(steps + i128::from(call.web_searches) * i128::from(self.web_search)))
    }
}

fn read_price(json: Json<'_>, number: usize) -> Result<(String, ModelPrice), PriceBookError> {
    let wrong = |field, expected| PriceBookError::Field { number, field, expected };
    let name = json.get("model").and_then(Json::as_str).ok_or(wrong("model", "a model name"))?;
    let from = match json.get("from").filter(|json| !json.is_null()) {
        None => None,
        Some(json) => {
            let day = json.as_str().and_then(|text| text.parse::<jiff::civil::Date>().ok());
            let start = day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
            Some(start.ok_or(wrong("from", "a date such as 2026-03-13"))?.timestamp().as_millisecond())
        }
    };
    let rates = |json: Json<'_>| {
        let rate = |field: &'static str| {
            let found = json.get(field).and_then(|json| decimal(json.raw(), 9));
            found.ok_or(wrong(field, "dollars per million tokens"))
        };
        Ok(TokenRates {
            input: rate("input")?,
            output: rate("output")?,
            write_5m: rate("write_5m")?,
            write_1h: rate("write_1h")?,
            read: rate("read")?,
        })
    };
    let long = match json.get("long").filter(|json| !json.is_null()) {
        None => None,
        Some(long) => {
            let above = long.get("above").and_then(Json::as_u64);
            Some((above.ok_or(wrong("above", "a number of tokens"))?, rates(long)?))
        }
    };
    let times = |field: &'static str| match json.get(field).filter(|json| !json.is_null()) {
        None => Ok(None),
        Some(json) => decimal(json.raw(), 3).map(Some).ok_or(wrong(field, "a multiplier such as 1.1")),
    };
    let us = times("us")?;
    let price = ModelPrice {
        from,
        rates: rates(json)?,
        long,
        fast: times("fast")?,
        us: us.unwrap_or(ONE),
        regional: times("regional")?.or(us).unwrap_or(ONE),
        source: json.get("source").and_then(Json::as_str).unwrap_or_default().into_owned(),
    };
    Ok((model(&name).name, price))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_book_is_valid() {
        let book = PriceBook::embedded();
        assert!(book.prices.len() >= 25);
        assert_eq!(book.digest().len(), 12);
        assert_eq!(book.prices("claude-opus-4-6").len(), 2);
        assert!(book.prices.iter().all(|(name, prices)| model(name).name == *name
            && prices[0].from.is_none()
            && prices.iter().all(|price| !price.source.is_empty())));
    }

    #[test]
    fn every_price_has_a_source_and_unconfirmed_ones_are_documented() {
        let book = Json::parse(EMBEDDED).unwrap();
        let sources = book.get("sources").unwrap();
        for price in book.get("prices").unwrap().items() {
            let source = price.get("source").unwrap().as_str().unwrap();
            assert!(sources.get(&source).is_some(), "{price:?}");
        }
        let page = include_str!("../../../docs/prices.md");
        for doubt in book.get("unconfirmed").unwrap().items() {
            assert!(
                page.contains(&format!("- {}\n", doubt.as_str().unwrap())),
                "{doubt:?} is not in docs/prices.md"
            );
        }
    }

    #[test]
    fn another_book_replaces_the_models_it_contains() {
        let json = r#"{"prices":[{"model":"glm-4.6","input":0.6,"output":2.2,"write_5m":0,"write_1h":0,"read":0.11}]}"#;
        let book = PriceBook::embedded().with(json).unwrap();
        assert_eq!(book.prices("glm-4.6")[0].rates.read, 110_000_000);
        assert_eq!(book.prices("claude-opus-5"), PriceBook::embedded().prices("claude-opus-5"));
        assert_ne!(book.digest(), PriceBook::embedded().digest());
        for (json, message) in [
            ("[]", "a price book must be a JSON object with an array `prices`"),
            (r#"{"prices":[{}]}"#, "price 1: expected a model name in `model`"),
            (
                r#"{"prices":[{"model":"x","input":"1"}]}"#,
                "price 1: expected dollars per million tokens in `input`",
            ),
        ] {
            assert_eq!(PriceBook::embedded().with(json).unwrap_err().to_string(), message);
        }
    }
}
