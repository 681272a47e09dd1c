//! Benchmarks `blame` over a large home, beside agentsview where it is installed.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench::{BenchReport, measure};
use crate::command::run;
use crate::peer::AGENTSVIEW;

/// The number of lines of the file, of the sessions that edited it, and of the edits of each.
const LINES: usize = 2000;
const SESSIONS: usize = 30;
const EDITS: usize = 10;

/// Measures `blame` of a file of 2,000 lines, which 30 sessions edited, over all sessions of a home.
pub(crate) fn measure_blame(home: &Path, binary: &Path, report: &mut BenchReport) {
    let own = home.with_file_name("bench-home-blame");
    let file = match edited_file(&own) {
        Ok(file) => file,
        Err(error) => return report.fail("blame of 2,000 lines over 3,000 sessions", &error.to_string()),
    };
    let blame = |arguments: &[&str]| {
        let mut command = Command::new(binary);
        command.arg("--home").arg(home).arg("--home").arg(&own).arg("blame").arg(&file).args(arguments);
        command
    };
    let mut with_git = || run(&mut blame(&["--json"]));
    let mut without_git = || run(&mut blame(&["--json", "--no-git"]));
    let [with_git, without_git] = measure([&mut with_git, &mut without_git]);
    report.at_most("blame of 2,000 lines over 3,000 sessions", with_git.as_secs_f64() * 1e3, 500.0, "ms");
    report.at_most("the same without git", without_git.as_secs_f64() * 1e3, 500.0, "ms");
    measure_agentsview(home, with_git, report);
}

/// Returns a file in a repository that sessions edited, and creates it if it does not exist.
fn edited_file(home: &Path) -> io::Result<PathBuf> {
    let root = home.join("repository");
    let file = root.join("warp.rs");
    let mark = home.join(format!("complete-{LINES}-{SESSIONS}-{EDITS}-1"));
    if mark.exists() {
        return Ok(file);
    }
    if home.exists() {
        fs::remove_dir_all(home)?;
    }
    fs::create_dir_all(&root)?;
    let root = fs::canonicalize(root)?;
    let file = root.join("warp.rs");
    let path = format!("{:?}", file.to_string_lossy());
    let logs = home.join("projects/-repository");
    fs::create_dir_all(&logs)?;
    git(&root, 0, &["init", "-q"])?;
    let mut lines: Vec<String> = (0..LINES).map(|at| format!("    let thread_{at} = warp({at});")).collect();
    fs::write(&file, lines.join("\n") + "\n")?;
    commit(&root, 0)?;
    for session in 0..SESSIONS {
        let id = format!("{session:08x}-2222-4000-8000-000000000000");
        let mut log = String::new();
        let day = 1 + session % 28;
        let mut entry = |kind: &str, rest: &str, at: usize| {
            let parent = if at == 0 { "null".to_owned() } else { format!("\"{id}-{}\"", at - 1) };
            log.push_str(&format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"cwd\":{:?},\"sessionId\":\"{id}\",\"version\":\"2.1.197\",\
                 \"type\":\"{kind}\",\"uuid\":\"{id}-{at}\",\"timestamp\":\"2026-03-{day:02}T{:02}:{:02}:{:02}.000Z\",{rest}}}\n",
                root.to_string_lossy(),
                session / 28 + 1,
                at / 60,
                at % 60
            ));
        };
        entry("user", &format!("\"message\":{{\"role\":\"user\",\"content\":\"change {session}\"}}"), 0);
        for edit in 0..EDITS {
            let before = lines.join("\n") + "\n";
            let at = (session * 613 + edit * 97) % lines.len();
            let old = lines[at].clone();
            let new = format!("    let changed_{session}_{edit} = beat({at});");
            lines[at].clone_from(&new);
            lines.insert(at + 1, format!("    let added_{session}_{edit} = shed({at});"));
            let new = format!("{new}\\n{}", lines[at + 1]);
            let tool = format!("toolu_{session}_{edit}");
            let call = format!(
                "\"message\":{{\"id\":\"msg_{tool}\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[{{\"type\":\"tool_use\",\
                 \"id\":\"{tool}\",\"name\":\"Edit\",\"input\":{{\"file_path\":{path},\"old_string\":\"{old}\",\"new_string\":\"{new}\"}}}}]}}"
            );
            entry("assistant", &call, 2 * edit + 1);
            let before = before.replace('\n', "\\n");
            let result = format!(
                "\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{tool}\",\"content\":\"ok\"}}]}},\
                 \"toolUseResult\":{{\"filePath\":{path},\"oldString\":\"{old}\",\"newString\":\"{new}\",\"originalFile\":\"{before}\",\
                 \"structuredPatch\":[]}}"
            );
            entry("user", &result, 2 * edit + 2);
        }
        fs::write(logs.join(format!("{id}.jsonl")), log)?;
        if session % 3 == 2 {
            // A person formats a part of the file before the commit.
            let at = (session * 331) % lines.len();
            lines[at] = lines[at].replace(" = ", "  =  ");
            fs::write(&file, lines.join("\n") + "\n")?;
            commit(&root, session + 1)?;
        }
    }
    lines.truncate(LINES);
    fs::write(&file, lines.join("\n") + "\n")?;
    fs::write(mark, "")?;
    Ok(file)
}

