//! Moments as the log writes them.

/// Milliseconds since 1970, in UTC.
pub type Millis = i64;

/// Reads `2026-02-18T02:00:41.425Z`; `None` for what names no moment.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}
