//! The usage figures of a line.

use std::borrow::Cow;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use threadline_entry::lens::{FromJson, Iteration};
use threadline_entry::{Json, key};

use crate::scan_cache::line_layout::LayoutValues;

/// The tokens of a call, by price class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Input tokens that are not cached.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the 5-minute cache.
    pub cache_write_5m: u64,
    /// Input tokens written to the 1-hour cache.
    pub cache_write_1h: u64,
}

impl TokenCounts {
    /// Returns the number of all input tokens.
    pub fn context(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write())
    }

    /// Returns the number of tokens written to either cache.
    pub fn cache_write(self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    /// Returns these counts without those of `part`.
    pub(crate) fn minus(self, part: Self) -> Self {
        Self {
            input: self.input.saturating_sub(part.input),
            output: self.output.saturating_sub(part.output),
            cache_read: self.cache_read.saturating_sub(part.cache_read),
            cache_write_5m: self.cache_write_5m.saturating_sub(part.cache_write_5m),
            cache_write_1h: self.cache_write_1h.saturating_sub(part.cache_write_1h),
        }
    }

    /// Returns the same; `None` if any count is smaller than that of `part`.
    pub(crate) fn checked_minus(self, part: Self) -> Option<Self> {
        Some(Self {
            input: self.input.checked_sub(part.input)?,
            output: self.output.checked_sub(part.output)?,
            cache_read: self.cache_read.checked_sub(part.cache_read)?,
            cache_write_5m: self.cache_write_5m.checked_sub(part.cache_write_5m)?,
            cache_write_1h: self.cache_write_1h.checked_sub(part.cache_write_1h)?,
        })
    }

    /// Returns the number of all tokens.
    pub fn total(self) -> u64 {
        self.context().saturating_add(self.output)
    }
}

impl AddAssign<&Self> for TokenCounts {
    fn add_assign(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write_5m = self.cache_write_5m.saturating_add(other.cache_write_5m);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
    }
}

/// The values of a `usage` object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageFigures<'a> {
    pub(crate) tokens: TokenCounts,
    pub(crate) web_searches: u64,
    pub(crate) fast: bool,
    pub(crate) us: bool,
    /// Advisor models called on the way, with their token counts.
    pub(crate) advisors: Vec<(Cow<'a, str>, TokenCounts)>,
}

impl<'a> UsageFigures<'a> {
    /// Reads a `usage` object.
    pub(crate) fn of(usage: Json<'a>) -> Self {
        let mut figures = Self::default();
        let mut writes = CacheWrites::default();
        for (key, value) in usage.members() {
            match &*key.name() {
                key::INPUT_TOKENS => figures.tokens.input = number(value),
                key::OUTPUT_TOKENS => figures.tokens.output = number(value),
                key::CACHE_READ_INPUT_TOKENS => figures.tokens.cache_read = number(value),
                key::CACHE_CREATION_INPUT_TOKENS => writes.all = number(value),
                key::CACHE_CREATION => writes.read_parts(value),
                key::SERVER_TOOL_USE => {
                    figures.web_searches = value.get(key::WEB_SEARCH_REQUESTS).map_or(0, number);
                }
                key::INFERENCE_GEO => figures.us = value.is_str("us"),
                key::SPEED => figures.fast = value.is_str("fast"),
                key::ITERATIONS => figures.advisors = advisors(value),
                _ => {}
            }
        }
        writes.assign(&mut figures.tokens);
        figures
    }

    /// Reads the values of [`PATHS`], which start at index `first`; `None` if a value does not have the usual
    /// form.
    ///
    /// This runs for every reply of a home, and returns the same as [`UsageFigures::of`].
    pub(crate) fn from_layout<const N: usize>(values: &LayoutValues<'a, N>, first: usize) -> Option<Self> {
        let value = |path: usize| values.get(first + path);
        let is = |path: usize, wanted: &str| match value(path).map(Json::raw) {
            Some(raw) if raw.contains('\\') => None,
            raw => Some(raw == Some(wanted)),
        };
        let UsageCounts { tokens, web_searches } = UsageCounts::from_layout(values, first)?;
        let (us, fast) = (is(7, "\"us\"")?, is(8, "\"fast\"")?);
        let advisors = value(9).filter(|steps| steps.raw() != "[]").map(advisors).unwrap_or_default();
        Some(Self { tokens, web_searches, fast, us, advisors })
    }
}

/// The figures that are numbers.
pub(crate) struct UsageCounts {
    pub(crate) tokens: TokenCounts,
    pub(crate) web_searches: u64,
}

