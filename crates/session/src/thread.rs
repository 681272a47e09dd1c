//! The active conversation, and the branches that were left.

use std::cell::Cell;

use rustc_hash::FxHashMap;
use threadline_entry::Kind;

use crate::input::{Input, is_caution};
use crate::session::{Parent, Session};
use crate::tool_call::ResultAt;

/// The conversation that a resume would go on with, as a reader sees it: from the first prompt on,
/// across compactions, with everything that belongs to it and nothing that was rewound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The entries, in file order, which is the order they were written in.
    pub entries: Vec<usize>,
    /// The newest entry of the conversation.
    pub leaf: Option<usize>,
}

/// A path that the conversation left: a rewind, a retry, or a root of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where it leaves the active conversation; `None` if it never met it.
    pub fork: Option<usize>,
    /// Its entries, in file order.
    pub entries: Vec<usize>,
}

/// How often all entries are looked at for some that belong beside the conversation.
const MOST_PASSES: usize = 16;
/// So many lines and results of one call are looked at.
const MOST_COPIES: usize = 64;
/// How many ancestors are looked at in all, for each entry of the log, before a search for a fork is given up.
const MOST_STEPS: usize = 64;

/// What the lines of each reply say, and how many of them are members: a reply may be written out twice.
struct Copies<'s> {
    /// By reply and content: how many lines there are, and how many of them are members.
    counts: FxHashMap<(usize, &'s str), (usize, usize)>,
    /// By reply: how many lines are no members and say what a member says.
    repeated: Vec<usize>,
}

impl<'s> Copies<'s> {
    fn of(session: &'s Session, members: &[bool]) -> Self {
        let mut copies = Self { counts: FxHashMap::default(), repeated: vec![0; session.replies().len()] };
        for (reply, found) in session.replies().iter().enumerate() {
            // Most replies are in the conversation with all of their lines.
            if found.entries.iter().all(|&idx| members[idx]) {
                continue;
            }
            for &idx in &found.entries {
                if let Some(said) = said(session, idx) {
                    copies.counts.entry((reply, said)).or_default().0 += 1;
                }
            }
        }
        for idx in (0..members.len()).filter(|idx| members[*idx]) {
            copies.join(session, idx);
        }
        copies
    }

    /// Notes that a line is a member now.
    fn join(&mut self, session: &'s Session, idx: usize) {
        let Some((reply, said)) = session.reply_of(idx).zip(said(session, idx)) else { return };
        let Some((lines, joined)) = self.counts.get_mut(&(reply, said)) else { return };
        *joined += 1;
        if *joined == 1 {
            self.repeated[reply] += *lines - 1;
        } else {
            self.repeated[reply] = self.repeated[reply].saturating_sub(1);
        }
    }

    /// Whether a member of the same reply says the same: then the reply was written out twice.
    fn is_written_again(&self, session: &'s Session, idx: usize) -> bool {
        let key = session.reply_of(idx).zip(said(session, idx));
        key.and_then(|key| self.counts.get(&key)).is_some_and(|(_, joined)| *joined > 0)
    }

    /// Whether the reply of a line stands in the log twice: then what hangs elsewhere is of the other copy.
    fn is_copied(&self, session: &Session, idx: usize) -> bool {
        session.reply_of(idx).is_some_and(|reply| self.repeated[reply] > 0)
    }
}

/// The content of a line's message.
fn said(session: &Session, idx: usize) -> Option<&str> {
    session.entries()[idx].message()?.content().map(|content| content.json().raw())
}

impl Session {
    /// The active conversation. It is found once, until something is pushed.
    pub fn thread(&self) -> Thread {
        let find = || {
            let leaf = self.active_leaf().or_else(|| self.agent_leaf());
            leaf.map_or_else(Thread::default, |leaf| self.thread_to(leaf))
        };
        self.thread.get_or_init(find).clone()
    }

    /// The conversation as it would be if it had ended at `leaf`.
    pub fn thread_to(&self, leaf: usize) -> Thread {
        // Of a line that was written twice, the first stands in the tree.
        let first = || self.entries()[leaf].uuid().and_then(|uuid| self.find(&uuid));
        let leaf = if self.in_tree(leaf) { leaf } else { first().unwrap_or(leaf) };
        let members = self.thread_members(leaf);
        let entries = (0..members.len()).filter(|&idx| members[idx]).collect();
        Thread { entries, leaf: Some(leaf) }
    }

