//! Tests on a real server. Without one, they say so and pass.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use tempfile::TempDir;
use threadline_app::{CallQuery, SessionSource as _, SourceSelection, UsageLogs};
use threadline_search::Query;
use threadline_secret::Rules;
use threadline_store::{Home, Store};
use threadline_testkit::PostgresServer;
use threadline_usage::{CallGroups, GroupBy, ModelCalls, PriceBook, ScanOptions};

use crate::{
    Archive, ArchiveError, ArchiveLocation, Origin, OriginFilter, PrivacyLevel, PushOptions, PushReport,
    RestoreTarget, StorageOptions,
};

const SESSION: &str = "0b5b3a5e-0000-4000-8000-000000000001";
const LOG: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001.jsonl";
const AGENT: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001/subagents/agent-a1.jsonl";
const OUTPUT: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001/tool-results/t.txt";
const BACKUP: &str = "file-history/0b5b3a5e-0000-4000-8000-000000000001/c0ffee@v1";
const OTHER: &str = "projects/-q/0b5b3a5e-0000-4000-8000-000000000002.jsonl";

/// A home, and an empty database.
struct Setup {
    server: &'static PostgresServer,
    database: String,
    dir: TempDir,
    rules: Rules,
    level: PrivacyLevel,
}

impl Setup {
    /// Returns `None` if there is no server.
    fn new() -> Option<Self> {
        let setup = Self::empty()?;
        for (name, lines) in
            [(LOG, 40), (AGENT, 10), (OUTPUT, 3), (BACKUP, 5), (OTHER, 20), ("history.jsonl", 2)]
        {
            setup.write(name, text(name, lines).as_bytes());
        }
        Some(setup)
    }

    fn empty() -> Option<Self> {
        let server = PostgresServer::shared()?;
        let (database, dir) = (server.database(), tempfile::tempdir().unwrap());
        Some(Self { server, database, dir, rules: Rules::new(), level: PrivacyLevel::Full })
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn open(&self, url: &str) -> Result<Archive, ArchiveError> {
        let location: ArchiveLocation = url.parse()?;
        Archive::create(&location, &StorageOptions::new())
    }

    fn archive(&self) -> Archive {
        self.open(&self.server.url(&self.database)).unwrap()
    }

    fn push(&self) -> PushReport {
        self.push_to(&self.archive(), "laptop").unwrap()
    }

    fn push_to(&self, archive: &Archive, machine: &str) -> Result<PushReport, ArchiveError> {
        let store = Store::open([self.home()]);
        let options = PushOptions { level: self.level, rules: &self.rules, now: far_future() };
        archive.push(&store, &store.homes()[0], &origin(machine), &options, &|_| ())
    }

    fn fetch(&self) -> Vec<PathBuf> {
        self.fetch_with(&SourceSelection::default())
    }

    fn fetch_with(&self, selection: &SourceSelection) -> Vec<PathBuf> {
        self.archive().fetch(selection, &self.dir.path().join("cache"), &|_| ()).unwrap()
    }

    fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.database, statements).trim().to_owned()
    }

    fn damage(&self) -> Vec<String> {
        self.archive().verify(&|| ()).unwrap().damaged
    }

    /// Adds the real sessions, or the samples if there are none. Returns the number of files.
    fn add_logs(&self) -> usize {
        let mut logs = threadline_testkit::shared_logs();
        if logs.is_empty() {
            let samples = threadline_testkit::demo();
            logs = threadline_store::logs_below(&samples).found.into_iter().map(|log| log.path).collect();
        }
        for (i, log) in logs.iter().enumerate() {
            let name = format!("projects/-p{}/{i:08}-0000-4000-8000-000000000000.jsonl", i % 7);
            self.write(&name, &fs::read(log).unwrap());
        }
        logs.len()
    }
}

/// Returns a time at which every file is settled.
fn far_future() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1 << 33)
}

fn origin(machine: &str) -> Origin {
    let text = str::to_owned;
    Origin {
        machine_id: format!("id-{machine}"),
        machine: text(machine),
        user: text("ada"),
        home: text("/h"),
    }
}

fn text(name: &str, lines: usize) -> String {
    let line = |line: usize| {
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"{line}\",\"timestamp\":\"2026-11-01T10:00:00.000Z\",\
             \"cwd\":\"/p\",\"message\":{{\"id\":\"msg_{name}{line}\",\"model\":\"claude-opus-5\",\"content\":\
             [{{\"type\":\"text\",\"text\":\"word{line} of {name}\"}}],\"usage\":{{\"input_tokens\":{line}}}}}}}\n"
        )
    };
    (0..lines).map(line).collect()
}

