//! The active conversation, and the branches that were abandoned.

use std::cell::Cell;

use foldhash::HashMap;
use threadline_entry::{Kind, key};

use crate::index::{EntryIndex, IndexVec, ReplyIndex};
use crate::input::{InputKind, is_command_caveat};
use crate::session::{ParentLink, Session};

/// The conversation that a resume would continue: from the first prompt to the leaf, across compactions.
///
/// Includes the entries attached to that path, such as parallel tool results. Excludes rewound branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The entries, in file order.
    pub entries: Vec<EntryIndex>,
    /// The newest entry of the conversation.
    pub leaf: Option<EntryIndex>,
}

/// A path that is not part of the active conversation: a rewind, a retry, or a separate root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The last entry that the branch shares with the conversation. `None` if it is not connected to it.
    pub fork: Option<EntryIndex>,
    /// The entries of the branch, in file order.
    pub entries: Vec<EntryIndex>,
}

/// A flag per entry of a session.
type EntryFlags = IndexVec<EntryIndex, bool>;

/// The maximum number of passes over all entries that look for entries attached to the conversation.
const MAX_PASSES: usize = 16;
/// The maximum number of lines and of results examined per call.
const MAX_COPIES: usize = 64;
/// The maximum number of ancestors visited in the search for forks, per entry of the log.
const MAX_STEPS_PER_ENTRY: usize = 64;

/// Counts of identical lines per reply. Detects replies that were written to the log twice.
///
/// A member is a line that belongs to the conversation.
struct ReplyCopies<'s> {
    /// By reply and content: the number of lines, and the number of these that are members.
    counts: HashMap<(ReplyIndex, &'s str), (usize, usize)>,
    /// By reply: the number of non-member lines with the same content as a member. `None` if all lines of the
    /// reply were members from the beginning, as those of most replies are. Their content is not read.
    duplicates: IndexVec<ReplyIndex, Option<usize>>,
}

impl<'s> ReplyCopies<'s> {
    fn of(session: &'s Session, members: &EntryFlags) -> Self {
        let mut copies =
            Self { counts: HashMap::default(), duplicates: IndexVec::filled(None, session.replies().len()) };
        for (reply, found) in session.replies().enumerated() {
            if found.entries.iter().all(|&idx| members[idx]) {
                continue;
            }
            copies.duplicates[reply] = Some(0);
            for &idx in &found.entries {
                if let Some(said) = raw_content(session, idx) {
                    copies.counts.entry((reply, said)).or_default().0 += 1;
                }
            }
        }
        for idx in members.indices().filter(|idx| members[*idx]) {
            copies.add_member(session, idx);
        }
        copies
    }

    /// Records that a line became a member.
    fn add_member(&mut self, session: &'s Session, idx: EntryIndex) {
        let Some(reply) = session.reply_of(idx) else { return };
        let Some(duplicates) = &mut self.duplicates[reply] else { return };
        let Some(said) = raw_content(session, idx) else { return };
        let Some((lines, joined)) = self.counts.get_mut(&(reply, said)) else { return };
        *joined += 1;
        if *joined == 1 {
            *duplicates += *lines - 1;
        } else {
            *duplicates = duplicates.saturating_sub(1);
        }
    }

    /// Returns whether a member of the same reply has the same content.
    fn is_duplicate(&self, session: &'s Session, idx: EntryIndex) -> bool {
        let key = session.reply_of(idx).zip(raw_content(session, idx));
        key.and_then(|key| self.counts.get(&key)).is_some_and(|(_, joined)| *joined > 0)
    }

    /// Returns whether the reply of a line was written twice. Its unconnected lines then belong to the
    /// other copy.
    fn has_duplicates(&self, session: &Session, idx: EntryIndex) -> bool {
        session.reply_of(idx).and_then(|reply| self.duplicates[reply]).is_some_and(|count| count > 0)
    }
}

/// Returns the raw content of the message of a line.
fn raw_content(session: &Session, idx: EntryIndex) -> Option<&str> {
    session.entries()[idx].message()?.content().map(|content| content.json().raw())
}

impl Session {
    /// Returns the active conversation. It is cached until the next `push`.
    pub fn thread(&self) -> Thread {
        let find = || {
            let leaf = self.active_leaf().or_else(|| self.last_message());
            leaf.map_or_else(Thread::default, |leaf| self.thread_to(leaf))
        };
        self.cached_thread.get_or_init(find).clone()
    }

    /// Returns the conversation as it would be if it ended at `leaf`.
    pub fn thread_to(&self, leaf: EntryIndex) -> Thread {
        // Only the first copy of a line is in the tree.
        let first = || self.entries()[leaf].uuid().and_then(|uuid| self.find(&uuid));
        let leaf = if self.in_tree(leaf) { leaf } else { first().unwrap_or(leaf) };
        let members = self.thread_members(leaf);
        let entries = members.indices().filter(|&idx| members[idx]).collect();
        Thread { entries, leaf: Some(leaf) }
    }

