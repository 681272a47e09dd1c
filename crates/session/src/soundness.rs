//! The rules of a sound session: what a log must be like so that every version of Claude Code resumes it whole.
//!
//! Logs that Claude Code wrote itself break some of them: it writes parallel results as a fork, which some versions
//! read back with a loss. So these are no findings. They are what the result of an edit is held to, before it is
//! written. Lines are pushed one by one and not kept, so that a log of any size can be checked.

mod fact;
mod message;

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_entry::{Entry, Millis};

use self::fact::{Fact, Up, hash};

/// A rule that a log breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which rule.
    pub rule: Rule,
    /// The line, counted from 1 in the order they were pushed.
    pub line_no: usize,
    /// What is wrong, in a sentence without a full stop.
    pub message: &'static str,
    /// Tells the same breach in two versions of a log, whatever the number of its line.
    key: u64,
}

/// What a log is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A conversation begins once: nothing but its first line and its compactions continues nothing.
    OneRoot = 1,
    /// What a line continues stands before it, and no two lines have one uuid.
    ParentBefore = 2,
    /// The conversation is one straight line in the order of the file, and its time goes on with each line.
    Straight = 3,
    /// What a line refers to is there.
    References = 4,
    /// No line of a session belongs to a sub-agent; every line of a sub-agent does.
    Sidechain = 5,
    /// Each call has one result, in the message that follows, before any text; and the other way round.
    Pairs = 6,
    /// The first message is the user's, and no message or text is empty.
    NotEmpty = 7,
    /// What the model thought is there byte for byte, or all of a reply's is gone.
    Thinking = 8,
    /// A reply is of the model that it was of: what another thought it could not read.
    Model = 9,
    /// Images and the whole request are no larger than the API takes.
    Size = 10,
    /// The text is Unicode: no half characters.
    Text = 11,
    /// A session has its own id on every line, which is the name of its file.
    OwnId = 12,
    /// Where content went, the tokens of the replies behind it do not count it any more.
    Usage = 15,
    /// Working directory, version and branch are what they were.
    Origin = 16,
}

impl Breach {
    /// Whether it says that the first message is the model's.
    pub fn is_unasked(&self) -> bool {
        self.message == message::UNASKED
    }

    fn new(rule: Rule, line: usize, name: u64, message: &'static str) -> Self {
        Self { rule, line_no: line + 1, message, key: hash(&(rule as u8, name, message)) }
    }
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {} (rule {})", self.line_no, self.message, self.rule as u8)
    }
}

/// Holds a log to the rules of a sound session: what must be kept in mind of its lines for that.
#[derive(Clone, Debug, Default)]
pub struct Soundness {
    facts: Vec<Fact>,
    by_uuid: FxHashMap<Box<str>, u32>,
    /// Breaches that a line shows by itself.
    lines: Vec<Breach>,
    /// What each reply thought: hashes of its blocks, each once.
    thoughts: FxHashMap<u64, Vec<u64>>,
    models: FxHashMap<u64, u64>,
    references: Vec<(u32, Box<str>)>,
    id: Option<Box<str>>,
}

/// An earlier version of a log, to hold a later one against.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// The rules that it breaks.
    pub breaches: Vec<Breach>,
    thoughts: FxHashMap<u64, Vec<u64>>,
    models: FxHashMap<u64, u64>,
}

impl Soundness {
    /// For the log of a session that is known by `id`.
    pub fn of_session(id: &str) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// Takes in the next line.
    pub fn push(&mut self, entry: &Entry) {
        let line = self.facts.len();
        let mut fact = Fact::of(entry);
        self.check_line(line, entry, &mut fact);
        self.facts.push(fact);
    }

    /// The rules that the log breaks, as far as that can be told from itself.
    ///
    /// With `whole`, what stands beside the conversation counts too; else branches that it left may stay.
    pub fn breaches(&self, whole: bool) -> Vec<Breach> {
        let mut breaches = self.lines.clone();
        let chain = self.chain();
        if !whole {
            breaches.retain(|breach| {
                let line = breach.line_no - 1;
                match breach.rule {
                    Rule::Sidechain | Rule::ParentBefore => !self.facts[line].sidechain,
                    // What Claude Code wrote into a branch that was left is sent to nobody.
                    Rule::NotEmpty => chain.binary_search(&line).is_ok(),
                    _ => true,
                }
            });
        }
        self.check_chain(&chain, &mut breaches);
        self.check_messages(&chain, &mut breaches);
        self.check_references(&mut breaches);
        if whole {
            self.check_beside(&chain, &mut breaches);
        }
        breaches.sort_by_key(|breach| (breach.line_no, breach.rule));
        breaches
    }

    /// What must be kept in mind of a log to compare a later version of it with.
    pub fn baseline(self) -> Baseline {
        let breaches = self.breaches(false);
        Baseline { breaches, thoughts: self.thoughts, models: self.models }
    }

    /// Of the breaches of this log, those that `before`, an earlier version of it, did not have.
    pub fn new_breaches(&self, before: &Baseline) -> Vec<Breach> {
        let known: FxHashSet<u64> = before.breaches.iter().map(|breach| breach.key).collect();
        let mut breaches = self.breaches(false);
        breaches.retain(|breach| !known.contains(&breach.key));
        breaches
    }

