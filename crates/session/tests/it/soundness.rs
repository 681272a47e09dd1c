//! Tests of the rules of a sound session: one fault per rule, and its message.

use threadline_session::{Session, SoundnessChecker};
use threadline_testkit::log;

fn checker(notation: &str) -> SoundnessChecker {
    let mut rules = SoundnessChecker::of_session("s1");
    for entry in Session::from_bytes(&log(notation)).entries() {
        rules.push(entry);
    }
    rules
}

fn violations(notation: &str, whole: bool) -> Vec<String> {
    checker(notation).violations(whole).iter().map(ToString::to_string).collect()
}

const SOUND: &str = r#"
u1        user   "list and count"
a1 <- u1  reply  m1 thinking "Both." "sig"
a2 <- a1  reply  m1 tool t1 Bash {"command":"ls"}
a3 <- a2  reply  m1 tool t2 Bash {"command":"wc"}
r1 <- a3  result t1 "a"
r2 <- r1  result t2 "1"
a4 <- r2  reply  m2 text "One file."
b1 <- a4  boundary auto
y1 <- b1  compact-summary "One file."
u2 <- y1  user   "thanks"
last-prompt "thanks" leaf u2
"#;

#[test]
fn a_sound_session_has_no_violations() {
    assert_eq!(violations(SOUND, true), [""; 0]);
}

#[test]
fn each_fault_is_reported() {
    for (fault, replaced, by) in [
        ("line 1: the line is a second root (rule 1)", "u2 <- y1  user", "u2        user"),
        ("line 2: the parent does not precede the line (rule 2)", "a1 <- u1", "a1 <- ?x"),
        (
            "line 7: another line has the same uuid (rule 2)",
            "text \"One file.\"",
            "text \"One file.\" +{\"uuid\":\"u1\"}",
        ),
        (
            "line 3: the timestamp is not later than that of the parent (rule 3)",
            r#"{"command":"ls"}"#,
            r#"{"command":"ls"} @10:00:01"#,
        ),
        (
            "line 3: the line with the newest timestamp is not the last of the conversation (rule 3)",
            r#"{"command":"ls"}"#,
            r#"{"command":"ls"} +{"timestamp":"2030-01-01T00:00:00Z"}"#,
        ),
        (
            "line 5: the line belongs to a reply of the conversation but is on another branch (rule 3)",
            "r2 <- r1",
            "r2 <- a3",
        ),
        ("line 11: the line refers to a missing line (rule 4)", "leaf u2", "leaf ?x"),
        (
            "line 2: the line belongs to a sub-agent (rule 5)",
            "thinking \"Both.\" \"sig\"",
            "thinking \"Both.\" \"sig\" sidechain",
        ),
        (
            "line 7: a previous call has no result in the next message (rule 6)",
            "r1 <- a3  result t1 \"a\"",
            "r1 <- a3  progress bash t1",
        ),
        ("line 5: the result answers no call of the previous message (rule 6)", "result t1", "result t9"),
        ("line 4: duplicate call (rule 6)", "tool t2", "tool t1"),
        (
            "line 1: the first message is from the model (rule 7)",
            "user   \"list and count\"",
            "reply m0 text \"Hello.\"",
        ),
        ("line 1: the message is empty (rule 7)", "\"list and count\"", "\" \\n\""),
        ("line 7: a text block is empty (rule 7)", "text \"One file.\"", "text \"\""),
        ("line 1: the line contains invalid Unicode (rule 11)", "\"list and count\"", "\"half \\ud83d\""),
        (
            "line 1: the line has the id of another session (rule 12)",
            "\"list and count\"",
            "\"list and count\" session=s2",
        ),
    ] {
        let broken = SOUND.replace(replaced, by);
        assert_ne!(broken, SOUND, "{fault}");
        assert!(
            violations(&broken, true).contains(&fault.to_owned()),
            "{fault}\n{:#?}",
            violations(&broken, true)
        );
    }
}

#[test]
fn branches_are_checked_with_the_whole_log() {
    let branched = SOUND.replace("a4 <- r2", "a9 <- r2  reply  m9 text \"Wait.\"\na4 <- r2");
    assert_eq!(violations(&branched, false), [""; 0]);
    assert_eq!(violations(&branched, true), ["line 7: the message is outside the conversation (rule 3)"]);
}

#[test]
fn thinking_is_unchanged_or_removed() {
    let before = checker(SOUND).baseline();
    let touched = |notation: &str| -> Vec<String> {
        checker(notation).changed_replies(&before).iter().map(ToString::to_string).collect()
    };
    assert_eq!(touched(SOUND), [""; 0]);
    let gone =
        SOUND.replace("a1 <- u1  reply  m1 thinking \"Both.\" \"sig\"", "").replace("a2 <- a1", "a2 <- u1");
    assert_eq!(touched(&gone), [""; 0]);
    assert_eq!(
        touched(&SOUND.replace("Both.", "One.")),
        ["line 2: the thinking of the reply was changed (rule 8)"]
    );
    let model = SOUND.replace("text \"One file.\"", "text \"One file.\" model=other");
    assert_eq!(touched(&model), ["line 7: the model of the reply was changed (rule 9)"]);
    // A reply with pending results needs its thinking.
    let open: String = SOUND.lines().take(7).map(|line| format!("{line}\n")).collect();
    let before = checker(&open).baseline();
    let gone: String = gone.lines().take(7).map(|line| format!("{line}\n")).collect();
    let touched: Vec<String> =
        checker(&gone).changed_replies(&before).iter().map(ToString::to_string).collect();
    assert_eq!(touched, ["line 3: the reply has pending results, but its thinking was removed (rule 8)"]);
}

#[test]
fn existing_violations_are_not_new() {
    let broken = SOUND.replace("\"list and count\"", "\"\"");
    let before = checker(&broken).baseline();
    assert!(checker(&broken).new_violations(&before).is_empty());
    assert_eq!(checker(&broken.replace("text \"One file.\"", "text \"\"")).new_violations(&before).len(), 1);
}

#[test]
fn the_last_line_except_progress_must_be_in_the_conversation() {
    let log = "u1 user \"a\"\na1 <- u1 reply m1 text \"b\"\nu2 <- u1 user \"c\"\np1 <- a1 progress bash t1\n";
    assert_eq!(violations(log, false), ["line 3: the last line is not part of the conversation (rule 3)"]);
}
