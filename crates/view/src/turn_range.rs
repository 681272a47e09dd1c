//! A range of turns, as a person types it.

use std::str::FromStr;

/// A range of turns, counted from 1; negative numbers count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnRange {
    from: i64,
    to: i64,
}

impl TurnRange {
    /// Returns whether a turn is in the range, given its number and the number of turns.
    pub fn contains(self, number: usize, count: usize) -> bool {
        let place = |n: i64| if n < 0 { count as i64 + 1 + n } else { n };
        (place(self.from)..=place(self.to)).contains(&(number as i64))
    }
}

impl FromStr for TurnRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, default: i64| match text {
            "" => Ok(default),
            text => text.parse().map_err(|_| format!("`{text}` is not a number")),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Self { from: number(from, 1)?, to: number(to, -1)? }),
            None if text.is_empty() => Err("missing range".to_owned()),
            None => number(text, 1).map(|n| Self { from: n, to: n }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TurnRange;

    #[test]
    fn ranges_count_from_both_ends() {
        let hits = |text: &str| {
            let range: TurnRange = text.parse().unwrap();
            (1..=5).filter(|&n| range.contains(n, 5)).collect::<Vec<_>>()
        };
        assert_eq!(hits("3"), [3]);
        assert_eq!(hits("-1"), [5]);
        assert_eq!(hits("2..4"), [2, 3, 4]);
        assert_eq!(hits("4.."), [4, 5]);
        assert_eq!(hits("..2"), [1, 2]);
        assert_eq!(hits("-2.."), [4, 5]);
        assert!("x".parse::<TurnRange>().is_err());
    }
}
