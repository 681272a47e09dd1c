//! The set of rules, and the search with all of them at once.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use foldhash::HashMap;

use crate::alphabet::Alphabet;
use crate::custom_rule::{AllowedValue, CustomRule, RuleError, parse_allowed, parse_rules};
use crate::form::TokenForm;
use crate::memory::free_now;
use crate::printed::SecretPrinter;
use crate::shape::{SHAPES, SecretShape, discord_token};
use crate::table::FORMS;
use crate::{assignment, bitcoin, column, command, deobfuscate, personal, phrase, prose};

/// A finding in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMatch<'r> {
    /// The byte range of the secret, without the name or URL around it.
    pub range: Range<usize>,
    /// The kind, as in a placeholder: `github-token`.
    pub kind: &'r str,
    /// The same as a readable phrase: `a GitHub token`.
    pub description: &'r str,
    /// Whether it is personal data rather than a secret.
    pub is_personal: bool,
}

/// The rules that define secrets.
///
/// The built-in table has about two hundred token prefixes and seventy other shapes. Custom rules and
/// exceptions can be added. Building takes a few milliseconds. Searching takes `&self` and can run on any
/// number of threads.
pub struct Rules {
    automaton: AhoCorasick,
    /// The checks to run at a match of the automaton, by pattern number.
    anchors: Vec<Vec<AnchorCheck>>,
    custom: Vec<CustomRule>,
    allowed: Vec<AllowedValue>,
    emails: bool,
    paths: bool,
}

/// The findings in a text, sorted and without overlaps. They take less memory than a [`SecretMatch`] each,
/// because a text may contain very many.
pub struct SecretMatches<'r> {
    rules: &'r Rules,
    found: Vec<FoundSecret>,
}

impl Drop for SecretMatches<'_> {
    fn drop(&mut self) {
        free_now(std::mem::take(&mut self.found));
    }
}

impl<'r> SecretMatches<'r> {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns whether a range overlaps one of them.
    pub fn overlaps(&self, range: &Range<usize>) -> bool {
        let next = self.found.partition_point(|found| found.range().end <= range.start);
        self.found.get(next).is_some_and(|found| found.start < range.end)
    }

    /// Returns the findings.
    pub fn iter(&self) -> impl Iterator<Item = SecretMatch<'r>> {
        self.found.iter().map(|found| self.rules.labelled(found))
    }

    /// Returns the findings, and frees their memory at the end.
    fn into_vec(self) -> Vec<SecretMatch<'r>> {
        self.found.iter().map(|found| self.rules.labelled(found)).collect()
    }
}

/// A finding in a text, without its names.
#[derive(Clone, Copy)]
struct FoundSecret {
    start: usize,
    /// Secrets are shorter than 4 GiB.
    length: u32,
    label: LabelNumber,
    /// Of findings that overlap, the one with the lowest rank is kept.
    rank: u8,
}

impl FoundSecret {
    fn new(rank: u8, range: Range<usize>, label: LabelNumber) -> Self {
        let length = u32::try_from(range.len()).unwrap_or(u32::MAX);
        Self { start: range.start, length, label, rank }
    }

    fn range(&self) -> Range<usize> {
        self.start..self.start + self.length as usize
    }
}

/// The kind and the end of the last findings, one for each remainder of the kind's number. A finding may be
/// long and contain very many anchors of its own kind, each of which would be checked to its end.
#[derive(Default)]
struct LastFound([(LabelNumber, usize); Self::LENGTH]);

impl LastFound {
    const LENGTH: usize = 16;

    fn add(&mut self, found: &FoundSecret) {
        self.0[usize::from(found.label) % Self::LENGTH] = (found.label, found.range().end);
    }

    /// Returns whether an anchor is inside the last finding of its kind.
    fn contains(&self, label: LabelNumber, anchor: &Range<usize>) -> bool {
        let (last, end) = self.0[usize::from(label) % Self::LENGTH];
        last == label && anchor.end <= end
    }
}

