//! Parses times as users type them: `2026-03-01`, `7d`, `yesterday`.

use jiff::civil::{Date, DateTime};
use jiff::{Span, Timestamp, ToSpan, Zoned};
use threadline_entry::Millis;

/// Parses a time relative to `now` and returns the start and end of the range it denotes.
///
/// A day, month or year is a range. For a point in time both ends are equal.
///
/// Durations of days and longer are whole days that include today, because figures are grouped by day: since
/// `7d` is the last seven days, and until `7d` is everything before them. `12h` is twelve hours ago.
pub fn parse(text: &str, now: &Zoned) -> Option<(Millis, Millis)> {
    let text = text.trim().to_ascii_lowercase();
    let today = now.date();
    match &*text {
        "today" => return day_range(today, 1.day(), now),
        "yesterday" => return day_range(today.yesterday().ok()?, 1.day(), now),
        "now" => return point(now.timestamp()),
        _ => {}
    }
    if let Some((ago, is_days)) = ago(&text) {
        if !is_days {
            return point(now.checked_sub(ago).ok()?.timestamp());
        }
        let first = today.checked_sub(ago).ok()?.tomorrow().ok()?.min(today);
        return point(first.to_zoned(now.time_zone().clone()).ok()?.timestamp());
    }
    if let Some((date, length)) = calendar(&text) {
        return day_range(date, length, now);
    }
    let text = text.to_ascii_uppercase();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return point(moment);
    }
    let local = text.parse::<DateTime>().ok()?;
    point(local.to_zoned(now.time_zone().clone()).ok()?.timestamp())
}

/// Parses a duration: `90m`, `12h`, `7d`, `2w`, `3mo`, `1y`. Returns whether it consists of whole days.
fn ago(text: &str) -> Option<(Span, bool)> {
    let unit = text.find(|ch: char| !ch.is_ascii_digit())?;
    let (amount, unit) = text.split_at(unit);
    let amount: i32 = amount.parse().ok().filter(|amount| *amount < 10_000)?;
    Some(match unit {
        "m" | "min" => (amount.minutes(), false),
        "h" => (amount.hours(), false),
        "d" => (amount.days(), true),
        "w" => (amount.weeks(), true),
        "mo" => (amount.months(), true),
        "y" => (amount.years(), true),
        _ => return None,
    })
}

/// Parses a day, a month or a year.
fn calendar(text: &str) -> Option<(Date, Span)> {
    let digits = |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    let date = |month: &str, day: &str| {
        Date::new(parts[0].parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
    };
    match parts[..] {
        [year] if digits(year, 4) => Some((date("1", "1")?, 1.year())),
        [year, month] if digits(year, 4) && digits(month, 2) => Some((date(month, "1")?, 1.month())),
        [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2) => {
            Some((date(month, day)?, 1.day()))
        }
        _ => None,
    }
}

fn day_range(from: Date, length: Span, now: &Zoned) -> Option<(Millis, Millis)> {
    let millis = |date: Date| {
        let start = date.to_zoned(now.time_zone().clone()).ok()?;
        Some(start.timestamp().as_millisecond())
    };
    Some((millis(from)?, millis(from.checked_add(length).ok()?)?))
}

fn point(moment: Timestamp) -> Option<(Millis, Millis)> {
    let millis = moment.as_millisecond();
    Some((millis, millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_relative_to_now() {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
        let now: Timestamp = "2026-03-10T10:00:00Z".parse().unwrap();
        let now = now.to_zoned(zone);
        let parsed = |text: &str| {
            let show = |millis| Timestamp::from_millisecond(millis).unwrap().to_string();
            parse(text, &now).map_or("-".into(), |(from, to)| format!("{} {}", show(from), show(to)))
        };
        for (text, expected) in [
            ("today", "2026-03-09T22:00:00Z 2026-03-10T22:00:00Z"),
            ("yesterday", "2026-03-08T22:00:00Z 2026-03-09T22:00:00Z"),
            ("2026-03-01", "2026-02-28T22:00:00Z 2026-03-01T22:00:00Z"),
            ("2026-02", "2026-01-31T22:00:00Z 2026-02-28T22:00:00Z"),
            ("2025", "2024-12-31T22:00:00Z 2025-12-31T22:00:00Z"),
            ("7d", "2026-03-03T22:00:00Z 2026-03-03T22:00:00Z"),
            ("1w", "2026-03-03T22:00:00Z 2026-03-03T22:00:00Z"),
            ("1d", "2026-03-09T22:00:00Z 2026-03-09T22:00:00Z"),
            ("0d", "2026-03-09T22:00:00Z 2026-03-09T22:00:00Z"),
            ("90m", "2026-03-10T08:30:00Z 2026-03-10T08:30:00Z"),
            ("1mo", "2026-02-10T22:00:00Z 2026-02-10T22:00:00Z"),
            ("2026-03-01T08:00", "2026-03-01T06:00:00Z 2026-03-01T06:00:00Z"),
            ("2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z 2026-03-01T08:00:00Z"),
            ("soon", "-"),
            ("2026-13-01", "-"),
            ("", "-"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }
}
