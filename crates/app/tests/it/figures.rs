//! Figures of a list, and their cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use threadline_app::{App, AppConfig, CardFilter, CountedFigures, FigureOptions};
use threadline_testkit::{TestHome, session_uuid};

use crate::app;

const TALK: &str = r#"
u1        user   "weave"
a1 <- u1  reply  m1 text "done" usage={"input_tokens":10,"output_tokens":5}
u2 <- a1  user   "again"
a2 <- u2  reply  m2 text "done"
"#;

struct Cached<'a> {
    app: &'a App,
    cache: PathBuf,
}

impl Cached<'_> {
    /// Counts at a time long after every change, with or without the cache.
    fn count(&self, cache: bool) -> CountedFigures {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000_000_000);
        let options = FigureOptions { cache: cache.then(|| self.cache.clone()), build: "test".to_owned() };
        let sessions = self.app.store().session_logs().found;
        self.app.count_figures(&sessions, &TimeZone::UTC, &options, now, &|_| ()).unwrap()
    }

    /// Checks that the cache is used if `unchanged`, and that it never changes the figures.
    fn check(&self, unchanged: bool, what: &str) {
        let cached = self.count(true);
        assert_eq!(cached.by_session, self.count(false).by_session, "{what}");
        assert_eq!(cached.is_cached, unchanged && cfg!(unix), "{what}");
        assert_eq!(self.count(true).is_cached, cfg!(unix), "{what}, the second time");
    }
}

fn set_times(path: &Path, time: SystemTime) {
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn the_cache_never_changes_a_figure() {
    let home = TestHome::new();
    let path = home.session("loom", TALK);
    home.session("other", TALK);
    let agent = home.agent("loom", "a1b2c3", "x1 user \"look\"\nx2 <- x1 reply m9 text \"Two.\"", None);
    let folder = tempfile::tempdir().unwrap();
    let app = app(&home);
    let cached = Cached { app: &app, cache: folder.path().join("deep/figures") };
    cached.check(false, "nothing is cached");
    cached.check(true, "nothing has changed");

    let text = fs::read_to_string(&path).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    // The same size and the same modification time.
    fs::write(&path, text.replace("\"type\":\"user\"", "\"type\":\"used\"")).unwrap();
    set_times(&path, modified);
    cached.check(false, "a log was edited in place");
    assert_eq!(cached.count(true).by_session[&session_uuid("loom")].tally.turns, 1);

    fs::write(&path, &text[..text.len() / 2]).unwrap();
    set_times(&path, modified);
    cached.check(false, "a log was truncated");

    let copy = path.with_extension("new");
    fs::write(&copy, &text).unwrap();
    set_times(&copy, modified);
    fs::rename(&copy, &path).unwrap();
    cached.check(false, "a log was replaced");
    assert_eq!(cached.count(true).by_session[&session_uuid("loom")].tally.turns, 2);

    set_times(&path, modified + Duration::from_secs(5));
    cached.check(false, "a log was touched");

    fs::write(&agent, "").unwrap();
    cached.check(false, "the log of a sub-agent was emptied");
    fs::remove_file(&agent).unwrap();
    cached.check(false, "the log of a sub-agent was removed");
    let third = home.session("third", TALK);
    cached.check(false, "a session was added");
    fs::remove_file(third).unwrap();
    cached.check(false, "a session was removed");

    for damage in ["", "x", "threadline figures 1\n"] {
        fs::write(&cached.cache, damage).unwrap();
        cached.check(false, "the cache was damaged");
    }
    let whole = fs::read(&cached.cache).unwrap();
    fs::write(&cached.cache, &whole[..whole.len() - 4]).unwrap();
    cached.check(false, "the cache was truncated");
}

#[test]
fn only_changed_logs_are_read_again() {
    let home = TestHome::new();
    let changed = home.session("loom", TALK);
    let other = home.session("other", TALK);
    let folder = tempfile::tempdir().unwrap();
    let app = app(&home);
    let cached = Cached { app: &app, cache: folder.path().join("figures") };
    let before = cached.count(true).by_session;
    let sessions = app.store().session_logs().found;
    // The log is listed, and cannot be read.
    fs::remove_file(&other).unwrap();
    fs::write(&changed, fs::read_to_string(&changed).unwrap() + "\n").unwrap();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000_000_000);
    let options = FigureOptions { cache: Some(cached.cache), build: "test".to_owned() };
    let listed = app.store().session_logs().found.into_iter().chain(sessions);
    let mut listed: Vec<_> = listed.collect();
    listed.sort_by_key(|session| {
        session.own.as_ref().map(|own| (own.path.clone(), std::cmp::Reverse(own.size)))
    });
    listed.dedup_by_key(|session| session.file.id.clone());
    let counted = app.count_figures(&listed, &TimeZone::UTC, &options, now, &|_| ()).unwrap();
    let id = session_uuid("other");
    assert!(!counted.is_cached);
    assert_eq!(counted.by_session.get(&id), cfg!(unix).then(|| &before[&id]));
}

