//! Timestamps as the log writes them.

/// Milliseconds since the Unix epoch.
pub type Millis = i64;

/// Parses a timestamp such as `2026-02-18T02:00:41.425Z`; returns `None` if it is not valid.
pub fn parse_timestamp(text: &str) -> Option<Millis> {
    parse_timestamp_bytes(text.as_bytes())
}

/// Does the same for bytes, which need not be UTF-8.
pub fn parse_timestamp_bytes(text: &[u8]) -> Option<Millis> {
    parse_standard_form(text).or_else(|| {
        let text = std::str::from_utf8(text).ok()?;
        text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
    })
}

/// Finds when a session started: the earliest timestamp of its lines before the first reply.
///
/// The first line is not always the earliest one: hooks and attachments are written after the prompt that
/// they precede, and a fork may begin with a line of its own before those of its origin. If no line before
/// the first reply has a timestamp, the first one counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionStartSearch {
    earliest: Option<Millis>,
    is_done: bool,
}

impl SessionStartSearch {
    /// Examines the next line: its own timestamp, and whether it is part of a reply. Lines after the first
    /// reply are ignored.
    pub fn add_line(&mut self, timestamp: impl FnOnce() -> Option<Millis>, is_reply: bool) {
        if is_reply && self.earliest.is_some() {
            self.is_done = true;
        }
        if !self.is_done
            && let Some(at) = timestamp()
        {
            self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
            self.is_done |= is_reply;
        }
    }

    /// Returns whether no further line is needed.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the start, if a line had a timestamp.
    pub fn start(&self) -> Option<Millis> {
        self.earliest
    }
}

/// Parses the one form that Claude Code writes; returns `None` for other forms and for invalid dates and
/// times.
fn parse_standard_form(text: &[u8]) -> Option<Millis> {
    const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let text: &[u8; 24] = text.try_into().ok()?;
    let fits = |(&byte, &form): (&u8, &u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    if !text.iter().zip(FORM).fold(true, |all, pair| all & fits(pair)) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().fold(0, |sum, &digit| sum * 10 + i64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
    let leap = i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let in_month = match month {
        2 => 28 + leap,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    // Leap seconds, and the last year that jiff supports, are left to jiff.
    if year == 9999 || !(1..=in_month).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days since 1970. Years begin in March here, which makes the leap day the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = 365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(20, 23))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_jiff(text: &str) -> Option<Millis> {
        text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
    }

    #[test]
    fn every_day_matches_jiff() {
        for year in [0, 1, 4, 100, 400, 1600, 1899, 1900, 1970, 1999, 2000, 2023, 2024, 2026, 2100, 9998] {
            for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                let text = format!("{year:04}-{month:02}-{day:02}T23:59:58.007Z");
                assert_eq!(parse_standard_form(text.as_bytes()), by_jiff(&text), "{text}");
            }
        }
    }

    #[test]
    fn other_forms_match_jiff() {
        for text in [
            "2026-02-18T02:00:41Z",
            "2026-02-18T02:00:41.425123Z",
            "2026-02-18T03:00:41.425+01:00",
            "2026-02-18 02:00:41.425Z",
            "2016-12-31T23:59:60.000Z",
            "2026-02-18T24:00:00.000Z",
            "2026-02-18T02:60:00.000Z",
            "2026-02-18t02:00:41.425z",
            "2026-02-18T02:00:41,425Z",
            "2026-02-1\u{661}T02:00:41.42Z",
            "9999-12-31T23:59:59.999Z",
            "yesterday",
            "",
        ] {
            assert_eq!(parse_timestamp(text), by_jiff(text), "{text}");
        }
    }

    #[test]
    fn a_session_starts_at_the_earliest_line_before_the_first_reply() {
        let start = |lines: &[(Option<Millis>, bool)]| {
            let mut search = SessionStartSearch::default();
            for (at, is_reply) in lines.iter().copied() {
                search.add_line(|| at, is_reply);
            }
            search.start()
        };
        assert_eq!(start(&[]), None);
        assert_eq!(start(&[(None, false), (Some(5), false), (Some(3), false), (Some(4), false)]), Some(3));
        assert_eq!(start(&[(Some(5), false), (Some(6), true), (Some(1), false)]), Some(5));
        assert_eq!(
            start(&[(None, true), (Some(6), true), (Some(1), true)]),
            Some(6),
            "no line before a reply"
        );
    }

    proptest! {
        #[test]
        fn any_text_of_that_form_matches_jiff(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9][.,][0-9]{3}[Zz]"
        ) {
            prop_assert_eq!(parse_timestamp(&text), by_jiff(&text));
        }
    }
}
