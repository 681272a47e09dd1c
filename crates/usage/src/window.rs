//! Five-hour windows of a subscription: those that Claude Code named the end of, and estimates for the rest.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use threadline_entry::lens::{Content, FromJson};
use threadline_entry::{Json, Millis};

use crate::book::Book;
use crate::calls::{Call, Calls};
use crate::money::Money;
use crate::scan::UNDATED;
use crate::totals::Totals;

const HOUR: Millis = 3_600_000;
/// How long a window is open.
const WINDOW: Millis = 5 * HOUR;

/// What Claude Code said when a limit was reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit {
    /// When it said so, in milliseconds since 1970.
    pub at: Millis,
    /// What it said.
    pub text: String,
}

impl Limit {
    /// What a notice says of a limit, if it does.
    pub(crate) fn of(at: Millis, content: Json<'_>) -> Option<Self> {
        let text = Content::from_json(content)?.text().into_owned();
        (text.contains("limit") && text.len() < 500).then_some(Self { at, text })
    }
}

/// When a five-hour limit ends, as a notice says it: `…|1750000000` up to 1.0.x, `… resets 3:20am (Asia/Calcutta)` later.
///
/// `zone_named` finds a time zone; a notice that names none is read in `zone`. A weekly limit is none of these.
pub fn reset_of(
    limit: &Limit,
    zone: &TimeZone,
    zone_named: impl Fn(&str) -> Option<TimeZone>,
) -> Option<Millis> {
    if let Some((_, seconds)) = limit.text.split_once("limit reached|") {
        let digits: String = seconds.chars().take_while(char::is_ascii_digit).collect();
        return digits.parse::<Millis>().ok()?.checked_mul(1000);
    }
    let text = limit.text.to_lowercase();
    if text.contains("weekly") || text.contains("opus limit") || text.contains("sonnet limit") {
        return None;
    }
    let start = text.find("resets ")? + "resets ".len();
    // Lower case may have another length than the text itself, but these notices are ASCII up to the dot before.
    let told = &text[start..];
    let told = told.strip_prefix("at ").unwrap_or(told);
    let time = clock(told.split([' ', '(', '\n']).next()?)?;
    let named = limit.text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(name, _)| name);
    let zone = match named {
        Some(name) => zone_named(name)?,
        None => zone.clone(),
    };
    let said = Timestamp::from_millisecond(limit.at).ok()?.to_zoned(zone.clone());
    let today = said.date().to_datetime(time).to_zoned(zone.clone()).ok()?;
    let end = if today.timestamp() > said.timestamp() {
        today
    } else {
        said.date().tomorrow().ok()?.to_datetime(time).to_zoned(zone).ok()?
    };
    let end = end.timestamp().as_millisecond();
    // A window is not open for longer, so a later moment is the end of something else.
    (end - limit.at <= WINDOW).then_some(end)
}

/// Reads `3am`, `3:20pm`, `15:20`.
fn clock(text: &str) -> Option<Time> {
    let (digits, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0)),
        (_, Some(digits)) => (digits, Some(12)),
        _ => (text, None),
    };
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None if digits.contains(':') => hour,
        None => return None,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// A window of five hours, and what was used in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it began, in milliseconds since 1970.
    pub start: Millis,
    /// When it ends.
    pub end: Millis,
    /// Whether a log names the end; otherwise it is an estimate.
    pub stated: bool,
    /// The first call in it.
    pub first_at: Millis,
    /// The last call in it.
    pub last_at: Millis,
    /// What was used.
    pub totals: Totals,
}

impl Window {
    /// Whether it is open at `now`.
    pub fn is_active(&self, now: Millis) -> bool {
        self.start <= now && now < self.end && now - self.last_at < WINDOW
    }

    /// What an hour cost, from the first call to the last; `None` if that is too short a time to tell.
    pub fn cost_per_hour(&self) -> Option<Money> {
        let span = self.last_at - self.first_at;
        (span >= 60_000)
            .then(|| Money::from_steps(self.totals.cost.steps() * i128::from(HOUR) / i128::from(span)))
    }

    /// What the window will have cost at its end, if it goes on like this from `now`.
    pub fn projected(&self, now: Millis) -> Option<Money> {
        let left = i128::from((self.end - now).max(0));
        let more = self.cost_per_hour()?.steps() * left / i128::from(HOUR);
        Some(self.totals.cost + Money::from_steps(more))
    }
}

/// The windows that calls fall into, the earliest first.
///
/// `resets` are the ends that logs name. Around them, a window begins with the hour (UTC) of the first call
/// outside any other, and ends five hours later, or where a named one begins.
pub fn windows(
    calls: &Calls,
    book: &Book,
    resets: &[Millis],
    keep: impl Fn(&Call<'_>) -> bool,
) -> Vec<Window> {
    let mut rows: Vec<_> = calls.rows.iter().filter(|row| row.at != UNDATED).collect();
    rows.sort_by_key(|row| row.at);
    let mut resets = resets.to_vec();
    resets.sort_unstable();
    resets.dedup();
    let mut windows: Vec<Window> = Vec::new();
    for row in rows {
        let call = calls.call(row);
        if !keep(&call) {
            continue;
        }
        let at = row.at;
        let stated = resets.iter().copied().find(|end| (end - WINDOW..*end).contains(&at));
        let open = windows.last().is_some_and(|window| match stated {
            Some(end) => window.stated && window.end == end,
            None => !window.stated && at < window.end && at - window.last_at <= WINDOW,
        });
        if !open {
            let (start, end) = match stated {
                Some(end) => (end - WINDOW, end),
                None => {
                    let start = at - at.rem_euclid(HOUR);
                    let next = resets.iter().map(|end| end - WINDOW).find(|next| *next > at);
                    (start, next.map_or(start + WINDOW, |next| next.min(start + WINDOW)))
                }
            };
            windows.push(Window {
                start,
                end,
                stated: stated.is_some(),
                first_at: at,
                last_at: at,
                totals: Totals::default(),
            });
        }
        if let Some(window) = windows.last_mut() {
            window.last_at = at;
            window.totals += &Totals::of(&call, book);
        }
    }
    windows
}

impl Calls {
    /// What Claude Code said of limits, if the scans kept it.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_tells_when_the_window_ends() {
        let at = "2026-07-19T12:00:00Z".parse::<Timestamp>().unwrap().as_millisecond();
        let end = |text: &str| {
            let limit = Limit { at, text: text.to_owned() };
            let zone = |name: &str| (name == "Asia/Calcutta").then(|| TimeZone::fixed(jiff::tz::offset(5)));
            let end = reset_of(&limit, &TimeZone::UTC, zone)?;
            Some(Timestamp::from_millisecond(end).unwrap().to_string())
        };
        assert_eq!(end("Claude AI usage limit reached|1784476800").as_deref(), Some("2026-07-19T16:00:00Z"));
        assert_eq!(end("5-hour limit reached ∙ resets 3pm").as_deref(), Some("2026-07-19T15:00:00Z"));
        let zoned = end("You've hit your session limit · resets 8:20pm (Asia/Calcutta)");
        assert_eq!(zoned.as_deref(), Some("2026-07-19T15:20:00Z"));
        for odd in [
            "You've hit your session limit · resets 3am (Nowhere/Zone)",
            "You've hit your session limit · resets 11am",
            "You've hit your weekly limit · resets 3pm",
            "You've hit your session limit · resets Jul 20 at 3pm",
            "rate limit",
        ] {
            assert_eq!(end(odd), None, "{odd}");
        }
    }
}
