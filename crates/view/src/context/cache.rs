//! Cache misses: tokens that the previous call left in the cache, and the next one did not read.

use threadline_entry::Millis;
use threadline_entry::lens::Usage;

use super::items::RawCall;
use crate::transcript::TurnTokens;

/// Fewer missed tokens are not reported: the end of the cached part varies.
const MIN_MISSED: u64 = 1024;

const FIVE_MINUTES: Millis = 5 * 60 * 1000;
const ONE_HOUR: Millis = 60 * 60 * 1000;

/// Tokens that were in the cache, and were not read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMiss {
    /// The number of tokens.
    pub tokens: u64,
    /// The reason.
    pub reason: MissReason,
    /// The time since the previous request.
    pub pause: Option<Millis>,
}

/// The reason why the cache was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissReason {
    /// The previous request was longer ago than the five minutes for which it was cached.
    ExpiredAfterMinutes,
    /// The previous request was longer ago than the hour for which it was cached.
    ExpiredAfterHour,
    /// The conversation was compacted.
    Compaction,
    /// Another model was used.
    ModelSwitch,
    /// None of these: the system prompt, the tools or earlier messages may have changed.
    Unknown,
}

impl MissReason {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExpiredAfterMinutes => "expired_5m",
            Self::ExpiredAfterHour => "expired_1h",
            Self::Compaction => "compaction",
            Self::ModelSwitch => "model_switch",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the label.
    pub fn label(self) -> &'static str {
        match self {
            Self::ExpiredAfterMinutes => "expired after 5 min",
            Self::ExpiredAfterHour => "expired after 1 h",
            Self::Compaction => "compaction",
            Self::ModelSwitch => "model switch",
            Self::Unknown => "unknown reason",
        }
    }
}

/// The state of the cache after a call.
#[derive(Default)]
pub(super) struct CacheState {
    /// The number of cached tokens.
    cached: u64,
    model: Option<String>,
    at: Option<Millis>,
    /// Whether the cache is kept for an hour.
    is_hour: bool,
}

impl CacheState {
    /// Continues with the next call. Returns the tokens that it should have read, and did not.
    pub(super) fn advance(
        &mut self,
        call: &RawCall,
        model: Option<&str>,
        usage: Option<Usage<'_>>,
        tokens: TurnTokens,
    ) -> Option<CacheMiss> {
        let pause = self.at.zip(call.at).map(|(before, now)| now - before);
        let missed = self.cached.saturating_sub(tokens.cache_read);
        let lifetime = if self.is_hour { ONE_HOUR } else { FIVE_MINUTES };
        let reason = if call.is_compacted {
            MissReason::Compaction
        } else if self.model.as_deref() != model {
            MissReason::ModelSwitch
        } else if pause.is_some_and(|pause| pause > lifetime) {
            if self.is_hour { MissReason::ExpiredAfterHour } else { MissReason::ExpiredAfterMinutes }
        } else {
            MissReason::Unknown
        };
        let is_miss = missed >= MIN_MISSED.max(self.cached / 10);
        self.cached = tokens.cache_read + tokens.cache_write;
        self.model = model.map(str::to_owned);
        self.at = call.at;
        if tokens.cache_write > 0 {
            let creation = usage.and_then(Usage::cache_creation);
            self.is_hour =
                creation.and_then(|creation| creation.ephemeral_1h_input_tokens()).unwrap_or(0) > 0;
        }
        is_miss.then_some(CacheMiss { tokens: missed, reason, pause })
    }
}
