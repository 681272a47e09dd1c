//! Five-hour usage windows of a subscription: those with an end stated by Claude Code, and estimates for the
//! rest.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use threadline_entry::lens::{Content, FromJson};
use threadline_entry::{Json, Millis};

use crate::calls::{ModelCall, ModelCalls};
use crate::money::Money;
use crate::price_book::PriceBook;
use crate::scan::UNDATED;
use crate::totals::UsageTotals;

const HOUR: Millis = 3_600_000;
/// The length of a window.
const WINDOW: Millis = 5 * HOUR;

/// A notice of Claude Code that a usage limit was reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitNotice {
    /// When the notice was written, in milliseconds since 1970.
    pub at: Millis,
    /// The text of the notice.
    pub text: String,
}

impl LimitNotice {
    /// Returns the limit that a notice is about, if any.
    pub(crate) fn of(at: Millis, content: Json<'_>) -> Option<Self> {
        let text = Content::from_json(content)?.text().into_owned();
        (text.contains("limit") && text.len() < 500).then_some(Self { at, text })
    }
}

/// Returns when a five-hour limit ends according to its notice: `…|1750000000` up to 1.0.x, `… resets 3:20am
/// (Asia/Calcutta)` in later versions.
///
/// `zone_named` looks up a time zone; `zone` is used if the notice names none. Returns `None` for other
/// limits, such as weekly ones.
pub fn limit_end(
    limit: &LimitNotice,
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
    // Lowercasing may change the length of a text, so offsets into `text` must not be used with `limit.text`.
    let reset_text = &text[start..];
    let reset_text = reset_text.strip_prefix("at ").unwrap_or(reset_text);
    let time = parse_clock(reset_text.split([' ', '(', '\n']).next()?)?;
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
    // A window is never longer, so a later time is the end of another limit.
    (end - limit.at <= WINDOW).then_some(end)
}

/// Parses `3am`, `3:20pm`, `15:20`.
fn parse_clock(text: &str) -> Option<Time> {
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

/// A window of five hours and its usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitWindow {
    /// When the window begins, in milliseconds since 1970.
    pub start: Millis,
    /// When the window ends.
    pub end: Millis,
    /// Whether the end is stated in a log; otherwise it is an estimate.
    pub stated: bool,
    /// The time of the first call in it.
    pub first_at: Millis,
    /// The time of the last call in it.
    pub last_at: Millis,
    /// The sum of its calls.
    pub totals: UsageTotals,
}

impl LimitWindow {
    /// Whether the window is open at `now`.
    pub fn is_active(&self, now: Millis) -> bool {
        self.start <= now && now < self.end && now - self.last_at < WINDOW
    }

    /// Returns the cost per hour between the first and the last call; `None` if they are less than a minute
    /// apart.
    pub fn cost_per_hour(&self) -> Option<Money> {
        let span = self.last_at - self.first_at;
        (span >= 60_000)
            .then(|| Money::from_steps(self.totals.cost.steps() * i128::from(HOUR) / i128::from(span)))
    }

    /// Returns the projected cost at the end of the window, if usage continues at the same rate from `now`.
    pub fn projected(&self, now: Millis) -> Option<Money> {
        let left = i128::from((self.end - now).max(0));
        let more = self.cost_per_hour()?.steps() * left / i128::from(HOUR);
        Some(self.totals.cost + Money::from_steps(more))
    }
}

/// Returns the windows that contain calls, earliest first.
///
/// `resets` are the ends stated in logs. Other windows begin at the full hour (UTC) of the first call outside
/// any window, and end five hours later or where a stated window begins.
pub fn windows(
    calls: &ModelCalls,
    book: &PriceBook,
    resets: &[Millis],
    keep: impl Fn(&ModelCall<'_>) -> bool,
) -> Vec<LimitWindow> {
    let mut rows: Vec<_> = calls.rows.iter().filter(|row| row.at != UNDATED).collect();
    rows.sort_by_key(|row| row.at);
    let mut resets = resets.to_vec();
    resets.sort_unstable();
    resets.dedup();
    let mut windows: Vec<LimitWindow> = Vec::new();
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
            windows.push(LimitWindow {
                start,
                end,
                stated: stated.is_some(),
                first_at: at,
                last_at: at,
                totals: UsageTotals::default(),
            });
        }
        if let Some(window) = windows.last_mut() {
            window.last_at = at;
            window.totals += &UsageTotals::of(&call, book);
        }
    }
    windows
}

impl ModelCalls {
    /// Returns the notices about limits. Requires [`ScanOptions::limits`](crate::ScanOptions::limits).
    pub fn limits(&self) -> &[LimitNotice] {
        &self.limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_contains_the_end_of_the_window() {
        let at = "2026-07-19T12:00:00Z".parse::<Timestamp>().unwrap().as_millisecond();
        let end = |text: &str| {
            let limit = LimitNotice { at, text: text.to_owned() };
            let zone = |name: &str| (name == "Asia/Calcutta").then(|| TimeZone::fixed(jiff::tz::offset(5)));
            let end = limit_end(&limit, &TimeZone::UTC, zone)?;
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