    /// Where a sub-agent's own log ends, which is nothing that a resume would go on with.
    fn agent_leaf(&self) -> Option<usize> {
        let spoken = |idx: &usize| matches!(self.entries()[*idx].kind(), Kind::User | Kind::Assistant);
        (0..self.entries().len()).rev().filter(|&idx| self.in_tree(idx)).find(spoken)
    }

    /// Which entries belong to the conversation that ends at `leaf`.
    fn thread_members(&self, leaf: usize) -> Vec<bool> {
        let mut members = vec![false; self.entries().len()];
        let mut at = Some(leaf);
        while let Some(idx) = at.filter(|&idx| !members[idx]) {
            members[idx] = true;
            at = self.continues(idx);
        }
        let mut replies = vec![false; self.replies().len()];
        for (idx, _) in members.iter().enumerate().filter(|(_, member)| **member) {
            if let Some(reply) = self.reply_of(idx) {
                replies[reply] = true;
            }
        }
        let continued = self.continued_lines();
        let mut copies = Copies::of(self, &members);
        for _ in 0..MOST_PASSES {
            if !self.join_beside(leaf, &replies, &continued, &mut members, &mut copies) {
                break;
            }
        }
        members
    }

    /// The lines that a prompt or a reply continues, directly or further down, by entry.
    fn continued_lines(&self) -> Vec<bool> {
        let mut continued = vec![false; self.entries().len()];
        for idx in (0..self.entries().len()).filter(|&idx| self.in_tree(idx)) {
            let speaks = match self.input(idx) {
                Some(input) => !self.is_of_local_command(idx, input),
                None => self.entries()[idx].kind() == Kind::Assistant,
            };
            if !speaks {
                continue;
            }
            for above in self.ancestors(idx).skip(1) {
                // So are those above it.
                if std::mem::replace(&mut continued[above], true) {
                    break;
                }
            }
        }
        continued
    }

    /// Whether a line is a command, its output, or the caveat before it.
    fn is_of_local_command(&self, idx: usize, input: Input) -> bool {
        let text = || self.entries()[idx].message()?.content()?.as_str();
        input.is_command_line()
            || input.is_command_output()
            || (input == Input::Meta && text().is_some_and(|text| is_caution(&text)))
    }

