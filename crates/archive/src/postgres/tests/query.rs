//! Tests of searching and of rows that other programs write.

use std::collections::BTreeSet;
use std::fs;

use jiff::tz::TimeZone;
use threadline_app::CallQuery;
use threadline_app::SessionSource as _;
use threadline_app::SourceSelection;
use threadline_search::Query;
use threadline_store::Store;
use threadline_usage::{CallGroups, GroupBy, PriceBook};

use crate::postgres::tests::Setup;
use crate::tests::source_home::{OTHER, SESSION, files_below, names_below, origin, text};

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
        let fetched: BTreeSet<String> = names_below(&homes[0]).into_iter().collect();
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
    let names = names_below(&setup.fetch_with(&selection)[0]);
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
