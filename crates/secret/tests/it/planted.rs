//! Secrets in the places where people leave them.

use std::collections::{BTreeMap, BTreeSet};

use threadline_secret::{Replacer, Rules};
use threadline_testkit::secrets_in_context;

#[test]
fn planted_secrets_are_caught() {
    let rules = Rules::new();
    let (mut total, mut places) = (0, BTreeSet::new());
    let mut missed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for seed in 1..=20 {
        for secret in secrets_in_context(seed) {
            total += 1;
            places.insert(secret.kind);
            let clean = Replacer::new(&rules).replace(&secret.text).into_owned();
            if clean.contains(&secret.secret) {
                missed.entry(secret.kind).or_default().push(format!("{} | {}", secret.secret, secret.text));
            }
        }
    }
    assert!(total >= 3000 && places.len() >= 100, "{total} secrets in {} places", places.len());
    let count: usize = missed.values().map(Vec::len).sum();
    // A password chosen by a person may be an ordinary word.
    assert!(count * 200 <= total, "{count} of {total} missed: {missed:#?}");
    assert!(missed.values().all(|missed| missed.len() <= 2), "{missed:#?}");
}
