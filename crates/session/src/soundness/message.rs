//! Checks of the messages of a conversation: the first role, and the pairing of calls and results.

use super::line_fact::RequestRole;
use super::{RuleViolation, SoundnessChecker, SoundnessRule};

/// The maximum size of a request in bytes.
const MAX_REQUEST_BYTES: u64 = 32 << 20;

pub(super) const BEGINS_WITH_REPLY: &str = "the first message is from the model";

impl SoundnessChecker {
    /// Checks the messages of each section between compactions.
    pub(super) fn check_messages(&self, chain: &[usize], violations: &mut Vec<RuleViolation>) {
        let mut section = MessageSection::default();
        for &position in chain {
            let fact = &self.line_facts[position];
            let mut report = |rule, message| violations.push(fact.violation(rule, message));
            if fact.boundary {
                if !section.open_calls.is_empty() {
                    report(SoundnessRule::PairedCalls, "a previous call has no result");
                }
                section = MessageSection::default();
                continue;
            }
            match fact.role {
                RequestRole::NotSent => continue,
                RequestRole::Assistant => {
                    if section.last.is_none() {
                        report(SoundnessRule::NotEmpty, BEGINS_WITH_REPLY);
                    }
                    if section.last == Some(RequestRole::User) || section.reply != fact.reply_hash {
                        if !section.open_calls.is_empty() {
                            report(
                                SoundnessRule::PairedCalls,
                                "a previous call has no result in the next message",
                            );
                        }
                        section.open_calls.clear();
                    }
                    fact.calls.iter().for_each(|call| *section.open_calls.entry(*call).or_default() += 1);
                    section.reply = fact.reply_hash;
                    section.has_text = false;
                    if fact.calls.iter().any(|call| !section.calls.insert(*call)) {
                        report(SoundnessRule::PairedCalls, "duplicate call");
                    }
                }
                RequestRole::User => {
                    if !fact.results.is_empty() && section.has_text {
                        report(SoundnessRule::PairedCalls, "the result follows text in its message");
                    }
                    for result in &fact.results {
                        match section.open_calls.get_mut(result) {
                            Some(count) if *count > 1 => *count -= 1,
                            Some(_) => drop(section.open_calls.remove(result)),
                            None => report(
                                SoundnessRule::PairedCalls,
                                "the result answers no call of the previous message",
                            ),
                        }
                    }
                    section.has_text |= fact.has_text;
                }
            }
            section.last = Some(fact.role);
            section.size += fact.size as u64;
        }
        let Some(last) = chain.last().map(|&last| &self.line_facts[last]) else { return };
        if !section.open_calls.is_empty() {
            violations.push(last.violation(SoundnessRule::PairedCalls, "a call has no result"));
        }
        let last = last.line;
        if section.size > MAX_REQUEST_BYTES {
            violations.push(RuleViolation::new(
                SoundnessRule::Size,
                last,
                0,
                "the request exceeds the API limit",
            ));
        }
        if section.last.is_none() {
            violations.push(RuleViolation::new(
                SoundnessRule::NotEmpty,
                last,
                0,
                "the conversation is empty",
            ));
        }
    }

    /// Returns the reply that the conversation ends in: its calls have results, and no reply follows them.
    pub(super) fn unfinished_reply(&self) -> Option<(usize, u64)> {
        let chain = self.chain();
        let mut results = false;
        for &position in chain.iter().rev() {
            let fact = &self.line_facts[position];
            match fact.role {
                RequestRole::NotSent => {}
                RequestRole::User if fact.results.is_empty() => return None,
                RequestRole::User => results = true,
                RequestRole::Assistant => {
                    return fact.reply_hash.filter(|_| results).map(|reply| (fact.line, reply));
                }
            }
        }
        None
    }
}

/// The state of the section between two compactions, up to the current line.
#[derive(Default)]
struct MessageSection {
    last: Option<RequestRole>,
    reply: Option<u64>,
    /// Calls of the last reply without a result so far, and how often each was made.
    open_calls: foldhash::HashMap<u64, usize>,
    calls: foldhash::HashSet<u64>,
    /// Whether the current user message contains text.
    has_text: bool,
    size: u64,
}
