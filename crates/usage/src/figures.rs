//! Figures: what a line says that a call used.

use std::borrow::Cow;

use threadline_entry::lens::{FromJson, Iteration};
use threadline_entry::{Json, walk};

/// The tokens of a call, by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens {
    /// Read by the model, and in no cache.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache for five minutes.
    pub cache_write_5m: u64,
    /// Written to the cache for an hour.
    pub cache_write_1h: u64,
}

impl Tokens {
    /// All that the model was given.
    pub fn context(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write())
    }

    /// All that was written to a cache.
    pub fn cache_write(self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.context().saturating_add(self.output)
    }
}

/// What a line says under `usage`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures<'a> {
    pub(crate) tokens: Tokens,
    pub(crate) web_searches: u64,
    pub(crate) fast: bool,
    pub(crate) us: bool,
    /// Other models that were asked on the way, with what they used.
    pub(crate) advisors: Vec<(Cow<'a, str>, Tokens)>,
}

impl<'a> Figures<'a> {
    /// Reads them.
    pub(crate) fn of(usage: Json<'a>) -> Self {
        let mut figures = Self::default();
        let mut writes = Writes::default();
        for (key, value) in usage.members() {
            match &*key.name() {
                "input_tokens" => figures.tokens.input = number(value),
                "output_tokens" => figures.tokens.output = number(value),
                "cache_read_input_tokens" => figures.tokens.cache_read = number(value),
                "cache_creation_input_tokens" => writes.all = number(value),
                "cache_creation" => writes.read_parts(value),
                "server_tool_use" => {
                    figures.web_searches = value.get("web_search_requests").map_or(0, number);
                }
                "inference_geo" => figures.us = value.is_str("us"),
                "speed" => figures.fast = value.is_str("fast"),
                "iterations" => figures.advisors = advisors(value),
                _ => {}
            }
        }
        writes.settle(&mut figures.tokens);
        figures
    }

    /// Reads those that begin at `start` of a line while stepping over them, and tells where they end; `None` where
    /// something is not as plain as Claude Code writes it.
    ///
    /// This runs for every reply of a home, and finds what [`Figures::of`] does.
    pub(crate) fn step(line: &'a [u8], start: usize) -> Option<(Self, usize)> {
        let mut figures = Self::default();
        let mut writes = Writes::default();
        let is_object = |at: usize| line.get(at) == Some(&b'{');
        let end = walk::step_over(line, start, |key, at| match key {
            b"input_tokens" => read_digits(line, at, &mut figures.tokens.input),
            b"output_tokens" => read_digits(line, at, &mut figures.tokens.output),
            b"cache_read_input_tokens" => read_digits(line, at, &mut figures.tokens.cache_read),
            b"cache_creation_input_tokens" => read_digits(line, at, &mut writes.all),
            b"cache_creation" if is_object(at) => walk::step_over(line, at, |key, at| match key {
                b"ephemeral_5m_input_tokens" => read_digits(line, at, &mut writes.short),
                b"ephemeral_1h_input_tokens" => read_digits(line, at, &mut writes.long),
                _ => Some(walk::value_end(line, at)),
            }),
            b"server_tool_use" => {
                figures.web_searches = 0;
                if !is_object(at) {
                    return Some(walk::value_end(line, at));
                }
                walk::step_over(line, at, |key, at| match key {
                    b"web_search_requests" => read_digits(line, at, &mut figures.web_searches),
                    _ => Some(walk::value_end(line, at)),
                })
            }
            b"inference_geo" => read_is(line, at, b"\"us\"", &mut figures.us),
            b"speed" => read_is(line, at, b"\"fast\"", &mut figures.fast),
            b"iterations" => {
                let end = walk::value_end(line, at);
                figures.advisors = match line.get(at..end)? {
                    b"[]" => Vec::new(),
                    _ => advisors(walk::value(line, at..end)?),
                };
                Some(end)
            }
            _ => Some(walk::value_end(line, at)),
        })?;
        writes.settle(&mut figures.tokens);
        Some((figures, end))
    }
}

/// Reads the count at `at`, and tells where it ends; `None` if it is not made of digits alone, or too many of them.
fn read_digits(line: &[u8], at: usize, into: &mut u64) -> Option<usize> {
    let mut count = 0u64;
    let mut end = at;
    while let Some(digit) = line.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        count = count.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    *into = count;
    let is_over = matches!(line.get(end), Some(b',' | b'}' | b' ' | b'\t' | b'\r'));
    (is_over && end > at && end - at < 20).then_some(end)
}

