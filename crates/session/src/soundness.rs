//! The rules of a sound session: the conditions under which every version of Claude Code resumes it
//! completely.
//!
//! Logs written by Claude Code break some of these rules. For example, it writes parallel results as a
//! fork, and some versions lose a part of that when they read it. So violations are not findings. The
//! result of an edit is checked against the rules before it is written. Lines are pushed one at a time and
//! are not kept, so a log of any size can be checked.

mod line_fact;
mod message;

use foldhash::{HashMap, HashSet};
use threadline_entry::{Entry, Millis};

use self::line_fact::{LineFact, ParentLine, hash};
use crate::session::Session;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    /// The rule.
    pub rule: SoundnessRule,
    /// The line number, counted from 1 in the order of the pushes.
    pub line_no: u32,
    /// The description, as a sentence without a full stop.
    pub message: &'static str,
    /// Identifies the same violation in two versions of a log, by rule, message and line, but not by the line
    /// number.
    key: u64,
}

/// A rule that a sound log obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SoundnessRule {
    /// A conversation has one root. Only its first line and its compaction boundaries have no parent.
    OneRoot = 1,
    /// The parent of a line precedes it, and uuids are unique.
    ParentBefore = 2,
    /// The conversation is a single chain in file order, and its timestamps increase.
    SingleChain = 3,
    /// The targets of references exist.
    References = 4,
    /// No line of a session is a sidechain, and every line of a sub-agent is one.
    Sidechain = 5,
    /// Each call has one result in the next message, before any text. Each result has a call.
    PairedCalls = 6,
    /// The first message is from the user, and no message or text is empty.
    NotEmpty = 7,
    /// The thinking of a reply is unchanged, or all of it was removed.
    Thinking = 8,
    /// The model of a reply is unchanged, because thinking is readable only for the model that produced it.
    Model = 9,
    /// Images and the whole request are within the limits of the API.
    Size = 10,
    /// The text is valid Unicode, without lone surrogates.
    Text = 11,
    /// Every line has the id of the session, which is the name of its file.
    OwnId = 12,
    /// Replies after removed content do not count its tokens. Checked in the plan of an edit, as is the next.
    Usage = 15,
    /// Working directory, version and git branch are unchanged.
    Origin = 16,
}

impl RuleViolation {
    /// Returns whether the violation is that the first message is from the model.
    pub fn begins_with_reply(&self) -> bool {
        self.message == message::BEGINS_WITH_REPLY
    }

    /// `line` is counted from 0. `line_key` identifies the line in other versions of the log.
    fn new(rule: SoundnessRule, line: usize, line_key: u64, message: &'static str) -> Self {
        Self { rule, line_no: line as u32 + 1, message, key: hash(&(rule as u8, line_key, message)) }
    }
}

impl std::fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {} (rule {})", self.line_no, self.message, self.rule as u8)
    }
}

/// Checks a log against the rules of a sound session. Stores a `LineFact` per line of the tree instead of the
/// lines.
#[derive(Clone, Debug, Default)]
pub struct SoundnessChecker {
    n_lines: usize,
    /// The facts about the lines in the tree, in order. Other code refers to them by their positions.
    line_facts: Vec<LineFact>,
    /// The last line of the tree with each uuid, by the position of its facts.
    uuids: HashMap<String, usize>,
    /// Violations that were found in single lines.
    line_violations: Vec<RuleViolation>,
    /// The hashes of the distinct thinking blocks of each reply.
    thinking_hashes: HashMap<u64, Vec<u64>>,
    /// All of these, each with its reply.
    known_thinking: HashSet<(u64, u64)>,
    models: HashMap<u64, u64>,
    /// The line numbers, counted from 0, and the uuids that these lines refer to.
    references: Vec<(usize, String)>,
    id: Option<String>,
}

/// The state of a log before an edit, for comparison with the result.
#[derive(Clone, Debug, Default)]
pub struct SoundnessBaseline {
    /// The violations in that log, in no particular order.
    pub violations: Vec<RuleViolation>,
    thinking_hashes: HashMap<u64, Vec<u64>>,
    models: HashMap<u64, u64>,
}

impl SoundnessChecker {
    /// Returns a checker for the log of a session with this id.
    pub fn of_session(id: &str) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// Returns a checker for the lines of a session as it is.
    pub fn before_edit(session: &Session) -> Self {
        Self::of_session(&session.id().unwrap_or_default())
    }

