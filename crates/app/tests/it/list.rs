//! Lists of sessions.

use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use threadline_app::{
    App, CardFilter, CardList, ListFilter, LiveSession, Mask, OverviewOptions, OverviewRange, SessionCounter,
    SessionSelector,
};
use threadline_secret::Rules;
use threadline_testkit::{TestHome, session_uuid};

use crate::app;

#[test]
fn lists_and_cards_have_the_same_sessions_and_headings() {
    let home = TestHome::new();
    home.session("titled", "u1 user \"first words\"\ntitle \"Slow loom\"");
    home.session("prompt", "u1 user \"why is it slow?\"");
    home.session_in("/home/ada/other", "other", "u1 user \"elsewhere\"");
    home.session("untitled", "");
    let app = app(&home);
    let counter = SessionCounter::new(app.prices().unwrap(), TimeZone::UTC, || ());
    let cards =
        CardList::default().list(&app, &counter, SystemTime::UNIX_EPOCH, Duration::from_secs(60)).cards;
    let mut cards: Vec<_> = cards.into_iter().map(|card| (card.id, card.title, card.project)).collect();
    let listed = app.list(&ListFilter::default()).found;
    let mut listed: Vec<_> = listed
        .iter()
        .map(|one| (one.file.id.to_string(), one.title().unwrap(), one.project().unwrap().to_owned()))
        .collect();
    cards.sort();
    listed.sort();
    assert_eq!(cards, listed);
    assert!(listed.iter().any(|(_, title, _)| title == "Slow loom"), "{listed:?}");
    assert_eq!(listed.len(), 3);
}

#[test]
fn filters_choose_by_project_and_limit_and_can_include_untitled_logs() {
    let home = TestHome::new();
    home.session("prompt", "u1 user \"why is it slow?\"");
    home.session_in("/home/ada/other", "other", "u1 user \"elsewhere\"");
    home.session("untitled", "");
    let app = app(&home);
    let ids = |filter: &ListFilter| {
        let mut ids: Vec<_> = app.list(filter).found.iter().map(|one| one.file.id.to_string()).collect();
        ids.sort();
        ids
    };
    let in_project = ListFilter { project: Some("other".to_owned()), ..ListFilter::default() };
    assert_eq!(ids(&in_project), [session_uuid("other")]);
    assert_eq!(ids(&ListFilter { limit: Some(1), ..ListFilter::default() }).len(), 1);
    let mut all = [session_uuid("other"), session_uuid("prompt"), session_uuid("untitled")];
    all.sort();
    assert_eq!(ids(&ListFilter { untitled: true, ..ListFilter::default() }), all);
}

/// Sets the modification time of a log.
fn touch(path: &std::path::Path, seconds: u64) {
    let file = std::fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[test]
fn the_last_message_decides_the_order_and_not_the_modification_time() {
    let home = TestHome::new();
    let older = home.session("older", "u1 user \"first\"");
    let newer = home.session("newer", "u1 user \"second\" @+5m");
    touch(&newer, 1_000_000_000);
    touch(&older, 2_000_000_000);
    let app = app(&home);
    let expected = [session_uuid("newer"), session_uuid("older")];
    let listed = |untitled: bool| -> Vec<String> {
        let filter = ListFilter { untitled, ..ListFilter::default() };
        app.list(&filter).found.iter().map(|one| one.file.id.to_string()).collect()
    };
    assert_eq!(listed(false), expected);
    assert_eq!(listed(true), expected);
    assert_eq!(*app.find("last").unwrap().id, *session_uuid("newer"));
    let scope = app.search_scope(None, None);
    let searched: Vec<_> =
        scope.newest_first().into_iter().map(|one| scope.sessions[one].id.clone()).collect();
    assert_eq!(searched, expected);
    let counter = SessionCounter::new(app.prices().unwrap(), TimeZone::UTC, || ());
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_010);
    let cards = CardList::default().list(&app, &counter, now, Duration::from_secs(60)).cards;
    let cards: Vec<_> = cards.into_iter().map(|card| (card.id, card.last_active, card.live)).collect();
    let [first, last] = expected;
    assert_eq!(cards, [(first, 1_767_261_900_000, false), (last, 1_767_261_600_000, false)]);
}

