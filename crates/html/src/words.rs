//! Figures for people: counts, times and sizes, rounded to what a reader needs.

use jiff::tz::TimeZone;

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
}
