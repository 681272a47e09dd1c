//! Benchmarks `trace` as processes: the hook on a long session, and a push to a receiver that accepts at
//! once.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bench::{BenchReport, LogFiles, measure};
use crate::command::peak;
use crate::corpus::{Random, log};

/// Measures the hook on a session of 50 MB with one new turn, and a push of all sessions.
pub(crate) fn measure_trace(home: &Path, binary: &Path, report: &mut BenchReport) {
    let Ok(port) = receiver() else { return };
    let state = home.join("trace-state");
    // With the state of an earlier run there would be nothing to send.
    let _ = fs::remove_dir_all(&state);
    let endpoint = format!("http://127.0.0.1:{port}");
    measure_hook(home, binary, &state, &endpoint, report);
    measure_push(home, binary, &state, &endpoint, report);
    let _ = fs::remove_dir_all(&state);
}

/// Returns the lines of one more turn, as Claude Code would write them.
fn turn(n: usize) -> String {
    let line = |kind: &str, role: &str, more: &str| {
        format!(
            "{{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"{kind}\",\"uuid\":\"{kind}-{n}\",\"timestamp\":\"2026-06-01T10:00:{:02}.000Z\",\"message\":{{\"role\":\"{role}\",{more}}}}}\n",
            n % 60
        )
    };
    let prompt = line("user", "user", "\"content\":\"and now?\"");
    let reply = format!(
        "\"id\":\"msg_bench_{n}\",\"model\":\"claude-opus-5\",\"content\":[{{\"type\":\"text\",\"text\":\"So be it.\"}}],\"stop_reason\":\"end_turn\",\"usage\":{{\"input_tokens\":10,\"output_tokens\":5}}"
    );
    prompt + &line("assistant", "assistant", &reply)
}

fn measure_hook(home: &Path, binary: &Path, state: &Path, endpoint: &str, report: &mut BenchReport) {
    let session = "00000000-0000-4000-8000-000000000051";
    let folder = home.join("trace-home/projects/-bench");
    let path = folder.join(format!("{session}.jsonl"));
    let bytes = log(session, 50_000_000, &mut Random::new(51));
    if fs::create_dir_all(&folder).and_then(|()| fs::write(&path, bytes)).is_err() {
        return;
    }
    let input = folder.join("input.json");
    let summary = format!(
        "{{\"session_id\":\"{session}\",\"transcript_path\":\"{}\",\"hook_event_name\":\"Stop\"}}",
        path.display()
    );
    if fs::write(&input, summary).is_err() {
        return;
    }
    let hook = || {
        let mut command = Command::new(binary);
        command
            .args(["trace", "hook", "--timeout", "60", "--endpoint", endpoint])
            .env("XDG_STATE_HOME", state);
        if let Ok(file) = fs::File::open(&input) {
            command.stdin(file);
        }
        command
    };
    let mut n = 0;
    let mut grow = || {
        n += 1;
        if let Ok(mut file) = fs::OpenOptions::new().append(true).open(&path) {
            // If writing fails, nothing is sent, and the result is too good.
            let _ = file.write_all(turn(n).as_bytes());
        }
    };
    grow();
    run(&mut hook());
    let mut one = || {
        grow();
        run(&mut hook());
    };
    let [time] = measure([&mut one]);
    report.at_most("trace hook on 50 MB with one new turn", time.as_secs_f64() * 1e3, 40.0, "ms");
    grow();
    report.at_most("peak memory of the trace hook", peak(hook()), 30.0, "MB");
}

fn measure_push(home: &Path, binary: &Path, state: &Path, endpoint: &str, report: &mut BenchReport) {
    let logs = LogFiles::in_folder(&home.join("projects"));
    let push = |again: bool| {
        let mut command = Command::new(binary);
        command.arg("--home").arg(home).args([
            "trace",
            "push",
            "--all",
            "--unfinished",
            "--endpoint",
            endpoint,
        ]);
        if again {
            command.arg("--again");
        }
        command.env("XDG_STATE_HOME", state);
        command
    };
    let mut all = || {
        let _ = fs::remove_dir_all(state);
        run(&mut push(false));
    };
    let [time] = measure([&mut all]);
    let speed = logs.bytes as f64 / 1e6 / time.as_secs_f64();
    report.at_least("trace push into a receiver that accepts at once", speed, 100.0, "MB/s");
    report.at_most("peak memory of trace push", peak(push(true)), 250.0, "MB");
}

fn run(command: &mut Command) {
    // Only the time matters here; other tests check the output.
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Starts a receiver that accepts every request, on a free port.
fn receiver() -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || accept(stream));
        }
    });
    Ok(port)
}

fn accept(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::with_capacity(1 << 16, stream.try_clone().ok()?);
    let mut writer = stream;
    let mut line = String::new();
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
        writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}
