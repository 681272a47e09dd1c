//! When a failed request is sent again.

use std::time::Duration;

use crate::error::ApiError;

/// How often and after which delay a failed request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of further attempts.
    pub max_retries: u32,
    /// The delay before the first retry; doubles with each further one.
    pub initial_delay: Duration,
    /// The longest delay that is computed. A server may ask for a longer one.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    /// The policy of Claude Code: 10 retries, starting at half a second.
    fn default() -> Self {
        Self {
            max_retries: 10,
            initial_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(32),
        }
    }
}

/// A server that asks for a longer delay is not waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(600);

impl RetryPolicy {
    /// Returns the delay before retry number `attempt` (from 1), or `None` if the error is final.
    ///
    /// `jitter` is between 0 and 1: delays differ between clients that failed at the same time.
    pub fn delay(&self, attempt: u32, error: &ApiError, jitter: f64) -> Option<Duration> {
        if attempt > self.max_retries || !is_retryable(error) {
            return None;
        }
        if let ApiError::Status { retry_after: Some(asked), .. } = error {
            return (*asked <= LONGEST_RETRY_AFTER).then_some(*asked);
        }
        let doubled = self.initial_delay.saturating_mul(1 << (attempt - 1).min(16));
        Some(doubled.min(self.max_delay).mul_f64(1.0 + jitter.clamp(0.0, 1.0) * 0.25))
    }
}

fn is_retryable(error: &ApiError) -> bool {
    match error {
        ApiError::Status { should_retry: Some(should), .. } => *should,
        // A wrong key is retried, because helpers that make keys may return a newer one.
        ApiError::Status { status, .. } => matches!(status, 401 | 408 | 409 | 429 | 500..),
        ApiError::Network(_) | ApiError::Timeout(_) | ApiError::Truncated => true,
        ApiError::Stream { .. } | ApiError::InvalidResponse(_) | ApiError::Key(_) | ApiError::Cancelled => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn status(status: u16, retry_after: Option<u64>) -> ApiError {
        ApiError::Status {
            status,
            kind: ErrorKind::Api,
            message: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
            should_retry: None,
            request_id: None,
            body: String::new(),
        }
    }

    #[test]
    fn delays_double_up_to_the_limit() {
        let policy = RetryPolicy::default();
        let delay = |attempt| policy.delay(attempt, &status(529, None), 0.0).map(|delay| delay.as_millis());
        assert_eq!(delay(1), Some(500));
        assert_eq!(delay(2), Some(1000));
        assert_eq!(delay(10), Some(32_000));
        assert_eq!(delay(11), None);
    }

    #[test]
    fn the_server_decides_the_delay() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.delay(1, &status(429, Some(7)), 0.9), Some(Duration::from_secs(7)));
        assert_eq!(policy.delay(1, &status(429, Some(86_400)), 0.0), None);
    }

    #[test]
    fn errors_of_the_request_are_final() {
        let policy = RetryPolicy::default();
        for code in [400, 402, 403, 404, 413, 422] {
            assert_eq!(policy.delay(1, &status(code, None), 0.0), None, "{code}");
        }
        for code in [401, 408, 409, 429, 500, 502, 529] {
            assert!(policy.delay(1, &status(code, None), 0.0).is_some(), "{code}");
        }
        assert_eq!(policy.delay(1, &ApiError::Cancelled, 0.0), None);
    }
}
