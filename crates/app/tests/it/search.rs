//! Search over the sessions of a home.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use jiff::Zoned;
use jiff::tz::TimeZone;
use threadline_app::search::{SearchLimits, match_object, summary};
use threadline_app::{App, Mask};
use threadline_search::{Query, ScanEvent};
use threadline_testkit::{TestHome, session_uuid};

use crate::app;

#[test]
fn hits_become_objects_and_prompts_rank_first() {
    let home = TestHome::new();
    home.session("reply", "u1 user \"go\"\na1 <- u1 reply m1 text \"The loom is slow, slow, slow.\"");
    home.session_in("/home/ada/other", "prompt", "u1 user \"why is the loom slow?\"");
    let app = app(&home);
    let now = Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC);
    let query = Query::parse("loom", &now).unwrap();
    let scope = app.search_scope(Some(&query), None);
    let mut order = Vec::new();
    let ranked =
        scope.search_by_relevance(&query, SearchLimits::default(), &AtomicBool::new(false), &mut |event| {
            if let ScanEvent::End(at) = event {
                order.push(scope.sessions[at].id.clone());
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
    let Ok(()) = ranked;
    assert_eq!(order, [session_uuid("prompt"), session_uuid("reply")]);
    let mut matches = Vec::new();
    let done = scope.search(&query, SearchLimits::default(), &AtomicBool::new(false), &mut |event| {
        if let ScanEvent::Match(at, found) = event {
            let object = match_object(&scope.sessions[at], &found).unwrap();
            matches.push(format!("{} {} {}", object.kind, object.line, object.text));
        }
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    });
    let Ok(()) = done;
    matches.sort();
    assert_eq!(matches, ["prompt 1 why is the loom slow?", "reply 2 The loom is slow, slow, slow."]);
    let other = app.search_scope(None, Some("other")).sessions;
    assert_eq!(other.len(), 1);
    assert_eq!(summary(&other[0]).unwrap().title().as_deref(), Some("why is the loom slow?"));
}

#[test]
fn relevance_combines_the_number_of_matches_with_recency() {
    let home = TestHome::new();
    home.session("old", "u1 user \"the loom\"");
    home.session("new", "u1 user \"the loom\" @+60000m");
    let many = (1..9).map(|n| format!("u{n} user \"a loom\"\n")).collect::<String>();
    home.session("many", &many);
    let app = app(&home);
    let query = Query::parse("loom", &Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC)).unwrap();
    let scope = app.search_scope(Some(&query), None);
    let (mut order, mut matches, mut counted) = (Vec::new(), 0, 0);
    let limits = SearchLimits { max_shown: 2, ..SearchLimits::default() };
    let ranked = scope.search_by_relevance(&query, limits, &AtomicBool::new(false), &mut |event| {
        match event {
            ScanEvent::End(at) => order.push(scope.sessions[at].id.clone()),
            ScanEvent::Match(..) => matches += 1,
            ScanEvent::Counted(_, count) => counted += count,
            _ => {}
        }
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    });
    let Ok(()) = ranked;
    assert_eq!(order, ["many", "new", "old"].map(session_uuid));
    assert_eq!((matches, counted), (4, 6));
}

#[test]
fn a_session_without_its_own_log_was_last_active_when_its_agents_were() {
    let home = TestHome::new();
    let path = home.session("gone", "u1 user \"the loom\"");
    home.agent("gone", "a1b2c3", "x1 user \"a loom\"", None);
    std::fs::remove_file(path).unwrap();
    home.session("there", "u1 user \"the loom\" @+5m");
    let scope = app(&home).search_scope(None, None);
    let ids: Vec<_> =
        scope.newest_first().into_iter().map(|session| scope.sessions[session].id.clone()).collect();
    assert_eq!(ids, ["there", "gone"].map(session_uuid));
}

#[test]
fn a_session_is_searched_up_to_a_number_of_hits_besides_copies() {
    let home = TestHome::new();
    let line = |n: usize| format!("{} user \"loom {n}\" @+{n}m\n", session_uuid(&format!("u{n}")));
    let lines: String = (1..4).map(line).collect();
    home.session("origin", &lines);
    home.session("fork", &format!("{lines}{}", line(4)));
    let app = app(&home);
    let query = Query::parse("loom", &Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC)).unwrap();
    let scope = app.search_scope(Some(&query), None);
    let limits = SearchLimits { max_found: 2, ..SearchLimits::default() };
    let mut matches = Vec::new();
    let mut on_event = |event| {
        if let ScanEvent::Match(_, found) = event {
            matches.push(found.details.unwrap().text);
        }
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    };
    let Ok(()) = scope.search(&query, limits, &AtomicBool::new(false), &mut on_event);
    assert_eq!(matches, ["loom 4", "loom 1", "loom 2"]);
}

