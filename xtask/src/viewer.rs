//! Benchmarks the web viewer: a server process, and a real browser if there is one.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use threadline_testkit::Browser;

use crate::bench::BenchReport;
use crate::command::binary;
use crate::corpus::{Random, log};
use crate::server_process::RunningServer;

/// The size of a large session in bytes.
const LARGE: usize = 100_000_000;

/// The number of large sessions.
const SESSIONS: usize = 50;

/// Measures the viewer on large sessions, and on the 3,000 sessions of `home`.
pub(crate) fn measure_viewer(target: &Path, home: &Path, quick: bool, report: &mut BenchReport) {
    let Some(binary) = binary() else {
        return report.fail("the viewer", "threadline not found next to xtask");
    };
    match large_home(target) {
        Ok(large) => {
            on_large_sessions(&binary, &large, quick, report);
            on_many_sessions(&binary, home, quick, report);
        }
        Err(error) => report.fail("the viewer", &format!("cannot generate logs: {error}")),
    }
}

/// Creates a home with large sessions. They are hard links to one file, to save disk space.
fn large_home(target: &Path) -> std::io::Result<PathBuf> {
    let home = target.join("bench-viewer");
    let folder = home.join("projects/-bench");
    fs::create_dir_all(&folder)?;
    let first = folder.join(format!("{}.jsonl", id(0)));
    if !first.exists() {
        fs::write(&first, log(&id(0), LARGE, &mut Random::new(100)))?;
    }
    for i in 1..SESSIONS {
        let link = folder.join(format!("{}.jsonl", id(i)));
        if !link.exists() {
            fs::hard_link(&first, link)?;
        }
    }
    Ok(home)
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{:012}", 100 + number)
}

/// Returns the time of the first paint of the current page, in milliseconds after the request.
fn first_paint(browser: &Browser) -> f64 {
    let paint =
        browser.wait_for("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime");
    paint.as_f64().unwrap_or(f64::NAN)
}

fn on_large_sessions(binary: &Path, home: &Path, quick: bool, report: &mut BenchReport) {
    let Some(server) = RunningServer::start(binary, home) else {
        return report.fail("the viewer on large sessions", "server did not start");
    };
    let memory = |when: &str| println!("  memory {when}: {:.0} MB", server.memory());
    memory("before the first request");
    match Browser::start() {
        Some(browser) => {
            browser.open(&server.url("/"));
            memory("with home open");
            // The first visit reads the session from disk. The best of three is reported.
            let mut fresh = f64::INFINITY;
            let mut again = f64::INFINITY;
            for i in 0..3 {
                browser.open(&format!("http://{}/s/{}", server.host, id(i)));
                fresh = fresh.min(first_paint(&browser));
                browser.open("about:blank");
                browser.open(&format!("http://{}/s/{}", server.host, id(i)));
                again = again.min(first_paint(&browser));
            }
            report.at_most("first paint of a session of 100 MB", fresh, 400.0, "ms");
            report.at_most("first paint of a cached session of 100 MB", again, 400.0, "ms");
            memory("after three sessions");
            appended(&server, &browser, home, report);
            memory("after lines were appended");
        }
        None => report.fail("first paint and appended lines", "Chromium not found"),
    }
    let sessions = if quick { 10 } else { SESSIONS };
    for i in 0..sessions {
        let path = format!("/s/{}", id(i));
        let Some(page) = server.get(&path) else {
            return report.fail("memory after large sessions", "a session could not be opened");
        };
        let names =
            page.match_indices("data-p=\"").filter_map(|(at, key)| page[at + key.len()..].split('"').next());
        for name in names.skip(5).step_by(40).take(3) {
            let _ = server.get(&format!("{path}/part?name={name}"));
        }
        if (i + 1).is_multiple_of(10) {
            memory(&format!("after {} sessions", i + 1));
        }
    }
    report.at_most(&format!("memory after {sessions} sessions of 100 MB"), server.memory(), 300.0, "MB");
    server.measure_load("a session of 100 MB", &[format!("/s/{}", id(0))], quick, report);
    report.at_most("memory after the load test", server.memory(), 300.0, "MB");
}