/// Returns the files below a folder with their contents, sorted.
fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    fn add(folder: &Path, root: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => add(&path, root, files),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                    files.push((name, fs::read(&path).unwrap()));
                }
            }
        }
    }
    let mut files = Vec::new();
    add(folder, folder, &mut files);
    files.sort();
    files
}

#[test]
fn a_home_comes_back_byte_for_byte() {
    let Some(setup) = Setup::new() else { return };
    setup.write("projects/-p/odd.jsonl", b"\xff\xfe not text\n\n{\"a\":\"\\u0000\"}\r\n{\"half");
    setup.write("projects/-p/empty.jsonl", b"");
    setup.write(OUTPUT, &[0, 1, 2, 255].repeat(200_000));
    let report = setup.push();
    assert_eq!((report.new_files, report.unread.len()), (8, 0));
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
    let report = setup.push();
    assert_eq!((report.unchanged_files, report.copied_bytes), (8, 0));
    assert_eq!(setup.damage(), [""; 0]);
}

#[test]
fn real_sessions_come_back_byte_for_byte_and_count_the_same() {
    let Some(setup) = Setup::empty() else { return };
    let n_logs = setup.add_logs();
    assert_eq!(setup.push().new_files, n_logs);
    assert_eq!(setup.push().copied_bytes, 0);
    assert!(files_below(&setup.fetch()[0]) == files_below(&setup.home()));
    assert_eq!(setup.damage(), [""; 0]);
    assert_same_usage(&setup);
    // The same sessions of another machine count once.
    setup.push_to(&setup.archive(), "desktop").unwrap();
    assert_same_usage(&setup);
}

/// Compares the sums of the database with those of the logs.
fn assert_same_usage(setup: &Setup) {
    let logs: UsageLogs = Store::open([setup.home()]).logs().into();
    let local = logs.read(ScanOptions::default(), &|| ()).calls;
    let book = PriceBook::embedded();
    let query = CallQuery { context_limits: book.context_limits(), ..CallQuery::default() };
    let stored = setup.archive().model_calls(&SourceSelection::default(), &query).unwrap().unwrap();
    let zone = TimeZone::fixed(jiff::tz::Offset::from_seconds((5 * 60 + 45) * 60).unwrap());
    let groups = |calls: &ModelCalls, by| CallGroups::of(calls, by, &book, &zone, |_, _| true);
    for by in [
        GroupBy::Day,
        GroupBy::Week,
        GroupBy::Month,
        GroupBy::Session,
        GroupBy::Project,
        GroupBy::Model,
        GroupBy::Branch,
    ] {
        assert_eq!(groups(&stored, by), groups(&local, by), "{by:?}");
    }
    assert_eq!(stored.inherited(), local.inherited());
    assert_eq!(
        (stored.n_invalid_lines(), stored.n_incomplete_logs()),
        (local.n_invalid_lines(), local.n_incomplete_logs())
    );
}

#[test]
fn growing_files_are_continued_at_the_last_whole_line() {
    let Some(setup) = Setup::new() else { return };
    let whole = text(LOG, 90);
    // Half a line, a whole line without its newline, and the middle of a character.
    for length in [500, 1000, text(LOG, 70).len() - 1, text(LOG, 70).len() + 3, whole.len()] {
        setup.write(LOG, &whole.as_bytes()[..length]);
        setup.push();
        assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()), "{length}");
        assert_eq!(setup.damage(), [""; 0], "{length}");
        assert_same_usage(&setup);
    }
    setup.write(LOG, text(LOG, 95).as_bytes());
    let report = setup.push();
    assert_eq!((report.grown_files, report.unchanged_files), (1, 5));
    assert_eq!(report.copied_bytes, (text(LOG, 95).len() - whole.len()) as u64);
    let lines = setup.sql(&format!("select count(*), max(line) from threadline.lines l join threadline.files f on f.id = l.file where name = '{LOG}'"));
    assert_eq!(lines, "95|95");
}

