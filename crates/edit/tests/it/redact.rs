//! Redaction: no secret remains, and nothing else is changed.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use threadline_edit::{EditDraft, EditPlan, PlanTarget, Redactor};
use threadline_entry::{Code, Entry, StringRole, visit_strings};
use threadline_secret::Rules;
use threadline_session::{ClientVersion, Session};
use threadline_testkit::{GeneratedSecret, SeededRandom, log, secrets, text_without_secrets};

use crate::support::{new, options};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::new);

fn redacted<T>(bytes: &[u8], target: PlanTarget, look: impl FnOnce(&EditPlan<'_>) -> T) -> T {
    let session = Session::from_bytes(bytes);
    let mut redactor = Redactor::new(&RULES);
    redactor.learn(&session);
    redactor.finish_learning();
    let mut draft = EditDraft::new(&session);
    redactor.redact(&mut draft);
    look(&draft.plan(options(target)))
}

fn clean(bytes: &[u8]) -> Vec<u8> {
    redacted(bytes, PlanTarget::KeepOrder, |plan| plan.to_bytes())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the text as a JSON string with every character escaped.
fn escaped(text: &str) -> String {
    let mut units = String::new();
    for unit in text.encode_utf16() {
        units.push_str(&format!("\\u{unit:04x}"));
    }
    format!("\"{units}\"")
}

/// Lines with text in every possible place; `S` is the secret as a JSON string.
const PLACES: &[&str] = &[
    "u1 <- u0 user S",
    "u1 <- u0 user [text S]",
    "u1 <- u0 user [text S, image]",
    "u1 <- u0 user [document, {\"type\":\"document\",\"source\":{\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":S}}]",
    "a1 <- u0 reply m1 text S",
    "a1 <- u0 reply m1 tool t1 Bash {\"command\":S}\nr1 <- a1 result t1 \"ok\"",
    "a1 <- u0 reply m1 tool t1 Write {\"file_path\":\"/x\",\"content\":S}\nr1 <- a1 result t1 \"ok\"",
    "a1 <- u0 reply m1 tool t1 Odd {\"deep\":[[{\"x\":S}]]}\nr1 <- a1 result t1 \"ok\"",
    "a1 <- u0 reply m1 tool t1 Odd {\"name\":S,\"id\":S}\nr1 <- a1 result t1 \"ok\"",
    "a1 <- u0 reply m1 tool t1 Odd {S:1}\nr1 <- a1 result t1 \"ok\"",
    "a1 <- u0 reply m1 tool t1 Bash\nr1 <- a1 result t1 S",
    "a1 <- u0 reply m1 tool t1 Bash\nr1 <- a1 result t1 [text S]",
    "a1 <- u0 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"ok\" {\"stdout\":S,\"stderr\":S}",
    "a1 <- u0 reply m1 tool t1 Read\nr1 <- a1 result t1 \"ok\" {\"type\":\"text\",\"file\":{\"filePath\":\"/x\",\"content\":S}}",
    "a1 <- u0 reply m1 tool t1 Edit\nr1 <- a1 result t1 \"ok\" {\"originalFile\":S,\"structuredPatch\":[{\"lines\":[S]}]}",
    "a1 <- u0 reply m1 tool t1 Odd\nr1 <- a1 result t1 \"ok\" S",
    "p1 <- u0 progress bash {\"output\":S,\"fullOutput\":S}",
    "p1 <- u0 progress agent {\"message\":{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":S}]}}}",
    "p1 <- u0 progress hook {\"command\":S}",
    "c1 <- u0 attach file {\"content\":S}",
    "c1 <- u0 attach edited_text_file {\"snippet\":S}",
    "c1 <- u0 attach hook_success {\"stdout\":S}",
    "q1 <- u0 system local_command S",
    "q1 <- u0 system informational S {\"toolUseID\":\"t1\"}",
    "title S",
    "ai-title S",
    "tag S",
    "summary S leaf u0",
    "last-prompt S leaf u0",
    "queue enqueue S",
    "snapshot u0 {S:{\"backupFileName\":\"x@v1\",\"version\":1}}",
    "entry api-request {\"body\":{\"messages\":[{\"content\":S}]}}",
    "entry hologram {\"a\":{\"b\":[S]}}",
];

const START: &str = "u0 user \"go on\"\n";
const END: &str = "\nz1 <- u0 reply m9 text \"Done.\"\n";

fn planted(place: &str, secret: &str) -> Vec<u8> {
    log(&format!("{START}{}{END}", place.replace('S', secret)))
}

