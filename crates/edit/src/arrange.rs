//! Arranges the lines of the result: their order and their parents.
//!
//! Claude Code writes parallel tool results as a fork, and its versions read such a fork differently: some
//! lose one of the results. To be read alike by every version, a result contains one chain: the parent of
//! each line of the conversation is the preceding one in the file, the lines of a reply are adjacent and
//! followed by the results of its calls, and timestamps strictly increase.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use threadline_entry::{Entry, Kind, Millis, key, value};
use threadline_session::{EntryIndex, IndexVec, InputKind, ParentLink, ReplyIndex, Session};

use crate::ancestor_search::AncestorSearch;
use crate::draft::{EditDraft, LineContent};
use crate::{sanitize, usage_reset};

mod conversation;

use conversation::{conversation, first_copy, group_replies};

/// A line of the result.
#[derive(Clone, Debug)]
pub(crate) struct ResultLine {
    pub(crate) origin: ResultOrigin,
    pub(crate) parent: ResultParent,
    /// The new timestamp, if it changes.
    pub(crate) time: Option<Millis>,
    /// Whether it gets a new uuid.
    pub(crate) new_uuid: bool,
    /// Whether it is part of the conversation that a resume continues.
    pub(crate) in_chain: bool,
}

/// The origin of a line of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultOrigin {
    /// The index of an entry of the log.
    Source(EntryIndex),
    /// The index of an added line.
    Added(usize),
}

/// The parent of a line of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultParent {
    /// Unchanged.
    Keep,
    /// None.
    Root,
    /// The line of the result with this index.
    To(usize),
}

/// The order of the lines of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineOrder {
    /// The original order; only lines whose parent is removed get a new parent.
    Original,
    /// The conversation as one chain, with abandoned branches.
    Chain,
    /// The conversation as one chain, without other lines of the tree.
    ConversationOnly,
}

/// The lines of the result.
pub(crate) struct Arrangement {
    pub(crate) lines: Vec<ResultLine>,
    /// The index in the result of each entry of the log. `None` if it is removed.
    pub(crate) positions: IndexVec<EntryIndex, Option<usize>>,
}

pub(crate) fn arrange(draft: &mut EditDraft<'_>, order: LineOrder, now: Millis) -> Arrangement {
    let (chain, brought_back) = match order {
        LineOrder::Original => Default::default(),
        LineOrder::Chain | LineOrder::ConversationOnly => {
            group_replies(draft.session, conversation(draft.session))
        }
    };
    for idx in brought_back {
        draft.note(idx, "moved to its call (Claude Code drops results after another reply)");
    }
    let parts = roles(draft.session, &chain);
    remove_unwanted(draft, &parts, &chain, order);
    if order == LineOrder::Chain {
        remove_idle_compactions(draft, &parts);
    }
    if order != LineOrder::Original {
        usage_reset::reset_counts(draft, &chain);
        sanitize::sanitize(draft, &chain);
    }
    let copies = copies(draft.session, &parts, &chain);
    let sequence = sequence(draft, &parts, &chain, &copies, order);
    if order != LineOrder::Original {
        remove_trailing_branches(draft, &parts, &sequence);
    }
    let mut arranged = place_lines(draft, &parts, sequence, order);
    link(draft, &mut arranged, &copies, order, now);
    arranged
}

/// Returns the entries of the conversation in the order of a result.
pub(crate) fn chain(session: &Session) -> Vec<EntryIndex> {
    group_replies(session, conversation(session)).0
}

/// Returns the reply that contains the calls answered by an entry.
pub(crate) fn answered_reply(session: &Session, idx: EntryIndex) -> Option<ReplyIndex> {
    let blocks = session.entries()[idx].message().into_iter().flat_map(|message| message.blocks());
    let mut results = blocks.filter(|block| block.is(value::TOOL_RESULT));
    results.find_map(|block| session.tool_call(&block.tool_use_id()?)).map(|call| call.reply)
}

/// The relation of an entry to the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChainRole {
    /// It is in the chain.
    Chain,
    /// It is a leaf attached to a line of the chain.
    Leaf,
    /// It is not part of the conversation.
    Other,
}

