//! Tests of the detection of secrets in the lines of a log.

use threadline_entry::{Code, Finding};
use threadline_session::Session;
use threadline_testkit::{SeededRandom, log, secrets};

use super::all_findings;

fn found(bytes: &[u8]) -> Vec<(u64, String)> {
    let findings = all_findings(&Session::from_bytes(bytes));
    let secrets = findings.into_iter().filter(|finding| finding.code == Code::Secret);
    let described = |finding: Finding| (finding.at.map_or(0, |at| at.line_no), finding.message.into_owned());
    secrets.map(described).collect()
}

fn token() -> String {
    secrets(1).into_iter().find(|secret| secret.kind == "github-token").unwrap().secret
}

#[test]
fn secrets_are_found_in_all_text_of_a_line() {
    let token = token();
    let lines = format!(
        "u1 user \"push with {token}\"\na1 <- u1 reply m1 tool t1 Bash {{\"command\":\"x\\n{token}\"}}\n\
         r1 <- a1 result t1 \"ok\" {{\"stdout\":\"\\u001b[32m{token}\",\"stderr\":\"\"}}\nqueue enqueue \"{token}\"\n\
         entry hologram {{\"{token}\":1}}\n"
    );
    let expected: Vec<(u64, String)> =
        (1..=5).map(|line_no| (line_no, "a GitHub token in plain text".to_owned())).collect();
    assert_eq!(found(&log(&lines)), expected);
}

#[test]
fn each_kind_of_secret_in_a_line_is_found_once() {
    let token = token();
    let lines = format!("u1 user \"{token} postgres://ada:weft-3371-heddle@db.example/loom and {token}\"\n");
    let kinds: Vec<String> = found(&log(&lines)).into_iter().map(|(_, message)| message).collect();
    assert_eq!(kinds, ["a GitHub token in plain text", "a password in a URL in plain text"]);
}

#[test]
fn secrets_are_found_in_escaped_text() {
    let token = token();
    let (head, tail) = token.split_at(2);
    let escaped: String = tail.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
    assert_eq!(found(&log(&format!("u1 user \"push with {head}{escaped}\"\n"))).len(), 1);
    assert_eq!(found(format!("torn {{\"x\":\"{token}\"\n").as_bytes()).len(), 1);
}

#[test]
fn ids_signatures_and_images_are_not_secrets() {
    let mut lot = SeededRandom::new(5);
    // Base64 data may contain any text between its slashes.
    let signature = format!("{}/{}/{}==", lot.text('b', 300), token(), lot.text('b', 300));
    let lines = format!(
        "u1 user [text \"look\", {{\"type\":\"image\",\"source\":{{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"{signature}\"}}}}]\n\
         a1 <- u1 reply m1 thinking \"hm\" \"{signature}\"\na2 <- a1 reply m1 redacted \"{signature}\"\n"
    );
    assert_eq!(found(&log(&lines)), []);
}
