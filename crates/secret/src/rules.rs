//! The table of rules, and the search by all of them at once.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use rustc_hash::FxHashMap;

use crate::form::Form;
use crate::own::{Allowed, Own, RuleError, parse_allowed, parse_rules};
use crate::shape::{SHAPES, Shape};
use crate::table::FORMS;
use crate::{assignment, personal};

/// Something that was found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'r> {
    /// Where it stands: the secret alone, without the name or the address around it.
    pub range: Range<usize>,
    /// What kind it is, as in a placeholder: `github-token`.
    pub kind: &'r str,
    /// The same for people: `a GitHub token`.
    pub what: &'r str,
    /// Whether it is personal rather than secret.
    pub is_personal: bool,
}

/// What counts as a secret.
///
/// The table that comes with it knows some two hundred beginnings of tokens and some thirty shapes. Rules of one's
/// own come to it, and what is no secret can be let through. Making it costs a few milliseconds; finding borrows it, from as
/// many threads as there are.
pub struct Rules {
    automaton: AhoCorasick,
    /// What to try where the automaton stops, by the number of its pattern.
    anchors: Vec<Vec<Try>>,
    own: Vec<Own>,
    allowed: Vec<Allowed>,
    emails: bool,
    paths: bool,
}

/// Nothing shorter is found by the table: `a@b.co`.
const SHORTEST: usize = 6;

/// What is tried at an anchor.
#[derive(Clone, Copy)]
enum Try {
    Form(&'static Form),
    Shape(&'static Shape),
    Assignment,
    Email,
    User,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// The table of secrets, without personal data.
    pub fn new() -> Self {
        Self::build(false, false)
    }

    fn build(emails: bool, paths: bool) -> Self {
        let mut tries: FxHashMap<String, Vec<Try>> = FxHashMap::default();
        let mut on =
            |anchor: &str, what: Try| tries.entry(anchor.to_ascii_lowercase()).or_default().push(what);
        for form in FORMS {
            on(form.start, Try::Form(form));
        }
        for shape in &SHAPES {
            for anchor in shape.anchors {
                on(anchor, Try::Shape(shape));
            }
        }
        for name in assignment::NAMES {
            on(name, Try::Assignment);
        }
        if emails {
            on("@", Try::Email);
        }
        if paths {
            for home in personal::HOMES {
                on(home, Try::User);
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
        Self { automaton, anchors, own: Vec::new(), allowed: Vec::new(), emails, paths }
    }

    /// The same with addresses of mail.
    #[must_use]
    pub fn with_emails(self) -> Self {
        Self { own: self.own, allowed: self.allowed, ..Self::build(true, self.paths) }
    }

    /// The same with the names of people in the paths of their homes.
    #[must_use]
    pub fn with_paths(self) -> Self {
        Self { own: self.own, allowed: self.allowed, ..Self::build(self.emails, true) }
    }

    /// The same with rules of one's own: a line a rule, `NAME PATTERN`; lines that begin with `#` say nothing.
    ///
    /// If a pattern has a group, the first group is the secret.
    ///
    /// # Errors
    ///
    /// The first line that is no rule.
    pub fn with_own(mut self, text: &str) -> Result<Self, RuleError> {
        self.own.extend(parse_rules(text)?);
        Ok(self)
    }

    /// The same but for what is let through: a line an exception, the text itself or `/a pattern/` that occurs in it.
    ///
    /// # Errors
    ///
    /// The first line that is no exception.
    pub fn allowing(mut self, text: &str) -> Result<Self, RuleError> {
        self.allowed.extend(parse_allowed(text)?);
        Ok(self)
    }

    /// The kinds that the table knows, in order of their names.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> =
            FORMS.iter().map(|form| form.kind).chain(SHAPES.iter().map(|shape| shape.kind)).collect();
        kinds.push("assignment");
        kinds.extend(self.own.iter().map(|own| own.kind.as_str()));
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Everything in a text, in order, none of it overlapping.
    ///
    /// The text is decoded: what JSON, a form or an address escapes is not undone here.
    pub fn find(&self, text: &str) -> Vec<Found<'_>> {
        let mut found: Vec<(u8, Found<'_>)> = Vec::new();
        // Most strings of a log are shorter than anything in the table.
        let hits = (text.len() >= SHORTEST).then(|| self.automaton.find_overlapping_iter(text));
        for hit in hits.into_iter().flatten() {
            for what in &self.anchors[hit.pattern().as_usize()] {
                found.extend(self.try_at(*what, text, hit.range()));
            }
        }
        for own in &self.own {
            for hit in own.pattern.captures_iter(text) {
                let Some(secret) = hit.get(1).or_else(|| hit.get(0)).filter(|secret| !secret.is_empty())
                else {
                    continue;
                };
                found.push((
                    0,
                    Found { range: secret.range(), kind: &own.kind, what: &own.what, is_personal: false },
                ));
            }
        }
        if found.is_empty() {
            return Vec::new();
        }
        self.settle(text, found)
    }

    /// Whether there is anything at all.
    pub fn finds(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }

    fn try_at(&self, what: Try, text: &str, at: Range<usize>) -> Option<(u8, Found<'_>)> {
        let made =
            |rank, range, kind, what, is_personal| Some((rank, Found { range, kind, what, is_personal }));
        match what {
            Try::Form(form) => {
                let end = form.end(text.as_bytes(), at.start)?;
                // One that may be anybody's gives way to one that says whose it is.
                made(if form.kind == "api-key" { 2 } else { 1 }, at.start..end, form.kind, form.what, false)
            }
            Try::Shape(shape) => made(1, shape.find(text, at)?, shape.kind, shape.what, false),
            Try::Assignment => {
                made(3, assignment::find(text, at)?, "assignment", "a secret that is given a name", false)
            }
            Try::Email => made(4, personal::email(text, at)?, "email", "an address of mail", true),
            Try::User => made(4, personal::user(text, at)?, "user", "the name of a person's home", true),
        }
    }

    /// Of what overlaps the surer is kept, then the longer; what is let through goes, and so do placeholders.
    fn settle<'r>(&self, text: &str, mut found: Vec<(u8, Found<'r>)>) -> Vec<Found<'r>> {
        found.retain(|(_, found)| {
            let secret = &text[found.range.clone()];
            !is_placeholder(secret) && !self.allowed.iter().any(|allowed| allowed.takes(secret))
        });
        found.sort_by_key(|(rank, found)| (*rank, std::cmp::Reverse(found.range.len()), found.range.start));
        let mut kept: Vec<Found<'r>> = Vec::new();
        for (_, found) in found {
            if kept
                .iter()
                .all(|kept| kept.range.end <= found.range.start || found.range.end <= kept.range.start)
            {
                kept.push(found);
            }
        }
        kept.sort_by_key(|found| found.range.start);
        kept
    }
}

/// Whether a text holds what a [`crate::Replacer`] leaves.
pub(crate) fn is_placeholder(secret: &str) -> bool {
    secret.contains("[secret:") || secret.contains("[personal:")
}
