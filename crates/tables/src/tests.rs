//! Tests of the tables, read back from their files.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use threadline_app::time::TimeRange;
use threadline_app::{App, AppConfig};
use threadline_archive::{ArchiveLocation, ObjectFolder, PrivacyLevel, StorageOptions};
use threadline_secret::Rules;
use threadline_testkit::TestHome;

use crate::{SessionOrigin, TableKind, TablesError, TablesOptions, TablesReport, write_tables};

const SESSION: &str = r#"
u1        user   "why is the loom slow?" branch=main @2026-11-01T10:00:00.000Z
a1 <- u1  reply  m1 text "Let me look." usage={"input_tokens":10,"output_tokens":20} @2026-11-01T10:00:05.000Z
c1 <- a1  reply  m2 tool t1 Bash {"command":"ls"} @2026-11-01T23:59:59.000Z
r1 <- c1  result t1 "a.txt" @2026-11-02T00:00:02.500Z
u2 <- r1  user   "and now?" @2026-11-03T10:00:00.000Z
"#;

struct Setup {
    home: TestHome,
    dir: tempfile::TempDir,
    rules: Rules,
    level: PrivacyLevel,
    is_complete: bool,
}

impl Setup {
    fn new() -> Self {
        let home = TestHome::new();
        home.session("slow", SESSION);
        let dir = tempfile::tempdir().unwrap();
        Self { home, dir, rules: Rules::new(), level: PrivacyLevel::Full, is_complete: true }
    }

    fn write(&self, range: TimeRange) -> Result<TablesReport, TablesError> {
        let app = App::new(AppConfig { homes: vec![self.home.root().to_owned()], ..AppConfig::default() });
        let location = ArchiveLocation::Folder(self.dir.path().to_owned());
        let target = ObjectFolder::create(&location, &StorageOptions::new()).unwrap();
        let origin = SessionOrigin { machine: "laptop".to_owned(), user: "ada".to_owned() };
        let options = TablesOptions {
            range,
            level: self.level,
            rules: &self.rules,
            source: "test".to_owned(),
            is_complete: self.is_complete,
            origins: HashMap::new(),
            origin: Some(origin),
        };
        write_tables(&app, &target, &options, &|| ())
    }

    /// Returns the rows of a table by day.
    fn read(&self, table: TableKind) -> BTreeMap<String, Vec<BTreeMap<String, String>>> {
        let mut days = BTreeMap::new();
        for entry in fs::read_dir(self.dir.path().join(table.name())).into_iter().flatten() {
            let path = entry.unwrap().path();
            let Ok(file) = fs::File::open(path.join("data.parquet")) else { continue };
            let reader = SerializedFileReader::new(file).unwrap();
            let row = |row: parquet::errors::Result<parquet::record::Row>| {
                let value = |field: &Field| match field {
                    Field::Str(text) => text.clone(),
                    field => field.to_string(),
                };
                let row = row.unwrap();
                row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
            };
            let day = path.file_name().unwrap().to_string_lossy().into_owned();
            days.insert(day, reader.get_row_iter(None).unwrap().map(row).collect());
        }
        days
    }
}

fn columns<'r>(rows: &'r [BTreeMap<String, String>], names: &[&str]) -> Vec<Vec<&'r str>> {
    rows.iter().map(|row| names.iter().map(|name| &*row[*name]).collect()).collect()
}

/// Returns the files below a folder with their contents.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(files.insert(path.display().to_string(), fs::read(&path).unwrap())),
            }
        }
    }
    files
}

#[test]
fn every_table_has_its_rows_by_day() {
    let setup = Setup::new();
    let report = setup.write(TimeRange::default()).unwrap();
    assert_eq!(
        report.rows,
        BTreeMap::from([("usage", 2), ("messages", 4), ("tool_calls", 1), ("turns", 2)]),
        "{report:?}"
    );
    let usage = setup.read(TableKind::Usage);
    assert_eq!(usage.keys().collect::<Vec<_>>(), ["day=2026-11-01"]);
    let call = &usage["day=2026-11-01"][0];
    let names = ["machine", "user", "branch", "input_tokens", "output_tokens"];
    assert_eq!(columns(std::slice::from_ref(call), &names), [["laptop", "ada", "main", "10", "20"]]);
    let messages = setup.read(TableKind::Messages);
    let names = ["role", "kind", "text"];
    assert_eq!(
        columns(&messages["day=2026-11-01"], &names),
        [
            ["user", "prompt", "why is the loom slow?"],
            ["assistant", "reply", "Let me look."],
            ["assistant", "reply", ""]
        ]
    );
    assert_eq!(columns(&messages["day=2026-11-03"], &names), [["user", "prompt", "and now?"]]);
    let calls = setup.read(TableKind::ToolCalls);
    let names = ["tool", "outcome", "duration_ms", "input", "result"];
    assert_eq!(
        columns(&calls["day=2026-11-01"], &names),
        [["Bash", "ok", "3500", "{\"command\":\"ls\"}", "a.txt"]]
    );
    let turns = setup.read(TableKind::Turns);
    let names = ["number", "tool_calls", "open", "prompt"];
    assert_eq!(columns(&turns["day=2026-11-01"], &names), [["1", "1", "true", "why is the loom slow?"]]);
}

