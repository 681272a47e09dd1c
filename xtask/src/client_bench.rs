//! Benchmarks of `threadline chat`, beside Claude Code where `CLAUDE_CODE` names it.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;
use serde_json::value::RawValue;
use threadline_permission::{
    Access, Call, CallTarget, PermissionMode, Permissions, RuleEffect, RuleSet, RuleSource, Workspace,
};
use threadline_testkit::api::{ScriptedApi, ScriptedReply, events, sse};
use threadline_tools::{
    BackgroundTasks, CancelToken, FileObserver, FileStates, Limits, NoModel, Permit, Profile, ShellState,
    ToolContext, ToolSelection, ToolSet, validate,
};

use crate::bench::{BenchReport, measure};
use crate::command::{peak, run};
use crate::corpus::{Random, log};
use crate::peer::RIPGREP;

/// Each time is the best of this many.
const ROUNDS: usize = 9;

/// The number of deltas of the long reply.
const DELTAS: usize = 20_000;

/// Measures the client.
pub(crate) fn measure_client(target: &Path, binary: &Path, report: &mut BenchReport) {
    let folder = target.join("bench-client");
    let _ = fs::remove_dir_all(&folder);
    if let Err(error) = fs::create_dir_all(folder.join("work")) {
        return report.fail("chat", &error.to_string());
    }
    let ours =
        ChatProgram { program: binary.to_owned(), first: &["chat"], prompt: "Hello", folder: folder.clone() };
    report.at_most("chat: start to first request", ours.first_request(&[]), 40.0, "ms");
    report.at_most("chat: peak memory of a turn", ours.peak(&[]), 25.0, "MB");
    if let Some(program) = std::env::var_os("CLAUDE_CODE").map(PathBuf::from) {
        let other = ChatProgram { program, first: &[], prompt: "Hello", folder: folder.clone() };
        println!("Claude Code: start to first request {:.0} ms", other.first_request(&[]));
        println!("Claude Code: peak memory of a turn {:.0} MB", other.peak(&[]));
    } else {
        println!("Claude Code: not measured, CLAUDE_CODE is not set");
    }
    measure_deltas(&ours, report);
    measure_resume(&ours, report);
    measure_compaction(&ours, report);
    measure_sub_agents(&ours, report);
    measure_interrupt(&ours, report);
    measure_grep(target, report);
    measure_permissions(report);
    let _ = fs::remove_dir_all(&folder);
}

/// A program with the command line of Claude Code.
struct ChatProgram {
    program: PathBuf,
    /// The first arguments.
    first: &'static [&'static str],
    prompt: &'static str,
    folder: PathBuf,
}

impl ChatProgram {
    fn command(&self, api: &ScriptedApi, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.first).args(["-p", "--model", "claude-sonnet-4-5"]);
        // The prompt is first, because options with several values would take it.
        command.arg(self.prompt).args(args);
        command.current_dir(self.folder.join("work")).stdin(Stdio::null()).env_clear().envs([
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", self.folder.join("home").to_string_lossy().into_owned()),
            ("CLAUDE_CODE_TMPDIR", self.folder.join("tmp").to_string_lossy().into_owned()),
            ("ANTHROPIC_BASE_URL", api.url()),
            ("ANTHROPIC_API_KEY", "sk-test".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ]);
        command
    }

    /// Returns the time from the start of the process to its first request, in milliseconds.
    fn first_request(&self, args: &[&str]) -> f64 {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let api = ScriptedApi::start(vec![ScriptedReply::text("Hi.")]);
            let start = Instant::now();
            run(&mut self.command(&api, args));
            if let Some(request) = api.requests().first() {
                best = best.min(request.received.duration_since(start).as_secs_f64() * 1e3);
            }
        }
        best
    }

    /// Returns the peak memory of a turn in megabytes.
    fn peak(&self, args: &[&str]) -> f64 {
        let api = ScriptedApi::start(vec![ScriptedReply::text("Hi.")]);
        peak(self.command(&api, args))
    }
}

/// Measures the time per delta of a long reply, with all events printed.
fn measure_deltas(ours: &ChatProgram, report: &mut BenchReport) {
    let stream = |count: usize| {
        let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": ""}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1}});
        let mut list = events(&message);
        let at = list.iter().position(|event| event["type"] == "content_block_stop").unwrap_or(0);
        let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "some words "}});
        list.splice(at..at, std::iter::repeat_n(delta, count));
        sse(&list).into_bytes()
    };
    let args = ["--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    let turn = |count: usize| {
        let bytes = stream(count);
        move || {
            let api = ScriptedApi::start(vec![ScriptedReply::Raw(bytes.clone())]);
            run(&mut ours.command(&api, &args));
        }
    };
    let (mut short, mut long) = (turn(1), turn(DELTAS));
    let [short, long] = measure([&mut short, &mut long]);
    let overhead = long.saturating_sub(short).as_secs_f64() * 1e6 / DELTAS as f64;
    report.at_most("chat: time per streamed delta", overhead, 50.0, "µs");
}

