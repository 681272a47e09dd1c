use std::io::Write;
use std::str::FromStr;

use threadline_term::{Detail, render_transcript};
use threadline_view::{Transcript, transcript, wire};

use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::load;

/// Show a session as a conversation
///
/// Follows the active branch, across compactions, with sub-agents inside the calls that started them.
/// `SESSION#m42` shows the turn that holds line 42.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Session id, unique prefix, title, `last`, or path to a log; `#m42` names a line in it
    session: String,

    /// Turns to show, such as `3`, `3..7`, `3..` or `-1` for the last
    #[arg(long, short, value_name = "RANGE", allow_hyphen_values = true)]
    turns: Option<TurnRange>,

    /// Show what tools returned, whole
    #[arg(long)]
    tools: bool,

    /// Show what the model thought
    #[arg(long)]
    thinking: bool,

    /// Show hooks, attachments and other events around the conversation
    #[arg(long)]
    events: bool,
}

pub(crate) fn run(cx: &Context, args: &ShowArgs) -> Result<Outcome, CommandError> {
    let (needle, anchor) = match args.session.rsplit_once("#m") {
        Some((needle, line)) if line.starts_with(|ch: char| ch.is_ascii_digit()) => {
            (needle, Some(format!("m{line}")))
        }
        _ => (&*args.session, None),
    };
    let file = load::find(cx, needle)?;
    let family = load::family(&file)?;
    let mut transcript = transcript(&family);
    if let Some(range) = args.turns {
        let count = transcript.turns.len();
        transcript.turns.retain(|turn| range.contains(turn.number, count));
    }
    if let Some(anchor) = anchor {
        keep_turn_of(&mut transcript, &anchor)?;
    }
    if cx.json {
        let mut answer = cx.ui.answer();
        let mut result = Ok(());
        wire::show(&transcript, &mut |object| {
            if result.is_ok() {
                result = answer.json(&object);
            }
        });
        result?;
        answer.finish()?;
    } else {
        let detail = Detail { tools: args.tools, thinking: args.thinking, events: args.events };
        let text = render_transcript(&transcript, cx.ui.page(), detail, &jiff::tz::TimeZone::system());
        let mut answer = cx.ui.long_answer();
        answer.write_all(text.as_bytes())?;
        answer.finish()?;
    }
    Ok(Outcome::Done)
}

/// Leaves the turn that holds the item of this name.
fn keep_turn_of(transcript: &mut Transcript, anchor: &str) -> Result<(), CommandError> {
    transcript
        .turns
        .retain(|turn| turn.anchor == anchor || turn.items.iter().any(|item| item.anchor == anchor));
    if transcript.turns.is_empty() {
        return Err(CommandError::new(format!("nothing in the active conversation is called `{anchor}`"))
            .hint("names are the ends of the lines that begin a turn, and `anchor` in --json"));
    }
    Ok(())
}

/// A range of turns, counted from 1; negative numbers count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TurnRange {
    from: i64,
    to: i64,
}

impl TurnRange {
    fn contains(self, number: usize, count: usize) -> bool {
        let place = |n: i64| if n < 0 { count as i64 + 1 + n } else { n };
        (place(self.from)..=place(self.to)).contains(&(number as i64))
    }
}

impl FromStr for TurnRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, default: i64| match text {
            "" => Ok(default),
            text => text.parse().map_err(|_| format!("`{text}` is no number")),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Self { from: number(from, 1)?, to: number(to, -1)? }),
            None if text.is_empty() => Err("a range is missing".to_owned()),
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
