//! Tests of pushing, restoring and privacy levels.

use std::fs;

use crate::postgres::tests::{Setup, assert_same_usage};
use crate::tests::source_home::{LOG, OTHER, OUTPUT, SESSION, files_below, names_below, text};
use crate::{ArchiveError, OriginFilter, PrivacyLevel};

#[test]
fn a_home_comes_back_byte_for_byte() {
    let Some(setup) = Setup::new() else { return };
    setup.write("projects/-p/odd.jsonl", b"\xff\xfe not text\n\n{\"a\":\"\\u0000\"}\r\n{\"half");
    setup.write("projects/-p/empty.jsonl", b"");
    setup.write(OUTPUT, [0, 1, 2, 255].repeat(200_000));
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
    setup.write(LOG, text(LOG, 95));
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
        setup.write(LOG, content);
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
    let report = setup.restore_from(&setup.archive(), false).unwrap();
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
        let names = names_below(&home);
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
    setup.write(LOG, &line);
    setup.write(OUTPUT, format!("the token is {token}"));
    setup.push();
    setup.write(LOG, line.repeat(2).replace("use ", "rewritten "));
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
