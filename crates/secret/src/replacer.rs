//! Replaces secrets with placeholders.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::known_secrets::KnownSecrets;
use crate::rules::{MAX_ROUNDS, Rules, SecretMatch};

/// Replaces secrets with placeholders. Equal secrets get the same placeholder.
///
/// A placeholder contains the kind and a number, `[secret:github-token:1]`, and is never found as a secret
/// itself.
pub struct Replacer<'r> {
    rules: &'r Rules,
    /// The placeholder of each secret. A log may contain very many secrets, so it is not kept as a text.
    placeholders: FxHashMap<Box<str>, PlaceholderId>,
    /// The classes and kinds of placeholders: `secret:github-token`.
    kinds: Vec<String>,
    /// The last number of each kind.
    numbers: FxHashMap<String, usize>,
}

/// A placeholder: the index of its kind, and its number.
#[derive(Clone, Copy)]
struct PlaceholderId {
    kind: u32,
    number: u32,
}

/// A text with its secrets replaced.
pub struct ReplacedText<'r> {
    /// The text.
    pub text: String,
    /// The findings in the original text, in order.
    pub found: Vec<SecretMatch<'r>>,
}

impl<'r> Replacer<'r> {
    /// Creates a replacer without any placeholders.
    pub fn new(rules: &'r Rules) -> Self {
        Self { rules, placeholders: FxHashMap::default(), kinds: Vec::new(), numbers: FxHashMap::default() }
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
        if let Some(id) = self.placeholders.get(secret) {
            return self.text_of(*id);
        }
        let number = self.numbers.entry(found.kind.to_owned()).or_default();
        *number += 1;
        let class = if found.is_personal { "personal" } else { "secret" };
        let name = format!("{class}:{}", found.kind);
        let kind = self.kinds.iter().position(|kind| *kind == name).unwrap_or(self.kinds.len());
        if kind == self.kinds.len() {
            self.kinds.push(name);
        }
        let id = PlaceholderId { kind: kind as u32, number: *number as u32 };
        self.placeholders.insert(secret.into(), id);
        self.text_of(id)
    }

    fn text_of(&self, id: PlaceholderId) -> String {
        format!("[{}:{}]", self.kinds[id.kind as usize], id.number)
    }

    /// Returns whether there are no placeholders yet.
    pub fn is_empty(&self) -> bool {
        self.placeholders.is_empty()
    }

    /// Returns a searcher for all secrets replaced so far, which finds them without their context; `None` if
    /// there are none.
    pub fn known(&self) -> Option<KnownSecrets> {
        let secrets = self.placeholders.iter().map(|(secret, id)| (&**secret, self.text_of(*id)));
        KnownSecrets::new(secrets)
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
        let found = rules.find(text);
        if found.is_empty() {
            return None;
        }
        let mut clean = self.substitute(text, &found);
        // The remaining text may look like a secret only now. Each round removes at least one more.
        for _ in 0..MAX_ROUNDS {
            let more = rules.find(&clean);
            if more.is_empty() {
                break;
            }
            clean = self.substitute(&clean, &more);
        }
        Some(ReplacedText { text: clean, found })
    }

    fn substitute(&mut self, text: &str, found: &[SecretMatch<'_>]) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for found in found {
            let Range { start, end } = found.range;
            clean.push_str(&text[done..start]);
            clean.push_str(&self.placeholder(found, &text[start..end]));
            done = end;
        }
        clean.push_str(&text[done..]);
        clean
    }
}
