//! Parsing of times and time ranges.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Zoned;
use threadline_entry::Millis;

use crate::error::AppError;

/// Returns the milliseconds since 1970; 0 for earlier times.
pub fn millis(time: SystemTime) -> Millis {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis)
}

/// Returns a time, given in milliseconds since 1970; earlier times are 1970.
pub(crate) fn from_millis(millis: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Returns the current time. How long a call has been running depends on when it is shown.
#[expect(clippy::disallowed_methods, reason = "the only clock of this crate")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// A time range, open at each end that is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The start, inclusive.
    pub from: Option<Millis>,
    /// The end, exclusive.
    pub to: Option<Millis>,
}

impl TimeRange {
    /// Parses a range; see [`start_of`] and [`end_of`] for the format of both ends. The start may also be
    /// `all`.
    ///
    /// # Errors
    ///
    /// [`AppError::NotATime`], and [`AppError::EmptyRange`] if the start is not before the end.
    pub fn parse(since: Option<&str>, until: Option<&str>, now: &Zoned) -> Result<Self, AppError> {
        let from = since.map(|text| range_start(text, now)).transpose()?.flatten();
        let to = until.map(|text| end_of(text, now)).transpose()?;
        match (since, until) {
            (Some(since), Some(until)) if from.is_some() && from >= to => {
                Err(AppError::EmptyRange { since: since.to_owned(), until: until.to_owned() })
            }
            _ => Ok(Self { from, to }),
        }
    }

    /// Returns whether a time is in the range. An unknown time is only in the range that is open at both
    /// ends.
    pub fn contains(&self, at: Option<Millis>) -> bool {
        match at {
            Some(at) => self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to),
            None => self.from.is_none() && self.to.is_none(),
        }
    }
}

/// Returns the start of a day, a month, a year or a point in time.
///
/// Accepts `2026-11-01`, `2026-11`, `2026`, `today`, `yesterday`, timestamps, and durations before now:
/// `12h`, or whole days such as `7d` and `2w`, which include today and start at midnight.
///
/// # Errors
///
/// [`AppError::NotATime`].
pub fn start_of(text: &str, now: &Zoned) -> Result<Millis, AppError> {
    threadline_search::moment(text, now)
        .map(|(start, _)| start)
        .ok_or_else(|| AppError::NotATime { text: text.to_owned() })
}

/// Returns the start of a range: `None` for `all`, else that of [`start_of`].
///
/// # Errors
///
/// [`AppError::NotATime`].
pub fn range_start(text: &str, now: &Zoned) -> Result<Option<Millis>, AppError> {
    if text == "all" { Ok(None) } else { start_of(text, now).map(Some) }
}

/// Returns the end of a day, a month, a year or a point in time. Accepts the same formats as [`start_of`].
///
/// # Errors
///
/// [`AppError::NotATime`].
pub fn end_of(text: &str, now: &Zoned) -> Result<Millis, AppError> {
    threadline_search::moment(text, now)
        .map(|(_, end)| end)
        .ok_or_else(|| AppError::NotATime { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn days_begin_and_end_in_their_zone() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let now = now.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(-5)));
        let text =
            |at: Result<Millis, AppError>| Timestamp::from_millisecond(at.unwrap()).unwrap().to_string();
        for (typed, start, end) in [
            ("2026-11-01", "2026-11-01T05:00:00Z", "2026-11-02T05:00:00Z"),
            ("2026-11", "2026-11-01T05:00:00Z", "2026-12-01T05:00:00Z"),
            ("today", "2026-11-15T05:00:00Z", "2026-11-16T05:00:00Z"),
            ("7d", "2026-11-09T05:00:00Z", "2026-11-09T05:00:00Z"),
            ("2w", "2026-11-02T05:00:00Z", "2026-11-02T05:00:00Z"),
            ("12h", "2026-11-15T00:00:00Z", "2026-11-15T00:00:00Z"),
            ("2026-11-01T10:00:00Z", "2026-11-01T10:00:00Z", "2026-11-01T10:00:00Z"),
        ] {
            assert_eq!((&*text(start_of(typed, &now)), &*text(end_of(typed, &now))), (start, end), "{typed}");
        }
        for odd in ["", "d", "-1d", "+1d", "soon", "2026-13-01", "ü"] {
            assert!(start_of(odd, &now).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_range_ends_after_its_start() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        let parse = |since, until| TimeRange::parse(Some(since), Some(until), &now);
        assert!(parse("2026-11-01", "2026-11-01").is_ok());
        let error = parse("2026-11-02", "2026-11-01").unwrap_err();
        assert_eq!(error.to_string(), "`2026-11-02` is not before `2026-11-01`");
        assert_eq!(error.hints(), ["exchange the two times of since and until"]);
    }

    #[test]
    fn a_range_of_all_times_has_no_start() {
        let now = Zoned::default();
        assert_eq!(TimeRange::parse(Some("all"), None, &now).unwrap(), TimeRange::default());
        let until = TimeRange::parse(None, Some("2026-11-01"), &now).unwrap();
        assert_eq!(TimeRange::parse(Some("all"), Some("2026-11-01"), &now).unwrap(), until);
        assert!(TimeRange::parse(None, Some("all"), &now).is_err());
    }

    #[test]
    fn a_moment_without_a_date_is_in_the_open_range_only() {
        let range = |from, to| TimeRange { from, to };
        assert!(range(None, None).contains(None));
        assert!(!range(Some(1), None).contains(None) && !range(None, Some(1)).contains(None));
        assert!(range(Some(1), Some(3)).contains(Some(1)) && !range(Some(1), Some(3)).contains(Some(3)));
    }
}