#[test]
fn a_session_is_live_if_both_its_log_and_its_last_message_are_recent() {
    let home = TestHome::new();
    let seconds = 1_767_261_600; // The time of the message.
    let path = home.session("loom", "u1 user \"weave\"");
    let app = app(&home);
    let is_live = |modified: u64, now: u64| {
        touch(&path, modified);
        let counter = SessionCounter::new(app.prices().unwrap(), TimeZone::UTC, || ());
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now);
        CardList::default().list(&app, &counter, now, Duration::from_secs(60)).cards[0].live
    };
    assert!(is_live(seconds, seconds + 60));
    assert!(!is_live(seconds, seconds + 3600));
    // A copy is new, but not in use.
    assert!(!is_live(seconds + 3590, seconds + 3600));
}

#[cfg(unix)]
#[test]
fn a_log_that_cannot_be_read_is_named_once() {
    let home = TestHome::new();
    let path = home.session("loom", "u1 user \"weave\"");
    let circle = path.with_file_name(format!("{}.jsonl", session_uuid("circle")));
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    let app = app(&home);
    let options = threadline_app::FigureOptions::default();
    let (cards, unread) = app
        .list_cards(&Default::default(), &TimeZone::UTC, Some(&options), SystemTime::UNIX_EPOCH, &|_| ())
        .unwrap();
    assert_eq!((cards.len(), unread.len()), (1, 1), "{unread:?}");
}

/// A call that has been running for longer than the limit for recent messages.
#[test]
#[cfg(unix)]
fn a_session_that_a_process_has_open_is_live_everywhere() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"make\"}");
    let app = app(&home);
    // Long after the last message and the modification of the log.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    let states = || {
        let counter = SessionCounter::new(app.prices().unwrap(), TimeZone::UTC, || ());
        let cards = CardList::default().list(&app, &counter, now, Duration::from_secs(60)).cards;
        let facts = app.overview_facts(&OverviewOptions::default(), now, &|| ()).unwrap();
        let now = jiff::Zoned::now();
        let range = OverviewRange::parse(None, None, "30d", &now).unwrap();
        let overview = facts.overview(&range, &now, &app);
        let file = app.find("last").unwrap();
        let open = LiveSession::open(file.clone(), app.prices().unwrap(), Mask::default()).unwrap();
        let builder_time = app.load(&file).unwrap().transcript_builder(&|_| None).live_at;
        (cards[0].live, overview.live.len(), open.is_live(), builder_time.is_some())
    };
    assert_eq!(states(), (false, 0, false, false));
    let file = app.find("last").unwrap();
    let mut open = LiveSession::open(file, app.prices().unwrap(), Mask::default()).unwrap();
    let mut is_running = || {
        open.update().unwrap();
        open.page_layout(&SessionSelector::default()).unwrap().layout.has_running_calls()
    };
    assert!(!is_running());
    let (pid, id) = (std::process::id(), session_uuid("loom"));
    home.file(format!("sessions/{pid}.json"), format!("{{\"pid\":{pid},\"sessionId\":\"{id}\"}}"));
    assert_eq!(states(), (true, 1, true, true));
    assert!(is_running(), "without a new line");
}

#[test]
fn titles_are_masked_with_the_secrets_of_the_whole_session() {
    let home = TestHome::new();
    home.session(
        "loom",
        r#"u1 user "rotate Hunter22secret on the loom"
a1 <- u1 reply m1 tool t1 Bash {"command":"mysql -u root -pHunter22secret cloth"}
"#,
    );
    home.session("other", "u1 user \"keep Hunter22secret of another session\"");
    let mask = Mask::new(Rules::new());
    let app = app(&home).with_mask(mask);
    let titles = |app: &App| {
        let zone = TimeZone::UTC;
        let (cards, _) =
            app.list_cards(&CardFilter::default(), &zone, None, SystemTime::UNIX_EPOCH, &|_| ()).unwrap();
        let mut texts: Vec<String> =
            cards.into_iter().flat_map(|card| [Some(card.title), card.first_prompt]).flatten().collect();
        texts.sort();
        texts.dedup();
        texts
    };
    let masked = ["keep Hunter22secret of another session", "rotate [secret:password] on the loom"];
    assert_eq!(titles(&app), masked);
    // The second time from memory.
    assert_eq!(titles(&app), masked);
}