    /// Adds the next line.
    pub fn push(&mut self, entry: &Entry) {
        let line = self.n_lines;
        self.n_lines += 1;
        let mut fact = LineFact::of(entry, line);
        self.check_line(entry, &mut fact);
        if fact.in_tree {
            self.line_facts.push(fact);
        }
    }

    /// Returns the violations that can be found in this log alone, sorted by line.
    ///
    /// With `whole`, lines outside the conversation are checked too. Otherwise abandoned branches are
    /// allowed.
    pub fn violations(&self, whole: bool) -> Vec<RuleViolation> {
        let mut violations = self.find_violations(self.line_violations.clone(), whole);
        violations.sort_by_key(|violation| (violation.line_no, violation.rule));
        violations
    }

    /// Adds the violations of several lines to those of single lines.
    fn find_violations(&self, mut violations: Vec<RuleViolation>, whole: bool) -> Vec<RuleViolation> {
        let chain = self.chain();
        if !whole {
            violations.retain(|violation| {
                let line = violation.line_no as usize - 1;
                let position = || self.line_facts.binary_search_by_key(&line, |fact| fact.line).ok();
                match violation.rule {
                    // The lines of sub-agents are never sent with the conversation.
                    SoundnessRule::Sidechain => false,
                    SoundnessRule::ParentBefore => {
                        position().is_some_and(|position| !self.line_facts[position].sidechain)
                    }
                    // The content of an abandoned branch is never sent.
                    SoundnessRule::NotEmpty => {
                        position().is_some_and(|position| chain.binary_search(&position).is_ok())
                    }
                    _ => true,
                }
            });
        }
        self.check_chain(&chain, &mut violations);
        self.check_messages(&chain, &mut violations);
        self.check_references(&mut violations);
        if whole {
            self.check_outside_chain(&chain, &mut violations);
        }
        violations
    }

    /// Returns the state needed to compare a later version of the log with this one.
    pub fn baseline(mut self) -> SoundnessBaseline {
        let of_lines = std::mem::take(&mut self.line_violations);
        let violations = self.find_violations(of_lines, false);
        SoundnessBaseline { violations, thinking_hashes: self.thinking_hashes, models: self.models }
    }

    /// Returns the violations in this log that `before`, an earlier version, did not have.
    pub fn new_violations(&self, before: &SoundnessBaseline) -> Vec<RuleViolation> {
        let known: HashSet<u64> = before.violations.iter().map(|violation| violation.key).collect();
        let mut violations = self.violations(false);
        violations.retain(|violation| !known.contains(&violation.key));
        violations
    }

    /// Returns the replies that differ from `before` in their model or in their thinking. All thinking of a
    /// reply may be removed, unless the reply has pending results: the API rejects these without it.
    pub fn changed_replies(&self, before: &SoundnessBaseline) -> Vec<RuleViolation> {
        let mut violations = Vec::new();
        let mut seen = HashSet::default();
        for fact in &self.line_facts {
            let line = fact.line;
            let Some(reply) = fact.reply_hash.filter(|&reply| seen.insert(reply)) else { continue };
            if let (Some(model), Some(old)) = (self.models.get(&reply), before.models.get(&reply))
                && model != old
            {
                violations.push(RuleViolation::new(
                    SoundnessRule::Model,
                    line,
                    reply,
                    "the model of the reply was changed",
                ));
            }
            let (now, old) = (self.thinking_hashes.get(&reply), before.thinking_hashes.get(&reply));
            if now.is_some() && now != old {
                violations.push(RuleViolation::new(
                    SoundnessRule::Thinking,
                    line,
                    reply,
                    "the thinking of the reply was changed",
                ));
            }
        }
        if let Some((line, reply)) = self.unfinished_reply()
            && !self.thinking_hashes.contains_key(&reply)
            && before.thinking_hashes.contains_key(&reply)
        {
            let message = "the reply has pending results, but its thinking was removed";
            violations.push(RuleViolation::new(SoundnessRule::Thinking, line, reply, message));
        }
        violations
    }

    /// Returns the lines of the conversation as positions in `line_facts`, from the root to the last line,
    /// across compactions.
    fn chain(&self) -> Vec<usize> {
        let leaf = self.line_facts.iter().rposition(|fact| !fact.sidechain);
        let above = |&at: &usize| {
            let fact = &self.line_facts[at];
            match fact.parent {
                ParentLine::Line(above) => Some(above),
                ParentLine::Root if fact.boundary => fact.logical_parent,
                ParentLine::Root | ParentLine::Missing => None,
            }
        };
        let mut chain: Vec<usize> = std::iter::successors(leaf, above).collect();
        chain.reverse();
        chain
    }

