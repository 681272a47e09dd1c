//! The periods of the overview.

use jiff::{ToSpan, Zoned};
use threadline_entry::Millis;

use super::facts::QUARTER;
use super::local_time::{since_text, start_of_day, until_text, zoned};
use crate::error::AppError;
use crate::time::TimeRange;

/// A period of the overview. It begins and ends at a full quarter of an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverviewRange {
    /// `today`, `7d`, `30d`, `year`, `all`, or `range`.
    pub name: &'static str,
    /// Its start and end.
    pub range: TimeRange,
    /// The text of `--since` that selects its start.
    pub since: Option<String>,
    /// The text of `--until` that selects its end.
    pub until: Option<String>,
}

/// The named periods, with their numbers of days.
const PRESETS: &[(&str, i64)] = &[("today", 1), ("7d", 7), ("30d", 30), ("year", 365)];

impl OverviewRange {
    /// Returns today, the last 7 and 30 days, and the last year. Each includes today.
    pub fn presets(now: &Zoned) -> Vec<Self> {
        PRESETS.iter().map(|(name, days)| Self::last_days(name, *days, now)).collect()
    }

    /// Returns the period with this name: `today`, `7d`, `30d`, `year` or `all`.
    pub fn named(name: &str, now: &Zoned) -> Option<Self> {
        if name == "all" {
            return Some(Self::new("all", TimeRange::default(), now));
        }
        let (name, days) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(Self::last_days(name, *days, now))
    }

    /// Parses a period: a name of [`OverviewRange::named`] as `since`, or the bounds that
    /// [`TimeRange::parse`] accepts. Without bounds, returns the period named `default`. The start is rounded
    /// down, and the end up, to a quarter of an hour.
    ///
    /// # Errors
    ///
    /// [`AppError::NotATime`].
    pub fn parse(
        since: Option<&str>,
        until: Option<&str>,
        default: &str,
        now: &Zoned,
    ) -> Result<Self, AppError> {
        let name = if until.is_none() { since.or(Some(default)) } else { since };
        let named = name.and_then(|name| Self::named(name, now));
        let range = match (named, until) {
            (Some(named), None) => return Ok(named),
            (Some(named), Some(_)) => {
                TimeRange { from: named.range.from, ..TimeRange::parse(None, until, now)? }
            }
            (None, _) => TimeRange::parse(since, until, now)?,
        };
        Ok(Self::new("range", range, now))
    }

    fn last_days(name: &'static str, days: i64, now: &Zoned) -> Self {
        let today = now.date();
        let zone = now.time_zone();
        let first = today.checked_sub((days - 1).days()).unwrap_or(today);
        let range = TimeRange {
            from: Some(start_of_day(first, zone)),
            to: Some(start_of_day(today.tomorrow().unwrap_or(today), zone)),
        };
        Self::new(name, range, now)
    }

    fn new(name: &'static str, range: TimeRange, now: &Zoned) -> Self {
        let zone = now.time_zone();
        let from = range.from.map(|from| from.div_euclid(QUARTER) * QUARTER);
        let to = range.to.map(|to| to.saturating_add(QUARTER - 1).div_euclid(QUARTER) * QUARTER);
        let since = from.map(|from| since_text(from, zone));
        let until = to.map(|to| until_text(to, zone));
        Self { name, range: TimeRange { from, to }, since, until }
    }

    /// Returns the end of the period; of one without an end, that of the current quarter of an hour.
    pub(super) fn end(&self, now: &Zoned) -> Millis {
        let now = now.timestamp().as_millisecond();
        self.range.to.unwrap_or_else(|| (now.div_euclid(QUARTER) + 1) * QUARTER)
    }