fn commit(root: &Path, number: usize) -> io::Result<()> {
    git(root, number, &["add", "-A"])?;
    git(root, number, &["commit", "-q", "-m", &format!("Commit {number}")])
}

fn git(root: &Path, number: usize, arguments: &[&str]) -> io::Result<()> {
    let time = format!(
        "2026-03-{:02}T{:02}:30:00Z",
        1 + number.saturating_sub(1) % 28,
        number.saturating_sub(1) / 28 + 1
    );
    let status = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .current_dir(root)
        .env("GIT_AUTHOR_DATE", &time)
        .env("GIT_COMMITTER_DATE", &time)
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("git {arguments:?} failed"))) }
}

/// Measures agentsview, if it is installed: the first sync of the home, and its first page after that.
fn measure_agentsview(home: &Path, ours: Duration, report: &mut BenchReport) {
    let data = home.with_file_name("bench-agentsview");
    let _ = fs::remove_dir_all(&data);
    let command = |arguments: &[&str]| {
        let mut command = AGENTSVIEW.command();
        command
            .args(arguments)
            .env("AGENTSVIEW_DATA_DIR", &data)
            .env("CLAUDE_PROJECTS_DIR", home.join("projects"))
            .env("HOME", &data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    if !command(&["--version"]).status().is_ok_and(|status| status.success()) {
        return println!("agentsview: skipped, not installed ({})", AGENTSVIEW.install());
    }
    let start = Instant::now();
    let synced = command(&["sync"]).status().is_ok_and(|status| status.success());
    let sync = start.elapsed();
    if !synced {
        return report.fail("blame against agentsview's sync", "agentsview sync fails");
    }
    let start = Instant::now();
    let port = 18_790;
    let mut server =
        command(&["serve", "--no-browser", "--no-sync", "--no-update-check", "--port", &port.to_string()]);
    let page = server.spawn().ok().and_then(|mut server| {
        let answered = wait_for_page(port, &mut server);
        let _ = server.kill();
        let _ = server.wait();
        answered.then(|| start.elapsed())
    });
    println!(
        "agentsview: sync {:.1} s, first page {}",
        sync.as_secs_f64(),
        page.map_or_else(|| "did not answer".to_owned(), |page| format!("{:.2} s", page.as_secs_f64()))
    );
    let ratio = sync.as_secs_f64() / ours.as_secs_f64();
    report.at_least("blame against agentsview's sync", ratio, 1.0, "×");
    let _ = fs::remove_dir_all(&data);
}

/// Waits until the server answers its summary, for at most a minute.
fn wait_for_page(port: u16, server: &mut Child) -> bool {
    let get = || -> io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        let head = format!(
            "GET /api/v1/analytics/summary HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    };
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) && matches!(server.try_wait(), Ok(None)) {
        if get().unwrap_or(false) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