fn roles(session: &Session, chain: &[EntryIndex]) -> IndexVec<EntryIndex, ChainRole> {
    let mut parts = IndexVec::filled(ChainRole::Other, session.entries().len());
    if chain.is_empty() {
        return parts;
    }
    for &idx in &session.thread().entries {
        let entry = &session.entries()[idx];
        // The output of a local command is sent as a user message, although it is a `system` line.
        let speaks =
            matches!(entry.kind(), Kind::User | Kind::Assistant) || sanitize::is_local_command(entry);
        // A compaction that was rewound is a branch.
        if !speaks && !session.is_sidechain(idx) && !session.is_boundary(idx) {
            parts[idx] = ChainRole::Leaf;
        }
    }
    for &idx in chain {
        parts[idx] = ChainRole::Chain;
    }
    parts
}

/// Removes lines that the result must not contain.
fn remove_unwanted(
    draft: &mut EditDraft<'_>,
    parts: &IndexVec<EntryIndex, ChainRole>,
    chain: &[EntryIndex],
    order: LineOrder,
) {
    if order == LineOrder::Original {
        return;
    }
    let session = draft.session;
    let names: HashSet<Cow<'_, str>> = chain
        .iter()
        .filter(|&&idx| !draft.is_removed(idx))
        .filter_map(|&idx| session.entries()[idx].uuid())
        .collect();
    let replies: HashSet<ReplyIndex> = chain.iter().filter_map(|&idx| session.reply_of(idx)).collect();
    let mut forks = AncestorSearch::new(session);
    for (idx, &part) in parts.enumerated() {
        if part == ChainRole::Chain || draft.is_removed(idx) {
            continue;
        }
        let entry = &session.entries()[idx];
        let is_tree = is_tree_line(session, idx);
        // Of two lines with the same uuid, Claude Code reads the last one and the tree contains the first
        // one.
        let is_copy = || !session.in_tree(idx) || entry.uuid().is_some_and(|uuid| names.contains(&uuid));
        let why = if is_tree && is_copy() {
            Some("duplicate line")
        } else if is_tree && entry.follows_on_line() {
            Some("not on its own line (Claude Code ignores it)")
        } else if order == LineOrder::ConversationOnly {
            match entry.kind() {
                Kind::Bad => Some("unreadable line"),
                Kind::Blank => Some("blank line"),
                _ if is_tree && session.is_sidechain(idx) && draft.extracts_agents => {
                    Some("inline sub-agent (extracted to a separate log)")
                }
                _ if is_tree && session.is_sidechain(idx) => Some("inline sub-agent"),
                _ if is_tree && part == ChainRole::Other => Some("abandoned branch"),
                _ => None,
            }
        } else if is_tree && part == ChainRole::Other && !session.is_sidechain(idx) {
            removal_reason(session, parts, &replies, &mut forks, idx)
        } else {
            None
        };
        if let Some(why) = why {
            draft.remove(idx, why);
        }
    }
}

/// Removes compactions of branches without remaining messages: Claude Code would apply them to the
/// conversation.
fn remove_idle_compactions(draft: &mut EditDraft<'_>, parts: &IndexVec<EntryIndex, ChainRole>) {
    let session = draft.session;
    let left = |idx: &EntryIndex| {
        parts[*idx] == ChainRole::Other && session.is_boundary(*idx) && !session.is_sidechain(*idx)
    };
    for boundary in parts.indices().filter(left) {
        let mut lines = vec![boundary];
        let mut at = 0;
        while at < lines.len() {
            lines.extend(session.children(lines[at]));
            at += 1;
        }
        let says = |idx: &EntryIndex| {
            let entry = &session.entries()[*idx];
            !draft.is_removed(*idx)
                && matches!(entry.kind(), Kind::User | Kind::Assistant)
                && !entry.is_compact_summary()
        };
        if lines.iter().any(says) {
            continue;
        }
        for idx in lines {
            if parts[idx] == ChainRole::Other && !draft.is_removed(idx) {
                draft.remove(idx, "compaction of an abandoned branch");
            }
        }
    }
}

