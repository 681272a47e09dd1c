//! The web viewer, measured as a person meets it: a server of its own, and a real browser where there is one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use threadline_testkit::Browser;

use crate::bench::Card;
use crate::corpus::{Random, log};

/// How large a large session is.
const LARGE: usize = 100_000_000;

/// So many of them are opened.
const SESSIONS: usize = 50;

/// Measures the viewer on large sessions, and on the 3,000 of `home`.
pub(crate) fn measure_viewer(target: &Path, home: &Path, quick: bool, card: &mut Card) {
    let Some(binary) =
        std::env::current_exe().ok().map(|own| own.with_file_name("threadline")).filter(|path| path.exists())
    else {
        println!(
            "the viewer: skipped, there is no threadline beside xtask (cargo build --release -p threadline)"
        );
        return;
    };
    match large_home(target) {
        Ok(large) => {
            on_large_sessions(&binary, &large, quick, card);
            on_many_sessions(&binary, home, quick, card);
        }
        Err(error) => println!("the viewer: skipped, no logs to measure with: {error}"),
    }
}

/// A home with large sessions. They share one file, so that a disk is not filled with them.
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

/// A server of its own, which ends when dropped.
struct Running {
    child: Child,
    /// `127.0.0.1:N`
    host: String,
    token: String,
}

impl Running {
    fn start(binary: &Path, home: &Path) -> Option<Self> {
        let mut command = Command::new(binary);
        command
            .arg("--home")
            .arg(home)
            .args(["serve", "--no-open"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut address).ok()?;
        let (host, token) = address.trim().strip_prefix("http://")?.split_once("/?token=")?;
        Some(Self { host: host.to_owned(), token: token.to_owned(), child })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}?token={}", self.host, self.token)
    }

    fn cookie(&self) -> String {
        format!("threadline-{}={}", self.host.rsplit(':').next().unwrap_or_default(), self.token)
    }

    /// Asks for a page, and whether it came.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.host).ok()?;
        let (host, cookie) = (&self.host, self.cookie());
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// How much memory it has right now, in megabytes.
    fn memory(&self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let kept = text
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kept.unwrap_or(f64::NAN) * 1024.0 / 1e6
    }