    /// Checks that the conversation is a chain with one root and increasing timestamps.
    fn check_chain(&self, chain: &[usize], violations: &mut Vec<RuleViolation>) {
        let mut clock: Option<Millis> = None;
        for (i, &position) in chain.iter().enumerate() {
            let fact = &self.line_facts[position];
            if i == 0 && fact.parent != ParentLine::Root {
                violations.push(fact.violation(SoundnessRule::OneRoot, "the conversation has no root"));
            }
            match (fact.time, clock) {
                (None, _) => {
                    violations.push(fact.violation(SoundnessRule::SingleChain, "the line has no timestamp"));
                }
                (Some(time), Some(before)) if time <= before => {
                    let message = "the timestamp is not later than that of the parent";
                    violations.push(fact.violation(SoundnessRule::SingleChain, message));
                }
                _ => {}
            }
            clock = fact.time.or(clock);
        }
        // Old versions resume from the line with the newest timestamp.
        let newest = self.line_facts.iter().enumerate().filter(|(_, fact)| !fact.sidechain);
        let newest = newest.max_by_key(|(position, fact)| (fact.time, *position));
        if let (Some((newest, fact)), Some(&leaf)) = (newest, chain.last())
            && newest != leaf
        {
            violations.push(fact.violation(
                SoundnessRule::SingleChain,
                "the line with the newest timestamp is not the last of the conversation",
            ));
        }
        // Newer versions resume from the last line that is not a progress line.
        let seen = self.line_facts.iter().rposition(|fact| !fact.sidechain && !fact.progress);
        if let Some(last) = seen.filter(|last| chain.binary_search(last).is_err()) {
            let fact = &self.line_facts[last];
            violations.push(
                fact.violation(SoundnessRule::SingleChain, "the last line is not part of the conversation"),
            );
        }
        self.check_attached_lines(chain, violations);
    }

    /// Reports lines of replies, and results, that are attached to the conversation but not on the chain.
    /// Only some versions read them.
    fn check_attached_lines(&self, chain: &[usize], violations: &mut Vec<RuleViolation>) {
        let mut on_chain = vec![false; self.line_facts.len()];
        let mut replies = HashSet::default();
        for &position in chain {
            on_chain[position] = true;
            replies.extend(self.line_facts[position].reply_hash);
        }
        for (position, fact) in self.line_facts.iter().enumerate() {
            let beside = !on_chain[position] && !fact.sidechain;
            let of_reply = fact.reply_hash.is_some_and(|reply| replies.contains(&reply));
            let answers = !fact.results.is_empty()
                && matches!(fact.parent, ParentLine::Line(up) if on_chain[up]
                    && self.line_facts[up].reply_hash.is_some());
            if beside && (of_reply || answers) {
                let message = "the line belongs to a reply of the conversation but is on another branch";
                violations.push(fact.violation(SoundnessRule::SingleChain, message));
            }
        }
    }

    /// Checks that lines outside the conversation contain no messages and are not roots.
    fn check_outside_chain(&self, chain: &[usize], violations: &mut Vec<RuleViolation>) {
        let on_chain: HashSet<usize> = chain.iter().copied().collect();
        for (position, fact) in self.line_facts.iter().enumerate() {
            if fact.sidechain || on_chain.contains(&position) {
                continue;
            }
            if fact.is_sent() {
                let message = "the message is outside the conversation";
                violations.push(fact.violation(SoundnessRule::SingleChain, message));
            }
            if fact.parent == ParentLine::Root {
                violations.push(fact.violation(SoundnessRule::OneRoot, "the line is a second root"));
            }
        }
    }

    fn check_references(&self, violations: &mut Vec<RuleViolation>) {
        for (line, uuid) in &self.references {
            if !self.uuids.contains_key(uuid) {
                let line = *line;
                let message = "the line refers to a missing line";
                violations.push(RuleViolation::new(SoundnessRule::References, line, hash(&uuid), message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_in_the_tree_are_recorded() {
        let mut checker = SoundnessChecker::of_session("s1");
        let lines = ["{\"type\":\"x\"}", "{\"type\":\"user\"}", "not JSON", "{\"type\":\"x\"}"];
        lines.iter().for_each(|line| checker.push(&Entry::parse(line.as_bytes()).0));
        assert_eq!(checker.line_facts.len(), 1);
        // Violations are reported with the numbers of all lines.
        let lines: Vec<u32> = checker.violations(true).iter().map(|violation| violation.line_no).collect();
        assert_eq!(lines, [2, 2, 2, 3]);
    }
}
