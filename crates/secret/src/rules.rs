//! The set of rules, and the search with all of them at once.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use foldhash::HashMap;

use crate::alphabet::Alphabet;
use crate::custom_rule::{AllowedValue, CustomRule, RuleError, parse_allowed, parse_rules};
use crate::form::TokenForm;
use crate::printed::SecretPrinter;
use crate::replacer::replace_ranges;
use crate::shape::{N_SHAPES, SHAPES, discord_token};
use crate::table::FORMS;
use crate::{assignment, bitcoin, column, command, deobfuscate, odd_word, personal, phrase, prose};

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
    /// Of findings that overlap, the one with the lowest rank is kept.
    rank: u8,
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

/// The kind of a secret, its description, and whether it is personal data.
type Label<'r> = (&'r str, &'r str, bool);

impl<'r> SecretMatch<'r> {
    fn new(rank: u8, range: Range<usize>, (kind, description, is_personal): Label<'r>) -> Self {
        Self { range, kind, description, is_personal, rank }
    }
}

const ASSIGNMENT: Label<'_> = ("assignment", "a secret in an assignment", false);
const SENTENCE: Label<'_> = ("assignment", "a secret in a sentence", false);
const COLUMN: Label<'_> = ("assignment", "a secret in a column of a table", false);
const PASSWORD: Label<'_> = ("password", "a password on a command line", false);
const SEED_PHRASE: Label<'_> = ("seed-phrase", "a wallet seed phrase", false);
const BITCOIN_KEY: Label<'_> = ("bitcoin-key", "a Bitcoin private key", false);
const DISCORD_TOKEN: Label<'_> = ("discord-token", "a Discord bot token", false);
const EMAIL: Label<'_> = ("email", "an e-mail address", true);
const USER: Label<'_> = ("user", "a user name in a home directory", true);
const PRINTED: Label<'_> = ("password", "a printed password", false);

/// The length of the shortest built-in finding: `a@b.co`.
const SHORTEST: usize = 6;

/// The length within which a placeholder ends.
pub(crate) const LONGEST_PLACEHOLDER: usize = 64;

/// The longest value that is searched together with its key.
const LONGEST_MEMBER: usize = 4 << 10;

/// The maximum number of times a text is searched again after replacements.
pub const MAX_ROUNDS: usize = 16;

