//! View data as terminal text.
//!
//! Everything here takes plain view data and a [`Page`] (how wide, with colours or without) and gives
//! text. Other people's text is made visible first: a control character is shown, never obeyed.

#![warn(missing_docs)]

mod ansi;
mod card;
mod highlight;
mod markdown;
mod outline;
mod page;
mod styled;
mod table;
mod transcript;
mod visible;

pub use outline::render_outline;
pub use page::{Label, Page};
pub use table::{Align, Column, table};
pub use transcript::{Style, Telegraph, render_end, render_items, render_transcript};
pub use visible::visible;

/// A number with its thousands set apart.
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

/// A number as short as it can be said: `48k`.
pub fn short_count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..10_000 => format!("{:.1}k", number as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// A size in the unit that fits.
pub fn bytes(size: u64) -> String {
    match size {
        0..1000 => format!("{size} B"),
        1000..1_000_000 => format!("{:.1} kB", size as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size as f64 / 1e6),
        _ => format!("{:.1} GB", size as f64 / 1e9),
    }
}

/// How long something took, in the unit that fits.
pub fn duration(millis: i64) -> String {
    match millis {
        ..10_000 => format!("{:.1} s", millis as f64 / 1e3),
        10_000..60_000 => format!("{} s", millis / 1000),
        60_000..3_600_000 => format!("{} min {:02} s", millis / 60_000, millis / 1000 % 60),
        _ => format!("{} h {:02} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_are_easy_to_read() {
        assert_eq!([0, 999, 1000, 1234567].map(super::count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([999, 1234, 48_900, 2_500_000].map(super::short_count), ["999", "1.2k", "48k", "2.5M"]);
        assert_eq!([5, 1500, 2_500_000].map(super::bytes), ["5 B", "1.5 kB", "2.5 MB"]);
        assert_eq!(
            [40, 12_000, 75_000, 7_260_000].map(super::duration),
            ["0.0 s", "12 s", "1 min 15 s", "2 h 01 min"]
        );
    }
}
