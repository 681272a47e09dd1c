//! Benchmarks of the screen of `threadline chat`, on a pseudo-terminal.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use threadline_testkit::api::{ScriptedApi, ScriptedReply, events, sse};
use threadline_testkit::terminal::TestTerminal;

use crate::bench::BenchReport;
use crate::corpus::{Random, log};

/// Each time is the best of this many.
const ROUNDS: usize = 5;
/// The number of keys whose time to the screen is measured.
const KEYS: usize = 300;
/// The number of turns to measure the memory of, unless another one is given.
pub(crate) const TURNS: usize = 10_000;
/// The pause between two pieces of a reply: the speed of a fast model.
const DELTA_PAUSE: Duration = Duration::from_millis(10);
/// The p99 of keys is the best of this many; another program that gets the processor spoils one.
const KEY_ROUNDS: usize = 3;
/// The pause between two keys: a fast typist.
const KEY_PAUSE: Duration = Duration::from_millis(12);

/// Measures the screen, and its memory over a number of turns.
pub(crate) fn measure_tui(target: &Path, binary: &Path, turns: usize, report: &mut BenchReport) {
    let folder = target.join("bench-tui");
    let _ = fs::remove_dir_all(&folder);
    if let Err(error) = fs::create_dir_all(folder.join("work")) {
        return report.fail("tui", &error.to_string());
    }
    let folder = folder.canonicalize().unwrap_or(folder);
    let bench = TuiBench { binary: binary.to_owned(), folder: folder.clone() };
    let start = (0..ROUNDS).map(|_| bench.start_time()).fold(f64::INFINITY, f64::min);
    report.at_most("tui: start to composer", start, 60.0, "ms");
    report.at_most("tui: CPU of an idle screen in 5 s", bench.idle_cpu(), 10.0, "ms");
    let paced = || ScriptedReply::Paced { bytes: text_stream(4_000), pause: DELTA_PAUSE };
    let fast = || ScriptedReply::Raw(text_stream(400_000));
    let time = bench.key_time(paced, &[]);
    report.at_most("tui: key to screen at p99, at 100 deltas per second", time, 16.0, "ms");
    let time = bench.key_time(fast, &[]);
    report.at_most("tui: key to screen at p99, text at full speed", time, 16.0, "ms");
    match bench.large_session() {
        Ok(path) => {
            let args = ["--resume", &*path.to_string_lossy()];
            let time = bench.key_time(paced, &args);
            report.at_most(
                "tui: key to screen at p99, in a session of 100 MB at 100 deltas per second",
                time,
                16.0,
                "ms",
            );
        }
        Err(error) => report.fail("tui: a session of 100 MB", &error.to_string()),
    }
    let (short, long) = (bench.reply_time(20_000), bench.reply_time(200_000));
    report.at_most("tui: a reply of 200 kB, time per kB beside one of 20 kB", long / 10.0 / short, 1.5, "×");
    let (early, late) = bench.memory(turns);
    report.at_most(&format!("tui: memory after {turns} turns"), late, 60.0, "MB");
    report.at_most("tui: memory at the end beside that after a tenth", late / early, 1.5, "×");
    let _ = fs::remove_dir_all(&folder);
}

struct TuiBench {
    binary: PathBuf,
    folder: PathBuf,
}

impl TuiBench {
    fn open(&self, api: &ScriptedApi, args: &[&str]) -> TestTerminal {
        let path = |name: &str| self.folder.join(name).into_os_string();
        let envs: Vec<(&str, OsString)> = vec![
            ("HOME", path("home")),
            ("CLAUDE_CONFIG_DIR", path("home/.claude")),
            ("CLAUDE_CODE_TMPDIR", path("tmp")),
            ("PATH", "/usr/bin:/bin".into()),
            ("TERM", "xterm-256color".into()),
            ("ANTHROPIC_BASE_URL", api.url().into()),
            ("ANTHROPIC_API_KEY", "sk-test".into()),
        ];
        let args = [&["chat", "--model", "claude-sonnet-4-5"], args].concat();
        TestTerminal::start(&self.binary, &args, &envs, &self.folder.join("work"), (40, 120))
    }

    /// Returns the time from the start of the process to the composer, in milliseconds.
    fn start_time(&self) -> f64 {
        let api = ScriptedApi::start(Vec::new());
        let start = Instant::now();
        let terminal = self.open(&api, &[]);
        terminal.wait_for("> ");
        start.elapsed().as_secs_f64() * 1e3
    }

    /// Returns the CPU time that an idle screen uses in five seconds, in milliseconds.
    fn idle_cpu(&self) -> f64 {
        let api = ScriptedApi::start(Vec::new());
        let terminal = self.open(&api, &[]);
        terminal.wait_for("sonnet-4-5");
        std::thread::sleep(Duration::from_secs(1));
        let before = cpu_ticks(terminal.id());
        std::thread::sleep(Duration::from_secs(5));
        (cpu_ticks(terminal.id()) - before) * 10.0
    }