/// The number of a kind of secret: of [`OTHER_LABELS`], then of [`FORMS`], of [`SHAPES`], of the custom
/// rules.
type LabelNumber = u16;

/// The kinds of secrets that are not in a table: kind, description, and whether it is personal data.
static OTHER_LABELS: [(&str, &str, bool); 10] = [
    ("assignment", "a secret in an assignment", false),
    ("assignment", "a secret in a sentence", false),
    ("assignment", "a secret in a column of a table", false),
    ("password", "a password on a command line", false),
    ("seed-phrase", "a wallet seed phrase", false),
    ("bitcoin-key", "a Bitcoin private key", false),
    ("discord-token", "a Discord bot token", false),
    ("email", "an e-mail address", true),
    ("user", "a user name in a home directory", true),
    ("password", "a printed password", false),
];
const ASSIGNMENT: LabelNumber = 0;
const SENTENCE: LabelNumber = 1;
const COLUMN: LabelNumber = 2;
const PASSWORD: LabelNumber = 3;
const SEED_PHRASE: LabelNumber = 4;
const BITCOIN_KEY: LabelNumber = 5;
const DISCORD_TOKEN: LabelNumber = 6;
const EMAIL: LabelNumber = 7;
const USER: LabelNumber = 8;
const PRINTED: LabelNumber = 9;

/// The length of the shortest built-in finding: `a@b.co`.
const SHORTEST: usize = 6;

/// The length within which a placeholder ends.
pub(crate) const LONGEST_PLACEHOLDER: usize = 64;

/// The longest value that is searched together with its key.
const LONGEST_MEMBER: usize = 4 << 10;

/// The maximum number of times a text is searched again after replacements.
pub(crate) const MAX_ROUNDS: usize = 16;

/// The maximum depth of nested encodings.
const MAX_DEPTH: usize = 3;

/// Words that announce the seed phrase of a wallet.
const PHRASE_NAMES: &[&str] = &[
    "mnemonic",
    "seed phrase",
    "seed_phrase",
    "seedphrase",
    "recovery phrase",
    "secret phrase",
    "backup phrase",
];

/// The beginning of a numbered list, which may be a seed phrase.
const LIST_STARTS: &[&str] = &["1. ", "1) ", "1: "];