#[test]
fn each_home_has_a_cache_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let homes = [TestHome::new(), TestHome::new()];
    homes.iter().for_each(|home| {
        home.session("loom", TALK);
    });
    let is_cached = |homes: &[&TestHome]| {
        let homes = homes.iter().map(|home| home.root().to_owned()).collect();
        let cache_dir = Some(folder.path().to_owned());
        let app = App::new(AppConfig { homes, cache_dir, ..AppConfig::default() });
        let sessions = app.store().session_logs().found;
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000_000_000);
        let figures = app.count_figures(&sessions, &TimeZone::UTC, &app.figure_options(), now, &|_| ());
        let overview = app.overview_facts(&app.overview_options(), now, &|| ()).unwrap();
        (figures.unwrap().is_cached, overview.is_cached)
    };
    let [one, two] = [&homes[0], &homes[1]];
    assert_eq!([is_cached(&[one]), is_cached(&[two]), is_cached(&[one, two])], [(false, false); 3]);
    let cached = cfg!(unix);
    assert_eq!([is_cached(&[one]), is_cached(&[two]), is_cached(&[one, two])], [(cached, cached); 3]);
}

#[test]
fn a_log_that_has_just_changed_is_not_cached() {
    let home = TestHome::new();
    let path = home.session("loom", TALK);
    let folder = tempfile::tempdir().unwrap();
    let app = app(&home);
    let options = FigureOptions { cache: Some(folder.path().join("figures")), build: "test".to_owned() };
    let sessions = app.store().session_logs().found;
    for _ in 0..2 {
        let now = fs::metadata(&path).unwrap().modified().unwrap();
        let counted = app.count_figures(&sessions, &TimeZone::UTC, &options, now, &|_| ()).unwrap();
        assert!(!counted.is_cached);
    }
}

#[test]
fn cards_are_filtered_and_sorted_by_figures() {
    let home = TestHome::new();
    home.session_in("/home/ada/loom", "two", TALK);
    home.session_in(
        "/home/ada/loom/.worktrees/3",
        "one",
        "u1 user \"weave\" branch=fix\na1 <- u1 reply m5 tool t1 Bash {\"command\":\"ls\"} usage={\"input_tokens\":1,\"output_tokens\":5} branch=fix",
    );
    let app = app(&home);
    let ids = |filter: CardFilter| -> Vec<String> {
        let options = FigureOptions::default();
        let now = SystemTime::UNIX_EPOCH;
        let listed = app.list_cards(&filter, &TimeZone::UTC, Some(&options), now, &|_| ()).unwrap();
        listed.0.into_iter().map(|card| card.id).collect()
    };
    let [one, two] = ["one", "two"].map(session_uuid);
    let text = |text: &str| Some(text.to_owned());
    let by_turns = threadline_view::Selection { sort: threadline_view::SortBy::Turns, ..Default::default() };
    assert_eq!(ids(CardFilter { selection: by_turns, ..CardFilter::default() }), [two.clone(), one.clone()]);
    assert_eq!(ids(CardFilter { tool: text("bash"), ..CardFilter::default() }), [&*one]);
    assert_eq!(ids(CardFilter { branch: text("FIX"), ..CardFilter::default() }), [&*one]);
    assert_eq!(ids(CardFilter { project: text("ada/loom"), ..CardFilter::default() }).len(), 2);
    assert_eq!(ids(CardFilter { model: text("opus"), ..CardFilter::default() }).len(), 2);
    assert!(ids(CardFilter { model: text("gpt"), ..CardFilter::default() }).is_empty());
}

