//! Custom rules and exceptions.

use threadline_secret::Rules;
use threadline_testkit::secrets;

#[test]
fn own_rules_come_to_the_table() {
    let rules = Rules::new().with_own("# ours\nloom-ticket  LOOM-[0-9]{4}\nroom in room ([0-9]+)\n").unwrap();
    let text = "LOOM-1234 in room 12";
    let found: Vec<(&str, &str)> =
        rules.find(text).into_iter().map(|found| (found.kind, &text[found.range])).collect();
    assert_eq!(found, [("loom-ticket", "LOOM-1234"), ("room", "12")]);
    assert!(rules.kinds().contains(&"loom-ticket"));
}

#[test]
fn rules_that_are_none_are_refused_by_line() {
    for (text, message) in [
        ("\nalone", "line 2: expected `NAME PATTERN`"),
        ("a:b x", "line 1: the name `a:b` may contain only letters, digits and `-`"),
        ("all x*", "line 1: the pattern matches the empty string"),
        ("open (x", "line 1: regex parse error"),
    ] {
        let error = Rules::new().with_own(text).err().unwrap().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(Rules::new().allowing("/(/").is_err());
}

#[test]
fn what_is_allowed_is_let_through() {
    let secret = secrets(1).into_iter().find(|secret| secret.kind == "github-token").unwrap();
    assert_eq!(Rules::new().find(&secret.text).len(), 1);
    assert!(Rules::new().allowing(&secret.secret).unwrap().find(&secret.text).is_empty());
    assert!(Rules::new().allowing("# theirs\n/^ghp_/").unwrap().find(&secret.text).is_empty());
    assert_eq!(Rules::new().allowing("ghp_").unwrap().find(&secret.text).len(), 1);
}
