//! Checks of the messages of a conversation: the first role, and the pairing of calls and results.

use super::fact::Role;
use super::{Breach, Rule, Soundness};

/// The maximum size of a request in bytes.
const REQUEST: u64 = 32 << 20;

pub(super) const UNASKED: &str = "the first message is from the model";

impl Soundness {
    /// Checks the messages of each section between compactions.
    pub(super) fn check_messages(&self, chain: &[usize], breaches: &mut Vec<Breach>) {
        let mut stretch = Stretch::default();
        for &line in chain {
            let fact = &self.facts[line];
            let mut breach = |rule, message| breaches.push(Breach::new(rule, line, fact.name, message));
            if fact.boundary {
                if !stretch.open.is_empty() {
                    breach(Rule::Pairs, "a previous call has no result");
                }
                stretch = Stretch::default();
                continue;
            }
            match fact.role {
                Role::Nobody => continue,
                Role::Assistant => {
                    if stretch.last.is_none() {
                        breach(Rule::NotEmpty, UNASKED);
                    }
                    if stretch.last == Some(Role::User) || stretch.reply != fact.reply {
                        if !stretch.open.is_empty() {
                            breach(Rule::Pairs, "a previous call has no result in the next message");
                        }
                        stretch.open.clear();
                    }
                    fact.calls.iter().for_each(|call| *stretch.open.entry(*call).or_default() += 1);
                    stretch.reply = fact.reply;
                    stretch.text = false;
                    if fact.calls.iter().any(|call| !stretch.calls.insert(*call)) {
                        breach(Rule::Pairs, "duplicate call");
                    }
                }
                Role::User => {
                    if !fact.results.is_empty() && stretch.text {
                        breach(Rule::Pairs, "the result follows text in its message");
                    }
                    for result in &fact.results {
                        match stretch.open.get_mut(result) {
                            Some(count) if *count > 1 => *count -= 1,
                            Some(_) => drop(stretch.open.remove(result)),
                            None => breach(Rule::Pairs, "the result answers no call of the message before"),
                        }
                    }
                    stretch.text |= fact.text;
                }
            }
            stretch.last = Some(fact.role);
            stretch.size += fact.size;
        }
        let Some(&last) = chain.last() else { return };
        let name = self.facts[last].name;
        if !stretch.open.is_empty() {
            breaches.push(Breach::new(Rule::Pairs, last, name, "a call has no result"));
        }
        if stretch.size > REQUEST {
            breaches.push(Breach::new(Rule::Size, last, 0, "the request exceeds the API limit"));
        }
        if stretch.last.is_none() {
            breaches.push(Breach::new(Rule::NotEmpty, last, 0, "the conversation is empty"));
        }
    }

    /// Returns the reply that the conversation ends in: its calls have results, and no reply follows them.
    pub(super) fn open_loop(&self) -> Option<(usize, u64)> {
        let chain = self.chain();
        let mut results = false;
        for &line in chain.iter().rev() {
            let fact = &self.facts[line];
            match fact.role {
                Role::Nobody => {}
                Role::User if fact.results.is_empty() => return None,
                Role::User => results = true,
                Role::Assistant => return fact.reply.filter(|_| results).map(|reply| (line, reply)),
            }
        }
        None
    }
}

/// The state of the section between two compactions, up to the current line.
#[derive(Default)]
struct Stretch {
    last: Option<Role>,
    reply: Option<u64>,
    /// Calls of the last reply that wait for their results, and how often each was made.
    open: rustc_hash::FxHashMap<u64, usize>,
    calls: rustc_hash::FxHashSet<u64>,
    /// Whether the current user message contains text.
    text: bool,
    size: u64,
}
