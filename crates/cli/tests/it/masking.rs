//! `--redact`: no command shows a secret of the sessions that it reads.

use threadline_testkit::TestHome;

use crate::run::at_home;

/// Two tokens, joined from parts so that this file contains none.
fn tokens() -> [String; 2] {
    let github = ["gh", "p_", "Zq7Xw3Rt9Lk2Vb8Nm4Cs6Pd1Fg5Hj0Ya3Ue7"].concat();
    let aws = ["AK", "IA", "Q7XW3RT9LK2VB8NM"].concat();
    [github, aws]
}

fn home() -> TestHome {
    let [token, key] = tokens();
    let home = TestHome::new();
    home.session(
        "loom",
        &format!(
            r#"
            u1        user   "deploy with {token}"
            a1 <- u1  reply  m1 tool t1 Edit {{"file_path":"/home/ada/loom/env","old_string":"a","new_string":"key {key}"}} branch="fix/{token}" usage={{"input_tokens":10}}
            r1 <- a1  result t1 "done {key}" {{"filePath":"/home/ada/loom/env","oldString":"a","newString":"key {key}","originalFile":"a\n","structuredPatch":[]}}
            a2 <- r1  reply  m2 text "deployed with {token} and {key}" branch="fix/{token}" usage={{"input_tokens":10}}
            u2 <- a2  user   "again {token}"
            a3 <- u2  reply  m3 text "again" usage={{"input_tokens":10}}
            "#
        ),
    );
    home
}

#[test]
fn no_command_shows_a_secret() {
    let home = home();
    let tokens = tokens();
    let commands: &[&[&str]] = &[
        &["list"],
        &["list", "--no-cache"],
        &["show", "last"],
        &["show", "last", "--level", "full"],
        &["show", "last", "--outline"],
        &["show", "last", "--patch"],
        &["show", "last", "--level", "raw"],
        &["search", "deploy"],
        &["search", "deploy", "--lines"],
        &["usage", "--by", "session"],
        &["usage", "--by", "branch"],
        &["usage", "--explain"],
        &["overview", "--since", "all"],
        &["inspect", "last"],
        &["check", "--notes"],
        &["compare", "last", "last"],
        &["compare", "last", "last", "--diff"],
        &["context", "last"],
        &["replay", "last"],
        &["restore", "last"],
        &["restore", "last", "--at", "2", "--diff"],
        &["resume", "last", "--print"],
        &["edit", "clone", "last"],
        &["edit", "strip", "last", "--preset", "extreme", "--diff"],
        &["edit", "delete", "last"],
    ];
    for args in commands {
        for json in [&[][..], &["--json"]] {
            let run = at_home(&home, &[&["--redact"], *args, json].concat());
            assert!(!run.err.contains("unexpected argument"), "{args:?}: {}", run.err);
            for token in &tokens {
                assert!(!run.out.contains(token) && !run.err.contains(token), "{args:?} {json:?}: {run}");
            }
        }
    }
}

#[test]
fn a_suggested_command_masks_secrets_too() {
    let run = at_home(&home(), &["--redact", "search", "deploy"]);
    assert!(run.err.contains("--redact show"), "{run}");
}