#[test]
fn a_rewritten_file_keeps_its_earlier_version() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    for content in ["{\"edited\":true}\n".to_owned(), text("other", 60)] {
        setup.write(LOG, content.as_bytes());
        assert_eq!(setup.push().rewritten_files, 1);
        assert_same_usage(&setup);
    }
    let manifests = setup.archive().manifests(&OriginFilter::default()).unwrap();
    let file = &manifests[0].files[LOG];
    assert_eq!((file.current.version, file.older.len()), (2, 2));
    assert_eq!(setup.damage(), [""; 0]);
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
}

#[test]
fn deleted_sessions_come_back_and_removed_ones_stay_away() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    let before = files_below(&setup.home());
    fs::remove_dir_all(setup.home().join("projects/-p")).unwrap();
    fs::remove_dir_all(setup.home().join("file-history")).unwrap();
    setup.push();
    let target = RestoreTarget { home: Home::new(setup.home()), project: None, force: false };
    let report = setup.archive().restore(&SESSION[..36], &OriginFilter::default(), &target).unwrap();
    assert_eq!((report.written.len(), report.present.len()), (4, 0));
    assert_eq!(files_below(&setup.home()), before);
    setup.push_to(&setup.archive(), "desktop").unwrap();
    assert_eq!(setup.archive().remove(SESSION).unwrap(), SESSION);
    assert!(matches!(setup.archive().remove(SESSION), Err(ArchiveError::NoSession { .. })));
    assert_eq!(setup.push().copied_bytes, 0);
    let tables = ["lines", "chunks", "messages", "usage"].map(|table| {
        setup.sql(&format!(
            "select count(*) from threadline.{table} where not file in (select id from threadline.files)"
        ))
    });
    assert_eq!(tables, ["0"; 4]);
    for home in setup.fetch() {
        let names: Vec<_> = files_below(&home).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["history.jsonl", OTHER]);
    }
    assert_eq!(setup.damage(), [""; 0]);
}

#[test]
fn lower_levels_store_no_text_that_they_leave_out() {
    let Some(mut setup) = Setup::new() else { return };
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let line = format!(
        "{{\"type\":\"user\",\"uuid\":\"1\",\"message\":{{\"role\":\"user\",\"content\":\"use {token} quietly\"}}}}\n"
    );
    setup.write(LOG, line.as_bytes());
    setup.write(OUTPUT, format!("the token is {token}").as_bytes());
    setup.push();
    setup.write(LOG, line.repeat(2).replace("use ", "rewritten ").as_bytes());
    setup.push();
    let stored = |setup: &Setup, word: &str| {
        let tables = [("lines", "content"), ("chunks", "content"), ("messages", "convert_to(text, 'UTF8')")];
        let count = tables.map(|(table, column)| {
            let position = format!("position(convert_to('{word}', 'UTF8') in {column}) > 0");
            setup
                .sql(&format!("select count(*) from threadline.{table} where {position}"))
                .parse::<u32>()
                .unwrap()
        });
        count.into_iter().sum::<u32>()
    };
    assert!(stored(&setup, &token) > 0 && stored(&setup, &token.to_lowercase()) > 0);
    setup.level = PrivacyLevel::Redacted;
    setup.push();
    assert_eq!((stored(&setup, &token), stored(&setup, &token.to_lowercase())), (0, 0));
    assert!(stored(&setup, "quietly") > 0);
    setup.level = PrivacyLevel::Metadata;
    setup.push();
    setup.push();
    assert_eq!(stored(&setup, "quietly"), 0);
    assert_eq!(setup.archive().sessions(&OriginFilter::default()).unwrap()[0].level, PrivacyLevel::Metadata);
    assert_eq!(setup.damage(), [""; 0]);
}

/// Forwards connections to a server until some bytes have passed, and then drops them.
fn cutting_proxy(port: u16, limit: i64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let left = Arc::new(AtomicI64::new(limit));
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            if left.load(SeqCst) <= 0 {
                break;
            }
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { break };
            server.set_nodelay(true).and_then(|()| client.set_nodelay(true)).unwrap();
            for (mut from, mut to) in
                [(client.try_clone(), server.try_clone()), (server.try_clone(), client.try_clone())]
                    .map(|(from, to)| (from.unwrap(), to.unwrap()))
            {
                let left = left.clone();
                std::thread::spawn(move || {
                    let mut buffer = [0; 512];
                    while let Ok(n_read @ 1..) = from.read(&mut buffer) {
                        if left.fetch_sub(n_read as i64, SeqCst) < n_read as i64
                            || to.write_all(&buffer[..n_read]).is_err()
                        {
                            break;
                        }
                    }
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                });
            }
        }
    });
    own_port
}

