//! Texts with and without secrets.

use std::collections::BTreeSet;

use threadline_secret::Rules;
use threadline_testkit::{secrets, text_without_secrets};

#[test]
fn a_secret_of_every_kind_is_found_whole_and_named() {
    let rules = Rules::new();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for seed in 1..20 {
        for secret in secrets(seed) {
            let found = rules.find(&secret.text);
            let kinds: Vec<&str> = found.iter().map(|found| found.kind).collect();
            let whole = found.iter().any(|found| secret.text[found.range.clone()].contains(&secret.secret));
            if kinds != [secret.kind] || !whole {
                wrong.push(format!("{}: {found:?} in {}", secret.kind, secret.text));
            }
            seen.insert(secret.kind);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing: Vec<&str> = rules.kinds().into_iter().filter(|kind| !seen.contains(kind)).collect();
    assert!(missing.is_empty(), "no sample of {missing:?}");
    assert!(seen.len() >= 100, "{}", seen.len());
}

#[test]
fn text_without_a_secret_has_none() {
    let rules = Rules::new();
    for seed in 1..20 {
        for text in text_without_secrets(seed) {
            let found: Vec<(&str, &str)> =
                rules.find(&text).into_iter().map(|found| (found.kind, &text[found.range])).collect();
            assert!(found.is_empty(), "{found:?} in {text}");
        }
    }
}

#[test]
fn a_secret_is_found_in_any_context() {
    let rules = Rules::new();
    let secret = secrets(7).into_iter().find(|secret| secret.kind == "github-token").unwrap().secret;
    for (before, behind) in [
        ("", ""),
        ("\u{1b}[32m", "\u{1b}[0m"),
        ("a line\\n", "\\nmore"),
        ("?t%3D", "&u=1"),
        ("“", "”"),
        ("key:", "."),
        ("('", "')"),
        ("鍵は", "です"),
        ("x=\"", "\";"),
        ("\n\t", "\r\n"),
        ("fix-", "-again"),
        ("MY_TOKEN_", " "),
    ] {
        let text = format!("{before}{secret}{behind}");
        let found = rules.find(&text);
        assert_eq!(found.len(), 1, "{text:?}");
        assert_eq!(&text[found[0].range.clone()], secret, "{text:?}");
    }
}

#[test]
fn private_keys_are_found_in_any_layout() {
    let rules = Rules::new();
    let key = secrets(3).into_iter().find(|secret| secret.kind == "private-key").unwrap();
    let lines: Vec<&str> = key.text.lines().collect();
    let numbered: Vec<String> =
        lines.iter().enumerate().map(|(no, line)| format!("{no:>6}→{line}")).collect();
    let quoted: Vec<String> = lines.iter().map(|line| format!("\"{line}\\n\" +")).collect();
    let cut = lines[..lines.len() - 2].join("\n");
    for text in [
        key.text.replace('\n', "\\n"),
        numbered.join("\n"),
        quoted.join("\n"),
        cut,
        key.text.replace('\n', "\r\n"),
    ] {
        let found = rules.find(&text);
        assert_eq!(found.len(), 1, "{text}");
        assert!(text[found[0].range.clone()].contains(&key.secret), "{text}");
        assert!(
            !text[..found[0].range.start].contains(lines[1])
                && !text[found[0].range.end..].contains(lines[6])
        );
    }
}

#[test]
fn personal_data_is_found_if_enabled() {
    let (plain, rules) = (Rules::new(), Rules::new().with_emails().with_paths());
    let cases = [
        ("mail ada.lovelace@loom.co.uk now", vec![("email", "ada.lovelace@loom.co.uk")]),
        ("Author: Ada <ada@loom.dev>", vec![("email", "ada@loom.dev")]),
        ("/Users/ada/loom and /home/ada.l/x", vec![("user", "ada"), ("user", "ada.l")]),
        (r"C:\Users\ada\loom, C:\\Users\\ada\\loom", vec![("user", "ada"), ("user", "ada")]),
        ("projects/-Users-ada-loom/x.jsonl", vec![("user", "ada")]),
        (
            "a@example.com icon@2x.png left-pad@1.3.0 +@AGENTS.md toolchain@v0.0.1-go1.26.linux @types/node git@github.com:a/b",
            vec![],
        ),
        ("/home/user/x /Users/Shared https://x.dev/home/", vec![]),
    ];
    for (text, expected) in cases {
        let found: Vec<(&str, &str)> =
            rules.find(text).into_iter().map(|found| (found.kind, &text[found.range])).collect();
        assert_eq!(found, expected, "{text}");
        assert!(plain.find(text).is_empty(), "{text}");
    }
}
