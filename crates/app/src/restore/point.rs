//! The moment that files are restored to.

use std::str::FromStr;

use threadline_evidence::HistoryPoint;
use threadline_session::{EntryIndex, SessionFamily, Turn};

use super::RestoreError;

/// The moment that files are restored to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// The beginning of a turn, by its number; negative numbers count from the end.
    Turn(i64),
    /// The beginning of the turn of a line.
    Line(u64),
    /// The end of the session.
    End,
}

impl FromStr for RestorePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let line = text.trim_start_matches('#').strip_prefix('m').and_then(|line| line.parse().ok());
        match (text, line, text.parse::<i64>()) {
            ("end", ..) => Ok(Self::End),
            (_, Some(line), _) => Ok(Self::Line(line)),
            (_, None, Ok(turn)) if turn != 0 => Ok(Self::Turn(turn)),
            _ => Err("a turn is a number such as `3` or `-1`, a line such as `m42`, or `end`".to_owned()),
        }
    }
}

impl RestorePoint {
    /// Returns the moment and the number of its turn; no number for the end of the session.
    ///
    /// # Errors
    ///
    /// [`RestoreError::NoTurn`].
    pub fn resolve(self, family: &SessionFamily) -> Result<(HistoryPoint, Option<usize>), RestoreError> {
        let turns = family.main.turns();
        let count = turns.len();
        let number = match self {
            Self::End => return Ok((HistoryPoint::End, None)),
            Self::Turn(number) if number < 0 => count as i64 + 1 + number,
            Self::Turn(number) => number,
            Self::Line(line) => {
                let starts_before = |turn: &Turn| {
                    let first = turn.prompt.or(turn.entries.first().copied());
                    first.is_some_and(|idx| family.main.entries()[idx].at().line_no <= line)
                };
                turns.iter().rev().find(|turn| starts_before(turn)).map_or(1, |turn| turn.number as i64)
            }
        };
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let turn = index
            .and_then(|index| turns.as_slice().get(index))
            .ok_or(RestoreError::NoTurn { number, count })?;
        let prompt = turn.prompt.or(turn.entries.first().copied()).unwrap_or(EntryIndex::FIRST);
        Ok((HistoryPoint::Prompt(prompt), index.map(|index| index + 1)))
    }
}
