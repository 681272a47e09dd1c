//! Figures for people: counts, times and sizes, rounded to what a reader needs.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadline_view::{Money, Totals};

use crate::markup::Markup;

/// `48k` for 48,211.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..10_000 => format!("{:.1}k", number as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// `1 line`, `3 lines`.
pub(crate) fn plural(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// `1.2 MB` for 1,200,000.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// `4.2 s`, `3 min 5 s`, `2 h 10 min`.
pub(crate) fn duration(millis: i64) -> String {
    let seconds = millis / 1000;
    match millis {
        ..0 => String::new(),
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{:.1} s", millis as f64 / 1e3),
        60_000..3_600_000 => match seconds % 60 {
            0 => format!("{} min", seconds / 60),
            rest => format!("{} min {rest} s", seconds / 60),
        },
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A moment in the reader's zone, and the same for machines.
pub(crate) fn moment(millis: i64, zone: &TimeZone, format: &str) -> Option<(String, String)> {
    let moment = jiff::Timestamp::from_millisecond(millis).ok()?;
    Some((moment.to_zoned(zone.clone()).strftime(format).to_string(), moment.to_string()))
}

/// The path as seen from the directory that the session ran in.
pub(crate) fn path<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    let below = cwd.filter(|cwd| !cwd.is_empty()).and_then(|cwd| path.strip_prefix(cwd));
    below.and_then(|rest| rest.strip_prefix(['/', '\\'])).filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// The text up to `limit` bytes, and how many were left off.
pub(crate) fn clip(text: &str, limit: Option<usize>) -> (&str, usize) {
    match limit {
        Some(limit) if text.len() > limit => {
            let end = text.floor_char_boundary(limit);
            (&text[..end], text.len() - end)
        }
        _ => (text, 0),
    }
}

/// The first words of a text on one line.
pub(crate) fn first_words(text: &str, limit: usize) -> String {
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

/// Text as part of an address: letters, digits and a few signs as they are, everything else as bytes.
pub fn url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let part = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

/// `12,345` for 12345.
pub(crate) fn exact(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.char_indices() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 session`, `3,000 sessions`.
pub(crate) fn many(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", exact(number), if number == 1 { "" } else { "s" })
}

/// What some calls cost; `≥` where it was more, and a dash where none of them has a price.
pub(crate) fn cost(totals: &Totals) -> String {
    match totals.calls > 0 && totals.unpriced_calls == totals.calls && totals.cost == Money::ZERO {
        true => "–".to_owned(),
        false if totals.is_least() => format!("≥ {}", money(totals.cost)),
        false => money(totals.cost),
    }
}

/// `$1,234.50`, `$0.0040`.
pub(crate) fn money(amount: Money) -> String {
    let short = amount.short();
    let (sign, rest) = short.split_once('$').unwrap_or(("", &short));
    let (whole, cents) = rest.split_once('.').unwrap_or((rest, "00"));
    format!("{sign}${}.{cents}", whole.parse().map_or_else(|_| whole.to_owned(), exact))
}

/// A model without its maker's name.
pub(crate) fn model(name: &str) -> &str {
    name.strip_prefix("claude-").unwrap_or(name)
}

/// A tool of a server by the tool's own name.
pub(crate) fn tool(name: &str) -> &str {
    name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map_or(name, |(_, tool)| tool)
}

/// The day of a moment.
pub(crate) fn date(millis: i64, zone: &TimeZone) -> Option<Date> {
    Some(jiff::Timestamp::from_millisecond(millis).ok()?.to_zoned(zone.clone()).date())
}

/// `Today`, `Thursday, 12 November`, `12 November 2025`.
pub(crate) fn day(day: Date, today: Option<Date>) -> String {
    match today {
        Some(today) if day == today => "Today".to_owned(),
        Some(today) if day.tomorrow().ok() == Some(today) => "Yesterday".to_owned(),
        Some(today) if day.year() == today.year() => day.strftime("%A, %-d %B").to_string(),
        _ => day.strftime("%-d %B %Y").to_string(),
    }
}

/// `just now`, `3 minutes ago`, `2 hours ago`, `12 Nov`, `12 Nov 2025`.
pub(crate) fn ago(at: i64, now: i64, zone: &TimeZone) -> String {
    match (now - at) / 1000 {
        ..60 => "just now".to_owned(),
        seconds @ 60..3600 => format!("{} ago", many(seconds as u64 / 60, "minute")),
        seconds @ 3600..86_400 => format!("{} ago", many(seconds as u64 / 3600, "hour")),
        _ => {
            let year = |at| date(at, zone).map(Date::year);
            let format = if year(at) == year(now) { "%-d %b" } else { "%-d %b %Y" };
            moment(at, zone, format).map(|(shown, _)| shown).unwrap_or_default()
        }
    }
}

/// The same where the day is known: `3 minutes ago`, then the time of the day.
pub(crate) fn clock_or_ago(at: i64, now: i64, zone: &TimeZone) -> String {
    if now - at < 3_600_000 {
        return ago(at, now, zone);
    }
    moment(at, zone, "%H:%M").map(|(shown, _)| shown).unwrap_or_default()
}

/// Adds a moment as a reader wants it, with the exact one behind it.
pub(crate) fn time(out: &mut Markup, at: i64, shown: &str, zone: &TimeZone) {
    let Some((exact, machine)) = moment(at, zone, "%A, %-d %B %Y, %H:%M:%S %Z") else { return };
    out.lit("<time datetime=\"")
        .text(&machine)
        .lit("\" title=\"")
        .text(&exact)
        .lit("\">")
        .text(shown)
        .lit("</time>");
}

/// Text on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text on one line that Markdown takes as it is.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::new();
    for ch in one_line(text).chars() {
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
    fn figures_are_short() {
        assert_eq!([count(7), count(1234), count(48_211), count(2_345_678)], ["7", "1.2k", "48k", "2.3M"]);
        assert_eq!(
            [duration(250), duration(4200), duration(185_000), duration(7_800_000)],
            ["250 ms", "4.2 s", "3 min 5 s", "2 h 10 min"]
        );
        assert_eq!(path("/home/ada/loom/src/a.rs", Some("/home/ada/loom")), "src/a.rs");
        assert_eq!(path("/home/ada/loomer/a.rs", Some("/home/ada/loom")), "/home/ada/loomer/a.rs");
        assert_eq!(clip("织机", Some(4)), ("织", 3));
        assert_eq!(first_words("a  b\nccc ddd", 6), "a b cc…");
    }

    #[test]
    fn times_are_as_near_as_a_reader_needs() {
        let zone = TimeZone::UTC;
        let now = 1_800_000_000_000;
        let told = |seconds: i64| ago(now - seconds * 1000, now, &zone);
        assert_eq!([told(5), told(60), told(7200)], ["just now", "1 minute ago", "2 hours ago"]);
        assert_eq!([told(86_400), told(90 * 86_400)], ["14 Jan", "17 Oct 2026"]);
        assert_eq!(clock_or_ago(now - 7_200_000, now, &zone), "06:00");
        let today = Date::constant(2027, 1, 15);
        let days =
            [today, Date::constant(2027, 1, 14), Date::constant(2027, 1, 10), Date::constant(2026, 12, 31)];
        let days = days.map(|date| day(date, Some(today)));
        assert_eq!(days, ["Today", "Yesterday", "Sunday, 10 January", "31 December 2026"]);
    }

    #[test]
    fn figures_have_their_marks() {
        assert_eq!(
            [exact(0), exact(999), exact(12_345), exact(1_000_000)],
            ["0", "999", "12,345", "1,000,000"]
        );
        assert_eq!([many(1, "turn"), many(3000, "turn")], ["1 turn", "3,000 turns"]);
        let dollars = |amount| money(Money::from_f64(amount).unwrap());
        assert_eq!([dollars(1234.5), dollars(0.004), dollars(-3.0)], ["$1,234.50", "$0.0040", "-$3.00"]);
        assert_eq!(cost(&Totals { calls: 1, unpriced_calls: 1, ..Totals::default() }), "–");
        assert_eq!(
            [tool("mcp__files__read"), tool("Bash"), model("claude-opus-5")],
            ["read", "Bash", "opus-5"]
        );
        assert_eq!(markdown("a [b](c)\n*d*"), "a \\[b\\](c) \\*d\\*");
    }
}
