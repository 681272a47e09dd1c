//! Replaces secrets with placeholders.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use foldhash::HashMap;

use crate::known_secrets::KnownSecrets;
use crate::rules::{LONGEST_PLACEHOLDER, MAX_ROUNDS, Rules, SecretMatch, SecretMatches};
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
    numbers: HashMap<String, usize>,
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
///
/// Besides the secrets, it takes 4 to 8 bytes for each of them: a log may contain very many.
#[derive(Default)]
struct SecretTable {
    /// The secrets, which a [`KnownSecrets`] may share.
    first: Arc<SecretList>,
    /// The secrets that were added since.
    later: SecretList,
    /// The index of each secret, at the slot of its hash or at the next one that was free, or [`FREE`].
    slots: Vec<u32>,
    /// Has a random key, so that no log contains secrets whose hashes are alike.
    hasher: RandomState,
}

const FREE: u32 = u32::MAX;
/// The minimum number of slots.
const MIN_SLOTS: usize = 64;

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
        (!self.slots.is_empty())
            .then(|| self.slots[self.slot(secret)])
            .filter(|index| *index != FREE)
            .map(|index| self.at(index).1)
    }

    /// Returns the slot of a secret, or the free one where it belongs.
    fn slot(&self, secret: &str) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(secret) as usize & last;
        while self.slots[slot] != FREE && self.at(self.slots[slot]).0 != secret {
            slot = (slot + 1) & last;
        }
        slot
    }

    /// Adds a secret that is not in the table.
    fn insert(&mut self, secret: &str, placeholder: PlaceholderId) {
        // At most three quarters of the slots are used.
        if (self.len() + 1) * 4 > self.slots.len() * 3 {
            self.slots = vec![FREE; (self.slots.len() * 2).max(MIN_SLOTS)];
            for index in 0..self.len() as u32 {
                let slot = self.slot(self.at(index).0);
                self.slots[slot] = index;
            }
        }
        let (index, slot) = (self.len() as u32, self.slot(secret));
        let is_added = match Arc::get_mut(&mut self.first).filter(|_| self.later.is_empty()) {
            Some(first) => first.push(secret, placeholder),
            None => self.later.push(secret, placeholder),
        };
        if is_added {
            self.slots[slot] = index;
        }
    }
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
        Self { rules, secrets: SecretTable::default(), kinds: Vec::new(), numbers: HashMap::default() }
    }

    /// Reserves the placeholders that occur in a text, so that they are not used for other secrets.
    pub fn reserve(&mut self, text: &str) {
        for class in ["[secret:", "[personal:"] {
            for (at, _) in text.match_indices(class) {
                let start = at + class.len();
                let rest = &text[start..text.floor_char_boundary(start + LONGEST_PLACEHOLDER)];
                let Some((inner, _)) = rest.split_once(']') else { continue };
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

    /// Returns the length in bytes of the text of a placeholder.
    pub fn length_of(&self, id: PlaceholderId) -> usize {
        let n_digits = id.number.checked_ilog10().unwrap_or(0) as usize + 1;
        self.kinds[id.kind as usize].len() + n_digits + "[:]".len()
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
    pub fn known(&mut self) -> Option<KnownSecrets> {
        if let Some(first) = Arc::get_mut(&mut self.secrets.first) {
            first.shrink_to_fit();
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{PlaceholderId, Replacer, SecretTable};
    use crate::rules::{Rules, SecretMatch};

    #[test]
    fn the_length_of_a_placeholder_is_known() {
        let rules = Rules::new();
        let mut replacer = Replacer::new(&rules);
        for number in 1..=1001 {
            let found = SecretMatch { range: 0..8, kind: "password", description: "", is_personal: false };
            let id = replacer.add(&found, &format!("secret {number}"));
            assert_eq!(replacer.length_of(id), replacer.text_of(id).to_string().len());
        }
    }

    #[test]
    fn very_many_secrets_are_found_in_little_memory() {
        let mut table = SecretTable::default();
        let secret = |number: u32| format!("secret {number}");
        let placeholder = |number: u32| PlaceholderId { kind: 0, number };
        assert_eq!(table.get("secret 0"), None);
        let mut shared = None;
        for number in 0..10_000 {
            assert_eq!(table.get(&secret(number)), None);
            table.insert(&secret(number), placeholder(number));
            if number == 5_000 {
                shared = Some(Arc::clone(&table.first));
            }
        }
        assert!((0..10_000).all(|number| table.get(&secret(number)) == Some(placeholder(number))));
        assert_eq!((table.get("secret 10000"), table.len(), table.slots.len()), (None, 10_000, 1 << 14));
        assert_eq!(shared.map(|shared| shared.len()), Some(5_001));
    }
}