/// Measures the resume of a session of 200 MB that was compacted near its end.
fn measure_resume(ours: &ChatProgram, report: &mut BenchReport) {
    let id = "00000000-0000-4000-8000-000000000200";
    let path = ours.folder.join("work").join(format!("{id}.jsonl"));
    let made = || -> std::io::Result<()> {
        let mut file = fs::File::create(&path)?;
        file.write_all(log(id, 200_000_000, &mut Random::new(200)).as_bytes())?;
        file.write_all(compacted_end(id).as_bytes())
    };
    if let Err(error) = made() {
        return report.fail("chat: resume of 200 MB", &error.to_string());
    }
    let path = path.to_string_lossy();
    let args = &["--resume", &*path];
    report.at_most("chat: resume of 200 MB to first request", ours.first_request(args), 1000.0, "ms");
    report.at_most("chat: peak memory of that resume", ours.peak(args), 60.0, "MB");
}

/// Returns a compaction with a summary, and a short turn after it.
fn compacted_end(id: &str) -> String {
    let mut end = String::new();
    let mut parent = "null".to_owned();
    let rest = |uuid: &str, second: u32| {
        format!(
            "\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/home/ada/project\",\"sessionId\":\"{id}\",\
             \"version\":\"2.1.197\",\"gitBranch\":\"main\",\"uuid\":\"{uuid}\",\
             \"timestamp\":\"2026-05-01T10:00:{second:02}.000Z\""
        )
    };
    let lines = [
        r#""type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":1000}"#,
        r#""type":"user","isCompactSummary":true,"message":{"role":"user","content":"This session is being continued."}"#,
        r#""type":"assistant","message":{"id":"msg_end","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Going on."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#,
    ];
    for (i, line) in lines.iter().enumerate() {
        let uuid = format!("0000000{i}-2222-4000-8000-000000000000");
        let _ = writeln!(end, "{{\"parentUuid\":{parent},{line},{}}}", rest(&uuid, i as u32));
        parent = format!("\"{uuid}\"");
    }
    end
}

/// Measures the memory of a compaction beyond that of an ordinary turn, against the size of the conversation.
fn measure_compaction(ours: &ChatProgram, report: &mut BenchReport) {
    let id = "00000000-0000-4000-8000-000000000004";
    let path = ours.folder.join("work").join(format!("{id}.jsonl"));
    // About a million tokens.
    let log = log(id, 4_000_000, &mut Random::new(4));
    let peak_of = |prompt: &'static str| {
        if fs::write(&path, &log).is_err() {
            return f64::NAN;
        }
        let program =
            ChatProgram { prompt, program: ours.program.clone(), folder: ours.folder.clone(), ..*ours };
        program.peak(&["--resume", &path.to_string_lossy()])
    };
    let ratio = (peak_of("/compact") - peak_of("Hello")) * 1e6 / log.len() as f64;
    report.at_most("chat: memory of a compaction, in conversations", ratio, 0.5, "×");
}

/// Measures the memory of ten sub-agents that run at the same time, beyond that of a turn with one command.
fn measure_sub_agents(ours: &ChatProgram, report: &mut BenchReport) {
    // All sub-agents have sent their first request before the first of them sends its second one.
    let wait = || ScriptedReply::call("Bash", json!({"command": "sleep 0.5"}));
    let args = ["--permission-mode", "bypassPermissions"];
    let turn = |replies: Vec<ScriptedReply>| peak(ours.command(&ScriptedApi::start(replies), &args));
    let input = json!({"description": "a task", "prompt": "Do it", "subagent_type": "general-purpose"});
    let call = json!({"type": "tool_use", "name": "Agent", "input": input});
    let mut replies = vec![ScriptedReply::blocks(vec![call; 10])];
    replies.extend((0..10).map(|_| wait()));
    replies.extend((0..11).map(|_| ScriptedReply::text("Done.")));
    let added = turn(replies) - turn(vec![wait(), ScriptedReply::text("Done.")]);
    report.at_most("chat: memory of ten sub-agents", added, 30.0, "MB");
}

/// Measures the time from the request of a program to interrupt a command to the end of the turn.
fn measure_interrupt(ours: &ChatProgram, report: &mut BenchReport) {
    let what = "chat: interrupt of a command";
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        match interrupt(ours) {
            Ok(time) => best = best.min(time),
            Err(error) => return report.fail(what, &error.to_string()),
        }
    }
    report.at_most(what, best, 20.0, "ms");
}

