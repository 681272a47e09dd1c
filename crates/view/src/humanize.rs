//! Formats texts, counts, sizes, times and durations for people.

use std::fmt;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use threadline_entry::Millis;

/// Returns a text on one line, with each run of white space replaced by one space.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    append_joined(&mut line, text.split_whitespace(), " ");
    line
}

/// A text on one line when it is displayed, as [`one_line`] returns it.
pub(crate) struct OneLine<'t>(pub(crate) &'t str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split_whitespace().enumerate().try_for_each(|(n, word)| {
            f.write_str(if n > 0 { " " } else { "" })?;
            f.write_str(word)
        })
    }
}

/// Joins texts. Keeps none of them, since a log may have very many.
pub(crate) fn joined<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut out = String::new();
    append_joined(&mut out, texts, separator);
    out
}

fn append_joined<T: AsRef<str>>(out: &mut String, texts: impl IntoIterator<Item = T>, separator: &str) {
    for (n, text) in texts.into_iter().enumerate() {
        if n > 0 {
            out.push_str(separator);
        }
        out.push_str(text.as_ref());
    }
}

/// Formats a number with thousands separators: `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number as briefly as possible: `48k`.
pub fn short_count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..9950 => format!("{:.1}k", number as f64 / 1e3),
        9950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        999_500..999_950_000 => format!("{:.1}M", number as f64 / 1e6),
        _ => format!("{:.1}B", number as f64 / 1e9),
    }
}

/// Formats a count with its noun: `1 branch`, `3,000 branches`.
pub fn plural(number: u64, noun: &str) -> String {
    let ending = match noun {
        _ if number == 1 => "",
        noun if noun.ends_with("ch") => "es",
        noun if noun.ends_with("py") => "ies",
        _ => "s",
    };
    let noun = if ending == "ies" { &noun[..noun.len() - 1] } else { noun };
    format!("{} {noun}{ending}", count(number))
}

/// Formats added and removed lines: `+3,570 −541`, `+2`, `−1`.
pub fn line_change(added: usize, removed: usize) -> String {
    match (added as u64, removed as u64) {
        (added, 0) => format!("+{}", count(added)),
        (0, removed) => format!("−{}", count(removed)),
        (added, removed) => format!("+{} −{}", count(added), count(removed)),
    }
}

/// Formats a share of a whole, from 0 to 1, in percent. A small one is not rounded to nothing: `12 %`, `< 1
/// %`.
pub fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "< 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Formats a size in bytes in a fitting decimal unit: `1.5 kB`.
pub fn bytes(size: u64) -> String {
    match size {
        0..1000 => format!("{size} B"),
        1000..999_950 => format!("{:.1} kB", size as f64 / 1e3),
        999_950..999_950_000 => format!("{:.1} MB", size as f64 / 1e6),
        _ => format!("{:.1} GB", size as f64 / 1e9),
    }
}

/// Formats a duration in a fitting unit: `4.2 s`, `3 min 05 s`.
pub fn duration(millis: i64) -> String {
    match millis {
        ..1000 => format!("{} ms", millis.max(0)),
        1000..9950 => format!("{:.1} s", millis as f64 / 1e3),
        9950..59_500 => format!("{:.0} s", millis as f64 / 1e3),
        59_500..3_600_000 => {
            let seconds = (millis + 500) / 1000;
            format!("{} min {:02} s", seconds / 60, seconds % 60)
        }
        _ => format!("{} h {:02} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

/// Formats the time that something has been running for, in whole seconds: `12 s`, `3 min 05 s`.
pub fn seconds(millis: i64) -> String {
    if millis < 9950 { format!("{} s", millis.max(0) / 1000) } else { duration(millis) }
}

/// Formats a time with its date, to the minute: `2026-11-15 09:30`. Returns an empty text for a time that no
/// calendar has.
pub fn minute(millis: Millis, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(millis).map(|at| at.to_zoned(zone.clone()));
    at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

/// Formats a time as briefly as possible: that of today, or else the date: `09:30`, `2026-11-15`.
pub fn time_or_date(millis: Millis, now: &Zoned) -> String {
    let at = Timestamp::from_millisecond(millis).map(|at| at.to_zoned(now.time_zone().clone()));
    let format = |at: &Zoned| if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d" };
    at.map(|at| at.strftime(format(&at)).to_string()).unwrap_or_default()
}

/// Returns the beginning of an id, which identifies a session among those of a person: `3f2a91c2`.
pub fn short_id(id: &str) -> &str {
    id.char_indices().nth(8).map_or(id, |(end, _)| &id[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_joined_and_put_on_one_line() {
        for (text, line) in [("", ""), (" \n\t", ""), ("a", "a"), (" a \n\n b\tc\u{3000}d ", "a b c d")] {
            assert_eq!(one_line(text), line, "{text:?}");
        }
        assert_eq!(joined(Vec::<&str>::new(), ", "), "");
        assert_eq!(joined(["", "a", ""], ", "), ", a, ");
    }

    #[test]
    fn times_and_ids_are_short() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(minute(1_767_261_600_000, &zone), "2026-01-01 12:00");
        assert_eq!(minute(Millis::MAX, &zone), "");
        let now = Timestamp::from_millisecond(1_767_304_740_000).unwrap().to_zoned(zone);
        let times = [1_767_261_600_000, 1_767_218_399_000, Millis::MAX].map(|at| time_or_date(at, &now));
        assert_eq!(times, ["12:00", "2025-12-31", ""]);
        assert_eq!(short_id("3f2a91c2-0000-4000-8000-000000000001"), "3f2a91c2");
        assert_eq!((short_id("größer als acht"), short_id("abc")), ("größer a", "abc"));
    }

    #[test]
    fn small_shares_are_not_nothing() {
        assert_eq!([0.0, 0.004, 0.01, 0.126, 1.0].map(share), ["0 %", "< 1 %", "1 %", "13 %", "100 %"]);
    }

    #[test]
    fn changes_name_only_what_changed() {
        let changes = [line_change(3570, 541), line_change(2, 0), line_change(0, 1), line_change(0, 0)];
        assert_eq!(changes, ["+3,570 −541", "+2", "−1", "+0"]);
    }

    #[test]
    fn numbers_are_rounded_for_people() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let shorts = [999, 1234, 9999, 48_211, 999_999, 2_345_678, 2_840_000_000].map(short_count);
        assert_eq!(shorts, ["999", "1.2k", "10k", "48k", "1.0M", "2.3M", "2.8B"]);
        assert_eq!([5, 1500, 63_400, 2_500_000].map(bytes), ["5 B", "1.5 kB", "63.4 kB", "2.5 MB"]);
        let durations = [40, 4200, 12_000, 59_900, 75_000, 185_000, 7_260_000].map(duration);
        let texts = ["40 ms", "4.2 s", "12 s", "1 min 00 s", "1 min 15 s", "3 min 05 s", "2 h 01 min"];
        assert_eq!(durations, texts);
        let some = [plural(1, "turn"), plural(3000, "turn"), plural(2, "branch"), plural(0, "line")];
        assert_eq!(some, ["1 turn", "3,000 turns", "2 branches", "0 lines"]);
    }
}
