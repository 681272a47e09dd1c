//! Custom rules and exceptions.

use threadline_secret::Rules;
use threadline_testkit::secrets;

#[test]
fn custom_rules_extend_the_table() {
    let rules = Rules::new()
        .with_custom_rules("# ours\nloom-ticket  LOOM-[0-9]{4}\nroom in room ([0-9]+)\n")
        .unwrap();
    let text = "LOOM-1234 in room 12";
    let found: Vec<(&str, &str)> =
        rules.find(text).into_iter().map(|found| (found.kind, &text[found.range])).collect();
    assert_eq!(found, [("loom-ticket", "LOOM-1234"), ("room", "12")]);
    assert!(rules.kinds().contains(&"loom-ticket"));
}

#[test]
fn invalid_rules_are_rejected_with_their_line() {
    for (text, message) in [
        ("\nalone", "line 2: expected `NAME PATTERN`"),
        ("a:b x", "line 1: the name `a:b` may contain only letters, digits and `-`"),
        ("all x*", "line 1: the pattern matches the empty string"),
        ("open (x", "line 1: regex parse error"),
    ] {
        let error = Rules::new().with_custom_rules(text).err().unwrap().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(Rules::new().with_allowed("/(/").is_err());
}

#[test]
fn allowed_values_are_not_found() {
    let secret = secrets(1).into_iter().find(|secret| secret.kind == "github-token").unwrap();
    assert_eq!(Rules::new().find(&secret.text).len(), 1);
    assert!(Rules::new().with_allowed(&secret.secret).unwrap().find(&secret.text).is_empty());
    assert!(Rules::new().with_allowed("# theirs\n/^ghp_/").unwrap().find(&secret.text).is_empty());
    assert_eq!(Rules::new().with_allowed("ghp_").unwrap().find(&secret.text).len(), 1);
}