/// Reads whether the value at `at` is this one, and tells where it ends; `None` if something is escaped in it.
fn read_is(line: &[u8], at: usize, wanted: &[u8], into: &mut bool) -> Option<usize> {
    let end = walk::value_end(line, at);
    let value = line.get(at..end)?;
    *into = value == wanted;
    (!value.contains(&b'\\')).then_some(end)
}

/// The models that were asked on the way. Other steps are part of the figures above them.
fn advisors(iterations: Json<'_>) -> Vec<(Cow<'_, str>, Tokens)> {
    let steps = iterations.items().filter_map(Iteration::from_json);
    let advice = steps.filter(|step| step.kind().as_deref() == Some("advisor_message"));
    let read = |step: Iteration<'_>| {
        let mut tokens = Tokens {
            input: step.input_tokens().unwrap_or(0),
            output: step.output_tokens().unwrap_or(0),
            cache_read: step.cache_read_input_tokens().unwrap_or(0),
            ..Tokens::default()
        };
        let parts = step.cache_creation();
        let writes = Writes {
            all: step.cache_creation_input_tokens().unwrap_or(0),
            short: parts.and_then(|parts| parts.ephemeral_5m_input_tokens()).unwrap_or(0),
            long: parts.and_then(|parts| parts.ephemeral_1h_input_tokens()).unwrap_or(0),
        };
        writes.settle(&mut tokens);
        tokens
    };
    advice.map(|step| (step.model().unwrap_or(Cow::Borrowed("(none)")), read(step))).collect()
}

/// What was written to the cache, in all and by how long it is kept.
#[derive(Default)]
struct Writes {
    all: u64,
    short: u64,
    long: u64,
}

impl Writes {
    fn read_parts(&mut self, json: Json<'_>) {
        for (key, value) in json.members() {
            match &*key.name() {
                "ephemeral_5m_input_tokens" => self.short = number(value),
                "ephemeral_1h_input_tokens" => self.long = number(value),
                _ => {}
            }
        }
    }

    /// What the parts leave of the whole was kept for five minutes: some versions write zeros for parts.
    fn settle(&self, tokens: &mut Tokens) {
        let parts = self.short.saturating_add(self.long);
        tokens.cache_write_5m = self.short.saturating_add(self.all.saturating_sub(parts));
        tokens.cache_write_1h = self.long;
    }
}

/// A count, which may be written as `100` or `1e2`; what is none is nothing.
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

    use super::Figures;

    /// A `usage` of the names that matter, some with escapes, some twice, with values of every kind.
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

    proptest! {
        #[test]
        fn figures_read_on_the_way_are_those_that_are_read_with_care(usage in any_usage(), around in 0usize..4) {
            let line = format!("{}{usage}}}", " ".repeat(around));
            if let Some((figures, end)) = Figures::step(line.as_bytes(), around) {
                prop_assert_eq!(end, around + usage.len());
                prop_assert_eq!(figures, Figures::of(Json::parse(&usage).unwrap()));
            }
        }
    }

    #[test]
    fn what_claude_code_writes_is_read_on_the_way() {
        let usage = r#"{"input_tokens":3,"cache_creation_input_tokens":812,"cache_read_input_tokens":40211,
            "server_tool_use":{"web_search_requests":2,"web_fetch_requests":0},"service_tier":"standard",
            "cache_creation":{"ephemeral_1h_input_tokens":800,"ephemeral_5m_input_tokens":0},"inference_geo":"us",
            "iterations":[{"type":"message","input_tokens":3}],"speed":"fast","output_tokens":9}"#.replace('\n', "");
        let (figures, end) = Figures::step(usage.as_bytes(), 0).unwrap();
        assert_eq!(end, usage.len());
        assert!(figures.us && figures.fast && figures.advisors.is_empty());
        let tokens = figures.tokens;
        let all =
            (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write_5m, tokens.cache_write_1h);
        assert_eq!((all, figures.web_searches), ((3, 9, 40211, 12, 800), 2));
        let nulls = r#"{"server_tool_use":null,"cache_creation":null,"iterations":null,"speed":null}"#;
        assert_eq!(Figures::step(nulls.as_bytes(), 0), Some((Figures::default(), nulls.len())));
    }
}