    /// Many clients at once, for a while: how many answers failed, and how much the memory grew.
    fn crowd(&self, what: &str, paths: &[String], quick: bool, card: &mut Card) {
        if Command::new("wrk").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            println!("{what}, 64 clients at once: skipped, wrk is not installed");
            return;
        }
        let seconds = if quick { 3 } else { 15 };
        let run = |path: &String, seconds: usize| {
            let mut command = Command::new("wrk");
            command.args([
                "-t2",
                "-c64",
                "--timeout",
                "20s",
                &format!("-d{seconds}s"),
                "-H",
                &format!("Cookie: {}", self.cookie()),
            ]);
            let done = command.arg(format!("http://{}{path}", self.host)).output();
            done.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default()
        };
        for path in paths {
            run(path, 1);
        }
        let before = self.memory();
        let mut failed = 0.0;
        for path in paths {
            let said = run(path, seconds);
            let numbers = |line: &str| -> f64 {
                line.split(|ch: char| !ch.is_ascii_digit()).filter_map(|word| word.parse::<f64>().ok()).sum()
            };
            let errors =
                said.lines().filter(|line| line.contains("Socket errors") || line.contains("Non-2xx"));
            failed += errors.map(numbers).sum::<f64>();
            // `1234 requests in 3.00s, 5.67MB read`
            let answered = said.lines().find_map(|line| line.trim().split_once(" requests in "));
            failed += f64::from(answered.is_none_or(|(count, _)| matches!(count, "0" | "")));
            if let Some(line) = said.lines().find(|line| line.contains("Requests/sec")) {
                println!("  {}: {}", path.split(['?', '-']).next().unwrap_or_default(), line.trim());
            }
        }
        card.at_most(&format!("answers that failed, {what}"), failed, 0.0, "");
        card.at_most(&format!("growth of memory meanwhile, {what}"), self.memory() / before, 1.25, "×");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first paint of the page that is open, in milliseconds after it was asked for.
fn first_paint(browser: &Browser) -> f64 {
    let paint = browser.wait("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime");
    paint.as_f64().unwrap_or(f64::NAN)
}

fn on_large_sessions(binary: &Path, home: &Path, quick: bool, card: &mut Card) {
    let Some(server) = Running::start(binary, home) else {
        return println!("the viewer: skipped, it did not start");
    };
    if let Some(browser) = Browser::start() {
        browser.open(&server.url("/"));
        // Each is read for the first time; the best of a few is taken, as everywhere.
        let mut fresh = f64::INFINITY;
        let mut again = f64::INFINITY;
        for i in 0..3 {
            browser.open(&format!("http://{}/s/{}", server.host, id(i)));
            fresh = fresh.min(first_paint(&browser));
            browser.open("about:blank");
            browser.open(&format!("http://{}/s/{}", server.host, id(i)));
            again = again.min(first_paint(&browser));
        }
        card.at_most("first paint of a session of 100 MB", fresh, 400.0, "ms");
        card.at_most("first paint of it when it is known", again, 400.0, "ms");
        appended(&server, &browser, home, card);
    }
    let sessions = if quick { 10 } else { SESSIONS };
    for i in 0..sessions {
        let path = format!("/s/{}", id(i));
        let Some(page) = server.get(&path) else {
            return println!("a session of 100 MB could not be opened");
        };
        let names =
            page.match_indices("data-p=\"").filter_map(|(at, key)| page[at + key.len()..].split('"').next());
        for name in names.skip(5).step_by(40).take(3) {
            let _ = server.get(&format!("{path}/part?name={name}"));
        }
    }
    card.at_most(&format!("memory after {sessions} sessions of 100 MB"), server.memory(), 300.0, "MB");
    server.crowd("a session of 100 MB", &[format!("/s/{}", id(0))], quick, card);
    card.at_most("memory after that", server.memory(), 300.0, "MB");
}

/// From the moment a line is appended until it stands on the page.
fn appended(server: &Running, browser: &Browser, home: &Path, card: &mut Card) {
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
        browser.wait("return document.getElementById('main')?.dataset.line");
        browser.run("scrollTo(0, document.documentElement.scrollHeight)");
        let mut times = Vec::new();
        for i in 0..5 {
            let known = browser.run("return document.getElementById('main').dataset.line");
            browser.run(
                "window.seen = 0; new MutationObserver((_, me) => { if (document.getElementById('main').dataset.line !== window.known) { window.seen = Date.now(); me.disconnect(); } }).observe(document.getElementById('main'), { attributes: true, attributeFilter: ['data-line'] }); window.known = document.getElementById('main').dataset.line;",
            );
            let line = format!(
                "{{\"parentUuid\":null,\"isSidechain\":false,\"sessionId\":\"{session}\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"appended {i} {known}\"}},\"uuid\":\"appended-{i}-{session}\",\"timestamp\":\"2026-04-01T10:00:0{i}.000Z\"}}\n"
            );
            let now =
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1e3);
            let Ok(mut log) = File::options().append(true).open(&file) else { return };
            if log.write_all(line.as_bytes()).is_err() {
                return;
            }
            let seen = browser.wait("return window.seen").as_f64().unwrap_or(f64::NAN);
            times.push(seen - now);
        }
        times.sort_by(f64::total_cmp);
        card.at_most(&format!("until an appended line is seen, {what}"), times[times.len() / 2], 250.0, "ms");
        let _ = fs::remove_file(&file);
    }
}

fn on_many_sessions(binary: &Path, home: &Path, quick: bool, card: &mut Card) {
    let Some(server) = Running::start(binary, home) else {
        return println!("the viewer: skipped, it did not start");
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
        card.at_most("first paint of home with 3,000 sessions", best, 300.0, "ms");
    }
    let page = server.get("/").unwrap_or_default();
    let session = page.split("href=\"/s/").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    server.crowd("home and a session", &["/".to_owned(), format!("/s/{session}")], quick, card);
}