/// Returns the reason why a line of a branch must be removed: with another parent, some versions would read
/// it as part of the conversation.
fn removal_reason(
    session: &Session,
    parts: &IndexVec<EntryIndex, ChainRole>,
    replies: &HashSet<ReplyIndex>,
    forks: &mut AncestorSearch,
    idx: EntryIndex,
) -> Option<&'static str> {
    let reply = session.reply_of(idx).or_else(|| answered_reply(session, idx));
    if reply.is_some_and(|reply| replies.contains(&reply)) {
        return Some("part of a reply that the conversation contains without it");
    }
    if reply.is_none() && session.input(idx) == Some(InputKind::ToolResult) {
        return Some("tool result without a call");
    }
    let is_end = |above| parts[above] == ChainRole::Chain || session.parent(above) == ParentLink::Dangling;
    let above = forks.nearest(idx, is_end)?;
    (parts[above] != ChainRole::Chain).then_some("parent missing")
}

/// Removes branches after the last line of the conversation. Versions that resume from the newest or the
/// last line would resume such a branch instead.
fn remove_trailing_branches(
    draft: &mut EditDraft<'_>,
    parts: &IndexVec<EntryIndex, ChainRole>,
    sequence: &[EntryIndex],
) {
    let session = draft.session;
    // Newer versions ignore progress lines: for them the conversation ends before.
    let is_end = |&idx: &EntryIndex| {
        parts[idx] == ChainRole::Chain
            && !draft.is_removed(idx)
            && session.entries()[idx].kind() != Kind::Progress
    };
    let Some(end) = sequence.iter().rposition(is_end) else { return };
    // A leaf is attached to a line of the conversation, so it cannot precede all of them.
    let start = sequence.iter().position(is_end).unwrap_or(end);
    let before = sequence[..start].iter().filter(|&&idx| parts[idx] == ChainRole::Leaf);
    for idx in before.copied().collect::<Vec<_>>() {
        if !draft.is_removed(idx) {
            draft.remove(idx, "abandoned branch");
        }
    }
    for &idx in &sequence[end + 1..] {
        let is_left =
            parts[idx] == ChainRole::Other && is_tree_line(session, idx) && !session.is_sidechain(idx);
        if is_left && !draft.is_removed(idx) {
            draft.remove(idx, "abandoned branch");
        }
    }
}

/// Returns whether an entry is, by its fields, part of the tree.
pub(crate) fn is_tree(entry: &Entry) -> bool {
    match entry.kind() {
        Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment => true,
        Kind::Unknown | Kind::Untyped => entry.uuid().is_some() && entry.get(key::PARENT_UUID).is_some(),
        _ => false,
    }
}

/// Returns whether a line is in the tree, or would be if it were not a duplicate. Lines such as `progress`
/// without a uuid are not: nothing can refer to them, and Claude Code ignores them.
fn is_tree_line(session: &Session, idx: EntryIndex) -> bool {
    let entry = &session.entries()[idx];
    is_tree(entry) && (session.in_tree(idx) || entry.uuid().is_some())
}