    /// Lets in what hangs beside the walk: other lines of a reply, results of parallel calls, hooks and attachments,
    /// and the boundary of a compaction that kept its tail. Tells whether something hangs on them that stands before.
    fn join_beside<'s>(
        &'s self,
        leaf: usize,
        replies: &[bool],
        continued: &[bool],
        members: &mut [bool],
        copies: &mut Copies<'s>,
    ) -> bool {
        let mut again = false;
        let mut behind: Vec<usize> = Vec::new();
        for idx in 0..members.len() {
            if !self.is_beside(idx, leaf, replies, continued, members, copies) {
                continue;
            }
            members[idx] = true;
            copies.join(self, idx);
            // Lines that continue this one and stand before it: a chain that is written backwards is followed at once.
            behind.push(idx);
            while let Some(above) = behind.pop() {
                for child in self.children(above).filter(|child| *child < idx) {
                    again |= !members[child];
                    if self.is_beside(child, leaf, replies, continued, members, copies) {
                        members[child] = true;
                        copies.join(self, child);
                        behind.push(child);
                    }
                }
            }
        }
        again
    }

    /// Whether an entry that is no member yet belongs beside those that are.
    fn is_beside<'s>(
        &'s self,
        idx: usize,
        leaf: usize,
        replies: &[bool],
        continued: &[bool],
        members: &[bool],
        copies: &Copies<'s>,
    ) -> bool {
        if members[idx] || !self.in_tree(idx) || self.is_sidechain(idx) != self.is_sidechain(leaf) {
            return false;
        }
        match self.entries()[idx].kind() {
            Kind::Assistant => {
                self.reply_of(idx).is_some_and(|reply| replies[reply])
                    && !copies.is_written_again(self, idx)
                    && (self.parent_in(idx, members) || !copies.is_copied(self, idx))
            }
            Kind::User if self.entries()[idx].flag("isCompactSummary") => self.parent_in(idx, members),
            // What a call brought in, such as a skill, hangs below its result.
            Kind::User if self.entries()[idx].get("sourceToolUseID").is_some() => {
                self.parent_in(idx, members)
            }
            // A command that Claude Code carried out by itself is no branch.
            Kind::User
                if !continued[idx]
                    && self.input(idx).is_some_and(|input| self.is_of_local_command(idx, input)) =>
            {
                self.parent_in(idx, members)
            }
            Kind::User => self.answers_member(idx, members),
            _ if self.is_boundary(idx) => {
                self.continues(idx).is_some_and(|before| members[before]) && !self.is_continued(idx)
            }
            _ => self.parent_in(idx, members),
        }
    }

    fn parent_in(&self, idx: usize, members: &[bool]) -> bool {
        matches!(self.parent(idx), Parent::Entry(parent) if members[parent])
    }

    /// Whether a conversation goes on below a boundary and its summary.
    fn is_continued(&self, boundary: usize) -> bool {
        let mut below: Vec<usize> = self.children(boundary).collect();
        while let Some(idx) = below.pop() {
            let entry = &self.entries()[idx];
            if matches!(entry.kind(), Kind::User | Kind::Assistant) && !entry.flag("isCompactSummary") {
                return true;
            }
            below.extend(self.children(idx));
        }
        false
    }

    /// Whether the entry holds the result of a call that a member made. Of several, one belongs.
    fn answers_member(&self, idx: usize, members: &[bool]) -> bool {
        let blocks = self.entries()[idx].message().into_iter().flat_map(|message| message.blocks());
        blocks.enumerate().any(|(block_idx, block)| {
            let at = ResultAt { entry_idx: idx, block_idx };
            let call = block.tool_use_id().and_then(|id| self.call_answered(&id, at));
            call.is_some_and(|call| {
                // A call that is answered this often is no call of Claude Code's.
                let results = || call.results.iter().take(MOST_COPIES);
                let belongs = results()
                    .find(|at| members[at.entry_idx])
                    .or_else(|| results().find(|at| self.parent_in(at.entry_idx, members)))
                    .or(call.results.first());
                belongs == Some(&at) && call.lines().take(MOST_COPIES).any(|line| members[line])
            })
        })
    }

    /// The branches that the active conversation left, in file order. Nothing that was said is in neither.
    pub fn branches(&self) -> Vec<Branch> {
        self.branches_beside(&self.thread())
    }

    /// The branches beside the active conversation, where that is known.
    pub fn branches_beside(&self, thread: &Thread) -> Vec<Branch> {
        let mut members = vec![false; self.entries().len()];
        for &idx in &thread.entries {
            members[idx] = true;
        }
        let side = thread.leaf.is_some_and(|leaf| self.is_sidechain(leaf));
        let mut branches: Vec<Branch> = Vec::new();
        // The branch that each entry outside the conversation went to.
        let mut branch_of: FxHashMap<usize, usize> = FxHashMap::default();
        let mut reply_branch: FxHashMap<usize, usize> = FxHashMap::default();
        let steps = Cell::new(self.entries().len().saturating_mul(MOST_STEPS));
        for idx in 0..self.entries().len() {
            if members[idx] || !self.in_tree(idx) || self.is_sidechain(idx) != side {
                continue;
            }
            let is_boundary = self.is_boundary(idx);
            let spoken = is_boundary
                || self.input(idx).is_some()
                || matches!(self.entries()[idx].kind(), Kind::User | Kind::Assistant);
            let placed = |above: &usize| {
                steps.set(steps.get().saturating_sub(1));
                members[*above] || branch_of.contains_key(above)
            };
            let has_steps = |_: &usize| steps.get() > 0;
            // A boundary has no parent, but it leaves the conversation somewhere all the same.
            let before = if is_boundary { self.continues(idx) } else { None };
            let above =
                self.ancestors(idx).skip(1).take_while(has_steps).find(placed).or(before.filter(placed));
            let known = above
                .and_then(|above| branch_of.get(&above).copied())
                .or_else(|| self.reply_of(idx).and_then(|reply| reply_branch.get(&reply).copied()));
            let branch = match known {
                Some(branch) => branch,
                // Hooks and attachments alone are no branch.
                None if !spoken => continue,
                None => {
                    // Those that it came after belong to it.
                    let hooks = self
                        .ancestors(idx)
                        .skip(1)
                        .take_while(|above| *above < idx && has_steps(above) && !placed(above));
                    let mut entries: Vec<usize> = hooks.filter(|&idx| self.in_tree(idx)).collect();
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