    /// Returns the last line of the log of a sub-agent, for which a resume finds no leaf.
    fn last_message(&self) -> Option<EntryIndex> {
        let spoken = |idx: &EntryIndex| matches!(self.entries()[*idx].kind(), Kind::User | Kind::Assistant);
        self.entries().indices().rev().filter(|&idx| self.in_tree(idx)).find(spoken)
    }

    /// Returns, for each entry, whether it belongs to the conversation that ends at `leaf`.
    fn thread_members(&self, leaf: EntryIndex) -> EntryFlags {
        let mut members = EntryFlags::filled(false, self.entries().len());
        let mut at = Some(leaf);
        while let Some(idx) = at.filter(|&idx| !members[idx]) {
            members[idx] = true;
            at = self.continues(idx);
        }
        let mut replies = IndexVec::filled(false, self.replies().len());
        for (idx, _) in members.enumerated().filter(|(_, member)| **member) {
            if let Some(reply) = self.reply_of(idx) {
                replies[reply] = true;
            }
        }
        let continued = self.continued_lines();
        let mut copies = ReplyCopies::of(self, &members);
        for _ in 0..MAX_PASSES {
            if !self.add_attached(leaf, &replies, &continued, &mut members, &mut copies) {
                break;
            }
        }
        members
    }

    /// Returns, for each entry, whether a prompt or reply is below it. Lines of local commands do not
    /// count.
    fn continued_lines(&self) -> EntryFlags {
        let mut continued = EntryFlags::filled(false, self.entries().len());
        for idx in self.entries().indices().filter(|&idx| self.in_tree(idx)) {
            let speaks = match self.input(idx) {
                Some(input) => !self.belongs_to_local_command(idx, input),
                None => self.entries()[idx].kind() == Kind::Assistant,
            };
            if !speaks {
                continue;
            }
            for above in self.ancestors(idx).skip(1) {
                // The remaining ancestors are marked already.
                if std::mem::replace(&mut continued[above], true) {
                    break;
                }
            }
        }
        continued
    }

    /// Returns whether a line is a local command, its output, or the caveat that precedes it.
    fn belongs_to_local_command(&self, idx: EntryIndex, input: InputKind) -> bool {
        let text = || self.entries()[idx].message()?.content()?.as_str();
        input.is_command_line()
            || input.is_command_output()
            || (input == InputKind::Meta && text().is_some_and(|text| is_command_caveat(&text)))
    }

