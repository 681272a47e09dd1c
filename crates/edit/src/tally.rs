//! The tally of a plan: tokens and bytes before and after, turn by turn, and whether the result is sound.

use sha2::{Digest as _, Sha256};
use threadline_entry::{Entry, Kind};

use crate::arrange::{From, is_boundary, is_tree};
use crate::plan::{Digest, Plan, Target};
use crate::tokens::tokens;

/// What a plan comes to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    pub(crate) bytes_before: u64,
    pub(crate) digest: Digest,
    pub(crate) turns: Vec<TurnChange>,
    pub(crate) refusals: Vec<String>,
}

/// What a turn comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnChange {
    /// Counted from 1.
    pub number: usize,
    /// How the prompt begins.
    pub prompt: String,
    /// Lines in the log, and in the result.
    pub lines: (u64, u64),
    /// Bytes in the log, and in the result.
    pub bytes: (u64, u64),
    /// About how many tokens a resume sends of it, of the log and of the result.
    pub tokens: (u64, u64),
}

impl TurnChange {
    fn is_change(&self) -> bool {
        self.tokens.0 != self.tokens.1 || self.lines.0 != self.lines.1
    }
}

/// No turn.
const NONE: u32 = u32::MAX;

impl Tally {
    pub(crate) fn of(plan: &Plan<'_>) -> Self {
        let session = plan.session();
        let n = session.entries().len();
        let mut turns: Vec<TurnChange> = Vec::new();
        let mut turn_of = vec![NONE; n];
        for turn in session.turns() {
            let prompt = turn.prompt.and_then(|idx| first_words(&session.entries()[idx]));
            for &idx in &turn.entries {
                turn_of[idx] = turns.len() as u32;
            }
            let prompt = prompt.unwrap_or_default();
            turns.push(TurnChange { number: turn.number, prompt, ..TurnChange::default() });
        }
        let mut tally = Self::default();
        let mut sent = vec![false; n];
        for idx in session.resumed_lines().unwrap_or_default() {
            sent[idx] = true;
        }
        for (idx, entry) in session.entries().iter().enumerate() {
            let bytes = entry.as_bytes().len() as u64
                + u64::from(entry.ending() == threadline_entry::Ending::Newline);
            let worth = if sent[idx] { tokens(entry) } else { 0 };
            tally.bytes_before += bytes;
            tally.tokens_before += worth;
            if let Some(turn) = turns.get_mut(turn_of[idx] as usize) {
                turn.lines.0 += 1;
                turn.bytes.0 += bytes;
                turn.tokens.0 += worth;
            }
        }
        tally.add_result(plan, &sent, &turn_of, &mut turns);
        turns.retain(TurnChange::is_change);
        tally.turns = turns;
        tally
    }

    fn add_result(&mut self, plan: &Plan<'_>, sent: &[bool], turn_of: &[u32], turns: &mut [TurnChange]) {
        let in_place = plan.shape().target == Target::AsItStands;
        let lines = plan.lines();
        let is_start = |at: &usize| {
            lines[*at].chained && is_boundary(crate::arrange::entry_of(plan.draft(), lines[*at].from))
        };
        let start = (0..lines.len()).rev().find(is_start).unwrap_or(0);
        let mut hash = Sha256::new();
        let mut length = 0;
        let mut buffer = Vec::new();
        let mut turn = NONE;
        for (at, line) in lines.iter().enumerate() {
            buffer.clear();
            plan.render(at, &mut buffer);
            let (entry, _) = Entry::parse(&buffer);
            if plan.ends_line(at) {
                buffer.push(b'\n');
            }
            hash.update(&buffer);
            length += buffer.len() as u64;
            let is_sent = match line.from {
                From::Source(idx) if in_place => sent[idx as usize],
                _ => line.chained && at >= start,
            };
            let worth = if is_sent { tokens(&entry) } else { 0 };
            self.tokens_after += worth;
            match line.from {
                From::Source(idx) => turn = turn_of[idx as usize],
                // A line that comes belongs to the turn that it stands in, if it is of the conversation at all.
                From::Added(_) if !is_tree(&entry) => continue,
                From::Added(_) => {}
            }
            if let Some(turn) = turns.get_mut(turn as usize) {
                turn.lines.1 += 1;
                turn.bytes.1 += buffer.len() as u64;
                turn.tokens.1 += worth;
            }
        }
        self.digest = Digest { length, sha256: hash.finalize().into() };
    }
}

/// The beginning of what a prompt says.
fn first_words(entry: &Entry) -> Option<String> {
    if entry.kind() != Kind::User {
        return None;
    }
    let text = entry.message()?.content()?.text();
    let line = text.split_whitespace().take(16).collect::<Vec<_>>().join(" ");
    Some(line.chars().take(80).collect())
}