#[test]
fn a_cancelled_search_ends() {
    let home = TestHome::new();
    home.session("one", "u1 user \"a loom\"");
    let app = app(&home);
    let query = Query::parse("loom", &Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC)).unwrap();
    let scope = app.search_scope(Some(&query), None);
    let mut n_matches = 0;
    let mut on_event = |event| {
        n_matches += usize::from(matches!(event, ScanEvent::Match(..)));
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    };
    let limits = SearchLimits::default();
    let Ok(()) = scope.search_by_relevance(&query, limits, &AtomicBool::new(true), &mut on_event);
    assert_eq!(n_matches, 0);
}

#[test]
fn copies_in_forks_are_counted_once_for_the_oldest_session() {
    let home = TestHome::new();
    let line = |n: usize| format!("{} user \"loom {n}\" @+{n}m\n", session_uuid(&format!("u{n}")));
    let lines = |n: usize| (1..=n).map(line).collect::<String>();
    home.session("none", "u1 user \"no match\" @+9m");
    home.session("newest", &lines(4));
    home.session("newer", &lines(3));
    let oldest = home.session("oldest", &lines(2));
    // The time of the last message decides, not that of the file.
    let file = std::fs::File::options().append(true).open(oldest).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000)).unwrap();
    let app = app(&home);
    let query = Query::parse("loom", &Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC)).unwrap();
    for limits in [
        SearchLimits::default(),
        SearchLimits { context: None, ..SearchLimits::default() },
        SearchLimits { max_shown: 1, ..SearchLimits::default() },
    ] {
        let scope = app.search_scope(Some(&query), None);
        let (mut counts, mut n_matches, mut n_copies) = (Vec::new(), 0, 0);
        let mut on_event = |event| {
            match event {
                ScanEvent::Match(..) => n_matches += 1,
                ScanEvent::Counted(_, count) => n_matches += count,
                ScanEvent::Copy => n_copies += 1,
                ScanEvent::End(at) if n_matches > 0 => {
                    counts.push((scope.sessions[at].id.clone(), std::mem::take(&mut n_matches)));
                }
                _ => {}
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        };
        let Ok(()) = scope.search_by_relevance(&query, limits, &AtomicBool::new(false), &mut on_event);
        assert_eq!(
            counts,
            [("oldest", 2), ("newest", 1), ("newer", 1)].map(|(name, n)| (session_uuid(name), n))
        );
        assert_eq!(n_copies, 5, "{limits:?}");
    }
}

#[test]
fn the_last_active_session_comes_first_even_if_another_was_modified_later() {
    let home = TestHome::new();
    let touch = |name: &str, text: &str, minutes: u64| {
        let path = home.session(name, text);
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000 - 60 * minutes))
            .unwrap();
    };
    touch("without", "u1 user \"warp\"", 1);
    touch("first", "u1 user \"a loom\" @+1m", 2);
    touch("last", "u1 user \"a loom\" @+9m", 3);
    touch("between", "u1 user \"a loom\" @+5m", 4);
    let app = app(&home);
    let query = Query::parse("loom", &Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC)).unwrap();
    let scope = app.search_scope(Some(&query), None);
    let (mut order, mut n_ends) = (Vec::new(), 0);
    let mut on_event = |event| {
        match event {
            ScanEvent::Match(at, _) => order.push(scope.sessions[at].id.clone()),
            ScanEvent::End(_) => n_ends += 1,
            _ => {}
        }
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    };
    let Ok(()) = scope.search(&query, SearchLimits::default(), &AtomicBool::new(false), &mut on_event);
    assert_eq!(order, ["last", "between", "first"].map(session_uuid));
    assert_eq!(n_ends, 4);
    let absent = Query::parse("heddle", &Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC)).unwrap();
    let scope = app.search_scope(Some(&absent), None);
    let mut on_event = |_| Ok::<_, Infallible>(ControlFlow::Continue(()));
    let Ok(()) = scope.search(&absent, SearchLimits::default(), &AtomicBool::new(false), &mut on_event);
    assert!(scope.sessions.iter().all(|session| session.ends.get().is_none()), "no log is read twice");
}

/// Returns the texts of all matches, by relevance, with secrets masked.
fn masked_hits(app: &App, query: &str) -> Vec<String> {
    let app = app.with_mask(Mask::built_in());
    let query = Query::parse(query, &Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC)).unwrap();
    let scope = app.search_scope(Some(&query), None);
    let mut texts = Vec::new();
    let mut on_event = |event| {
        if let ScanEvent::Match(_, found) = event {
            let found = found.details.unwrap();
            assert!(found.ranges.iter().all(|range| found.text.is_char_boundary(range.end)));
            texts.push(found.text);
        }
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    };
    let Ok(()) =
        scope.search_by_relevance(&query, SearchLimits::default(), &AtomicBool::new(false), &mut on_event);
    texts
}

