//! A running server to be measured, with one client and with many.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::bench::BenchReport;

/// A server process, which is killed when dropped.
pub(crate) struct RunningServer {
    child: Child,
    /// `127.0.0.1:N`
    pub(crate) host: String,
    token: String,
}

impl RunningServer {
    pub(crate) fn start(binary: &Path, home: &Path) -> Option<Self> {
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

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}?token={}", self.host, self.token)
    }

    fn cookie(&self) -> String {
        format!("threadline-{}={}", self.host.rsplit(':').next().unwrap_or_default(), self.token)
    }

    /// Requests a page; returns the response if its status is 200.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.host).ok()?;
        let (host, cookie) = (&self.host, self.cookie());
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// Returns the current memory of the server, in megabytes.
    pub(crate) fn memory(&self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let kept = text
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kept.unwrap_or(f64::NAN) * 1024.0 / 1e6
    }

    /// Measures failed responses and the growth of memory while many clients send requests.
    pub(crate) fn measure_load(&self, what: &str, paths: &[String], quick: bool, report: &mut BenchReport) {
        if Command::new("wrk").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            return report.fail(&format!("{what}, 64 concurrent clients"), "wrk is not installed");
        }
        let seconds: usize = if quick { 3 } else { 30 };
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
        // Warm up first: caches and the buffers of threads are not growth.
        for path in paths {
            run(path, seconds.div_ceil(5));
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
        report.at_most(&format!("failed responses, {what}"), failed, 0.0, "");
        report.at_most(&format!("memory growth under load, {what}"), self.memory() / before, 1.1, "×");
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
