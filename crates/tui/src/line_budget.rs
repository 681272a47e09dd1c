//! The number of finished lines that one update of the terminal may contain.

use std::time::Duration;

/// A write that takes longer than this keeps keys waiting: one that arrives meanwhile is drawn after it.
const LONGEST_WRITE: Duration = Duration::from_millis(3);
/// The bounds of the number of lines.
const MIN_LINES: usize = 8;
const MAX_LINES: usize = 100;

/// Adapts the number of lines of an update to the speed of the terminal.
#[derive(Debug)]
pub(crate) struct LineBudget {
    lines: usize,
}

impl Default for LineBudget {
    fn default() -> Self {
        Self { lines: MAX_LINES / 4 }
    }
}

impl LineBudget {
    /// The largest number of lines of the next update. An update after a key is small, so that its character
    /// does not come after a long output.
    pub(crate) fn lines(&self, is_after_key: bool) -> usize {
        if is_after_key { MIN_LINES } else { self.lines }
    }

    /// Takes the time into account that an update with a number of lines took.
    pub(crate) fn add_write(&mut self, lines: usize, time: Duration) {
        if time > LONGEST_WRITE {
            self.lines = (lines.min(self.lines) / 2).max(MIN_LINES);
        } else if lines >= self.lines && time < LONGEST_WRITE / 2 {
            self.lines = (self.lines * 2).min(MAX_LINES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_terminal_gets_few_lines_at_once_and_a_fast_one_many() {
        let mut budget = LineBudget::default();
        let slow = Duration::from_millis(10);
        for _ in 0..5 {
            budget.add_write(budget.lines(false), slow);
        }
        assert_eq!(budget.lines(false), MIN_LINES);
        // The time of a short update does not predict that of long ones.
        budget.add_write(2, Duration::from_micros(10));
        assert_eq!(budget.lines(false), MIN_LINES);
        for _ in 0..5 {
            budget.add_write(budget.lines(false), Duration::from_micros(100));
        }
        assert_eq!(budget.lines(false), MAX_LINES);
        assert_eq!(budget.lines(true), MIN_LINES);
    }
}