#[test]
fn hits_are_masked_with_the_secrets_of_the_whole_session() {
    let home = TestHome::new();
    home.session(
        "loom",
        r#"u1 user "the loom uses Hunter22secret, Heddle%2342%2Fweft and 8fj2Lq0Zx71P"
a1 <- u1 reply m1 tool t1 Bash {"command":"mysql -u root -pHunter22secret cloth"}
r1 <- a1 result t1 "DB_PASSWORD=Heddle#42/weft\nPORT=80\n"
u2 <- r1 user "the loom again: Hunter22secret"
"#,
    );
    home.agent(
        "loom",
        "a1b2c3d",
        "x1 user \"go\"\nx2 <- x1 reply n1 text \"curl -u ada:8fj2Lq0Zx71P https://cloth\"",
        None,
    );
    home.session("other", "u1 user \"the loom has a Hunter22secret of its own\"");
    let mut texts = masked_hits(&app(&home), "loom");
    texts.sort();
    assert_eq!(
        texts,
        [
            "the loom again: [secret:password]",
            // No line of this session identifies it as a password.
            "the loom has a Hunter22secret of its own",
            "the loom uses [secret:password], [secret:assignment] and [secret:password]",
        ]
    );
}

#[test]
fn all_of_very_many_hits_are_masked() {
    let home = TestHome::new();
    // The logs are searched for the secrets of the first matches, and completely for those of the others.
    let matches: String =
        (0..4000).map(|n| format!("u{n} user \"the loom uses Hunter22secret\"\n")).collect();
    let login = r#"a1 reply m1 tool t1 Bash {"command":"mysql -u root -pHunter22secret cloth"}"#;
    home.session("loom", &format!("{matches}{login}\n"));
    let texts = masked_hits(&app(&home), "loom");
    assert_eq!(texts, vec!["the loom uses [secret:password]"; 4000]);
}

#[test]
fn a_secret_that_a_pattern_matches_is_masked() {
    let home = TestHome::new();
    home.session(
        "loom",
        r#"u1 user "export SERVICE_PASSWORD=kQ8zR4tVbN2xLm7pWs5d!q"
u2 <- u1 user "value seen: kQ8zR4tVbN2xLm7pWs5d!q ."
"#,
    );
    for query in ["/./", "value /./", "/./ value", "/kQ.*q/", "/[^ ]+/"] {
        let texts = masked_hits(&app(&home), query);
        assert!(!texts.is_empty() && texts.iter().all(|text| !text.contains("kQ8z")), "{query}: {texts:?}");
    }
}

#[test]
fn a_secret_at_the_edge_of_a_hit_is_masked() {
    let home = TestHome::new();
    let token = threadline_testkit::secrets(3).into_iter().find(|one| one.kind == "anthropic-key").unwrap();
    let (head, tail) = ("weft ".repeat(52), "warp ".repeat(70));
    let token = token.secret;
    home.session("end", &format!("u1 user \"loom {head}{token} {tail}\""));
    home.session("start", &format!("u1 user \"{tail}{token} {} loom\"", "weft ".repeat(20)));
    let texts = masked_hits(&app(&home), "loom");
    assert_eq!(texts.len(), 2);
    for text in texts {
        let part = (0..token.len() - 12).find(|at| text.contains(&token[*at..at + 12]));
        assert_eq!(part, None, "{text}");
        assert!(text.contains("[secret:anthropic-key]"), "{text}");
    }
}

#[test]
fn a_secret_at_the_gap_between_two_excerpts_is_masked() {
    let home = TestHome::new();
    let token = threadline_testkit::secrets(3).into_iter().find(|one| one.kind == "anthropic-key").unwrap();
    let token = token.secret;
    // The gap is within one of the tokens, wherever it is exactly.
    for spaces in 0..12 {
        let (pad, filler) = (" ".repeat(spaces), "x ".repeat(400));
        let text = format!("loom {pad}{token} {token} {token} {filler}{token} {token}{pad} weft");
        home.session("far", &format!("u1 user \"{text}\""));
        for text in masked_hits(&app(&home), "loom weft") {
            assert!(text.contains(" … ") && text.contains("[secret:anthropic-key]"), "{text}");
            let part = (0..token.len() - 12).find(|at| text.contains(&token[*at..at + 12]));
            assert_eq!(part, None, "{text}");
        }
    }
}

#[test]
fn many_hits_of_a_session_are_masked_and_reported_in_order() {
    let home = TestHome::new();
    let mut log = "u0 user \"DB_PASSWORD=Heddle42weft\"\n".to_owned();
    for n in 1..100 {
        log.push_str(&format!("u{n} <- u{} user \"loom {n:03} Heddle42weft\"\n", n - 1));
    }
    home.session("loom", &log);
    let expected: Vec<String> = (1..100).map(|n| format!("loom {n:03} [secret:assignment]")).collect();
    assert_eq!(masked_hits(&app(&home), "loom"), expected);
}
