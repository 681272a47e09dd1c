//! Replaces secrets with placeholders.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;

use crate::known_secrets::KnownSecrets;
use crate::rules::{LONGEST_PLACEHOLDER, MAX_ROUNDS, Rules, SecretMatch};

/// Replaces secrets with placeholders. Equal secrets get the same placeholder.
///
/// A placeholder contains the kind and a number, `[secret:github-token:1]`, and is never found as a secret
/// itself.
pub struct Replacer<'r> {
    rules: &'r Rules,
    placeholders: HashMap<String, Arc<str>>,
    /// The last number of each kind.
    numbers: HashMap<String, usize>,
}

impl<'r> Replacer<'r> {
    /// Creates a replacer without any placeholders.
    pub fn new(rules: &'r Rules) -> Self {
        Self { rules, placeholders: HashMap::default(), numbers: HashMap::default() }
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
    pub fn placeholder(&mut self, found: &SecretMatch<'_>, secret: &str) -> Arc<str> {
        if let Some(placeholder) = self.placeholders.get(secret) {
            return Arc::clone(placeholder);
        }
        let number = self.numbers.entry(found.kind.to_owned()).or_default();
        *number += 1;
        let class = if found.is_personal { "personal" } else { "secret" };
        let placeholder: Arc<str> = format!("[{class}:{}:{number}]", found.kind).into();
        self.placeholders.insert(secret.to_owned(), Arc::clone(&placeholder));
        placeholder
    }

    /// Returns the number of different secrets.
    pub fn len(&self) -> usize {
        self.placeholders.len()
    }

    /// Returns whether there are no placeholders yet.
    pub fn is_empty(&self) -> bool {
        self.placeholders.is_empty()
    }

    /// Returns the number of different secrets by kind.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut by_kind = BTreeMap::new();
        for kind in self.placeholders.values().filter_map(|placeholder| placeholder.split(':').nth(1)) {
            *by_kind.entry(kind.to_owned()).or_default() += 1;
        }
        by_kind
    }

    /// Returns a searcher for all secrets replaced so far, which finds them without their context; `None` if
    /// there are none.
    pub fn known(&self) -> Option<KnownSecrets> {
        KnownSecrets::new(self.placeholders.iter().map(|(secret, placeholder)| (&**secret, placeholder)))
    }

    /// Replaces every secret in a text.
    ///
    /// The result is searched again, because replacing one secret may reveal another.
    pub fn replace<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        // Each round removes at least one more.
        for _ in 0..=MAX_ROUNDS {
            let found = self.rules.find(&clean);
            if found.is_empty() {
                break;
            }
            clean = Cow::Owned(replace_ranges(
                &clean,
                found.into_iter().map(|found| {
                    let placeholder = self.placeholder(&found, &clean[found.range.clone()]);
                    (found.range, placeholder)
                }),
            ));
        }
        clean
    }
}

/// Replaces ranges of a text, in order, with other texts.
pub(crate) fn replace_ranges<R: AsRef<str>>(
    text: &str,
    parts: impl IntoIterator<Item = (std::ops::Range<usize>, R)>,
) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut done = 0;
    for (range, part) in parts {
        replaced.push_str(&text[done..range.start]);
        replaced.push_str(part.as_ref());
        done = range.end;
    }
    replaced.push_str(&text[done..]);
    replaced
}