/// The maximum depth of nested encodings.
pub(crate) const MAX_DEPTH: usize = 3;

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
    Form(&'static TokenForm),
    /// A shape, by its number in the table.
    Shape(usize),
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
        for form in FORMS {
            on(form.prefix, AnchorCheck::Form(form));
        }
        for (number, shape) in SHAPES.iter().enumerate() {
            for anchor in shape.anchors {
                on(anchor, AnchorCheck::Shape(number));
            }
        }
        for name in &*assignment::SECRET_WORDS {
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
        let mut found = Vec::new();
        self.collect(text, MAX_DEPTH, &mut |secret| found.push(secret));
        found.retain(|secret| self.is_accepted(text, secret));
        resolve_overlaps(&mut found);
        found
    }

    /// Finds everything in the value of a JSON member. The key may identify a value that is not recognized
    /// alone: a password.
    pub fn find_in_member(&self, key: &str, text: &str) -> Vec<SecretMatch<'_>> {
        let mut matches = self.find(text);
        if !matches.is_empty() || !(8..=LONGEST_MEMBER).contains(&text.len()) || !assignment::is_name(key) {
            return matches;
        }
        let head = format!("\"{key}\": \"");
        let inside = head.len()..head.len() + text.len();
        matches = self.find(&format!("{head}{text}\""));
        matches.retain(|found| found.range.start >= inside.start && found.range.end <= inside.end);
        for found in &mut matches {
            found.range = found.range.start - head.len()..found.range.end - head.len();
        }
        matches
    }

    /// Finds the secret that the output of a command consists of.
    pub fn find_printed(&self, printer: SecretPrinter, output: &str) -> Option<SecretMatch<'_>> {
        let found = SecretMatch::new(1, printer.secret_in(output)?, PRINTED);
        self.is_accepted(output, &found).then_some(found)
    }

    /// Returns whether the value of a JSON member with this key may be a secret that is not recognized alone.
    pub fn is_secret_name(key: &str) -> bool {
        assignment::is_name(key)
    }

    /// Finds everything in a text, plain and encoded, in no particular order.
    fn collect<'r>(&'r self, text: &str, depth: usize, on_found: &mut dyn FnMut(SecretMatch<'r>)) {
        // Most strings of a log are shorter than any built-in finding.
        if text.len() >= SHORTEST || !self.custom.is_empty() {
            self.scan(text, on_found);
        }
        if text.len() < SHORTEST || depth == 0 {
            return;
        }
        deobfuscate::views(text, |view| {
            self.scan(&view.text, &mut |inner| {
                on_found(SecretMatch { range: view.origin(&inner.range), ..inner });
            });
        });
        let mut keys = Vec::new();
        let on_run = |run: Range<usize>| {
            keys.extend(discord_token(text, &run).map(|range| SecretMatch::new(1, range, DISCORD_TOKEN)));
            let words = deobfuscate::words(text, run);
            let words = words.filter(|word| bitcoin::is_key(&text.as_bytes()[word.clone()]));
            keys.extend(words.map(|word| SecretMatch::new(1, word, BITCOIN_KEY)));
        };
        deobfuscate::encoded(text, on_run, |range, decoded| {
            let mut inner = Vec::new();
            self.collect(decoded, depth - 1, &mut |secret| inner.push(secret));
            // The whole run is replaced, because the rest of it could still be decoded.
            let first = inner.into_iter().filter(|found| !found.is_personal).min_by_key(|found| found.rank);
            first
                .into_iter()
                .for_each(|first| on_found(SecretMatch { range: range.clone(), rank: 0, ..first }));
        });
        keys.into_iter().for_each(on_found);
    }

    /// Finds everything in a text without decoding it.
    fn scan<'r>(&'r self, text: &str, on_found: &mut dyn FnMut(SecretMatch<'r>)) {
        // A finding may be long and contain very many anchors of its own shape, each of which would be
        // checked to its end.
        let mut ends = [0; N_SHAPES];
        for hit in self.automaton.find_overlapping_iter(text) {
            for check in &self.anchors[hit.pattern().as_usize()] {
                match *check {
                    AnchorCheck::Shape(number) if hit.end() <= ends[number] => {}
                    AnchorCheck::Shape(number) => SHAPES[number].find(text, hit.range(), &mut |range| {
                        ends[number] = range.end;
                        let shape = &SHAPES[number];
                        on_found(SecretMatch::new(1, range, (shape.kind, shape.description, false)));
                    }),
                    check => check_at(check, text, hit.range(), on_found),
                }
            }
        }
        phrase::find(text, |range| on_found(SecretMatch::new(1, range, SEED_PHRASE)));
        for own in &self.custom {
            for hit in own.pattern.captures_iter(text) {
                let secret = hit.get(1).or_else(|| hit.get(0)).filter(|secret| !secret.is_empty());
                if let Some(secret) = secret {
                    on_found(SecretMatch::new(0, secret.range(), (&own.kind, &own.description, false)));
                }
            }
        }
    }

    /// Replaces each secret with its kind, `[secret:github-token]`; borrowed if there is none.
    ///
    /// Personal data stays. The result is searched again until no secret is found.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        // The remaining text may look like a secret only now. Each round removes at least one more.
        for _ in 0..MAX_ROUNDS {
            let mut found = self.find(&clean);
            found.retain(|secret| !secret.is_personal);
            if found.is_empty() {
                break;
            }
            clean = Cow::Owned(replace_with_kinds(&clean, found));
        }
        clean
    }

    /// Replaces each token that has a known prefix with its kind, like [`Rules::mask`], but nothing that is
    /// recognized by its context.
    ///
    /// For markup and other text in which names such as `key` have another meaning. Long runs of base64, such
    /// as images, are left as they are: they may contain a prefix by chance.
    pub fn mask_tokens<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = Vec::new();
        for hit in self.automaton.find_overlapping_iter(text) {
            for check in &self.anchors[hit.pattern().as_usize()] {
                if matches!(check, AnchorCheck::Form(..)) {
                    check_at(*check, text, hit.range(), &mut |secret| found.push(secret));
                }
            }
        }
        found.retain(|secret| self.is_accepted(text, secret) && !is_in_data(text.as_bytes(), &secret.range));
        resolve_overlaps(&mut found);
        match found.is_empty() {
            true => Cow::Borrowed(text),
            false => Cow::Owned(replace_with_kinds(text, found)),
        }
    }

    /// Returns whether some texts may contain a secret that only another text identifies. Words of letters
    /// alone that look like words of a language are not passwords.
    pub fn may_be_known(&self, texts: &[&str]) -> bool {
        // A custom rule may identify anything.
        let has_custom = !self.custom.is_empty();
        texts.iter().any(|text| !text.is_empty() && (has_custom || odd_word::has_odd_word(text)))
    }

    /// Returns a number that differs for other rules of the same build.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.emails, self.paths).hash(&mut hasher);
        self.custom.iter().for_each(|rule| (&rule.kind, rule.pattern.as_str()).hash(&mut hasher));
        for allowed in &self.allowed {
            match allowed {
                AllowedValue::Text(text) => (0, text.as_str()).hash(&mut hasher),
                AllowedValue::Pattern(pattern) => (1, pattern.as_str()).hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// Returns whether there is any finding.
    pub fn has_findings(&self, text: &str) -> bool {
        !self.find(text).is_empty()
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
    fn is_accepted(&self, text: &str, found: &SecretMatch<'_>) -> bool {
        let secret = &text[found.range.clone()];
        !is_placeholder(secret)
            && !self.is_in_placeholder(text, &found.range)
            && !self.allowed.iter().any(|allowed| allowed.accepts(secret))
    }
}

/// Runs a check at a match of the automaton.
fn check_at<'r>(check: AnchorCheck, text: &str, at: Range<usize>, on_found: &mut dyn FnMut(SecretMatch<'r>)) {
    let mut add = |rank, range, label| on_found(SecretMatch::new(rank, range, label));
    let (rank, range, label) = match check {
        AnchorCheck::Form(form) => {
            // A generic key has lower priority than one of a specific issuer.
            let rank = if form.kind == "api-key" { 2 } else { 1 };
            let range = form.end(text.as_bytes(), at.start).map(|end| at.start..end);
            (rank, range, (form.kind, form.description, false))
        }
        AnchorCheck::Shape(_) => return,
        AnchorCheck::Command => return command::find(text, at, |range| add(2, range, PASSWORD)),
        AnchorCheck::Column => return column::find(text, at, |range| add(3, range, COLUMN)),
        AnchorCheck::Assignment => (3, assignment::find(text, at), ASSIGNMENT),
        AnchorCheck::Prose => (4, prose::find(text, at), SENTENCE),
        AnchorCheck::ProseBefore => (4, prose::find_before(text, at), SENTENCE),
        AnchorCheck::Phrase => (1, phrase::find_after_name(text, at), SEED_PHRASE),
        AnchorCheck::NumberedPhrase => (1, phrase::find_numbered(text, at), SEED_PHRASE),
        AnchorCheck::Email => (4, personal::email(text, at), EMAIL),
        AnchorCheck::User => (4, personal::user(text, at), USER),
    };
    if let Some(range) = range {
        add(rank, range, label);
    }
}

/// Resolves overlaps, preferring higher priority, then greater length, and sorts the findings.
fn resolve_overlaps(found: &mut Vec<SecretMatch<'_>>) {
    found.sort_by_key(|found| (found.rank, Reverse(found.range.len()), found.range.start));
    // The ends of the findings that are kept, by start offset.
    let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
    found.retain(|found| {
        let Range { start, end } = found.range;
        let before = kept.range(..=start).next_back().is_some_and(|(_, kept)| *kept > start);
        let behind = kept.range(start..end).next().is_some();
        if !before && !behind {
            kept.insert(start, end);
        }
        !before && !behind
    });
    found.sort_unstable_by_key(|found| found.range.start);
}

/// Replaces findings with their kinds: `[secret:github-token]`.
fn replace_with_kinds(text: &str, found: Vec<SecretMatch<'_>>) -> String {
    replace_ranges(text, found.into_iter().map(|secret| (secret.range, format!("[secret:{}]", secret.kind))))
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
