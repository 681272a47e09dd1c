//! Tests of the relations between sessions.

use threadline_session::{EntryIndex, ForkPoint, Session, fork_point};
use threadline_testkit::log_of;

use crate::render::session;

const FIRST: &str = r#"
u1        user   "hello"
a1 <- u1  reply  m1 text "Hi."
u2 <- a1  user   "left"
a2 <- u2  reply  m2 text "Left."
"#;

#[test]
fn a_fork_copies_the_beginning_under_the_same_uuids() {
    let first = Session::from_bytes(&log_of("s1", FIRST));
    let later = Session::from_bytes(&log_of(
        "s2",
        r#"
queue dequeue
u1        user   "hello"            cwd=/home/ada/elsewhere
a1 <- u1  reply  m1 text "Hi."      cwd=/home/ada/elsewhere
u3 <- a1  user   "right"
"#,
    ));
    assert_eq!(
        fork_point(&first, &later),
        Some(ForkPoint { shared: 2, last_shared: EntryIndex::from_position(2) })
    );
    assert_eq!(later.id().as_deref(), Some("s2"));
}

#[test]
fn sessions_without_shared_entries_are_not_forks() {
    let other = session("x1 user \"hello\"\ny1 <- x1 reply m9 text \"Hi.\"");
    assert_eq!(fork_point(&session(FIRST), &other), None);
    assert_eq!(fork_point(&Session::new(), &other), None);
    assert_eq!(fork_point(&other, &Session::new()), None);
}

#[test]
fn a_fork_may_record_its_origin() {
    let marked = session(r#"u9 user "hello" +{"forkedFrom":{"sessionId":"s0","messageUuid":"u1"}}"#);
    assert_eq!(marked.forked_from().as_deref(), Some("s0"));
    assert_eq!(session(FIRST).forked_from(), None);
}

/// Returns the previous session of a session with this id.
fn previous(id: &str, notation: &str) -> Option<String> {
    let mut session = Session::with_id(id);
    for entry in self::session(notation).entries() {
        session.push(entry.clone(), Vec::new());
    }
    session.previous_session()
}

#[test]
fn the_first_line_may_have_the_id_of_the_previous_session() {
    // The id changes in mid-conversation, as when plan mode ends.
    assert_eq!(
        previous("s2", "u1 user \"go\" session=s1\na1 <- u1 reply m1 text \"On.\" session=s2").as_deref(),
        Some("s1")
    );
    assert_eq!(previous("s1", "u1 user \"go\" session=s1"), None);
    assert_eq!(previous("s2", "snapshot u1\nu1 user \"go\" session=s2"), None);
    assert_eq!(previous("s2", "raw \nu1 user \"go\" session=s1").as_deref(), Some("s1"));
    assert_eq!(previous("s2", ""), None);
}

#[test]
fn without_a_file_name_the_last_line_determines_the_id() {
    let session =
        session("u1 user \"go\" session=s1\na1 <- u1 reply m1 text \"On.\" session=s2\nsnapshot u1");
    assert_eq!(session.id().as_deref(), Some("s2"));
    assert_eq!(session.previous_session().as_deref(), Some("s1"));
    assert_eq!(self::session("snapshot u1").id(), None);
}