/// Returns the entries in the order of the result: each line of the chain, then the lines that followed it
/// in the log.
fn sequence(
    draft: &mut EditDraft<'_>,
    parts: &IndexVec<EntryIndex, ChainRole>,
    chain: &[EntryIndex],
    copies: &DuplicateLines,
    order: LineOrder,
) -> Vec<EntryIndex> {
    if order == LineOrder::Original {
        return parts.indices().collect();
    }
    let session = draft.session;
    let mut followers: HashMap<EntryIndex, Vec<EntryIndex>> = HashMap::default();
    let mut sequence = Vec::with_capacity(parts.len());
    let end = chain.last().copied();
    // If a line was written again at the end of the conversation, the person rewound to it: the lines
    // between the two copies are a branch.
    let elsewhere: HashSet<EntryIndex> = copies.values().copied().filter(|&line| Some(line) != end).collect();
    let mut rank = IndexVec::filled(0, parts.len());
    for (at, &idx) in chain.iter().enumerate() {
        rank[idx] = at;
    }
    let mut last: Option<EntryIndex> = None;
    let mut is_put: IndexVec<EntryIndex, bool> = parts.iter().map(|&part| part == ChainRole::Chain).collect();
    // The line of the chain that each other line descends from.
    let mut fork: IndexVec<EntryIndex, Option<EntryIndex>> =
        parts.indices().map(|idx| is_put[idx].then_some(idx)).collect();
    for idx in parts.indices() {
        let is_here = parts[idx] == ChainRole::Chain && !elsewhere.contains(&idx);
        let copy = copies.get(&idx).copied().filter(|line| elsewhere.contains(line));
        last = is_here.then_some(idx).or(copy).or(last);
        // Ancestors may be written later than their descendants; they come first.
        let mut lines: Vec<EntryIndex> = session.ancestors(idx).take_while(|&above| !is_put[above]).collect();
        lines.reverse();
        for line in lines {
            is_put[line] = true;
            let above = session.ancestors(line).nth(1);
            fork[line] = above.and_then(|above| copies.get(&above).copied().or(fork[above]));
            // A branch after the end of the conversation would have to be removed.
            let may_follow = |fork: EntryIndex| parts[line] == ChainRole::Leaf || Some(fork) != end;
            let is_later =
                |&fork: &EntryIndex| may_follow(fork) && last.is_none_or(|last| rank[fork] > rank[last]);
            match fork[line].filter(is_later).or(last) {
                Some(last) => followers.entry(last).or_default().push(line),
                None => sequence.push(line),
            }
        }
    }
    if order == LineOrder::Chain {
        move_branches_above(draft, parts, chain, &mut followers);
    }
    for &idx in chain {
        sequence.push(idx);
        sequence.extend(followers.remove(&idx).into_iter().flatten());
    }
    sequence
}

/// Lines of the chain that were written more than once, by the index of their first copy.
type DuplicateLines = HashMap<EntryIndex, EntryIndex>;

fn copies(
    session: &Session,
    parts: &IndexVec<EntryIndex, ChainRole>,
    chain: &[EntryIndex],
) -> DuplicateLines {
    let firsts = chain.iter().map(|&idx| (first_copy(session, idx), idx));
    firsts.filter(|&(first, _)| parts[first] != ChainRole::Chain).collect()
}

/// Moves branches that fork off above a new compaction boundary to a place above it.
fn move_branches_above(
    draft: &mut EditDraft<'_>,
    parts: &IndexVec<EntryIndex, ChainRole>,
    chain: &[EntryIndex],
    followers: &mut HashMap<EntryIndex, Vec<EntryIndex>>,
) {
    let session = draft.session;
    let place_of = |idx: EntryIndex| chain.iter().position(|&line| line == idx);
    let comes = draft.added.iter().filter(|added| is_boundary(&added.entry));
    let Some(boundary) = comes.filter_map(|added| place_of(added.after?)).max() else { return };
    let above: HashMap<EntryIndex, usize> =
        chain[..=boundary].iter().enumerate().map(|(at, &idx)| (idx, at)).collect();
    let mut forks = AncestorSearch::new(session);
    for &idx in &chain[boundary + 1..] {
        let behind = followers.remove(&idx).unwrap_or_default();
        let (mut stay, mut go_up) = (Vec::new(), Vec::new());
        for line in behind {
            let is_branch = parts[line] == ChainRole::Other
                && is_tree(&session.entries()[line])
                && !session.is_sidechain(line);
            let fork = forks.nearest(line, |above| parts[above] == ChainRole::Chain);
            match fork.and_then(|fork| above.get(&fork)).filter(|_| is_branch) {
                Some(&at) => go_up.push((line, at)),
                None => stay.push(line),
            }
        }
        followers.insert(idx, stay);
        for (line, at) in go_up {
            if at < boundary {
                followers.entry(chain[at]).or_default().push(line);
            } else if !draft.is_removed(line) {
                draft.remove(line, "abandoned branch");
            }
        }
    }
}