/// A check that runs at a match of the automaton.
#[derive(Clone, Copy)]
enum AnchorCheck {
    Form(&'static TokenForm, LabelNumber),
    Shape(&'static SecretShape, LabelNumber),
    Assignment,
    Command,
    Prose,
    ProseBefore,
    Column,
    Phrase,
    NumberedPhrase,
    Email,
    User,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// Creates the built-in rules for secrets, without personal data.
    pub fn new() -> Self {
        Self::build(false, false)
    }

    fn build(emails: bool, paths: bool) -> Self {
        let mut tries: HashMap<String, Vec<AnchorCheck>> = HashMap::default();
        let mut on = |anchor: &str, what: AnchorCheck| {
            tries.entry(anchor.to_ascii_lowercase()).or_default().push(what)
        };
        let mut labels = OTHER_LABELS.len() as LabelNumber..;
        for (form, label) in FORMS.iter().zip(&mut labels) {
            on(form.prefix, AnchorCheck::Form(form, label));
        }
        for (shape, label) in SHAPES.iter().zip(&mut labels) {
            for anchor in shape.anchors {
                on(anchor, AnchorCheck::Shape(shape, label));
            }
        }
        for name in assignment::SECRET_WORDS {
            on(name, AnchorCheck::Assignment);
        }
        for word in prose::WORDS {
            on(word, AnchorCheck::Prose);
        }
        for words in prose::WORDS_AFTER {
            on(words, AnchorCheck::ProseBefore);
        }
        for name in column::NAMES {
            on(name, AnchorCheck::Column);
        }
        for program in command::anchors() {
            on(program, AnchorCheck::Command);
        }
        for name in PHRASE_NAMES {
            on(name, AnchorCheck::Phrase);
        }
        for start in LIST_STARTS {
            on(start, AnchorCheck::NumberedPhrase);
        }
        if emails {
            on("@", AnchorCheck::Email);
        }
        if paths {
            for home in personal::HOMES {
                on(home, AnchorCheck::User);
            }
        }
        let mut tries: Vec<_> = tries.into_iter().collect();
        tries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(tries.iter().map(|(anchor, _)| anchor));
        #[expect(clippy::unwrap_used, reason = "a few hundred short anchors always make an automaton")]
        let automaton = automaton.unwrap();
        let anchors = tries.into_iter().map(|(_, tries)| tries).collect();
        Self { automaton, anchors, custom: Vec::new(), allowed: Vec::new(), emails, paths }
    }

    /// Adds e-mail addresses.
    #[must_use]
    pub fn with_emails(self) -> Self {
        Self { custom: self.custom, allowed: self.allowed, ..Self::build(true, self.paths) }
    }

    /// Adds user names in the paths of home directories.
    #[must_use]
    pub fn with_paths(self) -> Self {
        Self { custom: self.custom, allowed: self.allowed, ..Self::build(self.emails, true) }
    }

    /// Adds custom rules: one per line, `NAME PATTERN`; lines that begin with `#` are comments.
    ///
    /// If a pattern has a group, the first group is the secret.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid line.
    pub fn with_custom_rules(mut self, text: &str) -> Result<Self, RuleError> {
        self.custom.extend(parse_rules(text)?);
        Ok(self)
    }

    /// Adds exceptions: one per line, either the exact text or `/a pattern/` that matches in it.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid line.
    pub fn with_allowed(mut self, text: &str) -> Result<Self, RuleError> {
        self.allowed.extend(parse_allowed(text)?);
        Ok(self)
    }

    /// Returns the names of all kinds of secrets, sorted.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> =
            FORMS.iter().map(|form| form.kind).chain(SHAPES.iter().map(|shape| shape.kind)).collect();
        kinds.extend(["assignment", "seed-phrase", "bitcoin-key"]);
        kinds.extend(self.custom.iter().map(|own| own.kind.as_str()));
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Finds everything in a text, sorted and without overlaps.
    ///
    /// Decodes terminal colours and invisible characters inside a secret, concatenated string literals,
    /// percent-encoding, escapes of JSON, C and HTML within the text, and base64 and hex. If the text itself
    /// is a JSON string, the caller must decode it first.
    pub fn find(&self, text: &str) -> Vec<SecretMatch<'_>> {
        self.matches(text).into_vec()
    }

    /// Finds everything in a text, as [`Rules::find`] does.
    pub fn matches(&self, text: &str) -> SecretMatches<'_> {
        let mut found = Vec::new();
        // After a replacement, very many findings may be placeholders, which are not kept.
        self.collect(text, MAX_DEPTH, &mut |secret| {
            if self.is_accepted(text, &secret) {
                found.push(secret);
            }
        });
        self.resolve_overlaps(found)
    }

