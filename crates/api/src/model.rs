//! Facts about models that requests depend on.

/// The limits of a model, and how it thinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The number of tokens that a request and its reply may have together.
    pub context_window: u64,
    /// The number of output tokens that is asked for by default.
    pub max_output: u64,
    /// Whether the model decides itself how much to think (`adaptive`). Otherwise it gets a budget.
    pub has_adaptive_thinking: bool,
    /// Whether the model can think at all.
    pub can_think: bool,
}

/// The limits of models, by the beginning of their name; the first match counts.
const MODELS: &[(&str, ModelInfo)] = &[
    ("claude-3-5-haiku", ModelInfo::manual(200_000, 8_192, false)),
    ("claude-3-5", ModelInfo::manual(200_000, 8_192, false)),
    ("claude-3-haiku", ModelInfo::manual(200_000, 4_096, false)),
    ("claude-3-7", ModelInfo::manual(200_000, 32_000, true)),
    ("claude-opus-4-8", ModelInfo::adaptive(1_000_000, 64_000)),
    ("claude-opus-4-7", ModelInfo::adaptive(1_000_000, 64_000)),
    ("claude-opus-4-6", ModelInfo::adaptive(200_000, 64_000)),
    ("claude-opus-5", ModelInfo::adaptive(1_000_000, 128_000)),
    ("claude-sonnet-5", ModelInfo::adaptive(1_000_000, 128_000)),
    ("claude-fable-5", ModelInfo::adaptive(1_000_000, 128_000)),
    ("claude-haiku-5", ModelInfo::adaptive(1_000_000, 128_000)),
    ("claude-sonnet-4-6", ModelInfo::adaptive(200_000, 32_000)),
    ("claude-", ModelInfo::manual(200_000, 32_000, true)),
];

impl ModelInfo {
    const fn manual(context_window: u64, max_output: u64, can_think: bool) -> Self {
        Self { context_window, max_output, has_adaptive_thinking: false, can_think }
    }

    const fn adaptive(context_window: u64, max_output: u64) -> Self {
        Self { context_window, max_output, has_adaptive_thinking: true, can_think: true }
    }
}

/// Returns the limits of a model. Models that are not known get 200,000 and 32,000 tokens and do not think.
pub fn model_info(model: &str) -> ModelInfo {
    let name = model.strip_suffix("[1m]").unwrap_or(model);
    let known = MODELS.iter().find(|(prefix, _)| name.starts_with(prefix));
    let mut info = known.map_or(ModelInfo::manual(200_000, 32_000, false), |(_, info)| info.clone());
    if model.ends_with("[1m]") {
        info.context_window = 1_000_000;
    }
    info
}

/// Returns the name of a model as the API knows it, for the short names that people type: those of Claude
/// Code 2.1.328.
pub fn full_model_name(name: &str) -> String {
    let name = name.strip_suffix("[1m]").unwrap_or(name);
    match name {
        "opus" | "default" | "best" => "claude-opus-5-5",
        "sonnet" | "opusplan" => "claude-sonnet-5-5",
        "haiku" => "claude-haiku-5-5",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_the_limits_of_their_family() {
        assert_eq!(model_info("claude-sonnet-4-5-20250929"), ModelInfo::manual(200_000, 32_000, true));
        assert_eq!(model_info("claude-opus-4-8").context_window, 1_000_000);
        assert_eq!(model_info("claude-sonnet-4-5[1m]").context_window, 1_000_000);
        assert!(!model_info("some-other-model").can_think);
    }

    #[test]
    fn short_names_become_full_names() {
        for (name, full) in
            [("opus", "claude-opus-5-5"), ("sonnet", "claude-sonnet-5-5"), ("haiku", "claude-haiku-5-5")]
        {
            assert_eq!(full_model_name(name), full);
            assert!(model_info(full).has_adaptive_thinking);
        }
        // Outside of plan mode.
        assert_eq!(full_model_name("opusplan"), "claude-sonnet-5-5");
        assert_eq!(full_model_name("claude-x-1"), "claude-x-1");
    }
}
