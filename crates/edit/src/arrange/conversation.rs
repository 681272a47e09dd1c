//! The conversation as a chain: its entries and their order.

use foldhash::HashMap;
use threadline_entry::Kind;
use threadline_session::{EntryIndex, IndexVec, InputKind, ParentLink, ReplyIndex, Session};

use super::answered_reply;

/// Returns the entries of the conversation, across compactions. Entries that a resume sends are in the
/// order in which it sends them.
pub(super) fn conversation(session: &Session) -> Vec<EntryIndex> {
    let thread = session.thread().entries;
    // Claude Code cannot distinguish lines without a uuid. We can, and in the result they get one.
    let is_nameless =
        |&idx: &EntryIndex| session.entries()[idx].uuid().is_none() && session.timestamp(idx).is_some();
    let resumed = session.resumed_lines().filter(|_| !thread.iter().any(is_nameless));
    let Some(resumed) = resumed else {
        return parents_first(session, thread.into_iter());
    };
    let first = |idx: EntryIndex| first_copy(session, idx);
    let mut in_resumed = IndexVec::filled(false, session.entries().len());
    for &idx in &resumed {
        in_resumed[idx] = true;
        in_resumed[first(idx)] = true;
    }
    let boundary = resumed.first().copied().filter(|&idx| session.is_boundary(idx)).map(first);
    let start = boundary.unwrap_or(EntryIndex::FIRST);
    // Entries before the last compaction are not sent any more and keep their order. Some of them may be
    // written after the boundary.
    let mut is_above = IndexVec::filled(false, session.entries().len());
    if let Some(before) = boundary.and_then(|boundary| session.continues(boundary)) {
        session.thread_to(before).entries.into_iter().for_each(|idx| is_above[idx] = true);
    }
    let earlier = thread.iter().copied().filter(|&idx| (idx < start || is_above[idx]) && !in_resumed[idx]);
    let mut chain = parents_first(session, earlier);
    let n_earlier = chain.len();
    chain.extend(&resumed);
    // Progress lines are not sent, but older versions follow parent links through them.
    let progress = thread
        .into_iter()
        .filter(|&idx| idx >= start && !is_above[idx] && !in_resumed[idx])
        .filter(|&idx| session.entries()[idx].kind() == Kind::Progress);
    let mut behind: HashMap<EntryIndex, Vec<EntryIndex>> = HashMap::default();
    let mut sorted: Vec<EntryIndex> = resumed;
    sorted.sort_unstable();
    let mut before_all = Vec::new();
    for idx in progress {
        match sorted.partition_point(|&other| other < idx).checked_sub(1) {
            Some(at) => behind.entry(sorted[at]).or_default().push(idx),
            None => before_all.push(idx),
        }
    }
    if behind.is_empty() && before_all.is_empty() {
        return chain;
    }
    let mut full = chain[..n_earlier].to_vec();
    full.append(&mut before_all);
    for &idx in &chain[n_earlier..] {
        full.push(idx);
        full.extend(behind.remove(&idx).into_iter().flatten());
    }
    full
}

/// Sorts entries in the order of the log, except that parents precede their children.
fn parents_first(session: &Session, lines: impl Iterator<Item = EntryIndex>) -> Vec<EntryIndex> {
    let mut waits = IndexVec::filled(false, session.entries().len());
    let lines: Vec<EntryIndex> = lines.filter(|&idx| !session.entries()[idx].follows_on_line()).collect();
    lines.iter().for_each(|&idx| waits[idx] = true);
    let above = |idx: EntryIndex| match session.parent(idx) {
        ParentLink::Entry(parent) => Some(parent),
        ParentLink::Root if session.is_boundary(idx) => session.continues(idx),
        ParentLink::Root | ParentLink::Dangling => None,
    };
    let mut ordered = Vec::with_capacity(lines.len());
    for idx in lines {
        let start = ordered.len();
        let mut at = Some(idx);
        while let Some(line) = at.filter(|&line| waits[line]) {
            waits[line] = false;
            ordered.push(line);
            at = above(line);
        }
        ordered[start..].reverse();
    }
    ordered
}

/// Returns the index of the first copy of an entry. The last copy determines its content, the first one its
/// position.
pub(super) fn first_copy(session: &Session, idx: EntryIndex) -> EntryIndex {
    session.entries()[idx].uuid().and_then(|uuid| session.find(&uuid)).unwrap_or(idx)
}

/// Moves the lines of a reply together, followed by the results of its calls. Also returns the results that
/// came after another reply.
pub(super) fn group_replies(session: &Session, chain: Vec<EntryIndex>) -> (Vec<EntryIndex>, Vec<EntryIndex>) {
    let mut brought_back = Vec::new();
    let mut last_reply: Option<ReplyIndex> = None;
    let mut groups: Vec<(Vec<EntryIndex>, Vec<EntryIndex>)> = Vec::new();
    // The replies that later lines may still belong to. A prompt closes them, but their results are still
    // assigned.
    let mut open: HashMap<ReplyIndex, usize> = HashMap::default();
    let mut group_of: HashMap<ReplyIndex, usize> = HashMap::default();
    for idx in chain {
        let entry = &session.entries()[idx];
        if let Some(reply) = session.reply_of(idx) {
            last_reply = Some(reply);
            if let Some(&group) = open.get(&reply) {
                groups[group].0.push(idx);
                continue;
            }
            open.insert(reply, groups.len());
            group_of.insert(reply, groups.len());
        } else if entry.kind() == Kind::User {
            let answered = answered_reply(session, idx);
            if let Some(&group) = answered.and_then(|reply| group_of.get(&reply)) {
                groups[group].1.push(idx);
                if answered != last_reply {
                    brought_back.push(idx);
                }
                continue;
            }
            if session.input(idx) != Some(InputKind::ToolResult) {
                open.clear();
            }
        } else if session.is_boundary(idx) {
            open.clear();
            group_of.clear();
            // Entries before the boundary are not sent, so none of their results is dropped.
            brought_back.clear();
        }
        groups.push((vec![idx], Vec::new()));
    }
    let chain = groups.into_iter().flat_map(|(lines, results)| lines.into_iter().chain(results)).collect();
    (chain, brought_back)
}
