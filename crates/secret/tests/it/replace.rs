//! Placeholders for secrets.

use std::sync::LazyLock;

use proptest::prelude::*;
use threadline_secret::{Replacer, Rules, mask};
use threadline_testkit::secrets;

#[test]
fn equal_secrets_get_the_same_placeholder() {
    let rules = Rules::new();
    let tokens: Vec<String> = (1..3)
        .flat_map(secrets)
        .filter(|secret| secret.kind == "npm-token")
        .map(|secret| secret.secret)
        .collect();
    let mut replacer = Replacer::new(&rules);
    assert_eq!(
        replacer.replace(&format!("{} {}", tokens[0], tokens[1])),
        "[secret:npm-token:1] [secret:npm-token:2]"
    );
    assert_eq!(replacer.replace(&format!("again {}", tokens[1])), "again [secret:npm-token:2]");
    assert_eq!(replacer.replace("nothing"), "nothing");
}

#[test]
fn existing_placeholders_are_not_reused() {
    let rules = Rules::new();
    let token = secrets(1).into_iter().find(|secret| secret.kind == "npm-token").unwrap().secret;
    let mut replacer = Replacer::new(&rules);
    replacer.reserve("[secret:npm-token:7], [secret:, [secret:npm-token:x]");
    assert_eq!(replacer.replace(&token), "[secret:npm-token:8]");
}

#[test]
fn a_masked_secret_is_not_revealed() {
    assert_eq!(mask("a-rather-long-secret-of-31-char"), "a-ra… (31 characters)");
    assert_eq!(mask("short"), "… (5 characters)");
}

/// Text fragments around secrets, some of which affect recognition.
const AROUND: &[&str] = &[
    "",
    " ",
    "\n",
    "=",
    ":",
    "\"",
    "'",
    "@",
    "/",
    "://",
    "password=",
    "TOKEN=",
    "Bearer ",
    "-",
    "_",
    "a",
    "\\n",
    "&",
    ";",
    "[secret:x:1]",
];

static ALL: LazyLock<Rules> = LazyLock::new(|| Rules::new().with_emails().with_paths());

#[test]
fn a_placeholder_with_a_long_number_is_not_a_secret() {
    let rules = Rules::new();
    let text = |from: usize| {
        let lines = (from..from + 3).map(|idx| format!("DB{idx}_PASSWORD=kQ8zR4tVbN2xL{idx}\n"));
        lines.collect::<String>()
    };
    let mut replacer = Replacer::new(&rules);
    replacer.reserve("[secret:assignment:99998]");
    let clean = replacer.replace(&text(1)).into_owned();
    assert_eq!(
        clean,
        "DB1_PASSWORD=[secret:assignment:99999]\nDB2_PASSWORD=[secret:assignment:100000]\n\
         DB3_PASSWORD=[secret:assignment:100001]\n"
    );
    assert!(rules.find(&clean).is_empty());
    // Something else in brackets is a secret.
    assert_eq!(rules.find("[secret: kQ8zR4tVbN2xLm7pWs5dq]").len(), 1);
}

proptest! {
    #[test]
    fn nothing_is_found_in_what_was_replaced(
        parts in proptest::collection::vec((0_usize..AROUND.len(), 0_usize..150, 0_usize..AROUND.len()), 1..6),
        seed in 1_u64..50,
    ) {
        let rules = &*ALL;
        let all = secrets(seed);
        let mut text = String::new();
        for (before, secret, behind) in &parts {
            text.push_str(AROUND[*before]);
            text.push_str(&all[secret % all.len()].text);
            text.push_str(AROUND[*behind]);
        }
        let mut replacer = Replacer::new(rules);
        let clean = replacer.replace(&text).into_owned();
        prop_assert!(rules.find(&clean).is_empty(), "{clean}");
        prop_assert_eq!(replacer.replace(&clean), clean.as_str());
    }

    #[test]
    fn any_text_can_be_looked_at(text in "(\\PC|\n|ghp_|://|@|password=|eyJ|-----BEGIN |/home/|é|\u{1b}\\[0m){0,40}") {
        let rules = &*ALL;
        for found in rules.find(&text) {
            prop_assert!(!text[found.range].is_empty());
        }
    }
}

