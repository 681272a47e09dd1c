//! Health checks.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use threadline_testkit::TestHome;

use crate::app;

#[test]
fn a_session_and_a_home_have_the_same_findings() {
    let home = TestHome::new();
    let log = home.session("torn", "u1 user \"hi\"\na1 <- u1 reply m1 text \"yes\"");
    home.agent("torn", "one", "u1 user \"look\"", None);
    std::fs::File::options().append(true).open(&log).unwrap().write_all(b"{\"torn\":").unwrap();
    let app = app(&home);
    let n_steps = AtomicUsize::new(0);
    let step = || {
        n_steps.fetch_add(1, Ordering::Relaxed);
    };
    let all = app.check_targets(&[], SystemTime::UNIX_EPOCH).unwrap().check(&step);
    assert_eq!((all.n_logs, n_steps.into_inner()), (2, 2));
    assert!(all.unread.is_empty());
    let mut one = app.session_to_check(app.find("last").unwrap()).check(&|| ());
    let about = |findings: &[(std::sync::Arc<std::path::Path>, threadline_entry::Finding)]| {
        findings.iter().filter(|(path, _)| **path == *log).map(|(_, found)| found.code).collect::<Vec<_>>()
    };
    assert!(!about(&all.findings).is_empty());
    assert_eq!(about(&all.findings), about(&one.findings));
    assert!(!one.take(&log).is_empty());
    assert!(about(&one.findings).is_empty());
    assert!(app.check_targets(&["nobody".to_owned()], SystemTime::UNIX_EPOCH).is_err());
}

#[test]
fn notes_are_no_problems_and_unreadable_sub_agents_are_reported() {
    let home = TestHome::new();
    home.session("moved", "u1 user \"hi\"\na1 <- u1 reply m1 text \"yes\" cwd=/elsewhere");
    let id = threadline_testkit::session_uuid("moved");
    // A file in the place of the folder.
    home.file(format!("projects/-home-ada-loom/{id}/subagents"), "");
    let app = app(&home);
    let mut report = app.session_to_check(app.find("last").unwrap()).check(&|| ());
    assert_eq!((report.totals(), report.n_problems()), ("no problems found, 1 note".to_owned(), 0));
    assert_eq!((report.remove_notes(), report.totals()), (1, "no problems found".to_owned()));
    assert_eq!(report.unread.len(), 1);
    let all = app.check_targets(&[], SystemTime::UNIX_EPOCH).unwrap().check(&|| ());
    assert_eq!(all.unread.len(), 1);
}