    /// Where replies differ from those of `before` in what must not be touched: thoughts in part, or the model.
    pub fn touched_replies(&self, before: &Baseline) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let mut seen = FxHashSet::default();
        for (line, fact) in self.facts.iter().enumerate() {
            let Some(reply) = fact.reply.filter(|&reply| seen.insert(reply)) else { continue };
            if let (Some(model), Some(old)) = (self.models.get(&reply), before.models.get(&reply))
                && model != old
            {
                breaches.push(Breach::new(
                    Rule::Model,
                    line,
                    reply,
                    "the reply is said to be another model's",
                ));
            }
            let (now, old) = (self.thoughts.get(&reply), before.thoughts.get(&reply));
            if now.is_some() && now != old {
                breaches.push(Breach::new(
                    Rule::Thinking,
                    line,
                    reply,
                    "thinking of the reply is not what it was",
                ));
            }
        }
        if let Some((line, reply)) = self.open_loop()
            && !self.thoughts.contains_key(&reply)
            && before.thoughts.contains_key(&reply)
        {
            let message = "the reply waits to go on with its results, and what it thought is gone";
            breaches.push(Breach::new(Rule::Thinking, line, reply, message));
        }
        breaches
    }

    /// The lines of the conversation: from the last line up to the root, and on from before each compaction.
    fn chain(&self) -> Vec<usize> {
        let Some(leaf) = self.facts.iter().rposition(|fact| fact.in_tree && !fact.sidechain) else {
            return Vec::new();
        };
        let mut chain = vec![leaf];
        let mut at = leaf;
        loop {
            let fact = &self.facts[at];
            let above = match fact.up {
                Up::Line(above) => Some(above as usize),
                Up::Root if fact.boundary => fact.logical.map(|above| above as usize),
                Up::Root | Up::Missing => None,
            };
            match above.filter(|&above| above < at) {
                Some(above) => {
                    chain.push(above);
                    at = above;
                }
                None => break,
            }
        }
        chain.reverse();
        chain
    }

    /// That the conversation is a straight line whose time goes on, with one root.
    fn check_chain(&self, chain: &[usize], breaches: &mut Vec<Breach>) {
        let mut clock: Option<Millis> = None;
        for (i, &line) in chain.iter().enumerate() {
            let fact = &self.facts[line];
            if i == 0 && fact.up != Up::Root {
                breaches.push(Breach::new(
                    Rule::OneRoot,
                    line,
                    fact.name,
                    "the conversation has no beginning",
                ));
            }
            match (fact.time, clock) {
                (None, _) => {
                    breaches.push(Breach::new(Rule::Straight, line, fact.name, "the line has no time"));
                }
                (Some(time), Some(before)) if time <= before => {
                    let message = "the line is not later than the one that it continues";
                    breaches.push(Breach::new(Rule::Straight, line, fact.name, message));
                }
                _ => {}
            }
            clock = fact.time.or(clock);
        }
        // Older versions go on from the newest line, wherever it stands.
        let newest = self.facts.iter().enumerate().filter(|(_, fact)| fact.in_tree && !fact.sidechain);
        let newest = newest.max_by_key(|(line, fact)| (fact.time, *line)).map(|(line, _)| line);
        if let (Some(newest), Some(&leaf)) = (newest, chain.last())
            && newest != leaf
        {
            let name = self.facts[newest].name;
            breaches.push(Breach::new(
                Rule::Straight,
                newest,
                name,
                "the newest line is not the conversation's last",
            ));
        }
        // Newer ones go on from the last that is no progress.
        let seen = self.facts.iter().rposition(|fact| fact.in_tree && !fact.sidechain && !fact.progress);
        if let Some(last) = seen.filter(|last| chain.binary_search(last).is_err()) {
            let name = self.facts[last].name;
            breaches.push(Breach::new(Rule::Straight, last, name, "the last line is not the conversation's"));
        }
        self.check_recovered(chain, breaches);
    }

    /// Lines of replies, and results, that hang beside the conversation: some versions read them, some do not.
    fn check_recovered(&self, chain: &[usize], breaches: &mut Vec<Breach>) {
        let mut on_chain = vec![false; self.facts.len()];
        let mut replies = FxHashSet::default();
        for &line in chain {
            on_chain[line] = true;
            replies.extend(self.facts[line].reply);
        }
        for (line, fact) in self.facts.iter().enumerate() {
            let beside = !on_chain[line] && fact.in_tree && !fact.sidechain;
            let of_reply = fact.reply.is_some_and(|reply| replies.contains(&reply));
            let answers = !fact.results.is_empty()
                && matches!(fact.up, Up::Line(up) if on_chain[up as usize]
                    && self.facts[up as usize].reply.is_some());
            if beside && (of_reply || answers) {
                let message = "the line belongs to a reply of the conversation and hangs beside it";
                breaches.push(Breach::new(Rule::Straight, line, fact.name, message));
            }
        }
    }

    /// That nothing but silent lines hangs beside the conversation.
    fn check_beside(&self, chain: &[usize], breaches: &mut Vec<Breach>) {
        let on_chain: FxHashSet<usize> = chain.iter().copied().collect();
        for (line, fact) in self.facts.iter().enumerate() {
            if !fact.in_tree || fact.sidechain || on_chain.contains(&line) {
                continue;
            }
            if fact.speaks() {
                let message = "the line was said beside the conversation";
                breaches.push(Breach::new(Rule::Straight, line, fact.name, message));
            }
            if fact.up == Up::Root {
                breaches.push(Breach::new(Rule::OneRoot, line, fact.name, "the line is a second beginning"));
            }
        }
    }

    fn check_references(&self, breaches: &mut Vec<Breach>) {
        for (line, uuid) in &self.references {
            if !self.by_uuid.contains_key(uuid) {
                let line = *line as usize;
                let message = "the line refers to one that is not there";
                breaches.push(Breach::new(Rule::References, line, hash(&uuid), message));
            }
        }
    }
}
