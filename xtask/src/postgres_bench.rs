//! Benchmarks archives in a database: copying, usage and search.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use threadline_testkit::PostgresServer;

use crate::archive_bench::copied_corpus;
use crate::bench::{BenchReport, LogFiles, measure};
use crate::command::{peak, run};

/// The settings of a server on this machine that is used for nothing else.
pub(crate) const SERVER: [&str; 8] = [
    "-c",
    "shared_buffers=512MB",
    "-c",
    "max_wal_size=4GB",
    "-c",
    "max_connections=250",
    "-c",
    "maintenance_work_mem=512MB",
];

const MESSAGES: usize = 1_000_000;
const MESSAGES_PER_SESSION: usize = 500;

/// A word that occurs in three sessions.
const RARE: &str = "quernstone";

/// Measures `archive push`, `usage` and `search` with a server on the same machine.
pub(crate) fn measure_postgres(target: &Path, binary: &Path, report: &mut BenchReport) {
    let Some(server) = PostgresServer::start(&SERVER) else {
        return report.fail("archive in a database", "PostgreSQL is not installed (Debian: postgresql)");
    };
    let work = target.join("bench-postgres");
    let _ = fs::remove_dir_all(&work);
    let command = |home: &Path, args: &[&str]| {
        let mut command = Command::new(binary);
        command.arg("--home").arg(home).args(["--quiet"]).args(args);
        command.env("XDG_STATE_HOME", work.join("state")).env("XDG_CACHE_HOME", work.join("cache"));
        command
    };
    let push = |home: &Path, url: &str| command(home, &["archive", "push", "--level", "full", "--to", url]);
    if let Some(corpus) = copied_corpus(&work) {
        let size = LogFiles::in_folder(&corpus).bytes as f64 / 1e6;
        let mut rates = [0.0_f64; 2];
        for _ in 0..3 {
            for (rate, option) in rates.iter_mut().zip(["&search_index=off", ""]) {
                let url = format!("{}{option}", server.url(&server.database()));
                let begun = Instant::now();
                run(&mut push(&corpus, &url));
                *rate = rate.max(size / begun.elapsed().as_secs_f64());
            }
        }
        report.at_least("push of real sessions to a database", rates[0], 25.0, "MB/s");
        println!("  with the index of the search: {:.1} MB/s", rates[1]);
    }
    let home = match many_messages(&work) {
        Ok(home) => home,
        Err(error) => return report.fail("archive in a database", &error.to_string()),
    };
    let size = LogFiles::in_folder(&home).bytes as f64 / 1e6;
    let url = server.url(&server.database());
    let begun = Instant::now();
    let memory = peak(push(&home, &format!("{url}&search_index=off")));
    let seconds = begun.elapsed().as_secs_f64();
    println!("{MESSAGES} messages, {size:.0} MB: {:.1} MB/s", size / seconds);
    report.at_most("peak memory of push to a database", memory, 80.0, "MB");
    let begun = Instant::now();
    run(&mut command(&home, &["archive", "gc", "--from", &url]));
    println!("the index of the search over them: {:.1} s", begun.elapsed().as_secs_f64());
    server.sql("postgres", "checkpoint");
    for by in ["day", "model", "session"] {
        let usage = || command(&home, &["usage", "--by", by, "--json", "--from", &url]);
        let mut once = || run(&mut usage());
        let [time] = measure([&mut once]);
        let what = format!("usage by {by} over a million messages in a database");
        report.at_most(&what, time.as_secs_f64() * 1e3, 1000.0, "ms");
        report.at_most(&format!("peak memory of usage by {by}"), peak(usage()), 80.0, "MB");
    }
    let search = |word: &str| command(&home, &["search", word, "--json", "--from", &url]);
    let mut cold = || {
        let _ = fs::remove_dir_all(work.join("cache"));
        run(&mut search(RARE));
    };
    let mut warm = || run(&mut search("spindle300"));
    run(&mut search("spindle300"));
    let [cold, warm] = measure([&mut cold, &mut warm]);
    report.at_most("search of a rare word, empty cache", cold.as_secs_f64() * 1e3, 300.0, "ms");
    println!("  a word of every session, full cache: {:.0} ms", warm.as_secs_f64() * 1e3);
    report.at_most("peak memory of search in a database", peak(search(RARE)), 80.0, "MB");
    drop(server);
    let _ = fs::remove_dir_all(&work);
}

/// Creates a home with many messages.
fn many_messages(work: &Path) -> std::io::Result<PathBuf> {
    let home = work.join("messages");
    for session in 0..MESSAGES / MESSAGES_PER_SESSION {
        let folder = home.join(format!("projects/-project-{}", session % 20));
        fs::create_dir_all(&folder)?;
        let mut text = String::new();
        for line in 0..MESSAGES_PER_SESSION {
            let (day, minute) = (session % 28 + 1, line % 60);
            let word = if session % 700 == 7 && line == 9 { RARE } else { "shuttle" };
            text.push_str(&format!(
                "{{\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/home/ada/project{}\",\"sessionId\":\
                 \"{session:08}-0000-4000-8000-000000000000\",\"gitBranch\":\"main\",\"type\":\"assistant\",\
                 \"uuid\":\"{session}-{line}\",\"timestamp\":\"2026-10-{day:02}T10:{minute:02}:00.000Z\",\
                 \"message\":{{\"id\":\"msg_{session}_{line}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\
                 \"claude-sonnet-4-5\",\"content\":[{{\"type\":\"text\",\"text\":\"The {word} of thread {session} \
                 passes spindle{line} and the loom goes on.\"}}],\"stop_reason\":\"end_turn\",\"usage\":\
                 {{\"input_tokens\":{line},\"output_tokens\":{session},\"cache_read_input_tokens\":{}}}}}}}\n",
                session % 20,
                line * 100,
            ));
        }
        fs::write(folder.join(format!("{session:08}-0000-4000-8000-000000000000.jsonl")), text)?;
    }
    Ok(home)
}