#[test]
fn interrupted_pushes_end_like_an_uninterrupted_one() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    let url =
        |port: u16| format!("postgres://threadline@127.0.0.1:{port}/{}?sslmode=disable", setup.database);
    let mut n_cut = 0;
    for number in 0..100_i64 {
        setup.write(LOG, text(LOG, 40).as_bytes());
        setup.write(OTHER, text(OTHER, 20).as_bytes());
        let machine = format!("machine{number}");
        if number % 3 == 0 {
            setup.push_to(&setup.archive(), &machine).unwrap();
            setup.write(LOG, text(LOG, 90).as_bytes());
            setup.write(OTHER, text("changed", 9).as_bytes());
        }
        // The points of interruption are spread over the whole push.
        let limit = 1500 + number * 7919 % 160_000;
        let interrupted = setup.open(&url(cutting_proxy(setup.server.port(), limit)));
        n_cut += usize::from(interrupted.and_then(|archive| setup.push_to(&archive, &machine)).is_err());
        let report = setup.push_to(&setup.archive(), &machine).unwrap();
        assert!(report.unread.is_empty());
        assert_eq!(setup.push_to(&setup.archive(), &machine).unwrap().copied_bytes, 0);
        let selection = SourceSelection { machine: Some(machine), ..SourceSelection::default() };
        let homes = setup.fetch_with(&selection);
        assert_eq!(files_below(&homes[0]), files_below(&setup.home()), "limit {limit}");
    }
    assert!(n_cut > 30, "{n_cut}");
    assert_eq!(setup.damage(), [""; 0]);
    // The last state of the home is one of a hundred; the calls of all of them count once.
    let rows = "select count(distinct key), count(*) filter (where not is_shared) from threadline.usage";
    let (keys, single) = setup.sql(rows).split_once('|').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(keys.parse::<u32>().unwrap() > 100 && single == "0", "{keys} {single}");
}

#[test]
fn pushers_at_the_same_time_lose_and_double_nothing() {
    let Some(setup) = Setup::new() else { return };
    setup.archive();
    std::thread::scope(|scope| {
        for machine in ["laptop", "laptop", "laptop", "desktop", "desktop", "phone"] {
            let setup = &setup;
            scope.spawn(move || setup.push_to(&setup.archive(), machine).unwrap());
        }
    });
    let homes = setup.fetch();
    assert_eq!(homes.len(), 3);
    for home in homes {
        assert_eq!(files_below(&home), files_below(&setup.home()));
    }
    assert_eq!(setup.push().copied_bytes, 0);
    assert_eq!(setup.damage(), [""; 0]);
    assert_same_usage(&setup);
}

#[test]
fn a_changed_byte_in_any_table_is_found() {
    let Some(setup) = Setup::new() else { return };
    setup.write(LOG, &[text(LOG, 5).into_bytes(), b"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\"}]}}\n{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{}}]}}\n".to_vec()].concat());
    setup.push();
    assert_eq!(setup.damage(), [""; 0]);
    for (table, change) in [
        ("lines", "content = set_byte(content, 7, get_byte(content, 7) # 1)"),
        ("lines", "line = line + 1"),
        ("chunks", "content = set_byte(content, 7, get_byte(content, 7) # 4)"),
        ("messages", "text = 'x' || text"),
        ("messages", "uuid = null"),
        ("tool_calls", "name = 'Bosh'"),
        ("tool_results", "is_error = not is_error"),
        ("usage", "output_tokens = output_tokens + 1"),
        ("usage", "file = 999999"),
        ("files", "modified = modified + 1"),
        ("files", "stamp = stamp || '1'"),
        ("files", "digest = replace(digest, '1', '2')"),
        ("files", "cwd = '/q'"),
        ("files", "is_current = false"),
    ] {
        let row = format!("(select ctid from threadline.{table} order by ctid limit 1)");
        setup.sql(&format!("create table threadline.copy as select * from threadline.{table}"));
        setup.sql(&format!("update threadline.{table} set {change} where ctid = {row}"));
        assert!(!setup.damage().is_empty(), "{table}: {change}");
        let columns = setup.sql(&format!("select string_agg(column_name, ',') from information_schema.columns where table_schema = 'threadline' and table_name = '{table}'"));
        setup.sql(&format!("delete from threadline.{table}; insert into threadline.{table} ({columns}) select {columns} from threadline.copy; drop table threadline.copy"));
        assert_eq!(setup.damage(), [""; 0], "{table}: {change}");
    }
}

