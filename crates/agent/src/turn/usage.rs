//! Usage objects of replies and turns.

use serde_json::value::RawValue;
use threadline_api::{RawObject, Usage};

use crate::json::raw;

/// Returns a usage object with all its members, as session lines contain it.
pub(super) fn logged_usage(usage: &RawObject) -> RawObject {
    let zero = || raw(&0);
    let object = |json: &str| RawObject::parse(json).map(|object| raw(&object)).unwrap_or_else(|_| zero());
    let defaults: [(&str, Box<RawValue>); 10] = [
        ("input_tokens", zero()),
        ("cache_creation_input_tokens", zero()),
        ("cache_read_input_tokens", zero()),
        ("output_tokens", zero()),
        ("server_tool_use", object(r#"{"web_search_requests":0,"web_fetch_requests":0}"#)),
        ("service_tier", raw(&"standard")),
        ("cache_creation", object(r#"{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}"#)),
        ("inference_geo", raw(&"")),
        ("iterations", raw(&[(); 0])),
        ("speed", raw(&"standard")),
    ];
    let mut logged = RawObject::new();
    for (key, default) in defaults {
        let value = usage.get(key).filter(|value| value.get() != "null").map(ToOwned::to_owned);
        logged.set_raw(key, value.unwrap_or(default));
    }
    for (key, value) in usage.members().filter(|(key, _)| logged.get(key).is_none()).collect::<Vec<_>>() {
        logged.set_raw(key, value.to_owned());
    }
    logged
}

/// Returns the usage of a turn as an object of the API.
pub(super) fn usage_json(usage: &Usage) -> RawObject {
    let short = usage.cache_write.saturating_sub(usage.cache_write_1h);
    let cache_creation = RawObject::new()
        .with("ephemeral_1h_input_tokens", usage.cache_write_1h)
        .with("ephemeral_5m_input_tokens", if usage.cache_write_1h > 0 { short } else { 0 });
    let searches =
        RawObject::new().with("web_search_requests", usage.web_searches).with("web_fetch_requests", 0);
    let object = RawObject::new()
        .with("input_tokens", usage.input)
        .with("cache_creation_input_tokens", usage.cache_write)
        .with("cache_read_input_tokens", usage.cache_read)
        .with("output_tokens", usage.output)
        .with("server_tool_use", searches)
        .with("cache_creation", cache_creation);
    logged_usage(&object)
}
