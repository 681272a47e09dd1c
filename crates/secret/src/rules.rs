//! The set of rules, and the search with all of them at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use rustc_hash::FxHashMap;

use crate::custom_rule::{AllowedValue, CustomRule, RuleError, parse_allowed, parse_rules};
use crate::form::TokenForm;
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
/// The built-in table has about two hundred token prefixes and sixty other shapes. Custom rules and
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

/// The length of the shortest built-in finding: `a@b.co`.
const SHORTEST: usize = 6;

/// The length within which a placeholder ends.
const LONGEST_PLACEHOLDER: usize = 64;

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
    Form(&'static TokenForm),
    Shape(&'static SecretShape),
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
        let mut tries: FxHashMap<String, Vec<AnchorCheck>> = FxHashMap::default();
        let mut on = |anchor: &str, what: AnchorCheck| {
            tries.entry(anchor.to_ascii_lowercase()).or_default().push(what)
        };
        for form in FORMS {
            on(form.prefix, AnchorCheck::Form(form));
        }
        for shape in &SHAPES {
            for anchor in shape.anchors {
                on(anchor, AnchorCheck::Shape(shape));
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
        let mut found: Vec<(u8, SecretMatch<'_>)> = Vec::new();
        self.collect(text, MAX_DEPTH, &mut found);
        if found.is_empty() {
            return Vec::new();
        }
        self.resolve_overlaps(text, found)
    }

    /// Finds everything in the value of a JSON member. The key may identify a value that is not recognized
    /// alone: a password.
    pub fn find_in_member(&self, key: &str, text: &str) -> Vec<SecretMatch<'_>> {
        let found = self.find(text);
        if !found.is_empty() || !(8..=LONGEST_MEMBER).contains(&text.len()) || !assignment::is_name(key) {
            return found;
        }
        let head = format!("\"{key}\": \"");
        let found = self.find(&format!("{head}{text}\"")).into_iter();
        let inside = found
            .filter(|found| found.range.start >= head.len() && found.range.end <= head.len() + text.len());
        inside
            .map(|found| SecretMatch {
                range: found.range.start - head.len()..found.range.end - head.len(),
                ..found
            })
            .collect()
    }

    /// Returns whether the value of a JSON member with this key may be a secret that is not recognized alone.
    pub fn is_secret_name(key: &str) -> bool {
        assignment::is_name(key)
    }

    /// Finds everything in a text, plain and encoded, in no particular order.
    fn collect<'r>(&'r self, text: &str, depth: usize, found: &mut Vec<(u8, SecretMatch<'r>)>) {
        // Most strings of a log are shorter than any built-in finding.
        if text.len() >= SHORTEST || !self.custom.is_empty() {
            self.scan(text, found);
        }
        if text.len() < SHORTEST || depth == 0 {
            return;
        }
        deobfuscate::views(text, |view| {
            let mut inner = Vec::new();
            self.scan(&view.text, &mut inner);
            found.extend(inner.into_iter().map(|(rank, inner)| {
                let range = view.origin(&inner.range);
                (rank, SecretMatch { range, ..inner })
            }));
        });
        let mut keys = Vec::new();
        let on_run = |run: Range<usize>| {
            keys.extend(discord_token(text, &run).map(|range| {
                let (kind, description) = ("discord-token", "a Discord bot token");
                (1, SecretMatch { range, kind, description, is_personal: false })
            }));
            if run.len() < bitcoin::MIN_LENGTH {
                return;
            }
            let words = deobfuscate::words(text, run);
            keys.extend(
                words.filter(|word| bitcoin::is_key(&text.as_bytes()[word.clone()])).map(bitcoin_key),
            );
        };
        deobfuscate::encoded(text, on_run, |range, decoded| {
            let mut inner = Vec::new();
            self.collect(decoded, depth - 1, &mut inner);
            // The whole run is replaced, because the rest of it could still be decoded.
            let first =
                inner.into_iter().filter(|(_, found)| !found.is_personal).min_by_key(|(rank, _)| *rank);
            found.extend(first.map(|(_, first)| (0, SecretMatch { range, ..first })));
        });
        found.append(&mut keys);
    }

    /// Finds everything in a text without decoding it.
    fn scan<'r>(&'r self, text: &str, found: &mut Vec<(u8, SecretMatch<'r>)>) {
        for hit in self.automaton.find_overlapping_iter(text) {
            for what in &self.anchors[hit.pattern().as_usize()] {
                self.check_at(*what, text, hit.range(), found);
            }
        }
        phrase::find(text, |range| found.push(seed_phrase(range)));
        for own in &self.custom {
            for hit in own.pattern.captures_iter(text) {
                let Some(secret) = hit.get(1).or_else(|| hit.get(0)).filter(|secret| !secret.is_empty())
                else {
                    continue;
                };
                found.push((
                    0,
                    SecretMatch {
                        range: secret.range(),
                        kind: &own.kind,
                        description: &own.description,
                        is_personal: false,
                    },
                ));
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
            let found = self.find(&clean);
            let mut next = String::new();
            let mut from = 0;
            for secret in found.into_iter().filter(|secret| !secret.is_personal) {
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
    /// For markup and other text in which names such as `key` have another meaning.
    pub fn clean_tokens<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = Vec::new();
        for hit in self.automaton.find_overlapping_iter(text) {
            for what in &self.anchors[hit.pattern().as_usize()] {
                if matches!(what, AnchorCheck::Form(_)) {
                    self.check_at(*what, text, hit.range(), &mut found);
                }
            }
        }
        let mut clean = String::new();
        let mut done = 0;
        for secret in self.resolve_overlaps(text, found) {
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
        !self.find(text).is_empty()
    }

    fn check_at<'r>(
        &'r self,
        what: AnchorCheck,
        text: &str,
        at: Range<usize>,
        all: &mut Vec<(u8, SecretMatch<'r>)>,
    ) {
        let mut add = |rank, range: Range<usize>, kind, what, is_personal| {
            all.push((rank, SecretMatch { range, kind, description: what, is_personal }));
        };
        match what {
            AnchorCheck::Form(form) => {
                let Some(end) = form.end(text.as_bytes(), at.start) else { return };
                // A generic key has lower priority than one of a specific issuer.
                add(
                    if form.kind == "api-key" { 2 } else { 1 },
                    at.start..end,
                    form.kind,
                    form.description,
                    false,
                );
            }
            AnchorCheck::Shape(shape) => {
                shape.find(text, at, &mut |range| add(1, range, shape.kind, shape.description, false))
            }
            AnchorCheck::Assignment => {
                if let Some(range) = assignment::find(text, at) {
                    add(3, range, "assignment", "a secret in an assignment", false);
                }
            }
            AnchorCheck::Command => command::find(text, at, |range| {
                add(2, range, "password", "a password on a command line", false);
            }),
            AnchorCheck::Prose => {
                if let Some(range) = prose::find(text, at) {
                    add(4, range, "assignment", "a secret in a sentence", false);
                }
            }
            AnchorCheck::ProseBefore => {
                if let Some(range) = prose::find_before(text, at) {
                    add(4, range, "assignment", "a secret in a sentence", false);
                }
            }
            AnchorCheck::Column => column::find(text, at, |range| {
                add(3, range, "assignment", "a secret in a column of a table", false);
            }),
            AnchorCheck::Phrase => all.extend(phrase::find_after_name(text, at).map(seed_phrase)),
            AnchorCheck::NumberedPhrase => all.extend(phrase::find_numbered(text, at).map(seed_phrase)),
            AnchorCheck::Email => {
                if let Some(range) = personal::email(text, at) {
                    add(4, range, "email", "an e-mail address", true);
                }
            }
            AnchorCheck::User => {
                if let Some(range) = personal::user(text, at) {
                    add(4, range, "user", "a user name in a home directory", true);
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

    /// Resolves overlaps, preferring higher priority, then greater length. Drops exceptions and placeholders.
    fn resolve_overlaps<'r>(
        &self,
        text: &str,
        mut found: Vec<(u8, SecretMatch<'r>)>,
    ) -> Vec<SecretMatch<'r>> {
        found.retain(|(_, found)| {
            let secret = &text[found.range.clone()];
            !is_placeholder(secret)
                && !self.is_in_placeholder(text, &found.range)
                && !self.allowed.iter().any(|allowed| allowed.accepts(secret))
        });
        found.sort_by_key(|(rank, found)| (*rank, std::cmp::Reverse(found.range.len()), found.range.start));
        // By start offset; without overlaps.
        let mut kept: BTreeMap<usize, SecretMatch<'r>> = BTreeMap::new();
        for (_, found) in found {
            let Range { start, end } = found.range;
            let before = kept.range(..=start).next_back().is_some_and(|(_, kept)| kept.range.end > start);
            let behind = kept.range(start..end).next().is_some();
            if !before && !behind {
                kept.insert(start, found);
            }
        }
        kept.into_values().collect()
    }
}

fn seed_phrase<'r>(range: Range<usize>) -> (u8, SecretMatch<'r>) {
    (1, SecretMatch { range, kind: "seed-phrase", description: "a wallet seed phrase", is_personal: false })
}

fn bitcoin_key<'r>(range: Range<usize>) -> (u8, SecretMatch<'r>) {
    let (kind, description) = ("bitcoin-key", "a Bitcoin private key");
    (1, SecretMatch { range, kind, description, is_personal: false })
}

/// Returns whether a text contains a placeholder of a [`crate::Replacer`].
pub(crate) fn is_placeholder(secret: &str) -> bool {
    secret.contains("[secret:") || secret.contains("[personal:")
}