/// Returns the milliseconds from an interrupt to the line with the result.
fn interrupt(ours: &ChatProgram) -> std::io::Result<f64> {
    let started = ours.folder.join("work/started");
    let _ = fs::remove_file(&started);
    let api =
        ScriptedApi::start(vec![ScriptedReply::call("Bash", json!({"command": "touch started; sleep 60"}))]);
    let mut command = ours.command(&api, &["--permission-mode", "bypassPermissions", "--verbose"]);
    command.args(["--input-format", "stream-json", "--output-format", "stream-json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::Error::other("the process has no pipes"));
    };
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "Go"}});
    writeln!(input, "{prompt}")?;
    let limit = Instant::now() + std::time::Duration::from_secs(20);
    while !started.exists() {
        if Instant::now() > limit {
            child.kill()?;
            return Err(std::io::Error::other("the command did not start"));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let request = json!({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}});
    let start = Instant::now();
    writeln!(input, "{request}")?;
    let mut lines = std::io::BufReader::new(output).lines();
    let ended = lines.any(|line| line.is_ok_and(|line| line.contains(r#""type":"result""#)));
    let time = start.elapsed().as_secs_f64() * 1e3;
    drop(input);
    child.wait()?;
    if ended { Ok(time) } else { Err(std::io::Error::other("the turn did not end")) }
}

struct NoObserver;

impl FileObserver for NoObserver {
    fn before_change(&self, _: &Path) {}
}

/// Measures Grep against `rg`, over the sources and generated logs.
fn measure_grep(target: &Path, report: &mut BenchReport) {
    let what = "Grep against rg";
    let folder = target.join("bench-home/projects");
    let rg = || {
        let mut command = RIPGREP.command();
        command.args(["--count-matches", "--hidden", "shuttle", "."]).current_dir(&folder);
        command
    };
    if !RIPGREP.check_runs(rg(), what, report) {
        return;
    }
    let selection = ToolSelection { only: Some(vec!["Grep".to_owned()]), without: Vec::new() };
    let tools = ToolSet::new(&Profile::V2_1_197, &selection, &|_| false);
    let Some(grep) = tools.get("Grep") else { return report.fail(what, "no such tool") };
    let input = r#"{"pattern": "shuttle", "output_mode": "count", "head_limit": 0}"#;
    let Ok(input) = RawValue::from_string(input.to_owned()) else { return };
    let Ok(input) = validate(grep, &input, &folder) else {
        return report.fail(what, "the input is not valid");
    };
    let (cancel, shell, files) = (CancelToken::new(), ShellState::new(&folder), FileStates::new());
    let (background, limits) = (BackgroundTasks::new(), Limits::default());
    let context = ToolContext {
        cancel: &cancel,
        tool_use_id: "toolu_1",
        project: &folder,
        additional_dirs: &[],
        home: None,
        shell: &shell,
        files: &files,
        observer: &NoObserver,
        side_files: &folder,
        tasks_dir: &folder,
        task_list_dir: &folder,
        background: &background,
        environment: &[],
        launcher: None,
        is_hidden: &|_| false,
        limits: &limits,
        model: &NoModel,
        progress: &|_| {},
    };
    let mut ours = || drop(grep.run(&input, &context, Permit::issue()));
    let mut theirs = || run(&mut rg());
    let [ours, theirs] = measure([&mut ours, &mut theirs]);
    report.at_most(what, ours.as_secs_f64() / theirs.as_secs_f64(), 1.5, "×");
}

/// Measures decisions about shell commands and files under many rules.
fn measure_permissions(report: &mut BenchReport) {
    let Ok(cwd) = std::env::current_dir() else { return };
    let mut rules = RuleSet::default();
    let source = RuleSource { base: &cwd, cwd: &cwd, home: None };
    for i in 0..50 {
        rules.add(&format!("Bash(tool{i} run:*)"), RuleEffect::Allow, source);
        rules.add(&format!("Bash(tool{i} * --force)"), RuleEffect::Deny, source);
        rules.add(&format!("Read(secrets{i}/**)"), RuleEffect::Deny, source);
    }
    let workspace = Workspace { cwd: cwd.clone(), ..Workspace::default() };
    let permissions = Permissions { mode: PermissionMode::Default, rules, workspace };
    let commands = [
        "ls -la src",
        "git status && git diff --stat | head -50",
        "tool7 run --all; tool8 run x > /dev/null 2>&1",
        "for f in a b c; do echo \"x $f\"; done",
        "find . -name '*.rs' -type f | xargs grep -n main | sort | uniq -c",
        "cd src && cat main.rs | sed -n '1,20p'",
        "echo \"a $(git log --oneline -5) b\" && timeout 5 tool9 run",
        "python3 - <<'EOF'\nprint(1)\nEOF",
    ];
    let path = cwd.join("src/main.rs");
    let mut slowest = 0.0_f64;
    for command in commands {
        let call =
            Call { tool: "Bash", is_read_only: false, target: CallTarget::Command { command, cwd: &cwd } };
        slowest = slowest.max(best_decision(&permissions, call));
    }
    let target = CallTarget::Path { path: &path, given: "src/main.rs", access: Access::Write };
    let call = Call { tool: "Write", is_read_only: false, target };
    slowest = slowest.max(best_decision(&permissions, call));
    report.at_most("chat: slowest of nine permission checks", slowest, 100.0, "µs");
}

/// Returns the shortest time of a decision in microseconds.
fn best_decision(permissions: &Permissions, call: Call<'_>) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        std::hint::black_box(permissions.decide(std::hint::black_box(call)));
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
    }
    best
}
