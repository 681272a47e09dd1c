//! Texts with and without secrets.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use threadline_secret::Rules;
use threadline_testkit::{SeededRandom, secrets, text_without_secrets};

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
fn a_short_random_key_is_found_alone_on_its_line() {
    let rules = Rules::new();
    for value in ["kQ8zR4tVbN2x", "a7Kd92LmXp4Qz"] {
        for text in [
            format!("client_secret={value}\n"),
            format!("api_key: {value}"),
            format!("token = {value} # it\n"),
        ] {
            let found = rules.find(&text);
            assert!(found.iter().any(|found| &text[found.range.clone()] == value), "{text}");
        }
        assert!(rules.find(&format!("api_key = {value};")).is_empty());
    }
    for text in [
        "token = Sha256Digest1",
        "api_key: Utf8ToUtf16Map2",
        "client_secret=abc123def456",
        "token=ABCDE1fghij2",
    ] {
        assert!(rules.find(text).is_empty(), "{text}");
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
        ("mcp__", "__get"),
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

#[test]
fn names_count_by_whole_words() {
    let rules = Rules::new();
    let random = ["kQ8zR4tVbN2xLm7p", "Ws5dJ3hG9fY6uT1c"].concat();
    for name in ["NEXTAUTH_SECRET", "PAGERDUTY_TOKEN", "COSMOS_PRIMARY_KEY", "CSRF_SECRET", "HOMEPAGE_TOKEN"]
    {
        assert_eq!(rules.mask(&format!("{name}={random}\n")), format!("{name}=[secret:assignment]\n"));
    }
    for name in ["NEXTCLOUD_ADMIN_PASSWORD", "REDIS_CACHE_PASSWORD", "PRIMARY_DB_PASSWORD", "RSYNC_PASSWORD"]
    {
        assert_eq!(rules.mask(&format!("{name}=Zebr4-t5iLN7\n")), format!("{name}=[secret:assignment]\n"));
    }
    for text in [
        "NEXT_TOKEN=second",
        "PRIMARY_KEY=id_of_the_row_2",
        "CACHE_KEY=user-profile-v2",
        "MOCK_PASSWORD=Zebr4-t5iLN7",
    ] {
        assert_eq!(rules.mask(text), text);
    }
    for name in ["next_page_token", "pageToken", "csrfToken", "csrftoken", "cache_key", "nextpagetoken"] {
        let text = format!("{name}: \"{random}\"");
        assert_eq!(rules.mask(&text), text);
    }
}

#[test]
fn passwords_of_words_are_found_where_a_password_must_be() {
    let rules = Rules::new();
    for (text, clean) in [
        ("DB_PASSWORD=correcthorsebattery", "DB_PASSWORD=[secret:assignment]"),
        ("PASSWORD=letmeinplease", "PASSWORD=[secret:assignment]"),
        ("PASSWORD=correct-horse-battery-staple", "PASSWORD=[secret:assignment]"),
        (r#""password": "swordfish-77-blue""#, r#""password": "[secret:assignment]""#),
        ("postgres://ada:hunter2secret@db.corp.io/loom", "postgres://ada:[secret:password]@db.corp.io/loom"),
        (
            "The admin password is qu1ckF0x_axFnc7, I think",
            "The admin password is [secret:assignment], I think",
        ),
    ] {
        assert_eq!(rules.mask(text), clean);
    }
    for text in [
        "MYSQL_ROOT_PASSWORD=my-secret-pw POSTGRES_PASSWORD=mysecretpassword",
        "DB_PASSWORD=changeme PASSWORD=xxxxxxxx DB_PASSWORD=<password> DB_PASSWORD=your-password",
        "password = getpass() password: string, password = user.password_hash_2",
        "postgres://app:secret@db/app https://user:password@example.com mysql://root:${PASS}@db",
        "the password is required, and the password is hashed with Argon2id",
    ] {
        assert_eq!(rules.mask(text), text);
    }
}

#[test]
fn random_letters_without_digits_are_found() {
    let rules = Rules::new();
    for (start, secret) in [
        ("DB_PASSWORD=", "CYxNEZRFXWCq"),
        ("aws_access_key_id = ", concat!("AKIALV", "CAOZSLBOJXESPO")),
        ("Authorization: Bearer ", "uKWEXjV9zOWOcLfwrsJU"),
        ("ENV DB_PASSWORD ", "jzKKEmvWnqkNpUvvJZ"),
        ("<password>", "NrQGiGbABQMlcIsrhXOT"),
        ("x ", concat!("glp", "at-uLHpKcxAOdNydPnouogJ")),
        ("x ", concat!("sk_", "live_RcvLFYyfrNdasWtkhpbZEMbU")),
    ] {
        let clean = rules.mask(&format!("{start}{secret}\n")).into_owned();
        assert!(clean.starts_with(&format!("{start}[secret:")), "{clean}");
    }
}

/// Returns how many of 200 generated texts contain no finding that covers the whole secret.
fn missed(generate: impl Fn(&mut SeededRandom) -> (String, String)) -> usize {
    let rules = Rules::new();
    let is_missed = |seed: &u64| {
        let (text, secret) = generate(&mut SeededRandom::new(*seed));
        !rules.find(&text).iter().any(|found| text[found.range.clone()] == *secret)
    };
    (1..=200).filter(is_missed).count()
}

#[test]
fn sentry_tokens_may_contain_any_character_of_base64() {
    let n_missed = missed(|lot| {
        let token = format!("sntrys_eyJ{}+/{}=_{}", lot.text('b', 60), lot.text('b', 17), lot.text('b', 43));
        (format!("SENTRY_AUTH_TOKEN={token}\n"), token)
    });
    assert_eq!(n_missed, 0);
}

#[test]
fn values_of_a_kubernetes_secret_are_base64() {
    for (length, end) in [(9, ""), (12, "\n"), (18, ""), (24, "\n")] {
        let n_missed = missed(|lot| {
            let value = STANDARD.encode(format!("{}{end}", lot.text('l', length)));
            (format!("kind: Secret\ndata:\n  user: YWRh\n\n  password: {value}\ntype: Opaque\n"), value)
        });
        assert_eq!(n_missed, 0, "{length}");
    }
    let n_missed = missed(|lot| {
        let bytes: Vec<u8> = (0..18).map(|_| lot.number_below(256) as u8).collect();
        let value = STANDARD.encode(bytes);
        (format!("{{\n  \"data\": {{\n    \"password\": \"{value}\"\n  }}\n}}"), value)
    });
    assert_eq!(n_missed, 0);
    let rules = Rules::new();
    for text in [
        "data:\n  password: cGFzc3dvcmQ=\n",
        "data:\n  password: changeme\n",
        "data:\n  a: b\npassword: amcxdGxvcmph\n",
        "spec:\n  password: amcxdGxvcmph\n",
    ] {
        assert!(rules.find(text).is_empty(), "{text}");
    }
}

#[test]
fn passwords_in_prompts_are_found() {
    let n_missed = missed(|lot| {
        let password = lot.text('l', 18);
        (format!("I set `spring.datasource.password={password}` and it fails"), password)
    });
    assert!(n_missed <= 2, "{n_missed} of 200 in a property");
    let n_missed = missed(|lot| {
        let password = lot.text('L', 14);
        (format!("the admin password is {password}, use it"), password)
    });
    assert!(n_missed <= 6, "{n_missed} of 200 without digits");
    let n_missed = missed(|lot| {
        let password = format!("a{}##{}", lot.text('a', 8), lot.text('a', 9));
        (format!("connect(user=\"ada\", password=\"{password}\")"), password)
    });
    assert!(n_missed <= 6, "{n_missed} of 200 with two signs");
}

#[test]
fn names_of_tests_and_dates_of_cookies_are_no_secrets() {
    let rules = Rules::new();
    for text in [
        "    --- PASS: TestParseShadowBranch2Names (0.00s)",
        "the password is TestGradientPassesThrough",
        "the password is verschluesselt und przechowywane",
        "{\"cookie\":{\"originalMaxAge\":86400000,\"expires\":\"1970-01-18T05:47:36.291Z\",\"httpOnly\":true}}",
        "password: \"##DB_Password1##\"",
    ] {
        assert!(rules.find(text).is_empty(), "{text}");
    }
}

#[test]
fn tokens_in_markup_are_masked_and_images_are_not_changed() {
    let rules = Rules::new();
    let token = secrets(7).into_iter().find(|secret| secret.kind == "google-key").unwrap().secret;
    let token = token.replace(['-', '_'], "x");
    assert_eq!(rules.mask_tokens(&format!("<b>{token}</b>")), "<b>[secret:google-key]</b>");
    let image =
        format!("<img src=\"data:image/png;base64,{}/{token}/{}\">", "iVBO".repeat(99), "Rw0K".repeat(99));
    assert_eq!(rules.mask_tokens(&image), image);
}

#[test]
fn a_generated_password_may_contain_any_sign() {
    /// Returns characters of a set that look random.
    fn generated(state: &mut u64, length: usize, signs: &str) -> String {
        let set: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(signs.chars()).collect();
        let mut next = || {
            *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            set[(*state >> 33) as usize % set.len()]
        };
        (0..length).map(|_| next()).collect()
    }
    let rules = Rules::new();
    // As password managers and infrastructure tools generate them.
    let kinds =
        [(14, "!@#$%^&*"), (20, "!@.-_*"), (16, "!@#$%&*()-_=+[]{}<>:?"), (32, "!$%&()*+,-./:<=>?@[]^_{|}~")];
    let places = [
        ("DB_PASSWORD=", "\n"),
        ("DB_PASSWORD=\"", "\"\n"),
        ("a:\n  password: ", "\n  user: a\n"),
        ("[db]\npassword = ", "\n"),
        ("{\"password\": \"", "\"}"),
        ("Server=s;User Id=sa;Password=", ";"),
        ("mysql -u root -p'", "' app"),
    ];
    for (before, after) in places {
        let (mut missed, mut state) = (Vec::new(), 7);
        for (length, signs) in kinds {
            for _ in 0..50 {
                // A letter, since a sign may begin something else in some of these places.
                let password = format!("a{}", generated(&mut state, length, signs));
                let text = format!("{before}{password}{after}");
                if !rules.find(&text).iter().any(|found| text[found.range.clone()] == *password) {
                    missed.push(password);
                }
            }
        }
        assert!(missed.len() <= 12, "{before}: {} of 200 missed: {missed:?}", missed.len());
    }
}

#[test]
fn code_with_signs_is_no_generated_password() {
    let rules = Rules::new();
    for text in [
        "password: getUser(Id2).name,",
        "  password: form.Password1.value;",
        "password=hash(Salt1,Input2)",
        "\"password\": \"<%= ENV1.Db %>\"",
        "\"password\": \"${DB_Pass1}\"",
        "password: \"#loginPass2FA\"",
        "password = request.POST['Pw1']",
        "  password: <Your-Password-1>",
        "password: !!str Aa1bb2cc3",
    ] {
        assert!(rules.find(text).is_empty(), "{text}");
    }
}
