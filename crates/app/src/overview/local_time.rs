//! Days and hours of many times in a time zone.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use threadline_entry::Millis;

use super::facts::{QUARTER, UNDATED};

const HOUR: Millis = 60 * 60 * 1000;
const DAY: Millis = 24 * HOUR;

/// Converts times to days and hours in a time zone; fast for times close to each other.
pub(super) struct LocalTime<'z> {
    zone: &'z TimeZone,
    /// The quarter of an hour of the last time, and the offset of the zone in it.
    last: (Millis, Millis),
}

/// A day and an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalHour {
    /// Days since 1970-01-01.
    pub(super) day: i64,
    /// The hour, from 0.
    pub(super) hour: usize,
}

impl LocalHour {
    /// Returns the weekday, from 0 for Monday.
    pub(super) fn weekday(self) -> usize {
        // 1970-01-01 was a Thursday.
        (self.day + 3).rem_euclid(7) as usize
    }
}

impl<'z> LocalTime<'z> {
    pub(super) fn new(zone: &'z TimeZone) -> Self {
        Self { zone, last: (Millis::MAX, 0) }
    }

    /// Returns the day and hour of a time; `None` if it is unknown or out of range.
    pub(super) fn hour_of(&mut self, at: Millis) -> Option<LocalHour> {
        if at == UNDATED {
            return None;
        }
        let quarter = at.div_euclid(QUARTER);
        if quarter != self.last.0 {
            let moment = Timestamp::from_millisecond(at).ok()?;
            self.last = (quarter, Millis::from(self.zone.to_offset(moment).seconds()) * 1000);
        }
        let local = at.checked_add(self.last.1)?;
        let hour = local.rem_euclid(DAY) / HOUR;
        Some(LocalHour { day: local.div_euclid(DAY), hour: hour as usize })
    }
}

/// Returns the number of days from 1970-01-01 to a day.
pub(super) fn day_number(day: Date) -> i64 {
    day.since(Date::constant(1970, 1, 1)).map_or(0, |span| span.get_days().into())
}

/// Returns the day with this number.
pub(super) fn date_of(number: i64) -> Date {
    let epoch = Date::constant(1970, 1, 1);
    let limited = number.clamp(-700_000, 2_900_000);
    epoch.checked_add(limited.days()).unwrap_or(epoch)
}

/// Returns the start of a day.
pub(super) fn start_of_day(day: Date, zone: &TimeZone) -> Millis {
    day.to_zoned(zone.clone()).map_or(0, |start| start.timestamp().as_millisecond())
}

/// Returns a time in the zone.
pub(super) fn zoned(at: Millis, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(at).ok()?.to_zoned(zone.clone()))
}

/// Returns the value of `since` that selects times from this one on: a day, if one starts then.
pub(super) fn since_text(at: Millis, zone: &TimeZone) -> String {
    match zoned(at, zone) {
        Some(time) if start_of_day(time.date(), zone) == at => time.date().to_string(),
        Some(time) => time.timestamp().to_string(),
        None => String::new(),
    }
}

/// Returns the value of `until` that selects times before this one: a day, if it ends then.
pub(super) fn until_text(at: Millis, zone: &TimeZone) -> String {
    match zoned(at, zone) {
        Some(time) if start_of_day(time.date(), zone) == at => {
            time.date().yesterday().map_or_else(|_| String::new(), |day| day.to_string())
        }
        Some(time) => time.timestamp().to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_those_of_the_zone() {
        let zone = TimeZone::fixed(jiff::tz::Offset::from_seconds(19_800).unwrap());
        let mut local = LocalTime::new(&zone);
        for text in ["2026-11-15T18:29:59Z", "2026-11-15T18:30:00Z", "1969-12-31T00:00:00Z"] {
            let at: Timestamp = text.parse().unwrap();
            let expected = at.to_zoned(zone.clone());
            let found = local.hour_of(at.as_millisecond()).unwrap();
            assert_eq!(date_of(found.day), expected.date());
            assert_eq!(day_number(expected.date()), found.day);
            assert_eq!(found.hour, expected.hour() as usize);
            let weekday = expected.date().weekday().to_monday_zero_offset() as usize;
            assert_eq!(found.weekday(), weekday);
        }
        assert_eq!(local.hour_of(UNDATED), None);
    }

    #[test]
    fn links_name_days_if_they_can() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        assert_eq!(since_text(at("2026-11-14T23:00:00Z"), &zone), "2026-11-15");
        assert_eq!(until_text(at("2026-11-14T23:00:00Z"), &zone), "2026-11-14");
        assert_eq!(since_text(at("2026-11-14T22:00:00Z"), &zone), "2026-11-14T22:00:00Z");
    }
}
