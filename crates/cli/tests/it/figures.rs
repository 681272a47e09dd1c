//! Figures of real sessions are equal in the terminal, on the pages and in `--json`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::command;

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

/// Checks the figures of `compare`, which are those of the session if it has only one branch.
fn compare_conversation(root: &Path, session: &Value, shown: &Value) {
    let id = session["id"].as_str().unwrap();
    let compared = json_lines(root, &["compare", id, id]).swap_remove(0);
    let side = &compared["a"];
    assert_eq!(side["started_at"], session["started_at"], "{id}: started_at of list and compare");
    assert_eq!(side["other_branches"], shown["branches"], "{id}: branches of show and compare");
    let tools = side["tools"].as_object().unwrap().iter();
    let tools: serde_json::Map<String, Value> =
        tools.map(|(name, tally)| (name.clone(), tally["calls"].clone())).collect();
    if shown["branches"] != 0 {
        return;
    }
    for name in ["turns", "errors", "tool_calls", "sub_agents"] {
        assert_eq!(side[name], session[name], "{id}: {name} of list and compare");
    }
    assert_eq!(Value::from(tools), session["tools"], "{id}: tools of list and compare");
    let cost = |value: &Value| value.as_f64().unwrap_or_default();
    let own = cost(&side["cost_usd"]) - cost(&side["inherited_cost_usd"]);
    let of_show = cost(&shown["usage"]["cost_usd"]);
    assert!((own - of_show).abs() < 1e-9, "{id}: {own} of compare, {of_show} of show");
}

/// Returns the sessions that the MCP server lists.
fn sessions_of_mcp(root: &Path) -> HashMap<String, Value> {
    let mut sessions = Vec::new();
    let mut arguments = serde_json::json!({ "figures": true, "max_tokens": 20_000 });
    loop {
        let mut server = command(["--home", root.to_str().unwrap(), "mcp", "--all"]);
        let mut answer = crate::mcp::call(&mut server, "list_sessions", &arguments);
        let data = answer["structuredContent"].take();
        sessions.extend(data["items"].as_array().unwrap().iter().cloned());
        match data["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = cursor.into(),
            None => return by_id(sessions, "id"),
        }
    }
}

/// Returns values by their session.
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
    assert!(listed.len() >= 50, "{} sessions", listed.len());
    let overview = json_lines(root, &["overview", "--since", "2000-01-01"]).swap_remove(0);
    assert_eq!(overview["selected"]["figures"]["sessions"], listed.len(), "sessions of the overview");
    let listed_by_mcp = sessions_of_mcp(root);
    assert_eq!(listed_by_mcp.len(), listed.len(), "sessions of the MCP server");
    let tops = by_id(overview["sessions"].as_array().unwrap().clone(), "id");
    for session in &listed {
        let id = session["id"].as_str().unwrap();
        if let Some(card) = cards.get(id) {
            assert_eq!(card, session, "list --json and /index.json");
        } else {
            assert!(cards.len() >= 100, "{id} is not on the first page");
        }
        let shown = json_lines(root, &["show", id, "--level", "prompts"]).swap_remove(0);
        let page = pages.json_lines(&format!("/s/{id}.json")).swap_remove(0);
        let inspected = json_lines(root, &["inspect", id]).swap_remove(0);
        for name in ["title", "git_branch"] {
            assert_eq!(session[name], shown[name], "{id}: {name} of list and show");
            assert_eq!(session[name], page[name], "{id}: {name} of list and the page");
        }
        for name in ["turns", "errors", "tool_calls", "sub_agents", "started_at", "last_active_at"] {
            assert_eq!(session[name], shown[name], "{id}: {name} of list and show");
            assert_eq!(session[name], page[name], "{id}: {name} of list and the page");
            assert_eq!(session[name], inspected[name], "{id}: {name} of list and inspect");
        }
        for name in ["turns", "errors", "tool_calls", "sub_agents", "cost_usd"] {
            // The cost is a number with another precision there.
            let of = |value: &Value| value[name].as_f64().unwrap_or_default();
            let answer = &listed_by_mcp[id];
            assert!((of(session) - of(answer)).abs() < 1e-9, "{id}: {name} of list and the MCP server");
        }
        for name in ["git_branch", "started_at", "last_active_at", "models", "tokens"] {
            let answered = &listed_by_mcp[id][name];
            assert_eq!(&session[name], answered, "{id}: {name} of list and the MCP server");
        }
        assert_eq!(session["tools"], inspected["tools"], "{id}: tools of list and inspect");
        let of_tools = session["tools"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        assert_eq!(session["tool_calls"], of_tools, "{id}: the sum of tools");
        compare_conversation(root, session, &shown);
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
            if let Some(top) = tops.get(id) {
                assert_eq!(session["tool_calls"], top["tool_calls"], "{id}: list and overview");
                assert_eq!(session["cost_usd"], top["usage"]["cost_usd"], "{id}: list and overview");
            }
        }
        let row = printed.lines().find(|line| line.starts_with(id.get(..8).unwrap_or(id))).unwrap();
        // The columns are size, turns, errors and cost.
        let cells: Vec<&str> = row.split_whitespace().collect();
        let figures = [session["turns"].to_string(), session["errors"].to_string()];
        assert!(cells.windows(2).any(|pair| pair == figures), "{id}: {row}");
        let html = pages.get(&format!("/s/{id}"));
        let text = command(["--home", root.to_str().unwrap(), "show", id, "--turns", "1"]).output().unwrap();
        let text = String::from_utf8(text.stdout).unwrap();
        for (name, noun) in [("turns", "turn"), ("tool_calls", "tool call"), ("sub_agents", "sub-agent")] {
            let count = session[name].as_u64().unwrap();
            let label = threadline_view::humanize::plural(count, noun);
            let header = html.split_once("<p class=\"facts\">").unwrap().1.split_once("</p>").unwrap().0;
            let in_page = header.split(" <span>·</span> ").any(|fact| fact == label);
            assert!(in_page || (count == 0 && name != "turns"), "{id}: {label} in {header}");
            let in_text = text.lines().take(8).any(|line| line.split(" · ").any(|fact| fact == label));
            assert!(in_text || (count == 0 && name != "turns"), "{id}: {label} in {text:.800}");
        }
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