impl UsageCounts {
    /// Reads the numbers among the values of [`PATHS`]; `None` if one consists of anything but digits.
    #[inline]
    pub(crate) fn from_layout<const N: usize>(values: &LayoutValues<'_, N>, first: usize) -> Option<Self> {
        Self::read(|path| values.get(first + path).map(|json| json.raw().as_bytes()))
    }

    /// Does the same, given a function that returns the text of a number.
    #[inline]
    pub(crate) fn read<'v>(value: impl Fn(usize) -> Option<&'v [u8]>) -> Option<Self> {
        let count = |path: usize| value(path).map_or(Some(0), digits);
        // If none of these is present, `usage` may not be an object at all.
        (0..4).find_map(&value)?;
        let (input, output, cache_read) = (count(0)?, count(1)?, count(2)?);
        let writes = CacheWrites { all: count(3)?, short: count(4)?, long: count(5)? };
        let mut tokens = TokenCounts { input, output, cache_read, ..TokenCounts::default() };
        writes.assign(&mut tokens);
        Some(Self { tokens, web_searches: count(6)? })
    }
}

/// The paths of the figures in a line: first the numbers, then the others.
pub(crate) const PATHS: [&[&str]; 10] = [
    &[key::MESSAGE, key::USAGE, key::INPUT_TOKENS],
    &[key::MESSAGE, key::USAGE, key::OUTPUT_TOKENS],
    &[key::MESSAGE, key::USAGE, key::CACHE_READ_INPUT_TOKENS],
    &[key::MESSAGE, key::USAGE, key::CACHE_CREATION_INPUT_TOKENS],
    &[key::MESSAGE, key::USAGE, key::CACHE_CREATION, key::EPHEMERAL_5M_INPUT_TOKENS],
    &[key::MESSAGE, key::USAGE, key::CACHE_CREATION, key::EPHEMERAL_1H_INPUT_TOKENS],
    &[key::MESSAGE, key::USAGE, key::SERVER_TOOL_USE, key::WEB_SEARCH_REQUESTS],
    &[key::MESSAGE, key::USAGE, key::INFERENCE_GEO],
    &[key::MESSAGE, key::USAGE, key::SPEED],
    &[key::MESSAGE, key::USAGE, key::ITERATIONS],
];

/// How many of the paths lead to numbers.
pub(crate) const N_COUNTS: usize = 7;

/// Parses a count that consists of digits only.
fn digits(bytes: &[u8]) -> Option<u64> {
    let add = |count: u64, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| count * 10 + u64::from(digit))
    };
    // 19 digits always fit into a `u64`.
    (bytes.len() < 20).then(|| bytes.iter().try_fold(0, add)).flatten()
}

/// Returns the advisor models among the iterations. Other iterations are included in the main figures.
fn advisors(iterations: Json<'_>) -> Vec<(Cow<'_, str>, TokenCounts)> {
    let steps = iterations.items().filter_map(Iteration::from_json);
    let advice = steps.filter(|step| step.kind().as_deref() == Some("advisor_message"));
    let read = |step: Iteration<'_>| {
        let mut tokens = TokenCounts {
            input: step.input_tokens().unwrap_or(0),
            output: step.output_tokens().unwrap_or(0),
            cache_read: step.cache_read_input_tokens().unwrap_or(0),
            ..TokenCounts::default()
        };
        let parts = step.cache_creation();
        let writes = CacheWrites {
            all: step.cache_creation_input_tokens().unwrap_or(0),
            short: parts.and_then(|parts| parts.ephemeral_5m_input_tokens()).unwrap_or(0),
            long: parts.and_then(|parts| parts.ephemeral_1h_input_tokens()).unwrap_or(0),
        };
        writes.assign(&mut tokens);
        tokens
    };
    advice.map(|step| (step.model().unwrap_or(Cow::Borrowed("(none)")), read(step))).collect()
}

/// Tokens written to the cache, in total and by lifetime.
#[derive(Default)]
struct CacheWrites {
    all: u64,
    short: u64,
    long: u64,
}

impl CacheWrites {
    fn read_parts(&mut self, json: Json<'_>) {
        for (key, value) in json.members() {
            match &*key.name() {
                key::EPHEMERAL_5M_INPUT_TOKENS => self.short = number(value),
                key::EPHEMERAL_1H_INPUT_TOKENS => self.long = number(value),
                _ => {}
            }
        }
    }

    /// Counts the tokens not attributed to either lifetime as 5-minute writes: some versions log zeros for
    /// both.
    fn assign(&self, tokens: &mut TokenCounts) {
        let parts = self.short.saturating_add(self.long);
        tokens.cache_write_5m = self.short.saturating_add(self.all.saturating_sub(parts));
        tokens.cache_write_1h = self.long;
    }
}