    /// Returns the period of the same length before this one. If this one is not over yet, the previous one
    /// ends at the same point. `None` if this one has no start.
    pub(super) fn previous(&self, now: &Zoned) -> Option<TimeRange> {
        let from = self.range.from?;
        let to = self.end(now);
        let zone = now.time_zone();
        let (first, end) = (zoned(from, zone)?, zoned(to, zone)?);
        let is_midnight = |time: &Zoned, at: Millis| start_of_day(time.date(), zone) == at;
        // Days may have 23 or 25 hours.
        let before = if is_midnight(&first, from) && is_midnight(&end, to) {
            let days = first.date().until(end.date()).ok()?.get_days();
            start_of_day(first.date().checked_sub(days.days()).ok()?, zone)
        } else {
            from.checked_sub(to.checked_sub(from)?)?
        };
        let missing = to.saturating_sub(now.timestamp().as_millisecond()).max(0);
        let missing = missing.div_euclid(QUARTER) * QUARTER;
        Some(TimeRange { from: Some(before), to: Some(from.saturating_sub(missing).max(before)) })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;

    fn now() -> Zoned {
        let now: Timestamp = "2026-11-15T11:07:00Z".parse().unwrap();
        now.to_zoned(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
    }

    fn text(range: TimeRange) -> String {
        let text = |at: Option<Millis>| {
            at.map_or_else(|| "-".to_owned(), |at| Timestamp::from_millisecond(at).unwrap().to_string())
        };
        format!("{} {}", text(range.from), text(range.to))
    }

    #[test]
    fn periods_consist_of_whole_days_and_include_today() {
        let presets = OverviewRange::presets(&now());
        let found: Vec<String> = presets
            .iter()
            .map(|period| {
                format!("{} {:?} {:?}", period.name, period.since.as_deref(), period.until.as_deref())
            })
            .collect();
        assert_eq!(
            found,
            [
                r#"today Some("2026-11-15") Some("2026-11-15")"#,
                r#"7d Some("2026-11-09") Some("2026-11-15")"#,
                r#"30d Some("2026-10-17") Some("2026-11-15")"#,
                r#"year Some("2025-11-16") Some("2026-11-15")"#,
            ]
        );
        assert_eq!(text(presets[2].range), "2026-10-16T22:00:00Z 2026-11-15T23:00:00Z");
    }

    #[test]
    fn the_previous_period_ends_at_the_same_point() {
        let presets = OverviewRange::presets(&now());
        assert_eq!(text(presets[0].previous(&now()).unwrap()), "2026-11-13T23:00:00Z 2026-11-14T11:15:00Z");
        // Summer time ended on 25 October.
        assert_eq!(text(presets[2].previous(&now()).unwrap()), "2026-09-16T22:00:00Z 2026-10-16T10:15:00Z");
        let old = OverviewRange::parse(Some("2026-03-01"), Some("2026-03-02"), "30d", &now()).unwrap();
        assert_eq!(text(old.previous(&now()).unwrap()), "2026-02-26T23:00:00Z 2026-02-28T23:00:00Z");
        assert_eq!(OverviewRange::named("all", &now()).unwrap().previous(&now()), None);
    }

    #[test]
    fn names_are_periods_and_starts() {
        let parse = |since, until| OverviewRange::parse(since, until, "30d", &now()).unwrap();
        assert_eq!(parse(None, None), OverviewRange::named("30d", &now()).unwrap());
        for name in ["today", "7d", "30d", "year", "all"] {
            assert_eq!(parse(Some(name), None), OverviewRange::named(name, &now()).unwrap());
        }
        // The days of a duration are those of the period with this name.
        assert_eq!(parse(Some("1w"), None).since, parse(Some("7d"), None).since);
        assert_eq!(parse(Some("7d"), Some("today")).range, parse(Some("7d"), None).range);
        assert_eq!(parse(Some("all"), Some("2026-11-01")).range, parse(None, Some("2026-11-01")).range);
    }

    #[test]
    fn other_periods_are_rounded() {
        let range = OverviewRange::parse(Some("12h"), None, "30d", &now()).unwrap();
        assert_eq!(text(range.range), "2026-11-14T23:00:00Z -");
        assert_eq!(range.since.as_deref(), Some("2026-11-15"));
        let range = OverviewRange::parse(Some("2h"), Some("2026-11-15T10:50:01Z"), "30d", &now()).unwrap();
        assert_eq!(text(range.range), "2026-11-15T09:00:00Z 2026-11-15T11:00:00Z");
        assert_eq!(range.since.as_deref(), Some("2026-11-15T09:00:00Z"));
    }
}