fn check_clean(what: &str, before: &[u8], after: &[u8], secret: &GeneratedSecret) {
    let text = String::from_utf8(after.to_vec()).unwrap();
    let decoded: String = text
        .lines()
        .map(|line| {
            let mut all = String::new();
            visit_strings(line, |text| {
                let is_text = !matches!(text.role, StringRole::Id | StringRole::Opaque);
                let is_clean = || RULES.find_in_member(text.key, &text.decoded()).is_empty();
                assert!(!is_text || is_clean(), "{what}: {}", text.inner);
                all.push_str(&text.decoded());
                all.push('\n');
            });
            all
        })
        .collect();
    assert!(!decoded.contains(&secret.secret), "{what}: {text}");
    let (before, after) = (Session::from_bytes(before), Session::from_bytes(after));
    let ids = |session: &Session| -> Vec<(Option<String>, Option<String>)> {
        let id = |entry: &Entry| (entry.uuid().map(Into::into), entry.parent_uuid().map(Into::into));
        session.entries().iter().map(id).collect()
    };
    assert_eq!(ids(&before), ids(&after), "{what}");
    let codes = |session: &Session| -> BTreeSet<Code> {
        session.findings().iter().map(|finding| finding.code).collect()
    };
    assert_eq!(codes(&before), codes(&after), "{what}");
    let calls = |session: &Session| -> Vec<(String, usize)> {
        session.tool_calls().iter().map(|call| (call.id.to_string(), call.results.len())).collect()
    };
    assert_eq!(calls(&before), calls(&after), "{what}");
    assert_eq!(
        before.replay(ClientVersion::NEWEST).map(|messages| messages.len()),
        after.replay(ClientVersion::NEWEST).map(|messages| messages.len())
    );
}

#[test]
fn no_secret_remains_in_any_place() {
    let mut n = 0;
    // Release builds test all of them.
    let step = if cfg!(debug_assertions) { 6 } else { 1 };
    for (at, secret) in secrets(11).iter().enumerate().step_by(step) {
        let mut notation = START.to_owned();
        for (place_no, place) in PLACES.iter().enumerate() {
            let mut place = (*place).to_owned();
            for id in ["u1", "a1", "r1", "t1", "m1", "p1", "c1", "q1"] {
                place = place.replace(id, &format!("{}n{place_no}", &id[..1]));
            }
            let string =
                if (place_no + at).is_multiple_of(3) { escaped(&secret.text) } else { quoted(&secret.text) };
            notation.push_str(&place.replace('S', &string));
            notation.push('\n');
            n += 1;
        }
        let before = log(&(notation + END));
        check_clean(secret.kind, &before, &clean(&before), secret);
    }
    assert!(n >= 900, "{n}");
}

#[test]
fn a_redacted_clone_contains_no_secret() {
    for (at, secret) in secrets(12).iter().enumerate().step_by(7) {
        let before = planted(PLACES[at % PLACES.len()], &quoted(&secret.text));
        let (bytes, refusals) = redacted(&before, new(), |plan| (plan.to_bytes(), plan.refusals().to_vec()));
        let place = PLACES[at % PLACES.len()];
        assert!(
            refusals.is_empty(),
            "{} in {place}: {refusals:?} {}",
            secret.kind,
            String::from_utf8_lossy(&bytes)
        );
        assert!(!String::from_utf8(bytes).unwrap().contains(&secret.secret), "{}", secret.kind);
    }
}

fn secret(kind: &str) -> GeneratedSecret {
    secrets(21).into_iter().find(|secret| secret.kind == kind).unwrap()
}

#[test]
fn a_secret_found_once_is_replaced_everywhere() {
    let password = secrets(5).into_iter().find(|secret| secret.text.starts_with("DB_PASSWORD=")).unwrap();
    let key = secret("private-key");
    let notation = format!(
        "u1 user {}\na1 <- u1 reply m1 text {}\nu2 <- a1 user {}\na2 <- u2 reply m2 tool t1 Edit\nr1 <- a2 result t1 \"ok\" {{\"lines\":{}}}\n",
        quoted(&password.text),
        quoted(&format!("So it is {}.", password.secret)),
        quoted(&format!("a line of it: {}", key.secret)),
        serde_json::Value::from(key.text.lines().map(|line| format!("+{line}")).collect::<Vec<_>>()),
    );
    let text = String::from_utf8(clean(&log(&notation))).unwrap();
    assert!(!text.contains(&password.secret) && !text.contains(&key.secret), "{text}");
    assert!(
        text.contains("So it is [secret:assignment:1].")
            && text.contains("a line of it: [secret:private-key:1]")
    );
}