/// Builds the list of lines, without links.
fn place_lines(
    draft: &EditDraft<'_>,
    parts: &IndexVec<EntryIndex, ChainRole>,
    sequence: Vec<EntryIndex>,
    order: LineOrder,
) -> Arrangement {
    let n = parts.len();
    let mut added_behind: HashMap<Option<EntryIndex>, Vec<usize>> = HashMap::default();
    for (i, added) in draft.added.iter().enumerate() {
        added_behind.entry(added.after).or_default().push(i);
    }
    let mut arranged = Arrangement { lines: Vec::with_capacity(n), positions: IndexVec::filled(None, n) };
    let put = |arranged: &mut Arrangement, origin: ResultOrigin, in_chain: bool| {
        let parent = ResultParent::Keep;
        arranged.lines.push(ResultLine { origin, parent, time: None, new_uuid: false, in_chain });
    };
    let is_chained = |added: usize| order != LineOrder::Original && is_tree(&draft.added[added].entry);
    for added in added_behind.remove(&None).unwrap_or_default() {
        put(&mut arranged, ResultOrigin::Added(added), is_chained(added));
    }
    for idx in sequence {
        if !draft.is_removed(idx) {
            arranged.positions[idx] = Some(arranged.lines.len());
            put(&mut arranged, ResultOrigin::Source(idx), parts[idx] == ChainRole::Chain);
        }
        for added in added_behind.remove(&Some(idx)).unwrap_or_default() {
            put(&mut arranged, ResultOrigin::Added(added), is_chained(added));
        }
    }
    if order != LineOrder::Original {
        move_pr_links(draft, &mut arranged);
        // Versions that resume from the last line would take leaves after the end of the conversation as
        // its end, so they are made part of it. Newer versions ignore progress lines, so these are not an
        // end.
        let is_end =
            |line: &ResultLine| line.in_chain && entry_of(draft, line.origin).kind() != Kind::Progress;
        let end = arranged.lines.iter().rposition(is_end).map_or(0, |end| end + 1);
        for line in &mut arranged.lines[end..] {
            if let ResultOrigin::Source(idx) = line.origin
                && parts[idx] == ChainRole::Leaf
            {
                line.in_chain = true;
            }
        }
    }
    arranged
}

/// Moves `pr-link` lines at the start after the first line of the conversation. Claude Code does not list
/// sessions that begin with one.
fn move_pr_links(draft: &EditDraft<'_>, arranged: &mut Arrangement) {
    let lines = &mut arranged.lines;
    let links = lines.iter().take_while(|line| entry_of(draft, line.origin).kind() == Kind::PrLink).count();
    let Some(first) = lines.iter().position(|line| line.in_chain).filter(|_| links > 0) else { return };
    lines[..=first].rotate_left(links);
    for (at, line) in lines[..=first].iter().enumerate() {
        if let ResultOrigin::Source(idx) = line.origin {
            arranged.positions[idx] = Some(at);
        }
    }
}

/// Sets the parents, and increases timestamps of the chain where necessary.
fn link(
    draft: &EditDraft<'_>,
    arranged: &mut Arrangement,
    copies: &DuplicateLines,
    order: LineOrder,
    now: Millis,
) {
    let session = draft.session;
    link_outside_chain(draft, arranged, copies, order);
    let mut seen: HashSet<Cow<'_, str>> = HashSet::default();
    let mut before: Option<usize> = None;
    let mut clock: Option<Millis> = None;
    let mut newest: Option<Millis> = None;
    for at in 0..arranged.lines.len() {
        let line = &mut arranged.lines[at];
        let entry = entry_of(draft, line.origin);
        if !is_tree(entry) {
            continue;
        }
        let sidechain = entry.is_sidechain();
        if line.in_chain {
            let is_root = before.is_none() || is_boundary(entry);
            let above = before.filter(|_| !is_root);
            line.parent = above.map_or(ResultParent::Root, ResultParent::To);
            before = Some(at);
            let own = entry.timestamp();
            let time = match (own, clock) {
                (Some(own), Some(clock)) => own.max(clock + 1),
                (Some(own), None) => own,
                (None, Some(clock)) => clock + 1,
                (None, None) => first_time(session).unwrap_or(now),
            };
            line.time = Some(time).filter(|_| own != Some(time));
            clock = Some(time);
        } else if !sidechain {
            newest = newest.max(entry.timestamp());
        }
        if order != LineOrder::Original {
            let is_first = entry.uuid().is_some_and(|uuid| seen.insert(uuid));
            line.new_uuid = !is_first && (line.in_chain || entry.uuid().is_some());
        }
    }
    // Older versions resume from the line with the newest timestamp.
    if let (Some(last), Some(clock), Some(newest)) = (before, clock, newest)
        && newest >= clock
    {
        arranged.lines[last].time = Some(newest + 1);
    }
}

