//! Clones the conversation into a new session.

use foldhash::HashSet;
use threadline_entry::{Kind, key};
use threadline_session::{EntryIndex, IndexVec, Session};

use crate::arrange;
use crate::draft::EditDraft;
use crate::label::title_line;

/// The end of a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// The end of the turn with this number.
    Turn(usize),
    /// The line with this uuid. If it belongs to a reply, the whole reply with its results.
    Uuid(String),
}

/// The reason why a session cannot be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutError {
    /// There is no such turn.
    NoTurn {
        /// The number of turns.
        turns: usize,
    },
    /// The line is not in the conversation.
    NoLine,
}

impl std::fmt::Display for CutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoTurn { turns: 1 } => f.write_str("no such turn; the session has 1 turn"),
            Self::NoTurn { turns } => write!(f, "no such turn; the session has {turns} turns"),
            Self::NoLine => f.write_str("no line of the conversation has this uuid"),
        }
    }
}

impl std::error::Error for CutError {}

/// Drafts a copy of the conversation, or of its beginning, with a title.
///
/// Without `title`, the title is that of the session, or the beginning of its first prompt, with the suffix
/// ` (fork)`.
///
/// # Errors
///
/// Returns an error if `to` is not in the conversation.
pub fn clone(draft: &mut EditDraft<'_>, to: Option<&CutPoint>, title: Option<&str>) -> Result<(), CutError> {
    if let Some(cut) = to {
        remove_after(draft, cut)?;
    }
    let session = draft.session;
    let title = title.map(str::to_owned).or_else(|| Some(format!("{} (fork)", session.title()?)));
    if let Some(title) = title {
        // The id of the new session is filled in later.
        draft.append(&title_line("", &title), "title");
    }
    Ok(())
}

/// Removes everything after the cut.
fn remove_after(draft: &mut EditDraft<'_>, cut: &CutPoint) -> Result<(), CutError> {
    let session = draft.session;
    let chain = arrange::chain(session);
    let end = match cut {
        CutPoint::Turn(number) => {
            let turns = session.turns();
            let turn = number.checked_sub(1).and_then(|at| turns.as_slice().get(at));
            let turn = turn.ok_or(CutError::NoTurn { turns: turns.len() })?;
            let of_turn: HashSet<EntryIndex> = turn.entries.iter().copied().collect();
            chain.iter().rposition(|idx| of_turn.contains(idx)).ok_or(CutError::NoLine)?
        }
        CutPoint::Uuid(uuid) => {
            let idx = session.find(uuid).ok_or(CutError::NoLine)?;
            let at = chain.iter().position(|&line| line == idx).ok_or(CutError::NoLine)?;
            end_of_reply(session, &chain, at)
        }
    };
    let last = chain[..=end].iter().copied().max().unwrap_or(EntryIndex::FIRST);
    let mut kept = IndexVec::filled(false, session.entries().len());
    for &idx in &chain[..=end] {
        kept[idx] = true;
    }
    for &idx in &chain[end + 1..] {
        draft.remove(idx, "after the cut");
    }
    // File snapshots for a prompt that is kept may be logged later.
    let is_of_kept = |idx: EntryIndex| {
        let of = session.entries()[idx].get(key::MESSAGE_ID).and_then(|json| session.find(&json.as_str()?));
        of.is_some_and(|of| kept[of])
    };
    for (idx, &is_kept) in kept.enumerated().skip(last.position() + 1) {
        if !is_kept && !draft.is_removed(idx) && !is_of_kept(idx) {
            draft.remove(idx, "after the cut");
        }
    }
    Ok(())
}

/// Returns the position of the last line of the reply that a line belongs to or answers.
fn end_of_reply(session: &Session, chain: &[EntryIndex], at: usize) -> usize {
    let reply = |idx: EntryIndex| session.reply_of(idx).or_else(|| arrange::answered_reply(session, idx));
    let Some(own) = reply(chain[at]) else { return at };
    let mut end = at;
    for (i, &idx) in chain.iter().enumerate().skip(at + 1) {
        if reply(idx) == Some(own) {
            end = i;
        } else if matches!(session.entries()[idx].kind(), Kind::User | Kind::Assistant) {
            break;
        }
    }
    end
}

/// Removes lines that apply to one session only.
pub(crate) fn remove_session_data(draft: &mut EditDraft<'_>) {
    let session = draft.session;
    for (idx, entry) in session.entries().enumerated() {
        let why = match entry.kind() {
            Kind::ApiRequest | Kind::ApiRequestShape | Kind::ApiRequestBlob => {
                "API request of the old session"
            }
            Kind::CostState => "cost record of the old session",
            Kind::ToolsUsed | Kind::AtisLatch => "metadata of the old session",
            Kind::LastPrompt => "last prompt of the old session",
            Kind::Summary => {
                let leaf = entry.get(key::LEAF_UUID).and_then(|leaf| session.find(&leaf.as_str()?));
                if leaf.is_some() {
                    continue;
                }
                "title of another session"
            }
            _ => continue,
        };
        if !draft.is_removed(idx) {
            draft.remove(idx, why);
        }
    }
}