#[test]
fn thinking_with_a_secret_is_removed_from_the_whole_reply() {
    let token = secret("github-token").secret;
    let signature = SeededRandom::new(3).text('b', 300);
    let notation = format!(
        "u1 user \"go\"\na1 <- u1 reply m1 thinking \"first\" \"{signature}\"\na2 <- a1 reply m1 [thinking \"use {token}\" \"{signature}\", text \"Yes.\"]\n\
         a3 <- a2 reply m1 redacted \"{signature}\"\nu2 <- a3 user \"on\"\na4 <- u2 reply m2 thinking \"other\" \"{signature}\"\na5 <- a4 reply m2 text \"Done.\"\n"
    );
    let after = clean(&log(&notation));
    let session = Session::from_bytes(&after);
    let lines: Vec<String> = session
        .entries()
        .iter()
        .map(|entry| {
            let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
            let kinds: Vec<String> =
                blocks.map(|block| block.kind().unwrap_or_default().into_owned()).collect();
            format!(
                "{} <- {} {}",
                entry.uuid().unwrap(),
                entry.parent_uuid().unwrap_or_default(),
                kinds.join("+")
            )
        })
        .collect();
    assert_eq!(lines, ["u1 <-  ", "a2 <- u1 text", "u2 <- a2 ", "a4 <- u2 thinking", "a5 <- a4 text"]);
    let text = String::from_utf8(after).unwrap();
    assert!(!text.contains(&token) && text.contains(&format!("\"other\",\"signature\":\"{signature}\"")));
}

#[test]
fn copied_thinking_with_a_secret_is_removed() {
    let token = secret("github-token").secret;
    let notation = format!(
        "u1 user \"go\"\np1 <- u1 progress agent {{\"message\":{{\"message\":{{\"content\":[{{\"type\":\"thinking\",\"thinking\":\"{token}\",\"signature\":\"x\"}},{{\"type\":\"text\",\"text\":\"hm\"}}]}}}}}}\na1 <- u1 reply m1 text \"Done.\"\n"
    );
    let text = String::from_utf8(clean(&log(&notation))).unwrap();
    assert!(text.contains(r#""content":[{"type":"text","text":"hm"}]"#), "{text}");
}

#[test]
fn signatures_images_and_ids_are_never_touched() {
    let token = secret("github-token").secret;
    let mut lot = SeededRandom::new(9);
    let sealed = format!("{}/{token}/{}", lot.text('b', 200), lot.text('b', 200));
    let notation = format!(
        "u1 user [text {}, {{\"type\":\"image\",\"source\":{{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"{sealed}\"}}}}]\n\
         a1 <- u1 reply m1 thinking \"hm\" \"{sealed}\"\na2 <- a1 reply m1 redacted \"{sealed}\"\na3 <- a2 reply m1 text \"ok\"\n",
        quoted(&token)
    );
    let before = log(&notation);
    let text = String::from_utf8(clean(&before)).unwrap();
    assert_eq!(text.matches(&sealed).count(), 3, "{text}");
    assert_eq!(text.matches("[secret:github-token:1]").count(), 1);
    // All lines but the first are unchanged.
    let lines = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).unwrap().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&before), lines(text.as_bytes()));
}

#[test]
fn broken_lines_and_other_files_are_redacted() {
    let token = secret("github-token").secret;
    let mut bytes = log("u1 user \"go\"\n");
    bytes.extend(format!("{{\"type\":\"user\",\"x\":\"{token}\n").bytes());
    let text = String::from_utf8(clean(&bytes)).unwrap();
    assert!(text.ends_with("{\"type\":\"user\",\"x\":\"[secret:github-token:1]\n"), "{text}");

    let mut redactor = Redactor::new(&RULES);
    let mut file = format!("key {token} and ").into_bytes();
    file.extend([0xFF, 0xFE]);
    file.extend(format!("\n{token}").bytes());
    assert_eq!(redactor.learn_file(&file).len(), 2);
    let clean = redactor.redact_file(&file).unwrap();
    assert_eq!(clean, b"key [secret:github-token:1] and \xFF\xFE\n[secret:github-token:1]");
    assert_eq!(redactor.redact_file(&clean), None);
}