    /// Returns the best of several measurements of the time from a key to the screen.
    fn key_time(&self, reply: impl Fn() -> ScriptedReply, args: &[&str]) -> f64 {
        (0..KEY_ROUNDS).map(|_| self.key_times(reply(), args)).fold(f64::INFINITY, f64::min)
    }

    /// Types while a reply streams. Returns the time from a key to its character on the screen that 99 of 100
    /// keys stay below, in milliseconds.
    fn key_times(&self, reply: ScriptedReply, args: &[&str]) -> f64 {
        let api = ScriptedApi::start(vec![reply]);
        let mut terminal = self.open(&api, args);
        terminal.wait_for("sonnet-4-5");
        terminal.forget_bytes();
        terminal.send("go\r");
        api.wait_for_requests(1);
        let mut times = Vec::new();
        let mut typed = String::new();
        for i in 0..KEYS {
            let key = char::from(b'a' + (i % 26) as u8);
            // A short line, so that every key changes one place.
            if typed.len() == 60 {
                typed.clear();
                terminal.send("\u{15}");
                terminal.wait_until("empty composer", |screen| screen.cursor_position().1 == 2);
            }
            typed.push(key);
            let expected = format!("> {typed}");
            times.push(terminal.time_keys(&key.to_string(), &expected));
            std::thread::sleep(KEY_PAUSE);
        }
        times.sort();
        times[times.len() * 99 / 100].as_secs_f64() * 1e3
    }

    /// Writes a session of 100 MB.
    fn large_session(&self) -> std::io::Result<PathBuf> {
        let id = "00000000-0000-4000-8000-000000000100";
        let path = self.folder.join("work").join(format!("{id}.jsonl"));
        fs::write(&path, log(id, 100_000_000, &mut Random::new(100)))?;
        Ok(path)
    }

    /// Returns the time that a reply of this many bytes of Markdown takes, in milliseconds.
    fn reply_time(&self, bytes: usize) -> f64 {
        let api = ScriptedApi::start(vec![ScriptedReply::Raw(markdown_stream(bytes))]);
        let mut terminal = self.open(&api, &[]);
        terminal.wait_for("sonnet-4-5");
        terminal.forget_bytes();
        let start = Instant::now();
        terminal.send("go\r");
        terminal.wait_for("The very end.");
        start.elapsed().as_secs_f64() * 1e3
    }

    /// Runs turns at full speed. Returns the memory after a tenth of them and at the end, in megabytes.
    fn memory(&self, turns: usize) -> (f64, f64) {
        let replies =
            (0..turns).map(|i| ScriptedReply::text(&format!("Answer {i} of many.\n\n- one\n- two")));
        let api = ScriptedApi::start(replies.collect());
        let mut terminal = self.open(&api, &["--no-session-persistence"]);
        terminal.wait_for("sonnet-4-5");
        terminal.forget_bytes();
        let mut early = 0.0;
        for i in 0..turns {
            // A conversation that grows is not what is measured.
            if i % 100 == 99 {
                terminal.send("/clear\r");
            }
            terminal.send("next\r");
            terminal.wait_for(&format!("Answer {i} of many."));
            if i == turns / 10 {
                early = memory_mb(terminal.id());
            }
        }
        (early, memory_mb(terminal.id()))
    }
}

/// Returns the CPU time of a process in ticks of ten milliseconds.
fn cpu_ticks(id: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

/// Returns the resident memory of a process in megabytes.
fn memory_mb(id: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e3
}

/// Returns the events of a reply whose text comes in these pieces.
fn stream(pieces: impl Iterator<Item = String>) -> Vec<u8> {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": ""}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 1}});
    let mut list = events(&message);
    let at = list.iter().position(|event| event["type"] == "content_block_stop").unwrap_or(0);
    let delta = |text: String| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    list.splice(at..at, pieces.map(delta));
    sse(&list).into_bytes()
}

/// A reply of plain paragraphs in pieces of ten characters, which streams for longer than the keys need.
fn text_stream(pieces: usize) -> Vec<u8> {
    let paragraph =
        "Some *words* of a `paragraph` that is long enough to be wrapped to two lines on the screen.\n\n";
    stream((0..pieces).map(move |i| paragraph[i * 10 % 90..][..10].to_owned()))
}

/// A reply with headings, lists, code and tables.
fn markdown_stream(bytes: usize) -> Vec<u8> {
    let section = "## Heading\n\nSome **bold** words and `code`, and more of them to fill a line or two of the screen.\n\n\
                   - one\n- two\n  - inner\n\n```rust\nfn main() {\n    println!(\"{}\", 1 + 2);\n}\n```\n\n\
                   | a | b |\n|---|---|\n| 1 | 2 |\n\n";
    let text = section.repeat(bytes / section.len()) + "The very end.";
    let pieces: Vec<String> =
        text.as_bytes().chunks(12).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
    stream(pieces.into_iter())
}
