"""Runs the plugin in the real Claude Code, with a scripted model on loopback, and prints a record of the session.

usage: plugin.py CLAUDE THREADLINE REPOSITORY (the command of Claude Code, the binary of threadline, the repository)

The model is scripted: each request with tools gets the next reply of the script. Nothing leaves the machine. Prints
one line per check, and the record after them.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLAUDE, THREADLINE, REPOSITORY = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
PREFIX = "mcp__plugin_threadline_threadline__"
TOOLS = ["search_sessions", "list_sessions", "read_session", "session_changes", "find_edits", "usage", "check_session"]
COMMANDS = ["search", "decisions", "continue", "cost", "why", "share", "statusline"]
EARLIER = "11111111-2222-4333-8444-555555555555"
TOKEN = "ghp_" + "wJ4kQ8nZ2xV6bT1mR5yL9cH3sD7fG0pA4eK8"


class Model:
    """A scripted Messages API. Keeps every request that has tools."""

    def __init__(self, replies):
        self.replies, self.requests = list(replies), []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, kind, body):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.answer(404, "application/json", b"{}")

            def do_HEAD(self):
                self.answer(200, "text/plain", b"")

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if not self.path.split("?")[0].endswith("/v1/messages"):
                    return self.answer(200, "application/json", b'{"input_tokens":100}')
                blocks = [{"type": "text", "text": "{}"}]
                if request.get("tools"):
                    model.requests.append(request)
                    blocks = model.replies.pop(0) if model.replies else [{"type": "text", "text": "Done."}]
                events = list(model.events(request.get("model"), blocks))
                if request.get("stream"):
                    lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
                    return self.answer(200, "text/event-stream", lines.encode())
                message = dict(events[0]["message"], content=blocks, stop_reason="end_turn")
                self.answer(200, "application/json", json.dumps(message).encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def events(self, model, blocks):
        number = len(self.requests)
        usage = {"input_tokens": 100, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {"id": f"msg_scripted_{number}", "type": "message", "role": "assistant", "model": model, "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield {"type": "message_start", "message": message}
        stop = "end_turn"
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                stop = "tool_use"
                start = {"type": "tool_use", "id": f"toolu_scripted_{number}_{index}", "name": block["name"], "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_start", "index": index, "content_block": start}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}


def call(tool, **arguments):
    return [{"type": "tool_use", "name": PREFIX + tool, "input": arguments}]


class Machine:
    """A home and a project of their own, with one earlier session."""

    def __init__(self, folder):
        self.home, self.project = folder / "home", folder / "loom"
        self.home.mkdir()
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        (self.project / "a.rs").write_text("fn wait() {}\n")
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "threadline").symlink_to(THREADLINE)
        self.environment = {
            "PATH": f"{bin_folder}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb",
            "IS_SANDBOX": "1", "ANTHROPIC_API_KEY": "scripted", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        self.write_session()

    def write_session(self):
        cwd = str(self.project.resolve())
        folder = self.home / ".claude" / "projects" / "".join(c if c.isalnum() and c.isascii() else "-" for c in cwd)
        folder.mkdir(parents=True)
        edit = {"file_path": f"{cwd}/a.rs", "old_string": "sleep", "new_string": "wait"}
        result = {"filePath": f"{cwd}/a.rs", "oldString": "sleep", "newString": "wait", "originalFile": "fn sleep() {}\n",
                  "structuredPatch": []}
        rows = [
            ("user", "Why is the loom slow?", None),
            ("assistant", [{"type": "text", "text": "It sleeps. We decided to wait for an event instead."}], None),
            ("user", f"Then change a.rs. The token is {TOKEN}.", None),
            ("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": edit}], None),
            ("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}], result),
            ("assistant", [{"type": "text", "text": "Changed."}], None),
        ]
        lines, parent = [], None
        for number, (role, content, tool_result) in enumerate(rows):
            message = {"role": role, "content": content}
            if role == "assistant":
                usage = {"input_tokens": 1000, "output_tokens": 100}
                message |= {"id": f"msg_{number}", "type": "message", "model": "claude-opus-4-5", "usage": usage}
            line = {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": EARLIER,
                    "version": "2.1.197", "gitBranch": "main", "type": role, "message": message,
                    "uuid": f"00000000-0000-4000-8000-00000000000{number}",
                    "timestamp": f"2026-11-09T10:0{number}:00.000Z"}
            lines.append(line | ({"toolUseResult": tool_result} if tool_result else {}))
            parent = line["uuid"]
        (folder / f"{EARLIER}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def claude(self, *arguments, model=None, **environment):
        extra = {"ANTHROPIC_BASE_URL": model.url} if model else {}
        return subprocess.run([*CLAUDE.split(), *arguments], cwd=self.project, env=self.environment | extra | environment,
                              capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)

    def ask(self, prompt, replies, *arguments, **environment):
        model = Model(replies)
        done = self.claude("-p", prompt, "--output-format", "stream-json", "--verbose", *arguments, model=model, **environment)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return model, events, done


FAILED = []


def say(what, passed, detail=""):
    if not passed:
        FAILED.append(what)
    print(f"{'ok  ' if passed else 'FAIL'} {what}{': ' + str(detail) if detail else ''}", flush=True)


def results(model):
    """The results of tools that the model was sent, by the name of the tool."""
    names, found = {}, []
    for message in model.requests[-1]["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"]
            if block["type"] == "tool_result":
                content = block["content"]
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                found.append((names.get(block["tool_use_id"], "?"), text, bool(block.get("is_error"))))
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(pathlib.Path(folder).resolve())
        version = machine.claude("--version").stdout.strip()
        print(f"Claude Code {version}")
        done = machine.claude("plugin", "validate", str(REPOSITORY / "plugin"))
        say("plugin validate", done.returncode == 0, (done.stdout + done.stderr).strip().splitlines()[-1])
        done = machine.claude("plugin", "marketplace", "add", str(REPOSITORY))
        say("plugin marketplace add", done.returncode == 0, "" if done.returncode == 0 else done.stderr[-300:])
        done = machine.claude("plugin", "install", "threadline@threadline")
        say("plugin install", done.returncode == 0, "" if done.returncode == 0 else done.stderr[-300:])

        script = [
            call("search_sessions", query="loom"),
            call("read_session", session=f"{EARLIER}#m2"),
            call("list_sessions") + call("session_changes", session=EARLIER) + call("find_edits", file="a.rs")
            + call("usage", by="model") + call("check_session", session=EARLIER),
            [{"type": "text", "text": "You decided to wait for an event instead of sleeping."}],
        ]
        searching, events, done = machine.ask("/threadline:search loom", script, "--allowedTools", PREFIX.rstrip("_"))
        start = next((event for event in events if event.get("subtype") == "init"), {})
        commands = [name for name in start.get("slash_commands", []) if name.startswith("threadline:")]
        say("the commands appear", all(f"threadline:{name}" in commands for name in COMMANDS), ", ".join(commands))
        servers = {server["name"]: server["status"] for server in start.get("mcp_servers", [])}
        say("the server is connected", "connected" in servers.get("plugin:threadline:threadline", ""), servers)
        say("the tools are offered", all(PREFIX + name in start.get("tools", []) for name in TOOLS))
        asked = json.dumps(searching.requests[0]["messages"]) if searching.requests else done.stderr[-300:]
        say("the command is expanded", "earlier sessions for: loom" in asked)
        say("the skill is offered", "threadline:history" in json.dumps(searching.requests[0]) if searching.requests else False)
        answers = results(searching) if searching.requests else []
        say("every tool is called and answers",
            sorted(name for name, _, _ in answers) == sorted(PREFIX + name for name in TOOLS)
            and not any(error for _, _, error in answers), f"{len(answers)} answers")
        say("answers name their source", any(f"{EARLIER}#m1" in text for _, text, _ in answers))
        say("secrets are masked", TOKEN not in json.dumps(searching.requests) and "[secret:" in json.dumps(searching.requests))
        end = next((event for event in events if event.get("type") == "result"), {})
        say("the session ends well", end.get("subtype") == "success" and not end.get("is_error"), done.stderr[-200:])

        archive = machine.home / ".local" / "state" / "threadline" / "archive"
        machine.ask("hello", [])
        say("the archive hook is off by default", not archive.exists())
        machine.ask("hello", [], THREADLINE_PLUGIN_HOOKS="archive")
        say("the archive hook can be switched on", archive.exists())
        deny = json.dumps({"permissions": {"deny": ["Skill(threadline:history)"]}})
        skill = [{"type": "tool_use", "name": "Skill", "input": {"skill": "threadline:history"}}]
        for settings, is_refused in [("{}", False), (deny, True)]:
            model, _, _ = machine.ask("hello", [skill], "--settings", settings)
            refused = [error for name, _, error in results(model) if name == "Skill"]
            say("the skill can be switched off" if is_refused else "the skill can be used", refused == [is_refused])
        done = machine.claude("plugin", "disable", "threadline@threadline")
        model, events, _ = machine.ask("hello", [])
        start = next((event for event in events if event.get("subtype") == "init"), {})
        say("a disabled plugin is gone", not any("threadline" in name for name in start.get("slash_commands", []) + start.get("tools", [])))
        print()
        print_record(version, searching, machine)
    sys.exit(1 if FAILED else 0)


def print_record(version, model, machine):
    """Prints what the scripted session did, in Markdown. Long answers are shortened."""
    print(f"Claude Code {version.split()[0]}, plugin `threadline@threadline`, a project with one earlier session.\n")
    print("> /threadline:search loom")
    answers = {}
    for message in model.requests[-1]["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                content = block["content"]
                answers[block["tool_use_id"]] = content if isinstance(content, str) else content[0]["text"]
    for message in model.requests[-1]["messages"]:
        for block in message["content"] if message["role"] == "assistant" else []:
            if block["type"] != "tool_use":
                continue
            text = answers[block["id"]].replace(str(machine.project), "/home/ada/loom")
            lines = json.dumps(json.loads(text), indent=2, ensure_ascii=False).splitlines()
            lines = [line if len(line) <= 105 else line[:104] + "…" for line in lines]
            shown = lines if len(lines) <= 22 else lines[:21] + ["  …"]
            print(f"\n`{block['name'].removeprefix(PREFIX)}` `{json.dumps(block['input'])}`\n\n```json")
            print("\n".join(shown) + "\n```")
    print("\n> You decided to wait for an event instead of sleeping.")


main()
