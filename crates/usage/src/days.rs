//! Maps times to days, weeks and months in a time zone.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use threadline_entry::Millis;

use crate::group::GroupBy;
use crate::scan::UNDATED;

/// Maps times to days in a time zone; fast for times close to each other.
pub(crate) struct DayLookup<'z> {
    zone: &'z TimeZone,
    pub(crate) by: GroupBy,
    /// The day of the last lookup: its start, its end, and the result.
    last: (Millis, Millis, u64),
}

/// The number of days from 0000-01-01 to 1970-01-01.
const FIRST_DAY: i64 = 719_528;
const UNDATED_DAY: u64 = u64::MAX;

impl<'z> DayLookup<'z> {
    pub(crate) fn new(zone: &'z TimeZone, by: GroupBy) -> Self {
        Self { zone, by, last: (0, 0, 0) }
    }

    /// Returns the number of the first day of the day, week or month that contains `at`.
    pub(crate) fn of(&mut self, at: Millis) -> u64 {
        if at < self.last.0 || at >= self.last.1 {
            let Some(found) = self.find(at) else { return UNDATED_DAY };
            self.last = found;
        }
        self.last.2
    }

    fn find(&self, at: Millis) -> Option<(Millis, Millis, u64)> {
        let moment = Timestamp::from_millisecond(at).ok().filter(|_| at != UNDATED)?;
        let date = moment.to_zoned(self.zone.clone()).date();
        let start = |date: Date| Some(date.to_zoned(self.zone.clone()).ok()?.timestamp().as_millisecond());
        let (from, to) = (start(date)?, start(date.tomorrow().ok()?)?);
        let first = match self.by {
            GroupBy::Week => {
                date.checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days()).ok()?
            }
            GroupBy::Month => date.first_of_month(),
            _ => date,
        };
        let epoch = Date::constant(1970, 1, 1);
        let days = i64::from(first.since(epoch).ok()?.get_days());
        Some((from, to, (days + FIRST_DAY) as u64))
    }

    pub(crate) fn label(&self, id: u64) -> String {
        if id == UNDATED_DAY {
            return "undated".to_owned();
        }
        let days = id as i64 - FIRST_DAY;
        let Ok(date) = Date::constant(1970, 1, 1).checked_add(days.days()) else {
            return "undated".to_owned();
        };
        match self.by {
            GroupBy::Week => {
                let week = date.iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            GroupBy::Month => date.strftime("%Y-%m").to_string(),
            _ => date.to_string(),
        }
    }
}
