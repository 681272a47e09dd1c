//! Replaces secrets with placeholders.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Write};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::known_secrets::KnownSecrets;
use crate::rules::{MAX_ROUNDS, Rules, SecretMatch, SecretMatches};
use crate::secret_list::SecretList;

/// Replaces secrets with placeholders. Equal secrets get the same placeholder.
///
/// A placeholder contains the kind and a number, `[secret:github-token:1]`, and is never found as a secret
/// itself.
pub struct Replacer<'r> {
    rules: &'r Rules,
    secrets: SecretTable,
    /// The classes and kinds of placeholders: `secret:github-token`.
    kinds: Vec<String>,
    /// The last number of each kind.
    numbers: FxHashMap<String, usize>,
}

/// A placeholder: the index of its kind, and its number.
///
/// A log may contain very many secrets, so that placeholders are not kept as texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceholderId {
    pub(crate) kind: u32,
    pub(crate) number: u32,
}

/// The placeholder of each secret.
#[derive(Default)]
struct SecretTable {
    /// The secrets, which a [`KnownSecrets`] may share.
    first: Arc<SecretList>,
    /// The secrets that were added since.
    later: SecretList,
    /// The index of the first secret with each hash.
    by_hash: FxHashMap<u32, u32>,
    /// The indexes of the others.
    colliding: FxHashMap<Box<str>, u32>,
}

impl SecretTable {
    fn len(&self) -> usize {
        self.first.len() + self.later.len()
    }

    fn at(&self, index: u32) -> (&str, PlaceholderId) {
        match index.checked_sub(self.first.len() as u32) {
            Some(later) => self.later.at(later),
            None => self.first.at(index),
        }
    }

    fn get(&self, secret: &str) -> Option<PlaceholderId> {
        let (known, placeholder) = self.at(*self.by_hash.get(&hash(secret))?);
        match known == secret {
            true => Some(placeholder),
            false => self.colliding.get(secret).map(|index| self.at(*index).1),
        }
    }

    /// Adds a secret that is not in the table.
    fn insert(&mut self, secret: &str, placeholder: PlaceholderId) {
        let index = self.len() as u32;
        match self.by_hash.entry(hash(secret)) {
            Entry::Vacant(place) => _ = place.insert(index),
            Entry::Occupied(_) => _ = self.colliding.insert(secret.into(), index),
        }
        match Arc::get_mut(&mut self.first).filter(|_| self.later.is_empty()) {
            Some(first) => first.push(secret, placeholder),
            None => self.later.push(secret, placeholder),
        }
    }
}

fn hash(secret: &str) -> u32 {
    (FxBuildHasher.hash_one(secret) >> 32) as u32
}

/// A text with its secrets replaced.
pub struct ReplacedText<'r> {
    /// The text.
    pub text: String,
    /// The findings in the original text, in order.
    pub found: SecretMatches<'r>,
}

impl<'r> Replacer<'r> {
    /// Creates a replacer without any placeholders.
    pub fn new(rules: &'r Rules) -> Self {
        Self { rules, secrets: SecretTable::default(), kinds: Vec::new(), numbers: FxHashMap::default() }
    }

    /// Reserves the placeholders that occur in a text, so that they are not used for other secrets.
    pub fn reserve(&mut self, text: &str) {
        for class in ["[secret:", "[personal:"] {
            for (at, _) in text.match_indices(class) {
                let Some((inner, _)) = text[at + class.len()..].split_once(']') else { continue };
                let Some((kind, number)) = inner.rsplit_once(':') else { continue };
                let Ok(number) = number.parse::<usize>() else { continue };
                if kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') && number < 1 << 30 {
                    let last = self.numbers.entry(kind.to_owned()).or_default();
                    *last = number.max(*last);
                }
            }
        }
    }

    /// Returns the placeholder of a secret, and creates it if necessary.
    pub fn placeholder(&mut self, found: &SecretMatch<'_>, secret: &str) -> String {
        let id = self.add(found, secret);
        self.text_of(id).to_string()
    }

    /// Returns the id of the placeholder of a secret, and creates it if necessary.
    pub fn add(&mut self, found: &SecretMatch<'_>, secret: &str) -> PlaceholderId {
        if let Some(id) = self.secrets.get(secret) {
            return id;
        }
        let number = match self.numbers.get_mut(found.kind) {
            Some(number) => number,
            None => self.numbers.entry(found.kind.to_owned()).or_default(),
        };
        *number += 1;
        let class = if found.is_personal { "personal" } else { "secret" };
        let is_kind = |kind: &String| kind.split_once(':') == Some((class, found.kind));
        let kind = self.kinds.iter().position(is_kind).unwrap_or(self.kinds.len());
        if kind == self.kinds.len() {
            self.kinds.push(format!("{class}:{}", found.kind));
        }
        let id = PlaceholderId { kind: kind as u32, number: *number as u32 };
        self.secrets.insert(secret, id);
        id
    }

    /// Returns the text of a placeholder.
    pub fn text_of(&self, id: PlaceholderId) -> impl fmt::Display {
        let kind = &self.kinds[id.kind as usize];
        fmt::from_fn(move |f| write!(f, "[{kind}:{}]", id.number))
    }

    /// Returns the number of different secrets.
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Returns whether there are no placeholders yet.
    pub fn is_empty(&self) -> bool {
        self.secrets.len() == 0
    }

    /// Returns the number of different secrets by kind, without personal data.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = vec![0; self.kinds.len()];
        for index in 0..self.secrets.len() as u32 {
            counts[self.secrets.at(index).1.kind as usize] += 1;
        }
        let kinds = self.kinds.iter().map(|kind| kind.split_once(':').map_or(&**kind, |(_, kind)| kind));
        let mut by_kind = BTreeMap::new();
        for (kind, count) in kinds.zip(counts) {
            *by_kind.entry(kind.to_owned()).or_default() += count;
        }
        by_kind
    }

    /// Returns a searcher for all secrets replaced so far, which finds them without their context; `None` if
    /// there are none.
    pub fn known(&self) -> Option<KnownSecrets> {
        let later = self.secrets.later.clone();
        KnownSecrets::new(Arc::clone(&self.secrets.first), later, self.kinds.clone())
    }

    /// Replaces every secret in a text.
    pub fn replace<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        self.replaced(text).map_or(Cow::Borrowed(text), |replaced| Cow::Owned(replaced.text))
    }

    /// Replaces every secret in a text and returns the findings; `None` if there are none.
    ///
    /// The result is searched again, because replacing one secret may reveal another.
    pub fn replaced(&mut self, text: &str) -> Option<ReplacedText<'r>> {
        let rules = self.rules;
        let found = rules.matches(text);
        if found.is_empty() {
            return None;
        }
        let mut clean = self.substitute(text, &found);
        // The remaining text may look like a secret only now. Each round removes at least one more.
        for _ in 0..MAX_ROUNDS {
            let more = rules.matches(&clean);
            if more.is_empty() {
                break;
            }
            clean = self.substitute(&clean, &more);
        }
        Some(ReplacedText { text: clean, found })
    }

    fn substitute(&mut self, text: &str, found: &SecretMatches<'_>) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for found in found.iter() {
            let Range { start, end } = found.range;
            clean.push_str(&text[done..start]);
            let placeholder = self.add(&found, &text[start..end]);
            let _ = write!(clean, "{}", self.text_of(placeholder));
            done = end;
        }
        clean.push_str(&text[done..]);
        clean
    }
}