#[test]
fn users_see_only_what_they_have_pushed() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    setup.sql(
        "drop role if exists bob; create role bob login;
        grant usage on schema threadline to bob; grant all on all tables in schema threadline to bob;
        grant usage on all sequences in schema threadline to bob",
    );
    let url = setup.server.url(&setup.database).replace("threadline@", "bob@");
    let bob = setup.open(&url).unwrap();
    assert_eq!(bob.sessions(&OriginFilter::default()).unwrap(), []);
    setup.write(OTHER, text("secret", 3).as_bytes());
    assert_eq!(setup.push_to(&bob, "laptop").unwrap().new_files, 6);
    setup.write(OTHER, text("secret", 5).as_bytes());
    assert_eq!(setup.push_to(&bob, "laptop").unwrap().grown_files, 1);
    assert_eq!(bob.verify(&|| ()).unwrap().files, 6);
    assert_eq!(bob.verify(&|| ()).unwrap().damaged, [""; 0]);
    let cache = setup.dir.path().join("bob");
    let homes = bob.fetch(&SourceSelection::default(), &cache, &|_| ()).unwrap();
    assert_eq!(homes.len(), 1);
    assert_eq!(files_below(&homes[0]), files_below(&setup.home()));
    // The owner of the tables sees both, and counts repeated calls once.
    assert_eq!(setup.archive().sessions(&OriginFilter::default()).unwrap().len(), 4);
    let calls = |archive: &Archive| {
        let calls = archive.model_calls(&SourceSelection::default(), &CallQuery::default()).unwrap().unwrap();
        CallGroups::of(&calls, GroupBy::Model, &PriceBook::embedded(), &TimeZone::UTC, |_, _| true)
            .total
            .calls
    };
    assert_eq!((calls(&bob), calls(&setup.archive())), (40 + 10 + 5, 40 + 10 + 20 + 5));
    drop(bob);
    setup.sql("drop owned by bob; drop role bob");
}

#[test]
fn the_search_misses_no_session() {
    let Some(setup) = Setup::empty() else { return };
    setup.add_logs();
    setup.push();
    let now = jiff::Zoned::new(jiff::Timestamp::UNIX_EPOCH, TimeZone::UTC);
    let store = Store::open([setup.home()]);
    let all = store.session_logs().found;
    for words in [
        "error",
        "Cargo.toml",
        "\"let me\"",
        "the",
        "zzyzx",
        "a",
        "/fn [a-z]+/",
        "/import/i",
        "tool:Bash",
        "100%",
        "back_slash",
        "naïve",
        "Let me",
        "src/ test",
    ] {
        let query = Query::parse(words, &now).unwrap();
        let texts = Some(query.index_texts());
        let cache = setup.dir.path().join("search");
        let selection = SourceSelection { texts, ..SourceSelection::default() };
        let homes = setup.archive().fetch(&selection, &cache, &|_| ()).unwrap();
        let fetched: BTreeSet<String> = files_below(&homes[0]).into_iter().map(|(name, _)| name).collect();
        for session in &all {
            for log in session.logs() {
                let name = log.path.strip_prefix(setup.home()).unwrap().to_str().unwrap();
                let found = threadline_app::search::matching_anchors(&log.path, &query, 1).unwrap();
                assert!(found.is_empty() || fetched.contains(name), "{words}: {name}");
            }
        }
        fs::remove_dir_all(&cache).unwrap();
    }
    // A rare word selects few sessions.
    let selection = SourceSelection { texts: Some(vec!["zzyzx".to_owned()]), ..SourceSelection::default() };
    let n_files = files_below(&setup.fetch_with(&selection)[0]).len();
    assert!(n_files <= 4 + all.len() / 4, "{n_files}");
}

#[test]
fn files_that_left_the_archive_leave_the_cache() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    setup.fetch();
    setup.archive().remove(SESSION).unwrap();
    let selection = SourceSelection { texts: Some(vec!["word3".to_owned()]), ..SourceSelection::default() };
    let names: Vec<_> =
        files_below(&setup.fetch_with(&selection)[0]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["history.jsonl", OTHER]);
}