#[test]
fn denied_and_interrupted_calls_did_not_fail() {
    let setup = Setup::new();
    let calls = r#"
u1        user   "go" @2026-11-01T10:00:00.000Z
a1 <- u1  reply  m1 tool t1 Bash {"command":"a"} @2026-11-01T10:00:01.000Z
r1 <- a1  result t1 "Exit code 1" error @2026-11-01T10:00:02.000Z
a2 <- r1  reply  m2 tool t2 Bash {"command":"b"} @2026-11-01T10:00:03.000Z
r2 <- a2  result t2 "The user doesn't want to proceed with this tool use" error @2026-11-01T10:00:04.000Z
a3 <- r2  reply  m3 tool t3 Bash {"command":"c"} @2026-11-01T10:00:05.000Z
r3 <- a3  result t3 "Interrupted by user" error @2026-11-01T10:00:06.000Z
"#;
    setup.home.session("slow", calls);
    setup.write(TimeRange::default()).unwrap();
    let turns = setup.read(TableKind::Turns);
    let names = ["tool_calls", "failed_tool_calls"];
    assert_eq!(columns(&turns["day=2026-11-01"], &names), [["3", "1"]]);
}

#[test]
fn a_second_run_writes_the_same_files() {
    let setup = Setup::new();
    let first = setup.write(TimeRange::default()).unwrap();
    let before = files(setup.dir.path());
    assert_eq!(setup.write(TimeRange::default()).unwrap(), first);
    assert!(files(setup.dir.path()) == before);
}

#[test]
fn a_range_replaces_whole_days_only_and_keeps_the_others() {
    let setup = Setup::new();
    setup.write(TimeRange::default()).unwrap();
    let before = files(setup.dir.path());
    setup.home.session("warp", "u1 user \"count\" @2026-11-03T12:00:00.000Z");
    // The range begins in the middle of the day.
    let noon = "2026-11-03T12:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond();
    setup.write(TimeRange { from: Some(noon), to: None }).unwrap();
    let after = files(setup.dir.path());
    let changed: Vec<_> = after.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes)).collect();
    assert!(changed.iter().all(|(name, _)| name.contains("day=2026-11-03")), "{}", changed.len());
    assert_eq!(setup.read(TableKind::Messages)["day=2026-11-03"].len(), 2);
}

#[test]
fn days_without_rows_are_deleted_if_the_source_is_complete() {
    for is_complete in [true, false] {
        let mut setup = Setup::new();
        setup.is_complete = is_complete;
        setup.write(TimeRange::default()).unwrap();
        let n_files = || files(setup.dir.path()).keys().filter(|name| name.ends_with(".parquet")).count();
        let before = n_files();
        fs::remove_dir_all(setup.home.root().join("projects")).unwrap();
        setup.write(TimeRange::default()).unwrap();
        assert_eq!(n_files(), if is_complete { 0 } else { before });
    }
}

#[test]
fn no_text_remains_at_the_level_metadata() {
    let mut setup = Setup::new();
    setup.level = PrivacyLevel::Metadata;
    let report = setup.write(TimeRange::default()).unwrap();
    assert_eq!(report.rows["usage"], 2);
    for table in TableKind::ALL {
        for row in setup.read(table).into_values().flatten() {
            for text in ["loom", "Let me", "a.txt", "command", "main", "and now"] {
                assert!(row.values().all(|value| !value.contains(text)), "{text} in {row:?}");
            }
        }
    }
}

#[test]
fn secrets_are_replaced_at_the_level_redacted() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let mut setup = Setup::new();
    setup.level = PrivacyLevel::Redacted;
    setup.home.session("slow", &SESSION.replace("a.txt", &token).replace("and now", &token));
    setup.write(TimeRange::default()).unwrap();
    for table in TableKind::ALL {
        for row in setup.read(table).into_values().flatten() {
            assert!(row.values().all(|value| !value.contains(&token)), "{row:?}");
        }
    }
}

#[test]
fn tables_of_another_level_are_not_mixed() {
    let mut setup = Setup::new();
    setup.write(TimeRange::default()).unwrap();
    setup.level = PrivacyLevel::Metadata;
    assert!(matches!(setup.write(TimeRange::default()), Err(TablesError::OtherTables { .. })));
}
