//! Lines beyond the limits: they stay as they are, or the edit is refused.

use threadline_edit::{PlanTarget, Redactor, Repair, StripPreset, clone, relocate, strip};
use threadline_secret::Rules;
use threadline_session::Session;
use threadline_testkit::{log, secrets};

use crate::support::{new, options, plan, session};

/// A conversation with a line that has too many levels. `text` is a part of that line.
fn with_deep_line(text: &str) -> (Vec<u8>, String) {
    let deep = format!(r#"{{"type":"mode","mode":"{text}","x":{}{}}}"#, "[".repeat(600), "]".repeat(600));
    let talk = "u1 user \"go\"\na1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"ok\"\n\
                a2 <- r1 reply m2 text \"Done.\"\n";
    (log(&format!("{talk}raw {deep}\nu2 <- a2 user \"and?\"\na3 <- u2 reply m3 text \"Yes.\"\n")), deep)
}

#[test]
fn edits_of_a_log_keep_lines_beyond_the_limits() {
    let (bytes, deep) = with_deep_line("plan");
    let source = session(&bytes);
    assert!(source.entries().iter().any(|entry| entry.is_over_limit()));
    let stripped = plan(&source, PlanTarget::InPlace, |draft| {
        strip(draft, &StripPreset::Extreme.options(), "x");
    });
    assert!(stripped.refusals().is_empty(), "{:?}", stripped.refusals());
    let stripped = String::from_utf8(stripped.to_bytes()).unwrap();
    assert!(stripped.contains(&deep) && !stripped.contains("tool_use"));
    let shape = options(PlanTarget::InPlace);
    let torn = [&bytes[..], b"{\"torn\n"].concat();
    let (readable, repair) = Repair::start(session(&torn), &shape.seed);
    let repaired = String::from_utf8(repair.draft(&readable).plan(shape).to_bytes()).unwrap();
    assert!(repaired.contains(&deep) && !repaired.contains("torn"));
}

#[test]
fn edits_that_change_every_line_are_refused() {
    let (bytes, _) = with_deep_line("plan");
    let source = session(&bytes);
    let cloned = plan(&source, new(), |draft| clone(draft, None, Some("T")).unwrap());
    let expected = ["line 5: the line exceeds the limits, so it cannot be changed"];
    assert_eq!(cloned.refusals(), expected);
    let moved = plan(&source, PlanTarget::KeepOrder, |draft| {
        relocate(draft, "/a", "/b");
    });
    assert_eq!(moved.refusals(), expected);
}

#[test]
fn secrets_in_lines_beyond_the_limits_are_replaced() {
    let rules = Rules::new();
    let token = secrets(1).into_iter().find(|secret| secret.kind == "github-token").unwrap().secret;
    let (bytes, _) = with_deep_line(&token);
    let redacted = |learns: bool| {
        let mut redactor = Redactor::new(&rules);
        if learns {
            redactor.learn(&Session::from_bytes(&bytes));
            redactor.finish_learning();
        }
        [redactor.redact_log(&bytes), redactor.mask_log(&bytes, None)]
    };
    for log in redacted(true).into_iter().chain(redacted(false)) {
        let log = String::from_utf8(log.unwrap()).unwrap();
        assert!(!log.contains(&token) && log.contains("[secret:github-token:1]"), "{log}");
    }
}