#[test]
fn a_session_without_secrets_is_unchanged() {
    let mut notation = START.to_owned();
    for (at, text) in text_without_secrets(4).iter().enumerate() {
        let place = [PLACES[0], PLACES[12], PLACES[4]][at % 3];
        let mut place = place.to_owned();
        for id in ["u1", "a1", "r1", "t1", "m1"] {
            place = place.replace(id, &format!("{}n{at}", &id[..1]));
        }
        notation.push_str(&place.replace('S', &quoted(text)));
        notation.push('\n');
    }
    let before = log(&notation);
    assert_eq!(before, clean(&before));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 16 } else { 400 }))]
    #[test]
    fn redacting_twice_changes_nothing_and_untouched_lines_are_the_same(
        parts in proptest::collection::vec((0_usize..PLACES.len(), 0_usize..200, any::<bool>()), 1..6),
        seed in 1_u64..9,
    ) {
        let all = secrets(seed);
        let mut bytes = Vec::new();
        let mut plain = BTreeSet::new();
        for (place, at, bare) in parts {
            let text = if bare { "nothing to see".to_owned() } else { all[at % all.len()].text.clone() };
            let lines = planted(PLACES[place], &quoted(&text));
            if bare {
                plain.extend(lines.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
            }
            bytes.extend(lines);
        }
        let once = clean(&bytes);
        prop_assert_eq!(&once, &clean(&once));
        let after: BTreeSet<&[u8]> = once.split(|byte| *byte == b'\n').collect();
        for line in &plain {
            prop_assert!(after.contains(&line[..]));
        }
    }
}

#[test]
fn a_pending_reply_is_removed_with_its_thinking() {
    let secret = &secrets(5)[0];
    let before = log(&format!(
        "u1 user \"go\"\na1 <- u1 reply m1 thinking \"Fine.\" \"sig\"\na2 <- a1 reply m1 tool t1 Bash\nr1 <- a2 result t1 \"ok\"\n\
         a3 <- r1 reply m2 thinking {} \"sig\"\na4 <- a3 reply m2 tool t2 Bash\nr2 <- a4 result t2 \"ok\"\n",
        quoted(&secret.text)
    ));
    for target in [PlanTarget::InPlace, new()] {
        redacted(&before, target, |plan| {
            assert_eq!(plan.refusals(), [""; 0]);
            let left = Session::from_bytes(&plan.to_bytes());
            assert_eq!(left.entries().iter().filter(|entry| entry.uuid().is_some()).count(), 4);
            assert!(
                left.replay(ClientVersion::NEWEST)
                    .unwrap()
                    .iter()
                    .any(|message| message.content[0].kind() == "thinking")
            );
            let why = "pending reply without its thinking";
            assert_eq!(
                plan.changes().filter(|change| change.reasons.iter().any(|reason| reason == why)).count(),
                2
            );
        });
    }
}

#[test]
fn redaction_keeps_token_counts() {
    let secret = &secrets(5)[0];
    let before = log(&format!(
        "u1 user {}\na1 <- u1 reply m1 text \"Yes.\" usage={{\"input_tokens\":70,\"output_tokens\":9}}\n",
        quoted(&secret.text)
    ));
    let after = redacted(&before, PlanTarget::InPlace, |plan| plan.to_bytes());
    assert!(String::from_utf8(after).unwrap().contains("\"input_tokens\":70"));
}

#[test]
fn a_string_that_is_a_secret_only_under_one_key_is_found_after_its_copies() {
    let password = ["mVq3", "xT81", "pLz0"].concat();
    let mut state = 7_u32;
    let mut letter = || {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) % (1 << 31);
        char::from(LETTERS[(state >> 16) as usize % LETTERS.len()])
    };
    let long: String = (0..300).map(|_| letter()).collect();
    for secret in [password, long] {
        // The string and its copies are in one line, and the name is in the same or in a later line.
        let copies = format!("{{\"a\":\"{secret}\",\"b\":\"{secret}\",\"c\":[\"{secret}\"]}}");
        let named = format!("{{\"a\":\"{secret}\",\"password\":\"{secret}\"}}");
        let log = format!("{copies}\n{copies}\n{named}\n{named}\n");
        let mut redactor = Redactor::new(&RULES);
        let hits = redactor.learn_log(log.as_bytes());
        assert_eq!(hits.len(), 2, "{secret}");
        redactor.finish_learning();
        let clean = String::from_utf8(redactor.mask_log(log.as_bytes(), None).unwrap()).unwrap();
        assert!(!clean.contains(secret.as_str()), "{clean}");
    }
}

