//! Search over the sessions of a home.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use jiff::Zoned;
use jiff::tz::TimeZone;
use threadline_app::search::{hit_object, summary};
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
    let order: Vec<_> = scope.ranked(&query).into_iter().map(|at| scope.sessions[at].id.clone()).collect();
    assert_eq!(order, [session_uuid("prompt"), session_uuid("reply")]);
    let mut hits = Vec::new();
    let done = scope.search(&query, Some(0), &AtomicBool::new(false), &mut |event| {
        if let ScanEvent::Hit(at, hit) = event {
            let object = hit_object(&scope.sessions[at], &hit).unwrap();
            hits.push(format!("{} {} {}", object.kind, object.line, object.text));
        }
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    });
    let Ok(()) = done;
    hits.sort();
    assert_eq!(hits, ["prompt 1 why is the loom slow?", "reply 2 The loom is slow, slow, slow."]);
    let other = app.search_scope(None, Some("other")).sessions;
    assert_eq!(other.len(), 1);
    assert_eq!(summary(&other[0]).unwrap().title().as_deref(), Some("why is the loom slow?"));
}