#[test]
fn calls_of_replies_without_figures_count_as_in_the_session() {
    let home = TestHome::new();
    home.session(
        "loom",
        r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a1  result t1 "a"
a2 <- r1  reply  m2 tool t2 Bash {"command":"ls"} usage={"input_tokens":1,"output_tokens":5}
r2 <- a2  result t2 "b"
a3 <- r2  reply  m3 tool t3 Read {"file_path":"/a"}
"#,
    );
    let app = app(&home);
    let folder = tempfile::tempdir().unwrap();
    let cached = Cached { app: &app, cache: folder.path().join("figures") };
    for cache in [false, true, true] {
        let figures = cached.count(cache).by_session.remove(&session_uuid("loom")).unwrap();
        assert_eq!(figures.tools, [("Bash".to_owned(), 2), ("Read".to_owned(), 1)]);
        assert_eq!(figures.tool_calls(), 3);
    }
}

#[test]
fn a_fork_contains_the_calls_that_it_inherited() {
    let home = TestHome::new();
    let line = "u1 user \"weave\"\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"ls\"} \
                usage={\"input_tokens\":1,\"output_tokens\":5}";
    home.session("loom", line);
    home.session("fork", &format!("{line}\nu2 <- a1 user \"again\""));
    let app = app(&home);
    let folder = tempfile::tempdir().unwrap();
    let counted = Cached { app: &app, cache: folder.path().join("figures") }.count(false).by_session;
    let inherited: u64 = counted.values().map(|figures| figures.inherited_calls).sum();
    assert_eq!(inherited, 1);
    for name in ["loom", "fork"] {
        assert_eq!(counted[&session_uuid(name)].tools, [("Bash".to_owned(), 1)], "{name}");
    }
    assert_eq!(counted.values().map(|figures| figures.totals.calls).sum::<u64>(), 1);
}

#[test]
fn logs_of_sub_agents_in_another_project_do_not_hide_the_calls_of_a_session() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"ls\"}");
    let agent = home.agent("loom", "x1", "v1 user \"look\"\nb1 <- v1 reply m2 tool t2 Read {}", None);
    let id = session_uuid("loom");
    // Claude Code changed to this directory.
    home.file(format!("projects/-shed/{id}/subagents/agent-x1.jsonl"), fs::read(&agent).unwrap());
    fs::remove_file(agent).unwrap();
    let app = app(&home);
    let folder = tempfile::tempdir().unwrap();
    let counted = Cached { app: &app, cache: folder.path().join("figures") }.count(false).by_session;
    assert!(counted[&id].tools.contains(&("Bash".to_owned(), 1)), "{:?}", counted[&id].tools);
}

#[test]
fn sub_agents_inside_a_log_and_with_their_own_count_once() {
    let home = TestHome::new();
    let progress = |uuid: &str, agent: &str| {
        format!(
            "raw {{\"type\":\"progress\",\"uuid\":\"{uuid}\",\"parentUuid\":null,\"data\":{{\"type\":\"agent_progress\",\
             \"message\":{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"look\"}}}},\
             \"agentId\":\"{agent}\"}}}}\n"
        )
    };
    let log = format!(
        "u1 user \"weave\"\n{}{}{}",
        progress("p1", "x1"),
        progress("p2", "x2"),
        progress("p3", "x2")
    );
    home.session("loom", &log);
    home.agent("loom", "x1", "v1 user \"look\"", None);
    let app = app(&home);
    let folder = tempfile::tempdir().unwrap();
    let cached = Cached { app: &app, cache: folder.path().join("figures") };
    for cache in [false, true, true] {
        assert_eq!(cached.count(cache).by_session[&session_uuid("loom")].tally.agents, 2);
    }
    let file = app.find(&session_uuid("loom")).unwrap();
    assert_eq!(app.load(&file).unwrap().family.agents.len(), 2);
}
