//! Times, money and excerpts as text.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use threadline_view::Money;
use threadline_view::humanize::plural;

use crate::markup::Markup;

/// Formats a time in the given zone, and as RFC 3339.
pub(crate) fn format_time(millis: i64, zone: &TimeZone, format: &str) -> Option<(String, String)> {
    let moment = jiff::Timestamp::from_millisecond(millis).ok()?;
    Some((moment.to_zoned(zone.clone()).strftime(format).to_string(), moment.to_string()))
}

/// Formats a time range, with the date once if both ends are on one day. Also returns the start as RFC 3339.
pub(crate) fn format_span((start, end): (i64, i64), zone: &TimeZone, day: &str) -> Option<(String, String)> {
    let ((first_day, exact), (from, _)) =
        (format_time(start, zone, day)?, format_time(start, zone, "%H:%M")?);
    let ((last_day, _), (until, _)) = (format_time(end, zone, day)?, format_time(end, zone, "%H:%M")?);
    let shown = match (first_day == last_day, from == until) {
        (true, true) => format!("{first_day}, {from}"),
        (true, false) => format!("{first_day}, {from}–{until}"),
        (false, _) => format!("{first_day}, {from} to {last_day}, {until}"),
    };
    Some((shown, exact))
}

/// Returns the path relative to the working directory of the session, if it is inside.
pub(crate) fn path<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    let below = cwd.filter(|cwd| !cwd.is_empty()).and_then(|cwd| path.strip_prefix(cwd));
    below.and_then(|rest| rest.strip_prefix(['/', '\\'])).filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// Truncates text to `limit` bytes at a character boundary. Also returns the number of bytes left out.
pub(crate) fn truncate(text: &str, limit: Option<usize>) -> (&str, usize) {
    match limit {
        Some(limit) if text.len() > limit => {
            let end = text.floor_char_boundary(limit);
            (&text[..end], text.len() - end)
        }
        _ => (text, 0),
    }
}

/// Returns the beginning of a text on one line, truncated to about `limit` bytes.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        if out.len() + word.len() > limit {
            let end = word.floor_char_boundary(limit.saturating_sub(out.len()));
            out.push_str(&word[..end]);
            out.push('…');
            break;
        }
        out.push_str(word);
    }
    out
}

/// The bytes of a text in a URL that are percent-encoded: all except ASCII letters, digits and `-_.~`.
pub(crate) const URL_TEXT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Percent-encodes text for use in a URL.
pub fn encode_url(text: &str) -> String {
    utf8_percent_encode(text, URL_TEXT).to_string()
}

/// Formats money: `$1,234.50`, `$0.0040`.
pub(crate) fn money(amount: Money) -> String {
    amount.short()
}

/// Returns the date of a time.
pub(crate) fn date(millis: i64, zone: &TimeZone) -> Option<Date> {
    Some(jiff::Timestamp::from_millisecond(millis).ok()?.to_zoned(zone.clone()).date())
}

/// Formats a date relative to today: `Today`, `Yesterday`, `Thursday, 12 November`, `12 November 2025`.
pub(crate) fn day(day: Date, today: Option<Date>) -> String {
    match today {
        Some(today) if day == today => "Today".to_owned(),
        Some(today) if day.tomorrow().ok() == Some(today) => "Yesterday".to_owned(),
        Some(today) if day.year() == today.year() => day.strftime("%A, %-d %B").to_string(),
        _ => day.strftime("%-d %B %Y").to_string(),
    }
}

/// Formats a time relative to now: `just now`, `3 minutes ago`, `2 hours ago`, `12
/// Nov`, `12 Nov 2025`.
pub(crate) fn relative_time(at: i64, now: i64, zone: &TimeZone) -> String {
    match (now - at) / 1000 {
        ..60 => "just now".to_owned(),
        seconds @ 60..3600 => format!("{} ago", plural(seconds as u64 / 60, "minute")),
        seconds @ 3600..86_400 => format!("{} ago", plural(seconds as u64 / 3600, "hour")),
        _ => {
            let year = |at| date(at, zone).map(Date::year);
            let format = if year(at) == year(now) { "%-d %b" } else { "%-d %b %Y" };
            format_time(at, zone, format).map(|(shown, _)| shown).unwrap_or_default()
        }
    }
}

/// Formats a time below a heading with its date: `3 minutes ago` within an hour, else the time of
/// day.
pub(crate) fn time_of_day_or_relative(at: i64, now: i64, zone: &TimeZone) -> String {
    if now - at < 3_600_000 {
        return relative_time(at, now, zone);
    }
    format_time(at, zone, "%H:%M").map(|(shown, _)| shown).unwrap_or_default()
}

/// Adds a `time` element with the given text, and the exact time as its tooltip.
pub(crate) fn add_time(out: &mut Markup, at: i64, shown: &str, zone: &TimeZone) {
    let Some((exact, machine)) = format_time(at, zone, "%A, %-d %B %Y, %H:%M:%S %Z") else { return };
    out.lit("<time datetime=\"")
        .text(&machine)
        .lit("\" title=\"")
        .text(&exact)
        .lit("\">")
        .text(shown)
        .lit("</time>");
}

/// Returns text on one line, escaped for Markdown.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::new();
    for ch in threadline_view::humanize::one_line(text).chars() {
        if matches!(ch, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '!' | '&') {
            out.push('\\');
        }
        out.push(ch);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_texts_are_shortened() {
        assert_eq!(path("/home/ada/loom/src/a.rs", Some("/home/ada/loom")), "src/a.rs");
        assert_eq!(path("/home/ada/loomer/a.rs", Some("/home/ada/loom")), "/home/ada/loomer/a.rs");
        assert_eq!(truncate("织机", Some(4)), ("织", 3));
        assert_eq!(excerpt("a  b\nccc ddd", 6), "a b cc…");
    }

    #[test]
    fn times_are_relative_or_dates() {
        let zone = TimeZone::UTC;
        let now = 1_800_000_000_000;
        let ago = |seconds: i64| relative_time(now - seconds * 1000, now, &zone);
        assert_eq!([ago(5), ago(60), ago(7200)], ["just now", "1 minute ago", "2 hours ago"]);
        assert_eq!([ago(86_400), ago(90 * 86_400)], ["14 Jan", "17 Oct 2026"]);
        assert_eq!(time_of_day_or_relative(now - 7_200_000, now, &zone), "06:00");
        let today = Date::constant(2027, 1, 15);
        let days =
            [today, Date::constant(2027, 1, 14), Date::constant(2027, 1, 10), Date::constant(2026, 12, 31)];
        let days = days.map(|date| day(date, Some(today)));
        assert_eq!(days, ["Today", "Yesterday", "Sunday, 10 January", "31 December 2026"]);
    }

    #[test]
    fn money_is_formatted() {
        let dollars = |amount| money(Money::from_f64(amount).unwrap());
        assert_eq!([dollars(1234.5), dollars(0.004), dollars(-3.0)], ["$1,234.50", "$0.0040", "-$3.00"]);
        assert_eq!(markdown("a [b](c)\n*d*"), "a \\[b\\](c) \\*d\\*");
    }
}
