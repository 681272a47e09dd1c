//! `trace`, as run by users and as a hook by Claude Code.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use threadline_testkit::{TestHome, session_uuid};

use crate::run::command;

/// An OTLP/JSON receiver that records span ids and can delay its responses.
struct TestReceiver {
    port: u16,
    ids: Arc<Mutex<BTreeSet<String>>>,
    pause: Arc<AtomicU64>,
    /// The status and the body of every response.
    reply: Arc<Mutex<(&'static str, &'static str)>>,
}

impl TestReceiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (ids, pause) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicU64::new(0)));
        let reply = Arc::new(Mutex::new(("200 OK", "{}")));
        let (own_ids, own_pause, own_reply) = (ids.clone(), pause.clone(), reply.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (ids, pause, reply) = (own_ids.clone(), own_pause.clone(), own_reply.clone());
                std::thread::spawn(move || serve(stream, &ids, &pause, &reply));
            }
        });
        Self { port, ids, pause, reply }
    }

    fn command(&self, state: &Path, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("XDG_STATE_HOME", state).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        command.env("OTEL_EXPORTER_OTLP_COMPRESSION", "none");
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{}", self.port));
        // Claude Code passes this to its child processes; it must have no effect.
        command.env("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        command
    }
}

fn serve(
    stream: TcpStream,
    ids: &Mutex<BTreeSet<String>>,
    pause: &AtomicU64,
    reply: &Mutex<(&'static str, &'static str)>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let request: Value = serde_json::from_slice(&body).unwrap();
        for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap() {
            let id = format!("{}/{}", span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap());
            ids.lock().insert(id);
        }
        std::thread::sleep(Duration::from_millis(pause.load(Ordering::Relaxed)));
        let (status, body) = *reply.lock();
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

fn run_hook(mut command: Command, input: &str) -> (Option<i32>, String, String) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The process may have exited without reading its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn turn(n: usize) -> String {
    let before = if n == 1 { String::new() } else { format!("<- a{} ", n - 1) };
    format!("u{n} {before}user \"{n}\"\na{n} <- u{n} reply msg_{n} text \"{n}\"\n")
}

fn hook_input(home: &TestHome, session: &str, event: &str) -> String {
    let path = home.root().join(format!("projects/-home-ada-loom/{}.jsonl", session_uuid(session)));
    json!({"session_id": session_uuid(session), "transcript_path": path, "hook_event_name": event})
        .to_string()
}

#[test]
fn a_hook_always_exits_with_0_and_prints_nothing() {
    let home = TestHome::new();
    home.session("s", &turn(1));
    let state = tempfile::tempdir().unwrap();
    let good = hook_input(&home, "s", "Stop");
    let cases: [(&[&str], &str); 9] = [
        (&["trace", "hook"], &good),
        (&["trace", "hook"], ""),
        (&["trace", "hook"], "no JSON"),
        (&["trace", "hook"], "{}"),
        (&["trace", "hook"], "{\"session_id\":\"x\",\"transcript_path\":\"/nowhere/x.jsonl\"}"),
        (&["trace", "hook", "--no-such-flag"], &good),
        (&["trace", "hook", "--preset", "langfuse"], &good),
        (&["trace", "hook", "--endpoint", "http://127.0.0.1:9"], &good),
        (&["--home", "/nowhere", "trace", "hook", "--endpoint", "no address"], &good),
    ];
    for (args, input) in cases {
        let mut command = command(args);
        command.env("XDG_STATE_HOME", state.path());
        let (code, out, _) = run_hook(command, input);
        assert_eq!((code, &*out), (Some(0), ""), "{args:?} {input}");
    }
    let log = std::fs::read_to_string(state.path().join("threadline/trace/hook.log")).unwrap();
    assert!(
        log.contains("no receiver configured") && log.contains("stdin is not the JSON input of a hook"),
        "{log}"
    );
}

#[test]
fn a_hook_sends_each_turn_and_status_reports_it() {
    let home = TestHome::new();
    let receiver = TestReceiver::start();
    let state = tempfile::tempdir().unwrap();
    for n in 1..=3 {
        let log: String = (1..=n).map(turn).collect();
        home.session("s", &log);
        let (code, out, err) =
            run_hook(receiver.command(state.path(), &["trace", "hook"]), &hook_input(&home, "s", "Stop"));
        assert_eq!((code, &*out, &*err), (Some(0), "", ""));
        assert_eq!(receiver.ids.lock().len(), 2 * n);
    }
    let status = receiver.command(state.path(), &["trace", "status", "--json"]).output().unwrap();
    let line: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(
        (&line["turns"], &line["spans"], &line["error"]),
        (&json!(3), &json!(6), &Value::Null),
        "{line}"
    );
    let docs =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md")).unwrap();
    for key in line.as_object().unwrap().keys() {
        assert!(docs.contains(&format!("`{key}`")), "{key}");
    }
    let shown = receiver.command(state.path(), &["trace", "status", "--all"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("1 session, 3 turns, 6 spans sent") && shown.contains("hook.log"), "{shown}");
}

#[test]
fn killed_hooks_lose_no_spans() {
    let home = TestHome::new();
    let receiver = TestReceiver::start();
    let state = tempfile::tempdir().unwrap();
    let kills = 12;
    receiver.pause.store(15, Ordering::Relaxed);
    for n in 1..=kills {
        home.session("s", &(1..=n).map(turn).collect::<String>());
        let mut child = receiver
            .command(state.path(), &["trace", "hook"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(hook_input(&home, "s", "Stop").as_bytes());
        // Kills it at a different point each time: while it reads, sends, awaits the response or saves its
        // state.
        std::thread::sleep(Duration::from_millis(3 * n as u64));
        let _ = child.kill();
        child.wait().unwrap();
    }
    receiver.pause.store(0, Ordering::Relaxed);
    for _ in 0..2 {
        run_hook(receiver.command(state.path(), &["trace", "hook"]), &hook_input(&home, "s", "SessionEnd"));
    }
    let path = home.root().join(format!("projects/-home-ada-loom/{}.jsonl", session_uuid("s")));
    let tree = receiver
        .command(
            state.path(),
            &["trace", "push", path.to_str().unwrap(), "--dry-run", "--unfinished", "--json"],
        )
        .output()
        .unwrap();
    let expected: BTreeSet<String> = String::from_utf8(tree.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| format!("{}/{}", line["trace"].as_str().unwrap(), line["span"].as_str().unwrap()))
        .collect();
    assert_eq!(expected.len(), 2 * kills);
    assert_eq!(*receiver.ids.lock(), expected);
}

#[test]
fn a_push_continues_where_it_stopped() {
    let home = TestHome::new();
    for n in 0..5 {
        home.session(&format!("s{n}"), &turn(1).replace("msg_", &format!("msg_{n}_")));
    }
    let receiver = TestReceiver::start();
    let state = tempfile::tempdir().unwrap();
    let root = home.root().to_str().unwrap();
    let push = |more: &[&str]| {
        let args = [&["--home", root, "trace", "push", "--all"], more].concat();
        let done = receiver.command(state.path(), &args).output().unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, _, err) = push(&["--endpoint", "http://127.0.0.1:9"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("127.0.0.1:9"), "{err}");
    assert_eq!(push(&[]).1, "5 sessions sent: 5 turns, 10 spans in 5 requests; 0 unchanged\n");
    assert_eq!(push(&[]).1, "0 sessions sent: 0 turns, 0 spans in 0 requests; 5 unchanged\n");
    assert_eq!(push(&["--again"]).1, "5 sessions sent: 5 turns, 10 spans in 5 requests; 0 unchanged\n");
    assert_eq!(receiver.ids.lock().len(), 10);
    assert!(push(&["--since", "2031-01-01"]).1.starts_with("0 sessions sent"));
    let docs =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md")).unwrap();
    let line: Value = serde_json::from_str(push(&["--json"]).1.lines().next().unwrap()).unwrap();
    for key in line.as_object().unwrap().keys() {
        assert!(docs.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn rejected_spans_are_reported() {
    let home = TestHome::new();
    home.session("s", &turn(1));
    let receiver = TestReceiver::start();
    let state = tempfile::tempdir().unwrap();
    let root = home.root().to_str().unwrap();
    for (status, body) in [
        ("400 Bad Request", "no"),
        ("200 OK", r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":""}}"#),
    ] {
        *receiver.reply.lock() = (status, body);
        let args = ["--home", root, "trace", "push", "--all", "--again"];
        let done = receiver.command(state.path(), &args).output().unwrap();
        let (out, err) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
        assert_eq!(done.status.code(), Some(2), "{out}{err}");
        assert!(out.ends_with("; 1 rejected, 0 unchanged\n"), "{out}");
        assert!(err.contains("rejected 2 spans: ") && err.contains("--again"), "{err}");
        let status = receiver.command(state.path(), &["--home", root, "trace", "status"]).output().unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        assert!(status.contains(" 0 spans sent, 2 spans rejected\n"), "{status}");
    }
}

#[test]
fn a_missing_receiver_is_an_error_with_hints() {
    let home = TestHome::new();
    home.session("s", &turn(1));
    let run = crate::run::at_home(&home, &["trace", "push", "--all"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("no receiver configured") && run.err.contains("use --endpoint URL"),
        "{}",
        run.err
    );
}

#[test]
fn keys_are_read_from_a_private_file_only() {
    let home = TestHome::new();
    home.session("s", &turn(1));
    let receiver = TestReceiver::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("threadline/trace.env");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let keys = format!(
        "LANGFUSE_PUBLIC_KEY=public\nLANGFUSE_SECRET_KEY=secret\nLANGFUSE_BASE_URL=http://127.0.0.1:{}\n",
        receiver.port
    );
    std::fs::write(&file, keys).unwrap();
    let push = || {
        let root = home.root().to_str().unwrap();
        let mut command = command(["--home", root, "trace", "push", "--all", "--protocol", "http/json"]);
        command.env("XDG_CONFIG_HOME", dir.path()).env("XDG_STATE_HOME", dir.path());
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let (code, err) = push();
        assert_eq!(code, Some(2));
        assert!(err.contains("is readable by other users") && err.contains("chmod 600"), "{err}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    // Requests to Langfuse are compressed, which this receiver cannot decode. That it was reached is enough.
    let (_, err) = push();
    assert!(!err.contains("no receiver") && !err.contains("Langfuse requires"), "{err}");
}

const SETTINGS: &str = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"matcher\": \"\",\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"say done\"\n          }\n        ]\n      }\n    ],\n    \"PreToolUse\": []\n  },\n  \"permissions\": {\n    \"allow\": [\"Bash(ls:*)\"]\n  }\n}\n";

#[test]
fn install_and_uninstall_change_only_our_settings() {
    let home = TestHome::new();
    let path = home.file("settings.json", SETTINGS);
    let read = || std::fs::read_to_string(&path).unwrap();
    let run = |args: &[&str]| crate::run::at_home(&home, args);
    let shown = run(&["trace", "install", "--preset", "langfuse"]);
    assert_eq!((shown.code, read()), (0, SETTINGS.to_owned()));
    let changed: Vec<&str> = shown.out.lines().filter(|line| line.starts_with(['+', '-'])).collect();
    assert!(
        changed
            .iter()
            .filter(|line| line.starts_with('+'))
            .any(|line| line.contains("trace --preset langfuse")),
        "{shown}"
    );
    assert_eq!(run(&["trace", "install", "--preset", "langfuse", "--apply"]).code, 0);
    let after = read();
    let settings: Value = serde_json::from_str(&after).unwrap();
    assert_eq!(settings["hooks"]["Stop"].as_array().unwrap().len(), 2);
    assert_eq!(settings["hooks"]["SessionEnd"].as_array().unwrap().len(), 1);
    assert_eq!(
        settings["hooks"]["Stop"][0],
        serde_json::from_str::<Value>(SETTINGS).unwrap()["hooks"]["Stop"][0]
    );
    assert!(run(&["trace", "install", "--apply"]).out.contains(": no changes"));
    assert_eq!(run(&["trace", "uninstall", "--apply"]).code, 0);
    assert_eq!(read(), SETTINGS);
    std::fs::remove_file(&path).unwrap();
    run(&["trace", "install", "--apply"]);
    run(&["trace", "uninstall", "--apply"]);
    assert!(!path.exists());
}

/// Traces have the prices that `usage` and `show` have.
#[test]
fn costs_are_by_the_price_list_of_the_person() {
    let home = TestHome::new();
    home.session(
        "s",
        "u1 user \"hi\"\na1 <- u1 reply m1 text \"yes\" model=loom-1 usage={\"input_tokens\":1000000} stop=end_turn",
    );
    home.file(
        "config/threadline/prices.json",
        r#"{"prices":[{"model":"loom-1","input":3,"output":2,"write_5m":1,"write_1h":1,"read":1}]}"#,
    );
    let root = home.root().to_str().unwrap();
    let run =
        crate::run::command(["--home", root, "trace", "push", "last", "--dry-run", "--unfinished", "--json"])
            .env("XDG_CONFIG_HOME", home.root().join("config"))
            .output()
            .unwrap();
    let lines = String::from_utf8(run.stdout).unwrap();
    let costs: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["cost"].clone())
        .filter(|cost| !cost.is_null())
        .collect();
    assert_eq!(costs, ["3"], "{lines}");
}