/// Measures the time from appending a line until it is on the page.
fn appended(server: &RunningServer, browser: &Browser, home: &Path, report: &mut BenchReport) {
    let small = "00000000-0000-4000-8000-000000000001";
    let path = home.join(format!("projects/-bench/{small}.jsonl"));
    if fs::write(&path, log(small, 200_000, &mut Random::new(7))).is_err() {
        return;
    }
    for (what, session, file) in [
        ("small session", small.to_owned(), path),
        ("session of 100 MB", id(SESSIONS), home.join(format!("projects/-bench/{}.jsonl", id(SESSIONS)))),
    ] {
        if !file.exists() && fs::copy(home.join(format!("projects/-bench/{}.jsonl", id(0))), &file).is_err() {
            return;
        }
        browser.open(&format!("http://{}/s/{session}", server.host));
        browser.wait_for("return document.getElementById('main')?.dataset.line");
        browser.run("scrollTo(0, document.documentElement.scrollHeight)");
        let mut times = Vec::new();
        // Continue the conversation at its last line.
        let text = fs::read_to_string(&file).unwrap_or_default();
        let last = text.rsplit("\"uuid\":\"").next().and_then(|rest| rest.split('"').next());
        let mut parent = last.unwrap_or_default().to_owned();
        for i in 0..5 {
            let known = browser.run("return document.getElementById('main').dataset.line");
            browser.run(
                "window.seen = 0; new MutationObserver((_, me) => { if (document.getElementById('main').dataset.line !== window.known) { window.seen = Date.now(); me.disconnect(); } }).observe(document.getElementById('main'), { attributes: true, attributeFilter: ['data-line'] }); window.known = document.getElementById('main').dataset.line;",
            );
            let line = format!(
                "{{\"parentUuid\":\"{parent}\",\"isSidechain\":false,\"sessionId\":\"{session}\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"appended {i} {known}\"}},\"uuid\":\"appended-{i}-{session}\",\"timestamp\":\"2026-04-01T10:00:0{i}.000Z\"}}\n"
            );
            let now =
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1e3);
            let Ok(mut log) = File::options().append(true).open(&file) else { return };
            if log.write_all(line.as_bytes()).is_err() {
                return;
            }
            let seen = browser.wait_for("return window.seen").as_f64().unwrap_or(f64::NAN);
            times.push(seen - now);
            parent = format!("appended-{i}-{session}");
        }
        times.sort_by(f64::total_cmp);
        report.at_most(
            &format!("delay until an appended line is visible, {what}"),
            times[times.len() / 2],
            250.0,
            "ms",
        );
        let _ = fs::remove_file(&file);
    }
}

fn on_many_sessions(binary: &Path, home: &Path, quick: bool, report: &mut BenchReport) {
    let Some(server) = RunningServer::start(binary, home) else {
        return report.fail("the viewer on many sessions", "server did not start");
    };
    if let Some(browser) = Browser::start() {
        browser.open(&server.url("/"));
        browser.open("about:blank");
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            browser.open(&format!("http://{}/", server.host));
            best = best.min(first_paint(&browser));
            browser.open("about:blank");
        }
        report.at_most("first paint of the overview with 3,000 sessions", best, 300.0, "ms");
    }
    filters(&server, report);
    palette(&server, report);
    let page = server.get("/sessions").unwrap_or_default();
    let session = page.split("href=\"/s/").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    server.measure_load(
        "home and a session",
        &["/sessions".to_owned(), format!("/s/{session}")],
        quick,
        report,
    );
}

/// Measures the slowest answer of the palette after all logs were read.
fn palette(server: &RunningServer, report: &mut BenchReport) {
    let _ = server.get("/overview.json");
    let mut slowest: f64 = 0.0;
    for query in ["", "t", "loom", "home ada", "no such thing"] {
        let path = format!("/palette.json?q={}", query.replace(' ', "+"));
        let times = (0..5).map(|_| {
            let start = std::time::Instant::now();
            let _ = server.get(&path);
            start.elapsed().as_secs_f64() * 1e3
        });
        slowest = slowest.max(times.fold(f64::INFINITY, f64::min));
    }
    report.at_most("slowest answer of the palette with 3,000 sessions", slowest, 50.0, "ms");
}

/// Measures the slowest filter of the home page after all sessions are counted.
fn filters(server: &RunningServer, report: &mut BenchReport) {
    // The JSON response is sent only when all sessions are counted.
    let _ = server.get("/index.json");
    let mut slowest = (0.0, "");
    for ask in [
        "project=/home/ada/project",
        "branch=main",
        "model=claude-opus-4-6",
        "tool=Edit",
        "since=2026-01-01",
        "until=2026-12-31",
        "errors=1",
        "live=1",
        "words=loom",
        "sort=cost",
    ] {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let started = Instant::now();
            if server.get(&format!("/sessions?{ask}")).is_none() {
                return report.fail("filtered home", ask);
            }
            best = best.min(started.elapsed().as_secs_f64() * 1e3);
        }
        if best > slowest.0 {
            slowest = (best, ask);
        }
    }
    report.at_most(
        &format!("home of 3,000 sessions with its slowest filter, {}", slowest.1),
        slowest.0,
        300.0,
        "ms",
    );
}