#[test]
fn a_masked_log_keeps_every_byte_around_its_secrets() {
    let secret = &secrets(5)[0].text;
    let before = "{\"type\":\"x\"}\r\n\n{\"a\":1}{\"b\":2}\nnot JSON\n";
    let line = format!("{{\"text\":{},\"more\":\"kept\"}}", quoted(secret));
    for (start, end) in [("", ""), (before, "\n"), ("", "\n{\"z\":\"end\"}"), (before, "\n\n")] {
        let log = format!("{start}{line}{end}");
        let mut redactor = Redactor::new(&RULES);
        redactor.learn_log(log.as_bytes());
        redactor.finish_learning();
        let clean = String::from_utf8(redactor.mask_log(log.as_bytes(), None).unwrap()).unwrap();
        let rest = clean.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)).unwrap();
        assert!(rest.starts_with("{\"text\":\"") && rest.ends_with("\",\"more\":\"kept\"}"), "{rest}");
        assert!(!clean.contains(&quoted(secret)));
    }
    let mut redactor = Redactor::new(&RULES);
    redactor.learn_log(before.as_bytes());
    redactor.finish_learning();
    assert_eq!(redactor.mask_log(before.as_bytes(), None), None);
    // Bytes that are not UTF-8 are replaced only in lines with a secret.
    let bytes = [b"{\"a\":\"\xff\"}\n{\"b\":\"\xff ", secret.as_bytes(), b"\"}\n{\"c\":\"\xff\"}"].concat();
    let mut redactor = Redactor::new(&RULES);
    redactor.learn_log(&bytes);
    redactor.finish_learning();
    let clean = redactor.mask_log(&bytes, None).unwrap();
    assert!(clean.starts_with(b"{\"a\":\"\xff\"}\n{\"b\":\"\xef\xbf\xbd "));
    assert!(clean.ends_with(b"\"}\n{\"c\":\"\xff\"}"));
    assert!(!clean.windows(secret.len()).any(|part| part == secret.as_bytes()));
}

/// A line that nothing refers to is neither a duplicate nor a branch.
#[test]
fn lines_without_a_uuid_stay() {
    let mut text = String::new();
    let progress = |n: usize| {
        format!(r#"{{"type":"progress","sessionId":"s1","data":{{"type":"bash_progress","n":{n}}}}}"#) + "\n"
    };
    let system = r#"{"type":"system","subtype":"informational","content":"x","sessionId":"s1"}"#;
    text.push_str(std::str::from_utf8(&log("u1 user \"go\"")).unwrap());
    text.push_str(&progress(1));
    text.push_str(&format!("{system}\n{system}\n"));
    text.push_str(
        std::str::from_utf8(&log("u1 user \"go\"\na1 <- u1 reply m1 text \"Done.\""))
            .unwrap()
            .split_once('\n')
            .unwrap()
            .1,
    );
    text.push_str(&progress(2));
    redacted(text.as_bytes(), PlanTarget::InPlace, |plan| {
        assert_eq!(String::from_utf8(plan.to_bytes()).unwrap(), text);
        assert_eq!(plan.changes().count(), 0);
    });
}

#[test]
fn thinking_with_very_many_secrets_is_redacted() {
    let token = secret("github-token").secret;
    let n = 250;
    let members = format!(r#","thinking":"{token}""#).repeat(n);
    let nested =
        format!(r#"{{"type":"thinking","thinking":"{token}","x":["#).repeat(n) + "1" + &"]}".repeat(n);
    let line =
        |content: String| format!(r#"{{"type":"assistant","message":{{"id":"m1","content":[{content}]}}}}"#);
    let copies = format!(r#"{{"type":"progress","data":[{nested}]}}"#);
    for line in [line(format!(r#"{{"type":"thinking"{members}}}"#)), line(nested), copies] {
        let result = clean(format!("{line}\n").as_bytes());
        assert!(!String::from_utf8(result).unwrap().contains(&token));
    }
}

#[test]
fn every_line_of_a_long_reply_has_a_secret_in_its_thinking() {
    let token = secret("github-token").secret;
    let line = |i| format!("a{i} <- a{} reply m1 thinking \"{token}\" \"sig\"\n", i - 1);
    let reply: String = (1..3000).map(line).collect();
    let bytes = log(&format!("u1 user \"go\"\na0 <- u1 reply m1 text \"hm\"\n{reply}"));
    assert_eq!(Session::from_bytes(&clean(&bytes)).entries().len(), 2);
}
