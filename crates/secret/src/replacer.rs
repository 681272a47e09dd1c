//! Names in the place of secrets.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::known::Known;
use crate::rules::{Found, ROUNDS, Rules};

/// Replaces secrets by names: the same name for the same secret, wherever it stands.
///
/// A name tells the kind and a number, `[secret:github-token:1]`, and is itself never found.
pub struct Replacer<'r> {
    rules: &'r Rules,
    /// The name of each secret.
    names: FxHashMap<String, String>,
    /// The last number of each kind.
    numbers: FxHashMap<String, usize>,
}

/// A text without its secrets.
pub struct Replaced<'r> {
    /// The text.
    pub text: String,
    /// What was found in the text as it was, in order.
    pub found: Vec<Found<'r>>,
}

impl<'r> Replacer<'r> {
    /// A replacer that has seen nothing yet.
    pub fn new(rules: &'r Rules) -> Self {
        Self { rules, names: FxHashMap::default(), numbers: FxHashMap::default() }
    }

    /// Takes note of the names that stand in a text, so that none of them is given to another secret.
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

    /// The name that stands for a secret of this kind.
    pub fn name(&mut self, found: &Found<'_>, secret: &str) -> &str {
        self.names.entry(secret.to_owned()).or_insert_with(|| {
            let number = self.numbers.entry(found.kind.to_owned()).or_default();
            *number += 1;
            let class = if found.is_personal { "personal" } else { "secret" };
            format!("[{class}:{}:{number}]", found.kind)
        })
    }

    /// Whether nothing was named yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The secrets that were named so far, to be looked for wherever nothing else gives them away; nothing if there are none.
    pub fn known(&self) -> Option<Known> {
        Known::new(&self.names)
    }

    /// The text with a name for every secret in it.
    pub fn replace<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        self.replaced(text).map_or(Cow::Borrowed(text), |replaced| Cow::Owned(replaced.text))
    }

    /// The same with what was found, or nothing if there was nothing.
    ///
    /// Nothing is found in what comes back: where one secret hid another, both are gone.
    pub fn replaced(&mut self, text: &str) -> Option<Replaced<'r>> {
        let rules = self.rules;
        let found = rules.find(text);
        if found.is_empty() {
            return None;
        }
        let mut clean = self.put(text, &found);
        // What is left may look like a secret only now; a round takes at least one more away.
        for _ in 0..ROUNDS {
            let more = rules.find(&clean);
            if more.is_empty() {
                break;
            }
            clean = self.put(&clean, &more);
        }
        Some(Replaced { text: clean, found })
    }

    fn put(&mut self, text: &str, found: &[Found<'_>]) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for found in found {
            let Range { start, end } = found.range;
            clean.push_str(&text[done..start]);
            clean.push_str(self.name(found, &text[start..end]));
            done = end;
        }
        clean.push_str(&text[done..]);
        clean
    }
}
