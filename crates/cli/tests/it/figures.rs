//! Figures of real sessions are equal in the terminal, on the pages and in `--json`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::command;

/// The number of sessions to compare.
const SESSIONS: usize = 50;

/// Copies the shared sessions with their sub-agents into a home.
fn home_of_shared_sessions() -> Option<tempfile::TempDir> {
    let logs = threadline_testkit::shared_logs();
    if logs.is_empty() {
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    for log in logs {
        let folder = log.parent().unwrap();
        let inside: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
        let at = inside.iter().position(|part| *part == "subagents").map_or(inside.len(), |at| at - 1);
        let project = inside[..at].join("-").replace(['/', '.', '_'], "-");
        let target =
            inside[at..].iter().fold(home.path().join("projects").join(project), |to, part| to.join(part));
        std::fs::create_dir_all(&target).unwrap();
        std::fs::copy(&log, target.join(log.file_name().unwrap())).unwrap();
    }
    Some(home)
}

fn json_lines(home: &Path, args: &[&str]) -> Vec<Value> {
    let run = command(["--home", home.to_str().unwrap(), "--json"]).args(args).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A server process with access to its pages.
struct Pages {
    child: Child,
    port: u16,
    cookie: String,
}

impl Pages {
    fn start(home: &Path) -> Self {
        let args = ["serve", "--no-open", "--home", home.to_str().unwrap()];
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (port, token) = line.trim().rsplit_once(':').unwrap().1.split_once("/?token=").unwrap();
        let mut pages = Self { child, port: port.parse().unwrap(), cookie: String::new() };
        let answer = pages.get(&format!("/?token={token}"));
        let header = answer.lines().find(|line| line.to_lowercase().starts_with("set-cookie:")).unwrap();
        let cookie = header.split_once(':').unwrap().1.split(';').next().unwrap();
        cookie.trim().clone_into(&mut pages.cookie);
        pages
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (port, cookie) = (self.port, &self.cookie);
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn json_lines(&self, path: &str) -> Vec<Value> {
        let answer = self.get(path);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Returns the sessions of the home page, once all of them are counted.
    fn cards(&self) -> Vec<Value> {
        let start = Instant::now();
        loop {
            let cards = self.json_lines("/index.json");
            let is_counted = !cards.is_empty() && cards.iter().all(|card| card["turns"].is_u64());
            if is_counted || start.elapsed() > Duration::from_secs(120) {
                return cards;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns values by the session that each is about.
fn by_id(values: Vec<Value>, key: &str) -> HashMap<String, Value> {
    values.into_iter().map(|value| (value[key].as_str().unwrap().to_owned(), value)).collect()
}

#[test]
fn figures_are_equal_in_the_terminal_on_the_pages_and_in_json() {
    let Some(home) = home_of_shared_sessions() else {
        eprintln!("skipped: no shared sessions");
        return;
    };
    let root = home.path();
    let listed = json_lines(root, &["list"]);
    let printed = command(["--home", root.to_str().unwrap(), "list"]).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let usage = by_id(json_lines(root, &["usage", "--by", "session"]), "session");
    let pages = Pages::start(root);
    let cards = by_id(pages.cards(), "id");
    assert_eq!(listed.len(), printed.lines().count() - 1);
    // A fixed pseudo-random order: the digits of ids are random, and so are their products.
    let mut order: Vec<&Value> = listed.iter().collect();
    let key = |session: &Value| {
        let id = session["id"].as_str().unwrap();
        id.bytes().fold(17_u64, |sum, byte| sum.wrapping_mul(1_099_511_628_211) ^ u64::from(byte))
    };
    order.sort_by_key(|session| key(session));
    for session in order.into_iter().take(SESSIONS) {
        let id = session["id"].as_str().unwrap();
        if let Some(card) = cards.get(id) {
            assert_eq!(card, session, "list --json and /index.json");
        } else {
            assert!(cards.len() >= 100, "{id} is not on the first page");
        }
        let shown = json_lines(root, &["show", id, "--level", "prompts"]).swap_remove(0);
        let page = pages.json_lines(&format!("/s/{id}.json")).swap_remove(0);
        for (name, of_show) in
            [("turns", "turns"), ("errors", "errors"), ("title", "title"), ("git_branch", "git_branch")]
        {
            assert_eq!(session[name], shown[of_show], "{id}: {name} of list and show");
            assert_eq!(session[name], page[of_show], "{id}: {name} of list and the page");
        }
        let counted = &usage.get(id).cloned().unwrap_or_default();
        if counted.is_null() {
            assert_eq!(session["cost_usd"].as_f64().unwrap_or_default(), 0.0, "{id}");
            continue;
        }
        assert_eq!(session["cost_usd"], counted["cost_usd"], "{id}: list and usage");
        // A call that another session contains too counts there, but is shown in both.
        if counted["inherited_calls"].as_u64().unwrap_or_default() == 0 {
            assert_eq!(shown["usage"]["cost_usd"], counted["cost_usd"], "{id}: show and usage");
            assert_eq!(page["usage"]["cost_usd"], counted["cost_usd"], "{id}: page and usage");
        }
        let row = printed.lines().find(|line| line.starts_with(id.get(..8).unwrap_or(id))).unwrap();
        // The columns are size, turns, errors and cost.
        let cells: Vec<&str> = row.split_whitespace().collect();
        let figures = [session["turns"].to_string(), session["errors"].to_string()];
        assert!(cells.windows(2).any(|pair| pair == figures), "{id}: {row}");
        let html = pages.get(&format!("/s/{id}"));
        let errors = session["errors"].as_u64().unwrap();
        let plural = if errors == 1 { "" } else { "s" };
        assert_eq!(
            html.contains(&format!(">{errors} error{plural}</a></p>")),
            errors > 0,
            "{id}: errors of the page"
        );
        assert_eq!(html.contains("class=\"next-error\""), errors > 0, "{id}: errors of the page");
    }
}