/// Parses a count, written as `100` or `1e2`; anything else is 0.
fn number(json: Json<'_>) -> u64 {
    json.as_u64().unwrap_or_else(|| match json.as_f64() {
        Some(number) if number >= 0.0 && number.fract() == 0.0 => number as u64,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use threadline_entry::Json;

    use crate::scan_cache::line_layout::LineLayoutCache;

    use super::{PATHS, TokenCounts, UsageFigures};

    /// A `usage` object with relevant keys, some escaped, some repeated, and values of every type.
    fn any_usage() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "cache_creation",
            "server_tool_use",
            "inference_geo",
            "speed",
            "iterations",
            "service_tier",
            "web_search_requests",
            "ephemeral_5m_input_tokens",
            "ephemeral_1h_input_tokens",
            "sp\\u0065ed",
        ]);
        let plain = prop::sample::select(vec![
            "0",
            "17",
            "1e2",
            "1.5",
            "-3",
            "9999999999999999999",
            "18446744073709551615",
            "123456789012345678901234567890",
            "null",
            "true",
            "\"us\"",
            "\"fast\"",
            "\"f\\u0061st\"",
            "\"standard\"",
            "\"\"",
            "[]",
            "{}",
            r#"[{"type":"advisor_message","model":"m","input_tokens":5,"cache_creation_input_tokens":7}, {"type":"message","input_tokens":9}]"#,
        ]);
        let leaf = plain.prop_map(str::to_owned).boxed();
        let object = |value: BoxedStrategy<String>| {
            let space = prop::sample::select(vec!["", "", " "]);
            let member = (name.clone(), space, value)
                .prop_map(|(name, space, value)| format!("{space}\"{name}\":{space}{value}{space}"));
            prop::collection::vec(member, 0..7).prop_map(|members| format!("{{{}}}", members.join(",")))
        };
        object(prop_oneof![3 => leaf.clone(), 1 => object(leaf)].boxed())
    }

    fn line(usage: &str) -> String {
        format!("{{\"message\":{{\"content\":[],\"usage\":{usage}}}}}")
    }

    /// Reads the figures with a cached layout, if it matches.
    fn along<'l>(trails: &mut LineLayoutCache<10>, line: &'l str) -> Option<UsageFigures<'l>> {
        let values = trails.read(line.as_bytes(), line.find("\"usage\"").unwrap())?;
        UsageFigures::from_layout(&values, 0)
    }

    proptest! {
        #[test]
        fn figures_read_with_a_layout_equal_parsed_figures(usages in prop::collection::vec(any_usage(), 1..9)) {
            let mut trails = LineLayoutCache::new(PATHS, &[]);
            // In the second pass the layouts are cached.
            for usage in usages.iter().chain(&usages) {
                let line = line(usage);
                if let Some(figures) = along(&mut trails, &line) {
                    prop_assert_eq!(figures, UsageFigures::of(Json::parse(usage).unwrap()));
                }
            }
        }
    }

    #[test]
    fn lines_of_claude_code_are_read_with_a_layout() {
        let mut trails = LineLayoutCache::new(PATHS, &[]);
        let usage = r#"{"input_tokens":3,"cache_creation_input_tokens":812,"cache_read_input_tokens":40211,
            "server_tool_use":{"web_search_requests":2,"web_fetch_requests":0},"service_tier":"standard",
            "cache_creation":{"ephemeral_1h_input_tokens":800,"ephemeral_5m_input_tokens":0},"inference_geo":"us",
            "iterations":[{"type":"message","input_tokens":3}],"speed":"fast","output_tokens":9}"#;
        for input in ["3", "300"] {
            let line = line(&usage.replace("_tokens\":3,", &format!("_tokens\":{input},")));
            let figures = along(&mut trails, &line).unwrap();
            assert!(figures.us && figures.fast && figures.advisors.is_empty());
            let TokenCounts { input: found, output, cache_read, cache_write_5m, cache_write_1h } =
                figures.tokens;
            assert_eq!((output, cache_read, cache_write_5m, cache_write_1h), (9, 40211, 12, 800));
            assert_eq!((found.to_string().as_str(), figures.web_searches), (input, 2));
        }
        let nulls = r#"{"output_tokens":0,"server_tool_use":null,"cache_creation":null,"iterations":null,"speed":null}"#;
        assert_eq!(along(&mut trails, &line(nulls)), Some(UsageFigures::default()));
        assert_eq!(along(&mut trails, &line("null")), None);
        assert_eq!(along(&mut trails, &line("{}")), None);
        for odd in ["1e2", "-1", "1.5", "null", "\"1\"", "123456789012345678901"] {
            let line = line(&format!("{{\"input_tokens\":{odd}}}"));
            assert_eq!(along(&mut trails, &line), None, "{odd}");
        }
    }
}
