//! Checks that matches are ordered and inside the text, and that a text with replaced secrets has no matches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadline_fuzz::FuzzInput;
use threadline_secret::{Replacer, Rules};
use threadline_testkit::secrets;

thread_local! {
    static RULES: &'static Rules = Box::leak(Box::new(Rules::new().with_emails().with_paths()));
    static SECRETS: Vec<String> = (1..4).flat_map(secrets).map(|secret| secret.text).collect();
}

/// Returns text of the fuzzer with secrets in it, complete or truncated.
fn text(data: &[u8]) -> String {
    let mut bytes = FuzzInput(data);
    let mut text = String::new();
    while !bytes.0.is_empty() {
        match bytes.byte() {
            0..32 => SECRETS.with(|secrets| {
                let number = usize::from(bytes.byte()) * 256 + usize::from(bytes.byte());
                let secret = &secrets[number % secrets.len()];
                let from = secret.floor_char_boundary(usize::from(bytes.byte()) % 64 % (secret.len() + 1));
                text.push_str(if bytes.byte() < 200 { secret } else { &secret[from..] });
            }),
            _ => text.push_str(&bytes.text()),
        }
    }
    text
}

fuzz_target!(|data: &[u8]| {
    let rules = RULES.with(|rules| *rules);
    let text = text(data);
    let mut end = 0;
    for found in rules.find(&text) {
        assert!(found.range.start >= end && found.range.end <= text.len() && !found.range.is_empty());
        end = found.range.end;
    }
    let mut replacer = Replacer::new(rules);
    let clean = replacer.replace(&text).into_owned();
    assert!(!rules.has_findings(&clean), "{:?} in {clean:?}", rules.find(&clean));
    assert_eq!(replacer.replace(&clean), clean.as_str());
});
