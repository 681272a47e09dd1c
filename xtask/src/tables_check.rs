//! Checks the Parquet tables with DuckDB and chdb: their totals are those of `threadline usage`.
//!
//! `TABLES_PYTHON` is a Python interpreter with the packages `duckdb` and `chdb`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::archive_check::{BUCKET, Client, MotoServer, home};
use crate::command::binary;

/// Prints the totals of the table `usage` by model and by day, and the numbers of rows of all tables, as each
/// engine reads them.
const SCRIPT: &str = r#"
import json, sys, duckdb, chdb
root, engine = sys.argv[1:]
def rows(sql):
    if engine == "duckdb":
        table = lambda name: f"read_parquet('{root}/{name}/*/data.parquet', hive_partitioning=true)"
        return [list(map(str, row)) for row in duckdb.sql(sql(table)).fetchall()]
    table = lambda name: f"file('{root}/{name}/*/data.parquet', 'Parquet')"
    text = str(chdb.query(sql(table) + " SETTINGS use_hive_partitioning=1", "JSONCompactStringsEachRow"))
    return [json.loads(line) for line in text.splitlines()]
SUMS = ("count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), "
        "sum(cache_write_5m_tokens), sum(cache_write_1h_tokens), sum(cost_usd)")
for key in ["model", "day"]:
    for row in rows(lambda table: f"SELECT {key}, {SUMS} FROM {table('usage')} GROUP BY {key} ORDER BY {key}"):
        print(json.dumps([key, *row]))
for name in ["messages", "tool_calls", "turns"]:
    for row in rows(lambda table: f"SELECT count(*), count(DISTINCT session) FROM {table(name)}"):
        print(json.dumps([name, *row]))
"#;

pub(crate) fn run() -> ExitCode {
    let Some(binary) = binary() else { return ExitCode::from(2) };
    let work = match tempfile::tempdir() {
        Ok(work) => work,
        Err(error) => {
            println!("tables: {error}");
            return ExitCode::from(2);
        }
    };
    let client = Client { binary: &binary, work: work.path(), port: 0 };
    match check_tables(&client) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("tables: {error}");
            ExitCode::from(1)
        }
    }
}

/// Compares the tables of the real sessions, from the files and from an archive, with `usage`.
pub(crate) fn check_tables(client: &Client<'_>) -> Result<(), String> {
    let Some(python) = std::env::var_os("TABLES_PYTHON").map(PathBuf::from) else {
        println!("tables: skipped, TABLES_PYTHON is not set (pip install duckdb chdb)");
        return Ok(());
    };
    let home = home(client.work).map_err(|error| error.to_string())?;
    let archive = format!("file:{}", client.work.join("tables-archive").display());
    client.expect(&home, "tables", &["archive", "push", "--to", &archive])?;
    let expected = usage(client, &home)?;
    let mut counts = Vec::new();
    for (name, from) in [("files", &[][..]), ("archive", &["--from", &archive])] {
        let folder = client.work.join("tables").join(name);
        let to = format!("file:{}", folder.display());
        let written =
            client.expect(&home, "tables", &[&["archive", "tables", "--to", &to][..], from].concat())?;
        println!("{}", written.trim_end());
        for engine in ["duckdb", "chdb"] {
            let rows = query(&python, &folder, engine)?;
            let totals: BTreeMap<_, _> = rows
                .iter()
                .filter(|(key, _)| expected.contains_key(*key))
                .map(|(key, row)| (key.clone(), row.clone()))
                .collect();
            if totals != expected {
                return Err(format!("{engine} differs from usage: {}", difference(&expected, &totals)));
            }
            println!("{engine}, from {name}: {} totals by model and by day are those of usage", totals.len());
            counts.push(rows.into_iter().filter(|(key, _)| !expected.contains_key(key)).collect::<Vec<_>>());
        }
    }
    if counts.iter().any(|other| *other != counts[0]) || counts[0].len() != 3 {
        return Err(format!("the numbers of rows differ: {counts:?}"));
    }
    Ok(())
}

/// Writes tables from an archive on object storage to object storage, twice, and compares the objects with
/// the files of the same tables in a folder.
pub(crate) fn check_tables_on_s3(
    client: &Client<'_>,
    moto: &MotoServer,
    home: &Path,
    archive: &str,
) -> Result<(), String> {
    let folder = client.work.join("tables-s3");
    let local = format!("file:{}", folder.display());
    let remote = format!("s3://{BUCKET}/tables");
    for to in [&local, &remote, &remote] {
        client.expect(
            home,
            "one",
            &["archive", "tables", "--from", archive, "--to", to, "--level", "metadata"],
        )?;
    }
    let names = moto.list("tables/")?;
    for name in &names {
        let file = folder.join(name.strip_prefix("tables/").unwrap_or(name));
        if fs::read(&file).ok() != Some(moto.get(name)?) {
            return Err(format!("{name} differs from {}", file.display()));
        }
    }
    println!("{} objects of tables on S3 are the same as in a folder", names.len());
    if names.is_empty() { Err("no tables were written".to_owned()) } else { Ok(()) }
}

/// The figures of a group, by the kind and the name of the group. Amounts are without trailing zeros.
type Totals = BTreeMap<(String, String), Vec<String>>;

fn usage(client: &Client<'_>, home: &Path) -> Result<Totals, String> {
    let mut totals = Totals::new();
    for by in ["model", "day"] {
        let out = client.expect(home, "tables", &["usage", "--by", by, "--tz", "UTC", "--json"])?;
        for group in out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let figures = [
                "calls",
                "input_tokens",
                "output_tokens",
                "cache_read_tokens",
                "cache_write_5m_tokens",
                "cache_write_1h_tokens",
                "cost_usd",
            ];
            let figures = figures.map(|name| number(&group[name].to_string())).to_vec();
            totals.insert((by.to_owned(), group[by].as_str().unwrap_or_default().to_owned()), figures);
        }
    }
    Ok(totals)
}

fn query(python: &Path, folder: &Path, engine: &str) -> Result<Totals, String> {
    let mut command = Command::new(python);
    let done =
        command.args(["-c", SCRIPT]).arg(folder).arg(engine).output().map_err(|error| error.to_string())?;
    if !done.status.success() {
        return Err(format!("{engine}: {}", String::from_utf8_lossy(&done.stderr)));
    }
    let row = |line: &str| {
        let row: Vec<String> = serde_json::from_str(line).ok()?;
        let (key, rest) = row.split_first()?;
        let (name, rest) = rest.split_first()?;
        Some(((key.clone(), name.clone()), rest.iter().map(|value| number(value)).collect()))
    };
    Ok(String::from_utf8_lossy(&done.stdout).lines().filter_map(row).collect())
}

/// Returns a number without trailing zeros. The sum of no amounts is 0.
fn number(text: &str) -> String {
    match text {
        "None" | "null" | "ᴺᵁᴸᴸ" => "0".to_owned(),
        text if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        text => text.to_owned(),
    }
}

fn difference(expected: &Totals, found: &Totals) -> String {
    let missing = expected.iter().find(|(key, row)| found.get(*key) != Some(row));
    format!("{missing:?} is {:?}", missing.and_then(|(key, _)| found.get(key)))
}