    /// Adds the entries attached to the path from the root to the leaf: other lines of a reply, results of
    /// parallel calls, hooks, attachments, and the boundary of a compaction that preserved its tail.
    ///
    /// Returns whether another pass is needed, because an added entry has children on earlier lines.
    fn add_attached<'s>(
        &'s self,
        leaf: EntryIndex,
        replies: &IndexVec<ReplyIndex, bool>,
        continued: &EntryFlags,
        members: &mut EntryFlags,
        copies: &mut ReplyCopies<'s>,
    ) -> bool {
        let mut again = false;
        let mut behind: Vec<EntryIndex> = Vec::new();
        for idx in members.indices() {
            if !self.is_attached(idx, leaf, replies, continued, members, copies) {
                continue;
            }
            members[idx] = true;
            copies.add_member(self, idx);
            // Children on earlier lines. Following them here handles a chain in reverse order in a single
            // pass.
            behind.push(idx);
            while let Some(above) = behind.pop() {
                for child in self.children(above).filter(|child| *child < idx) {
                    again |= !members[child];
                    if self.is_attached(child, leaf, replies, continued, members, copies) {
                        members[child] = true;
                        copies.add_member(self, child);
                        behind.push(child);
                    }
                }
            }
        }
        again
    }

    /// Returns whether an entry that is not a member is attached to the members.
    fn is_attached<'s>(
        &'s self,
        idx: EntryIndex,
        leaf: EntryIndex,
        replies: &IndexVec<ReplyIndex, bool>,
        continued: &EntryFlags,
        members: &EntryFlags,
        copies: &ReplyCopies<'s>,
    ) -> bool {
        if members[idx] || !self.in_tree(idx) || self.is_sidechain(idx) != self.is_sidechain(leaf) {
            return false;
        }
        match self.entries()[idx].kind() {
            Kind::Assistant => {
                self.reply_of(idx).is_some_and(|reply| replies[reply])
                    && !copies.is_duplicate(self, idx)
                    && (self.has_parent_in(idx, members) || !copies.has_duplicates(self, idx))
            }
            Kind::User if self.entries()[idx].is_compact_summary() => self.has_parent_in(idx, members),
            // Text injected by a call, such as a skill, is below the result of the call.
            Kind::User if self.entries()[idx].get(key::SOURCE_TOOL_USE_ID).is_some() => {
                self.has_parent_in(idx, members)
            }
            // A command that Claude Code executed locally is not a branch.
            Kind::User
                if !continued[idx]
                    && self.input(idx).is_some_and(|input| self.belongs_to_local_command(idx, input)) =>
            {
                self.has_parent_in(idx, members)
            }
            Kind::User => self.answers_member(idx, members),
            _ if self.is_boundary(idx) => {
                self.continues(idx).is_some_and(|before| members[before]) && !self.is_continued(idx)
            }
            _ => self.has_parent_in(idx, members),
        }
    }

    fn has_parent_in(&self, idx: EntryIndex, members: &EntryFlags) -> bool {
        matches!(self.parent(idx), ParentLink::Entry(parent) if members[parent])
    }

    /// Returns whether the conversation continues below a boundary and its summary, before another boundary.
    fn is_continued(&self, boundary: EntryIndex) -> bool {
        let mut below: Vec<EntryIndex> = self.children(boundary).collect();
        while let Some(idx) = below.pop() {
            let entry = &self.entries()[idx];
            if matches!(entry.kind(), Kind::User | Kind::Assistant) && !entry.is_compact_summary() {
                return true;
            }
            if !self.is_boundary(idx) {
                below.extend(self.children(idx));
            }
        }
        false
    }

    /// Returns whether the entry contains the result of a call made by a member. Only one result per call
    /// qualifies.
    fn answers_member(&self, idx: EntryIndex, members: &EntryFlags) -> bool {
        self.answers_on(idx).any(|(at, call)| {
            // Bounds the work for logs that were not written by Claude Code.
            let results = || call.results.iter().take(MAX_COPIES);
            let belongs = results()
                .find(|at| members[at.entry_idx])
                .or_else(|| results().find(|at| self.has_parent_in(at.entry_idx, members)))
                .or(call.results.first());
            let mut lines = call.lines.iter().rev().take(MAX_COPIES);
            belongs == Some(&at) && (members[call.entry_idx] || lines.any(|&line| members[line]))
        })
    }

    /// Returns the branches outside the active conversation, in file order.
    ///
    /// Every message in the tree is in the conversation or in one of the branches.
    pub fn branches(&self) -> Vec<Branch> {
        self.branches_outside(&self.thread())
    }

    /// Returns the branches outside a conversation that was computed before.
    pub fn branches_outside(&self, thread: &Thread) -> Vec<Branch> {
        let mut members = EntryFlags::filled(false, self.entries().len());
        for &idx in &thread.entries {
            members[idx] = true;
        }
        let side = thread.leaf.is_some_and(|leaf| self.is_sidechain(leaf));
        let mut branches: Vec<Branch> = Vec::new();
        // The branch of each entry outside the conversation.
        let mut branch_of: HashMap<EntryIndex, usize> = HashMap::default();
        let mut reply_branch: HashMap<ReplyIndex, usize> = HashMap::default();
        let steps = Cell::new(self.entries().len().saturating_mul(MAX_STEPS_PER_ENTRY));
        for idx in self.entries().indices() {
            if members[idx] || !self.in_tree(idx) || self.is_sidechain(idx) != side {
                continue;
            }
            let is_boundary = self.is_boundary(idx);
            let spoken = is_boundary
                || self.input(idx).is_some()
                || matches!(self.entries()[idx].kind(), Kind::User | Kind::Assistant);
            let placed = |above: &EntryIndex| {
                steps.set(steps.get().saturating_sub(1));
                members[*above] || branch_of.contains_key(above)
            };
            let has_steps = |_: &EntryIndex| steps.get() > 0;
            // A boundary has no parent. Its logical parent is the fork.
            let before = if is_boundary { self.continues(idx) } else { None };
            let above =
                self.ancestors(idx).skip(1).take_while(has_steps).find(placed).or(before.filter(placed));
            let known = above
                .and_then(|above| branch_of.get(&above).copied())
                .or_else(|| self.reply_of(idx).and_then(|reply| reply_branch.get(&reply).copied()));
            let branch = match known {
                Some(branch) => branch,
                // Hooks and attachments do not start a branch.
                None if !spoken => continue,
                None => {
                    // Hooks and attachments between the fork and the first message belong to the branch.
                    let hooks = self
                        .ancestors(idx)
                        .skip(1)
                        .take_while(|above| *above < idx && has_steps(above) && !placed(above));
                    let mut entries: Vec<EntryIndex> = hooks.filter(|&idx| self.in_tree(idx)).collect();
                    entries.reverse();
                    branch_of.extend(entries.iter().map(|&idx| (idx, branches.len())));
                    branches.push(Branch { fork: above, entries });
                    branches.len() - 1
                }
            };
            branches[branch].entries.push(idx);
            branch_of.insert(idx, branch);
            if let Some(reply) = self.reply_of(idx) {
                reply_branch.insert(reply, branch);
            }
        }
        branches
    }
}