    /// Finds everything in the value of a JSON member. The key may identify a value that is not recognized
    /// alone: a password.
    pub fn find_in_member(&self, key: &str, text: &str) -> Vec<SecretMatch<'_>> {
        self.matches_in_member(key, text).into_vec()
    }

    /// Finds everything in the value of a JSON member, as [`Rules::find_in_member`] does.
    pub fn matches_in_member(&self, key: &str, text: &str) -> SecretMatches<'_> {
        let mut matches = self.matches(text);
        if !matches.is_empty() || !(8..=LONGEST_MEMBER).contains(&text.len()) || !assignment::is_name(key) {
            return matches;
        }
        let head = format!("\"{key}\": \"");
        let inside = head.len()..head.len() + text.len();
        matches = self.matches(&format!("{head}{text}\""));
        matches.found.retain(|found| found.start >= inside.start && found.range().end <= inside.end);
        matches.found.iter_mut().for_each(|found| found.start -= head.len());
        matches
    }

    /// Finds the secret that the output of a command consists of.
    pub fn find_printed(&self, printer: SecretPrinter, output: &str) -> Option<SecretMatch<'_>> {
        let found = FoundSecret::new(1, printer.secret_in(output)?, PRINTED);
        self.is_accepted(output, &found).then(|| self.labelled(&found))
    }

    /// Returns a finding with its names.
    fn labelled(&self, found: &FoundSecret) -> SecretMatch<'_> {
        let mut number = usize::from(found.label);
        let mut take = |count: usize| {
            let is_here = number < count;
            let at = number;
            number = number.wrapping_sub(count);
            is_here.then_some(at)
        };
        let (kind, description, is_personal) = if let Some(other) = take(OTHER_LABELS.len()) {
            OTHER_LABELS[other]
        } else if let Some(form) = take(FORMS.len()) {
            (FORMS[form].kind, FORMS[form].description, false)
        } else if let Some(shape) = take(SHAPES.len()) {
            (SHAPES[shape].kind, SHAPES[shape].description, false)
        } else {
            let own = &self.custom[number];
            (&*own.kind, &*own.description, false)
        };
        SecretMatch { range: found.range(), kind, description, is_personal }
    }

    /// Returns whether the value of a JSON member with this key may be a secret that is not recognized alone.
    pub fn is_secret_name(key: &str) -> bool {
        assignment::is_name(key)
    }

    /// Finds everything in a text, plain and encoded, in no particular order.
    fn collect(&self, text: &str, depth: usize, on_found: &mut dyn FnMut(FoundSecret)) {
        // Most strings of a log are shorter than any built-in finding.
        if text.len() >= SHORTEST || !self.custom.is_empty() {
            self.scan(text, on_found);
        }
        if text.len() < SHORTEST || depth == 0 {
            return;
        }
        deobfuscate::views(text, |view| {
            self.scan(&view.text, &mut |inner| {
                on_found(FoundSecret::new(inner.rank, view.origin(&inner.range()), inner.label));
            });
        });
        let mut keys = Vec::new();
        let on_run = |run: Range<usize>| {
            keys.extend(discord_token(text, &run).map(|range| FoundSecret::new(1, range, DISCORD_TOKEN)));
            if run.len() < bitcoin::MIN_LENGTH {
                return;
            }
            let words = deobfuscate::words(text, run);
            let words = words.filter(|word| bitcoin::is_key(&text.as_bytes()[word.clone()]));
            keys.extend(words.map(|word| FoundSecret::new(1, word, BITCOIN_KEY)));
        };
        deobfuscate::encoded(text, on_run, |range, decoded| {
            let mut inner = Vec::new();
            self.collect(decoded, depth - 1, &mut |secret| inner.push(secret));
            // The whole run is replaced, because the rest of it could still be decoded.
            let is_personal = |found: &FoundSecret| self.labelled(found).is_personal;
            let first = inner.into_iter().filter(|found| !is_personal(found)).min_by_key(|found| found.rank);
            first.into_iter().for_each(|first| on_found(FoundSecret::new(0, range.clone(), first.label)));
        });
        keys.into_iter().for_each(on_found);
    }

    /// Finds everything in a text without decoding it.
    fn scan(&self, text: &str, on_found: &mut dyn FnMut(FoundSecret)) {
        let mut last = LastFound::default();
        for hit in self.automaton.find_overlapping_iter(text) {
            for what in &self.anchors[hit.pattern().as_usize()] {
                if let AnchorCheck::Shape(_, label) = what
                    && last.contains(*label, &hit.range())
                {
                    continue;
                }
                self.check_at(*what, text, hit.range(), &mut |found| {
                    last.add(&found);
                    on_found(found);
                });
            }
        }
        phrase::find(text, |range| on_found(FoundSecret::new(1, range, SEED_PHRASE)));
        let labels = OTHER_LABELS.len() + FORMS.len() + SHAPES.len()..;
        for (own, label) in self.custom.iter().zip(labels) {
            for hit in own.pattern.captures_iter(text) {
                let secret = hit.get(1).or_else(|| hit.get(0)).filter(|secret| !secret.is_empty());
                if let Some(secret) = secret {
                    on_found(FoundSecret::new(0, secret.range(), label as LabelNumber));
                }
            }
        }
    }

    /// Replaces each secret with its kind, `[secret:github-token]`; borrowed if there is none.
    ///
    /// Personal data stays. The result is searched again until no secret is found.
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        // The remaining text may look like a secret only now. Each round removes at least one more.
        for _ in 0..MAX_ROUNDS {
            let found = self.matches(&clean);
            let mut next = String::new();
            let mut from = 0;
            for secret in found.iter().filter(|secret| !secret.is_personal) {
                next.push_str(&clean[from..secret.range.start]);
                next.push_str("[secret:");
                next.push_str(secret.kind);
                next.push(']');
                from = secret.range.end;
            }
            if from == 0 {
                break;
            }
            next.push_str(&clean[from..]);
            clean = Cow::Owned(next);
        }
        clean
    }

    /// Replaces each token that has a known prefix with its kind, like [`Rules::clean`], but nothing that is
    /// recognized by its context.
    ///
    /// For markup and other text in which names such as `key` have another meaning. Long runs of base64, such
    /// as images, are left as they are: they may contain a prefix by chance.
    pub fn clean_tokens<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = Vec::new();
        for hit in self.automaton.find_overlapping_iter(text) {
            for what in &self.anchors[hit.pattern().as_usize()] {
                if matches!(what, AnchorCheck::Form(..)) {
                    self.check_at(*what, text, hit.range(), &mut |secret| found.push(secret));
                }
            }
        }
        found
            .retain(|secret| self.is_accepted(text, secret) && !is_in_data(text.as_bytes(), &secret.range()));
        let mut clean = String::new();
        let mut done = 0;
        for secret in self.resolve_overlaps(found).iter() {
            clean.push_str(&text[done..secret.range.start]);
            clean.push_str(&format!("[secret:{}]", secret.kind));
            done = secret.range.end;
        }
        match done {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(clean + &text[done..]),
        }
    }

    pub(crate) fn has_custom_rules(&self) -> bool {
        !self.custom.is_empty()
    }

    /// Returns whether there is any finding.
    pub fn has_findings(&self, text: &str) -> bool {
        !self.matches(text).is_empty()
    }

    fn check_at(
        &self,
        what: AnchorCheck,
        text: &str,
        at: Range<usize>,
        on_found: &mut dyn FnMut(FoundSecret),
    ) {
        let mut add =
            |rank, range: Range<usize>, label: LabelNumber| on_found(FoundSecret::new(rank, range, label));
        match what {
            AnchorCheck::Form(form, label) => {
                let Some(end) = form.end(text.as_bytes(), at.start) else { return };
                // A generic key has lower priority than one of a specific issuer.
                add(if form.kind == "api-key" { 2 } else { 1 }, at.start..end, label);
            }
            AnchorCheck::Shape(shape, label) => shape.find(text, at, &mut |range| add(1, range, label)),
            AnchorCheck::Assignment => {
                if let Some(range) = assignment::find(text, at) {
                    add(3, range, ASSIGNMENT);
                }
            }
            AnchorCheck::Command => command::find(text, at, |range| add(2, range, PASSWORD)),
            AnchorCheck::Prose => {
                if let Some(range) = prose::find(text, at) {
                    add(4, range, SENTENCE);
                }
            }
            AnchorCheck::ProseBefore => {
                if let Some(range) = prose::find_before(text, at) {
                    add(4, range, SENTENCE);
                }
            }
            AnchorCheck::Column => column::find(text, at, |range| add(3, range, COLUMN)),
            AnchorCheck::Phrase => {
                phrase::find_after_name(text, at).into_iter().for_each(|range| add(1, range, SEED_PHRASE));
            }
            AnchorCheck::NumberedPhrase => {
                phrase::find_numbered(text, at).into_iter().for_each(|range| add(1, range, SEED_PHRASE));
            }
            AnchorCheck::Email => {
                if let Some(range) = personal::email(text, at) {
                    add(4, range, EMAIL);
                }
            }
            AnchorCheck::User => {
                if let Some(range) = personal::user(text, at) {
                    add(4, range, USER);
                }
            }
        }
    }

    /// Returns whether a range is inside a placeholder of a [`crate::Replacer`]: `[secret:assignment:10000]`
    /// looks like a value after a name.
    fn is_in_placeholder(&self, text: &str, range: &Range<usize>) -> bool {
        let Some(inside) = ["[secret:", "[personal:"].iter().find_map(|open| {
            let window = text.floor_char_boundary(range.start.saturating_sub(LONGEST_PLACEHOLDER));
            let start = text[window..range.start].rfind(open)? + window + open.len();
            let rest = &text[start..text.floor_char_boundary(start + LONGEST_PLACEHOLDER)];
            let (inside, _) = rest.split_once(']')?;
            (start + inside.len() >= range.end).then_some(inside)
        }) else {
            return false;
        };
        let (kind, number) = inside.split_once(':').unwrap_or((inside, ""));
        let is_kind = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        number.len() <= 9
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && (is_kind || self.kinds().contains(&kind))
    }

    /// Returns whether a finding is neither a placeholder nor an exception.
    fn is_accepted(&self, text: &str, found: &FoundSecret) -> bool {
        let secret = &text[found.range()];
        !is_placeholder(secret)
            && !self.is_in_placeholder(text, &found.range())
            && !self.allowed.iter().any(|allowed| allowed.accepts(secret))
    }

    /// Resolves overlaps, preferring higher priority, then greater length.
    fn resolve_overlaps(&self, mut found: Vec<FoundSecret>) -> SecretMatches<'_> {
        let has_overlap = |found: &[FoundSecret]| {
            found.windows(2).any(|pair| pair[0].range().end > pair[1].start || pair[0].start > pair[1].start)
        };
        // The findings of most texts are in order, and need no memory besides.
        if has_overlap(&found) {
            found.sort_by_key(|found| (found.rank, Reverse(found.length), found.start));
            // The ends of the findings that are kept, by start offset.
            let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
            found.retain(|found| {
                let Range { start, end } = found.range();
                let before = kept.range(..=start).next_back().is_some_and(|(_, kept)| *kept > start);
                let behind = kept.range(start..end).next().is_some();
                if !before && !behind {
                    kept.insert(start, end);
                }
                !before && !behind
            });
            found.sort_unstable_by_key(|found| found.start);
        }
        SecretMatches { rules: self, found }
    }
}

/// Returns whether base64 continues far before or after a range.
fn is_in_data(text: &[u8], range: &Range<usize>) -> bool {
    const FAR: usize = 200;
    let before = &text[range.start.saturating_sub(FAR)..range.start];
    let after = &text[range.end..text.len().min(range.end + FAR)];
    let is_data = |side: &[u8]| side.len() == FAR && side.iter().all(|byte| Alphabet::Base64.has(*byte));
    is_data(before) || is_data(after)
}

/// Returns whether a text contains a placeholder of a [`crate::Replacer`].
pub(crate) fn is_placeholder(secret: &str) -> bool {
    secret.contains("[secret:") || secret.contains("[personal:")
}