#[test]
fn lines_that_other_programs_append_are_completed() {
    let Some(setup) = Setup::new() else { return };
    setup.push();
    let lines = text("sdk", 7);
    let mut at = 0;
    for (number, line) in (1..).zip(lines.lines()) {
        if number == 1 {
            setup.sql(&format!(
                "insert into threadline.homes (folder, machine_id, machine, user_name, path)
                 values ('{}', 'id-sdk', 'sdk', 'ada', '/h');
                 insert into threadline.files (home, name, version, session, level, size, digest, modified, tail_at,
                 n_lines, longest_line, is_log, n_invalid, is_torn, row_sum, tail_sum, checksum)
                 select max(id), 'projects/sdk/{SESSION}.jsonl', 0, '{SESSION}', 'full', 0, '', 0, 0, 0, 0, false, 0,
                 false, 0, 0, '' from threadline.homes",
                origin("sdk").folder()
            ));
        }
        let file = "(select id from threadline.files where name like 'projects/sdk/%')";
        setup.sql(&format!(
            "insert into threadline.lines values ({file}, {at}, {number}, convert_to('{line}' || chr(10), 'UTF8'));
             update threadline.files set size = {}, n_lines = {number}, digest = '' where id = {file}",
            at + line.len() + 1
        ));
        at += line.len() + 1;
        let selection = SourceSelection { machine: Some("sdk".to_owned()), ..SourceSelection::default() };
        let homes = setup.fetch_with(&selection);
        let expected = (format!("projects/sdk/{SESSION}.jsonl"), lines.as_bytes()[..at].to_vec());
        assert_eq!(files_below(&homes[0]), [expected]);
        let calls = setup.archive().model_calls(&selection, &CallQuery::default()).unwrap().unwrap();
        let groups =
            CallGroups::of(&calls, GroupBy::Model, &PriceBook::embedded(), &TimeZone::UTC, |_, _| true);
        assert_eq!(groups.total.calls, number);
    }
    assert_eq!(setup.damage(), [""; 0]);
}

#[test]
fn encrypted_connections_check_the_certificate() {
    let Some(server) = PostgresServer::start_encrypted() else { return };
    let database = server.database();
    let open = |parameters: &str| {
        let url = format!("postgres://threadline@127.0.0.1:{}/{database}?{parameters}", server.port());
        Archive::create(&url.parse().unwrap(), &StorageOptions::new()).err().map(|error| error.to_string())
    };
    let unknown = open("sslmode=require").unwrap();
    assert!(unknown.contains("certificate"), "{unknown}");
    let own = format!("sslmode=verify-full&sslrootcert={}", server.certificate().display());
    assert_eq!(open(&own), None);
}

#[test]
fn errors_say_what_is_wrong() {
    let Some(setup) = Setup::new() else { return };
    let open = |url: &str| Archive::open(&url.parse().unwrap(), &StorageOptions::new()).err().unwrap();
    assert!(matches!(open(&setup.server.url(&setup.database)), ArchiveError::NoDatabase));
    let missing = open(&setup.server.url("nothing")).to_string();
    assert!(missing.contains("\"nothing\" does not exist"), "{missing}");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gone = open(&format!("postgres://ada:pw@127.0.0.1:{port}/x")).to_string();
    assert!(gone.contains("connect to the database") && !gone.contains("pw"), "{gone}");
    setup.archive();
    setup.sql("update threadline.version set version = 99");
    assert!(matches!(open(&setup.server.url(&setup.database)), ArchiveError::NewerDatabase));
}

#[test]
fn passwords_are_taken_from_the_environment() {
    let Some(setup) = Setup::new() else { return };
    setup.sql("drop role if exists keyholder; create role keyholder login superuser password 'open sesame'");
    let url = setup.server.url(&setup.database).replace("threadline@", "keyholder@");
    let with = |password: Option<&str>| {
        let options: StorageOptions =
            password.map(|text| ("PGPASSWORD".to_owned(), text.to_owned())).into_iter().collect();
        Archive::create(&url.parse().unwrap(), &options).err().map(|error| error.to_string())
    };
    assert!(with(None).unwrap().contains("password missing"));
    assert!(with(Some("wrong")).unwrap().contains("password authentication failed"));
    assert_eq!(with(Some("open sesame")), None);
    assert_eq!(
        setup
            .open(&url.replace("keyholder@", "keyholder:open%20sesame@"))
            .err()
            .map(|error| error.to_string()),
        None
    );
}