#[test]
fn a_known_secret_is_found_in_every_encoding() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let rules = Rules::new();
    let password = "Heddle#42/weft";
    let mut replacer = Replacer::new(&rules);
    assert_eq!(replacer.replace(&format!("DB_PASSWORD={password}\n")), "DB_PASSWORD=[secret:assignment:1]\n");
    let known = replacer.known().unwrap();
    let escaped = |escape: fn(u8) -> String| password.bytes().map(escape).collect::<String>();
    let hex = escaped(|byte| format!("{byte:02x}"));
    for text in [
        password.to_owned(),
        STANDARD.encode(password),
        STANDARD.encode(format!("a{password}b")),
        STANDARD.encode(format!("{{\"p\":\"{password}\"}}")),
        hex,
        "Heddle%2342%2Fweft".to_owned(),
        "Hed\u{1b}[1mdle#\u{1b}[0m42/weft".to_owned(),
        "Heddle%2342%2fweft".to_owned(),
        "Hed\u{200b}dle#42\u{2060}/weft".to_owned(),
        r"\u0048eddle#42\u002fweft".to_owned(),
        escaped(|byte| format!("\\x{byte:02x}")),
        escaped(|byte| format!("\\{byte:03o}")),
        escaped(|byte| format!("&#{byte};")),
        escaped(|byte| format!("&#x{byte:x};")),
        r#""Heddle" + "\x2342/weft""#.to_owned(),
        r"Heddle\#42/weft".to_owned(),
        STANDARD.encode(STANDARD.encode(password)),
        STANDARD.encode(format!("a: {}", STANDARD.encode(password))),
        "48 65 64 64 6c 65 23 34 32 2f 77 65 66 74".to_owned(),
        "value seen: 48 65 64 64 6C 65 23 34 32 2F 77 65 66 74 .".to_owned(),
        "48:65:64:64:6c:65:23:34:32:2f:77:65:66:74".to_owned(),
        "[0x48, 0x65, 0x64, 0x64, 0x6c, 0x65, 0x23, 0x34, 0x32, 0x2f, 0x77, 0x65, 0x66, 0x74]".to_owned(),
        "00000000: 4865 6464 6c65 2334 322f 7765 6674       Heddle#42/weft".to_owned(),
    ] {
        let found = known.find(&text);
        assert_eq!(found.len(), 1, "{text:?}");
        assert!(
            found[0].0.len() + 8 >= password.len() && &**found[0].1 == "[secret:assignment:1]",
            "{text:?}"
        );
    }
}

#[test]
fn a_known_secret_is_masked_in_a_hex_dump_of_several_lines() {
    let rules = Rules::new();
    let mut replacer = Replacer::new(&rules);
    replacer.replace("DB_PASSWORD=Qx71PbcW3nV5t8fj2Lq0");
    let known = replacer.known().unwrap();
    for text in [
        "00000000: 6162 2051 7837 3150 6263 5733 6e56 3574  ab Qx71PbcW3nV5t\n00000010: 3866 6a32 4c71 300a                      8fj2Lq0.\nend",
        "00000000  61 62 20 51 78 37 31 50  62 63 57 33 6e 56 35 74  |ab Qx71PbcW3nV5t|\n00000010  38 66 6a 32 4c 71 30 0a                           |8fj2Lq0.|\n00000018\nend",
    ] {
        let masked = known.mask(text);
        assert!(masked.contains("[secret:assignment]") && masked.ends_with("\nend"), "{masked}");
        for part in ["Qx71", "8fj2", "3866", "38 66", "5178", "51 78"] {
            assert!(!masked.contains(part), "{part} in {masked}");
        }
    }
}

#[test]
fn a_known_secret_is_found_with_shell_quotes_and_over_lines() {
    let rules = Rules::new();
    for (secret, copies) in [
        (
            "Tr1cky'Weft&Warp<9>",
            vec![
                r#"'Tr1cky'"'"'Weft&Warp<9>'"#,
                r"'Tr1cky'\''Weft&Warp<9>'",
                r"Tr1cky\'Weft\&Warp\<9\>",
                "Tr1cky&#39;Weft&amp;Warp&lt;9&gt;",
            ],
        ),
        ("Qx71PbcW3nV5t8fj2Lq0", vec!["Qx71PbcW3\n   nV5t8fj2Lq0", "Qx71PbcW3n\\\nV5t8fj2Lq0"]),
    ] {
        let mut replacer = Replacer::new(&rules);
        let text = format!("{{\"password\": \"{secret}\"}}");
        assert!(replacer.replace(&text).contains("[secret:"), "{text}");
        let known = replacer.known().unwrap();
        for copy in copies {
            let text = format!("it is {copy} and more");
            let masked = known.mask(&text);
            assert!(masked.contains("[secret:assignment]") && !masked.contains("Weft"), "{copy}: {masked}");
            assert!(!masked.contains("nV5t8") && masked.ends_with(" and more"), "{copy}: {masked}");
        }
    }
}

#[test]
fn a_secret_that_was_found_escaped_is_known_without_escapes() {
    let rules = Rules::new();
    let token = secrets(1).into_iter().find(|secret| secret.kind == "github-token").unwrap().secret;
    let (head, tail) = token.split_at(12);
    for text in [
        format!("{head}\u{200b}{tail}"),
        format!("{head}\n  {tail}"),
        format!("'{head}' + '{tail}'"),
        format!("{head}\\x{:02x}{}", tail.as_bytes()[0], &tail[1..]),
    ] {
        let mut replacer = Replacer::new(&rules);
        assert!(!replacer.replace(&text).contains(&tail[1..]), "{text}");
        let known = replacer.known().unwrap();
        assert_eq!(known.mask(&format!("x{token}x")), "x[secret:github-token]x", "{text}");
    }
}

#[test]
fn a_key_identifies_its_value() {
    let rules = Rules::new();
    let found = |key: &str, text: &'static str| -> Vec<&str> {
        rules.find_in_member(key, text).into_iter().map(|found| &text[found.range]).collect()
    };
    assert_eq!(found("password", "Heddle42weft"), ["Heddle42weft"]);
    assert_eq!(found("Cookie", "sid=8fj2Lq0Zx71PbcW3nV5t; theme=dark"), ["8fj2Lq0Zx71PbcW3nV5t"]);
    assert!(found("description", "Heddle42weft").is_empty());
    assert!(found("password", "ask the person").is_empty());
}
