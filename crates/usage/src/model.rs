//! Normalises model names, which differ between providers and spellings.

use std::borrow::Cow;

/// A model, by its name in the price book.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// The name, such as `claude-opus-4-6`.
    pub name: String,
    /// Whether the request went to a regional endpoint, such as Bedrock's `us.`.
    pub regional: bool,
}

/// The region prefixes of Bedrock model ids.
const REGIONS: [&str; 8] = ["us", "eu", "apac", "jp", "au", "ca", "sa", "us-gov"];

/// Returns the model for an id as found in a log.
///
/// `us.anthropic.claude-opus-4-6-v1:0`, `claude-opus-4-6@20260205`, `anthropic/claude-opus-4.6` and
/// `claude-opus-4-6[1m]` are all `claude-opus-4-6`. Names of other models are returned unchanged, except for
/// surrounding white space.
pub fn model(id: &str) -> Model {
    let found = id.trim();
    let Some(start) = found.find("claude-") else { return Model { name: found.to_owned(), regional: false } };
    let (maker, name) = found.split_at(start);
    let region = maker.strip_suffix("anthropic.").map(|rest| rest.rsplit(['/', ':']).next().unwrap_or(rest));
    let regional = region.is_some_and(|region| REGIONS.contains(&region.trim_end_matches('.')));
    let known_maker = maker.is_empty() || maker.ends_with(['/', '.', ':']);
    if !known_maker {
        return Model { name: found.to_owned(), regional: false };
    }
    Model { name: canonical(name).into_owned(), regional }
}

/// Returns a Claude model's name without release date, context window and provider suffix.
fn canonical(name: &str) -> Cow<'_, str> {
    let mut name = name.split(['[', '@', ':']).next().unwrap_or(name);
    for _ in 0..3 {
        name = name.strip_suffix("-latest").unwrap_or(name);
        name = strip_version(name);
        name = strip_date(name);
    }
    let dashed = if name.contains('.') { Cow::Owned(name.replace('.', "-")) } else { Cow::Borrowed(name) };
    match &*dashed {
        "claude-opus-4-0" | "claude-4-opus" => "claude-opus-4".into(),
        "claude-sonnet-4-0" | "claude-4-sonnet" => "claude-sonnet-4".into(),
        _ => dashed,
    }
}

/// Removes Bedrock's `-v1`.
fn strip_version(name: &str) -> &str {
    let is_version = |end: &str| {
        end.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    name.rsplit_once('-').filter(|(_, end)| is_version(end)).map_or(name, |(start, _)| start)
}

/// Removes a date such as `-20250929`.
fn strip_date(name: &str) -> &str {
    let is_date =
        |end: &str| end.len() == 8 && end.starts_with("20") && end.bytes().all(|b| b.is_ascii_digit());
    name.rsplit_once('-').filter(|(_, end)| is_date(end)).map_or(name, |(start, _)| start)
}

#[cfg(test)]
mod tests {
    use super::model;

    #[test]
    fn one_model_has_one_name() {
        for (id, name, regional) in [
            ("claude-opus-4-6", "claude-opus-4-6", false),
            ("claude-opus-4.6", "claude-opus-4-6", false),
            ("claude-opus-4-6-20260205", "claude-opus-4-6", false),
            ("claude-opus-5[1m]", "claude-opus-5", false),
            ("us.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", true),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", true),
            ("global.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]", "claude-sonnet-4-5", false),
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet", false),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1",
                "claude-opus-4-6",
                true,
            ),
            ("claude-haiku-4-5@20251001", "claude-haiku-4-5", false),
            ("claude-3-5-sonnet-v2@20241022", "claude-3-5-sonnet", false),
            ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", false),
            ("openrouter/anthropic/claude-sonnet-4", "claude-sonnet-4", false),
            ("claude-3-7-sonnet-latest", "claude-3-7-sonnet", false),
            ("claude-opus-4-20250514", "claude-opus-4", false),
            ("claude-4-sonnet-20250514", "claude-sonnet-4", false),
            ("claude-nova-9", "claude-nova-9", false),
            ("glm-4.6", "glm-4.6", false),
            ("not-claude-9.1", "not-claude-9.1", false),
            ("opus", "opus", false),
        ] {
            let found = model(id);
            assert_eq!((&*found.name, found.regional), (name, regional), "{id}");
        }
    }
}