/// Sets the parents of the lines that are not in the chain.
fn link_outside_chain(
    draft: &EditDraft<'_>,
    arranged: &mut Arrangement,
    copies: &DuplicateLines,
    order: LineOrder,
) {
    let entry = |line: &ResultLine| entry_of(draft, line.origin);
    let chained = arranged.lines.iter().enumerate().filter(|(_, line)| line.in_chain && is_tree(entry(line)));
    let mut before: Vec<usize> = chained.map(|(at, _)| at).collect();
    // From the last line to the first: an ancestor that follows a line follows all that come after it here.
    let mut search = AncestorSearch::new(draft.session);
    for at in (0..arranged.lines.len()).rev() {
        before.pop_if(|last| *last >= at);
        let line = &arranged.lines[at];
        if !line.in_chain && is_tree(entry(line)) {
            let before = before.last().copied();
            let link = parent_outside_chain(draft, arranged, copies, &mut search, at, before, order);
            arranged.lines[at].parent = link;
        }
    }
}

/// Returns the parent of a line that is not in the chain, given the last line of the chain before it. The
/// search must not have been used for an earlier line.
fn parent_outside_chain(
    draft: &EditDraft<'_>,
    arranged: &Arrangement,
    copies: &DuplicateLines,
    search: &mut AncestorSearch,
    at: usize,
    before: Option<usize>,
    order: LineOrder,
) -> ResultParent {
    let session = draft.session;
    let ResultOrigin::Source(idx) = arranged.lines[at].origin else {
        return before.map_or(ResultParent::Root, ResultParent::To);
    };
    let Some(parent) = session.ancestors(idx).nth(1) else {
        // A root, or a line with a missing parent.
        let is_root = session.entries()[idx].parent_uuid().is_none();
        return match order {
            LineOrder::Original => ResultParent::Keep,
            _ if is_root && !draft.is_removed(idx) => ResultParent::Keep,
            _ => before.map_or(ResultParent::Root, ResultParent::To),
        };
    };
    if order == LineOrder::Original && arranged.positions[parent].is_some() {
        return ResultParent::Keep;
    }
    let place = |idx: EntryIndex| arranged.positions[copies.get(&idx).copied().unwrap_or(idx)];
    let above = search.nearest(parent, |above| place(above).is_some_and(|above| above < at)).and_then(place);
    above.or(before).map_or(ResultParent::Root, ResultParent::To)
}

fn first_time(session: &Session) -> Option<Millis> {
    session.entries().indices().find_map(|idx| session.timestamp(idx))
}

pub(crate) fn entry_of<'d>(draft: &'d EditDraft<'_>, origin: ResultOrigin) -> &'d Entry {
    match origin {
        ResultOrigin::Source(idx) => match &draft.line_edit(idx).content {
            LineContent::Replaced(entry) => entry,
            LineContent::Unchanged | LineContent::Spliced(_) => &draft.session.entries()[idx],
        },
        ResultOrigin::Added(added) => &draft.added[added].entry,
    }
}

/// Returns whether an entry is a compaction boundary.
pub(crate) fn is_boundary(entry: &Entry) -> bool {
    entry.kind() == Kind::System
        && entry.get(key::SUBTYPE).is_some_and(|json| json.is_str(value::COMPACT_BOUNDARY))
}
