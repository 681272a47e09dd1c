//! Sessions whose sub-agents, hooks and MCP servers fail at random. The session must be sound and resume.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use threadline_agent::{Agent, AgentConfig, AgentEvent, HookSettings};
use threadline_cancel::CancelToken;
use threadline_mcp_client::{McpOptions, McpServerConfig, McpServers, McpTransport};
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::faults::{Random, assert_resumes, assert_sound_log, random_reply, remove_empty_log};
use crate::harness::Stage;

/// The number of runs that take place at the same time. Most of their time is spent waiting.
const WORKERS: u64 = 16;

/// A server that does one thing at its start, and another one at each call.
const SERVER: &str = r#"
start=$1 call=$2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9]*\).*$/\1/p')
  reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  act() {
    case "$1" in
      answer) reply "$2" ;;
      crash) kill -9 $$ ;;
      exit) exit 3 ;;
      hang) sleep 60 ;;
      garbage) printf '{{{ \033[2J no JSON\n' ;;
      strange) printf '{"jsonrpc":"2.0","id":%s,"result":7}\n[]\n{"jsonrpc":"2.0","id":999,"result":{}}\n' "$id" ;;
      error) reply '"error":{"code":-32000,"message":"no"}' ;;
    esac
  }
  case "$line" in
    *'"initialize"'*) act "$start" '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) reply '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
    *'"tools/call"'*) act "$call" '"result":{"content":[{"type":"text","text":"3"}]}' ;;
  esac
done
"#;

fn pick<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len())]
}

/// Starts two servers that behave at random.
fn servers(random: &mut Random, stage: &Stage) -> McpServers {
    let mut options = McpOptions::new(stage.work(), vec![("PATH".into(), "/usr/bin:/bin".into())]);
    options.connect_timeout = Duration::from_millis(500);
    options.call_timeout = Duration::from_millis(200);
    let mut config = |name: &str| {
        let start = pick(
            random,
            &["answer", "answer", "answer", "answer", "crash", "exit", "hang", "garbage", "error"],
        );
        let call = pick(random, &["answer", "crash", "exit", "hang", "garbage", "strange", "error"]);
        let args = ["-c", SERVER, "server", start, call].map(str::to_owned).to_vec();
        let transport = McpTransport::Stdio { command: "/bin/sh".to_owned(), args, env: BTreeMap::new() };
        McpServerConfig { name: name.to_owned(), transport }
    };
    McpServers::connect(vec![config("one"), config("two")], &options, &CancelToken::new())
}

/// Hooks of random events that do random things.
fn hooks(random: &mut Random) -> HookSettings {
    const EVENTS: &[&str] = &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "SessionEnd",
    ];
    const COMMANDS: &[&str] = &[
        "cat",
        "true",
        "exit 1",
        "exit 2",
        "echo why >&2; exit 2",
        "kill -9 $$",
        "printf '{'",
        "printf '\\377\\033[2J'",
        "echo '{\"continue\":false,\"stopReason\":\"enough\"}'",
        "echo '{\"decision\":\"block\",\"reason\":\"no\"}'",
        "echo '{\"systemMessage\":7,\"hookSpecificOutput\":[]}'",
        "echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\"}}'",
        "echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"updatedInput\":{\"command\":\"echo y\"}}}'",
        "head -c 100000 /dev/zero",
    ];
    let mut settings = HookSettings::default();
    for _ in 0..random.below(4) {
        let command = if random.below(12) == 0 { "sleep 60" } else { pick(random, COMMANDS) };
        let hook = json!({"type": "command", "command": command, "timeout": 0.3});
        let json = json!({ pick(random, EVENTS): [{"hooks": [hook]}] }).to_string();
        settings.add(serde_json::from_str(&json).unwrap()).unwrap();
    }
    settings
}

/// A reply that calls sub-agents, servers and commands, or a fault of the API.
fn reply(random: &mut Random) -> ScriptedReply {
    let call = |random: &mut Random| -> Value {
        let (name, input) = match random.below(6) {
            0 => ("mcp__one__t", json!({"a": 1})),
            1 => ("mcp__two__t", json!({})),
            2 => ("Agent", json!({"description": "d", "prompt": "Look", "subagent_type": "general-purpose"})),
            3 => (
                "Agent",
                json!({"description": "d", "prompt": "Look", "subagent_type": "Explore", "run_in_background": true}),
            ),
            4 => ("Agent", json!({"description": "d", "prompt": "Look", "subagent_type": "unknown"})),
            _ => ("Bash", json!({"command": "echo x"})),
        };
        json!({"type": "tool_use", "name": name, "input": input})
    };
    match random.below(8) {
        0 | 1 => ScriptedReply::blocks(vec![call(random)]),
        2 | 3 => ScriptedReply::blocks((0..3).map(|_| call(random)).collect()),
        4 => ScriptedReply::text("done"),
        _ => random_reply(random),
    }
}

/// Starts the session, or continues it in another process as it were.
fn start(random: &mut Random, stage: &Stage, api: &ScriptedApi) -> Agent {
    let config = AgentConfig { hooks: hooks(random), max_turns: Some(12), ..stage.config(stage.start()) };
    let mut agent = stage.agent(api, config).unwrap();
    agent.add_servers(servers(random, stage));
    agent
}

/// Runs one session. Returns the refusals of the API.
fn run(seed: u64) -> Vec<String> {
    let mut random = Random(seed * 2 + 1);
    let stage = Stage::new();
    let what = format!("run {seed}");
    let api = ScriptedApi::start((0..40).map(|_| reply(&mut random)).collect());
    let mut agent = start(&mut random, &stage, &api);
    for turn in 0..3 {
        let cancel = CancelToken::new();
        // One turn in four is interrupted.
        let end = if random.below(4) == 0 { random.below(30) } else { usize::MAX };
        let mut count = 0;
        let mut events = |_: AgentEvent<'_>| {
            count += 1;
            if count > end {
                cancel.cancel();
            }
        };
        let prompt = to_raw_value(&format!("turn {turn} of run {seed}")).unwrap();
        agent.run(&prompt, &cancel, &mut events);
        if !cancel.is_cancelled() {
            agent.run_background(&cancel, &mut events);
        }
        if random.below(2) == 0 {
            agent.finish(&mut |_| {}).unwrap();
            drop(agent);
            // The first prompt may have been blocked.
            remove_empty_log(&stage, &what);
            agent = start(&mut random, &stage, &api);
        }
    }
    agent.finish(&mut |_| {}).unwrap();
    assert_resumes(&stage, &what);
    for log in sub_agent_logs(&stage) {
        assert_sound_log(&log, &format!("{what}, {}", log.display()));
    }
    api.problems()
}

fn sub_agent_logs(stage: &Stage) -> Vec<PathBuf> {
    let folder = stage.log().with_extension("").join("subagents");
    let files = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect()
}

#[test]
fn a_session_survives_sub_agents_hooks_and_servers_that_fail() {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is not the program's business")]
    let wanted = std::env::var("THREADLINE_STRESS").ok();
    let runs = wanted.map_or(40, |runs| runs.parse().unwrap());
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            scope.spawn(move || {
                for seed in (worker..runs).step_by(usize::try_from(WORKERS).unwrap()) {
                    let problems = run(seed);
                    assert!(problems.is_empty(), "run {seed}: {problems:?}");
                }
            });
        }
    });
}
